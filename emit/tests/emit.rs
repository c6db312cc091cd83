//! One test for each directive and statement shape. Every module is assembled.

mod common;

use common::{check_lines, emit, emit_with, empty_kernel, function, module, signature};
use ptxc_emit::{EmitError, EmitOptions, emit_module};
use ptxc_mir::module::Opaque;
use ptxc_mir::{
    AsmData, AsmPiece, CallData, CallPiece, Callee, Depot, FuncKind, FunctionDecl, Global, GlobalInit, GroupKind,
    Linkage, LoopHints, Module, OpaqueKind, Operand, ParamDecl, ParamPtr, RegClass, Relocation, Signature, SourceFile,
    SourceLoc, Space, Terminator, Unroll,
};
use ptxc_targets::{PtxVersion, RegType, SpecialReg};

const RET: Terminator = Terminator::Ret { uniform: false };

fn global(module: &mut Module, name: &str, size: u64, init: Option<GlobalInit>) -> ptxc_mir::GlobalId {
    let symbol = module.symbols.intern(name);
    module.globals.push(Global {
        symbol,
        space: Space::Global,
        linkage: Linkage::Visible,
        align: 8,
        size: Some(size),
        init,
        managed: false,
    })
}

fn pointer(module: &mut Module, to: &str, offset: u64, addend: i64, generic: bool) -> Relocation {
    Relocation { offset, symbol: module.symbols.intern(to), addend, generic }
}

#[test]
fn the_header_names_the_lowest_version() {
    let mut m = module("sm_75");
    empty_kernel(&mut m, "k");
    check_lines(
        &emit(&m),
        &[".version 6.3", ".target sm_75", ".address_size 64", ".visible .entry k()", "{", "ret;", "}"],
    );
    let mut m = module("sm_100a");
    empty_kernel(&mut m, "k");
    check_lines(&emit(&m), &[".version 8.6", ".target sm_100a"]);
}

#[test]
fn a_version_asked_for_is_used_or_refused() {
    let mut m = module("sm_80");
    empty_kernel(&mut m, "k");
    m.ptx_version = PtxVersion::new(8, 0);
    check_lines(&emit(&m), &[".version 8.0"]);
    m.ptx_version = PtxVersion::new(6, 5);
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "the target needs PTX ISA version 7.0, but version 6.5 was asked for");
}

/// A kernel of one instruction with B32 registers.
fn one_instruction(target: &str, mnemonic: &str, sources: usize) -> Module {
    let mut m = module(target);
    function(&mut m, "k", FuncKind::Kernel, Signature::default(), |m, b| {
        let [d, s] = std::array::from_fn(|_| b.vreg(RegClass::B32));
        let op = m.opcodes.intern_text(mnemonic).expect("a known mnemonic");
        b.inst(op).def(d).operands(&vec![Operand::Use(s); sources]).finish();
        b.terminate(RET);
    });
    m
}

#[test]
fn instructions_raise_the_version_or_are_refused() {
    check_lines(&emit(&one_instruction("sm_75", "tanh.approx.f32", 1)), &[".version 7.0", "tanh.approx.f32 %r1, %r2;"]);
    let mut m = one_instruction("sm_75", "tanh.approx.f32", 1);
    m.ptx_version = PtxVersion::new(6, 5);
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "in `k`: `tanh.approx.f32` needs PTX ISA version 7.0, but version 6.5 was asked for");
    let m = one_instruction("sm_75", "add.rn.bf16x2", 2);
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err();
    assert!(matches!(&error, EmitError::Refused { .. }) && error.to_string().contains("sm_90"), "{error}");
}

#[test]
fn forms_that_no_table_has_are_refused_under_strict() {
    let m = one_instruction("sm_80", "add.s32", 1);
    let strict = EmitOptions { strict: true, ..EmitOptions::default() };
    assert!(matches!(emit_module(&m, &strict), Err(EmitError::Form { .. })));
    assert!(emit_module(&m, &EmitOptions::default()).is_ok());
}

