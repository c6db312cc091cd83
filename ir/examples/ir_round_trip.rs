//! Reads IR files, verifies and prints them, and says whether the print is stable: `ir_round_trip FILE…`.

fn main() {
    for path in std::env::args().skip(1) {
        let Ok(text) = std::fs::read_to_string(&path) else {
            println!("{path}: not readable");
            continue;
        };
        let started = std::time::Instant::now();
        match ptxc_ir::read_module_with_spans(&text) {
            Ok((module, spans)) => {
                let read = started.elapsed();
                for error in ptxc_ir::verify_module(&module) {
                    let (line, col) = ptxc_ir::line_col(&text, error.span(&spans).start);
                    println!("{path}:{line}:{col}: {:?}: {error}", error.severity);
                }
                let verified = started.elapsed() - read;
                let first = ptxc_ir::print_module(&module);
                let stable = ptxc_ir::read_module(&first).is_ok_and(|m| ptxc_ir::print_module(&m) == first);
                println!("{path}: read in {read:?}, verified in {verified:?}, stable: {stable}");
            }
            Err(errors) => errors.iter().for_each(|e| println!("{path}:{}", e.with_position(&text))),
        }
    }
}
