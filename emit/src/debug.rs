//! Source locations: `.file`, `.loc`, and the labels that DWARF refers to.

use crate::EmitOptions;
use crate::dwarf;
use crate::error::EmitError;
use crate::names::Names;
use crate::text::Text;
use ptxc_mir::{Function, LocId, Module, SourceLoc};

/// Prints what debuggers and profilers read.
pub(crate) struct Debug<'a> {
    module: &'a Module,
    options: EmitOptions,
    last: SourceLoc,
}

impl<'a> Debug<'a> {
    pub fn new(module: &'a Module, options: EmitOptions) -> Debug<'a> {
        Debug { module, options, last: SourceLoc::default() }
    }

    fn lines(&self) -> bool {
        self.options.lineinfo || self.options.debug
    }

    /// The `.file` directives (PTX ISA, 11.5.3).
    pub fn files(&self, text: &mut Text) {
        if !self.lines() {
            return;
        }
        for file in &self.module.files {
            text.push(".file ");
            text.unsigned(u64::from(file.number));
            text.char(' ');
            text.quoted(&file.path);
            text.char('\n');
        }
    }

    /// A `.loc` where the line changes (PTX ISA, 11.5.4).
    pub fn location(&mut self, text: &mut Text, func: &Function, loc: LocId) {
        if !self.lines() || loc == LocId::NONE {
            return;
        }
        let loc = func.locs[loc];
        if loc == self.last || loc.line == 0 {
            return;
        }
        self.last = loc;
        text.push("\t.loc ");
        text.unsigned(u64::from(loc.file));
        text.char(' ');
        text.unsigned(u64::from(loc.line));
        text.char(' ');
        text.unsigned(u64::from(loc.column));
        text.char('\n');
    }

    /// Marks the begin of a function's code.
    pub fn begin_function(&mut self, text: &mut Text, func: &Function, index: usize) {
        self.last = SourceLoc::default();
        self.location(text, func, func.loc);
        if self.options.debug {
            dwarf::begin_label(text, index);
            text.push(":\n");
        }
    }

    /// Marks the end of a function's code.
    pub fn end_function(&self, text: &mut Text, index: usize) {
        if self.options.debug {
            dwarf::end_label(text, index);
            text.push(":\n");
        }
    }

    /// The DWARF sections, at the end of the file.
    pub fn sections(&self, text: &mut Text, names: &Names) -> Result<(), EmitError> {
        if self.options.debug { dwarf::print(text, self.module, names) } else { Ok(()) }
    }
}
