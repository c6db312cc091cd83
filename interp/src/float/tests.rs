use ptxc_ir::FloatKind;
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round as ApRound};

use super::*;

const ROUNDS: [(Round, ApRound); 5] = [
    (Round::Nearest, ApRound::NearestTiesToEven),
    (Round::Zero, ApRound::TowardZero),
    (Round::Down, ApRound::TowardNegative),
    (Round::Up, ApRound::TowardPositive),
    (Round::NearestAway, ApRound::NearestTiesToAway),
];

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

/// Numbers at the edges of a format, and random ones near each other, so that sums cancel.
fn samples(kind: FloatKind, random: &mut Random) -> Vec<u64> {
    let bits = kind.storage_bits();
    let mask = u64::MAX >> (64 - bits);
    let f = soft::format(kind);
    let hidden = 1u64 << (f.precision - 1);
    let infinity = ((1 << f.exponent_bits) - 1) << (f.precision - 1);
    let one = one(kind);
    let mut out =
        vec![0, 1, 2, hidden - 1, hidden, hidden + 1, infinity - 1, infinity, infinity + 1, one - 1, one, one + 1];
    out.extend([one + (hidden >> 1), one + hidden, infinity | hidden >> 1, infinity - hidden]);
    for _ in 0..12 {
        out.push(random.next());
        out.push(one.wrapping_add(random.next() % (8 * hidden)));
    }
    let negative: Vec<u64> = out.iter().map(|x| x ^ sign_bit(kind)).collect();
    out.extend(negative);
    out.into_iter().map(|x| x & mask).collect()
}

/// Results are equal up to the choice of NaN, which [`nan`] makes except to and from f64.
fn check<F: Float>(kind: FloatKind, what: &str, operands: &[u64], got: u64, want: F) {
    if want.is_nan() {
        assert!(is_nan(kind, got), "{what} {operands:x?}: {got:x}, not NaN");
        if kind != FloatKind::F64 && !what.starts_with("F64 to") {
            assert_eq!(got, nan(kind), "{what} {operands:x?}");
        }
    } else {
        assert_eq!(got, want.to_bits() as u64, "{} {what} {operands:x?}", kind.name());
    }
}

fn arithmetic_agrees<F: Float>(kind: FloatKind) {
    let mut random = Random(kind as u64);
    let samples = samples(kind, &mut random);
    let of = |x: u64| F::from_bits(x.into());
    for (round, ap) in ROUNDS {
        let mode = Mode::rounded(round);
        for &a in &samples {
            check(kind, "integral", &[a], round_to_integral(kind, a, mode), of(a).round_to_integral(ap).value);
            for &b in &samples {
                check(kind, "add", &[a, b], add(kind, a, b, mode), of(a).add_r(of(b), ap).value);
                check(kind, "sub", &[a, b], sub(kind, a, b, mode), of(a).sub_r(of(b), ap).value);
                check(kind, "mul", &[a, b], mul(kind, a, b, mode), of(a).mul_r(of(b), ap).value);
                check(kind, "div", &[a, b], div(kind, a, b, mode), of(a).div_r(of(b), ap).value);
                let c = samples[random.next() as usize % samples.len()];
                check(kind, "fma", &[a, b, c], fma(kind, a, b, c, mode), of(a).mul_add_r(of(b), of(c), ap).value);
                // An addend near the product.
                let c = mul(kind, a, b, mode).wrapping_add(random.next() % 5) ^ sign_bit(kind);
                let want = of(a).mul_add_r(of(b), of(c), ap).value;
                check(kind, "fma", &[a, b, c], fma(kind, a, b, c, mode), want);
            }
        }
    }
    for &a in &samples {
        for &b in &samples {
            assert_eq!(compare(kind, a, b, false), of(a).partial_cmp(&of(b)), "{a:x} {b:x}");
            if !is_nan(kind, a) && !is_nan(kind, b) {
                check(kind, "minimum", &[a, b], minimum(kind, a, b, false), of(a).minimum(of(b)));
                check(kind, "max", &[a, b], max(kind, a, b, false), of(a).maximum(of(b)));
            }
        }
    }
}

