//! Tiles that threads store for a copy out of shared memory, again and again: whether all of a tile was stored anew.

use super::slices::Tile;
use super::stored_again::Boxes;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::state::ActorKind;
use crate::order::{BLOCK, GRANULE, Run};

/// What is staged in a CTA's shared memory.
#[derive(Debug, Default)]
pub struct Staged {
    /// By KiB. Empty before the first copy.
    kibs: Vec<Kib>,
    pub boxes: Boxes,
}

/// Granules of a KiB, by bits.
#[derive(Clone, Copy, Debug)]
struct Kib {
    /// Written since a copy read them, or read by no copy.
    new: u64,
    /// Brought by a copy, and not written since; and those of them that an MMA has read.
    brought: u64,
    multiplied: u64,
}

const KIB: u32 = BLOCK as u32;
const CHUNK: u32 = GRANULE as u32;

impl Staged {
    /// A thread writes these bytes.
    #[inline]
    pub fn written(&mut self, start: u32, end: u32) {
        self.write(start, end, |kib, granules| kib.brought &= !granules);
    }

    /// A copy brings these bytes.
    pub fn brought(&mut self, start: u32, end: u32) {
        self.reach(end.div_ceil(KIB) as usize);
        self.write(start, end, |kib, granules| kib.brought |= granules);
    }

    #[inline]
    fn write(&mut self, start: u32, end: u32, also: impl Fn(&mut Kib, u64)) {
        if self.kibs.is_empty() || start >= end {
            return;
        }
        let (first, last) = (start / KIB, (end - 1) / KIB);
        for (n, kib) in (first..=last).zip(self.kibs.iter_mut().skip(first as usize)) {
            let from = if n == first { start % KIB / CHUNK } else { 0 };
            let to = if n == last { (end - 1) % KIB / CHUNK } else { 63 };
            let granules = u64::MAX << from & u64::MAX >> (63 - to);
            kib.new |= granules;
            kib.multiplied &= !granules;
            also(kib, granules);
        }
    }

    /// An MMA reads these granules.
    pub fn multiplied(&mut self, runs: impl Iterator<Item = Run>) {
        for Run { block, blocks, granules } in runs {
            let kibs = self.kibs.iter_mut().skip(block as usize).take(blocks as usize);
            kibs.for_each(|kib| kib.multiplied |= granules & kib.brought);
        }
    }

    /// Whether of the chunk at an address something holds; not where nothing is known.
    fn is(&self, at: u32, of: fn(&Kib) -> u64) -> bool {
        self.kibs.get((at / KIB) as usize).is_some_and(|kib| of(kib) >> (at % KIB / CHUNK) & 1 == 1)
    }

    /// Whether a copy has read the chunk at an address, and nobody has written it since.
    fn is_stale(&self, at: u32) -> bool {
        self.is(at, |kib| !kib.new)
    }

    /// Whether an MMA has read the chunk at an address as a copy had brought it, and nobody has written it since.
    fn is_multiplied(&self, at: u32) -> bool {
        self.is(at, |kib| kib.multiplied)
    }

    /// Whether something may be so of any chunk of these bytes, those around them in the same KiB included.
    fn may_be(&self, start: u32, end: u32, of: fn(&Kib) -> u64) -> bool {
        self.kibs.iter().take(end.div_ceil(KIB) as usize).skip((start / KIB) as usize).any(|kib| of(kib) != 0)
    }

    /// A copy reads the chunk at an address.
    fn copied(&mut self, at: u32) {
        self.reach((at / KIB) as usize + 1);
        self.kibs[(at / KIB) as usize].new &= !(1 << (at % KIB / CHUNK));
    }

    /// A copy reads all of some KiB.
    fn all_copied(&mut self, start: u32, end: u32) {
        let (first, end) = ((start / KIB) as usize, (end / KIB) as usize);
        self.reach(end);
        self.kibs[first..end].iter_mut().for_each(|kib| kib.new = 0);
    }

    /// Knows of so many KiB.
    fn reach(&mut self, kibs: usize) {
        if self.kibs.len() < kibs {
            self.kibs.resize(kibs, Kib { new: u64::MAX, brought: 0, multiplied: 0 });
        }
    }
}

/// What is stale of chunks in rows, of which others are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stale {
    /// A chunk, although its row was written; and another row in which its column was.
    Chunk {
        row: u32,
        column: u32,
        other: u32,
    },
    /// A whole column, or a whole row: that may be meant.
    Column(u32),
    Row(u32),
}

