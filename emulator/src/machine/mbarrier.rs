//! The mbarrier object: a phase completes when no arrival and no byte is pending (PTX ISA 9.7.13.15.6).

use crate::order::{Stamp, Views};

/// Largest count of arrivals, and of pending bytes.
pub const LIMIT: i64 = (1 << 20) - 1;

/// An mbarrier object, kept beside the memory: its 64 bits are opaque.
#[derive(Debug)]
pub struct Mbarrier {
    /// Index of its CTA in the cluster.
    pub cta: usize,
    /// Offset in the CTA's shared window.
    pub offset: u32,
    /// `mbarrier.inval` was executed, nothing since.
    pub valid: bool,
    pub init: Stamp,
    /// Number of the phase that is not complete, from 0.
    pub phase: u64,
    pub expected: u32,
    pub pending: u32,
    pub bytes: i64,
    /// What the arrivals of the current phase knew.
    pub current: Views,
    /// What those of all completed phases knew.
    pub completed: Views,
    /// The arrivals of the current phase: statement, and how many.
    pub arrivals: Vec<(u32, u32)>,
    /// Those of the phase before.
    pub previous: Vec<(u32, u32)>,
}

impl Mbarrier {
    pub fn init(&mut self, count: u32, stamp: Stamp) {
        let (cta, offset) = (self.cta, self.offset);
        *self = Mbarrier { valid: true, init: stamp, expected: count, pending: count, ..Mbarrier::new(cta, offset) };
    }

    pub fn new(cta: usize, offset: u32) -> Mbarrier {
        Mbarrier {
            cta,
            offset,
            valid: false,
            init: Stamp { actor: 0, epoch: 0, site: 0, cluster: 0, asynchronous: false },
            phase: 0,
            expected: 0,
            pending: 0,
            bytes: 0,
            current: Views::default(),
            completed: Views::default(),
            arrivals: Vec::new(),
            previous: Vec::new(),
        }
    }

    /// `count` arrivals with what they know. `Err`: more than are pending.
    pub fn arrive(&mut self, count: u32, site: u32, views: &Views) -> Result<(), ()> {
        if count > self.pending {
            return Err(());
        }
        self.pending -= count;
        self.arrivals.push((site, count));
        self.current.join(views);
        Ok(())
    }

    /// Begins the next phase if this one is complete; tells whether it did.
    pub fn complete(&mut self) -> bool {
        if self.pending != 0 || self.bytes != 0 {
            return false;
        }
        self.phase += 1;
        self.pending = self.expected;
        let current = std::mem::take(&mut self.current);
        self.completed.join(&current);
        self.previous = std::mem::take(&mut self.arrivals);
        true
    }

    /// A wait for this parity passes: the current phase has the other one.
    pub fn passes(&self, parity: u32) -> bool {
        (self.phase & 1) as u32 != parity & 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fresh(count: u32) -> Mbarrier {
        let mut b = Mbarrier::new(0, 0);
        b.init(count, Stamp { actor: 0, epoch: 1, site: 0, cluster: 0, asynchronous: false });
        b
    }

    #[test]
    fn a_fresh_barrier_lets_parity_one_pass_and_holds_parity_zero() {
        let b = fresh(1);
        assert!(b.passes(1) && !b.passes(0));
    }

    /// Bytes may arrive before they are announced: the count goes negative, and the phase waits for both.
    #[test]
    fn a_phase_completes_when_arrivals_and_bytes_are_both_there() {
        let mut b = fresh(2);
        b.bytes -= 4096;
        assert!(!b.complete());
        b.arrive(1, 0, &Views::default()).unwrap();
        b.bytes += 8192;
        b.arrive(1, 0, &Views::default()).unwrap();
        assert!(!b.complete(), "4096 bytes are pending");
        b.bytes -= 4096;
        assert!(b.complete());
        assert!(b.passes(0) && !b.passes(1));
        assert_eq!(b.pending, 2);
        b.arrive(2, 0, &Views::default()).unwrap();
        assert_eq!(b.arrive(1, 0, &Views::default()), Err(()));
    }
}
