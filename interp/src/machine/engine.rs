//! What a language tells the machine about its programs.

use super::{Arrival, Flow, Identity, Lanes, Stop, World};

/// A call as some lanes enter or leave it: the values on both sides of it.
pub struct Crossing<'a, V> {
    /// Number of the function that calls.
    pub caller: usize,
    /// Position of the call in it.
    pub site: u32,
    /// The caller's values.
    pub outer: &'a mut V,
    /// Number of the function that is called.
    pub callee: usize,
    /// Its values.
    pub inner: &'a mut V,
    /// Lanes that cross.
    pub mask: u32,
    /// Who they are.
    pub who: &'a Identity,
}

/// What executes steps of one language. Functions are numbered, their code is an array of steps.
pub trait Engine {
    /// What a call computes with: the values of all lanes that make it.
    type Values: Default;
    /// The code of a function.
    type Code;

    /// Number of the kernel.
    fn kernel(&self) -> usize;

    /// The code of a function.
    ///
    /// # Errors
    /// It has none.
    fn code(&self, function: usize) -> Result<&Self::Code, Stop>;

    /// Number of the place of a function's first step; those of the others follow.
    fn first_place(&self, code: &Self::Code) -> u32;

    /// Calls of the function take from the stacks of their lanes.
    fn takes_stack(&self, code: &Self::Code) -> bool;

    /// Makes the values of a call that begins, whatever they were before.
    fn prepare(&self, function: usize, values: &mut Self::Values);

    /// Makes the values of lanes that join others inside a call.
    fn join(&self, _function: usize, _values: &mut Self::Values, _mask: u32) {}

    /// Hands the arguments of the launch to the kernel.
    fn begin(&self, _values: &mut Self::Values) {}

    /// Takes what a call needs from the stacks of lanes that enter it.
    ///
    /// # Errors
    /// There is no such thread.
    fn reserve(
        &self,
        _code: &Self::Code,
        _values: &mut Self::Values,
        _mask: u32,
        _who: &Identity,
        _world: &mut World<'_>,
    ) -> Result<(), Stop> {
        Ok(())
    }

    /// Copies arguments from the caller to the function called.
    ///
    /// # Errors
    /// The call does not fit the function, or memory that is read is not there.
    fn arguments(&self, crossing: &mut Crossing<'_, Self::Values>, world: &mut World<'_>) -> Result<(), Stop>;

    /// Copies results from the function called, at the position of its return, to the caller.
    ///
    /// # Errors
    /// The call does not fit the function.
    fn results(
        &self,
        crossing: &mut Crossing<'_, Self::Values>,
        position: u32,
        world: &mut World<'_>,
    ) -> Result<(), Stop>;

    /// Executes the step at a position for the lanes of `active`, which becomes those of them that do execute it; the
    /// others go to the next step.
    ///
    /// # Errors
    /// What the program does wrong.
    fn step(
        &self,
        at: (&Self::Code, u32),
        values: &mut Self::Values,
        active: &mut u32,
        who: &mut Identity,
        world: &mut World<'_>,
    ) -> Result<Flow, Stop>;

    /// Takes lanes to a target of the step at a position; gives the target's position.
    fn jump(&self, at: (&Self::Code, u32), target: u32, values: &mut Self::Values, mask: u32) -> u32;

    /// Writes what a complete barrier gives to lanes that wait at the step at a position.
    fn pass(&self, at: (&Self::Code, u32), values: &mut Self::Values, mask: u32, arrival: Arrival);

    /// Names a place: function, instruction, source location.
    fn describe(&self, place: u32) -> String;

    /// How many places there are.
    fn places(&self) -> usize;
}

/// Writes the lanes of a mask.
#[inline]
pub fn write(to: &mut Lanes, values: &Lanes, mask: u32) {
    if mask == u32::MAX {
        *to = *values;
    } else {
        for lane in super::lanes(mask) {
            to[lane] = values[lane];
        }
    }
}

/// Lanes whose value is odd.
#[inline]
pub fn odd(values: &Lanes) -> u32 {
    values.iter().enumerate().fold(0u32, |m, (lane, value)| m | (*value as u32 & 1) << lane)
}
