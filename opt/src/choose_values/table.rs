//! Tables of constants as arithmetic on the index.

use ptxc_ir::{Function, FunctionBuilder, GlobalId, IntCC, MemAttrs, Opcode, Scalar, Space, Type, Value};

use super::{Choice, Default};

/// How a table is reached: the operand less the first number.
pub(super) struct Index {
    value: Value,
    ty: Type,
    first: u64,
    /// Numbers from the first to the last.
    pub span: u64,
    /// A bit for each number that is a case, where the others between must be told apart.
    gaps: Option<u64>,
    /// All other numbers need to be told apart from those of the table.
    bounded: bool,
}

/// What is computed of the index once.
pub(super) struct Computed {
    /// The index, in the type of the operand.
    index: Value,
    /// The index in 32 bits, and the same where it is no larger than the span.
    word: Value,
    clamped: Option<Value>,
    /// The index where the table may be read.
    readable: Option<Value>,
    /// Whether the number is one of the table's.
    pub inside: Option<Value>,
}

/// A table of constants as a function of the index.
pub(super) enum Form {
    /// All are the same.
    Constant(u128),
    /// `offset + index * factor`.
    Linear {
        /// At the first number.
        offset: u128,
        /// From one number to the next.
        factor: u128,
        /// What follows the last number is the value of all others.
        clamped: bool,
    },
    /// `offset +` the bits of a constant that begin at `index * width`.
    Bits {
        /// Added to what the bits say.
        offset: u128,
        /// The bits.
        bits: u64,
        /// Of one number.
        width: u32,
        /// The constant has 64 bits.
        wide: bool,
        /// Behind the last number stand the bits of all others.
        clamped: bool,
    },
    /// An element of an array in constant memory.
    Loaded {
        /// The array.
        table: GlobalId,
        /// Behind the last number stands the value of all others.
        clamped: bool,
    },
}

impl Index {
    /// `None` where the numbers are too far apart, or have gaps that cost too much.
    pub fn of(func: &Function, choice: &Choice, most: u64) -> Option<Index> {
        let width = choice.ty.bits();
        let mask = u64::MAX >> (64 - width);
        let mut numbers: Vec<u64> = choice.cases.iter().map(|(number, _)| *number).collect();
        numbers.sort_unstable();
        // The numbers lie on a circle; the table begins behind the largest gap.
        let gap = |at: usize| numbers[at].wrapping_sub(numbers[(at + numbers.len() - 1) % numbers.len()]) & mask;
        let start = (0..numbers.len()).max_by_key(|at| gap(*at))?;
        let first = numbers[start];
        let last = numbers[(start + numbers.len() - 1) % numbers.len()];
        let span = (last.wrapping_sub(first) & mask).checked_add(1)?;
        if span > most {
            return None;
        }
        let covers_all = width < 64 && span == 1 << width;
        let has_gaps = span != numbers.len() as u64;
        let constant_default = match &choice.default {
            Default::Never => true,
            Default::Args(args) => args.iter().enumerate().all(|(at, value)| {
                func.dfg.as_bits(*value).is_some() || choice.cases.iter().all(|(_, case)| case[at] == *value)
            }),
            Default::Elsewhere(_) => false,
        };
        let gaps = if has_gaps && !constant_default {
            if span > 64 {
                return None;
            }
            Some(numbers.iter().fold(0u64, |bits, number| bits | 1 << (number.wrapping_sub(first) & mask)))
        } else {
            None
        };
        let bounded = !covers_all && !matches!(choice.default, Default::Never);
        Some(Index { value: choice.value, ty: choice.ty, first, span, gaps, bounded })
    }

    /// The place of a number.
    fn place(&self, number: u64) -> u64 {
        number.wrapping_sub(self.first) & (u64::MAX >> (64 - self.ty.bits()))
    }

    /// Computes the index and what the forms ask of it.
    pub fn emit(&self, builder: &mut FunctionBuilder<'_>, forms: &[Form]) -> Computed {
        let value = self.widened(builder);
        let (ty, first) = (builder.ty(value), self.first_of(self.ty.bits()));
        let first = builder.bits(ty, first as u128);
        let index = if self.first == 0 { value } else { builder.binary(Opcode::Sub, value, first) };
        let word = as_type(builder, index, Type::I32);
        let is_clamped = |form: &Form| match form {
            Form::Linear { clamped, .. } | Form::Bits { clamped, .. } | Form::Loaded { clamped, .. } => *clamped,
            Form::Constant(_) => false,
        };
        let clamped = forms.iter().any(is_clamped).then(|| {
            let span = builder.bits(ty, u128::from(self.span));
            let least = builder.binary(Opcode::Umin, index, span);
            as_type(builder, least, Type::I32)
        });
        let reads = |form: &Form| matches!(form, Form::Loaded { clamped: false, .. });
        let readable = forms.iter().any(reads).then(|| {
            let last = builder.bits(ty, u128::from(self.span - 1));
            let least = if self.bounded { builder.binary(Opcode::Umin, index, last) } else { index };
            as_type(builder, least, Type::I32)
        });
        let inside = (self.bounded && !forms.iter().all(is_clamped)).then(|| self.is_inside(builder, index, word));
        Computed { index, word, clamped, readable, inside }
    }

