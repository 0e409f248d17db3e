//! What an MMA reads and writes, held against earlier accesses.

use super::issued::Recent;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race, RaceMemory};
use crate::machine::tensor_memory::cells::Use;
use crate::machine::tensor_memory::{CELL, COLUMNS, Halves};
use crate::order::{Access, BLOCK, Conflict, Footprint, GRANULE, Reason, Rows, Stamp, Views};

impl Cluster<'_> {
    /// MMAs run in the order of their issue where they have accumulator, shape and kind in common; where others overlap, the first must
    /// have been waited for.
    pub fn accumulators_apart(&mut self, new: &Recent) {
        let Some(old) = self.issued.aliased(new) else { return };
        if old.d.0 != new.d.0 && (old.d.1, old.d.2) == (new.d.1, new.d.2) {
            self.issued.shifted.insert(new.stamp.site, [old.d, new.d]);
        }
        if old.stamp.epoch <= self.warps[new.warp].views.heard(old.stamp.actor) {
            return;
        }
        if old.d != new.d {
            let (first, end) = (old.d.0.max(new.d.0), (old.d.0 + old.columns).min(new.d.0 + new.columns));
            self.issued.astray.extend([old, *new].map(|mma| (mma.stamp.site, first, end)));
        }
        // Of two accumulators it is told once, whichever MMAs of theirs meet.
        let both = [old.d.min(new.d), old.d.max(new.d)];
        let known = self.issued.overlapping.iter().find(|(known, _)| *known == both);
        if let Some(&(_, site)) = known.filter(|_| old.d != new.d) {
            let place = self.place(site);
            return self.findings.amend("race-tensor", &place, |d| d.count += 1);
        }
        if old.d != new.d {
            self.issued.overlapping.push((both, new.stamp.site));
        }
        let name = self.tensor_name(new.d.0.max(old.d.0));
        let (column, m, n) = old.d;
        let (title, first, help) = if old.d == new.d {
            let [before, now] = [old.kind, new.kind].map(|kind| kind.name());
            (
                format!("MMAs of {before} and {now} write {name}, and nothing orders the two"),
                format!("this MMA of {before} writes it before"),
                "Wait for the commit of the first, or let one kind of MMA compute all of an accumulator.".to_string(),
            )
        } else {
            (
                format!("two MMAs write {name} as parts of different accumulators, and nothing orders the two"),
                format!("this MMA writes an accumulator of {m} × {n} at column {column}"),
                format!(
                    "Keep accumulators apart (with FP32, N columns each): these begin {} columns from each other, and the first takes {}; or wait for the \
                     commit of the first.",
                    old.d.0.abs_diff(new.d.0),
                    if old.d.0 <= new.d.0 { old.columns } else { new.columns },
                ),
            )
        };
        let rule = "MMAs run in the order of their issue if they have the same accumulator, shape and kind (PTX ISA 9.7.16.6.2).";
        let mut diagnostic = self.problem("race-tensor", new.stamp.site, title, rule, help);
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.push(self.label(old.stamp.site, first));
        self.findings.add(diagnostic);
    }

    /// Checks an MMA's access to an operand in shared memory against earlier ones.
    pub fn touch_operand(&mut self, views: &Views, c: usize, footprint: &Footprint, base: u64, stamp: Stamp) {
        let access = Access::new(stamp, views);
        let shadow = &mut self.ctas[c].shared_shadow;
        if shadow.touch_all(footprint.areas(base), &access, false) {
            return;
        }
        // Each granule may have been written by somebody else.
        let single =
            |(block, granules)| (0..64).map(move |n| (block, granules & 1 << n)).filter(|&(_, granule)| granule != 0);
        let granules = footprint.from(base).flat_map(single);
        let conflicts: Vec<(u64, Conflict)> = granules
            .filter_map(|(block, granule)| Some((block, granule, shadow.read_mask(block, granule, &access)?)))
            .map(|(block, granule, conflict)| (block * BLOCK + u64::from(granule.trailing_zeros()) * GRANULE, conflict))
            .collect();
        for (at, conflict) in conflicts {
            // Of what cp.async wrote, a missing fence is no more than noted: that must not hide a store beside it.
            let copied = |first: &Stamp| matches!(self.kind(*first), Some(ActorKind::AsyncCopies(_)));
            let noted = conflict.reason == Reason::NotFenced && copied(&conflict.first);
            let shadow = &self.ctas[c].shared_shadow;
            let stored =
                if noted { shadow.conflict_with(at, GRANULE, &access, false, &|first| !copied(first)) } else { None };
            for conflict in [Some(conflict), stored].into_iter().flatten() {
                self.race(Race::new(RaceMemory::Shared(c), conflict, stamp));
            }
        }
    }

    /// Checks an MMA's access to columns of tensor memory against earlier ones.
    pub fn touch_tensor(
        &mut self,
        w: usize,
        c: usize,
        (column, columns): (u32, u32),
        halves: Halves,
        stamp: Stamp,
        writes: bool,
    ) {
        let len = u64::from(columns) * CELL;
        let access = Access::of_tensor_memory(stamp, &self.warps[w].views);
        let quarters = Rows { first: u64::from(column) * CELL, bytes: len, count: 4, pitch: u64::from(COLUMNS) * CELL };
        if self.ctas[c].shadows(halves).all(|shadow| shadow.touch_rows(quarters, &access, writes)) {
            return;
        }
        for quarter in 0..4 {
            let at = u64::from(quarter * COLUMNS + column) * CELL;
            let Some(race) = self.touch_cells(w, c, at, len, halves, Use::of(stamp, writes)) else { continue };
            let conflict = race.conflict;
            let lane = quarter * 32 + if halves == Halves::Upper { 16 } else { 0 };
            let unwritten = !self.ctas[c].tensor.get(lane, (conflict.byte / CELL) as u32 % COLUMNS).1;
            let passed = match self.actors.get(conflict.first.actor as usize) {
                Some(ActorKind::TensorLoads(r)) => self.warps.get(*r as usize).map(|w| w.passed.clone()),
                _ => None,
            };
            self.race(Race { passed: passed.unwrap_or_default(), unwritten, ..race });
        }
    }
}
