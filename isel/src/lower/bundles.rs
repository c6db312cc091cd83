//! Vectors as lists of registers: building, taking apart and reinterpreting them.
//!
//! Where a lane is a register of its own all of this is free: results become other names of the operands' registers.
//! Packed lanes are taken out and put together with the vector forms of `mov` (PTX ISA 9.7.9, mov).

use ptxc_ir::{Extra, Inst, Opcode, Type, Value};
use ptxc_mir::{Operand, RegClass, VReg};
use ptxc_targets::tok;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{Lower, Output};
use crate::regs::RegLayout;
use crate::rules::Pattern;

/// One lane of the result: of an operand, or a scalar value, or nothing in particular.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Lane {
    Scalar(Value),
    Of(Value, u32),
    Undefined,
}

impl Lower<'_> {
    /// `vector extract insert shuffle splat bitcast`.
    pub(super) fn bundle(&mut self, inst: Inst) {
        let op = self.ir.dfg.insts[inst].op;
        if op == Opcode::Bitcast {
            self.bitcast(inst);
            return;
        }
        let Some(result) = self.ir.dfg.first_result(inst) else { return };
        let Some(lanes) = self.lanes(inst) else {
            self.error(inst, format!("`{}` with a variable lane is not legal", op.text()));
            return;
        };
        let ty = self.ty(result);
        let layout = self.layout(ty);
        if layout.lanes == 0 && ty.is_vector() {
            self.wide_lanes(inst, &lanes);
            return;
        }
        let mut unpacked = FxHashMap::default();
        let mut out = Output::new();
        let per_reg = layout.lanes.max(1) as usize;
        for group in lanes.chunks(per_reg) {
            let reg = self.register_of_lanes(group, layout, ty, &mut unpacked);
            match reg {
                Some(reg) => out.push(reg),
                None => {
                    let regs = group.first().map(|lane| self.whole_lane(*lane)).unwrap_or_default();
                    out.extend(regs);
                }
            }
        }
        self.bind(inst, &out);
    }

    /// The lanes of the result in order.
    fn lanes(&self, inst: Inst) -> Option<SmallVec<[Lane; 16]>> {
        let data = &self.ir.dfg.insts[inst];
        let count = data.ty.lanes();
        let a = self.arg(inst, 0);
        let of = |v: Value, lane: u32| {
            if self.is_poison(v) { Lane::Undefined } else { Lane::Of(v, lane) }
        };
        Some(match data.op {
            Opcode::Vector => self.ir.dfg.args(inst).iter().map(|v| self.scalar_lane(*v)).collect(),
            Opcode::Splat => (0..count).map(|_| self.scalar_lane(a)).collect(),
            Opcode::Extract => {
                let lane = u32::try_from(self.const_i64(self.arg(inst, 1))?).ok()?;
                SmallVec::from_slice(&[if lane < count { of(a, lane) } else { Lane::Undefined }])
            }
            Opcode::Insert => {
                let lane = u32::try_from(self.const_i64(self.arg(inst, 2))?).ok()?;
                let new = self.scalar_lane(self.arg(inst, 1));
                (0..count).map(|i| if i == lane { new } else { of(a, i) }).collect()
            }
            Opcode::Shuffle => {
                let Extra::Mask(mask) = data.extra else { return None };
                let b = self.arg(inst, 1);
                let source = self.ty(a).lanes();
                let pick = |lane: &i32| match u32::try_from(*lane) {
                    Ok(lane) if lane < source => of(a, lane),
                    Ok(lane) if lane < 2 * source => of(b, lane - source),
                    _ => Lane::Undefined,
                };
                self.ir.dfg.masks[mask].iter().map(pick).collect()
            }
            _ => return None,
        })
    }

    fn is_poison(&self, value: Value) -> bool {
        matches!(self.ir.dfg.as_const(value), Some(ptxc_ir::ConstData::Poison))
    }

    fn scalar_lane(&self, value: Value) -> Lane {
        let value = self.ir.dfg.resolve(value);
        if self.is_poison(value) { Lane::Undefined } else { Lane::Scalar(value) }
    }

    /// One register of the result; `None` when its lanes are values of several registers each.
    fn register_of_lanes(
        &mut self,
        group: &[Lane],
        layout: RegLayout,
        ty: Type,
        unpacked: &mut FxHashMap<(Value, u32), Output>,
    ) -> Option<VReg> {
        if layout.lanes == 0 {
            return None;
        }
        if group.iter().all(|lane| *lane == Lane::Undefined) {
            return Some(self.load_immediate(layout.class, 0));
        }
        if let Some(reg) = self.whole_register(group, layout) {
            return Some(reg);
        }
        if let [lane] = group {
            return Some(self.lane_register(*lane, layout.class, unpacked));
        }
        if ty.scalar_bits() < 16 {
            return Some(self.pack_bytes(group, layout.class, unpacked));
        }
        let part = RegClass::for_bits(ty.scalar_bits()).unwrap_or(RegClass::B16);
        let parts: Output = group.iter().map(|lane| self.lane_register(*lane, part, unpacked)).collect();
        Some(self.pack(layout.class, &parts))
    }

    /// The operand's register that holds exactly these lanes in this order, if one does.
    fn whole_register(&mut self, group: &[Lane], layout: RegLayout) -> Option<VReg> {
        let (value, first) = group.iter().enumerate().find_map(|(i, lane)| match lane {
            Lane::Of(v, lane) => Some((*v, lane.checked_sub(i as u32)?)),
            _ => None,
        })?;
        let fits = group
            .iter()
            .enumerate()
            .all(|(i, lane)| matches!(lane, Lane::Undefined) || *lane == Lane::Of(value, first + i as u32));
        let source = self.layout(self.ty(value));
        if !fits || source.lanes != layout.lanes || source.class != layout.class || first % layout.lanes != 0 {
            return None;
        }
        self.regs_of(value).get((first / layout.lanes) as usize).copied()
    }

    /// One lane in a register of its own.
    fn lane_register(&mut self, lane: Lane, class: RegClass, unpacked: &mut FxHashMap<(Value, u32), Output>) -> VReg {
        match lane {
            Lane::Undefined => self.load_immediate(class, 0),
            Lane::Scalar(value) => self.reg_of(value),
            Lane::Of(value, index) => {
                let source = self.layout(self.ty(value));
                let per_reg = source.lanes.max(1);
                let (at, within) = (index / per_reg, index % per_reg);
                if source.lanes == 1 {
                    let regs = self.regs_of(value);
                    return regs.get(at as usize).copied().unwrap_or_else(|| self.new_reg(class));
                }
                if self.ty(value).scalar_bits() < 16 {
                    let regs = self.regs_of(value);
                    return self.shift_out_byte(regs[at as usize % regs.len()], within);
                }
                if let Some(parts) = unpacked.get(&(value, at)) {
                    return parts[within as usize];
                }
                let regs = self.regs_of(value);
                let parts = self.unpack(regs[at as usize % regs.len()], class);
                let reg = parts[within as usize % parts.len()];
                unpacked.insert((value, at), parts);
                reg
            }
        }
    }

    /// A byte lane of a packed register as a 16-bit register whose upper half is unspecified.
    fn shift_out_byte(&mut self, reg: VReg, lane: u32) -> VReg {
        let amount = i64::from(8 * lane);
        match self.func.class(reg) {
            RegClass::B16 if lane == 0 => reg,
            RegClass::B16 => self.binary_imm(&[tok::SHR, tok::U16], reg, amount),
            _ => {
                let shifted = if lane == 0 { reg } else { self.binary_imm(&[tok::SHR, tok::U32], reg, amount) };
                self.convert_register(shifted, RegClass::B16, &[tok::CVT, tok::U16, tok::U32])
            }
        }
    }

    /// Byte lanes packed into one register, lane 0 lowest.
    fn pack_bytes(&mut self, group: &[Lane], class: RegClass, unpacked: &mut FxHashMap<(Value, u32), Output>) -> VReg {
        let mut pairs = Output::new();
        for pair in group.chunks(2) {
            let low = self.lane_register(pair[0], RegClass::B16, unpacked);
            let low = self.binary_imm(&[tok::AND, tok::B16], low, 0xff);
            let Some(high) = pair.get(1) else {
                pairs.push(low);
                continue;
            };
            let high = self.lane_register(*high, RegClass::B16, unpacked);
            let high = self.binary_imm(&[tok::SHL, tok::B16], high, 8);
            let both = self.new_reg(RegClass::B16);
            self.emit_toks(&[tok::OR, tok::B16], &[Operand::Def(both), Operand::Use(low), Operand::Use(high)]);
            pairs.push(both);
        }
        if class == RegClass::B16 { pairs[0] } else { self.pack(class, &pairs) }
    }

    /// All registers of a lane that has several, as those of `<n x i128>`.
    fn whole_lane(&mut self, lane: Lane) -> Output {
        match lane {
            Lane::Scalar(value) => self.regs_of(value),
            Lane::Of(value, index) => {
                let layout = self.layout(self.ty(value));
                let regs = self.regs_of(value);
                let per_lane = (layout.count / self.ty(value).lanes()).max(1) as usize;
                let first = index as usize * per_lane;
                regs.get(first..first + per_lane).map(SmallVec::from_slice).unwrap_or_default()
            }
            Lane::Undefined => {
                let zero = self.load_immediate(RegClass::B64, 0);
                SmallVec::from_slice(&[zero, zero])
            }
        }
    }

    fn wide_lanes(&mut self, inst: Inst, lanes: &[Lane]) {
        let mut out = Output::new();
        for lane in lanes {
            let regs = self.whole_lane(*lane);
            out.extend(regs);
        }
        self.bind(inst, &out);
    }

    /// Reinterprets registers: same class is another name, else packs or takes apart.
    fn bitcast(&mut self, inst: Inst) {
        let Some(result) = self.ir.dfg.first_result(inst) else { return };
        let source = self.arg(inst, 0);
        let (from_ty, to_ty) = (self.ty(source), self.ty(result));
        let (from, to) = (self.layout(from_ty), self.layout(to_ty));
        let bytes_of = |l: RegLayout, ty: Type| l.count * l.class.bits() == ty.bits();
        let regs = self.regs_of(source);
        if from.class == to.class && from.count == to.count {
            self.bind(inst, &regs);
            return;
        }
        if !bytes_of(from, from_ty) || !bytes_of(to, to_ty) {
            self.error(inst, format!("`bitcast {from_ty} to {to_ty}` is not legal"));
            return;
        }
        let mut out = Output::new();
        if from.class > to.class {
            for reg in regs {
                let parts = self.unpack(reg, to.class);
                out.extend(parts);
            }
        } else {
            let ratio = (to.class.bits() / from.class.bits()) as usize;
            for parts in regs.chunks(ratio) {
                let reg = self.pack(to.class, parts);
                out.push(reg);
            }
        }
        self.bind(inst, &out);
    }

    /// `select` and `freeze` of values of several registers, register by register.
    pub(super) fn bundle_compute(&mut self, inst: Inst) -> bool {
        let data = &self.ir.dfg.insts[inst];
        if data.op != Opcode::Select || self.layout(data.ty).count == 1 {
            return false;
        }
        let [c, a, b] = [self.arg(inst, 0), self.arg(inst, 1), self.arg(inst, 2)];
        if self.ty(c) != Type::I1 {
            return false;
        }
        let c = self.reg_of(c);
        let (a, b) = (self.regs_of(a), self.regs_of(b));
        let mut out = Output::new();
        for (a, b) in a.into_iter().zip(b) {
            let class = self.func.class(a);
            let reg = self.new_reg(class);
            let suffix = super::memory::untyped_tok(class);
            let operands = [Operand::Def(reg), Operand::Use(a), Operand::Use(b), Operand::Use(c)];
            self.emit_toks(&[tok::SELP, suffix], &operands);
            out.push(reg);
        }
        self.bind(inst, &out);
        true
    }

    /// Conversions of pairs into one register and back: `cvt.rn.f16x2.f32 d, high, low` and its like.
    pub(super) fn packed_conversion(&mut self, inst: Inst) -> bool {
        let data = &self.ir.dfg.insts[inst];
        if !matches!(data.op, Opcode::Fptrunc | Opcode::Fpext) || !data.ty.is_vector() || data.ty.lanes() != 2 {
            return false;
        }
        let (to, value, flags) = (data.ty, self.arg(inst, 0), data.flags);
        let from = self.ty(value);
        let mnemonic = super::isle::packed_cvt(flags, to, from);
        let layout = self.layout(to);
        if layout.count != 1 {
            return false;
        }
        self.note(Pattern::CvtPacked);
        let mut operands: SmallVec<[Operand; 4]> = SmallVec::new();
        let out = self.new_reg(layout.class);
        operands.push(Operand::Def(out));
        if from.scalar() == Type::F32 {
            let regs = self.regs_of(value);
            let lanes = if regs.len() == 1 { self.unpack(regs[0], RegClass::B32) } else { regs };
            // PTX takes the upper lane first.
            operands.extend(lanes.iter().rev().map(|r| Operand::Use(*r)));
        } else {
            operands.push(Operand::Use(self.reg_of(value)));
        }
        self.emit(mnemonic, &operands);
        self.bind(inst, &[out]);
        true
    }
}
