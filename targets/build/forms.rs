//! Reads the `.isa` files of instructions: lines into forms, no meaning yet.

use crate::error::{Error, read};
use std::collections::BTreeMap;
use std::path::Path;

/// A line with its place.
#[derive(Clone, Debug)]
pub struct Line {
    pub file: String,
    pub number: usize,
    pub text: String,
}

impl Line {
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::new(self.file.clone(), self.number, message)
    }
}

/// One value of a slot, with the text of what it requires.
pub type Alternative = (String, String);

/// A form as it is written.
#[derive(Debug)]
pub struct FormText {
    pub head: Line,
    pub section: String,
    pub lines: Vec<Line>,
}

#[derive(Default)]
pub struct Source {
    pub groups: BTreeMap<String, Vec<Alternative>>,
    pub requirements: BTreeMap<String, String>,
    pub forms: Vec<FormText>,
}

impl Source {
    pub fn read(&mut self, path: &Path) -> Result<(), Error> {
        let file = path.display().to_string();
        let mut section = String::new();
        for (index, text) in read(path)?.lines().enumerate() {
            let text = strip_comment(text);
            if text.trim().is_empty() {
                continue;
            }
            let indented = text.starts_with(' ');
            let line = Line { file: file.clone(), number: index + 1, text: text.trim().to_owned() };
            if indented {
                match self.forms.last_mut() {
                    // A list of operands goes on after a comma, or after a mnemonic with a line of its own.
                    Some(form)
                        if form.head.file == file
                            && form.lines.is_empty()
                            && continues(&form.head.text, &line.text) =>
                    {
                        let more = line.text.strip_prefix(": ").unwrap_or(&line.text);
                        form.head.text = format!("{} {more}", form.head.text);
                    }
                    Some(form) if form.head.file == file => form.lines.push(line),
                    _ => return Err(line.error("an indented line without a form")),
                }
                continue;
            }
            match line.text.split_once(' ') {
                Some(("section", number)) => section = number.trim().to_owned(),
                Some(("group", rest)) => self.group(&line, rest)?,
                Some(("requirement", rest)) => {
                    let (name, value) = rest.split_once('=').ok_or_else(|| line.error("expected `=`"))?;
                    self.requirements.insert(name.trim().to_owned(), value.trim().to_owned());
                }
                Some(("form", rest)) => {
                    let head = Line { text: rest.trim().to_owned(), ..line };
                    self.forms.push(FormText { head, section: section.clone(), lines: Vec::new() });
                }
                _ if line.text.starts_with("form ") => {}
                _ => return Err(line.error("expected section, group, requirement or form")),
            }
        }
        Ok(())
    }

    fn group(&mut self, line: &Line, rest: &str) -> Result<(), Error> {
        let (name, values) = rest.split_once('=').ok_or_else(|| line.error("expected `=`"))?;
        let append = name.trim_end().ends_with('+');
        let name = name.trim_end_matches([' ', '+']).trim().to_owned();
        let values = self.alternatives(line, values)?;
        let group = self.groups.entry(name).or_default();
        if !append {
            group.clear();
        }
        group.extend(values);
        Ok(())
    }

    /// Reads `a b GROUP m{8..16:8} @ requirement`.
    pub fn alternatives(&self, line: &Line, text: &str) -> Result<Vec<Alternative>, Error> {
        let (values, requirement) = split_requirement(text);
        let requirement = self.requirement(requirement);
        let mut all = Vec::new();
        for word in values.split_whitespace() {
            if let Some(group) = self.groups.get(word) {
                for (value, own) in group {
                    all.push((value.clone(), both(own, &requirement)));
                }
            } else {
                for value in expand(word).map_err(|message| line.error(message))? {
                    all.push((value, requirement.clone()));
                }
            }
        }
        Ok(all)
    }

    /// A requirement with its name replaced by what it stands for.
    pub fn requirement(&self, text: &str) -> String {
        let text = text.trim();
        self.requirements.get(text).cloned().unwrap_or_else(|| text.to_owned())
    }
}

/// Two requirements that must both hold, joined for [`crate::requirement`].
fn both(a: &str, b: &str) -> String {
    match (a.is_empty(), b.is_empty()) {
        (true, _) => b.to_owned(),
        (_, true) => a.to_owned(),
        _ => format!("{a} & {b}"),
    }
}

/// Whether `line` goes on with the operands of the form that begins with `head`.
fn continues(head: &str, line: &str) -> bool {
    head.ends_with(',') || line.starts_with(": ")
}

fn strip_comment(text: &str) -> &str {
    match text.find('#') {
        Some(at) => text[..at].trim_end(),
        None => text.trim_end(),
    }
}

/// Splits `x @ requirement`.
pub fn split_requirement(text: &str) -> (&str, &str) {
    text.split_once('@').map_or((text, ""), |(value, requirement)| (value, requirement.trim()))
}

/// Expands one `{from..to:step}`.
fn expand(word: &str) -> Result<Vec<String>, String> {
    let Some((before, rest)) = word.split_once('{') else {
        return Ok(vec![word.to_owned()]);
    };
    let parse = || {
        let (range, after) = rest.split_once('}')?;
        let (range, step) = range.split_once(':').unwrap_or((range, "1"));
        let (from, to) = range.split_once("..")?;
        let step = step.parse::<usize>().ok().filter(|step| *step > 0)?;
        let numbers = (from.parse::<usize>().ok()?..=to.parse().ok()?).step_by(step);
        Some(numbers.map(|number| format!("{before}{number}{after}")).collect())
    };
    parse().ok_or_else(|| format!("`{word}` is no range"))
}
