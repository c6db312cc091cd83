//! Numeric substitution blocks: `[[#%fmt,NAME: == expression]]`.

use crate::number::{Format, Notation, read_literal};
use crate::source::{Location, Message, Slice};
use crate::variables::{NumericId, Variables};
use num_bigint::{BigInt, Sign};

/// An expression over numeric variables.
#[derive(Clone, Debug)]
pub(crate) enum Expression {
    Literal(BigInt),
    /// `@LINE`: the line of the pattern.
    Line,
    Variable(NumericId, Location),
    Binary(Box<Binary>),
}

/// An operation on two expressions.
#[derive(Clone, Debug)]
pub(crate) struct Binary {
    operator: Operator,
    left: Operand,
    right: Operand,
}

/// An expression and its text, which messages cite.
#[derive(Clone, Debug)]
pub(crate) struct Operand {
    pub expression: Expression,
    text: String,
    location: Location,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    Add,
    Subtract,
    Multiply,
    Divide,
    Maximum,
    Minimum,
}

const FUNCTIONS: &[(&str, Operator)] = &[
    ("add", Operator::Add),
    ("sub", Operator::Subtract),
    ("mul", Operator::Multiply),
    ("div", Operator::Divide),
    ("max", Operator::Maximum),
    ("min", Operator::Minimum),
];

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// A variable without a value.
    Undefined(String, Location),
    /// Division by zero, or a value that the format cannot express.
    Overflow,
}

impl Expression {
    /// Its value, with `line` as `@LINE`; all undefined variables are reported at once.
    pub fn evaluate(&self, variables: &Variables, line: usize) -> Result<BigInt, Vec<Failure>> {
        match self {
            Self::Literal(value) => Ok(value.clone()),
            Self::Line => Ok(BigInt::from(line)),
            Self::Variable(id, location) => {
                let variable = variables.numeric(*id);
                variable.value.clone().ok_or_else(|| vec![Failure::Undefined(variable.name.clone(), *location)])
            }
            Self::Binary(binary) => {
                let left = binary.left.expression.evaluate(variables, line);
                let right = binary.right.expression.evaluate(variables, line);
                match (left, right) {
                    (Ok(left), Ok(right)) => apply(binary.operator, left, right).ok_or_else(|| vec![Failure::Overflow]),
                    (Err(mut left), Err(right)) => {
                        left.extend(right);
                        Err(left)
                    }
                    (Err(failures), _) | (_, Err(failures)) => Err(failures),
                }
            }
        }
    }
}

fn apply(operator: Operator, left: BigInt, right: BigInt) -> Option<BigInt> {
    Some(match operator {
        Operator::Add => left + right,
        Operator::Subtract => left - right,
        Operator::Multiply => left * right,
        Operator::Divide if right.sign() == Sign::NoSign => return None,
        Operator::Divide => left / right,
        Operator::Maximum => left.max(right),
        Operator::Minimum => left.min(right),
    })
}

/// What a numeric block says.
pub(crate) struct Block {
    /// The value to match; without it, any number in the format.
    pub expression: Option<Expression>,
    pub format: Format,
    /// The variable it defines.
    pub defines: Option<NumericId>,
}

/// What a name turned out to be.
pub(crate) struct Name<'a> {
    pub text: Slice<'a>,
    /// Whether it begins with `@`.
    pub is_pseudo: bool,
}

/// Takes a variable name off the front of `text`.
pub(crate) fn parse_name<'a>(text: &mut Slice<'a>) -> Result<Name<'a>, Message> {
    let first = text.bytes.first().copied();
    let Some(first) = first else {
        return Err(Message::error(text.location(), "empty variable name"));
    };
    let is_pseudo = first == b'@';
    let mut length = usize::from(is_pseudo || first == b'$');
    let Some(start) = text.bytes.get(length) else {
        let kind = if is_pseudo { "pseudo" } else { "global" };
        let message = format!("empty {kind} variable name");
        return Err(Message::error(text.skip(length).location(), message));
    };
    if *start != b'_' && !start.is_ascii_alphabetic() {
        return Err(Message::error(text.location(), "invalid variable name"));
    }
    let rest = &text.bytes[length..];
    length += rest.iter().take_while(|byte| **byte == b'_' || byte.is_ascii_alphanumeric()).count();
    let name = Name { text: text.take(length), is_pseudo };
    *text = text.skip(length);
    Ok(name)
}

/// Which operands are allowed where.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Allowed {
    /// `@LINE`, in the old `[[@LINE]]` form.
    LineOnly,
    /// A decimal literal, in the old form.
    OldLiteral,
    Any,
}

