//! One pattern: parses it, and finds it in the input.

use crate::directive::{Directive, Kind};
use crate::ere::{self, Regex};
use crate::expression::{BlockParser, Expression, Failure, parse_name};
use crate::number::Format;
use crate::options::Options;
use crate::source::{Location, Message, Slice, escaped};
use crate::variables::{NumericId, Variables};
use memchr::memmem::{self, Finder};
use std::ops::Range;

/// What to look for.
enum Matcher {
    /// The end of the input.
    End,
    /// An empty line.
    EmptyLine,
    /// These bytes.
    Literal(Box<Finder<'static>>),
    /// A regular expression that is the same for every match.
    Regex(Box<Regex>),
    /// A regular expression into which values are put before every match.
    Template(Vec<Substitution>),
}

/// A place in the expression that a value goes into.
pub(crate) struct Substitution {
    /// Offset in the expression.
    at: usize,
    value: SubstitutionValue,
    /// The text of the block, for messages.
    text: Vec<u8>,
    location: Location,
}

enum SubstitutionValue {
    String(String),
    Numeric(Expression, Format),
}

/// A pattern with everything needed to match and report it.
pub(crate) struct Pattern {
    pub directive: Directive,
    /// Where its text begins in the check file.
    pub location: Location,
    /// Its line, for `@LINE`.
    line: usize,
    matcher: Matcher,
    /// The fixed text or the expression, without the values of variables.
    text: Vec<u8>,
    ignore_case: bool,
    strings: Vec<(String, usize)>,
    numbers: Vec<(NumericId, usize)>,
}

/// Where a pattern was found, relative to the searched text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hit {
    pub start: usize,
    pub length: usize,
}

/// Why a pattern was not found.
#[derive(Debug)]
pub(crate) enum Miss {
    /// It is not there.
    NotFound,
    /// It could not be looked for: a variable has no value, say.
    Invalid(Vec<Message>),
}

/// A name captured in the last match, and where.
pub(crate) struct Capture {
    pub name: String,
    pub range: Range<usize>,
}

impl Pattern {
    /// The pattern at the end of the input.
    pub fn end(location: Location, line: usize) -> Self {
        Self::with_matcher(Directive::of(Kind::End), location, line, Matcher::End)
    }

    fn with_matcher(directive: Directive, location: Location, line: usize, matcher: Matcher) -> Self {
        Self {
            directive,
            location,
            line,
            matcher,
            text: Vec::new(),
            ignore_case: false,
            strings: Vec::new(),
            numbers: Vec::new(),
        }
    }

    /// Parses the text after a directive's colon.
    pub fn parse(
        text: Slice<'_>,
        directive: Directive,
        prefix: &str,
        line: usize,
        options: &Options,
        variables: &mut Variables,
    ) -> Result<Self, Message> {
        let location = text.location();
        let keep_blanks = options.strict_whitespace && options.match_full_lines;
        let text = if keep_blanks { text } else { text.trim_end() };
        let is_empty_kind = directive.kind == Kind::Empty;
        if text.is_empty() && !is_empty_kind {
            let message = format!("found empty check string with prefix '{prefix}:'");
            return Err(Message::error(location, message));
        }
        if !text.is_empty() && is_empty_kind {
            let message = format!("found non-empty check string for empty check with prefix '{prefix}:'");
            return Err(Message::error(location, message));
        }
        let mut pattern = Self::with_matcher(directive, location, line, Matcher::EmptyLine);
        pattern.ignore_case = options.ignore_case;
        if is_empty_kind {
            pattern.text = b"(\n$)".to_vec();
            return Ok(pattern);
        }
        let full_lines = options.match_full_lines && directive.kind != Kind::Not;
        let is_fixed = !full_lines && text.find(b"{{").is_none() && text.find(b"[[").is_none();
        if directive.literal || is_fixed {
            pattern.matcher = pattern.literal(text.bytes)?;
            pattern.text = text.bytes.to_vec();
            return Ok(pattern);
        }
        let mut builder = Builder { pattern, variables, substitutions: Vec::new(), next_group: 1 };
        builder.build(text, full_lines, options.strict_whitespace)?;
        builder.finish()
    }

    fn literal(&self, text: &[u8]) -> Result<Matcher, Message> {
        if !self.ignore_case {
            return Ok(Matcher::Literal(Box::new(Finder::new(text).into_owned())));
        }
        let mut expression = Vec::new();
        ere::escape_into(&mut expression, text);
        self.compile(&expression, self.location).map(Matcher::Regex)
    }

