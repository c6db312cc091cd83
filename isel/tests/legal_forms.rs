//! Every operation of legal IR on every type it is legal on, through selection, register assignment and emission to
//! `ptxas`. The table below is `isel/LEGAL.md`, sections 2 to 6, as text with `T` for the type.

use std::fmt::Write as _;

use ptxc_targets::Target;
use ptxc_test_support::assemble;

/// One row: types, lowest target, result (`T` is the type), and the instruction with operands `%a %b %c` of type `T`.
struct Row {
    types: &'static [&'static str],
    sm: u16,
    result: &'static str,
    text: &'static str,
}

const fn row(types: &'static [&'static str], sm: u16, result: &'static str, text: &'static str) -> Row {
    Row { types, sm, result, text }
}

const INT: &[&str] = &["i16", "i32", "i64"];
const BITS: &[&str] = &["i1", "i16", "i32", "i64", "<2 x i16>"];
const WIDE: &[&str] = &["i32", "i64"];
const F: &[&str] = &["f32", "f64"];
const SIGNED_FLOATS: &[&str] = &["f32", "f64", "f16", "bf16", "<2 x f16>", "<2 x bf16>"];
const HALF: &[&str] = &["f16", "<2 x f16>"];
const BHALF: &[&str] = &["bf16", "<2 x bf16>"];
const BUNDLES: &[&str] = &[
    "<2 x i32>",
    "<4 x i32>",
    "<2 x i64>",
    "<4 x f16>",
    "<8 x bf16>",
    "<4 x i16>",
    "<2 x f64>",
    "<2 x f32>",
    "<4 x f32>",
    "i128",
];
const ANY: &[&str] = &[
    "i8",
    "i16",
    "i32",
    "i64",
    "f16",
    "bf16",
    "f32",
    "f64",
    "ptr",
    "ptr<global>",
    "<2 x f16>",
    "<2 x i16>",
    "e4m3",
    "<2 x e5m2>",
];

