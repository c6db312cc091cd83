//! A backtracking matcher for the two things automata cannot do: back-references, and capture groups
//! of a match whose end is prescribed.
//!
//! It explores the ways to match at one position, preferring longer repetitions and earlier
//! alternatives, and keeps the first of the longest. Its work is bounded by [`STEP_LIMIT`].

use super::syntax::{ByteSet, Node, SyntaxError};

/// Steps one attempt may take before it is given up as [`TooComplex`].
const STEP_LIMIT: u64 = 20_000_000;
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
}

/// Start and end of every group, group 0 being the whole match.
pub type Captures = Vec<Option<usize>>;

impl Program {
    /// Compiles a tree with `groups` groups.
    ///
    /// # Errors
    /// [`SyntaxError::TooLarge`] when its counted repetitions expand to too many instructions.
    pub fn new(root: &Node, groups: u32) -> Result<Self, SyntaxError> {
        let mut program = Self { instructions: Vec::new(), slots: (groups as usize + 1) * 2, registers: 0 };
        program.compile(root)?;
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

    fn alternate(&mut self, branches: &[Node]) -> Result<(), SyntaxError> {
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

    /// The longest match that begins at `start`, or the preferred one that ends at `required_end`.
    ///
    /// # Errors
    /// [`TooComplex`] when the ways to match are too many to try.
    pub fn run(&self, text: &[u8], start: usize, required_end: Option<usize>) -> Result<Option<Captures>, TooComplex> {
        let mut attempt = Attempt {
            text,
            slots: vec![None; self.slots],
            registers: vec![usize::MAX; self.registers],
            stack: Vec::new(),
            best: None,
            best_end: 0,
        };
        attempt.slots[0] = Some(start);
        attempt.explore(self, start, required_end)?;
        Ok(attempt.best)
    }
}

/// What to do when the current way fails.
enum Frame {
    Continue(usize, usize),
    RestoreSlot(usize, Option<usize>),
    RestoreRegister(usize, usize),
}

struct Attempt<'a> {
    text: &'a [u8],
    slots: Captures,
    registers: Vec<usize>,
    stack: Vec<Frame>,
    best: Option<Captures>,
    best_end: usize,
}

impl Attempt<'_> {
    fn explore(&mut self, program: &Program, start: usize, required_end: Option<usize>) -> Result<(), TooComplex> {
        let mut steps = 0;
        let (mut pc, mut at) = (0, start);
        loop {
            steps += 1;
            if steps > STEP_LIMIT {
                return Err(TooComplex);
            }
            let instruction = &program.instructions[pc];
            if let Instruction::Match = instruction {
                let accepted = required_end.is_none_or(|end| end == at);
                if accepted && (self.best.is_none() || at > self.best_end) {
                    let mut slots = self.slots.clone();
                    slots[1] = Some(at);
                    self.best = Some(slots);
                    self.best_end = at;
                }
                let nothing_longer = at == self.text.len();
                if accepted && (required_end.is_some() || nothing_longer) {
                    return Ok(());
                }
            } else if let Some(next) = self.step(instruction, pc, &mut at) {
                pc = next;
                continue;
            }
            match self.backtrack() {
                Some(resumed) => (pc, at) = resumed,
                None => return Ok(()),
            }
        }
    }

    /// Executes one instruction; `None` when it fails.
    fn step(&mut self, instruction: &Instruction, pc: usize, at: &mut usize) -> Option<usize> {
        let current = self.text.get(*at).copied();
        match instruction {
            Instruction::Byte(byte) if current == Some(*byte) => *at += 1,
            Instruction::Set(set) if current.is_some_and(|byte| set.contains(byte)) => *at += 1,
            Instruction::LineStart if *at == 0 || self.text[*at - 1] == b'\n' => {}
            Instruction::LineEnd if current.is_none_or(|byte| byte == b'\n') => {}
            Instruction::WordStart if !self.word_before(*at) && self.word_at(*at) => {}
            Instruction::WordEnd if self.word_before(*at) && !self.word_at(*at) => {}
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
                let referred = &self.text[start..end];
                if !self.text[*at..].starts_with(referred) {
                    return None;
                }
                *at += referred.len();
            }
            _ => return None,
        }
        Some(pc + 1)
    }

    fn word_at(&self, at: usize) -> bool {
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        self.text.get(at).is_some_and(is_word)
    }

    fn word_before(&self, at: usize) -> bool {
        at > 0 && self.word_at(at - 1)
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
