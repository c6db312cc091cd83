//! What each directive accepts, and what is said when it does not.

use filecheck::{CheckResult, Checker, Definition, DumpInput, Options, Status};

fn check_with(options: Options, check: &str, input: &str) -> CheckResult {
    let options = Options { dump_input: DumpInput::Never, ..options };
    Checker::new(options).check("check", check, "input", input)
}

fn check(check: &str, input: &str) -> CheckResult {
    check_with(Options::default(), check, input)
}

fn said(result: &CheckResult) -> String {
    String::from_utf8_lossy(&result.render(false)).into_owned()
}

#[track_caller]
fn passes(directives: &str, input: &str) {
    let result = check(directives, input);
    assert!(result.passed(), "{}", said(&result));
}

/// Asserts that a check fails, and what its first message says.
#[track_caller]
fn fails(directives: &str, input: &str, message: &str) {
    let result = check(directives, input);
    assert_eq!(result.status, Status::Failed, "{}", said(&result));
    assert_eq!(result.messages[0].text, message);
}

/// Asserts that a check file is refused, where, and why.
#[track_caller]
fn refused(directives: &str, message: &str) {
    let result = check(directives, "x\n");
    assert_eq!(result.status, Status::Invalid);
    assert!(said(&result).starts_with(message), "{}", said(&result));
}

#[test]
fn plain_directives_match_in_order() {
    passes("CHECK: a\nCHECK: b\n", "xa\nyb\n");
    passes("CHECK: a\nCHECK: a\n", "a a\n");
    fails("CHECK: b\nCHECK: a\n", "a\nb\n", "CHECK: expected string not found in input");
}

#[test]
fn next_and_same_bind_to_lines() {
    passes("CHECK: a\nCHECK-SAME: b\nCHECK-NEXT: c\n", "a b\nc\n");
    fails("CHECK: a\nCHECK-NEXT: c\n", "a\nb\nc\n", "CHECK-NEXT: is not on the line after the previous match");
    fails("CHECK: a\nCHECK-NEXT: c\n", "a c\n", "CHECK-NEXT: is on the same line as previous match");
    fails("CHECK: a\nCHECK-SAME: b\n", "a\nb\n", "CHECK-SAME: is not on the same line as the previous match");
    refused("CHECK-NEXT: a\n", "check:1:1: error: found 'CHECK-NEXT' without previous 'CHECK: line");
}

#[test]
fn empty_lines_are_empty() {
    passes("CHECK: a\nCHECK-EMPTY:\nCHECK-NEXT: b\n", "a\n\nb\n");
    passes("CHECK: a\nCHECK-EMPTY:\n", "a\n\n");
    fails("CHECK: a\nCHECK-EMPTY:\n", "a\nb\n\n", "CHECK-EMPTY: is not on the line after the previous match");
    refused("CHECK: a\nCHECK-EMPTY: b\n", "check:2:14: error: found non-empty check string for empty check");
}

#[test]
fn nots_hold_between_matches() {
    passes("CHECK: a\nCHECK-NOT: x\nCHECK: b\n", "x a b x\n");
    fails("CHECK: a\nCHECK-NOT: x\nCHECK: b\n", "a x b\n", "CHECK-NOT: excluded string found in input");
    fails("CHECK: a\nCHECK-NOT: x\n", "a b x\n", "CHECK-NOT: excluded string found in input");
    passes("CHECK-NOT: x\nCHECK: a\n", "a x\n");
}

#[test]
fn dags_match_in_any_order_without_overlap() {
    passes("CHECK-DAG: b\nCHECK-DAG: a\nCHECK: c\n", "a b c\n");
    fails("CHECK-DAG: ab\nCHECK-DAG: b\n", "ab\n", "CHECK-DAG: expected string not found in input");
    let overlap = Options { allow_dag_overlap: true, ..Options::default() };
    assert!(check_with(overlap, "CHECK-DAG: ab\nCHECK-DAG: b\n", "ab\n").passed());
    // A -NOT ends a group, and what follows it comes after the group.
    fails("CHECK-DAG: a\nCHECK-NOT: x\nCHECK-DAG: b\n", "b a\n", "CHECK-DAG: expected string not found in input");
}

