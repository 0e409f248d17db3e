//! Whether the matrix descriptor of an operand and the box that was loaded there agree on where its rows lie.

use crate::diagnostic::{Meaning, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::explain::copy::Cure;
use crate::machine::tensor_memory::{SharedDescriptor, chunks};
use crate::order::Footprint;
use std::fmt;

/// Who reads shared memory by a matrix descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    A,
    B,
    /// A copy to tensor memory.
    Copied,
}

impl fmt::Display for Which {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(match self {
            Which::A => "A",
            Which::B => "B",
            Which::Copied => "the source of a tcgen05.cp",
        })
    }
}

/// An operand of an MMA as its descriptor says that it lies in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Laid {
    pub which: Which,
    pub d: SharedDescriptor,
    /// Rows of A or columns of B.
    pub rows: u32,
    pub mn_major: bool,
    /// The MMA.
    pub site: u32,
}

/// Operands that go on behind their boxes, as many as are remembered.
const MOST_OVERRUNS: usize = 64;

/// An operand that goes on behind the box in which it begins.
#[derive(Debug, PartialEq)]
pub struct Overrun {
    cta: usize,
    /// The MMA, and which operand.
    site: u32,
    which: Which,
    /// What loaded the box.
    copy: u32,
    /// In which row of the box it begins, and how many rows both have.
    row: u32,
    rows: u32,
    box_rows: u32,
    /// The bytes behind the box that it reads, begin and end.
    beyond: [u32; 2],
}

/// The first of the elements of a chunk: row of A or column of B, and depth.
type Element = (u32, u32);

const RULE: &str = "The stride offset of a matrix descriptor leads from eight rows of an operand to the next eight, the leading offset \
                    to its next part beside them (PTX ISA 9.7.16.4.1, matrix descriptor; 9.7.16.3.3, canonical layouts).";

pub const START_RULE: &str = "A matrix descriptor says where the first row of an operand begins, and as many rows as the MMA has are read from there on \
                          (PTX ISA 9.7.16.4.1, matrix descriptor; 9.7.16.4.2, instruction descriptor).";

impl Laid {
    /// Bytes from eight rows of the tile to the next eight. In an MN-major tile a row is one of depth.
    fn row_stride(&self) -> u32 {
        if self.mn_major && self.d.swizzle == 0 { self.d.leading } else { self.d.stride }
    }

    /// Bytes of a row of the tile.
    pub fn row_bytes(&self) -> u32 {
        self.d.swizzle.max(16)
    }

    /// The parts of a tile lie side by side, each with rows of its own: the number of an element's part.
    fn part(&self, (mn, k): Element) -> u32 {
        let few = self.d.elements.of_chunk();
        match (self.mn_major, self.d.swizzle) {
            (false, 0) => k / few,
            (false, _) => 0,
            (true, 0) => mn / few,
            (true, w) => mn / (few * w / 16),
        }
    }

    /// Two elements that lie in the same bytes, and whether both are of the same part.
    fn overlap(&self) -> Option<(Element, Element, bool)> {
        let first_two = |same_part: bool| {
            let place = |e: Element| (if same_part { self.part(e) } else { 0 }, self.d.chunk(e.0, e.1, self.mn_major));
            let mut all: Vec<_> = chunks(self.rows, self.mn_major, self.d.elements).map(|e| (place(e), e)).collect();
            all.sort_unstable();
            let twice = all.windows(2).filter(|two| two[0].0 == two[1].0).map(|two| (two[0].1, two[1].1));
            twice.min().map(|(a, b)| (a, b, same_part))
        };
        first_two(true).or_else(|| first_two(false))
    }

    /// Whether a row of the operand goes on in the next row of a swizzled tile.
    fn runs_over(&self) -> bool {
        let (w, bytes) = (self.d.swizzle, if self.mn_major { self.rows << self.d.elements.log_bits >> 3 } else { 32 });
        w != 0 && self.d.start % w + bytes.min(w) > w
    }

    /// Whether the rows, eight at a time, lie beside each other in the same eight rows of the tile, and none goes on behind them: stripes along
    /// K, which are multiplied as columns of their own (CuTe DSL, slicek_m32n8k128).
    fn is_striped(&self) -> bool {
        let (column, stripes) = (self.d.start % self.d.swizzle.max(1), self.rows.div_ceil(8));
        !self.mn_major && self.d.stride > 0 && column + (stripes - 1) * self.d.stride < self.d.swizzle
    }

    /// Whether its rows, K-major, lie one behind the other in a swizzled tile.
    pub fn goes_straight_on(&self) -> bool {
        !self.mn_major && self.d.swizzle != 0 && !self.leaps()
    }

