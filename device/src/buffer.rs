//! Memory of the GPU, with guard zones on both sides.
#![allow(unsafe_code)] // Calls into the driver.

use crate::driver::cuda;
use crate::error::Error;
use crate::gpu::{Context, Gpu};
use std::fmt;
use std::rc::Rc;

/// Bytes of the zone before and behind each buffer: 16 rows of a matrix of 2048 columns in 16 bits.
pub const GUARD: usize = 64 << 10;

/// What a guard zone holds at a byte: a pattern that neither a constant nor a repeated row writes by chance.
fn pattern(n: usize) -> u8 {
    ((n as u32).wrapping_mul(0x9e37_79b1) >> 24) as u8
}

/// A piece of global memory. Its address is a multiple of 256; a guard zone lies before it and behind it.
pub struct Buffer {
    context: Rc<Context>,
    name: String,
    base: u64,
    bytes: usize,
}

/// A byte outside of a buffer that a kernel wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    /// The buffer's name.
    pub buffer: String,
    /// The first byte that was found changed, from the buffer's start: negative before it.
    pub first: i64,
    /// Changed bytes in the zone.
    pub count: usize,
    /// The buffer's size.
    pub bytes: usize,
}

impl fmt::Display for Touched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Touched { buffer, first, count, bytes } = self;
        let (others, plural) = (count - 1, if *count == 2 { "" } else { "s" });
        match u64::try_from(*first) {
            Ok(at) => write!(f, "something wrote behind `{buffer}`: byte {at} of its {bytes}")?,
            Err(_) => write!(f, "something wrote before `{buffer}`: byte {first} of its {bytes}")?,
        }
        if others > 0 { write!(f, ", and {others} more byte{plural} there") } else { Ok(()) }
    }
}

impl Gpu {
    /// A buffer of this size, filled with the poison `0xFF`: 16- and 32-bit floating-point numbers read as NaN.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn buffer(&self, name: &str, bytes: u64) -> Result<Buffer, Error> {
        let context = &self.context;
        let what = format!("making the buffer `{name}` of {bytes} bytes");
        let size = usize::try_from(bytes).map_err(|_| Error::refused(&what, "this host has no such sizes"))?;
        // The zone behind begins right behind the last byte.
        let whole = size.checked_add(2 * GUARD).ok_or_else(|| Error::refused(&what, "no memory is so large"))?;
        let mut base = 0;
        // SAFETY: writes one address. Allocations are aligned to 256 bytes at least, and so are the zones' sizes.
        let code = unsafe { cuda!(context.driver(), cuMemAlloc_v2(&mut base, whole)) };
        context.check_memory(&what, code)?;
        let buffer = Buffer { context: Rc::clone(context), name: name.to_string(), base, bytes: size };
        let zone: Vec<u8> = (0..GUARD).map(pattern).collect();
        buffer.upload(buffer.base, &zone)?;
        buffer.upload(buffer.address() + size as u64, &zone)?;
        buffer.fill(0xff)?;
        Ok(buffer)
    }
}

impl Buffer {
    /// The address of its first byte.
    pub fn address(&self) -> u64 {
        self.base + GUARD as u64
    }

    /// Its size.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Its name in messages.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Writes the same value to each byte.
    ///
    /// # Errors
    /// What the driver says.
    pub fn fill(&self, value: u8) -> Result<(), Error> {
        if self.bytes == 0 {
            return Ok(());
        }
        let context = &self.context;
        // SAFETY: the range lies in the allocation. In the context's stream, so that it is done before what is launched later.
        let code =
            unsafe { cuda!(context.driver(), cuMemsetD8Async(self.address(), value, self.bytes, context.stream)) };
        context.check(&format!("filling `{}`", self.name), code)
    }

    /// Writes from its start.
    ///
    /// # Errors
    /// When there are more bytes than it has, or what the driver says.
    pub fn write(&self, bytes: &[u8]) -> Result<(), Error> {
        if bytes.len() > self.bytes {
            let why = format!("{} bytes do not fit into its {}", bytes.len(), self.bytes);
            return Err(Error::refused(format!("writing to `{}`", self.name), why));
        }
        self.upload(self.address(), bytes)
    }

    /// All its bytes, after all that was launched.
    ///
    /// # Errors
    /// What the driver says; errors of kernels show here, too.
    pub fn read(&self) -> Result<Vec<u8>, Error> {
        self.download(self.address(), self.bytes)
    }

    /// What was written outside of it, next to it.
    ///
    /// # Errors
    /// What the driver says.
    pub fn touched(&self) -> Result<Vec<Touched>, Error> {
        let zones = [(self.base, -(GUARD as i64)), (self.address() + self.bytes as u64, self.bytes as i64)];
        let mut all = Vec::new();
        for (address, from) in zones {
            let zone = self.download(address, GUARD)?;
            let changed: Vec<usize> = (0..GUARD).filter(|&n| zone[n] != pattern(n)).collect();
            // What is nearest to the buffer is told.
            let nearest = if from < 0 { changed.last() } else { changed.first() };
            if let Some(&nearest) = nearest {
                let first = from + nearest as i64;
                all.push(Touched { buffer: self.name.clone(), first, count: changed.len(), bytes: self.bytes });
            }
        }
        Ok(all)
    }

    fn upload(&self, to: u64, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let context = &self.context;
        // SAFETY: the callers stay in the allocation; the bytes are read before the call returns.
        let code = unsafe { cuda!(context.driver(), cuMemcpyHtoD_v2(to, bytes.as_ptr().cast(), bytes.len())) };
        context.check(&format!("writing to `{}`", self.name), code)
    }

    fn download(&self, from: u64, count: usize) -> Result<Vec<u8>, Error> {
        let mut bytes = vec![0; count];
        if count > 0 {
            let context = &self.context;
            // SAFETY: the callers stay in the allocation; there is room for so many bytes.
            let code = unsafe { cuda!(context.driver(), cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), from, count)) };
            context.check(&format!("reading `{}`", self.name), code)?;
        }
        Ok(bytes)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if !self.context.dead.get() {
            // SAFETY: nobody else holds the allocation. It waits for kernels that use it.
            unsafe { cuda!(self.context.driver(), cuMemFree_v2(self.base)) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_touched_is_named_by_its_byte() {
        let touched = |first, count| Touched { buffer: "D".into(), first, count, bytes: 4096 }.to_string();
        assert_eq!(touched(4096, 1), "something wrote behind `D`: byte 4096 of its 4096");
        assert_eq!(touched(4100, 16), "something wrote behind `D`: byte 4100 of its 4096, and 15 more bytes there");
        assert_eq!(touched(-4, 2), "something wrote before `D`: byte -4 of its 4096, and 1 more byte there");
    }

    #[test]
    fn the_pattern_is_no_constant_and_no_row() {
        for distance in [1, 2, 64, 128, 256, 4096] {
            let same = (0..GUARD - distance).filter(|&n| pattern(n) == pattern(n + distance)).count();
            assert!(same < GUARD / 16, "{same} bytes at distance {distance}");
        }
    }
}
