//! Special registers (PTX ISA, chapter 10).

use ptxc_targets::SpecialReg;

use super::{Identity, LANES, Lanes, World};

/// The value of a special register of one lane, for every lane of a warp.
///
/// # Errors
/// The register is not executed.
pub fn special(register: SpecialReg, world: &World<'_>, who: &Identity) -> Result<Lanes, String> {
    let name = register.name().strip_prefix('%').unwrap_or(register.name());
    let (stem, axis) = match name.split_once('.') {
        Some((stem, "x")) => (stem, 0),
        Some((stem, "y")) => (stem, 1),
        Some((stem, "z")) => (stem, 2),
        _ => (name, 0),
    };
    let (launch, team) = (world.launch, &*world.team);
    let block = launch.block;
    let volume = |x: [u32; 3]| x[0] * x[1] * x[2];
    let each = |f: &dyn Fn(u32) -> u64| Ok(std::array::from_fn(|lane| f(lane as u32)));
    let same = |value: u64| Ok([value; LANES]);
    match stem {
        "tid" => each(&|lane| {
            let linear = who.first_thread + lane;
            [linear % block[0], linear / block[0] % block[1], linear / block[0] / block[1]][axis].into()
        }),
        "ntid" => same(block[axis].into()),
        "ctaid" => same(team.id[axis].into()),
        "nctaid" => same(launch.grid[axis].into()),
        "clusterid" => same((team.id[axis] / launch.cluster[axis]).into()),
        "nclusterid" => same((launch.grid[axis] / launch.cluster[axis]).into()),
        "cluster_ctaid" => same((team.id[axis] % launch.cluster[axis]).into()),
        "cluster_nctaid" => same(launch.cluster[axis].into()),
        "cluster_ctarank" => same(team.rank.into()),
        "cluster_nctarank" => same(volume(launch.cluster).into()),
        "is_explicit_cluster" => same((volume(launch.cluster) > 1).into()),
        "laneid" => each(&|lane| lane.into()),
        "warpid" => same((who.first_thread / LANES as u32).into()),
        "nwarpid" => same(volume(block).div_ceil(LANES as u32).into()),
        "smid" => same(team.slot as u64),
        "nsmid" => same(world.options.resident as u64),
        "gridid" => same(1),
        "lanemask_eq" => each(&|lane| 1 << lane),
        "lanemask_lt" => each(&|lane| (1 << lane) - 1),
        "lanemask_le" => each(&|lane| (2 << lane) - 1),
        "lanemask_gt" => each(&|lane| u64::from(u32::MAX) & !((2 << lane) - 1)),
        "lanemask_ge" => each(&|lane| u64::from(u32::MAX) & !((1 << lane) - 1)),
        "clock" => same(world.outcome.steps & u64::from(u32::MAX)),
        "clock_hi" => same(world.outcome.steps >> 32),
        "clock64" | "globaltimer" => same(world.outcome.steps),
        "globaltimer_lo" => same(world.outcome.steps & u64::from(u32::MAX)),
        "globaltimer_hi" => same(world.outcome.steps >> 32),
        "dynamic_smem_size" | "total_smem_size" | "aggr_smem_size" => same(launch.dynamic_shared.into()),
        _ => Err(format!("the special register {name} is not executed")),
    }
}
