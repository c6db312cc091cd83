//! Expressions of the tables, compiled to a small stack code.

use std::collections::BTreeMap;

/// Operations of the stack code; `src/expression.rs` runs them under the same numbers.
pub mod op {
    pub const END: u16 = 0;
    pub const PUSH: u16 = 1;
    pub const PRESENT: u16 = 2;
    pub const IN: u16 = 3;
    pub const NUM: u16 = 4;
    pub const SHAPE: u16 = 5;
    pub const BITS: u16 = 6;
    pub const TYPE: u16 = 7;
    pub const DOUBLE: u16 = 8;
    pub const OPERAND: u16 = 9;
    pub const NOT: u16 = 16;
    pub const SELECT: u16 = 17;
    pub const BINARY: u16 = 32;
}

/// Binary operators, weakest first; the code of one is `op::BINARY` plus its position.
const LEVELS: [&[&str]; 5] = [&["|"], &["&"], &["==", "!=", "<=", ">=", "<", ">"], &["+", "-"], &["*", "/"]];
const OPERATORS: [&str; 12] = ["|", "&", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/"];

/// What a name in an expression may mean.
pub struct Scope<'a> {
    /// Slots by name, with their alternatives.
    pub slots: &'a [(String, Vec<String>)],
    /// Operands by name.
    pub operands: &'a BTreeMap<String, u16>,
    /// Groups of pieces.
    pub groups: &'a dyn Fn(&str) -> Option<Vec<String>>,
    /// Types by name.
    pub types: &'a BTreeMap<String, u16>,
    /// Number of a piece.
    pub token: &'a dyn Fn(&str) -> u16,
}

pub struct Compiler<'a> {
    words: Vec<String>,
    at: usize,
    scope: &'a Scope<'a>,
    code: Vec<u16>,
    /// Whether the value depends on the operands of a statement.
    pub dynamic: bool,
}

fn lex(text: &str) -> Result<Vec<String>, String> {
    let bytes = text.as_bytes();
    let mut words = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let byte = bytes[at];
        if byte.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if byte.is_ascii_alphanumeric() || byte == b'_' {
            while at < bytes.len() {
                let here = bytes[at];
                if here.is_ascii_alphanumeric() || here == b'_' {
                    at += 1;
                } else if here == b':' && bytes.get(at + 1) == Some(&b':') {
                    at += 2;
                } else {
                    break;
                }
            }
        } else if matches!(&text.get(at..at + 2), Some("==" | "!=" | "<=" | ">=")) {
            at += 2;
        } else if b"|&!<>+-*/?:(),=".contains(&byte) {
            at += 1;
        } else {
            return Err(format!("`{}` in an expression", byte as char));
        }
        words.push(text[start..at].to_owned());
    }
    Ok(words)
}

/// Compiles `text`; the code ends in `END`.
pub fn compile(text: &str, scope: &Scope) -> Result<(Vec<u16>, bool), String> {
    let mut compiler = Compiler { words: lex(text)?, at: 0, scope, code: Vec::new(), dynamic: false };
    compiler.ternary()?;
    if compiler.at != compiler.words.len() {
        return Err(format!("`{}` is left over in `{text}`", compiler.words[compiler.at]));
    }
    compiler.code.push(op::END);
    Ok((compiler.code, compiler.dynamic))
}

