//! Turns output into directives: one `-LABEL` for each function, one `-NEXT` for each line of it, and
//! variables in place of register and value names.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The language of an output, which decides what a function is and what a name is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// NVIDIA PTX: names are a class and a number, `%rd12`.
    Ptx,
    /// An IR with `%names` for values and `@names` for functions.
    Ir,
    /// Anything else: the whole output is one piece, and nothing is a name.
    Text,
}

/// Part of an output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The name of the function; `None` if the output has no functions.
    pub name: Option<String>,
    /// Its lines.
    pub lines: Vec<String>,
}

impl Language {
    /// Recognizes the language by the first lines that say something.
    pub fn of(output: &str) -> Self {
        for line in output.lines().map(str::trim) {
            if line.starts_with(".version ") || function_name(Self::Ptx, line).is_some() {
                return Self::Ptx;
            }
            if function_name(Self::Ir, line).is_some() {
                return Self::Ir;
            }
        }
        Self::Text
    }
}

/// Divides an output into its functions. What is outside of functions is left out, unless there are none.
pub fn split(output: &str, language: Language) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut inside = false;
    for line in output.lines() {
        if let Some(name) = function_name(language, line) {
            pieces.push(Piece { name: Some(name.to_string()), lines: Vec::new() });
            inside = true;
        }
        let Some(piece) = pieces.last_mut().filter(|_| inside) else {
            continue;
        };
        let line = line.trim_end();
        piece.lines.push(line.to_string());
        // A body ends at a brace in the first column, a declaration with its line.
        let is_declaration = piece.lines.len() == 1 && line.ends_with(';');
        inside = line != "}" && !is_declaration;
    }
    if pieces.is_empty() {
        let lines = output.lines().map(|line| line.trim_end().to_string()).collect();
        pieces.push(Piece { name: None, lines });
    }
    pieces
}

/// The name of the function that a line begins, if it begins one.
pub fn function_name(language: Language, line: &str) -> Option<&str> {
    name_range(language, line).map(|range| &line[range])
}

