//! Functions: signatures and attributes.

use ptxc_ir::{
    FuncAttrs, FuncKind, Function as IrFunction, Linkage as IrLinkage, MemType, Param, ParamAttrs, Signature, Space,
    Type as IrType,
};

use super::{Context, Fault, Result, Symbol};
use crate::model::{Attribute, AttributeValue, CallingConvention, Function, Global, GlobalId, Linkage, Type, TypeId};

/// Two bits for each kind of memory in LLVM's `memory(…)`; the upper one says that it is written.
const WRITES: u64 = 0xaaaa_aaaa_aaaa_aaaa;

impl Context<'_> {
    /// Declares a function; intrinsics are none.
    pub fn declare_function(&mut self, id: GlobalId, global: &Global, function: &Function) -> Result<()> {
        let name = self.symbol_name(id, global);
        let answered = function.body.is_none() && super::reflect::REFLECT.contains(&name.as_bytes());
        if name.starts_with("llvm.") || answered {
            return Ok(());
        }
        let Some(ty) = global.ty.expand() else { return Err(Fault::new("a function has no type")) };
        let kernel = self.is_kernel(id, function);
        let sig = self.signature(id, ty, function, kernel)?;
        let linkage = match super::globals::linkage(global) {
            // Every module that uses such a function has one of its own that is equal, so this one need not be seen from
            // outside, and calls of it may be inlined.
            IrLinkage::Weak if global.linkage == Linkage::LinkOnceOdr && !kernel => IrLinkage::Internal,
            linkage => linkage,
        };
        let attrs = self.function_attributes(id, global.at, function, kernel, linkage == IrLinkage::Extern);
        let kind = if kernel { FuncKind::Kernel } else { FuncKind::Func };
        let made = IrFunction { linkage, attrs, ..IrFunction::new(name, kind, sig) };
        let made = self.module.add_func(made).map_err(|_| Fault::new("two symbols have one name"))?;
        self.symbols[id] = Symbol::Function(made);
        self.spans.set_func(made, global.at as usize..global.at as usize + 1);
        Ok(())
    }

    /// Whether the host starts the function.
    pub fn is_kernel(&self, id: GlobalId, function: &Function) -> bool {
        function.convention.is_kernel()
            || (function.convention != CallingConvention::PTX_DEVICE && self.annotations.has(id, "kernel"))
            || self.has_attribute(function, "nvvm.kernel")
    }

    fn has_attribute(&self, function: &Function, name: &str) -> bool {
        self.attribute(function, name).is_some()
    }

    fn attribute(&self, function: &Function, name: &str) -> Option<AttributeValue> {
        let name = self.source.names.find(name.as_bytes())?;
        let mut all = self.source.attributes.function(function.attributes);
        all.find(|attribute| attribute.name == name).map(|attribute| attribute.value)
    }

    fn signature(&mut self, id: GlobalId, ty: TypeId, function: &Function, kernel: bool) -> Result<Signature> {
        let source = self.source;
        let Some((result, params, variadic)) = source.types.signature(ty) else {
            return Err(Fault::new("a function has no function type"));
        };
        // What a kernel returns reaches nobody.
        let ret = if kernel { None } else { self.result_type(result)? };
        let mut out = Signature { params: Vec::with_capacity(params.len()), ret };
        for (index, ty) in params.iter().enumerate() {
            let attributes = source.attributes.param(function.attributes, index);
            let mut param = self.param(*ty, attributes, kernel)?;
            param.attrs.grid_constant |= kernel && self.annotations.is_grid_constant(id, index);
            if kernel {
                // Elsewhere two parameters may be what the caller's aliases are.
                param.attrs.grid_constant &= param.attrs.byval.is_some();
            }
            out.params.push(param);
        }
        if variadic {
            out.params.push(Self::further_parameters());
        }
        Ok(out)
    }

    /// The parameter in place of `...`: a pointer to the further arguments.
    pub fn further_parameters() -> Param {
        Param { ty: IrType::PTR.into(), attrs: ParamAttrs::default() }
    }

    /// The type that a function of that result type returns.
    pub fn result_type(&mut self, ty: TypeId) -> Result<Option<MemType>> {
        match self.source.types.get(ty) {
            Type::Void | Type::Token => Ok(None),
            _ => self.passed_type(ty).map(Some),
        }
    }

    /// The type that a parameter or result is passed as.
    fn passed_type(&mut self, ty: TypeId) -> Result<MemType> {
        match self.natural(ty, false, 0)? {
            Some(ty) => Ok(ty),
            None => {
                Err(self.value_type(ty).err().unwrap_or_else(|| Fault::new("a type cannot be passed to functions")))
            }
        }
    }

    /// A parameter of that type with these attributes.
    pub fn param(&mut self, ty: TypeId, attributes: &[Attribute], kernel: bool) -> Result<Param> {
        let mut param = Param { ty: self.passed_type(ty)?, attrs: ParamAttrs::default() };
        let source = self.source;
        let mut object = None;
        for attribute in attributes {
            let attrs = &mut param.attrs;
            match (source.names.bytes(attribute.name), attribute.value) {
                (b"noalias", _) => attrs.noalias = true,
                (b"readonly" | b"readnone", _) => attrs.readonly = true,
                (b"writeonly", _) => attrs.writeonly = true,
                (b"nonnull", _) => attrs.nonnull = true,
                (b"signext", _) => attrs.signext = true,
                (b"zeroext", _) => attrs.zeroext = true,
                (b"nvvm.grid_constant", _) => attrs.grid_constant = kernel,
                (b"align" | b"alignstack", AttributeValue::Number(bytes)) => {
                    attrs.align = attrs.align.max(u32::try_from(bytes).unwrap_or(0));
                }
                (b"byval", AttributeValue::Type(ty)) => object = Some(ty),
                _ => {}
            }
        }
        let pointer = matches!(param.ty, MemType::Value(ty) if ty.is_ptr());
        if let (Some(object), true) = (object, pointer) {
            param.attrs.byval = Some(self.mem_type(object)?);
            let natural = self.layout.of(self.source, object)?.align;
            param.attrs.align = param.attrs.align.max(u32::try_from(natural).unwrap_or(16));
            param.ty = IrType::ptr(if kernel { Space::Param } else { Space::Generic }).into();
        } else if kernel && self.kernel_pointers_are_global && param.ty == MemType::Value(IrType::PTR) {
            param.ty = IrType::ptr(Space::Global).into();
        }
        if !pointer {
            let attrs = &mut param.attrs;
            (attrs.noalias, attrs.readonly, attrs.writeonly, attrs.nonnull) = (false, false, false, false);
            attrs.align = 0;
        }
        // Wider integers fill their register, odd ones are extended by whoever uses them.
        let int = matches!(param.ty, MemType::Value(ty) if ty.is_int() && matches!(ty.bits(), 1..=8 | 16));
        param.attrs.signext &= int;
        param.attrs.zeroext &= int && !param.attrs.signext;
        if param.attrs.readonly && param.attrs.writeonly {
            (param.attrs.readonly, param.attrs.writeonly) = (true, false);
        }
        Ok(param)
    }

    fn function_attributes(
        &mut self,
        id: GlobalId,
        at: u32,
        function: &Function,
        kernel: bool,
        elsewhere: bool,
    ) -> FuncAttrs {
        let mut attrs = FuncAttrs::default();
        let mut convergent = false;
        let source = self.source;
        for attribute in source.attributes.function(function.attributes) {
            match (source.names.bytes(attribute.name), attribute.value) {
                (b"noreturn", _) => attrs.noreturn = true,
                (b"noinline", _) => attrs.noinline = true,
                (b"alwaysinline", _) => attrs.alwaysinline = true,
                (b"convergent", _) => convergent = true,
                (b"readnone", _) => attrs.readnone = true,
                (b"readonly", _) => attrs.readonly = true,
                (b"memory", AttributeValue::Number(0)) => attrs.readnone = true,
                (b"memory", AttributeValue::Number(bits)) if bits & WRITES == 0 => attrs.readonly = true,
                _ => {}
            }
        }
        attrs.noinline &= !attrs.alwaysinline;
        attrs.readonly &= !attrs.readnone;
        attrs.nonconvergent = !convergent;
        if !elsewhere {
            // What is known of a body is seen in it.
            (attrs.readnone, attrs.readonly, attrs.nonconvergent) = (false, false, false);
        }
        if kernel {
            self.launch_bounds(id, at, function, &mut attrs);
        }
        attrs
    }

    /// The numbers of a function attribute `"x,y,z"` or `"n"`.
    fn numbers(&self, function: &Function, name: &str) -> Option<Vec<u32>> {
        let numbers = match self.attribute(function, name)? {
            AttributeValue::Text(text) => {
                let text = self.text(text);
                text.split(',').filter_map(|number| number.trim().parse().ok()).collect()
            }
            AttributeValue::Number(number) => vec![u32::try_from(number).ok()?],
            _ => return None,
        };
        Some(numbers)
    }

    /// Three dimensions from a function attribute, or from three annotations.
    fn dimensions(&self, id: GlobalId, function: &Function, name: &str, keys: [&str; 3]) -> Option<[u32; 3]> {
        let written = self.numbers(function, name).filter(|list| !list.is_empty());
        let annotated = || {
            let all = keys.map(|key| self.annotations.number(id, key).and_then(|n| u32::try_from(n).ok()));
            all.iter().any(Option::is_some).then(|| all.iter().map(|n| n.unwrap_or(1)).collect())
        };
        let list: Vec<u32> = written.or_else(annotated)?;
        Some([0, 1, 2].map(|at| list.get(at).copied().unwrap_or(1)))
    }

    fn single(&self, id: GlobalId, function: &Function, name: &str, keys: &[&str]) -> Option<u32> {
        let written = self.numbers(function, name).and_then(|list| list.first().copied());
        written.or_else(|| keys.iter().find_map(|key| u32::try_from(self.annotations.number(id, key)?).ok()))
    }

    /// Launch bounds; those that PTX does not take are dropped with a warning.
    fn launch_bounds(&mut self, id: GlobalId, at: u32, function: &Function, attrs: &mut FuncAttrs) {
        let mut dropped = Vec::new();
        let mut block = |bounds: Option<[u32; 3]>, name: &'static str| {
            let product = bounds.map(|b| b.iter().fold(1u64, |all, n| all.saturating_mul(u64::from(*n))));
            let fits = product.is_none_or(|threads| (1..=1024).contains(&threads));
            if !fits {
                dropped.push(name);
            }
            bounds.filter(|_| fits)
        };
        attrs.reqntid =
            block(self.dimensions(id, function, "nvvm.reqntid", ["reqntidx", "reqntidy", "reqntidz"]), "reqntid");
        attrs.maxntid =
            block(self.dimensions(id, function, "nvvm.maxntid", ["maxntidx", "maxntidy", "maxntidz"]), "maxntid");
        if attrs.reqntid.is_some() {
            attrs.maxntid = None;
        }
        let least = self.single(id, function, "nvvm.minctasm", &["minctasm", "minnctapersm"]).filter(|n| *n > 0);
        attrs.minnctapersm = least.filter(|_| attrs.reqntid.is_some() || attrs.maxntid.is_some());
        attrs.maxnreg = self.single(id, function, "nvvm.maxnreg", &["maxnreg"]).filter(|n| (1..=255).contains(n));
        if self.options.clusters {
            let keys = ["cluster_dim_x", "cluster_dim_y", "cluster_dim_z"];
            let cluster = self.dimensions(id, function, "nvvm.cluster_dim", keys);
            attrs.reqnctapercluster = cluster.filter(|dims| dims.iter().all(|n| *n > 0));
            let most = self.single(id, function, "nvvm.maxclusterrank", &["maxclusterrank", "cluster_max_blocks"]);
            attrs.maxclusterrank = most.filter(|n| *n > 0 && attrs.reqnctapercluster.is_none());
            let clusters = self.has_attribute(function, "nvvm.blocksareclusters");
            attrs.blocksareclusters = clusters && attrs.reqntid.is_some() && attrs.reqnctapercluster.is_some();
        }
        for name in dropped {
            self.warn(at, format!("`{name}` of more than 1024 threads, or of none, is dropped"));
        }
    }
}
