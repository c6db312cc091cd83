//! One warp: what a step does to its lanes and where they go.

use ptxc_ir::{Flags, FuncId, Module, Opcode, Shape};

use super::compute::{self, At};
use super::decode::function_at;
use super::frame::Frame;
use super::program::{Code, Lanes, More, Step, Target};
use super::threads::{self, Together};
use super::{access, describe, target};
use crate::machine::{Arrival, Engine, Group, Groups, Identity, MAX_DEPTH, State, Stop, World, lanes};

/// A module that is interpreted.
pub struct Interpreter<'m> {
    /// Module.
    pub module: &'m Module,
    /// All functions with a body.
    pub codes: Vec<Code>,
    /// Number of each function's code.
    pub code_of: Vec<Option<usize>>,
    /// Number of the kernel's code.
    pub kernel: usize,
    /// The kernel's parameters, one slot each.
    pub arguments: Vec<u64>,
}

/// What a warp works with.
struct Context<'a, 'w> {
    it: &'a Interpreter<'a>,
    world: &'a mut World<'w>,
    /// Registers of target operations.
    scratch: Vec<Lanes>,
}

/// A warp.
#[derive(Clone, Default, Debug)]
pub struct Warp {
    who: Identity,
    groups: Groups,
    frames: Vec<Frame>,
    free: Vec<usize>,
}

impl Engine for Interpreter<'_> {
    type Warp = Warp;

    fn warp(&self, first_thread: u32, live: u32) -> Warp {
        let code = &self.codes[self.kernel];
        let mut frame = Frame::new(self.kernel, code, live);
        let slots = code.params.iter().flat_map(|p| p.slot..p.slot + p.slots());
        for (slot, bits) in slots.zip(&self.arguments) {
            frame.set(slot, &[*bits; 32], 0, u32::MAX);
        }
        let who = Identity { first_thread, live, ..Identity::default() };
        Warp { who, groups: Groups::new(live), frames: vec![frame], free: Vec::new() }
    }

    fn run(&self, warp: &mut Warp, world: &mut World<'_>, budget: u32) -> Result<u32, Stop> {
        let mut cx = Context { it: self, world, scratch: Vec::new() };
        let mut left = budget;
        while left > 0 {
            let Some(index) = warp.groups.choose(|frame| warp.frames[frame].caller) else { break };
            warp.advance(index, &mut left, &mut cx)?;
        }
        Ok(budget - left)
    }

    fn identity<'w>(&self, warp: &'w mut Warp) -> &'w mut Identity {
        &mut warp.who
    }

    fn groups<'w>(&self, warp: &'w mut Warp) -> &'w mut Groups {
        &mut warp.groups
    }

    fn pass(&self, warp: &mut Warp, group: Group, arrival: Arrival) {
        let frame = &mut warp.frames[group.frame];
        let step = self.codes.get(frame.code).and_then(|c| c.steps.get(group.pc as usize));
        if let Some(Step { more: More::Target(operation), results, .. }) = step {
            return target::pass(operation, results, frame, group.mask, arrival);
        }
        if let Some((step, out)) = step.and_then(|s| s.results.first().map(|out| (s, out))) {
            let result = match step.op {
                Opcode::BarrierRedPopc => arrival.votes.into(),
                Opcode::BarrierRedAnd => u64::from(arrival.votes == arrival.count),
                _ => u64::from(arrival.votes != 0),
            };
            frame.set(out.slot, &[result; 32], 0, group.mask);
        }
    }

    fn place(&self, warp: &Warp, group: &Group) -> u32 {
        self.codes.get(warp.frames[group.frame].code).map_or(0, |code| code.first_place + group.pc)
    }

    fn describe(&self, place: u32) -> String {
        describe(self.module, &self.codes, place)
    }

    fn places(&self) -> usize {
        self.codes.last().map_or(0, |c| c.first_place as usize + c.steps.len())
    }
}

