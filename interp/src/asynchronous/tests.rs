use ptxc_ir::Space;

use super::*;
use crate::memory::{Access, Kind};

#[test]
fn phases_count_arrivals_and_transactions() {
    let mut b = Barrier::new(2, Layout::V0).unwrap();
    let first = b.state();
    assert_eq!(b.arrive(1), Ok(false));
    assert_eq!(Barrier::pending_count(b.state()), 1);
    b.expect(64).unwrap();
    assert_eq!(b.arrive(1), Ok(false));
    assert_eq!((b.test(Phase::State(first)), b.test(Phase::Parity(false))), (Ok(false), Ok(false)));
    assert_eq!(b.test(Phase::Parity(true)), Ok(true), "the phase before the first");
    assert_eq!(b.complete(32), Ok(false));
    assert_eq!(b.complete(32), Ok(true));
    assert_eq!((b.test(Phase::State(first)), b.test(Phase::Parity(false))), (Ok(true), Ok(true)));
    assert_eq!(b.test(Phase::Parity(true)), Ok(false));
    assert_eq!(b.outstanding(), (2, 0));
    assert_eq!(b.arrive(2), Ok(true));
    assert_eq!(b.test(Phase::State(first)), Err(Misuse::Stale { asked: 0, current: 2 }));
}

#[test]
fn transactions_may_complete_before_they_are_expected() {
    let mut b = Barrier::new(1, Layout::V0).unwrap();
    assert_eq!(b.complete(16), Ok(false));
    b.expect(16).unwrap();
    assert_eq!(b.arrive(1), Ok(true));
}

#[test]
fn misuses_of_barriers() {
    assert_eq!(Barrier::new(0, Layout::V0), Err(Misuse::Count(0)));
    assert_eq!(Barrier::new(1 << 20, Layout::V0), Err(Misuse::Count(1 << 20)));
    assert_eq!(Barrier::new(512, Layout::V1), Err(Misuse::Count(512)));
    let mut b = Barrier::new(3, Layout::V0).unwrap();
    assert_eq!(b.arrive(4), Err(Misuse::TooMany { count: 4, pending: 3 }));
    assert_eq!(b.arrive(0), Err(Misuse::Count(0)));
    assert_eq!(b.arrive_drop(1), Ok(false));
    assert_eq!(b.arrive(2), Ok(true));
    assert_eq!(b.outstanding(), (2, 0), "one fewer");
    assert_eq!(b.arrive_drop(2), Err(Misuse::Empty));
    b.await_one().unwrap();
    assert_eq!(b.outstanding(), (3, 0));
    assert_eq!(b.expect(1 << 20), Err(Misuse::Transactions(1 << 20)));
}

#[test]
fn elements_are_combined() {
    let s32 = ElementType::parse("s32").unwrap();
    let u32 = ElementType::parse("u32").unwrap();
    assert_eq!(s32.combine(Combine::Min, 0xffff_ffff, 1), 0xffff_ffff);
    assert_eq!(u32.combine(Combine::Min, 0xffff_ffff, 1), 1);
    assert_eq!(u32.combine(Combine::Add, 0xffff_ffff, 2), 1);
    assert_eq!(u32.combine(Combine::Inc, 7, 7), 0);
    assert_eq!(u32.combine(Combine::Inc, 6, 7), 7);
    assert_eq!(u32.combine(Combine::Dec, 0, 7), 7);
    assert_eq!(u32.combine(Combine::Dec, 9, 7), 7);
    let f16 = ElementType::parse("f16").unwrap();
    assert_eq!(f16.combine(Combine::Add, 0x3c00, 0x3c00), 0x4000);
    assert_eq!(ElementType::parse("b16"), None);
    let old = Bytes::known(vec![1, 0, 0, 0, 2, 0, 0, 0]);
    assert_eq!(u32.combine_all(Combine::Max, &old, &old), old);
}

