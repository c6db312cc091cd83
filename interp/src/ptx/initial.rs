//! Sizes, numbers and initial contents of variables (PTX ISA 4.5, 5.4).

use ptxc_targets::{RegType, read_constant};

use super::operand::{Operand, Symbol};
use super::program::{InitialAddress, Variable};

/// The elements of a variable.
#[derive(Clone, Copy, Debug)]
pub struct Element {
    /// Bytes of a scalar.
    pub bytes: u64,
    /// Scalars of an element.
    pub lanes: u64,
    /// Type of a scalar.
    pub float: RegType,
}

/// The sizes in `[4][2]`, and whether the first is left open (it is then 0).
///
/// # Errors
/// One is no number.
pub fn dimensions(text: &str) -> Result<(Vec<u64>, bool), String> {
    let mut sizes = Vec::new();
    let mut open_ended = false;
    for part in text.split('[').skip(1) {
        let size = part.trim_end().trim_end_matches(']').trim();
        if size.is_empty() && sizes.is_empty() {
            open_ended = true;
            sizes.push(0);
            continue;
        }
        let value = read_constant(size).and_then(|(value, _)| u64::try_from(value).ok());
        sizes.push(value.ok_or_else(|| "the size of an array is no number".to_string())?);
    }
    Ok((sizes, open_ended))
}

/// A floating-point constant as written (PTX ISA 4.5.2).
///
/// # Errors
/// It is none.
pub fn float(text: &str, minus: bool) -> Result<Operand, String> {
    let wrong = || format!("`{text}` is no number");
    let hexadecimal = |digits: &str| u64::from_str_radix(digits, 16).map_err(|_| wrong());
    Ok(match text.get(..2) {
        Some("0f" | "0F") => {
            let bits = hexadecimal(&text[2..])? as u32;
            Operand::Single(if minus { bits ^ 1 << 31 } else { bits })
        }
        Some("0d" | "0D") => {
            let bits = hexadecimal(&text[2..])?;
            Operand::Double(if minus { bits ^ 1 << 63 } else { bits })
        }
        _ => {
            let value: f64 = text.parse().map_err(|_| wrong())?;
            Operand::Decimal(if minus { -value } else { value })
        }
    })
}

/// Fills in the initial contents of a variable from the text after `=`. Where the first size is left open, the list
/// says how large the variable is.
///
/// # Errors
/// Something in it is no constant or too much.
pub fn contents(
    text: &str,
    element: Element,
    sizes: &[u64],
    open_ended: bool,
    variable: &mut Variable,
    mut lookup: impl FnMut(&str) -> Option<Symbol>,
) -> Result<(), String> {
    // Scalars in an element of each level, the innermost last.
    let mut strides = vec![element.lanes];
    for size in sizes.iter().skip(1).rev() {
        strides.push(strides.last().copied().unwrap_or(1).saturating_mul(*size));
    }
    strides.reverse();
    if element.lanes > 1 {
        strides.push(1);
    }
    let limit = if open_ended { (1 << 30) / element.bytes.max(1) } else { variable.size / element.bytes.max(1) };
    let mut starts: Vec<u64> = Vec::new();
    let (mut position, mut most) = (0u64, 0u64);
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        match rest.chars().next() {
            None => break,
            Some('{') => {
                starts.push(position);
                rest = &rest[1..];
            }
            Some('}') => {
                let start = starts.pop().ok_or_else(|| "a brace too many".to_string())?;
                if let Some(stride) = starts.len().checked_sub(1).and_then(|level| strides.get(level)) {
                    position = start.saturating_add(*stride);
                }
                rest = &rest[1..];
            }
            Some(_) => {
                let end = value_end(rest);
                let (value, after) = rest.split_at(end);
                rest = after;
                if position >= limit {
                    return Err(format!("`{}` has too many initial values", variable.name));
                }
                scalar(value.trim(), position * element.bytes, element, variable, &mut lookup)?;
                position += 1;
            }
        }
        most = most.max(position);
    }
    if open_ended {
        variable.size = most * element.bytes;
    }
    Ok(())
}

/// Where a value ends: at a comma or a brace outside of parentheses.
fn value_end(text: &str) -> usize {
    let mut depth = 0i32;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'(' => depth += 1,
            b')' => depth -= 1,
            b',' | b'{' | b'}' if depth <= 0 && at > 0 => return at,
            _ => {}
        }
    }
    text.len()
}

fn put(variable: &mut Variable, at: u64, size: u64, bits: u64) {
    let end = (at + size) as usize;
    if variable.bytes.len() < end {
        variable.bytes.resize(end, 0);
    }
    for (to, from) in variable.bytes[at as usize..end].iter_mut().zip(bits.to_le_bytes()) {
        *to = from;
    }
}

fn scalar(
    text: &str,
    at: u64,
    element: Element,
    variable: &mut Variable,
    lookup: &mut impl FnMut(&str) -> Option<Symbol>,
) -> Result<(), String> {
    let size = element.bytes;
    if let Some((value, used)) = read_constant(text) {
        let after = text.get(used..).unwrap_or("").trim_start();
        if after.is_empty() {
            let bits = match element.float {
                RegType::F32 => (value as f32).to_bits().into(),
                RegType::F64 => (value as f64).to_bits(),
                _ => value as u64,
            };
            put(variable, at, size, bits);
            return Ok(());
        }
        // `0xFF00(symbol)`: one byte of an address.
        if let Some(inner) = after.strip_prefix('(').and_then(|t| t.strip_suffix(')')) {
            let shift = (value as u64).trailing_zeros() & !7;
            let (symbol, offset, generic) = address(inner, lookup)?;
            put(variable, at, size, 0);
            variable.addresses.push(InitialAddress { at, size, symbol, offset, generic, shift });
            return Ok(());
        }
    }
    let unsigned = text.strip_prefix('-').unwrap_or(text).trim_start();
    if unsigned.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
        let bits = match float(unsigned, text.starts_with('-'))? {
            Operand::Single(bits) => bits.into(),
            Operand::Double(bits) => bits,
            Operand::Decimal(value) if size == 4 => (value as f32).to_bits().into(),
            Operand::Decimal(value) => value.to_bits(),
            _ => 0,
        };
        put(variable, at, size, bits);
        return Ok(());
    }
    let (symbol, offset, generic) = address(text, lookup)?;
    put(variable, at, size, 0);
    variable.addresses.push(InitialAddress { at, size, symbol, offset, generic, shift: 0 });
    Ok(())
}

/// `symbol`, `symbol + 4`, `generic(symbol) + 4`.
fn address(text: &str, lookup: &mut impl FnMut(&str) -> Option<Symbol>) -> Result<(Symbol, i64, bool), String> {
    let text = text.trim();
    let (generic, inner) = match text.strip_prefix("generic") {
        Some(rest) if rest.trim_start().starts_with('(') => (true, rest.trim_start().get(1..).unwrap_or("")),
        _ => (false, text),
    };
    let end = inner.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '%'))).unwrap_or(inner.len());
    let (name, rest) = inner.split_at(end);
    let rest = rest.trim_start();
    let rest = if generic { rest.strip_prefix(')').unwrap_or(rest).trim_start() } else { rest };
    let symbol = lookup(name).ok_or_else(|| format!("`{name}` is not declared"))?;
    let offset = match rest {
        "" => 0,
        rest => read_constant(rest).map(|(value, _)| value).ok_or_else(|| format!("`{text}` is no constant"))?,
    };
    Ok((symbol, offset, generic))
}