#[test]
fn labels_divide_the_input() {
    let directives = "CHECK-LABEL: f:\nCHECK: a\nCHECK-LABEL: g:\nCHECK: b\n";
    passes(directives, "f:\na\ng:\nb\n");
    // The 'a' after the second label does not count, and the second part is checked all the same.
    let result = check(directives, "f:\ng:\na\n");
    let errors: Vec<_> = result.messages.iter().filter(|message| message.text.contains("expected")).collect();
    assert_eq!(errors.len(), 2);
    refused("CHECK-LABEL: [[V:a]]\n", "check:1:1: error: found 'CHECK-LABEL:' with variable definition or use");
}

#[test]
fn counts_repeat() {
    passes("CHECK-COUNT-3: a\nCHECK: b\n", "a a\na b\n");
    fails("CHECK-COUNT-3: a\n", "a\na\n", "CHECK-COUNT: expected string not found in input (3 out of 3)");
    refused("CHECK-COUNT-x: a\n", "check:1:13: error: invalid count in -COUNT specification on prefix 'CHECK'");
}

#[test]
fn literal_patterns_are_literal() {
    passes("CHECK{LITERAL}: a{{b}}[[c]]\n", "a{{b}}[[c]]\n");
    fails("CHECK{LITERAL}: {{.}}\n", "a\n", "CHECK{LITERAL}: expected string not found in input");
}

#[test]
fn string_variables_are_set_and_used() {
    passes("CHECK: def [[R:r[0-9]+]]\nCHECK: use [[R]]{{$}}\n", "def r12\nuse r1\nuse r12\n");
    passes("CHECK: [[R:r[0-9]+]], [[R]];\n", "r1, r2;\nr3, r3;\n");
    fails("CHECK: use [[R]]\n", "use r1\n", "undefined variable: R");
    // Redefinition takes the newest value; special characters stand for themselves.
    passes("CHECK: a=[[V:.*]]\nCHECK: b=[[V:.*]]\nCHECK: c=[[V]];\n", "a=1\nb=x.*[y]\nc=x.*[y];\n");
}

#[test]
fn scopes_end_at_labels() {
    let directives = "CHECK-LABEL: f:\nCHECK: [[A:a.]] [[$B:b.]]\nCHECK-LABEL: g:\nCHECK: [[$B]]\nCHECK: [[A]]\n";
    let input = "f:\na1 b1\ng:\nb1\na1\n";
    passes(directives, input);
    let scoped = Options { enable_var_scope: true, ..Options::default() };
    let result = check_with(scoped, directives, input);
    assert_eq!(result.messages[0].text, "undefined variable: A");
}

#[test]
fn numeric_variables_count() {
    passes("CHECK: n=[[#N:]]\nCHECK: [[#N+1]]\nCHECK: [[#mul(N,2)-1]] [[#max(N,20)]]\n", "n=10\n11\n19 20\n");
    passes("CHECK: [[#%#x,A:]]\nCHECK: [[#A+1]]\nCHECK: [[#%u,A]]\n", "0xff\n0x100\n255\n");
    passes("CHECK: [[#%.4X,A:]]\nCHECK: [[#A+1]]\n", "00FF\n0100\n");
    passes("CHECK: [[#%d,A:]]\nCHECK: [[#A-5]]\n", "3\n-2\n");
    passes("\nCHECK: line [[#@LINE]] [[@LINE-1]]\n", "line 2 1\n");
    let result = check("CHECK: [[#N:]]\nCHECK: [[#div(N,0)]]\n", "1\n2\n");
    assert!(said(&result).contains("check:2:11: error: unable to substitute variable or numeric expression"));
    refused("CHECK: [[#N:]] [[#N]]\n", "check:1:19: error: numeric variable 'N' defined earlier in the same");
    refused("CHECK: [[#A]] [[#%q,B:]]\n", "check:1:19: error: invalid format specifier in expression");
}

