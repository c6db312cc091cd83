//! Runs a function on many values: as it is written in the interpreter, after rules in the emulator.

use std::fmt::Write as _;

use ptxc::ir::{FloatKind, Function as Body, MemType, Module, Type};
use ptxc_interp::launch::{Argument, Buffer, Launch, Options as Limits, Outcome};
use ptxc_interp::{ir, ptx};

use crate::compile;
use crate::functions::{File, Function};
use crate::inputs;

/// Threads of a block.
const BLOCK: u32 = 128;

/// The functions of a file, each with a kernel that calls it, in both forms.
pub struct Compiled {
    module: Module,
    program: ptx::Program,
}

/// What was tried.
pub struct Summary {
    /// How many values gave a defined result.
    pub defined: u64,
    /// They are all there are.
    pub exhaustive: bool,
}

/// Types of the parameters and of the result of a function that can be called here.
fn types(func: &Body) -> Option<(Vec<Type>, Type)> {
    let scalar = |ty: &MemType| match ty {
        MemType::Value(ty) => Some(*ty).filter(|ty| inputs::is_plain(*ty)),
        _ => None,
    };
    let params = func.sig.params.iter().map(|param| scalar(&param.ty)).collect::<Option<Vec<_>>>()?;
    Some((params, scalar(func.sig.ret.as_ref()?)?))
}

/// Bytes of an element in a buffer.
fn size(ty: Type) -> usize {
    ty.lanes() as usize * (ty.scalar_bits() as usize).div_ceil(8)
}

/// A kernel that calls a function, thread by thread on elements of buffers.
fn kernel(name: &str, params: &[Type], result: Type) -> String {
    let mut out = format!("\nkernel @run_{name}(");
    for index in 0..params.len() {
        let _ = write!(out, "%in{index}: ptr<global>, ");
    }
    out.push_str("%out: ptr<global>) {\nentry:\n");
    out.push_str("  %tid = sreg.tid.x\n  %block = sreg.ctaid.x\n  %size = sreg.ntid.x\n");
    out.push_str("  %before = mul i32 %block, %size\n  %at = add i32 %before, %tid\n");
    let memory = |ty: Type| if ty == Type::I1 { "i8".to_owned() } else { ty.to_string() };
    let mut arguments = Vec::new();
    for (index, ty) in params.iter().enumerate() {
        let memory = memory(*ty);
        let _ = writeln!(out, "  %p{index} = gep [{} x i8], %in{index}, %at", size(*ty));
        let _ = writeln!(out, "  %v{index} = load {memory}, %p{index}, align {}", align(*ty));
        if *ty == Type::I1 {
            let _ = writeln!(out, "  %a{index} = trunc i8 %v{index} to i1");
        }
        arguments.push(format!("%{}{index}", if *ty == Type::I1 { "a" } else { "v" }));
    }
    let _ = writeln!(out, "  %r = call @{name}({})", arguments.join(", "));
    let value = if result == Type::I1 { "%wide" } else { "%r" };
    if result == Type::I1 {
        out.push_str("  %wide = zext i1 %r to i8\n");
    }
    let _ = writeln!(out, "  %q = gep [{} x i8], %out, %at", size(result));
    let _ = writeln!(out, "  store {} {value}, %q, align {}\n  ret\n}}", memory(result), align(result));
    out
}

/// The largest power of two that elements are surely aligned to.
fn align(ty: Type) -> usize {
    1 << size(ty).trailing_zeros().min(4)
}

impl Compiled {
    /// Reads and compiles a file's functions.
    pub fn new(file: &File) -> Result<Compiled, String> {
        let mut text = file.text.clone();
        for (_, func) in compile::read(&file.text)?.funcs.iter() {
            if let Some((params, result)) = types(func) {
                text.push_str(&kernel(&func.name, &params, result));
            }
        }
        let ptx = compile::ptx(file, &text)?;
        if let Some(folder) = std::env::var_os("PTXC_RULES_DUMP") {
            let path = std::path::Path::new(&folder).join(&file.name).with_extension("ptx");
            std::fs::write(path, &ptx).map_err(|error| error.to_string())?;
        }
        let program = ptx::Program::read(&ptx).map_err(|error| error.to_string())?;
        Ok(Compiled { module: compile::read(&text)?, program })
    }

