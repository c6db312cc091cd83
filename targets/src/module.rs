//! Reads whole PTX files: directives, declarations, functions, scopes (PTX ISA 4, 5, 11).
//!
//! The reader knows just enough of the directives to find every name and every statement; it does
//! not check initializers or linkage.

use crate::check::{Checker, Diagnostic};
use crate::declarations::{Declarations, Symbol};
use crate::statement::{Reader, Span, Statement, SyntaxError, is_name};
use crate::{PtxVersion, RegType, Space, Target};

/// Where a declaration stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// Outside of functions.
    Module,
    /// In the body of a function.
    Body,
    /// A parameter of a function.
    Parameter,
    /// What a function returns.
    Return,
}

/// A register, a variable or a parameter that is declared.
#[derive(Clone, Copy, Debug)]
pub struct Declaration<'a> {
    /// Its name, or the prefix of the names of a range.
    pub name: &'a str,
    /// `%r<8>` declares that many, from `%r0` on.
    pub count: Option<u32>,
    /// What it is.
    pub symbol: Symbol,
    /// Type of it, or of its elements.
    pub ty: RegType,
    /// Elements of the vector that it is, or that its elements are; 1 for scalars.
    pub lanes: u8,
    /// Bytes of `.align`; 0 without.
    pub align: u32,
    /// The sizes as written: `[4][2]`, or nothing.
    pub dimensions: &'a str,
    /// What stands after `=`.
    pub initializer: Option<&'a str>,
    /// `.extern` stands before it.
    pub external: bool,
    /// Where it stands.
    pub place: Place,
    /// Where the name is.
    pub span: Span,
}

/// Receives what [`walk_module`] finds, in the order of the text.
pub trait Sink {
    /// A function begins: a kernel or not. Its results and parameters follow as declarations.
    fn function(&mut self, _name: &str, _kernel: bool, _span: Span) {}
    /// What stands between the parameters and the body; whether there is a body.
    fn body(&mut self, _directives: &str, _defined: bool) {}
    /// The body is over.
    fn end(&mut self) {}
    /// A brace opens a scope within a body, or closes it.
    fn scope(&mut self, _open: bool) {}
    /// A label stands here; it may name the directive that follows.
    fn label(&mut self, _name: &str, _span: Span) {}
    /// A register, variable or parameter.
    fn declaration(&mut self, _declaration: &Declaration<'_>) {}
    /// `.branchtargets`, `.calltargets` or `.callprototype`, and its text up to the semicolon.
    fn list(&mut self, _directive: &str, _text: &str, _span: Span) {}
    /// `.version`
    fn version(&mut self, _version: PtxVersion) {}
    /// A statement of a function.
    fn statement(&mut self, statement: &Statement, declarations: &Declarations);
    /// Something that is wrong with the file itself. Returning false ends the walk.
    fn error(&mut self, diagnostic: Diagnostic) -> bool;
}

/// Reads `text` and hands every statement to `sink`.
pub fn walk_module(text: &str, sink: &mut dyn Sink) {
    let mut walker = Walker {
        reader: Reader { text, at: 0 },
        names: Declarations::new(),
        sink,
        statement: Statement::default(),
        external: false,
    };
    while walker.top() {}
}

/// Checks a whole PTX file for `target`; its own `.version` is the limit. At most `max_errors`
/// diagnostics, 0 for no limit.
pub fn check_module(text: &str, target: Target, max_errors: usize) -> Vec<Diagnostic> {
    let mut sink = Collector {
        checker: Checker::new(target, PtxVersion::MAX),
        target,
        limit: if max_errors == 0 { usize::MAX } else { max_errors },
        found: Vec::new(),
    };
    walk_module(text, &mut sink);
    sink.found
}

struct Collector {
    checker: Checker,
    target: Target,
    limit: usize,
    found: Vec<Diagnostic>,
}

impl Sink for Collector {
    fn version(&mut self, version: PtxVersion) {
        self.checker = Checker::new(self.target, version);
    }

    fn statement(&mut self, statement: &Statement, declarations: &Declarations) {
        if self.found.len() < self.limit
            && let Err(diagnostic) = self.checker.check(statement, declarations)
        {
            self.found.push(diagnostic);
        }
    }