#[test]
fn features_of_declarations_raise_the_version() {
    let mut m = module("sm_75");
    let f = function(&mut m, "f", FuncKind::Func, Signature::default(), |_, b| b.terminate(Terminator::Trap));
    m.functions[f].attrs.noreturn = true;
    check_lines(&emit(&m), &[".version 6.4", ".visible .func f()", ".noreturn"]);
    m.ptx_version = PtxVersion::new(6, 3);
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "`f`: `.noreturn` needs PTX ISA version 6.4, but version 6.3 was asked for");
    m.ptx_version = None;
    m.functions[f].attrs.maxnreg = Some(8);
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "`f`: launch bounds are for kernels");
    let mut m = module("sm_75");
    let k = empty_kernel(&mut m, "k");
    m.functions[k].attrs.maxclusterrank = Some(8);
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "`k`: a cluster directive needs sm_90 or later, target is sm_75");
}

#[test]
fn launch_bounds() {
    let mut m = module("sm_90");
    let k = empty_kernel(&mut m, "k");
    let attrs = &mut m.functions[k].attrs;
    attrs.reqntid = Some([128, 2, 1]);
    attrs.minnctapersm = Some(2);
    attrs.reqnctapercluster = Some([2, 1, 1]);
    attrs.blocksareclusters = true;
    let lines =
        [".version 9.0", ".reqntid 128, 2, 1", ".reqnctapercluster 2, 1, 1", ".minnctapersm 2", ".blocksareclusters"];
    check_lines(&emit(&m), &lines);
    // The kernel's address is taken before it: a declaration has no bounds. The exact shape wins over the bound.
    m.functions[k].attrs.maxntid = Some([512, 1, 1]);
    let to_k = pointer(&mut m, "k", 0, 0, false);
    global(&mut m, "table", 8, Some(GlobalInit { bytes: vec![], relocations: vec![to_k] }));
    check_lines(&emit(&m), &[".visible .entry k();", ".visible .entry k()", ".reqntid 128, 2, 1"]);
    let k = empty_kernel(&mut m, "k2");
    let attrs = &mut m.functions[k].attrs;
    attrs.maxntid = Some([256, 1, 1]);
    attrs.maxnreg = Some(64);
    attrs.maxclusterrank = Some(4);
    check_lines(&emit(&m), &[".visible .entry k2()", ".maxntid 256, 1, 1", ".maxnreg 64", ".maxclusterrank 4"]);
}

#[test]
fn parameters_and_results() {
    let mut m = module("sm_80");
    let pointer = ParamDecl {
        ptr: Some(ParamPtr { space: Some(Space::Global), align: 16 }),
        ..ParamDecl::scalar("x", RegType::U64)
    };
    let params = signature(&[ParamDecl::scalar("n", RegType::U32), pointer, ParamDecl::bytes("s", 20, 8)], &[]);
    function(&mut m, "k", FuncKind::Kernel, params, |m, b| {
        let r = b.vreg(RegClass::B32);
        let load = m.opcodes.intern_text("ld.param.b32").unwrap();
        b.inst(load).def(r).open(GroupKind::Address).operand(Operand::Param(2, 16)).finish();
        b.terminate(RET);
    });
    let sig = signature(&[ParamDecl::scalar("a", RegType::B32)], &[ParamDecl::bytes("", 8, 4)]);
    function(&mut m, "f", FuncKind::Func, sig, |m, b| {
        let store = m.opcodes.intern_text("st.param.b32").unwrap();
        b.inst(store).open(GroupKind::Address).operand(Operand::RetParam(0, 4)).close().imm(-7).finish();
        b.terminate(Terminator::Ret { uniform: true });
    });
    let text = emit(&m);
    let expected = [
        ".visible .entry k(.param .u32 k_param_0, .param .u64 .ptr .global .align 16 k_param_1, .param .align 8 .b8 k_param_2[20])",
        ".reg .b32 %r<2>;",
        "ld.param.b32 %r1, [k_param_2+16];",
        ".visible .func (.param .align 4 .b8 func_retval0[8]) f(.param .b32 f_param_0)",
        "st.param.b32 [func_retval0+4], -7;",
        "ret.uni;",
    ];
    check_lines(&text, &expected);
}

