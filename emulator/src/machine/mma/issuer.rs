//! Who issues instructions of the tensor core: one thread for all, in one CTA of a pair (PTX ISA 9.7.16.5).

use crate::diagnostic::Severity;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{ActorKind, At};
use crate::machine::warp::Queue;
use smallvec::{SmallVec, smallvec};

/// Ranks of the CTAs that take part: one, or the even and the odd one of a pair.
pub type Group = SmallVec<[usize; 2]>;

impl Cluster<'_> {
    /// The CTAs of a `cta_group`, by rank. A pair's instructions are issued in its even CTA.
    pub fn group(&mut self, at: At, pair: bool, what: &str) -> Result<Group, Stop> {
        let cta = self.warps[at.w].cta;
        if !pair {
            return Ok(smallvec![cta]);
        }
        if cta % 2 == 1 || cta + 1 >= self.ctas.len() {
            let why = if cta % 2 == 1 {
                format!("this is CTA {cta} of its cluster, the odd one of its pair")
            } else {
                format!("the cluster has {} CTAs, so that CTA {cta} has no peer", self.ctas.len())
            };
            return Err(Some(Box::new(self.problem(
                "pair-leader",
                at.site,
                format!("{what} with cta_group::2 is issued where it must not be: {why}"),
                "One thread issues an instruction of a CTA pair, for both CTAs (PTX ISA 9.7.16.5). The ISA does not say in which of the two; in \
                 the libraries' kernels it is the even one, and what the odd one's would do is not modelled.",
                "Let only the CTA of even rank issue it, in a cluster of an even number of CTAs.".into(),
            ))));
        }
        Ok(smallvec![cta, cta + 1])
    }

    /// One operation more in the order of what a thread issues: its queue with it.
    pub fn queued(&mut self, w: usize, lane: usize, site: u32) -> Queue {
        let key = (w, lane);
        let known = self.mma_queues.get(&key).copied();
        let mut queue =
            known.unwrap_or_else(|| Queue::of(self.actor(ActorKind::Mmas { warp: w as u32, lane: lane as u32 })));
        (queue.epoch, queue.site) = (queue.epoch + 1, site);
        self.mma_queues.insert(key, queue);
        self.warps[w].views.after.raise(queue.actor, queue.epoch);
        queue
    }

    /// An instruction that one thread issues for all is executed by several lanes.
    pub fn many_lanes(&mut self, w: usize, mask: u32, site: u32, what: &str, effect: &str) {
        if self.warps[w].multi_lane_sites.contains(&site) {
            return;
        }
        let first = self.warps[w].multi_lane_sites.is_empty();
        self.warps[w].multi_lane_sites.push(site);
        if !first {
            return;
        }
        let n = mask.count_ones();
        let mut diagnostic = self.problem(
            "issued-by-many-lanes",
            site,
            format!("{n} lanes of {} each issue this {what}: {effect}", self.warp_name(w)),
            "One thread issues tcgen05.mma, tcgen05.cp, tcgen05.commit or clusterlaunchcontrol.try_cancel for all; each further thread starts the \
             operation once more (PTX ISA 9.7.16.5; clusterlaunchcontrol.try_cancel).",
            "Let one elected lane execute it (elect.sync).".into(),
        );
        diagnostic.severity = Severity::Finding;
        self.findings.add(diagnostic);
    }
}
