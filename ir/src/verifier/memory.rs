//! Rules of memory accesses and addresses.

use super::globals::MAX_OBJECT;
use super::operands::View;
use super::{Checked, Rule, fail, require};
use crate::instruction::{Extra, MemAttrs};
use crate::opcode::{AtomicOp, CacheOp, L1Evict, L2Evict, Opcode, Ordering, Scope, Shape};
use crate::types::{AggDef, MemType, Scalar, Space, Type};

pub(super) fn check(view: &View) -> Checked {
    match (view.op().shape(), &view.data.extra) {
        (Shape::Load | Shape::Store, Extra::Mem(mem)) => access(view, mem),
        (Shape::AtomicRmw, Extra::Rmw(op, mem)) => {
            rmw_type(view, *op)?;
            atomic(view, mem)
        }
        (Shape::Cmpxchg, Extra::Cmpxchg(mem, failure)) => {
            let ty = view.data.ty;
            let plain = !ty.is_vector() && !ty.is_float();
            require(plain, Rule::AtomicType, || format!("`cmpxchg` compares integers or pointers, not {ty}"))?;
            let fits = !matches!(failure, Ordering::NotAtomic | Ordering::Release | Ordering::AcqRel);
            require(fits, Rule::FailureOrder, || {
                format!("the order of a failure is relaxed, acquire or seq_cst, not {}", failure.text())
            })?;
            atomic(view, mem)
        }
        (Shape::Fence, Extra::Fence(order, _)) => {
            let orders = !matches!(order, Ordering::NotAtomic | Ordering::Relaxed);
            require(orders, Rule::FenceOrder, || format!("a fence that is {} orders nothing", order.text()))
        }
        (Shape::MemCopy | Shape::MemSet, Extra::Copy { dst_align, src_align, .. }) => {
            block(view, *dst_align, *src_align)
        }
        (Shape::Gep, Extra::Gep(ty)) => gep(view, *ty),
        (Shape::Alloca, Extra::Alloca { ty, count, align }) => alloca(view, *ty, *count, *align),
        (Shape::IsSpace, Extra::Space(space)) => {
            let asks = !matches!(space, Space::Generic | Space::Tensor) && view.ty(0) == Type::PTR;
            require(asks, Rule::SpaceQuery, || {
                format!("`isspace {}` of a {} cannot be asked", space.name(), view.ty(0))
            })
        }
        _ => Ok(()),
    }
}

/// The space of pointer operand `index`, which the access can reach and, if `writes`, change.
fn reachable(view: &View, index: usize, writes: bool) -> Result<Space, Box<super::Broken>> {
    view.pointer(index)?;
    let space = view.ty(index).space().unwrap_or(Space::Generic);
    require(space != Space::Tensor, Rule::AccessSpace, || {
        format!("`{}` cannot reach tensor memory; target operations do", view.text())
    })?;
    require(!writes || !matches!(space, Space::Const | Space::Param), Rule::ReadOnlySpace, || {
        format!("`{}` writes to {} memory, which is read-only", view.text(), space.name())
    })?;
    Ok(space)
}

fn policy_type(view: &View, mem: &MemAttrs) -> Checked {
    if mem.has_policy { view.expect(view.args.len() - 1, Type::I64) } else { Ok(()) }
}

/// Loads and stores.
fn access(view: &View, mem: &MemAttrs) -> Checked {
    let store = view.op() == Opcode::Store;
    let ty = view.data.ty;
    if store {
        view.expect(0, ty)?;
    }
    let space = reachable(view, usize::from(store), store)?;
    policy_type(view, mem)?;
    require(mem.align_log2 <= 30, Rule::AccessAlign, || {
        format!("the alignment 2^{} is more than 2^30", mem.align_log2)
    })?;
    let fits = match mem.order {
        Ordering::NotAtomic | Ordering::Relaxed | Ordering::SeqCst => true,
        Ordering::Acquire => !store,
        Ordering::Release => store,
        Ordering::AcqRel => false,
    };
    require(fits, Rule::AccessOrder, || format!("a `{}` cannot be {}", view.text(), mem.order.text()))?;
    if mem.order == Ordering::NotAtomic {
        require(mem.scope == Scope::Sys, Rule::AccessScope, || "a scope is given without an order".to_string())?;
    } else {
        let bits = ty.scalar_bits();
        let scalar = !ty.is_vector() && (8..=128).contains(&bits) && bits.is_power_of_two();
        require(scalar && mem.align() >= ty.size(), Rule::OrderedType, || {
            format!("an ordered access of {ty} aligned to {} is not atomic", mem.align())
        })?;
    }
    require(!mem.invariant || (!store && !mem.is_ordered()), Rule::Invariant, || {
        "`invariant` stands on an access that is no plain load".to_string()
    })?;
    cache(view, mem, store, space)
}

