//! The list scheduler: one region after the other, cycle by cycle, what is ready first.
//!
//! It has two modes. In *latency* mode the instruction with the longest way to the region's end goes first, of those
//! whose sources and unit are free in this cycle; source order decides among equals. When that would make more registers
//! live than the limit, it is in *pressure* mode: the instruction that frees most goes first, or the next in source
//! order, whatever it has to wait for. The mode is chosen anew for every instruction.
//!
//! Where products of matrices take most of a region's time, loads of matrices and asynchronous copies can be *spread*: as
//! long as a product could issue, the next of them waits until its share of the products is through. One of them stands
//! wherever products that add to the results of others begin, a *wave*: ptxas orders products of two waves that adjoin
//! so that the first loads of a loop come late, which costs 3 % (13.5, sm_90a; README.md has the product it was measured on).

use crate::facts::ModuleFacts;
use crate::graph::{Graph, Kind, Node};
use crate::groups::Groups;
use crate::live::{Liveness, Pressure};
use crate::machine::Machine;
use ptxc_mir::{Block, Function, Inst};
use ptxc_targets::timing::{Timing, Unit};
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};

/// How many instructions in source order pressure mode looks at.
const WINDOW: usize = 64;

/// The lane of loads that are spread between products, and behind it that of copies; the lanes before it are units.
const SPREAD: usize = Unit::COUNT;
const COPIES: usize = SPREAD + 1;

/// What is left to spread in a region, and between what.
#[derive(Clone, Copy, Debug, Default)]
struct Spread {
    /// There is something to spread, and products enough.
    active: bool,
    /// Cycles of products to come.
    products: u32,
    /// Loads and copies to come.
    left: u32,
    /// The cycle from which the next may issue.
    from: u32,
    /// The last was a copy, and others follow it: what Hopper's assembler puts before a copy that comes after a load from
    /// shared memory, three dummy loads, it puts once then.
    copying: bool,
    /// The wave of the last product, and whether something was spread since.
    wave: u32,
    parted: bool,
}

/// The scheduler of one function; keeps what it allocated.
#[derive(Debug)]
pub struct List<'a> {
    machine: &'a Machine,
    facts: &'a ModuleFacts,
    /// The most registers to be live at once.
    limit: u32,
    pressure: Pressure,
    nodes: Vec<NodeState>,
    /// Nodes whose predecessors are done, in source order.
    free: BTreeSet<Node>,
    /// Those that wait for a result, by the cycle in which it is there.
    pending: BinaryHeap<Reverse<(u32, Node)>>,
    /// Those that wait for nothing but their unit, by length of the way to the end: one lane for each unit, [`SPREAD`]
    /// and [`COPIES`].
    ready: Vec<BinaryHeap<(u32, Reverse<Node>)>>,
    busy: [u32; Unit::COUNT],
    now: u32,
    groups: Groups,
    /// Whether to spread where it can be.
    spreads: bool,
    spread: Spread,
    /// Whether there was something to spread since the block began.
    could_spread: bool,
    /// Joins that are done, before what follows them is looked at.
    joins: Vec<Node>,
    /// The longest way through a region, in cycles.
    critical: u32,
    /// Whether registers were short since the block began.
    pressed: bool,
}

#[derive(Clone, Copy, Debug)]
struct NodeState {
    /// `None` for a join.
    timing: Option<Timing>,
    /// Predecessors to come.
    waits_for: u32,
    /// The cycle from which it may issue.
    ready_at: u32,
    /// Cycles from its issue to the end of the region.
    height: u32,
    /// Of a product, how many others of the region it adds to, one after the other.
    wave: u32,
    done: bool,
}

/// Cycles from the issue of an instruction to that of one that depends on it.
fn distance(timing: Option<Timing>, kind: Kind) -> u32 {
    match timing {
        None => 0,
        Some(timing) if kind == Kind::Data && !timing.class.is_asynchronous() => u32::from(timing.latency),
        Some(timing) => u32::from(timing.issue),
    }
}

