//! Reads expressions.
//!
//! Binding, loosest first: `or`, `and`, `not`, comparisons, `|`, `^`, `&`, shifts, `+ -`, `* / %`, `- !`, indexing.

use std::ops::Range;

use crate::error::Error;
use crate::expression::{Closed, Expression, Function, Gather, How, Kind, Literal, Pattern};
use crate::functions::Builtin;
use crate::token::{self, Token};
use crate::value::{Element, Operator};

/// Deepest nesting of expressions.
const MOST_NESTING: usize = 64;

/// What a name of a directive stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Meaning {
    /// A value of `let`.
    Named(usize),
    /// An array or buffer.
    Array(usize),
    /// A function.
    Function(usize),
}

/// Names that cannot be defined.
const KEYWORDS: &[&str] = &[
    "i", "if", "then", "else", "let", "in", "and", "or", "not", "true", "false", "inf", "nan", "sum", "product", "min",
    "max", "count", "all", "any", "fold", "len", "random", "edge", "where", "ulp", "relative", "absolute",
];

/// A reader of tokens, with the names that are known.
pub struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    nesting: usize,
    /// Names of directives.
    pub names: Vec<(String, Meaning)>,
    /// Functions.
    pub functions: Vec<Function>,
    /// Local names of the expression that is read, with their slots.
    locals: Vec<(String, usize)>,
    slots: usize,
    /// Type of the elements that are described, where `random` and `edge` have a meaning.
    element: Option<Element>,
}

