//! Who touched which bytes of global memory: within a cluster, or across clusters.
//!
//! Most buffers are only ever read. Their reads are kept as they came, a box a record; byte for byte they matter only once somebody
//! writes the buffer.

use super::memory::Runs;
use crate::order::{Access, Conflict, Rows, Shadow, Stamp, Views};

/// Reads of a buffer that nobody has written, at most, before they are kept byte for byte.
const MOST_READS: usize = 1 << 17;

#[derive(Debug, Default)]
struct Touched {
    /// Kept byte for byte.
    exact: bool,
    reads: Vec<(Runs, Stamp)>,
    shadow: Shadow,
}

/// Accesses of all buffers.
#[derive(Debug, Default)]
pub struct Tracker {
    buffers: Vec<Touched>,
    /// Only accesses of different clusters are held against each other.
    across: bool,
}

impl Tracker {
    /// For accesses within one cluster, or of all clusters.
    pub fn new(buffers: usize, across: bool) -> Tracker {
        Tracker { buffers: (0..buffers).map(|_| Touched::default()).collect(), across }
    }

    /// Checks and remembers an access; gives the first conflict.
    pub fn touch(&mut self, runs: Runs, stamp: Stamp, views: &Views, writes: bool) -> Option<Conflict> {
        let across = self.across;
        let touched = self.buffers.get_mut(runs.buffer)?;
        if !writes && !touched.exact && touched.reads.len() < MOST_READS {
            if touched.reads.last() != Some(&(runs, stamp)) {
                touched.reads.push((runs, stamp));
            }
            return None;
        }
        if !touched.exact {
            touched.exact = true;
            let nothing = Views::default();
            for (runs, stamp) in std::mem::take(&mut touched.reads) {
                let access = Access { across, global: true, ..Access::new(stamp, &nothing) };
                if touched.shadow.touch_rows(runs.rows(), &access, false) {
                    continue;
                }
                for start in runs.starts() {
                    touched.shadow.read(start, runs.bytes.into(), &access);
                }
            }
        }
        let access = Access { across, global: true, ..Access::new(stamp, views) };
        if touched.shadow.touch_rows(runs.rows(), &access, writes) {
            return None;
        }
        let mut found = None;
        for start in runs.starts() {
            let bytes = u64::from(runs.bytes);
            let conflict = if writes {
                touched.shadow.write(start, bytes, &access)
            } else {
                touched.shadow.read(start, bytes, &access)
            };
            found = found.or(conflict);
        }
        found
    }
}

impl Runs {
    fn rows(self) -> Rows {
        Rows { first: self.first, bytes: self.bytes.into(), count: self.count.into(), pitch: self.pitch }
    }
}
