//! Reads conformance records and asks the tables about them.

use flate2::read::GzDecoder;
use ptxc_targets::{Checker, Declarations, Diagnostic, PtxVersion, Sink, Statement, Target, walk_module};
use std::io::Read as _;
use std::path::Path;

/// The targets that every record was tried on.
pub const TRIED: &str = "75 80 86 87 89 90 90a 100 100a 100f 103a 107a 107f 110a 120 120a 121a";

/// One statement and what the assembler says of it.
pub struct Record {
    /// F form, R refused, E example, T tolerated.
    pub kind: String,
    pub section: String,
    pub family: String,
    pub accept: Vec<Target>,
    /// The lowest `.version` of a target.
    pub version: Option<(Target, String)>,
    pub statement: String,
    pub declarations: String,
    module: String,
}

/// How the tables differ from the record.
pub enum Difference {
    /// Targets that only the tables take, and those that only the assembler takes.
    Targets { extra: Vec<Target>, missing: Vec<Target>, problem: Option<String> },
    /// Another lowest version.
    Version { ours: String },
}

/// The records of a `.tsv` or `.tsv.gz` file.
pub fn read(path: &Path) -> Vec<Record> {
    let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    if path.extension().is_some_and(|ending| ending == "gz") {
        GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    } else {
        text = String::from_utf8(bytes).unwrap();
    }
    text.lines().map(record).collect()
}

fn target(bare: &str) -> Target {
    format!("sm_{bare}").parse().unwrap()
}

fn record(line: &str) -> Record {
    let fields: Vec<&str> = line.split('\t').collect();
    let [kind, section, family, accept, version, at, module, around, declarations, statement] = fields[..] else {
        panic!("a record has ten fields: {line}");
    };
    let body = format!("{{\n{{ {declarations} {statement} }}\nret;\n}}");
    let function = match around.split_at(1) {
        ("f", parameters) => format!(".visible .func f({parameters}) {body}"),
        (_, parameters) => format!(".visible .entry k({parameters}) {body}"),
    };
    Record {
        kind: kind.to_owned(),
        section: section.to_owned(),
        family: family.to_owned(),
        accept: accept.split_whitespace().map(target).collect(),
        version: (!version.is_empty()).then(|| (target(at), version.to_owned())),
        statement: statement.to_owned(),
        declarations: declarations.to_owned(),
        module: format!("{module}\n{function}"),
    }
}

/// Collects the versions of the statements of a module, but for the `ret` that ends it.
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

/// Where the tables differ from `record`, if they do.
pub fn compare(record: &Record, checker: &mut Checker) -> Option<Difference> {
    let mut probe = Probe { checker, versions: None, problem: None };
    walk_module(&record.module, &mut probe);
    let versions = match probe.problem {
        Some(_) => [None; Target::ALL.len()],
        None => probe.versions.unwrap_or([Some(PtxVersion::MIN); Target::ALL.len()]),
    };
    let (mut extra, mut missing) = (Vec::new(), Vec::new());
    for target in TRIED.split(' ').map(target) {
        match (versions[target.index()].is_some(), record.accept.contains(&target)) {
            (true, false) => extra.push(target),
            (false, true) => missing.push(target),
            _ => {}
        }
    }
    if !extra.is_empty() || !missing.is_empty() {
        return Some(Difference::Targets { extra, missing, problem: probe.problem });
    }
    let (at, wanted) = record.version.as_ref()?;
    let ours = versions[at.index()].map_or_else(|| "none".to_owned(), |version| version.to_string());
    (ours != *wanted).then_some(Difference::Version { ours })
}
