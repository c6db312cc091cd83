//! An address in a loop as what it is in the first round, and what it grows by from round to round.
//!
//! Sums are taken apart where they are the same sum in 64 bits ([`Linear`]): at every width of 64, and in narrower ones where
//! the arithmetic promises not to wrap as its extension reads it. Where a promise is broken the address is poison in that
//! round, and where a counter's own is, in every later one; so the parts may be summed up in another way.

use ptxc_ir::{Block, ConstData, Flags, Function, FunctionBuilder, Module, Opcode, Scalar, Type, Value, ValueDef};
use smallvec::SmallVec;

use crate::addresses::{Extension, Linear, Root, Term, linear_index, plus_scaled, root_as};

/// Most parts of an address.
const MAX_PARTS: usize = 8;

/// A parameter of a loop's header to which every round adds the same.
#[derive(Clone, Copy)]
pub(super) struct Counter {
    param: Value,
    /// Its value in the next round.
    next: Value,
    /// Place among the header's parameters.
    pub(super) index: usize,
    /// What is added.
    step: Value,
    /// The addition's promises.
    flags: Flags,
}

/// What of a loop its addresses are asked about.
pub(super) struct Rounds<'a> {
    pub(super) func: &'a Function,
    pub(super) module: &'a Module,
    pub(super) counters: &'a [Counter],
    /// Whether a block is in the loop.
    pub(super) is_inside: &'a dyn Fn(Block) -> bool,
}

/// A product of values that do not change in the loop, each extended to 64 bits, and a constant.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Part {
    /// In order.
    values: SmallVec<[(Value, Extension); 2]>,
    factor: i64,
}

/// An address that grows evenly.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) struct Shape {
    root: Root,
    /// What does not change.
    fixed: SmallVec<[Part; 2]>,
    /// Counters, by their place in the list, as an extension reads them, with what each is multiplied by.
    moving: SmallVec<[(usize, Extension, Part); 1]>,
}

impl Counter {
    /// Whether a value is the counter, in this round or the next.
    pub(super) fn is(&self, func: &Function, value: Value) -> bool {
        let value = func.dfg.resolve(value);
        value == self.param || value == self.next
    }
}

impl Rounds<'_> {
    /// Parameters of the header that the loop's only way back adds to.
    pub(super) fn counters(
        func: &Function,
        header: Block,
        back: &[Value],
        is_inside: &dyn Fn(Block) -> bool,
    ) -> Vec<Counter> {
        let params = func.dfg.block_params(header).iter().zip(back).enumerate();
        let counter = |(index, (param, next)): (usize, (&Value, &Value))| {
            let add = func.dfg.def_inst(*next)?;
            let data = &func.dfg.insts[add];
            let &[from, step] = func.dfg.args(add) else { return None };
            let (from, step) = (func.dfg.resolve(from), func.dfg.resolve(step));
            let is_counter = data.op == Opcode::Add && from == *param && is_fixed(func, step, is_inside);
            is_counter.then_some(Counter { param: *param, next: *next, index, step, flags: data.flags })
        };
        params.filter_map(counter).collect()
    }

    /// The address that a `gep` of the loop computes, with the bytes that are added to it, if it grows evenly.
    pub(super) fn shape(&self, pointer: Value) -> Option<(Shape, i64)> {
        let whole = |value: Value| is_fixed(self.func, value, self.is_inside);
        let address = Linear::down_to(self.func, self.module, pointer, &whole);
        if let Root::Value(value) = address.base.root
            && !whole(value)
        {
            return None;
        }
        let mut shape = Shape { root: address.base.root, fixed: SmallVec::new(), moving: SmallVec::new() };
        for term in &address.base.terms {
            self.add(&mut shape, term)?;
        }
        shape.fixed.sort_unstable();
        shape.moving.sort_unstable();
        let few = shape.fixed.len() + shape.moving.len() <= MAX_PARTS;
        (few && !shape.moving.is_empty()).then_some((shape, address.offset))
    }

    /// Adds a part of an address: what does not change, a counter, or a product of a counter and what does not change.
    fn add(&self, shape: &mut Shape, term: &Term) -> Option<()> {
        if self.add_plain(shape, term, &Part { values: SmallVec::new(), factor: 1 }).is_some() {
            return Some(());
        }
        let func = self.func;
        let whole = |value: Value| is_fixed(func, value, self.is_inside);
        let product = func.dfg.def_inst(term.value)?;
        let data = &func.dfg.insts[product];
        let &[a, b] = func.dfg.args(product) else { return None };
        let (a, b) = (func.dfg.resolve(a), func.dfg.resolve(b));
        if data.op != Opcode::Mul || !is_exact(func, term.value, data.flags, term.extension) {
            return None;
        }
        let (varying, by) = if whole(b) { (a, b) } else { (b, a) };
        if !whole(by) {
            return None;
        }
        let by = Part { values: SmallVec::from_slice(&[(by, term.extension)]), factor: term.factor };
        let (terms, constant) = linear_index(func, varying, term.extension, &whole)?;
        for inner in &terms {
            self.add_plain(shape, inner, &by)?;
        }
        if constant != 0 {
            shape.fixed.push(Part { factor: by.factor.wrapping_mul(constant), ..by });
        }
        Some(())
    }

    /// Adds a counter or what does not change, multiplied.
    fn add_plain(&self, shape: &mut Shape, term: &Term, by: &Part) -> Option<()> {
        let mut part = by.clone();
        part.factor = part.factor.wrapping_mul(term.factor);
        if is_fixed(self.func, term.value, self.is_inside) {
            part.values.push((term.value, term.extension));
            part.values.sort_unstable();
            shape.fixed.push(part);
            return Some(());
        }
        let place = self.counters.iter().position(|counter| counter.param == term.value)?;
        let counter = self.counters.get(place)?;
        if !is_exact(self.func, counter.param, counter.flags, term.extension) {
            return None;
        }
        shape.moving.push((place, term.extension, part));
        Some(())
    }
}