    fn error(&mut self, diagnostic: Diagnostic) -> bool {
        if self.found.len() < self.limit {
            self.found.push(diagnostic);
        }
        self.found.len() < self.limit
    }
}

/// Line and column, both from 1, of byte `at`.
pub fn line_and_column(text: &str, at: u32) -> (usize, usize) {
    let before = &text.as_bytes()[..(at as usize).min(text.len())];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    (line, 1 + before.len() - start)
}

/// Longest vector operand that recovery from an error knows as one, in bytes.
const LONGEST_VECTOR: usize = 8192;

struct Walker<'a, 's> {
    reader: Reader<'a>,
    names: Declarations<'a>,
    sink: &'s mut dyn Sink,
    statement: Statement<'a>,
    /// `.extern` was read, and what it speaks of was not.
    external: bool,
}

impl<'a> Walker<'a, '_> {
    /// Reports an error; false ends the walk.
    fn report(&mut self, error: SyntaxError) -> bool {
        let span = Span { start: error.at as u32, len: 1 };
        self.sink.error(Diagnostic { message: error.message, span })
    }

    /// Skips to after the next `;`, or to a brace that opens or closes a block.
    fn recover(&mut self) {
        while let Some(byte) = self.reader.peek() {
            match byte {
                b'{' | b'}' if !self.brace_of_vector(byte) => return,
                b';' => {
                    self.reader.at += 1;
                    return;
                }
                _ => self.reader.at += 1,
            }
            self.reader.space();
        }
    }

    /// Whether the brace here belongs to a vector operand, as far as what follows tells: no statement ends in a vector,
    /// and one goes on after it.
    fn brace_of_vector(&self, brace: u8) -> bool {
        if brace == b'}' {
            let mut ahead = Reader { text: self.reader.text, at: self.reader.at + 1 };
            ahead.space();
            return matches!(ahead.peek(), Some(b',' | b';' | b'.' | b'|' | b']' | b')'));
        }
        let inside = self.reader.rest().as_bytes().get(1..).unwrap_or(&[]);
        let end = inside.iter().take(LONGEST_VECTOR).position(|byte| matches!(byte, b'{' | b'}' | b';'));
        end.is_some_and(|end| inside[end] == b'}' && inside[..end].iter().any(|byte| !byte.is_ascii_whitespace()))
    }

    /// One thing at module scope; false at the end.
    fn top(&mut self) -> bool {
        self.reader.space();
        match self.reader.peek() {
            None => false,
            Some(b'.') => {
                let result = self.directive();
                match result {
                    Ok(()) => true,
                    Err(error) => {
                        let go_on = self.report(error);
                        let before = self.reader.at;
                        self.recover();
                        if matches!(self.reader.peek(), Some(b'{' | b'}')) || before == self.reader.at {
                            self.reader.at += 1;
                        }
                        go_on
                    }
                }
            }
            Some(b'}' | b';') => {
                self.reader.at += 1;
                true
            }
            Some(_) => {
                let error = self.reader.error("expected a directive");
                let go_on = self.report(error);
                self.recover();
                self.reader.at += usize::from(matches!(self.reader.peek(), Some(b'{' | b'}')));
                go_on
            }
        }
    }

