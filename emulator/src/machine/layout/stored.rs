//! How threads laid out a tile that they copied from rows of a buffer, and what is wrong where an MMA reads it otherwise.

use super::boxes::Laid;
use super::copied::CHUNK;
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::tensor_memory::SharedDescriptor;

/// Lines of 128 bytes after which every pattern has begun anew.
pub const LINES: u32 = 8;
pub const LINE: u32 = 128;
/// So many chunks of those must be known, and agree.
const ENOUGH: usize = 16;

/// How chunks lie in rows of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stored {
    /// Bytes of the rows, and of the swizzle's pattern; and whether that moves 32 bytes at a time, not 16.
    width: u32,
    wide: bool,
    /// The swizzle permutes the chunks; else they lie in the order of the buffer.
    permuted: bool,
    /// The pattern begins so many lines behind where it would by address.
    shift: u32,
}

impl Stored {
    /// A chunk of a tile: where in the tile, without the swizzle, the bytes belong that lie at an address.
    fn place(self, address: u32) -> u32 {
        if !self.permuted {
            return address;
        }
        let from = self.shift * LINE;
        let d = SharedDescriptor { swizzle: self.width, wide: self.wide, ..SharedDescriptor::default() };
        d.swizzled(address.wrapping_sub(from)).wrapping_add(from)
    }

    /// All that are told apart. First what the descriptor asks for.
    fn all(d: &SharedDescriptor) -> impl Iterator<Item = Stored> {
        let width = d.swizzle;
        let own = Stored { width, wide: d.wide, permuted: true, shift: 0 };
        let by_address = |(width, wide)| Stored { width, wide, ..own };
        let shifted = (1..own.lines()).map(move |shift| Stored { shift, ..own });
        let others = [(128, false), (128, true), (64, false), (32, false)].map(by_address);
        let others = others.into_iter().filter(move |other| *other != own);
        let plain = [128, 64, 32].map(|width| Stored { width, wide: false, permuted: false, shift: 0 });
        (width != 0).then_some(own).into_iter().chain(shifted).chain(others).chain(plain)
    }

    /// Lines after which its pattern begins anew.
    fn lines(self) -> u32 {
        if self.wide { 4 } else { self.width / 16 }
    }

    /// Of its swizzle, in a matrix descriptor.
    fn code(self) -> u32 {
        match (self.width, self.wide) {
            (128, true) => 1,
            (128, false) => 2,
            (64, _) => 4,
            _ => 6,
        }
    }

    fn swizzle(self) -> String {
        format!("{}-byte swizzle{}", self.width, if self.wide { " of 32-byte chunks" } else { "" })
    }
}

