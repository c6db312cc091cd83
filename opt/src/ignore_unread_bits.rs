//! Removes what only changes bits that nobody reads.
//!
//! Which bits of an integer are read follows from what uses it: a mask reads those that it keeps, a shift by a constant those that
//! stay, a sum those up to the highest one that is read of it. One walk in postorder sees the uses of a value before the value;
//! of a loop's parameter, whose uses come after the branch back, all bits count as read. Then a mask that keeps all that is
//! read is its operand, a constant that changes nothing else is not needed, and an extension is the word that was cut
//! before.
//!
//! What uses a value whose unread bits changed may overflow where it did not: its promises are dropped.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Cfg, Extra, Flags, Function, Inst, IntCC, Opcode, Value};
use smallvec::SmallVec;

use crate::edit::resolve_all_uses;
use crate::pass::Context;
use crate::rules::{Found, Rule};
use crate::widths::{int_width, mask};

/// What promises of an operand or result that a change of unread bits may break.
const PROMISES: Flags = Flags::from_bits(
    Flags::NSW.bits() | Flags::NUW.bits() | Flags::EXACT.bits() | Flags::DISJOINT.bits() | Flags::NNEG.bits(),
);

/// The pass.
pub fn ignore_unread_bits(func: &mut Function, ctx: &Context<'_>) -> bool {
    let order: Vec<Block> = Cfg::new(func).rpo().to_vec();
    let read = Read::of(func, &order);
    let mut changed: SecondaryMap<Value, bool> = SecondaryMap::new();
    let mut any = false;
    for block in order {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            let differs = func.dfg.args(inst).iter().any(|value| changed[func.dfg.resolve(*value)]);
            if differs {
                let flags = func.dfg.insts[inst].flags;
                func.dfg.insts[inst].flags = flags.without(PROMISES);
            }
            pass_on(func, inst, &mut changed);
            let Some(result) = func.dfg.first_result(inst).filter(|_| func.dfg.num_results(inst) == 1) else {
                continue;
            };
            let Some(width) = int_width(func.dfg.ty(result)) else { continue };
            changed[result] = differs && read.bits[result] & mask(width) != mask(width);
            let Some((rule, value)) = without(func, inst, read.bits[result] & mask(width)) else { continue };
            ctx.note(inst, rule);
            func.dfg.alias(result, value);
            func.layout.remove_inst(inst);
            changed[func.dfg.resolve(value)] = true;
            any = true;
        }
    }
    if any {
        resolve_all_uses(func);
    }
    any
}

/// Parameters of blocks change with what is passed to them. Of what is passed back all bits count as read, and none changes.
fn pass_on(func: &Function, branch: Inst, changed: &mut SecondaryMap<Value, bool>) {
    func.dfg.for_each_target(branch, |target| {
        let params = func.dfg.block_params(target.block);
        for (value, param) in target.args.as_slice(&func.dfg.pool).iter().zip(params) {
            if changed[func.dfg.resolve(*value)] {
                changed[*param] = true;
            }
        }
    });
}

/// The operand that has the same bits, of those that are read.
fn without(func: &Function, inst: Inst, read: u64) -> Option<Found> {
    let args: SmallVec<[Value; 3]> = func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect();
    // What nobody reads is dead, and removed as such.
    if read == 0 {
        return None;
    }
    match (func.dfg.insts[inst].op, &args[..]) {
        (Opcode::And, [x, by]) => {
            let kept = func.dfg.as_bits(*by)? as u64;
            (!kept & read == 0).then_some((Rule::UnreadMask, *x))
        }
        (Opcode::Or | Opcode::Xor, [x, by]) => {
            let set = func.dfg.as_bits(*by)? as u64;
            (set & read == 0).then_some((Rule::UnreadConstant, *x))
        }
        (Opcode::Add | Opcode::Sub, [x, by]) => {
            let number = func.dfg.as_bits(*by)? as u64;
            (number & up_to(read) == 0).then_some((Rule::UnreadConstant, *x))
        }
        (Opcode::Zext | Opcode::Sext, [cut]) => {
            let inner = func.dfg.def_inst(*cut).filter(|inner| func.dfg.insts[*inner].op == Opcode::Trunc)?;
            let word = func.dfg.resolve(*func.dfg.args(inner).first()?);
            let same = func.dfg.ty(word) == func.dfg.insts[inst].ty;
            (same && read & !mask(int_width(func.dfg.ty(*cut))?) == 0).then_some((Rule::UnreadExtension, word))
        }
        _ => None,
    }
}

