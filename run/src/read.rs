//! Reads directives.

use std::ops::Range;

use crate::error::Error;
use crate::expression::{Closed, Function};
use crate::file::{
    ArrayName, ArrayStep, Bounds, Case, Check, Expect, Fill, Gap, LaunchStep, Operand, Part, RunFile, Step, Tolerance,
};
use crate::parse::{Meaning, Parser};
use crate::token::{self, tokens};
use crate::value::Element;

/// Executors that a gap may name.
const EXECUTORS: &[&str] = &["interpreter", "emulator", "gpu"];

/// Reads all directives of a text.
pub(crate) fn read(text: &str) -> Result<RunFile, Error> {
    let tokens = tokens(text)?;
    let file = RunFile { cases: Vec::new(), target: None, gaps: Vec::new(), functions: Vec::new(), arrays: Vec::new() };
    let mut reader =
        Reader { parser: Parser::new(&tokens), file, shared: Vec::new(), case: None, shared_names: 0, values: 0 };
    while reader.parser.peek().is_some() {
        reader.directive()?;
        if reader.parser.peek() != Some(&token::Kind::Line) {
            return reader.parser.error("the directive should end here");
        }
        reader.parser.advance();
    }
    Ok(reader.finish())
}

struct Reader<'a> {
    parser: Parser<'a>,
    file: RunFile,
    /// Steps before the first case, which all cases begin with.
    shared: Vec<Step>,
    case: Option<Case>,
    /// Names before the first case.
    shared_names: usize,
    /// Values of `let`.
    values: usize,
}

