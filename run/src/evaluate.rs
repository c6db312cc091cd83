//! Evaluation of expressions.

use std::rc::Rc;

use crate::error::Error;
use crate::expression::{Closed, Expression, Function, Gather, How, Kind, Pattern};
use crate::functions;
use crate::value::{Element, Operator, Value, apply};

/// Most nested evaluations: deep recursion is an error and not the end of the stack.
const MOST_DEPTH: usize = 600;
/// Most evaluations of all expressions of a case together.
const MOST_STEPS: u64 = 1 << 31;

/// Contents of an array.
#[derive(Clone, Debug)]
pub struct Array {
    /// Type of the elements.
    pub element: Element,
    /// Their bytes, one after the other, little-endian.
    pub bytes: Vec<u8>,
    /// Nothing has been written: reading is an error.
    pub uninitialized: bool,
    /// What the launches left; empty before.
    pub after: Option<Vec<u8>>,
}

impl Array {
    /// Number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.element.size()
    }
}

/// What names stand for.
#[derive(Default, Debug)]
pub struct State {
    /// Values of `let` directives, as far as evaluated.
    pub named: Vec<Value>,
    /// Arrays, as far as made.
    pub arrays: Vec<Option<Array>>,
}

/// Evaluates expressions over a state.
pub struct Evaluator<'a> {
    /// What names stand for.
    pub state: &'a State,
    functions: &'a [Function],
    frame: Vec<Value>,
    base: usize,
    depth: usize,
    steps: u64,
}

/// A value, or a call that takes the place of the function that asks for it.
enum Tail<'a> {
    Value(Value),
    Call(&'a Closed, Vec<Value>),
}

