//! Prints the input with marks under its lines: what matched, what did not, and why.

use crate::options::{DumpFilter, Options};
use crate::report::{Mark, Outcome};
use crate::source::{Location, SourceId, Sources};
use std::collections::HashMap;

/// How a mark is shown.
struct Appearance {
    lead: char,
    color: &'static str,
    note: &'static str,
    is_error: bool,
}

fn appearance(outcome: Outcome) -> Appearance {
    const GREEN: &str = "0;1;32";
    const RED: &str = "0;1;31";
    const CYAN: &str = "0;1;36";
    const MAGENTA: &str = "0;1;35";
    let (lead, color, note, is_error) = match outcome {
        Outcome::Matched => ('^', GREEN, "", false),
        Outcome::Excluded => ('!', RED, "error: no match expected", true),
        Outcome::WrongLine => ('!', RED, "error: match on wrong line", true),
        Outcome::Discarded => ('!', CYAN, "discard: overlaps earlier match", false),
        Outcome::Absent => ('X', GREEN, "", false),
        Outcome::Missing => ('X', RED, "error: no match found", true),
        Outcome::InvalidPattern => ('X', RED, "error: match failed for invalid pattern", true),
        Outcome::NearMiss => ('?', MAGENTA, "possible intended match", true),
    };
    Appearance { lead, color, note, is_error }
}

/// A mark with its label and its place in lines and columns, all from 1.
struct Annotation<'a> {
    label: String,
    mark: &'a Mark,
    first_line: usize,
    first_column: usize,
    last_line: usize,
    /// The column after the last one, on the last line.
    end_column: usize,
}

impl Annotation<'_> {
    /// The last line with anything to show: a range that ends with a newline has nothing on the next.
    fn last_shown_line(&self) -> usize {
        match self.last_line > self.first_line && self.end_column == 1 {
            true => self.last_line - 1,
            false => self.last_line,
        }
    }

    /// The columns it covers on `line`, whose text takes `width` columns with its newline.
    fn columns(&self, line: usize, width: usize) -> (usize, usize) {
        let start = if line == self.first_line { self.first_column } else { 1 };
        let end = match line == self.last_line {
            // A place is shown as the character after it.
            true if line == self.first_line => self.end_column.max(start + 1),
            true => self.end_column,
            false => usize::MAX,
        };
        (start, end.min((width + 1).max(start + 1)))
    }

    fn is_selected_by(&self, filter: DumpFilter) -> bool {
        filter != DumpFilter::Error || appearance(self.mark.outcome).is_error
    }
}

/// Everything the dump is made of.
pub(crate) struct Dump<'a> {
    pub options: &'a Options,
    pub filter: DumpFilter,
    pub sources: &'a Sources,
    pub input: SourceId,
    pub check_file: SourceId,
    /// The texts of `--implicit-check-not`.
    pub implicit: &'a [SourceId],
    pub marks: &'a [Mark],
    pub color: bool,
}

