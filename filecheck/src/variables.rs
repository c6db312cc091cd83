//! The variables of a check: what patterns define and later patterns use.

use crate::number::Format;
use num_bigint::BigInt;
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// A numeric variable's place in [`Variables`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NumericId(usize);

/// A variable that holds a number.
#[derive(Clone, Debug)]
pub(crate) struct NumericVariable {
    pub name: String,
    pub format: Format,
    /// The check line that defines it; `None` on the command line or without definition.
    pub line: Option<usize>,
    pub value: Option<BigInt>,
    /// Where in the input the value was captured.
    pub captured: Option<Range<usize>>,
}

/// The value of a string variable.
#[derive(Clone, Debug)]
pub(crate) struct StringValue {
    pub text: Vec<u8>,
    /// Where in the input it was captured.
    pub captured: Option<Range<usize>>,
}

/// All variables, by name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Variables {
    numeric: Vec<NumericVariable>,
    numeric_names: HashMap<String, NumericId>,
    strings: HashMap<String, StringValue>,
    /// Names that some pattern read so far defines as strings.
    string_names: HashSet<String>,
}

impl Variables {
    pub fn numeric_by_name(&self, name: &str) -> Option<NumericId> {
        self.numeric_names.get(name).copied()
    }

    pub fn numeric(&self, id: NumericId) -> &NumericVariable {
        &self.numeric[id.0]
    }

    pub fn add_numeric(&mut self, name: &str, format: Format, line: Option<usize>) -> NumericId {
        let id = NumericId(self.numeric.len());
        self.numeric.push(NumericVariable { name: name.to_string(), format, line, value: None, captured: None });
        id
    }

    /// Makes a name refer to a variable from here on.
    pub fn name_numeric(&mut self, id: NumericId) {
        let name = self.numeric[id.0].name.clone();
        self.numeric_names.insert(name, id);
    }

    pub fn set_numeric(&mut self, id: NumericId, value: Option<BigInt>, at: Option<Range<usize>>) {
        let variable = &mut self.numeric[id.0];
        variable.value = value;
        variable.captured = at;
    }

    pub fn string(&self, name: &str) -> Option<&StringValue> {
        self.strings.get(name)
    }

    pub fn set_string(&mut self, name: &str, text: &[u8], captured: Option<Range<usize>>) {
        match self.strings.get_mut(name) {
            Some(value) => {
                value.text.clear();
                value.text.extend_from_slice(text);
                value.captured = captured;
            }
            None => {
                let value = StringValue { text: text.to_vec(), captured };
                self.strings.insert(name.to_string(), value);
            }
        }
    }

    pub fn declare_string(&mut self, name: &str) {
        self.string_names.insert(name.to_string());
    }

    pub fn is_declared_string(&self, name: &str) -> bool {
        self.string_names.contains(name)
    }

    /// Forgets the values of all variables whose names do not begin with `$`.
    pub fn clear_local(&mut self) {
        self.strings.retain(|name, _| name.starts_with('$'));
        for variable in self.numeric.iter_mut().filter(|variable| !variable.name.starts_with('$')) {
            variable.value = None;
            variable.captured = None;
        }
    }
}
