//! Instructions that access memory.

use ptxc_ir::{AtomicOp, Flags, MemAttrs, Opcode, Ordering, Scalar, Space, Type};

use super::compute::At;
use super::element;
use super::integer::{self, mask};
use super::program::{LANES, More, Val};
use crate::float;
use crate::machine::{Identity, Stop, World, lanes};
use crate::memory::{Access, Kind, Loaded, is_global};

/// Executes a step that accesses memory.
pub fn execute(at: &mut At<'_>, world: &mut World<'_>, who: &mut Identity) -> Result<(), Stop> {
    match (at.step.op, &at.step.more) {
        (Opcode::Load, More::Mem(space, mem)) => load(at, world, who, *space, *mem),
        (Opcode::Store, More::Mem(space, mem)) => store(at, world, who, *space, *mem),
        (Opcode::AtomicRmw | Opcode::Cmpxchg, More::Atomic(space, op, mem)) => {
            atomic(at, world, who, *space, *op, *mem)
        }
        (Opcode::Memset | Opcode::Memcpy | Opcode::Memmove, More::Copy(spaces, aligns)) => {
            copy(at, world, who, *spaces, *aligns)
        }
        (Opcode::Fence, more) => {
            if matches!(more, More::Fence) {
                who.synchronized |= at.mask;
            }
            Ok(())
        }
        (Opcode::Alloca, More::Alloca(size, align)) => {
            if *size > 1 << 24 {
                return Err(Stop::new(format!("{size} bytes do not fit the stack")));
            }
            let out = at.result(0)?;
            for lane in lanes(at.mask) {
                let thread = who.first_thread as usize + lane;
                let address = world.memory.push_local(world.team.slot, thread, *size, *align);
                let address = address.ok_or_else(|| Stop::new("there is no such thread"))?;
                at.frame.write(out, 0, lane, Some(address.into()));
            }
            Ok(())
        }
        _ => Err(Stop::new("this instruction is not interpreted")),
    }
}

fn acquires(order: Ordering) -> bool {
    matches!(order, Ordering::Acquire | Ordering::AcqRel | Ordering::SeqCst)
}

fn kind_of(mem: MemAttrs) -> Kind {
    if mem.is_ordered() { Kind::Atomic } else { Kind::Plain }
}

/// Bytes of one element in memory.
fn element_size(ty: Type) -> u32 {
    ty.scalar().size() as u32
}

/// Reads with a warning for what was never written.
fn read(world: &mut World<'_>, who: &Identity, lane: usize, access: &Access, kind: Kind) -> Result<Loaded, Stop> {
    let accessor = who.accessor(world.team, lane);
    let loaded = world.memory.load(access, &accessor, kind).map_err(|fault| Stop::fault(fault, lane))?;
    if loaded.uninitialized {
        world.warn(who.place, "memory is read that was never written");
    }
    Ok(loaded)
}

fn load(at: &mut At<'_>, world: &mut World<'_>, who: &mut Identity, space: Space, mem: MemAttrs) -> Result<(), Stop> {
    let (pointer, out, kind) = (at.arg(0)?, at.result(0)?, kind_of(mem));
    if acquires(mem.order) {
        who.synchronized |= at.mask;
    }
    let packed = out.ty.is_vector() && out.ty.scalar_bits() == 1;
    let (size, bits) = (element_size(out.ty), mask(out.ty.scalar_bits()));
    let addresses = all_lanes(at, pointer, "the address")?;
    for e in 0..out.elements() {
        let (offset, size) = if packed { (i64::from(e / 8), 1) } else { (i64::from(e * size), size) };
        let align = if e == 0 { mem.align() } else { 1 };
        let mut done = 0;
        if !packed && !out.wide() {
            let wave = who.wave(world.team, (space, &addresses, offset), at.mask, (size, align), kind);
            let mut values = [0; LANES];
            done = world.memory.load_wave(&wave, &mut values);
            if !matches!(out.ty.scalar_bits(), 8 | 16 | 32 | 64) {
                values.iter_mut().for_each(|value| *value &= bits as u64);
            }
            at.frame.set(out.element(e), &values, 0, done);
        }
        for lane in lanes(at.mask & !done) {
            let access = Access { space, address: addresses[lane].wrapping_add_signed(offset), size, align };
            let loaded = read(world, who, lane, &access, kind)?;
            let value = if packed { loaded.bits >> (e % 8) } else { loaded.bits };
            at.frame.write(out, e, lane, (!loaded.poison).then_some(value & bits));
        }
    }
    Ok(())
}

