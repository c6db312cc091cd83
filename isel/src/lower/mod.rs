//! Instruction selection of one function.
//!
//! Blocks are visited so that every use is seen before its definition (postorder of the control flow graph), and
//! instructions within a block from the last to the first. An instruction is selected when something needs its
//! results or when it has an effect; one that was matched into its user, or that nobody uses, never is. What an
//! instruction becomes is emitted at its own place: nothing moves, so effects keep their order. Addresses that are names,
//! which belong to no instruction, get their places last ([`names`]).
//!
//! Computing instructions go through the rules of `isel/rules/`; accesses to memory, calls, thread communication and
//! control flow are the modules beside this one.

mod address;
mod atomics;
mod bundles;
mod calls;
mod chunks;
mod control;
mod frame;
mod guards;
mod isle;
mod memory;
mod mnemonic;
mod names;
mod network;
mod objects;
mod parameters;
mod requirements;
mod shapes;
mod switch;
mod target_ops;
mod threads;
mod values;

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, SecondaryMap};
use ptxc_ir::{Block, Effect, Extra, Inst, Opcode, Space, Value};
use ptxc_mir as mir;
use ptxc_mir::{Op, Operand, RegClass, VReg};
use ptxc_targets::{OpcodeTable, Target, Tok};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::Options;
use crate::abi::Abi;
use crate::dialect::Dialect;
use crate::error::SelectError;
use crate::module::Symbols;
use crate::rules::{Pattern, Rule};
use mnemonic::Mnemonic;

/// Registers of the results of an instruction, in order.
pub(crate) type Output = SmallVec<[VReg; 4]>;

/// What selection of every function of a module reads.
#[derive(Clone, Copy)]
pub(crate) struct Env<'a> {
    /// The legal module.
    pub module: &'a ptxc_ir::Module,
    /// Machine symbols of the module's globals and functions.
    pub symbols: &'a Symbols,
    /// What to select for.
    pub target: Target,
    /// The same, and the newest version of PTX.
    pub dialect: Dialect,
    /// There are sums of f32 with halves (PTX ISA 9.7.5.1).
    pub mixed_sums: bool,
    /// Options.
    pub options: &'a Options,
    /// Whether the rules that are applied are kept.
    pub remarks: bool,
}

/// A function after selection, with what the module has to take over.
pub(crate) struct Selected {
    /// The function; its opcodes are numbers of `opcodes`, its prototypes of `prototypes`.
    pub func: mir::Function,
    /// Mnemonics of the function.
    pub opcodes: OpcodeTable,
    /// Signatures of its indirect calls.
    pub prototypes: Vec<mir::Signature>,
    /// Rules that were applied, with the instruction that each selected.
    pub fired: Vec<(Option<Inst>, &'static Rule)>,
}

/// How often a value is used; more than 255 times counts as 255.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
struct Uses(u8);

impl Uses {
    const NONE: Uses = Uses(0);
    const ONCE: Uses = Uses(1);

