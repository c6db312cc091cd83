//! Reads LLVM bitcode, as LLVM 3.8 to 24 write it, into the model.
//!
//! The stream is taken apart by `bitstream`; each kind of block has a room of its own. Functions are read last, when
//! everything they refer to is known.
//!
//! Nothing in a file makes reading take more than a constant number of steps per bit: counts are compared with what is
//! left of the block, and where a few bits may stand for much (an integer of a million bits, a shuffle of many lanes),
//! that is paid from a budget of the size of the file (`Reader::spend`).

mod attributes;
mod bitstream;
mod calls;
mod codes;
mod constants;
mod debug_info;
mod function;
mod globals;
mod instructions;
mod memory;
mod metadata;
mod types;

use crate::ReadError;
use crate::model::{ConstId, Module, Name};

use bitstream::{BLOCK_INFO, Block, BlockInfo, Item, Nested, Record};
use codes::block;

/// First bytes of bitcode.
const MAGIC: [u8; 4] = [b'B', b'C', 0xc0, 0xde];
/// First bytes of the header that some platforms put before it.
const WRAPPER: [u8; 4] = [0xde, 0xc0, 0x17, 0x0b];

/// Whether these are the first bytes of a bitcode file.
pub fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC) || bytes.starts_with(&WRAPPER)
}

/// Reads a file into the module, which may hold others already.
///
/// # Errors
/// What is wrong with the file, with the byte where it is.
pub fn read(bytes: &[u8], module: &mut Module) -> Result<(), ReadError> {
    let (stream, offset) = unwrapped(bytes)?;
    read_stream(stream, module, false).map_err(|error| ReadError { at: error.at + offset, ..error })
}

/// Reads as much of a library as the symbols need that the module declares and the library defines. What it adds is not
/// visible outside of the module. What the library says of itself (triple, flags and other named metadata) is left out.
///
/// # Errors
/// What is wrong with the file, with the byte where it is.
pub fn read_library(bytes: &[u8], module: &mut Module) -> Result<(), ReadError> {
    let named_metadata = module.named_metadata.clone();
    let names = (module.source_filename, module.data_layout, module.triple, module.assembly.len());
    let (stream, offset) = unwrapped(bytes)?;
    let result = read_stream(stream, module, true).map_err(|error| ReadError { at: error.at + offset, ..error });
    module.named_metadata = named_metadata;
    (module.source_filename, module.data_layout, module.triple, _) = names;
    module.assembly.truncate(names.3);
    result
}

/// The stream without the header, and where it starts.
fn unwrapped(bytes: &[u8]) -> Result<(&[u8], usize), ReadError> {
    if !bytes.starts_with(&WRAPPER) {
        return Ok((bytes, 0));
    }
    let word = |at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        word.map(|word| u32::from_le_bytes(word) as usize)
    };
    let stream = word(8).zip(word(12)).and_then(|(start, len)| Some((bytes.get(start..)?.get(..len)?, start)));
    stream.ok_or_else(|| ReadError::new(0, "the header names bytes that are not in the file"))
}

fn read_stream(bytes: &[u8], module: &mut Module, library: bool) -> Result<(), ReadError> {
    if !bytes.starts_with(&MAGIC) {
        return Err(ReadError::new(0, "this is no LLVM bitcode"));
    }
    let mut stream = Block::stream(bytes, MAGIC.len());
    let mut record = Record::default();
    let mut reader = Reader::new(bytes, module, library);
    let mut found: Option<Nested> = None;
    loop {
        let at = stream.position();
        match stream.next(&mut record)? {
            Item::End => break,
            Item::Record => {}
            Item::Block(nested) => match nested.id {
                BLOCK_INFO => reader.info.read(bytes, nested)?,
                block::MODULE if found.is_some() => {
                    return Err(ReadError::new(at, "the file holds several modules"));
                }
                block::MODULE => found = Some(nested),
                block::STRINGS => reader.read_strings(nested)?,
                block::IDENTIFICATION => reader.check_epoch(nested)?,
                _ => {}
            },
        }
    }
    match found {
        Some(nested) => reader.read_module(nested),
        None => Err(ReadError::new(0, "the file holds no module")),
    }
}

/// A value of the module by number: a symbol or a constant.
#[derive(Clone, Copy)]
struct ModuleValue {
    constant: ConstId,
    /// Number of its type.
    ty: u32,
}

/// What is known while a file is read.
pub(crate) struct Reader<'a, 'm> {
    bytes: &'a [u8],
    module: &'m mut Module,
    info: BlockInfo,
    /// Names of symbols, all in one piece.
    strings: &'a [u8],
    /// 0: values have absolute numbers; 1: relative ones in functions; 2: names are in `strings`.
    version: u64,
    types: types::TypeTable,
    lists: attributes::Lists,
    values: Vec<ModuleValue>,
    numbers: metadata::Numbers,
    scopes: Vec<Name>,
    bundle_tags: Vec<Name>,
    /// Symbols that the module had before.
    known: usize,
    /// Only what those symbols need is read.
    library: bool,
    /// What may still be made of few bits.
    budget: u64,
}

impl<'a, 'm> Reader<'a, 'm> {
    fn new(bytes: &'a [u8], module: &'m mut Module, library: bool) -> Reader<'a, 'm> {
        Reader {
            bytes,
            known: module.globals.len(),
            library,
            module,
            info: BlockInfo::default(),
            strings: &[],
            version: 0,
            types: types::TypeTable::default(),
            lists: attributes::Lists::default(),
            values: Vec::new(),
            numbers: metadata::Numbers::default(),
            scopes: Vec::new(),
            bundle_tags: Vec::new(),
            budget: (1 << 20) + bytes.len() as u64 * 8,
        }
    }

    /// Takes from the budget for things that few bits make many of.
    fn spend(&mut self, at: usize, amount: u64) -> Result<(), ReadError> {
        match self.budget.checked_sub(amount) {
            Some(left) => {
                self.budget = left;
                Ok(())
            }
            None => Err(ReadError::new(at, "the file stands for far more than its size can mean")),
        }
    }

    /// Where things of a record are said to stand: nowhere when they come from a library, since places are of the module.
    fn place(&self, record: &Record) -> u32 {
        if self.library { u32::MAX } else { u32::try_from(record.at).unwrap_or(u32::MAX) }
    }

    fn read_strings(&mut self, nested: Nested) -> Result<(), ReadError> {
        const BLOB: u32 = 1;
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Record if record.code == BLOB => {
                    self.strings = self.bytes.get(record.blob.clone()).unwrap_or(&[]);
                }
                Item::Record | Item::Block(_) => {}
            }
        }
    }

    fn check_epoch(&self, nested: Nested) -> Result<(), ReadError> {
        const EPOCH: u32 = 2;
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Record if record.code == EPOCH && record.get(0) != Some(0) => {
                    return Err(record.error("the file is of a kind of bitcode that is newer than any known"));
                }
                Item::Record | Item::Block(_) => {}
            }
        }
    }

    /// The scope with that number.
    fn scope(&mut self, number: u64) -> Name {
        let known = usize::try_from(number).ok().and_then(|number| self.scopes.get(number)).copied();
        // Files without a table know two.
        known.unwrap_or_else(|| self.module.names.intern(if number == 0 { b"singlethread" } else { b"" }))
    }
}
