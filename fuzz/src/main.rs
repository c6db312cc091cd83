//! `ptxc-fuzz`: random programs through the compiler, and what comes of them.
//!
//! Exit status: 0 nothing found, 1 something found or nothing to do.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, Parser, Subcommand};
use ptxc_fuzz::{Features, campaign, check, coverage, generate, readers, report, steps};

#[derive(Parser)]
#[command(name = "ptxc-fuzz", version, about = "Random programs through the compiler")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Check the programs of a range of seeds.
    Run(Run),
    /// Mutate IR and PTX text: nothing may panic.
    Readers(Readers),
    /// Print the program of a seed.
    Show(Show),
    /// Compile the programs of a range of seeds and list the rules that none of them reaches.
    Coverage(Coverage),
    /// List the features that programs may hold.
    Features,
}

#[derive(Args)]
struct Choice {
    /// Leave these features out.
    #[arg(long, value_delimiter = ',')]
    without: Vec<String>,
    /// Use no others than these.
    #[arg(long, value_delimiter = ',')]
    only: Vec<String>,
}

impl Choice {
    fn features(&self) -> Result<Features, String> {
        let mut wanted = Features::all(self.only.is_empty());
        for (names, on) in [(&self.only, true), (&self.without, false)] {
            for name in names {
                *wanted.by_name(name).ok_or_else(|| format!("there is no feature `{name}`"))? = on;
            }
        }
        Ok(wanted)
    }
}

#[derive(Args)]
struct Run {
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 1000)]
    count: u64,
    /// Stop after this many seconds.
    #[arg(long)]
    seconds: Option<u64>,
    /// How many random orders of instructions to try for each program and list of steps, up to 8.
    #[arg(long, default_value_t = 1)]
    schedules: usize,
    /// Stop at the first that is found.
    #[arg(long)]
    first: bool,
    /// Write programs that are found, and reduced ones, to this folder.
    #[arg(long)]
    output: Option<PathBuf>,
    /// Do not reduce what is found.
    #[arg(long)]
    no_reduction: bool,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Args)]
struct Readers {
    /// Seed of the mutations.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// How long.
    #[arg(long, default_value_t = 60)]
    seconds: u64,
    /// Write texts that are wrong to this folder.
    #[arg(long)]
    output: Option<PathBuf>,
}

#[derive(Args)]
struct Show {
    /// Seed.
    seed: u64,
    /// After these steps, such as `fold-constants,legalize`.
    #[arg(long, value_delimiter = ',')]
    steps: Vec<String>,
    #[command(flatten)]
    choice: Choice,
}

#[derive(Args)]
struct Coverage {
    /// First seed.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Number of seeds.
    #[arg(long, default_value_t = 20_000)]
    count: u64,
    /// List every rule with the number of programs that it is applied in.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    choice: Choice,
}

/// Seeds between looks at the clock.
const BATCH: u64 = 200;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Run(arguments) => run(&arguments),
        Command::Readers(arguments) => readers(&arguments),
        Command::Show(arguments) => show(&arguments).map(|()| true),
        Command::Coverage(arguments) => cover(&arguments),
        Command::Features => {
            Features::NAMES.iter().for_each(|(name, what)| println!("{name:20} {what}"));
            Ok(true)
        }
    };
    match result {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("ptxc-fuzz: {message}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Run) -> Result<bool, String> {
    check::keep_panics_quiet();
    let wanted = arguments.choice.features()?;
    let start = Instant::now();
    let (mut agree, mut too_long, mut found) = (0, 0, 0);
    let mut not_executed: BTreeMap<String, u64> = BTreeMap::new();
    let end = arguments.from.saturating_add(arguments.count);
    let mut from = arguments.from;
    while from < end {
        let to = end.min(from + BATCH);
        let summary = campaign::run(from..to, wanted, arguments.schedules);
        agree += summary.agree;
        too_long += summary.too_long;
        found += summary.undefined.len() + summary.wrong.len();
        for (what, count) in &summary.not_executed {
            *not_executed.entry(what.clone()).or_default() += count;
        }
        for (seed, why) in &summary.undefined {
            println!("seed {seed}: the program is not defined: {why}");
        }
        for (seed, finding) in &summary.wrong {
            let program = generate(*seed, &campaign::features(*seed, wanted));
            print!("{}", report::describe(&program, finding, !arguments.no_reduction, arguments.output.as_deref())?);
        }
        from = to;
        let late = arguments.seconds.is_some_and(|s| start.elapsed().as_secs() >= s);
        if late || (arguments.first && found > 0) {
            break;
        }
    }
    let count = from - arguments.from;
    let mut missing: Vec<(&String, &u64)> = not_executed.iter().collect();
    missing.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    for (what, count) in missing.into_iter().take(20) {
        println!("{count} not emulated: {what}");
    }
    println!(
        "seeds {} to {}: {agree} agree, {} not emulated, {too_long} too long, {found} found; {:.1} s",
        arguments.from,
        from.saturating_sub(1),
        not_executed.values().sum::<u64>(),
        start.elapsed().as_secs_f64()
    );
    Ok(found == 0 && count > 0)
}

fn readers(arguments: &Readers) -> Result<bool, String> {
    check::keep_panics_quiet();
    let summary = readers::run(arguments.seed, Duration::from_secs(arguments.seconds));
    for (index, (what, text)) in summary.wrong.iter().enumerate() {
        println!("{what}");
        if let Some(folder) = &arguments.output {
            let path = folder.join(format!("text_{index}"));
            let written = std::fs::create_dir_all(folder).and_then(|()| std::fs::write(&path, text));
            written.map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    let [ir, ptx] = summary.texts;
    println!(
        "{ir} texts of IR, {} valid; {ptx} of PTX, {} valid; {} wrong",
        summary.valid[0],
        summary.valid[1],
        summary.wrong.len()
    );
    Ok(summary.wrong.is_empty())
}

fn cover(arguments: &Coverage) -> Result<bool, String> {
    check::keep_panics_quiet();
    let end = arguments.from.saturating_add(arguments.count);
    let coverage = coverage::count(arguments.from..end, arguments.choice.features()?);
    for (name, count) in &coverage.rules {
        if arguments.all || *count == 0 {
            println!("{count:8} {name}");
        }
    }
    println!(
        "{} programs, {} refused: {} of {} rules are never applied",
        coverage.programs,
        coverage.refused,
        coverage.never().count(),
        coverage.rules.len()
    );
    Ok(coverage.refused == 0)
}

fn show(arguments: &Show) -> Result<(), String> {
    let program = generate(arguments.seed, &campaign::features(arguments.seed, arguments.choice.features()?));
    let mut module = program.module.clone();
    let target = program.target.parse().map_err(|error| format!("{error}"))?;
    for step in &arguments.steps {
        steps::apply(&mut module, step, target)?;
    }
    print!("{}", report::header(&program));
    print!("{}", ptxc_ir::print_module(&module));
    Ok(())
}
