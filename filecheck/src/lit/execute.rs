//! Executes the pipelines of a RUN line. FileCheck and a few small commands run in this process;
//! everything else is a process of its own, connected by pipes.

use super::shell::{Pipeline, Redirection, Stage, Stream, When, Word};
use crate::command;
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{PipeReader, PipeWriter, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// The state that commands of a test share.
#[derive(Clone, Debug)]
pub struct Shell {
    /// Where commands run; `cd` changes it.
    pub directory: PathBuf,
    /// The whole environment of the commands; `export` changes it.
    pub environment: BTreeMap<String, String>,
    /// When the test has had its time.
    pub deadline: Option<Instant>,
    /// Whether `filecheck` and `FileCheck` run in this process.
    pub filecheck_in_process: bool,
}

/// What a pipeline did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// 0, or the status of the last stage that failed; 128 and the signal for a crash.
    pub status: i32,
    /// What went to standard output.
    pub out: Vec<u8>,
    /// What went to standard error.
    pub err: Vec<u8>,
    /// Whether it was stopped because the test ran out of time.
    pub timed_out: bool,
}

/// What a stage reads.
enum Feed {
    Nothing,
    Bytes(Vec<u8>),
    Pipe(PipeReader),
}

/// Where a stage writes.
enum Sink {
    File(File),
    /// The next stage, or what is collected of the last one.
    Next,
    /// Collected as standard error.
    Errors,
}

/// A started process and how to judge it.
struct Running {
    child: Child,
    judgement: Judgement,
}

/// What `not` makes of an exit status.
#[derive(Clone, Copy, Default)]
struct Judgement {
    negated: bool,
    /// `not --crash`: only a crash counts as failure.
    crash: bool,
}

impl Judgement {
    fn apply(self, status: i32) -> i32 {
        let crashed = status >= 128;
        match (self.negated, self.crash) {
            (false, _) => status,
            (true, true) => i32::from(!crashed),
            // A crash is not the failure that was asked for.
            (true, false) if crashed => status,
            (true, false) => i32::from(status == 0),
        }
    }
}

/// A stage after its prefixes `NAME=value`, `env` and `not` are taken off.
struct Resolved {
    arguments: Vec<String>,
    environment: BTreeMap<String, String>,
    judgement: Judgement,
}

