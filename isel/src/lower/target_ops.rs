//! Target operations and inline assembly: operands are put into registers, everything else is as written.

use ptxc_ir::{Extra, GroupKind, Inst, TargetOp, TargetOperand, Type, Value};
use ptxc_mir::{self as mir, AsmData, AsmPiece, Guard, Operand, RegClass, VReg};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use super::{Lower, Output};

fn group_kind(kind: GroupKind) -> mir::GroupKind {
    match kind {
        GroupKind::Vector => mir::GroupKind::Vector,
        GroupKind::Address => mir::GroupKind::Address,
        GroupKind::Pair => mir::GroupKind::Pair,
        GroupKind::Paren => mir::GroupKind::Paren,
    }
}

/// A target operation on its way to machine IR.
struct Operation {
    inst: Inst,
    /// The registers that it writes.
    results: SmallVec<[VReg; 8]>,
    guarded: bool,
    /// Operands of eight bits are in `.b8` registers.
    bytes: bool,
}

impl Lower<'_> {
    pub(super) fn target_op(&mut self, inst: Inst) {
        let Extra::Target(id) = self.ir.dfg.insts[inst].extra else { return };
        if self.refuse_bundles(inst) {
            return;
        }
        match &self.ir.dfg.target_ops[id] {
            TargetOp::Known { toks, guard, operands } => self.known(inst, toks, *guard, operands),
            TargetOp::Opaque { text } => self.opaque(inst, text),
        }
    }

    pub(super) fn opaque_asm(&mut self, inst: Inst) {
        self.target_op(inst);
    }

    fn known(&mut self, inst: Inst, toks: &[Tok], guard: Option<(u16, bool)>, operands: &[TargetOperand]) {
        let guard = guard.map(|(index, negated)| {
            let value = self.arg(inst, usize::from(index));
            Guard { pred: self.reg_of(value), negated }
        });
        let results: SmallVec<[VReg; 8]> = self.result_registers(inst);
        let mut op = Operation { inst, results: results.clone(), guarded: guard.is_some(), bytes: takes_bytes(toks) };
        // Results of eight bits are written to registers of their own, from which they are widened.
        if op.bytes {
            for (at, value) in self.ir.dfg.results(inst).enumerate() {
                if self.ty(value).bits() == 8 {
                    op.results[at] = self.new_reg(RegClass::B8);
                }
            }
        }
        let out = self.operands(&op, operands);
        let opcode = self.tok_opcode(toks);
        self.memory = Some(self.target_memory(inst, operands));
        let made = self.emit_op(mir::Op::Ptx(opcode), &out);
        self.func.insts[made].guard = guard;
        for (wide, written) in results.iter().zip(&op.results) {
            if wide != written {
                self.emit_toks(&[tok::CVT, tok::U16, tok::U8], &[Operand::Def(*wide), Operand::Use(*written)]);
            }
        }
        self.bind_raw(inst, &results);
    }

    /// The objects that the addresses of a target operation point into.
    fn target_memory(&self, inst: Inst, operands: &[TargetOperand]) -> mir::MemoryRef {
        let mut memory = mir::MemoryRef::default();
        let addresses = operands.windows(2).filter_map(|pair| match pair {
            [TargetOperand::Group(GroupKind::Address, _), first] => Some(*first),
            _ => None,
        });
        for (object, first) in memory.objects.iter_mut().zip(addresses) {
            if let TargetOperand::Arg(index) = first {
                let value = self.arg(inst, usize::from(index));
                if self.ty(value).is_ptr() {
                    *object = self.object(value);
                }
            }
        }
        memory
    }

    /// `[pointer]` or `[pointer+n]` with what can be folded into it. Returns how many operands after the group's opening
    /// were taken.
    fn folded_address(
        &mut self,
        inst: Inst,
        group: TargetOperand,
        inside: &[TargetOperand],
        out: &mut SmallVec<[Operand; 16]>,
    ) -> Option<usize> {
        let (TargetOperand::Group(GroupKind::Address, len), TargetOperand::Arg(index)) = (group, *inside.first()?)
        else {
            return None;
        };
        let value = self.arg(inst, usize::from(index));
        let (offset, taken) = match (len, inside.get(1)) {
            (1, _) => (0, 1),
            (2, Some(TargetOperand::Offset(offset))) => (*offset, 2),
            _ => return None,
        };
        let ty = self.ty(value);
        if !ty.is_ptr() || ty.bits() != 64 {
            return None;
        }
        let mut address = self.address(value);
        address.offset = address.offset.checked_add(offset).filter(|sum| i32::try_from(*sum).is_ok())?;
        // The mnemonic names the space of the pointer's type, not the one that is known behind a cast.
        if address.space != ty.space()? {
            return None;
        }
        self.bracketed(address, out);
        Some(taken)
    }

    /// All operands.
    fn operands(&mut self, op: &Operation, operands: &[TargetOperand]) -> SmallVec<[Operand; 16]> {
        let mut out: SmallVec<[Operand; 16]> = SmallVec::new();
        let mut open = OpenGroups::default();
        let mut rest = operands;
        while let [first, after @ ..] = rest {
            rest = after;
            if let Some(taken) = self.folded_address(op.inst, *first, after, &mut out) {
                rest = &after[taken..];
                open.element(&mut out);
                continue;
            }
            let slot = self.operand(op, *first);
            out.push(slot);
            if let TargetOperand::Part { lanes: Some(lanes), .. } | TargetOperand::ResultPart { lanes, .. } = *first {
                out.push(Operand::Lanes(lanes));
            }
            match *first {
                TargetOperand::Group(_, len) => open.begin(len, &mut out),
                _ => open.element(&mut out),
            }
        }
        out
    }

    /// One register per result: 128-bit values are one register to PTX.
    fn result_registers(&mut self, inst: Inst) -> SmallVec<[VReg; 8]> {
        let results: SmallVec<[Value; 8]> = self.ir.dfg.results(inst).collect();
        results
            .into_iter()
            .map(|v| {
                let class = self.raw_class(self.ty(v));
                self.new_reg(class)
            })
            .collect()
    }

    /// The one register that a value is to PTX: its own, or one that two of its registers are packed into.
    fn raw_class(&mut self, ty: Type) -> RegClass {
        let layout = self.layout(ty);
        if layout.count == 1 { layout.class } else { RegClass::for_bits(ty.bits()).unwrap_or(RegClass::B128) }
    }

    /// Refuses values that are not one register and cannot be packed into one.
    fn refuse_bundles(&mut self, inst: Inst) -> bool {
        let values = self.ir.dfg.args(inst).iter().copied().chain(self.ir.dfg.results(inst));
        let types: SmallVec<[Type; 8]> = values.map(|v| self.ty(v)).collect();
        for ty in types {
            let layout = self.layout(ty);
            let packs = layout.count == 2 && layout.class >= RegClass::B32 && 2 * layout.class.bits() == ty.bits();
            if layout.count != 1 && !packs {
                self.error(inst, format!("a value of type {ty} is not one register; take it apart"));
                return true;
            }
        }
        false
    }

    fn bind_raw(&mut self, inst: Inst, regs: &[VReg]) {
        let results: SmallVec<[Value; 8]> = self.ir.dfg.results(inst).collect();
        for (value, reg) in results.into_iter().zip(regs) {
            if !self.is_assigned(value) {
                continue;
            }
            let layout = self.layout(self.ty(value));
            let regs: Output =
                if layout.count == 1 { SmallVec::from_slice(&[*reg]) } else { self.unpack(*reg, layout.class) };
            self.bind_value(value, &regs);
        }
    }

    fn raw_register(&mut self, value: Value) -> VReg {
        let regs = self.regs_of(value);
        match &regs[..] {
            [reg] => *reg,
            _ => {
                let class = self.raw_class(self.ty(value));
                self.pack(class, &regs)
            }
        }
    }

    fn operand(&mut self, op: &Operation, operand: TargetOperand) -> Operand {
        let result = |index: u16| op.results.get(usize::from(index)).copied();
        match operand {
            TargetOperand::Result(index) | TargetOperand::ResultPart { result: index, .. } => match result(index) {
                // Where the guard is false the register keeps what it held: anything, so say zero.
                Some(def) if op.guarded => Operand::DefUse { def, used: self.zero(self.func.class(def)) },
                Some(def) => Operand::Def(def),
                None => Operand::Sink,
            },
            TargetOperand::Arg(index) => self.argument(op, index),
            TargetOperand::ArgNot(index) => {
                let value = self.arg(op.inst, usize::from(index));
                Operand::UseNot(self.raw_register(value))
            }
            TargetOperand::Part { arg, minus, .. } => {
                let value = self.arg(op.inst, usize::from(arg));
                let reg = self.raw_register(value);
                if minus { Operand::UseMinus(reg) } else { Operand::Use(reg) }
            }
            TargetOperand::InOut { result: index, arg } => {
                let value = self.arg(op.inst, usize::from(arg));
                let used = self.raw_register(value);
                match result(index) {
                    Some(def) => Operand::DefUse { def, used },
                    None => Operand::Use(used),
                }
            }
            TargetOperand::Imm(value) => Operand::Imm(value),
            TargetOperand::F32(bits) => Operand::F32(bits),
            TargetOperand::F64(bits) => Operand::F64(bits),
            TargetOperand::Sink => Operand::Sink,
            TargetOperand::Sreg(register) => Operand::SReg(register),
            TargetOperand::Global(global, offset) => Operand::Sym(self.env.symbols.global(global), offset),
            TargetOperand::Offset(offset) => Operand::Offset(offset),
            TargetOperand::Group(kind, len) => Operand::Open(group_kind(kind), len),
        }
    }

    /// A value that is read: a name where it is one, else a register.
    fn argument(&mut self, op: &Operation, index: u16) -> Operand {
        let value = self.arg(op.inst, usize::from(index));
        if let Some(symbol) = self.symbol_operand(value) {
            return symbol;
        }
        if let Some(index) = self.byval_params.get(&self.ir.dfg.resolve(value)) {
            return Operand::Param(*index, 0);
        }
        let reg = self.raw_register(value);
        if op.bytes && self.ty(value).bits() == 8 {
            return Operand::Use(self.convert_register(reg, RegClass::B8, &[tok::CVT, tok::U8, tok::U16]));
        }
        Operand::Use(reg)
    }

    /// A register of any class that holds zero.
    fn zero(&mut self, class: RegClass) -> VReg {
        match class {
            RegClass::B128 => {
                let zero = self.load_immediate(RegClass::B64, 0);
                self.pack(class, &[zero, zero])
            }
            RegClass::B8 => {
                let zero = self.load_immediate(RegClass::B16, 0);
                self.convert_register(zero, class, &[tok::CVT, tok::U8, tok::U16])
            }
            _ => self.load_immediate(class, 0),
        }
    }

    /// Text that no table entry matches, with `$n` for results then arguments.
    fn opaque(&mut self, inst: Inst, text: &str) {
        let results = self.result_registers(inst);
        let mut operands: Vec<Operand> = results.iter().map(|r| Operand::Def(*r)).collect();
        for index in 0..self.ir.dfg.args(inst).len() {
            let value = self.arg(inst, index);
            operands.push(Operand::Use(self.raw_register(value)));
        }
        let pieces = split_placeholders(text, operands.len());
        let id = self.func.asms.push(AsmData { pieces });
        self.emit_op(mir::Op::Asm(id), &operands);
        self.bind_raw(inst, &results);
    }
}

