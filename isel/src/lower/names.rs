//! Addresses that are names: a symbol, a place of the frame, a parameter, brought into a register.
//!
//! What stands inside brackets needs no register. Everywhere else a name is a `mov` or `cvta`, of which a function has one:
//! `ptxas` (13.5, sm_100a) makes three to five instructions of each that names shared memory, in every block again, also
//! within loops. It stands right before its first reader where one block outside of loops has all of them, else in the
//! nearest block outside of loops that dominates them. Where registers are short, scheduling makes it again for
//! its readers (`scheduling/src/remat.rs`).

use cranelift_entity::SecondaryMap;
use ptxc_ir::loops::Loops;
use ptxc_ir::{Block, Cfg, DominatorTree};
use ptxc_mir as mir;
use ptxc_mir::{Operand, RegClass, VReg};
use ptxc_targets::{Opcode, Tok, tok};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::Lower;

/// Steps up the dominator tree for each block that reads a name. With more, the entry is taken, which dominates everything.
const MOST_STEPS: usize = 16;

/// An address in a register.
struct Named {
    reg: VReg,
    /// The instruction that puts it there, in no block yet.
    inst: mir::Inst,
    /// Blocks that asked for it, each once.
    blocks: SmallVec<[Block; 2]>,
}

/// The addresses of a function that are names and needed in registers, in the order in which they were asked for.
#[derive(Default)]
pub(super) struct Names {
    list: Vec<Named>,
    index: FxHashMap<(Opcode, Operand), usize>,
}

impl Lower<'_> {
    /// The register of an address that is a name, in the space of what it names.
    pub(super) fn named_reg(&mut self, name: Operand) -> VReg {
        // Of a texture, surface or sampler ptxas takes it as `.u64` only.
        let ty = if matches!(name, Operand::Sym(..)) { tok::U64 } else { tok::B64 };
        self.named_by(&[tok::MOV, ty], name)
    }

    /// The register of what an instruction makes of a name and nothing else.
    pub(super) fn named_by(&mut self, toks: &[Tok], name: Operand) -> VReg {
        let opcode = self.tok_opcode(toks);
        let at = match self.names.index.get(&(opcode, name)) {
            Some(at) => *at,
            None => {
                let reg = self.new_reg(RegClass::B64);
                let inst = self.emit_op(mir::Op::Ptx(opcode), &[Operand::Def(reg), name]);
                // Its place is found when all readers are known.
                self.emitted.pop();
                let at = self.names.list.len();
                self.names.list.push(Named { reg, inst, blocks: SmallVec::new() });
                self.names.index.insert((opcode, name), at);
                at
            }
        };
        let named = &mut self.names.list[at];
        if let Some(block) = self.current_block
            && named.blocks.last() != Some(&block)
        {
            named.blocks.push(block);
        }
        named.reg
    }

    /// Puts every named address into its block. Registers are final.
    pub(super) fn place_names(&mut self) {
        let names = std::mem::take(&mut self.names);
        if names.list.is_empty() {
            return;
        }
        let single = self.func.layout.len() == 1;
        let places = (!single).then(|| Places::new(self.ir));
        let mut by_block: Vec<(mir::Block, Named, bool)> = Vec::with_capacity(names.list.len());
        for named in names.list {
            let nearest = places.as_ref().map_or(named.blocks.first().copied(), |places| places.of(&named.blocks));
            let Some(block) = nearest else { continue };
            let is_read = named.blocks.contains(&block);
            if let Some(made) = self.blocks[block].expand() {
                by_block.push((made, named, is_read));
            }
        }
        by_block.sort_by_key(|(block, named, _)| (*block, named.inst));
        let mut waiting: SecondaryMap<VReg, Option<(mir::Inst, bool)>> = SecondaryMap::new();
        for group in by_block.chunk_by(|a, b| a.0 == b.0) {
            let Some((block, ..)) = group.first() else { continue };
            group.iter().for_each(|(_, named, is_read)| waiting[named.reg] = Some((named.inst, *is_read)));
            self.place_in(*block, group.iter().map(|(_, named, _)| named.reg), &mut waiting);
        }
    }

    /// Puts named addresses before what reads them first in a block, and others at its end.
    fn place_in(
        &mut self,
        block: mir::Block,
        regs: impl Iterator<Item = VReg>,
        waiting: &mut SecondaryMap<VReg, Option<(mir::Inst, bool)>>,
    ) {
        let old = std::mem::take(&mut self.func.blocks[block].insts);
        let mut placed = Vec::with_capacity(old.len() + regs.size_hint().0);
        let mut lines: SmallVec<[(mir::Inst, mir::LocId); 4]> = SmallVec::new();
        for inst in old {
            let loc = self.func.insts[inst].loc;
            self.func.for_each_use(inst, |reg| {
                if let Some((name, _)) = waiting[reg].take() {
                    placed.push(name);
                    lines.push((name, loc));
                }
            });
            placed.push(inst);
        }
        for reg in regs {
            if let Some((name, is_read)) = waiting[reg].take() {
                placed.push(name);
                // What is read in other blocks alone belongs to no line of this one.
                lines.push((name, if is_read { self.func.blocks[block].terminator_loc } else { mir::LocId::NONE }));
            }
        }
        self.func.blocks[block].insts = placed;
        for (inst, loc) in lines {
            self.func.insts[inst].loc = loc;
        }
    }
}

/// Where what several blocks read is made.
struct Places {
    cfg: Cfg,
    tree: DominatorTree,
    loops: Loops,
    entry: Option<Block>,
}

impl Places {
    fn new(func: &ptxc_ir::Function) -> Places {
        let cfg = Cfg::new(func);
        let tree = DominatorTree::new(&cfg);
        let loops = Loops::new(&cfg, &tree);
        Places { cfg, tree, loops, entry: func.layout.entry() }
    }

    /// The nearest block outside of loops that dominates all of these.
    fn of(&self, blocks: &[Block]) -> Option<Block> {
        let mut at = *blocks.first()?;
        let mut steps = MOST_STEPS * blocks.len();
        for block in blocks {
            at = self.common(at, *block, &mut steps)?;
        }
        let mut around = self.loops.innermost(at);
        while let Some(inner) = around {
            let data = self.loops.data(inner);
            around = data.parent.expand();
            if around.is_none() {
                at = self.tree.idom(&self.cfg, data.header).or(self.entry)?;
            }
        }
        Some(at)
    }

    /// The nearest block that dominates both.
    fn common(&self, mut a: Block, mut b: Block, steps: &mut usize) -> Option<Block> {
        while a != b {
            let (above, below) = if self.cfg.rpo_index(a) < self.cfg.rpo_index(b) { (a, b) } else { (b, a) };
            if *steps == 0 {
                return self.entry;
            }
            *steps -= 1;
            (a, b) = (above, self.tree.idom(&self.cfg, below).or(self.entry)?);
        }
        Some(a)
    }
}
