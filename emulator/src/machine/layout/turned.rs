//! Operands that an MMA reads along the other side than the one along which they were stored: the bit for the major-ness of A or of B is wrong.

use super::boxes::{Laid, Which};
use super::copied::{CHUNK, Place};
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::mma::matrix_descriptor::Elements;
use crate::machine::tensor_memory::SharedDescriptor;
use crate::program::op::Op;

const RULE: &str = "Bit 15 of the instruction descriptor says of A, and bit 16 of B, along what the rows of its tile go: 0 along K (K-major), 1 along M \
                    or N (PTX ISA 9.7.16.4.2, instruction descriptor; 9.7.16.3.3, canonical layouts).";
const WGMMA_RULE: &str = "imm-trans-a says of A, and imm-trans-b of B, along what the rows of its tile go: 0 along K (K-major), 1 along M or N (PTX ISA, \
                          wgmma.mma_async).";

impl Cluster<'_> {
    /// Whether an operand that is read MN-major would be, K-major by the same descriptor, rows of what lies there: of the box that was loaded, or
    /// of what threads copied.
    pub fn is_turned(&self, cta: usize, laid: &Laid) -> bool {
        let Laid { d, rows, mn_major, .. } = *laid;
        let column = d.start % d.swizzle.max(1);
        if !mn_major || d.swizzle == 0 || d.stride != 8 * d.swizzle || column + 2 * CHUNK as u32 > d.swizzle {
            return false;
        }
        let begin = d.start - column;
        match self.ctas[cta].loaded.tile(begin) {
            Some(tile) => {
                let row = begin.saturating_sub(tile.start) / d.swizzle;
                tile.swizzle == d.mode() && tile.pitch == d.swizzle && row + rows <= tile.rows
            }
            None => self.are_rows(cta, &d, rows),
        }
    }

    /// Whether threads copied so many rows of an operand, K-major, from places at equal distances, of each two chunks that lie side by side. Of some it
    /// may not be known.
    fn are_rows(&self, cta: usize, d: &SharedDescriptor, rows: u32) -> bool {
        let few = d.elements.of_chunk();
        let places = (0..rows).map(|row| [0, few].map(|k| self.source(cta, d.chunk(row, k, false))));
        let known: Vec<(u64, [Option<Place>; 2])> = (0..).zip(places).collect();
        let mut firsts = known.iter().filter_map(|&(row, [first, _])| Some((row, first?)));
        let (Some((row, (buffer, from))), Some((next, (_, to)))) = (firsts.next(), firsts.next()) else { return false };
        let pitch = to.saturating_sub(from) / (next - row);
        let fits = |n: u64, half: u64, at: Option<Place>| {
            at.is_none_or(|at| at == (buffer, from + (n - row.min(n)) * pitch + half * CHUNK as u64))
        };
        let all = known.iter().all(|&(n, [one, other])| fits(n, 0, one) && fits(n, 1, other));
        let count = known.iter().filter(|(_, [one, other])| one.is_some() && other.is_some()).count();
        all && pitch >= 2 * CHUNK as u64 && 2 * count > rows as usize
    }

    /// The side of an operand that is not K; what says along which of the two the rows of its tile go, and the rule.
    fn major_of(&self, which: Which, site: u32) -> (&'static str, &'static str, &'static str) {
        let hopper = self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::Wgmma(_)));
        let (rule, [of_a, of_b]) = match hopper {
            true => (WGMMA_RULE, ["imm-trans-a", "imm-trans-b"]),
            false => (RULE, ["bit 15 of the instruction descriptor", "bit 16 of the instruction descriptor"]),
        };
        if which == Which::A { ("M", of_a, rule) } else { ("N", of_b, rule) }
    }

    /// What to do about an operand that is read K-major, and whose rows are depths.
    fn cure_of_depths(&self, laid: &Laid) -> String {
        let Laid { which, d, site, .. } = *laid;
        let (_, what, rule) = self.major_of(which, site);
        // Of Hopper, and of elements that are packed or padded (PTX ISA, wgmma.mma_async; 9.7.16.4.2).
        let never = if rule == WGMMA_RULE {
            d.elements != Elements::B16
        } else {
            d.elements.data != 16 || d.elements.log_bits < 3
        };
        match never {
            true => format!("load {which} with rows along K: elements of this type cannot be read MN-major"),
            false => format!(
                "set {what} to 1 (MN-major), and let stride and leading offset lead as such a tile lies (PTX ISA 9.7.16.3.3)"
            ),
        }
    }

    /// What to try where the rows of an operand's tile are known to be depths.
    pub fn turn(&self, laid: &Laid) -> String {
        let (side, ..) = self.major_of(laid.which, laid.site);
        format!(
            "The rows of the tile of {} are depths, and go along {side}: {}.",
            laid.which,
            self.cure_of_depths(laid)
        )
    }

    /// The same as a guess, where fewer rows lie there than the operand has, each as long as a part of its side.
    pub fn may_be_turned(&self, cta: usize, laid: &Laid) -> Option<String> {
        let Laid { which, d, rows, mn_major, .. } = *laid;
        let tile = self.ctas[cta].loaded.tile(d.start).filter(|tile| !mn_major && tile.swizzle == d.mode())?;
        let along = (tile.pitch * 8) >> d.elements.log_bits;
        let fewer = tile.rows < rows && along != 0 && rows.is_multiple_of(along) && tile.rows >= d.elements.depth();
        fewer.then(|| {
            format!(
                "The box that was loaded there has {} rows of {along} elements, and {which} takes {rows} rows. If they are depths: {}.",
                tile.rows,
                self.cure_of_depths(laid)
            )
        })
    }

    /// What is said of an operand that is read K-major, and whose rows are depths: this copy has brought them.
    pub fn stored_turned(&self, cta: usize, laid: &Laid, load: u32) -> Diagnostic {
        let Laid { which, d, site, .. } = *laid;
        let (side, what, rule) = self.major_of(which, site);
        let rows = self.ctas[cta].loaded.tile(d.start).map_or(0, |tile| tile.rows);
        let mut diagnostic = self.problem(
            "depth-mismatch",
            site,
            format!(
                "the MMA reads {which} as a tile whose rows go along K, and those of {} go along {side}",
                self.shared_name(d.start)
            ),
            rule,
            self.turn(laid),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("{what} is 0: K-major");
        diagnostic
            .labels
            .push(self.label(load, format!("the box of {which} is loaded here: its {rows} rows are depths")));
        diagnostic
    }

    /// What is said of such an operand.
    pub fn read_turned(&self, laid: &Laid) -> Diagnostic {
        let Laid { which, site, rows, .. } = *laid;
        let (side, what, rule) = self.major_of(which, site);
        let mut diagnostic = self.problem(
            "instruction-descriptor",
            site,
            format!("the MMA reads {which} as a tile whose rows go along {side}, and those of {} go along K", self.shared_name(laid.d.start)),
            rule,
            format!("Set {what} to 0: read K-major by the same matrix descriptor, {which} is the {rows} rows that lie there."),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("{what} is 1: MN-major");
        diagnostic
    }
}
