use ptxc_ir::FloatKind;

use super::exchange::{Packing, Rows, load, store, transpose};
use super::fragment::{Fragment, LANES, Lanes, Role, Shape};
use super::multiply::{Product, ScaleOperands};
use crate::float::{Mode, convert};

/// Every form but the sparse ones, after `mma.sync.aligned`.
const FORMS: &[&str] = &[
    "m8n8k4.row.col.f32.f16.f16.f32",
    "m8n8k4.col.row.f16.f16.f16.f16",
    "m8n8k4.row.row.f32.f16.f16.f16",
    "m16n8k8.row.col.f32.f16.f16.f32",
    "m16n8k16.row.col.f16.f16.f16.f16",
    "m16n8k16.row.col.f32.f16.f16.f32",
    "m16n8k4.row.col.f32.tf32.tf32.f32",
    "m16n8k8.row.col.f32.tf32.tf32.f32",
    "m16n8k8.row.col.f32.bf16.bf16.f32",
    "m16n8k16.row.col.f32.bf16.bf16.f32",
    "m16n8k16.row.col.f32.e4m3.e5m2.f32",
    "m16n8k32.row.col.f16.e5m2.e4m3.f16",
    "m16n8k32.row.col.kind::f8f6f4.f32.e3m2.e2m1.f32",
    "m8n8k4.row.col.f64.f64.f64.f64",
    "m16n8k4.row.col.f64.f64.f64.f64.rz",
    "m16n8k8.row.col.f64.f64.f64.f64",
    "m16n8k16.row.col.f64.f64.f64.f64",
    "m8n8k16.row.col.satfinite.s32.s8.u8.s32",
    "m16n8k16.row.col.s32.u8.s8.s32",
    "m16n8k32.row.col.s32.s8.s8.s32",
    "m8n8k32.row.col.s32.u4.s4.s32",
    "m16n8k32.row.col.s32.s4.s4.s32",
    "m16n8k64.row.col.s32.u4.u4.s32",
    "m8n8k128.row.col.s32.b1.b1.s32.xor.popc",
    "m16n8k128.row.col.s32.b1.b1.s32.and.popc",
    "m16n8k256.row.col.s32.b1.b1.s32.xor.popc",
];

