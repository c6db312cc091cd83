//! Conditions on features: `ptxas && !(gpu || sm_90)`, with `{{regex}}` inside names.

use crate::ere::{self, Regex};
use std::collections::BTreeSet;

/// Nesting of parentheses and negations.
const NESTING_LIMIT: u32 = 64;

/// Whether a condition holds for a set of features.
///
/// # Errors
/// What is wrong with the condition.
pub fn evaluate(text: &str, features: &BTreeSet<String>) -> Result<bool, String> {
    let mut parser = Parser { rest: text.trim(), features, depth: 0 };
    let value = parser.either()?;
    match parser.rest {
        "" => Ok(value),
        rest => Err(format!("unexpected '{rest}' in condition '{text}'")),
    }
}

struct Parser<'a> {
    rest: &'a str,
    features: &'a BTreeSet<String>,
    depth: u32,
}

impl Parser<'_> {
    fn eat(&mut self, token: &str) -> bool {
        match self.rest.trim_start().strip_prefix(token) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    fn either(&mut self) -> Result<bool, String> {
        let mut value = self.both()?;
        while self.eat("||") {
            value |= self.both()?;
        }
        Ok(value)
    }

    fn both(&mut self) -> Result<bool, String> {
        let mut value = self.single()?;
        while self.eat("&&") {
            value &= self.single()?;
        }
        Ok(value)
    }

    fn single(&mut self) -> Result<bool, String> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return Err("condition nested too deeply".to_string());
        }
        let value = if self.eat("!") {
            !self.single()?
        } else if self.eat("(") {
            let value = self.either()?;
            if !self.eat(")") {
                return Err("missing ')' in condition".to_string());
            }
            value
        } else {
            self.name()?
        };
        self.depth -= 1;
        Ok(value)
    }

    fn name(&mut self) -> Result<bool, String> {
        let mut pattern = b"^(".to_vec();
        let start = self.rest;
        loop {
            let plain = |c: char| c.is_ascii_alphanumeric() || "-+=._:*".contains(c);
            let length = self.rest.find(|c| !plain(c)).unwrap_or(self.rest.len());
            ere::escape_into(&mut pattern, &self.rest.as_bytes()[..length]);
            self.rest = &self.rest[length..];
            let Some(block) = self.rest.strip_prefix("{{") else {
                break;
            };
            let end = block.find("}}").ok_or("missing '}}' in condition")?;
            pattern.extend_from_slice(b"(");
            pattern.extend_from_slice(&block.as_bytes()[..end]);
            pattern.extend_from_slice(b")");
            self.rest = &block[end + 2..];
        }
        let text = &start[..start.len() - self.rest.len()];
        if text.is_empty() {
            return Err(format!("expected a feature at '{start}'"));
        }
        self.rest = self.rest.trim_start();
        match text {
            "true" | "*" => return Ok(true),
            "false" => return Ok(false),
            _ if !text.contains("{{") => return Ok(self.features.contains(text)),
            _ => {}
        }
        pattern.extend_from_slice(b")$");
        let regex = Regex::new(&pattern, false).map_err(|error| format!("'{text}': {error}"))?;
        for feature in self.features {
            let found = regex.find(feature.as_bytes());
            if found.map_err(|_| format!("'{text}' is too complex"))?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::evaluate;

    fn holds(text: &str) -> bool {
        let features = ["ptxas", "sm_90", "linux"].map(str::to_string).into();
        evaluate(text, &features).unwrap()
    }

    #[test]
    fn operators_bind_as_usual() {
        assert!(holds("ptxas"));
        assert!(!holds("gpu"));
        assert!(holds("gpu || ptxas && linux"));
        assert!(!holds("(gpu || ptxas) && !linux"));
        assert!(holds("!gpu && true"));
        assert!(holds("*"));
    }

    #[test]
    fn regexes_match_whole_features() {
        assert!(holds("sm_{{[0-9]+}}"));
        assert!(!holds("sm_{{8[0-9]}}"));
        assert!(!holds("{{sm}}"));
    }

    #[test]
    fn errors_say_what_is_wrong() {
        let none = Default::default();
        assert!(evaluate("a &&", &none).unwrap_err().contains("expected a feature"));
        assert!(evaluate("(a", &none).unwrap_err().contains("missing ')'"));
        assert!(evaluate("a b", &none).unwrap_err().contains("unexpected 'b'"));
        assert!(evaluate(&"!".repeat(1000), &none).unwrap_err().contains("too deeply"));
    }
}
