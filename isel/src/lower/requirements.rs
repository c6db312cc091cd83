//! What an instruction needs of the target, asked of the instruction table when a function first uses a mnemonic.
//!
//! Emission asks again for every operand shape; here the answer comes with the place in the source.

use ptxc_ir::{GlobalKind, Space};
use ptxc_mir::operand::top_level;
use ptxc_mir::{GroupKind, Operand, SymId};
use ptxc_targets::{RegType, Shape, resolve};
use smallvec::SmallVec;

use super::Lower;

impl Lower<'_> {
    /// Records an error when the target, or the version of PTX that was asked for, does not have the instruction.
    #[cold]
    pub(super) fn require(&mut self, opcode: ptxc_targets::Opcode, operands: &[Operand]) {
        let shapes: SmallVec<[Shape; 16]> = (0..operands.len()).filter_map(|at| self.shape(operands, at)).collect();
        let Ok(form) = resolve(self.opcodes.toks(opcode), &shapes) else { return };
        let name = || format!("`{}`", self.opcodes.text(opcode));
        let Some(refusal) = self.env.dialect.refusal(&form, name) else { return };
        match self.current_inst {
            Some(inst) => self.error(inst, refusal),
            None => self.errors.push(crate::SelectError::item(&self.ir.name, refusal)),
        }
    }

    /// Whether the instruction can be written in this form.
    pub(super) fn is_available(&self, toks: &[ptxc_targets::Tok], operands: &[Operand]) -> bool {
        let shapes: SmallVec<[Shape; 16]> = (0..operands.len()).filter_map(|at| self.shape(operands, at)).collect();
        self.env.dialect.has_form(toks, &shapes)
    }

    /// The shape of one slot of an operand list; offsets have none.
    fn shape(&self, operands: &[Operand], at: usize) -> Option<Shape> {
        Some(match operands[at] {
            Operand::Def(v) | Operand::Use(v) | Operand::DefUse { def: v, .. } => {
                let ty = self.func.class(v).ptx_type();
                match operands.get(at + 1) {
                    Some(Operand::Lanes(lanes)) => Shape::Selected(ty, lanes.selector()),
                    _ => Shape::Register(ty),
                }
            }
            Operand::UseMinus(v) => {
                let lanes = match operands.get(at + 1) {
                    Some(Operand::Lanes(lanes)) => Some(lanes.selector()),
                    _ => None,
                };
                Shape::Minus(self.func.class(v).ptx_type(), lanes)
            }
            Operand::UseNot(_) => Shape::NegatedPredicate,
            Operand::Imm(_) => Shape::Immediate,
            Operand::F32(_) => Shape::Float(Some(false)),
            Operand::F64(_) => Shape::Float(Some(true)),
            Operand::Sink => Shape::Sink,
            Operand::Sym(symbol, _) => self.symbol_shape(symbol),
            Operand::Param(..) | Operand::RetParam(..) => Shape::Variable(ptxc_targets::Space::Param),
            Operand::Depot(_) => Shape::Variable(ptxc_targets::Space::Local),
            Operand::SReg(register) if register.lanes() > 1 => Shape::WideRegister(register.ty(), register.lanes()),
            Operand::SReg(register) => Shape::SpecialOf(register.ty()),
            Operand::Label(_) => Shape::Label,
            Operand::Offset(_) | Operand::Lanes(_) => return None,
            Operand::Open(kind, n) => {
                let inside = operands.get(at + 1..at + 1 + usize::from(n)).unwrap_or_default();
                let elements = top_level(inside).count();
                match kind {
                    GroupKind::Vector => Shape::Vector(elements as u16),
                    GroupKind::Paren => Shape::Group(elements as u16),
                    GroupKind::Address => Shape::Address(elements as u8),
                    GroupKind::Pair => Shape::Pair,
                }
            }
        })
    }

    fn symbol_shape(&self, symbol: SymId) -> Shape {
        let module = self.env.module;
        let Some(global) = self.env.symbols.global_of(symbol) else { return Shape::Symbol };
        match module.globals[global].kind {
            GlobalKind::Variable(Space::Shared) => Shape::Variable(ptxc_targets::Space::Shared),
            GlobalKind::Variable(Space::Const) => Shape::Variable(ptxc_targets::Space::Const),
            GlobalKind::Variable(_) => Shape::Variable(ptxc_targets::Space::Global),
            GlobalKind::Texture => Shape::Opaque(RegType::Texref),
            GlobalKind::Surface => Shape::Opaque(RegType::Surfref),
            GlobalKind::Sampler => Shape::Opaque(RegType::Samplerref),
        }
    }
}
