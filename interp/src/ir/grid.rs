//! A launch: globals and parameters in memory, thread blocks in turns, barriers.

use cranelift_entity::{EntityRef, SecondaryMap};
use ptxc_ir::{AggDef, FuncId, FuncKind, GlobalKind, Init, Linkage, MemType, Module, Opcode, Space, Symbol};

use super::decode::{Addresses, decode, function_address};
use super::program::{Code, LANES};
use super::warp::{Context, Warp};
use super::{Stop, describe};
use crate::launch::{Argument, Buffer, Failure, Launch, Options, Outcome};
use crate::memory::{Block, Fault, Memory, to_generic};

/// Most bytes of shared memory of a block, with the gaps between variables.
const MOST_SHARED: u64 = 256 << 10;

/// A barrier of a thread block.
#[derive(Clone, Copy, Default, Debug)]
struct Barrier {
    arrived: u32,
    expected: Option<u32>,
    votes: u32,
}

/// What the warps of a thread block share.
#[derive(Clone, Default, Debug)]
pub struct Team {
    /// Slot.
    pub slot: usize,
    /// Number in the grid.
    pub number: u32,
    /// Position in the grid.
    pub id: [u32; 3],
    /// Rank in the cluster.
    pub rank: u32,
    /// Threads that have not exited.
    pub live: u32,
    /// A barrier may be complete.
    pub changed: bool,
    barriers: [Barrier; 16],
    epoch: u32,
}

impl Team {
    /// Threads arrive at a barrier.
    pub fn arrive(&mut self, number: u8, count: Option<u32>, mask: u32, votes: u32) -> Result<(), Stop> {
        let Some(barrier) = self.barriers.get_mut(usize::from(number)) else { return Ok(()) };
        if barrier.arrived > 0 && barrier.expected != count {
            return Err(Stop::new(format!("threads at barrier {number} give different counts")));
        }
        if let Some(count) = count
            && (count == 0 || count % LANES as u32 != 0)
        {
            return Err(Stop::new(format!("the count {count} of barrier {number} is no multiple of the warp's size")));
        }
        barrier.expected = count;
        barrier.arrived += mask.count_ones();
        barrier.votes += votes.count_ones();
        self.changed = true;
        Ok(())
    }

    /// A barrier at which all have arrived, which is then new: its number, threads and votes.
    fn complete(&mut self) -> Option<(u8, u32, u32)> {
        let live = self.live;
        let full = |b: &Barrier| b.arrived > 0 && b.arrived >= b.expected.unwrap_or(live);
        let number = self.barriers.iter().position(full)?;
        let barrier = std::mem::take(&mut self.barriers[number]);
        self.epoch += 1;
        Some((number as u8, barrier.arrived, barrier.votes))
    }
}

struct Running {
    team: Team,
    warps: Vec<Warp>,
}

struct Grid<'m> {
    module: &'m Module,
    launch: &'m Launch,
    options: &'m Options,
    codes: Vec<Code>,
    code_of: Vec<Option<usize>>,
    memory: Memory,
    shared: Block,
    kernel: usize,
    arguments: Vec<u64>,
    outcome: Outcome,
    warned: Vec<bool>,
}

fn failure(message: impl Into<String>) -> Failure {
    Failure { message: message.into(), place: String::new(), thread: String::new() }
}

/// Runs a launch to its end; the buffers are what the launch's arguments point into.
///
/// # Errors
/// What is wrong with the launch, or the first error of the program with its place and thread.
pub fn run(module: &Module, launch: &Launch, buffers: &mut [Buffer], options: &Options) -> Result<Outcome, Failure> {
    launch.check().map_err(failure)?;
    let Some(Symbol::Func(kernel)) = module.symbol(&launch.kernel) else {
        return Err(failure(format!("there is no kernel @{}", launch.kernel)));
    };
    let func = &module.funcs[kernel];
    if func.kind != FuncKind::Kernel || func.is_declaration() {
        return Err(failure(format!("@{} is no kernel with a body", launch.kernel)));
    }
    if func.attrs.reqntid.is_some_and(|size| size != launch.block) {
        return Err(failure(format!(
            "@{} needs blocks of {:?} threads",
            launch.kernel,
            func.attrs.reqntid.unwrap_or_default()
        )));
    }
    let mut memory = Memory::new(options.fill, options.races);
    let (addresses, shared) = globals(module, launch, &mut memory).map_err(failure)?;
    let starts: Vec<u64> = buffers.iter().map(|buffer| place(buffer, &mut memory)).collect::<Result<_, _>>()?;
    let (codes, code_of) = decode_all(module, &addresses);
    let places = codes.last().map_or(0, |c| c.first_place as usize + c.steps.len());
    let arguments = parameters(module, kernel, launch, &starts, &mut memory).map_err(failure)?;
    let Some(index) = code_of[kernel.index()] else { return Err(failure("the kernel has no body")) };
    let outcome = Outcome::default();
    let warned = vec![false; places];
    let mut grid =
        Grid { module, launch, options, codes, code_of, memory, shared, kernel: index, arguments, outcome, warned };
    grid.run()?;
    for (buffer, start) in buffers.iter_mut().zip(starts) {
        if let Some(bytes) = grid.memory.global_bytes(start) {
            buffer.bytes.copy_from_slice(bytes);
        }
    }
    Ok(grid.outcome)
}

