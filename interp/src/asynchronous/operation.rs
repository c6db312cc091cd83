//! One asynchronous operation.

use ptxc_ir::FloatKind;

use crate::float::{self, Mode};
use crate::memory::{Accessor, Bytes, Claimed};

/// An mbarrier object: slot of the thread block whose shared memory it lies in, and offset there.
pub type BarrierPlace = (usize, u64);

/// How elements are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Combine {
    /// Conjunction.
    And,
    /// Disjunction.
    Or,
    /// Exclusive disjunction.
    Xor,
    /// Sum.
    Add,
    /// The next number; 0 after the operand.
    Inc,
    /// The number before; the operand before 0 and above the operand.
    Dec,
    /// Smaller.
    Min,
    /// Larger.
    Max,
}

impl Combine {
    /// The operation of a modifier.
    pub fn parse(text: &str) -> Option<Combine> {
        Some(match text {
            "and" => Combine::And,
            "or" => Combine::Or,
            "xor" => Combine::Xor,
            "add" => Combine::Add,
            "inc" => Combine::Inc,
            "dec" => Combine::Dec,
            "min" => Combine::Min,
            "max" => Combine::Max,
            _ => return None,
        })
    }
}

/// The type of the elements that are combined.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ElementType {
    /// An integer of so many bits.
    Integer {
        /// Signed.
        signed: bool,
        /// Bits, at most 64.
        bits: u32,
    },
    /// A float.
    Float(FloatKind),
}

impl ElementType {
    /// The type of a modifier.
    pub fn parse(text: &str) -> Option<ElementType> {
        Some(match text {
            "f16" => ElementType::Float(FloatKind::F16),
            "bf16" => ElementType::Float(FloatKind::Bf16),
            "f32" => ElementType::Float(FloatKind::F32),
            "f64" => ElementType::Float(FloatKind::F64),
            _ => {
                let bits = text.strip_prefix(['b', 'u', 's'])?.parse().ok()?;
                if bits != 32 && bits != 64 {
                    return None;
                }
                ElementType::Integer { signed: text.starts_with('s'), bits }
            }
        })
    }

    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            ElementType::Integer { bits, .. } => bits as usize / 8,
            ElementType::Float(FloatKind::F16 | FloatKind::Bf16) => 2,
            ElementType::Float(FloatKind::F64) => 8,
            ElementType::Float(_) => 4,
        }
    }

    /// The element in memory, combined with an operand.
    pub fn combine(self, how: Combine, old: u64, operand: u64) -> u64 {
        match self {
            ElementType::Float(kind) => match how {
                Combine::Min => float::min(kind, old, operand, false),
                Combine::Max => float::max(kind, old, operand, false),
                _ => float::add(kind, old, operand, Mode::default()),
            },
            ElementType::Integer { signed, bits } => {
                let unused = 64 - bits;
                let order = |x: u64| if signed { (x << unused) as i64 } else { ((x << unused) ^ 1 << 63) as i64 };
                let result = match how {
                    Combine::And => old & operand,
                    Combine::Or => old | operand,
                    Combine::Xor => old ^ operand,
                    Combine::Add => old.wrapping_add(operand),
                    Combine::Inc if old >= operand => 0,
                    Combine::Inc => old + 1,
                    Combine::Dec if old == 0 || old > operand => operand,
                    Combine::Dec => old - 1,
                    Combine::Min => std::cmp::min_by_key(old, operand, |x| order(*x)),
                    Combine::Max => std::cmp::max_by_key(old, operand, |x| order(*x)),
                };
                result << unused >> unused
            }
        }
    }

    /// All elements, combined. An element of which a byte is poison becomes poison.
    pub fn combine_all(self, how: Combine, old: &Bytes, operand: &Bytes) -> Bytes {
        let mut out = Bytes::default();
        let size = self.bytes();
        let number = |bytes: &[u8]| bytes.iter().rev().fold(0u64, |n, b| n << 8 | u64::from(*b));
        for (i, (x, y)) in old.values().chunks_exact(size).zip(operand.values().chunks_exact(size)).enumerate() {
            if old.any_poison(i * size, size) || operand.any_poison(i * size, size) {
                out.append(Bytes::poison(size));
                continue;
            }
            let result = self.combine(how, number(x), number(y));
            out.append(Bytes::known(result.to_le_bytes().into_iter().take(size).collect()));
        }
        out
    }
}

/// What an operation does when it is complete.
#[derive(Clone, Debug)]
pub enum Work {
    /// Writes its bytes to the target.
    Copy,
    /// Combines them with the target's.
    Reduce(Combine, ElementType),
    /// Arrives at its mbarrier object after other operations of the thread.
    Arrive(Vec<u32>),
}

/// What it tells an mbarrier object.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Signal {
    /// Bytes that are complete.
    Transactions(u32),
    /// One arrival.
    Arrival,
}

/// One asynchronous operation that is not known to be complete.
#[derive(Clone, Debug)]
pub struct Operation {
    /// Who began it.
    pub issuer: Accessor,
    /// What it does.
    pub work: Work,
    /// What it reads, until it has done so.
    pub source: Option<Claimed>,
    /// What it writes.
    pub target: Option<Claimed>,
    /// What it has read: bytes before the source's, and all of them once the source is read.
    pub data: Bytes,
    /// Bytes after the source's.
    pub tail: Bytes,
    /// Whom it tells.
    pub signal: Option<(BarrierPlace, Signal)>,
    /// It is done; only nobody knows yet.
    pub done: bool,
}
