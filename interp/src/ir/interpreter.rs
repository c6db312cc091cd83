//! What the machine asks about the IR: what a step does to its lanes, and what crosses a call.

use ptxc_ir::{Flags, FuncId, Module, Opcode, Shape};

use super::compute::{self, At};
use super::frame::Frame;
use super::program::{Code, LANES, More, Step, Target};
use super::{access, describe, target, threads};
use crate::machine::{Arrival, Crossing, Engine, Flow, Identity, Stop, World, call_through, lanes, odd, uniform};

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

impl Engine for Interpreter<'_> {
    type Values = Frame;
    type Code = Code;

    fn kernel(&self) -> usize {
        self.kernel
    }

    fn code(&self, function: usize) -> Result<&Code, Stop> {
        self.codes.get(function).ok_or_else(|| Stop::new("the function has no body"))
    }

    fn first_place(&self, code: &Code) -> u32 {
        code.first_place
    }

    fn takes_stack(&self, code: &Code) -> bool {
        code.has_stack
    }

    fn prepare(&self, function: usize, frame: &mut Frame) {
        if let Some(code) = self.codes.get(function) {
            frame.clear(code);
        }
    }

    fn begin(&self, frame: &mut Frame) {
        let params = self.codes.get(self.kernel).map_or(&[][..], |code| &code.params);
        let slots = params.iter().flat_map(|p| p.slot..p.slot + p.slots());
        for (slot, bits) in slots.zip(&self.arguments) {
            frame.set(slot, &[*bits; LANES], 0, u32::MAX);
        }
    }

    fn arguments(&self, crossing: &mut Crossing<'_, Frame>, world: &mut World<'_>) -> Result<(), Stop> {
        let Crossing { mask, who, .. } = *crossing;
        let (code, inner) = (self.code(crossing.caller)?, self.code(crossing.callee)?);
        let Some(step) = code.steps.get(crossing.site as usize) else { return Ok(()) };
        let first = usize::from(step.op == Opcode::CallIndirect);
        let args = &step.args[first.min(step.args.len())..];
        if args.len() != inner.params.len() || args.iter().zip(&inner.params).any(|(a, p)| a.slots() != p.slots()) {
            return Err(Stop::new("the call does not fit the signature of the function called"));
        }
        let frame = &mut *crossing.inner;
        for (arg, param) in args.iter().zip(&inner.params) {
            for i in 0..param.slots() {
                let (values, poison) = crossing.outer.slot(code, arg.slot + i);
                frame.set(param.slot + i, values, poison, mask);
            }
        }
        for (number, size, align) in &inner.byval {
            let Some(param) = inner.params.get(*number) else { continue };
            for lane in lanes(mask) {
                let source = frame.read(inner, *param, 0, lane);
                let source = source.ok_or_else(|| Stop::lane("the address is poison", lane))? as u64;
                let copy = access::copy_argument(world, who, lane, param.ty, source, (*size, *align))?;
                frame.write(*param, 0, lane, Some(copy.into()));
            }
        }
        Ok(())
    }

    fn results(&self, crossing: &mut Crossing<'_, Frame>, position: u32, _world: &mut World<'_>) -> Result<(), Stop> {
        let (code, outer) = (self.code(crossing.callee)?, self.code(crossing.caller)?);
        let steps = (code.steps.get(position as usize), outer.steps.get(crossing.site as usize));
        let (Some(step), Some(call)) = steps else { return Ok(()) };
        for (from, to) in step.args.iter().zip(&call.results) {
            for i in 0..to.slots() {
                let (values, poison) = crossing.inner.slot(code, from.slot + i);
                crossing.outer.set(to.slot + i, values, poison, crossing.mask);
            }
        }
        Ok(())
    }

    #[inline]
    fn step(
        &self,
        (code, pc): (&Code, u32),
        frame: &mut Frame,
        active: &mut u32,
        who: &mut Identity,
        world: &mut World<'_>,
    ) -> Result<Flow, Stop> {
        let step = code.steps.get(pc as usize).ok_or_else(|| Stop::new("there is nothing to execute"))?;
        let mut at = At { step, code, frame, mask: *active };
        match step.fast {
            Some(kind) => compute::fast(kind, &mut at).map(|()| Flow::Next),
            None => self.execute(&mut at, active, who, world),
        }
    }

    fn jump(&self, (code, pc): (&Code, u32), target: u32, frame: &mut Frame, mask: u32) -> u32 {
        match code.steps.get(pc as usize).and_then(|step| target_of(step, target)) {
            Some(target) => {
                frame.copy(code, &target.copies, mask);
                target.pc
            }
            None => pc,
        }
    }

    fn pass(&self, (code, pc): (&Code, u32), frame: &mut Frame, mask: u32, arrival: Arrival) {
        let Some(step) = code.steps.get(pc as usize) else { return };
        if let More::Target(operation) = &step.more {
            target::pass(operation, &step.results, frame, mask, arrival);
        } else if let Some(out) = step.results.first() {
            let result = match step.op {
                Opcode::BarrierRedPopc => arrival.votes.into(),
                Opcode::BarrierRedAnd => u64::from(arrival.votes == arrival.count),
                _ => u64::from(arrival.votes != 0),
            };
            frame.set(out.slot, &[result; LANES], 0, mask);
        }
    }

    fn describe(&self, place: u32) -> String {
        describe(self.module, &self.codes, place)
    }

    fn places(&self) -> usize {
        self.codes.last().map_or(0, |c| c.first_place as usize + c.steps.len())
    }
}

