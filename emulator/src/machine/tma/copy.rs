//! The TMA engine at work: a copy reads its source, later writes its destination, and says so.

use super::bounding_box::{Rows, read_rows};
use super::direct::deliver;
use super::{Copy, Fill};
use crate::machine::barrier::mbarrier::LIMIT;
use crate::machine::chip::outbox::{Item, Write};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::memory::Runs;
use crate::machine::memory::origins::Source;
use crate::machine::state::Slot;
use crate::program::arithmetic::narrow::nearest_tf32;
use crate::program::atomic::Update;
use crate::program::op::TmaKind;
use crate::report::Memory;
use crate::tensor_map::Swizzle;
use std::ops::Range;

impl Cluster<'_> {
    /// A copy is on its way, at the place of one that is over if there is one: its index.
    pub fn begin_copy(&mut self, copy: Copy) -> usize {
        match self.free_copies.pop() {
            Some(n) => {
                debug_assert!(!self.unfetched.has(n), "something is left of the copy that had this place");
                self.copies[n] = copy;
                n
            }
            None => {
                self.copies.push(copy);
                self.copies.len() - 1
            }
        }
    }

    /// A copy reads its source.
    pub fn copy_read(&mut self, n: usize) {
        self.copies[n].blank = self.options.computes() && self.is_blank() && self.moves_nothing(&self.copies[n]);
        if !self.options.computes() || self.copies[n].blank || self.waits(n) {
            self.copies[n].read = true;
            return self.release_bulk(self.copies[n].warp);
        }
        let mut data = self.spare_data.pop().unwrap_or_default();
        let copy = &self.copies[n];
        // Every byte of every row is written below.
        data.resize(copy.extent as usize);
        if let Some(from) = copy.from {
            data.copy_from(0, &self.ctas[from.cta].shared, from.offset as usize, copy.bytes as usize);
        } else if copy.kind == TmaKind::Load {
            let fill = if copy.fill == Fill::Nan { FILL_NAN } else { 0 };
            let defined = copy.fill != Fill::Undefined;
            for rows in &copy.rows {
                if rows.hangs_over() {
                    let size = copy.element.bytes();
                    for start in rows.starts() {
                        for at in (start..start + rows.bytes).step_by(size as usize) {
                            data.store(at as usize, size as usize, fill, defined);
                        }
                    }
                }
                read_rows(rows, &self.global, &self.outbox, &mut data);
                if copy.element.is_rounded() {
                    round(rows, &mut data);
                }
            }
        } else if let Some(&slot) = copy.shared.first() {
            let shared = &self.ctas[slot.cta].shared;
            if copy.rows.iter().all(Rows::dense) {
                gather(&mut data, shared, slot.offset, copy.bytes, copy.swizzle);
            }
            for rows in copy.rows.iter().filter(|rows| !rows.dense()) {
                for start in rows.starts() {
                    gather_chunks(&mut data, shared, slot.offset, start..start + rows.bytes, copy.swizzle);
                }
            }
        }
        let w = copy.warp;
        self.copies[n].data = Some(data);
        self.copies[n].read = true;
        self.release_bulk(w);
    }

    /// Whether all that a copy of a blank cluster does to its destination is to make it blank.
    fn moves_nothing(&self, copy: &Copy) -> bool {
        let lines = |at: u32| copy.swizzle == Swizzle::None || (at as usize).is_multiple_of(LINE);
        let whole = copy.rows.iter().all(Rows::dense) && lines(copy.extent);
        if !whole || copy.fill == Fill::Undefined || !copy.shared.iter().all(|slot| lines(slot.offset)) {
            return false;
        }
        let mut buffers = copy.rows.iter().filter_map(|rows| rows.inside).map(|(_, runs)| runs.buffer);
        match (copy.kind, copy.shared.first()) {
            (TmaKind::Load, _) => buffers.all(|buffer| self.global.buffers[buffer].whole),
            (TmaKind::Store, Some(slot)) => {
                let (shared, at, len) = (&self.ctas[slot.cta].shared, slot.offset as usize, copy.extent as usize);
                shared.all_blank(at, len) && shared.all_defined(at, len)
            }
            _ => false,
        }
    }

    /// A copy writes its destination, and says so.
    pub fn copy_done(&mut self, n: usize, time: u64) -> Result<(), Stop> {
        if !self.copies[n].read {
            self.copy_read(n);
        }
        self.copies[n].done = true;
        let computes = self.options.computes();
        let data = self.copies[n].data.take();
        // It has waited.
        let blank = self.copies[n].blank;
        let direct = data.is_none() && computes && !blank;
        if direct {
            self.waiting.retain(|&waiting| waiting != n);
            self.unfetched.forget(n);
        }
        let mut data = data.unwrap_or_default();
        let copy = &self.copies[n];
        match copy.kind {
            TmaKind::Load | TmaKind::Forward => {
                for slot in copy.shared.iter().filter(|_| computes) {
                    let shared = &mut self.ctas[slot.cta].shared;
                    if let Some((update, size)) = copy.update {
                        for at in (0..copy.bytes).step_by(size as usize) {
                            combine(shared, (slot.offset + at) as usize, (&data, at as usize), size as usize, update);
                        }
                    } else if blank {
                        shared.write_blank(slot.offset as usize, copy.extent as usize);
                    } else if direct {
                        deliver(shared, &copy.rows, &self.global, slot.offset, copy.swizzle);
                    } else {
                        scatter_rows(shared, &data, slot.offset, &copy.rows, copy.swizzle);
                        if let Some(packed) = copy.element.padded() {
                            undefine_padding(shared, slot.offset, &copy.rows, packed, copy.swizzle);
                        }
                    }
                }
                let (site, issue, bytes, warp, map) = (copy.site, copy.issue, copy.bytes, copy.warp, copy.map_read);
                self.copy_origins(n);
                let order = std::mem::take(&mut self.copies[n].order);
                let epochs = std::mem::take(&mut self.copies[n].epochs);
                for (barrier, epoch) in std::mem::take(&mut self.copies[n].barriers).into_iter().zip(epochs) {
                    if self.barriers[barrier as usize].next_epoch() != epoch {
                        self.bytes_after_phase(barrier, epoch, site, bytes);
                    }
                    let b = &mut self.barriers[barrier as usize];
                    b.traffic.bring(site, bytes);
                    b.comes(warp, site, true);
                    b.bytes -= i64::from(bytes);
                    self.record.done(issue, barrier, 0, bytes);
                    b.current.views.order.join(&order);
                    if let Some((actor, epoch)) = map {
                        b.current.views.hb.raise(actor, epoch);
                    }
                    if b.bytes < -LIMIT {
                        let name = self.barrier_name(barrier);
                        return Err(Some(Box::new(self.problem(
                            "mbarrier-bytes",
                            site,
                            format!("{name} got {LIMIT} bytes more than were announced"),
                            "The pending bytes of a phase stay within ±1,048,575 (PTX ISA, mbarrier).",
                            "Announce the bytes of each stage with mbarrier.arrive.expect_tx.".into(),
                        ))));
                    }
                    self.try_complete(barrier, time);
                }
            }
            TmaKind::Store | TmaKind::Reduce(_) if !computes => {}
            TmaKind::Store | TmaKind::Reduce(_) => {
                let runs: Vec<Runs> = copy.rows.iter().filter_map(|rows| rows.inside).map(|(_, runs)| runs).collect();
                let bytes = runs.iter().map(|runs| runs.bytes * runs.count).sum::<u32>();
                // Mostly they lie there as they are written.
                let whole = !blank && !data.has_blanks() && data.all_defined(0, bytes as usize);
                let straight = whole && copy.lies_straight();
                let mut dense = match straight {
                    true => std::mem::take(&mut data),
                    false => Memory::undefined(if blank { 0 } else { bytes as usize }),
                };
                if straight {
                    dense.resize(bytes as usize);
                }
                let (mut filled, mut undefined) = (0, None);
                let moved = if blank || straight { 0 } else { runs.len() };
                for (rows, &Runs { buffer, bytes, .. }) in
                    copy.rows.iter().filter(|r| r.inside.is_some()).zip(&runs).take(moved)
                {
                    for (from, at) in rows.parts() {
                        let (from, len) = (from as usize, bytes as usize);
                        dense.copy_from(filled, &data, from, len);
                        filled += len;
                        if undefined.is_none() && !data.all_defined(from, len) {
                            let first = (0..len).find(|n| !data.is_defined(from + n)).unwrap_or(0);
                            undefined = Some((from + first, buffer, at + first as u64));
                        }
                    }
                }
                let how = if let TmaKind::Reduce(how) = copy.kind { Some((how, copy.element)) } else { None };
                let (site, stamp) = (copy.site, copy.writes);
                let write = Write { runs, data: dense, blank, how, stamp, known: copy.known.clone() };
                self.outbox.push(time, Item::Write(Box::new(write)));
                if let (Some((from, buffer, at)), Some(&slot)) = (undefined, copy.shared.first()) {
                    let from = Slot { offset: copy.swizzle.apply(slot.offset + from as u32), ..slot };
                    self.undefined_copy(site, from, buffer, at);
                }
            }
            TmaKind::Prefetch => {}
        }
        if !direct && !blank && !data.bytes.is_empty() {
            self.spare_data.push(data);
        }
        let (w, store) = (self.copies[n].warp, matches!(self.copies[n].kind, TmaKind::Store | TmaKind::Reduce(_)));
        if !store {
            // Nobody waits for it; a store's group does.
            self.free_copies.push(n);
        }
        self.release_bulk(w);
        Ok(())
    }
}

