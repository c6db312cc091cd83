//! Asynchronous copies, stores and reductions (PTX ISA 9.7.10.12, 9.7.10.28, 9.7.15.7).
//!
//! Hints are of no effect. Copies of tensors, copies that report what they find and multimem copies are not executed.

use ptxc_ir::Space;

use super::mbarrier::barrier_place;
use super::memory::addresses;
use crate::asynchronous::{Combine, ElementType, Mechanism, Request};
use crate::machine::Stop;
use crate::memory::{Bytes, Extent, at_rank};
use crate::ptx::At;
use crate::ptx::instruction::{Address, Instruction};
use crate::ptx::operand::{Operand, Slot};
use crate::ptx::program::Operation;
use crate::ptx::types::Type;

const WORD: Type = Type { class: crate::ptx::types::Class::Bits, element: 32, count: 1 };

/// Decodes the family, and fences between proxies.
pub fn decode(i: &mut Instruction<'_>) -> Result<Option<Operation>, String> {
    Ok(Some(match i.pieces {
        ["cp", "async", "mbarrier", ..] => return Ok(None),
        // Whether accesses of different proxies are ordered is not checked.
        ["fence", "proxy", kind, ..] if !kind.starts_with("tensormap") => Operation::compute(|_| {}),
        ["cp", "async", "commit_group"] => commit(Mechanism::Copies),
        ["cp", "async", "bulk", "commit_group"] => commit(Mechanism::Bulk),
        ["cp", "async", "wait_all"] => wait_all(),
        ["cp", "async", "wait_group"] => wait(i, Mechanism::Copies)?,
        ["cp", "async", "bulk", "wait_group", ..] => wait(i, Mechanism::Bulk)?,
        ["cp", "async", "bulk", "prefetch", "L2", ..] => Operation::compute(|_| {}),
        ["cp", "async" | "reduce", ..] if i.has("tensor") => {
            return Err("copies of tensors are not known".to_string());
        }
        ["cp", "async", "bulk", ..] | ["cp", "reduce", "async", "bulk", ..] => bulk(i)?,
        ["cp", "async", ..] => copy(i)?,
        ["st" | "red", "async", ..] if i.has("mbarrier::complete_tx::bytes") => store(i)?,
        ["st" | "red", "async", ..] => return Err("only what an mbarrier object tracks is known".to_string()),
        _ => return Ok(None),
    }))
}

fn commit(mechanism: Mechanism) -> Operation {
    Operation::compute(move |at| {
        for lane in at.lanes() {
            let accessor = at.who.accessor(at.world.team, lane);
            at.world.asynchronous.commit(mechanism, &accessor);
        }
    })
}

fn wait_lane(at: &mut At<'_, '_>, lane: usize, mechanism: Mechanism, pending: u32, read: bool) -> Result<(), Stop> {
    let accessor = at.who.accessor(at.world.team, lane);
    let waited = at.world.asynchronous.wait(mechanism, pending, read, at.world.memory, &accessor);
    waited.map_err(|trouble| Stop::trouble(trouble, lane))
}

fn wait_all() -> Operation {
    Operation::then(|at| {
        for lane in at.lanes() {
            let accessor = at.who.accessor(at.world.team, lane);
            at.world.asynchronous.commit(Mechanism::Copies, &accessor);
            wait_lane(at, lane, Mechanism::Copies, 0, false)?;
        }
        Ok(())
    })
}

fn wait(i: &Instruction<'_>, mechanism: Mechanism) -> Result<Operation, String> {
    let pending = u32::try_from(i.immediate(0)?).map_err(|_| "the number of groups is negative".to_string())?;
    let read = i.has("read");
    Ok(Operation::then(move |at| at.lanes().try_for_each(|lane| wait_lane(at, lane, mechanism, pending, read))))
}

fn begin(at: &mut At<'_, '_>, lane: usize, request: Request) -> Result<(), Stop> {
    let accessor = at.who.accessor(at.world.team, lane);
    let begun = at.world.asynchronous.begin(request, at.world.memory, &accessor);
    begun.map_err(|trouble| Stop::trouble(trouble, lane))
}