const ROWS: &[Row] = &[
    // Integers.
    row(INT, 50, "T", "add T %a, %b"),
    row(INT, 50, "T", "add T %a, 7"),
    row(INT, 50, "T", "add T %a, -1"),
    row(INT, 50, "T", "sub T %a, %b"),
    row(INT, 50, "T", "sub T 0, %b"),
    row(INT, 50, "T", "sub T 100, %b"),
    row(INT, 50, "T", "mul T %a, %b"),
    row(INT, 50, "T", "udiv T %a, %b"),
    row(INT, 50, "T", "sdiv T %a, %b"),
    row(INT, 50, "T", "urem T %a, %b"),
    row(INT, 50, "T", "srem T %a, %b"),
    row(BITS, 50, "T", "and T %a, %b"),
    row(BITS, 50, "T", "or T %a, %b"),
    row(BITS, 50, "T", "xor T %a, %b"),
    row(INT, 50, "T", "xor T %a, -1"),
    row(&["i1"], 50, "T", "xor T %a, true"),
    row(INT, 50, "T", "and T %a, -2"),
    row(INT, 50, "T", "shl T %a, %b"),
    row(INT, 50, "T", "lshr T %a, %b"),
    row(INT, 50, "T", "ashr T %a, %b"),
    row(INT, 50, "T", "shl T %a, 3"),
    row(INT, 50, "T", "smin T %a, %b"),
    row(INT, 50, "T", "smax T %a, %b"),
    row(INT, 50, "T", "umin T %a, %b"),
    row(INT, 50, "T", "umax T %a, -1"),
    row(INT, 50, "T", "umulh T %a, %b"),
    row(INT, 50, "T", "smulh T %a, %b"),
    row(INT, 50, "T", "abs T %a"),
    row(&["i32"], 50, "T", "sadd_sat T %a, %b"),
    row(&["i32"], 50, "T", "ssub_sat T %a, %b"),
    row(&["i32"], 50, "T", "fshl T %a, %b, %c"),
    row(&["i32"], 50, "T", "fshr T %a, %b, %c"),
    row(WIDE, 50, "T", "ctpop T %a"),
    row(WIDE, 50, "T", "ctlz T %a"),
    row(WIDE, 50, "T", "cttz T %a"),
    row(WIDE, 50, "T", "bitreverse T %a"),
    row(INT, 50, "T", "bswap T %a"),
    // Floats.
    row(F, 50, "T", "fadd T %a, %b"),
    row(F, 50, "T", "fadd contract T %a, %b"),
    row(F, 50, "T", "fsub rz T %a, %b"),
    row(F, 50, "T", "fmul rm T %a, %b"),
    row(F, 50, "T", "fma rp T %a, %b, %c"),
    row(F, 50, "T", "fma T %a, 2.5, %c"),
    row(&["f32"], 50, "T", "fadd ftz sat T %a, %b"),
    row(&["f32"], 50, "T", "fma ftz sat T %a, %b, %c"),
    row(HALF, 53, "T", "fadd T %a, %b"),
    row(HALF, 53, "T", "fsub T %a, %b"),
    row(HALF, 53, "T", "fmul T %a, %b"),
    row(HALF, 53, "T", "fma T %a, %b, %c"),
    row(HALF, 53, "T", "fma ftz T %a, %b, %c"),
    row(HALF, 80, "T", "fma relu T %a, %b, %c"),
    row(BHALF, 80, "T", "fma T %a, %b, %c"),
    row(BHALF, 80, "T", "fma relu T %a, %b, %c"),
    row(BHALF, 90, "T", "fadd T %a, %b"),
    row(BHALF, 90, "T", "fsub T %a, %b"),
    row(BHALF, 90, "T", "fmul T %a, %b"),
    row(&["<2 x f32>"], 100, "T", "fadd T %a, %b"),
    row(&["<2 x f32>"], 100, "T", "fsub T %a, %b"),
    row(&["<2 x f32>"], 100, "T", "fmul ftz T %a, %b"),
    row(&["<2 x f32>"], 100, "T", "fma T %a, %b, %c"),
    row(&["<2 x f32>"], 100, "T", "fneg T %a"),
    row(SIGNED_FLOATS, 50, "T", "fneg T %a"),
    row(SIGNED_FLOATS, 50, "T", "fabs T %a"),
    row(SIGNED_FLOATS, 50, "T", "copysign T %a, %b"),
    row(F, 50, "T", "fmin T %a, %b"),
    row(F, 50, "T", "fmax T %a, %b"),
    row(&["f32"], 80, "T", "fminimum ftz T %a, %b"),
    row(&["f16", "<2 x f16>", "bf16", "<2 x bf16>"], 80, "T", "fmin T %a, %b"),
    row(&["f16", "<2 x f16>", "bf16", "<2 x bf16>", "f32"], 80, "T", "fmaximum T %a, %b"),
    row(F, 50, "T", "fdiv T %a, %b"),
    row(F, 50, "T", "fdiv T 1.0, %b"),
    row(&["f32"], 50, "T", "fdiv afn T %a, %b"),
    row(&["f32"], 50, "T", "fdiv fast ftz T %a, %b"),
    row(F, 50, "T", "fsqrt T %a"),
    row(&["f32"], 50, "T", "fsqrt afn T %a"),
    row(F, 50, "T", "frcp T %a"),
    row(&["f32"], 50, "T", "frcp afn ftz T %a"),
    row(F, 50, "T", "frsqrt T %a"),
    row(F, 50, "T", "ffloor T %a"),
    row(F, 50, "T", "fceil T %a"),
    row(F, 50, "T", "ftrunc T %a"),
    row(F, 50, "T", "frint T %a"),
    row(&["f16"], 53, "T", "ffloor T %a"),
    row(&["f32"], 50, "T", "fsin afn T %a"),
    row(&["f32"], 50, "T", "fcos afn ftz T %a"),
    row(&["f32"], 50, "T", "fexp2 afn T %a"),
    row(&["f32"], 50, "T", "flog2 afn T %a"),
    row(HALF, 75, "T", "fexp2 afn T %a"),
    row(BHALF, 90, "T", "fexp2 afn T %a"),
    row(&["f32", "f16", "<2 x f16>"], 75, "T", "ftanh afn T %a"),
    row(BHALF, 90, "T", "ftanh afn T %a"),
    row(F, 50, "i1", "fclass T %a, 0x204"),
    row(F, 50, "i1", "fclass T %a, 3"),
    row(F, 50, "i1", "fclass T %a, 0x168"),
    // Comparisons and choices.
    row(&["i16", "i32", "i64", "ptr"], 50, "i1", "icmp ult T %a, %b"),
    row(INT, 50, "i1", "icmp sge T %a, -5"),
    row(INT, 50, "i1", "icmp ugt T %a, -5"),
    row(&["i1", "i16", "i32", "i64", "ptr"], 50, "i1", "icmp eq T %a, %b"),
    row(&["i1", "i16", "i32", "i64", "ptr"], 50, "i1", "icmp ne T %a, %b"),
    row(F, 50, "i1", "fcmp olt T %a, %b"),
    row(F, 50, "i1", "fcmp une T %a, 1.5"),
    row(F, 50, "i1", "fcmp ord T %a, %b"),
    row(F, 50, "i1", "fcmp one T %a, %b"),
    row(F, 50, "i1", "fcmp true T %a, %b"),
    row(&["f16"], 53, "i1", "fcmp ueq T %a, %b"),
    row(&["bf16"], 90, "i1", "fcmp ugt T %a, %b"),
    row(&["i1"], 50, "T", "select i1 %a, T %b, %c"),
    row(&["i1"], 50, "i16", "select i1 %a, i16 -3, 4"),
    row(&["i1"], 50, "f32", "select i1 %a, f32 1.0, 2.0"),
    row(&["i1"], 50, "f64", "select i1 %a, f64 1.0, 2.0"),
    row(&["i1"], 50, "f16", "select i1 %a, f16 1.0, 2.0"),
    row(ANY, 50, "T", "freeze T %a"),
    row(BUNDLES, 50, "T", "freeze T %a"),
    // Conversions.
    row(INT, 50, "i8", "trunc T %a to i8"),
    row(&["i8", "i16", "i32", "i64"], 50, "i1", "trunc T %a to i1"),
    row(WIDE, 50, "i16", "trunc T %a to i16"),
    row(&["i64"], 50, "i32", "trunc T %a to i32"),
    row(&["i1"], 50, "i8", "zext T %a to i8"),
    row(&["i1"], 50, "i8", "sext T %a to i8"),
    row(&["i1", "i8"], 50, "i16", "zext T %a to i16"),
    row(&["i1", "i8"], 50, "i16", "sext T %a to i16"),
    row(&["i1", "i8", "i16"], 50, "i32", "zext T %a to i32"),
    row(&["i1", "i8", "i16"], 50, "i32", "sext T %a to i32"),
    row(&["i1", "i8", "i16", "i32"], 50, "i64", "zext T %a to i64"),
    row(&["i1", "i8", "i16", "i32"], 50, "i64", "sext T %a to i64"),
    row(&["f64"], 50, "f32", "fptrunc T %a to f32"),
    row(&["f64"], 50, "f32", "fptrunc rz T %a to f32"),
    row(F, 50, "f16", "fptrunc T %a to f16"),
    row(&["f32"], 80, "bf16", "fptrunc T %a to bf16"),
    row(&["f32"], 80, "bf16", "fptrunc rz relu T %a to bf16"),
    row(&["f64", "f16"], 90, "bf16", "fptrunc T %a to bf16"),
    row(&["f32"], 90, "tf32", "fptrunc T %a to tf32"),
    row(&["tf32"], 50, "f32", "fpext T %a to f32"),
    row(&["f16", "bf16"], 50, "f32", "fpext T %a to f32"),
    row(&["f16", "f32"], 50, "f64", "fpext T %a to f64"),
    row(&["bf16"], 90, "f64", "fpext T %a to f64"),
    row(&["f16", "f32", "f64"], 50, "i16", "fptosi T %a to i16"),
    row(&["f16", "f32", "f64"], 50, "i32", "fptosi T %a to i32"),
    row(&["f16", "f32", "f64"], 50, "i64", "fptoui rn T %a to i64"),
    row(&["bf16"], 90, "i32", "fptoui T %a to i32"),
    row(&["f16", "f32"], 50, "i32", "fptoui_sat T %a to i32"),
    row(&["f16", "f32"], 50, "i16", "fptosi_sat T %a to i16"),
    row(INT, 50, "f32", "sitofp T %a to f32"),
    row(INT, 50, "f64", "uitofp rz T %a to f64"),
    row(INT, 50, "f16", "uitofp T %a to f16"),
    row(INT, 90, "bf16", "sitofp T %a to bf16"),
    row(&["<2 x f32>"], 80, "<2 x f16>", "fptrunc T %a to <2 x f16>"),
    row(&["<2 x f32>"], 80, "<2 x bf16>", "fptrunc relu T %a to <2 x bf16>"),
    row(&["<2 x f32>", "<2 x f16>"], 89, "<2 x e4m3>", "fptrunc sat T %a to <2 x e4m3>"),
    row(&["<2 x f32>", "<2 x f16>"], 89, "<2 x e5m2>", "fptrunc sat relu T %a to <2 x e5m2>"),
    row(&["<2 x e4m3>", "<2 x e5m2>"], 89, "<2 x f16>", "fpext T %a to <2 x f16>"),
    row(&["i32", "f32", "<2 x f16>", "<2 x i16>"], 50, "i32", "bitcast T %a to i32"),
    row(&["i64", "f64", "<2 x i32>", "<4 x f16>", "<2 x f32>"], 50, "i64", "bitcast T %a to i64"),
    row(&["<2 x i64>", "<4 x i32>", "<8 x f16>", "i128"], 50, "i128", "bitcast T %a to i128"),
    row(&["<2 x i64>", "<4 x f32>", "<8 x f16>", "i128"], 50, "<2 x i64>", "bitcast T %a to <2 x i64>"),
    row(&["f16", "bf16", "i16"], 50, "i16", "bitcast T %a to i16"),
    row(&["i16", "f16", "<2 x e4m3>"], 50, "<2 x e4m3>", "bitcast T %a to <2 x e4m3>"),
    row(&["i8", "e4m3"], 50, "e4m3", "bitcast T %a to e4m3"),
    row(&["ptr", "ptr<shared>"], 50, "i64", "ptrtoint T %a to i64"),
    row(&["i64"], 50, "ptr<global>", "inttoptr T %a to ptr<global>"),
    row(&["ptr<global>", "ptr<shared>", "ptr<local>", "ptr<const>"], 50, "ptr", "addrspacecast T %a to ptr"),
    row(&["ptr<param>"], 70, "ptr", "addrspacecast T %a to ptr"),
    row(&["ptr<shared_cluster>"], 90, "ptr", "addrspacecast T %a to ptr"),
    row(&["ptr"], 50, "ptr<global>", "addrspacecast T %a to ptr<global>"),
    row(&["ptr"], 50, "ptr<shared>", "addrspacecast T %a to ptr<shared>"),
    // Vectors.
    row(&["<4 x f32>", "<4 x i32>"], 50, "T", "shuffle T %a, %b, [0, 5, 2, poison]"),
    row(&["<8 x f16>"], 50, "<4 x f16>", "shuffle T %a, %b, [1, 8, 2, 3]"),
    row(&["<8 x f16>"], 50, "f16", "extract T %a, 3"),
    row(&["<4 x i8>"], 50, "i8", "extract T %a, 3"),
    row(&["<4 x i8>", "<4 x i16>"], 50, "T", "shuffle T %a, %b, [3, 2, 1, 0]"),
    row(&["<2 x e4m3>"], 50, "e4m3", "extract T %a, 1"),
    row(&["e4m3"], 50, "<2 x e4m3>", "vector <2 x e4m3> %a, %b"),
    row(&["e4m3"], 50, "<4 x e4m3>", "splat <4 x e4m3> %a"),
    row(&["f32"], 50, "<2 x f32>", "vector <2 x f32> %a, %b"),
    row(&["f16"], 50, "<2 x f16>", "vector <2 x f16> %a, %b"),
    row(&["i64"], 50, "<2 x i64>", "splat <2 x i64> %a"),
    row(&["<4 x f32>"], 50, "T", "insert T %a, 2.0, 1"),
    // Memory.
    row(ANY, 50, "T", "load T, %p"),
    row(BUNDLES, 50, "T", "load T, %p, align 16"),
    row(&["<8 x f32>", "<4 x i64>"], 100, "T", "load T, %p, align 32"),
    row(ANY, 50, "T", "load T, %p, volatile"),
    row(ANY, 50, "T", "load T, %p, cache(cg)"),
    row(BUNDLES, 50, "T", "load T, %p, align 16, invariant"),
    row(&["i8", "i16", "i32", "i64", "f32"], 50, "T", "load T, %p, relaxed, scope(gpu)"),
    row(&["i8", "i16", "i32", "i64", "f32"], 50, "T", "load T, %p, acquire, scope(sys)"),
    row(WIDE, 50, "T", "load T, %p, seq_cst, scope(cta)"),
    row(&["f32", "<4 x i32>"], 50, "T", "load T, %p, align 16, l1(evict_last)"),
    row(&["f32"], 50, "T", "load T, %p, prefetch(128)"),
    row(&["f32"], 50, "T", "load T, %p, cache(cs), l2(evict_first)"),
    row(&["f32"], 50, "T", "load T, %p, l1(no_allocate), policy(%hint), invariant"),
    row(&["f32"], 50, "T", "load T, %s, cache(cg), l1(evict_first)"),
    row(WIDE, 50, "T", "atomicrmw add T %p, %a, relaxed, scope(gpu)"),
    row(WIDE, 50, "T", "atomicrmw sub T %p, %a, acq_rel, scope(cta)"),
    row(WIDE, 50, "T", "atomicrmw xchg T %p, %a, acquire, scope(gpu)"),
    row(F, 60, "T", "atomicrmw xchg T %p, 1.0, seq_cst, scope(gpu)"),
    row(WIDE, 50, "T", "atomicrmw and T %p, %a, release, scope(gpu)"),
    row(WIDE, 50, "T", "atomicrmw or T %p, %a, relaxed, scope(sys)"),
    row(WIDE, 50, "T", "atomicrmw xor T %p, %a, relaxed, scope(gpu)"),
    row(WIDE, 50, "T", "atomicrmw smax T %p, %a, relaxed, scope(gpu)"),
    row(WIDE, 50, "T", "atomicrmw umin T %p, %a, relaxed, scope(gpu)"),
    row(&["i32"], 50, "T", "atomicrmw uinc_wrap T %p, %a, relaxed, scope(gpu)"),
    row(&["i32"], 50, "T", "atomicrmw udec_wrap T %p, %a, relaxed, scope(gpu)"),
    row(&["f32"], 50, "T", "atomicrmw fadd T %p, %a, relaxed, scope(gpu)"),
    row(&["f64", "<2 x f16>"], 60, "T", "atomicrmw fadd T %p, %a, relaxed, scope(gpu)"),
    row(&["f16"], 70, "T", "atomicrmw fadd T %p, %a, acq_rel, scope(gpu)"),
    row(BHALF, 90, "T", "atomicrmw fadd T %p, %a, relaxed, scope(cluster)"),
    row(&["i128"], 90, "T", "atomicrmw xchg T %p, %a, relaxed, scope(gpu)"),
    // Threads.
    row(&["i32"], 50, "T", "shfl.idx T %a, 3, 31, -1"),
    row(&["f32", "<2 x f16>"], 50, "T", "shfl.bfly T %a, 16, 31, 0xffffffff"),
    row(&["i32"], 50, "T", "shfl.up T %a, %b, 0, %c"),
    row(&["i1"], 50, "T", "vote.all %a, -1"),
    row(&["i1"], 50, "T", "vote.uni %a, -1"),
    row(&["i1"], 50, "i32", "vote.ballot %a, -1"),
    row(WIDE, 70, "i32", "match.any T %a, -1"),
    row(&["i1"], 50, "i32", "activemask"),
    row(&["i32"], 80, "T", "redux.add T %a, -1"),
    row(&["i32"], 80, "T", "redux.umax T %a, -1"),
    row(&["i32"], 80, "T", "redux.xor T %a, -1"),
    row(&["i1"], 50, "i32", "barrier.red.popc aligned 0, %a"),
    row(&["i1"], 50, "i1", "barrier.red.or 1, 64, %a"),
    row(&["ptr"], 50, "i1", "isspace shared %a"),
    row(&["ptr"], 90, "i1", "isspace shared_cluster %a"),
    row(&["i32"], 50, "i32", "sreg.laneid"),
    row(&["i32"], 50, "i64", "sreg.clock64"),
    row(&["i32"], 90, "i1", "sreg.is_explicit_cluster"),
    row(&["i32", "f32"], 50, "ptr<global>", "gep T, %p, 5"),
];

