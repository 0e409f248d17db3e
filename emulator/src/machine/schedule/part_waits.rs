//! A part of a warp waits for the rest of it, which goes on.
//!
//! A thread waits at a barrier that is not `.aligned` until the other threads of its warp come to that barrier or end, wherever they are
//! (PTX ISA, barrier), and so it does in `bar.warp.sync` for those that the mask names. Those that the guard keeps away, and those that wait where
//! the lanes would meet again, have to go on then. An H200 does so: of a warp with half of its lanes in `@p barrier.sync`, the others ended, or came to
//! the barrier by another statement, and the barrier was complete; it was not where they spun for what came behind it.
//!
//! Nor do lanes wait for ever for those of their warp that ask again and again: ptxas lets lanes meet where their ways come together, also behind such
//! a loop (BSSY and BSYNC), but the loop yields (YIELD, for sm_90a and sm_100a), and those that have met go on. On an H200 an arrival behind the wait of
//! other lanes completed that wait, and 32 lanes took a lock one after the other. When they go on is not said; here they stay together for as long as
//! somebody else brings about what is asked for.

use crate::machine::cluster::Cluster;
use crate::machine::loops::livelock::only_looks;
use crate::machine::warp::{Fragment, Meeting, State, Warp};
use crate::program::flow::NEVER;
use crate::program::op::Op;

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

    /// Somebody asks for what nobody brings about: lanes of a warp that wait where they would meet those that ask go on, if they do something on
    /// their way. Whether any do.
    pub fn waiting_lanes_go_on(&mut self) -> bool {
        let all = self.warps.iter().enumerate().flat_map(|(w, warp)| (0..warp.fragments.len()).map(move |f| (w, f)));
        let asks = |&(w, f): &(usize, usize)| match self.warps[w].fragments[f].state {
            State::Mbarrier { .. } => true,
            _ => self.endless_branch(w).is_some_and(|branch| branch == self.warps[w].fragments[f].pc),
        };
        let asking: Vec<(usize, usize)> = all.filter(asks).collect();
        asking.into_iter().fold(false, |any, (w, f)| self.let_waiting_go_on(w, f) || any)
    }

    /// The lanes of a fragment ask again and again: the same for those that wait for them. Whether any go on.
    pub fn let_waiting_go_on(&mut self, w: usize, f: usize) -> bool {
        let warp = &self.warps[w];
        if warp.fragments.len() == 1 {
            return false;
        }
        let fragment = &warp.fragments[f];
        let (asks, time) = (fragment.pc, fragment.ready_at);
        let outer = |&meeting: &u32| warp.meetings[meeting as usize].outer;
        let met = |meeting: &u32| {
            let there = |f: &Fragment| f.state == State::Meeting && f.meeting == Some(*meeting);
            warp.fragments.iter().any(there) && self.acts_behind(warp.meetings[*meeting as usize].pc, asks)
        };
        let meetings: Vec<u32> = std::iter::successors(fragment.meeting, outer).filter(met).collect();
        for &meeting in &meetings {
            self.meet_later(w, meeting, time);
        }
        !meetings.is_empty()
    }

    /// Whether lanes from a place on do something that others can see, without those that ask at another place: before they come to an
    /// instruction for whole warps, or there.
    fn acts_behind(&self, from: u32, asks: u32) -> bool {
        let code = &self.kernel.code;
        let leads = self.kernel.leads();
        // The loop in which they ask.
        let inside = |pc: usize| match code[asks as usize].op {
            Op::Branch { target, .. } => (target.min(asks)..=asks).contains(&(pc as u32)),
            _ => pc as u32 == asks,
        };
        let (mut seen, mut open) = (vec![false; code.len()], vec![from as usize]);
        while let Some(pc) = open.pop() {
            let Some(inst) = code.get(pc) else { continue };
            if std::mem::replace(&mut seen[pc], true) || inside(pc) || inst.op.is_for_warps() {
                continue;
            }
            if matches!(inst.op, Op::Store(_) | Op::Atomic(_)) || inst.facts.visible && !only_looks(&inst.op) {
                return true;
            }
            open.extend(&leads[pc]);
        }
        false
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
