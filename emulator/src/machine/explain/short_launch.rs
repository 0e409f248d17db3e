//! Places behind the end of a CTA's shared memory, where the launch gives the kernel less than it lays out.

use super::names::counted;
use crate::machine::cluster::Cluster;
use crate::program::op::Op;

/// A CTA has no more.
const MOST: u32 = crate::MAX_SHARED;

impl Cluster<'_> {
    /// What to do about an access to shared memory that ends at this offset of the window, behind all that the launch gives.
    pub fn short_of_shared(&self, end: u64) -> Option<String> {
        let given = self.launch.dynamic_shared;
        let start = self.kernel.dynamic_start;
        let window = u64::from(start) + u64::from(given);
        let needs = u32::try_from(end).ok()?.checked_sub(start)?;
        // What lies further away is no place that a kernel lays out.
        if end <= window || needs > MOST || !self.has_dynamic_shared() {
            return None;
        }
        Some(format!(
            "The launch gives the kernel {} of dynamic shared memory, and this needs {needs} at least: give it as many as it lays out, or check the \
             offset of this address.",
            counted(given, "byte")
        ))
    }

    /// The kernel names dynamic shared memory, or the launch gives it some.
    fn has_dynamic_shared(&self) -> bool {
        let start = self.kernel.dynamic_start;
        let named = |op: &Op| matches!(op, Op::SharedAddress { offset, .. } if *offset >= start);
        self.launch.dynamic_shared > 0 || self.kernel.code.iter().any(|inst| named(&inst.op))
    }
}
