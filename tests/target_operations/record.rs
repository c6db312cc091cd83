//! The forms of the instruction tables' conformance data.

use std::io::Read as _;
use std::path::Path;

use flate2::read::GzDecoder;
use ptxc::targets::Target;

/// A statement that some target takes, with what stands around it.
pub struct Record {
    /// The targets that take it.
    pub accept: Vec<Target>,
    /// Declarations of the module.
    pub module: String,
    /// `e` and the parameters of the kernel, or `f` and those of the function around it.
    pub around: String,
    /// Declarations of the body.
    pub declarations: String,
    /// The statement.
    pub statement: String,
}

/// All records of a file of the data.
pub fn read(name: &str) -> Vec<Record> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets/tests/conformance").join(name);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut text = String::new();
    GzDecoder::new(&bytes[..]).read_to_string(&mut text).unwrap();
    text.lines().map(record).collect()
}

fn record(line: &str) -> Record {
    let fields: Vec<&str> = line.split('\t').collect();
    let [_, _, _, accept, _, _, module, around, declarations, statement] = fields[..] else {
        panic!("a record has ten fields: {line}");
    };
    let target = |bare: &str| format!("sm_{bare}").parse().unwrap();
    Record {
        accept: accept.split_whitespace().map(target).collect(),
        module: module.to_owned(),
        around: around.to_owned(),
        declarations: declarations.to_owned(),
        statement: statement.to_owned(),
    }
}
