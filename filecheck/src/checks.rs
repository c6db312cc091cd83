//! A check file, read: its directives in order, ready to be matched.

use crate::directive::{Directive, Found, Kind, Scanner};
use crate::expression::{BlockParser, Failure, parse_name};
use crate::options::Options;
use crate::pattern::Pattern;
use crate::source::{Location, Message, Slice, SourceId, Sources};
use crate::variables::Variables;
use memchr::memchr2;
use std::rc::Rc;

/// A pattern and the prefix it was written with.
#[derive(Clone)]
pub(crate) struct Check {
    pub pattern: Rc<Pattern>,
    pub prefix: Rc<str>,
}

/// A directive that has to match, and those `-DAG` and `-NOT` directives that lead up to it.
pub(crate) struct Step {
    pub check: Check,
    pub before: Vec<Check>,
}

/// Everything read from the command line and the check file.
pub(crate) struct Checks {
    pub steps: Vec<Step>,
    pub variables: Variables,
    /// The texts of `--implicit-check-not`, in order.
    pub implicit: Vec<SourceId>,
}

/// Reads the definitions of the command line and the directives of the check file.
pub(crate) fn read(options: &Options, sources: &mut Sources, check_file: SourceId) -> Result<Checks, Vec<Message>> {
    options.validate_prefixes().map_err(|text| vec![Message::general(text)])?;
    let mut variables = Variables::default();
    define(options, sources, &mut variables)?;
    let mut implicit_sources = Vec::new();
    let mut implicit = Vec::new();
    for text in &options.implicit_check_not {
        let (source, check) =
            implicit_check(options, sources, &mut variables, text).map_err(|message| vec![message])?;
        implicit_sources.push(source);
        implicit.push(check);
    }
    let mut reader = Reader {
        options,
        scanner: Scanner::new(options),
        variables,
        implicit,
        pending: Vec::new(),
        steps: Vec::new(),
        used: Vec::new(),
        line: 1,
    };
    let text = sources.slice(check_file);
    reader.read(text).map_err(|message| vec![message])?;
    Ok(Checks { steps: reader.steps, variables: reader.variables, implicit: implicit_sources })
}

const IMPLICIT_LEAD: &str = "-implicit-check-not='";
const IMPLICIT_PREFIX: &str = "IMPLICIT-CHECK";

fn implicit_check(
    options: &Options,
    sources: &mut Sources,
    variables: &mut Variables,
    text: &str,
) -> Result<(SourceId, Check), Message> {
    let source = sources.add("command line", format!("{IMPLICIT_LEAD}{text}'"));
    let slice = sources.slice(source).skip(IMPLICIT_LEAD.len()).take(text.len());
    let directive = Directive::of(Kind::Not);
    let whole_name = directive.describe(IMPLICIT_PREFIX);
    let pattern = Pattern::parse(slice, directive, &whole_name, 0, options, variables)?;
    Ok((source, Check { pattern: Rc::new(pattern), prefix: IMPLICIT_PREFIX.into() }))
}

/// Carries out `-D`. All that is wrong with the definitions is reported, not only the first.
fn define(options: &Options, sources: &mut Sources, variables: &mut Variables) -> Result<(), Vec<Message>> {
    if options.definitions.is_empty() {
        return Ok(());
    }
    let mut text = String::new();
    let mut places = Vec::new();
    for (index, definition) in options.definitions.iter().enumerate() {
        let definition = definition.text.as_str();
        text.push_str(&format!("Global define #{}: ", index + 1));
        let start = text.len();
        text.push_str(definition);
        match definition.strip_prefix('#').and_then(|numeric| numeric.split_once('=')) {
            Some((name, value)) => {
                text.push_str(" (parsed as: [[#");
                places.push((text.len(), name.len() + 1 + value.len(), true));
                text.push_str(&format!("{name}:{value}]])"));
            }
            None => places.push((start, definition.len(), false)),
        }
        text.push('\n');
    }
    let source = sources.add("Global defines", text);
    let mut errors = Vec::new();
    for (start, length, is_numeric) in places {
        let slice = sources.slice(source).skip(start).take(length);
        let result = match is_numeric {
            true => define_number(slice, variables),
            false => define_string(slice, variables).map_err(|message| vec![message]),
        };
        errors.extend(result.err().into_iter().flatten());
    }
    if errors.is_empty() { Ok(()) } else { Err(errors) }
}

fn define_number(slice: Slice<'_>, variables: &mut Variables) -> Result<(), Vec<Message>> {
    let block = BlockParser::new(variables, None, false).parse(slice).map_err(|message| vec![message])?;
    let (Some(id), Some(expression)) = (block.defines, &block.expression) else {
        let message = "a numeric definition needs a name and a value";
        return Err(vec![Message::error(slice.location(), message)]);
    };
    let value = expression.evaluate(variables, 0).map_err(|failures| {
        let report = |failure| match failure {
            Failure::Undefined(name, location) => Message::error(location, format!("undefined variable: {name}")),
            Failure::Overflow => Message::error(slice.location(), "overflow error"),
        };
        failures.into_iter().map(report).collect::<Vec<_>>()
    })?;
    variables.name_numeric(id);
    variables.set_numeric(id, Some(value), None);
    Ok(())
}

