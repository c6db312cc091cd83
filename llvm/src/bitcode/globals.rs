//! The block of a module: symbols, and the order in which its parts are read.

use cranelift_entity::EntityRef;
use cranelift_entity::packed_option::PackedOption;
use rustc_hash::{FxHashMap, FxHashSet};

use super::bitstream::{BLOCK_INFO, Block, Item, Nested, Record};
use super::codes::{self, block};
use super::metadata::{About, Numbered, Owner, read_names};
use super::{ModuleValue, Reader};
use crate::ReadError;
use crate::model::{
    AttributesId, CallingConvention, Comdat, ComdatId, ComdatKind, ConstId, Constant, Function, GlobalId, GlobalKind,
    Linkage, LocalMetadataId, Name, Type, UnnamedAddress, Uses, Variable, Visibility,
};

/// Codes of records.
mod code {
    pub const VERSION: u32 = 1;
    pub const TRIPLE: u32 = 2;
    pub const DATA_LAYOUT: u32 = 3;
    pub const ASSEMBLY: u32 = 4;
    pub const SECTION: u32 = 5;
    pub const VARIABLE: u32 = 7;
    pub const FUNCTION: u32 = 8;
    pub const ALIAS_OLD: u32 = 9;
    pub const COLLECTOR: u32 = 11;
    pub const COMDAT: u32 = 12;
    pub const ALIAS: u32 = 14;
    pub const SOURCE_FILE: u32 = 16;
    pub const IFUNC: u32 = 18;
}

/// Codes of a block of names.
const NAME_OF_VALUE: u32 = 1;
const NAME_OF_FUNCTION: u32 = 3;

/// What is done when everything is known.
#[derive(Default)]
struct Later {
    /// Names of symbols by number, in files that have no table of strings.
    names: FxHashMap<u64, Vec<u8>>,
    sections: Vec<Name>,
    collectors: Vec<Name>,
    comdats: Vec<ComdatId>,
    /// Symbols and what is missing of them, by numbers of values plus one.
    missing: Vec<(GlobalId, Missing, u64)>,
    /// Symbols that this file declares or defines for the module.
    filled: Vec<GlobalId>,
    /// Functions with bodies, in the order of the bodies.
    bodies: Vec<Definition>,
    /// Blocks of functions.
    blocks: Vec<Nested>,
}

#[derive(Clone, Copy)]
enum Missing {
    Initializer,
    Prefix,
    Prologue,
    Personality,
    Aliasee,
    Resolver,
}

/// A function that has a body.
#[derive(Clone, Copy)]
pub struct Definition {
    /// Which.
    pub global: GlobalId,
    /// Number of its type.
    pub ty: u32,
    /// Whether the body is wanted: another file's definition may stand for it.
    pub wanted: bool,
}

impl Reader<'_, '_> {
    /// The symbol that is value `number`.
    pub fn global_numbered(&self, number: u64) -> Option<GlobalId> {
        let value = self.values.get(usize::try_from(number).ok()?)?;
        match self.module.constants.get(value.constant) {
            Constant::Global(global) => Some(global),
            _ => None,
        }
    }

    /// Reads the block of a module.
    pub(super) fn read_module(&mut self, nested: Nested) -> Result<(), ReadError> {
        let mut later = Later::default();
        self.look_ahead(nested, &mut later)?;
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        let mut metadata: Vec<Nested> = Vec::new();
        loop {
            match block.next(&mut record)? {
                Item::End => break,
                Item::Record => self.module_record(&record, &mut later)?,
                Item::Block(nested) => match nested.id {
                    block::TYPES => self.types.read(self.bytes, nested, &self.info, self.module)?,
                    block::ATTRIBUTE_GROUPS => self.read_attribute_groups(nested)?,
                    block::ATTRIBUTES => self.read_attribute_lists(nested)?,
                    block::CONSTANTS => self.module_constants(nested)?,
                    block::METADATA => metadata.push(nested),
                    block::METADATA_KINDS => self.read_metadata_kinds(nested)?,
                    block::BUNDLE_TAGS => self.bundle_tags = self.names(nested)?,
                    block::SCOPES => self.scopes = self.names(nested)?,
                    _ => {}
                },
            }
        }
        // Metadata may name any constant, symbols may have any as contents.
        for nested in metadata {
            self.module_metadata_block(nested)?;
        }
        for (global, what, number) in std::mem::take(&mut later.missing) {
            self.fill_in(global, what, number)?;
        }
        if later.blocks.len() < later.bodies.len() {
            return Err(ReadError::new(block.position(), "the body of a function is missing"));
        }
        if self.library {
            return self.read_needed(&later);
        }
        for (body, nested) in later.bodies.iter().zip(&later.blocks) {
            self.read_function(*body, *nested)?;
        }
        Ok(())
    }