/// Global bytes 0, 1, 2 …, one block of two warps with 256 bytes of shared memory, and an output.
struct Scene {
    memory: Memory,
    operations: Asynchronous,
    global: u64,
    output: u64,
    shared: u64,
}

fn scene(completion: Completion) -> Scene {
    let mut memory = Memory::new(0xa5, true);
    let global = memory.allocate_global("x", 256, 16);
    memory.initialize(Space::Global, global, &(0..=255).collect::<Vec<u8>>()).unwrap();
    let output = memory.allocate_global("y", 256, 16);
    memory.initialize(Space::Global, output, &[0; 256]).unwrap();
    let mut layout = memory.shared_layout();
    let shared = layout.allocate(256, 16);
    memory.start_block(0, &layout, 64, (0, 1));
    Scene { memory, operations: Asynchronous::new(completion), global, output, shared }
}

fn thread(thread: u32, epoch: u32) -> Accessor {
    Accessor { thread, epoch, place: 100 + thread, ..Accessor::default() }
}

impl Scene {
    fn extent(space: Space, address: u64, size: u64) -> Extent {
        Extent { space, address, size, align: 4 }
    }

    /// Begins a copy from global to shared memory.
    fn load(&mut self, from: u64, to: u64, size: u64, who: &Accessor) -> Result<(), Trouble> {
        let source = Scene::extent(Space::Global, self.global + from, size);
        let target = Scene::extent(Space::Shared, self.shared + to, size);
        let request = Request { mechanism: Some(Mechanism::Copies), ..Request::copy(source, target) };
        self.operations.begin(request, &mut self.memory, who)
    }

    /// Begins a bulk copy to shared memory that tells the mbarrier object at `bar`.
    fn bulk(&mut self, from: u64, to: u64, size: u64, bar: u64, who: &Accessor) -> Result<(), Trouble> {
        let source = Scene::extent(Space::Global, self.global + from, size);
        let target = Scene::extent(Space::Shared, self.shared + to, size);
        let barrier = Some((0, self.shared + bar));
        self.operations.begin(Request { barrier, ..Request::copy(source, target) }, &mut self.memory, who)
    }

    fn read(&mut self, at: u64, who: &Accessor) -> Result<u128, Fault> {
        let access = Access { space: Space::Shared, address: self.shared + at, size: 4, align: 4 };
        self.memory.load(&access, who, Kind::Plain).map(|l| l.bits)
    }

    fn write(&mut self, space: Space, address: u64, who: &Accessor) -> Result<(), Fault> {
        let access = Access { space, address, size: 4, align: 4 };
        self.memory.store(&access, 7, false, who, Kind::Plain)
    }

    fn wait(&mut self, pending: u32, who: &Accessor) {
        self.operations.wait(Mechanism::Copies, pending, false, &mut self.memory, who).unwrap();
    }

    fn test(&mut self, bar: u64, phase: Phase, who: &Accessor) -> Result<bool, Trouble> {
        self.operations.test((0, self.shared + bar), phase, &mut self.memory, who)
    }
}

#[test]
fn groups_complete_in_order_and_not_before_they_are_waited_for() {
    for completion in [Completion::Late, Completion::Random(3)] {
        let mut s = scene(completion);
        let me = thread(0, 0);
        s.load(0, 0, 16, &me).unwrap();
        s.operations.commit(Mechanism::Copies, &me);
        s.load(16, 16, 16, &me).unwrap();
        s.operations.commit(Mechanism::Copies, &me);
        for _ in 0..16 {
            s.operations.pass(&mut s.memory).unwrap();
        }
        assert_eq!(s.read(0, &me), Err(Fault::InFlight { other: 100, writes: true }));
        s.wait(1, &me);
        assert_eq!(s.read(0, &me), Ok(0x0302_0100));
        assert!(s.read(16, &me).is_err());
        s.wait(0, &me);
        assert_eq!(s.read(16, &me), Ok(0x1312_1110));
        // For others the waiting thread's barrier counts.
        assert!(matches!(s.read(0, &thread(40, 0)), Err(Fault::Race { other: 100, .. })));
        assert_eq!(s.read(0, &thread(40, 1)), Ok(0x0302_0100));
    }
}

