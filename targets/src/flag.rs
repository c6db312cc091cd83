//! Flags of an operand in the tables. The build script writes them and the crate reads them, both from this file.

pub const OUT: u32 = 1;
pub const INOUT: u32 = 1 << 1;
pub const REG: u32 = 1 << 2;
pub const IMM: u32 = 1 << 3;
pub const RANGE: u32 = 1 << 4;
pub const RELAXED: u32 = 1 << 5;
pub const SINK: u32 = 1 << 6;
pub const LABEL: u32 = 1 << 8;
pub const SYMBOL: u32 = 1 << 9;
pub const OPTIONAL: u32 = 1 << 10;
pub const PAIRED: u32 = 1 << 11;
pub const INSIDE: u32 = 1 << 12;
pub const GROUP: u32 = 1 << 13;
pub const SELECT: u32 = 1 << 14;
pub const SYMBOL_OK: u32 = 1 << 15;
pub const ABSOLUTE: u32 = 1 << 16;
pub const VECTOR_SINK: u32 = 1 << 17;
pub const MASK2: u32 = 1 << 18;
pub const SELECT2: u32 = 1 << 19;
pub const MASK4: u32 = 1 << 20;
pub const SELECT4: u32 = 1 << 21;
pub const MINUS: u32 = 1 << 22;
pub const LIST: u32 = 1 << 23;