    fn compile(&self, text: &[u8], location: Location) -> Result<Box<Regex>, Message> {
        Regex::new(text, self.ignore_case)
            .map(Box::new)
            .map_err(|error| Message::error(location, format!("invalid regex: {error}")))
    }

    /// Gives back memory that is needed only while searching.
    pub fn release(&self) {
        if let Matcher::Regex(regex) = &self.matcher {
            regex.release();
        }
    }

    /// Whether its text depends on variables, or it defines a string variable. Numeric variables may be
    /// defined even where this is not allowed, as LLVM has it.
    pub fn has_variable(&self) -> bool {
        !self.strings.is_empty() || matches!(self.matcher, Matcher::Template(_))
    }

    /// Finds the pattern in `text`, which begins at `base` in the input, and sets its variables.
    pub fn find(&self, text: &[u8], base: usize, variables: &mut Variables) -> Result<Hit, Miss> {
        match &self.matcher {
            Matcher::End => Ok(Hit { start: text.len(), length: 0 }),
            Matcher::EmptyLine => find_empty_line(text).ok_or(Miss::NotFound),
            Matcher::Literal(finder) => {
                finder.find(text).map(|start| Hit { start, length: finder.needle().len() }).ok_or(Miss::NotFound)
            }
            Matcher::Regex(regex) => self.find_regex(regex, text, base, variables),
            Matcher::Template(substitutions) => {
                let expression = self.substitute(substitutions, variables).map_err(Miss::Invalid)?;
                let regex = self.compile(&expression, self.location).map_err(|message| Miss::Invalid(vec![message]))?;
                self.find_regex(&regex, text, base, variables)
            }
        }
    }

    fn find_regex(&self, regex: &Regex, text: &[u8], base: usize, variables: &mut Variables) -> Result<Hit, Miss> {
        let found = regex.find(text).map_err(|_| {
            let message = "matching this pattern takes too much work";
            Miss::Invalid(vec![Message::error(self.location, message)])
        })?;
        let Some(found) = found else {
            return Err(Miss::NotFound);
        };
        for (name, group) in &self.strings {
            let range = found.group(*group).unwrap_or(0..0);
            let at = base + range.start..base + range.end;
            variables.set_string(name, &text[range], Some(at));
        }
        for (id, group) in &self.numbers {
            let range = found.group(*group).unwrap_or(0..0);
            let at = base + range.start..base + range.end;
            let value = variables.numeric(*id).format.read(&text[range]);
            variables.set_numeric(*id, value, Some(at));
        }
        Ok(Hit { start: found.range.start, length: found.range.len() })
    }

    fn substitute(&self, substitutions: &[Substitution], variables: &Variables) -> Result<Vec<u8>, Vec<Message>> {
        let mut out = Vec::with_capacity(self.text.len() + 16 * substitutions.len());
        let mut errors = Vec::new();
        let mut copied = 0;
        for substitution in substitutions {
            out.extend_from_slice(&self.text[copied..substitution.at]);
            copied = substitution.at;
            match substitution.value(variables, self.line) {
                Ok(value) => ere::escape_into(&mut out, &value),
                Err(failures) => {
                    errors.extend(failures.into_iter().map(|failure| substitution.report(failure)));
                }
            }
        }
        out.extend_from_slice(&self.text[copied..]);
        if errors.is_empty() { Ok(out) } else { Err(errors) }
    }

    /// For each substitution that has a value, what it is.
    pub fn describe_substitutions(&self, variables: &Variables) -> Vec<String> {
        let Matcher::Template(substitutions) = &self.matcher else {
            return Vec::new();
        };
        let mut notes = Vec::new();
        for substitution in substitutions {
            if let Ok(value) = substitution.value(variables, self.line) {
                let text = escaped(&substitution.text);
                notes.push(format!("with \"{text}\" equal to \"{}\"", escaped(&value)));
            }
        }
        notes
    }

    /// The variables of the last match, in the order of the input.
    pub fn captures(&self, variables: &Variables) -> Vec<Capture> {
        let strings = self.strings.iter().filter_map(|(name, _)| {
            let range = variables.string(name)?.captured.clone()?;
            Some(Capture { name: name.clone(), range })
        });
        let numbers = self.numbers.iter().filter_map(|(id, _)| {
            let variable = variables.numeric(*id);
            Some(Capture { name: variable.name.clone(), range: variable.captured.clone()? })
        });
        let mut captures: Vec<Capture> = strings.collect();
        captures.sort_by(|a, b| a.name.cmp(&b.name));
        captures.extend(numbers);
        captures.sort_by_key(|capture| capture.range.start);
        captures
    }

