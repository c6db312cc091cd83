//! One warp: groups of lanes at different positions, in turns.
//!
//! The group at the lowest position runs first, deeper calls before what follows the call, so that lanes that parted
//! meet again at the first place that all reach. Groups at the same position of the same frame become one. A group
//! that runs very long alone lets others have a turn: lanes may wait for each other.

use ptxc_ir::{Flags, FuncId, Module, Opcode, Shape};

use super::compute::{self, At};
use super::decode::function_at;
use super::frame::{Frame, lanes};
use super::grid::Team;
use super::program::{Code, Lanes, More, Step, Target};
use super::threads::{self, Together};
use super::{Stop, access, target};
use crate::launch::{Launch, Options, Outcome};
use crate::memory::{Accessor, Memory};

/// Most calls within each other.
const MAX_DEPTH: u32 = 1024;
/// Steps that a group runs while others could, before they have a turn.
const PATIENCE: u64 = 1 << 11;

/// What all warps share while one of them runs.
pub struct Context<'a> {
    /// Module.
    pub module: &'a Module,
    /// All functions with a body.
    pub codes: &'a [Code],
    /// Number of each function's code.
    pub code_of: &'a [Option<usize>],
    /// Launch.
    pub launch: &'a Launch,
    /// Limits.
    pub options: &'a Options,
    /// Memory.
    pub memory: &'a mut Memory,
    /// The warp's thread block.
    pub team: &'a mut Team,
    /// What was done so far.
    pub outcome: &'a mut Outcome,
    /// Places that have been warned of.
    pub warned: &'a mut [bool],
}

impl Context<'_> {
    /// Warns once a place.
    pub fn warn(&mut self, place: u32, message: &str) {
        if let Some(warned) = self.warned.get_mut(place as usize)
            && !*warned
        {
            *warned = true;
            let place = super::describe(self.module, self.codes, place);
            self.outcome.warnings.push(format!("{message}, at {place}"));
        }
    }
}

/// Who the lanes of a warp are.
#[derive(Clone, Default, Debug)]
pub struct Identity {
    /// Number of lane 0 in the block.
    pub first_thread: u32,
    /// Lanes that have not exited.
    pub live: u32,
    /// Last barrier passed.
    pub epoch: u32,
    /// How often lanes have met.
    pub warp_epoch: u32,
    /// Lanes that have executed a fence or an acquiring access.
    pub synchronized: u32,
    /// The carry of each lane.
    pub carry: u32,
    /// Place of the current instruction.
    pub place: u32,
}

impl Identity {
    /// A lane as memory sees it.
    pub fn accessor(&self, team: &Team, lane: usize) -> Accessor {
        Accessor {
            slot: team.slot,
            block: team.number,
            thread: self.first_thread + lane as u32,
            epoch: self.epoch,
            warp_epoch: self.warp_epoch,
            synchronized: self.synchronized >> lane & 1 != 0,
            place: self.place,
        }
    }
}

/// What a group does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// Runs.
    Ready,
    /// Waits for lanes of the warp at a convergent instruction.
    Meeting,
    /// Waits at a barrier of the block.
    Barrier(u8),
}

/// Lanes at one position.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Lanes.
    pub mask: u32,
    /// Frame.
    pub frame: usize,
    /// Position in the frame's code.
    pub pc: u32,
    /// What it does.
    pub state: State,
}

/// A warp.
#[derive(Clone, Default, Debug)]
pub struct Warp {
    /// Who.
    pub who: Identity,
    /// Groups; none when all lanes have exited.
    pub groups: Vec<Group>,
    frames: Vec<Frame>,
    free: Vec<usize>,
    /// Steps since groups last changed other than by running.
    alone: u64,
    turn: usize,
}

/// Why a group stops running.
enum Flow {
    Next,
    Stay,
    Goto(usize),
    Branch { taken: u32 },
    Switch(Vec<(usize, u32)>),
    Call(usize, u32),
    Return,
    Exit,
    Meet,
    Executed(u32),
    Barrier(u8),
}

