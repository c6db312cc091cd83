//! Edges between accesses to memory.
//!
//! Accesses are told apart in three steps. *Classes* of objects may overlap or not as a whole. Within a class,
//! different *objects* do not overlap. Within an object, accesses from one base are compared by their bytes, those from
//! different bases may overlap. Every access is taken up a bounded number of times: what a later one has to follow is
//! gathered in a list, and a list that is needed again is first replaced by one join.

use super::{Edge, Graph, Kind, Node};
use crate::facts::{Access, Base, Chains, Domains};
use ptxc_mir::Object;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Classes of objects.
const UNKNOWN: usize = 0;
const PARAMETERS: usize = 1;
const NOALIAS: usize = 2;
const NAMED: usize = 3;
const CLASSES: usize = 4;

/// The other classes that a class may overlap.
const OVERLAPS: [&[usize]; CLASSES] =
    [&[PARAMETERS, NOALIAS, NAMED], &[UNKNOWN, NAMED], &[UNKNOWN], &[UNKNOWN, PARAMETERS]];

fn class(object: Object) -> usize {
    match object {
        Object::Unknown => UNKNOWN,
        Object::Parameters => PARAMETERS,
        Object::NoAlias(_) => NOALIAS,
        Object::Symbol(_) | Object::Frame(_) => NAMED,
    }
}

/// Accesses since the last synchronization.
#[derive(Default)]
pub(super) struct Memory {
    domains: [Domain; Domains::COUNT],
}

/// Nodes that a later one may have to follow.
type List = SmallVec<[Node; 4]>;

#[derive(Default)]
struct Domain {
    classes: [Accesses; CLASSES],
    objects: FxHashMap<Object, ObjectState>,
}

#[derive(Default)]
struct Accesses {
    reads: List,
    writes: List,
}

/// Accesses to one object. Those from the base that was used last are known byte by byte, all others as a whole.
struct ObjectState {
    base: Base,
    /// Counts changes of the base: bytes of another count are out of date.
    epoch: u32,
    current: Accesses,
    others: Accesses,
    /// By address divided by [`UNIT`].
    bytes: FxHashMap<i64, Bytes>,
}

/// Bytes that are looked at together.
const UNIT: i64 = 16;

#[derive(Default)]
struct Bytes {
    epoch: u32,
    ranges: SmallVec<[ByteRange; 1]>,
}

/// The last accesses to a range of bytes.
struct ByteRange {
    start: i64,
    end: i64,
    writer: Option<Node>,
    readers: List,
}

impl Memory {
    pub(super) fn clear(&mut self) {
        self.domains.iter_mut().for_each(Domain::clear);
    }

    /// Forgets what an instruction that writes these chains has come after.
    pub(super) fn synchronize(&mut self, chains: Chains) {
        if chains.intersects(Chains::WALL) {
            self.clear();
            return;
        }
        if chains.intersects(Chains::GLOBAL) {
            self.domains[0].clear();
        }
        if chains.intersects(Chains::SHARED) {
            self.domains[1].clear();
        }
    }

    /// Adds what an access comes after.
    pub(super) fn access(&mut self, access: &Access, graph: &mut Graph, preds: &mut Vec<Edge>) {
        for number in access.domains.numbers() {
            let domain = &mut self.domains[number];
            for &other in OVERLAPS[class(access.object)] {
                domain.classes[other].follow(access.write, graph, preds);
            }
            if let Some(state) = domain.objects.get_mut(&access.object) {
                state.follow(access, graph, preds);
            }
        }
    }

    /// Notes an access of a node.
    pub(super) fn record(&mut self, access: &Access, node: Node) {
        for number in access.domains.numbers() {
            let domain = &mut self.domains[number];
            domain.classes[class(access.object)].push(access.write, node);
            domain.objects.entry(access.object).or_insert_with(ObjectState::new).record(access, node);
        }
    }
}

impl Domain {
    fn clear(&mut self) {
        for accesses in &mut self.classes {
            accesses.clear();
        }
        self.objects.clear();
    }
}

impl Accesses {
    fn clear(&mut self) {
        self.reads.clear();
        self.writes.clear();
    }

