//! DWARF sections as PTX text.
//!
//! `ptxas -g` makes the line table from `.loc`; what it needs from us is `.debug_abbrev` and `.debug_info` (PTX ISA,
//! 11.5): one compile unit with a subprogram for every function, its linkage name, place and range. The bytes come
//! from `gimli`, in the version 2 of DWARF that the PTX ISA names. References to labels and to other sections are
//! kept aside and printed as symbols for `ptxas` to relocate.

use crate::error::EmitError;
use crate::names::Names;
use crate::text::Text;
use gimli::write::{Address, AttributeValue, DwarfUnit, EndianVec, LineProgram, LineString, Result, Sections, Writer};
use gimli::{Encoding, Format, LineEncoding, LittleEndian, SectionId};
use ptxc_mir::{Linkage, Module};
use rustc_hash::FxHashMap;

/// Numbers of labels in addresses: two for each function.
fn begin_symbol(index: usize) -> usize {
    2 * index
}

fn end_symbol(index: usize) -> usize {
    2 * index + 1
}

/// The label at a function's begin.
pub(crate) fn begin_label(text: &mut Text, index: usize) {
    text.push("$L__BEGIN");
    text.unsigned(index as u64);
}

/// The label at a function's end.
pub(crate) fn end_label(text: &mut Text, index: usize) {
    text.push("$L__END");
    text.unsigned(index as u64);
}

/// Prints the sections.
pub(crate) fn print(text: &mut Text, module: &Module, names: &Names) -> std::result::Result<(), EmitError> {
    let mut sections = Sections::new(Section::new());
    build(module, names).write(&mut sections).map_err(|e| EmitError::Internal(format!("debug information: {e}")))?;
    for id in [SectionId::DebugAbbrev, SectionId::DebugInfo] {
        if let Some(section) = sections.get(id) {
            section.print(text, id);
        }
    }
    Ok(())
}

fn build(module: &Module, names: &Names) -> DwarfUnit {
    let encoding = Encoding { format: Format::Dwarf32, version: 2, address_size: 8 };
    let mut dwarf = DwarfUnit::new(encoding);
    let first = module.files.first().map_or("<unknown>", |f| f.path.as_str());
    let mut program = LineProgram::new(
        encoding,
        LineEncoding::default(),
        LineString::String(b".".to_vec()),
        None,
        LineString::String(file_name(first, 0)),
        None,
    );
    // The table of files only serves to write numbers: ptxas builds the real one from `.file`, in their order and
    // without gaps.
    let directory = program.default_directory();
    let files: FxHashMap<u32, _> = (1..)
        .zip(&module.files)
        .map(|(n, file)| (file.number, program.add_file(LineString::String(file_name("", n)), directory, None)))
        .collect();
    dwarf.unit.line_program = program;

    let root = dwarf.unit.root();
    let unit = dwarf.unit.get_mut(root);
    unit.set(gimli::DW_AT_producer, AttributeValue::String(b"ptxc".to_vec()));
    unit.set(gimli::DW_AT_language, AttributeValue::Language(gimli::DW_LANG_C99));
    unit.set(gimli::DW_AT_name, AttributeValue::String(file_name(first, 0)));
    if !module.functions.is_empty() {
        let last = module.functions.len() - 1;
        unit.set(gimli::DW_AT_low_pc, address(begin_symbol(0)));
        unit.set(gimli::DW_AT_high_pc, address(end_symbol(last)));
    }
    for (index, func) in module.functions.iter().enumerate() {
        let loc = func.locs[func.loc];
        let entry = dwarf.unit.add(root, gimli::DW_TAG_subprogram);
        let entry = dwarf.unit.get_mut(entry);
        entry.set(gimli::DW_AT_name, AttributeValue::String(without_zero(module.symbols.name(func.name))));
        entry.set(gimli::DW_AT_MIPS_linkage_name, AttributeValue::String(names.get(func.name).into()));
        if let Some(&file) = files.get(&loc.file).filter(|_| loc.line > 0) {
            entry.set(gimli::DW_AT_decl_file, AttributeValue::FileIndex(Some(file)));
            entry.set(gimli::DW_AT_decl_line, AttributeValue::Udata(u64::from(loc.line)));
        }
        entry.set(gimli::DW_AT_external, AttributeValue::Flag(func.linkage != Linkage::Internal));
        entry.set(gimli::DW_AT_low_pc, address(begin_symbol(index)));
        entry.set(gimli::DW_AT_high_pc, address(end_symbol(index)));
    }
    dwarf
}

fn address(symbol: usize) -> AttributeValue {
    AttributeValue::Address(Address::Symbol { symbol, addend: 0 })
}

/// A name that the line program takes: not empty, no zero byte. Placeholders differ by number.
fn file_name(path: &str, number: u32) -> Vec<u8> {
    let name = without_zero(path);
    if name.is_empty() { format!("file{number}").into_bytes() } else { name }
}

fn without_zero(name: &str) -> Vec<u8> {
    name.bytes().map(|b| if b == 0 { b'?' } else { b }).collect()
}

/// What stands in place of bytes that only ptxas knows.
#[derive(Clone, Copy, Debug)]
enum Reference {
    /// A label, by its number.
    Label(usize),
    /// An offset in another section.
    Section(SectionId, usize),
}

/// Bytes of a section and the references in them, in ascending order of offset.
#[derive(Clone, Debug)]
struct Section {
    bytes: EndianVec<LittleEndian>,
    references: Vec<(usize, u8, Reference)>,
}

impl Section {
    fn new() -> Section {
        Section { bytes: EndianVec::new(LittleEndian), references: Vec::new() }
    }

    fn print(&self, text: &mut Text, id: SectionId) {
        text.push("\n\t.section ");
        text.push(id.name());
        text.push("\n\t{\n");
        let bytes = self.bytes.slice();
        let mut at = 0;
        for &(offset, size, reference) in &self.references {
            print_bytes(text, &bytes[at..offset]);
            text.push(if size == 8 { ".b64 " } else { ".b32 " });
            match reference {
                Reference::Label(n) if n % 2 == 0 => begin_label(text, n / 2),
                Reference::Label(n) => end_label(text, n / 2),
                Reference::Section(id, value) => {
                    text.push(id.name());
                    text.offset(value as i64);
                }
            }
            text.char('\n');
            at = offset + usize::from(size);
        }
        print_bytes(text, &bytes[at..]);
        text.push("\t}\n");
    }
}

fn print_bytes(text: &mut Text, bytes: &[u8]) {
    for line in bytes.chunks(24) {
        text.push(".b8 ");
        for (i, &byte) in line.iter().enumerate() {
            text.push(if i > 0 { "," } else { "" });
            text.unsigned(u64::from(byte));
        }
        text.char('\n');
    }
}

impl Writer for Section {
    type Endian = LittleEndian;

    fn endian(&self) -> LittleEndian {
        LittleEndian
    }

    fn len(&self) -> usize {
        self.bytes.len()
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.write(bytes)
    }

    fn write_at(&mut self, offset: usize, bytes: &[u8]) -> Result<()> {
        self.bytes.write_at(offset, bytes)
    }

    fn write_address(&mut self, address: Address, size: u8) -> Result<()> {
        match address {
            Address::Constant(value) => self.write_udata(value, size),
            Address::Symbol { symbol, .. } => {
                self.references.push((self.len(), size, Reference::Label(symbol)));
                self.write_udata(0, size)
            }
        }
    }

    fn write_offset(&mut self, value: usize, section: SectionId, size: u8) -> Result<()> {
        self.references.push((self.len(), size, Reference::Section(section, value)));
        self.write_udata(0, size)
    }
}
