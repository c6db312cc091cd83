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
