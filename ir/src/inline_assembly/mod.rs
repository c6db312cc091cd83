//! Inline assembly to target operations.
//!
//! Text whose statements the instruction table knows becomes the target operations they are, so that it is checked,
//! scheduled and allocated like everything else. Decides only whether a text can be understood: a text with labels,
//! one that writes its inputs or reads a register before it is written stays as it is, and so does one that the table
//! does not know.

mod reading;
mod text;

use smallvec::SmallVec;

use crate::dfg::Dfg;
use crate::entities::{FuncId, Inst, Value};
use crate::flags::Flags;
use crate::instruction::{Extra, InstData, TargetOp, TargetOperand};
use crate::module::{FuncKind, Function, Module, Signature};
use crate::opcode::Opcode;
use crate::types::Type;
use ptxc_targets::tok;
use reading::{Assembly, Operation, Source};

/// Replaces the inline assembly of a function by target operations where the table knows it. Gives the instructions
/// that stay opaque, in layout order.
pub fn expand_inline_assembly(module: &Module, func: &mut Function) -> Vec<Inst> {
    let mut opaque = Vec::new();
    let blocks: Vec<_> = func.layout.blocks().collect();
    for block in blocks {
        let mut next = func.layout.first_inst(block);
        while let Some(inst) = next {
            next = func.layout.next_inst(inst);
            if func.dfg.insts[inst].op != Opcode::Asm {
                continue;
            }
            match understand(module, &func.dfg, inst) {
                Some(assembly) => place(func, inst, &assembly),
                None => opaque.push(inst),
            }
        }
    }
    opaque
}

/// [`expand_inline_assembly`] for every function; gives the instructions that stay opaque.
pub fn expand_module(module: &mut Module) -> Vec<(FuncId, Inst)> {
    let mut opaque = Vec::new();
    for id in module.func_ids() {
        let asm = module.funcs[id].dfg.insts.values().any(|data| data.op == Opcode::Asm);
        if !asm {
            continue;
        }
        // The function leaves the module while it changes; its text names only symbols of variables.
        let empty = Function::new(String::new(), FuncKind::Func, Signature::default());
        let mut func = std::mem::replace(&mut module.funcs[id], empty);
        opaque.extend(expand_inline_assembly(module, &mut func).into_iter().map(|inst| (id, inst)));
        module.funcs[id] = func;
    }
    opaque
}

/// The operations of a text, if all of it is understood and every result is written.
fn understand(module: &Module, dfg: &Dfg, inst: Inst) -> Option<Assembly> {
    let Extra::Target(id) = dfg.insts[inst].extra else { return None };
    let TargetOp::Opaque { text } = dfg.target_ops.get(id)? else { return None };
    let args = dfg.args(inst).iter().map(|value| dfg.ty(*value)).collect();
    let results = dfg.results(inst).map(|value| dfg.ty(value)).collect();
    reading::read(module, text, args, results)
}

/// Puts the operations in the place of the assembly.
fn place(func: &mut Function, asm: Inst, assembly: &Assembly) {
    let results: Vec<Value> = func.dfg.results(asm).collect();
    let sources: Vec<Value> = func.dfg.args(asm).to_vec();
    // What each register of the text holds; the reader has seen that it is written before it is read.
    let mut current: Vec<Option<Value>> = vec![None; assembly.registers.len()];
    for operation in &assembly.operations {
        let args: Option<SmallVec<[Value; 8]>> = operation
            .args
            .iter()
            .map(|source| match *source {
                Source::Arg(index) => sources.get(usize::from(index)).copied(),
                Source::Register(index) => current.get(usize::from(index)).copied().flatten(),
            })
            .collect();
        let Some(args) = args else { return };
        if let Some((written, value)) = copied(func, assembly, operation, &args) {
            current[usize::from(written)] = Some(value);
            continue;
        }
        let known = TargetOp::Known {
            toks: operation.toks.clone(),
            guard: operation.guard,
            operands: operation.operands.clone(),
        };
        let id = func.dfg.target_ops.push(known);
        let list = func.dfg.list(&args);
        let extra = Extra::Target(id);
        let data = InstData { op: Opcode::Target, flags: Flags::EMPTY, ty: Type::INVALID, args: list, extra };
        let made = func.dfg.make_inst(data);
        let types: Vec<Type> = operation.results.iter().map(|r| assembly.registers[usize::from(*r)].ty).collect();
        func.dfg.make_results(made, &types);
        func.dfg.locs[made] = func.dfg.locs[asm];
        func.layout.insert_inst_before(made, asm);
        for (index, written) in operation.results.iter().enumerate() {
            current[usize::from(*written)] = Some(func.dfg.result(made, index));
        }
    }
    func.layout.remove_inst(asm);
    // Results are the first registers.
    for (old, new) in results.into_iter().zip(current) {
        let Some(new) = new else { continue };
        if let Some(name) = func.dfg.value_names.remove(&old)
            && !func.dfg.value_names.contains_key(&new)
        {
            func.dfg.value_names.insert(new, name);
        }
        func.dfg.alias(old, new);
    }
}

