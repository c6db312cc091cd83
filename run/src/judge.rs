//! Compares what came out of a run with what its case says, and results with each other.

use std::fmt::Write as _;
use std::ops::Range;

use ptxc_interp::float;
use ptxc_interp::launch::Buffer;
use ptxc_ir::FloatKind;

use crate::error::Error;
use crate::evaluate::Evaluator;
use crate::file::{Expect, Fill, Part, Step, Tolerance};
use crate::prepare::{Prepared, contents};
use crate::value::{Element, Value};

/// Most elements that are printed in a row.
const MOST_PRINTED: usize = 4096;

/// Something did not come out as expected.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch {
    /// What came out instead.
    pub message: String,
    /// The directive's place in the file.
    pub span: Range<usize>,
}

impl Prepared<'_> {
    /// Compares buffers with the case's `expect` and `check` directives.
    ///
    /// # Errors
    /// An expectation has no value.
    pub fn judge(&mut self, buffers: &[Buffer]) -> Result<Vec<Mismatch>, Error> {
        for (buffer, array) in buffers.iter().zip(&self.array_of) {
            if let Some(Some(array)) = self.state.arrays.get_mut(*array) {
                array.after = Some(buffer.bytes.clone());
            }
        }
        let mut out = Vec::new();
        for step in &self.case.steps {
            match step {
                Step::Expect(expect) => out.extend(self.compare(expect)?),
                Step::Check(check) if !self.evaluator().truth(&check.condition, 0)? => {
                    let message = check.message.clone().unwrap_or_else(|| "this is false".to_owned());
                    out.push(Mismatch { message, span: check.condition.body.span.clone() });
                }
                _ => {}
            }
        }
        Ok(out)
    }

    fn compare(&self, expect: &Expect) -> Result<Option<Mismatch>, Error> {
        let part = &expect.part;
        let array = self.state.arrays.get(part.array).and_then(Option::as_ref);
        let Some((array, after)) = array.and_then(|array| Some((array, array.after.as_ref()?))) else {
            return Err(Error::new("this is no buffer of a launch", part.span.clone()));
        };
        let range = self.range(part)?;
        let listed = match &expect.value {
            Fill::Each(_) => None,
            fill => {
                let bits = |closed: &_, index, element| self.evaluator().element(closed, index, element);
                Some(contents(&bits, fill, array.element, range.clone(), std::path::Path::new("."))?)
            }
        };
        let mut evaluator = self.evaluator();
        let (mut compared, mut wrong, mut first) = (0, 0, None);
        for index in range.clone() {
            if let Some(condition) = &expect.condition
                && !evaluator.truth(condition, index)?
            {
                continue;
            }
            compared += 1;
            let want = match (&listed, &expect.value) {
                (Some(bytes), _) => array.element.read(bytes, index - range.start),
                (None, Fill::Each(value)) => Some(wanted(&mut evaluator, value, index, array.element)?),
                _ => None,
            };
            let got = array.element.read(after, index);
            let (Some(want), Some(got)) = (want, got) else { continue };
            if !agrees(array.element, &got, &want, &expect.tolerances) {
                wrong += 1;
                first.get_or_insert((index, got, want));
            }
        }
        let Some((index, got, want)) = first else { return Ok(None) };
        let name = self.name(part.array);
        let mut message = format!("{name}[{index}] is {got}, expected {want}");
        if compared > 1 {
            let _ = write!(message, "; {wrong} of {compared} differ");
        }
        Ok(Some(Mismatch { message, span: part.span.clone() }))
    }

    /// Compares the buffers of two runs. Left out are buffers that the case frees or judges with a tolerance.
    pub fn differences(&self, one: &[Buffer], other: &[Buffer]) -> Vec<String> {
        let mut out = Vec::new();
        for ((a, b), array) in one.iter().zip(other).zip(&self.array_of) {
            let left_out = self.case.steps.iter().any(|step| match step {
                Step::Free(free) => free == array,
                Step::Expect(expect) => expect.part.array == *array && !expect.tolerances.is_empty(),
                _ => false,
            });
            let Some(element) = self.file.arrays.get(*array).map(|array| array.element).filter(|_| !left_out) else {
                continue;
            };
            let count = a.bytes.len() / element.size();
            let differs = |index: &usize| match (element.read(&a.bytes, *index), element.read(&b.bytes, *index)) {
                (Some(x), Some(y)) => !agrees(element, &x, &y, &[]),
                _ => true,
            };
            let mut wrong = (0..count).filter(differs);
            if let Some(index) = wrong.next() {
                let show = |bytes: &[u8]| element.read(bytes, index).map_or_else(String::new, |v| v.to_string());
                let more = wrong.count() + 1;
                out.push(format!(
                    "{}[{index}] is {} and {}; {more} of {count} differ",
                    a.name,
                    show(&a.bytes),
                    show(&b.bytes)
                ));
            }
        }
        out
    }

    /// What the case's `print` directives print, or every buffer when there is nothing that judges them.
    ///
    /// # Errors
    /// A range has no value.
    pub fn printed(&self, buffers: &[Buffer]) -> Result<String, Error> {
        let mut out = String::new();
        let judged = self.case.steps.iter().any(|step| matches!(step, Step::Expect(_) | Step::Check(_)));
        let mut printed = false;
        for step in &self.case.steps {
            if let Step::Print(part) = step {
                printed = true;
                self.print(&mut out, part.array, self.range(part)?, buffers);
            }
        }
        if !printed && !judged {
            for (buffer, array) in buffers.iter().zip(&self.array_of) {
                let size = self.file.arrays.get(*array).map_or(1, |array| array.element.size());
                self.print(&mut out, *array, 0..buffer.bytes.len() / size, buffers);
            }
        }
        Ok(out)
    }

    fn print(&self, out: &mut String, array: usize, range: Range<usize>, buffers: &[Buffer]) {
        let number = self.array_of.iter().position(|known| *known == array);
        let Some(buffer) = number.and_then(|number| buffers.get(number)) else { return };
        let Some(element) = self.file.arrays.get(array).map(|array| array.element) else { return };
        let _ = write!(out, "{}[{}..{}] =", buffer.name, range.start, range.end);
        for index in range.clone().take(MOST_PRINTED) {
            let Some(value) = element.read(&buffer.bytes, index) else { break };
            match &value {
                Value::Typed(Element::Float(_), _) => {
                    let _ = write!(out, " {}", value.real().unwrap_or(f64::NAN));
                }
                _ => {
                    let _ = write!(out, " {value}");
                }
            }
        }
        if range.len() > MOST_PRINTED {
            out.push_str(" …");
        }
        out.push('\n');
    }

    /// Places of the parts that the case prints.
    pub fn prints(&self) -> impl Iterator<Item = Range<usize>> + '_ {
        self.case.steps.iter().filter_map(|step| match step {
            Step::Print(Part { span, .. }) => Some(span.clone()),
            _ => None,
        })
    }
}

