//! Bit fields put together from words are each moved to their place at once.
//!
//! A tree of `or`, masks and shifts by constants is a list of fields: bits of a word, shifted once and masked once. As such a list it is
//! computed where that takes fewer instructions than the tree as it was written, which has masks that several shifts share, or moves
//! a field twice: `x & 31` widened to eight bits and put into a word, for example. Each mask and `or` is one `lop3`.
//! Whole bytes stay as they are; permutations move several of them at once.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Function, FunctionBuilder, Inst, Opcode, Type, Value};
use smallvec::SmallVec;

use crate::rules::Pattern;

/// Most fields of a tree.
const MAX_FIELDS: usize = 12;
/// Most ways from a root to inputs; an operation that is shared lies on several.
const MAX_WAYS: u32 = 64;

/// Rewrites a function whose aliases are resolved, and names in `formed` what it found.
pub(super) fn move_fields(func: &mut Function, formed: &mut Vec<(Inst, Pattern)>) {
    let mut roots: Vec<Inst> = Vec::new();
    let blocks: Vec<Block> = func.layout.blocks().collect();
    for block in blocks {
        for inst in func.layout.insts(block) {
            if func.dfg.insts[inst].op == Opcode::Or && func.dfg.insts[inst].ty == Type::I32 {
                roots.push(inst);
            }
        }
    }
    if roots.is_empty() {
        return;
    }
    let uses = super::cleanup::count_uses(func);
    let before = formed.len();
    let mut inside: SecondaryMap<Value, bool> = SecondaryMap::new();
    for inst in roots.into_iter().rev() {
        let root = func.dfg.result(inst, 0);
        if inside[root] {
            continue;
        }
        let tree = Tree::below(func, &uses, root);
        for node in &tree.nodes {
            inside[*node] = true;
        }
        let Some(fields) = tree.fields(func).filter(|fields| fields.len() > 1 && !fields.iter().any(Field::is_bytes))
        else {
            continue;
        };
        if cost(&fields) < tree.cost(func, &uses) {
            let joined = build(func, inst, &fields);
            func.dfg.alias(root, joined);
            func.layout.remove_inst(inst);
            formed.push((inst, Pattern::FieldsMoved));
        }
    }
    if formed.len() > before {
        super::cleanup::resolve_and_sweep(func);
    }
}

/// Some bits of a word, at their place in another.
#[derive(Clone, Copy)]
struct Field {
    word: Value,
    /// Places up, or down where it is negative.
    shift: i32,
    /// The bits in the result.
    mask: u32,
}

impl Field {
    /// Whether the mask takes away any of the bits that the shift leaves.
    fn is_masked(&self) -> bool {
        self.mask != moved(u32::MAX, self.shift)
    }

    /// Whether it is whole bytes, moved by bytes.
    fn is_bytes(&self) -> bool {
        self.shift % 8 == 0 && self.mask.to_le_bytes().iter().all(|byte| matches!(byte, 0 | 0xff))
    }
}

/// Bits moved up, or down where the number is negative.
fn moved(bits: u32, shift: i32) -> u32 {
    let by = shift.unsigned_abs();
    if shift >= 0 { bits.checked_shl(by) } else { bits.checked_shr(by) }.unwrap_or(0)
}

/// Instructions that compute a list of fields.
fn cost(fields: &[Field]) -> u32 {
    let shifts = fields.iter().filter(|field| field.shift != 0).count() as u32;
    let masked = fields.iter().filter(|field| field.is_masked()).count() as u32;
    let whole = fields.len() as u32 - masked;
    // A masked field and all before it are one instruction, and so are two that are not masked.
    shifts + masked + if masked == 0 { whole / 2 } else { whole.saturating_sub(1).div_ceil(2) }
}

/// What a value is in a tree.
enum Node {
    Or(Value, Value),
    And(Value, u32),
    /// Places up, or down where it is negative.
    Shift(Value, i32),
}

fn node(func: &Function, value: Value) -> Option<Node> {
    let inst = func.dfg.def_inst(value)?;
    let data = &func.dfg.insts[inst];
    let &[a, b] = func.dfg.args(inst) else { return None };
    if data.ty != Type::I32 {
        return None;
    }
    let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
    let constant = func.dfg.as_bits(b);
    let amount = constant.filter(|by| *by < 32).map(|by| by as i32);
    match data.op {
        Opcode::Or if constant.is_none() => Some(Node::Or(a, b)),
        Opcode::And => Some(Node::And(a, constant? as u32)),
        Opcode::Shl => Some(Node::Shift(a, amount?)),
        Opcode::Lshr => Some(Node::Shift(a, -amount?)),
        _ => None,
    }
}

/// The operations that are computed for a root alone, in its block: none moves into a loop.
struct Tree {
    root: Value,
    /// The root first, each behind all of its users.
    nodes: SmallVec<[Value; 16]>,
}

