//! Every scalar operation on a GPU against its meaning on the host: one kernel an operation, one module a family.
//!
//! A kernel applies one operation to arrays of inputs, one element a thread. The inputs are all combinations of values
//! at which operations tend to be wrong, then random ones. The meanings are written from `ir/LANGUAGE.md`; results that
//! it leaves open (poison, undefined behaviour) are not compared.

mod conversions;
mod floats;
mod integers;
mod memory;
mod vectors;

use std::fmt::Write as _;

use crate::cases::{Failure, Outcome};
use crate::compare::Agreement;
use crate::device::{Gpu, Launch, Module};
use crate::random::Random;

/// Elements an operation is applied to.
const ELEMENTS: usize = 4096;
/// Threads a block; the number of elements is a multiple.
const BLOCK: usize = 256;
/// Most inputs and outputs of an operation.
const OPERANDS: usize = 3;

/// A scalar type of the IR, or a vector of it that an operation treats lane by lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Type {
    /// An integer of this many bits, at most 128.
    Int(u32),
    /// IEEE half precision.
    F16,
    /// Half precision with the exponent of single precision.
    Bf16,
    /// IEEE single precision.
    F32,
    /// IEEE double precision.
    F64,
}

impl Type {
    /// The type as the IR spells it.
    fn name(self) -> String {
        match self {
            Type::Int(bits) => format!("i{bits}"),
            Type::F16 => "f16".into(),
            Type::Bf16 => "bf16".into(),
            Type::F32 => "f32".into(),
            Type::F64 => "f64".into(),
        }
    }

    /// Bits of a value.
    fn bits(self) -> u32 {
        match self {
            Type::Int(bits) => bits,
            Type::F16 | Type::Bf16 => 16,
            Type::F32 => 32,
            Type::F64 => 64,
        }
    }

    /// Bytes in memory.
    fn bytes(self) -> usize {
        self.bits().next_power_of_two().div_ceil(8) as usize
    }

    /// The bits of a word that belong to the value.
    fn mask(self) -> u128 {
        u128::MAX >> (128 - self.bits())
    }

    /// Width of the exponent and of the fraction. Zeros for integers.
    fn layout(self) -> (u32, u32) {
        match self {
            Type::Int(_) => (0, 0),
            Type::F16 => (5, 10),
            Type::Bf16 => (8, 7),
            Type::F32 => (8, 23),
            Type::F64 => (11, 52),
        }
    }

    /// Whether the bits are a NaN of this type.
    fn is_nan(self, bits: u128) -> bool {
        let (exponent, fraction) = self.layout();
        let infinity = ((1u128 << exponent) - 1) << fraction;
        exponent > 0 && bits & (self.mask() >> 1) > infinity
    }

    /// Values at which operations tend to be wrong.
    fn corners(self) -> Vec<u128> {
        let bits = self.bits();
        let mask = self.mask();
        if let Type::Int(_) = self {
            let top = 1u128 << (bits - 1);
            let w = u128::from(bits);
            let half = 1u128 << (bits / 2);
            let pattern = u128::MAX / 3;
            let mut values =
                vec![0, 1, 2, 3, w - 1, w, w / 2, half, top - 1, top, top + 1, mask, mask - 1, pattern, 7, half - 1];
            values.iter_mut().for_each(|value| *value &= mask);
            return values;
        }
        let (exponent, fraction) = self.layout();
        let sign = 1u128 << (bits - 1);
        let one = ((1u128 << (exponent - 1)) - 1) << fraction;
        let infinity = ((1u128 << exponent) - 1) << fraction;
        let unit = 1u128 << fraction;
        vec![
            0,
            sign,
            one,
            sign | one,
            infinity,
            sign | infinity,
            infinity | unit >> 1,
            1,
            sign | (unit - 1),
            unit,
            infinity - 1,
            sign | (infinity - 1),
            // 1.5, 2.5 and -0.5: ties of rounding to integers.
            one | unit >> 1,
            (one + unit) | unit >> 2,
            sign | (one - unit),
            one + 6 * unit,
        ]
    }

    /// A random value: any bits half of the time, else something small or of moderate size.
    fn random(self, random: &mut Random) -> u128 {
        let any = u128::from(random.bits()) << 64 | u128::from(random.bits());
        let moderate = random.below(2) == 0;
        match self {
            Type::Int(bits) if moderate => any & self.mask() & u128::from(2 * bits - 1),
            Type::Int(_) => any & self.mask(),
            _ if moderate => {
                // An exponent within eight of that of 1.
                let (exponent, fraction) = self.layout();
                let field = (1u128 << (exponent - 1)) - 9 + random.below(17) as u128;
                let sign = (any >> 127) << (self.bits() - 1);
                sign | field << fraction | any & ((1 << fraction) - 1)
            }
            _ => any & self.mask(),
        }
    }
}