/// Cache operators and hints (PTX ISA 9.7.10.1 and 9.7.10.2).
fn cache(view: &View, mem: &MemAttrs, store: bool, space: Space) -> Checked {
    let known = match mem.cache {
        CacheOp::None => true,
        CacheOp::Cg | CacheOp::Cs => true,
        CacheOp::Ca | CacheOp::Lu | CacheOp::Cv => !store,
        CacheOp::Wb | CacheOp::Wt => store,
    };
    require(known && (mem.cache == CacheOp::None || !mem.is_ordered()), Rule::CacheOperator, || {
        format!("this `{}` takes no cache operator `{}`", view.text(), mem.cache.text())
    })?;
    let hints = mem.l1 != L1Evict::None || mem.l2 != L2Evict::None || mem.prefetch != 0 || mem.has_policy;
    let holds = !hints || (matches!(space, Space::Global | Space::Generic) && mem.cache == CacheOp::None);
    require(holds, Rule::CacheHint, || {
        "cache hints go with global or generic addresses and without cache operator".to_string()
    })?;
    let prefetch = matches!(mem.prefetch, 0 | 64 | 128 | 256) && (!store || mem.prefetch == 0);
    require(prefetch, Rule::CacheHint, || format!("a `{}` cannot prefetch {} bytes", view.text(), mem.prefetch))
}

/// What `atomicrmw` computes on which types.
fn rmw_type(view: &View, op: AtomicOp) -> Checked {
    let ty = view.data.ty;
    let fits = match op {
        AtomicOp::Xchg => !ty.is_vector(),
        AtomicOp::Fadd | AtomicOp::Fsub | AtomicOp::Fmax | AtomicOp::Fmin => ty.is_float_like(),
        _ => ty.is_int(),
    };
    require(fits, Rule::AtomicType, || format!("`atomicrmw {}` does not work on {ty}", op.text()))
}

fn atomic(view: &View, mem: &MemAttrs) -> Checked {
    let ty = view.data.ty;
    let values = 1..view.args.len() - usize::from(mem.has_policy);
    values.into_iter().try_for_each(|index| view.expect(index, ty))?;
    policy_type(view, mem)?;
    view.pointer(0)?;
    let space = view.ty(0).space().unwrap_or(Space::Generic);
    let shared = matches!(space, Space::Generic | Space::Global | Space::Shared | Space::SharedCluster);
    require(shared, Rule::AtomicSpace, || format!("atomics do not work on {} memory", space.name()))?;
    require(mem.order != Ordering::NotAtomic, Rule::AccessOrder, || format!("`{}` has no order", view.text()))?;
    require(mem.align_log2 <= 30 && mem.align() >= ty.size(), Rule::AtomicAlign, || {
        format!("an atomic access of {ty} is aligned to {} bytes only", mem.align())
    })?;
    require(!mem.invariant, Rule::Invariant, || "`invariant` stands on an atomic access".to_string())?;
    require(mem.cache == CacheOp::None, Rule::CacheOperator, || "an atomic takes no cache operator".to_string())?;
    let hints = mem.l1 != L1Evict::None || mem.l2 != L2Evict::None || mem.prefetch != 0;
    let policy = !mem.has_policy || matches!(space, Space::Global | Space::Generic);
    require(!hints && policy, Rule::CacheHint, || {
        "an atomic takes no cache hint but a policy, on global or generic memory".to_string()
    })
}

/// `memcpy`, `memmove`, `memset`.
fn block(view: &View, dst_align: u32, src_align: u32) -> Checked {
    reachable(view, 0, true)?;
    if view.op() == Opcode::Memset {
        view.expect(1, Type::I8)?;
    } else {
        reachable(view, 1, false)?;
    }
    view.expect_that(2, matches!(view.ty(2), Type::I32 | Type::I64), "i32 or i64")?;
    let powers = [dst_align, src_align].into_iter().all(|a| a.is_power_of_two() && a <= 1 << 30);
    require(powers, Rule::CopyAlign, || {
        format!("the alignments {dst_align} and {src_align} are no powers of two up to 2^30")
    })
}

/// Steps through the type as the indices say.
fn gep(view: &View, over: MemType) -> Checked {
    let base = view.ty(0);
    view.expect_that(0, base.is_ptr_like(), "a pointer")?;
    let mut ty = over;
    for index in 1..view.args.len() {
        let found = view.ty(index);
        let lanes = !found.is_vector() || (base.is_vector() && found.lanes() == base.lanes());
        require(found.is_int_like() && lanes, Rule::GepIndex, || format!("index {index} of `gep` is {found}"))?;
        if index == 1 {
            continue;
        }
        let MemType::Agg(id) = ty else {
            return fail(Rule::GepIndex, format!("index {index} of `gep` steps into a value, not into an aggregate"));
        };
        ty = match &view.module.agg(id).def {
            AggDef::Array { elem, .. } => *elem,
            AggDef::Struct { fields, .. } => {
                let field = view.bits(index).and_then(|bits| fields.get(usize::try_from(bits).ok()?));
                match field {
                    Some(field) => *field,
                    None => {
                        let message = format!("index {index} of `gep` is no constant below {}", fields.len());
                        return fail(Rule::GepField, message);
                    }
                }
            }
        };
    }
    Ok(())
}

fn alloca(view: &View, ty: MemType, count: u32, align: u32) -> Checked {
    let block = view.func.layout.inst_block(view.inst);
    require(block == view.func.layout.entry(), Rule::AllocaPlace, || {
        "`alloca` stands outside the entry block".to_string()
    })?;
    require(count > 0 && align.is_power_of_two(), Rule::AllocaShape, || {
        format!("`alloca` of {count} elements aligned to {align}")
    })?;
    let size = view.module.layout_of(ty).size.saturating_mul(u64::from(count));
    let tensor = matches!(ty, MemType::Value(ty) if matches!(ty.kind(), Some(Scalar::Ptr(Space::Tensor)) | None));
    require(size < MAX_OBJECT && !tensor, Rule::ObjectSize, || "the object is larger than 2^40 bytes".to_string())
}
