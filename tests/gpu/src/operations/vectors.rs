//! Vector operations: those of the scalar families lane by lane, and those that cross lanes.
//!
//! A vector travels through memory as an integer of all its bits and is cast.

use std::rc::Rc;

use super::{Operation, Type, floats, integers};

/// Lane types and numbers of lanes; at most 128 bits together.
const INTEGER_SHAPES: [(u32, u32); 10] =
    [(8, 2), (8, 4), (8, 8), (8, 16), (16, 2), (16, 4), (16, 8), (32, 2), (32, 4), (64, 2)];
/// The same for floats.
const FLOAT_SHAPES: [(Type, u32); 8] = [
    (Type::F16, 2),
    (Type::F16, 4),
    (Type::F16, 8),
    (Type::Bf16, 2),
    (Type::Bf16, 8),
    (Type::F32, 2),
    (Type::F32, 4),
    (Type::F64, 2),
];

/// Combines two lanes; the result is cut to their width.
type Combine = fn(u128, u128) -> u128;

/// The lanes of a vector, the first lowest.
fn lanes(ty: Type, count: u32, vector: u128) -> Vec<u128> {
    (0..count).map(|lane| vector >> (lane * ty.bits()) & ty.mask()).collect()
}

/// The vector of these lanes.
fn join(ty: Type, lanes: &[u128]) -> u128 {
    lanes.iter().rev().fold(0, |vector, lane| vector << ty.bits() | lane)
}

/// Casts around an instruction on `count` lanes: from the inputs `%x`, `%y`, `%z` to the vectors `%vx` and so on, and from
/// `%vr` to the result.
fn casts(inputs: usize, ty: Type, count: u32, instruction: &str, cast_back: bool) -> String {
    let (whole, vector) = (count * ty.bits(), format!("<{count} x {}>", ty.name()));
    let mut text = String::new();
    for name in ["x", "y", "z"].into_iter().take(inputs) {
        text += &format!("%v{name} = bitcast i{whole} %{name} to {vector}\n");
    }
    text += instruction;
    if cast_back {
        text += &format!("\n%r = bitcast {vector} %vr to i{whole}");
    }
    text
}

/// Applies a scalar operation with one result of its own type to all lanes of a vector; nothing for others.
fn lift(operation: Operation, count: u32) -> Option<Operation> {
    let ty = operation.inputs[0];
    let alike = operation.inputs.iter().all(|input| *input == ty) && operation.outputs == [ty];
    if !alike || operation.text.contains('\n') {
        return None;
    }
    let whole = Type::Int(count * ty.bits());
    let scalar = format!(" {} %", ty.name());
    let instruction = operation
        .text
        .replace(&scalar, &format!(" <{count} x {}> %", ty.name()))
        .replace("%r", "%vr")
        .replace("%x", "%vx")
        .replace("%y", "%vy")
        .replace("%z", "%vz");
    let inputs = vec![whole; operation.inputs.len()];
    let meaning = operation.meaning;
    let text = casts(inputs.len(), ty, count, &instruction, true);
    let mut lifted = Operation::new(&inputs, whole, text, |_, _, _| None).by_lanes(ty);
    lifted.meaning = Box::new(move |inputs| {
        let [x, y, z] = inputs.map(|vector| lanes(ty, count, vector));
        let each: Vec<_> = (0..count as usize).map(|lane| meaning([x[lane], y[lane], z[lane]])).collect();
        let known: Vec<u128> = each.iter().map(|result| result.map_or(0, |[result, _]| result)).collect();
        let open: Vec<u128> = each.iter().map(|result| result.map_or(ty.mask(), |_| 0)).collect();
        Some([join(ty, &known), join(ty, &open)])
    });
    Some(lifted)
}

/// Integer operations lane by lane.
pub fn integer_lanes() -> Vec<Operation> {
    let shapes = INTEGER_SHAPES.into_iter();
    shapes
        .flat_map(|(bits, count)| integers::operations(bits).into_iter().filter_map(move |op| lift(op, count)))
        .collect()
}

/// Float operations lane by lane.
pub fn float_lanes() -> Vec<Operation> {
    let shapes = FLOAT_SHAPES.into_iter();
    shapes.flat_map(|(ty, count)| floats::operations(ty).into_iter().filter_map(move |op| lift(op, count))).collect()
}

/// Reductions, shuffles, and lanes read and written at a variable place.
pub fn across_lanes() -> Vec<Operation> {
    let mut list = Vec::new();
    for (bits, count) in INTEGER_SHAPES {
        let ty = Type::Int(bits);
        let whole = Type::Int(count * bits);
        let vector = format!("<{count} x i{bits}>");
        let reductions: [(&str, Combine); 6] = [
            ("add", u128::wrapping_add),
            ("and", |x, y| x & y),
            ("or", |x, y| x | y),
            ("xor", |x, y| x ^ y),
            ("umin", u128::min),
            ("umax", u128::max),
        ];
        for (op, meaning) in reductions {
            let text = casts(1, ty, count, &format!("%r = reduce.{op} {vector} %vx"), false);
            list.push(Operation::new(&[whole], ty, text, move |x, _, _| {
                lanes(ty, count, x).into_iter().reduce(meaning).map(|result| result & ty.mask())
            }));
        }
        // Lane k of the result is lane count - 1 - k of the first vector, or lane k of the second where k is odd.
        let places: Rc<[u32]> =
            (0..count).map(|lane| if lane % 2 == 1 { count + lane } else { count - 1 - lane }).collect();
        let spelled: Vec<String> = places.iter().map(u32::to_string).collect();
        let text = format!("%vr = shuffle {vector} %vx, %vy, [{}]", spelled.join(", "));
        let text = casts(2, ty, count, &text, true);
        list.push(Operation::new(&[whole, whole], whole, text, move |x, y, _| {
            let both = [lanes(ty, count, x), lanes(ty, count, y)].concat();
            let chosen: Vec<u128> = places.iter().map(|&place| both[place as usize]).collect();
            Some(join(ty, &chosen))
        }));
        let last = count - 1;
        let place = format!("%short = trunc i{} %y to i32\n%place = and i32 %short, {last}\n", 64);
        let text = format!("{place}%r = extract {vector} %vx, %place");
        let text = casts(1, ty, count, &text, false);
        list.push(Operation::new(&[whole, Type::Int(64)], ty, text, move |x, y, _| {
            Some(lanes(ty, count, x)[(y & u128::from(last)) as usize])
        }));
        let text = format!("{place}%vr = insert {vector} %vx, %z, %place");
        let text = casts(1, ty, count, &text, true);
        list.push(Operation::new(&[whole, Type::Int(64), ty], whole, text, move |x, y, z| {
            let mut all = lanes(ty, count, x);
            all[(y & u128::from(last)) as usize] = z;
            Some(join(ty, &all))
        }));
    }
    list
}
