//! Turns the text of a form into table rows.

use crate::error::Error;
use crate::expression::{self, Scope};
use crate::forms::{Alternative, FormText, Line, Source, split_requirement};
use crate::operands::{self, OperandText};
use crate::requirement::Requirements;
use crate::tokens::Tokens;
use std::collections::BTreeMap;

/// Flags of an operand.
#[path = "../src/flag.rs"]
pub mod flag;

pub struct Slot {
    pub name: String,
    pub optional: bool,
    pub together: usize,
    pub alternatives: Vec<Alternative>,
}

#[derive(Default)]
pub struct OperandRow {
    pub name: String,
    pub flags: u32,
    pub parts: u8,
    /// One more than the slot that says the space of the address.
    pub space: u8,
    pub ty: u32,
    pub len: u32,
    pub cond: u32,
    pub small: u32,
    /// Type of the first element of a vector, where it differs.
    pub first: u32,
    pub lo: i64,
    pub hi: i64,
    pub step: u16,
}

/// What a rule does where its condition holds.
pub enum Action {
    Forbid(String),
    Require(u16),
    Effect(u32),
}

pub struct Rule {
    pub action: Action,
    pub code: u32,
    pub dynamic: bool,
}

pub struct Form {
    pub syntax: String,
    pub section: String,
    pub slots: Vec<Slot>,
    pub operands: Vec<OperandRow>,
    pub rules: Vec<Rule>,
}

/// What all forms share.
pub struct Context<'a> {
    pub source: &'a Source,
    pub tokens: &'a Tokens,
    pub types: &'a BTreeMap<String, u16>,
    pub requirements: &'a mut Requirements,
    pub code: Vec<u16>,
    pub known_code: BTreeMap<Vec<u16>, u32>,
}

const EFFECTS: [(&str, u32); 17] = [
    ("copy_group", 14),
    ("bulk_group", 15),
    ("mbarrier_tx", 16),
    ("wgmma_group", 17),
    ("tensor_commit", 18),
    ("tensor_wait", 19),
    ("convergent", 20),
    ("barrier", 21),
    ("terminator", 22),
    ("ordered", 23),
    ("side_effect", 24),
    ("async_proxy", 25),
    ("proxy_fence", 26),
    ("uniform", 27),
    ("carry", 28),
    ("commit", 29),
    ("wait", 30),
];

const SPACES: [&str; 7] = ["generic", "global", "shared", "local", "const", "param", "tensor"];

/// The slots of a form's mnemonic, without the code that needs numbers of pieces.
pub fn slots(source: &Source, form: &FormText) -> Result<Vec<Slot>, Error> {
    let mut locals: BTreeMap<&str, Vec<Alternative>> = BTreeMap::new();
    for line in &form.lines {
        if let Some((name, values)) = slot_line(&line.text) {
            locals.entry(name).or_default().extend(source.alternatives(line, values)?);
        }
    }
    let mnemonic = form.head.text.split(' ').next().unwrap_or("");
    let mut slots = Vec::new();
    for (together, chunk) in mnemonic.split(['{', '}']).enumerate() {
        let optional = together % 2 == 1;
        for piece in chunk.split('.').filter(|piece| !piece.is_empty()) {
            let alternatives = match locals.get(piece).or_else(|| source.groups.get(piece)) {
                Some(alternatives) => alternatives.clone(),
                None if piece.len() > 1 && piece.chars().all(|c| c.is_ascii_uppercase()) => {
                    return Err(form.head.error(format!("slot `{piece}` has no values")));
                }
                None => vec![(piece.to_owned(), String::new())],
            };
            slots.push(Slot { name: piece.to_owned(), optional, together, alternatives });
        }
    }
    for name in locals.keys() {
        if !slots.iter().any(|slot| slot.name == *name) {
            return Err(form.head.error(format!("`{name}` is no slot of this form")));
        }
    }
    Ok(slots)
}

fn slot_line(text: &str) -> Option<(&str, &str)> {
    let (name, values) = text.split_once('=')?;
    let name = name.trim();
    let is_slot = name.starts_with(|c: char| c.is_ascii_uppercase())
        && name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    is_slot.then_some((name, values))
}

impl Context<'_> {
    pub fn form(&mut self, text: &FormText) -> Result<Form, Error> {
        let mut slots = slots(self.source, text)?;
        for slot in &mut slots {
            for (_, requirement) in &mut slot.alternatives {
                let number = self.requirements.intern(requirement).map_err(|message| text.head.error(message))?;
                *requirement = number.to_string();
            }
        }
        let names: Vec<(String, Vec<String>)> = slots
            .iter()
            .map(|slot| {
                let pieces = slot.alternatives.iter().map(|(piece, _)| piece.clone()).collect();
                (slot.name.clone(), pieces)
            })
            .collect();
        let list = text.head.text.split_once(' ').map_or("", |(_, list)| list);
        let parsed = operands::parse(list).map_err(|message| text.head.error(message))?;
        let indices: BTreeMap<String, u16> =
            parsed.iter().enumerate().map(|(at, operand)| (operand.name.clone(), at as u16)).collect();
        let mut builder = FormBuilder { context: self, names: &names, indices: &indices };
        let mut rows = Vec::new();
        for operand in &parsed {
            rows.push(
                builder
                    .operand(operand)
                    .map_err(|message| text.head.error(format!("operand `{}`: {message}", operand.name)))?,
            );
        }
        let mut rules = builder.implied(&slots).map_err(|message| text.head.error(message))?;
        for line in &text.lines {
            if slot_line(&line.text).is_none() {
                builder.line(line, &mut rules)?;
            }
        }
        Ok(Form { syntax: text.head.text.clone(), section: text.section.clone(), slots, operands: rows, rules })
    }
}

