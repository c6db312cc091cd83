//! A backtracking matcher for the two things automata cannot do: back-references, and capture groups
//! of a match whose end is prescribed.
//!
//! It explores the ways to match at one position and keeps the longest, of those the one that gives most to
//! the earliest groups. Its work is bounded by a number of steps.

use super::syntax::{ByteSet, Node, SyntaxError};

/// Instructions a program may have; `{n,m}` multiplies them.
const PROGRAM_LIMIT: usize = 1 << 18;

/// An attempt took more steps than is reasonable.
#[derive(Debug, PartialEq, Eq)]
pub struct TooComplex;

#[derive(Debug)]
enum Instruction {
    Byte(u8),
    Set(Box<ByteSet>),
    LineStart,
    LineEnd,
    WordStart,
    WordEnd,
    /// Continue at the first, and on failure at the second.
    Split(usize, usize),
    Jump(usize),
    /// Store the position in a capture slot.
    Save(usize),
    /// Store the position in a loop register.
    Mark(usize),
    /// Fail unless the position moved since the register was stored: ends loops over the empty string.
    Progress(usize),
    BackReference(usize),
    Match,
}

/// A compiled expression.
#[derive(Debug)]
pub struct Program {
    instructions: Vec<Instruction>,
    slots: usize,
    registers: usize,
    /// Whether matches of one length can differ in their groups.
    is_ambiguous: bool,
}

/// Start and end of every group, group 0 being the whole match.
pub type Captures = Vec<Option<usize>>;

impl Program {
    /// Compiles a tree with `groups` groups.
    ///
    /// # Errors
    /// [`SyntaxError::TooLarge`] when its counted repetitions expand to too many instructions.
    pub fn new(root: &Node, groups: u32) -> Result<Self, SyntaxError> {
        let slots = (groups as usize + 1) * 2;
        let mut program = Self { instructions: Vec::new(), slots, registers: 0, is_ambiguous: false };
        program.compile(root)?;
        program.is_ambiguous &= groups > 0;
        program.push(Instruction::Match)?;
        Ok(program)
    }

    fn push(&mut self, instruction: Instruction) -> Result<usize, SyntaxError> {
        if self.instructions.len() >= PROGRAM_LIMIT {
            return Err(SyntaxError::TooLarge);
        }
        self.instructions.push(instruction);
        Ok(self.instructions.len() - 1)
    }

    /// Nesting is bounded by the parser.
    fn compile(&mut self, node: &Node) -> Result<(), SyntaxError> {
        match node {
            Node::Empty => {}
            Node::Byte(byte) => _ = self.push(Instruction::Byte(*byte))?,
            Node::Set(set) => _ = self.push(Instruction::Set(set.clone()))?,
            Node::LineStart => _ = self.push(Instruction::LineStart)?,
            Node::LineEnd => _ = self.push(Instruction::LineEnd)?,
            Node::WordStart => _ = self.push(Instruction::WordStart)?,
            Node::WordEnd => _ = self.push(Instruction::WordEnd)?,
            Node::BackReference(group) => {
                self.push(Instruction::BackReference(*group as usize))?;
            }
            Node::Group(number, inner) => {
                let slot = *number as usize * 2;
                self.push(Instruction::Save(slot))?;
                self.compile(inner)?;
                self.push(Instruction::Save(slot + 1))?;
            }
            Node::Concat(parts) => {
                for part in parts {
                    self.compile(part)?;
                }
            }
            Node::Alternate(branches) => self.alternate(branches)?,
            Node::Repeat(inner, min, max) => self.repeat(inner, *min, *max)?,
        }
        Ok(())
    }

    /// Whether matches of one length can differ in their groups.
    pub fn is_ambiguous(&self) -> bool {
        self.is_ambiguous
    }

    fn alternate(&mut self, branches: &[Node]) -> Result<(), SyntaxError> {
        self.is_ambiguous = true;
        let mut jumps = Vec::with_capacity(branches.len());
        for (index, branch) in branches.iter().enumerate() {
            if index + 1 == branches.len() {
                self.compile(branch)?;
                break;
            }
            let split = self.push(Instruction::Split(0, 0))?;
            self.compile(branch)?;
            jumps.push(self.push(Instruction::Jump(0))?);
            self.instructions[split] = Instruction::Split(split + 1, self.instructions.len());
        }
        let end = self.instructions.len();
        for jump in jumps {
            self.instructions[jump] = Instruction::Jump(end);
        }
        Ok(())
    }

    fn repeat(&mut self, inner: &Node, min: u32, max: Option<u32>) -> Result<(), SyntaxError> {
        for _ in 0..min {
            self.compile(inner)?;
        }
        let Some(max) = max else {
            let register = self.registers;
            self.registers += 1;
            let split = self.push(Instruction::Split(0, 0))?;
            self.push(Instruction::Mark(register))?;
            self.compile(inner)?;
            self.push(Instruction::Progress(register))?;
            self.push(Instruction::Jump(split))?;
            self.instructions[split] = Instruction::Split(split + 1, self.instructions.len());
            return Ok(());
        };
        let mut splits = Vec::new();
        for _ in min..max {
            splits.push(self.push(Instruction::Split(0, 0))?);
            self.compile(inner)?;
        }
        let end = self.instructions.len();
        for split in splits {
            self.instructions[split] = Instruction::Split(split + 1, end);
        }
        Ok(())
    }
}

/// What to do when the current way fails.
enum Frame {
    Continue(usize, usize),
    RestoreSlot(usize, Option<usize>),
    RestoreRegister(usize, usize),
}

