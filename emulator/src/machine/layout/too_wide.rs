//! MMAs that are wider than what was made for them: their instruction descriptor says more rows than the tile of an operand has, or a descriptor goes on along K
//! by more than an MMA takes. Either may be meant: it is told in place of what it leads to.

use super::boxes::{Laid, START_RULE, Which};
use super::narrow::{SAYS_N, says_m};
use super::slices::Tile;
use crate::diagnostic::Diagnostic;
use crate::machine::cluster::Cluster;
use crate::machine::mma::instruction_descriptor::InstructionDescriptor;
use crate::machine::state::Cta;

/// Bytes of each row that an MMA takes.
const DEPTH: u32 = 32;

pub const RULE: &str = "Bits 17 to 22 of the instruction descriptor are N / 8, those above them M / 16, or M / 128 (PTX ISA 9.7.16.4.2): an MMA takes so many rows of \
                        its operands, and writes so much of its accumulator.";

/// Rows of an operand that lie one behind the other where it begins.
struct There {
    rows: u32,
    /// What brought them: a copy, or a store of threads.
    load: u32,
    by_threads: bool,
    /// Rows of something else lie behind them.
    others_behind: bool,
}

impl Cluster<'_> {
    /// An operand takes more rows than lie in boxes of its tensor there: what is said of that, and whether something else lies behind them.
    pub fn wider_than_its_boxes(
        &self,
        cta: usize,
        (i, ctas): (&InstructionDescriptor, usize),
        laid: &Laid,
    ) -> Option<(Diagnostic, bool)> {
        let there = self.boxes_there(cta, laid)?;
        let diagnostic = match self.is_of_the_other(cta, laid) {
            true => self.says_of_the_other(laid, &there),
            false => self.says_too_many((i, ctas), laid, &there),
        };
        Some((diagnostic, there.others_behind))
    }

    /// The same of what threads have copied.
    pub fn wider_than_what_was_copied(
        &self,
        cta: usize,
        (i, ctas): (&InstructionDescriptor, usize),
        laid: &Laid,
    ) -> Option<Diagnostic> {
        let d = laid.d;
        let source = |row: u32| self.source(cta, d.chunk(row, 0, false));
        let (buffer, first) = source(0).filter(|_| laid.goes_straight_on())?;
        let (width, _) = self.row_width(cta, &d, buffer)?;
        let follows = |row: &u32| source(*row) == Some((buffer, first + u64::from(*row) * width));
        let rows = (0..laid.rows).take_while(follows).count() as u32;
        let load = self.ctas[cta].shared_shadow.writer(d.chunk(0, 0, false).into())?.site;
        let there = There { rows, load, by_threads: true, others_behind: false };
        (rows >= 8 && rows.is_multiple_of(8) && rows < laid.rows).then(|| self.says_too_many((i, ctas), laid, &there))
    }

    fn boxes_there(&self, cta: usize, laid: &Laid) -> Option<There> {
        let Laid { d, rows, .. } = *laid;
        let loaded = &self.ctas[cta].loaded;
        let at = d.start.checked_sub(d.start % d.swizzle.max(1))?;
        let tile = loaded.tile(at).filter(|tile| tile.pitch == d.swizzle)?;
        let lines = |tile: &Tile| tile.bytes / tile.pitch;
        let mut there = There { rows: lines(tile), load: tile.site, by_threads: false, others_behind: false };
        if there.rows >= rows || at != tile.start || !laid.goes_straight_on() || tile.swizzle != d.mode() {
            return None;
        }
        let of = tile.origin?;
        let mut end = tile.start + tile.bytes;
        while there.rows < rows {
            let Some(next) = loaded.tile(end) else { break };
            let goes_on = next.start == end
                && next.pitch == tile.pitch
                && next
                    .origin
                    .is_some_and(|other| (other.address, other.plane, other.at[0]) == (of.address, of.plane, of.at[0]));
            if !goes_on {
                if self.goes_on_with_other_depths(cta, tile, rows) {
                    return None;
                }
                there.others_behind = true;
                break;
            }
            there.rows += lines(next);
            end = next.start + next.bytes;
        }
        (there.rows < rows).then_some(there)
    }

    /// Whether an operand begins in a box of the tensor of which the same statement took its other operand before, and this one from elsewhere.
    fn is_of_the_other(&self, cta: usize, laid: &Laid) -> bool {
        let tensor = |at: u32| self.ctas[cta].loaded.tile(at)?.origin.map(|of| of.address);
        let Some(before) = self.issued.by(laid.site) else { return false };
        let (own, other) = match laid.which {
            Which::A => before.operands,
            _ => (before.operands.1, before.operands.0),
        };
        let here = tensor(laid.d.start);
        here.is_some() && here == tensor(other) && tensor(own).is_some_and(|own| Some(own) != here)
    }

    /// Whether the operand is made of whole boxes of one tensor that one phase brings, of the same rows and other depths: an MMA may sum several parts
    /// of K side by side. The last one says so: one between may lie elsewhere by mistake.
    fn goes_on_with_other_depths(&self, cta: usize, first: &Tile, rows: u32) -> bool {
        let Cta { loaded, shared_shadow, .. } = &self.ctas[cta];
        let phase = |at: u32| shared_shadow.writer(at.into()).map(|stamp| (stamp.actor, stamp.epoch));
        let what = |tile: &Tile| {
            let of = tile.origin?;
            Some((of.address, of.plane, of.at[1], tile.bytes, tile.pitch, tile.swizzle, phase(tile.start)?))
        };
        let each = first.bytes / first.pitch;
        let is_like_first = |n| {
            let at = first.start + n * first.bytes;
            loaded.tile(at).is_some_and(|tile| tile.start == at && what(tile) == what(first))
        };
        what(first).is_some() && rows.is_multiple_of(each) && is_like_first(rows / each - 1)
    }

    fn says_of_the_other(&self, laid: &Laid, there: &There) -> Diagnostic {
        let (which, other) = match laid.which {
            Which::A => (laid.which, Which::B),
            which => (which, Which::A),
        };
        let title = format!("the descriptor of {which} begins in a tile of {other}");
        let help = format!(
            "Let the descriptor of {which} begin in the tiles that are loaded for {which}: check by how many bytes it goes on from stage to stage, and how \
             many stages there are."
        );
        let mut diagnostic = self.problem("box-mismatch", laid.site, title, START_RULE, help);
        diagnostic.labels[0].text = format!("this MMA takes {} rows from there for {which}", laid.rows);
        diagnostic.labels.push(self.label(there.load, format!("{} rows of {other} are loaded here", there.rows)));
        diagnostic
    }

    fn says_too_many(&self, (i, ctas): (&InstructionDescriptor, usize), laid: &Laid, there: &There) -> Diagnostic {
        let Laid { which, rows, site, .. } = *laid;
        let (letter, value, said) = match which {
            Which::B => ('N', i.n, SAYS_N),
            _ => ('M', i.m, says_m(i.kind)),
        };
        let fits = there.rows * ctas as u32;
        let each = if ctas > 1 { " in each CTA" } else { "" };
        let mut diagnostic = self.problem(
            "instruction-descriptor",
            site,
            format!(
                "the instruction descriptor of an MMA says {letter} = {value}, although the tile of {which} has {} rows{each}",
                there.rows
            ),
            RULE,
            format!("Let {letter} of the MMA be {fits} ({value} now), or let the tile of {which} have {rows} rows{each}."),
        );
        diagnostic.labels[0].text =
            format!("this MMA has {letter} = {value}, {said}: of {which} it takes {rows} rows{each}");
        let text = match there.by_threads {
            true => format!("threads store the {} rows of {which} here", there.rows),
            false => format!("the rows of {which} are loaded here, {}", there.rows),
        };
        diagnostic.labels.push(self.label(there.load, text));
        diagnostic
    }

    /// An operand reaches beyond shared memory, and its descriptor has gone on since the MMA before by more than that has taken of a row.
    pub fn steps_too_far(&self, cta: usize, laid: &Laid) -> Option<Diagnostic> {
        let Laid { which, d, site, .. } = *laid;
        let before = self.issued.of_cta(cta).last().filter(|_| laid.goes_straight_on())?;
        let from = if which == Which::A { before.operands.0 } else { before.operands.1 };
        let step = d.start.checked_sub(from)?;
        if step <= DEPTH || step >= d.pattern() * d.swizzle {
            return None;
        }
        let mut diagnostic = self.problem(
            "box-mismatch",
            site,
            format!("the descriptor of {which} goes on by {step} bytes from one MMA to the next, which takes {DEPTH} bytes of each row"),
            START_RULE,
            format!(
                "Let the descriptors of A and B go on by {DEPTH} bytes for each MMA along K, 2 in their start addresses (bits 0 to 13, in units of 16 bytes)."
            ),
        );
        diagnostic.labels[0].text = format!(
            "{which} begins {step} bytes behind the one of the MMA before, and its last rows lie beyond shared memory"
        );
        if before.stamp.site != site {
            diagnostic.labels.push(self.label(before.stamp.site, "the MMA before"));
        }
        Some(diagnostic)
    }
}