impl Warp {
    /// A warp at the start of a kernel, its parameters in `arguments`, one slot each.
    pub fn new(first_thread: u32, live: u32, index: usize, code: &Code, arguments: &[u64]) -> Warp {
        let mut frame = Frame::new(index, code, live);
        let slots = code.params.iter().flat_map(|p| p.slot..p.slot + p.slots());
        for (slot, bits) in slots.zip(arguments) {
            frame.set(slot, &[*bits; 32], 0, u32::MAX);
        }
        let groups = vec![Group { mask: live, frame: 0, pc: 0, state: State::Ready }];
        let who = Identity { first_thread, live, ..Identity::default() };
        Warp { who, groups, frames: vec![frame], free: Vec::new(), alone: 0, turn: 0 }
    }

    /// Runs until `budget` steps are done or nothing in the warp can run. Gives the steps done.
    pub fn run(&mut self, cx: &mut Context<'_>, budget: u32) -> Result<u32, Stop> {
        let mut left = budget;
        while left > 0 {
            let Some(index) = self.choose() else { break };
            self.advance(index, &mut left, cx)?;
        }
        Ok(budget - left)
    }

    /// Positions from the kernel down to the group.
    fn path(&self, group: &Group) -> Vec<u32> {
        let mut path = vec![group.pc];
        let mut frame = group.frame;
        while let Some((caller, pc)) = self.frames[frame].caller {
            path.push(pc);
            frame = caller;
        }
        path.reverse();
        path
    }

    fn merge(&mut self) {
        let mut i = 0;
        while i < self.groups.len() {
            let mut j = i + 1;
            while j < self.groups.len() {
                let (a, b) = (self.groups[i], self.groups[j]);
                let waits = |g: &Group| matches!(g.state, State::Barrier(_));
                if (a.frame, a.pc) == (b.frame, b.pc) && !waits(&a) && !waits(&b) {
                    self.groups[i].mask |= b.mask;
                    self.groups[i].state = State::Ready;
                    self.groups.swap_remove(j);
                    self.alone = 0;
                } else {
                    j += 1;
                }
            }
            i += 1;
        }
    }

    fn choose(&mut self) -> Option<usize> {
        if let [group] = self.groups[..] {
            return (group.state == State::Ready).then_some(0);
        }
        self.merge();
        let ready: Vec<usize> = (0..self.groups.len()).filter(|i| self.groups[*i].state == State::Ready).collect();
        if self.alone > PATIENCE && ready.len() > 1 {
            self.turn += 1;
            return ready.get(self.turn % ready.len()).copied();
        }
        // A longer path with the same start is inside a call that the shorter one is about to make.
        ready.into_iter().min_by(|a, b| {
            let (a, b) = (self.path(&self.groups[*a]), self.path(&self.groups[*b]));
            let common = a.len().min(b.len());
            a[..common].cmp(&b[..common]).then(b.len().cmp(&a.len()))
        })
    }

