//! A function: blocks, instructions and registers.

use crate::entities::{AsmId, Block, CallId, Inst, LocId, SymId, VReg};
use crate::inst::{AsmData, BlockCall, CallData, InstData, OperandRange, Terminator};
use crate::memory::MemoryRef;
use crate::module::{Linkage, Signature};
use crate::operand::Operand;
use crate::types::RegClass;
use cranelift_entity::{PrimaryMap, SecondaryMap};
use ptxc_targets::Opcode;

/// Kernel or function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FuncKind {
    /// `.entry`: launched by the host.
    Kernel,
    /// `.func`: called from the device.
    Func,
}

/// Launch bounds and properties (PTX ISA, 11.4 performance tuning and 11.8 cluster dimension directives).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionAttrs {
    /// `.reqntid`
    pub reqntid: Option<[u32; 3]>,
    /// `.maxntid`
    pub maxntid: Option<[u32; 3]>,
    /// `.minnctapersm`
    pub minnctapersm: Option<u32>,
    /// `.maxnreg`
    pub maxnreg: Option<u32>,
    /// `.reqnctapercluster`
    pub reqnctapercluster: Option<[u32; 3]>,
    /// `.maxclusterrank`
    pub maxclusterrank: Option<u32>,
    /// `.blocksareclusters`
    pub blocksareclusters: bool,
    /// `.noreturn`
    pub noreturn: bool,
}

/// The function's frame in local memory: all stack slots together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Depot {
    /// Bytes; 0 means there is none.
    pub size: u64,
    /// Alignment in bytes, a power of two; meaningless when the size is 0.
    pub align: u32,
}

/// A line of source. A frame that was inlined names the place of the call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct SourceLoc {
    /// Number of the file in [`crate::Module::files`].
    pub file: u32,
    /// Line, from 1; 0 is "no line".
    pub line: u32,
    /// Column, from 1; 0 is "no column".
    pub column: u32,
}

/// How ptxas shall unroll the loop that a block heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unroll {
    /// As it likes.
    #[default]
    Default,
    /// Not at all: `.pragma "nounroll"`.
    Never,
    /// Entirely; done before, or left to ptxas.
    Full,
    /// By that factor; done before, or left to ptxas.
    By(u32),
}

/// Annotations of the loop that a block heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LoopHints {
    /// Unrolling.
    pub unroll: Unroll,
    /// Stages of software pipelining asked for; 0 is "not asked".
    pub stages: u32,
}

/// A basic block.
#[derive(Clone, Debug, Default)]
pub struct BlockData {
    /// Parameters, each a register defined at the block's entry. Empty after register assignment.
    pub params: Vec<VReg>,
    /// Instructions in order, without the terminator.
    pub insts: Vec<Inst>,
    /// How it ends.
    pub terminator: Terminator,
    /// Where the terminator came from.
    pub terminator_loc: LocId,
    /// Annotations of the loop it heads.
    pub hints: LoopHints,
}

/// A function with a body.
#[derive(Clone, Debug)]
pub struct Function {
    /// Its name.
    pub name: SymId,
    /// Kernel or function.
    pub kind: FuncKind,
    /// How others see it.
    pub linkage: Linkage,
    /// Parameters and results.
    pub signature: Signature,
    /// Launch bounds and properties.
    pub attrs: FunctionAttrs,
    /// The blocks, in order of creation.
    pub blocks: PrimaryMap<Block, BlockData>,
    /// The blocks in the order in which they are printed; the first is the entry.
    pub layout: Vec<Block>,
    /// The instructions, in order of creation.
    pub insts: PrimaryMap<Inst, InstData>,
    /// What is known of the memory that instructions access. Instructions that access none have the default.
    pub memory: SecondaryMap<Inst, MemoryRef>,
    /// The operands of all instructions.
    pub operands: Vec<Operand>,
    /// The arguments of all branch targets.
    pub args: Vec<VReg>,
    /// The class of every register.
    pub vregs: PrimaryMap<VReg, RegClass>,
    /// Descriptions of the calls.
    pub calls: PrimaryMap<CallId, CallData>,
    /// Opaque inline assembly.
    pub asms: PrimaryMap<AsmId, AsmData>,
    /// Source locations; the first is "unknown".
    pub locs: PrimaryMap<LocId, SourceLoc>,
    /// The frame.
    pub depot: Depot,
    /// Where the function is declared.
    pub loc: LocId,
}

