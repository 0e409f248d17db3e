//! How the tiles in shared memory are laid out: which tensor copy loaded them, by which swizzle, and who reads them by another.

use super::boxes::{Laid, Which};
use super::narrow::Taken;
use super::slices::{NeverRead, Tile, Tiles};
use super::unread::Copies;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::coverage::factors_left::FactorsLeft;
use crate::machine::coverage::rounds::Rounds;
use crate::machine::tensor_memory::SharedDescriptor;
use crate::order::{BLOCK, GRANULE, Run};
use crate::tensor_map::Swizzle;
use smallvec::SmallVec;
use std::collections::VecDeque;

/// What a KiB of shared memory holds.
#[derive(Clone, Debug, Default)]
struct Content {
    /// Counts what was written there; 0: nothing.
    version: u32,
    /// The tensor copies into it of which something is there: two where a box ends within the KiB and another one begins, more where they are small.
    loads: SmallVec<[Load; 2]>,
    /// The granules of them that nobody has read, where that counts.
    unread: u64,
}

/// What is left in a KiB of what a tensor copy wrote there: its swizzle, the granules, the box that they belong to, and what tells it from others.
#[derive(Clone, Copy, Debug)]
struct Load {
    swizzle: Swizzle,
    granules: u64,
    tile: u32,
    version: u32,
}

impl Content {
    /// The copy that wrote the granule at an address of this KiB.
    fn load(&self, at: u32) -> Option<&Load> {
        let granule = at % BLOCK as u32 / GRANULE as u32;
        self.loads.iter().find(|load| load.granules >> granule & 1 == 1)
    }
}

/// The granules of a KiB that lie between these addresses.
pub fn granules(block: u32, start: u32, end: u32) -> u64 {
    let base = block * BLOCK as u32;
    let (first, last) = (start.saturating_sub(base) / 16, end.saturating_sub(base).div_ceil(16).min(64));
    (u64::MAX << first) & (u64::MAX >> (64 - last.max(1)))
}

/// The shared memory of a CTA, by KiB.
#[derive(Debug, Default)]
pub struct Loaded {
    blocks: Vec<Content>,
    versions: u32,
    tiles: Tiles,
    /// What threads copied.
    pub copies: Copies,
    /// What other copies than tensor copies brought.
    pub factors: FactorsLeft,
    /// Where a `tcgen05.cp` may take something in each round of a ring.
    pub rounds: Rounds,
}

impl Loaded {
    fn write(&mut self, start: u32, end: u32, tile: Option<Tile>) {
        let (first, last) = (start as usize / BLOCK as usize, end.div_ceil(BLOCK as u32) as usize);
        if self.blocks.len() < last {
            self.blocks.resize(last, Content::default());
        }
        self.versions += 1;
        let version = self.versions;
        let new = tile.map(|tile| (tile.swizzle, tile.watched, self.tiles.add(tile, (last - first) as u32)));
        for (n, block) in (first as u32..).zip(&mut self.blocks[first..last]) {
            let granules = granules(n, start, end);
            let Content { loads, unread, .. } = block;
            loads.retain(|old| {
                let touched = old.granules & granules != 0;
                if touched {
                    let gone = new.is_some() && old.granules & !granules == 0;
                    self.tiles.let_go(old.tile, n, *unread & old.granules, gone);
                    *unread &= !old.granules;
                }
                !touched
            });
            if let Some((swizzle, watched, tile)) = new {
                loads.push(Load { swizzle, granules, tile, version });
                *unread |= if watched { granules } else { 0 };
            }
            block.version = version;
        }
    }

    /// A tensor copy brings a box.
    pub fn load(&mut self, tile: Tile) {
        self.write(tile.start, tile.start + tile.bytes, Some(tile));
    }

    /// Something else writes these bytes, in an order of its own. Nothing need be known of memory that no tensor copy ever wrote.
    pub fn overwrite(&mut self, start: u32, end: u32) {
        if start >= end {
            return;
        }
        let first = start as usize / BLOCK as usize;
        let last = self.blocks.len().min(end.div_ceil(BLOCK as u32) as usize);
        if self.blocks.get(first..last).is_some_and(|blocks| blocks.iter().any(|content| content.version > 0)) {
            self.write(start, end, None);
        }
    }

