//! Leading and stride offset of an MN-major operand: whether they lead to where its next rows or columns, and its next depths, came.

use super::boxes::{Laid, Which};
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::tensor_memory::SharedDescriptor;
use crate::order::GRANULE;
use crate::tensor_map::TensorMap;

const RULE: &str = "Of an MN-major operand with a swizzle, the leading offset leads along M or N, to what lies beside a row of the pattern, and the stride offset \
                    along K, to the next pattern of depths; without a swizzle it is the other way round (PTX ISA 9.7.16.3.3, canonical layouts; \
                    9.7.16.4.1, matrix descriptor).";

/// Where in global memory the rows of a box begin: the first, and from it on so many at such distances, by dimension from the second on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lattice {
    first: u64,
    sizes: [u32; 4],
    strides: [u64; 4],
}

impl Lattice {
    /// That of a box, if neither its rows nor its elements are taken apart.
    pub fn of(map: &TensorMap, coordinates: &[i32]) -> Option<Lattice> {
        let rank = map.dims.len();
        if rank != coordinates.len() || map.element.padded().is_some() || (0..rank).any(|n| map.element_stride(n) != 1)
        {
            return None;
        }
        let (mut sizes, mut strides) = ([1; 4], [0; 4]);
        let inner = (i64::from(*coordinates.first()?) * i64::from(map.element.bits())).div_euclid(8);
        let mut first = map.address.wrapping_add_signed(inner);
        for (n, &stride) in map.strides.iter().enumerate() {
            (sizes[n], strides[n]) = (map.box_dims[n + 1], stride);
            first = first.wrapping_add(stride.wrapping_mul(i64::from(coordinates[n + 1]) as u64));
        }
        Some(Lattice { first, sizes, strides })
    }

    /// From a row of the box to the next, if it has several.
    pub fn step(&self) -> Option<u64> {
        self.sizes.iter().zip(&self.strides).find(|(size, _)| **size > 1).map(|(_, stride)| *stride)
    }

    /// Where a row of the box begins.
    pub fn row(&self, row: u32) -> u64 {
        let mut rest = row;
        self.sizes.iter().zip(&self.strides).fold(self.first, |at, (&size, stride)| {
            let index = rest % size.max(1);
            rest /= size.max(1);
            at.wrapping_add(stride.wrapping_mul(index.into()))
        })
    }
}

/// An operand that does not go on, along M or N, with what lies beside its first part in the tensor, although that is there.
#[derive(Debug)]
pub struct Astray {
    laid: Laid,
    /// So many rows of the tensor further on lies what it takes.
    rows: i64,
    /// So many bytes behind its beginning lies what would be beside it, and this brought it there.
    right: i64,
    copy: u32,
}

/// What tells offsets from others: the MMA, the operand, leading and stride offset.
type Key = (u32, Which, [u32; 2]);

/// What is known of the offsets of a cluster's operands.
#[derive(Debug, Default)]
pub struct Offsets {
    /// Which were looked at, and whether they are exchanged.
    seen: Vec<(Key, bool)>,
    astray: Vec<Astray>,
}

/// So many are looked at.
const MOST: usize = 64;

impl Laid {
    /// Rows of A or columns of B in a row of the swizzle's pattern.
    fn atom(&self) -> u32 {
        self.row_bytes() / GRANULE as u32 * self.d.elements.of_chunk()
    }

    /// The offset that leads from one such row to what lies beside it, and the one to the next depths: their names, bits, and values.
    fn offsets(&self) -> [(&'static str, &'static str, u32); 2] {
        let (leading, stride) = (("leading", "16 to 29", self.d.leading), ("stride", "32 to 45", self.d.stride));
        if self.d.swizzle == 0 { [stride, leading] } else { [leading, stride] }
    }

    /// What an operand has along the side that is not K.
    fn lines(&self) -> &'static str {
        if self.which == Which::A { "rows" } else { "columns" }
    }
}

/// An offset of a K-major operand that does not lead to where its next rows, or depths, lie in shared memory.
pub struct Misled {
    name: &'static str,
    bits: &'static str,
    /// What it leads to.
    next: String,
    found: u32,
    right: u32,
    /// What brought the first row, and whether the launch does not say how long the rows are that it came from.
    pub load: u32,
    pub guessed: bool,
}

impl Misled {
    pub fn help(&self) -> String {
        let Misled { name, bits, next, found, right, .. } = self;
        format!(
            "Set the {name} offset (bits {bits} of the matrix descriptor, in units of 16 bytes) to {right} bytes, {} in its field: so far behind the first lie {next} \
             in shared memory. It is {found} bytes now.",
            right / GRANULE as u32
        )
    }
}

