//! The dependence graph of a region: a run of instructions of one block between boundaries.
//!
//! Nodes are numbered so that every edge leads from a lower to a higher number. Besides instructions there are *joins*,
//! nodes without an instruction that stand for "all of these": many accesses before many others need one join and not
//! all pairs. Building is linear in the number of operands and accesses, but for the logarithm of a sort of the few
//! predecessors of a node.

mod memory;

use crate::facts::{Chains, Facts, FunctionFacts};
use cranelift_entity::SecondaryMap;
use cranelift_entity::packed_option::PackedOption;
use memory::Memory;
use ptxc_mir::{Block, Function, Inst, RegUse, VReg};
use std::ops::Range;

/// A node of a graph.
pub type Node = u32;

/// Why one node comes after another.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Kind {
    /// It reads a register that the other writes: after the other's latency.
    Data,
    /// It writes the register that the other reads: of a tied operand, or around a loop.
    Tie,
    /// Both access memory that may overlap, and one writes.
    Memory,
    /// Both are in a chain that keeps its order.
    Order,
}

/// An edge as one of its ends sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Edge {
    /// The other end.
    pub node: Node,
    /// Why.
    pub kind: Kind,
}

/// The dependences of a region.
#[derive(Clone, Debug, Default)]
pub struct Graph {
    /// Positions in the block.
    region: Range<usize>,
    insts: Vec<PackedOption<Inst>>,
    preds: Vec<Edge>,
    pred_start: Vec<u32>,
    succs: Vec<Edge>,
    succ_start: Vec<u32>,
}

impl Graph {
    /// Where the region lies in its block.
    pub fn region(&self) -> Range<usize> {
        self.region.clone()
    }

    /// Number of nodes, joins included.
    pub fn len(&self) -> usize {
        self.insts.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.insts.is_empty()
    }

    /// The instruction of a node; `None` is a join, which costs nothing.
    pub fn inst(&self, node: Node) -> Option<Inst> {
        self.insts[node as usize].expand()
    }

    /// What a node comes after.
    pub fn preds(&self, node: Node) -> &[Edge] {
        &self.preds[self.pred_start[node as usize] as usize..self.pred_start[node as usize + 1] as usize]
    }

    /// What comes after a node.
    pub fn succs(&self, node: Node) -> &[Edge] {
        &self.succs[self.succ_start[node as usize] as usize..self.succ_start[node as usize + 1] as usize]
    }

    /// Number of edges.
    pub fn edge_count(&self) -> usize {
        self.preds.len()
    }

    fn clear(&mut self) {
        self.insts.clear();
        self.preds.clear();
        self.pred_start.clear();
        self.pred_start.push(0);
    }

    fn push(&mut self, inst: Option<Inst>, preds: &[Edge]) -> Node {
        let node = self.insts.len() as Node;
        self.insts.push(inst.into());
        self.preds.extend_from_slice(preds);
        self.pred_start.push(self.preds.len() as u32);
        node
    }

    /// Fills in the successors, by counting.
    fn turn(&mut self) {
        let nodes = self.insts.len();
        self.succ_start.clear();
        self.succ_start.resize(nodes + 1, 0);
        for edge in &self.preds {
            self.succ_start[edge.node as usize + 1] += 1;
        }
        for node in 0..nodes {
            self.succ_start[node + 1] += self.succ_start[node];
        }
        self.succs.clear();
        self.succs.resize(self.preds.len(), Edge { node: 0, kind: Kind::Data });
        let mut next = self.succ_start.clone();
        for node in 0..nodes {
            for at in self.pred_start[node] as usize..self.pred_start[node + 1] as usize {
                let Edge { node: from, kind } = self.preds[at];
                self.succs[next[from as usize] as usize] = Edge { node: node as Node, kind };
                next[from as usize] += 1;
            }
        }
    }
}

/// State of a register in the region under construction.
#[derive(Clone, Copy, Default)]
struct Register {
    /// For which region the rest is meant.
    epoch: u32,
    /// The node that defines it, plus one.
    def: u32,
    /// Its last reader in `Builder::readers`, plus one.
    reader: u32,
}