/// Runs a program; keeps its memory from one attempt to the next.
pub struct Machine<'p> {
    program: &'p Program,
    slots: Captures,
    registers: Vec<usize>,
    stack: Vec<Frame>,
    best: Captures,
    best_end: Option<usize>,
    /// Steps that may still be taken, in all attempts together.
    steps_left: u64,
}

impl<'p> Machine<'p> {
    /// A machine that may take so many steps.
    pub fn new(program: &'p Program, steps: u64) -> Self {
        Self {
            program,
            slots: vec![None; program.slots],
            registers: vec![usize::MAX; program.registers],
            stack: Vec::new(),
            best: Captures::new(),
            best_end: None,
            steps_left: steps,
        }
    }

    /// The longest match that begins at `start`, or the preferred one that ends at `required_end`.
    ///
    /// # Errors
    /// [`TooComplex`] when the steps do not suffice.
    pub fn run(
        &mut self,
        text: &[u8],
        start: usize,
        required_end: Option<usize>,
    ) -> Result<Option<&Captures>, TooComplex> {
        self.slots.fill(None);
        self.stack.clear();
        self.best_end = None;
        self.slots[0] = Some(start);
        let (mut pc, mut at) = (0, start);
        loop {
            self.steps_left = self.steps_left.checked_sub(1).ok_or(TooComplex)?;
            let program = self.program;
            let instruction = &program.instructions[pc];
            if let Instruction::Match = instruction {
                if self.accept(at, required_end, text.len()) {
                    break;
                }
            } else if let Some(next) = self.step(instruction, text, pc, &mut at) {
                pc = next;
                continue;
            }
            match self.backtrack() {
                Some(resumed) => (pc, at) = resumed,
                None => break,
            }
        }
        Ok(self.best_end.map(|_| &self.best))
    }

    /// Takes note of a match; says whether there can be no better one.
    fn accept(&mut self, at: usize, required_end: Option<usize>, length: usize) -> bool {
        if required_end.is_some_and(|end| end != at) {
            return false;
        }
        let ambiguous = self.program.is_ambiguous;
        let is_better = match self.best_end {
            None => true,
            Some(end) => at > end || (at == end && ambiguous && gives_earlier_groups_more(&self.slots, &self.best)),
        };
        if is_better {
            self.best.clone_from(&self.slots);
            self.best[1] = Some(at);
            self.best_end = Some(at);
        }
        let nothing_longer = required_end.is_some() || at == length;
        (nothing_longer && !ambiguous) || self.stack.is_empty()
    }

    /// Executes one instruction; `None` when it fails.
    fn step(&mut self, instruction: &Instruction, text: &[u8], pc: usize, at: &mut usize) -> Option<usize> {
        let current = text.get(*at).copied();
        match instruction {
            Instruction::Byte(byte) if current == Some(*byte) => *at += 1,
            Instruction::Set(set) if current.is_some_and(|byte| set.contains(byte)) => *at += 1,
            Instruction::LineStart if *at == 0 || text[*at - 1] == b'\n' => {}
            Instruction::LineEnd if current.is_none_or(|byte| byte == b'\n') => {}
            Instruction::WordStart if !word_before(text, *at) && word_at(text, *at) => {}
            Instruction::WordEnd if word_before(text, *at) && !word_at(text, *at) => {}
            Instruction::Split(first, second) => {
                self.stack.push(Frame::Continue(*second, *at));
                return Some(*first);
            }
            Instruction::Jump(target) => return Some(*target),
            Instruction::Save(slot) => {
                self.stack.push(Frame::RestoreSlot(*slot, self.slots[*slot]));
                self.slots[*slot] = Some(*at);
            }
            Instruction::Mark(register) => {
                self.stack.push(Frame::RestoreRegister(*register, self.registers[*register]));
                self.registers[*register] = *at;
            }
            Instruction::Progress(register) if self.registers[*register] != *at => {}
            Instruction::BackReference(group) => {
                let (start, end) = (self.slots[group * 2]?, self.slots[group * 2 + 1]?);
                let referred = &text[start..end];
                if !text[*at..].starts_with(referred) {
                    return None;
                }
                *at += referred.len();
            }
            _ => return None,
        }
        Some(pc + 1)
    }

    fn backtrack(&mut self) -> Option<(usize, usize)> {
        loop {
            match self.stack.pop()? {
                Frame::Continue(pc, at) => return Some((pc, at)),
                Frame::RestoreSlot(slot, value) => self.slots[slot] = value,
                Frame::RestoreRegister(register, value) => self.registers[register] = value,
            }
        }
    }
}

fn word_at(text: &[u8], at: usize) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    text.get(at).is_some_and(is_word)
}

fn word_before(text: &[u8], at: usize) -> bool {
    at > 0 && word_at(text, at - 1)
}

/// Whether the first group that differs begins earlier in `new` than in `old`, or is longer there: POSIX
/// gives each part, from left to right, as much as the whole allows.
fn gives_earlier_groups_more(new: &[Option<usize>], old: &[Option<usize>]) -> bool {
    let differing = new.chunks(2).zip(old.chunks(2)).skip(1).find(|(new, old)| new != old);
    match differing {
        Some((&[Some(new_start), Some(new_end)], &[Some(old_start), Some(old_end)])) => {
            new_start < old_start || (new_start == old_start && new_end > old_end)
        }
        Some((&[Some(_), Some(_)], _)) => true,
        _ => false,
    }
}
