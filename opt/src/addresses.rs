//! Address arithmetic: what a pointer is made of.

use ptxc_ir::{
    AggDef, ConstData, Extra, Flags, Function, FunctionBuilder, GlobalId, Inst, KnownBits, MemType, Module, Opcode,
    Scalar, Type, Value,
};
use smallvec::SmallVec;

/// Steps of pointer arithmetic, and of the arithmetic of one index, that are looked through.
const MAX_STEPS: usize = 24;
/// Most variable parts of an address.
const MAX_TERMS: usize = 8;

/// The bytes that a `gep` adds, when all its indices are constants and the sum is representable.
pub fn constant_step(func: &Function, module: &Module, gep: Inst) -> Option<i64> {
    let mut total = 0i64;
    for_each_step(func, module, gep, |step| {
        let bytes = match step {
            Step::Bytes(bytes) => bytes,
            Step::Scaled(index, stride) => stride.checked_mul(i64::try_from(func.dfg.as_signed(index)?).ok()?)?,
        };
        total = total.checked_add(bytes)?;
        Some(())
    })?;
    Some(total)
}

/// What one index of a `gep` adds.
enum Step {
    /// So many bytes, to a field.
    Bytes(i64),
    /// The index, which is signed, times so many bytes.
    Scaled(Value, i64),
}

/// Calls `f` with every step of a `gep`. `None` when it steps over what has no elements, when a size does not fit, or
/// when `f` gives up.
fn for_each_step(func: &Function, module: &Module, gep: Inst, mut f: impl FnMut(Step) -> Option<()>) -> Option<()> {
    let Extra::Gep(mut ty) = func.dfg.insts[gep].extra else { return None };
    for (position, index) in func.dfg.args(gep).iter().skip(1).enumerate() {
        let into = if position == 0 { Some(ty) } else { element(module, ty)? };
        match into {
            Some(elem) => {
                ty = elem;
                f(Step::Scaled(*index, i64::try_from(module.layout_of(elem).size).ok()?))?;
            }
            None => {
                let field = usize::try_from(func.dfg.as_signed(*index)?).ok()?;
                let (inner, offset) = field_of(module, ty, field)?;
                ty = inner;
                f(Step::Bytes(offset))?;
            }
        }
    }
    Some(())
}

/// The element type of an array or vector, `Some(None)` for a structure, `None` for what has no parts.
fn element(module: &Module, ty: MemType) -> Option<Option<MemType>> {
    match ty {
        MemType::Agg(id) => match &module.agg(id).def {
            AggDef::Array { elem, .. } => Some(Some(*elem)),
            AggDef::Struct { .. } => Some(None),
        },
        MemType::Value(ty) if ty.is_vector() && ty.scalar_bits() >= 8 => Some(Some(MemType::Value(ty.scalar()))),
        MemType::Value(_) => None,
    }
}

/// Type and offset of a field.
fn field_of(module: &Module, ty: MemType, field: usize) -> Option<(MemType, i64)> {
    let MemType::Agg(id) = ty else { return None };
    let agg = module.agg(id);
    let AggDef::Struct { fields, .. } = &agg.def else { return None };
    Some((*fields.get(field)?, i64::try_from(*agg.offsets.get(field)?).ok()?))
}

/// What an address starts from.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Root {
    /// A variable of the module.
    Global(GlobalId),
    /// A pointer of the function that nothing is known of, a parameter or a stack object.
    Value(Value),
}

/// How an index becomes 64 bits wide.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Extension {
    /// It is that wide, or copies of its sign fill the rest.
    Signed,
    /// Zeros fill the rest.
    Unsigned,
}

/// One variable part of an address: a value, extended, times a factor.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Term {
    /// An integer of up to 64 bits.
    pub value: Value,
    /// How it becomes 64 bits wide.
    pub extension: Extension,
    /// What it is multiplied by then.
    pub factor: i64,
}

/// A root plus variable parts: two addresses that agree in both are a constant number of bytes apart.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Base {
    /// Where it starts.
    pub root: Root,
    /// The variable parts, in order of their values.
    pub terms: SmallVec<[Term; 2]>,
}

/// An address as a base plus bytes, modulo 2^64.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linear {
    /// Root and variable parts.
    pub base: Base,
    /// Bytes added.
    pub offset: i64,
    /// Whether arithmetic on the way promises something: the address is poison where that does not hold, though root and parts are not.
    pub promises: bool,
}

impl Linear {
    /// Takes a pointer apart. Casts between generic and other addresses are looked through: the offset is the same.
    pub fn new(func: &Function, module: &Module, pointer: Value) -> Linear {
        Linear::down_to(func, module, pointer, &|_| false)
    }

