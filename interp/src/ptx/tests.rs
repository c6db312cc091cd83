use super::*;
use crate::launch::{Argument, Buffer, Failure, Launch, Options, Outcome};

fn read(text: &str) -> Program {
    match Program::read(text) {
        Ok(program) => program,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn launch(text: &str, launch: &Launch, buffers: &mut [Buffer]) -> Result<Outcome, Failure> {
    run(&read(text), launch, buffers, &Options { step_limit: 1 << 20, ..Options::default() })
}

const HEAD: &str = ".version 9.4\n.target sm_107a\n.address_size 64\n";

/// A module with a kernel `k(out)`. `%t` is the thread, `%out` where its word goes, which is stored from `%r`.
fn kernel(before: &str, body: &str) -> String {
    format!(
        "{HEAD}{before}
.visible .entry k(.param .u64 .ptr .global .align 4 k_param_0)
{{
	.reg .pred %p<9>;
	.reg .b16 %h<9>;
	.reg .b32 %r<20>, %t, %r;
	.reg .b64 %rd<20>, %out, %base;
	ld.param.u64 %base, [k_param_0];
	mov.u32 %t, %tid.x;
	mad.wide.u32 %out, %t, 4, %base;
{body}
	st.global.b32 [%out], %r;
	ret;
}}
"
    )
}

fn words_in(text: &str, grid: u32, threads: u32, shared: u32, cluster: u32) -> Result<Vec<u32>, Failure> {
    let mut buffers = [Buffer::output("out", (grid * threads) as usize * 4)];
    let mut one = Launch::linear("k", grid, threads, vec![Argument::buffer(0)]);
    (one.dynamic_shared, one.cluster) = (shared, [cluster, 1, 1]);
    launch(text, &one, &mut buffers).map(|_| buffers[0].to_words())
}

fn words(before: &str, body: &str, threads: u32) -> Vec<u32> {
    words_in(&kernel(before, body), 1, threads, 0, 1).unwrap_or_else(|failure| panic!("{failure}"))
}

fn fails(before: &str, body: &str, threads: u32) -> String {
    words_in(&kernel(before, body), 1, threads, 0, 1).unwrap_err().to_string()
}

/// Runs statements that compute `%r1` or `%rd1` from `%r2 …` or `%rd2 …`, and compares.
fn check(rows: &[(&str, &[u64], u64)]) {
    let mut body = String::new();
    for (index, (statement, inputs, _)) in rows.iter().enumerate() {
        for (number, value) in inputs.iter().enumerate() {
            let register = number + 2;
            body += &format!("mov.b64 %rd{register}, {value};\ncvt.u32.u64 %r{register}, %rd{register};\n");
            body += &format!("cvt.u16.u64 %h{register}, %rd{register};\n");
        }
        let result = match statement {
            s if s.contains("%rd1,") => "",
            s if s.contains("%p1,") => "selp.b64 %rd1, 1, 0, %p1;",
            s if s.contains("%h1,") => "cvt.u64.u16 %rd1, %h1;",
            _ => "cvt.u64.u32 %rd1, %r1;",
        };
        body += &format!("{statement}\n{result}\nst.global.b64 [%base+{}], %rd1;\n", 8 * index);
    }
    let text = kernel("", &body).replace("\tst.global.b32 [%out], %r;\n", "");
    let mut buffers = [Buffer::output("out", rows.len() * 8)];
    let outcome = launch(&text, &Launch::linear("k", 1, 1, vec![Argument::buffer(0)]), &mut buffers);
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
    let quads = buffers[0].bytes.chunks_exact(8).map(|c| c.iter().rev().fold(0, |n, b| n << 8 | u64::from(*b)));
    for ((statement, inputs, want), got) in rows.iter().zip(quads) {
        assert_eq!(got, *want, "{statement} of {inputs:x?}: {got:#x} instead of {want:#x}");
    }
}

const MINUS: u64 = 0xffff_ffff;
const LEAST: u64 = 0x8000_0000;

#[test]
fn integers() {
    check(&[
        ("add.s32 %r1, %r2, -1;", &[0], MINUS),
        ("add.sat.s32 %r1, %r2, %r3;", &[LEAST, MINUS], LEAST),
        ("add.u16x2 %r1, %r2, %r3;", &[0x0001_ffff, 0x0001_0001], 0x0002_0000),
        ("sub.s8x4 %r1, %r2, %r3;", &[0x0001_0203, 0x0102_0203], 0xffff_0000),
        ("mul.hi.s32 %r1, %r2, %r3;", &[MINUS, 2], MINUS),
        ("mul.wide.s32 %rd1, %r2, %r3;", &[MINUS, 2], u64::MAX - 1),
        ("mul.hi.u64 %rd1, %rd2, %rd3;", &[u64::MAX, u64::MAX], u64::MAX - 1),
        ("mad.lo.u16 %h1, %h2, %h3, %h4;", &[0x1000, 0x10, 7], 7),
        ("mad.hi.sat.s32 %r1, %r2, %r3, %r4;", &[LEAST, LEAST, 0x7fff_ffff], 0x7fff_ffff),
        ("mul24.hi.s32 %r1, %r2, %r3;", &[0xff_ffff, 0x7f_ffff], 0xffff_ff80),
        ("sad.s32 %r1, %r2, %r3, %r4;", &[MINUS, 5, 10], 16),
        ("div.s32 %r1, %r2, %r3;", &[(-7i32) as u32 as u64, 2], (-3i32) as u32 as u64),
        ("div.s32 %r1, %r2, %r3;", &[LEAST, MINUS], LEAST),
        ("rem.s32 %r1, %r2, %r3;", &[(-7i32) as u32 as u64, 2], MINUS),
        ("div.u64 %rd1, %rd2, %rd3;", &[7, 0], u64::MAX),
        ("abs.s16 %h1, %h2;", &[0xffff], 1),
        ("neg.s32 %r1, %r2;", &[1], MINUS),
        ("min.s16x2 %r1, %r2, %r3;", &[0xffff_0001, 0x0001_ffff], MINUS),
        ("max.relu.s32 %r1, %r2, %r3;", &[MINUS, LEAST], 0),
        ("min.u64 %rd1, %rd2, %rd3;", &[1 << 63, 5], 5),
        ("max.s64 %rd1, %rd2, %rd3;", &[1 << 63, 5], 5),
        ("popc.b64 %r1, %rd2;", &[u64::MAX], 64),
        ("clz.b32 %r1, %r2;", &[1], 31),
        ("brev.b32 %r1, %r2;", &[1], LEAST),
        ("dp4a.s32.u32 %r1, %r2, %r3, %r4;", &[0xff01_ff01, 0x0203_0405, 1], 1 + 5 - 4 + 3 - 2),
        ("dp2a.hi.u32.u32 %r1, %r2, %r3, %r4;", &[0x0002_0003, 0x0405_0000, 1], 1 + 3 * 5 + 2 * 4),
        ("szext.wrap.s32 %r1, %r2, 4;", &[0x8], 0xffff_fff8),
        ("clmad.lo.u64 %rd1, %rd2, %rd3, %rd4;", &[3, 3, 1], 4),
        ("add.cc.u32 %r1, %r2, %r3; addc.u32 %r1, %r4, 0;", &[MINUS, 1, 6], 7),
        ("sub.cc.u64 %rd1, %rd2, %rd3; subc.u64 %rd1, %rd4, 0;", &[0, 1, 6], 5),
        ("mad.lo.cc.u32 %r1, %r2, %r3, %r4; madc.hi.u32 %r1, %r2, %r3, 0;", &[MINUS, MINUS, MINUS], MINUS - 1 + 1),
    ]);
}

#[test]
fn logic_and_bytes() {
    check(&[
        ("lop3.b32 %r1, %r2, %r3, %r4, 0x96;", &[0xff00, 0xf0f0, 0xcccc], 0xff00 ^ 0xf0f0 ^ 0xcccc),
        ("lop3.or.b32 %r1|%p1, %r2, %r3, %r4, 0x80, 0;", &[1, 2, 4], 0),
        ("lop3.and.b32 _|%p1, %r2, %r3, %r4, 0x80, 1;", &[5, 6, 4], 1),
        ("shl.b32 %r1, %r2, 40;", &[1], 0),
        ("shr.s32 %r1, %r2, 40;", &[LEAST], MINUS),
        ("shr.u64 %rd1, %rd2, 63;", &[u64::MAX], 1),
        ("shf.l.wrap.b32 %r1, %r2, %r3, 36;", &[0xabcd_0000, 0x1234_5678], 0x2345_678a),
        ("shf.r.clamp.b32 %r1, %r2, %r3, 99;", &[1, 7], 7),
        ("prmt.b32 %r1, %r2, %r3, 0x7b10;", &[0x3322_1180, 0x7766_5544], 0x7700_1180),
        ("prmt.b32.ecl %r1, %r2, %r3, 2;", &[0x3322_1100, 0], 0x3322_2222),
        ("cnot.b32 %r1, %r2;", &[0], 1),
        ("bfe.s32 %r1, %r2, 4, 4;", &[0xf0], MINUS),
        ("bfi.b32 %r1, %r2, %r3, 8, 8;", &[0xab, 0x1111_1111], 0x1111_ab11),
        ("not.b16 %h1, %h2;", &[0xff], 0xff00),
        ("setp.lt.s32 %p1, %r2, 0; xor.pred %p1, %p1, 1;", &[MINUS], 0),
        ("setp.lo.u64 %p1, %rd2, %rd3;", &[1, u64::MAX], 1),
        ("setp.ltu.and.f32 %p1, %r2, %r3, 1;", &[0x7fc0_0000, 0], 1),
        ("setp.num.f32 %p1, %r2, %r3;", &[0x7fc0_0000, 0], 0),
        ("setp.eq.s32 %p2|%p1, %r2, 4;", &[4], 0),
        ("set.gt.u32.s32 %r1, %r2, -1;", &[0], MINUS),
        ("set.le.f32.f32 %r1, %r2, %r3;", &[0, LEAST], 0x3f80_0000),
        ("slct.b32.f32 %r1, 1, 2, %r2;", &[LEAST], 1),
        ("mov.b32 {%h2, %h3}, %r2; mov.b32 %r1, {%h3, %h2};", &[0x1234_5678], 0x5678_1234),
        ("mov.b64 {_, %r1}, %rd2;", &[0x1_0000_0000], 1),
        ("mov.b32 %r1, 1.5;", &[], 0x3fc0_0000),
    ]);
}

#[test]
fn floats_and_conversions() {
    let single = |x: f32| u64::from(x.to_bits());
    let one = single(1.0);
    check(&[
        ("add.f32 %r1, %r2, %r3;", &[one, single(1e-8)], one),
        ("add.rp.f32 %r1, %r2, %r3;", &[one, single(1e-8)], one + 1),
        ("mul.ftz.f32 %r1, %r2, %r3;", &[1, one], 0),
        ("fma.rn.f32 %r1, %r2, %r3, %r4;", &[one + 1, one + 1, one | LEAST], single(2.0 * f32::EPSILON)),
        ("add.sat.f32 %r1, %r2, %r3;", &[one, one], one),
        ("sub.f32 %r1, %r2, %r3;", &[0x7f80_0000, 0x7f80_0000], 0x7fff_ffff),
        ("mul.f64 %rd1, %rd2, 0.5;", &[3f64.to_bits()], 1.5f64.to_bits()),
        ("add.f16x2 %r1, %r2, %r3;", &[0x3c00_4000, 0x3c00_3c00], 0x4000_4200),
        ("fma.rn.relu.bf16x2 %r1, %r2, %r3, %r4;", &[0x3f80_bf80, 0x3f80_3f80, 0], 0x3f80_0000),
        ("min.xorsign.abs.f32 %r1, %r2, %r3;", &[one | LEAST, single(2.0)], one | LEAST),
        ("max.NaN.f32 %r1, %r2, %r3;", &[0x7fc0_0000, one], 0x7fff_ffff),
        ("min.f32 %r1, %r2, %r3, %r4;", &[single(3.0), one, single(2.0)], one),
        ("copysign.f32 %r1, %r2, %r3;", &[LEAST, one], one | LEAST),
        ("testp.subnormal.f32 %p1, %r2;", &[1], 1),
        ("rcp.rn.f32 %r1, %r2;", &[single(3.0)], single(1.0 / 3.0)),
        ("sqrt.rn.f64 %rd1, %rd2;", &[2f64.to_bits()], 2f64.sqrt().to_bits()),
        ("ex2.approx.f32 %r1, %r2;", &[single(3.0)], single(8.0)),
        ("rcp.approx.ftz.f64 %rd1, %rd2;", &[4f64.to_bits() + 3], 0.25f64.to_bits()),
        ("add.rn.f32.bf16 %r1, %h2, %r3;", &[0x3f80, one], single(2.0)),
        ("cvt.s64.s32 %rd1, %r2;", &[MINUS], u64::MAX),
        ("cvt.s32.s8 %r1, %r2;", &[0x80], 0xffff_ff80),
        ("cvt.sat.u8.s32 %r1, %r2;", &[MINUS], 0),
        ("cvt.sat.s8.u32 %r1, %r2;", &[200], 127),
        ("cvt.rni.s32.f32 %r1, %r2;", &[single(2.5)], 2),
        ("cvt.rzi.u32.f32 %r1, %r2;", &[single(-2.5)], 0),
        ("cvt.rn.f32.u64 %r1, %rd2;", &[u64::MAX], single(18_446_744_073_709_551_615.0)),
        ("cvt.rn.f16.f32 %h1, %r2;", &[one], 0x3c00),
        ("cvt.f32.f16 %r1, %h2;", &[0x3c00], one),
        ("cvt.rmi.f32.f32 %r1, %r2;", &[single(-0.5)], single(-1.0)),
        ("cvt.rn.bf16x2.f32 %r1, %r2, %r3;", &[one, single(2.0)], 0x3f80_4000),
        ("cvt.rn.satfinite.e4m3x2.f32 %h1, %r2, %r3;", &[one, single(1e9)], 0x387e),
        ("cvt.rn.f16x2.e5m2x2 %r1, %h2;", &[0x3c40], 0x3c00_4000),
        ("cvt.rna.tf32.f32 %r1, %r2;", &[0x3f80_1000], 0x3f80_2000),
        ("cvt.pack.sat.s8.s32.b32 %r1, %r2, %r3, %r4;", &[300, (-300i32) as u32 as u64, 0x1234], 0x1234_7f80),
        ("cvt.rs.f16x2.f32 %r1, %r2, %r3, %r4;", &[one + 1, one, 0x1fff_1fff], 0x3c01_3c00),
        ("cvt.rs.f16x2.f32 %r1, %r2, %r3, %r4;", &[one + 1, one, 0], 0x3c00_3c00),
    ]);
}

#[test]
fn divergence_and_tables() {
    let body = "
	setp.lt.u32 %p1, %t, 10;
	@%p1 bra SMALL;
	mov.b32 %r, 100;
	bra JOIN;
SMALL:
	and.b32 %r1, %t, 3;
TABLE: .branchtargets A, B, A, C;
	brx.idx %r1, TABLE;
A:	mov.b32 %r, 1;
	bra JOIN;
B:	mov.b32 %r, 2;
	bra JOIN;
C:	mov.b32 %r, 3;
JOIN:
	@!%p1 add.s32 %r, %r, %t;
	activemask.b32 %r2;
	setp.ne.b32 %p2, %r2, -1;
	@%p2 mov.b32 %r, 999;";
    let want = |t: u32| if t < 10 { [1, 2, 1, 3][t as usize % 4] } else { 100 + t };
    assert_eq!(words("", body, 32), (0..32).map(want).collect::<Vec<_>>());
    let beyond = fails("", "TABLE: .branchtargets A;\nbrx.idx %t, TABLE;\nA: mov.b32 %r, 0;", 2);
    assert!(beyond.contains("beyond the list"), "{beyond}");
}

const FUNCTIONS: &str = "
.func (.param .b32 result) factorial(.param .b32 n)
{
	.reg .pred %p<2>;
	.reg .b32 %r<6>;
	ld.param.b32 %r1, [n];
	mov.b32 %r3, 1;
	setp.lt.u32 %p1, %r1, 2;
	@%p1 bra DONE;
	sub.u32 %r2, %r1, 1;
	{
	.param .b32 a; .param .b32 r;
	st.param.b32 [a], %r2;
	call (r), factorial, (a);
	ld.param.b32 %r4, [r];
	}
	mul.lo.u32 %r3, %r1, %r4;
DONE:
	st.param.b32 [result], %r3;
	ret;
}
.func (.reg .b32 r) twice(.reg .b32 x)
{
	shl.b32 r, x, 1;
	ret;
}
.func (.param .b32 result) sum(.param .align 4 .b8 list[12], .param .b64 wide)
{
	.local .align 4 .b8 copy[12];
	.reg .b32 %r<8>;
	.reg .b64 %rd<4>;
	mov.b64 %rd1, list;
	cvta.local.u64 %rd2, %rd1;
	ld.b32 %r1, [%rd2];
	ld.b32 %r2, [%rd2+4];
	st.local.b32 [copy+8], %r2;
	ld.local.b32 %r3, [copy+8];
	ld.param.b64 %rd3, [wide];
	cvt.u32.u64 %r4, %rd3;
	add.u32 %r1, %r1, %r3;
	add.u32 %r1, %r1, %r4;
	st.param.b32 [result], %r1;
	ret;
}
.global .u64 table[2] = {factorial, factorial};
";

#[test]
fn calls() {
    let body = "
	and.b32 %r1, %t, 7;
	{
	.param .b32 a; .param .b32 r;
	st.param.b32 [a], %r1;
	ld.global.u64 %rd1, [table+8];
p: .callprototype (.param .b32 _) _ (.param .b32 _);
	call (r), %rd1, (a), p;
	ld.param.b32 %r, [r];
	}";
    let factorial = |n: u32| (1..=n).product::<u32>();
    assert_eq!(words(FUNCTIONS, body, 20), (0..20).map(|t| factorial(t & 7)).collect::<Vec<_>>());
    let body = "
	setp.gt.u32 %p1, %t, 3;
	mov.b32 %r, %t;
	@%p1 call (%r), twice, (%t);
	{
	.param .align 4 .b8 l[12]; .param .b64 w; .param .b32 r;
	st.param.b32 [l], %t;
	st.param.b32 [l+4], 1000;
	st.param.b64 [w], 50;
	call (r), sum, (l, w);
	ld.param.b32 %r2, [r];
	}
	add.u32 %r, %r, %r2;";
    let want = |t: u32| if t > 3 { 2 * t } else { t } + t + 1050;
    assert_eq!(words(FUNCTIONS, body, 8), (0..8).map(want).collect::<Vec<_>>());
    let endless = ".func f() { call f; ret; }";
    assert!(fails(endless, "call f;\nmov.b32 %r, 0;", 1).contains("calls are within each other"));
}

#[test]
fn warps() {
    let body = "
	shfl.sync.bfly.b32 %r1|%p1, %t, 5, 31, -1;
	shfl.sync.up.b32 %r2|%p2, %t, 1, 0, -1;
	selp.b32 %r3, 1000, 0, %p2;
	setp.lt.u32 %p3, %t, 4;
	vote.sync.ballot.b32 %r4, !%p3, -1;
	match.any.sync.b32 %r5, %r3, -1;
	redux.sync.add.u32 %r6, %t, -1;
	elect.sync %r7|%p4, -1;
	selp.b32 %r7, 7, 0, %p4;
	popc.b32 %r4, %r4;
	popc.b32 %r5, %r5;
	add.u32 %r, %r1, %r2;
	add.u32 %r, %r, %r3;
	add.u32 %r, %r, %r4;
	add.u32 %r, %r, %r5;
	add.u32 %r, %r, %r6;
	add.u32 %r, %r, %r7;";
    let want = |t: u32| {
        let first = t == 0;
        (t ^ 5)
            + t.saturating_sub(1)
            + if first { 0 } else { 1000 }
            + 28
            + if first { 1 } else { 31 }
            + 496
            + if first { 7 } else { 0 }
    };
    assert_eq!(words("", body, 32), (0..32).map(want).collect::<Vec<_>>());
    // Lanes that come one by one meet.
    let body = "
	setp.lt.u32 %p1, %t, 16;
	@%p1 bra LOW;
	redux.sync.max.u32 %r, %t, -1;
	bra JOIN;
LOW:
	redux.sync.max.u32 %r, %t, 65535;
JOIN: bar.sync 0;";
    assert!(fails("", body, 32).contains("do not come"));
    let body = body.replace("%r, %t, -1", "%r, %t, 0xffff0000");
    assert_eq!(words("", &body, 32), (0..32).map(|t| if t < 16 { 15 } else { 31 }).collect::<Vec<_>>());
}

#[test]
fn barriers_and_shared_memory() {
    let before = ".shared .align 4 .b8 s[256];\n.extern .shared .align 16 .b8 d[];\n";
    let body = "
	mov.u32 %r1, s;
	mad.lo.u32 %r2, %t, 4, %r1;
	st.shared.b32 [%r2], %t;
	bar.sync 0;
	xor.b32 %r3, %t, 63;
	mad.lo.u32 %r4, %r3, 4, %r1;
	ld.shared.b32 %r, [%r4];
	setp.lt.u32 %p1, %t, 40;
	bar.red.popc.u32 %r5, 1, 64, %p1;
	barrier.cta.red.and.pred %p2, 2, %p1;
	selp.b32 %r6, 100000, 0, %p2;
	atom.shared.add.u32 %r7, [d], 1;
	barrier.sync.aligned 3;
	ld.shared.b32 %r8, [d];
	mad.lo.u32 %r, %r5, 100, %r;
	add.u32 %r, %r, %r6;
	mad.lo.u32 %r, %r8, 10000, %r;";
    let body = format!("setp.eq.u32 %p5, %t, 0;\n@%p5 st.shared.b32 [d], 0;\nbar.sync 0;{body}");
    let want = |t: u32| (t ^ 63) + 4000 + 640_000;
    let got = words_in(&kernel(before, &body), 1, 64, 4, 1).unwrap();
    assert_eq!(got, (0..64).map(want).collect::<Vec<_>>());
    let apart = "setp.lt.u32 %p1, %t, 5;\nmov.b32 %r, 0;\n@%p1 bra END;\nbar.sync 0;\nbar.sync 0;\nEND: bar.sync 1;";
    assert!(fails("", apart, 32).contains("do not come"), "{}", fails("", apart, 32));
    let race = "mov.u32 %r1, s;\nst.shared.b32 [%r1], %t;\nld.shared.b32 %r, [%r1];";
    assert!(fails(before, race, 64).contains("race"), "{}", fails(before, race, 64));
}

#[test]
fn clusters() {
    let before = ".shared .align 4 .b32 s;\n";
    let body = "
	mov.u32 %r1, %cluster_ctarank;
	mov.u32 %r2, s;
	st.shared.b32 [%r2], %r1;
	barrier.cluster.arrive.release.aligned;
	barrier.cluster.wait.acquire.aligned;
	xor.b32 %r3, %r1, 1;
	mapa.shared::cluster.u32 %r4, %r2, %r3;
	getctarank.shared::cluster.u32 %r5, %r4;
	ld.shared::cluster.b32 %r6, [%r4];
	cvta.shared.u64 %rd1, s;
	mapa.u64 %rd2, %rd1, %r3;
	ld.b32 %r7, [%rd2];
	isspacep.shared::cta %p1, %rd2;
	isspacep.shared::cluster %p2, %rd2;
	selp.b32 %r8, 1, 0, %p1;
	selp.b32 %r9, 2, 0, %p2;
	mad.lo.u32 %r, %r5, 10, %r6;
	mad.lo.u32 %r, %r7, 100, %r;
	mad.lo.u32 %r, %r8, 1000, %r;
	mad.lo.u32 %r, %r9, 1000, %r;
	mov.u32 %r10, %ctaid.x;
	mad.wide.u32 %out, %r10, 4, %base;
	barrier.cluster.arrive;
	barrier.cluster.wait;";
    let got = words_in(&kernel(before, body), 4, 1, 0, 2).unwrap();
    assert_eq!(got, [2111, 2000, 2111, 2000]);
}

#[test]
fn atomics_and_vectors() {
    let before =
        ".global .align 16 .b32 g[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n.const .align 4 .f32 c[2] = {0f3F800000, 2.5};
.global .align 8 .u64 address = generic(g) + 4;\n.global .v2 .u16 pairs[2] = {{1, 2}, {3}};\n";
    let body = "
	.reg .v4 .b32 %v;
	ld.global.v4.b32 %v, [g];
	ld.const.f32 %r1, [c+4];
	ld.global.u64 %rd1, [address];
	ld.b32 %r2, [%rd1];
	ld.global.u32 %r3, [pairs+4];
	add.u32 %r, %v.x, %v.w;
	add.u32 %r, %r, %r2;
	add.u32 %r, %r, %r3;
	atom.global.cas.b32 %r4, [g+4], 2, 20;
	atom.global.cas.b32 %r5, [g+4], 2, 30;
	atom.global.exch.b32 %r6, [g+8], 9;
	red.global.max.s32 [g+12], -5;
	atom.global.inc.u32 %r7, [g+16], 5;
	atom.global.dec.u32 %r8, [g+16], 9;
	ld.global.b32 %r9, [g+16];
	add.u32 %r, %r, %r4;
	add.u32 %r, %r, %r5;
	add.u32 %r, %r, %r6;
	mad.lo.u32 %r, %r7, 1000, %r;
	mad.lo.u32 %r, %r8, 10000, %r;
	mad.lo.u32 %r, %r9, 100000, %r;
	mov.b32 %r11, 0x3c003c00;
	atom.global.add.noftz.f16x2 %r10, [g+20], %r11;
	atom.global.and.b64 %rd3, [g+24], 0;";
    // 1 + 4, 2, 3, then 2, 20, 3; 5 at g+16 wraps to 0, and 0 to 9.
    assert_eq!(words(before, body, 1), [5 + 2 + 3 + 2 + 20 + 3 + 5000 + 900_000]);
    let body = "
	mov.u32 %r2, %t;
	alloca.u64 %rd1, 16;
	st.local.b32 [%rd1+12], %r2;
	ld.local.b32 %r, [%rd1+12];
	ld.local.b32 %r3, [%rd1+16];";
    assert!(fails("", body, 1).contains("out of bounds"));
}

#[test]
fn what_is_wrong_has_a_place() {
    let error = |text: &str| Program::read(text).err().map(|e| e.to_string()).unwrap_or_default();
    let body = format!("{HEAD}.entry k() {{\n.reg .b32 %r<3>;\n  add.s32 %r1, %r2;\nret;\n}}");
    assert!(error(&body).starts_with("6:3: "), "{}", error(&body));
    assert!(error(&format!("{HEAD}.global .b32 x[2] = {{1, 2, 3}};")).contains("too many initial values"));
    assert!(error(&format!("{HEAD}.global .b64 x = nothing;")).contains("`nothing` is not declared"));
    assert!(error(&format!("{HEAD}.global .b8 x[99999999999];")).contains("too large"));
    let fault = fails("", "ld.global.b32 %r, [%out+4];", 1);
    assert!(fault.contains("at `ld.global.b32` of `k`, 14:1 (block [0, 0, 0], thread 0)"), "{fault}");
    assert!(fails("", "tcgen05.wait::ld.sync.aligned;", 1).contains("`tcgen05.wait::ld.sync.aligned` is not executed"));
    assert!(fails("", "L: bra L;", 1).contains("steps"), "endless");
}

#[test]
fn lanes_that_call_one_after_the_other_meet_in_the_callee() {
    // The call stands before the block that half of the lanes come from.
    let text = ".version 8.0\n.target sm_90\n.address_size 64\n
.func wait()
{
	bar.sync 0;
	ret;
}
.visible .entry k(.param .u64 k_param_0)
{
	.reg .pred %p<2>;
	.reg .b32 %r<4>;
	.reg .b64 %rd<4>;
	mov.u32 %r1, %tid.x;
	setp.lt.u32 %p1, %r1, 7;
	@%p1 bra $other;
$join:
	call wait, ();
	ld.param.u64 %rd1, [k_param_0];
	mad.wide.u32 %rd2, %r1, 4, %rd1;
	st.global.b32 [%rd2], %r1;
	ret;
$other:
	add.u32 %r1, %r1, 0;
	bra $join;
}
";
    let program = Program::read(text).unwrap();
    let mut buffers = [Buffer::output("out", 256)];
    let launch = Launch::linear("k", 1, 64, vec![Argument::buffer(0)]);
    run(&program, &launch, &mut buffers, &Options::default()).unwrap();
    assert_eq!(buffers[0].to_words(), (0..64).collect::<Vec<u32>>());
}
