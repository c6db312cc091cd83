//! Changes to a whole module that the options of LLVM's `llc` ask for.

use cranelift_entity::packed_option::PackedOption;

use crate::model::{
    Attribute, AttributeValue, AttributesId, BinaryOp, Call, Constant, Flags, GlobalKind, Instruction, Module,
    OperandKind, Type,
};

/// Whether multiplications and additions are fused without flags of their own.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Contraction {
    /// As the instructions say.
    #[default]
    AsWritten,
    /// Everywhere.
    Always,
    /// Nowhere.
    Never,
}

/// What to change.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Adjustments {
    /// Fused multiply-add.
    pub contraction: Contraction,
    /// Reassociation, approximations and no signed zeros for all float instructions.
    pub unsafe_math: bool,
    /// `float` divisions may be approximate.
    pub approximate_division: bool,
    /// `float` square roots may be approximate.
    pub approximate_square_root: bool,
    /// Subnormal `float` numbers become zero.
    pub flush_subnormals: bool,
}

impl Adjustments {
    /// Changes the module.
    pub fn apply(&self, module: &mut Module) {
        if *self == Adjustments::default() {
            return;
        }
        let mut added = Vec::new();
        if self.flush_subnormals {
            added.push(text_attribute(module, "denormal-fp-math-f32", "preserve-sign,preserve-sign"));
        }
        if self.unsafe_math {
            added.push(text_attribute(module, "unsafe-fp-math", "true"));
        }
        let float = module.types.intern(Type::Float);
        let root = module.names.find(b"llvm.sqrt.f32").and_then(|name| module.find_global(name));
        for global in module.globals.values_mut() {
            let GlobalKind::Function(function) = &mut global.kind else { continue };
            if !added.is_empty() {
                function.attributes = with_attributes(&mut module.attributes, function.attributes, &added);
            }
            let Some(body) = &mut function.body else { continue };
            let values = &body.values;
            for data in body.instructions.values_mut() {
                let single = data.result.expand().is_some_and(|result| module.types.scalar(values[result].ty) == float);
                self.instruction(&mut data.instruction, single);
            }
            for call in body.calls.values_mut() {
                let constants = &module.constants;
                let is_root = |call: &Call| match call.callee.kind() {
                    OperandKind::Constant(id) => matches!(constants.get(id), Constant::Global(id) if Some(id) == root),
                    _ => false,
                };
                if self.approximate_square_root && is_root(call) {
                    call.flags = call.flags.with(Flags::AFN);
                }
            }
        }
    }

    fn instruction(&self, instruction: &mut Instruction, single: bool) {
        let (op, flags) = match instruction {
            Instruction::Binary { op, flags, .. } => (Some(*op), flags),
            Instruction::Negate { flags, .. } => (None, flags),
            _ => return,
        };
        let float = match op {
            None => true,
            Some(op) => {
                matches!(op, BinaryOp::FAdd | BinaryOp::FSub | BinaryOp::FMul | BinaryOp::FDiv | BinaryOp::FRem)
            }
        };
        if !float {
            return;
        }
        match self.contraction {
            Contraction::AsWritten => {}
            Contraction::Always => *flags = flags.with(Flags::CONTRACT),
            Contraction::Never => *flags = Flags(flags.0 & !Flags::CONTRACT.0),
        }
        if self.approximate_division && single && op == Some(BinaryOp::FDiv) {
            *flags = flags.with(Flags::AFN);
        }
    }
}

fn text_attribute(module: &mut Module, name: &str, value: &str) -> Attribute {
    let name = module.names.intern(name.as_bytes());
    let value = module.names.intern(value.as_bytes());
    Attribute { name, value: AttributeValue::Text(value) }
}

/// The attributes with more for the function.
fn with_attributes(
    table: &mut crate::model::AttributeTable,
    attributes: PackedOption<AttributesId>,
    added: &[Attribute],
) -> PackedOption<AttributesId> {
    let set = table.intern_set(added);
    let known = attributes.expand().map(|id| table.get(id)).unwrap_or_default();
    // The first of two attributes of one name counts.
    let mut sets = vec![set];
    sets.extend_from_slice(table.sets(known.function));
    let params = table.params(known.params).to_vec();
    Some(table.attributes(&sets, known.result, &params)).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "define float @f(float %a, i32 %b) {\n  %q = fdiv float %a, %a\n  %s = add i32 %b, %b\n  \
                          %r = call float @llvm.sqrt.f32(float %q)\n  ret float %r\n}\n\
                          declare float @llvm.sqrt.f32(float)\n";

    fn adjusted(adjustments: Adjustments) -> Module {
        let mut module = Module::new();
        crate::text::read(SOURCE.as_bytes(), &mut module).unwrap();
        adjustments.apply(&mut module);
        module
    }

    fn flags(module: &Module) -> (Flags, Flags, Flags) {
        let body = module.globals[module.order[0]].function().unwrap().body.as_ref().unwrap();
        let of = |index: usize| match body.instructions.values().nth(index).unwrap().instruction {
            Instruction::Binary { flags, .. } => flags,
            Instruction::Call(call) => body.calls[call].flags,
            _ => panic!("another instruction"),
        };
        (of(0), of(1), of(2))
    }

    #[test]
    fn flags_reach_their_instructions_only() {
        let none = (Flags::NONE, Flags::NONE, Flags::NONE);
        assert_eq!(flags(&adjusted(Adjustments::default())), none);
        let contract = Adjustments { contraction: Contraction::Always, ..Adjustments::default() };
        assert_eq!(flags(&adjusted(contract)), (Flags::CONTRACT, Flags::NONE, Flags::NONE));
        let approximate =
            Adjustments { approximate_division: true, approximate_square_root: true, ..Adjustments::default() };
        assert_eq!(flags(&adjusted(approximate)), (Flags::AFN, Flags::NONE, Flags::AFN));
    }

    #[test]
    fn flushing_is_an_attribute_of_functions() {
        let module = adjusted(Adjustments { flush_subnormals: true, ..Adjustments::default() });
        let function = module.globals[module.order[0]].function().unwrap();
        let attribute = module.attributes.function(function.attributes).next().unwrap();
        assert_eq!(module.names.text(attribute.name), "denormal-fp-math-f32");
    }
}
