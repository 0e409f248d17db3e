//! What an accumulator is the sum of: which rows of A's tensor, which columns of B's, and which depths of both. Where depths in the middle are loaded for a sum
//! and nothing multiplies them, they are missing in it.

use super::mixed::Mixed;
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::layout::boxes::Laid;
use crate::machine::layout::slices::{self, Tile};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;
use std::collections::BTreeSet;

/// Rows of A, or columns of B, that an MMA takes out of a box, by where they lie in the tensor.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// Where the tensor lies, and how many bytes behind that the plane of its other dimensions.
    pub tensor: (u64, i64),
    /// The first of them, how many, and how many the tensor has.
    pub first: i64,
    pub rows: i64,
    pub size: i64,
    /// They lie side by side in its rows.
    pub mn_major: bool,
    /// All of them are known to lie side by side in the tensor: those of one box.
    pub whole: bool,
    /// The copy that brought the box.
    pub load: u32,
}

/// A range of depths, without its end.
pub type Range = (i64, i64);

/// Where ranges end that go on from a depth without a hole; in whichever order they come.
pub fn end_from(depth: i64, ranges: &mut [Range]) -> Option<i64> {
    ranges.sort_unstable();
    ranges.iter().try_fold(depth, |end, range| (range.0 <= end).then_some(range.1.max(end)))
}

/// What an accumulator holds, or has held.
#[derive(Clone, Debug, PartialEq)]
pub struct Sum {
    /// The first CTA that takes part.
    pub cta: usize,
    pub accumulator: u32,
    /// Of A and of B, from each CTA that takes part.
    pub of: [SmallVec<[Line; 2]>; 2],
    /// A's depths are so far behind those of B that they are multiplied with.
    pub distance: i64,
    /// How many depths both tensors have, if as many.
    pub size: Option<i64>,
    /// The depths of A, in ranges that do not touch.
    pub depths: SmallVec<[Range; 1]>,
    /// Something else was multiplied, too, of which it is not known where it came from.
    pub with_others: bool,
    /// The last MMA.
    pub mma: u32,
}

/// Depths of A that are multiplied with other ones of B, although both have as many.
#[derive(Clone, Copy, Debug)]
struct Displaced {
    depths: Range,
    distance: i64,
    mma: u32,
    loads: [u32; 2],
}

/// Where in a sum depths are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Where {
    Before,
    Between,
    Behind,
}

/// Depths that were loaded for a sum and are missing in it, although those before and behind them are not, or all others of both tensors.
#[derive(Clone, Debug)]
struct Gap {
    of: [SmallVec<[Line; 2]>; 2],
    /// Of A.
    depths: Range,
    place: Where,
    distance: i64,
    mma: u32,
    /// The copies of A and of B.
    loads: [u32; 2],
}

/// What is known of the sums of a cluster, and of all clusters.
#[derive(Debug, Default)]
pub struct Sums {
    pub open: Vec<Sum>,
    done: Vec<Sum>,
    gaps: Vec<Gap>,
    displaced: Option<Displaced>,
    pub mixed: Option<Mixed>,
    /// The boxes of A and B that an accumulator has added last, and the copies of those of which several are added to one.
    boxes: FxHashMap<(usize, u32), [(u32, u32); 2]>,
    of_several: BTreeSet<u32>,
    /// There are more sums than are remembered.
    overflown: bool,
}

/// So many sums are remembered of a launch.
const MOST: usize = 4096;

/// The same are the same by whatever statement they were loaded.
impl PartialEq for Line {
    fn eq(&self, other: &Line) -> bool {
        let what = |line: &Line| (line.tensor, line.first, line.rows, line.size, line.mn_major);
        what(self) == what(other)
    }
}

impl Line {
    pub fn end(&self) -> i64 {
        self.first + self.rows
    }

    pub fn has(&self, at: i64) -> bool {
        (self.first..self.end()).contains(&at)
    }

    pub fn meets(&self, other: &Line) -> bool {
        self.tensor == other.tensor && self.first < other.end() && other.first < self.end()
    }

