//! What things cost, in SM cycles. One row per number, each with where it comes from.
//!
//! They decide the default schedule and the cycle count that a run reports; whether a kernel is right never depends on them.
//! Those of the B200 come from public collections, and where those have nothing, the row says "estimate". Of the H200's, some
//! were measured for this project, on an H200: `emulator/tests/silicon/timing` holds the kernels and what they took, and
//! `silicon clock` sets both side by side. `docs/sources.md` says where to find the collections:
//!
//! - *QuickRunCUDA*: a B300, the B200's successor; notes of one author;
//! - *SemiAnalysis*: a B200, `tcgen05.mma` in all shapes, bandwidth;
//! - *Meta's Triton*: a B200, the latency model of a compiler;
//! - *Hopper dissected*: an H800, instruction by instruction.
//!
//! Where a source gives a range, the middle stands. None was fitted to the time of a kernel: `cargo workbook clock` shows how far
//! from published times of whole kernels they lead.

/// A GPU whose times are simulated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Gpu {
    /// NVIDIA B200 (compute capability 10.0).
    #[default]
    B200,
    /// NVIDIA H200 (compute capability 9.0).
    H200,
}

impl Gpu {
    /// What a launch takes that reports so many cycles, in nanoseconds, one behind the other in a stream: at the clock of a
    /// GPU under load, and with the time between two launches. An assumption of this model, not a measurement.
    pub fn launch_time(self, cycles: u64) -> f64 {
        let costs = Costs::of(self);
        cycles as f64 * 1000.0 / costs.clock_mhz as f64 + costs.launch_ns as f64
    }

    /// The GPU that a module's `.target` is for.
    pub(crate) fn of(targets: &[String]) -> Gpu {
        if targets.iter().any(|t| t.starts_with("sm_9")) { Gpu::H200 } else { Gpu::B200 }
    }
}

/// Costs of one GPU.
#[derive(Clone, Debug)]
pub struct Costs {
    /// SMs of each GPC: a cluster stays within one.
    pub gpcs: &'static [u32],
    /// What an SM holds: CTAs, threads, 32-bit registers, bytes of shared memory (CUDA Programming Guide, compute
    /// capabilities 9.0 and 10.0).
    pub sm_ctas: u32,
    /// Threads of an SM.
    pub sm_threads: u32,
    /// Registers of an SM.
    pub sm_registers: u32,
    /// Bytes of shared memory of an SM, 1 KB a CTA for the system included.
    pub sm_shared: u32,
    /// The SM clock while a GEMM runs.
    pub clock_mhz: u64,
    /// From the end of a launch to the first instruction of the next in the same stream.
    pub launch_ns: u64,
    /// Bytes that L2 holds of what all SMs use: half of its size, since each of its two partitions keeps what its own SMs
    /// read (NVIDIA A100 white paper: "each L2 partition caches data for memory accesses from SMs in the GPCs directly
    /// connected to the partition").
    pub l2_bytes: u64,
    /// Bytes that all SMs together get from L2 in a cycle.
    pub l2_bytes_per_cycle: u64,
    /// Bytes that DRAM gives in a cycle.
    pub dram_bytes_per_cycle: u64,
    /// Bytes that one SM gets from L2 in a cycle, through the TMA engine or its load units, while others leave it that much.
    pub port_bytes_per_cycle: u64,
    /// Between two instructions of a warp. Dependent arithmetic takes 4 cycles (QuickRunCUDA, B300). Estimate: half of it
    /// overlaps.
    pub issue: u64,
    /// From a global load to its value, where L2 has it.
    pub cached_load: u64,
    /// The same where DRAM must be asked.
    pub global_load: u64,
    /// From a shared load to its value.
    pub shared_load: u64,
    /// `bar.sync` of W warps: this and twice W.
    pub cta_barrier: u64,
    /// A relaxed cluster barrier of two CTAs.
    pub cluster_barrier: u64,
    /// How much longer it takes where arrivals release and waits acquire, as they do when nothing else is said: a fence of
    /// cluster scope stands before the arrival.
    pub cluster_release: u64,
    /// From the issue of a tensor copy to the sight of its first bytes behind the mbarrier, where L2 has them.
    pub tma_latency: u64,
    /// Between two copies that a thread issues.
    pub tma_issue: u64,
    /// A copy from shared to global memory: this, and so much for each KB; one after the other.
    pub tma_store: u64,
    /// For each KB of such a copy. Its source is read at this rate.
    pub tma_store_per_kb: u64,
    /// From where the last byte of such a copy has been read to where a wait for the read sees it.
    pub tma_store_read: u64,
    /// `mbarrier.arrive`.
    pub mbarrier: u64,
    /// From the completion of a phase to the wake-up of a waiter. Estimate: to arrive and wait takes 54 to 123
    /// cycles, to arrive alone 24 (QuickRunCUDA, B300).
    pub wake: u64,
    /// `fence.proxy.async`. Estimate: as a fence of CTA scope, which takes 6 to 16 (QuickRunCUDA, B300).
    pub fence: u64,
    /// How much longer MMAs take while all tensor cores of the chip are busy with numbers that are not zero, in percent: power.
    pub power: u64,
    /// A `tcgen05.ld` of 32 lanes: cycles for each column. Meta's Triton, B200, has 179 for 64 columns and 532 for
    /// 128; this follows the first.
    pub tensor_load_per_column: u64,
    /// A `tcgen05.ld`: the part that does not depend on its size. Estimate, from the same.
    pub tensor_load: u64,
    /// From the end of a `wgmma`'s interval to where the wait for its group sees it complete.
    pub wgmma_latency: u64,
    /// Bytes that a `tcgen05.cp` copies in a cycle. Estimate: as shared memory gives them to an MMA.
    pub tensor_copy_bytes_per_cycle: u64,
    /// From there to its end. Estimate: as of a small MMA.
    pub tensor_copy: u64,
    /// `tcgen05.alloc` and `dealloc`. Estimate, as no measurement is known: like an atomic on another CTA's shared
    /// memory, 188 (QuickRunCUDA, B300).
    pub tensor_alloc: u64,
}

