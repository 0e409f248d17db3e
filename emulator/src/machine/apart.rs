//! Operands of an MMA that share bytes since one of them begins in the other's tile.

use super::boxes::{Laid, START_RULE};
use super::cluster::Cluster;
use crate::diagnostic::{Diagnostic, Severity};

impl Cluster<'_> {
    /// A and B share bytes, and the rows of both lie one behind the other: it is where they begin. The one that does not lie in the tile in which it
    /// begins is the wrong one, if that is known.
    pub fn begins_in_the_others_tile(&self, cta: usize, operands: [Laid; 2], title: String) -> Diagnostic {
        let [a, b] = operands;
        let whole = operands.map(|laid| self.lies(cta, &laid, laid.d.start).map(|(whole, _)| whole));
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
        diagnostic.severity = Severity::Finding;
        let begins = |laid: &Laid| {
            let bytes = laid.rows * laid.d.swizzle;
            format!(
                "{} begins in {} and takes {} rows, {bytes} bytes",
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
}
