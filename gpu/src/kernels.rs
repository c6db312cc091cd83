//! The GPU as an executor of run files.

use ptxc_interp::launch::{self, Argument, Failure, Outcome};
use ptxc_run::Executor;

use crate::{Buffer, Error, Gpu, Launch};

/// A PTX module on a GPU.
pub struct Kernels<'g> {
    /// Where it runs.
    pub gpu: &'g Gpu,
    /// The module.
    pub ptx: String,
}

/// What memory holds that was not initialized.
const FILL: u8 = 0xa5;

impl Kernels<'_> {
    fn try_run(&self, launches: &[launch::Launch], buffers: &mut [launch::Buffer]) -> Result<(), Error> {
        let mut memory: Vec<Buffer<u8>> = Vec::with_capacity(buffers.len());
        for buffer in buffers.iter() {
            memory.push(if buffer.uninitialized {
                self.gpu.upload(&vec![FILL; buffer.bytes.len()])?
            } else {
                self.gpu.upload(&buffer.bytes)?
            });
        }
        for launch in launches {
            // Loaded anew, so that variables of the module start anew.
            let module = self.gpu.load(&self.ptx)?;
            self.gpu.run(&module, &prepare(launch, &memory))?;
        }
        for (buffer, memory) in buffers.iter_mut().zip(&memory) {
            buffer.bytes = memory.read()?;
        }
        Ok(())
    }
}

fn prepare(launch: &launch::Launch, memory: &[Buffer<u8>]) -> Launch {
    let shape = |[x, y, z]: [u32; 3]| (x, y, z);
    let mut out = Launch::new(launch.kernel.as_str(), (1, 1), (1, 1));
    (out.grid, out.block, out.cluster) = (shape(launch.grid), shape(launch.block), shape(launch.cluster));
    out.shared = launch.dynamic_shared;
    for argument in &launch.arguments {
        out = match argument {
            Argument::Bytes(bytes) => out.bytes(bytes),
            Argument::Buffer { index, offset } => {
                let start = memory.get(*index).map_or(0, Buffer::address);
                out.bytes(&start.wrapping_add(*offset).to_le_bytes())
            }
        };
    }
    out
}

impl Executor for Kernels<'_> {
    fn run(&self, launches: &[launch::Launch], buffers: &mut [launch::Buffer]) -> Result<Outcome, Failure> {
        let failure =
            |error: Error| Failure { message: error.to_string(), place: String::new(), thread: String::new() };
        self.try_run(launches, buffers).map_err(failure)?;
        Ok(Outcome::default())
    }
}