    /// Whether the numbers of the table go from those with the highest bit to those without.
    fn is_signed(&self) -> bool {
        let mask = u64::MAX >> (64 - self.ty.bits());
        self.first > (self.first.wrapping_add(self.span - 1) & mask)
    }

    /// The operand in 32 bits at least: what is below the table then is far above it, once the first number is taken away.
    fn widened(&self, builder: &mut FunctionBuilder<'_>) -> Value {
        match self.ty.bits() {
            32.. => self.value,
            _ if self.is_signed() => builder.convert(Opcode::Sext, self.value, Type::I32),
            _ => builder.convert(Opcode::Zext, self.value, Type::I32),
        }
    }

    /// The first number, widened as the operand is.
    fn first_of(&self, width: u32) -> i64 {
        if self.is_signed() { ((self.first << (64 - width)) as i64) >> (64 - width) } else { self.first as i64 }
    }

    fn is_inside(&self, builder: &mut FunctionBuilder<'_>, index: Value, word: Value) -> Value {
        let ty = builder.ty(index);
        let span = builder.bits(ty, u128::from(self.span));
        let within = builder.icmp(IntCC::Ult, index, span);
        let Some(gaps) = self.gaps else { return within };
        let bit = bits_at(builder, gaps, word, 1, self.span > 32);
        let bit = builder.convert(Opcode::Trunc, bit, Type::I1);
        // Outside, the shift is by too much and its result is nothing: a choice leaves it alone.
        let no = builder.bool(false);
        builder.select(within, bit, no)
    }
}

impl Form {
    /// The constants of argument `at` as a function of the index.
    pub fn of(func: &Function, choice: &Choice, index: &Index, at: usize) -> Option<Form> {
        let Entries { ty, width, table, default } = Entries::of(func, choice, index, at)?;
        let mask = u128::MAX >> (128 - width);
        if let Some(form) = Form::linear(&table, mask, ty.is_int(), default) {
            return Some(form);
        }
        Form::bits(&table, mask, ty.is_int(), default)
    }

    /// A table that rises by the same from number to number.
    fn linear(table: &[Option<u128>], mask: u128, is_int: bool, default: Option<u128>) -> Option<Form> {
        let known = || table.iter().enumerate().filter_map(|(at, value)| value.map(|value| (at as u128, value)));
        let offset = table[0]?;
        if known().all(|(_, value)| value == offset) {
            return Some(Form::Constant(offset));
        }
        let factor = table.get(1).copied().flatten()?.wrapping_sub(offset) & mask;
        let at_place = |at: u128| offset.wrapping_add(factor.wrapping_mul(at)) & mask;
        let fits = known().all(|(at, value)| at_place(at) == value);
        let clamped = default == Some(at_place(table.len() as u128));
        (fits && is_int).then_some(Form::Linear { offset, factor, clamped })
    }

    /// A table whose bits fit a constant. The value of all other numbers stands behind it where there is room: a minimum then
    /// replaces a comparison and a choice.
    fn bits(table: &[Option<u128>], mask: u128, is_int: bool, default: Option<u128>) -> Option<Form> {
        let whole = |offset: u128, last: Option<u128>, limit: u32| {
            let entries = table.iter().copied().chain(last.map(Some));
            let part = |value: Option<u128>| value.map_or(0, |value| value.wrapping_sub(offset) & mask);
            let most = entries.clone().map(part).max()?;
            let width = 128 - most.leading_zeros();
            let count = table.len() as u32 + u32::from(last.is_some());
            if width.checked_mul(count)? > limit {
                return None;
            }
            let bits =
                entries.enumerate().fold(0u64, |bits, (at, value)| bits | (part(value) as u64) << (at as u32 * width));
            Some(Form::Bits { offset, bits, width, wide: limit == 64, clamped: last.is_some() })
        };
        let least = table.iter().flatten().copied().chain(default).min()?;
        let least_signed =
            table.iter().flatten().copied().chain(default).min_by_key(|value| value ^ (mask ^ mask >> 1))?;
        let offsets = if is_int { [0, least, least_signed] } else { [0; 3] };
        let ends = if default.is_some() { [default, None] } else { [None; 2] };
        let tries = [32, 64].into_iter().flat_map(|limit| ends.into_iter().map(move |last| (last, limit)));
        tries.flat_map(|(last, limit)| offsets.map(|offset| (offset, last, limit))).find_map(|(o, l, n)| whole(o, l, n))
    }

