//! Cluster launch control: a running cluster takes the place of one that has not begun (PTX ISA 9.7.13.17, 9.7.13.18).
//!
//! The 16 bytes of a response are opaque; here they hold a flag and the coordinates of the first CTA.

use super::outbox::Item;
use crate::diagnostic::Diagnostic;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{At, Pending, Slot};
use crate::machine::warp::registers::lanes;
use crate::order::Clock;
use crate::program::op::{Address, Reg};
use crate::protocol::{Timing, What};
use crate::report::Memory;

/// Clusters of the launch that have not begun, in order.
#[derive(Debug)]
pub struct Queue {
    pub next: u64,
    pub total: u64,
    /// Clusters in x, y, z.
    pub clusters: [u64; 3],
}

impl Queue {
    pub fn take(&mut self) -> Option<u64> {
        let index = self.next;
        (index < self.total).then(|| {
            self.next += 1;
            index
        })
    }

    /// Where a cluster's first CTA stands in the grid.
    pub fn first_cta(&self, index: u64, extent: [u32; 3]) -> [u32; 3] {
        let [nx, ny, _] = self.clusters;
        let place = [index % nx, index / nx % ny, index / (nx * ny)];
        std::array::from_fn(|n| place[n] as u32 * extent[n])
    }
}

/// A request on its way.
#[derive(Debug)]
pub struct Cancel {
    site: u32,
    /// Who asks.
    warp: usize,
    /// Its step in the record.
    issue: u32,
    /// Where the response goes: place, mbarrier, and what that will say of itself when its current phase is complete.
    targets: Vec<(Slot, u32, u32)>,
    /// What came before the request.
    order: Clock,
    /// When the response can be there.
    done_at: u64,
}

/// A response on its way.
#[derive(Debug)]
pub struct Response {
    pub site: u32,
    /// Who has asked.
    pub warp: usize,
    /// The request's step in the record.
    pub issue: u32,
    pub bytes: u128,
    pub targets: Vec<(Slot, u32, u32)>,
    /// What came before the request.
    pub order: Clock,
}

