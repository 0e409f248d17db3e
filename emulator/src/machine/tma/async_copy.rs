//! `cp.async`: small asynchronous copies of each thread, in groups (PTX ISA 9.7.9.25.3).

use super::copy_lanes::To;
use crate::machine::barrier::mbarrier_ops::Arrival;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::groups::GroupWait;
use crate::machine::explain::names::counted;
use crate::machine::layout::copied::CHUNK;
use crate::machine::memory::Runs;
use crate::machine::memory::origins::Source;
use crate::machine::state::{ActorKind, At, CopiesArrival, Pending, Span};
use crate::machine::warp::registers::lanes;
use crate::order::{Stamp, Views};
use crate::program::limits;
use crate::program::op::Address;
use crate::protocol::What;

/// Epochs that an arrival closed are remembered, so many.
const OPEN: usize = 64;

impl Cluster<'_> {
    /// Copies up to 16 bytes a lane. The data is there at once; that nobody may rely on it before the group was waited for
    /// is checked by the order of accesses.
    pub fn async_copy(
        &mut self,
        at: At,
        to: &Address,
        from: &Address,
        bytes: u8,
        read: Option<u16>,
    ) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let bytes = u32::from(bytes);
        let actor = self.queue_actor(w, |warp| &mut warp.copies, ActorKind::AsyncCopies);
        let stamp = Stamp::new(actor, self.warps[w].copies.epoch + 1, site, self.index);
        for lane in lanes(mask) {
            let slot = self.shared_slot(at, lane, to, false, bytes, bytes)?;
            let wanted = read.map_or(bytes, |r| self.warps[w].registers.b32[usize::from(r)][lane]);
            if let Some(beyond) = limits::source_bytes(|| self.thread_name(w, lane), bytes, wanted.into()) {
                return Err(self.beyond(site, beyond));
            }
            let address = (self.warps[w].registers.lane(from.base, lane) as u64).wrapping_add(from.offset as u64);
            if wanted > 0 {
                let found = self.global.find(address, wanted.into());
                let Some((buffer, offset)) = found.filter(|_| address.is_multiple_of(bytes.into())) else {
                    let (code, why) = match found {
                        Some(_) => ("misaligned-address", format!("it is no multiple of {bytes}")),
                        None => ("out-of-bounds", self.global.nearest(address)),
                    };
                    return Err(Some(Box::new(self.problem(
                        code,
                        site,
                        format!(
                            "{} would copy {} from {address:#x}: {why}",
                            self.thread_name(w, lane),
                            counted(wanted, "byte")
                        ),
                        "cp.async reads within an allocation, aligned to the bytes it copies (PTX ISA 9.7.9.25.3.1).",
                        "Check row, column and row pitch of the address.".into(),
                    ))));
                };
                let runs = Runs::one(buffer, offset, wanted);
                self.touch_global(w, self.warps[w].fragments[f].ready_at, runs, stamp, false);
                let shared = &mut self.ctas[slot.cta].shared;
                self.outbox.copy(&self.global, buffer, offset, wanted as usize, shared, slot.offset as usize);
                if self.options.judges() && self.blank.is_none() {
                    match wanted as usize {
                        CHUNK => self.chunk_copied(slot, (buffer, offset), site),
                        _ => self.inputs.read_otherwise(buffer),
                    }
                }
                if !self.global.buffers[buffer].whole {
                    self.keep_origins(site, slot, wanted, Source::Buffer(buffer));
                }
            }
            for n in wanted..bytes {
                self.ctas[slot.cta].shared.store((slot.offset + n) as usize, 1, 0, true);
            }
            self.touch_shared(w, slot, bytes, stamp, true);
        }
        let done = self.warps[w].fragments[f].ready_at + self.costs.global_load;
        let warp = &mut self.warps[w];
        warp.copies.busy_until = warp.copies.busy_until.max(done);
        warp.copies_untold.issued(warp.copies.epoch + 1, mask);
        Ok(())
    }

    /// `cp.async.commit_group`: what was issued so far is one more group.
    pub fn async_commit(&mut self, w: usize, mask: u32) {
        let warp = &mut self.warps[w];
        warp.copies.epoch += 1;
        warp.copies_untold.committed(mask);
    }

    /// `cp.async.mbarrier.arrive`: each lane arrives when its copies so far are complete. Unless the arrivals are `counted` among those
    /// that the mbarrier was initialised for, the phase takes as many more first (PTX ISA, cp.async.mbarrier.arrive).
    pub fn async_arrive(&mut self, at: At, address: &Address, counted: bool) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let now = self.warps[w].fragments[f].ready_at;
        let warp = &mut self.warps[w];
        if warp.copies.is_used() {
            warp.copies.epoch += 1;
            warp.copies_open.push(warp.copies.epoch);
            // Nobody waits for so old ones.
            if warp.copies_open.len() > OPEN {
                warp.copies_open.remove(0);
            }
        }
        let order = warp.starts();
        for (slot, who) in self.barrier_addresses(at, address, false)? {
            let barrier = self.barrier(w, slot, site, "arrived at")?;
            let count = who.count_ones();
            if !counted && self.barriers[barrier as usize].raise_pending(count).is_err() {
                return Err(Some(Box::new(self.problem(
                    "mbarrier-count",
                    site,
                    format!("{} would take more than 1,048,575 arrivals", self.barrier_name(barrier)),
                    "The pending count of an mbarrier is at most 1,048,575 (PTX ISA, cp.async.mbarrier.arrive).",
                    "Write .noinc, and initialise the mbarrier for these arrivals.".into(),
                ))));
            }
            let issue = counted.then(|| self.record.add(w, who, site, What::Issue { tells: 1, commit: None }));
            let order = order.clone();
            // Each lane tells of its own copies.
            let warp = &mut self.warps[w];
            let mut copies = warp.copies;
            copies.epoch = warp.copies_untold.told(To::Barrier(barrier), who, copies.epoch, false).unwrap_or(0);
            let time = now.max(copies.busy_until) + self.jitter(300);
            self.copies_arrivals.push(CopiesArrival {
                site,
                issue,
                barrier,
                count,
                warp: w,
                issued: now,
                copies,
                order,
            });
            self.push_event(time, Pending::CopiesArrive(self.copies_arrivals.len() - 1));
        }
        self.warps[w].fragments[f].ready_at += self.costs.mbarrier;
        Ok(())
    }

    /// The copies are complete: the arrivals.
    pub fn copies_arrive(&mut self, n: usize, time: u64) -> Result<(), Stop> {
        let arrival = &mut self.copies_arrivals[n];
        let mut views = Views::default();
        views.order = std::mem::take(&mut arrival.order);
        let &mut CopiesArrival { site, issue, barrier, count, warp, issued, copies, .. } = arrival;
        // It tells of the copies, of nothing else that its thread did.
        if copies.epoch > 0 {
            copies.raise(&mut views.hb, copies.epoch);
        }
        if let Some(issue) = issue {
            self.record.done(issue, barrier, count, 0);
        }
        let arrival = Arrival { count, announced: 0, site, engine: true };
        self.arrive(barrier, arrival, &views, Span { w: warp, issued, start: time, end: time })
    }

    /// `cp.async.wait_group`: all but so many groups are complete; `None`: everything is, committed or not.
    pub fn async_wait(&mut self, at: At, pending: Option<u32>) {
        let warp = &mut self.warps[at.w];
        warp.copies_waited = pending.map(|pending| GroupWait {
            site: at.site,
            pending,
            next: warp.copies.epoch + 1,
            open: false,
            read: false,
        });
        let last = match pending {
            None => warp.copies.epoch + 1,
            Some(n) => {
                let open = |epoch: u32| warp.copies_open.contains(&epoch);
                let (mut last, mut left) = (warp.copies.epoch, n);
                while last > 0 && (left > 0 || open(last)) {
                    left -= u32::from(left > 0 && !open(last));
                    last -= 1;
                }
                last
            }
        };
        // Each lane waits for its own copies: those of the others may still write.
        let told = warp.copies_untold.told(To::Warp, at.mask, last, pending.is_some());
        if let Some(told) = told.filter(|_| warp.copies.is_used()) {
            warp.views.raise(warp.copies.actor, told);
        }
        if pending.is_none() {
            warp.copies.epoch += 1;
        }
        let fragment = &mut warp.fragments[at.f];
        fragment.ready_at = fragment.ready_at.max(warp.copies.busy_until);
    }
}
