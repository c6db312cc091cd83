//! The machine models: classes of instructions, what they cost, what a multiprocessor holds.

#![allow(clippy::unwrap_used)]

use ptxc_targets::timing::{Class, LaunchBounds, Limit, Model};
use ptxc_targets::{Target, Tok, sample};
use std::collections::BTreeSet;

fn toks(mnemonic: &str) -> Vec<Tok> {
    mnemonic.split('.').map(|piece| Tok::from_text(piece).unwrap_or_else(|| panic!("no piece {piece}"))).collect()
}

fn model(target: &str) -> &'static Model {
    Model::of(target.parse().unwrap())
}

/// The mnemonics of `count` statements of every form, as pieces.
fn mnemonics(seed: u64, count: usize) -> Vec<Vec<Tok>> {
    let mut random = sample::Random::new(seed);
    let mut found = Vec::new();
    for form in 0..sample::form_count() {
        for statement in (0..count).filter_map(|_| sample::statement(form, &mut random)) {
            let mnemonic = statement.split([' ', ';']).next().unwrap_or("");
            found.push(toks(mnemonic));
        }
    }
    found
}

#[test]
fn every_form_has_a_class_and_every_class_a_form() {
    let mut unused: BTreeSet<Class> = Class::all().collect();
    for toks in mnemonics(1, 30) {
        unused.remove(&Class::of(&toks));
    }
    // What a mnemonic does not tell from a copy.
    assert_eq!(unused.into_iter().collect::<Vec<_>>(), [Class::SPECIAL_REGISTER]);
}

#[test]
fn every_cost_is_sensible_on_every_machine() {
    for toks in mnemonics(2, 4) {
        for model in Model::all() {
            let timing = model.timing(&toks);
            let free = timing.class.name() == "rename";
            assert!(free || timing.latency.min(timing.interval).min(timing.issue) > 0, "{} {toks:?}", model.name());
            assert!(timing.latency >= timing.issue, "{} {toks:?} {timing:?}", model.name());
        }
    }
}