    /// Whether it has more than half of another's rows, which are as many.
    pub fn has_most_of(&self, other: &Line) -> bool {
        let what = |line: &Line| (line.tensor, line.rows, line.size, line.mn_major);
        what(self) == what(other) && 2 * (self.first - other.first).abs() < self.rows
    }

    /// The depths of a box that has some of these rows.
    fn depths_in(&self, tile: &Tile) -> Option<Range> {
        let origin = tile.origin.filter(|origin| (origin.address, origin.plane) == self.tensor)?;
        let (wide, rows) = (i64::from(tile.pitch * 8 / origin.element.bits()), i64::from(tile.rows));
        // Pieces of the rows may lie one behind the other.
        let [wide, rows] = origin.folded.map_or([wide, rows], |[width, each]| [width * (rows / each), each]);
        let [inner, outer] = [(origin.at[0], wide), (origin.at[1], rows)];
        let (k, mn) = if self.mn_major { (outer, inner) } else { (inner, outer) };
        (mn.0 < self.end() && self.first < mn.0 + mn.1).then_some((k.0, k.0 + k.1))
    }
}

impl Sum {
    pub fn is_of(&self, cta: usize, accumulator: u32) -> bool {
        (self.cta, self.accumulator) == (cta, accumulator)
    }

    /// An MMA adds these depths of A.
    fn add(&mut self, (first, end): Range) {
        // As a rule, those behind the last.
        if let Some(last) = self.depths.last_mut().filter(|last| last.1 == first) {
            last.1 = end;
            return;
        }
        self.depths.push((first, end));
        self.depths.sort_unstable();
        let all = std::mem::take(&mut self.depths);
        for (first, end) in all {
            match self.depths.last_mut().filter(|last| first <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => self.depths.push((first, end)),
            }
        }
    }

    /// The depths that it does not have: between those that it has, and, of two tensors that have as many, from the first on and to the last.
    fn holes(&self) -> impl Iterator<Item = (Where, Range)> {
        let size = self.size.filter(|_| self.distance == 0);
        let edge =
            |place, from: Option<i64>, to: Option<i64>| Some((place, (from?, to?))).filter(|(_, hole)| hole.0 < hole.1);
        let (first, last) = (self.depths.first().map(|range| range.0), self.depths.last().map(|range| range.1));
        let before = edge(Where::Before, size.map(|_| 0), first);
        let between = self.depths.windows(2).map(|two| (Where::Between, (two[0].1, two[1].0)));
        before.into_iter().chain(between).chain(edge(Where::Behind, last, size))
    }

    /// Whether it has some of these depths of the same rows and columns.
    fn has(&self, gap: &Gap) -> bool {
        let meet = |n: usize| self.of[n].iter().any(|own| gap.of[n].iter().any(|line| own.meets(line)));
        let (from, to) = gap.depths;
        meet(0) && meet(1) && self.depths.iter().any(|&(first, end)| first < to && from < end)
    }
}

impl Sums {
    /// Those that are over, if all are remembered.
    pub fn all(&self) -> Option<&[Sum]> {
        (!self.overflown).then_some(&self.done)
    }

    #[cfg(test)]
    pub fn holding(done: Vec<Sum>) -> Sums {
        Sums { done, ..Default::default() }
    }

    /// The only one that an accumulator of a CTA, or of a pair that begins with it, holds.
    pub fn held(&self, cta: usize, column: u32) -> Option<&Sum> {
        self.only(|sum| sum.cta == cta && sum.accumulator & 0xffff == column)
    }

    /// The only one that registers of a warpgroup hold, by the accumulator.
    pub fn in_registers(&self, cta: usize, accumulator: u32) -> Option<&Sum> {
        self.only(|sum| sum.is_of(cta, accumulator))
    }

    fn only(&self, which: impl Fn(&Sum) -> bool) -> Option<&Sum> {
        let mut all = self.open.iter().filter(|sum| which(sum));
        all.next().filter(|sum| !sum.with_others && all.next().is_none())
    }

