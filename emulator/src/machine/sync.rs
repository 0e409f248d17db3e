//! CTA barriers, warp synchronisation and mbarriers.

use super::cluster::{Cluster, Stop};
use super::mbarrier::Used;
use super::names::{counted, counted_are};
use super::registers::lanes;
use super::state::{At, Span};
use super::warp::{NarrowFence, State};
use crate::order::Views;
use crate::program::op::{BarrierVote, Op};
use crate::protocol::What;
use crate::report::{Actor, EventKind};

impl Cluster<'_> {
    /// Instructions by which warps and engines meet.
    pub fn synchronise(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
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
                            // As an engine does it: of memory it tells nothing.
                            let issue = self.record.add(w, 1 << lane, site, What::Issue { tells: 1, commit: None });
                            self.record.done(issue, barrier, 0, bytes);
                            self.complete_bytes(barrier, bytes, site)?;
                            continue;
                        }
                        self.record.add(w, 1 << lane, site, What::Arrive { barrier, count: 0, bytes });
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
                self.async_commit(at.w);
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
        let opcode =
            text.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or("this instruction").to_string();
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
            "Move it out of the part that one elected lane executes.".into(),
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
        let first = mask.trailing_zeros() as usize;
        let member = self.warps[w].registers.b32[usize::from(m)][first];
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
        warp.fragments[f].state = State::WarpSync(member);
        warp.fragments[f].pc += 1;
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
            let waiting = |f: &&mut super::warp::Fragment| f.state == State::WarpSync(member);
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

    /// `votes`: the lanes whose predicate holds, of `barrier.red`.
    fn cta_barrier(
        &mut self,
        at: At,
        (id, threads): (u16, Option<u16>),
        wait: bool,
        aligned: bool,
        votes: Option<u32>,
    ) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        // A CTA barrier does not wait for lanes that have ended.
        if aligned && mask != self.warps[w].live {
            self.whole_warp(w, mask, site)?;
        }
        let first = mask.trailing_zeros() as usize;
        let value = |r: u16| self.warps[w].registers.b32[usize::from(r)][first];
        let id = value(id);
        let count = threads.map(value);
        if id > 15 || count.is_some_and(|c| c == 0 || !c.is_multiple_of(32) || c > 1024) {
            let count = count.map_or(String::new(), |c| format!(", {}", counted(c, "thread")));
            return Err(Some(Box::new(self.problem(
                "named-barrier",
                site,
                format!("barrier {id}{count}"),
                "A CTA has barriers 0 to 15, and a thread count is a multiple of 32 (PTX ISA 9.7.13.1).",
                "Use a number below 16, and count whole warps.".into(),
            ))));
        }
        let c = self.warps[w].cta;
        let time = self.warps[w].fragments[f].ready_at;
        let named = &mut self.ctas[c].named[id as usize];
        let in_use = named.in_use();
        if in_use && named.expected != count {
            let (before, site_before) = (named.expected, named.site);
            let text = |c: Option<u32>| c.map_or("all threads".to_string(), |c| counted(c, "thread"));
            let mut diagnostic = self.problem(
                "named-barrier",
                site,
                format!("barrier {id} is used for {} and for {} in the same phase", text(before), text(count)),
                "All warps that take part in one phase of a barrier give the same thread count (PTX ISA 9.7.13.1).",
                "Give the same count where the same warps meet. Where they are two groups, give each a barrier number of its own.".into(),
            );
            diagnostic.labels.push(self.label(site_before, format!("the first to arrive said {}", text(before))));
            return Err(Some(Box::new(diagnostic)));
        }
        if in_use && named.votes.is_some() != votes.is_some() {
            let site_before = named.site;
            let mut diagnostic = self.problem(
                "named-barrier",
                site,
                format!("barrier {id} is used by barrier.red and by another instruction in the same phase"),
                "barrier.red meets only barrier.red at a barrier; what comes of other mixtures is not defined (PTX ISA, barrier).",
                "Give each of them a barrier number of its own.".into(),
            );
            diagnostic.labels.push(self.label(site_before, "the first to arrive"));
            return Err(Some(Box::new(diagnostic)));
        }
        named.expected = count;
        named.site = site;
        if let Some(votes) = votes {
            let (hold, all) = named.votes.unwrap_or_default();
            named.votes = Some((hold + votes.count_ones(), all + mask.count_ones()));
        }
        named.latest = named.latest.max(time);
        let warp = &mut self.warps[w];
        warp.release_to(&mut named.views);
        warp.halves.tell(&mut named.halves);
        let whole = named.arrive(warp.index, mask, warp.live);
        let what = What::Named { cta: c as u8, id: id as u8, expected: count.map(|count| count as u16) };
        self.record.add(w, mask, site, what);
        if wait {
            let fragment = &mut self.warps[w].fragments[f];
            fragment.state = State::CtaBarrier(id);
            fragment.pc += 1;
        }
        if whole {
            self.complete_named(c, id);
        }
        Ok(())
    }

    /// Lanes have ended: lets the waiters of a CTA barrier go if all others have arrived.
    pub fn check_named(&mut self, c: usize, id: u32) {
        let named = &mut self.ctas[c].named[id as usize];
        for warp in self.warps.iter().filter(|w| w.cta == c) {
            named.arrive(warp.index, 0, warp.live);
        }
        self.complete_named(c, id);
    }

    /// Lets the waiters of a CTA barrier go if all have arrived.
    fn complete_named(&mut self, c: usize, id: u32) {
        let live = self.live_threads(c);
        let named = &mut self.ctas[c].named[id as usize];
        let expected = named.expected.unwrap_or(live);
        if named.arrived == 0 || named.arrived < expected {
            return;
        }
        let remembered = named.remembered();
        let done = std::mem::replace(named, remembered);
        let time = done.latest + self.costs.cta_barrier + 2 * u64::from(expected / 32);
        let (cta, number) = (c as u8, id as u8);
        self.record.add(0, 0, done.site, What::NamedDone { cta, id: number });
        for w in 0..self.warps.len() {
            if self.warps[w].cta != c {
                continue;
            }
            let mut joined = false;
            for f in 0..self.warps[w].fragments.len() {
                let fragment = &mut self.warps[w].fragments[f];
                if fragment.state != State::CtaBarrier(id) {
                    continue;
                }
                let (start, pc, mask) = (fragment.ready_at, fragment.pc, fragment.mask);
                fragment.state = State::Ready;
                fragment.ready_at = time;
                joined = true;
                let inst = self.kernel.code.get(pc.saturating_sub(1) as usize);
                let site = inst.map_or(done.site, |i| i.site);
                self.record.add(w, mask, site, What::NamedPassed { cta, id: number });
                let op = inst.map(|i| &i.op);
                if let (Some((hold, all)), Some(&Op::BarrierReduce { what, d, .. })) = (done.votes, op) {
                    let value = match what {
                        BarrierVote::And => u32::from(hold == all),
                        BarrierVote::Or => u32::from(hold != 0),
                        BarrierVote::Count => hold,
                    };
                    let registers = &mut self.warps[w].registers;
                    lanes(mask).for_each(|lane| registers.set_lane(d, lane, value.into()));
                    registers.set_defined(d, mask, u32::MAX);
                }
                // Now and then one comes so late that the others are done with what follows.
                let most = if self.perturbed(8) { 6000 } else { 200 };
                let delay = self.jitter(most);
                self.warps[w].fragments[f].ready_at += delay;
                let actor = Actor::Warp(self.warps[w].index);
                self.trace(c, actor, Span::of_warp(w, start, time), site, || EventKind::CtaBarrier {
                    id,
                    threads: expected,
                });
            }
            if joined {
                self.warps[w].views.join(&done.views);
                done.halves.iter().for_each(|halves| self.warps[w].halves.join(halves));
                self.warps[w].synchronised();
            }
        }
        self.acted();
        self.lower_horizon(time);
    }

    /// `barrier.cluster.arrive`: counts the lanes; what they know goes to all that wait.
    fn cluster_arrive(&mut self, at: At, relaxed: bool, aligned: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        if aligned {
            self.whole_warp(w, mask, site)?;
        }
        let twice = (self.warps[w].cluster_arrived | self.warps[w].cluster_passed) & mask;
        if twice != 0 {
            let mut diagnostic = self.problem(
                "cluster-barrier",
                site,
                format!("{} arrives twice at the cluster barrier without waiting in between", self.warp_name(w)),
                "Each thread arrives once in a phase and waits before it arrives again (PTX ISA, barrier.cluster).",
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
            // Who has heard of it is told apart from who has heard of earlier ones.
            warp.advance();
            warp.relaxed_arrivals.push((site, warp.epoch, warp.copies.epoch));
            let near = warp.fenced_release();
            if self.ctas.len() == 1 {
                self.cluster_barrier.views.join(&near);
            } else {
                self.cluster_barrier.views.join(&warp.fenced_release_beyond());
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

    fn cluster_wait(&mut self, at: At, aligned: bool) -> Result<(), Stop> {
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
        let fragment = &mut self.warps[w].fragments[f];
        fragment.state = State::ClusterBarrier;
        fragment.pc += 1;
        Ok(())
    }

    /// Completes the phase of the cluster barrier when all live threads of the cluster have arrived.
    pub fn check_cluster_barrier(&mut self) {
        let complete = self.warps.iter().all(|w| w.live & !w.cluster_arrived == 0);
        if !complete || self.warps.iter().all(|w| w.cluster_arrived & w.live == 0) {
            return;
        }
        let done = std::mem::take(&mut self.cluster_barrier);
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