/// `cp.async`: the fourth operand is a number of bytes, or a predicate that says that none are copied.
fn copy(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let (to, from) = (i.address(0)?, i.address(1)?);
    let size = u64::try_from(i.immediate(2)?).map_err(|_| "the size is negative".to_string())?;
    let has_policy = usize::from(i.has("L2::cache_hint"));
    let ignored = i.operands.len() > 3 + has_policy && i.predicate(3).is_ok_and(|_| !is_integer(i, 3));
    let ignore = if ignored { Some(i.predicate(3)?) } else { None };
    let bytes = if !ignored && i.operands.len() > 3 + has_policy { Some(i.source(3, WORD)?) } else { None };
    Ok(Operation::then(move |at| {
        let (targets, sources) = (addresses(at, &to), addresses(at, &from));
        let ignored = ignore.map_or(0, |(slot, flip)| at.holds(slot, flip));
        for lane in at.lanes() {
            let mut count = bytes.map_or(size, |slot| at.lane(slot, lane) & 0xffff_ffff);
            if count > size {
                return Err(Stop::lane(format!("{count} bytes are copied to a place of {size}"), lane));
            }
            if ignored >> lane & 1 != 0 {
                count = 0;
            }
            let align = size;
            let source = Extent { space: Space::Global, address: sources[lane], size: count, align };
            let target = Extent { space: Space::Shared, address: targets[lane], size, align };
            let tail = Bytes::known(vec![0; (size - count) as usize]);
            let mechanism = Some(Mechanism::Copies);
            begin(at, lane, Request { tail, mechanism, ..Request::copy(source, target) })?;
        }
        Ok(())
    }))
}

fn is_integer(i: &Instruction<'_>, index: usize) -> bool {
    matches!(i.operands.get(index), Some(Operand::Integer(_)))
}

/// The spaces that a mnemonic names, in order.
fn spaces(i: &Instruction<'_>) -> Vec<Space> {
    let named = i.pieces.iter().filter_map(|piece| match *piece {
        "global" => Some(Space::Global),
        "shared::cta" => Some(Space::Shared),
        "shared::cluster" => Some(Space::SharedCluster),
        _ => None,
    });
    named.collect()
}

/// What a bulk copy is told besides where from and where to.
struct Bulk {
    to: (Address, Space),
    from: (Address, Space),
    size: Slot,
    /// Bytes at either end that are not copied.
    ignore: Option<[Slot; 2]>,
    barrier: Option<Address>,
    blocks: Option<Slot>,
    mask: Option<Slot>,
    reduce: Option<(Combine, ElementType)>,
}

fn bulk(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let [to, from] = spaces(i)[..] else { return Err("the spaces are not named".to_string()) };
    let report = i.pieces.iter().find(|p| p.starts_with("mbarrier::report") && **p != "mbarrier::report::disabled");
    if report.is_some() {
        return Err("reports are not known".to_string());
    }
    let reduce = match i.pieces {
        ["cp", "reduce", ..] => {
            let how = i.pieces.iter().find_map(|piece| Combine::parse(piece));
            let ty = i.pieces.last().and_then(|piece| ElementType::parse(piece));
            Some(how.zip(ty).ok_or_else(|| "the reduction is not known".to_string())?)
        }
        _ => None,
    };
    let (to, from, size) = ((i.address(0)?, to), (i.address(1)?, from), i.source(2, WORD)?);
    // The other operands in their order, each where the mnemonic asks for it.
    let mut next = 2;
    let mut take = |there: bool| {
        next += usize::from(there);
        there.then_some(next)
    };
    let (left, right) = (take(i.has("ignore_oob")), take(i.has("ignore_oob")));
    let told = take(i.has("mbarrier::complete_tx::bytes"));
    let multicast = ["multicast::cluster", "multicast::cluster::16b", "multicast::cluster::32b"];
    let blocks = take(i.any(&multicast).is_some());
    take(i.has("L2::cache_hint"));
    let mask = take(i.has("cp_mask"));
    let mut source = |at: Option<usize>| at.map(|index| i.source(index, WORD)).transpose();
    let ignore = source(left)?.zip(source(right)?).map(|(a, b)| [a, b]);
    let (blocks, mask) = (source(blocks)?, source(mask)?);
    let barrier = told.map(|index| i.address(index)).transpose()?;
    let bulk = Bulk { to, from, size, ignore, barrier, blocks, mask, reduce };
    Ok(Operation::then(move |at| at.lanes().try_for_each(|lane| bulk.begin(at, lane))))
}