    /// What to compare near misses with: the fixed text, or the expression as it stands.
    pub fn example(&self) -> &[u8] {
        &self.text
    }
}

impl Substitution {
    fn value(&self, variables: &Variables, line: usize) -> Result<Vec<u8>, Vec<Failure>> {
        match &self.value {
            SubstitutionValue::String(name) => match variables.string(name) {
                Some(value) => Ok(value.text.clone()),
                None => Err(vec![Failure::Undefined(name.clone(), self.location)]),
            },
            SubstitutionValue::Numeric(expression, format) => {
                let value = expression.evaluate(variables, line)?;
                let text = format.write(&value).ok_or_else(|| vec![Failure::Overflow])?;
                Ok(text.into_bytes())
            }
        }
    }

    fn report(&self, failure: Failure) -> Message {
        match failure {
            Failure::Undefined(name, location) => Message::error(location, format!("undefined variable: {name}")),
            Failure::Overflow => {
                Message::error(self.location, "unable to substitute variable or numeric expression: overflow error")
            }
        }
    }
}

/// An empty line begins after a newline, and the match does too.
fn find_empty_line(text: &[u8]) -> Option<Hit> {
    let at = memmem::find(text, b"\n\n").or_else(|| {
        let last = text.len().checked_sub(1)?;
        (text[last] == b'\n').then_some(last)
    })?;
    Some(Hit { start: at + 1, length: 0 })
}

/// Turns the text of a pattern into one expression.
struct Builder<'v> {
    pattern: Pattern,
    variables: &'v mut Variables,
    substitutions: Vec<Substitution>,
    /// The number of the next group of the expression.
    next_group: usize,
}

/// The highest group a back-reference can name.
const BACK_REFERENCE_LIMIT: usize = 9;

