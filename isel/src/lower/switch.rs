//! Switches: tests of single numbers and ranges, tests of bits, tables of targets, and a tree over all of these.
//!
//! Numbers that lead to one place with the same arguments are one *way*; neighbouring numbers of a way are one
//! [`Cluster`]. Clusters that are dense enough are taken together into a table (`brx.idx`) or into constants whose bits say
//! which numbers go a way; what is left are ranges. A tree of comparisons finds the [`Item`] that a number may be in;
//! what is known of the number on the way there is not asked again.
//!
//! What the ways cost on sm_100a after ptxas: one number is a comparison and a branch, a range one instruction more unless one end is
//! known; bits are an addition, a constant and a shift, then a test and a branch for each way, whatever the number of numbers, since a
//! shift by more than the width gives zero in PTX; a table is a comparison and a branch, an addition, a load of constant memory and
//! an indirect branch, and takes the warp apart by target only, which a tree does at every level.

use std::ops::Range;

use ptxc_ir::{Block, BlockCall, Extra, Flags, Inst, Opcode, Type};
use ptxc_mir as mir;
use ptxc_mir::{Operand, RegClass, Terminator, VReg};
use ptxc_targets::{Tok, tok};
use rustc_hash::FxHashMap;

use super::Lower;
use crate::rules::Pattern;

/// Fewest clusters worth a table, and the most entries for each number and for each cluster.
const MIN_TABLE_CLUSTERS: usize = 6;
const MAX_ENTRIES_PER_NUMBER: u64 = 3;
const MAX_ENTRIES_PER_CLUSTER: u64 = 16;
/// Most ways that are decided by bits, and how many clusters make `n` ways worth it.
const MAX_BIT_WAYS: usize = 3;
const fn min_bit_clusters(ways: usize) -> usize {
    2 * ways + 1
}
/// Numbers that one constant has bits for.
const BITS: u64 = 32;
/// Items tried one after the other rather than split again.
const LINEAR_ITEMS: usize = 3;
/// How far a dense run is looked for: a limit keeps this linear.
const MAX_LOOK: usize = 1024;

/// Neighbouring numbers that go one way, both ends included.
#[derive(Clone, Copy, Debug)]
struct Cluster {
    low: u64,
    high: u64,
    /// Index of the way.
    way: usize,
}

/// What a leaf of the tree decides; ranges are of clusters.
#[derive(Clone, Debug)]
enum Item {
    /// One cluster.
    One(usize),
    /// A table of targets.
    Table(Range<usize>),
    /// Constants of bits.
    Bits(Range<usize>),
}

/// A switch under selection.
struct Switch {
    reg: VReg,
    wide: bool,
    default: mir::BlockCall,
    ways: Vec<mir::BlockCall>,
    /// In order. Numbers are taken as unsigned, after this bit was inverted: none, or the sign.
    bias: u64,
    clusters: Vec<Cluster>,
    items: Vec<Item>,
    uniform: bool,
}

/// A part of the tree: a block, the items that it decides between, and what is known of the number there.
struct Node {
    at: mir::Block,
    items: Range<usize>,
    low: u64,
    high: u64,
}

impl Switch {
    /// The first and last number of an item.
    fn ends(&self, item: &Item) -> (u64, u64) {
        let clusters = match item {
            Item::One(at) => *at..*at + 1,
            Item::Table(range) | Item::Bits(range) => range.clone(),
        };
        (self.clusters[clusters.start].low, self.clusters[clusters.end - 1].high)
    }

    /// Groups the clusters.
    fn make_items(&mut self) {
        let mut at = 0;
        while at < self.clusters.len() {
            let item = self.dense_run(at).unwrap_or(Item::One(at));
            at = match &item {
                Item::One(_) => at + 1,
                Item::Table(range) | Item::Bits(range) => range.end,
            };
            self.items.push(item);
        }
    }

