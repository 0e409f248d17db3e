//! What a cluster's warps and engines did to wait for each other, as it happened.

use super::parted::{Joined, PartedWaits};
use rustc_hash::FxHashSet;
use smallvec::SmallVec;
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
    /// Arrivals and announced bytes, in one; either may be none. Bytes below zero are those that the thread says have come
    /// (`mbarrier.complete_tx`).
    Arrive {
        barrier: u32,
        count: u32,
        bytes: i32,
    },
    /// The phases behind this one take so many arrivals fewer.
    Drop {
        barrier: u32,
        count: u32,
    },
    /// A wait that passed, and asks again where it does not.
    Wait {
        barrier: u32,
        parity: u8,
    },
    /// Asked, and was told that the phase of this parity is complete; told otherwise, the lanes go on all the same, perhaps elsewhere.
    Asked {
        barrier: u32,
        parity: u8,
    },
    /// Asked an engine for something that ends by itself, and tells so many mbarriers then.
    Issue {
        tells: u8,
        /// It is a `tcgen05.commit` to these CTAs: those of a thread arrive in a CTA in the order of their issue, and each at all of its CTAs
        /// at once (assumption `commits-arrive-in-order`).
        commit: Option<u16>,
    },
    /// An engine has done what the step of this number asked for, and tells an mbarrier.
    Done {
        issue: u32,
        barrier: u32,
        count: u32,
        bytes: u32,
    },
    /// Came to a CTA barrier, which takes so many threads (`None`: all that have not ended).
    Named {
        cta: u8,
        id: u8,
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
    /// Gave up the right to get more.
    Relinquish,
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
    /// Warps whose lanes did not all do the last steps together.
    parted: FxHashSet<u16>,
    waits: PartedWaits,
    /// Statements by which time decides what a warp does next.
    timing: Vec<(u32, Timing)>,
    /// Its fingerprint, once it has come to its end.
    sealed: Option<u128>,
}