impl Dump<'_> {
    /// Appends the dump to `out`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let text = self.sources.text(self.input);
        let starts = self.sources.line_starts(self.input);
        let annotations = self.annotations();
        let lines = self.line_count(text, starts, &annotations);
        let text_lines = starts.len() - usize::from(text.is_empty() || text.ends_with(b"\n"));
        let number_width = text_lines.max(1).ilog10() as usize + 1;
        let label_width = annotations.iter().map(|annotation| annotation.label.len()).max();
        let label_width = label_width.unwrap_or(0).max(number_width) + 3;
        let shown = self.shown_lines(&annotations, lines);

        out.extend_from_slice(b"Input was:\n<<<<<<\n");
        let mut sweep = Sweep::new(&annotations);
        let mut elided = Vec::new();
        let mut elided_lines = 0;
        for line in 1..=lines {
            let is_shown = shown.contains(line);
            sweep.advance(line);
            let start = starts.get(line - 1).copied().unwrap_or(text.len());
            let end = starts.get(line).copied().unwrap_or(text.len());
            if is_shown {
                end_elision(out, &mut elided, &mut elided_lines, label_width, self.color);
                self.line(out, line, &text[start..end], label_width, &sweep);
            } else {
                // An ellipsis has to be shorter than what it stands for.
                elided_lines += 1 + sweep.active.len();
                if elided_lines <= ELLIPSIS_LINES {
                    self.line(&mut elided, line, &text[start..end], label_width, &sweep);
                }
            }
        }
        end_elision(out, &mut elided, &mut elided_lines, label_width, self.color);
        out.extend_from_slice(b">>>>>>\n");
    }

    /// Lines of the input, and one more when a mark is at its end.
    fn line_count(&self, text: &[u8], starts: &[usize], annotations: &[Annotation<'_>]) -> usize {
        let lines = starts.len() - usize::from(text.is_empty() || text.ends_with(b"\n"));
        let marked = annotations.iter().map(Annotation::last_shown_line).max();
        lines.max(marked.unwrap_or(0))
    }

    fn annotations(&self) -> Vec<Annotation<'_>> {
        let mut totals: HashMap<Location, usize> = HashMap::new();
        for mark in self.marks {
            *totals.entry(mark.pattern).or_default() += 1;
        }
        let mut seen: HashMap<Location, usize> = HashMap::new();
        let mut annotations: Vec<Annotation<'_>> = Vec::with_capacity(self.marks.len());
        for mark in self.marks {
            let mut label = format!("{}:", mark.directive.abbreviation());
            if mark.pattern.source == self.check_file {
                label.push_str(&self.sources.line_and_column(mark.pattern).0.to_string());
            } else if let Some(index) = self.implicit.iter().position(|id| *id == mark.pattern.source) {
                label.push_str(&format!("imp{}", index + 1));
            }
            if totals.get(&mark.pattern).is_some_and(|total| *total > 1) {
                let count = seen.entry(mark.pattern).or_default();
                label.push_str(&format!("'{count}"));
                *count += 1;
            }
            let place = |offset| self.sources.line_and_column(Location { source: self.input, offset });
            let (first_line, first_column) = place(mark.range.start);
            let (last_line, end_column) = place(mark.range.end);
            annotations.push(Annotation { label, mark, first_line, first_column, last_line, end_column });
        }
        annotations
    }

    fn shown_lines(&self, annotations: &[Annotation<'_>], lines: usize) -> Shown {
        let mut ranges: Vec<(usize, usize)> = match self.filter {
            DumpFilter::All => vec![(1, lines)],
            DumpFilter::AnnotationFull => {
                annotations.iter().map(|annotation| (annotation.first_line, annotation.last_shown_line())).collect()
            }
            filter => annotations
                .iter()
                .filter(|annotation| annotation.is_selected_by(filter))
                .map(|annotation| (annotation.first_line, annotation.first_line))
                .collect(),
        };
        let context = self.options.dump_context;
        for (first, last) in &mut ranges {
            *first = first.saturating_sub(context);
            *last = last.saturating_add(context);
        }
        ranges.sort_unstable();
        Shown::new(ranges)
    }

    fn line(&self, out: &mut Vec<u8>, number: usize, line: &[u8], width: usize, sweep: &Sweep<'_>) {
        let color = self.color;
        paint(out, color, "0;30", format!("{number:>width$}: ").as_bytes());
        self.input_line(out, line, number, sweep);
        for annotation in &sweep.active {
            let look = appearance(annotation.mark.outcome);
            let is_first = number == annotation.first_line;
            let mut lead = if is_first { look.lead } else { '~' };
            let mut note = if is_first { look.note } else { "" };
            if !annotation.mark.note.is_empty() {
                note = if is_first { &annotation.mark.note } else { "" };
                // The place of such a note is not what it is about.
                if annotation.mark.range.is_empty() {
                    lead = ' ';
                }
            }
            let (start, end) = annotation.columns(number, line.len());
            let mut text = format!("{:<width$}  ", annotation.label);
            text.extend(std::iter::repeat_n(' ', start - 1));
            text.push(lead);
            text.extend(std::iter::repeat_n('~', (end - start).saturating_sub(1)));
            if !note.is_empty() {
                // After the line, so that it does not seem to mark anything of it.
                let column = end.max(start + 1);
                text.extend(std::iter::repeat_n(' ', (line.len() + 1).saturating_sub(column)));
                text.push(' ');
                text.push_str(note);
            }
            paint(out, color, look.color, text.as_bytes());
            out.push(b'\n');
        }
    }

    /// The text of a line, a space for its newline; in color with -v, what no directive matched stands out.
    fn input_line(&self, out: &mut Vec<u8>, line: &[u8], number: usize, sweep: &Sweep<'_>) {
        let mut text = line.to_vec();
        if let Some(last) = text.last_mut().filter(|last| **last == b'\n') {
            *last = b' ';
        }
        if !(self.color && self.options.verbose) {
            out.extend_from_slice(&text);
            out.push(b'\n');
            return;
        }
        let mut matched = vec![false; text.len()];
        let good = |annotation: &&&Annotation<'_>| annotation.mark.outcome == Outcome::Matched;
        for annotation in sweep.active.iter().filter(good) {
            let (start, end) = annotation.columns(number, line.len());
            let end = (end - 1).min(matched.len());
            if let Some(columns) = matched.get_mut(start - 1..end) {
                columns.fill(true);
            }
        }
        let mut from = 0;
        for run in matched.chunk_by(|a, b| a == b) {
            let part = &text[from..from + run.len()];
            from += run.len();
            match run.first() {
                Some(true) => out.extend_from_slice(part),
                _ => paint(out, true, "0;1;46", part),
            }
        }
        out.push(b'\n');
    }
}

