//! Operands of an MMA that share bytes since one of them begins in the other's tile.

use super::boxes::{Laid, START_RULE, Which};
use super::slices::Tile;
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;

impl Cluster<'_> {
    /// A and B share bytes, and the rows of both lie one behind the other: it is where they begin. The one that does not lie in the tile in which it
    /// begins is the wrong one, if that is known.
    pub fn begins_in_the_others_tile(&self, cta: usize, operands: [Laid; 2], title: String) -> Diagnostic {
        let [a, b] = operands;
        if let Some(short) = operands.iter().find_map(|laid| self.has_too_many_rows(cta, laid)) {
            return short;
        }
        // Parts of one box may be meant for both, and so may rows of a tensor that several boxes have brought.
        let boxes = operands.map(|laid| self.ctas[cta].loaded.tile(laid.d.start - laid.d.start % laid.d.swizzle));
        let of_one = matches!(boxes, [Some(one), Some(other)] if one.start == other.start || one.lies_beside(other));
        let whole = operands.map(|laid| {
            let goes_on = self.goes_on_in_boxes(cta, &laid);
            self.lies(cta, &laid, laid.d.start).map(|(whole, _)| whole || goes_on)
        });
        let wrong = match whole {
            [Some(true), Some(false)] => vec![b],
            [Some(false), Some(true)] => vec![a],
            _ => vec![a, b],
        };
        let names = wrong.iter().map(|laid| laid.which.to_string()).collect::<Vec<_>>().join(" and ");
        let (begin, each) = match wrong[..] {
            [_] => ("begin in the first row of its tile", "its descriptor"),
            _ => ("begin in tiles of their own", "their descriptors"),
        };
        let mut diagnostic = self.problem(
            "operand-overlap",
            a.site,
            title,
            START_RULE,
            format!(
                "Let {names} {begin}: check the start address of {each} (bits 0 to 13: the address divided by 16), and by how much it goes on along K."
            ),
        );
        let windows = of_one && whole == [Some(true); 2];
        diagnostic.severity = if windows { Severity::Note } else { Severity::Finding };
        let begins = |laid: &Laid| {
            let bytes = laid.rows * laid.d.swizzle;
            format!(
                "{} begins in {} and has {} rows, over {bytes} bytes",
                laid.which,
                self.shared_name_exact(laid.d.start),
                laid.rows
            )
        };
        diagnostic.labels[0].text = format!("{}; {}", begins(&a), begins(&b));
        for laid in wrong.iter().filter(|_| wrong.len() == 1) {
            let line = laid.d.start - laid.d.start % laid.d.swizzle;
            if let Some(tile) = self.ctas[cta].loaded.tile(line) {
                let row = line.saturating_sub(tile.start) / laid.d.swizzle;
                let text =
                    format!("{} begins in row {row} of the {} of a box that is loaded here", laid.which, tile.rows);
                diagnostic.labels.push(self.label(tile.site, text));
            }
        }
        diagnostic
    }

    /// Whether the rows of an operand that the box in which it begins does not have are the next ones of the tensor, in the boxes behind.
    fn goes_on_in_boxes(&self, cta: usize, laid: &Laid) -> bool {
        let Laid { d, rows, .. } = *laid;
        let (mut at, end) = (d.start - d.start % d.swizzle, d.start - d.start % d.swizzle + rows * d.swizzle);
        let tile = |at: u32| self.ctas[cta].loaded.tile(at).filter(|tile| tile.pitch == d.swizzle && tile.rows > 0);
        let Some(first) = tile(at) else { return false };
        while at < end {
            let Some(next) = tile(at).filter(|next| next.start == first.start || first.lies_beside(next)) else {
                return false;
            };
            at = next.start + next.bytes;
        }
        true
    }

    /// An operand begins with its box and has more rows than that, and what follows is no box of the same copy.
    fn has_too_many_rows(&self, cta: usize, laid: &Laid) -> Option<Diagnostic> {
        let Laid { which, d, rows, site, .. } = *laid;
        let loaded = &self.ctas[cta].loaded;
        let tile = loaded.tile(d.start - d.start % d.swizzle)?;
        let goes_on = |next: &&Tile| next.site == tile.site || tile.lies_beside(next);
        let next = loaded.tile(tile.start + tile.bytes).filter(goes_on);
        if tile.rows == 0 || rows <= tile.rows || d.start - tile.start >= d.swizzle || next.is_some() {
            return None;
        }
        let (letter, bits) = if which == Which::A { ('M', "24 to 28") } else { ('N', "17 to 22") };
        let mut diagnostic = self.problem(
            "operand-overlap",
            site,
            format!("{which} has {rows} rows, and the box that is loaded for it {}: the rest lies in the other operand", tile.rows),
            START_RULE,
            format!(
                "Load {rows} rows for {which}, or give the MMA another {letter}: bits {bits} of the instruction descriptor say it, for two CTAs that of both."
            ),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.push(self.label(tile.site, format!("a box of {} rows is loaded here", tile.rows)));
        Some(diagnostic)
    }
}
