//! Networks of logic and byte moves as `lop3` and `prmt` (PTX ISA 9.7.8).
//!
//! `lop3` computes any function of three bits, bit by bit; `prmt` any arrangement of the bytes of two words. Before a
//! block is selected, its logic of 32 and 64 bits and what moves bytes in it is covered: every operation gets the
//! cheapest way to compute it, by its own instruction, as one table or two ([`cuts`]), or as an arrangement of bytes
//! ([`bytes`]). Operations inside such a cover that nothing else wants are then never asked for. One that several users
//! want is repeated inside their tables where that costs no instruction. 64-bit values are computed by halves.

mod bytes;
mod cuts;
mod dot;
mod emit;
mod table;
mod tested;
#[cfg(test)]
mod tests;

use ptxc_ir::{Block, Extra, Inst, Opcode, Scalar, TargetOp, TargetOperand, Type, Value};
use ptxc_mir::RegClass;
use ptxc_targets::tok;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Lower;
use crate::regs;
use bytes::{Bytes, Word, WordPlan};
use cuts::{Cut, Cuts, Form, INSTRUCTION, Leaf};

/// Tables of the operands of `lop3` in their order (PTX ISA: immLut).
const OPERANDS: [u8; 3] = [0xf0, 0xcc, 0xaa];

/// What a table reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Source {
    Value(Value),
    Constant(i64),
}

/// How an operation is computed, when not by its own instruction.
#[derive(Clone)]
enum Plan {
    /// One table of up to three sources.
    One(u8, SmallVec<[Source; 3]>),
    /// Two tables: the inner one and its sources, the outer one and its sources besides the inner result, which comes
    /// first.
    Two(u8, [Source; 3], u8, SmallVec<[Source; 2]>),
    /// Words arranged from bytes, low first.
    Bytes(SmallVec<[WordPlan; 2]>),
    /// A sum with products of bytes.
    Dot(Box<dot::Dot>),
}

/// An operation of the block that is logic or moves bytes.
struct Node {
    /// Ways to compute a word as tables, where it is one.
    cuts: Option<Cuts>,
    /// Where its bytes come from.
    bytes: Bytes,
    /// Uses by the network.
    inner_uses: u32,
    /// What each of those uses pays for the value.
    share: u32,
}

/// The plans of a block's network.
#[derive(Default)]
pub(super) struct Plans {
    plans: FxHashMap<Inst, Plan>,
    nodes: Vec<Node>,
    /// Number of the node of a value.
    numbers: FxHashMap<Value, u32>,
    /// Constants that are leaves, those that are not negative: a mask and its complement are one leaf.
    constants: Vec<i64>,
}

/// Bit of a leaf's number that says the rest is the number of a constant.
const CONSTANT: u32 = 1 << 31;

impl Plans {
    fn node(&self, value: Value) -> Option<&Node> {
        self.numbers.get(&value).map(|n| &self.nodes[*n as usize])
    }

    /// The leaf of a constant other than 0 and all ones.
    fn constant_leaf(&mut self, bits: i64) -> Cuts {
        let magnitude = if bits < 0 { !bits } else { bits };
        let at = self.constants.iter().position(|c| *c == magnitude).unwrap_or_else(|| {
            self.constants.push(magnitude);
            self.constants.len() - 1
        });
        let leaf = Cut::leaf(Leaf { number: CONSTANT | at as u32, cost: 0, constant: true });
        Cuts::one(if bits < 0 { leaf.complement() } else { leaf })
    }

    fn source(&self, leaf: &Leaf) -> Option<Source> {
        match leaf.number & CONSTANT {
            0 => Some(Source::Value(Value::from_u32(leaf.number))),
            _ => self.constants.get((leaf.number & !CONSTANT) as usize).map(|c| Source::Constant(*c)),
        }
    }
}

fn is_logic(op: Opcode) -> bool {
    matches!(op, Opcode::And | Opcode::Or | Opcode::Xor)
}

/// Operations that may only move bytes, by their operands.
fn may_move_bytes(op: Opcode) -> bool {
    use Opcode::*;
    is_logic(op) || matches!(op, Add | Mul | Shl | Lshr | Ashr | Fshl | Fshr | Zext | Sext | Trunc | Bswap)
}