/// Groups being built. The IR counts a group's operands at its own nesting level, the machine IR counts slots.
#[derive(Default)]
struct OpenGroups {
    /// Slot of the opening and elements still to come.
    stack: SmallVec<[(usize, u16); 4]>,
}

impl OpenGroups {
    /// The last slot of `out` opens a group of `len` elements.
    fn begin(&mut self, len: u16, out: &mut [Operand]) {
        self.stack.push((out.len() - 1, len));
        if len == 0 {
            self.close(out);
        }
    }

    /// An element of the innermost group is complete.
    fn element(&mut self, out: &mut [Operand]) {
        if let Some((_, left)) = self.stack.last_mut() {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.close(out);
            }
        }
    }

    /// Ends the innermost group, which is an element of the one around it.
    fn close(&mut self, out: &mut [Operand]) {
        while let Some((at, 0)) = self.stack.last().copied() {
            self.stack.pop();
            let slots = (out.len() - at - 1) as u16;
            if let Some(Operand::Open(_, len)) = out.get_mut(at) {
                *len = slots;
            }
            if let Some((_, left)) = self.stack.last_mut() {
                *left = left.saturating_sub(1);
            }
        }
    }
}

/// Whether operands of eight bits are in `.b8` registers: all but loads and stores want their exact size there
/// (PTX ISA 9.4.1).
fn takes_bytes(toks: &[Tok]) -> bool {
    let access = matches!(toks.first(), Some(&(tok::LD | tok::ST | tok::LDU | tok::SULD | tok::SUST)));
    !access || toks.contains(&tok::ASYNC)
}

/// Splits assembly text at `$n`; `$$` is a dollar sign.
fn split_placeholders(text: &str, count: usize) -> Vec<AsmPiece> {
    let mut pieces = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        plain.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        match rest[..digits].parse::<usize>() {
            Ok(index) if index < count => {
                if !plain.is_empty() {
                    pieces.push(AsmPiece::Text(std::mem::take(&mut plain)));
                }
                pieces.push(AsmPiece::Operand(index as u32));
                rest = &rest[digits..];
            }
            _ => {
                plain.push('$');
                rest = rest.strip_prefix('$').unwrap_or(rest);
            }
        }
    }
    plain.push_str(rest);
    if !plain.is_empty() {
        pieces.push(AsmPiece::Text(plain));
    }
    pieces
}