impl Cluster<'_> {
    /// What a load has brought may be undefined where its source was.
    fn copy_origins(&mut self, n: usize) {
        let copy = &self.copies[n];
        let buffers = copy.rows.iter().filter_map(|rows| rows.inside).map(|(_, runs)| runs.buffer);
        let partly = buffers.filter(|&buffer| !self.global.buffers[buffer].whole).map(Source::Buffer).next();
        let Some(from) = copy.from.map(Source::Shared).or(partly).filter(|_| self.options.judges()) else { return };
        let (site, extent) = (copy.site, copy.extent);
        for slot in copy.shared.clone() {
            self.keep_origins(site, slot, extent, from);
        }
    }
}

impl Copy {
    /// Whether its rows lie one behind the other, each of them within the tensor.
    fn lies_straight(&self) -> bool {
        let mut end = 0;
        self.rows.iter().all(|rows| {
            let begin = std::mem::replace(&mut end, rows.linear + rows.bytes * rows.count);
            let whole = rows.inside.is_some_and(|(first, runs)| first == 0 && runs.bytes == rows.bytes);
            rows.linear == begin && rows.dense() && whole
        })
    }
}

/// `red.async` and `cp.reduce.async.bulk` take effect on one value, so many bytes of it.
fn combine(shared: &mut Memory, at: usize, (data, from): (&Memory, usize), bytes: usize, update: Update) {
    let ((old, old_defined), (new, new_defined)) = (shared.load(at, bytes), data.load(from, bytes));
    let defined = old_defined && new_defined;
    let blank = shared.any_blank(at, bytes) || data.any_blank(from, bytes);
    let low = u64::MAX >> (64 - 8 * bytes);
    shared.store(at, bytes, (update(old as u64, new as u64, 0) & low).into(), defined);
    if blank {
        shared.mark_blank(at, bytes);
    }
}

