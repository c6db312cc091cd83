//! Where `ptxas` is: `$PTXAS` or `$PTXAS12`, `PATH`, `target/tools`, or freshly installed from PyPI into the latter.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use ptxc_targets::Target;

/// The releases of `ptxas` that together assemble for every target.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Release {
    /// 12.9, the last for sm_50 to sm_72.
    Cuda12,
    /// 13.5, for sm_75 and later.
    Cuda13,
}

/// How a release is found and installed.
struct Source {
    /// Environment variable with its path.
    variable: &'static str,
    /// What `ptxas --version` says of a release that serves.
    versions: &'static [&'static str],
    /// What pip installs.
    requirement: &'static str,
    /// Folder under `target/tools`.
    folder: &'static str,
    /// Path of `ptxas` in that folder.
    binary: &'static str,
}

static CUDA12: Source = Source {
    variable: "PTXAS12",
    versions: &["release 12.8,", "release 12.9,"],
    requirement: "nvidia-cuda-nvcc-cu12==12.9.*",
    folder: "cuda12",
    binary: "nvidia/cuda_nvcc/bin/ptxas",
};

static CUDA13: Source = Source {
    variable: "PTXAS",
    versions: &["release 13.5,", "release 13.6,", "release 13.7,"],
    requirement: "nvidia-cuda-nvcc==13.5.*",
    folder: "cuda13",
    binary: "nvidia/cu13/bin/ptxas",
};

impl Release {
    /// The release that assembles for a target.
    pub fn for_target(target: Target) -> Release {
        if target.sm() < 75 { Release::Cuda12 } else { Release::Cuda13 }
    }

    fn source(self) -> &'static Source {
        match self {
            Release::Cuda12 => &CUDA12,
            Release::Cuda13 => &CUDA13,
        }
    }
}

/// Path of a release of `ptxas`.
///
/// # Panics
/// It is nowhere and cannot be installed: tests that need it have to fail.
pub fn ptxas(release: Release) -> &'static Path {
    static PATHS: [OnceLock<PathBuf>; 2] = [OnceLock::new(), OnceLock::new()];
    PATHS[release as usize].get_or_init(|| match find(release.source()) {
        Ok(path) => path,
        Err(reason) => panic!("ptxas is needed and is not there: {reason}"),
    })
}

fn find(source: &Source) -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os(source.variable).filter(|path| !path.is_empty()) {
        let path = PathBuf::from(path);
        // Who names one is taken at their word, whatever its version.
        return if runs(&path) {
            Ok(path)
        } else {
            Err(format!("${} does not run: {}", source.variable, path.display()))
        };
    }
    if let Some(path) = on_path().filter(|path| serves(path, source)) {
        return Ok(path);
    }
    let folder = tools_folder()?.join(source.folder);
    let binary = folder.join(source.binary);
    install_once(source, &folder, &binary)?;
    if runs(&binary) { Ok(binary) } else { Err(format!("what pip installed does not run: {}", binary.display())) }
}

fn on_path() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH")?;
    std::env::split_paths(&paths).map(|folder| folder.join("ptxas")).find(|path| path.is_file())
}

fn version(path: &Path) -> Option<String> {
    let output = Command::new(path).arg("--version").output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

fn runs(path: &Path) -> bool {
    version(path).is_some()
}

fn serves(path: &Path, source: &Source) -> bool {
    version(path).is_some_and(|text| source.versions.iter().any(|version| text.contains(version)))
}

/// `target/tools` of the target folder that the running test was built into.
fn tools_folder() -> Result<PathBuf, String> {
    let executable = std::env::current_exe().map_err(|error| error.to_string())?;
    // The test lies in TARGET/PROFILE/deps.
    let target = executable.ancestors().nth(3).ok_or("the test lies outside a target folder")?;
    Ok(target.join("tools"))
}

/// Installs unless it is there. Test binaries run at the same time, so a lock lets one of them do it.
fn install_once(source: &Source, folder: &Path, binary: &Path) -> Result<(), String> {
    let parent = folder.parent().ok_or("no parent folder")?;
    fs::create_dir_all(parent).map_err(|error| format!("{}: {error}", parent.display()))?;
    let lock = File::create(folder.with_extension("lock")).map_err(|error| error.to_string())?;
    lock.lock().map_err(|error| error.to_string())?;
    if runs(binary) {
        return Ok(());
    }
    let mut command = Command::new("python3");
    command.args([
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-deps",
        "--upgrade",
        "--target",
    ]);
    let output = command.arg(folder).arg(source.requirement).output();
    let output = output.map_err(|error| format!("python3 -m pip: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("pip install {}: {}", source.requirement, String::from_utf8_lossy(&output.stderr).trim()))
}
