//! What a GPU computed from single instructions, against everything here that gives them a meaning: the functions of
//! `float`, the interpreter of the IR, and the emulator of PTX.

mod functions;

use ptxc_interp::ir::run;
use ptxc_interp::launch::{Argument, Buffer, Launch, Options};
use ptxc_interp::ptx::{self, Program};
use ptxc_semantics::record::{self, Difference, Recording, Results};
use ptxc_semantics::{Case, FAMILIES, Family, Inputs, Language, approximation, inputs, kernel};

/// Most differences that are named.
const NAMED: usize = 400;

fn inputs_of(case: &Case) -> Inputs {
    let kinds: Vec<_> = case.sources.iter().map(|s| s.kind).collect();
    Inputs::of(&kinds)
}

/// Cases of more items are left out where that is said.
const MOST_ITEMS: usize = 16 << 10;

/// What is compared, what differs.
#[derive(Default)]
struct Tally {
    compared: usize,
    results: usize,
    differences: Vec<String>,
}

impl Tally {
    /// Compares the results of a variant.
    fn compare(
        &mut self,
        family: &Family,
        recording: &Recording,
        case: &Case,
        inputs: &Inputs,
        index: usize,
        values: &[u64],
    ) {
        let Some(variant) = case.variants.get(index) else { return };
        self.compared += 1;
        self.results += values.len();
        let results = Results { values, items: inputs.len() };
        if let Some(bound) = recording.find(case, inputs, variant).and_then(|recorded| recorded.error) {
            self.differences.extend(far(recording, case, inputs, variant, values, bound));
            return;
        }
        let Some(difference) = recording.compare(case, inputs, variant, results) else { return };
        let text = match difference {
            Difference::Missing => "not recorded".to_owned(),
            Difference::Item { index, here, recorded } => {
                format!("of {:x?} is {here} here, {recorded} on the GPU", inputs.item(index))
            }
            Difference::Blocks { starts, items, count } => {
                format!("differs in {} of {count} blocks of {items}, from items {starts:?} on", starts.len())
            }
        };
        self.differences.push(format!("{} `{variant}` {text}", family.name));
    }

    /// Panics with the differences.
    fn settle(&self, what: &str) {
        println!("{what}: {} instructions, {} results", self.compared, self.results);
        let shown: Vec<&str> = self.differences.iter().take(NAMED).map(String::as_str).collect();
        let count = self.differences.len();
        assert!(count == 0, "{what}: {count} of {} differ from the GPU:\n{}", self.compared, shown.join("\n"));
    }
}

/// An approximation here that is farther from a recorded one than that may be from the exact result.
fn far(
    recording: &Recording,
    case: &Case,
    inputs: &Inputs,
    variant: &str,
    values: &[u64],
    bound: f64,
) -> Option<String> {
    let recorded = recording.find(case, inputs, variant)?;
    let key = record::key(variant);
    // What is here is exact to its last place, which of the coarse ones is that of the upper half.
    let own = if key.ends_with(".ftz.f64") { 4_294_967_296.0 } else { 1.0 };
    for (item, there) in inputs.points.iter().zip(recorded.shown.iter().flatten()) {
        let (operands, here) = (inputs.item(*item), values.get(*item).copied().unwrap_or(0));
        if approximation::promised(&key, &operands) && approximation::distance(&key, *there, here) > bound + own {
            return Some(format!("`{variant}` of {operands:x?} is {here:x} here, {there:x} on the GPU"));
        }
    }
    None
}

fn recording(family: &Family) -> Recording {
    Recording::read(family.data).unwrap_or_else(|error| panic!("{}: {error}", family.name))
}

#[test]
fn float_functions() {
    let mut tally = Tally::default();
    for family in FAMILIES.iter().filter(|f| f.language == Language::Ptx) {
        let recording = recording(family);
        for case in family.cases().unwrap() {
            let mut inputs = None;
            for (index, variant) in case.variants.iter().enumerate() {
                let Some(meaning) = functions::meaning(&record::key(variant)) else { continue };
                let inputs = inputs.get_or_insert_with(|| inputs_of(&case));
                let items = inputs.len();
                // Those of the whole formats are left to the emulator, which goes through the same functions.
                if items > MOST_ITEMS {
                    break;
                }
                let mut values = vec![0; items * case.results.len()];
                for item in 0..items {
                    let operands: Vec<u64> = inputs.columns.iter().map(|c| c[item]).collect();
                    for (r, value) in meaning(&operands).into_iter().enumerate().take(case.results.len()) {
                        values[r * items + item] = value;
                    }
                }
                tally.compare(family, &recording, &case, inputs, index, &values);
            }
        }
    }
    tally.settle("functions");
}

