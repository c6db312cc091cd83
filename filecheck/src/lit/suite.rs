//! Finds tests, runs them in parallel, and says how each of them ended.

use super::config::{self, Config};
use super::execute::{Outcome, Shell};
use super::script::{Script, Verdict};
use super::shell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// How long a test may take where nothing says otherwise.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(300);

/// How the tests are run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Holds everywhere, besides what `runtests.cfg` files say; also wins over them.
    pub config: Config,
    /// The environment of the commands.
    pub environment: BTreeMap<String, String>,
    /// Where tests write; `%t` is in it.
    pub output: PathBuf,
    /// How many tests run at once.
    pub jobs: usize,
    /// Whether FileCheck runs in this process.
    pub filecheck_in_process: bool,
    /// Whether to start no more tests after one failed.
    pub stop_at_failure: bool,
}

/// A test file and what holds for it.
#[derive(Clone, Debug)]
pub struct Test {
    /// The file.
    pub path: PathBuf,
    /// As the user named it, for messages.
    pub name: String,
    /// What holds in its folder.
    pub config: Config,
}

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// As it should.
    Pass,
    /// A command failed.
    Fail(Failure),
    /// A command failed, as expected.
    ExpectedFailure,
    /// No command failed, though one was expected to.
    UnexpectedPass,
    /// It does not apply here, and why.
    Unsupported(String),
    /// It is no proper test, and why.
    Unresolved(String),
    /// It took too long; what it did until then.
    Timeout(Failure),
}

/// The command of a test that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The line of the RUN line.
    pub line: usize,
    /// The command as it was run.
    pub command: String,
    /// Where it was run.
    pub directory: PathBuf,
    /// Why there is no outcome, or what the outcome is.
    pub result: Result<Outcome, String>,
}

impl Ending {
    /// Whether it makes the whole run fail.
    pub fn is_bad(&self) -> bool {
        matches!(self, Self::Fail(_) | Self::UnexpectedPass | Self::Unresolved(_) | Self::Timeout(_))
    }

    /// In one word, as lit says it.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Pass => "PASS",
            Self::Fail(_) => "FAIL",
            Self::ExpectedFailure => "XFAIL",
            Self::UnexpectedPass => "XPASS",
            Self::Unsupported(_) => "UNSUPPORTED",
            Self::Unresolved(_) => "UNRESOLVED",
            Self::Timeout(_) => "TIMEOUT",
        }
    }
}

/// A test that ran.
#[derive(Clone, Debug)]
pub struct Finished {
    /// Its place among the tests.
    pub index: usize,
    /// How it ended.
    pub ending: Ending,
    /// How long it took.
    pub time: Duration,
}

/// Finds the tests that paths name: files themselves, and all tests in folders, in order of name.
///
/// # Errors
/// A path that does not exist, or a configuration that makes no sense.
pub fn find_tests(paths: &[String], settings: &Settings) -> Result<Vec<Test>, String> {
    let mut finder = Finder { settings, configs: HashMap::new(), tests: Vec::new(), seen: BTreeSet::new() };
    for name in paths {
        let path = std::path::absolute(name).map_err(|error| format!("{name}: {error}"))?;
        if path.is_dir() {
            finder.folder(&path, name)?;
        } else if path.is_file() {
            finder.add(path, name.clone())?;
        } else {
            return Err(format!("{name}: no such file or folder"));
        }
    }
    Ok(finder.tests)
}

struct Finder<'a> {
    settings: &'a Settings,
    configs: HashMap<PathBuf, Config>,
    tests: Vec<Test>,
    seen: BTreeSet<PathBuf>,
}

