//! A module that breaks each rule, and that rule alone.

#![allow(clippy::unwrap_used)] // a failure fails the test

use ptxc_ir::*;

/// The rules that a module breaks, each once.
fn broken(module: &Module) -> Vec<Rule> {
    let mut rules: Vec<Rule> = verify_module(module).iter().map(|e| e.rule).collect();
    rules.dedup();
    rules
}

fn read(text: &str) -> Module {
    read_module(text).unwrap_or_else(|errors| {
        let list: Vec<String> = errors.iter().map(|e| e.with_position(text)).collect();
        panic!("{}\n{text}", list.join("\n"))
    })
}

/// A function with parameters of many types whose body is `body`.
fn body(body: &str) -> String {
    format!(
        "file 1 \"x.cu\"
global @g: i32
shared @s: [4 x i32]
const @c: i32 = 1
declare func @callee(i32) -> i32
kernel @kernel() {{
entry:
  ret
}}
func @f(%i: i32, %j: i64, %x: f32, %h: f16, %d: f64, %b: i1, %p: ptr<global>, %q: ptr, %l: ptr<local>, %v: <4 x i32>, \
%w: <4 x f32>, %n: e4m3, %t: ptr<tensor>, %bf: bf16, %k: i8, %cp: ptr<const>, %pv: <4 x ptr>) {{
entry:
  {body}
  ret
}}
"
    )
}

