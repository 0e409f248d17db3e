//! Which depths an MMA multiplies: those of A and of B must be the same ones, of one type, and lie in bytes of their own.

use super::boxes::Laid;
use super::taken::Taken;
use crate::diagnostic::{Diagnostic, Place, Severity};
use crate::machine::arithmetic::formats::Format;
use crate::machine::cluster::Cluster;
use crate::machine::coverage::sums::Line;
use crate::machine::mma::footprints::footprint;
use crate::machine::tensor_memory::SharedDescriptor;
use crate::order::Footprint;
use crate::tensor_map::Element;
use std::collections::{BTreeSet, VecDeque};

/// An MMA with both operands in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Multiplied {
    pub cta: usize,
    /// What tells its accumulator from others.
    pub accumulator: u32,
    /// It adds to the accumulator.
    pub adds: bool,
    /// A and B.
    pub operands: [Laid; 2],
    /// If it can be chosen for each of the two.
    pub formats: Option<[Format; 2]>,
    pub negated: [bool; 2],
}

/// What tells the box in which an operand begins from others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Piece {
    /// One that a tensor copy brought: its version.
    Box(u32),
    /// What threads copied, chunk by chunk, from rows of a buffer: from where the beginning of its row in shared memory would come, and what does
    /// not change along the depth.
    Copied { buffer: usize, from: i64, place: u32 },
}

/// What an operand takes of the box in which it begins.
#[derive(Clone, Copy, Debug)]
pub struct Slice {
    pub piece: Piece,
    /// The first depth, counted in the tensor, how many, and how many the tensor of a box has.
    pub first: i64,
    pub depths: i64,
    pub size: Option<i64>,
    /// What lies along M or N of an operand of a box.
    pub line: Option<Line>,
    /// The launch does not say how long the rows are that it was copied from.
    pub guessed: bool,
    /// Of a tensor map, or of what the launch says of a buffer that threads copy.
    pub element: Option<Element>,
    /// The copy, or the last store of a thread.
    pub load: u32,
}

impl Slice {
    fn end(&self) -> i64 {
        self.first + self.depths
    }

    fn hangs_over(&self) -> bool {
        self.size.is_some_and(|size| self.end() > size || self.first < 0)
    }

    fn named(&self, operand: &str) -> String {
        format!("depths {} to {} of {operand}", self.first, self.end() - 1)
    }

    /// Whether the rows of its tile are the depths of the other operand: it is read along the wrong side.
    fn is_turned(&self, other: &Slice) -> bool {
        let rows = self.line.filter(|line| !line.mn_major).map(|line| (line.first, line.size));
        rows.is_some_and(|rows| other.size.is_some_and(|size| rows == (other.first, size)) && self.first != other.first)
    }

    /// How the operand came to where it lies.
    pub fn brought(&self, operand: &str) -> String {
        match self.piece {
            Piece::Box(_) => format!("the box of {operand} is loaded here"),
            Piece::Copied { .. } => format!("threads store {operand} here"),
        }
    }
}

/// Two boxes that an MMA has multiplied slices of.
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    cta: usize,
    accumulator: u32,
    boxes: [Piece; 2],
    firsts: [i64; 2],
    pub taken: [Taken; 2],
    pub site: u32,
}

impl Pair {
    /// Slices of the same boxes, added to the same sum.
    fn goes_with(&self, other: &Pair) -> bool {
        (self.cta, self.accumulator, self.boxes) == (other.cta, other.accumulator, other.boxes)
    }
}

/// The last MMAs of a cluster.
#[derive(Debug, Default)]
pub struct Depths {
    last: VecDeque<Pair>,
    /// MMAs of which it is known that their elements have another width than those that were loaded.
    pub of_other_width: Vec<u32>,
    /// The same of another type.
    pub of_other_type: Vec<u32>,
    /// Of A and of B, when their rows were the depths of the other one for the first time in a product: of which accumulator, and which depths.
    turned: [Option<((usize, u32), i64)>; 2],
    /// What is told of tiles that threads copied, once it is known what nobody has read.
    doubted: Vec<Doubted>,
    /// The statements by which threads copied chunks that nobody has read.
    pub left_alone: Vec<u32>,
}

