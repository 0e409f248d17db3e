//! `wgmma.mma_async` at work: from when all warps of the warpgroup have come to it until its product is in their registers.

use super::Operands;
use super::footprints::footprint;
use super::wgmma::{Inputs, WARPS};
use crate::machine::arithmetic::exact_kinds::Precision;
use crate::machine::arithmetic::formats::Format;
use crate::machine::arithmetic::operand::Operand;
use crate::machine::arithmetic::product::{Factors, Line, Product};
use crate::machine::arithmetic::strip::Strip;
use crate::machine::arithmetic::{kinds, simd, tiles};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::layout::boxes::{Laid, Which};
use crate::machine::layout::depths::Multiplied;
use crate::machine::state::{Pending, Span};
use crate::machine::tensor_memory::scale_factors::ScaleFactors;
use crate::machine::tensor_memory::{InstructionDescriptor, SharedDescriptor};
use crate::machine::tma::prefetches::Prefetches;
use crate::numerics::MmaStep;
use crate::order::{ActorId, Clock, Stamp, Views};
use crate::program::kind::Kind;
use crate::program::op::Reg;
use crate::program::wgmma::{ROWS, WARP_ROWS, WgmmaOp, d_element};
use crate::report::{Actor, EventKind, OperandRead, Wgmma};

/// Steps that are computed together.
const DEPTH: usize = 8;

/// An MMA that not all warps of its warpgroup have come to.
#[derive(Debug)]
pub struct Coming {
    pub pc: u32,
    pub site: u32,
    pub inputs: Inputs,
    /// A bit for each warp that has.
    pub there: u8,
    /// When the last of them came.
    pub time: u64,
    /// What all of them know.
    pub views: Views,
    /// What came before in any of them.
    pub before: Clock,
    /// A, as far as it lies in registers.
    pub a: Operand,
}

/// An MMA that has begun.
#[derive(Debug)]
pub struct PendingWgmma {
    /// The first warp of the warpgroup, and the MMA's number there.
    first: usize,
    number: u32,
    pc: u32,
    /// `None`: A was in registers.
    a: Option<SharedDescriptor>,
    b: SharedDescriptor,
    accumulate: bool,
    operands: Operands,
    /// Index into the trace.
    event: Option<usize>,
    origin: u32,
    read_late: bool,
}

/// An MMA that is complete and not computed yet.
#[derive(Debug)]
pub struct Step {
    pub pc: u32,
    accumulate: bool,
    operands: Operands,
    origin: u32,
}

/// Memory that is used again.
#[derive(Debug, Default)]
pub struct Scratch {
    cells: Vec<Line<[u32; 16]>>,
    factors: Factors,
    spare: Vec<Operands>,
}

impl WgmmaOp {
    /// What it computes, of any type, in the words of `tcgen05.mma`.
    fn descriptor(&self) -> InstructionDescriptor {
        let WgmmaOp { n, negate_a, negate_b, .. } = *self;
        InstructionDescriptor { negate_a, negate_b, ..self.types.descriptor(ROWS, n) }
    }

    /// What it computes, of 16-bit elements.
    fn step(&self, accumulate: bool) -> MmaStep {
        let WgmmaOp { types, negate_a, negate_b, .. } = *self;
        let (a_bf16, b_bf16) = (types.a == Format::Bf16, types.b == Format::Bf16);
        MmaStep { a_bf16, b_bf16, d_f32: types.wide_d(), negate_a, negate_b, accumulate, scale: 0 }
    }

    /// An MMA that adds to what this one leaves can be computed together with it.
    fn goes_with(&self, next: &WgmmaOp) -> bool {
        let what = |op: &WgmmaOp| (op.types, op.negate_a, op.negate_b);
        self.same_accumulator(next) && what(self) == what(next)
    }
}

