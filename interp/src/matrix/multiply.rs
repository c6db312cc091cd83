//! Matrix multiplication of a warp: `mma` (PTX ISA 9.7.16.3, 9.7.16.5.14).
//!
//! PTX leaves order and precision of float sums open. Here they are those of an H200 ([`super::tensor`]): products are added
//! to the accumulator 16 at a time, k ascending. 8-bit floats go two ways further: of every four along k the first two,
//! then the others are summed from zero, and that sum is added to the accumulator in its own precision. Products with
//! scale factors, which no H200 has, and those of infinities and NaN are added in double precision, the accumulator first,
//! and rounded once. f64 is a chain of fused multiply-adds, the accumulator first, k ascending. Integer sums are exact
//! before they wrap or saturate.

use ptxc_ir::FloatKind;

use super::fragment::{Arrangement, Fragment, LANES, Lanes, Role, Shape};
use super::tensor::{self, Term};
use crate::float::{self, Mode, Round};

/// What an element of a factor is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// A float in a container of `bits`, from bit `low` on.
    Float {
        /// Format.
        kind: FloatKind,
        /// Bits of the container.
        bits: u32,
        /// Where the float begins in it.
        low: u32,
    },
    /// An integer.
    Integer {
        /// Signed.
        signed: bool,
        /// Bits.
        bits: u32,
    },
    /// One bit.
    Bit,
}

impl Element {
    /// A float that fills its container.
    fn full(kind: FloatKind, bits: u32) -> Element {
        Element::Float { kind, bits, low: 0 }
    }

    /// The element of a type's name; `containers`: 4 and 6-bit floats lie in 8 bits.
    fn parse(text: &str, containers: bool) -> Option<Element> {
        let narrow = |kind, own, low| {
            if containers { Element::Float { kind, bits: 8, low } } else { Element::Float { kind, bits: own, low: 0 } }
        };
        Some(match text {
            "f16" => Element::full(FloatKind::F16, 16),
            "bf16" => Element::full(FloatKind::Bf16, 16),
            "tf32" => Element::full(FloatKind::Tf32, 32),
            "f64" => Element::full(FloatKind::F64, 64),
            "e4m3" => Element::full(FloatKind::E4m3, 8),
            "e5m2" => Element::full(FloatKind::E5m2, 8),
            "e3m2" if containers => narrow(FloatKind::E3m2, 8, 0),
            "e2m3" if containers => narrow(FloatKind::E2m3, 8, 0),
            "e2m1" => narrow(FloatKind::E2m1, 4, 2),
            "s8" | "u8" | "s4" | "u4" => {
                Element::Integer { signed: text.starts_with('s'), bits: if text.ends_with('8') { 8 } else { 4 } }
            }
            "b1" => Element::Bit,
            _ => return None,
        })
    }

    /// Bits in a register.
    pub fn bits(self) -> u32 {
        match self {
            Element::Float { bits, .. } | Element::Integer { bits, .. } => bits,
            Element::Bit => 1,
        }
    }

    fn to_f64(self, raw: u64) -> f64 {
        let Element::Float { kind, low, .. } = self else { return 0.0 };
        let bits = raw >> low;
        match kind {
            FloatKind::Bf16 => f32::from_bits((bits as u32) << 16).into(),
            // The low bits of the register are not looked at.
            FloatKind::Tf32 => f32::from_bits(bits as u32 & 0xffff_e000).into(),
            FloatKind::F32 => f32::from_bits(bits as u32).into(),
            FloatKind::F64 => f64::from_bits(bits),
            _ => {
                let width = 64 - (float::sign_bit(kind).leading_zeros());
                let bits = bits & (u64::MAX >> (64 - width.max(1)));
                f64::from_bits(float::convert(kind, FloatKind::F64, bits, Mode::default()))
            }
        }
    }

    fn to_term(self, raw: u64) -> Term {
        let Element::Float { kind, low, .. } = self else { return Term::Zero };
        Term::new(kind, (raw >> low) & (float::sign_bit(kind) | (float::sign_bit(kind) - 1)))
    }

    fn to_integer(self, raw: u64) -> i64 {
        match self {
            Element::Integer { signed: true, bits } => ((raw << (64 - bits)) as i64) >> (64 - bits),
            _ => raw as i64,
        }
    }
}