fn product(text: &str) -> Product {
    Product::parse(&text.split('.').collect::<Vec<_>>()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn every_element_has_one_place() {
    for form in FORMS {
        let p = product(form);
        for fragment in [p.left, p.right, p.accumulator, p.result] {
            let size = fragment.rows() * fragment.columns();
            let mut seen = vec![0u32; fragment.matrices() * size];
            for lane in 0..LANES {
                for index in 0..fragment.per_lane() {
                    let (which, row, column) = fragment.position(lane, index);
                    assert!(row < fragment.rows() && column < fragment.columns(), "{form} {fragment:?}");
                    seen[which * size + row * fragment.columns() + column] += 1;
                }
            }
            assert!(seen.iter().all(|n| *n == 1), "{form} {fragment:?}");
            let numbers: Vec<u64> = (0..seen.len() as u64).map(|x| x & ((1u64 << fragment.bits.min(63)) - 1)).collect();
            assert_eq!(fragment.gather(&fragment.scatter(&numbers)), numbers, "{form}");
        }
    }
}

/// Positions that PTX ISA 9.7.16.5 gives by formula, one a shape.
#[test]
fn positions_are_those_of_the_manual() {
    let shape = |text| Shape::parse(text).unwrap();
    let at = |role, text, bits, lane, index| {
        let (_, row, column) = Fragment::grouped(role, shape(text), bits).position(lane, index);
        (row, column)
    };
    // Lane 13 is group 3, thread 1.
    assert_eq!(at(Role::A, "m16n8k16", 16, 13, 5), (3, 11));
    assert_eq!(at(Role::A, "m16n8k16", 16, 13, 2), (11, 2));
    assert_eq!(at(Role::B, "m16n8k16", 16, 13, 3), (11, 3));
    assert_eq!(at(Role::A, "m16n8k8", 32, 13, 1), (11, 1));
    assert_eq!(at(Role::A, "m16n8k8", 32, 13, 2), (3, 5));
    assert_eq!(at(Role::A, "m16n8k16", 64, 13, 3), (11, 5));
    assert_eq!(at(Role::B, "m16n8k16", 64, 13, 3), (13, 3));
    assert_eq!(at(Role::A, "m16n8k32", 8, 13, 9), (3, 21));
    assert_eq!(at(Role::A, "m16n8k32", 8, 13, 6), (11, 6));
    assert_eq!(at(Role::B, "m16n8k32", 8, 13, 5), (21, 3));
    assert_eq!(at(Role::A, "m16n8k64", 4, 13, 17), (3, 41));
    assert_eq!(at(Role::A, "m16n8k256", 1, 13, 70), (3, 166));
    assert_eq!(at(Role::B, "m16n8k256", 1, 13, 40), (168, 3));
    assert_eq!(at(Role::Accumulator, "m16n8k8", 32, 13, 3), (11, 3));
}

fn small(kind: FloatKind, value: i32) -> u64 {
    convert(FloatKind::F32, kind, u64::from((value as f32).to_bits()), Mode::default())
}

/// Small integers, exact in every format: the product is that of the integers.
fn check(form: &str) {
    use super::multiply::Element;
    let p = product(form);
    let Shape { m, n, k } = p.left.shape;
    let encode = |element: Element, value: i32| match element {
        Element::Float { kind, low, .. } => small(kind, value) << low,
        Element::Integer { bits, .. } => value as u64 & ((1 << bits) - 1),
        Element::Bit => value as u64 & 1,
    };
    let value = |element: Element, i: usize| match element {
        Element::Integer { signed: false, .. } => (i * 7 % 5) as i32,
        Element::Bit => (i * 7 % 5 % 2) as i32,
        _ => (i * 7 % 5) as i32 - 2,
    };
    let count = p.left.matrices();
    let a: Vec<i32> = (0..count * m * k).map(|i| value(p.a, i)).collect();
    let b: Vec<i32> = (0..count * k * n).map(|i| value(p.b, i * 3 + 1)).collect();
    let c: Vec<i32> = (0..count * m * n).map(|i| (i % 11) as i32 - 5).collect();
    let float = |bits: u32| match bits {
        16 => FloatKind::F16,
        64 => FloatKind::F64,
        _ => FloatKind::F32,
    };
    let number = |bits: u32, x: i32| {
        if matches!(p.a, Element::Float { .. }) { small(float(bits), x) } else { u64::from(x as u32) }
    };
    let encoded = |element, values: &[i32]| values.iter().map(|x| encode(element, *x)).collect::<Vec<u64>>();
    let (ra, rb) = (p.left.scatter(&encoded(p.a, &a)), p.right.scatter(&encoded(p.b, &b)));
    let rc = p.accumulator.scatter(&c.iter().map(|x| number(p.accumulator.bits, *x)).collect::<Vec<_>>());
    let d = p.result.gather(&p.multiply(&ra, &rb, &rc, None));
    for which in 0..count {
        for row in 0..m {
            for column in 0..n {
                let at = (which * m + row) * n + column;
                let term = |i: usize| {
                    let (x, y) = (a[(which * m + row) * k + i], b[(which * k + i) * n + column]);
                    if form.contains("xor") { x ^ y } else { x * y }
                };
                let want = c[at] + (0..k).map(term).sum::<i32>();
                assert_eq!(d[at], number(p.result.bits, want), "{form} ({row}, {column})");
            }
        }
    }
}

#[test]
fn products_of_small_integers() {
    FORMS.iter().for_each(|form| check(form));
}

#[test]
fn integer_sums_wrap_or_saturate() {
    for (form, want) in [
        ("m8n8k16.row.col.s32.u8.u8.s32", 0x7fff_fff0u32.wrapping_add(16 * 255 * 255)),
        ("m8n8k16.row.col.satfinite.s32.u8.u8.s32", 0x7fff_ffff),
    ] {
        let p = product(form);
        let ones = [[0xffff_ffff; LANES]];
        let d = p.multiply(&ones, &ones, &[[0x7fff_fff0; LANES]; 2], None);
        assert!(d.iter().flatten().all(|x| *x == u64::from(want)), "{form}");
    }
}

#[test]
fn float_results_are_rounded_once_and_nan_is_canonical() {
    let p = product("m16n8k8.row.col.f32.bf16.bf16.f32");
    let mut c = vec![0u64; 128];
    c[0] = u64::from(f32::NAN.to_bits() | 0x1234);
    c[1] = u64::from(16_777_216f32.to_bits());
    let mut a = vec![0u64; 128];
    let mut b = vec![0u64; 64];
    // Row 0 by column 1: 1 * 1 twice. Added one after the other in single precision, both would be lost.
    (a[0], a[1]) = (0x3f80, 0x3f80);
    (b[1], b[9]) = (0x3f80, 0x3f80);
    let d = p.multiply(&p.left.scatter(&a), &p.right.scatter(&b), &p.accumulator.scatter(&c), None);
    let d = p.result.gather(&d);
    assert_eq!(d[0], 0x7fff_ffff);
    assert_eq!(d[1], u64::from(16_777_218f32.to_bits()));
}

#[test]
fn blocks_are_scaled() {
    let p = product("m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue8m0");
    // All elements 1: 0b0010.
    let ones = [[0x2222_2222; LANES]; 4];
    let zero = [[0; LANES]; 4];
    // Rows below 8 have factors 2 and 4, the others 1 and 1; bytes 2 and 3 of the high thread pair are selected.
    let mut a = [0u64; LANES];
    for (lane, word) in a.iter_mut().enumerate() {
        *word = if lane % 4 == 2 { 0x8180_0000 } else { 0x7f7f_0000 };
    }
    let b = [0x7f7f; LANES];
    let scales = ScaleOperands { a: &a, select_a: (2, 1), b: &b, select_b: (0, 3) };
    let d = p.result.gather(&p.multiply(&ones, &ones[..2], &zero, Some(scales)));
    assert_eq!(f32::from_bits(d[0] as u32), 32.0 * 2.0 + 32.0 * 4.0);
    assert_eq!(f32::from_bits(d[8 * 8] as u32), 64.0);
}

#[test]
fn sparse_products_are_not_known() {
    assert_eq!(Product::parse(&["m16n8k16", "row", "col", "f32", "f16"]), None);
    assert_eq!(Product::parse(&["m16n8k16", "row", "col", "f32", "f16", "x", "f32"]), None);
    assert_eq!(Product::parse(&[]), None);
}

fn numbered_rows() -> Vec<u128> {
    // Element (r, c) of 16 bits is 256 r + c.
    (0..8u128).map(|r| (0..8).fold(0, |row, c| row | (r << 8 | c) << (16 * c))).collect()
}

#[test]
fn rows_are_loaded_and_stored() {
    let rows = numbered_rows();
    let plain = load(Rows::Halves { transposed: false }, &rows);
    assert_eq!(plain[0][13], 0x0303_0302);
    let turned = load(Rows::Halves { transposed: true }, &rows);
    // Lane 13: column 3 of rows 2 and 3.
    assert_eq!(turned[0][13], 0x0303_0203);
    assert_eq!(store(false, &plain), rows);
    assert_eq!(store(true, &turned), rows);
    assert_eq!(transpose(&plain[0]), turned[0]);
    // Two matrices.
    let both: Vec<u128> = rows.iter().chain(rows.iter().rev()).copied().collect();
    assert_eq!(load(Rows::Halves { transposed: false }, &both).len(), 2);
}

#[test]
fn narrow_rows_become_bytes() {
    let row = |f: &dyn Fn(usize) -> u128, width: usize| (0..16).fold(0, |row, i| row | f(i) << (i * width));
    let six: Vec<u128> = (0..8).map(|r| row(&|i| (i + r) as u128, 6)).collect();
    assert_eq!(load(Rows::Expanded(Packing::Six), &six)[0][5], 0x0807_0605);
    let four: Vec<u128> = (0..8).map(|r| row(&|i| ((i + r) & 15) as u128, 4)).collect();
    assert_eq!(load(Rows::Expanded(Packing::Four), &four)[0][5], 0x0807_0605);
    assert_eq!(load(Rows::Expanded(Packing::SignedFour), &four)[0][5], 0xf807_0605);
    // Element (r, c) is 16 r + c; lane 5 has column 1, then 9, of rows 4 to 7.
    let bytes: Vec<u128> = (0..16u128).map(|r| row(&|i| r << 4 | i as u128, 8)).collect();
    let registers: Vec<Lanes> = load(Rows::Bytes(Packing::Bytes), &bytes);
    assert_eq!([registers[0][5], registers[1][5]], [0x7161_5141, 0x7969_5949]);
}

#[test]
fn tensor_cores_cut_terms_and_sums() {
    use super::tensor::{Term, sum};
    let single = |x: f32| u64::from(x.to_bits());
    let half = |x: i32| Term::new(FloatKind::F16, small(FloatKind::F16, x));
    let (one, tiny) = (half(1), Term::new(FloatKind::F16, 0x0400));
    // Toward zero, whatever the sign: 2^24 + 1 has a bit too many.
    for (start, want) in [(16_777_216.0, 16_777_216.0), (-16_777_216.0, -16_777_215.0)] {
        assert_eq!(sum(FloatKind::F32, single(start), [(one, one)].into_iter()), Some(single(want)));
    }
    // Two that are cut do not add up to one that is not: 2^-14 beside 2^12.
    let start = single(4096.0);
    assert_eq!(sum(FloatKind::F32, start, [(one, tiny); 16].into_iter()), Some(start));
    assert_eq!(sum(FloatKind::F32, 0, [].into_iter()), Some(0));
    assert_eq!(sum(FloatKind::F32, single(f32::INFINITY), [(one, one)].into_iter()), None);
    // To f16, to nearest even.
    let pair = [(half(1024), half(2)), (one, one)].into_iter();
    assert_eq!(sum(FloatKind::F16, 0, pair), Some(small(FloatKind::F16, 2048)));
}