/// Slices of two tiles, of which threads copied one at least, at two distances. That may be meant: a tile can hold two parts of a matrix
/// side by side, of which each is multiplied with each, and then all of it is read.
#[derive(Debug)]
struct Doubted {
    diagnostic: Diagnostic,
    /// The last loads, or stores, of the two.
    loads: [u32; 2],
    /// What is known of depths is concluded from the tiles themselves.
    guessed: bool,
    /// An offset is told, by whatever is left of the tile; and where nothing is, whether it is told at all.
    of_offset: bool,
    only_if_left: bool,
    /// One slice of these tiles overlaps two, whoever else reads them.
    strays: bool,
}

/// A box of 64 columns is multiplied in four steps, by several warps perhaps.
const REMEMBERED: usize = 16;

const RULE: &str = "An MMA adds the products of A's and B's elements of the same depth k (PTX ISA, tcgen05.mma, wgmma.mma_async). Which \
                    elements those are, the two descriptors and the bits for the major-ness say (PTX ISA 9.7.16.4.1, 9.7.16.4.2).";

impl Depths {
    /// An MMA of the same accumulator that multiplied some of these depths of the same two boxes, and others: the descriptors went on by too little.
    fn half_again(&self, new: &Pair, depths: i64) -> Option<Pair> {
        let both = |p: &&Pair| {
            let [a, b] = [0, 1].map(|n| new.firsts[n] - p.firsts[n]);
            a == b && a != 0 && a.abs() < depths
        };
        self.last.iter().rev().filter(|p| p.goes_with(new)).find(both).copied()
    }

    /// An MMA of the same accumulator that took other depths of the same two boxes for other numbers. Who multiplies the same ones again, means it.
    fn taken_otherwise(&self, new: &Pair) -> Option<Pair> {
        self.last.iter().find(|p| p.taken != new.taken && p.firsts != new.firsts && p.goes_with(new)).copied()
    }

    /// Of the MMAs that have multiplied these two boxes for this sum, the one that takes one operand by less than an MMA's depth beside where it belongs,
    /// while all others go on straight. Halves that are multiplied crosswise lie whole slices apart.
    fn strays(&self, new: &Pair, depths: i64) -> Option<Pair> {
        let all = || self.last.iter().filter(|p| p.goes_with(new));
        let alone = |p: &&Pair| {
            let mut others = all().filter(|other| other.firsts != p.firsts);
            let Some(one) = others.next() else { return false };
            let on = |other: &Pair, n: usize| other.firsts[n] - one.firsts[n];
            let straight = |other: &Pair| on(other, 0) == on(other, 1) && on(other, 0) % depths == 0;
            let mut more = others.peekable();
            let [a, b] = [0, 1].map(|n| on(p, n));
            more.peek().is_some()
                && more.all(straight)
                && (a - b).abs() < depths
                && (a % depths == 0) != (b % depths == 0)
        };
        all().find(alone).copied()
    }

    /// An MMA of the same accumulator that multiplied the same two boxes at other distances. Remembers this one.
    fn apart(&mut self, new: Pair, adds: bool) -> Option<Pair> {
        if !adds {
            self.last.retain(|p| (p.cta, p.accumulator) != (new.cta, new.accumulator));
        }
        let distance = |p: &Pair| p.firsts[0] - p.firsts[1];
        let other = self.last.iter().filter(|p| p.goes_with(&new)).find(|p| distance(p) != distance(&new)).copied();
        if self.last.len() == REMEMBERED {
            self.last.pop_front();
        }
        self.last.push_back(new);
        other
    }
}