/// Bytes that a swizzle permutes among themselves, in chunks of 16 (of 8, where it flips halves).
pub const LINE: usize = 128;

/// How a swizzle moves the chunks of a line: to their number, exclusive or this. `None`: not in chunks of 16.
pub fn permutation(swizzle: Swizzle, line: u32) -> Option<usize> {
    (swizzle != Swizzle::B128Atom32Flip8).then(|| (swizzle.apply(line) ^ line) as usize / 16)
}

/// Writes the rows of a box to swizzled shared memory.
fn scatter_rows(shared: &mut Memory, data: &Memory, offset: u32, rows: &[Rows], swizzle: Swizzle) {
    if rows.iter().all(Rows::dense) {
        return scatter(shared, data, offset, data.bytes.len() as u32, swizzle);
    }
    for rows in rows {
        for start in rows.starts() {
            scatter_chunks(shared, data, offset, start..start + rows.bytes, swizzle);
        }
    }
}

/// Elements of TF32 within the tensor; what is filled in outside of it stays (measured on an H100, for maps of TF32 and of TF32_FTZ: to the
/// nearest, to even where two are as near, subnormal numbers as others, a NaN as `cvt.rn.tf32.f32` gives it). What is blank stays so.
fn round(rows: &Rows, data: &mut Memory) {
    let bytes = rows.inside.map_or(0, |(_, runs)| runs.bytes);
    for at in rows.parts().flat_map(|(begin, _)| (begin..begin + bytes).step_by(4)) {
        if let (value, true) = data.load(at as usize, 4)
            && !data.any_blank(at as usize, 4)
        {
            data.store(at as usize, 4, nearest_tf32(value as u32).into(), true);
        }
    }
}