impl<'a> List<'a> {
    /// A scheduler that keeps at most `limit` registers live where it can.
    pub fn new(machine: &'a Machine, facts: &'a ModuleFacts, limit: u32) -> List<'a> {
        List {
            machine,
            facts,
            limit,
            pressure: Pressure::default(),
            nodes: Vec::new(),
            free: BTreeSet::new(),
            pending: BinaryHeap::new(),
            ready: vec![BinaryHeap::new(); COPIES + 1],
            busy: [0; Unit::COUNT],
            now: 0,
            groups: Groups::default(),
            spreads: false,
            spread: Spread::default(),
            could_spread: false,
            joins: Vec::new(),
            critical: 0,
            pressed: false,
        }
    }

    /// Begins a block, which is ordered with loads and copies spread between products or not.
    pub fn enter(&mut self, func: &Function, liveness: &Liveness, block: Block, spreads: bool) {
        self.pressure.enter(func, liveness, block);
        self.critical = 0;
        self.pressed = false;
        self.spreads = spreads;
        self.could_spread = false;
    }

    /// Whether there was something to spread since the block began.
    pub fn could_spread(&self) -> bool {
        self.could_spread
    }

    /// Whether registers were short since the block began: some instruction was picked for what it frees.
    pub fn was_pressed(&self) -> bool {
        self.pressed
    }

    /// The sum of the longest ways through the regions since the block began, in cycles.
    pub fn critical_path(&self) -> u32 {
        self.critical
    }

    /// Appends the nodes of a region in their new order, without joins.
    pub fn region(&mut self, func: &Function, graph: &Graph, out: &mut Vec<Node>) {
        self.prepare(func, graph);
        while let Some(node) = self.pick(func, graph) {
            self.issue(func, graph, node);
            out.push(node);
        }
    }

    fn prepare(&mut self, func: &Function, graph: &Graph) {
        self.nodes.clear();
        self.free.clear();
        self.pending.clear();
        self.ready.iter_mut().for_each(BinaryHeap::clear);
        self.busy = [0; Unit::COUNT];
        self.now = 0;
        self.groups.clear();
        for node in 0..graph.len() as Node {
            let timing = graph.inst(node).map(|inst| self.machine.timing(func, inst));
            let waits_for = graph.preds(node).len() as u32;
            self.nodes.push(NodeState { timing, waits_for, ready_at: 0, height: 0, wave: 0, done: false });
        }
        let mut longest = 0;
        for node in (0..graph.len() as Node).rev() {
            let timing = self.nodes[node as usize].timing;
            let mut height = timing.map_or(0, |_| distance(timing, Kind::Data));
            for edge in graph.succs(node) {
                height = height.max(distance(timing, edge.kind) + self.nodes[edge.node as usize].height);
            }
            self.nodes[node as usize].height = height;
            longest = longest.max(height);
        }
        self.critical += longest;
        self.prepare_spread();
        if self.spread.active {
            self.count_products(graph);
            self.count_waves(graph);
        }
        for node in 0..graph.len() as Node {
            if self.nodes[node as usize].waits_for == 0 {
                self.release(func, graph, node);
            }
        }
    }

    fn prepare_spread(&mut self) {
        let mut spread = Spread::default();
        let mut issue = 0;
        for timing in self.nodes.iter().filter_map(|node| node.timing) {
            issue += u32::from(timing.issue);
            spread.products += if self.machine.is_product(timing) { u32::from(timing.interval) } else { 0 };
            spread.left += u32::from(self.machine.is_spread(timing));
        }
        let worth = spread.left > 1 && spread.products * 2 >= issue;
        self.could_spread |= worth;
        spread.active = worth && self.spreads;
        self.spread = spread;
    }

    /// Makes the ways to the end longer by what products wait for each other, which keep their order: a load whose product
    /// many others follow is more urgent than one whose product comes late.
    fn count_products(&mut self, graph: &Graph) {
        let mut products = 0;
        for node in (0..graph.len() as Node).rev() {
            let timing = self.nodes[node as usize].timing;
            let mut height = self.nodes[node as usize].height;
            for edge in graph.succs(node) {
                height = height.max(distance(timing, edge.kind) + self.nodes[edge.node as usize].height);
            }
            if let Some(timing) = timing.filter(|timing| self.machine.is_product(*timing)) {
                height = height.max(products + u32::from(timing.interval));
                products = height;
            }
            self.nodes[node as usize].height = height;
        }
    }

    fn count_waves(&mut self, graph: &Graph) {
        for node in 0..graph.len() as Node {
            if !self.is_product(node) {
                continue;
            }
            let wave = self.nodes[node as usize].wave;
            for edge in graph.succs(node).iter().filter(|edge| edge.kind == Kind::Data) {
                let next = &mut self.nodes[edge.node as usize].wave;
                *next = wave.saturating_add(1).max(*next);
            }
        }
    }

    fn is_product(&self, node: Node) -> bool {
        self.nodes[node as usize].timing.is_some_and(|timing| self.machine.is_product(timing))
    }

    /// The lane that a ready node waits in.
    fn lane(&self, timing: Timing) -> usize {
        match self.spread.active && self.machine.is_spread(timing) {
            false => timing.unit.index(),
            true if timing.class.is_asynchronous() => COPIES,
            true => SPREAD,
        }
    }

    /// The cycle from which the best of a lane may issue; `spreads` when it has to wait for its share of products.
    fn lane_free(&self, lane: usize, node: Node, spreads: bool) -> u32 {
        let unit = self.nodes[node as usize].timing.map_or(0, |timing| self.busy[timing.unit.index()]);
        if lane >= SPREAD && spreads { unit.max(self.spread.from) } else { unit }
    }

    /// All predecessors of a node are done.
    fn release(&mut self, func: &Function, graph: &Graph, node: Node) {
        self.joins.push(node);
        while let Some(node) = self.joins.pop() {
            let state = self.nodes[node as usize];
            if let Some(inst) = graph.inst(node) {
                // What it waits for was begun before it.
                let awaited = self.groups.awaited(self.facts, func, inst);
                let state = &mut self.nodes[node as usize];
                state.ready_at = state.ready_at.max(awaited);
                self.free.insert(node);
                let ready_at = state.ready_at;
                self.pending.push(Reverse((ready_at, node)));
                continue;
            }
            for edge in graph.succs(node) {
                let next = &mut self.nodes[edge.node as usize];
                next.ready_at = next.ready_at.max(state.ready_at);
                next.waits_for -= 1;
                if next.waits_for == 0 {
                    self.joins.push(edge.node);
                }
            }
        }
    }

    fn pick(&mut self, func: &Function, graph: &Graph) -> Option<Node> {
        self.free.first()?;
        if self.pressure.live() >= self.limit {
            return self.pick_for_pressure(func, graph);
        }
        let node = self.pick_for_latency()?;
        let change = graph.inst(node).map_or(0, |inst| self.pressure.change(func, inst));
        if change > 0 && self.pressure.live() as i32 + change > self.limit as i32 {
            self.back(node);
            return self.pick_for_pressure(func, graph);
        }
        Some(node)
    }

    /// The instruction with the longest way to the end that can issue first.
    fn pick_for_latency(&mut self) -> Option<Node> {
        loop {
            while let Some(&Reverse((_, node))) = self.pending.peek().filter(|entry| entry.0.0 <= self.now) {
                self.pending.pop();
                self.back(node);
            }
            for lane in 0..self.ready.len() {
                let heap = &mut self.ready[lane];
                while heap.peek().is_some_and(|&(_, Reverse(node))| self.nodes[node as usize].done) {
                    heap.pop();
                }
            }
            let product = self.waiting_product();
            let parts = product.is_some_and(|node| self.parts_before(node));
            let spreads = product.is_some() && !parts;
            let mut best: Option<(u32, Reverse<Node>, usize)> = None;
            let mut next = self.pending.peek().map(|entry| entry.0.0);
            let copying = self.spread.copying && product.is_some() && !self.ready[COPIES].is_empty();
            let first = if parts { SPREAD } else { 0 };
            for lane in (first..self.ready.len()).filter(|lane| !(copying && *lane == SPREAD)) {
                let Some(&(height, number)) = self.ready[lane].peek() else { continue };
                let free = self.lane_free(lane, number.0, spreads);
                if free > self.now {
                    next = Some(next.map_or(free, |at| at.min(free)));
                } else if best.is_none_or(|(other, node, _)| (height, number) > (other, node)) {
                    best = Some((height, number, lane));
                }
            }
            if let Some((_, Reverse(node), lane)) = best {
                self.ready[lane].pop();
                return Some(node);
            }
            self.now = next?.max(self.now + 1);
        }
    }

    /// A product that waits for nothing but its unit, where something is to be spread.
    fn waiting_product(&self) -> Option<Node> {
        let heads = self.ready.iter().filter_map(|heap| heap.peek()).map(|&(_, Reverse(node))| node);
        heads.take(Unit::COUNT).find(|node| self.spread.active && self.is_product(*node))
    }

    /// Whether something that is to be spread goes first, as the product begins a wave.
    fn parts_before(&self, product: Node) -> bool {
        let is_ready = self.ready[SPREAD..].iter().any(|heap| !heap.is_empty());
        let begins_wave = !self.spread.parted && self.nodes[product as usize].wave > self.spread.wave;
        is_ready && (begins_wave || self.spread.from <= self.now)
    }

    /// The instruction that frees most registers, of the next in source order; the next when each needs more.
    fn pick_for_pressure(&mut self, func: &Function, graph: &Graph) -> Option<Node> {
        self.pressed = true;
        let cost = |node: &Node| graph.inst(*node).map_or(0, |inst| self.pressure.change(func, inst));
        let candidates = self.free.iter().take(WINDOW);
        let best = candidates.map(|node| (cost(node), *node)).min()?;
        if best.0 <= 0 { Some(best.1) } else { self.free.first().copied() }
    }

    /// Puts a node to those that wait for their unit.
    fn back(&mut self, node: Node) {
        let state = self.nodes[node as usize];
        if let (Some(timing), false) = (state.timing, state.done) {
            let lane = self.lane(timing);
            self.ready[lane].push((state.height, Reverse(node)));
        }
    }

    fn issue(&mut self, func: &Function, graph: &Graph, node: Node) {
        self.free.remove(&node);
        let state = &mut self.nodes[node as usize];
        state.done = true;
        let state = *state;
        let (Some(timing), Some(inst)) = (state.timing, graph.inst(node)) else { return };
        let start = self.now.max(state.ready_at).max(self.busy[timing.unit.index()]);
        self.busy[timing.unit.index()] = start + u32::from(timing.interval);
        self.now = start + u32::from(timing.issue);
        if self.spread.active {
            self.count_spread(timing, state.wave, start);
        }
        let end = start + u32::from(timing.latency);
        self.groups.begin(self.facts, func, inst, timing.class.is_asynchronous(), end);
        self.pressure.step(func, inst);
        for edge in graph.succs(node) {
            let next = &mut self.nodes[edge.node as usize];
            next.ready_at = next.ready_at.max(start + distance(state.timing, edge.kind));
            next.waits_for -= 1;
            if next.waits_for == 0 {
                self.release(func, graph, edge.node);
            }
        }
    }
}