/// Operands that share bytes, while each has bytes of its own, too.
fn cross(footprints: [(&Footprint, u64); 2]) -> Option<u32> {
    let granules = |(footprint, base): (&Footprint, u64)| -> BTreeSet<u64> {
        let bits = |(block, granules): (u64, u64)| {
            (0..64).filter(move |bit| granules >> bit & 1 == 1).map(move |bit| block * 64 + bit)
        };
        footprint.from(base).flat_map(bits).collect()
    };
    let ends = |(footprint, base): (&Footprint, u64)| {
        let (low, high) = footprint.bounds();
        (base * crate::order::BLOCK + low, base * crate::order::BLOCK + high)
    };
    let [(low, high), (first, end)] = footprints.map(ends);
    if high <= first || end <= low {
        return None;
    }
    let [a, b] = footprints.map(granules);
    let shared = a.intersection(&b).next().copied()?;
    (!a.is_subset(&b) && !b.is_subset(&a)).then_some(shared as u32 * crate::order::GRANULE as u32)
}

impl Cluster<'_> {
    /// What an operand takes, if a box whose origin is known was loaded there and it is read as it was loaded; and else, if that lies at the
    /// width of its elements, their type in the box and the copy.
    pub fn slice_of(&self, cta: usize, laid: &Laid) -> Result<Slice, Option<(Element, u32)>> {
        let Laid { d, mn_major, .. } = *laid;
        let loaded = &self.ctas[cta].loaded;
        let at = d.chunk(0, 0, mn_major);
        let tile = loaded.tile(at).filter(|tile| tile.swizzle == d.mode()).ok_or(None)?;
        let origin = tile.origin.ok_or(None)?;
        let bits = origin.element.bits();
        if bits != 1 << d.elements.log_bits {
            return Err(Some((origin.element, tile.site)));
        }
        let (row, byte) = tile.place(at);
        let [inner, outer] = origin.element_at(row.into(), (byte * 8 / bits).into());
        let (outer_size, inner_size) = (origin.sizes[1] as i64, origin.sizes[0] as i64);
        let ((first, size), (line, lines)) = match mn_major {
            true => ((outer, outer_size), (inner, inner_size)),
            false => ((inner, inner_size), (outer, outer_size)),
        };
        let depths = d.elements.depth().into();
        let (element, load) = (Some(origin.element), tile.site);
        Ok(Slice {
            piece: Piece::Box(loaded.version(d.start)),
            first,
            depths,
            size: Some(size),
            line: Some(Line {
                tensor: (origin.address, origin.plane),
                first: line,
                rows: laid.rows.into(),
                size: lines,
                mn_major,
                whole: !mn_major && tile.rows >= row + laid.rows && origin.folded.is_none(),
                load,
            }),
            guessed: false,
            element,
            load,
        })
    }

    /// The same where threads copied it from rows of a buffer.
    fn slice_or_copy(&self, cta: usize, laid: &Laid) -> Result<Slice, Option<(Element, u32)>> {
        self.slice_of(cta, laid).or_else(|other| self.slice_copied(cta, laid).ok_or(other))
    }

    /// An MMA multiplies these operands: they should go together.
    pub fn check_depths(&mut self, mma: Multiplied) {
        let Multiplied { cta, accumulator, adds, operands: [a, b], formats, negated } = mma;
        let site = a.site;
        self.check_apart(cta, [a, b]);
        let (of_a, of_b) = match (self.slice_or_copy(cta, &a), self.slice_or_copy(cta, &b)) {
            (Ok(of_a), Ok(of_b)) => (of_a, of_b),
            (of_a, of_b) => {
                let others = [(a, of_a), (b, of_b)].map(|(laid, of)| Some((laid, of.err()??)));
                return self.elements_of_other_width(others.into_iter().flatten().collect());
            }
        };
        if let Some(formats) = formats {
            self.check_types(site, [of_a, of_b], formats);
        }
        self.check_turned((cta, accumulator), adds, [(&a, of_a), (&b, of_b)]);
        let (boxes, firsts) = ([of_a.piece, of_b.piece], [of_a.first, of_b.first]);
        let taken = [0, 1].map(|n| Taken { format: formats.map(|formats| formats[n]), negated: negated[n] });
        let pair = Pair { cta, accumulator, boxes, firsts, taken, site };
        if let Some(other) = self.depths.taken_otherwise(&pair).filter(|_| adds) {
            self.taken_in_two_ways(&pair, &other, [of_a, of_b]);
        }
        if let Some(before) = self.depths.half_again(&pair, of_a.depths).filter(|_| adds) {
            self.add_half_again([of_a, of_b], before, site);
        }
        let other = self.depths.apart(pair, adds);
        // Another number of depths tells of another place in a larger tensor: of several matrices side by side, or of a part of one.
        let alike = of_a.size.is_some() && of_a.size == of_b.size;
        let beyond = alike && of_a.hangs_over() != of_b.hangs_over() && of_a.first != of_b.first;
        if other.is_none() && !beyond {
            return;
        }
        let title = format!("an MMA multiplies {} with {}", of_a.named("A"), of_b.named("B"));
        // At both MMAs, at two places along K.
        let goes_on = |n: usize, slice: &Slice| other.is_some_and(|pair: Pair| pair.firsts[n] != slice.first);
        let mut turned = [(&a, of_a, of_b, 1), (&b, of_b, of_a, 0)].into_iter();
        let turned = turned.find(|(_, of, other, n)| of.is_turned(other) && goes_on(*n, other));
        let help = if let Some((laid, ..)) = turned {
            self.turn(laid)
        } else if a.mn_major || b.mn_major {
            "Check bits 15 and 16 of the instruction descriptor against how the tiles lie, and advance both descriptors by 16 depths.".to_string()
        } else if other.is_some() {
            "Advance both descriptors by the same number of depths for each MMA: 16 elements of 16 bits are 32 bytes of a K-major tile.".to_string()
        } else {
            "Give the copies that load A and B the same coordinate along K.".to_string()
        };
        let copied = [of_a, of_b].iter().any(|slice| matches!(slice.piece, Piece::Copied { .. }));
        let place = self.place(site);
        let mut diagnostic = self.problem("depth-mismatch", site, title, RULE, help);
        diagnostic.severity = Severity::Finding;
        match other {
            Some(pair) => {
                let [a, b] = pair.firsts;
                diagnostic.labels[0].text =
                    "these are slices of the same two boxes as those of another MMA, which lie otherwise".into();
                if copied {
                    diagnostic.labels[0].text =
                        "these are slices of the same two tiles as those of another MMA, which lie otherwise".into();
                }
                if pair.site != site {
                    let text = format!("that MMA multiplies A from depth {a} on with B from depth {b} on");
                    diagnostic.labels.push(self.label(pair.site, text));
                }
            }
            None => {
                let (name, over) = if of_a.hangs_over() { ("A", of_a) } else { ("B", of_b) };
                diagnostic.labels[0].text = format!(
                    "the tensor of {name} has {} depths: beyond them its box holds zeros, and the other one data",
                    over.size.unwrap_or_default()
                );
            }
        }
        for (name, slice) in [("A", of_a), ("B", of_b)] {
            diagnostic.labels.push(self.label(slice.load, slice.brought(name)));
        }
        if !copied {
            return self.findings.add(diagnostic);
        }
        let astray = self.depths.strays(&pair, of_a.depths).map(|astray| self.place(astray.site));
        let doubted = &mut self.depths.doubted;
        let known =
            |doubted: &[Doubted], place: &Place| doubted.iter().position(|d| d.diagnostic.labels[0].place == *place);
        // Beside the one that strays, the others are right.
        let at = astray.as_ref().and_then(|astray| known(doubted, astray)).or_else(|| known(doubted, &place));
        let doubted = match at {
            Some(n) => {
                doubted[n].diagnostic.count += 1;
                &mut doubted[n]
            }
            None => {
                doubted.push(Doubted {
                    diagnostic,
                    loads: [of_a.load, of_b.load],
                    guessed: of_a.guessed || of_b.guessed,
                    of_offset: false,
                    only_if_left: false,
                    strays: false,
                });
                doubted.last_mut().expect("it was put there")
            }
        };
        doubted.strays |= astray.is_some();
    }

    /// An offset leads past a part of a tile, which somebody else may read: told at the end, by the statement that brought the tile. One that has told something
    /// already is a note then.
    pub fn doubt(&mut self, diagnostic: Diagnostic, load: u32, guessed: bool) {
        let same = |doubted: &&mut Doubted| {
            (&doubted.diagnostic.title, &doubted.diagnostic.labels[0].place)
                == (&diagnostic.title, &diagnostic.labels[0].place)
        };
        match self.depths.doubted.iter_mut().find(same) {
            Some(doubted) => doubted.diagnostic.count += 1,
            None => {
                let only_if_left = diagnostic.severity > Severity::Note;
                let diagnostic = Diagnostic { severity: Severity::Finding, ..diagnostic };
                self.depths.doubted.push(Doubted {
                    diagnostic,
                    loads: [load; 2],
                    guessed,
                    of_offset: true,
                    only_if_left,
                    strays: false,
                });
            }
        }
    }

    /// An MMA adds depths of two tiles of which a part was added before: it goes on along K by less than it takes.
    fn add_half_again(&mut self, [a, b]: [Slice; 2], before: Pair, site: u32) {
        let both = |first: i64| {
            let end = first + a.depths - 1;
            match a.first == b.first {
                true => format!("depths {first} to {end} of A and of B"),
                false => format!("depths {first} to {end} of A"),
            }
        };
        let mut diagnostic = self.problem(
            "product-added-twice",
            site,
            format!("an MMA adds the product of {}, and one before it that of {}", both(a.first), both(before.firsts[0])),
            "Each depth of A and B counts once in a product of matrices. An MMA multiplies 32 bytes of each row of a K-major operand (PTX ISA, tcgen05.mma, \
             wgmma.mma_async).",
            format!(
                "Let the descriptors of A and B go on by {} depths for each MMA: in K-major tiles by 32 bytes, 2 in their start addresses (bits 0 to 13, in units \
                 of 16 bytes).",
                a.depths
            ),
        );
        let guessed = a.guessed || b.guessed;
        diagnostic.severity = if guessed { Severity::Note } else { Severity::Finding };
        diagnostic.labels[0].text = "some of these depths are added for the second time here".into();
        if before.site != site {
            diagnostic.labels.push(self.label(before.site, "this MMA added them before"));
        }
        self.findings.add(diagnostic);
    }

    /// A K-major operand whose rows are the depths of the other one, at two places along K: its rows go along M or N.
    fn check_turned(&mut self, accumulator: (usize, u32), adds: bool, operands: [(&Laid, Slice); 2]) {
        let [(a, of_a), (b, of_b)] = operands;
        for (n, laid, of, other) in [(0, a, of_a, of_b), (1, b, of_b, of_a)] {
            let before = &mut self.depths.turned[n];
            if !adds {
                *before = before.filter(|(sum, _)| *sum != accumulator);
            }
            if !of.is_turned(&other) {
                continue;
            }
            // Once it may be so by chance.
            match *before {
                Some((sum, first)) if sum == accumulator && first != other.first => {
                    let diagnostic = self.stored_turned(accumulator.0, laid, of.load);
                    self.findings.add(diagnostic);
                }
                _ => *before = Some((accumulator, other.first)),
            }
        }
    }

    /// The run has ended, and something of what these statements brought was never read: whether what was in doubt leaves out depths, or may be meant.
    pub fn tell_depths(&mut self, left: &[u32]) {
        for doubted in std::mem::take(&mut self.depths.doubted) {
            let Doubted { mut diagnostic, loads, guessed, of_offset, only_if_left, strays } = doubted;
            let is_left = |load: &u32| left.contains(load) || of_offset && self.depths.left_alone.contains(load);
            let none_left = !loads.iter().any(is_left);
            if only_if_left && none_left {
                continue;
            }
            if guessed || none_left && !strays {
                diagnostic.severity = Severity::Note;
            }
            self.findings.add(diagnostic);
        }
    }

    /// A and B lie in bytes of their own, or one of them is a part of the other.
    fn check_apart(&mut self, cta: usize, [a, b]: [Laid; 2]) {
        let of = |laid: &Laid| footprint(&laid.d, laid.rows, laid.mn_major);
        let ((first, low), (second, high)) = (of(&a), of(&b));
        let Some(at) = cross([(&first, low), (&second, high)]) else { return };
        let name = |d: &SharedDescriptor| self.shared_name(d.start);
        let title = format!("an MMA takes bytes of {} both for A and for B", self.shared_name(at));
        if a.goes_straight_on() && b.goes_straight_on() {
            let told = self.begins_in_the_others_tile(cta, [a, b], title);
            return self.findings.add(told);
        }
        let text = format!(
            "A begins in {} (stride offset {} bytes), B in {} (stride offset {} bytes)",
            name(&a.d),
            a.d.stride,
            name(&b.d),
            b.d.stride
        );
        let mut diagnostic = self.problem(
            "operand-overlap",
            a.site,
            title,
            "The stride offset of a matrix descriptor leads from eight rows of an operand to the next eight (PTX ISA 9.7.16.4.1, matrix \
             descriptor). Here it leads one operand into a part of the other one's tile.",
            [a, b].iter().find_map(|laid| self.misled(cta, laid)).map_or_else(
                || {
                    "Set the stride offset (bits 32 to 45, in units of 16 bytes) so that each operand stays within its own tile: eight rows of it."
                        .into()
                },
                |misled| misled.help(),
            ),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = text;
        self.findings.add(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(boxes: [u32; 2], firsts: [i64; 2]) -> Pair {
        let taken = [Taken { format: None, negated: false }; 2];
        Pair { cta: 0, accumulator: 0, boxes: boxes.map(Piece::Box), firsts, taken, site: 7 }
    }

    #[test]
    fn slices_of_two_boxes_keep_their_distance() {
        let mut depths = Depths::default();
        for k in [0, 16, 32, 48] {
            assert!(depths.apart(pair([1, 2], [k, k]), k > 0).is_none());
        }
        assert!(depths.apart(pair([3, 4], [64, 0]), true).is_none(), "other boxes, as those of a convolution");
        assert_eq!(depths.apart(pair([3, 4], [72, 16]), true).map(|p| p.firsts), Some([64, 0]));
        assert!(depths.apart(pair([3, 4], [8, 16]), false).is_none(), "a new sum");
    }

    #[test]
    fn one_slice_of_several_strays() {
        let strays = |all: &[[i64; 2]]| {
            let mut depths = Depths::default();
            all.iter().for_each(|&firsts| _ = depths.apart(pair([1, 2], firsts), true));
            depths.strays(&pair([1, 2], all[0]), 16).map(|astray| astray.firsts)
        };
        assert_eq!(strays(&[[0, 0], [16, 16], [32, 40]]), Some([32, 40]));
        assert_eq!(strays(&[[8, 0], [16, 16], [32, 32], [48, 48]]), Some([8, 0]));
        assert_eq!(strays(&[[0, 0], [16, 24]]), None, "of two, either may be meant");
        assert_eq!(strays(&[[0, 0], [16, 16], [32, 32], [48, 48]]), None);
        assert_eq!(strays(&[[0, 0], [16, 16], [0, 32], [16, 48]]), None, "halves, each with each");
        assert_eq!(strays(&[[0, 0], [16, 24], [32, 32], [48, 56]]), None, "two of four: a pattern");
    }

    #[test]
    fn operands_cross_only_where_each_has_bytes_of_its_own() {
        let all = Footprint::new((0..64).map(|n| n * 16));
        let [low, high] = [0..40, 32..64].map(|part| Footprint::new(part.map(|n| n * 16)));
        let even = Footprint::new((0..64).step_by(2).map(|n| n * 16));
        assert_eq!(cross([(&all, 0), (&low, 0)]), None, "a part of it, as of a product of a matrix with itself");
        assert_eq!(cross([(&low, 0), (&high, 1)]), None);
        assert_eq!(cross([(&low, 0), (&high, 0)]), Some(32 * 16));
        assert_eq!(cross([(&even, 0), (&low, 0)]), Some(0));
    }
}