impl Costs {
    /// NVIDIA B200.
    pub const B200: Costs = Costs {
        // SemiAnalysis: 74 TPCs of two SMs, in GPCs of these sizes; one is split.
        gpcs: &[20, 20, 20, 18, 18, 18, 18, 10, 6],
        sm_ctas: 32,
        sm_threads: 2048,
        sm_registers: 65536,
        sm_shared: 233_472,
        // 1.7 to 1.85 GHz in public measurements of GEMMs that last. The middle.
        clock_mhz: 1775,
        // QuickRunCUDA, B300: 1 to 4 us from kernel to kernel without programmatic dependent launch, which its author is not
        // sure of. The middle.
        launch_ns: 2500,
        // Half of 126 MB.
        l2_bytes: 63 << 20,
        // 17 TB/s into all SMs' shared memory at 1.85 GHz (QuickRunCUDA, B300).
        l2_bytes_per_cycle: 9190,
        // 7.1 TB/s at 1.85 GHz (SemiAnalysis: 7.06 to 7.2 with 64 KB an SM in flight).
        dram_bytes_per_cycle: 3838,
        // Meta's Triton, B200: 125 to 133 cycles from 16 KB to 32 KB, 262 to 270 from there to 64 KB.
        port_bytes_per_cycle: 128,
        issue: 2,
        // QuickRunCUDA, B300: 300 to 310, and 789.
        cached_load: 305,
        global_load: 790,
        // QuickRunCUDA, B300: 24; 22 + 2 W; 102, and 370 to 380 with release and acquire, the middle.
        shared_load: 24,
        cta_barrier: 22,
        cluster_barrier: 102,
        cluster_release: 273,
        // Meta's Triton, B200: 530 for 16 KB, 655 to 663 for 32 KB, 925 for 64 KB, of which a cycle for each 128 bytes; about
        // 30; 130 and 52 for each KB.
        tma_latency: 402,
        tma_issue: 30,
        tma_store: 130,
        tma_store_per_kb: 52,
        // Estimate: as on an H200.
        tma_store_read: 53,
        // Nothing is known of it, and `wgmma` does not run there.
        wgmma_latency: 0,
        // QuickRunCUDA, B300.
        mbarrier: 24,
        wake: 50,
        fence: 16,
        // cuBLAS at 8192³ on a B300: 2246 TFLOP/s with zeros, 1850 to 1905 with random numbers (QuickRunCUDA): 18 to 21. The middle.
        power: 20,
        tensor_load_per_column: 2,
        tensor_load: 40,
        tensor_alloc: 188,
        tensor_copy_bytes_per_cycle: 128,
        tensor_copy: 104,
    };