#[test]
fn variables_in_order_of_their_addresses() {
    let mut m = module("sm_80");
    let to_b = pointer(&mut m, "b", 0, 4, true);
    let to_b_again = pointer(&mut m, "b", 8, -4, false);
    let init = GlobalInit { bytes: vec![0; 16], relocations: vec![to_b, to_b_again] };
    global(&mut m, "a", 24, Some(init));
    global(&mut m, "b", 8, Some(GlobalInit { bytes: vec![1, 0, 255, 0, 0, 0, 0, 0], relocations: vec![] }));
    let s = global(&mut m, "s", 64, None);
    m.globals[s].space = Space::Shared;
    m.globals[s].linkage = Linkage::Internal;
    let d = global(&mut m, "dyn", 0, None);
    m.globals[d].space = Space::Shared;
    m.globals[d].linkage = Linkage::Extern;
    m.globals[d].size = None;
    let e = global(&mut m, "empty", 0, None);
    m.globals[e].managed = true;
    let c = global(&mut m, "com", 4, None);
    m.globals[c].linkage = Linkage::Common;
    empty_kernel(&mut m, "k");
    let expected = [
        ".visible .global .align 8 .b8 b[8] = {1, 0, 255};",
        ".visible .global .align 8 .u64 a[3] = {generic(b)+4, b+-4};",
        ".shared .align 8 .b8 s[64];",
        ".extern .shared .align 8 .b8 dyn[];",
        ".visible .global .attribute(.managed) .align 8 .b8 empty[1];",
        ".common .global .align 8 .b8 com[4];",
    ];
    check_lines(&emit(&m), &expected);
}

#[test]
fn variables_that_point_to_each_other() {
    let mut m = module("sm_80");
    let mut ids = Vec::new();
    for (name, to) in [("a", "b"), ("b", "c"), ("c", "a"), ("self", "self")] {
        let relocation = pointer(&mut m, to, 0, 8, true);
        ids.push(global(&mut m, name, 8, Some(GlobalInit { bytes: vec![], relocations: vec![relocation] })));
    }
    m.globals[ids[0]].linkage = Linkage::Internal;
    m.globals[ids[2]].linkage = Linkage::Internal;
    empty_kernel(&mut m, "k");
    let expected = [
        ".extern .global .align 8 .u64 b[1];",
        ".global .align 8 .u64 a[1] = {generic(b)+8};",
        ".global .align 8 .u64 c[1] = {generic(a)+8};",
        ".visible .global .align 8 .u64 b[1] = {generic(c)+8};",
        ".visible .global .align 8 .u64 self[1] = {generic(self)+8};",
    ];
    check_lines(&emit(&m), &expected);
    m.globals[ids[1]].linkage = Linkage::Internal;
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err().to_string();
    assert!(error.contains("`a` -> `b` -> `c` -> `a`; make one of them visible"), "{error}");
}

#[test]
fn unaligned_addresses_are_masked() {
    let mut m = module("sm_75");
    global(&mut m, "b", 8, None);
    let to_b = pointer(&mut m, "b", 4, 1, true);
    let init = GlobalInit { bytes: vec![9], relocations: vec![to_b] };
    global(&mut m, "a", 12, Some(init));
    empty_kernel(&mut m, "k");
    let text = emit(&m);
    check_lines(&text, &[".version 7.1"]);
    assert!(text.contains(".u8 a[12] = {9, 0, 0, 0, 0xFF(generic(b)+1), 0xFF00(generic(b)+1), "), "{text}");
}