/// Rules broken by one line of a function.
const LINES: &[(Rule, &str)] = &[
    (Rule::FlagType, "%r = fadd sat f64 %d, %d"),
    (Rule::FlagType, "%r = fma relu f32 %x, %x, %x"),
    (Rule::FlagType, "%r = fptrunc relu f64 %d to f32"),
    (Rule::ControllingType, "%r = add f32 %x, %x"),
    (Rule::ControllingType, "%r = fadd i32 %i, %i"),
    (Rule::ControllingType, "%r = fadd e4m3 %n, %n"),
    (Rule::ControllingType, "%r = bswap i8 %k"),
    (Rule::ControllingType, "%r = icmp eq f32 %x, %x"),
    (Rule::ControllingType, "%r = reduce.add <4 x f32> %w"),
    (Rule::ControllingType, "%r = reduce.fadd <4 x i32> %v"),
    (Rule::ControllingType, "%r = redux.add i64 %j, -1"),
    (Rule::ControllingType, "%r = atomicrmw add i7 %q, 1, relaxed"),
    (Rule::OperandType, "%r = load f32, %i"),
    (Rule::OperandType, "%r = extract <4 x i32> %v, %x"),
    (Rule::OperandType, "barrier.sync %j"),
    (Rule::OperandType, "%r = vote.any %b, %j"),
    (Rule::OperandType, "call_indirect (), %p()"),
    (Rule::OperandType, "memset %q, %i, 4"),
    (Rule::OperandType, "memcpy %q, %q, %k"),
    (Rule::OperandType, "%r = gep i32, %i, 0"),
    (Rule::ConversionKind, "%r = trunc f32 %x to i16"),
    (Rule::ConversionKind, "%r = zext <4 x i32> %v to i64"),
    (Rule::ConversionKind, "%r = fptosi e4m3 %n to i32"),
    (Rule::ConversionKind, "%r = ptrtoint i32 %i to i64"),
    (Rule::ConversionKind, "%r = inttoptr ptr %q to ptr"),
    (Rule::ConversionKind, "%r = addrspacecast i64 %j to ptr"),
    (Rule::ConversionKind, "%r = fptrunc_stochastic f32 %x, %i to f16"),
    (Rule::ConversionKind, "%r = fptrunc_stochastic <4 x f32> %w, %i to <4 x f16>"),
    (Rule::ConversionKind, "%r = fptrunc_stochastic <4 x f32> %w, %i to <4 x ue8m0>"),
    (Rule::OperandType, "%r = fptrunc_stochastic <4 x f32> %w, %j to <4 x e4m3>"),
    (Rule::ControllingType, "%r = redux.fmin i32 %i, -1"),
    (Rule::ConversionWidth, "%r = trunc i32 %i to i32"),
    (Rule::ConversionWidth, "%r = sext i64 %j to i32"),
    (Rule::ConversionWidth, "%r = fptrunc f32 %x to f64"),
    (Rule::ConversionWidth, "%r = fpext f64 %d to f32"),
    (Rule::ConversionWidth, "%r = fptrunc f64 %d to e4m3"),
    (Rule::ConversionWidth, "%r = fptrunc f16 %h to bf16"),
    (Rule::BitcastSize, "%r = bitcast i32 %i to i64"),
    (Rule::BitcastSize, "%r = bitcast i64 %j to ptr"),
    (Rule::BitcastSize, "%r = bitcast ptr<global> %p to ptr"),
    (Rule::SpaceCast, "%r = addrspacecast ptr<global> %p to ptr<local>"),
    (Rule::SpaceCast, "%r = addrspacecast ptr %q to ptr"),
    (Rule::SpaceCast, "%r = addrspacecast ptr<tensor> %t to ptr"),
    (Rule::SelectCondition, "%r = select i32 %i, f32 %x, %x"),
    (Rule::SelectCondition, "%r = select <2 x i1> zero, <4 x i32> %v, %v"),
    (Rule::LaneRange, "%r = extract <4 x i32> %v, 4"),
    (Rule::LaneRange, "%r = insert <4 x i32> %v, 1, -1"),
    (Rule::ShuffleMask, "%r = shuffle <4 x i32> %v, %v, [0, 8]"),
    (Rule::AccessSpace, "%r = load f32, %t"),
    (Rule::AccessSpace, "store f32 %x, %t"),
    (Rule::ReadOnlySpace, "store i32 1, @c"),
    (Rule::ReadOnlySpace, "memset %cp, 0, 4"),
    (Rule::AccessOrder, "%r = load i32, %p, release"),
    (Rule::AccessOrder, "store i32 1, %p, acquire"),
    (Rule::AccessOrder, "store i32 1, %p, acq_rel"),
    (Rule::OrderedType, "%r = load <4 x i32>, %p, acquire"),
    (Rule::OrderedType, "%r = load i32, %p, acquire, align 2"),
    (Rule::AccessScope, "%r = load i32, %p, scope(cta)"),
    (Rule::Invariant, "%r = load i32, %p, invariant, volatile"),
    (Rule::Invariant, "store i32 1, %p, invariant"),
    (Rule::CacheOperator, "%r = load i32, %p, cache(wb)"),
    (Rule::CacheOperator, "store i32 1, %p, cache(lu)"),
    (Rule::CacheOperator, "%r = load i32, %p, volatile, cache(cg)"),
    (Rule::CacheHint, "%r = load i32, @s, l1(evict_first)"),
    (Rule::CacheHint, "%r = load i32, %p, l1(evict_first), cache(cg)"),
    (Rule::CacheHint, "store i32 1, %p, prefetch(64)"),
    (Rule::CacheHint, "%r = atomicrmw add i32 %p, 1, relaxed, l2(evict_last)"),
    (Rule::AtomicType, "%r = atomicrmw add f32 %p, 1.0, relaxed"),
    (Rule::AtomicType, "%r = atomicrmw fadd i32 %p, 1, relaxed"),
    (Rule::AtomicType, "%r, %o = cmpxchg f32 %p, 1.0, 2.0, relaxed, relaxed"),
    (Rule::AtomicSpace, "%r = atomicrmw add i32 %l, 1, relaxed"),
    (Rule::AtomicSpace, "%r = atomicrmw add i32 @c, 1, relaxed"),
    (Rule::AtomicAlign, "%r = atomicrmw add i32 %p, 1, relaxed, align 2"),
    (Rule::FailureOrder, "%r, %o = cmpxchg i32 %p, 1, 2, acq_rel, release"),
    (Rule::FenceOrder, "fence relaxed"),
    (Rule::GepIndex, "%r = gep i32, %p, 0, 1"),
    (Rule::GepIndex, "%r = gep i32, %p, %x"),
    (Rule::GepIndex, "%r = gep i32, %p, %v"),
    (Rule::GepField, "%r = gep { i32, i64 }, %p, 0, %i"),
    (Rule::GepField, "%r = gep { i32, i64 }, %p, 0, 2"),
    (Rule::OperandCount, "%r = gep i32, %p"),
    (Rule::AllocaShape, "%r = alloca i32, count 0"),
    (Rule::ObjectSize, "%r = alloca [1099511627776 x i8]"),
    (Rule::SpaceQuery, "%r = isspace generic %q"),
    (Rule::SpaceQuery, "%r = isspace shared %p"),
    (Rule::CallKernel, "call @kernel()"),
    (Rule::BarrierNumber, "barrier.sync 16"),
    (Rule::BarrierNumber, "barrier.sync 0, 33"),
    (Rule::BarrierNumber, "%r = barrier.red.and 0, 0, %b"),
    (Rule::LaneType, "%r = shfl.idx i128 1, 0, 31, -1"),
    (Rule::LaneType, "%r = match.any <4 x i32> %v, -1"),
    (Rule::LocationFile, "%r = add i32 %i, 1 loc(2, 1, 1)"),
    (Rule::PointerAttribute, "call_indirect (i32 byval(i32)), %q(1)"),
];