    /// NVIDIA H200. Where nothing is known of Hopper, the B200's number stands. "Measured" is what `silicon clock` shows, less what
    /// the emulator counts for the instructions around it.
    pub const H200: Costs = Costs {
        // 132 SMs; the sizes of the GPCs differ from chip to chip.
        gpcs: &[18, 18, 16, 16, 16, 16, 16, 16],
        // 1.4 to 1.75 GHz in public measurements of GEMMs. The middle.
        clock_mhz: 1575,
        // Half of 50 MB.
        l2_bytes: 25 << 20,
        // Hopper dissected, H800: 3942 bytes a cycle.
        l2_bytes_per_cycle: 3942,
        // 4.8 TB/s by its data sheet at 1.755 GHz; estimate: nine tenths of it are reached.
        dram_bytes_per_cycle: 2460,
        // Measured: 279 (Hopper dissected, H800: 263).
        cached_load: 276,
        // Hopper dissected, H800: 479 to 744.
        global_load: 612,
        // Measured: 24 (Hopper dissected, H800: 29).
        shared_load: 21,
        // Measured: 20 with 4 warps, 28 with 8.
        cta_barrier: 10,
        // Measured: 65, and 334 with release and acquire.
        cluster_barrier: 63,
        cluster_release: 269,
        // Measured: 342 for 16 bytes, 345 for 1 KB, 516 for 8 KB, 687 for 32 KB: a phase is seen in steps of 171 cycles, however one
        // asks. Less a cycle for each 128 bytes that is 335, 331, 446, 425; the mean.
        tma_latency: 384,
        // Measured: 95 for 1 KB, 319 for 8 KB, 1087 for 32 KB; 6 less to where the source is free.
        tma_store: 59,
        tma_store_per_kb: 32,
        tma_store_read: 53,
        // Measured: 190 for one of 128, 94 for one of 32, and as much more for 16 behind each other.
        wgmma_latency: 58,
        ..Costs::B200
    };

    /// The costs of a GPU.
    pub fn of(gpu: Gpu) -> &'static Costs {
        match gpu {
            Gpu::B200 => &Costs::B200,
            Gpu::H200 => &Costs::H200,
        }
    }

    /// From the end of an MMA's interval to where the wait for its commit sees it complete: the latency of a single MMA less its
    /// interval (SemiAnalysis, B200).
    pub fn mma_latency(&self, m_each: u32, pair: bool, a_shared: bool) -> u64 {
        match (pair, a_shared, m_each) {
            (false, false, _) => 104,
            (false, true, 64) => 120,
            (false, true, _) => 136,
            (true, false, 64) => 146,
            (true, false, _) => 138,
            (true, true, 64) => 165,
            (true, true, _) => 170,
        }
    }

    /// Cycles between two MMAs, of any kind: all take 32 bytes of each row, and TF32 half as many products a cycle, 8-bit types twice and
    /// 4-bit types four times as many as FP16 (SemiAnalysis, B200). The tensor core takes N/2 (N/4 for the 64 rows that each CTA of a pair has with
    /// M = 128); the operands come through the shared-memory port of each SM at 128 bytes a cycle (SemiAnalysis, B200).
    ///
    /// A `wgmma` of 64 rows takes the same on Hopper's four tensor cores, which the warpgroups of an SM share: 128 cycles with
    /// N = 256, 64 with 128, 32 with 64, and with A in shared memory longer than with A in registers only where N is below 64
    /// (Hopper dissected, H800).
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

    /// What Hopper dissected gives for `wgmma`, in cycles.
    #[test]
    fn intervals_of_wgmma_are_those_measured() {
        for (n, a_shared, measured) in
            [(256, true, 128), (256, false, 128), (128, true, 64), (128, false, 64), (64, true, 32), (64, false, 32)]
        {
            assert_eq!(Costs::H200.mma_interval(64, n, n, a_shared), measured, "N {n}");
        }
        assert!(Costs::H200.mma_interval(64, 32, 32, true) > Costs::H200.mma_interval(64, 32, 32, false));
    }

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