impl Builder<'_> {
    /// Of more than two opening brackets, the last two open a block and the others are themselves.
    fn build(&mut self, mut text: Slice<'_>, full_lines: bool, strict: bool) -> Result<(), Message> {
        if full_lines {
            self.pattern.text.extend_from_slice(if strict { b"^" } else { b"^ *" });
        }
        while !text.is_empty() {
            if text.bytes.starts_with(b"{{") {
                text = self.regex_block(text)?;
            } else if text.bytes.starts_with(b"[[") && !text.bytes.starts_with(b"[[[") {
                text = self.substitution_block(text)?;
            } else {
                let after = text.skip(1);
                let regex = after.find(b"{{").unwrap_or(after.bytes.len());
                let block = after.find(b"[[").unwrap_or(after.bytes.len());
                let length = 1 + regex.min(block);
                ere::escape_into(&mut self.pattern.text, text.take(length).bytes);
                text = text.skip(length);
            }
        }
        if full_lines {
            self.pattern.text.extend_from_slice(if strict { b"$" } else { b" *$" });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Pattern, Message> {
        self.pattern.matcher = match self.substitutions.is_empty() {
            true => {
                let regex = self.pattern.compile(&self.pattern.text, self.pattern.location)?;
                Matcher::Regex(regex)
            }
            false => Matcher::Template(self.substitutions),
        };
        Ok(self.pattern)
    }

    /// Appends an expression after making sure that it stands on its own.
    fn append_regex(&mut self, text: &[u8], location: Location) -> Result<(), Message> {
        let regex = self.pattern.compile(text, location)?;
        self.next_group += regex.group_count() as usize;
        self.pattern.text.extend_from_slice(text);
        Ok(())
    }

    /// `{{regex}}`.
    fn regex_block<'a>(&mut self, text: Slice<'a>) -> Result<Slice<'a>, Message> {
        let Some(end) = text.find(b"}}") else {
            let message = "found start of regex string with no end '}}'";
            return Err(Message::error(text.location(), message));
        };
        let regex = text.take(end).skip(2);
        // Parentheses keep an alternative inside the block from taking in what surrounds it.
        let group = memchr::memchr(b'|', text.bytes).is_some();
        if group {
            self.pattern.text.push(b'(');
            self.next_group += 1;
        }
        self.append_regex(regex.bytes, regex.location())?;
        if group {
            self.pattern.text.push(b')');
        }
        Ok(text.skip(end + 2))
    }

    /// `[[NAME]]`, `[[NAME:regex]]`, `[[#...]]` or `[[@LINE+n]]`.
    fn substitution_block<'a>(&mut self, text: Slice<'a>) -> Result<Slice<'a>, Message> {
        let inner = text.skip(2);
        let Some(end) = find_block_end(inner)? else {
            let message = "Invalid substitution block, no ]] found";
            return Err(Message::error(text.location(), message));
        };
        let mut block = inner.take(end);
        if block.eat(b"#") {
            self.numeric_block(block, false)?;
        } else {
            self.string_block(block)?;
        }
        Ok(inner.skip(end + 2))
    }

    fn string_block(&mut self, block: Slice<'_>) -> Result<(), Message> {
        let colon = block.find(b":");
        let head = block.take(colon.unwrap_or(block.bytes.len()));
        if let Some(blank) = head.bytes.iter().position(|byte| crate::source::is_blank(*byte)) {
            return Err(Message::error(head.skip(blank).location(), "unexpected whitespace"));
        }
        let mut rest = block;
        let name = parse_name(&mut rest)?;
        let text = name.text.text();
        let at = name.text.location();
        if colon.is_none() {
            if name.is_pseudo {
                return self.numeric_block(block, true);
            }
            if !rest.is_empty() {
                return Err(Message::error(at, "invalid name in string variable use"));
            }
            return self.use_string(text, block);
        }
        if name.is_pseudo || !rest.eat(b":") {
            return Err(Message::error(at, "invalid name in string variable definition"));
        }
        if self.variables.numeric_by_name(&text).is_some() {
            let message = format!("numeric variable with name '{text}' already exists");
            return Err(Message::error(at, message));
        }
        self.pattern.text.push(b'(');
        self.variables.declare_string(&text);
        self.pattern.strings.retain(|(defined, _)| *defined != text);
        self.pattern.strings.push((text, self.next_group));
        self.next_group += 1;
        if !rest.is_empty() {
            self.append_regex(rest.bytes, rest.location())?;
        }
        self.pattern.text.push(b')');
        Ok(())
    }

    fn use_string(&mut self, name: String, block: Slice<'_>) -> Result<(), Message> {
        let defined_here = self.pattern.strings.iter().find(|(defined, _)| *defined == name);
        let Some((_, group)) = defined_here else {
            self.substitutions.push(Substitution {
                at: self.pattern.text.len(),
                value: SubstitutionValue::String(name),
                text: block.bytes.to_vec(),
                location: block.location(),
            });
            return Ok(());
        };
        if *group > BACK_REFERENCE_LIMIT {
            let message = "Can't back-reference more than 9 variables";
            return Err(Message::error(block.location(), message));
        }
        self.pattern.text.extend_from_slice(format!("\\{group}").as_bytes());
        Ok(())
    }

    fn numeric_block(&mut self, block: Slice<'_>, old_line_form: bool) -> Result<(), Message> {
        let line = Some(self.pattern.line);
        let parsed = BlockParser::new(self.variables, line, old_line_form).parse(block)?;
        if let Some(id) = parsed.defines {
            self.pattern.text.push(b'(');
            self.variables.name_numeric(id);
            self.pattern.numbers.retain(|(defined, _)| *defined != id);
            self.pattern.numbers.push((id, self.next_group));
            self.next_group += 1;
        }
        match parsed.expression {
            Some(expression) => self.substitutions.push(Substitution {
                at: self.pattern.text.len(),
                value: SubstitutionValue::Numeric(expression, parsed.format),
                text: block.bytes.to_vec(),
                location: block.location(),
            }),
            None => self.append_regex(parsed.format.wildcard().as_bytes(), block.location())?,
        }
        if parsed.defines.is_some() {
            self.pattern.text.push(b')');
        }
        Ok(())
    }
}

/// Where the `]]` that ends a substitution block is: not inside brackets, and not escaped.
fn find_block_end(text: Slice<'_>) -> Result<Option<usize>, Message> {
    let mut depth = 0u32;
    let mut at = 0;
    while at < text.bytes.len() {
        let rest = &text.bytes[at..];
        match rest {
            [b']', b']', ..] if depth == 0 => return Ok(Some(at)),
            [b'\\', ..] => at += 1,
            [b'[', ..] => depth += 1,
            [b']', ..] if depth == 0 => {
                let message = "missing closing \"]\" for regex variable";
                return Err(Message::error(text.skip(at).location(), message));
            }
            [b']', ..] => depth -= 1,
            _ => {}
        }
        at += 1;
    }
    Ok(None)
}