/// Rules broken by a module as text.
const MODULES: &[(Rule, &str)] = &[
    (Rule::InitializerAllowed, "shared @s: i32 = 1"),
    (Rule::InitializerAllowed, "extern global @s: i32 = 1"),
    (Rule::InitializerAddress, "shared @s: i32\nglobal @p: ptr = generic(@s)"),
    (Rule::InitializerAddress, "texture @t\nglobal @p: ptr<global> = @t"),
    (Rule::GlobalAlign, "global @s: i32, align 2"),
    (Rule::CommonLinkage, "common global @s: i32 = 1"),
    (Rule::CommonLinkage, "common shared @s: i32"),
    (Rule::ObjectSize, "global @s: [1099511627776 x i8]"),
    (Rule::ObjectSize, "global @s: [18446744073709551615 x [18446744073709551615 x i64]]"),
    (Rule::KernelReturn, "declare kernel @k() -> i32"),
    (Rule::FunctionLinkage, "common func @f() {\ne:\n  ret\n}"),
    (Rule::PointerAttribute, "declare func @f(i32 noalias)"),
    (Rule::PointerAttribute, "declare func @f(f32 align 4)"),
    (Rule::Byval, "declare kernel @f(ptr byval(i32))"),
    (Rule::Byval, "declare func @f(ptr<param> byval(i32))"),
    (Rule::Byval, "declare kernel @f(ptr<param>)"),
    (Rule::GridConstant, "declare func @f(ptr byval(i32) grid_constant)"),
    (Rule::GridConstant, "declare kernel @f(i32 grid_constant)"),
    (Rule::Extension, "declare func @f(i32 signext)"),
    (Rule::Extension, "declare func @f(i8 signext zeroext)"),
    (Rule::BoundsOnKernel, "declare func @f() maxnreg(32)"),
    (Rule::BoundsSize, "declare kernel @f() reqntid(33, 33)"),
    (Rule::BoundsSize, "declare kernel @f() maxntid(0)"),
    (Rule::BoundsSize, "declare kernel @f() maxnreg(256)"),
    (Rule::BoundsCombination, "declare kernel @f() reqntid(32) maxntid(32)"),
    (Rule::BoundsCombination, "declare kernel @f() minnctapersm(2)"),
    (Rule::BoundsCombination, "declare kernel @f() reqnctapercluster(2) maxclusterrank(2)"),
    (Rule::BoundsCombination, "declare kernel @f() blocksareclusters"),
    (Rule::AttributeConflict, "declare func @f() noinline alwaysinline"),
    (Rule::ParamSpace, "declare kernel @f(ptr<param> byval([32765 x i8]))"),
    (Rule::SignatureSize, "declare func @f([1000 x i8], [1000 x i8])"),
    (Rule::EntryBranch, "func @f() {\ne:\n  jump e\n}"),
    (Rule::Terminator, "func @f() {\ne:\n}"),
    (Rule::Terminator, "func @f() {\ne:\n  breakpoint\n}"),
    (Rule::TerminatorInside, "func @f() {\ne:\n  ret\n  ret\n}"),
    (Rule::Dominance, "func @f() {\ne:\n  %a = add i32 %b, 1\n  %b = add i32 1, 1\n  ret\n}"),
    (Rule::Dominance, "func @f() {\ne:\n  %a = add i32 %a, 1\n  ret\n}"),
    (
        Rule::Dominance,
        "func @f(%c: i1) -> i32 {\ne:\n  br %c, l, r\nl:\n  %a = add i32 1, 1\n  jump r\nr:\n  ret %a\n}",
    ),
    (
        Rule::Dominance,
        "func @f() -> i32 {\ne:\n  jump b(1)\na:\n  jump b(2)\nb(%x: i32):\n  jump c\nc:\n  ret %y\nd(%y: i32):\n  ret %y\n}",
    ),
    (Rule::SwitchCases, "func @f(%i: i8) {\ne:\n  switch i8 %i, d [255: d, -1: d]\nd:\n  ret\n}"),
    (Rule::ControllingType, "func @f(%v: <2 x i32>) {\ne:\n  %r = bswap <2 x i8> zero\n  ret\n}"),
    (Rule::AllocaPlace, "func @f() {\ne:\n  jump b\nb:\n  %a = alloca i32\n  ret\n}"),
    (
        Rule::AlignedBarrier,
        "kernel @f() {\ne:\n  %t = sreg.tid.x\n  %c = icmp eq i32 %t, 0\n  br %c, b, d\nb:\n  barrier.sync aligned 0\n  jump d\nd:\n  ret\n}",
    ),
    (Rule::Promise, "func @f() nonconvergent {\ne:\n  barrier.sync 0\n  ret\n}"),
    (Rule::Promise, "func @f() nonconvergent {\ne:\n  ptx.bar.warp.sync -1\n  ret\n}"),
    (Rule::Promise, "func @f() nonconvergent {\ne:\n  call @g()\n  ret\n}\ndeclare func @g()"),
    (Rule::Promise, "func @f(%p: ptr) readonly {\ne:\n  store i32 1, %p\n  ret\n}"),
    (Rule::Promise, "func @f(%p: ptr) readnone {\ne:\n  %x = load i32, %p\n  ret\n}"),
    (Rule::Promise, "func @f() noreturn {\ne:\n  ret\n}"),
];

