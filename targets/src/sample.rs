//! Statements made from the tables, for tests that ask the assembler about every form.

use crate::matching::{self, Binding, Candidate, EMPTY, OperandCheck, Presence};
use crate::tables::{self, flag};
use crate::{RegType, Tok};
use std::fmt::Write as _;

/// How many forms the tables have.
pub fn form_count() -> usize {
    tables::FORMS.len()
}

/// What the table says of form `index`: its syntax and its section.
pub fn form_text(index: usize) -> Option<(&'static str, &'static str)> {
    let form = tables::FORMS.get(index)?;
    Some((form.syntax, form.section))
}

/// A generator of pseudo-random numbers, the same everywhere (xorshift).
pub struct Random(u64);

impl Random {
    /// A generator that starts from `seed`.
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `limit`; 0 if that is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 33) as usize).checked_rem(limit).unwrap_or(0)
    }
}

/// The declarations that the statements of [`statement`] need: registers of every type, named
/// `%TYPE` and a number, variables, and the label `L1`, which the caller places.
pub fn declarations() -> String {
    let mut out = String::new();
    for ty in ["pred", "b8", "b16", "b32", "b64", "b128", "f16", "f16x2", "f32", "f64"] {
        let _ = writeln!(out, ".reg .{ty} %{ty}_<260>;");
    }
    out
}

/// A statement of form `index` with modifiers and operands chosen by `random`, in the
/// specification's spelling and with its `;`. `None` if none was found whose combination is allowed.
pub fn statement(index: usize, random: &mut Random) -> Option<String> {
    let form = u16::try_from(index).ok().filter(|_| index < form_count())?;
    for _ in 0..40 {
        let binding = choose(form, random);
        let toks: Vec<Tok> = binding.pieces().collect();
        let candidate = Candidate::new(form, binding);
        if candidate.forbidden.is_none() && toks.len() <= matching::MAX_PIECES {
            return Some(write(&candidate, random));
        }
    }
    None
}

fn choose(form: u16, random: &mut Random) -> Binding {
    let pieces: Vec<u16> = matching::slots(form)
        .iter()
        .map(|slot| {
            let all = matching::alternatives(slot);
            match slot.optional && random.below(5) < 3 {
                true => EMPTY,
                false => all.get(random.below(all.len())).copied().unwrap_or(EMPTY),
            }
        })
        .collect();
    Binding::from_pieces(&pieces)
}

fn write(candidate: &Candidate, random: &mut Random) -> String {
    let mut out = String::new();
    let mut unified = false;
    for piece in candidate.binding.pieces() {
        if piece.text() == "unified" {
            unified = true;
            continue;
        }
        if !out.is_empty() {
            out.push('.');
        }
        out.push_str(piece.text());
    }
    let mut writer = Writer { out, random, next: 1, first: true, open: 0, unified };
    let mut skip = 0;
    for check in &candidate.checks {
        if skip > 0 {
            skip -= 1;
            continue;
        }
        let there = match check.presence {
            Presence::Always => true,
            Presence::Never => false,
            Presence::Maybe => writer.random.below(2) == 0,
        };
        match there {
            true => writer.operand(check),
            false => skip = usize::from(check.row.parts).saturating_sub(1),
        }
    }
    writer.close();
    writer.out.push(';');
    writer.out
}

struct Writer<'a> {
    out: String,
    random: &'a mut Random,
    next: usize,
    first: bool,
    /// Parts of the open address that are still to come.
    open: u8,
    unified: bool,
}

impl Writer<'_> {
    fn close(&mut self) {
        if self.open > 0 {
            self.out.push_str(if self.unified { "].unified" } else { "]" });
            self.open = 0;
        }
    }

    fn operand(&mut self, check: &OperandCheck) {
        if check.row.flags & flag::INSIDE == 0 {
            self.close();
        }
        if check.row.flags & flag::PAIRED != 0 {
            self.out.push('|');
        } else {
            self.out.push_str(if self.first { " " } else { ", " });
        }
        self.first = false;
        if check.row.parts > 0 {
            self.open = check.row.parts;
            let ty = tables::TYPES.get(usize::from(check.ty)).map_or(RegType::B64, |row| row.container);
            let ty = if ty.bits() == 0 { RegType::B64 } else { ty };
            self.out.push('[');
            self.register(ty);
            return;
        }
        self.value(check);
    }

    fn register(&mut self, ty: RegType) {
        let name = match ty {
            RegType::U8 | RegType::S8 => "b8",
            RegType::U16 | RegType::S16 => "b16",
            RegType::U32 | RegType::S32 => "b32",
            RegType::U64 | RegType::S64 => "b64",
            RegType::Texref | RegType::Samplerref | RegType::Surfref => "b64",
            other => other.text(),
        };
        let _ = write!(self.out, "%{name}_{}", self.next % 260);
        self.next += 1;
    }

    fn value(&mut self, check: &OperandCheck) {
        let flags = check.row.flags;
        if flags & (flag::LABEL | flag::SYMBOL | flag::GROUP) != 0 {
            self.out.push_str(if flags & flag::GROUP != 0 { "()" } else { "L1" });
            return;
        }
        if flags & flag::IMM != 0 {
            let span = check.row.hi.saturating_sub(check.row.lo).clamp(0, 64) as usize;
            let at = if check.row.step > 0 { 0 } else { self.random.below(span + 1) as i64 };
            let _ = write!(self.out, "{}", check.row.lo + at);
            return;
        }
        let ty = |number: u16| tables::TYPES.get(usize::from(number)).map_or(RegType::B32, |row| row.container);
        if check.row.len == 0 || check.len == 1 && flags & flag::LIST == 0 {
            return self.register(ty(check.ty));
        }
        self.out.push('{');
        for index in 0..check.len {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.register(ty(if index == 0 { check.first } else { check.ty }));
        }
        self.out.push('}');
    }
}
