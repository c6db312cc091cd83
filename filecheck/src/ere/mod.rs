//! POSIX extended regular expressions with leftmost-longest matching, as FileCheck patterns need them.
//!
//! Most patterns stay within a line and contain some fixed text. Those lines are found by searching for
//! that text, and a backtracking matcher with bounded work is tried on each: nothing has to be
//! compiled that is used once. When there is no such text, or the work grows, automata take over: a
//! leftmost-first engine finds where the leftmost match begins, and a second automaton, run from
//! there, how far the longest match reaches. Expressions with back-references, and captures of matches
//! that leftmost-first would have ended earlier, go back to the backtracking matcher.

mod backtrack;
mod requirements;
mod syntax;

pub use backtrack::TooComplex;
pub use syntax::SyntaxError;

use backtrack::{Captures, Machine, Program};
use memchr::memmem::Finder;
use regex_automata::{Anchored, Input, MatchKind, hybrid::dfa as lazy, meta, nfa::thompson, util::syntax as automata};
use regex_syntax::hir::{self, Hir, Look};
use requirements::Requirements;
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
    /// From the slots of a match in a text that begins at `base`.
    fn at(base: usize, slots: &Captures) -> Self {
        let slots: Captures = slots.iter().map(|slot| slot.map(|at| at + base)).collect();
        let place = |index: usize| slots.get(index).copied().flatten().unwrap_or(base);
        Self { range: place(0)..place(1), slots }
    }

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

/// Steps of the backtracking matcher before the automata are asked.
const QUICK_STEPS: u64 = 100_000;
/// Steps where there is nobody else to ask.
const STEP_LIMIT: u64 = 20_000_000;

/// A compiled expression. `^` and `$` match at line boundaries, and at the ends of the searched text.
pub struct Regex {
    root: Node,
    groups: u32,
    has_back_reference: bool,
    requirements: Requirements,
    program: OnceCell<Program>,
    automata: RefCell<Option<Box<Automata>>>,
}

/// What is compiled only when searching line by line does not do.
struct Automata {
    /// Finds where the leftmost match begins. With back-references it accepts too much, never too little.
    search: meta::Regex,
    longest: Option<(lazy::DFA, lazy::Cache)>,
}

/// How far the quick search got.
enum Quick {
    Found(Match),
    Absent,
    /// No match begins before this.
    Undecided(usize),
}

impl Regex {
    /// Parses an expression.
    ///
    /// # Errors
    /// [`SyntaxError`], which displays as POSIX describes that error.
    pub fn new(text: &[u8], ignore_case: bool) -> Result<Self, SyntaxError> {
        let parsed = syntax::parse(text, ignore_case)?;
        Ok(Self {
            requirements: Requirements::of(&parsed.root),
            root: parsed.root,
            groups: parsed.groups,
            has_back_reference: parsed.has_back_reference,
            program: OnceCell::new(),
            automata: RefCell::new(None),
        })
    }

    /// How many groups the expression has.
    pub fn group_count(&self) -> u32 {
        self.groups
    }

    /// Gives back the memory that searching took. The next search takes it again.
    pub fn release(&self) {
        self.automata.take();
    }

    /// The leftmost match, and of those the longest.
    ///
    /// # Errors
    /// [`TooComplex`] when deciding it would take more work than is reasonable, or the expression
    /// is too large to compile.
    pub fn find(&self, text: &[u8]) -> Result<Option<Match>, TooComplex> {
        match self.find_by_lines(text)? {
            Quick::Found(found) => Ok(Some(found)),
            Quick::Absent => Ok(None),
            Quick::Undecided(from) => {
                let mut automata = self.automata.borrow_mut();
                let automata = match &mut *automata {
                    Some(automata) => automata,
                    empty => empty.insert(Box::new(Automata::new(&self.root)?)),
                };
                match self.has_back_reference {
                    true => self.find_by_backtracking(automata, text, from),
                    false => self.find_by_automata(automata, text, from),
                }
            }
        }
    }

    /// Tries the lines that contain the text that every match contains.
    fn find_by_lines(&self, text: &[u8]) -> Result<Quick, TooComplex> {
        let Requirements { literal, first, within_line: true } = &self.requirements else {
            return Ok(Quick::Undecided(0));
        };
        if literal.is_empty() {
            return Ok(Quick::Undecided(0));
        }
        let finder = Finder::new(literal);
        let mut machine = Machine::new(self.program()?, QUICK_STEPS);
        let mut from = 0;
        while let Some(hit) = finder.find(&text[from..]) {
            let hit = from + hit;
            let line = memchr::memrchr(b'\n', &text[from..hit]).map_or(from, |at| from + at + 1);
            let end = memchr::memchr(b'\n', &text[hit..]).map_or(text.len(), |at| hit + at);
            // The line on its own has the same boundaries as in the text.
            let alone = &text[line..end];
            for start in 0..=alone.len() {
                if let Some(first) = first
                    && !alone.get(start).is_some_and(|byte| first.contains(*byte))
                {
                    continue;
                }
                match machine.run(alone, start, None) {
                    Ok(None) => {}
                    Ok(Some(slots)) => return Ok(Quick::Found(Match::at(line, slots))),
                    Err(TooComplex) => return Ok(Quick::Undecided(line)),
                }
            }
            from = end;
        }
        Ok(Quick::Absent)
    }

