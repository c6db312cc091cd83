//! Integer operations, with their meanings on 128-bit words.

use super::{Operation, Type};

/// The value as a signed number.
pub fn signed(bits: u32, value: u128) -> i128 {
    (value << (128 - bits)) as i128 >> (128 - bits)
}

/// The smallest and the largest signed value.
pub fn signed_range(bits: u32) -> (i128, i128) {
    let max = (u128::MAX >> (129 - bits.max(2))) as i128;
    if bits == 1 { (-1, 0) } else { (-max - 1, max) }
}

/// The upper half of the 2 x 128-bit product.
fn high_product(x: u128, y: u128) -> u128 {
    let low = u128::from(u64::MAX);
    let (x1, x0, y1, y0) = (x >> 64, x & low, y >> 64, y & low);
    let middle = x1 * y0 + ((x0 * y0) >> 64);
    let carry = (middle & low) + x0 * y1;
    x1 * y1 + (middle >> 64) + (carry >> 64)
}

/// The upper halves of the unsigned and the signed double-width product.
fn high_products(bits: u32, x: u128, y: u128) -> (u128, u128) {
    let (high, low) = (high_product(x, y), x.wrapping_mul(y));
    let unsigned = if bits == 128 { high } else { high << (128 - bits) | low >> bits };
    // Reading an operand with its top bit as negative takes away the other one, shifted by the width.
    let (sx, sy) = (signed(bits, x) < 0, signed(bits, y) < 0);
    let signed = unsigned.wrapping_sub(if sx { y } else { 0 }).wrapping_sub(if sy { x } else { 0 });
    (unsigned, signed)
}

/// All integer operations for a width.
pub fn operations(bits: u32) -> Vec<Operation> {
    let mut list = arithmetic(bits);
    list.extend(shifts(bits));
    list.extend(comparisons(bits));
    list.extend(saturating(bits));
    list.extend(overflowing(bits));
    list.extend(bit_manipulation(bits));
    list
}

fn arithmetic(bits: u32) -> Vec<Operation> {
    let ty = Type::Int(bits);
    let mask = ty.mask();
    let (min, _) = signed_range(bits);
    let binary = |name: &str, meaning: Box<dyn Fn(u128, u128) -> Option<u128>>| {
        Operation::new(&[ty, ty], ty, format!("%r = {name} i{bits} %x, %y"), move |x, y, _| {
            meaning(x, y).map(|result| result & mask)
        })
    };
    let divide = move |x: u128, y: u128| {
        let (x, y) = (signed(bits, x), signed(bits, y));
        (y != 0 && !(x == min && y == -1)).then_some((x, y))
    };
    let less = move |x, y| signed(bits, x) < signed(bits, y);
    vec![
        binary("add", Box::new(|x, y| Some(x.wrapping_add(y)))),
        binary("sub", Box::new(|x, y| Some(x.wrapping_sub(y)))),
        binary("mul", Box::new(|x, y| Some(x.wrapping_mul(y)))),
        binary("and", Box::new(|x, y| Some(x & y))),
        binary("or", Box::new(|x, y| Some(x | y))),
        binary("xor", Box::new(|x, y| Some(x ^ y))),
        binary("udiv", Box::new(|x, y| x.checked_div(y))),
        binary("urem", Box::new(|x, y| x.checked_rem(y))),
        binary("sdiv", Box::new(move |x, y| divide(x, y).map(|(x, y)| (x / y) as u128))),
        binary("srem", Box::new(move |x, y| divide(x, y).map(|(x, y)| (x % y) as u128))),
        binary("umin", Box::new(|x, y| Some(x.min(y)))),
        binary("umax", Box::new(|x, y| Some(x.max(y)))),
        binary("smin", Box::new(move |x, y| Some(if less(x, y) { x } else { y }))),
        binary("smax", Box::new(move |x, y| Some(if less(x, y) { y } else { x }))),
        binary("umulh", Box::new(move |x, y| Some(high_products(bits, x, y).0))),
        binary("smulh", Box::new(move |x, y| Some(high_products(bits, x, y).1))),
    ]
}

