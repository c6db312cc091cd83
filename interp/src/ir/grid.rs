//! A launch: globals and parameters in memory.

use cranelift_entity::{EntityRef, SecondaryMap};
use ptxc_ir::{AggDef, FuncId, FuncKind, GlobalKind, Init, Linkage, MemType, Module, Space, Symbol};

use super::decode::{Addresses, decode};
use super::interpreter::Interpreter;
use super::program::Code;
use crate::launch::{Buffer, Failure, Launch, Options, Outcome};
use crate::machine::grid::failure;
use crate::machine::variables::{self, Variable};
use crate::machine::{self, buffers, function_address};
use crate::memory::{Block, Fault, Memory, to_generic};

/// Runs a launch to its end; the buffers are what the launch's arguments point into.
///
/// # Errors
/// What is wrong with the launch, or the first error of the program with its place and thread.
pub fn run(module: &Module, launch: &Launch, buffers: &mut [Buffer], options: &Options) -> Result<Outcome, Failure> {
    launch.check().map_err(failure)?;
    let Some(Symbol::Func(kernel)) = module.symbol(&launch.kernel) else {
        return Err(failure(format!("there is no kernel @{}", launch.kernel)));
    };
    let func = &module.funcs[kernel];
    if func.kind != FuncKind::Kernel || func.is_declaration() {
        return Err(failure(format!("@{} is no kernel with a body", launch.kernel)));
    }
    if func.attrs.reqntid.is_some_and(|size| size != launch.block) {
        return Err(failure(format!(
            "@{} needs blocks of {:?} threads",
            launch.kernel,
            func.attrs.reqntid.unwrap_or_default()
        )));
    }
    let mut memory = Memory::new(options.fill, options.races);
    let (addresses, shared) = globals(module, launch, &mut memory).map_err(failure)?;
    let starts = buffers::place(buffers, &mut memory)?;
    let (codes, code_of) = decode_all(module, &addresses);
    let arguments = parameters(module, kernel, launch, &starts, &mut memory).map_err(failure)?;
    let Some(kernel) = code_of[kernel.index()] else { return Err(failure("the kernel has no body")) };
    let interpreter = Interpreter { module, codes, code_of, kernel, arguments };
    let mut outcome = machine::grid::run(&interpreter, launch, options, &mut memory, &shared)?;
    outcome.poison = buffers::poison(&starts, &memory);
    buffers::fetch(buffers, &starts, &memory);
    Ok(outcome)
}

fn decode_all(module: &Module, addresses: &Addresses) -> (Vec<Code>, Vec<Option<usize>>) {
    let mut codes: Vec<Code> = Vec::new();
    let mut code_of = Vec::new();
    let mut place = 0;
    for id in module.func_ids() {
        if module.funcs[id].is_declaration() {
            code_of.push(None);
            continue;
        }
        code_of.push(Some(codes.len()));
        let code = decode(module, id, addresses, place);
        place += code.steps.len() as u32;
        codes.push(code);
    }
    (codes, code_of)
}

/// Gives every global its address and its initial contents; lays out shared memory.
fn globals(module: &Module, launch: &Launch, memory: &mut Memory) -> Result<(Addresses, Block), String> {
    let places = module.globals.values().map(|global| {
        let size = module.layout_of(global.ty).size;
        let space = match global.kind {
            GlobalKind::Variable(space) => space,
            _ => Space::Global,
        };
        let dynamic = space == Space::Shared && global.linkage == Linkage::Extern;
        Variable { name: &global.name, space, size, align: global.align, dynamic }
    });
    let (placed, shared) = variables::place(places, launch.dynamic_shared, memory)?;
    let mut addresses: Addresses = SecondaryMap::new();
    for (id, address) in module.globals.keys().zip(placed) {
        addresses[id] = address;
    }
    for (id, global) in module.globals.iter() {
        let space = match global.kind {
            GlobalKind::Variable(Space::Shared) => continue,
            GlobalKind::Variable(Space::Const) => Space::Const,
            _ => Space::Global,
        };
        if global.linkage == Linkage::Extern {
            continue;
        }
        let size = module.layout_of(global.ty).size as usize;
        // Variables without an initializer are zero.
        let mut bytes = vec![0; size];
        if let Some(init) = &global.init {
            initial(module, &addresses, global.ty, init, &mut bytes)?;
        }
        memory.initialize(space, addresses[id], &bytes).map_err(|fault: Fault| fault.to_string())?;
    }
    Ok((addresses, shared))
}

