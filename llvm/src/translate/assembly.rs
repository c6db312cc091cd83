//! Inline assembly: LLVM's constraints and operand numbers become results and arguments of the IR's `asm`.
//!
//! The IR's text names results first, then arguments. An argument that is tied to a result is moved into it by a first
//! statement, and immediates become text.

use std::fmt::Write as _;

use ptxc_ir::{Extra, Flags, Opcode, TargetOp, Type as IrType, Value};

use super::body::Writer;
use super::{Fault, Result};
use crate::model::{Assembly, Call, Constant, Operand, Type, ValueId};

/// One constraint.
struct Constraint<'t> {
    output: bool,
    /// The operand is an address in memory.
    memory: bool,
    /// An address is passed, of the memory that is the operand.
    indirect: bool,
    /// The output that the input shares its register with.
    tied: Option<usize>,
    /// Letters.
    codes: &'t str,
}

/// The constraints, and whether memory is clobbered.
fn constraints(text: &str) -> Result<(Vec<Constraint<'_>>, bool)> {
    let (mut out, mut clobbers) = (Vec::new(), false);
    for part in text.split(',').filter(|part| !part.is_empty()) {
        if let Some(clobber) = part.strip_prefix('~') {
            clobbers |= clobber == "{memory}";
            continue;
        }
        let output = part.starts_with('=');
        let rest = part.trim_start_matches(['=', '&', '%', '+']);
        let indirect = rest.starts_with('*');
        let codes = rest.trim_start_matches('*');
        let tied = codes.parse().ok();
        if part.starts_with('!') {
            return Err(Fault::new("assembly that branches has no equivalent"));
        }
        out.push(Constraint { output, memory: codes.contains('m'), indirect, tied, codes });
    }
    Ok((out, clobbers))
}

/// The register of a constraint: its type, and whether it holds integers.
fn register(codes: &str) -> Option<IrType> {
    codes.chars().find_map(|code| {
        Some(match code {
            'b' => IrType::I1,
            'c' | 'h' => IrType::I16,
            'r' => IrType::I32,
            'l' | 'N' => IrType::I64,
            'q' => IrType::I128,
            'f' => IrType::F32,
            'd' => IrType::F64,
            _ => return None,
        })
    })
}

/// The type of the register for a value of type `ty` under a constraint: small vectors and halves stay what they are.
fn register_for(codes: &str, ty: IrType) -> Result<IrType> {
    let wanted =
        register(codes).ok_or_else(|| Fault::new(format!("there is no register for the constraint `{codes}`")))?;
    // Lanes of 8 bits have no register together.
    let lanes = ty.is_vector() && ty.scalar_bits() < 16;
    let keeps = wanted.is_int() && wanted.bits() == ty.bits() && (ty.bits() <= 32 || ty.is_ptr()) && !lanes;
    let plain_float = ty == IrType::F32;
    Ok(if keeps && !plain_float { ty } else { wanted })
}

/// What an operand of the text is.
enum Place {
    /// The result or argument with that number.
    Register(usize),
    /// Memory at the address in that register.
    Memory(usize),
    /// Text.
    Text(String),
}

