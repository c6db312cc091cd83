//! The reader of text: what it understands, and what it says about what is wrong.

use ptxc_llvm::model::{
    AttributeValue, BinaryOp, Body, Constant, Flags, Function, GlobalKind, Instruction, LocalMetadata, Metadata,
    Module, OperandKind, Ordering, RmwOp, Type, type_text,
};
use ptxc_llvm::text;

fn module(source: &str) -> Module {
    let mut module = Module::new();
    if let Err(error) = text::read(source.as_bytes(), &mut module) {
        panic!("{} at {:?}", error.message, &source[error.at..(error.at + 20).min(source.len())]);
    }
    module
}

/// Message of the error, with the text that it points at.
fn error(source: &str) -> (String, &str) {
    let mut module = Module::new();
    let error = text::read(source.as_bytes(), &mut module).expect_err("the text is wrong");
    (error.message, &source[error.at..error.at + error.len])
}

fn function<'m>(module: &'m Module, name: &str) -> &'m Function {
    let name = module.names.find(name.as_bytes()).expect("the name");
    module.globals[module.find_global(name).expect("the symbol")].function().expect("a function")
}

fn body<'m>(module: &'m Module, name: &str) -> &'m Body {
    function(module, name).body.as_ref().expect("a body")
}

fn instructions(body: &Body) -> Vec<Instruction> {
    body.instructions.values().map(|data| data.instruction).collect()
}

#[test]
fn numbered_values_and_blocks() {
    let module = module(
        "define i32 @f(i32 %0, i32 %1) {\n  %3 = add nuw nsw i32 %0, %1\n  br label %4\n\n4:\n  %5 = phi i32 [ %3, %2 ], \
         [ %6, %4 ]\n  %6 = sub i32 %5, 1\n  %7 = icmp samesign ult i32 %6, 10\n  br i1 %7, label %4, label %8\n\n8:\n  \
         ret i32 %6\n}\n",
    );
    let body = body(&module, "f");
    assert_eq!(body.order.len(), 3);
    let all = instructions(body);
    assert!(
        matches!(all[0], Instruction::Binary { op: BinaryOp::Add, flags, .. } if flags == Flags::NUW.with(Flags::NSW))
    );
    let Instruction::Phi { incoming, .. } = all[2] else { panic!("{:?}", all[2]) };
    let kinds: Vec<OperandKind> = body.operands(incoming).iter().map(|operand| operand.kind()).collect();
    assert_eq!(kinds[1], OperandKind::Block(body.order[0]));
    assert_eq!(kinds[3], OperandKind::Block(body.order[1]));
    assert!(matches!(all[4], Instruction::CompareInt { flags: Flags::SAMESIGN, .. }));
}

#[test]
fn gaps_in_numbers() {
    module("define i32 @f(i32 %5) {\n10:\n  %20 = add i32 %5, 1\n  ret i32 %20\n}\n");
}

#[test]
fn names_of_all_kinds() {
    let module = module(
        "%\"a b\" = type { i32 }\n@\"x\\00y\" = global %\"a b\" zeroinitializer\n$c = comdat any\n\
         define void @\"f g\"(ptr %\"p q\") comdat($c) {\n\"e n\":\n  br label %-x$.1\n-x$.1:\n  store i32 0, ptr %\"p q\"\n  \
         ret void\n}\n",
    );
    assert!(module.names.find(b"x\0y").is_some());
    assert_eq!(body(&module, "f g").blocks.len(), 2);
}

#[test]
fn typed_pointers_of_older_files() {
    let module = module(
        "%T = type { i32, %T* }\n@g = addrspace(1) global i32* null\n\
         define void @f(i8* byval(i32) %a, %T* byval %b, void (i32)* %c, i32 addrspace(3)** %d) {\n  \
         %p = bitcast i8* %a to i32*\n  %v = load i32, i32* %p, align 4\n  call void %c(i32 %v)\n  \
         %q = getelementptr inbounds %T, %T* %b, i64 0, i32 1\n  store %T* %b, %T** %q\n  ret void\n}\n",
    );
    let function = function(&module, "f");
    let byval = module.attributes.param(function.attributes, 1)[0];
    let AttributeValue::Type(ty) = byval.value else { panic!("{byval:?}") };
    assert_eq!(type_text(&module, ty), "%T");
    let ty = module.globals.values().find_map(|g| g.function().and(g.ty.expand())).expect("a function type");
    assert_eq!(type_text(&module, ty), "void (ptr, ptr, ptr, ptr)");
}

