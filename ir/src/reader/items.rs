//! Items of a module: types, files, globals, functions' headers.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use super::cursor::{Cursor, clip, counted, hint};
use super::lexer::{Kind, Source, Token};
use super::types::Context;
use super::{PResult, ReadError, SpanMap};
use crate::entities::{FuncId, GlobalId};
use crate::module::{FuncAttrs, FuncKind, Function, Global, GlobalKind, Linkage, Module, Param, ParamAttrs, Signature};
use crate::types::{MemType, Space, Type};

const KEYWORDS: &[&str] = &[
    "type", "file", "global", "const", "shared", "texture", "surface", "sampler", "kernel", "func", "declare",
    "internal", "weak", "common", "extern", "used",
];

/// True when the tokens at `at` can only be the start of an item: a keyword followed by what must follow it.
fn is_item_start(src: &Source, at: usize) -> bool {
    let Some(token) = src.tokens.get(at) else { return false };
    if token.kind != Kind::Word || !token.first_on_line {
        return false;
    }
    let next = src.tokens.get(at + 1).map_or(Kind::End, |t| t.kind);
    match src.lexeme(*token) {
        "type" => next == Kind::Local,
        "file" => next == Kind::Number,
        "global" | "const" | "shared" | "texture" | "surface" | "sampler" | "kernel" | "func" | "used" => {
            next == Kind::Symbol
        }
        "declare" | "internal" | "weak" | "common" | "extern" => next == Kind::Word,
        _ => next == Kind::Symbol,
    }
}

/// Token ranges of the items. Inside brackets an item starts only in the first column.
fn split(src: &Source) -> Vec<(usize, usize)> {
    let mut items = Vec::new();
    let (mut start, mut depth) = (0usize, 0usize);
    for (at, token) in src.tokens.iter().enumerate() {
        match token.kind {
            Kind::LParen | Kind::LBracket | Kind::LBrace => depth += 1,
            Kind::RParen | Kind::RBracket | Kind::RBrace => depth = depth.saturating_sub(1),
            Kind::Word if token.first_on_line && (depth == 0 || token.first_column) && is_item_start(src, at) => {
                let known = KEYWORDS.contains(&src.lexeme(*token));
                // Inside a body only what is certain starts an item: an unknown word before `@name` may be an opcode.
                if depth == 0 || known {
                    depth = 0;
                    if at > start {
                        items.push((start, at));
                    }
                    start = at;
                }
            }
            _ => {}
        }
    }
    if start < src.tokens.len() {
        items.push((start, src.tokens.len()));
    }
    items
}

/// A function whose body is still to be read.
struct PendingBody<'a> {
    func: FuncId,
    /// First token after `{` and one past the last before `}`.
    tokens: (usize, usize),
    /// Names of the parameters' leaves.
    names: Vec<(Cow<'a, str>, Token)>,
}

/// A global whose initializer is still to be read.
struct PendingInit {
    global: GlobalId,
    tokens: (usize, usize),
}

