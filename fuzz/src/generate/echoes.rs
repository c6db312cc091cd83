//! Instructions that nearly repeat earlier ones: what numbering of values and selection by patterns must tell apart.

use ptxc_ir::{Extra, Flags, FloatCC, IntCC, MemAttrs, Opcode, Shape, Value};

use super::body::Body;
use super::floats::BINARY;
use super::integers::PLAIN;

impl Body<'_> {
    /// An earlier instruction once more, with its operands exchanged, another operation, condition or none of its flags;
    /// the result is kept. False when nothing in scope can be repeated.
    pub fn echo(&mut self) -> bool {
        for _ in 0..12 {
            let at = self.rng.below(self.scope.len());
            let Some(earlier) = self.scope.get(at).copied() else { continue };
            let Some(inst) = self.b.func.dfg.def_inst(earlier) else { continue };
            let data = self.b.func.dfg.insts[inst].clone();
            let mut args: Vec<Value> = self.b.func.dfg.args(inst).to_vec();
            let exchanges = self.once_in(2);
            let value = match (data.op.shape(), data.extra) {
                // Operations that are defined for all operands, so that these may be exchanged.
                (Shape::Binary | Shape::Ternary, Extra::None) => {
                    let Some(others) = alike(data.op) else { continue };
                    if exchanges {
                        args.swap(0, 1);
                    }
                    let op = if self.once_in(3) { self.pick(others, data.op) } else { data.op };
                    self.emit(op, Flags::EMPTY, data.ty, &args, Extra::None)
                }
                // In which order objects lie is no result.
                (Shape::IntCompare, _) if data.ty.is_ptr() => continue,
                (Shape::IntCompare, Extra::IntCC(cc)) => {
                    if exchanges {
                        args.swap(0, 1);
                    }
                    let cc = if self.once_in(2) { self.pick(IntCC::ALL, cc) } else { cc };
                    self.emit(data.op, Flags::EMPTY, data.ty, &args, Extra::IntCC(cc))
                }
                (Shape::FloatCompare, Extra::FloatCC(cc)) => {
                    if exchanges {
                        args.swap(0, 1);
                    }
                    let cc = if self.once_in(2) { self.pick(FloatCC::ALL, cc) } else { cc };
                    self.emit(data.op, Flags::EMPTY, data.ty, &args, Extra::FloatCC(cc))
                }
                // What a select does not take may be poison: not exchanged.
                (Shape::Select, Extra::None) => self.emit(data.op, Flags::EMPTY, data.ty, &args, Extra::None),
                (Shape::Load, Extra::Mem(mem)) if self.loaded.contains(earlier) => {
                    // The same memory, which may have been written since.
                    let value = self.b.load(data.ty, args[0], MemAttrs::aligned(mem.align()));
                    self.loaded.insert(value);
                    value
                }
                _ => continue,
            };
            self.keep(value);
            return true;
        }
        false
    }
}

/// Operations that may stand for one.
fn alike(op: Opcode) -> Option<&'static [Opcode]> {
    [PLAIN, BINARY, &[Opcode::Fma]].into_iter().find(|list| list.contains(&op))
}
