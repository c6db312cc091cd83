//! Atomics, reductions and fences (PTX ISA 9.7.15.4 to 9.7.15.6).

use super::memory::{Way, addresses, read, write};
use crate::float;
use crate::machine::Stop;
use crate::memory::{Access, Kind, is_global};
use crate::ptx::At;
use crate::ptx::instruction::{Address, Instruction};
use crate::ptx::operand::{Register, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::{Type, low_bits, sign_extend};

/// Decodes the family.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    if i.has("async") || i.has("proxy") {
        return Ok(None);
    }
    Ok(Some(match i.head() {
        "atom" => atom(i)?,
        "red" => red(i)?,
        _ => {
            let orders = !i.has("release");
            Operation::compute(move |at| {
                if orders {
                    at.who.synchronized |= at.mask;
                }
            })
        }
    }))
}

/// What an atomic operation stores, given what was there, what is given, and whether it is in global memory.
type Combine = Box<dyn Fn(u64, u64, bool) -> u64 + Send + Sync>;

fn combine(i: &Instruction<'_>, ty: Type) -> Result<Combine, String> {
    let operations = ["and", "or", "xor", "add", "inc", "dec", "min", "max", "exch"];
    let operation = i.any(&operations).ok_or_else(|| "no operation is named".to_string())?;
    let unused = 64 - ty.element.clamp(1, 64);
    let signed = move |x: u64| (x << unused) as i64;
    let minimum = operation == "min";
    if let Some(kind) = ty.float() {
        return Ok(match operation {
            "add" => Box::new(move |old, new, in_global| float::atomic_add(kind, old, new, in_global)),
            "min" => Box::new(move |old, new, _| float::min(kind, old, new, false)),
            "max" => Box::new(move |old, new, _| float::max(kind, old, new, false)),
            "exch" => Box::new(|_, new, _| new),
            _ => return Err("the operation needs an integer type".to_string()),
        });
    }
    Ok(match operation {
        "and" => Box::new(|old, new, _| old & new),
        "or" => Box::new(|old, new, _| old | new),
        "xor" => Box::new(|old, new, _| old ^ new),
        "add" => Box::new(|old, new, _| old.wrapping_add(new)),
        "inc" => Box::new(|old, new, _| if old >= new { 0 } else { old + 1 }),
        "dec" => Box::new(|old, new, _| if old == 0 || old > new { new } else { old - 1 }),
        "exch" => Box::new(|_, new, _| new),
        _ if ty.is_signed() => {
            Box::new(move |old, new, _| if (signed(old) < signed(new)) == minimum { old } else { new })
        }
        _ => Box::new(move |old, new, _| if (old < new) == minimum { old } else { new }),
    })
}

/// An atomic access: one element after another, each by itself.
struct Atomic {
    address: Address,
    way: Way,
    ty: Type,
    combine: Combine,
    to: Vec<Option<Register>>,
    from: Vec<Slot>,
}

impl Atomic {
    fn execute(&self, at: &mut At<'_, '_>) -> Result<(), Stop> {
        if self.way.acquires {
            at.who.synchronized |= at.mask;
        }
        let size = self.ty.width() / 8;
        let addresses = addresses(at, &self.address);
        for lane in at.lanes() {
            for (index, from) in self.from.iter().enumerate() {
                let offset = index as u64 * u64::from(size);
                let align = if index == 0 { u64::from(size) * self.from.len() as u64 } else { 1 };
                let address = addresses[lane].wrapping_add(offset);
                let access = Access { space: self.way.space, address, size, align };
                let old = read(at, lane, &access, Kind::Atomic)?.bits as u64;
                let in_global = is_global(self.way.space, address);
                let given = at.lane(*from, lane) & low_bits(self.ty.width());
                let new = (0..self.ty.count).fold(0, |bits, e| {
                    let shift = e * self.ty.element;
                    let part = |x: u64| x >> shift & self.ty.mask();
                    bits | ((self.combine)(part(old), part(given), in_global) & self.ty.mask()) << shift
                });
                if let Some(Some(register)) = self.to.get(index) {
                    at.put(register.slot, lane, extend(self.ty, *register, old));
                }
                write(at, lane, &access, new.into(), Kind::Atomic)?;
            }
        }
        Ok(())
    }
}

fn extend(ty: Type, register: Register, bits: u64) -> u64 {
    if ty.is_signed() { sign_extend(bits, ty.width()) as u64 & low_bits(register.bits()) } else { bits }
}

fn atom(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let ty = i.ty()?;
    if i.has("cas") || ty.width() > 64 {
        return exchange(i, ty);
    }
    let address = i.address(1)?;
    let way = Way::new(i, &address);
    let (to, from) = (i.dest_vector(0)?, i.source_vector(2, ty)?);
    let atomic = Atomic { address, way, ty, combine: combine(i, ty)?, to, from };
    Ok(Operation::then(move |at| atomic.execute(at)))
}

fn red(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let ty = i.ty()?;
    let address = i.address(0)?;
    let way = Way::new(i, &address);
    let from = i.source_vector(1, ty)?;
    let atomic = Atomic { address, way, ty, combine: combine(i, ty)?, to: Vec::new(), from };
    Ok(Operation::then(move |at| atomic.execute(at)))
}

/// `cas`, and `exch` of 128 bits.
fn exchange(i: &mut Instruction<'_>, ty: Type) -> Result<Operation, String> {
    let address = i.address(1)?;
    let way = Way::new(i, &address);
    let to = i.dest_or_sink(0)?;
    let compares = i.has("cas");
    let first = i.source(2, ty)?;
    let second = if compares { i.source(3, ty)? } else { first };
    let (size, wide) = (ty.width() / 8, ty.width() > 64);
    Ok(Operation::then(move |at| {
        if way.acquires {
            at.who.synchronized |= at.mask;
        }
        let addresses = addresses(at, &address);
        for lane in at.lanes() {
            let value = |slot: Slot| match wide {
                true => at.wide(slot, lane),
                false => u128::from(at.lane(slot, lane) & low_bits(ty.width())),
            };
            let (expected, new) = (value(first), value(second));
            let access = Access { space: way.space, address: addresses[lane], size, align: size.into() };
            let old = read(at, lane, &access, Kind::Atomic)?.bits;
            match to {
                Some(register) if wide => at.put_wide(register.slot, lane, old),
                Some(register) => at.put(register.slot, lane, old as u64),
                None => {}
            }
            if !compares || old == expected {
                write(at, lane, &access, new, Kind::Atomic)?;
            }
        }
        Ok(())
    }))
}
