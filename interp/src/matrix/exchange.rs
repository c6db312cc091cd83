//! Matrices between memory and registers: `ldmatrix`, `stmatrix`, `movmatrix` (PTX ISA 9.7.16.5.15 to 9.7.16.5.17).
//!
//! Memory holds rows of 16 bytes at an address each. Here a row is its bytes, the first in the low bits.

use super::fragment::{LANES, Lanes};

/// What the rows in memory hold, and how a register gets it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// `m8n8`, elements of 16 bits; transposed or not.
    Halves {
        /// `.trans`
        transposed: bool,
    },
    /// `m16n16.trans`, elements of 8 bits: two registers a matrix.
    Bytes(Packing),
    /// `m8n16`, elements that become 8 bits.
    Expanded(Packing),
}

/// How elements of less than eight bits lie in a row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Packing {
    /// 16 bytes.
    Bytes,
    /// 16 elements of 6 bits, then 32 bits of padding (`b6x16_p32`).
    Six,
    /// 16 elements of 4 bits, then 64 bits of padding (`b4x16_p64`).
    Four,
    /// 16 signed elements of 4 bits in 8 bytes (`s4`), which are extended.
    SignedFour,
}

impl Packing {
    /// Bytes that a row takes.
    pub fn row_bytes(self) -> u32 {
        if self == Packing::SignedFour { 8 } else { 16 }
    }

    /// The row as 16 bytes.
    fn expand(self, row: u128) -> u128 {
        let width = match self {
            Packing::Bytes => return row,
            Packing::Six => 6,
            Packing::Four | Packing::SignedFour => 4,
        };
        (0..16).fold(0, |bytes, i| {
            let element = (row >> (i * width)) as u8 & ((1 << width) - 1);
            let element = if self == Packing::SignedFour { ((element << 4) as i8 >> 4) as u8 } else { element };
            bytes | u128::from(element) << (8 * i)
        })
    }
}

impl Rows {
    /// Rows in memory, so lanes that give an address, of one matrix.
    pub fn per_matrix(self) -> usize {
        if matches!(self, Rows::Bytes(_)) { 16 } else { 8 }
    }

    /// Registers of one matrix.
    pub fn registers(self) -> usize {
        if matches!(self, Rows::Bytes(_)) { 2 } else { 1 }
    }

    /// Bytes of a row in memory.
    pub fn row_bytes(self) -> u32 {
        match self {
            Rows::Halves { .. } => 16,
            Rows::Bytes(packing) | Rows::Expanded(packing) => packing.row_bytes(),
        }
    }
}

fn half(row: u128, column: usize) -> u64 {
    u64::from((row >> (16 * column)) as u16)
}

fn byte(row: u128, column: usize) -> u64 {
    u64::from((row >> (8 * column)) as u8)
}

/// `ldmatrix`: the registers that rows of memory give, matrix after matrix. Missing rows are zero.
pub fn load(kind: Rows, rows: &[u128]) -> Vec<Lanes> {
    let mut registers = Vec::new();
    for matrix in rows.chunks(kind.per_matrix()) {
        let row = |i: usize| matrix.get(i).copied().unwrap_or(0);
        match kind {
            Rows::Halves { transposed: false } => {
                registers.push(std::array::from_fn(|lane| low(row(lane / 4) >> (lane % 4 * 32) & 0xffff_ffff)));
            }
            Rows::Halves { transposed: true } => registers.push(std::array::from_fn(|lane| {
                let (column, first) = (lane / 4, lane % 4 * 2);
                half(row(first), column) | half(row(first + 1), column) << 16
            })),
            Rows::Bytes(packing) => {
                let rows: Vec<u128> = (0..16).map(|i| packing.expand(row(i))).collect();
                for below in [0, 8] {
                    registers.push(std::array::from_fn(|lane| {
                        let (column, first) = (lane / 4 + below, lane % 4 * 4);
                        (0..4).fold(0, |word, i| word | byte(rows[first + i], column) << (8 * i))
                    }));
                }
            }
            Rows::Expanded(packing) => registers
                .push(std::array::from_fn(|lane| low(packing.expand(row(lane / 4)) >> (lane % 4 * 32) & 0xffff_ffff))),
        }
    }
    registers
}

fn low(word: u128) -> u64 {
    word as u64
}

/// `stmatrix` of `m8n8` matrices: the eight rows that each register gives, matrix after matrix.
pub fn store(transposed: bool, registers: &[Lanes]) -> Vec<u128> {
    let mut rows = Vec::new();
    for register in registers {
        let mut matrix = [0u128; 8];
        for (lane, word) in register.iter().enumerate() {
            for i in 0..2 {
                let element = u128::from((word >> (16 * i)) as u16);
                let (row, column) = (lane / 4, lane % 4 * 2 + i);
                let (row, column) = if transposed { (column, row) } else { (row, column) };
                matrix[row] |= element << (16 * column);
            }
        }
        rows.extend(matrix);
    }
    rows
}

/// `movmatrix`: the transposed matrix.
pub fn transpose(register: &Lanes) -> Lanes {
    let rows = store(true, std::slice::from_ref(register));
    load(Rows::Halves { transposed: false }, &rows).pop().unwrap_or([0; LANES])
}