/// Runs a case's kernel with an executor, on buffers as the recorder has them.
fn execute<E>(
    case: &Case,
    inputs: &Inputs,
    run: impl FnOnce(&Launch, &mut [Buffer]) -> Result<(), E>,
) -> Result<Vec<u64>, E> {
    let words = kernel::result_words(case, inputs.len());
    let mut buffers = vec![Buffer::new("results", vec![0; words * 8])];
    for (source, values) in case.sources.iter().zip(&inputs.columns) {
        buffers.push(Buffer::new(source.name.clone(), kernel::bytes(source.kind, values)));
    }
    let arguments = (0..buffers.len()).map(Argument::buffer).collect();
    let launch = Launch::linear("instruction", (inputs.len() / inputs::BLOCK) as u32, inputs::BLOCK as u32, arguments);
    run(&launch, &mut buffers)?;
    let bytes = buffers[0].bytes.chunks_exact(8);
    let mut values: Vec<u64> = bytes.map(|c| u64::from_le_bytes(c.try_into().unwrap_or_default())).collect();
    record::settle(case, inputs, &mut values);
    Ok(values)
}

/// Nobody reads what a kernel here writes.
fn options() -> Options {
    Options { races: false, ..Options::default() }
}

#[test]
fn interpreter() {
    let mut tally = Tally::default();
    for family in FAMILIES.iter().filter(|f| f.language == Language::Ir) {
        let recording = recording(family);
        for case in family.cases().unwrap() {
            let inputs = inputs_of(&case);
            let text = kernel::text(&case, "instruction", inputs.len());
            let module = match ptxc_ir::read_module(&text) {
                Ok(module) => module,
                Err(errors) => panic!("{:?}", errors.iter().map(|e| e.with_position(&text)).collect::<Vec<_>>()),
            };
            let values = execute(&case, &inputs, |launch, buffers| run(&module, launch, buffers, &options()).map(drop));
            let values = values.unwrap_or_else(|failure| panic!("line {}: {failure}", case.line));
            let size = case.results.len() * inputs.len();
            for (index, values) in values.chunks(size).take(case.variants.len()).enumerate() {
                tally.compare(family, &recording, &case, &inputs, index, values);
            }
        }
    }
    tally.settle("interpreter");
}

/// Approximations as recorded stay within the error that was found of all.
#[test]
fn approximations() {
    for family in FAMILIES {
        let recording = recording(family);
        for case in family.cases().unwrap() {
            let inputs = inputs_of(&case);
            for variant in &case.variants {
                let Some(recorded) = recording.find(&case, &inputs, variant) else { continue };
                let Some(bound) = recorded.error else { continue };
                let key = record::key(variant);
                println!("{key}: {bound} units in the last place");
                for (item, got) in inputs.points.iter().zip(&recorded.shown) {
                    let error = approximation::error(&key, &inputs.item(*item), got.first().copied().unwrap_or(0));
                    assert!(error <= bound + 0.001, "{key} {:x?}: {error} beyond {bound}", inputs.item(*item));
                }
            }
        }
    }
}

/// Video instructions that the driver's compiler, which writes them out, makes something else of than the manual says.
fn departs(variant: &str) -> bool {
    let (mnemonic, operands) = variant.split_once(' ').unwrap_or((variant, ""));
    let (head, modifiers) = mnemonic.split_once('.').unwrap_or((mnemonic, ""));
    let single = !head.ends_with(['2', '4']);
    let modified = modifiers.split('.').any(|piece| matches!(piece, "sat" | "min" | "max"));
    head == "vmad" || single && modified || operands.starts_with("%d.")
}

fn emulate(case: &Case, inputs: &Inputs) -> Result<Vec<u64>, String> {
    let text = format!("{}{}", kernel::PTX_HEAD, kernel::text(case, "instruction", inputs.len()));
    let program = Program::read(&text).map_err(|error| error.to_string())?;
    execute(case, inputs, |launch, buffers| ptx::run(&program, launch, buffers, &options()).map(drop))
        .map_err(|failure| failure.to_string())
}

#[test]
fn emulator() {
    let mut tally = Tally::default();
    let mut refused = Vec::new();
    for family in FAMILIES.iter().filter(|f| f.language == Language::Ptx) {
        let recording = recording(family);
        for mut case in family.cases().unwrap() {
            if family.name == "video" {
                case.variants.retain(|variant| !departs(variant));
            }
            let inputs = inputs_of(&case);
            let size = case.results.len() * inputs.len();
            if let Ok(values) = emulate(&case, &inputs) {
                for (index, values) in values.chunks(size).take(case.variants.len()).enumerate() {
                    tally.compare(family, &recording, &case, &inputs, index, values);
                }
                continue;
            }
            for variant in &case.variants {
                let alone = Case { variants: vec![variant.clone()], ..case.clone() };
                match emulate(&alone, &inputs) {
                    Ok(values) => tally.compare(family, &recording, &alone, &inputs, 0, &values[..size]),
                    Err(reason) => refused.push((variant.clone(), reason)),
                }
            }
        }
    }
    for (variant, reason) in refused.iter().take(NAMED) {
        println!("not emulated: {variant} {reason}");
    }
    tally.settle("emulator");
    assert!(refused.is_empty(), "{} instructions are not emulated", refused.len());
}
