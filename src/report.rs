//! What a compilation tells about itself: time per step, counts.

use std::fmt;
use std::ops::Range;
use std::time::Duration;

/// A rule that a step applied, or what scheduling did with a block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Remark {
    /// The step: a pass, `select` or `schedule`.
    pub step: &'static str,
    /// The rule, or what became of the block.
    pub rule: &'static str,
    /// The function.
    pub function: String,
    /// Figures of a block: cycles and registers before and afterwards.
    pub detail: Option<String>,
    /// Where the block came from, as `file:line:column`, when the source says so.
    pub origin: Option<String>,
    /// The instruction it was applied to, as byte offsets into the source text; none for one that a step made.
    pub span: Option<Range<usize>>,
}

/// Times and counts of one compilation.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Wall time of each step, in order of execution; verification between steps is a step of its own.
    pub times: Vec<(&'static str, Duration)>,
    /// Named counts, in order.
    pub counts: Vec<(&'static str, u64)>,
}

impl Report {
    /// Adds the time of a step.
    pub fn time(&mut self, step: &'static str, duration: Duration) {
        self.times.push((step, duration));
    }

    /// Adds to a count.
    pub fn count(&mut self, name: &'static str, number: u64) {
        match self.counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, total)) => *total += number,
            None => self.counts.push((name, number)),
        }
    }

    /// Raises a count to at least this.
    pub fn most(&mut self, name: &'static str, number: u64) {
        match self.counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, most)) => *most = number.max(*most),
            None => self.counts.push((name, number)),
        }
    }

    /// Time of all steps together.
    pub fn total(&self) -> Duration {
        self.times.iter().map(|(_, time)| *time).sum()
    }

    /// Table of times, for people.
    pub fn times_table(&self) -> impl fmt::Display + '_ {
        Times(self)
    }

    /// Table of counts, for people.
    pub fn counts_table(&self) -> impl fmt::Display + '_ {
        Counts(self)
    }
}

struct Times<'a>(&'a Report);

impl fmt::Display for Times<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let total = self.0.total();
        let share = |time: Duration| 100.0 * time.as_secs_f64() / total.as_secs_f64().max(f64::MIN_POSITIVE);
        writeln!(f, "{:>12} {:>7}  step", "time (us)", "share")?;
        for (step, time) in &self.0.times {
            writeln!(f, "{:>12.1} {:>6.1}%  {step}", time.as_secs_f64() * 1e6, share(*time))?;
        }
        writeln!(f, "{:>12.1} {:>6.1}%  total", total.as_secs_f64() * 1e6, 100.0)
    }
}

struct Counts<'a>(&'a Report);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.counts.iter().try_for_each(|(name, number)| writeln!(f, "{number:>12}  {name}"))
    }
}
