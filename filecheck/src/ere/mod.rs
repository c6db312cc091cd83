//! POSIX extended regular expressions with leftmost-longest matching, as FileCheck patterns need them.
//!
//! An expression without back-references is searched by automata: a leftmost-first engine finds where
//! the leftmost match begins, and a second automaton, run from there, how far the longest match
//! reaches. Expressions with back-references, and captures of matches that leftmost-first would have
//! ended earlier, go to a backtracking matcher with bounded work.

mod backtrack;
mod syntax;

pub use backtrack::TooComplex;
pub use syntax::SyntaxError;

use backtrack::{Captures, Program};
use regex_automata::{Anchored, Input, MatchKind, hybrid::dfa as lazy, meta, nfa::thompson, util::syntax as automata};
use regex_syntax::hir::{self, Hir, Look};
use std::cell::{OnceCell, RefCell};
use std::ops::Range;
use syntax::Node;

/// A match: where it is, and where its groups are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Match {
    /// Byte range of the whole match.
    pub range: Range<usize>,
    slots: Captures,
}

impl Match {
    /// Byte range of a group, or `None` if it took no part in the match. Group 0 is the whole match.
    pub fn group(&self, number: usize) -> Option<Range<usize>> {
        if number == 0 {
            return Some(self.range.clone());
        }
        let start = self.slots.get(number * 2).copied().flatten()?;
        let end = self.slots.get(number * 2 + 1).copied().flatten()?;
        Some(start..end)
    }
}

/// A compiled expression. `^` and `$` match at line boundaries, and at the ends of the searched text.
pub struct Regex {
    root: Node,
    groups: u32,
    has_back_reference: bool,
    /// Finds where the leftmost match begins. With back-references it accepts too much, never too little.
    search: OnceCell<meta::Regex>,
    longest: OnceCell<(lazy::DFA, RefCell<lazy::Cache>)>,
    program: OnceCell<Program>,
}

impl Regex {
    /// Parses an expression.
    ///
    /// # Errors
    /// [`SyntaxError`], which displays as POSIX describes that error.
    pub fn new(text: &[u8], ignore_case: bool) -> Result<Self, SyntaxError> {
        let parsed = syntax::parse(text, ignore_case)?;
        Ok(Self {
            root: parsed.root,
            groups: parsed.groups,
            has_back_reference: parsed.has_back_reference,
            search: OnceCell::new(),
            longest: OnceCell::new(),
            program: OnceCell::new(),
        })
    }

    /// How many groups the expression has.
    pub fn group_count(&self) -> u32 {
        self.groups
    }

    /// The leftmost match, and of those the longest.
    ///
    /// # Errors
    /// [`TooComplex`] when deciding it would take more work than is reasonable, or the expression
    /// is too large to compile.
    pub fn find(&self, text: &[u8]) -> Result<Option<Match>, TooComplex> {
        let search = self.search()?;
        if self.has_back_reference {
            return self.find_by_backtracking(search, text);
        }
        let Some(first) = search.find(Input::new(text)) else {
            return Ok(None);
        };
        let properties = search_is_exact(&self.root);
        let end = match properties {
            true => first.end(),
            false => self.longest_end(text, first.start())?.max(first.end()),
        };
        let range = first.start()..end;
        let slots = match self.groups {
            0 => Vec::new(),
            _ => self.captures(search, text, &range)?,
        };
        Ok(Some(Match { range, slots }))
    }

    fn search(&self) -> Result<&meta::Regex, TooComplex> {
        if let Some(search) = self.search.get() {
            return Ok(search);
        }
        let config = meta::Regex::config().utf8_empty(false).onepass(false).dfa(false).nfa_size_limit(Some(64 << 20));
        let search =
            meta::Regex::builder().configure(config).build_from_hir(&to_hir(&self.root)).map_err(|_| TooComplex)?;
        Ok(self.search.get_or_init(|| search))
    }

