//! Target operations: what the emulator of PTX does with the same instruction, over registers of its own.
//!
//! When a function is decoded, a target operation becomes an [`Instruction`] whose operands are scratch registers, and a
//! family of [`crate::ptx::families`] decodes it. To execute it, arguments are copied into the scratch registers and
//! results out of them. Poison goes through what only computes, of the lane alone or, where lanes work together, of all;
//! elsewhere a poison argument is an error. Under a guard that does not hold, results are poison, unless
//! they have values of their own.

use std::fmt;

use ptxc_ir::instruction::{GroupKind, TargetOp, TargetOperand};
use ptxc_ir::target_ops::register_type;
use ptxc_ir::{GlobalKind, Module};
use ptxc_targets::{Effects, RegType, possible_effects};

use super::compute::At;
use super::decode::Addresses;
use super::frame::Frame;
use super::program::{Code, LANES, Lanes, Val};
use crate::machine::{Arrival, Flow, Identity, Stop, World, lanes, odd};
use crate::memory::to_generic;
use crate::ptx::{self, Base, Constant, Constants, Instruction, Operand, Register, Slot, Symbol};

/// Most groups of operands within each other.
const MAX_DEPTH: u32 = 8;

/// A target operation.
pub struct Operation {
    operation: ptx::Operation,
    /// The scratch registers before it, constants in their places.
    template: Vec<Lanes>,
    /// Which argument goes where.
    arguments: Vec<(usize, Slot)>,
    /// Which result comes from where; and the argument whose value it has where the guard does not hold.
    results: Vec<(usize, Slot, Option<usize>)>,
    /// Argument that guards it, and whether it is negated.
    guard: Option<(usize, bool)>,
    effects: Effects,
    /// Takes the carry, leaves one.
    carry: [bool; 2],
}

/// How messages name one.
pub fn name(op: &TargetOp) -> String {
    match op {
        TargetOp::Known { toks, .. } => {
            let pieces: Vec<&str> = toks.iter().map(|t| t.text()).collect();
            format!("ptx.{}", pieces.join("."))
        }
        TargetOp::Opaque { .. } => "asm".to_string(),
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Operation").field("arguments", &self.arguments).field("results", &self.results).finish()
    }
}

struct Builder<'a> {
    module: &'a Module,
    args: &'a [Val],
    results: &'a [Val],
    operands: &'a [TargetOperand],
    next: Slot,
    arguments: Vec<(usize, Slot)>,
    outputs: Vec<(usize, Slot, Option<usize>)>,
}

/// Slots of a value that one register holds.
fn slots_of(bits: u32) -> u32 {
    if bits > 64 { 2 } else { 1 }
}