impl List<'_> {
    /// Takes an instruction that issued out of what is to be spread.
    fn count_spread(&mut self, timing: Timing, wave: u32, start: u32) {
        let spread = &mut self.spread;
        if self.machine.is_product(timing) {
            spread.products = spread.products.saturating_sub(timing.interval.into());
            (spread.wave, spread.parted) = (wave, false);
        } else if self.machine.is_spread(timing) {
            spread.left = spread.left.saturating_sub(1);
            spread.copying = timing.class.is_asynchronous();
            spread.parted = true;
            // A little earlier than evenly: what comes last is waited for next.
            spread.from = start + spread.products * 7 / 8 / (spread.left + 1);
        }
    }
}

/// Moves cheap computations down to their first user, or `ahead` instructions before it, where that makes no operand live
/// longer: address arithmetic waits in no register.
#[derive(Debug, Default)]
pub struct Sink {
    state: Vec<Place>,
    stack: Vec<(Node, u32)>,
    position: Vec<u32>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    /// Stays where it is in the order.
    Fixed,
    /// Waits for a user.
    Waiting,
    Done,
}

impl Sink {
    /// Appends the instructions of `order`, a region's nodes in a legal order. `may_sink` says of which instructions the
    /// place does not matter.
    pub fn region(
        &mut self,
        graph: &Graph,
        order: &[Node],
        ahead: usize,
        may_sink: impl Fn(Inst) -> bool,
        out: &mut Vec<Inst>,
    ) {
        self.state.clear();
        self.state.resize(graph.len(), Place::Fixed);
        self.position.clear();
        self.position.resize(graph.len(), u32::MAX);
        for (at, &node) in order.iter().enumerate() {
            self.position[node as usize] = at as u32;
            if graph.inst(node).is_some_and(&may_sink) {
                self.state[node as usize] = Place::Waiting;
            }
        }
        for (at, &node) in order.iter().enumerate() {
            if let Some(&soon) = order.get(at + ahead).filter(|soon| self.state[**soon as usize] == Place::Fixed) {
                self.emit_waiting(graph, soon, at as u32, out);
            }
            if self.state[node as usize] == Place::Fixed {
                self.emit_waiting(graph, node, at as u32, out);
                self.state[node as usize] = Place::Done;
                out.extend(graph.inst(node));
            }
        }
        for &node in order {
            if self.state[node as usize] == Place::Waiting {
                self.emit_waiting(graph, node, u32::MAX, out);
                self.state[node as usize] = Place::Done;
                out.extend(graph.inst(node));
            }
        }
    }

    /// Appends what waits among the predecessors of `user`, deepest first, as far as it stood before `limit`.
    fn emit_waiting(&mut self, graph: &Graph, user: Node, limit: u32, out: &mut Vec<Inst>) {
        self.stack.push((user, 0));
        while let Some((node, next)) = self.stack.last_mut() {
            let node = *node;
            if let Some(edge) = graph.preds(node).get(*next as usize) {
                *next += 1;
                let before = edge.node as usize;
                // Joins stand for accesses to memory, of which none waits.
                if self.state[before] == Place::Waiting && self.position[before] < limit {
                    self.stack.push((edge.node, 0));
                }
                continue;
            }
            self.stack.pop();
            if node != user && self.state[node as usize] == Place::Waiting {
                self.state[node as usize] = Place::Done;
                out.extend(graph.inst(node));
            }
        }
    }
}