/// What an operation gives: the bits of its outputs, or nothing where that is left open.
type Meaning = Box<dyn Fn([u128; OPERANDS]) -> Option<[u128; 2]>>;

/// One operation: its text and its meaning.
pub struct Operation {
    /// Types of the inputs, which the text calls `%x`, `%y`, `%z`.
    inputs: Vec<Type>,
    /// Types of the outputs, which the text calls `%r`, `%s`.
    outputs: Vec<Type>,
    /// Instructions, one a line. `%at` is the address of the first input, for operations on memory.
    text: String,
    /// The type of the lanes, where inputs and outputs stand for vectors: corners are drawn and NaNs compared by lane.
    lane: Option<Type>,
    /// Whether the instruction changes the first input's memory, which is then a third output.
    updates: bool,
    /// What it should give. Of an operation on lanes, the second word has ones in the lanes that are left open.
    meaning: Meaning,
}

impl Operation {
    /// An operation on values with one result.
    fn new(
        inputs: &[Type],
        output: Type,
        text: impl Into<String>,
        meaning: impl Fn(u128, u128, u128) -> Option<u128> + 'static,
    ) -> Operation {
        Operation {
            inputs: inputs.to_vec(),
            outputs: vec![output],
            text: text.into(),
            lane: None,
            updates: false,
            meaning: Box::new(move |[x, y, z]| meaning(x, y, z).map(|result| [result, 0])),
        }
    }

    /// An operation with two results.
    fn pair(
        inputs: &[Type],
        outputs: [Type; 2],
        text: impl Into<String>,
        meaning: impl Fn(u128, u128, u128) -> [u128; 2] + 'static,
    ) -> Operation {
        Operation {
            inputs: inputs.to_vec(),
            outputs: outputs.to_vec(),
            text: text.into(),
            lane: None,
            updates: false,
            meaning: Box::new(move |[x, y, z]| Some(meaning(x, y, z))),
        }
    }

    /// An operation on memory at `%at`: the result is what the instruction gives, the second meaning what memory holds
    /// afterwards.
    fn update(
        inputs: &[Type],
        text: impl Into<String>,
        meaning: impl Fn(u128, u128, u128) -> Option<[u128; 2]> + 'static,
    ) -> Operation {
        Operation {
            inputs: inputs.to_vec(),
            outputs: vec![inputs[0]],
            text: text.into(),
            lane: None,
            updates: true,
            meaning: Box::new(move |[x, y, z]| meaning(x, y, z)),
        }
    }

    /// The same operation on vectors with lanes of this type.
    fn by_lanes(mut self, lane: Type) -> Operation {
        self.lane = Some(lane);
        self
    }

    /// The kernel that applies the operation.
    fn kernel(&self, number: usize) -> String {
        let mut text = format!("kernel @k{number}(");
        for name in ["a", "b", "c", "r", "s"] {
            let comma = if name == "a" { "" } else { ", " };
            let _ = write!(text, "{comma}%p{name}: ptr<global>");
        }
        text += ") reqntid(256, 1, 1) {\nentry:\n  %t = sreg.tid.x\n  %b = sreg.ctaid.x\n  %b8 = shl i32 %b, 8\n";
        text += "  %i = add i32 %b8, %t\n";
        for ((value, pointer), ty) in [("x", "a"), ("y", "b"), ("z", "c")].into_iter().zip(&self.inputs) {
            let ty = ty.name();
            let address = if value == "x" { "at".to_string() } else { format!("at_{value}") };
            let _ = writeln!(text, "  %{address} = gep {ty}, %p{pointer}, %i");
            if !(self.updates && value == "x") {
                let _ = writeln!(text, "  %{value} = load {ty}, %{address}");
            }
        }
        for line in self.text.lines() {
            let _ = writeln!(text, "  {}", line.trim());
        }
        for ((value, pointer), ty) in [("r", "r"), ("s", "s")].into_iter().zip(&self.outputs) {
            let ty = ty.name();
            let _ = writeln!(text, "  %to_{value} = gep {ty}, %p{pointer}, %i\n  store {ty} %{value}, %to_{value}");
        }
        text + "  ret\n}\n"
    }

