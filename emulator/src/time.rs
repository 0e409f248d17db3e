//! What things cost, in SM cycles. One row per number, each with where it comes from.
//!
//! The numbers are for a B200. They decide the default schedule and the cycle count that a run reports; whether a kernel is
//! right never depends on them. None was measured for this project: they come from three public collections, and where those
//! have nothing, the row says "estimate". `docs/sources.md` says where to find them:
//!
//! - *QuickRunCUDA*: a B300, the B200's successor; notes of one author;
//! - *SemiAnalysis*: a B200, `tcgen05.mma` in all shapes;
//! - *Meta's Triton*: a B200, the latency model of a compiler.

/// Costs of one GPU.
#[derive(Clone, Debug)]
pub struct Costs {
    /// Between two instructions of a warp. Dependent arithmetic takes 4 cycles (QuickRunCUDA, B300). Estimate: half of it
    /// overlaps.
    pub issue: u64,
    /// From a global load to its value: a miss in L2 (QuickRunCUDA, B300: 789).
    pub global_load: u64,
    /// Bytes of global memory that an SM moves in a cycle, in sectors of 32 bytes. Estimate: half of what its shared-memory
    /// port moves.
    pub global_bytes_per_cycle: u64,
    /// From a shared load to its value (QuickRunCUDA, B300: 24).
    pub shared_load: u64,
    /// `bar.sync` of W warps: this and twice W (QuickRunCUDA, B300: 22 + 2 W).
    pub cta_barrier: u64,
    /// A relaxed cluster barrier of two CTAs (measured on a B300: 102; with release and acquire 370 to 380).
    pub cluster_barrier: u64,
    /// From the issue of a tensor copy to its first bytes (Meta's latency model, B200: 460 + 6 for each KB).
    pub tma_latency: u64,
    /// Bytes that the TMA engine of an SM moves in a cycle (17 TB/s measured for the chip: 115 GB/s for each SM and GHz).
    pub tma_bytes_per_cycle: u64,
    /// Between two copies that a thread issues (Meta's latency model, B200: about 30).
    pub tma_issue: u64,
    /// `mbarrier.arrive` (QuickRunCUDA, B300: 24).
    pub mbarrier: u64,
    /// From the completion of a phase to the wake-up of a waiter. Estimate: to arrive and wait takes 54 to 123
    /// cycles, to arrive alone 24 (QuickRunCUDA, B300).
    pub wake: u64,
    /// `fence.proxy.async`. Estimate: as a fence of CTA scope, which takes 6 to 16 (QuickRunCUDA, B300).
    pub fence: u64,
    /// From the issue of an MMA to its observed completion, beyond its interval (SemiAnalysis, B200: 136 with
    /// M = 128 and both operands in shared memory).
    pub mma_latency: u64,
    /// A `tcgen05.ld` of 32 lanes: cycles for each column. Meta's Triton, B200, has 179 for 64 columns and 532 for
    /// 128; this follows the first.
    pub tensor_load_per_column: u64,
    /// A `tcgen05.ld`: the part that does not depend on its size. Estimate, from the same.
    pub tensor_load: u64,
    /// `tcgen05.alloc` and `dealloc`. Estimate, as no measurement is known: like an atomic on another CTA's shared
    /// memory, 188 (QuickRunCUDA, B300).
    pub tensor_alloc: u64,
}

impl Costs {
    /// NVIDIA B200.
    pub const B200: Costs = Costs {
        issue: 2,
        global_load: 790,
        global_bytes_per_cycle: 64,
        shared_load: 24,
        cta_barrier: 22,
        cluster_barrier: 102,
        tma_latency: 460,
        tma_bytes_per_cycle: 62,
        tma_issue: 30,
        mbarrier: 24,
        wake: 50,
        fence: 16,
        mma_latency: 136,
        tensor_load_per_column: 2,
        tensor_load: 40,
        tensor_alloc: 188,
    };

    /// Cycles between two MMAs of depth 16: the tensor core takes N/2 (N/4 for the 64 rows that each CTA of a pair has with
    /// M = 128); the operands come through the shared-memory port of each SM at 128 bytes a cycle (SemiAnalysis, B200).
    pub fn mma_interval(&self, m_each: u32, n: u32, n_each: u32, a_shared: bool) -> u64 {
        let pair = n_each < n;
        let compute = if pair && m_each == 64 { n / 4 } else { n / 2 };
        let rows = n_each + if a_shared { m_each } else { 0 };
        u64::from(compute.max(rows * 32 / 128))
    }
}

#[cfg(test)]
mod tests {
    use super::Costs;

    /// The intervals that SemiAnalysis measured on a B200 (microbench-blackwell), in cycles.
    #[test]
    fn mma_intervals_are_those_measured() {
        let c = Costs::B200;
        for (m_each, n, n_each, a_shared, measured) in [
            (128, 64, 64, true, 48),
            (128, 128, 128, true, 64),
            (128, 256, 256, true, 128),
            (64, 128, 128, true, 64),
            (128, 256, 128, true, 128),
            (64, 256, 128, true, 64),
            (128, 64, 64, false, 32),
        ] {
            assert_eq!(c.mma_interval(m_each, n, n_each, a_shared), measured, "M {m_each} N {n}");
        }
    }
}
