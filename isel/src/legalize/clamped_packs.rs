//! Clamped words put together: `cvt.pack.sat` (PTX ISA 9.7.9.23) saturates two words and puts them side by side.
//!
//! The forms, on legal IR, of which operands may be swapped where that is the same and every inner value has one use:
//!
//! ```text
//! or (clamp a), (shl (clamp b), 8), …                 bytes 0 and 1, 0 to 2 or 0 to 3, clamped to 0 … 255
//! or (and (clamp a), 255), (shl (and …), 8), …        the same clamped to -128 … 127; the last byte needs no mask
//! or (clamp a), (shl (clamp b), 16)                   halves, clamped to 0 … 65535, or -32768 … 32767 with a mask
//! vector <2 x i16> (trunc (clamp a)), (trunc (clamp b))
//! ```
//!
//! where `clamp x` is a signed minimum of a maximum or the other way around, or `umin (fptoui_sat x), 255`.

use cranelift_entity::{EntitySet, SecondaryMap};
use ptxc_ir::{Block, Flags, Function, FunctionBuilder, Inst, Opcode, TargetOp, TargetOperand, Type, Value};
use ptxc_targets::{Tok, tok};
use smallvec::SmallVec;

use crate::rules::Pattern;

/// A clamped word.
#[derive(Clone, Copy)]
struct Clamped {
    /// What is clamped, as a signed number.
    word: Word,
    /// Bits of the range.
    bits: u32,
    signed: bool,
}

/// The number that is clamped.
#[derive(Clone, Copy)]
enum Word {
    /// A word.
    Value(Value),
    /// The float that a conversion to an unsigned number took, and its flags.
    Float(Value, Flags),
}

/// What a word is put together from, the lowest first.
type Parts = SmallVec<[Part; 4]>;

/// One part of a word that is put together: what, and from which bit on.
#[derive(Clone, Copy)]
struct Part {
    clamped: Clamped,
    at: u32,
}

/// Rewrites what a function whose aliases are resolved puts together, and names it in `formed`.
pub(super) fn form_clamped_packs(func: &mut Function, formed: &mut Vec<(Inst, Pattern)>) {
    let blocks: Vec<Block> = func.layout.blocks().collect();
    let uses = super::cleanup::count_uses(func);
    let mut roots: Vec<Inst> = Vec::new();
    for block in blocks {
        for inst in func.layout.insts(block) {
            let data = &func.dfg.insts[inst];
            let word = data.op == Opcode::Or && data.ty == Type::I32;
            if word || data.op == Opcode::Vector && data.ty == Type::I16.with_lanes(2) {
                roots.push(inst);
            }
        }
    }
    let mut changed = false;
    let mut taken: EntitySet<Inst> = EntitySet::new();
    // From the last on, so that a tree is seen before its parts.
    for root in roots.into_iter().rev() {
        let finder = Finder { func, uses: &uses };
        let Some((parts, inner)) = finder.parts(root).filter(|_| !taken.contains(root)) else { continue };
        for inst in inner {
            taken.insert(inst);
        }
        let word = emit(func, root, &parts);
        let result = func.dfg.result(root, 0);
        func.dfg.alias(result, word);
        func.layout.remove_inst(root);
        formed.push((root, Pattern::PackClamped));
        changed = true;
    }
    if changed {
        super::cleanup::resolve_and_sweep(func);
    }
}

struct Finder<'f> {
    func: &'f Function,
    uses: &'f SecondaryMap<Value, u32>,
}