fn name_range(language: Language, line: &str) -> Option<Range<usize>> {
    let keywords: &[&str] = match language {
        Language::Ptx => &[".entry", ".func"],
        Language::Ir => &["kernel", "func", "define"],
        Language::Text => return None,
    };
    if line.starts_with(char::is_whitespace) || line.starts_with("//") || line.starts_with(';') {
        return None;
    }
    let keyword = line.split_whitespace().find(|word| keywords.contains(word))?;
    let mut start = line.find(keyword)? + keyword.len();
    if language == Language::Ir {
        start += line[start..].find('@')? + 1;
    } else {
        start += blanks(&line[start..]);
        // A return parameter in parentheses may precede the name.
        if line[start..].starts_with('(') {
            start += line[start..].find(')')? + 1;
            start += blanks(&line[start..]);
        }
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || "_$.-".contains(c);
    let rest = &line[start..];
    let length = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    (length > 0).then_some(start..start + length)
}

fn blanks(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// The directives for a piece, without comment marks. `prefix` begins each.
pub fn directives(piece: &Piece, language: Language, prefix: &str) -> Vec<String> {
    let mut names = Names::new(language);
    let mut out = Vec::with_capacity(piece.lines.len());
    for line in &piece.lines {
        let blank = line.trim().is_empty();
        if out.is_empty() {
            if blank {
                continue;
            }
            match label(line, language) {
                // A label may hold no variables; the rest of its line follows on its own.
                Some((label, rest)) => {
                    out.push(format!("{prefix}-LABEL: {label}"));
                    if !rest.trim().is_empty() {
                        out.push(format!("{prefix}-SAME: {}", names.line(rest.trim())));
                    }
                }
                None => out.push(format!("{prefix}: {}", names.line(line.trim()))),
            }
            continue;
        }
        out.push(match blank {
            true => format!("{prefix}-EMPTY:"),
            false => format!("{prefix}-NEXT: {}", names.line(line.trim())),
        });
    }
    while out.last().is_some_and(|line| line.ends_with("-EMPTY:")) {
        out.pop();
    }
    out
}

/// The first line up to the name of the function and the parenthesis after it, and the rest.
fn label(line: &str, language: Language) -> Option<(&str, &str)> {
    let mut end = name_range(language, line)?.end;
    end += usize::from(line[end..].starts_with('('));
    let label = line[..end].trim();
    // A return parameter before the name would be a name in a label.
    (!label.contains('%')).then_some((label, &line[end..]))
}

/// Special registers whose names end in numbers, and so look like ordinary ones.
const SPECIAL_REGISTERS: &[&str] = &["clock64", "envreg", "pm"];
/// Back-references reach no further.
const BACK_REFERENCE_LIMIT: usize = 9;

/// The names of a piece, and the variables that stand for them.
struct Names {
    language: Language,
    variables: HashMap<String, String>,
    taken: HashSet<String>,
}

impl Names {
    fn new(language: Language) -> Self {
        Self { language, variables: HashMap::new(), taken: HashSet::new() }
    }

    /// A line as a pattern.
    fn line(&mut self, line: &str) -> String {
        let mut out = String::with_capacity(line.len() * 2);
        let mut rest = line;
        // The groups of this line's variables, by name: what is defined here is referred back to.
        let mut defined: HashMap<String, usize> = HashMap::new();
        while let Some(c) = rest.chars().next() {
            if let Some(length) = self.name_length(rest) {
                let (name, after) = rest.split_at(length);
                out.push_str(&self.name(name, &mut defined));
                rest = after;
                continue;
            }
            if let Some(after) = self.register_count(rest, &mut out) {
                rest = after;
                continue;
            }
            match rest {
                _ if rest.starts_with("{{") => {
                    out.push_str("{{[{][{]}}");
                    rest = &rest[2..];
                }
                _ if rest.starts_with("[[") => {
                    out.push_str("{{[[][[]}}");
                    rest = &rest[2..];
                }
                _ => {
                    out.push(c);
                    rest = &rest[c.len_utf8()..];
                }
            }
        }
        out
    }

    /// The length of the name at the front of `text`.
    fn name_length(&self, text: &str) -> Option<usize> {
        let body = text.strip_prefix('%')?;
        match self.language {
            Language::Text => None,
            Language::Ir => {
                let is_part = |c: char| c.is_ascii_alphanumeric() || "_.$-".contains(c);
                let length = body.find(|c| !is_part(c)).unwrap_or(body.len());
                (length > 0).then_some(length + 1)
            }
            Language::Ptx => {
                let class = body.find(|c: char| !c.is_ascii_lowercase()).unwrap_or(body.len());
                let digits = body[class..].find(|c: char| !c.is_ascii_digit());
                let end = class + digits.unwrap_or(body.len() - class);
                let goes_on = body[end..].starts_with(|c: char| c.is_ascii_alphanumeric() || "_$".contains(c));
                let name = &body[..end];
                let is_special = SPECIAL_REGISTERS
                    .iter()
                    .any(|special| *special == name || (*special == &body[..class] && *special != "clock64"));
                (class > 0 && end > class && !goes_on && !is_special).then_some(end + 1)
            }
        }
    }

    /// `%r<12>` in a declaration of registers: how many there are is of no interest.
    fn register_count<'a>(&self, text: &'a str, out: &mut String) -> Option<&'a str> {
        if self.language != Language::Ptx {
            return None;
        }
        let body = text.strip_prefix('%')?;
        let class = body.find(|c: char| !c.is_ascii_lowercase())?;
        let count = body[class..].strip_prefix('<')?;
        let end = count.find('>')?;
        let is_count = end > 0 && count[..end].bytes().all(|byte| byte.is_ascii_digit());
        if !is_count {
            return None;
        }
        out.push_str(&format!("%{}<{{{{[0-9]+}}}}>", &body[..class]));
        Some(&count[end + 1..])
    }

    /// A use of a name, or its definition where it occurs first.
    fn name(&mut self, name: &str, defined: &mut HashMap<String, usize>) -> String {
        let pattern = match self.language {
            Language::Ptx => format!("{}[0-9]+", name.trim_end_matches(|c: char| c.is_ascii_digit())),
            // What follows the name ends it in any case, and this is easier to read than all its characters.
            _ => "%[^ ,]+".to_string(),
        };
        match self.variables.get(name) {
            Some(_) if defined.get(name).is_some_and(|group| *group > BACK_REFERENCE_LIMIT) => {
                format!("{{{{{pattern}}}}}")
            }
            Some(variable) => format!("[[{variable}]]"),
            None => {
                let variable = self.variable(name);
                self.variables.insert(name.to_string(), variable.clone());
                defined.insert(name.to_string(), defined.len() + 1);
                format!("[[{variable}:{pattern}]]")
            }
        }
    }

    /// A variable name made from a name: `%rd1` becomes `RD1`.
    fn variable(&mut self, name: &str) -> String {
        let valid = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
        let mut base: String = name.trim_start_matches('%').chars().map(valid).collect();
        if base.starts_with(|c: char| c.is_ascii_digit()) {
            base.insert(0, 'V');
        }
        let mut variable = base.clone();
        let mut count = 2;
        while !self.taken.insert(variable.clone()) {
            variable = format!("{base}_{count}");
            count += 1;
        }
        variable
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(output: &str) -> Vec<String> {
        let language = Language::of(output);
        split(output, language).iter().flat_map(|piece| directives(piece, language, "CHECK")).collect()
    }

    #[test]
    fn ptx_registers_become_variables() {
        let output = ".version 8.0\n\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n{\n\t.reg .b32 %r<5>;\n\n\
                      \tmov.u32 \t%r1, %tid.x;\n\tadd.s32 \t%r2, %r1, %r1;\n\tmov.u64 %rd1, %clock64;\n\
                      \tst.global.u32 [%rd1+4], %r2;\n}\n";
        assert_eq!(
            lines(output),
            [
                "CHECK-LABEL: .visible .entry k(",
                "CHECK-NEXT: .param .u64 k_param_0",
                "CHECK-NEXT: )",
                "CHECK-NEXT: {",
                "CHECK-NEXT: .reg .b32 %r<{{[0-9]+}}>;",
                "CHECK-EMPTY:",
                "CHECK-NEXT: mov.u32 \t[[R1:%r[0-9]+]], %tid.x;",
                "CHECK-NEXT: add.s32 \t[[R2:%r[0-9]+]], [[R1]], [[R1]];",
                "CHECK-NEXT: mov.u64 [[RD1:%rd[0-9]+]], %clock64;",
                "CHECK-NEXT: st.global.u32 [[[RD1]]+4], [[R2]];",
                "CHECK-NEXT: }",
            ]
        );
    }

    #[test]
    fn ir_values_become_variables() {
        let output = "kernel @k(%n: i32) {\nentry:\n  %0 = add i32 %n, 1\n  ret\n}\n\nfunc @f() {\n  ret\n}\n";
        let found = lines(output);
        assert_eq!(found[0], "CHECK-LABEL: kernel @k(");
        assert_eq!(found[1], "CHECK-SAME: [[N:%[^ ,]+]]: i32) {");
        assert_eq!(found[3], "CHECK-NEXT: [[V0:%[^ ,]+]] = add i32 [[N]], 1");
        assert_eq!(found[6], "CHECK-LABEL: func @f(");
    }

    #[test]
    fn uses_that_back_references_cannot_reach_match_any_register() {
        let registers: Vec<String> = (0..12).map(|n| format!("%r{n}")).collect();
        let output = format!(".func f()\n{{\nmma {}, %r11, %r1;\n}}\n", registers.join(", "));
        let line = &lines(&output)[3];
        assert!(line.ends_with("[[R11:%r[0-9]+]], {{%r[0-9]+}}, [[R1]];"), "{line}");
    }

    #[test]
    fn text_that_looks_like_blocks_is_protected() {
        assert_eq!(
            lines("a {{b}} [[c]]\n\nd\n"),
            ["CHECK: a {{[{][{]}}b}} {{[[][[]}}c]]", "CHECK-EMPTY:", "CHECK-NEXT: d"]
        );
    }
}