impl Shell {
    /// Runs pipelines in order; stops at the first that fails where success was demanded.
    ///
    /// # Errors
    /// A command that cannot be started, or a file that cannot be opened.
    pub fn run(&mut self, script: &[Pipeline]) -> Result<Outcome, String> {
        let mut total = Outcome::default();
        for pipeline in script {
            let skip = match pipeline.when {
                When::Always => false,
                When::Success => total.status != 0,
                When::Failure => total.status == 0,
            };
            if skip {
                continue;
            }
            let outcome = self.pipeline(pipeline)?;
            total.status = match pipeline.negated {
                true => i32::from(outcome.status == 0),
                false => outcome.status,
            };
            total.out.extend(outcome.out);
            total.err.extend(outcome.err);
            if outcome.timed_out {
                total.timed_out = true;
                return Ok(total);
            }
        }
        Ok(total)
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<Outcome, String> {
        let mut job = Job {
            running: Vec::new(),
            errors: Vec::new(),
            statuses: vec![0; pipeline.stages.len()],
            outcome: Outcome::default(),
            deadline: self.deadline,
        };
        let result = self.start_stages(pipeline, &mut job);
        // What was started has to end, also when something else could not start.
        let finished = result.and_then(|feed| job.finish(feed));
        if finished.is_err() {
            job.kill();
        }
        finished?;
        let failed = job.statuses.iter().rev().find(|status| **status != 0);
        job.outcome.status = failed.copied().unwrap_or(0);
        Ok(job.outcome)
    }

    fn start_stages(&mut self, pipeline: &Pipeline, job: &mut Job) -> Result<Feed, String> {
        let mut feed = Feed::Nothing;
        for (index, stage) in pipeline.stages.iter().enumerate() {
            let resolved = self.resolve(stage)?;
            let (input, out, err) = self.redirect(&stage.redirections)?;
            let input = match input {
                Some(file) => Input::File(file),
                None => Input::Feed(std::mem::replace(&mut feed, Feed::Nothing)),
            };
            let name = resolved.arguments.first().map_or("", String::as_str);
            feed = match self.builtin(name) {
                Some(builtin) => self.run_builtin(builtin, &resolved, input, (out, err), index, job)?,
                None => self.spawn(&resolved, input, (out, err), index, job)?,
            };
        }
        Ok(feed)
    }

    /// Expands file name patterns and takes prefixes off.
    fn resolve(&self, stage: &Stage) -> Result<Resolved, String> {
        let mut words: Vec<String> = Vec::new();
        for word in &stage.words {
            self.expand(word, &mut words);
        }
        let mut environment = self.environment.clone();
        let mut judgement = Judgement::default();
        let mut rest = words.as_slice();
        loop {
            rest = assignments(rest, &mut environment);
            match rest.split_first() {
                Some((name, after)) if name == "env" => {
                    rest = env_arguments(after, &mut environment)?;
                }
                Some((name, after)) if name == "not" => {
                    rest = after;
                    judgement.negated = !judgement.negated;
                    if rest.first().is_some_and(|word| word == "--crash") {
                        judgement.crash = true;
                        rest = &rest[1..];
                    }
                }
                Some(_) => break,
                None => return Err("a command is missing".to_string()),
            }
        }
        Ok(Resolved { arguments: rest.to_vec(), environment, judgement })
    }

    fn expand(&self, word: &Word, words: &mut Vec<String>) {
        let before = words.len();
        if word.is_glob {
            let (folder, pattern) = match word.text.rsplit_once('/') {
                Some((folder, pattern)) => (format!("{folder}/"), pattern),
                None => (String::new(), word.text.as_str()),
            };
            let entries = std::fs::read_dir(self.directory.join(&folder));
            for entry in entries.into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                let is_hidden = name.starts_with('.') && !pattern.starts_with('.');
                if !is_hidden && glob_matches(pattern.as_bytes(), name.as_bytes()) {
                    words.push(format!("{folder}{name}"));
                }
            }
            words[before..].sort_unstable();
        }
        if words.len() == before {
            words.push(word.text.clone());
        }
    }

    fn redirect(&self, redirections: &[Redirection]) -> Result<(Option<File>, Sink, Sink), String> {
        let (mut input, mut out, mut err) = (None, Sink::Next, Sink::Errors);
        let open = |word: &Word, append: bool| {
            let path = self.directory.join(&word.text);
            let result = match append {
                true => OpenOptions::new().append(true).create(true).open(&path),
                false => File::create(&path),
            };
            result.map_err(|error| format!("cannot write '{}': {error}", word.text))
        };
        let clone = |sink: &Sink| {
            Ok::<_, String>(match sink {
                Sink::File(file) => Sink::File(file.try_clone().map_err(|error| error.to_string())?),
                Sink::Next => Sink::Next,
                Sink::Errors => Sink::Errors,
            })
        };
        for redirection in redirections {
            match redirection {
                Redirection::Input(word) => {
                    let path = self.directory.join(&word.text);
                    let file = File::open(&path);
                    input = Some(file.map_err(|error| format!("cannot read '{}': {error}", word.text))?);
                }
                Redirection::Output(Stream::Out, word, append) => out = Sink::File(open(word, *append)?),
                Redirection::Output(Stream::Err, word, append) => err = Sink::File(open(word, *append)?),
                Redirection::Both(word, append) => {
                    out = Sink::File(open(word, *append)?);
                    err = clone(&out)?;
                }
                Redirection::Duplicate(Stream::Err, Stream::Out) => err = clone(&out)?,
                Redirection::Duplicate(Stream::Out, Stream::Err) => out = clone(&err)?,
                Redirection::Duplicate(..) => {}
            }
        }
        Ok((input, out, err))
    }