    /// Reads the bodies that are needed for what the module had before, takes out what is not, and hides the rest.
    fn read_needed(&mut self, later: &Later) -> Result<(), ReadError> {
        let mut bodies: FxHashMap<GlobalId, (Definition, Nested)> = FxHashMap::default();
        for (body, nested) in later.bodies.iter().zip(&later.blocks).filter(|(body, _)| body.wanted) {
            bodies.insert(body.global, (*body, *nested));
        }
        let mut uses = Uses::default();
        let mut needed: FxHashSet<GlobalId> = FxHashSet::default();
        let mut work: Vec<GlobalId> = later.filled.iter().copied().filter(|id| id.index() < self.known).collect();
        while let Some(id) = work.pop() {
            if !needed.insert(id) {
                continue;
            }
            if let Some((definition, nested)) = bodies.remove(&id) {
                self.read_function(definition, nested)?;
            }
            uses.of(self.module, id, &mut work);
        }
        let known = self.known;
        self.module.order.retain(|id| id.index() < known || needed.contains(id));
        for id in &later.filled {
            let global = &mut self.module.globals[*id];
            if needed.contains(id) && !global.is_declaration() && !global.linkage.is_local() {
                global.linkage = Linkage::Internal;
                global.visibility = Visibility::Default;
                global.comdat = None.into();
            }
        }
        Ok(())
    }

    fn names(&mut self, nested: Nested) -> Result<Vec<Name>, ReadError> {
        let names = read_names(self.bytes, nested, &self.info)?;
        Ok(names.iter().map(|name| self.module.names.intern(name)).collect())
    }

    /// Finds what is needed before it stands in the file: the version, abbreviations, names, where functions are.
    fn look_ahead(&mut self, nested: Nested, later: &mut Later) -> Result<(), ReadError> {
        let mut block = Block::enter(self.bytes, nested, &self.info);
        let mut record = Record::default();
        let mut symbols: Option<Nested> = None;
        loop {
            match block.next(&mut record)? {
                Item::End => break,
                Item::Record if record.code == code::VERSION => {
                    self.version = record.get(0).unwrap_or(0);
                    if self.version > 2 {
                        return Err(record.error(format!("the file has the unknown version {}", self.version)));
                    }
                }
                Item::Record => {}
                Item::Block(nested) => match nested.id {
                    BLOCK_INFO => self.info.read(self.bytes, nested)?,
                    block::FUNCTION => later.blocks.push(nested),
                    block::SYMBOLS => symbols = Some(nested),
                    _ => {}
                },
            }
        }
        let Some(nested) = symbols.filter(|_| self.version < 2) else { return Ok(()) };
        let mut block = Block::enter(self.bytes, nested, &self.info);
        loop {
            match block.next(&mut record)? {
                Item::End => return Ok(()),
                Item::Record => {
                    let start = match record.code {
                        NAME_OF_VALUE => 1,
                        NAME_OF_FUNCTION => 2,
                        _ => continue,
                    };
                    if let Some(number) = record.get(0) {
                        later.names.insert(number, record.text(start));
                    }
                }
                Item::Block(_) => {}
            }
        }
    }

