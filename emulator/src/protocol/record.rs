//! What a cluster's warps and engines did to wait for each other, as it happened.

use rustc_hash::FxHashMap;
use std::hash::{Hash, Hasher};

/// Steps that are remembered of a cluster. What is longer is not proved.
const MOST: usize = 1 << 18;

/// One operation of one set of lanes, or the end of something that an engine did for them.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// The warp, by its place in the cluster.
    pub warp: u16,
    pub lanes: u32,
    /// The statement.
    pub site: u32,
    pub what: What,
}

/// Barriers are named by their place in the cluster, CTAs by their rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum What {
    /// `mbarrier.init`.
    Init {
        barrier: u32,
        count: u32,
    },
    /// `mbarrier.inval`.
    Inval {
        barrier: u32,
    },
    /// Arrivals and announced bytes, in one; either may be none.
    Arrive {
        barrier: u32,
        count: u32,
        bytes: u32,
    },
    /// A wait that passed.
    Wait {
        barrier: u32,
        parity: u8,
    },
    /// Asked an engine for something that ends by itself.
    Issue,
    /// An engine has done what the step of this number asked for, and tells an mbarrier.
    Done {
        issue: u32,
        barrier: u32,
        count: u32,
        bytes: u32,
    },
    /// Came to a CTA barrier: the threads that it then counts more, and how many it takes (`None`: all that have not ended).
    Named {
        cta: u8,
        id: u8,
        threads: u8,
        expected: Option<u16>,
    },
    /// All threads that a CTA barrier takes are there.
    NamedDone {
        cta: u8,
        id: u8,
    },
    /// Goes on behind a CTA barrier.
    NamedPassed {
        cta: u8,
        id: u8,
    },
    ClusterArrive,
    /// All threads of the cluster that have not ended have arrived.
    ClusterDone,
    /// Goes on behind the cluster barrier.
    ClusterPassed,
    /// Came to its warpgroup's MMA of this number, from 1.
    Wgmma {
        number: u32,
    },
    /// Waited for all of its warpgroup's MMAs up to this number.
    WgmmaWait {
        number: u32,
    },
    /// Lanes met.
    Meet,
    /// Got columns of tensor memory.
    Alloc {
        columns: u16,
        pair: bool,
    },
    /// Gave them back.
    Free {
        columns: u16,
    },
    /// Got so many registers a thread from the pool of its CTA.
    TakeRegisters {
        count: u16,
    },
    /// Gave so many back.
    GiveRegisters {
        count: u16,
    },
    Exit,
}

/// The steps of a cluster, in the order in which they happened.
#[derive(Debug, Default)]
pub struct Record {
    pub steps: Vec<Step>,
    /// Nothing is recorded.
    off: bool,
    /// There were more than can be remembered.
    full: bool,
    /// mbarriers that lanes asked in vain, and have not waited for since: by warp and lowest lane.
    asked: FxHashMap<(u16, u32), Asked>,
    /// Statements by which time decides what a warp does next.
    timing: Vec<(u32, Timing)>,
}

#[derive(Clone, Copy, Debug)]
struct Asked {
    barrier: u32,
    parity: u8,
    site: u32,
}

/// Why what a warp does may depend on times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timing {
    /// It asked an mbarrier in vain, and did something else instead of asking again.
    Polled,
    /// Which work it gets depends on which other clusters have begun.
    LaunchControl,
    /// It read what others store meanwhile.
    Memory,
}

/// The number of a step that was not recorded.
pub const NONE: u32 = u32::MAX;

impl Record {
    pub fn new(off: bool) -> Record {
        Record { off, ..Record::default() }
    }

    /// Adds a step; gives its number.
    pub fn add(&mut self, warp: usize, lanes: u32, site: u32, what: What) -> u32 {
        if self.off || self.full {
            return NONE;
        }
        if self.steps.len() == MOST {
            self.full = true;
            self.steps = Vec::new();
            return NONE;
        }
        if !self.asked.is_empty() {
            let who = (warp as u16, lanes & lanes.wrapping_neg());
            match (self.asked.get(&who), what) {
                (Some(asked), What::Wait { barrier, parity }) if asked.barrier == barrier => {
                    if asked.parity != parity {
                        self.timing.push((asked.site, Timing::Polled));
                    }
                    self.asked.remove(&who);
                }
                _ => {}
            }
        }
        self.steps.push(Step { warp: warp as u16, lanes, site, what });
        self.steps.len() as u32 - 1
    }

    /// An engine tells an mbarrier that it has done what this step asked for.
    pub fn done(&mut self, issue: u32, barrier: u32, count: u32, bytes: u32) {
        if let Some(&Step { warp, lanes, site, .. }) = self.steps.get(issue as usize) {
            self.add(warp.into(), lanes, site, What::Done { issue, barrier, count, bytes });
        }
    }

    /// Lanes asked an mbarrier in vain.
    pub fn asked_in_vain(&mut self, warp: usize, lanes: u32, site: u32, barrier: u32, parity: u32) {
        if self.off {
            return;
        }
        let new = Asked { barrier, parity: parity as u8, site };
        if let Some(old) = self.asked.insert((warp as u16, lanes & lanes.wrapping_neg()), new)
            && old.barrier != barrier
        {
            self.timing.push((old.site, Timing::Polled));
        }
    }

    /// What a warp does behind this statement depends on times.
    pub fn depends_on_timing(&mut self, site: u32, why: Timing) {
        if !self.off && !self.timing.contains(&(site, why)) {
            self.timing.push((site, why));
        }
    }

    /// The statements by which time decides what warps do, and why.
    pub fn timing(&self) -> Vec<(u32, Timing)> {
        let mut list: Vec<_> = self.timing.clone();
        list.extend(self.asked.values().map(|asked| (asked.site, Timing::Polled)));
        list.sort_unstable();
        list.dedup();
        list
    }

    pub fn is_off(&self) -> bool {
        self.off
    }

    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The same for records in which each set of lanes did the same, whatever came first among them.
    pub fn fingerprint(&self) -> u128 {
        let mut sequences: FxHashMap<(u16, u32), u64> = FxHashMap::default();
        let mut places: Vec<(u16, u32, u64)> = Vec::with_capacity(self.steps.len());
        for step in &self.steps {
            let who = (step.warp, step.lanes & step.lanes.wrapping_neg());
            match step.what {
                What::Done { .. } | What::NamedDone { .. } | What::ClusterDone => places.push((0, 0, 0)),
                _ => {
                    let n = sequences.entry(who).or_default();
                    *n += 1;
                    places.push((who.0, who.1, *n));
                }
            }
        }
        let mut sum = 0_u128;
        for (step, &place) in self.steps.iter().zip(&places) {
            let what = match step.what {
                // In the place of what asked for it.
                What::Done { issue, barrier, count, bytes } => {
                    (places[issue as usize], What::Done { issue: 0, barrier, count, bytes }, 0)
                }
                // Who comes last to a barrier makes no difference.
                What::NamedDone { .. } | What::ClusterDone => continue,
                what => (place, what, step.lanes),
            };
            let hash = |seed: u64| {
                let mut hasher = rustc_hash::FxHasher::default();
                (seed, what).hash(&mut hasher);
                u128::from(hasher.finish())
            };
            sum = sum.wrapping_add(hash(1) << 64 | hash(2));
        }
        sum
    }
}
