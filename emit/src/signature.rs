//! Parameters, results and launch bounds: of definitions, declarations, calls and prototypes alike.

use crate::names::Names;
use crate::text::Text;
use ptxc_mir::{FuncKind, FunctionAttrs, Linkage, ParamDecl, ParamType, Signature, SymId};

/// How the parameters of a list are named.
#[derive(Clone, Copy)]
pub(crate) enum Naming<'a> {
    /// These names, one each.
    Names(&'a [String]),
    /// `_`, as in prototypes.
    Anonymous,
}

/// The PTX names of a function's own parameters.
pub(crate) fn param_names(names: &Names, function: SymId, signature: &Signature) -> Vec<String> {
    let function = names.get(function);
    (0..signature.params.len()).map(|i| names.local(format!("{function}_param_{i}"))).collect()
}

/// The PTX names of a function's own results.
pub(crate) fn result_names(names: &Names, signature: &Signature) -> Vec<String> {
    (0..signature.returns.len()).map(|i| names.local(format!("func_retval{i}"))).collect()
}

/// `.param .align 8 .b8 name[16]`, or with `_` for a name. The `.ptr` attribute is printed for kernels only: ptxas
/// takes it nowhere else.
pub(crate) fn param(text: &mut Text, param: &ParamDecl, kernel: bool, name: &str) {
    text.push(".param ");
    match param.ty {
        ParamType::Scalar(ty) => {
            text.char('.');
            text.push(ty.text());
            if let (true, Some(ptr)) = (kernel, param.ptr) {
                text.push(" .ptr");
                if let Some(space) = ptr.space {
                    text.push(" .");
                    text.push(space.text());
                }
                text.push(" .align ");
                text.unsigned(u64::from(ptr.align.max(1)));
            }
            text.char(' ');
            text.push(name);
        }
        ParamType::Opaque(kind) => {
            text.char('.');
            text.push(kind.text());
            text.char(' ');
            text.push(name);
        }
        ParamType::Bytes(size) => {
            text.push(".align ");
            text.unsigned(u64::from(param.align.max(1)));
            text.push(" .b8 ");
            text.push(name);
            text.char('[');
            text.unsigned(u64::from(size));
            text.char(']');
        }
    }
}

/// A list in parentheses, without them when it is empty and `always` is false.
pub(crate) fn params(text: &mut Text, list: &[ParamDecl], kernel: bool, naming: Naming<'_>) {
    text.char('(');
    for (i, p) in list.iter().enumerate() {
        text.push(if i > 0 { ", " } else { "" });
        let name = match naming {
            Naming::Names(names) => names.get(i).map_or("_", String::as_str),
            Naming::Anonymous => "_",
        };
        param(text, p, kernel, name);
    }
    text.char(')');
}

/// `.visible `, or nothing. Declarations of functions defined elsewhere say `.extern `.
pub(crate) fn linkage(text: &mut Text, linkage: Linkage) {
    text.push(match linkage {
        Linkage::Visible => ".visible ",
        Linkage::Internal => "",
        Linkage::Weak => ".weak ",
        Linkage::Common => ".common ",
        Linkage::Extern => ".extern ",
    });
}

/// Everything of a function up to its body or semicolon.
pub(crate) struct Header<'a> {
    pub name: SymId,
    pub kind: FuncKind,
    pub linkage: Linkage,
    pub signature: &'a Signature,
    pub attrs: &'a FunctionAttrs,
    /// A body follows: launch bounds are printed, which PTX does not take on declarations.
    pub defined: bool,
}

impl Header<'_> {
    /// `.visible .func (.param .b32 func_retval0) f(…)` and the directives after it.
    pub fn print(&self, text: &mut Text, names: &Names, param_names: &[String], result_names: &[String]) {
        linkage(text, self.linkage);
        let kernel = self.kind == FuncKind::Kernel;
        text.push(if kernel { ".entry " } else { ".func " });
        if !self.signature.returns.is_empty() {
            params(text, &self.signature.returns, kernel, Naming::Names(result_names));
            text.char(' ');
        }
        text.push(names.get(self.name));
        params(text, &self.signature.params, kernel, Naming::Names(param_names));
        if self.defined && kernel {
            self.launch_bounds(text);
        }
        // ptxas refuses .noreturn on kernels and on functions with results.
        if self.attrs.noreturn && !kernel && self.signature.returns.is_empty() {
            text.push("\n.noreturn");
        }
    }

    fn launch_bounds(&self, text: &mut Text) {
        let attrs = self.attrs;
        // PTX takes one of the two, and the exact shape implies the bound.
        let maxntid = attrs.maxntid.filter(|_| attrs.reqntid.is_none());
        let dims =
            [(".reqntid", attrs.reqntid), (".maxntid", maxntid), (".reqnctapercluster", attrs.reqnctapercluster)];
        for (directive, value) in dims {
            let Some([x, y, z]) = value else { continue };
            text.char('\n');
            text.push(directive);
            text.char(' ');
            for (i, n) in [x, y, z].into_iter().enumerate() {
                text.push(if i > 0 { ", " } else { "" });
                text.unsigned(u64::from(n));
            }
        }
        let numbers = [
            (".minnctapersm", attrs.minnctapersm),
            (".maxnreg", attrs.maxnreg),
            (".maxclusterrank", attrs.maxclusterrank),
        ];
        for (directive, value) in numbers {
            let Some(n) = value else { continue };
            text.char('\n');
            text.push(directive);
            text.char(' ');
            text.unsigned(u64::from(n));
        }
        if attrs.blocksareclusters {
            text.push("\n.blocksareclusters");
        }
    }
}