    /// The same, except that values of a kind are taken as they are, apart from constants that they add.
    pub fn down_to(func: &Function, module: &Module, pointer: Value, whole: &dyn Fn(Value) -> bool) -> Linear {
        let mut at = func.dfg.resolve(pointer);
        let mut sum = Sum::new(whole);
        for _ in 0..MAX_STEPS {
            let Some(inst) = func.dfg.def_inst(at) else { break };
            if whole(at) && (func.dfg.insts[inst].op != Opcode::Gep || constant_step(func, module, inst).is_none()) {
                break;
            }
            let Some(base) = func.dfg.args(inst).first() else { break };
            let base = func.dfg.resolve(*base);
            match func.dfg.insts[inst].op {
                Opcode::Gep if func.dfg.ty(at).is_ptr() => {
                    let mut next = sum.clone();
                    let taken = for_each_step(func, module, inst, |step| match step {
                        Step::Bytes(bytes) => {
                            next.offset = next.offset.wrapping_add(bytes);
                            Some(())
                        }
                        Step::Scaled(index, stride) => next.add(func, index, Extension::Signed, stride),
                    });
                    if taken.is_none() {
                        break;
                    }
                    sum = next;
                }
                Opcode::Addrspacecast => {}
                _ => break,
            }
            at = base;
        }
        sum.terms.sort_unstable();
        let root = match func.dfg.as_const(at) {
            Some(ConstData::Global(global, offset)) => {
                sum.offset = sum.offset.wrapping_add(*offset);
                Root::Global(*global)
            }
            _ => Root::Value(at),
        };
        Linear { base: Base { root, terms: sum.terms }, offset: sum.offset, promises: sum.promises }
    }
}

/// An integer as a sum of variable parts and a constant, when it is one in 64 bits: what `Linear` is without a root.
pub fn linear_index(
    func: &Function,
    index: Value,
    extension: Extension,
    whole: &dyn Fn(Value) -> bool,
) -> Option<(SmallVec<[Term; 2]>, i64)> {
    let mut sum = Sum::new(whole);
    sum.add(func, index, extension, 1)?;
    Some((sum.terms, sum.offset))
}

impl Term {
    /// The bytes of this part, as 64 bits before they are multiplied.
    pub fn widened(&self, builder: &mut FunctionBuilder<'_>) -> Value {
        let wide = builder.ty(self.value).kind() == Some(Scalar::Int(64));
        match self.extension {
            _ if wide => self.value,
            Extension::Signed => builder.convert(Opcode::Sext, self.value, Type::I64),
            Extension::Unsigned => builder.convert(Opcode::Zext, self.value, Type::I64),
        }
    }
}

/// An address plus an index of 64 bits times a factor.
pub fn plus_scaled(builder: &mut FunctionBuilder<'_>, address: Value, index: Value, factor: i64) -> Value {
    let element = match factor {
        1 => Type::I8,
        2 => Type::I16,
        4 => Type::I32,
        8 => Type::I64,
        16 => Type::I128,
        factor => {
            let scaled = builder.binary_imm(Opcode::Mul, index, factor);
            return builder.gep(MemType::Value(Type::I8), address, &[scaled]);
        }
    };
    builder.gep(MemType::Value(element), address, &[index])
}

/// A root as a pointer of a type.
pub fn root_as(builder: &mut FunctionBuilder<'_>, module: &Module, root: Root, ty: Type) -> Value {
    let root = match root {
        Root::Global(global) => builder.global(global, 0, module.global_ptr(global)),
        Root::Value(value) => value,
    };
    if builder.ty(root) == ty { root } else { builder.convert(Opcode::Addrspacecast, root, ty) }
}

impl Base {
    /// log2 of what is known to divide the variable parts.
    pub fn terms_align_log2(&self, func: &Function, known: &KnownBits) -> u32 {
        let zeros = |term: &Term| {
            let of_value = known.of(func, term.value).trailing_zeros();
            of_value.saturating_add(term.factor.trailing_zeros())
        };
        self.terms.iter().map(zeros).min().unwrap_or(63).min(63)
    }
}

/// A linear sum under construction.
#[derive(Clone)]
struct Sum<'w> {
    terms: SmallVec<[Term; 2]>,
    offset: i64,
    promises: bool,
    /// Values that are taken as they are.
    whole: &'w dyn Fn(Value) -> bool,
}

