//! GPUs: which there are, which to take, and one that is open.
#![allow(unsafe_code)] // Calls into the driver.

use crate::driver::{Driver, cuda, driver, result};
use crate::error::Error;
use crate::nvml::Nvml;
use crate::target::Target;
use crate::unavailable::Unavailable;
use cudarc::driver::sys::{CUcontext, CUdevice_attribute as Attribute, CUstream, CUuuid};
use std::cell::Cell;
use std::ffi::{c_char, c_int};
use std::rc::Rc;

/// What is known of a GPU without opening it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct About {
    /// Its number for the driver; `CUDA_VISIBLE_DEVICES` changes it.
    pub ordinal: u32,
    /// Its name: `NVIDIA B200`.
    pub name: String,
    /// Its own number, the same for ever: `GPU-…`.
    pub uuid: String,
    /// Its compute capability, major and minor.
    pub capability: (u32, u32),
    /// Streaming multiprocessors.
    pub sms: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes of L2.
    pub l2: u64,
    /// Bytes of shared memory that a CTA can have.
    pub shared: u32,
    /// The SMs' highest clock, in MHz.
    pub clock: u32,
    /// The memory's highest clock, in MHz.
    pub memory_clock: u32,
    /// The CUDA version of the driver: `13.0`.
    pub cuda: String,
    /// The driver's own version, if NVML or the system says it: `580.82.07`.
    pub driver: Option<String>,
}

impl About {
    /// The compute capability, times ten.
    pub fn capability(&self) -> u32 {
        self.capability.0 * 10 + self.capability.1
    }

    /// `NVIDIA H200 (9.0)`.
    pub fn title(&self) -> String {
        format!("{} ({}.{})", self.name, self.capability.0, self.capability.1)
    }
}

/// Which GPU to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    /// The least used of all.
    Any,
    /// The least used of those that run this target.
    Runs(Target),
    /// The one with this UUID.
    Uuid(String),
}

/// The environment variable by which people choose; the driver itself follows it.
const VISIBLE: &str = "CUDA_VISIBLE_DEVICES";

/// Bytes that must be free: a context takes about 500 MiB, and matrices of 8192 by 8192 in 16 bits take 128 MiB each.
const NEEDED: u64 = 1 << 30;

/// A GPU that is open, with a stream of its own.
pub struct Gpu {
    pub(crate) context: Rc<Context>,
    about: About,
}

/// The primary context of a GPU.
pub(crate) struct Context {
    driver: &'static Driver,
    handle: CUcontext,
    device: c_int,
    pub(crate) stream: CUstream,
    /// A kernel hangs, or an error was fatal: nothing can be freed any more.
    pub(crate) dead: Cell<bool>,
}

impl Gpu {
    /// The GPUs that the driver shows.
    ///
    /// # Errors
    /// Why there are none.
    pub fn list() -> Result<Vec<About>, Unavailable> {
        let driver = driver()?;
        let fails = |code| Unavailable::DriverFails { name: driver.name(code), meaning: driver.meaning(code) };
        let mut count = 0;
        // SAFETY: writes one number.
        let code = unsafe { cuda!(driver, cuDeviceGetCount(&mut count)) };
        if code != result::SUCCESS {
            return Err(fails(code));
        }
        if count == 0 {
            return Err(Unavailable::NoGpu);
        }
        let version = Nvml::get().ok().and_then(Nvml::driver_version).or_else(version_of_the_module);
        (0..count).map(|ordinal| about(driver, ordinal, version.clone()).map_err(fails)).collect()
    }

    /// The GPU that [`Gpu::open`] would take, and what it is.
    ///
    /// # Errors
    /// Why none can be taken.
    pub fn choose(choice: &Choice) -> Result<About, Unavailable> {
        let all = Gpu::list()?;
        let nvml = Nvml::get().ok();
        let used = |about: &About| {
            nvml.and_then(|nvml| nvml.device(&about.uuid))
                .map(|device| Used { free: device.free(), busy: device.busy() })
        };
        let by_hand = std::env::var_os(VISIBLE).is_some();
        choose(all, choice, by_hand, used)
    }

