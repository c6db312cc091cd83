//! Specialized nodes: `!DILocation(line: 1, …)`.

use super::lexer::Kind;
use super::parser::{Parser, Result};
use crate::model::{
    DebugBlock, DebugFile, DebugLocation, DebugSubprogram, DebugUnit, Emission, Field, FieldValue, Metadata,
    MetadataRef, Name,
};

/// A field as written.
struct Written<'a> {
    name: &'a [u8],
    value: Value<'a>,
}

#[derive(Clone, Copy)]
enum Value<'a> {
    Field(FieldValue),
    Word(&'a [u8]),
}

/// Fields of one node, looked up by name.
struct Fields<'a>(Vec<Written<'a>>);

impl<'a> Fields<'a> {
    fn find(&self, name: &str) -> Option<Value<'a>> {
        self.0.iter().find(|field| field.name == name.as_bytes()).map(|field| field.value)
    }

    fn node(&self, name: &str) -> MetadataRef {
        match self.find(name) {
            Some(Value::Field(FieldValue::Node(node))) => node,
            _ => None.into(),
        }
    }

    fn number(&self, name: &str) -> u32 {
        match self.find(name) {
            Some(Value::Field(FieldValue::Number(number))) => u32::try_from(number).unwrap_or(0),
            _ => 0,
        }
    }

    fn word(&self, name: &str) -> &'a [u8] {
        match self.find(name) {
            Some(Value::Word(word)) => word,
            _ => b"",
        }
    }
}

impl<'a> Parser<'a> {
    /// A node with a name, which is next.
    pub(super) fn specialized(&mut self, distinct: bool) -> Result<Metadata> {
        let token = self.take();
        let kind = &self.source[token.start as usize + 1..token.end as usize];
        match kind {
            b"DILocation" => return self.location(distinct),
            b"DIExpression" => return self.debug_expression(),
            b"DIArgList" => return self.error("`!DIArgList` stands in functions only"),
            _ => {}
        }
        let fields = self.specialized_fields()?;
        let text = |name: &str| self.module.metadata.as_text(fields.node(name));
        Ok(match kind {
            b"DIFile" => Metadata::File(DebugFile { filename: text("filename"), directory: text("directory") }),
            b"DISubprogram" => Metadata::Subprogram(DebugSubprogram {
                distinct,
                name: text("name"),
                linkage_name: text("linkageName"),
                scope: fields.node("scope"),
                file: fields.node("file"),
                line: fields.number("line"),
                scope_line: fields.number("scopeLine"),
                unit: fields.node("unit"),
            }),
            b"DILexicalBlock" | b"DILexicalBlockFile" => Metadata::Block(DebugBlock {
                distinct,
                scope: fields.node("scope"),
                file: fields.node("file"),
                line: fields.number("line"),
                column: fields.number("column"),
            }),
            b"DICompileUnit" => Metadata::Unit(DebugUnit {
                file: fields.node("file"),
                producer: text("producer"),
                optimized: fields.word("isOptimized") == b"true",
                emission: match fields.word("emissionKind") {
                    b"FullDebug" => Emission::Full,
                    b"LineTablesOnly" => Emission::Lines,
                    b"DebugDirectivesOnly" => Emission::Directives,
                    _ => Emission::None,
                },
            }),
            _ => self.other_node(kind, distinct, &fields),
        })
    }

    fn other_node(&mut self, kind: &[u8], distinct: bool, fields: &Fields<'_>) -> Metadata {
        let names = &mut self.module.names;
        let kept: Vec<Field> = fields
            .0
            .iter()
            .map(|field| Field {
                name: (!field.name.is_empty()).then(|| names.intern(field.name)),
                value: match field.value {
                    Value::Field(value) => value,
                    Value::Word(word) => FieldValue::Word(names.intern(word)),
                },
            })
            .collect();
        let kind: Name = names.intern(kind);
        Metadata::Other { kind, distinct, fields: self.module.metadata.add_fields(&kept) }
    }