impl Cluster<'_> {
    /// How threads laid out the tile that lies at an address: the first way, beginning with what the descriptor asks for, with which all agrees that is
    /// known of the first lines there.
    fn stored(&self, cta: usize, d: &SharedDescriptor) -> Option<Stored> {
        let from = d.start - d.start % LINE;
        let chunks = (from..from + LINES * LINE).step_by(CHUNK);
        let known: Vec<(u32, usize, u64)> =
            chunks.filter_map(|at| self.source(cta, at).map(|(buffer, offset)| (at, buffer, offset))).collect();
        let &(_, buffer, _) = known.first().filter(|_| known.len() >= ENOUGH)?;
        let said = self.launch.buffers[buffer].row_bytes.map(i64::from);
        // Where the launch does not say it, two chunks of neighbouring rows do.
        let from_rows = |stored: &Stored| {
            let places = || known.iter().map(|&(at, _, offset)| (stored.place(at), offset as i64));
            places().find_map(|(one, from)| {
                places().find(|(other, _)| *other == one + stored.width).map(|(_, to)| to - from)
            })
        };
        let agrees = |stored: &Stored| {
            let Some(pitch) = said.or_else(|| from_rows(stored)).filter(|pitch| *pitch > 0) else { return false };
            let begin = |&(at, _, offset): &(u32, usize, u64)| {
                let place = stored.place(at);
                offset as i64 - i64::from(place / stored.width) * pitch - i64::from(place % stored.width)
            };
            known.iter().all(|chunk| chunk.1 == buffer && begin(chunk) == begin(&known[0]))
        };
        Stored::all(d).find(agrees)
    }

    /// The launch says how long the rows of the buffer are from which an operand came.
    pub fn knows_rows_of(&self, cta: usize, d: &SharedDescriptor) -> bool {
        let known = self.source(cta, d.chunk(0, 0, false));
        known.is_none_or(|(buffer, _)| self.launch.buffers[buffer].row_bytes.is_some())
    }

    /// The launch does not say how long the rows of a buffer are from which threads copied an operand: did they store it by another swizzle than its
    /// descriptor has? Stored in the order of the buffer, it may be permuted there.
    pub fn stored_otherwise(&mut self, cta: usize, laid: &Laid) -> bool {
        let d = laid.d;
        let asked = Stored { width: d.swizzle, wide: d.wide, permuted: true, shift: 0 };
        let is = self.stored(cta, &d).is_some_and(|it| it.permuted && it != asked);
        if is {
            let line = (d.chunk(0, 0, false), "row 0 was stored here".to_string());
            let told = self.explain_stored(cta, laid, String::new(), line);
            self.findings.add(told);
        }
        is
    }

    /// An operand has lines that begin at different places of their rows, as `apart` says: why that is, as far as can be told by how threads
    /// stored the tile. `line`: where one of the lines begins, and what is said of its store.
    pub fn explain_stored(&self, cta: usize, laid: &Laid, apart: String, line: (u32, String)) -> Diagnostic {
        const RULE: &str = "Threads store a tile as the MMA's descriptor reads it: a swizzle permutes the 16-byte chunks by bits of their addresses, and \
             only the same one finds them again (PTX ISA 5.5.7, swizzling modes; 9.7.16.4.1, matrix descriptor).";
        let &Laid { which, d, site, mn_major, .. } = laid;
        let stored = if mn_major { None } else { self.stored(cta, &d) };
        let asked = Stored { width: d.swizzle, wide: d.wide, permuted: true, shift: 0 };
        let read = match d.swizzle {
            0 => "read here as a tile without a swizzle".to_string(),
            _ => format!("read here as a tile with the {}", asked.swizzle()),
        };
        let writer = self.ctas[cta].shared_shadow.writer(line.0.into());
        let writer = writer.map(|writer| self.label(writer.site, line.1));
        let finding = |title: String, rule: &str, help: String| {
            let mut diagnostic = self.problem("swizzle-mismatch", site, title, rule, help);
            diagnostic.severity = Severity::Finding;
            diagnostic.labels[0].text = read.clone();
            diagnostic
        };
        match stored {
            // The stores are what the descriptor asks for, but for where the tile begins.
            Some(it @ Stored { permuted: true, shift, .. }) if shift > 0 => {
                let (pattern, line, swizzle) = (it.lines() * LINE, (d.start - d.start % LINE) / LINE, it.swizzle());
                let begins = (line - (line + LINES - shift) % it.lines()) * LINE;
                let rule = format!(
                    "The swizzle goes by bits of the address: with a base offset of 0, the pattern of the {swizzle} begins at a multiple of \
                     {pattern} bytes (PTX ISA 9.7.16.4.1, matrix descriptor; 5.5.7, swizzling modes)."
                );
                let mut diagnostic = finding(
                    format!("the {swizzle} of a tile begins at {begins:#x}, which is no multiple of {pattern}"),
                    &rule,
                    format!(
                        "Let the tile begin at a multiple of {pattern} bytes: .align {pattern} for a variable; in dynamic shared memory, round its \
                         address up."
                    ),
                );
                diagnostic.labels[0].text =
                    format!("{which} is {read}; {} begins at {begins:#x}", self.shared_name(begins));
                diagnostic.labels.extend(writer);
                diagnostic
            }
            // The descriptor promises another one.
            Some(it @ Stored { width, permuted: true, .. }) if it != asked => {
                let (code, swizzle) = (it.code(), it.swizzle());
                let has = match d.swizzle {
                    0 => "none".to_string(),
                    _ => format!("the {}", asked.swizzle()),
                };
                let mut diagnostic = finding(
                    format!(
                        "the MMA's operand {which} was stored with the {swizzle}, and its descriptor promises {has}"
                    ),
                    RULE,
                    match d.swizzle != 0 && !self.knows_rows_of(cta, &d) {
                        // Of rows that lie one behind the other, either may be meant.
                        true => format!(
                            "Let both be the same: {}, or set bits 61 to 63 of the descriptor to {code}, the {swizzle}, and its stride offset to {} \
                             bytes.",
                            d.mode().stored_how(),
                            8 * width
                        ),
                        false => format!(
                            "Set bits 61 to 63 of the descriptor to {code}, the {swizzle}, and its stride offset to {} bytes.",
                            8 * width
                        ),
                    },
                );
                diagnostic.labels.extend(writer);
                diagnostic
            }
            Some(Stored { permuted: true, .. }) => {
                let mut diagnostic = finding(
                    apart,
                    RULE,
                    format!(
                        "The rows are stored with the swizzle that the descriptor has: check where it begins, and its stride offset (bits 32 to 45), {} \
                         bytes for rows that lie one behind the other.",
                        8 * d.swizzle
                    ),
                );
                diagnostic.labels.extend(writer);
                diagnostic
            }
            other => {
                let plain = other.is_some_and(|stored| stored.width == d.swizzle);
                let title = match plain {
                    true => format!(
                        "the MMA's operand {which} was stored without the {} that its descriptor promises",
                        asked.swizzle()
                    ),
                    false => apart,
                };
                let help = match d.swizzle {
                    0 => "Without a swizzle, store eight rows of 16 bytes one behind the other, and the next 16 bytes of those rows as far on as the \
                          leading offset says; or store with a swizzle, and name it in bits 61 to 63 of the descriptor."
                        .to_string(),
                    _ => {
                        let mut how = d.mode().stored_how().to_string();
                        how[..1].make_ascii_uppercase();
                        format!("{how}, and set bits 61 to 63 of the descriptor to {}.", asked.code())
                    }
                };
                let mut diagnostic = finding(title, RULE, help);
                // Who stores goes by the descriptor more often than the other way round.
                if let Some(writer) = writer {
                    diagnostic.labels.insert(0, writer);
                }
                diagnostic
            }
        }
    }
}