impl Cluster<'_> {
    /// All four warps have come to an MMA.
    pub fn begin_wgmma(&mut self, first: usize, coming: Coming) -> Result<(), Stop> {
        let Coming { pc, site, inputs, time: now, views, before, a: fragments, .. } = coming;
        let Some(op) = self.wgmma_at(pc) else { return Ok(()) };
        let Some(group) = self.warpgroups.get_mut(&first) else { return Ok(()) };
        group.queue.epoch += 1;
        group.before.push_back(before);
        let (actor, number) = (group.queue.actor, group.queue.epoch);
        let stamp = Stamp::asynchronous(actor, number, site, self.index);
        let cta = self.warps[first].cta;
        let elements = |format: Format| format.elements(op.types.kind);
        let a = inputs.a.map(|bits| self.wgmma_descriptor(bits, elements(op.types.a), "A", site)).transpose()?;
        let b = self.wgmma_descriptor(inputs.b, elements(op.types.b), "B", site)?;
        let laid = |which, d, rows, mn_major| Laid { which, d, rows, mn_major, site };
        let of_a = a.map(|a| laid(Which::A, a, ROWS, op.a_mn_major));
        let of_b = laid(Which::B, b, op.n, op.b_mn_major);
        let judged = of_a.filter(|_| self.options.judges()).map(|of_a| [of_a, of_b]);
        if let Some(operands) = judged {
            self.suspect(cta, operands);
        }
        let mut unwritten = None;
        let mut reads = Vec::with_capacity(2);
        for laid in of_a.into_iter().chain([of_b]) {
            let (footprint, base) = footprint(&laid.d, laid.rows, laid.mn_major);
            reads.push(self.read_range(site, cta, &laid, &footprint, base)?);
            if !self.options.judges() {
                continue;
            }
            unwritten = unwritten.or_else(|| self.ctas[cta].shared.undefined_granule(footprint.runs(base), 16));
            self.touch_operand(&views, cta, &footprint, base, stamp);
            self.check_layout(cta, laid, &footprint, base);
        }
        if let Some(operands) = judged {
            // Registers are those of the warpgroup.
            let accumulator = (first as u32) << 16 | u32::from(op.d.first().copied().unwrap_or_default());
            self.note_sum(&[cta], accumulator, inputs.accumulate, &operands);
            let negated = [op.negate_a, op.negate_b];
            self.check_depths(Multiplied {
                cta,
                accumulator,
                adds: inputs.accumulate,
                operands,
                formats: None,
                negated,
            });
        }
        self.mark_late(first, stamp);
        let origin = match unwritten {
            Some(at) => self.kept_origin(cta, at, at + 16).unwrap_or_else(|| self.reads_unwritten(site, cta, at)),
            None if !fragments.defined.is_empty() => {
                self.origin(site, "this MMA reads registers of A that hold no defined value".into())
            }
            None => 0,
        };

        let delay = self.jitter(300);
        let start = now.max(self.ctas[cta].tensor_core_free) + delay;
        let cycles = self.costs.mma_interval(ROWS, op.n, op.n, a.is_some());
        let end = start + cycles * self.ctas[cta].slowed.tensor_core * self.rates.tensor_core / (256 * 256);
        self.ctas[cta].tensor_core_free = end;
        self.ctas[cta].busy.tensor_core += cycles;
        let span = Span { w: first, issued: now, start, end };
        let shape = [ROWS, op.n, op.types.kind.depth()];
        let event = self.trace(cta, Actor::TensorCore, span, site, || {
            let types = &op.types;
            let mut taken = |format: Format, negated, mn_major| {
                reads.pop().map(|read| OperandRead { format: format.name(), negated, mn_major, ..read })
            };
            let b = taken(types.b, op.negate_b, op.b_mn_major);
            let a = taken(types.a, op.negate_a, op.a_mn_major);
            EventKind::Wgmma(Box::new(Wgmma { shape, accumulate: inputs.accumulate, a, b }))
        });
        let (early, late) = (self.perturbed(3), self.perturbed(3));
        let mut operands = self.wgmma_scratch.spare.pop().unwrap_or_default();
        operands.a[0] = fragments;
        let accumulate = inputs.accumulate;
        let mma = PendingWgmma { first, number, pc, a, b, accumulate, operands, event, origin, read_late: late };
        let n = self.wgmmas.put(mma);
        if !self.options.computes() || late {
            // Nobody reads, or only at the end.
        } else if early {
            self.wgmma_read(n);
        } else {
            self.push_event(start, Pending::WgmmaRead(n));
        }
        self.push_event(end + self.costs.wgmma_latency, Pending::WgmmaDone(n));
        Ok(())
    }

    /// A store that an MMA conflicts with may come behind the MMA in its own warp, which was not the last to come to it.
    fn mark_late(&mut self, first: usize, stamp: Stamp) {
        let Some(before) = self.warpgroups.get(&first).and_then(|group| group.before.back()) else { return };
        let actors: Vec<ActorId> = self.warps[first..first + WARPS].iter().map(|warp| warp.actor).collect();
        let parts = self.warps[first..first + WARPS].iter().flat_map(|warp| warp.parts.iter().map(|part| part.1));
        let own: Vec<ActorId> = actors.into_iter().chain(parts).collect();
        for race in self.races.iter_mut().rev().take_while(|race| race.second == stamp) {
            let store = race.conflict.first;
            race.late = own.contains(&store.actor) && store.epoch > before.get(store.actor);
        }
    }

    /// The tensor core reads the operands of an MMA out of shared memory.
    pub fn wgmma_read(&mut self, n: usize) {
        let mma = &mut self.wgmmas[n];
        let op = match &self.kernel.code[mma.pc as usize].op {
            crate::program::op::Op::Wgmma(op) => op,
            _ => return,
        };
        let shared = &self.ctas[self.warps[mma.first].cta].shared;
        let [a, _] = &mut mma.operands.a;
        let b = &mut mma.operands.b;
        if self.blank.is_some() {
            if let Some(d) = mma.a {
                a.look(0, shared, &d, ROWS, op.a_mn_major);
            }
            return b.look(0, shared, &mma.b, op.n, op.b_mn_major);
        }
        if let Some(d) = mma.a {
            a.read(shared, &d, ROWS, op.a_mn_major);
        }
        b.read(shared, &mma.b, op.n, op.b_mn_major);
        if self.options.keep_operands
            && let Some(event) = mma.event
            && let EventKind::Wgmma(traced) = &mut self.trace[event].kind
        {
            let flat = |operand: &Operand| operand.bits.as_flattened().to_vec();
            traced.a.iter_mut().for_each(|read| read.elements = flat(a));
            traced.b.iter_mut().for_each(|read| read.elements = flat(b));
        }
    }

    /// An MMA is complete.
    pub fn wgmma_done(&mut self, n: usize, time: u64) {
        if self.wgmmas[n].read_late && self.options.computes() {
            self.wgmma_read(n);
        }
        let mma = &mut self.wgmmas[n];
        let (first, number, pc, accumulate, origin) = (mma.first, mma.number, mma.pc, mma.accumulate, mma.origin);
        let operands = std::mem::take(&mut mma.operands);
        self.wgmmas.free(n);
        let joins = |this: &Self| {
            let waiting = this.warpgroups.get(&first)?.waiting.first()?;
            Some(accumulate && this.wgmma_at(waiting.pc)?.goes_with(this.wgmma_at(pc)?))
        };
        if joins(self) == Some(false) {
            self.settle_wgmma(first);
        }
        let Some(group) = self.warpgroups.get_mut(&first) else { return };
        group.waiting.push(Step { pc, accumulate, operands, origin });
        (group.done, group.done_at) = (number, time);
        if group.waiting.len() == DEPTH {
            self.settle_wgmma(first);
        }
        self.release_wgmma(first);
    }

    /// Computes the complete MMAs of a warpgroup: their sum is in its registers from now on.
    pub fn settle_wgmma(&mut self, first: usize) {
        let Some(group) = self.warpgroups.get_mut(&first) else { return };
        let steps = std::mem::take(&mut group.waiting);
        let (Some(begin), Some(op)) = (steps.first(), steps.first().and_then(|step| self.wgmma_at(step.pc))) else {
            return;
        };
        let accumulate = begin.accumulate;
        let site = self.kernel.code[begin.pc as usize].site;
        if self.options.computes() && self.blank.is_none() {
            self.compute_wgmma(first, op, &steps);
        } else {
            for warp in &mut self.warps[first..first + WARPS] {
                op.d.iter().for_each(|&reg| warp.registers.b32[usize::from(reg)] = [0; 32]);
            }
        }
        let lacking = accumulate
            && self.warps[first..first + WARPS]
                .iter()
                .any(|warp| op.d.iter().any(|&reg| warp.registers.defined(Reg::B32(reg)) != u32::MAX));
        let unknown = if lacking && self.options.computes() {
            self.origin(site, "this MMA adds to registers that hold no defined value".into())
        } else {
            0
        };
        self.define_wgmma(first, op, &steps, accumulate, unknown);
        let spare = steps.into_iter().map(|step| step.operands.emptied());
        self.wgmma_scratch.spare.extend(spare);
    }

    fn compute_wgmma(&mut self, first: usize, op: &WgmmaOp, steps: &[Step]) {
        let pitch = (op.n as usize).next_multiple_of(16);
        let Scratch { cells, factors, .. } = &mut self.wgmma_scratch;
        cells.resize(ROWS as usize * pitch / 16, Line::default());
        let cells = simd::flat_mut(cells);
        let (step, wide) = (op.step(steps[0].accumulate), op.types.wide_d());
        let warps = &mut self.warps[first..first + WARPS];
        let place = |q: usize, t: usize, r: usize| {
            let (row, column) = d_element(wide, t, r);
            (q * WARP_ROWS as usize + row) * pitch + column
        };
        if step.accumulate {
            for (q, warp) in warps.iter().enumerate() {
                for (r, &reg) in op.d.iter().enumerate() {
                    for (t, &value) in warp.registers.b32[usize::from(reg)].iter().enumerate() {
                        let at = place(q, t, r);
                        if wide {
                            cells[at] = value;
                        } else {
                            (cells[at], cells[at + 1]) = (value & 0xffff, value >> 16);
                        }
                    }
                }
            }
        }
        let rows: Vec<(usize, usize)> = (0..ROWS as usize).map(|row| (row, row * pitch)).collect();
        let strips = &[Strip { rows: &rows, columns: 0..op.n as usize }];
        let numerics = self.options.numerics;
        if op.types.kind == Kind::F16 {
            let a: Vec<_> = steps.iter().map(|step| &step.operands.a[0].bits[..]).collect();
            let b: Vec<_> = steps.iter().map(|step| &step.operands.b.bits[..]).collect();
            let tiles = tiles::of(numerics, &step);
            let prefetches = Prefetches::of(&mut self.unfetched, &self.global);
            simd::run(Product {
                numerics,
                step,
                a: &a,
                b: &b,
                strips,
                factors,
                same_b: false,
                tiles,
                cells,
                prefetches,
            });
        } else {
            for (n, step) in steps.iter().enumerate() {
                simd::run(kinds::Product {
                    numerics,
                    precision: Precision::of_wgmma(op.types.kind),
                    descriptor: &op.descriptor(),
                    accumulate: n > 0 || step.accumulate,
                    scale: 0,
                    a: &step.operands.a[0].bits,
                    b: &step.operands.b.bits,
                    scales: &ScaleFactors::default(),
                    strips,
                    factors,
                    cells,
                    prefetches: Prefetches::of(&mut self.unfetched, &self.global),
                });
            }
        }
        for (q, warp) in warps.iter_mut().enumerate() {
            for (r, &reg) in op.d.iter().enumerate() {
                for (t, value) in warp.registers.b32[usize::from(reg)].iter_mut().enumerate() {
                    let at = place(q, t, r);
                    *value = if wide { cells[at] } else { cells[at] & 0xffff | cells[at + 1] << 16 };
                }
            }
        }
    }

    /// Says which elements of D hold a defined value, and why, if some do not; `unknown`: because D did not before.
    fn define_wgmma(&mut self, first: usize, op: &WgmmaOp, steps: &[Step], accumulate: bool, unknown: u32) {
        let whole = steps.iter().all(|s| s.operands.a[0].defined.is_empty() && s.operands.b.defined.is_empty());
        let origin = steps.iter().map(|step| step.origin).find(|&origin| origin != 0).unwrap_or(unknown);
        let row_ok = |row| steps.iter().all(|step| step.operands.a[0].is_defined(row));
        let column_ok = |column| steps.iter().all(|step| step.operands.b.is_defined(column));
        let wide = op.types.wide_d();
        let rows: Vec<bool> = (0..if whole { 0 } else { ROWS as usize }).map(row_ok).collect();
        let columns: Vec<bool> = (0..if whole { 0 } else { op.n as usize }).map(column_ok).collect();
        for (q, warp) in self.warps[first..first + WARPS].iter_mut().enumerate() {
            for (r, &reg) in op.d.iter().enumerate() {
                let reg = Reg::B32(reg);
                let before = if accumulate && self.options.computes() { warp.registers.defined(reg) } else { u32::MAX };
                let mut now = before;
                for t in 0..if whole { 0 } else { 32 } {
                    let (row, column) = d_element(wide, t, r);
                    let ok = rows[q * WARP_ROWS as usize + row] && columns[column] && (wide || columns[column + 1]);
                    now &= !(u32::from(!ok) << t);
                }
                warp.registers.set_defined(reg, u32::MAX, now);
                if now == u32::MAX {
                    warp.origins.remove(&reg);
                } else if before == u32::MAX || !warp.origins.contains_key(&reg) {
                    warp.origins.insert(reg, origin);
                }
            }
        }
    }
}