impl<'w> Sum<'w> {
    fn new(whole: &'w dyn Fn(Value) -> bool) -> Sum<'w> {
        Sum { terms: SmallVec::new(), offset: 0, promises: false, whole }
    }

    /// Adds an index times a factor; `None` when the sum has too many parts.
    fn add(&mut self, func: &Function, index: Value, extension: Extension, factor: i64) -> Option<()> {
        let mut work: SmallVec<[(Value, Extension, i64); 4]> = SmallVec::new();
        work.push((index, extension, factor));
        let mut steps = 0;
        while let Some((value, extension, factor)) = work.pop() {
            let value = func.dfg.resolve(value);
            let width = match func.dfg.ty(value).kind()? {
                Scalar::Int(width @ 1..=64) if !func.dfg.ty(value).is_vector() => width,
                _ => return None,
            };
            if let Some(bits) = func.dfg.as_bits(value) {
                let bits = bits as u64;
                let number = match extension {
                    Extension::Signed => ((bits << (64 - width)) as i64) >> (64 - width),
                    Extension::Unsigned => bits as i64,
                };
                self.offset = self.offset.wrapping_add(number.wrapping_mul(factor));
                continue;
            }
            steps += 1;
            let takes_apart = !(self.whole)(value) || adds_constant(func, value);
            if steps <= MAX_STEPS && takes_apart && split(func, value, width, extension, factor, &mut work) {
                let flags = func.dfg.def_inst(value).map(|inst| func.dfg.insts[inst].flags);
                self.promises |= flags.is_some_and(|flags| !flags.is_empty());
                continue;
            }
            // Nothing is filled up where nothing is missing.
            let extension = if width == 64 { Extension::Signed } else { extension };
            self.add_term(value, extension, factor)?;
        }
        Some(())
    }

    fn add_term(&mut self, value: Value, extension: Extension, factor: i64) -> Option<()> {
        match self.terms.iter().position(|t| (t.value, t.extension) == (value, extension)) {
            Some(at) => {
                self.terms[at].factor = self.terms[at].factor.wrapping_add(factor);
                if self.terms[at].factor == 0 {
                    self.terms.swap_remove(at);
                }
            }
            None if factor == 0 => {}
            None if self.terms.len() >= MAX_TERMS => return None,
            None => self.terms.push(Term { value, extension, factor }),
        }
        Some(())
    }
}

/// Whether a value is another one plus a constant.
fn adds_constant(func: &Function, value: Value) -> bool {
    func.dfg.def_inst(value).is_some_and(|inst| {
        let last = func.dfg.args(inst).last();
        func.dfg.insts[inst].op == Opcode::Add && last.is_some_and(|last| func.dfg.as_bits(*last).is_some())
    })
}

/// Replaces a value times a factor by the operands of what computes it, when that is the same sum in 64 bits.
fn split(
    func: &Function,
    value: Value,
    width: u32,
    extension: Extension,
    factor: i64,
    work: &mut SmallVec<[(Value, Extension, i64); 4]>,
) -> bool {
    let Some(inst) = func.dfg.def_inst(value) else { return false };
    let data = &func.dfg.insts[inst];
    let args = func.dfg.args(inst);
    // A sum of narrow numbers is the sum of the wide ones where it does not wrap.
    let exact = width == 64
        || match extension {
            Extension::Signed => data.flags.contains(Flags::NSW),
            Extension::Unsigned => data.flags.contains(Flags::NUW),
        };
    match (data.op, args) {
        (Opcode::Add, [a, b]) if exact => work.extend([(*a, extension, factor), (*b, extension, factor)]),
        (Opcode::Or, [a, b]) if data.flags.contains(Flags::DISJOINT) => {
            work.extend([(*a, extension, factor), (*b, extension, factor)]);
        }
        (Opcode::Sub, [a, b]) if exact => {
            work.extend([(*a, extension, factor), (*b, extension, factor.wrapping_neg())]);
        }
        (Opcode::Mul, [a, b]) if exact => match multiplier(func, *b, width, extension) {
            Some(n) => work.push((*a, extension, factor.wrapping_mul(n))),
            None => return false,
        },
        (Opcode::Shl, [a, b]) if exact => match func.dfg.as_bits(*b) {
            Some(n) if n < u128::from(width) => work.push((*a, extension, factor.wrapping_mul(1i64 << n))),
            _ => return false,
        },
        (Opcode::Sext, [a]) if extension == Extension::Signed || width == 64 => {
            work.push((*a, Extension::Signed, factor));
        }
        // A number that is not negative is the same either way; the signed reading is the common one.
        (Opcode::Zext, [a]) if data.flags.contains(Flags::NNEG) => work.push((*a, Extension::Signed, factor)),
        (Opcode::Zext, [a]) => work.push((*a, Extension::Unsigned, factor)),
        _ => return false,
    }
    true
}

/// A constant factor of a product, read as the extension reads its operands.
fn multiplier(func: &Function, value: Value, width: u32, extension: Extension) -> Option<i64> {
    let bits = func.dfg.as_bits(value)? as u64;
    Some(match extension {
        Extension::Signed => ((bits << (64 - width)) as i64) >> (64 - width),
        Extension::Unsigned => bits as i64,
    })
}