impl Cluster<'_> {
    pub fn try_cancel(&mut self, at: At, to: &Address, barrier: &Address, all: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        if let Some((stamp, seen)) = self.ctas[self.warps[w].cta].refused {
            self.guessed |= !self.clocks;
            if self.clocks && self.warps[w].has_heard_of(stamp.actor, stamp.epoch) {
                return Err(Some(Box::new(self.cancel_after_refusal(site, seen))));
            }
        }
        if mask.count_ones() > 1 {
            self.many_lanes(w, mask, site, "clusterlaunchcontrol.try_cancel", "each asks for a cluster of its own");
        }
        for lane in lanes(mask) {
            let one = At { mask: 1 << lane, ..at };
            let slot = self.shared_slot(one, lane, to, false, 16, 16)?;
            let Some(&(named, _)) = self.barrier_addresses(one, barrier, false)?.first() else { continue };
            let ranks = if all { (0..self.ctas.len()).collect() } else { vec![self.warps[w].cta] };
            let mut targets = Vec::new();
            for cta in ranks {
                let barrier = self.barrier(w, Slot { cta, ..named }, site, "named by a request")?;
                let slot = Slot { cta, ..slot };
                let stamp = self.barriers[barrier as usize].stamp(site, self.index);
                self.touch_shared(w, slot, 16, stamp, true);
                let b = &mut self.barriers[barrier as usize];
                b.promise(cta, site, false);
                targets.push((slot, barrier, b.next_epoch()));
            }
            let time = self.warps[w].fragments[f].ready_at;
            let done_at = time + self.costs.tma_latency + self.jitter(1000);
            let order = self.warps[w].starts();
            self.awaited += 1;
            let issue = self.record.add(w, 1 << lane, site, What::Issue { tells: targets.len() as u8, commit: None });
            self.record.depends_on_timing(site, Timing::LaunchControl);
            self.outbox.push(time, Item::Cancel(Box::new(Cancel { site, warp: w, issue, targets, order, done_at })));
        }
        Ok(())
    }

    /// The window has ended: the chip has decided which cluster, if any, the request takes over.
    pub fn answer_cancel(&mut self, request: Cancel, first_cta: Option<[u32; 3]>, time: u64) {
        let bytes = first_cta.map_or(0, |first| {
            let [x, y, z] = first.map(u128::from);
            1 | x << 32 | y << 64 | z << 96
        });
        let Cancel { site, warp, issue, targets, order, done_at } = request;
        self.awaited -= 1;
        self.responses.push(Response { site, warp, issue, bytes, targets, order });
        self.push_event(done_at.max(time), Pending::Response(self.responses.len() - 1));
    }

    /// A response is there.
    pub fn respond(&mut self, n: usize, time: u64) {
        let Response { site, warp, issue, bytes, ref targets, ref order } = self.responses[n];
        let order = order.clone();
        let mut data = Memory::undefined(16);
        data.store(0, 16, bytes, true);
        for (slot, barrier, epoch) in targets.clone() {
            self.ctas[slot.cta].shared.copy_from(slot.offset as usize, &data, 0, 16);
            if self.barriers[barrier as usize].next_epoch() != epoch {
                self.bytes_after_phase(barrier, epoch, site, 16);
            }
            let b = &mut self.barriers[barrier as usize];
            b.traffic.bring(site, 16);
            b.comes(warp, site, true);
            b.bytes -= 16;
            self.record.done(issue, barrier, 0, 16);
            b.current.views.order.join(&order);
            self.try_complete(barrier, time);
        }
    }

    /// The warps whose requests, by this statement, have responses that write a byte of a CTA's shared memory.
    pub fn askers(&self, site: u32, cta: usize, byte: u32) -> impl Iterator<Item = usize> {
        let there = move |slot: &Slot| slot.cta == cta && (slot.offset..slot.offset + 16).contains(&byte);
        let answered = self.responses.iter().filter(move |response| response.site == site);
        let theirs = answered.filter(move |response| response.targets.iter().any(|(slot, ..)| there(slot)));
        theirs.map(|response| response.warp)
    }

    /// A CTA that knows of a refusal asks again.
    fn cancel_after_refusal(&self, site: u32, seen: u32) -> Diagnostic {
        let mut diagnostic = self.problem(
            "cancel-after-refusal",
            site,
            "this CTA asks for another cluster although it has seen that a request was refused".into(),
            "Once a CTA has observed that a clusterlaunchcontrol.try_cancel failed, a further one is undefined (PTX ISA, \
             clusterlaunchcontrol.try_cancel).",
            "Leave the loop when is_canceled is false, before the next request.".into(),
        );
        diagnostic.labels.push(self.label(seen, "is_canceled was false here"));
        diagnostic
    }

    /// `query_cancel`: reads a response out of registers. The lanes whose request was refused: there, `is_canceled` is false, and no CTA is
    /// the first (its number is undefined, as the documentation of NVIDIA's Tilus says).
    pub fn query(&mut self, w: usize, mask: u32, response: Reg, p: Option<u16>, d: &[Reg], first: u8) -> u32 {
        let mut refused = 0;
        for lane in lanes(mask) {
            let registers = &mut self.warps[w].registers;
            let bytes = registers.lane(response, lane);
            refused |= u32::from(bytes & 1 == 0) << lane;
            if let Some(p) = p {
                registers.set_lane(Reg::Pred(p), lane, bytes & 1);
            }
            for (n, &reg) in d.iter().enumerate() {
                let value = bytes >> (32 * (1 + usize::from(first) + n)) & 0xffff_ffff;
                registers.set_lane(reg, lane, value);
            }
        }
        refused
    }

    /// A warp has seen that a request of its CTA was refused.
    pub fn see_refusal(&mut self, w: usize, mask: u32, site: u32) {
        let stamp = self.stamp(w, mask, site);
        let refused = &mut self.ctas[self.warps[w].cta].refused;
        refused.get_or_insert((stamp, site));
    }
}