fn store(at: &mut At<'_>, world: &mut World<'_>, who: &Identity, space: Space, mem: MemAttrs) -> Result<(), Stop> {
    let (value, pointer, kind) = (at.arg(0)?, at.arg(1)?, kind_of(mem));
    let packed = value.ty.is_vector() && value.ty.scalar_bits() == 1;
    let size = element_size(value.ty);
    let addresses = all_lanes(at, pointer, "the address")?;
    let put = |world: &mut World<'_>, lane: usize, offset: u32, size: u32, bits: Option<u128>| {
        let align = if offset == 0 { mem.align() } else { 1 };
        let access = Access { space, address: addresses[lane].wrapping_add(offset.into()), size, align };
        let accessor = who.accessor(world.team, lane);
        let stored = world.memory.store(&access, bits.unwrap_or(0), bits.is_none(), &accessor, kind);
        stored.map_err(|fault| Stop::fault(fault, lane))
    };
    if packed {
        for lane in lanes(at.mask) {
            for byte in 0..value.elements().div_ceil(8) {
                let elements = byte * 8..value.elements().min(byte * 8 + 8);
                let bits = elements.map(|e| at.read(value, e, lane).map(|b| b << (e % 8)));
                put(world, lane, byte, 1, bits.sum())?;
            }
        }
        return Ok(());
    }
    for e in 0..value.elements() {
        let (values, poison) = at.frame.slot(at.code, value.element(e));
        let mut done = 0;
        if !value.wide() && poison & at.mask == 0 {
            let align = if e == 0 { mem.align() } else { 1 };
            let place = (space, &addresses, i64::from(e * size));
            let wave = who.wave(world.team, place, at.mask, (size, align), kind);
            done = world.memory.store_wave(&wave, values);
        }
        for lane in lanes(at.mask & !done) {
            put(world, lane, e * size, size, at.read(value, e, lane))?;
        }
    }
    Ok(())
}

/// The new value of an element.
fn combine(op: AtomicOp, ty: Type, old: u128, new: u128, in_global: bool) -> Option<u128> {
    let bits = mask(ty.scalar_bits());
    let same = |op| element::same_type(op, Flags::EMPTY, ty.scalar(), &[old, new]).ok();
    match op {
        AtomicOp::Xchg => Some(new),
        AtomicOp::Add => same(Opcode::Add),
        AtomicOp::Sub => same(Opcode::Sub),
        AtomicOp::And => same(Opcode::And),
        AtomicOp::Nand => Some(!(old & new) & bits),
        AtomicOp::Or => same(Opcode::Or),
        AtomicOp::Xor => same(Opcode::Xor),
        AtomicOp::Smax => same(Opcode::Smax),
        AtomicOp::Smin => same(Opcode::Smin),
        AtomicOp::Umax => same(Opcode::Umax),
        AtomicOp::Umin => same(Opcode::Umin),
        AtomicOp::Fadd | AtomicOp::Fsub => ty.float_kind().map(|kind| {
            let minus = op == AtomicOp::Fsub;
            let new = if minus { float::neg(kind, new as u64, false) } else { new as u64 };
            float::atomic_add(kind, old as u64, new, in_global).into()
        }),
        AtomicOp::Fmax => same(Opcode::Fmax),
        AtomicOp::Fmin => same(Opcode::Fmin),
        AtomicOp::UincWrap => Some(if old >= new { 0 } else { integer::mask(ty.scalar_bits()) & (old + 1) }),
        AtomicOp::UdecWrap => Some(if old == 0 || old > new { new } else { old - 1 }),
    }
}

fn atomic(
    at: &mut At<'_>,
    world: &mut World<'_>,
    who: &mut Identity,
    space: Space,
    op: AtomicOp,
    mem: MemAttrs,
) -> Result<(), Stop> {
    let (pointer, value, out) = (at.arg(0)?, at.arg(1)?, at.result(0)?);
    let exchange = at.step.op == Opcode::Cmpxchg;
    if acquires(mem.order) {
        who.synchronized |= at.mask;
    }
    let size = element_size(value.ty);
    for lane in lanes(at.mask) {
        let address = at.need(pointer, lane, "the address")?;
        let accessor = who.accessor(world.team, lane);
        for e in 0..value.elements() {
            let align = if e == 0 { mem.align() } else { 1 };
            let access = Access { space, address: address.wrapping_add((e * size).into()), size, align };
            let loaded = read(world, who, lane, &access, Kind::Atomic)?;
            let old = (!loaded.poison).then_some(loaded.bits & mask(value.ty.scalar_bits()));
            let given = at.read(value, e, lane);
            let new = if exchange {
                let Some((old, expected)) = old.zip(given) else {
                    return Err(Stop::lane("the comparison of `cmpxchg` is of poison", lane));
                };
                let replacement = at.read(at.arg(2)?, e, lane);
                at.frame.write(at.result(1)?, 0, lane, Some((old == expected).into()));
                (old == expected).then_some(replacement)
            } else {
                Some(match (op, old, given) {
                    (AtomicOp::Xchg, _, given) => given,
                    (_, Some(old), Some(given)) => combine(op, value.ty, old, given, is_global(space, access.address)),
                    _ => None,
                })
            };
            at.frame.write(out, e, lane, old);
            if let Some(new) = new {
                let stored = world.memory.store(&access, new.unwrap_or(0), new.is_none(), &accessor, Kind::Atomic);
                stored.map_err(|fault| Stop::fault(fault, lane))?;
            }
        }
    }
    Ok(())
}

