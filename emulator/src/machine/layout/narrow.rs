//! MMAs that are narrower than what was made for them: their instruction descriptor says fewer rows or columns than the tile, or the accumulator, has.

use super::boxes::{Laid, Which};
use super::slices::Tile;
use crate::machine::cluster::Cluster;
use crate::machine::mma::issued::Recent;
use crate::machine::state::Beside;
use crate::machine::tensor_memory::Halves;
use crate::program::kind::Kind;
use crate::program::op::Op;
use crate::program::wgmma::ROWS;

/// Who multiplies rows of a box: the operand, how many of its rows, and the MMA.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub which: Which,
    rows: u32,
    pub site: u32,
}

impl Taken {
    pub fn of(laid: &Laid) -> Taken {
        Taken { which: laid.which, rows: laid.rows, site: laid.site }
    }
}

pub const SAYS_N: &str = "as bits 17 to 22 of its instruction descriptor say (N / 8)";

pub fn says_m(kind: Kind) -> &'static str {
    match kind.is_scaled() {
        true => "as bits 27 and 28 of its instruction descriptor say (M / 128)",
        false => "as bits 24 to 28 of its instruction descriptor say (M / 16)",
    }
}

/// M or N of an MMA: its letter, its value, and where it is said.
struct Extent {
    letter: char,
    value: u32,
    said: &'static str,
    /// CTAs that have a part of it each.
    ctas: u32,
    /// It can be the multiples of the first, to the second (PTX ISA 9.7.16.2.1, wgmma.mma_async).
    reaches: (u32, u32),
}

impl Extent {
    /// What it would be if it took so many rows of each CTA, if that can be.
    fn for_rows(&self, rows: u32) -> Option<u32> {
        let (step, most) = self.reaches;
        Some(rows * self.ctas).filter(|value| value.is_multiple_of(step) && *value <= most)
    }
}

