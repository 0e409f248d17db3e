//! An MMA whose operand in tensor memory is stored by warps, and what lacks where the two are not ordered: the MMA waits for nothing at which those arrive
//! behind the store, or the store does not wait for the MMA before.

use super::drafts::Draft;
use super::names::Name;
use crate::diagnostic::Label;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::order::Stamp;

const RULE: &str = "What tcgen05.st writes may be read by an MMA only after tcgen05.wait::st and synchronisation with the thread that issues the MMA, and be overwritten \
                    only after a tcgen05.commit behind the MMA has arrived at an mbarrier and the warp has waited for that phase (PTX ISA 9.7.16.6.2, 9.7.16.6.4).";

impl Cluster<'_> {
    /// An MMA reads what a warp stores to tensor memory, and nothing orders the two.
    pub fn explain_stored_operand(&self, race: &Race, name: &Name) -> Option<Draft> {
        let (first, second) = (race.conflict.first, race.second);
        let (mma, store, stored_first) = match (self.kind(first)?, self.kind(second)?) {
            (ActorKind::TensorStores(_), ActorKind::Mmas { .. }) if !race.conflict.second_writes => {
                (second, first, true)
            }
            (ActorKind::Mmas { .. }, ActorKind::TensorStores(_)) if !race.conflict.first_writes => {
                (first, second, false)
            }
            _ => return None,
        };
        let (told, help, not_awaited) =
            self.store_not_awaited(mma, store).map(|(label, help)| (label, help, true)).or_else(|| {
                let (label, help) = self.own_commit(mma, &race.passed).filter(|_| !stored_first)?;
                Some((label, help, false))
            })?;
        let who = self.who(store);
        let (title, reads) = match not_awaited {
            true => (format!("the MMA may read {{}} before {who} has stored it"), "the tensor core reads it here"),
            false => (
                format!("{who} stores to {{}} while an MMA may still be reading it"),
                "the tensor core reads it here, for A",
            ),
        };
        let labels = [self.label(mma.site, reads), self.label(store.site, format!("{who} stores it here")), told];
        Some(Draft::of(race, Some(name))("race-tensor", title, labels.into(), RULE, help))
    }

    /// Who stores arrives somewhere behind the store, and the MMA's thread never waits there.
    fn store_not_awaited(&self, mma: Stamp, store: Stamp) -> Option<(Label, String)> {
        let Some(ActorKind::Mmas { warp, .. }) = self.kind(mma) else { return None };
        let Some(ActorKind::TensorStores(by)) = self.kind(store) else { return None };
        let (multiplies, stores) = (warp as usize, by as usize);
        let waits = |w: usize, n: u32| self.warps[w].passed.iter().any(|passed| passed.barrier == n);
        let mut all = (0..self.barriers.len() as u32).filter(|&n| self.barriers[n as usize].valid);
        let (barrier, arrival) = all.find_map(|n| {
            let b = &self.barriers[n as usize];
            // Of those that somebody else waits for it is known what they tell.
            if (0..self.warps.len()).any(|w| waits(w, n)) || b.came.iter().any(|came| came.bytes) {
                return None;
            }
            let mut came = b.came.iter();
            let behind = |site: u32| !self.is_commit(site) && self.comes_behind(site, store.site);
            came.find(|came| came.warp == stores && behind(came.site)).map(|came| (n, came.site))
        })?;
        if stores == multiplies {
            return None;
        }
        let (name, who, by) = (self.barrier_name(barrier), self.warp_name(multiplies), self.warp_name(stores));
        let label =
            self.label(arrival, format!("{by} arrives at {name} here, behind the store; {who} never waits for that"));
        Some((
            label,
            format!(
                "Let {who} wait for {name} before it issues the MMA: mbarrier.try_wait.parity, with parity 0 in the first round."
            ),
        ))
    }
}