/// Why what a warp does may depend on times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Timing {
    /// It asks an mbarrier, and goes on whatever the answer is.
    Polled,
    /// Which work it gets depends on which other clusters have begun.
    LaunchControl,
    /// It read what others store meanwhile.
    Memory,
    /// It asks for the time, or for the number of its SM.
    Clock,
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
        let lanes = match self.in_step(warp as u16, lanes, what) {
            Ok(step) => return step,
            Err(lanes) => lanes,
        };
        if lanes != u32::MAX && lanes != 0 {
            self.parted.insert(warp as u16);
        }
        self.steps.push(Step { warp: warp as u16, lanes, site, what });
        self.steps.len() as u32 - 1
    }

    /// Waits of lanes that have parted, for one phase, are one step. Its number if this is a part of an earlier one; else all lanes of it.
    fn in_step(&mut self, warp: u16, lanes: u32, what: What) -> Result<u32, u32> {
        if lanes == 0 || matches!(what, What::Done { .. }) {
            return Err(lanes);
        }
        match self.waits.step(warp, lanes, what, self.steps.len() as u32) {
            Some(Joined::To(step)) => {
                self.steps.get_mut(step as usize).into_iter().for_each(|step| step.lanes |= lanes);
                Ok(step)
            }
            Some(Joined::From(step, others)) => {
                self.steps.get_mut(step as usize).into_iter().for_each(|step| step.what = What::Meet);
                Err(lanes | others)
            }
            None => Err(lanes),
        }
    }

    /// An engine tells an mbarrier that it has done what this step asked for.
    pub fn done(&mut self, issue: u32, barrier: u32, count: u32, bytes: u32) {
        if let Some(&Step { warp, lanes, site, .. }) = self.steps.get(issue as usize) {
            self.add(warp.into(), lanes, site, What::Done { issue, barrier, count, bytes });
        }
    }

    /// Lanes do something together that all of them wait for: what each did before comes before what any does behind it.
    pub fn meet(&mut self, warp: usize, lanes: u32, site: u32) {
        if self.parted.contains(&(warp as u16)) {
            self.add(warp, lanes, site, What::Meet);
            if lanes == u32::MAX {
                self.parted.remove(&(warp as u16));
                self.waits.met(warp as u16);
            }
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
        let mut list = self.timing.clone();
        list.sort_unstable();
        list
    }

    pub fn is_off(&self) -> bool {
        self.off
    }

    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Nothing is added any more.
    pub fn seal(&mut self) {
        if !self.off && !self.full {
            self.sealed = Some(self.hashed());
        }
    }

    /// The same for records in which each lane did the same, whichever of them were faster. Records that differ have the same by chance
    /// alone, one in 2¹²⁸.
    pub fn fingerprint(&self) -> u128 {
        self.sealed.unwrap_or_else(|| self.hashed())
    }

    fn hashed(&self) -> u128 {
        // What sets of lanes have done so far, of each warp, and what each step was behind all that its lanes had done.
        let warps = self.steps.iter().map(|step| usize::from(step.warp) + 1).max().unwrap_or(0);
        let mut chains: Vec<SmallVec<[(u32, u128); 2]>> = vec![SmallVec::new(); warps];
        let mut steps: Vec<u128> = Vec::with_capacity(self.steps.len());
        let mut ends = Vec::new();
        for step in &self.steps {
            let hash = match step.what {
                // Who comes last to a barrier makes no difference.
                What::NamedDone { .. } | What::ClusterDone => 0,
                What::Done { issue, barrier, count, bytes } => {
                    let hash = mixed(&(steps[issue as usize], barrier, count, bytes));
                    ends.push(hash);
                    hash
                }
                what => {
                    let list = &mut chains[usize::from(step.warp)];
                    let mut before: SmallVec<[(u32, u128); 2]> = SmallVec::new();
                    list.retain(|(lanes, chain)| {
                        if *lanes & step.lanes != 0 {
                            before.push((*lanes & step.lanes, *chain));
                            *lanes &= !step.lanes;
                        }
                        *lanes != 0
                    });
                    before.sort_unstable();
                    let hash = mixed(&(step.warp, step.lanes, what, before));
                    list.push((step.lanes, hash));
                    hash
                }
            };
            steps.push(hash);
        }
        ends.extend(chains.into_iter().flatten().map(|(lanes, chain)| mixed(&(lanes, chain))));
        ends.sort_unstable();
        mixed(&ends)
    }
}

fn mixed(what: &impl Hash) -> u128 {
    let mut mixer = Mixer(0x243f_6a88_85a3_08d3_1319_8a2e_0370_7344);
    what.hash(&mut mixer);
    mixer.0
}

/// Two products of each word, of 128 bits each, folded: a record has tens of thousands of steps, which a hash function that withstands
/// whoever chooses its input takes longer to read than the emulator to run them. Nobody gains by records that are taken for each other.
struct Mixer(u128);

impl Mixer {
    fn word(&mut self, word: u64) {
        let fold = |a: u64, b: u64| {
            let product = u128::from(a) * u128::from(b);
            (product >> 64) as u64 ^ product as u64
        };
        let (high, low) = ((self.0 >> 64) as u64, self.0 as u64);
        let one = fold(high ^ word, 0x9e37_79b9_7f4a_7c15 ^ low.rotate_left(32));
        let other = fold(low.wrapping_add(word), 0xc2b2_ae3d_27d4_eb4f ^ high);
        self.0 = u128::from(one ^ low) << 64 | u128::from(other.wrapping_add(high));
    }
}

impl Hasher for Mixer {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.word(u64::from_le_bytes(word));
        }
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, n: u8) {
        self.word(n.into());
    }

    fn write_u16(&mut self, n: u16) {
        self.word(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.word(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.word(n);
    }

    fn write_u128(&mut self, n: u128) {
        self.word(n as u64);
        self.word((n >> 64) as u64);
    }

    fn write_usize(&mut self, n: usize) {
        self.word(n as u64);
    }

    fn finish(&self) -> u64 {
        self.0 as u64
    }
}