/// Instructions without a result that is returned, with the same operands.
const STATEMENTS: &[Row] = &[
    row(ANY, 50, "", "store T %a, %p"),
    row(BUNDLES, 50, "", "store T %a, %p, align 16"),
    row(&["<8 x f32>", "<4 x i64>"], 100, "", "store T %a, %p, align 32"),
    row(&["i8", "i16", "i32", "i64"], 50, "", "store T -1, %p"),
    row(&["f16", "f32", "f64"], 50, "", "store T 1.0, %p"),
    row(&["<4 x f32>"], 50, "", "store T splat(1.0), %p, align 16"),
    row(ANY, 50, "", "store T %a, %p, volatile"),
    row(&["i8", "i16", "i32", "i64", "f32"], 50, "", "store T %a, %p, release, scope(gpu)"),
    row(WIDE, 50, "", "store T %a, %p, seq_cst, scope(sys)"),
    row(&["f32"], 50, "", "store T %a, %p, cache(wt)"),
    row(&["f32"], 50, "", "store T %a, %p, l1(evict_first), l2(evict_last)"),
    row(&["f32"], 50, "", "store T %a, %p, policy(%hint)"),
    row(WIDE, 50, "", "%u = atomicrmw add T %p, %a, relaxed, scope(gpu)"),
    row(WIDE, 50, "", "%u = atomicrmw smax T %p, %a, acq_rel, scope(gpu)"),
    row(WIDE, 50, "", "%u, %k = cmpxchg T %p, %a, %b, acq_rel, acquire, scope(gpu)"),
    row(&["i16"], 70, "", "%u, %k = cmpxchg T %p, %a, %b, seq_cst, relaxed, scope(cta)"),
    row(&["i128"], 90, "", "%u, %k = cmpxchg T %p, %a, %b, relaxed, relaxed, scope(gpu)"),
    row(&["i32"], 50, "", "fence seq_cst, scope(gpu)"),
    row(&["i32"], 50, "", "fence acq_rel, scope(cta)"),
    row(&["i32"], 90, "", "fence acquire, scope(cluster)"),
    row(&["i32"], 50, "", "barrier.sync aligned 0"),
    row(&["i32"], 50, "", "barrier.sync 1, 64"),
    row(&["i32"], 50, "", "barrier.arrive aligned 2, 64"),
    row(&["i32"], 50, "", "barrier.warp -1"),
    row(&["i32"], 50, "", "breakpoint"),
];

