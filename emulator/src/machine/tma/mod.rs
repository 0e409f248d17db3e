//! The TMA engine: bulk copies between global and shared memory, whole tensors' boxes or plain bytes.
//!
//! A load counts its bytes on an mbarrier, a store belongs to a bulk group of the thread that issued it. Both run by
//! themselves: they read their source some time after they were issued and write their destination later still.

pub mod async_copy;
pub mod bounding_box;
pub mod box_origin;
pub mod bulk;
pub mod copy;
pub mod copy_lanes;
pub mod direct;
pub mod ends;
pub mod four_rows;
pub mod made_maps;
pub mod map_reads;
pub mod packed_copy;
pub mod prefetches;
pub mod reduction;
pub mod tensor_maps;

use crate::diagnostic::Severity;
use crate::machine::chip::tracker::Toucher;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::layout::slices::Tile;
use crate::machine::memory::Runs;
use crate::machine::state::{At, Pending, Race, RaceMemory, Slot, Span};
use crate::machine::warp::registers::lanes;
use crate::order::{Access, ActorId, Clock, Far, Stamp};
use crate::program::atomic::Update;
use crate::program::op::{Address, TmaKind, TmaOp};
use crate::protocol::{self, What};
use crate::report::{self, Actor, CopyKind, EventKind, Memory};
use crate::tensor_map::{Element, Swizzle};
use bounding_box::Rows;
use ends::GlobalSide;
use reduction::function;
use smallvec::{SmallVec, smallvec};
use tensor_maps::MAP_BYTES;

/// What a load writes where its source is not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fill {
    Zero,
    Nan,
    /// Nobody says what (`.ignore_oob`).
    Undefined,
}

/// A bulk copy on its way.
#[derive(Debug)]
pub struct Copy {
    pub site: u32,
    /// Its step in the record, if it tells an mbarrier.
    pub issue: u32,
    pub warp: usize,
    pub kind: TmaKind,
    pub rows: SmallVec<[Rows; 1]>,
    pub swizzle: Swizzle,
    pub element: Element,
    /// Shared memory: destinations of a load, source of a store.
    pub shared: SmallVec<[Slot; 2]>,
    /// The source of a copy between CTAs.
    pub from: Option<Slot>,
    /// The mbarrier of each destination.
    pub barriers: SmallVec<[u32; 2]>,
    /// What each will say of itself when the phase is complete that was the current one when the copy was issued.
    pub epochs: SmallVec<[u32; 2]>,
    /// Bytes that move.
    pub bytes: u32,
    /// Bytes of shared memory from the begin of the first row to the end of the last.
    pub extent: u32,
    /// What was read.
    pub data: Option<Memory>,
    /// What a reduction makes of the destination and the data, value by value, and the bytes of one.
    pub update: Option<(Update, u32)>,
    pub fill: Fill,
    /// It moves no data: its destination becomes blank.
    pub blank: bool,
    /// What came before it was issued.
    pub order: Clock,
    /// How its writes to global memory are remembered, and what its issuer knew of other clusters.
    pub writes: Stamp,
    pub known: Far,
    /// Its reading of a tensor map in global memory.
    pub map_read: Option<(ActorId, u32)>,
    pub read: bool,
    pub done: bool,
}