    /// Whether its second eight rows do not follow the first eight in a swizzled tile.
    fn leaps(&self) -> bool {
        let more = self.mn_major || self.rows > 8;
        self.d.swizzle != 0 && more && self.d.stride != self.d.pattern() * self.d.swizzle
    }
}

impl Cluster<'_> {
    /// An MMA reads an operand of a CTA, which covers this: it should have been loaded as it is read.
    pub fn check_layout(&mut self, cta: usize, laid: Laid, footprint: &Footprint, base: u64) {
        self.check_swizzle(cta, footprint.runs(base), laid.d.mode(), Some(laid.which), laid.site);
        self.ctas[cta].loaded.read_granules(footprint.runs(base));
        if self.kernel.stores_tiles {
            self.ctas[cta].staged.multiplied(footprint.runs(base));
        }
        if !laid.mn_major {
            self.ctas[cta].loaded.taken(&laid);
        }
        self.ctas[cta].loaded.copies.multiplied(footprint.runs(base), &laid);
        let overlaps = footprint.granules() < u64::from(2 * laid.rows);
        if overlaps {
            self.overlaps(cta, laid);
        } else if !laid.runs_over() && self.has_exchanged_offsets(cta, &laid) {
            // So its depths are no neighbours.
        } else if laid.runs_over() || laid.leaps() {
            self.check_rows(cta, laid);
        } else if laid.d.swizzle == 0 {
            self.check_offsets(cta, &laid);
        }
        self.note_overrun(cta, &laid);
        self.note_start(cta, &laid);
        let by_threads = !self.ctas[cta].sources.is_empty() && self.ctas[cta].loaded.tile(laid.d.start).is_none();
        // Where one offset is wrong, the rows are not where they are looked for.
        if by_threads && !(overlaps && (laid.d.swizzle != 0 || self.misled(cta, &laid).is_some())) {
            self.check_sources(cta, laid);
        }
    }

    /// An operand would fit into the box in which it begins, and goes on behind it, since it does not begin in its first row.
    fn note_overrun(&mut self, cta: usize, laid: &Laid) {
        let Laid { which, d, rows, mn_major, site } = *laid;
        if mn_major || d.swizzle == 0 || laid.leaps() || self.overruns.len() == MOST_OVERRUNS {
            return;
        }
        let begin = d.start - d.start % d.swizzle;
        let Some(tile) = self.ctas[cta].loaded.tile(begin).filter(|tile| tile.swizzle == d.mode()) else { return };
        let row = begin.saturating_sub(tile.start) / d.swizzle;
        if row == 0 || rows > tile.rows || row + rows <= tile.rows {
            return;
        }
        let beyond = [tile.rows, row + rows].map(|row| tile.start + row * d.swizzle);
        let overrun = Overrun { cta, site, which, copy: tile.site, row, rows, box_rows: tile.rows, beyond };
        if !self.overruns.contains(&overrun) {
            self.overruns.push(overrun);
        }
    }

    /// What an MMA reads of a byte behind the box in which its operand begins, if it is so: nothing is missing between its store and the MMA.
    pub fn cure_of_an_overrun(&self, cta: usize, byte: u64, mma: u32) -> Option<Cure> {
        let reads = |it: &&Overrun| {
            let [from, to] = it.beyond.map(u64::from);
            (it.cta, it.site) == (cta, mma) && (from..to).contains(&byte)
        };
        let Overrun { which, copy, row, rows, box_rows, .. } = self.overruns.iter().find(reads)?;
        let text = format!(
            "{which} has {rows} rows, and begins in row {row} of a box of {box_rows}: the last ones lie behind the box"
        );
        Some(Cure {
            rule: START_RULE,
            help: format!(
                "Let {which} begin in the first row of its box: check the start address of its descriptor, and by how many bytes, and how often, the \
                 descriptor goes on along K."
            ),
            labels: vec![self.label(mma, text), self.label(*copy, "the box in which it begins is loaded here")],
        })
    }

    /// Each CTA of a pair brings half of A's rows, and half of B's columns: they should not be the same. A note, since it breaks no rule.
    pub fn check_halves(&mut self, group: &[usize], laid: Laid) {
        let &[one, other] = group else { return };
        if !self.options.judges() {
            return;
        }
        let Laid { which, d, rows, mn_major, site } = laid;
        let at = d.chunk(0, 0, mn_major);
        let tile = |cta: usize| self.ctas[cta].loaded.tile(at).filter(|tile| tile.swizzle == d.mode());
        let (Some(here), Some(there)) = (tile(one), tile(other)) else { return };
        let same = here.origin.is_some() && here.origin == there.origin && here.place(at) == there.place(at);
        if !same {
            return;
        }
        let (what, sites) = (if which == Which::A { "rows" } else { "columns" }, [here.site, there.site]);
        let mut diagnostic = self.problem(
            "operand-overlap",
            site,
            format!("both CTAs of the pair hold the same {rows} rows of {which}, so that half of D's {what} come out twice, and those of the other half of {which} are missing"),
            "An MMA with cta_group::2 takes one half of A's rows and one half of B's from each CTA of the pair (PTX ISA 9.7.16.5).",
            "Let the row coordinate of the copy depend on the CTA's rank in the pair: each CTA loads the half that the other one does not."
                .into(),
        );
        diagnostic.severity = Severity::Note;
        diagnostic.labels[0].text = "multiplied here".into();
        diagnostic.labels[0].meaning = Meaning::SameHalves;
        let whose = |cta: usize| format!("loaded here to CTA {cta}");
        if sites[0] == sites[1] {
            diagnostic.labels.push(
                self.label(sites[0], format!("loaded here to CTAs {one} and {other}, with the same coordinates")),
            );
        } else {
            let labels = [(sites[0], one), (sites[1], other)].map(|(site, cta)| self.label(site, whose(cta)));
            diagnostic.labels.extend(labels);
        }
        self.findings.add_alike(diagnostic);
    }

    /// Elements of an operand lie in the same bytes.
    fn overlaps(&mut self, cta: usize, laid: Laid) {
        let Some((first, second, same_part)) = laid.overlap() else { return };
        let Laid { which, d, site, mn_major, .. } = laid;
        let element = |(mn, k): Element| format!("row {mn}, depth {k}");
        let misled = self.misled(cta, &laid);
        let mut diagnostic = self.problem(
            "operand-overlap",
            site,
            format!("different elements of the MMA's operand {which} lie in the same bytes of {}", self.shared_name(d.start)),
            RULE,
            if let Some(misled) = &misled {
                misled.help()
            } else if mn_major || d.swizzle == 0 {
                "Check stride and leading offset (bits 32 to 45, and 16 to 29, in units of 16 bytes): they may be exchanged.".into()
            } else {
                format!(
                    "Set the stride offset (bits 32 to 45, in units of 16 bytes) to {} bytes for rows that lie one behind the other.",
                    8 * laid.row_bytes()
                )
            },
        );
        // Rows may be repeated on purpose with a stride of 0, unless more than these were loaded; and parts beside each other be windows
        // that overlap, of a convolution, which begin with whole rows of the tile.
        let loaded = match self.ctas[cta].loaded.tile(d.start) {
            Some(tile) => tile.rows,
            None => self.rows_copied(cta, &laid),
        };
        let repeats = laid.row_stride() == 0 && loaded <= 8;
        let windows = !same_part && d.leading.is_multiple_of(laid.row_bytes());
        if (!windows || d.leading == 0) && self.is_turned(cta, &laid) {
            let turned = self.read_turned(&laid);
            return self.findings.add(turned);
        }
        diagnostic.severity = if repeats || windows { Severity::Note } else { Severity::Finding };
        diagnostic.labels[0].text = format!(
            "{which} takes {} elements from {} and from {} on out of the same 16 bytes (stride offset {} bytes, leading offset {} bytes)",
            d.elements.of_chunk(),
            element(first),
            element(second),
            d.stride,
            d.leading
        );
        // Windows leave nothing of their tile out.
        match misled.filter(|_| windows) {
            Some(misled) => self.doubt(diagnostic, misled.load, misled.guessed),
            None => self.findings.add(diagnostic),
        }
    }

    /// The rows of an operand are no neighbours in their tile: if a box was loaded there, are they those of the box?
    fn check_rows(&mut self, cta: usize, laid: Laid) {
        let Laid { which, d, mn_major, site, .. } = laid;
        if laid.runs_over() && self.is_turned(cta, &laid) {
            let turned = self.read_turned(&laid);
            return self.findings.add(turned);
        }
        let w = d.swizzle;
        let (column, next) = (d.start % w, d.start.wrapping_add(if laid.runs_over() { w } else { d.stride }));
        let loaded = &self.ctas[cta].loaded;
        // A swizzle stays within the rows of a tile.
        let box_at = |at: u32| loaded.tile(at - at % w).filter(|tile| tile.swizzle == d.mode());
        let (Some(&tile), Some(_)) = (box_at(d.start), box_at(next)) else { return };
        let row = (d.start - column).saturating_sub(tile.start) / w;
        let (eight, what) = if mn_major { (d.pattern(), "depths") } else { (8, "rows") };
        let [these, those] = [0, eight].map(|first| format!("{what} {first} to {}", first + eight - 1));
        let (what, severity) = if laid.runs_over() {
            let what = format!("begins at byte {column} of a row of the box and goes on in the next row");
            (what, Severity::Finding)
        } else if next % w != column {
            let what = format!("has {these} at byte {column} of the rows of the box, {those} at byte {}", next % w);
            // Where the box has no more rows, its rows may be taken apart on purpose.
            let on_purpose = tile.rows <= eight && laid.is_striped();
            (what, if on_purpose { Severity::Note } else { Severity::Finding })
        } else if row + eight < tile.rows {
            let what =
                format!("has {these} in rows {row} to {} of the box, {those} not in the next rows", row + eight - 1);
            // The box has all of its rows, and it leads beyond them.
            let last = d.start - column + (laid.rows.div_ceil(8) - 1) * d.stride;
            let beyond = !mn_major && row + laid.rows <= tile.rows && last >= tile.start + tile.bytes;
            (what, if beyond { Severity::Finding } else { Severity::Note })
        } else {
            return;
        };
        let misled = self.misled(cta, &laid).filter(|_| !laid.runs_over()).map(|misled| misled.help());
        let mut diagnostic = self.problem(
            "box-mismatch",
            site,
            format!("the MMA's operand {which} does not lie in {} as the box that was loaded there", self.shared_name(d.start)),
            RULE,
            match laid.runs_over() && d.stride == eight * w {
                true => format!(
                    "Let {which} begin where its part of a row is whole in the box's row of {w} bytes: check the start address of its descriptor (bits 0 to \
                     13: the address divided by 16), and by how much it goes on along K."
                ),
                false => misled.unwrap_or_else(|| format!(
                    "For a box of rows of {w} bytes, set the stride offset (bits 32 to 45) to {} bytes and begin within a row.",
                    eight * w
                )),
            },
        );
        diagnostic.severity = severity;
        diagnostic.labels[0].text = format!("{which} {what} (stride offset {} bytes)", d.stride);
        diagnostic.labels.push(self.label(tile.site, "the box was loaded here"));
        self.findings.add(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn laid(swizzle: u32, leading: u32, stride: u32, mn_major: bool) -> Laid {
        Laid {
            which: Which::A,
            d: SharedDescriptor { start: 0x8000, leading, stride, swizzle, ..Default::default() },
            rows: 128,
            mn_major,
            site: 0,
        }
    }

    /// Four stripes of 32 bytes fill rows of 128; what has more goes on behind the rows, and is no such thing.
    #[test]
    fn stripes_lie_within_the_rows_of_a_tile() {
        let of = |rows, stride| Laid { rows, ..laid(128, 16, stride, false) };
        assert!(of(32, 32).is_striped() && of(16, 64).is_striped());
        for laid in [of(40, 32), of(128, 32), of(16, 128), of(32, 0), Laid { mn_major: true, ..of(32, 32) }] {
            assert!(!laid.is_striped(), "{laid:?}");
        }
    }

    /// The layouts that compilers use overlap nowhere, and follow the rows.
    #[test]
    fn canonical_layouts_are_accepted() {
        for (swizzle, mn_major) in [32, 64, 128].into_iter().flat_map(|w| [(w, false), (w, true)]) {
            // The leading offset of K-major tiles with a swizzle means nothing.
            let leading = if mn_major { 64 * swizzle } else { 16 };
            let laid = laid(swizzle, leading, 8 * swizzle, mn_major);
            assert_eq!(laid.overlap(), None, "{laid:?}");
            assert!(!laid.leaps() && !laid.runs_over(), "{laid:?}");
        }
        for (leading, stride) in [(128, 256), (2048, 128)] {
            assert_eq!(laid(0, leading, stride, false).overlap(), None);
            assert_eq!(laid(0, leading, stride, true).overlap(), None);
        }
    }

    #[test]
    fn elements_in_the_same_bytes_are_found() {
        assert_eq!(laid(128, 1024, 16, false).overlap(), Some(((0, 8), (8, 0), true)), "exchanged");
        assert_eq!(laid(128, 16, 0, false).overlap(), Some(((0, 0), (8, 0), true)), "the same eight rows");
        assert_eq!(laid(0, 256, 128, false).overlap(), Some(((0, 8), (16, 0), false)), "windows");
        assert_eq!(laid(128, 1024, 8192, true).overlap(), None, "depths 8 to 15 lie in another box");
        assert_eq!(laid(128, 1024, 1024, true).overlap(), Some(((0, 8), (64, 0), false)), "windows");
    }

    #[test]
    fn steps_to_other_rows_are_seen() {
        assert!(laid(128, 16, 2048, false).leaps());
        assert!(laid(128, 16, 1040, true).leaps());
        let from = |start, mn_major| {
            let laid = laid(64, 4096, 512, mn_major);
            Laid { d: SharedDescriptor { start, ..laid.d }, rows: 16, ..laid }.runs_over()
        };
        assert_eq!([0x8000, 0x8020, 0x8030].map(|start| from(start, false)), [false, false, true]);
        assert_eq!([0x8000, 0x8020, 0x8030].map(|start| from(start, true)), [false, false, true]);
    }
}
