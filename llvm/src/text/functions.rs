//! Functions: headers, blocks, and the names of values.

use cranelift_entity::packed_option::PackedOption;

use super::items::ends_attributes;
use super::lexer::{Kind, Token};
use super::parser::{Parser, PendingBlock, Result};
use crate::model::{
    AttributeSetId, Block, BlockId, Body, CallingConvention, DebugRecord, DebugRecordKind, Definition, Function,
    GlobalId, GlobalKind, InstId, Name, Operand, OperandKind, Type, TypeId, UnnamedAddress, ValueId,
};

/// Calling conventions that have a word.
const CONVENTIONS: &[(&[u8], u32)] = &[
    (b"ccc", 0),
    (b"fastcc", 8),
    (b"coldcc", 9),
    (b"ghccc", 10),
    (b"webkit_jscc", 12),
    (b"anyregcc", 13),
    (b"preserve_mostcc", 14),
    (b"preserve_allcc", 15),
    (b"swiftcc", 16),
    (b"cxx_fast_tlscc", 17),
    (b"tailcc", 18),
    (b"cfguard_checkcc", 19),
    (b"swifttailcc", 20),
    (b"preserve_nonecc", 21),
    (b"x86_stdcallcc", 64),
    (b"x86_fastcallcc", 65),
    (b"ptx_kernel", 71),
    (b"ptx_device", 72),
    (b"spir_func", 75),
    (b"spir_kernel", 76),
    (b"x86_64_sysvcc", 78),
    (b"win64cc", 79),
    (b"amdgpu_kernel", 91),
    (b"amdgpu_cs", 90),
];

/// A parameter of a header.
struct Parameter {
    ty: TypeId,
    attributes: PackedOption<AttributeSetId>,
    name: Option<Token>,
}

