//! A launch: thread blocks in turns, barriers.

use super::{Engine, Group, LANES, State, Stop, Team, Warp, World};
use crate::asynchronous::{Asynchronous, Trouble};
use crate::launch::{Failure, Launch, Options, Outcome};
use crate::memory::{Block, Memory};

struct Running<V> {
    team: Team,
    warps: Vec<Warp<V>>,
}

struct Grid<'a, E: Engine> {
    engine: &'a E,
    launch: &'a Launch,
    options: &'a Options,
    memory: &'a mut Memory,
    asynchronous: Asynchronous,
    shared: &'a Block,
    outcome: Outcome,
    warned: Vec<bool>,
}

/// A failure without a place.
pub(crate) fn failure(message: impl Into<String>) -> Failure {
    Failure { message: message.into(), place: String::new(), thread: String::new() }
}

/// Runs all blocks of a launch; every block's shared memory begins as `shared`.
///
/// # Errors
/// The first error of the program with its place and thread.
pub fn run<E: Engine>(
    engine: &E,
    launch: &Launch,
    options: &Options,
    memory: &mut Memory,
    shared: &Block,
) -> Result<Outcome, Failure> {
    let warned = vec![false; engine.places()];
    let asynchronous = Asynchronous::new(options.completion);
    let mut grid = Grid { engine, launch, options, memory, asynchronous, shared, outcome: Outcome::default(), warned };
    grid.run()?;
    Ok(grid.outcome)
}