    /// Compares both forms of a function. `None` where it cannot be called here.
    pub fn check(&self, function: &Function) -> Result<Option<Summary>, String> {
        if function.skip.is_some() {
            return Ok(None);
        }
        let found = self.module.funcs.iter().find(|(_, func)| func.name == function.name);
        let (_, func) = found.ok_or("there is no such function")?;
        let Some((params, result)) = types(func) else {
            return Err("its types cannot be put into buffers; say `skip` and why".to_owned());
        };
        let (count, columns, exhaustive) = inputs::arguments(&params, &function.name);
        let count = count.next_multiple_of(BLOCK as usize);
        let mut buffers: Vec<Buffer> =
            params.iter().zip(&columns).map(|(ty, column)| input(*ty, column, count)).collect();
        buffers.push(Buffer::output("out", count * size(result)));
        let launch = |name: &str| {
            let arguments = (0..buffers.len()).map(Argument::buffer).collect();
            Launch::linear(format!("run_{name}"), count as u32 / BLOCK, BLOCK, arguments)
        };
        let limits = Limits { races: false, ..Limits::default() };
        let mut expected = buffers.clone();
        let reference = function.equals.as_ref().unwrap_or(&function.name);
        let outcome = ir::run(&self.module, &launch(reference), &mut expected, &limits);
        let outcome = outcome.map_err(|failure| format!("interpreter: {failure}"))?;
        let mut actual = buffers.clone();
        let emulated = ptx::run(&self.program, &launch(&function.name), &mut actual, &limits);
        emulated.map_err(|failure| format!("emulator: {failure}"))?;
        let mut poison = vec![false; count * size(result)];
        mark(&outcome, buffers.len() - 1, &mut poison);
        let [expected, actual] =
            [expected, actual].map(|mut buffers| buffers.pop().map(|b| b.bytes).unwrap_or_default());
        compare(function, &params, &columns, result, [&expected, &actual], &poison)
            .map(|defined| Some(Summary { defined, exhaustive }))
    }
}

/// A buffer of the values of a parameter; what is left over repeats zero.
fn input(ty: Type, column: &[u64], count: usize) -> Buffer {
    let bytes = size(ty) / ty.lanes() as usize;
    let mut data: Vec<u8> = column.iter().flat_map(|value| value.to_le_bytes()[..bytes].to_vec()).collect();
    data.resize(count * size(ty), 0);
    Buffer::new("in", data)
}

/// Marks the bytes of a buffer that end as poison.
fn mark(outcome: &Outcome, buffer: usize, poison: &mut [bool]) {
    for (index, range) in &outcome.poison {
        if *index == buffer {
            poison[range.start as usize..range.end as usize].fill(true);
        }
    }
}

/// Compares results lane by lane; gives how many are defined.
fn compare(
    function: &Function,
    params: &[Type],
    columns: &[Vec<u64>],
    result: Type,
    [expected, actual]: [&[u8]; 2],
    poison: &[bool],
) -> Result<u64, String> {
    let lane = size(result) / result.lanes() as usize;
    let mut defined = 0;
    for (index, ((a, b), poison)) in expected.chunks(lane).zip(actual.chunks(lane)).zip(poison.chunks(lane)).enumerate()
    {
        if poison.contains(&true) {
            continue;
        }
        let [a, b] = [a, b].map(|bytes| bytes.iter().rev().fold(0, |n, byte| n << 8 | u64::from(*byte)));
        let call = index / result.lanes() as usize;
        let is_call = columns.first().is_none_or(|column| call < column.len() / params[0].lanes() as usize);
        if !is_call {
            break;
        }
        defined += 1;
        if !same(result, a, b, function.tolerance) {
            let arguments: Vec<String> = params
                .iter()
                .zip(columns)
                .map(|(ty, column)| {
                    let lanes = ty.lanes() as usize;
                    format!("{:#x?}", &column[call * lanes..(call + 1) * lanes]).replace(['\n', ' '], "")
                })
                .collect();
            return Err(format!("of {} it makes {b:#x} instead of {a:#x}", arguments.join(", ")));
        }
    }
    Ok(defined)
}

/// Whether two results are the same: any NaN is any other.
fn same(ty: Type, a: u64, b: u64, tolerance: f64) -> bool {
    if a == b {
        return true;
    }
    let Some([x, y]) = ty.float_kind().and_then(|kind| Some([number(kind, a)?, number(kind, b)?])) else {
        return false;
    };
    if x.is_nan() || y.is_nan() {
        return x.is_nan() && y.is_nan();
    }
    tolerance > 0.0 && ((x - y).abs() <= tolerance * x.abs().max(y.abs()) || (x - y).abs() <= tolerance * 1e-30)
}

/// The number that bits stand for.
fn number(kind: FloatKind, bits: u64) -> Option<f64> {
    match kind {
        FloatKind::F64 => Some(f64::from_bits(bits)),
        FloatKind::F32 | FloatKind::Tf32 => Some(f32::from_bits(bits as u32).into()),
        FloatKind::Bf16 => Some(f32::from_bits((bits as u32) << 16).into()),
        FloatKind::F16 => {
            let (exponent, fraction) = (bits >> 10 & 31, (bits & 0x3ff) as f64);
            let magnitude = match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                e => (1.0 + fraction / 1024.0) * 2f64.powi(e as i32 - 15),
            };
            Some(if bits >> 15 & 1 == 1 { -magnitude } else { magnitude })
        }
        _ => None,
    }
}