const TARGETS: &[&str] = &["sm_50", "sm_53", "sm_60", "sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100a", "sm_120"];

fn module_for(sm: u16) -> String {
    let mut out = String::new();
    for (number, row) in ROWS.iter().chain(STATEMENTS).enumerate().filter(|(_, r)| r.sm <= sm) {
        for ty in row.types {
            let put = |text: &str| text.replace('T', ty);
            let name = format!("f{number}_{}", ty.replace(|c: char| !c.is_ascii_alphanumeric(), "_"));
            let (head, tail) = match row.result {
                "" => (String::new(), String::new()),
                result => (format!(" -> {}", put(result)), " %r".to_owned()),
            };
            let assign = if row.result.is_empty() { "" } else { "%r = " };
            writeln!(
                out,
                "func @{name}(%p: ptr<global>, %s: ptr<shared>, %hint: i64, %a: {ty}, %b: {ty}, %c: {ty}){head} {{\nentry:\n  {assign}{}\n  ret{tail}\n}}",
                put(row.text)
            )
            .expect("writing to a string");
        }
    }
    out
}

/// Compiles legal IR; panics with everything that is wrong.
fn compile(text: &str, target: Target) -> String {
    let module = ptxc_ir::read_module(text).unwrap_or_else(|errors| {
        let list: Vec<String> = errors.iter().take(20).map(|e| e.with_position(text)).collect();
        panic!("{}", list.join("\n"));
    });
    let options = ptxc_isel::Options::default();
    let mut machine = ptxc_isel::select(&module, target, &options).unwrap_or_else(|errors| {
        let list: Vec<String> = errors.iter().map(ToString::to_string).collect();
        panic!("{target}:\n{}", list.join("\n"));
    });
    let kinds = ptxc_regalloc::Kinds::new(&machine.opcodes);
    for func in &mut machine.functions {
        let name = machine.symbols.name(func.name).to_owned();
        if let Err(errors) = ptxc_mir::verify(func) {
            panic!("{target}: @{name}: {errors:?}");
        }
        ptxc_regalloc::run(func, &kinds).unwrap_or_else(|e| panic!("{target}: @{name}: {e}"));
    }
    let strict = ptxc_emit::EmitOptions { strict: true, ..ptxc_emit::EmitOptions::default() };
    ptxc_emit::emit_module(&machine, &strict).unwrap_or_else(|e| panic!("{target}: {e}"))
}

/// What `ptxas` says against a text, each message with the line it speaks of.
fn complaints(ptx: &str, target: Target) -> String {
    let outcome = assemble(ptx, target, &["-c"]).expect("ptxas runs");
    let mut out = String::new();
    if outcome.cubin.is_none() {
        let lines: Vec<&str> = ptx.lines().collect();
        for message in outcome.messages.lines().take(60) {
            let number = message.split("line ").nth(1).and_then(|t| t.split(|c: char| !c.is_ascii_digit()).next());
            let line = number.and_then(|n| n.parse::<usize>().ok()).and_then(|n| lines.get(n - 1)).unwrap_or(&"");
            writeln!(out, "{target}: {message}\n    {line}").expect("writing to a string");
        }
    }
    out
}

#[test]
fn every_legal_form_assembles() {
    let mut failures = String::new();
    for name in TARGETS {
        let target: Target = name.parse().expect("a target of the table");
        failures += &complaints(&compile(&module_for(target.sm()), target), target);
    }
    assert!(failures.is_empty(), "{failures}");
}
