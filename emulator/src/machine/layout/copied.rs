//! Tiles that threads copy from global memory, 16 bytes at a time: where in its row each chunk came from, which depths of an operand that
//! are, and whether the rows of an operand begin together.
//!
//! A register is remembered for the place that it was loaded from, a chunk of shared memory for that of the registers stored there.
//! Neither is forgotten when something else is written: what is remembered counts only while the bytes here and there are the same.

use super::boxes::Laid;
use super::depths::{Piece, Slice};
use super::stored::{LINE, LINES};
use crate::diagnostic::Severity;
use crate::launch::{Content, NumberType, Random};
use crate::machine::cluster::Cluster;
use crate::machine::memory::resolve::Target;
use crate::machine::state::Slot;
use crate::machine::tensor_memory::SharedDescriptor;
use crate::order::GRANULE;
use crate::program::op::Reg;
use crate::tensor_map::Element;

/// A place in global memory: the buffer's number, and an offset.
pub type Place = (usize, u64);

/// The bytes of a chunk.
pub const CHUNK: usize = GRANULE as usize;
/// Loads of a warp that are remembered.
const REMEMBERED: usize = 32;

/// The last loads of 16 bytes by a warp: the first register of each, and where each lane's bytes came from.
#[derive(Debug, Default)]
pub struct LoadedChunks(Vec<(Reg, [Option<Place>; 32])>);

/// Where chunks of a CTA's shared memory came from, by their number, as far as that is known.
#[derive(Debug, Default)]
pub struct Sources(Vec<Option<Place>>);

impl Sources {
    fn insert(&mut self, chunk: usize, place: Place) {
        if self.0.len() <= chunk {
            self.0.resize(chunk + 1, None);
        }
        self.0[chunk] = Some(place);
    }

    fn get(&self, chunk: usize) -> Option<Place> {
        *self.0.get(chunk)?
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The chunks that came from a place, by their first bytes.
    pub fn of(&self, place: Place) -> impl Iterator<Item = u32> {
        let from = (0..).step_by(CHUNK).zip(&self.0);
        from.filter(move |(_, source)| **source == Some(place)).map(|(at, _)| at)
    }
}

impl LoadedChunks {
    fn add(&mut self, reg: Reg, places: [Option<Place>; 32]) {
        self.0.retain(|(known, _)| *known != reg);
        if self.0.len() == REMEMBERED {
            self.0.remove(0);
        }
        self.0.push((reg, places));
    }

    fn of(&self, reg: Reg) -> Option<&[Option<Place>; 32]> {
        self.0.iter().find(|(known, _)| *known == reg).map(|(_, places)| places)
    }
}

impl Cluster<'_> {
    /// Lanes of a warp load 16 bytes each to registers, of which this is the first.
    pub fn chunks_loaded(&mut self, w: usize, reg: Reg, targets: &[(usize, Target)]) {
        let mut places = [None; 32];
        for &(lane, target) in targets {
            if let Target::Global { buffer, offset } = target {
                places[lane] = Some((buffer, offset));
            }
        }
        if places.iter().any(Option::is_some) {
            self.warps[w].loaded_chunks.add(reg, places);
        }
    }

    /// Lanes of a warp store 16 bytes each of registers, of which this is the first.
    pub fn chunks_stored(&mut self, w: usize, site: u32, reg: Reg, targets: &[(usize, Target)]) {
        let Some(&places) = self.warps[w].loaded_chunks.of(reg) else { return };
        for &(lane, target) in targets {
            if let (Target::Shared(cta, at), Some(place)) = (target, places[lane]) {
                self.chunk_copied(Slot { cta, offset: at }, place, site);
            }
        }
    }

