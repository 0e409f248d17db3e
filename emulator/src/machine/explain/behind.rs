//! Races of an access that stands behind its warp's arrival: who waits for that knows nothing of it.

use super::copy::Cure;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::order::Stamp;
use crate::program::op::Op;
use crate::protocol::What;

const RULE: &str = "An arrival tells those who wait for it of what its thread has done before, and of nothing behind it (PTX ISA 8.9.5, 9.7.13.1, \
                    9.7.13.15.13).";

impl Cluster<'_> {
    /// The first access is a warp's, and further up in the kernel the warp arrives where the second one's waits: by an mbarrier, or by `bar.arrive`.
    pub fn cure_of_an_arrival_before(&self, race: &Race) -> Option<Cure> {
        let (first, second) = (race.conflict.first, race.second);
        let Some(ActorKind::Warp(warp)) = self.kind(first) else { return None };
        let waits = race.passed.iter().rev().filter(|passed| passed.fresh && !passed.lost);
        let arrivals = waits.flat_map(|passed| {
            let came = self.comes_by_threads(&self.barriers[passed.barrier as usize]);
            let own = came.filter(|came| came.warp == warp as usize);
            own.map(|came| (came.site, self.barrier_name(passed.barrier)))
        });
        let named = self.arrivals_for(
            warp,
            match self.kind(second) {
                Some(ActorKind::Warp(other)) => Some(other),
                _ => None,
            },
        );
        let before = arrivals.chain(named).filter(|&(site, _)| site < first.site);
        let (site, name) = before.max_by_key(|&(site, _)| site)?;
        let (who, access) = (self.who(first), if race.conflict.first_writes { "write" } else { "read" });
        Some(Cure {
            rule: RULE,
            help: format!("Let {who} arrive at {name} behind this {access}, not before it."),
            labels: vec![self.label(site, format!("{who} arrives at {name} here, before it {access}s"))],
        })
    }

    /// The same the other way round: the warp of the second access comes to it straight from an arrival for which that of the first one waits.
    pub fn cure_of_an_arrival_in_front(&self, race: &Race) -> Option<Cure> {
        self.cure_of_an_arrival_straight_before(race.second, race.conflict.first, race.conflict.second_writes)
    }

    /// An access to which its warp comes straight from an arrival for which that of another access waits.
    pub fn cure_of_an_arrival_straight_before(&self, access: Stamp, other: Stamp, writes: bool) -> Option<Cure> {
        let (by, other) = (self.issuer(access)?, self.issuer(other)?);
        let waits = self.warps[other].passed.iter().rev().filter(|passed| passed.fresh && !passed.lost);
        let arrivals = waits.flat_map(|passed| {
            let own = self.comes_by_threads(&self.barriers[passed.barrier as usize]).filter(|came| came.warp == by);
            own.map(|came| (came.site, self.barrier_name(passed.barrier)))
        });
        let named = self.arrivals_for(by as u32, Some(other as u32));
        let mut before = arrivals.chain(named).filter(|_| by != other);
        let (site, name) = before.find(|&(site, _)| self.leads_straight(site, access.site))?;
        let (who, verb) = (self.warp_name(by), if writes { "write" } else { "read" });
        let (until, does) = match self.kind(access) {
            Some(ActorKind::Warp(_)) => (format!("behind this {verb}"), format!("it {verb}s")),
            _ => (format!("when it has waited for this {verb}"), format!("its copy {verb}s")),
        };
        Some(Cure {
            rule: RULE,
            help: format!("Let {who} arrive at {name} {until}, not before it."),
            labels: vec![self.label(site, format!("{who} arrives at {name} here, before {does}"))],
        })
    }

    /// Where a warp comes to a CTA barrier, and goes on, for which the other one waits.
    fn arrivals_for(&self, warp: u32, other: Option<u32>) -> Vec<(u32, String)> {
        let goes_on = |site: u32| {
            self.kernel
                .code
                .iter()
                .any(|inst| inst.site == site && matches!(inst.op, Op::CtaBarrier { wait: false, .. }))
        };
        let Some(other) = other else { return vec![] };
        let steps = &self.record.steps;
        let waits = |cta: u8, id: u8| {
            steps.iter().any(|s| u32::from(s.warp) == other && s.what == What::NamedPassed { cta, id })
        };
        let mut found: Vec<(u32, String)> = vec![];
        for step in steps.iter().filter(|step| u32::from(step.warp) == warp) {
            let What::Named { cta, id, .. } = step.what else { continue };
            if found.iter().all(|known| known.0 != step.site) && goes_on(step.site) && waits(cta, id) {
                found.push((step.site, format!("CTA barrier {id}")));
            }
        }
        found
    }
}
