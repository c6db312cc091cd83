//! Trees of logic as one `lop3` (PTX ISA 9.7.8, lop3).
//!
//! A tree of `and or xor` on 32-bit registers with at most three different leaves is one instruction whatever its size:
//! the truth table over the leaves says it all. Only operations that nothing else uses are taken into the tree.

use ptxc_ir::{Inst, Opcode, Value};
use ptxc_mir::RegClass;
use smallvec::SmallVec;

use super::Lower;
use crate::regs;

/// Truth tables of the three inputs (PTX ISA: immLut).
const INPUTS: [u8; 3] = [0xf0, 0xcc, 0xaa];
/// Most operations taken into one tree.
const MAX_OPERATIONS: usize = 12;

/// Inputs of `lop3`.
const MAX_LEAVES: usize = 3;

/// A tree whose nodes have higher numbers than their parents.
type Nodes = SmallVec<[Node; 2 * MAX_OPERATIONS + 1]>;

/// An operation on two other nodes, or a leaf.
#[derive(Clone, Copy)]
enum Node {
    Leaf(Value),
    Op(Opcode, usize, usize),
}

/// Table and leaves of the tree with root `inst`, when it has at least two operations and two or three leaves.
pub(super) fn tree(lower: &Lower<'_>, inst: Inst) -> Option<(u8, Value, Value, Value)> {
    let data = &lower.ir.dfg.insts[inst];
    if !is_logic(data.op) {
        return None;
    }
    let layout = regs::layout(data.ty, lower.env.target)?;
    if layout.count != 1 || layout.class != RegClass::B32 {
        return None;
    }
    // A whole tree may have few leaves though its parts seem to have many, as a majority has; else take what fits.
    let nodes = expand(lower, inst, usize::MAX).or_else(|| expand(lower, inst, MAX_LEAVES))?;
    let leaves = leaves(lower, &nodes);
    let (a, b) = (*leaves.first()?, *leaves.get(1)?);
    Some((evaluate(lower, &nodes, &leaves), a, b, leaves.get(2).copied().unwrap_or(b)))
}

/// The tree of single-use logic under `root`, no leaf being expanded when that makes more than `limit` of them. `None`
/// when it has one operation or more leaves than `lop3` has inputs.
fn expand(lower: &Lower<'_>, root: Inst, limit: usize) -> Option<Nodes> {
    let mut nodes = Nodes::new();
    nodes.push(Node::Op(lower.ir.dfg.insts[root].op, 1, 2));
    nodes.push(Node::Leaf(lower.arg(root, 0)));
    nodes.push(Node::Leaf(lower.arg(root, 1)));
    let mut operations = 1;
    let mut at = 1;
    while at < nodes.len() && operations < MAX_OPERATIONS {
        if let Node::Leaf(value) = nodes[at]
            && let Some(inner) = lower.single_use(value)
            && is_logic(lower.ir.dfg.insts[inner].op)
        {
            let first = nodes.len();
            let saved = std::mem::replace(&mut nodes[at], Node::Op(lower.ir.dfg.insts[inner].op, first, first + 1));
            nodes.push(Node::Leaf(lower.arg(inner, 0)));
            nodes.push(Node::Leaf(lower.arg(inner, 1)));
            if limit != usize::MAX && leaves(lower, &nodes).len() > limit {
                nodes.truncate(first);
                nodes[at] = saved;
            } else {
                operations += 1;
            }
        }
        at += 1;
    }
    (operations > 1 && leaves(lower, &nodes).len() <= MAX_LEAVES).then_some(nodes)
}

fn is_logic(op: Opcode) -> bool {
    matches!(op, Opcode::And | Opcode::Or | Opcode::Xor)
}

/// A constant of all ones or zeros is part of the table, not a leaf.
fn constant_table(lower: &Lower<'_>, value: Value) -> Option<u8> {
    match lower.word_constant(value)? {
        0 => Some(0),
        -1 => Some(0xff),
        _ => None,
    }
}

fn leaves(lower: &Lower<'_>, nodes: &[Node]) -> SmallVec<[Value; 8]> {
    let mut out: SmallVec<[Value; 8]> = SmallVec::new();
    for node in nodes {
        if let Node::Leaf(value) = node
            && !out.contains(value)
            && constant_table(lower, *value).is_none()
        {
            out.push(*value);
        }
    }
    out
}

fn evaluate(lower: &Lower<'_>, nodes: &[Node], leaves: &[Value]) -> u8 {
    let mut tables = [0u8; 2 * MAX_OPERATIONS + 1];
    // Operands of a node always have higher numbers.
    for index in (0..nodes.len()).rev() {
        tables[index] = match nodes[index] {
            Node::Leaf(value) => match constant_table(lower, value) {
                Some(table) => table,
                None => leaves.iter().position(|l| *l == value).map_or(0, |i| INPUTS[i.min(2)]),
            },
            Node::Op(op, a, b) => match op {
                Opcode::And => tables[a] & tables[b],
                Opcode::Or => tables[a] | tables[b],
                _ => tables[a] ^ tables[b],
            },
        };
    }
    tables[0]
}