    fn find_by_automata(&self, automata: &mut Automata, text: &[u8], from: usize) -> Result<Option<Match>, TooComplex> {
        let Some(first) = automata.search.find(Input::new(text).range(from..)) else {
            return Ok(None);
        };
        let end = match search_is_exact(&self.root) {
            true => first.end(),
            false => automata.longest_end(&self.root, text, first.start())?.max(first.end()),
        };
        let range = first.start()..end;
        let slots = match self.groups {
            0 => Vec::new(),
            _ => self.captures(automata, text, &range)?,
        };
        Ok(Some(Match { range, slots }))
    }

    fn program(&self) -> Result<&Program, TooComplex> {
        if let Some(program) = self.program.get() {
            return Ok(program);
        }
        let program = Program::new(&self.root, self.groups).map_err(|_| TooComplex)?;
        Ok(self.program.get_or_init(|| program))
    }

    fn find_by_backtracking(
        &self,
        automata: &Automata,
        text: &[u8],
        mut from: usize,
    ) -> Result<Option<Match>, TooComplex> {
        let mut machine = Machine::new(self.program()?, STEP_LIMIT);
        while from <= text.len() {
            let Some(candidate) = automata.search.find(Input::new(text).range(from..)) else {
                break;
            };
            if let Some(slots) = machine.run(text, candidate.start(), None)? {
                return Ok(Some(Match::at(0, slots)));
            }
            from = candidate.start() + 1;
        }
        Ok(None)
    }

    fn captures(&self, automata: &Automata, text: &[u8], range: &Range<usize>) -> Result<Captures, TooComplex> {
        let program = self.program()?;
        let mut machine = Machine::new(program, STEP_LIMIT);
        if program.is_ambiguous()
            && let Ok(Some(found)) = machine.run(text, range.start, Some(range.end))
        {
            return Ok(found.clone());
        }
        let mut slots = vec![None; (self.groups as usize + 1) * 2];
        let input = Input::new(text).range(range.clone()).anchored(Anchored::Yes);
        automata.search.search_slots(&input, &mut slots);
        let slots: Captures = slots.into_iter().map(|slot| slot.map(|at| at.get())).collect();
        if slots.get(1).copied().flatten() == Some(range.end) {
            return Ok(slots);
        }
        let found = machine.run(text, range.start, Some(range.end))?;
        Ok(found.cloned().unwrap_or_default())
    }
}

impl Automata {
    fn new(root: &Node) -> Result<Self, TooComplex> {
        let config = meta::Regex::config().utf8_empty(false).onepass(false).dfa(false).nfa_size_limit(Some(64 << 20));
        let search = meta::Regex::builder().configure(config).build_from_hir(&to_hir(root)).map_err(|_| TooComplex)?;
        Ok(Self { search, longest: None })
    }

    /// The end of the longest match that begins at `start`, where one does begin.
    fn longest_end(&mut self, root: &Node, text: &[u8], start: usize) -> Result<usize, TooComplex> {
        let (dfa, cache) = match &mut self.longest {
            Some(longest) => longest,
            empty => empty.insert(longest_automaton(root)?),
        };
        let input = Input::new(text).range(start..).anchored(Anchored::Yes);
        match dfa.try_search_fwd(cache, &input) {
            Ok(Some(found)) => Ok(found.offset()),
            Ok(None) => Ok(start),
            Err(_) => Err(TooComplex),
        }
    }
}

fn longest_automaton(root: &Node) -> Result<(lazy::DFA, lazy::Cache), TooComplex> {
    let without_captures = thompson::Config::new().which_captures(thompson::WhichCaptures::None);
    let nfa = thompson::Compiler::new()
        .syntax(automata::Config::new().utf8(false))
        .configure(without_captures.utf8(false))
        .build_from_hir(&to_hir(root))
        .map_err(|_| TooComplex)?;
    let config = lazy::Config::new().match_kind(MatchKind::All).skip_cache_capacity_check(true);
    let dfa = lazy::DFA::builder().configure(config).build_from_nfa(nfa).map_err(|_| TooComplex)?;
    let cache = dfa.create_cache();
    Ok((dfa, cache))
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

/// The tree as the automata take it. A back-reference becomes anything at all.
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
        assert_eq!(group("(a|ab)(bc|c)", "abc", 1).unwrap(), "ab");
        assert_eq!(group("(a|ab)(bc|c)[[:space:]]*", "abc", 2).unwrap(), "c");
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
        assert_eq!(error("[a-b-c]"), SyntaxError::Range);
        assert_eq!(error("("), SyntaxError::Parentheses);
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
