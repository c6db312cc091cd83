//! Trees of pairs: which operations become one, grown from two values toward what they are made of.

use ptxc_ir::{Function, Inst, Opcode, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::cost::{self, Gather};
use super::lanes::{lane_of, scalar_of};
use super::{Packer, isomorphic, packable};

/// Pairs of one tree, and how deep it is.
const MAX_NODES: usize = 48;
const MAX_DEPTH: u32 = 16;

/// A node of a tree by its number; operands have smaller numbers.
pub(super) type NodeId = usize;

/// Two values side by side.
pub(super) struct Node {
    pub a: Value,
    pub b: Value,
    pub kind: Kind,
    /// Instructions that this and what it is made of take more than the scalars do.
    cost: i32,
}

/// How two values come together.
pub(super) enum Kind {
    /// They are lanes of a vector from an even one on.
    Lanes(Value, u32),
    /// They are put together.
    Gather,
    /// One operation computes both.
    Operation(Inst, Inst, SmallVec<[NodeId; 3]>),
}

/// A tree that is grown.
pub(super) struct Tree {
    pub nodes: Vec<Node>,
    /// The node that computes an instruction's result.
    pub members: FxHashMap<Inst, NodeId>,
    known: FxHashMap<(Value, Value), NodeId>,
    /// The node of two values that are taken to be lanes of a vector.
    assumed: Option<NodeId>,
}

impl Tree {
    pub fn new() -> Tree {
        Tree { nodes: Vec::new(), members: FxHashMap::default(), known: FxHashMap::default(), assumed: None }
    }

    /// The node of an operation that computes both values, if they are computed alike.
    pub fn grow(&mut self, packer: &Packer<'_>, func: &Function, a: Value, b: Value) -> Option<NodeId> {
        self.operation(packer, func, a, b, 0)
    }

    /// Takes two values to be lanes of a vector. Such a tree tells what it costs, but is not made.
    pub fn assume(&mut self, a: Value, b: Value) {
        self.assumed = Some(self.push(Node { a, b, kind: Kind::Lanes(a, 0), cost: 0 }));
    }

    /// Whether an operation reads them together.
    pub fn reads_assumed(&self) -> bool {
        let Some(assumed) = self.assumed else { return false };
        self.nodes.iter().any(|node| matches!(&node.kind, Kind::Operation(_, _, from) if from.contains(&assumed)))
    }

    /// Instructions that a node takes more, without what taking lanes out of pairs does.
    pub fn own_cost(&self, node: NodeId) -> i32 {
        self.nodes[node].cost
    }

    /// The instructions that compute upper lanes, with their results.
    pub fn uppers(&self) -> impl Iterator<Item = (Inst, Value)> + '_ {
        self.nodes.iter().filter_map(|node| match &node.kind {
            Kind::Operation(_, upper, _) => Some((*upper, node.b)),
            _ => None,
        })
    }

    /// Instructions that packing a tree takes more than the scalars; negative if it saves some.
    pub fn cost(&self, packer: &Packer<'_>, func: &Function, root: NodeId, built: bool) -> i32 {
        let mut cost = self.nodes[root].cost;
        for node in &self.nodes {
            if let Kind::Operation(_, upper, _) = &node.kind {
                let users = packer.users[node.b].iter().filter(|user| !self.members.contains_key(user));
                cost += cost::extraction(func, *upper, users);
            }
        }
        cost - if built { cost::building(func, self.nodes[root].a) } else { 0 }
    }

    fn node(&mut self, packer: &Packer<'_>, func: &Function, a: Value, b: Value, user: Inst, depth: u32) -> NodeId {
        let [a, b] = [a, b].map(|v| scalar_of(func, v));
        if let Some(known) = self.known.get(&(a, b)) {
            return *known;
        }
        let lanes = match (lane_of(func, a), lane_of(func, b)) {
            (Some((v, x)), Some((w, y))) if v == w && x % 2 == 0 && y == x + 1 => Some((v, x)),
            _ => None,
        };
        if let Some((vector, first)) = lanes {
            return self.push(Node { a, b, kind: Kind::Lanes(vector, first), cost: 0 });
        }
        let apart = cost::gathering(&Gather { packer, func, user, a, b });
        let mark = self.nodes.len();
        if let Some(id) = self.operation(packer, func, a, b, depth) {
            if self.nodes[id].cost < apart {
                return id;
            }
            self.forget(mark);
        }
        self.push(Node { a, b, kind: Kind::Gather, cost: apart })
    }

    /// An operation whose lanes compute the two values.
    fn operation(&mut self, packer: &Packer<'_>, func: &Function, a: Value, b: Value, depth: u32) -> Option<NodeId> {
        let [x, y] = [func.dfg.def_inst(a)?, func.dfg.def_inst(b)?];
        let fits = depth < MAX_DEPTH
            && self.nodes.len() < MAX_NODES
            && [x, y].iter().all(|inst| packer.is_here(func, *inst) && !self.members.contains_key(inst))
            && isomorphic(func, x, y)
            && packable(packer.ctx, func, x);
        if !fits {
            return None;
        }
        // Their number is known when their operands are.
        self.members.insert(x, usize::MAX);
        self.members.insert(y, usize::MAX);
        let mut cost = cost::gain(packer, func, x);
        let mut operands: SmallVec<[NodeId; 3]> = SmallVec::new();
        for (p, q) in paired_operands(func, x, y) {
            let id = self.node(packer, func, p, q, x, depth + 1);
            cost += self.nodes[id].cost;
            operands.push(id);
        }
        let id = self.push(Node { a, b, kind: Kind::Operation(x, y, operands), cost });
        self.members.insert(x, id);
        self.members.insert(y, id);
        Some(id)
    }

    fn push(&mut self, node: Node) -> NodeId {
        let id = self.nodes.len();
        self.known.insert((node.a, node.b), id);
        self.nodes.push(node);
        id
    }

    /// Forgets nodes from a number on.
    fn forget(&mut self, mark: NodeId) {
        for node in self.nodes.drain(mark..) {
            self.known.remove(&(node.a, node.b));
            if let Kind::Operation(x, y, _) = node.kind {
                self.members.remove(&x);
                self.members.remove(&y);
            }
        }
    }
}

/// The operands of two operations that come together, in the order of the first. Operands of the second that commute are
/// exchanged where they fit better.
fn paired_operands(func: &Function, x: Inst, y: Inst) -> SmallVec<[(Value, Value); 3]> {
    use Opcode::{Fadd, Fma, Fmax, Fmaximum, Fmin, Fminimum, Fmul};
    let of = |inst: Inst| -> SmallVec<[Value; 3]> { func.dfg.args(inst).iter().map(|v| scalar_of(func, *v)).collect() };
    let (p, mut q) = (of(x), of(y));
    let commutes = matches!(func.dfg.insts[x].op, Fadd | Fma | Fmax | Fmaximum | Fmin | Fminimum | Fmul);
    if commutes && p.len() >= 2 && q.len() >= 2 {
        let fit = |a: usize, b: usize| cost::likeness(func, p[a], q[b]);
        if fit(0, 1) + fit(1, 0) > fit(0, 0) + fit(1, 1) {
            q.swap(0, 1);
        }
    }
    p.into_iter().zip(q).collect()
}