struct FormBuilder<'a, 'b> {
    context: &'a mut Context<'b>,
    names: &'a [(String, Vec<String>)],
    indices: &'a BTreeMap<String, u16>,
}

impl FormBuilder<'_, '_> {
    fn code(&mut self, text: &str) -> Result<(u32, bool), String> {
        let source = self.context.source;
        let tokens = self.context.tokens;
        let groups = |name: &str| {
            let group = source.groups.get(name)?;
            Some(group.iter().map(|(piece, _)| piece.clone()).collect::<Vec<_>>())
        };
        let scope = Scope {
            slots: self.names,
            operands: self.indices,
            groups: &groups,
            types: self.context.types,
            token: &|piece| tokens.number(piece),
        };
        let (code, dynamic) = expression::compile(text, &scope)?;
        Ok((self.place(code), dynamic))
    }

    fn place(&mut self, code: Vec<u16>) -> u32 {
        let context = &mut *self.context;
        let at = context.code.len() as u32;
        let known = *context.known_code.entry(code.clone()).or_insert(at);
        if known == at {
            context.code.extend(code);
        }
        known
    }

    fn static_code(&mut self, text: &str) -> Result<u32, String> {
        match self.code(text)? {
            (code, false) => Ok(code),
            _ => Err(format!("`{text}` may not depend on operands")),
        }
    }

    fn operand(&mut self, text: &OperandText) -> Result<OperandRow, String> {
        let mut row = OperandRow { name: text.name.clone(), ..OperandRow::default() };
        row.parts = text.parts as u8;
        row.flags |= if text.paired { flag::PAIRED } else { 0 };
        row.flags |= if text.inside { flag::INSIDE } else { 0 };
        for word in &text.words {
            let call = word.split_once('(').filter(|(name, _)| !name.is_empty());
            let argument = |rest: &str| rest.strip_suffix(')').unwrap_or(rest).to_owned();
            match (word.as_str(), call) {
                ("out", _) => row.flags |= flag::OUT,
                ("inout", _) => row.flags |= flag::INOUT,
                ("reg", _) => row.flags |= flag::REG,
                ("imm", _) => row.flags |= flag::IMM,
                ("relaxed", _) => row.flags |= flag::RELAXED,
                ("sink", _) => row.flags |= flag::SINK,
                ("label", _) => row.flags |= flag::LABEL,
                ("symbol", _) => row.flags |= flag::SYMBOL,
                ("or_symbol", _) => row.flags |= flag::SYMBOL_OK,
                ("group", _) => row.flags |= flag::GROUP,
                ("select", _) => row.flags |= flag::SELECT,
                ("mask2", _) => row.flags |= flag::MASK2,
                ("select2", _) => row.flags |= flag::SELECT2,
                ("mask4", _) => row.flags |= flag::MASK4,
                ("select4", _) => row.flags |= flag::SELECT4,
                ("minus", _) => row.flags |= flag::MINUS,
                (_, Some(("first", rest))) => row.first = self.static_code(&argument(rest))?,
                ("absolute", _) => row.flags |= flag::ABSOLUTE,
                ("vsink", _) => row.flags |= flag::VECTOR_SINK,
                (_, Some(("space", rest))) => {
                    let name = argument(rest);
                    let slot = self.names.iter().position(|(other, _)| *other == name);
                    row.space = slot.ok_or_else(|| format!("no slot `{name}`"))? as u8 + 1;
                }
                ("optional", _) => row.flags |= flag::OPTIONAL,
                (_, Some(("if", rest))) => {
                    row.flags |= flag::OPTIONAL;
                    row.cond = self.static_code(&argument(rest))?;
                }
                (_, Some((name @ ("vec" | "list"), rest))) => {
                    row.len = self.static_code(&argument(rest))?;
                    row.flags |= if name == "list" { flag::LIST } else { 0 };
                }
                (_, Some(("small", rest))) => row.small = self.static_code(&argument(rest))?,
                (_, Some((name @ ("imm" | "range"), rest))) => {
                    row.flags |= flag::RANGE | if name == "imm" { flag::IMM } else { 0 };
                    (row.lo, row.hi, row.step) = range(&argument(rest))?;
                }
                _ if self.names.iter().any(|(name, _)| name == word) => {
                    row.ty = self.static_code(&format!("type({word})"))?;
                }
                _ => row.ty = self.static_code(word)?,
            }
        }
        let typeless = flag::LABEL | flag::SYMBOL | flag::GROUP | flag::IMM;
        if row.ty == 0 && row.parts == 0 && row.flags & typeless == 0 {
            return Err("it has no type".to_owned());
        }
        Ok(row)
    }