    /// Somebody reads these bytes.
    pub fn read(&mut self, start: u32, end: u32) {
        self.copies.read(start, end);
        self.factors.read(start, end);
        let first = start as usize / BLOCK as usize;
        let last = self.blocks.len().min(end.div_ceil(BLOCK as u32) as usize);
        let blocks = self.blocks.get_mut(first..last).unwrap_or_default();
        for (n, content) in (first as u32..).zip(blocks).filter(|(_, content)| content.unread != 0) {
            content.unread &= !granules(n, start, end);
        }
    }

    /// An MMA reads these granules.
    pub fn read_granules(&mut self, runs: impl Iterator<Item = Run>) {
        for run in runs {
            self.copies.read_granules(run);
            self.factors.read_granules(run);
            let Run { block, blocks, granules } = run;
            let last = self.blocks.len().min((block + blocks) as usize);
            let blocks = self.blocks.get_mut(block as usize..last).unwrap_or_default();
            blocks.iter_mut().for_each(|content| content.unread &= !granules);
        }
    }

    /// The boxes that lie somewhere, in no order.
    pub fn tiles(&self) -> impl Iterator<Item = &Tile> {
        let mut known: Vec<u32> = self.blocks.iter().flat_map(|block| &block.loads).map(|load| load.tile).collect();
        known.sort_unstable();
        known.dedup();
        known.into_iter().filter_map(|n| self.tiles.get(n))
    }

    /// An MMA takes rows of the box that lies at its operand's address, from the first on.
    pub fn taken(&mut self, laid: &Laid) {
        let Some(load) = self.load_at(laid.d.start).copied() else { return };
        if let Some(tile) =
            self.tiles.get_mut(load.tile).filter(|tile| laid.d.start.saturating_sub(tile.start) < tile.pitch)
        {
            tile.taken = Some(Taken::of(laid));
        }
    }

    /// The box that was loaded to this address.
    pub fn tile(&self, at: u32) -> Option<&Tile> {
        self.tiles.get(self.load_at(at)?.tile)
    }

    fn load_at(&self, at: u32) -> Option<&Load> {
        self.blocks.get(at as usize / BLOCK as usize)?.load(at)
    }

    /// The CTA has ended: what nobody has read of the boxes that were loaded.
    pub fn never_read(&mut self) -> Vec<NeverRead> {
        for (n, block) in (0..).zip(&mut self.blocks) {
            for load in block.loads.drain(..) {
                self.tiles.let_go(load.tile, n, block.unread & load.granules, true);
            }
            block.unread = 0;
        }
        self.tiles.never_read()
    }

    /// Of those, boxes of which nobody has read anything.
    pub fn unused(&self) -> &[Tile] {
        self.tiles.unused()
    }

    /// A load that wrote some of these granules by another swizzle than they are read with: its box, its swizzle, and the first byte.
    fn other_swizzle(&self, runs: impl Iterator<Item = Run>, swizzle: Swizzle) -> Option<(Tile, Swizzle, u32)> {
        for Run { block, blocks, granules } in runs {
            let first = block as usize;
            let end = self.blocks.len().min(first + blocks as usize);
            for (n, content) in (first..).zip(self.blocks.get(first..end)?) {
                let other = |load: &Load| load.swizzle != swizzle && load.granules & granules != 0;
                if let Some(load) = content.loads.iter().find(|load| other(load)) {
                    return Some((*self.tiles.get(load.tile)?, load.swizzle, n as u32 * BLOCK as u32));
                }
            }
        }
        None
    }

    /// What tells a box that was loaded there from others, or what else was written.
    pub fn version(&self, offset: u32) -> u32 {
        let content = self.blocks.get(offset as usize / BLOCK as usize);
        content.map_or(0, |content| content.load(offset).map_or(content.version, |load| load.version))
    }
}

