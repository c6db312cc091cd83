//! One warp: its groups of lanes take steps, part and meet, call and return.

use super::{
    Arrival, Crossing, Engine, Flow, Frame, Frames, Group, Groups, Identity, LANES, MAX_DEPTH, State, Stop, World,
    lanes,
};

/// A warp of a program with values `V`.
#[derive(Clone, Default, Debug)]
pub struct Warp<V> {
    /// Who its lanes are.
    pub who: Identity,
    /// Where they are.
    pub groups: Groups,
    frames: Frames<V>,
    started: bool,
}

impl<V: Default> Warp<V> {
    /// A warp at the start of the kernel. Lane 0 is the thread `first_thread` of its block; `live` are the lanes that there are.
    pub fn new(engine: &impl Engine<Values = V>, first_thread: u32, live: u32) -> Warp<V> {
        let mut frame = Frame { function: engine.kernel(), live, ..Frame::default() };
        engine.prepare(frame.function, &mut frame.values);
        engine.begin(&mut frame.values);
        let who = Identity { first_thread, live, ..Identity::default() };
        Warp { who, groups: Groups::new(live), frames: Frames::new(frame), started: false }
    }

    /// Runs until `budget` steps are done or nothing in the warp can run. Gives the steps done.
    ///
    /// # Errors
    /// What the program does wrong.
    pub fn run<E: Engine<Values = V>>(&mut self, engine: &E, world: &mut World<'_>, budget: u32) -> Result<u32, Stop> {
        if !self.started {
            self.started = true;
            self.reserve(engine, 0, self.who.live, world)?;
        }
        let mut left = budget;
        while left > 0 {
            let Some(index) = self.groups.choose(|frame| self.frames.get(frame).caller) else { break };
            self.advance(engine, index, &mut left, world)?;
        }
        Ok(budget - left)
    }

    /// Number of the place a group is at.
    pub fn place(&self, engine: &impl Engine<Values = V>, group: &Group) -> u32 {
        engine.code(self.frames.get(group.frame).function).map_or(0, |code| engine.first_place(code) + group.pc)
    }

    /// Writes what a barrier gives to the lanes of a group that waits at one, before it goes on.
    pub fn pass(&mut self, engine: &impl Engine<Values = V>, group: Group, arrival: Arrival) {
        let frame = self.frames.get_mut(group.frame);
        if let Ok(code) = engine.code(frame.function) {
            engine.pass((code, group.pc), &mut frame.values, group.mask, arrival);
        }
    }

    /// Runs one group until it branches apart, waits, calls, or meets another.
    fn advance<E: Engine<Values = V>>(
        &mut self,
        engine: &E,
        index: usize,
        left: &mut u32,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let Group { mask, frame, mut pc, .. } = self.groups.list[index];
        let several = self.groups.list.len() > 1;
        let limit = self.groups.limit(index);
        let function = self.frames.get(frame).function;
        let code = engine.code(function)?;
        let first_place = engine.first_place(code);
        let mut values = std::mem::take(&mut self.frames.get_mut(frame).values);
        let (before, looks) = (*left, world.memory.looks());
        let mut active = mask;
        let flow = loop {
            if *left == 0 {
                break Ok(None);
            }
            *left -= 1;
            self.who.place = first_place + pc;
            active = mask;
            match engine.step((code, pc), &mut values, &mut active, &mut self.who, world) {
                Ok(Flow::Next) => {
                    pc += 1;
                    if pc >= limit {
                        break Ok(None);
                    }
                }
                Ok(Flow::Goto(target)) if active == mask => {
                    pc = engine.jump((code, pc), target, &mut values, mask);
                    if several {
                        break Ok(None);
                    }
                }
                Ok(flow) => break Ok(Some(flow)),
                Err(stop) => break Err(stop),
            }
        };
        let done = before - *left;
        if world.memory.looks() != looks {
            self.groups.looked(done);
        }
        world.outcome.steps += u64::from(done);
        world.outcome.lane_steps += u64::from(done) * u64::from(mask.count_ones());
        self.frames.get_mut(frame).values = values;
        self.groups.list[index].pc = pc;
        match flow? {
            None => Ok(()),
            Some(flow) => self.follow(engine, index, active, flow, world),
        }
    }

    /// Sends lanes where a step says. Those that have not executed it go to the next step.
    fn follow<E: Engine<Values = V>>(
        &mut self,
        engine: &E,
        index: usize,
        active: u32,
        flow: Flow,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        match &flow {
            Flow::Goto(target) => return self.split(engine, index, &[(*target, active)]),
            Flow::Switch(parts) => return self.split(engine, index, parts),
            _ => {}
        }
        let mut index = index;
        if active != self.groups.list[index].mask {
            let part = self.groups.part(index, active);
            self.groups.list[index].pc += 1;
            index = part;
        }
        match flow {
            Flow::Call(callee, mask) => {
                let part = self.groups.part(index, mask);
                self.call(engine, part, callee, world)?;
            }
            Flow::Return => self.ret(engine, index, world)?,
            Flow::Exit => self.exit(index, world),
            Flow::Meet => self.groups.list[index].state = State::Meeting,
            Flow::Executed(mask) => {
                let part = self.groups.part(index, mask);
                self.groups.list[part].pc += 1;
            }
            Flow::Barrier(number) => self.groups.list[index].state = State::Barrier(number),
            Flow::Cluster => self.groups.list[index].state = State::Cluster,
            Flow::Next | Flow::Goto(_) | Flow::Switch(_) => {}
        }
        Ok(())
    }