    fn count(self) -> u32 {
        u32::from(self.0)
    }
}

/// A widening load that replaces a load and the extension of its result.
#[derive(Clone, Copy)]
struct WideLoad {
    signed: bool,
    result: Value,
}

/// Selection of one function.
pub(crate) struct Lower<'a> {
    env: Env<'a>,
    ir: &'a ptxc_ir::Function,
    /// How the function's own parameters and result are passed.
    abi: Abi,
    func: mir::Function,
    opcodes: OpcodeTable,
    mnemonics: FxHashMap<Mnemonic, ptxc_targets::Opcode>,
    /// What rules asked for: whether a mnemonic can be written.
    written: FxHashMap<Mnemonic, bool>,
    prototypes: Vec<mir::Signature>,
    /// Machine block of every reachable block.
    blocks: SecondaryMap<Block, PackedOption<mir::Block>>,
    /// First register and number of registers of every value that has them, in `reg_pool`.
    regs: SecondaryMap<Value, (u32, u16)>,
    reg_pool: Vec<VReg>,
    /// Registers that are another name of one: resolved when the function is finished.
    aliases: SecondaryMap<VReg, PackedOption<VReg>>,
    uses: SecondaryMap<Value, Uses>,
    /// How the logic of the block under selection is computed.
    network: network::Plans,
    /// Loads that are to extend their result.
    wide_loads: FxHashMap<Inst, WideLoad>,
    /// Offsets of the stack slots of `alloca`s in entry blocks.
    frame: FxHashMap<Inst, u32>,
    /// Addresses that are names, in registers.
    names: names::Names,
    /// Addresses of variable places in the frame whose registers lack so many bytes, which accesses add.
    displaced: FxHashMap<Value, i64>,
    /// What pointers point into.
    objects: objects::Objects,
    /// What is known of the memory that the next instruction with an address accesses.
    memory: Option<mir::MemoryRef>,
    /// Kernel parameters by value whose objects are read in parameter space: leaf value to parameter index.
    byval_params: FxHashMap<Value, u32>,
    /// Mnemonics whose requirements were asked for, by number.
    required: Vec<bool>,
    /// The instruction under selection.
    current_inst: Option<Inst>,
    /// The block under selection.
    current_block: Option<Block>,
    /// Blocks that expansions made, by the block they belong behind.
    extra_blocks: Vec<(mir::Block, Vec<mir::Block>)>,
    /// Instructions of the block under selection, last to first.
    emitted: Vec<mir::Inst>,
    /// Where the machine instruction being emitted came from.
    loc: mir::LocId,
    errors: Vec<SelectError>,
    /// Rules that were applied, where somebody wants to know.
    fired: Vec<(Option<Inst>, &'static Rule)>,
}

/// Selects one function with a body.
pub(crate) fn function(
    env: Env<'_>,
    ir: &ptxc_ir::Function,
    abi: Abi,
    head: mir::Function,
) -> Result<Selected, Vec<SelectError>> {
    let mut lower = Lower::new(env, ir, abi, head);
    lower.run();
    if !lower.errors.is_empty() {
        lower.errors.reverse();
        return Err(lower.errors);
    }
    Ok(Selected { func: lower.func, opcodes: lower.opcodes, prototypes: lower.prototypes, fired: lower.fired })
}

impl<'a> Lower<'a> {
    fn new(env: Env<'a>, ir: &'a ptxc_ir::Function, abi: Abi, head: mir::Function) -> Lower<'a> {
        Lower {
            env,
            ir,
            abi,
            func: head,
            opcodes: OpcodeTable::new(),
            mnemonics: FxHashMap::default(),
            written: FxHashMap::default(),
            prototypes: Vec::new(),
            blocks: SecondaryMap::new(),
            regs: SecondaryMap::with_capacity(ir.dfg.num_values()),
            reg_pool: Vec::new(),
            aliases: SecondaryMap::new(),
            uses: SecondaryMap::with_capacity(ir.dfg.num_values()),
            network: network::Plans::default(),
            wide_loads: FxHashMap::default(),
            frame: FxHashMap::default(),
            names: names::Names::default(),
            displaced: FxHashMap::default(),
            objects: objects::Objects::default(),
            memory: None,
            byval_params: FxHashMap::default(),
            required: Vec::new(),
            current_inst: None,
            current_block: None,
            extra_blocks: Vec::new(),
            emitted: Vec::new(),
            loc: mir::LocId::NONE,
            errors: Vec::new(),
            fired: Vec::new(),
        }
    }

    fn run(&mut self) {
        let Some(entry) = self.ir.layout.entry() else { return };
        let postorder = self.postorder(entry);
        self.count_uses(&postorder);
        self.make_blocks(entry, &postorder);
        self.lay_out_frame(entry, &postorder);
        self.find_byval_params(entry);
        self.find_objects(entry, &postorder);
        for block in postorder {
            self.block(block, block == entry);
        }
        self.place_extra_blocks();
        self.resolve_aliases();
        self.place_names();
    }

