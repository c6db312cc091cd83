//! A word taken out of logic and shifts of 64 bits is computed from words.
//!
//! 64 bits are two registers, and a word that lies across them is a funnel shift of both. Where a shift by constants follows on logic,
//! or on another shift, the amounts are added and each input gives up its word at once: half of the logic goes, and the inner shifts.

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block, Flags, Function, FunctionBuilder, Inst, Opcode, Type, Value};
use smallvec::SmallVec;

use crate::rules::Pattern;

/// Operations that a tree is followed through, from its root.
const MAX_DEPTH: u32 = 6;
/// Most inputs of a tree; a node above has two.
const MAX_INPUTS: u32 = 12;

/// Rewrites a function whose aliases are resolved, and names in `formed` what it found.
pub(super) fn narrow(func: &mut Function, formed: &mut Vec<(Inst, Pattern)>) {
    let mut roots: Vec<(Inst, Value, u32)> = Vec::new();
    let mut products: Vec<Inst> = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            if is_product_of_words(func, inst) {
                products.push(inst);
            }
            roots.extend(root(func, inst).map(|(value, at)| (inst, value, at)));
        }
    }
    for inst in &products {
        narrow_product(func, *inst);
        formed.push((*inst, Pattern::NarrowProduct));
    }
    if roots.is_empty() {
        if !products.is_empty() {
            super::cleanup::resolve_and_sweep(func);
        }
        return;
    }
    let uses = super::cleanup::count_uses(func);
    let before = formed.len() - products.len();
    for (inst, value, at) in roots {
        let block = func.layout.inst_block(inst);
        let tree = Tree { func, uses: &uses, block };
        let whole = tree.whole(value, Halves::of_word(at), MAX_DEPTH).total() + u32::from(!at.is_multiple_of(32));
        let narrow = tree.narrow(value, at, MAX_DEPTH);
        if narrow.inputs > MAX_INPUTS || narrow.total() >= whole {
            continue;
        }
        let to = func.dfg.ty(func.dfg.result(inst, 0));
        let word = build(func, &uses, inst, value, at, MAX_DEPTH);
        let result =
            if to == Type::I32 { word } else { FunctionBuilder::before(func, inst).convert(Opcode::Trunc, word, to) };
        let old = func.dfg.result(inst, 0);
        func.dfg.alias(old, result);
        func.layout.remove_inst(inst);
        formed.push((inst, Pattern::NarrowWord));
    }
    if formed.len() > before {
        super::cleanup::resolve_and_sweep(func);
    }
}

/// Whether the upper half of a number of 64 bits is zero, as it is written.
fn fits_word(func: &Function, value: Value) -> bool {
    if let Some(bits) = func.dfg.as_bits(value) {
        return bits <= u128::from(u32::MAX);
    }
    let Some(inst) = func.dfg.def_inst(value) else { return false };
    let bits = func.dfg.args(inst).get(1).and_then(|b| func.dfg.as_bits(*b));
    match func.dfg.insts[inst].op {
        Opcode::And => bits.is_some_and(|kept| kept <= u128::from(u32::MAX)),
        Opcode::Lshr => bits.is_some_and(|by| (32..64).contains(&by)),
        _ => is_extended(func, value),
    }
}

fn is_extended(func: &Function, value: Value) -> bool {
    func.dfg.def_inst(value).is_some_and(|inst| func.dfg.insts[inst].op == Opcode::Zext)
}

/// Whether an operation is a product of 64 bits of numbers that fit words, and not written as one.
fn is_product_of_words(func: &Function, inst: Inst) -> bool {
    let (op, &[a, b]) = (func.dfg.insts[inst].op, func.dfg.args(inst)) else { return false };
    let plain = |value: Value| is_extended(func, value) || func.dfg.as_const(value).is_some();
    op == Opcode::Mul
        && func.dfg.ty(a) == Type::I64
        && fits_word(func, a)
        && fits_word(func, b)
        && !(plain(a) && plain(b))
        && func.dfg.as_bits(b).is_none_or(|by| !by.is_power_of_two())
}

/// Makes the factors extended words, of which `mul.wide` makes the product.
fn narrow_product(func: &mut Function, inst: Inst) {
    let args: SmallVec<[Value; 2]> = func.dfg.args(inst).iter().map(|value| func.dfg.resolve(*value)).collect();
    for (index, value) in args.into_iter().enumerate() {
        if is_extended(func, value) || func.dfg.as_const(value).is_some() {
            continue;
        }
        let mut builder = FunctionBuilder::before(func, inst);
        let word = builder.convert(Opcode::Trunc, value, Type::I32);
        let wide = builder.convert(Opcode::Zext, word, Type::I64);
        func.dfg.args_mut(inst)[index] = wide;
    }
    func.dfg.insts[inst].flags = Flags::EMPTY;
}

