//! Inline assembly to target operations.
//!
//! Text whose statements the instruction table knows becomes the target operations they are, so that it is checked,
//! scheduled and allocated like everything else. Decides only whether a text can be understood: a text that declares
//! registers, has labels or blocks, writes its inputs or reads a result before it is written stays as it is, and so does
//! one that the table does not know.

use ptxc_targets::{Lanes, NodeKind, Role, SpecialReg, Statement, Tok};
use smallvec::SmallVec;

use crate::dfg::Dfg;
use crate::entities::{FuncId, Inst, Value};
use crate::flags::Flags;
use crate::instruction::{Extra, GroupKind, InstData, TargetOp, TargetOperand};
use crate::module::{FuncKind, Function, GlobalKind, Module, Signature, Symbol};
use crate::opcode::Opcode;
use crate::target_ops;
use crate::types::Type;

/// Longest text that is looked at, in statements.
const MAX_STATEMENTS: usize = 256;

/// One statement of a text, ready to be placed.
struct Operation {
    toks: SmallVec<[Tok; 12]>,
    guard: Option<(u16, bool)>,
    operands: Vec<TargetOperand>,
    args: Vec<Source>,
    /// Which of the text's results it writes.
    results: Vec<u16>,
}

/// What a placeholder that is read stands for.
#[derive(Clone, Copy)]
enum Source {
    /// An argument of the assembly.
    Arg(u16),
    /// A result that an earlier statement wrote.
    Result(u16),
}

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
                Some(operations) => place(func, inst, &operations),
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
fn understand(module: &Module, dfg: &Dfg, inst: Inst) -> Option<Vec<Operation>> {
    let Extra::Target(id) = dfg.insts[inst].extra else { return None };
    let TargetOp::Opaque { text } = dfg.target_ops.get(id)? else { return None };
    let mut written = vec![false; dfg.num_results(inst)];
    let mut operations = Vec::new();
    let mut statement = Statement::default();
    let mut at = 0;
    while !text.get(at..)?.trim().is_empty() {
        if operations.len() == MAX_STATEMENTS {
            return None;
        }
        at = statement.read(text, at).ok()?;
        let operation = Reading { module, dfg, inst, written: &written }.operation(&statement)?;
        operation.results.iter().for_each(|index| written[usize::from(*index)] = true);
        operations.push(operation);
    }
    written.iter().all(|w| *w).then_some(operations)
}

/// What one statement is read against.
struct Reading<'x> {
    module: &'x Module,
    dfg: &'x Dfg,
    inst: Inst,
    written: &'x [bool],
}

