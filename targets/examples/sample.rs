#![allow(clippy::unwrap_used)]
//! Prints statements made from the tables, one a line, with the targets that take them.
//!
//! `sample SEED COUNT [FILTER]`: COUNT statements of every form whose syntax contains FILTER. A line
//! has the form's number, `target=version` for each target, and the statement, separated by tabs.

use ptxc_targets::{Checker, Declarations, Diagnostic, PtxVersion, Sink, Statement, Target, sample, walk_module};

struct Found(Checker, Vec<String>);

impl Sink for Found {
    fn statement(&mut self, statement: &Statement, declarations: &Declarations) {
        if statement.mnemonic == "ret" && !self.1.is_empty() {
            return;
        }
        match self.0.versions(statement, declarations) {
            Ok(versions) => {
                for target in Target::ALL {
                    if let Some(version) = versions[target.index()] {
                        self.1.push(format!("{target}={version}"));
                    }
                }
            }
            Err(diagnostic) => self.1.push(format!("ERROR {}", diagnostic.message)),
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) -> bool {
        self.1.push(format!("ERROR {}", diagnostic.message));
        true
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let mut random = sample::Random::new(arguments[1].parse().unwrap());
    let count: usize = arguments[2].parse().unwrap();
    let filter = arguments.get(3).cloned().unwrap_or_default();
    for form in 0..sample::form_count() {
        if !sample::form_text(form).unwrap().0.contains(&filter) {
            continue;
        }
        for _ in 0..count {
            let Some(statement) = sample::statement(form, &mut random) else {
                println!("{form}\tNONE\t{}", sample::form_text(form).unwrap().0);
                break;
            };
            let text = format!(".visible .entry k() {{ {}\n{{ {statement} }}\nL1: ret; }}", sample::declarations());
            let mut found = Found(Checker::new(Target::ALL[0], PtxVersion::MAX), Vec::new());
            walk_module(&text, &mut found);
            println!("{form}\t{}\t{statement}", found.1.join(" "));
        }
    }
}