    /// Runs one group until it branches apart, waits, calls, or meets another.
    fn advance(&mut self, index: usize, left: &mut u32, cx: &mut Context<'_>) -> Result<(), Stop> {
        let Group { mask, frame: frame_index, mut pc, .. } = self.groups[index];
        let several = self.groups.len() > 1;
        let others = self.groups.iter().filter(|g| g.frame == frame_index && g.pc > pc).map(|g| g.pc);
        let limit = others.min().unwrap_or(u32::MAX);
        let mut frame = std::mem::take(&mut self.frames[frame_index]);
        let codes = cx.codes;
        let code = &codes[frame.code];
        let before = *left;
        let flow = loop {
            if *left == 0 {
                break Ok(Flow::Stay);
            }
            let Some(step) = code.steps.get(pc as usize) else { break Err(Stop::new("the function has no body")) };
            *left -= 1;
            self.who.place = code.first_place + pc;
            let mut at = At { step, code, frame: &mut frame, mask };
            match execute(&mut at, cx, &mut self.who) {
                Ok(Flow::Next) => {
                    pc += 1;
                    if pc >= limit {
                        break Ok(Flow::Stay);
                    }
                }
                Ok(Flow::Goto(target)) => {
                    if let Some(target) = target_of(step, target) {
                        frame.copy(code, &target.copies, mask);
                        pc = target.pc;
                    }
                    if several {
                        break Ok(Flow::Stay);
                    }
                }
                other => break other,
            }
        };
        let done = before - *left;
        self.alone += u64::from(done);
        cx.outcome.steps += u64::from(done);
        cx.outcome.lane_steps += u64::from(done) * u64::from(mask.count_ones());
        self.frames[frame_index] = frame;
        self.groups[index].pc = pc;
        self.follow(index, flow?, cx)
    }

    fn follow(&mut self, index: usize, flow: Flow, cx: &mut Context<'_>) -> Result<(), Stop> {
        let group = self.groups[index];
        let code = &cx.codes[self.frames[group.frame].code];
        match flow {
            Flow::Next | Flow::Stay => {}
            Flow::Goto(target) => self.split(index, code, &[(target, group.mask)]),
            Flow::Branch { taken } => self.split(index, code, &[(0, taken), (1, group.mask & !taken)]),
            Flow::Switch(parts) => self.split(index, code, &parts),
            Flow::Call(callee, mask) => self.call(index, callee, mask, cx)?,
            Flow::Return => self.ret(index, cx),
            Flow::Exit => self.exit(index, cx),
            Flow::Meet => self.groups[index].state = State::Meeting,
            Flow::Executed(mask) => {
                if mask == group.mask {
                    self.groups[index].pc += 1;
                } else {
                    self.groups[index].mask &= !mask;
                    self.groups.push(Group { mask, pc: group.pc + 1, ..group });
                }
            }
            Flow::Barrier(number) => self.groups[index].state = State::Barrier(number),
        }
        Ok(())
    }

    /// Sends lanes to different targets of the group's current step.
    fn split(&mut self, index: usize, code: &Code, parts: &[(usize, u32)]) {
        let group = self.groups[index];
        let mut first = true;
        for (target, mask) in parts.iter().filter(|(_, mask)| *mask != 0) {
            let Some(target) = code.steps.get(group.pc as usize).and_then(|s| target_of(s, *target)) else { continue };
            self.frames[group.frame].copy(code, &target.copies, *mask);
            let part = Group { mask: *mask, pc: target.pc, ..group };
            if first {
                self.groups[index] = part;
            } else {
                self.groups.push(part);
            }
            first = false;
        }
        self.alone = 0;
    }

