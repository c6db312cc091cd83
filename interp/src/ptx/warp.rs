//! One warp: steps of groups of lanes, calls and returns.

use super::at::At;
use super::operand::FRAME;
use super::program::{CallSite, Code, Flow, Passed, Step};
use super::read::Program;
use super::start::function_at;
use crate::machine::{
    Arrival, Engine, Group, Groups, Identity, LANES, Lanes, Link, MAX_DEPTH, State, Stop, World, lanes,
};
use crate::memory::{Access, Kind};

/// The slots of a function when it is entered.
pub struct Template {
    /// Registers, then constants.
    pub slots: Vec<Lanes>,
}

/// A program that is executed.
pub struct Emulator<'p> {
    /// Program.
    pub program: &'p Program,
    /// One for each function with a body.
    pub templates: Vec<Option<Template>>,
    /// Number of the kernel.
    pub kernel: usize,
}

/// The registers of one call, for all lanes that make it together.
#[derive(Default)]
struct Frame {
    function: usize,
    slots: Vec<Lanes>,
    caller: Link,
    live: u32,
    depth: u32,
    /// Heights of the lanes' stacks at the call.
    marks: Option<Box<Lanes>>,
}

/// A warp.
#[derive(Default)]
pub struct Warp {
    who: Identity,
    groups: Groups,
    frames: Vec<Frame>,
    free: Vec<usize>,
    started: bool,
}

impl Engine for Emulator<'_> {
    type Warp = Warp;

    fn warp(&self, first_thread: u32, live: u32) -> Warp {
        let slots = self.templates[self.kernel].as_ref().map_or_else(Vec::new, |t| t.slots.clone());
        let frame = Frame { function: self.kernel, slots, live, ..Frame::default() };
        let who = Identity { first_thread, live, ..Identity::default() };
        Warp { who, groups: Groups::new(live), frames: vec![frame], free: Vec::new(), started: false }
    }

    fn run(&self, warp: &mut Warp, world: &mut World<'_>, budget: u32) -> Result<u32, Stop> {
        if !warp.started {
            warp.started = true;
            let live = warp.who.live;
            if let (Some(code), Some(frame)) = (self.code(self.kernel), warp.frames.first_mut()) {
                enter(frame, code, live, &warp.who, world)?;
            }
        }
        let mut left = budget;
        while left > 0 {
            let Some(index) = warp.groups.choose(|frame| warp.frames[frame].caller) else { break };
            warp.advance(self, index, &mut left, world)?;
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
        let step = self.code(frame.function).and_then(|code| code.steps.get(group.pc as usize));
        if let Some(pass) = step.and_then(|step| step.operation.pass.as_ref()) {
            pass(&mut frame.slots, group.mask, arrival);
        }
    }

    fn place(&self, warp: &Warp, group: &Group) -> u32 {
        self.code(warp.frames[group.frame].function).map_or(0, |code| code.first_place + group.pc)
    }

    fn describe(&self, place: u32) -> String {
        self.program.describe(place)
    }

    fn places(&self) -> usize {
        self.program.places
    }
}

impl Emulator<'_> {
    fn code(&self, function: usize) -> Option<&Code> {
        self.program.functions.get(function)?.code.as_ref()
    }
}

/// Makes room for a function's variables on the stacks of the lanes that enter it.
fn enter(frame: &mut Frame, code: &Code, mask: u32, who: &Identity, world: &mut World<'_>) -> Result<(), Stop> {
    let (size, align) = code.frame;
    if size == 0 && !code.uses_stack {
        return Ok(());
    }
    let thread = |lane: usize| who.first_thread as usize + lane;
    let slot = world.team.slot;
    let marks = frame.marks.get_or_insert_with(|| Box::new([0; LANES]));
    for lane in lanes(mask) {
        marks[lane] = world.memory.local_mark(slot, thread(lane));
        let address = world.memory.push_local(slot, thread(lane), size, align);
        let address = address.ok_or_else(|| Stop::new("there is no such thread"))?;
        if let Some(base) = frame.slots.get_mut(FRAME as usize) {
            base[lane] = address;
        }
    }
    Ok(())
}

/// Lanes of a group for which a step is executed.
#[inline]
fn guarded(step: &Step, slots: &[Lanes], mask: u32) -> u32 {
    let Some((slot, negated)) = step.guard else { return mask };
    let held = slots[slot as usize].iter().enumerate().fold(0u32, |m, (lane, v)| m | (*v as u32 & 1) << lane);
    (if negated { !held } else { held }) & mask
}