impl Finder<'_> {
    fn folder(&mut self, path: &Path, name: &str) -> Result<(), String> {
        // Last in, first out: what is pushed in reverse order comes out in order.
        let mut pending = vec![(path.to_path_buf(), name.trim_end_matches('/').to_string())];
        while let Some((path, name)) = pending.pop() {
            if !path.is_dir() {
                self.add(path, name)?;
                continue;
            }
            let config = self.config(&path)?;
            let entries = std::fs::read_dir(&path).map_err(|error| format!("{name}: {error}"))?;
            let mut children = Vec::new();
            for entry in entries.flatten() {
                let child = entry.file_name().to_string_lossy().into_owned();
                let is_folder = entry.path().is_dir();
                if child.starts_with('.') || config.excludes.contains(&child) {
                    continue;
                }
                if is_folder || config.is_test(&child) {
                    children.push((entry.path(), format!("{name}/{child}")));
                }
            }
            children.sort_unstable_by(|a, b| b.cmp(a));
            pending.append(&mut children);
        }
        Ok(())
    }

    fn add(&mut self, path: PathBuf, name: String) -> Result<(), String> {
        let folder = path.parent().unwrap_or(Path::new("/")).to_path_buf();
        let config = self.config(&folder)?;
        if self.seen.insert(path.clone()) {
            self.tests.push(Test { path, name, config });
        }
        Ok(())
    }

    /// What holds in a folder: the files of the folders around it, outermost first.
    fn config(&mut self, folder: &Path) -> Result<Config, String> {
        if let Some(config) = self.configs.get(folder) {
            return Ok(config.clone());
        }
        let mut config = Config::default();
        let ancestors: Vec<&Path> = folder.ancestors().collect();
        let search = self.settings.environment.get("PATH").map_or("", String::as_str);
        for ancestor in ancestors.into_iter().rev() {
            let file = ancestor.join(config::FILE_NAME);
            if let Ok(text) = std::fs::read_to_string(&file) {
                let result = config.extend(&text, ancestor, search);
                result.map_err(|error| format!("{}: {error}", file.display()))?;
            }
        }
        let given = &self.settings.config;
        config.features.extend(given.features.iter().cloned());
        config.substitutions.extend(given.substitutions.clone());
        config.timeout = given.timeout.or(config.timeout);
        self.configs.insert(folder.to_path_buf(), config.clone());
        Ok(config)
    }
}

/// Runs tests in parallel. `report` hears of each as it ends, from one thread; returns all in order.
pub fn run(tests: &[Test], settings: &Settings, mut report: impl FnMut(&Finished)) -> Vec<Finished> {
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let (sender, receiver) = mpsc::channel();
    let mut finished = Vec::with_capacity(tests.len());
    std::thread::scope(|scope| {
        for _ in 0..settings.jobs.clamp(1, tests.len().max(1)) {
            let sender = sender.clone();
            let (next, stop) = (&next, &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(test) = tests.get(index) else {
                        return;
                    };
                    let started = Instant::now();
                    let ending = run_test(test, settings);
                    if settings.stop_at_failure && ending.is_bad() {
                        stop.store(true, Ordering::Relaxed);
                    }
                    let time = started.elapsed();
                    _ = sender.send(Finished { index, ending, time });
                }
            });
        }
        drop(sender);
        for result in receiver {
            report(&result);
            finished.push(result);
        }
    });
    finished.sort_by_key(|result| result.index);
    finished
}

/// Runs one test.
pub fn run_test(test: &Test, settings: &Settings) -> Ending {
    let text = match std::fs::read(&test.path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) => return Ending::Unresolved(format!("cannot read it: {error}")),
    };
    let script = match Script::parse(&text) {
        Ok(script) => script,
        Err(problem) => return Ending::Unresolved(problem),
    };
    let expect_failure = match script.verdict(&test.config.features) {
        Ok(Verdict::Run { expect_failure }) => expect_failure,
        Ok(Verdict::Skip(reason)) => return Ending::Unsupported(reason),
        Err(problem) => return Ending::Unresolved(problem),
    };
    match run_script(test, &script, settings) {
        Ok(None) if expect_failure => Ending::UnexpectedPass,
        Ok(None) => Ending::Pass,
        Ok(Some(failure)) if failure.timed_out() => Ending::Timeout(failure),
        Ok(Some(_)) if expect_failure => Ending::ExpectedFailure,
        Ok(Some(failure)) => Ending::Fail(failure),
        Err(problem) => Ending::Unresolved(problem),
    }
}