/// Logic of 64 bits that an instruction takes one word of, and the bit at which that begins.
fn root(func: &Function, inst: Inst) -> Option<(Value, u32)> {
    let data = &func.dfg.insts[inst];
    let &[whole] = func.dfg.args(inst) else { return None };
    let to = func.dfg.ty(func.dfg.first_result(inst)?);
    if data.op != Opcode::Trunc || func.dfg.ty(whole) != Type::I64 || !to.is_int() || to.bits() > 32 {
        return None;
    }
    let shift = func.dfg.def_inst(func.dfg.resolve(whole)).filter(|inst| func.dfg.insts[*inst].op == Opcode::Lshr)?;
    let &[from, by] = func.dfg.args(shift) else { return None };
    let by = func.dfg.as_bits(by).filter(|by| (1..64).contains(by))?;
    Some((func.dfg.resolve(from), by as u32))
}

/// Which of the two words are wanted.
#[derive(Clone, Copy)]
struct Halves {
    low: bool,
    high: bool,
}

impl Halves {
    /// Of a word that begins at a bit.
    fn of_word(at: u32) -> Halves {
        Halves { low: at < 32, high: at > 0 }
    }

    fn count(self) -> u32 {
        u32::from(self.low) + u32::from(self.high)
    }
}

/// Instructions of a tree.
#[derive(Clone, Copy)]
struct Cost {
    /// Inputs of the logic at the top, constants too: one instruction takes three.
    inputs: u32,
    /// Registers that this logic works on.
    words: u32,
    /// Instructions below.
    below: u32,
}

impl Cost {
    fn total(self) -> u32 {
        self.below + self.words * (self.inputs / 2)
    }
}

/// What a value is in a tree.
enum Node {
    /// Logic of two values.
    Logic(Opcode, Value, Value),
    /// A shift by a constant that is less than 64.
    Shift(Opcode, Value, u32),
    /// 32 bits with zeros above.
    Word(Value),
    /// A constant.
    Constant(u64),
    /// Anything else.
    Input,
}

struct Tree<'f> {
    func: &'f Function,
    uses: &'f SecondaryMap<Value, u32>,
    /// That of the root: what is computed elsewhere stays there, it may be before a loop.
    block: Option<Block>,
}

