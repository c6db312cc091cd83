//! The little of the CUDA driver interface that running kernels needs: a context, modules, buffers with guard zones,
//! launches and their times. [`Kernels`] runs what a run file describes.
//!
//! The driver library is loaded at run time, so programs also start where there is none. All `unsafe` code of the
//! workspace is in this file; its functions are safe to call except that a wrong kernel can do anything to the GPU's
//! memory, which is what the guard zones are for.
#![allow(unsafe_code)]

mod kernels;

pub use kernels::Kernels;

use std::ffi::{CString, c_void};
use std::fmt;
use std::marker::PhantomData;

use cudarc::driver::{DriverError, result, sys};

/// Bytes before and behind every buffer that no kernel may touch.
const GUARD: usize = 256;
/// What the guard zones hold.
const GUARD_BYTE: u8 = 0xA5;
/// Bytes of stack a thread may use: the interpreter example recurses.
const STACK_BYTES: usize = 16 << 10;
/// Bytes kept of the driver's complaints about a module.
const LOG_BYTES: usize = 16 << 10;

/// Why something could not be done on the GPU.
#[derive(Debug)]
pub enum Error {
    /// A driver function failed.
    Driver(DriverError),
    /// The driver's own compiler refused the PTX; its messages.
    Module(String),
    /// The module has no kernel of this name.
    NoKernel(String),
    /// A kernel wrote outside a buffer, this many bytes before (negative) its start or behind its end.
    Guard(i64),
}

impl From<DriverError> for Error {
    fn from(error: DriverError) -> Self {
        Error::Driver(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Driver(error) => match error.error_string() {
                Ok(text) => write!(f, "driver: {}", text.to_string_lossy()),
                Err(_) => write!(f, "driver: error {:?}", error.0),
            },
            Error::Module(log) => write!(f, "module refused: {}", log.trim().replace('\n', " | ")),
            Error::NoKernel(name) => write!(f, "no kernel `{name}` in the module"),
            Error::Guard(bytes) if *bytes < 0 => {
                write!(f, "a kernel wrote {} bytes before a buffer", -bytes)
            }
            Error::Guard(bytes) => {
                write!(f, "a kernel wrote {bytes} bytes behind the end of a buffer")
            }
        }
    }
}

mod sealed {
    /// Types without padding and without invalid bit patterns.
    pub trait Sealed: Copy + Default + 'static {}
    impl Sealed for u8 {}
    impl Sealed for u16 {}
    impl Sealed for u32 {}
    impl Sealed for u64 {}
    impl Sealed for i32 {}
    impl Sealed for f32 {}
}

/// What a buffer can hold: plain numbers.
pub trait Element: sealed::Sealed {}
impl<T: sealed::Sealed> Element for T {}

/// Whether a CUDA driver library can be loaded at all.
pub fn driver_is_present() -> bool {
    // Safety: loading the driver library runs its initializers and nothing else.
    unsafe { sys::is_culib_present() }
}

/// The first GPU, with its primary context current in this thread.
pub struct Gpu {
    name: String,
    capability: (i32, i32),
}

impl Gpu {
    /// Opens the first GPU. Call [`driver_is_present`] first: without the library this panics.
    ///
    /// # Errors
    /// The driver has none, or it cannot be used.
    pub fn open() -> Result<Gpu, Error> {
        use sys::CUdevice_attribute_enum as Attribute;
        result::init()?;
        let device = result::device::get(0)?;
        let name = result::device::get_name(device)?;
        // Safety: `device` is a valid device, and the context that is made current is never released.
        let capability = unsafe {
            let context = result::primary_ctx::retain(device)?;
            result::ctx::set_current(context)?;
            let major = Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR;
            let minor = Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR;
            (result::device::get_attribute(device, major)?, result::device::get_attribute(device, minor)?)
        };
        result::ctx::set_limit(sys::CUlimit::CU_LIMIT_STACK_SIZE, STACK_BYTES)?;
        Ok(Gpu { name, capability })
    }