#[test]
fn lines_break_the_rules_they_should() {
    for (rule, line) in LINES {
        let text = body(line);
        let module = read(&text);
        assert_eq!(broken(&module), [*rule], "{line}: {:?}", verify_module(&module));
    }
}

#[test]
fn modules_break_the_rules_they_should() {
    for (rule, text) in MODULES {
        let module = read(text);
        assert_eq!(broken(&module), [*rule], "{text}: {:?}", verify_module(&module));
    }
}

/// `func @f(%i: i32) { entry: <what the closure builds>; ret }`
fn built(build: impl Fn(&mut FunctionBuilder, Value)) -> Module {
    let mut module = Module::new();
    let sig = Signature { params: vec![Param { ty: Type::I32.into(), attrs: ParamAttrs::default() }], ret: None };
    let mut func = Function::new("f", FuncKind::Func, sig);
    let mut b = FunctionBuilder::new(&mut func);
    let entry = b.entry_block(&[Type::I32]);
    b.switch_to(entry);
    let param = b.func.dfg.block_params(entry)[0];
    build(&mut b, param);
    b.ret(&[]);
    module.add_func(func).unwrap();
    module
}

fn broken_globals(edit: impl Fn(&mut Global)) -> Module {
    let mut module = Module::new();
    let mut global = Global {
        name: "g".into(),
        kind: GlobalKind::Variable(Space::Global),
        ty: Type::I32.into(),
        linkage: Linkage::Visible,
        align: 4,
        init: None,
        managed: false,
    };
    edit(&mut global);
    module.add_global(global).unwrap();
    module
}

/// A branch whose ways take two values each, before it the sum of these.
const TWO_WAYS: &str = "func @f(%a: i32, %b: i32, %c: i1) {
entry:
  %s = add i32 %a, %b
  br %c, x(%a, %b), x(%a, %b)
x(%p: i32, %q: i32):
  ret
}";

