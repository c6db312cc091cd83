//! Finds directives in a check file: a prefix, a suffix that says what kind it is, and a colon.

use crate::options::Options;
use crate::source::Slice;
use memchr::memmem::Finder;

/// What a directive demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `CHECK:` and `CHECK-COUNT-n:`: further on, so many times.
    Plain,
    /// `CHECK-NEXT:`: on the next line.
    Next,
    /// `CHECK-SAME:`: on the same line.
    Same,
    /// `CHECK-NOT:`: nowhere before the next match.
    Not,
    /// `CHECK-DAG:`: in any order within a group.
    Dag,
    /// `CHECK-LABEL:`: divides the input.
    Label,
    /// `CHECK-EMPTY:`: the next line is empty.
    Empty,
    /// The end of the input: what trailing `-NOT` and `-DAG` directives lead up to.
    End,
}

/// A kind with its modifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Directive {
    /// The kind.
    pub kind: Kind,
    /// How many times it has to match; 1 for all but `-COUNT-n`.
    pub count: u32,
    /// `{LITERAL}`: no regular expressions or variables in the pattern.
    pub literal: bool,
}

impl Directive {
    pub(crate) const fn of(kind: Kind) -> Self {
        Self { kind, count: 1, literal: false }
    }

    /// As messages call it.
    pub fn describe(self, prefix: &str) -> String {
        let suffix = match self.kind {
            Kind::Plain if self.count > 1 => "-COUNT",
            Kind::Plain => "",
            Kind::Next => "-NEXT",
            Kind::Same => "-SAME",
            Kind::Not => "-NOT",
            Kind::Dag => "-DAG",
            Kind::Label => "-LABEL",
            Kind::Empty => "-EMPTY",
            Kind::End => return "implicit EOF".to_string(),
        };
        let modifiers = if self.literal { "{LITERAL}" } else { "" };
        format!("{prefix}{suffix}{modifiers}")
    }

    /// As the input dump calls it.
    pub(crate) fn abbreviation(self) -> &'static str {
        match self.kind {
            Kind::Plain if self.count > 1 => "count",
            Kind::Plain => "check",
            Kind::Next => "next",
            Kind::Same => "same",
            Kind::Not => "not",
            Kind::Dag => "dag",
            Kind::Label => "label",
            Kind::Empty => "empty",
            Kind::End => "eof",
        }
    }
}

/// What follows a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    Directive(Directive),
    /// The rest of the line is a comment.
    Comment,
    /// `_` in place of `-` before a suffix.
    Misspelled,
    /// `-NOT` together with another suffix.
    BadNot,
    /// `-COUNT-` without a usable number.
    BadCount,
}

/// A prefix found in a check file.
pub(crate) struct Occurrence<'a> {
    pub prefix: Slice<'a>,
    /// Which prefix, counting check prefixes first and comment prefixes after them.
    pub index: usize,
    pub found: Found,
    /// What comes after the suffix.
    pub rest: Slice<'a>,
}

struct Prefix {
    text: String,
    is_comment: bool,
    finder: Finder<'static>,
    /// Offset of its first occurrence not before the last place looked at; `usize::MAX` for none.
    next: usize,
}

/// Walks a check file from prefix to prefix.
pub(crate) struct Scanner {
    prefixes: Vec<Prefix>,
}

impl Scanner {
    pub fn new(options: &Options) -> Self {
        let checks = options.effective_check_prefixes().into_iter().map(|text| (text, false));
        let comments = options.effective_comment_prefixes().into_iter().map(|text| (text, true));
        let prefixes = checks
            .chain(comments)
            .map(|(text, is_comment)| Prefix {
                text: text.to_string(),
                is_comment,
                finder: Finder::new(text.as_bytes()).into_owned(),
                next: 0,
            })
            .collect();
        Self { prefixes }
    }

    /// The text of a prefix.
    pub fn prefix(&self, index: usize) -> &str {
        self.prefixes.get(index).map_or("", |prefix| &prefix.text)
    }

    /// How many prefixes are check prefixes.
    pub fn check_prefix_count(&self) -> usize {
        self.prefixes.iter().filter(|prefix| !prefix.is_comment).count()
    }

    /// The first directive in `text`. Successive calls must not go back in the file.
    pub fn next<'a>(&mut self, mut text: Slice<'a>) -> Option<Occurrence<'a>> {
        let mut before: Option<u8> = None;
        loop {
            let index = self.earliest(text)?;
            let prefix = &self.prefixes[index];
            let skipped = prefix.next - text.offset;
            if skipped > 0 {
                before = text.bytes.get(skipped - 1).copied();
            }
            text = text.skip(skipped);
            let length = prefix.text.len();
            if !before.is_some_and(is_part_of_word)
                && let Some((found, rest)) = classify(text.skip(length), prefix.is_comment)
            {
                return Some(Occurrence { prefix: text.take(length), index, found, rest });
            }
            let word = text.bytes[length..].iter().take_while(|byte| is_part_of_word(**byte)).count();
            before = text.bytes.get(length + word - 1).copied();
            text = text.skip(length + word);
        }
    }

    /// The prefix that occurs first, and of several at one place the longest.
    fn earliest(&mut self, text: Slice<'_>) -> Option<usize> {
        for prefix in &mut self.prefixes {
            if prefix.next < text.offset || prefix.next == 0 {
                prefix.next = match prefix.finder.find(text.bytes) {
                    Some(at) => text.offset + at,
                    None => usize::MAX,
                };
            }
        }
        let found = self.prefixes.iter().enumerate().filter(|(_, prefix)| prefix.next != usize::MAX);
        let best = found.min_by_key(|(_, prefix)| (prefix.next, usize::MAX - prefix.text.len()));
        best.map(|(index, _)| index)
    }
}