#[test]
fn floats_in_every_spelling() {
    let module = module(
        "@a = global [12 x float] [float 1.5, float 0x3FF8000000000000, float f0x3FC00000, float +inf, float -inf, \
         float +qnan, float nan(0x1), float 1.0e-45, float -0.0, float 0x7FF8000000000000, float 2.5e-1, float 0x36A0000000000000]\n\
         @b = global [4 x half] [half 0xH3C00, half 1.0, half 0x3FF0000000000000, half f0x3C00]\n\
         @c = global [2 x bfloat] [bfloat 0xR3F80, bfloat 1.0]\n\
         @d = global fp128 0xL00000000000000003FFF000000000000\n",
    );
    let data = |name: &str| {
        let id = module.find_global(module.names.find(name.as_bytes()).expect("name")).expect("symbol");
        let GlobalKind::Variable(variable) = &module.globals[id].kind else { panic!("no variable") };
        module.constants.get(variable.initializer.expect("an initializer"))
    };
    let elements = |name: &str, element: Type| -> Vec<u64> {
        let Constant::Data(list) = data(name) else { panic!("no data") };
        (0..).map_while(|index| module.constants.data_element(list, element, index)).collect()
    };
    let one_half = 0x3fc0_0000;
    let expected = [
        one_half,
        one_half,
        one_half,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x7fc0_0001,
        1,
        0x8000_0000,
        0x7fc0_0000,
        0x3e80_0000,
        1,
    ];
    assert_eq!(elements("a", Type::Float), expected);
    assert_eq!(elements("b", Type::Half), [0x3c00; 4]);
    assert_eq!(elements("c", Type::BFloat), [0x3f80; 2]);
    let Constant::WideFloat(words) = data("d") else { panic!("no wide float") };
    assert_eq!(module.constants.words(words), [0, 0x3fff_0000_0000_0000]);
}

#[test]
fn integers_of_any_width() {
    let module = module(
        "@a = global i128 -170141183460469231731687303715884105728\n@b = global i8 -128\n@c = global i8 255\n\
         @d = global i65 s0x1FFFFFFFFFFFFFFFF\n@e = global i1 true\n@f = global i64 u0xFFFFFFFFFFFFFFFF\n",
    );
    assert_eq!(module.order.len(), 6);
}

#[test]
fn constant_expressions() {
    let module = module(
        "@s = internal addrspace(3) global [4 x i32] undef, align 16\n\
         @p = global ptr addrspacecast (ptr addrspace(3) getelementptr inbounds ([4 x i32], ptr addrspace(3) @s, i64 0, i64 2) to ptr)\n\
         @q = global i64 sub (i64 ptrtoint (ptr @p to i64), i64 ptrtoint (ptr @q to i64))\n\
         @v = global <4 x i32> splat (i32 7)\n\
         @r = global ptr getelementptr inbounds nuw inrange(-16, 16) (i8, ptr @p, i64 8)\n",
    );
    let kinds: Vec<Constant> = module
        .globals
        .values()
        .filter_map(|global| match &global.kind {
            GlobalKind::Variable(variable) => variable.initializer.expand(),
            _ => None,
        })
        .map(|id| module.constants.get(id))
        .collect();
    assert!(kinds.iter().any(|kind| matches!(kind, Constant::Cast { .. })));
    assert!(kinds.iter().any(|kind| matches!(kind, Constant::Binary { op: BinaryOp::Sub, .. })));
    assert!(kinds.iter().any(|kind| matches!(kind, Constant::Data(_))));
}

#[test]
fn memory_and_atomics() {
    let module = module(
        "define void @f(ptr %p, ptr addrspace(1) %q) {\n  \
         %a = load atomic volatile i32, ptr %p syncscope(\"device\") acquire, align 4, !nontemporal !0\n  \
         store atomic i32 %a, ptr addrspace(1) %q release, align 4\n  \
         %b = atomicrmw uinc_wrap ptr %p, i32 %a syncscope(\"block\") monotonic\n  \
         %c = cmpxchg weak ptr %p, i32 %a, i32 %b acq_rel monotonic, align 8\n  \
         %d = extractvalue { i32, i1 } %c, 0\n  fence syncscope(\"singlethread\") seq_cst\n  \
         %e = alloca i32, i64 4, align 16, addrspace(5)\n  ret void\n}\n!0 = !{i32 1}\n",
    );
    let body = body(&module, "f");
    let all = instructions(body);
    let Instruction::Load { access, .. } = all[0] else { panic!("{:?}", all[0]) };
    assert_eq!((access.ordering, access.volatile, access.align.bytes()), (Ordering::Acquire, true, Some(4)));
    assert_eq!(module.names.text(access.scope), "device");
    assert!(matches!(all[2], Instruction::Rmw { op: RmwOp::UIncWrap, .. }));
    assert!(matches!(all[3], Instruction::CompareExchange { weak: true, failure: Ordering::Monotonic, .. }));
    let load = body.instructions.keys().next().expect("an instruction");
    assert_eq!(body.attachments(load).len(), 1);
    let space = body.instructions.values().nth(6).and_then(|data| data.result.expand()).map(|id| body.values[id].ty);
    assert_eq!(type_text(&module, space.expect("a result")), "ptr addrspace(5)");
}

