//! What the command line may say.

use std::path::PathBuf;

use clap::{Args, Parser, ValueEnum};
use ptxc::Schedule;
use ptxc::targets::{PtxVersion, Target};

/// Compiles a typed SSA IR to NVIDIA PTX.
#[derive(Parser, Debug)]
#[command(name = "ptxc", version, args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Arguments {
    /// What to do; without one, compile.
    #[command(subcommand)]
    pub subcommand: Option<Subcommand>,
    /// The compilation.
    #[command(flatten)]
    pub compile: CompileArguments,
}

/// The other things that the command does.
#[derive(clap::Subcommand, Debug)]
pub enum Subcommand {
    /// Say, instruction by instruction, whether a target takes a PTX file.
    Check(CheckArguments),
    /// Print syntax, operands and requirements of a PTX instruction.
    Isa(IsaArguments),
    /// Run a module's kernels as its directives say (`run/FORMAT.md`).
    Run(RunArguments),
    /// Make a file of IR smaller while a command succeeds for it.
    Reduce(ReduceArguments),
    /// Print registers, memory and spills of each kernel of a cubin.
    Stats(StatsArguments),
    /// Compile LLVM IR with the options of LLVM's `llc` (`ptxc llc -help` lists them).
    #[command(disable_help_flag = true)]
    Llc(LlcArguments),
    /// Print the table of targets.
    Targets,
}

/// Arguments of `ptxc llc`.
#[derive(Args, Debug)]
pub struct LlcArguments {
    /// Options as LLVM spells them, and the input.
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

/// Arguments of a compilation.
#[derive(Args, Debug)]
pub struct CompileArguments {
    /// IR text to compile; `-` is standard input.
    #[arg(required = true, value_name = "INPUT")]
    pub input: Option<PathBuf>,

    /// Optimization level.
    #[arg(short = 'O', value_name = "LEVEL", default_value = "2", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub opt_level: u8,

    /// Target, such as sm_90a (`ptxc targets` lists them); needed for everything but `--emit ir`.
    #[arg(long, value_name = "TARGET", value_parser = parse_target)]
    pub sm: Option<Target>,

    /// PTX version to write instead of the lowest that works.
    #[arg(long, value_name = "X.Y", value_parser = parse_version)]
    pub ptx_version: Option<PtxVersion>,

    /// File to write; standard output without.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// What to write.
    #[arg(long, value_enum, default_value = "ptx")]
    pub emit: EmitArgument,

    /// Print the module after these steps to standard error; `all` is every step.
    #[arg(long, value_name = "STEP", value_delimiter = ',')]
    pub print_after: Vec<String>,

    /// Run these IR passes, in this order, instead of the level's.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub passes: Option<Vec<String>>,

    /// How to order instructions: `level` (by latency from -O2 on), `off`, `registers:N` (for at most N live) or
    /// `random:SEED` (any order that is right, for tests).
    #[arg(long, value_name = "HOW", value_parser = parse_schedule, default_value = "level")]
    pub schedule: Schedule,

    /// Print which rules were applied, and where, and what scheduling did with each block (cycles, registers, why an order
    /// stayed) to standard error: those of these rules and steps, or `all`. `schedule` is all that is said of blocks.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub remarks: Vec<String>,

    /// Print the time of each step to standard error.
    #[arg(long)]
    pub time_passes: bool,

    /// Print counts to standard error.
    #[arg(long)]
    pub stats: bool,

    /// Run the verifier after every step.
    #[arg(long)]
    pub verify: bool,

    /// Write debug information: lines and DWARF sections.
    #[arg(short = 'g')]
    pub debug: bool,

    /// Write source lines only.
    #[arg(long, conflicts_with = "debug")]
    pub lineinfo: bool,

    /// Library of LLVM bitcode, such as libdevice.10.bc, to take functions from that a module of LLVM IR needs.
    #[arg(long = "link", value_name = "FILE")]
    pub libraries: Vec<PathBuf>,

    /// Warnings: `error` makes them errors, `none` silences them.
    #[arg(short = 'W', value_enum, value_name = "WHAT")]
    pub warnings: Vec<WarningArgument>,