/// `memcpy`, `memmove` and `memset`, byte by byte.
fn copy(
    at: &mut At<'_>,
    world: &mut World<'_>,
    who: &Identity,
    spaces: [Space; 2],
    aligns: [u64; 2],
) -> Result<(), Stop> {
    let (to, from, count) = (at.arg(0)?, at.arg(1)?, at.arg(2)?);
    for lane in lanes(at.mask) {
        let length = at.need(count, lane, "the number of bytes")?;
        if length == 0 {
            continue;
        }
        let target = at.need(to, lane, "the address")?;
        if length > 1 << 30 {
            return Err(Stop::lane(format!("a block of {length} bytes is copied"), lane));
        }
        if at.step.op == Opcode::Memset {
            let byte = at.read(from, 0, lane);
            for i in 0..length {
                put_byte(world, who, lane, (spaces[0], target, aligns[0]), i, byte)?;
            }
            continue;
        }
        let source = at.need(from, lane, "the address")?;
        if at.step.op == Opcode::Memcpy && overlap(source, target, length) && spaces[0] == spaces[1] {
            return Err(Stop::lane("`memcpy` of blocks that overlap", lane));
        }
        // Grows as bytes are found to be there: the length may be anything.
        let mut bytes: Vec<Option<u8>> = Vec::new();
        for i in 0..length {
            let align = if i == 0 { aligns[1] } else { 1 };
            let access = Access { space: spaces[1], address: source.wrapping_add(i), size: 1, align };
            let accessor = who.accessor(world.team, lane);
            // Copies of what was never written are no reads of it.
            let loaded =
                world.memory.load(&access, &accessor, Kind::Plain).map_err(|fault| Stop::fault(fault, lane))?;
            bytes.push((!loaded.poison).then_some(loaded.bits as u8));
        }
        for (i, byte) in bytes.into_iter().enumerate() {
            put_byte(world, who, lane, (spaces[0], target, aligns[0]), i as u64, byte.map(u128::from))?;
        }
    }
    Ok(())
}

fn overlap(a: u64, b: u64, length: u64) -> bool {
    a != b && a.abs_diff(b) < length
}

fn put_byte(
    world: &mut World<'_>,
    who: &Identity,
    lane: usize,
    (space, base, align): (Space, u64, u64),
    offset: u64,
    byte: Option<u128>,
) -> Result<(), Stop> {
    let align = if offset == 0 { align } else { 1 };
    let access = Access { space, address: base.wrapping_add(offset), size: 1, align };
    let accessor = who.accessor(world.team, lane);
    let stored = world.memory.store(&access, byte.unwrap_or(0), byte.is_none(), &accessor, Kind::Plain);
    stored.map_err(|fault| Stop::fault(fault, lane))
}

/// Copies the object of a `byval` parameter to the callee's stack; gives its address in the parameter's space.
pub fn copy_argument(
    world: &mut World<'_>,
    who: &Identity,
    lane: usize,
    ty: Type,
    source: u64,
    (size, align): (u64, u64),
) -> Result<u64, Stop> {
    let Some(Scalar::Ptr(space)) = ty.kind() else { return Err(Stop::new("a `byval` parameter is no pointer")) };
    if !matches!(space, Space::Generic | Space::Local) {
        return Err(Stop::new(format!("a `byval` parameter in {} memory is not interpreted", space.name())));
    }
    let thread = who.first_thread as usize + lane;
    let address = world.memory.push_local(world.team.slot, thread, size, align);
    let address = address.ok_or_else(|| Stop::new("there is no such thread"))?;
    let accessor = who.accessor(world.team, lane);
    for i in 0..size {
        let access = Access { space, address: source.wrapping_add(i), size: 1, align: 1 };
        let loaded = world.memory.load(&access, &accessor, Kind::Plain).map_err(|fault| Stop::fault(fault, lane))?;
        // Padding stays as it was: never written.
        if !loaded.uninitialized {
            put_byte(world, who, lane, (Space::Local, address, 1), i, (!loaded.poison).then_some(loaded.bits))?;
        }
    }
    Ok(if space == Space::Generic { crate::memory::to_generic(Space::Local, address) } else { address })
}

/// All lanes of a scalar operand that must not be poison in the lanes of `mask`.
pub fn all_lanes(at: &At<'_>, val: Val, what: &str) -> Result<[u64; LANES], Stop> {
    let (values, poison) = at.frame.slot(at.code, val.slot);
    match lanes(poison & at.mask).next() {
        Some(lane) => Err(Stop::lane(format!("{what} is poison"), lane)),
        None => Ok(*values),
    }
}