/// How the sums are made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Arithmetic {
    /// As tensor cores do, to this.
    Float(FloatKind),
    /// Fused multiply-adds of f64.
    Double(Round),
    /// 32-bit integers.
    Integer {
        /// Clamps instead of wrapping.
        saturate: bool,
    },
    /// Counts of bits of the exclusive or, or of the conjunction.
    Bits {
        /// Exclusive or.
        xor: bool,
    },
}

/// Scale factors of blocks along k.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Scale {
    /// Factors of a row: 1, 2 or 4.
    pub blocks: usize,
    /// `ue8m0`, or the magnitude of `e4m3`.
    pub kind: FloatKind,
}

/// One `mma`: what is multiplied, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Product {
    /// Left factor's elements.
    pub a: Element,
    /// Right factor's elements.
    pub b: Element,
    /// Layout of the left factor.
    pub left: Fragment,
    /// Layout of the right factor.
    pub right: Fragment,
    /// Layout of the accumulator.
    pub accumulator: Fragment,
    /// Layout of the result.
    pub result: Fragment,
    /// Scale factors, if any.
    pub scale: Option<Scale>,
    arithmetic: Arithmetic,
    accumulates: Element,
}

/// The scale factors that the operands of an `mma` name: registers, and the selectors of byte and thread.
#[derive(Clone, Copy, Debug)]
pub struct ScaleOperands<'a> {
    /// Registers with the factors of A.
    pub a: &'a Lanes,
    /// Byte and thread of A.
    pub select_a: (u32, u32),
    /// Registers with the factors of B.
    pub b: &'a Lanes,
    /// Byte and thread of B.
    pub select_b: (u32, u32),
}

fn accumulator(text: &str) -> Option<Element> {
    Some(match text {
        "f16" => Element::full(FloatKind::F16, 16),
        "f32" => Element::full(FloatKind::F32, 32),
        "f64" => Element::full(FloatKind::F64, 64),
        "s32" => Element::Integer { signed: true, bits: 32 },
        _ => return None,
    })
}

impl Product {
    /// Reads the modifiers of an `mma` after `mma.sync.aligned`. `None` for those that are not known here: sparse ones.
    pub fn parse(modifiers: &[&str]) -> Option<Product> {
        let (shape, rest) = modifiers.split_first()?;
        let (layouts, rest) = rest.split_at_checked(2)?;
        let shape = Shape::parse(shape)?;
        let mut types: Vec<&str> = Vec::new();
        let (mut containers, mut saturate, mut round) = (false, false, Round::Nearest);
        let (mut blocks, mut scaled, mut xor, mut counts) = (0, false, false, false);
        for piece in rest {
            match *piece {
                "kind::f8f6f4" => containers = true,
                "kind::mxf8f6f4" => (containers, blocks) = (true, 1),
                "kind::mxf4" | "kind::mxf4nvf4" => blocks = 2,
                "block_scale" => scaled = true,
                "scale_vec::1X" => blocks = 1,
                "scale_vec::2X" => blocks = 2,
                "scale_vec::4X" => blocks = 4,
                "satfinite" => saturate = true,
                "rn" => round = Round::Nearest,
                "rz" => round = Round::Zero,
                "rm" => round = Round::Down,
                "rp" => round = Round::Up,
                "xor" => xor = true,
                "and" => {}
                "popc" => counts = true,
                other => types.push(other),
            }
        }
        let (d, a, b, c, stype) = match types[..] {
            [d, a, b, c] => (d, a, b, c, None),
            [d, a, b, c, s] => (d, a, b, c, Some(s)),
            _ => return None,
        };
        let scale = match (scaled, stype) {
            (false, None) => None,
            (true, Some("ue8m0")) => Some(Scale { blocks, kind: FloatKind::Ue8m0 }),
            (true, Some("ue4m3")) => Some(Scale { blocks, kind: FloatKind::E4m3 }),
            _ => return None,
        };
        let (a, b) = (Element::parse(a, containers)?, Element::parse(b, containers)?);
        let (d, c) = (accumulator(d)?, accumulator(c)?);
        let arithmetic = match (a, d) {
            (Element::Bit, _) if counts => Arithmetic::Bits { xor },
            (Element::Integer { .. }, _) => Arithmetic::Integer { saturate },
            (Element::Float { kind: FloatKind::F64, .. }, _) => Arithmetic::Double(round),
            (_, Element::Float { kind, .. }) => Arithmetic::Float(kind),
            _ => return None,
        };
        let product = Product {
            a,
            b,
            left: Fragment::grouped(Role::A, shape, a.bits()),
            right: Fragment::grouped(Role::B, shape, b.bits()),
            accumulator: Fragment::grouped(Role::Accumulator, shape, c.bits()),
            result: Fragment::grouped(Role::Accumulator, shape, d.bits()),
            scale,
            arithmetic,
            accumulates: c,
        };
        let quads = shape == Shape { m: 8, n: 8, k: 4 } && a.bits() == 16;
        Some(if quads { product.in_quad_pairs(layouts) } else { product })
    }