fn decode_all(module: &Module, addresses: &Addresses) -> (Vec<Code>, Vec<Option<usize>>) {
    let mut codes: Vec<Code> = Vec::new();
    let mut code_of = Vec::new();
    let mut place = 0;
    for id in module.func_ids() {
        if module.funcs[id].is_declaration() {
            code_of.push(None);
            continue;
        }
        code_of.push(Some(codes.len()));
        let code = decode(module, id, addresses, place);
        place += code.steps.len() as u32;
        codes.push(code);
    }
    (codes, code_of)
}

fn place(buffer: &Buffer, memory: &mut Memory) -> Result<u64, Failure> {
    let start = memory.allocate_global(&buffer.name, buffer.bytes.len() as u64, 256);
    if !buffer.uninitialized && !buffer.bytes.is_empty() {
        memory.initialize(Space::Global, start, &buffer.bytes).map_err(|fault| failure(fault.to_string()))?;
    }
    Ok(start)
}

/// Gives every global its address; lays out shared memory.
fn globals(module: &Module, launch: &Launch, memory: &mut Memory) -> Result<(Addresses, Block), String> {
    let mut addresses: Addresses = SecondaryMap::new();
    let mut shared = memory.shared_layout();
    let mut dynamic = 16;
    for (id, global) in module.globals.iter() {
        let size = module.layout_of(global.ty).size;
        if size > 1 << 30 {
            return Err(format!("@{} has {size} bytes", global.name));
        }
        addresses[id] = match global.kind {
            GlobalKind::Variable(Space::Shared) if global.linkage == Linkage::Extern => {
                dynamic = dynamic.max(global.align);
                0
            }
            GlobalKind::Variable(Space::Shared) => {
                if size > MOST_SHARED {
                    return Err(format!("@{} has {size} bytes of shared memory", global.name));
                }
                shared.allocate(size, global.align)
            }
            GlobalKind::Variable(Space::Const) => memory.allocate_const(size, global.align),
            _ => memory.allocate_global(&global.name, size, global.align),
        };
    }
    if shared.len() + u64::from(launch.dynamic_shared) > MOST_SHARED {
        return Err(format!("a block has more than {MOST_SHARED} bytes of shared memory"));
    }
    let start = shared.allocate(launch.dynamic_shared.into(), dynamic);
    for (id, global) in module.globals.iter() {
        let space = match global.kind {
            GlobalKind::Variable(Space::Shared) => {
                if global.linkage == Linkage::Extern {
                    addresses[id] = start;
                }
                continue;
            }
            GlobalKind::Variable(Space::Const) => Space::Const,
            _ => Space::Global,
        };
        if global.linkage == Linkage::Extern {
            continue;
        }
        let size = module.layout_of(global.ty).size as usize;
        // Variables without an initializer are zero.
        let mut bytes = vec![0; size];
        if let Some(init) = &global.init {
            initial(module, &addresses, global.ty, init, &mut bytes)?;
        }
        memory.initialize(space, addresses[id], &bytes).map_err(|fault: Fault| fault.to_string())?;
    }
    Ok((addresses, shared))
}

