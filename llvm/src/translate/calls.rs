//! Calls of functions; assembly and intrinsics are elsewhere.

use ptxc_ir::{Extra, Flags, FuncId, Opcode, Signature, Value};

use super::body::Writer;
use super::{Fault, Result, Symbol};
use crate::model::{Call, CallId, Constant, GlobalId, GlobalKind, InstId, Operand, TypeId, ValueId};

impl Writer<'_, '_> {
    /// `call`.
    pub fn call(&mut self, inst: InstId, call: CallId, result: Option<ValueId>) -> Result<()> {
        let call = self.body.calls[call];
        let source = self.cx.source;
        if let Some(constant) = call.callee.constant() {
            match source.constants.get(constant) {
                Constant::Assembly(assembly) => {
                    return self.assembly(source.constants.assembly[assembly], call, result);
                }
                Constant::Global(_) if self.reflects(call.callee) => return self.reflect(call, result),
                Constant::Global(global) => {
                    if let (GlobalKind::Function(_), Some(name)) =
                        (&source.globals[global].kind, source.globals[global].name)
                        && source.names.bytes(name).starts_with(b"llvm.")
                    {
                        return self.intrinsic(inst, global, call, result);
                    }
                    if let (Symbol::Function(func), true) =
                        (self.cx.symbols[global], source.globals[global].ty.expand() == Some(call.ty))
                    {
                        return self.direct_call(global, func, call, result);
                    }
                }
                _ => {}
            }
            if let Some(address) = self.cx.address(constant, 0)?
                && let Symbol::Function(func) = address.symbol
                && address.offset == 0
                && let Some(global) = self.source_of(func, call.ty)
            {
                return self.direct_call(global, func, call, result);
            }
        }
        self.indirect_call(call, result)
    }

    /// The symbol of a function, if it has that type.
    fn source_of(&self, func: FuncId, ty: TypeId) -> Option<GlobalId> {
        let source = self.cx.source;
        let is = |id: &GlobalId| self.cx.symbols[*id] == Symbol::Function(func);
        source.order.iter().copied().find(is).filter(|id| source.globals[*id].ty.expand() == Some(ty))
    }

    fn has_word(
        &self,
        attributes: cranelift_entity::packed_option::PackedOption<crate::model::AttributesId>,
        word: &[u8],
    ) -> bool {
        let source = self.cx.source;
        source.attributes.function(attributes).any(|attribute| source.names.bytes(attribute.name) == word)
    }

    fn direct_call(&mut self, global: GlobalId, func: FuncId, call: Call, result: Option<ValueId>) -> Result<()> {
        let source = self.cx.source;
        let callee = source.globals[global].function();
        let convergent = self.has_word(call.attributes, b"convergent")
            || callee.is_some_and(|callee| self.has_word(callee.attributes, b"convergent"));
        let sig = self.cx.module.funcs[func].sig.clone();
        let arguments = self.arguments_for(&sig, call)?;
        let results = self.cx.module.sig_results(&sig);
        let flags = if convergent { Flags::EMPTY } else { Flags::NONCONVERGENT };
        let none = ptxc_ir::Type::INVALID;
        let made = self.b.inst_with_results(Opcode::Call, flags, none, &arguments, Extra::Call(func), &results);
        self.call_results(made, result)
    }

    fn indirect_call(&mut self, call: Call, result: Option<ValueId>) -> Result<()> {
        let source = self.cx.source;
        let Some((returns, params, variadic)) = source.types.signature(call.ty) else {
            return Err(Fault::new("a call has no function type"));
        };
        let mut sig = Signature { params: Vec::with_capacity(params.len()), ret: self.cx.result_type(returns)? };
        for (index, ty) in params.iter().enumerate() {
            let attributes = source.attributes.param(call.attributes, index);
            sig.params.push(self.cx.param(*ty, attributes, false)?);
        }
        if variadic {
            sig.params.push(super::Context::further_parameters());
        }
        let callee = self.value(call.callee)?;
        let arguments = self.arguments_for(&sig, call)?;
        let results = self.cx.module.sig_results(&sig);
        let mut all: Vec<Value> = vec![callee];
        all.extend(arguments);
        let sig = self.b.func.dfg.signatures.push(sig);
        let convergent = self.has_word(call.attributes, b"convergent");
        let flags = if convergent { Flags::EMPTY } else { Flags::NONCONVERGENT };
        let none = ptxc_ir::Type::INVALID;
        let extra = Extra::CallIndirect(sig);
        let made = self.b.inst_with_results(Opcode::CallIndirect, flags, none, &all, extra, &results);
        self.call_results(made, result)
    }

    /// The values that a call of this signature passes.
    fn arguments_for(&mut self, sig: &Signature, call: Call) -> Result<Vec<Value>> {
        let types = self.cx.module.sig_params(sig);
        let mut out = Vec::with_capacity(types.len());
        let mut operands: &[Operand] = self.body.operands(call.arguments);
        let variadic = self.cx.source.types.signature(call.ty).is_some_and(|(.., variadic)| variadic);
        let mut further = None;
        if let (true, Some(fixed)) = (variadic, sig.params.len().checked_sub(1))
            && operands.len() >= fixed
        {
            further = Some(self.pack_arguments(call, fixed)?);
            operands = &operands[..fixed];
        }
        if operands.len() + usize::from(further.is_some()) != sig.params.len() {
            return Err(Fault::new(format!(
                "a call passes {} arguments to a function that takes {}",
                operands.len(),
                sig.params.len()
            )));
        }
        for operand in operands {
            let run = self.exact_parts(*operand)?;
            out.extend_from_slice(&self.parts[run.range()]);
        }
        out.extend(further);
        if out.len() != types.len() {
            return Err(Fault::new("the arguments of a call do not have the types of the parameters"));
        }
        for (value, ty) in out.iter_mut().zip(types) {
            *value = self.send(*value, ty);
        }
        Ok(out)
    }

    fn call_results(&mut self, made: ptxc_ir::Inst, result: Option<ValueId>) -> Result<()> {
        let Some(result) = result else { return Ok(()) };
        let given: Vec<Value> = self.b.func.dfg.results(made).collect();
        let shape = self.cx.shape(self.body.values[result].ty)?;
        let mut parts = Vec::with_capacity(given.len());
        for (value, part) in given.into_iter().zip(&shape.parts) {
            parts.push(self.receive(value, part.ty));
        }
        self.define(result, &parts);
        Ok(())
    }
}
