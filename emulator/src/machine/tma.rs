//! The TMA engine: bulk copies between global and shared memory, whole tensors' boxes or plain bytes.
//!
//! A load counts its bytes on an mbarrier, a store belongs to a bulk group of the thread that issued it. Both run by
//! themselves: they read their source some time after they were issued and write their destination later still.

use super::bounding_box::Rows;
use super::cluster::{Cluster, Stop};
use super::depths::Origin;
use super::four_rows;
use super::names::counted;
use super::outbox::Item;
use super::slices::Tile;
use super::state::{At, Pending, Race, RaceMemory, Slot, Span};
use super::step::PARAM_WINDOW;
use super::tensor_maps::{MAP_BYTES, USED_BYTES};
use super::warp::lanes;
use crate::diagnostic::Severity;
use crate::order::{Access, Clock, Far, Stamp, Strength};
use crate::program::RESERVED_SHARED;
use crate::program::atomic::Update;
use crate::program::op::{Address, Reg, TmaKind, TmaOp};
use crate::protocol::{self, What};
use crate::report::{self, Actor, CopyKind, EventKind, Memory};
use crate::tensor_map::{Element, Swizzle, TensorMap};
use smallvec::{SmallVec, smallvec};
use std::sync::Arc;

/// Tensor maps that are kept decoded.
const MOST_MAPS: usize = 16;

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
    /// What `red.async` makes of the destination and the data.
    pub update: Option<Update>,
    pub fill_nan: bool,
    /// It moves no data: its destination becomes blank.
    pub blank: bool,
    /// What came before it was issued.
    pub order: Clock,
    /// How its writes to global memory are remembered, and what its issuer knew of other clusters.
    pub writes: Stamp,
    pub known: Far,
    pub read: bool,
    pub done: bool,
}

