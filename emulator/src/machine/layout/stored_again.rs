//! Boxes that are stored twice as they are, to two places, while others that threads have staged for it are never stored: a copy took its tile from the place
//! of another one.

use super::slices::Tile;
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::counted;
use crate::machine::state::ActorKind;
use crate::machine::tma::box_origin::Origin;
use crate::order::{Access, GRANULE, Stamp, Views};
use smallvec::SmallVec;

/// So many places in shared memory are remembered of a CTA.
const MOST: usize = 16;

/// A box that was stored out of shared memory.
#[derive(Clone, Copy, Debug)]
struct Stored {
    start: u32,
    bytes: u32,
    site: u32,
    to: Origin,
}

/// The boxes that were stored last, one of each place, and the first that was stored again.
#[derive(Debug, Default)]
pub struct Boxes {
    last: SmallVec<[Stored; 4]>,
    again: Option<Again>,
}

/// One box was stored, then another one, of the same bytes: where these begin, and how many they are.
#[derive(Clone, Copy, Debug)]
struct Again {
    first: Stored,
    second: Stored,
    start: u32,
    bytes: u32,
}

impl Boxes {
    /// A copy stores a box; `again`: of which nobody has written some rows, or any, since a copy read them.
    pub fn stored(&mut self, tile: &Tile, again: bool) {
        let Some(to) = tile.origin else { return };
        let new = Stored { start: tile.start, bytes: tile.rows * tile.pitch, site: tile.site, to };
        if again && self.again.is_none() {
            self.again = self.last.iter().filter(|last| last.to != to).find_map(|last| {
                let (start, bytes) = last.shared_with(&new)?;
                Some(Again { first: *last, second: new, start, bytes })
            });
        }
        if let Some(last) = self.last.iter_mut().find(|last| (last.start, last.bytes) == (new.start, new.bytes)) {
            *last = new;
        } else if self.last.len() < MOST {
            self.last.push(new);
        }
    }
}

impl Stored {
    /// The bytes of both: where they begin, and how many; `None`: there are none.
    fn shared_with(&self, other: &Stored) -> Option<(u32, u32)> {
        let (start, end) = (self.start.max(other.start), (self.start + self.bytes).min(other.start + other.bytes));
        (start < end).then(|| (start, end - start))
    }
}

impl Cluster<'_> {
    /// The cluster has ended.
    pub fn tiles_never_stored(&mut self) {
        for cta in 0..self.ctas.len() {
            let Some(Again { first, second, start, bytes }) = self.ctas[cta].staged.boxes.again else { continue };
            let Some((at, writer)) = self.staged_beside(cta, start, bytes) else { continue };
            let [place, never] = [start, at].map(|at| self.shared_place(at).to_string());
            let all = if first.start == second.start { "the tile" } else { "a part of the tile" };
            let to = |to: Origin| format!("row {}, column {}", to.at[1], to.at[0]);
            let label = |site, text: String| self.label(site, text);
            let labels: Vec<Label> = vec![
                label(
                    second.site,
                    format!("stored again here, from {} of its tensor on: nobody has written it since", to(second.to)),
                )
                .that_means(Meaning::BelongsElsewhere),
                label(first.site, format!("stored before here, from {} on", to(first.to))),
                label(
                    writer,
                    format!(
                        "{} from {never} on are stored to shared memory by the CTA's threads, here among others, and nobody reads them",
                        counted(bytes, "byte")
                    ),
                ),
            ];
            self.if_clean.push(Diagnostic {
                code: "box-mismatch",
                severity: Severity::Finding,
                title: format!("{all} in {place} is stored to two places, and another one, in {never}, to none"),
                labels,
                rule: "A bulk copy takes what lies at its address in shared memory (PTX ISA, cp.async.bulk.tensor). What threads stage there has no other way \
                       to global memory."
                    .into(),
                help: "Let the address in shared memory of each copy out of it go along with its coordinates: each part of the tile has its own place, each \
                       stage its own buffer."
                    .into(),
                count: 1,
                confirmed: None,
            });
        }
    }

    /// Where threads have written as many bytes as these, which nobody has read; and a statement that wrote them.
    fn staged_beside(&self, cta: usize, start: u32, bytes: u32) -> Option<(u32, u32)> {
        let end = (self.ctas[cta].shared.bytes.len() as u32).checked_sub(bytes)?;
        (start % bytes..=end).step_by(bytes as usize).filter(|&at| at != start).find_map(|at| {
            let first = self.stored_and_unread(cta, at)?;
            let mut granules = (at..at + bytes).step_by(GRANULE as usize);
            granules.all(|at| self.stored_and_unread(cta, at).is_some()).then_some((at, first.site))
        })
    }

    /// Who has stored a granule, if it is a thread, and if nobody has read it since.
    fn stored_and_unread(&self, cta: usize, at: u32) -> Option<Stamp> {
        let shadow = &self.ctas[cta].shared_shadow;
        let writer =
            shadow.writer(at.into()).filter(|writer| matches!(self.kind(*writer), Some(ActorKind::Warp(_))))?;
        // Nobody, who knows of nothing: every other access is one that it would race with.
        let (nobody, nothing) = (Stamp::new(u32::MAX, 1, 0, self.index), Views::default());
        let access = Access::new(nobody, &nothing);
        shadow.conflict_with(at.into(), GRANULE, &access, true, &|stamp| *stamp != writer).is_none().then_some(writer)
    }
}
