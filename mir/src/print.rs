//! Text of the machine IR for people and tests: PTX-like, with block parameters and branch arguments.
//!
//! Registers carry their class in their name (`%r5`, `%p3`) and are numbered across classes, as in the arena. It is
//! not read back.

use crate::entities::{Block, Inst, VReg};
use crate::function::{FuncKind, Function};
use crate::inst::{AsmPiece, BlockCall, CallPiece, Callee, Op, Terminator};
use crate::module::{Module, ParamDecl, ParamType, Symbols};
use crate::operand::{GroupKind, Operand, top_level};
use ptxc_targets::OpcodeTable;
use std::fmt::{self, Write};

/// The text of a module's functions.
pub fn print_module(module: &Module) -> String {
    let mut out = String::new();
    for (i, func) in module.functions.iter().enumerate() {
        if i > 0 {
            out.push('\n');
        }
        out.push_str(&print_function(func, &module.opcodes, &module.symbols));
    }
    out
}

/// The text of a function.
pub fn print_function(func: &Function, opcodes: &OpcodeTable, symbols: &Symbols) -> String {
    let mut printer = Printer { func, opcodes, symbols, out: String::new() };
    // Writing to a String cannot fail.
    let _ = printer.function();
    printer.out
}

/// The text of one instruction, without indentation.
pub fn print_inst(func: &Function, inst: Inst, opcodes: &OpcodeTable, symbols: &Symbols) -> String {
    let mut printer = Printer { func, opcodes, symbols, out: String::new() };
    let _ = printer.inst(inst);
    printer.out
}

/// The text of a block's terminator, without indentation.
pub fn print_terminator(func: &Function, block: Block, opcodes: &OpcodeTable, symbols: &Symbols) -> String {
    let mut printer = Printer { func, opcodes, symbols, out: String::new() };
    let _ = printer.terminator(&func.blocks[block].terminator);
    printer.out
}

/// The name of a register in the text.
pub fn vreg_name(func: &Function, vreg: VReg) -> String {
    match func.vregs.get(vreg) {
        Some(class) => format!("{}{}", class.prefix(), vreg.as_u32()),
        None => format!("%undeclared{}", vreg.as_u32()),
    }
}

struct Printer<'a> {
    func: &'a Function,
    opcodes: &'a OpcodeTable,
    symbols: &'a Symbols,
    out: String,
}

