//! The check of plain accesses against who touched the bytes before.

use super::Runs;
use super::resolve::Target;
use super::rewrites::Span;
use crate::machine::chip::outbox::Item;
use crate::machine::chip::tracker::Toucher;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, At, Cta, Race, RaceMemory};
use crate::order::{Access, Area, BLOCK, Conflict, GRANULE, Stamp, Views};

impl Cluster<'_> {
    /// Checks the bytes of all lanes against earlier accesses, neighbours together.
    pub fn order(
        &mut self,
        at: At,
        targets: &[(usize, Target)],
        total: u64,
        writes: bool,
        unwritten: bool,
        stamp: Stamp,
    ) {
        let At { w, site, .. } = at;
        // All lanes often read one place: once is as good as 32 times.
        let one = !writes && targets.iter().all(|target| target.1 == targets[0].1);
        let targets = if one { &targets[..targets.len().min(1)] } else { targets };
        if !self.options.judges() {
            let shared = targets.iter().filter_map(|t| if let Target::Shared(_, at) = t.1 { Some(at) } else { None });
            let (low, high) = shared.fold((u32::MAX, 0), |(low, high), at| (low.min(at), high.max(at + total as u32)));
            if !self.near_barrier(low, high) {
                return;
            }
        }
        self.order_global(at, targets, total as u32, writes, stamp);
        // Neighbours lie in the same block, and what a block held is gone with the first write.
        let mut last = None;
        let (mut low, mut high) = (u32::MAX, 0);
        for (_, target) in targets {
            let Target::Shared(c, at) = *target else { continue };
            let end = at + total as u32;
            (low, high) = (low.min(at), high.max(end));
            let here = (c, u64::from(at) / BLOCK, u64::from(end).div_ceil(BLOCK));
            let Cta { staged, loaded, .. } = &mut self.ctas[c];
            if !writes {
                loaded.read(at, end);
                continue;
            }
            staged.written(at, end);
            if last.replace(here) != Some(here) {
                loaded.overwrite(at, end);
            }
        }
        let near = self.near_barrier(low, high);
        if !near && self.order_granules(at, targets, total, writes, stamp) {
            return;
        }
        let (mut n, mut span) = (0, Span::default());
        while n < targets.len() {
            let (c, start) = match targets[n].1 {
                Target::Shared(c, at) => (c, u64::from(at)),
                Target::Global { .. } | Target::Local(_) | Target::Param(_) => {
                    n += 1;
                    continue;
                }
            };
            let mut end = start + total;
            n += 1;
            while let Some((_, Target::Shared(next, at))) = targets.get(n)
                && (*next, u64::from(*at)) == (c, end)
            {
                end += total;
                n += 1;
            }
            let homes = self.scopes.homes();
            let again = (writes && span.add(c, start, end)).then_some(&self.rewrites.again);
            let access = Access { transitive: true, homes, again, ..Access::new(stamp, &self.warps[w].views) };
            let shadow = &mut self.ctas[c].shared_shadow;
            let conflict: Option<Conflict> = if writes {
                shadow.write(start, end - start, &access)
            } else {
                shadow.read(start, end - start, &access)
            };
            if let Some(conflict) = conflict {
                self.race(Race { unwritten, ..Race::new(RaceMemory::Shared(c), conflict, stamp) });
            }
            if near {
                self.check_barrier_bytes(c, start as u32, end as u32, site, writes);
            }
        }
    }

    /// Whether bytes of shared memory may be those of an mbarrier: few accesses come close to one.
    pub fn near_barrier(&self, low: u32, high: u32) -> bool {
        let (first, end) = self.barrier_span;
        low < end && first < high && self.barriers.iter().any(|b| b.valid && b.offset < high && low < b.offset + 8)
    }

    /// Checks the bytes of all lanes in global memory against earlier accesses of this cluster. A plain read also goes into the
    /// outbox, to be held against the writes of other clusters.
    fn order_global(&mut self, at: At, targets: &[(usize, Target)], total: u32, writes: bool, stamp: Stamp) {
        let time = self.warps[at.w].fragments[at.f].ready_at;
        let mut span = Span::default();
        for runs in Runs::collect(global_pieces(targets, total)) {
            self.check_prerequisite(at.w, runs, at.site, writes);
            let again = writes && span.add_runs(runs);
            let views = std::mem::take(&mut self.warps[at.w].views);
            self.touch_global_as(time, runs, stamp, (writes, again), &views);
            self.warps[at.w].views = views;
        }
    }

    /// Loads of what nobody may write while the kernel runs: no order makes a write harmless. They count as those of somebody who
    /// knows of nothing, and of whom nobody knows.
    pub fn order_non_coherent(&mut self, at: At, targets: &[(usize, Target)], total: u32) {
        let actor = match self.non_coherent {
            Some(actor) => actor,
            None => {
                let actor = self.actor(ActorKind::NonCoherent);
                *self.non_coherent.insert(actor)
            }
        };
        let (stamp, nothing) = (Stamp::new(actor, 1, at.site, self.index), Views::default());
        let time = self.warps[at.w].fragments[at.f].ready_at;
        for runs in Runs::collect(global_pieces(targets, total)) {
            self.check_prerequisite(at.w, runs, at.site, false);
            self.touch_global_as(time, runs, stamp, (false, false), &nothing);
        }
    }

    /// Checks an access of global memory against earlier ones of this cluster.
    pub fn touch_global(&mut self, w: usize, time: u64, runs: Runs, stamp: Stamp, writes: bool) {
        self.check_prerequisite(w, runs, stamp.site, writes);
        let views = std::mem::take(&mut self.warps[w].views);
        self.touch_global_as(time, runs, stamp, (writes, false), &views);
        self.warps[w].views = views;
    }

    /// The same by somebody who knows this; `again`: whether it is asked if it writes again what it has written.
    fn touch_global_as(&mut self, time: u64, runs: Runs, stamp: Stamp, (writes, again): (bool, bool), views: &Views) {
        let again = again.then_some(&self.rewrites.again);
        let by = Toucher { stamp, views, homes: self.scopes.homes(), again };
        if let Some(conflict) = self.tracker.touch(runs, by, writes)
            && !self.has_read_its_map(conflict.first, views)
        {
            self.race(Race::new(RaceMemory::Global(runs.buffer), conflict, stamp));
        }
        if !writes {
            self.reads_values(runs, stamp.site);
        }
        if !writes && self.options.judges() {
            let known = views.of_others();
            self.outbox.push(time, Item::Read { runs, stamp, known });
        }
    }

    /// An access to whole granules of the CTA's own shared memory, of which no two lanes' need lie side by side: the same of some
    /// blocks together, if it conflicts with nothing. Tells whether that was so.
    fn order_granules(&mut self, at: At, targets: &[(usize, Target)], total: u64, writes: bool, stamp: Stamp) -> bool {
        let own = self.warps[at.w].cta;
        if total == 0 || !total.is_multiple_of(GRANULE) {
            return false;
        }
        // Mostly the same granules of each of some blocks.
        let mut blocks = [(0, 0); 32];
        let mut count = 0;
        for (_, target) in targets {
            let Target::Shared(c, start) = *target else { return false };
            let (block, first) = (u64::from(start) / BLOCK, u64::from(start) % BLOCK / GRANULE);
            if c != own || !u64::from(start).is_multiple_of(GRANULE) || first + total / GRANULE > 64 {
                return false;
            }
            // Of a whole block, as `st.bulk` may fill it, all 64.
            let mask = u64::MAX >> (64 - total / GRANULE) << first;
            match blocks[..count].iter_mut().rev().find(|known| known.0 == block) {
                Some(known) => known.1 |= mask,
                None => {
                    blocks[count] = (block, mask);
                    count += 1;
                }
            }
        }
        let homes = self.scopes.homes();
        let again = writes.then_some(&self.rewrites.again);
        let access = Access { transitive: true, homes, again, ..Access::new(stamp, &self.warps[at.w].views) };
        let shadow = &mut self.ctas[own].shared_shadow;
        let clean = shadow.touch_all(Area::of_each(blocks.into_iter().take(count)), &access, writes);
        // Else some of it is there already when it is stored part by part.
        self.rewrites.again.set(clean && self.rewrites.again.get());
        clean
    }
}

/// The bytes of all lanes in global memory.
fn global_pieces(targets: &[(usize, Target)], total: u32) -> impl Iterator<Item = Runs> {
    targets.iter().filter_map(move |(_, target)| match *target {
        Target::Global { buffer, offset } => Some(Runs::one(buffer, offset, total)),
        _ => None,
    })
}