    /// Threads that work on the functions of a module; 0 is one per processor.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub jobs: usize,
}

/// Values of `--emit`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum EmitArgument {
    /// PTX text.
    Ptx,
    /// IR text after the passes.
    Ir,
    /// Machine IR text after selection.
    Mir,
    /// When each instruction would issue, by the target's model; a drawing where the output's name ends in `.svg`.
    Sched,
}

/// Values of `-W`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum WarningArgument {
    /// Warnings are errors.
    Error,
    /// No warnings.
    None,
}

/// Arguments of `ptxc run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// IR text with directives; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,

    /// What executes.
    #[arg(long, value_enum, default_value = "interpreter")]
    pub executor: ExecutorArgument,

    /// Run what the passes of this level make of the module; without, the interpreter runs it as it is written.
    #[arg(short = 'O', value_name = "LEVEL", value_parser = clap::value_parser!(u8).range(0..=3))]
    pub opt_level: Option<u8>,

    /// Legalize the module for its target before it is interpreted.
    #[arg(long)]
    pub legal: bool,

    /// Target, instead of the one that the file or the GPU asks for.
    #[arg(long, value_name = "TARGET", value_parser = parse_target)]
    pub sm: Option<Target>,

    /// How to order instructions before the emulator or a GPU runs them, as for a compilation.
    #[arg(long, value_name = "HOW", value_parser = parse_schedule, default_value = "level")]
    pub schedule: Schedule,

    /// Run this case only.
    #[arg(long, value_name = "NAME")]
    pub case: Option<String>,

    /// A further directive, after those of the file.
    #[arg(short = 'd', long = "directive", value_name = "TEXT")]
    pub directives: Vec<String>,
}

/// Values of `--executor`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ExecutorArgument {
    /// The interpreter of the IR.
    Interpreter,
    /// The emulator of PTX.
    Emulator,
    /// A GPU.
    Gpu,
    /// Every form in the interpreter and in the emulator, and on a GPU where there is one; all have to agree.
    All,
}

/// Arguments of `ptxc reduce`.
#[derive(Args, Debug)]
pub struct ReduceArguments {
    /// IR text to reduce; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Shell command that ends with status 0 while a file, its last argument, is still of interest.
    #[arg(long, value_name = "COMMAND")]
    pub test: String,
    /// File to write; standard output without.
    #[arg(short = 'o', long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Most times that the command is run.
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    pub max_tests: usize,
    /// Keep the parameters of kernels.
    #[arg(long)]
    pub keep_kernels: bool,
}

/// Arguments of `ptxc stats`.
#[derive(Args, Debug)]
pub struct StatsArguments {
    /// Cubin to read.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
}

/// Arguments of `ptxc check`.
#[derive(Args, Debug)]
pub struct CheckArguments {
    /// PTX to read; `-` is standard input.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// Target to check for.
    #[arg(long, value_name = "TARGET", value_parser = parse_target)]
    pub sm: Target,
    /// Most errors to print.
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub max_errors: usize,
}

/// Arguments of `ptxc isa`.
#[derive(Args, Debug)]
pub struct IsaArguments {
    /// Mnemonic, such as `add` or `cvt.rn.f16.f32`.
    #[arg(value_name = "MNEMONIC")]
    pub mnemonic: String,
}

fn parse_target(text: &str) -> Result<Target, String> {
    text.parse().map_err(|error| format!("{error}; `ptxc targets` lists the known ones"))
}

fn parse_version(text: &str) -> Result<PtxVersion, String> {
    let known = || format!("{} to {}", PtxVersion::MIN, PtxVersion::MAX);
    text.parse().map_err(|error| format!("{error}; known are {}", known()))
}

fn parse_schedule(text: &str) -> Result<Schedule, String> {
    match text {
        "level" => Ok(Schedule::Level),
        "off" => Ok(Schedule::Off),
        _ => {
            let number = |prefix| text.strip_prefix(prefix).and_then(|number: &str| number.parse::<u64>().ok());
            let registers = number("registers:").and_then(|limit| u32::try_from(limit).ok()).map(Schedule::Registers);
            let schedule = registers.or_else(|| number("random:").map(Schedule::Random));
            schedule.ok_or_else(|| "one of `level`, `off`, `registers:N` and `random:SEED`".to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory as _;

    #[test]
    fn the_description_is_consistent() {
        Arguments::command().debug_assert();
    }
}
