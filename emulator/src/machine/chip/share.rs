//! What clusters share: the chip's bandwidth, and the room and the engines of SMs.

use super::Chip;
use crate::machine::cluster::Shared;
use crate::machine::state::Engines;
use crate::report::Usage;
use crate::time::Costs;
use std::collections::HashMap;

/// Bytes that [`Rates`] are for: so many that cycles need no fractions.
pub const RATE_BYTES: u64 = 1 << 20;

/// What an SM gets of the chip's bandwidth, in cycles for [`RATE_BYTES`], and of its power: how many times longer an MMA takes than on
/// a chip that does nothing else, in 256ths.
#[derive(Clone, Copy, Debug)]
pub struct Rates {
    pub l2: u64,
    pub dram: u64,
    pub tensor_core: u64,
}

impl Rates {
    pub const ALONE: Rates = Rates { l2: 0, dram: 0, tensor_core: 256 };

    /// Within an eighth of others.
    pub fn close_to(&self, others: &Rates) -> bool {
        let pairs = [(self.l2, others.l2), (self.dram, others.dram), (self.tensor_core, others.tensor_core)];
        pairs.iter().all(|&(a, b)| a.abs_diff(b) <= a.min(b) / 8)
    }
}

impl Chip<'_> {
    /// What an SM gets of the chip's bandwidth when so many move bytes, and of the bytes missed so many really come.
    pub fn share(&self, movers: u64, came: u64, missed: u64) -> Rates {
        let Costs { l2_bytes_per_cycle, dram_bytes_per_cycle, .. } = *self.s.costs;
        let movers = movers.max(1);
        let dram = movers * RATE_BYTES * came.max(1) / missed.max(1) / dram_bytes_per_cycle;
        Rates { l2: movers * RATE_BYTES / l2_bytes_per_cycle, dram, ..self.rates }
    }

    /// Whether a quarter of the chip's bandwidth was left over in a window that began with so much done.
    pub fn has_bandwidth_left(&self, before: [u64; 3], window: u64) -> bool {
        let Costs { l2_bytes_per_cycle, dram_bytes_per_cycle, .. } = *self.s.costs;
        let moved = [1, 2].map(|n| self.done[n] - before[n]);
        moved.iter().zip([l2_bytes_per_cycle, dram_bytes_per_cycle]).all(|(moved, rate)| 4 * moved <= 3 * rate * window)
    }

    /// All tensor cores together had so many cycles of work in a window: the busier they are, the more power they take, and the
    /// longer MMAs last.
    pub fn heat(&mut self, tensor_cores: u64, window: u64) {
        let all = u64::from(self.s.costs.gpcs.iter().sum::<u32>()) * window;
        let taken = tensor_cores * self.rates.tensor_core;
        self.done[0] += taken / 256;
        let busy = taken.min(256 * all) / all.max(1);
        self.rates.tensor_core = 256 + self.s.costs.power * busy / 100;
        if self.room == 1 {
            for n in 0..self.running.len() {
                self.cluster(n).ctas.iter_mut().for_each(|cta| cta.busy = Engines::default());
            }
        }
    }

    /// What share of its throughput the chip has used.
    pub fn usage(&self) -> Usage {
        let Costs { gpcs, l2_bytes_per_cycle, dram_bytes_per_cycle, .. } = *self.s.costs;
        let sms = gpcs.iter().sum::<u32>().into();
        let [tensor_cores, l2, dram] = [(0, sms), (1, l2_bytes_per_cycle), (2, dram_bytes_per_cycle)]
            .map(|(n, rate)| self.done[n] as f64 / (rate * self.cycles).max(1) as f64);
        Usage { tensor_cores, l2, dram }
    }

    /// CTAs that share an SM share its tensor core, issue slots and ports: what the others used of them in the last window they
    /// leave less of in the next, but an equal part at least.
    pub fn share_engines(&mut self, window: u64) {
        if self.room == 1 {
            return;
        }
        let mut busy: HashMap<(usize, usize), Engines> = HashMap::new();
        for n in 0..self.running.len() {
            let group = self.running[n].group;
            for (rank, cta) in self.cluster(n).ctas.iter_mut().enumerate() {
                // An SM has four schedulers.
                cta.busy.issue /= 4;
                let sum = busy.entry((group, rank)).or_default();
                sum.all().into_iter().zip(cta.busy.all()).for_each(|(sum, own)| *sum += *own);
            }
        }
        for n in 0..self.running.len() {
            let group = self.running[n].group;
            let beside = self.groups[group].held.len() as u64;
            for (rank, cta) in self.cluster(n).ctas.iter_mut().enumerate() {
                let mut all = busy.get(&(group, rank)).copied().unwrap_or_default();
                let mut own = std::mem::take(&mut cta.busy);
                for ((all, own), slowed) in all.all().into_iter().zip(own.all()).zip(cta.slowed.all()) {
                    let left = window.saturating_sub(*all - *own).max(window / beside.max(1)).max(1);
                    *slowed = 256 * window / left;
                }
            }
        }
    }
}

/// CTAs of a launch that an SM has room for: by threads, registers, shared memory and number.
pub fn ctas_an_sm(s: &Shared) -> u32 {
    let c = s.costs;
    let threads = s.launch.block.iter().product::<u32>().next_multiple_of(32).max(32);
    let shared = s.kernel.dynamic_start + s.launch.dynamic_shared;
    let registers = threads * s.kernel.registers_per_thread;
    let fits = [c.sm_ctas, c.sm_threads / threads, c.sm_shared / shared.max(1), c.sm_registers / registers.max(1)];
    fits.into_iter().min().unwrap_or(1).max(1)
}