    fn in_quad_pairs(mut self, layouts: &[&str]) -> Product {
        let row = |i: usize| layouts.get(i) == Some(&"row");
        self.left.arrangement = Arrangement::QuadPairs { row: row(0) };
        self.right.arrangement = Arrangement::QuadPairs { row: row(1) };
        for fragment in [&mut self.accumulator, &mut self.result] {
            fragment.arrangement = Arrangement::QuadPairs { row: fragment.bits == 16 };
        }
        self
    }

    /// The registers of the result.
    pub fn multiply(&self, a: &[Lanes], b: &[Lanes], c: &[Lanes], scales: Option<ScaleOperands<'_>>) -> Vec<Lanes> {
        let (a, b, c) = (self.left.gather(a), self.right.gather(b), self.accumulator.gather(c));
        let Shape { m, n, k } = self.left.shape;
        let d = match self.arithmetic {
            Arithmetic::Float(kind) if self.scale.is_none() => self.tensor(kind, &a, &b, &c),
            Arithmetic::Float(kind) => {
                let mut left: Vec<f64> = a.iter().map(|x| self.a.to_f64(*x)).collect();
                let mut right: Vec<f64> = b.iter().map(|x| self.b.to_f64(*x)).collect();
                if let (Some(scale), Some(operands)) = (self.scale, scales) {
                    scale_factors(scale, &operands, self.left.shape, &mut left, &mut right);
                }
                let start = |x: u64| self.accumulates.to_f64(x);
                let end = |sum: f64| from_f64(kind, sum);
                sums((m, n, k), self.left.matrices(), &left, &right, &c, start, |s, x, y| s + x * y, end)
            }
            Arithmetic::Double(round) => {
                let fma = |s, x: u64, y| float::fma(FloatKind::F64, x, y, s, Mode::rounded(round));
                sums((m, n, k), 1, &a, &b, &c, |x| x, fma, |x| x)
            }
            Arithmetic::Integer { saturate } => {
                let left: Vec<i64> = a.iter().map(|x| self.a.to_integer(*x)).collect();
                let right: Vec<i64> = b.iter().map(|x| self.b.to_integer(*x)).collect();
                let end = |sum: i64| {
                    let sum = if saturate { sum.clamp(i32::MIN.into(), i32::MAX.into()) } else { sum };
                    u64::from(sum as u32)
                };
                sums((m, n, k), 1, &left, &right, &c, |x| i64::from(x as i32), |s, x, y| s + x * y, end)
            }
            Arithmetic::Bits { xor } => {
                let count = |s: u64, x: u64, y: u64| s + if xor { x ^ y } else { x & y };
                sums((m, n, k), 1, &a, &b, &c, |x| x, count, |s| u64::from(s as u32))
            }
        };
        self.result.scatter(&d)
    }
}

