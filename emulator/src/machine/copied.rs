//! Tiles that threads copy from global memory, 16 bytes at a time: where in its row each chunk came from, and whether the rows of
//! an operand begin together.
//!
//! A register is remembered for the place that it was loaded from, a chunk of shared memory for that of the registers stored there.
//! Neither is forgotten when something else is written: what is remembered counts only while the bytes here and there are the same.

use super::boxes::Laid;
use super::cluster::Cluster;
use super::resolve::Target;
use crate::diagnostic::Severity;
use crate::order::GRANULE;
use crate::program::op::Reg;
use rustc_hash::FxHashMap;

/// A place in global memory: the buffer's number, and an offset.
type Place = (usize, u64);

/// The bytes of a chunk.
pub const CHUNK: usize = GRANULE as usize;
/// Loads of a warp that are remembered.
const REMEMBERED: usize = 32;

/// The last loads of 16 bytes by a warp: the first register of each, and where each lane's bytes came from.
#[derive(Debug, Default)]
pub struct LoadedChunks(Vec<(Reg, [Option<Place>; 32])>);

/// Where chunks of a CTA's shared memory came from, by their number.
pub type Sources = FxHashMap<u32, Place>;

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
    pub fn chunks_stored(&mut self, w: usize, reg: Reg, targets: &[(usize, Target)]) {
        let Some(places) = self.warps[w].loaded_chunks.of(reg) else { return };
        for &(lane, target) in targets {
            if let (Target::Shared(c, at), Some(place)) = (target, places[lane]) {
                self.ctas[c].sources.insert(at / CHUNK as u32, place);
            }
        }
    }

    /// Where the chunk at an address came from, if that is known: it has the same bytes, which are not all alike.
    fn source(&self, cta: usize, at: u32) -> Option<Place> {
        let &(buffer, offset) = self.ctas[cta].sources.get(&(at / CHUNK as u32))?;
        let here = self.ctas[cta].shared.bytes.get(at as usize..at as usize + CHUNK)?;
        let there = self.global.buffers.get(buffer)?.memory.bytes.get(offset as usize..offset as usize + CHUNK)?;
        let telling = here.chunks(2).any(|two| two != &here[..2]);
        (here == there && telling).then_some((buffer, offset))
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

    /// An MMA reads an operand that threads copied from rows of a buffer: its rows should begin at the same place of those. Other rows
    /// may begin so many bytes on as the operand's own rows have: several parts of a row can be meant for rows of their own.
    pub fn check_sources(&mut self, cta: usize, laid: Laid) {
        let Laid { name, d, rows, mn_major, site } = laid;
        let lines = if mn_major { d.elements.depth() } else { rows };
        let span = if d.swizzle == 0 { 128 } else { u64::from(d.swizzle) };
        let mut first = None;
        for line in 0..lines {
            let at = if mn_major { d.chunk(0, line, true) } else { d.chunk(line, 0, false) };
            let Some((buffer, offset)) = self.source(cta, at) else { continue };
            let Some(width) = self.launch.buffers[buffer].row_bytes.map(u64::from).filter(|width| *width > 0) else {
                continue;
            };
            let column = offset % width;
            let (of, before, known) = *first.get_or_insert((buffer, line, column));
            if of != buffer || column.abs_diff(known).is_multiple_of(span) {
                continue;
            }
            let what = if mn_major { "depth" } else { "row" };
            // Chunk by chunk as in the buffer, from the first row on whose chunks the swizzle moves.
            let moved = !mn_major && (line - before) * d.swizzle == 128;
            let plain = moved && column % span == u64::from(at) % span;
            let title = if plain {
                format!(
                    "the MMA's operand {name} was stored without the {span}-byte swizzle that its descriptor promises"
                )
            } else {
                format!(
                    "the MMA's operand {name} has {what} {before} from byte {known} of a row of `{buffer}` on, {what} {line} from byte \
                     {column} of another",
                    buffer = self.global.buffers[buffer].name
                )
            };
            let mut diagnostic = self.problem(
                "swizzle-mismatch",
                site,
                title,
                "Threads store a tile as the MMA's descriptor reads it: a swizzle permutes the 16-byte chunks by bits of their addresses, and \
                 only the same one finds them again (PTX ISA 5.5.7, swizzling modes; 9.7.16.4.1, matrix descriptor).",
                "Store chunk c of row r of a tile with the 128-byte swizzle at chunk c xor (r mod 8), and set bits 61 to 63 of the \
                 descriptor to 2."
                    .into(),
            );
            diagnostic.severity = Severity::Finding;
            diagnostic.labels[0].text = match d.swizzle {
                0 => "read here as a tile without a swizzle".into(),
                swizzle => format!("read here as a tile with the {swizzle}-byte swizzle"),
            };
            if let Some(writer) = self.ctas[cta].shared_shadow.writer(at.into()) {
                // Who stores goes by the descriptor more often than the other way round.
                diagnostic.labels.insert(0, self.label(writer.site, format!("{what} {line} was stored here")));
            }
            return self.findings.add(diagnostic);
        }
    }
}
