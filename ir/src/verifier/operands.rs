//! Rules that the opcode's shape gives: side data, number and types of operands and results.

use smallvec::SmallVec;

use super::{Checked, Rule, fail, require};
use crate::builder::result_types;
use crate::dfg::ConstData;
use crate::entities::{Inst, Value};
use crate::instruction::{Extra, InstData, MemAttrs};
use crate::module::{Function, Module};
use crate::opcode::{Opcode, Shape};
use crate::sreg_type;
use crate::types::{MemType, Type};

/// An instruction with what its rules look at.
pub(super) struct View<'f> {
    pub module: &'f Module,
    pub func: &'f Function,
    pub inst: Inst,
    pub data: &'f InstData,
    pub args: &'f [Value],
}

impl<'f> View<'f> {
    pub fn new(module: &'f Module, func: &'f Function, inst: Inst) -> View<'f> {
        View { module, func, inst, data: &func.dfg.insts[inst], args: func.dfg.args(inst) }
    }

    pub fn op(&self) -> Opcode {
        self.data.op
    }

    pub fn text(&self) -> &'static str {
        self.data.op.text()
    }

    /// Type of an argument; invalid when there is none.
    pub fn ty(&self, index: usize) -> Type {
        self.args.get(index).map_or(Type::INVALID, |v| self.func.dfg.ty(*v))
    }

    /// An argument's constant bits.
    pub fn bits(&self, index: usize) -> Option<u128> {
        self.func.dfg.as_bits(*self.args.get(index)?)
    }

    /// Argument `index` must have this type.
    pub fn expect(&self, index: usize, wanted: Type) -> Checked {
        let found = self.ty(index);
        require(found == wanted, Rule::OperandType, || {
            format!("operand {} of `{}` is {found}, {wanted} is expected", index + 1, self.text())
        })
    }

    /// Argument `index` must be such a value.
    pub fn expect_that(&self, index: usize, holds: bool, wanted: &str) -> Checked {
        let found = self.ty(index);
        require(holds, Rule::OperandType, || {
            format!("operand {} of `{}` is {found}, {wanted} is expected", index + 1, self.text())
        })
    }

    /// Argument `index` must be a pointer.
    pub fn pointer(&self, index: usize) -> Checked {
        self.expect_that(index, self.ty(index).is_ptr(), "a pointer")
    }
}

/// True when the instruction carries the variant of [`Extra`] that its shape says, with indices that exist.
pub(super) fn side_data_fits(module: &Module, func: &Function, data: &InstData) -> bool {
    let dfg = &func.dfg;
    let known = |ty: MemType| match ty {
        MemType::Value(ty) => !ty.is_invalid(),
        MemType::Agg(id) => module.has_agg(id),
    };
    match (data.op.shape(), &data.extra) {
        (Shape::IntCompare, Extra::IntCC(_))
        | (Shape::FloatCompare, Extra::FloatCC(_))
        | (Shape::Load | Shape::Store, Extra::Mem(_))
        | (Shape::MemCopy | Shape::MemSet, Extra::Copy { .. })
        | (Shape::AtomicRmw, Extra::Rmw(..))
        | (Shape::Cmpxchg, Extra::Cmpxchg(..))
        | (Shape::Fence, Extra::Fence(..))
        | (Shape::FloatClass, Extra::Imm(_))
        | (Shape::IsSpace, Extra::Space(_))
        | (Shape::Jump, Extra::Jump(_))
        | (Shape::Branch, Extra::Branch { .. })
        | (Shape::Sreg, Extra::Sreg(_)) => true,
        (Shape::Shuffle, Extra::Mask(id)) => dfg.masks.is_valid(*id),
        (Shape::Gep, Extra::Gep(ty)) | (Shape::Alloca, Extra::Alloca { ty, .. }) => known(*ty),
        (Shape::Switch, Extra::Switch(id)) => dfg.switches.is_valid(*id),
        (Shape::Call, Extra::Call(id)) => module.funcs.is_valid(*id),
        (Shape::CallIndirect, Extra::CallIndirect(id)) => dfg.signatures.is_valid(*id),
        (Shape::Target, Extra::Target(id)) => {
            matches!(dfg.target_ops.get(*id), Some(crate::instruction::TargetOp::Known { .. }))
        }
        (Shape::Asm, Extra::Target(id)) => {
            matches!(dfg.target_ops.get(*id), Some(crate::instruction::TargetOp::Opaque { .. }))
        }
        (
            Shape::IntCompare
            | Shape::FloatCompare
            | Shape::Load
            | Shape::Store
            | Shape::MemCopy
            | Shape::MemSet
            | Shape::AtomicRmw
            | Shape::Cmpxchg
            | Shape::Fence
            | Shape::FloatClass
            | Shape::IsSpace
            | Shape::Jump
            | Shape::Branch
            | Shape::Sreg
            | Shape::Shuffle
            | Shape::Gep
            | Shape::Alloca
            | Shape::Switch
            | Shape::Call
            | Shape::CallIndirect
            | Shape::Target
            | Shape::Asm,
            _,
        ) => false,
        (_, extra) => matches!(extra, Extra::None),
    }
}

