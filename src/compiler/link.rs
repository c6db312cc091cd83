//! Libraries of LLVM bitcode, such as NVIDIA's libdevice, and symbols that no module defines.

use ptxc_ir::Module;

use super::{Session, Stop};
use crate::diagnostics::Diagnostic;
use crate::pipeline;

/// What the driver provides for device code to call.
const PROVIDED: &[&str] = &["vprintf", "malloc", "free", "__assertfail"];

impl Session<'_> {
    /// Reads what the module needs of each library. What one library needs, a later one may define.
    pub(super) fn link(&mut self, module: &mut ptxc_llvm::Module) -> Result<(), Stop> {
        let options = self.options;
        for library in &options.libraries {
            let refused = |message: String| Diagnostic::error(format!("library {}: {message}", library.name));
            if !ptxc_llvm::bitcode::is_bitcode(&library.bytes) {
                self.diagnostics.list.push(refused("it is no LLVM bitcode".to_owned()));
                return Err(Stop);
            }
            let read = || ptxc_llvm::bitcode::read_library(&library.bytes, module);
            if let Err(error) = self.step(pipeline::LINK, read)? {
                let place = format!("at byte {} of the library", error.at);
                self.diagnostics.list.push(refused(error.message).note(place));
                return Err(Stop);
            }
        }
        Ok(())
    }

    /// Refuses what would not load: functions of libdevice that no library defined and, where libraries are given, any
    /// function or variable that is used and defined nowhere.
    pub(super) fn check_externs(&mut self, module: &Module) -> Result<(), Stop> {
        let undefined = ptxc_opt::undefined_symbols(module);
        let provided = |name: &str| PROVIDED.contains(&name) || name.starts_with("cuda");
        let is_libdevice = |name: &str| name.starts_with("__nv_") || name.starts_with("__nvvm_");
        let linked = !self.options.libraries.is_empty();
        let mut any = false;
        for name in undefined {
            if is_libdevice(&name) && !linked {
                let message = format!("`{name}` is a function of libdevice: it needs `--link libdevice.10.bc`");
                self.diagnostics.list.push(Diagnostic::error(message));
                any = true;
            } else if linked && !provided(&name) {
                let message = format!("`{name}` is used, and neither the module nor a library defines it");
                self.diagnostics.list.push(Diagnostic::error(message));
                any = true;
            }
        }
        if any { Err(Stop) } else { Ok(()) }
    }
}