#[test]
fn sources_must_stay_and_targets_are_out_of_reach() {
    let mut s = scene(Completion::Late);
    let me = thread(0, 0);
    s.load(0, 0, 16, &me).unwrap();
    let global = s.global;
    assert_eq!(s.write(Space::Global, global + 12, &me), Err(Fault::InFlight { other: 100, writes: false }));
    assert_eq!(s.write(Space::Global, global + 16, &me), Ok(()));
    let shared = s.shared;
    assert_eq!(s.write(Space::Shared, shared, &me), Err(Fault::InFlight { other: 100, writes: true }));
    assert_eq!(s.load(64, 12, 4, &thread(0, 0)).unwrap_err().other, Some(100), "two to one place");
    assert!(s.load(252, 32, 8, &me).is_err(), "out of bounds");
    assert!(s.load(2, 32, 4, &me).is_err(), "misaligned");
    // Another thread still reads what is overwritten: reported at the copy.
    s.write(Space::Shared, shared + 64, &thread(1, 0)).unwrap();
    assert!(s.load(0, 64, 16, &thread(40, 0)).is_err());
}

#[test]
fn bytes_that_are_not_copied_become_zero() {
    let mut s = scene(Completion::Late);
    let me = thread(0, 0);
    let source = Scene::extent(Space::Global, s.global + 4, 4);
    let target = Scene::extent(Space::Shared, s.shared, 8);
    let tail = Bytes::known(vec![0; 4]);
    let request = Request { tail, mechanism: Some(Mechanism::Copies), ..Request::copy(source, target) };
    s.operations.begin(request, &mut s.memory, &me).unwrap();
    s.operations.commit(Mechanism::Copies, &me);
    s.wait(0, &me);
    assert_eq!((s.read(0, &me), s.read(4, &me)), (Ok(0x0706_0504), Ok(0)));
}

#[test]
fn bulk_copies_tell_their_barrier() {
    let mut s = scene(Completion::Late);
    let (me, other) = (thread(0, 0), thread(40, 0));
    let bar = (0, s.shared + 128);
    assert!(s.bulk(0, 0, 32, 128, &me).is_err(), "no object");
    s.operations.initialize(bar, 1, Layout::V0, &mut s.memory, &me).unwrap();
    assert!(s.operations.initialize(bar, 1, Layout::V0, &mut s.memory, &me).is_err());
    assert_eq!(s.read(128, &me), Err(Fault::Barrier { address: bar.1 }));
    assert!(s.test(128, Phase::Parity(false), &other).is_err(), "nothing orders it after the initialization");
    let other = thread(40, 1);
    let arrival = Arrival { expect: Some(64), ..Arrival::default() };
    s.operations.arrive(bar, arrival, &mut s.memory, &me).unwrap();
    s.bulk(0, 0, 32, 128, &me).unwrap();
    s.bulk(32, 32, 32, 128, &me).unwrap();
    assert_eq!(s.test(128, Phase::Parity(false), &other), Ok(false));
    assert!(matches!(s.read(0, &other), Err(Fault::InFlight { .. })), "done, but the phase is not complete");
    assert_eq!(s.test(128, Phase::Parity(false), &other), Ok(false));
    assert_eq!(s.test(128, Phase::Parity(false), &other), Ok(true));
    let waited = Accessor { synchronized: true, ..other };
    assert_eq!(s.read(32, &waited), Ok(0x2322_2120));
    assert!(matches!(s.read(0, &other), Err(Fault::Race { .. })), "has not waited");
    assert_eq!(s.read(0, &thread(3, 2)), Ok(0x0302_0100), "has met one that waited");
}

