//! Every kernel is taken by `ptxas`, those of the IR after they were compiled.

use ptxc_semantics::{Case, FAMILIES, Inputs, Language, kernel};
use ptxc_test_support::{Release, parse, ptxas};

fn inputs(case: &Case) -> Inputs {
    let kinds: Vec<_> = case.sources.iter().map(|s| s.kind).collect();
    Inputs::of(&kinds)
}

#[test]
fn kernels_assemble() {
    // Found or installed once, before threads ask for it.
    ptxas(Release::Cuda13);
    let (mut variants, mut results) = (0, 0);
    let mut failures = Vec::new();
    for family in FAMILIES {
        let mut text = String::from(kernel::PTX_HEAD);
        for (index, case) in family.cases().unwrap().iter().enumerate() {
            let items = inputs(case).len();
            variants += case.variants.len();
            results += case.variants.len() * items;
            text.push_str(&kernel::text(case, &format!("case{index}"), items));
        }
        if family.language == Language::Ptx {
            failures.extend(refusals(&text).into_iter().map(|refusal| format!("{}: {refusal}", family.name)));
        }
    }
    println!("{variants} instructions, {results} results");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What `ptxas` has against a text, with the lines.
fn refusals(text: &str) -> Vec<String> {
    let outcome = parse(text, "sm_90a".parse().expect("a target")).expect("ptxas runs");
    if outcome.cubin.is_some() {
        return Vec::new();
    }
    let lines: Vec<&str> = text.lines().collect();
    let line = |message: &str| {
        let number = message.split("line ").nth(1)?.split(';').next()?.parse::<usize>().ok()?;
        lines.get(number.checked_sub(1)?).copied()
    };
    let messages = outcome.messages.lines().take(8);
    messages.map(|message| format!("{message}: {}", line(message).unwrap_or_default().trim())).collect()
}

#[test]
fn operations_compile() {
    for family in FAMILIES.iter().filter(|family| family.language == Language::Ir) {
        for case in family.cases().unwrap() {
            let text = kernel::text(&case, "instruction", inputs(&case).len());
            let options = ptxc::Options::new("sm_90a".parse().unwrap());
            let output = ptxc::compile_text(family.name, &text, &options);
            let output = output.unwrap_or_else(|errors| panic!("line {}: {errors}\n{text}", case.line));
            let refused = refusals(&output.text);
            assert!(refused.is_empty(), "line {}: {}", case.line, refused.join("\n"));
        }
    }
}