    fn call(&mut self, index: usize, callee: usize, mask: u32, cx: &mut Context<'_>) -> Result<(), Stop> {
        let group = self.groups[index];
        let caller = &self.frames[group.frame];
        let (code, inner) = (&cx.codes[caller.code], &cx.codes[callee]);
        let Some(step) = code.steps.get(group.pc as usize) else { return Ok(()) };
        if caller.depth >= MAX_DEPTH {
            return Err(Stop::new(format!("more than {MAX_DEPTH} calls are within each other")));
        }
        let mut frame = Frame::new(callee, inner, mask);
        frame.caller = Some((group.frame, group.pc));
        frame.depth = caller.depth + 1;
        let first = usize::from(step.op == Opcode::CallIndirect);
        let args = &step.args[first.min(step.args.len())..];
        if args.len() != inner.params.len() || args.iter().zip(&inner.params).any(|(a, p)| a.slots() != p.slots()) {
            return Err(Stop::new("the call does not fit the signature of the function called"));
        }
        for (arg, param) in args.iter().zip(&inner.params) {
            for i in 0..param.slots() {
                let (values, poison) = caller.slot(code, arg.slot + i);
                frame.set(param.slot + i, values, poison, mask);
            }
        }
        if inner.has_stack {
            let mark = |lane| cx.memory.local_mark(cx.team.slot, self.who.first_thread as usize + lane);
            frame.marks = Some(Box::new(std::array::from_fn(mark)));
        }
        for (number, size, align) in &inner.byval {
            let Some(param) = inner.params.get(*number) else { continue };
            for lane in lanes(mask) {
                let source = frame.read(inner, *param, 0, lane);
                let source = source.ok_or_else(|| Stop::lane("the address is poison", lane))? as u64;
                let copy = access::copy_argument(cx, &self.who, lane, param.ty, source, (*size, *align))?;
                frame.write(*param, 0, lane, Some(copy.into()));
            }
        }
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.frames.push(Frame::default());
                self.frames.len() - 1
            }
        };
        self.frames[at] = frame;
        let inside = Group { mask, frame: at, pc: 0, state: State::Ready };
        if mask == group.mask {
            self.groups[index] = inside;
        } else {
            self.groups[index].mask &= !mask;
            self.groups.push(inside);
        }
        Ok(())
    }

    fn drop_stack(&self, frame: usize, mask: u32, cx: &mut Context<'_>) {
        if let Some(marks) = &self.frames[frame].marks {
            for lane in lanes(mask) {
                cx.memory.pop_local(cx.team.slot, self.who.first_thread as usize + lane, marks[lane]);
            }
        }
    }

    fn ret(&mut self, index: usize, cx: &mut Context<'_>) {
        let group = self.groups[index];
        let Some((caller, pc)) = self.frames[group.frame].caller else { return self.exit(index, cx) };
        self.drop_stack(group.frame, group.mask, cx);
        let (code, outer) = (&cx.codes[self.frames[group.frame].code], &cx.codes[self.frames[caller].code]);
        let steps = (code.steps.get(group.pc as usize), outer.steps.get(pc as usize));
        if let (Some(step), Some(call)) = steps {
            for (from, to) in step.args.iter().zip(&call.results) {
                for i in 0..to.slots() {
                    let (values, poison) = self.frames[group.frame].slot(code, from.slot + i);
                    let values: Lanes = *values;
                    self.frames[caller].set(to.slot + i, &values, poison, group.mask);
                }
            }
        }
        let frame = &mut self.frames[group.frame];
        frame.live &= !group.mask;
        if frame.live == 0 {
            *frame = Frame::default();
            self.free.push(group.frame);
        }
        self.groups[index] = Group { mask: group.mask, frame: caller, pc: pc + 1, state: State::Ready };
    }

    fn exit(&mut self, index: usize, cx: &mut Context<'_>) {
        let group = self.groups.swap_remove(index);
        self.who.live &= !group.mask;
        cx.team.live -= group.mask.count_ones();
        cx.team.changed = true;
        // Whoever waits for these lanes need not any more.
        for group in self.groups.iter_mut().filter(|g| g.state == State::Meeting) {
            group.state = State::Ready;
        }
    }

    /// Lets the groups at a barrier go on; `result` goes to the step's result.
    pub fn release(&mut self, number: u8, result: impl Fn(Opcode) -> u64, epoch: u32, codes: &[Code]) {
        for group in self.groups.iter_mut().filter(|g| g.state == State::Barrier(number)) {
            let frame = &mut self.frames[group.frame];
            let step = codes.get(frame.code).and_then(|c| c.steps.get(group.pc as usize));
            if let Some((step, out)) = step.and_then(|s| s.results.first().map(|out| (s, out))) {
                frame.set(out.slot, &[result(step.op); 32], 0, group.mask);
            }
            group.state = State::Ready;
            group.pc += 1;
            self.who.epoch = epoch;
        }
    }

    /// Place and lanes of the first group, for messages about the warp as a whole.
    pub fn place_of_first(&self, codes: &[Code]) -> Option<(u32, Group)> {
        let group = self.groups.first()?;
        Some((codes.get(self.frames[group.frame].code)?.first_place + group.pc, *group))
    }
}

