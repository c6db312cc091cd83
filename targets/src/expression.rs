//! Runs the stack code that the build script makes of the tables' expressions.

use crate::matching::{Binding, EMPTY};
use crate::tables;
use smallvec::SmallVec;

/// Operations, as `build/expression.rs` numbers them.
mod op {
    pub const END: u16 = 0;
    pub const PUSH: u16 = 1;
    pub const PRESENT: u16 = 2;
    pub const IN: u16 = 3;
    pub const NUM: u16 = 4;
    pub const SHAPE: u16 = 5;
    pub const BITS: u16 = 6;
    pub const TYPE: u16 = 7;
    pub const DOUBLE: u16 = 8;
    pub const OPERAND: u16 = 9;
    pub const NOT: u16 = 16;
    pub const SELECT: u16 = 17;
    pub const BINARY: u16 = 32;
}

/// A question about an operand, by the number the code has for it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Question {
    Present,
    Immediate,
    Vector,
    Sink,
    Pair,
    Symbol,
    Small,
    Register,
    Selected,
}

const QUESTIONS: [Question; 9] = [
    Question::Present,
    Question::Immediate,
    Question::Vector,
    Question::Sink,
    Question::Pair,
    Question::Symbol,
    Question::Small,
    Question::Register,
    Question::Selected,
];

/// The value of the code at `at`, with the mnemonic's pieces in `binding`. `operand` answers
/// questions about operands; static code asks none.
pub(crate) fn evaluate(at: u32, binding: &Binding, operand: &dyn Fn(Question, u16) -> bool) -> i32 {
    let code = tables::CODE;
    let mut at = at as usize;
    let mut stack: SmallVec<[i32; 16]> = SmallVec::new();
    let mut next = || {
        at += 1;
        code[at - 1]
    };
    loop {
        let value = match next() {
            op::END => return stack.pop().unwrap_or(0),
            op::PUSH => i32::from(next()),
            op::PRESENT => i32::from(binding.get(next()) != EMPTY),
            op::IN => {
                let held = binding.get(next());
                let count = next();
                let mut found = false;
                for _ in 0..count {
                    found |= next() == held;
                }
                i32::from(found)
            }
            op::NUM => number(binding.get(next())),
            op::SHAPE => {
                let held = binding.get(next());
                let side = usize::from(next());
                match held {
                    EMPTY => 0,
                    held => i32::from(tables::TOKEN_SHAPE[usize::from(held)][side]),
                }
            }
            op::BITS => type_bits(type_of(binding.get(next()))),
            op::TYPE => type_of(binding.get(next())),
            op::DOUBLE => double(type_of(binding.get(next()))),
            op::OPERAND => {
                let question = QUESTIONS[usize::from(next()) % QUESTIONS.len()];
                i32::from(operand(question, next()))
            }
            op::NOT => i32::from(stack.pop().unwrap_or(0) == 0),
            op::SELECT => {
                let no = stack.pop().unwrap_or(0);
                let yes = stack.pop().unwrap_or(0);
                if stack.pop().unwrap_or(0) != 0 { yes } else { no }
            }
            operator => {
                let right = stack.pop().unwrap_or(0);
                let left = stack.pop().unwrap_or(0);
                binary(operator - op::BINARY, left, right)
            }
        };
        stack.push(value);
    }
}

fn binary(operator: u16, left: i32, right: i32) -> i32 {
    match operator {
        0 => i32::from(left != 0 || right != 0),
        1 => i32::from(left != 0 && right != 0),
        2 => i32::from(left == right),
        3 => i32::from(left != right),
        4 => i32::from(left <= right),
        5 => i32::from(left >= right),
        6 => i32::from(left < right),
        7 => i32::from(left > right),
        8 => left.wrapping_add(right),
        9 => left.wrapping_sub(right),
        10 => left.wrapping_mul(right),
        _ => left.checked_div(right).unwrap_or(0),
    }
}

fn number(piece: u16) -> i32 {
    match piece {
        EMPTY => 1,
        piece => i32::from(tables::TOKEN_NUMBER[usize::from(piece)]),
    }
}

fn type_of(piece: u16) -> i32 {
    match piece {
        EMPTY => -1,
        piece => match tables::TOKEN_TYPE[usize::from(piece)] {
            u16::MAX => -1,
            number => i32::from(number),
        },
    }
}

fn type_bits(ty: i32) -> i32 {
    tables::TYPES.get(ty as usize).map_or(0, |row| i32::from(row.container.bits()))
}

/// The type of the same class and twice the size.
fn double(ty: i32) -> i32 {
    let Some(row) = tables::TYPES.get(ty as usize) else {
        return -1;
    };
    let wanted = (row.name.as_bytes()[0], row.container.bits() * 2);
    tables::TYPES
        .iter()
        .position(|other| (other.name.as_bytes()[0], other.container.bits()) == wanted)
        .map_or(-1, |at| at as i32)
}