fn target_of(step: &Step, index: u32) -> Option<&Target> {
    match &step.more {
        More::Targets(targets, _) => targets.get(index as usize),
        _ => None,
    }
}

impl Interpreter<'_> {
    /// A step without a tight loop.
    fn execute(
        &self,
        at: &mut At<'_>,
        active: &mut u32,
        who: &mut Identity,
        world: &mut World<'_>,
    ) -> Result<Flow, Stop> {
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
            | Shape::Alloca => access::execute(at, world, who).map(|()| Flow::Next),
            Shape::IsSpace => is_space(at).map(|()| Flow::Next),
            Shape::Sreg => threads::special(at, world, who).map(|()| Flow::Next),
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
                Ok(Flow::Call(self.code_of(callee)?, at.mask))
            }
            Shape::CallIndirect => {
                let addresses = access::all_lanes(at, at.arg(0)?, "the address of the function")?;
                let (number, same) = call_through(&addresses, at.mask)?;
                let callee = u32::try_from(number).ok().filter(|_| number < self.code_of.len()).map(FuncId::from_u32);
                let callee = callee.ok_or_else(|| Stop::new("what is called is no function"))?;
                Ok(Flow::Call(self.code_of(callee)?, same))
            }
            Shape::Predicate => {
                let values = access::all_lanes(at, at.arg(0)?, "what is assumed")?;
                match lanes(at.mask & !odd(&values)).next() {
                    Some(lane) => Err(Stop::lane("what is assumed does not hold", lane)),
                    None => Ok(Flow::Next),
                }
            }
            Shape::BarrierSync | Shape::BarrierReduce => barrier(at, world, who),
            Shape::WarpMask
            | Shape::Shuffle4
            | Shape::Vote
            | Shape::Ballot
            | Shape::MatchAny
            | Shape::MatchAll
            | Shape::ActiveMask
            | Shape::Redux
            | Shape::Elect => threads::execute(at, who),
            _ => match &at.step.more {
                More::Target(operation) => target::execute(operation, at, active, who, world),
                _ => compute::execute(at).map(|()| Flow::Next),
            },
        }
    }

    /// Number of a function's code.
    fn code_of(&self, callee: FuncId) -> Result<usize, Stop> {
        let code = self.code_of.get(callee.as_u32() as usize).copied().flatten();
        code.ok_or_else(|| Stop::new(format!("@{} has no body", self.module.funcs[callee].name)))
    }
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
    let taken = odd(&values) & at.mask;
    if taken == at.mask {
        Ok(Flow::Goto(0))
    } else if taken == 0 {
        Ok(Flow::Goto(1))
    } else if at.step.flags.contains(Flags::UNIFORM) {
        Err(Stop::new("the branch is said to be uniform and is not"))
    } else {
        Ok(Flow::Switch(vec![(0, taken), (1, at.mask & !taken)]))
    }
}

fn switch(at: &mut At<'_>) -> Result<Flow, Stop> {
    let More::Targets(_, cases) = &at.step.more else { return Err(Stop::new("`switch` without targets")) };
    let value = at.arg(0)?;
    Flow::each(at.mask, |lane| {
        let bits = at.read(value, 0, lane).ok_or_else(|| Stop::lane("the value of the switch is poison", lane))?;
        Ok(cases.iter().position(|c| *c == bits).map_or(0, |i| i as u32 + 1))
    })
}

/// PTX ISA 9.7.13.1. `aligned`: all threads of the warp that have not exited execute it together.
fn barrier(at: &mut At<'_>, world: &mut World<'_>, who: &mut Identity) -> Result<Flow, Stop> {
    if at.step.flags.contains(Flags::ALIGNED) && at.mask != who.live {
        return Ok(Flow::Meet);
    }
    let reduces = at.step.op.shape() == Shape::BarrierReduce;
    let operands = at.step.args.len() - usize::from(reduces);
    let operand = |index: usize, what: &str| uniform(&access::all_lanes(at, at.arg(index)?, what)?, at.mask, what);
    let number = operand(0, "the number of the barrier")?;
    let count = if operands > 1 { Some(operand(1, "the count of the barrier")? as u32) } else { None };
    let votes = if reduces { odd(&access::all_lanes(at, at.arg(operands)?, "the predicate")?) & at.mask } else { 0 };
    let number = u8::try_from(number).ok().filter(|n| *n < 16);
    let number = number.ok_or_else(|| Stop::new("the number of the barrier is not below 16"))?;
    world.team.arrive(number, count, at.mask, votes)?;
    Ok(if at.step.op == Opcode::BarrierArrive { Flow::Next } else { Flow::Barrier(number) })
}
