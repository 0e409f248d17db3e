//! A wait to which the commit of MMAs would arrive, and that commit is missing: the thread that has issued them has gone on to a wait of its own.

use super::cluster::Cluster;
use super::hang::{Blocked, barrier_of};
use super::warp::State;
use crate::diagnostic::{Diagnostic, Label};
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{Inst, Op};

/// An MMA that a commit should follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncommitted {
    site: u32,
    /// A later commit covers it, but too late for who waits.
    later: bool,
}

impl Cluster<'_> {
    /// The MMA whose commit is missing, where nothing has ever come to what is waited for, and no statement names it.
    pub fn lacks_commit(&self, blocked: &[Blocked], waiter: &Blocked) -> Option<Uncommitted> {
        let b = &self.barriers[barrier_of(waiter)? as usize];
        let fresh = self.at_offset(b).all(|twin| twin.came.is_empty());
        // Who loads next waits for a stage to be free, who reads tensor memory for a product: a commit tells both.
        let role = self.role(waiter.site);
        if !fresh || !matches!(role, 0 | 2) || !self.arrival_sites_anywhere(b.offset).is_empty() {
            return None;
        }
        let open = self.uncommitted().into_iter().find(|&warp| self.is_past_its_commit(blocked, waiter, warp, role));
        let of_all = open.and_then(|warp| self.issued.sites.get(&warp));
        of_all.map(|&site| Uncommitted { site, later: false }).or_else(|| {
            // Or the commits of other stages have covered it since, and what waits for this one hears of none.
            let others = blocked.iter().filter(|b| role == 0 && self.awaits_operands_of(b, waiter));
            let mut sites = others.flat_map(|other| self.issued.sites_of(other.warp));
            sites.find(|&site| self.goes_on_uncommitted(site)).map(|site| Uncommitted { site, later: true })
        })
    }

    /// The warps that have issued MMAs which no commit covers.
    fn uncommitted(&self) -> Vec<usize> {
        let covered = |key| self.covered.get(key).copied().unwrap_or(0);
        let open = self.mma_queues.iter().filter(|(key, queue)| queue.epoch > covered(key));
        let mut warps: Vec<usize> = open.map(|(&(warp, _), _)| warp).collect();
        warps.sort_unstable();
        warps
    }

    /// Whether a warp has gone past the place where it would have committed its MMAs for this wait: it has ended, or is who waits, or waits
    /// for its next operands, where each round would have freed the last ones.
    fn is_past_its_commit(&self, blocked: &[Blocked], waiter: &Blocked, warp: usize, role: u32) -> bool {
        let mut its = blocked.iter().filter(|b| b.warp == warp && !matches!(b.state, State::Meeting)).peekable();
        if warp == waiter.warp || its.peek().is_none() {
            return true;
        }
        let again = |b: &Blocked| self.warps[warp].passed.iter().any(|passed| passed.site == b.site);
        let comes_round = |b: &Blocked| barrier_of(b).is_some() && self.role(b.site) == 1 && again(b);
        role == 0 && its.all(|b| comes_round(b) || self.awaits_operands_of(b, waiter))
    }

    /// Who multiplies next waits for what this one should load.
    fn awaits_operands_of(&self, b: &Blocked, waiter: &Blocked) -> bool {
        b.warp != waiter.warp && self.role(b.site) == 1 && self.due(b).contains(&waiter.warp)
    }

    /// Whether a way leads from an MMA, past no commit and no other MMA, to a wait for what is multiplied next.
    fn goes_on_uncommitted(&self, mma: u32) -> bool {
        let code = &self.kernel.code;
        let way = |_: usize, inst: &Inst| match inst.op {
            Op::Commit { .. } | Op::Mma(_) => Way::Ends,
            Op::BarrierWait { .. } if self.role(inst.site) == 1 => Way::Found,
            _ => Way::On,
        };
        (0..code.len()).any(|at| code[at].site == mma && ways_lead(code, at, way))
    }

    /// What is said of such a wait.
    pub fn not_committed(&self, waiter: &Blocked, barrier: u32, mma: Uncommitted, wait: Label) -> Diagnostic {
        let name = self.barrier_name(barrier);
        let is_this = |inst: &&Inst| inst.site == mma.site;
        let of_pair = |inst: &Inst| matches!(&inst.op, Op::Mma(op) if op.pair);
        let pair = self.kernel.code.iter().find(is_this).is_some_and(of_pair);
        let (group, both) = match pair {
            true => (2, ", with .multicast::cluster and a mask of both CTAs if both wait"),
            false => (1, ""),
        };
        let mut d = self.hang(
            waiter.site,
            format!("the wait for {name} never ends: nothing ever arrives at it"),
            format!(
                "Behind the MMA ({}), let its thread execute tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 to \
                 this mbarrier{both}: that arrives when the MMAs are complete.",
                self.at(mma.site)
            ),
        );
        let follows = match mma.later {
            true => "no tcgen05.commit follows this MMA before its thread waits for what it multiplies next",
            false => "no tcgen05.commit follows this MMA",
        };
        d.labels = vec![wait, self.label(mma.site, follows)];
        d
    }
}