impl Printer<'_> {
    fn function(&mut self) -> fmt::Result {
        let func = self.func;
        let kind = match func.kind {
            FuncKind::Kernel => "kernel",
            FuncKind::Func => "func",
        };
        write!(self.out, "{kind} @{}(", self.symbols.name(func.name))?;
        self.params(&func.signature.params)?;
        self.out.push(')');
        if !func.signature.returns.is_empty() {
            self.out.push_str(" -> (");
            self.params(&func.signature.returns)?;
            self.out.push(')');
        }
        self.out.push_str(" {\n");
        if func.depot.size > 0 {
            writeln!(self.out, "    depot {} bytes, align {}", func.depot.size, func.depot.align)?;
        }
        for &block in &func.layout {
            self.block(block)?;
        }
        self.out.push_str("}\n");
        Ok(())
    }

    fn params(&mut self, params: &[ParamDecl]) -> fmt::Result {
        for (i, param) in params.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            match param.ty {
                ParamType::Scalar(ty) => write!(self.out, ".{ty}")?,
                ParamType::Bytes(size) => write!(self.out, ".b8[{size}] align {}", param.align)?,
                ParamType::Opaque(kind) => write!(self.out, ".{}", kind.text())?,
            }
        }
        Ok(())
    }

    fn block(&mut self, block: Block) -> fmt::Result {
        let data = &self.func.blocks[block];
        write!(self.out, "{block}")?;
        if !data.params.is_empty() {
            self.out.push('(');
            self.vregs(&data.params);
            self.out.push(')');
        }
        self.out.push_str(":\n");
        for &inst in &data.insts {
            self.out.push_str("    ");
            self.inst(inst)?;
            self.out.push('\n');
        }
        self.out.push_str("    ");
        self.terminator(&data.terminator)?;
        self.out.push('\n');
        Ok(())
    }

    fn vreg(&mut self, vreg: VReg) {
        self.out.push_str(&vreg_name(self.func, vreg));
    }

    fn vregs(&mut self, vregs: &[VReg]) {
        for (i, &vreg) in vregs.iter().enumerate() {
            if i > 0 {
                self.out.push_str(", ");
            }
            self.vreg(vreg);
        }
    }

    fn inst(&mut self, inst: Inst) -> fmt::Result {
        let data = &self.func.insts[inst];
        if let Some(guard) = data.guard {
            self.out.push_str(if guard.negated { "@!" } else { "@" });
            self.vreg(guard.pred);
            self.out.push(' ');
        }
        let operands = self.func.inst_operands(inst);
        match data.op {
            Op::Ptx(opcode) => {
                self.out.push_str(self.opcodes.text(opcode));
                self.list(operands, " ")?;
            }
            Op::Copy(class) => {
                write!(self.out, "copy.{}", class.ptx_type())?;
                self.list(operands, " ")?;
            }
            Op::Call(id) => {
                let call = &self.func.calls[id];
                match call.callee {
                    Callee::Symbol(symbol) => write!(self.out, "call @{}", self.symbols.name(symbol))?,
                    Callee::Indirect(proto) => write!(self.out, "call {proto}")?,
                }
                self.pieces(&call.args, "");
                self.pieces(&call.rets, " ->");
                self.list(operands, " ")?;
            }
            Op::Asm(id) => {
                self.out.push_str("asm \"");
                for piece in &self.func.asms[id].pieces {
                    match piece {
                        AsmPiece::Text(text) => write!(self.out, "{}", text.escape_debug())?,
                        AsmPiece::Operand(n) => write!(self.out, "${n}")?,
                    }
                }
                self.out.push('"');
                self.list(operands, " ")?;
            }
        }
        Ok(())
    }

    fn pieces(&mut self, pieces: &[CallPiece], before: &str) {
        if pieces.is_empty() {
            return;
        }
        self.out.push_str(before);
        self.out.push_str(" (");
        for (i, piece) in pieces.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            let _ = write!(self.out, "{comma}{}+{}:", piece.param, piece.offset);
            if piece.len > 1 {
                let _ = write!(self.out, "v{}.", piece.len);
            }
            self.out.push_str(piece.ty.text());
        }
        self.out.push(')');
    }

    fn list(&mut self, operands: &[Operand], before: &str) -> fmt::Result {
        for (i, operand) in top_level(operands).enumerate() {
            self.out.push_str(if i > 0 { ", " } else { before });
            self.operand(operand, 0)?;
        }
        Ok(())
    }

    fn operand(&mut self, slots: &[Operand], depth: u32) -> fmt::Result {
        let Some((&first, rest)) = slots.split_first() else {
            return Ok(());
        };
        let mut rest = rest;
        match first {
            Operand::Open(kind, n) => {
                let (inside, after) = rest.split_at(usize::from(n).min(rest.len()));
                rest = after;
                self.group(kind, inside, depth)?;
            }
            Operand::Def(v) | Operand::Use(v) => self.vreg(v),
            Operand::UseNot(v) => {
                self.out.push('!');
                self.vreg(v);
            }
            Operand::UseMinus(v) => {
                self.out.push('-');
                self.vreg(v);
            }
            Operand::DefUse { def, used } => {
                self.vreg(def);
                self.out.push('=');
                self.vreg(used);
            }
            Operand::Imm(n) => write!(self.out, "{n}")?,
            Operand::F32(bits) => write!(self.out, "0f{bits:08X}")?,
            Operand::F64(bits) => write!(self.out, "0d{bits:016X}")?,
            Operand::Sink => self.out.push('_'),
            Operand::Sym(symbol, offset) => {
                write!(self.out, "@{}", self.symbols.name(symbol))?;
                self.offset(i64::from(offset))?;
            }
            Operand::Param(i, offset) => {
                write!(self.out, "param{i}")?;
                self.offset(i64::from(offset))?;
            }
            Operand::RetParam(i, offset) => {
                write!(self.out, "ret{i}")?;
                self.offset(i64::from(offset))?;
            }
            Operand::Depot(offset) => {
                self.out.push_str("depot");
                self.offset(i64::from(offset))?;
            }
            Operand::SReg(register) => self.out.push_str(register.name()),
            Operand::Label(block) => write!(self.out, "{block}")?,
            Operand::Offset(n) => self.offset(n)?,
            Operand::Lanes(lanes) => write!(self.out, ".{lanes}")?,
        }
        for &slot in rest {
            match slot {
                Operand::Offset(n) => self.offset(n)?,
                Operand::Lanes(lanes) => write!(self.out, ".{lanes}")?,
                _ => {}
            }
        }
        Ok(())
    }

    fn offset(&mut self, n: i64) -> fmt::Result {
        if n != 0 { write!(self.out, "{n:+}") } else { Ok(()) }
    }

    fn group(&mut self, kind: GroupKind, inside: &[Operand], depth: u32) -> fmt::Result {
        // Selection builds at most three levels; the limit keeps a broken function printable.
        if depth > 8 {
            self.out.push('…');
            return Ok(());
        }
        let (open, between, close) = match kind {
            GroupKind::Vector => ("{", ", ", "}"),
            GroupKind::Address => ("[", ", ", "]"),
            GroupKind::Pair => ("", "|", ""),
            GroupKind::Paren => ("(", ", ", ")"),
        };
        self.out.push_str(open);
        for (i, slots) in top_level(inside).enumerate() {
            if i > 0 {
                self.out.push_str(between);
            }
            self.operand(slots, depth + 1)?;
        }
        self.out.push_str(close);
        Ok(())
    }

    fn target(&mut self, target: BlockCall) -> fmt::Result {
        write!(self.out, "{}", target.block)?;
        if target.len > 0 {
            self.out.push('(');
            self.vregs(self.func.call_args(target));
            self.out.push(')');
        }
        Ok(())
    }

    fn terminator(&mut self, terminator: &Terminator) -> fmt::Result {
        let uni = |uniform: bool| if uniform { ".uni" } else { "" };
        match terminator {
            Terminator::None => self.out.push_str("(no terminator)"),
            Terminator::Jump(target) => {
                self.out.push_str("jump ");
                self.target(*target)?;
            }
            Terminator::CondBra { pred, negated, uniform, then, otherwise } => {
                let not = if *negated { "!" } else { "" };
                write!(self.out, "br{} {not}{}, ", uni(*uniform), vreg_name(self.func, *pred))?;
                self.target(*then)?;
                self.out.push_str(", ");
                self.target(*otherwise)?;
            }
            Terminator::BrxIdx { index, uniform, targets } => {
                write!(self.out, "brx{} {}, [", uni(*uniform), vreg_name(self.func, *index))?;
                for (i, &target) in targets.iter().enumerate() {
                    if i > 0 {
                        self.out.push_str(", ");
                    }
                    self.target(target)?;
                }
                self.out.push(']');
            }
            Terminator::Ret { uniform } => write!(self.out, "ret{}", uni(*uniform))?,
            Terminator::Exit => self.out.push_str("exit"),
            Terminator::Trap => self.out.push_str("trap"),
            Terminator::Unreachable => self.out.push_str("unreachable"),
        }
        Ok(())
    }
}
