//! The barrier of a cluster (`barrier.cluster`): arrivals, waits, and what they tell of memory.

use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{ActorKind, At};
use crate::machine::warp::State;
use crate::order::Views;
use crate::protocol::What;

impl Cluster<'_> {
    /// `barrier.cluster.arrive`: counts the lanes; what they know goes to all that wait.
    pub fn cluster_arrive(&mut self, at: At, relaxed: bool, aligned: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        if aligned {
            self.whole_warp(w, mask, site)?;
        }
        if self.warps[w].cluster_passed & mask != 0 && self.knows_of_last_phase(w) {
            self.warps[w].cluster_passed &= !mask;
        }
        let twice = (self.warps[w].cluster_arrived | self.warps[w].cluster_passed) & mask;
        if twice != 0 {
            let mut diagnostic = self.problem(
                "cluster-barrier",
                site,
                format!("{} arrives twice at the cluster barrier without waiting in between", self.warp_name(w)),
                "Each thread arrives once in a phase and waits before it arrives again (PTX ISA, barrier.cluster), or learns from who has \
                 waited that the phase is complete.",
                "Let every barrier.cluster.arrive be followed by a barrier.cluster.wait.".into(),
            );
            let before = self.warps[w].cluster_arrivals.iter().find(|(lanes, _)| lanes & twice != 0);
            diagnostic.labels.extend(before.map(|&(_, before)| {
                self.label(before, "it arrived here before, and no barrier.cluster.wait of it came in between")
            }));
            return Err(Some(Box::new(diagnostic)));
        }
        let release = if relaxed { 0 } else { self.costs.cluster_release };
        self.warps[w].fragments[f].ready_at += release;
        let time = self.warps[w].fragments[f].ready_at;
        let warp = &mut self.warps[w];
        warp.cluster_arrived |= mask;
        warp.cluster_arrivals.iter_mut().for_each(|(lanes, _)| *lanes &= !mask);
        warp.cluster_arrivals.retain(|(lanes, _)| *lanes != 0);
        warp.cluster_arrivals.push((mask, site));
        if relaxed {
            warp.relaxed_arrivals.push((site, warp.epoch, warp.copies.epoch));
            let (near, beyond) = warp.fenced_releases();
            if self.ctas.len() == 1 {
                self.cluster_barrier.views.join(&near);
            } else {
                self.cluster_barrier.views.join(&beyond);
                self.cluster_near.resize_with(self.ctas.len(), Views::default);
                self.cluster_near[warp.cta].join(&near);
            }
        } else {
            warp.release_to(&mut self.cluster_barrier.views);
        }
        self.cluster_barrier.latest = self.cluster_barrier.latest.max(time);
        self.cluster_barrier.site = site;
        self.record.add(w, mask, site, What::ClusterArrive);
        self.check_cluster_barrier();
        Ok(())
    }

    /// Whether a warp knows from others that all threads have arrived in the last complete phase. It may arrive in the next one without a wait of its
    /// own then (docs/sources.md, barriers of a cluster).
    fn knows_of_last_phase(&mut self, w: usize) -> bool {
        self.guessed |= !self.clocks;
        !self.clocks || self.cluster_phases.is_some_and(|(actor, phases)| self.warps[w].has_heard_of(actor, phases))
    }

    pub fn cluster_wait(&mut self, at: At, aligned: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        if aligned {
            self.whole_warp(w, mask, site)?;
        }
        // Lanes that have arrived in a phase that is complete already.
        if self.warps[w].cluster_passed & mask == mask {
            self.warps[w].cluster_passed &= !mask;
            self.record.add(w, mask, site, What::ClusterPassed);
            let warp = &mut self.warps[w];
            warp.views.join(&self.cluster_known);
            self.cluster_known_near.get(warp.cta).into_iter().for_each(|near| warp.views.join(near));
            let fragment = &mut self.warps[w].fragments[f];
            fragment.ready_at = fragment.ready_at.max(self.cluster_time);
            return Ok(());
        }
        if self.warps[w].cluster_arrived & mask != mask {
            return Err(Some(Box::new(self.problem(
                "cluster-barrier",
                site,
                format!("{} waits at the cluster barrier without having arrived", self.warp_name(w)),
                "barrier.cluster.wait follows the thread's own barrier.cluster.arrive (PTX ISA, barrier.cluster).",
                "Put barrier.cluster.arrive before it.".into(),
            ))));
        }
        self.wait_apart(w, f, mask, State::ClusterBarrier);
        Ok(())
    }

    /// Completes the phase of the cluster barrier when all live threads of the cluster have arrived.
    pub fn check_cluster_barrier(&mut self) {
        let complete = self.warps.iter().all(|w| w.live & !w.cluster_arrived == 0);
        if !complete || self.warps.iter().all(|w| w.cluster_arrived & w.live == 0) {
            return;
        }
        let mut done = std::mem::take(&mut self.cluster_barrier);
        let (actor, phases) = match self.cluster_phases {
            Some((actor, phases)) => (actor, phases + 1),
            None => (self.actor(ActorKind::ClusterBarrier), 1),
        };
        self.cluster_phases = Some((actor, phases));
        done.views.order.raise(actor, phases);
        let time = done.latest + self.costs.cluster_barrier;
        self.record.add(0, 0, done.site, What::ClusterDone);
        self.cluster_known = done.views;
        self.cluster_known_near = std::mem::take(&mut self.cluster_near);
        self.cluster_time = time;
        self.acted();
        for w in 0..self.warps.len() {
            let warp = &mut self.warps[w];
            warp.cluster_passed = std::mem::take(&mut warp.cluster_arrived);
            let mut joined = false;
            for fragment in warp.fragments.iter_mut().filter(|f| f.state == State::ClusterBarrier) {
                fragment.state = State::Ready;
                fragment.ready_at = fragment.ready_at.max(time);
                warp.cluster_passed &= !fragment.mask;
                joined = true;
                let inst = self.kernel.code.get(fragment.pc.saturating_sub(1) as usize);
                let site = inst.map_or(done.site, |inst| inst.site);
                self.record.add(w, fragment.mask, site, What::ClusterPassed);
            }
            if joined {
                warp.views.join(&self.cluster_known);
                self.cluster_known_near.get(warp.cta).into_iter().for_each(|near| warp.views.join(near));
            }
        }
        self.lower_horizon(time);
    }
}