#[test]
fn arithmetic() {
    arithmetic_agrees::<Half>(FloatKind::F16);
    arithmetic_agrees::<BFloat>(FloatKind::Bf16);
    arithmetic_agrees::<Single>(FloatKind::F32);
    arithmetic_agrees::<Double>(FloatKind::F64);
}

#[test]
fn remainders_and_roots_are_the_processors() {
    let mut random = Random(9);
    let doubles = samples(FloatKind::F64, &mut random);
    for &a in &doubles {
        let root = f64::from_bits(a).sqrt();
        let got = sqrt(FloatKind::F64, a, Mode::default());
        assert!(got == root.to_bits() || (root.is_nan() && is_nan(FloatKind::F64, got)), "sqrt {a:x}: {got:x}");
        for &b in &doubles {
            check(
                FloatKind::F64,
                "rem",
                &[a, b],
                frem(FloatKind::F64, a, b),
                Double::from_bits((f64::from_bits(a) % f64::from_bits(b)).to_bits().into()),
            );
        }
    }
    for _ in 0..20_000 {
        let (a, b) = (random.next() as u32, random.next() as u32);
        let (x, y) = (f32::from_bits(a), f32::from_bits(b));
        let single = |x: f32| Single::from_bits(x.to_bits().into());
        check(FloatKind::F32, "sqrt", &[a.into()], sqrt(FloatKind::F32, a.into(), Mode::default()), single(x.sqrt()));
        check(FloatKind::F32, "rem", &[a.into(), b.into()], frem(FloatKind::F32, a.into(), b.into()), single(x % y));
        // The exact path and the processor's.
        let slow = soft::pack(
            FloatKind::F32,
            &soft::mul(&soft::unpack(FloatKind::F32, a.into()), &soft::unpack(FloatKind::F32, b.into())),
            Round::Nearest,
            false,
        );
        check(FloatKind::F32, "mul", &[a.into(), b.into()], slow, single(x * y));
    }
}

#[test]
fn directed_roots_are_next_to_the_nearest() {
    // All halves, with the definition: the largest number whose square is not above.
    for a in 0..0x7c00u64 {
        let down = sqrt(FloatKind::F16, a, Mode::rounded(Round::Down));
        let up = sqrt(FloatKind::F16, a, Mode::rounded(Round::Up));
        let value = |x: u64| f64::from_bits(convert(FloatKind::F16, FloatKind::F64, x, Mode::default()));
        assert!(value(down) * value(down) <= value(a) && value(up) * value(up) >= value(a), "{a:x}");
        assert!(up == down || up == down + 1, "{a:x}");
    }
}

macro_rules! converts {
    ($from:ident $F:ty => $($to:ident $T:ty),*) => {
        $(for (round, ap) in ROUNDS {
            let mut random = Random(round as u64);
            let from = FloatKind::$from;
            let all: Vec<u64> = if from.storage_bits() <= 16 {
                (0..1 << from.storage_bits()).collect()
            } else {
                (0..200).flat_map(|_| samples(from, &mut random)).collect()
            };
            for a in all {
                let mut lossy = false;
                let want: $T = <$F>::from_bits(a.into()).convert_r(ap, &mut lossy).value;
                let got = convert(from, FloatKind::$to, a, Mode::rounded(round));
                let what = concat!(stringify!($from), " to ", stringify!($to));
                // Overflow of e4m3, which has no infinity: apfloat does not tell the modes apart. The hardware
                // knows only `satfinite` here.
                if FloatKind::$to == FloatKind::E4m3 && got & 0x7f >= 0x7e {
                    assert!(want.is_nan() || want.to_bits() & 0x7f == 0x7e, "{what} {a:x} {got:x}");
                    continue;
                }
                check(FloatKind::$to, what, &[a], got, want);
            }
        })*
    };
}

