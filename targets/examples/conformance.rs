#![allow(clippy::unwrap_used)]
//! Compares the tables with recorded answers of ptxas.
//!
//! `conformance DIR [-v FILTER]`: DIR holds `*.jsonl` files of forms and refused forms, uncompressed.
//! With `-v`, prints each disagreement of the families that contain FILTER.

use ptxc_targets::{Checker, Declarations, Diagnostic, PtxVersion, Sink, Statement, Target, walk_module};
use std::collections::BTreeMap;

/// Reads one value of a flat JSON object.
fn text(line: &str, key: &str) -> Option<String> {
    let start = line.find(&format!("\"{key}\": \""))? + key.len() + 5;
    let mut out = String::new();
    let mut chars = line[start..].chars();
    while let Some(c) = chars.next() {
        match c {
            '"' => return Some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                other => out.push(other),
            },
            other => out.push(other),
        }
    }
    None
}

fn list(line: &str, key: &str) -> Vec<String> {
    let Some(start) = line.find(&format!("\"{key}\": [")) else {
        return Vec::new();
    };
    let rest = &line[start + key.len() + 5..];
    let end = rest.find(']').unwrap_or(0);
    rest[..end].split(',').map(|word| word.trim().trim_matches('"').to_owned()).filter(|w| !w.is_empty()).collect()
}

struct Probe<'a> {
    checker: &'a mut Checker,
    versions: Option<[Option<PtxVersion>; Target::ALL.len()]>,
    problem: Option<String>,
}

impl Sink for Probe<'_> {
    fn statement(&mut self, statement: &Statement, declarations: &Declarations) {
        if statement.mnemonic == "ret" && statement.nodes.is_empty() && self.versions.is_some() {
            return;
        }
        match self.checker.versions(statement, declarations) {
            Ok(new) => match &mut self.versions {
                None => self.versions = Some(new),
                Some(old) => {
                    for (a, b) in old.iter_mut().zip(new) {
                        *a = a.zip(b).map(|(a, b)| a.max(b));
                    }
                }
            },
            Err(diagnostic) => self.problem = self.problem.take().or(Some(diagnostic.message)),
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) -> bool {
        self.problem = self.problem.take().or(Some(diagnostic.message));
        true
    }
}

fn module(line: &str) -> String {
    let get = |key| text(line, key).unwrap_or_default();
    let module = format!("{}\n{}", get("module"), get("module_decl"));
    match text(line, "func_params") {
        Some(parameters) => {
            format!("{module}\n.visible .func f({parameters}) {{\n{{ {} {} }}\nret;\n}}", get("decl"), get("ptx"))
        }
        None => format!(
            "{module}\n.visible .entry k({}) {{\n{{ {} {} }}\nret;\n}}",
            get("entry_params"),
            get("decl"),
            get("ptx")
        ),
    }
}

#[derive(Default)]
struct Count {
    forms: usize,
    agree: usize,
    version: usize,
    refused: usize,
    refused_agree: usize,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let filter = arguments.get(3).cloned();
    let version: Target = "sm_121a".parse().unwrap();
    let mut checker = Checker::new(version, PtxVersion::MAX);
    let mut counts: BTreeMap<String, Count> = BTreeMap::new();
    let tried: Vec<Target> = "sm_75 sm_80 sm_86 sm_87 sm_89 sm_90 sm_90a sm_100 sm_100a sm_100f sm_103a sm_107a sm_107f sm_110a sm_120 sm_120a sm_121a"
        .split(' ').map(|name| name.parse().unwrap()).collect();
    let mut files: Vec<_> = std::fs::read_dir(&arguments[1]).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let refused = name.contains("rejected");
        let kind = std::env::var("KIND").unwrap_or_else(|_| "forms".to_owned());
        if !refused && !name.contains(&kind) || refused && kind != "forms" {
            continue;
        }
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let family = text(line, "family").unwrap_or_default();
            let section = text(line, "section").unwrap_or_default();
            let family = format!("{section} {family}");
            let verbose = filter.as_ref().is_some_and(|filter| {
                family.split(' ').any(|word| word == filter) || family.starts_with(&format!("{filter}."))
            });
            let count = counts.entry(family).or_default();
            let mut probe = Probe { checker: &mut checker, versions: None, problem: None };
            walk_module(&module(line), &mut probe);
            let versions = match probe.problem {
                Some(_) => [None; Target::ALL.len()],
                None => probe.versions.unwrap_or([Some(PtxVersion::MIN); Target::ALL.len()]),
            };
            let ptx = text(line, "ptx").unwrap_or_default();
            if refused {
                count.refused += 1;
                let agree = versions.iter().all(Option::is_none);
                count.refused_agree += usize::from(agree);
                if verbose && !agree {
                    println!(
                        "TAKES {ptx} | {} | {}",
                        text(line, "decl").unwrap_or_default(),
                        text(line, "message").or(text(line, "error")).unwrap_or_default().replace('\n', " ")
                    );
                }
                continue;
            }
            let accept = list(line, "accept");
            if accept.is_empty() {
                continue;
            }
            count.forms += 1;
            let mut extra = Vec::new();
            let mut missing = Vec::new();
            for target in &tried {
                let ours = versions[target.index()].is_some();
                let theirs = accept.iter().any(|name| name == target.name());
                match (ours, theirs) {
                    (true, false) => extra.push(target.name()),
                    (false, true) => missing.push(target.name()),
                    _ => {}
                }
            }
            let agree = extra.is_empty() && missing.is_empty();
            count.agree += usize::from(agree);
            let at: Option<Target> = text(line, "min_version_target").and_then(|name| name.parse().ok());
            let wanted = text(line, "min_version").unwrap_or_default();
            let ours = at.and_then(|at| versions[at.index()]).map_or("-".to_owned(), |version| version.to_string());
            count.version += usize::from(ours == wanted);
            if verbose && (!agree || ours != wanted) {
                if agree {
                    println!("VERSION {ptx} | {ours} should be {wanted}");
                } else if let Some(problem) = probe.problem {
                    println!("REFUSES {ptx} | {} | {problem}", text(line, "decl").unwrap_or_default());
                } else {
                    println!(
                        "TARGETS {ptx} | extra {} missing {} (version {wanted})",
                        extra.join(" "),
                        missing.join(" ")
                    );
                }
            }
        }
    }
    report(&counts);
}

fn report(counts: &BTreeMap<String, Count>) {
    let mut all = Count::default();
    for (family, count) in counts {
        if count.agree < count.forms || count.version < count.forms || count.refused_agree < count.refused {
            println!(
                "{family:44} accept {}/{} version {} refused {}/{}",
                count.agree, count.forms, count.version, count.refused_agree, count.refused
            );
        }
        all.forms += count.forms;
        all.agree += count.agree;
        all.version += count.version;
        all.refused += count.refused;
        all.refused_agree += count.refused_agree;
    }
    let percent = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
    println!(
        "accept {:.2} % of {}, version {:.2} %, refused {:.2} % of {}",
        percent(all.agree, all.forms),
        all.forms,
        percent(all.version, all.forms),
        percent(all.refused_agree, all.refused),
        all.refused
    );
}
