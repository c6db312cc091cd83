//! The bitstream container: blocks, abbreviations, records and blobs.
//!
//! A stream is a tree of blocks; a block is a sequence of records and of further blocks. Records are written by
//! abbreviations, which blocks define for themselves or get from the BLOCKINFO block. What the numbers mean is decided
//! elsewhere. Reading never looks outside of the block at hand, and every step consumes bits, so that it ends.

use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::ReadError;

/// The block that holds abbreviations for other blocks.
pub const BLOCK_INFO: u32 = 0;

const END_BLOCK: u64 = 0;
const ENTER_BLOCK: u64 = 1;
const DEFINE_ABBREVIATION: u64 = 2;
const UNABBREVIATED: u64 = 3;
const FIRST_ABBREVIATION: u64 = 4;

/// Record of BLOCKINFO that names the block which the following abbreviations are for.
const SET_BLOCK: u32 = 1;

/// One operand of an abbreviation.
#[derive(Clone, Copy, Debug)]
enum Encoding {
    Literal(u64),
    Fixed(u32),
    Variable(u32),
    Char6,
    Array,
    Blob,
}

/// How the operands of a record are written; the first is its code.
#[derive(Debug)]
pub struct Abbreviation(Vec<Encoding>);

/// The abbreviations that BLOCKINFO gives to blocks, by the number of the block.
#[derive(Default)]
pub struct BlockInfo(FxHashMap<u32, Rc<Vec<Rc<Abbreviation>>>>);

/// One record. Kept and reused, so that reading does not allocate.
#[derive(Default, Debug)]
pub struct Record {
    /// What it is, by the numbers of its block.
    pub code: u32,
    /// Operands.
    pub values: Vec<u64>,
    /// The bytes of a blob, as a range of the stream.
    pub blob: Range<usize>,
    /// Byte of the stream where it starts.
    pub at: usize,
}

impl Record {
    /// Operand `index`.
    pub fn get(&self, index: usize) -> Option<u64> {
        self.values.get(index).copied()
    }

    /// The operands from `start` on, as the bytes of a string.
    pub fn text(&self, start: usize) -> Vec<u8> {
        self.values.iter().skip(start).map(|value| *value as u8).collect()
    }

    /// An error about this record.
    pub fn error(&self, message: impl Into<String>) -> ReadError {
        ReadError::new(self.at, message)
    }
}

/// A block that was found and not entered.
#[derive(Clone, Copy, Debug)]
pub struct Nested {
    /// Which block it is.
    pub id: u32,
    /// First bit of the contents.
    start: u64,
    /// Bit after the contents.
    end: u64,
    /// Bits of an abbreviation's number.
    width: u32,
}

/// What stands next in a block.
pub enum Item {
    /// A block; reading goes on behind it.
    Block(Nested),
    /// A record, which was read.
    Record,
    /// The end of the block.
    End,
}

/// Reads the contents of one block.
pub struct Block<'a> {
    bytes: &'a [u8],
    at: u64,
    end: u64,
    width: u32,
    shared: Rc<Vec<Rc<Abbreviation>>>,
    own: Vec<Rc<Abbreviation>>,
    outermost: bool,
}