impl Cluster<'_> {
    /// The offset of a K-major operand that leads elsewhere than to what comes next in its tensor, if it is known where that lies.
    pub fn misled(&self, cta: usize, laid: &Laid) -> Option<Misled> {
        let Laid { d, rows, mn_major, which, .. } = *laid;
        if mn_major {
            return None;
        }
        let begin = d.chunk(0, 0, false);
        let (here, pitch) = self.came_from(cta, &d, begin)?;
        let behind = |bytes: u64| {
            let (at, _) = self.lies_at(cta, here.wrapping_add(bytes))?;
            at.checked_sub(begin).filter(|bytes| *bytes > 0 && u64::from(*bytes).is_multiple_of(GRANULE))
        };
        let (load, guessed) = match self.ctas[cta].loaded.tile(begin) {
            Some(tile) => (tile.site, false),
            None => {
                let (buffer, _) = self.source(cta, begin)?;
                let load = self.ctas[cta].shared_shadow.writer(begin.into())?.site;
                (load, !self.row_width(cta, &d, buffer)?.1)
            }
        };
        let told = |name, bits, next: String, found: u32, right: Option<u32>| {
            right.filter(|right| *right != found).map(|right| Misled { name, bits, next, found, right, load, guessed })
        };
        let stride = || {
            let next = format!("{} 8 to 15 of {which}", laid.lines());
            told("stride", "32 to 45", next, d.stride, behind(8 * pitch).filter(|_| rows > 8))
        };
        let leading = || {
            let few = d.elements.of_chunk();
            let next = format!("depths {few} to {} of {which}", 2 * few - 1);
            // Where the rows lie otherwise, they were stored with a swizzle.
            let same = |right: &u32| behind(pitch + GRANULE) == behind(pitch).map(|row| row + right);
            told("leading", "16 to 29", next, d.leading, behind(GRANULE).filter(|_| d.swizzle == 0).filter(same))
        };
        stride().or_else(leading)
    }

    /// An MMA reads an operand, K-major and without a swizzle, of which no elements share bytes: its offsets should lead to what comes next in its tensor, unless
    /// all of the tile is read all the same. They are looked at once.
    pub fn check_offsets(&mut self, cta: usize, laid: &Laid) {
        let Laid { which, d, mn_major, site, .. } = *laid;
        let (key, seen) = ((site, which, [d.leading, d.stride]), &mut self.offsets.seen);
        if mn_major || seen.len() == MOST || seen.iter().any(|(known, _)| *known == key) {
            return;
        }
        seen.push((key, false));
        let Some(misled) = self.misled(cta, laid) else { return };
        let Misled { name, ref next, found, load, .. } = misled;
        let mut diagnostic = self.problem(
            "box-mismatch",
            site,
            format!("{which} goes on by {found} bytes in {}, where {next} do not lie", self.shared_name(d.start)),
            "Without a swizzle, the leading offset of a K-major operand leads to its next 16 bytes of depth, the stride offset to its next eight rows (PTX ISA \
             9.7.16.4.1, matrix descriptor; 9.7.16.3.3, canonical layouts).",
            misled.help(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("by the {name} offset of {which}, {found} bytes");
        diagnostic.labels.push(self.label(load, "this stores the tile, of which a part is never read"));
        self.doubt(diagnostic, misled.load, misled.guessed);
    }

    /// An MMA reads an operand, of which no elements share bytes: whether each of its offsets leads where the other one should. They are looked at once.
    pub fn has_exchanged_offsets(&mut self, cta: usize, laid: &Laid) -> bool {
        let Laid { which, d, rows, mn_major, site } = *laid;
        if !mn_major || rows <= laid.atom() {
            return false;
        }
        let (key, seen) = ((site, which, [d.leading, d.stride]), &mut self.offsets.seen);
        if let Some((_, exchanged)) = seen.iter().find(|(known, _)| *known == key) {
            return *exchanged;
        }
        if seen.len() == MOST {
            return false;
        }
        let exchanged = self.look_at_offsets(cta, laid).unwrap_or_default();
        self.offsets.seen.push((key, exchanged));
        if exchanged {
            let told = self.exchanged(laid);
            self.findings.add(told);
        }
        exchanged
    }

    /// Whether they are exchanged, if it is known where the operand came from. Remembers where the first one leads elsewhere.
    fn look_at_offsets(&mut self, cta: usize, laid: &Laid) -> Option<bool> {
        let d = laid.d;
        let begin = d.chunk(0, 0, true);
        let (here, pitch) = self.came_from(cta, &d, begin)?;
        let buffer = |at: u64| Some(self.global.find(at, 1)?.0);
        let from = |mn, k| {
            let (there, _) = self.came_from(cta, &d, d.chunk(mn, k, true))?;
            (buffer(there)? == buffer(here)?).then(|| there.wrapping_sub(here) as i64)
        };
        let (beside, deeper) = (from(laid.atom(), 0)?, from(0, d.pattern())?);
        let (pitch, part) = (pitch as i64, i64::from(laid.row_bytes()));
        // Where the rows of a tensor are no longer than those of the tile, its parts may lie one behind the other.
        if pitch <= part || beside == 0 || beside % pitch != 0 {
            return Some(false);
        }
        let exchanged = (beside, deeper) == (pitch * i64::from(d.pattern()), part);
        if let Some((at, copy)) = self.lies_at(cta, here.wrapping_add(part as u64)).filter(|_| !exchanged) {
            let right = i64::from(at) - i64::from(begin);
            self.offsets.astray.push(Astray { laid: *laid, rows: beside / pitch, right, copy });
        }
        Some(exchanged)
    }

    /// Where in global memory a chunk came from, and the bytes there from a row to the next.
    fn came_from(&self, cta: usize, d: &SharedDescriptor, at: u32) -> Option<(u64, u64)> {
        if let Some(tile) = self.ctas[cta].loaded.tile(at) {
            let lattice = tile.lattice.filter(|_| tile.swizzle == d.mode())?;
            let (row, byte) = tile.place(at);
            return Some((lattice.row(row).wrapping_add(byte.into()), lattice.strides[0]));
        }
        let (buffer, offset) = self.source(cta, at)?;
        let (width, _) = self.row_width(cta, d, buffer)?;
        Some((self.global.buffers[buffer].base + offset, width))
    }

    /// Where in shared memory a chunk of global memory lies, and what brought it there.
    fn lies_at(&self, cta: usize, from: u64) -> Option<(u32, u32)> {
        let of = &self.ctas[cta];
        let in_box = of.loaded.tiles().find_map(|tile| {
            let lattice = tile.lattice?;
            let row =
                (0..tile.bytes / tile.pitch).find(|&row| from.wrapping_sub(lattice.row(row)) < tile.pitch.into())?;
            let byte = from.wrapping_sub(lattice.row(row)) as u32;
            Some((tile.swizzle.apply(tile.start + row * tile.pitch + byte), tile.site))
        });
        in_box.or_else(|| {
            let place = self.global.find(from, 1)?;
            let at = of.sources.of(place).find(|&at| self.source(cta, at).is_some())?;
            Some((at, of.shared_shadow.writer(at.into())?.site))
        })
    }

    /// One offset leads where the other one should.
    fn exchanged(&self, laid: &Laid) -> Diagnostic {
        let Laid { which, d, site, .. } = *laid;
        let (atom, lines, few) = (laid.atom(), laid.lines(), d.pattern());
        let [(one, bits, beside), (other, others, deeper)] = laid.offsets();
        let mut diagnostic = self.problem(
            "depth-mismatch",
            site,
            format!(
                "an MMA takes {lines} {atom} to {} of {which} from {few} rows further on in their tensor, and depths {few} to {} from beside the first \
                 {atom} {lines}",
                2 * atom - 1,
                2 * few - 1
            ),
            RULE,
            format!(
                "Exchange the two: {one} offset (bits {bits}) {deeper} bytes, {other} offset (bits {others}) {beside} bytes."
            ),
        );
        diagnostic.severity = Severity::Note;
        diagnostic.labels[0].text =
            format!("{one} offset {beside} bytes, {other} offset {deeper} bytes; rows of the tensor are depths");
        diagnostic
    }

    /// What is said of a copy that brings what nobody reads: where an operand takes other parts of the tensor instead, that of the MMA.
    pub fn or_led_astray(&self, mut diagnostic: Diagnostic, copy: u32) -> Diagnostic {
        let Some(Astray { laid, rows, right, .. }) = self.offsets.astray.iter().find(|astray| astray.copy == copy)
        else {
            return diagnostic;
        };
        let (atom, lines, which) = (laid.atom(), laid.lines(), laid.which);
        let [(name, bits, value), _] = laid.offsets();
        let further = if *rows < 0 { "back" } else { "further on" };
        let text = format!(
            "{which} takes its {lines} {atom} to {} from {value} bytes behind its first {atom} ({name} offset): there lie the same {lines} of the tensor \
             as those, {} rows {further}",
            2 * atom - 1,
            rows.unsigned_abs()
        );
        diagnostic.labels.push(self.label(laid.site, text));
        diagnostic.rule = RULE.into();
        diagnostic.help = format!(
            "In shared memory, what lies beside the first {atom} {lines} of {which} in the tensor is {right} bytes behind them: let the {name} offset \
             (bits {bits} of the matrix descriptor) lead there."
        );
        diagnostic
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::{Element, Swizzle};

    #[test]
    fn rows_of_a_box_lie_where_the_map_says() {
        let map = TensorMap {
            address: 4096,
            element: Element::F16,
            dims: vec![64, 192, 6],
            strides: vec![768, 128],
            box_dims: vec![64, 8, 2],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        };
        let lattice = Lattice::of(&map, &[8, 64, 1]).expect("its rows lie in order");
        let first = 4096 + 16 + 64 * 768 + 128;
        assert_eq!(lattice.step(), Some(768));
        assert_eq!([0, 1, 8, 9].map(|row| lattice.row(row)), [0, 768, 128, 896].map(|on| first + on));
        let before = Lattice::of(&map, &[-8, -1, 0]).expect("it hangs over");
        assert_eq!([0, 1].map(|row| before.row(row)), [4096 - 16 - 768, 4096 - 16]);
        assert_eq!(Lattice::of(&TensorMap { element_strides: vec![1, 2, 1], ..map }, &[0, 0, 0]), None);
    }
}
