//! What `ptxas` made of a module: registers, memory and spills of each kernel, read from the cubin.
//!
//! A cubin is an ELF file. `.nv.info` holds attributes of functions by symbol, `.nv.info.NAME` those of one function,
//! as records of format, attribute and value; spill and refill instructions are listed by their offset in `.text.NAME`.
//! The numbers are those that `ptxas -v` prints.

use std::fmt;

use object::elf::FileHeader64;
use object::read::elf::{ElfFile64, FileHeader as _};
use object::{Endianness, Object as _, ObjectSection as _, ObjectSymbol as _, SymbolIndex};

/// What one function needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Resources {
    /// Symbol of the function.
    pub name: String,
    /// Registers per thread.
    pub registers: u32,
    /// Statically declared shared memory, in bytes.
    pub shared_bytes: u64,
    /// Frame in local memory per thread, in bytes; spills lie in it.
    pub local_bytes: u64,
    /// Constant bank 0, in bytes: what the driver passes, then the parameters.
    pub constant_bytes: u64,
    /// Parameters, in bytes.
    pub parameter_bytes: u64,
    /// Bytes stored by spill instructions, each counted once.
    pub spill_store_bytes: u64,
    /// Bytes loaded by refill instructions, each counted once.
    pub spill_load_bytes: u64,
    /// Machine code, in bytes.
    pub code_bytes: u64,
}

/// What a whole module needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ModuleResources {
    /// Architecture number of the code.
    pub sm: u32,
    /// Variables in global memory, in bytes.
    pub global_bytes: u64,
    /// Constant banks shared by all functions, in bytes.
    pub constant_bytes: u64,
    /// Each function with code of its own, in the file's order of their code.
    pub functions: Vec<Resources>,
}

/// Why a file is not read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResourcesError {
    /// Not an ELF file, or a damaged one.
    #[error("not a readable ELF file: {0}")]
    Elf(String),
    /// An ELF file of something else.
    #[error("not a cubin: the ELF file is for machine {0}, not CUDA")]
    Machine(u16),
    /// Attribute records that end early.
    #[error("damaged attributes in section {0}")]
    Attributes(String),
}

/// `EM_CUDA`.
const MACHINE_CUDA: u16 = 190;
/// Attribute: registers of a function, as symbol and number.
const REGISTER_COUNT: u8 = 0x2f;
/// Attribute: frame of a function in bytes, as symbol and number.
const FRAME_SIZE: u8 = 0x11;
/// Attribute: parameters of a kernel, as symbol, offset and size (two bytes each).
const PARAM_CBANK: u8 = 0x0a;
/// Attribute: annotated instructions, as pairs of kind and offset.
const ANNOTATIONS: u8 = 0x55;
/// Kind of annotation: the instruction spills or refills.
const SPILL: u32 = 1;
/// Record format with a length and that many bytes; the other formats hold their value in the record.
const FORMAT_SIZED: u8 = 4;
/// Shared memory that the system keeps in each block from sm_90 on; it is in the section, but not the kernel's.
const RESERVED_SHARED: u64 = 1024;

/// Reads a cubin.
///
/// # Errors
/// The bytes are not a cubin.
pub fn read_cubin(bytes: &[u8]) -> Result<ModuleResources, ResourcesError> {
    let file: ElfFile64<'_, Endianness> =
        ElfFile64::parse(bytes).map_err(|error| ResourcesError::Elf(error.to_string()))?;
    let machine = file.elf_header().e_machine(Endianness::Little).0;
    if machine != MACHINE_CUDA {
        return Err(ResourcesError::Machine(machine));
    }
    let sm = architecture(file.elf_header());
    let mut module = ModuleResources { sm, ..ModuleResources::default() };
    collect_sections(&file, &mut module);
    read_attributes(&file, &mut module)?;
    Ok(module)
}

/// The architecture number in the header's flags: byte 1 from ABI version 8 on, byte 0 before.
fn architecture(header: &FileHeader64<Endianness>) -> u32 {
    let flags = header.e_flags(Endianness::Little).0;
    if header.e_ident.abi_version >= 8 { (flags >> 8) & 0xff } else { flags & 0xff }
}