    /// Inputs: all combinations of corners that fit, then random values.
    fn values(&self, random: &mut Random) -> Vec<[u128; OPERANDS]> {
        let corners: Vec<Vec<u128>> = self.inputs.iter().map(|ty| self.lane.unwrap_or(*ty).corners()).collect();
        let mut values = Vec::with_capacity(ELEMENTS);
        for number in 0..ELEMENTS {
            let mut rest = number;
            let mut element = [0; OPERANDS];
            for ((slot, corner), ty) in element.iter_mut().zip(&corners).zip(&self.inputs) {
                let part = self.lane.unwrap_or(*ty);
                for lane in 0..ty.bits() / part.bits() {
                    let value = if number >= ELEMENTS / 2 {
                        part.random(random)
                    } else {
                        corner[(rest + 5 * lane as usize) % corner.len()]
                    };
                    *slot |= value << (lane * part.bits());
                }
                rest /= corner.len();
            }
            values.push(element);
        }
        values
    }

    /// Whether a result is what it should be, but for lanes that are `open`. A NaN may be any NaN.
    fn agrees(&self, ty: Type, got: u128, want: u128, open: u128) -> bool {
        let part = self.lane.unwrap_or(ty);
        (0..ty.bits() / part.bits()).all(|lane| {
            let [got, want, open] = [got, want, open].map(|bits| bits >> (lane * part.bits()) & part.mask());
            got == want || open != 0 || part.is_nan(got) && part.is_nan(want)
        })
    }

    /// Runs the operation's kernel and compares; gives the number of compared elements. The error names the operation
    /// and the first inputs it fails for.
    fn check(&self, gpu: &Gpu, module: &Module, name: &'static str, random: &mut Random) -> Result<usize, Failure> {
        let values = self.values(random);
        let mut buffers = Vec::new();
        for slot in 0..OPERANDS {
            let ty = self.inputs.get(slot).copied().unwrap_or(Type::Int(8));
            let bytes: Vec<u8> =
                values.iter().flat_map(|element| element[slot].to_le_bytes().into_iter().take(ty.bytes())).collect();
            buffers.push(gpu.upload(&bytes)?);
        }
        for slot in 0..2 {
            let ty = self.outputs.get(slot).copied().unwrap_or(Type::Int(8));
            buffers.push(gpu.upload(&vec![0xC3u8; ELEMENTS * ty.bytes()])?);
        }
        let launch = buffers
            .iter()
            .fold(Launch::new(name, (ELEMENTS / BLOCK, 1), (BLOCK, 1)), |launch, buffer| launch.buffer(buffer));
        gpu.run(module, &launch)?;
        let mut results = vec![(self.outputs[0], buffers[OPERANDS].read()?)];
        if self.updates {
            results.push((self.inputs[0], buffers[0].read()?));
        } else if let Some(&ty) = self.outputs.get(1) {
            results.push((ty, buffers[OPERANDS + 1].read()?));
        }
        let mut compared = 0;
        for (number, element) in values.iter().enumerate() {
            let Some(want) = (self.meaning)(*element) else { continue };
            compared += 1;
            let open = if self.lane.is_some() { want[1] } else { 0 };
            for ((ty, bytes), want) in results.iter().zip(want) {
                let got = word(&bytes[number * ty.bytes()..][..ty.bytes()]) & ty.mask();
                if !self.agrees(*ty, got, want, open) {
                    let text = self.text.replace('\n', "; ");
                    let inputs: Vec<String> = element[..self.inputs.len()].iter().map(|x| format!("{x:#x}")).collect();
                    let inputs = inputs.join(", ");
                    return Err(Failure::Result(format!("{text} of {inputs}: {got:#x} instead of {want:#x}")));
                }
            }
        }
        Ok(compared)
    }
}

/// A number from its bytes, the least significant first.
fn word(bytes: &[u8]) -> u128 {
    bytes.iter().rev().fold(0, |value, &byte| value << 8 | u128::from(byte))
}

/// Operations that are compiled and tested together.
pub struct Family {
    /// The name by which the test is chosen and reported.
    pub name: String,
    /// The operations; their number is at most that of [`KERNELS`].
    operations: Vec<Operation>,
}

/// The kernels' names in a module.
static KERNELS: [&str; 64] = kernel_names();

/// `k0` to `k63`.
const fn kernel_names() -> [&'static str; 64] {
    [
        "k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7", "k8", "k9", "k10", "k11", "k12", "k13", "k14", "k15", "k16",
        "k17", "k18", "k19", "k20", "k21", "k22", "k23", "k24", "k25", "k26", "k27", "k28", "k29", "k30", "k31", "k32",
        "k33", "k34", "k35", "k36", "k37", "k38", "k39", "k40", "k41", "k42", "k43", "k44", "k45", "k46", "k47", "k48",
        "k49", "k50", "k51", "k52", "k53", "k54", "k55", "k56", "k57", "k58", "k59", "k60", "k61", "k62", "k63",
    ]
}

