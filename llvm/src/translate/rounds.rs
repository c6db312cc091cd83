//! Stack objects that a loop makes: another one in each round.
//!
//! The IR has objects of the function alone, so an `alloca` of constant size becomes one, also where it stands in a loop.
//! That is the same as long as no address lives into the next round. Where one may, the object is made when the program
//! runs (PTX ISA, `alloca`).

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Block as IrBlock, Cfg, Cursor, DominatorTree, Function, Inst, Opcode, Type as IrType, Value};
use rustc_hash::FxHashMap;

use super::body::Writer;

/// An object of the function that stands for an `alloca` outside of the entry block.
#[derive(Clone, Copy)]
pub(super) struct Made {
    /// Its address.
    pub address: Value,
    /// Where the `alloca` stood.
    pub block: IrBlock,
    /// Bytes.
    pub size: u64,
    /// Alignment in bytes.
    pub align: u32,
}

impl Writer<'_, '_> {
    /// Has objects whose addresses may live into the next round of a loop made when the program runs.
    pub(super) fn separate_rounds(&mut self) {
        let mut made = std::mem::take(&mut self.made_late);
        if made.is_empty() {
            return;
        }
        let cfg = Cfg::new(self.b.func);
        made.retain(|object| may_repeat(&cfg, object.block));
        if made.is_empty() {
            return;
        }
        let lasts = Lasting::of(self.b.func, &cfg, &made).lasts;
        let mut renamed: FxHashMap<Value, Value> = FxHashMap::default();
        for (object, _) in made.iter().zip(lasts).filter(|(_, lasts)| *lasts) {
            match self.b.func.layout.first_inst(object.block) {
                Some(first) => self.b.set_cursor(Cursor::Before(first)),
                None => self.b.switch_to(object.block),
            }
            let size = self.b.iconst(IrType::I64, object.size as i64);
            let address = self.dynamic_alloca(size, object.align);
            renamed.insert(object.address, address);
            if let Some(inst) = self.b.func.dfg.def_inst(object.address) {
                self.b.func.layout.remove_inst(inst);
            }
        }
        let blocks: Vec<IrBlock> = self.b.func.layout.blocks().collect();
        for block in blocks.into_iter().filter(|_| !renamed.is_empty()) {
            let insts: Vec<Inst> = self.b.func.layout.insts(block).collect();
            for inst in insts {
                self.b.func.dfg.map_uses(inst, |value| renamed.get(&value).copied().unwrap_or(value));
            }
        }
    }
}

/// A way may lead from the block back to it: some edge leads from behind it, or from it, to it or before it.
fn may_repeat(cfg: &Cfg, block: IrBlock) -> bool {
    let Some(place) = cfg.rpo_index(block) else { return false };
    cfg.rpo()
        .iter()
        .skip(place)
        .any(|from| cfg.succs(*from).iter().any(|to| cfg.rpo_index(*to).is_some_and(|to| to <= place)))
}

/// Which objects' addresses may be used after the block that makes them is entered again.
struct Lasting<'a> {
    func: &'a Function,
    cfg: &'a Cfg,
    tree: DominatorTree,
    objects: &'a [Made],
    /// The number of the object that a value points into, from 1.
    of: SecondaryMap<Value, u32>,
    lasts: Vec<bool>,
}

impl<'a> Lasting<'a> {
    fn of(func: &'a Function, cfg: &'a Cfg, objects: &'a [Made]) -> Lasting<'a> {
        let mut of: SecondaryMap<Value, u32> = SecondaryMap::with_capacity(func.dfg.num_values());
        for (number, object) in objects.iter().enumerate() {
            of[object.address] = number as u32 + 1;
        }
        let (tree, lasts) = (DominatorTree::new(cfg), vec![false; objects.len()]);
        let mut lasting = Lasting { func, cfg, tree, objects, of, lasts };
        // Values only ever begin to point somewhere; one that may point into two objects says so of both.
        let mut changed = true;
        while changed {
            changed = false;
            for block in cfg.rpo() {
                changed |= lasting.block(*block);
            }
        }
        lasting
    }

    fn block(&mut self, block: IrBlock) -> bool {
        let mut changed = false;
        for inst in self.func.layout.insts(block) {
            changed |= self.inst(inst);
        }
        changed
    }

    /// What an instruction does with addresses. True when something new points into an object.
    fn inst(&mut self, inst: Inst) -> bool {
        let dfg = &self.func.dfg;
        let (op, mut changed) = (dfg.insts[inst].op, false);
        for (index, arg) in dfg.args(inst).iter().enumerate() {
            let number = self.of[dfg.resolve(*arg)];
            if number == 0 {
                continue;
            }
            match (op, index) {
                (Opcode::Load | Opcode::AtomicRmw | Opcode::Cmpxchg, 0)
                | (Opcode::Store, 1)
                | (Opcode::Memcpy | Opcode::Memmove, 0 | 1)
                | (Opcode::Memset, 0)
                | (Opcode::Icmp | Opcode::IsSpace | Opcode::Ret, _) => {}
                (Opcode::Gep | Opcode::Addrspacecast | Opcode::Freeze, 0) | (Opcode::Select, 1 | 2) => {
                    changed |= dfg.first_result(inst).is_some_and(|result| self.point(result, number));
                }
                _ => self.lasts[number as usize - 1] = true,
            }
        }
        let mut passed: Vec<(IrBlock, Value, u32)> = Vec::new();
        dfg.for_each_target(inst, |target| {
            let params = dfg.block_params(target.block);
            for (param, arg) in params.iter().zip(target.args.as_slice(&dfg.pool)) {
                let number = self.of[dfg.resolve(*arg)];
                if number != 0 {
                    passed.push((target.block, *param, number));
                }
            }
        });
        for (to, param, number) in passed {
            // Behind the block that makes the object, the next one is not made before that block comes again.
            let made = self.objects[number as usize - 1].block;
            if made != to && self.tree.dominates(self.cfg, made, to) {
                changed |= self.point(param, number);
            } else {
                self.lasts[number as usize - 1] = true;
            }
        }
        changed
    }

    fn point(&mut self, value: Value, number: u32) -> bool {
        let old = self.of[value];
        if old != 0 && old != number {
            self.lasts[old as usize - 1] = true;
            self.lasts[number as usize - 1] = true;
            return false;
        }
        self.of[value] = number;
        old == 0
    }
}