impl Builder<'_> {
    fn register(&mut self, val: Option<&Val>) -> Result<Register, String> {
        let ty = val.ok_or_else(|| "an operand is missing".to_string())?.ty;
        let register = register_type(ty).ok_or_else(|| format!("no register holds {ty}"))?;
        let bits = if register == RegType::Pred { 1 } else { register.bits().into() };
        let slot = self.next;
        self.next += slots_of(bits);
        Ok(Register { slot, ty: register })
    }

    fn argument(&mut self, index: u16) -> Result<Register, String> {
        let index = usize::from(index);
        // A register that is written too is not shared.
        let written = |slot: Slot| self.outputs.iter().any(|(_, output, _)| *output == slot);
        let known = self.arguments.iter().find(|(argument, slot)| *argument == index && !written(*slot));
        let known = known.map(|(_, slot)| *slot);
        let register = self.register(self.args.get(index))?;
        match known {
            Some(slot) => Ok(Register { slot, ..register }),
            None => {
                self.arguments.push((index, register.slot));
                Ok(register)
            }
        }
    }

    fn result(&mut self, index: u16, old: Option<u16>) -> Result<Register, String> {
        let index = usize::from(index);
        let register = self.register(self.results.get(index))?;
        self.outputs.push((index, register.slot, old.map(usize::from)));
        // What is read and written begins as the argument; the register is not shared with other uses of it.
        if let Some(old) = old {
            self.arguments.push((old.into(), register.slot));
        }
        Ok(register)
    }

    /// The operand at `at` and the position after it.
    fn operand(&mut self, at: usize, depth: u32) -> Result<(Operand, usize), String> {
        let operand = *self.operands.get(at).ok_or_else(|| "an operand is missing".to_string())?;
        if depth > MAX_DEPTH {
            return Err("operands are too deep within each other".to_string());
        }
        let one = match operand {
            TargetOperand::Result(index) => Operand::Register(self.result(index, None)?),
            TargetOperand::InOut { result, arg } => Operand::Register(self.result(result, Some(arg))?),
            TargetOperand::Arg(index) => Operand::Register(self.argument(index)?),
            TargetOperand::ArgNot(index) => Operand::Not(self.argument(index)?),
            TargetOperand::Part { arg, lanes, minus } => {
                let text = lanes.map(|lanes| lanes.text().to_string()).unwrap_or_default();
                Operand::Selected(self.argument(arg)?, minus, text)
            }
            TargetOperand::ResultPart { result, lanes } => {
                Operand::Selected(self.result(result, None)?, false, lanes.text().to_string())
            }
            TargetOperand::Imm(value) => Operand::Integer(value),
            TargetOperand::F32(bits) => Operand::Single(bits),
            TargetOperand::F64(bits) => Operand::Double(bits),
            TargetOperand::Sink => Operand::Sink,
            TargetOperand::Sreg(register) => Operand::Special(register),
            TargetOperand::Global(id, offset) => {
                let global = self.module.globals.get(id).ok_or_else(|| "there is no such variable".to_string())?;
                let GlobalKind::Variable(space) = global.kind else {
                    return Err(format!("@{} is no variable", global.name));
                };
                Operand::Address(Symbol::Variable(id.as_u32() as usize, space), offset.into())
            }
            TargetOperand::Offset(_) => return Err("an offset stands alone".to_string()),
            TargetOperand::Group(kind, len) => return self.group(kind, len, at + 1, depth + 1),
        };
        Ok((one, at + 1))
    }

    fn group(&mut self, kind: GroupKind, len: u16, from: usize, depth: u32) -> Result<(Operand, usize), String> {
        let mut parts = Vec::new();
        let mut bytes = 0i64;
        let mut at = from;
        for _ in 0..len {
            if let (Some(TargetOperand::Offset(offset)), GroupKind::Address) = (self.operands.get(at), kind) {
                bytes = bytes.wrapping_add(*offset);
                at += 1;
                continue;
            }
            let (part, next) = self.operand(at, depth)?;
            parts.push(part);
            at = next;
        }
        let operand = match kind {
            GroupKind::Vector => Operand::Vector(parts),
            GroupKind::Paren => Operand::Group(parts),
            GroupKind::Pair => {
                let both = <[Operand; 2]>::try_from(parts).map_err(|_| "half a pair".to_string())?;
                Operand::Pair(Box::new(both))
            }
            GroupKind::Address if parts.is_empty() => return Err("an address is empty".to_string()),
            GroupKind::Address => match parts.remove(0) {
                Operand::Register(register) => Operand::Memory(Base::Register(register), bytes, parts),
                Operand::Address(symbol, offset) => {
                    Operand::Memory(Base::Symbol(symbol), offset.wrapping_add(bytes), parts)
                }
                Operand::Integer(value) => Operand::Memory(Base::Absolute, value.wrapping_add(bytes), parts),
                _ => return Err("an address has no base".to_string()),
            },
        };
        Ok((operand, at))
    }
}

fn constant(constant: &Constant, module: &Module, addresses: &Addresses) -> u64 {
    match *constant {
        Constant::Bits(bits) => bits,
        Constant::Address { variable, offset, generic } => {
            let id = ptxc_ir::GlobalId::from_u32(variable as u32);
            let address = addresses[id].wrapping_add_signed(offset);
            match module.globals.get(id).map(|g| g.kind) {
                Some(GlobalKind::Variable(space)) if generic => to_generic(space, address),
                _ => address,
            }
        }
        Constant::Parameter { offset, .. } => offset,
        Constant::Function(_) => 0,
    }
}

/// Decodes a target operation.
///
/// # Errors
/// Why it is not interpreted. What no family of the emulator knows is an error when it is reached instead.
pub fn decode(
    op: &TargetOp,
    args: &[Val],
    results: &[Val],
    module: &Module,
    addresses: &Addresses,
) -> Result<Operation, String> {
    let TargetOp::Known { toks, guard, operands } = op else {
        return Err("inline assembly is not interpreted".to_string());
    };
    let pieces: Vec<&'static str> = toks.iter().map(|t| t.text()).collect();
    let refused = |why: String| format!("`{}` is not interpreted: {why}", name(op));
    let (arguments, outputs) = (Vec::new(), Vec::new());
    // The first slot is the frame's, which there is none of.
    let mut builder = Builder { module, args, results, operands, next: ptx::FRAME + 1, arguments, outputs };
    let mut list = Vec::new();
    let mut at = 0;
    while at < operands.len() {
        let (operand, next) = builder.operand(at, 0).map_err(refused)?;
        list.push(operand);
        at = next;
    }
    let mut constants = Constants::new(builder.next);
    let labels = |_: &str| None;
    let mut instruction =
        Instruction { pieces: &pieces, operands: &list, constants: &mut constants, kernel: true, labels: &labels };
    let operation = ptx::families::decode(&mut instruction)?;
    let mut template = vec![[0; LANES]; builder.next as usize];
    template.extend(constants.into_list().iter().map(|c| [constant(c, module, addresses); LANES]));
    let carry = [pieces.first().is_some_and(|p| matches!(*p, "addc" | "subc" | "madc")), pieces.contains(&"cc")];
    Ok(Operation {
        operation,
        template,
        arguments: builder.arguments,
        results: builder.outputs,
        guard: guard.map(|(index, negated)| (index.into(), negated)),
        effects: possible_effects(toks).unwrap_or(Effects::SIDE_EFFECT),
        carry,
    })
}

