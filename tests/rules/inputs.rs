//! Values to try: those where rules go wrong, and random ones.

use ptxc::ir::{FloatKind, Scalar, Type};

/// A generator of pseudo-random numbers (xorshift*, Marsaglia 2003 and Vigna 2016).
pub struct Random(pub u64);

impl Random {
    /// The next number.
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }
}

/// Values of a scalar type that are often special, as bits.
pub fn special(ty: Type) -> Vec<u64> {
    let bits = ty.scalar_bits().min(64);
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let mut list: Vec<u64> = match ty.float_kind() {
        Some(kind) => floats(kind),
        None => {
            let small = [0u64, 1, 2, 3, 5, 7, 8, 15, 16, 24, 31, 32, 33, 63, 64, 127, 128, 255, 256, 0x8000, 0x1_0000];
            let patterns = [0x0123_4567_89ab_cdef, 0x8080_8080_8080_8080, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff];
            let top = 1u64 << (bits - 1);
            let around = [top, top.wrapping_sub(1), top + 1, top >> 1, mask];
            let low = small.iter().flat_map(|n| [*n, n.wrapping_neg()]);
            low.chain(patterns).chain(around).collect()
        }
    };
    list.iter_mut().for_each(|value| *value &= mask & kept(ty));
    list.sort_unstable();
    list.dedup();
    list
}

/// Zeros, ones, extremes, infinities and NaNs, of both signs.
fn floats(kind: FloatKind) -> Vec<u64> {
    let (exponent, fraction): (u32, u32) = match kind {
        FloatKind::F16 => (5, 10),
        FloatKind::Bf16 => (8, 7),
        FloatKind::F64 => (11, 52),
        FloatKind::F32 | FloatKind::Tf32 => (8, 23),
        // All bits of narrow floats are tried.
        _ => return (0..256).collect(),
    };
    let one = ((1u64 << (exponent - 1)) - 1) << fraction;
    let infinity = ((1u64 << exponent) - 1) << fraction;
    let magnitudes = [
        0,
        1,
        (1 << fraction) - 1,
        1 << fraction,
        one,
        one + 1,
        one - 1,
        one + (1 << (fraction - 1)),
        one + (1 << fraction),
        one - (1 << fraction),
        one + (31 << fraction.min(exponent + fraction - 6)),
        infinity - 1,
        infinity,
        infinity | 1 << (fraction - 1),
        infinity | 1,
    ];
    magnitudes.iter().flat_map(|m| [*m, *m | 1 << (exponent + fraction)]).collect()
}

/// A value of a scalar: special, small, or anything.
fn random(rng: &mut Random, special: &[u64], ty: Type) -> u64 {
    let bits = ty.scalar_bits().min(64);
    let mask = if bits == 64 { u64::MAX } else { (1 << bits) - 1 };
    let value = match rng.below(4) {
        0 => special[rng.below(special.len())],
        1 if ty.float_kind().is_none() => rng.next() % 64,
        // Floats of like size, so that sums and products are neither lost nor infinite.
        1 => near_one(rng, ty),
        2 if bits == 64 && ty.float_kind().is_none() => rng.next() >> 32,
        _ => rng.next(),
    };
    value & mask & kept(ty)
}

/// The bits that a type has: the lower ones of `tf32` are nobody's.
fn kept(ty: Type) -> u64 {
    if ty.float_kind() == Some(FloatKind::Tf32) { !0x1fff } else { u64::MAX }
}

fn near_one(rng: &mut Random, ty: Type) -> u64 {
    let number = (rng.next() % 4096) as f64 / 512.0 - 4.0;
    match ty.float_kind() {
        Some(FloatKind::F64) => number.to_bits(),
        Some(FloatKind::F32 | FloatKind::Tf32) => (number as f32).to_bits().into(),
        Some(FloatKind::Bf16) => ((number as f32).to_bits() >> 16).into(),
        // Exponents near the bias of f16.
        Some(FloatKind::F16) => (0x3800 + rng.next() % 0x1000) | ((rng.next() & 1) << 15),
        _ => rng.next(),
    }
}

/// The arguments of so many calls, one vector of the lanes' values a parameter; and whether they are all there are.
pub fn arguments(params: &[Type], name: &str) -> (usize, Vec<Vec<u64>>, bool) {
    let seed = name.bytes().fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let mut rng = Random(seed | 1);
    let total: u32 = params.iter().map(|ty| ty.bits()).sum();
    if total <= 16 {
        let count = 1usize << total;
        let mut shift = 0;
        let mut columns = Vec::new();
        for ty in params {
            let lanes = ty.lanes();
            let bits = ty.scalar_bits();
            let at = |i: usize, lane: u32| (i as u64 >> (shift + lane * bits)) & ((1 << bits) - 1);
            columns.push((0..count).flat_map(|i| (0..lanes).map(move |lane| at(i, lane))).collect());
            shift += ty.bits();
        }
        return (count, columns, true);
    }
    let count = 2048;
    let mut columns: Vec<Vec<u64>> = params.iter().map(|_| Vec::with_capacity(count)).collect();
    let lists: Vec<Vec<u64>> = params.iter().map(|ty| special(ty.scalar())).collect();
    for index in 0..count {
        // First the special values of the first two parameters with each other, then mixed.
        let mut rest = index;
        for (column, (ty, list)) in columns.iter_mut().zip(params.iter().zip(&lists)) {
            for _ in 0..ty.lanes() {
                let systematic = index < count / 2 && rest < usize::MAX;
                let value = if systematic {
                    let value = list[rest % list.len()];
                    rest /= list.len();
                    value
                } else {
                    random(&mut rng, list, ty.scalar())
                };
                column.push(value);
            }
        }
        // What the numbering does not reach is random, or the others would stay at their first value.
        if index < count / 2 {
            for (column, (ty, list)) in columns.iter_mut().zip(params.iter().zip(&lists)).skip(2) {
                let lanes = ty.lanes() as usize;
                for value in column.iter_mut().rev().take(lanes) {
                    *value = random(&mut rng, list, ty.scalar());
                }
            }
        }
    }
    (count, columns, false)
}

/// Whether a type can be put into buffers here.
pub fn is_plain(ty: Type) -> bool {
    let scalar = match ty.kind() {
        Some(Scalar::Int(bits)) => matches!(bits, 1 | 8 | 16 | 32 | 64),
        Some(Scalar::Float(_)) => true,
        _ => false,
    };
    scalar && (ty.scalar_bits() >= 8 || !ty.is_vector())
}