    /// Opens a GPU. Where several would do, the one with the most free memory is taken, then the one that does the least;
    /// with `CUDA_VISIBLE_DEVICES`, the first of those.
    ///
    /// # Errors
    /// Why none can be opened.
    pub fn open(choice: &Choice) -> Result<Gpu, Unavailable> {
        let about = Gpu::choose(choice)?;
        let driver = driver()?;
        let device = about.ordinal as c_int;
        let fails = |code| match code {
            result::DEVICE_UNAVAILABLE => Unavailable::Busy { gpu: about.name.clone() },
            result::OUT_OF_MEMORY => Unavailable::Full { gpu: about.name.clone(), free: None, needed: NEEDED >> 20 },
            code => Unavailable::DriverFails { name: driver.name(code), meaning: driver.meaning(code) },
        };
        let check = |code| if code == result::SUCCESS { Ok(()) } else { Err(fails(code)) };
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle.
        check(unsafe { cuda!(driver, cuDevicePrimaryCtxRetain(&mut handle, device)) })?;
        // From here on it is given back, whatever goes wrong.
        let mut context = Context { driver, handle, device, stream: std::ptr::null_mut(), dead: Cell::new(false) };
        let (mut free, mut total) = (0, 0);
        // SAFETY: each call writes the values that it is given places for. The context is current from here on, and this value stays on
        // this thread, since it holds pointers. A stream with flags 0 keeps its order with copies.
        unsafe {
            check(cuda!(driver, cuCtxSetCurrent(handle)))?;
            check(cuda!(driver, cuMemGetInfo_v2(&mut free, &mut total)))?;
            check(cuda!(driver, cuStreamCreate(&mut context.stream, 0)))?;
        }
        if (free as u64) < NEEDED {
            let free = Some(free as u64 >> 20);
            return Err(Unavailable::Full { gpu: about.name.clone(), free, needed: NEEDED >> 20 });
        }
        Ok(Gpu { context: Rc::new(context), about })
    }

    /// What it is.
    pub fn about(&self) -> &About {
        &self.about
    }

    /// Bytes of memory that are free.
    ///
    /// # Errors
    /// What the driver says.
    pub fn free_memory(&self) -> Result<u64, Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers.
        let code = unsafe { cuda!(self.context.driver(), cuMemGetInfo_v2(&mut free, &mut total)) };
        self.context.check("asking for free memory", code)?;
        Ok(free as u64)
    }

    /// Waits for all that was launched. Waits for ever if a kernel hangs: see [`Gpu::launch_bounded`].
    ///
    /// # Errors
    /// What the driver says; errors of kernels show here.
    pub fn synchronise(&self, what: &str) -> Result<(), Error> {
        // SAFETY: the stream is this context's.
        let code = unsafe { cuda!(self.context.driver(), cuStreamSynchronize(self.context.stream)) };
        self.context.check(what, code)
    }

    /// Whether an error was fatal or a kernel hangs: then nothing works in this process any more.
    pub fn is_dead(&self) -> bool {
        self.context.dead.get()
    }
}

impl Context {
    /// The driver, with this context made current: another GPU may have been used on this thread meanwhile.
    pub(crate) fn driver(&self) -> &'static Driver {
        // SAFETY: the context is alive as long as this value. What is wrong with it shows in the call that follows.
        unsafe { cuda!(self.driver, cuCtxSetCurrent(self.handle)) };
        self.driver
    }

    /// A status as a result; `what` names what it belongs to.
    pub(crate) fn check(&self, what: &str, code: c_int) -> Result<(), Error> {
        if code == result::SUCCESS {
            return Ok(());
        }
        let mut error = Error::of(what, code, self.driver.name(code), self.driver.meaning(code));
        // A kernel may ask for more local memory than there is; where next to nothing is free, others have taken it.
        error.of_the_machine |= code == result::OUT_OF_MEMORY && self.is_full();
        if error.fatal {
            self.dead.set(true);
        }
        Err(error)
    }

    /// The same of memory that is asked for: that it is not there is no kernel's fault. After a fatal error nothing is there.
    pub(crate) fn check_memory(&self, what: &str, code: c_int) -> Result<(), Error> {
        self.check(what, code).map_err(|error| Error { of_the_machine: error.of_the_machine || !error.fatal, ..error })
    }

    /// Less memory is free than a context needs to begin with.
    fn is_full(&self) -> bool {
        let (mut free, mut total) = (0, 0);
        // SAFETY: writes two numbers.
        let code = unsafe { cuda!(self.driver(), cuMemGetInfo_v2(&mut free, &mut total)) };
        code == result::SUCCESS && (free as u64) < NEEDED
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.dead.get() {
            // SAFETY: all that was made in the context holds it, and so is gone.
            unsafe {
                if !self.stream.is_null() {
                    cuda!(self.driver, cuStreamDestroy_v2(self.stream));
                }
                cuda!(self.driver, cuDevicePrimaryCtxRelease_v2(self.device));
            }
        }
    }
}

