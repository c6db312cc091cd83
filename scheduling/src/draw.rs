//! Timelines as drawings (SVG): a lane for each unit, instructions as boxes, asynchronous operations as bars until they
//! are complete, and the live registers below.

use crate::Context;
use crate::show::title;
use crate::timeline::{Slot, Timeline};
use ptxc_mir::{Function, Module, print_inst};
use ptxc_targets::timing::Unit;
use std::fmt::Write as _;

/// Left margin with the names of lanes.
const MARGIN: u32 = 90;
/// Height of a lane.
const LANE: u32 = 18;
/// Height of a line of text.
const LINE: u32 = 20;
/// Height of the curve of live registers.
const CURVE: u32 = 60;
/// Widest drawing of a block; a longer one is drawn smaller.
const WIDEST: u32 = 6000;
/// Pixels of a cycle where there is room.
const CYCLE: f64 = 8.0;
/// The colours of units, in their order.
const COLOURS: [&str; 11] = [
    "#4e79a7", "#59a14f", "#8cd17d", "#b07aa1", "#f28e2b", "#9c755f", "#76b7b2", "#ff9da7", "#e15759", "#edc948",
    "#79706e",
];

/// A drawing of the timelines of a module's functions, one block below the other.
pub fn draw_module(module: &Module, context: &Context) -> String {
    let mut body = String::new();
    let (mut y, mut width) = (0, 400);
    for func in &module.functions {
        let name = module.symbols.name(func.name);
        y += LINE + 8;
        let heading = format!("@{name} on {} ({})", module.target, context.machine.model().name());
        let _ = writeln!(body, "<text class=\"name\" x=\"4\" y=\"{y}\">{}</text>", escape(&heading));
        let assembled = context.assembled(func);
        for ((block, timeline), assembled) in context.timelines(func).into_iter().zip(assembled) {
            let mut picture = Picture::new(module, func, &timeline, &mut body);
            y = picture.block(&title(block, &timeline, assembled), y);
            width = width.max(picture.width());
        }
    }
    let height = y + LINE;
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
         <style>text {{ font: 11px monospace; fill: #222 }} .name {{ font-weight: bold; font-size: 14px }} \
         .grid {{ stroke: #ddd }} .live {{ fill: none; stroke: #222 }}</style>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n{body}</svg>\n"
    )
}

/// One block's drawing.
struct Picture<'a> {
    module: &'a Module,
    func: &'a Function,
    timeline: &'a Timeline,
    out: &'a mut String,
    /// The last cycle that is drawn.
    end: u32,
    /// Pixels of a cycle.
    scale: f64,
}

impl<'a> Picture<'a> {
    fn new(module: &'a Module, func: &'a Function, timeline: &'a Timeline, out: &'a mut String) -> Picture<'a> {
        let end = timeline.slots.iter().map(done).max().unwrap_or(0).max(timeline.cycles).max(1);
        let scale = (f64::from(WIDEST) / f64::from(end)).min(CYCLE);
        Picture { module, func, timeline, out, end, scale }
    }

    fn width(&self) -> u32 {
        MARGIN + (f64::from(self.end) * self.scale) as u32 + 20
    }

    fn x(&self, cycle: u32) -> f64 {
        f64::from(MARGIN) + f64::from(cycle) * self.scale
    }

    /// Draws below `y`; gives where it ends.
    fn block(&mut self, title: &str, mut y: u32) -> u32 {
        y += LINE + 4;
        let _ = writeln!(self.out, "<text x=\"4\" y=\"{y}\">{}</text>", escape(title));
        if self.timeline.slots.is_empty() {
            return y;
        }
        let top = y + 6;
        y = top;
        let mut lanes = String::new();
        for unit in Unit::all() {
            let slots: Vec<&Slot> = self.timeline.slots.iter().filter(|slot| slot.timing.unit == unit).collect();
            if !slots.is_empty() {
                y = self.lane(unit, &slots, y, &mut lanes);
            }
        }
        self.grid(top, y + CURVE);
        self.out.push_str(&lanes);
        self.live(y);
        y + CURVE + 14
    }

    /// The boxes of a unit, and below them a row for each asynchronous operation that is in flight at once.
    fn lane(&self, unit: Unit, slots: &[&Slot], y: u32, out: &mut String) -> u32 {
        let colour = COLOURS[unit.index() % COLOURS.len()];
        let _ = writeln!(out, "<text x=\"4\" y=\"{}\">{}</text>", y + 13, unit.name());
        let mut rows: Vec<u32> = Vec::new();
        for slot in slots {
            let timing = slot.timing;
            let busy = slot.start + u32::from(timing.interval.max(timing.issue).max(1));
            self.bar(slot, (slot.start, busy), y, colour, 1.0, out);
            if timing.class.is_asynchronous() {
                let free = rows.iter().position(|&until| until <= slot.start).unwrap_or(rows.len());
                rows.resize(rows.len().max(free + 1), 0);
                rows[free] = done(slot);
                self.bar(slot, (slot.start, done(slot)), y + LANE * (1 + free as u32), colour, 0.45, out);
            }
        }
        y + LANE * (1 + rows.len() as u32)
    }

    /// A box over some cycles, which says its instruction where one points at it.
    fn bar(&self, slot: &Slot, (start, end): (u32, u32), y: u32, colour: &str, opacity: f64, out: &mut String) {
        let text = print_inst(self.func, slot.inst, &self.module.opcodes, &self.module.symbols);
        let (x, width) = (self.x(start), f64::from(end - start) * self.scale);
        let _ = writeln!(
            out,
            "<rect x=\"{x:.1}\" y=\"{y}\" width=\"{width:.1}\" height=\"{}\" fill=\"{colour}\" fill-opacity=\"{opacity}\" \
             stroke=\"#fff\" stroke-width=\"0.5\"><title>{start} to {}: {}</title></rect>",
            LANE - 3,
            done(slot),
            escape(&text)
        );
    }

    /// A line and a number at round cycles.
    fn grid(&mut self, top: u32, bottom: u32) {
        let step = [10u32, 20, 50, 100, 200, 500].into_iter().find(|&step| f64::from(step) * self.scale >= 60.0);
        let step = step.unwrap_or_else(|| (self.end / 20).max(1));
        for cycle in (0..=self.end).step_by(step as usize) {
            let x = self.x(cycle);
            let _ = writeln!(
                self.out,
                "<line class=\"grid\" x1=\"{x:.1}\" y1=\"{top}\" x2=\"{x:.1}\" y2=\"{bottom}\"/>\
                 <text x=\"{x:.1}\" y=\"{}\">{cycle}</text>",
                bottom + 11
            );
        }
    }

    /// The live registers as steps, the peak at the top.
    fn live(&mut self, y: u32) {
        let peak = self.timeline.peak.max(1);
        let _ = writeln!(self.out, "<text x=\"4\" y=\"{}\">live, max {peak}</text>", y + 14);
        let height = |live: u32| f64::from(y + CURVE) - f64::from(CURVE - 8) * f64::from(live) / f64::from(peak);
        let mut points = format!("{:.1},{:.1}", self.x(0), height(0));
        let mut last = 0;
        for slot in &self.timeline.slots {
            let _ = write!(points, " {0:.1},{1:.1} {0:.1},{2:.1}", self.x(slot.start), height(last), height(slot.live));
            last = slot.live;
        }
        let _ = write!(points, " {:.1},{:.1}", self.x(self.timeline.cycles), height(last));
        let _ = writeln!(self.out, "<polyline class=\"live\" points=\"{points}\"/>");
    }
}

/// When the result is there, or the operation complete.
fn done(slot: &Slot) -> u32 {
    slot.start + u32::from(slot.timing.latency)
}

/// Text in XML.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
