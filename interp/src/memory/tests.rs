use super::*;

fn who(block: u32, thread: u32, epoch: u32) -> Accessor {
    Accessor { slot: block as usize, block, thread, epoch, ..Accessor::default() }
}

fn access(space: Space, address: u64, size: u32) -> Access {
    Access { space, address, size, align: 1 }
}

#[test]
fn bounds_alignment_and_state() {
    let mut memory = Memory::new(0xa5, true);
    let a = memory.allocate_global("a", 10, 4);
    let b = memory.allocate_global("b", 8, 4);
    let me = who(0, 0, 0);
    let loaded = memory.load(&access(Space::Global, a + 8, 2), &me, Kind::Plain).unwrap();
    assert_eq!((loaded.bits, loaded.uninitialized, loaded.poison), (0xa5a5, true, false));
    memory.store(&access(Space::Generic, a + 6, 4), 0x1122_3344, false, &me, Kind::Plain).unwrap();
    let loaded = memory.load(&access(Space::Global, a + 7, 2), &me, Kind::Plain).unwrap();
    assert_eq!((loaded.bits, loaded.uninitialized), (0x2233, false));
    memory.store(&access(Space::Global, b, 8), 7, true, &me, Kind::Plain).unwrap();
    assert!(memory.load(&access(Space::Global, b + 4, 1), &me, Kind::Plain).unwrap().poison);
    let fault = memory.load(&access(Space::Global, a + 7, 4), &me, Kind::Plain).unwrap_err();
    let text =
        "access of 4 bytes at 0x100000000007 of global memory is out of bounds: byte 7 of `a`, which has 10 bytes";
    assert_eq!(fault.to_string(), text);
    let aligned = Access { align: 4, ..access(Space::Global, a + 2, 4) };
    assert_eq!(memory.load(&aligned, &me, Kind::Plain), Err(Fault::Misaligned { address: a + 2, align: 4 }));
    for address in [0, a - 1, b + 8, u64::MAX, u64::MAX - 3, SHARED_WINDOW, LOCAL_WINDOW, CONST_WINDOW] {
        assert!(memory.load(&access(Space::Generic, address, 4), &me, Kind::Plain).is_err(), "{address:x}");
    }
}

#[test]
fn spaces_and_windows() {
    let mut memory = Memory::new(0, false);
    let table = memory.allocate_const(4, 4);
    memory.initialize(Space::Const, table, &[1, 2, 3, 4]).unwrap();
    let mut shared = memory.shared_layout();
    let x = shared.allocate(4, 4);
    let y = shared.allocate(4, 4);
    memory.start_block(0, &shared, 2, (0, 2));
    memory.start_block(1, &shared, 2, (0, 2));
    let (first, second) = (who(0, 0, 0), who(1, 1, 0));
    let read = |memory: &mut Memory, space, address, who: &Accessor| {
        memory.load(&access(space, address, 4), who, Kind::Plain).map(|l| l.bits)
    };
    assert_eq!(read(&mut memory, Space::Generic, to_generic(Space::Const, table), &first), Ok(0x0403_0201));
    let fault = memory.store(&access(Space::Const, table, 1), 0, false, &first, Kind::Plain);
    assert_eq!(fault, Err(Fault::ReadOnly { space: Space::Const }));
    // Each block has its own, and sees the other's through the cluster.
    memory.store(&access(Space::Shared, x, 4), 11, false, &first, Kind::Plain).unwrap();
    memory.store(&access(Space::SharedCluster, x, 4), 22, false, &second, Kind::Plain).unwrap();
    assert_eq!(read(&mut memory, Space::SharedCluster, x + (2 << 24), &first), Ok(22));
    assert_eq!(read(&mut memory, Space::Generic, to_generic(Space::SharedCluster, x + (1 << 24)), &second), Ok(11));
    assert!(read(&mut memory, Space::SharedCluster, x + (3 << 24), &first).is_err());
    assert!(read(&mut memory, Space::Shared, x + (1 << 24), &first).is_err());
    assert!(read(&mut memory, Space::Shared, x + 4, &first).is_err(), "between {x} and {y}");
    // Stacks.
    let mark = memory.local_mark(1, 1);
    let p = memory.push_local(1, 1, 8, 8).unwrap();
    memory.store(&access(Space::Local, p, 4), 5, false, &second, Kind::Plain).unwrap();
    assert_eq!(read(&mut memory, Space::Generic, to_generic(Space::Local, p), &second), Ok(5));
    assert!(read(&mut memory, Space::Local, p, &first).is_err());
    memory.pop_local(1, 1, mark);
    assert!(read(&mut memory, Space::Local, p, &second).is_err());
}

