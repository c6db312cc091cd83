//! Cuts objects into slots, and decides the type of the value that each slot holds.
//!
//! A slot is what lies between two neighbouring *cuts* of an object. Accesses begin and end at cuts, and where one object
//! is copied to another, the two are cut at the same places, so that a copy moves whole slots. Slots that copies connect
//! form a class and have one type: the one with which they are loaded and stored, if they agree on it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use cranelift_entity::SecondaryMap;
use ptxc_ir::{Inst, Type};

use super::bits::{has_image, is_fillable};
use super::objects::{Found, Kind, Site, Spot};

/// Most slots of one object.
const MAX_CUTS: usize = 1025;
/// Most slots of one function.
const MAX_SLOTS: usize = 1 << 14;
/// Bound on the work of cutting objects alike that are copied to one another.
const MAX_TRANSFERS: usize = 1 << 17;

/// A slot.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// Offset in its object, in bytes.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
    /// Type of the value in it; [`Type::INVALID`] when nothing says.
    pub ty: Type,
}

/// The slots of all objects.
pub struct Slots {
    /// All slots, by object and offset.
    pub slots: Vec<Slot>,
    /// Where each object's slots start in `slots`, and the end of the last.
    starts: Vec<u32>,
}

impl Slots {
    /// The slots, as a range of indices, that bytes starting at a place cover.
    pub fn covered(&self, spot: Spot, size: u64) -> std::ops::Range<usize> {
        let start = self.starts[spot.object as usize] as usize;
        let end = self.starts[spot.object as usize + 1] as usize;
        let object = &self.slots[start..end];
        let first = object.partition_point(|slot| slot.offset < spot.offset);
        let last = object.partition_point(|slot| slot.offset < spot.offset.saturating_add(size));
        start + first..start + last
    }
}

/// Cuts the objects and types the slots. Objects that cannot be kept in values are marked as escaping.
pub fn cut(found: &mut Found) -> Slots {
    let mut cuts = Cuts::new(found);
    cuts.align_copies(found);
    let mut slots = cuts.slots(found);
    let mut classes = Classes::new(found, &slots);
    classes.learn_types(found, &slots);
    // What is only copied and filled has no type; in pieces of a power of two it gets one.
    if cuts.cut_untyped(&slots, &mut classes) {
        slots = cuts.slots(found);
        classes = Classes::new(found, &slots);
        classes.learn_types(found, &slots);
    }
    if slots.slots.len() > MAX_SLOTS {
        found.objects.iter_mut().for_each(|object| object.escaped = true);
    }
    for index in 0..slots.slots.len() {
        slots.slots[index].ty = classes.decide(index, slots.slots[index].size);
    }
    give_up_unsuitable(found, &slots);
    slots
}

/// The cuts of each object.
struct Cuts {
    of: Vec<BTreeSet<u64>>,
}

impl Cuts {
    /// Cuts where accesses begin and end.
    fn new(found: &mut Found) -> Cuts {
        let mut of = vec![BTreeSet::new(); found.objects.len()];
        for site in &found.sites {
            for spot in [site.to, site.from].into_iter().flatten() {
                let cuts = &mut of[spot.object as usize];
                cuts.extend([spot.offset, spot.offset + site.size]);
                if cuts.len() > MAX_CUTS {
                    found.objects[spot.object as usize].escaped = true;
                }
            }
        }
        Cuts { of }
    }

    /// Cuts objects that are copied to one another at the same places.
    fn align_copies(&mut self, found: &mut Found) {
        let mut copies_of: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (index, site) in found.sites.iter().enumerate() {
            if let (Some(to), Some(from)) = (found.known(site.to), found.known(site.from)) {
                copies_of.entry(to.object).or_default().push(index);
                copies_of.entry(from.object).or_default().push(index);
            }
        }
        let mut work: VecDeque<u32> = copies_of.keys().copied().collect();
        let mut waiting: BTreeSet<u32> = work.iter().copied().collect();
        let mut transfers = 0;
        while let Some(object) = work.pop_front() {
            waiting.remove(&object);
            for index in &copies_of[&object] {
                let site = &found.sites[*index];
                let (Some(to), Some(from)) = (site.to, site.from) else { continue };
                let (here, there) = if to.object == object { (to, from) } else { (from, to) };
                transfers += self.of[object as usize].range(here.offset..here.offset + site.size).count();
                if self.transfer(here, there, site.size) && waiting.insert(there.object) {
                    work.push_back(there.object);
                }
                if transfers > MAX_TRANSFERS || self.of[there.object as usize].len() > MAX_CUTS {
                    copies_of.keys().for_each(|object| found.escape(*object));
                    return;
                }
            }
        }
    }