    /// Reachable blocks, successors first as far as there are no loops.
    fn postorder(&self, entry: Block) -> Vec<Block> {
        let mut seen: SecondaryMap<Block, bool> = SecondaryMap::with_capacity(self.ir.dfg.blocks.len());
        let mut order = Vec::new();
        let mut stack = vec![(entry, self.successors(entry))];
        seen[entry] = true;
        while let Some((block, pending)) = stack.last_mut() {
            match pending.pop() {
                Some(next) if !seen[next] => {
                    seen[next] = true;
                    stack.push((next, self.successors(next)));
                }
                Some(_) => {}
                None => {
                    order.push(*block);
                    stack.pop();
                }
            }
        }
        order
    }

    fn successors(&self, block: Block) -> SmallVec<[Block; 4]> {
        let mut out = SmallVec::new();
        if let Some(last) = self.ir.layout.last_inst(block) {
            self.ir.dfg.for_each_target(last, |t| out.push(t.block));
        }
        out
    }

    fn count_uses(&mut self, blocks: &[Block]) {
        let (ir, uses) = (self.ir, &mut self.uses);
        for block in blocks {
            for inst in ir.layout.insts(*block) {
                ir.dfg.for_each_use(inst, |v| {
                    let slot = &mut uses[ir.dfg.resolve(v)];
                    slot.0 = slot.0.saturating_add(1);
                });
            }
        }
    }

    /// Machine blocks in the order of the IR's, with registers for the parameters somebody uses.
    fn make_blocks(&mut self, entry: Block, reachable: &[Block]) {
        let mut reached: SecondaryMap<Block, bool> = SecondaryMap::new();
        reachable.iter().for_each(|b| reached[*b] = true);
        for block in self.ir.layout.blocks() {
            if !reached[block] {
                continue;
            }
            let made = self.func.new_block();
            self.blocks[block] = made.into();
            self.func.blocks[made].hints = hints(self.ir.dfg.blocks[block].hints);
            if block == entry {
                continue;
            }
            for index in 0..self.ir.dfg.block_params(block).len() {
                let param = self.ir.dfg.block_params(block)[index];
                if self.uses[param] != Uses::NONE {
                    let regs = self.regs_of(param);
                    self.func.blocks[made].params.extend_from_slice(&regs);
                }
            }
        }
    }

    fn block(&mut self, block: Block, is_entry: bool) {
        let Some(made) = self.blocks[block].expand() else { return };
        self.emitted.clear();
        self.current_block = Some(block);
        self.plan_network(block);
        let mut next = self.ir.layout.last_inst(block);
        while let Some(inst) = next {
            next = self.ir.layout.prev_inst(inst);
            self.current_inst = Some(inst);
            self.set_loc(inst);
            let start = self.emitted.len();
            if self.ir.dfg.insts[inst].op.is_terminator() {
                self.terminator(inst, made);
            } else if self.is_needed(inst) {
                self.inst(inst);
            }
            // What one instruction became is in forward order; the block is collected backward.
            self.emitted[start..].reverse();
        }
        if is_entry {
            self.loc = mir::LocId::NONE;
            self.current_inst = None;
            let start = self.emitted.len();
            self.load_parameters(block);
            self.emitted[start..].reverse();
        }
        self.emitted.reverse();
        // A block may have got instructions already when control flow was expanded into it.
        self.func.blocks[made].insts.extend_from_slice(&self.emitted);
    }

    fn set_loc(&mut self, inst: Inst) {
        let loc = self.ir.dfg.locs[inst];
        if self.env.options.locations && loc.line != 0 {
            self.loc = self.func.add_loc(mir::SourceLoc { file: loc.file, line: loc.line, column: loc.col });
        } else {
            self.loc = mir::LocId::NONE;
        }
    }