    /// The longest run from a cluster on that a table or bits decide.
    fn dense_run(&self, start: usize) -> Option<Item> {
        let first = self.clusters[start].low;
        let mut numbers = 0u64;
        let mut ways: Vec<usize> = Vec::new();
        let mut best = None;
        for (index, cluster) in self.clusters.iter().enumerate().skip(start).take(MAX_LOOK) {
            let count = index - start + 1;
            numbers = numbers.saturating_add((cluster.high - cluster.low).saturating_add(1));
            if ways.len() <= MAX_BIT_WAYS && !ways.contains(&cluster.way) {
                ways.push(cluster.way);
            }
            let entries = (cluster.high - first).saturating_add(1);
            if entries <= BITS && ways.len() <= MAX_BIT_WAYS && count >= min_bit_clusters(ways.len()) {
                best = Some(Item::Bits(start..index + 1));
            } else if count >= MIN_TABLE_CLUSTERS
                && entries <= MAX_ENTRIES_PER_NUMBER.saturating_mul(numbers)
                && entries <= MAX_ENTRIES_PER_CLUSTER * count as u64
            {
                best = Some(Item::Table(start..index + 1));
            }
        }
        best
    }
}

impl Lower<'_> {
    /// A switch, its block ended and further ones behind it.
    pub(super) fn switch(&mut self, inst: Inst, block: mir::Block) {
        let data = &self.ir.dfg.insts[inst];
        let Extra::Switch(id) = data.extra else { return };
        let uniform = data.flags.contains(Flags::UNIFORM);
        let value = self.arg(inst, 0);
        let ty = self.ty(value);
        if !matches!(ty, Type::I32 | Type::I64) {
            self.error(inst, format!("`switch {ty}` is not legal"));
            return;
        }
        let table = self.ir.dfg.switches[id].clone();
        if let Some(bits) = self.const_bits(value) {
            self.note(Pattern::BranchKnown);
            let hit = table.cases.iter().find(|(key, _)| *key == bits).map_or(table.default, |(_, target)| *target);
            let target = self.target(&hit);
            self.end_block(block, Terminator::Jump(target));
            return;
        }
        let default = self.target(&table.default);
        let (numbers, ways) = self.ways(&table.cases, &table.default);
        let reg = self.reg_of(value);
        let wide = ty == Type::I64;
        let with = |bias| {
            let clusters = clusters(&numbers, bias);
            let ways = ways.clone();
            let mut switch = Switch { reg, wide, default, ways, bias, clusters, items: Vec::new(), uniform };
            switch.make_items();
            switch
        };
        // Small negative numbers are neighbours of zero when read with their sign.
        let (unsigned, signed) = (with(0), with(1 << (ty.bits() - 1)));
        let switch = if signed.items.len() < unsigned.items.len() { signed } else { unsigned };
        let known = self.known_ends(&switch, table.default.block);
        self.decide(&switch, block, known);
    }

    /// The numbers with the way of each, and the ways. What goes where all others go needs no decision.
    fn ways(&mut self, cases: &[(u128, BlockCall)], default: &BlockCall) -> (Vec<(u64, usize)>, Vec<mir::BlockCall>) {
        let mut index: FxHashMap<(Block, Vec<ptxc_ir::Value>), Option<usize>> = FxHashMap::default();
        let key = |call: &BlockCall| (call.block, call.args.as_slice(&self.ir.dfg.pool).to_vec());
        index.insert(key(default), None);
        let mut found = Vec::with_capacity(cases.len());
        let mut wanted: Vec<BlockCall> = Vec::new();
        for (number, call) in cases {
            let way = *index.entry(key(call)).or_insert_with(|| {
                wanted.push(*call);
                Some(wanted.len() - 1)
            });
            found.extend(way.map(|way| (*number as u64, way)));
        }
        let ways = wanted.iter().map(|call| self.target(call)).collect();
        (found, ways)
    }

    /// The least and the greatest number that comes: where all others are unreachable, those that are named.
    fn known_ends(&self, switch: &Switch, default: Block) -> (u64, u64) {
        let unreachable =
            self.ir.layout.first_inst(default).is_some_and(|inst| self.ir.dfg.insts[inst].op == Opcode::Unreachable);
        match (switch.clusters.first(), switch.clusters.last()) {
            (Some(first), Some(last)) if unreachable => (first.low, last.high),
            _ => (0, if switch.wide { u64::MAX } else { u64::from(u32::MAX) }),
        }
    }

    /// Emits the decision: the given block first, further ones behind it.
    fn decide(&mut self, switch: &Switch, block: mir::Block, known: (u64, u64)) {
        let mut work = vec![Node { at: block, items: 0..switch.items.len(), low: known.0, high: known.1 }];
        let mut made = Vec::new();
        while let Some(node) = work.pop() {
            let at = node.at;
            let outer = (at != block).then(|| std::mem::take(&mut self.emitted));
            self.decide_node(switch, node, &mut work, &mut made);
            if let Some(outer) = outer {
                let inner = std::mem::replace(&mut self.emitted, outer);
                self.func.blocks[at].insts.extend_from_slice(&inner);
            }
        }
        if !made.is_empty() {
            self.extra_blocks.push((block, made));
        }
    }

    fn decide_node(&mut self, switch: &Switch, node: Node, work: &mut Vec<Node>, made: &mut Vec<mir::Block>) {
        let items = &switch.items[node.items.clone()];
        let Some(first) = items.first() else {
            self.end_block(node.at, Terminator::Jump(switch.default));
            return;
        };
        if items.len() <= LINEAR_ITEMS {
            let (low, high) = switch.ends(first);
            // Behind an item that starts the known numbers come those above it, except that bits leave gaps.
            let leaves_gaps = matches!(first, Item::Bits(_));
            let next_low = if low == node.low && !leaves_gaps { high.saturating_add(1) } else { node.low };
            let otherwise = if items.len() == 1 {
                switch.default
            } else {
                let next = self.extra_block(made);
                let rest = node.items.start + 1..node.items.end;
                work.push(Node { at: next, items: rest, low: next_low, high: node.high });
                self.func.block_call(next, &[])
            };
            match first.clone() {
                Item::One(at) => self.decide_one(switch, &node, at, otherwise),
                Item::Table(range) => self.jump_table(switch, &node, range, otherwise, made),
                Item::Bits(range) => self.decide_bits(switch, &node, range, otherwise, made),
            }
            return;
        }
        self.note(Pattern::SwitchTree);
        let middle = node.items.start + items.len() / 2;
        let (pivot, _) = switch.ends(&switch.items[middle]);
        let pred = self.compare_key(switch, tok::LT, pivot);
        let (below, above) = (self.extra_block(made), self.extra_block(made));
        work.push(Node { at: above, items: middle..node.items.end, low: pivot, high: node.high });
        work.push(Node { at: below, items: node.items.start..middle, low: node.low, high: pivot - 1 });
        let (then, otherwise) = (self.func.block_call(below, &[]), self.func.block_call(above, &[]));
        self.branch_on(switch, node.at, pred, then, otherwise);
    }

    fn branch_on(
        &mut self,
        switch: &Switch,
        at: mir::Block,
        pred: VReg,
        then: mir::BlockCall,
        otherwise: mir::BlockCall,
    ) {
        self.end_block(at, Terminator::CondBra { pred, negated: false, uniform: switch.uniform, then, otherwise });
    }

    fn extra_block(&mut self, made: &mut Vec<mir::Block>) -> mir::Block {
        let block = self.func.blocks.push(mir::BlockData::default());
        made.push(block);
        block
    }

    /// Compares the operand with a number in the order of the clusters.
    fn compare_key(&mut self, switch: &Switch, comparison: Tok, key: u64) -> VReg {
        let key = key ^ switch.bias;
        if switch.bias == 0 || comparison == tok::EQ {
            return self.compare_number(switch.reg, switch.wide, comparison, key);
        }
        let pred = self.new_reg(RegClass::Pred);
        let suffix = if switch.wide { tok::S64 } else { tok::S32 };
        let imm = if switch.wide { key as i64 } else { i64::from(key as u32 as i32) };
        let operands = [Operand::Def(pred), Operand::Use(switch.reg), Operand::Imm(imm)];
        self.emit_toks(&[tok::SETP, comparison, suffix], &operands);
        pred
    }

    /// Compares a register with a number, unsigned.
    fn compare_number(&mut self, reg: VReg, wide: bool, comparison: Tok, key: u64) -> VReg {
        let pred = self.new_reg(RegClass::Pred);
        let suffix = if wide { tok::U64 } else { tok::U32 };
        let operands = [
            Operand::Def(pred),
            Operand::Use(reg),
            Operand::Imm(if wide { key as i64 } else { i64::from(key as u32) }),
        ];
        self.emit_toks(&[tok::SETP, comparison, suffix], &operands);
        pred
    }

    /// The operand less a number.
    fn less(&mut self, switch: &Switch, by: u64) -> VReg {
        let by = by ^ switch.bias;
        if by == 0 {
            return switch.reg;
        }
        let suffix = if switch.wide { tok::S64 } else { tok::S32 };
        let negative = by.wrapping_neg() as i64;
        let imm = if switch.wide { negative } else { i64::from(negative as i32) };
        self.binary_imm(&[tok::ADD, suffix], switch.reg, imm)
    }

    /// One cluster: nothing to ask where all numbers that are left are in it, one comparison where an end is known.
    fn decide_one(&mut self, switch: &Switch, node: &Node, at: usize, otherwise: mir::BlockCall) {
        let cluster = switch.clusters[at];
        let target = switch.ways[cluster.way];
        if cluster.low <= node.low && cluster.high >= node.high {
            self.end_block(node.at, Terminator::Jump(target));
            return;
        }
        self.note(if cluster.low == cluster.high { Pattern::SwitchCompare } else { Pattern::SwitchRange });
        let pred = if cluster.low == cluster.high {
            self.compare_key(switch, tok::EQ, cluster.low)
        } else if cluster.low <= node.low {
            self.compare_key(switch, tok::LE, cluster.high)
        } else if cluster.high >= node.high {
            self.compare_key(switch, tok::GE, cluster.low)
        } else {
            let from_low = self.less(switch, cluster.low);
            self.compare_number(from_low, switch.wide, tok::LE, cluster.high - cluster.low)
        };
        self.branch_on(switch, node.at, pred, target, otherwise);
    }

    /// A bit for each number: one, shifted left by the number, meets the constant of its way. A shift by more than the
    /// width gives zero (PTX ISA 9.7.8, shl), so that 32-bit numbers need no test of the range.
    fn decide_bits(
        &mut self,
        switch: &Switch,
        node: &Node,
        range: Range<usize>,
        otherwise: mir::BlockCall,
        made: &mut Vec<mir::Block>,
    ) {
        self.note(Pattern::SwitchBits);
        let clusters = &switch.clusters[range];
        let (low, high) = (clusters[0].low, clusters[clusters.len() - 1].high);
        let start = if switch.bias == 0 && high < BITS { 0 } else { low };
        let mut at = node.at;
        let mut index = self.less(switch, start);
        let inside = switch.wide && !(node.low >= start && node.high - start < BITS);
        let in_range = inside.then(|| self.compare_number(index, true, tok::LT, BITS));
        if switch.wide {
            index = self.convert_register(index, RegClass::B32, &[tok::CVT, tok::U32, tok::U64]);
        }
        let one = self.load_immediate(RegClass::B32, 1);
        let bit = self.new_reg(RegClass::B32);
        self.emit_toks(&[tok::SHL, tok::B32], &[Operand::Def(bit), Operand::Use(one), Operand::Use(index)]);
        let mut ways: Vec<(usize, u32)> = Vec::new();
        for cluster in clusters {
            let width = cluster.high - cluster.low + 1;
            let bits = ((((1u64 << width) - 1) << (cluster.low - start)) & u64::from(u32::MAX)) as u32;
            match ways.iter_mut().find(|(way, _)| *way == cluster.way) {
                Some((_, mask)) => *mask |= bits,
                None => ways.push((cluster.way, bits)),
            }
        }
        let count = ways.len();
        for (place, (way, mask)) in ways.into_iter().enumerate() {
            let outer = (at != node.at).then(|| std::mem::take(&mut self.emitted));
            let mut pred = self.meets(bit, mask);
            if let Some(in_range) = in_range {
                let both = self.new_reg(RegClass::Pred);
                let operands = [Operand::Def(both), Operand::Use(pred), Operand::Use(in_range)];
                self.emit_toks(&[tok::AND, tok::PRED], &operands);
                pred = both;
            }
            let next = if place + 1 == count {
                otherwise
            } else {
                let next = self.extra_block(made);
                self.func.block_call(next, &[])
            };
            self.branch_on(switch, at, pred, switch.ways[way], next);
            if let Some(outer) = outer {
                let inner = std::mem::replace(&mut self.emitted, outer);
                self.func.blocks[at].insts.extend_from_slice(&inner);
            }
            at = next.block;
        }
    }

    /// Whether a register and a constant have a bit in common, which ptxas makes one instruction.
    fn meets(&mut self, reg: VReg, mask: u32) -> VReg {
        let bit = self.binary_imm(&[tok::AND, tok::B32], reg, i64::from(mask as i32));
        let pred = self.new_reg(RegClass::Pred);
        let operands = [Operand::Def(pred), Operand::Use(bit), Operand::Imm(0)];
        self.emit_toks(&[tok::SETP, tok::NE, tok::B32], &operands);
        pred
    }

    /// `brx.idx` after a test of the range, which may be known (PTX ISA 9.7.12, brx.idx).
    fn jump_table(
        &mut self,
        switch: &Switch,
        node: &Node,
        range: Range<usize>,
        otherwise: mir::BlockCall,
        made: &mut Vec<mir::Block>,
    ) {
        let clusters = &switch.clusters[range];
        let (first, last) = (clusters[0].low, clusters[clusters.len() - 1].high);
        let mut index = self.less(switch, first);
        let mut table = node.at;
        let mut outer = None;
        if node.low >= first && node.high <= last {
            self.note(Pattern::SwitchTableWhole);
        } else {
            self.note(Pattern::SwitchTable);
            let pred = self.compare_number(index, switch.wide, tok::GT, last - first);
            table = self.extra_block(made);
            let inside = self.func.block_call(table, &[]);
            self.branch_on(switch, node.at, pred, otherwise, inside);
            outer = Some(std::mem::take(&mut self.emitted));
        }
        if switch.wide {
            index = self.convert_register(index, RegClass::B32, &[tok::CVT, tok::U32, tok::U64]);
        }
        if let Some(outer) = outer {
            let inner = std::mem::replace(&mut self.emitted, outer);
            self.func.blocks[table].insts.extend_from_slice(&inner);
        }
        let mut targets = Vec::new();
        let mut next = clusters.iter().peekable();
        for key in first..=last {
            while next.next_if(|cluster| cluster.high < key).is_some() {}
            let hit = next.peek().filter(|cluster| cluster.low <= key);
            targets.push(hit.map_or(switch.default, |cluster| switch.ways[cluster.way]));
        }
        self.end_block(table, Terminator::BrxIdx { index, uniform: switch.uniform, targets });
    }
}

/// The numbers in order, neighbours that go one way together.
fn clusters(numbers: &[(u64, usize)], bias: u64) -> Vec<Cluster> {
    let mut sorted: Vec<(u64, usize)> = numbers.iter().map(|(number, way)| (number ^ bias, *way)).collect();
    sorted.sort_unstable();
    let mut clusters: Vec<Cluster> = Vec::new();
    for (number, way) in sorted {
        match clusters.last_mut() {
            Some(last) if last.way == way && last.high.checked_add(1) == Some(number) => last.high = number,
            _ => clusters.push(Cluster { low: number, high: number, way }),
        }
    }
    clusters
}