/// What padding holds behind so many bytes of each 16 is not known (PTX ISA 5.5.1.1).
fn undefine_padding(shared: &mut Memory, offset: u32, rows: &[Rows], packed: u32, swizzle: Swizzle) {
    for start in rows.iter().flat_map(|rows| rows.starts()) {
        let at = swizzle.apply(offset + start) + packed;
        shared.mark(at as usize, (16 - packed) as usize, false);
    }
}

/// Writes dense bytes to swizzled shared memory.
pub fn scatter(shared: &mut Memory, data: &Memory, offset: u32, bytes: u32, swizzle: Swizzle) {
    let (start, len) = (offset as usize, bytes as usize);
    if swizzle == Swizzle::None {
        return shared.copy_from(start, data, 0, len);
    }
    let blanks = data.has_blanks() || shared.has_blanks();
    let whole = !blanks && start.is_multiple_of(LINE) && len.is_multiple_of(LINE) && data.all_defined(0, len);
    if whole && permutation(swizzle, 0).is_some() {
        let lines = shared.bytes[start..start + len].as_chunks_mut::<LINE>().0;
        for ((to, from), at) in lines.iter_mut().zip(data.bytes.as_chunks::<LINE>().0).zip((offset..).step_by(LINE)) {
            permute(to, from, permutation(swizzle, at).unwrap_or(0));
        }
        return shared.mark(start, len, true);
    }
    scatter_chunks(shared, data, offset, 0..bytes, swizzle);
}

/// Writes bytes of a box to swizzled shared memory, chunk by chunk.
fn scatter_chunks(shared: &mut Memory, data: &Memory, offset: u32, bytes: Range<u32>, swizzle: Swizzle) {
    let step = if permutation(swizzle, 0).is_some() { 16 } else { 8 };
    for at in bytes.clone().step_by(step) {
        let to = swizzle.apply(offset + at);
        shared.copy_from(to as usize, data, at as usize, step.min((bytes.end - at) as usize));
    }
}

/// Reads swizzled shared memory into dense bytes.
fn gather(data: &mut Memory, shared: &Memory, offset: u32, bytes: u32, swizzle: Swizzle) {
    let (start, len) = (offset as usize, bytes as usize);
    if swizzle == Swizzle::None {
        return data.copy_from(0, shared, start, len);
    }
    let lines = start.is_multiple_of(LINE) && len.is_multiple_of(LINE);
    let whole = lines && shared.all_defined(start, len) && !shared.any_blank(start, len);
    if whole && permutation(swizzle, 0).is_some() {
        let lines = shared.bytes[start..start + len].as_chunks::<LINE>().0;
        for ((to, from), at) in data.bytes.as_chunks_mut::<LINE>().0.iter_mut().zip(lines).zip((offset..).step_by(LINE))
        {
            permute(to, from, permutation(swizzle, at).unwrap_or(0));
        }
        return data.mark(0, len, true);
    }
    gather_chunks(data, shared, offset, 0..bytes, swizzle);
}