fn target_of(step: &Step, index: usize) -> Option<&Target> {
    match &step.more {
        More::Targets(targets, _) => targets.get(index),
        _ => None,
    }
}

/// One step.
fn execute(at: &mut At<'_>, cx: &mut Context<'_>, who: &mut Identity) -> Result<Flow, Stop> {
    if at.step.fast.is_some() {
        return compute::execute(at).map(|()| Flow::Next);
    }
    if let More::Refused(message) = &at.step.more {
        return Err(Stop::new(message.to_string()));
    }
    match at.step.op.shape() {
        Shape::Load
        | Shape::Store
        | Shape::AtomicRmw
        | Shape::Cmpxchg
        | Shape::Fence
        | Shape::MemCopy
        | Shape::MemSet
        | Shape::Alloca => access::execute(at, cx, who).map(|()| Flow::Next),
        Shape::IsSpace => is_space(at).map(|()| Flow::Next),
        Shape::Sreg => threads::special(at, cx, who).map(|()| Flow::Next),
        Shape::Jump => Ok(Flow::Goto(0)),
        Shape::Branch => branch(at),
        Shape::Switch => switch(at),
        Shape::Return => Ok(Flow::Return),
        Shape::Nullary => match at.step.op {
            Opcode::Exit => Ok(Flow::Exit),
            Opcode::Breakpoint => Ok(Flow::Next),
            Opcode::Trap => Err(Stop::new("trap")),
            _ => Err(Stop::new("an instruction is reached that is said to be unreachable")),
        },
        Shape::Call => {
            let More::Callee(callee) = at.step.more else { return Err(Stop::new("no function is called")) };
            Ok(Flow::Call(code_of(cx, callee)?, at.mask))
        }
        Shape::CallIndirect => {
            let addresses = access::all_lanes(at, at.arg(0)?, "the address of the function")?;
            let address = lanes(at.mask).next().map_or(0, |lane| addresses[lane]);
            let callee = function_at(address, cx.module);
            let callee = callee.ok_or_else(|| Stop::new(format!("no function has the address {address:#x}")))?;
            let same = lanes(at.mask).filter(|lane| addresses[*lane] == address).fold(0, |m, lane| m | 1 << lane);
            Ok(Flow::Call(code_of(cx, callee)?, same))
        }
        Shape::Predicate => {
            let values = access::all_lanes(at, at.arg(0)?, "what is assumed")?;
            match lanes(at.mask).find(|lane| values[*lane] & 1 == 0) {
                Some(lane) => Err(Stop::lane("what is assumed does not hold", lane)),
                None => Ok(Flow::Next),
            }
        }
        Shape::BarrierSync | Shape::BarrierReduce => barrier(at, cx, who),
        Shape::WarpMask
        | Shape::Shuffle4
        | Shape::Vote
        | Shape::Ballot
        | Shape::MatchAny
        | Shape::MatchAll
        | Shape::ActiveMask
        | Shape::Redux
        | Shape::Elect => Ok(match threads::execute(at, who)? {
            Together::Done(mask) if mask == at.mask => Flow::Next,
            Together::Done(mask) => Flow::Executed(mask),
            Together::Missing => Flow::Meet,
        }),
        _ => match at.step.more {
            More::Target(operation) => target::execute(operation, at, who).map(|()| Flow::Next),
            _ => compute::execute(at).map(|()| Flow::Next),
        },
    }
}

fn code_of(cx: &Context<'_>, callee: FuncId) -> Result<usize, Stop> {
    let code = cx.code_of.get(callee.as_u32() as usize).copied().flatten();
    code.ok_or_else(|| Stop::new(format!("@{} has no body", cx.module.funcs[callee].name)))
}

