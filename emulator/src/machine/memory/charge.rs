//! What plain accesses cost: sectors of global memory, banks of shared memory.

use super::Runs;
use super::resolve::Target;
use crate::machine::cluster::Cluster;
use crate::machine::state::{At, Span};
use crate::report::EventKind;

/// Bytes that global memory moves at once.
const SECTOR: u64 = 32;

impl Cluster<'_> {
    /// What the access costs; gives the time at which a load's value is there.
    pub fn charge(&mut self, at: At, targets: &[(usize, Target)], total: usize, load: bool) -> u64 {
        let At { w, f, site, .. } = at;
        let now = self.warps[w].fragments[f].ready_at;
        let Some(&(_, first)) = targets.first() else { return now };
        let c = self.warps[w].cta;
        let actor = crate::report::Actor::Warp(self.warps[w].index);
        let bytes = (total * targets.len()) as u32;
        match first {
            Target::Param(_) => now,
            // Frames are interleaved word by word, and stay in the L1 cache.
            Target::Local(_) => {
                let cycles = u64::from(bytes).div_ceil(self.costs.port_bytes_per_cycle);
                let begin = now.max(self.ctas[c].global_port_free);
                self.ctas[c].global_port_free = begin + cycles;
                begin + cycles + if load { self.costs.shared_load } else { 0 }
            }
            Target::Global { buffer, .. } => {
                // 32-byte sectors, each moved once.
                let mut sectors: Vec<(usize, u64)> = targets
                    .iter()
                    .filter_map(|(_, t)| match *t {
                        Target::Global { buffer, offset } => Some((buffer, offset / SECTOR)),
                        _ => None,
                    })
                    .collect();
                sectors.sort_unstable();
                sectors.dedup();
                let missed: u64 =
                    sectors.iter().map(|&(b, sector)| self.missed(Runs::one(b, sector * SECTOR, SECTOR as u32))).sum();
                let latency = if missed > 0 { self.costs.global_load } else { self.costs.cached_load };
                let cycles = self.carry(c, sectors.len() as u64 * SECTOR, missed);
                let begin = now.max(self.ctas[c].global_port_free);
                self.ctas[c].global_port_free = begin + cycles;
                let delay = self.jitter(500);
                let done = begin + cycles + if load { latency } else { 0 } + delay;
                self.trace(c, actor, Span::of_warp(w, now, done), site, || match load {
                    true => EventKind::GlobalLoad { buffer, bytes },
                    false => EventKind::GlobalStore { buffer, bytes },
                });
                if !load {
                    self.warps[w].fragments[f].ready_at = begin + cycles;
                }
                done
            }
            Target::Shared(..) => {
                let (mut offsets, mut count) = ([0; 32], 0);
                for (_, target) in targets {
                    if let Target::Shared(_, at) = *target {
                        offsets[count] = at;
                        count += 1;
                    }
                }
                self.charge_shared(at, &offsets[..count], total, load)
            }
        }
    }

    /// The same of an access of shared memory, at these offsets.
    pub fn charge_shared(&mut self, at: At, offsets: &[u32], total: usize, load: bool) -> u64 {
        let At { w, f, site, .. } = at;
        let now = self.warps[w].fragments[f].ready_at;
        let c = self.warps[w].cta;
        let cta = &mut self.ctas[c];
        let cycles = bank_cycles(offsets, total as u32);
        cta.busy.shared_port += cycles;
        let cycles = cycles * cta.slowed.shared_port / 256;
        let begin = now.max(cta.shared_port_free);
        cta.shared_port_free = begin + cycles;
        let delay = self.jitter(30);
        let done = begin + cycles + if load { self.costs.shared_load } else { 0 } + delay;
        if !load {
            let actor = crate::report::Actor::Warp(self.warps[w].index);
            let start = self.kernel.dynamic_start;
            self.trace(c, actor, Span::of_warp(w, now, done), site, || {
                let low = offsets.iter().copied().min().unwrap_or(start);
                let offset = low.wrapping_sub(start) as i32;
                EventKind::SharedStore { offset, bytes: (total * offsets.len()) as u32 }
            });
            self.warps[w].fragments[f].ready_at = begin + cycles;
        }
        done
    }
}

/// Cycles of the shared-memory port for one warp's access: 32 banks of 4 bytes, 128 bytes a cycle. Wide accesses go in
/// groups of lanes that make up 128 bytes; within a group, different words of one bank take turns.
pub fn bank_cycles(offsets: &[u32], bytes: u32) -> u64 {
    let lanes = (128 / bytes.max(4)).max(1) as usize;
    let words = bytes.div_ceil(4);
    offsets
        .chunks(lanes)
        .map(|group| {
            // Most touch no bank twice.
            let each = (1u64 << words.min(32)) - 1;
            let (banks, twice) = group.iter().fold((0, 0), |(banks, twice), &offset| {
                let of_lane = each << (offset / 4 % 32);
                (banks | of_lane, twice | banks & of_lane)
            });
            if twice == 0 && banks >> 32 == 0 {
                return 1;
            }
            let mut touched = [0; 32];
            let mut count = 0;
            for word in group.iter().flat_map(|&o| (0..words).map(move |n| o / 4 + n)) {
                touched[count % 32] = word;
                count += 1;
            }
            let touched = &mut touched[..count.min(32)];
            if !touched.is_sorted() {
                touched.sort_unstable();
            }
            let mut banks = [0u8; 32];
            for (n, &word) in touched.iter().enumerate() {
                banks[word as usize % 32] += u8::from(n == 0 || touched[n - 1] != word);
            }
            u64::from(banks.into_iter().max().unwrap_or(1).max(1))
        })
        .sum()
}

#[cfg(test)]
mod tests {
    use super::bank_cycles;

    #[test]
    fn bank_conflicts_are_counted_in_groups_of_128_bytes() {
        let each = |f: fn(u32) -> u32| (0..32).map(f).collect::<Vec<_>>();
        assert_eq!(bank_cycles(&each(|l| l * 4), 4), 1, "one word a bank");
        assert_eq!(bank_cycles(&each(|l| l * 128), 4), 32, "all in one bank");
        assert_eq!(bank_cycles(&each(|_| 64), 4), 1, "one word for all is broadcast");
        assert_eq!(bank_cycles(&each(|l| l * 16), 16), 4, "512 bytes in a row");
        // A column of a tile with rows of 128 bytes: every lane in the same four banks …
        assert_eq!(bank_cycles(&each(|l| l * 128), 16), 32);
        // … and with the 128-byte swizzle, eight rows fill all banks.
        assert_eq!(bank_cycles(&each(|l| l * 128 + (l % 8) * 16), 16), 4);
    }
}