    fn module_record(&mut self, record: &Record, later: &mut Later) -> Result<(), ReadError> {
        match record.code {
            code::TRIPLE => self.module.triple = Some(self.module.names.intern(&record.text(0))),
            code::DATA_LAYOUT => self.module.data_layout = Some(self.module.names.intern(&record.text(0))),
            code::SOURCE_FILE => self.module.source_filename = Some(self.module.names.intern(&record.text(0))),
            code::ASSEMBLY => {
                let text = record.text(0);
                let text = text.strip_suffix(b"\n").unwrap_or(&text);
                let lines = text.split(|byte| *byte == b'\n');
                let lines: Vec<Name> = lines.map(|line| self.module.names.intern(line)).collect();
                self.module.assembly.extend(lines);
            }
            code::SECTION => later.sections.push(self.module.names.intern(&record.text(0))),
            code::COLLECTOR => later.collectors.push(self.module.names.intern(&record.text(0))),
            code::COMDAT => self.comdat(record, later)?,
            code::VARIABLE => self.variable(record, later)?,
            code::FUNCTION => self.function(record, later)?,
            code::ALIAS | code::ALIAS_OLD | code::IFUNC => self.alias(record, later)?,
            _ => {}
        }
        Ok(())
    }

    /// The name of the symbol that a record defines, and its operands after the name.
    fn named<'r>(&self, record: &'r Record, later: &Later) -> Result<(Vec<u8>, &'r [u64]), ReadError> {
        if self.version < 2 {
            let number = self.values.len() as u64;
            return Ok((later.names.get(&number).cloned().unwrap_or_default(), &record.values));
        }
        let (name, rest) = self.string_of(record)?;
        Ok((name.to_vec(), rest))
    }

    /// The string that the first two operands name.
    fn string_of<'r>(&self, record: &'r Record) -> Result<(&[u8], &'r [u64]), ReadError> {
        let [start, len, rest @ ..] = record.values.as_slice() else {
            return Err(record.error("the record of a symbol is too short"));
        };
        let start = usize::try_from(*start).ok();
        let len = usize::try_from(*len).ok();
        let name = start.zip(len).and_then(|(start, len)| self.strings.get(start..)?.get(..len));
        name.map(|name| (name, rest)).ok_or_else(|| record.error("a name lies outside of the table of strings"))
    }

    fn comdat(&mut self, record: &Record, later: &mut Later) -> Result<(), ReadError> {
        let (name, kind) = match self.version {
            2 => {
                let (name, rest) = self.string_of(record)?;
                (name.to_vec(), rest.first().copied())
            }
            _ => {
                let mut name = record.text(2);
                name.truncate(record.get(1).unwrap_or(0) as usize);
                (name, record.get(0))
            }
        };
        let kind = match kind {
            Some(2) => ComdatKind::ExactMatch,
            Some(3) => ComdatKind::Largest,
            Some(4) => ComdatKind::NoDeduplicate,
            Some(5) => ComdatKind::SameSize,
            _ => ComdatKind::Any,
        };
        let name = self.module.names.intern(&name);
        later.comdats.push(self.module.comdats.push(Comdat { name, kind }));
        Ok(())
    }

    /// Makes the symbol of a record, gives it a number and tells whether it is to be filled. `space` is the address
    /// space, `ty` the number of the type of its contents or function type.
    fn symbol(&mut self, record: &Record, name: &[u8], new: NewSymbol) -> Result<(GlobalId, bool), ReadError> {
        let NewSymbol { space, ty, linkage, defines } = new;
        let ty_id = self.type_id(record, u64::from(ty))?;
        let at = self.place(record);
        let text = (!name.is_empty()).then(|| self.module.names.intern(name));
        let known = text.and_then(|text| self.module.find_global(text));
        let (id, fill) = match (text, known) {
            (None, _) => (self.module.add_global(None, space, at), true),
            (Some(text), None) => (self.module.global(text, space, at), true),
            (Some(_), Some(known)) => match merge(&self.module.globals[known], linkage, defines) {
                Merge::Apart => {
                    let text = self.free_name(name);
                    (self.module.global(text, space, at), true)
                }
                Merge::Replace => (known, true),
                Merge::Keep => (known, false),
                // A library has nothing to say about what the module defines.
                Merge::Refuse if self.library => (known, false),
                Merge::Refuse => {
                    let name = String::from_utf8_lossy(name);
                    return Err(record.error(format!("`{name}` is defined a second time")));
                }
            },
        };
        if fill {
            let global = &mut self.module.globals[id];
            global.space = space;
            global.ty = ty_id.into();
            global.linkage = linkage;
            global.at = at;
            if known != Some(id) {
                self.module.order.push(id);
            }
        }
        let constant = self.module.address_of(id);
        let pointer = self.module.types.pointer(space);
        let ty = self.types.derive(pointer, &[ty]);
        self.values.push(ModuleValue { constant, ty });
        Ok((id, fill))
    }

    /// A name like this one that no symbol has.
    fn free_name(&mut self, name: &[u8]) -> Name {
        for number in self.module.globals.len().. {
            let text = [name, format!(".{number}").as_bytes()].concat();
            let text = self.module.names.intern(&text);
            if self.module.find_global(text).is_none() {
                return text;
            }
        }
        self.module.names.intern(name)
    }

    fn variable(&mut self, record: &Record, later: &mut Later) -> Result<(), ReadError> {
        let (name, values) = self.named(record, later)?;
        let value = |index: usize| values.get(index).copied().unwrap_or(0);
        if values.len() < 6 {
            return Err(record.error("the record of a variable is too short"));
        }
        let (ty, space) = self.contents(record, value(0), value(1) & 2 != 0, value(1) >> 2)?;
        let linkage = codes::linkage(value(3));
        let new = NewSymbol { space, ty, linkage, defines: value(2) != 0 };
        let (id, fill) = self.symbol(record, &name, new)?;
        if !fill {
            return Ok(());
        }
        later.filled.push(id);
        let attributes = self.attributes(record, value(12))?;
        self.describe(record, later, id, [4, 5, 6, 8, 10, 11, 13].map(value))?;
        self.module.globals[id].kind = GlobalKind::Variable(Variable {
            constant: value(1) & 1 != 0,
            thread_local: value(7) != 0,
            externally_initialized: value(9) != 0,
            initializer: None.into(),
            attributes,
        });
        later.missing.push((id, Missing::Initializer, value(2)));
        Ok(())
    }

    /// Gives a variable or a function what both may have: alignment, section, visibility, whether its address matters,
    /// storage in a DLL, comdat, and whether it stays in its object.
    fn describe(
        &mut self,
        record: &Record,
        later: &Later,
        id: GlobalId,
        [align, section, visible, unnamed, dll, comdat, local]: [u64; 7],
    ) -> Result<(), ReadError> {
        let global = &mut self.module.globals[id];
        global.align = alignment(record, align)?;
        global.section = one_of(record, "section", &later.sections, section)?;
        global.comdat = one_of(record, "comdat", &later.comdats, comdat)?.into();
        global.visibility = visibility(visible);
        global.unnamed_address = unnamed_address(unnamed);
        global.dll_storage = dll != 0;
        global.dso_local = local != 0;
        Ok(())
    }

    /// The number of the type of contents and the address space, where an older file gives a pointer to the contents.
    fn contents(&self, record: &Record, ty: u64, explicit: bool, space: u64) -> Result<(u32, u32), ReadError> {
        self.type_id(record, ty)?;
        let number = ty as u32;
        if explicit {
            let space = u32::try_from(space).map_err(|_| record.error("an address space has too large a number"))?;
            return Ok((number, space));
        }
        match (self.kind(number), self.types.pointee(self.module, number)) {
            (Type::Pointer(space), Some(pointee)) => {
                self.type_id(record, u64::from(pointee))?;
                Ok((pointee, space))
            }
            _ => Err(record.error("the type of a symbol is no pointer to something")),
        }
    }

    fn function(&mut self, record: &Record, later: &mut Later) -> Result<(), ReadError> {
        let (name, values) = self.named(record, later)?;
        let value = |index: usize| values.get(index).copied().unwrap_or(0);
        if values.len() < 4 {
            return Err(record.error("the record of a function is too short"));
        }
        self.type_id(record, value(0))?;
        let number = value(0) as u32;
        let is_pointer = matches!(self.kind(number), Type::Pointer(_));
        let space = value(16);
        let (ty, space) = self.contents(record, value(0), !is_pointer, space)?;
        if !matches!(self.kind(ty), Type::Function { .. }) {
            return Err(record.error("the type of a function is another"));
        }
        let has_body = value(2) == 0;
        let linkage = codes::linkage(value(3));
        let (id, fill) = self.symbol(record, &name, NewSymbol { space, ty, linkage, defines: has_body })?;
        if has_body {
            later.bodies.push(Definition { global: id, ty, wanted: fill });
        }
        if !fill {
            return Ok(());
        }
        later.filled.push(id);
        let attributes: PackedOption<AttributesId> = self.attributes(record, value(4))?;
        let attributes = self.typed_attributes(attributes, ty);
        self.describe(record, later, id, [5, 6, 7, 9, 11, 12, 15].map(value))?;
        let gc = one_of(record, "collector", &later.collectors, value(8))?;
        let convention = CallingConvention(value(1) as u32);
        self.module.globals[id].kind =
            GlobalKind::Function(Box::new(Function { convention, attributes, gc, ..Function::default() }));
        for (what, index) in [(Missing::Prologue, 10), (Missing::Prefix, 13), (Missing::Personality, 14)] {
            later.missing.push((id, what, value(index)));
        }
        Ok(())
    }

    fn alias(&mut self, record: &Record, later: &mut Later) -> Result<(), ReadError> {
        let (name, values) = self.named(record, later)?;
        let value = |index: usize| values.get(index).copied().unwrap_or(0);
        let is_old = record.code == code::ALIAS_OLD;
        let first = if is_old { 1 } else { 2 };
        if values.len() < first + 2 {
            return Err(record.error("the record of an alias is too short"));
        }
        let (ty, space) = self.contents(record, value(0), !is_old, if is_old { 0 } else { value(1) })?;
        let linkage = codes::linkage(value(first + 1));
        let (id, fill) = self.symbol(record, &name, NewSymbol { space, ty, linkage, defines: true })?;
        if !fill {
            return Ok(());
        }
        later.filled.push(id);
        let global = &mut self.module.globals[id];
        global.visibility = visibility(value(first + 2));
        let what = if record.code == code::IFUNC { Missing::Resolver } else { Missing::Aliasee };
        if record.code == code::ALIAS {
            global.unnamed_address = unnamed_address(value(first + 5));
            global.dso_local = value(first + 6) != 0;
        }
        // A number of a value here, not one more than it.
        later.missing.push((id, what, value(first).saturating_add(1)));
        Ok(())
    }

    /// Gives a symbol the constant with the number before `number`.
    fn fill_in(&mut self, id: GlobalId, what: Missing, number: u64) -> Result<(), ReadError> {
        let Some(index) = number.checked_sub(1) else { return Ok(()) };
        let found = usize::try_from(index).ok().and_then(|index| self.values.get(index));
        let Some(constant) = found.map(|value| value.constant) else {
            let at = self.module.globals[id].at as usize;
            return Err(ReadError::new(at, format!("a symbol has constant {index} as contents, which does not exist")));
        };
        let global = &mut self.module.globals[id];
        match (&mut global.kind, what) {
            (GlobalKind::Variable(variable), Missing::Initializer) => variable.initializer = constant.into(),
            (GlobalKind::Function(function), Missing::Prefix) => function.prefix = constant.into(),
            (GlobalKind::Function(function), Missing::Prologue) => function.prologue = constant.into(),
            (GlobalKind::Function(function), Missing::Personality) => function.personality = constant.into(),
            (kind, Missing::Aliasee) => *kind = GlobalKind::Alias(constant),
            (kind, Missing::Resolver) => *kind = GlobalKind::IFunc(constant),
            _ => {}
        }
        Ok(())
    }

    fn module_constants(&mut self, nested: Nested) -> Result<(), ReadError> {
        let base = self.values.len();
        let known = |reader: &Reader<'_, '_>, number: usize| -> Option<ConstId> {
            reader.values.get(number).map(|value| value.constant)
        };
        let constants = self.read_constants(nested, base, &known)?;
        self.values.extend(constants.into_iter().map(|made| ModuleValue { constant: made.id, ty: made.ty }));
        Ok(())
    }

    fn module_metadata_block(&mut self, nested: Nested) -> Result<(), ReadError> {
        self.read_metadata(nested, &mut OfModule)
    }
}