/// Why a group stops running.
enum Flow {
    Next,
    Stay,
    Goto(usize),
    Branch {
        taken: u32,
    },
    Switch(Vec<(usize, u32)>),
    Call(usize, u32),
    Return,
    Exit,
    Meet,
    Executed(u32),
    Barrier(u8),
    Cluster,
    Again,
    /// These lanes come back alone, the others go on.
    Part(u32),
}

impl Warp {
    /// Runs one group until it branches apart, waits, calls, or meets another.
    fn advance(&mut self, index: usize, left: &mut u32, cx: &mut Context<'_, '_>) -> Result<(), Stop> {
        let Group { mask, frame: frame_index, mut pc, .. } = self.groups.list[index];
        let several = self.groups.list.len() > 1;
        let limit = self.groups.limit(index);
        let mut frame = std::mem::take(&mut self.frames[frame_index]);
        let it = cx.it;
        let code = &it.codes[frame.code];
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
        self.groups.ran(done);
        cx.world.outcome.steps += u64::from(done);
        cx.world.outcome.lane_steps += u64::from(done) * u64::from(mask.count_ones());
        self.frames[frame_index] = frame;
        self.groups.list[index].pc = pc;
        let flow = flow?;
        if matches!(flow, Flow::Again) {
            *left = 0;
        }
        self.follow(index, flow, cx)
    }

    fn follow(&mut self, index: usize, flow: Flow, cx: &mut Context<'_, '_>) -> Result<(), Stop> {
        let group = self.groups.list[index];
        let code = &cx.it.codes[self.frames[group.frame].code];
        match flow {
            Flow::Next | Flow::Stay => {}
            Flow::Goto(target) => self.split(index, code, &[(target, group.mask)]),
            Flow::Branch { taken } => self.split(index, code, &[(0, taken), (1, group.mask & !taken)]),
            Flow::Switch(parts) => self.split(index, code, &parts),
            Flow::Call(callee, mask) => self.call(index, callee, mask, cx)?,
            Flow::Return => self.ret(index, cx),
            Flow::Exit => self.exit(index, cx),
            Flow::Meet => self.groups.list[index].state = State::Meeting,
            Flow::Executed(mask) => {
                let part = self.groups.part(index, mask);
                self.groups.list[part].pc += 1;
            }
            Flow::Barrier(number) => self.groups.list[index].state = State::Barrier(number),
            Flow::Cluster => self.groups.list[index].state = State::Cluster,
            Flow::Again => {}
            Flow::Part(mask) => {
                let part = self.groups.part(index, group.mask & !mask);
                self.groups.list[part].pc += 1;
            }
        }
        Ok(())
    }

    /// Sends lanes to different targets of the group's current step.
    fn split(&mut self, index: usize, code: &Code, parts: &[(usize, u32)]) {
        let group = self.groups.list[index];
        let step = code.steps.get(group.pc as usize);
        let mut goes = Vec::with_capacity(parts.len());
        for (target, mask) in parts.iter().filter(|(_, mask)| *mask != 0) {
            let Some(target) = step.and_then(|s| target_of(s, *target)) else { continue };
            self.frames[group.frame].copy(code, &target.copies, *mask);
            goes.push((target.pc, *mask));
        }
        self.groups.split(index, goes);
    }

