//! The names that values, blocks and types are printed under.

use std::fmt::Write as _;

use cranelift_entity::SecondaryMap;
use rustc_hash::FxHashSet;

use crate::entities::{AggId, Block, Value};
use crate::module::{Function, Module};

/// True when the text can stand behind a sigil without quotes.
fn is_bare(name: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'$' | b'-');
    !name.is_empty() && name.bytes().all(inside) && !name.ends_with('-')
}

/// True when the text can be a label without quotes.
fn is_word(name: &str) -> bool {
    is_bare(name) && !name.starts_with(|c: char| c.is_ascii_digit() || c == '-')
}

/// In quotes; quotation marks, backslashes and control characters are escaped.
fn write_quoted(out: &mut String, name: &str) {
    out.push('"');
    for c in name.chars() {
        if c == '"' || c == '\\' || c.is_ascii_control() {
            let _ = write!(out, "\\{:02X}", c as u32);
        } else {
            out.push(c);
        }
    }
    out.push('"');
}

/// Bytes in quotes; all but printable ASCII is escaped.
pub(super) fn quoted_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len() + 2);
    out.push('"');
    for byte in bytes {
        match byte {
            b'"' | b'\\' => {
                let _ = write!(out, "\\{byte:02X}");
            }
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => {
                let _ = write!(out, "\\{byte:02X}");
            }
        }
    }
    out.push('"');
    out
}

/// `before`, then the name, in quotes where it needs them.
pub(super) fn write_name(out: &mut String, before: &str, name: &str) {
    out.push_str(before);
    if is_bare(name) { out.push_str(name) } else { write_quoted(out, name) }
}

/// A name, or a number made up in printing order.
#[derive(Clone, Default)]
enum Name {
    #[default]
    Unused,
    Number(u32),
    Text(Box<str>),
}

/// Gives out names so that none is used twice.
struct Naming<'f> {
    taken: FxHashSet<&'f str>,
    made: FxHashSet<String>,
    numbers: u32,
}

impl<'f> Naming<'f> {
    /// `all` are the wanted names; a later holder of a name that is taken gets one outside of them.
    fn name(&mut self, wanted: Option<&'f str>, prefix: &str, all: &FxHashSet<&str>) -> Name {
        let numbered = |name: &str| {
            let digits = name.strip_prefix(prefix).unwrap_or("");
            !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())
        };
        let Some(wanted) = wanted.filter(|name| !name.is_empty() && !numbered(name)) else {
            self.numbers += 1;
            return Name::Number(self.numbers - 1);
        };
        if self.taken.insert(wanted) {
            return Name::Text(wanted.into());
        }
        let mut suffix = 1u32;
        loop {
            let name = format!("{wanted}.{suffix}");
            if !all.contains(name.as_str()) && self.made.insert(name.clone()) {
                return Name::Text(name.into());
            }
            suffix += 1;
        }
    }
}

fn naming<'f>() -> Naming<'f> {
    Naming { taken: FxHashSet::default(), made: FxHashSet::default(), numbers: 0 }
}

/// Names of a function's values and blocks.
pub(super) struct FuncNames {
    values: SecondaryMap<Value, Name>,
    blocks: SecondaryMap<Block, Name>,
}

impl FuncNames {
    pub fn new(func: &Function) -> FuncNames {
        let dfg = &func.dfg;
        let wanted: FxHashSet<&str> = dfg.value_names.values().map(AsRef::as_ref).collect();
        let labels: FxHashSet<&str> = dfg.block_names.values().map(AsRef::as_ref).collect();
        let (mut value_naming, mut block_naming) = (naming(), naming());
        let mut names = FuncNames { values: SecondaryMap::new(), blocks: SecondaryMap::new() };
        for block in func.layout.blocks() {
            let label = dfg.block_names.get(&block).map(AsRef::as_ref);
            names.blocks[block] = block_naming.name(label, "block", &labels);
            let results = func.layout.insts(block).flat_map(|inst| dfg.results(inst));
            for value in dfg.block_params(block).iter().copied().chain(results) {
                let name = dfg.value_names.get(&value).map(AsRef::as_ref);
                names.values[value] = value_naming.name(name, "", &wanted);
            }
        }
        names
    }

    /// Writes `%name`. A value that is nowhere defined prints as `%undefined` and its index, which reads as an error.
    pub fn value(&self, out: &mut String, value: Value) {
        match &self.values[value] {
            Name::Text(name) => write_name(out, "%", name),
            Name::Number(n) => {
                let _ = write!(out, "%{n}");
            }
            Name::Unused => {
                let _ = write!(out, "%undefined.{}", value.as_u32());
            }
        }
    }

    /// Writes a label.
    pub fn block(&self, out: &mut String, block: Block) {
        match &self.blocks[block] {
            Name::Text(name) if is_word(name) => out.push_str(name),
            Name::Text(name) => write_quoted(out, name),
            Name::Number(n) => {
                let _ = write!(out, "block{n}");
            }
            Name::Unused => {
                let _ = write!(out, "removed.{}", block.as_u32());
            }
        }
    }
}

/// Names of a module's aggregate types.
pub(super) struct TypeNames {
    names: SecondaryMap<AggId, Name>,
}

impl TypeNames {
    pub fn new(module: &Module) -> TypeNames {
        let wanted = module.aggregates().filter_map(|(_, agg)| agg.name.as_deref());
        let wanted: FxHashSet<&str> = wanted.collect();
        let mut naming = naming();
        let mut names = SecondaryMap::new();
        for (id, agg) in module.aggregates() {
            if let Some(name) = agg.name.as_deref().filter(|name| !name.is_empty()) {
                // A digit alone is as good a type name as any: nothing is numbered here.
                names[id] = naming.name(Some(name), "\0", &wanted);
            }
        }
        TypeNames { names }
    }

    /// The name, if the type has one.
    pub fn name(&self, id: AggId) -> Option<&str> {
        match &self.names[id] {
            Name::Text(name) => Some(name),
            _ => None,
        }
    }
}