impl<E: Engine> Grid<'_, E> {
    /// Starts clusters as slots get free, and lets every warp have its turn.
    fn run(&mut self) -> Result<(), Failure> {
        let volume = |x: [u32; 3]| x.iter().map(|n| *n as usize).product::<usize>();
        let size = volume(self.launch.cluster);
        let clusters = volume(self.launch.grid) / size;
        let places = (self.options.resident / size).clamp(1, clusters.max(1));
        let mut next = 0;
        let mut running: Vec<Vec<Running<E::Values>>> = (0..places).map(|_| Vec::new()).collect();
        loop {
            let mut busy = false;
            let mut steps = 0;
            for (place, cluster) in running.iter_mut().enumerate() {
                if cluster.iter().all(|b| b.team.live == 0) {
                    self.end(std::mem::take(cluster))?;
                    if next == clusters {
                        continue;
                    }
                    *cluster = self.start(next, place * size, size);
                    next += 1;
                }
                busy = true;
                for block in cluster.iter_mut() {
                    steps += self.turn(block)?;
                }
                steps += self.meet(cluster);
                self.asynchronous.pass(self.memory).map_err(|trouble| self.trouble(trouble))?;
            }
            if !busy {
                return Ok(());
            }
            if steps == 0 {
                return Err(self.stuck(&mut running));
            }
        }
    }

    fn start(&mut self, cluster: usize, first: usize, size: usize) -> Vec<Running<E::Values>> {
        let Launch { grid, block, cluster: shape, .. } = self.launch;
        let threads: u32 = block.iter().product();
        let across = [grid[0] / shape[0], grid[1] / shape[1]];
        let cluster = cluster as u32;
        let at = [cluster % across[0], cluster / across[0] % across[1], cluster / across[0] / across[1]];
        let mut out = Vec::with_capacity(size);
        for rank in 0..size as u32 {
            let inner = [rank % shape[0], rank / shape[0] % shape[1], rank / shape[0] / shape[1]];
            let id: [u32; 3] = std::array::from_fn(|i| at[i] * shape[i] + inner[i]);
            let slot = first + rank as usize;
            self.memory.start_block(slot, self.shared, threads as usize, (first, size as u32));
            let number = id[0] + grid[0] * (id[1] + grid[1] * id[2]);
            let team = Team { slot, number, id, rank, live: threads, ..Team::default() };
            let warp = |w: u32| {
                let count = (threads - w * LANES as u32).min(LANES as u32);
                Warp::new(self.engine, w * LANES as u32, u32::MAX >> (LANES as u32 - count))
            };
            out.push(Running { team, warps: (0..threads.div_ceil(LANES as u32)).map(warp).collect() });
        }
        out
    }

    /// All threads of a cluster have exited: what they have begun ends too.
    fn end(&mut self, cluster: Vec<Running<E::Values>>) -> Result<(), Failure> {
        for block in cluster {
            let ended = self.asynchronous.end_block(block.team.slot, self.memory);
            ended
                .map_err(|trouble| Failure { thread: format!("block {:?}", block.team.id), ..self.trouble(trouble) })?;
        }
        Ok(())
    }

    /// What is wrong with an operation that no thread executes just now.
    fn trouble(&self, trouble: Trouble) -> Failure {
        let place = trouble.other.map(|place| self.engine.describe(place)).unwrap_or_default();
        Failure { message: trouble.message, place, thread: String::new() }
    }

    /// A turn of every warp of a block; gives the steps done.
    fn turn(&mut self, block: &mut Running<E::Values>) -> Result<u64, Failure> {
        let mut total = 0;
        for index in 0..block.warps.len() {
            let Running { team, warps } = block;
            let warp = &mut warps[index];
            if warp.groups.list.is_empty() {
                continue;
            }
            let engine = self.engine;
            let mut world = World {
                launch: self.launch,
                options: self.options,
                memory: self.memory,
                asynchronous: &mut self.asynchronous,
                team,
                outcome: &mut self.outcome,
                warned: &mut self.warned,
                describe: &|place| engine.describe(place),
            };
            match warp.run(engine, &mut world, self.options.slice) {
                Ok(steps) => total += u64::from(steps),
                Err(stop) => return Err(self.fail(stop, warp, team)),
            }
            if self.outcome.steps > self.options.step_limit {
                let stop = Stop::new(format!("more than {} steps", self.options.step_limit));
                return Err(self.fail(stop, warp, team));
            }
            if std::mem::take(&mut team.changed) {
                while let Some(arrival) = team.complete() {
                    let barrier = State::Barrier(arrival.number);
                    // What a thread has synchronized with, those that meet it have. Who of the others arrived before is
                    // not kept, so any thread of the block counts.
                    let synchronized = warps.iter_mut().any(|warp| warp.who.synchronized != 0);
                    for warp in warps.iter_mut() {
                        self.release(
                            warp,
                            team.epoch,
                            |state| state == barrier,
                            |engine, warp, group| {
                                warp.pass(engine, group, arrival);
                                if synchronized {
                                    warp.who.synchronized |= group.mask;
                                }
                            },
                        );
                    }
                    total += 1;
                }
            }
        }
        Ok(total)
    }

    /// Lets groups go on that wait and whose state is one of these.
    fn release(
        &self,
        warp: &mut Warp<E::Values>,
        epoch: u32,
        which: impl Fn(State) -> bool,
        pass: impl Fn(&E, &mut Warp<E::Values>, Group),
    ) {
        for index in 0..warp.groups.list.len() {
            let group = warp.groups.list[index];
            if which(group.state) {
                pass(self.engine, warp, group);
                let group = &mut warp.groups.list[index];
                group.state = State::Ready;
                group.pc += 1;
                warp.who.epoch = epoch;
            }
        }
    }

    /// Completes the barrier of a cluster (PTX ISA 9.7.15.3): all its threads have arrived or exited. Gives 1 if it did.
    fn meet(&mut self, cluster: &mut [Running<E::Values>]) -> u64 {
        let changed = cluster.iter_mut().fold(false, |c, b| std::mem::take(&mut b.team.cluster_changed) | c);
        if !changed {
            return 0;
        }
        let mut any = false;
        for warp in cluster.iter_mut().flat_map(|b| &mut b.warps) {
            let who = &warp.who;
            if who.live & !who.cluster_arrived != 0 {
                return 0;
            }
            any |= who.live != 0;
        }
        if !any {
            return 0;
        }
        for Running { team, warps } in cluster.iter_mut() {
            team.epoch += 1;
            for warp in warps.iter_mut() {
                self.release(warp, team.epoch, |state| state == State::Cluster, |_, _, _| {});
                let who = &mut warp.who;
                who.cluster_arrived = 0;
                // The detector compares barriers within a block only; this one orders accesses of all the cluster.
                who.synchronized = u32::MAX;
            }
        }
        1
    }

    fn fail(&self, stop: Stop, warp: &mut Warp<E::Values>, team: &Team) -> Failure {
        let mut message = stop.message;
        if let Some(other) = stop.other {
            message.push_str(&format!(", which was at {}", self.engine.describe(other)));
        }
        let who = &warp.who;
        let thread = stop.lane.map_or_else(
            || format!("block {:?}, warp of thread {}", team.id, who.first_thread),
            |lane| format!("block {:?}, thread {}", team.id, who.first_thread as usize + lane),
        );
        Failure { message, place: self.engine.describe(who.place), thread }
    }

    /// Nothing can run.
    fn stuck(&self, running: &mut [Vec<Running<E::Values>>]) -> Failure {
        for block in running.iter_mut().flatten() {
            for warp in &mut block.warps {
                let Some(group) = warp.groups.list.first().copied() else { continue };
                let message = match group.state {
                    State::Barrier(number) => {
                        format!("barrier {number} is never complete: threads wait elsewhere, or have gone another way")
                    }
                    State::Cluster => "the cluster's barrier is never complete".to_string(),
                    _ => format!("the threads {:#x} of the warp wait for others of it that do not come", group.mask),
                };
                let first = warp.who.first_thread;
                let thread = format!("block {:?}, warp of thread {first}", block.team.id);
                return Failure { message, place: self.engine.describe(warp.place(self.engine, &group)), thread };
            }
        }
        failure("nothing runs")
    }
}
