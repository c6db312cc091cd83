//! Metadata: nodes, strings, values, attachments.

use super::lexer::Kind;
use super::parser::{Parser, Result};
use crate::model::{ConstId, LocalMetadata, Metadata, MetadataId, MetadataRef, Name, Operand};

impl<'a> Parser<'a> {
    /// The entry of `!12`, made when it is new.
    fn metadata_number(&mut self) -> Result<MetadataId> {
        let token = self.take();
        let number = self.sigil_number(token)?;
        if let Some(id) = self.numbered_metadata.get(number) {
            return Ok(id);
        }
        let id = self.module.metadata.add(Metadata::Unknown);
        self.numbered_metadata.set(number, id);
        self.mentioned_metadata.push((id, token.start));
        Ok(id)
    }

    /// A node: `!12`, `!{…}`, `!DILocation(…)`, or a string.
    pub(super) fn metadata_node(&mut self) -> Result<MetadataId> {
        match self.token.kind {
            Kind::MetadataNumber => self.metadata_number(),
            _ => {
                let metadata = self.nested(Self::inline_metadata)?;
                Ok(match metadata {
                    Metadata::Text(text) => self.module.metadata.text(text),
                    Metadata::Location(location) => self.module.metadata.location(location),
                    other => self.module.metadata.add(other),
                })
            }
        }
    }

    /// The content behind `!12 =`, or of metadata that is written in place.
    fn inline_metadata(&mut self) -> Result<Metadata> {
        let distinct = self.eat_word(b"distinct");
        match self.token.kind {
            Kind::Bang => {
                self.bump();
                if self.token.kind == Kind::Text {
                    return Ok(Metadata::Text(self.string("a string")?));
                }
                let operands = self.metadata_list()?;
                let operands = self.module.metadata.add_operands(&operands);
                Ok(Metadata::Node { distinct, operands })
            }
            Kind::MetadataName => self.specialized(distinct),
            _ => self.expected("metadata"),
        }
    }

    /// `{ metadata, … }`.
    pub(super) fn metadata_list(&mut self) -> Result<Vec<MetadataRef>> {
        self.expect(b'{')?;
        let mut operands = Vec::new();
        if self.eat(b'}') {
            return Ok(operands);
        }
        loop {
            operands.push(self.metadata()?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b'}')?;
        Ok(operands)
    }

    /// A node, a string, `null` or a constant with its type.
    pub(super) fn metadata(&mut self) -> Result<MetadataRef> {
        match self.token.kind {
            Kind::MetadataNumber | Kind::Bang | Kind::MetadataName => Ok(self.metadata_node()?.into()),
            Kind::Word if self.text() == b"null" => {
                self.bump();
                Ok(None.into())
            }
            Kind::Word if self.text() == b"distinct" => Ok(self.metadata_node()?.into()),
            _ => {
                let value = self.typed_constant()?;
                Ok(self.module.metadata.value(value).into())
            }
        }
    }

    /// An argument of type `metadata` inside a function: the part behind the word `metadata`.
    pub(super) fn metadata_operand(&mut self) -> Result<Operand> {
        if self.token.kind == Kind::MetadataName && self.text() == b"!DIArgList" {
            return self.argument_list();
        }
        if matches!(self.token.kind, Kind::MetadataNumber | Kind::Bang | Kind::MetadataName) {
            let id = self.metadata_node()?;
            return Ok(self.module.metadata_operand(id).into());
        }
        let ty = self.value_type()?;
        if ty == self.common.metadata {
            return self.nested(Self::metadata_operand);
        }
        let operand = self.operand(ty)?;
        Ok(match operand.constant() {
            Some(constant) => self.constant_metadata(constant),
            None => self.locals.body.metadata.push(LocalMetadata::Value(operand)).into(),
        })
    }

    fn constant_metadata(&mut self, constant: ConstId) -> Operand {
        let id = self.module.metadata.value(constant);
        self.module.metadata_operand(id).into()
    }

    fn argument_list(&mut self) -> Result<Operand> {
        self.bump();
        self.expect(b'(')?;
        let mut operands = Vec::new();
        while !self.at(b')') {
            let ty = self.value_type()?;
            operands.push(self.operand(ty)?);
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        let list = self.locals.body.add_operands(&operands);
        Ok(self.locals.body.metadata.push(LocalMetadata::Arguments(list)).into())
    }

    /// `!kind node`, as attached to functions, variables and instructions; the kind without `!`.
    pub(super) fn attachment(&mut self) -> Result<(Name, MetadataId)> {
        let token = self.take();
        let kind = self.kind_name(&self.source[token.start as usize + 1..token.end as usize]);
        Ok((kind, self.metadata_node()?))
    }

    /// The name of a kind; a file has few of them.
    fn kind_name(&mut self, bytes: &'a [u8]) -> Name {
        let slot = bytes.len() % self.recent_kinds.len();
        let (known, name) = self.recent_kinds[slot];
        if known == bytes {
            return name;
        }
        let name = self.metadata_name(bytes);
        self.recent_kinds[slot] = (bytes, name);
        name
    }

    /// A name with escapes `\hh`.
    fn metadata_name(&mut self, bytes: &[u8]) -> Name {
        if bytes.contains(&b'\\') {
            let plain = super::lexer::unquote(bytes);
            self.module.names.intern(&plain)
        } else {
            self.module.names.intern(bytes)
        }
    }

    /// `!12 = …`.
    pub(super) fn metadata_definition(&mut self) -> Result<()> {
        let token = self.token;
        let id = self.metadata_number()?;
        if self.module.metadata.get(id) != Metadata::Unknown {
            return Err(self.error_at(token, format!("metadata `{}` is defined twice", self.shown(token))));
        }
        self.expect(b'=')?;
        let metadata = self.inline_metadata()?;
        self.module.metadata.entries[id] = metadata;
        Ok(())
    }

    /// `!name = !{ !1, … }`.
    pub(super) fn named_metadata(&mut self) -> Result<()> {
        let token = self.take();
        let name = self.metadata_name(&self.source[token.start as usize + 1..token.end as usize]);
        self.expect(b'=')?;
        self.eat_word(b"distinct");
        if self.token.kind != Kind::Bang {
            return self.expected("`!{`");
        }
        self.bump();
        let nodes: Vec<MetadataId> = self.metadata_list()?.iter().filter_map(|node| node.expand()).collect();
        let lists = &mut self.module.named_metadata;
        match lists.iter_mut().find(|(known, _)| *known == name) {
            Some((_, known)) => known.extend(nodes),
            None => lists.push((name, nodes)),
        }
        Ok(())
    }
}
