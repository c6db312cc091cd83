//! Parameters at the entry, results at `ret`, and the conversions between values and what is passed.

use ptxc_ir::{Block, FuncKind, Inst, ParamAttrs, Space, Type, Value};
use ptxc_mir::{GroupKind, Operand, RegClass, Terminator, VReg};
use ptxc_targets::{RegType, Tok, tok};
use smallvec::{SmallVec, smallvec};

use super::memory::{push_vector, vector_tok};
use super::{Lower, Output};
use crate::abi::{self, Extension, Leaf, Object};

/// The suffix of a parameter access.
fn type_tok(ty: RegType) -> Tok {
    Tok::from_text(ty.text()).unwrap_or(tok::B32)
}

impl Lower<'_> {
    /// Attributes of the parameter that leaf `index` of the entry block belongs to, when it is a parameter of one leaf.
    pub(super) fn param_attrs(&self, index: usize) -> Option<&ParamAttrs> {
        let mut at = 0;
        for (param, object) in self.ir.sig.params.iter().zip(&self.abi.params) {
            if index == at && object.leaves.len() == 1 {
                return Some(&param.attrs);
            }
            at += object.leaves.len();
            if at > index {
                return None;
            }
        }
        None
    }

    /// Records kernel parameters by value, whose address is a name.
    pub(super) fn find_byval_params(&mut self, entry: Block) {
        let (mut at, mut index) = (0, 0);
        let params = self.ir.dfg.block_params(entry);
        for object in &self.abi.params {
            if object.byval.is_some()
                && object.decl.is_some()
                && self.ir.kind == FuncKind::Kernel
                && let Some(value) = params.get(at)
                && self.ir.dfg.ty(*value) == Type::ptr(Space::Param)
            {
                self.byval_params.insert(*value, index);
            }
            at += object.leaves.len();
            index += u32::from(object.decl.is_some());
        }
    }

    /// Loads the parameters that something needs, at the start of the entry block.
    pub(super) fn load_parameters(&mut self, entry: Block) {
        let abi = std::mem::take(&mut self.abi);
        let params: Vec<Value> = self.ir.dfg.block_params(entry).to_vec();
        let (mut at, mut index) = (0, 0);
        for object in &abi.params {
            for leaf in &object.leaves {
                if let Some(value) = params.get(at).copied()
                    && self.is_assigned(value)
                {
                    self.load_leaf(object, *leaf, index, value);
                }
                at += 1;
            }
            index += u32::from(object.decl.is_some());
        }
        self.abi = abi;
    }

    fn load_leaf(&mut self, object: &Object, leaf: Leaf, index: u32, value: Value) {
        if object.byval.is_some() {
            self.byval_address(index, leaf.ty, value);
            return;
        }
        let pieces = self.pieces(object, leaf);
        let mut raw = Output::new();
        for piece in pieces.list {
            let regs: Output = (0..piece.len).map(|_| self.new_reg(RegClass::of(piece.ty))).collect();
            let mut toks: SmallVec<[Tok; 4]> = smallvec![tok::LD, tok::PARAM];
            toks.extend(vector_tok(regs.len()));
            toks.push(type_tok(piece.ty));
            let mut operands: SmallVec<[Operand; 16]> = SmallVec::new();
            push_vector(&mut operands, regs.iter().map(|r| Operand::Def(*r)));
            operands.push(Operand::Open(GroupKind::Address, 1));
            operands.push(Operand::Param(index, piece.offset as i32));
            self.emit_toks(&toks, &operands);
            raw.extend(regs);
        }
        let regs = self.received(&raw, leaf, pieces.parts);
        self.bind_value(value, &regs);
    }

    /// The accesses that carry a leaf.
    pub(super) fn pieces(&mut self, object: &Object, leaf: Leaf) -> abi::Pieces {
        let layout = self.layout(leaf.ty);
        abi::pieces(object, leaf, layout)
    }

    /// The value of a leaf out of the registers it was passed in.
    pub(super) fn received(&mut self, raw: &[VReg], leaf: Leaf, parts: u32) -> Output {
        let class = self.layout(leaf.ty).class;
        if parts > 1 {
            return self.join_parts(raw, parts, class);
        }
        raw.iter().map(|r| self.narrowed(*r, class)).collect()
    }

    /// The address of a by-value parameter's object: in a device function taking it puts the object in local memory
    /// (PTX ISA 5.1.6.4).
    fn byval_address(&mut self, index: u32, ty: Type, value: Value) {
        let space = if self.ir.kind == FuncKind::Kernel { tok::PARAM } else { tok::LOCAL };
        let named = self.new_reg(RegClass::B64);
        self.emit_toks(&[tok::MOV, tok::B64], &[Operand::Def(named), Operand::Param(index, 0)]);
        let mut out = named;
        if ty.space() == Some(Space::Generic) {
            out = self.convert_register(named, RegClass::B64, &[tok::CVTA, space, tok::U64]);
        }
        self.bind_value(value, &[out]);
    }

    /// A value of class `to` out of the register it was passed in.
    pub(super) fn narrowed(&mut self, reg: VReg, to: RegClass) -> VReg {
        let from = self.func.class(reg);
        match (from, to) {
            _ if from == to => reg,
            (RegClass::B16, RegClass::Pred) => self.low_bit(reg, tok::B16),
            (RegClass::B32, RegClass::Pred) => self.low_bit(reg, tok::B32),
            (RegClass::B32, RegClass::B16) => self.convert_register(reg, to, &[tok::CVT, tok::U16, tok::U32]),
            _ => reg,
        }
    }

    fn low_bit(&mut self, reg: VReg, suffix: Tok) -> VReg {
        let bit = self.binary_imm(&[tok::AND, suffix], reg, 1);
        let out = self.new_reg(RegClass::Pred);
        let operands = [Operand::Def(out), Operand::Use(bit), Operand::Imm(0)];
        self.emit_toks(&[tok::SETP, tok::NE, suffix], &operands);
        out
    }

    /// The operands that pass a leaf, one per register.
    pub(super) fn passed_operands(
        &mut self,
        value: Value,
        pieces: &abi::Pieces,
        extension: Extension,
    ) -> SmallVec<[Operand; 8]> {
        let Some(piece) = pieces.list.first() else { return SmallVec::new() };
        if pieces.parts > 1 {
            return self.split_value(value, pieces.parts);
        }
        let ty = self.ty(value);
        let class = RegClass::of(piece.ty);
        if ty == Type::I1 {
            if let Some(bits) = self.const_bits(value) {
                return smallvec![Operand::Imm((bits & 1) as i64)];
            }
            let reg = self.reg_of(value);
            let out = self.new_reg(class);
            let suffix = super::memory::untyped_tok(class);
            let operands = [Operand::Def(out), Operand::Imm(1), Operand::Imm(0), Operand::Use(reg)];
            self.emit_toks(&[tok::SELP, suffix], &operands);
            return smallvec![Operand::Use(out)];
        }
        if ty.is_int() && ty.bits() < 32 && class == RegClass::B32 {
            return smallvec![self.widened(value, extension)];
        }
        if self.layout(ty).count == 1 {
            return smallvec![self.bit_source(value)];
        }
        self.regs_of(value).into_iter().map(Operand::Use).collect()
    }

    /// An i8 or i16 in 32 bits.
    fn widened(&mut self, value: Value, extension: Extension) -> Operand {
        let bits = self.ty(value).bits();
        if let Some(n) = self.const_i64(value) {
            let mask = (1i64 << bits) - 1;
            return Operand::Imm(if extension == Extension::Signed { n } else { n & mask });
        }
        let reg = self.reg_of(value);
        let toks = match (extension, bits) {
            (Extension::Signed, 8) => [tok::CVT, tok::S32, tok::S8],
            (Extension::Signed, _) => [tok::CVT, tok::S32, tok::S16],
            (Extension::Zero, 8) => [tok::CVT, tok::U32, tok::U8],
            _ => [tok::CVT, tok::U32, tok::U16],
        };
        Operand::Use(self.convert_register(reg, RegClass::B32, &toks))
    }

    /// `ret`: stores the result's leaves to the return parameter.
    pub(super) fn ret(&mut self, inst: Inst) -> Terminator {
        let abi = std::mem::take(&mut self.abi);
        if let Some(object) = &abi.ret {
            for (index, leaf) in object.leaves.iter().enumerate() {
                if index >= self.ir.dfg.args(inst).len() {
                    break;
                }
                let value = self.arg(inst, index);
                self.store_result(object, *leaf, value);
            }
        }
        self.abi = abi;
        Terminator::Ret { uniform: false }
    }

    fn store_result(&mut self, object: &Object, leaf: Leaf, value: Value) {
        let pieces = self.pieces(object, leaf);
        let mut operands = self.passed_operands(value, &pieces, object.extension).into_iter();
        for piece in pieces.list {
            let group: SmallVec<[Operand; 4]> = operands.by_ref().take(usize::from(piece.len)).collect();
            let mut toks: SmallVec<[Tok; 4]> = smallvec![tok::ST, tok::PARAM];
            toks.extend(vector_tok(group.len()));
            toks.push(type_tok(piece.ty));
            let mut all: SmallVec<[Operand; 16]> = SmallVec::new();
            all.push(Operand::Open(GroupKind::Address, 1));
            all.push(Operand::RetParam(0, piece.offset as i32));
            push_vector(&mut all, group.into_iter());
            self.emit_toks(&toks, &all);
        }
    }
}
