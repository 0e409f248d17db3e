//! The boxes that tensor copies brought to shared memory: where their rows lie, and which of their bytes nobody has read.

use super::boxes::Which;
use super::narrow::Taken;
use super::offsets::Lattice;
use crate::diagnostic::{Diagnostic, Meaning, Severity};
use crate::launch::Content;
use crate::machine::cluster::Cluster;
use crate::machine::tma::bounding_box::Rows;
use crate::machine::tma::box_origin::Origin;
use crate::order::{BLOCK, GRANULE};
use crate::tensor_map::Swizzle;

pub const CODE: &str = "loaded-never-read";
/// Of what nobody reads any of, and no MMA ever does.
pub const NOBODY: &str = "The matrix descriptors of an MMA say which bytes of shared memory it multiplies (PTX ISA 9.7.16.4.1). None that was issued \
                          has any of these, and nothing else reads them.";
pub const NO_OPERAND: &str = "Check where the descriptors of the MMAs begin (bits 0 to 13), their offsets and their swizzle, and how many rows M and N of the \
                              instruction descriptor give their operands.";

/// So many boxes of a CTA of which nobody has read anything are remembered.
const MOST_UNUSED: usize = 64;

/// A box that a tensor copy brought to a CTA.
#[derive(Clone, Copy, Debug)]
pub struct Tile {
    /// Where it lies in the CTA's window.
    pub start: u32,
    pub bytes: u32,
    pub swizzle: Swizzle,
    /// The copy.
    pub site: u32,
    /// Bytes from one row to the next.
    pub pitch: u32,
    /// Rows of a box of two dimensions, those that have one element left out; else 0.
    pub rows: u32,
    /// Who reads it counts: it is made of whole granules, a KiB of them at least, and all of it lies within the tensor.
    pub watched: bool,
    /// Of a box of two dimensions, where in its tensor it begins.
    pub origin: Option<Origin>,
    /// Where in global memory its rows begin.
    pub lattice: Option<Lattice>,
    /// The last MMA that multiplied rows of it, from the first on.
    pub taken: Option<Taken>,
    /// So many KiB hold something of it still.
    kept: u32,
    /// What was gone before anybody had read it.
    lost: Lost,
    /// Threads wrote to it: what they meant it for then is not known.
    reused: bool,
}

/// Bytes of a box that nobody has read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lost {
    bytes: u32,
    /// The first row that has such bytes.
    row: u32,
    /// Between these bytes of their rows they lie.
    low: u32,
    high: u32,
}

impl Lost {
    fn add(&mut self, row: u32, column: u32) {
        let end = column + GRANULE as u32;
        let first = Lost { bytes: 0, row, low: column, high: end };
        let before = if self.bytes == 0 { first } else { *self };
        *self = Lost {
            bytes: before.bytes + GRANULE as u32,
            row: before.row.min(row),
            low: before.low.min(column),
            high: before.high.max(end),
        };
    }
}

impl Tile {
    /// So many bytes hold these rows, of a box of two dimensions or not.
    pub fn new(start: u32, bytes: u32, swizzle: Swizzle, site: u32, rows: &[Rows], flat: bool) -> Tile {
        let granules = [start, bytes].iter().all(|n| u64::from(*n).is_multiple_of(GRANULE));
        Tile {
            start,
            bytes,
            swizzle,
            site,
            pitch: rows.first().map_or(bytes, |rows| rows.pitch).max(1),
            rows: if flat { rows.iter().map(|rows| rows.count).sum() } else { 0 },
            watched: granules
                && u64::from(bytes) >= BLOCK
                && rows.iter().all(|rows| rows.dense() && !rows.hangs_over()),
            origin: None,
            lattice: None,
            taken: None,
            kept: 0,
            lost: Lost::default(),
            reused: false,
        }
    }

    /// Whether nobody has read any of it.
    fn unused(&self) -> bool {
        self.lost.bytes == self.bytes
    }

