//! Lanes of a warp part at a branch, meet again, and end.

use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{At, Span};
use crate::machine::warp::registers::lanes;
use crate::machine::warp::{Fragment, Meeting, State};
use crate::program::op::Reg;
use crate::protocol::What;
use crate::report::{Actor, EventKind};

impl Cluster<'_> {
    /// Lanes that wait for each other at the end of a divergent part go on together once all are there.
    pub fn meet(&mut self, w: usize) {
        let warp = &mut self.warps[w];
        loop {
            let complete = (0..warp.meetings.len() as u32).find(|&m| {
                let there: u32 = warp
                    .fragments
                    .iter()
                    .filter(|f| f.state == State::Meeting && f.meeting == Some(m))
                    .fold(0, |mask, f| mask | f.mask);
                there != 0 && there == warp.meetings[m as usize].mask
            });
            let Some(m) = complete else { return };
            let meeting = warp.meetings[m as usize].clone();
            let mut merged =
                Fragment { pc: meeting.pc, mask: 0, ready_at: 0, state: State::Ready, meeting: meeting.outer };
            warp.fragments.retain(|f| {
                let joins = f.state == State::Meeting && f.meeting == Some(m);
                if joins {
                    merged.mask |= f.mask;
                    merged.ready_at = merged.ready_at.max(f.ready_at);
                }
                !joins
            });
            // They may have arrived where an outer part ends, too.
            if let Some(outer) = merged.meeting
                && warp.meetings[outer as usize].pc == merged.pc
            {
                merged.state = State::Meeting;
            }
            warp.untold.met(merged.mask);
            warp.fragments.push(merged);
            warp.meetings[m as usize].mask = 0;
            if warp.fragments.len() == 1 && warp.fragments[0].meeting.is_none() {
                warp.meetings.clear();
                return;
            }
        }
    }

    /// The lanes of a fragment part at a branch: some go to `target`.
    pub fn part(&mut self, w: usize, f: usize, taken: u32, target: u32, reconverge: u32) {
        let warp = &mut self.warps[w];
        let mut other = warp.fragments[f].clone();
        let inherits = other.meeting.is_some_and(|m| warp.meetings[m as usize].pc == reconverge);
        if reconverge != u32::MAX && !inherits {
            let new = Meeting { pc: reconverge, mask: other.mask, outer: other.meeting };
            other.meeting = Some(warp.add_meeting(new));
        }
        let fragment = &mut warp.fragments[f];
        fragment.meeting = other.meeting;
        fragment.mask &= !taken;
        fragment.pc += 1;
        other.mask = taken;
        other.pc = target;
        warp.fragments.push(other);
    }

    /// `brx.idx`: each lane goes where its index points.
    pub fn branch_table(&mut self, at: At, index: u16, targets: &[u32], reconverge: u32) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let mut groups: Vec<(u32, u32)> = Vec::new();
        for lane in lanes(mask) {
            let value = self.warps[w].registers.b32[usize::from(index)][lane];
            if self.warps[w].registers.defined(Reg::B32(index)) >> lane & 1 == 0 {
                return Err(self.undefined_operand(w, site, Reg::B32(index), "the index of the branch table"));
            }
            let Some(&target) = targets.get(value as usize) else {
                return Err(Some(Box::new(self.problem(
                    "branch-table",
                    site,
                    format!(
                        "lane {lane} of {} takes entry {value} of a branch table of {}",
                        self.warp_name(w),
                        targets.len()
                    ),
                    "The index of brx.idx must be smaller than the number of targets (PTX ISA 9.7.12.4).",
                    "Check the index before the branch.".into(),
                ))));
            };
            match groups.iter_mut().find(|(known, _)| *known == target) {
                Some((_, who)) => *who |= 1 << lane,
                None => groups.push((target, 1 << lane)),
            }
        }
        let active = self.warps[w].fragments[f].mask;
        // Lanes that the guard keeps go on behind the branch; the last group stays with this fragment.
        let stays = if mask == active { groups.pop() } else { None };
        for (target, who) in groups {
            self.part(w, f, who, target, reconverge);
            // `part` moves the rest behind the branch.
            self.warps[w].fragments[f].pc -= 1;
        }
        let fragment = &mut self.warps[w].fragments[f];
        fragment.pc = stays.map_or(fragment.pc + 1, |(target, _)| target);
        Ok(())
    }

    /// Lanes end.
    pub fn exit(&mut self, w: usize, f: usize, mask: u32) {
        let time = self.warps[w].fragments[f].ready_at;
        self.end = self.end.max(time);
        let site = self.site(w, f);
        let cta = self.warps[w].cta;
        self.check_bulk_at_exit(w, mask);
        self.check_wgmma_at_exit(w);
        self.record.add(w, mask, site, What::Exit);
        let warp = &mut self.warps[w];
        if self.ctas.len() > 1 && warp.live == mask && warp.cluster_arrived & mask == 0 {
            // The cluster barrier waits for it, or for this.
            self.cluster_barrier.views.order.join(&warp.views.before_now());
        }
        warp.live &= !mask;
        for meeting in &mut warp.meetings {
            meeting.mask &= !mask;
        }
        warp.fragments[f].mask &= !mask;
        if warp.fragments[f].mask == 0 {
            warp.fragments.remove(f);
        } else {
            warp.fragments[f].pc += 1;
        }
        self.meet(w);
        if self.warps[w].live == 0 {
            self.acted();
            let index = self.warps[w].index;
            self.trace(cta, Actor::Warp(index), Span::of_warp(w, time, time), site, || EventKind::Exit);
        }
        self.release_warp_sync(w);
        for id in 0..16 {
            self.check_named(cta, id);
        }
        self.check_cluster_barrier();
    }
}