pub(super) struct Items<'s, 'a> {
    src: &'s Source<'a>,
    cx: Context<'a>,
    spans: SpanMap,
    symbols: FxHashMap<Cow<'a, str>, Token>,
    bodies: Vec<PendingBody<'a>>,
    inits: Vec<PendingInit>,
    used: Vec<(Cow<'a, str>, Token)>,
}

/// Reads all items of the source.
pub(super) fn read(src: &Source<'_>, errors: &mut Vec<ReadError>) -> (Module, SpanMap) {
    let mut items = Items {
        src,
        cx: Context {
            module: Module::new(),
            named: FxHashMap::default(),
            broken: FxHashSet::default(),
            broken_types: FxHashSet::default(),
        },
        spans: SpanMap::default(),
        symbols: FxHashMap::default(),
        bodies: Vec::new(),
        inits: Vec::new(),
        used: Vec::new(),
    };
    let ranges = split(src);
    for types in [true, false] {
        for (start, end) in &ranges {
            let mut cursor = Cursor::new(src, *start, *end);
            let is_type = cursor.is_word("type") && cursor.ahead(1).kind == Kind::Local;
            if is_type == types
                && errors.len() < super::MAX_ERRORS
                && let Err(error) = items.item(&mut cursor)
            {
                items.mark_broken(*start, *end);
                errors.extend(Some(*error).filter(|e| !e.is_consequence()));
            }
        }
    }
    items.bodies_and_inits(errors);
    (items.cx.module, items.spans)
}

impl<'a> Items<'_, 'a> {
    fn bodies_and_inits(&mut self, errors: &mut Vec<ReadError>) {
        for (name, token) in std::mem::take(&mut self.used) {
            match self.cx.module.symbol(&name) {
                Some(symbol) => self.cx.module.used.push(symbol),
                None => errors.push(ReadError::new(format!("there is no `@{}`", clip(&name)), token.span())),
            }
        }
        for pending in std::mem::take(&mut self.inits) {
            let mut c = Cursor::new(self.src, pending.tokens.0, pending.tokens.1);
            let ty = self.cx.module.globals[pending.global].ty;
            match self.cx.init(&mut c, ty).and_then(|init| self.global_attrs(&mut c, pending.global).map(|()| init)) {
                Ok(init) => self.cx.module.globals[pending.global].init = Some(init),
                Err(error) => errors.extend(Some(*error).filter(|e| !e.is_consequence())),
            }
        }
        for pending in std::mem::take(&mut self.bodies) {
            if errors.len() >= super::MAX_ERRORS {
                return;
            }
            let spans = &mut self.spans.funcs[pending.func];
            super::body::read(self.src, &mut self.cx, pending.func, pending.tokens, &pending.names, spans, errors);
        }
    }

    /// Remembers what the item at these tokens would have declared, so that its uses are not reported too.
    fn mark_broken(&mut self, start: usize, end: usize) {
        let mut c = Cursor::new(self.src, start, end.min(start + 3));
        let is_type = c.is_word("type");
        while c.kind() != Kind::End {
            let token = c.advance();
            match (token.kind, c.name(token)) {
                (Kind::Symbol, Ok(name)) => drop(self.cx.broken.insert(name)),
                (Kind::Local, Ok(name)) if is_type => drop(self.cx.broken_types.insert(name)),
                _ => {}
            }
        }
    }