#[test]
fn definitions_come_from_outside() {
    let define = |text: &str| Definition { text: text.to_string() };
    let definitions = vec![define("A=x.y"), define("#N=40"), define("#%x,M=N+2")];
    let options = Options { definitions, ..Options::default() };
    let result = check_with(options, "CHECK: [[A]] [[#N+1]] [[#M]]\n", "xzy 41 2a\nx.y 41 2a\n");
    assert!(result.passed(), "{}", said(&result));
}

#[test]
fn whole_lines_and_blanks() {
    let full = Options { match_full_lines: true, ..Options::default() };
    assert!(check_with(full.clone(), "CHECK: a b\n", "x a b\n a \t b \n").passed());
    assert!(!check_with(full.clone(), "CHECK: a\n", "ab\n").passed());
    let strict = Options { strict_whitespace: true, ..full };
    assert!(!check_with(strict.clone(), "CHECK:a b\n", "a  b\n").passed());
    assert!(check_with(strict, "CHECK: a  b\n", " a  b\n").passed());
    passes("CHECK: a b\n", "a \t  b\r\n");
}

#[test]
fn prefixes_choose_directives() {
    let prefixes = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
    let options = Options { check_prefixes: prefixes(&["A", "B"]), ..Options::default() };
    assert!(check_with(options.clone(), "A: a\nB-NEXT: b\nC: c\n", "a\nb\n").passed());
    let result = check_with(options.clone(), "A: a\n", "a\n");
    assert_eq!(said(&result), "error: no check strings found with prefix 'B:'\n");
    let options = Options { allow_unused_prefixes: true, ..options };
    assert!(check_with(options, "A: a\n", "a\n").passed());
    let options = Options { check_prefixes: prefixes(&["A", "A"]), ..Options::default() };
    let result = check_with(options, "A: a\n", "a\n");
    assert!(said(&result).contains("must be unique among check and comment prefixes: 'A'"));
    let options = Options { comment_prefixes: Some(prefixes(&["NOTE"])), ..Options::default() };
    assert!(check_with(options, "NOTE: CHECK: z\nCHECK: a\n", "a\n").passed());
}

#[test]
fn implicit_nots_hold_everywhere_else() {
    let options = Options { implicit_check_not: vec!["warning:".to_string()], ..Options::default() };
    assert!(check_with(options.clone(), "CHECK: warning: a\nCHECK: b\n", "warning: a\nb\n").passed());
    let result = check_with(options, "CHECK: b\n", "warning: a\nb\n");
    assert_eq!(
        said(&result),
        "command line:1:22: error: IMPLICIT-CHECK-NOT: excluded string found in input\n\
         -implicit-check-not='warning:'\n                     ^\n\
         input:1:1: note: found here\nwarning: a\n^~~~~~~~\n"
    );
}

#[test]
fn empty_input_is_suspicious() {
    assert_eq!(check("CHECK-NOT: a\n", "").status, Status::EmptyInput);
    let options = Options { allow_empty: true, ..Options::default() };
    assert!(check_with(options, "CHECK-NOT: a\n", "").passed());
}

#[test]
fn failures_show_where_and_what_was_close() {
    let result = check("\n; CHECK: add.s32 %r1, %r3;\n", "start\n  sub.s32 %r1, %r2;\n  add.s32 %r1, %r2;\n");
    assert_eq!(
        said(&result),
        "check:2:10: error: CHECK: expected string not found in input\n\
         ; CHECK: add.s32 %r1, %r3;\n         ^\n\
         input:1:1: note: scanning from here\nstart\n^\n\
         input:3:2: note: possible intended match here\n add.s32 %r1, %r2;\n ^\n"
    );
}

#[test]
fn dumps_mark_the_input() {
    let options = Options { verbose: true, ..Options::default() };
    let result = Checker::new(options).check("check", "CHECK: b\nCHECK-NEXT: [[V:z+]]\n", "input", "a\nb\nc\nzz\n");
    let text = said(&result);
    let dump = text.split("<<<<<<\n").nth(1).unwrap();
    assert_eq!(
        dump,
        "          1: a \n          2: b \ncheck:1      ^\n          3: c \n          4: zz \n\
         next:2'0     !~  error: match on wrong line\nnext:2'1     !~  captured var \"V\"\n>>>>>>\n"
    );
}