/// Reads bytes of a box out of swizzled shared memory, chunk by chunk.
fn gather_chunks(data: &mut Memory, shared: &Memory, offset: u32, bytes: Range<u32>, swizzle: Swizzle) {
    for at in bytes.clone().step_by(16) {
        let from = swizzle.apply(offset + at);
        data.copy_from(at as usize, shared, from as usize, 16.min((bytes.end - at) as usize));
    }
}

/// Moves each chunk to its number, exclusive or `flip`.
#[inline(always)]
pub fn permute(to: &mut [u8; LINE], from: &[u8; LINE], flip: usize) {
    #[inline(always)]
    fn by<const FLIP: usize>(to: &mut [u8; LINE], from: &[u8; LINE]) {
        let from = from.as_chunks::<16>().0;
        for (n, chunk) in to.as_chunks_mut::<16>().0.iter_mut().enumerate() {
            *chunk = from[(n ^ FLIP) & 7];
        }
    }
    // Where the number is known, nothing is left to compute.
    match flip & 7 {
        0 => by::<0>(to, from),
        1 => by::<1>(to, from),
        2 => by::<2>(to, from),
        3 => by::<3>(to, from),
        4 => by::<4>(to, from),
        5 => by::<5>(to, from),
        6 => by::<6>(to, from),
        _ => by::<7>(to, from),
    }
}

/// What elements outside of a tensor read as with the NaN fill, whatever their type (measured on an H200 for FP16, BF16, FP32 and
/// FP64).
const FILL_NAN: u128 = 0x7ff7_7ff7_7ff7_7ff7;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::arithmetic::exact::tests::Random;

    /// Of three numbers the first is blank, the second has no value.
    #[test]
    fn only_what_is_known_is_rounded() {
        let mut data =
            Memory::from_bytes([1f32.to_bits() + 1; 3].iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>());
        data.write_blank(0, 4);
        data.mark(4, 4, false);
        round(&Rows::plain(12, Some((0, 0))), &mut data);
        let word = |at| (data.load(at, 4).1, data.any_blank(at, 4));
        assert_eq!([word(0), word(4), word(8)], [(true, true), (false, false), (true, false)]);
        assert_eq!(data.load(8, 4).0, 1f32.to_bits().into());
        assert_eq!(data.load(4, 4).0, u128::from(1f32.to_bits() + 1));
    }

    /// In every swizzle, with holes and without: byte by byte where [`Swizzle::apply`] says.
    #[test]
    fn swizzled_copies_are_those_of_single_bytes() {
        let mut random = Random(9);
        for case in 0..420u32 {
            let swizzle = Swizzle::ALL[case as usize % 7];
            let (offset, bytes) = (128 * (case / 7 % 13) + 1024, [16, 128, 2048, 4096, 208][case as usize / 7 % 5]);
            let mut data = Memory::from_bytes((0..bytes).map(|_| random.next() as u8).collect::<Vec<u8>>());
            for _ in 0..case % 3 * 5 {
                data.store((random.next() % u64::from(bytes)) as usize, 1, 3, false);
            }
            let mut shared = Memory::undefined(1 << 13);
            scatter(&mut shared, &data, offset, bytes, swizzle);
            for at in 0..bytes {
                // A chunk at the end of the box lies where its line says, whether the line is whole or not.
                let (to, at) = (swizzle.apply(offset + at) as usize, at as usize);
                assert_eq!(shared.bytes[to], data.bytes[at], "case {case}, {swizzle:?}, byte {at}");
                assert_eq!(shared.is_defined(to), data.is_defined(at), "case {case}, {swizzle:?}, byte {at}");
            }
            let defined = (0..1 << 13).filter(|&at| shared.is_defined(at)).count();
            assert_eq!(defined, (0..bytes as usize).filter(|&at| data.is_defined(at)).count(), "case {case}");
            if swizzle != Swizzle::B128Atom32Flip8 {
                let mut back = Memory::default();
                back.resize(bytes as usize);
                gather(&mut back, &shared, offset, bytes, swizzle);
                assert_eq!(back.bytes, data.bytes, "case {case}, {swizzle:?}");
                for at in 0..bytes as usize {
                    assert_eq!(back.is_defined(at), data.is_defined(at), "case {case}, {swizzle:?}, byte {at}");
                }
            }
        }
    }
}
