//! Whatever is thrown at it, a check ends without a panic and says something if it does not pass.

use filecheck::{Checker, Options, Status};
use proptest::prelude::*;

/// Pieces that patterns are made of, sound and broken.
fn piece() -> impl Strategy<Value = String> {
    let pieces = [
        "foo",
        "r1",
        " ",
        "{{",
        "}}",
        "[[",
        "]]",
        "[[#",
        "[[A:",
        "[[A]]",
        "[[#N:]]",
        "[[#N+1]]",
        "{{.*}}",
        "{{(a|b)*}}",
        "(",
        ")",
        "\\",
        "*",
        "[",
        "]",
        "%x,",
        "@LINE",
        "+",
        "9999999999999999999999",
        "add(",
        ",",
        ":",
        "==",
        "\u{e9}",
        "\t",
    ];
    prop::sample::select(pieces.to_vec()).prop_map(str::to_string)
}

fn directive() -> impl Strategy<Value = String> {
    let suffixes = [
        "",
        "",
        "-NEXT",
        "-SAME",
        "-NOT",
        "-DAG",
        "-LABEL",
        "-EMPTY",
        "-COUNT-2",
        "-COUNT-",
        "{LITERAL}",
        "_NEXT",
        "-NOT-DAG",
    ];
    let suffix = prop::sample::select(suffixes.to_vec());
    (suffix, prop::collection::vec(piece(), 0..6))
        .prop_map(|(suffix, pieces)| format!("CHECK{suffix}: {}", pieces.concat()))
}

fn options() -> impl Strategy<Value = Options> {
    any::<[bool; 6]>().prop_map(|[full, strict, case, scope, verbose, overlap]| Options {
        match_full_lines: full,
        strict_whitespace: strict,
        ignore_case: case,
        enable_var_scope: scope,
        very_verbose: verbose,
        allow_dag_overlap: overlap,
        ..Options::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_check_file_is_handled(
        directives in prop::collection::vec(directive(), 1..6),
        lines in prop::collection::vec(prop::collection::vec(piece(), 0..4), 0..6),
        options in options(),
    ) {
        let lines: Vec<String> = lines.into_iter().map(|pieces| pieces.concat()).collect();
        let result = Checker::new(options).check("check", directives.join("\n"), "input", lines.join("\n"));
        let text = result.render(true);
        prop_assert!(matches!(result.status, Status::Passed | Status::EmptyInput) || !text.is_empty());
    }

    #[test]
    fn any_bytes_are_handled(check in prop::collection::vec(any::<u8>(), 0..80), input in prop::collection::vec(any::<u8>(), 1..80)) {
        let check = [b"CHECK: ".as_slice(), &check].concat();
        let result = Checker::new(Options::default()).check("check", check, "input", input);
        result.render(false);
    }
}
