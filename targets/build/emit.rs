//! Writes the rows of forms as flat static arrays.

use crate::compile::{Action, Form};
use crate::tokens::Tokens;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Texts by number.
#[derive(Default)]
struct Texts {
    numbers: BTreeMap<String, usize>,
    texts: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: &str) -> usize {
        if let Some(&number) = self.numbers.get(text) {
            return number;
        }
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), self.texts.len() - 1);
        self.texts.len() - 1
    }
}

pub fn forms(forms: &[Form], code: &[u16], tokens: &Tokens, out: &mut String) {
    let mut texts = Texts::default();
    let (mut rows, mut slots, mut operands, mut rules) = (String::new(), String::new(), String::new(), String::new());
    let mut pieces: Vec<u16> = Vec::new();
    let mut needs: Vec<String> = Vec::new();
    let mut counts = [0usize; 3];
    let mut by_head: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (index, form) in forms.iter().enumerate() {
        for (piece, _) in &form.slots[0].alternatives {
            by_head.entry(tokens.number(piece)).or_default().push(index);
        }
        let _ = writeln!(
            rows,
            "FormRow {{ syntax: {:?}, section: {:?}, slots: ({}, {}), operands: ({}, {}), rules: ({}, {}) }},",
            form.syntax,
            form.section,
            counts[0],
            form.slots.len(),
            counts[1],
            form.operands.len(),
            counts[2],
            form.rules.len()
        );
        counts[0] += form.slots.len();
        counts[1] += form.operands.len();
        counts[2] += form.rules.len();
        for slot in &form.slots {
            let _ = writeln!(
                slots,
                "SlotRow {{ name: {:?}, optional: {}, start: {}, len: {} }},",
                slot.name,
                slot.optional,
                pieces.len(),
                slot.alternatives.len()
            );
            for (piece, requirement) in &slot.alternatives {
                pieces.push(tokens.number(piece));
                needs.push(requirement.clone());
            }
        }
        for row in &form.operands {
            let _ = writeln!(
                operands,
                "OperandRow {{ name: {:?}, flags: {}, parts: {}, space: {}, ty: {}, len: {}, cond: {}, small: {}, first: {}, lo: {}, hi: {}, step: {} }},",
                row.name,
                row.flags,
                row.parts,
                row.space,
                row.ty,
                row.len,
                row.cond,
                row.small,
                row.first,
                row.lo,
                row.hi,
                row.step
            );
        }
        for rule in &form.rules {
            let (kind, value) = match &rule.action {
                Action::Forbid(message) => (0, texts.number(message)),
                Action::Require(number) => (1, usize::from(*number)),
                Action::Effect(bits) => (2, *bits as usize),
            };
            let _ = writeln!(
                rules,
                "RuleRow {{ kind: {kind}, value: {value}, code: {}, dynamic: {} }},",
                rule.code, rule.dynamic
            );
        }
    }
    for (name, ty, rows) in [
        ("FORMS", "FormRow", rows),
        ("SLOTS", "SlotRow", slots),
        ("OPERANDS", "OperandRow", operands),
        ("RULES", "RuleRow", rules),
    ] {
        let _ = writeln!(out, "pub(crate) static {name}: &[{ty}] = &[\n{rows}];");
    }
    let _ = writeln!(out, "pub(crate) static PIECES: &[u16] = &{pieces:?};");
    let _ = writeln!(out, "pub(crate) static PIECE_NEEDS: &[u16] = &[{}];", needs.join(","));
    let _ = writeln!(out, "pub(crate) static CODE: &[u16] = &{code:?};");
    let _ = writeln!(out, "pub(crate) static MESSAGES: &[&str] = &{:?};", texts.texts);
    heads(&by_head, tokens.len(), out);
}

/// `HEADS[piece]` is where the forms of the instruction start in `HEAD_FORMS`, and how many.
fn heads(by_head: &BTreeMap<u16, Vec<usize>>, pieces: usize, out: &mut String) {
    let mut index = vec![(0usize, 0usize); pieces];
    let mut flat: Vec<usize> = Vec::new();
    for (&head, forms) in by_head {
        index[usize::from(head)] = (flat.len(), forms.len());
        flat.extend(forms);
    }
    let _ = writeln!(out, "pub(crate) static HEADS: &[(u16, u16)] = &{index:?};");
    let _ = writeln!(out, "pub(crate) static HEAD_FORMS: &[u16] = &{flat:?};");
}