impl Cluster<'_> {
    /// Issues a bulk copy, for each lane that executes it.
    pub fn tma(&mut self, at: At, op: &TmaOp) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let mut first = None;
        for lane in lanes(mask) {
            let one = At { mask: 1 << lane, ..at };
            let registers = &self.warps[w].registers;
            let operand =
                |address: &Address| (registers.lane(address.base, lane) as u64).wrapping_add(address.offset as u64);
            let coordinates =
                op.coordinates.iter().chain(op.bytes.iter()).map(|&c| registers.b32[usize::from(c)][lane]);
            let this = (operand(&op.map), operand(&op.shared), coordinates.collect::<SmallVec<[u32; 6]>>());
            // The same store as that of the lane before: the assembler makes one instruction of both, for the warp (ptxas 13, UTMASTG).
            let again = op.kind == TmaKind::Store && first.as_ref() == Some(&this);
            self.tma_one(one, lane, op, again)?;
            if again {
                self.stored_by_many_lanes(site, mask.count_ones());
            } else {
                self.warps[w].fragments[f].ready_at += self.costs.tma_issue;
            }
            first = Some(this);
        }
        Ok(())
    }

    fn stored_by_many_lanes(&mut self, site: u32, lanes: u32) {
        let mut diagnostic = self.problem(
            "issued-by-many-lanes",
            site,
            format!("{lanes} lanes execute this store, each for the same bytes"),
            "Each thread that executes a copy asks for one (PTX ISA, cp.async.bulk.tensor). The assembler makes one of such stores where the \
             whole warp has the same operands; of a reduction or a load each is made (measured on an H100).",
            "Let one elected lane execute it (elect.sync), and the same one commit it and wait for it.".into(),
        );
        diagnostic.severity = Severity::Note;
        self.findings.add(diagnostic);
    }

    fn tma_one(&mut self, at: At, lane: usize, op: &TmaOp, again: bool) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let bad = |this: &Self, code, what: String, rule: &str, help: &str| -> Stop {
            Some(Box::new(this.problem(code, site, what, rule, help.into())))
        };
        let value = |reg: u16| self.warps[w].registers.b32[usize::from(reg)][lane];
        let coordinates: SmallVec<[i32; 5]> = op.coordinates.iter().map(|&c| value(c) as i32).collect();
        let targets = op.targets.map(value);
        let plain_bytes = op.bytes.map(value);

        // The global side: rows of bytes.
        let mut swizzle = Swizzle::None;
        let (mut element, mut fill_nan) = (op.element.unwrap_or(Element::U8), false);
        let align;
        let (rows, bytes, from);
        let mut origin = None;
        let mut extents = SmallVec::<[u32; 5]>::new();
        if let Some(bytes_asked) = plain_bytes {
            let rule = "A plain bulk copy moves a multiple of 16 bytes between addresses that are multiples of 16 (PTX ISA, cp.async.bulk).";
            align = 16;
            bytes = bytes_asked;
            if bytes == 0 || !bytes.is_multiple_of(16) {
                return Err(bad(
                    self,
                    "bulk-size",
                    format!("a bulk copy of {bytes} bytes"),
                    rule,
                    "Copy a positive multiple of 16 bytes.",
                ));
            }
            if op.kind == TmaKind::Forward {
                from = Some(self.shared_slot(at, lane, &op.map, false, bytes, 16)?);
                rows = smallvec![Rows::plain(bytes, None)];
            } else {
                from = None;
                let address =
                    (self.warps[w].registers.lane(op.map.base, lane) as u64).wrapping_add(op.map.offset as u64);
                if !address.is_multiple_of(16) {
                    return Err(bad(
                        self,
                        "misaligned-address",
                        format!("a bulk copy at {address:#x}"),
                        rule,
                        "Align the address to 16 bytes.",
                    ));
                }
                let Some((buffer, offset)) = self.global.find(address, bytes.into()) else {
                    let what = format!(
                        "{} would copy {bytes} bytes at {address:#x}, outside of global memory: {}",
                        self.thread_name(w, lane),
                        self.global.nearest(address)
                    );
                    return Err(bad(
                        self,
                        "out-of-bounds",
                        what,
                        "Every access must lie within an allocation.",
                        "Check address and size.",
                    ));
                };
                rows = smallvec![Rows::plain(bytes, Some((buffer, offset)))];
            }
        } else {
            let map = self.tensor_map(at, lane, op)?;
            if op.four_rows {
                self.is_map_of_rows(at, &map)?;
            } else if map.dims.len() != coordinates.len() {
                let what = format!(
                    "this copy has {}, its tensor map {}",
                    counted(coordinates.len() as u64, "coordinate"),
                    counted(map.dims.len() as u64, "dimension")
                );
                return Err(bad(
                    self,
                    "tensor-map",
                    what,
                    "A tensor copy has as many coordinates as its map has dimensions.",
                    "Use the map that was made for this copy.",
                ));
            }
            if let Some(refused) = self.packed_copy(at, op, &map, coordinates[0]) {
                return Err(refused);
            }
            let first = i64::from(coordinates[0]) * i64::from(map.element.bits()) / 8;
            if first % 16 != 0 {
                let what = format!(
                    "the box begins {first} bytes into the innermost dimension (coordinate {})",
                    coordinates[0]
                );
                return Err(bad(
                    self,
                    "tensor-coordinate",
                    what,
                    "A box begins on a multiple of 16 bytes of global memory; hardware raises an illegal instruction (PTX ISA, tensor bounding box).",
                    "Let the innermost coordinate, times the bytes of an element, be a multiple of 16.",
                ));
            }
            let writes = matches!(op.kind, TmaKind::Store | TmaKind::Reduce(_));
            if writes && let Some(n) = coordinates.iter().position(|&c| c < 0) {
                return Err(bad(
                    self,
                    "tensor-coordinate",
                    format!(
                        "a store of a box that begins at coordinate {} of dimension {}",
                        coordinates[n],
                        if op.four_rows { n.min(1) } else { n }
                    ),
                    "A box that is stored begins at no negative coordinate, even if a load from there is right; hardware raises an illegal \
                     instruction (CUDA C++ Programming Guide, tensor memory access; measured on an H200).",
                    "Begin the box at element 0 or later; it may end beyond the tensor.",
                ));
            }
            align = 128;
            from = None;
            bytes = map.box_bytes() * if op.four_rows { four_rows::ROWS } else { 1 };
            (swizzle, element, fill_nan) = (map.swizzle, map.element, map.fill_nan);
            if op.kind != TmaKind::Load && swizzle == Swizzle::B128Atom32Flip8 {
                return Err(bad(
                    self,
                    "tensor-map",
                    "a store with the swizzle that flips 8 bytes".into(),
                    "That swizzle is for loads only (PTX ISA, tensor swizzling modes).",
                    "Use another swizzle.",
                ));
            }
            extents.extend_from_slice(&map.box_dims);
            if op.four_rows {
                rows = self.four_rows(site, &map, &coordinates)?;
                extents.resize(coordinates.len(), 1);
            } else {
                rows = self.box_rows(site, &map, &coordinates)?;
                origin = Origin::of(&map, &coordinates);
            }
        }
        if op.kind == TmaKind::Prefetch {
            for (_, runs) in rows.iter().filter_map(|rows| rows.inside) {
                self.missed(runs);
            }
            return Ok(());
        }

        // The shared side.
        let extent = rows.last().map_or(bytes, |last| last.linear + (last.count - 1) * last.pitch + last.bytes);
        let extent = if element.padded().is_some() { extent.next_multiple_of(16) } else { extent };
        let slot = self.shared_slot(at, lane, &op.shared, op.remote, extent, align)?;
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
            let strength = if matches!(op.kind, TmaKind::Reduce(_)) { Strength::Gpu } else { Strength::Weak };
            (stamp(groups.reads.actor), Stamp { strength, ..stamp(groups.writes.actor) })
        };
        let now = self.warps[w].fragments[f].ready_at;
        let repeats = !load && self.stores_again(w, lane, op.kind, &shared, &rows);
        for (_, runs) in rows.iter().filter_map(|rows| rows.inside) {
            if again || repeats {
                // It writes what the one before writes, and races with whom that one races.
                self.tracker.touch(runs, writes, &self.warps[w].views, self.scopes.homes(), true);
            } else {
                self.touch_global(w, now, runs, if load { reads } else { writes }, !load);
            }
        }
        for (n, &slot) in shared.iter().enumerate() {
            let stamp = if load { self.barriers[barriers[n] as usize].stamp(site, self.index) } else { reads };
            if rows.iter().all(Rows::dense) {
                self.check_shared(w, slot, bytes, stamp, load);
                continue;
            }
            for start in rows.iter().flat_map(|rows| rows.starts()) {
                for chunk in (start..start + rows[0].bytes).step_by(16) {
                    let slot = Slot { offset: swizzle.apply(slot.offset + chunk), ..slot };
                    self.check_shared(w, slot, 16, stamp, load);
                }
            }
        }
        for &slot in &shared {
            let mut tile = Tile::new(slot.offset, extent, swizzle, site, &rows, coordinates.len() == 2 || op.four_rows);
            tile.origin = origin;
            if element.padded().is_some() {
                // A row is 128 elements, in pieces.
                (tile.pitch, tile.rows) = (128, tile.rows / 8);
            }
            self.lay_out(slot.cta, tile, (load, plain_bytes.is_none()));
        }
        if let Some(from) = from {
            self.touch_shared(w, from, bytes, reads, false);
        }
        if load && rows.iter().all(Rows::dense) {
            let source = self.source_of(&rows, from);
            for (&barrier, &slot) in barriers.iter().zip(&shared) {
                self.check_copies_apart(barrier, slot, extent, source, site);
            }
        }
        let home = self.warps[w].cta;
        for (&barrier, slot) in barriers.iter().zip(&shared) {
            self.barriers[barrier as usize].promise(slot.cta, site, slot.cta == home);
        }

        // When.
        let cta = self.warps[w].cta;
        let delay = self.jitter(2000);
        let (cycles, latency) =
            if again { (0, self.costs.tma_store) } else { self.copy_cost(cta, op.kind, bytes, &rows) };
        let start = now.max(self.ctas[cta].tma_free) + delay;
        let mut end = start + cycles;
        self.ctas[cta].tma_free = end;
        let mut done = end + latency;
        if !load {
            // Stores leave one after the other, and no load waits for that. They are read as they leave.
            let begin = start.max(self.ctas[cta].tma_store_free);
            let moved = if again { 0 } else { u64::from(bytes) };
            let left = end.max(begin + (moved * self.costs.tma_store_per_kb).div_ceil(1024));
            self.ctas[cta].tma_store_free = left;
            end = left + self.costs.tma_store_read.min(latency);
            done = left + latency;
        }
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
            update: None,
            fill_nan,
            blank: false,
            order: self.warps[w].starts(),
            writes,
            known: self.warps[w].views.of_others(),
            read: false,
            done: false,
        };
        let n = match self.free_copies.pop() {
            Some(n) => {
                self.copies[n] = copy;
                n
            }
            None => {
                self.copies.push(copy);
                self.copies.len() - 1
            }
        };
        if !load {
            self.bulk_groups(w, lane).open.push(n);
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

    /// The tensor map that an operand points to: a parameter, or 128 bytes of global memory.
    fn tensor_map(&mut self, at: At, lane: usize, op: &TmaOp) -> Result<Arc<TensorMap>, Stop> {
        let base = self.warps[at.w].registers.lane(op.map.base, lane) as u64;
        let address = base.wrapping_add(op.map.offset as u64);
        let param = if op.map.base == Reg::Sink || address >> 32 == 0 {
            Some(address)
        } else {
            (address & !0xffff_ffff == PARAM_WINDOW).then_some(address & 0xffff_ffff)
        };
        let mut object = [0; MAP_BYTES];
        let found = match param {
            Some(offset) => {
                let end = offset.saturating_add(MAP_BYTES as u64) as usize;
                self.params.get(offset as usize..end).map(|bytes| object.copy_from_slice(bytes))
            }
            None => match self.global.find(address, MAP_BYTES as u64) {
                Some((buffer, offset)) => {
                    let mut seen = Memory::undefined(MAP_BYTES);
                    self.outbox.copy(&self.global, buffer, offset, MAP_BYTES, &mut seen, 0);
                    object[..USED_BYTES].copy_from_slice(&seen.bytes[..USED_BYTES]);
                    let acquired = self.use_map(at, lane, buffer, offset);
                    let time = self.warps[at.w].fragments[at.f].ready_at;
                    self.outbox.push(time, Item::Map { buffer, offset, site: at.site, acquired });
                    if let Some(lacking) = self.map_lacks(at, &seen, address) {
                        return Err(lacking);
                    }
                    Some(())
                }
                None => None,
            },
        };
        let rule = "A tensor copy takes the address of a tensor map: 128 bytes that cuTensorMapEncodeTiled wrote, in a parameter or in \
                    global memory, aligned to 64 (PTX ISA, tensor maps).";
        if found.is_none() || !address.is_multiple_of(64) {
            let what = format!("there is no tensor map at {address:#x}");
            return Err(Some(Box::new(self.problem(
                "tensor-map",
                at.site,
                what,
                rule,
                "Pass the address of the tensor map's parameter (mov, then cvta.param).".into(),
            ))));
        }
        if let Some((_, map)) = self.maps.iter().find(|(known, _)| *known == object) {
            return Ok(map.clone());
        }
        let map = TensorMap::decode(&object).map_err(|why| {
            let what = format!("what lies at {address:#x} is no valid tensor map: {why}");
            Some(Box::new(self.problem(
                "tensor-map",
                at.site,
                what,
                rule,
                "Encode it with cuTensorMapEncodeTiled.".into(),
            )))
        })?;
        let map = Arc::new(map);
        if self.maps.len() == MOST_MAPS {
            self.maps.clear();
        }
        self.maps.push((object, map.clone()));
        Ok(map)
    }

    /// A place in shared memory that an operand names, checked.
    pub fn shared_slot(
        &mut self,
        at: At,
        lane: usize,
        address: &crate::program::op::Address,
        remote: bool,
        bytes: u32,
        align: u32,
    ) -> Result<Slot, Stop> {
        let own = self.warps[at.w].cta;
        let raw =
            (self.warps[at.w].registers.lane(address.base, lane) as u64).wrapping_add(address.offset as u64) as u32;
        let (rank, offset) = ((raw >> 24) as usize, raw & 0x00ff_ffff);
        let cta = if remote && address.base != Reg::Sink { rank } else { own };
        let end = self.ctas.get(cta).map_or(0, |c| c.shared.bytes.len() as u64);
        let foreign = !remote && rank != 0 && rank != own;
        let what = if foreign {
            format!("it lies in CTA {rank} of the cluster, this form reaches the own CTA only")
        } else if !offset.is_multiple_of(align) {
            format!("it is no multiple of {align}")
        } else if offset < RESERVED_SHARED || u64::from(offset) + u64::from(bytes) > end {
            format!("its {bytes} bytes do not fit into the CTA's shared memory, which ends at {end:#x}")
        } else {
            return Ok(Slot { cta, offset });
        };
        Err(Some(Box::new(self.problem(
            "bulk-shared-address",
            at.site,
            format!("the shared address {raw:#x} of this copy: {what}"),
            "Tensor copies need 128-byte aligned shared memory, plain bulk copies 16-byte aligned (PTX ISA, cp.async.bulk.tensor).",
            "Align the buffer, and check its size.".into(),
        ))))
    }

    /// The mbarrier that each destination of a load counts its bytes on.
    fn copy_barriers(
        &mut self,
        at: At,
        lane: usize,
        barrier: &crate::program::op::Address,
        shared: &[Slot],
        op: &TmaOp,
    ) -> Result<SmallVec<[u32; 2]>, Stop> {
        let one = At { mask: 1 << lane, ..at };
        // With .cta_group::2 the address says which CTA of the pair, also where the destination is .shared::cta: ptxas makes the same
        // instruction of both.
        let Some(&(named, _)) = self.barrier_addresses(one, barrier, op.remote || op.pair)?.first() else {
            return Ok(smallvec![]);
        };
        let mut list = smallvec![];
        for slot in shared {
            let cta = match (op.pair, op.targets.is_some()) {
                // The barrier of the destination or of its peer, whichever has the parity of the one named.
                (true, true) => slot.cta & !1 | named.cta & 1,
                (false, true) => slot.cta,
                _ => named.cta,
            };
            let allowed = if op.pair { cta & !1 == slot.cta & !1 } else { cta == slot.cta };
            if !allowed {
                return Err(Some(Box::new(self.problem(
                    "copy-barrier",
                    at.site,
                    format!("the data goes to CTA {}, the mbarrier lies in CTA {cta}", slot.cta),
                    "The mbarrier of a tensor copy lies in the CTA that gets the data; with .cta_group::2 it may lie in that CTA's pair peer (PTX ISA, cp.async.bulk.tensor).",
                    "Name the destination CTA's barrier, or use .cta_group::2 with a barrier of the pair.".into(),
                ))));
            }
            list.push(self.barrier(at.w, Slot { cta, ..named }, at.site, "named by a copy")?);
        }
        Ok(list)
    }

    /// An access to shared memory that is not a load or store of a thread.
    pub fn touch_shared(&mut self, w: usize, slot: Slot, bytes: u32, stamp: Stamp, writes: bool) {
        self.check_shared(w, slot, bytes, stamp, writes);
        let (loaded, start, end) = (&mut self.ctas[slot.cta].loaded, slot.offset, slot.offset + bytes);
        if writes {
            loaded.overwrite(start, end);
        } else {
            loaded.read(start, end);
        }
    }

    /// Checks an access to shared memory against earlier ones. A swizzle stays within rows of 128 bytes.
    fn check_shared(&mut self, w: usize, slot: Slot, bytes: u32, stamp: Stamp, writes: bool) {
        let homes = self.scopes.homes();
        let copies = &self.warps[w].copies;
        let queued = writes && copies.is_used() && copies.actor == stamp.actor;
        let access = Access { transitive: true, queued, homes, ..Access::new(stamp, &self.warps[w].views) };
        let shadow = &mut self.ctas[slot.cta].shared_shadow;
        let (start, len) = (u64::from(slot.offset), u64::from(bytes));
        let conflict = if writes { shadow.write(start, len, &access) } else { shadow.read(start, len, &access) };
        if let Some(conflict) = conflict {
            let unwritten = writes && !self.ctas[slot.cta].shared.is_defined(conflict.byte as usize);
            let passed = self.warps[w].passed.clone();
            self.race(Race { unwritten, passed, ..Race::new(RaceMemory::Shared(slot.cta), conflict, stamp) });
        }
        if writes {
            self.ctas[slot.cta].staged.written(slot.offset, slot.offset + bytes);
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