/// Bytes of an integer type of the network.
fn byte_count(ty: Type) -> Option<usize> {
    match ty.kind()? {
        Scalar::Int(bits @ (8 | 16 | 32 | 64)) if !ty.is_vector() => Some(bits as usize / 8),
        _ => None,
    }
}

impl Lower<'_> {
    /// The class of the word or pair of words that an operation computes; `None` where it has no plan.
    fn planned_class(&self, inst: Inst) -> Option<RegClass> {
        let layout = regs::layout(self.network_type(inst), self.env.target)?;
        (layout.count == 1 && matches!(layout.class, RegClass::B32 | RegClass::B64)).then_some(layout.class)
    }

    /// The type that an operation computes; a target operation of the network makes a word.
    fn network_type(&self, inst: Inst) -> Type {
        let data = &self.ir.dfg.insts[inst];
        if data.op == Opcode::Target { Type::I32 } else { data.ty }
    }

    /// The two words and the selector of a `prmt.b32` in its default mode whose selector is constant.
    pub(super) fn permutation(&self, inst: Inst) -> Option<(Value, Value, u16)> {
        let Extra::Target(id) = self.ir.dfg.insts[inst].extra else { return None };
        let TargetOp::Known { toks, guard: None, operands } = &self.ir.dfg.target_ops[id] else { return None };
        let &[TargetOperand::Result(0), TargetOperand::Arg(a), TargetOperand::Arg(b), by] = operands.as_slice() else {
            return None;
        };
        if toks[..] != [tok::PRMT, tok::B32] {
            return None;
        }
        let selector = match by {
            TargetOperand::Arg(index) => self.const_bits(self.arg(inst, usize::from(index)))? as u16,
            TargetOperand::Imm(number) => number as u16,
            _ => return None,
        };
        let words = [a, b].map(|index| self.arg(inst, usize::from(index)));
        let result = self.ir.dfg.first_result(inst)?;
        let are_words = words.iter().chain([&result]).all(|value| self.ty(*value) == Type::I32);
        are_words.then_some((words[0], words[1], selector))
    }

    /// Whether an operation is part of the network.
    fn is_network(&self, inst: Inst) -> bool {
        let data = &self.ir.dfg.insts[inst];
        if data.op == Opcode::Target {
            return self.permutation(inst).is_some();
        }
        (is_logic(data.op) && self.planned_class(inst).is_some())
            || (may_move_bytes(data.op) && byte_count(data.ty).is_some())
    }

    /// Finds how the network of a block is computed. Users in blocks selected before have asked for their values already.
    pub(super) fn plan_network(&mut self, block: Block) {
        let mut plans = std::mem::take(&mut self.network);
        plans.plans.clear();
        plans.nodes.clear();
        plans.numbers.clear();
        plans.constants.clear();
        let mut found: SmallVec<[Inst; 32]> = SmallVec::new();
        for inst in self.ir.layout.insts(block) {
            if self.is_network(inst) {
                found.push(inst);
            }
        }
        if found.len() > 1 {
            self.count_inner_uses(&found, &mut plans);
            for inst in found {
                self.plan_one(inst, &mut plans);
            }
        }
        self.network = plans;
    }

    fn count_inner_uses(&self, found: &[Inst], plans: &mut Plans) {
        for (number, inst) in found.iter().enumerate() {
            if let Some(result) = self.ir.dfg.first_result(*inst) {
                plans.numbers.insert(result, number as u32);
            }
        }
        let unknown = Bytes::own(0, 0, 0);
        plans.nodes.extend(found.iter().map(|_| Node { cuts: None, bytes: unknown, inner_uses: 0, share: 0 }));
        for inst in found {
            for operand in self.ir.dfg.args(*inst) {
                if let Some(number) = plans.numbers.get(&self.ir.dfg.resolve(*operand)) {
                    plans.nodes[*number as usize].inner_uses += 1;
                }
            }
        }
    }

    fn plan_one(&mut self, inst: Inst, plans: &mut Plans) {
        let Some(result) = self.ir.dfg.first_result(inst) else { return };
        let Some(number) = plans.numbers.get(&result).map(|n| *n as usize) else { return };
        let mut cost = self.own_cost(inst, plans);
        let mut plan = None;
        let mut cuts = self.logic_cuts(inst, plans);
        // A sum stays one where that is as good: it can be part of others.
        let is_logic = is_logic(self.ir.dfg.insts[inst].op);
        if let Some(best) = cuts.as_ref().and_then(Cuts::best).filter(|best| is_logic || best.cost < cost) {
            let own = [0, 1].map(|index| {
                let value = self.arg(inst, index);
                self.word_constant(value).map_or(Source::Value(value), Source::Constant)
            });
            if let Some(one) = self.one_instruction(inst, plans).filter(|one| *one <= best.cost) {
                cost = one;
            } else {
                plan = tables(plans, best, own);
                cost = best.cost;
            }
        }
        let bytes = self.bytes_of(inst, result, plans);
        if self.planned_class(inst).is_some()
            && self.sees_through_an_operand(inst, &bytes, plans)
            && let Some((arranged, price)) = self.arrangement(&bytes, result, plans)
            && price < cost
        {
            plan = Some(Plan::Bytes(arranged));
            cost = price;
        }
        if let Some((dot, price, saved)) = self.dot(inst, plans)
            && price < cost + saved
        {
            plan = Some(Plan::Dot(Box::new(dot)));
            cost = price;
        }
        if let Some(plan) = plan {
            plans.plans.insert(inst, plan);
        }
        // Whoever takes the value as it is pays a share of its cost; nothing when it has to be there anyway.
        let wanted = plans.nodes[number].inner_uses;
        let elsewhere = self.uses[result].count() > wanted || self.is_assigned(result);
        let share = if elsewhere { 0 } else { cost / wanted.max(1) };
        if let Some(cuts) = &mut cuts {
            cuts.keep(Cut::leaf(Leaf { number: result.as_u32(), cost: share, constant: false }));
        }
        plans.nodes[number] = Node { cuts, bytes, inner_uses: wanted, share };
    }

    /// Whether an operand is made of other values' bytes: else the operation alone is what its own rule is for.
    fn sees_through_an_operand(&self, inst: Inst, bytes: &Bytes, plans: &Plans) -> bool {
        self.ir.dfg.args(inst).iter().any(|operand| {
            let value = self.ir.dfg.resolve(*operand);
            let number = value.as_u32();
            plans.node(value).is_some_and(|node| !node.bytes.is_made_of(number) || !bytes.is_made_of(number))
        })
    }

    /// What an operation costs that is one instruction together with what it is made of, by a rule of its own.
    fn one_instruction(&self, inst: Inst, plans: &Plans) -> Option<u32> {
        let read = |values: &[Value]| {
            let share = |value: &Value| plans.node(*value).map_or(0, |node| node.share);
            values.iter().map(share).fold(INSTRUCTION, u32::saturating_add)
        };
        if let Some(from) = self.keeps_low_bits(inst) {
            return Some(read(&[from]));
        }
        // Two shifts that move a pair of words, by whole bytes as others move them.
        let pair = self.funnel(inst, Opcode::Shl).or_else(|| self.funnel(inst, Opcode::Lshr));
        let pair = pair.filter(|(.., amount)| self.const_i64(*amount).is_none_or(|by| by % 8 != 0));
        pair.map(|(a, b, amount)| read(&[a, b, amount]))
    }

    /// The a of `a & mask` with a mask of n low bits that only this wants, where one instruction computes it of a and n
    /// (`low_bits` in `rules/bits.isle`).
    fn keeps_low_bits(&self, inst: Inst) -> Option<Value> {
        if self.ir.dfg.insts[inst].op != Opcode::And || self.network_type(inst) != Type::I32 {
            return None;
        }
        let (a, b) = (self.arg(inst, 0), self.arg(inst, 1));
        let is_mask = |value: Value| self.single_use(value).is_some_and(|mask| self.mask_of_low_bits(mask).is_some());
        let from = if is_mask(b) {
            a
        } else if is_mask(a) {
            b
        } else {
            return None;
        };
        self.env.dialect.has_some_form(&[tok::SZEXT, tok::CLAMP, tok::U32]).then_some(from)
    }

    /// What an operation costs by its own instruction. A product that goes into a sum is part of the sum's.
    fn own_cost(&self, inst: Inst, plans: &Plans) -> u32 {
        // A word above zeros is no instruction.
        let op = self.ir.dfg.insts[inst].op;
        let is_word = op == Opcode::Zext && self.arg_type(inst, 0) == Type::I32;
        let mut cost = if is_word { 0 } else { INSTRUCTION };
        let mut fused = op == Opcode::Add;
        for operand in self.ir.dfg.args(inst) {
            let value = self.ir.dfg.resolve(*operand);
            let Some(node) = plans.node(value) else { continue };
            cost = cost.saturating_add(node.share);
            let is_product = self.ir.dfg.def_inst(value).is_some_and(|i| self.ir.dfg.insts[i].op == Opcode::Mul);
            if fused && is_product && node.share >= INSTRUCTION {
                fused = false;
                cost -= INSTRUCTION;
            }
        }
        cost
    }

    /// The cuts of a logic operation, and of a sum that is one.
    fn logic_cuts(&self, inst: Inst, plans: &mut Plans) -> Option<Cuts> {
        let op = self.ir.dfg.insts[inst].op;
        let is_sum = op == Opcode::Add && byte_count(self.ir.dfg.insts[inst].ty) == Some(4);
        if !is_logic(op) && !is_sum {
            return None;
        }
        self.planned_class(inst)?;
        let (a, b) = (self.arg(inst, 0), self.arg(inst, 1));
        // A constant added goes into the sums around.
        if is_sum && (self.word_constant(b).is_some() || !(self.is_masked(a) || self.is_masked(b))) {
            return None;
        }
        let (left, right) = (self.operand_cuts(a, plans), self.operand_cuts(b, plans));
        if is_sum && !self.are_disjoint([a, b], [&left, &right]) {
            return None;
        }
        Some(match op {
            Opcode::And => Cuts::of(&left, &right, |x, y| x & y),
            Opcode::Or | Opcode::Add => Cuts::of(&left, &right, |x, y| x | y),
            _ => Cuts::of(&left, &right, |x, y| x ^ y),
        })
    }

    /// Whether a value is made by a mask that only this wants.
    fn is_masked(&self, value: Value) -> bool {
        self.single_use(value).is_some_and(|inst| self.ir.dfg.insts[inst].op == Opcode::And)
    }

    /// Whether two words have no bit in common: by what they can hold, or as functions of the same values. Adding them is `or` then.
    fn are_disjoint(&self, values: [Value; 2], cuts: [&Cuts; 2]) -> bool {
        let [a, b] = values.map(|value| self.possible_bits(value));
        a & b == 0 || Cuts::of(cuts[0], cuts[1], |x, y| x & y).as_slice().iter().any(Cut::is_zero)
    }

    /// Bits of a word that can be ones, by masks, limits and shifts by constants.
    pub(in crate::lower) fn possible_bits(&self, value: Value) -> u32 {
        let mut value = value;
        // What the steps from the value outwards keep and move, the last first.
        let mut steps: SmallVec<[(Opcode, u32); 4]> = SmallVec::new();
        while steps.len() < 4
            && let Some(inst) = self.pure_def(value)
            && let op @ (Opcode::And | Opcode::Umin | Opcode::Shl | Opcode::Lshr) = self.ir.dfg.insts[inst].op
            && let Some(bits) = self.const_bits(self.arg(inst, 1))
        {
            if op == Opcode::Umin {
                let below = u32::MAX.checked_shr((bits as u32).leading_zeros()).unwrap_or(0);
                steps.push((Opcode::And, below));
                break;
            }
            if op != Opcode::And && !(0..32).contains(&bits) {
                break;
            }
            steps.push((op, bits as u32));
            value = self.arg(inst, 0);
        }
        steps.iter().rev().fold(u32::MAX, |bits, (op, by)| match op {
            Opcode::And => bits & by,
            Opcode::Shl => bits << by,
            _ => bits >> by,
        })
    }

    fn operand_cuts(&self, value: Value, plans: &mut Plans) -> Cuts {
        let mut cost = 0;
        if let Some(node) = plans.node(value) {
            if let Some(cuts) = node.cuts {
                return cuts;
            }
            cost = node.share;
        }
        match self.word_constant(value) {
            Some(0) => Cuts::one(Cut::constant(false)),
            Some(-1) => Cuts::one(Cut::constant(true)),
            Some(bits) => plans.constant_leaf(bits),
            None => Cuts::one(Cut::leaf(Leaf { number: value.as_u32(), cost, constant: false })),
        }
    }

    /// Where the bytes of an operation's result come from; its own where it does more than moving bytes.
    fn bytes_of(&self, inst: Inst, result: Value, plans: &Plans) -> Bytes {
        let Some(len) = byte_count(self.network_type(inst)) else { return Bytes::own(result.as_u32(), 0, 0) };
        self.moved_bytes(inst, len, plans)
            .unwrap_or_else(|| Bytes::own(result.as_u32(), len, self.zero_bytes(inst, len)))
    }

    fn moved_bytes(&self, inst: Inst, len: usize, plans: &Plans) -> Option<Bytes> {
        let op = self.ir.dfg.insts[inst].op;
        let operand = |index: usize| self.operand_bytes(self.arg(inst, index), plans);
        let amount = |index: usize| {
            let bits = self.const_i64(self.arg(inst, index))?;
            (bits % 8 == 0 && (0..8 * len as i64).contains(&bits)).then_some(bits as usize / 8)
        };
        match op {
            Opcode::And => {
                let mask = self.const_bits(self.arg(inst, 1))? as u64;
                match self.joined_under(self.arg(inst, 0), mask, plans) {
                    Some(bytes) => Some(bytes),
                    None => operand(0)?.masked(mask),
                }
            }
            Opcode::Or | Opcode::Xor | Opcode::Add => operand(0)?.joined(&operand(1)?),
            Opcode::Mul => {
                let factor = self.const_bits(self.arg(inst, 1))?;
                let ones = 0x0101_0101_0101_0101u64 >> (64 - 8 * len);
                if factor as u64 == ones { operand(0)?.repeated() } else { None }
            }
            Opcode::Shl => Some(operand(0)?.up(amount(1)?)),
            Opcode::Lshr => Some(operand(0)?.down(amount(1)?, false)),
            Opcode::Ashr => Some(operand(0)?.down(amount(1)?, true)),
            Opcode::Fshl => Some(Bytes::funnel(&operand(0)?, &operand(1)?, amount(2)?)),
            Opcode::Fshr => Some(Bytes::funnel(&operand(0)?, &operand(1)?, len - amount(2)?)),
            // A narrow value that is no arrangement itself is in a register of another width: extending makes the word.
            Opcode::Zext | Opcode::Sext => {
                let narrow = plans.node(self.arg(inst, 0))?.bytes;
                (narrow.len() > 0 && self.is_of_words(&narrow)).then(|| narrow.extended(len, op == Opcode::Sext))
            }
            Opcode::Trunc => Some(operand(0)?.truncated(len)),
            Opcode::Bswap => Some(operand(0)?.swapped()),
            Opcode::Target => {
                let (a, b, selector) = self.permutation(inst)?;
                Some(Bytes::permuted(&self.operand_bytes(a, plans)?, &self.operand_bytes(b, plans)?, selector))
            }
            _ => None,
        }
    }

    /// What a mask of whole bytes leaves of two values put together that have other bytes in common.
    fn joined_under(&self, value: Value, mask: u64, plans: &Plans) -> Option<Bytes> {
        let node = plans.node(value).filter(|node| node.bytes.is_made_of(value.as_u32()))?;
        let inst =
            self.pure_def(value).filter(|inst| matches!(self.ir.dfg.insts[*inst].op, Opcode::Or | Opcode::Xor))?;
        let kept = |index: usize| self.operand_bytes(self.arg(inst, index), plans)?.masked(mask);
        kept(0)?.joined(&kept(1)?).filter(|bytes| bytes.len() == node.bytes.len())
    }

    /// Whether all bytes come from registers of 32 and 64 bits.
    fn is_of_words(&self, bytes: &Bytes) -> bool {
        bytes.as_slice().iter().all(|byte| match byte.word() {
            Some(Word::Of(number, _)) => matches!(byte_count(self.ty(Value::from_u32(number))), Some(4 | 8)),
            _ => true,
        })
    }

    fn operand_bytes(&self, value: Value, plans: &Plans) -> Option<Bytes> {
        let len = byte_count(self.ty(value))?;
        if let Some(node) = plans.node(value) {
            return (node.bytes.len() == len).then_some(node.bytes);
        }
        if let Some(bits) = self.const_bits(value) {
            return Some(Bytes::constant(bits as u64, len));
        }
        if let Some(bytes) = self.part_of_number(value, len, plans).or_else(|| self.joined_lanes(value, len, plans)) {
            return Some(bytes);
        }
        let zeros = self.ir.dfg.def_inst(value).map_or(0, |inst| self.zero_bytes(inst, len));
        Some(Bytes::own(value.as_u32(), len, zeros))
    }

    /// The bytes of a number of 32 or 64 bits that a lane of it, read as a vector, is.
    fn part_of_number(&self, value: Value, len: usize, plans: &Plans) -> Option<Bytes> {
        let lane = self.pure_def(value).filter(|inst| self.ir.dfg.insts[*inst].op == Opcode::Extract)?;
        let cast = self.pure_def(self.arg(lane, 0)).filter(|inst| self.ir.dfg.insts[*inst].op == Opcode::Bitcast)?;
        let index = usize::try_from(self.const_i64(self.arg(lane, 1))?).ok()?;
        let number = self.arg(cast, 0);
        // A cast of a cast is none: one step, whatever the input.
        let whole = byte_count(self.ty(number)).filter(|whole| *whole >= 4 && (index + 1) * len <= *whole)?;
        let bytes = match plans.node(number) {
            Some(node) if node.bytes.len() == whole => node.bytes,
            Some(_) => return None,
            None => Bytes::own(number.as_u32(), whole, 0),
        };
        Some(bytes.down(index * len, false).truncated(len))
    }

    /// The bytes of a number that is put together of lanes. Lanes are narrower, so this ends.
    fn joined_lanes(&self, value: Value, len: usize, plans: &Plans) -> Option<Bytes> {
        let cast = self.pure_def(value).filter(|inst| self.ir.dfg.insts[*inst].op == Opcode::Bitcast)?;
        let vector = self.pure_def(self.arg(cast, 0)).filter(|inst| self.ir.dfg.insts[*inst].op == Opcode::Vector)?;
        let lanes = self.ir.dfg.args(vector);
        let each = len / lanes.len().max(1);
        let mut whole = Bytes::constant(0, len);
        for (index, lane) in lanes.iter().enumerate() {
            let lane = self.ir.dfg.resolve(*lane);
            if byte_count(self.ty(lane)) != Some(each) || each == len {
                return None;
            }
            let known = self.ir.dfg.as_const(lane).is_none() || self.const_bits(lane).is_some();
            // A narrow value is in a register of another width: putting it together makes the word.
            let bytes = self.operand_bytes(lane, plans).filter(|bytes| known && self.is_of_words(bytes))?;
            whole = whole.joined(&bytes.extended(len, false).up(index * each))?;
        }
        Some(whole)
    }

    /// Bytes of an operation's result that are zero whatever its operands.
    fn zero_bytes(&self, inst: Inst, len: usize) -> u8 {
        let data = &self.ir.dfg.insts[inst];
        let from_bit = |bit: u32| !((1u16 << bit.div_ceil(8).min(8)) - 1) as u8;
        let all = ((1u16 << len) - 1) as u8;
        let zeros = match data.op {
            Opcode::Zext => from_bit(self.arg_type(inst, 0).scalar_bits()),
            Opcode::And => match self.const_bits(self.arg(inst, 1)) {
                Some(mask) => (0..len).fold(0, |z, i| z | u8::from(mask >> (8 * i) & 0xff == 0) << i),
                None => 0,
            },
            Opcode::Umin => match self.const_bits(self.arg(inst, 1)) {
                Some(most) => from_bit(128 - (most as u64 as u128).leading_zeros()),
                None => 0,
            },
            Opcode::Lshr => match self.const_i64(self.arg(inst, 1)) {
                Some(n) if (0..8 * len as i64).contains(&n) => from_bit((8 * len as i64 - n) as u32),
                _ => 0,
            },
            _ => 0,
        };
        zeros & all
    }

    /// How a result is arranged from words and what that costs; `None` when it is made of itself.
    fn arrangement(&self, bytes: &Bytes, result: Value, plans: &Plans) -> Option<(SmallVec<[WordPlan; 2]>, u32)> {
        if bytes.len() < 4 || bytes.is_made_of(result.as_u32()) || !self.is_of_words(bytes) {
            return None;
        }
        let words = bytes.plans(|word| self.known_zeros(word));
        let mut cost = words.iter().map(|w| w.instructions() * INSTRUCTION).fold(0, u32::saturating_add);
        let mut paid: SmallVec<[u32; 8]> = SmallVec::new();
        for word in words.iter().filter(|w| w.instructions() > 0).flat_map(WordPlan::words) {
            // The selector is the one constant that `prmt` takes in the machine.
            if matches!(word, Word::Constant(bits) if bits != 0) {
                cost = cost.saturating_add(INSTRUCTION);
            }
        }
        for word in words.iter().flat_map(WordPlan::words) {
            let Word::Of(number, _) = word else { continue };
            let value = Value::from_u32(number);
            if !paid.contains(&number) {
                paid.push(number);
                cost = cost.saturating_add(plans.node(value).map_or(0, |n| n.share));
            }
        }
        Some((words, cost))
    }
}