impl<'a> Evaluator<'a> {
    /// An evaluator.
    pub fn new(state: &'a State, functions: &'a [Function]) -> Evaluator<'a> {
        Evaluator { state, functions, frame: Vec::new(), base: 0, depth: 0, steps: 0 }
    }

    /// The value of an expression; `index` is what `i` stands for.
    ///
    /// # Errors
    /// Types that do not go together, places outside arrays, division by zero, too much to do.
    pub fn value(&mut self, closed: &'a Closed, index: usize) -> Result<Value, Error> {
        (self.base, self.depth) = (0, 0);
        self.frame.clear();
        self.frame.resize(closed.slots.max(1), Value::Bool(false));
        self.frame[0] = Value::Whole(index as i128);
        self.evaluate(&closed.body)
    }

    /// A whole number.
    ///
    /// # Errors
    /// As [`Self::value`], and the value is none.
    pub fn whole(&mut self, closed: &'a Closed) -> Result<i128, Error> {
        let value = self.value(closed, 0)?;
        value.whole().ok_or_else(|| wanted("a whole number", &value, &closed.body))
    }

    /// Bits of an element.
    ///
    /// # Errors
    /// As [`Self::value`], and the value is none of the type.
    pub fn element(&mut self, closed: &'a Closed, index: usize, ty: Element) -> Result<u128, Error> {
        let value = self.value(closed, index)?;
        value.store(ty).map_err(|message| Error::new(message, closed.body.span.clone()))
    }

    /// A truth value.
    ///
    /// # Errors
    /// As [`Self::value`], and the value is none.
    pub fn truth(&mut self, closed: &'a Closed, index: usize) -> Result<bool, Error> {
        let value = self.value(closed, index)?;
        as_truth(&value, &closed.body)
    }

    fn get(&self, slot: usize) -> Value {
        self.frame.get(self.base + slot).cloned().unwrap_or(Value::Bool(false))
    }

    fn set(&mut self, slot: usize, value: Value) {
        if let Some(place) = self.frame.get_mut(self.base + slot) {
            *place = value;
        }
    }

    fn bind(&mut self, pattern: &Pattern, value: Value, at: &Expression) -> Result<(), Error> {
        match (pattern, &value) {
            (Pattern::One(slot), _) => self.set(*slot, value),
            (Pattern::Parts(slots), Value::Tuple(parts)) if parts.len() == slots.len() => {
                for (slot, part) in slots.iter().zip(parts.iter()) {
                    self.set(*slot, part.clone());
                }
            }
            (Pattern::Parts(slots), _) => return Err(wanted(&format!("a tuple of {}", slots.len()), &value, at)),
        }
        Ok(())
    }

    fn evaluate(&mut self, e: &'a Expression) -> Result<Value, Error> {
        self.depth += 1;
        self.steps += 1;
        if self.depth > MOST_DEPTH {
            return Err(Error::new("the expression recurses too deep", e.span.clone()));
        }
        if self.steps > MOST_STEPS {
            return Err(Error::new(format!("more than {MOST_STEPS} steps"), e.span.clone()));
        }
        let value = self.by_kind(e);
        self.depth -= 1;
        value
    }

    fn by_kind(&mut self, e: &'a Expression) -> Result<Value, Error> {
        let place = |message: String| Error::new(message, e.span.clone());
        match &e.kind {
            Kind::Literal(literal) => Ok(literal.value()),
            Kind::Local(slot) => Ok(self.get(*slot)),
            Kind::Named(index) => {
                self.state.named.get(*index).cloned().ok_or_else(|| place("this is not known yet".into()))
            }
            Kind::Element { array, after, index } => self.element_at(e, *array, *after, index),
            Kind::Length(array) => Ok(Value::Whole(self.array(*array, e)?.len() as i128)),
            Kind::Negate(of) => {
                let value = self.evaluate(of)?;
                negate(value).map_err(place)
            }
            Kind::Not(of) => match self.evaluate(of)? {
                Value::Bool(b) => Ok(Value::Bool(!b)),
                Value::Whole(n) => Ok(Value::Whole(!n)),
                value @ Value::Typed(Element::Int { .. }, _) => {
                    apply(Operator::Xor, value, Value::Whole(-1)).map_err(place)
                }
                value => Err(place(format!("`!` does not take {}", value.describe()))),
            },
            Kind::Binary(operator, operands) => {
                let left = self.evaluate(&operands[0])?;
                let right = self.evaluate(&operands[1])?;
                apply(*operator, left, right).map_err(place)
            }
            Kind::Shortcut(and, operands) => {
                let left = self.truth_of(&operands[0])?;
                if left == *and { Ok(Value::Bool(self.truth_of(&operands[1])?)) } else { Ok(Value::Bool(left)) }
            }
            Kind::If(parts) => {
                let choice = if self.truth_of(&parts[0])? { &parts[1] } else { &parts[2] };
                self.evaluate(choice)
            }
            Kind::Let(pattern, parts) => {
                let value = self.evaluate(&parts[0])?;
                self.bind(pattern, value, &parts[0])?;
                self.evaluate(&parts[1])
            }
            Kind::Call(function, arguments) => {
                let call = self.prepare_call(e, *function, arguments)?;
                self.call(call)
            }
            Kind::Tuple(parts) => {
                let values = parts.iter().map(|part| self.evaluate(part)).collect::<Result<Vec<_>, _>>()?;
                Ok(Value::Tuple(Rc::from(values)))
            }
            Kind::Gather(gather) => self.gather(gather),
            _ => self.apply_function(e),
        }
    }

    /// Conversions and functions of the language.
    fn apply_function(&mut self, e: &'a Expression) -> Result<Value, Error> {
        let place = |message: String| Error::new(message, e.span.clone());
        match &e.kind {
            Kind::Convert(ty, of) => self.evaluate(of)?.convert(*ty).map_err(place),
            Kind::OfBits(ty, of) => match self.evaluate(of)?.convert(ty.unsigned()).map_err(place)? {
                Value::Typed(_, bits) => Ok(Value::Typed(*ty, bits)),
                value => Err(wanted("bits", &value, of)),
            },
            Kind::Builtin(builtin, arguments) => {
                let values = arguments.iter().map(|a| self.evaluate(a)).collect::<Result<Vec<_>, _>>()?;
                builtin.apply(&values).map_err(place)
            }
            Kind::Random(ty, arguments) => {
                let values = arguments.iter().map(|a| self.evaluate(a)).collect::<Result<Vec<_>, _>>()?;
                let position = self.frame.first().and_then(Value::whole).unwrap_or(0);
                random(*ty, &values, position as u64).map_err(place)
            }
            Kind::Edge(ty, number) => {
                let value = self.evaluate(number)?;
                let number = value.whole().and_then(|n| usize::try_from(n).ok());
                let number = number.ok_or_else(|| place("the number of an edge is a whole number from 0 on".into()))?;
                Ok(Value::Typed(*ty, functions::edge(*ty, number)))
            }
            _ => Err(place("this is no expression".into())),
        }
    }

    fn array(&self, array: usize, at: &Expression) -> Result<&'a Array, Error> {
        let found = self.state.arrays.get(array).and_then(Option::as_ref);
        found.ok_or_else(|| Error::new("this array has no contents yet", at.span.clone()))
    }

    fn element_at(
        &mut self,
        e: &'a Expression,
        array: usize,
        after: bool,
        index: &'a Expression,
    ) -> Result<Value, Error> {
        let value = self.evaluate(index)?;
        let array = self.array(array, e)?;
        let number = value.whole().ok_or_else(|| wanted("a whole number", &value, index))?;
        let bytes = match (&array.after, after) {
            (Some(bytes), true) => bytes,
            (None, true) => return Err(Error::new("nothing has been launched yet", e.span.clone())),
            (_, false) if array.uninitialized => {
                return Err(Error::new(
                    "the array was not initialized; `'` names what is in it afterwards",
                    e.span.clone(),
                ));
            }
            (_, false) => &array.bytes,
        };
        let element = usize::try_from(number).ok().and_then(|number| array.element.read(bytes, number));
        element.ok_or_else(|| {
            let length = bytes.len() / array.element.size();
            Error::new(format!("element {number} of an array of {length}"), e.span.clone())
        })
    }

    fn truth_of(&mut self, e: &'a Expression) -> Result<bool, Error> {
        let value = self.evaluate(e)?;
        as_truth(&value, e)
    }

    fn prepare_call(
        &mut self,
        e: &'a Expression,
        function: usize,
        arguments: &'a [Expression],
    ) -> Result<Tail<'a>, Error> {
        let body = self.functions.get(function).and_then(|function| function.body.as_ref());
        let body = body.ok_or_else(|| Error::new("this function has no value", e.span.clone()))?;
        let values = arguments.iter().map(|a| self.evaluate(a)).collect::<Result<Vec<_>, _>>()?;
        Ok(Tail::Call(body, values))
    }

    /// Calls in tail position take the frame of their caller, so that they may loop.
    fn call(&mut self, mut next: Tail<'a>) -> Result<Value, Error> {
        let (base, length) = (self.base, self.frame.len());
        self.base = length;
        let result = loop {
            let (body, values) = match next {
                Tail::Value(value) => break Ok(value),
                Tail::Call(body, values) => (body, values),
            };
            self.frame.truncate(length);
            self.frame.extend(values);
            self.frame.resize(length + body.slots, Value::Bool(false));
            match self.tail(&body.body) {
                Ok(tail) => next = tail,
                Err(error) => break Err(error),
            }
        };
        self.frame.truncate(length);
        self.base = base;
        result
    }

    fn tail(&mut self, mut e: &'a Expression) -> Result<Tail<'a>, Error> {
        loop {
            match &e.kind {
                Kind::If(parts) => e = if self.truth_of(&parts[0])? { &parts[1] } else { &parts[2] },
                Kind::Let(pattern, parts) => {
                    let value = self.evaluate(&parts[0])?;
                    self.bind(pattern, value, &parts[0])?;
                    e = &parts[1];
                }
                Kind::Call(function, arguments) => {
                    self.steps += 1;
                    return self.prepare_call(e, *function, arguments);
                }
                _ => return self.evaluate(e).map(Tail::Value),
            }
        }
    }

    fn gather(&mut self, gather: &'a Gather) -> Result<Value, Error> {
        let bound = |value: Value, at: &Expression| value.whole().ok_or_else(|| wanted("a whole number", &value, at));
        let from = self.evaluate(&gather.from)?;
        let to = self.evaluate(&gather.to)?;
        let (from, to) = (bound(from, &gather.from)?, bound(to, &gather.to)?);
        let mut result = match (gather.how, &gather.fold) {
            (How::Fold, Some((pattern, first))) => {
                let value = self.evaluate(first)?;
                self.bind(pattern, value.clone(), first)?;
                Some(value)
            }
            (How::Count, _) => Some(Value::Whole(0)),
            (How::All, _) => Some(Value::Bool(true)),
            (How::Any, _) => Some(Value::Bool(false)),
            _ => None,
        };
        for index in from..to {
            self.set(gather.index, Value::Whole(index));
            let value = self.evaluate(&gather.body)?;
            result = Some(match (gather.how, result) {
                (How::Fold, _) => {
                    if let Some((pattern, first)) = &gather.fold {
                        self.bind(pattern, value.clone(), first)?;
                    }
                    value
                }
                (How::Count, Some(Value::Whole(n))) => Value::Whole(n + i128::from(as_truth(&value, &gather.body)?)),
                (How::All | How::Any, _) => {
                    let stops = as_truth(&value, &gather.body)? == (gather.how == How::Any);
                    if stops {
                        return Ok(value);
                    }
                    value
                }
                (_, None) => value,
                (how, Some(before)) => {
                    join(how, before, value).map_err(|message| Error::new(message, gather.body.span.clone()))?
                }
            });
        }
        match (gather.how, result) {
            (_, Some(result)) => Ok(result),
            (How::Sum, None) => Ok(Value::Whole(0)),
            (How::Product, None) => Ok(Value::Whole(1)),
            _ => Err(Error::new("the smallest or largest of no values", gather.from.span.clone())),
        }
    }
}