/// Writes an initializer; what it leaves open is zero.
fn initial(module: &Module, addresses: &Addresses, ty: MemType, init: &Init, out: &mut [u8]) -> Result<(), String> {
    let put = |out: &mut [u8], bits: u128| out.iter_mut().zip(bits.to_le_bytes()).for_each(|(to, from)| *to = from);
    match init {
        Init::Bits(bits) => put(out, *bits),
        Init::Zero | Init::Poison => {}
        Init::Bytes(bytes) => out.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from),
        Init::Func(func) => put(out, function_address(*func).into()),
        Init::Global { global, offset, generic } => {
            let space = match module.globals[*global].kind {
                GlobalKind::Variable(space) if *generic => space,
                _ => Space::Global,
            };
            put(out, to_generic(space, addresses[*global]).wrapping_add_signed(*offset).into());
        }
        Init::List(list) => {
            for (index, init) in list.iter().enumerate() {
                let (elem, offset) = match ty {
                    MemType::Value(ty) if ty.scalar_bits() == 1 => {
                        if let (Init::Bits(bits), Some(byte)) = (init, out.get_mut(index / 8)) {
                            *byte |= (*bits as u8 & 1) << (index % 8);
                        }
                        continue;
                    }
                    MemType::Value(ty) => (MemType::Value(ty.scalar()), index as u64 * ty.scalar().size()),
                    MemType::Agg(id) => {
                        let agg = module.agg(id);
                        match &agg.def {
                            AggDef::Array { elem, .. } => (*elem, index as u64 * module.layout_of(*elem).size),
                            AggDef::Struct { fields, .. } => match (fields.get(index), agg.offsets.get(index)) {
                                (Some(field), Some(offset)) => (*field, *offset),
                                _ => return Err("an initializer has too many fields".to_string()),
                            },
                        }
                    }
                };
                let size = module.layout_of(elem).size;
                let range = offset as usize..(offset + size) as usize;
                let part = out.get_mut(range).ok_or_else(|| "an initializer is too long".to_string())?;
                initial(module, addresses, elem, init, part)?;
            }
        }
    }
    Ok(())
}

/// The values of the kernel's parameters, a slot each.
fn parameters(
    module: &Module,
    kernel: FuncId,
    launch: &Launch,
    buffers: &[u64],
    memory: &mut Memory,
) -> Result<Vec<u64>, String> {
    let sig = &module.funcs[kernel].sig;
    if sig.params.len() != launch.arguments.len() {
        let (takes, given) = (sig.params.len(), launch.arguments.len());
        return Err(format!("@{} takes {takes} arguments, {given} are given", launch.kernel));
    }
    let mut slots = Vec::new();
    for (number, (param, argument)) in sig.params.iter().zip(&launch.arguments).enumerate() {
        let bytes = match argument {
            Argument::Bytes(bytes) => bytes.clone(),
            Argument::Buffer { index, offset } => {
                let start = buffers.get(*index).ok_or_else(|| format!("there is no buffer {index}"))?;
                start.wrapping_add(*offset).to_le_bytes().to_vec()
            }
        };
        let ty = param.attrs.byval.unwrap_or(param.ty);
        let layout = module.layout_of(ty);
        if layout.size != bytes.len() as u64 {
            return Err(format!("argument {number} has {} bytes, its parameter {}", bytes.len(), layout.size));
        }
        if param.attrs.byval.is_some() {
            let address = memory.allocate_param(layout.size, layout.align.max(param.attrs.align.into()));
            memory.initialize(Space::Param, address, &bytes).map_err(|fault| fault.to_string())?;
            slots.push(address);
            continue;
        }
        module.for_each_leaf(ty, 0, &mut |leaf, offset| {
            let size = leaf.scalar().size();
            for element in 0..u64::from(leaf.lanes()) {
                let at = (offset + element * size) as usize;
                let part = bytes.get(at..at + size as usize).unwrap_or_default();
                let bits = part.iter().rev().fold(0u128, |n, b| n << 8 | u128::from(*b));
                let bits = bits & super::integer::mask(leaf.scalar_bits());
                slots.push(bits as u64);
                if leaf.scalar_bits() > 64 {
                    slots.push((bits >> 64) as u64);
                }
            }
        });
    }
    Ok(slots)
}