/// An MMA that adds to its accumulator: what it multiplies, and where it adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Product {
    cta: usize,
    column: u32,
    operands: [(SharedDescriptor, Brought); 2],
    /// Of operands that lie in boxes, where in their tensors they begin.
    places: [Option<InTensor>; 2],
    site: u32,
}

/// Where an operand comes from: the tensor or a plane of it, where its box begins in it, and so many bytes behind the beginning of the box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InTensor {
    address: u64,
    at: [i64; 2],
    offset: u32,
    /// The copy.
    load: u32,
}

impl Product {
    /// It multiplies what another does, of boxes that were loaded once more.
    fn is_loaded_again(&self, other: &Product) -> bool {
        let shape = |p: &Product| p.operands.map(|(d, _)| SharedDescriptor { start: 0, ..d });
        let same = |(one, other): (&Option<InTensor>, &Option<InTensor>)| match (one, other) {
            (Some(one), Some(other)) => (one.address, one.at, one.offset) == (other.address, other.at, other.offset),
            _ => false,
        };
        let sum = |p: &Product| (p.cta, p.column);
        sum(self) == sum(other) && self.places.iter().zip(&other.places).all(same) && shape(self) == shape(other)
    }
}

/// What tells what lies in an operand's bytes from what lay there before: the box's version, or where threads copied the first chunk from.
pub type Brought = (u32, Option<(usize, u64)>);

/// The last MMAs of a cluster.
#[derive(Debug, Default)]
pub struct Products(VecDeque<Product>);

const ONCE_RULE: &str = "Each slice of A and B counts once in a product of matrices. The result of this is defined, but it is no such product.";

/// A tile of 64 columns is multiplied in four steps, by several warps perhaps.
const REMEMBERED: usize = 16;