    fn builtin(&self, name: &str) -> Option<Builtin> {
        Some(match name {
            "filecheck" | "FileCheck" if self.filecheck_in_process => Builtin::FileCheck,
            "echo" => Builtin::Echo,
            "cd" => Builtin::ChangeDirectory,
            "export" => Builtin::Export,
            "true" | ":" => Builtin::True,
            "false" => Builtin::False,
            _ => return None,
        })
    }

    fn run_builtin(
        &mut self,
        builtin: Builtin,
        resolved: &Resolved,
        input: Input,
        (out_sink, err_sink): (Sink, Sink),
        index: usize,
        job: &mut Job,
    ) -> Result<Feed, String> {
        let arguments = resolved.arguments.get(1..).unwrap_or_default();
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let status = match builtin {
            Builtin::FileCheck => {
                let environment = command::Environment {
                    program: resolved.arguments.first().map_or("filecheck", String::as_str),
                    extra_options: resolved.environment.get("FILECHECK_OPTS").cloned(),
                    directory: Some(&self.directory),
                    is_terminal: false,
                };
                let read = || input.collect(job);
                command::run(arguments, &environment, read, &mut out, &mut err)
            }
            Builtin::Echo => {
                echo(arguments, &mut out);
                0
            }
            Builtin::ChangeDirectory => {
                let target = arguments.first().ok_or("cd needs a directory")?;
                self.directory.push(target);
                if !self.directory.is_dir() {
                    return Err(format!("cd: no directory '{target}'"));
                }
                0
            }
            Builtin::Export => {
                assignments(arguments, &mut self.environment);
                0
            }
            Builtin::True => 0,
            Builtin::False => 1,
        };
        job.statuses[index] = resolved.judgement.apply(status);
        let mut next = Vec::new();
        job.write(out_sink, &out, &mut next)?;
        job.write(err_sink, &err, &mut next)?;
        Ok(Feed::Bytes(next))
    }

    fn spawn(
        &self,
        resolved: &Resolved,
        input: Input,
        (out, err): (Sink, Sink),
        index: usize,
        job: &mut Job,
    ) -> Result<Feed, String> {
        let [name, arguments @ ..] = resolved.arguments.as_slice() else {
            return Err("a command is missing".to_string());
        };
        let program = self.find_program(name).ok_or_else(|| format!("command not found: {name}"))?;
        let failed = |error: std::io::Error| format!("cannot start '{name}': {error}");
        let (next, mut next_writer) = pipe_if(matches!(out, Sink::Next) || matches!(err, Sink::Next))?;
        let (errors, mut error_writer) = pipe_if(matches!(out, Sink::Errors) || matches!(err, Sink::Errors))?;
        let mut to_stdio = |sink: Sink| -> Result<Stdio, String> {
            let clone = |writer: &mut Option<PipeWriter>| match writer {
                Some(writer) => writer.try_clone().map(Stdio::from).map_err(failed),
                None => Ok(Stdio::null()),
            };
            match sink {
                Sink::File(file) => Ok(Stdio::from(file)),
                Sink::Next => clone(&mut next_writer),
                Sink::Errors => clone(&mut error_writer),
            }
        };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .current_dir(&self.directory)
            .env_clear()
            .envs(&resolved.environment)
            .stdout(to_stdio(out)?)
            .stderr(to_stdio(err)?);
        own_group(&mut command);
        let mut bytes = None;
        command.stdin(match input {
            Input::File(file) => Stdio::from(file),
            Input::Feed(Feed::Nothing) => Stdio::null(),
            Input::Feed(Feed::Pipe(reader)) => Stdio::from(reader),
            Input::Feed(Feed::Bytes(text)) => {
                bytes = Some(text);
                Stdio::piped()
            }
        });
        let mut child = command.spawn().map_err(failed)?;
        if let (Some(bytes), Some(mut stdin)) = (bytes, child.stdin.take()) {
            // A program that does not read all of its input is not in error.
            thread::spawn(move || _ = stdin.write_all(&bytes));
        }
        job.running.push((index, Running { child, judgement: resolved.judgement }));
        job.errors.extend(errors.map(collect_in_background));
        Ok(next.map_or(Feed::Nothing, Feed::Pipe))
    }