impl<'a> Block<'a> {
    /// The contents of a whole stream, which is a sequence of blocks. `start` is the first byte after the magic number.
    pub fn stream(bytes: &'a [u8], start: usize) -> Block<'a> {
        Block {
            bytes,
            at: start as u64 * 8,
            end: bytes.len() as u64 * 8,
            width: 2,
            shared: Rc::default(),
            own: Vec::new(),
            outermost: true,
        }
    }

    /// The contents of a nested block.
    pub fn enter(bytes: &'a [u8], nested: Nested, info: &BlockInfo) -> Block<'a> {
        let shared = info.0.get(&nested.id).cloned().unwrap_or_default();
        let Nested { start, end, width, .. } = nested;
        Block { bytes, at: start, end, width, shared, own: Vec::new(), outermost: false }
    }

    /// Numbers one after the other, without blocks.
    pub fn bits(bytes: &'a [u8]) -> Block<'a> {
        Block { outermost: false, ..Block::stream(bytes, 0) }
    }

    /// The byte at which reading stands.
    pub fn position(&self) -> usize {
        (self.at / 8) as usize
    }

    /// Bits that are left: more things than that cannot follow.
    pub fn remaining(&self) -> u64 {
        self.end - self.at
    }

    /// Reads up to the next thing that is not the definition of an abbreviation.
    pub fn next(&mut self, record: &mut Record) -> Result<Item, ReadError> {
        loop {
            // The file may be padded to four bytes.
            if self.outermost && self.remaining() < 32 {
                return Ok(Item::End);
            }
            let start = self.position();
            match self.fixed(self.width)? {
                END_BLOCK if self.outermost => return Err(ReadError::new(start, "a block ends that never began")),
                END_BLOCK => return Ok(Item::End),
                ENTER_BLOCK => return self.nested().map(Item::Block),
                DEFINE_ABBREVIATION => {
                    let abbreviation = self.abbreviation()?;
                    self.own.push(Rc::new(abbreviation));
                }
                UNABBREVIATED => {
                    record.at = start;
                    self.unabbreviated(record)?;
                    return Ok(Item::Record);
                }
                id => {
                    record.at = start;
                    self.abbreviated((id - FIRST_ABBREVIATION) as usize, record)?;
                    return Ok(Item::Record);
                }
            }
        }
    }

    fn error(&self, message: &str) -> ReadError {
        ReadError::new(self.position(), message)
    }

    /// The next `width` bits, at most 64.
    pub fn fixed(&mut self, width: u32) -> Result<u64, ReadError> {
        if u64::from(width) > self.remaining() {
            return Err(self.error("the file ends inside of a block"));
        }
        let value = self.peek();
        self.at += u64::from(width);
        let shift = (self.at - u64::from(width)) % 8;
        // A field of more than 56 bits may reach into a ninth byte.
        if u64::from(width) + shift > 64 {
            let last = self.bytes.get(((self.at - 1) / 8) as usize).copied().unwrap_or(0);
            let value = value | u64::from(last) << (64 - shift);
            return Ok(low(value, width));
        }
        Ok(low(value, width))
    }

    /// At least 57 bits from the current position on, zero beyond the end of the file.
    fn peek(&self) -> u64 {
        let byte = (self.at / 8) as usize;
        let word = match self.bytes.get(byte..byte + 8).and_then(|bytes| bytes.try_into().ok()) {
            Some(bytes) => u64::from_le_bytes(bytes),
            None => {
                let rest = self.bytes.get(byte..).unwrap_or(&[]);
                let mut padded = [0; 8];
                padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                u64::from_le_bytes(padded)
            }
        };
        word >> (self.at % 8)
    }

    /// A number in chunks of `width` bits, of which the highest says that another follows.
    pub fn variable(&mut self, width: u32) -> Result<u64, ReadError> {
        let payload = width.saturating_sub(1);
        let more = 1u64 << payload;
        let mut value = 0u64;
        let mut shift = 0;
        loop {
            let chunk = self.fixed(width)?;
            let bits = chunk & (more - 1);
            if shift >= 64 && bits != 0 || shift > 0 && shift < 64 && bits << shift >> shift != bits {
                return Err(self.error("a number has more than 64 bits"));
            }
            if shift < 64 {
                value |= bits << shift;
            }
            if chunk & more == 0 {
                return Ok(value);
            }
            shift += payload;
        }
    }

    fn align(&mut self) -> Result<(), ReadError> {
        let aligned = self.at.next_multiple_of(32);
        if aligned > self.end {
            return Err(self.error("the file ends inside of a block"));
        }
        self.at = aligned;
        Ok(())
    }

    fn nested(&mut self) -> Result<Nested, ReadError> {
        let start = self.position();
        let id = self.variable(8)?;
        let width = self.variable(4)?;
        self.align()?;
        let length = self.fixed(32)? * 32;
        let id = u32::try_from(id).map_err(|_| ReadError::new(start, format!("there is no block {id}")))?;
        if !(2..=32).contains(&width) {
            return Err(ReadError::new(start, format!("numbers of abbreviations cannot have {width} bits")));
        }
        if length > self.remaining() {
            return Err(ReadError::new(start, "a block is longer than what it stands in"));
        }
        let nested = Nested { id, start: self.at, end: self.at + length, width: width as u32 };
        self.at += length;
        Ok(nested)
    }

    fn abbreviation(&mut self) -> Result<Abbreviation, ReadError> {
        let start = self.position();
        let count = self.variable(5)?;
        let mut operands = Vec::new();
        for _ in 0..count {
            let literal = self.fixed(1)? == 1;
            let operand = if literal {
                Encoding::Literal(self.variable(8)?)
            } else {
                match self.fixed(3)? {
                    kind @ (1 | 2) => match (kind, self.variable(5)?) {
                        (_, 0) => Encoding::Literal(0),
                        (1, width @ 1..=64) => Encoding::Fixed(width as u32),
                        (2, width @ 1..=32) => Encoding::Variable(width as u32),
                        (_, width) => return Err(ReadError::new(start, format!("a field cannot have {width} bits"))),
                    },
                    3 => Encoding::Array,
                    4 => Encoding::Char6,
                    5 => Encoding::Blob,
                    kind => {
                        return Err(ReadError::new(start, format!("an abbreviation has an unknown encoding {kind}")));
                    }
                }
            };
            operands.push(operand);
        }
        if is_well_formed(&operands) {
            Ok(Abbreviation(operands))
        } else {
            Err(ReadError::new(start, "an abbreviation has an array or blob where none can be"))
        }
    }

    fn unabbreviated(&mut self, record: &mut Record) -> Result<(), ReadError> {
        let code = self.variable(6)?;
        let count = self.variable(6)?;
        self.start_record(record, code, count)?;
        for _ in 0..count {
            let value = self.variable(6)?;
            record.values.push(value);
        }
        Ok(())
    }

    fn start_record(&self, record: &mut Record, code: u64, count: u64) -> Result<(), ReadError> {
        record.values.clear();
        record.blob = 0..0;
        record.code = u32::try_from(code).map_err(|_| self.error("a record has a code of more than 32 bits"))?;
        if count > self.remaining() {
            return Err(self.error("a record is longer than its block"));
        }
        Ok(())
    }

    fn abbreviated(&mut self, index: usize, record: &mut Record) -> Result<(), ReadError> {
        let shared = self.shared.len();
        let found = match index < shared {
            true => self.shared.get(index),
            false => self.own.get(index - shared),
        };
        let Some(abbreviation) = found.cloned() else {
            return Err(self.error("a record uses an abbreviation that is not defined"));
        };
        let Some((first, rest)) = abbreviation.0.split_first() else {
            return Err(self.error("an abbreviation is empty"));
        };
        let code = self.scalar(*first)?;
        self.start_record(record, code, 0)?;
        let mut operands = rest.iter();
        while let Some(operand) = operands.next() {
            match operand {
                Encoding::Array => {
                    let element = operands.next().copied().unwrap_or(Encoding::Literal(0));
                    self.array(element, record)?;
                }
                Encoding::Blob => self.blob(record)?,
                scalar => {
                    let value = self.scalar(*scalar)?;
                    record.values.push(value);
                }
            }
        }
        Ok(())
    }

    fn scalar(&mut self, encoding: Encoding) -> Result<u64, ReadError> {
        match encoding {
            Encoding::Literal(value) => Ok(value),
            Encoding::Fixed(width) => self.fixed(width),
            Encoding::Variable(width) => self.variable(width),
            Encoding::Char6 => Ok(char6(self.fixed(6)?)),
            Encoding::Array | Encoding::Blob => Err(self.error("a code cannot be an array or blob")),
        }
    }

    fn array(&mut self, element: Encoding, record: &mut Record) -> Result<(), ReadError> {
        let count = self.variable(6)?;
        if count > self.remaining() {
            return Err(self.error("an array is longer than its block"));
        }
        for _ in 0..count {
            let value = self.scalar(element)?;
            record.values.push(value);
        }
        Ok(())
    }

    fn blob(&mut self, record: &mut Record) -> Result<(), ReadError> {
        let length = self.variable(6)?;
        self.align()?;
        if length > self.remaining() / 8 {
            return Err(self.error("a blob is longer than its block"));
        }
        let start = self.position();
        record.blob = start..start + length as usize;
        self.at += length * 8;
        self.align()
    }
}

/// An array holds elements that take bits, and like a blob it comes last.
fn is_well_formed(operands: &[Encoding]) -> bool {
    operands.iter().enumerate().all(|(index, operand)| match operand {
        Encoding::Array => {
            let takes_bits =
                |element: &Encoding| matches!(element, Encoding::Fixed(_) | Encoding::Variable(_) | Encoding::Char6);
            index > 0 && index + 2 == operands.len() && operands.last().is_some_and(takes_bits)
        }
        Encoding::Blob => index > 0 && index + 1 == operands.len(),
        _ => true,
    })
}

/// The lowest `width` bits.
fn low(value: u64, width: u32) -> u64 {
    if width >= 64 { value } else { value & ((1 << width) - 1) }
}

/// The character with that number in the six-bit alphabet.
fn char6(index: u64) -> u64 {
    const ALPHABET: &[u8; 64] = b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._";
    u64::from(ALPHABET[(index & 63) as usize])
}

impl BlockInfo {
    /// Reads a BLOCKINFO block.
    pub fn read(&mut self, bytes: &[u8], nested: Nested) -> Result<(), ReadError> {
        let mut block = Block::enter(bytes, nested, &BlockInfo::default());
        let mut record = Record::default();
        let mut about: Option<u32> = None;
        loop {
            let item = block.next(&mut record)?;
            // Definitions of abbreviations belong to the block named before them.
            let defined = std::mem::take(&mut block.own);
            match about {
                Some(id) if !defined.is_empty() => {
                    Rc::make_mut(self.0.entry(id).or_default()).extend(defined);
                }
                None if !defined.is_empty() => return Err(block.error("an abbreviation is for no block")),
                _ => {}
            }
            match item {
                Item::End => return Ok(()),
                Item::Block(_) => {}
                Item::Record if record.code == SET_BLOCK => {
                    let id = record.get(0).and_then(|id| u32::try_from(id).ok());
                    about = Some(id.ok_or_else(|| record.error("the number of a block is missing"))?);
                }
                Item::Record => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(bytes: &[u8]) -> Block<'_> {
        Block::bits(bytes)
    }

    #[test]
    fn fields_cross_bytes_and_words() {
        let bytes = [0xef, 0xbe, 0xad, 0xde, 0x01, 0x23, 0x45, 0x67, 0x89, 0xab];
        let mut b = block(&bytes);
        assert_eq!(b.fixed(4).unwrap(), 0xf);
        assert_eq!(b.fixed(12).unwrap(), 0xbee);
        b.at = 4;
        assert_eq!(b.fixed(64).unwrap(), 0x9674_5230_1dea_dbee);
        assert_eq!(b.fixed(12).unwrap(), 0xab8);
        assert!(b.fixed(1).is_err());
    }

    #[test]
    fn variable_numbers_end_and_do_not_overflow() {
        let mut b = block(&[0b0010_0101, 0b0000_0000]);
        assert_eq!(b.variable(3).unwrap(), 1);
        let ones = [0xff; 64];
        let mut b = block(&ones);
        assert!(b.variable(6).is_err());
    }

    #[test]
    fn lengths_are_bounded_by_the_block() {
        // An unabbreviated record of a million operands in a few bytes.
        let mut bits: Vec<(u64, u32)> = vec![(3, 2), (1, 6)];
        let mut count = 1_000_000u64;
        while count >= 32 {
            bits.push((count & 31 | 32, 6));
            count >>= 5;
        }
        bits.push((count, 6));
        let mut bytes = vec![0u8; 16];
        let mut at = 0;
        for (value, width) in bits {
            for bit in 0..width {
                bytes[at / 8] |= ((value >> bit & 1) as u8) << (at % 8);
                at += 1;
            }
        }
        assert!(block(&bytes).next(&mut Record::default()).is_err());
    }
}