impl Family {
    /// The module with a kernel for each operation.
    pub fn source(&self) -> String {
        self.operations.iter().enumerate().map(|(number, operation)| operation.kernel(number)).collect()
    }

    /// How many operations there are.
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Where the operations' random inputs come from: a hash of the name.
    fn random(&self) -> Random {
        Random::new(self.name.bytes().fold(0, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(byte.into())))
    }

    /// Runs all kernels. All failures are reported, the first of each operation.
    pub fn test(&self, gpu: &Gpu, module: &Module) -> Result<Outcome, Failure> {
        let mut random = self.random();
        let mut failures = Vec::new();
        for (operation, name) in self.operations.iter().zip(KERNELS) {
            match operation.check(gpu, module, name, &mut random) {
                Ok(compared) if compared < ELEMENTS / 16 => {
                    failures.push(format!("{}: only {compared} results are defined", operation.text));
                }
                Ok(_) => {}
                Err(Failure::Result(text)) => failures.push(text),
                Err(Failure::Device(error)) => {
                    // Nothing can run after a fault.
                    failures.push(format!("{}: {error}", operation.text.replace('\n', "; ")));
                    break;
                }
            }
        }
        if failures.is_empty() {
            return Ok(Outcome { agreement: Agreement::Exact, time: None });
        }
        Err(Failure::Result(format!("{} operations: {}", failures.len(), failures.join(" | "))))
    }
}

/// All families. Long lists of operations are cut into pieces of at most 64.
pub fn families() -> Vec<Family> {
    let mut lists = Vec::new();
    for bits in [1, 7, 8, 16, 24, 32, 48, 64, 96, 128] {
        lists.push((format!("integer i{bits}"), integers::operations(bits)));
    }
    for ty in [Type::F16, Type::Bf16, Type::F32, Type::F64] {
        lists.push((format!("float {}", ty.name()), floats::operations(ty)));
    }
    lists.push(("convert integers".into(), conversions::integers()));
    lists.push(("convert floats".into(), conversions::floats()));
    lists.push(("convert between".into(), conversions::between()));
    lists.push(("atomics".into(), memory::atomics()));
    lists.push(("memory".into(), memory::accesses()));
    lists.push(("vector integers".into(), vectors::integer_lanes()));
    lists.push(("vector floats".into(), vectors::float_lanes()));
    lists.push(("vector lanes".into(), vectors::across_lanes()));
    let mut families = Vec::new();
    for (name, mut operations) in lists {
        let mut part = 1;
        while !operations.is_empty() {
            let rest = operations.split_off(operations.len().min(KERNELS.len()));
            let name = if part == 1 && rest.is_empty() { name.clone() } else { format!("{name} {part}") };
            families.push(Family { name: name.replace(' ', "-"), operations });
            operations = rest;
            part += 1;
        }
    }
    families
}

#[cfg(test)]
mod tests {
    use ptxc_test_support::{Job, assembles};

    use super::*;

    #[test]
    fn every_family_assembles() {
        let mut jobs = Vec::new();
        for sm in ["sm_75", "sm_80", "sm_90a", "sm_100a"] {
            for family in families() {
                let target = sm.parse().unwrap();
                match ptxc::compile_text(&family.name, &family.source(), &ptxc::Options::new(target)) {
                    Ok(output) => {
                        jobs.push(Job { name: format!("{} for {sm}", family.name), target, ptx: output.text })
                    }
                    Err(diagnostics) => panic!("{} for {sm}: {diagnostics}", family.name),
                }
            }
        }
        assembles(&jobs);
    }

    /// Of the inputs that a GPU would get; enough of what they give must be defined, and fit its type.
    #[test]
    fn every_meaning_is_one_of_its_inputs() {
        for family in families() {
            let mut random = family.random();
            for operation in &family.operations {
                let values = operation.values(&mut random);
                let defined: Vec<_> = values.iter().filter_map(|inputs| (operation.meaning)(*inputs)).collect();
                assert!(defined.len() >= ELEMENTS / 16, "{}: {} are defined", operation.text, defined.len());
                let ty = operation.outputs[0];
                assert!(defined.iter().all(|[result, _]| result & !ty.mask() == 0), "{}", operation.text);
            }
        }
    }

    #[test]
    fn corners_are_values_of_their_types() {
        for ty in [Type::Int(1), Type::Int(24), Type::Int(128), Type::F16, Type::Bf16, Type::F32, Type::F64] {
            assert_eq!(ty.corners().len(), 16);
            assert!(ty.corners().iter().all(|value| value & !ty.mask() == 0), "{ty:?}");
        }
        assert!(Type::F32.is_nan(0x7FC0_0000) && !Type::F32.is_nan(0xFF80_0000));
    }
}
