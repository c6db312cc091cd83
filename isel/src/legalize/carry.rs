//! Carry chains: sums and differences of numbers in several limbs that a program wrote with comparisons.
//!
//! A limb's sum has a carry when it is less than one of its operands, a difference a borrow when its first operand is
//! less than the second. Where the next limb adds such a flag, the limbs become `add.cc`, `addc.cc`, … (PTX ISA 9.7.2), in
//! place: between two of them stands nothing that uses the condition code. ptxas makes one three-input add of each and finds
//! no carry in comparisons itself.
//!
//! The forms, of which operands may be swapped where that is the same:
//!
//! ```text
//! s = add a, b             c = icmp ult s, a                           the first limb
//! t = add a, b             s = add t, zext c                           a further limb; or t is any value
//! o = icmp ult t, a        p = icmp ult s, t        c = or o, p        its carry; or p alone
//! ```
//!
//! and the same of differences, where `c` of the first limb is `icmp ult a, b`, `o` likewise and `p` is `icmp ult t, zext c`.

use std::collections::BTreeMap;

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Extra, Function, FunctionBuilder, Inst, IntCC, Opcode, TargetOp, TargetOperand, Type, Value};
use ptxc_targets::{Effects, Tok, tok};
use smallvec::SmallVec;

use crate::rules::Pattern;

/// One limb of a chain.
#[derive(Clone, Copy)]
struct Link {
    /// The instruction whose result is the limb of the sum.
    inst: Inst,
    a: Value,
    b: Value,
}

/// A chain that was found.
struct Chain {
    subtract: bool,
    ty: Type,
    links: Vec<Link>,
    /// The carry out of the last limb, where something uses it.
    out: Option<Value>,
    /// The `zext` to a limb that is all it is used by, if so.
    last: Option<Inst>,
}

/// Rewrites the chains of a function whose aliases are resolved, and names them in `formed`.
pub(super) fn form_chains(func: &mut Function, formed: &mut Vec<(Inst, Pattern)>) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    if !blocks.iter().any(|block| func.layout.insts(*block).any(|inst| is_flag_extension(func, inst))) {
        return;
    }
    let users = Users::new(func, &blocks);
    let zeros = [func.dfg.bits(Type::I32, 0), func.dfg.bits(Type::I64, 0)];
    let mut changed = false;
    for block in blocks {
        let (order, taken) = (SecondaryMap::new(), BTreeMap::new());
        let mut finder = Finder { func, users: &users, zeros, block, order, taken };
        finder.number();
        let chains = finder.chains();
        for chain in &chains {
            emit(func, chain);
            let Some(first) = chain.links.first() else { continue };
            formed.push((first.inst, if chain.out.is_some() { Pattern::CarryOut } else { Pattern::CarryChain }));
        }
        changed |= !chains.is_empty();
    }
    if changed {
        super::cleanup::resolve_and_sweep(func);
    }
}

/// `zext i1` to a limb.
fn is_flag_extension(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    let from_flag = func.dfg.args(inst).first().is_some_and(|a| func.dfg.ty(*a) == Type::I1);
    data.op == Opcode::Zext && from_flag && matches!(data.ty, Type::I32 | Type::I64)
}

/// Who uses each value, once for each use.
struct Users {
    lists: SecondaryMap<Value, SmallVec<[Inst; 2]>>,
}

impl Users {
    fn new(func: &Function, blocks: &[Block]) -> Users {
        let mut lists: SecondaryMap<Value, SmallVec<[Inst; 2]>> = SecondaryMap::with_capacity(func.dfg.num_values());
        for block in blocks {
            for inst in func.layout.insts(*block) {
                func.dfg.for_each_use(inst, |value| lists[value].push(inst));
            }
        }
        Users { lists }
    }

    fn of(&self, value: Value) -> &[Inst] {
        &self.lists[value]
    }

    /// The one user of a value.
    fn only(&self, value: Value) -> Option<Inst> {
        match self.of(value) {
            [one] => Some(*one),
            _ => None,
        }
    }
}

/// Longest list of users that is searched.
const MAX_USERS: usize = 16;

struct Finder<'f> {
    func: &'f Function,
    users: &'f Users,
    block: Block,
    /// The constant zero of 32 and of 64 bits.
    zeros: [Value; 2],
    /// Position in the block, from 1; 0 elsewhere.
    order: SecondaryMap<Inst, u32>,
    /// Spans of positions in which the condition code is in use: last to first. No two overlap.
    taken: BTreeMap<u32, u32>,
}

