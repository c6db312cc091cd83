//! Options that all commands that run RUN lines have in common.

use super::config::Config;
use super::suite::Settings;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Their part of a usage text.
pub(crate) const USAGE: &str = "\
  --feature <name>         what tests may require; more than once
  -D <name>=<value>        %name and %{name} in RUN lines
  --path <folder>          where commands are looked for first; more than once
  --timeout <seconds>      for one test (default: 300, or what runtests.cfg says)
  --output <folder>        where tests write (default: target/runtests)
";

/// What they say.
#[derive(Default)]
pub(crate) struct SharedOptions {
    config: Config,
    search: Vec<String>,
    output: Option<String>,
    /// The options as they were given, to be repeated.
    pub given: Vec<String>,
}

impl SharedOptions {
    /// Whether an option is one of these. All of them have a value.
    pub fn has(name: &str) -> bool {
        matches!(name, "--feature" | "--path" | "--output" | "--timeout" | "-D")
    }

    /// Takes note of an option.
    pub fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        self.given.extend([name.to_string(), quote(&value)]);
        match name {
            "--feature" => _ = self.config.features.insert(value),
            "--path" => self.search.push(value),
            "--output" => self.output = Some(value),
            "--timeout" => {
                let seconds = value.parse().map_err(|_| format!("'{value}' is no number"))?;
                self.config.timeout = Some(Duration::from_secs(seconds));
            }
            _ => {
                let (name, value) = value.split_once('=').ok_or("-D needs name=value")?;
                self.config.substitutions.insert(name.to_string(), value.to_string());
            }
        }
        Ok(())
    }

    /// The settings: these options, and the environment of this process.
    pub fn settings(&self) -> Result<Settings, String> {
        let mut environment: BTreeMap<String, String> = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        // The programs beside this one are those that were built with it.
        let beside = std::env::current_exe().ok().and_then(|exe| Some(exe.parent()?.to_path_buf()));
        let given = self.search.iter().map(PathBuf::from);
        let mut search: Vec<PathBuf> = given.chain(beside).collect();
        for folder in &mut search {
            *folder = std::path::absolute(&*folder).map_err(|error| error.to_string())?;
        }
        let inherited = environment.get("PATH").cloned().unwrap_or_default();
        search.extend(std::env::split_paths(&inherited));
        let search = std::env::join_paths(search).map_err(|error| error.to_string())?;
        environment.insert("PATH".to_string(), search.to_string_lossy().into_owned());
        let output = match &self.output {
            Some(output) => PathBuf::from(output),
            None if PathBuf::from("target").is_dir() => PathBuf::from("target/runtests"),
            None => std::env::temp_dir().join("runtests"),
        };
        Ok(Settings {
            config: self.config.clone(),
            environment,
            output: std::path::absolute(output).map_err(|error| error.to_string())?,
            jobs: std::thread::available_parallelism().map_or(1, usize::from),
            filecheck_in_process: true,
            stop_at_failure: false,
        })
    }
}

/// Quotes a word for a shell where it needs to be.
pub(crate) fn quote(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,+@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_string(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}
