//! The values of one call, for all lanes that make it together.

use super::program::{CONSTANT, Code, LANES, Lanes, Val};
use crate::machine::write;

/// The values of one call. Slots are written before they are read, as definitions dominate uses.
#[derive(Clone, Default, Debug)]
pub struct Frame {
    /// Slots.
    pub slots: Vec<Lanes>,
    /// Lanes of each slot that are poison.
    pub poison: Vec<u32>,
    /// Registers of the target operation that is executed.
    pub scratch: Vec<Lanes>,
}

impl Frame {
    /// Makes room for the values of a function.
    pub fn clear(&mut self, code: &Code) {
        self.slots.clear();
        self.slots.resize(code.slots, [0; LANES]);
        self.poison.clear();
        self.poison.resize(code.slots, 0);
    }

    /// A slot's lanes and which of them are poison.
    #[inline]
    pub fn slot<'f>(&'f self, code: &'f Code, slot: u32) -> (&'f Lanes, u32) {
        if slot & CONSTANT != 0 {
            let (lanes, poison) = &code.constants[(slot & !CONSTANT) as usize];
            (lanes, *poison)
        } else {
            (&self.slots[slot as usize], self.poison[slot as usize])
        }
    }

    /// Writes the lanes of `mask`.
    #[inline]
    pub fn set(&mut self, slot: u32, values: &Lanes, poison: u32, mask: u32) {
        write(&mut self.slots[slot as usize], values, mask);
        let old = &mut self.poison[slot as usize];
        *old = (*old & !mask) | (poison & mask);
    }

    /// One lane of an element; `None` when poison.
    #[inline]
    pub fn read(&self, code: &Code, val: Val, element: u32, lane: usize) -> Option<u128> {
        let slot = val.element(element);
        let (low, poison) = self.slot(code, slot);
        if poison >> lane & 1 != 0 {
            return None;
        }
        let low = u128::from(low[lane]);
        if !val.wide() {
            return Some(low);
        }
        let (high, _) = self.slot(code, slot + 1);
        Some(low | u128::from(high[lane]) << 64)
    }

    /// Writes one lane of an element.
    #[inline]
    pub fn write(&mut self, val: Val, element: u32, lane: usize, bits: Option<u128>) {
        let slot = val.element(element) as usize;
        let bit = 1 << lane;
        match bits {
            Some(bits) => {
                self.slots[slot][lane] = bits as u64;
                self.poison[slot] &= !bit;
                if val.wide() {
                    self.slots[slot + 1][lane] = (bits >> 64) as u64;
                    self.poison[slot + 1] &= !bit;
                }
            }
            None => {
                self.poison[slot] |= bit;
                if val.wide() {
                    self.poison[slot + 1] |= bit;
                }
            }
        }
    }

    /// Copies slots at the same time.
    pub fn copy(&mut self, code: &Code, copies: &[(u32, u32)], mask: u32) {
        if let [(from, to)] = *copies {
            let (values, poison) = self.slot(code, from);
            let values = *values;
            return self.set(to, &values, poison, mask);
        }
        // A source that is a target of an earlier copy must be read first.
        let clash = copies.iter().enumerate().any(|(i, (from, _))| copies[..i].iter().any(|(_, to)| to == from));
        if !clash {
            for (from, to) in copies {
                let (values, poison) = self.slot(code, *from);
                let values = *values;
                self.set(*to, &values, poison, mask);
            }
            return;
        }
        let read: Vec<(Lanes, u32)> =
            copies.iter().map(|(from, _)| self.slot(code, *from)).map(|(v, p)| (*v, p)).collect();
        for ((values, poison), (_, to)) in read.iter().zip(copies) {
            self.set(*to, values, *poison, mask);
        }
    }
}