impl Finder<'_> {
    fn number(&mut self) {
        let func = self.func;
        for (position, inst) in func.layout.insts(self.block).enumerate() {
            let position = position as u32 + 1;
            self.order[inst] = position;
            if uses_condition_code(func, inst) {
                self.taken.insert(position, position);
            }
        }
    }

    fn chains(&mut self) -> Vec<Chain> {
        let mut found = Vec::new();
        for inst in self.func.layout.insts(self.block) {
            let Some(chain) = self.chain_from(inst) else { continue };
            let (Some(first), Some(last)) = (chain.links.first(), chain.links.last()) else { continue };
            let (start, end) = (self.order[first.inst], self.order[last.inst]);
            if self.taken.range(start..).next().is_some_and(|(_, other)| *other <= end) {
                continue;
            }
            self.taken.insert(end, start);
            found.push(chain);
        }
        found
    }

    /// The chain whose first carry is the result of this comparison.
    fn chain_from(&self, compare: Inst) -> Option<Chain> {
        let (less, than) = self.less_than(compare)?;
        let ty = self.func.dfg.ty(less);
        if !matches!(ty, Type::I32 | Type::I64) {
            return None;
        }
        let mut flag = self.func.dfg.first_result(compare)?;
        // The flag is added to the next limb, or this is no first limb.
        self.extension(flag, ty)?;
        let (subtract, first) = match self.sum(less, Opcode::Add) {
            Some(link) if than == link.a || than == link.b => (false, link),
            _ => (true, self.difference(less, than)?),
        };
        let mut chain = Chain { subtract, ty, links: vec![first], out: None, last: None };
        let mut last = first.inst;
        while let Some((link, carry)) = self.next_link(flag, subtract, ty) {
            if self.order[link.inst] <= self.order[last] {
                break;
            }
            last = link.inst;
            chain.links.push(link);
            chain.out = carry;
            let Some(carry) = carry else { return Some(chain) };
            flag = carry;
            if self.extension(flag, ty).is_none() {
                break;
            }
        }
        chain.last = chain.out.and_then(|out| self.func.dfg.def_inst(self.extension(out, ty)?));
        (chain.links.len() > 1).then_some(chain)
    }

    /// The operands of `icmp ult`, or of `icmp ugt` swapped.
    fn less_than(&self, inst: Inst) -> Option<(Value, Value)> {
        let data = &self.func.dfg.insts[inst];
        match (data.op, data.extra, self.func.dfg.args(inst)) {
            (Opcode::Icmp, Extra::IntCC(IntCC::Ult), [a, b]) => Some((*a, *b)),
            (Opcode::Icmp, Extra::IntCC(IntCC::Ugt), [a, b]) => Some((*b, *a)),
            _ => None,
        }
    }

    /// The instruction of this block behind a value, when it is that operation.
    fn sum(&self, value: Value, op: Opcode) -> Option<Link> {
        let inst = self.func.dfg.def_inst(value)?;
        match (self.func.dfg.insts[inst].op == op, self.func.dfg.args(inst)) {
            (true, [a, b]) if self.order[inst] != 0 => Some(Link { inst, a: *a, b: *b }),
            _ => None,
        }
    }

    /// The difference of two values that this block computes.
    fn difference(&self, a: Value, b: Value) -> Option<Link> {
        let candidates = if self.func.dfg.as_const(a).is_some() { b } else { a };
        let users = self.users.of(candidates).iter().take(MAX_USERS);
        let mut links = users.filter_map(|inst| self.sum(self.func.dfg.first_result(*inst)?, Opcode::Sub));
        links.find(|link| (link.a, link.b) == (a, b))
    }

    /// The value of a limb that a flag becomes, if that is all it is used for.
    fn extension(&self, flag: Value, ty: Type) -> Option<Value> {
        let inst = self.users.only(flag)?;
        let fits = is_flag_extension(self.func, inst) && self.func.dfg.insts[inst].ty == ty && self.order[inst] != 0;
        fits.then(|| self.func.dfg.first_result(inst)).flatten()
    }

    /// The limb that adds a flag, and its own carry.
    fn next_link(&self, flag: Value, subtract: bool, ty: Type) -> Option<(Link, Option<Value>)> {
        let carried = self.extension(flag, ty)?;
        let op = if subtract { Opcode::Sub } else { Opcode::Add };
        let users = self.users.of(carried);
        let adds = |inst: &&Inst| self.func.dfg.insts[**inst].op == op && self.order[**inst] != 0;
        let inst = *users.iter().take(MAX_USERS).find(adds)?;
        let args = self.func.dfg.args(inst);
        let rest = match *args {
            [a, b] if b == carried && a != carried => a,
            [a, b] if a == carried && b != carried && !subtract => b,
            _ => return None,
        };
        let total = self.func.dfg.first_result(inst)?;
        let zero = self.zeros[usize::from(ty == Type::I64)];
        let inner = self.sum(rest, op);
        // p: the flag was added to the rest and that went over.
        let over = |x: Value, y: Value| self.compared(x, y);
        let second = if subtract { over(rest, carried) } else { over(total, rest).or_else(|| over(total, carried)) };
        let first = inner.and_then(|link| match subtract {
            true => over(link.a, link.b),
            false => over(rest, link.a).or_else(|| over(rest, link.b)),
        });
        let used_up = users.len() == 1 + usize::from(second.is_some_and(|p| self.mentions(p, carried)));
        if !used_up {
            return None;
        }
        let (link, carry) = match (inner, first, second) {
            (Some(inner), Some(o), Some(p)) => match self.either(o, p) {
                Some(carry) => (inner, Some(carry)),
                None => return None,
            },
            (Some(inner), None, None) => (inner, None),
            // The rest is a number like any other.
            (_, _, Some(p)) => (Link { inst, a: rest, b: zero }, Some(p)),
            (Some(inner), Some(_), None) => (inner, None),
            (None, _, None) => (Link { inst, a: rest, b: zero }, None),
        };
        Some((Link { inst, ..link }, carry))
    }

    /// The result of `icmp ult x, y` in this block.
    fn compared(&self, x: Value, y: Value) -> Option<Value> {
        let by = if self.func.dfg.as_const(x).is_some() { y } else { x };
        let users = self.users.of(by).iter().take(MAX_USERS);
        let mut found = users.filter(|inst| self.order[**inst] != 0 && self.less_than(**inst) == Some((x, y)));
        self.func.dfg.first_result(*found.next()?)
    }

    /// The comparison behind a flag has this operand.
    fn mentions(&self, flag: Value, operand: Value) -> bool {
        self.func.dfg.def_inst(flag).is_some_and(|inst| self.func.dfg.args(inst).contains(&operand))
    }

    /// `or o, p`, or `xor`, where both are used for nothing else: at most one is true.
    fn either(&self, o: Value, p: Value) -> Option<Value> {
        let (inst, other) = (self.users.only(o)?, self.users.only(p)?);
        let joins = matches!(self.func.dfg.insts[inst].op, Opcode::Or | Opcode::Xor);
        (inst == other && joins && self.order[inst] != 0).then(|| self.func.dfg.first_result(inst)).flatten()
    }
}

