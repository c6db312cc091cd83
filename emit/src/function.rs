//! Functions: header, registers, blocks, terminators, calls.

use crate::debug::Debug;
use crate::error::EmitError;
use crate::names::Names;
use crate::operand::FunctionNames;
use crate::signature::{self, Header, Naming, param_names, result_names};
use crate::text::Text;
use cranelift_entity::EntitySet;
use ptxc_mir::operand::top_level;
use ptxc_mir::{
    AsmPiece, Block, CallData, CallPiece, Callee, Function, Guard, InstData, Module, Op, Operand, RegClass, Terminator,
    Unroll,
};

/// Prints one function.
pub(crate) fn print_function(
    text: &mut Text,
    module: &Module,
    func: &Function,
    index: usize,
    names: &Names,
    debug: &mut Debug<'_>,
) -> Result<(), EmitError> {
    let mut function_names = FunctionNames::number(func, names, index);
    function_names.params = param_names(names, func.name, &func.signature);
    function_names.results = result_names(names, &func.signature);
    let printer = Printer { module, func, names: function_names, targeted: targeted(func) };
    printer.check()?;
    printer.function(text, debug);
    Ok(())
}

struct Printer<'a> {
    module: &'a Module,
    func: &'a Function,
    names: FunctionNames<'a>,
    /// Blocks that need a label.
    targeted: EntitySet<Block>,
}

/// The blocks that some printed branch or operand names.
fn targeted(func: &Function) -> EntitySet<Block> {
    let mut targeted = EntitySet::with_capacity(func.blocks.len());
    for (i, &block) in func.layout.iter().enumerate() {
        let data = &func.blocks[block];
        let next = func.layout.get(i + 1).copied();
        match &data.terminator {
            Terminator::BrxIdx { targets, .. } => targets.iter().for_each(|t| {
                targeted.insert(t.block);
            }),
            other => other.for_each_target(|t| {
                if Some(t.block) != next {
                    targeted.insert(t.block);
                }
            }),
        }
        for &inst in &data.insts {
            for operand in func.inst_operands(inst) {
                if let Operand::Label(block) = operand {
                    targeted.insert(*block);
                }
            }
        }
    }
    targeted
}

