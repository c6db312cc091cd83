//! Variables: order, types and initializers.
//!
//! An initializer that holds the address of another variable needs that variable's declaration before it, so
//! variables are printed after what they point to. Where they point to each other, some are declared `.extern` first.
//! PTX has no such declaration for variables of internal linkage: a cycle of these alone is refused.

use crate::error::EmitError;
use crate::names::Names;
use crate::signature::linkage;
use crate::survey::{Meaning, Survey};
use crate::text::Text;
use cranelift_entity::{EntitySet, SecondaryMap};
use ptxc_mir::{Global, GlobalId, GlobalInit, Linkage, Module, Relocation, Space, SymId};

/// Bytes of an address.
const ADDRESS: u64 = 8;

/// Prints all variables, textures, surfaces and samplers.
pub(crate) fn print(text: &mut Text, module: &Module, names: &Names, survey: &Survey) -> Result<(), EmitError> {
    for opaque in &module.opaques {
        linkage(text, opaque.linkage);
        text.push(".global .");
        text.push(opaque.kind.text());
        text.char(' ');
        text.push(names.get(opaque.symbol));
        text.push(";\n");
    }
    let order = Order::of(module)?;
    for id in order.forward.iter() {
        declare(text, &module.globals[id], Linkage::Extern, names);
        text.push(";\n");
    }
    for &id in &order.order {
        let global = &module.globals[id];
        check(module, global)?;
        declare(text, global, global.linkage, names);
        if let Some(init) = &global.init {
            Initializer { names, survey, init }.print(text, needs_masks(global));
        }
        text.push(";\n");
    }
    Ok(())
}

/// Whether an initializer holds addresses that cannot be elements of a `.u64` array, and must be spelled byte by byte
/// with the mask operator (PTX ISA, 5.4.4).
pub(crate) fn needs_masks(global: &Global) -> bool {
    match (&global.init, global.size) {
        (Some(init), Some(size)) if !init.relocations.is_empty() => {
            size % ADDRESS != 0
                || u64::from(global.align) % ADDRESS != 0
                || init.relocations.iter().any(|r| r.offset % ADDRESS != 0)
        }
        _ => false,
    }
}

fn check(module: &Module, global: &Global) -> Result<(), EmitError> {
    let refuse = |message: &str| {
        let name = module.symbols.name(global.symbol).to_owned();
        Err(EmitError::Variable { name, message: message.to_owned() })
    };
    if !global.align.is_power_of_two() {
        return refuse("the alignment is not a power of two");
    }
    if global.space == Space::Local {
        return refuse("PTX has no local variables outside functions");
    }
    if global.managed && global.space != Space::Global {
        return refuse("only variables in global space can be managed");
    }
    let Some(init) = &global.init else {
        return match global.size {
            None if global.linkage != Linkage::Extern => refuse("only an extern variable may leave its size open"),
            _ => Ok(()),
        };
    };
    let Some(size) = global.size else {
        return refuse("an initialized variable needs a size");
    };
    if global.space == Space::Shared {
        return refuse("variables in shared space cannot be initialized");
    }
    if matches!(global.linkage, Linkage::Extern | Linkage::Common) {
        return refuse("an extern or common variable cannot be initialized");
    }
    if init.bytes.len() as u64 > size {
        return refuse("the initializer is longer than the variable");
    }
    let mut end = 0;
    for relocation in &init.relocations {
        if relocation.offset < end || relocation.offset.saturating_add(ADDRESS) > size {
            return refuse("an address in the initializer overlaps another or exceeds the variable");
        }
        end = relocation.offset + ADDRESS;
    }
    Ok(())
}

/// `.visible .global .align 4 .b8 x[12]`
fn declare(text: &mut Text, global: &Global, seen_as: Linkage, names: &Names) {
    linkage(text, seen_as);
    text.char('.');
    text.push(global.space.text());
    if global.managed {
        text.push(" .attribute(.managed)");
    }
    text.push(" .align ");
    text.unsigned(u64::from(global.align));
    let has_addresses = global.init.as_ref().is_some_and(|i| !i.relocations.is_empty());
    let (ty, width) = match (has_addresses, needs_masks(global)) {
        (true, false) => (" .u64 ", ADDRESS),
        (true, true) => (" .u8 ", 1),
        _ => (" .b8 ", 1),
    };
    text.push(ty);
    text.push(names.get(global.symbol));
    text.char('[');
    if let Some(size) = global.size {
        // An array of no elements is incomplete in PTX; nobody can tell it from one of one element.
        text.unsigned((size / width).max(1));
    }
    text.char(']');
}

struct Initializer<'a> {
    names: &'a Names,
    survey: &'a Survey,
    init: &'a GlobalInit,
}