/// Whether an instruction may read or write the condition code.
fn uses_condition_code(func: &Function, inst: Inst) -> bool {
    let data = &func.dfg.insts[inst];
    match (data.op, data.extra) {
        (Opcode::Call | Opcode::CallIndirect | Opcode::Asm, _) => true,
        (Opcode::Target, Extra::Target(id)) => match &func.dfg.target_ops[id] {
            TargetOp::Known { toks, .. } => {
                ptxc_targets::possible_effects(toks).is_none_or(|effects| effects.contains(Effects::CARRY))
            }
            TargetOp::Opaque { .. } => true,
        },
        _ => false,
    }
}

fn emit(func: &mut Function, chain: &Chain) {
    let plain: [Tok; 2] = if chain.subtract { [tok::SUB, tok::SUBC] } else { [tok::ADD, tok::ADDC] };
    let suffix = if chain.ty == Type::I32 { tok::U32 } else { tok::U64 };
    let count = chain.links.len();
    let mut carry = None;
    for (index, link) in chain.links.iter().enumerate() {
        let head = plain[usize::from(index > 0)];
        let goes_on = index + 1 < count || chain.out.is_some();
        let code = goes_on.then_some(tok::CC);
        let toks: SmallVec<[Tok; 3]> = [Some(head), code, Some(suffix)].into_iter().flatten().collect();
        let mut b = FunctionBuilder::before(func, link.inst);
        let limb = target(&mut b, &toks, &[link.a, link.b], chain.ty);
        if index + 1 == count && chain.out.is_some() {
            let zero = b.bits(chain.ty, 0);
            carry = Some(target(&mut b, &[plain[1], suffix], &[zero, zero], chain.ty));
        }
        let old = func.dfg.result(link.inst, 0);
        func.dfg.alias(old, limb);
        func.layout.remove_inst(link.inst);
    }
    if let (Some(out), Some(carry)) = (chain.out, carry) {
        give_out(func, chain, out, carry);
    }
}

/// Makes the last flag of what the last limb carries: 1, or -1 where numbers are subtracted.
fn give_out(func: &mut Function, chain: &Chain, out: Value, carry: Value) {
    let Some(inst) = func.dfg.def_inst(out) else { return };
    let mut b = FunctionBuilder::before(func, inst);
    let flag = b.icmp_imm(IntCC::Ne, carry, 0);
    func.dfg.alias(out, flag);
    func.layout.remove_inst(inst);
    // Most flags become a further limb.
    if let Some(limb) = chain.last {
        let old = func.dfg.result(limb, 0);
        let mut b = FunctionBuilder::before(func, limb);
        let zero = b.bits(chain.ty, 0);
        let new = if chain.subtract { b.binary(Opcode::Sub, zero, carry) } else { carry };
        func.dfg.alias(old, new);
        func.layout.remove_inst(limb);
    }
}

/// A target operation of register operands with one result.
fn target(b: &mut FunctionBuilder<'_>, toks: &[Tok], args: &[Value], ty: Type) -> Value {
    let sources = (0..args.len()).map(|i| TargetOperand::Arg(i as u16));
    let operands = std::iter::once(TargetOperand::Result(0)).chain(sources).collect();
    let op = TargetOp::Known { toks: SmallVec::from_slice(toks), guard: None, operands };
    let inst = b.target(op, args, &[ty]);
    b.func.dfg.result(inst, 0)
}
