//! Legalization: any verified module into the legal IR of `isel/LEGAL.md`.
//!
//! Signatures first, for the whole module. Then each function, in three passes of which every one sees less:
//!
//! 1. `control`: what needs blocks of its own (`memcpy`, compare-and-exchange loops), on the types of the input;
//! 2. `types`: every value in legal types, `parts` says how; vectors, odd and wide integers, bytes, narrow floats,
//!    the width and alignment of accesses, calls;
//! 3. `operations`: what the target has no instruction for, on legal types.
//!
//! At the beginning `contract` puts products into the sums that use them; at the end `narrow_words` computes single words from words, `bit_fields` moves fields at once, `moved_masks` puts masks and shifts in the cheaper order, and `carry` makes chains of sums that were written with comparisons: what sums of wide numbers become above.
//!
//! `features` is what a target can do, `helpers` the functions that expansions call. Nothing here knows registers or
//! PTX statements, except the few target operations that have no generic spelling (carries, byte permutation).

mod atomics;
mod bit_fields;
mod bits;
mod boundary;
mod byte_words;
mod carry;
mod clamped_packs;
mod cleanup;
mod context;
mod contract;
mod control;
mod convergent;
mod convert;
mod divergence;
mod features;
mod float_class;
mod float_ops;
mod fold;
mod helpers;
mod int_ops;
mod lanes;
mod memory;
mod memory_intrinsics;
mod moved_masks;
mod narrow_float;
mod narrow_int;
mod narrow_words;
mod operations;
mod parts;
mod predicates;
mod short_pairs;
mod stochastic;
mod types;
mod vectors;
mod wide_int;

use cranelift_entity::EntityRef;
use ptxc_ir::{Flags, FuncId, FuncKind, Function, Inst, Module, Opcode, Signature, Type};
use ptxc_targets::{PtxVersion, Target};

use crate::error::SelectError;
use crate::rules::{Pattern, Remark};
use context::Context;
use features::Features;
use helpers::Helpers;

/// Whether a float operation with these flags on a scalar or a pair in one register, or an operation on a pair of i16, is one instruction of the target, or
/// for `fptrunc` to a pair of halves, whether both lanes are converted at once; for `clmul`, whether there is an
/// instruction for it. Instructions of a version of PTX later than `newest` do not count where they have substitutes.
pub fn has_operation(target: Target, newest: Option<PtxVersion>, op: Opcode, flags: Flags, ty: Type) -> bool {
    let features = Features::new(target, newest);
    match op {
        Opcode::Fptrunc => ty.lanes() == 2 && features.packs_halves(flags),
        Opcode::Clmul => features.carryless,
        // The machines from sm_80 on do it in one instruction.
        Opcode::MatchAll => features.redux,
        _ if ty.is_vector() && ty.scalar() == Type::I16 => ty.lanes() == 2 && features.pair_op_16(op),
        _ => features.legal_value(ty) && features.float_op(op, flags, ty),
    }
}

/// Rewrites a verified module into legal IR for the target. Where an instruction of a version of PTX later than `newest`
/// would do, and there is another way, that is taken; `None`: every version may be written.
///
/// # Errors
/// What the target cannot do at all, one error per place.
pub fn legalize(module: &mut Module, target: Target, newest: Option<PtxVersion>) -> Result<(), Vec<SelectError>> {
    legalize_with_remarks(module, target, newest, None)
}

/// [`legalize`] that tells how it expanded which instruction, by the names of [`crate::rules`].
///
/// # Errors
/// As [`legalize`].
pub fn legalize_with_remarks(
    module: &mut Module,
    target: Target,
    newest: Option<PtxVersion>,
    mut remarks: Option<&mut Vec<Remark>>,
) -> Result<(), Vec<SelectError>> {
    let features = Features::new(target, newest);
    legalize_signatures(module);
    let mut helpers = Helpers::default();
    let mut errors = Vec::new();
    let mut next = 0;
    // Helpers are appended while functions are legalized, and are legalized in their turn.
    while next < module.funcs.len() {
        let id = FuncId::new(next);
        next += 1;
        if module.funcs[id].is_declaration() {
            continue;
        }
        let placeholder = Function::new(String::new(), FuncKind::Func, Signature::default());
        let func = std::mem::replace(&mut module.funcs[id], placeholder);
        let Legalized { func, errors: found, expanded } =
            legalize_function(module, func, features, &mut helpers, remarks.is_some());
        module.funcs[id] = func;
        errors.extend(found);
        if let Some(remarks) = &mut remarks {
            remarks.extend(expanded.iter().map(|(inst, row)| Remark { func: id, inst: *inst, rule: row.rule() }));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn legalize_signatures(module: &mut Module) {
    for id in module.func_ids() {
        let mut sig = std::mem::take(&mut module.funcs[id].sig);
        boundary::legalize_signature(module, &mut sig);
        module.funcs[id].sig = sig;
        let mut indirect = std::mem::take(&mut module.funcs[id].dfg.signatures);
        for (_, sig) in indirect.iter_mut() {
            boundary::legalize_signature(module, sig);
        }
        module.funcs[id].dfg.signatures = indirect;
    }
}

/// What became of a function.
struct Legalized {
    func: Function,
    errors: Vec<SelectError>,
    expanded: Vec<(Option<Inst>, Pattern)>,
}

fn legalize_function(
    module: &mut Module,
    func: Function,
    features: Features,
    helpers: &mut Helpers,
    remarks: bool,
) -> Legalized {
    let refused = if features.independent_threads { Vec::new() } else { divergence::divergent_barriers(module, &func) };
    let mut func = func;
    let mut formed: Vec<(Inst, Pattern)> = Vec::new();
    contract::contract_products(&mut func, &features, &mut formed);
    let mut context = Context::new(module, func, features, helpers);
    context.errors.extend(refused);
    context.expanded = remarks.then(Vec::new);
    context.expand_control();
    let order = cleanup::reverse_postorder(&context.func);
    cleanup::remove_unreachable(&mut context.func, &order);
    context.legalize_types(&order);
    context.legalize_operations();
    cleanup::resolve_and_sweep(&mut context.func);
    if features.saturated_packs {
        clamped_packs::form_clamped_packs(&mut context.func, &mut formed);
    }
    narrow_words::narrow(&mut context.func, &mut formed);
    // ptxas takes `bfi` apart from sm_70 on.
    let fields = features.dialect.target.sm() < 70;
    if !fields {
        bit_fields::move_fields(&mut context.func, &mut formed);
    }
    moved_masks::move_masks(&mut context.func, fields, &mut formed);
    carry::form_chains(&mut context.func, &mut formed);
    let mut expanded = context.expanded.unwrap_or_default();
    if remarks {
        expanded.extend(formed.into_iter().map(|(inst, pattern)| (Some(inst), pattern)));
    }
    Legalized { func: context.func, errors: context.errors, expanded }
}