impl Warp {
    /// Runs one group until it branches apart, waits, calls, or meets another.
    fn advance(
        &mut self,
        emulator: &Emulator<'_>,
        index: usize,
        left: &mut u32,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let Group { mask, frame: frame_index, mut pc, .. } = self.groups.list[index];
        let several = self.groups.list.len() > 1;
        let limit = self.groups.limit(index);
        let mut frame = std::mem::take(&mut self.frames[frame_index]);
        let Some(code) = emulator.code(frame.function) else { return Err(Stop::new("the function has no body")) };
        let before = *left;
        let mut active = mask;
        let flow = loop {
            if *left == 0 {
                active = mask;
                break Ok(None);
            }
            let Some(step) = code.steps.get(pc as usize) else { break Err(Stop::new("there is nothing to execute")) };
            *left -= 1;
            self.who.place = code.first_place + pc;
            active = guarded(step, &frame.slots, mask);
            let flow = if active == 0 {
                Ok(Flow::Next)
            } else {
                let mut at = At { slots: &mut frame.slots, mask: active, who: &mut self.who, world };
                (step.operation.execute)(&mut at)
            };
            match flow {
                Ok(Flow::Next) => {
                    pc += 1;
                    if pc >= limit {
                        break Ok(None);
                    }
                }
                Ok(Flow::Goto(target)) if active == mask => {
                    pc = target;
                    if several {
                        break Ok(None);
                    }
                }
                Ok(flow) => break Ok(Some(flow)),
                Err(stop) => break Err(stop),
            }
        };
        let done = before - *left;
        self.groups.ran(done);
        world.outcome.steps += u64::from(done);
        world.outcome.lane_steps += u64::from(done) * u64::from(mask.count_ones());
        self.frames[frame_index] = frame;
        self.groups.list[index].pc = pc;
        match flow? {
            None => Ok(()),
            Some(flow) => {
                if flow == Flow::Again {
                    *left = 0;
                }
                self.follow(emulator, index, active, flow, world)
            }
        }
    }

    /// Sends lanes where a step says. Those whose guard does not hold go to the next step.
    fn follow(
        &mut self,
        emulator: &Emulator<'_>,
        index: usize,
        active: u32,
        flow: Flow,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let group = self.groups.list[index];
        let parts = match &flow {
            Flow::Goto(target) => Some(vec![(*target, active)]),
            Flow::Switch(parts) => Some(parts.clone()),
            _ => None,
        };
        if let Some(mut parts) = parts {
            let named = parts.iter().fold(0, |all, (_, mask)| all | mask);
            parts.push((group.pc + 1, group.mask & !named));
            self.groups.split(index, parts);
            return Ok(());
        }
        let mut index = index;
        if active != group.mask {
            let part = self.groups.part(index, active);
            self.groups.list[index].pc += 1;
            index = part;
        }
        match flow {
            Flow::Call(callee, mask) => {
                let part = self.groups.part(index, mask);
                self.call(emulator, part, callee, world)?;
            }
            Flow::Return => self.ret(emulator, index, world)?,
            Flow::Exit => self.exit(index, world),
            Flow::Meet => self.groups.list[index].state = State::Meeting,
            Flow::Executed(mask) => {
                let part = self.groups.part(index, mask);
                self.groups.list[part].pc += 1;
            }
            Flow::Barrier(number) => self.groups.list[index].state = State::Barrier(number),
            Flow::Cluster => self.groups.list[index].state = State::Cluster,
            Flow::Next | Flow::Goto(_) | Flow::Switch(_) | Flow::Again => {}
        }
        Ok(())
    }

    fn call(
        &mut self,
        emulator: &Emulator<'_>,
        index: usize,
        callee: usize,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let group = self.groups.list[index];
        let function = emulator.program.functions.get(callee);
        let function = function.ok_or_else(|| Stop::new("what is called is no function"))?;
        let (Some(code), Some(Some(template))) = (&function.code, emulator.templates.get(callee)) else {
            return Err(Stop::new(format!("`{}` has no body", function.name)));
        };
        let caller = &self.frames[group.frame];
        let site = call_site(emulator, caller.function, group.pc)?;
        if caller.depth >= MAX_DEPTH {
            return Err(Stop::new(format!("more than {MAX_DEPTH} calls are within each other")));
        }
        if site.arguments.len() != function.parameters.len() || site.results.len() > function.returns.len() {
            return Err(Stop::new(format!("the call does not fit the parameters of `{}`", function.name)));
        }
        let depth = caller.depth + 1;
        let link = Some((group.frame, group.pc));
        // Lanes that made this call before are inside it, perhaps waiting for these.
        let same = |f: &Frame| f.caller == link && f.function == callee && f.live != 0 && f.live & group.mask == 0;
        let (at, mut frame) = match self.frames.iter().position(same) {
            Some(at) => {
                let mut frame = std::mem::take(&mut self.frames[at]);
                for (slot, initial) in frame.slots.iter_mut().zip(&template.slots) {
                    lanes(group.mask).for_each(|lane| slot[lane] = initial[lane]);
                }
                frame.live |= group.mask;
                (at, frame)
            }
            None => {
                let at = self.free.pop().unwrap_or_else(|| {
                    self.frames.push(Frame::default());
                    self.frames.len() - 1
                });
                let mut frame = std::mem::take(&mut self.frames[at]);
                frame.slots.clone_from(&template.slots);
                (frame.function, frame.live, frame.marks) = (callee, group.mask, None);
                (frame.caller, frame.depth) = (link, depth);
                (at, frame)
            }
        };
        enter(&mut frame, code, group.mask, &self.who, world)?;
        for (from, to) in site.arguments.iter().zip(&function.parameters) {
            pass(&self.frames[group.frame], *from, &mut frame, *to, group.mask, &self.who, world)?;
        }
        self.frames[at] = frame;
        self.groups.list[index] = Group { mask: group.mask, frame: at, pc: 0, state: State::Ready };
        Ok(())
    }

