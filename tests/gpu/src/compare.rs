//! Comparison of what a kernel computed with the reference.

use std::fmt;

/// How well a result agrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Agreement {
    /// Every element is the reference, bit for bit.
    Exact,
    /// The largest deviation found, on the scale that the test defines.
    Within(f64),
}

impl fmt::Display for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Agreement::Exact => write!(f, "exact"),
            Agreement::Within(worst) => write!(f, "max error {worst:.1e}"),
        }
    }
}

/// Requires every element to be equal. The message names the first that is not.
pub fn exact<T: Copy + PartialEq + fmt::Debug>(got: &[T], want: &[T]) -> Result<Agreement, String> {
    if got.len() != want.len() {
        return Err(format!("{} elements instead of {}", got.len(), want.len()));
    }
    let wrong = got.iter().zip(want).filter(|(g, w)| g != w).count();
    match got.iter().zip(want).position(|(g, w)| g != w) {
        None => Ok(Agreement::Exact),
        Some(at) => {
            Err(format!("{wrong} of {} differ, the first at {at}: {:?} instead of {:?}", got.len(), got[at], want[at]))
        }
    }
}

/// Requires `|got - want| / max(|want|, scale) <= limit` for every element.
pub fn close(got: &[f32], want: &[f64], scale: f64, limit: f64) -> Result<Agreement, String> {
    if got.len() != want.len() {
        return Err(format!("{} elements instead of {}", got.len(), want.len()));
    }
    let mut worst = 0.0f64;
    let mut first = None;
    let mut wrong = 0;
    for (at, (&g, &w)) in got.iter().zip(want).enumerate() {
        let error = (f64::from(g) - w).abs() / w.abs().max(scale);
        // A NaN on either side makes the error NaN, which is wrong too.
        if error > limit || error.is_nan() {
            wrong += 1;
            first.get_or_insert(at);
        }
        worst = worst.max(error);
    }
    match first {
        None => Ok(Agreement::Within(worst)),
        Some(at) => Err(format!(
            "{wrong} of {} beyond {limit:.0e} (worst {worst:.1e}), the first at {at}: {} instead of {}",
            got.len(),
            got[at],
            want[at]
        )),
    }
}

/// The weaker of two agreements.
pub fn both(a: Agreement, b: Agreement) -> Agreement {
    match (a, b) {
        (Agreement::Exact, other) | (other, Agreement::Exact) => other,
        (Agreement::Within(x), Agreement::Within(y)) => Agreement::Within(x.max(y)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_never_close() {
        assert!(close(&[f32::NAN], &[0.0], 1.0, 1.0).is_err());
        assert!(close(&[0.0], &[f64::NAN], 1.0, 1.0).is_err());
    }

    #[test]
    fn deviations_are_relative_above_the_scale() {
        assert_eq!(close(&[101.0], &[100.0], 1.0, 0.1), Ok(Agreement::Within(0.01)));
        assert!(close(&[101.0], &[100.0], 1.0, 0.001).is_err());
    }

    #[test]
    fn exact_names_the_first_difference() {
        assert_eq!(exact(&[1, 2, 3], &[1, 2, 3]), Ok(Agreement::Exact));
        let message = exact(&[1, 2, 4, 5], &[1, 2, 3, 4]).unwrap_err();
        assert_eq!(message, "2 of 4 differ, the first at 2: 4 instead of 3");
    }
}