    /// Whether another box has rows of the same depths of its tensor, which lie as far from its own in shared memory as in the tensor.
    pub fn lies_beside(&self, other: &Tile) -> bool {
        let Some((own, origin)) = self.origin.zip(other.origin) else { return false };
        let whose = |origin: &Origin| (origin.address, origin.plane, origin.at[0]);
        let apart = i64::from(other.start) - i64::from(self.start);
        whose(&own) == whose(&origin)
            && (self.pitch, self.swizzle) == (other.pitch, other.swizzle)
            && (origin.at[1] - own.at[1]) * i64::from(self.pitch) == apart
    }

    /// Whether it has rows that do not lie one behind the other in global memory.
    pub fn is_beside_others(&self) -> bool {
        self.lattice.and_then(|lattice| lattice.step()).is_some_and(|step| step > self.pitch.into())
    }

    /// The row and the byte of it that lies at an address.
    pub fn place(&self, at: u32) -> (u32, u32) {
        let offset = self.swizzle.apply(at).saturating_sub(self.start);
        (offset / self.pitch, offset % self.pitch)
    }
}

/// What nobody has read of the boxes of a copy: of each a part, or all of each.
#[derive(Clone, Copy, Debug)]
pub struct NeverRead {
    site: u32,
    /// So many boxes; the first of them.
    boxes: u64,
    tile: Tile,
    /// Nobody has read any box of the copy.
    all: bool,
    /// Of each the same part.
    alike: bool,
    /// So many boxes the copy has brought of which it is known who reads them.
    brought: u64,
}

/// The boxes that shared memory holds something of.
#[derive(Debug, Default)]
pub struct Tiles {
    list: Vec<Tile>,
    /// Places that are free.
    free: Vec<u32>,
    never_read: Vec<NeverRead>,
    /// The copies of which somebody has read a box, or a part of one.
    used: Vec<u32>,
    /// Boxes of which nobody has read anything.
    unused: Vec<Tile>,
    /// How many boxes each copy has brought, that nothing of lies there any more and of which it is known who has read them.
    brought: Vec<(u32, u64)>,
}

impl Tiles {
    pub fn get(&self, n: u32) -> Option<&Tile> {
        self.list.get(n as usize)
    }

    pub fn get_mut(&mut self, n: u32) -> Option<&mut Tile> {
        self.list.get_mut(n as usize)
    }

    /// A box comes that lies in so many KiB. Gives its number.
    pub fn add(&mut self, tile: Tile, kept: u32) -> u32 {
        let tile = Tile { kept, ..tile };
        match self.free.pop() {
            Some(n) => {
                self.list[n as usize] = tile;
                n
            }
            None => {
                self.list.push(tile);
                self.list.len() as u32 - 1
            }
        }
    }

    /// A KiB holds nothing of a box any more, of which nobody had read these granules there. Unless all of the KiB is `gone`, others
    /// of them may be meant for somebody still.
    pub fn let_go(&mut self, n: u32, block: u32, unread: u64, gone: bool) {
        let Some(tile) = self.list.get_mut(n as usize) else { return };
        tile.kept -= 1;
        tile.reused |= !gone;
        if unread != 0 && !tile.reused {
            for granule in (0..64).filter(|granule| unread >> granule & 1 == 1) {
                let (row, column) = tile.place(block * BLOCK as u32 + granule * GRANULE as u32);
                tile.lost.add(row, column);
            }
        }
        if tile.kept > 0 {
            return;
        }
        self.free.push(n);
        let tile = *tile;
        if (tile.lost.bytes < tile.bytes || !tile.watched) && !self.used.contains(&tile.site) {
            self.used.push(tile.site);
        }
        if !tile.watched || tile.reused {
            return;
        }
        match self.brought.iter_mut().find(|(site, _)| *site == tile.site) {
            Some((_, boxes)) => *boxes += 1,
            None => self.brought.push((tile.site, 1)),
        }
        if (1..=tile.bytes).contains(&tile.lost.bytes) {
            self.remember(tile);
        }
    }