impl Shape {
    /// The bytes that every round adds, when they are a constant.
    pub(super) fn constant_stride(&self, func: &Function, counters: &[Counter]) -> Option<i64> {
        let mut stride = 0i64;
        for (place, extension, part) in &self.moving {
            if !part.values.is_empty() {
                return None;
            }
            let step = constant(func, counters.get(*place)?.step, *extension)?;
            stride = stride.wrapping_add(step.wrapping_mul(part.factor));
        }
        Some(stride)
    }

    /// Whether a step is cheaper than what it replaces: a constant one, or one instead of a product of two values.
    pub(super) fn is_worth_stepping(&self, func: &Function, counters: &[Counter]) -> bool {
        match self.constant_stride(func, counters) {
            Some(stride) => stride != 0,
            None => self.moving.iter().any(|(_, _, part)| !part.values.is_empty()),
        }
    }

    /// The bytes that every round adds, computed.
    pub(super) fn stride(&self, builder: &mut FunctionBuilder<'_>, counters: &[Counter]) -> Option<Value> {
        let mut sum: Option<Value> = None;
        for (place, extension, part) in &self.moving {
            let part = part.times(builder.func, counters.get(*place)?.step, *extension);
            let bytes = part.bytes(builder);
            sum = Some(sum.map_or(bytes, |sum| builder.binary(Opcode::Add, sum, bytes)));
        }
        sum
    }

    /// The address in the first round plus bytes, where counters are what `start` says, computed.
    pub(super) fn first(
        &self,
        builder: &mut FunctionBuilder<'_>,
        module: &Module,
        ty: Type,
        mut bytes: i64,
        start: impl Fn(usize) -> Option<Value>,
    ) -> Option<Value> {
        let mut address = root_as(builder, module, self.root, ty);
        let mut parts = self.fixed.clone();
        for (place, extension, part) in &self.moving {
            parts.push(part.times(builder.func, start(*place)?, *extension));
        }
        for part in &parts {
            match part.scaled(builder) {
                Some(index) => address = plus_scaled(builder, address, index, part.factor),
                None => bytes = bytes.wrapping_add(part.factor),
            }
        }
        Some(builder.byte_offset(address, bytes))
    }
}

impl Part {
    /// This times one more value.
    fn times(&self, func: &Function, value: Value, extension: Extension) -> Part {
        let mut part = self.clone();
        match constant(func, value, extension) {
            Some(number) => part.factor = part.factor.wrapping_mul(number),
            None => part.values.push((func.dfg.resolve(value), extension)),
        }
        if part.factor == 0 {
            part.values.clear();
        }
        part
    }

    /// The product of the values, if there are any.
    fn scaled(&self, builder: &mut FunctionBuilder<'_>) -> Option<Value> {
        let mut product: Option<Value> = None;
        for (value, extension) in &self.values {
            let wide = Term { value: *value, extension: *extension, factor: 1 }.widened(builder);
            product = Some(product.map_or(wide, |product| builder.binary(Opcode::Mul, product, wide)));
        }
        product
    }

    /// The whole product.
    fn bytes(&self, builder: &mut FunctionBuilder<'_>) -> Value {
        match self.scaled(builder) {
            Some(value) if self.factor == 1 => value,
            Some(value) => builder.binary_imm(Opcode::Mul, value, self.factor),
            None => builder.iconst(Type::I64, self.factor),
        }
    }
}

/// Whether a value is the same in every round.
pub(super) fn is_fixed(func: &Function, value: Value, is_inside: &dyn Fn(Block) -> bool) -> bool {
    match func.dfg.def(value) {
        ValueDef::Const(_) => true,
        ValueDef::Param(block, _) => !is_inside(block),
        ValueDef::Result(inst, _) => func.layout.inst_block(inst).is_some_and(|block| !is_inside(block)),
        ValueDef::Alias(_) => false,
    }
}

/// Whether arithmetic with these promises is the same in 64 bits, with operands that are extended alike.
fn is_exact(func: &Function, value: Value, flags: Flags, extension: Extension) -> bool {
    let wide = func.dfg.ty(value).kind() == Some(Scalar::Int(64));
    wide || match extension {
        Extension::Signed => flags.contains(Flags::NSW),
        Extension::Unsigned => flags.contains(Flags::NUW),
    }
}

/// A constant of up to 64 bits, extended.
fn constant(func: &Function, value: Value, extension: Extension) -> Option<i64> {
    match func.dfg.as_const(value)? {
        ConstData::Bits(bits) => match extension {
            Extension::Signed => i64::try_from(func.dfg.as_signed(value)?).ok(),
            Extension::Unsigned => u64::try_from(*bits).ok().map(|bits| bits as i64),
        },
        _ => None,
    }
}
