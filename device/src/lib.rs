//! NVIDIA GPUs: opens one, loads PTX, launches it, measures it.
//!
//! **Does:** find the driver, cuBLAS and NVML when the program runs (none is needed to build it); assemble PTX text with the driver
//! and keep what it says; launch with clusters and tensor maps; wait no longer than it is told to; guard the memory next to
//! buffers. It is the only crate that calls into CUDA. **Never does:** decide what is right, or know who wrote the PTX.
//!
//! A kernel that breaks a rule can take the whole context with it, and one that hangs ends only with its process. So run kernels
//! that are not trusted in a process of their own, and [`leave`] it when one hangs.
//!
//! ```no_run
//! use device::{Choice, Gpu, Launch, Target};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ptx = std::fs::read_to_string("fill.ptx")?;
//! let gpu = Gpu::open(&Target::of(&ptx).map_or(Choice::Any, Choice::Runs))?;
//! let kernel = gpu.load(&ptx, "fill")?;
//! let out = gpu.buffer("out", 128)?;
//! let launch = Launch {
//!     grid: [1, 1, 1],
//!     block: [32, 1, 1],
//!     parameters: vec![out.address().to_le_bytes().to_vec()],
//!     ..Launch::default()
//! };
//! let milliseconds = gpu.launch_bounded(&kernel, &launch, Duration::from_secs(10))?;
//! println!("{milliseconds} ms on {}: {:?}, {:?}", gpu.about().name, out.read()?, out.touched()?);
//! # Ok(())
//! # }
//! ```
//!
//! | module | idea |
//! |---|---|
//! | `gpu`, `target` | GPUs, which to take, what they run |
//! | `unavailable`, `error` | why there is none; what went wrong, and what that means |
//! | `module`, `launch`, `event` | PTX text to a kernel; its launch and its end; times |
//! | `buffer`, `visible`, `tensor_map` | memory with guard zones; memory that the host reads while a kernel runs; tensor maps |
//! | `cublas` | the product that others are held against |
//! | `nvml` | clocks, power, temperature |
//! | `library`, `driver` | libraries opened at run time, called as cudarc binds them; the driver's functions |

mod buffer;
mod cublas;
mod driver;
mod error;
mod event;
mod gpu;
mod launch;
mod leave;
mod library;
mod module;
pub mod nvml;
mod target;
mod tensor_map;
mod unavailable;
mod visible;

pub use buffer::{Buffer, GUARD, Touched};
pub use cublas::{Cublas, Product, Type, find as find_cublas};
pub use error::{Error, Failure};
pub use event::Event;
pub use gpu::{About, Choice, Gpu};
pub use launch::{Launch, Prepared};
pub use leave::leave;
pub use module::{Kernel, Usage};
pub use target::{Reach, Target};
pub use tensor_map::{Element, FieldError, Swizzle, TensorMap};
pub use unavailable::Unavailable;
pub use visible::Visible;
