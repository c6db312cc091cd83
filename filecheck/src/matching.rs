//! Matches the steps of a check file against the input, region by region.

use crate::checks::{Check, Step};
use crate::directive::Kind;
use crate::near_miss;
use crate::options::Options;
use crate::pattern::{Hit, Miss};
use crate::report::{Mark, Outcome, Report};
use crate::source::{Location, Message, Severity, SourceId};
use crate::variables::Variables;
use memchr::memchr_iter;
use std::ops::Range;
use std::rc::Rc;

/// A check failed, and has been reported.
pub(crate) struct Failed;

/// Matches against one input.
pub(crate) struct Matching<'a> {
    pub options: &'a Options,
    pub input: &'a [u8],
    pub source: SourceId,
    pub variables: &'a mut Variables,
    pub report: &'a mut Report,
}

impl Matching<'_> {
    /// Runs all steps. `-LABEL` directives divide the input first; within a region, steps run until
    /// one fails, and later regions run all the same.
    pub fn run(&mut self, steps: &[Step]) -> Result<(), Failed> {
        let mut result = Ok(());
        let mut done = 0;
        let mut start = 0;
        let mut next = 0;
        loop {
            let label = (next..steps.len()).find(|index| steps[*index].is_label());
            let end = match label {
                Some(index) => {
                    let found = self.step(&steps[index], start..self.input.len(), true)?;
                    next = index + 1;
                    found.end
                }
                None => {
                    next = steps.len();
                    self.input.len()
                }
            };
            // Before the first region, variables of the command line are still to be used.
            if done != 0 && self.options.enable_var_scope {
                self.variables.clear_local();
            }
            if self.region(&steps[done..next], start..end).is_err() {
                result = Err(Failed);
            }
            done = next;
            start = end;
            if label.is_none() {
                return result;
            }
        }
    }

    fn region(&mut self, steps: &[Step], mut region: Range<usize>) -> Result<(), Failed> {
        for step in steps {
            region.start = self.step(step, region.clone(), false)?.end;
            step.release();
        }
        Ok(())
    }

    /// Matches one step in `region`; returns where its match is. When only looking for a label, what
    /// leads up to it is ignored, since variables it may use have no values yet.
    fn step(&mut self, step: &Step, region: Range<usize>, only_label: bool) -> Result<Range<usize>, Failed> {
        let mut nots = Vec::new();
        let mut from = region.start;
        if !only_label && !step.before.is_empty() {
            from = self.groups(&step.before, &region, &mut nots)?;
        }
        let pattern = &step.check.pattern;
        let mut end = from;
        let mut first = from;
        for count in 1..=pattern.directive.count {
            let found = self.expect(&step.check, end..region.end, count)?;
            if count == 1 {
                first = found.start;
            }
            end = found.end;
        }
        if !only_label {
            self.check_line(&step.check, from..first, first..end)?;
            self.exclude(&nots, from..first)?;
        }
        Ok(first..end)
    }

    /// Finds a pattern that has to be there.
    fn expect(&mut self, check: &Check, region: Range<usize>, count: u32) -> Result<Range<usize>, Failed> {
        match self.find(check, &region) {
            Ok(found) => {
                self.report_found(check, found.clone(), Outcome::Matched, count);
                Ok(found)
            }
            Err(miss) => {
                self.report_missing(check, region, miss, count);
                Err(Failed)
            }
        }
    }

    fn find(&mut self, check: &Check, region: &Range<usize>) -> Result<Range<usize>, Miss> {
        let text = &self.input[region.clone()];
        let Hit { start, length } = check.pattern.find(text, region.start, self.variables)?;
        let start = region.start + start;
        Ok(start..start + length)
    }

    /// Matches groups of `-DAG` directives and the `-NOT` directives before and between them.
    /// Returns where the last group ends; `-NOT`s after it remain in `nots`.
    fn groups<'c>(
        &mut self,
        before: &'c [Check],
        region: &Range<usize>,
        nots: &mut Vec<&'c Check>,
    ) -> Result<usize, Failed> {
        let mut start = region.start;
        let mut taken = Taken::default();
        for (index, check) in before.iter().enumerate() {
            if check.pattern.directive.kind == Kind::Not {
                nots.push(check);
                continue;
            }
            self.in_any_order(check, start..region.end, &mut taken)?;
            let next = before.get(index + 1);
            let group_ends = next.is_none_or(|next| next.pattern.directive.kind == Kind::Not);
            if !group_ends {
                continue;
            }
            let (first, last) = taken.extent();
            self.exclude(nots, start..first)?;
            nots.clear();
            start = last;
            taken = Taken::default();
        }
        Ok(start)
    }

    /// Finds a `-DAG` directive where no earlier one of its group matched.
    fn in_any_order(&mut self, check: &Check, region: Range<usize>, taken: &mut Taken) -> Result<(), Failed> {
        let mut from = region.start;
        let mut hint = 0;
        let loud = self.options.very_verbose;
        loop {
            let rest = from..region.end;
            let found = match self.find(check, &rest) {
                Ok(found) => found,
                Err(miss) => {
                    self.report_missing(check, rest, miss, 1);
                    return Err(Failed);
                }
            };
            if loud {
                self.report_found(check, found.clone(), Outcome::Matched, 1);
            }
            if self.options.allow_dag_overlap {
                taken.widen(found.clone());
            } else if let Some(earlier) = taken.insert(found.clone(), &mut hint) {
                if loud {
                    self.report_discarded(earlier.clone());
                }
                from = earlier.end;
                continue;
            }
            if !loud {
                self.report_found(check, found, Outcome::Matched, 1);
            }
            return Ok(());
        }
    }

    /// Makes sure that none of `nots` occurs; all that do are reported.
    fn exclude(&mut self, nots: &[&Check], region: Range<usize>) -> Result<(), Failed> {
        let mut result = Ok(());
        for check in nots {
            match self.find(check, &region) {
                Ok(found) => {
                    self.report_found(check, found, Outcome::Excluded, 1);
                    result = Err(Failed);
                }
                Err(miss) => {
                    if self.report_absent(check, region.clone(), miss).is_err() {
                        result = Err(Failed);
                    }
                }
            }
        }
        result
    }

    /// Makes sure that `-NEXT`, `-EMPTY` and `-SAME` matched on their line.
    fn check_line(&mut self, check: &Check, skipped: Range<usize>, found: Range<usize>) -> Result<(), Failed> {
        let kind = check.pattern.directive.kind;
        if !matches!(kind, Kind::Next | Kind::Empty | Kind::Same) {
            return Ok(());
        }
        let mut newlines = memchr_iter(b'\n', &self.input[skipped.clone()]);
        let first = newlines.next();
        let another = newlines.next();
        let (suffix, problem) = match (kind, first, another) {
            (Kind::Same, None, _) | (Kind::Next | Kind::Empty, Some(_), None) => return Ok(()),
            (Kind::Same, ..) => ("SAME", "is not on the same line as the previous match"),
            (Kind::Next, None, _) => ("NEXT", "is on the same line as previous match"),
            (Kind::Next, ..) => ("NEXT", "is not on the line after the previous match"),
            (_, None, _) => ("EMPTY", "is on the same line as previous match"),
            (..) => ("EMPTY", "is not on the line after the previous match"),
        };
        let prefix = &check.prefix;
        let message = format!("{prefix}-{suffix}: {problem}");
        self.say(Message::error(check.pattern.location, message));
        self.note(skipped.end, 0, "'next' match was here");
        self.note(skipped.start, 0, "previous match ended here");
        if let (Some(newline), true) = (first, kind != Kind::Same) {
            let message = "non-matching line after previous match is here";
            self.note(skipped.start + newline + 1, 0, message);
        }
        // With -v the match was marked as a good one.
        if self.options.verbose {
            self.report.revise_last(Outcome::WrongLine);
        } else {
            self.mark(check, found, Outcome::WrongLine, String::new());
        }
        Err(Failed)
    }

    fn at(&self, offset: usize) -> Location {
        Location { source: self.source, offset }
    }

    fn say(&mut self, message: Message) {
        self.report.messages.push(message);
    }

    fn note(&mut self, offset: usize, length: usize, text: impl Into<String>) {
        let location = self.at(offset);
        self.say(Message::note(location, length, text));
    }

    fn mark(&mut self, check: &Check, range: Range<usize>, outcome: Outcome, note: String) {
        let pattern = &check.pattern;
        let (directive, pattern) = (pattern.directive, pattern.location);
        self.report.mark(Mark { directive, pattern, outcome, range, note });
    }

    /// Tells of a match: always when it is excluded, otherwise as far as verbosity goes.
    fn report_found(&mut self, check: &Check, found: Range<usize>, outcome: Outcome, count: u32) {
        let is_error = outcome == Outcome::Excluded;
        let pattern = &check.pattern;
        if !is_error {
            let is_end = pattern.directive.kind == Kind::End;
            if !self.options.verbose || (is_end && !self.options.very_verbose) {
                return;
            }
        }
        let substitutions = pattern.describe_substitutions(self.variables);
        let captures = pattern.captures(self.variables);
        let captured = |name: &str| format!("captured var \"{name}\"");
        self.mark(check, found.clone(), outcome, String::new());
        for text in &substitutions {
            self.mark(check, found.start..found.start, outcome, text.clone());
        }
        for capture in &captures {
            self.mark(check, capture.range.clone(), outcome, captured(&capture.name));
        }
        // What goes into the dump is not said twice, unless it is an error.
        if !is_error && self.report.marks.is_some() {
            return;
        }
        let (severity, word) = match is_error {
            true => (Severity::Error, "excluded"),
            false => (Severity::Remark, "expected"),
        };
        let text = format!("{word} string found in input");
        self.say_about(check, severity, &text, count);
        self.note(found.start, found.len(), "found here");
        for text in substitutions {
            self.note(found.start, 0, text);
        }
        for capture in captures {
            self.note(capture.range.start, capture.range.len(), captured(&capture.name));
        }
    }

    fn say_about(&mut self, check: &Check, severity: Severity, text: &str, count: u32) {
        let pattern = &check.pattern;
        let mut text = format!("{}: {text}", pattern.directive.describe(&check.prefix));
        if pattern.directive.count > 1 {
            text.push_str(&format!(" ({count} out of {})", pattern.directive.count));
        }
        self.say(Message { severity, ..Message::error(pattern.location, text) });
    }

    /// Tells of a pattern that should have been found.
    fn report_missing(&mut self, check: &Check, region: Range<usize>, miss: Miss, count: u32) {
        let errors = match miss {
            Miss::NotFound => Vec::new(),
            Miss::Invalid(errors) => errors,
        };
        let is_invalid = !errors.is_empty();
        let outcome = if is_invalid { Outcome::InvalidPattern } else { Outcome::Missing };
        self.mark_search(check, &region, outcome, &errors);
        self.report.messages.extend(errors);
        if !is_invalid {
            self.say_about(check, Severity::Error, "expected string not found in input", count);
            self.note(region.start, 0, "scanning from here");
        }
        for text in check.pattern.describe_substitutions(self.variables) {
            self.note(region.start, 0, text);
        }
        let near = near_miss::find(check.pattern.example(), &self.input[region.clone()]);
        if let Some(offset) = near {
            let at = region.start + offset;
            self.mark(check, at..at, Outcome::NearMiss, String::new());
            self.note(at, 0, "possible intended match here");
        }
    }

    /// Tells of a pattern that was rightly not found, or could not be looked for.
    fn report_absent(&mut self, check: &Check, region: Range<usize>, miss: Miss) -> Result<(), Failed> {
        let errors = match miss {
            Miss::NotFound => Vec::new(),
            Miss::Invalid(errors) => errors,
        };
        let is_invalid = !errors.is_empty();
        if !is_invalid && !self.options.very_verbose {
            return Ok(());
        }
        let outcome = if is_invalid { Outcome::InvalidPattern } else { Outcome::Absent };
        self.mark_search(check, &region, outcome, &errors);
        if is_invalid || self.report.marks.is_none() {
            self.report.messages.extend(errors);
            if !is_invalid {
                self.say_about(check, Severity::Remark, "excluded string not found in input", 1);
                self.note(region.start, 0, "scanning from here");
            }
            for text in check.pattern.describe_substitutions(self.variables) {
                self.note(region.start, 0, text);
            }
        }
        if is_invalid { Err(Failed) } else { Ok(()) }
    }

    fn mark_search(&mut self, check: &Check, region: &Range<usize>, outcome: Outcome, errors: &[Message]) {
        self.mark(check, region.clone(), outcome, String::new());
        let start = region.start..region.start;
        for error in errors {
            self.mark(check, start.clone(), outcome, error.text.clone());
        }
        for text in check.pattern.describe_substitutions(self.variables) {
            self.mark(check, start.clone(), outcome, text);
        }
    }

    fn report_discarded(&mut self, earlier: Range<usize>) {
        if self.report.marks.is_some() {
            self.report.revise_last(Outcome::Discarded);
            return;
        }
        let message = "match discarded, overlaps earlier DAG match here";
        self.note(earlier.start, earlier.len(), message);
    }
}