impl Cluster<'_> {
    /// Issues a bulk copy, for each lane that executes it.
    pub fn tma(&mut self, at: At, op: &TmaOp) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let (mut first, mut alike) = (None, 1);
        for lane in lanes(mask) {
            let one = At { mask: 1 << lane, ..at };
            let registers = &self.warps[w].registers;
            let operand =
                |address: &Address| (registers.lane(address.base, lane) as u64).wrapping_add(address.offset as u64);
            let coordinates =
                op.coordinates.iter().chain(&op.bytes).chain(&op.mask).map(|&c| registers.b32[usize::from(c)][lane]);
            let this = (operand(&op.map), operand(&op.shared), coordinates.collect::<SmallVec<[u32; 6]>>());
            // The same store as that of the lane before: the assembler makes one instruction of both, for the warp (ptxas 13, UTMASTG).
            let same = first.as_ref() == Some(&this);
            let again = op.kind == TmaKind::Store && same;
            alike += u32::from(same);
            self.tma_one(one, lane, op, again)?;
            if again {
                self.stored_by_many_lanes(site, mask.count_ones());
            } else {
                self.warps[w].fragments[f].ready_at += self.costs.tma_issue;
            }
            first = Some(this);
        }
        if alike > 1 && matches!(op.kind, TmaKind::Load | TmaKind::Forward) {
            self.loaded_by_many_lanes(w, site, alike);
        }
        Ok(())
    }

    /// A note, unless what was announced does not count the bytes of all of them: see `Findings::finish`.
    fn loaded_by_many_lanes(&mut self, w: usize, site: u32, lanes: u32) {
        let title = format!(
            "{lanes} lanes of {} each start this copy, from the same place to the same place",
            self.warp_name(w)
        );
        let here = format!("{lanes} copies for one: {lanes} times its bytes come to its mbarrier");
        self.copied_by_many_lanes(
            site,
            (title, here),
            "Each thread that executes a copy starts one, and the bytes of each are counted at its mbarrier (PTX ISA, cp.async.bulk, cp.async.bulk.tensor): a phase \
             is complete when as many have come as were announced (expect_tx), whichever copies they are of.",
            "what announces its bytes, once",
        );
    }

    fn stored_by_many_lanes(&mut self, site: u32, lanes: u32) {
        self.copied_by_many_lanes(
            site,
            (format!("{lanes} lanes execute this store, each for the same bytes"), "here".into()),
            "Each thread that executes a copy asks for one (PTX ISA, cp.async.bulk.tensor). The assembler makes one of such stores where the \
             whole warp has the same operands; of a reduction or a load each is made (measured on an H100).",
            "the same one commit it and wait for it",
        );
    }

    fn copied_by_many_lanes(&mut self, site: u32, (title, here): (String, String), rule: &str, beside: &str) {
        let help = format!("Let one elected lane execute it (elect.sync), and {beside}.");
        let mut diagnostic = self.problem("issued-by-many-lanes", site, title, rule, help);
        diagnostic.severity = Severity::Note;
        diagnostic.labels[0].text = here;
        self.findings.add(diagnostic);
    }

    fn tma_one(&mut self, at: At, lane: usize, op: &TmaOp, again: bool) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let GlobalSide { rows, bytes, from, align, swizzle, element, fill, coordinates, extents, origin, lattice, map } =
            if op.bytes.is_some() { self.plain_bytes(at, lane, op)? } else { self.tensor_box(at, lane, op)? };
        if op.kind == TmaKind::Prefetch {
            if let Some((buffer, offset)) = map.filter(|_| self.options.judges()) {
                // Nobody can wait for a prefetch, or has to: at least it comes behind what wrote its map.
                let (now, stamp) = (self.warps[w].fragments[f].ready_at, self.stamp(w, at.mask, site));
                self.touch_global(w, now, Runs::one(buffer, offset, MAP_BYTES as u32), stamp, false);
            }
            for (_, runs) in rows.iter().filter_map(|rows| rows.inside) {
                self.missed(runs);
            }
            return Ok(());
        }

        // The shared side.
        let extent = rows.last().map_or(bytes, |last| last.linear + (last.count - 1) * last.pitch + last.bytes);
        // Bytes that a mask leaves out are a part of the source all the same.
        let extent = if op.mask.is_some() { bytes } else { extent };
        let extent = if element.padded().is_some() { extent.next_multiple_of(16) } else { extent };
        let slot = self.shared_slot(at, lane, &op.shared, op.remote, extent, align)?;
        let targets = op.targets.map(|reg| self.warps[w].registers.b32[usize::from(reg)][lane]);
        let shared: SmallVec<[Slot; 2]> = match targets {
            None => smallvec![slot],
            Some(bits) => self.mask_ranks(bits & 0xffff, site)?.into_iter().map(|cta| Slot { cta, ..slot }).collect(),
        };
        let barriers = match &op.barrier {
            Some(barrier) => self.copy_barriers(at, lane, barrier, &shared, op)?,
            None => smallvec![],
        };

        // Who touched these bytes before.
        let load = matches!(op.kind, TmaKind::Load | TmaKind::Forward);
        let (reads, writes) = if load {
            let stamp = self.barriers[barriers[0] as usize].stamp(site, self.index);
            (stamp, stamp)
        } else {
            let cluster = self.index;
            let groups = self.bulk_groups(w, lane);
            let stamp = |actor| Stamp::asynchronous(actor, groups.next, site, cluster);
            // Each element is combined with what is there as by a relaxed operation at the scope of the GPU.
            let writes = stamp(groups.writes.actor);
            (stamp(groups.reads.actor), if matches!(op.kind, TmaKind::Reduce(_)) { writes.adds() } else { writes })
        };
        let now = self.warps[w].fragments[f].ready_at;
        let map_read =
            map.filter(|_| !again && self.options.judges()).map(|map| self.read_map(w, now, map, load, site));
        let repeats = !load && self.stores_again(w, lane, op.kind, &shared, &rows);
        for (_, runs) in rows.iter().filter_map(|rows| rows.inside) {
            if again || repeats {
                // It writes what the one before writes, and races with whom that one races.
                let by =
                    Toucher { stamp: writes, views: &self.warps[w].views, homes: self.scopes.homes(), again: None };
                self.tracker.touch(runs, by, true);
            } else {
                self.touch_global(w, now, runs, if load { reads } else { writes }, !load);
            }
        }
        for (n, &slot) in shared.iter().enumerate() {
            let stamp = if load { self.barriers[barriers[n] as usize].stamp(site, self.index) } else { reads };
            // In shared memory, too, a reduction is relaxed, at the scope of the GPU (PTX ISA, cp.reduce.async.bulk).
            let stamp = if op.combines.is_some() { stamp.adds() } else { stamp };
            let whole = [slot.offset, slot.offset + extent];
            if rows.iter().all(Rows::dense) {
                self.check_shared(w, slot, bytes, stamp, load, whole);
                continue;
            }
            for rows in &rows {
                let each = if op.mask.is_some() { rows.bytes } else { 16 };
                for chunk in rows.starts().flat_map(|start| (start..start + rows.bytes).step_by(16)) {
                    let slot = Slot { offset: swizzle.apply(slot.offset + chunk), ..slot };
                    self.check_shared(w, slot, each, stamp, load, whole);
                }
            }
        }
        // One matrix of several, too.
        let flat = coordinates.len() >= 2 && extents.iter().skip(2).all(|&size| size == 1);
        for &slot in &shared {
            let mut tile = Tile::new(slot.offset, extent, swizzle, site, &rows, flat || op.four_rows);
            (tile.origin, tile.lattice) = (origin, lattice);
            if element.padded().is_some() {
                // A row is 128 elements, in pieces.
                (tile.pitch, tile.rows) = (128, tile.rows / 8);
            }
            self.lay_out(slot.cta, tile, (load, op.bytes.is_none()));
        }
        if let Some(from) = from {
            self.touch_shared(w, from, bytes, reads, false);
            self.copy_reads(barriers[0], from.cta, site);
        }
        if load && op.combines.is_none() && rows.iter().all(Rows::dense) {
            let source = self.source_of(&rows, from);
            for (&barrier, &slot) in barriers.iter().zip(&shared) {
                self.check_copies_apart(barrier, slot, extent, source, site, w);
            }
        }
        let home = self.warps[w].cta;
        for (&barrier, slot) in barriers.iter().zip(&shared) {
            self.barriers[barrier as usize].promise(slot.cta, site, slot.cta == home);
        }

        let [start, end, done] = self.copy_times(self.warps[w].cta, now, op.kind, bytes, &rows, again);
        let (early, late) = (self.perturbed(3), self.perturbed(3));
        let issue = match barriers.len() as u8 {
            0 => protocol::NONE,
            tells => self.record.add(w, 1 << lane, site, What::Issue { tells, commit: None }),
        };
        let copy = Copy {
            site,
            issue,
            warp: w,
            kind: op.kind,
            rows,
            swizzle,
            element,
            shared,
            from,
            epochs: barriers.iter().map(|&b| self.barriers[b as usize].next_epoch()).collect(),
            barriers,
            bytes,
            extent,
            data: None,
            update: op.combines.map(|how| (function(how, element), element.bytes())),
            fill,
            blank: false,
            order: self.warps[w].starts(),
            writes,
            known: self.warps[w].views.of_others(),
            map_read,
            read: false,
            done: false,
        };
        let n = self.begin_copy(copy);
        if !load {
            let epoch = self.warps[w].epoch;
            self.bulk_groups(w, lane).begins(n, epoch);
        }
        self.trace_copy(n, (&coordinates, &extents), Span { w, issued: now, start, end: done });
        if early {
            self.copy_read(n);
        } else if !late {
            self.push_event(end, Pending::CopyRead(n));
        }
        self.push_event(done, Pending::CopyDone(n));
        Ok(())
    }

    /// Whether a thread has issued the same store before, and has not waited for it: twice the same bytes to the same place.
    fn stores_again(&self, w: usize, lane: usize, kind: TmaKind, shared: &[Slot], rows: &[Rows]) -> bool {
        let Some(groups) = self.warps[w].bulk.get(&lane).filter(|_| kind == TmaKind::Store) else { return false };
        let inside = |rows: &[Rows]| rows.iter().map(|rows| rows.inside).collect::<SmallVec<[_; 1]>>();
        let (to, mut before) = (inside(rows), groups.pending());
        before.any(|n| {
            self.copies[n].kind == kind && self.copies[n].shared[..] == *shared && inside(&self.copies[n].rows) == to
        })
    }

    /// When a copy that is issued now begins, has read its source, and is done. One that is made together with another costs nothing.
    fn copy_times(&mut self, cta: usize, now: u64, kind: TmaKind, bytes: u32, rows: &[Rows], again: bool) -> [u64; 3] {
        let delay = self.jitter(2000);
        let (cycles, latency) = if again { (0, self.costs.tma_store) } else { self.copy_cost(cta, kind, bytes, rows) };
        let start = now.max(self.ctas[cta].tma_free) + delay;
        let end = start + cycles;
        self.ctas[cta].tma_free = end;
        if matches!(kind, TmaKind::Load | TmaKind::Forward) {
            return [start, end, end + latency];
        }
        // Stores leave one after the other, and no load waits for that. They are read as they leave.
        let begin = start.max(self.ctas[cta].tma_store_free);
        let moved = if again { 0 } else { u64::from(bytes) };
        let left = end.max(begin + (moved * self.costs.tma_store_per_kb).div_ceil(1024));
        self.ctas[cta].tma_store_free = left;
        [start, left + self.costs.tma_store_read.min(latency), left + latency]
    }

    /// What a copy costs: cycles of the TMA engine, and from there to its end.
    fn copy_cost(&mut self, cta: usize, kind: TmaKind, bytes: u32, rows: &[Rows]) -> (u64, u64) {
        let bytes = u64::from(bytes);
        match kind {
            TmaKind::Store | TmaKind::Reduce(_) => (self.carry(cta, bytes, 0), self.costs.tma_store),
            TmaKind::Forward => (bytes.div_ceil(self.costs.port_bytes_per_cycle), self.costs.tma_latency),
            TmaKind::Load | TmaKind::Prefetch => {
                let missed = rows.iter().filter_map(|rows| rows.inside).map(|(_, runs)| self.missed(runs)).sum();
                let further = if missed > 0 { self.costs.global_load - self.costs.cached_load } else { 0 };
                // What was measured ends with the sight of the bytes.
                let latency = self.costs.tma_latency.saturating_sub(self.costs.wake);
                (self.carry(cta, bytes, missed), latency + further)
            }
        }
    }

    /// An access to shared memory that is not a load or store of a thread.
    pub fn touch_shared(&mut self, w: usize, slot: Slot, bytes: u32, stamp: Stamp, writes: bool) {
        self.check_shared(w, slot, bytes, stamp, writes, [slot.offset, slot.offset + bytes]);
        let (loaded, start, end) = (&mut self.ctas[slot.cta].loaded, slot.offset, slot.offset + bytes);
        if writes {
            loaded.overwrite(start, end);
        } else {
            loaded.read(start, end);
        }
    }

    /// Checks an access to shared memory against earlier ones. A swizzle stays within rows of 128 bytes. `whole`: from where to where its copy goes.
    fn check_shared(&mut self, w: usize, slot: Slot, bytes: u32, stamp: Stamp, writes: bool, whole: [u32; 2]) {
        let homes = self.scopes.homes();
        let copies = &self.warps[w].copies;
        let queued = writes && copies.is_used() && copies.actor == stamp.actor;
        let again = writes.then_some(&self.rewrites.again);
        let access = Access { transitive: true, queued, homes, again, ..Access::new(stamp, &self.warps[w].views) };
        let shadow = &mut self.ctas[slot.cta].shared_shadow;
        let (start, len) = (u64::from(slot.offset), u64::from(bytes));
        let conflict = if writes { shadow.write(start, len, &access) } else { shadow.read(start, len, &access) };
        if let Some(conflict) = conflict {
            let unwritten = writes && !self.ctas[slot.cta].shared.is_defined(conflict.byte as usize);
            let before = self.box_at(conflict.first, slot.cta, conflict.byte as u32);
            let boxes = before.map(|before| [before, whole]);
            self.race(Race {
                unwritten,
                boxes,
                by: Some(w),
                ..Race::new(RaceMemory::Shared(slot.cta), conflict, stamp)
            });
        }
        if writes {
            if self.kernel.stores_tiles {
                self.ctas[slot.cta].staged.brought(slot.offset, slot.offset + bytes);
            }
            self.check_barrier_bytes(slot.cta, slot.offset, slot.offset + bytes, stamp.site, true);
        }
    }

    /// `place`: where the box begins, and how large it is; both empty for plain bytes.
    fn trace_copy(&mut self, n: usize, (coordinates, extents): (&[i32], &[u32]), span: Span) {
        if !self.options.trace {
            return;
        }
        let copy = &self.copies[n];
        let traced = report::Copy {
            kind: match copy.kind {
                TmaKind::Load | TmaKind::Prefetch => CopyKind::Load,
                TmaKind::Store => CopyKind::Store,
                TmaKind::Reduce(_) => CopyKind::Reduce,
                TmaKind::Forward => CopyKind::Forward,
            },
            tensor: !coordinates.is_empty(),
            coordinates: coordinates.to_vec(),
            extents: extents.to_vec(),
            shared: copy.shared.first().map_or(0, |slot| self.dynamic_offset(slot.offset)),
            ctas: copy.shared.iter().map(|slot| self.cta_index(slot.cta)).collect(),
            bytes: copy.bytes,
            buffer: copy.rows.iter().find_map(|rows| rows.inside).map(|(_, runs)| runs.buffer),
            barriers: copy.barriers.iter().map(|&barrier| self.barrier_id(barrier)).collect(),
        };
        let (cta, site) = (self.warps[span.w].cta, copy.site);
        self.trace(cta, Actor::Tma, span, site, || EventKind::Copy(Box::new(traced)));
    }
}