impl Bulk {
    fn begin(&self, at: &mut At<'_, '_>, lane: usize) -> Result<(), Stop> {
        let stop = |message: &str| Stop::lane(message, lane);
        let address = |at: &At<'_, '_>, a: &Address| at.lane(a.slot, lane).wrapping_add_signed(a.offset);
        let (to, from) = (address(at, &self.to.0), address(at, &self.from.0));
        let size = at.lane(self.size, lane) & 0xffff_ffff;
        if !size.is_multiple_of(16) {
            return Err(stop("the size of a bulk copy is no multiple of 16"));
        }
        let [left, right] = self.ignore.map_or([0, 0], |slots| slots.map(|slot| at.lane(slot, lane) & 0xffff_ffff));
        if left > 15 || right > 15 || left + right > size {
            return Err(stop("more bytes are ignored than there may be"));
        }
        if !from.is_multiple_of(16) {
            return Err(stop("the source of a bulk copy is no multiple of 16"));
        }
        let source =
            Extent { space: self.from.1, address: from.wrapping_add(left), size: size - left - right, align: 1 };
        let target = Extent { space: self.to.1, address: to, size, align: 16 };
        let barrier = self.barrier.as_ref().map(|a| address(at, a));
        let between = (self.from.1, self.to.1) == (Space::Shared, Space::SharedCluster);
        if between
            && at.world.memory.shared_place(self.to.1, to, at.world.team.slot).map(|p| p.0) == Some(at.world.team.slot)
        {
            return Err(stop("the target of a copy from shared memory is not in another block"));
        }
        let mut request = Request {
            head: Bytes::unknown(left as usize),
            tail: Bytes::unknown(right as usize),
            mask: self.mask.map_or(u16::MAX, |slot| at.lane(slot, lane) as u16),
            reduce: self.reduce,
            mechanism: if barrier.is_none() { Some(Mechanism::Bulk) } else { None },
            ..Request::copy(source, target)
        };
        let Some(blocks) = self.blocks else {
            request.barrier = barrier.map(|b| barrier_place(at, lane, Space::SharedCluster, b)).transpose()?;
            return begin(at, lane, request);
        };
        // To the same offsets in every block of the mask.
        let blocks = at.lane(blocks, lane) as u32;
        for rank in (0..32).filter(|rank| blocks >> rank & 1 != 0) {
            let place = |address| barrier_place(at, lane, Space::SharedCluster, at_rank(address, rank));
            let barrier = barrier.map(place).transpose()?;
            let target = Extent { address: at_rank(to, rank), ..target };
            begin(at, lane, Request { barrier, target, ..request.clone() })?;
        }
        Ok(())
    }
}

/// `st.async` and `red.async` that an mbarrier object tracks.
fn store(i: &mut Instruction<'_>) -> Result<Operation, String> {
    let ty = i.ty()?;
    let to = i.address(0)?;
    let from = i.source_vector(1, ty)?;
    let told = i.address(2)?;
    let space = if i.has("shared::cluster") { Space::SharedCluster } else { i.space(Space::Generic) };
    let reduce = match i.head() {
        "red" => {
            let how = i.pieces.iter().skip(2).find_map(|piece| Combine::parse(piece));
            let element = i.pieces.last().and_then(|piece| ElementType::parse(piece));
            Some(how.zip(element).ok_or_else(|| "the reduction is not known".to_string())?)
        }
        _ => None,
    };
    let bytes = (ty.width() / 8) as usize;
    Ok(Operation::then(move |at| {
        let (targets, barriers) = (addresses(at, &to), addresses(at, &told));
        for lane in at.lanes() {
            let value = |slot: &Slot| if bytes > 8 { at.wide(*slot, lane) } else { at.lane(*slot, lane).into() };
            let data = from.iter().flat_map(|slot| value(slot).to_le_bytes().into_iter().take(bytes));
            let head = Bytes::known(data.collect());
            let size = (bytes * from.len()) as u64;
            let target = Extent { space, address: targets[lane], size, align: size };
            let barrier = Some(barrier_place(at, lane, space, barriers[lane])?);
            let nothing = Extent { space, address: 0, size: 0, align: 1 };
            let request = Request { source: None, head, reduce, barrier, ..Request::copy(nothing, target) };
            begin(at, lane, request)?;
        }
        Ok(())
    }))
}
