//! Covers against the fewest instructions an exhaustive search finds, for every tree of up to five inputs.

use super::cuts::{Cut, Cuts, Leaf};
use super::table::{self, INPUT};
use super::{for_operands, instructions};

/// A tree of binary operations over leaves that occur once each.
#[derive(Clone)]
enum Tree {
    Leaf(usize),
    Op(u8, Box<Tree>, Box<Tree>),
}

fn apply(op: u8, a: u32, b: u32) -> u32 {
    match op {
        0 => a & b,
        1 => a | b,
        2 => a ^ b,
        _ => a & !b,
    }
}

/// All trees with these leaves in order.
fn trees(first: usize, count: usize) -> Vec<Tree> {
    if count == 1 {
        return vec![Tree::Leaf(first)];
    }
    let mut out = Vec::new();
    for left in 1..count {
        for a in trees(first, left) {
            for b in trees(first + left, count - left) {
                for op in 0..4 {
                    out.push(Tree::Op(op, Box::new(a.clone()), Box::new(b.clone())));
                }
            }
        }
    }
    out
}

impl Tree {
    fn table(&self) -> u32 {
        match self {
            Tree::Leaf(index) => INPUT[*index],
            Tree::Op(op, a, b) => apply(*op, a.table(), b.table()),
        }
    }

    /// As selection covers it: a node's own value is a leaf of its user at the node's cost.
    fn cuts(&self, next: &mut u32) -> Cuts {
        match self {
            Tree::Leaf(index) => Cuts::one(Cut::leaf(Leaf { number: *index as u32, cost: 0, constant: false })),
            Tree::Op(op, a, b) => {
                let (a, b) = (a.cuts(next), b.cuts(next));
                let mut cuts = Cuts::of(&a, &b, |x, y| apply(*op, x, y));
                *next += 1;
                if let Some(best) = cuts.best() {
                    let leaf = Leaf { number: *next, cost: best.cost, constant: false };
                    cuts.keep(Cut::leaf(leaf));
                }
                cuts
            }
        }
    }
}

/// Fewest tables for a function of all of `inputs` inputs: one up to three of them, two if it splits, and never more than
/// three for a tree of five.
fn fewest(table: u32, inputs: usize) -> u32 {
    match inputs {
        0..=3 => 1,
        _ if table::split(table, inputs).is_some() => 2,
        _ => 3,
    }
}

#[test]
fn every_tree_of_five_inputs_is_covered_by_the_fewest_tables() {
    let mut seen = [0u32; 4];
    for inputs in 2..=5 {
        for tree in trees(0, inputs) {
            let mut next = 100;
            let cuts = tree.cuts(&mut next);
            let ours = instructions(&cuts).expect("a tree has a cover");
            let best = fewest(tree.table(), inputs);
            assert_eq!(ours, best, "{:#x} of {inputs} inputs", tree.table());
            seen[ours as usize] += 1;
        }
    }
    assert!(seen[1] >= 36 && seen[2] > 3000 && seen[3] > 100, "{seen:?}");
}

#[test]
fn tables_are_those_of_ptx() {
    // PTX counts the first operand as the highest bit.
    assert_eq!(for_operands(INPUT[0] as u8, 3), 0xf0);
    assert_eq!(for_operands(INPUT[2] as u8, 3), 0xaa);
    assert_eq!(for_operands((INPUT[0] & INPUT[1]) as u8, 2), 0xc0);
    assert_eq!(for_operands(!INPUT[0] as u8, 1), 0x0f);
}

#[test]
fn an_input_that_cancels_is_dropped() {
    let leaf = |number| Cuts::one(Cut::leaf(Leaf { number, cost: 0, constant: false }));
    let product = Cuts::of(&leaf(1), &leaf(2), |a, b| a & b);
    let absorbed = Cuts::of(&product, &leaf(2), |a, b| a | b);
    let best = absorbed.best().expect("a cover");
    assert_eq!(best.leaves().len(), 1);
    assert_eq!(best.leaves()[0].number, 2);
}