const ELLIPSIS_LINES: usize = 3;

/// Writes what was left out, or dots for it.
fn end_elision(out: &mut Vec<u8>, elided: &mut Vec<u8>, lines: &mut usize, width: usize, color: bool) {
    if *lines > ELLIPSIS_LINES {
        for _ in 0..ELLIPSIS_LINES {
            paint(out, color, "0;1;30", format!("{:>width$}", '.').as_bytes());
            out.push(b'\n');
        }
    } else {
        out.extend_from_slice(elided);
    }
    elided.clear();
    *lines = 0;
}

fn paint(out: &mut Vec<u8>, enabled: bool, code: &str, text: &[u8]) {
    if enabled {
        out.extend_from_slice(format!("\x1b[{code}m").as_bytes());
    }
    out.extend_from_slice(text);
    if enabled {
        out.extend_from_slice(b"\x1b[0m");
    }
}

/// Which lines are shown: sorted ranges.
struct Shown {
    ranges: Vec<(usize, usize)>,
}

impl Shown {
    fn new(sorted: Vec<(usize, usize)>) -> Self {
        let mut ranges: Vec<(usize, usize)> = Vec::new();
        for (first, last) in sorted {
            match ranges.last_mut() {
                Some(previous) if first <= previous.1 => previous.1 = previous.1.max(last),
                _ => ranges.push((first, last)),
            }
        }
        Self { ranges }
    }

    fn contains(&self, line: usize) -> bool {
        let after = self.ranges.partition_point(|(first, _)| *first <= line);
        after.checked_sub(1).is_some_and(|index| line <= self.ranges[index].1)
    }
}

/// Walks the lines, knowing which annotations each one has.
struct Sweep<'a> {
    /// By first line, and at one line in the order they were made.
    upcoming: std::iter::Peekable<std::vec::IntoIter<(usize, &'a Annotation<'a>)>>,
    active: Vec<&'a Annotation<'a>>,
    order: Vec<usize>,
}

impl<'a> Sweep<'a> {
    fn new(annotations: &'a [Annotation<'a>]) -> Self {
        let mut upcoming: Vec<_> = annotations.iter().enumerate().collect();
        upcoming.sort_by_key(|(_, annotation)| annotation.first_line);
        Self { upcoming: upcoming.into_iter().peekable(), active: Vec::new(), order: Vec::new() }
    }

    fn advance(&mut self, line: usize) {
        let mut kept = 0;
        for index in 0..self.active.len() {
            if self.active[index].last_shown_line() >= line {
                self.active.swap(kept, index);
                self.order.swap(kept, index);
                kept += 1;
            }
        }
        self.active.truncate(kept);
        self.order.truncate(kept);
        while let Some((index, annotation)) = self.upcoming.next_if(|(_, annotation)| annotation.first_line <= line) {
            let at = self.order.partition_point(|earlier| *earlier < index);
            self.order.insert(at, index);
            self.active.insert(at, annotation);
        }
    }
}

/// What `--dump-input=help` prints.
pub const DUMP_HELP: &str = "\
The following description was requested by -dump-input=help to
explain the input dump that filecheck prints.

Options that shape it, on the command line or in FILECHECK_OPTS:

  - -dump-input=<value>          when to print it
  - -dump-input-filter=<value>   which input lines it shows
  - -dump-input-context=<N>      how many lines around those
  - -v and -vv                   good matches, and everything else, as well
  - -color                       colors, also below

What its lines mean:

  - L:     line L of the input; a space at its end stands for the newline
  - T:L    a directive of type T on line L of the check file, or, if L is
           \"imp\" and a number, that --implicit-check-not
  - T:L'N  the same, when the directive has several marks: the Nth of them
  - ^~~    a good match (with -v)
  - !~~    a bad match: on the wrong line, of something excluded, or (with
           -vv) of a CHECK-DAG that overlaps an earlier one
  - X~~    where there is no match: an error, unless there should be none
           (with -vv)
  - ?      where the match was perhaps intended
  - ...    lines left out by the filter
  - colors success, error, possible match, discarded match, unmatched input
";