/// Groups and calls may nest this deep.
const NESTING_LIMIT: u32 = 100;
/// Operations one block may have: a chain of them is a tree as deep as it is long.
const OPERATION_LIMIT: u32 = 500;

/// Parses numeric blocks.
pub(crate) struct BlockParser<'v> {
    pub variables: &'v mut Variables,
    /// The line of the pattern; `None` for definitions on the command line.
    pub line: Option<usize>,
    /// Whether this is the old form `[[@LINE+n]]`.
    pub old_line_form: bool,
    depth: u32,
    operations: u32,
}

impl<'v> BlockParser<'v> {
    pub fn new(variables: &'v mut Variables, line: Option<usize>, old_line_form: bool) -> Self {
        Self { variables, line, old_line_form, depth: 0, operations: 0 }
    }

    /// Parses the text between `[[#` and `]]`.
    pub fn parse(&mut self, mut text: Slice<'_>) -> Result<Block, Message> {
        let mut explicit = ExplicitFormat::default();
        let comma = text.find(b",");
        let call = text.find(b"(").unwrap_or(usize::MAX);
        if let Some(comma) = comma.filter(|comma| *comma < call) {
            explicit = parse_format(text.take(comma).trim_start().trim_end())?;
            text = text.skip(comma + 1);
        }
        let mut definition = None;
        if let Some(colon) = text.find(b":") {
            definition = Some(text.take(colon));
            text = text.skip(colon + 1);
        }
        text = text.trim_start();
        let has_constraint = text.eat(b"==");
        text = text.trim_start();
        let mut operand = None;
        if !text.is_empty() {
            operand = Some(self.parse_whole(text.trim_end(), has_constraint)?);
        } else if has_constraint {
            let message = "empty numeric expression should not have a constraint";
            return Err(Message::error(text.location(), message));
        }
        let implicit = match &operand {
            Some(operand) if explicit.notation.is_none() => self.implicit_format(&operand.expression)?,
            _ => None,
        };
        let format = explicit.resolve(implicit);
        let defines = match definition {
            Some(definition) => Some(self.define(definition.trim_start(), format)?),
            None => None,
        };
        Ok(Block { expression: operand.map(|operand| operand.expression), format, defines })
    }

    fn parse_whole(&mut self, mut text: Slice<'_>, constrained: bool) -> Result<Operand, Message> {
        let whole = text;
        let allowed = if self.old_line_form { Allowed::LineOnly } else { Allowed::Any };
        let mut left = self.operand(&mut text, allowed, !constrained)?;
        while !text.is_empty() {
            left = self.binary(whole, &mut text, left)?;
            if self.old_line_form && !text.is_empty() {
                let message = format!("unexpected characters at end of expression '{}'", text.text());
                return Err(Message::error(text.location(), message));
            }
        }
        Ok(left)
    }

    /// Parses an operator and its right operand. `whole` begins where `left` does.
    fn binary(&mut self, whole: Slice<'_>, rest: &mut Slice<'_>, left: Operand) -> Result<Operand, Message> {
        *rest = rest.trim_start();
        let at = rest.location();
        let Some(&symbol) = rest.bytes.first() else {
            return Ok(left);
        };
        let operator = match symbol {
            b'+' => Operator::Add,
            b'-' => Operator::Subtract,
            _ => {
                let symbol = rest.take(1).text();
                return Err(Message::error(at, format!("unsupported operation '{symbol}'")));
            }
        };
        self.operations += 1;
        if self.operations > OPERATION_LIMIT {
            return Err(Message::error(at, "expression has too many operations"));
        }
        *rest = rest.skip(1).trim_start();
        if rest.is_empty() {
            return Err(Message::error(rest.location(), "missing operand in expression"));
        }
        let allowed = if self.old_line_form { Allowed::OldLiteral } else { Allowed::Any };
        let right = self.operand(rest, allowed, false)?;
        let text = whole.take(rest.offset - whole.offset);
        Ok(operand(Expression::Binary(Box::new(Binary { operator, left, right })), text))
    }

