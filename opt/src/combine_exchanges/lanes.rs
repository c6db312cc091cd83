//! Which readers of a value are one lane of a warp alone.
//!
//! A reader is lane L's when its block is only reached where a branch has found the lane's number to be L, when it chooses
//! the value by such a test, or when it is a shuffle that hands lane L's value to all lanes. The lane's number is `laneid`, or in blocks of
//! threads that are required to have one dimension `tid.x` modulo 32; `tid.x` itself says enough where it is compared for equality.

use ptxc_ir::{Block, Cfg, DominatorTree, Extra, FuncKind, Function, Inst, IntCC, Opcode, Type, Value};
use smallvec::SmallVec;

use super::{ALL_LANES, Users, operands};

/// Conditions that have to hold together, looked through one in another.
const MAX_DEPTH: u32 = 4;
/// Readers that are looked at, and blocks that one lane alone reaches.
const MAX_READERS: usize = 16;

/// Where single lanes are, found when first asked for. Nothing that the pass does changes blocks or conditions.
#[derive(Default)]
pub(super) struct Readers {
    found: Option<Found>,
}

struct Found {
    cfg: Cfg,
    tree: DominatorTree,
    /// Blocks that are entered from a test of the lane alone, with the lane.
    entered: Vec<(Block, u64)>,
}

impl Readers {
    /// Whether a value is read in one lane only; the shuffles that hand it to all others.
    pub fn only_in(&mut self, func: &Function, users: &Users, value: Value, lane: u64) -> Option<SmallVec<[Inst; 2]>> {
        if users[value].is_empty() || users[value].len() > MAX_READERS {
            return None;
        }
        let found = self.found.get_or_insert_with(|| Found::new(func));
        let mut broadcasts = SmallVec::new();
        for user in &users[value] {
            if is_broadcast(func, users, *user, value, lane) {
                broadcasts.push(*user);
            } else if !chooses(func, *user, value, lane) && !found.is_in(func, *user, lane) {
                return None;
            }
        }
        Some(broadcasts)
    }
}

impl Found {
    fn new(func: &Function) -> Found {
        let cfg = Cfg::new(func);
        let tree = DominatorTree::new(&cfg);
        let mut entered = Vec::new();
        for block in cfg.rpo() {
            let Some(last) = func.layout.last_inst(*block) else { continue };
            let Extra::Branch { then, other, .. } = func.dfg.insts[last].extra else { continue };
            let Some(condition) = func.dfg.args(last).first().map(|value| func.dfg.resolve(*value)) else { continue };
            for (way, holds) in [(then.block, true), (other.block, false)] {
                if then.block != other.block
                    && cfg.preds(way).len() == 1
                    && entered.len() < MAX_READERS
                    && let Some(lane) = lane_where(func, condition, holds, 0)
                {
                    entered.push((way, lane));
                }
            }
        }
        Found { cfg, tree, entered }
    }

    fn is_in(&self, func: &Function, user: Inst, lane: u64) -> bool {
        let Some(block) = func.layout.inst_block(user) else { return false };
        self.entered.iter().any(|(head, of)| *of == lane && self.tree.dominates(&self.cfg, *head, block))
    }
}

/// A shuffle by all lanes whose only result is the value of one.
fn is_broadcast(func: &Function, users: &Users, user: Inst, value: Value, lane: u64) -> bool {
    if func.dfg.insts[user].op != Opcode::ShflIdx {
        return false;
    }
    let args = operands(func, user);
    let &[sent, from, clamp, mask] = args.as_slice() else { return false };
    let unused = func.dfg.results(user).skip(1).all(|result| users[result].is_empty());
    let all = func.dfg.as_bits(clamp) == Some(31) && func.dfg.as_bits(mask) == Some(ALL_LANES);
    sent == value && func.dfg.as_bits(from) == Some(u128::from(lane)) && all && unused
}

/// A choice that takes the value in one lane only.
fn chooses(func: &Function, user: Inst, value: Value, lane: u64) -> bool {
    if func.dfg.insts[user].op != Opcode::Select {
        return false;
    }
    let args = operands(func, user);
    let &[condition, a, b] = args.as_slice() else { return false };
    let holds = match (a == value, b == value) {
        (true, false) => true,
        (false, true) => false,
        _ => return false,
    };
    func.dfg.ty(condition) == Type::I1 && lane_where(func, condition, holds, 0) == Some(lane)
}

/// The lane that a thread is where a condition is `holds`.
fn lane_where(func: &Function, condition: Value, holds: bool, depth: u32) -> Option<u64> {
    let inst = func.dfg.def_inst(condition)?;
    let args = operands(func, inst);
    let inner = |value: Value, holds: bool| {
        if depth < MAX_DEPTH { lane_where(func, value, holds, depth + 1) } else { None }
    };
    let known = |value: Value| func.dfg.as_bits(value);
    match (func.dfg.insts[inst].op, args.as_slice()) {
        (Opcode::Icmp, &[a, b]) => {
            let Extra::IntCC(cc) = func.dfg.insts[inst].extra else { return None };
            let cc = if holds { cc } else { cc.inverse() };
            let (bound, number) = (known(b)?, lane_number(func, a)?);
            let at = match cc {
                IntCC::Eq => bound,
                IntCC::Ult | IntCC::Slt if bound == 1 => 0,
                IntCC::Ule | IntCC::Sle if bound == 0 => 0,
                IntCC::Ugt | IntCC::Sgt if bound == 30 && number == Number::Lane => 31,
                IntCC::Uge | IntCC::Sge if bound == 31 && number == Number::Lane => 31,
                _ => return None,
            };
            u64::try_from(at).ok().filter(|at| *at < 32)
        }
        (Opcode::And, &[a, b]) if holds => inner(a, true).or_else(|| inner(b, true)),
        (Opcode::Or, &[a, b]) if !holds => inner(a, false).or_else(|| inner(b, false)),
        (Opcode::Xor, &[a, b]) if known(b) == Some(1) => inner(a, !holds),
        (Opcode::Select, &[a, b, c]) if holds && known(c) == Some(0) => inner(a, true).or_else(|| inner(b, true)),
        (Opcode::Select, &[a, b, c]) if !holds && known(b) == Some(1) => inner(a, false).or_else(|| inner(c, false)),
        _ => None,
    }
}

/// What a value says of the lane.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Number {
    /// It is its number.
    Lane,
    /// The thread's, of which the low five bits are the lane's.
    Thread,
}

fn lane_number(func: &Function, value: Value) -> Option<Number> {
    let inst = func.dfg.def_inst(value)?;
    let args = operands(func, inst);
    let flat = func.kind == FuncKind::Kernel && matches!(func.attrs.reqntid, Some([_, 1, 1]));
    match (func.dfg.insts[inst].op, func.dfg.insts[inst].extra, args.as_slice()) {
        (Opcode::Sreg, Extra::Sreg(register), _) => match register.name() {
            "%laneid" => Some(Number::Lane),
            "%tid.x" if flat => Some(Number::Thread),
            _ => None,
        },
        (Opcode::And, _, &[a, b]) if func.dfg.as_bits(b) == Some(31) => lane_number(func, a),
        (Opcode::Urem, _, &[a, b]) if func.dfg.as_bits(b) == Some(32) => lane_number(func, a),
        _ => return None,
    }
    .map(|number| if func.dfg.insts[inst].op == Opcode::Sreg { number } else { Number::Lane })
}