impl Step {
    fn is_label(&self) -> bool {
        self.check.pattern.directive.kind == Kind::Label
    }

    /// Gives back memory of patterns that are not matched again: those that other steps do not have.
    fn release(&self) {
        let checks = std::iter::once(&self.check).chain(&self.before);
        let own = checks.filter(|check| Rc::strong_count(&check.pattern) == 1);
        own.for_each(|check| check.pattern.release());
    }
}

/// The matches of a group of `-DAG` directives, in the order of the input.
#[derive(Default)]
struct Taken {
    ranges: Vec<Range<usize>>,
}

impl Taken {
    /// Adds a match, or returns the earlier one that it overlaps. Matches before `hint` end before
    /// the new one begins; it moves along as one directive searches on.
    fn insert(&mut self, found: Range<usize>, hint: &mut usize) -> Option<Range<usize>> {
        let rest = &self.ranges[*hint..];
        let index = *hint + rest.partition_point(|range| range.end <= found.start);
        *hint = index;
        match self.ranges.get(index) {
            Some(range) if range.start < found.end => Some(range.clone()),
            _ => {
                self.ranges.insert(index, found);
                None
            }
        }
    }

    fn widen(&mut self, found: Range<usize>) {
        match self.ranges.first_mut() {
            Some(range) => *range = range.start.min(found.start)..range.end.max(found.end),
            None => self.ranges.push(found),
        }
    }

    /// Where the first match begins and the last one ends.
    fn extent(&self) -> (usize, usize) {
        let start = self.ranges.first().map_or(0, |range| range.start);
        let end = self.ranges.last().map_or(0, |range| range.end);
        (start, end)
    }
}