impl Plan {
    /// What it reads: for the inner table, then for the outer one.
    fn sources(&self) -> impl Iterator<Item = Source> + '_ {
        let (first, second): (&[Source], &[Source]) = match self {
            Plan::One(_, sources) => (sources, &[]),
            Plan::Two(_, inner, _, beside) => (inner, beside),
            Plan::Bytes(_) | Plan::Dot(_) => (&[], &[]),
        };
        first.iter().chain(second).copied()
    }
}

/// The plan of a cut of an operation on `own`; `None` where the operation's own instruction is as good.
fn tables(plans: &Plans, cut: &Cut, own: [Source; 2]) -> Option<Plan> {
    let source = |index: u8| plans.source(cut.leaves().get(usize::from(index))?);
    match cut.form {
        // What is a constant or another value, the clean-ups have seen; what they have not is left as it stands.
        Form::Free | Form::Many => None,
        Form::One => {
            let sources: SmallVec<[Source; 3]> = (0..cut.leaves().len() as u8).filter_map(source).collect();
            let is_own = |s: &Source| match s {
                Source::Value(_) => own.contains(s),
                Source::Constant(bits) => own.contains(s) || own.contains(&Source::Constant(!bits)),
            };
            if sources.len() < 3 && sources.iter().all(is_own) {
                return None;
            }
            let used = sources.len();
            Some(Plan::One(for_operands(cut.table as u8, used), sources))
        }
        Form::Two(split) => {
            let [x, y, z] = split.inner_inputs.map(source);
            let [p, q] = split.outer_inputs;
            let mut beside: SmallVec<[Source; 2]> = SmallVec::new();
            beside.extend(source(p));
            if q != p {
                beside.extend(source(q));
            }
            let used = 1 + beside.len();
            Some(Plan::Two(for_operands(split.inner, 3), [x?, y?, z?], for_operands(split.outer, used), beside))
        }
    }
}

/// The table of PTX for operands in the order of the inputs of a table of ours.
fn for_operands(table: u8, used: usize) -> u8 {
    let mut out = 0u8;
    for index in 0..8u8 {
        let at = (0..used).fold(0, |at, k| at | (OPERANDS[k] >> index & 1) << k);
        out |= (table >> at & 1) << index;
    }
    out
}

/// Cost of the cheapest way found for a value; for tests.
#[cfg(test)]
fn instructions(found: &Cuts) -> Option<u32> {
    found.best().map(|cut| cut.cost.div_ceil(cuts::INSTRUCTION))
}
