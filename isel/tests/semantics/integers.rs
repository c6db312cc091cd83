//! Integer operations of the IR on numbers of any width up to 128 bits. `None` is poison.

use ptxc_ir::{IntCC, Opcode};

pub fn mask(width: u32) -> u128 {
    if width >= 128 { u128::MAX } else { (1 << width) - 1 }
}

pub fn signed(bits: u128, width: u32) -> i128 {
    let shift = 128 - width;
    ((bits << shift) as i128) >> shift
}

/// Full product as high and low halves of 128 bits each.
fn product(a: u128, b: u128) -> (u128, u128) {
    let (a1, a0, b1, b0) = (a >> 64, a & mask(64), b >> 64, b & mask(64));
    let (low, m1, m2, high) = (a0 * b0, a0 * b1, a1 * b0, a1 * b1);
    let middle = (low >> 64) + (m1 & mask(64)) + (m2 & mask(64));
    (high + (m1 >> 64) + (m2 >> 64) + (middle >> 64), (middle << 64) | (low & mask(64)))
}

fn signed_product(a: i128, b: i128) -> (i128, u128) {
    let (mut high, low) = product(a as u128, b as u128);
    if a < 0 {
        high = high.wrapping_sub(b as u128);
    }
    if b < 0 {
        high = high.wrapping_sub(a as u128);
    }
    (high as i128, low)
}

pub fn unary(op: Opcode, w: u32, a: u128) -> u128 {
    let r = match op {
        Opcode::Abs => signed(a, w).unsigned_abs(),
        Opcode::Ctpop => a.count_ones().into(),
        Opcode::Ctlz => (a.leading_zeros() - (128 - w)).into(),
        Opcode::Cttz => a.trailing_zeros().min(w).into(),
        Opcode::Bswap => a.swap_bytes() >> (128 - w),
        Opcode::Bitreverse => a.reverse_bits() >> (128 - w),
        _ => panic!("no integer {}", op.text()),
    };
    r & mask(w)
}

pub fn binary(op: Opcode, w: u32, a: u128, b: u128) -> Option<u128> {
    use Opcode::*;
    let (sa, sb) = (signed(a, w), signed(b, w));
    let (most, least) = ((mask(w) >> 1) as i128, !((mask(w) >> 1) as i128));
    let shift = u32::try_from(b).ok().filter(|b| *b < w);
    let clamp = |v: Option<i128>, low: bool| match v {
        Some(v) => v.clamp(least, most) as u128,
        None => (if low { least } else { most }) as u128,
    };
    let r = match op {
        Add => a.wrapping_add(b),
        Sub => a.wrapping_sub(b),
        Mul => a.wrapping_mul(b),
        Udiv => a.checked_div(b)?,
        Urem => a.checked_rem(b)?,
        Sdiv | Srem if sb == 0 || (sa == least && sb == -1) => return None,
        Sdiv => (sa / sb) as u128,
        Srem => (sa % sb) as u128,
        And => a & b,
        Or => a | b,
        Xor => a ^ b,
        Shl => a << shift?,
        Lshr => a >> shift?,
        Ashr => (sa >> shift?) as u128,
        Smin => sa.min(sb) as u128,
        Smax => sa.max(sb) as u128,
        Umin => a.min(b),
        Umax => a.max(b),
        Umulh => {
            let (high, low) = product(a, b);
            if w == 128 { high } else { low >> w | high << (128 - w) }
        }
        Smulh => {
            let (high, low) = signed_product(sa, sb);
            if w == 128 { high as u128 } else { low >> w | (high as u128) << (128 - w) }
        }
        UaddSat => a.checked_add(b).map_or(mask(w), |v| v.min(mask(w))),
        UsubSat => a.saturating_sub(b),
        SaddSat => clamp(sa.checked_add(sb), sa < 0),
        SsubSat => clamp(sa.checked_sub(sb), sa < 0),
        UshlSat => {
            let r = (a << shift?) & mask(w);
            if r >> shift? == a { r } else { mask(w) }
        }
        SshlSat => {
            let r = signed((a << shift?) & mask(w), w);
            if r >> shift? == sa { r as u128 } else { clamp(None, sa < 0) }
        }
        _ => panic!("no integer {}", op.text()),
    };
    Some(r & mask(w))
}

pub fn overflow(op: Opcode, w: u32, a: u128, b: u128) -> (u128, bool) {
    use Opcode::*;
    let (sa, sb) = (signed(a, w), signed(b, w));
    let fits = |v: Option<i128>| v.is_some_and(|v| signed(v as u128 & mask(w), w) == v);
    let (r, o) = match op {
        UaddOverflow => (a.wrapping_add(b), a.checked_add(b).is_none_or(|v| v > mask(w))),
        UsubOverflow => (a.wrapping_sub(b), a < b),
        UmulOverflow => (a.wrapping_mul(b), a.checked_mul(b).is_none_or(|v| v > mask(w))),
        SaddOverflow => (a.wrapping_add(b), !fits(sa.checked_add(sb))),
        SsubOverflow => (a.wrapping_sub(b), !fits(sa.checked_sub(sb))),
        _ => (a.wrapping_mul(b), !fits(sa.checked_mul(sb))),
    };
    (r & mask(w), o)
}

pub fn funnel(op: Opcode, w: u32, a: u128, b: u128, amount: u128) -> u128 {
    let s = (amount % u128::from(w)) as u32;
    let r = match (op, s) {
        (Opcode::Fshl, 0) => a,
        (_, 0) => b,
        (Opcode::Fshl, s) => a << s | b >> (w - s),
        (_, s) => a << (w - s) | b >> s,
    };
    r & mask(w)
}

pub fn compare(cc: IntCC, w: u32, a: u128, b: u128) -> bool {
    let (sa, sb) = (signed(a, w), signed(b, w));
    match cc {
        IntCC::Eq => a == b,
        IntCC::Ne => a != b,
        IntCC::Ult => a < b,
        IntCC::Ule => a <= b,
        IntCC::Ugt => a > b,
        IntCC::Uge => a >= b,
        IntCC::Slt => sa < sb,
        IntCC::Sle => sa <= sb,
        IntCC::Sgt => sa > sb,
        IntCC::Sge => sa >= sb,
    }
}