    /// A warp stores registers to tensor memory: what of them it has loaded, 16 bytes for each lane.
    pub fn chunks_to_tensor(&mut self, w: usize, site: u32, registers: &[u16]) {
        for (reg, places) in &self.warps[w].loaded_chunks.0 {
            if matches!(reg, Reg::B32(reg) if registers.contains(reg)) {
                let places = places.iter().flatten();
                places.for_each(|&(buffer, offset)| self.inputs.copied(buffer, offset, site, true));
            }
        }
    }

    /// A chunk of a buffer is copied to a place in shared memory: by a thread, or by its `cp.async`.
    pub fn chunk_copied(&mut self, to: Slot, from: Place, site: u32) {
        let cta = &mut self.ctas[to.cta];
        cta.sources.insert(to.offset as usize / CHUNK, from);
        cta.loaded.copies.stored(to.offset);
        self.inputs.copied(from.0, from.1, site, false);
    }

    /// Where the chunk at an address came from, if that is known: it has the same bytes, which are not all alike.
    pub fn source(&self, cta: usize, at: u32) -> Option<Place> {
        let (buffer, offset) = self.ctas[cta].sources.get(at as usize / CHUNK)?;
        let here = self.ctas[cta].shared.bytes.get(at as usize..at as usize + CHUNK)?;
        let there = self.global.buffers.get(buffer)?.memory.bytes.get(offset as usize..offset as usize + CHUNK)?;
        let telling = here.chunks(2).any(|two| two != &here[..2]);
        (here == there && telling).then_some((buffer, offset))
    }

    /// The depths of an operand that threads copied, if a row of it begins with a chunk of a row of the buffer. A buffer without rows has no depths,
    /// nor have elements of another width than those that the MMA takes them for.
    pub fn slice_copied(&self, cta: usize, laid: &Laid) -> Option<Slice> {
        let Laid { d, mn_major, .. } = *laid;
        let at = d.chunk(0, 0, mn_major);
        let (buffer, offset) = self.source(cta, at)?;
        let (of, bits) = (&self.launch.buffers[buffer], 1u64 << d.elements.log_bits);
        let (width, said) = self.row_width(cta, &d, buffer)?;
        if of.element_bytes.is_some_and(|bytes| u64::from(bytes) * 8 != bits) {
            return None;
        }
        // How far the depth goes on in the buffer from where the tile's row, or its first row of depth, begins; and where the tile lies.
        let (on, place) = match (mn_major, d.swizzle) {
            (false, 0) => (d.start.checked_div(d.leading)? * CHUNK as u32, d.start % d.leading),
            (false, w) => (d.start % w, d.start / w),
            (true, 0) => return None,
            (true, w) => (d.start / w, d.start % w),
        };
        let on = i64::from(on) * if mn_major { width as i64 } else { 1 };
        let from = offset as i64 - on;
        // Within one piece it goes on evenly, also where the buffer's rows are shorter than the tile's.
        let first = match mn_major {
            true => offset as i64 / width as i64,
            false => (from.rem_euclid(width as i64) + on) * 8 / bits as i64,
        };
        Some(Slice {
            piece: Piece::Copied { buffer, from, place },
            first,
            depths: d.elements.depth().into(),
            size: None,
            line: None,
            guessed: !said,
            element: match &of.content {
                Content::Random(Random { number: NumberType::F16, .. }) => Some(Element::F16),
                Content::Random(Random { number: NumberType::Bf16, .. }) => Some(Element::Bf16),
                _ => None,
            },
            load: self.ctas[cta].shared_shadow.writer(at.into())?.site,
        })
    }

    /// The rows that threads copied to an operand's first ones, if the next eight came from behind the first eight of a buffer: 16.
    pub fn rows_copied(&self, cta: usize, laid: &Laid) -> u32 {
        let Laid { d, .. } = *laid;
        let start = d.swizzled(d.start);
        let next = d.swizzled(d.start + 8 * d.swizzle.max(CHUNK as u32));
        let (Some((buffer, first)), Some((same, second))) = (self.source(cta, start), self.source(cta, next)) else {
            return 0;
        };
        let width = self.launch.buffers[buffer].row_bytes.map_or(0, u64::from);
        if buffer == same && width > 0 && second == first + 8 * width { 16 } else { 0 }
    }