#[test]
fn conversions_between_formats() {
    converts!(F32 Single => F16 Half, Bf16 BFloat, F64 Double, E4m3 Float8E4M3FN, E5m2 Float8E5M2);
    converts!(F64 Double => F16 Half, Bf16 BFloat, F32 Single);
    converts!(F16 Half => F32 Single, Bf16 BFloat, F64 Double, E4m3 Float8E4M3FN, E5m2 Float8E5M2);
    converts!(E4m3 Float8E4M3FN => F16 Half, F32 Single);
    converts!(E5m2 Float8E5M2 => F16 Half, F32 Single);
}

#[test]
fn integers() {
    let mut random = Random(3);
    for kind in [FloatKind::F16, FloatKind::Bf16, FloatKind::F32, FloatKind::F64] {
        for a in (0..50).flat_map(|_| samples(kind, &mut random)).collect::<Vec<_>>() {
            let wide = f64::from_bits(convert(kind, FloatKind::F64, a, Mode::default()));
            assert_eq!(to_int_saturating(kind, a, 32, true, Round::Zero, false) as u32 as i32, wide as i32);
            assert_eq!(to_int_saturating(kind, a, 64, false, Round::Zero, false) as u64, wide as u64);
            assert_eq!(to_int_saturating(kind, a, 8, true, Round::Zero, false) as u8 as i8, wide as i8);
            assert_eq!(to_int_saturating(kind, a, 128, true, Round::Zero, false) as i128, wide as i128);
            assert_eq!(to_int_saturating(kind, a, 64, true, Round::Down, false) as i64, wide.floor() as i64);
            let whole = wide.round_ties_even();
            let inside = (-128.0..=127.0).contains(&whole);
            assert_eq!(
                to_int(kind, a, 8, true, Round::Nearest, false).map(|x| x as u8 as i8),
                inside.then_some(whole as i8)
            );
        }
    }
    for _ in 0..20_000 {
        let n = random.next() >> (random.next() % 64);
        assert_eq!(
            from_int(FloatKind::F32, n.into(), 64, true, Mode::default()),
            u64::from((n as i64 as f32).to_bits())
        );
        assert_eq!(from_int(FloatKind::F64, n.into(), 64, false, Mode::default()), (n as f64).to_bits());
        let (half, _) = (Half::from_i128_r((n as i64).into(), ApRound::TowardPositive).value, 0);
        assert_eq!(from_int(FloatKind::F16, n.into(), 64, true, Mode::rounded(Round::Up)), half.to_bits() as u64);
    }
}

#[test]
fn modes() {
    let kind = FloatKind::F32;
    let bits = |x: f32| u64::from(x.to_bits());
    let sat = Mode { sat: true, ..Mode::default() };
    assert_eq!(add(kind, bits(0.75), bits(0.75), sat), bits(1.0));
    assert_eq!(add(kind, bits(-0.75), bits(0.5), sat), 0);
    assert_eq!(mul(kind, bits(0.0), bits(f32::INFINITY), sat), 0);
    assert_eq!(mul(kind, bits(-0.0), bits(1.0), sat), 0);
    let ftz = Mode { ftz: true, ..Mode::default() };
    assert_eq!(mul(kind, bits(f32::MIN_POSITIVE), bits(-0.5), ftz), 1 << 31);
    assert_eq!(add(kind, 0x8000_0001, 0x8000_0000, ftz), 1 << 31);
    let relu = Mode { relu: true, ..Mode::default() };
    assert_eq!(fma(FloatKind::F16, 0xbc00, 0x3c00, 0, relu), 0);
    assert_eq!(fma(FloatKind::F16, 0x7e00, 0x3c00, 0, relu), 0x7fff);
    assert_eq!(convert(kind, FloatKind::E4m3, bits(f32::NEG_INFINITY), relu), 0);
    assert_eq!(convert(kind, FloatKind::E4m3, bits(-600.0), relu), 0);
    assert_eq!(convert(kind, FloatKind::E4m3, bits(600.0), relu), 0x7f);
    assert_eq!(add(kind, bits(1.0), bits(-1.0), Mode::rounded(Round::Down)), 1 << 31);
    assert_eq!(min(kind, bits(0.0), bits(-0.0), false), 1 << 31);
    assert_eq!(max(kind, bits(-0.0), bits(0.0), false), 0);
    assert_eq!(min(kind, 0x7fc0_0001, bits(2.0), false), bits(2.0));
    assert_eq!(minimum(kind, 0x7fc0_0001, bits(2.0), false), 0x7fff_ffff);
}

