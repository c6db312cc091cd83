//! Computes in 32 bits what is computed in fewer and then extended to 32.
//!
//! The low bits of sums, differences, products, logic and shifts to the left depend on the low bits of the operands alone. A
//! tree of them over truncated words and constants gives the same low bits in whole words; the extension is
//! made of that word. Words are what the machine computes: ptxas spends up to two instructions on every operand of narrow
//! products to move its bits where they already are. So it is with counts of bits, which the machine has of words only.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Flags, Function, FunctionBuilder, Inst, Opcode, Scalar, Type, Value};
use rustc_hash::FxHashMap;

use crate::edit::{count_uses, resolve_all_uses};
use crate::pass::Context;

/// Instructions of one tree.
const MOST_INSTRUCTIONS: usize = 32;

/// The pass.
pub fn widen_arithmetic(func: &mut Function, _ctx: &Context<'_>) -> bool {
    let mut roots = Vec::new();
    let uses = count_uses(func);
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            if matches!(func.dfg.insts[inst].op, Opcode::Zext | Opcode::Sext) {
                roots.push(inst);
            }
        }
    }
    let mut changed = false;
    for root in roots {
        if let Some(value) = widened(func, &uses, root) {
            let result = func.dfg.result(root, 0);
            func.dfg.alias(result, value);
            func.layout.remove_inst(root);
            changed = true;
        }
    }
    if changed {
        resolve_all_uses(func);
    }
    changed
}

/// The extended value, computed in 32 bits before the extension.
fn widened(func: &mut Function, uses: &SecondaryMap<Value, u32>, root: Inst) -> Option<Value> {
    let op = func.dfg.insts[root].op;
    if func.dfg.ty(func.dfg.result(root, 0)) != Type::I32 {
        return None;
    }
    let top = func.dfg.resolve(*func.dfg.args(root).first()?);
    let ty = func.dfg.ty(top);
    let width = narrow_width(ty)?;
    let tree = tree(func, uses, root, top, width)?;
    let is_count = matches!(tree.last(), Some(Node::Count(..)));
    let loc = func.dfg.locs[root];
    let mut builder = FunctionBuilder::before(func, root);
    builder.set_loc(loc);
    let mut wide: FxHashMap<Value, Value> = FxHashMap::default();
    for node in tree {
        let value = match node {
            Node::Constant(narrow, bits) => (narrow, builder.bits(Type::I32, bits)),
            Node::Word(narrow, word) => (narrow, word),
            Node::Extended(narrow, op, inner) => (narrow, builder.convert(op, inner, Type::I32)),
            // Overflow of the narrow operation was another one: its promises are not kept.
            Node::Count(narrow, op, flags, operand) => (narrow, count(&mut builder, op, flags, operand, width)),
            Node::Binary(narrow, op, [a, b]) => (narrow, builder.binary(op, *wide.get(&a)?, *wide.get(&b)?)),
        };
        wide.insert(value.0, value.1);
    }
    let value = *wide.get(&top)?;
    if is_count && op == Opcode::Zext {
        // At most `width`, which has fewer bits.
        return Some(value);
    }
    let cut = builder.convert(Opcode::Trunc, value, ty);
    Some(builder.convert(op, cut, Type::I32))
}

/// A part of a tree: the narrow value, and how to compute a word with the same low bits.
enum Node {
    Constant(Value, u128),
    /// The truncation of that word.
    Word(Value, Value),
    /// An extension of something narrower.
    Extended(Value, Opcode, Value),
    /// A count of bits.
    Count(Value, Opcode, Flags, Value),
    Binary(Value, Opcode, [Value; 2]),
}

/// A count of the bits of `width` as one of a word.
fn count(builder: &mut FunctionBuilder<'_>, op: Opcode, flags: Flags, operand: Value, width: u32) -> Value {
    let word = builder.convert(Opcode::Zext, operand, Type::I32);
    match op {
        Opcode::Ctlz => {
            let counted = builder.unary_flags(op, flags, word);
            let above = builder.bits(Type::I32, u128::from(32 - width));
            builder.binary(Opcode::Sub, counted, above)
        }
        Opcode::Cttz if !flags.contains(Flags::NONZERO) => {
            // Of no bits at all, `width` are zero.
            let end = builder.bits(Type::I32, 1 << width);
            let ended = builder.binary(Opcode::Or, word, end);
            builder.unary_flags(op, Flags::NONZERO, ended)
        }
        _ => builder.unary_flags(op, flags, word),
    }
}

/// The tree below a value, operands first. `None` if a part of it is no such operation, is wanted elsewhere too or computed
/// in another block than the root, or if there is no operation at all.
fn tree(func: &Function, uses: &SecondaryMap<Value, u32>, root: Inst, top: Value, width: u32) -> Option<Vec<Node>> {
    let block = func.layout.inst_block(root);
    let mut nodes = Vec::new();
    let mut stack = vec![top];
    let mut operations = 0;
    while let Some(value) = stack.pop() {
        if nodes.len() == MOST_INSTRUCTIONS {
            return None;
        }
        if let Some(bits) = func.dfg.as_bits(value) {
            nodes.push(Node::Constant(value, bits));
            continue;
        }
        let inst = func.dfg.def_inst(value)?;
        let op = func.dfg.insts[inst].op;
        let arg = |index: usize| func.dfg.args(inst).get(index).map(|v| func.dfg.resolve(*v));
        match op {
            Opcode::Trunc if func.dfg.ty(arg(0)?) == Type::I32 => nodes.push(Node::Word(value, arg(0)?)),
            Opcode::Zext | Opcode::Sext => nodes.push(Node::Extended(value, op, arg(0)?)),
            _ if uses[value] != 1 || func.layout.inst_block(inst) != block => return None,
            Opcode::Ctlz | Opcode::Cttz | Opcode::Ctpop => {
                nodes.push(Node::Count(value, op, func.dfg.insts[inst].flags, arg(0)?));
                operations += 1;
            }
            _ if !keeps_low_bits(func, op, arg(1), width) => return None,
            _ => {
                let operands = [arg(0)?, arg(1)?];
                nodes.push(Node::Binary(value, op, operands));
                stack.extend(operands);
                operations += 1;
            }
        }
    }
    nodes.reverse();
    (operations > 0).then_some(nodes)
}

/// Whether the low `width` bits of the result depend on those of the operands alone.
fn keeps_low_bits(func: &Function, op: Opcode, second: Option<Value>, width: u32) -> bool {
    match op {
        Opcode::Add | Opcode::Sub | Opcode::Mul | Opcode::And | Opcode::Or | Opcode::Xor => true,
        // An amount that is no constant might be poison in fewer bits and none in 32, or the other way round.
        Opcode::Shl => second.and_then(|by| func.dfg.as_bits(by)).is_some_and(|by| by < u128::from(width)),
        _ => false,
    }
}

/// The width of an integer of fewer than 32 bits and more than one.
fn narrow_width(ty: Type) -> Option<u32> {
    match ty.kind()? {
        Scalar::Int(width) if !ty.is_vector() && (2..32).contains(&width) => Some(width),
        _ => None,
    }
}
