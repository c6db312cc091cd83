//! Requirements: `8.0 sm_90+`, `8.6 sm_100a sm_110a | 8.8 sm_100f+`, `9.4`.
//!
//! Alternatives are separated by `|`, each a PTX version followed by the targets it
//! speaks of, all where none is named:
//!
//! - `sm_90` that target and its `a` and `f` variants,
//! - `sm_90+` every target of that number or a higher one, `sm_89-` or a lower one,
//! - `sm_100a` that target alone,
//! - `sm_100f` the `a` and `f` targets of its family from that number on.

use crate::rows::Target;
use std::fmt::Write as _;

pub struct Requirements {
    targets: Vec<Target>,
    rows: Vec<(String, Vec<u8>)>,
}

/// A version the row of a target that is refused holds.
pub const REFUSED: u8 = 255;

impl Requirements {
    pub fn new(targets: &[Target]) -> Requirements {
        let mut new = Requirements { targets: targets.to_vec(), rows: Vec::new() };
        new.rows.push((String::new(), vec![0; targets.len()]));
        new
    }

    /// The number of the requirement written `text`; 0 is no requirement at all.
    pub fn intern(&mut self, text: &str) -> Result<u16, String> {
        let text = text.trim();
        if text.is_empty() {
            return Ok(0);
        }
        let mut versions = vec![0; self.targets.len()];
        for every in text.split('&') {
            for (slot, version) in versions.iter_mut().zip(self.any_of(every)?) {
                *slot = (*slot).max(version);
            }
        }
        let text = describe(text);
        let row = (text, versions);
        if let Some(index) = self.rows.iter().position(|other| *other == row) {
            return Ok(index as u16);
        }
        self.rows.push(row);
        Ok((self.rows.len() - 1) as u16)
    }

    /// The lowest version of the alternatives, by target.
    fn any_of(&self, text: &str) -> Result<Vec<u8>, String> {
        let mut versions = vec![REFUSED; self.targets.len()];
        for alternative in text.split('|') {
            let mut words = alternative.split_whitespace();
            let version = parse_version(words.next().unwrap_or(""))?;
            let mut any = false;
            for word in words {
                any = true;
                let mut known = false;
                for (slot, target) in versions.iter_mut().zip(&self.targets) {
                    if matches(word, target)? {
                        known = true;
                        *slot = (*slot).min(version);
                    }
                }
                if !known {
                    return Err(format!("`{word}` names no target"));
                }
            }
            if !any {
                versions.iter_mut().for_each(|slot| *slot = (*slot).min(version));
            }
        }
        Ok(versions)
    }

    pub fn write(&self, out: &mut String) {
        let _ = writeln!(out, "pub(crate) static REQUIREMENTS: [Requirement; {}] = [", self.rows.len());
        for (text, versions) in &self.rows {
            let _ = writeln!(out, "Requirement {{ text: {text:?}, versions: &{versions:?} }},");
        }
        let _ = writeln!(out, "];");
    }
}

fn describe(text: &str) -> String {
    let words: Vec<String> = text
        .split('|')
        .map(|alternative| {
            let mut words = alternative.split_whitespace();
            let version = words.next().unwrap_or("");
            let targets: Vec<&str> = words.collect();
            match targets.is_empty() {
                true => format!("PTX {version}"),
                false => format!("PTX {version} on {}", targets.join(", ")),
            }
        })
        .collect();
    words.join(" or ").replace("&", "and")
}

pub fn parse_version(text: &str) -> Result<u8, String> {
    let parse = || {
        let (major, minor) = text.split_once('.')?;
        Some(major.parse::<u8>().ok()? * 10 + minor.parse::<u8>().ok()?)
    };
    parse().ok_or_else(|| format!("`{text}` is no PTX version"))
}

fn matches(word: &str, target: &Target) -> Result<bool, String> {
    let bare = word.strip_prefix("sm_").ok_or_else(|| format!("`{word}` is no target"))?;
    let digits: &str = bare.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u16 = digits.parse().map_err(|_| format!("`{word}` is no target"))?;
    Ok(match &bare[digits.len()..] {
        "" => target.number == number,
        "+" => target.number >= number,
        "-" => target.number <= number,
        "a" => target.name == word,
        "f" => {
            let family = if number >= 120 {
                120
            } else if number >= 110 {
                110
            } else {
                100
            };
            target.family == family && target.number >= number && target.suffix != 0
        }
        _ => return Err(format!("`{word}` is no target")),
    })
}