/// Metadata of the module: about constants only.
struct OfModule;

impl Owner for OfModule {
    fn value(&mut self, reader: &mut Reader<'_, '_>, record: &Record, _: u64, number: u64) -> Result<About, ReadError> {
        let found = usize::try_from(number).ok().and_then(|number| reader.values.get(number));
        let found = found.map(|value| About::Constant(value.constant));
        found.ok_or_else(|| record.error(format!("there is no constant {number}")))
    }

    fn list(&mut self, _: &Reader<'_, '_>, _: &[Numbered]) -> Option<LocalMetadataId> {
        None
    }
}

/// What a record says of a symbol.
struct NewSymbol {
    space: u32,
    ty: u32,
    linkage: Linkage,
    defines: bool,
}

/// What becomes of a symbol whose name another file has used.
enum Merge {
    /// They have nothing in common but the name.
    Apart,
    /// The new one stands for both.
    Replace,
    /// The known one stands for both.
    Keep,
    /// Both are definitions, and neither may be replaced.
    Refuse,
}

fn merge(known: &crate::model::Global, linkage: Linkage, defines: bool) -> Merge {
    use Linkage::*;
    let replaceable =
        |linkage| matches!(linkage, AvailableExternally | LinkOnce | LinkOnceOdr | Weak | WeakOdr | Common);
    if matches!(known.kind, GlobalKind::Unknown) {
        return Merge::Replace;
    }
    if linkage.is_local() || known.linkage.is_local() {
        return Merge::Apart;
    }
    match (known.is_declaration(), defines) {
        (_, false) => Merge::Keep,
        (true, true) => Merge::Replace,
        (false, true) if replaceable(linkage) => Merge::Keep,
        (false, true) if replaceable(known.linkage) => Merge::Replace,
        (false, true) => Merge::Refuse,
    }
}

/// One of a list of what records before have named, by its index plus one; 0 is none.
fn one_of<T: Copy>(record: &Record, what: &str, list: &[T], number: u64) -> Result<Option<T>, ReadError> {
    let Some(index) = number.checked_sub(1) else { return Ok(None) };
    let found = usize::try_from(index).ok().and_then(|index| list.get(index));
    found.map(|one| Some(*one)).ok_or_else(|| record.error(format!("there is no {what} {number}")))
}

/// An alignment in bytes, of which the file has one more than the logarithm; 0 is none.
fn alignment(record: &Record, number: u64) -> Result<u64, ReadError> {
    match number {
        0 => Ok(0),
        1..=33 => Ok(1 << (number - 1)),
        _ => Err(record.error("an alignment is larger than any")),
    }
}

fn visibility(number: u64) -> Visibility {
    match number {
        1 => Visibility::Hidden,
        2 => Visibility::Protected,
        _ => Visibility::Default,
    }
}

fn unnamed_address(number: u64) -> UnnamedAddress {
    match number {
        1 => UnnamedAddress::Global,
        2 => UnnamedAddress::Local,
        _ => UnnamedAddress::None,
    }
}