    /// The device's name, as the driver gives it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The compute capability, major and minor.
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Lets the driver compile and load a PTX module.
    ///
    /// # Errors
    /// The driver's compiler refuses the module.
    pub fn load(&self, ptx: &str) -> Result<Module, Error> {
        let Ok(image) = CString::new(ptx) else {
            return Err(Error::Module("the text contains a zero byte".into()));
        };
        let mut log = vec![0u8; LOG_BYTES];
        let mut options =
            [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
        let mut handle = std::ptr::null_mut();
        // Safety: `image` is a zero-terminated string, the two options have the values the driver expects for them, and
        // all of it outlives the call.
        let code = unsafe {
            sys::cuModuleLoadDataEx(
                &mut handle,
                image.as_ptr().cast(),
                options.len() as u32,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        };
        if let Err(error) = code.result() {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            let text = String::from_utf8_lossy(&log[..end]).into_owned();
            return Err(if text.is_empty() { Error::Driver(error) } else { Error::Module(text) });
        }
        Ok(Module { handle })
    }

    /// A buffer holding a copy of `data`.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn upload<T: Element>(&self, data: &[T]) -> Result<Buffer<T>, Error> {
        let bytes = std::mem::size_of_val(data);
        // Safety: the allocation holds both guard zones and the data between them.
        let base = unsafe {
            let base = result::malloc_sync(bytes + 2 * GUARD)?;
            result::memset_d8_sync(base, GUARD_BYTE, bytes + 2 * GUARD)?;
            if bytes > 0 {
                result::memcpy_htod_sync(base + GUARD as u64, data)?;
            }
            base
        };
        Ok(Buffer { base, len: data.len(), element: PhantomData })
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// There is not enough memory.
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>, Error> {
        self.upload(&vec![T::default(); len])
    }

    /// Runs one launch and waits for it.
    ///
    /// # Errors
    /// The driver refuses the launch, or the kernel faults.
    pub fn run(&self, module: &Module, launch: &Launch) -> Result<(), Error> {
        let function = module.kernel(&launch.kernel)?;
        self.enqueue(function, launch)?;
        result::ctx::synchronize()?;
        Ok(())
    }

    /// The shortest of several runs of the launches, one after the other, in microseconds. `reset` puts back, before
    /// each run, what the kernels need to find in their buffers; it is not timed.
    ///
    /// # Errors
    /// As [`Self::run`], or what `reset` says.
    pub fn best_time(
        &self,
        module: &Module,
        launches: &[Launch],
        mut reset: impl FnMut() -> Result<(), Error>,
    ) -> Result<f32, Error> {
        const RUNS: usize = 20;
        let mut functions = Vec::with_capacity(launches.len());
        for launch in launches {
            functions.push(module.kernel(&launch.kernel)?);
        }
        let start = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?;
        let stop = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?;
        let stream = result::stream::null();
        let mut best = f32::INFINITY;
        for _ in 0..RUNS {
            reset()?;
            // Safety: both events are live and belong to the current context.
            unsafe { result::event::record(start, stream)? };
            for (function, launch) in functions.iter().zip(launches) {
                self.enqueue(*function, launch)?;
            }
            // Safety: as above; `stop` has been recorded when it is waited for.
            let milliseconds = unsafe {
                result::event::record(stop, stream)?;
                result::event::synchronize(stop)?;
                result::event::elapsed(start, stop)?
            };
            best = best.min(milliseconds * 1000.0);
        }
        // Safety: nothing uses the events any more.
        unsafe {
            result::event::destroy(start)?;
            result::event::destroy(stop)?;
        }
        Ok(best)
    }

    fn enqueue(&self, function: sys::CUfunction, launch: &Launch) -> Result<(), Error> {
        let mut pointers: Vec<*mut c_void> =
            launch.arguments.iter().map(|argument| argument.as_ptr().cast_mut().cast()).collect();
        let (grid, block, cluster) = (launch.grid, launch.block, launch.cluster);
        let mut attributes = [sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue { pad: [0; 64] },
        }];
        attributes[0].value.clusterDim =
            sys::CUlaunchAttributeValue_union__bindgen_ty_1 { x: cluster.0, y: cluster.1, z: cluster.2 };
        let config = sys::CUlaunchConfig {
            gridDimX: grid.0,
            gridDimY: grid.1,
            gridDimZ: grid.2,
            blockDimX: block.0,
            blockDimY: block.1,
            blockDimZ: block.2,
            sharedMemBytes: launch.shared,
            hStream: result::stream::null(),
            attrs: attributes.as_mut_ptr(),
            // Below sm_90 there are no clusters: the attribute is given only where one is asked for.
            numAttrs: u32::from(cluster != (1, 1, 1)),
        };
        // Safety: every pointer is to an argument or attribute that outlives the calls; the driver only reads them. The
        // kernel gets addresses of live buffers; what it does with them is under test.
        unsafe {
            if launch.shared > 0 {
                let most = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                result::function::set_function_attribute(function, most, launch.shared as i32)?;
            }
            sys::cuLaunchKernelEx(&config, function, pointers.as_mut_ptr(), std::ptr::null_mut()).result()?;
        }
        Ok(())
    }
}

/// A loaded module.
pub struct Module {
    handle: sys::CUmodule,
}

impl Module {
    fn kernel(&self, name: &str) -> Result<sys::CUfunction, Error> {
        let text = CString::new(name).map_err(|_| Error::NoKernel(name.into()))?;
        // Safety: the module is loaded for as long as `self` lives.
        unsafe { result::module::get_function(self.handle, text) }.map_err(|_| Error::NoKernel(name.into()))
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Safety: every launch is waited for before its module goes. The result does not matter: after a fault in a
        // kernel every call fails.
        let _ = unsafe { result::module::unload(self.handle) };
    }
}

/// Memory on the GPU for `len` elements, between two guard zones.
pub struct Buffer<T> {
    base: sys::CUdeviceptr,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// The address of the first element.
    fn address(&self) -> u64 {
        self.base + GUARD as u64
    }

