//! The parts of assembly text: statements, declarations of registers, blocks.

use ptxc_targets::{RegType, Statement};

/// Longest text that is looked at, in parts.
const MAX_PARTS: usize = 1024;
/// Most registers that one text declares.
const MAX_REGISTERS: u32 = 4096;

/// One part of a text.
pub(super) enum Part<'a> {
    /// `{`
    Open,
    /// `}`
    Close,
    /// `.reg .b32 a, b;`: the type and the names.
    Registers(RegType, Vec<String>),
    /// A statement, in the memory that was given.
    Statement(&'a Statement<'a>),
}

/// Walks the parts of a text; `false` from `part` ends the walk. Gives whether all of the text was walked.
pub(super) fn walk(text: &str, mut part: impl FnMut(Part) -> bool) -> bool {
    let mut at = 0;
    for _ in 0..MAX_PARTS {
        at = skip_space(text, at);
        let Some(rest) = text.get(at..) else { return false };
        let go_on = match rest.as_bytes().first() {
            None => return true,
            Some(b'{') => {
                at += 1;
                part(Part::Open)
            }
            Some(b'}') => {
                at += 1;
                part(Part::Close)
            }
            Some(b'.') => match registers(rest) {
                Some((ty, names, len)) => {
                    at += len;
                    part(Part::Registers(ty, names))
                }
                None => false,
            },
            Some(_) => {
                let mut statement = Statement::default();
                match statement.read(text, at) {
                    Ok(end) => {
                        at = end;
                        part(Part::Statement(&statement))
                    }
                    Err(_) => false,
                }
            }
        };
        if !go_on {
            return false;
        }
    }
    false
}

/// The first byte from `at` on that is neither white space nor in a comment.
fn skip_space(text: &str, mut at: usize) -> usize {
    loop {
        let rest = text.get(at..).unwrap_or("");
        let trimmed = rest.trim_start();
        at += rest.len() - trimmed.len();
        let length = if trimmed.starts_with("//") {
            trimmed.find('\n')
        } else if trimmed.starts_with("/*") {
            trimmed.find("*/").map(|end| end + 2)
        } else {
            return at;
        };
        at += length.unwrap_or(trimmed.len());
    }
}

/// Reads `.reg .TYPE name, name<count>;`: type, names and length. `None` for everything else.
fn registers(text: &str) -> Option<(RegType, Vec<String>, usize)> {
    let rest = text.strip_prefix(".reg")?;
    let end = rest.find(';')?;
    let (ty, list) = rest[..end].trim_start().split_once(|c: char| c.is_ascii_whitespace())?;
    let ty = RegType::from_text(ty.strip_prefix('.')?)?;
    let mut names = Vec::new();
    for name in list.split(',').map(str::trim) {
        match name.split_once('<') {
            None => names.push(name.to_owned()),
            Some((prefix, count)) => {
                let count: u32 = count.strip_suffix('>')?.trim().parse().ok().filter(|n| *n <= MAX_REGISTERS)?;
                names.extend((0..count).map(|n| format!("{}{n}", prefix.trim())));
            }
        }
    }
    let named =
        |name: &String| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'%'));
    (names.len() <= MAX_REGISTERS as usize && names.iter().all(named)).then_some((ty, names, ".reg".len() + end + 1))
}