fn join(how: How, before: Value, value: Value) -> Result<Value, String> {
    let name = match how {
        How::Sum => return apply(Operator::Add, before, value),
        How::Product => return apply(Operator::Mul, before, value),
        How::Min => "min",
        _ => "max",
    };
    functions::Builtin::find(name).ok_or_else(String::new)?.apply(&[before, value])
}

fn negate(value: Value) -> Result<Value, String> {
    match value {
        Value::Real(x) => Ok(Value::Real(-x)),
        Value::Typed(ty @ Element::Float(kind), x) => {
            Ok(Value::Typed(ty, ptxc_interp::float::neg(kind, x as u64, false).into()))
        }
        Value::Whole(n) => Ok(Value::Whole(n.wrapping_neg())),
        Value::Typed(ty @ Element::Int { .. }, _) => apply(Operator::Sub, Value::Typed(ty, 0), value),
        _ => Err(format!("`-` does not take {}", value.describe())),
    }
}

fn wanted(what: &str, value: &Value, at: &Expression) -> Error {
    Error::new(format!("{what} is wanted here, not {}", value.describe()), at.span.clone())
}

fn as_truth(value: &Value, at: &Expression) -> Result<bool, Error> {
    if let Value::Bool(b) = value { Ok(*b) } else { Err(wanted("a truth value", value, at)) }
}

