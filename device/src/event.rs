//! Points in a stream: times between them, and a way out of what L2 holds.
#![allow(unsafe_code)] // Calls into the driver.

use crate::buffer::Buffer;
use crate::driver::{cuda, result};
use crate::error::Error;
use crate::gpu::{Context, Gpu};
use cudarc::driver::sys::CUevent;
use std::rc::Rc;

/// A point in a GPU's stream.
pub struct Event {
    context: Rc<Context>,
    handle: CUevent,
}

impl Gpu {
    /// An event that was not recorded yet.
    ///
    /// # Errors
    /// What the driver says.
    pub fn event(&self) -> Result<Event, Error> {
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle. Flags 0: it takes times.
        let code = unsafe { cuda!(self.context.driver(), cuEventCreate(&mut handle, 0)) };
        self.context.check("making an event", code)?;
        Ok(Event { context: Rc::clone(&self.context), handle })
    }

    /// A buffer to push everything else out of L2 with: twice as large as it.
    ///
    /// # Errors
    /// When there is no room for it.
    pub fn flusher(&self) -> Result<Buffer, Error> {
        self.buffer("L2 flush", 2 * self.about().l2.max(1 << 20))
    }
}

impl Event {
    /// Puts it behind all that was launched so far.
    ///
    /// # Errors
    /// What the driver says.
    pub fn record(&self) -> Result<(), Error> {
        // SAFETY: event and stream are of this context.
        let code = unsafe { cuda!(self.context.driver(), cuEventRecord(self.handle, self.context.stream)) };
        self.context.check("recording an event", code)
    }

    /// Whether the GPU has come so far; `what` names what it may have failed in.
    ///
    /// # Errors
    /// What went wrong before it.
    pub fn is_past(&self, what: &str) -> Result<bool, Error> {
        // SAFETY: the event is alive.
        match unsafe { cuda!(self.context.driver(), cuEventQuery(self.handle)) } {
            result::NOT_READY => Ok(false),
            code => self.context.check(what, code).map(|()| true),
        }
    }

    /// Milliseconds from this event to a later one. Both must be past.
    ///
    /// # Errors
    /// What the driver says.
    pub fn milliseconds_to(&self, later: &Event) -> Result<f64, Error> {
        let mut milliseconds = 0.0f32;
        // SAFETY: writes one number.
        let code = unsafe {
            cuda!(self.context.driver(), cuEventElapsedTime_v2(&mut milliseconds, self.handle, later.handle))
        };
        self.context.check("reading the time between two events", code)?;
        Ok(f64::from(milliseconds))
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if !self.context.dead.get() {
            // SAFETY: nobody else holds the event.
            unsafe { cuda!(self.context.driver(), cuEventDestroy_v2(self.handle)) };
        }
    }
}
