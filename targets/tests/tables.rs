//! What must hold for every form of the tables.

#![allow(clippy::unwrap_used)]

use ptxc_targets::{
    Checker, Declarations, Diagnostic, Effects, OpcodeTable, PtxVersion, Sink, Statement, Symbol, Target, Tok,
    check_module, sample, walk_module,
};

/// Statements of every form, `count` of each.
fn samples(seed: u64, count: usize) -> impl Iterator<Item = (usize, String)> {
    let mut random = sample::Random::new(seed);
    (0..sample::form_count()).flat_map(move |form| {
        let of_form: Vec<String> = (0..count).filter_map(|_| sample::statement(form, &mut random)).collect();
        assert!(!of_form.is_empty(), "no combination is allowed: {:?}", sample::form_text(form));
        of_form.into_iter().map(move |statement| (form, statement))
    })
}

/// Names as [`sample::declarations`] declares them.
struct Names<F: FnMut(&Statement, &Declarations)>(F);

impl<F: FnMut(&Statement, &Declarations)> Sink for Names<F> {
    fn statement(&mut self, statement: &Statement, declarations: &Declarations) {
        (self.0)(statement, declarations);
    }

    fn error(&mut self, diagnostic: Diagnostic) -> bool {
        panic!("{diagnostic}");
    }
}

/// Reads `statement` in a body with the declarations of samples.
fn read(statement: &str, mut found: impl FnMut(&Statement, &Declarations)) {
    let text = format!(".func F();\n.visible .entry k() {{ {}\n{{ {statement} }}\nL1: ret; }}", sample::declarations());
    let mut first = true;
    walk_module(
        &text,
        &mut Names(|statement: &Statement, declarations: &Declarations| {
            if std::mem::take(&mut first) {
                found(statement, declarations);
            }
        }),
    );
}

fn checker() -> Checker {
    Checker::new(Target::ALL[0], PtxVersion::MAX)
}

#[test]
fn every_sync_is_convergent() {
    let mut checker = checker();
    let mut seen = 0;
    for (form, statement) in samples(1, 2) {
        read(&statement, |statement, declarations| {
            let toks = statement.toks().unwrap();
            if toks.iter().any(|piece| piece.text() == "sync")
                && let Ok(found) = checker.form(statement, declarations)
            {
                seen += 1;
                assert!(found.effects().contains(Effects::CONVERGENT), "{:?}", sample::form_text(form));
            }
        });
    }
    assert!(seen > 200);
}

#[test]
fn barriers_and_stores_have_effects() {
    let mut checker = checker();
    for (_, statement) in samples(2, 1) {
        read(&statement, |statement, declarations| {
            let Ok(form) = checker.form(statement, declarations) else { return };
            let has_result = form.operands().iter().any(|operand| operand.role == ptxc_targets::Role::Dest);
            assert!(has_result || !form.effects().is_pure(), "no result and no effect: {}", statement.mnemonic);
        });
    }
}

#[test]
fn samples_are_forms_of_their_own_table() {
    let mut checker = checker();
    let (mut good, mut all) = (0, 0);
    for (_, statement) in samples(3, 4) {
        all += 1;
        read(&statement, |statement, declarations| {
            good += usize::from(checker.versions(statement, declarations).is_ok());
        });
    }
    // The rest breaks a rule about operands, which samples do not know.
    assert!(good * 100 > all * 97, "{good} of {all}");
}

#[test]
fn the_printer_writes_the_specifications_order() {
    let mut random = sample::Random::new(4);
    for (_, text) in samples(5, 1) {
        let statement = Statement::parse(&text).unwrap();
        let printed = statement.print();
        assert_eq!(Statement::parse(&printed).unwrap().print(), printed);
        let mut pieces: Vec<&str> = statement.mnemonic.split('.').collect();
        if pieces.len() > 3 {
            let at = 1 + random.below(pieces.len() - 2);
            pieces.swap(at, at + 1);
            let swapped: Vec<Tok> = pieces.iter().filter_map(|piece| Tok::from_text(piece)).collect();
            let mut table = OpcodeTable::new();
            let opcode = table.intern(&swapped);
            let again: Vec<Tok> = table.toks(opcode).to_vec();
            assert_eq!(table.intern(&again), opcode, "{text}");
        }
    }
}

