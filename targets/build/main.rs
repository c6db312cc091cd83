//! Turns `isa/*.isa` into static tables.

mod error;
mod requirement;
mod rows;
mod tokens;

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-changed=isa");
    println!("cargo::rerun-if-changed=build");
    if let Err(error) = generate() {
        eprintln!("{error}");
        std::process::exit(1);
    }
}

fn generate() -> Result<(), error::Error> {
    let isa = Path::new("isa");
    let out = std::env::var("OUT_DIR").map_err(|_| error::Error::new("OUT_DIR", 0, "not set"))?;
    let out = Path::new(&out);
    let targets = rows::targets(&isa.join("targets.isa"))?;
    let mut requirements = requirement::Requirements::new(&targets);
    let special = rows::special(&isa.join("special_registers.isa"), &mut requirements)?;
    let mut tokens = tokens::Tokens::default();
    for line in error::read(&isa.join("tokens.txt"))?.lines() {
        tokens.add(line);
    }
    let tokens = tokens.finish();
    let mut text = String::new();
    tokens.write_table(&mut text);
    rows::write_targets(&targets, &mut text);
    rows::write_special(&special, &mut text);
    requirements.write(&mut text);
    error::write(&out.join("tables.rs"), &text)?;
    error::write(&out.join("tok.rs"), &tokens.constants())?;
    Ok(())
}