    /// Adds the cuts of one side of a copy to the other. Tells whether there were new ones.
    fn transfer(&mut self, from: Spot, to: Spot, size: u64) -> bool {
        let moved: Vec<u64> = self.of[from.object as usize]
            .range(from.offset..from.offset + size)
            .map(|cut| cut - from.offset + to.offset)
            .collect();
        let cuts = &mut self.of[to.object as usize];
        let before = cuts.len();
        cuts.extend(moved);
        cuts.len() > before
    }

    /// Cuts slots without a type into pieces of a power of two.
    fn cut_untyped(&mut self, slots: &Slots, classes: &mut Classes) -> bool {
        let mut any = false;
        for (object, cuts) in self.of.iter_mut().enumerate() {
            let range = slots.starts[object] as usize..slots.starts[object + 1] as usize;
            for index in range {
                let slot = slots.slots[index];
                if !classes.has_type(index) && untyped(slot.size).is_invalid() {
                    let mut at = 0;
                    while at < slot.size {
                        cuts.insert(slot.offset + at);
                        at += 1 << (slot.size - at).ilog2().min(4);
                    }
                    any = true;
                }
            }
        }
        any
    }

    fn slots(&self, found: &Found) -> Slots {
        let mut slots = Slots { slots: Vec::new(), starts: vec![0] };
        for (object, cuts) in found.objects.iter().zip(&self.of) {
            let ends = cuts.iter().skip(if object.escaped { cuts.len() } else { 1 });
            slots.slots.extend(cuts.iter().zip(ends).map(|(from, to)| Slot {
                offset: *from,
                size: to - from,
                ty: Type::INVALID,
            }));
            slots.starts.push(slots.slots.len() as u32);
        }
        slots
    }
}

/// The type in which bytes move of which nothing else is known.
fn untyped(size: u64) -> Type {
    match size {
        1 => Type::I8,
        2 => Type::I16,
        4 => Type::I32,
        8 => Type::I64,
        16 => Type::I32.with_lanes(4),
        _ => Type::INVALID,
    }
}

/// What is known of the type of a class.
#[derive(Clone, Copy)]
struct Evidence {
    /// The type of accesses of exactly the slot.
    exact: Type,
    /// Such accesses disagree.
    mixed: bool,
    /// A pointer type among them.
    pointer: Type,
    /// All such types have an image.
    convertible: bool,
    /// What larger accesses suggest.
    hint: Type,
}

/// Classes of slots that copies connect: a union-find with evidence at the roots.
struct Classes {
    parents: Vec<u32>,
    evidence: Vec<Evidence>,
}

impl Classes {
    fn new(found: &Found, slots: &Slots) -> Classes {
        let none = Evidence {
            exact: Type::INVALID,
            mixed: false,
            pointer: Type::INVALID,
            convertible: true,
            hint: Type::INVALID,
        };
        let count = slots.slots.len();
        let mut classes = Classes { parents: (0..count as u32).collect(), evidence: vec![none; count] };
        for site in &found.sites {
            if let (Some(to), Some(from)) = (found.known(site.to), found.known(site.from)) {
                for (a, b) in slots.covered(to, site.size).zip(slots.covered(from, site.size)) {
                    let (a, b) = (classes.root(a), classes.root(b));
                    classes.parents[a.max(b)] = a.min(b) as u32;
                }
            }
        }
        classes
    }

    /// The class of a slot. Halves paths as it goes.
    fn root(&mut self, mut at: usize) -> usize {
        while self.parents[at] as usize != at {
            let parent = self.parents[at] as usize;
            self.parents[at] = self.parents[parent];
            at = parent;
        }
        at
    }

    fn learn_types(&mut self, found: &Found, slots: &Slots) {
        for site in &found.sites {
            let (Kind::Load(ty) | Kind::Store(ty)) = site.kind else { continue };
            let Some(spot) = found.known(site.to.or(site.from)) else { continue };
            let covered = slots.covered(spot, site.size);
            if covered.len() == 1 {
                self.learn_exact(covered.start, ty);
                continue;
            }
            for index in covered {
                let root = self.root(index);
                let hint = &mut self.evidence[root].hint;
                if hint.is_invalid() {
                    *hint = suggested(ty, slots.slots[index].size);
                }
            }
        }
    }