#[test]
fn calls_with_everything() {
    let module = module(
        "declare void @g(...)\n\
         define void @f(ptr %p, float %x) {\n  \
         %a = tail call fast cc 71 noundef nofpclass(nan inf) float @h(ptr noundef nonnull align 4 dereferenceable(8) %p, float %x) #0 [ \"tag\"(ptr %p, i32 1) ], !dbg !0\n  \
         call void (...) @g(i32 1, ptr byval(i32) align 4 %p)\n  \
         %b = call i32 asm sideeffect \"mov.u32 $0, %tid.x;\", \"=r\"() nounwind\n  \
         call void @llvm.assume(i1 true) [ \"align\"(ptr %p, i64 16) ]\n  ret void\n}\n\
         declare float @h(ptr, float)\nattributes #0 = { convergent nounwind \"k\"=\"v\" memory(none) }\n\
         !0 = !DILocation(line: 3, column: 5, scope: !1)\n!1 = distinct !DISubprogram(name: \"f\", line: 2)\n",
    );
    let body = body(&module, "f");
    let call = body.calls.values().next().expect("a call");
    assert_eq!(call.convention.0, 71);
    assert_eq!(call.flags, Flags::FAST);
    assert_eq!(body.bundles(call.bundles).len(), 1);
    let names: Vec<_> = module.attributes.function(call.attributes).map(|a| module.names.text(a.name)).collect();
    assert_eq!(names, ["convergent", "nounwind", "k", "memory"]);
    assert_eq!(module.attributes.param(call.attributes, 0).len(), 4);
    let location = body.instructions.values().next().and_then(|data| data.location.expand()).expect("a location");
    assert!(matches!(module.metadata.get(location), Metadata::Location(at) if at.line == 3 && at.column == 5));
    // An intrinsic without a declaration.
    assert!(function(&module, "llvm.assume").body.is_none());
}

#[test]
fn metadata_in_functions() {
    let module = module(
        "define void @f(i32 %x) {\n    #dbg_value(i32 %x, !1, !DIExpression(DW_OP_plus_uconst, 4, DW_OP_stack_value), !2)\n  \
         call void @llvm.dbg.value(metadata i32 %x, metadata !1, metadata !DIExpression()), !dbg !2\n  \
         call void @llvm.dbg.value(metadata !DIArgList(i32 %x, i32 4), metadata !1, metadata !DIExpression()), !dbg !2\n  ret void\n}\n\
         declare void @llvm.dbg.value(metadata, metadata, metadata)\n\
         !llvm.dbg.cu = !{!4}\n!1 = !DILocalVariable(name: \"x\", scope: !3, flags: DIFlagArtificial | DIFlagPublic)\n\
         !2 = !DILocation(line: 1, scope: !3)\n!3 = distinct !DISubprogram(name: \"f\", unit: !4, spFlags: DISPFlagDefinition)\n\
         !4 = distinct !DICompileUnit(language: DW_LANG_C99, file: !5, emissionKind: FullDebug, enums: !{})\n\
         !5 = !DIFile(filename: \"a.c\", directory: \"/\")\n",
    );
    let body = body(&module, "f");
    assert_eq!(body.records.len(), 1);
    assert!(matches!(body.metadata.values().nth(2), Some(LocalMetadata::Arguments(list)) if list.len == 2));
    assert_eq!(module.named_metadata("llvm.dbg.cu").len(), 1);
}

#[test]
fn old_memory_attributes_become_memory() {
    let module = module("declare void @f() readonly argmemonly\ndeclare void @g() readnone \"x\"\n");
    let effects = |name: &str| {
        let attributes = module.attributes.function(function(&module, name).attributes);
        attributes.filter_map(|a| if let AttributeValue::Number(n) = a.value { Some(n) } else { None }).next()
    };
    assert_eq!(effects("f"), Some(1));
    assert_eq!(effects("g"), Some(0));
}

