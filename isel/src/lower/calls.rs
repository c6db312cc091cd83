//! Calls (PTX ISA 9.7.13, call): parameters are copied in and results out by one machine instruction.

use ptxc_ir::{Extra, FuncKind, Inst, MemType, Opcode, Space, Value};
use ptxc_mir::{self as mir, CallData, CallPiece, Callee, Operand, RegClass};
use ptxc_targets::{Tok, tok};
use smallvec::{SmallVec, smallvec};

use super::address::{Address, Base};
use super::memory::untyped_tok;
use super::{Lower, Output, space_tok};
use crate::abi::{self, Abi, Object};

/// The most bytes of one by-value argument: PTX's limit on parameters.
const MAX_BYVAL_BYTES: u64 = 32764;

impl Lower<'_> {
    pub(super) fn call(&mut self, inst: Inst) {
        let data = &self.ir.dfg.insts[inst];
        let module = self.env.module;
        let mut operands: Vec<Operand> = Vec::new();
        let (callee, abi, first_arg) = match data.extra {
            Extra::Call(func) => {
                let abi = abi::signature(module, &module.funcs[func].sig, FuncKind::Func);
                (Callee::Symbol(self.env.symbols.func(func)), abi, 0)
            }
            Extra::CallIndirect(sig) => {
                let abi = abi::signature(module, &self.ir.dfg.signatures[sig], FuncKind::Func);
                if let Some(message) = abi.refusal() {
                    self.error(inst, message);
                }
                let proto = self.prototype(&abi);
                let pointer = self.arg(inst, 0);
                operands.push(Operand::Use(self.reg_of(pointer)));
                (Callee::Indirect(proto), abi, 1)
            }
            _ => return,
        };
        debug_assert!(matches!(data.op, Opcode::Call | Opcode::CallIndirect));
        let mut call = CallData {
            callee,
            params: Vec::new(),
            returns: Vec::new(),
            args: Vec::new(),
            rets: Vec::new(),
            uniform: false,
        };
        self.pass_arguments(inst, &abi, first_arg, &mut call, &mut operands);
        let loaded = self.receive_results(&abi, &mut call, &mut operands);
        let id = self.func.calls.push(call);
        self.emit_op(mir::Op::Call(id), &operands);
        self.bind_results(inst, &abi, &loaded);
    }

    /// The prototype of an indirect call, numbered within the function.
    fn prototype(&mut self, abi: &Abi) -> mir::ProtoId {
        let signature = abi.signature(false);
        let at = self.prototypes.iter().position(|s| *s == signature).unwrap_or_else(|| {
            self.prototypes.push(signature);
            self.prototypes.len() - 1
        });
        mir::ProtoId::from_u32(at as u32)
    }

    fn pass_arguments(
        &mut self,
        inst: Inst,
        abi: &Abi,
        first_arg: usize,
        call: &mut CallData,
        operands: &mut Vec<Operand>,
    ) {
        let mut at = first_arg;
        for object in &abi.params {
            let param = call.params.len() as u32;
            for leaf in &object.leaves {
                if at >= self.ir.dfg.args(inst).len() {
                    break;
                }
                let value = self.arg(inst, at);
                at += 1;
                if let Some(ty) = object.byval {
                    self.pass_by_value(inst, ty, object, value, param, call, operands);
                    continue;
                }
                let pieces = self.pieces(object, *leaf);
                operands.extend(self.passed_operands(value, &pieces, object.extension));
                call.args.extend(pieces.list.iter().map(|p| CallPiece {
                    param,
                    offset: p.offset,
                    ty: p.ty,
                    len: p.len,
                }));
            }
            call.params.extend(object.decl.clone());
        }
    }

    /// Copies the object behind a pointer into the parameter.
    #[allow(clippy::too_many_arguments)]
    fn pass_by_value(
        &mut self,
        inst: Inst,
        ty: MemType,
        object: &Object,
        ptr: Value,
        param: u32,
        call: &mut CallData,
        operands: &mut Vec<Operand>,
    ) {
        let size = self.env.module.layout_of(ty).size;
        if size > MAX_BYVAL_BYTES {
            self.error(inst, format!("an argument of {size} bytes is more than a parameter can hold"));
            return;
        }
        let align = object.decl.as_ref().map_or(1, |d| u64::from(d.align)).min(self.env.module.layout_of(ty).align);
        let mut address = self.address(ptr);
        // An operand's offset has 32 bits.
        if i32::try_from(address.offset.saturating_add_unsigned(size)).is_err() {
            let space = self.ty(ptr).space().unwrap_or(Space::Generic);
            address = Address { base: Base::Value(ptr), offset: 0, space };
        }
        let mut at = 0u64;
        while at < size {
            let width = [8u64, 4, 2, 1].into_iter().find(|w| *w <= align && at + w <= size).unwrap_or(1);
            let class = RegClass::for_bits((width * 8) as u32).unwrap_or(RegClass::B16);
            let reg = self.load_chunk(address, at as i64, width, class);
            operands.push(Operand::Use(reg));
            let ty = mir::untyped(width as u32).unwrap_or(ptxc_targets::RegType::B8);
            call.args.push(CallPiece { param, offset: at as u32, ty, len: 1 });
            at += width;
        }
    }

    fn load_chunk(&mut self, mut address: Address, at: i64, width: u64, class: RegClass) -> mir::VReg {
        let reg = self.new_reg(class);
        address.offset += at;
        let mut toks: SmallVec<[Tok; 3]> = smallvec![tok::LD];
        toks.extend(space_tok(address.space).filter(|_| address.space != Space::Tensor));
        toks.push(if width == 1 { tok::B8 } else { untyped_tok(class) });
        let mut operands: SmallVec<[Operand; 16]> = smallvec![Operand::Def(reg)];
        self.bracketed(address, &mut operands);
        self.emit_toks(&toks, &operands);
        reg
    }

    /// Registers that the result's leaves are loaded into.
    fn receive_results(&mut self, abi: &Abi, call: &mut CallData, operands: &mut Vec<Operand>) -> Vec<Output> {
        let mut loaded = Vec::new();
        let Some(object) = &abi.ret else { return loaded };
        for leaf in &object.leaves {
            let mut regs = Output::new();
            for piece in self.pieces(object, *leaf).list {
                for _ in 0..piece.len {
                    regs.push(self.new_reg(RegClass::of(piece.ty)));
                }
                call.rets.push(CallPiece { param: 0, offset: piece.offset, ty: piece.ty, len: piece.len });
            }
            operands.extend(regs.iter().map(|r| Operand::Def(*r)));
            loaded.push(regs);
        }
        call.returns.extend(object.decl.clone());
        loaded
    }

    fn bind_results(&mut self, inst: Inst, abi: &Abi, loaded: &[Output]) {
        let Some(object) = &abi.ret else { return };
        let results: SmallVec<[Value; 4]> = self.ir.dfg.results(inst).collect();
        for ((leaf, regs), value) in object.leaves.iter().zip(loaded).zip(results) {
            if !self.is_assigned(value) {
                continue;
            }
            let parts = self.pieces(object, *leaf).parts;
            let regs = self.received(regs, *leaf, parts);
            self.bind_value(value, &regs);
        }
    }
}