    /// Of what an accumulator holds: whether it multiplies all depths of A with all of B, each with one, and not with the same.
    fn look_at_depths(&mut self, cta: usize, accumulator: u32) {
        let all = || self.open.iter().filter(|sum| sum.is_of(cta, accumulator));
        let Some(apart) = all().find(|sum| sum.distance != 0).filter(|_| self.displaced.is_none()) else { return };
        let same = |sum: &Sum| !sum.with_others && sum.size == apart.size && sum.of == apart.of;
        let Some(size) = apart.size.filter(|_| all().all(same)) else { return };
        let covers = |behind: &dyn Fn(&Sum) -> i64| {
            let ranges =
                all().flat_map(|sum| sum.depths.iter().map(|(first, end)| (first - behind(sum), end - behind(sum))));
            let mut ranges: SmallVec<[Range; 8]> = ranges.collect();
            ranges.sort_unstable();
            let end = ranges.iter().try_fold(0, |end, range| (range.0 == end).then_some(range.1));
            end == Some(size)
        };
        if covers(&|_| 0) && covers(&|sum| sum.distance) {
            let Sum { distance, mma, .. } = *apart;
            let loads = [0, 1].map(|n| apart.of[n].first().map_or(0, |line| line.load));
            self.displaced = Some(Displaced { depths: apart.depths[0], distance, mma, loads });
        }
    }

    /// What is told of depths that do not belong together, at the end of a launch in which nothing else was found.
    pub fn judge_depths(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let Displaced { depths: (from, to), distance, mma, loads } = self.displaced?;
        let (first, last) = (from - distance, to - distance - 1);
        let mut labels = vec![label(mma, "of both, all depths are multiplied, each with one of the other".into())];
        labels.extend(
            ["A", "B"]
                .into_iter()
                .zip(loads)
                .map(|(name, load)| label(load, format!("the boxes of {name} are loaded here"))),
        );
        Some(Diagnostic {
            code: "depth-mismatch",
            severity: Severity::Note,
            title: format!("depths {from} to {} of A are multiplied with depths {first} to {last} of B", to - 1),
            labels,
            rule: "An MMA adds the products of A's and B's elements of the same depth k (PTX ISA, tcgen05.mma, wgmma.mma_async). Where the depths of one tensor lie in \
                   another order than those of the other one, this is as it should be."
                .into(),
            help: "Give the copies that load A and B for one stage the same coordinate along K.".into(),
            count: 1,
            confirmed: None,
        })
    }

    /// Those of which this holds begin anew, or are over.
    fn close(&mut self, which: impl Fn(&Sum) -> bool) {
        for sum in self.open.extract_if(.., |sum| which(sum)) {
            let new = Sum { accumulator: 0, ..sum };
            if self.done.contains(&new) {
                continue;
            }
            if self.done.len() == MOST {
                self.overflown = true;
                continue;
            }
            self.done.push(new);
        }
    }

    /// The cluster has ended.
    pub fn close_all(&mut self) {
        let all: BTreeSet<(usize, u32)> = self.open.iter().map(|sum| (sum.cta, sum.accumulator)).collect();
        for (cta, accumulator) in all {
            self.look_at_depths(cta, accumulator);
            self.look_at_rows(cta, accumulator);
        }
        self.close(|_| true);
    }

    /// Whether a copy brings one of several boxes that a sum is made of, each with another one of the other operand.
    pub fn goes_on_behind_the_box_of(&self, load: u32) -> bool {
        self.of_several.contains(&load)
    }

    /// An accumulator adds the product of these boxes, by their versions and the copies that brought them.
    fn note_boxes(&mut self, sum: (usize, u32), adds: bool, boxes: [(u32, u32); 2]) {
        let known = self.boxes.entry(sum).or_insert(boxes);
        if !adds {
            *known = boxes;
        }
        if (0..2).all(|n| known[n].0 != boxes[n].0) {
            self.of_several.extend(known.iter().chain(&boxes).map(|&(_, load)| load));
            *known = boxes;
        }
    }

    /// Takes over what a cluster has seen.
    pub fn join(&mut self, other: Sums) {
        self.overflown |= other.overflown || self.done.len() + other.done.len() > MOST;
        if self.overflown {
            return;
        }
        other.done.into_iter().for_each(|sum| {
            if !self.done.contains(&sum) {
                self.done.push(sum);
            }
        });
        self.gaps.extend(other.gaps);
        self.displaced = self.displaced.or(other.displaced);
        self.mixed = self.mixed.or(other.mixed);
    }

