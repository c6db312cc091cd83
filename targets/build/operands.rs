//! Reads the operand list of a form.

/// One operand or one part of an address, as it is written.
#[derive(Clone, Debug, Default)]
pub struct OperandText {
    pub name: String,
    pub words: Vec<String>,
    /// Parts of an address that follow as operands of their own, itself included; 0: no address.
    pub parts: usize,
    /// The second half of a pair.
    pub paired: bool,
    /// A part of an address other than the first.
    pub inside: bool,
}

/// Splits at `separator` outside brackets.
pub fn split_top(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut depth = 0;
    let mut start = 0;
    for (at, here) in text.char_indices() {
        match here {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            _ if here == separator && depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + here.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

fn words(text: &str) -> Vec<String> {
    split_top(text, ' ').into_iter().filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn simple(text: &str) -> Result<OperandText, String> {
    let (name, rest) = text.split_once(':').unwrap_or((text, ""));
    let name = name.trim();
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("`{text}` is no operand"));
    }
    Ok(OperandText { name: name.to_owned(), words: words(rest), ..OperandText::default() })
}

pub fn parse(text: &str) -> Result<Vec<OperandText>, String> {
    let mut all = Vec::new();
    if text.trim().is_empty() {
        return Ok(all);
    }
    for operand in split_top(text, ',') {
        if let Some(rest) = operand.strip_prefix('[') {
            let (inside, after) = rest.rsplit_once(']').ok_or("`[` without `]`")?;
            let parts = split_top(inside, ',');
            for (index, part) in parts.iter().enumerate() {
                let mut part = simple(part)?;
                part.inside = index > 0;
                if index == 0 {
                    part.parts = parts.len();
                    part.words.extend(words(after));
                }
                all.push(part);
            }
            continue;
        }
        for (index, half) in split_top(operand, '|').into_iter().enumerate() {
            let mut half = simple(half)?;
            half.paired = index > 0;
            all.push(half);
        }
    }
    Ok(all)
}
