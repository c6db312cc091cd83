//! What stands at the top of a file: types, variables, aliases, comdats, target, summaries.

use super::lexer::{Kind, Token};
use super::parser::{Parser, Result};
use crate::model::{
    Comdat, ComdatId, ComdatKind, GlobalId, GlobalKind, Linkage, Name, Type, TypeId, UnnamedAddress, Variable,
    Visibility,
};

/// What stands before the kind of a symbol.
pub(super) struct Preamble {
    pub(super) linkage: Option<Linkage>,
    pub(super) visibility: Visibility,
    pub(super) dll_storage: bool,
    pub(super) dso_local: bool,
    pub(super) thread_local: bool,
    pub(super) unnamed_address: UnnamedAddress,
}

impl Parser<'_> {
    /// The whole file.
    pub(super) fn file(&mut self) -> Result<()> {
        while self.token.kind != Kind::End {
            self.item()?;
        }
        self.finish()
    }

    fn item(&mut self) -> Result<()> {
        match self.token.kind {
            Kind::Word => match self.text() {
                b"define" => self.definition(),
                b"declare" => self.declaration(),
                b"attributes" => self.attribute_group(),
                b"source_filename" => {
                    self.bump();
                    self.expect(b'=')?;
                    self.module.source_filename = Some(self.string("a file name")?);
                    Ok(())
                }
                b"target" => self.target(),
                b"module" => {
                    self.bump();
                    self.expect_word("asm")?;
                    let line = self.string("a line of assembly")?;
                    self.module.assembly.push(line);
                    Ok(())
                }
                b"uselistorder" | b"uselistorder_bb" => self.skip_use_list_order(),
                b"deplibs" => {
                    self.bump();
                    self.expect(b'=')?;
                    self.skip_balanced()
                }
                _ => self.expected("an item of a module"),
            },
            Kind::Local | Kind::LocalNumber => self.type_definition(),
            Kind::Global | Kind::GlobalNumber => self.symbol(),
            Kind::Comdat => self.comdat_definition(),
            Kind::MetadataNumber => self.metadata_definition(),
            Kind::MetadataName => self.named_metadata(),
            Kind::Summary => {
                self.bump();
                self.expect(b'=')?;
                if self.token.kind == Kind::Label {
                    self.bump();
                }
                if self.token.kind == Kind::Integer {
                    self.bump();
                    return Ok(());
                }
                self.skip_balanced()
            }
            _ => self.expected("an item of a module"),
        }
    }

    fn target(&mut self) -> Result<()> {
        self.bump();
        let layout = self.at_word(b"datalayout");
        if !layout && !self.at_word(b"triple") {
            return self.expected("`datalayout` or `triple`");
        }
        self.bump();
        self.expect(b'=')?;
        let text = self.string("a string")?;
        let place = if layout { &mut self.module.data_layout } else { &mut self.module.triple };
        *place = Some(text);
        Ok(())
    }

    /// `uselistorder T %v, { 1, 0 }`: an order of uses, which means nothing.
    pub(super) fn skip_use_list_order(&mut self) -> Result<()> {
        self.bump();
        // The value may hold braces itself; the list is the last part.
        loop {
            match self.token.kind {
                Kind::Punctuation(b'{') => {
                    self.skip_balanced()?;
                    if !self.at(b',') && !matches!(self.token.kind, Kind::Global | Kind::Local) {
                        return Ok(());
                    }
                }
                Kind::End => return self.expected("a list of indices"),
                _ => drop(self.take()),
            }
        }
    }

    fn type_definition(&mut self) -> Result<()> {
        let token = self.take();
        self.expect(b'=')?;
        self.expect_word("type")?;
        let key = if token.kind == Kind::Local { Ok(self.sigil_name(token)) } else { Err(self.sigil_number(token)?) };
        let opaque = self.eat_word(b"opaque");
        let packed = self.at(b'<') && self.second().kind == Kind::Punctuation(b'{');
        if !opaque && !packed && !self.at(b'{') {
            return self.type_alias(token, key);
        }
        let ty = match key {
            Ok(name) => self.named_type(name),
            Err(number) => self.numbered_type(number),
        };
        let Type::Named(id) = self.module.types.get(ty) else {
            return Err(self.error_at(token, format!("type `{}` is defined twice", self.shown(token))));
        };
        if opaque {
            return Ok(());
        }
        if packed {
            self.bump();
        }
        let fields = self.fields()?;
        if packed {
            self.expect(b'>')?;
        }
        if self.module.types.structs[id].body.is_some() {
            return Err(self.error_at(token, format!("type `{}` is defined twice", self.shown(token))));
        }
        self.module.types.define(id, packed, &fields);
        Ok(())
    }

    /// `%name = type i32`: another name of a type that is no struct.
    fn type_alias(&mut self, token: Token, key: std::result::Result<Name, u32>) -> Result<()> {
        let ty = self.ty()?;
        let known = match key {
            Ok(name) => self.named_types.insert(name, ty).is_some(),
            Err(number) => {
                let known = self.numbered_types.get(number).is_some();
                self.numbered_types.set(number, ty);
                known
            }
        };
        if known {
            let message = format!("type `{}` is defined twice or used before as a struct", self.shown(token));
            return Err(self.error_at(token, message));
        }
        Ok(())
    }

    fn comdat_definition(&mut self) -> Result<()> {
        let token = self.take();
        let name = self.sigil_name(token);
        self.expect(b'=')?;
        self.expect_word("comdat")?;
        let kind = self.word_of("how the comdat is chosen", ComdatKind::from_word)?;
        let id = self.comdat_named(name);
        self.module.comdats[id].kind = kind;
        Ok(())
    }

    fn comdat_named(&mut self, name: Name) -> ComdatId {
        let comdats = &mut self.module.comdats;
        *self.comdats.entry(name).or_insert_with(|| comdats.push(Comdat { name, kind: ComdatKind::Any }))
    }

    /// `comdat` or `comdat($name)`; alone, it has the name of the symbol, here `None`.
    pub(super) fn comdat(&mut self) -> Result<Option<Name>> {
        self.bump();
        if !self.eat(b'(') {
            return Ok(None);
        }
        if self.token.kind != Kind::Comdat {
            return self.expected("a comdat");
        }
        let token = self.take();
        let name = self.sigil_name(token);
        self.expect(b')')?;
        Ok(Some(name))
    }

    /// Puts a symbol into the comdat of that name, or of its own.
    pub(super) fn join_comdat(&mut self, id: GlobalId, name: Option<Name>) {
        let name = name.or(self.module.globals[id].name).unwrap_or(self.common.no_name);
        let comdat = self.comdat_named(name);
        self.module.globals[id].comdat = Some(comdat).into();
    }

    /// Linkage, visibility and their like, in any order.
    pub(super) fn preamble(&mut self) -> Result<Preamble> {
        let mut preamble = Preamble {
            linkage: None,
            visibility: Visibility::Default,
            dll_storage: false,
            dso_local: false,
            thread_local: false,
            unnamed_address: UnnamedAddress::None,
        };
        while self.token.kind == Kind::Word {
            match self.text() {
                b"dso_local" => preamble.dso_local = true,
                b"dso_preemptable" => preamble.dso_local = false,
                b"dllimport" | b"dllexport" => preamble.dll_storage = true,
                b"unnamed_addr" => preamble.unnamed_address = UnnamedAddress::Global,
                b"local_unnamed_addr" => preamble.unnamed_address = UnnamedAddress::Local,
                b"thread_local" => {
                    preamble.thread_local = true;
                    if self.second().kind == Kind::Punctuation(b'(') {
                        self.bump();
                        self.skip_balanced()?;
                        continue;
                    }
                }
                word => match (Linkage::from_word(word), Visibility::from_word(word)) {
                    (Some(linkage), _) => preamble.linkage = Some(linkage),
                    (_, Some(visibility)) => preamble.visibility = visibility,
                    _ => break,
                },
            }
            self.bump();
        }
        Ok(preamble)
    }

    /// Makes the symbol that `token` names, for its definition in address space `space`.
    pub(super) fn define_symbol(&mut self, token: Token, space: u32) -> Result<GlobalId> {
        let id = match token.kind {
            Kind::Global => {
                let name = self.sigil_name(token);
                self.global_named(name, space, token.start)
            }
            _ => {
                let number = self.sigil_number(token)?;
                self.next_global = self.next_global.max(number.saturating_add(1));
                self.numbered_global(number, space, token.start)
            }
        };
        let global = &mut self.module.globals[id];
        if global.space != space {
            let message = format!(
                "`{}` is in address space {space} and was used as a pointer to space {}",
                self.shown(token),
                self.module.globals[id].space
            );
            return Err(self.error_at(token, message));
        }
        global.at = token.start;
        if !matches!(global.kind, GlobalKind::Unknown) {
            return Err(self.error_at(token, format!("`{}` is defined twice", self.shown(token))));
        }
        self.module.order.push(id);
        Ok(id)
    }

    /// A symbol of this file by name.
    pub(super) fn global_named(&mut self, name: Name, space: u32, at: u32) -> GlobalId {
        self.module.global(name, space, at)
    }

    fn numbered_global(&mut self, number: u32, space: u32, at: u32) -> GlobalId {
        if let Some(id) = self.numbered_globals.get(number) {
            return id;
        }
        let id = self.module.add_global(None, space, at);
        self.numbered_globals.set(number, id);
        id
    }

    /// A variable, alias or ifunc.
    fn symbol(&mut self) -> Result<()> {
        let token = self.take();
        self.expect(b'=')?;
        let preamble = self.preamble()?;
        if self.at_word(b"alias") || self.at_word(b"ifunc") {
            return self.alias(token, preamble);
        }
        let mut variable = Variable { thread_local: preamble.thread_local, ..Variable::default() };
        let mut space = 0;
        while !self.at_word(b"global") && !self.at_word(b"constant") {
            if let Some(found) = self.address_space()? {
                space = found;
            } else if self.eat_word(b"externally_initialized") {
                variable.externally_initialized = true;
            } else {
                return self.expected("`global` or `constant`");
            }
        }
        variable.constant = self.bump_text() == b"constant";
        let type_token = self.token;
        let ty = self.value_type()?;
        if ty == self.common.label || ty == self.common.metadata {
            return Err(self.error_at(type_token, "a variable cannot have this type"));
        }
        let id = self.define_symbol(token, space)?;
        let declared = matches!(preamble.linkage, Some(Linkage::External | Linkage::ExternWeak));
        if !declared {
            variable.initializer = Some(self.constant(ty)?).into();
        }
        self.apply(id, &preamble, ty);
        self.variable_tail(id, &mut variable)?;
        self.module.globals[id].kind = GlobalKind::Variable(variable);
        Ok(())
    }

    fn bump_text(&mut self) -> &[u8] {
        let token = self.take();
        self.bytes(token)
    }

    pub(super) fn apply(&mut self, id: GlobalId, preamble: &Preamble, ty: TypeId) {
        let global = &mut self.module.globals[id];
        global.linkage = preamble.linkage.unwrap_or(Linkage::External);
        global.visibility = preamble.visibility;
        global.dll_storage = preamble.dll_storage;
        global.dso_local = preamble.dso_local;
        global.unnamed_address = preamble.unnamed_address;
        global.ty = Some(ty).into();
    }

    /// `, section "…", comdat, align N, !dbg !1` and attributes.
    fn variable_tail(&mut self, id: GlobalId, variable: &mut Variable) -> Result<()> {
        while self.eat(b',') {
            if self.token.kind == Kind::MetadataName {
                let attachment = self.attachment()?;
                self.module.globals[id].attachments.push(attachment);
                continue;
            }
            match self.text() {
                b"section" => {
                    self.bump();
                    self.module.globals[id].section = Some(self.string("a section")?);
                }
                b"partition" => {
                    self.bump();
                    self.string("a partition")?;
                }
                b"comdat" => {
                    let name = self.comdat()?;
                    self.join_comdat(id, name);
                }
                b"align" => {
                    self.bump();
                    self.module.globals[id].align = self.alignment()?;
                }
                b"code_model" => {
                    self.bump();
                    self.string("a code model")?;
                }
                _ => drop(self.word("what follows a variable")?),
            }
        }
        let sets = self.function_attributes(ends_attributes)?;
        if !sets.is_empty() {
            let attributes = self.module.attributes.attributes(&sets, None.into(), &[]);
            variable.attributes = Some(attributes).into();
        }
        Ok(())
    }

    /// A power of two.
    pub(super) fn alignment(&mut self) -> Result<u64> {
        let token = self.token;
        let align = if self.at(b'(') { self.parenthesized("an alignment")? } else { self.number("an alignment")? };
        if align.is_power_of_two() && align <= 1 << 32 {
            return Ok(align);
        }
        Err(self.error_at(token, "an alignment is a power of two up to 4294967296"))
    }

    fn alias(&mut self, token: Token, preamble: Preamble) -> Result<()> {
        let alias = self.bump_text() == b"alias";
        let ty = self.ty()?;
        self.expect(b',')?;
        // The aliasee may be written with its type or be an expression alone, whose type is then that of the alias.
        let aliasee = if matches!(self.token.kind, Kind::Word) && !self.at_word(b"ptr") && self.is_expression() {
            let pointer = self.common.ptr;
            self.constant(pointer)?
        } else {
            self.typed_constant()?
        };
        let space = match self.module.types.get(self.module.constants.ty(aliasee)) {
            Type::Pointer(space) => space,
            _ => return Err(self.error_at(token, "an alias is a name of an address")),
        };
        let id = self.define_symbol(token, space)?;
        self.apply(id, &preamble, ty);
        while self.eat(b',') {
            if self.token.kind == Kind::MetadataName {
                self.attachment()?;
            } else {
                self.expect_word("partition")?;
                self.string("a partition")?;
            }
        }
        self.module.globals[id].kind = if alias { GlobalKind::Alias(aliasee) } else { GlobalKind::IFunc(aliasee) };
        Ok(())
    }

    fn is_expression(&self) -> bool {
        matches!(self.text(), b"bitcast" | b"getelementptr" | b"addrspacecast" | b"inttoptr")
    }

    /// Everything that was mentioned must be defined by now.
    fn finish(&mut self) -> Result<()> {
        for (id, at) in std::mem::take(&mut self.mentioned_metadata) {
            if self.module.metadata.get(id) == crate::model::Metadata::Unknown {
                return Err(self.undefined(at, "this metadata is not defined"));
            }
        }
        self.declare_intrinsics();
        for (_, global) in &self.module.globals {
            if matches!(global.kind, GlobalKind::Unknown) {
                let name = global.name.map_or_else(String::new, |name| format!(" `@{}`", self.module.names.text(name)));
                return Err(self.undefined(global.at, &format!("the symbol{name} is not defined")));
            }
        }
        let pending = std::mem::take(&mut self.pending_blocks);
        match pending.values().flatten().map(|pending| pending.block).min_by_key(|token| token.start) {
            Some(block) => Err(self.error_at(block, "the function has no such block")),
            None => Ok(()),
        }
    }

    fn undefined(&self, at: u32, message: &str) -> Box<crate::ReadError> {
        // The token at that place again, to mark all of it.
        let mut lexer = super::lexer::Lexer::new(self.source);
        lexer.seek(at);
        self.error_at(lexer.next(), message)
    }

    /// Intrinsics may be called without a declaration.
    fn declare_intrinsics(&mut self) {
        let names = &self.module.names;
        for (id, global) in self.module.globals.iter_mut() {
            let intrinsic = global.name.is_some_and(|name| names.bytes(name).starts_with(b"llvm."));
            if intrinsic && matches!(global.kind, GlobalKind::Unknown) && global.ty.is_some() {
                global.kind = GlobalKind::Function(Box::default());
                self.module.order.push(id);
            }
        }
    }
}

/// Whether the word ends the attributes of a variable or function: what else stands behind parameters, and the next
/// item.
pub(super) fn ends_attributes(word: &[u8]) -> bool {
    const NEXT_ITEMS: &[&[u8]] = &[
        b"define",
        b"declare",
        b"attributes",
        b"target",
        b"source_filename",
        b"module",
        b"deplibs",
        b"uselistorder",
        b"uselistorder_bb",
    ];
    const TAIL: &[&[u8]] = &[
        b"unnamed_addr",
        b"local_unnamed_addr",
        b"addrspace",
        b"section",
        b"partition",
        b"comdat",
        b"align",
        b"gc",
        b"prefix",
        b"prologue",
        b"personality",
    ];
    NEXT_ITEMS.contains(&word) || TAIL.contains(&word)
}
