//! Compiles the rules of `rules/` and generates what they refer to: the IR's opcodes as terms, and the mnemonics they
//! quote as constants.
//!
//! A rule writes a mnemonic as a quoted string, `"mul.wide.s32"`. ISLE has no strings, so before compiling, each is
//! replaced by a constant of the same length (`$mul_wide_s32_`), which keeps line and column of ISLE's messages right.
//!
//! Every rule has a name. The compiled rules say `fired` with the rule's row of the table of names when one is applied.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

use ptxc_ir::{FloatCC, IntCC, Opcode, Shape};

fn main() {
    let rules = Path::new("rules");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=rules");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));

    let mut files: Vec<PathBuf> = fs::read_dir(rules)
        .expect("the rules folder exists")
        .map(|entry| entry.expect("the rules folder is readable").path())
        .filter(|path| path.extension().is_some_and(|e| e == "isle"))
        .collect();
    files.sort();

    let mut mnemonics = BTreeMap::new();
    let mut names = RuleNames::default();
    let mut inputs = vec![out.join("opcodes.isle"), out.join("mnemonics.isle")];
    for file in &files {
        let text = fs::read_to_string(file).expect("a rule file is UTF-8");
        names.read(file, &text);
        let target = out.join(file.file_name().expect("a rule file has a name"));
        fs::write(&target, quote_mnemonics(&text, file, &mut mnemonics)).expect("OUT_DIR is writable");
        inputs.push(target);
    }
    fs::write(&inputs[0], opcode_terms()).expect("OUT_DIR is writable");
    fs::write(&inputs[1], mnemonic_terms(&mnemonics)).expect("OUT_DIR is writable");
    fs::write(out.join("mnemonics.rs"), mnemonic_constants(&mnemonics)).expect("OUT_DIR is writable");

    fs::write(out.join("rule_names.rs"), names.table()).expect("OUT_DIR is writable");

    let options = cranelift_isle::codegen::CodegenOptions {
        exclude_global_allow_pragmas: true,
        ..cranelift_isle::codegen::CodegenOptions::default()
    };
    match cranelift_isle::compile::from_files(&inputs, &options) {
        Ok(code) => fs::write(out.join("rules.rs"), names.tell_when_fired(&code)).expect("OUT_DIR is writable"),
        Err(errors) => {
            eprintln!("{errors:?}");
            std::process::exit(1);
        }
    }
}

/// The names of the rules, in the order of files and lines.
#[derive(Default)]
struct RuleNames {
    /// Name, file and line.
    rows: Vec<(String, String, usize)>,
}

impl RuleNames {
    /// Takes the names of the rules of a file; a rule begins a line.
    fn read(&mut self, path: &Path, text: &str) {
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        for (index, line) in text.lines().enumerate() {
            let Some(rest) = line.strip_prefix("(rule") else { continue };
            let name = rest.split_whitespace().next().unwrap_or_default();
            let place = format!("rules/{file}:{}", index + 1);
            assert!(
                name.starts_with(|c: char| c.is_ascii_alphabetic()),
                "{place}: a rule has a name: `(rule mad.left 2 (lower \u{2026}) \u{2026})`"
            );
            assert!(self.rows.iter().all(|row| row.0 != name), "{place}: there is another rule `{name}`");
            self.rows.push((name.to_owned(), file.clone(), index + 1));
        }
    }

    /// The Rust side: one row each.
    fn table(&self) -> String {
        let mut out = String::from("/// The rules of `isel/rules/`.\npub(crate) static RULES: &[Rule] = &[\n");
        for (name, file, line) in &self.rows {
            writeln!(out, "    Rule {{ name: \"{name}\", file: \"rules/{file}\", line: {line} }},")
                .expect("writing to a string");
        }
        out.push_str("];\n");
        out
    }

    /// The compiled rules with a call of `fired` where one is applied. ISLE says which it is in a comment,
    /// `// Rule at FILE line N.`, and counts lines from 0.
    fn tell_when_fired(&self, code: &str) -> String {
        let mut out = String::with_capacity(code.len() + 64 * self.rows.len());
        let mut told = 0;
        for line in code.lines() {
            out.push_str(line);
            out.push('\n');
            if line.starts_with("pub trait Context {") {
                out.push_str("    fn fired(&mut self, rule: &'static Rule);\n");
            }
            let Some(place) = line.trim_start().strip_prefix("// Rule at ") else { continue };
            let Some((path, number)) = place.trim_end_matches('.').rsplit_once(" line ") else { continue };
            let Some(file) = Path::new(path).file_name() else { continue };
            let is_it = |row: &(String, String, usize)| *file == *row.1 && (row.2 - 1).to_string() == number;
            if let Some(row) = self.rows.iter().position(is_it) {
                writeln!(out, "C::fired(ctx, &RULES[{row}]);").expect("writing to a string");
                told += 1;
            }
        }
        assert!(told >= self.rows.len(), "the compiled rules name {told} of {} rules", self.rows.len());
        out
    }
}

/// Replaces every quoted mnemonic by a constant of the same length and records it.
fn quote_mnemonics(text: &str, file: &Path, found: &mut BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let code_end = line.find(';').unwrap_or(line.len());
        let (code, comment) = line.split_at(code_end);
        for (index, piece) in code.split('"').enumerate() {
            if index % 2 == 0 {
                out.push_str(piece);
                continue;
            }
            let name: String = piece.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
            let before = found.insert(format!("{name}_"), piece.to_owned());
            assert!(
                before.is_none_or(|b| b == piece),
                "{}: mnemonic \"{piece}\" cannot be told from another",
                file.display()
            );
            write!(out, "${name}_").expect("writing to a string");
        }
        out.push_str(comment);
    }
    out
}

