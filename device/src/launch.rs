//! A launch, and the wait for its end.
#![allow(unsafe_code)] // Calls into the driver.

use crate::driver::cuda;
use crate::error::{Error, Failure};
use crate::gpu::Gpu;
use crate::module::Kernel;
use cudarc::driver::sys::{
    CUfunction_attribute as FunctionAttribute, CUlaunchAttribute, CUlaunchAttributeID, CUlaunchAttributeValue,
    CUlaunchConfig,
};
use std::ffi::c_void;
use std::thread;
use std::time::{Duration, Instant};

/// What is launched, on what.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// CTAs in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a CTA in x, y, z.
    pub block: [u32; 3],
    /// CTAs of a cluster; `None`: launched without clusters.
    pub cluster: Option<[u32; 3]>,
    /// Bytes of dynamic shared memory.
    pub dynamic_shared: u32,
    /// The parameters' bytes, in order.
    pub parameters: Vec<Vec<u8>>,
}

impl Launch {
    /// Parameters that were recorded as one block of bytes, for a kernel with parameters at these places.
    ///
    /// # Errors
    /// When the block is shorter than the parameters.
    pub fn split(block: &[u8], parameters: &[(usize, usize)]) -> Result<Vec<Vec<u8>>, String> {
        let all = parameters.iter().enumerate().map(|(n, &(offset, size))| {
            block.get(offset..offset + size).map(<[u8]>::to_vec).ok_or_else(|| {
                format!(
                    "the block of parameters has {} bytes; parameter {n} takes {size} at byte {offset}",
                    block.len()
                )
            })
        });
        all.collect()
    }

    fn title(&self, kernel: &str) -> String {
        let [x, y, z] = self.grid;
        let threads = count(self.block);
        let cluster = match self.cluster {
            Some([a, b, c]) => format!(" in clusters of {a}x{b}x{c}"),
            None => String::new(),
        };
        format!("launch of `{kernel}` on {x}x{y}x{z} CTAs of {threads} threads{cluster}")
    }

    /// What can be said of it without asking the driver.
    fn check(&self, parameters: &[(usize, usize)], required: Option<[u32; 3]>, max_threads: u32) -> Result<(), String> {
        let extents = |[x, y, z]: [u32; 3]| format!("{x}x{y}x{z}");
        for (name, value) in [("grid", self.grid), ("block", self.block), ("cluster", self.cluster.unwrap_or([1; 3]))] {
            if value.contains(&0) {
                return Err(format!("`{name}` is {}: every extent must be 1 or more", extents(value)));
            }
        }
        let threads = count(self.block);
        if threads > u128::from(max_threads) {
            return Err(format!("`block` has {threads} threads; this kernel takes up to {max_threads}"));
        }
        let cluster = self.cluster.unwrap_or([1; 3]);
        if let Some(n) = (0..3).find(|&n| !self.grid[n].is_multiple_of(cluster[n])) {
            let axis = ["x", "y", "z"][n];
            let grid = self.grid[n];
            return Err(format!("`grid` is {grid} in {axis}, which is no multiple of the cluster's {}", cluster[n]));
        }
        if let Some(required) = required.filter(|required| self.cluster.unwrap_or([1; 3]) != *required) {
            let found =
                self.cluster.map_or("no clusters".to_string(), |cluster| format!("clusters of {}", extents(cluster)));
            return Err(format!("the PTX text asks for clusters of {}; the launch has {found}", extents(required)));
        }
        if parameters.len() != self.parameters.len() {
            return Err(format!(
                "{} parameters are given; the kernel takes {}",
                self.parameters.len(),
                parameters.len()
            ));
        }
        for (n, (&(_, size), bytes)) in parameters.iter().zip(&self.parameters).enumerate() {
            if bytes.len() != size {
                return Err(format!("parameter {n} has {} bytes; the kernel takes {size}", bytes.len()));
            }
        }
        Ok(())
    }
}

/// How many there are in so large a grid, block or cluster. The extents are anybody's.
fn count(extents: [u32; 3]) -> u128 {
    extents.iter().map(|extent| u128::from(*extent)).product()
}

impl Gpu {
    /// Launches a kernel and does not wait for it. What goes wrong while it runs shows in a later call.
    ///
    /// # Errors
    /// When the launch does not fit the kernel, or the driver refuses it.
    pub fn launch(&self, kernel: &Kernel, launch: &Launch) -> Result<(), Error> {
        self.prepare(kernel, launch)?.launch()
    }