impl Reader<'_> {
    fn finish(mut self) -> RunFile {
        self.file.cases.extend(self.case.take());
        if self.file.cases.is_empty() && self.shared.iter().any(|step| matches!(step, Step::Launch(_))) {
            self.file.cases.push(Case { name: String::new(), steps: std::mem::take(&mut self.shared) });
        }
        self.file.functions = self.parser.functions;
        self.file
    }

    fn push(&mut self, step: Step) {
        match &mut self.case {
            Some(case) => case.steps.push(step),
            None => self.shared.push(step),
        }
    }

    fn directive(&mut self) -> Result<(), Error> {
        let word = self.parser.name()?;
        let at = self.parser.last_span();
        match word.as_str() {
            "let" => self.constant(),
            "def" => self.function(),
            "array" => self.array(false, at),
            "buffer" => self.array(true, at),
            "launch" => self.launch(at),
            "expect" => self.expect(),
            "check" => self.check(),
            "case" => self.new_case(),
            "fails" => self.text().map(|text| self.push(Step::Fails(text))),
            "warns" => self.text().map(|text| self.push(Step::Warns(text))),
            "print" => self.part().map(|part| self.push(Step::Print(part))),
            "free" => loop {
                let array = self.known_array()?;
                self.push(Step::Free(array));
                if !self.parser.sign(",") {
                    return Ok(());
                }
            },
            "gap" => {
                let executor = self.parser.name()?;
                if !EXECUTORS.contains(&executor.as_str()) {
                    let message = format!("there is no executor `{executor}`; there are {}", EXECUTORS.join(", "));
                    return Err(Error::new(message, self.parser.last_span()));
                }
                let reason = self.text()?;
                self.file.gaps.push(Gap { executor, reason });
                Ok(())
            }
            "target" => {
                let name = self.parser.name()?;
                let target = name.parse().map_err(|error| Error::new(format!("{error}"), self.parser.last_span()))?;
                self.file.target = Some(target);
                Ok(())
            }
            _ => {
                let known = "let def array buffer launch expect check case fails warns print free gap target";
                Err(Error::new(format!("there is no directive `{word}`; there are: {known}"), at))
            }
        }
    }

    fn text(&mut self) -> Result<String, Error> {
        let Some(token::Kind::Text(bytes)) = self.parser.peek() else {
            return self.parser.error("a text in quotes is missing");
        };
        let text = String::from_utf8(bytes.clone());
        let text = text.or_else(|_| self.parser.error("the text is not UTF-8"))?;
        self.parser.advance();
        Ok(text)
    }

    fn new_case(&mut self) -> Result<(), Error> {
        let name = self.parser.name()?;
        if self.file.cases.iter().chain(&self.case).any(|case| case.name == name) {
            return Err(Error::new(format!("there is a case `{name}` already"), self.parser.last_span()));
        }
        match self.case.take() {
            Some(done) => self.file.cases.push(done),
            None => self.shared_names = self.parser.names.len(),
        }
        self.parser.names.truncate(self.shared_names);
        self.case = Some(Case { name, steps: self.shared.clone() });
        Ok(())
    }

    fn constant(&mut self) -> Result<(), Error> {
        let name = self.parser.new_name()?;
        self.parser.need("=")?;
        let value = self.parser.closed(None)?;
        let index = self.values;
        self.values += 1;
        self.parser.names.push((name, Meaning::Named(index)));
        self.push(Step::Let(index, value));
        Ok(())
    }

    fn function(&mut self) -> Result<(), Error> {
        let name = self.parser.new_name()?;
        self.parser.need("(")?;
        let mut locals: Vec<(String, usize)> = Vec::new();
        while !self.parser.sign(")") {
            if !locals.is_empty() {
                self.parser.need(",")?;
            }
            let parameter = self.parser.new_name()?;
            locals.push((parameter, locals.len()));
        }
        self.parser.need("=")?;
        let index = self.parser.functions.len();
        self.parser.functions.push(Function { parameters: locals.len(), body: None });
        self.parser.names.push((name, Meaning::Function(index)));
        let body = self.parser.closed_with(locals, None)?;
        if let Some(function) = self.parser.functions.get_mut(index) {
            function.body = Some(body);
        }
        Ok(())
    }

    fn array(&mut self, buffer: bool, at: Range<usize>) -> Result<(), Error> {
        let name = self.parser.new_name()?;
        let known = self.parser.names.iter().any(|(other, _)| *other == name);
        if known {
            return Err(Error::new(format!("`{name}` is defined already"), self.parser.last_span()));
        }
        self.parser.need(":")?;
        let ty = self.parser.name()?;
        let Some(element) = Element::from_name(&ty) else {
            return Err(Error::new(format!("`{ty}` is no type of elements"), self.parser.last_span()));
        };
        self.parser.need("[")?;
        let length = self.parser.closed(None)?;
        self.parser.need("]")?;
        let array = self.file.arrays.len();
        self.file.arrays.push(ArrayName { name: name.clone(), element });
        // Its own elements may be used: those before the one that is computed.
        self.parser.names.push((name, Meaning::Array(array)));
        let fill = if self.parser.sign("=") { Some(self.fill(element)?) } else { None };
        if fill.is_none() && !buffer {
            return Err(Error::new("the array has no contents", at.start..self.parser.last_span().end));
        }
        self.push(Step::Array(ArrayStep { array, buffer, length, fill }));
        Ok(())
    }

    fn fill(&mut self, element: Element) -> Result<Fill, Error> {
        let start = self.parser.span().start;
        if let Some(token::Kind::Text(bytes)) = self.parser.peek() {
            self.parser.advance();
            return Ok(Fill::Bytes(bytes.clone(), self.parser.last_span()));
        }
        let quoted = self.parser.ahead_is_text();
        if quoted && self.parser.word("file") {
            let path = self.text()?;
            return Ok(Fill::File(path, start..self.parser.last_span().end));
        }
        if quoted && self.parser.word("hex") {
            let text: String = self.text()?.split_whitespace().collect();
            let span = start..self.parser.last_span().end;
            let digits = text.is_ascii() && text.len().is_multiple_of(2);
            let pairs = (0..text.len() / 2).map(|at| text.get(2 * at..2 * at + 2));
            let bytes: Option<Vec<u8>> = pairs.map(|pair| u8::from_str_radix(pair?, 16).ok()).collect();
            return match bytes.filter(|_| digits) {
                Some(bytes) => Ok(Fill::Bytes(bytes, span)),
                None => Err(Error::new("these are not pairs of hexadecimal digits", span)),
            };
        }
        if !self.parser.sign("[") {
            return self.parser.closed(Some(element)).map(Fill::Each);
        }
        let mut list = Vec::new();
        while !self.parser.sign("]") {
            if !list.is_empty() {
                self.parser.need(",")?;
            }
            list.push(self.parser.closed(Some(element))?);
        }
        Ok(Fill::List(list, start..self.parser.last_span().end))
    }

    fn known_array(&mut self) -> Result<usize, Error> {
        let name = self.parser.name()?;
        match self.parser.find(&name) {
            Some(Meaning::Array(array)) => Ok(array),
            _ => Err(Error::new(format!("there is no buffer `{name}`"), self.parser.last_span())),
        }
    }

    fn part(&mut self) -> Result<Part, Error> {
        let start = self.parser.span().start;
        let array = self.known_array()?;
        let mut bounds = Bounds::All;
        if self.parser.sign("[") {
            let from = self.parser.closed(None)?;
            bounds =
                if self.parser.sign("..") { Bounds::Range(from, self.parser.closed(None)?) } else { Bounds::One(from) };
            self.parser.need("]")?;
        }
        Ok(Part { array, bounds, span: start..self.parser.last_span().end })
    }

    fn expect(&mut self) -> Result<(), Error> {
        let part = self.part()?;
        let element = self.file.arrays.get(part.array).map(|array| array.element);
        let Some(element) = element else { return self.parser.error("there is no such buffer") };
        self.parser.need("=")?;
        let value = self.fill(element)?;
        let condition = if self.parser.word("where") { Some(self.parser.condition()?) } else { None };
        let mut tolerances = Vec::new();
        loop {
            let make: fn(f64) -> Tolerance = if self.parser.word("ulp") {
                |x| Tolerance::Ulp(x as u64)
            } else if self.parser.word("relative") {
                Tolerance::Relative
            } else if self.parser.word("absolute") {
                Tolerance::Absolute
            } else {
                break;
            };
            let number = match self.parser.peek() {
                Some(token::Kind::Whole(n)) => *n as f64,
                Some(token::Kind::Real(x)) => *x,
                _ => return self.parser.error("a number is missing"),
            };
            self.parser.advance();
            tolerances.push(make(number));
        }
        if !tolerances.is_empty() && !matches!(element, Element::Float(_)) {
            return Err(Error::new("only floats have a tolerance", part.span));
        }
        self.push(Step::Expect(Box::new(Expect { part, value, condition, tolerances })));
        Ok(())
    }

    fn check(&mut self) -> Result<(), Error> {
        let condition = self.parser.closed(None)?;
        let message = if matches!(self.parser.peek(), Some(token::Kind::Text(_))) { Some(self.text()?) } else { None };
        self.push(Step::Check(Check { condition, message }));
        Ok(())
    }

    fn launch(&mut self, at: Range<usize>) -> Result<(), Error> {
        let Some(token::Kind::Symbol(kernel)) = self.parser.peek() else {
            return self.parser.error("the kernel's name, with `@`, is missing");
        };
        self.parser.advance();
        self.parser.need("(")?;
        let arguments = self.operands(")", 0)?;
        let mut step = LaunchStep {
            kernel: kernel.clone(),
            arguments,
            grid: None,
            block: None,
            cluster: None,
            shared: None,
            span: at.clone(),
        };
        loop {
            if self.parser.word("grid") {
                step.grid = Some(self.sizes()?);
            } else if self.parser.word("block") {
                step.block = Some(self.sizes()?);
            } else if self.parser.word("cluster") {
                step.cluster = Some(self.sizes()?);
            } else if self.parser.word("shared") {
                step.shared = self.sizes()?.pop();
            } else {
                break;
            }
        }
        step.span = at.start..self.parser.last_span().end;
        self.push(Step::Launch(step));
        Ok(())
    }

    fn sizes(&mut self) -> Result<Vec<Closed>, Error> {
        self.parser.need("(")?;
        let mut out = vec![self.parser.closed(None)?];
        while self.parser.sign(",") {
            out.push(self.parser.closed(None)?);
        }
        if out.len() > 3 {
            return self.parser.error("there are three dimensions at most");
        }
        self.parser.need(")")?;
        Ok(out)
    }

    fn operands(&mut self, end: &str, depth: usize) -> Result<Vec<Operand>, Error> {
        let mut out = Vec::new();
        while !self.parser.sign(end) {
            if !out.is_empty() {
                self.parser.need(",")?;
            }
            out.push(self.operand(depth)?);
        }
        Ok(out)
    }

    fn operand(&mut self, depth: usize) -> Result<Operand, Error> {
        let start = self.parser.span().start;
        if self.parser.sign("{") {
            if depth == 32 {
                return self.parser.error("lists are nested too deep");
            }
            let list = self.operands("}", depth + 1)?;
            return Ok(Operand::List(list, start..self.parser.last_span().end));
        }
        if let Some(token::Kind::Word(word)) = self.parser.peek()
            && let Some(Meaning::Array(array)) = self.parser.find(word)
            && !self.parser.ahead_is_element()
        {
            self.parser.advance();
            let offset = if self.parser.sign("+") { Some(self.parser.closed(None)?) } else { None };
            return Ok(Operand::Buffer(array, offset, start..self.parser.last_span().end));
        }
        self.parser.closed(None).map(Operand::Value)
    }
}