/// The IR's opcodes and comparison codes as ISLE enums, and one extractor per opcode of a computing shape.
fn opcode_terms() -> String {
    let mut out = String::from(";; Generated from the IR's opcode table.\n");
    let variants = |out: &mut String, name: &str, list: &[String]| {
        writeln!(out, "(type {name} extern (enum {}))", list.join(" ")).expect("writing to a string");
    };
    let names: Vec<String> = Opcode::ALL.iter().map(|op| format!("{op:?}")).collect();
    variants(&mut out, "Opcode", &names);
    variants(&mut out, "IntCC", &IntCC::ALL.iter().map(|cc| format!("{cc:?}")).collect::<Vec<_>>());
    variants(&mut out, "FloatCC", &FloatCC::ALL.iter().map(|cc| format!("{cc:?}")).collect::<Vec<_>>());
    for op in Opcode::ALL {
        // `and` is a keyword of ISLE.
        let term = if *op == Opcode::And { "and_".to_owned() } else { op.text().replace('.', "_") };
        let (params, types, pattern) = match op.shape() {
            Shape::Unary | Shape::Splat => ("ty a", "Type Value", "ty _ a _ _"),
            Shape::Binary => ("ty a b", "Type Value Value", "ty _ a b _"),
            Shape::Ternary => ("ty a b c", "Type Value Value Value", "ty _ a b c"),
            Shape::Convert => ("ty from a", "Type Type Value", "ty from a _ _"),
            Shape::Select => ("ty c a b", "Type Value Value Value", "ty _ c a b"),
            Shape::IntCompare => ("cc ty a b", "IntCC Type Value Value", "(int_cc cc)"),
            Shape::FloatCompare => ("cc ty a b", "FloatCC Type Value Value", "(float_cc cc)"),
            _ => continue,
        };
        writeln!(out, "(decl {term} ({types}) Inst)").expect("writing to a string");
        let body = if pattern.starts_with('(') {
            format!("(and (node (Opcode.{op:?}) ty _ a b _) {pattern})")
        } else {
            format!("(node (Opcode.{op:?}) {pattern})")
        };
        writeln!(out, "(extractor ({term} {params}) {body})").expect("writing to a string");
    }
    out
}

fn mnemonic_terms(mnemonics: &BTreeMap<String, String>) -> String {
    let mut out = String::from(";; Generated: the mnemonics that rules quote.\n(type Mnemonic (primitive Mnemonic))\n");
    for name in mnemonics.keys() {
        writeln!(out, "(extern const ${name} Mnemonic)").expect("writing to a string");
    }
    out
}

/// The Rust side of the mnemonics: one constant each, and their pieces.
fn mnemonic_constants(mnemonics: &BTreeMap<String, String>) -> String {
    let mut out = String::from("// Generated: the mnemonics that rules quote.\n\n");
    let mut rows = String::new();
    for (index, (name, text)) in mnemonics.iter().enumerate() {
        writeln!(out, "/// `{text}`\npub const {name}: Mnemonic = Mnemonic::base({index});")
            .expect("writing to a string");
        let pieces: Vec<String> = text.split('.').map(token_constant).collect();
        writeln!(rows, "    (&[{}], {}),", pieces.join(", "), result_rule(text)).expect("writing to a string");
    }
    writeln!(out, "\n/// Pieces and result of every base.\npub static BASES: &[(&[Tok], ResultRule)] = &[\n{rows}];")
        .expect("writing to a string");
    out
}

/// The name of a mnemonic piece in `ptxc_targets::tok`.
fn token_constant(piece: &str) -> String {
    if piece == "NaN" {
        return "tok::PROPAGATE_NAN".to_owned();
    }
    let upper = piece.replace("::", "__").to_ascii_uppercase();
    let digit = upper.starts_with(|c: char| c.is_ascii_digit());
    format!("tok::{}{upper}", if digit { "_" } else { "" })
}

/// Which register an instruction of this mnemonic writes.
fn result_rule(text: &str) -> String {
    let mut pieces = text.split('.');
    let head = pieces.next().unwrap_or_default();
    let class = |ty: &str| match ty.trim_start_matches(|c: char| c.is_ascii_alphabetic()) {
        _ if ty == "pred" => Some("Pred"),
        "16" => Some("B16"),
        "32" | "16x2" => Some("B32"),
        "64" | "32x2" => Some("B64"),
        _ => None,
    };
    match head {
        "setp" | "testp" | "isspacep" => "ResultRule::Class(RegClass::Pred)".to_owned(),
        "popc" | "clz" | "bfind" => "ResultRule::Class(RegClass::B32)".to_owned(),
        _ if text.contains("wide") => match text.rsplit('.').next() {
            Some("u32" | "s32") => "ResultRule::Class(RegClass::B64)".to_owned(),
            Some("u16" | "s16") => "ResultRule::Class(RegClass::B32)".to_owned(),
            _ => panic!("\"{text}\": a wide mnemonic names its type"),
        },
        _ => match pieces.find_map(class) {
            Some(class) => format!("ResultRule::Class(RegClass::{class})"),
            None => "ResultRule::Suffix".to_owned(),
        },
    }
}