fn shifts(bits: u32) -> Vec<Operation> {
    let ty = Type::Int(bits);
    let mask = ty.mask();
    let shift = |name: &str, meaning: fn(u32, u128, u32) -> u128| {
        Operation::new(&[ty, ty], ty, format!("%r = {name} i{bits} %x, %y"), move |x, y, _| {
            (y < u128::from(bits)).then(|| meaning(bits, x, y as u32) & mask)
        })
    };
    let funnel = |name: &str, left: bool| {
        Operation::new(&[ty, ty, ty], ty, format!("%r = {name} i{bits} %x, %y, %z"), move |x, y, z| {
            let amount = (z % u128::from(bits)) as u32;
            let result = match (left, amount) {
                (true, 0) => x,
                (false, 0) => y,
                (true, _) => x << amount | y >> (bits - amount),
                (false, _) => x << (bits - amount) | y >> amount,
            };
            Some(result & mask)
        })
    };
    vec![
        shift("shl", |_, x, y| x << y),
        shift("lshr", |_, x, y| x >> y),
        shift("ashr", |bits, x, y| (signed(bits, x) >> y) as u128),
        funnel("fshl", true),
        funnel("fshr", false),
    ]
}

fn comparisons(bits: u32) -> Vec<Operation> {
    let ty = Type::Int(bits);
    let compare = |code: &str, meaning: fn(u128, u128, i128, i128) -> bool| {
        Operation::new(&[ty, ty], Type::Int(1), format!("%r = icmp {code} i{bits} %x, %y"), move |x, y, _| {
            Some(u128::from(meaning(x, y, signed(bits, x), signed(bits, y))))
        })
    };
    let select = format!("%c = icmp ult i{bits} %x, %z\n%r = select i1 %c, i{bits} %x, %y");
    vec![
        compare("eq", |x, y, _, _| x == y),
        compare("ne", |x, y, _, _| x != y),
        compare("ult", |x, y, _, _| x < y),
        compare("ule", |x, y, _, _| x <= y),
        compare("ugt", |x, y, _, _| x > y),
        compare("uge", |x, y, _, _| x >= y),
        compare("slt", |_, _, x, y| x < y),
        compare("sle", |_, _, x, y| x <= y),
        compare("sgt", |_, _, x, y| x > y),
        compare("sge", |_, _, x, y| x >= y),
        Operation::new(&[ty, ty, ty], ty, select, |x, y, z| Some(if x < z { x } else { y })),
    ]
}

/// The exact sum or difference as a signed number, clamped to what 128 bits hold. Enough, since a result outside of
/// them is outside of every narrower range too.
fn exact(add: bool, x: i128, y: i128) -> i128 {
    if add { x.saturating_add(y) } else { x.saturating_sub(y) }
}

fn saturating(bits: u32) -> Vec<Operation> {
    let ty = Type::Int(bits);
    let mask = ty.mask();
    let (min, max) = signed_range(bits);
    let signed_op = |name: &str, add: bool| {
        Operation::new(&[ty, ty], ty, format!("%r = {name} i{bits} %x, %y"), move |x, y, _| {
            Some(exact(add, signed(bits, x), signed(bits, y)).clamp(min, max) as u128 & mask)
        })
    };
    let shift = |name: &str, meaning: Box<dyn Fn(u128, u32) -> u128>| {
        Operation::new(&[ty, ty], ty, format!("%r = {name} i{bits} %x, %y"), move |x, y, _| {
            (y < u128::from(bits)).then(|| meaning(x, y as u32) & mask)
        })
    };
    vec![
        Operation::new(&[ty, ty], ty, format!("%r = uadd_sat i{bits} %x, %y"), move |x, y, _| {
            Some(x.saturating_add(y).min(mask))
        }),
        Operation::new(&[ty, ty], ty, format!("%r = usub_sat i{bits} %x, %y"), |x, y, _| Some(x.saturating_sub(y))),
        signed_op("sadd_sat", true),
        signed_op("ssub_sat", false),
        shift("ushl_sat", Box::new(move |x, y| if (x << y & mask) >> y == x { x << y } else { mask })),
        shift(
            "sshl_sat",
            Box::new(move |x, y| {
                let value = signed(bits, x);
                let fits = signed(bits, x << y & mask) >> y == value;
                let limit = if value < 0 { min } else { max };
                if fits { x << y } else { limit as u128 }
            }),
        ),
    ]
}