impl Parser<'_> {
    /// `declare …`.
    pub(super) fn declaration(&mut self) -> Result<()> {
        self.bump();
        let mut attachments = Vec::new();
        while self.token.kind == Kind::MetadataName {
            attachments.push(self.attachment()?);
        }
        let (id, _) = self.header()?;
        self.module.globals[id].attachments.extend(attachments);
        Ok(())
    }

    /// `define … { … }`.
    pub(super) fn definition(&mut self) -> Result<()> {
        self.bump();
        let (id, params) = self.header()?;
        while self.token.kind == Kind::MetadataName {
            let attachment = self.attachment()?;
            self.module.globals[id].attachments.push(attachment);
        }
        self.expect(b'{')?;
        self.locals.start();
        for (index, param) in params.iter().enumerate() {
            let value = self.locals.body.add_argument(index as u32, param.ty);
            self.locals.mentions.push(self.token.start);
            self.name_argument(param, value)?;
        }
        let pending = self.blocks(id)?;
        self.resolve_addresses(id, pending)?;
        let body = self.locals.finish();
        if let GlobalKind::Function(function) = &mut self.module.globals[id].kind {
            function.body = Some(body);
        }
        Ok(())
    }

    fn name_argument(&mut self, param: &Parameter, value: ValueId) -> Result<()> {
        let Some(token) = param.name else {
            let number = self.locals.next;
            self.locals.set_number(number, value.into());
            self.locals.next += 1;
            return Ok(());
        };
        if token.kind == Kind::LocalNumber {
            let number = self.sigil_number(token)?;
            self.check_number(number, token)?;
            self.locals.set_number(number, value.into());
            return Ok(());
        }
        let name = self.sigil_name(token);
        if self.locals.name(name).is_some() {
            return Err(self.error_at(token, format!("`{}` is defined twice", self.shown(token))));
        }
        self.locals.set_name(name, value.into());
        self.locals.body.names.push((value, name));
        Ok(())
    }

    /// Numbers are given in order, with gaps at most.
    #[inline]
    fn check_number(&mut self, number: u32, token: Token) -> Result<()> {
        let next = self.locals.next;
        if number < next {
            let message = format!("`{}` is out of order: the next number is {next}", self.shown(token));
            return Err(self.error_at(token, message));
        }
        self.locals.next = number.saturating_add(1);
        Ok(())
    }

    /// Everything from linkage to personality; defines the symbol.
    fn header(&mut self) -> Result<(GlobalId, Vec<Parameter>)> {
        let mut preamble = self.preamble()?;
        let convention = self.convention()?;
        let result_attributes = self.value_attributes(None)?;
        let result = self.ty()?;
        let token = self.token;
        if !matches!(token.kind, Kind::Global | Kind::GlobalNumber) {
            return self.expected("the name of a function");
        }
        self.bump();
        let (params, variadic) = self.parameters()?;
        let mut function = Function { convention, ..Function::default() };
        // The address space may stand behind attributes; symbols of functions are in space 0 without.
        let mut space = 0;
        let mut sets = Vec::new();
        let mut tail = Tail::default();
        loop {
            sets.extend(self.function_attributes(ends_attributes)?);
            match if self.token.kind == Kind::Word { self.text() } else { b"" } {
                b"unnamed_addr" => preamble.unnamed_address = UnnamedAddress::Global,
                b"local_unnamed_addr" => preamble.unnamed_address = UnnamedAddress::Local,
                b"addrspace" => {
                    space = self.address_space()?.unwrap_or(0);
                    continue;
                }
                b"comdat" => {
                    tail.comdat = Some(self.comdat()?);
                    continue;
                }
                word @ (b"section" | b"partition" | b"gc") => {
                    self.bump();
                    let name = self.string("a string")?;
                    match word {
                        b"section" => tail.section = Some(name),
                        b"gc" => function.gc = Some(name),
                        _ => {}
                    }
                    continue;
                }
                b"align" => {
                    self.bump();
                    tail.align = self.alignment()?;
                    continue;
                }
                b"prefix" => {
                    function.prefix = self.constant_after(b"prefix")?;
                    continue;
                }
                b"prologue" => {
                    function.prologue = self.constant_after(b"prologue")?;
                    continue;
                }
                b"personality" => {
                    function.personality = self.constant_after(b"personality")?;
                    continue;
                }
                _ => break,
            }
            self.bump();
        }
        let id = self.define_symbol(token, space)?;
        let types: Vec<TypeId> = params.iter().map(|param| param.ty).collect();
        let ty = self.module.types.function(result, &types, variadic);
        self.apply(id, &preamble, ty);
        let param_sets: Vec<_> = params.iter().map(|param| param.attributes).collect();
        function.attributes = self.attribute_list(&sets, result_attributes, &param_sets);
        let global = &mut self.module.globals[id];
        global.section = tail.section;
        global.align = tail.align;
        global.kind = GlobalKind::Function(Box::new(function));
        if let Some(comdat) = tail.comdat {
            self.join_comdat(id, comdat);
        }
        Ok((id, params))
    }

    /// The attribute sets as one id; none when all are empty.
    pub(super) fn attribute_list(
        &mut self,
        function: &[AttributeSetId],
        result: PackedOption<AttributeSetId>,
        params: &[PackedOption<AttributeSetId>],
    ) -> PackedOption<crate::model::AttributesId> {
        let used = params.iter().rposition(PackedOption::is_some).map_or(0, |last| last + 1);
        if function.is_empty() && result.is_none() && used == 0 {
            return None.into();
        }
        Some(self.module.attributes.attributes(function, result, &params[..used])).into()
    }

    pub(super) fn convention(&mut self) -> Result<CallingConvention> {
        if self.token.kind != Kind::Word {
            return Ok(CallingConvention::C);
        }
        let word = self.text();
        // Mostly there is none, and a type or an attribute is next.
        if !matches!(word, [b'c', b'c', ..] | [.., b'c', b'c']) && !word.contains(&b'_') {
            return Ok(CallingConvention::C);
        }
        if let Some((_, number)) = CONVENTIONS.iter().find(|(name, _)| *name == word) {
            self.bump();
            return Ok(CallingConvention(*number));
        }
        if word == b"cc" {
            self.bump();
            return Ok(CallingConvention(self.small_number("a calling convention")?));
        }
        // `cc10` and words of other targets.
        let digits = word.strip_prefix(b"cc").and_then(super::parser::parse_number);
        match digits {
            Some(number) => {
                self.bump();
                Ok(CallingConvention(number as u32))
            }
            None if word.ends_with(b"cc") || word.starts_with(b"amdgpu_") || word.starts_with(b"aarch64_") => {
                self.error(format!("the calling convention `{}` is not known", String::from_utf8_lossy(word)))
            }
            None => Ok(CallingConvention::C),
        }
    }

    fn parameters(&mut self) -> Result<(Vec<Parameter>, bool)> {
        self.expect(b'(')?;
        let mut params = Vec::new();
        while !self.at(b')') {
            if self.eat_word(b"...") {
                self.expect(b')')?;
                return Ok((params, true));
            }
            let ty = self.value_type()?;
            let pointee = self.pointee;
            let attributes = self.value_attributes(pointee)?;
            let named = matches!(self.token.kind, Kind::Local | Kind::LocalNumber);
            let name = named.then(|| self.take());
            params.push(Parameter { ty, attributes, name });
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok((params, false))
    }

    /// The blocks up to the closing brace. Gives the addresses of blocks of this function taken so far.
    fn blocks(&mut self, id: GlobalId) -> Result<Vec<PendingBlock>> {
        let mut open = false;
        loop {
            match self.token.kind {
                Kind::Punctuation(b'}') => break,
                Kind::Label => {
                    if open {
                        return self.error("the block before has no terminator");
                    }
                    self.labelled_block()?;
                    open = true;
                }
                Kind::Word if matches!(self.text(), b"uselistorder" | b"uselistorder_bb") => {
                    self.skip_use_list_order()?;
                }
                Kind::Record => self.debug_record()?,
                _ => {
                    if !open {
                        self.unnamed_block()?;
                    }
                    open = !self.instruction()?;
                }
            }
        }
        if open {
            return self.error("the last block has no terminator");
        }
        if self.locals.body.order.is_empty() {
            return self.error("a function has at least one block");
        }
        self.bump();
        self.check_defined()?;
        Ok(self.pending_blocks.remove(&id).unwrap_or_default())
    }

    fn labelled_block(&mut self) -> Result<()> {
        let token = self.take();
        let bytes = self.bytes(token);
        if bytes.iter().all(u8::is_ascii_digit) {
            let number = super::parser::parse_number(bytes).and_then(|number| u32::try_from(number).ok());
            let Some(number) = number else { return Err(self.error_at(token, "the number is too large")) };
            self.check_number(number, token)?;
            let known = self.locals.number(number);
            let block = self.place_block(known, None, token)?;
            self.locals.set_number(number, block.into());
            return Ok(());
        }
        let name = self.name_of(bytes);
        let known = self.locals.name(name);
        let block = self.place_block(known, Some(name), token)?;
        self.locals.set_name(name, block.into());
        Ok(())
    }

    fn unnamed_block(&mut self) -> Result<()> {
        let number = self.locals.next;
        self.locals.next += 1;
        let known = self.locals.number(number);
        let block = self.place_block(known, None, self.token)?;
        self.locals.set_number(number, block.into());
        Ok(())
    }

    /// Starts the block that a name or number already stands for, or a new one.
    fn place_block(&mut self, known: Option<Operand>, name: Option<Name>, token: Token) -> Result<BlockId> {
        let block = match known.map(Operand::kind) {
            None => {
                self.locals.block_mentions.push(token.start);
                self.locals.body.add_block(name)
            }
            Some(OperandKind::Block(block)) if !self.is_placed(block) => block,
            Some(OperandKind::Block(_)) => return Err(self.error_at(token, "this block is defined twice")),
            Some(_) => return Err(self.error_at(token, "a value has the name of this block")),
        };
        self.locals.body.start_block(block);
        self.locals.block_mentions[cranelift_entity::EntityRef::index(block)] = u32::MAX;
        Ok(block)
    }

    fn is_placed(&self, block: BlockId) -> bool {
        self.locals.block_mentions[cranelift_entity::EntityRef::index(block)] == u32::MAX
    }

    /// Every value and block that was mentioned must be defined.
    fn check_defined(&self) -> Result<()> {
        for (value, at) in self.locals.body.values.values().zip(&self.locals.mentions) {
            if value.definition == Definition::Unknown {
                return Err(self.not_defined(*at));
            }
        }
        match self.locals.block_mentions.iter().find(|at| **at != u32::MAX) {
            Some(at) => Err(self.not_defined(*at)),
            None => Ok(()),
        }
    }

    fn not_defined(&self, at: u32) -> Box<crate::ReadError> {
        let mut lexer = super::lexer::Lexer::new(self.source);
        lexer.seek(at);
        let token = lexer.next();
        self.error_at(token, format!("`{}` is not defined", self.shown(token)))
    }

    /// Fills in the addresses of blocks, those of this function by its tables.
    fn resolve_addresses(&mut self, id: GlobalId, pending: Vec<PendingBlock>) -> Result<()> {
        for PendingBlock { address, block } in pending {
            let known = match block.kind {
                Kind::LocalNumber => self.locals.number(self.sigil_number(block)?),
                _ => {
                    let name = self.sigil_name(block);
                    self.locals.name(name)
                }
            };
            match known.and_then(Operand::block) {
                Some(found) => self.module.constants.block_addresses[address].block = Some(found),
                None => return Err(self.error_at(block, "the function has no such block")),
            }
        }
        // Addresses in earlier functions, by what is left of their names.
        for pending in self.earlier_addresses(id) {
            let function = self.module.constants.block_addresses[pending.address].function;
            let name = if pending.block.kind == Kind::Local { Some(self.sigil_name(pending.block)) } else { None };
            let number = if name.is_none() { self.sigil_number(pending.block)? } else { 0 };
            let body = self.module.globals[function].function().and_then(|function| function.body.as_ref());
            let found = body.and_then(|body| match name {
                Some(_) => body.blocks.iter().find(|(_, block)| block.name == name).map(|(id, _)| id),
                None => numbered_block(self.module, body, number),
            });
            match found {
                Some(found) => self.module.constants.block_addresses[pending.address].block = Some(found),
                None => return Err(self.error_at(pending.block, "the function has no such block")),
            }
        }
        Ok(())
    }

    /// Addresses of blocks of functions that were read before function `id`.
    fn earlier_addresses(&mut self, id: GlobalId) -> Vec<PendingBlock> {
        if self.pending_blocks.is_empty() {
            return Vec::new();
        }
        let globals = &self.module.globals;
        let mut known: Vec<GlobalId> = self.pending_blocks.keys().copied().collect();
        known.retain(|other| *other != id && globals[*other].function().is_some_and(|f| f.body.is_some()));
        known.sort();
        known.into_iter().filter_map(|other| self.pending_blocks.remove(&other)).flatten().collect()
    }

    /// The value `%12` if it is known and of type `ty`.
    #[inline]
    pub(super) fn known_value(&self, token: Token, ty: TypeId) -> Option<ValueId> {
        let value = self.locals.number(self.sigil_number(token).ok()?)?.value()?;
        (self.locals.body.values[value].ty == ty).then_some(value)
    }

    /// The value `%name` or `%12` that `token` is, of type `ty`.
    pub(super) fn local(&mut self, token: Token, ty: TypeId) -> Result<ValueId> {
        let (known, key) = self.local_entry(token)?;
        match known.map(Operand::kind) {
            Some(OperandKind::Value(value)) => {
                let found = self.locals.body.values[value].ty;
                if found == ty {
                    return Ok(value);
                }
                let (found, ty) = (self.type_name(found), self.type_name(ty));
                Err(self.error_at(token, format!("`{}` has the type {found}, not {ty}", self.shown(token))))
            }
            Some(_) => Err(self.error_at(token, format!("`{}` is a block", self.shown(token)))),
            None => {
                let value = self.locals.body.add_value(ty);
                self.locals.mentions.push(token.start);
                self.set_local(key, value.into());
                Ok(value)
            }
        }
    }

    #[inline]
    fn local_entry(&mut self, token: Token) -> Result<(Option<Operand>, std::result::Result<Name, u32>)> {
        if token.kind == Kind::LocalNumber {
            let number = self.sigil_number(token)?;
            return Ok((self.locals.number(number), Err(number)));
        }
        let name = self.sigil_name(token);
        Ok((self.locals.name(name), Ok(name)))
    }

    fn set_local(&mut self, key: std::result::Result<Name, u32>, operand: Operand) {
        match key {
            Ok(name) => self.locals.set_name(name, operand),
            Err(number) => self.locals.set_number(number, operand),
        }
    }

    /// `label %name`.
    pub(super) fn label(&mut self) -> Result<BlockId> {
        self.expect_word("label")?;
        self.block_reference()
    }

    /// `%name` as a block.
    pub(super) fn block_reference(&mut self) -> Result<BlockId> {
        let token = self.token;
        if !matches!(token.kind, Kind::Local | Kind::LocalNumber) {
            return self.expected("a block");
        }
        self.bump();
        let (known, key) = self.local_entry(token)?;
        match known.map(Operand::kind) {
            Some(OperandKind::Block(block)) => Ok(block),
            Some(_) => Err(self.error_at(token, format!("`{}` is a value, not a block", self.shown(token)))),
            None => {
                let block = self.locals.body.add_block(key.ok());
                self.locals.block_mentions.push(token.start);
                self.set_local(key, block.into());
                Ok(block)
            }
        }
    }

    /// Makes the value that an instruction defines, under its name or the next number.
    pub(super) fn define_result(&mut self, token: Option<Token>, ty: TypeId) -> Result<ValueId> {
        let (known, key) = match token {
            None => {
                let number = self.locals.next;
                self.locals.next += 1;
                (self.locals.number(number), Err(number))
            }
            Some(token) => {
                let (known, key) = self.local_entry(token)?;
                if let Err(number) = key {
                    self.check_number(number, token)?;
                }
                (known, key)
            }
        };
        let place = token.unwrap_or(self.token);
        let value = match known.map(Operand::kind) {
            None => {
                let value = self.locals.body.add_value(ty);
                self.locals.mentions.push(place.start);
                self.set_local(key, value.into());
                value
            }
            Some(OperandKind::Value(value)) => {
                let known = self.locals.body.values[value];
                if known.definition != Definition::Unknown {
                    return Err(self.error_at(place, format!("`{}` is defined twice", self.shown(place))));
                }
                if known.ty != ty {
                    let (used, ty) = (self.type_name(known.ty), self.type_name(ty));
                    let message = format!("`{}` has the type {ty} and was used as {used}", self.shown(place));
                    return Err(self.error_at(place, message));
                }
                value
            }
            Some(_) => return Err(self.error_at(place, format!("`{}` is used as a block", self.shown(place)))),
        };
        if let Ok(name) = key {
            self.locals.body.names.push((value, name));
        }
        Ok(value)
    }

    /// `#dbg_value(…)`.
    fn debug_record(&mut self) -> Result<()> {
        let token = self.token;
        let Some(kind) = DebugRecordKind::from_word(&self.text()[1..]) else {
            return self.error(format!("the debug record `{}` is not known", self.shown(token)));
        };
        self.bump();
        self.expect(b'(')?;
        let mut arguments = Vec::new();
        loop {
            arguments.push(self.metadata_operand()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        let location = match arguments.pop().and_then(Operand::constant).map(|id| self.module.constants.get(id)) {
            Some(crate::model::Constant::Metadata(location)) => Some(location),
            _ => None,
        };
        let arguments = self.locals.body.add_operands(&arguments);
        let before = InstId::from_u32(self.locals.body.instructions.len() as u32);
        let record = DebugRecord { before, kind, arguments, location: location.into() };
        self.locals.body.records.push(record);
        Ok(())
    }
}

/// What stands behind the parameters and belongs to the symbol.
#[derive(Default)]
struct Tail {
    section: Option<Name>,
    align: u64,
    /// With its name, when another than the symbol's.
    comdat: Option<Option<Name>>,
}

/// The block of a finished body that has the number: unnamed arguments, blocks and results are numbered in order.
fn numbered_block(module: &crate::model::Module, body: &Body, wanted: u32) -> Option<BlockId> {
    let named: rustc_hash::FxHashSet<ValueId> = body.names.iter().map(|(value, _)| *value).collect();
    let arguments = body.values.iter().filter(|(_, value)| matches!(value.definition, Definition::Argument(_)));
    let mut next = arguments.filter(|(id, _)| !named.contains(id)).count() as u32;
    for block in &body.order {
        let Block { name, .. } = &body.blocks[*block];
        if name.is_none() {
            if next == wanted {
                return Some(*block);
            }
            next += 1;
        }
        for inst in body.block(*block) {
            let unnamed = body.instructions[inst].result.expand().filter(|value| !named.contains(value));
            next += u32::from(unnamed.is_some_and(|value| module.types.get(body.values[value].ty) != Type::Void));
        }
    }
    None
}