impl Printer<'_> {
    /// Refuses functions that were not taken out of SSA.
    fn check(&self) -> Result<(), EmitError> {
        let name = self.module.symbols.name(self.func.name);
        for &block in &self.func.layout {
            if !self.func.blocks[block].params.is_empty() {
                return Err(EmitError::Internal(format!("{block} of `{name}` still has parameters")));
            }
            if matches!(self.func.blocks[block].terminator, Terminator::None) {
                return Err(EmitError::Internal(format!("{block} of `{name}` has no terminator")));
            }
        }
        Ok(())
    }

    fn function(&self, text: &mut Text, debug: &mut Debug<'_>) {
        let func = self.func;
        let header = Header {
            name: func.name,
            kind: func.kind,
            linkage: func.linkage,
            signature: &func.signature,
            attrs: &func.attrs,
            defined: true,
        };
        header.print(text, self.names.names, &self.names.params, &self.names.results);
        text.push("\n{\n");
        self.declarations(text);
        debug.begin_function(text, func, self.names.index);
        for (i, &block) in func.layout.iter().enumerate() {
            self.block(text, block, func.layout.get(i + 1).copied(), debug);
        }
        debug.end_function(text, self.names.index);
        text.push("}\n");
    }

    /// Registers and the frame.
    fn declarations(&self, text: &mut Text) {
        let depot = self.func.depot;
        if depot.size > 0 {
            text.push("\t.local .align ");
            text.unsigned(u64::from(depot.align.max(1)));
            text.push(" .b8 ");
            self.names.depot(text);
            text.char('[');
            text.unsigned(depot.size);
            text.push("];\n");
        }
        for class in RegClass::ALL {
            let count = self.names.counts[class as usize];
            if count > 0 {
                text.push("\t.reg .");
                text.push(class.ptx_type().text());
                text.char(' ');
                text.push(class.prefix());
                text.char('<');
                // `%r<n>` declares %r0 to %r(n-1), and numbers start at 1.
                text.unsigned(u64::from(count) + 1);
                text.push(">;\n");
            }
        }
        text.char('\n');
    }

    fn block(&self, text: &mut Text, block: Block, next: Option<Block>, debug: &mut Debug<'_>) {
        let data = &self.func.blocks[block];
        if self.targeted.contains(block) {
            self.names.label(text, block);
            text.push(":\n");
        }
        if data.hints.unroll == Unroll::Never {
            text.push("\t.pragma \"nounroll\";\n");
        }
        for &inst in &data.insts {
            let data = &self.func.insts[inst];
            debug.location(text, self.func, data.loc);
            self.inst(text, data, self.func.inst_operands(inst));
        }
        debug.location(text, self.func, data.terminator_loc);
        self.terminator(text, block, &data.terminator, next);
    }

    fn inst(&self, text: &mut Text, data: &InstData, operands: &[Operand]) {
        match data.op {
            Op::Ptx(opcode) => {
                self.begin(text, data.guard);
                let mnemonic = self.module.opcodes.text(opcode);
                match mnemonic.strip_suffix(".unified") {
                    // It stands behind the address (PTX ISA 9.7.10.8).
                    Some(mnemonic) => {
                        text.push(mnemonic);
                        self.names.unified_operands(text, operands);
                    }
                    None => {
                        text.push(mnemonic);
                        self.names.operands(text, operands);
                    }
                }
                text.push(";\n");
            }
            Op::Copy(class) => {
                self.begin(text, data.guard);
                // There is no `mov` of bytes.
                text.push(if class == RegClass::B8 { "cvt.u8.u8" } else { "mov." });
                text.push(if class == RegClass::B8 { "" } else { class.ptx_type().text() });
                self.names.operands(text, operands);
                text.push(";\n");
            }
            Op::Call(id) => self.call(text, data.guard, &self.func.calls[id], operands),
            Op::Asm(id) => {
                self.begin(text, data.guard);
                let slots: Vec<&[Operand]> = top_level(operands).collect();
                for piece in &self.func.asms[id].pieces {
                    match piece {
                        AsmPiece::Text(piece) => text.push(piece),
                        AsmPiece::Operand(n) => {
                            if let Some(slots) = slots.get(*n as usize) {
                                self.names.operand(text, slots, 0);
                            }
                        }
                    }
                }
                text.char('\n');
            }
        }
    }

    /// The tab and the guard that a statement begins with.
    fn begin(&self, text: &mut Text, guard: Option<Guard>) {
        text.char('\t');
        if let Some(guard) = guard {
            text.push(if guard.negated { "@!" } else { "@" });
            self.names.register(text, guard.pred);
            text.char(' ');
        }
    }

    fn terminator(&self, text: &mut Text, block: Block, terminator: &Terminator, next: Option<Block>) {
        match terminator {
            Terminator::None => {}
            Terminator::Jump(target) => self.jump(text, target.block, next),
            Terminator::CondBra { pred, negated, uniform, then, otherwise } => {
                let (then, otherwise) = (then.block, otherwise.block);
                if then == otherwise {
                    self.jump(text, then, next);
                    return;
                }
                // The branch not taken falls through where it can.
                let (target, negated, other) =
                    if Some(then) == next { (otherwise, !negated, then) } else { (then, *negated, otherwise) };
                self.begin(text, Some(Guard { pred: *pred, negated }));
                text.push(if *uniform { "bra.uni " } else { "bra " });
                self.names.label(text, target);
                text.push(";\n");
                self.jump(text, other, next);
            }
            Terminator::BrxIdx { index, uniform, targets } => {
                self.table(text, block);
                text.push(":\n\t.branchtargets");
                for (i, target) in targets.iter().enumerate() {
                    text.push(if i > 0 { ",\n\t\t" } else { "\n\t\t" });
                    self.names.label(text, target.block);
                }
                text.push(";\n\tbrx.idx");
                text.push(if *uniform { ".uni " } else { " " });
                self.names.register(text, *index);
                text.push(", ");
                self.table(text, block);
                text.push(";\n");
            }
            Terminator::Ret { uniform } => text.push(if *uniform { "\tret.uni;\n" } else { "\tret;\n" }),
            Terminator::Exit => text.push("\texit;\n"),
            // `trap` and a call that does not return are no ends of control flow to ptxas; `exit` is.
            Terminator::Trap => text.push("\ttrap;\n\texit;\n"),
            Terminator::Unreachable => text.push("\texit;\n"),
        }
    }

    /// The label of a block's table of branch targets.
    fn table(&self, text: &mut Text, block: Block) {
        text.push("$L__TABLE");
        text.unsigned(self.names.index as u64);
        text.char('_');
        text.unsigned(u64::from(block.as_u32()));
    }

    fn jump(&self, text: &mut Text, target: Block, next: Option<Block>) {
        if Some(target) != next {
            text.push("\tbra.uni ");
            self.names.label(text, target);
            text.push(";\n");
        }
    }

    /// The sequence around a call (PTX ISA, 7.1): parameters are declared, stored, passed, and results loaded.
    fn call(&self, text: &mut Text, guard: Option<Guard>, call: &CallData, operands: &[Operand]) {
        let prefix = self.names.names.call_prefix();
        let mut slots = top_level(operands);
        let callee = match call.callee {
            Callee::Indirect(_) => slots.next().unwrap_or_default(),
            Callee::Symbol(_) => &[],
        };
        text.push("\t{\n");
        for (names, list) in [("param", &call.params), ("retval", &call.returns)] {
            for (i, param) in list.iter().enumerate() {
                text.char('\t');
                signature::param(text, param, false, &format!("{prefix}{names}{i}"));
                text.push(";\n");
            }
        }
        for piece in &call.args {
            self.begin(text, guard);
            text.push("st.param");
            self.piece_type(text, piece);
            self.piece_address(text, piece, "param");
            text.push(", ");
            self.piece_operands(text, piece, &mut slots);
            text.push(";\n");
        }
        self.call_statement(text, guard, call, callee);
        for piece in &call.rets {
            self.begin(text, guard);
            text.push("ld.param");
            self.piece_type(text, piece);
            self.piece_operands(text, piece, &mut slots);
            text.push(", ");
            self.piece_address(text, piece, "retval");
            text.push(";\n");
        }
        text.push("\t}\n");
    }

    fn call_statement(&self, text: &mut Text, guard: Option<Guard>, call: &CallData, callee: &[Operand]) {
        let prefix = self.names.names.call_prefix();
        if let Callee::Indirect(proto) = call.callee {
            let signature = &self.module.prototypes[proto];
            text.push(prefix);
            text.push("prototype_0: .callprototype ");
            if !signature.returns.is_empty() {
                signature::params(text, &signature.returns, false, Naming::Anonymous);
                text.char(' ');
            }
            text.push("_ ");
            signature::params(text, &signature.params, false, Naming::Anonymous);
            if signature.noreturn && signature.returns.is_empty() {
                text.push(" .noreturn");
            }
            text.push(";\n");
        }
        self.begin(text, guard);
        text.push(if call.uniform { "call.uni " } else { "call " });
        if !call.returns.is_empty() {
            self.list(text, "retval", call.returns.len());
            text.push(", ");
        }
        match call.callee {
            Callee::Symbol(symbol) => text.push(self.names.names.get(symbol)),
            Callee::Indirect(_) => self.names.operand(text, callee, 0),
        }
        text.push(", ");
        self.list(text, "param", call.params.len());
        if matches!(call.callee, Callee::Indirect(_)) {
            text.push(", ");
            text.push(prefix);
            text.push("prototype_0");
        }
        text.push(";\n");
    }

    fn list(&self, text: &mut Text, name: &str, count: usize) {
        text.char('(');
        for i in 0..count {
            text.push(if i > 0 { ", " } else { "" });
            text.push(self.names.names.call_prefix());
            text.push(name);
            text.unsigned(i as u64);
        }
        text.char(')');
    }

    fn piece_type(&self, text: &mut Text, piece: &CallPiece) {
        if piece.len > 1 {
            text.push(".v");
            text.unsigned(u64::from(piece.len));
        }
        text.char('.');
        text.push(piece.ty.text());
        text.char(' ');
    }

    fn piece_address(&self, text: &mut Text, piece: &CallPiece, name: &str) {
        text.char('[');
        text.push(self.names.names.call_prefix());
        text.push(name);
        text.unsigned(u64::from(piece.param));
        text.offset(i64::from(piece.offset));
        text.char(']');
    }

    fn piece_operands<'o>(&self, text: &mut Text, piece: &CallPiece, slots: &mut impl Iterator<Item = &'o [Operand]>) {
        text.push(if piece.len > 1 { "{" } else { "" });
        for i in 0..piece.len {
            text.push(if i > 0 { ", " } else { "" });
            self.names.operand(text, slots.next().unwrap_or_default(), 0);
        }
        text.push(if piece.len > 1 { "}" } else { "" });
    }
}
