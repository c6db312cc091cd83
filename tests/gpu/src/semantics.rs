//! Records what single instructions compute (`ptxc-semantics`).

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use ptxc::{OptLevel, Options};
use ptxc_semantics::{Case, FAMILIES, Family, Inputs, Language, approximation, inputs, kernel, record};

use ptxc_gpu::{Gpu, Launch};

/// The kernel's name in every module.
const KERNEL: &str = "instruction";

/// Records the families whose name contains a text, one file each in a directory. A case that cannot be run is named
/// and left out.
pub fn record(directory: &Path, only: &str) -> ExitCode {
    let gpu = match Gpu::open() {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("no GPU: {error}");
            return ExitCode::FAILURE;
        }
    };
    let mut failed = 0;
    for family in FAMILIES.iter().filter(|family| family.name.contains(only)) {
        let started = std::time::Instant::now();
        match record_family(&gpu, family) {
            Ok((text, failures)) => {
                let path = directory.join(format!("{}.txt", family.name));
                if let Err(error) = std::fs::write(&path, &text) {
                    eprintln!("{}: {error}", path.display());
                    failed += 1;
                }
                for failure in &failures {
                    eprintln!("{}: {failure}", family.name);
                }
                failed += failures.len();
                println!("{}: {} bytes, {:.1} s", family.name, text.len(), started.elapsed().as_secs_f32());
            }
            Err(error) => {
                eprintln!("{error}");
                failed += 1;
            }
        }
    }
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// The recording of a family, and what went wrong.
fn record_family(gpu: &Gpu, family: &Family) -> Result<(String, Vec<String>), String> {
    let (major, minor) = gpu.capability();
    let mut text = format!("gpu {}, compute capability {major}.{minor}\n", gpu.name());
    let mut failures = Vec::new();
    for case in family.cases()? {
        let kinds: Vec<_> = case.sources.iter().map(|s| s.kind).collect();
        let inputs = Inputs::of(&kinds);
        match results(gpu, &case, &inputs) {
            Ok(values) => {
                let errors = (family.name == "approximate").then(|| errors(&case, &inputs, &values));
                record::write(&mut text, &case, &inputs, &values, errors.as_deref());
            }
            Err(error) => {
                let mut line = String::new();
                // Writing to a string does not fail.
                let _ = write!(line, "line {}, {}: {error}", case.line, case.signature());
                failures.push(line);
            }
        }
    }
    Ok((text, failures))
}

/// Prints the operands and results of every item of the instructions with these texts.
pub fn print(keys: &[String]) -> ExitCode {
    let gpu = match Gpu::open() {
        Ok(gpu) => gpu,
        Err(error) => {
            eprintln!("no GPU: {error}");
            return ExitCode::FAILURE;
        }
    };
    for family in FAMILIES {
        for case in family.cases().unwrap_or_default() {
            if !case.variants.iter().any(|v| keys.contains(&record::key(v))) {
                continue;
            }
            let kinds: Vec<_> = case.sources.iter().map(|s| s.kind).collect();
            let inputs = Inputs::of(&kinds);
            let values = match results(&gpu, &case, &inputs) {
                Ok(values) => values,
                Err(error) => {
                    eprintln!("line {}: {error}", case.line);
                    return ExitCode::FAILURE;
                }
            };
            for (variant, results) in case.variants.iter().zip(record::split(&case, &inputs, &values)) {
                let key = record::key(variant);
                if keys.contains(&key) {
                    println!("{key} {}", case.signature());
                    for item in 0..inputs.len() {
                        let outs: Vec<u64> = results.values.iter().skip(item).step_by(inputs.len()).copied().collect();
                        println!("{:x?} {outs:x?}", inputs.item(item));
                    }
                }
            }
        }
    }
    ExitCode::SUCCESS
}

/// What the GPU computes for a case.
fn results(gpu: &Gpu, case: &Case, inputs: &Inputs) -> Result<Vec<u64>, String> {
    let source = kernel::text(case, KERNEL, inputs.len());
    match case.language {
        Language::Ptx => run(gpu, case, inputs, &format!("{}{source}", kernel::PTX_HEAD)),
        Language::Ir => {
            let at = |level| run(gpu, case, inputs, &compile(gpu, &source, level)?);
            let (plain, optimized) = (at(OptLevel::O0)?, at(OptLevel::O3)?);
            match plain.iter().zip(&optimized).position(|(x, y)| x != y) {
                None => Ok(optimized),
                Some(at) => {
                    let (slot, item) = (at / inputs.len(), at % inputs.len());
                    let variant = case.variants.get(slot / case.results.len()).map_or("", |v| v);
                    let (x, y) = (plain[at], optimized[at]);
                    Err(format!("`{variant}` of {:x?} is {x:x} at -O0 and {y:x} at -O3", inputs.item(item)))
                }
            }
        }
    }
}

fn compile(gpu: &Gpu, source: &str, level: OptLevel) -> Result<String, String> {
    let sm = crate::target_of(gpu);
    let target = sm.parse().map_err(|error| format!("{sm}: {error}"))?;
    let options = Options { opt_level: level, ..Options::new(target) };
    let output = ptxc::compile_text("case.ir", source, &options);
    output.map(|output| output.text).map_err(|diagnostics| format!("not compiled: {diagnostics}"))
}

fn run(gpu: &Gpu, case: &Case, inputs: &Inputs, ptx: &str) -> Result<Vec<u64>, String> {
    let text = |error: ptxc_gpu::Error| error.to_string();
    let module = gpu.load(ptx).map_err(text)?;
    let results = gpu.zeros::<u64>(kernel::result_words(case, inputs.len())).map_err(text)?;
    let mut launch = Launch::new(KERNEL, (inputs.len() / inputs::BLOCK, 1), (inputs::BLOCK, 1)).buffer(&results);
    let mut columns = Vec::new();
    for (source, values) in case.sources.iter().zip(&inputs.columns) {
        columns.push(gpu.upload(&kernel::bytes(source.kind, values)).map_err(text)?);
    }
    for column in &columns {
        launch = launch.buffer(column);
    }
    gpu.run(&module, &launch).map_err(text)?;
    let mut values = results.read().map_err(text)?;
    values.truncate(case.variants.len() * case.results.len() * inputs.len());
    record::settle(case, inputs, &mut values);
    Ok(values)
}

/// The largest error of each variant.
fn errors(case: &Case, inputs: &Inputs, values: &[u64]) -> Vec<f64> {
    let variants = case.variants.iter().zip(record::split(case, inputs, values));
    let worst = |(variant, results): (&String, record::Results<'_>)| {
        let key = record::key(variant);
        let mut worst = 0.0;
        for (item, got) in results.values.iter().enumerate() {
            let error = approximation::error(&key, &inputs.item(item), *got);
            if error > worst {
                worst = error;
                if error.is_infinite() {
                    eprintln!("{key}: {:x?} gives {got:x}", inputs.item(item));
                }
            }
        }
        worst
    };
    variants.map(worst).collect()
}