/// A module of one function, changed by its branch and by the instruction before.
fn read_and_edit(text: &str, edit: impl Fn(&mut Function, Inst, Inst)) -> Module {
    let mut module = read(text);
    let func = module.funcs.values_mut().next().unwrap();
    let entry = func.layout.entry().unwrap();
    let (first, last) = (func.layout.first_inst(entry).unwrap(), func.layout.last_inst(entry).unwrap());
    edit(func, last, first);
    module
}

type Make = fn() -> Module;

/// Rules that text cannot break because the reader refuses it.
const BUILT: &[(Rule, Make)] = &[
    (Rule::GlobalSpace, || broken_globals(|g| g.kind = GlobalKind::Variable(Space::Local))),
    (Rule::InitializerFits, || broken_globals(|g| g.init = Some(Init::Bits(1 << 40)))),
    (Rule::InitializerFits, || broken_globals(|g| g.init = Some(Init::List(vec![Init::Zero])))),
    (Rule::InitializerFits, || broken_globals(|g| g.init = Some(Init::Bytes(vec![0; 4])))),
    (Rule::InitializerAddress, || broken_globals(|g| g.init = Some(Init::Func(FuncId::from_u32(7))))),
    (Rule::ParamAlign, || {
        let mut module = read("declare func @f(ptr)");
        module.funcs[FuncId::from_u32(0)].sig.params[0].attrs.align = 3;
        module
    }),
    (Rule::EntryParams, || {
        let mut module = built(|_, _| {});
        module.funcs[FuncId::from_u32(0)].sig.params.clear();
        module
    }),
    (Rule::FunctionLinkage, || {
        let mut module = built(|_, _| {});
        module.funcs[FuncId::from_u32(0)].linkage = Linkage::Extern;
        module
    }),
    (Rule::BranchTarget, || {
        built(|b, _| {
            let lost = b.func.dfg.make_block();
            let next = b.append_block();
            b.jump(lost, &[]);
            b.switch_to(next);
        })
    }),
    (Rule::BranchTarget, || {
        built(|b, _| {
            let next = b.append_block();
            b.jump(Block::from_u32(99), &[]);
            b.switch_to(next);
        })
    }),
    (Rule::BranchArgs, || {
        built(|b, p| {
            let next = b.append_block();
            b.jump(next, &[p]);
            b.switch_to(next);
        })
    }),
    (Rule::BranchArgs, || {
        built(|b, p| {
            let next = b.append_block();
            b.block_param(next, Type::I64);
            b.jump(next, &[p]);
            b.switch_to(next);
        })
    }),
    (Rule::OperandDefined, || {
        built(|b, p| {
            b.binary(Opcode::Add, p, Value::from_u32(999));
        })
    }),
    (Rule::OperandDefined, || {
        built(|b, p| {
            let at = b.cursor();
            let mut unplaced = FunctionBuilder::new(b.func);
            let lost = unplaced.binary(Opcode::Add, p, p);
            at.into_iter().for_each(|at| b.set_cursor(at));
            b.binary(Opcode::Add, p, lost);
        })
    }),
    (Rule::ConstantFits, || {
        built(|b, p| {
            let wide = b.func.dfg.constant(Type::I32, ConstData::Bits(1 << 40));
            b.binary(Opcode::Add, p, wide);
        })
    }),
    (Rule::ConstantFits, || {
        built(|b, _| {
            let address = b.func.dfg.constant(Type::PTR, ConstData::Bits(64));
            b.load(Type::I32, address, MemAttrs::aligned(4));
        })
    }),
    (Rule::ConstantFits, || {
        built(|b, p| {
            let ty = Type::I32.with_lanes(2);
            let short = b.func.dfg.constant(ty, ConstData::Vector(vec![p]));
            b.unary(Opcode::Abs, short);
        })
    }),
    (Rule::ConstantAddress, || {
        built(|b, _| {
            let address = b.global(GlobalId::from_u32(3), 0, Type::PTR);
            b.load(Type::I32, address, MemAttrs::aligned(4));
        })
    }),
    (Rule::SideData, || {
        built(|b, p| {
            b.inst(Opcode::Icmp, Flags::EMPTY, Type::I32, &[p, p], Extra::None);
        })
    }),
    (Rule::SideData, || {
        built(|b, p| {
            b.inst(Opcode::Add, Flags::EMPTY, Type::I32, &[p, p], Extra::Imm(0));
        })
    }),
    (Rule::SideData, || {
        built(|b, p| {
            let extra = Extra::Call(FuncId::from_u32(9));
            b.inst(Opcode::Call, Flags::EMPTY, Type::INVALID, &[p], extra);
        })
    }),
    (Rule::FlagsAllowed, || {
        built(|b, p| {
            b.binary_flags(Opcode::Add, Flags::FTZ, p, p);
        })
    }),
    (Rule::FlagsAllowed, || {
        built(|b, p| {
            let x = b.convert(Opcode::Sitofp, p, Type::F32);
            b.binary_flags(Opcode::Fadd, Flags::RZ | Flags::RM, x, x);
        })
    }),
    (Rule::OperandCount, || {
        built(|b, p| {
            b.inst(Opcode::Add, Flags::EMPTY, Type::I32, &[p], Extra::None);
        })
    }),
    (Rule::OperandType, || {
        built(|b, p| {
            let wide = b.convert(Opcode::Sext, p, Type::I64);
            b.binary(Opcode::Add, p, wide);
        })
    }),
    (Rule::ResultType, || {
        built(|b, p| {
            b.inst_with_results(Opcode::Add, Flags::EMPTY, Type::I32, &[p, p], Extra::None, &[Type::I64]);
        })
    }),
    (Rule::ResultType, || {
        built(|b, p| {
            b.inst_with_results(Opcode::Add, Flags::EMPTY, Type::I32, &[p, p], Extra::None, &[]);
        })
    }),
    (Rule::ClassMask, || {
        built(|b, p| {
            let x = b.convert(Opcode::Sitofp, p, Type::F32);
            b.inst(Opcode::Fclass, Flags::EMPTY, Type::F32, &[x], Extra::Imm(1024));
        })
    }),
    (Rule::AccessAlign, || {
        built(|b, _| {
            let null = b.bits(Type::PTR, 0);
            b.load(Type::I32, null, MemAttrs::aligned(1 << 40));
        })
    }),
    (Rule::CopyAlign, || {
        built(|b, _| {
            let null = b.bits(Type::PTR, 0);
            let n = b.iconst(Type::I64, 4);
            let extra = Extra::Copy { dst_align: 3, src_align: 1, volatile: false };
            b.inst(Opcode::Memcpy, Flags::EMPTY, Type::INVALID, &[null, null, n], extra);
        })
    }),
    (Rule::SignatureSize, || {
        let mut module = Module::new();
        let mut ty: MemType = Type::I8.into();
        for _ in 0..20 {
            ty = MemType::Agg(module.aggregate(AggDef::Array { elem: ty, len: 1 << 20 }).unwrap());
        }
        let sig = Signature { params: Vec::new(), ret: Some(ty) };
        let mut func = Function::new("f", FuncKind::Func, Signature::default());
        let mut b = FunctionBuilder::new(&mut func);
        let entry = b.entry_block(&[]);
        b.switch_to(entry);
        let sig = b.func.dfg.signatures.push(sig);
        let null = b.bits(Type::PTR, 0);
        b.call_indirect(sig, null, &[], &[]);
        b.ret(&[]);
        module.add_func(func).unwrap();
        module
    }),
    (Rule::OwnList, || {
        read_and_edit(TWO_WAYS, |func, br, _| {
            let Extra::Branch { then, other, .. } = &mut func.dfg.insts[br].extra else { panic!("no branch") };
            other.args = then.args;
        })
    }),
    (Rule::OwnList, || {
        read_and_edit(TWO_WAYS, |func, br, add| {
            let args = func.dfg.insts[add].args;
            let Extra::Branch { then, .. } = &mut func.dfg.insts[br].extra else { panic!("no branch") };
            then.args = args;
        })
    }),
    (Rule::TargetOperands, || {
        built(|b, p| {
            let toks = [ptxc_targets::tok::ABS, ptxc_targets::tok::S32].into_iter().collect();
            let operands = vec![TargetOperand::Result(0), TargetOperand::Arg(1)];
            b.target(TargetOp::Known { toks, guard: None, operands }, &[p], &[Type::I32]);
        })
    }),
    (Rule::TargetForm, || {
        built(|b, p| {
            let toks = [ptxc_targets::tok::ABS, ptxc_targets::tok::S32].into_iter().collect();
            let operands = vec![TargetOperand::Result(0), TargetOperand::Arg(0), TargetOperand::Imm(1)];
            b.target(TargetOp::Known { toks, guard: None, operands }, &[p], &[Type::I32]);
        })
    }),
];

