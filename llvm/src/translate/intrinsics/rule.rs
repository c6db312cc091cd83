//! What a line of the tables says an intrinsic becomes.

use ptxc_ir::{AtomicOp, Flags, Opcode, Scope};
use ptxc_targets::SpecialReg;

use super::expansions::{Expansion, expansion};
use super::{table, template::Template};

/// What an intrinsic becomes.
#[derive(Clone, Debug)]
pub(in crate::translate) enum Rule {
    /// A generic operation on all arguments or on these.
    Generic {
        /// The operation.
        op: Opcode,
        /// Its flags.
        flags: Flags,
        /// Which arguments, in order.
        order: Option<Vec<usize>>,
    },
    /// A special register.
    Special(SpecialReg),
    /// PTX.
    Ptx(Template),
    /// An atomic operation on (pointer, value).
    Rmw(AtomicOp, Scope),
    /// An argument.
    Argument(usize),
    /// A number.
    Number(u64),
    /// Nothing.
    Nothing,
    /// What a function does with these words.
    Expand(Expansion, Vec<String>),
    /// An error.
    Refuse(String),
}

impl Rule {
    /// What the intrinsic of that name, without `llvm.`, becomes. `None` when the tables do not have it.
    pub fn find(name: &str) -> Option<Rule> {
        let what = table::find(name)?;
        // The tables are checked by a test, so an error here is one of the tables.
        Some(Rule::parse(&what).unwrap_or_else(Rule::Refuse))
    }

    /// Reads a right-hand side.
    pub fn parse(what: &str) -> Result<Rule, String> {
        let (form, rest) = what.split_once(' ').unwrap_or((what, ""));
        let rest = rest.trim();
        match form {
            "ir" => generic(rest),
            "sreg" => {
                let register = SpecialReg::from_name(rest).ok_or_else(|| format!("there is no register `{rest}`"))?;
                Ok(Rule::Special(register))
            }
            "ptx" => Ok(Rule::Ptx(Template::parse(rest)?)),
            "rmw" => {
                let (op, scope) = rest.split_once(' ').ok_or("`rmw` needs an operation and a scope")?;
                let op = AtomicOp::from_text(op).ok_or_else(|| format!("there is no `atomicrmw {op}`"))?;
                let scope = Scope::from_text(scope).ok_or_else(|| format!("there is no scope `{scope}`"))?;
                Ok(Rule::Rmw(op, scope))
            }
            "value" => Ok(Rule::Argument(rest.parse().map_err(|_| format!("`{rest}` is no number"))?)),
            "number" => Ok(Rule::Number(rest.parse().map_err(|_| format!("`{rest}` is no number"))?)),
            "nothing" => Ok(Rule::Nothing),
            "do" => {
                let mut words = rest.split_whitespace().map(str::to_owned);
                let name = words.next().unwrap_or_default();
                let expansion = expansion(&name).ok_or_else(|| format!("there is no expansion `{name}`"))?;
                Ok(Rule::Expand(expansion, words.collect()))
            }
            "refuse" => Ok(Rule::Refuse(rest.to_owned())),
            _ => Err(format!("`{form}` is no form")),
        }
    }
}

fn generic(text: &str) -> Result<Rule, String> {
    let (words, order) = match text.split_once('(') {
        Some((words, order)) => (words, Some(order.trim_end_matches(')'))),
        None => (text, None),
    };
    let mut words = words.split_whitespace();
    let name = words.next().unwrap_or_default();
    let op = Opcode::from_text(name).ok_or_else(|| format!("there is no operation `{name}`"))?;
    let mut flags = Flags::EMPTY;
    for word in words.flat_map(|word| word.split('.')).filter(|word| !word.is_empty()) {
        flags |= Flags::from_text(word).ok_or_else(|| format!("there is no flag `{word}`"))?;
    }
    // To nearest is what operations do unless they say otherwise.
    if flags.contains(Flags::RN) && !matches!(name, "fptosi" | "fptoui") {
        flags = flags.without(Flags::RN);
    }
    let number = |word: &str| word.parse::<usize>().map_err(|_| format!("`{word}` is no number"));
    let order = order.map(|order| order.split_whitespace().map(number).collect::<Result<_, _>>()).transpose()?;
    Ok(Rule::Generic { op, flags, order })
}