#[test]
fn instructions_are_of_the_classes_one_expects() {
    for (mnemonic, class) in [
        ("add.s32", "integer_sum"),
        ("add.s64", "integer_pair"),
        ("add.cc.u32", "integer_sum"),
        ("add.f64", "double"),
        ("add.rn.ftz.f32x2", "float_pair"),
        ("fma.rn.f32.f16.f16", "float_mixed"),
        ("fma.rn.f16x2", "half"),
        ("mad.lo.s32", "multiply"),
        ("mul.wide.s32", "multiply_wide"),
        ("mul.hi.s32", "multiply_high"),
        ("mul.lo.u64", "multiply_long"),
        ("div.rn.f32", "float_divide"),
        ("div.full.f32", "float_divide_approx"),
        ("div.u64", "divide_long"),
        ("rem.s32", "divide"),
        ("sqrt.rn.f64", "double_root"),
        ("rcp.approx.ftz.f32", "approximate"),
        ("ex2.approx.f32", "approximate_scaled"),
        ("setp.lt.and.f32", "float_compare"),
        ("setp.lt.s64", "integer_pair"),
        ("and.pred", "predicate"),
        ("mov.b64", "move_pair"),
        ("cvt.rn.f32.s32", "convert_from_integer"),
        ("cvt.rni.f32.f32", "convert_round"),
        ("cvt.rni.s32.f32", "convert"),
        ("cvt.rn.bf16x2.f32", "convert_half"),
        ("cvt.f32.f16", "convert_half"),
        ("cvt.u64.u32", "rename"),
        ("cvt.s64.s32", "convert_integer"),
        ("cvt.rn.f64.s64", "convert_double"),
        ("cvt.rn.f32.s64", "convert_long"),
        ("cvt.rn.satfinite.e4m3x2.f32", "convert_narrow"),
        ("ld.shared.v4.b32", "load_shared"),
        ("ld.shared::cluster.b32", "load_cluster"),
        ("ld.global.nc.b32", "load_global"),
        ("ld.global.ca.b32", "load_cached"),
        ("ld.param.b64", "load_constant"),
        ("ld.b32", "load_global"),
        ("ld.acquire.gpu.global.b32", "load_acquire"),
        ("atom.shared.add.u32", "atomic_shared"),
        ("atom.shared.cas.b32", "atomic_swap_shared"),
        ("atom.shared.add.f32", "atomic_loop_shared"),
        ("red.global.add.f32", "reduce_global"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16", "load_matrix"),
        ("cp.async.cg.shared.global", "copy_async"),
        ("cp.async.commit_group", "copy_async_commit"),
        ("cp.async.bulk.wait_group.read", "bulk_wait"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes", "tensor_load"),
        ("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group", "tensor_store"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", "bulk_load"),
        ("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes", "bulk_cluster"),
        ("mbarrier.try_wait.parity.shared::cta.b64", "mbarrier_wait"),
        ("mbarrier.arrive.expect_tx.shared::cta.b64", "mbarrier_arrive"),
        ("bar.sync", "barrier"),
        ("bar.warp.sync", "barrier_warp"),
        ("fence.proxy.async", "fence_proxy"),
        ("membar.gl", "fence_gpu"),
        ("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32", "mma_f32_k16"),
        ("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16", "mma_f16_k16"),
        ("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32", "mma_tf32_k8"),
        ("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32", "mma_i8_k32"),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32", "mma_f8_k32"),
        ("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64", "mma_f64_k4"),
        ("wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16", "wgmma_half"),
        ("wgmma.mma_async.sync.aligned.m64n128k32.f16.e4m3.e4m3", "wgmma_byte"),
        ("tcgen05.mma.cta_group::1.kind::f16", "tcgen05_mma"),
        ("tcgen05.ld.sync.aligned.32x32b.x8.b32", "tcgen05_load"),
        ("tcgen05.wait::ld.sync.aligned", "tcgen05_wait"),
        ("bra.uni", "branch"),
    ] {
        assert_eq!(Class::of(&toks(mnemonic)).name(), class, "{mnemonic}");
    }
}

#[test]
fn costs_grow_with_width_and_shape() {
    let latency = |mnemonic: &str| model("sm_90a").timing(&toks(mnemonic)).latency;
    let interval = |mnemonic: &str| model("sm_90a").timing(&toks(mnemonic)).interval;
    assert!(latency("ld.shared.v4.b32") > latency("ld.shared.b32"));
    assert_eq!(latency("ld.shared.v2.b64"), latency("ld.shared.v4.b32"));
    assert!(
        interval("ldmatrix.sync.aligned.m8n8.x4.shared.b16") > interval("ldmatrix.sync.aligned.m8n8.x1.shared.b16")
    );
    let wide = interval("wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16");
    assert_eq!(wide, 8 * interval("wgmma.mma_async.sync.aligned.m64n32k16.f32.bf16.bf16"));
}

#[test]
fn machines_differ_where_they_do() {
    let interval = |target: &str, mnemonic: &str| model(target).timing(&toks(mnemonic)).interval;
    assert!(interval("sm_86", "fma.rn.f32") < interval("sm_80", "fma.rn.f32"));
    assert!(interval("sm_80", "fma.rn.f64") < interval("sm_86", "fma.rn.f64"));
    assert!(interval("sm_90", "fma.rn.f64") < interval("sm_75", "fma.rn.f64"));
    assert_eq!(model("sm_90").name(), model("sm_90a").name());
    assert_ne!(model("sm_100").name(), model("sm_120").name());
    for &target in Target::ALL {
        let model = Model::of(target);
        assert!(model.shared_bytes() >= target.max_shared_bytes(), "{target}");
    }
}

/// What `cuOccupancyMaxActiveBlocksPerMultiprocessor` says on an H200 without shared memory: registers, then blocks of
/// 32, 64, 96, 128, 160, 256, 384, 512 and 1024 threads.
const BLOCKS_OF_AN_H200: [(u32, [u32; 9]); 8] = [
    (32, [32, 32, 21, 16, 12, 8, 5, 4, 2]),
    (40, [32, 24, 16, 12, 9, 6, 4, 3, 1]),
    (64, [32, 16, 10, 8, 6, 4, 2, 2, 1]),
    (72, [28, 14, 9, 7, 5, 3, 2, 1, 0]),
    (96, [20, 10, 6, 5, 4, 2, 1, 1, 0]),
    (128, [16, 8, 5, 4, 3, 2, 1, 1, 0]),
    (168, [12, 6, 4, 3, 2, 1, 1, 0, 0]),
    (254, [8, 4, 2, 2, 1, 1, 0, 0, 0]),
];

#[test]
fn occupancy_is_that_of_the_driver() {
    let hopper = model("sm_90");
    for (registers, by_threads) in BLOCKS_OF_AN_H200 {
        for (threads, blocks) in [32, 64, 96, 128, 160, 256, 384, 512, 1024].into_iter().zip(by_threads) {
            assert_eq!(
                hopper.occupancy(registers, 0, threads).blocks,
                blocks,
                "{registers} registers, {threads} threads"
            );
        }
    }
    // Of 32 registers and 32 threads, by bytes of shared memory.
    for (shared, blocks) in [(1024, 32), (9000, 23), (20000, 11), (48 << 10, 4), (100 << 10, 2), (227 << 10, 1)] {
        assert_eq!(hopper.occupancy(32, shared, 32).blocks, blocks, "{shared} bytes");
    }
    let blocks = |registers, shared, threads| hopper.occupancy(registers, shared, threads).blocks;
    assert_eq!(blocks(32, 0, 256), 8);
    assert_eq!(blocks(128, 0, 256), 2);
    assert_eq!(blocks(255, 0, 256), 1);
    assert_eq!(blocks(64, 0, 96), 10);
    assert_eq!(blocks(16, 0, 32), 32);
    assert_eq!(blocks(16, 48 * 1024, 128), 4);
    assert_eq!(blocks(16, 227 * 1024, 128), 1);
    assert_eq!(hopper.occupancy(255, 0, 1024).blocks, 0);
    assert_eq!(hopper.occupancy(128, 0, 256).limit, Limit::Registers);
    assert_eq!(hopper.occupancy(16, 100 * 1024, 128).limit, Limit::Shared);
    assert_eq!(hopper.occupancy(16, 0, 32).limit, Limit::Blocks);
    assert_eq!(model("sm_75").occupancy(16, 0, 1024).warps, 32);
}

#[test]
fn budgets_keep_the_promised_blocks() {
    let hopper = model("sm_90");
    let budget = |threads, blocks, registers| hopper.register_budget(LaunchBounds { threads, blocks, registers });
    assert_eq!(budget(None, None, None), 64);
    assert_eq!(budget(Some(1024), None, None), 64);
    assert_eq!(budget(Some(256), None, None), 255);
    assert_eq!(budget(Some(256), Some(2), None), 128);
    assert_eq!(budget(Some(128), Some(5), None), 96);
    assert_eq!(budget(Some(128), None, Some(40)), 40);
    assert_eq!(budget(Some(1024), Some(1000), None), 32);
    for threads in (32..=1024).step_by(32) {
        for blocks in 1..=2048 / threads {
            let registers = budget(Some(threads), Some(blocks), None);
            assert!(hopper.occupancy(registers, 0, threads).blocks >= blocks.min(32), "{threads} {blocks} {registers}");
        }
    }
}