#[test]
fn built_modules_break_the_rules_they_should() {
    for (index, (rule, make)) in BUILT.iter().enumerate() {
        let module = make();
        assert_eq!(broken(&module), [*rule], "number {index}: {:?}", verify_module(&module));
    }
}

#[test]
fn every_rule_is_broken_by_a_test() {
    for rule in Rule::ALL {
        let lines = LINES.iter().chain(MODULES).any(|(r, _)| r == rule);
        assert!(lines || BUILT.iter().any(|(r, _)| r == rule), "no test breaks {rule:?}");
    }
}

#[test]
fn errors_point_into_the_text() {
    let text = body("%r = fadd sat f64 %d, %d loc(1, 1, 1)");
    let (module, spans) = read_module_with_spans(&text).unwrap();
    let errors = verify_module(&module);
    assert_eq!(&text[errors[0].span(&spans)], "%r = fadd sat f64 %d, %d loc(1, 1, 1)");
    assert_eq!(errors[0].to_string(), "`fadd` to f64 takes no flag `sat`");
    assert_eq!(errors[0].severity, Severity::Error);
}

#[test]
fn promises_that_are_kept() {
    let text = "func @f(%p: ptr) readnone nonconvergent {
e:
  %a = alloca i32
  store i32 1, %a
  %x = load i32, %a
  call nonconvergent @g()
  ret
}
declare func @g() readnone";
    assert_eq!(verify_module(&read(text)), []);
}

