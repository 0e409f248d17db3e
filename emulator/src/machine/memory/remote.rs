//! Operations on the memory of another CTA of the cluster, which must not have ended by then.
//!
//! Of those that are performed in order only the last is remembered for each CTA: a warp's own, the arrivals of one thread's commits
//! and the MMAs of one thread. What copies write is asked for elsewhere (`promises`): that one is complete can be learnt only in the CTA of
//! its mbarrier, so that a CTA which knows it of the bytes it got has been told by one that knows it of its mbarrier. So is what a copy
//! reads of its own CTA's memory, of which the last one for each mbarrier is remembered here.

use super::resolve::Target;
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::state::ActorKind;
use crate::machine::warp::Queue;
use crate::order::ActorId;
use crate::program::op::Op;
use rustc_hash::FxHashMap;

/// Who performs an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    Thread,
    Commit,
    Mma,
    /// A copy that reads, on its way to another CTA.
    Source,
}

/// The last operation of its kind on a CTA's memory: known to be performed by who knows of this epoch of the actor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    target: usize,
    by: By,
    site: u32,
    /// The CTA that it comes from.
    from: usize,
    actor: ActorId,
    epoch: u32,
}

/// What CTAs of a cluster do to each other's memory.
#[derive(Debug, Default)]
pub struct Remote {
    /// By actor and target.
    last: FxHashMap<(ActorId, usize), Use>,
    /// The arrivals of the commits of a thread (warp and lane) in another CTA.
    commits: FxHashMap<(usize, usize, usize), Queue>,
}