    fn program(&self) -> Result<&Program, TooComplex> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let program = Program::new(&self.root, self.groups).map_err(|_| TooComplex)?;
        Ok(self.program.get_or_init(|| program))
    }

    fn find_by_backtracking(&self, search: &meta::Regex, text: &[u8]) -> Result<Option<Match>, TooComplex> {
        let program = self.program()?;
        let mut from = 0;
        while from <= text.len() {
            let Some(candidate) = search.find(Input::new(text).range(from..)) else {
                break;
            };
            let start = candidate.start();
            if let Some(slots) = program.run(text, start, None)? {
                let end = slots.get(1).copied().flatten().unwrap_or(start);
                return Ok(Some(Match { range: start..end, slots }));
            }
            from = start + 1;
        }
        Ok(None)
    }

    /// The end of the longest match that begins at `start`, where one does begin.
    fn longest_end(&self, text: &[u8], start: usize) -> Result<usize, TooComplex> {
        if self.longest.get().is_none() {
            let nfa = thompson::Compiler::new()
                .syntax(automata::Config::new().utf8(false))
                .configure(thompson::Config::new().utf8(false).which_captures(thompson::WhichCaptures::None))
                .build_from_hir(&to_hir(&self.root))
                .map_err(|_| TooComplex)?;
            let config = lazy::Config::new().match_kind(MatchKind::All).skip_cache_capacity_check(true);
            let dfa = lazy::DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| TooComplex)?;
            let cache = RefCell::new(dfa.create_cache());
            _ = self.longest.set((dfa, cache));
        }
        let Some((dfa, cache)) = self.longest.get() else {
            return Err(TooComplex);
        };
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        match dfa.try_search_fwd(&mut cache.borrow_mut(), &input) {
            Ok(Some(found)) => Ok(found.offset()),
            Ok(None) => Ok(start),
            Err(_) => Err(TooComplex),
        }
    }

    fn captures(&self, search: &meta::Regex, text: &[u8], range: &Range<usize>) -> Result<Captures, TooComplex> {
        let mut slots = vec![None; (self.groups as usize + 1) * 2];
        let input = Input::new(text).range(range.clone()).anchored(Anchored::Yes);
        search.search_slots(&input, &mut slots);
        let slots: Captures = slots.into_iter().map(|slot| slot.map(|at| at.get())).collect();
        if slots.get(1).copied().flatten() == Some(range.end) {
            return Ok(slots);
        }
        let found = self.program()?.run(text, range.start, Some(range.end))?;
        Ok(found.unwrap_or_default())
    }
}

/// Whether leftmost-first and leftmost-longest agree on every match: there is nothing to choose.
fn search_is_exact(node: &Node) -> bool {
    match node {
        Node::Alternate(_) | Node::BackReference(_) | Node::Repeat(..) => false,
        Node::Group(_, inner) => search_is_exact(inner),
        Node::Concat(parts) => {
            // A repetition of a set that is the last thing to match takes all it can either way.
            let Some((last, others)) = parts.split_last() else {
                return true;
            };
            others.iter().all(search_is_exact) && (search_is_exact(last) || is_simple_run(last))
        }
        _ => true,
    }
}

fn is_simple_run(node: &Node) -> bool {
    match node {
        Node::Repeat(inner, _, _) => matches!(**inner, Node::Byte(_) | Node::Set(_)),
        Node::Group(_, inner) => is_simple_run(inner),
        _ => false,
    }
}

/// The tree as the automata take it. A back-reference becomes anything at all: see [`Regex::search`].
fn to_hir(node: &Node) -> Hir {
    match node {
        Node::Empty => Hir::empty(),
        Node::Byte(byte) => Hir::literal([*byte]),
        Node::Set(set) => {
            let ranges = set.ranges().map(|(start, end)| hir::ClassBytesRange::new(start, end));
            Hir::class(hir::Class::Bytes(hir::ClassBytes::new(ranges)))
        }
        Node::LineStart => Hir::look(Look::StartLF),
        Node::LineEnd => Hir::look(Look::EndLF),
        Node::WordStart => Hir::look(Look::WordStartAscii),
        Node::WordEnd => Hir::look(Look::WordEndAscii),
        Node::Group(number, inner) => {
            Hir::capture(hir::Capture { index: *number, name: None, sub: Box::new(to_hir(inner)) })
        }
        Node::Concat(parts) => Hir::concat(parts.iter().map(to_hir).collect()),
        Node::Alternate(branches) => Hir::alternation(branches.iter().map(to_hir).collect()),
        Node::Repeat(inner, min, max) => {
            Hir::repetition(hir::Repetition { min: *min, max: *max, greedy: true, sub: Box::new(to_hir(inner)) })
        }
        Node::BackReference(_) => Hir::repetition(hir::Repetition {
            min: 0,
            max: None,
            greedy: true,
            sub: Box::new(Hir::dot(hir::Dot::AnyByte)),
        }),
    }
}