    fn learn_exact(&mut self, slot: usize, ty: Type) {
        let root = self.root(slot);
        let evidence = &mut self.evidence[root];
        if evidence.exact.is_invalid() {
            evidence.exact = ty;
        }
        evidence.mixed |= evidence.exact != ty;
        evidence.convertible &= has_image(ty);
        if ty.is_ptr() && evidence.pointer.is_invalid() {
            evidence.pointer = ty;
        }
    }

    fn has_type(&mut self, slot: usize) -> bool {
        let root = self.root(slot);
        let Evidence { exact, hint, .. } = self.evidence[root];
        !exact.is_invalid() || !hint.is_invalid()
    }

    /// The type of a slot's class; invalid when it cannot be held in values.
    fn decide(&mut self, slot: usize, size: u64) -> Type {
        let root = self.root(slot);
        let evidence = self.evidence[root];
        match evidence {
            Evidence { mixed: true, convertible: false, .. } => Type::INVALID,
            Evidence { mixed: true, pointer, .. } if !pointer.is_invalid() => pointer,
            Evidence { mixed: true, .. } => untyped(size),
            // Whoever reads the slot as a part of more wants all its bits, of which some types hold fewer.
            Evidence { exact, hint, convertible: true, .. }
                if !exact.is_invalid() && !hint.is_invalid() && u64::from(exact.bits()) != size * 8 =>
            {
                untyped(size)
            }
            Evidence { exact, .. } if !exact.is_invalid() => exact,
            Evidence { hint, .. } if !hint.is_invalid() => hint,
            _ => untyped(size),
        }
    }
}

/// Marks objects as escaping that some access treats in a way that values cannot follow. The copies between such an
/// object and others become loads and stores, which slots of any type allow.
fn give_up_unsuitable(found: &mut Found, slots: &Slots) {
    let mut hopeless: Vec<u32> = Vec::new();
    for site in &found.sites {
        for spot in [site.to, site.from] {
            if let Some(spot) = found.known(spot)
                && !is_suitable(site, &slots.slots[slots.covered(spot, site.size)])
            {
                hopeless.push(spot.object);
            }
        }
    }
    hopeless.into_iter().for_each(|object| found.escape(object));
}

fn is_suitable(site: &Site, covered: &[Slot]) -> bool {
    if covered.iter().any(|slot| slot.ty.is_invalid()) {
        return false;
    }
    let all = |fits: &dyn Fn(&Slot) -> bool| covered.iter().all(fits);
    match (site.kind, covered) {
        (Kind::Copy, _) => true,
        (Kind::Set, _) => all(&|slot| is_fillable(slot.ty)),
        (Kind::Load(ty) | Kind::Store(ty), [slot]) => slot.ty == ty || has_image(slot.ty) && has_image(ty),
        (Kind::Load(ty) | Kind::Store(ty), _) if by_lanes(ty, covered) => all(&|slot| {
            let piece = lanes_type(ty, slot.size);
            slot.ty == piece || has_image(slot.ty) && has_image(piece)
        }),
        (Kind::Load(ty) | Kind::Store(ty), _) => has_image(ty) && all(&|slot| has_image(slot.ty)),
    }
}

/// True when every slot holds whole lanes of a vector.
pub fn by_lanes(ty: Type, covered: &[Slot]) -> bool {
    is_split_by_lanes(ty) && covered.iter().all(|slot| slot.size % ty.scalar().size() == 0)
}

/// The type of so many bytes of lanes of a vector.
pub fn lanes_type(ty: Type, size: u64) -> Type {
    match size / ty.scalar().size().max(1) {
        1 => ty.scalar(),
        lanes => ty.with_lanes(lanes as u32),
    }
}

/// True for vectors whose lanes lie one after the other, each in whole bytes.
fn is_split_by_lanes(ty: Type) -> bool {
    ty.is_vector() && ty.scalar_bits() != 1
}

/// What a value suggests as the type of a piece of it: lanes of a vector, or an integer.
fn suggested(ty: Type, size: u64) -> Type {
    if is_split_by_lanes(ty) && size.is_multiple_of(ty.scalar().size()) { lanes_type(ty, size) } else { untyped(size) }
}

/// Access sites by instruction.
pub fn index_sites(sites: &[Site]) -> SecondaryMap<Inst, Option<u32>> {
    let mut index = SecondaryMap::new();
    for (number, site) in sites.iter().enumerate() {
        index[site.inst] = Some(number as u32);
    }
    index
}