#[test]
fn function_addresses_in_initializers_have_no_generic() {
    let mut m = module("sm_80");
    let to_f = pointer(&mut m, "f", 0, 0, true);
    global(&mut m, "table", 8, Some(GlobalInit { bytes: vec![], relocations: vec![to_f] }));
    let sig = signature(&[ParamDecl::scalar("a", RegType::B32)], &[]);
    function(&mut m, "f", FuncKind::Func, sig, |_, b| b.terminate(RET));
    let expected = [
        ".visible .func f(.param .b32 f_param_0);",
        ".visible .global .align 8 .u64 table[1] = {f};",
        ".visible .func f(.param .b32 f_param_0)",
    ];
    check_lines(&emit(&m), &expected);
}

#[test]
fn variables_that_ptx_cannot_express_are_refused() {
    let refused = |change: fn(&mut Global)| {
        let mut m = module("sm_80");
        let id = global(&mut m, "x", 4, Some(GlobalInit { bytes: vec![1], relocations: vec![] }));
        change(&mut m.globals[id]);
        match emit_module(&m, &EmitOptions::default()) {
            Err(EmitError::Variable { name, message }) if name == "x" => message,
            other => panic!("not refused: {other:?}"),
        }
    };
    assert!(refused(|g| g.space = Space::Shared).contains("shared space"));
    assert!(refused(|g| g.space = Space::Local).contains("local"));
    assert!(refused(|g| g.linkage = Linkage::Extern).contains("extern"));
    assert!(refused(|g| g.size = Some(0)).contains("longer"));
    assert!(refused(|g| g.size = None).contains("size"));
    assert!(refused(|g| g.align = 3).contains("power of two"));
    assert!(refused(|g| (g.managed, g.space) = (true, Space::Const)).contains("managed"));
    assert!(refused(|g| (g.init, g.size) = (None, None)).contains("extern"));
}

#[test]
fn textures_surfaces_and_samplers() {
    let mut m = module("sm_80");
    for (name, kind) in [("t", OpaqueKind::Texture), ("u", OpaqueKind::Surface)] {
        let symbol = m.symbols.intern(name);
        m.opaques.push(Opaque { symbol, kind, linkage: Linkage::Internal });
    }
    empty_kernel(&mut m, "k");
    check_lines(&emit(&m), &[".target sm_80", ".global .texref t;", ".global .surfref u;"]);
    let symbol = m.symbols.intern("s");
    m.opaques.push(Opaque { symbol, kind: OpaqueKind::Sampler, linkage: Linkage::Internal });
    check_lines(&emit(&m), &[".target sm_80, texmode_independent", ".global .samplerref s;"]);
}

#[test]
fn calls_direct_and_indirect() {
    let mut m = module("sm_80");
    let sig = signature(
        &[ParamDecl::scalar("a", RegType::B32), ParamDecl::bytes("s", 16, 8)],
        &[ParamDecl::scalar("", RegType::B32)],
    );
    let f = m.symbols.intern("f");
    let proto = m.prototype(sig.clone());
    let call = CallData {
        callee: Callee::Symbol(f),
        params: sig.params.clone(),
        returns: sig.returns.clone(),
        args: vec![
            CallPiece { param: 0, offset: 0, ty: RegType::B32, len: 1 },
            CallPiece { param: 1, offset: 8, ty: RegType::B32, len: 2 },
        ],
        rets: vec![CallPiece { param: 0, offset: 0, ty: RegType::B32, len: 1 }],
        uniform: true,
    };
    function(&mut m, "k", FuncKind::Kernel, Signature::default(), |m, b| {
        let (r, d, address) = (b.vreg(RegClass::B32), b.vreg(RegClass::B32), b.vreg(RegClass::B64));
        let mov = m.opcodes.intern_text("mov.b64").unwrap();
        b.inst(mov).def(address).sym(f, 0).finish();
        b.call(call.clone(), &[Operand::Imm(5), Operand::Imm(1), Operand::Imm(2), Operand::Def(r)]);
        let indirect = CallData { callee: Callee::Indirect(proto), uniform: false, ..call };
        b.call(indirect, &[Operand::Use(address), Operand::Use(r), Operand::Use(r), Operand::Use(r), Operand::Def(d)]);
        b.terminate(RET);
    });
    function(&mut m, "f", FuncKind::Func, sig, |_, b| b.terminate(RET));
    let expected = [
        ".visible .func (.param .b32 func_retval0) f(.param .b32 f_param_0, .param .align 8 .b8 f_param_1[16]);",
        ".visible .entry k()",
        "mov.b64 %rd1, f;",
        "{",
        ".param .b32 param0;",
        ".param .align 8 .b8 param1[16];",
        ".param .b32 retval0;",
        "st.param.b32 [param0], 5;",
        "st.param.v2.b32 [param1+8], {1, 2};",
        "call.uni (retval0), f, (param0, param1);",
        "ld.param.b32 %r1, [retval0];",
        "}",
        "prototype_0: .callprototype (.param .b32 _) _ (.param .b32 _, .param .align 8 .b8 _[16]);",
        "call (retval0), %rd1, (param0, param1), prototype_0;",
        "ld.param.b32 %r2, [retval0];",
    ];
    check_lines(&emit(&m), &expected);
}

