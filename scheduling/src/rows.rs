//! Products of matrices in rows, every other one from its end.
//!
//! Programs multiply each fragment of one matrix by all fragments of another: `a0 b0, a0 b1, …, a1 b0, a1 b1, …`. The
//! machine keeps an operand that the next product reads again; where a row ends with a fragment, the next one begins with it when
//! every other row is turned around. With ptxas 13.5 on an H200 the product in stages takes 0.3 to 0.9 % less time for it
//! (`tests/scripts/gemm_stages_speed.py`, 150 rounds), with rows of eight; `examples/gemm_bf16.ir`, with rows of four, took 1.8 % more.

use crate::facts::FunctionFacts;
use crate::machine::Machine;
use cranelift_entity::EntitySet;
use ptxc_mir::{Function, Inst, VReg};
use smallvec::SmallVec;

/// The shortest rows that are turned.
const SHORTEST: usize = 8;

/// Neighbouring products of one left fragment: the places of the first and of the last in the order.
struct Row {
    places: Vec<usize>,
    /// The first register of the left fragment.
    left: VReg,
    /// The first registers of the right fragments at both ends.
    ends: (VReg, VReg),
}

/// Turns rows around in an order where they begin with what the row before ended with then, and nothing stands in the way.
pub(crate) fn turn_rows(func: &Function, facts: &FunctionFacts<'_>, machine: &Machine, order: &mut [Inst]) {
    let is_product = |inst: Inst| machine.is_product(machine.timing(func, inst));
    let products: Vec<usize> = (0..order.len()).filter(|place| is_product(order[*place])).collect();
    let mut last: Option<(VReg, VReg)> = None;
    let mut rest = &products[..];
    while let Some(row) = Row::first_of(func, order, rest) {
        rest = &rest[row.places.len()..];
        let (begin, end) = row.ends;
        let turns = last.is_some_and(|(left, right)| left != row.left && right == end && right != begin);
        let turned = turns && row.places.len() >= SHORTEST && is_free(func, facts, order, &row.places);
        if turned {
            let insts: SmallVec<[Inst; 16]> = row.places.iter().rev().map(|place| order[*place]).collect();
            row.places.iter().zip(insts).for_each(|(place, inst)| order[*place] = inst);
        }
        last = Some((row.left, if turned { begin } else { end }));
    }
}

impl Row {
    /// The row that products begin with.
    fn first_of(func: &Function, order: &[Inst], products: &[usize]) -> Option<Row> {
        let reads = |place: usize| {
            let mut regs: SmallVec<[VReg; 16]> = SmallVec::new();
            func.for_each_use(order[place], |reg| regs.push(reg));
            regs
        };
        let first = reads(*products.first()?);
        let left = *first.first()?;
        let mut places = vec![products[0]];
        let mut right = None;
        let mut ends = (left, left);
        for place in products[1..].iter().copied() {
            let next = reads(place);
            // Behind the registers of the left fragment come those of the right one (PTX ISA 9.7.14).
            let differs = first.iter().zip(&next).position(|(a, b)| a != b);
            let Some(differs) = differs.filter(|index| *index > 0 && right.is_none_or(|right| right == *index)) else {
                break;
            };
            if next.len() != first.len() || func.insts[order[place]].op != func.insts[order[places[0]]].op {
                break;
            }
            right = Some(differs);
            ends = (first[differs], next[differs]);
            places.push(place);
        }
        Some(Row { places, left, ends })
    }
}

/// Whether products may stand in any order in their places: nothing between them makes what they read or reads what they make, not
/// one another either, and nothing there is a boundary.
fn is_free(func: &Function, facts: &FunctionFacts<'_>, order: &[Inst], places: &[usize]) -> bool {
    let (Some(first), Some(last)) = (places.first(), places.last()) else { return false };
    let (mut read, mut made): (EntitySet<VReg>, EntitySet<VReg>) = (EntitySet::new(), EntitySet::new());
    for place in places {
        func.for_each_use(order[*place], |reg| {
            read.insert(reg);
        });
        func.for_each_def(order[*place], |reg| {
            made.insert(reg);
        });
    }
    order[*first..=*last].iter().all(|&inst| {
        let mut free = !facts.of(func, inst).boundary;
        func.for_each_def(inst, |reg| free &= !read.contains(reg));
        func.for_each_use(inst, |reg| free &= !made.contains(reg));
        free
    })
}
