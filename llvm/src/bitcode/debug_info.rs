//! Records of debug information.
//!
//! What reaches `.loc` and `.file` is taken apart; the rest is kept as operands in their order, each as what the table
//! below says it is.

use super::Reader;
use super::bitstream::Record;
use crate::ReadError;
use crate::model::{
    DebugBlock, DebugFile, DebugLocation, DebugSubprogram, DebugUnit, Emission, Field, FieldValue, Metadata,
};

/// Codes of the records that have a form of their own.
mod code {
    pub const FILE: u32 = 16;
    pub const UNIT: u32 = 20;
    pub const SUBPROGRAM: u32 = 21;
    pub const LEXICAL_BLOCK: u32 = 22;
    pub const LEXICAL_BLOCK_FILE: u32 = 23;
    pub const EXPRESSION: u32 = 29;
}

/// The other records: code, name, and what the operands after the first are: `m` metadata, `n` a number. The last
/// letter goes on for all that follow.
const OTHERS: &[(u32, &str, &str)] = &[
    (12, "GenericDINode", "nnm"),
    (13, "DISubrange", "mmmm"),
    (14, "DIEnumerator", "nmn"),
    (15, "DIBasicType", "nmnnnn"),
    (17, "DIDerivedType", "nmmnmmnnnnmnmnmn"),
    (18, "DICompositeType", "nmmnmmnnnnmnmmmmmmmmmn"),
    (19, "DISubroutineType", "nmn"),
    (24, "DINamespace", "mmnn"),
    (25, "DITemplateTypeParameter", "mmn"),
    (26, "DITemplateValueParameter", "nmmnm"),
    (27, "DIGlobalVariable", "mmmmnmnnmmnm"),
    (28, "DILocalVariable", "mmmnmnnnm"),
    (30, "DIObjCProperty", "mmnmmnm"),
    (31, "DIImportedEntity", "nmmnmmm"),
    (32, "DIModule", "mmmmmnn"),
    (33, "DIMacro", "nnmm"),
    (34, "DIMacroFile", "nnmm"),
    (37, "DIGlobalVariableExpression", "mm"),
    (40, "DILabel", "mmmn"),
    (41, "DIStringType", "nmmmmnnn"),
    (44, "DICommonBlock", "mmmmn"),
    (45, "DIGenericSubrange", "mmmm"),
    (47, "DIAssignID", "n"),
    (48, "DISubrangeType", "mmnmnnnmmmmm"),
    (49, "DIFixedPointType", "nmmnnnnnnnn"),
];

/// The position of `!DILocation`.
pub fn location(reader: &mut Reader<'_, '_>, record: &Record) -> Result<DebugLocation, ReadError> {
    let [distinct, line, column, scope, inlined_at, ..] = record.values[..] else {
        return Err(record.error("the record of a location is too short"));
    };
    Ok(DebugLocation {
        distinct: distinct & 1 != 0,
        line: line as u32,
        column: column as u32,
        scope: reader.module_metadata(scope).into(),
        inlined_at: reader.optional_metadata(inlined_at),
        implicit: record.get(5).unwrap_or(0) != 0,
    })
}

/// What any other record of debug information says.
pub fn read(reader: &mut Reader<'_, '_>, record: &Record) -> Result<Metadata, ReadError> {
    let value = |index: usize| record.get(index).unwrap_or(0);
    let distinct = value(0) & 1 != 0;
    Ok(match record.code {
        code::FILE => {
            let (filename, directory) = (reader.optional_text(value(1)), reader.optional_text(value(2)));
            Metadata::File(DebugFile { filename, directory })
        }
        code::UNIT => Metadata::Unit(DebugUnit {
            file: reader.optional_metadata(value(2)),
            producer: reader.optional_text(value(3)),
            optimized: value(4) != 0,
            emission: match value(8) {
                1 => Emission::Full,
                2 => Emission::Lines,
                3 => Emission::Directives,
                _ => Emission::None,
            },
        }),
        code::SUBPROGRAM => Metadata::Subprogram(subprogram(reader, record)),
        code::LEXICAL_BLOCK => Metadata::Block(DebugBlock {
            distinct,
            scope: reader.optional_metadata(value(1)),
            file: reader.optional_metadata(value(2)),
            line: value(3) as u32,
            column: value(4) as u32,
        }),
        code::LEXICAL_BLOCK_FILE => Metadata::Block(DebugBlock {
            distinct,
            scope: reader.optional_metadata(value(1)),
            file: reader.optional_metadata(value(2)),
            line: 0,
            column: 0,
        }),
        code::EXPRESSION => {
            let words = record.values.get(1..).unwrap_or(&[]);
            Metadata::Expression(reader.module.metadata.add_words(words))
        }
        _ => other(reader, record, distinct)?,
    })
}

fn other(reader: &mut Reader<'_, '_>, record: &Record, distinct: bool) -> Result<Metadata, ReadError> {
    let Some((_, name, operands)) = OTHERS.iter().find(|(code, ..)| *code == record.code) else {
        return Err(record.error(format!("there is no kind of metadata record with number {}", record.code)));
    };
    let mut kinds = operands.bytes();
    let mut last = b'n';
    let mut fields = Vec::new();
    for value in record.values.iter().skip(1) {
        last = kinds.next().unwrap_or(last);
        let value = match last {
            b'm' => FieldValue::Node(reader.optional_metadata(*value)),
            _ => FieldValue::Number(*value),
        };
        fields.push(Field { name: None, value });
    }
    let kind = reader.module.names.intern(name.as_bytes());
    let fields = reader.module.metadata.add_fields(&fields);
    Ok(Metadata::Other { kind, distinct, fields })
}

/// `!DISubprogram`, whose record changed its order several times.
fn subprogram(reader: &mut Reader<'_, '_>, record: &Record) -> DebugSubprogram {
    let value = |index: usize| record.get(index).unwrap_or(0);
    let packed_flags = value(0) & 4 != 0;
    let has_unit = value(0) & 2 != 0;
    // Before its flags were packed, two operands stood where there are none now, and later a third.
    let (scope_line, unit) = match (packed_flags, record.values.len()) {
        (true, _) => (7, 12),
        (false, 19..) => (9, 15),
        (false, _) => (9, 14),
    };
    let is_definition = if packed_flags { value(9) & 8 != 0 } else { value(8) != 0 };
    DebugSubprogram {
        distinct: value(0) & 1 != 0 || is_definition,
        name: reader.optional_text(value(2)),
        linkage_name: reader.optional_text(value(3)),
        scope: reader.optional_metadata(value(1)),
        file: reader.optional_metadata(value(4)),
        line: value(5) as u32,
        scope_line: value(scope_line) as u32,
        unit: if has_unit { reader.optional_metadata(value(unit)) } else { None.into() },
    }
}
