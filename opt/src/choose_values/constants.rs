//! Switches whose constants are too large to be computed: tables in constant memory.

use ptxc_ir::{
    AggDef, Extra, FuncKind, Function, Global, GlobalId, GlobalKind, Init, Inst, Linkage, MemType, Module, Space, Type,
};
use smallvec::SmallVec;

use super::table::{Entries, Form, Index};
use super::{Choice, Default, MOST_CHOSEN, MOST_NUMBERS, compute};

/// Fewest numbers worth a table, most places for each of them, and most places.
const FEWEST: usize = 4;
const PLACES_PER_NUMBER: u64 = 4;
const MOST_PLACES: u64 = 1024;
/// Constant memory has 64 KiB, which other modules of a program share: bytes of it that tables take, and that may be taken
/// already.
const MOST_BYTES: u64 = 8 << 10;
const MOST_TAKEN: u64 = 32 << 10;

/// The pass.
pub fn tabulate_choices(module: &mut Module) -> bool {
    let constant = |global: &&Global| matches!(global.kind, GlobalKind::Variable(Space::Const));
    let sizes = module.globals.values().filter(constant).map(|global| module.layout_of(global.ty).size);
    if sizes.fold(0, u64::saturating_add) > MOST_TAKEN {
        return false;
    }
    let mut left = MOST_BYTES;
    let mut changed = false;
    let ids: Vec<_> = module.funcs.keys().collect();
    for id in ids {
        // The function is taken out of the module while variables are added to it.
        let placeholder = Function::new("", FuncKind::Func, module.funcs[id].sig.clone());
        let mut func = std::mem::replace(&mut module.funcs[id], placeholder);
        let terminators: Vec<Inst> = func.layout.blocks().filter_map(|block| func.layout.last_inst(block)).collect();
        for inst in terminators {
            if matches!(func.dfg.insts[inst].extra, Extra::Switch(_)) {
                changed |= tabulate(module, &mut func, inst, &mut left).is_some();
            }
        }
        module.funcs[id] = func;
    }
    changed
}

/// Replaces a switch by loads.
fn tabulate(module: &mut Module, func: &mut Function, inst: Inst, left: &mut u64) -> Option<()> {
    let choice = Choice::of(func, inst)?;
    let chosen: SmallVec<[usize; 4]> = (0..choice.cases[0].1.len()).filter(|at| choice.differs(*at)).collect();
    if chosen.is_empty() || chosen.len() > MOST_CHOSEN || choice.cases.len() < FEWEST {
        return None;
    }
    // A load that is not wanted costs more than the branch around it.
    if matches!(choice.default, Default::Elsewhere(_)) && chosen.len() > 1 {
        return None;
    }
    let index = Index::of(func, &choice, MOST_PLACES.min(PLACES_PER_NUMBER * choice.cases.len() as u64))?;
    // What needs no table is decided first, so that nothing is made in vain.
    let mut wanted: SmallVec<[Option<Entries>; 4]> = SmallVec::new();
    let mut bytes = 0;
    for at in &chosen {
        if index.span <= MOST_NUMBERS && Form::of(func, &choice, &index, *at).is_some() {
            wanted.push(None);
            continue;
        }
        let entries = Entries::of(func, &choice, &index, *at).filter(|entries| is_element(entries.ty))?;
        bytes += (entries.table.len() as u64 + 1) * entries.ty.size();
        wanted.push(Some(entries));
    }
    *left = left.checked_sub(bytes)?;
    let mut forms: SmallVec<[Form; 4]> = SmallVec::new();
    for (at, entries) in chosen.iter().zip(wanted) {
        forms.push(match entries {
            None => Form::of(func, &choice, &index, *at)?,
            Some(entries) => Form::Loaded { clamped: entries.default.is_some(), table: array(module, func, &entries)? },
        });
    }
    compute(func, inst, &choice, &index, &chosen, &forms);
    Some(())
}

/// Types that memory has as registers have them.
fn is_element(ty: Type) -> bool {
    matches!(ty, Type::I8 | Type::I16 | Type::I32 | Type::I64 | Type::F16 | Type::BF16 | Type::F32 | Type::F64)
}

/// Makes an array of constants.
fn array(module: &mut Module, func: &Function, entries: &Entries) -> Option<GlobalId> {
    let all = entries.table.iter().copied().chain(entries.default.map(Some));
    let values: Vec<Init> = all.map(|bits| Init::Bits(bits.unwrap_or(0))).collect();
    let ty = module.aggregate(AggDef::Array { elem: MemType::Value(entries.ty), len: values.len() as u64 })?;
    let mut number = module.globals.len();
    loop {
        let global = Global {
            name: format!("{}.table{number}", func.name),
            kind: GlobalKind::Variable(Space::Const),
            ty: MemType::Agg(ty),
            linkage: Linkage::Internal,
            align: entries.ty.size(),
            init: Some(Init::List(values.clone())),
            managed: false,
        };
        match module.add_global(global) {
            Ok(id) => return Some(id),
            Err(_) => number += 1,
        }
    }
}