    /// The contents, after a check that the guard zones are intact.
    ///
    /// # Errors
    /// They are not, or a kernel faulted before.
    pub fn read(&self) -> Result<Vec<T>, Error> {
        let bytes = self.len * size_of::<T>();
        let mut data = vec![T::default(); self.len];
        let mut before = vec![0u8; GUARD];
        let mut behind = vec![0u8; GUARD];
        // Safety: the three ranges lie within the allocation.
        unsafe {
            result::memcpy_dtoh_sync(&mut before, self.base)?;
            if bytes > 0 {
                result::memcpy_dtoh_sync(&mut data, self.address())?;
            }
            result::memcpy_dtoh_sync(&mut behind, self.address() + bytes as u64)?;
        }
        if let Some(at) = before.iter().rposition(|&byte| byte != GUARD_BYTE) {
            return Err(Error::Guard(at as i64 - GUARD as i64));
        }
        if let Some(at) = behind.iter().position(|&byte| byte != GUARD_BYTE) {
            return Err(Error::Guard(at as i64));
        }
        Ok(data)
    }

    /// Sets every byte to zero.
    ///
    /// # Errors
    /// A kernel faulted before.
    pub fn clear(&self) -> Result<(), Error> {
        // Safety: the range lies within the allocation.
        unsafe { result::memset_d8_sync(self.address(), 0, self.len * size_of::<T>())? };
        Ok(())
    }

    /// Replaces the contents. `data` has the length of the buffer; what is longer is cut off.
    ///
    /// # Errors
    /// A kernel faulted before.
    pub fn write(&self, data: &[T]) -> Result<(), Error> {
        let data = &data[..self.len.min(data.len())];
        // Safety: the range lies within the allocation.
        unsafe { result::memcpy_htod_sync(self.address(), data)? };
        Ok(())
    }
}

impl<T> Drop for Buffer<T> {
    fn drop(&mut self) {
        // Safety: every launch is waited for before its buffers go. As for modules, the result does not matter.
        let _ = unsafe { result::free_sync(self.base) };
    }
}

/// One kernel launch: name, shape and arguments in order.
pub struct Launch {
    kernel: String,
    grid: (u32, u32, u32),
    block: (u32, u32, u32),
    cluster: (u32, u32, u32),
    shared: u32,
    arguments: Vec<Vec<u8>>,
}

impl Launch {
    /// A launch of `kernel` with grid and block sizes in x and y.
    pub fn new(kernel: impl Into<String>, grid: (usize, usize), block: (usize, usize)) -> Launch {
        let shape = |(x, y): (usize, usize)| (x as u32, y as u32, 1);
        Launch {
            kernel: kernel.into(),
            grid: shape(grid),
            block: shape(block),
            cluster: (1, 1, 1),
            shared: 0,
            arguments: Vec::new(),
        }
    }

    /// Adds a 32-bit integer.
    pub fn int(self, value: usize) -> Launch {
        self.bytes(&(value as u32).to_le_bytes())
    }

    /// Adds a float.
    pub fn float(self, value: f32) -> Launch {
        self.bytes(&value.to_le_bytes())
    }

    /// Adds the address of a buffer.
    pub fn buffer<T: Element>(self, buffer: &Buffer<T>) -> Launch {
        self.bytes(&buffer.address().to_le_bytes())
    }

    /// Adds an argument by its bytes, such as a struct.
    pub fn bytes(mut self, value: &[u8]) -> Launch {
        // The driver copies as many bytes as the kernel's parameter has: round up, so that a wrong size in the kernel
        // shows as a wrong value and not as a read behind the vector.
        let mut padded = value.to_vec();
        padded.resize(value.len().next_multiple_of(16) + 240, 0);
        self.arguments.push(padded);
        self
    }
}
