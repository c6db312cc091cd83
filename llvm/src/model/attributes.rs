//! Attributes of functions, parameters, results, calls and variables.
//!
//! Attributes are kept under their names as text spells them, so that a new one needs no code here. Bitcode's numbers
//! become those names in its reader.

use cranelift_entity::packed_option::PackedOption;
use cranelift_entity::{EntityRef, PrimaryMap};

use super::entities::{AttributeSetId, AttributesId, Name, TypeId};
use super::interner::{Interner, List, hash_of};

/// One attribute.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Attribute {
    /// `nounwind`, `align`, `byval`, `nvvm.maxntid`: the word or the text of the string before `=`.
    pub name: Name,
    /// What follows the name.
    pub value: AttributeValue,
}

/// What an attribute says beyond its name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum AttributeValue {
    /// A word alone: `nounwind`.
    Word,
    /// A string attribute; the value is the empty string when none is written: `"nvvm.kernel"`, `"a"="b"`.
    Text(Name),
    /// A number: `align 16`, `dereferenceable(8)`. `memory(…)`, `captures(…)`, `nofpclass(…)`, `allockind(…)`,
    /// `allocsize(…)`, `vscale_range(…)` and `uwtable` are numbers in bitcode's encoding.
    Number(u64),
    /// A type: `byval(%T)`.
    Type(TypeId),
    /// `range(iN lower, upper)`: bits, and place of lower and upper in [`AttributeTable::words`], each in 64-bit words,
    /// least significant first.
    Range {
        /// Width of the numbers.
        bits: u32,
        /// Words of lower, then of upper.
        words: List,
    },
    /// Another list, `initializes((0, 4))`: numbers in [`AttributeTable::words`].
    Numbers(List),
}

/// The attribute sets of a function or call.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Attributes {
    /// Of the function: sets, in [`AttributeTable::sets`]; groups and the attributes written in place.
    pub function: List,
    /// Of the result.
    pub result: PackedOption<AttributeSetId>,
    /// Of the parameters: a set or none each, in [`AttributeTable::params`]; may be shorter than the parameters.
    pub params: List,
}

/// All attributes of a module.
#[derive(Clone, Debug, Default)]
pub struct AttributeTable {
    /// Sets. Readers make an entry for a group when it is mentioned and fill it later.
    pub sets: PrimaryMap<AttributeSetId, List>,
    attributes: Vec<Attribute>,
    function_sets: Vec<AttributeSetId>,
    param_sets: Vec<PackedOption<AttributeSetId>>,
    words: Vec<u64>,
    lists: PrimaryMap<AttributesId, Attributes>,
    index: Interner,
    set_index: Interner,
}

impl AttributeTable {
    /// Adds a set.
    pub fn add_set(&mut self, attributes: &[Attribute]) -> AttributeSetId {
        let list = List::push(&mut self.attributes, attributes);
        self.sets.push(list)
    }

    /// A set that is not changed later; equal ones have equal ids.
    pub fn intern_set(&mut self, attributes: &[Attribute]) -> AttributeSetId {
        let hash = hash_of(attributes);
        let (sets, pool) = (&self.sets, &self.attributes);
        let found = self.set_index.find(hash, |id| sets[AttributeSetId::new(id as usize)].of(pool) == attributes);
        if let Some(found) = found {
            return AttributeSetId::new(found as usize);
        }
        let id = self.add_set(attributes);
        self.set_index.insert(hash, id.as_u32());
        id
    }

    /// Gives a set that was mentioned before (an empty one) its attributes; a second definition adds to the first.
    pub fn define_set(&mut self, set: AttributeSetId, attributes: &[Attribute]) {
        let mut all = self.sets[set].of(&self.attributes).to_vec();
        all.extend_from_slice(attributes);
        self.sets[set] = List::push(&mut self.attributes, &all);
    }

    /// Adds words of a range or list to the pool.
    pub fn add_words(&mut self, words: &[u64]) -> List {
        List::push(&mut self.words, words)
    }

    /// The words of a range or list.
    pub fn words(&self, list: List) -> &[u64] {
        list.of(&self.words)
    }

    /// The attribute sets of a function or call; equal arguments give equal ids.
    pub fn attributes(
        &mut self,
        function: &[AttributeSetId],
        result: PackedOption<AttributeSetId>,
        params: &[PackedOption<AttributeSetId>],
    ) -> AttributesId {
        let hash = hash_of(&(function, result, params));
        let found = self.index.find(hash, |id| {
            let entry = self.lists[AttributesId::new(id as usize)];
            entry.result == result && self.sets(entry.function) == function && self.params(entry.params) == params
        });
        if let Some(found) = found {
            return AttributesId::new(found as usize);
        }
        let function = List::push(&mut self.function_sets, function);
        let params = List::push(&mut self.param_sets, params);
        let id = self.lists.push(Attributes { function, result, params });
        self.index.insert(hash, id.as_u32());
        id
    }

    /// The attribute sets by id.
    pub fn get(&self, id: AttributesId) -> Attributes {
        self.lists[id]
    }

    /// The sets of [`Attributes::function`].
    pub fn sets(&self, list: List) -> &[AttributeSetId] {
        list.of(&self.function_sets)
    }

    /// The sets of [`Attributes::params`].
    pub fn params(&self, list: List) -> &[PackedOption<AttributeSetId>] {
        list.of(&self.param_sets)
    }

    /// The attributes of a set.
    pub fn set(&self, set: AttributeSetId) -> &[Attribute] {
        self.sets[set].of(&self.attributes)
    }

    /// The attributes of the function of an id; none for `None`.
    pub fn function(&self, id: PackedOption<AttributesId>) -> impl Iterator<Item = Attribute> + '_ {
        let sets = id.expand().map_or(&[][..], |id| self.sets(self.get(id).function));
        sets.iter().flat_map(|set| self.set(*set).iter().copied())
    }

    /// The attributes of the result.
    pub fn result(&self, id: PackedOption<AttributesId>) -> &[Attribute] {
        id.expand().and_then(|id| self.get(id).result.expand()).map_or(&[], |set| self.set(set))
    }

    /// The attributes of parameter `index`.
    pub fn param(&self, id: PackedOption<AttributesId>, index: usize) -> &[Attribute] {
        let Some(id) = id.expand() else { return &[] };
        let set = self.params(self.get(id).params).get(index).and_then(|set| set.expand());
        set.map_or(&[], |set| self.set(set))
    }
}