fn is_space(at: &mut At<'_>) -> Result<(), Stop> {
    use ptxc_ir::Space;
    let More::Space(space) = at.step.more else { return Err(Stop::new("no space is named")) };
    let (pointer, out) = (at.arg(0)?, at.result(0)?);
    for lane in lanes(at.mask) {
        let found = at.read(pointer, 0, lane).map(|bits| {
            let (found, address) = crate::memory::from_generic(bits as u64);
            match (space, found) {
                (Space::SharedCluster, Space::Shared) => true,
                (Space::Shared, Space::Shared) => address >> 24 == 0,
                _ => space == found,
            }
        });
        at.frame.write(out, 0, lane, found.map(u128::from));
    }
    Ok(())
}

fn branch(at: &mut At<'_>) -> Result<Flow, Stop> {
    let values = access::all_lanes(at, at.arg(0)?, "the condition of the branch")?;
    let taken = lanes(at.mask).fold(0u32, |m, lane| m | (values[lane] as u32 & 1) << lane);
    if taken == at.mask {
        Ok(Flow::Goto(0))
    } else if taken == 0 {
        Ok(Flow::Goto(1))
    } else if at.step.flags.contains(Flags::UNIFORM) {
        Err(Stop::new("the branch is said to be uniform and is not"))
    } else {
        Ok(Flow::Branch { taken })
    }
}

fn switch(at: &mut At<'_>) -> Result<Flow, Stop> {
    let More::Targets(_, cases) = &at.step.more else { return Err(Stop::new("`switch` without targets")) };
    let value = at.arg(0)?;
    let mut parts: Vec<(usize, u32)> = Vec::new();
    for lane in lanes(at.mask) {
        let bits = at.read(value, 0, lane).ok_or_else(|| Stop::lane("the value of the switch is poison", lane))?;
        let target = cases.iter().position(|c| *c == bits).map_or(0, |i| i + 1);
        match parts.iter_mut().find(|(t, _)| *t == target) {
            Some((_, mask)) => *mask |= 1 << lane,
            None => parts.push((target, 1 << lane)),
        }
    }
    Ok(match parts[..] {
        [(target, _)] => Flow::Goto(target),
        _ => Flow::Switch(parts),
    })
}

/// PTX ISA 9.7.13.1. `aligned`: all threads of the warp that have not exited execute it together.
fn barrier(at: &mut At<'_>, cx: &mut Context<'_>, who: &mut Identity) -> Result<Flow, Stop> {
    if at.step.flags.contains(Flags::ALIGNED) && at.mask != who.live {
        return Ok(Flow::Meet);
    }
    let reduces = at.step.op.shape() == Shape::BarrierReduce;
    let operands = at.step.args.len() - usize::from(reduces);
    let uniform = |index: usize, what: &str| -> Result<u64, Stop> {
        let values = access::all_lanes(at, at.arg(index)?, what)?;
        let first = lanes(at.mask).next().map_or(0, |lane| values[lane]);
        match lanes(at.mask).find(|lane| values[*lane] != first) {
            Some(lane) => Err(Stop::lane(format!("{what} is not the same for all threads of the warp"), lane)),
            None => Ok(first),
        }
    };
    let number = uniform(0, "the number of the barrier")?;
    let count = if operands > 1 { Some(uniform(1, "the count of the barrier")? as u32) } else { None };
    let votes = if reduces {
        let values = access::all_lanes(at, at.arg(operands)?, "the predicate")?;
        lanes(at.mask).fold(0u32, |m, lane| m | (values[lane] as u32 & 1) << lane)
    } else {
        0
    };
    let number = u8::try_from(number).ok().filter(|n| *n < 16);
    let number = number.ok_or_else(|| Stop::new("the number of the barrier is not below 16"))?;
    cx.team.arrive(number, count, at.mask, votes)?;
    Ok(if at.step.op == Opcode::BarrierArrive { Flow::Next } else { Flow::Barrier(number) })
}