    fn remember(&mut self, tile: Tile) {
        if tile.unused() && self.unused.len() < MOST_UNUSED {
            self.unused.push(tile);
        }
        let same = |known: &&mut NeverRead| known.site == tile.site && known.tile.unused() == tile.unused();
        match self.never_read.iter_mut().find(same) {
            Some(known) => {
                known.boxes += 1;
                known.alike &= known.tile.lost == tile.lost;
            }
            None => {
                let new = NeverRead { site: tile.site, boxes: 1, tile, all: false, alike: true, brought: 0 };
                self.never_read.push(new);
            }
        }
    }

    /// The first boxes of which nobody has read anything.
    pub fn unused(&self) -> &[Tile] {
        &self.unused
    }

    pub fn never_read(&mut self) -> Vec<NeverRead> {
        let (used, brought) = (&self.used, &self.brought);
        for never in &mut self.never_read {
            never.all = !used.contains(&never.site);
            never.brought = brought.iter().find(|(site, _)| *site == never.site).map_or(0, |(_, boxes)| *boxes);
        }
        std::mem::take(&mut self.never_read)
    }
}

impl Cluster<'_> {
    /// Whether a box has rows of a matrix that go on beside it, which the launch was given: tiles whose chunks are permuted in global memory lie there in
    /// one piece, or were put there by the launch itself.
    pub fn lies_as_a_matrix(&self, tile: &Tile) -> bool {
        let Some(lattice) = tile.lattice.filter(|_| tile.pitch > GRANULE as u32) else { return false };
        let given = |content: &Content| !matches!(content, Content::Undefined { .. } | Content::Fill { .. });
        let buffer = self.global.find(lattice.row(0), 1).and_then(|(n, _)| self.launch.buffers.get(n));
        tile.is_beside_others() && buffer.is_some_and(|buffer| given(&buffer.content))
    }

    /// The cluster has ended: boxes, and slices of boxes, that were loaded and never read; and what threads copied beside what was multiplied.
    pub fn slices_never_read(&mut self) {
        let mut left = vec![];
        self.sums.close_all();
        for cta in 0..self.ctas.len() {
            let all = self.ctas[cta].loaded.never_read();
            let gaps = self.gaps_along_k(&all);
            for never in all {
                if gaps.as_ref().is_some_and(|(sites, _)| sites.contains(&never.site)) {
                    left.push(never.site);
                    continue;
                }
                let diagnostic =
                    if never.tile.unused() { self.box_never_read(never) } else { self.part_never_read(never) };
                left.push(never.site);
                let diagnostic = self.or_led_astray(diagnostic, never.site);
                self.findings.add(Diagnostic { severity: Severity::Note, count: never.boxes, ..diagnostic });
            }
            gaps.into_iter().for_each(|(_, told)| self.findings.add(told));
            left.extend(self.copies_never_read(cta));
            self.factors_never_read(cta);
            self.rounds_left_out(cta);
        }
        self.tell_depths(&left);
        self.depths_left_out();
    }

    /// Of every box of A and of every box of B that a CTA multiplies, nobody has read the same depths, although both have data there: the copies, and what is
    /// said of it. A box may have more than is meant for the product, as the columns of another head beside it; but not in the middle of a sum.
    fn gaps_along_k(&self, all: &[NeverRead]) -> Option<(Vec<u32>, Diagnostic)> {
        let gap = |never: &NeverRead, which: Which| {
            let Lost { bytes, row, low, high } = never.tile.lost;
            let rows = never.tile.bytes / never.tile.pitch;
            let whole = row == 0 && bytes == rows * (high - low) && high - low < never.tile.pitch;
            let each = never.alike && never.boxes == never.brought;
            let taken = never.tile.taken.filter(|taken| taken.which == which)?;
            (whole && each && !never.all && self.has_data(&never.tile))
                .then_some(([low, high, never.tile.pitch], taken))
        };
        let of = |which: Which| all.iter().filter_map(move |never| Some((never, gap(never, which)?)));
        let pair = of(Which::A).find_map(|(a, (depths, taken))| {
            let (b, _) = of(Which::B).find(|(_, (same, _))| *same == depths)?;
            Some((a, b, depths, taken))
        });
        let (a, b, depths, taken) = pair?;
        let [low, high, width] = depths;
        let of_gap = |which: Which| of(which).filter(move |(_, (same, _))| *same == depths);
        let sites: Vec<u32> = of_gap(Which::A).chain(of_gap(Which::B)).map(|(never, _)| never.site).collect();
        if !sites.iter().any(|&site| self.sums.goes_on_behind_the_box_of(site)) {
            return None;
        }
        let boxes = |which: Which| of_gap(which).map(|(never, _)| never.boxes).sum::<u64>();
        let mut told = self.problem(
            CODE,
            taken.site,
            format!("bytes {low} to {} of the {width} bytes of each row of A and of B are never multiplied", high - 1),
            "An MMA multiplies 32 bytes of each row of a K-major operand (PTX ISA, tcgen05.mma, wgmma.mma_async). D is the sum over all depths of A and B: what lies \
             in these bytes of both, and is not zero, is missing in it.",
            format!(
                "Let the MMAs go over all {width} bytes of the rows: {} for each box, the descriptors of A and of B 32 bytes further on for each, 2 in their start \
                 addresses (bits 0 to 13, in units of 16 bytes).",
                width / 32
            ),
        );
        told.severity = Severity::Finding;
        told.labels[0].text = "this MMA takes other bytes of these rows".into();
        for (name, never, which) in [("A", a, Which::A), ("B", b, Which::B)] {
            let text =
                format!("{name} is loaded here, in rows of {width} bytes: all {} boxes have the gap", boxes(which));
            told.labels.push(self.label(never.site, text));
        }
        Some((sites, told))
    }

    /// Whether what nobody has read of a box is not all zeros in its tensor.
    pub fn has_data(&self, tile: &Tile) -> bool {
        let Some(lattice) = tile.lattice else { return false };
        let Lost { low, high, .. } = tile.lost;
        (0..tile.bytes / tile.pitch).any(|row| {
            let from = lattice.row(row).wrapping_add(low.into());
            let found = self.global.find(from, (high - low).into());
            let bytes =
                found.map(|(n, at)| &self.global.buffers[n].memory.bytes[at as usize..][..(high - low) as usize]);
            bytes.is_some_and(|bytes| bytes.iter().any(|&byte| byte != 0))
        })
    }

    fn part_never_read(&self, NeverRead { site, tile, .. }: NeverRead) -> Diagnostic {
        let (name, Lost { bytes, row, low, high }) = (self.shared_name(tile.start), tile.lost);
        let mut diagnostic = self.problem(
            CODE,
            site,
            format!("{bytes} of the {} bytes of a box that is loaded to {name} are never read", tile.bytes),
            "A tensor copy moves the whole of its box to shared memory (PTX ISA, cp.async.bulk.tensor). Other bytes of the box were \
             read; nothing that was computed depends on these.",
            match self.kernel.multiplies {
                true => "Let the MMAs go over the whole depth of the tile (of rows along K, 32 bytes each), or load a smaller box.",
                false => "Read the rest of the box, or load a smaller one.",
            }
            .into(),
        );
        diagnostic.labels[0].text = format!(
            "loaded here; the first row with such bytes is row {row} of the box, and all of them lie between bytes {low} and {high} of \
             their rows"
        );
        // All rows behind those that an MMA takes.
        let whole =
            (low, high) == (0, tile.pitch) && tile.rows.checked_sub(row).map(|rows| rows * tile.pitch) == Some(bytes);
        if let Some((mma, text, help)) = if whole { self.too_narrow(&tile, row) } else { None } {
            diagnostic.labels.push(self.label(mma, text));
            diagnostic.help = help;
        }
        diagnostic
    }

    fn box_never_read(&self, NeverRead { site, tile, all, .. }: NeverRead) -> Diagnostic {
        let name = self.shared_name(tile.start);
        if all && self.kernel.multiplies {
            let title = format!("a box of {} bytes that is loaded to {name} is never read", tile.bytes);
            let mut diagnostic = self.problem(CODE, site, title, NOBODY, NO_OPERAND.into());
            diagnostic.labels[0].text = "loaded here; of none of its boxes is anything read".into();
            diagnostic.labels[0].meaning = Meaning::NothingRead;
            return diagnostic;
        }
        let mut diagnostic = self.problem(
            CODE,
            site,
            format!("a box of {} bytes that is loaded to {name} is never read", tile.bytes),
            "A tensor copy moves its box to shared memory (PTX ISA, cp.async.bulk.tensor). Nothing read it before it was overwritten or \
             the CTA ended.",
            "Load as many boxes as are used: compare the bounds of the loop that loads with those of the one that multiplies.".into(),
        );
        diagnostic.labels[0].text = "loaded here".into();
        diagnostic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::layout::loaded::Loaded;
    use crate::order::Run;

    fn tile(start: u32, site: u32) -> Tile {
        let rows = Rows { linear: 0, bytes: 128, pitch: 128, count: 16, inside: None };
        Tile { watched: true, ..Tile::new(start, 2048, Swizzle::B128, site, &[rows], true) }
    }

    /// What is said of each copy: its statement, boxes, and what was lost of the first.
    fn said(loaded: &mut Loaded) -> Vec<(u32, u64, Lost)> {
        loaded.never_read().iter().map(|n| (n.site, n.boxes, n.tile.lost)).collect()
    }

    /// The chunks of these columns of 16 rows.
    fn read(loaded: &mut Loaded, start: u32, columns: std::ops::Range<u32>) {
        for at in (0..16).flat_map(|row| columns.clone().map(move |c| start + row * 128 + c * 16)) {
            let at = Swizzle::B128.apply(at);
            let run = Run { block: (at / 1024).into(), blocks: 1, granules: 1 << (at % 1024 / 16) };
            loaded.read_granules(std::iter::once(run));
        }
    }

    #[test]
    fn a_slice_that_is_left_out_is_named_and_counted() {
        let mut loaded = Loaded::default();
        for _ in 0..3 {
            loaded.load(tile(1024, 7));
            read(&mut loaded, 1024, 0..6);
        }
        loaded.load(tile(4096, 8));
        read(&mut loaded, 4096, 0..8);
        let lost = Lost { bytes: 16 * 32, row: 0, low: 96, high: 128 };
        assert_eq!(said(&mut loaded), [(7, 3, lost)]);
        assert_eq!(said(&mut loaded), []);
    }

    #[test]
    fn threads_read_and_write_in_bytes() {
        let mut loaded = Loaded::default();
        loaded.load(tile(1024, 7));
        loaded.read(1024, 3072 - 16);
        // Row 15, which lies in the second KiB: its chunk 7 is where 0 would be.
        let lost = Lost { bytes: 16, row: 15, low: 0, high: 16 };
        assert_eq!(said(&mut loaded), [(7, 1, lost)]);
        loaded.load(tile(1024, 7));
        loaded.read(1024, 3072 - 16);
        loaded.overwrite(1040, 1044);
        assert_eq!(said(&mut loaded), [], "threads use the tile for something else");
    }

    #[test]
    fn boxes_that_nobody_reads_at_all_stand_apart() {
        let mut loaded = Loaded::default();
        loaded.load(tile(0, 7));
        loaded.load(tile(0, 7));
        loaded.read(0, 2032);
        loaded.load(Tile { watched: false, ..tile(2048, 8) });
        loaded.read(2048, 2064);
        let (all, one) =
            (Lost { bytes: 2048, row: 0, low: 0, high: 128 }, Lost { bytes: 16, row: 15, low: 0, high: 16 });
        assert_eq!(said(&mut loaded), [(7, 1, all), (7, 1, one)]);
    }
}