    /// The bytes from one row of a buffer to the next, as the launch says; or else as the lines show that threads copied to where an operand begins: each
    /// holds 128 bytes in a row, in whatever order, and they come from equal distances. Whether it is known by the launch.
    pub fn row_width(&self, cta: usize, d: &SharedDescriptor, buffer: usize) -> Option<(u64, bool)> {
        if let Some(width) = self.launch.buffers[buffer].row_bytes {
            return (width > 0).then_some((width.into(), true));
        }
        let line = |n: u32| {
            let from = d.start - d.start % LINE + n * LINE;
            let places =
                (from..from + LINE).step_by(CHUNK).map(|at| self.source(cta, at).filter(|known| known.0 == buffer));
            let (low, high) = places.map(|place| Some(place?.1)).try_fold((u64::MAX, 0), |(low, high), at| {
                let at = at?;
                Some((low.min(at), high.max(at)))
            })?;
            (high - low == u64::from(LINE) - CHUNK as u64).then_some(low)
        };
        let first = line(0)?;
        let width = line(1)?.checked_sub(first)?;
        let even = (2..LINES).all(|n| line(n) == Some(first + u64::from(n) * width));
        // What is copied as it lies may have been laid out before the launch.
        (even && width >= LINE.into() && (d.swizzle != 0 || width > LINE.into())).then_some((width, false))
    }

    /// An MMA reads an operand that threads copied from rows of a buffer: its rows should begin at the same place of those. Other rows
    /// may begin so many bytes on as the operand's own rows have: several parts of a row can be meant for rows of their own.
    /// Where the launch does not say how long the rows are it is a note.
    pub fn check_sources(&mut self, cta: usize, laid: Laid) {
        let Laid { which, d, rows, mn_major, .. } = laid;
        let lines = if mn_major { d.elements.depth() } else { rows };
        if !mn_major && !self.knows_rows_of(cta, &d) && self.stored_otherwise(cta, &laid) {
            return;
        }
        let span = if d.swizzle == 0 { 128 } else { u64::from(d.swizzle) };
        let (mut first, mut unknown) = (None, None);
        for line in 0..lines {
            let at = if mn_major { d.chunk(0, line, true) } else { d.chunk(line, 0, false) };
            let Some((buffer, offset)) = self.source(cta, at) else { continue };
            // Of a buffer whose rows are not known, none tells anything.
            let known = first.or_else(|| {
                let width = if unknown == Some(buffer) { None } else { self.row_width(cta, &d, buffer) };
                unknown = width.is_none().then_some(buffer);
                let (width, said) = width?;
                Some(First { buffer, width, said, line, column: offset % width })
            });
            let Some(known) = known else { continue };
            first = Some(known);
            let column = offset % known.width;
            if known.buffer != buffer || column.abs_diff(known.column).is_multiple_of(span) {
                continue;
            }
            let what = if mn_major { "depth" } else { "row" };
            let apart = format!(
                "the MMA's operand {which} has {what} {} from byte {} of a row of `{}` on, {what} {line} from byte {column} of another",
                known.line, known.column, self.global.buffers[buffer].name
            );
            let mut diagnostic = self.explain_stored(cta, &laid, apart, (at, format!("{what} {line} was stored here")));
            if !known.said {
                diagnostic.severity = Severity::Note;
                diagnostic.help += &format!(
                    " (The launch does not say how long the rows of `{}` are: {} bytes, as they were copied.)",
                    self.global.buffers[buffer].name, known.width
                );
            }
            return self.findings.add(diagnostic);
        }
    }
}

/// The first row, or depth, of an operand of which it is known where it came from.
#[derive(Clone, Copy)]
struct First {
    buffer: usize,
    width: u64,
    said: bool,
    line: u32,
    column: u64,
}