    /// Checks a launch and packs its parameters, so that it can be repeated at the rate that the driver takes.
    ///
    /// # Errors
    /// When the launch does not fit the kernel, or asks for what an SM has not.
    pub fn prepare<'a>(&'a self, kernel: &'a Kernel, launch: &Launch) -> Result<Prepared<'a>, Error> {
        let what = launch.title(&kernel.name);
        if !kernel.is_of(&self.context) {
            return Err(Error::refused(what, "the kernel was loaded to another GPU"));
        }
        launch
            .check(&kernel.parameters, kernel.required_cluster, kernel.usage().max_threads)
            .map_err(|why| Error::refused(&what, why))?;
        let context = &self.context;
        let set = |which, value: u32, name: &str| {
            // SAFETY: sets one number of a function that is alive.
            let code = unsafe { cuda!(context.driver(), cuFuncSetAttribute(kernel.function, which, value as i32)) };
            context.check(&format!("{what}: {name}"), code)
        };
        // The maximum belongs to the function: another launch that was prepared before this one may need more of it.
        if launch.dynamic_shared > kernel.told_shared.get() {
            let title = format!(
                "{} bytes of dynamic and {} of static shared memory, of {} that a CTA can have",
                launch.dynamic_shared,
                kernel.usage().static_shared,
                self.about().shared
            );
            set(FunctionAttribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, launch.dynamic_shared, &title)?;
            kernel.told_shared.set(launch.dynamic_shared);
        }
        // Eight CTAs are the most that every GPU takes (CUDA Programming Guide, thread block clusters).
        const PORTABLE: u128 = 8;
        let cluster = launch.cluster.or(kernel.explicit_cluster.then_some([1; 3]));
        if cluster.is_some_and(|cluster| count(cluster) > PORTABLE) {
            set(
                FunctionAttribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
                1,
                "a cluster of more than 8 CTAs",
            )?;
        }
        // A cluster that the text asks for is known to the driver; the attribute says the same again.
        let attribute = |[x, y, z]: [u32; 3]| {
            let mut value = CUlaunchAttributeValue { pad: [0; 64] };
            (value.clusterDim.x, value.clusterDim.y, value.clusterDim.z) = (x, y, z);
            CUlaunchAttribute { id: CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, pad: [0; 4], value }
        };
        // The driver reads each parameter where its pointer points, as one of its type: aligned like a tensor map, whatever it is.
        let parameters: Vec<Vec<Aligned>> = launch.parameters.iter().map(|bytes| Aligned::of(bytes)).collect();
        Ok(Prepared {
            gpu: self,
            kernel,
            what,
            grid: launch.grid,
            block: launch.block,
            dynamic_shared: launch.dynamic_shared,
            attributes: cluster.map(attribute).into_iter().collect(),
            pointers: parameters.iter().map(|value| value.as_ptr().cast_mut().cast()).collect(),
            _parameters: parameters,
        })
    }

    /// Launches a kernel and waits for its end, but no longer than this. Gives the milliseconds that it took.
    ///
    /// # Errors
    /// What went wrong, or that it hangs. Then only the end of the process ends it ([`crate::leave`]).
    pub fn launch_bounded(&self, kernel: &Kernel, launch: &Launch, timeout: Duration) -> Result<f64, Failure> {
        let what = launch.title(&kernel.name);
        let (begin, end) = (self.event()?, self.event()?);
        begin.record()?;
        self.launch(kernel, launch)?;
        end.record()?;
        self.wait(&what, &end, timeout)?;
        Ok(begin.milliseconds_to(&end)?)
    }

    /// Waits for an event, but no longer than this; `what` names what it is the end of.
    ///
    /// # Errors
    /// As [`Gpu::launch_bounded`].
    pub fn wait(&self, what: &str, event: &crate::Event, timeout: Duration) -> Result<(), Failure> {
        let begin = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            if event.is_past(what)? {
                return Ok(());
            }
            if begin.elapsed() >= timeout {
                self.context.dead.set(true);
                return Err(Failure::Hung { what: what.to_string(), after: timeout });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(Duration::from_millis(2));
        }
    }
}

/// A launch that fits its kernel.
pub struct Prepared<'a> {
    gpu: &'a Gpu,
    kernel: &'a Kernel,
    what: String,
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared: u32,
    attributes: Vec<CUlaunchAttribute>,
    /// To the parameters, in order.
    pointers: Vec<*mut c_void>,
    _parameters: Vec<Vec<Aligned>>,
}