impl Writer<'_, '_> {
    /// A call of inline assembly.
    pub fn assembly(&mut self, assembly: Assembly, call: Call, result: Option<ValueId>) -> Result<()> {
        let source = self.cx.source;
        let text = source.names.text(assembly.text).into_owned();
        let written = source.names.text(assembly.constraints).into_owned();
        let (constraints, clobbers) = constraints(&written)?;
        let outputs: Vec<IrType> = match result {
            Some(result) => self.cx.shape(self.body.values[result].ty)?.parts.iter().map(|part| part.ty).collect(),
            None => Vec::new(),
        };
        let direct = constraints.iter().filter(|c| c.output && !c.indirect).count();
        if direct != outputs.len() && !(outputs.is_empty() && direct == 0) {
            return Err(Fault::new(format!("assembly with {direct} outputs gives {} values", outputs.len())));
        }
        let mut results = Vec::with_capacity(outputs.len());
        let (mut arguments, mut places, mut prologue) = (Vec::new(), Vec::new(), String::new());
        let mut operands = self.body.operands(call.arguments).iter().copied();
        for constraint in &constraints {
            let mut next = || operands.next().ok_or_else(|| Fault::new("assembly has too few arguments"));
            let place = if constraint.output && !constraint.indirect {
                let register = register_for(constraint.codes, outputs[results.len()])?;
                results.push(register);
                Place::Register(results.len() - 1)
            } else if let Some(tied) = constraint.tied {
                let operand = next()?;
                let Some((ty, constraint)) = results.get(tied).copied().zip(constraints.get(tied)) else {
                    return Err(Fault::new(format!("assembly ties an argument to operand {tied}, which is no output")));
                };
                let value = self.value(operand)?;
                let value = self.in_register(value, constraint.codes, Some(ty))?;
                let argument = push(&mut arguments, value) + direct;
                let _ = write!(prologue, "mov.{} ${tied}, ${argument}; ", move_type(ty));
                Place::Register(tied)
            } else {
                let operand = next()?;
                self.assembly_input(constraint, operand, direct, &mut arguments)?
            };
            places.push(place);
        }
        self.assemblies += 1;
        let text = format!("{prologue}{}", replace(&text, &places, self.assemblies)?);
        let convergent = self.call_is_convergent(call);
        let mut flags = if convergent { Flags::EMPTY } else { Flags::NONCONVERGENT };
        if !assembly.side_effect && !clobbers {
            flags |= Flags::PURE;
        }
        let id = self.b.func.dfg.target_ops.push(TargetOp::Opaque { text });
        let none = IrType::INVALID;
        let made = self.b.inst_with_results(Opcode::Asm, flags, none, &arguments, Extra::Target(id), &results);
        let given: Vec<Value> = self.b.func.dfg.results(made).collect();
        let mut parts = Vec::with_capacity(given.len());
        for (value, ty) in given.into_iter().zip(outputs) {
            parts.push(self.out_of_register(value, ty)?);
        }
        self.finish(result, parts)
    }

    fn call_is_convergent(&self, call: Call) -> bool {
        let source = self.cx.source;
        source.attributes.function(call.attributes).any(|a| source.names.bytes(a.name) == b"convergent")
    }

    fn assembly_input(
        &mut self,
        constraint: &Constraint,
        operand: Operand,
        direct: usize,
        arguments: &mut Vec<Value>,
    ) -> Result<Place> {
        let immediate = constraint.codes.contains(['i', 'n', 'X', 's']);
        if immediate && let Some(text) = self.immediate_text(operand)? {
            return Ok(Place::Text(text));
        }
        if constraint.memory || constraint.indirect {
            let value = self.value(operand)?;
            return Ok(Place::Memory(push(arguments, value) + direct));
        }
        let value = self.value(operand)?;
        let codes =
            if register(constraint.codes).is_some() { constraint.codes } else { any_register(self.b.ty(value)) };
        let value = self.in_register(value, codes, None)?;
        Ok(Place::Register(push(arguments, value) + direct))
    }

    /// A constant as PTX writes it.
    fn immediate_text(&mut self, operand: Operand) -> Result<Option<String>> {
        if let Some(number) = self.number(operand) {
            return Ok(Some(number.to_string()));
        }
        let Some(constant) = operand.constant() else { return Ok(None) };
        let source = self.cx.source;
        let ty = source.types.get(source.constants.ty(constant));
        Ok(match (source.constants.get(constant), ty) {
            (Constant::Float(bits), Type::Float) => Some(format!("0f{bits:08X}")),
            (Constant::Float(bits), Type::Double) => Some(format!("0d{bits:016X}")),
            (Constant::Zero, Type::Pointer(_)) => Some("0".to_owned()),
            _ => None,
        })
    }

    /// A value in the register of a constraint.
    fn in_register(&mut self, value: Value, codes: &str, exact: Option<IrType>) -> Result<Value> {
        let own = self.b.ty(value);
        let wanted = match exact {
            Some(ty) => ty,
            None => register_for(codes, own)?,
        };
        if own == wanted {
            return Ok(value);
        }
        if own.is_ptr() && wanted.is_int() {
            return Ok(self.b.convert(Opcode::Ptrtoint, value, wanted));
        }
        if own.is_int() && wanted.is_int() {
            return Ok(self.resize(value, wanted, false));
        }
        if own.bits() == wanted.bits() {
            return self.bit_cast(value, wanted);
        }
        if wanted.is_int() && own.bits() < wanted.bits() {
            let bits = self.bit_cast(value, IrType::int(own.bits()))?;
            return Ok(self.resize(bits, wanted, false));
        }
        Err(Fault::new(format!("a value of type {own} does not fit a register of the constraint `{codes}`")))
    }