impl Reading<'_> {
    fn operation(&self, statement: &Statement) -> Option<Operation> {
        if statement.unified {
            return None;
        }
        let toks: SmallVec<[Tok; 12]> = statement.toks().ok()?.into_iter().collect();
        // Destinations stand first in every form; forms of one mnemonic may differ in how many there are.
        let lists = ptxc_targets::operand_lists(&toks);
        let count = |list: &Vec<ptxc_targets::OperandDesc>| list.iter().take_while(|o| o.role == Role::Dest).count();
        let mut most = lists.iter().map(count).max()?;
        while let Some(operation) = self.with_destinations(statement, &toks, most) {
            if self.fits(&operation) {
                return Some(operation);
            }
            most = most.checked_sub(1)?;
        }
        None
    }

    /// Reads the first `dests` operands as destinations.
    fn with_destinations(&self, statement: &Statement, toks: &[Tok], dests: usize) -> Option<Operation> {
        let mut out = Operation {
            toks: SmallVec::from_slice(toks),
            guard: None,
            operands: Vec::new(),
            args: Vec::new(),
            results: Vec::new(),
        };
        let (mut index, mut at) = (0, 0);
        while at < statement.nodes.len() {
            let halves = if statement.nodes[at].kind == NodeKind::Pair { 2 } else { 1 };
            at = self.tree(statement, at, index < dests, &mut out)?;
            index += halves;
        }
        if let Some(guard) = statement.guard {
            // A guarded write keeps what the register held, which a result does not.
            if !out.results.is_empty() {
                return None;
            }
            let source = self.source(guard.register)?;
            out.args.push(source);
            out.guard = Some((out.args.len() as u16 - 1, guard.negated));
        }
        Some(out)
    }

    /// One operand with its parts; gives the node after it.
    fn tree(&self, statement: &Statement, at: usize, dest: bool, out: &mut Operation) -> Option<usize> {
        let node = statement.nodes.get(at)?;
        let (kind, count) = match node.kind {
            NodeKind::Vector(count) => (GroupKind::Vector, count),
            NodeKind::Address(count) => (GroupKind::Address, u16::from(count)),
            NodeKind::Pair => (GroupKind::Pair, 2),
            NodeKind::Group(_) => return None,
            _ => {
                self.leaf(node, dest, out)?;
                return Some(at + 1);
            }
        };
        let place = out.operands.len();
        out.operands.push(TargetOperand::Group(kind, count));
        let mut next = at + 1;
        let mut parts = count;
        for _ in 0..count {
            let offset = statement.nodes.get(next)?.offset;
            let before = out.operands.len();
            next = self.tree(statement, next, dest && kind != GroupKind::Address, out)?;
            let is_register = matches!(out.operands.get(before), Some(TargetOperand::Arg(_)));
            if let Some(offset) = offset.filter(|_| is_register) {
                out.operands.push(TargetOperand::Offset(offset));
                parts += 1;
            }
        }
        out.operands[place] = TargetOperand::Group(kind, parts);
        Some(next)
    }

    fn leaf(&self, node: &ptxc_targets::Node, dest: bool, out: &mut Operation) -> Option<()> {
        if node.index {
            return None;
        }
        if node.selector.is_some() || (node.minus && node.kind == NodeKind::Name) {
            return self.part(node, dest, out);
        }
        let operand = match node.kind {
            NodeKind::Sink => TargetOperand::Sink,
            NodeKind::Integer(value) => TargetOperand::Imm(value),
            NodeKind::Float(_) => return None,
            _ if dest => {
                let index = placeholder(node.text).filter(|n| usize::from(*n) < self.written.len())?;
                if node.not || out.results.contains(&index) {
                    return None;
                }
                out.results.push(index);
                TargetOperand::Result(out.results.len() as u16 - 1)
            }
            _ if node.text.starts_with('%') => TargetOperand::Sreg(SpecialReg::from_name(node.text)?),
            _ => match self.module.symbol(node.text) {
                Some(Symbol::Global(global)) => {
                    let variable = matches!(self.module.globals[global].kind, GlobalKind::Variable(_));
                    let offset = i32::try_from(node.offset.unwrap_or(0)).ok().filter(|_| variable)?;
                    TargetOperand::Global(global, offset)
                }
                Some(Symbol::Func(_)) => return None,
                None => {
                    let source = self.source(node.text)?;
                    out.args.push(source);
                    let index = out.args.len() as u16 - 1;
                    if node.not { TargetOperand::ArgNot(index) } else { TargetOperand::Arg(index) }
                }
            },
        };
        out.operands.push(operand);
        Some(())
    }

    /// `$0.b1`, `-$0` and their like.
    fn part(&self, node: &ptxc_targets::Node, dest: bool, out: &mut Operation) -> Option<()> {
        let (text, lanes) = match node.text.split_once('.') {
            Some((text, lanes)) => (text, Some(Lanes::from_text(lanes)?)),
            None => (node.text, None),
        };
        if dest {
            let index = placeholder(text).filter(|n| usize::from(*n) < self.written.len())?;
            if node.minus || !out.operands.is_empty() {
                return None;
            }
            out.results.push(index);
            out.operands.push(TargetOperand::ResultPart { result: 0, lanes: lanes? });
            return Some(());
        }
        let source = self.source(text)?;
        out.args.push(source);
        let arg = out.args.len() as u16 - 1;
        out.operands.push(TargetOperand::Part { arg, lanes, minus: node.minus });
        Some(())
    }

    /// A placeholder that is read: an argument, or a result that is written already.
    fn source(&self, text: &str) -> Option<Source> {
        let index = placeholder(text)?;
        let results = self.written.len() as u16;
        match self.written.get(usize::from(index)) {
            Some(true) => Some(Source::Result(index)),
            Some(false) => None,
            None => {
                let arg = index - results;
                (usize::from(arg) < self.dfg.args(self.inst).len()).then_some(Source::Arg(arg))
            }
        }
    }

    fn value(&self, source: Source) -> Value {
        match source {
            Source::Arg(index) => self.dfg.args(self.inst)[usize::from(index)],
            Source::Result(index) => self.dfg.result(self.inst, usize::from(index)),
        }
    }

    /// The table takes the operation with the declared types.
    fn fits(&self, operation: &Operation) -> bool {
        let args: Vec<Value> = operation.args.iter().map(|source| self.value(*source)).collect();
        let result = |index: &u16| self.dfg.ty(self.dfg.result(self.inst, usize::from(*index)));
        let types: Vec<Type> = operation.results.iter().map(result).collect();
        let guard = operation.guard.is_none_or(|(index, _)| self.dfg.ty(args[usize::from(index)]) == Type::I1);
        guard && target_ops::form(self.module, self.dfg, &operation.toks, &args, &operation.operands, &types).is_ok()
    }
}

