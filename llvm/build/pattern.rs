//! The lines of the tables of intrinsics; `tables/README.md` says what they mean.

/// One piece of the name in a table's line.
pub enum Piece<'t> {
    /// Text that stands as it is.
    Text(&'t str),
    /// One of several texts.
    Choice(Vec<Choice<'t>>),
}

/// An alternative in braces.
pub struct Choice<'t> {
    /// The text in the name.
    pub name: &'t str,
    /// The values after `=`.
    pub values: Vec<&'t str>,
}

/// A line of a table.
pub struct Line<'t> {
    /// The name in pieces.
    pub pieces: Vec<Piece<'t>>,
    /// What it becomes.
    pub what: &'t str,
}

/// Reads a line; `None` for an empty one.
pub fn parse(line: &str) -> Result<Option<Line<'_>>, String> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let (name, what) = line.split_once(" : ").ok_or("` : ` is missing")?;
    let pieces = pieces(name.trim())?;
    let what = what.trim();
    check_references(&pieces, what)?;
    check_form(what)?;
    Ok(Some(Line { pieces, what }))
}

fn pieces(name: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut out = Vec::new();
    let mut rest = name;
    while let Some(open) = rest.find('{') {
        if open > 0 {
            out.push(Piece::Text(&rest[..open]));
        }
        let close = rest.find('}').ok_or("`}` is missing")?;
        let inside = rest.get(open + 1..close).ok_or("`}` stands before `{`")?;
        let choice = |text: &'_ str| -> (usize, usize) { (text.find('=').unwrap_or(text.len()), text.len()) };
        let choices = inside.split('|').map(|text| {
            let (end, len) = choice(text);
            let values = if end < len { text[end + 1..].split(';').collect() } else { Vec::new() };
            Choice { name: &text[..end], values }
        });
        out.push(Piece::Choice(choices.collect()));
        rest = &rest[close + 1..];
    }
    if !rest.is_empty() {
        out.push(Piece::Text(rest));
    }
    Ok(out)
}

/// Every `<1>`, `<2a>` on the right names a choice and a value that each of its alternatives has (`<1a>` is the
/// alternative's own text where it has no values).
fn check_references(pieces: &[Piece], what: &str) -> Result<(), String> {
    let choices: Vec<&Vec<Choice>> =
        pieces.iter().filter_map(|p| if let Piece::Choice(c) = p { Some(c) } else { None }).collect();
    for part in what.split('<').skip(1) {
        let Some((reference, _)) = part.split_once('>') else { continue };
        let digits = reference.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let (Ok(number), letters) = (digits.parse::<usize>(), &reference[digits.len()..]) else { continue };
        let choice = number.checked_sub(1).and_then(|at| choices.get(at));
        let choice = choice.ok_or_else(|| format!("`<{reference}>` names no choice"))?;
        let wanted = match letters.as_bytes() {
            [] => continue,
            [letter] => usize::from(letter - b'a'),
            _ => return Err(format!("`<{reference}>` is no reference")),
        };
        let has = |c: &Choice| wanted < c.values.len() || (wanted == 0 && c.values.is_empty());
        if !choice.iter().all(has) {
            return Err(format!("`<{reference}>` names a value that not all alternatives have"));
        }
    }
    Ok(())
}

fn check_form(what: &str) -> Result<(), String> {
    let word = what.split(' ').next().unwrap_or("");
    let known = ["ir", "sreg", "ptx", "rmw", "value", "number", "nothing", "do", "refuse"];
    if known.contains(&word) { Ok(()) } else { Err(format!("`{word}` is no form")) }
}

/// Calls `f` with every name that the pieces match.
pub fn names(pieces: &[Piece], f: &mut dyn FnMut(String)) {
    fn walk(pieces: &[Piece], name: &str, f: &mut dyn FnMut(String)) {
        match pieces.split_first() {
            None => f(name.to_owned()),
            Some((Piece::Text(text), rest)) => walk(rest, &format!("{name}{text}"), f),
            Some((Piece::Choice(choices), rest)) => {
                choices.iter().for_each(|choice| walk(rest, &format!("{name}{}", choice.name), f));
            }
        }
    }
    walk(pieces, "", f);
}