/// A constant's data fits its type.
pub(super) fn constant_fits(func: &Function, value: Value) -> Checked {
    let ty = func.dfg.ty(value);
    let Some(data) = func.dfg.as_const(value) else { return Ok(()) };
    match data {
        ConstData::Bits(bits) => {
            let width = ty.scalar_bits();
            let fits = !ty.is_vector() && width > 0 && (width >= 128 || bits >> width == 0);
            require(fits && !(ty.is_ptr() && *bits != 0), Rule::ConstantFits, || format!("{bits:#x} is no {ty}"))
        }
        ConstData::Vector(lanes) => {
            let fits = ty.is_vector() && lanes.len() == ty.lanes() as usize;
            require(fits, Rule::ConstantFits, || format!("{} lanes are no {ty}", lanes.len()))?;
            for lane in lanes {
                let scalar = func.dfg.value_exists(*lane) && func.dfg.as_const(*lane).is_some();
                require(scalar && func.dfg.ty(*lane) == ty.scalar(), Rule::ConstantFits, || {
                    format!("a lane of a constant {ty} is no constant {}", ty.scalar())
                })?;
                constant_lane_fits(func, *lane)?;
            }
            Ok(())
        }
        ConstData::Poison => Ok(()),
        ConstData::Global(..) | ConstData::Func(_) => {
            require(ty.is_ptr(), Rule::ConstantAddress, || format!("the address of a symbol has type {ty}"))
        }
    }
}

/// As [`constant_fits`], for a lane: vectors do not nest.
fn constant_lane_fits(func: &Function, lane: Value) -> Checked {
    match func.dfg.as_const(lane) {
        Some(ConstData::Vector(_)) => fail(Rule::ConstantFits, "a lane of a constant vector is a vector"),
        _ => constant_fits(func, lane),
    }
}

/// The addresses among an instruction's operands are of symbols that exist and have their type.
pub(super) fn addresses(view: &View) -> Checked {
    let mut result = Ok(());
    view.func.dfg.for_each_use(view.inst, |value| {
        if result.is_ok() {
            result = address(view, value);
        }
    });
    result
}

fn address(view: &View, value: Value) -> Checked {
    let ty = view.func.dfg.ty(value);
    let wanted = match view.func.dfg.as_const(value) {
        Some(ConstData::Global(id, _)) if view.module.globals.is_valid(*id) => view.module.global_ptr(*id),
        Some(ConstData::Func(id)) if view.module.funcs.is_valid(*id) => Type::PTR,
        Some(ConstData::Global(..) | ConstData::Func(_)) => {
            return fail(Rule::ConstantAddress, "the address of a symbol that does not exist is used");
        }
        Some(ConstData::Vector(lanes)) => return lanes.iter().try_for_each(|lane| address(view, *lane)),
        _ => return Ok(()),
    };
    require(ty == wanted, Rule::ConstantAddress, || format!("the address of a symbol is {wanted}, not {ty}"))
}

fn policy(mem: &MemAttrs) -> usize {
    usize::from(mem.has_policy)
}

/// Least and most number of operands.
fn arity(view: &View) -> (usize, usize) {
    let module = view.module;
    let exact = match view.op().shape() {
        Shape::Fence | Shape::Alloca | Shape::Jump | Shape::Nullary | Shape::Sreg | Shape::ActiveMask => 0,
        Shape::Unary
        | Shape::FloatClass
        | Shape::Convert
        | Shape::Splat
        | Shape::Reduce
        | Shape::IsSpace
        | Shape::Branch
        | Shape::Switch
        | Shape::Predicate
        | Shape::WarpMask
        | Shape::Elect => 1,
        Shape::Binary
        | Shape::BinaryOverflow
        | Shape::IntCompare
        | Shape::FloatCompare
        | Shape::Extract
        | Shape::Shuffle
        | Shape::Vote
        | Shape::Ballot
        | Shape::MatchAny
        | Shape::MatchAll
        | Shape::Redux
        | Shape::ConvertRandom => 2,
        Shape::Ternary | Shape::Select | Shape::Insert | Shape::MemCopy | Shape::MemSet => 3,
        Shape::Shuffle4 => 4,
        Shape::BuildVector => view.data.ty.lanes() as usize,
        Shape::Load | Shape::Store | Shape::AtomicRmw | Shape::Cmpxchg => match &view.data.extra {
            Extra::Mem(mem) => usize::from(view.op() == Opcode::Store) + 1 + policy(mem),
            Extra::Rmw(_, mem) => 2 + policy(mem),
            Extra::Cmpxchg(mem, _) => 3 + policy(mem),
            _ => 0,
        },
        Shape::Return => module.sig_results(&view.func.sig).len(),
        Shape::Call => match view.data.extra {
            Extra::Call(callee) => module.sig_params(&module.funcs[callee].sig).len(),
            _ => 0,
        },
        Shape::CallIndirect => match view.data.extra {
            Extra::CallIndirect(sig) => 1 + module.sig_params(&view.func.dfg.signatures[sig]).len(),
            _ => 0,
        },
        Shape::BarrierSync if view.op() == Opcode::BarrierArrive => 2,
        Shape::BarrierSync => return (1, 2),
        Shape::BarrierReduce => return (2, 3),
        Shape::Gep => return (2, usize::MAX),
        Shape::Target | Shape::Asm => return (0, usize::MAX),
    };
    (exact, exact)
}

