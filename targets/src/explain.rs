//! Says what is wrong with a mnemonic or its operands, in words.

use crate::form::{FormError, mnemonic};
use crate::matching::{self, Candidate, OperandCheck};
use crate::operands::Mismatch;
use crate::tables::{self, flag};
use crate::{Tok, tok};

/// The error for pieces that no form has together.
pub(crate) fn unmatched(toks: &[Tok]) -> FormError {
    let Some(&head) = toks.first() else {
        return FormError::UnknownInstruction(String::new());
    };
    let forms = matching::forms_of(head);
    if forms.is_empty() {
        return FormError::UnknownInstruction(head.to_string());
    }
    let known = |piece: Tok| {
        forms
            .iter()
            .any(|form| matching::slots(*form).iter().any(|slot| matching::alternatives(slot).contains(&piece.0)))
    };
    if let Some(stranger) = toks.iter().find(|piece| !known(**piece)) {
        return FormError::UnknownModifier {
            piece: stranger.to_string(),
            instruction: head.to_string(),
            hint: hint(forms, stranger.text()),
        };
    }
    let text = mnemonic(toks.iter().copied());
    FormError::Combination(match closest(forms, toks) {
        Some(Fault::Lacks(missing)) => format!("`{text}` lacks {missing}"),
        Some(Fault::Surplus(piece)) => {
            format!("`.{piece}` does not go with the other modifiers of `{text}`")
        }
        None => format!("the modifiers of `{text}` do not go together in this order"),
    })
}

/// What keeps a mnemonic from being the form that comes closest.
enum Fault {
    Lacks(String),
    Surplus(Tok),
}

/// `; did you mean …` with the nearest pieces of an instruction's forms.
pub(crate) fn hint(forms: &[u16], stranger: &str) -> String {
    let mut near: Vec<(usize, &str)> = Vec::new();
    for &form in forms {
        for slot in matching::slots(form) {
            for &piece in matching::alternatives(slot) {
                let text = Tok(piece).text();
                let distance = distance(stranger, text);
                if distance * 2 <= stranger.len().max(2) && !near.iter().any(|(_, other)| *other == text) {
                    near.push((distance, text));
                }
            }
        }
    }
    near.sort_unstable();
    near.truncate(4);
    if near.is_empty() {
        return String::new();
    }
    let names: Vec<String> = near.iter().map(|(_, text)| format!("`.{text}`")).collect();
    format!("; did you mean {}?", names.join(" or "))
}

/// The texts of the least edit distance from `text`, at most four, in alphabetical order; none where all are far.
pub(crate) fn nearest<'t>(text: &str, others: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut near: Vec<(usize, &str)> = others.map(|other| (distance(text, other), other)).collect();
    near.retain(|(distance, _)| *distance * 2 <= text.len().max(2));
    near.sort_unstable();
    let least = near.first().map_or(0, |(distance, _)| *distance);
    near.into_iter().take_while(|(distance, _)| *distance == least).take(4).map(|(_, other)| other).collect()
}

/// Edit distance of two short texts.
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (&a.as_bytes()[..a.len().min(48)], &b.as_bytes()[..b.len().min(48)]);
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.iter().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let cost = diagonal + usize::from(left != right);
            diagonal = row[j + 1];
            row[j + 1] = cost.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// What is wrong with the form that has the most of the pieces.
fn closest(forms: &[u16], toks: &[Tok]) -> Option<Fault> {
    let mut best: Option<(usize, Fault)> = None;
    for &form in forms {
        let mut left: Vec<Tok> = toks.to_vec();
        let mut missing = Vec::new();
        for slot in matching::slots(form) {
            let held = matching::alternatives(slot);
            match left.iter().position(|piece| held.contains(&piece.0)) {
                Some(at) => drop(left.remove(at)),
                None if slot.optional => {}
                None => missing.push(slot),
            }
        }
        // A modifier too many is nearer than one that lacks.
        let distance = left.len() + 2 * missing.len();
        let fault = match (left.first(), missing.is_empty()) {
            (_, false) => Fault::Lacks(missing.iter().map(|slot| values(slot)).collect::<Vec<_>>().join(" and ")),
            (Some(&piece), true) => Fault::Surplus(piece),
            (None, true) => continue,
        };
        if best.as_ref().is_none_or(|(other, _)| distance < *other) {
            best = Some((distance, fault));
        }
    }
    best.map(|(_, fault)| fault)
}

fn values(slot: &tables::SlotRow) -> String {
    let pieces = matching::alternatives(slot);
    let mut text: Vec<String> = pieces.iter().take(6).map(|piece| format!("`.{}`", Tok(*piece))).collect();
    if pieces.len() > 6 {
        text.push("…".to_owned());
    }
    text.join("/")
}

/// What the operand should have been.
pub(crate) fn mismatch(candidate: &Candidate, at: Mismatch, toks: &[Tok]) -> String {
    let text = mnemonic(toks.iter().copied());
    match candidate.checks.get(at.operand) {
        None => format!("`{text}` has too many operands"),
        Some(check) => {
            let number = 1 + candidate.checks[..at.operand]
                .iter()
                .filter(|other| other.row.flags & (flag::PAIRED | flag::INSIDE) == 0)
                .count();
            format!("operand {number} of `{text}` (`{}`) must be {}", check.row.name, wanted(check))
        }
    }
}

fn wanted(check: &OperandCheck) -> String {
    let flags = check.row.flags;
    if check.row.parts > 0 {
        return "an address".to_owned();
    }
    if flags & flag::LABEL != 0 {
        return "a label".to_owned();
    }
    if flags & flag::SYMBOL != 0 {
        return "a name".to_owned();
    }
    if flags & flag::GROUP != 0 {
        return "a list in parentheses".to_owned();
    }
    let ty = tables::TYPES.get(usize::from(check.ty)).map_or("", |row| row.container.text());
    let range = match flags & flag::RANGE {
        0 => String::new(),
        _ => {
            let (lo, hi) = (check.row.lo, check.row.hi);
            match check.row.step {
                0 => format!(" that is a power of two from {lo} to {hi}"),
                1 => format!(" from {lo} to {hi}"),
                step => format!(" from {lo} to {hi} in steps of {step}"),
            }
        }
    };
    if check.row.len != 0 && check.len != 1 {
        return format!("a vector of {} .{ty}", check.len);
    }
    if flags & flag::IMM != 0 {
        return format!("an immediate{range}");
    }
    match flags & (flag::REG | flag::OUT | flag::INOUT) {
        0 if ty != tok::PRED.text() => format!("a .{ty} register or an immediate{range}"),
        _ => format!("a .{ty} register"),
    }
}