#[test]
fn only_declarations_in_use_are_printed() {
    let mut m = module("sm_80");
    for name in ["used", "unused"] {
        let name = m.symbols.intern(name);
        let (kind, attrs) = (FuncKind::Func, Default::default());
        m.declarations.push(FunctionDecl { name, kind, signature: Signature::default(), attrs });
    }
    let used = m.declarations[0].name;
    function(&mut m, "k", FuncKind::Kernel, Signature::default(), |_, b| {
        let data = CallData {
            callee: Callee::Symbol(used),
            params: vec![],
            returns: vec![],
            args: vec![],
            rets: vec![],
            uniform: false,
        };
        b.call(data, &[]);
        b.terminate(RET);
    });
    let text = emit(&m);
    check_lines(&text, &[".extern .func used();", "call used, ();"]);
    assert!(!text.contains("unused"));
}

#[test]
fn undefined_symbols_are_refused() {
    let mut m = module("sm_80");
    function(&mut m, "k", FuncKind::Kernel, Signature::default(), |m, b| {
        let (r, symbol) = (b.vreg(RegClass::B64), m.symbols.intern("nowhere"));
        let mov = m.opcodes.intern_text("mov.b64").unwrap();
        let loc = b.func.add_loc(SourceLoc { file: 1, line: 7, column: 3 });
        b.set_loc(loc);
        b.inst(mov).def(r).sym(symbol, 0).finish();
        b.terminate(RET);
    });
    m.files.push(SourceFile { number: 1, path: "a.cu".into() });
    let error = emit_module(&m, &EmitOptions::default()).unwrap_err().to_string();
    assert_eq!(error, "a.cu:7:3: in `k`: `nowhere` is neither defined nor declared");
}

#[test]
fn two_definitions_of_a_name_are_refused() {
    let mut m = module("sm_80");
    empty_kernel(&mut m, "k");
    global(&mut m, "k", 4, None);
    assert_eq!(emit_module(&m, &EmitOptions::default()), Err(EmitError::DefinedTwice("k".into())));
}

#[test]
fn branches_fall_through_where_they_can() {
    let mut m = module("sm_80");
    function(&mut m, "k", FuncKind::Kernel, Signature::default(), |_, b| {
        let p = b.vreg(RegClass::Pred);
        let [left, right, both, last] = std::array::from_fn(|_| b.func.new_block());
        let (to_left, to_right) = (b.target(left, &[]), b.target(right, &[]));
        b.cond_bra(p, false, to_left, to_right);
        b.switch_to(left);
        b.jump(both, &[]);
        b.switch_to(right);
        b.jump(both, &[]);
        b.switch_to(both);
        b.func.blocks[both].hints = LoopHints { unroll: Unroll::Never, stages: 0 };
        let (again, out) = (b.target(both, &[]), b.target(left, &[]));
        b.cond_bra(p, true, again, out);
        b.switch_to(last);
        b.terminate(Terminator::Unreachable);
    });
    let expected = [
        "@!%p1 bra $L__BB0_2;",
        "$L__BB0_1:",
        "bra.uni $L__BB0_3;",
        "$L__BB0_2:",
        "$L__BB0_3:",
        ".pragma \"nounroll\";",
        "@%p1 bra.uni $L__BB0_3;",
        "bra.uni $L__BB0_1;",
        "exit;",
    ];
    check_lines(&emit(&m), &expected);
}