    /// Whether an instruction must be selected: it has an effect, or a result that something needs.
    fn is_needed(&self, inst: Inst) -> bool {
        let data = &self.ir.dfg.insts[inst];
        let has_effect = match data.op.info().effect {
            Effect::Pure | Effect::Traps => false,
            Effect::Read => match data.extra {
                Extra::Mem(attrs) => attrs.is_ordered(),
                _ => true,
            },
            Effect::Other => data.op != Opcode::Alloca,
            Effect::Table if data.op == Opcode::Asm => !data.flags.contains(ptxc_ir::Flags::PURE),
            Effect::Table if data.op == Opcode::Target => self.permutation(inst).is_none(),
            _ => true,
        };
        has_effect || self.wide_loads.contains_key(&inst) || self.ir.dfg.results(inst).any(|v| self.is_assigned(v))
    }

    fn inst(&mut self, inst: Inst) {
        use Opcode::*;
        let op = self.ir.dfg.insts[inst].op;
        match op {
            Load => self.load(inst),
            Store => self.store(inst),
            AtomicRmw => self.atomic_rmw(inst),
            Cmpxchg => self.cmpxchg(inst),
            Fence => self.fence(inst),
            Gep | Alloca | Addrspacecast => self.address_value(inst),
            Call | CallIndirect => self.call(inst),
            Vector | Extract | Insert | Shuffle | Splat | Bitcast => self.bundle(inst),
            Target if self.planned(inst) => {}
            Target => self.target_op(inst),
            Asm => self.opaque_asm(inst),
            Assume => {}
            _ if matches!(op.info().effect, Effect::Convergent) => self.thread_op(inst),
            Sreg | IsSpace | Breakpoint => self.thread_op(inst),
            _ => self.compute(inst),
        }
    }

    /// A computing instruction: the special cases the rules cannot say, then the rules.
    fn compute(&mut self, inst: Inst) {
        if self.extend_load(inst)
            || self.bundle_compute(inst)
            || self.packed_conversion(inst)
            || self.planned(inst)
            || self.tested_logic(inst)
        {
            return;
        }
        match isle::lower(self, inst) {
            Some(output) => self.bind(inst, &output),
            None => {
                let message = self.no_rule(inst);
                self.error(inst, message);
            }
        }
    }

    /// A rule is applied to the instruction under selection.
    fn note_rule(&mut self, rule: &'static Rule) {
        if self.env.remarks {
            self.fired.push((self.current_inst, rule));
        }
    }

    /// The same for a pattern of ours.
    fn note(&mut self, pattern: Pattern) {
        self.note_rule(pattern.rule());
    }

    fn no_rule(&self, inst: Inst) -> String {
        let data = &self.ir.dfg.insts[inst];
        let name = data.op.text();
        let needs_afn = matches!(data.op, Opcode::Fsin | Opcode::Fcos | Opcode::Fexp2 | Opcode::Flog2 | Opcode::Ftanh);
        if needs_afn && !data.flags.contains(ptxc_ir::Flags::AFN) {
            return format!(
                "`{name}` has only an approximation on GPUs; allow it with the flag `afn` or call a library"
            );
        }
        format!("`{name} {}` is not selectable for {}", data.ty, self.env.target)
    }

    fn error(&mut self, inst: Inst, message: impl Into<String>) {
        self.errors.push(SelectError::at(self.ir, inst, message));
    }

    /// The opcode of a mnemonic of the rules.
    fn opcode(&mut self, mnemonic: Mnemonic) -> ptxc_targets::Opcode {
        if let Some(op) = self.mnemonics.get(&mnemonic) {
            return *op;
        }
        let op = self.opcodes.intern(&mnemonic.toks());
        self.mnemonics.insert(mnemonic, op);
        op
    }

    /// Whether an instruction of this mnemonic can be written for the target, in a version of PTX that was asked for.
    fn can_write(&mut self, mnemonic: Mnemonic) -> bool {
        let dialect = self.env.dialect;
        *self.written.entry(mnemonic).or_insert_with(|| dialect.has_some_form(&mnemonic.toks()))
    }

    /// The opcode of mnemonic pieces.
    fn tok_opcode(&mut self, toks: &[Tok]) -> ptxc_targets::Opcode {
        self.opcodes.intern(toks)
    }

