//! Tiles that threads read to add them to a product, as an epilogue does with C: 16 bytes a lane, of a row each, by another rule than the copy's that brought them.

use super::drawn_up::{By, in_columns, places_in};
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::memory::resolve::Target;
use crate::tensor_map::Swizzle;

const RULE: &str = "A copy with a swizzle puts the 16-byte chunks of a row where the swizzle says, by bits of their addresses (PTX ISA 5.5.7, swizzling modes). What \
                    lanes add to one column of a product, each in its row, is of one column, as a rule: here they read several.";

impl Cluster<'_> {
    /// Lanes of a warp load 16 bytes each.
    pub fn check_added(&mut self, w: usize, site: u32, targets: &[(usize, Target)]) {
        let shared = matches!(targets.first(), Some((_, Target::Shared(..))));
        if !shared || !self.kernel.multiplies {
            return;
        }
        if !self.kernel.is_added_to_columns(site) || !self.added.insert(site) {
            return;
        }
        let cta = self.warps[w].cta;
        let Some(places) = places_in(cta, targets) else { return };
        let Some(tile) = places.first().and_then(|&at| self.ctas[cta].loaded.tile(at)).copied() else { return };
        let inside = places.iter().all(|at| (tile.start..tile.start + tile.bytes).contains(at));
        if !inside || tile.rows == 0 || in_columns(&places, &tile, By::Swizzle(tile.swizzle)) != Some(false) {
            return;
        }
        let mut others = By::all(&tile);
        let Some(By::Swizzle(other)) = others.find(|by| in_columns(&places, &tile, *by) == Some(true)) else { return };
        let (at, copy) = (self.shared_name(tile.start), tile.swizzle.called());
        let help = match other {
            Swizzle::None => {
                let how = tile.swizzle.stored_how().replacen("store", "read", 1);
                format!("Let threads {how}; or give the tensor map no swizzle.")
            }
            _ => format!("Give the tensor map {}, or read as its own asks for.", other.called()),
        };
        let title =
            format!("threads read the tile in {at} with {}, the copy has brought it with {copy}", other.called());
        let mut diagnostic = self.problem("swizzle-mismatch", site, title, RULE, help);
        diagnostic.severity = Severity::Note;
        diagnostic.labels[0].text = "rows of the tile are read here, to be added to a product".into();
        diagnostic.labels.push(self.label(tile.site, format!("brought here with {copy}")));
        self.findings.add(diagnostic);
    }
}