impl Product {
    /// Sums as tensor cores make them.
    fn tensor(&self, kind: FloatKind, a: &[u64], b: &[u64], c: &[u64]) -> Vec<u64> {
        let Shape { m, n, k } = self.left.shape;
        let left: Vec<Term> = a.iter().map(|x| self.a.to_term(*x)).collect();
        let right: Vec<Term> = b.iter().map(|x| self.b.to_term(*x)).collect();
        // The accumulator in the precision of the result.
        let given = |x: u64| {
            if self.accumulator.bits == self.result.bits { x } else { from_f64(kind, self.accumulates.to_f64(x)) }
        };
        let mut d = Vec::with_capacity(c.len());
        for (at, given_bits) in c.iter().enumerate().take(self.left.matrices() * m * n) {
            let (which, row, column) = (at / (m * n), at / n % m, at % n);
            let factors = |i: usize| (left[(which * m + row) * k + i], right[(which * k + i) * n + column]);
            let start = given(*given_bits);
            let exact = if self.a.bits() == 8 {
                let half = |start, odd| tensor::sum(kind, start, (0..k).filter(|i| i % 4 / 2 == odd).map(factors));
                let sum = half(0, 0).and_then(|first| half(first, 1));
                sum.map(|sum| float::add(kind, start, sum, Mode::default()))
            } else {
                let mut blocks = (0..k).step_by(tensor::AT_ONCE);
                blocks.try_fold(start, |sum, from| {
                    tensor::sum(kind, sum, (from..k.min(from + tensor::AT_ONCE)).map(factors))
                })
            };
            d.push(exact.unwrap_or_else(|| {
                let of = |i: usize| (a[(which * m + row) * k + i], b[(which * k + i) * n + column]);
                let product = |(x, y): (u64, u64)| self.a.to_f64(x) * self.b.to_f64(y);
                from_f64(kind, (0..k).fold(self.accumulates.to_f64(*given_bits), |sum, i| sum + product(of(i))))
            }));
        }
        d
    }
}

/// A number of double precision, rounded to nearest.
fn from_f64(kind: FloatKind, x: f64) -> u64 {
    match kind {
        _ if x.is_nan() => float::nan(kind),
        FloatKind::F32 => (x as f32).to_bits().into(),
        _ => float::convert(FloatKind::F64, kind, x.to_bits(), Mode::default()),
    }
}

/// The result of every element: `end(step(… step(start(c), a, b) …))`, k ascending.
#[allow(clippy::too_many_arguments)]
fn sums<T: Copy, S: Copy>(
    (m, n, k): (usize, usize, usize),
    matrices: usize,
    a: &[T],
    b: &[T],
    c: &[u64],
    start: impl Fn(u64) -> S,
    step: impl Fn(S, T, T) -> S,
    end: impl Fn(S) -> u64,
) -> Vec<u64> {
    let mut d = Vec::with_capacity(matrices * m * n);
    for which in 0..matrices {
        for row in 0..m {
            let left = &a[(which * m + row) * k..][..k];
            for column in 0..n {
                let right = b[which * k * n + column..].iter().step_by(n);
                let from = start(c[(which * m + row) * n + column]);
                d.push(end(left.iter().zip(right).fold(from, |s, (x, y)| step(s, *x, *y))));
            }
        }
    }
    d
}

/// Multiplies the factors by the scales of their blocks (PTX ISA 9.7.16.3). Of A's factors, the first lane of a pair
/// holds those of row `g`, the second those of row `g + 8`.
fn scale_factors(scale: Scale, operands: &ScaleOperands<'_>, shape: Shape, a: &mut [f64], b: &mut [f64]) {
    let factor = |register: &Lanes, lane: usize, byte: usize| {
        let bits = register[lane % LANES] >> (8 * byte) & 0xff;
        let bits = if scale.kind == FloatKind::E4m3 { bits & 0x7f } else { bits };
        f64::from_bits(float::convert(scale.kind, FloatKind::F64, bits, Mode::default()))
    };
    let block = (shape.k / scale.blocks.max(1)).max(1);
    let first = |byte: u32| if scale.blocks == 4 { 0 } else { byte as usize & 3 };
    let (byte, thread) = operands.select_a;
    for (index, x) in a.iter_mut().enumerate() {
        let (row, k) = (index / shape.k, index % shape.k);
        let lane = row % 8 * 4 + (thread as usize & 1) * 2 + row / 8;
        *x *= factor(operands.a, lane, first(byte) + k / block);
    }
    let (byte, thread) = operands.select_b;
    for (index, y) in b.iter_mut().enumerate() {
        let (k, column) = (index / shape.n, index % shape.n);
        *y *= factor(operands.b, column * 4 + (thread as usize & 3), first(byte) + k / block);
    }
}