/// A chain in the region under construction.
#[derive(Clone, Default)]
struct Chain {
    writer: Option<Node>,
    readers: Vec<Node>,
}

/// Builds graphs of one function; keeps what it allocated.
pub struct Builder<'a> {
    facts: &'a FunctionFacts<'a>,
    graph: Graph,
    registers: SecondaryMap<VReg, Register>,
    /// Readers of registers: node, and the one before plus one.
    readers: Vec<(Node, u32)>,
    epoch: u32,
    chains: Vec<Chain>,
    memory: Memory,
    /// Which parameter a register becomes along an edge out of the block.
    carried: SecondaryMap<VReg, PackedOption<VReg>>,
    /// Predecessors of the node to be made.
    preds: Vec<Edge>,
    /// For each node the last one that comes after it by another predecessor, plus one.
    implied: Vec<u32>,
}

impl<'a> Builder<'a> {
    /// A builder that knows a function's facts.
    pub fn new(facts: &'a FunctionFacts<'a>) -> Builder<'a> {
        Builder {
            facts,
            graph: Graph::default(),
            registers: SecondaryMap::new(),
            readers: Vec::new(),
            epoch: 0,
            chains: vec![Chain::default(); Chains::COUNT],
            memory: Memory::default(),
            carried: SecondaryMap::new(),
            preds: Vec::new(),
            implied: Vec::new(),
        }
    }

    /// Calls `f` with the graph of each region of a block, in order. A boundary is a region of its own.
    pub fn each_region(&mut self, func: &Function, block: Block, mut f: impl FnMut(&Graph)) {
        self.set_carried(func, block, true);
        let count = func.blocks[block].insts.len();
        let mut start = 0;
        while start < count {
            start = self.build(func, block, start);
            f(&self.graph);
        }
        self.set_carried(func, block, false);
    }

    /// Notes, or forgets, which registers the block passes on as which parameters.
    fn set_carried(&mut self, func: &Function, block: Block, note: bool) {
        func.blocks[block].terminator.for_each_target(|target| {
            let params = &func.blocks[target.block].params;
            for (&param, &arg) in params.iter().zip(func.call_args(target)) {
                self.carried[arg] = if note && param != arg { param.into() } else { None.into() };
            }
        });
    }

    /// Builds the region that starts at position `start` of a block; the position after it.
    fn build(&mut self, func: &Function, block: Block, start: usize) -> usize {
        self.begin();
        let insts = &func.blocks[block].insts;
        let mut end = start;
        for &inst in &insts[start..] {
            let facts = self.facts.of(func, inst);
            if facts.boundary && end > start {
                break;
            }
            self.add(func, inst, &facts);
            end += 1;
            if facts.boundary {
                break;
            }
        }
        self.graph.region = start..end;
        self.graph.turn();
        end
    }

    fn begin(&mut self) {
        self.graph.clear();
        self.epoch += 1;
        self.readers.clear();
        for chain in &mut self.chains {
            chain.writer = None;
            chain.readers.clear();
        }
        self.memory.clear();
        self.implied.clear();
    }

    fn register(&mut self, reg: VReg) -> &mut Register {
        let epoch = self.epoch;
        let register = &mut self.registers[reg];
        if register.epoch != epoch {
            *register = Register { epoch, ..Register::default() };
        }
        register
    }

    fn add(&mut self, func: &Function, inst: Inst, facts: &Facts) {
        self.preds.clear();
        self.register_edges(func, inst);
        for access in &facts.accesses {
            self.memory.access(access, &mut self.graph, &mut self.preds);
        }
        self.chain_edges(facts);
        self.prune();
        let node = self.graph.push(Some(inst), &self.preds);
        self.record_registers(func, inst, node);
        self.record_chains(facts, node);
        if !facts.asynchronous {
            for access in &facts.accesses {
                self.memory.record(access, node);
            }
        }
    }

    fn register_edges(&mut self, func: &Function, inst: Inst) {
        if let Some(guard) = func.insts[inst].guard {
            self.used(guard.pred);
        }
        for operand in func.inst_operands(inst) {
            match operand.reg() {
                Some(RegUse::Use(reg)) => self.used(reg),
                Some(RegUse::Def(reg)) => self.replaces_carried(reg),
                Some(RegUse::Tied { def, used }) => {
                    self.used(used);
                    self.after_readers(used);
                    self.replaces_carried(def);
                }
                None => {}
            }
        }
    }

    fn used(&mut self, reg: VReg) {
        let def = self.register(reg).def;
        if def != 0 {
            self.preds.push(Edge { node: def - 1, kind: Kind::Data });
        }
    }

    /// A value that goes around a loop wants the register of the one it replaces: it is made when that one was read for
    /// the last time, else assignment has to move it.
    fn replaces_carried(&mut self, reg: VReg) {
        if let Some(param) = self.carried[reg].expand() {
            self.after_readers(param);
        }
    }

    fn after_readers(&mut self, reg: VReg) {
        let mut at = self.register(reg).reader;
        while at != 0 {
            let (node, before) = self.readers[at as usize - 1];
            self.preds.push(Edge { node, kind: Kind::Tie });
            at = before;
        }
        // Whatever wants to come after these readers again comes after this node.
        self.register(reg).reader = 0;
    }

    fn record_registers(&mut self, func: &Function, inst: Inst, node: Node) {
        if let Some(guard) = func.insts[inst].guard {
            self.record_reader(guard.pred, node);
        }
        for operand in func.inst_operands(inst) {
            if let Some(reg) = operand.used() {
                self.record_reader(reg, node);
            }
            if let Some(reg) = operand.def() {
                self.register(reg).def = node + 1;
                if let Some(param) = self.carried[reg].expand() {
                    // Stands for the readers that it came after.
                    self.record_reader(param, node);
                }
            }
        }
    }

    fn record_reader(&mut self, reg: VReg, node: Node) {
        let before = self.register(reg).reader;
        self.readers.push((node, before));
        self.register(reg).reader = self.readers.len() as u32;
    }

    fn chain_edges(&mut self, facts: &Facts) {
        for number in facts.reads.union(facts.writes).numbers() {
            if let Some(writer) = self.chains[number].writer {
                self.preds.push(Edge { node: writer, kind: Kind::Order });
            }
        }
        for number in facts.writes.numbers() {
            self.preds.extend(self.chains[number].readers.iter().map(|&node| Edge { node, kind: Kind::Order }));
        }
    }

    fn record_chains(&mut self, facts: &Facts, node: Node) {
        for number in facts.writes.numbers() {
            self.chains[number].writer = Some(node);
            self.chains[number].readers.clear();
        }
        for number in facts.reads.without(facts.writes).numbers() {
            self.chains[number].readers.push(node);
        }
        // What synchronizes has all accesses behind it.
        self.memory.synchronize(facts.writes);
    }

    /// One edge to each node, the strongest; none that another edge implies.
    fn prune(&mut self) {
        let preds = &mut self.preds;
        if preds.len() < 2 {
            return;
        }
        preds.sort_unstable_by_key(|edge| (edge.node, edge.kind));
        preds.dedup_by_key(|edge| edge.node);
        if preds.iter().all(|edge| edge.kind == Kind::Data) {
            return;
        }
        // Nodes before which a predecessor already comes, as far as one step shows.
        let mark = self.graph.len() as u32 + 1;
        self.implied.resize(self.graph.len(), 0);
        let mut budget = 256usize;
        for edge in preds.iter() {
            let before = self.graph.preds(edge.node);
            budget = budget.saturating_sub(before.len());
            if budget == 0 {
                break;
            }
            before.iter().for_each(|edge| self.implied[edge.node as usize] = mark);
        }
        let implied = &self.implied;
        preds.retain(|edge| edge.kind == Kind::Data || implied[edge.node as usize] != mark);
    }
}

impl std::fmt::Debug for Builder<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Builder").field("graph", &self.graph).finish_non_exhaustive()
    }
}
