//! Moves into registers of `wgmma.mma_async` stand before the `wgmma.fence` that orders them.
//!
//! The registers of such a product have to be written before a fence that comes before it (PTX ISA 9.7.17.7.1). A program in
//! SSA form says that for its values; the moves that make an accumulator of a value that others read, or of a constant,
//! are ours and come right before the product. They go up to the fence where nothing between minds, else the
//! product gets a fence more.

use cranelift_entity::SecondaryMap;
use ptxc_mir::{Block, Function, Inst, Module, Op, RegClass, VReg};
use ptxc_targets::{OpcodeTable, Tok, tok};

/// What an opcode is to the rules about products in flight.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Move,
    Fence,
    Product,
    Commit,
    Wait,
    Other,
}

/// Which opcodes of a module are `wgmma` and `mov`, for [`run`](crate::run). The default knows none.
#[derive(Clone, Debug, Default)]
pub struct Kinds {
    /// By opcode.
    kinds: Vec<Kind>,
    /// Whether the module has products.
    products: bool,
}

impl Kinds {
    /// Those of a module's opcodes.
    pub fn new(opcodes: &OpcodeTable) -> Kinds {
        let kinds: Vec<Kind> = opcodes.all().map(kind).collect();
        Kinds { products: kinds.contains(&Kind::Product), kinds }
    }

    pub(crate) fn has_products(&self) -> bool {
        self.products
    }

    /// Whether an instruction is a `mov`.
    pub(crate) fn is_move(&self, func: &Function, inst: Inst) -> bool {
        matches!(func.insts[inst].op, Op::Ptx(_)) && self.kind(func, inst) == Kind::Move
    }

    pub(crate) fn kind(&self, func: &Function, inst: Inst) -> Kind {
        match func.insts[inst].op {
            Op::Ptx(opcode) => self.kinds.get(opcode.index()).copied().unwrap_or(Kind::Other),
            Op::Copy(_) => Kind::Move,
            _ => Kind::Other,
        }
    }
}

fn kind(toks: &[Tok]) -> Kind {
    match toks {
        [tok::MOV, ..] => Kind::Move,
        [tok::WGMMA, tok::FENCE, ..] => Kind::Fence,
        [tok::WGMMA, tok::MMA_ASYNC, ..] => Kind::Product,
        [tok::WGMMA, tok::COMMIT_GROUP, ..] => Kind::Commit,
        [tok::WGMMA, tok::WAIT_GROUP, ..] => Kind::Wait,
        _ => Kind::Other,
    }
}

/// Puts moves in front of fences, in functions whose registers are assigned; tells how many moves went up and how many
/// fences were made.
pub fn order_moves(module: &mut Module) -> (u64, u64) {
    let kinds = Kinds::new(&module.opcodes);
    if !kinds.products || !kinds.kinds.contains(&Kind::Fence) {
        return (0, 0);
    }
    let mut done = (0, 0);
    for func in &mut module.functions {
        let mut pass = Pass { kinds: &kinds, operands: SecondaryMap::new(), seen: SecondaryMap::new(), epoch: 0, done };
        for index in 0..func.layout.len() {
            pass.block(func, func.layout[index]);
        }
        done = pass.done;
    }
    done
}

/// When a register was last accessed, by the number of the fence before it.
#[derive(Clone, Copy, Default)]
struct Seen {
    read: u32,
    written: u32,
    /// Written by a move that could not go up.
    late: u32,
}

struct Pass<'a> {
    kinds: &'a Kinds,
    /// The epoch with which a block began that has the register in a product.
    operands: SecondaryMap<VReg, u32>,
    seen: SecondaryMap<VReg, Seen>,
    epoch: u32,
    done: (u64, u64),
}

impl Pass<'_> {
    fn kind(&self, func: &Function, inst: Inst) -> Kind {
        self.kinds.kind(func, inst)
    }

    fn block(&mut self, func: &mut Function, block: Block) {
        let products = func.blocks[block].insts.iter().filter(|inst| self.kind(func, **inst) == Kind::Product);
        let products: Vec<Inst> = products.copied().collect();
        if products.is_empty() {
            return;
        }
        self.epoch += 1;
        let here = self.epoch;
        for inst in products {
            for_each_matrix(func, inst, |reg| self.operands[reg] = here);
        }
        let old = std::mem::take(&mut func.blocks[block].insts);
        let mut insts: Vec<Inst> = Vec::with_capacity(old.len());
        // The last fence and its index, and what goes up, by the index of the fence that it goes before.
        let mut fence: Option<(Inst, usize)> = None;
        let mut up: Vec<(usize, Inst)> = Vec::new();
        for inst in old {
            match (self.kind(func, inst), fence) {
                (Kind::Fence, _) => {
                    self.epoch += 1;
                    fence = Some((inst, insts.len()));
                }
                (Kind::Move, Some((_, at))) if self.feeds_product(func, inst, here) => {
                    if self.can_go_up(func, inst) {
                        up.push((at, inst));
                        continue;
                    }
                    let epoch = self.epoch;
                    func.for_each_def(inst, |reg| self.seen[reg].late = epoch);
                }
                (Kind::Product, Some((first, _))) => {
                    let mut late = false;
                    for_each_matrix(func, inst, |reg| late |= self.seen[reg].late == self.epoch);
                    if late {
                        let again = func.insts[first];
                        let again = func.insts.push(again);
                        self.epoch += 1;
                        fence = Some((again, insts.len()));
                        insts.push(again);
                        self.done.1 += 1;
                    }
                }
                _ => {}
            }
            let epoch = self.epoch;
            func.for_each_use(inst, |reg| self.seen[reg].read = epoch);
            func.for_each_def(inst, |reg| self.seen[reg].written = epoch);
            insts.push(inst);
        }
        self.done.0 += up.len() as u64;
        func.blocks[block].insts = if up.is_empty() { insts } else { merge(insts, &up) };
    }

    fn feeds_product(&self, func: &Function, inst: Inst, here: u32) -> bool {
        let mut feeds = false;
        func.for_each_def(inst, |reg| feeds |= self.operands[reg] == here);
        feeds && func.insts[inst].guard.is_none()
    }

    /// Whether nothing since the fence accesses what the move writes or writes what it reads.
    fn can_go_up(&self, func: &Function, inst: Inst) -> bool {
        let mut can = true;
        func.for_each_def(inst, |reg| can &= self.seen[reg].read != self.epoch && self.seen[reg].written != self.epoch);
        func.for_each_use(inst, |reg| can &= self.seen[reg].written != self.epoch);
        can
    }
}

/// `insts` with each of `up` before the instruction of its index; the indices do not fall.
fn merge(insts: Vec<Inst>, up: &[(usize, Inst)]) -> Vec<Inst> {
    let mut merged = Vec::with_capacity(insts.len() + up.len());
    let mut up = up.iter().peekable();
    for (index, inst) in insts.into_iter().enumerate() {
        while let Some(&(_, moved)) = up.next_if(|(at, _)| *at == index) {
            merged.push(moved);
        }
        merged.push(inst);
    }
    merged
}

/// Calls `f` with the registers of a product that hold matrices.
fn for_each_matrix(func: &Function, inst: Inst, mut f: impl FnMut(VReg)) {
    let registers = func.inst_operands(inst).iter().filter_map(|operand| operand.used().or(operand.def()));
    registers.filter(|reg| func.class(*reg) == RegClass::B32).for_each(&mut f);
}