    /// A value of the type that LLVM says from the register that assembly wrote.
    fn out_of_register(&mut self, value: Value, ty: IrType) -> Result<Value> {
        let own = self.b.ty(value);
        if own == ty {
            return Ok(value);
        }
        if ty.is_ptr() && own.is_int() {
            return Ok(self.integer_to_pointer(value, ty));
        }
        if own.is_int() && ty.is_int() {
            return Ok(self.resize(value, ty, false));
        }
        if own.is_int() && ty.bits() < own.bits() {
            let bits = self.resize(value, IrType::int(ty.bits()), false);
            return self.bit_cast(bits, ty);
        }
        self.bit_cast(value, ty)
    }
}

/// The constraint of the register that holds a value of this type.
fn any_register(ty: IrType) -> &'static str {
    match (ty, ty.bits()) {
        (IrType::F32, _) => "f",
        (IrType::F64, _) => "d",
        (IrType::I1, _) => "b",
        (_, 0..=16) => "h",
        (_, 17..=32) => "r",
        (_, 33..=64) => "l",
        _ => "q",
    }
}

fn push(arguments: &mut Vec<Value>, value: Value) -> usize {
    arguments.push(value);
    arguments.len() - 1
}

fn move_type(ty: IrType) -> &'static str {
    match ty.bits() {
        1 => "pred",
        16 => "b16",
        32 => "b32",
        64 => "b64",
        _ => "b128",
    }
}

/// The text with the IR's numbers for LLVM's. Of alternatives `$(a$|b$)` the first is taken.
fn replace(text: &str, places: &[Place], unique: u32) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let mut skipping = false;
    while let Some(at) = rest.find('$') {
        if !skipping {
            out.push_str(&rest[..at]);
        }
        let after = &rest[at + 1..];
        let (len, inside) = match after.as_bytes().first() {
            Some(b'$') => (1, None),
            Some(b'(') => (1, Some("")),
            Some(b'|') => {
                skipping = true;
                (1, Some(""))
            }
            Some(b')') => {
                skipping = false;
                (1, Some(""))
            }
            Some(b'{') => {
                let end = after.find('}').ok_or_else(|| Fault::new("`${` without `}` in assembly"))?;
                (end + 1, Some(&after[1..end]))
            }
            _ => {
                let digits = after.bytes().take_while(u8::is_ascii_digit).count();
                (digits, Some(&after[..digits]))
            }
        };
        rest = &after[len..];
        if skipping {
            continue;
        }
        match inside {
            None => out.push_str("$$"),
            Some("") => {
                // A dollar sign on its own is a part of a name.
                if len == 0 {
                    out.push_str("$$");
                }
            }
            Some(name) => write_place(&mut out, name, places, unique)?,
        }
    }
    if !skipping {
        out.push_str(rest);
    }
    Ok(out)
}

fn write_place(out: &mut String, name: &str, places: &[Place], unique: u32) -> Result<()> {
    let (number, modifier) = name.split_once(':').unwrap_or((name, ""));
    if number.is_empty() {
        match modifier {
            "uid" => {
                let _ = write!(out, "{unique}");
            }
            "comment" => out.push_str("//"),
            _ => {}
        }
        return Ok(());
    }
    let place = number.parse::<usize>().ok().and_then(|number| places.get(number));
    let _ = match place {
        Some(Place::Register(number)) => write!(out, "${number}"),
        Some(Place::Memory(number)) => write!(out, "[${number}]"),
        Some(Place::Text(text)) => write!(out, "{text}"),
        None => return Err(Fault::new(format!("assembly names operand `{number}`, which it does not have"))),
    };
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_get_the_numbers_of_the_ir() {
        let places = [Place::Register(0), Place::Register(2), Place::Text("7".into()), Place::Memory(1)];
        let replaced = |text: &str| replace(text, &places, 5).map_err(|fault| fault.0.text);
        assert_eq!(replaced("op $0, ${1}, $2;").as_deref(), Ok("op $0, $2, 7;"));
        assert_eq!(replaced("ld $0, $3; L${:uid}: $$x").as_deref(), Ok("ld $0, [$1]; L5: $$x"));
        assert_eq!(replaced("$(a$|b$) ${1:h}").as_deref(), Ok("a $2"));
        assert!(replaced("$9").is_err());
    }

    #[test]
    fn constraints_are_told_apart() {
        let (all, clobbers) = constraints("=r,=*m,r,0,n,~{memory}").unwrap();
        assert!(clobbers);
        assert_eq!(all.len(), 5);
        assert!(all[0].output && !all[0].indirect && all[1].indirect && all[1].memory);
        assert_eq!(all[3].tied, Some(0));
    }
}
