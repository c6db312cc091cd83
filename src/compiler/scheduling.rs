//! Scheduling as a step: what is asked of it, and what it tells.

use std::time::Instant;

use ptxc_mir::SymId;
use ptxc_scheduling::{BlockReport, Mode, Outcome, Summary};

use super::{Session, Stop, each};
use crate::options::{Emit, OptLevel, Schedule};
use crate::pipeline;
use crate::report::Remark;

impl Session<'_> {
    /// Orders instructions. The form is the same SSA form, so that it can be verified and printed.
    pub(super) fn schedule(&mut self, machine: &mut ptxc_mir::Module) -> Result<(), Stop> {
        let mut registers = None;
        let mode = match self.options.schedule {
            Schedule::Registers(limit) => {
                registers = Some(limit);
                Mode::Latency
            }
            Schedule::Random(seed) => Mode::Random(seed),
            Schedule::Level if self.options.opt_level >= OptLevel::O2 => Mode::Latency,
            Schedule::Off | Schedule::Level => Mode::Source,
        };
        if mode == Mode::Source {
            self.print_mir(pipeline::SCHEDULE, machine);
            return Ok(());
        }
        let check = self.options.verify_each;
        let options = ptxc_scheduling::Options { mode, registers, check };
        let start = Instant::now();
        let context = ptxc_scheduling::Context::new(machine);
        let mut functions: Vec<&mut ptxc_mir::Function> = machine.functions.iter_mut().collect();
        let wants_remarks = self.options.remarks;
        let outcomes = each(&mut functions, self.options.jobs, |func| {
            let mut blocks = wants_remarks.then(Vec::new);
            let summary = ptxc_scheduling::run_with_report(func, &context, &options, blocks.as_mut());
            summary.map(|summary| (summary, blocks)).map_err(|error| error.to_string())
        });
        let names: Vec<_> = functions.iter().map(|func| func.name).collect();
        self.report.time(pipeline::SCHEDULE, start.elapsed());
        for (outcome, name) in outcomes.into_iter().zip(names) {
            match outcome.and_then(|inner| inner) {
                Ok((summary, blocks)) => {
                    self.count_schedule(&summary);
                    self.remark_blocks(machine, name, blocks.as_deref().unwrap_or_default());
                }
                Err(message) => {
                    let name = machine.symbols.name(name).to_owned();
                    return Err(self.fail(pipeline::SCHEDULE, Some(&name), message));
                }
            }
        }
        self.print_mir(pipeline::SCHEDULE, machine);
        if self.options.verify_each { self.verify_machine(pipeline::SCHEDULE, machine) } else { Ok(()) }
    }

    /// Timelines instead of PTX.
    pub(super) fn show_schedule(&mut self, machine: &ptxc_mir::Module) -> Result<String, Stop> {
        let show = match self.options.emit {
            Emit::SchedDrawing => ptxc_scheduling::draw_module,
            _ => ptxc_scheduling::show_module,
        };
        self.step("print", || show(machine, &ptxc_scheduling::Context::new(machine)))
    }

    /// Keeps what scheduling did with the blocks of a function that have an order at all.
    fn remark_blocks(&mut self, machine: &ptxc_mir::Module, name: SymId, blocks: &[BlockReport]) {
        for block in blocks.iter().filter(|block| block.count > 1 || block.outcome == Outcome::Reordered) {
            let file = machine.files.iter().find(|file| file.number == block.loc.file && block.loc.line != 0);
            let origin = file.map(|file| format!("{}:{}:{}", file.path, block.loc.line, block.loc.column));
            self.remarks.push(Remark {
                step: pipeline::SCHEDULE,
                rule: block.outcome.name(),
                function: machine.symbols.name(name).to_owned(),
                detail: Some(block.to_string()),
                origin,
                span: None,
            });
        }
    }

    fn count_schedule(&mut self, summary: &Summary) {
        self.report.count("blocks in a new order", summary.changed.into());
        self.report.count("instructions in another block", summary.moved);
        self.report.count("values made again", summary.made_again.into());
        self.report.count("predicted cycles before scheduling", summary.cycles_before);
        self.report.count("predicted cycles", summary.cycles_after);
        self.report.count("critical path in cycles", summary.critical_path);
        self.report.most("live registers before scheduling", summary.peak_before.into());
        self.report.most("live registers", summary.peak_after.into());
    }
}
