//! MMAs that are narrower than what was made for them: their instruction descriptor says fewer rows or columns than the tile, or the accumulator, has.

use super::boxes::Laid;
use super::cluster::Cluster;
use super::issued::Recent;
use super::slices::Tile;
use super::state::Beside;
use super::tensor::Halves;
use crate::program::kind::Kind;
use crate::program::op::Op;
use crate::program::wgmma::ROWS;

/// Who multiplies rows of a box: the operand, how many of its rows, and the MMA.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    is_b: bool,
    rows: u32,
    site: u32,
}

impl Taken {
    pub fn of(laid: &Laid) -> Taken {
        Taken { is_b: laid.name == "B", rows: laid.rows, site: laid.site }
    }
}

const SAYS_N: &str = "as bits 17 to 22 of its instruction descriptor say (N / 8)";

fn says_m(kind: Kind) -> &'static str {
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
}

impl Cluster<'_> {
    /// M of an MMA, or N.
    fn extent_of(&self, site: u32, is_b: bool) -> Option<Extent> {
        let letter = if is_b { 'N' } else { 'M' };
        let op = self.kernel.code.iter().find(|inst| inst.site == site).map(|inst| &inst.op);
        if let Some(Op::Wgmma(op)) = op {
            let value = if is_b { op.n } else { ROWS };
            return Some(Extent { letter, value, said: "as the shape in its name says" });
        }
        let Recent { d: (_, m, n), kind, .. } = *self.issued.by(site)?;
        Some(Extent { letter, value: if is_b { n } else { m }, said: if is_b { SAYS_N } else { says_m(kind) } })
    }

    /// Nobody has read the rows of a box from this one on, all of which are no part of what an MMA takes: what is said of the MMA, and what to try.
    pub fn too_narrow(&self, tile: &Tile, row: u32) -> Option<(u32, String, String)> {
        let Taken { is_b, rows, site } = tile.taken.filter(|taken| taken.rows == row)?;
        let Extent { letter, value, said } = self.extent_of(site, is_b)?;
        let name = if is_b { "B" } else { "A" };
        let text = format!("this MMA has {letter} = {value}, {said}: of {name} it takes {rows} rows here");
        let help = format!(
            "If all {} rows of the tile belong to the product, let {letter} of the MMA be so large ({value} now), or let another MMA take the other \
             rows; else load a smaller box.",
            tile.rows
        );
        Some((site, text, help))
    }

    /// Nothing has written this column of tensor memory, and an accumulator ends in front of it; or it has other lanes of the column.
    pub fn ends_in_front(&self, cta: usize, halves: Halves, column: u32) -> Option<Beside> {
        let (mma, is_b, text) = match self.issued.last_of(cta, Halves::Both, column, 1) {
            Some(mma) if mma.layout.halves() != Halves::Both => {
                let (_, m, _) = mma.d;
                let lanes = if mma.layout.halves() == Halves::Lower { "0 to 15" } else { "16 to 31" };
                (mma, false, format!("M = {m}, {}: it writes lanes {lanes} of each 32", says_m(mma.kind)))
            }
            Some(_) => return None,
            None => {
                let mma = self.issued.ends_before(cta, halves, column)?;
                let (first, _, n) = mma.d;
                let last = first + mma.columns - 1;
                (mma, true, format!("N = {n}, {SAYS_N}: it writes columns {first} to {last}"))
            }
        };
        let (letter, value, what) = if is_b { ('N', mma.d.2, "columns") } else { ('M', mma.d.1, "lanes") };
        Some(Beside {
            mma: mma.stamp.site,
            text: format!("this MMA has {text}"),
            help: format!(
                "If the tile is larger, let the instruction descriptor say so: its {letter} is {value}. Else read no other {what} than the MMA writes."
            ),
        })
    }
}