impl Cluster<'_> {
    /// A copy writes, or reads, a tile of shared memory; a tensor copy does it with a swizzle.
    pub fn lay_out(&mut self, cta: usize, tile: Tile, (load, tensor): (bool, bool)) {
        let Tile { start, bytes, swizzle, site, .. } = tile;
        if !self.options.judges() {
            return;
        }
        if !load {
            self.note_box_stored(cta, site, start, bytes);
        }
        if !load && tensor {
            let end = start + bytes;
            let blocks = start / BLOCK as u32..end.div_ceil(BLOCK as u32);
            let all = blocks.map(|n| Run { block: n.into(), blocks: 1, granules: granules(n, start, end) });
            self.check_swizzle(cta, all, swizzle, None, site);
            if tile.watched && tile.pitch > 0 {
                self.check_staged(cta, &tile);
            }
            self.check_drawn_up(cta, &tile);
            self.note_place_of_sums(cta, &tile);
        }
        let loaded = &mut self.ctas[cta].loaded;
        if load && self.kernel.copies_factors {
            loaded.rounds.bring(start, start + bytes, site);
        }
        match (load, tensor) {
            (true, true) => loaded.load(tile),
            (true, false) => {
                loaded.overwrite(start, start + bytes);
                loaded.factors.bring(start, start + bytes, site);
            }
            (false, _) => loaded.read(start, start + bytes),
        }
    }

    /// An MMA's operand, or a copy (`None`), reads these granules of a CTA with a swizzle: they should have been
    /// loaded with the same.
    pub fn check_swizzle(
        &mut self,
        cta: usize,
        runs: impl Iterator<Item = Run>,
        swizzle: Swizzle,
        operand: Option<Which>,
        site: u32,
    ) {
        let Some((tile, loaded, at)) = self.ctas[cta].loaded.other_swizzle(runs, swizzle) else { return };
        let what = match operand {
            None => "a copy".to_string(),
            Some(which) => format!("the MMA's operand {which}"),
        };
        let title = format!(
            "{what} reads {} with {}, which was loaded with {}",
            self.shared_name(at),
            swizzle.called(),
            loaded.called()
        );
        let mut diagnostic = self.problem(
            "swizzle-mismatch",
            site,
            title,
            "A swizzle permutes the 16-byte chunks of a tile by bits of their addresses: only the same one finds them again (PTX ISA 5.5.7, \
             swizzling modes; 9.7.16.4.1, matrix descriptor).",
            "Give the tensor map and the matrix descriptor (bits 61 to 63) the same swizzle.".into(),
        );
        // Data may lie permuted in global memory, as for a plain bulk copy, or be meant to.
        let on_purpose = operand.is_none() || loaded == Swizzle::None && !self.lies_as_a_matrix(&tile);
        diagnostic.severity = if on_purpose { Severity::Note } else { Severity::Finding };
        diagnostic.labels[0].text = format!("read here with {}", swizzle.called());
        diagnostic.labels.push(self.label(tile.site, format!("loaded here with {}", loaded.called())));
        self.findings.add(diagnostic);
    }

    /// What lies where an operand begins.
    pub fn brought(&self, cta: usize, d: &SharedDescriptor) -> Brought {
        match self.ctas[cta].loaded.version(d.start) {
            0 => (0, self.source(cta, d.swizzled(d.start))),
            version => (version, None),
        }
    }

    /// An MMA adds the product of these slices to this accumulator: the same was not added before.
    pub fn check_product(&mut self, cta: usize, column: u32, operands: [SharedDescriptor; 2], site: u32) {
        let operands = operands.map(|d| (d, self.brought(cta, &d)));
        let places = operands.map(|(d, _)| {
            let tile = self.ctas[cta].loaded.tile(d.start)?;
            let origin = tile.origin?;
            let address = origin.address.wrapping_add_signed(origin.plane);
            Some(InTensor { address, at: origin.at, offset: d.start - tile.start, load: tile.site })
        });
        let new = Product { cta, column, operands, places, site };
        // What else threads store there has no version: they may have stored something else in between.
        let known = operands.iter().all(|(_, (version, from))| *version > 0 || from.is_some());
        let same = |p: &&Product| (p.cta, p.column, p.operands) == (cta, column, operands);
        let before = self.products.0.iter().find(same).map(|p| p.site);
        if let Some(before) = before.filter(|_| known) {
            let names = operands.map(|(d, _)| self.shared_name(d.start));
            let mut diagnostic = self.problem(
                "product-added-twice",
                site,
                format!(
                    "an MMA adds the product of the same slices of {} and {} to the same accumulator again",
                    names[0], names[1]
                ),
                ONCE_RULE,
                "Advance the descriptors of A and B for each MMA: by 32 bytes in a K-major tile.".into(),
            );
            diagnostic.severity = Severity::Note;
            if before != site {
                diagnostic.labels.push(self.label(before, "this MMA added it before"));
            }
            self.findings.add(diagnostic);
        } else if self.products.0.iter().any(|before| before.is_loaded_again(&new)) {
            self.product_of_what_was_loaded_again(&new);
        }
        if self.products.0.len() == REMEMBERED {
            self.products.0.pop_front();
        }
        self.products.0.push_back(new);
    }

    /// The boxes of an MMA were loaded anew, and hold what has been multiplied and added already.
    fn product_of_what_was_loaded_again(&mut self, product: &Product) {
        let called = |operand: &str, place: Option<InTensor>| {
            let at = place.map_or([0, 0], |place| place.at);
            format!("{operand} from column {}, row {} on", at[0], at[1])
        };
        let [a, b] = product.places;
        let mut diagnostic = self.problem(
            "product-added-twice",
            product.site,
            format!(
                "an MMA adds the product of the same parts of both tensors to the same accumulator again, loaded once more: {}, {}",
                called("A", a),
                called("B", b)
            ),
            ONCE_RULE,
            "Let the coordinates of the copies go on along K from round to round: by the depths of a box, in elements.".into(),
        );
        diagnostic.severity = Severity::Note;
        for (operand, place) in
            ["A", "B"].iter().zip(product.places).filter_map(|(operand, place)| Some((operand, place?)))
        {
            diagnostic
                .labels
                .push(self.label(place.load, format!("this copy brings the same part of {operand} again")));
        }
        self.findings.add(diagnostic);
    }

    /// An MMA begins a new sum in this accumulator.
    pub fn begin_product(&mut self, cta: usize, column: u32) {
        self.products.0.retain(|p| (p.cta, p.column) != (cta, column));
    }
}
