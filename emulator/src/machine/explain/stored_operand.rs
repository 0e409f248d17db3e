//! An MMA whose operand in tensor memory is stored by warps, and what lacks where the two are not ordered: the MMA waits for nothing at which those arrive
//! behind the store, or the store does not wait for the MMA before.

use super::drafts::Draft;
use super::names::{Name, counted};
use crate::diagnostic::{Label, Meaning};
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::machine::warp::State;
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
        let too_few = || self.store_counted_too_few(mma, store).filter(|_| stored_first);
        let (told, help, not_awaited) =
            self.store_not_awaited(mma, store).or_else(too_few).map(|(label, help)| (label, help, true)).or_else(
                || {
                    let (label, help) = self.own_commit(mma, &race.passed).filter(|_| !stored_first)?;
                    Some((label, help, false))
                },
            )?;
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

    /// The arrival of a warp at an mbarrier behind its store.
    fn told_behind(&self, n: u32, stores: usize, store: Stamp) -> Option<u32> {
        let mut came = self.barriers[n as usize].came.iter();
        let behind = |site: u32| !self.is_commit(site) && self.comes_behind(site, store.site);
        came.find(|came| came.warp == stores && behind(came.site)).map(|came| came.site)
    }

    /// The MMA's thread waits where the warp arrives behind its store, and there are more phases than it waits for: each is complete before all have stored.
    fn store_counted_too_few(&self, mma: Stamp, store: Stamp) -> Option<(Label, String)> {
        let Some(ActorKind::Mmas { warp, .. }) = self.kind(mma) else { return None };
        let Some(ActorKind::TensorStores(stores)) = self.kind(store) else { return None };
        let multiplies = warp as usize;
        let mut waited = self.warps[multiplies].passed.iter().filter(|passed| passed.fresh && !passed.lost);
        let barrier = waited.find_map(|passed| {
            let b = &self.barriers[passed.barrier as usize];
            let told = b.valid && self.told_behind(passed.barrier, stores as usize, store).is_some();
            let several = self.warps_that_arrive(b) > 1;
            (told && several && self.has_more_phases_than_waits(passed.barrier, multiplies)).then_some(passed.barrier)
        })?;
        let (name, b) = (self.barrier_name(barrier), &self.barriers[barrier as usize]);
        let expected = counted(b.expected, "arrival");
        let text = format!(
            "{name} is initialised for {expected} a phase, and has completed more phases than {} has waited for",
            self.warp_name(multiplies)
        );
        let label = self.label(b.init.site, text).that_means(Meaning::CountsTooFew);
        Some((
            label,
            format!(
                "Initialise {name} for as many arrivals as come in a round: with {}, it is complete before all have stored.",
                b.expected
            ),
        ))
    }

    /// Who stores arrives somewhere behind the store, and the MMA's thread does not wait there.
    fn store_not_awaited(&self, mma: Stamp, store: Stamp) -> Option<(Label, String)> {
        let Some(ActorKind::Mmas { warp, .. }) = self.kind(mma) else { return None };
        let Some(ActorKind::TensorStores(by)) = self.kind(store) else { return None };
        let (multiplies, stores) = (warp as usize, by as usize);
        if stores == multiplies {
            return None;
        }
        let now = |w: usize, n: u32| {
            let waits = |state: &State| matches!(*state, State::Mbarrier { barrier, .. } if barrier == n);
            self.warps[w].fragments.iter().any(|fragment| waits(&fragment.state))
        };
        let waits = |w: usize, n: u32| now(w, n) || self.warps[w].passed.iter().any(|passed| passed.barrier == n);
        let told_at = |n: u32| self.told_behind(n, stores, store);
        let all = || (0..self.barriers.len() as u32).filter(|&n| self.barriers[n as usize].valid);
        // Who waits for one such mbarrier, or is about to, lacks something else.
        if all().any(|n| waits(multiplies, n) && told_at(n).is_some()) {
            return None;
        }
        let (barrier, arrival) = all().find_map(|n| {
            // Of those that somebody else waits for it is known what they tell.
            let others = (0..self.warps.len()).any(|w| waits(w, n));
            let known = others || self.barriers[n as usize].came.iter().any(|came| came.bytes);
            told_at(n).filter(|_| !known).map(|site| (n, site))
        })?;
        let (name, who, by) = (self.barrier_name(barrier), self.warp_name(multiplies), self.warp_name(stores));
        let label = self
            .label(arrival, format!("{by} arrives at {name} here, behind the store; {who} has not waited for that"));
        Some((
            label,
            format!(
                "Let {who} wait for {name} before it issues the MMA: mbarrier.try_wait.parity, with parity 0 in the first round."
            ),
        ))
    }
}