    /// A word after a dot, with `::` parts.
    fn dotted(&mut self) -> Result<&'a str, SyntaxError> {
        self.reader.space();
        if !self.reader.accept(b'.') {
            return Err(self.reader.error("expected a directive"));
        }
        let bytes = self.reader.text.as_bytes();
        let start = self.reader.at;
        let mut end = start;
        while let Some(&byte) = bytes.get(end) {
            if byte == b':' && bytes.get(end + 1) == Some(&b':') {
                end += 2;
            } else if is_name(byte) {
                end += 1;
            } else {
                break;
            }
        }
        self.reader.at = end;
        self.reader.text.get(start..end).ok_or_else(|| self.reader.error("expected a directive"))
    }

    fn directive(&mut self) -> Result<(), SyntaxError> {
        let start = self.reader.at;
        match self.dotted()? {
            "version" => {
                self.reader.space();
                let rest = self.reader.rest();
                let end = rest.bytes().position(|b| !(b.is_ascii_digit() || b == b'.')).unwrap_or(rest.len());
                let number = rest.get(..end).unwrap_or("");
                let version = number.parse().map_err(|_| self.reader.error("unknown .version"))?;
                self.reader.at += end;
                self.sink.version(version);
                Ok(())
            }
            "target" => {
                self.skip_list();
                Ok(())
            }
            "address_size" | "file" | "loc" => {
                self.skip_line();
                Ok(())
            }
            "section" | "managed" => self.skip_braces(),
            "pragma" | "alias" => {
                self.skip_statement();
                Ok(())
            }
            word @ ("visible" | "extern" | "weak" | "common" | "internal") => {
                self.external |= word == "extern";
                Ok(())
            }
            "entry" => self.function(false),
            "func" => self.function(true),
            _ => {
                self.reader.at = start;
                self.declaration(Place::Module)
            }
        }
    }

    /// `a, b, c` of names.
    fn skip_list(&mut self) {
        loop {
            self.reader.space();
            if self.reader.name().is_none() {
                return;
            }
            self.reader.space();
            if !self.reader.accept(b',') {
                return;
            }
        }
    }

    fn skip_line(&mut self) {
        while self.reader.peek().is_some_and(|byte| byte != b'\n' && byte != b';' && byte != b'}') {
            self.reader.at += 1;
        }
        self.reader.accept(b';');
    }

    fn skip_statement(&mut self) {
        let mut quoted = false;
        while let Some(byte) = self.reader.peek() {
            self.reader.at += 1;
            quoted ^= byte == b'"';
            if byte == b';' && !quoted {
                return;
            }
        }
    }

    /// Skips to after the brace that closes the next one.
    fn skip_braces(&mut self) -> Result<(), SyntaxError> {
        let mut depth = 0usize;
        loop {
            self.reader.space();
            match self.reader.peek() {
                None => return Err(self.reader.error("expected `}`")),
                Some(b'{') => depth += 1,
                Some(b'}') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.reader.at += 1;
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
            self.reader.at += 1;
        }
    }

    fn function(&mut self, may_return: bool) -> Result<(), SyntaxError> {
        self.reader.space();
        // The parameters' names are the function's own; the function's name is the module's.
        let returns = self.reader.at;
        if may_return {
            while self.reader.rest().starts_with(".attribute") {
                self.dotted()?;
                self.skip_parentheses()?;
                self.reader.space();
            }
        }
        let returns = if may_return && self.reader.peek() == Some(b'(') {
            let at = self.reader.at;
            self.skip_parentheses()?;
            self.reader.space();
            Some(at)
        } else {
            let _ = returns;
            None
        };
        let name = self.reader.name().ok_or_else(|| self.reader.error("expected a function's name"))?;
        self.names.declare(name, Symbol::Function);
        self.external = false;
        self.sink.function(name, !may_return, span(self.reader.at - name.len(), name));
        self.reader.space();
        let after = self.reader.at;
        self.names.push_scope();
        let result = self.rest_of_function(returns, after);
        self.names.pop_scope();
        result
    }

    fn rest_of_function(&mut self, returns: Option<usize>, after: usize) -> Result<(), SyntaxError> {
        if let Some(at) = returns {
            self.reader.at = at;
            self.parameters(Place::Return)?;
        }
        self.reader.at = after;
        if self.reader.peek() == Some(b'(') {
            self.parameters(Place::Parameter)?;
        }
        let directives = self.reader.at;
        // Directives such as .maxntid stand between the parameters and the body.
        loop {
            self.reader.space();
            match self.reader.peek() {
                Some(b'{') => break,
                Some(b';') => {
                    self.sink.body(self.reader.text.get(directives..self.reader.at).unwrap_or(""), false);
                    self.reader.at += 1;
                    return Ok(());
                }
                Some(b'.') if self.reader.rest().starts_with(".pragma") => self.skip_statement(),
                Some(_) => self.reader.at += 1,
                None => return Err(self.reader.error("expected `{` or `;`")),
            }
        }
        self.sink.body(self.reader.text.get(directives..self.reader.at).unwrap_or(""), true);
        self.labels();
        let result = self.body();
        self.sink.end();
        result
    }

    fn skip_parentheses(&mut self) -> Result<(), SyntaxError> {
        let mut depth = 0usize;
        loop {
            self.reader.space();
            match self.reader.peek() {
                None => return Err(self.reader.error("expected `)`")),
                Some(b'(') => depth += 1,
                Some(b')') => {
                    depth = depth.saturating_sub(1);
                    if depth == 0 {
                        self.reader.at += 1;
                        return Ok(());
                    }
                }
                Some(_) => {}
            }
            self.reader.at += 1;
        }
    }

    fn parameters(&mut self, place: Place) -> Result<(), SyntaxError> {
        self.reader.space();
        if !self.reader.accept(b'(') {
            return Err(self.reader.error("expected `(`"));
        }
        loop {
            self.reader.space();
            if self.reader.accept(b')') {
                return Ok(());
            }
            self.declaration(place)?;
            self.reader.space();
            if !self.reader.accept(b',') && self.reader.peek() != Some(b')') {
                return Err(self.reader.error("expected `,` or `)`"));
            }
        }
    }

    /// Declares every label of the body that starts here, since branches go forward.
    fn labels(&mut self) {
        let mut reader = Reader { text: self.reader.text, at: self.reader.at };
        let mut depth = 0usize;
        let mut fresh = true;
        loop {
            reader.space();
            match reader.peek() {
                None => return,
                Some(byte @ (b'{' | b'}' | b';')) => {
                    match byte {
                        b'{' => depth += 1,
                        b'}' => depth -= 1,
                        _ => {}
                    }
                    reader.at += 1;
                    fresh = true;
                    if depth == 0 {
                        return;
                    }
                }
                Some(b'"') => {
                    reader.at += 1;
                    while reader.peek().is_some_and(|byte| byte != b'"') {
                        reader.at += 1;
                    }
                    reader.at += 1;
                }
                Some(_) if fresh => match reader.name() {
                    Some(name) => {
                        reader.space();
                        fresh = label_colon(&mut reader);
                        if fresh {
                            reader.space();
                            let list = reader.rest();
                            let prototype = list.starts_with(".callprototype") || list.starts_with(".calltargets");
                            let symbol = if prototype { Symbol::Function } else { Symbol::Label };
                            self.names.declare(name, symbol);
                        }
                    }
                    None => {
                        fresh = false;
                        reader.at += 1;
                    }
                },
                Some(_) => {
                    // Nothing before the end of the statement can be a label. In bytes: this may be inside a character.
                    let rest = reader.text.as_bytes().get(reader.at..).unwrap_or(&[]);
                    let end = rest.iter().skip(1).position(|byte| matches!(byte, b';' | b'{' | b'}' | b'"' | b'/'));
                    reader.at += end.map_or(rest.len(), |at| at + 1);
                }
            }
        }
    }

    fn body(&mut self) -> Result<(), SyntaxError> {
        let mut depth = 0usize;
        loop {
            self.reader.space();
            match self.reader.peek() {
                None => return Err(self.reader.error("expected `}`")),
                Some(b'{') => {
                    self.reader.at += 1;
                    depth += 1;
                    self.names.push_scope();
                    self.sink.scope(true);
                }
                Some(b'}') => {
                    self.reader.at += 1;
                    depth -= 1;
                    self.names.pop_scope();
                    self.sink.scope(false);
                    if depth == 0 {
                        return Ok(());
                    }
                }
                Some(b';') => self.reader.at += 1,
                Some(_) => {
                    if let Err(error) = self.line() {
                        if !self.report(error) {
                            self.reader.at = self.reader.text.len();
                            (0..depth).for_each(|_| self.names.pop_scope());
                            return Ok(());
                        }
                        self.recover();
                    }
                }
            }
        }
    }

    /// A label, a directive or a statement of a body.
    fn line(&mut self) -> Result<(), SyntaxError> {
        let start = self.reader.at;
        if self.reader.peek() == Some(b'.') {
            match self.dotted()? {
                "loc" | "file" => {
                    self.skip_line();
                    return Ok(());
                }
                "pragma" => {
                    self.skip_statement();
                    return Ok(());
                }
                directive @ ("branchtargets" | "calltargets" | "callprototype") => {
                    let from = self.reader.at;
                    self.skip_statement();
                    let text = self.reader.text.get(from..self.reader.at.saturating_sub(1)).unwrap_or("");
                    self.sink.list(directive, text, span(from, text));
                    return Ok(());
                }
                "section" => return self.skip_braces(),
                _ => {
                    self.reader.at = start;
                    return self.declaration(Place::Body);
                }
            }
        }
        if let Some(name) = self.reader.name() {
            self.reader.space();
            if label_colon(&mut self.reader) {
                self.sink.label(name, span(start, name));
                return Ok(());
            }
        }
        let text = self.reader.text;
        match self.statement.read(text, start) {
            Ok(end) => {
                self.reader.at = end;
                self.sink.statement(&self.statement, &self.names);
                Ok(())
            }
            Err(error) => {
                self.reader.at = error.at.max(start);
                Err(error)
            }
        }
    }

    /// `.reg .b32 %r<4>, %x;`, `.shared .align 4 .b8 s[64] = {…};`, a parameter.
    fn declaration(&mut self, place: Place) -> Result<(), SyntaxError> {
        let mut space = None;
        let mut register = false;
        let mut ty = None;
        let mut lanes = 1;
        let mut align = 0;
        // What follows `.ptr` is about what the parameter points to.
        let mut pointer = false;
        let mut external = self.external && place == Place::Module;
        self.external = false;
        loop {
            self.reader.space();
            if self.reader.peek() != Some(b'.') {
                break;
            }
            let at = self.reader.at;
            match self.dotted()? {
                "reg" => register = true,
                "ptr" => pointer = true,
                "global" | "shared" | "local" | "const" | "param" if pointer => {}
                word @ ("global" | "extern" | "visible" | "weak" | "common") => {
                    external |= word == "extern";
                    space = space.or(Some(Space::Global));
                }
                "shared" | "shared::cta" => space = Some(Space::Shared),
                "local" => space = Some(Space::Local),
                "const" => space = Some(Space::Const),
                "param" => space = Some(Space::Param),
                "sreg" | "attribute" | "unified" | "managed" => {
                    self.reader.space();
                    if self.reader.peek() == Some(b'(') {
                        self.skip_parentheses()?;
                    }
                }
                "align" => {
                    self.reader.space();
                    let bytes = self.reader.constant().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
                    align = if pointer { align } else { bytes };
                }
                "v2" => lanes = 2,
                "v4" => lanes = 4,
                "v8" => lanes = 8,
                word => {
                    let known = RegType::from_text(word).or(match word {
                        "bf16" | "f16x2" | "bf16x2" | "tf32" | "e4m3x2" | "e5m2x2" => Some(RegType::B32),
                        _ => None,
                    });
                    if known.is_none() {
                        self.reader.at = at;
                        return Err(self.reader.error(&format!("unknown directive `.{word}`")));
                    }
                    ty = known;
                }
            }
        }
        let Some(ty) = ty else {
            return Err(self.reader.error("expected a type"));
        };
        let symbol = match (register, lanes) {
            (true, 1) => Symbol::Register(ty),
            (true, lanes) => Symbol::Vector(ty, lanes),
            _ if matches!(ty, RegType::Texref | RegType::Samplerref | RegType::Surfref) => Symbol::Opaque(ty),
            _ => Symbol::Variable(space.unwrap_or(Space::Param)),
        };
        let none = Span::default();
        let (name, count, dimensions, initializer) = ("", None, "", None);
        let model =
            Declaration { name, count, symbol, ty, lanes, align, dimensions, initializer, external, place, span: none };
        let listed = matches!(place, Place::Parameter | Place::Return);
        loop {
            self.declarator(model)?;
            self.reader.space();
            match self.reader.peek() {
                Some(b',') if !listed => self.reader.at += 1,
                Some(b';') if !listed => {
                    self.reader.at += 1;
                    return Ok(());
                }
                _ if listed => return Ok(()),
                _ => return Err(self.reader.error("expected `,` or `;`")),
            }
        }
    }

    /// A name with what follows it; the rest is as in `model`.
    fn declarator(&mut self, model: Declaration<'a>) -> Result<(), SyntaxError> {
        let symbol = model.symbol;
        self.reader.space();
        let name = self.reader.name().ok_or_else(|| self.reader.error("expected a name"))?;
        let model = Declaration { name, span: span(self.reader.at - name.len(), name), ..model };
        self.reader.space();
        if self.reader.accept(b'<') {
            let count = self.reader.constant().and_then(|count| u32::try_from(count).ok());
            self.reader.space();
            match count {
                Some(count) if self.reader.accept(b'>') => {
                    self.names.declare_range(name, count, symbol);
                    self.sink.declaration(&Declaration { count: Some(count), ..model });
                }
                _ => return Err(self.reader.error("expected a count and `>`")),
            }
            return Ok(());
        }
        if !self.names.declare(name, symbol) && matches!(symbol, Symbol::Register(_)) {
            return Err(self.reader.error(&format!("`{name}` is declared twice")));
        }
        let sizes = self.reader.at;
        let mut end = sizes;
        loop {
            self.reader.space();
            match self.reader.peek() {
                Some(b'[') => {
                    while self.reader.peek().is_some_and(|byte| byte != b']') {
                        self.reader.at += 1;
                    }
                    self.reader.accept(b']');
                    end = self.reader.at;
                }
                Some(b'=') => {
                    let from = self.reader.at + 1;
                    self.initializer()?;
                    let initializer = self.reader.text.get(from..self.reader.at);
                    let dimensions = self.reader.text.get(sizes..end).unwrap_or("");
                    self.sink.declaration(&Declaration { dimensions, initializer, ..model });
                    return Ok(());
                }
                _ => {
                    let dimensions = self.reader.text.get(sizes..end).unwrap_or("");
                    self.sink.declaration(&Declaration { dimensions, ..model });
                    return Ok(());
                }
            }
        }
    }

    fn initializer(&mut self) -> Result<(), SyntaxError> {
        let mut depth = 0usize;
        loop {
            self.reader.space();
            match self.reader.peek() {
                None => return Err(self.reader.error("expected `;`")),
                Some(b'{' | b'(') => depth += 1,
                Some(b'}' | b')') => depth = depth.saturating_sub(1),
                Some(b',' | b';') if depth == 0 => return Ok(()),
                Some(_) => {}
            }
            self.reader.at += 1;
        }
    }
}