impl Tree {
    fn below(func: &Function, uses: &SecondaryMap<Value, u32>, root: Value) -> Tree {
        let block_of = |value: Value| func.dfg.def_inst(value).and_then(|inst| func.layout.inst_block(inst));
        let block = block_of(root);
        let mut nodes: SmallVec<[Value; 16]> = SmallVec::from_slice(&[root]);
        // Values that some of their users have been found of, and how many.
        let mut seen: SmallVec<[(Value, u32); 8]> = SmallVec::new();
        let mut next = 0;
        while let Some(value) = nodes.get(next).copied() {
            next += 1;
            let mut reach = |value: Value| {
                if node(func, value).is_none() || block_of(value) != block {
                    return;
                }
                let index = match seen.iter().position(|row| row.0 == value) {
                    Some(index) => index,
                    None => {
                        seen.push((value, 0));
                        seen.len() - 1
                    }
                };
                seen[index].1 += 1;
                if seen[index].1 == uses[value] {
                    nodes.push(value);
                    seen.swap_remove(index);
                }
            };
            match node(func, value) {
                Some(Node::Or(a, b)) => {
                    reach(a);
                    reach(b);
                }
                Some(Node::And(a, _) | Node::Shift(a, _)) => reach(a),
                None => {}
            }
            if nodes.len() > 4 * MAX_FIELDS {
                break;
            }
        }
        Tree { root, nodes }
    }

    /// The fields that it is made of; `None` for too many.
    fn fields(&self, func: &Function) -> Option<SmallVec<[Field; 8]>> {
        let mut fields: SmallVec<[Field; 8]> = SmallVec::new();
        let mut work: SmallVec<[Field; 8]> =
            SmallVec::from_slice(&[Field { word: self.root, shift: 0, mask: u32::MAX }]);
        let mut ways = 0;
        while let Some(field) = work.pop() {
            ways += 1;
            if ways > MAX_WAYS {
                return None;
            }
            if field.mask == 0 {
                continue;
            }
            let inner = if self.nodes.contains(&field.word) { node(func, field.word) } else { None };
            match inner {
                Some(Node::Or(a, b)) => work.extend([Field { word: b, ..field }, Field { word: a, ..field }]),
                Some(Node::And(word, kept)) => {
                    work.push(Field { word, mask: field.mask & moved(kept, field.shift), ..field });
                }
                // What the inner shift leaves, at its place after the outer one.
                Some(Node::Shift(word, by)) => {
                    let mask = field.mask & moved(moved(u32::MAX, by), field.shift);
                    work.push(Field { word, shift: field.shift + by, mask });
                }
                None => match fields.iter().position(|f| f.word == field.word && f.shift == field.shift) {
                    Some(index) => fields[index].mask |= field.mask,
                    None if fields.len() == MAX_FIELDS => return None,
                    None => fields.push(field),
                },
            }
        }
        Some(fields)
    }

    /// Instructions of the tree as it is.
    fn cost(&self, func: &Function, uses: &SecondaryMap<Value, u32>) -> u32 {
        let mut cost = 0;
        for value in &self.nodes {
            match node(func, *value) {
                Some(Node::Shift(_, by)) => cost += u32::from(by != 0),
                // Logic that has one user is counted with that.
                Some(_) if *value != self.root && uses[*value] == 1 && self.is_in_logic(func, *value) => {}
                Some(_) => cost += self.logic_cost(func, uses, *value),
                None => {}
            }
        }
        cost
    }

    /// Whether one of the operations that use a value is logic.
    fn is_in_logic(&self, func: &Function, value: Value) -> bool {
        self.nodes.iter().any(|user| match node(func, *user) {
            Some(Node::Or(a, b)) => a == value || b == value,
            Some(Node::And(a, _)) => a == value,
            _ => false,
        })
    }

    /// Instructions of a tree of logic with its root.
    fn logic_cost(&self, func: &Function, uses: &SecondaryMap<Value, u32>, root: Value) -> u32 {
        let mut inputs: SmallVec<[Value; 8]> = SmallVec::new();
        let mut constants = 0;
        let mut work: SmallVec<[Value; 8]> = SmallVec::from_slice(&[root]);
        while let Some(value) = work.pop() {
            let inner = value == root || uses[value] == 1 && self.nodes.contains(&value);
            match node(func, value).filter(|_| inner) {
                Some(Node::Or(a, b)) => work.extend([a, b]),
                Some(Node::And(a, _)) => {
                    constants += 1;
                    work.push(a);
                }
                _ => inputs.push(value),
            }
        }
        let shifted = |value: &Value| uses[*value] == 1 && matches!(node(func, *value), Some(Node::Shift(_, 1..)));
        // A sum takes a number that is shifted up.
        let sum = constants == 0 && inputs.len() == 2 && inputs.iter().any(shifted);
        (inputs.len() as u32 + constants) / 2 - u32::from(sum)
    }
}

/// Computes fields before an instruction.
fn build(func: &mut Function, inst: Inst, fields: &[Field]) -> Value {
    let loc = func.dfg.locs[inst];
    let mut builder = FunctionBuilder::before(func, inst);
    builder.set_loc(loc);
    let mut joined: Option<Value> = None;
    let (masked, whole): (SmallVec<[&Field; 8]>, SmallVec<[&Field; 8]>) =
        fields.iter().partition(|field| field.is_masked());
    for field in whole.into_iter().chain(masked) {
        let mut value = field.word;
        if field.shift != 0 {
            let op = if field.shift > 0 { Opcode::Shl } else { Opcode::Lshr };
            value = builder.binary_imm(op, value, field.shift.unsigned_abs().into());
        }
        if field.is_masked() {
            let kept = builder.bits(Type::I32, field.mask.into());
            value = builder.binary(Opcode::And, value, kept);
        }
        joined = Some(match joined {
            Some(before) => builder.binary(Opcode::Or, before, value),
            None => value,
        });
    }
    joined.unwrap_or_else(|| builder.bits(Type::I32, 0))
}
