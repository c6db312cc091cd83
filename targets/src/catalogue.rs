//! The tables as a reference: what there is of an instruction, without operands in hand.

use crate::explain;
use crate::form::refusal;
use crate::matching::{self, Candidate};
use crate::{Effects, PtxVersion, Refusal, Target, Tok};

/// One form of an instruction as the tables write it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    /// The grammar of the mnemonic, then the operands.
    pub syntax: &'static str,
    /// The section of PTX ISA 9.4 that describes it.
    pub section: &'static str,
    form: u16,
}

impl Entry {
    /// The places of the mnemonic that take one of several pieces: their name in [`Entry::syntax`] and the pieces.
    pub fn choices(&self) -> impl Iterator<Item = (&'static str, impl Iterator<Item = Tok> + use<>)> + use<> {
        let slots = matching::slots(self.form).iter().filter(|slot| slot.len > 1);
        slots.map(|slot| (slot.name, matching::alternatives(slot).iter().map(|piece| Tok(*piece))))
    }
}

/// A complete mnemonic in one form.
#[derive(Clone, Debug)]
pub struct Variant {
    candidate: Candidate,
}

/// The forms of the instruction that `toks` begins with and that have all its pieces, in the tables' order.
pub fn entries(toks: &[Tok]) -> Vec<Entry> {
    let Some((head, rest)) = toks.split_first() else { return Vec::new() };
    let has = |form: u16, piece: &Tok| {
        let number = piece.index() as u16;
        matching::slots(form).iter().any(|slot| matching::alternatives(slot).contains(&number))
    };
    let forms = matching::forms_of(*head).iter().filter(|form| rest.iter().all(|piece| has(**form, piece)));
    forms.map(|form| entry(*form)).collect()
}

/// The forms that take `toks` as a complete mnemonic, in the tables' order.
pub fn variants(toks: &[Tok]) -> Vec<Variant> {
    let candidates = matching::candidates(toks).into_iter();
    candidates.filter(|candidate| candidate.forbidden.is_none()).map(|candidate| Variant { candidate }).collect()
}

/// The effects that an instruction with this mnemonic has with some operands; `None` when there is no such instruction.
pub fn possible_effects(toks: &[Tok]) -> Option<Effects> {
    matching::remembered(toks).iter().map(|candidate| candidate.effects).reduce(Effects::union)
}

/// Names of instructions that are near `text`, which is none: those of the least edit distance, at most four.
pub fn nearest_instructions(text: &str) -> Vec<&'static str> {
    let heads = (0..Tok::count()).map(|index| Tok(index as u16)).filter(|tok| !matching::forms_of(*tok).is_empty());
    explain::nearest(text, heads.map(Tok::text))
}

/// Modifiers near `text` that the instruction `before` begins has.
pub fn nearest_modifiers(before: &[Tok], text: &str) -> Vec<&'static str> {
    let forms = entries(before);
    let mut pieces: Vec<Tok> = forms
        .iter()
        .flat_map(|entry| matching::slots(entry.form))
        .flat_map(|slot| matching::alternatives(slot).iter().map(|piece| Tok(*piece)))
        .collect();
    pieces.sort_unstable();
    pieces.dedup();
    explain::nearest(text, pieces.into_iter().map(Tok::text))
}

fn entry(form: u16) -> Entry {
    let row = matching::row(form);
    Entry { syntax: row.syntax, section: row.section, form }
}

impl Variant {
    /// The form.
    pub fn entry(&self) -> Entry {
        entry(self.candidate.form)
    }

    /// The effects, as far as they do not depend on operands.
    pub fn effects(&self) -> Effects {
        self.candidate.effects
    }

    /// The lowest `.version` with which `target` takes it.
    ///
    /// # Errors
    /// The target never takes it.
    pub fn requirement(&self, target: Target) -> Result<PtxVersion, Refusal> {
        refusal(&self.candidate, target)
    }
}
