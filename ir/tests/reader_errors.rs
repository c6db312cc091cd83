//! What the reader says about each kind of mistake, and where.

use ptxc_ir::read_module;

fn messages(text: &str) -> Vec<String> {
    match read_module(text) {
        Ok(_) => Vec::new(),
        Err(errors) => errors.iter().map(|e| e.with_position(text)).collect(),
    }
}

/// Lines of a function, with line 5, column 3 being their start.
#[rustfmt::skip]
const LINES: &[(&str, &str)] = &[
    ("add i32 %i, 1 foo", "5:17: unexpected `foo` after the instruction"),
    ("%r = addd i32 %i, 1", "5:8: unknown instruction `addd`; did you mean `add`?"),
    ("%r = add i32 %i", "5:18: expected `,`, found the end of the line"),
    ("%r = add i32 %i 1", "5:19: expected `,`, found `1`"),
    ("%r = add i129 %i, 1", "5:12: integers have 1 to 128 bits, `i129` does not"),
    ("%r = add i0 %i, 1", "5:12: integers have 1 to 128 bits, `i0` does not"),
    ("%r = add q32 %i, 1", "5:12: unknown type `q32`; did you mean `f32`?"),
    ("%r = add i32 %i, %j", "5:20: expected a value of type i32, this one has type i64"),
    ("%r = add i32 %i, %k", "5:20: unknown value `%k`"),
    ("%r = add i32 %i, 5000000000", "5:20: `5000000000` does not fit in i32"),
    ("%r = add i32 %i, -2147483649", "5:20: `-2147483649` does not fit in i32"),
    ("%r = add i32 %i, 1.5", "5:20: expected an integer, found `1.5`"),
    ("%r = add i32 %i, 0x", "5:20: expected an integer, found `0x`"),
    ("%r = add i32 %i, true", "5:20: expected a value of type i32, found `true`"),
    ("%r = add i32 %i, null", "5:20: expected a value of type i32, found `null`"),
    ("%r = fadd f32 %x, 1x", "5:21: expected a number of type f32, found `1x`"),
    ("%r = fadd f32 %x, 0f123", "5:21: the bits of f32 are `0f` and 8 hexadecimal digits"),
    ("%r = fadd f16 1.0, 0f3F800000", "5:22: expected a number of type f16, found `0f3F800000`"),
    ("%r = fpext e4m3 1.5 to f32", "5:19: e4m3 is written as its bits, such as `0x7F`"),
    ("%r = add ftz i32 %i, 1", "5:12: `add` takes no flag `ftz`"),
    ("%r = fadd rz rm f32 %x, %x", "5:16: a second rounding mode is given"),
    ("%r, %s = add i32 %i, 1", "5:3: `add` has 1 result, 2 names left of `=`"),
    ("%r = store i32 %i, %p", "5:3: `store` has 0 results, 1 name left of `=`"),
    ("%r, %s, %t = shfl.idx i32 %i, 0, 31, -1", "5:3: `shfl.idx` has 1 result, 3 names left of `=`"),
    ("%i = add i32 %i, 1", "5:3: `%i` is defined twice"),
    ("%r = add i32 %i, 1 %s = add i32 %i, 1", "5:22: unexpected `%s` after the instruction"),
    ("%r = add i32 %i, 1 loc(1, 0, 1)", "5:29: lines are counted from 1"),
    ("%r = add i32 %i, 1 loc(1, 2)", "5:30: expected `,`, found `)`"),
    ("%r %s = add i32 %i, 1", "5:6: expected `=` after the names of the results, found `%s`"),
    ("% = add i32 %i, 1", "5:3: expected a name after `%`"),
    ("%r = add <0 x i32> zero, zero", "5:13: vectors have 1 to 1024 lanes, not 0"),
    ("%r = add <2000 x i32> zero, zero", "5:13: vectors have 1 to 1024 lanes, not 2000"),
    ("%r = add <2 x i32> <1>, zero", "5:22: <2 x i32> has 2 lanes, 1 given"),
    ("%r = add <2 x i32> 1, zero", "5:22: expected a value of type <2 x i32>, found `1`"),
    ("%r = add <2 x <2 x i32>> zero, zero", "5:17: expected a type, found `<`"),
    ("%r = add ptr<globl> %p, %p", "5:16: unknown memory space `globl`; did you mean `global`?"),
    ("%r = icmp less i32 %i, 1", "5:13: unknown condition `less`"),
    ("%r = icmp slt i32 %i", "5:23: expected `,`, found the end of the line"),
    ("%r = fcmp slt f32 %x, %x", "5:13: unknown condition `slt`; did you mean `olt`?"),
    ("%r = select i1 %c, i32 %i, i64 %j", "5:30: expected a value of type i32, found `i64`"),
    ("%r = zext i32 %i i64", "5:20: expected `to`, found `i64`"),
    ("%r = fclass f32 %x, 1024", "5:23: expected a class mask, a number from 0 to 1023"),
    ("%r = vector <2 x i32> %i", "5:15: <2 x i32> has 2 lanes, 1 given"),
    ("%r = extract i32 %i, 0", "5:16: `extract` takes a vector type, i32 is a scalar"),
    ("%r = shuffle <2 x i32> zero, zero, []", "5:38: a shuffle gives 1 to 1024 lanes, not 0"),
    ("%r = shuffle <2 x i32> zero, zero, [5000]", "5:39: expected a lane or `poison`, a number from 0 to 2048"),
    ("%r = load i32 %p", "5:17: expected `,`, found `%p`"),
    ("%r = load i32, %p, aling 4", "5:22: unknown attribute `aling` of an access; did you mean `align`?"),
    ("%r = load i32, %p, align 3", "5:28: an alignment is a power of two up to 2^30, not 3"),
    ("%r = load i32, %p, align 4294967296", "5:28: expected an alignment, a number from 0 to 4294967295"),
    ("%r = load i32, %p, relaxed, acquire", "5:31: a second order is given"),
    ("%r = load i32, %p, scope(world)", "5:28: `world` is not a scope"),
    ("%r = load i32, %p, cache(xx)", "5:28: `xx` is not a cache operator"),
    ("%r = load i32, %p, l1(none)", "5:25: `none` is not an L1 eviction priority"),
    ("%r = load i32, %p, l2(none)", "5:25: `none` is not an L2 eviction priority"),
    ("%r = load i32, %p, prefetch(32)", "5:22: a prefetch is of 64, 128 or 256 bytes, not 32"),
    ("%r = load i32, %p, policy(%i)", "5:29: expected a value of type i64, this one has type i32"),
    ("%r = load i32, @unknown", "5:18: unknown symbol `@unknown`"),
    ("%r = load i32, @callee + 4", "5:18: the address of a function takes no offset"),
    ("%r = load i32, @g + 9223372036854775808", "5:23: the offset does not fit in 64 bits"),
    ("%r = atomicrmw inc i32 %p, 1, relaxed", "5:18: unknown atomic operation `inc`"),
    ("%r = atomicrmw add i32 %p, 1", "5:31: expected `,` and an order, found the end of the line"),
    ("%r = cmpxchg i32 %p, 1, 2, relaxed", "5:37: expected `,` and the order of a failure, found the end of the line"),
    ("fence", "5:8: expected an order, found the end of the line"),
    ("fence relaxd", "5:9: expected an order, found `relaxd`"),
    ("memcpy %p, %p", "5:16: expected `,`, found the end of the line"),
    ("memcpy %p, %p, 4, align 1, align 1, align 1", "5:39: an alignment too many is given"),
    ("memset %p, 0, 4, const", "5:20: `memset` takes no attribute `const`"),
    ("%r = alloca i32, size 4", "5:20: `alloca` takes no attribute `size`"),
    ("%r = gep i32", "5:15: expected `,`, found the end of the line"),
    ("%r = isspace sharde %p", "5:16: unknown memory space `sharde`; did you mean `shared`?"),
    ("jump", "5:7: expected the label of a block, found the end of the line"),
    ("jump nowhere", "5:8: unknown block `nowhere`"),
    ("jump done(1)", "5:13: `done` takes 0 values, more are given"),
    ("jump next", "5:8: `next` takes 1 value, 0 given"),
    ("jump next(%i, %i)", "5:17: `next` takes 1 value, more are given"),
    ("jump next(%j)", "5:13: expected a value of type i32, this one has type i64"),
    ("br %i, done, done", "5:6: expected a value of type i1, this one has type i32"),
    ("br %c, done", "5:14: expected `,`, found the end of the line"),
    ("br %c, done, done, weight(1, 2)", "5:22: `br` takes no attribute `weight`"),
    ("br %c, done, done, weights(70000, 1)", "5:30: expected a weight, a number from 0 to 65535"),
    ("switch i32 %i, done [1 done]", "5:26: expected `:`, found `done`"),
    ("switch i32 %i, done [x: done]", "5:24: expected the value of a case, found `x`"),
    ("switch i8 3, done [256: done]", "5:22: `256` does not fit in i8"),
    ("switch f32 %x, done []", "5:10: `switch` takes an integer type, not f32"),
    ("ret %i", "5:7: `ret` of this function takes 0 values, more are given"),
    ("call callee(%i)", "5:8: expected the `@name` of a function, found `callee`"),
    ("call @nothing(%i)", "5:8: unknown symbol `@nothing`"),
    ("call @g(%i)", "5:8: `@g` is no function"),
    ("call @callee()", "5:15: `@callee` takes 1 value, 0 given"),
    ("call @callee(%i, %i)", "5:20: `@callee` takes 1 value, more are given"),
    ("call_indirect (i32) %p(%i)", "5:23: expected `,`, found `%p`"),
    ("assume %i", "5:10: expected a value of type i1, this one has type i32"),
    ("%r = sreg.tid.w", "5:8: unknown special register `tid.w`; did you mean `tid.x`?"),
    ("%r = sreg", "5:8: a special register is read with `sreg.NAME`"),
    ("%r = ptx", "5:8: a target operation is written `ptx.MNEMONIC`"),
    ("barrier.sync", "5:15: expected a value of type i32, found the end of the line"),
    ("barrier.arrive 0", "5:19: expected `,` and a further operand, found the end of the line"),
    ("%r = vote.any %i, -1", "5:17: expected a value of type i1, this one has type i32"),
    ("%r = asm add ()", "5:12: expected the text of the assembly in quotes, found `add`"),
    ("%r = asm \"\\zz\" ()", "5:12: an escape in a string is `\\` and two hexadecimal digits"),
    ("%r = asm \"\\ff\" ()", "5:12: the text is not UTF-8"),
    ("%r = asm \"abc", "5:12: the string has no closing `\"` in its line"),
    ("%r = ptx.nonsense %i", "5:8: unknown target instruction `nonsense`"),
    ("%r = ptx.add.nonsense %i, %i", "5:8: unknown modifier `.nonsense` of `add`"),
    ("%r = ptx.add.u32 %i, %j", "5:8: operand 3 of `add.u32` (`b`) must be a .u32 register or an immediate"),
    ("ptx.@%i bar.warp.sync -1", "5:8: expected a value of type i1, this one has type i32"),
    ("%r = ptx.mov.u32 99999999999999999999", "5:20: the number does not fit in 64 bits"),
    ("%r = ptx.mov.u32 sreg.tidd.x", "5:20: unknown special register `tidd.x`; did you mean `tid.x`?"),
    ("%r = ptx.mov.b32 [[[[[%i]]]]]", "5:24: the operands of a target operation are nested too deep or too many"),
    ("%r, = add i32 %i, 1", "5:7: expected the name of a result, found `=`"),
    ("%\"\" = add i32 %i, 1", "5:3: a value's name is empty"),
    ("%r = load i32, @g + x", "5:23: expected an offset in bytes, found `x`"),
    ("br %c, done, done, 5", "5:22: expected `uniform` or `weights`, found `5`"),
    ("%r = icmp 5 i32 %i, 1", "5:13: expected a condition, found `5`"),
    ("%r = load i32, %p, 5", "5:22: expected an attribute of the access, found `5`"),
    ("%r = atomicrmw 5 i32 %p, 1", "5:18: expected an atomic operation, found `5`"),
    ("memcpy %p, %p, 4, 5", "5:21: expected `align` or `volatile`, found `5`"),
    ("%r = alloca i32, 5", "5:20: expected `count` or `align`, found `5`"),
    ("ptx.@%c 5", "5:11: expected the mnemonic of a target operation, found `5`"),
    ("ptx.st.global.u32 [@g + 99999999999], 1", "5:22: the offset does not fit in 32 bits"),
    ("%r = ptx.mov.u32 ,", "5:20: expected an operand, found `,`"),
    ("%r = ptx.mov.f32 1x", "5:20: expected a number, found `1x`"),
    ("%r = isspace 5 %p", "5:16: expected a memory space, found `5`"),
    ("%r = load i32, %p, l1(5)", "5:25: expected an L1 eviction priority, found `5`"),
    ("fence acquire, scope(xx)", "5:24: `xx` is not a scope"),
];

