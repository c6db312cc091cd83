//! The notation of rows.
//!
//! A row is one or more statements on one line. `%name:kind` declares an operand, `%name` repeats it. Names that start
//! with `d` or `e` are results, with `t` or `u` temporary, all others operands that are enumerated. `<x y _>` stands for
//! each of the alternatives, `_` for the empty one, `<0..255>` for numbers; `$n` repeats what the n-th `<>` stands for.
//! `@name = x y` gives a list a name for use within `<>`. `#` starts a comment.
//!
//! ```text
//! @rounding = .rn .rz .rm .rp
//! add<@rounding>.<f32 f64> %d:$2, %a:$2, %b:$2;
//! ```
//!
//! Of a row's statements those with the same kinds of operands are one case: one kernel, which computes all of them from
//! the same operands.

use crate::inputs::Kind;

/// What rows are written in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Language {
    /// PTX statements.
    Ptx,
    /// Instructions of the IR.
    Ir,
}

/// An operand, result or temporary.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Operand {
    /// Name, with the percent sign.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
}

/// Instructions that are applied to the same operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Case {
    /// What the variants are written in.
    pub language: Language,
    /// Line in the file of rows, from 1.
    pub line: usize,
    /// Operands that are enumerated, in order of appearance.
    pub sources: Vec<Operand>,
    /// Results, in order of appearance.
    pub results: Vec<Operand>,
    /// Temporaries.
    pub temporaries: Vec<Operand>,
    /// The statements, with names without kinds.
    pub variants: Vec<String>,
}

impl Case {
    /// The kinds of the sources, as text: cases with the same have the same inputs.
    pub fn signature(&self) -> String {
        let kinds: Vec<&str> = self.sources.iter().map(|s| s.kind.name()).collect();
        kinds.join(",")
    }
}

/// Lists that have names.
type Lists<'a> = Vec<(&'a str, Vec<String>)>;

/// Reads rows.
///
/// # Errors
/// `LINE: what is wrong`.
pub fn read(language: Language, text: &str) -> Result<Vec<Case>, String> {
    let mut lists = Lists::new();
    let mut cases = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let at = |error: String| format!("{}: {error}", index + 1);
        if let Some((name, items)) = line.strip_prefix('@').and_then(|rest| rest.split_once('=')) {
            let items = alternatives(items, &lists).map_err(at)?;
            lists.push((name.trim(), items));
            continue;
        }
        let first = cases.len();
        for text in expand(line, &lists).map_err(at)? {
            let case = statement(language, index + 1, &text).map_err(at)?;
            let same = cases[first..].iter_mut().find(|c: &&mut Case| {
                c.sources == case.sources && c.results == case.results && c.temporaries == case.temporaries
            });
            match same {
                Some(found) => found.variants.extend(case.variants),
                None => cases.push(case),
            }
        }
    }
    Ok(cases)
}

/// What stands between `<` and `>`.
fn alternatives(text: &str, lists: &Lists<'_>) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for word in text.split_whitespace() {
        if let Some(name) = word.strip_prefix('@') {
            let list = lists.iter().find(|(n, _)| *n == name).ok_or_else(|| format!("no list @{name}"))?;
            out.extend(list.1.iter().cloned());
        } else if let Some((first, last)) = word.split_once("..") {
            let number = |text: &str| text.parse::<u32>().map_err(|_| format!("`{text}` is no number"));
            out.extend((number(first)?..=number(last)?).map(|n| n.to_string()));
        } else if word == "_" {
            out.push(String::new());
        } else {
            out.push(word.to_owned());
        }
    }
    if out.is_empty() { Err("an empty list of alternatives".into()) } else { Ok(out) }
}

/// Writes a row out, the last alternatives changing fastest.
fn expand(line: &str, lists: &Lists<'_>) -> Result<Vec<String>, String> {
    let mut partial: Vec<(String, Vec<String>)> = vec![(String::new(), Vec::new())];
    let mut rest = line;
    while let Some(at) = rest.find(['<', '$']) {
        let (before, tail) = rest.split_at(at);
        partial.iter_mut().for_each(|(text, _)| text.push_str(before));
        if let Some(tail) = tail.strip_prefix('<') {
            let (inside, after) = tail.split_once('>').ok_or("`<` without `>`")?;
            let choices = alternatives(inside, lists)?;
            let mut next = Vec::with_capacity(partial.len() * choices.len());
            for (text, chosen) in &partial {
                for choice in &choices {
                    let mut chosen = chosen.clone();
                    chosen.push(choice.clone());
                    next.push((format!("{text}{choice}"), chosen));
                }
            }
            partial = next;
            rest = after;
        } else {
            let digit = tail.get(1..2).and_then(|d| d.parse::<usize>().ok()).ok_or("`$` without a number")?;
            for (text, chosen) in &mut partial {
                let choice = digit.checked_sub(1).and_then(|d| chosen.get(d)).ok_or("`$` of no alternative")?;
                text.push_str(choice);
            }
            rest = tail.get(2..).unwrap_or_default();
        }
    }
    Ok(partial.into_iter().map(|(text, _)| text + rest).collect())
}

/// Takes the kinds out of a statement.
fn statement(language: Language, line: usize, text: &str) -> Result<Case, String> {
    let mut case =
        Case { language, line, sources: vec![], results: vec![], temporaries: vec![], variants: vec![String::new()] };
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('%') {
        let (before, tail) = rest.split_at(at);
        out.push_str(before);
        let end = tail[1..].find(|c: char| !c.is_ascii_alphanumeric()).map_or(tail.len(), |n| n + 1);
        let (name, after) = tail.split_at(end);
        out.push_str(name);
        rest = after;
        if let Some(after) = after.strip_prefix(':') {
            let end = after.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(after.len());
            let kind = Kind::named(&after[..end]).ok_or_else(|| format!("no kind `{}`", &after[..end]))?;
            let list = match name.as_bytes().get(1) {
                Some(b'd' | b'e') => &mut case.results,
                Some(b't' | b'u') => &mut case.temporaries,
                _ => &mut case.sources,
            };
            list.push(Operand { name: name.to_owned(), kind });
            rest = &after[end..];
        }
    }
    out.push_str(rest);
    if case.results.is_empty() || case.sources.is_empty() {
        return Err(format!("no result or no operand in `{text}`"));
    }
    case.variants = vec![out];
    Ok(case)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_written_out() {
        let text = "@r = .rn .rz\nadd<@r>.<f32 f64> %d:$2, %a:$2, %b:$2; # sum\n\nx <0..2> %d:u8, %a:pred;";
        let cases = read(Language::Ptx, text).unwrap();
        assert_eq!(cases.len(), 3);
        assert_eq!(cases[0].variants, ["add.rn.f32 %d, %a, %b;", "add.rz.f32 %d, %a, %b;"]);
        assert_eq!(cases[1].signature(), "f64,f64");
        assert_eq!(cases[2].variants.len(), 3);
    }

    #[test]
    fn mistakes_are_named() {
        for (row, message) in [
            ("add <@x> %d:u8, %a:u8", "1: no list @x"),
            ("add %d:u9, %a:u8", "1: no kind `u9`"),
            ("add <x", "1: `<` without `>`"),
            ("add $1", "1: `$` of no alternative"),
            ("add %d:u8", "1: no result or no operand in `add %d:u8`"),
        ] {
            assert_eq!(read(Language::Ptx, row).unwrap_err(), message);
        }
    }
}
