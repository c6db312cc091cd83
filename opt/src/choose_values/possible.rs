//! Switches on numbers of which bits are known: what cannot occur is no case, and where few others are left they are
//! cases too, so that nothing else comes.

use ptxc_ir::{Bits, BlockCall, Cfg, Extra, Function, FunctionBuilder, Inst, KnownBits, Opcode, Value};
use smallvec::SmallVec;

use crate::pass::Context;
use crate::rules::Rule;

/// Most numbers that are looked at.
const MOST_POSSIBLE: u32 = 64;

/// Removes cases that cannot occur. Where all others are cases, or would be with one run of neighbours more, the default is
/// never reached.
pub(super) fn restrict(func: &mut Function, ctx: &Context<'_>) -> bool {
    let is_switch = |inst: &Inst| matches!(func.dfg.insts[*inst].extra, Extra::Switch(_));
    let switches: Vec<Inst> =
        func.layout.blocks().filter_map(|block| func.layout.last_inst(block)).filter(is_switch).collect();
    if switches.is_empty() {
        return false;
    }
    let known = known_bits(func);
    let mut changed = false;
    for inst in switches {
        if restrict_one(func, &known, inst).is_some() {
            ctx.note(inst, Rule::SwitchPossible);
            changed = true;
        }
    }
    changed
}

fn known_bits(func: &Function) -> KnownBits {
    let mut known = KnownBits::new(func);
    for block in Cfg::new(func).rpo() {
        for inst in func.layout.insts(*block) {
            known.visit(func, inst);
        }
    }
    known
}

fn restrict_one(func: &mut Function, known: &KnownBits, inst: Inst) -> Option<()> {
    let Extra::Switch(id) = func.dfg.insts[inst].extra else { return None };
    let value = func.dfg.resolve(*func.dfg.args(inst).first()?);
    let ty = func.dfg.ty(value);
    if !ty.is_int() || ty.is_vector() || !(8..=64).contains(&ty.bits()) {
        return None;
    }
    let bits = known.of(func, value);
    let occurs = |number: u128| number as u64 & bits.zeros == 0 && number as u64 & bits.ones == bits.ones;
    let data = &func.dfg.switches[id];
    let (default, before) = (data.default, data.cases.len());
    let mut cases: Vec<(u128, BlockCall)> = data.cases.iter().copied().filter(|(number, _)| occurs(*number)).collect();
    let ends = func.layout.first_inst(default.block).map(|first| func.dfg.insts[first].op) == Some(Opcode::Unreachable);
    let missing = if ends { None } else { missing(bits, &cases) };
    if missing.is_none() && cases.len() == before {
        return None;
    }
    if let Some(missing) = missing {
        // Each case has arguments of its own: who takes one away takes it from all that share them.
        let args: SmallVec<[Value; 4]> = default.args.as_slice(&func.dfg.pool).iter().copied().collect();
        for number in missing {
            cases.push((number.into(), func.dfg.block_call(default.block, &args)));
        }
        let block = func.layout.inst_block(inst)?;
        let mut builder = FunctionBuilder::new(func);
        let never = builder.block_after(block);
        builder.switch_to(never);
        builder.inst(Opcode::Unreachable, ptxc_ir::Flags::EMPTY, ptxc_ir::Type::INVALID, &[], Extra::None);
        let never = func.dfg.block_call(never, &[]);
        func.dfg.switches[id].default = never;
    }
    func.dfg.switches[id].cases = cases;
    Some(())
}

/// The possible numbers that are no case: none, one, or one run of neighbours of no more than the cases.
fn missing(bits: Bits, cases: &[(u128, BlockCall)]) -> Option<Vec<u64>> {
    let free = !(bits.zeros | bits.ones);
    if free.count_ones() > MOST_POSSIBLE.ilog2() {
        return None;
    }
    let mut named: Vec<u64> = cases.iter().map(|(number, _)| *number as u64).collect();
    named.sort_unstable();
    let mut missing = Vec::new();
    // All subsets of the bits that are not known, in order.
    let mut part = 0u64;
    loop {
        let number = part | bits.ones;
        if named.binary_search(&number).is_err() {
            missing.push(number);
        }
        if part == free {
            break;
        }
        part = part.wrapping_sub(free) & free;
    }
    let run = missing.windows(2).all(|pair| pair[0] + 1 == pair[1]) && missing.len() <= cases.len();
    (!cases.is_empty() && (missing.len() <= 1 || run)).then_some(missing)
}