fn is_part_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}

const SUFFIXES: &[(&[u8], Kind)] = &[
    (b"NEXT", Kind::Next),
    (b"SAME", Kind::Same),
    (b"NOT", Kind::Not),
    (b"DAG", Kind::Dag),
    (b"LABEL", Kind::Label),
    (b"EMPTY", Kind::Empty),
];

const BAD_NOT_SUFFIXES: &[&[u8]] =
    &[b"DAG-NOT:", b"NOT-DAG:", b"NEXT-NOT:", b"NOT-NEXT:", b"SAME-NOT:", b"NOT-SAME:", b"EMPTY-NOT:", b"NOT-EMPTY:"];

/// Reads what follows a prefix; `None` if the prefix does not make a directive there.
fn classify(mut rest: Slice<'_>, is_comment: bool) -> Option<(Found, Slice<'_>)> {
    if is_comment {
        return rest.eat(b":").then_some((Found::Comment, rest));
    }
    let misspelled = match rest.bytes.first()? {
        b':' | b'{' => return directive(rest, Directive::of(Kind::Plain)),
        b'_' => true,
        b'-' => false,
        _ => return None,
    };
    rest = rest.skip(1);
    let (found, rest) = suffix(rest)?;
    let found = if misspelled { Found::Misspelled } else { found };
    Some((found, rest))
}

fn suffix(mut rest: Slice<'_>) -> Option<(Found, Slice<'_>)> {
    if rest.eat(b"COUNT-") {
        let digits = rest.bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        let count = rest.take(digits).text().parse::<u32>();
        rest = rest.skip(digits);
        return match (count, rest.bytes.first()) {
            (Ok(count @ 1..=0x7fff_ffff), Some(b':' | b'{')) => {
                directive(rest, Directive { count, ..Directive::of(Kind::Plain) })
            }
            _ => Some((Found::BadCount, rest)),
        };
    }
    if BAD_NOT_SUFFIXES.iter().any(|bad| rest.bytes.starts_with(bad)) {
        return Some((Found::BadNot, rest));
    }
    let (_, kind) = SUFFIXES.iter().find(|(text, _)| rest.eat(text))?;
    directive(rest, Directive::of(*kind))
}

/// Reads the modifiers and the colon.
fn directive(mut rest: Slice<'_>, mut directive: Directive) -> Option<(Found, Slice<'_>)> {
    if rest.eat(b":") {
        return Some((Found::Directive(directive), rest));
    }
    if !rest.eat(b"{") {
        return None;
    }
    loop {
        rest = rest.trim_start();
        if !rest.eat(b"LITERAL") {
            return None;
        }
        directive.literal = true;
        rest = rest.trim_start();
        if !rest.eat(b",") {
            break;
        }
    }
    rest.eat(b"}:").then_some((Found::Directive(directive), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Sources;

    fn scan(text: &str, options: &Options) -> Vec<(String, Found)> {
        let mut sources = Sources::default();
        let id = sources.add("check", text);
        let mut rest = sources.slice(id);
        let mut scanner = Scanner::new(options);
        let mut found = Vec::new();
        while let Some(occurrence) = scanner.next(rest) {
            found.push((occurrence.prefix.text(), occurrence.found));
            rest = occurrence.rest;
        }
        found
    }

    fn kinds(text: &str) -> Vec<Found> {
        scan(text, &Options::default()).into_iter().map(|(_, found)| found).collect()
    }

    #[test]
    fn suffixes_make_kinds() {
        let found = kinds("; CHECK-NEXT: a\nCHECK-COUNT-3{LITERAL}: b\nCHECK{ LITERAL , LITERAL }: c");
        let count = Directive { count: 3, literal: true, ..Directive::of(Kind::Plain) };
        assert_eq!(found[0], Found::Directive(Directive::of(Kind::Next)));
        assert_eq!(found[1], Found::Directive(count));
        assert_eq!(found[2], Found::Directive(Directive { literal: true, ..Directive::of(Kind::Plain) }));
    }

    #[test]
    fn prefixes_inside_words_are_not_directives() {
        assert_eq!(kinds("MYCHECK: a\nCHECKED: b\nCHECK-FOO: c\nCHECK{OTHER}: d\nCHECK"), []);
        assert_eq!(kinds("x.CHECK: a").len(), 1);
    }

    #[test]
    fn the_longest_prefix_wins() {
        let options = Options { check_prefixes: vec!["A".into(), "A-B".into()], ..Options::default() };
        let found = scan("A-B: x\nA: y", &options);
        assert_eq!(found[0].0, "A-B");
        assert_eq!(found[1].0, "A");
    }

    #[test]
    fn what_looks_like_a_directive_is_reported() {
        assert_eq!(kinds("CHECK_NEXT: a"), [Found::Misspelled]);
        assert_eq!(kinds("CHECK-NOT-DAG: a"), [Found::BadNot]);
        assert_eq!(kinds("CHECK-COUNT-0: a"), [Found::BadCount]);
        assert_eq!(kinds("COM: CHECK")[0], Found::Comment);
    }
}
