//! Turns `isa/*.isa` and `models/*.model` into static tables.

mod classes;
mod compile;
mod emit;
mod error;
mod expression;
mod forms;
mod models;
mod operands;
mod requirement;
mod rows;
mod tokens;

use error::Error;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn main() {
    println!("cargo::rerun-if-changed=isa");
    println!("cargo::rerun-if-changed=models");
    println!("cargo::rerun-if-changed=build");
    if let Err(error) = generate() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

/// Files that are rows rather than forms.
const ROW_FILES: [&str; 3] = ["targets.isa", "special_registers.isa", "types.isa"];

/// The files of forms, `common.isa` first.
fn form_files(isa: &Path) -> Result<Vec<PathBuf>, Error> {
    let entries = isa.read_dir().map_err(|error| Error::new(isa.display().to_string(), 0, error.to_string()))?;
    let mut files: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
            name.ends_with(".isa") && !ROW_FILES.contains(&name)
        })
        .collect();
    files.sort_by_key(|path| (path.file_name().is_none_or(|name| name != "common.isa"), path.clone()));
    Ok(files)
}

fn generate() -> Result<(), Error> {
    let isa = Path::new("isa");
    let out = std::env::var("OUT_DIR").map_err(|_| Error::new("OUT_DIR", 0, "not set"))?;
    let out = Path::new(&out);
    let targets = rows::targets(&isa.join("targets.isa"))?;
    let mut requirements = requirement::Requirements::new(&targets);
    let special = rows::special(&isa.join("special_registers.isa"), &mut requirements)?;
    let types = rows::types(&isa.join("types.isa"))?;
    let type_numbers: BTreeMap<String, u16> =
        types.iter().enumerate().map(|(at, row)| (row.name.clone(), at as u16)).collect();

    let mut source = forms::Source::default();
    for file in form_files(isa)? {
        source.read(&file)?;
    }
    let tokens = pieces(&source)?;
    let mut context = compile::Context {
        source: &source,
        tokens: &tokens,
        types: &type_numbers,
        requirements: &mut requirements,
        code: vec![0],
        known_code: BTreeMap::new(),
    };
    let mut forms = Vec::new();
    for text in &source.forms {
        forms.push(context.form(text)?);
    }
    let code = context.code;

    let mut text = String::new();
    tokens.write_table(&mut text);
    tokens.write_attributes(&type_numbers, &mut text);
    rows::write_targets(&targets, &mut text);
    rows::write_special(&special, &mut text);
    rows::write_types(&types, &mut text);
    requirements.write(&mut text);
    emit::forms(&forms, &code, &tokens, &mut text);
    error::write(&out.join("tables.rs"), &text)?;
    error::write(&out.join("models.rs"), &machine_models(&targets, &tokens, &forms)?)?;
    error::write(&out.join("tok.rs"), &tokens.constants())
}

/// The tables of classes and machine models.
fn machine_models(targets: &[rows::Target], tokens: &tokens::Tokens, forms: &[compile::Form]) -> Result<String, Error> {
    let folder = Path::new("models");
    let mut heads: Vec<u16> =
        forms.iter().flat_map(|form| &form.slots[0].alternatives).map(|(piece, _)| tokens.number(piece)).collect();
    heads.sort_unstable();
    heads.dedup();
    let classes = classes::Classes::read(&folder.join("classes.model"), tokens, &heads)?;
    let mut text = String::new();
    classes.write(tokens, &mut text);
    models::Models::read(folder, targets, &classes)?.write(&mut text);
    Ok(text)
}

/// Every piece that any form or group has.
fn pieces(source: &forms::Source) -> Result<tokens::Tokens, Error> {
    let mut tokens = tokens::Tokens::default();
    for form in &source.forms {
        for slot in compile::slots(source, form)? {
            for (piece, _) in &slot.alternatives {
                tokens.add(piece);
            }
        }
    }
    Ok(tokens.finish())
}