impl Grid<'_> {
    /// Starts clusters as slots get free, and lets every warp have its turn.
    fn run(&mut self) -> Result<(), Failure> {
        let volume = |x: [u32; 3]| x.iter().map(|n| *n as usize).product::<usize>();
        let size = volume(self.launch.cluster);
        let clusters = volume(self.launch.grid) / size;
        let places = (self.options.resident / size).clamp(1, clusters.max(1));
        let mut next = 0;
        let mut running: Vec<Vec<Running>> = (0..places).map(|_| Vec::new()).collect();
        loop {
            let mut busy = false;
            let mut steps = 0;
            for (place, cluster) in running.iter_mut().enumerate() {
                if cluster.iter().all(|b| b.team.live == 0) {
                    if next == clusters {
                        continue;
                    }
                    *cluster = self.start(next, place * size, size);
                    next += 1;
                }
                busy = true;
                for block in cluster.iter_mut() {
                    steps += self.turn(block)?;
                }
            }
            if !busy {
                return Ok(());
            }
            if steps == 0 {
                return Err(self.stuck(&running));
            }
        }
    }

    fn start(&mut self, cluster: usize, first: usize, size: usize) -> Vec<Running> {
        let Launch { grid, block, cluster: shape, .. } = self.launch;
        let threads: u32 = block.iter().product();
        let across = [grid[0] / shape[0], grid[1] / shape[1]];
        let cluster = cluster as u32;
        let at = [cluster % across[0], cluster / across[0] % across[1], cluster / across[0] / across[1]];
        let mut out = Vec::with_capacity(size);
        for rank in 0..size as u32 {
            let inner = [rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]];
            let id: [u32; 3] = std::array::from_fn(|i| at[i] * shape[i] + inner[i]);
            let slot = first + rank as usize;
            self.memory.start_block(slot, &self.shared, threads as usize, (first, size as u32));
            let number = id[0] + grid[0] * (id[1] + grid[1] * id[2]);
            let team = Team { slot, number, id, rank, live: threads, ..Team::default() };
            let warp = |w: u32| {
                let count = (threads - w * LANES as u32).min(LANES as u32);
                let live = u32::MAX >> (LANES as u32 - count);
                Warp::new(w * LANES as u32, live, self.kernel, &self.codes[self.kernel], &self.arguments)
            };
            out.push(Running { team, warps: (0..threads.div_ceil(LANES as u32)).map(warp).collect() });
        }
        out
    }

    /// A turn of every warp of a block; gives the steps done.
    fn turn(&mut self, block: &mut Running) -> Result<u64, Failure> {
        let mut total = 0;
        for index in 0..block.warps.len() {
            let Running { team, warps } = block;
            let warp = &mut warps[index];
            if warp.groups.is_empty() {
                continue;
            }
            let mut cx = Context {
                module: self.module,
                codes: &self.codes,
                code_of: &self.code_of,
                launch: self.launch,
                options: self.options,
                memory: &mut self.memory,
                team,
                outcome: &mut self.outcome,
                warned: &mut self.warned,
            };
            match warp.run(&mut cx, self.options.slice) {
                Ok(steps) => total += u64::from(steps),
                Err(stop) => return Err(self.fail(stop, &warp.who, team)),
            }
            if self.outcome.steps > self.options.step_limit {
                let stop = Stop::new(format!("more than {} steps", self.options.step_limit));
                return Err(self.fail(stop, &warp.who, team));
            }
            if std::mem::take(&mut team.changed) {
                while let Some((number, count, votes)) = team.complete() {
                    let result = |op| match op {
                        Opcode::BarrierRedPopc => votes.into(),
                        Opcode::BarrierRedAnd => u64::from(votes == count),
                        _ => u64::from(votes != 0),
                    };
                    warps.iter_mut().for_each(|w| w.release(number, result, team.epoch, &self.codes));
                    total += 1;
                }
            }
        }
        Ok(total)
    }

    fn fail(&self, stop: Stop, who: &super::warp::Identity, team: &Team) -> Failure {
        let mut message = stop.message;
        if let Some(other) = stop.other {
            message.push_str(&format!(", which was at {}", describe(self.module, &self.codes, other)));
        }
        let thread = stop.lane.map_or_else(
            || format!("block {:?}, warp of thread {}", team.id, who.first_thread),
            |lane| format!("block {:?}, thread {}", team.id, who.first_thread as usize + lane),
        );
        Failure { message, place: describe(self.module, &self.codes, who.place), thread }
    }

    /// Nothing can run.
    fn stuck(&self, running: &[Vec<Running>]) -> Failure {
        use super::warp::State;
        let blocks = running.iter().flatten();
        let mut waiting =
            blocks.flat_map(|b| b.warps.iter().map(move |w| (b, w))).filter(|(_, w)| !w.groups.is_empty());
        let Some((block, warp)) = waiting.next() else { return failure("nothing runs") };
        let Some((place, group)) = warp.place_of_first(&self.codes) else { return failure("nothing runs") };
        let message = match group.state {
            State::Barrier(number) => {
                format!("barrier {number} is never complete: threads wait elsewhere, or have gone another way")
            }
            _ => format!("the threads {:#x} of the warp wait for others of it that do not come", group.mask),
        };
        let thread = format!("block {:?}, warp of thread {}", block.team.id, warp.who.first_thread);
        Failure { message, place: describe(self.module, &self.codes, place), thread }
    }
}
