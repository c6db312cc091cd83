//! The files of functions with their directives.

use std::fs;
use std::path::Path;

use ptxc::targets::Target;

/// A file of `tests/rules`.
pub struct File {
    /// Its name.
    pub name: String,
    /// Its text.
    pub text: String,
    /// What it is compiled for.
    pub target: Target,
    /// The passes that run before selection.
    pub passes: Vec<String>,
    /// It is legal IR as it stands: legalization never makes some of what selection takes.
    pub legal: bool,
    /// The functions that have directives.
    pub functions: Vec<Function>,
}

/// A function with directives.
#[derive(Default)]
pub struct Function {
    /// Its name without `@`.
    pub name: String,
    /// Rules that are applied to it.
    pub fires: Vec<String>,
    /// Rules that are not.
    pub not: Vec<String>,
    /// The function that says what it computes, if not itself: flags allow more than one result.
    pub equals: Option<String>,
    /// The values may differ by this share: the machine approximates.
    pub tolerance: f64,
    /// It is not run, and why.
    pub skip: Option<String>,
}

/// Every file, by name.
pub fn all() -> Vec<File> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/rules");
    let mut paths: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "ir"));
    paths.sort();
    paths.iter().map(|path| read(path)).collect()
}

fn read(path: &Path) -> File {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let text = fs::read_to_string(path).unwrap();
    let mut file = File {
        name,
        target: Target::ALL[0],
        passes: Vec::new(),
        legal: false,
        functions: Vec::new(),
        text: String::new(),
    };
    let mut next = Function::default();
    let mut has_directives = false;
    for (number, line) in text.lines().enumerate() {
        let place = || format!("{}:{}", path.display(), number + 1);
        if let Some(rest) = line.strip_prefix("func @").or_else(|| line.strip_prefix("kernel @")) {
            next.name = rest.split('(').next().unwrap_or_default().to_owned();
            let function = std::mem::take(&mut next);
            if std::mem::take(&mut has_directives) {
                file.functions.push(function);
            }
            continue;
        }
        let Some(directive) = line.strip_prefix(";! ") else { continue };
        let (head, rest) = directive.split_once(' ').unwrap_or((directive, ""));
        let mut words = rest.split_whitespace().map(str::to_owned);
        match head {
            "target" => file.target = rest.parse().unwrap_or_else(|error| panic!("{}: {error}", place())),
            "passes" => file.passes = words.collect(),
            "legal" => file.legal = true,
            "fires" => next.fires.extend(words),
            "not" => next.not.extend(words),
            "equals" => next.equals = words.next().map(|name| name.trim_start_matches('@').to_owned()),
            "tolerance" => next.tolerance = rest.parse().unwrap_or_else(|error| panic!("{}: {error}", place())),
            "skip" => next.skip = Some(rest.to_owned()),
            _ => panic!("{}: there is no directive `{head}`", place()),
        }
        has_directives |= !matches!(head, "target" | "passes" | "legal");
    }
    file.text = text;
    file
}