#[test]
fn order_of_uses_is_skipped() {
    module(
        "@g = global i32 0\ndefine i32 @f(i32 %x) {\n  %y = add i32 %x, %x\n  ret i32 %y\n\n  ; uselistorder\n  \
         uselistorder i32 %x, { 1, 0 }\n}\nuselistorder ptr @g, { 1, 0 }\n",
    );
}

#[test]
fn addresses_of_blocks() {
    let module = module(
        "@t = global [2 x ptr] [ptr blockaddress(@f, %a), ptr blockaddress(@f, %1)]\n\
         define void @f(ptr %p) {\n  indirectbr ptr %p, [label %a, label %1]\na:\n  ret void\n1:\n  ret void\n}\n\
         @u = global ptr blockaddress(@f, %a)\ndefine void @g() {\n  ret void\n}\n",
    );
    assert!(module.constants.block_addresses.values().all(|address| address.block.is_some()));
}

#[test]
fn errors_name_what_is_wrong() {
    let inside = |line: &str| format!("define void @f(i32 %x, ptr %p) {{\n  {line}\n  ret void\n}}\n");
    let cases: &[(&str, &str, &str)] = &[
        ("%y = add i32 %z, 1", "`%z` is not defined", "%z"),
        ("%y = add i64 %x, 1", "`%x` has the type i32, not i64", "%x"),
        ("%y = fadd i32 %x, 1", "`fadd` takes floats, not i32", "fadd"),
        ("%x = add i32 %x, 1", "`%x` is defined twice", "%x"),
        ("%y = frobnicate i32 %x", "the instruction `frobnicate` is not known", "frobnicate"),
        ("%y = add i8 300, 1", "the integer does not fit its type", "300"),
        ("store i32 %x, i32 %x", "`store` takes an address, not i32", "store"),
        ("br label %nowhere", "`%nowhere` is not defined", "%nowhere"),
        ("br i32 %x, label %a, label %a", "the condition of a branch is of type i1", "i32"),
        ("%y = zext i32 %x to float", "`zext` does not convert i32 to float", "zext"),
        ("%y = load i32, ptr %p align", "the instruction `align` is not known", "align"),
        ("%y = extractvalue { i32 } undef, 1", "{ i32 } has no part 1", "1"),
        ("call void @nothing()", "the symbol `@nothing` is not defined", "@nothing"),
        ("store i32 %x, ptr %p, align 3", "an alignment is a power of two up to 4294967296", "3"),
        ("%y = load i32, ptr addrspace(3) %p", "`%p` has the type ptr, not ptr addrspace(3)", "%p"),
        ("store float 1.0e, ptr %p", "expected `,`, found `e`", "e"),
        ("store void 1, ptr %p", "a value cannot have the type `void`", "void"),
    ];
    for (line, message, place) in cases {
        let source = inside(line);
        let (found, at) = error(&source);
        assert_eq!((found.as_str(), at), (*message, *place), "{line}");
    }
}

#[test]
fn errors_of_modules() {
    let cases: &[(&str, &str)] = &[
        ("@a = global i32 0\n@a = global i32 0\n", "`@a` is defined twice"),
        ("@a = global ptr @b\n", "the symbol `@b` is not defined"),
        ("!0 = !{!1}\n", "this metadata is not defined"),
        ("@a = global [2 x i8] c\"abc\"\n", "a string of 3 bytes cannot have the type [2 x i8]"),
        ("define void @f() {\n", "expected an instruction, found the end of the text"),
        ("define void @f() {\n}\n", "a function has at least one block"),
        ("define i32 @f() {\n  add i32 1, 2\n}\n", "the last block has no terminator"),
        ("@a = global i32 zeroinitializer, frob 3\n", "expected an item of a module, found `3`"),
        ("source_filename = \"abc\n", "expected a file name, found a string without end"),
        (
            "@a = addrspace(3) global i32 0\n@b = global ptr @a\n",
            "`@a` is in address space 3 and used as a pointer to space 0",
        ),
        ("%T = type { i32 }\n%T = type { i8 }\n", "type `%T` is defined twice"),
    ];
    for (source, message) in cases {
        assert_eq!(error(source).0, *message, "{source}");
    }
}

#[test]
fn deep_nesting_is_refused() {
    let source = format!("@a = global {}i8{} zeroinitializer\n", "[1 x ".repeat(100_000), "]".repeat(100_000));
    assert!(error(&source).0.contains("levels deep"));
    let source = format!("!0 = {}{}\n", "!{".repeat(100_000), "}".repeat(100_000));
    assert!(error(&source).0.contains("levels deep"));
}