/// Copies a value into the registers that hold it whole; gives the lanes that are poison.
fn load(frame: &Frame, code: &Code, val: Val, to: &mut [Lanes]) -> u32 {
    let width = val.ty.scalar_bits();
    let mut poison = 0;
    for element in 0..val.elements() {
        for half in 0..if val.wide() { 2 } else { 1 } {
            let (values, bad) = frame.slot(code, val.element(element) + half);
            poison |= bad;
            let bit = element * width + half * 64;
            let Some(slot) = to.get_mut((bit / 64) as usize) else { continue };
            for (to, value) in slot.iter_mut().zip(values) {
                let kept = if bit.is_multiple_of(64) { 0 } else { *to };
                *to = kept | value << (bit % 64);
            }
        }
    }
    poison
}

/// Copies a value out of registers.
fn unload(frame: &mut Frame, val: Val, from: &[Lanes], poison: u32, mask: u32) {
    let width = val.ty.scalar_bits();
    for element in 0..val.elements() {
        for half in 0..if val.wide() { 2 } else { 1 } {
            let bit = element * width + half * 64;
            let Some(slot) = from.get((bit / 64) as usize) else { continue };
            let all = super::integer::mask(width.min(64)) as u64;
            let values = slot.map(|value| value >> (bit % 64) & all);
            frame.set(val.element(element) + half, &values, poison, mask);
        }
    }
}

/// Executes one for the lanes of `active`, which becomes those for which its guard holds.
pub fn execute(
    op: &Operation,
    at: &mut At<'_>,
    active: &mut u32,
    who: &mut Identity,
    world: &mut World<'_>,
) -> Result<Flow, Stop> {
    if let Some((index, negated)) = op.guard {
        let held = odd(&super::access::all_lanes(at, at.arg(index)?, "the guard")?);
        *active &= if negated { !held } else { held };
        skip(op, at, at.mask & !*active)?;
        if *active == 0 {
            return Ok(Flow::Next);
        }
    }
    let active = *active;
    let mut scratch = std::mem::take(&mut at.frame.scratch);
    scratch.clear();
    scratch.extend_from_slice(&op.template);
    let mut poison = 0;
    for (index, slot) in &op.arguments {
        let val = at.arg(*index)?;
        poison |= load(at.frame, at.code, val, scratch.get_mut(*slot as usize..).unwrap_or_default());
    }
    let poison = settle(op, who, poison, active)?;
    let mut inner = ptx::At { slots: &mut scratch, mask: active, who, world };
    let flow = (op.operation.execute)(&mut inner)?;
    let written = match flow {
        Flow::Next => active,
        Flow::Executed(mask) => mask,
        Flow::Meet | Flow::Barrier(_) | Flow::Cluster => 0,
        _ => return Err(Stop::new("control flow of target operations is not interpreted")),
    };
    for (index, slot, _) in &op.results {
        let val = at.result(*index)?;
        unload(at.frame, val, scratch.get(*slot as usize..).unwrap_or_default(), poison, written);
    }
    at.frame.scratch = scratch;
    Ok(flow)
}

/// Which lanes' results are poison when these arguments are.
fn settle(op: &Operation, who: &mut Identity, poison: u32, active: u32) -> Result<u32, Stop> {
    let [takes, leaves] = op.carry;
    let mut poison = poison & active;
    if takes || leaves {
        if takes {
            poison |= who.carry_poison & active;
        }
        if leaves {
            who.carry_poison = (who.carry_poison & !active) | poison;
        }
        return Ok(poison);
    }
    if poison == 0 || op.effects.is_pure() {
        return Ok(poison);
    }
    let together = Effects::CONVERGENT | Effects::UNIFORM;
    if !op.effects.reads_memory() && !op.effects.writes_memory() && (together | op.effects) == together {
        return Ok(u32::MAX);
    }
    let lane = lanes(poison).next().unwrap_or(0);
    Err(Stop::lane("an operand of the target operation is poison", lane))
}

/// Results where the guard does not hold.
fn skip(op: &Operation, at: &mut At<'_>, mask: u32) -> Result<(), Stop> {
    for (index, _, old) in &op.results {
        let to = at.result(*index)?;
        let old = old.map(|index| at.arg(index)).transpose()?;
        for slot in 0..to.slots() {
            let (values, poison) = match old {
                Some(old) => {
                    let (values, poison) = at.frame.slot(at.code, old.slot + slot);
                    (*values, poison)
                }
                None => ([0; LANES], u32::MAX),
            };
            at.frame.set(to.slot + slot, &values, poison, mask);
        }
    }
    Ok(())
}

/// Writes what a barrier that is complete gives.
pub fn pass(op: &Operation, results: &[Val], frame: &mut Frame, mask: u32, arrival: Arrival) {
    let Some(pass) = &op.operation.pass else { return };
    let mut slots = op.template.clone();
    pass(&mut slots, mask, arrival);
    for (index, slot, _) in &op.results {
        if let Some(val) = results.get(*index) {
            unload(frame, *val, slots.get(*slot as usize..).unwrap_or_default(), 0, mask);
        }
    }
}
