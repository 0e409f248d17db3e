//! A wait to which the commit of MMAs would arrive, and that commit is missing: the thread that has issued them has gone on to a wait of its own.

use super::{Blocked, barrier_of};
use crate::diagnostic::{Diagnostic, Label, Meaning};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::distinct;
use crate::machine::warp::State;
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{Inst, Op};

/// An MMA that a commit should follow, and what is known of the commits behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Uncommitted {
    site: u32,
    commits: Commits,
}

/// What is known of the commits behind an MMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Commits {
    /// None covers it.
    None,
    /// A later one covers it, but does not tell who waits.
    Late,
    /// No statement of the kernel arrives at the mbarrier.
    ToOthers,
}

impl Commits {
    fn said(self) -> (&'static str, Meaning) {
        match self {
            Commits::None => (NOT_COMMITTED, Meaning::NotCommitted),
            Commits::Late => (
                "no tcgen05.commit follows this MMA before its thread waits for what it multiplies next",
                Meaning::NotCommitted,
            ),
            Commits::ToOthers => {
                ("the last MMA: no tcgen05.commit behind it is to the mbarrier that is waited for", Meaning::Plain)
            }
        }
    }
}

/// What is said of an MMA that no commit follows.
pub const NOT_COMMITTED: &str = "no tcgen05.commit follows this MMA";

impl Uncommitted {
    /// Commits cover it, and none of the kernel is to what is waited for.
    pub fn is_of_others(self) -> bool {
        self.commits == Commits::ToOthers
    }
}

impl Cluster<'_> {
    /// Whether an arrival comes from MMAs.
    pub fn is_commit(&self, site: u32) -> bool {
        self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::Commit { .. }))
    }

    /// Whether it is a commit that names its CTAs by a mask.
    pub fn is_multicast(&self, site: u32) -> bool {
        self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::Commit { targets: Some(_), .. }))
    }

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
        let of_all = of_all.map(|&site| Uncommitted { site, commits: Commits::None });
        // Or the commits of other stages have covered it since, and what waits for this one hears of none.
        let of_one = || {
            let others = blocked.iter().filter(|b| role == 0 && self.awaits_operands_of(b, waiter));
            let mut sites = others.flat_map(|other| self.issued.sites_of(other.warp));
            sites.find(|&site| self.goes_on_uncommitted(site)).map(|site| Uncommitted { site, commits: Commits::Late })
        };
        let of_others = || {
            let product = role == 2 && self.may_arrive(b.offset).is_empty();
            self.issued.last.filter(|_| product).map(|site| Uncommitted { site, commits: Commits::ToOthers })
        };
        of_all.or_else(of_one).or_else(of_others)
    }

    /// What would tell who multiplies next that an accumulator is free, where no statement does.
    pub fn awaits_readers(&self, waiter: &Blocked, offset: u32) -> Option<&'static str> {
        let multiplies = self.role(waiter.site) == 1 && self.issued.sites.contains_key(&waiter.warp);
        let nobody = multiplies && self.may_arrive(offset).is_empty();
        nobody.then_some(
            "No statement arrives at this mbarrier. If it tells that an accumulator is free, let the warps that read it execute mbarrier.arrive on it \
             behind their tcgen05.wait::ld; if it tells that a stage is there, let its copies and an mbarrier.arrive.expect_tx name it.",
        )
    }

    /// The warps that have issued MMAs which no commit covers.
    fn uncommitted(&self) -> Vec<usize> {
        let covered = |key| self.covered.get(key).copied().unwrap_or(0);
        let open = self.mma_queues.iter().filter(|(key, queue)| queue.epoch > covered(key));
        distinct(open.map(|(&(warp, _), _)| warp))
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
        let (product, threads) = match mma.commits {
            Commits::ToOthers => (
                "No statement arrives at this mbarrier. If it tells that a product is there: behind",
                " If it tells what threads have done, let those execute mbarrier.arrive on it.",
            ),
            _ => ("Behind", ""),
        };
        let mut d = self.hang(
            waiter.site,
            format!("the wait for {name} never ends: nothing ever arrives at it"),
            format!(
                "{product} the MMA ({}), let its thread execute tcgen05.commit.cta_group::{group}.mbarrier::arrive::one.shared::cluster.b64 to \
                 this mbarrier{both}: that arrives when the MMAs are complete.{threads}",
                self.at(mma.site)
            ),
        );
        let (text, meaning) = mma.commits.said();
        d.labels = vec![wait, self.label(mma.site, text).that_means(meaning)];
        d
    }
}
