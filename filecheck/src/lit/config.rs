//! `runtests.cfg`: which files of a folder are tests, and what they can count on.
//!
//! Lines of `key = value`; `#` begins a comment. A folder inherits from the folders around it.
//!
//! ```text
//! suffixes = .ir .ptx          # what the names of tests end in
//! excludes = Inputs            # names that are not looked at
//! features = fast linux-only   # always available here
//! timeout = 60                 # seconds for one test
//! substitute %opt = ptxc -O3   # in RUN lines, as %opt and %{opt}
//! tool ptxas = $PTXAS ptxas    # the first that exists becomes %ptxas, and the feature ptxas
//! feature gpu = /dev/nvidiactl # available if a file exists
//! ```

use super::execute::find_in_path;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The name of the file.
pub const FILE_NAME: &str = "runtests.cfg";

/// What holds in a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// What the names of tests end in; none means every file with a RUN line.
    pub suffixes: Vec<String>,
    /// Names of files and folders that are not looked at.
    pub excludes: BTreeSet<String>,
    /// What tests may require.
    pub features: BTreeSet<String>,
    /// What stands for what in RUN lines, without the `%`.
    pub substitutions: BTreeMap<String, String>,
    /// How long a test may take.
    pub timeout: Option<Duration>,
}

impl Config {
    /// Adds what a file says to what its parents say. `folder` is where the file is.
    ///
    /// # Errors
    /// The first line that makes no sense, with its number.
    pub fn extend(&mut self, text: &str, folder: &Path, path: &str) -> Result<(), String> {
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let result = match line.split_once('=') {
                Some((key, value)) => self.set(key.trim(), value.trim(), folder, path),
                None => Err("expected key = value".to_string()),
            };
            result.map_err(|error| format!("line {}: {error}", index + 1))?;
        }
        Ok(())
    }

    fn set(&mut self, key: &str, value: &str, folder: &Path, path: &str) -> Result<(), String> {
        let words = || value.split_whitespace().map(str::to_string);
        match key.split_once(char::is_whitespace) {
            None => match key {
                "suffixes" => self.suffixes = words().collect(),
                "excludes" => self.excludes.extend(words()),
                "features" => self.features.extend(words()),
                "timeout" => {
                    let seconds = value.parse().map_err(|_| format!("'{value}' is no number"))?;
                    self.timeout = Some(Duration::from_secs(seconds));
                }
                _ => return Err(format!("unknown key '{key}'")),
            },
            Some(("substitute", name)) => {
                let name = name.trim().trim_start_matches('%');
                self.substitutions.insert(name.to_string(), value.to_string());
            }
            Some(("tool", name)) => {
                if let Some(tool) = words().find_map(|candidate| find_tool(&candidate, folder, path)) {
                    self.features.insert(name.trim().to_string());
                    let tool = tool.to_string_lossy().into_owned();
                    self.substitutions.insert(name.trim().to_string(), tool);
                }
            }
            Some(("feature", name)) => {
                if words().any(|file| folder.join(file).exists()) {
                    self.features.insert(name.trim().to_string());
                }
            }
            Some(_) => return Err(format!("unknown key '{key}'")),
        }
        Ok(())
    }

    /// Whether a file of this name in this folder is a test.
    pub fn is_test(&self, name: &str) -> bool {
        name != FILE_NAME
            && (self.suffixes.is_empty() || self.suffixes.iter().any(|suffix| name.ends_with(suffix.as_str())))
    }
}

/// A tool named by `$VARIABLE`, by a path with `/` relative to the folder, or by a name on PATH.
fn find_tool(candidate: &str, folder: &Path, path: &str) -> Option<PathBuf> {
    if let Some(variable) = candidate.strip_prefix('$') {
        let value = std::env::var(variable).ok().filter(|value| !value.is_empty())?;
        return find_tool(&value, folder, path);
    }
    if candidate.contains('/') {
        return Some(folder.join(candidate)).filter(|path| path.is_file());
    }
    find_in_path(candidate, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_say_what_holds() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tool"), "").unwrap();
        let mut config = Config::default();
        let text = "suffixes = .ir .x # these\n\nexcludes = Inputs\ntimeout = 5\n\
                    substitute %opt = ptxc -O3\ntool t = $NO_SUCH_VARIABLE nowhere ./tool\n\
                    tool u = nowhere\nfeature f = tool\nfeature g = none\n";
        config.extend(text, folder.path(), "/nonexistent").unwrap();
        assert!(config.is_test("a.ir") && !config.is_test("a.txt"));
        assert_eq!(config.timeout, Some(Duration::from_secs(5)));
        assert_eq!(config.substitutions["opt"], "ptxc -O3");
        assert!(config.substitutions["t"].ends_with("tool"));
        assert_eq!(config.features, ["f", "t"].map(str::to_string).into());
    }

    #[test]
    fn errors_name_the_line() {
        let mut config = Config::default();
        let error = config.extend("features = a\nnonsense", Path::new("."), "").unwrap_err();
        assert_eq!(error, "line 2: expected key = value");
        let error = config.extend("color = red", Path::new("."), "").unwrap_err();
        assert_eq!(error, "line 1: unknown key 'color'");
    }
}
