//! The tables of intrinsics: from a name to the right-hand side of its line.

/// One piece of a name.
pub(super) enum Piece {
    /// Text that stands as it is.
    Text(&'static str),
    /// One of several texts.
    Choice(&'static [Choice]),
}

/// An alternative.
pub(super) struct Choice {
    /// The text in the name.
    pub name: &'static str,
    /// The values that the right-hand side may use.
    pub values: &'static [&'static str],
}

/// A line of the tables.
pub(super) struct Line {
    /// The name in pieces.
    pub pieces: &'static [Piece],
    /// What it becomes.
    pub what: &'static str,
}

include!(concat!(env!("OUT_DIR"), "/intrinsics.rs"));

/// What the intrinsic of that name (without `llvm.`) becomes, with choices filled in. The mangled types at the end of
/// overloaded names are dropped one after the other until a line fits.
pub(super) fn find(name: &str) -> Option<String> {
    let mut name = name;
    loop {
        for line in LINES {
            let mut chosen = Vec::new();
            if matches(line.pieces, name, &mut chosen) {
                return Some(fill(line.what, &chosen));
            }
        }
        let (shorter, last) = name.rsplit_once('.')?;
        if !is_mangled_type(last) {
            return None;
        }
        name = shorter;
    }
}

/// Whether the pieces spell `name`; `chosen` gets the choices. Recursion is as deep as a line has pieces.
fn matches(pieces: &'static [Piece], name: &str, chosen: &mut Vec<&'static Choice>) -> bool {
    match pieces.split_first() {
        None => name.is_empty(),
        Some((Piece::Text(text), rest)) => name.strip_prefix(text).is_some_and(|name| matches(rest, name, chosen)),
        Some((Piece::Choice(choices), rest)) => choices.iter().any(|choice| {
            let Some(name) = name.strip_prefix(choice.name) else { return false };
            chosen.push(choice);
            let fits = matches(rest, name, chosen);
            if !fits {
                chosen.pop();
            }
            fits
        }),
    }
}

/// Whether this is what LLVM appends to overloaded names: `i32`, `v4f32`, `p0`, `p1i8`, `nxv2i64`, `sl_i32i1s`, `f16` …
fn is_mangled_type(text: &str) -> bool {
    let digits = |text: &str| text.len() > 1 && text[1..].bytes().all(|b| b.is_ascii_digit());
    match text.as_bytes().first() {
        Some(b'i' | b'f' | b'b') if digits(text) => true,
        Some(b'p') => text[1..].starts_with(|c: char| c.is_ascii_digit()),
        Some(b'v' | b'a') => text[1..].starts_with(|c: char| c.is_ascii_digit()),
        Some(b's') => text.starts_with("s_") || text.starts_with("sl_"),
        _ => matches!(text, "bf16" | "isVoid" | "Metadata" | "ppcf128") || text.starts_with("nxv"),
    }
}

/// The right-hand side with `<1>`, `<2a>` replaced.
fn fill(what: &str, chosen: &[&Choice]) -> String {
    let mut out = String::with_capacity(what.len() + 16);
    let mut rest = what;
    while let Some(open) = rest.find('<') {
        out.push_str(&rest[..open]);
        let after = &rest[open + 1..];
        match reference(after, chosen) {
            Some((text, len)) => {
                out.push_str(text);
                rest = &after[len..];
            }
            None => {
                out.push('<');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// The text of the reference that `text` starts with (after its `<`), and the bytes it takes.
fn reference<'c>(text: &str, chosen: &[&'c Choice]) -> Option<(&'c str, usize)> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let number: usize = text.get(..digits)?.parse().ok()?;
    let choice = chosen.get(number.checked_sub(1)?)?;
    match text.as_bytes().get(digits)? {
        b'>' => Some((choice.name, digits + 1)),
        letter @ b'a'..=b'z' if text.as_bytes().get(digits + 1) == Some(&b'>') => {
            let own = (choice.values.is_empty() && *letter == b'a').then_some(choice.name);
            Some((own.or_else(|| choice.values.get(usize::from(letter - b'a')).copied())?, digits + 2))
        }
        _ => None,
    }
}

/// Every name of the tables with what it becomes, for tests.
#[cfg(test)]
pub(super) fn all() -> Vec<(String, String)> {
    fn walk(
        line: &'static Line,
        pieces: &'static [Piece],
        name: &str,
        chosen: &mut Vec<&'static Choice>,
        out: &mut Vec<(String, String)>,
    ) {
        match pieces.split_first() {
            None => out.push((name.to_owned(), fill(line.what, chosen))),
            Some((Piece::Text(text), rest)) => walk(line, rest, &format!("{name}{text}"), chosen, out),
            Some((Piece::Choice(choices), rest)) => {
                for choice in *choices {
                    chosen.push(choice);
                    walk(line, rest, &format!("{name}{}", choice.name), chosen, out);
                    chosen.pop();
                }
            }
        }
    }
    let mut out = Vec::new();
    for line in LINES {
        walk(line, line.pieces, "", &mut Vec::new(), &mut out);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_find_their_line() {
        let found = |name: &str| find(name).unwrap_or_else(|| panic!("{name} is not found"));
        assert_eq!(found("nvvm.fma.rn.ftz.f"), "ir fma rn .ftz ");
        assert_eq!(found("memcpy.p0.p1.i64"), "do block memcpy");
        assert_eq!(found("vector.reduce.add.v4i32"), "ir reduce.add");
        assert_eq!(found("nvvm.mma.m16n8k16.row.col.f32.f32").split(' ').next(), Some("ptx"));
        assert_eq!(found("nvvm.read.ptx.sreg.cluster.ctaid.x"), "sreg cluster_ctaid.x");
        assert!(find("nvvm.no.such.thing").is_none());
        assert!(find("").is_none());
    }

    #[test]
    fn choices_are_filled_in() {
        assert!(find("nvvm.mma.m8n8k16.row.col.satfinite.s8").unwrap_or_default().contains(".satfinite.s32.s8.s8.s32"));
        assert!(find("nvvm.atomic.max.gen.i.cta.i32.p0").is_some_and(|what| what == "rmw smax cta"));
    }
}