impl Function {
    /// A function without blocks.
    pub fn new(name: SymId, kind: FuncKind, linkage: Linkage, signature: Signature) -> Function {
        let mut locs = PrimaryMap::new();
        locs.push(SourceLoc::default());
        Function {
            name,
            kind,
            linkage,
            signature,
            attrs: FunctionAttrs::default(),
            blocks: PrimaryMap::new(),
            layout: Vec::new(),
            insts: PrimaryMap::new(),
            memory: SecondaryMap::new(),
            operands: Vec::new(),
            args: Vec::new(),
            vregs: PrimaryMap::new(),
            calls: PrimaryMap::new(),
            asms: PrimaryMap::new(),
            locs,
            depot: Depot::default(),
            loc: LocId::NONE,
        }
    }

    /// The entry block, the first of the layout.
    pub fn entry(&self) -> Option<Block> {
        self.layout.first().copied()
    }

    /// Makes a block and puts it at the end of the layout.
    pub fn new_block(&mut self) -> Block {
        let block = self.blocks.push(BlockData::default());
        self.layout.push(block);
        block
    }

    /// Makes a register.
    pub fn new_vreg(&mut self, class: RegClass) -> VReg {
        self.vregs.push(class)
    }

    /// The class of a register.
    pub fn class(&self, vreg: VReg) -> RegClass {
        self.vregs[vreg]
    }

    /// Records a source location. Equal consecutive ones share an entry.
    pub fn add_loc(&mut self, loc: SourceLoc) -> LocId {
        match self.locs.last() {
            Some((id, last)) if *last == loc => id,
            _ => self.locs.push(loc),
        }
    }

    /// The operands of an instruction.
    pub fn inst_operands(&self, inst: Inst) -> &[Operand] {
        &self.operands[self.insts[inst].operands.as_range()]
    }

    /// The operands of an instruction, to change registers or literals in place.
    pub fn inst_operands_mut(&mut self, inst: Inst) -> &mut [Operand] {
        &mut self.operands[self.insts[inst].operands.as_range()]
    }

    /// Appends operands to the pool.
    pub fn add_operands(&mut self, operands: &[Operand]) -> OperandRange {
        let start = self.operands.len() as u32;
        self.operands.extend_from_slice(operands);
        OperandRange { start, len: operands.len() as u32 }
    }

    /// The arguments of a branch target.
    pub fn call_args(&self, target: BlockCall) -> &[VReg] {
        &self.args[target.as_range()]
    }

    /// A branch target with arguments.
    pub fn block_call(&mut self, block: Block, args: &[VReg]) -> BlockCall {
        let start = self.args.len() as u32;
        self.args.extend_from_slice(args);
        BlockCall { block, start, len: args.len() as u32 }
    }

    /// Calls `f` with every register that the instruction writes.
    pub fn for_each_def(&self, inst: Inst, f: impl FnMut(VReg)) {
        self.inst_operands(inst).iter().filter_map(|o| o.def()).for_each(f);
    }

    /// Calls `f` with every register that the instruction reads, its guard first.
    pub fn for_each_use(&self, inst: Inst, mut f: impl FnMut(VReg)) {
        if let Some(guard) = self.insts[inst].guard {
            f(guard.pred);
        }
        self.inst_operands(inst).iter().filter_map(|o| o.used()).for_each(f);
    }

    /// Calls `f` with every register that the terminator of a block reads: the condition, then all arguments.
    pub fn for_each_terminator_use(&self, block: Block, mut f: impl FnMut(VReg)) {
        let terminator = &self.blocks[block].terminator;
        if let Some(condition) = terminator.condition() {
            f(condition);
        }
        terminator.for_each_target(|t| self.call_args(t).iter().copied().for_each(&mut f));
    }

    /// Replaces every opcode, as after merging the opcode table of a function selected on its own into the module's.
    pub fn map_opcodes(&mut self, mut f: impl FnMut(Opcode) -> Opcode) {
        for data in self.insts.values_mut() {
            if let crate::Op::Ptx(opcode) = &mut data.op {
                *opcode = f(*opcode);
            }
        }
    }
}