/// The number of `$n`.
fn placeholder(text: &str) -> Option<u16> {
    let digits = text.strip_prefix('$')?;
    let plain = !digits.is_empty() && digits.len() <= 4 && digits.bytes().all(|b| b.is_ascii_digit());
    if plain { digits.parse().ok() } else { None }
}

/// Puts the operations in the place of the assembly.
fn place(func: &mut Function, asm: Inst, operations: &[Operation]) {
    let results: Vec<Value> = func.dfg.results(asm).collect();
    let sources: Vec<Value> = func.dfg.args(asm).to_vec();
    let mut current: Vec<Option<Value>> = vec![None; results.len()];
    for operation in operations {
        let args: SmallVec<[Value; 8]> = operation
            .args
            .iter()
            .map(|source| match *source {
                Source::Arg(index) => sources[usize::from(index)],
                Source::Result(index) => current[usize::from(index)].unwrap_or(results[usize::from(index)]),
            })
            .collect();
        let Operation { toks, guard, operands, .. } = operation;
        let known = TargetOp::Known { toks: toks.clone(), guard: *guard, operands: operands.clone() };
        let id = func.dfg.target_ops.push(known);
        let list = func.dfg.list(&args);
        let extra = Extra::Target(id);
        let data = InstData { op: Opcode::Target, flags: Flags::EMPTY, ty: Type::INVALID, args: list, extra };
        let made = func.dfg.make_inst(data);
        let types: Vec<Type> = operation.results.iter().map(|r| func.dfg.ty(results[usize::from(*r)])).collect();
        func.dfg.make_results(made, &types);
        func.dfg.locs[made] = func.dfg.locs[asm];
        func.layout.insert_inst_before(made, asm);
        for (index, written) in operation.results.iter().enumerate() {
            current[usize::from(*written)] = Some(func.dfg.result(made, index));
        }
    }
    func.layout.remove_inst(asm);
    for (old, new) in results.into_iter().zip(current) {
        let Some(new) = new else { continue };
        if let Some(name) = func.dfg.value_names.remove(&old) {
            func.dfg.value_names.insert(new, name);
        }
        func.dfg.alias(old, new);
    }
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
        ];
        for (line, expected) in cases {
            assert_eq!(expand(line), (expected.to_string(), 0), "{line}");
        }
    }

    #[test]
    fn other_text_stays() {
        let cases = [
            r#"%r = asm "add.s32 $0, $0, $1;" (i32 %a) -> (i32)"#,
            r#"%r = asm "frob.s32 $0, $1;" (i32 %a) -> (i32)"#,
            r#"%r = asm "{ .reg .b32 t; mov.b32 t, $1; mov.b32 $0, t; }" (i32 %a) -> (i32)"#,
            r#"%r = asm "add.s32 $1, $1, 1; mov.b32 $0, $1;" (i32 %a) -> (i32)"#,
            r#"%r = asm "@$1 mov.b32 $0, 1;" (i1 %c) -> (i32)"#,
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