#[test]
fn branch_tables() {
    let mut m = module("sm_80");
    function(&mut m, "k", FuncKind::Kernel, Signature::default(), |_, b| {
        let i = b.vreg(RegClass::B32);
        let [x, y] = std::array::from_fn(|_| b.func.new_block());
        let targets = vec![b.target(x, &[]), b.target(y, &[]), b.target(x, &[])];
        b.terminate(Terminator::BrxIdx { index: i, uniform: true, targets });
        for block in [x, y] {
            b.switch_to(block);
            b.terminate(Terminator::Exit);
        }
    });
    let expected = [
        "$L__TABLE0_0:",
        ".branchtargets",
        "$L__BB0_1,",
        "$L__BB0_2,",
        "$L__BB0_1;",
        "brx.idx.uni %r1, $L__TABLE0_0;",
        "$L__BB0_1:",
        "exit;",
        "$L__BB0_2:",
    ];
    check_lines(&emit(&m), &expected);
}

#[test]
fn every_kind_of_operand() {
    let mut m = module("sm_80");
    global(&mut m, "data", 64, None);
    let k = function(&mut m, "k", FuncKind::Kernel, Signature::default(), |m, b| {
        let mut op = |text: &str| m.opcodes.intern_text(text).unwrap();
        let [p, q] = std::array::from_fn(|_| b.vreg(RegClass::Pred));
        let [r, s] = std::array::from_fn(|_| b.vreg(RegClass::B32));
        let [d, e] = std::array::from_fn(|_| b.vreg(RegClass::B64));
        let h = b.vreg(RegClass::B16);
        b.inst(op("mov.u32")).def(r).sreg(SpecialReg::from_name("tid.x").unwrap()).finish();
        b.inst(op("mov.u64")).def(d).operand(Operand::Depot(8)).finish();
        b.inst(op("mov.f32")).def(s).operand(Operand::F32(0x3f80_0000)).finish();
        b.inst(op("mov.f64")).def(e).operand(Operand::F64(1)).finish();
        b.inst(op("mov.b16")).def(h).imm(0x3c00).finish();
        b.inst(op("setp.lt.and.s32"))
            .open(GroupKind::Pair)
            .def(p)
            .def(q)
            .close()
            .used(r)
            .imm(i64::from(i32::MIN))
            .operand(Operand::UseNot(p))
            .finish();
        b.inst(op("setp.eq.and.s32"))
            .open(GroupKind::Pair)
            .operand(Operand::Sink)
            .def(q)
            .close()
            .used(r)
            .imm(0)
            .operand(Operand::UseNot(p))
            .finish();
        b.inst(op("ld.global.v2.b32")).def_vector(&[r, s]).address(d, -16).guard(p, true).finish();
        let data = m.symbols.intern("data");
        let mut op = |text: &str| m.opcodes.intern_text(text).unwrap();
        b.inst(op("st.global.b32")).open(GroupKind::Address).sym(data, 12).close().used(r).finish();
        b.copy(q, p);
        let text = |t: &str| AsmPiece::Text(t.into());
        let pieces = vec![
            text("{ .reg .b32 t; add.s32 t, "),
            AsmPiece::Operand(1),
            text(", 1; mov.b32 "),
            AsmPiece::Operand(0),
            text(", t; }"),
        ];
        b.asm(AsmData { pieces }, &[Operand::Def(s), Operand::Use(r)]);
        b.terminate(RET);
    });
    m.functions[k].depot = Depot { size: 48, align: 16 };
    let expected = [
        ".local .align 16 .b8 __local_depot0[48];",
        ".reg .pred %p<3>;",
        ".reg .b16 %rs<2>;",
        "mov.u32 %r1, %tid.x;",
        "mov.u64 %rd1, __local_depot0+8;",
        "mov.f32 %r2, 0f3F800000;",
        "mov.f64 %rd2, 0d0000000000000001;",
        "mov.b16 %rs1, 15360;",
        "setp.lt.and.s32 %p1|%p2, %r1, -2147483648, !%p1;",
        "setp.eq.and.s32 _|%p2, %r1, 0, !%p1;",
        "@!%p1 ld.global.v2.b32 {%r1, %r2}, [%rd1+-16];",
        "st.global.b32 [data+12], %r1;",
        "mov.pred %p2, %p1;",
        "{ .reg .b32 t; add.s32 t, %r1, 1; mov.b32 %r2, t; }",
    ];
    check_lines(&emit(&m), &expected);
}