impl Cluster<'_> {
    /// A warp is about to operate on a CTA's shared memory.
    pub fn reach(&mut self, w: usize, target: usize, site: u32) {
        let warp = &mut self.warps[w];
        if warp.cta == target || !self.options.judges() {
            return;
        }
        // Nobody has been told of it by what the warp said before.
        warp.advance();
        let (from, actor, epoch) = (warp.cta, warp.actor, warp.epoch);
        self.remote.last.insert((actor, target), Use { target, by: By::Thread, site, from, actor, epoch });
    }

    /// The same of accesses by these lanes.
    pub fn reach_all(&mut self, w: usize, targets: &[(usize, Target)], site: u32) {
        if self.ctas.len() == 1 {
            return;
        }
        let mut last = self.warps[w].cta;
        for &(_, target) in targets {
            if let Target::Shared(cta, _) = target
                && cta != last
            {
                last = cta;
                self.must_have_started(w, cta, site);
                self.reach(w, cta, site);
            }
        }
    }

    /// A commit will arrive in this CTA: what who has waited for the arrival knows, if the CTA is another one.
    pub fn commit_reaches(&mut self, w: usize, lane: usize, target: usize, site: u32) -> Option<(ActorId, u32)> {
        let from = self.warps[w].cta;
        if from == target || !self.options.judges() {
            return None;
        }
        let key = (w, lane, target);
        if !self.remote.commits.contains_key(&key) {
            let actor = self.actor(ActorKind::Commits);
            self.remote.commits.insert(key, Queue::of(actor));
        }
        let queue = self.remote.commits.get_mut(&key)?;
        queue.epoch += 1;
        let Queue { actor, epoch, .. } = *queue;
        self.remote.last.insert((actor, target), Use { target, by: By::Commit, site, from, actor, epoch });
        Some((actor, epoch))
    }

    /// An MMA, the last one of its queue, works on the memories of these CTAs.
    pub fn mma_reaches(&mut self, w: usize, group: &[usize], (actor, epoch): (ActorId, u32), site: u32) {
        let from = self.warps[w].cta;
        if !self.options.judges() {
            return;
        }
        for &target in group.iter().filter(|&&c| c != from) {
            self.remote.last.insert((actor, target), Use { target, by: By::Mma, site, from, actor, epoch });
        }
    }

    /// A copy, which completes on this mbarrier, will read its CTA's memory: a copy to another CTA.
    pub fn copy_reads(&mut self, barrier: u32, source: usize, site: u32) {
        let b = &self.barriers[barrier as usize];
        if b.cta == source || !self.options.judges() {
            return;
        }
        let (from, actor, epoch) = (b.cta, b.actor, b.next_epoch());
        self.remote.last.insert((actor, source), Use { target: source, by: By::Source, site, from, actor, epoch });
    }

    /// All warps have ended: of each operation on a CTA's memory, one of the CTA's warps must have known.
    pub fn uses_behind_the_end(&mut self) {
        if self.ctas.len() == 1 || !self.options.judges() {
            return;
        }
        let mut uses: Vec<Use> = self.remote.last.values().copied().collect();
        uses.retain(|one| {
            let mut own = self.warps.iter().filter(|warp| warp.cta == one.target);
            !own.any(|warp| warp.has_heard_of(one.actor, one.epoch))
        });
        uses.sort_unstable();
        // Of those that are alike one is shown; whether all of them have been heard of is asked of each.
        let mut shown = uses.clone();
        shown.dedup_by_key(|one| (one.target, one.by, one.site));
        for target in 0..self.ctas.len() {
            let unknown = |one: &&Use| one.target == target && !self.findings.mentions(&self.place(one.site));
            let unknown: Vec<Use> = shown.iter().filter(unknown).copied().collect();
            // A GPU keeps the shared memory of a CTA that has ended until its copies have read it (measured on an H100: 20,000 clusters, each
            // of 60 copies of 16 KiB, from memory that the CTA behind it at once overwrites).
            let (sources, unknown): (Vec<Use>, Vec<Use>) = unknown.into_iter().partition(|one| one.by == By::Source);
            // A CTA that waits for the last word of one warp of another ends behind what the other's warps have left to say, but for a
            // few instructions: kernels of ThunderKittens end so.
            let (parted, alone): (Vec<Use>, Vec<Use>) =
                unknown.into_iter().partition(|one| self.has_parted(&uses, one));
            for (uses, severity) in [(alone, Severity::Finding), (parted, Severity::Note), (sources, Severity::Note)] {
                if let Some((first, more)) = uses.split_first() {
                    self.outlives(first, more, severity);
                }
            }
        }
    }

    /// Whether this is an arrival, and its target ends behind the last use of its memory by another warp of the same CTA.
    fn has_parted(&self, unknown: &[Use], one: &Use) -> bool {
        let arrives =
            self.kernel.code.iter().any(|inst| inst.site == one.site && matches!(inst.op, Op::BarrierArrive { .. }));
        let same = |other: &&Use| (other.target, other.from, other.by) == (one.target, one.from, By::Thread);
        let mut known =
            self.remote.last.values().filter(same).filter(|other| !unknown.iter().any(|u| u.actor == other.actor));
        one.by == By::Thread && arrives && known.next().is_some()
    }

    fn outlives(&mut self, first: &Use, more: &[Use], severity: Severity) {
        let Use { target, by, from, site, .. } = *first;
        let text = |one: &Use| match one.by {
            By::Thread => format!("CTA {} uses shared memory of CTA {target} here", one.from),
            By::Commit => format!("this commit of CTA {} arrives at an mbarrier of CTA {target}", one.from),
            By::Mma => format!("this MMA of CTA {} also works on the memories of CTA {target}", one.from),
            By::Source => format!("this copy of CTA {target} to CTA {} reads shared memory of CTA {target}", one.from),
        };
        let barrier = format!(
            "a cluster barrier behind the last use, by all threads of both CTAs (barrier.cluster.arrive, which may be .relaxed, and \
             barrier.cluster.wait): CTA {target} ends only behind the wait"
        );
        let mut diagnostic = self.problem(
            "remote-use-outlives-cta",
            site,
            match by {
                By::Thread | By::Commit => {
                    format!("CTA {target} may end before CTA {from} has used its shared memory")
                }
                By::Mma => format!("CTA {target} may end before an MMA of CTA {from} has used its memories"),
                By::Source => format!("CTA {target} may end before its copy to CTA {from} has read its shared memory"),
            },
            "A CTA's shared memory, the mbarriers in it and its tensor memory are there for others of the cluster only until its last thread \
             ends; a later access faults, or hits what another CTA has there (PTX ISA 5.1.7, shared::cluster; barrier.cluster; CUDA programming \
             guide, distributed shared memory).",
            match by {
                By::Thread => format!("Put {barrier}."),
                By::Commit => format!(
                    "Let a thread of CTA {target} wait for the mbarrier, or for a later commit of the same thread to CTA {target}, before it ends."
                ),
                By::Mma => format!("Let CTA {from} wait for a commit behind the MMA, and put {barrier}."),
                By::Source => format!(
                    "Let CTA {from} wait for the copy's mbarrier, and put {barrier}. GPUs keep the memory until then, but nothing promises it."
                ),
            },
        );
        diagnostic.severity = severity;
        diagnostic.labels[0].text = format!("{}; nothing says that this is over when CTA {target} ends", text(first));
        diagnostic
            .labels
            .extend(more.iter().filter(|one| one.site != site).take(2).map(|one| self.label(one.site, text(one))));
        self.findings.add(diagnostic);
    }
}