/// Appends `text` to `out` so that it matches itself.
pub fn escape_into(out: &mut Vec<u8>, text: &[u8]) {
    for &byte in text {
        if b"()^$|*+?.[]\\{}".contains(&byte) {
            out.push(b'\\');
        }
        out.push(byte);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(pattern: &str, text: &str) -> Option<String> {
        let regex = Regex::new(pattern.as_bytes(), false).unwrap();
        let found = regex.find(text.as_bytes()).unwrap()?;
        Some(text[found.range].to_string())
    }

    fn group(pattern: &str, text: &str, number: usize) -> Option<String> {
        let regex = Regex::new(pattern.as_bytes(), false).unwrap();
        let found = regex.find(text.as_bytes()).unwrap()?;
        Some(text[found.group(number)?].to_string())
    }

    fn error(pattern: &str) -> SyntaxError {
        Regex::new(pattern.as_bytes(), false).err().unwrap()
    }

    #[test]
    fn the_longest_alternative_wins() {
        assert_eq!(find("a|ab|abc", "xabcd").unwrap(), "abc");
        assert_eq!(find("(a|ab)(c|bcd)?", "abcd").unwrap(), "abcd");
        assert_eq!(find("x*", "aaa").unwrap(), "");
    }

    #[test]
    fn captures_follow_the_longest_match() {
        assert_eq!(group("(a|ab)(c|bcd)", "abcd", 2).unwrap(), "bcd");
        assert_eq!(group("r([0-9]+), r([0-9]+)", "add r10, r2", 1).unwrap(), "10");
        assert_eq!(group("(a)|(b)", "b", 1), None);
    }

    #[test]
    fn back_references_match_what_was_captured() {
        assert_eq!(find(r"([a-z]+) \1", "foo bar bar").unwrap(), "bar bar");
        assert_eq!(find(r"([a-z]+) \1;", "foo foo bar bar;").unwrap(), "bar bar;");
        assert_eq!(find(r"(x)\1", "x y"), None);
    }

    #[test]
    fn escapes_other_than_digits_are_literal() {
        assert_eq!(find(r"\d\.\n", "5.x d.n").unwrap(), "d.n");
        assert_eq!(find(r"[\n]+", "a\\nb").unwrap(), "\\n");
    }

    #[test]
    fn lines_bound_matches() {
        assert_eq!(find("^b.*$", "ab\nbc\nd").unwrap(), "bc");
        assert_eq!(find("a[^x]*", "ab\nc").unwrap(), "ab");
        assert_eq!(find("[[:<:]]b[[:>:]]", "ab b").unwrap(), "b");
    }

    #[test]
    fn classes_and_ranges() {
        assert_eq!(find("[[:alpha:]_]+", "12ab_c3").unwrap(), "ab_c");
        assert_eq!(find("[]a-]+", "x]-a").unwrap(), "]-a");
        assert_eq!(find("[^]]+", "]ab]").unwrap(), "ab");
    }

    #[test]
    fn ignoring_case_folds_letters_only() {
        let regex = Regex::new(b"a[b-c]Z_", true).unwrap();
        assert!(regex.find(b"ACz_").unwrap().is_some());
        assert!(regex.find(b"ACz-").unwrap().is_none());
    }

    #[test]
    fn every_error_is_named() {
        assert_eq!(error(""), SyntaxError::Empty);
        assert_eq!(error("(a|)"), SyntaxError::Empty);
        assert_eq!(error("a**"), SyntaxError::RepetitionOperand);
        assert_eq!(error("^*"), SyntaxError::RepetitionOperand);
        assert_eq!(error("a{2,1}"), SyntaxError::RepetitionCount);
        assert_eq!(error("a{256}"), SyntaxError::RepetitionCount);
        assert_eq!(error("a{2,"), SyntaxError::Braces);
        assert_eq!(error("(a"), SyntaxError::Parentheses);
        assert_eq!(error("a)"), SyntaxError::Parentheses);
        assert_eq!(error("[a"), SyntaxError::Brackets);
        assert_eq!(error("[z-a]"), SyntaxError::Range);
        assert_eq!(error("[[:nope:]]"), SyntaxError::CharacterClass);
        assert_eq!(error("\\"), SyntaxError::TrailingBackslash);
        assert_eq!(error(r"(a\1)"), SyntaxError::BackReference);
        assert_eq!(error(&"(".repeat(200)), SyntaxError::TooLarge);
    }

    #[test]
    fn loops_over_nothing_end() {
        assert_eq!(find(r"(a*)*\1b", "aab").unwrap(), "aab");
        assert_eq!(find("(a*)*", "aa").unwrap(), "aa");
    }

    #[test]
    fn hopeless_back_references_are_given_up() {
        let regex = Regex::new(br"(a*)*(a*)*(a*)*\1b\2d", false).unwrap();
        let text = format!("{}bxd", "a".repeat(200));
        assert_eq!(regex.find(text.as_bytes()), Err(TooComplex));
    }
}