#[test]
fn copies_arrive_at_a_barrier() {
    for completion in [Completion::Late, Completion::Random(11)] {
        let mut s = scene(completion);
        let me = thread(0, 0);
        let bar = (0, s.shared + 128);
        s.operations.initialize(bar, 1, Layout::V0, &mut s.memory, &me).unwrap();
        s.load(0, 0, 16, &me).unwrap();
        s.load(16, 16, 16, &me).unwrap();
        s.operations.arrive_after_copies(bar, false, &mut s.memory, &me).unwrap();
        let state = s.operations.arrive(bar, Arrival::default(), &mut s.memory, &me).unwrap();
        let polls = (0..9).find(|_| s.test(128, Phase::State(state), &me) == Ok(true)).unwrap();
        assert!(polls > 0);
        assert_eq!(s.read(16, &Accessor { synchronized: true, ..me }), Ok(0x1312_1110));
        s.operations.commit(Mechanism::Copies, &me);
        s.wait(0, &me);
    }
}

#[test]
fn bulk_groups_read_before_they_write() {
    let mut s = scene(Completion::Late);
    let me = thread(0, 0);
    let (shared, output) = (s.shared, s.output);
    for at in (0..16).step_by(4) {
        s.write(Space::Shared, shared + at, &me).unwrap();
    }
    let source = Scene::extent(Space::Shared, shared, 16);
    let target = Scene::extent(Space::Global, output, 16);
    let request = Request {
        mechanism: Some(Mechanism::Bulk),
        reduce: Some((Combine::Add, ElementType::Integer { signed: false, bits: 32 })),
        ..Request::copy(source, target)
    };
    for _ in 0..2 {
        s.operations.begin(request.clone(), &mut s.memory, &me).unwrap();
    }
    s.operations.commit(Mechanism::Bulk, &me);
    assert!(s.write(Space::Shared, shared, &me).is_err(), "is still read");
    let mut ended = Scene { memory: s.memory.clone(), operations: s.operations.clone(), ..s };
    let trouble = ended.operations.end_block(0, &mut ended.memory).unwrap_err();
    assert_eq!(trouble.other, Some(100));
    s.operations.wait(Mechanism::Bulk, 0, true, &mut s.memory, &me).unwrap();
    s.write(Space::Shared, shared, &me).unwrap();
    assert_eq!(s.memory.global_bytes(output).unwrap()[0], 0, "not written yet");
    s.operations.end_block(0, &mut s.memory).unwrap();
    assert_eq!(s.memory.global_bytes(output).unwrap()[..8], [14, 0, 0, 0, 14, 0, 0, 0]);
}

#[test]
fn masks_choose_bytes() {
    let mut s = scene(Completion::Late);
    let me = thread(0, 0);
    let source = Scene::extent(Space::Global, s.global + 16, 32);
    let target = Scene::extent(Space::Global, s.output, 32);
    let request = Request { mask: 0x0101, mechanism: Some(Mechanism::Bulk), ..Request::copy(source, target) };
    s.operations.begin(request, &mut s.memory, &me).unwrap();
    s.operations.end_block(0, &mut s.memory).unwrap();
    let bytes = s.memory.global_bytes(s.output).unwrap();
    assert_eq!(bytes.iter().map(|b| u32::from(*b)).sum::<u32>(), 16 + 24 + 32 + 40);
    assert_eq!((bytes[0], bytes[8], bytes[24]), (16, 24, 40));
}

#[test]
fn waits_that_never_end_are_reported() {
    let mut s = scene(Completion::Late);
    let me = thread(0, 0);
    let bar = (0, s.shared);
    s.operations.initialize(bar, 2, Layout::V0, &mut s.memory, &me).unwrap();
    s.operations.arrive(bar, Arrival::default(), &mut s.memory, &me).unwrap();
    let trouble = (0..=super::PATIENCE).find_map(|_| s.test(0, Phase::Parity(false), &me).err()).unwrap();
    assert!(trouble.message.contains("1 arrivals and 0 bytes are missing"), "{}", trouble.message);
    s.operations.invalidate(bar, &mut s.memory, &me).unwrap();
    assert!(s.test(0, Phase::Parity(false), &me).is_err());
    s.write(Space::Shared, bar.1, &me).unwrap();
}
