//! What is done by instructions through which warps and engines meet; lanes of a warp that meet, and fences between proxies.

use super::mbarrier::Used;
use super::mbarrier_ops::recorded;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::names::counted_are;
use crate::machine::state::{At, Span};
use crate::machine::warp::registers::lanes;
use crate::machine::warp::{NarrowFence, State, Warp};
use crate::program::op::Op;
use crate::program::opcode;
use crate::protocol::What;
use crate::report::EventKind;

impl Cluster<'_> {
    /// Instructions by which warps and engines meet.
    pub fn synchronise(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        if op.tells() {
            self.warps[w].untold.told(at.mask);
        }
        match op {
            op if op.exchanges() => self.exchange(at, op),
            Op::WarpSync { mask: m } => self.warp_sync(at, *m),
            Op::CtaBarrier { id, threads, wait, aligned } => {
                self.cta_barrier(at, (*id, *threads), *wait, *aligned, None)
            }
            Op::BarrierReduce { id, threads, aligned, a, negated, .. } => {
                let votes = self.warps[w].registers.pred[usize::from(*a)] ^ if *negated { u32::MAX } else { 0 };
                self.cta_barrier(at, (*id, *threads), true, *aligned, Some(votes & at.mask))
            }
            Op::BarrierInit { address, count } => self.barrier_init(at, address, *count),
            Op::BarrierInval { address } => {
                for (slot, _) in self.barrier_addresses(at, address, false)? {
                    let place = (slot.cta, slot.offset);
                    let was_one =
                        || self.barriers.iter().any(|b| (b.cta, b.offset) == place && b.invalidated.is_some());
                    if !self.barrier_at.contains_key(&place) && !was_one() {
                        self.note_nothing_invalidated(slot.offset, site);
                        continue;
                    }
                    let barrier = self.barrier(w, slot, site, "invalidated")?;
                    if !self.check_promises(w, barrier, site) && !self.check_commits(w, barrier, site) {
                        self.check_uses(w, barrier, site);
                    }
                    self.record.add(w, at.mask, site, What::Inval { barrier });
                    let ended = &mut self.barriers[barrier as usize];
                    (ended.valid, ended.invalidated) = (false, Some(site));
                    self.barrier_at.remove(&(slot.cta, slot.offset));
                }
                Ok(())
            }
            Op::BarrierArrive { .. } => self.barrier_arrive(at, op),
            Op::BarrierExpect { address, bytes, remote, complete } => {
                for (slot, who) in self.barrier_addresses(at, address, *remote)? {
                    let barrier = self.barrier(w, slot, site, "used")?;
                    let epoch = self.warps[w].epoch;
                    self.barriers[barrier as usize].used(Used { warp: w, epoch, site });
                    if slot.cta != self.warps[w].cta {
                        self.reach(w, slot.cta, site);
                        // The phase does not complete before.
                        let order = self.warps[w].views.before_now();
                        self.barriers[barrier as usize].current.views.order.join(&order);
                    }
                    for lane in lanes(who) {
                        let bytes = self.warps[w].registers.b32[usize::from(*bytes)][lane];
                        if *complete {
                            // Of memory it tells nothing, as if an engine did it.
                            self.record.add(
                                w,
                                1 << lane,
                                site,
                                What::Arrive { barrier, count: 0, bytes: -recorded(bytes) },
                            );
                            self.complete_bytes(barrier, bytes, site)?;
                            continue;
                        }
                        self.record.add(w, 1 << lane, site, What::Arrive { barrier, count: 0, bytes: recorded(bytes) });
                        self.expect(barrier, bytes, site)?;
                        let (actor, time) = self.when(w, f);
                        let (id, span) = (self.barrier_id(barrier), Span::of_warp(w, time, time));
                        let kind = || EventKind::BarrierExpect { barrier: id, announced: bytes };
                        self.trace(slot.cta, actor, span, site, kind);
                    }
                    let time = self.warps[w].fragments[f].ready_at;
                    self.try_complete(barrier, time);
                }
                Ok(())
            }
            Op::BarrierWait { .. } => self.barrier_wait(at, op),
            Op::ClusterArrive { relaxed, aligned } => self.cluster_arrive(at, *relaxed, *aligned),
            Op::SetRegisters { count, more } => self.set_registers(at, *count, *more),
            Op::ClusterWait { aligned } => self.cluster_wait(at, *aligned),
            Op::Tma(op) => self.tma(at, op),
            Op::BulkCommit => self.bulk_commit(at),
            Op::BulkWait { pending, read } => self.bulk_wait(at, *pending, *read),
            Op::AsyncCopy { to, from, bytes, read } => self.async_copy(at, to, from, *bytes, *read),
            Op::AsyncCommit => {
                self.async_commit(at.w, at.mask);
                Ok(())
            }
            Op::AsyncArrive { address, counted } => self.async_arrive(at, address, *counted),
            Op::AsyncWait { pending } => {
                self.async_wait(at, *pending);
                Ok(())
            }
            Op::MatrixLoad { address, shape, d } => self.matrix(at, address, *shape, d, true),
            Op::MatrixStore { address, shape, s } => self.matrix(at, address, *shape, s, false),
            Op::AsyncStore(op) => self.async_store(at, op),
            Op::Fill { space, address, bytes } => self.fill(at, *space, address, *bytes),
            Op::TryCancel { to, barrier, all } => self.try_cancel(at, to, barrier, *all),
            Op::MapReplace { .. } | Op::MapPublish { .. } | Op::MapAcquire { .. } | Op::Discard { .. } => {
                self.tensor_maps(at, op)
            }
            op => self.tensor(at, op),
        }
    }

    /// `fence.proxy.async` by some lanes, of shared memory, of global memory or of both.
    pub fn proxy_fence(&mut self, w: usize, mask: u32, (shared, global): (bool, bool), site: u32) {
        let warp = &mut self.warps[w];
        let epoch = warp.epoch;
        warp.proxy_fence(mask, shared, global);
        if shared {
            warp.proxy_fences.retain(|known| known.0 != site);
            warp.proxy_fences.push((site, epoch));
        }
        let why = match (shared, global) {
            (false, _) => "this fence covers global memory only".to_string(),
            _ if mask != warp.live => format!(
                "{} of warp {} executed this fence: it covers no store of the others",
                Self::lanes_text(mask),
                warp.index
            ),
            _ => return,
        };
        match warp.narrow_fences.iter_mut().find(|known| known.site == site) {
            Some(known) => known.epoch = epoch,
            None => warp.narrow_fences.push(NarrowFence { site, why, epoch }),
        }
    }

    /// `.aligned` and warp-wide instructions: all lanes of the warp execute them together.
    pub fn whole_warp(&mut self, w: usize, mask: u32, site: u32) -> Result<(), Stop> {
        let warp = &self.warps[w];
        if mask == warp.live && (warp.live == u32::MAX || self.is_last_partial(w)) {
            self.record.meet(w, mask, site);
            return Ok(());
        }
        let missing = warp.live & !mask;
        let text = self.place(site).text;
        let opcode = opcode(&text);
        let mut diagnostic = self.problem(
            "aligned-lanes-missing",
            site,
            format!(
                "{} of warp {} reached `{opcode}`, which all 32 lanes must execute together",
                Self::lanes_text(mask),
                warp.index
            ),
            "An aligned instruction must be executed by all threads of the warp together; otherwise its behaviour is \
             undefined (PTX ISA 9.7.16.7.1 for tcgen05.alloc, 9.7.16.8 for tcgen05.ld, 9.7.13.1 for bar).",
            match mask.count_ones() {
                1 => "Move it out of the part that one elected lane executes.",
                _ => "Let whole warps branch, by the warp's number and not by the thread's, or put it in front of the branch.",
            }
            .into(),
        );
        for fragment in warp.fragments.iter().filter(|fr| fr.mask & missing != 0) {
            let at = self.kernel.code.get(fragment.pc as usize).map_or(0, |i| i.site);
            let elsewhere = counted_are((fragment.mask & missing).count_ones(), "lane");
            let text = if at == site { " kept away by the guard" } else { " here" };
            diagnostic.labels.push(self.label(at, elsewhere + text));
        }
        Err(Some(Box::new(diagnostic)))
    }

    /// The last warp of a CTA whose size is no multiple of 32 never had all lanes.
    fn is_last_partial(&self, w: usize) -> bool {
        let threads: u32 = self.launch.block.iter().product();
        !threads.is_multiple_of(32)
            && self.warps[w].index == threads / 32
            && self.warps[w].live == (1 << (threads % 32)) - 1
    }

    fn warp_sync(&mut self, at: At, m: u16) -> Result<(), Stop> {
        let At { w, f, mask, .. } = at;
        let Warp { registers, live, .. } = &self.warps[w];
        let (member, same) = registers.first_value(m, mask);
        // Tiles of less than a warp, each with a mask of its own: none waits for another.
        if same != mask && registers.by_value(m, mask).all(|(member, lanes)| member & live == lanes) {
            registers.by_value(m, mask).for_each(|(_, lanes)| self.record.meet(w, lanes, at.site));
            if mask == *live {
                self.warps[w].synchronised();
            }
            return Ok(());
        }
        if mask & !member != 0 {
            return Err(Some(Box::new(self.problem(
                "lanes-missing",
                at.site,
                format!("the lanes {:#010x} execute this, its member mask is {member:#010x}", mask),
                "A lane that executes bar.warp.sync must be in the member mask (PTX ISA 9.7.13.2).",
                "Name all lanes that come here in the mask.".into(),
            ))));
        }
        let warp = &mut self.warps[w];
        if member & warp.live & !mask == 0 {
            if mask == warp.live {
                warp.synchronised();
            }
            self.record.meet(w, mask, at.site);
            return Ok(());
        }
        self.wait_apart(w, f, mask, State::WarpSync(member));
        self.release_warp_sync(w);
        Ok(())
    }

    /// Lanes that wait in `bar.warp.sync` go on once all live lanes of their mask are there.
    pub fn release_warp_sync(&mut self, w: usize) {
        let warp = &mut self.warps[w];
        let masks: Vec<u32> = warp
            .fragments
            .iter()
            .filter_map(|f| if let State::WarpSync(m) = f.state { Some(m) } else { None })
            .collect();
        let mut synchronised = false;
        for member in masks {
            let waiting = |f: &&mut crate::machine::warp::Fragment| f.state == State::WarpSync(member);
            let there = warp.fragments.iter_mut().filter(waiting).fold(0, |mask, f| mask | f.mask);
            if member & warp.live & !there == 0 {
                synchronised |= there == warp.live;
                let time = warp.fragments.iter_mut().filter(waiting).map(|f| f.ready_at).max().unwrap_or(0);
                self.record.meet(w, there, 0);
                for fragment in warp.fragments.iter_mut().filter(|f| f.state == State::WarpSync(member)) {
                    fragment.state = State::Ready;
                    fragment.ready_at = time;
                }
            }
        }
        if synchronised {
            warp.synchronised();
        }
    }
}
