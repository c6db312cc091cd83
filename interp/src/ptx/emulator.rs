//! What the machine asks about PTX: steps, and what crosses a call.

use super::at::At;
use super::operand::FRAME;
use super::program::{CallSite, Code, Function, Passed};
use super::read::Program;
use crate::machine::{Arrival, Crossing, Engine, Flow, Identity, Lanes, Stop, World, lanes, odd};
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

impl Engine for Emulator<'_> {
    type Values = Vec<Lanes>;
    type Code = Code;

    fn kernel(&self) -> usize {
        self.kernel
    }

    fn code(&self, function: usize) -> Result<&Code, Stop> {
        let function = self.function(function)?;
        function.code.as_ref().ok_or_else(|| Stop::new(format!("`{}` has no body", function.name)))
    }

    fn first_place(&self, code: &Code) -> u32 {
        code.first_place
    }

    fn takes_stack(&self, code: &Code) -> bool {
        code.frame.0 != 0 || code.uses_stack
    }

    fn prepare(&self, function: usize, slots: &mut Vec<Lanes>) {
        slots.clear();
        slots.extend_from_slice(self.template(function));
    }

    fn join(&self, function: usize, slots: &mut Vec<Lanes>, mask: u32) {
        for (slot, initial) in slots.iter_mut().zip(self.template(function)) {
            lanes(mask).for_each(|lane| slot[lane] = initial[lane]);
        }
    }

    fn reserve(
        &self,
        code: &Code,
        slots: &mut Vec<Lanes>,
        mask: u32,
        who: &Identity,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let (size, align) = code.frame;
        for lane in lanes(mask) {
            let address = world.memory.push_local(world.team.slot, who.first_thread as usize + lane, size, align);
            let address = address.ok_or_else(|| Stop::new("there is no such thread"))?;
            if let Some(base) = slots.get_mut(FRAME as usize) {
                base[lane] = address;
            }
        }
        Ok(())
    }

    fn arguments(&self, crossing: &mut Crossing<'_, Vec<Lanes>>, world: &mut World<'_>) -> Result<(), Stop> {
        let (site, function) = (self.call_site(crossing)?, self.function(crossing.callee)?);
        if site.arguments.len() != function.parameters.len() || site.results.len() > function.returns.len() {
            return Err(Stop::new(format!("the call does not fit the parameters of `{}`", function.name)));
        }
        let Crossing { outer, inner, mask, who, .. } = crossing;
        for (from, to) in site.arguments.iter().zip(&function.parameters) {
            hand_over((outer, *from), (inner, *to), *mask, who, world)?;
        }
        Ok(())
    }

    fn results(
        &self,
        crossing: &mut Crossing<'_, Vec<Lanes>>,
        _position: u32,
        world: &mut World<'_>,
    ) -> Result<(), Stop> {
        let (site, function) = (self.call_site(crossing)?, self.function(crossing.callee)?);
        let Crossing { outer, inner, mask, who, .. } = crossing;
        for (from, to) in function.returns.iter().zip(&site.results) {
            hand_over((inner, *from), (outer, *to), *mask, who, world)?;
        }
        Ok(())
    }

    #[inline]
    fn step(
        &self,
        (code, pc): (&Code, u32),
        slots: &mut Vec<Lanes>,
        active: &mut u32,
        who: &mut Identity,
        world: &mut World<'_>,
    ) -> Result<Flow, Stop> {
        let step = code.steps.get(pc as usize).ok_or_else(|| Stop::new("there is nothing to execute"))?;
        if let Some((slot, negated)) = step.guard {
            let held = odd(&slots[slot as usize]);
            *active &= if negated { !held } else { held };
            if *active == 0 {
                return Ok(Flow::Next);
            }
        }
        (step.operation.execute)(&mut At { slots, mask: *active, who, world })
    }

    #[inline]
    fn jump(&self, _at: (&Code, u32), target: u32, _slots: &mut Vec<Lanes>, _mask: u32) -> u32 {
        target
    }

    fn pass(&self, (code, pc): (&Code, u32), slots: &mut Vec<Lanes>, mask: u32, arrival: Arrival) {
        if let Some(pass) = code.steps.get(pc as usize).and_then(|step| step.operation.pass.as_ref()) {
            pass(slots, mask, arrival);
        }
    }

    fn describe(&self, place: u32) -> String {
        self.program.describe(place)
    }

    fn places(&self) -> usize {
        self.program.places
    }
}

impl Emulator<'_> {
    fn function(&self, number: usize) -> Result<&Function, Stop> {
        self.program.functions.get(number).ok_or_else(|| Stop::new("what is called is no function"))
    }

    fn template(&self, function: usize) -> &[Lanes] {
        self.templates.get(function).and_then(Option::as_ref).map_or(&[], |template| &template.slots)
    }

    fn call_site(&self, crossing: &Crossing<'_, Vec<Lanes>>) -> Result<&CallSite, Stop> {
        let step = self.code(crossing.caller)?.steps.get(crossing.site as usize);
        step.and_then(|step| step.operation.call.as_deref()).ok_or_else(|| Stop::new("this is no call"))
    }
}

/// Hands a value over from the slots of one function to those of another.
fn hand_over(
    (from, what): (&[Lanes], Passed),
    (to, place): (&mut [Lanes], Passed),
    mask: u32,
    who: &Identity,
    world: &mut World<'_>,
) -> Result<(), Stop> {
    let address = |slots: &[Lanes], lane: usize, offset: u64| slots[FRAME as usize][lane].wrapping_add(offset);
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
                let mut value = u128::from(from[a as usize][lane]);
                if bits > 64 {
                    value |= u128::from(from[a as usize + 1][lane]) << 64;
                }
                let access = access(address(to, lane, b), size.min(16));
                world.memory.store(&access, value, false, &accessor, Kind::Plain).map_err(fault)?;
            }
            (Passed::Bytes(a, size), Passed::Slot(b, bits)) => {
                let access = access(address(from, lane, a), size.min(16));
                let loaded = world.memory.load(&access, &accessor, Kind::Plain).map_err(fault)?;
                to[b as usize][lane] = loaded.bits as u64;
                if bits > 64 {
                    to[b as usize + 1][lane] = (loaded.bits >> 64) as u64;
                }
            }
            (Passed::Slot(a, _), Passed::Slot(b, bits)) => {
                for part in 0..if bits > 64 { 2 } else { 1 } {
                    to[b as usize + part][lane] = from[a as usize + part][lane];
                }
            }
        }
    }
    Ok(())
}