#[test]
fn mutated_text_is_refused_without_a_panic() {
    let target: Target = "sm_100a".parse().unwrap();
    let mut random = sample::Random::new(6);
    let pool: Vec<String> = samples(7, 1).map(|(_, statement)| statement).collect();
    let junk = b"%.;,[]{}()|!_-+@\"/*:0x9fL\n";
    for _ in 0..20_000 {
        let mut bytes = pool[random.below(pool.len())].clone().into_bytes();
        for _ in 0..1 + random.below(4) {
            let at = random.below(bytes.len());
            match random.below(3) {
                0 => bytes[at] = junk[random.below(junk.len())],
                1 => drop(bytes.remove(at)),
                _ => bytes.insert(at, junk[random.below(junk.len())]),
            }
            if bytes.is_empty() {
                break;
            }
        }
        let text = String::from_utf8(bytes).unwrap();
        let _ = Statement::parse(&text);
        let module = format!(".version 9.4\n.visible .entry k() {{ {} {text} L1: ret; }}", sample::declarations());
        let _ = check_module(&module, target, 8);
    }
}

#[test]
fn families_and_suffixes_decide() {
    let mut checker = checker();
    let mut names = Declarations::new();
    names.declare_range("%r", 64, Symbol::Register(ptxc_targets::RegType::B32));
    names.declare_range("%rd", 8, Symbol::Register(ptxc_targets::RegType::B64));
    let mut takes = |text: &str, target: &str| {
        let statement = Statement::parse(text).unwrap();
        let target: Target = target.parse().unwrap();
        checker.versions(&statement, &names).unwrap()[target.index()].map(|version| version.to_string())
    };
    let load = "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, %r2}, [%r3];";
    assert_eq!(takes(load, "sm_100a").as_deref(), Some("8.6"));
    assert_eq!(takes(load, "sm_103f").as_deref(), Some("8.8"));
    assert_eq!(takes(load, "sm_100"), None);
    assert_eq!(takes(load, "sm_120a"), None);
    assert_eq!(takes("wgmma.wait_group.sync.aligned 0;", "sm_90a").as_deref(), Some("8.0"));
    assert_eq!(takes("wgmma.wait_group.sync.aligned 0;", "sm_100a"), None);
    assert_eq!(takes("add.u32 %r1, %r2, 1;", "sm_50").as_deref(), Some("6.3"));
}

#[test]
fn errors_name_what_is_wrong() {
    let mut checker = Checker::new("sm_90".parse().unwrap(), "8.0".parse().unwrap());
    let mut names = Declarations::new();
    names.declare_range("%r", 64, Symbol::Register(ptxc_targets::RegType::B32));
    names.declare_range("%f", 8, Symbol::Register(ptxc_targets::RegType::F32));
    let mut message = |text: &str| {
        let statement = Statement::parse(text).unwrap();
        checker.check(&statement, &names).unwrap_err().message
    };
    assert_eq!(message("add.rnn.f32 %f1, %f2, %f3;"), "unknown modifier `.rnn` of `add`; did you mean `.rn`?");
    assert_eq!(message("addd.f32 %f1, %f2, %f3;"), "unknown instruction `addd`");
    assert_eq!(message("fma.f32 %f1, %f2, %f3, %f4;"), "`fma.f32` lacks `.rn`/`.rz`/`.rm`/`.rp`");
    assert_eq!(message("add.ftz.s32 %r1, %r2, %r3;"), "`.ftz` does not go with the other modifiers of `add.ftz.s32`");
    assert_eq!(
        message("add.s32 %r1, %f2, %r3;"),
        "operand 2 of `add.s32` (`a`) must be a .s32 register or an immediate"
    );
    assert_eq!(message("setp.lo.s32 %r1, %r2, %r3;"), "operand 1 of `setp.lo.s32` (`p`) must be a .pred register");
    assert_eq!(message("add.u8x4 %r1, %r2, %r3;"), "`add.u8x4` needs PTX 9.2 on sm_107f, sm_120f, target is sm_90");
}

#[test]
fn a_module_as_compilers_write_it_is_taken() {
    let text = include_str!("modules/compiled.ptx");
    let found: Vec<String> = check_module(text, "sm_80".parse().unwrap(), 0)
        .iter()
        .map(|one| format!("{}: {}", ptxc_targets::line_and_column(text, one.span.start).0, one.message))
        .collect();
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn mutated_modules_are_read_without_a_panic() {
    let target: Target = "sm_80".parse().unwrap();
    let original = include_bytes!("modules/compiled.ptx");
    let mut random = sample::Random::new(8);
    let junk = b"{}();:,.[]<>\"@%_/*=0L \n";
    for _ in 0..1500 {
        let mut bytes = original.to_vec();
        for _ in 0..1 + random.below(6) {
            let at = random.below(bytes.len());
            match random.below(4) {
                0 => bytes[at] = junk[random.below(junk.len())],
                1 => drop(bytes.remove(at)),
                2 => bytes.truncate(at.max(40)),
                _ => bytes.insert(at, junk[random.below(junk.len())]),
            }
        }
        let text = String::from_utf8_lossy(&bytes);
        let limited = check_module(&text, target, 3);
        assert!(limited.len() <= 3);
        let _ = check_module(&text, target, 0);
    }
}