fn about(driver: &Driver, ordinal: c_int, version: Option<String>) -> Result<About, c_int> {
    let check = |code| if code == result::SUCCESS { Ok(()) } else { Err(code) };
    let mut device = 0;
    let mut name = [0u8; 256];
    let mut uuid = CUuuid { bytes: [0; 16] };
    let mut memory = 0;
    // SAFETY: each call writes the value that it is given a place for; the name ends with a zero within its 256 bytes.
    unsafe {
        check(cuda!(driver, cuDeviceGet(&mut device, ordinal)))?;
        check(cuda!(driver, cuDeviceGetName(name.as_mut_ptr().cast::<c_char>(), name.len() as c_int, device)))?;
        check(cuda!(driver, cuDeviceGetUuid_v2(&mut uuid, device)))?;
        check(cuda!(driver, cuDeviceTotalMem_v2(&mut memory, device)))?;
    }
    let number = |which| -> Result<u32, c_int> {
        let mut value = 0;
        // SAFETY: writes one number.
        check(unsafe { cuda!(driver, cuDeviceGetAttribute(&mut value, which, device)) })?;
        Ok(u32::try_from(value).unwrap_or(0))
    };
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
    Ok(About {
        ordinal: ordinal as u32,
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        uuid: uuid_text(&uuid.bytes.map(|byte| byte as u8)),
        capability: (
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            number(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        ),
        sms: number(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
        memory: memory as u64,
        l2: u64::from(number(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        shared: number(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?,
        clock: number(Attribute::CU_DEVICE_ATTRIBUTE_CLOCK_RATE)? / 1000,
        memory_clock: number(Attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)? / 1000,
        cuda: driver.cuda(),
        driver: version,
    })
}

/// A UUID as `nvidia-smi -L` writes it.
fn uuid_text(bytes: &[u8; 16]) -> String {
    let mut text = String::from("GPU");
    for (n, byte) in bytes.iter().enumerate() {
        if matches!(n, 0 | 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text += &format!("{byte:02x}");
    }
    text
}

/// The version of the kernel's module, where Linux tells it: `… Kernel Module  580.82.07  …`.
fn version_of_the_module() -> Option<String> {
    let text = std::fs::read_to_string("/proc/driver/nvidia/version").ok()?;
    let is_version = |word: &&str| word.contains('.') && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    text.lines().next()?.split_whitespace().find(is_version).map(str::to_string)
}

/// How much a GPU is used.
#[derive(Clone, Copy, Debug)]
struct Used {
    /// Free bytes.
    free: u64,
    /// Per cent of the time that a kernel ran.
    busy: u32,
}

fn choose(
    all: Vec<About>,
    choice: &Choice,
    by_hand: bool,
    used: impl Fn(&About) -> Option<Used>,
) -> Result<About, Unavailable> {
    let found: Vec<String> = all.iter().map(About::title).collect();
    let fits = |about: &About| match choice {
        Choice::Any => true,
        Choice::Runs(target) => target.runs_on(about.capability()),
        Choice::Uuid(uuid) => about.uuid == *uuid,
    };
    let fit: Vec<About> = all.into_iter().filter(fits).collect();
    // A few MiB more or less say nothing.
    const STEP: u64 = 1 << 30;
    let least = match by_hand {
        true => fit.into_iter().next(),
        false => fit.into_iter().max_by_key(|about| {
            let used = used(about).unwrap_or(Used { free: 0, busy: 0 });
            (used.free / STEP, std::cmp::Reverse(used.busy), std::cmp::Reverse(about.ordinal))
        }),
    };
    least.ok_or_else(|| match choice {
        Choice::Any => Unavailable::NoGpu,
        Choice::Runs(wanted) => Unavailable::OtherArchitecture { wanted: *wanted, found },
        Choice::Uuid(uuid) => Unavailable::NoSuchGpu { uuid: uuid.clone() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gpu(ordinal: u32, capability: (u32, u32)) -> About {
        About {
            ordinal,
            name: format!("GPU {ordinal}"),
            uuid: format!("GPU-{ordinal}"),
            capability,
            sms: 132,
            memory: 1 << 36,
            l2: 1 << 25,
            shared: 232_448,
            clock: 1980,
            memory_clock: 3201,
            cuda: "13.0".into(),
            driver: None,
        }
    }

    #[test]
    fn the_least_used_gpu_that_fits_is_taken() {
        let all = || vec![gpu(0, (9, 0)), gpu(1, (10, 0)), gpu(2, (10, 0)), gpu(3, (10, 0))];
        let used = |about: &About| {
            let (free, busy) = [(140, 0), (20, 0), (100, 90), (100, 10)][about.ordinal as usize];
            Some(Used { free: free << 30, busy })
        };
        let runs = Choice::Runs(Target::named("sm_100a").unwrap());
        let ordinal = |choice: &Choice, by_hand| choose(all(), choice, by_hand, used).map(|about| about.ordinal);
        assert_eq!(ordinal(&Choice::Any, false), Ok(0));
        assert_eq!(ordinal(&runs, false), Ok(3), "as much memory as 2, and less to do");
        assert_eq!(ordinal(&runs, true), Ok(1), "CUDA_VISIBLE_DEVICES: the first that fits");
        assert_eq!(ordinal(&Choice::Uuid("GPU-2".into()), false), Ok(2));
        let wanted = Target::named("sm_120a").unwrap();
        let error = choose(all()[..2].to_vec(), &Choice::Runs(wanted), false, used).unwrap_err();
        assert_eq!(error.to_string(), "no GPU here runs sm_120a: there is GPU 0 (9.0), GPU 1 (10.0)");
        // Without NVML nothing is known: the first.
        assert_eq!(choose(all(), &Choice::Any, false, |_| None).map(|about| about.ordinal), Ok(0));
    }

    #[test]
    fn a_uuid_reads_as_nvidia_smi_writes_it() {
        let bytes = std::array::from_fn(|n| n as u8);
        assert_eq!(uuid_text(&bytes), "GPU-00010203-0405-0607-0809-0a0b0c0d0e0f");
    }
}