    /// What is missing in sums, at the end of a launch in which nothing else was found. Parameters or memory `may_tell` an MMA which tiles to leave out: a
    /// mask, or the part of the depths that is another launch's.
    pub fn judge(&self, may_tell: impl Fn(u32) -> bool, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let missing = |gap: &&Gap| !self.overflown && !self.done.iter().any(|sum| sum.has(gap));
        let gaps = || self.gaps.iter().filter(missing);
        let mmas: BTreeSet<u32> = gaps().map(|gap| gap.mma).filter(|&mma| !may_tell(mma)).collect();
        let first = gaps().find(|gap| mmas.contains(&gap.mma)).or(gaps().next())?;
        let of = |(from, to): Range| format!("depths {from} to {}", to - 1);
        let (from, to) = first.depths;
        let of_b = (from - first.distance, to - first.distance);
        let what = match first.distance {
            0 => format!("{} of A and of B", of(first.depths)),
            _ => format!("{} of A, and {} of B,", of(first.depths), of(of_b)),
        };
        let others = match first.place {
            Where::Before => "those behind them",
            Where::Between => "those before and those behind them",
            Where::Behind => "those before them",
        };
        let mut labels = vec![label(first.mma, format!("this MMA adds {others}"))];
        for (name, load) in ["A", "B"].into_iter().zip(first.loads) {
            labels.push(label(load, format!("the box of {name} that nobody reads is loaded here")));
        }
        let told = mmas.is_empty();
        let place = match first.place {
            Where::Before => "at the beginning",
            Where::Between => "in the middle",
            Where::Behind => "at the end",
        };
        Some(Diagnostic {
            code: slices::CODE,
            severity: if told { Severity::Note } else { Severity::Finding },
            title: format!("{what} are loaded and never multiplied, {place} of a sum"),
            labels,
            rule: match told {
                false => "D is the sum over all depths of A and B (PTX ISA, tcgen05.mma, wgmma.mma_async): what lies in these of both, and is not zero, is missing \
                          in it. Nothing reads either box before it is overwritten, or the CTA ends.",
                true => "D is the sum over all depths of A and B (PTX ISA, tcgen05.mma, wgmma.mma_async): what lies in these of both, and is not zero, is missing \
                         in it. Parameters or memory say which rounds leave the MMA out: where they mean a mask, or what another launch adds, nothing is wrong.",
            }
            .into(),
            help: match first.place {
                Where::Between => {
                    "Let the MMAs take every stage that is waited for: look what keeps them from this one, or whether their descriptors lead to another stage \
                     that time."
                }
                Where::Before | Where::Behind => {
                    "Let the loop that multiplies go over the same tiles along K as the loop that loads: compare where the two begin and end."
                }
            }
            .into(),
            count: gaps().filter(|gap| (gap.mma, gap.loads) == (first.mma, first.loads)).count() as u64,
            confirmed: None,
        })
    }
}