impl Tree<'_> {
    fn node(&self, value: Value, depth: u32) -> Node {
        let dfg = &self.func.dfg;
        if let Some(bits) = dfg.as_bits(value) {
            return Node::Constant(bits as u64);
        }
        let Some(inst) = dfg.def_inst(value) else { return Node::Input };
        let args: SmallVec<[Value; 3]> = dfg.args(inst).iter().map(|arg| dfg.resolve(*arg)).collect();
        let op = dfg.insts[inst].op;
        if let (Opcode::Zext, &[word]) = (op, &args[..])
            && dfg.ty(word) == Type::I32
        {
            return Node::Word(word);
        }
        if depth == 0 || self.uses[value] != 1 || self.func.layout.inst_block(inst) != self.block {
            return Node::Input;
        }
        match (op, &args[..]) {
            (Opcode::Or, &[a, b]) if self.is_upper(a) || self.is_upper(b) => Node::Input,
            (Opcode::And | Opcode::Or | Opcode::Xor, &[a, b]) => Node::Logic(op, a, b),
            (Opcode::Shl | Opcode::Lshr, &[a, by]) => match dfg.as_bits(by) {
                Some(by) if by < 64 => Node::Shift(op, a, by as u32),
                _ => Node::Input,
            },
            _ => Node::Input,
        }
    }

    /// Whether a value only has bits in the upper word: two words put together are a pair of registers, which costs nothing.
    fn is_upper(&self, value: Value) -> bool {
        let dfg = &self.func.dfg;
        let Some(inst) = dfg.def_inst(value).filter(|inst| dfg.insts[*inst].op == Opcode::Shl) else { return false };
        dfg.args(inst).get(1).and_then(|by| dfg.as_bits(*by)).is_some_and(|by| by >= 32)
    }

    /// What the tree costs in 64 bits.
    fn whole(&self, value: Value, halves: Halves, depth: u32) -> Cost {
        let words = halves.count();
        match self.node(value, depth) {
            Node::Logic(_, a, b) => {
                let (a, b) = (self.whole(a, halves, depth - 1), self.whole(b, halves, depth - 1));
                Cost { inputs: a.inputs + b.inputs, words, below: a.below + b.below }
            }
            Node::Shift(op, from, by) => {
                let up = op == Opcode::Shl;
                let (near, far) = if up { (halves.low, halves.high) } else { (halves.high, halves.low) };
                // By a word or more there is nothing left of the near half, and the far one is a shift of the near one.
                let (near, cost) = if by >= 32 { (far, u32::from(far && by > 32)) } else { (near || far, words) };
                let far = far && by < 32;
                let needed = if up { Halves { low: near, high: far } } else { Halves { low: far, high: near } };
                let below = self.whole(from, needed, depth - 1).total() + cost;
                Cost { inputs: 1, words, below }
            }
            Node::Word(_) | Node::Constant(_) | Node::Input => Cost { inputs: 1, words, below: 0 },
        }
    }

    /// What the word of the tree that begins at a bit costs, computed from words.
    fn narrow(&self, value: Value, at: u32, depth: u32) -> Cost {
        let word = |below| Cost { inputs: 1, words: 1, below };
        match self.node(value, depth) {
            Node::Logic(_, a, b) => {
                let (a, b) = (self.narrow(a, at, depth - 1), self.narrow(b, at, depth - 1));
                Cost { inputs: a.inputs + b.inputs, words: 1, below: a.below + b.below }
            }
            Node::Shift(op, from, by) => match moved(op, by, at) {
                Some(Moved::To(at)) => self.narrow(from, at, depth - 1),
                Some(Moved::Out) => word(0),
                None => word(self.whole(value, Halves::of_word(at), depth).total() + 1),
            },
            Node::Word(_) if at >= 32 => word(0),
            Node::Constant(_) => word(0),
            Node::Word(_) | Node::Input => word(u32::from(!at.is_multiple_of(32))),
        }
    }
}

/// Where a word of what is shifted lies.
enum Moved {
    /// It is the word that begins at this bit.
    To(u32),
    /// All of it is zeros that the shift moved in.
    Out,
}

/// Where the word at a bit of a shifted value comes from, where it is one word and zeros above it.
fn moved(op: Opcode, by: u32, at: u32) -> Option<Moved> {
    match op {
        Opcode::Lshr if at + by >= 64 => Some(Moved::Out),
        Opcode::Lshr => Some(Moved::To(at + by)),
        // Above bit 63 there are zeros, where what is shifted has bits.
        Opcode::Shl if by <= at && at <= 32 => Some(Moved::To(at - by)),
        _ => None,
    }
}

/// Computes the word that begins at a bit, before an instruction.
fn build(func: &mut Function, uses: &SecondaryMap<Value, u32>, inst: Inst, value: Value, at: u32, depth: u32) -> Value {
    let block = func.layout.inst_block(inst);
    match (Tree { func, uses, block }).node(value, depth) {
        Node::Logic(op, a, b) => {
            let a = build(func, uses, inst, a, at, depth - 1);
            let b = build(func, uses, inst, b, at, depth - 1);
            FunctionBuilder::before(func, inst).binary(op, a, b)
        }
        Node::Constant(bits) => func.dfg.bits(Type::I32, u128::from((bits >> at) as u32)),
        Node::Shift(op, from, by) => match moved(op, by, at) {
            Some(Moved::To(at)) => build(func, uses, inst, from, at, depth - 1),
            Some(Moved::Out) => func.dfg.bits(Type::I32, 0),
            None => word_at(func, inst, value, at),
        },
        Node::Word(_) if at >= 32 => func.dfg.bits(Type::I32, 0),
        Node::Word(word) if at == 0 => word,
        Node::Word(word) => {
            let mut builder = FunctionBuilder::before(func, inst);
            builder.binary_imm(Opcode::Lshr, word, at.into())
        }
        Node::Input => word_at(func, inst, value, at),
    }
}

/// 32 bits of a value of 64, from a bit on.
fn word_at(func: &mut Function, inst: Inst, value: Value, at: u32) -> Value {
    let mut builder = FunctionBuilder::before(func, inst);
    let moved = if at == 0 { value } else { builder.binary_imm(Opcode::Lshr, value, at.into()) };
    builder.convert(Opcode::Trunc, moved, Type::I32)
}
