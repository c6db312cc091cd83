//! Registers and immediates of values.

use cranelift_entity::packed_option::PackedOption;
use ptxc_ir::{ConstData, FloatKind, Scalar, Type, Value};
use ptxc_mir::{Operand, RegClass, VReg};
use ptxc_targets::tok;
use smallvec::SmallVec;

use super::{Inst, Lower, Output};
use crate::regs::{self, RegLayout};

impl Lower<'_> {
    /// The type of a value.
    pub(super) fn ty(&self, value: Value) -> Type {
        self.ir.dfg.ty(value)
    }

    /// The registers of a type. Types that legal IR does not have are taken as one 32-bit register after an error.
    pub(super) fn layout(&mut self, ty: Type) -> RegLayout {
        regs::layout(ty, self.env.target).unwrap_or_else(|| {
            let message = format!("a value of type {ty} is not legal here");
            self.errors.push(crate::SelectError::item(&self.ir.name, message));
            RegLayout { class: RegClass::B32, count: 1, lanes: 1 }
        })
    }

    /// Whether something already asked for the registers of a value.
    pub(super) fn is_assigned(&self, value: Value) -> bool {
        self.regs[value].1 != 0
    }

    /// The registers of a value, constants being put into registers here.
    pub(super) fn regs_of(&mut self, value: Value) -> Output {
        let value = self.ir.dfg.resolve(value);
        if self.ir.dfg.as_const(value).is_some() {
            return self.constant_regs(value);
        }
        if let Some(output) = self.folded_address_regs(value) {
            return output;
        }
        let (start, count) = self.regs[value];
        if count != 0 {
            return SmallVec::from_slice(&self.reg_pool[start as usize..start as usize + usize::from(count)]);
        }
        let layout = self.layout(self.ty(value));
        let start = self.reg_pool.len() as u32;
        for _ in 0..layout.count {
            let reg = self.new_reg(layout.class);
            self.reg_pool.push(reg);
        }
        self.regs[value] = (start, layout.count as u16);
        SmallVec::from_slice(&self.reg_pool[start as usize..])
    }

    /// The register of a value that has one.
    pub(super) fn reg_of(&mut self, value: Value) -> VReg {
        let regs = self.regs_of(value);
        self.only(&regs)
    }

    /// The one register of a list; a fresh one, after an error was reported elsewhere, when there is not one.
    fn only(&mut self, regs: &[VReg]) -> VReg {
        match regs {
            [reg] => *reg,
            _ => {
                let message = "a vector stands where one register is needed".to_owned();
                self.errors.push(crate::SelectError::item(&self.ir.name, message));
                regs.first().copied().unwrap_or_else(|| self.func.new_vreg(RegClass::B32))
            }
        }
    }

    /// The registers to define for a result. Nothing may have been bound to it before.
    pub(super) fn def_regs(&mut self, value: Value) -> Output {
        self.regs_of(value)
    }

    /// Makes the registers of an instruction's results names of `output`.
    pub(super) fn bind(&mut self, inst: Inst, output: &[VReg]) {
        let mut rest = output;
        for result in self.ir.dfg.results(inst) {
            let count = self.layout(self.ty(result)).count as usize;
            let (head, tail) = rest.split_at(count.min(rest.len()));
            self.bind_value(result, head);
            rest = tail;
        }
    }

    /// Makes the registers of a value names of `to`.
    pub(super) fn bind_value(&mut self, value: Value, to: &[VReg]) {
        if !self.is_assigned(value) {
            return;
        }
        for (from, to) in self.regs_of(value).into_iter().zip(to) {
            if from != *to {
                debug_assert_eq!(self.func.class(from), self.func.class(*to));
                self.aliases[from] = PackedOption::from(*to);
            }
        }
    }

    /// The value's constant bits when it is a scalar constant; poison counts as zero.
    pub(super) fn const_bits(&self, value: Value) -> Option<u128> {
        match self.ir.dfg.as_const(value)? {
            ConstData::Bits(bits) => Some(*bits),
            ConstData::Poison if !self.ty(value).is_vector() => Some(0),
            _ => None,
        }
    }

    /// A scalar integer or null constant of at most 64 bits as a sign-extended number.
    pub(super) fn const_i64(&self, value: Value) -> Option<i64> {
        let bits = self.const_bits(value)?;
        let ty = self.ty(value);
        match ty.kind()? {
            Scalar::Int(width) if width <= 64 => {
                let shift = 128 - width;
                Some((((bits << shift) as i128) >> shift) as i64)
            }
            Scalar::Ptr(_) => Some(bits as i64),
            _ => None,
        }
    }

    /// A value as an instruction's source: an immediate of its type where PTX has one, else a register.
    pub(super) fn source(&mut self, value: Value) -> Operand {
        let ty = self.ty(value);
        if ty == Type::I1 {
            return Operand::Use(self.reg_of(value));
        }
        if let Some(number) = self.const_i64(value) {
            return Operand::Imm(number);
        }
        match (self.const_bits(value), ty.float_kind()) {
            (Some(bits), Some(FloatKind::F32)) => Operand::F32(bits as u32),
            (Some(bits), Some(FloatKind::F64)) => Operand::F64(bits as u64),
            _ => Operand::Use(self.reg_of(value)),
        }
    }

    /// A value as the source of an untyped instruction: constants as integers.
    pub(super) fn bit_source(&mut self, value: Value) -> Operand {
        if self.ty(value) != Type::I1
            && let Some(bits) = self.word_constant(value)
        {
            return Operand::Imm(bits);
        }
        Operand::Use(self.reg_of(value))
    }

    /// The bits of a constant that fits one register, sign-extended from the register's width.
    pub(super) fn word_constant(&self, value: Value) -> Option<i64> {
        let ty = self.ty(value);
        let layout = regs::layout(ty, self.env.target)?;
        if layout.count != 1 {
            return None;
        }
        let data = self.ir.dfg.as_const(value)?;
        let width = layout.class.bits();
        let bits = match data {
            ConstData::Bits(bits) => *bits as u64,
            ConstData::Poison => 0,
            ConstData::Vector(lanes) => self.pack_lanes(lanes, ty.scalar_bits())?,
            ConstData::Global(..) | ConstData::Func(_) => return None,
        };
        let shift = 64 - width;
        Some(((bits << shift) as i64) >> shift)
    }

    fn pack_lanes(&self, lanes: &[Value], width: u32) -> Option<u64> {
        let mut bits = 0u64;
        for (index, lane) in lanes.iter().enumerate() {
            let lane = self.const_bits(*lane)? as u64;
            bits |= lane.checked_shl(index as u32 * width).unwrap_or(0);
        }
        Some(bits)
    }

    /// Registers holding a constant: fresh ones, except for addresses.
    fn constant_regs(&mut self, value: Value) -> Output {
        let ty = self.ty(value);
        let layout = self.layout(ty);
        if let Some(reg) = self.address_constant(value) {
            return SmallVec::from_slice(&[reg]);
        }
        // Lanes with registers of their own are scalar constants, which may be addresses.
        if let (1, Some(ConstData::Vector(lanes))) = (layout.lanes, self.ir.dfg.as_const(value)) {
            return lanes.iter().flat_map(|lane| self.constant_regs(*lane)).collect();
        }
        (0..layout.count)
            .map(|index| self.load_immediate(layout.class, self.register_bits(value, layout, index)))
            .collect()
    }

    /// A register holding the address that a constant is, if it is one.
    fn address_constant(&mut self, value: Value) -> Option<VReg> {
        let (address, far) = match (self.symbol_operand(value), self.ir.dfg.as_const(value)?) {
            (Some(address), _) => (address, 0),
            // An operand's offset has 32 bits.
            (None, ConstData::Global(global, offset)) => (Operand::Sym(self.env.symbols.global(*global), 0), *offset),
            _ => return None,
        };
        let reg = self.named_reg(address);
        Some(if far == 0 { reg } else { self.binary_imm(&[tok::ADD, tok::S64], reg, far) })
    }

    /// What register `index` of a constant holds.
    fn register_bits(&self, value: Value, layout: RegLayout, index: u32) -> i64 {
        let width = layout.class.bits();
        let raw = match self.ir.dfg.as_const(value) {
            Some(ConstData::Bits(bits)) => (*bits).checked_shr(index * width).unwrap_or(0) as u64,
            Some(ConstData::Vector(lanes)) if layout.lanes == 0 => {
                let lane = lanes.get(index as usize / 2).and_then(|l| self.const_bits(*l)).unwrap_or(0);
                (lane >> (64 * (index % 2))) as u64
            }
            Some(ConstData::Vector(lanes)) => {
                let first = (index * layout.lanes) as usize;
                let part = lanes.get(first..first + layout.lanes as usize).unwrap_or_default();
                self.pack_lanes(part, self.ty(value).scalar_bits()).unwrap_or(0)
            }
            _ => 0,
        };
        let shift = 64 - width;
        ((raw << shift) as i64) >> shift
    }

    /// A fresh register of this class holding these bits.
    pub(super) fn load_immediate(&mut self, class: RegClass, bits: i64) -> VReg {
        let reg = self.new_reg(class);
        let suffix = match class {
            RegClass::Pred => tok::PRED,
            RegClass::B16 => tok::B16,
            RegClass::B32 => tok::B32,
            _ => tok::B64,
        };
        self.emit_toks(&[tok::MOV, suffix], &[Operand::Def(reg), Operand::Imm(bits)]);
        reg
    }
}
