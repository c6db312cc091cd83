//! Reads files of textual LLVM IR and prints how long it took: `read [--repeat N] FILE…`.
//!
//! For each file a line `NAME BYTES INSTRUCTIONS SECONDS`, the seconds being the least of N readings, in processor time
//! of the thread where the system tells it.

use std::time::Instant;

use ptxc_llvm::model::Module;

fn main() -> std::process::ExitCode {
    let mut failed = false;
    let mut repeat = 1;
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--repeat" {
            repeat = arguments.next().and_then(|count| count.parse().ok()).unwrap_or(1);
            continue;
        }
        match read(&argument, repeat) {
            Ok(line) => println!("{line}"),
            Err(message) => {
                println!("{message}");
                failed = true;
            }
        }
    }
    std::process::ExitCode::from(u8::from(failed))
}

fn read(path: &str, repeat: u32) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{path}: {error}"))?;
    let mut best = f64::INFINITY;
    let mut instructions = 0;
    for _ in 0..repeat {
        let start = (Instant::now(), processor_time());
        let mut module = Module::new();
        let result = ptxc_llvm::text::read(&bytes, &mut module);
        let taken = match (start.1, processor_time()) {
            (Some(from), Some(to)) => to - from,
            _ => start.0.elapsed().as_secs_f64(),
        };
        best = best.min(taken);
        if let Err(error) = result {
            let before = &bytes[..error.at.min(bytes.len())];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let column = before.len() - before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) + 1;
            return Err(format!("{path}:{line}:{column}: error: {}", error.message));
        }
        let bodies = module.globals.values().filter_map(|global| global.function()?.body.as_ref());
        instructions = bodies.map(|body| body.instructions.len()).sum();
    }
    Ok(format!("{path} {} {instructions} {best:.6}", bytes.len()))
}

/// Seconds that this thread has run, on Linux.
fn processor_time() -> Option<f64> {
    // The system brings the figure up to date when the thread gives the processor away, else only at its ticks.
    std::thread::sleep(std::time::Duration::from_micros(1));
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse::<f64>().ok().map(|nanoseconds| nanoseconds / 1e9)
}