/// Whole modules.
#[rustfmt::skip]
const MODULES: &[(&str, &str)] = &[
    ("kernal @f() {\n}", "1:1: `kernal` starts no item; did you mean `kernel`?"),
    ("global x: i32", "1:8: expected an `@name`, found `x`"),
    ("global @x i32", "1:11: expected `:`, found `i32`"),
    ("global @x: i32 = 5 6", "1:20: unexpected `6` after the global"),
    ("global @x: i32 = 5, size 4", "1:21: expected `align`, found `size`"),
    ("global @x: i32 = 5, align 3", "1:27: an alignment is a power of two up to 2^30, not 3"),
    ("global @x: [2 x i32] = [1]", "1:25: the type has 2 elements, 1 given"),
    ("global @x: {i32, i8} = {1}", "1:24: the struct has 2 fields, 1 given"),
    ("global @x: {i32} = {1, 2}", "1:24: the struct has only 1 field"),
    ("global @x: [2 x i8] = \"abc\"", "1:23: the string has 3 bytes, the array 2"),
    ("global @x: [2 x i32] = \"ab\"", "1:24: expected `[`, found `\"ab\"`"),
    ("global @x: <2 x i32> = [1, 2]", "1:24: expected `<`, found `[`"),
    ("global @x: i8 = 256", "1:17: `256` does not fit in i8"),
    ("global @x: ptr = @x", "1:18: `@x` is no generic address; write `generic(@x)`"),
    ("global @x: ptr = generic(@f)\ndeclare func @f()", "1:26: `generic(…)` takes the address of a variable"),
    ("global @x: ptr<shared> = @x", "1:26: expected an address of type ptr<shared>, `@x` is ptr<global>"),
    ("global @x: %T", "1:12: unknown type `%T`"),
    ("global @x: [99999999999999999999999 x i8]", "1:13: expected the number of elements, a number from 0 to 18446744073709551615"),
    ("global @x: [3 y i8]", "1:15: expected `x`, found `y`"),
    ("global @x: {i32", "1:16: expected `,` or `}`, found the end of the line"),
    ("global @x: i32\nglobal @x: i32", "2:8: `@x` is defined twice"),
    ("global @\"\": i32", "1:8: a symbol's name is empty"),
    ("type %T = i32", "1:6: only structs and arrays can be named"),
    ("type %T = { i32 }\ntype %T = { i8 }", "2:6: the type `%T` is defined twice"),
    ("type T = { i32 }", "1:6: expected the name of the type, found `T`"),
    ("type %T = { %U }\ntype %U = { i32 }", "1:13: unknown type `%U`"),
    ("type %Tee = { i32 }\nglobal @x: %Tea", "2:12: unknown type `%Tea`; did you mean `%Tee`?"),
    ("file 1 saxpy", "1:8: expected the path in quotes, found `saxpy`"),
    ("file x \"saxpy\"", "1:6: expected the number of the file, found `x`"),
    ("file 1 \"a\"\nfile 1 \"b\"", "2:6: file 1 is given twice"),
    ("extern kernel @f()", "1:1: a function without a body is written `declare kernel`"),
    ("extern func @f() {\n}", "1:1: a function without a body is written `declare func`"),
    ("internal frob @x", "1:10: `frob` starts no item"),
    ("declare global @x: i32", "1:9: expected `func`, found `global`"),
    ("declare func @f(i32 %x)", "1:21: expected `,` or `)`, found `%x`"),
    ("declare func @f(i32 noaliass)", "1:21: unknown parameter attribute `noaliass`; did you mean `noalias`?"),
    ("declare func @f(i32) noretur", "1:22: unknown function attribute `noretur`; did you mean `noreturn`?"),
    ("declare func @f(i32", "1:20: expected `,` or `)`, found the end of the line"),
    ("declare func @f() reqntid(1, 2, 3, 4)", "1:36: at most three dimensions are given"),
    ("declare func @f() maxnreg 3", "1:27: expected `(`, found `3`"),
    ("declare func @f([2000 x i8])", "1:28: an aggregate of 2000 values cannot be passed (the limit is 1024); pass a pointer with `byval`"),
    ("func @f(i32) {\nb:\n  ret\n}", "1:9: expected a parameter `%name: type`, found `i32`"),
    ("func @f(%a: {i32}) {\nb:\n  ret\n}", "1:9: an aggregate parameter has one name a value, in parentheses"),
    ("func @f((%a, %b): {i32}) {\nb:\n  ret\n}", "1:9: the aggregate has 1 value, 2 names given"),
    ("func @f((%a): i32) {\nb:\n  ret\n}", "1:9: only an aggregate parameter has its names in parentheses"),
    ("func @f(%a: i32, %a: i32) {\nb:\n  ret\n}", "1:18: `%a` is defined twice"),
    ("func @f() {\nb:\n  ret", "3:6: the body has no closing `}`"),
    ("func @f() {\n}", "1:6: the function has no block"),
    ("func @f() {\n  ret\n}", "2:3: an instruction stands before the label of the first block"),
    ("func @f() {\nb:\nb:\n  ret\n}", "3:1: the block `b` is defined twice"),
    ("func @f() {\nb(%x: i32):\n  ret\n}", "2:2: the entry block has no parameters besides the function's"),
    ("func @f() {\nb:\n  jump c\nc(%x):\n  ret\n}", "4:5: expected `:`, found `)`"),
    ("func @f() {\nb rollup(4):\n  ret\n}", "2:3: unknown loop annotation `rollup`"),
    ("func @f() {\nb unroll(x):\n  ret\n}", "2:10: expected a number or `full`, found `x`"),
    ("func @f() {\nb pipeline(4):\n  ret\n}", "2:12: expected `stages`, found `4`"),
    ("func @f() {\nb:\n  ret\n} }", "4:3: unexpected `}` after the function"),
    ("func @f() {\nb:\n  %p = gep i8, %q, 1\n  %q = gep i8, %p, 1\n  ret\n}", "3:3: the type of this address depends on itself"),
    ("func @f() frob {\nb:\n  ret\n}", "1:11: unknown function attribute `frob`"),
    ("func @f() -> {\nb:\n  ret\n}", "2:1: unknown type `b`"),
    ("func @f() {\nb:\n  ret ~\n}", "3:7: unexpected character `~`"),
    ("func @f() {\nb:\n  ret é\n}", "3:7: unexpected character `é`"),
    ("42", "1:1: expected `type`, `file`, a global, `kernel`, `func` or `declare`, found `42`"),
    ("internal @x: i32", "1:10: expected `global`, `const`, `shared`, `kernel` or `func`, found `@x`"),
    ("file 1 \"\\ff\"", "1:8: the path is not UTF-8"),
    ("func @f() 5 {\nb:\n  ret\n}", "1:11: expected an attribute or `{`, found `5`"),
    ("func @f((5): {i32}) {\nb:\n  ret\n}", "1:10: expected the name of a part of the parameter, found `5`"),
    ("global @\"\\ff\": i32", "1:8: the name is not UTF-8"),
];

