//! Prints operands of the flat prefix encoding.

use crate::names::Names;
use crate::text::Text;
use cranelift_entity::SecondaryMap;
use ptxc_mir::operand::top_level;
use ptxc_mir::{Block, Function, GroupKind, Operand, RegClass, VReg};

/// Groups nest at most this deep in what selection builds.
const MAX_DEPTH: u32 = 8;

/// What the operands of one function are called.
pub(crate) struct FunctionNames<'a> {
    /// Symbols.
    pub names: &'a Names,
    /// Index of the function, part of labels.
    pub index: usize,
    /// Names of its parameters.
    pub params: Vec<String>,
    /// Names of its results.
    pub results: Vec<String>,
    /// Class and number within the class, from 1, of each register.
    pub registers: SecondaryMap<VReg, (Option<RegClass>, u32)>,
    /// Number of registers in each class.
    pub counts: [u32; RegClass::ALL.len()],
}

impl<'a> FunctionNames<'a> {
    /// Numbers registers densely within their class.
    pub fn number(func: &Function, names: &'a Names, index: usize) -> FunctionNames<'a> {
        let mut registers = SecondaryMap::with_capacity(func.vregs.len());
        let mut counts = [0u32; RegClass::ALL.len()];
        for (vreg, &class) in func.vregs.iter() {
            counts[class as usize] += 1;
            registers[vreg] = (Some(class), counts[class as usize]);
        }
        FunctionNames { names, index, params: Vec::new(), results: Vec::new(), registers, counts }
    }

    pub fn register(&self, text: &mut Text, vreg: VReg) {
        let (class, number) = self.registers[vreg];
        text.push(class.map_or("%undeclared", RegClass::prefix));
        text.unsigned(u64::from(number));
    }

    pub fn label(&self, text: &mut Text, block: Block) {
        text.push("$L__BB");
        text.unsigned(self.index as u64);
        text.char('_');
        text.unsigned(u64::from(block.as_u32()));
    }

    pub fn depot(&self, text: &mut Text) {
        text.push("__local_depot");
        text.unsigned(self.index as u64);
    }

    /// ` a, b, c` for all top-level operands, nothing when there are none.
    pub fn operands(&self, text: &mut Text, operands: &[Operand]) {
        for (i, slots) in top_level(operands).enumerate() {
            text.push(if i > 0 { ", " } else { " " });
            self.operand(text, slots, 0);
        }
    }

    /// [`FunctionNames::operands`] with `.unified` behind addresses.
    pub fn unified_operands(&self, text: &mut Text, operands: &[Operand]) {
        for (i, slots) in top_level(operands).enumerate() {
            text.push(if i > 0 { ", " } else { " " });
            self.operand(text, slots, 0);
            if let Some(Operand::Open(GroupKind::Address, _)) = slots.first() {
                text.push(".unified");
            }
        }
    }

    /// One operand with its group and offsets.
    pub fn operand(&self, text: &mut Text, slots: &[Operand], depth: u32) {
        let Some((&first, mut rest)) = slots.split_first() else {
            return;
        };
        match first {
            Operand::Open(kind, n) => {
                let (inside, after) = rest.split_at(usize::from(n).min(rest.len()));
                rest = after;
                self.group(text, kind, inside, depth);
            }
            single => self.single(text, single),
        }
        for &slot in rest {
            if !slot.is_element() {
                self.single(text, slot);
            }
        }
    }

    fn single(&self, text: &mut Text, operand: Operand) {
        match operand {
            // After register assignment both registers of a tie are one.
            Operand::Def(v) | Operand::Use(v) | Operand::DefUse { def: v, .. } => self.register(text, v),
            Operand::UseNot(v) => {
                text.char('!');
                self.register(text, v);
            }
            Operand::UseMinus(v) => {
                text.char('-');
                self.register(text, v);
            }
            Operand::Imm(n) => text.signed(n),
            Operand::F32(bits) => {
                text.push("0f");
                text.hex(u64::from(bits), 8);
            }
            Operand::F64(bits) => {
                text.push("0d");
                text.hex(bits, 16);
            }
            Operand::Sink => text.char('_'),
            Operand::Sym(symbol, offset) => {
                text.push(self.names.get(symbol));
                text.offset(i64::from(offset));
            }
            Operand::Param(i, offset) => {
                text.push(self.params.get(i as usize).map_or("%undeclared_param", String::as_str));
                text.offset(i64::from(offset));
            }
            Operand::RetParam(i, offset) => {
                text.push(self.results.get(i as usize).map_or("%undeclared_result", String::as_str));
                text.offset(i64::from(offset));
            }
            Operand::Depot(offset) => {
                self.depot(text);
                text.offset(i64::from(offset));
            }
            Operand::SReg(register) => text.push(register.name()),
            Operand::Label(block) => self.label(text, block),
            Operand::Offset(n) => text.offset(n),
            Operand::Lanes(lanes) => {
                text.char('.');
                text.push(lanes.text());
            }
            Operand::Open(..) => {}
        }
    }

    fn group(&self, text: &mut Text, kind: GroupKind, inside: &[Operand], depth: u32) {
        if depth > MAX_DEPTH {
            return;
        }
        let (open, between, close) = match kind {
            GroupKind::Vector => ("{", ", ", "}"),
            GroupKind::Address => ("[", ", ", "]"),
            GroupKind::Pair => ("", "|", ""),
            GroupKind::Paren => ("(", ", ", ")"),
        };
        text.push(open);
        for (i, slots) in top_level(inside).enumerate() {
            text.push(if i > 0 { between } else { "" });
            self.operand(text, slots, depth + 1);
        }
        text.push(close);
    }
}
