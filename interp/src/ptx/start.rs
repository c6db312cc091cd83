//! A launch: variables and parameters in memory, addresses into constants.

use ptxc_ir::Space;

use super::emulator::{Emulator, Template};
use super::operand::Symbol;
use super::program::{Code, Constant, Passed, Variable};
use super::read::Program;
use super::types::low_bits;
use crate::launch::{Buffer, Failure, Launch, Options, Outcome};
use crate::machine::grid::failure;
use crate::machine::{self, LANES, buffers, function_address, variables};
use crate::memory::{Block, Memory, to_generic};

/// Runs a launch to its end; the buffers are what the launch's arguments point into.
///
/// # Errors
/// What is wrong with the launch, or the first error of the program with its place and thread.
pub fn run(program: &Program, launch: &Launch, buffers: &mut [Buffer], options: &Options) -> Result<Outcome, Failure> {
    launch.check().map_err(failure)?;
    let kernel = program.functions.iter().position(|f| f.kernel && f.name == launch.kernel);
    let Some(kernel) = kernel.filter(|index| program.functions[*index].code.is_some()) else {
        return Err(failure(format!("there is no kernel `{}`", launch.kernel)));
    };
    if let Some(size) = program.functions[kernel].required_threads
        && size != launch.block
    {
        return Err(failure(format!("`{}` needs blocks of {size:?} threads", launch.kernel)));
    }
    let mut memory = Memory::new(options.fill, options.races);
    let (addresses, shared) = variables(program, launch, &mut memory).map_err(failure)?;
    let starts = buffers::place(buffers, &mut memory)?;
    let parameters = parameters(program, kernel, launch, &starts, &mut memory).map_err(failure)?;
    let resolve = |constant: &Constant| resolve(program, &addresses, parameters, constant);
    let template = |code: &Code| Template::new(code, &resolve, options.fill);
    let templates = program.functions.iter().map(|f| f.code.as_ref().map(template)).collect();
    let emulator = Emulator { program, templates, kernel };
    let outcome = machine::grid::run(&emulator, launch, options, &mut memory, &shared)?;
    buffers::fetch(buffers, &starts, &memory);
    Ok(outcome)
}

fn resolve(program: &Program, addresses: &[u64], parameters: u64, constant: &Constant) -> u64 {
    let as_asked = |space, address, generic| if generic { to_generic(space, address) } else { address };
    match *constant {
        Constant::Bits(bits) => bits,
        Constant::Function(index) => function_address(index),
        Constant::Parameter { offset, generic } => as_asked(Space::Param, parameters + offset, generic),
        Constant::Address { variable, offset, generic } => {
            let space = program.variables.get(variable).map_or(Space::Global, |v| v.space);
            let address = addresses.get(variable).copied().unwrap_or(0);
            as_asked(space, address.wrapping_add_signed(offset), generic)
        }
    }
}

/// Gives every variable its address and its initial contents; lays out shared memory.
fn variables(program: &Program, launch: &Launch, memory: &mut Memory) -> Result<(Vec<u64>, Block), String> {
    let places = program.variables.iter().map(|v| {
        let Variable { ref name, space, size, align, dynamic, .. } = *v;
        variables::Variable { name, space, size, align, dynamic }
    });
    let (addresses, shared) = variables::place(places, launch.dynamic_shared, memory)?;
    for (variable, address) in program.variables.iter().zip(&addresses) {
        if variable.space == Space::Shared || variable.external || variable.size == 0 {
            continue;
        }
        let bytes = contents(program, variable, &addresses);
        memory.initialize(variable.space, *address, &bytes).map_err(|fault| fault.to_string())?;
    }
    Ok((addresses, shared))
}

/// The initial contents of a variable; what its initializer leaves open is zero.
fn contents(program: &Program, variable: &Variable, addresses: &[u64]) -> Vec<u8> {
    let mut bytes = variable.bytes.clone();
    bytes.resize(variable.size as usize, 0);
    for address in &variable.addresses {
        let value = match address.symbol {
            Symbol::Function(index) => function_address(index),
            Symbol::Variable(index, space) => {
                let start = addresses.get(index).copied().unwrap_or(0);
                let space = program.variables.get(index).map_or(space, |v| v.space);
                if address.generic { to_generic(space, start) } else { start }
            }
            Symbol::Frame(_) | Symbol::Parameter(_) => 0,
        };
        let value = value.wrapping_add_signed(address.offset) >> address.shift.min(63);
        let at = address.at as usize;
        let to = bytes.get_mut(at..at + address.size as usize).unwrap_or_default();
        to.iter_mut().zip(value.to_le_bytes()).for_each(|(to, from)| *to = from);
    }
    bytes
}

/// Puts the arguments into parameter memory; gives its address.
fn parameters(
    program: &Program,
    kernel: usize,
    launch: &Launch,
    starts: &[u64],
    memory: &mut Memory,
) -> Result<u64, String> {
    let function = &program.functions[kernel];
    let (takes, given) = (function.parameters.len(), launch.arguments.len());
    if takes != given {
        return Err(format!("`{}` takes {takes} arguments, {given} are given", launch.kernel));
    }
    let (size, align) = function.block;
    let base = memory.allocate_param(size, align);
    for (number, (parameter, argument)) in function.parameters.iter().zip(&launch.arguments).enumerate() {
        let bytes = buffers::argument(argument, starts)?;
        let Passed::Bytes(offset, size) = *parameter else {
            return Err(format!("parameter {number} of `{}` is no memory", launch.kernel));
        };
        if size != bytes.len() as u64 {
            return Err(format!("argument {number} has {} bytes, its parameter {size}", bytes.len()));
        }
        if size > 0 {
            memory.initialize(Space::Param, base + offset, &bytes).map_err(|fault| fault.to_string())?;
        }
    }
    Ok(base)
}

impl Template {
    /// The slots of a function when it is entered: registers hold a pattern.
    fn new(code: &Code, resolve: &dyn Fn(&Constant) -> u64, fill: u8) -> Template {
        let pattern = u64::from_le_bytes([fill; 8]);
        let registers = code.widths.iter().map(|width| pattern & low_bits(*width));
        let constants = code.constants.iter().map(resolve);
        Template { slots: registers.chain(constants).map(|value| [value; LANES]).collect() }
    }
}