#[test]
fn source_lines() {
    let mut m = module("sm_80");
    m.files.push(SourceFile { number: 1, path: "dir/a.cu".into() });
    function(&mut m, "k", FuncKind::Kernel, Signature::default(), |m, b| {
        let r = b.vreg(RegClass::B32);
        let mov = m.opcodes.intern_text("mov.b32").unwrap();
        for line in [3, 3, 4] {
            let loc = b.func.add_loc(SourceLoc { file: 1, line, column: 5 });
            b.set_loc(loc);
            b.inst(mov).def(r).imm(1).finish();
        }
        b.terminate(RET);
    });
    let options = EmitOptions { lineinfo: true, ..EmitOptions::default() };
    let text = emit_with(&m, options);
    check_lines(
        &text,
        &[
            ".file 1 \"dir/a.cu\"",
            ".loc 1 3 5",
            "mov.b32 %r1, 1;",
            "mov.b32 %r1, 1;",
            ".loc 1 4 5",
            "mov.b32 %r1, 1;",
            "ret;",
        ],
    );
    assert_eq!(text.matches(".loc").count(), 2);
    assert!(!emit(&m).contains(".loc"));
}

#[test]
fn debug_sections() {
    let mut m = module("sm_90");
    m.files.push(SourceFile { number: 1, path: "dir/a.cu".into() });
    m.files.push(SourceFile { number: 3, path: "b.h".into() });
    for (name, file) in [("k", 1), ("a::f", 3)] {
        let kind = if file == 1 { FuncKind::Kernel } else { FuncKind::Func };
        function(&mut m, name, kind, Signature::default(), |m, b| {
            let loc = b.func.add_loc(SourceLoc { file, line: 9, column: 1 });
            b.func.loc = loc;
            b.set_loc(loc);
            let r = b.vreg(RegClass::B32);
            let mov = m.opcodes.intern_text("mov.b32").unwrap();
            b.inst(mov).def(r).imm(1).finish();
            b.terminate(RET);
        });
    }
    let options = EmitOptions { debug: true, ..EmitOptions::default() };
    let text = emit_with(&m, options);
    let expected = [
        ".target sm_90, debug",
        ".file 3 \"b.h\"",
        ".loc 1 9 1",
        "$L__BEGIN0:",
        "$L__END0:",
        "$L__BEGIN1:",
        ".section .debug_abbrev",
        ".section .debug_info",
        ".b32 .debug_abbrev",
        ".b64 $L__BEGIN0",
        ".b64 $L__END1",
        ".b32 .debug_line",
        ".b64 $L__BEGIN0",
        ".b64 $L__END0",
        ".b64 $L__BEGIN1",
        ".b64 $L__END1",
    ];
    check_lines(&text, &expected);
}

#[test]
fn functions_still_in_ssa_form_are_refused() {
    let mut m = module("sm_80");
    let k = empty_kernel(&mut m, "k");
    let entry = m.functions[k].layout[0];
    let v = m.functions[k].new_vreg(RegClass::B32);
    m.functions[k].blocks[entry].params.push(v);
    assert!(matches!(emit_module(&m, &EmitOptions::default()), Err(EmitError::Internal(_))));
}