impl Failure {
    fn timed_out(&self) -> bool {
        self.result.as_ref().is_ok_and(|outcome| outcome.timed_out)
    }
}

fn run_script(test: &Test, script: &Script, settings: &Settings) -> Result<Option<Failure>, String> {
    let substitutions = Substitutions::new(test, settings)?;
    let mut shell = Shell {
        directory: substitutions.directory.clone(),
        environment: settings.environment.clone(),
        deadline: Instant::now().checked_add(test.config.timeout.unwrap_or(DEFAULT_TIMEOUT)),
        filecheck_in_process: settings.filecheck_in_process,
    };
    for line in &script.run {
        let located = |problem: String| format!("line {}: {problem}", line.number);
        let command = substitutions.apply(&line.text).map_err(located)?;
        let pipelines = shell::parse(&command).map_err(located)?;
        let directory = shell.directory.clone();
        let result = shell.run(&pipelines);
        if !matches!(&result, Ok(outcome) if outcome.status == 0 && !outcome.timed_out) {
            let command = command.split_whitespace().collect::<Vec<_>>().join(" ");
            return Ok(Some(Failure { line: line.number, command, directory, result }));
        }
    }
    Ok(None)
}

/// What stands for what in the RUN lines of one test.
pub struct Substitutions {
    /// Where the commands run.
    pub directory: PathBuf,
    /// Longest names first.
    names: Vec<(String, String)>,
}