#[test]
fn many_lines_are_valid() {
    let text = body(
        "%a0 = add nsw nuw i32 %i, -5
  %a1 = uadd_sat <4 x i32> %v, splat(7)
  %a2, %a3 = smul_overflow i64 %j, %j
  %a4 = fma relu bf16 %bf, %bf, 1.0
  %a5 = fptrunc rz sat f32 %x to f16
  %a6 = fptrunc <4 x f32> %w to <4 x e4m3>
  %a7 = fpext e4m3 %n to f16
  %a71 = fptrunc_stochastic relu sat <4 x f32> %w, %i to <4 x e2m1>
  %a72 = redux.fmaximum f32 %x, -1
  %a8 = select <4 x i1> zero, <4 x i32> %v, %v
  %a9 = select i1 %b, <4 x i32> %v, %v
  %b0 = addrspacecast ptr<global> %p to ptr
  %b1 = isspace shared %b0
  %b2 = load <4 x f32>, %p, align 4, invariant, l1(no_allocate), prefetch(128), policy(%j)
  store i128 5, %p, seq_cst, scope(gpu)
  %b3 = atomicrmw xchg ptr %p, null, acq_rel, scope(cluster), policy(%j)
  %b4 = atomicrmw fadd <2 x bf16> @s, zero, relaxed, scope(cta)
  %b5, %b6 = cmpxchg weak i64 %q, 1, %j, acquire, relaxed
  memcpy %l, %cp, 16, align 4, align 8, volatile
  memset %l, 0, i32 %i, align 16
  %b7 = gep inbounds { i32, [4 x { i8, i64 }] }, %p, %j, 1, %i, 1
  %b8 = gep i32, %pv, %v
  %b9 = alloca { i8, i64 }, count 3, align 32
  %c0, %c1 = shfl.bfly <4 x i32> %v, 1, 31, -1
  %c2 = fclass <4 x f32> %w, 1023
  %c3 = shuffle <4 x i32> %v, %v, [7, poison, 0]
  %c4 = bitcast <4 x i32> %v to i128
  %c5 = call @callee(%i)
  %c6 = barrier.red.popc aligned 1, 64, %b
  %c7, %c8 = elect -1
  %c9 = redux.add i32 %i, -1",
    );
    assert_eq!(verify_module(&read(&text)), []);
}