impl<'a> Parser<'a> {
    /// A reader of tokens.
    pub fn new(tokens: &'a [Token]) -> Parser<'a> {
        Parser {
            tokens,
            at: 0,
            nesting: 0,
            names: Vec::new(),
            functions: Vec::new(),
            locals: Vec::new(),
            slots: 0,
            element: None,
        }
    }

    /// The next token's kind.
    pub fn peek(&self) -> Option<&'a token::Kind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    /// Place of the next token.
    pub fn span(&self) -> Range<usize> {
        match self.tokens.get(self.at) {
            Some(token) => token.span.clone(),
            None => {
                let end = self.tokens.last().map_or(0, |last| last.span.end);
                end..end
            }
        }
    }

    /// Place of the token before.
    pub fn last_span(&self) -> Range<usize> {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(0..0, |token| token.span.clone())
    }

    /// Goes to the next token.
    pub fn advance(&mut self) {
        self.at += 1;
    }

    /// Whether the token after the next is a text in quotes.
    pub fn ahead_is_text(&self) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|token| matches!(token.kind, token::Kind::Text(_)))
    }

    /// Whether what follows the next token makes an element of an array of it.
    pub fn ahead_is_element(&self) -> bool {
        self.tokens.get(self.at + 1).is_some_and(|token| matches!(token.kind, token::Kind::Sign("[" | "'")))
    }

    /// An error at the next token.
    pub fn error<T>(&self, message: impl Into<String>) -> Result<T, Error> {
        Err(Error::new(message, self.span()))
    }

    /// Skips a sign if it is next.
    pub fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.peek(), Some(token::Kind::Sign(next)) if *next == sign);
        self.at += usize::from(found);
        found
    }

    /// Skips a sign.
    ///
    /// # Errors
    /// Something else is next.
    pub fn need(&mut self, sign: &str) -> Result<(), Error> {
        if self.sign(sign) { Ok(()) } else { self.error(format!("`{sign}` is missing")) }
    }

    /// Skips a word if it is next.
    pub fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.peek(), Some(token::Kind::Word(next)) if next == word);
        self.at += usize::from(found);
        found
    }

    /// A name.
    ///
    /// # Errors
    /// Something else is next.
    pub fn name(&mut self) -> Result<String, Error> {
        match self.peek() {
            Some(token::Kind::Word(word)) => {
                self.advance();
                Ok(word.clone())
            }
            _ => self.error("a name is missing"),
        }
    }

    /// A name that a directive defines.
    ///
    /// # Errors
    /// It is a keyword, a type or a function of the language.
    pub fn new_name(&mut self) -> Result<String, Error> {
        let name = self.name()?;
        let taken = KEYWORDS.contains(&name.as_str())
            || Element::from_name(&name).is_some()
            || Builtin::find(&name).is_some()
            || of_bits(&name).is_some();
        if taken {
            return Err(Error::new(format!("`{name}` has a meaning already"), self.last_span()));
        }
        Ok(name)
    }

    /// What a name stands for; later definitions hide earlier ones.
    pub fn find(&self, name: &str) -> Option<Meaning> {
        self.names.iter().rev().find(|(known, _)| known == name).map(|(_, meaning)| *meaning)
    }

    /// An expression of its own. `element`: its value is one of these, number `i`.
    ///
    /// # Errors
    /// It is none.
    pub fn closed(&mut self, element: Option<Element>) -> Result<Closed, Error> {
        let locals = if element.is_some() { vec![("i".to_owned(), 0)] } else { Vec::new() };
        self.closed_with(locals, element)
    }

    /// A truth value about element `i`.
    ///
    /// # Errors
    /// It is no expression.
    pub fn condition(&mut self) -> Result<Closed, Error> {
        self.closed_with(vec![("i".to_owned(), 0)], None)
    }

    /// An expression with these locals.
    ///
    /// # Errors
    /// It is none.
    pub fn closed_with(&mut self, locals: Vec<(String, usize)>, element: Option<Element>) -> Result<Closed, Error> {
        self.slots = locals.len().max(1);
        self.locals = locals;
        self.element = element;
        self.nesting = 0;
        let body = self.expression()?;
        Ok(Closed { body, slots: self.slots })
    }

    fn local(&mut self, name: String) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.locals.push((name, slot));
        slot
    }

    fn pattern(&mut self) -> Result<Vec<String>, Error> {
        if !self.sign("(") {
            return Ok(vec![self.new_name()?]);
        }
        let mut names = vec![self.new_name()?];
        while self.sign(",") {
            names.push(self.new_name()?);
        }
        self.need(")")?;
        Ok(names)
    }

    fn bind(&mut self, names: Vec<String>) -> Pattern {
        let mut slots: Vec<usize> = names.into_iter().map(|name| self.local(name)).collect();
        match (slots.len(), slots.pop()) {
            (1, Some(slot)) => Pattern::One(slot),
            (_, last) => Pattern::Parts(slots.into_iter().chain(last).collect()),
        }
    }

    fn expression(&mut self) -> Result<Expression, Error> {
        self.nesting += 1;
        if self.nesting > MOST_NESTING {
            return self.error("the expression is nested too deep");
        }
        let start = self.span().start;
        let found = if self.word("if") {
            self.choice().map(|kind| self.from(start, kind))
        } else if self.word("let") {
            self.definition().map(|kind| self.from(start, kind))
        } else {
            self.binary(0)
        };
        self.nesting -= 1;
        found
    }

    /// After `if`.
    fn choice(&mut self) -> Result<Kind, Error> {
        let condition = self.expression()?;
        self.need_word("then")?;
        let then = self.expression()?;
        self.need_word("else")?;
        Ok(Kind::If(Box::new([condition, then, self.expression()?])))
    }

    /// After `let`.
    fn definition(&mut self) -> Result<Kind, Error> {
        let names = self.pattern()?;
        self.need("=")?;
        let value = self.expression()?;
        self.need_word("in")?;
        let known = self.locals.len();
        let pattern = self.bind(names);
        let body = self.expression()?;
        self.locals.truncate(known);
        Ok(Kind::Let(pattern, Box::new([value, body])))
    }

    fn from(&self, start: usize, kind: Kind) -> Expression {
        Expression { kind, span: start..self.last_span().end }
    }

    fn need_word(&mut self, word: &str) -> Result<(), Error> {
        if self.word(word) { Ok(()) } else { self.error(format!("`{word}` is missing")) }
    }

    /// Operators of a level of binding, and of all tighter ones.
    fn binary(&mut self, level: usize) -> Result<Expression, Error> {
        const LEVELS: &[&[(&str, Operator)]] = &[
            &[],
            &[],
            &[
                ("==", Operator::Eq),
                ("!=", Operator::Ne),
                ("<=", Operator::Le),
                (">=", Operator::Ge),
                ("<", Operator::Lt),
                (">", Operator::Gt),
            ],
            &[("|", Operator::Or)],
            &[("^", Operator::Xor)],
            &[("&", Operator::And)],
            &[("<<", Operator::Shl), (">>", Operator::Shr)],
            &[("+", Operator::Add), ("-", Operator::Sub)],
            &[("*", Operator::Mul), ("/", Operator::Div), ("%", Operator::Rem)],
        ];
        let Some(operators) = LEVELS.get(level) else { return self.prefix() };
        let start = self.span().start;
        if level == 2 && self.word("not") {
            let of = self.binary(2)?;
            return Ok(self.from(start, Kind::Not(Box::new(of))));
        }
        let mut left = self.binary(level + 1)?;
        loop {
            let shortcut = match level {
                0 => self.word("or"),
                1 => self.word("and"),
                _ => false,
            };
            if shortcut {
                let right = self.binary(level + 1)?;
                left = self.from(start, Kind::Shortcut(level == 1, Box::new([left, right])));
                continue;
            }
            let Some((_, operator)) = operators.iter().find(|(sign, _)| self.sign(sign)) else { return Ok(left) };
            let right = self.binary(level + 1)?;
            left = self.from(start, Kind::Binary(*operator, Box::new([left, right])));
        }
    }

    fn prefix(&mut self) -> Result<Expression, Error> {
        self.nesting += 1;
        if self.nesting > MOST_NESTING {
            return self.error("the expression is nested too deep");
        }
        let start = self.span().start;
        let kind = if self.sign("-") {
            Kind::Negate(Box::new(self.prefix()?))
        } else if self.sign("!") {
            Kind::Not(Box::new(self.prefix()?))
        } else {
            self.nesting -= 1;
            return self.primary();
        };
        self.nesting -= 1;
        Ok(self.from(start, kind))
    }

    fn primary(&mut self) -> Result<Expression, Error> {
        let start = self.span().start;
        let kind = match self.peek() {
            Some(token::Kind::Whole(n)) => {
                self.advance();
                Kind::Literal(Literal::Whole(*n))
            }
            Some(token::Kind::Real(x)) => {
                self.advance();
                Kind::Literal(Literal::Real(*x))
            }
            Some(token::Kind::Sign("(")) => {
                self.advance();
                let first = self.expression()?;
                if self.sign(")") {
                    return Ok(Expression { span: start..self.last_span().end, ..first });
                }
                let mut parts = vec![first];
                while self.sign(",") {
                    parts.push(self.expression()?);
                }
                self.need(")")?;
                Kind::Tuple(parts)
            }
            Some(token::Kind::Word(word)) => {
                self.advance();
                self.named(word)?
            }
            _ => return self.error("an expression is missing"),
        };
        Ok(self.from(start, kind))
    }

    /// What begins with a word that has been read.
    fn named(&mut self, word: &str) -> Result<Kind, Error> {
        let at = self.last_span();
        if let Some((_, slot)) = self.locals.iter().rev().find(|(name, _)| name == word) {
            return Ok(Kind::Local(*slot));
        }
        match word {
            "true" => return Ok(Kind::Literal(Literal::Bool(true))),
            "false" => return Ok(Kind::Literal(Literal::Bool(false))),
            "inf" => return Ok(Kind::Literal(Literal::Real(f64::INFINITY))),
            "nan" => return Ok(Kind::Literal(Literal::Real(f64::NAN))),
            "len" => {
                self.need("(")?;
                let name = self.name()?;
                let Some(Meaning::Array(array)) = self.find(&name) else {
                    return Err(Error::new(format!("`{name}` is no array"), self.last_span()));
                };
                self.need(")")?;
                return Ok(Kind::Length(array));
            }
            "random" | "edge" => return self.of_element(word, at),
            _ => {}
        }
        if let Some(how) = how(word)
            && self.is_gather()
        {
            return self.gather(how);
        }
        match self.find(word) {
            Some(Meaning::Named(index)) => return Ok(Kind::Named(index)),
            Some(Meaning::Array(array)) => {
                let after = self.sign("'");
                self.need("[")?;
                let index = Box::new(self.expression()?);
                self.need("]")?;
                return Ok(Kind::Element { array, after, index });
            }
            Some(Meaning::Function(index)) => {
                let arguments = self.arguments()?;
                let takes = self.functions.get(index).map_or(0, |function| function.parameters);
                self.check_count(word, takes, arguments.len(), at)?;
                return Ok(Kind::Call(index, arguments));
            }
            None => {}
        }
        let one = |mut arguments: Vec<Expression>| arguments.pop().map(Box::new);
        if let Some(ty) = Element::from_name(word).or(of_bits(word)) {
            let arguments = self.arguments()?;
            self.check_count(word, 1, arguments.len(), at.clone())?;
            let converts = Element::from_name(word).is_some();
            let operand = one(arguments).ok_or_else(|| Error::new("an operand is missing", at))?;
            return Ok(if converts { Kind::Convert(ty, operand) } else { Kind::OfBits(ty, operand) });
        }
        if let Some(builtin) = Builtin::find(word) {
            let arguments = self.arguments()?;
            self.check_count(word, builtin.operands, arguments.len(), at)?;
            return Ok(Kind::Builtin(builtin, arguments));
        }
        Err(Error::new(format!("nothing is called `{word}`"), at))
    }

    fn check_count(&self, name: &str, takes: usize, given: usize, at: Range<usize>) -> Result<(), Error> {
        if takes == given {
            Ok(())
        } else {
            Err(Error::new(format!("`{name}` takes {takes} operands, not {given}"), at))
        }
    }

    /// `random(seed)`, `random(seed, low, high)`, `edge(number)`.
    fn of_element(&mut self, word: &str, at: Range<usize>) -> Result<Kind, Error> {
        let Some(element) = self.element else {
            return Err(Error::new(format!("`{word}` describes elements of an array only"), at));
        };
        let mut arguments = self.arguments()?;
        match (word, arguments.len()) {
            ("random", 1 | 3) => Ok(Kind::Random(element, arguments)),
            ("edge", 1) => match arguments.pop() {
                Some(number) => Ok(Kind::Edge(element, Box::new(number))),
                None => Err(Error::new("a number is missing", at)),
            },
            _ => Err(Error::new(format!("`{word}` does not take {} operands", arguments.len()), at)),
        }
    }

    fn arguments(&mut self) -> Result<Vec<Expression>, Error> {
        self.need("(")?;
        let mut out = Vec::new();
        if self.sign(")") {
            return Ok(out);
        }
        loop {
            out.push(self.expression()?);
            if !self.sign(",") {
                break;
            }
        }
        self.need(")")?;
        Ok(out)
    }

    /// After `min` and its like: `(name in`, or `(name =` and `((` of a fold.
    fn is_gather(&self) -> bool {
        let kind = |ahead: usize| self.tokens.get(self.at + ahead).map(|token| &token.kind);
        let opens = |k: Option<&token::Kind>| matches!(k, Some(token::Kind::Sign("(")));
        let word = matches!(kind(1), Some(token::Kind::Word(_)));
        let follows = match kind(2) {
            Some(token::Kind::Word(next)) => next == "in",
            Some(token::Kind::Sign(next)) => *next == "=",
            _ => false,
        };
        let is_fold = matches!(self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map(|t| &t.kind),
            Some(token::Kind::Word(word)) if word == "fold");
        opens(kind(0)) && (is_fold || word && follows)
    }

    /// `(k in a..b: body)`, `(x = first, k in a..b: body)`.
    fn gather(&mut self, how: How) -> Result<Kind, Error> {
        self.need("(")?;
        let known = self.locals.len();
        let mut first = None;
        if how == How::Fold {
            let names = self.pattern()?;
            self.need("=")?;
            first = Some((names, self.expression()?));
            self.need(",")?;
        }
        let name = self.new_name()?;
        self.need_word("in")?;
        let from = self.expression()?;
        self.need("..")?;
        let to = self.expression()?;
        self.need(":")?;
        let index = self.local(name);
        let fold = first.map(|(names, value)| (self.bind(names), value));
        let body = self.expression()?;
        self.locals.truncate(known);
        self.need(")")?;
        Ok(Kind::Gather(Box::new(Gather { how, index, from, to, fold, body })))
    }
}

fn how(word: &str) -> Option<How> {
    Some(match word {
        "sum" => How::Sum,
        "product" => How::Product,
        "min" => How::Min,
        "max" => How::Max,
        "count" => How::Count,
        "all" => How::All,
        "any" => How::Any,
        "fold" => How::Fold,
        _ => return None,
    })
}

/// The type of `f32_of_bits` and its like.
fn of_bits(name: &str) -> Option<Element> {
    name.strip_suffix("_of_bits").and_then(Element::from_name)
}
