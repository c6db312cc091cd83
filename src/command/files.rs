//! Reading inputs and writing outputs.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use crate::Failure;

/// The name by which messages call an input.
pub fn display_name(path: &Path) -> String {
    if is_standard(path) { "<stdin>".to_owned() } else { path.display().to_string() }
}

/// Whether a path stands for standard input or output.
pub fn is_standard(path: &Path) -> bool {
    path.as_os_str() == "-"
}

/// The bytes of a file, or of standard input for `-`.
pub fn read_bytes(path: &Path) -> Result<Vec<u8>, Failure> {
    let result = if is_standard(path) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes).map(|_| bytes)
    } else if path.is_dir() {
        return Err(Failure::message(format!("{}: error: is a directory\n", path.display())));
    } else {
        std::fs::read(path)
    };
    result.map_err(|error| {
        Failure::message(format!("{}: error: cannot read: {}\n", display_name(path), describe(&error)))
    })
}

/// The text of a file, or of standard input for `-`.
pub fn read_text(path: &Path) -> Result<String, Failure> {
    String::from_utf8(read_bytes(path)?).map_err(|error| {
        let bytes = error.as_bytes();
        let at = error.utf8_error().valid_up_to();
        let line = bytes[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        let name = display_name(path);
        Failure::message(format!("{name}:{line}: error: not UTF-8 text: byte 0x{:02x} at offset {at}\n", bytes[at]))
    })
}

/// Writes a whole output: to standard output, or to a file by way of a temporary file beside it, so that nothing
/// half-written is ever seen under the name.
pub fn write_output(path: Option<&Path>, text: &str) -> Result<(), Failure> {
    match path.filter(|path| !is_standard(path)) {
        None => to_stdout(text),
        Some(path) => write_file(path, text.as_bytes()).map_err(|error| {
            Failure::message(format!("{}: error: cannot write: {}\n", path.display(), describe(&error)))
        }),
    }
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    // A link is written through; a device or pipe cannot be replaced.
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(&path).is_ok_and(|metadata| !metadata.is_file()) {
        if path.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        return std::fs::OpenOptions::new().write(true).open(&path)?.write_all(bytes);
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".ptxc-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Temporary files are private by default; an output has the permissions of any new file.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(directory)?;
    file.write_all(bytes)?;
    file.persist(&path).map_err(|error| error.error)?;
    Ok(())
}

fn to_stdout(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // Who reads has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Failure::message(format!("<stdout>: error: cannot write: {}\n", describe(&error)))),
    }
}

/// Prints to standard error; that it cannot be written has nowhere to be said.
pub fn to_stderr(text: &str) {
    let _ = io::stderr().lock().write_all(text.as_bytes());
}

/// The operating system's words without its error number.
fn describe(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    let mut words = text[..end].to_owned();
    if let Some(first) = words.get_mut(..1) {
        first.make_ascii_lowercase();
    }
    words
}
