//! Random programs whose results are defined, as a function of a seed.
//!
//! A program is a module with one kernel, a launch of it, and the buffers that it works on. Its result is what the
//! buffers hold afterwards. Defined by construction: amounts of shifts are below the width, divisors not zero, addresses
//! in bounds of memory that is initialized, writes go to memory of the thread's own or are atomics whose order does not
//! show, barriers stand where all threads come, loops end. NaNs are replaced by one before their bits are seen.

mod adjacent;
mod bit_loops;
mod body;
mod calls;
mod echoes;
mod facts;
mod fields;
mod floats;
mod flow;
mod functions;
mod halves;
mod idioms;
mod integers;
mod memory;
mod narrowing;
mod objects;
mod patterns;
mod pointers;
mod promises;
mod returned;
mod rounding;
mod shapes;
mod spelled;
mod statements;
mod strides;
mod tangled;
mod threads;
mod trial;
mod vectors;

pub use functions::generate;