#[test]
fn races() {
    let mut memory = Memory::new(0, true);
    let a = memory.allocate_global("a", 8, 4);
    let store = |memory: &mut Memory, who: Accessor, value, kind| {
        memory.store(&access(Space::Global, a, 4), value, false, &who, kind)
    };
    let load = |memory: &mut Memory, who: Accessor| memory.load(&access(Space::Global, a, 4), &who, Kind::Plain);
    store(&mut memory, Accessor { place: 9, ..who(0, 3, 0) }, 1, Kind::Plain).unwrap();
    assert_eq!(load(&mut memory, who(0, 40, 0)), Err(Fault::Race { other: 9, thread: (0, 3), other_writes: true }));
    assert!(load(&mut memory, who(0, 4, 0)).is_err(), "same warp");
    assert!(load(&mut memory, Accessor { warp_epoch: 1, ..who(0, 4, 0) }).is_ok(), "the warp has met");
    assert!(load(&mut memory, who(0, 40, 1)).is_ok(), "after a barrier");
    assert!(load(&mut memory, who(1, 40, 1)).is_err(), "another block");
    assert!(load(&mut memory, Accessor { synchronized: true, ..who(1, 40, 1) }).is_ok());
    assert!(store(&mut memory, who(0, 41, 1), 2, Kind::Plain).is_err(), "was read by 40 after the barrier");
    // Different bytes of one word.
    let byte = |memory: &mut Memory, thread, at| {
        memory.store(&access(Space::Global, a + 4 + at, 1), 3, false, &who(0, thread, 0), Kind::Plain)
    };
    byte(&mut memory, 0, 0).unwrap();
    byte(&mut memory, 1, 1).unwrap();
    let b = memory.allocate_global("b", 4, 4);
    let store = |memory: &mut Memory, thread, value, kind| {
        memory.store(&access(Space::Global, b, 4), value, false, &who(0, thread, 5), kind)
    };
    store(&mut memory, 1, 4, Kind::Atomic).unwrap();
    store(&mut memory, 50, 5, Kind::Atomic).unwrap();
    assert!(store(&mut memory, 51, 6, Kind::Plain).is_err());
}

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) % limit
    }
}

/// What the lanes of a wave do one after the other, until one faults.
fn one_by_one(
    memory: &mut Memory,
    wave: &Wave<'_>,
    store: bool,
    values: &mut [u64; 32],
) -> Result<u32, (usize, Fault)> {
    for lane in (0..32).filter(|lane| wave.mask >> lane & 1 != 0) {
        let address = wave.addresses[lane].wrapping_add_signed(wave.offset);
        let access = Access { space: wave.space, address, size: wave.size, align: wave.align };
        let synchronized = wave.synchronized >> lane & 1 != 0;
        let who = Accessor { thread: wave.who.thread + lane as u32, synchronized, ..wave.who };
        if store {
            memory.store(&access, values[lane].into(), false, &who, wave.kind).map_err(|fault| (lane, fault))?;
        } else {
            values[lane] = memory.load(&access, &who, wave.kind).map_err(|fault| (lane, fault))?.bits as u64;
        }
    }
    Ok(wave.mask)
}

#[test]
fn waves_do_what_lanes_do_in_turn() {
    let mut random = Random(7);
    let (mut quick, mut slow, mut faults) = (0, 0, 0);
    for round in 0..400 {
        let mut memory = Memory::new(0xa5, round % 4 != 0);
        let starts = [memory.allocate_global("a", 1030, 4), memory.allocate_global("b", 2048, 16)];
        let mut shared = memory.shared_layout();
        let base = shared.allocate(1000, 16);
        memory.start_block(0, &shared, 64, (0, 1));
        (0..64).for_each(|thread| assert!(memory.push_local(0, thread, 500, 8).is_some()));
        let constant = memory.allocate_const(512, 16);
        memory.initialize(Space::Const, constant, &[1; 512]).unwrap();
        let mut other = memory.clone();
        for step in 0..12 {
            let (space, start) = match random.below(8) {
                0..3 => (Space::Global, starts[random.below(2) as usize]),
                3 => (Space::Generic, starts[1]),
                4 => (Space::Shared, base),
                5 => (Space::Generic, to_generic(Space::Shared, base)),
                6 => (Space::Local, 0x10),
                _ => (Space::Const, constant),
            };
            let size = 1 << random.below(4);
            let spread = 1 + random.below(3);
            let addresses = std::array::from_fn(|lane| {
                start + random.below(spread) * 4 * u64::from(size) + lane as u64 * u64::from(size)
            });
            let kind = if random.below(4) == 0 { Kind::Atomic } else { Kind::Plain };
            let first_thread = 32 * random.below(2) as u32;
            let who = Accessor {
                epoch: step - u32::from(random.below(8) == 0 && step > 0),
                warp_epoch: step,
                place: step,
                ..who(0, first_thread, 0)
            };
            let align = if random.below(2) == 0 { u64::from(size) } else { 1 };
            let (offset, mask) = (random.below(8) as i64 - 2, (random.below(1 << 32) as u32) | 1);
            let offset = if random.below(16) != 0 { i64::from(size) * random.below(3) as i64 } else { offset };
            let wave = Wave { space, addresses: &addresses, offset, mask, size, align, who, synchronized: 0, kind };
            let store = random.below(2) == 0 && (space != Space::Const || random.below(8) == 0);
            let mut values = std::array::from_fn(|_| random.below(3));
            let mut expected = values;
            let want = one_by_one(&mut other, &wave, store, &mut expected);
            let done = if store { memory.store_wave(&wave, &values) } else { memory.load_wave(&wave, &mut values) };
            let rest = Wave { mask: mask & !done, ..wave };
            let got = one_by_one(&mut memory, &rest, store, &mut values);
            quick += done.count_ones();
            slow += rest.mask.count_ones();
            assert_eq!(got.as_ref().err(), want.as_ref().err(), "{wave:?}");
            if got.is_err() {
                faults += 1;
                break;
            }
            assert_eq!(values, expected, "{wave:?}");
        }
        for start in starts {
            assert_eq!(memory.global_bytes(start), other.global_bytes(start));
        }
    }
    assert!(quick > 10_000 && slow > 1000 && (50..390).contains(&faults), "{quick} {slow} {faults}");
}
