//! Source locations.

use ptxc_ir::SourceLoc;

use super::Context;
use crate::model::{DebugFile, Metadata, MetadataId, MetadataRef};

/// Most scopes that are followed to find a file.
const MAX_SCOPES: usize = 256;

impl Context<'_> {
    /// The place that a `!DILocation` is. Code that was inlined is shown where it was written.
    pub fn location(&mut self, id: MetadataId) -> SourceLoc {
        if let Some(known) = self.locations.get(&id) {
            return *known;
        }
        let location = match self.source.metadata.get(id) {
            Metadata::Location(location) if location.line != 0 => {
                let file = self.file_of(location.scope);
                file.map(|file| SourceLoc { file, line: location.line, col: location.column })
            }
            _ => None,
        };
        let location = location.unwrap_or_default();
        self.locations.insert(id, location);
        location
    }

    /// The number of the file that a scope is in.
    fn file_of(&mut self, scope: MetadataRef) -> Option<u32> {
        let mut scope = scope;
        for _ in 0..MAX_SCOPES {
            let (file, outer) = match self.source.metadata.get(scope.expand()?) {
                Metadata::Subprogram(subprogram) => (subprogram.file, subprogram.scope),
                Metadata::Block(block) => (block.file, block.scope),
                Metadata::Unit(unit) => (unit.file, MetadataRef::default()),
                Metadata::File(file) => return Some(self.file(file)),
                _ => return None,
            };
            if let Some(file) = file.expand()
                && let Metadata::File(file) = self.source.metadata.get(file)
            {
                return Some(self.file(file));
            }
            scope = outer;
        }
        None
    }

    fn file(&mut self, file: DebugFile) -> u32 {
        let text = |name: Option<_>| name.map(|name| self.text(name)).unwrap_or_default();
        let (name, directory) = (text(file.filename), text(file.directory));
        let absolute = name.starts_with('/') || directory.is_empty();
        let path = if absolute { name } else { format!("{}/{name}", directory.trim_end_matches('/')) };
        let next = self.files.len() as u32 + 1;
        let number = *self.files.entry(path.clone()).or_insert(next);
        if number == next {
            self.module.files.push((number, path));
        }
        number
    }
}