fn overflowing(bits: u32) -> Vec<Operation> {
    let ty = Type::Int(bits);
    let mask = ty.mask();
    let (min, max) = signed_range(bits);
    let pair = |name: &str, meaning: Box<dyn Fn(u128, u128) -> (u128, bool)>| {
        let text = format!("%r, %s = {name} i{bits} %x, %y");
        Operation::pair(&[ty, ty], [ty, Type::Int(1)], text, move |x, y, _| {
            let (result, overflow) = meaning(x, y);
            [result & mask, u128::from(overflow)]
        })
    };
    let outside = move |result: Option<i128>| result.is_none_or(|result| !(min..=max).contains(&result));
    let two = move |x, y| (signed(bits, x), signed(bits, y));
    vec![
        pair("uadd_overflow", Box::new(move |x, y| (x.wrapping_add(y), x.checked_add(y).is_none_or(|sum| sum > mask)))),
        pair("usub_overflow", Box::new(|x, y| (x.wrapping_sub(y), x < y))),
        pair("umul_overflow", Box::new(move |x, y| (x.wrapping_mul(y), high_products(bits, x, y).0 & mask != 0))),
        pair(
            "sadd_overflow",
            Box::new(move |x, y| {
                let (sx, sy) = two(x, y);
                (x.wrapping_add(y), outside(sx.checked_add(sy)))
            }),
        ),
        pair(
            "ssub_overflow",
            Box::new(move |x, y| {
                let (sx, sy) = two(x, y);
                (x.wrapping_sub(y), outside(sx.checked_sub(sy)))
            }),
        ),
        pair(
            "smul_overflow",
            Box::new(move |x, y| {
                let (sx, sy) = two(x, y);
                (x.wrapping_mul(y), outside(sx.checked_mul(sy)))
            }),
        ),
    ]
}

fn bit_manipulation(bits: u32) -> Vec<Operation> {
    let ty = Type::Int(bits);
    let mask = ty.mask();
    let unary = |name: &str, meaning: fn(u32, u128) -> u128| {
        Operation::new(&[ty], ty, format!("%r = {name} i{bits} %x"), move |x, _, _| Some(meaning(bits, x) & mask))
    };
    let mut list = vec![
        unary("abs", |bits, x| signed(bits, x).unsigned_abs()),
        unary("ctpop", |_, x| u128::from(x.count_ones())),
        unary("ctlz", |bits, x| u128::from(x.leading_zeros() - (128 - bits))),
        unary("cttz", |bits, x| u128::from(x.trailing_zeros().min(bits))),
        unary("bitreverse", |bits, x| x.reverse_bits() >> (128 - bits)),
        unary("freeze", |_, x| x),
    ];
    if bits.is_multiple_of(16) {
        list.push(unary("bswap", |bits, x| x.swap_bytes() >> (128 - bits)));
    }
    list
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_native_ones() {
        for (x, y) in [(200u8, 100u8), (255, 255), (128, 128), (127, 129), (0, 7)] {
            let (unsigned, both) = high_products(8, x.into(), y.into());
            assert_eq!(unsigned & 255, u128::from((u16::from(x) * u16::from(y)) >> 8));
            let native = i16::from(x as i8) * i16::from(y as i8);
            assert_eq!(both & 255, u128::from((native >> 8) as u8));
        }
        assert_eq!(high_product(u128::MAX, u128::MAX), u128::MAX - 1);
        assert_eq!(high_product(1 << 127, 6), 3);
    }

    #[test]
    fn ranges() {
        assert_eq!(signed_range(1), (-1, 0));
        assert_eq!(signed_range(8), (-128, 127));
        assert_eq!(signed_range(128), (i128::MIN, i128::MAX));
        assert_eq!(signed(24, 0xFF_FFFF), -1);
    }
}