    /// Rules that follow from the mnemonic itself.
    fn implied(&mut self, slots: &[Slot]) -> Result<Vec<Rule>, String> {
        let mut rules = Vec::new();
        for (a, b) in slots.iter().zip(slots.iter().skip(1)) {
            if a.optional && a.together == b.together {
                let code = self.static_code(&format!("{0} & !{1} | {1} & !{0}", a.name, b.name))?;
                let message = format!("`.{}` and `.{}` come together", a.name, b.name);
                rules.push(Rule { action: Action::Forbid(message), code, dynamic: false });
            }
        }
        if slots.iter().any(|slot| slot.alternatives.iter().any(|(piece, _)| piece == "sync")) {
            let code = self.static_code("sync")?;
            rules.push(Rule { action: Action::Effect(1 << 20), code, dynamic: false });
        }
        Ok(rules)
    }

    fn line(&mut self, line: &Line, rules: &mut Vec<Rule>) -> Result<(), Error> {
        let fail = |message: String| line.error(message);
        let text = line.text.as_str();
        let (verb, rest) = text.split_once(' ').unwrap_or((text, ""));
        match verb {
            "@" | "when" => {
                let (condition, requirement) = split_requirement(rest);
                let (condition, requirement) = match verb {
                    "@" => ("", rest),
                    _ => (condition.trim(), requirement),
                };
                let requirement = self.context.source.requirement(requirement);
                let number = self.context.requirements.intern(&requirement).map_err(fail)?;
                let (code, dynamic) = match condition {
                    "" => (0, false),
                    _ => self.code(condition).map_err(fail)?,
                };
                rules.push(Rule { action: Action::Require(number), code, dynamic });
            }
            "forbid" => {
                let (condition, message) = rest.split_once(" : \"").unwrap_or((rest, ""));
                let (code, dynamic) = self.code(condition).map_err(fail)?;
                let message = match message.trim_end_matches('"') {
                    "" => format!("not allowed: {}", condition.trim()),
                    message => message.to_owned(),
                };
                rules.push(Rule { action: Action::Forbid(message), code, dynamic });
            }
            "does" => self.effects(rest, rules).map_err(fail)?,
            _ => return Err(line.error(format!("`{verb}` is neither a slot nor a directive"))),
        }
        Ok(())
    }

    fn effects(&mut self, text: &str, rules: &mut Vec<Rule>) -> Result<(), String> {
        let (list, condition) = text.split_once(" if ").unwrap_or((text, ""));
        for word in list.split_whitespace() {
            if let Some(&(_, bit)) = EFFECTS.iter().find(|(name, _)| *name == word) {
                self.effect(1 << bit, condition, rules)?;
                continue;
            }
            let (verb, argument) = word
                .strip_suffix(')')
                .and_then(|word| word.split_once('('))
                .ok_or_else(|| format!("`{word}` is no effect"))?;
            let shift = match verb {
                "read" => 0,
                "write" => 7,
                _ => return Err(format!("`{word}` is no effect")),
            };
            let space = |name: &str| SPACES.iter().position(|space| name.starts_with(space));
            if let Some((_, pieces)) = self.names.iter().find(|(name, _)| name == argument) {
                let join = |own: String| match condition {
                    "" => own,
                    _ => format!("({condition}) & {own}"),
                };
                for piece in pieces.clone() {
                    let space = space(&piece).unwrap_or(0);
                    let own = join(format!("{argument}={piece}"));
                    self.effect(1 << (shift + space), &own, rules)?;
                }
                self.effect(1 << shift, &join(format!("!{argument}")), rules)?;
            } else {
                let space = space(argument).ok_or_else(|| format!("no space `{argument}`"))?;
                self.effect(1 << (shift + space), condition, rules)?;
            }
        }
        Ok(())
    }

    fn effect(&mut self, bits: u32, condition: &str, rules: &mut Vec<Rule>) -> Result<(), String> {
        let (code, dynamic) = match condition {
            "" => (0, false),
            _ => self.code(condition)?,
        };
        rules.push(Rule { action: Action::Effect(bits), code, dynamic });
        Ok(())
    }
}

/// `lo..hi`, `lo..hi:step`, or `lo..hi:2^` for powers of two (step 0).
fn range(text: &str) -> Result<(i64, i64, u16), String> {
    let (bounds, step) = text.split_once(':').unwrap_or((text, "1"));
    let step = if step.trim() == "2^" { Some(0) } else { step.trim().parse().ok().filter(|step| *step > 0) };
    bounds
        .split_once("..")
        .and_then(|(lo, hi)| Some((lo.trim().parse().ok()?, hi.trim().parse().ok()?, step?)))
        .ok_or_else(|| format!("`{text}` is no range"))
}