/// The span of a text that starts at byte `start`.
fn span(start: usize, text: &str) -> Span {
    Span { start: start as u32, len: text.len() as u32 }
}

/// Accepts the colon after a label, but not `::`.
fn label_colon(reader: &mut Reader) -> bool {
    let rest = reader.rest().as_bytes();
    let colon = rest.first() == Some(&b':') && rest.get(1) != Some(&b':');
    reader.at += usize::from(colon);
    colon
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = ".version 8.0\n.target sm_90\n.address_size 64\n\
        .global .align 4 .b8 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n\
        .visible .entry k(.param .u64 p) .maxntid 128, 1, 1\n{\n\
        .reg .pred %p<2>;\n.reg .b32 %r<4>;\n\
        setp.eq.s32 %p1, %r1, %r2;\n\
        @%p1 add.s32 %r1, %r2, 4; // ok\n\
        { .reg .f32 %r1; add.f32 %r1, %r1, 1.0; }\n\
        add.s32 %r1, %r2;\nadd.foo %r1, %r2, %r3;\nadd.u8x4 %r1, %r2, %r3;\nadd.s32 %r1, %x, 1;\n}\n";

    #[test]
    fn a_module_is_checked_statement_by_statement() {
        let target = "sm_90".parse().unwrap();
        let found = check_module(KERNEL, target, 0);
        let lines: Vec<String> =
            found.iter().map(|one| format!("{}: {}", line_and_column(KERNEL, one.span.start).0, one.message)).collect();
        assert_eq!(
            lines,
            [
                "12: operand 3 of `add.s32` (`b`) must be a .s32 register or an immediate",
                "13: unknown modifier `.foo` of `add`",
                "14: `add.u8x4` needs PTX 9.2 on sm_107f, sm_120f, target is sm_90",
                "15: `%x` is not declared",
            ]
        );
        assert_eq!(check_module(KERNEL, target, 1).len(), 1);
    }

    #[test]
    fn an_error_does_not_end_the_block() {
        let target: Target = "sm_90".parse().unwrap();
        for line in ["add.s32 {%r1, %r2. %r3}. [%r1];", "add.s32 [%r1 {%r2, %r3}];", "@%p1 { add.s32 %r1, %r1, 1; }"] {
            let text = format!(
                ".version 8.0\n.target sm_90\n.visible .entry k() {{ .reg .b32 %r<4>;\n{{ .reg .pred %p1; {line} }}\n\
                 {{ .reg .b32 %p1; add.s32 %p1, %r1, %r2; }}\nret; }}\n"
            );
            let found = check_module(&text, target, 0);
            let lines: Vec<usize> = found.iter().map(|f| line_and_column(&text, f.span.start).0).collect();
            assert_eq!(lines, [4], "{found:?}");
        }
    }

    #[test]
    fn characters_of_several_bytes_end_the_search_for_labels() {
        for junk in ["é", "add é", "a é: b;", "x = \u{fffd}", "\u{fffd}"] {
            let text = format!(".version 8.0\n.target sm_90\n.address_size 64\n.entry k()\n{{\n  {junk}\n  ret;\n}}\n");
            assert!(!check_module(&text, "sm_90".parse().unwrap(), 0).is_empty(), "{junk}");
        }
    }
}