impl Finder<'_> {
    /// The operation behind a value with one use, and its operands.
    fn only(&self, value: Value, op: Opcode) -> Option<&[Value]> {
        let inst = self.func.dfg.def_inst(value)?;
        let made = self.uses[value] == 1 && self.func.dfg.insts[inst].op == op;
        (made && self.func.layout.inst_block(inst).is_some()).then(|| self.func.dfg.args(inst))
    }

    fn constant(&self, value: Value) -> Option<i64> {
        i64::try_from(self.func.dfg.as_signed(value)?).ok()
    }

    /// What an instruction puts together, lowest part first, and the instructions that do so before it.
    fn parts(&self, root: Inst) -> Option<(Parts, SmallVec<[Inst; 4]>)> {
        let mut parts: SmallVec<[Part; 4]> = SmallVec::new();
        let mut inner: SmallVec<[Inst; 4]> = SmallVec::new();
        if self.func.dfg.insts[root].op == Opcode::Vector {
            for (lane, value) in self.func.dfg.args(root).iter().enumerate() {
                let &[word] = self.only(*value, Opcode::Trunc)? else { return None };
                let clamped = self.clamped(word).filter(|clamped| clamped.bits == 16)?;
                parts.push(Part { clamped, at: 16 * lane as u32 });
            }
        } else {
            let mut stack: SmallVec<[Value; 8]> = self.func.dfg.args(root).iter().copied().collect();
            while let Some(value) = stack.pop() {
                if parts.len() + stack.len() > 4 {
                    return None;
                }
                match self.only(value, Opcode::Or) {
                    Some(args) => {
                        stack.extend_from_slice(args);
                        inner.extend(self.func.dfg.def_inst(value));
                    }
                    None => parts.push(self.part(value)?),
                }
            }
        }
        parts.sort_by_key(|part| part.at);
        let first = parts.first()?.clamped;
        let fits = |(index, part): (usize, &Part)| {
            let same = part.clamped.bits == first.bits && part.clamped.signed == first.signed;
            same && part.at == index as u32 * first.bits
        };
        (parts.len() >= 2 && parts.iter().enumerate().all(fits)).then_some((parts, inner))
    }

    /// A clamped number at its place in the word, nothing beside it.
    fn part(&self, value: Value) -> Option<Part> {
        let (value, at) = match self.only(value, Opcode::Shl) {
            Some(&[value, by]) => (value, u32::try_from(self.constant(by)?).ok()?),
            _ => (value, 0),
        };
        let masked = match self.only(value, Opcode::And) {
            Some(&[value, mask]) => Some((value, self.constant(mask)?)),
            _ => None,
        };
        let clamped = self.clamped(masked.map_or(value, |(value, _)| value))?;
        let exact = match masked {
            Some((_, mask)) => mask == (1 << clamped.bits) - 1,
            None => !clamped.signed || at + clamped.bits == 32,
        };
        exact.then_some(Part { clamped, at })
    }

    /// A number that is clamped to the range of a byte or a half.
    fn clamped(&self, value: Value) -> Option<Clamped> {
        if let Some(&[number, limit]) = self.only(value, Opcode::Umin) {
            let &[float] = self.only(number, Opcode::FptouiSat)? else { return None };
            if self.func.dfg.ty(number) != Type::I32 {
                return None;
            }
            let flags = self.func.dfg.insts[self.func.dfg.def_inst(number)?].flags;
            let bits = match self.constant(limit)? {
                0xff => 8,
                0xffff => 16,
                _ => return None,
            };
            return Some(Clamped { word: Word::Float(float, flags), bits, signed: false });
        }
        let (inner, low, high) = match (self.only(value, Opcode::Smin), self.only(value, Opcode::Smax)) {
            (Some(&[inner, high]), _) => {
                let &[word, low] = self.only(inner, Opcode::Smax)? else { return None };
                (word, low, high)
            }
            (_, Some(&[inner, low])) => {
                let &[word, high] = self.only(inner, Opcode::Smin)? else { return None };
                (word, low, high)
            }
            _ => return None,
        };
        let (bits, signed) = match (self.constant(low)?, self.constant(high)?) {
            (0, 0xff) => (8, false),
            (-0x80, 0x7f) => (8, true),
            (0, 0xffff) => (16, false),
            (-0x8000, 0x7fff) => (16, true),
            _ => return None,
        };
        (self.func.dfg.ty(inner) == Type::I32).then_some(Clamped { word: Word::Value(inner), bits, signed })
    }
}

/// Puts the instructions in the place of a root. The result, of the root's type.
fn emit(func: &mut Function, root: Inst, parts: &[Part]) -> Value {
    let wanted = func.dfg.ty(func.dfg.result(root, 0));
    let mut builder = FunctionBuilder::before(func, root);
    let zero = builder.bits(Type::I32, 0);
    let mut words: SmallVec<[Value; 4]> = SmallVec::new();
    for part in parts {
        words.push(match part.clamped.word {
            Word::Value(word) => word,
            // What is too large for a signed number is too large for the range.
            Word::Float(float, flags) => builder.convert_flags(Opcode::FptosiSat, flags, float, Type::I32),
        });
    }
    let Part { clamped, .. } = parts[0];
    let word = if clamped.bits == 16 {
        let ty = if clamped.signed { tok::S16 } else { tok::U16 };
        pack(&mut builder, &[tok::CVT, tok::PACK, tok::SAT, ty, tok::S32], &[words[1], words[0]])
    } else {
        let ty = if clamped.signed { tok::S8 } else { tok::U8 };
        let toks = [tok::CVT, tok::PACK, tok::SAT, ty, tok::S32, tok::B32];
        let upper = match words[2..] {
            [] => zero,
            [low] => pack(&mut builder, &toks, &[zero, low, zero]),
            [low, high, ..] => pack(&mut builder, &toks, &[high, low, zero]),
        };
        pack(&mut builder, &toks, &[words[1], words[0], upper])
    };
    if wanted == Type::I32 { word } else { builder.convert(Opcode::Bitcast, word, wanted) }
}

/// One instruction: the upper part first, then the lower, then what goes above them.
fn pack(builder: &mut FunctionBuilder<'_>, toks: &[Tok], args: &[Value]) -> Value {
    let sources = (0..args.len()).map(|index| TargetOperand::Arg(index as u16));
    let operands = std::iter::once(TargetOperand::Result(0)).chain(sources).collect();
    let op = TargetOp::Known { toks: SmallVec::from_slice(toks), guard: None, operands };
    let inst = builder.target(op, args, &[Type::I32]);
    builder.func.dfg.result(inst, 0)
}
