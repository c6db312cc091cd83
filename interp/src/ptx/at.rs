//! What an operation works on: the registers of some lanes, and the world around the warp.

use super::operand::Slot;
use crate::machine::{Identity, LANES, Lanes, Stop, World, lanes, odd, uniform, write};

/// The lanes that execute a step.
pub struct At<'a, 'w> {
    /// Registers and constants of the function's frame, one slot each.
    pub slots: &'a mut [Lanes],
    /// Lanes that execute it.
    pub mask: u32,
    /// Who they are.
    pub who: &'a mut Identity,
    /// Memory, thread block, launch.
    pub world: &'a mut World<'w>,
}

impl At<'_, '_> {
    /// All lanes of a slot.
    #[inline]
    pub fn get(&self, slot: Slot) -> &Lanes {
        &self.slots[slot as usize]
    }

    /// Writes the lanes that execute the step.
    #[inline]
    pub fn set(&mut self, slot: Slot, values: &Lanes) {
        write(&mut self.slots[slot as usize], values, self.mask);
    }

    /// One lane of a slot.
    #[inline]
    pub fn lane(&self, slot: Slot, lane: usize) -> u64 {
        self.slots[slot as usize][lane]
    }

    /// Writes one lane of a slot.
    #[inline]
    pub fn put(&mut self, slot: Slot, lane: usize, value: u64) {
        self.slots[slot as usize][lane] = value;
    }

    /// One lane of a register of 128 bits.
    pub fn wide(&self, slot: Slot, lane: usize) -> u128 {
        u128::from(self.lane(slot, lane)) | u128::from(self.lane(slot + 1, lane)) << 64
    }

    /// Writes one lane of a register of 128 bits.
    pub fn put_wide(&mut self, slot: Slot, lane: usize, value: u128) {
        self.put(slot, lane, value as u64);
        self.put(slot + 1, lane, (value >> 64) as u64);
    }

    /// The lanes that execute the step.
    pub fn lanes(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        lanes(self.mask)
    }

    /// Lanes whose lowest bit is set, or is not where `flip`, among those that execute the step.
    #[inline]
    pub fn holds(&self, slot: Slot, flip: bool) -> u32 {
        let held = odd(self.get(slot));
        (if flip { !held } else { held }) & self.mask
    }

    /// The value that all lanes agree on.
    ///
    /// # Errors
    /// They do not.
    pub fn uniform(&self, slot: Slot, what: &str) -> Result<u64, Stop> {
        uniform(self.get(slot), self.mask, what)
    }

    /// Computes on all lanes, which must be possible whatever they hold.
    #[inline]
    pub fn map1(&mut self, d: Slot, a: Slot, f: impl Fn(u64) -> u64) {
        let x = self.get(a);
        let mut r: Lanes = [0; LANES];
        for i in 0..LANES {
            r[i] = f(x[i]);
        }
        self.set(d, &r);
    }

    /// As [`At::map1`].
    #[inline]
    pub fn map2(&mut self, d: Slot, a: Slot, b: Slot, f: impl Fn(u64, u64) -> u64) {
        let (x, y) = (self.get(a), self.get(b));
        let mut r: Lanes = [0; LANES];
        for i in 0..LANES {
            r[i] = f(x[i], y[i]);
        }
        self.set(d, &r);
    }

    /// As [`At::map1`].
    #[inline]
    pub fn map3(&mut self, d: Slot, a: Slot, b: Slot, c: Slot, f: impl Fn(u64, u64, u64) -> u64) {
        let (x, y, z) = (self.get(a), self.get(b), self.get(c));
        let mut r: Lanes = [0; LANES];
        for i in 0..LANES {
            r[i] = f(x[i], y[i], z[i]);
        }
        self.set(d, &r);
    }

    /// Computes lane by lane, only where the step is executed: for what takes long.
    #[inline]
    pub fn each(&mut self, d: Slot, f: impl Fn(&Self, usize) -> u64) {
        for lane in lanes(self.mask) {
            let value = f(self, lane);
            self.put(d, lane, value);
        }
    }
}