/// Writes an initializer; what it leaves open is zero.
fn initial(module: &Module, addresses: &Addresses, ty: MemType, init: &Init, out: &mut [u8]) -> Result<(), String> {
    let put = |out: &mut [u8], bits: u128| out.iter_mut().zip(bits.to_le_bytes()).for_each(|(to, from)| *to = from);
    match init {
        Init::Bits(bits) => put(out, *bits),
        Init::Zero | Init::Poison => {}
        Init::Bytes(bytes) => out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
        Init::Func(func) => put(out, function_address(func.index()).into()),
        Init::Global { global, offset, generic } => {
            let space = match module.globals[*global].kind {
                GlobalKind::Variable(space) if *generic => space,
                _ => Space::Global,
            };
            put(out, to_generic(space, addresses[*global]).wrapping_add_signed(*offset).into());
        }
        Init::List(list) => {
            for (index, init) in list.iter().enumerate() {
                let (elem, offset) = match ty {
                    MemType::Value(ty) if ty.scalar_bits() == 1 => {
                        if let (Init::Bits(bits), Some(byte)) = (init, out.get_mut(index / 8)) {
                            *byte |= (*bits as u8 & 1) << (index % 8);
                        }
                        continue;
                    }
                    MemType::Value(ty) => (MemType::Value(ty.scalar()), index as u64 * ty.scalar().size()),
                    MemType::Agg(id) => {
                        let agg = module.agg(id);
                        match &agg.def {
                            AggDef::Array { elem, .. } => (*elem, index as u64 * module.layout_of(*elem).size),
                            AggDef::Struct { fields, .. } => match (fields.get(index), agg.offsets.get(index)) {
                                (Some(field), Some(offset)) => (*field, *offset),
                                _ => return Err("an initializer has too many fields".to_string()),
                            },
                        }
                    }
                };
                let size = module.layout_of(elem).size;
                let range = offset as usize..(offset + size) as usize;
                let part = out.get_mut(range).ok_or_else(|| "an initializer is too long".to_string())?;
                initial(module, addresses, elem, init, part)?;
            }
        }
    }
    Ok(())
}

/// The values of the kernel's parameters, a slot each.
fn parameters(
    module: &Module,
    kernel: FuncId,
    launch: &Launch,
    buffers_at: &[u64],
    memory: &mut Memory,
) -> Result<Vec<u64>, String> {
    let sig = &module.funcs[kernel].sig;
    if sig.params.len() != launch.arguments.len() {
        let (takes, given) = (sig.params.len(), launch.arguments.len());
        return Err(format!("@{} takes {takes} arguments, {given} are given", launch.kernel));
    }
    let mut slots = Vec::new();
    for (number, (param, argument)) in sig.params.iter().zip(&launch.arguments).enumerate() {
        let bytes = buffers::argument(argument, buffers_at)?;
        let ty = param.attrs.byval.unwrap_or(param.ty);
        let layout = module.param_layout(param);
        if layout.size != bytes.len() as u64 {
            return Err(format!("argument {number} has {} bytes, its parameter {}", bytes.len(), layout.size));
        }
        if param.attrs.byval.is_some() {
            let address = memory.allocate_param(layout.size, layout.align.max(param.attrs.align.into()));
            memory.initialize(Space::Param, address, &bytes).map_err(|fault| fault.to_string())?;
            slots.push(address);
            continue;
        }
        module.for_each_leaf(ty, 0, &mut |leaf, offset| {
            let size = leaf.scalar().size();
            for element in 0..u64::from(leaf.lanes()) {
                let at = (offset + element * size) as usize;
                let part = bytes.get(at..at + size as usize).unwrap_or_default();
                let bits = part.iter().rev().fold(0u128, |n, b| n << 8 | u128::from(*b));
                let bits = bits & super::integer::mask(leaf.scalar_bits());
                slots.push(bits as u64);
                if leaf.scalar_bits() > 64 {
                    slots.push((bits >> 64) as u64);
                }
            }
        });
    }
    Ok(slots)
}
