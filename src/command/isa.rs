//! `ptxc check` and `ptxc isa`: questions to the instruction tables.

use std::fmt::Write as _;

use ptxc::targets::{self, Entry, PtxVersion, Target, Tok, Variant};
use ptxc::{Diagnostic, Diagnostics};

use crate::arguments::{CheckArguments, IsaArguments};
use crate::{Failure, files};

/// Checks a PTX file for a target.
pub fn check(arguments: &CheckArguments) -> Result<(), Failure> {
    let text = files::read_text(&arguments.file)?;
    let found = targets::check_module(&text, arguments.sm, arguments.max_errors);
    if found.is_empty() {
        return Ok(());
    }
    let mut diagnostics = Diagnostics::new(&files::display_name(&arguments.file), &text);
    diagnostics.list.extend(found.into_iter().map(|found| {
        let start = found.span.start as usize;
        Diagnostic::error(found.message).at(Some(start..start + found.span.len as usize))
    }));
    Err(Failure::message(diagnostics.to_string()))
}

/// Prints what the tables say about a mnemonic, whole or begun.
pub fn describe(arguments: &IsaArguments) -> Result<(), Failure> {
    let mut pieces = Vec::new();
    for piece in arguments.mnemonic.split('.').filter(|piece| !piece.is_empty()) {
        match Tok::from_text(piece) {
            Some(tok) => pieces.push(tok),
            None => return Err(unknown(&arguments.mnemonic, piece, &pieces)),
        }
    }
    let entries = targets::entries(&pieces);
    if entries.is_empty() {
        let piece = arguments.mnemonic.split('.').next().unwrap_or("");
        return Err(unknown(&arguments.mnemonic, piece, &[]));
    }
    let variants = targets::variants(&pieces);
    let mut out = String::new();
    if variants.is_empty() {
        for entry in entries {
            describe_entry(&mut out, &entry);
        }
    }
    for variant in variants {
        describe_variant(&mut out, &variant);
    }
    files::write_output(None, &out)
}

/// `piece` after the pieces `before` is not known, or the whole is no instruction.
fn unknown(mnemonic: &str, piece: &str, before: &[Tok]) -> Failure {
    let (reason, near) = match before.first() {
        None => (format!("there is no instruction `{piece}`"), targets::nearest_instructions(piece)),
        Some(_) => (format!("unknown modifier `.{piece}`"), targets::nearest_modifiers(before, piece)),
    };
    let names: Vec<String> = near.iter().map(|name| format!("`{name}`")).collect();
    let hint = if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) };
    Failure::message(format!("error: `{mnemonic}`: {reason}{hint}\n"))
}

/// Syntax, section, and what may stand in each place of the mnemonic.
fn describe_entry(out: &mut String, entry: &Entry) {
    let _ = writeln!(out, "{}  (section {})", entry.syntax, entry.section);
    for (name, pieces) in entry.choices() {
        let pieces: Vec<&str> = pieces.map(Tok::text).collect();
        let _ = writeln!(out, "  {name}: {}", pieces.join(" "));
    }
}

/// One form of a complete mnemonic: syntax, then which targets take it from which version on.
fn describe_variant(out: &mut String, variant: &Variant) {
    describe_entry(out, &variant.entry());
    let effects = variant.effects().describe();
    if !effects.is_empty() {
        let _ = writeln!(out, "  effects: {}", effects.join(", "));
    }
    let mut versions: Vec<(PtxVersion, Vec<Target>)> = Vec::new();
    for &target in Target::ALL {
        let Ok(version) = variant.requirement(target) else { continue };
        match versions.iter_mut().find(|(known, _)| *known == version) {
            Some((_, targets)) => targets.push(target),
            None => versions.push((version, vec![target])),
        }
    }
    versions.sort_by_key(|(version, _)| *version);
    for (version, targets) in versions {
        let names: Vec<&str> = targets.iter().map(|target| target.name()).collect();
        let _ = writeln!(out, "  PTX {version}: {}", names.join(" "));
    }
}
