//! Constant expressions (PTX ISA 4.6), without recursion: two stacks and precedences.

use crate::statement::Reader;
use smallvec::SmallVec;

#[derive(Clone, Copy, PartialEq)]
enum Pending {
    Open,
    Unary(u8),
    Binary(&'static str, u8),
}

/// Operators with their precedence, longer ones first.
const OPERATORS: [(&str, u8); 18] = [
    ("<<", 8),
    (">>", 8),
    ("<=", 7),
    (">=", 7),
    ("==", 6),
    ("!=", 6),
    ("&&", 2),
    ("||", 1),
    ("<", 7),
    (">", 7),
    ("&", 5),
    ("^", 4),
    ("|", 3),
    ("+", 9),
    ("-", 9),
    ("*", 10),
    ("/", 10),
    ("%", 10),
];

/// Reads a constant integer expression (PTX ISA 4.6) at the start of a text; gives its value and how many bytes it takes.
pub fn read_constant(text: &str) -> Option<(i64, usize)> {
    let mut reader = Reader { text, at: 0 };
    let value = constant(&mut reader)?;
    Some((value, reader.at))
}

/// Reads an expression at the reader's place; `None`, and the place undefined, where there is none.
/// It ends before the first thing that cannot continue it. `|`, `<` and `>` continue it only inside
/// parentheses, since `a|b` is a pair of operands and `%r<4>` a range of registers.
pub(crate) fn constant(reader: &mut Reader) -> Option<i64> {
    let mut values: SmallVec<[i64; 8]> = SmallVec::new();
    let mut pending: SmallVec<[Pending; 8]> = SmallVec::new();
    let mut depth = 0;
    loop {
        reader.space();
        match reader.peek()? {
            b'(' => {
                reader.at += 1;
                pending.push(Pending::Open);
                depth += 1;
                continue;
            }
            sign @ (b'-' | b'+' | b'~' | b'!') => {
                reader.at += 1;
                pending.push(Pending::Unary(sign));
                continue;
            }
            _ => values.push(literal(reader)?),
        }
        loop {
            let end = reader.at;
            reader.space();
            if depth > 0 && reader.accept(b')') {
                depth -= 1;
                while let Some(top) = pending.pop().filter(|top| *top != Pending::Open) {
                    apply(top, &mut values)?;
                }
                while let Some(&Pending::Unary(_)) = pending.last() {
                    apply(pending.pop()?, &mut values)?;
                }
                continue;
            }
            match operator(reader).filter(|(text, _)| depth > 0 || !matches!(*text, "|" | "<" | ">")) {
                Some(&(text, strength)) => {
                    reader.at += text.len();
                    while let Some(&top) = pending.last() {
                        match top {
                            Pending::Unary(_) => {}
                            Pending::Binary(_, other) if other >= strength => {}
                            _ => break,
                        }
                        pending.pop();
                        apply(top, &mut values)?;
                    }
                    pending.push(Pending::Binary(text, strength));
                    break;
                }
                None if depth > 0 => return None,
                None => {
                    reader.at = end;
                    while let Some(top) = pending.pop() {
                        apply(top, &mut values)?;
                    }
                    return values.pop().filter(|_| values.is_empty());
                }
            }
        }
    }
}

/// The operator at the reader's place.
fn operator(reader: &Reader) -> Option<&'static (&'static str, u8)> {
    // Almost every number is followed by one of these.
    if matches!(reader.peek(), None | Some(b',' | b';' | b']' | b'}' | b')')) {
        return None;
    }
    let rest = reader.rest();
    OPERATORS.iter().find(|(text, _)| rest.starts_with(text))
}

fn literal(reader: &mut Reader) -> Option<i64> {
    let rest = reader.rest();
    if rest.starts_with("WARP_SZ") {
        reader.at += "WARP_SZ".len();
        return Some(32);
    }
    let end = rest.bytes().position(|byte| !byte.is_ascii_alphanumeric()).unwrap_or(rest.len());
    let word = rest.get(..end)?;
    let digits = word.strip_suffix('U').unwrap_or(word);
    let radix = |prefix: &str| digits.strip_prefix(prefix);
    let value = if let Some(hex) = radix("0x").or(radix("0X")) {
        u64::from_str_radix(hex, 16).ok()?
    } else if let Some(binary) = radix("0b").or(radix("0B")) {
        u64::from_str_radix(binary, 2).ok()?
    } else if digits.len() > 1 && digits.starts_with('0') {
        u64::from_str_radix(digits, 8).ok()?
    } else {
        digits.parse().ok()?
    };
    reader.at += end;
    Some(value as i64)
}

fn apply(pending: Pending, values: &mut SmallVec<[i64; 8]>) -> Option<()> {
    let right = values.pop()?;
    let value = match pending {
        Pending::Open => return None,
        Pending::Unary(b'-') => right.wrapping_neg(),
        Pending::Unary(b'~') => !right,
        Pending::Unary(b'!') => i64::from(right == 0),
        Pending::Unary(_) => right,
        Pending::Binary(text, _) => {
            let left = values.pop()?;
            match text {
                "<<" => left.wrapping_shl(right as u32),
                ">>" => left.wrapping_shr(right as u32),
                "<=" => i64::from(left <= right),
                ">=" => i64::from(left >= right),
                "==" => i64::from(left == right),
                "!=" => i64::from(left != right),
                "&&" => i64::from(left != 0 && right != 0),
                "||" => i64::from(left != 0 || right != 0),
                "<" => i64::from(left < right),
                ">" => i64::from(left > right),
                "&" => left & right,
                "^" => left ^ right,
                "|" => left | right,
                "+" => left.wrapping_add(right),
                "-" => left.wrapping_sub(right),
                "*" => left.wrapping_mul(right),
                "/" => left.checked_div(right)?,
                _ => left.checked_rem(right)?,
            }
        }
    };
    values.push(value);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_have_their_values() {
        let value = |text| constant(&mut Reader { text, at: 0 });
        assert_eq!(value("1+2*3"), Some(7));
        assert_eq!(value("(1+2)*3;"), Some(9));
        assert_eq!(value("-0x10"), Some(-16));
        assert_eq!(value("2 - 1 - 1"), Some(0));
        assert_eq!(value("-(1 << 4)"), Some(-16));
        assert_eq!(value("017U"), Some(15));
        assert_eq!(value("(1"), None);
        assert_eq!(value("x"), None);
        assert_eq!(value("1/0"), None);
    }
}