/// Functions and sizes, from the sections.
fn collect_sections(file: &ElfFile64<'_, Endianness>, module: &mut ModuleResources) {
    for section in file.sections() {
        let Ok(name) = section.name() else { continue };
        if let Some(function) = name.strip_prefix(".text.") {
            let header = section.elf_section_header();
            // Before ABI version 8 and on older targets the register count is in the section header as well; the
            // attribute that all files have overrides it.
            let registers = header.sh_info.get(Endianness::Little) >> 24;
            let function =
                Resources { name: function.to_owned(), registers, code_bytes: section.size(), ..Resources::default() };
            module.functions.push(function);
        } else if name == ".nv.global" || name == ".nv.global.init" {
            module.global_bytes += section.size();
        } else if is_module_constant(name) {
            module.constant_bytes += section.size();
        }
    }
    let reserved = if module.sm >= 90 { RESERVED_SHARED } else { 0 };
    for function in &mut module.functions {
        let size = |prefix: &str| {
            file.section_by_name(&format!("{prefix}{}", function.name)).map_or(0, |section| section.size())
        };
        let shared = size(".nv.shared.");
        let constant = size(".nv.constant0.");
        function.shared_bytes = shared.saturating_sub(reserved);
        function.constant_bytes = constant;
    }
}

/// `.nv.constantN` without a function's name.
fn is_module_constant(name: &str) -> bool {
    name.strip_prefix(".nv.constant").is_some_and(|rest| rest.bytes().all(|byte| byte.is_ascii_digit()))
}

fn read_attributes(file: &ElfFile64<'_, Endianness>, module: &mut ModuleResources) -> Result<(), ResourcesError> {
    for section in file.sections() {
        let Ok(name) = section.name() else { continue };
        let Some(suffix) = name.strip_prefix(".nv.info") else { continue };
        let damaged = || ResourcesError::Attributes(name.to_owned());
        let data = section.data().map_err(|_| damaged())?;
        for record in Records(data) {
            let (attribute, payload) = record.ok_or_else(damaged)?;
            match (suffix.strip_prefix('.'), attribute) {
                (None, REGISTER_COUNT | FRAME_SIZE) => {
                    let [symbol, number] = words(payload);
                    let Some(function) = function_of(file, module, symbol) else { continue };
                    if attribute == REGISTER_COUNT {
                        function.registers = number;
                    } else {
                        function.local_bytes = number.into();
                    }
                }
                (Some(kernel), PARAM_CBANK) => {
                    let [_, offset_and_size] = words(payload);
                    if let Some(function) = module.functions.iter_mut().find(|f| f.name == kernel) {
                        function.parameter_bytes = (offset_and_size >> 16).into();
                    }
                }
                (Some(kernel), ANNOTATIONS) => count_spills(file, module, kernel, payload),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Records of an attribute section; `None` for one that ends early, which is the last.
struct Records<'d>(&'d [u8]);

impl<'d> Iterator for Records<'d> {
    type Item = Option<(u8, &'d [u8])>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let Some((head, rest)) = self.0.split_at_checked(4) else {
            self.0 = &[];
            return Some(None);
        };
        let len = if head[0] == FORMAT_SIZED { usize::from(u16::from_le_bytes([head[2], head[3]])) } else { 0 };
        let Some((payload, rest)) = rest.split_at_checked(len) else {
            self.0 = &[];
            return Some(None);
        };
        self.0 = rest;
        Some(Some((head[1], payload)))
    }
}

/// The first two little-endian words; what is missing is zero.
fn words(payload: &[u8]) -> [u32; 2] {
    let word = |index: usize| {
        let bytes = payload.get(4 * index..4 * index + 4).and_then(|bytes| bytes.try_into().ok());
        bytes.map_or(0, u32::from_le_bytes)
    };
    [word(0), word(1)]
}

/// The function that a symbol index stands for.
fn function_of<'m>(
    file: &ElfFile64<'_, Endianness>,
    module: &'m mut ModuleResources,
    symbol: u32,
) -> Option<&'m mut Resources> {
    let symbol = file.symbol_by_index(SymbolIndex(symbol as usize)).ok()?;
    let name = symbol.name().ok()?;
    module.functions.iter_mut().find(|function| function.name == name)
}