    fn find_program(&self, name: &str) -> Option<PathBuf> {
        if name.contains('/') {
            return Some(self.directory.join(name));
        }
        find_in_path(name, self.environment.get("PATH")?)
    }
}

/// Finds a program in a list of folders separated by `:`.
pub fn find_in_path(name: &str, path: &str) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|path| is_executable(path))
}

#[cfg(unix)]
fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(path: &Path) -> bool {
    path.is_file()
}

/// Puts the process into a group of its own, so that it can be stopped with all it started.
#[cfg(unix)]
fn own_group(command: &mut Command) {
    use std::os::unix::process::CommandExt;
    command.process_group(0);
}

#[cfg(not(unix))]
fn own_group(_command: &mut Command) {}

fn kill_group(child: &mut Child) {
    if cfg!(unix) {
        let group = format!("-{}", child.id());
        let quiet = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
        _ = quiet;
    }
    _ = child.kill();
}

fn pipe_if(wanted: bool) -> Result<(Option<PipeReader>, Option<PipeWriter>), String> {
    if !wanted {
        return Ok((None, None));
    }
    let (reader, writer) = std::io::pipe().map_err(|error| format!("cannot make a pipe: {error}"))?;
    Ok((Some(reader), Some(writer)))
}

fn collect_in_background(mut reader: PipeReader) -> Receiver<Vec<u8>> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        _ = reader.read_to_end(&mut bytes);
        _ = sender.send(bytes);
    });
    receiver
}

#[derive(Clone, Copy)]
enum Builtin {
    FileCheck,
    Echo,
    ChangeDirectory,
    Export,
    True,
    False,
}

enum Input {
    File(File),
    Feed(Feed),
}

impl Input {
    fn collect(self, job: &mut Job) -> std::io::Result<Vec<u8>> {
        match self {
            Self::Feed(feed) => Ok(job.collect(feed)),
            Self::File(mut file) => {
                let mut bytes = Vec::new();
                file.read_to_end(&mut bytes)?;
                Ok(bytes)
            }
        }
    }
}

/// A pipeline under way.
struct Job {
    running: Vec<(usize, Running)>,
    /// Standard error of processes, on its way.
    errors: Vec<Receiver<Vec<u8>>>,
    statuses: Vec<i32>,
    outcome: Outcome,
    deadline: Option<Instant>,
}

impl Job {
    fn write(&mut self, sink: Sink, bytes: &[u8], next: &mut Vec<u8>) -> Result<(), String> {
        match sink {
            Sink::Next => next.extend_from_slice(bytes),
            Sink::Errors => self.outcome.err.extend_from_slice(bytes),
            Sink::File(mut file) => {
                file.write_all(bytes).map_err(|error| format!("cannot write: {error}"))?;
            }
        }
        Ok(())
    }

    fn remaining(&self) -> Duration {
        const FOREVER: Duration = Duration::from_secs(u32::MAX as u64);
        self.deadline.map_or(FOREVER, |at| at.saturating_duration_since(Instant::now()))
    }

    /// Waits for something that a process will end; stops the processes when time is up.
    fn receive(&mut self, receiver: &Receiver<Vec<u8>>) -> Vec<u8> {
        if let Ok(bytes) = receiver.recv_timeout(self.remaining()) {
            return bytes;
        }
        self.outcome.timed_out = true;
        self.kill();
        // Something may hold the pipe open even now.
        receiver.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
    }

    fn collect(&mut self, feed: Feed) -> Vec<u8> {
        match feed {
            Feed::Nothing => Vec::new(),
            Feed::Bytes(bytes) => bytes,
            Feed::Pipe(reader) => {
                let receiver = collect_in_background(reader);
                self.receive(&receiver)
            }
        }
    }

    fn kill(&mut self) {
        for (_, running) in &mut self.running {
            kill_group(&mut running.child);
        }
    }

