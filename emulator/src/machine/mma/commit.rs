//! `tcgen05.commit`: an arrival when all MMAs of a thread are complete.

use super::issuer::Group;
use crate::machine::barrier::mbarrier_ops::Arrival;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{ActorKind, At, Commit, Pending, Slot, Span};
use crate::machine::warp::Queue;
use crate::machine::warp::registers::lanes;
use crate::order::Views;
use crate::program::op::Address;
use crate::protocol::What;
use crate::report::{Actor, EventKind};
use smallvec::smallvec;

impl Cluster<'_> {
    pub fn commit(&mut self, at: At, address: &Address, pair: bool, targets: Option<u16>) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let now = self.warps[w].fragments[f].ready_at;
        self.group(at, pair, "tcgen05.commit")?;
        for (slot, who) in self.barrier_addresses(at, address, true)? {
            if who.count_ones() > 1 {
                self.many_lanes(w, who, site, "tcgen05.commit", "the barrier gets that many arrivals");
            }
            for lane in lanes(who) {
                let ranks = match targets {
                    None => smallvec![slot.cta],
                    Some(reg) => {
                        let bits = self.warps[w].registers.b32[usize::from(reg)][lane] & 0xffff;
                        self.mask_ranks(bits, site)?
                    }
                };
                let queue = self.mma_queues.get(&(w, lane)).copied();
                let (actor, epoch) = queue.map_or((self.warps[w].actor, 0), |q| (q.actor, q.epoch));
                // By thread: where only times are wanted all threads are one actor.
                let covered = self.covered.get(&(w, lane)).copied().unwrap_or(0);
                // It arrives when the thread's last MMA is complete, whether an earlier commit covers that one or not.
                let busy = queue.map_or(0, |q| q.busy_until);
                self.covered.insert((w, lane), epoch);
                let order = self.warps[w].starts();
                let late = self.warps[w].has_heard_of(actor, epoch);
                let thread = self.next_commit(w, lane);
                let mut latest = thread.busy_until;
                let (mut barriers, mut last) = (Vec::new(), now);
                let targets = ranks.iter().fold(0, |mask, &rank| mask | 1 << rank);
                let what = What::Issue { tells: ranks.len() as u8, commit: Some(targets) };
                let issue = self.record.add(w, 1 << lane, site, what);
                // It arrives at all of them at once.
                let time = (now.max(busy) + self.jitter(500)).max(thread.busy_until);
                for cta in ranks {
                    let barrier = self.barrier(w, Slot { cta, ..slot }, site, "committed to")?;
                    latest = latest.max(time);
                    let arrival = self.commit_reaches(w, lane, cta, site);
                    if self.options.trace {
                        barriers.push(self.barrier_id(barrier));
                    }
                    last = last.max(time);
                    self.commits.push(Commit {
                        site,
                        issue,
                        thread: (thread.actor, thread.epoch),
                        queue: actor,
                        epoch,
                        late,
                        barrier,
                        phase: None,
                        warp: w,
                        issued: now,
                        order: order.clone(),
                        arrival,
                        sums: self.issued.sums_of(actor),
                    });
                    self.push_event(time, Pending::CommitArrive(self.commits.len() - 1));
                }
                self.commit_queues.insert((w, lane), Queue { busy_until: latest, ..thread });
                let (home, span) = (self.warps[w].cta, Span { w, issued: now, start: now.max(busy), end: last });
                let kind = || EventKind::Commit { barriers, covers: epoch - covered };
                self.trace(home, Actor::TensorCore, span, site, kind);
            }
        }
        Ok(())
    }

    /// The queue of a thread's commits, which arrive one after the other, with one more: the caller puts it back.
    fn next_commit(&mut self, w: usize, lane: usize) -> Queue {
        let known = self.commit_queues.get(&(w, lane)).copied();
        let queue = known.unwrap_or_else(|| Queue::of(self.actor(ActorKind::Commits)));
        Queue { epoch: queue.epoch + 1, ..queue }
    }

    /// The CTAs that a multicast mask names.
    pub fn mask_ranks(&mut self, bits: u32, site: u32) -> Result<Group, Stop> {
        let ranks: Group = lanes(bits).collect();
        if ranks.is_empty() || ranks.iter().any(|&r| r >= self.ctas.len()) {
            return Err(Some(Box::new(self.problem(
                "multicast-mask",
                site,
                format!("the CTA mask is {bits:#b}, the cluster has {} CTAs", self.ctas.len()),
                "Each bit of a multicast mask names the rank of a CTA of the cluster.",
                "Set the bits of CTAs that exist, at least one.".into(),
            ))));
        }
        Ok(ranks)
    }

    /// All that a commit covers is complete: its arrival.
    pub fn commit_arrive(&mut self, n: usize, time: u64) -> Result<(), Stop> {
        let Commit { site, issue, thread, queue, epoch, barrier, warp, issued, arrival, .. } = self.commits[n];
        self.record.done(issue, barrier, 1, 0);
        let order = std::mem::take(&mut self.commits[n].order);
        let mut views = Views::default();
        views.hb.raise(queue, epoch);
        if self.options.judges() {
            views.order = order;
            if let Some((actor, arrivals)) = arrival {
                views.order.raise(actor, arrivals);
            }
            views.order.raise(thread.0, thread.1);
            views.before = views.hb.clone();
        }
        let b = &self.barriers[barrier as usize];
        let (phase, in_cta) = (b.phase, (thread.0, b.cta));
        self.commits[n].phase = Some(phase);
        let mut known = 0;
        if self.options.judges() {
            self.commits_completed.get(&in_cta).into_iter().for_each(|before| views.order.join(before));
            known = views.came_before(b.actor);
        }
        let arrival = Arrival { count: 1, announced: 0, site, engine: true };
        let outcome = self.arrive(barrier, arrival, &views, Span { w: warp, issued, start: time, end: time });
        if outcome.is_err() && self.warps[warp].multi_lane_sites.contains(&site) {
            // A consequence of what has been found already.
            return Err(None);
        }
        let b = &self.barriers[barrier as usize];
        if self.options.judges()
            && let Some(complete) = b.completed_alone(phase, known)
        {
            self.commits_completed.entry(in_cta).or_default().raise(b.actor, complete);
        }
        outcome
    }
}