    fn operand(&mut self, rest: &mut Slice<'_>, allowed: Allowed, maybe_constraint: bool) -> Result<Operand, Message> {
        let start = *rest;
        if rest.bytes.starts_with(b"(") {
            if allowed != Allowed::Any {
                let message = "parenthesized expression not permitted here";
                return Err(Message::error(rest.location(), message));
            }
            return self.nested(rest, Self::group);
        }
        if allowed != Allowed::OldLiteral {
            let mut after = *rest;
            match parse_name(&mut after) {
                Ok(name) => {
                    *rest = after;
                    if !rest.trim_start().bytes.starts_with(b"(") {
                        return self.variable(&name);
                    }
                    if allowed != Allowed::Any {
                        return Err(Message::error(name.text.location(), "unexpected function call"));
                    }
                    return self.nested(rest, |parser, rest| parser.call(rest, name.text));
                }
                Err(error) if allowed == Allowed::LineOnly => return Err(error),
                // Not a name: perhaps a number.
                Err(_) => {}
            }
        }
        let negative = rest.eat(b"-");
        if let Some((value, length)) = read_literal(rest.bytes, allowed == Allowed::OldLiteral) {
            *rest = rest.skip(length);
            let value = if negative { -value } else { value };
            return Ok(operand(Expression::Literal(value), start.take(rest.offset - start.offset)));
        }
        *rest = start;
        let constraint = if maybe_constraint { "matching constraint or " } else { "" };
        Err(Message::error(start.location(), format!("invalid {constraint}operand format")))
    }

    fn nested<'a>(
        &mut self,
        rest: &mut Slice<'a>,
        parse: impl FnOnce(&mut Self, &mut Slice<'a>) -> Result<Operand, Message>,
    ) -> Result<Operand, Message> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return Err(Message::error(rest.location(), "expression nested too deeply"));
        }
        let result = parse(self, rest);
        self.depth -= 1;
        result
    }

    fn group(&mut self, rest: &mut Slice<'_>) -> Result<Operand, Message> {
        let whole = *rest;
        rest.eat(b"(");
        *rest = rest.trim_start();
        let inner = *rest;
        let mut left = self.operand(rest, Allowed::Any, false)?;
        *rest = rest.trim_start();
        while !rest.is_empty() && !rest.bytes.starts_with(b")") {
            left = self.binary(inner, rest, left)?;
            *rest = rest.trim_start();
        }
        if !rest.eat(b")") {
            let message = "missing ')' at end of nested expression";
            return Err(Message::error(rest.location(), message));
        }
        Ok(operand(left.expression, whole.take(rest.offset - whole.offset)))
    }

    fn call(&mut self, rest: &mut Slice<'_>, name: Slice<'_>) -> Result<Operand, Message> {
        let function = FUNCTIONS.iter().find(|(text, _)| text.as_bytes() == name.bytes);
        let Some((_, operator)) = function else {
            let message = format!("call to undefined function '{}'", name.text());
            return Err(Message::error(name.location(), message));
        };
        *rest = rest.trim_start();
        rest.eat(b"(");
        *rest = rest.trim_start();
        let mut arguments = self.arguments(rest)?;
        if !rest.eat(b")") {
            let message = "missing ')' at end of call expression";
            return Err(Message::error(rest.location(), message));
        }
        let count = arguments.len();
        let (Some(right), Some(left), 2) = (arguments.pop(), arguments.pop(), count) else {
            let message = format!("function '{}' takes 2 arguments but {count} given", name.text());
            return Err(Message::error(name.location(), message));
        };
        let binary = Binary { operator: *operator, left, right };
        Ok(operand(Expression::Binary(Box::new(binary)), name))
    }

    fn arguments(&mut self, rest: &mut Slice<'_>) -> Result<Vec<Operand>, Message> {
        let mut arguments = Vec::new();
        while !rest.is_empty() && !rest.bytes.starts_with(b")") {
            if rest.bytes.starts_with(b",") {
                return Err(Message::error(rest.location(), "missing argument"));
            }
            let whole = *rest;
            let mut argument = self.operand(rest, Allowed::Any, false)?;
            *rest = rest.trim_start();
            while !matches!(rest.bytes.first(), None | Some(b',' | b')')) {
                argument = self.binary(whole, rest, argument)?;
                *rest = rest.trim_start();
            }
            arguments.push(argument);
            if !rest.eat(b",") {
                break;
            }
            *rest = rest.trim_start();
            if rest.bytes.starts_with(b")") {
                return Err(Message::error(rest.location(), "missing argument"));
            }
        }
        Ok(arguments)
    }

    fn variable(&mut self, name: &Name<'_>) -> Result<Operand, Message> {
        let text = name.text.text();
        if name.is_pseudo {
            if text != "@LINE" {
                let message = format!("invalid pseudo numeric variable '{text}'");
                return Err(Message::error(name.text.location(), message));
            }
            return Ok(operand(Expression::Line, name.text));
        }
        // An unknown variable is reported when the pattern fails for want of its value.
        let id = self.variables.numeric_by_name(&text).unwrap_or_else(|| {
            let id = self.variables.add_numeric(&text, Format::DEFAULT, None);
            self.variables.name_numeric(id);
            id
        });
        let defined = self.variables.numeric(id).line;
        if defined.is_some() && defined == self.line {
            let message = format!("numeric variable '{text}' defined earlier in the same CHECK directive");
            return Err(Message::error(name.text.location(), message));
        }
        Ok(operand(Expression::Variable(id, name.text.location()), name.text))
    }

    fn define(&mut self, mut text: Slice<'_>, format: Format) -> Result<NumericId, Message> {
        let name = parse_name(&mut text)?;
        let at = name.text.location();
        if name.is_pseudo {
            return Err(Message::error(at, "definition of pseudo numeric variable unsupported"));
        }
        let name = name.text.text();
        if self.variables.is_declared_string(&name) {
            let message = format!("string variable with name '{name}' already exists");
            return Err(Message::error(at, message));
        }
        text = text.trim_start();
        if !text.is_empty() {
            let message = "unexpected characters after numeric variable name";
            return Err(Message::error(text.location(), message));
        }
        match self.variables.numeric_by_name(&name) {
            Some(id) if self.variables.numeric(id).format != format => {
                let message = "format different from previous variable definition";
                Err(Message::error(text.location(), message))
            }
            Some(id) => Ok(id),
            None => Ok(self.variables.add_numeric(&name, format, self.line)),
        }
    }

    fn implicit_format(&self, expression: &Expression) -> Result<Option<Format>, Message> {
        match expression {
            Expression::Literal(_) => Ok(None),
            Expression::Line => Ok(Some(Format::DEFAULT)),
            Expression::Variable(id, _) => Ok(Some(self.variables.numeric(*id).format)),
            Expression::Binary(binary) => {
                let left = self.implicit_format(&binary.left.expression)?;
                let right = self.implicit_format(&binary.right.expression)?;
                match (left, right) {
                    (Some(left), Some(right)) if left != right => {
                        let message = format!(
                            "implicit format conflict between '{}' ({}) and '{}' ({}), need an \
                             explicit format specifier",
                            binary.left.text,
                            left.conversion(),
                            binary.right.text,
                            right.conversion()
                        );
                        Err(Message::error(binary.left.location, message))
                    }
                    (left, right) => Ok(left.or(right)),
                }
            }
        }
    }
}