impl Compiler<'_> {
    fn peek(&self) -> &str {
        self.words.get(self.at).map_or("", String::as_str)
    }

    fn accept(&mut self, word: &str) -> bool {
        let found = self.peek() == word;
        self.at += usize::from(found);
        found
    }

    fn expect(&mut self, word: &str) -> Result<(), String> {
        match self.accept(word) {
            true => Ok(()),
            false => Err(format!("expected `{word}`, found `{}`", self.peek())),
        }
    }

    fn next(&mut self) -> Result<String, String> {
        let word = self.words.get(self.at).cloned().ok_or("expression ends early")?;
        self.at += 1;
        Ok(word)
    }

    fn ternary(&mut self) -> Result<(), String> {
        self.binary(0)?;
        if self.accept("?") {
            self.ternary()?;
            self.expect(":")?;
            self.ternary()?;
            self.code.push(op::SELECT);
        }
        Ok(())
    }

    fn binary(&mut self, level: usize) -> Result<(), String> {
        let Some(&operators) = LEVELS.get(level) else {
            return self.unary();
        };
        self.binary(level + 1)?;
        while let Some(operator) = operators.iter().find(|operator| **operator == self.peek()) {
            self.at += 1;
            self.binary(level + 1)?;
            let number = OPERATORS.iter().position(|other| other == operator).unwrap_or(0);
            self.code.push(op::BINARY + number as u16);
        }
        Ok(())
    }

    fn unary(&mut self) -> Result<(), String> {
        if self.accept("!") {
            self.unary()?;
            self.code.push(op::NOT);
            return Ok(());
        }
        if self.accept("(") {
            self.ternary()?;
            return self.expect(")");
        }
        let word = self.next()?;
        if let Ok(number) = word.parse::<u16>() {
            self.code.extend([op::PUSH, number]);
            return Ok(());
        }
        if self.peek() == "(" {
            return self.function(&word);
        }
        if let Some(&number) = self.scope.types.get(&word) {
            self.code.extend([op::PUSH, number]);
            return Ok(());
        }
        if let Some(slot) = self.slot(&word) {
            if self.accept("=") {
                return self.membership(slot);
            }
            self.code.extend([op::PRESENT, slot]);
            return Ok(());
        }
        self.piece(&word)
    }

    fn slot(&self, name: &str) -> Option<u16> {
        self.scope.slots.iter().position(|(other, _)| other == name).map(|at| at as u16)
    }

    fn membership(&mut self, slot: u16) -> Result<(), String> {
        let mut pieces = Vec::new();
        loop {
            let word = self.next()?;
            match (self.scope.groups)(&word) {
                Some(group) => pieces.extend(group),
                None => pieces.push(word),
            }
            if !self.accept(",") {
                break;
            }
        }
        let known = &self.scope.slots[slot as usize].1;
        pieces.retain(|piece| known.contains(piece));
        if pieces.is_empty() {
            return Err(format!("slot `{}` holds none of these", self.scope.slots[slot as usize].0));
        }
        self.code.extend([op::IN, slot, pieces.len() as u16]);
        for piece in pieces {
            self.code.push((self.scope.token)(&piece));
        }
        Ok(())
    }

    /// A bare piece: true where any slot holds it.
    fn piece(&mut self, word: &str) -> Result<(), String> {
        let mut found = 0;
        for (index, (_, alternatives)) in self.scope.slots.iter().enumerate() {
            if alternatives.iter().any(|other| other == word) {
                self.code.extend([op::IN, index as u16, 1, (self.scope.token)(word)]);
                found += 1;
                if found > 1 {
                    self.code.push(op::BINARY);
                }
            }
        }
        match found {
            0 => Err(format!("`{word}` is no slot, piece or type here")),
            _ => Ok(()),
        }
    }

    fn function(&mut self, name: &str) -> Result<(), String> {
        self.expect("(")?;
        let argument = self.next()?;
        self.expect(")")?;
        let of_operand =
            ["arg", "is_imm", "is_vec", "is_sink", "is_pair", "is_symbol", "is_small", "is_reg", "is_selected"];
        if let Some(question) = of_operand.iter().position(|other| *other == name) {
            let operand = self.scope.operands.get(&argument).ok_or_else(|| format!("no operand `{argument}`"))?;
            self.dynamic = true;
            self.code.extend([op::OPERAND, question as u16, *operand]);
            return Ok(());
        }
        let slot = self.slot(&argument).ok_or_else(|| format!("no slot `{argument}`"))?;
        match name {
            "num" => self.code.extend([op::NUM, slot]),
            "m" => self.code.extend([op::SHAPE, slot, 0]),
            "n" => self.code.extend([op::SHAPE, slot, 1]),
            "k" => self.code.extend([op::SHAPE, slot, 2]),
            "bits" => self.code.extend([op::BITS, slot]),
            "type" => self.code.extend([op::TYPE, slot]),
            "double" => self.code.extend([op::DOUBLE, slot]),
            _ => return Err(format!("no function `{name}`")),
        }
        Ok(())
    }
}
