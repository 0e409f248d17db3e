//! `tcgen05.ld`, `tcgen05.st` and what waits for them.

use super::supplies::WHOLE;
use super::{CELL, COLUMNS, Halves, LANES, place};
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::arithmetic::simd::prefetch;
use crate::machine::chip::outbox::Item;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::{ActorKind, At, Heard, Race, RaceMemory, Span};
use crate::machine::warp::registers::lanes;
use crate::machine::warp::{OpenLoad, Warp};
use crate::order::{Access, Shadow, Stamp};
use crate::program::op::{Address, Op, Reg, TensorShape};
use crate::protocol::What;
use crate::report::EventKind;
use smallvec::SmallVec;

/// Columns that are loaded together.
const CHUNK: usize = 16;

impl Cluster<'_> {
    pub fn tensor(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        match op {
            Op::TensorAlloc { address, columns, pair } => self.tensor_alloc(at, address, *columns, *pair),
            Op::TensorFree { tensor, columns, .. } => self.tensor_free(at, *tensor, *columns),
            Op::TensorLoad { shape, tensor, d, pack } => self.tensor_load(at, *shape, tensor, d, *pack),
            Op::Mma(op) => self.mma(at, op),
            Op::TensorCopy(op) => self.tensor_copy(at, op),
            Op::Commit { address, pair, targets } => self.commit(at, address, *pair, *targets),
            _ => Ok(()),
        }
    }

    /// The lane and column that a warp-wide access of tensor memory begins at, checked.
    pub fn tensor_range(
        &mut self,
        at: At,
        shape: TensorShape,
        registers: usize,
        tensor: &Address,
    ) -> Result<(u32, u32, u32), Stop> {
        let At { w, mask, site, .. } = at;
        let c = self.warps[w].cta;
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
        let tensor_memory = &self.ctas[c].tensor;
        let unallocated = shape.starts(column).into_iter().find_map(|from| tensor_memory.unallocated(from, columns));
        let other = lanes(mask).find(|&l| at(l) != address);
        let trouble = if let Some(other) = other {
            let given = place(at(other));
            Some((
                format!("the lanes of the warp give different addresses, its thread {other} gives {given}"),
                "Let all threads of the warp give one address: that of the first lane it accesses, 32 times the warp's number modulo 4, not \
                 each thread its own lane.",
            ))
        } else if lane >= 2 * LANES || !lane.is_multiple_of(rows) {
            // 16 lanes are the first or the second half of a quarter (PTX ISA 9.7.16.10.5: where accumulators of 16 lanes a quarter lie).
            Some((
                format!("it begins at lane {lane}, with {rows} lanes"),
                match rows {
                    32 => "The lane is in bits 16–31 of the address: 32 times the warp's number modulo 4.",
                    _ => {
                        "The lane is in bits 16–31 of the address: 32 times the warp's number modulo 4, plus 0 or 16 for the first or the \
                         second 16 lanes of that quarter."
                    }
                },
            ))
        } else {
            unallocated.map(|c| {
                (
                    format!("it takes {columns} columns from {column} on, of which column {c} is not allocated"),
                    "Stay within the columns that tcgen05.alloc gave.",
                )
            })
        };
        if let Some(freed) = unallocated.and_then(|n| self.ctas[c].tensor.freed(n)) {
            let who = format!("warp {}", self.warps[w].index);
            return Err(Some(Box::new(self.used_after_free(&who, false, column, site, freed))));
        }
        if let Some((what, help)) = trouble {
            return Err(Some(Box::new(self.problem(
                "tensor-address",
                site,
                format!("{} accesses tensor memory at {}: {what}", self.warp_name(w), place(address)),
                "All threads of a warp give one address (PTX ISA 9.7.16.8.3, 9.7.16.8.4), and the access lies within \
                 an allocation (9.7.16.1.2), in the warp's own quarter of the lanes (9.7.16.8.1).",
                help.into(),
            ))));
        }
        if lane / 32 != quarter {
            // Hardware was seen to take these bits from the warp's number, except where ptxas adds a check (`-G`):
            // deepseek-ai/DeepGEMM, pull request 341; lanes 128 to 255 in the odd CTA of a pair: gau-nernst/learn-cuda, 02e_matmul_sm100.
            // The ISA does not say what happens. Lane 0 may be the allocation's address as it is; who names another quarter means its lanes.
            let named = lane % LANES / 32;
            let mut diagnostic = self.problem(
                "tensor-lane-quarter",
                site,
                format!(
                    "warp {} addresses lane {lane}, it reaches lanes {} to {} only",
                    self.warps[w].index,
                    32 * quarter,
                    32 * quarter + 31
                ),
                "A warp reaches the quarter of the lanes that its number modulo 4 names (PTX ISA 9.7.16.8.1).",
                "Add the warp's number modulo 4, times 32, to the lane half of the address.".into(),
            );
            diagnostic.severity = if [0, quarter].contains(&named) { Severity::Note } else { Severity::Finding };
            self.findings.add(diagnostic);
        }
        Ok((32 * quarter + lane % 32, column, columns))
    }

    /// Columns from this one on were freed at `freed`, and `who` accesses them all the same; `pair`: in both CTAs of one.
    pub fn used_after_free(&self, who: &str, pair: bool, column: u32, site: u32, freed: u32) -> Diagnostic {
        let name = self.tensor_name(column);
        let mut diagnostic = self.problem(
            "tensor-freed-in-use",
            freed,
            format!("{name} is freed before {who} has accessed it"),
            crate::machine::explain::tensor::FREE_RULE,
            if pair {
                crate::machine::explain::tensor::FREE_IN_PAIR_HELP
            } else {
                crate::machine::explain::tensor::FREE_HELP
            }
            .into(),
        );
        diagnostic.labels = vec![self.label(freed, "freed here"), self.label(site, "accessed here, afterwards")];
        diagnostic
    }

    fn tensor_load(&mut self, at: At, shape: TensorShape, tensor: &Address, d: &[u16], pack: bool) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let c = self.warps[w].cta;
        let registers = if pack { 2 * d.len() } else { d.len() };
        let (lane, column, columns) = self.tensor_range(at, shape, registers, tensor)?;
        self.settle();
        let halves = Halves::of(lane, shape.size().0);
        let mut heard = Heard::Nothing;
        if self.options.judges() {
            if shape == TensorShape::S32x32b {
                self.note_load_of_sums(w, site, (halves, column));
            }
            self.check_accumulator_type(site, c, (halves, column, columns), d);
            for from in shape.starts(column) {
                self.accumulators_read(c, halves, (from, columns), site);
                self.supplies.read(c, (from, columns), WHOLE, None);
            }
            let anew;
            (heard, anew) = self.issued.loads((w, c), halves, (column, columns), &self.warps[w].views);
            if !anew {
                self.note_other_accumulator(w, site, (column, columns));
            }
        }
        let actor = self.queue_actor(w, |warp| &mut warp.loads, ActorKind::TensorLoads);
        let warp = &mut self.warps[w];
        warp.loads.epoch += 1;
        warp.loads_issued.push(warp.epoch);
        warp.views.after.raise(actor, warp.loads.epoch);
        let stamp = Stamp::new(actor, warp.loads.epoch, site, self.index);
        let mut defined = vec![0; d.len()];
        let mut missing = None;
        let blank = self.blank.is_some();
        if !self.options.computes() {
            defined.fill(u32::MAX);
        }
        if !self.options.computes() || blank {
            d.iter().for_each(|&reg| warp.registers.b32[usize::from(reg)] = [0; 32]);
        }
        let computes = self.options.computes();
        let plain = computes && shape == TensorShape::S32x32b && !pack;
        if plain {
            // A lane of tensor memory for each thread: some columns at a time, row by row.
            let tensor = &mut self.ctas[c].tensor;
            tensor.refresh(column, d.len() as u32, false);
            if !blank && d.len() >= CHUNK {
                // Of each lane, what is loaded now, and what a load behind it would.
                for t in 0..32 {
                    let row = tensor.row(lane + t, column);
                    prefetch(&row[..row.len().min(2 * d.len())]);
                }
            }
            for (d, first) in d.chunks(CHUNK).zip((column..).step_by(CHUNK)).filter(|_| !blank) {
                let mut values = [[0; 32]; CHUNK];
                for t in 0..32 {
                    let row = tensor.row(lane + t, first);
                    if let Some(row) = row.first_chunk::<CHUNK>() {
                        (0..CHUNK).for_each(|n| values[n][t as usize] = row[n]);
                    } else {
                        values.iter_mut().zip(row).for_each(|(column, &value)| column[t as usize] = value);
                    }
                }
                for (&reg, values) in d.iter().zip(&values) {
                    warp.registers.b32[usize::from(reg)] = *values;
                }
            }
            for (defined, n) in defined.iter_mut().zip(column..) {
                *defined = tensor.defined_quarter(n, lane / 32);
                if *defined != u32::MAX && missing.is_none() {
                    missing = Some(n);
                }
            }
        }
        for (r, &reg) in d.iter().enumerate().take(if plain || !computes { 0 } else { d.len() }) {
            for t in 0..32 {
                let (dl, dc) = shape.cell(t, r as u32, pack);
                let cell = |n: u32| self.ctas[c].tensor.get(lane + dl, column + n);
                // Packed, the shape counts columns of 16 bits: two neighbours make one register.
                let (value, ok) = if pack {
                    let ((low, first), (high, second)) = (cell(dc), cell(dc + 1));
                    (low & 0xffff | high << 16, first && second)
                } else {
                    cell(dc)
                };
                warp.registers.b32[usize::from(reg)][t as usize] = if blank { 0 } else { value };
                defined[r] |= u32::from(ok) << t;
                if !ok && missing.is_none() {
                    missing = Some(column + dc);
                }
            }
        }
        // Until the load has landed.
        warp.registers.set_loading(d, true);
        for &reg in d {
            warp.registers.set_defined(Reg::B32(reg), u32::MAX, 0);
            if !warp.origins.is_empty() {
                warp.origins.remove(&Reg::B32(reg));
            }
        }
        self.apply_factor(w, site, d, pack);
        let origin = missing.map_or(0, |n| match self.ctas[c].tensor.origin(n) {
            0 => {
                let name = self.tensor_name(n);
                // With M = 64, an accumulator has half of the lanes only.
                let text = match !self.ctas[c].tensor.defined_quarter(n, lane / 32) {
                    0 | u32::MAX => {
                        format!("{name} is read here, but nothing has written a defined value to it")
                    }
                    lanes => {
                        let lanes = lane_ranges(lanes, lane / 32 * 32);
                        format!("{lanes} of {name} are read here, but nothing has written a defined value to them")
                    }
                };
                let origin = self.origin(site, text);
                if self.origins[origin as usize].beside.is_none() {
                    self.origins[origin as usize].beside = self.ends_in_front(c, halves, (column, n));
                }
                origin
            }
            known => known,
        });
        for from in shape.starts(column) {
            let at = u64::from(lane / 32 * COLUMNS + from) * CELL;
            let access = Access::of_tensor_memory(stamp, &self.warps[w].views);
            let read = |shadow: &mut Shadow| shadow.read(at, u64::from(columns) * CELL, &access);
            let conflicts: SmallVec<[_; 2]> = self.ctas[c].shadows(halves).map(read).collect();
            if let Some(conflict) = conflicts.into_iter().flatten().next() {
                let (passed, unwritten) = (self.warps[w].passed.clone(), missing.is_some());
                let unwaited = self.was_not_waited_for(w, conflict.first);
                let race = Race::new(RaceMemory::Tensor(c), conflict, stamp);
                self.race(Race { passed, unwritten, unwaited, heard, ..race });
            }
        }
        let (actor, time) = self.when(w, f);
        let delay = self.jitter(400);
        let done_at = time + self.costs.tensor_load + self.costs.tensor_load_per_column * u64::from(columns) + delay;
        self.warps[w].open_loads.push(OpenLoad {
            site,
            epoch: stamp.epoch,
            d: d.into(),
            defined,
            landed: false,
            origin,
            done_at,
        });
        let rows = shape.size().0;
        self.trace(c, actor, Span::of_warp(w, time, done_at), site, || EventKind::TensorLoad {
            column,
            columns,
            lane,
            lanes: rows,
        });
        Ok(())
    }

    /// Whether a warp knows that the first of two accesses of tensor memory is over, though nothing orders the two: a `tcgen05.ld` has
    /// brought registers that were used, who has waited for an MMA has ended.
    pub fn was_in_time(&self, w: usize, first: Stamp) -> bool {
        matches!(self.kind(first), Some(ActorKind::TensorLoads(_) | ActorKind::Mmas { .. }))
            && self.warps[w].views.came_before(first.actor) >= first.epoch
    }

    /// Whether all that lacks between two accesses of tensor memory is that the first one, a `tcgen05.ld` or `tcgen05.st`, was waited
    /// for: this warp has learnt of what its warp did up to its issue. A wait that came too late to be told of does not count.
    pub fn was_not_waited_for(&self, w: usize, first: Stamp) -> bool {
        let (of, issued): (_, fn(&Warp) -> &[u32]) = match self.kind(first) {
            Some(ActorKind::TensorLoads(of)) => (of, |warp| &warp.loads_issued),
            Some(ActorKind::TensorStores(of)) => (of, |warp| &warp.stores_issued),
            _ => return false,
        };
        let Some(of) = self.warps.get(of as usize) else { return false };
        let at = first.epoch.checked_sub(1).and_then(|n| issued(of).get(n as usize));
        at.is_some_and(|&epoch| self.warps[w].views.heard(of.actor) >= epoch)
    }

    /// Multiplies what a `tcgen05.ld` brings ([`crate::Options::tensor_load_factor`]).
    fn apply_factor(&mut self, w: usize, site: u32, d: &[u16], pack: bool) {
        let factor = self.options.tensor_load_factor;
        if factor == 1.0 {
            return;
        }
        if pack {
            self.factor_fails.get_or_insert((site, "it packs halves of columns"));
            return;
        }
        for &reg in d {
            for value in &mut self.warps[w].registers.b32[usize::from(reg)] {
                *value = (f32::from_bits(*value) * factor).to_bits();
            }
        }
    }

    /// `wait::ld`, `wait::st`, fences and relinquish.
    pub fn tensor_wait(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let c = self.warps[w].cta;
        match op {
            Op::TensorWait { loads: true } => {
                self.whole_warp(w, mask, site)?;
                let (actor, time) = self.when(w, f);
                let mut end = time;
                for load in std::mem::take(&mut self.warps[w].open_loads) {
                    end = end.max(load.done_at);
                    if !load.landed {
                        self.land(w, &load);
                    }
                }
                let warp = &mut self.warps[w];
                warp.loads.raise(&mut warp.views.hb, warp.loads.epoch);
                warp.fragments[f].ready_at = end;
                self.trace(c, actor, Span::of_warp(w, time, end), site, || EventKind::TensorWaitLoad);
            }
            Op::TensorWait { loads: false } => {
                self.whole_warp(w, mask, site)?;
                let warp = &mut self.warps[w];
                warp.stores.raise(&mut warp.views.hb, warp.stores.epoch);
                warp.fragments[f].ready_at = warp.fragments[f].ready_at.max(warp.stores_done_at);
            }
            Op::TensorFence { .. } if !self.options.judges() => {}
            Op::TensorFence { before: true } => {
                let views = &mut self.warps[w].views;
                views.before.join(&views.hb);
            }
            Op::TensorFence { before: false } => {
                let views = &mut self.warps[w].views;
                views.after.join(&views.before);
            }
            Op::TensorRelinquish => {
                self.whole_warp(w, mask, site)?;
                self.ctas[c].tensor_relinquished.get_or_insert((w, site));
                self.record.add(w, mask, site, What::Relinquish);
                if self.shares_sm() {
                    let (_, time) = self.when(w, f);
                    self.outbox.push(time, Item::Relinquish { cta: c });
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The registers of a `tcgen05.ld` become valid.
    fn land(&mut self, w: usize, load: &OpenLoad) {
        let warp = &mut self.warps[w];
        warp.registers.set_loading(&load.d, false);
        for (&reg, &defined) in load.d.iter().zip(&load.defined) {
            warp.registers.set_defined(Reg::B32(reg), u32::MAX, defined);
            if defined != u32::MAX {
                warp.origins.insert(Reg::B32(reg), load.origin);
            }
        }
    }

    /// A register of a `tcgen05.ld` is touched before `tcgen05.wait::ld`: reading it waits for its value (PTX ISA
    /// 9.7.16.6.4.5), writing it races with the load.
    pub fn check_open_loads(&mut self, w: usize, f: usize, uses: &[Reg], defs: &[Reg], site: u32) {
        for n in 0..self.warps[w].open_loads.len() {
            let load = &self.warps[w].open_loads[n];
            if load.landed {
                continue;
            }
            let touches = |regs: &[Reg]| regs.iter().any(|r| matches!(r, Reg::B32(r) if load.d.contains(r)));
            let (read, written) = (touches(uses), touches(defs));
            if !read && !written {
                continue;
            }
            let load = load.clone();
            self.warps[w].open_loads[n].landed = true;
            let fragment = &mut self.warps[w].fragments[f];
            fragment.ready_at = fragment.ready_at.max(load.done_at);
            self.land(w, &load);
            // The register has come, so the load has read: in time, though the ISA says so of nobody else's accesses.
            let warp = &mut self.warps[w];
            let read_all = warp.open_loads.iter().take_while(|load| load.landed).last().map_or(0, |load| load.epoch);
            warp.loads.raise(&mut warp.views.order, read_all);
            if written && !read {
                let labels = vec![
                    self.label(load.site, "this load may still write the register afterwards"),
                    self.label(site, "a register of the load is written here"),
                ];
                self.findings.add(Diagnostic {
                    code: "missing-wait-ld",
                    severity: Severity::Finding,
                    title: "a register of a tcgen05.ld is written before the load is complete".into(),
                    labels,
                    rule: crate::machine::explain::tensor::WAIT_RULE.into(),
                    help: crate::machine::explain::tensor::WAIT_HELP.into(),
                    count: 1,
                    confirmed: None,
                });
            }
        }
    }
}

/// `lanes 16 to 31`, `lanes 0, 2 and 5 to 7`: those of a mask, the first of which has this number.
fn lane_ranges(mask: u32, first: u32) -> String {
    let set = |n: u32| n < 32 && mask >> n & 1 == 1;
    let ends = |start: u32| (start..32).take_while(|&n| set(n)).last().unwrap_or(start);
    let starts = (0..32).filter(|&n| set(n) && !(n > 0 && set(n - 1)));
    let parts: Vec<String> = starts
        .map(|start| match ends(start) {
            end if end == start => (first + start).to_string(),
            end => format!("{} to {}", first + start, first + end),
        })
        .collect();
    match parts.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("lanes {} and {last}", most.join(", ")),
        parts => format!("lanes {}", parts.join(", ")),
    }
}