    fn ret(&mut self, emulator: &Emulator<'_>, index: usize, world: &mut World<'_>) -> Result<(), Stop> {
        let group = self.groups.list[index];
        let Some((caller, pc)) = self.frames[group.frame].caller else {
            self.exit(index, world);
            return Ok(());
        };
        let mut outer = std::mem::take(&mut self.frames[caller]);
        let frame = &mut self.frames[group.frame];
        if let Some(function) = emulator.program.functions.get(frame.function) {
            let site = call_site(emulator, outer.function, pc)?;
            for (from, to) in function.returns.iter().zip(&site.results) {
                pass(frame, *from, &mut outer, *to, group.mask, &self.who, world)?;
            }
        }
        if let Some(marks) = &frame.marks {
            for lane in lanes(group.mask) {
                world.memory.pop_local(world.team.slot, self.who.first_thread as usize + lane, marks[lane]);
            }
        }
        frame.live &= !group.mask;
        if frame.live == 0 {
            frame.caller = None;
            self.free.push(group.frame);
        }
        self.frames[caller] = outer;
        self.groups.list[index] = Group { mask: group.mask, frame: caller, pc: pc + 1, state: State::Ready };
        Ok(())
    }

    fn exit(&mut self, index: usize, world: &mut World<'_>) {
        let group = self.groups.exit(index);
        self.who.live &= !group.mask;
        world.team.exit(group.mask);
    }
}

fn call_site<'e>(emulator: &'e Emulator<'_>, function: usize, pc: u32) -> Result<&'e CallSite, Stop> {
    let step = emulator.code(function).and_then(|code| code.steps.get(pc as usize));
    step.and_then(|step| step.operation.call.as_deref()).ok_or_else(|| Stop::new("this is no call"))
}

/// Hands a value over from one frame to another.
fn pass(
    from: &Frame,
    what: Passed,
    to: &mut Frame,
    place: Passed,
    mask: u32,
    who: &Identity,
    world: &mut World<'_>,
) -> Result<(), Stop> {
    let address = |frame: &Frame, lane: usize, offset: u64| frame.slots[FRAME as usize][lane].wrapping_add(offset);
    let access =
        |address: u64, size: u64| Access { space: ptxc_ir::Space::Local, address, size: size as u32, align: 1 };
    for lane in lanes(mask) {
        let accessor = who.accessor(world.team, lane);
        let fault = |fault| Stop::fault(fault, lane);
        match (what, place) {
            (Passed::Bytes(a, size), Passed::Bytes(b, other)) => {
                // At a call it is not known how large a variable is; bounds are checked.
                let size = size.min(other);
                let (a, b) = (address(from, lane, a), address(to, lane, b));
                let thread = accessor.thread as usize;
                world.memory.copy_local(accessor.slot, thread, a, b, size).map_err(fault)?;
            }
            (Passed::Slot(a, bits), Passed::Bytes(b, size)) => {
                let mut value = u128::from(from.slots[a as usize][lane]);
                if bits > 64 {
                    value |= u128::from(from.slots[a as usize + 1][lane]) << 64;
                }
                let access = access(address(to, lane, b), size.min(16));
                world.memory.store(&access, value, false, &accessor, Kind::Plain).map_err(fault)?;
            }
            (Passed::Bytes(a, size), Passed::Slot(b, bits)) => {
                let access = access(address(from, lane, a), size.min(16));
                let loaded = world.memory.load(&access, &accessor, Kind::Plain).map_err(fault)?;
                to.slots[b as usize][lane] = loaded.bits as u64;
                if bits > 64 {
                    to.slots[b as usize + 1][lane] = (loaded.bits >> 64) as u64;
                }
            }
            (Passed::Slot(a, _), Passed::Slot(b, bits)) => {
                for part in 0..if bits > 64 { 2 } else { 1 } {
                    to.slots[b as usize + part][lane] = from.slots[a as usize + part][lane];
                }
            }
        }
    }
    Ok(())
}

/// The function that lanes call through an address; lanes with another address call later.
pub fn indirect(addresses: &Lanes, mask: u32) -> Result<Flow, Stop> {
    let first = lanes(mask).next().map_or(0, |lane| addresses[lane]);
    let callee = function_at(first).ok_or_else(|| Stop::new(format!("no function has the address {first:#x}")))?;
    let same = (0..LANES).filter(|lane| addresses[*lane] == first).fold(0, |m, lane| m | 1 << lane) & mask;
    Ok(Flow::Call(callee, same))
}