    fn push(&mut self, write: bool, node: Node) {
        let list = if write { &mut self.writes } else { &mut self.reads };
        if list.last() != Some(&node) {
            list.push(node);
        }
    }

    /// Adds what a read or a write of any of this comes after.
    fn follow(&mut self, write: bool, graph: &mut Graph, preds: &mut Vec<Edge>) {
        gather(&mut self.writes, graph, preds);
        if write {
            gather(&mut self.reads, graph, preds);
        }
    }

    /// Adds the accesses of another list.
    fn append(&mut self, other: &mut Accesses) {
        if other.writes.is_empty() {
            self.reads.append(&mut other.reads);
            return;
        }
        // A write came after all that was here.
        std::mem::swap(self, other);
        other.clear();
    }
}

/// Adds a list to the predecessors; a long list becomes one join, which the next can use as well.
fn gather(list: &mut List, graph: &mut Graph, preds: &mut Vec<Edge>) {
    if list.len() > 2 {
        let edges: SmallVec<[Edge; 16]> = list.iter().map(|&node| Edge { node, kind: Kind::Memory }).collect();
        let join = graph.push(None, &edges);
        list.clear();
        list.push(join);
    }
    preds.extend(list.iter().map(|&node| Edge { node, kind: Kind::Memory }));
}

impl ObjectState {
    fn new() -> ObjectState {
        ObjectState {
            base: Base::Anywhere,
            epoch: 0,
            current: Accesses::default(),
            others: Accesses::default(),
            bytes: FxHashMap::default(),
        }
    }

    /// Makes a base the one whose bytes are known.
    fn turn_to(&mut self, base: Base) {
        if self.base == base && base != Base::Anywhere {
            return;
        }
        self.base = base;
        self.epoch += 1;
        self.others.append(&mut self.current);
    }

    fn follow(&mut self, access: &Access, graph: &mut Graph, preds: &mut Vec<Edge>) {
        self.turn_to(access.base);
        self.others.follow(access.write, graph, preds);
        for unit in units(access) {
            let Some(bytes) = self.bytes.get(&unit).filter(|bytes| bytes.epoch == self.epoch) else { continue };
            for range in bytes.ranges.iter().filter(|range| range.start < access.end && access.start < range.end) {
                preds.extend(range.writer.map(|node| Edge { node, kind: Kind::Memory }));
                if access.write {
                    preds.extend(range.readers.iter().map(|&node| Edge { node, kind: Kind::Memory }));
                }
            }
        }
    }

    fn record(&mut self, access: &Access, node: Node) {
        if access.base != Base::Anywhere || self.base != Base::Anywhere {
            self.turn_to(access.base);
        }
        self.current.push(access.write, node);
        for unit in units(access) {
            let bytes = self.bytes.entry(unit).or_default();
            if bytes.epoch != self.epoch {
                bytes.epoch = self.epoch;
                bytes.ranges.clear();
            }
            bytes.record(access, unit, node);
        }
    }
}

impl Bytes {
    fn record(&mut self, access: &Access, unit: i64, node: Node) {
        let (start, end) = (access.start.max(unit * UNIT), access.end.min((unit + 1) * UNIT));
        let mut found = false;
        for range in &mut self.ranges {
            if access.write && range.start < end && start < range.end {
                // The whole range counts as written: what follows this write follows the accesses before it.
                range.writer = Some(node);
                range.readers.clear();
                found |= range.start <= start && end <= range.end;
            } else if !access.write && (range.start, range.end) == (start, end) {
                range.readers.push(node);
                found = true;
            }
        }
        if !found {
            let (writer, readers) =
                if access.write { (Some(node), List::new()) } else { (None, List::from_slice(&[node])) };
            self.ranges.push(ByteRange { start, end, writer, readers });
        }
    }
}

/// The units that an access touches; none when its bytes are unknown.
fn units(access: &Access) -> std::ops::Range<i64> {
    match access.base {
        Base::Anywhere => 0..0,
        _ => access.start.div_euclid(UNIT)..(access.end + UNIT - 1).div_euclid(UNIT),
    }
}