impl Cluster<'_> {
    /// What an operand takes of a CTA's box, and which depths.
    fn line_of(&self, cta: usize, laid: &Laid) -> Option<(Line, Range, Option<i64>)> {
        let slice = self.slice_of(cta, laid).ok()?;
        Some((slice.line?, (slice.first, slice.first + slice.depths), slice.size))
    }

    /// An MMA of these CTAs adds the product of its operands to an accumulator, or puts it there.
    pub fn note_sum(&mut self, group: &[usize], accumulator: u32, adds: bool, operands: &[Laid; 2]) {
        let Some(&cta) = group.first() else { return };
        if !adds {
            self.sums.look_at_depths(cta, accumulator);
            self.sums.look_at_rows(cta, accumulator);
            self.sums.close(|sum| sum.is_of(cta, accumulator));
        }
        let lines = |laid: &Laid| group.iter().map(|&c| self.line_of(c, laid)).collect::<Option<SmallVec<[_; 2]>>>();
        let [a, b] = operands;
        let (Some(of_a), Some(of_b)) = (lines(a), lines(b)) else {
            let same = self.sums.open.iter_mut().filter(|sum| sum.is_of(cta, accumulator));
            return same.for_each(|sum| sum.with_others = true);
        };
        let boxes = [(a, of_a[0].0.load), (b, of_b[0].0.load)];
        let boxes = boxes.map(|(laid, load)| (self.ctas[cta].loaded.version(laid.d.start), load));
        self.sums.note_boxes((cta, accumulator), adds, boxes);
        let (depths, distance) = (of_a[0].1, of_a[0].1.0 - of_b[0].1.0);
        let size = of_a[0].2.filter(|_| of_a[0].2 == of_b[0].2);
        let of = [of_a, of_b].map(|lines| lines.into_iter().map(|(line, ..)| line).collect::<SmallVec<[Line; 2]>>());
        let same = |sum: &&mut Sum| sum.is_of(cta, accumulator) && (&sum.of, sum.distance) == (&of, distance);
        if let Some(sum) = self.sums.open.iter_mut().find(same) {
            sum.mma = a.site;
            return sum.add(depths);
        }
        let with_others = self.sums.open.iter().any(|sum| sum.is_of(cta, accumulator) && sum.with_others);
        let depths = SmallVec::from_slice(&[depths]);
        self.sums.open.push(Sum { cta, accumulator, of, distance, size, depths, with_others, mma: a.site });
    }

    /// The cluster has ended: depths that are missing in sums, of which a CTA has loaded a box of A and one of B that nobody has read anything of. Those before
    /// and behind all others count where such boxes come to the edge of the tensors: who loads ahead may bring some that another launch multiplies.
    pub fn depths_left_out(&mut self) {
        let mut gaps = vec![];
        for sum in self.sums.done.iter().filter(|sum| !sum.with_others) {
            let unused = self.ctas[sum.cta].loaded.unused();
            if unused.is_empty() {
                continue;
            }
            let [a, b] = [0, 1].map(|n| sum.of[n][0]);
            for (place, hole) in sum.holes() {
                let before = gaps.len();
                let of_a = unused.iter().filter_map(|tile| Some((tile, a.depths_in(tile)?)));
                let inside = |depths: &Range| hole.0 <= depths.0 && depths.1 <= hole.1;
                for (tile, depths) in of_a.filter(|(_, depths)| inside(depths)) {
                    let same = Some((depths.0 - sum.distance, depths.1 - sum.distance));
                    let Some(other) = unused.iter().find(|tile| b.depths_in(tile) == same) else { continue };
                    if self.has_data(tile) && self.has_data(other) {
                        let (of, loads) = (sum.of.clone(), [tile.site, other.site]);
                        gaps.push(Gap { of, depths, place, distance: sum.distance, mma: sum.mma, loads });
                    }
                }
                let mut left: SmallVec<[Range; 4]> = gaps[before..].iter().map(|gap: &Gap| gap.depths).collect();
                if place != Where::Between && end_from(hole.0, &mut left).is_none_or(|end| end < hole.1) {
                    gaps.truncate(before);
                }
            }
        }
        self.sums.gaps = gaps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_join_where_they_touch() {
        let mut sum = Sum {
            cta: 0,
            accumulator: 0,
            of: Default::default(),
            distance: 0,
            size: None,
            depths: SmallVec::from_slice(&[(0, 16)]),
            with_others: false,
            mma: 0,
        };
        for first in [16, 64, 32, 80, 48] {
            sum.add((first, first + 16));
        }
        assert_eq!(sum.holes().count(), 0, "{:?}", sum.depths);
        sum.add((128, 144));
        assert_eq!(sum.holes().collect::<Vec<_>>(), [(Where::Between, (96, 128))]);
        sum.size = Some(150);
        sum.depths[0].0 = 16;
        let edges = [(Where::Before, (0, 16)), (Where::Between, (96, 128)), (Where::Behind, (144, 150))];
        assert_eq!(sum.holes().collect::<Vec<_>>(), edges);
    }
}