fn operand(expression: Expression, text: Slice<'_>) -> Operand {
    Operand { expression, text: text.text(), location: text.location() }
}

/// The part of a format that a block spells out.
#[derive(Clone, Copy, Default)]
struct ExplicitFormat {
    notation: Option<Notation>,
    precision: u32,
    alternate: bool,
}

impl ExplicitFormat {
    fn resolve(self, implicit: Option<Format>) -> Format {
        match (self.notation, implicit) {
            (Some(notation), _) => Format { notation, precision: self.precision, alternate: self.alternate },
            (None, Some(implicit)) => implicit,
            (None, None) => Format { precision: self.precision, ..Format::DEFAULT },
        }
    }
}

fn parse_format(mut text: Slice<'_>) -> Result<ExplicitFormat, Message> {
    const INVALID: &str = "invalid matching format specification in expression";
    if !text.eat(b"%") {
        return Err(Message::error(text.location(), INVALID));
    }
    let mut format = ExplicitFormat::default();
    let flag = text.location();
    format.alternate = text.eat(b"#");
    if text.eat(b".") {
        let digits = text.bytes.iter().take_while(|byte| byte.is_ascii_digit()).count();
        // More digits than a regular expression can count are as wrong as none.
        format.precision = text
            .take(digits)
            .text()
            .parse()
            .ok()
            .filter(|precision| *precision <= 255)
            .ok_or_else(|| Message::error(text.location(), "invalid precision in format specifier"))?;
        text = text.skip(digits);
    }
    if let Some(conversion) = text.bytes.first() {
        format.notation = Some(match conversion {
            b'u' => Notation::Unsigned,
            b'd' => Notation::Signed,
            b'x' => Notation::HexLower,
            b'X' => Notation::HexUpper,
            _ => {
                let message = "invalid format specifier in expression";
                return Err(Message::error(text.location(), message));
            }
        });
        text = text.skip(1);
    }
    let is_hexadecimal = matches!(format.notation, Some(Notation::HexLower | Notation::HexUpper));
    if format.alternate && !is_hexadecimal {
        return Err(Message::error(flag, "alternate form only supported for hex values"));
    }
    text = text.trim_start();
    if !text.is_empty() {
        return Err(Message::error(text.location(), INVALID));
    }
    Ok(format)
}
