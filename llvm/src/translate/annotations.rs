//! `!nvvm.annotations`: what older frontends say about kernels and variables in metadata.

use rustc_hash::FxHashMap;

use crate::model::{Constant, GlobalId, Metadata, MetadataRef, Module};

/// The annotations by symbol, in the order of the file.
#[derive(Clone, Default, Debug)]
pub(super) struct Annotations {
    numbers: FxHashMap<GlobalId, Vec<(String, u64)>>,
    /// Parameters (from 1) that are `grid_constant`.
    grid_constants: FxHashMap<GlobalId, Vec<u64>>,
}

impl Annotations {
    /// Reads `!nvvm.annotations`: nodes of a symbol and pairs of key and number. What has another form is passed over.
    pub fn read(module: &Module) -> Annotations {
        let mut out = Annotations::default();
        for node in module.named_metadata("nvvm.annotations") {
            let Some((symbol, pairs)) = module.metadata.node(*node).split_first() else { continue };
            let Some(symbol) = symbol_of(module, *symbol) else { continue };
            for pair in pairs.chunks_exact(2) {
                let Some(key) = module.metadata.as_text(pair[0]) else { continue };
                let key = module.names.text(key).into_owned();
                if let Some(number) = number(module, pair[1]) {
                    out.numbers.entry(symbol).or_default().push((key, number));
                } else if key == "grid_constant"
                    && let Some(list) = pair[1].expand()
                {
                    let numbers = module.metadata.node(list).iter().filter_map(|entry| number(module, *entry));
                    out.grid_constants.entry(symbol).or_default().extend(numbers);
                }
            }
        }
        out
    }

    /// The number of the last annotation of that key.
    pub fn number(&self, symbol: GlobalId, key: &str) -> Option<u64> {
        self.numbers.get(&symbol)?.iter().rev().find(|(k, _)| k == key).map(|(_, number)| *number)
    }

    /// Whether the annotation is there and not zero.
    pub fn has(&self, symbol: GlobalId, key: &str) -> bool {
        self.number(symbol, key).is_some_and(|number| number != 0)
    }

    /// Whether parameter `index` (from 0) is `grid_constant`.
    pub fn is_grid_constant(&self, symbol: GlobalId, index: usize) -> bool {
        self.grid_constants.get(&symbol).is_some_and(|list| list.contains(&(index as u64 + 1)))
    }
}

fn symbol_of(module: &Module, reference: MetadataRef) -> Option<GlobalId> {
    let mut constant = module.metadata.as_value(reference)?;
    // Files with typed pointers cast the symbol.
    for _ in 0..8 {
        match module.constants.get(constant) {
            Constant::Global(global) => return Some(global),
            Constant::Cast { value, .. } => constant = value,
            _ => return None,
        }
    }
    None
}

fn number(module: &Module, reference: MetadataRef) -> Option<u64> {
    match module.metadata.get(reference.expand()?) {
        Metadata::Value(value) => module.constants.integer(value),
        _ => None,
    }
}
