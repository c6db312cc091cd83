//! Loads and stores (PTX ISA 9.7.10.8 to 9.7.10.11).

use ptxc_ir::Space;

use crate::machine::{LANES, Lanes, Stop, lanes};
use crate::memory::{Access, Kind, Loaded};
use crate::ptx::At;
use crate::ptx::instruction::{Address, Instruction};
use crate::ptx::operand::{Register, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::{Class, Type, low_bits, sign_extend};

/// How an access goes.
#[derive(Clone, Copy, Debug)]
pub struct Way {
    /// Space of the address.
    pub space: Space,
    /// Ordered or not.
    pub kind: Kind,
    /// What follows is ordered after it.
    pub acquires: bool,
}

impl Way {
    /// What the mnemonic says of an access to an address.
    pub fn new(i: &Instruction<'_>, address: &Address) -> Way {
        let space = match (i.space(Space::Generic), address.space) {
            (named @ Space::SharedCluster, _) => named,
            (_, Some(space)) => space,
            (named, None) => named,
        };
        let ordered = ["volatile", "relaxed", "acquire", "release", "acq_rel", "mmio"];
        let kind = if i.any(&ordered).is_some() { Kind::Atomic } else { Kind::Plain };
        Way { space, kind, acquires: i.any(&["acquire", "acq_rel"]).is_some() }
    }
}

/// The addresses of all lanes.
pub fn addresses(at: &At<'_, '_>, address: &Address) -> Lanes {
    let mut all = *at.get(address.slot);
    all.iter_mut().for_each(|x| *x = x.wrapping_add_signed(address.offset));
    all
}

/// Reads, with a warning for what was never written.
pub fn read(at: &mut At<'_, '_>, lane: usize, access: &Access, kind: Kind) -> Result<Loaded, Stop> {
    let accessor = at.who.accessor(at.world.team, lane);
    let loaded = at.world.memory.load(access, &accessor, kind).map_err(|fault| Stop::fault(fault, lane))?;
    if loaded.uninitialized {
        at.world.warn(at.who.place, "memory is read that was never written");
    }
    Ok(loaded)
}

/// Writes.
pub fn write(at: &mut At<'_, '_>, lane: usize, access: &Access, bits: u128, kind: Kind) -> Result<(), Stop> {
    let accessor = at.who.accessor(at.world.team, lane);
    at.world.memory.store(access, bits, false, &accessor, kind).map_err(|fault| Stop::fault(fault, lane))
}

/// Decodes `ld`, `ldu`, `st`.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    if i.has("async") || i.has("bulk") {
        return Ok(None);
    }
    if i.head() == "st" { store(i).map(Some) } else { load(i).map(Some) }
}

/// What a loaded value becomes in its register.
fn extend(ty: Type, register: Register, bits: u64) -> u64 {
    if ty.class == Class::Signed {
        sign_extend(bits, ty.width()) as u64 & low_bits(register.bits())
    } else {
        bits & low_bits(register.bits())
    }
}

fn load(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let ty = i.ty()?;
    let address = i.address(1)?;
    let way = Way::new(i, &address);
    let to = i.dest_vector(0)?;
    let size = ty.width() / 8;
    let whole = u64::from(size) * to.len() as u64;
    Ok(Operation::then(move |at| {
        if way.acquires {
            at.who.synchronized |= at.mask;
        }
        let addresses = *at.get(address.slot);
        for (index, register) in to.iter().enumerate() {
            let offset = address.offset.wrapping_add(index as i64 * i64::from(size));
            let align = if index == 0 { whole } else { 1 };
            let wave = at.who.wave(at.world.team, (way.space, &addresses, offset), at.mask, (size, align), way.kind);
            let mut values: Lanes = [0; LANES];
            let done = at.world.memory.load_wave(&wave, &mut values);
            let mut high: Lanes = [0; LANES];
            for lane in lanes(at.mask & !done) {
                let address = addresses[lane].wrapping_add_signed(offset);
                let loaded = read(at, lane, &Access { space: way.space, address, size, align }, way.kind)?;
                (values[lane], high[lane]) = (loaded.bits as u64, (loaded.bits >> 64) as u64);
            }
            let Some(register) = register else { continue };
            if ty.width() > 64 {
                at.set(register.slot + 1, &high);
            } else if ty.class == Class::Signed || ty.width() > register.bits() {
                values.iter_mut().for_each(|value| *value = extend(ty, *register, *value));
            }
            at.set(register.slot, &values);
        }
        Ok(())
    }))
}

fn store(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let ty = i.ty()?;
    let address = i.address(0)?;
    let way = Way::new(i, &address);
    let from: Vec<Slot> = i.source_vector(1, ty)?;
    let size = ty.width() / 8;
    let whole = u64::from(size) * from.len() as u64;
    Ok(Operation::then(move |at| {
        let addresses = *at.get(address.slot);
        for (index, slot) in from.iter().enumerate() {
            let offset = address.offset.wrapping_add(index as i64 * i64::from(size));
            let align = if index == 0 { whole } else { 1 };
            let wave = at.who.wave(at.world.team, (way.space, &addresses, offset), at.mask, (size, align), way.kind);
            let done = at.world.memory.store_wave(&wave, &at.slots[*slot as usize]);
            for lane in lanes(at.mask & !done) {
                let address = addresses[lane].wrapping_add_signed(offset);
                let bits = if ty.width() > 64 { at.wide(*slot, lane) } else { at.lane(*slot, lane).into() };
                write(at, lane, &Access { space: way.space, address, size, align }, bits, way.kind)?;
            }
        }
        Ok(())
    }))
}
