//! `tcgen05`: allocation, loads and stores of tensor memory, MMAs and their completion.

use super::cluster::{ActorKind, Cluster, Commit, Pending, PendingMma, Race, RaceMemory, Stop};
use super::tensor::{self, COLUMNS, InstructionDescriptor, LANES, Operand, SharedDescriptor};
use super::warp::{OpenLoad, Queue, State, lanes};
use crate::diagnostic::{Diagnostic, Severity};
use crate::order::{Access, Conflict, Stamp, Views};
use crate::program::RESERVED_SHARED;
use crate::program::op::{Address, Op, Reg, TensorShape};
use crate::report::{Actor, EventKind, Mma, OperandRead};

/// One cell of the shadow of tensor memory stands for a column of a lane quarter.
const CELL: u64 = 16;

impl Cluster<'_> {
    pub fn tensor(&mut self, w: usize, f: usize, mask: u32, op: &Op, site: u32) -> Result<(), Stop> {
        match op {
            Op::TensorAlloc { address, columns } => self.tensor_alloc(w, f, mask, address, *columns, site),
            Op::TensorFree { tensor, columns } => self.tensor_free(w, f, mask, *tensor, *columns, site),
            Op::TensorLoad { shape, tensor, d } => self.tensor_load(w, f, mask, *shape, tensor, d, site),
            Op::Mma { d, a, b, idesc, accumulate, accumulate_negated } => {
                self.mma(w, f, mask, d, [*a, *b], *idesc, (*accumulate, *accumulate_negated), site)
            }
            Op::Commit { address } => self.commit(w, f, mask, address, site),
            _ => Ok(()),
        }
    }

    fn tensor_alloc(
        &mut self,
        w: usize,
        f: usize,
        mask: u32,
        address: &Address,
        columns: u16,
        site: u32,
    ) -> Result<(), Stop> {
        self.whole_warp(w, mask, site)?;
        let columns = self.warps[w].registers.b32[usize::from(columns)][0];
        if !columns.is_power_of_two() || !(32..=COLUMNS).contains(&columns) {
            return Err(Some(Box::new(self.problem(
                "tensor-columns",
                site,
                format!("{columns} columns of tensor memory are asked for"),
                "The number of columns is a power of two from 32 to 512 (PTX ISA 9.7.16.7.1).",
                "Round up to the next power of two, 32 at least.".into(),
            ))));
        }
        if self.cta.tensor_relinquished {
            return Err(Some(Box::new(self.problem(
                "tensor-relinquished",
                site,
                "this CTA has given up its right to allocate tensor memory".into(),
                "After tcgen05.relinquish_alloc_permit, the CTA must not allocate (PTX ISA 9.7.16.7.1).",
                "Relinquish after the last allocation.".into(),
            ))));
        }
        let base = self.warps[w].registers.lane(address.base, 0) as u64;
        let slot = base.wrapping_add(address.offset as u64) as u32 & 0x00ff_ffff;
        if !slot.is_multiple_of(4) || slot < RESERVED_SHARED || slot as usize + 4 > self.cta.shared.bytes.len() {
            return Err(Some(Box::new(self.problem(
                "out-of-bounds",
                site,
                format!("tcgen05.alloc writes its result to {slot:#x}: not 4 aligned bytes of the CTA's shared memory"),
                "The destination of tcgen05.alloc is a 32-bit location in shared memory (PTX ISA 9.7.16.7.1).",
                "Pass the address of a shared variable.".into(),
            ))));
        }
        let Some(column) = self.cta.tensor.allocate(columns, site) else {
            self.warps[w].fragments[f].state = State::TensorAlloc;
            return Ok(());
        };
        let stamp = self.stamp(w, site);
        let access = Access { stamp, views: &self.warps[w].views, proxyless: false };
        if let Some(conflict) = self.cta.shared_shadow.write(slot.into(), 4, &access) {
            self.race(Race {
                memory: RaceMemory::Shared,
                conflict,
                second: stamp,
                passed: vec![],
                unwritten: false,
                frees: false,
                count: 1,
            });
        }
        self.cta.shared.store(slot as usize, 4, column.into(), true);
        let (actor, time) = self.when(w, f);
        let end = time + self.costs.tensor_alloc;
        self.warps[w].fragments[f].ready_at = end;
        self.trace(actor, time, end, site, || EventKind::TensorAlloc { column, columns });
        Ok(())
    }

    fn tensor_free(&mut self, w: usize, f: usize, mask: u32, tensor: u16, columns: u16, site: u32) -> Result<(), Stop> {
        self.whole_warp(w, mask, site)?;
        let address = self.warps[w].registers.b32[usize::from(tensor)][0];
        let columns = self.warps[w].registers.b32[usize::from(columns)][0];
        let held = self.cta.tensor.allocation(address & 0xffff);
        let Some(allocation) = held.filter(|a| a.column == address && a.columns == columns) else {
            let mut diagnostic = self.problem(
                "tensor-free-mismatch",
                site,
                format!("{columns} columns at {address:#x} are freed, but no such allocation is held"),
                "tcgen05.dealloc takes an address that tcgen05.alloc gave, with the same number of columns (PTX ISA 9.7.16.7.1).",
                "Pass the address and column count of the allocation.".into(),
            );
            for a in self.cta.tensor.held() {
                diagnostic.labels.push(self.label(a.site, format!("held: {} columns at {:#x}", a.columns, a.column)));
            }
            return Err(Some(Box::new(diagnostic)));
        };
        let stamp = self.stamp(w, site);
        for quarter in 0..4 {
            let at = u64::from(quarter * COLUMNS + allocation.column) * CELL;
            let access = Access { stamp, views: &self.warps[w].views, proxyless: true };
            if let Some(conflict) = self.cta.tensor_shadow.write(at, u64::from(columns) * CELL, &access) {
                self.race(Race {
                    memory: RaceMemory::Tensor,
                    conflict,
                    second: stamp,
                    passed: vec![],
                    unwritten: false,
                    frees: true,
                    count: 1,
                });
            }
        }
        self.cta.tensor.free(allocation);
        let (actor, time) = self.when(w, f);
        self.warps[w].fragments[f].ready_at += self.costs.tensor_alloc;
        self.trace(actor, time, time, site, || EventKind::TensorFree { column: allocation.column, columns });
        for warp in &mut self.warps {
            for fragment in warp.fragments.iter_mut().filter(|f| f.state == State::TensorAlloc) {
                fragment.state = State::Ready;
                fragment.ready_at = fragment.ready_at.max(time);
            }
        }
        self.polls = 0;
        self.lower_horizon(time);
        Ok(())
    }

    /// The lane and column that a warp-wide access of tensor memory begins at, checked.
    fn tensor_range(
        &mut self,
        w: usize,
        mask: u32,
        shape: TensorShape,
        registers: usize,
        tensor: &Address,
        site: u32,
    ) -> Result<(u32, u32, u32), Stop> {
        self.whole_warp(w, mask, site)?;
        if mask & !self.warps[w].registers.defined(tensor.base) != 0 {
            return Err(self.undefined_operand(w, site, tensor.base, "the address in tensor memory"));
        }
        let at = |lane| (self.warps[w].registers.lane(tensor.base, lane) as u32).wrapping_add(tensor.offset as u32);
        let address = at(0);
        let (rows, columns_each, registers_each) = shape.size();
        let columns = columns_each * registers as u32 / registers_each;
        let (lane, column) = (address >> 16, address & 0xffff);
        let quarter = self.warps[w].index % 4;
        let unallocated =
            (column..column.saturating_add(columns)).find(|&c| c >= COLUMNS || self.cta.tensor.allocation(c).is_none());
        let trouble = if lanes(mask).any(|l| at(l) != address) {
            Some((
                "the lanes of the warp give different addresses".into(),
                "All threads of the warp must give the same address.",
            ))
        } else if lane >= LANES || lane % 32 + rows > 32 {
            Some((
                format!("it begins at lane {lane}, with {rows} lanes"),
                "The lane is in bits 16–31 of the address: 32 times the warp's number modulo 4 (plus 16 for the second half).",
            ))
        } else {
            unallocated.map(|c| {
                (
                    format!("column {c} is not allocated ({columns} columns from {column})"),
                    "Stay within the columns that tcgen05.alloc gave.",
                )
            })
        };
        if let Some((what, help)) = trouble {
            return Err(Some(Box::new(self.problem(
                "tensor-address",
                site,
                format!("warp {} accesses tensor memory at {address:#x}: {what}", self.warps[w].index),
                "Accesses lie within an allocation, in the warp's own quarter of the lanes (PTX ISA 9.7.16.2, 9.7.16.8).",
                help.into(),
            ))));
        }
        if lane / 32 != quarter {
            // Release builds on hardware were seen to ignore these address bits; the ISA leaves the result undefined.
            let mut diagnostic = self.problem(
                "tensor-lane-quarter",
                site,
                format!(
                    "warp {} addresses lane {lane}, it reaches lanes {} to {} only",
                    self.warps[w].index,
                    32 * quarter,
                    32 * quarter + 31
                ),
                "A warp reaches the quarter of the lanes that its number modulo 4 names (PTX ISA 9.7.16.2.3.1).",
                "Add the warp's number modulo 4, times 32, to the lane half of the address.".into(),
            );
            diagnostic.severity = Severity::Finding;
            self.findings.add(diagnostic);
        }
        Ok((32 * quarter + lane % 32, column, columns))
    }

    fn tensor_load(
        &mut self,
        w: usize,
        f: usize,
        mask: u32,
        shape: TensorShape,
        tensor: &Address,
        d: &[u16],
        site: u32,
    ) -> Result<(), Stop> {
        let (lane, column, columns) = self.tensor_range(w, mask, shape, d.len(), tensor, site)?;
        let warp = &mut self.warps[w];
        warp.loads.epoch += 1;
        let stamp =
            Stamp { actor: warp.loads.actor, epoch: warp.loads.epoch, site, cluster: self.index, asynchronous: false };
        let mut defined = vec![0; d.len()];
        let mut missing = None;
        for (r, &reg) in d.iter().enumerate() {
            for t in 0..32 {
                let (dl, dc) = shape.cell(t, r as u32);
                let (value, ok) = self.cta.tensor.get(lane + dl, column + dc);
                warp.registers.b32[usize::from(reg)][t as usize] = value;
                defined[r] |= u32::from(ok) << t;
                if !ok && missing.is_none() {
                    missing = Some(column + dc);
                }
            }
            warp.registers.set_defined(Reg::B32(reg), u32::MAX, 0);
            warp.origins.remove(&Reg::B32(reg));
        }
        let origin = missing.map_or(0, |c| match self.cta.tensor.origin(c) {
            0 => {
                let name = self.tensor_name(c);
                self.origin(site, format!("{name} is read here, but nothing has written it"))
            }
            known => known,
        });
        let at = u64::from(lane / 32 * COLUMNS + column) * CELL;
        let access = Access { stamp, views: &self.warps[w].views, proxyless: true };
        if let Some(conflict) = self.cta.tensor_shadow.read(at, u64::from(columns) * CELL, &access) {
            let passed = self.warps[w].passed.clone();
            self.race(Race {
                memory: RaceMemory::Tensor,
                conflict,
                second: stamp,
                passed,
                unwritten: missing.is_some(),
                frees: false,
                count: 1,
            });
        }
        let (actor, time) = self.when(w, f);
        let delay = self.jitter(400);
        let done_at = time + self.costs.tensor_load + self.costs.tensor_load_per_column * u64::from(columns) + delay;
        self.warps[w].open_loads.push(OpenLoad { site, d: d.into(), defined, origin, done_at });
        let rows = shape.size().0;
        self.trace(actor, time, done_at, site, || EventKind::TensorLoad { column, columns, lane, lanes: rows });
        Ok(())
    }

    pub fn tensor_store(
        &mut self,
        w: usize,
        f: usize,
        mask: u32,
        shape: TensorShape,
        tensor: &Address,
        s: &[u16],
        site: u32,
    ) -> Result<(), Stop> {
        let (lane, column, columns) = self.tensor_range(w, mask, shape, s.len(), tensor, site)?;
        let warp = &mut self.warps[w];
        warp.stores.epoch += 1;
        let stamp = Stamp {
            actor: warp.stores.actor,
            epoch: warp.stores.epoch,
            site,
            cluster: self.index,
            asynchronous: false,
        };
        for (r, &reg) in s.iter().enumerate() {
            let defined = warp.registers.defined(Reg::B32(reg));
            let origin = warp.origins.get(&Reg::B32(reg)).copied().unwrap_or(0);
            for t in 0..32 {
                let (dl, dc) = shape.cell(t, r as u32);
                let ok = defined >> t & 1 == 1;
                self.cta.tensor.set(lane + dl, column + dc, warp.registers.b32[usize::from(reg)][t as usize], ok);
                if !ok {
                    self.cta.tensor.set_origin(column + dc, origin);
                }
            }
        }
        let at = u64::from(lane / 32 * COLUMNS + column) * CELL;
        let access = Access { stamp, views: &self.warps[w].views, proxyless: true };
        if let Some(conflict) = self.cta.tensor_shadow.write(at, u64::from(columns) * CELL, &access) {
            self.race(Race {
                memory: RaceMemory::Tensor,
                conflict,
                second: stamp,
                passed: vec![],
                unwritten: false,
                frees: false,
                count: 1,
            });
        }
        let (_, time) = self.when(w, f);
        self.warps[w].stores_done_at = time + self.costs.tensor_load + u64::from(columns);
        Ok(())
    }

    /// `wait::ld`, `wait::st`, fences and relinquish.
    pub fn tensor_wait(&mut self, w: usize, f: usize, mask: u32, op: &Op, site: u32) -> Result<(), Stop> {
        match op {
            Op::TensorWait { loads: true } => {
                self.whole_warp(w, mask, site)?;
                let (actor, time) = self.when(w, f);
                let mut end = time;
                for load in std::mem::take(&mut self.warps[w].open_loads) {
                    end = end.max(load.done_at);
                    self.land(w, &load);
                }
                let warp = &mut self.warps[w];
                warp.views.hb.raise(warp.loads.actor, warp.loads.epoch);
                warp.fragments[f].ready_at = end;
                self.trace(actor, time, end, site, || EventKind::TensorWaitLoad);
            }
            Op::TensorWait { loads: false } => {
                self.whole_warp(w, mask, site)?;
                let warp = &mut self.warps[w];
                warp.views.hb.raise(warp.stores.actor, warp.stores.epoch);
                warp.fragments[f].ready_at = warp.fragments[f].ready_at.max(warp.stores_done_at);
            }
            Op::TensorRelinquish => {
                self.whole_warp(w, mask, site)?;
                self.cta.tensor_relinquished = true;
            }
            _ => {}
        }
        Ok(())
    }

    /// The registers of a `tcgen05.ld` become valid.
    fn land(&mut self, w: usize, load: &OpenLoad) {
        let warp = &mut self.warps[w];
        for (&reg, &defined) in load.d.iter().zip(&load.defined) {
            warp.registers.set_defined(Reg::B32(reg), u32::MAX, defined);
            if defined != u32::MAX {
                warp.origins.insert(Reg::B32(reg), load.origin);
            }
        }
    }

    /// A register of a `tcgen05.ld` is touched before `tcgen05.wait::ld`.
    pub fn check_open_loads<'i>(&mut self, w: usize, f: usize, touched: impl Iterator<Item = &'i Reg>, site: u32) {
        let mut early = Vec::new();
        for reg in touched {
            let Reg::B32(r) = *reg else { continue };
            if let Some(n) = self.warps[w].open_loads.iter().position(|load| load.d.contains(&r)) {
                early.push(self.warps[w].open_loads.remove(n));
            }
        }
        for load in early {
            let fragment = &mut self.warps[w].fragments[f];
            fragment.ready_at = fragment.ready_at.max(load.done_at);
            self.land(w, &load);
            let labels = vec![
                self.label(site, "a register of the load is used here"),
                self.label(load.site, "loaded from tensor memory here, asynchronously"),
            ];
            self.findings.add(Diagnostic {
                code: "missing-wait-ld",
                severity: Severity::Finding,
                title: "a register that tcgen05.ld writes is used before tcgen05.wait::ld".into(),
                labels,
                rule: "tcgen05.ld is asynchronous: its registers hold the values only after tcgen05.wait::ld (PTX ISA \
                       9.7.16.8.1)."
                    .into(),
                help: "Put tcgen05.wait::ld.sync.aligned between the load and the first use of its registers.".into(),
                count: 1,
            });
        }
    }

    #[allow(clippy::too_many_arguments)]
    fn mma(
        &mut self,
        w: usize,
        f: usize,
        mask: u32,
        d: &Address,
        descriptors: [u16; 2],
        idesc: u16,
        accumulate: (u16, bool),
        site: u32,
    ) -> Result<(), Stop> {
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
            self.issue_mma(w, f, lane, address, [a, b], idesc, accumulate, site)?;
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
            "tcgen05.mma, tcgen05.cp and tcgen05.commit are issued by a single thread (PTX ISA 9.7.16.5, issue granularity).",
            "Let one elected lane execute it (elect.sync).".into(),
        );
        diagnostic.severity = Severity::Finding;
        self.findings.add(diagnostic);
    }

    #[allow(clippy::too_many_arguments)]
    fn issue_mma(
        &mut self,
        w: usize,
        f: usize,
        lane: usize,
        address: u32,
        [a, b]: [u64; 2],
        idesc: u32,
        accumulate: bool,
        site: u32,
    ) -> Result<(), Stop> {
        let bad = |this: &Self, code, (found, allowed): (String, String), rule: &str| -> Stop {
            Some(Box::new(this.problem(code, site, found, rule, format!("Allowed: {allowed}."))))
        };
        let descriptor = InstructionDescriptor::decode(idesc)
            .map_err(|e| bad(self, "instruction-descriptor", e, "The instruction descriptor follows PTX ISA 9.7.16.4.2; hardware raises an illegal instruction or computes something else."))?;
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
                "The accumulator of an MMA lies in columns that tcgen05.alloc gave (PTX ISA 9.7.16.7.1).",
                "Pass the address that tcgen05.alloc wrote, plus a column offset within the allocation.".into(),
            ))));
        }

        let key = (w, lane);
        if !self.mma_queues.contains_key(&key) {
            let actor = self.actor(ActorKind::Mmas { warp: self.warps[w].index, lane: lane as u32 });
            self.mma_queues.insert(key, Queue { actor, epoch: 0 });
        }
        let Some(queue) = self.mma_queues.get_mut(&key) else { return Ok(()) };
        queue.epoch += 1;
        let stamp = Stamp { actor: queue.actor, epoch: queue.epoch, site, cluster: self.index, asynchronous: true };

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

    fn commit(&mut self, w: usize, f: usize, mask: u32, address: &Address, site: u32) -> Result<(), Stop> {
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
                // The tensor core finishes in order: what was issued last ends last.
                let busy = if epoch > covered { self.cta.tensor_core_free + self.costs.mma_latency } else { now };
                let delay = self.jitter(500);
                let time = now.max(busy) + delay;
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
        self.commits[n].phase = Some(self.barriers[barrier as usize].phase);
        let outcome = self.arrive(barrier, 1, site, &views, Actor::TensorCore, time);
        if outcome.is_err() && self.warps[warp].multi_lane_sites.contains(&site) {
            // A consequence of what has been found already.
            return Err(None);
        }
        outcome
    }
}