fn wanted<'a>(
    evaluator: &mut Evaluator<'a>,
    value: &'a crate::expression::Closed,
    index: usize,
    element: Element,
) -> Result<Value, Error> {
    evaluator.element(value, index, element).map(|bits| Value::Typed(element, bits))
}

/// Whether a result is what was expected. NaN agrees with NaN.
fn agrees(element: Element, got: &Value, want: &Value, tolerances: &[Tolerance]) -> bool {
    let (Value::Typed(_, a), Value::Typed(_, b)) = (got, want) else { return false };
    if a == b || element.is_nan(*a) && element.is_nan(*b) {
        return true;
    }
    let Element::Float(kind) = element else { return false };
    if element.is_nan(*a) || element.is_nan(*b) {
        return false;
    }
    let (x, y) = (got.real().unwrap_or(f64::NAN), want.real().unwrap_or(f64::NAN));
    tolerances.iter().any(|tolerance| match tolerance {
        Tolerance::Ulp(most) => order(kind, *a as u64).abs_diff(order(kind, *b as u64)) <= u128::from(*most),
        Tolerance::Relative(most) => (x - y).abs() <= most * y.abs(),
        Tolerance::Absolute(most) => (x - y).abs() <= *most,
    })
}

/// A number's place among all of its format; both zeros have the same.
fn order(kind: FloatKind, bits: u64) -> i128 {
    let sign = float::sign_bit(kind);
    let magnitude = i128::from(bits & !sign) >> float::soft::format(kind).unused;
    if sign != 0 && bits & sign != 0 { -magnitude } else { magnitude }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerances() {
        let f32_type = Element::Float(FloatKind::F32);
        let value = |x: f32| Value::Typed(f32_type, x.to_bits().into());
        let agree = |a: f32, b: f32, tolerances: &[Tolerance]| agrees(f32_type, &value(a), &value(b), tolerances);
        assert!(agree(f32::NAN, -f32::NAN, &[]));
        assert!(!agree(0.0, -0.0, &[]));
        assert!(agree(0.0, -0.0, &[Tolerance::Ulp(0)]));
        let next = f32::from_bits(1.0f32.to_bits() + 1);
        assert!(agree(1.0, next, &[Tolerance::Ulp(1)]) && !agree(1.0, next, &[Tolerance::Ulp(0)]));
        assert!(agree(1e-30, -1e-30, &[Tolerance::Ulp(1), Tolerance::Absolute(1e-20)]));
        assert!(!agree(f32::INFINITY, f32::NAN, &[Tolerance::Absolute(f64::INFINITY)]));
    }
}
