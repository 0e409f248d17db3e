//! `tcgen05.mma` and `tcgen05.commit`: issue, the tensor core's work, completion.

use super::cluster::{ActorKind, At, Cluster, Commit, Pending, PendingMma, Race, RaceMemory, Stop};
use super::tensor::{self, COLUMNS, InstructionDescriptor, Operand, SharedDescriptor};
use super::warp::{Queue, lanes};
use crate::diagnostic::Severity;
use crate::order::{Access, Conflict, Stamp, Views};
use crate::program::RESERVED_SHARED;
use crate::program::op::Address;
use crate::report::{Actor, EventKind, Mma, OperandRead};

/// One cell of the shadow of tensor memory stands for a column of a lane quarter.
const CELL: u64 = 16;

impl Cluster<'_> {
    pub fn mma(
        &mut self,
        at: At,
        d: &Address,
        descriptors: [u16; 2],
        idesc: u16,
        accumulate: (u16, bool),
    ) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        let r = &self.warps[w].registers;
        let inputs = |lane: usize| {
            let p = r.pred[usize::from(accumulate.0)] >> lane & 1 == 1;
            (
                (r.lane(d.base, lane) as u32).wrapping_add(d.offset as u32),
                r.b64[usize::from(descriptors[0])][lane],
                r.b64[usize::from(descriptors[1])][lane],
                r.b32[usize::from(idesc)][lane],
                p != accumulate.1,
            )
        };
        let all: Vec<_> = lanes(mask).map(|lane| (lane, inputs(lane))).collect();
        if all.len() > 1 && all.iter().all(|(_, i)| *i == all[0].1) {
            self.many_lanes(w, mask, site, "tcgen05.mma", "the product is added that many times");
        }
        for (lane, (address, a, b, idesc, accumulate)) in all {
            self.issue_mma(at, lane, address, [a, b], idesc, accumulate)?;
        }
        Ok(())
    }

    /// An instruction that one thread issues for all is executed by several lanes.
    fn many_lanes(&mut self, w: usize, mask: u32, site: u32, what: &str, effect: &str) {
        if self.warps[w].multi_lane_sites.contains(&site) {
            return;
        }
        let first = self.warps[w].multi_lane_sites.is_empty();
        self.warps[w].multi_lane_sites.push(site);
        if !first {
            return;
        }
        let n = mask.count_ones();
        let mut diagnostic = self.problem(
            "issued-by-many-lanes",
            site,
            format!("{n} lanes of warp {} each issue this {what}: {effect}", self.warps[w].index),
            "One thread issues tcgen05.mma, tcgen05.cp or tcgen05.commit for all; each further thread starts the \
             operation once more (PTX ISA 9.7.16.5).",
            "Let one elected lane execute it (elect.sync).".into(),
        );
        diagnostic.severity = Severity::Finding;
        self.findings.add(diagnostic);
    }

    fn issue_mma(
        &mut self,
        at: At,
        lane: usize,
        address: u32,
        [a, b]: [u64; 2],
        idesc: u32,
        accumulate: bool,
    ) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let bad = |this: &Self, code, (found, allowed): (String, String), rule: &str| -> Stop {
            Some(Box::new(this.problem(code, site, found, rule, format!("Allowed: {allowed}."))))
        };
        let descriptor = InstructionDescriptor::decode(idesc)
            .map_err(|e| bad(self, "instruction-descriptor", e, "The instruction descriptor follows PTX ISA 9.7.16.4.2, its shapes 9.7.16.2.1; hardware may raise an illegal instruction or compute something else."))?;
        let matrix = |bits| {
            SharedDescriptor::decode(bits).map_err(|e| {
                bad(self, "matrix-descriptor", e, "The shared-memory descriptor follows PTX ISA 9.7.16.4.1.")
            })
        };
        let (a, b) = (matrix(a)?, matrix(b)?);
        let i = descriptor;
        let (d_lane, column) = (address >> 16, address & 0xffff);
        let unallocated =
            (column..column.saturating_add(i.n)).find(|&c| c >= COLUMNS || self.cta.tensor.allocation(c).is_none());
        if d_lane != 0 || unallocated.is_some() {
            let what = match unallocated {
                _ if d_lane != 0 => format!("it begins at lane {d_lane}; an accumulator begins at lane 0"),
                Some(c) => format!("column {c} is not allocated ({} columns from {column})", i.n),
                None => String::new(),
            };
            return Err(Some(Box::new(self.problem(
                "tensor-address",
                site,
                format!("the MMA's accumulator is at {address:#x}: {what}"),
                "The accumulator of an MMA lies in columns that tcgen05.alloc gave (PTX ISA 9.7.16.1.2) and begins at \
                 lane 0 (9.7.16.10.5; with M = 64, lane 16 is allowed too, but not modelled).",
                "Pass the address that tcgen05.alloc wrote, plus a column offset within the allocation.".into(),
            ))));
        }

        let key = (w, lane);
        if !self.mma_queues.contains_key(&key) {
            let actor = self.actor(ActorKind::Mmas { warp: self.warps[w].index, lane: lane as u32 });
            self.mma_queues.insert(key, Queue { actor, epoch: 0, busy_until: 0 });
        }
        let Some(queue) = self.mma_queues.get_mut(&key) else { return Ok(()) };
        queue.epoch += 1;
        let Queue { actor, epoch, .. } = *queue;
        self.warps[w].views.after.raise(actor, epoch);
        let stamp = Stamp { actor, epoch, site, cluster: self.index, asynchronous: true };

        // Operands: bounds, and who wrote them.
        let end = self.cta.shared.bytes.len() as u32;
        let mut reads = Vec::new();
        for (which, d, rows, mn_major) in [("A", a, i.m, i.a_mn_major), ("B", b, i.n, i.b_mn_major)] {
            let (mut low, mut high, mut unwritten) = (u32::MAX, 0, None);
            for (mn, k) in tensor::chunks(rows, mn_major) {
                let at = d.chunk(mn, k, mn_major);
                low = low.min(at);
                high = high.max(at.saturating_add(16));
            }
            if low < RESERVED_SHARED || high > end {
                return Err(Some(Box::new(self.problem(
                    "out-of-bounds",
                    site,
                    format!("the descriptor of {which} covers shared memory from {low:#x} to {high:#x}, the CTA has {RESERVED_SHARED:#x} to {end:#x}"),
                    "A matrix descriptor's tile lies within the CTA's shared memory (PTX ISA 9.7.16.4.1).",
                    "Check start address (in units of 16 bytes), leading and stride offset.".into(),
                ))));
            }
            for (mn, k) in tensor::chunks(rows, mn_major) {
                let at = d.chunk(mn, k, mn_major);
                if unwritten.is_none() && !self.cta.shared.all_defined(at as usize, 16) {
                    unwritten = Some(at);
                }
                let access = Access { stamp, views: &self.warps[w].views, proxyless: false };
                if let Some(conflict) = self.cta.shared_shadow.read(at.into(), 16, &access) {
                    let race = Race {
                        memory: RaceMemory::Shared,
                        conflict,
                        second: stamp,
                        passed: vec![],
                        unwritten: false,
                        frees: false,
                        count: 1,
                    };
                    self.race(race);
                }
            }
            let read = OperandRead {
                offset: self.dynamic_offset(low),
                end: self.dynamic_offset(high),
                swizzle: d.swizzle,
                elements: vec![],
            };
            reads.push((read, unwritten));
        }

        // The accumulator.
        let mut blank = None;
        for quarter in 0..4 {
            let at = u64::from(quarter * COLUMNS + column) * CELL;
            let access = Access { stamp, views: &self.warps[w].views, proxyless: true };
            let conflict: Option<Conflict> = self.cta.tensor_shadow.write(at, u64::from(i.n) * CELL, &access);
            if let Some(conflict) = conflict {
                let unwritten = !self.cta.tensor.get(quarter * 32, (conflict.byte / CELL) as u32 % COLUMNS).1;
                let reader = match self.actors.get(conflict.first.actor as usize) {
                    Some(ActorKind::TensorLoads(r)) => self.warps.get(*r as usize).map(|w| w.passed.clone()),
                    _ => None,
                };
                let race = Race {
                    memory: RaceMemory::Tensor,
                    conflict,
                    second: stamp,
                    passed: reader.unwrap_or_default(),
                    unwritten,
                    frees: false,
                    count: 1,
                };
                self.race(race);
            }
        }
        if accumulate {
            let earlier =
                self.mmas.iter().any(|m| m.column < column + i.n && column < m.column + m.descriptor.n && m.warp == w);
            let lane_blank = !(0..i.n).all(|c| self.cta.tensor.get(0, column + c).1);
            if lane_blank && !earlier {
                blank = Some(column);
            }
        }
        let origin = if let Some(c) = blank {
            let name = self.tensor_name(c);
            self.origin(site, format!("this MMA adds to {name}, which holds nothing yet"))
        } else if let Some(at) = reads.iter().find_map(|(_, u)| *u) {
            let name = self.shared_name_exact(at);
            self.origin(site, format!("this MMA reads {name}, which nothing has written"))
        } else {
            self.origin(site, "this MMA has undefined operands".into())
        };

        let now = self.warps[w].fragments[f].ready_at;
        let delay = self.jitter(300);
        let start = now.max(self.cta.tensor_core_free) + delay;
        self.cta.tensor_core_free = start + self.costs.mma_interval(i.m, i.n);
        let latest = self.cta.tensor_core_free + self.costs.mma_latency;
        if let Some(queue) = self.mma_queues.get_mut(&key) {
            queue.busy_until = latest;
        }
        let mut parts = reads.into_iter().map(|(read, _)| read);
        let (Some(ra), Some(rb)) = (parts.next(), parts.next()) else { return Ok(()) };
        let event = self.trace(Actor::TensorCore, start, latest, site, || {
            let shape = [i.m, i.n, 16];
            EventKind::Mma(Box::new(Mma { shape, cta_group: 1, accumulate, column, a: ra, b: rb }))
        });
        let n = self.mmas.len();
        let (early, late) = (self.perturbed(3), self.perturbed(3));
        self.mmas.push(PendingMma {
            site,
            warp: w,
            descriptor,
            a,
            b,
            column,
            accumulate,
            operands: None,
            event,
            origin,
            read_late: late,
        });
        if early && !late {
            self.mma_read(n);
        } else if !late {
            self.push_event(start, Pending::MmaRead(n));
        }
        self.push_event(latest, Pending::MmaDone(n));
        Ok(())
    }

    /// The tensor core reads the operands of an MMA.
    pub fn mma_read(&mut self, n: usize) {
        let m = &self.mmas[n];
        let i = m.descriptor;
        let a = Operand::read(&self.cta.shared, &m.a, i.m, i.a_mn_major);
        let b = Operand::read(&self.cta.shared, &m.b, i.n, i.b_mn_major);
        if self.options.keep_operands
            && let Some(event) = m.event
            && let EventKind::Mma(mma) = &mut self.trace[event].kind
        {
            mma.a.elements.clone_from(&a.bits);
            mma.b.elements.clone_from(&b.bits);
        }
        self.mmas[n].operands = Some((a, b));
    }

    /// The product is in tensor memory.
    pub fn mma_done(&mut self, n: usize, time: u64) {
        if self.mmas[n].read_late {
            self.mma_read(n);
        }
        let Some((a, b)) = self.mmas[n].operands.take() else { return };
        let m = &self.mmas[n];
        tensor::multiply(&mut self.cta.tensor, &m.descriptor, m.column, m.accumulate, &a, &b, m.origin);
        self.end = self.end.max(time);
    }

    pub fn commit(&mut self, at: At, address: &Address) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let now = self.warps[w].fragments[f].ready_at;
        for (offset, who) in self.barrier_addresses(w, mask, address, site)? {
            let barrier = self.barrier(w, offset, site, "committed to")?;
            if who.count_ones() > 1 {
                self.many_lanes(w, who, site, "tcgen05.commit", "the barrier gets that many arrivals");
            }
            for lane in lanes(who) {
                let queue = self.mma_queues.get(&(w, lane)).copied();
                let (actor, epoch) = queue.map_or((self.warps[w].actor, 0), |q| (q.actor, q.epoch));
                let covered = self.commits.iter().filter(|c| c.queue == actor).map(|c| c.epoch).max().unwrap_or(0);
                // It arrives when the thread's last MMA is complete, whether an earlier commit covers that one or not.
                let delay = self.jitter(500);
                let time = now.max(queue.map_or(0, |q| q.busy_until)) + delay;
                let id = self.barrier_id(barrier);
                self.trace(Actor::TensorCore, now, time, site, || EventKind::Commit {
                    barrier: id,
                    covers: epoch - covered,
                });
                self.commits.push(Commit { site, queue: actor, epoch, barrier, phase: None, warp: w });
                self.push_event(time, Pending::CommitArrive(self.commits.len() - 1));
            }
        }
        Ok(())
    }

    /// All that a commit covers is complete: its arrival.
    pub fn commit_arrive(&mut self, n: usize, time: u64) -> Result<(), Stop> {
        let Commit { site, queue, epoch, barrier, warp, .. } = self.commits[n];
        let mut views = Views::default();
        views.hb.raise(queue, epoch);
        views.before.raise(queue, epoch);
        self.commits[n].phase = Some(self.barriers[barrier as usize].phase);
        let outcome = self.arrive(barrier, 1, site, &views, Actor::TensorCore, time);
        if outcome.is_err() && self.warps[warp].multi_lane_sites.contains(&site) {
            // A consequence of what has been found already.
            return Err(None);
        }
        outcome
    }
}