/// Which bits of each value are read. Only those of scalar integers of up to 64 bits matter.
struct Read {
    bits: SecondaryMap<Value, u64>,
    /// Blocks whose uses are all seen.
    seen: SecondaryMap<Block, bool>,
}

impl Read {
    fn of(func: &Function, order: &[Block]) -> Read {
        let mut read = Read { bits: SecondaryMap::new(), seen: SecondaryMap::new() };
        for block in order.iter().rev() {
            let mut next = func.layout.last_inst(*block);
            while let Some(inst) = next {
                next = func.layout.prev_inst(inst);
                read.visit(func, inst);
            }
            read.seen[*block] = true;
        }
        read
    }

    fn add(&mut self, func: &Function, value: Value, bits: u64) {
        self.bits[func.dfg.resolve(value)] |= bits;
    }

    /// What an instruction reads of its operands and of what it passes to blocks.
    fn visit(&mut self, func: &Function, inst: Inst) {
        let args: SmallVec<[Value; 4]> = func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect();
        for (index, value) in args.iter().enumerate() {
            let bits = self.operand(func, inst, &args, index).unwrap_or(u64::MAX);
            self.add(func, *value, bits);
        }
        let mut passed: SmallVec<[(Value, u64); 8]> = SmallVec::new();
        func.dfg.for_each_target(inst, |target| {
            let params = func.dfg.block_params(target.block);
            for (value, param) in target.args.as_slice(&func.dfg.pool).iter().zip(params) {
                let bits = if self.seen[target.block] { self.bits[*param] } else { u64::MAX };
                passed.push((*value, bits));
            }
        });
        for (value, bits) in passed {
            self.add(func, value, bits);
        }
    }

    /// The bits of an operand that decide the bits that are read of the result; `None` for all.
    fn operand(&self, func: &Function, inst: Inst, args: &[Value], index: usize) -> Option<u64> {
        if func.dfg.num_results(inst) != 1 {
            return None;
        }
        let result = func.dfg.result(inst, 0);
        let width = int_width(func.dfg.ty(result))?;
        let read = self.bits[result] & mask(width);
        let data = &func.dfg.insts[inst];
        let number = |at: usize| args.get(at).and_then(|value| func.dfg.as_bits(*value)).map(|bits| bits as u64);
        let amount = || number(1).filter(|by| *by < u64::from(width));
        let sign = 1 << (width - 1);
        match (data.op, index) {
            (Opcode::And, 0) => Some(read & number(1).unwrap_or(u64::MAX)),
            (Opcode::Or, 0) => Some(read & !number(1).unwrap_or(0)),
            (Opcode::And | Opcode::Or | Opcode::Xor, _) | (Opcode::Select, 1 | 2) | (Opcode::Trunc, _) => Some(read),
            (Opcode::Add | Opcode::Sub | Opcode::Mul, _) => Some(up_to(read)),
            (Opcode::Shl, 0) => Some(amount().map_or(up_to(read), |by| read >> by)),
            (Opcode::Lshr, 0) => Some(match amount() {
                Some(by) => read << by & mask(width),
                None => from_on(read) & mask(width),
            }),
            (Opcode::Ashr, 0) => {
                let by = amount()?;
                let copies = read & !(mask(width) >> by) != 0;
                Some(read << by & mask(width) | if copies { sign } else { 0 })
            }
            (Opcode::Zext | Opcode::Sext, 0) => {
                let from = int_width(func.dfg.ty(args[0]))?;
                let copies = data.op == Opcode::Sext && read & !mask(from) != 0;
                Some(read & mask(from) | if copies { 1 << (from - 1) } else { 0 })
            }
            (Opcode::Icmp, 0) => self.tested_sign(func, inst, args),
            _ => None,
        }
    }

    /// A comparison that tells the sign alone.
    fn tested_sign(&self, func: &Function, inst: Inst, args: &[Value]) -> Option<u64> {
        let width = int_width(func.dfg.ty(args[0]))?;
        let with = func.dfg.as_bits(*args.get(1)?)? as u64;
        match func.dfg.insts[inst].extra {
            Extra::IntCC(IntCC::Slt | IntCC::Sge) if with == 0 => Some(1 << (width - 1)),
            Extra::IntCC(IntCC::Sgt | IntCC::Sle) if with == mask(width) => Some(1 << (width - 1)),
            _ => None,
        }
    }
}

/// All bits up to the highest one that is set.
fn up_to(bits: u64) -> u64 {
    u64::MAX.checked_shr(bits.leading_zeros()).unwrap_or(0)
}

/// All bits from the lowest one on that is set.
fn from_on(bits: u64) -> u64 {
    u64::MAX.checked_shl(bits.trailing_zeros()).unwrap_or(0)
}