/// Random bits of a type, or a random number between bounds: integers from the first to before the second, floats
/// likewise in steps of 2^-24 (f64: 2^-53) of their distance.
fn random(ty: Element, operands: &[Value], position: u64) -> Result<Value, String> {
    let seed = operands.first().and_then(Value::whole).ok_or("the seed is a whole number")?;
    let bits = functions::random_bits(seed as u64, position);
    let Some([low, high]) = operands.get(1..3) else {
        return Ok(Value::Typed(ty, bits & crate::value::mask(ty.size() as u32 * 8)));
    };
    match ty {
        Element::Int { .. } => {
            let (low, high) =
                (low.whole().ok_or("the bounds are integers")?, high.whole().ok_or("the bounds are integers")?);
            let range = high.checked_sub(low).filter(|range| *range > 0).ok_or("the bounds are empty")?;
            Value::Whole(low + (bits >> 1) as i128 % range).store(ty).map(|bits| Value::Typed(ty, bits))
        }
        Element::Float(kind) => {
            let (low, high) =
                (low.real().ok_or("the bounds are numbers")?, high.real().ok_or("the bounds are numbers")?);
            let digits = if kind == ptxc_ir::FloatKind::F64 { 53 } else { 24 };
            let part = (bits as u64 >> (64 - digits)) as f64 / (1u64 << digits) as f64;
            Value::Real(low + (high - low) * part).convert(ty)
        }
    }
}
