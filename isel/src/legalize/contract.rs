//! Products that sums take in, where selection alone does not see it.
//!
//! The rules for `fma` (`rules/float.isle`) take a product that has one use. One that several sums use vanishes as well if each of
//! them takes it in; here that is decided for all of them together. And where a target has `fma` of a format, but no sums
//! (bf16 before sm_90, PTX ISA 9.7.4), sums are products with one by the time of selection.
//! Only under `contract` of both, and nothing moves into a loop. The sums may stand in blocks behind that of the product: `x * x` in
//! `x * x + y * y < 4` and in `x * x - y * y` behind that branch.

use cranelift_entity::{EntitySet, SecondaryMap};
use ptxc_ir::loops::Loops;
use ptxc_ir::{Block, Cfg, DominatorTree, Flags, Function, FunctionBuilder, Inst, Opcode, Type, Value, flags::group};
use smallvec::SmallVec;

use super::features::Features;
use crate::rules::Pattern;

/// Flags that have to be equal.
const VALUE_FLAGS: u32 = group::ROUND | group::FTZ;

/// Rewrites a function whose aliases are resolved, and names in `formed` what it found.
pub(super) fn contract_products(func: &mut Function, features: &Features, formed: &mut Vec<(Inst, Pattern)>) {
    let mut products: Vec<Inst> = Vec::new();
    for block in func.layout.blocks() {
        for inst in func.layout.insts(block) {
            let data = &func.dfg.insts[inst];
            if data.op == Opcode::Fmul && data.flags.contains(Flags::CONTRACT) && !data.flags.contains(Flags::SAT) {
                products.push(inst);
            }
        }
    }
    if products.is_empty() {
        return;
    }
    let users = Users::new(func, &Places::new(func));
    // Sums that have taken a product in, and values that those add.
    let mut taken: EntitySet<Inst> = EntitySet::new();
    for product in products {
        let value = func.dfg.result(product, 0);
        let sums = &users.sums[value];
        let shared = sums.len() > 1;
        let all = !sums.is_empty() && users.uses[value] as usize == sums.len();
        let fits = |sum: &Inst| !taken.contains(*sum) && takes(func, features, product, *sum, shared);
        if !all || !sums.iter().all(fits) {
            continue;
        }
        for sum in sums.clone() {
            taken.insert(sum);
            take(func, product, sum);
            formed.push((sum, Pattern::FmaProducts));
        }
        func.layout.remove_inst(product);
    }
    super::cleanup::resolve_and_sweep(func);
}

/// Which blocks are in loops that others are not in.
struct Places(Option<Loops>);

impl Places {
    fn new(func: &Function) -> Places {
        let cfg = Cfg::new(func);
        Places((cfg.rpo().len() > 1).then(|| Loops::new(&cfg, &DominatorTree::new(&cfg))))
    }

    /// Whether what moves from one block to another that it dominates is not executed more often.
    fn may_move(&self, from: Block, to: Block) -> bool {
        let Places(Some(loops)) = self else { return true };
        let deeper = || loops.is_irreducible() || loops.innermost(to).is_some_and(|inner| !loops.contains(inner, from));
        from == to || !deeper()
    }
}

/// The sums that use each product and may take it in where they stand, and how many uses it has at all.
struct Users {
    sums: SecondaryMap<Value, SmallVec<[Inst; 2]>>,
    uses: SecondaryMap<Value, u32>,
}

impl Users {
    fn new(func: &Function, places: &Places) -> Users {
        let mut users = Users { sums: SecondaryMap::new(), uses: super::cleanup::count_uses(func) };
        let blocks: SmallVec<[Block; 16]> = func.layout.blocks().collect();
        for block in blocks {
            for inst in func.layout.insts(block) {
                let data = &func.dfg.insts[inst];
                if !matches!(data.op, Opcode::Fadd | Opcode::Fsub) || !data.flags.contains(Flags::CONTRACT) {
                    continue;
                }
                for value in func.dfg.args(inst) {
                    let maker = func.dfg.def_inst(*value).filter(|maker| func.dfg.insts[*maker].op == Opcode::Fmul);
                    let from = maker.and_then(|maker| func.layout.inst_block(maker));
                    let here = from.is_some_and(|from| places.may_move(from, block));
                    // A product added to itself is used twice, by one sum.
                    if here && users.sums[*value].last() != Some(&inst) {
                        users.sums[*value].push(inst);
                    }
                }
            }
        }
        users
    }
}

/// Whether a sum may take a product in, and should.
fn takes(func: &Function, features: &Features, product: Inst, sum: Inst, shared: bool) -> bool {
    let (inner, outer) = (&func.dfg.insts[product], &func.dfg.insts[sum]);
    // Longer vectors are taken apart into pairs.
    let ty = if outer.ty.is_vector() { outer.ty.scalar().with_lanes(2) } else { outer.ty };
    let is_machine = |op: Opcode| features.float_op(op, outer.flags, ty);
    let constants = |inst: Inst| func.dfg.args(inst).iter().any(|value| func.dfg.as_const(*value).is_some());
    inner.flags.bits() & VALUE_FLAGS == outer.flags.bits() & VALUE_FLAGS
        && is_machine(Opcode::Fma)
        && (shared || !is_machine(outer.op))
        // Two constants are more than one instruction takes.
        && !(shared && constants(product) && constants(sum))
        && negates(func, features, sum, ty)
}

/// Whether what a difference negates is negated by the machine.
fn negates(func: &Function, features: &Features, sum: Inst, ty: Type) -> bool {
    let data = &func.dfg.insts[sum];
    data.op == Opcode::Fadd || features.float_op(Opcode::Fneg, data.flags.intersect(Flags::FTZ), ty) || !ty.is_vector()
}

/// Makes a sum the fused one.
fn take(func: &mut Function, product: Inst, sum: Inst) {
    let value = func.dfg.result(product, 0);
    let factors: SmallVec<[Value; 2]> = func.dfg.args(product).iter().map(|v| func.dfg.resolve(*v)).collect();
    let terms: SmallVec<[Value; 2]> = func.dfg.args(sum).iter().map(|v| func.dfg.resolve(*v)).collect();
    let (&[mut a, b], &[x, y]) = (&factors[..], &terms[..]) else { return };
    let (op, flags) = (func.dfg.insts[sum].op, func.dfg.insts[sum].flags);
    let first = x == value;
    let mut other = if first { y } else { x };
    let loc = func.dfg.locs[sum];
    let mut builder = FunctionBuilder::before(func, sum);
    builder.set_loc(loc);
    if op == Opcode::Fsub {
        // a * b - c, or c - a * b.
        let negated = if first { &mut other } else { &mut a };
        *negated = builder.unary(Opcode::Fneg, *negated);
    }
    let fused = builder.ternary(Opcode::Fma, flags, a, b, other);
    let old = func.dfg.result(sum, 0);
    func.dfg.alias(old, fused);
    func.layout.remove_inst(sum);
}