fn stale(rows: u32, columns: u32, stale: impl Fn(u32, u32) -> bool) -> Option<Stale> {
    // Each chunk is asked for once, also where much of a tile is stale.
    let all = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    let grid: Vec<bool> = all.map(|(row, column)| stale(row, column)).collect();
    let lines = || (0..rows).zip(grid.chunks(columns.max(1) as usize));
    let written = |column: u32| lines().find(|(_, line)| !line[column as usize]).map(|(row, _)| row);
    let mut others: Vec<Option<Option<u32>>> = vec![None; columns as usize];
    let chunk = lines().filter(|(_, line)| line.contains(&false)).find_map(|(row, line)| {
        (0..columns).filter(|&column| line[column as usize]).find_map(|column| {
            let other = *others[column as usize].get_or_insert_with(|| written(column));
            other.map(|other| Stale::Chunk { row, column, other })
        })
    });
    let some = || grid.contains(&false);
    let column = || (0..columns).find(|&column| written(column).is_none()).map(Stale::Column);
    let row = || lines().find(|(_, line)| !line.contains(&false)).map(|(row, _)| Stale::Row(row));
    chunk.or_else(|| some().then(|| column().or_else(row)).flatten())
}

impl Cluster<'_> {
    /// A tensor copy stores a box that lies within its tensor: its rows, of all planes that it has.
    pub fn check_staged(&mut self, cta: usize, tile: &Tile) {
        let (columns, rows, staged) = (tile.pitch / CHUNK, tile.bytes / tile.pitch, &self.ctas[cta].staged);
        let at = |row: u32, column: u32| tile.swizzle.apply(tile.start + row * tile.pitch + column * CHUNK);
        // A swizzle stays within its KiB.
        let end = tile.start + rows * tile.pitch;
        let may_be = staged.may_be(tile.start, end, |kib| !kib.new);
        let stale_where = |is: &dyn Fn(u32) -> bool| stale(rows, columns, |row, column| is(at(row, column)));
        let mut found = may_be.then(|| stale_where(&|at| staged.is_stale(at))).flatten();
        let all = || found.is_none() && rows > 0 && staged.is_stale(at(0, 0));
        let again = may_be && (matches!(found, Some(Stale::Row(_))) || all());
        // What was brought for an MMA is no result either.
        if found.is_none() && staged.may_be(tile.start, end, |kib| kib.multiplied) {
            found = stale_where(&|at| staged.is_stale(at) || staged.is_multiplied(at));
        }
        let multiplied = |row: u32, column: u32| staged.is_multiplied(at(row, column));
        let multiplied = found.is_some_and(|found| match found {
            Stale::Chunk { row, column, .. } => multiplied(row, column),
            Stale::Column(column) => multiplied(0, column),
            Stale::Row(row) => multiplied(row, 0),
        });
        let results = multiplied && {
            let old = |row: u32, column: u32| staged.is_stale(at(row, column)) || staged.is_multiplied(at(row, column));
            let old_row = |row: u32| (0..columns).all(|column| old(row, column));
            let old_column = |column: u32| (0..rows).all(|row| old(row, column));
            // Beyond the last row or column of a product, nobody need store anything.
            let at_one_end = match found {
                Some(Stale::Column(first)) => first == 0 || (first..columns).all(old_column),
                Some(Stale::Row(first)) => first == 0 || (first..rows).all(old_row),
                _ => false,
            };
            let new = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let new = new.filter(|&(row, column)| !old(row, column)).map(|(row, column)| at(row, column)).next();
            !at_one_end && new.is_some_and(|new| self.holds_a_result(cta, new))
        };
        let staged = &mut self.ctas[cta].staged;
        if tile.rows > 0 {
            staged.boxes.stored(tile, again);
        }
        let whole = [tile.start, end].iter().all(|at| at.is_multiple_of(KIB)) && tile.pitch.is_multiple_of(CHUNK);
        if whole {
            staged.all_copied(tile.start, end);
        } else {
            for row in 0..rows {
                (0..columns).for_each(|column| staged.copied(at(row, column)));
            }
        }
        let Some(found) = found else { return };
        let of = |column: u32| format!("bytes {} to {}", column * CHUNK, (column + 1) * CHUNK - 1);
        let (what, text, place) = match found {
            Stale::Chunk { row, column, other } => {
                let bytes = of(column);
                let text = format!("row {row} has new bytes elsewhere, and {bytes} of row {other} are new");
                (format!("{bytes} of row {row}"), text, (other, column))
            }
            Stale::Column(column) => {
                (format!("{} of all rows", of(column)), "others of these rows are new".into(), (0, column))
            }
            Stale::Row(row) => (format!("row {row}"), "other rows are new".into(), (row, 0)),
        };
        let lone = matches!(found, Stale::Chunk { .. });
        // Zeros at the end of each row, say, are stored once.
        let first = at(place.0, place.1) as usize;
        let bytes = self.ctas[cta].shared.bytes.get(first..first + CHUNK as usize).unwrap_or_default();
        if !lone && (self.is_blank() || bytes.iter().all(|&byte| byte == 0)) {
            return;
        }
        let name = self.shared_name(tile.start);
        let mut diagnostic = self.problem(
            "swizzle-mismatch",
            tile.site,
            match multiplied {
                true => format!(
                    "a copy stores {what} of a tile in {name}, which an MMA has multiplied, although other bytes of the tile are new"
                ),
                false => format!("a copy stores {what} of a tile in {name} again, although other bytes of the tile are new"),
            },
            match lone && !multiplied {
                true => "A copy with a swizzle takes the 16-byte chunks of a row from where the swizzle puts them (PTX ISA 5.5.7, swizzling modes). \
                         Nobody has written there since these bytes were read: what was meant for this place was stored elsewhere.",
                false => "A copy takes all of its box from shared memory (PTX ISA, cp.async.bulk.tensor), also what nobody has written there since it was \
                          read last.",
            },
            match lone && !multiplied {
                true => format!("Let threads {}.", tile.swizzle.stored_how()),
                false => format!(
                    "Look which stores are for it, at which addresses (threads {}), by which warps, and how far their loops go.",
                    tile.swizzle.stored_how()
                ),
            },
        );
        // An operand may be changed in place and stored back; what is stored beside results is none.
        let is_meant = if multiplied { !results } else { !lone };
        diagnostic.severity = if is_meant { Severity::Note } else { Severity::Finding };
        diagnostic.labels[0].text = text;
        if let Some(writer) = self.ctas[cta].shared_shadow.writer(at(place.0, place.1).into()) {
            let said = match found {
                Stale::Chunk { column, other, .. } => format!("{} of row {other} were stored here", of(column)),
                _ if multiplied => "they were written here, before the MMA".into(),
                _ => "they were stored here, before the last copy".into(),
            };
            diagnostic.labels.push(self.label(writer.site, said));
        }
        // Where something else is found, it may be why.
        match lone && !is_meant {
            true => self.findings.add(diagnostic),
            false => self.if_clean.push(diagnostic),
        }
    }

    /// Whether a warp has stored a chunk of what it had loaded of a product.
    fn holds_a_result(&self, cta: usize, at: u32) -> bool {
        let writer = self.ctas[cta].shared_shadow.writer(at.into());
        writer.is_some_and(|writer| match self.kind(writer) {
            Some(ActorKind::Warp(w)) => self.placed.is_of_products(w as usize, writer.site),
            _ => false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_and_columns_may_be_left_as_they_are() {
        assert_eq!(stale(8, 8, |_, _| true), None);
        assert_eq!(stale(8, 8, |row, _| row > 5), Some(Stale::Row(6)), "rows beyond the matrix");
        assert_eq!(stale(8, 8, |_, column| column == 7), Some(Stale::Column(7)), "zeros at the end of each row");
        let chunk = Stale::Chunk { row: 4, column: 1, other: 0 };
        assert_eq!(stale(8, 8, |row, column| row > 3 && column == 1), Some(chunk));
    }

    #[test]
    fn what_nobody_has_read_is_not_stale() {
        let mut staged = Staged::default();
        let may_be_stale = |staged: &Staged, start, end| staged.may_be(start, end, |kib| !kib.new);
        staged.written(0, 64);
        assert!(!staged.is_stale(16));
        (0..4).for_each(|n| staged.copied(1024 + n * 16));
        assert!(staged.is_stale(1024 + 16) && !staged.is_stale(1024 + 64));
        staged.written(1040, 1044);
        assert!(!staged.is_stale(1040) && staged.is_stale(1056) && may_be_stale(&staged, 1056, 1072));
        staged.written(1023, 1025);
        assert!(!staged.is_stale(1024) && staged.is_stale(1056));
        // What threads stored may be a result, though an MMA reads it.
        let by_an_mma = || [Run { block: 1, blocks: 2, granules: 0b110 }].into_iter();
        staged.multiplied(by_an_mma());
        assert!(!staged.is_multiplied(1040) && !staged.is_multiplied(2080));
        staged.brought(1024, 3072);
        assert!(!staged.is_multiplied(1040));
        staged.multiplied(by_an_mma());
        assert!(staged.is_multiplied(1040) && staged.is_multiplied(2080) && !staged.is_multiplied(1024));
        staged.written(2080, 2081);
        staged.multiplied(by_an_mma());
        assert!(!staged.is_multiplied(2080) && staged.is_multiplied(2064) && !staged.is_stale(2064));
        staged.written(0, 8192);
        assert!(!may_be_stale(&staged, 0, 8192) && !staged.may_be(0, 8192, |kib| kib.multiplied));
    }
}