    fn finish(&mut self, last: Feed) -> Result<(), String> {
        self.outcome.out = self.collect(last);
        let mut collected = Vec::new();
        for receiver in std::mem::take(&mut self.errors) {
            collected.extend(self.receive(&receiver));
        }
        // What processes say comes before what commands of ours say about it.
        collected.append(&mut self.outcome.err);
        self.outcome.err = collected;
        let mut running = std::mem::take(&mut self.running);
        for (index, running) in &mut running {
            let status = self.wait(&mut running.child)?;
            self.statuses[*index] = running.judgement.apply(status);
        }
        Ok(())
    }

    fn wait(&mut self, child: &mut Child) -> Result<i32, String> {
        let mut pause = Duration::from_micros(100);
        loop {
            match child.try_wait().map_err(|error| error.to_string())? {
                Some(status) => return Ok(status_code(status)),
                None if self.remaining().is_zero() => {
                    self.outcome.timed_out = true;
                    kill_group(child);
                    let status = child.wait().map_err(|error| error.to_string())?;
                    return Ok(status_code(status));
                }
                None => thread::sleep(pause),
            }
            pause = (pause * 2).min(Duration::from_millis(10));
        }
    }
}

#[cfg(unix)]
fn status_code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

#[cfg(not(unix))]
fn status_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or(1)
}

/// Takes `NAME=value` words off the front.
fn assignments<'a>(mut words: &'a [String], environment: &mut BTreeMap<String, String>) -> &'a [String] {
    while let Some((word, rest)) = words.split_first() {
        let Some((name, value)) = word.split_once('=') else {
            break;
        };
        let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !is_name {
            break;
        }
        environment.insert(name.to_string(), value.to_string());
        words = rest;
    }
    words
}

fn env_arguments<'a>(
    mut words: &'a [String],
    environment: &mut BTreeMap<String, String>,
) -> Result<&'a [String], String> {
    while let Some((word, rest)) = words.split_first() {
        match word.strip_prefix("-u") {
            Some("") => {
                let (name, rest) = rest.split_first().ok_or("env -u needs a name")?;
                environment.remove(name);
                words = rest;
            }
            Some(name) => {
                environment.remove(name);
                words = rest;
            }
            None if word == "-i" => {
                environment.clear();
                words = rest;
            }
            None => break,
        }
    }
    Ok(assignments(words, environment))
}

