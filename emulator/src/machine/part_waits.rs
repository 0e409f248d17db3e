//! A part of a warp waits for the rest of it, which goes on.
//!
//! A thread waits at a barrier that is not `.aligned` until the other threads of its warp come to that barrier or end, wherever they are
//! (PTX ISA, barrier), and so it does in `bar.warp.sync` for those that the mask names. Those that the guard keeps away, and those that wait where
//! the lanes would meet again, have to go on then. An H200 does so: of a warp with half of its lanes in `@p barrier.sync`, the others ended, or came to
//! the barrier by another statement, and the barrier was complete; it was not where they spun for what came behind it.

use super::cluster::Cluster;
use super::warp::{Fragment, Meeting, State, Warp};
use crate::program::flow::NEVER;

impl Cluster<'_> {
    /// Lanes of a fragment wait behind their instruction; the others go on.
    pub fn wait_apart(&mut self, w: usize, f: usize, mask: u32, state: State) {
        let fragment = &mut self.warps[w].fragments[f];
        fragment.pc += 1;
        let others = Fragment { mask: fragment.mask & !mask, ..fragment.clone() };
        fragment.state = state;
        if others.mask != 0 {
            self.leave_behind(w, f, others);
        }
        self.wait_no_longer(w);
    }

    /// Lanes of a fragment wait at their instruction; those that its guard keeps away go on.
    pub fn let_others_go_on(&mut self, w: usize, f: usize, mask: u32) {
        let fragment = &self.warps[w].fragments[f];
        if fragment.mask != mask {
            let others = Fragment { mask: fragment.mask & !mask, pc: fragment.pc + 1, ..fragment.clone() };
            self.leave_behind(w, f, others);
        }
    }

    /// The other lanes of a fragment: they meet those that wait at the next instruction for whole warps.
    fn leave_behind(&mut self, w: usize, f: usize, mut others: Fragment) {
        let all = self.warps[w].fragments[f].mask;
        let pc = self.next_for_warps(others.pc, None).filter(|_| others.meeting.is_none());
        let warp = &mut self.warps[w];
        if let Some(pc) = pc {
            others.meeting = Some(warp.add_meeting(Meeting { pc, mask: all, outer: None }));
        }
        let waits = &mut warp.fragments[f];
        waits.mask = all & !others.mask;
        waits.meeting = others.meeting;
        warp.fragments.push(others);
    }

    /// Lanes that wait where they would meet others go on if those wait for them.
    pub fn wait_no_longer(&mut self, w: usize) {
        while let Some((meeting, time)) = self.keeps_waiting(&self.warps[w]) {
            self.meet_later(w, meeting, time);
        }
    }

    /// A meeting at which lanes wait for which others of it wait, and since when these do.
    fn keeps_waiting(&self, warp: &Warp) -> Option<(u32, u64)> {
        if warp.fragments.len() == 1 {
            return None;
        }
        let there = |f: &Fragment| f.meeting.filter(|_| f.state == State::Meeting);
        warp.fragments.iter().find_map(|f| {
            let meeting = there(f)?;
            let all = warp.meetings[meeting as usize].mask;
            let waits = |other: &&Fragment| other.mask & all != 0 && self.waits_for_lanes(warp, &other.state, f.mask);
            warp.fragments.iter().find(waits).map(|other| (meeting, other.ready_at))
        })
    }

    /// Who is in this state goes on only once these lanes of its warp have come, or ended.
    fn waits_for_lanes(&self, warp: &Warp, state: &State, lanes: u32) -> bool {
        match *state {
            State::CtaBarrier(id) => {
                let named = &self.ctas[warp.cta].named[id as usize];
                let (partial, who) = (named.partial[warp.index as usize % 32], named.who >> (warp.index % 32) & 1);
                who == 0 && lanes & !partial != 0
            }
            State::WarpSync(member) => lanes & member != 0,
            State::ClusterBarrier => lanes & !warp.cluster_arrived != 0,
            _ => false,
        }
    }

    /// Lanes are to meet at the next instruction for whole warps instead, or where an outer part ends, if that comes before.
    fn meet_later(&mut self, w: usize, meeting: u32, time: u64) {
        let Meeting { pc, outer, .. } = self.warps[w].meetings[meeting as usize];
        let end = outer.map(|outer| self.warps[w].meetings[outer as usize].pc);
        let behind = self.kernel.joins()[pc as usize];
        let next = self.next_for_warps(behind, end);
        let warp = &mut self.warps[w];
        for fragment in warp.fragments.iter_mut().filter(|f| f.meeting == Some(meeting)) {
            if fragment.state == State::Meeting {
                fragment.state = State::Ready;
                fragment.ready_at = fragment.ready_at.max(time);
            }
            if next.is_none() {
                fragment.meeting = outer;
            }
        }
        match next {
            Some(pc) => warp.meetings[meeting as usize].pc = pc,
            None => {
                warp.meetings[meeting as usize].mask = 0;
                let inner = warp.meetings.iter_mut().filter(|inner| inner.outer == Some(meeting));
                inner.for_each(|inner| inner.outer = outer);
            }
        }
        self.lower_horizon(time);
    }

    /// The first instruction for whole warps that all ways from a place lead to, if it comes before `end`.
    fn next_for_warps(&self, from: u32, end: Option<u32>) -> Option<u32> {
        let joins = self.kernel.joins();
        let on = |&pc: &u32| joins.get(pc as usize).copied().filter(|&pc| pc != NEVER);
        let ahead = std::iter::successors(Some(from).filter(|&pc| pc != NEVER), on);
        let mut before_end = ahead.take_while(|&pc| Some(pc) != end);
        before_end.find(|&pc| self.kernel.code.get(pc as usize).is_some_and(|inst| inst.op.is_for_warps()))
    }
}
