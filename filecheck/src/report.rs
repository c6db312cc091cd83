//! What a check found: messages for people, and marks for the input dump.

use crate::directive::Directive;
use crate::source::{Location, Message};
use std::ops::Range;

/// What a mark in the input stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A match, as demanded.
    Matched,
    /// A match of what may not match.
    Excluded,
    /// A match of `-NEXT`, `-SAME` or `-EMPTY` on the wrong line.
    WrongLine,
    /// A match of `-DAG` that overlaps an earlier one.
    Discarded,
    /// The searched text, in which there was rightly no match.
    Absent,
    /// The searched text, in which there should have been a match.
    Missing,
    /// The searched text, when the pattern could not be used.
    InvalidPattern,
    /// Where a match was perhaps intended.
    NearMiss,
}

/// One mark in the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The directive it belongs to.
    pub directive: Directive,
    /// Where that directive's pattern is.
    pub pattern: Location,
    /// What it stands for.
    pub outcome: Outcome,
    /// Bytes of the input.
    pub range: Range<usize>,
    /// More about it; empty for the mark itself.
    pub note: String,
}

/// Collects messages and marks.
#[derive(Default)]
pub(crate) struct Report {
    pub messages: Vec<Message>,
    /// `None` when there will be no dump.
    pub marks: Option<Vec<Mark>>,
}

impl Report {
    pub fn mark(&mut self, mark: Mark) {
        if let Some(marks) = &mut self.marks {
            marks.push(mark);
        }
    }

    /// Gives all marks of the directive that was marked last another outcome.
    pub fn revise_last(&mut self, outcome: Outcome) {
        let Some(marks) = &mut self.marks else {
            return;
        };
        let Some(pattern) = marks.last().map(|mark| mark.pattern) else {
            return;
        };
        let of_last = marks.iter_mut().rev().take_while(|mark| mark.pattern == pattern);
        of_last.for_each(|mark| mark.outcome = outcome);
    }
}
