//! Where the operations of a tree go, and putting them there.
//!
//! A packed operation stands behind the last of its operands and before the first user that stays. Within these bounds
//! it stands where the later of its lanes stood.

use ptxc_ir::builder::Cursor;
use ptxc_ir::{ConstData, Extra, Flags, Function, FunctionBuilder, Inst, Opcode, Type, Value};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Packer;
use super::tree::{Kind, NodeId, Tree};

/// Nodes in an order in which operands come first, and the place of each: it goes behind the instruction of that position.
pub(super) struct Places {
    order: Vec<NodeId>,
    place: Vec<u32>,
}

/// The state of a node while places are found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    New,
    /// Its operands are looked at.
    Open,
    Done,
}

struct Finder<'a> {
    packer: &'a Packer<'a>,
    func: &'a Function,
    tree: &'a Tree,
    state: Vec<State>,
    /// The position that a node cannot stand before.
    earliest: Vec<u32>,
    order: Vec<NodeId>,
}

/// Places for all nodes; `None` when lanes need each other, or a user stands too early.
pub(super) fn places(packer: &Packer<'_>, func: &Function, tree: &Tree, root: NodeId) -> Option<Places> {
    let count = tree.nodes.len();
    let mut finder = Finder {
        packer,
        func,
        tree,
        state: vec![State::New; count],
        earliest: vec![0; count],
        order: Vec::with_capacity(count),
    };
    finder.visit(root)?;
    let mut limit = vec![u32::MAX; count];
    let mut place = vec![0; count];
    for id in finder.order.iter().rev().copied() {
        let node = &tree.nodes[id];
        let wanted = match node.kind {
            Kind::Operation(x, y, _) => {
                for value in [node.a, node.b] {
                    limit[id] = limit[id].min(finder.first_use(value));
                }
                packer.position[x].max(packer.position[y])
            }
            _ => u32::MAX,
        };
        place[id] = wanted.max(finder.earliest[id]).min(limit[id]);
        if place[id] < finder.earliest[id] || place[id] == u32::MAX {
            return None;
        }
        for needed in finder.needed(id) {
            limit[needed] = limit[needed].min(place[id]);
        }
    }
    Some(Places { order: finder.order, place })
}

impl Finder<'_> {
    /// Finds what a node needs first. Trees are small: so is the depth.
    fn visit(&mut self, id: NodeId) -> Option<()> {
        match self.state[id] {
            State::Done => return Some(()),
            State::Open => return None,
            State::New => self.state[id] = State::Open,
        }
        let mut earliest = self.own_earliest(id);
        for needed in self.needed(id) {
            self.visit(needed)?;
            earliest = earliest.max(self.earliest[needed]);
        }
        self.earliest[id] = earliest;
        self.state[id] = State::Done;
        self.order.push(id);
        Some(())
    }

    /// The nodes that must be there before one.
    fn needed(&self, id: NodeId) -> SmallVec<[NodeId; 3]> {
        let node = &self.tree.nodes[id];
        match &node.kind {
            Kind::Operation(_, _, operands) => operands.clone(),
            Kind::Lanes(..) => SmallVec::new(),
            Kind::Gather => [node.a, node.b].iter().filter_map(|v| self.member(*v)).collect(),
        }
    }

    /// The node that computes a value.
    fn member(&self, value: Value) -> Option<NodeId> {
        self.tree.members.get(&self.func.dfg.def_inst(value)?).copied()
    }

    /// The position that values which stay allow.
    fn own_earliest(&self, id: NodeId) -> u32 {
        let node = &self.tree.nodes[id];
        match node.kind {
            Kind::Operation(..) => 0,
            Kind::Lanes(vector, _) => self.available(vector),
            Kind::Gather => self.available(node.a).max(self.available(node.b)),
        }
    }

    /// The position behind which a value is there.
    fn available(&self, value: Value) -> u32 {
        match self.func.dfg.def_inst(value) {
            Some(inst) if self.packer.is_here(self.func, inst) && !self.tree.members.contains_key(&inst) => {
                self.packer.position[inst]
            }
            _ => 0,
        }
    }

    /// The last position before the users of a value that stay.
    fn first_use(&self, value: Value) -> u32 {
        let staying = self.packer.users[value]
            .iter()
            .filter(|user| self.packer.is_here(self.func, **user) && !self.tree.members.contains_key(user));
        staying.map(|user| self.packer.position[*user].saturating_sub(1)).min().unwrap_or(u32::MAX)
    }
}