impl Prepared<'_> {
    /// Launches it, as [`Gpu::launch`] does.
    ///
    /// # Errors
    /// What the driver says.
    pub fn launch(&self) -> Result<(), Error> {
        let context = &self.gpu.context;
        let config = CUlaunchConfig {
            gridDimX: self.grid[0],
            gridDimY: self.grid[1],
            gridDimZ: self.grid[2],
            blockDimX: self.block[0],
            blockDimY: self.block[1],
            blockDimZ: self.block[2],
            sharedMemBytes: self.dynamic_shared,
            hStream: context.stream,
            attrs: self.attributes.as_ptr().cast_mut(),
            numAttrs: self.attributes.len() as u32,
        };
        let pointers = self.pointers.as_ptr().cast_mut();
        // SAFETY: a pointer for each parameter, each to as many bytes as the kernel takes (checked when this was made); all live as
        // long as this value, and the driver copies them. It writes neither to the pointers nor to the attributes.
        let code = unsafe {
            cuda!(context.driver(), cuLaunchKernelEx(&config, self.kernel.function, pointers, std::ptr::null_mut()))
        };
        context.check(&self.what, code)
    }
}

/// Bytes at an address that suits every parameter.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
struct Aligned([u8; 128]);

impl Aligned {
    fn of(bytes: &[u8]) -> Vec<Aligned> {
        let chunks = bytes.chunks(128).map(|chunk| {
            let mut aligned = Aligned([0; 128]);
            aligned.0[..chunk.len()].copy_from_slice(chunk);
            aligned
        });
        chunks.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch() -> Launch {
        Launch {
            grid: [4, 1, 1],
            block: [128, 1, 1],
            cluster: Some([2, 1, 1]),
            parameters: vec![vec![0; 8], vec![0; 128]],
            ..Launch::default()
        }
    }

    const PARAMETERS: [(usize, usize); 2] = [(0, 8), (64, 128)];

    #[test]
    fn what_does_not_fit_the_kernel_is_refused_with_a_sentence() {
        let says = |change: &dyn Fn(&mut Launch), required| {
            let mut launch = launch();
            change(&mut launch);
            launch.check(&PARAMETERS, required, 256).unwrap_err()
        };
        assert_eq!(launch().check(&PARAMETERS, Some([2, 1, 1]), 256), Ok(()));
        assert_eq!(says(&|l| l.grid[1] = 0, None), "`grid` is 4x0x1: every extent must be 1 or more");
        assert_eq!(says(&|l| l.block[0] = 512, None), "`block` has 512 threads; this kernel takes up to 256");
        assert_eq!(says(&|l| l.grid[0] = 3, None), "`grid` is 3 in x, which is no multiple of the cluster's 2");
        let required = Some([4, 1, 1]);
        assert_eq!(
            says(&|_| (), required),
            "the PTX text asks for clusters of 4x1x1; the launch has clusters of 2x1x1"
        );
        assert_eq!(
            says(&|l| l.cluster = None, required),
            "the PTX text asks for clusters of 4x1x1; the launch has no clusters"
        );
        assert_eq!(
            says(&|l| l.block = [u32::MAX; 3], None),
            format!("`block` has {} threads; this kernel takes up to 256", u128::from(u32::MAX).pow(3))
        );
        assert_eq!((count([65_536, 65_536, 1]), count([2, 3, 4])), (1 << 32, 24));
        assert_eq!(says(&|l| drop(l.parameters.pop()), None), "1 parameters are given; the kernel takes 2");
        assert_eq!(says(&|l| l.parameters[0] = vec![0; 4], None), "parameter 0 has 4 bytes; the kernel takes 8");
    }

    #[test]
    fn a_block_of_parameters_is_cut_where_the_kernel_has_them() {
        let block: Vec<u8> = (0..200).map(|n| n as u8).collect();
        let parts = Launch::split(&block, &PARAMETERS).unwrap();
        assert_eq!((parts[0].as_slice(), parts[1][0], parts[1].len()), (&block[..8], 64, 128));
        let error = Launch::split(&block[..100], &PARAMETERS).unwrap_err();
        assert_eq!(error, "the block of parameters has 100 bytes; parameter 1 takes 128 at byte 64");
    }

    #[test]
    fn parameters_are_aligned_like_tensor_maps_and_keep_their_bytes() {
        let bytes: Vec<u8> = (0..300).map(|n| n as u8).collect();
        let aligned = Aligned::of(&bytes);
        assert!((aligned.as_ptr() as usize).is_multiple_of(128));
        let back: Vec<u8> = aligned.iter().flat_map(|chunk| chunk.0).take(300).collect();
        assert_eq!(back, bytes);
        assert!(launch().title("k").starts_with("launch of `k` on 4x1x1 CTAs of 128 threads in clusters of 2x1x1"));
    }
}
