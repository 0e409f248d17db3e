//! Clusters: CTAs that run at the same time, reach each other's shared memory, and in pairs share an MMA.

use crate::level::Level;
use crate::register::{U32, dummy};
use crate::scope::{Cta, Scope, special};
use crate::state::with;

/// CTAs that a cluster may have everywhere (CUDA programming guide, thread block clusters).
const MAX_CLUSTER: u32 = 8;

impl Cta {
    /// Launches clusters of two CTAs, neighbours in x, whose tensor cores work as one: every `tcgen05` instruction of
    /// the kernel then has `.cta_group::2` (all of a kernel must have the same, PTX ISA 9.7.16.1). Of an accumulator of
    /// 256 rows, the CTA of rank 0, the leader, has the first 128.
    ///
    /// Once, before the first instruction; the grid must be a multiple of two in x. PTX: `.reqnctapercluster 2, 1, 1`.
    #[track_caller]
    pub fn cta_pair(&mut self) {
        with(|s| {
            if s.pair {
                s.error("the CTA pair is asked for twice", "call `cta_pair` once, at the start of the kernel");
            } else if s.has_instructions() {
                s.error(
                    "the CTA pair is asked for after the first instruction",
                    "call `cta_pair` at the start of the kernel: waits, arrivals and MMAs differ in a pair",
                );
            }
            s.needs_blackwell("a CTA pair");
            if !s.hopper {
                (s.pair, s.cluster) = (true, 2);
            }
        });
    }

    /// Launches clusters of so many CTAs, 1 to 8, neighbours in x: they run at the same time, and reach each other's
    /// shared memory.
    ///
    /// Once, before the first instruction; the grid must be a multiple in x. PTX: `.reqnctapercluster`.
    #[track_caller]
    pub fn cluster(&mut self, ctas: u32) {
        with(|s| {
            if s.cluster > 1 {
                s.error("the cluster is set twice", "call `cluster` once, at the start of the kernel");
                return;
            } else if s.has_instructions() {
                s.error("the cluster is set after the first instruction", "call `cluster` at the start of the kernel");
            } else if !(1..=MAX_CLUSTER).contains(&ctas) {
                s.error(
                    format!("a cluster cannot have {ctas} CTAs"),
                    format!("use 1 to {MAX_CLUSTER}: what every GPU with clusters has room for"),
                );
                return;
            }
            s.cluster = ctas;
        });
    }

    /// The barrier of the cluster: no thread goes on before all threads of its CTAs have come. What a thread wrote
    /// before it to shared memory, its own or another CTA's, all threads of the cluster can read after it. Without
    /// [`Scope::cta_pair`] or [`Scope::cluster`] a CTA is a cluster of its own.
    ///
    /// Executed by every thread of the cluster. PTX: `barrier.cluster.arrive.release.aligned`,
    /// `barrier.cluster.wait.acquire.aligned`.
    #[track_caller]
    pub fn cluster_sync(&self) {
        with(|s| {
            if s.all_come("cluster", "k.cluster_sync()") {
                s.instruction("barrier.cluster.arrive.release.aligned");
                s.instruction("barrier.cluster.wait.acquire.aligned");
            }
        });
    }
}

impl<L: Level> Scope<L> {
    /// The index of the CTA in its cluster; 0 is the leader of a pair. PTX: `mov.u32` from `%cluster_ctarank`.
    #[track_caller]
    pub fn cluster_rank(&mut self) -> U32 {
        with(|s| special(s, "%cluster_ctarank")).unwrap_or(dummy())
    }

    /// The index of the cluster in the grid, in x. PTX: `mov.u32` from `%clusterid.x`.
    #[track_caller]
    pub fn cluster_x(&mut self) -> U32 {
        with(|s| special(s, "%clusterid.x")).unwrap_or(dummy())
    }
}