pub(super) fn count(view: &View) -> Checked {
    let (least, most) = arity(view);
    let given = view.args.len();
    require((least..=most).contains(&given), Rule::OperandCount, || {
        format!("`{}` has {given} operands, {least} are expected", view.text())
    })
}

/// Types of operands that follow from the shape alone; what depends on the opcode is checked with it.
pub(super) fn types(view: &View) -> Checked {
    let ty = view.data.ty;
    match view.op().shape() {
        Shape::Unary
        | Shape::Binary
        | Shape::BinaryOverflow
        | Shape::Ternary
        | Shape::FloatClass
        | Shape::IntCompare
        | Shape::FloatCompare
        | Shape::Shuffle
        | Shape::Reduce
        | Shape::Switch => all(view, 0, ty),
        Shape::BuildVector | Shape::Splat => all(view, 0, ty.scalar()),
        Shape::Select => all(view, 1, ty),
        Shape::Extract => {
            view.expect(0, ty)?;
            view.expect_that(1, view.ty(1).is_int(), "an integer")
        }
        Shape::Insert => {
            view.expect(0, ty)?;
            view.expect(1, ty.scalar())?;
            view.expect_that(2, view.ty(2).is_int(), "an integer")
        }
        Shape::ConvertRandom => view.expect(1, Type::I32),
        Shape::Branch | Shape::Predicate => view.expect(0, Type::I1),
        Shape::Return => list(view, 0, &view.module.sig_results(&view.func.sig)),
        Shape::Call => match view.data.extra {
            Extra::Call(callee) => list(view, 0, &view.module.sig_params(&view.module.funcs[callee].sig)),
            _ => Ok(()),
        },
        Shape::CallIndirect => match view.data.extra {
            Extra::CallIndirect(sig) => {
                view.expect(0, Type::PTR)?;
                list(view, 1, &view.module.sig_params(&view.func.dfg.signatures[sig]))
            }
            _ => Ok(()),
        },
        Shape::BarrierSync | Shape::WarpMask | Shape::Elect => all(view, 0, Type::I32),
        Shape::BarrierReduce => {
            let last = view.args.len() - 1;
            (0..last).try_for_each(|index| view.expect(index, Type::I32))?;
            view.expect(last, Type::I1)
        }
        Shape::Shuffle4 | Shape::MatchAny | Shape::MatchAll | Shape::Redux => {
            view.expect(0, ty)?;
            all(view, 1, Type::I32)
        }
        Shape::Vote | Shape::Ballot => {
            view.expect(0, Type::I1)?;
            view.expect(1, Type::I32)
        }
        _ => Ok(()),
    }
}

fn all(view: &View, from: usize, ty: Type) -> Checked {
    (from..view.args.len()).try_for_each(|index| view.expect(index, ty))
}

fn list(view: &View, from: usize, types: &[Type]) -> Checked {
    types.iter().enumerate().try_for_each(|(index, ty)| view.expect(from + index, *ty))
}

/// Results are what the shape says.
pub(super) fn results(view: &View) -> Checked {
    let dfg = &view.func.dfg;
    let found: SmallVec<[Type; 4]> = dfg.results(view.inst).map(|v| dfg.ty(v)).collect();
    let first = view.args.first().map(|v| dfg.ty(*v));
    let ty = view.data.ty;
    let wanted: SmallVec<[Type; 4]> = match (result_types(view.op(), ty, first), &view.data.extra) {
        (Some(types), _) => types.into_iter().collect(),
        (None, Extra::Mask(mask)) => SmallVec::from_slice(&[ty.scalar().with_lanes(dfg.masks[*mask].len() as u32)]),
        (None, Extra::Sreg(register)) => SmallVec::from_slice(&[sreg_type(*register)]),
        (None, Extra::Call(callee)) => view.module.sig_results(&view.module.funcs[*callee].sig).into(),
        (None, Extra::CallIndirect(sig)) => view.module.sig_results(&dfg.signatures[*sig]).into(),
        (None, _) if view.op().shape() == Shape::Shuffle4 => match found.len() {
            2 => SmallVec::from_slice(&[ty, Type::I1]),
            _ => SmallVec::from_slice(&[ty]),
        },
        // Target operations are checked against their table; assembly gives what it is declared to give.
        (None, _) => return Ok(()),
    };
    require(wanted == found, Rule::ResultType, || {
        format!("`{}` has results {found:?}, {wanted:?} are expected", view.text())
    })
}