    /// Sends lanes of a group to targets of its step, those that are not named to the next step.
    fn split<E: Engine<Values = V>>(&mut self, engine: &E, index: usize, targets: &[(u32, u32)]) -> Result<(), Stop> {
        let group = self.groups.list[index];
        let frame = self.frames.get_mut(group.frame);
        let code = engine.code(frame.function)?;
        let mut rest = group.mask;
        let mut parts = Vec::with_capacity(targets.len() + 1);
        for (target, mask) in targets.iter().filter(|(_, mask)| *mask != 0) {
            parts.push((engine.jump((code, group.pc), *target, &mut frame.values, *mask), *mask));
            rest &= !mask;
        }
        parts.push((group.pc + 1, rest));
        self.groups.split(index, parts);
        Ok(())
    }

    /// Makes room on the stacks of lanes that enter a frame.
    fn reserve<E: Engine<Values = V>>(
        &mut self,
        engine: &E,
        frame: usize,
        mask: u32,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let frame = self.frames.get_mut(frame);
        let code = engine.code(frame.function)?;
        if !engine.takes_stack(code) {
            return Ok(());
        }
        let marks = frame.marks.get_or_insert_with(|| Box::new([0; LANES]));
        for lane in lanes(mask) {
            marks[lane] = world.memory.local_mark(world.team.slot, self.who.first_thread as usize + lane);
        }
        engine.reserve(code, &mut frame.values, mask, &self.who, world)
    }

    /// A group enters a function. Lanes that have made this call before are inside it, perhaps waiting for these.
    fn call<E: Engine<Values = V>>(
        &mut self,
        engine: &E,
        index: usize,
        callee: usize,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let Group { mask, frame: outer, pc: site, .. } = self.groups.list[index];
        engine.code(callee)?;
        let depth = self.frames.get(outer).depth + 1;
        if depth > MAX_DEPTH {
            return Err(Stop::new(format!("more than {MAX_DEPTH} calls are within each other")));
        }
        let link = Some((outer, site));
        // A group that is alone has nobody to join.
        let known = if self.groups.list.len() > 1 { self.frames.inside(link, callee) } else { None };
        let inner = match known {
            Some(inner) => {
                engine.join(callee, &mut self.frames.get_mut(inner).values, mask);
                inner
            }
            None => {
                let inner = self.frames.open(link, callee, depth);
                engine.prepare(callee, &mut self.frames.get_mut(inner).values);
                inner
            }
        };
        self.frames.get_mut(inner).live |= mask;
        self.reserve(engine, inner, mask, world)?;
        self.cross((outer, site), inner, mask, |crossing| engine.arguments(crossing, world))?;
        self.groups.list[index] = Group { mask, frame: inner, pc: 0, state: State::Ready };
        Ok(())
    }

    /// A group goes back behind the call it is inside; out of the kernel, it exits.
    fn ret<E: Engine<Values = V>>(&mut self, engine: &E, index: usize, world: &mut World<'_>) -> Result<(), Stop> {
        let Group { mask, frame: inner, pc, .. } = self.groups.list[index];
        let Some((outer, site)) = self.frames.get(inner).caller else {
            self.exit(index, world);
            return Ok(());
        };
        self.cross((outer, site), inner, mask, |crossing| engine.results(crossing, pc, world))?;
        if let Some(marks) = &self.frames.get(inner).marks {
            for lane in lanes(mask) {
                let thread = self.who.first_thread as usize + lane;
                world.memory.pop_local(world.team.slot, thread, marks[lane]);
            }
        }
        self.frames.leave(inner, mask);
        self.groups.list[index] = Group { mask, frame: outer, pc: site + 1, state: State::Ready };
        Ok(())
    }

    /// Works on the values on both sides of a call.
    fn cross(
        &mut self,
        (outer, site): (usize, u32),
        inner: usize,
        mask: u32,
        work: impl FnOnce(&mut Crossing<'_, V>) -> Result<(), Stop>,
    ) -> Result<(), Stop> {
        let mut outside = std::mem::take(&mut self.frames.get_mut(outer).values);
        let caller = self.frames.get(outer).function;
        let Frame { function: callee, values, .. } = self.frames.get_mut(inner);
        let result = work(&mut Crossing {
            caller,
            site,
            outer: &mut outside,
            callee: *callee,
            inner: values,
            mask,
            who: &self.who,
        });
        self.frames.get_mut(outer).values = outside;
        result
    }

    fn exit(&mut self, index: usize, world: &mut World<'_>) {
        let group = self.groups.exit(index);
        self.who.live &= !group.mask;
        world.team.exit(group.mask);
    }
}