    /// Emits an instruction in the block under selection.
    fn emit_op(&mut self, op: Op, operands: &[Operand]) -> mir::Inst {
        if let Op::Ptx(opcode) = op {
            let index = opcode.index();
            if index >= self.required.len() {
                self.required.resize(index + 1, false);
            }
            if !std::mem::replace(&mut self.required[index], true) {
                self.require(opcode, operands);
            }
        }
        let has_address = operands.iter().any(|o| matches!(o, Operand::Open(mir::GroupKind::Address, _)));
        let memory = if has_address { self.memory.take() } else { None };
        let operands = self.func.add_operands(operands);
        let inst = self.func.insts.push(mir::InstData { op, guard: None, operands, loc: self.loc });
        if let Some(memory) = memory.filter(|memory| *memory != mir::MemoryRef::default()) {
            self.func.memory[inst] = memory;
        }
        self.emitted.push(inst);
        inst
    }

    fn emit(&mut self, mnemonic: Mnemonic, operands: &[Operand]) {
        let op = self.opcode(mnemonic);
        self.emit_op(Op::Ptx(op), operands);
    }

    fn emit_toks(&mut self, toks: &[Tok], operands: &[Operand]) {
        let op = self.tok_opcode(toks);
        self.emit_op(Op::Ptx(op), operands);
    }

    fn new_reg(&mut self, class: RegClass) -> VReg {
        self.func.new_vreg(class)
    }

    /// Rewrites every register to the one it is a name of.
    fn resolve_aliases(&mut self) {
        let last: Vec<VReg> = self.func.vregs.keys().map(|reg| follow(&mut self.aliases, reg)).collect();
        let to = |v: VReg| last[v.index()];
        for operand in &mut self.func.operands {
            if let Some(v) = operand.used() {
                operand.set_used(to(v));
            }
            if let Some(v) = operand.def() {
                operand.set_def(to(v));
            }
        }
        for data in self.func.insts.values_mut() {
            if let Some(guard) = &mut data.guard {
                guard.pred = to(guard.pred);
            }
        }
        self.func.args.iter_mut().for_each(|v| *v = to(*v));
        for block in self.func.blocks.values_mut() {
            block.params.iter_mut().for_each(|v| *v = to(*v));
            if let Some(v) = block.terminator.condition() {
                block.terminator.set_condition(to(v));
            }
        }
    }
}

/// The register at the end of a chain of names, every step of the chain being shortened to it. A register may be made
/// another name of one whose own fate is decided later, so chains occur; they have no cycles.
fn follow(aliases: &mut SecondaryMap<VReg, PackedOption<VReg>>, reg: VReg) -> VReg {
    let mut end = reg;
    while let Some(next) = aliases[end].expand() {
        end = next;
    }
    let mut at = reg;
    while let Some(next) = aliases[at].expand() {
        aliases[at] = end.into();
        if next == end {
            break;
        }
        at = next;
    }
    end
}

fn hints(hints: ptxc_ir::LoopHints) -> mir::LoopHints {
    let unroll = match hints.unroll {
        None => mir::Unroll::Default,
        Some(0) => mir::Unroll::Never,
        Some(u32::MAX) => mir::Unroll::Full,
        Some(n) => mir::Unroll::By(n),
    };
    mir::LoopHints { unroll, stages: hints.pipeline.unwrap_or(0) }
}

/// The PTX piece of a space; `None` is generic.
fn space_tok(space: Space) -> Option<Tok> {
    use ptxc_targets::tok;
    match space {
        Space::Generic => None,
        Space::Global => Some(tok::GLOBAL),
        Space::Shared => Some(tok::SHARED),
        Space::SharedCluster => Some(tok::SHARED__CLUSTER),
        Space::Const => Some(tok::CONST),
        Space::Local => Some(tok::LOCAL),
        Space::Param => Some(tok::PARAM),
        Space::Tensor => Some(tok::TENSOR),
    }
}
