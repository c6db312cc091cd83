//! `models/classes.model`: units, classes, and which instruction is of which class.

use crate::error::{Error, read};
use crate::tokens::Tokens;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

/// One line `HEADS : CONDITIONS -> CLASS per MEASURE`.
struct Rule {
    heads: Vec<u16>,
    /// Alternatives, and whether none of them may be there.
    conditions: Vec<(bool, Vec<u16>)>,
    class: usize,
    measure: &'static str,
    divisor: u16,
}

/// A name and what it stands for.
pub struct Named {
    pub name: String,
    text: String,
}

/// The whole file.
#[derive(Default)]
pub struct Classes {
    pub units: Vec<Named>,
    pub classes: Vec<Named>,
    groups: BTreeMap<String, Vec<u16>>,
    rules: Vec<Rule>,
}

impl Classes {
    /// Reads the file and checks that every instruction of `heads` is of some class whatever its modifiers.
    pub fn read(path: &Path, tokens: &Tokens, heads: &[u16]) -> Result<Classes, Error> {
        let mut classes = Classes::default();
        for (index, line) in read(path)?.lines().enumerate() {
            let line = line.split('#').next().unwrap_or("").trim();
            if !line.is_empty() {
                let error = |message| Error::new(path.display().to_string(), index + 1, message);
                classes.line(line, tokens).map_err(error)?;
            }
        }
        for &head in heads {
            if !classes.rules.iter().any(|rule| rule.conditions.is_empty() && rule.heads.contains(&head)) {
                let message = format!("`{}` has no line without conditions", tokens.text(head));
                return Err(Error::new(path.display().to_string(), 0, message));
            }
        }
        Ok(classes)
    }

    fn line(&mut self, line: &str, tokens: &Tokens) -> Result<(), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        match word {
            "unit" | "class" => {
                let (name, text) = rest.trim().split_once(char::is_whitespace).ok_or("a name and what it is")?;
                let named = Named { name: name.to_owned(), text: text.trim().to_owned() };
                let all = if word == "unit" { &mut self.units } else { &mut self.classes };
                if all.iter().any(|other| other.name == named.name) {
                    return Err(format!("`{name}` is there twice"));
                }
                all.push(named);
            }
            "group" => {
                let (name, members) = rest.split_once('=').ok_or("expected: group NAME = PIECES")?;
                let members = members.split_whitespace().map(|text| piece(text, tokens)).collect::<Result<_, _>>()?;
                self.groups.insert(name.trim().to_owned(), members);
            }
            _ => self.rule(line, tokens)?,
        }
        Ok(())
    }

    fn rule(&mut self, line: &str, tokens: &Tokens) -> Result<(), String> {
        let (pattern, result) = line.split_once("->").ok_or("expected: HEADS [: CONDITIONS] -> CLASS")?;
        let (heads, conditions) =
            pattern.split_once(':').filter(|(_, rest)| rest.starts_with(' ')).unwrap_or((pattern, ""));
        let heads = heads.split_whitespace().map(|text| piece(text, tokens)).collect::<Result<_, _>>()?;
        let conditions =
            conditions.split_whitespace().map(|text| self.condition(text, tokens)).collect::<Result<_, _>>()?;
        let words: Vec<&str> = result.split_whitespace().collect();
        let (name, measure, divisor) = match words[..] {
            [name] => (name, "None", "1"),
            [name, "per", "word"] => (name, "Words", "1"),
            [name, "per", "number"] => (name, "Number", "1"),
            [name, "per", "n", by] => (name, "Columns", by),
            [name, "per", "k", by] => (name, "Depth", by),
            _ => return Err("expected: CLASS, or CLASS per word | number | n NUMBER | k NUMBER".to_owned()),
        };
        let class =
            self.classes.iter().position(|class| class.name == name).ok_or_else(|| format!("no class `{name}`"))?;
        let divisor = divisor.parse().ok().filter(|&by| by > 0).ok_or_else(|| format!("`{divisor}` is no divisor"))?;
        self.rules.push(Rule { heads, conditions, class, measure, divisor });
        Ok(())
    }

    fn condition(&self, text: &str, tokens: &Tokens) -> Result<(bool, Vec<u16>), String> {
        let (negated, text) = text.strip_prefix('!').map_or((false, text), |rest| (true, rest));
        let mut pieces = Vec::new();
        for name in text.split('|') {
            match self.groups.get(name) {
                Some(group) => pieces.extend(group),
                None => pieces.push(piece(name, tokens)?),
            }
        }
        Ok((negated, pieces))
    }

    /// Writes `UNITS`, `CLASSES`, and the rules by head.
    pub fn write(&self, tokens: &Tokens, out: &mut String) {
        for (name, all) in [("UNITS", &self.units), ("CLASSES", &self.classes)] {
            let _ = writeln!(out, "pub(crate) static {name}: [NamedRow; {}] = [", all.len());
            for named in all {
                let text = named.text.trim_end_matches(": asynchronous");
                let asynchronous = text.len() < named.text.len();
                let _ = writeln!(
                    out,
                    "NamedRow {{ name: {:?}, text: {text:?}, asynchronous: {asynchronous} }},",
                    named.name
                );
            }
            let _ = writeln!(out, "];");
        }
        let mut by_head: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
        let (mut rules, mut conditions, mut pieces, mut count) = (String::new(), String::new(), Vec::<u16>::new(), 0);
        for (index, rule) in self.rules.iter().enumerate() {
            for head in &rule.heads {
                by_head.entry(*head).or_default().push(index);
            }
            let _ = writeln!(
                rules,
                "ClassRule {{ conditions: ({count}, {}), class: {}, measure: Measure::{}, divisor: {} }},",
                rule.conditions.len(),
                rule.class,
                rule.measure,
                rule.divisor
            );
            count += rule.conditions.len();
            for (negated, alternatives) in &rule.conditions {
                let _ = writeln!(conditions, "({negated}, {}, {}),", pieces.len(), alternatives.len());
                pieces.extend(alternatives);
            }
        }
        let _ = writeln!(out, "pub(crate) static CLASS_RULES: &[ClassRule] = &[\n{rules}];");
        let _ = writeln!(out, "pub(crate) static CLASS_CONDITIONS: &[(bool, u32, u32)] = &[\n{conditions}];");
        let _ = writeln!(out, "pub(crate) static CLASS_PIECES: &[u16] = &{pieces:?};");
        let mut heads = vec![(0usize, 0usize); tokens.len()];
        let mut flat: Vec<usize> = Vec::new();
        for (&head, indices) in &by_head {
            heads[usize::from(head)] = (flat.len(), indices.len());
            flat.extend(indices);
        }
        let _ = writeln!(out, "pub(crate) static CLASS_HEADS: &[(u16, u16)] = &{heads:?};");
        let _ = writeln!(out, "pub(crate) static CLASS_HEAD_RULES: &[u16] = &{flat:?};");
    }
}

fn piece(text: &str, tokens: &Tokens) -> Result<u16, String> {
    Some(tokens.number(text)).filter(|&number| number != u16::MAX).ok_or_else(|| format!("no instruction has `{text}`"))
}