#[test]
fn narrow_formats() {
    // Every value of every narrow format goes to f32 and back.
    for kind in FloatKind::ALL.into_iter().filter(|k| k.is_narrow()) {
        let count = match kind {
            FloatKind::E2m1 => 16,
            FloatKind::E2m3 | FloatKind::E3m2 => 64,
            _ => 256,
        };
        for a in 0..count {
            let wide = convert(kind, FloatKind::F32, a, Mode::default());
            let back = convert(FloatKind::F32, kind, wide, Mode::default());
            assert!(back == a || is_nan(kind, a) && is_nan(kind, back), "{} {a:x} {wide:x} {back:x}", kind.name());
        }
    }
    let bits = |x: f32| u64::from(x.to_bits());
    let to = |kind, x: f32, mode| convert(FloatKind::F32, kind, bits(x), mode);
    let finite = Mode { finite: true, ..Mode::default() };
    assert_eq!(to(FloatKind::E4m3, 1e9, finite), 0x7e);
    assert_eq!(to(FloatKind::E4m3, -1e9, finite), 0xfe);
    assert_eq!(to(FloatKind::E5m2, f32::INFINITY, finite), 0x7b);
    assert_eq!(to(FloatKind::E5m2, 1e9, Mode::default()), 0x7c);
    assert_eq!(to(FloatKind::E2m1, 100.0, finite), 0x7);
    assert_eq!(to(FloatKind::E2m1, f32::NAN, finite), 0x7);
    assert_eq!(to(FloatKind::E2m1, 2.5, Mode::default()), 0x4);
    assert_eq!(to(FloatKind::E2m1, 5.0, Mode::default()), 0x6);
    assert_eq!(to(FloatKind::E2m3, -7.5, Mode::default()), 0x3f);
    assert_eq!(to(FloatKind::E3m2, 28.0, Mode::default()), 0x1f);
    assert_eq!(to(FloatKind::Ue8m0, 3.0, Mode::rounded(Round::Up)), 129);
    assert_eq!(to(FloatKind::Ue8m0, 3.0, Mode::rounded(Round::Zero)), 128);
    assert_eq!(to(FloatKind::Ue8m0, f32::INFINITY, finite), 0xfe);
    assert_eq!(to(FloatKind::Tf32, 1.0 + 1.0 / 2048.0, Mode::rounded(Round::NearestAway)), bits(1.0 + 1.0 / 1024.0));
    assert_eq!(to(FloatKind::Tf32, 1.0 + 1.0 / 2048.0, Mode::default()), bits(1.0));
}

#[test]
fn classes() {
    let class32 = |bits: u64| class(FloatKind::F32, bits);
    assert_eq!(class32(0x7f80_0001), 0);
    assert_eq!(class32(0x7fc0_0000), 1);
    assert_eq!(class32(0xff80_0000), 2);
    assert_eq!(class32(0xbf80_0000), 3);
    assert_eq!(class32(0x8000_0001), 4);
    assert_eq!(class32(0x8000_0000), 5);
    assert_eq!(class32(0), 6);
    assert_eq!(class32(1), 7);
    assert_eq!(class32(0x3f80_0000), 8);
    assert_eq!(class32(0x7f80_0000), 9);
}