impl Cluster<'_> {
    /// M of an MMA, or N.
    fn extent_of(&self, site: u32, which: Which) -> Option<Extent> {
        let is_b = which == Which::B;
        let letter = if is_b { 'N' } else { 'M' };
        let op = self.kernel.code.iter().find(|inst| inst.site == site).map(|inst| &inst.op);
        if let Some(Op::Wgmma(op)) = op {
            let value = if is_b { op.n } else { ROWS };
            let reaches = if is_b { (8, 256) } else { (ROWS, ROWS) };
            return Some(Extent { letter, value, said: "as the shape in its name says", ctas: 1, reaches });
        }
        let Recent { d: (_, m, n), kind, ctas, .. } = *self.issued.by(site)?;
        let ctas = ctas.1 as u32;
        Some(match is_b {
            true => {
                let step = if kind == Kind::I8 { 16 } else { 8 };
                Extent { letter, value: n, said: SAYS_N, ctas, reaches: (step * ctas, 256) }
            }
            false => {
                let step = if kind.is_scaled() && ctas == 1 { 128 } else { 64 };
                Extent { letter, value: m, said: says_m(kind), ctas, reaches: (step * ctas, 128 * ctas) }
            }
        })
    }

    /// Nobody has read the rows of a box from this one on, all of which are no part of what an MMA takes: what is said of the MMA, and what to try.
    pub fn too_narrow(&self, tile: &Tile, row: u32) -> Option<(u32, String, String)> {
        let Taken { which, rows, site } = tile.taken.filter(|taken| taken.rows == row)?;
        let extent = self.extent_of(site, which)?;
        let Extent { letter, value, said, .. } = extent;
        let text = format!("this MMA has {letter} = {value}, {said}: of {which} it takes {rows} rows here");
        let larger = match extent.for_rows(tile.rows) {
            Some(larger) => format!("let {letter} of the MMA be {larger} ({value} now), or "),
            None => String::new(),
        };
        let help = format!(
            "If all {} rows of the tile belong to the product, {larger}let another MMA take the other rows; else load a smaller box.",
            tile.rows
        );
        Some((site, text, help))
    }

    /// A load of columns of tensor memory, of which nothing has written this one: it may be that an accumulator ends in front of it which should
    /// have it, or has other lanes of it, or that its MMA leaves lanes as they were.
    pub fn ends_in_front(&self, cta: usize, halves: Halves, (loaded, column): (u32, u32)) -> Option<Beside> {
        let last = self.issued.last_of(cta, Halves::Both, column, 1);
        if let Some((mma, lanes)) = last.map(|mma| (mma, mma.lanes_left(cta))).filter(|&(_, lanes)| lanes > 0) {
            return Some(Beside {
                mma: mma.stamp.site,
                text: format!("this MMA leaves {lanes} of the 128 lanes as they were: their bits of disable-output-lane are 1"),
                help: "A bit of disable-output-lane that is 1 keeps an MMA from writing its lane (PTX ISA, tcgen05.mma): make those of the lanes that are \
                       read 0, or leave the operand out."
                    .into(),
                title: None,
            });
        }
        let (mma, which, text, what) = match last {
            Some(mma) if mma.layout.halves() != Halves::Both => {
                let (_, m, _) = mma.d;
                let lanes = if mma.layout.halves() == Halves::Lower { "0 to 15" } else { "16 to 31" };
                (mma, Which::A, format!("M = {m}, {}: it writes lanes {lanes} of each 32", says_m(mma.kind)), "lanes")
            }
            Some(_) => return None,
            None => {
                let mma = self.issued.ends_before(cta, halves, column)?;
                let (first, m, n) = mma.d;
                let last = first + mma.columns - 1;
                // A pair with 64 rows in each CTA puts half of its columns in the other lanes.
                let halved = mma.columns < n && column < first + n;
                if loaded > last && !halved && !(column == last + 1 && self.has_more_rows(cta, mma)) {
                    return None;
                }
                match halved {
                    true => {
                        let text = format!(
                            "M = {m}, {}: of its {n} columns it writes half, to columns {first} to {last}",
                            says_m(mma.kind)
                        );
                        (mma, Which::A, text, "columns")
                    }
                    false => {
                        (mma, Which::B, format!("N = {n}, {SAYS_N}: it writes columns {first} to {last}"), "columns")
                    }
                }
            }
        };
        let (letter, value, more) = match which {
            Which::B => ('N', mma.d.2, self.has_more_rows(cta, mma)),
            _ => ('M', mma.d.1, self.has_more_rows_of_a(cta, mma)),
        };
        let title = format!(
            "the instruction descriptor of an MMA says {letter} = {value}, although the tile of {which} has more rows, and {what} are read that it leaves out"
        );
        Some(Beside {
            mma: mma.stamp.site,
            text: format!("this MMA has {text}"),
            help: format!(
                "If the tile is larger, set {letter} in the instruction descriptor to the tile's: its {letter} is {value} now; or let another MMA write the \
                 other {what}. Else read no other {what} than are written."
            ),
            title: more.then_some(title),
        })
    }

    /// The box in which A begins has more rows than an MMA has taken of it.
    fn has_more_rows_of_a(&self, cta: usize, mma: &Recent) -> bool {
        let (_, m, _) = mma.d;
        let tile = self.ctas[cta].loaded.tile(mma.operands.0).filter(|_| mma.brought[0].is_some());
        tile.is_some_and(|tile| m / (mma.ctas.1 as u32) < tile.rows)
    }

    /// What was loaded or copied for B has more rows than an MMA has taken of it, and no other MMA has begun with those.
    fn has_more_rows(&self, cta: usize, mma: &Recent) -> bool {
        let (d, mn_major) = mma.b;
        if mn_major || d.swizzle == 0 {
            return false;
        }
        let rows = mma.d.2 / mma.ctas.1 as u32;
        let next = d.start + rows / 8 * d.stride;
        if self.issued.of_cta(cta).any(|other| (next..next + d.swizzle).contains(&other.b.0.start)) {
            return false;
        }
        if let Some(tile) = self.ctas[cta].loaded.tile(d.start) {
            return tile.swizzle == d.mode() && tile.place(d.chunk(0, 0, false)).0 + rows < tile.rows;
        }
        let source = |row: u32| self.source(cta, d.chunk(row, 0, false));
        let (Some((buffer, last)), Some(behind)) = (source(rows - 1), source(rows)) else { return false };
        let Some(first) = source(0).filter(|first| first.0 == buffer) else { return false };
        self.row_width(cta, &d, first.0).is_some_and(|(width, _)| behind == (buffer, last + width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_mma_is_larger_than_there_are() {
        let extent = |ctas, reaches| Extent { letter: 'N', value: 64, said: SAYS_N, ctas, reaches };
        assert_eq!(extent(1, (ROWS, ROWS)).for_rows(128), None, "wgmma has 64 rows");
        assert_eq!([128, 256].map(|rows| extent(1, (64, 128)).for_rows(rows)), [Some(128), None]);
        assert_eq!([128, 256].map(|rows| extent(2, (16, 256)).for_rows(rows)), [Some(256), None]);
        assert_eq!(extent(1, (8, 256)).for_rows(100), None);
    }
}