    fn location(&mut self, distinct: bool) -> Result<Metadata> {
        let none = MetadataRef::default();
        let mut location =
            DebugLocation { distinct, line: 0, column: 0, scope: none, inlined_at: none, implicit: false };
        self.expect(b'(')?;
        while self.token.kind == Kind::Label {
            let token = self.take();
            match self.bytes(token) {
                b"line" => location.line = self.small_number("a line")?,
                b"column" => location.column = self.small_number("a column")?,
                b"scope" => location.scope = self.metadata()?,
                b"inlinedAt" => location.inlined_at = self.metadata()?,
                b"isImplicitCode" => location.implicit = self.word("`true` or `false`")? == b"true",
                _ => drop(self.field_value()?),
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(Metadata::Location(location))
    }

    fn specialized_fields(&mut self) -> Result<Fields<'a>> {
        self.expect(b'(')?;
        let mut fields = Vec::new();
        while !self.at(b')') {
            let name: &[u8] = if self.token.kind == Kind::Label {
                let token = self.take();
                self.bytes(token)
            } else {
                b""
            };
            let value = self.field_value()?;
            fields.push(Written { name, value });
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(Fields(fields))
    }

    fn field_value(&mut self) -> Result<Value<'a>> {
        let value = match self.token.kind {
            Kind::Integer => {
                let text = self.text();
                let token = self.take();
                match super::numbers::integer_words(text, 128) {
                    Ok(words) => FieldValue::Number(words[0]),
                    Err(message) => return Err(self.error_at(token, message)),
                }
            }
            Kind::Text => {
                let text = self.string("a string")?;
                // The empty string is no string.
                let empty = text == self.common.no_name;
                let node = (!empty).then(|| self.module.metadata.text(text));
                FieldValue::Node(node.into())
            }
            Kind::Punctuation(b'{') => {
                let operands = self.nested(Self::metadata_list)?;
                FieldValue::List(self.module.metadata.add_operands(&operands))
            }
            Kind::MetadataNumber | Kind::MetadataName | Kind::Bang => FieldValue::Node(self.metadata()?),
            Kind::Word => return self.word_value(),
            _ => FieldValue::Node(self.metadata()?),
        };
        Ok(Value::Field(value))
    }

    /// `null`, a constant with its type (as in template parameters), or words joined by `|`.
    fn word_value(&mut self) -> Result<Value<'a>> {
        let next = self.second().kind;
        if self.text() == b"null" || !matches!(next, Kind::Punctuation(b',' | b')' | b'|')) {
            return Ok(Value::Field(FieldValue::Node(self.metadata()?)));
        }
        let start = self.token.start;
        loop {
            self.bump();
            if !self.eat(b'|') {
                break;
            }
        }
        Ok(Value::Word(&self.source[start as usize..self.previous_end as usize]))
    }

    fn debug_expression(&mut self) -> Result<Metadata> {
        self.expect(b'(')?;
        let mut words = Vec::new();
        while !self.at(b')') {
            if self.token.kind == Kind::Integer {
                match super::numbers::integer_words(self.text(), 128) {
                    Ok(number) => words.push(number[0]),
                    Err(message) => return self.error(message),
                }
                self.bump();
            } else {
                words.push(operation(self.word("an operation of an expression")?));
            }
            if !self.eat(b',') {
                break;
            }
        }
        self.expect(b')')?;
        Ok(Metadata::Expression(self.module.metadata.add_words(&words)))
    }
}

/// Numbers of DWARF operations that occur in expressions, and of the encodings that conversions name.
const OPERATIONS: &[(&str, u64)] = &[
    ("DW_OP_addr", 0x03),
    ("DW_OP_deref", 0x06),
    ("DW_OP_constu", 0x10),
    ("DW_OP_consts", 0x11),
    ("DW_OP_dup", 0x12),
    ("DW_OP_drop", 0x13),
    ("DW_OP_over", 0x14),
    ("DW_OP_pick", 0x15),
    ("DW_OP_swap", 0x16),
    ("DW_OP_rot", 0x17),
    ("DW_OP_xderef", 0x18),
    ("DW_OP_abs", 0x19),
    ("DW_OP_and", 0x1a),
    ("DW_OP_div", 0x1b),
    ("DW_OP_minus", 0x1c),
    ("DW_OP_mod", 0x1d),
    ("DW_OP_mul", 0x1e),
    ("DW_OP_neg", 0x1f),
    ("DW_OP_not", 0x20),
    ("DW_OP_or", 0x21),
    ("DW_OP_plus", 0x22),
    ("DW_OP_plus_uconst", 0x23),
    ("DW_OP_shl", 0x24),
    ("DW_OP_shr", 0x25),
    ("DW_OP_shra", 0x26),
    ("DW_OP_xor", 0x27),
    ("DW_OP_eq", 0x29),
    ("DW_OP_ge", 0x2a),
    ("DW_OP_gt", 0x2b),
    ("DW_OP_le", 0x2c),
    ("DW_OP_lt", 0x2d),
    ("DW_OP_ne", 0x2e),
    ("DW_OP_regx", 0x90),
    ("DW_OP_bregx", 0x92),
    ("DW_OP_deref_size", 0x94),
    ("DW_OP_push_object_address", 0x97),
    ("DW_OP_stack_value", 0x9f),
    ("DW_OP_LLVM_fragment", 0x1000),
    ("DW_OP_LLVM_convert", 0x1001),
    ("DW_OP_LLVM_tag_offset", 0x1002),
    ("DW_OP_LLVM_entry_value", 0x1003),
    ("DW_OP_LLVM_implicit_pointer", 0x1004),
    ("DW_OP_LLVM_arg", 0x1005),
    ("DW_OP_LLVM_extract_bits_sext", 0x1006),
    ("DW_OP_LLVM_extract_bits_zext", 0x1007),
    ("DW_ATE_boolean", 2),
    ("DW_ATE_float", 4),
    ("DW_ATE_signed", 5),
    ("DW_ATE_unsigned", 7),
];

/// The number of an operation; `DW_OP_lit0` to `31` are numbers in a row. Unknown ones are 0.
fn operation(word: &[u8]) -> u64 {
    let literal = word.strip_prefix(b"DW_OP_lit").and_then(super::parser::parse_number);
    match literal {
        Some(number @ 0..=31) => 0x30 + number,
        _ => OPERATIONS.iter().find(|(name, _)| name.as_bytes() == word).map_or(0, |(_, number)| *number),
    }
}