    fn item(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<()> {
        let token = c.expect(Kind::Word, "`type`, `file`, a global, `kernel`, `func` or `declare`")?;
        let word = c.lexeme(token);
        let linkage = match word {
            "internal" => Linkage::Internal,
            "weak" => Linkage::Weak,
            "common" => Linkage::Common,
            "extern" => Linkage::Extern,
            "declare" => {
                let kind = self.func_kind(c)?;
                return self.function(c, kind, Linkage::Extern, token);
            }
            "type" => return self.type_item(c),
            "file" => return self.file_item(c),
            "used" => return self.used_item(c),
            _ => return self.symbol_item(c, token, Linkage::Visible, token),
        };
        let keyword = c.expect(Kind::Word, "`global`, `const`, `shared`, `kernel` or `func`")?;
        self.symbol_item(c, keyword, linkage, token)
    }

    fn symbol_item(&mut self, c: &mut Cursor<'_, 'a>, keyword: Token, linkage: Linkage, first: Token) -> PResult<()> {
        let word = c.lexeme(keyword);
        let kind = match word {
            "global" => GlobalKind::Variable(Space::Global),
            "const" => GlobalKind::Variable(Space::Const),
            "shared" => GlobalKind::Variable(Space::Shared),
            "texture" => GlobalKind::Texture,
            "surface" => GlobalKind::Surface,
            "sampler" => GlobalKind::Sampler,
            "kernel" | "func" if linkage == Linkage::Extern => {
                return Err(c.error_at(first, format!("a function without a body is written `declare {word}`")));
            }
            "kernel" => return self.function(c, FuncKind::Kernel, linkage, first),
            "func" => return self.function(c, FuncKind::Func, linkage, first),
            _ => {
                let known = hint(word, KEYWORDS.iter().copied());
                return Err(c.error_at(keyword, format!("`{}` starts no item{known}", clip(word))));
            }
        };
        self.global(c, kind, linkage)
    }

    fn func_kind(&self, c: &mut Cursor<'_, 'a>) -> PResult<FuncKind> {
        if c.eat_word("kernel") {
            return Ok(FuncKind::Kernel);
        }
        c.word("func").map(|()| FuncKind::Func)
    }

    fn type_item(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<()> {
        let token = c.expect(Kind::Local, "the name of the type")?;
        let name = c.name(token)?;
        c.punct(Kind::Eq)?;
        let ty = self.cx.mem_type(c)?;
        c.finish("type")?;
        let MemType::Agg(id) = ty else {
            return Err(c.error_at(token, "only structs and arrays can be named"));
        };
        if self.cx.named.contains_key(&name) {
            return Err(c.error_at(token, format!("the type `%{}` is defined twice", clip(&name))));
        }
        self.cx.module.name_aggregate(id, &name);
        self.cx.named.insert(name, id);
        Ok(())
    }

    fn file_item(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<()> {
        let token = c.token();
        let number = c.u32("the number of the file")?;
        let path = c.expect(Kind::String, "the path in quotes")?;
        let path = String::from_utf8(c.string(path)?).map_err(|_| c.error_at(path, "the path is not UTF-8"))?;
        c.finish("file")?;
        if self.cx.module.files.iter().any(|(n, _)| *n == number) {
            return Err(c.error_at(token, format!("file {number} is given twice")));
        }
        self.cx.module.files.push((number, path));
        Ok(())
    }

    /// `used @name`: looked up when all symbols are known.
    fn used_item(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<()> {
        let token = c.expect(Kind::Symbol, "an `@name`")?;
        let name = c.name(token)?;
        self.used.push((name, token));
        c.finish("used")
    }

    /// Takes a symbol's name, which must be new.
    fn new_symbol(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<(Cow<'a, str>, Token)> {
        let token = c.expect(Kind::Symbol, "an `@name`")?;
        let name = c.name(token)?;
        if name.is_empty() {
            return Err(c.error_at(token, "a symbol's name is empty"));
        }
        if let Some(first) = self.symbols.get(&name) {
            let error = ReadError::new(format!("`@{}` is defined twice", clip(&name)), token.span());
            return Err(Box::new(error.note("first here", first.span())));
        }
        self.symbols.insert(name.clone(), token);
        Ok((name, token))
    }

    fn global(&mut self, c: &mut Cursor<'_, 'a>, kind: GlobalKind, linkage: Linkage) -> PResult<()> {
        let (name, token) = self.new_symbol(c)?;
        let ty = match kind {
            GlobalKind::Variable(_) => {
                c.punct(Kind::Colon)?;
                self.cx.mem_type(c)?
            }
            _ => MemType::Value(Type::I64),
        };
        let align = self.cx.module.layout_of(ty).align;
        let global = Global { name: name.into_owned(), kind, ty, linkage, align, init: None, managed: false };
        let Ok(id) = self.cx.module.add_global(global) else {
            return Err(c.error_at(token, "the symbol is defined twice"));
        };
        self.spans.globals[id] = (token.start, token.end);
        if c.eat(Kind::Eq).is_none() {
            return self.global_attrs(c, id);
        }
        let start = c.position();
        let mut end = start;
        while c.kind() != Kind::End {
            c.advance();
            end = c.position();
        }
        self.inits.push(PendingInit { global: id, tokens: (start, end) });
        Ok(())
    }

    fn global_attrs(&mut self, c: &mut Cursor<'_, 'a>, id: GlobalId) -> PResult<()> {
        while c.eat(Kind::Comma).is_some() {
            if c.eat_word("managed") {
                self.cx.module.globals[id].managed = true;
                continue;
            }
            c.word("align")?;
            let align = u64::from(c.alignment()?);
            self.cx.module.globals[id].align = align;
        }
        c.finish("global")
    }

    fn function(&mut self, c: &mut Cursor<'_, 'a>, kind: FuncKind, linkage: Linkage, first: Token) -> PResult<()> {
        let (name, token) = self.new_symbol(c)?;
        let declared = linkage == Linkage::Extern;
        c.punct(Kind::LParen)?;
        let mut sig = Signature::default();
        let mut names = Vec::new();
        c.list(Kind::RParen, |c| {
            let param = self.param(c, declared, &mut names)?;
            sig.params.push(param);
            Ok(())
        })?;
        if c.eat(Kind::Arrow).is_some() {
            sig.ret = Some(self.return_type(c)?);
        }
        let attrs = func_attrs(c)?;
        let mut func = Function::new(name, kind, sig);
        func.linkage = linkage;
        func.attrs = attrs;
        let Ok(id) = self.cx.module.add_func(func) else {
            return Err(c.error_at(token, "the symbol is defined twice"));
        };
        let end = c.token().start.max(token.end);
        let spans = &mut self.spans.funcs[id];
        spans.header = first.start as usize..end as usize;
        spans.name = token.span();
        if declared {
            return c.finish("declaration");
        }
        let open = c.expect(Kind::LBrace, "an attribute or `{`")?;
        let start = c.position();
        let mut depth = 1usize;
        while c.kind() != Kind::End {
            let at = c.position();
            match c.advance().kind {
                Kind::LBrace => depth += 1,
                Kind::RBrace => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                self.bodies.push(PendingBody { func: id, tokens: (start, at), names });
                return c.finish("function");
            }
        }
        self.bodies.push(PendingBody { func: id, tokens: (start, c.position()), names });
        let error = ReadError::new("the body has no closing `}`", c.token().span());
        Err(Box::new(error.note("opened here", open.span())))
    }

    /// `type`, also one that is passed as several values.
    pub fn return_type(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<MemType> {
        let ty = self.cx.mem_type(c)?;
        self.cx.leaf_types(c, ty)?;
        Ok(ty)
    }

    fn param(
        &mut self,
        c: &mut Cursor<'_, 'a>,
        declared: bool,
        names: &mut Vec<(Cow<'a, str>, Token)>,
    ) -> PResult<Param> {
        let first = c.token();
        let mut leaf_names = Vec::new();
        let mut grouped = false;
        if c.kind() == Kind::Local && c.ahead(1).kind == Kind::Colon {
            leaf_names.push((c.name(first)?, c.advance()));
            c.advance();
        } else if c.eat(Kind::LParen).is_some() {
            grouped = true;
            c.list(Kind::RParen, |c| {
                let token = c.expect(Kind::Local, "the name of a part of the parameter")?;
                leaf_names.push((c.name(token)?, token));
                Ok(())
            })?;
            c.punct(Kind::Colon)?;
        } else if !declared {
            return Err(c.expected("a parameter `%name: type`"));
        }
        let ty = self.cx.mem_type(c)?;
        let leaves = self.cx.leaf_types(c, ty)?.len();
        let named = grouped || !leaf_names.is_empty();
        if named && grouped != matches!(ty, MemType::Agg(_)) {
            let message = match grouped {
                true => "only an aggregate parameter has its names in parentheses",
                false => "an aggregate parameter has one name a value, in parentheses",
            };
            return Err(c.error_at(first, message));
        }
        if named && leaf_names.len() != leaves {
            let message =
                format!("the aggregate has {}, {} given", counted(leaves, "value"), counted(leaf_names.len(), "name"));
            return Err(c.error_at(first, message));
        }
        names.append(&mut leaf_names);
        let attrs = self.cx.param_attrs(c)?;
        Ok(Param { ty, attrs })
    }
}

const PARAM_ATTRS: &[&str] =
    &["noalias", "readonly", "writeonly", "nonnull", "align", "byval", "grid_constant", "signext", "zeroext"];

impl<'a> Context<'a> {
    /// Attributes after the type of a parameter.
    pub fn param_attrs(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<ParamAttrs> {
        let mut attrs = ParamAttrs::default();
        while c.kind() == Kind::Word {
            let token = c.advance();
            match c.lexeme(token) {
                "noalias" => attrs.noalias = true,
                "readonly" => attrs.readonly = true,
                "writeonly" => attrs.writeonly = true,
                "nonnull" => attrs.nonnull = true,
                "align" => attrs.align = c.alignment()?,
                "grid_constant" => attrs.grid_constant = true,
                "signext" => attrs.signext = true,
                "zeroext" => attrs.zeroext = true,
                "byval" => {
                    c.punct(Kind::LParen)?;
                    attrs.byval = Some(self.mem_type(c)?);
                    c.punct(Kind::RParen)?;
                }
                word => {
                    let known = hint(word, PARAM_ATTRS.iter().copied());
                    return Err(c.error_at(token, format!("unknown parameter attribute `{}`{known}", clip(word))));
                }
            }
        }
        Ok(attrs)
    }

    /// `(type attrs, …) [-> type]`
    pub fn signature(&mut self, c: &mut Cursor<'_, 'a>) -> PResult<Signature> {
        let mut sig = Signature::default();
        c.punct(Kind::LParen)?;
        c.list(Kind::RParen, |c| {
            let ty = self.mem_type(c)?;
            self.leaf_types(c, ty)?;
            let attrs = self.param_attrs(c)?;
            sig.params.push(Param { ty, attrs });
            Ok(())
        })?;
        if c.eat(Kind::Arrow).is_some() {
            let ty = self.mem_type(c)?;
            self.leaf_types(c, ty)?;
            sig.ret = Some(ty);
        }
        Ok(sig)
    }
}

const FUNC_ATTRS: &[&str] = &[
    "reqntid",
    "maxntid",
    "minnctapersm",
    "maxnreg",
    "reqnctapercluster",
    "maxclusterrank",
    "blocksareclusters",
    "noreturn",
    "noinline",
    "alwaysinline",
    "readnone",
    "readonly",
    "nonconvergent",
];

fn func_attrs(c: &mut Cursor) -> PResult<FuncAttrs> {
    let mut attrs = FuncAttrs::default();
    while c.kind() == Kind::Word {
        let token = c.advance();
        match c.lexeme(token) {
            "reqntid" => attrs.reqntid = Some(dimensions(c)?),
            "maxntid" => attrs.maxntid = Some(dimensions(c)?),
            "reqnctapercluster" => attrs.reqnctapercluster = Some(dimensions(c)?),
            "minnctapersm" => attrs.minnctapersm = Some(parenthesized(c)?),
            "maxnreg" => attrs.maxnreg = Some(parenthesized(c)?),
            "maxclusterrank" => attrs.maxclusterrank = Some(parenthesized(c)?),
            "blocksareclusters" => attrs.blocksareclusters = true,
            "noreturn" => attrs.noreturn = true,
            "noinline" => attrs.noinline = true,
            "alwaysinline" => attrs.alwaysinline = true,
            "readnone" => attrs.readnone = true,
            "readonly" => attrs.readonly = true,
            "nonconvergent" => attrs.nonconvergent = true,
            word => {
                let known = hint(word, FUNC_ATTRS.iter().copied());
                return Err(c.error_at(token, format!("unknown function attribute `{}`{known}", clip(word))));
            }
        }
    }
    Ok(attrs)
}

/// `(x)`, `(x, y)` or `(x, y, z)`; what is missing is 1.
fn dimensions(c: &mut Cursor) -> PResult<[u32; 3]> {
    let mut out = [1; 3];
    let mut slots = out.iter_mut();
    c.punct(Kind::LParen)?;
    c.list(Kind::RParen, |c| match slots.next() {
        Some(slot) => {
            *slot = c.u32("a size")?;
            Ok(())
        }
        None => Err(c.error("at most three dimensions are given")),
    })?;
    Ok(out)
}

/// `(n)`
pub(super) fn parenthesized(c: &mut Cursor) -> PResult<u32> {
    c.punct(Kind::LParen)?;
    let n = c.u32("a number")?;
    c.punct(Kind::RParen)?;
    Ok(n)
}