/// `-n` for no newline, `-e` for escapes.
fn echo(mut arguments: &[String], out: &mut Vec<u8>) {
    let (mut newline, mut escapes) = (true, false);
    while let Some((flag, rest)) = arguments.split_first() {
        match flag.as_str() {
            "-n" => newline = false,
            "-e" => escapes = true,
            _ => break,
        }
        arguments = rest;
    }
    let text = arguments.join(" ");
    if escapes {
        let mut chars = text.chars();
        while let Some(c) = chars.next() {
            let c = match c {
                '\\' => match chars.next() {
                    Some('n') => '\n',
                    Some('t') => '\t',
                    Some('r') => '\r',
                    Some(other) => other,
                    None => '\\',
                },
                c => c,
            };
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    } else {
        out.extend_from_slice(text.as_bytes());
    }
    if newline {
        out.push(b'\n');
    }
}

/// Whether `*` and `?` in a pattern can be filled so that it becomes the name.
fn glob_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                star = Some((p, n));
                p += 1;
            }
            Some(b'?') => (p, n) = (p + 1, n + 1),
            Some(byte) if *byte == name[n] => (p, n) = (p + 1, n + 1),
            // Let the last star take one more.
            _ => match star {
                Some((at, taken)) => {
                    star = Some((at, taken + 1));
                    (p, n) = (at + 1, taken + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::super::shell;
    use super::*;

    fn shell() -> (tempfile::TempDir, Shell) {
        let directory = tempfile::tempdir().unwrap();
        let shell = Shell {
            directory: directory.path().to_path_buf(),
            environment: std::env::vars().collect(),
            deadline: None,
            filecheck_in_process: true,
        };
        (directory, shell)
    }

    fn run(text: &str) -> Outcome {
        let (_directory, mut shell) = shell();
        shell.run(&shell::parse(text).unwrap()).unwrap()
    }

    fn out(text: &str) -> String {
        String::from_utf8(run(text).out).unwrap()
    }

    #[test]
    fn processes_and_builtins_are_piped_either_way() {
        assert_eq!(out("echo b a | tr ' ' '\\n' | sort"), "a\nb\n");
        assert_eq!(out("printf 'x\\n' | cat | cat"), "x\n");
        assert_eq!(out("echo -e 'a\\nb' | grep b"), "b\n");
    }

    #[test]
    fn any_stage_can_fail_a_pipeline() {
        assert_eq!(run("false | true").status, 1);
        assert_eq!(run("sh -c 'exit 3' | cat").status, 3);
        assert_eq!(run("! false").status, 0);
    }

    #[test]
    fn lists_stop_at_failures() {
        assert_eq!(out("true && echo a || echo b"), "a\n");
        assert_eq!(out("false && echo a || echo b"), "b\n");
        assert_eq!(out("false; echo c"), "c\n");
    }

    #[test]
    fn not_wants_failures_but_no_crashes() {
        assert_eq!(run("not false").status, 0);
        assert_eq!(run("not true").status, 1);
        assert_eq!(run("not not true").status, 0);
        assert_eq!(run("not sh -c 'exit 2'").status, 0);
        assert_eq!(run("not sh -c 'kill -SEGV $$'").status, 128 + 11);
        assert_eq!(run("not --crash sh -c 'kill -SEGV $$'").status, 0);
        assert_eq!(run("not --crash sh -c 'exit 1'").status, 1);
    }

    #[test]
    fn streams_go_where_they_are_sent() {
        assert_eq!(out("sh -c 'echo e >&2; echo o' > f 2>&1; cat f"), "e\no\n");
        assert_eq!(out("sh -c 'echo e >&2' 2>&1 | cat"), "e\n");
        assert_eq!(out("echo a > f; echo b >> f; cat < f"), "a\nb\n");
        assert_eq!(run("sh -c 'echo e >&2'").err, b"e\n");
        assert_eq!(run("echo e 1>&2").err, b"e\n");
    }

    #[test]
    fn environments_are_those_of_one_command_or_of_all() {
        assert_eq!(out("X=1 sh -c 'echo $X'; sh -c 'echo $X'"), "1\n\n");
        assert_eq!(out("export X=2; env Y=3 sh -c 'echo $X$Y'; env -u X sh -c 'echo $X'"), "23\n\n");
    }

    #[test]
    fn filecheck_runs_in_this_process() {
        let passes = "echo 'CHECK: a[[#N:]]' > c; echo a17 | filecheck c";
        assert_eq!(run(passes).status, 0);
        let outcome = run("echo 'CHECK: b' > c; echo a | not FileCheck c 2>&1 | grep -c 'not found'");
        assert_eq!((outcome.status, outcome.out.as_slice()), (0, b"1\n".as_slice()));
    }

    #[test]
    fn patterns_name_files() {
        assert_eq!(out("echo > b.x; echo > a.x; echo *.x '*.x' *.y"), "a.x b.x *.x *.y\n");
        assert!(glob_matches(b"a*b*c", b"axxbyybzc"));
        assert!(!glob_matches(b"a?c", b"ac"));
    }

    #[test]
    fn time_runs_out_for_whole_groups() {
        let (_directory, mut shell) = shell();
        shell.deadline = Some(Instant::now() + Duration::from_millis(100));
        let started = Instant::now();
        let script = shell::parse("sh -c 'sleep 20; echo x' | cat").unwrap();
        assert!(shell.run(&script).unwrap().timed_out);
        assert!(started.elapsed() < Duration::from_secs(5));
    }

    #[test]
    fn missing_commands_are_errors() {
        let (_directory, mut shell) = shell();
        let script = shell::parse("no-such-command-here").unwrap();
        assert_eq!(shell.run(&script).unwrap_err(), "command not found: no-such-command-here");
    }
}