fn define_string(slice: Slice<'_>, variables: &mut Variables) -> Result<(), Message> {
    let equals = slice.find(b"=").unwrap_or(slice.bytes.len());
    let whole = slice.take(equals);
    let mut rest = whole;
    let name = parse_name(&mut rest)?;
    if name.is_pseudo || !rest.is_empty() {
        let message = format!("invalid name in string variable definition '{}'", whole.text());
        return Err(Message::error(whole.location(), message));
    }
    let text = name.text.text();
    if variables.numeric_by_name(&text).is_some() {
        let message = format!("numeric variable with name '{text}' already exists");
        return Err(Message::error(name.text.location(), message));
    }
    variables.set_string(&text, slice.skip(equals + 1).bytes, None);
    variables.declare_string(&text);
    Ok(())
}

struct Reader<'o> {
    options: &'o Options,
    scanner: Scanner,
    variables: Variables,
    implicit: Vec<Check>,
    /// `-DAG` and `-NOT` directives waiting for the one they lead up to.
    pending: Vec<Check>,
    steps: Vec<Step>,
    /// Which prefixes occurred.
    used: Vec<bool>,
    line: usize,
}

impl Reader<'_> {
    fn read(&mut self, text: Slice<'_>) -> Result<(), Message> {
        let names: Vec<Rc<str>> =
            (0..self.scanner.check_prefix_count()).map(|index| self.scanner.prefix(index).into()).collect();
        self.used = vec![false; names.len()];
        self.pending.clone_from(&self.implicit);
        let mut rest = text;
        while let Some(occurrence) = self.scanner.next(rest) {
            let skipped = &rest.bytes[..occurrence.prefix.offset - rest.offset];
            self.line += memchr::memchr_iter(b'\n', skipped).count();
            let Some(name) = names.get(occurrence.index) else {
                // A comment hides the rest of its line.
                rest = skip_line(occurrence.rest);
                continue;
            };
            self.used[occurrence.index] = true;
            let at = occurrence.prefix.location();
            let directive = match occurrence.found {
                Found::Directive(directive) => directive,
                other => {
                    let length = occurrence.rest.offset - occurrence.prefix.offset;
                    let written = rest.skip(skipped.len()).take(length);
                    return Err(refuse(other, name, written, occurrence.rest));
                }
            };
            let mut start = occurrence.rest;
            if !(self.options.strict_whitespace && self.options.match_full_lines) {
                start = start.trim_start();
            }
            rest = skip_line(start);
            let pattern_text = start.take(rest.offset - start.offset);
            self.directive(pattern_text, directive, name, at)?;
        }
        self.finish(&names, rest.location())
    }

    fn directive(
        &mut self,
        text: Slice<'_>,
        directive: Directive,
        prefix: &Rc<str>,
        at: Location,
    ) -> Result<(), Message> {
        let (options, variables) = (self.options, &mut self.variables);
        let pattern = Pattern::parse(text, directive, prefix, self.line, options, variables)?;
        if directive.kind == Kind::Label && pattern.has_variable() {
            let message = format!("found '{prefix}-LABEL:' with variable definition or use");
            return Err(Message::error(at, message));
        }
        let follows = match directive.kind {
            Kind::Next => Some("NEXT"),
            Kind::Same => Some("SAME"),
            Kind::Empty => Some("EMPTY"),
            _ => None,
        };
        if let Some(suffix) = follows.filter(|_| self.steps.is_empty()) {
            let message = format!("found '{prefix}-{suffix}' without previous '{prefix}: line");
            return Err(Message::error(at, message));
        }
        let check = Check { pattern: Rc::new(pattern), prefix: prefix.clone() };
        if matches!(directive.kind, Kind::Dag | Kind::Not) {
            self.pending.push(check);
        } else {
            let before = std::mem::replace(&mut self.pending, self.implicit.clone());
            self.steps.push(Step { check, before });
        }
        Ok(())
    }

    fn finish(&mut self, names: &[Rc<str>], end: Location) -> Result<(), Message> {
        let missing: Vec<String> =
            names.iter().zip(&self.used).filter(|(_, used)| !**used).map(|(name, _)| format!("'{name}:'")).collect();
        let none_found = missing.len() == names.len();
        let some_missing = !missing.is_empty() && !self.options.allow_unused_prefixes;
        let excused = !self.implicit.is_empty() && self.options.is_default_check_prefix();
        if (none_found || some_missing) && !excused {
            let plural = if missing.len() > 1 { "es" } else { "" };
            let list = missing.join(", ");
            let message = format!("no check strings found with prefix{plural} {list}");
            return Err(Message::general(message));
        }
        if !self.pending.is_empty() {
            let pattern = Rc::new(Pattern::end(end, self.line + 1));
            let prefix = names.first().cloned().unwrap_or_else(|| "".into());
            let before = std::mem::take(&mut self.pending);
            self.steps.push(Step { check: Check { pattern, prefix }, before });
        }
        Ok(())
    }
}

/// The text from the end of the current line.
fn skip_line(text: Slice<'_>) -> Slice<'_> {
    text.skip(memchr2(b'\n', b'\r', text.bytes).unwrap_or(text.bytes.len()))
}

/// The message for a directive that looks like one but is none; `written` is its text.
fn refuse(found: Found, prefix: &str, written: Slice<'_>, rest: Slice<'_>) -> Message {
    match found {
        Found::Misspelled => {
            let message = format!("misspelled directive '{}'", written.text());
            Message::error(written.location(), message)
        }
        Found::BadCount => {
            let message = format!("invalid count in -COUNT specification on prefix '{prefix}'");
            Message::error(rest.location(), message)
        }
        _ => {
            let message = format!("unsupported -NOT combo on prefix '{prefix}'");
            Message::error(rest.location(), message)
        }
    }
}