    /// Computes the value, in the type of `like`.
    pub fn emit(&self, builder: &mut FunctionBuilder<'_>, at: &Computed, like: Value, default: Option<Value>) -> Value {
        let ty = builder.ty(like);
        let (value, clamped) = match *self {
            Form::Constant(bits) => (builder.bits(ty, bits), false),
            Form::Linear { offset, factor, clamped } => {
                let index = at.clamped.filter(|_| clamped).unwrap_or(at.index);
                let index = as_type(builder, index, ty);
                let offset = builder.bits(ty, offset);
                let value = if factor == u128::MAX >> (128 - ty.bits()) {
                    builder.binary(Opcode::Sub, offset, index)
                } else {
                    let factor = builder.bits(ty, factor);
                    let scaled = builder.binary(Opcode::Mul, index, factor);
                    builder.binary(Opcode::Add, scaled, offset)
                };
                (value, clamped)
            }
            Form::Loaded { table, clamped } => {
                let index = if clamped { at.clamped } else { at.readable };
                let base = builder.global(table, 0, Type::ptr(Space::Const));
                let address = builder.gep(ty.into(), base, &[index.unwrap_or(at.word)]);
                (builder.load(ty, address, MemAttrs::aligned(ty.size())), clamped)
            }
            Form::Bits { offset, bits, width, wide, clamped } => {
                let index = at.clamped.filter(|_| clamped).unwrap_or(at.word);
                let word = bits_at(builder, bits, index, width, wide);
                (from_word(builder, word, offset, ty), clamped)
            }
        };
        match (default, at.inside) {
            (Some(default), Some(inside)) if !clamped => builder.select(inside, value, default),
            _ => value,
        }
    }
}

/// The constants of one argument by place.
pub(super) struct Entries {
    /// Their type, and its bits.
    pub ty: Type,
    pub width: u32,
    /// What stands at each place, if it matters.
    pub table: Vec<Option<u128>>,
    /// The value of all numbers that are not in the table, where it may stand behind it.
    pub default: Option<u128>,
}

impl Entries {
    /// `None` where the values are no numbers of one register.
    pub fn of(func: &Function, choice: &Choice, index: &Index, at: usize) -> Option<Entries> {
        let ty = func.dfg.ty(choice.cases[0].1[at]);
        let width = match ty.kind()? {
            Scalar::Int(width) if !ty.is_vector() && width <= 64 => width,
            Scalar::Float(_) if !ty.is_vector() && ty.bits() <= 64 => ty.bits(),
            _ => return None,
        };
        let default = match &choice.default {
            Default::Args(args) => func.dfg.as_bits(args[at]),
            _ => None,
        };
        // Where nothing is said of a number between, what stands there does not matter.
        let between = if index.gaps.is_some() { None } else { default };
        let mut table = vec![between; index.span as usize];
        for (number, args) in &choice.cases {
            table[index.place(*number) as usize] = Some(func.dfg.as_bits(args[at])?);
        }
        // In a gap the table says nothing.
        let default = default.filter(|_| index.bounded && index.gaps.is_none());
        Some(Entries { ty, width, table, default })
    }
}

/// `width` bits of a constant, from `index * width` on.
fn bits_at(builder: &mut FunctionBuilder<'_>, bits: u64, index: Value, width: u32, wide: bool) -> Value {
    let ty = if wide { Type::I64 } else { Type::I32 };
    let factor = builder.bits(Type::I32, u128::from(width));
    let amount = if width == 1 { index } else { builder.binary(Opcode::Mul, index, factor) };
    let amount = as_type(builder, amount, ty);
    let table = builder.bits(ty, u128::from(bits));
    let shifted = builder.binary(Opcode::Lshr, table, amount);
    let mask = builder.bits(ty, u128::MAX >> (128 - width));
    builder.binary(Opcode::And, shifted, mask)
}

/// Bits of a table as a value of a type: with the offset added, in 32 bits where that is enough.
fn from_word(builder: &mut FunctionBuilder<'_>, word: Value, offset: u128, ty: Type) -> Value {
    if ty == Type::I1 {
        return builder.convert(Opcode::Trunc, word, ty);
    }
    let int = Type::int(ty.bits());
    let value = as_type(builder, word, int);
    let value = if offset == 0 {
        value
    } else {
        let offset = builder.bits(int, offset);
        builder.binary(Opcode::Add, value, offset)
    };
    if int == ty { value } else { builder.convert(Opcode::Bitcast, value, ty) }
}

/// An integer, not negative, in another width.
fn as_type(builder: &mut FunctionBuilder<'_>, value: Value, ty: Type) -> Value {
    let (from, to) = (builder.ty(value).bits(), ty.bits());
    match from.cmp(&to) {
        std::cmp::Ordering::Less => builder.convert(Opcode::Zext, value, ty),
        std::cmp::Ordering::Equal => value,
        std::cmp::Ordering::Greater => builder.convert(Opcode::Trunc, value, ty),
    }
}