/// Puts the operations of a tree in their places, instead of the scalars. The value of the root.
pub(super) fn emit(packer: &mut Packer<'_>, func: &mut Function, tree: &Tree, root: NodeId, places: &Places) -> Value {
    let mut made: FxHashMap<NodeId, Value> = FxHashMap::default();
    for id in &places.order {
        let node = &tree.nodes[*id];
        let mut at = Place::new(packer, func, places.place[*id]);
        let value = match &node.kind {
            Kind::Lanes(vector, first) => at.lanes(*vector, *first),
            Kind::Gather => at.gather(node.a, node.b),
            Kind::Operation(x, y, operands) => {
                let operands: SmallVec<[Value; 3]> = operands.iter().map(|id| made[id]).collect();
                at.operation([*x, *y], &operands)
            }
        };
        made.insert(*id, value);
    }
    made[&root]
}

/// A place in the block where instructions are made.
struct Place<'p, 'a, 'f> {
    packer: &'p mut Packer<'a>,
    func: &'f mut Function,
    cursor: Option<Inst>,
    position: u32,
}

impl<'p, 'a, 'f> Place<'p, 'a, 'f> {
    fn new(packer: &'p mut Packer<'a>, func: &'f mut Function, position: u32) -> Self {
        let behind = packer.order.iter().skip(position as usize);
        let mut cursor = behind.copied().find(|inst| func.layout.inst_block(*inst).is_some());
        // What other trees made further behind stands before what is left of the block: it reads what is made here.
        while let Some(made) = cursor.and_then(|inst| func.layout.prev_inst(inst))
            && packer.position[made] > position
        {
            cursor = Some(made);
        }
        Place { packer, func, cursor, position }
    }

    fn make(&mut self, op: Opcode, flags: Flags, ty: Type, args: &[Value], extra: Extra, result: Type) -> Value {
        let mut builder = FunctionBuilder::new(self.func);
        if let Some(before) = self.cursor {
            builder.set_cursor(Cursor::Before(before));
        }
        let inst = builder.inst_with_results(op, flags, ty, args, extra, &[result]);
        self.packer.position[inst] = self.position;
        self.packer.add_uses(self.func, inst);
        self.func.dfg.result(inst, 0)
    }

    /// Two lanes of a vector.
    fn lanes(&mut self, vector: Value, first: u32) -> Value {
        let source = self.func.dfg.ty(vector);
        if source.lanes() == 2 {
            return vector;
        }
        let mask = self.func.dfg.masks.push(vec![first as i32, first as i32 + 1]);
        let poison = self.func.dfg.poison(source);
        let pair = source.scalar().with_lanes(2);
        self.make(Opcode::Shuffle, Flags::EMPTY, source, &[vector, poison], Extra::Mask(mask), pair)
    }

    /// Two values in a vector.
    fn gather(&mut self, a: Value, b: Value) -> Value {
        let [a, b] = [a, b].map(|v| self.func.dfg.resolve(v));
        let pair = self.func.dfg.ty(a).with_lanes(2);
        if self.func.dfg.as_const(a).is_some() && self.func.dfg.as_const(b).is_some() {
            return self.func.dfg.constant(pair, ConstData::Vector(vec![a, b]));
        }
        if let Some((whole, position)) = self.packer.built.get(&(a, b))
            && *position <= self.position
        {
            return *whole;
        }
        if a != b {
            self.packer.gathered.insert(a, (a, b));
            self.packer.gathered.insert(b, (a, b));
        }
        let whole = self.make(Opcode::Vector, Flags::EMPTY, pair, &[a, b], Extra::None, pair);
        self.packer.built.insert((a, b), (whole, self.position));
        whole
    }

    /// One operation instead of two.
    fn operation(&mut self, scalars: [Inst; 2], operands: &[Value]) -> Value {
        let data = self.func.dfg.insts[scalars[0]].clone();
        let pair = data.ty.with_lanes(2);
        let packed = self.make(data.op, data.flags, pair, operands, data.extra, pair);
        if let Some(inst) = self.func.dfg.def_inst(packed) {
            self.func.dfg.locs[inst] = self.func.dfg.locs[scalars[0]];
        }
        for (lane, scalar) in scalars.into_iter().enumerate() {
            let index = self.func.dfg.int(Type::I32, lane as i64);
            let one = self.make(Opcode::Extract, Flags::EMPTY, pair, &[packed, index], Extra::None, data.ty);
            let old = self.func.dfg.result(scalar, 0);
            self.packer.drop_uses(self.func, scalar);
            self.packer.rename(self.func, old, one);
            self.func.layout.remove_inst(scalar);
        }
        packed
    }
}