/// Adds the widths of the annotated spill instructions.
fn count_spills(file: &ElfFile64<'_, Endianness>, module: &mut ModuleResources, kernel: &str, payload: &[u8]) {
    let sm = module.sm;
    let Some(function) = module.functions.iter_mut().find(|function| function.name == kernel) else { return };
    let Some(code) = file.section_by_name(&format!(".text.{kernel}")).and_then(|section| section.data().ok()) else {
        return;
    };
    for pair in payload.chunks_exact(8) {
        let [kind, offset] = words(pair);
        if kind != SPILL {
            continue;
        }
        match code.get(offset as usize..).and_then(|code| local_access(code, sm)) {
            Some((Direction::Store, bytes)) => function.spill_store_bytes += bytes,
            Some((Direction::Load, bytes)) => function.spill_load_bytes += bytes,
            None => {}
        }
    }
}

enum Direction {
    Load,
    Store,
}

/// Whether a machine instruction loads or stores local memory, and how many bytes.
fn local_access(code: &[u8], sm: u32) -> Option<(Direction, u64)> {
    let word = |index: usize| Some(u64::from_le_bytes(code.get(8 * index..8 * index + 8)?.try_into().ok()?));
    // Up to sm_62 an instruction has 64 bits with the opcode at the top, later 128 with the opcode at the bottom.
    let (opcode, size) = if sm < 70 { (word(0)? >> 48, word(0)? >> 48) } else { (word(0)? & 0xfff, word(1)? >> 9) };
    let direction = match (sm < 70, opcode) {
        (true, code) if code & 0xfff8 == 0xef40 => Direction::Load,
        (true, code) if code & 0xfff8 == 0xef50 => Direction::Store,
        (false, 0x983) => Direction::Load,
        (false, 0x387) => Direction::Store,
        _ => return None,
    };
    let bytes = match size & 7 {
        0 | 1 => 1,
        2 | 3 => 2,
        4 => 4,
        5 => 8,
        _ => 16,
    };
    Some((direction, bytes))
}

impl fmt::Display for ModuleResources {
    /// A table, one function a line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.functions.iter().map(|function| function.name.len()).max().unwrap_or(0).max("function".len());
        writeln!(f, "sm_{}: {} bytes global, {} bytes constant", self.sm, self.global_bytes, self.constant_bytes)?;
        writeln!(
            f,
            "{:width$} {:>9} {:>7} {:>7} {:>8} {:>6} {:>12} {:>11} {:>7}",
            "function", "registers", "shared", "local", "constant", "params", "spill stores", "spill loads", "code"
        )?;
        for function in &self.functions {
            writeln!(
                f,
                "{:width$} {:>9} {:>7} {:>7} {:>8} {:>6} {:>12} {:>11} {:>7}",
                function.name,
                function.registers,
                function.shared_bytes,
                function.local_bytes,
                function.constant_bytes,
                function.parameter_bytes,
                function.spill_store_bytes,
                function.spill_load_bytes,
                function.code_bytes
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_cubin_is_refused() {
        assert!(matches!(read_cubin(b""), Err(ResourcesError::Elf(_))));
        assert!(matches!(read_cubin(b"\x7fELF"), Err(ResourcesError::Elf(_))));
        let host = std::fs::read(std::env::current_exe().unwrap()).unwrap();
        assert!(matches!(read_cubin(&host), Err(ResourcesError::Machine(_)) | Err(ResourcesError::Elf(_))));
    }

    #[test]
    fn records_that_end_early_are_noticed() {
        let good = [4u8, 0x2f, 8, 0, 1, 0, 0, 0, 9, 0, 0, 0, 3, 0x1b, 64, 0];
        let records: Vec<_> = Records(&good).collect();
        assert_eq!(records, [Some((0x2f, &good[4..12])), Some((0x1b, &[][..]))]);
        assert_eq!(Records(&good[..10]).collect::<Vec<_>>(), [None]);
        assert_eq!(Records(&good[..14]).last(), Some(None));
    }
}