/// The register that a plain move of a value writes, and the value. Such a move is another name for the value, and no
/// instruction: frontends tie arguments to results by them, of which `wgmma` allows none while it is under way.
fn copied(func: &Function, assembly: &Assembly, operation: &Operation, args: &[Value]) -> Option<(u16, Value)> {
    let (&[written], &[value]) = (&operation.results[..], args) else { return None };
    let is_move = matches!(&operation.toks[..], [head, kind] if *head == tok::MOV && *kind != tok::PRED);
    let operands = matches!(operation.operands[..], [TargetOperand::Result(0), TargetOperand::Arg(0)]);
    let ty = assembly.registers.get(usize::from(written))?.ty;
    (is_move && operands && operation.guard.is_none() && func.dfg.ty(value) == ty).then_some((written, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::read_module;
    use crate::verifier::verify_module;

    /// The body after expansion, without header, label and `ret`, and how many texts stay opaque.
    fn expand(line: &str) -> (String, usize) {
        let text = format!(
            "global @g: i32\n\nfunc @f(%a: i32, %b: i32, %c: i1, %p: ptr, %x: f32) {{\nentry:\n  {line}\n  ret\n}}\n"
        );
        let mut module = read_module(&text).unwrap_or_else(|e| panic!("{}", e[0].with_position(&text)));
        let id = module.func_ids().next().unwrap();
        let mut func = module.funcs[id].clone();
        let opaque = expand_inline_assembly(&module, &mut func);
        module.funcs[id] = func;
        assert_eq!(verify_module(&module), [], "{module}");
        let printed = module.to_string();
        let body = printed.split("entry:\n").nth(1).unwrap().trim_end_matches("  ret\n}\n");
        (body.lines().map(str::trim).collect::<Vec<_>>().join("; "), opaque.len())
    }

    #[test]
    fn known_text_becomes_target_operations() {
        let cases = [
            (r#"%r = asm "add.s32 $0, $1, $2;" (i32 %a, i32 %b) -> (i32)"#, "%r = ptx.add.s32 %a, %b"),
            (
                r#"%r = asm "mul.lo.s32 $0, $1, $1; add.s32 $0, $0, 7;" (i32 %a) -> (i32)"#,
                "%0 = ptx.mul.lo.s32 %a, %a; %r = ptx.add.s32 %0, 7",
            ),
            (r#"%r, %s = asm "ld.v2.b32 {$0, $1}, [$2+8];" (ptr %p) -> (i32, i32)"#, "%r, %s = ptx.ld.v2.b32 [%p + 8]"),
            (r#"asm "@!$0 st.global.u32 [g], $1;" (i1 %c, i32 %a)"#, "ptx.@!%c st.global.u32 [@g], %a"),
            (r#"%r = asm "mov.u32 $0, %tid.x;" () -> (i32)"#, "%r = ptx.mov.u32 sreg.tid.x"),
            (
                r#"%r, %q = asm "shfl.sync.bfly.b32 $0|$1, $2, 1, 31, -1;" (i32 %a) -> (i32, i1)"#,
                "%r, %q = ptx.shfl.sync.bfly.b32 %a, 1, 31, -1",
            ),
            (r#"asm "bar.warp.sync -1;" ()"#, "ptx.bar.warp.sync -1"),
            (r#"%r = asm "{ .reg .b32 t; mov.b32 t, $1; mov.b32 $0, t; }" (i32 %a) -> (i32)"#, ""),
            (
                r#"%r = asm "{ .reg .pred p; setp.ne.s32 p, $1, 0; // lower\0A @p mov.b32 $0, 1; @!p mov.b32 $0, 2; }" (i32 %a) -> (i32)"#,
                "%0 = ptx.setp.ne.s32 %a, 0; %1 = ptx.@%0 mov.b32 1; %r = ptx.@!%0 mov.b32 %1, 2",
            ),
            (
                r#"%r = asm "{ .reg .f32 t<2>; mul.f32 t1, $1, 0f40000000; { .reg .f32 t1; mov.f32 t1, 2.5; mov.f32 t0, t1; } add.f32 $0, t1, t0; }" (f32 %x) -> (f32)"#,
                "%0 = ptx.mul.f32 %x, 0f40000000; %1 = ptx.mov.f32 0f40200000; %r = ptx.add.f32 %0, %1",
            ),
            (
                r#"%r = asm "vadd.s32.u32.s32 $0, $1.b0, -1; /* low */ vsub.s32.s32.u32 $0.h1, $0.h0, $1.b3, $0;" (i32 %a) -> (i32)"#,
                "%0 = ptx.vadd.s32.u32.s32 b0(%a), -1; %r = ptx.vsub.s32.s32.u32 h1(_), h0(%0), b3(%a), %0",
            ),
            (r#"%r = asm "@$1 mov.b32 $0, 1;" (i1 %c) -> (i32)"#, "%r = ptx.@%c mov.b32 1"),
            (
                r#"%r = asm "{ .reg .b32 d<2>; mov.b32 d0, 0; mov.b32 d1, 0; wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {d0, d1}, $1, $2, 1, 1, 1, 0, 0; mov.b32 $0, d0; }" (i64 5, i64 6) -> (i32)"#,
                "%0 = ptx.mov.b32 0; %1 = ptx.mov.b32 0; %r, %2 = ptx.wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%0, %1}, i64 5, i64 6, 1, 1, 1, 0, 0",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(expand(line), (expected.to_string(), 0), "{line}");
        }
    }

    #[test]
    fn other_text_stays() {
        let cases = [
            r#"%r = asm "add.s32 $0, $0, $1;" (i32 %a) -> (i32)"#,
            r#"%r = asm "{ .reg .b32 t; mov.b32 t, $1; } mov.b32 $0, t;" (i32 %a) -> (i32)"#,
            r#"%r = asm "{ .reg .b32 t; mov.b32 $0, t; }" () -> (i32)"#,
            r#"%r = asm "mov.b32 $0, 1; }" () -> (i32)"#,
            r#"%r = asm "{ mov.b32 $0, 1;" () -> (i32)"#,
            r#"%r = asm ".shared .b32 s; mov.b32 $0, 1;" () -> (i32)"#,
            r#"%r = asm "again: mov.b32 $0, 1; bra again;" () -> (i32)"#,
            r#"%r = asm "frob.s32 $0, $1;" (i32 %a) -> (i32)"#,
            r#"%r = asm "{ .reg .b32 t; mov.b32 t, $1; } mov.b32 $0, t;" (i32 %a) -> (i32)"#,
            r#"%r = asm "{ .reg .b32 t; mov.b32 $0, t; }" () -> (i32)"#,
            r#"%r = asm "mov.b32 $0, 1; }" () -> (i32)"#,
            r#"%r = asm "{ mov.b32 $0, 1;" () -> (i32)"#,
            r#"%r = asm ".shared .b32 s; mov.b32 $0, 1;" () -> (i32)"#,
            r#"%r = asm "again: mov.b32 $0, 1; bra again;" () -> (i32)"#,
            r#"%r = asm "add.s32 $1, $1, 1; mov.b32 $0, $1;" (i32 %a) -> (i32)"#,
            r#"%r = asm "add.s64 $0, $1, 1;" (i32 %a) -> (i32)"#,
            r#"%r = asm "bar.sync 0;" () -> (i32)"#,
            r#"asm "bra there;" ()"#,
            r#"asm "add.s32 $9, $8, $7;" ()"#,
        ];
        for line in cases {
            assert_eq!(expand(line).1, 1, "{line}: {}", expand(line).0);
        }
    }
}
