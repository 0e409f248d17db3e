//! Tiles that threads store for a copy out of shared memory, again and again: whether all of a tile was stored anew.

use super::slices::Tile;
use super::stored_again::Boxes;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::order::{BLOCK, GRANULE};

/// What is staged in a CTA's shared memory.
#[derive(Debug, Default)]
pub struct Staged {
    /// By KiB: the granules that were written since a copy read them, or that no copy has read. Empty before the first copy.
    new: Vec<u64>,
    pub boxes: Boxes,
}

const KIB: u32 = BLOCK as u32;
const CHUNK: u32 = GRANULE as u32;

impl Staged {
    /// Somebody writes these bytes.
    #[inline]
    pub fn written(&mut self, start: u32, end: u32) {
        if self.new.is_empty() || start >= end {
            return;
        }
        let (first, last) = (start / KIB, (end - 1) / KIB);
        for (n, mask) in (first..=last).zip(self.new.iter_mut().skip(first as usize)) {
            let from = if n == first { start % KIB / CHUNK } else { 0 };
            let to = if n == last { (end - 1) % KIB / CHUNK } else { 63 };
            *mask |= u64::MAX << from & u64::MAX >> (63 - to);
        }
    }

    /// Whether a copy has read the chunk at an address, and nobody has written it since.
    fn is_stale(&self, at: u32) -> bool {
        self.new.get((at / KIB) as usize).is_some_and(|mask| mask >> (at % KIB / CHUNK) & 1 == 0)
    }

    /// Whether that may be so of any chunk of these bytes, those around them in the same KiB included.
    fn may_be_stale(&self, start: u32, end: u32) -> bool {
        let blocks = self.new.iter().take(end.div_ceil(KIB) as usize).skip((start / KIB) as usize);
        blocks.fold(u64::MAX, |all, mask| all & mask) != u64::MAX
    }

    /// A copy reads the chunk at an address.
    fn copied(&mut self, at: u32) {
        self.reach(at + 1);
        self.new[(at / KIB) as usize] &= !(1 << (at % KIB / CHUNK));
    }

    /// A copy reads all of some KiB.
    fn all_copied(&mut self, start: u32, end: u32) {
        self.reach(end);
        self.new[(start / KIB) as usize..(end / KIB) as usize].fill(0);
    }

    /// Knows of all bytes in front of this one.
    fn reach(&mut self, end: u32) {
        let needed = end.div_ceil(KIB) as usize;
        if self.new.len() < needed {
            self.new.resize(needed, u64::MAX);
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
    /// A tensor copy stores a box of two dimensions that lies within its tensor.
    pub fn check_staged(&mut self, cta: usize, tile: &Tile) {
        let (columns, staged) = (tile.pitch / CHUNK, &self.ctas[cta].staged);
        let at = |row: u32, column: u32| tile.swizzle.apply(tile.start + row * tile.pitch + column * CHUNK);
        // A swizzle stays within its KiB.
        let end = tile.start + tile.rows * tile.pitch;
        let may_be = staged.may_be_stale(tile.start, end);
        let found = may_be.then(|| stale(tile.rows, columns, |row, column| staged.is_stale(at(row, column)))).flatten();
        let staged = &mut self.ctas[cta].staged;
        let all = || found.is_none() && tile.rows > 0 && staged.is_stale(at(0, 0));
        let again = may_be && (matches!(found, Some(Stale::Row(_))) || all());
        staged.boxes.stored(tile, again);
        let whole = [tile.start, end].iter().all(|at| at.is_multiple_of(KIB)) && tile.pitch.is_multiple_of(CHUNK);
        if whole {
            staged.all_copied(tile.start, end);
        } else {
            for row in 0..tile.rows {
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
                (format!("{} of all rows", of(column)), "their other bytes are new".into(), (0, column))
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
        let mut diagnostic = self.problem(
            "swizzle-mismatch",
            tile.site,
            format!("a copy stores {what} of a tile in {} again, although the rest of the tile is new", self.shared_name(tile.start)),
            match lone {
                true => "A copy with a swizzle takes the 16-byte chunks of a row from where the swizzle puts them (PTX ISA 5.5.7, swizzling modes). \
                         Nobody has written there since the last copy: what was meant for this place was stored elsewhere.",
                false => "A copy takes all of its box from shared memory (PTX ISA, cp.async.bulk.tensor), also what nobody has written there since the copy \
                          before it.",
            },
            match lone {
                true => format!("Let threads {}.", tile.swizzle.stored_how()),
                false => format!(
                    "Look which stores are for it, at which addresses (threads {}), by which warps, and how far their loops go.",
                    tile.swizzle.stored_how()
                ),
            },
        );
        diagnostic.severity = if lone { Severity::Finding } else { Severity::Note };
        diagnostic.labels[0].text = text;
        if let Some(writer) = self.ctas[cta].shared_shadow.writer(at(place.0, place.1).into()) {
            let said = match found {
                Stale::Chunk { column, other, .. } => format!("{} of row {other} were stored here", of(column)),
                _ => "they were stored here, before the last copy".into(),
            };
            diagnostic.labels.push(self.label(writer.site, said));
        }
        // Where something else is found, it may be why.
        match lone {
            true => self.findings.add(diagnostic),
            false => self.if_clean.push(diagnostic),
        }
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
    fn what_no_copy_has_read_is_not_stale() {
        let mut staged = Staged::default();
        staged.written(0, 64);
        assert!(!staged.is_stale(16));
        (0..4).for_each(|n| staged.copied(1024 + n * 16));
        assert!(staged.is_stale(1024 + 16) && !staged.is_stale(1024 + 64));
        staged.written(1040, 1044);
        assert!(!staged.is_stale(1040) && staged.is_stale(1056) && staged.may_be_stale(1056, 1072));
        staged.written(1023, 1025);
        assert!(!staged.is_stale(1024) && staged.is_stale(1056));
        staged.written(0, 8192);
        assert!(!staged.may_be_stale(0, 8192));
    }
}
