//! `targets.isa` and `special_registers.isa`: one line, one row.

use crate::error::{Error, read};
use crate::requirement::{Requirements, parse_version};
use std::fmt::Write as _;
use std::path::Path;

#[derive(Clone)]
pub struct Target {
    pub name: String,
    pub number: u16,
    pub suffix: u8,
    pub ptx: u8,
    pub family: u16,
    shared_kib: u16,
    features: Vec<String>,
}

/// Calls `row` with the words of every line that says something.
fn each_row(path: &Path, mut row: impl FnMut(&[&str]) -> Result<(), String>) -> Result<(), Error> {
    for (index, line) in read(path)?.lines().enumerate() {
        let words: Vec<&str> = line.split('#').next().unwrap_or("").split_whitespace().collect();
        if !words.is_empty() {
            row(&words).map_err(|message| Error::new(path.display().to_string(), index + 1, message))?;
        }
    }
    Ok(())
}

pub fn targets(path: &Path) -> Result<Vec<Target>, Error> {
    let mut targets = Vec::new();
    each_row(path, |words| {
        let [_, name, ptx, family, shared, features @ ..] = words else {
            return Err("expected: target NAME PTX FAMILY SHARED [FEATURE…]".to_owned());
        };
        let bare = name.trim_start_matches("sm_");
        let number = bare.trim_end_matches(['a', 'f']);
        targets.push(Target {
            name: (*name).to_owned(),
            number: number.parse().map_err(|_| format!("`{name}` has no number"))?,
            suffix: bare[number.len()..].bytes().next().unwrap_or(0),
            ptx: parse_version(ptx)?,
            family: family.parse().unwrap_or(0),
            shared_kib: shared.parse().map_err(|_| format!("`{shared}` is no size"))?,
            features: features.iter().map(|&word| word.to_owned()).collect(),
        });
        Ok(())
    })?;
    Ok(targets)
}

pub fn write_targets(targets: &[Target], out: &mut String) {
    let _ = writeln!(out, "pub(crate) static TARGETS: [TargetRow; {}] = [", targets.len());
    for target in targets {
        let has = |feature: &str| target.features.iter().any(|word| word == feature);
        let _ = writeln!(
            out,
            "TargetRow {{ name: {:?}, number: {}, suffix: {}, ptx: {}, family: {}, shared_kib: {}, cluster: {}, wide: {} }},",
            target.name,
            target.number,
            target.suffix,
            target.ptx,
            target.family,
            target.shared_kib,
            has("cluster"),
            has("wide")
        );
    }
    let _ = writeln!(out, "];");
}

pub struct Special {
    name: String,
    ty: String,
    lanes: u8,
    uniform: usize,
    volatile: bool,
    requirement: u16,
}

pub fn special(path: &Path, requirements: &mut Requirements) -> Result<Vec<Special>, Error> {
    let mut rows = Vec::new();
    each_row(path, |words| {
        let [name, ty, uniform, rest @ ..] = words else {
            return Err("expected: NAME TYPE UNIFORM …".to_owned());
        };
        let groups = ["thread", "warp", "cta", "cluster", "grid"];
        let mut requirement = String::new();
        for word in rest {
            if !matches!(*word, "since" | "on" | "volatile") {
                requirement.push(' ');
                requirement.push_str(word);
            }
        }
        let (lanes, ty) = match ty.strip_prefix("v4.") {
            Some(ty) => (4, ty),
            None => (1, *ty),
        };
        rows.push(Special {
            name: (*name).to_owned(),
            ty: ty[..1].to_uppercase() + &ty[1..],
            lanes,
            uniform: groups
                .iter()
                .position(|group| group == uniform)
                .ok_or_else(|| format!("`{uniform}` is no group of threads"))?,
            volatile: rest.contains(&"volatile"),
            requirement: requirements.intern(&requirement)?,
        });
        Ok(())
    })?;
    Ok(rows)
}

pub fn write_special(rows: &[Special], out: &mut String) {
    let _ = writeln!(out, "pub(crate) static SPECIAL: [SpecialRow; {}] = [", rows.len());
    for row in rows {
        let _ = writeln!(
            out,
            "SpecialRow {{ name: {:?}, ty: crate::RegType::{}, lanes: {}, uniform: {}, volatile: {}, requirement: {} }},",
            row.name, row.ty, row.lanes, row.uniform, row.volatile, row.requirement
        );
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| rows[a].name.cmp(&rows[b].name));
    let _ = writeln!(out, "];\npub(crate) static SPECIAL_BY_NAME: [u8; {}] = {order:?};", rows.len());
}

/// One line of `types.isa`.
pub struct Type {
    pub name: String,
    container: String,
    accepts: String,
    literals: Vec<String>,
}

pub fn types(path: &Path) -> Result<Vec<Type>, Error> {
    let mut rows = Vec::new();
    each_row(path, |words| {
        let [_, name, container, accepts, literals @ ..] = words else {
            return Err("expected: type NAME CONTAINER ACCEPTS LITERALS".to_owned());
        };
        rows.push(Type {
            name: (*name).to_owned(),
            container: container[..1].to_uppercase() + &container[1..],
            accepts: (*accepts).to_owned(),
            literals: literals.iter().map(|&word| word.to_owned()).collect(),
        });
        Ok(())
    })?;
    Ok(rows)
}

pub fn write_types(rows: &[Type], out: &mut String) {
    let _ = writeln!(out, "pub(crate) static TYPES: &[TypeRow] = &[");
    for row in rows {
        let has = |literal: &str| row.literals.iter().any(|word| word == literal);
        let _ = writeln!(
            out,
            "TypeRow {{ name: {:?}, container: crate::RegType::{}, accepts: {}, int: {}, float: {} }},",
            row.name,
            row.container,
            row.accepts.bytes().fold(0, |set, class| {
                set | b"busfhpB".iter().position(|&other| other == class).map_or(0, |bit| 1 << bit)
            }),
            has("int"),
            has("float")
        );
    }
    let _ = writeln!(out, "];");
}