    fn call(&mut self, index: usize, callee: usize, mask: u32, cx: &mut Context<'_, '_>) -> Result<(), Stop> {
        let group = self.groups.list[index];
        let caller = &self.frames[group.frame];
        let (code, inner) = (&cx.it.codes[caller.code], &cx.it.codes[callee]);
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
            let mark = |lane| cx.world.memory.local_mark(cx.world.team.slot, self.who.first_thread as usize + lane);
            frame.marks = Some(Box::new(std::array::from_fn(mark)));
        }
        for (number, size, align) in &inner.byval {
            let Some(param) = inner.params.get(*number) else { continue };
            for lane in lanes(mask) {
                let source = frame.read(inner, *param, 0, lane);
                let source = source.ok_or_else(|| Stop::lane("the address is poison", lane))? as u64;
                let copy = access::copy_argument(cx.world, &self.who, lane, param.ty, source, (*size, *align))?;
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
        let part = self.groups.part(index, mask);
        self.groups.list[part] = Group { mask, frame: at, pc: 0, state: State::Ready };
        Ok(())
    }

    fn drop_stack(&self, frame: usize, mask: u32, cx: &mut Context<'_, '_>) {
        if let Some(marks) = &self.frames[frame].marks {
            for lane in lanes(mask) {
                cx.world.memory.pop_local(cx.world.team.slot, self.who.first_thread as usize + lane, marks[lane]);
            }
        }
    }

    fn ret(&mut self, index: usize, cx: &mut Context<'_, '_>) {
        let group = self.groups.list[index];
        let Some((caller, pc)) = self.frames[group.frame].caller else { return self.exit(index, cx) };
        self.drop_stack(group.frame, group.mask, cx);
        let (code, outer) = (&cx.it.codes[self.frames[group.frame].code], &cx.it.codes[self.frames[caller].code]);
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
        self.groups.list[index] = Group { mask: group.mask, frame: caller, pc: pc + 1, state: State::Ready };
    }

    fn exit(&mut self, index: usize, cx: &mut Context<'_, '_>) {
        let group = self.groups.exit(index);
        self.who.live &= !group.mask;
        cx.world.team.exit(group.mask);
    }
}

fn target_of(step: &Step, index: usize) -> Option<&Target> {
    match &step.more {
        More::Targets(targets, _) => targets.get(index),
        _ => None,
    }
}

/// One step.
fn execute(at: &mut At<'_>, cx: &mut Context<'_, '_>, who: &mut Identity) -> Result<Flow, Stop> {
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
        | Shape::Alloca => access::execute(at, cx.world, who).map(|()| Flow::Next),
        Shape::IsSpace => is_space(at).map(|()| Flow::Next),
        Shape::Sreg => threads::special(at, cx.world, who).map(|()| Flow::Next),
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
            let callee = function_at(address, cx.it.module);
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
        _ => match &at.step.more {
            More::Target(operation) => {
                let done = target::execute(operation, at, who, cx.world, &mut cx.scratch)?;
                emulated(done, at.mask)
            }
            _ => compute::execute(at).map(|()| Flow::Next),
        },
    }
}

/// Where the lanes go after a target operation.
fn emulated(done: target::Done, mask: u32) -> Result<Flow, Stop> {
    use crate::ptx::Flow as Emulated;
    Ok(match done {
        target::Done::Part(active) => Flow::Part(active),
        target::Done::Flow(flow) => match flow {
            Emulated::Next => Flow::Next,
            Emulated::Meet => Flow::Meet,
            Emulated::Executed(part) if part == mask => Flow::Next,
            Emulated::Executed(part) => Flow::Executed(part),
            Emulated::Barrier(number) => Flow::Barrier(number),
            Emulated::Cluster => Flow::Cluster,
            Emulated::Again => Flow::Again,
            _ => return Err(Stop::new("control flow of target operations is not interpreted")),
        },
    })
}

fn code_of(cx: &Context<'_, '_>, callee: FuncId) -> Result<usize, Stop> {
    let code = cx.it.code_of.get(callee.as_u32() as usize).copied().flatten();
    code.ok_or_else(|| Stop::new(format!("@{} has no body", cx.it.module.funcs[callee].name)))
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
fn barrier(at: &mut At<'_>, cx: &mut Context<'_, '_>, who: &mut Identity) -> Result<Flow, Stop> {
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
    cx.world.team.arrive(number, count, at.mask, votes)?;
    Ok(if at.step.op == Opcode::BarrierArrive { Flow::Next } else { Flow::Barrier(number) })
}
