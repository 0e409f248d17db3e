//! Who touched each byte of a memory last.
//!
//! A memory is looked at in granules of 16 bytes, 64 of them a block, 32 blocks a page.

use super::history::Hit;
use super::page::{PAGE, Page};
use super::rows::{Area, Rows};
use super::stamp::{Access, Reason, Stamp};

/// Bytes of a block: one bit of a mask for each granule.
pub const BLOCK: u64 = 64 * GRANULE;
/// Bytes that share a history while they are accessed together.
pub const GRANULE: u64 = 16;

/// Two accesses that are not ordered although one of them writes.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    /// The one that came first in this run.
    pub first: Stamp,
    /// Whether the first wrote.
    pub first_writes: bool,
    /// Whether the second writes.
    pub second_writes: bool,
    /// Why they are not ordered.
    pub reason: Reason,
    /// A byte they share: the first one with this reason.
    pub byte: u64,
}

/// The last write and the reads since then, for every byte of a memory.
#[derive(Clone, Debug, Default)]
pub struct Shadow {
    pages: Vec<Option<Box<Page>>>,
    /// Nothing is remembered.
    off: bool,
}

impl Shadow {
    /// One that remembers nothing and finds nothing.
    pub fn off() -> Shadow {
        Shadow { off: true, ..Shadow::default() }
    }

    /// Checks and remembers a read. Gives the conflict that weighs most, of its first byte.
    pub fn read(&mut self, start: u64, len: u64, access: &Access) -> Option<Conflict> {
        self.touch(start, len, access, false)
    }

    /// Checks and remembers a write. Gives the conflict that weighs most, of its first byte.
    pub fn write(&mut self, start: u64, len: u64, access: &Access) -> Option<Conflict> {
        self.touch(start, len, access, true)
    }

    /// The same for granules of a block.
    pub fn read_mask(&mut self, block: u64, granules: u64, access: &Access) -> Option<Conflict> {
        self.touch_area(Area::of_block(block, granules), access, false)
    }

    /// The same for granules of a block.
    pub fn write_mask(&mut self, block: u64, granules: u64, access: &Access) -> Option<Conflict> {
        self.touch_area(Area::of_block(block, granules), access, true)
    }

    /// Who wrote a byte last, of those who are remembered.
    pub fn writer(&self, at: u64) -> Option<Stamp> {
        self.pages.get((at / PAGE) as usize)?.as_ref()?.writer((at % PAGE) as u32)
    }

    /// Checks and remembers an access to areas in any order, if it conflicts with nothing; tells whether that was so. If not, some
    /// of it may be remembered: the caller accesses it again, part by part, which finds every conflict as if it were the first
    /// time.
    pub fn touch_all(&mut self, areas: impl IntoIterator<Item = Area>, access: &Access, writes: bool) -> bool {
        areas.into_iter().all(|area| self.touch_clean(area, access, writes))
    }

    /// The same for rows of bytes.
    pub fn touch_rows(&mut self, rows: Rows, access: &Access, writes: bool) -> bool {
        rows.all(|area| self.touch_clean(area, access, writes))
    }

    /// The conflict with earlier accesses of some sort that an access to whole granules would have: the one that weighs most. Nothing is
    /// remembered.
    pub fn conflict_with(
        &self,
        start: u64,
        len: u64,
        access: &Access,
        writes: bool,
        sort: &dyn Fn(&Stamp) -> bool,
    ) -> Option<Conflict> {
        let (mut found, mut at, end) = (None, start, start + len);
        while at < end {
            let (block, before) = (at / BLOCK, at % BLOCK / GRANULE);
            let granules = (end - at).div_ceil(GRANULE).min(64 - before);
            let area = Area::of_block(block, u64::MAX >> (64 - granules) << before);
            let page = self.pages.get(area.page as usize).and_then(Option::as_ref);
            let hit = page.and_then(|page| page.conflict_with(area.places, access, writes, sort));
            found = heavier(found, hit.map(|hit| conflict(hit, area.page, writes)));
            at = (block * 64 + before + granules) * GRANULE;
        }
        found
    }

    fn touch(&mut self, start: u64, len: u64, access: &Access, writes: bool) -> Option<Conflict> {
        let end = start + len;
        let (mut found, mut at) = (None, if self.off { end } else { start });
        while at < end {
            let (block, before, granules) = (at / BLOCK, at % BLOCK / GRANULE, (end - at) / GRANULE);
            let (conflict, next);
            if !at.is_multiple_of(GRANULE) || granules == 0 {
                next = (at / GRANULE * GRANULE + GRANULE).min(end);
                conflict = self.touch_part(at, next, access, writes);
            } else {
                let (area, covered) = if before == 0 && granules >= 64 {
                    Area::of_run(block, granules / 64)
                } else {
                    let granules = granules.min(64 - before);
                    (Area::of_block(block, u64::MAX >> (64 - granules) << before), granules)
                };
                next = at + covered * GRANULE;
                conflict = self.touch_area(area, access, writes);
            }
            found = heavier(found, conflict);
            at = next;
        }
        found
    }

    #[inline]
    fn touch_clean(&mut self, area: Area, access: &Access, writes: bool) -> bool {
        if self.off {
            return true;
        }
        let page = page(&mut self.pages, area.page);
        // A read does not make one forget the write that it conflicts with.
        (!writes || page.lets(area.places, access)) && page.touch(area.places, access, writes).is_none()
    }

    #[inline]
    fn touch_area(&mut self, area: Area, access: &Access, writes: bool) -> Option<Conflict> {
        if self.off {
            return None;
        }
        let hit = page(&mut self.pages, area.page).touch(area.places, access, writes);
        hit.map(|hit| conflict(hit, area.page, writes))
    }

    /// Bytes of one granule, not all of them.
    fn touch_part(&mut self, at: u64, next: u64, access: &Access, writes: bool) -> Option<Conflict> {
        let bytes = (1 << (next - at)) - 1;
        let granule = (at % PAGE / GRANULE) as u32;
        let page = page(&mut self.pages, at / PAGE);
        let hit = page.touch_part(granule, bytes << (at % GRANULE), access, writes);
        hit.map(|hit| conflict(hit, at / PAGE, writes))
    }
}

#[inline]
fn page(pages: &mut Vec<Option<Box<Page>>>, n: u64) -> &mut Page {
    let n = n as usize;
    if pages.len() <= n {
        pages.resize_with(n + 1, || None);
    }
    pages[n].get_or_insert_default()
}

fn conflict(hit: Hit, page: u64, second_writes: bool) -> Conflict {
    let Hit { first, first_writes, reason, place } = hit;
    Conflict { first, first_writes, second_writes, reason, byte: page * PAGE + u64::from(place) }
}

/// Of two conflicts, the one that weighs more; of equal ones, that of the first byte.
fn heavier(a: Option<Conflict>, b: Option<Conflict>) -> Option<Conflict> {
    match (&a, &b) {
        (Some(x), Some(y)) if (y.reason, y.byte) < (x.reason, x.byte) => b,
        (None, _) => b,
        _ => a,
    }
}

#[cfg(test)]
#[path = "shadow_model_tests.rs"]
mod model_tests;

#[cfg(test)]
#[path = "shadow_tests.rs"]
mod tests;
