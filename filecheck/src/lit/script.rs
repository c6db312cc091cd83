//! What a test file says about itself: RUN lines and the conditions under which they apply.

use super::condition;
use std::collections::BTreeSet;

/// A RUN line, continuations joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// Where it begins, from 1.
    pub number: usize,
    /// The command, before substitution.
    pub text: String,
}

/// The keywords of a test file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    /// `RUN:`
    pub run: Vec<Line>,
    /// `REQUIRES:` conditions that must all hold.
    pub requires: Vec<String>,
    /// `UNSUPPORTED:` conditions none of which may hold.
    pub unsupported: Vec<String>,
    /// `XFAIL:` conditions any of which makes failure expected.
    pub xfail: Vec<String>,
}

/// Why a test is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is run.
    Run {
        /// Whether it is expected to fail.
        expect_failure: bool,
    },
    /// It does not apply here, and why.
    Skip(String),
}

impl Script {
    /// Reads the keywords. `END.` on a line ends the search.
    ///
    /// # Errors
    /// A continued line that does not continue, or a test without `RUN:`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut script = Self::default();
        let mut continues = false;
        for (index, line) in text.lines().enumerate() {
            if let Some(value) = keyword(line, "RUN:") {
                let value = value.trim();
                let (value, more) = match value.strip_suffix('\\') {
                    Some(start) => (start, true),
                    None => (value, false),
                };
                match script.run.last_mut().filter(|_| continues) {
                    Some(last) => {
                        last.text.push(' ');
                        last.text.push_str(value);
                    }
                    None => script.run.push(Line { number: index + 1, text: value.to_string() }),
                }
                continues = more;
            } else if let Some(value) = keyword(line, "REQUIRES:") {
                script.requires.extend(conditions(value));
            } else if let Some(value) = keyword(line, "UNSUPPORTED:") {
                script.unsupported.extend(conditions(value));
            } else if let Some(value) = keyword(line, "XFAIL:") {
                script.xfail.extend(conditions(value));
            } else if keyword(line, "END.").is_some() {
                break;
            }
        }
        if script.run.is_empty() {
            return Err("no RUN line".to_string());
        }
        if continues {
            return Err("the last RUN line ends in a backslash".to_string());
        }
        Ok(script)
    }

    /// Whether the test applies where these features are.
    ///
    /// # Errors
    /// A condition that makes no sense.
    pub fn verdict(&self, features: &BTreeSet<String>) -> Result<Verdict, String> {
        for text in &self.requires {
            if !condition::evaluate(text, features)? {
                return Ok(Verdict::Skip(format!("requires {text}")));
            }
        }
        for text in &self.unsupported {
            if condition::evaluate(text, features)? {
                return Ok(Verdict::Skip(format!("unsupported with {text}")));
            }
        }
        let mut expect_failure = false;
        for text in &self.xfail {
            expect_failure |= condition::evaluate(text, features)?;
        }
        Ok(Verdict::Run { expect_failure })
    }
}

/// The rest of the line after a keyword that is not part of another word.
fn keyword<'a>(line: &'a str, keyword: &str) -> Option<&'a str> {
    let at = line.find(keyword)?;
    let before = line[..at].chars().next_back();
    let is_word = before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
    (!is_word).then(|| &line[at + keyword.len()..])
}

fn conditions(value: &str) -> impl Iterator<Item = String> {
    value.split(',').map(|text| text.trim().to_string()).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_joined_and_numbered() {
        let text = "; RUN: a | \\\n; RUN:   b\n; RUN: c\nNORUN: d\n; XFAIL: *\n; END.\n; RUN: e\n";
        let script = Script::parse(text).unwrap();
        assert_eq!(script.run[0], Line { number: 1, text: "a |  b".to_string() });
        assert_eq!(script.run[1], Line { number: 3, text: "c".to_string() });
        assert_eq!(script.run.len(), 2);
        assert_eq!(script.xfail, ["*"]);
    }

    #[test]
    fn conditions_decide() {
        let script = Script::parse("RUN: a\nREQUIRES: x, y || z\nUNSUPPORTED: w\nXFAIL: v").unwrap();
        let verdict = |features: &[&str]| {
            let features = features.iter().map(|name| name.to_string()).collect();
            script.verdict(&features).unwrap()
        };
        assert_eq!(verdict(&["x"]), Verdict::Skip("requires y || z".to_string()));
        assert_eq!(verdict(&["x", "z"]), Verdict::Run { expect_failure: false });
        assert_eq!(verdict(&["x", "y", "v"]), Verdict::Run { expect_failure: true });
        assert_eq!(verdict(&["x", "y", "w"]), Verdict::Skip("unsupported with w".to_string()));
    }

    #[test]
    fn broken_scripts_are_refused() {
        assert_eq!(Script::parse("nothing").unwrap_err(), "no RUN line");
        assert!(Script::parse("RUN: a \\").unwrap_err().contains("backslash"));
    }
}
