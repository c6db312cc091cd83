//! Typed indices into the arenas of a [`super::Module`] and of a [`super::Body`].

use cranelift_entity::entity_impl;

macro_rules! entity {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(u32);
        entity_impl!($name, $prefix);
    };
}

entity! {
    /// An interned byte string: a name, the text of an attribute, a metadata string. Equal strings have equal ids.
    Name, "name"
}
entity! {
    /// An interned type. Equal types have equal ids; named structs are equal when they are the same entry.
    TypeId, "type"
}
entity! {
    /// A named struct: the place of a definition `%name = type …`.
    StructId, "struct"
}
entity! {
    /// An interned constant. Equal constants have equal ids.
    ConstId, "const"
}
entity! {
    /// A global variable, function, alias or ifunc.
    GlobalId, "global"
}
entity! {
    /// A metadata node, string or value.
    MetadataId, "md"
}
entity! {
    /// A set of attributes: an attribute group, or the attributes written at one place.
    AttributeSetId, "attrs"
}
entity! {
    /// The attribute sets of one function or call.
    AttributesId, "attributes"
}
entity! {
    /// A piece of inline assembly.
    AssemblyId, "asm"
}
entity! {
    /// The address of a block taken as a constant.
    BlockAddressId, "blockaddress"
}
entity! {
    /// A comdat.
    ComdatId, "comdat"
}
entity! {
    /// A value defined in a function body: an argument or the result of an instruction.
    ValueId, "v"
}
entity! {
    /// A block of a function body.
    BlockId, "block"
}
entity! {
    /// An instruction of a function body; ids follow the order of the body.
    InstId, "inst"
}
entity! {
    /// Callee, arguments and attributes of a call, in its body.
    CallId, "call"
}
entity! {
    /// Metadata that names a value of the function, in its body.
    LocalMetadataId, "localmd"
}
