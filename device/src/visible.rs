//! Memory of the host that a kernel writes and the host reads while the kernel runs: what a hang leaves behind.
#![allow(unsafe_code)] // Calls into the driver, and memory that somebody else writes.

use crate::driver::cuda;
use crate::error::Error;
use crate::gpu::{Context, Gpu};
use std::rc::Rc;

/// Bytes of the host, zero at first, that kernels reach by an address of their own.
pub struct Visible {
    context: Rc<Context>,
    host: *mut u8,
    address: u64,
    bytes: usize,
}

impl Gpu {
    /// So many bytes.
    ///
    /// # Errors
    /// When there is no room for them.
    pub fn visible(&self, bytes: usize) -> Result<Visible, Error> {
        const MAPPED: u32 = 2;
        let context = &self.context;
        let what = format!("making {bytes} bytes that kernels and the host see");
        let (mut host, mut address) = (std::ptr::null_mut(), 0);
        // SAFETY: writes one pointer. Mapped: kernels may reach it (CUDA driver API, cuMemHostAlloc).
        let code = unsafe { cuda!(context.driver(), cuMemHostAlloc(&mut host, bytes.max(1), MAPPED)) };
        context.check_memory(&what, code)?;
        let mut visible = Visible { context: Rc::clone(context), host: host.cast(), address, bytes };
        // SAFETY: the allocation has so many bytes, and no kernel knows it yet.
        unsafe { visible.host.write_bytes(0, bytes) };
        // SAFETY: writes one address, of an allocation that was made for it.
        let code = unsafe { cuda!(context.driver(), cuMemHostGetDevicePointer_v2(&mut address, host, 0)) };
        context.check(&what, code)?;
        visible.address = address;
        Ok(visible)
    }
}

impl Visible {
    /// The address of its first byte, for kernels.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// What it holds now; a kernel that runs may be writing.
    pub fn now(&self) -> Vec<u8> {
        // SAFETY: each byte lies in the allocation. Volatile: somebody else writes them.
        (0..self.bytes).map(|n| unsafe { self.host.add(n).read_volatile() }).collect()
    }
}

impl Drop for Visible {
    fn drop(&mut self) {
        if !self.context.dead.get() {
            // SAFETY: nobody else holds the allocation.
            unsafe { cuda!(self.context.driver(), cuMemFreeHost(self.host.cast())) };
        }
    }
}