impl Initializer<'_> {
    fn print(&self, text: &mut Text, masks: bool) {
        let relocations = &self.init.relocations;
        let used = self.init.bytes.iter().rposition(|&b| b != 0).map_or(0, |at| at as u64 + 1);
        // What is left out at the end is zero.
        let end = relocations.last().map_or(used, |r| used.max(r.offset + ADDRESS));
        if end == 0 {
            return;
        }
        text.push(" = {");
        if relocations.is_empty() || masks {
            self.bytes(text, end);
        } else {
            self.words(text, end);
        }
        text.char('}');
    }

    fn bytes(&self, text: &mut Text, end: u64) {
        let mut relocations = self.init.relocations.iter().peekable();
        let mut at = 0;
        while at < end {
            if at > 0 {
                text.push(", ");
            }
            if let Some(relocation) = relocations.next_if(|r| r.offset == at) {
                for byte in 0..ADDRESS {
                    text.push(if byte > 0 { ", 0x" } else { "0x" });
                    text.hex(0xff << (8 * byte), 2 * (byte as u32 + 1));
                    text.char('(');
                    self.address(text, relocation);
                    text.char(')');
                }
                at += ADDRESS;
            } else {
                text.unsigned(u64::from(self.init.bytes.get(at as usize).copied().unwrap_or(0)));
                at += 1;
            }
        }
    }

    fn words(&self, text: &mut Text, end: u64) {
        let mut relocations = self.init.relocations.iter().peekable();
        let mut at = 0;
        while at < end {
            if at > 0 {
                text.push(", ");
            }
            if let Some(relocation) = relocations.next_if(|r| r.offset == at) {
                self.address(text, relocation);
            } else {
                let mut word = [0u8; ADDRESS as usize];
                for (to, from) in word.iter_mut().zip(self.init.bytes.iter().skip(at as usize)) {
                    *to = *from;
                }
                text.unsigned(u64::from_le_bytes(word));
            }
            at += ADDRESS;
        }
    }

    /// `generic(x)+8`. Functions have one address only, and PTX takes no `generic` on them.
    fn address(&self, text: &mut Text, relocation: &Relocation) {
        let function = matches!(self.survey.meaning[relocation.symbol], Meaning::Function(_) | Meaning::Declaration(_));
        let generic = relocation.generic && !function;
        text.push(if generic { "generic(" } else { "" });
        text.push(self.names.get(relocation.symbol));
        text.push(if generic { ")" } else { "" });
        text.offset(relocation.addend);
    }
}

/// The order of printing.
struct Order {
    order: Vec<GlobalId>,
    /// Variables that are pointed to before they are printed.
    forward: EntitySet<GlobalId>,
}

impl Order {
    fn of(module: &Module) -> Result<Order, EmitError> {
        let mut by_symbol: SecondaryMap<SymId, Option<GlobalId>> = SecondaryMap::new();
        for (id, global) in module.globals.iter() {
            by_symbol[global.symbol] = Some(id);
        }
        let pointed_to = |id: GlobalId, n: usize| {
            let init = module.globals[id].init.as_ref()?;
            init.relocations.get(n).map(|r| by_symbol[r.symbol])
        };
        let is_internal = |id: GlobalId| module.globals[id].linkage == Linkage::Internal;
        let order = match targets_first(module, pointed_to) {
            Ok(order) => order,
            // There are cycles. Only internal variables must come first now; the others can be declared.
            Err(_) => {
                let internal = |id: GlobalId, n: usize| pointed_to(id, n).map(|t| t.filter(|&t| is_internal(t)));
                targets_first(module, internal).map_err(|cycle| {
                    let name = |id: &GlobalId| module.symbols.name(module.globals[*id].symbol).to_owned();
                    EmitError::Cycle(cycle.iter().map(name).collect::<Vec<_>>().join("` -> `"))
                })?
            }
        };
        let mut printed: EntitySet<GlobalId> = EntitySet::new();
        let mut forward = EntitySet::new();
        for &id in &order {
            for target in (0..).map_while(|n| pointed_to(id, n)).flatten() {
                // `ptxas` before 13 knows a variable in its own initializer only if it was declared.
                let known = if target == id { is_internal(id) } else { printed.contains(target) };
                if !known {
                    forward.insert(target);
                }
            }
            printed.insert(id);
        }
        Ok(Order { order, forward })
    }
}

/// Variables in the module's order, except that those that `pointed_to` yields come before. A variable may point to
/// itself. Fails with the members of a cycle, the first one repeated at the end.
fn targets_first(
    module: &Module,
    pointed_to: impl Fn(GlobalId, usize) -> Option<Option<GlobalId>>,
) -> Result<Vec<GlobalId>, Vec<GlobalId>> {
    let mut order = Vec::with_capacity(module.globals.len());
    let mut entered: EntitySet<GlobalId> = EntitySet::new();
    let mut done: EntitySet<GlobalId> = EntitySet::new();
    let mut stack: Vec<(GlobalId, usize)> = Vec::new();
    for root in module.globals.keys() {
        if entered.insert(root) {
            stack.push((root, 0));
        }
        while let Some((id, next)) = stack.last_mut() {
            let id = *id;
            let Some(target) = pointed_to(id, *next) else {
                done.insert(id);
                order.push(id);
                stack.pop();
                continue;
            };
            *next += 1;
            let Some(target) = target.filter(|&t| t != id) else { continue };
            if entered.insert(target) {
                stack.push((target, 0));
            } else if !done.contains(target) {
                let from = stack.iter().position(|&(id, _)| id == target).unwrap_or(0);
                let mut cycle: Vec<GlobalId> = stack[from..].iter().map(|&(id, _)| id).collect();
                cycle.push(target);
                return Err(cycle);
            }
        }
    }
    Ok(order)
}
