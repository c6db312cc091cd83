//! The pass over legal types that replaces operations the target lacks.
//!
//! What an expansion emits is visited again until everything is legal: each expansion names simpler or wider operations,
//! so that chains of expansions are short. A limit on the number of rewrites turns a cycle, which would be a bug here,
//! into an error.

use ptxc_ir::{Block, Extra, FloatCC, Inst, Opcode, Shape, Type};

use super::context::Context;

/// Expansions that one instruction of the input may cause.
const REWRITES_PER_INSTRUCTION: usize = 256;

/// The masks of `fclass` that `testp` answers (PTX ISA 9.7.3.2): finite, infinite, number, not a number,
/// normal or zero, subnormal.
const TESTP_MASKS: [u64; 6] = [0x1f8, 0x204, 0x3fc, 0x003, 0x168, 0x090];

impl Context<'_> {
    /// Visits every instruction of these blocks.
    pub fn legalize_operations(&mut self) {
        let blocks: Vec<Block> = self.func.layout.blocks().collect();
        let mut left = REWRITES_PER_INSTRUCTION.saturating_mul(self.func.dfg.insts.len().max(64));
        for block in blocks {
            self.extensions.clear();
            let mut next = self.func.layout.first_inst(block);
            while let Some(inst) = next {
                if self.is_operation_legal(inst) {
                    next = self.func.layout.next_inst(inst);
                    continue;
                }
                if left == 0 {
                    self.current = Some(inst);
                    self.error("internal: legalization does not come to an end");
                    return;
                }
                left -= 1;
                let before = self.func.layout.prev_inst(inst);
                self.rewrite_at(inst);
                self.expand_operation(inst);
                next = match before {
                    Some(before) => self.func.layout.next_inst(before),
                    None => self.func.layout.first_inst(block),
                };
            }
        }
        self.current = None;
    }

    fn is_operation_legal(&self, inst: Inst) -> bool {
        let data = &self.func.dfg.insts[inst];
        let ty = data.ty;
        match data.op.shape() {
            Shape::Unary | Shape::Binary | Shape::Ternary => {
                if data.op == Opcode::Freeze {
                    return true;
                }
                if ty.is_float_like() {
                    return self.is_float_op_kept(inst);
                }
                ty == Type::I1 || ty.is_vector() || self.features.int_op(data.op, ty.bits())
            }
            Shape::BinaryOverflow => false,
            Shape::FloatClass => {
                matches!(ty, Type::F32 | Type::F64)
                    && matches!(data.extra, Extra::Imm(mask) if TESTP_MASKS.contains(&mask))
            }
            Shape::FloatCompare => {
                !matches!(data.extra, Extra::FloatCC(FloatCC::True | FloatCC::False))
                    && self.features.float_op(data.op, data.flags, ty)
            }
            Shape::Convert => self.is_conversion_legal(inst),
            Shape::Elect => self.features.elect,
            Shape::Predicate => data.op != Opcode::Assume,
            _ => true,
        }
    }

    fn expand_operation(&mut self, inst: Inst) {
        let data = self.func.dfg.insts[inst].clone();
        match data.op.shape() {
            Shape::BinaryOverflow => self.expand_overflow(inst),
            Shape::FloatClass => self.expand_float_class(inst),
            Shape::FloatCompare => self.expand_float_compare(inst),
            Shape::Convert => self.expand_conversion(inst),
            Shape::Elect => self.elect_lowest(inst),
            Shape::Predicate => self.func.layout.remove_inst(inst),
            _ if data.ty.is_float_like() => self.expand_float(inst),
            _ => self.expand_integer(inst),
        }
    }
}