#[test]
fn every_mistake_in_a_line_has_its_message() {
    for (line, message) in LINES {
        let text = format!(
            "global @g: i32
declare func @callee(i32)
func @f(%i: i32, %j: i64, %x: f32, %c: i1, %p: ptr) {{
entry:
  {line}
  jump done
next(%n: i32):
  jump done
done:
  ret
}}
"
        );
        assert_eq!(messages(&text).join(" || "), *message, "{line}");
    }
}

#[test]
fn every_mistake_in_an_item_has_its_message() {
    for (text, message) in MODULES {
        assert_eq!(messages(text).join(" || "), *message, "{text}");
    }
}

#[test]
fn one_run_reports_many_errors() {
    let text = "global @a: i33x
kernel @k(%n: i32) {
entry:
  %a = add i32 %n, (
  %b = sub i32 %a, 1
  %c = frobnicate i32 %b
  jump nowhere
}
func @g() {
entry:
  %x = call @a(1)
  ret 1
}
";
    let expected = [
        "1:12: unknown type `i33x`",
        "4:20: expected a value of type i32, found `(`",
        "6:8: unknown instruction `frobnicate`",
        "7:8: unknown block `nowhere`",
        "12:7: `ret` of this function takes 0 values, more are given",
    ];
    assert_eq!(messages(text), expected);
}

#[test]
fn errors_have_notes_and_lengths() {
    let text = "global @x: i32\nglobal @x: i32";
    let errors = read_module(text).err().unwrap_or_default();
    assert_eq!(&text[errors[0].span.clone()], "@x");
    assert_eq!(errors[0].notes, [("first here".to_string(), 7..9)]);
}

#[test]
fn deep_nesting_is_refused() {
    let deep = "[1 x ".repeat(100_000);
    assert_eq!(messages(&format!("global @x: {deep}i8")), ["1:332: types are nested more than 64 deep"]);
    let braces = format!("global @x: i32 = {}", "{".repeat(100_000));
    assert_eq!(messages(&braces), ["1:18: expected a value of type i32, found `{`"]);
    let text = format!("func @f(%a: i32) {{\ne:\n  ptx.mov.u32 {}\n}}", "[".repeat(100_000));
    assert_eq!(messages(&text), ["3:19: the operands of a target operation are nested too deep or too many"]);
}

#[test]
fn errors_are_limited_in_number() {
    assert_eq!(messages(&"~\n".repeat(10_000)).len(), 100);
    assert_eq!(messages(&"global\n".repeat(10_000)).len(), 1);
    let body = "  %x = add i32 1\n".repeat(10_000);
    assert_eq!(messages(&format!("func @f() {{\ne:\n{body}}}")).len(), 100);
}