impl Substitutions {
    /// Makes the folder that a test writes to, empty of what an earlier run left of this test.
    ///
    /// # Errors
    /// A folder that cannot be made.
    pub fn new(test: &Test, settings: &Settings) -> Result<Self, String> {
        let folder = test.path.parent().unwrap_or(Path::new("/"));
        let file = test.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // Tests of one name in different folders must not meet.
        let inside: PathBuf = folder.components().skip(1).collect();
        let directory = settings.output.join(inside);
        std::fs::create_dir_all(&directory)
            .map_err(|error| format!("cannot make '{}': {error}", directory.display()))?;
        let temporary = directory.join(format!("{file}.tmp"));
        if temporary.is_dir() {
            _ = std::fs::remove_dir_all(&temporary);
        } else {
            _ = std::fs::remove_file(&temporary);
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut names: Vec<(String, String)> = vec![
            ("s".into(), text(&test.path)),
            ("S".into(), text(folder)),
            ("t".into(), text(&temporary)),
            ("T".into(), text(&directory)),
            ("basename_s".into(), file.clone()),
            ("basename_t".into(), format!("{file}.tmp")),
        ];
        names.extend(test.config.substitutions.clone());
        names.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
        Ok(Self { directory, names })
    }

    /// Replaces `%name` and `%{name}`; `%%` is a percent sign.
    ///
    /// # Errors
    /// `%{name}` with an unknown name, or substitutions that never come to an end.
    pub fn apply(&self, text: &str) -> Result<String, String> {
        /// What a substitution stands for may hold others, to this depth.
        const DEPTH: usize = 8;
        let mut text = text.to_string();
        for _ in 0..DEPTH {
            let (replaced, changed) = self.apply_once(&text)?;
            text = replaced;
            if !changed {
                return Ok(text.replace("%%", "%"));
            }
        }
        Err(format!("substitutions do not come to an end: {text}"))
    }

    fn apply_once(&self, text: &str) -> Result<(String, bool), String> {
        let mut out = String::with_capacity(text.len());
        let mut changed = false;
        let mut rest = text;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix('%') {
                out.push_str("%%");
                rest = after;
                continue;
            }
            let braced = rest.strip_prefix('{').and_then(|inner| inner.split_once('}'));
            let found = match braced {
                Some((name, after)) => {
                    let found = self.names.iter().find(|(known, _)| known == name);
                    let (_, value) = found.ok_or_else(|| format!("nothing is known as %{{{name}}}"))?;
                    Some((value, after))
                }
                None => self
                    .names
                    .iter()
                    .find_map(|(name, value)| rest.strip_prefix(name.as_str()).map(|after| (value, after))),
            };
            match found {
                Some((value, after)) => {
                    out.push_str(value);
                    rest = after;
                    changed = true;
                }
                None => out.push('%'),
            }
        }
        out.push_str(rest);
        Ok((out, changed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder {
        root: tempfile::TempDir,
        settings: Settings,
    }

    fn folder(files: &[(&str, &str)]) -> Folder {
        let root = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = root.path().join("tests").join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let settings = Settings {
            config: Config::default(),
            environment: std::env::vars().collect(),
            output: root.path().join("output"),
            jobs: 2,
            filecheck_in_process: true,
            stop_at_failure: false,
        };
        Folder { root, settings }
    }

    fn run_all(folder: &Folder) -> Vec<(String, Ending)> {
        let path = folder.root.path().join("tests");
        let tests = find_tests(&[path.to_string_lossy().into_owned()], &folder.settings).unwrap();
        let results = run(&tests, &folder.settings, |_| {});
        let name = |test: &Test| test.path.strip_prefix(&path).unwrap().to_string_lossy().into_owned();
        results.into_iter().map(|result| (name(&tests[result.index]), result.ending)).collect()
    }

    #[test]
    fn every_ending_is_reached() {
        let folder = folder(&[
            ("runtests.cfg", "suffixes = .t\nexcludes = Inputs\nfeatures = here\n"),
            ("pass.t", "RUN: echo a | filecheck %s\nCHECK: a\n"),
            ("fail.t", "RUN: echo b | filecheck %s\nCHECK: a\n"),
            ("xfail.t", "RUN: false\nXFAIL: here\n"),
            ("xpass.t", "RUN: true\nXFAIL: *\n"),
            ("skip.t", "RUN: false\nREQUIRES: elsewhere\n"),
            ("none.t", "nothing\n"),
            ("Inputs/not.t", "RUN: false\n"),
            ("sub/other.txt", "RUN: false\n"),
            ("sub/timeout.t", "RUN: sleep 10\n"),
            ("sub/runtests.cfg", "timeout = 0\n"),
        ]);
        let words: Vec<_> = run_all(&folder).into_iter().map(|(name, ending)| (name, ending.word())).collect();
        let expected = [
            ("fail.t", "FAIL"),
            ("none.t", "UNRESOLVED"),
            ("pass.t", "PASS"),
            ("skip.t", "UNSUPPORTED"),
            ("sub/timeout.t", "TIMEOUT"),
            ("xfail.t", "XFAIL"),
            ("xpass.t", "XPASS"),
        ];
        assert_eq!(words, expected.map(|(name, word)| (name.to_string(), word)));
    }

    #[test]
    fn failures_can_be_repeated() {
        let folder = folder(&[("a.t", "first\nRUN: true\nRUN: cat %s | \\\nRUN:   filecheck %s\nCHECK: {{[z]}}y\n")]);
        let results = run_all(&folder);
        let Ending::Fail(failure) = &results[0].1 else {
            panic!("{results:?}");
        };
        let path = folder.root.path().join("tests/a.t");
        assert_eq!(failure.line, 3);
        assert_eq!(failure.command, format!("cat {0} | filecheck {0}", path.display()));
        let err = String::from_utf8_lossy(&failure.result.as_ref().unwrap().err).into_owned();
        assert!(err.contains("a.t:5:8: error: CHECK: expected string not found"), "{err}");
    }

    #[test]
    fn substitutions_may_hold_others() {
        let mut folder = folder(&[(
            "a.t",
            "RUN: echo %tool %{tool} %% %x > %t && cat %t | filecheck %s\n\
            CHECK: {{^}}run [[F:.*]]a.t run [[F]]a.t % %x{{$}}\n",
        )]);
        folder.settings.config.substitutions.insert("tool".into(), "run %s".into());
        assert_eq!(run_all(&folder)[0].1, Ending::Pass);
        folder.settings.config.substitutions.insert("tool".into(), "%tool".into());
        assert!(matches!(&run_all(&folder)[0].1, Ending::Unresolved(why) if why.contains("come to an end")));
    }
}
