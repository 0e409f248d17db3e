//! `tcgen05.mma`: issue, the tensor core's work, completion.

pub mod collector;
pub mod commit;
pub mod footprints;
pub mod instruction_descriptor;
pub mod issued;
pub mod issuer;
pub mod matrix_descriptor;
pub mod operands;
pub mod touches;
pub mod warp_mma;
pub mod wgmma;
pub mod wgmma_descriptor;
pub mod wgmma_work;
pub mod wide_mma;
pub mod work;

use crate::machine::arithmetic::formats::Format;
use crate::machine::arithmetic::operand::Operand;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::layout::depths::Multiplied;
use crate::machine::state::{At, Pending, Span};
use crate::machine::tensor_memory::scale_factors::ScaleFactors;
use crate::machine::tensor_memory::supplies::WHOLE;
use crate::machine::tensor_memory::{COLUMNS, Halves, InstructionDescriptor, SharedDescriptor};
use crate::machine::warp::Queue;
use crate::machine::warp::registers::lanes;
use crate::order::Stamp;
use crate::program::kind::Kind;
use crate::program::op::{Address, MmaA, MmaOp};
use crate::program::tensor_core::Collector;
use crate::report::{Actor, EventKind, Mma, OperandRead};
use collector::Held;
use footprints::footprint;
use instruction_descriptor::Accumulator;
use issued::Recent;
use issuer::Group;
use operands::{Checked, laid_operands};
use smallvec::SmallVec;

/// Where an MMA reads A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Shared(SharedDescriptor),
    /// A column of tensor memory.
    Tensor(u32),
}

/// An MMA on its way.
#[derive(Debug)]
pub struct PendingMma {
    /// The warp that issued it.
    pub w: usize,
    pub site: u32,
    pub descriptor: InstructionDescriptor,
    pub group: Group,
    pub a: Source,
    pub b: SharedDescriptor,
    /// Where its accumulator begins.
    pub lane: u32,
    pub column: u32,
    pub accumulate: bool,
    /// Power of two that the accumulator is divided by first.
    pub scale: u32,
    /// Lanes that are not written, of each CTA.
    pub disabled: [u128; 2],
    /// A of each CTA, and all of B, once they are read.
    pub operands: Option<Operands>,
    /// Index into the trace.
    pub event: Option<usize>,
    pub origin: u32,
    pub read_late: bool,
    /// The columns that the scale factors of A and of B begin at, of kinds that have them.
    pub factors: Option<[u32; 2]>,
}

/// What an MMA has read.
#[derive(Debug, Default)]
pub struct Operands {
    pub a: [Operand; 2],
    pub b: Operand,
    /// Of each CTA, where there are any.
    pub factors: [ScaleFactors; 2],
}

impl Operands {
    /// Only their memory.
    pub fn emptied(mut self) -> Operands {
        self.a.iter_mut().for_each(Operand::clear);
        self.b.clear();
        self.factors.iter_mut().for_each(ScaleFactors::clear);
        self
    }
}

/// The operands of one thread's MMA.
#[derive(Clone, PartialEq)]
pub struct Inputs {
    pub d: u32,
    pub a: (bool, u64),
    pub b: u64,
    pub idesc: u32,
    accumulate: bool,
    disabled: [u128; 2],
    scale: u32,
    pub kind: Kind,
    pub stationary: bool,
    collector: Collector,
    /// Scale factors of each row, and where those of A and of B are.
    pub factors: Option<(u32, [u32; 2])>,
}

impl Cluster<'_> {
    pub fn mma(&mut self, at: At, op: &MmaOp) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        let r = &self.warps[w].registers;
        let tensor = |a: &Address, lane| (r.lane(a.base, lane) as u32).wrapping_add(a.offset as u32);
        let inputs = |lane: usize| {
            let mut disabled = [0u128; 2];
            for (n, &reg) in op.disabled.iter().enumerate() {
                disabled[n / 4 % 2] |= u128::from(r.b32[usize::from(reg)][lane]) << (32 * (n % 4));
            }
            Inputs {
                d: tensor(&op.d, lane),
                a: match &op.a {
                    MmaA::Shared(d) => (false, r.b64[usize::from(*d)][lane]),
                    MmaA::Tensor(a) => (true, tensor(a, lane).into()),
                },
                b: r.b64[usize::from(op.b)][lane],
                idesc: r.b32[usize::from(op.idesc)][lane],
                accumulate: (r.pred[usize::from(op.accumulate)] >> lane & 1 == 1) != op.accumulate_negated,
                disabled,
                scale: op.scale,
                kind: op.kind,
                stationary: op.stationary,
                collector: op.collector,
                factors: op.factors.as_ref().map(|f| (f.each, [0, 1].map(|n| tensor(&f.at[n], lane)))),
            }
        };
        let all: SmallVec<[_; 1]> = lanes(mask).map(|lane| (lane, inputs(lane))).collect();
        if all.len() > 1 && all.iter().all(|(_, i)| *i == all[0].1) {
            self.many_lanes(w, mask, site, "tcgen05.mma", "the product is added that many times");
        }
        let group = self.group(at, op.pair, "tcgen05.mma")?;
        for (lane, inputs) in all {
            self.issue_mma(at, lane, &group, inputs)?;
        }
        Ok(())
    }

    fn issue_mma(&mut self, at: At, lane: usize, group: &[usize], inputs: Inputs) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        self.stop_at_base_offset(site, group[0], &inputs)?;
        let Checked { descriptor: i, a, b, lane: first_lane, column, factors } =
            self.decode_mma(site, group, &inputs)?;
        let layout = i.layout(group.len(), first_lane);
        let halves = layout.halves();
        if halves != Halves::Both {
            self.halves_matter(group[0]);
        }
        if self.options.judges() {
            let held = if inputs.stationary { Held::b(Source::Shared(b), &i) } else { Held::a(a, &i) };
            self.collect(site, group, inputs.collector, held);
        }
        if self.options.tensor_load_factor != 1.0 {
            let why = match (i.d, a) {
                (Accumulator::F16, _) => Some("its accumulator is FP16"),
                (Accumulator::S32, _) => Some("its accumulator is S32"),
                (Accumulator::F32, Source::Tensor(_)) => Some("its A lies in tensor memory"),
                (Accumulator::F32, _) if factors.is_some() => Some("its scale factors lie in tensor memory"),
                _ => None,
            };
            if let Some(why) = why {
                self.factor_fails.get_or_insert((site, why));
            }
        }

        let Queue { actor, epoch, busy_until, .. } = self.queued(w, lane, site);
        let stamp = Stamp::asynchronous(actor, epoch, site, self.index);
        self.mma_reaches(w, group, (actor, epoch), site);
        self.note_pipeline(w, stamp, (group[0], group.len()), (column, i.m, i.n), i.kind);

        // Operands: bounds, and who wrote them.
        let (m_each, n_each) = (i.m / group.len() as u32, i.n / group.len() as u32);
        let mut unwritten = None;
        let mut reads = SmallVec::<[_; 2]>::new();
        let (of_a, of_b) = laid_operands(site, &i, group.len(), (&a, b));
        let judged = of_a.filter(|_| self.options.judges()).map(|of_a| [of_a, of_b]);
        if let Some(operands) = judged {
            self.suspect(group[0], operands);
        }
        for laid in of_a.into_iter().chain([of_b]) {
            let d = laid.d;
            let (footprint, base) = footprint(&d, laid.rows, laid.mn_major);
            let read = self.read_range(site, group[0], &laid, &footprint, base).map_err(|stop| {
                let wider = self.wider_than_what_was_copied(group[0], (&i, group.len()), &laid);
                wider.map_or(stop, |told| Some(Box::new(told)))
            });
            reads.push(read?);
            for &c in group {
                if !self.options.judges() {
                    continue;
                }
                let shared = &self.ctas[c].shared;
                let missing = || shared.undefined_granule(footprint.runs(base), d.elements.data);
                unwritten = unwritten.or_else(|| missing().map(|at| (c, at)));
                let views = std::mem::take(&mut self.warps[w].views);
                self.touch_operand(&views, c, &footprint, base, stamp);
                self.warps[w].views = views;
                self.check_layout(c, laid, &footprint, base);
            }
            self.check_halves(group, laid);
        }
        // What tells the accumulator from others.
        let sum = first_lane << 16 | column;
        if let Some(operands) = judged {
            self.check_depths(Multiplied {
                cta: group[0],
                accumulator: sum,
                adds: inputs.accumulate,
                operands,
                formats: matches!(i.kind, Kind::F16 | Kind::F8f6f4 | Kind::Mxf8f6f4).then_some([i.a, i.b]),
                negated: [i.negate_a, i.negate_b],
            });
            self.note_sum(group, sum, inputs.accumulate, &operands);
            self.note_stage(w, group[0], site, operands.map(|laid| laid.d.start));
        }
        match (inputs.accumulate, a) {
            (true, Source::Shared(a)) if self.options.judges() => {
                self.check_product(group[0], sum, [a, b], site);
            }
            (true, _) => {}
            (false, _) => self.begin_product(group[0], sum),
        }
        if let Source::Tensor(from) = a {
            for &c in group {
                self.accumulators_read(c, halves, (from, 8), site);
                if b.elements.log_bits < 5 {
                    self.check_no_product(c, halves, from, site);
                }
                self.touch_tensor(w, c, (from, 8), halves, stamp, false);
                self.supplies.read(c, (from, 8), WHOLE, Some(site));
            }
        }
        self.touch_factors(w, group, &i, factors, stamp);
        for &c in group {
            let sum = (column, layout.columns(i.n));
            self.touch_tensor(w, c, sum, halves, stamp, true);
            if inputs.accumulate {
                self.supplies.read(c, sum, WHOLE, None);
            }
            self.supplies.overwrite(c, 0..4, sum);
        }
        let origin = if !self.options.judges() {
            0
        } else {
            match self.mma_origin(site, w, group[0], &i, (first_lane, column), inputs.accumulate, unwritten) {
                // What copies bring is there when A is read: `mma_done` looks then.
                0 if self.issued.has_copies() => 0,
                0 => self.origin_of_a(site, w, group, (a, halves), layout.a_in_tensor(m_each).0),
                known => known,
            }
        };

        let now = self.warps[w].fragments[f].ready_at;
        let delay = self.jitter(300);
        let free = group.iter().map(|&c| self.ctas[c].tensor_core_free).max().unwrap_or(now);
        let start = now.max(free) + delay;
        let cycles = self.costs.mma_interval(m_each, i.n, n_each, matches!(a, Source::Shared(_)));
        let slowed = group.iter().map(|&c| self.ctas[c].slowed.tensor_core).max().unwrap_or(256);
        let end = start + cycles * slowed * self.rates.tensor_core / (256 * 256);
        for &c in group {
            self.ctas[c].tensor_core_free = end;
            self.ctas[c].busy.tensor_core += cycles;
        }
        // What was measured ends with the sight of the commit.
        let latency = self.costs.mma_latency(m_each, group.len() > 1, matches!(a, Source::Shared(_)));
        let mut latest = end + latency.saturating_sub(self.costs.wake);
        if self.issued.has_copies() {
            // It works with what copies of its thread bring to tensor memory.
            latest = latest.max(busy_until);
        }
        if let Some(queue) = self.mma_queues.get_mut(&(w, lane)) {
            queue.busy_until = latest;
        }
        let mut parts = reads.into_iter();
        let taken = |read: Option<OperandRead>, format: Format, negated, mn_major| OperandRead {
            format: format.name(),
            negated,
            mn_major,
            ..read.unwrap_or_default()
        };
        let ra = if of_a.is_some() { parts.next() } else { None };
        let ra = taken(ra, i.a, i.negate_a, i.a_mn_major);
        let rb = taken(parts.next(), i.b, i.negate_b, i.b_mn_major);
        let (shape, cta_group, accumulate) = ([i.m, i.n, i.kind.depth()], group.len() as u32, inputs.accumulate);
        let ctas = group.iter().filter(|_| self.options.trace).map(|&c| self.cta_index(c)).collect();
        let span = Span { w, issued: now, start, end: latest };
        let event = self.trace(group[0], Actor::TensorCore, span, site, || {
            EventKind::Mma(Box::new(Mma { shape, cta_group, accumulate, column, ctas, a: ra, b: rb }))
        });
        let (early, late) = (self.perturbed(3), self.perturbed(3));
        let late = late || self.issued.has_copies() && matches!(a, Source::Tensor(_));
        let judged = self.options.judges();
        let brought = |d: &SharedDescriptor| {
            let brought = self.brought(group[0], d);
            (brought != (0, None)).then_some(brought)
        };
        let of_a = if let Source::Shared(a) = a { Some(a) } else { None };
        let brought = [of_a, Some(b)].map(|d| d.filter(|_| judged).and_then(|d| brought(&d)));
        let recent = Recent {
            warp: w,
            ctas: (group[0], group.len()),
            d: (column, i.m, i.n),
            columns: layout.columns(i.n),
            layout,
            kind: i.kind,
            of: i.d,
            operands: (
                match a {
                    Source::Shared(a) => a.start,
                    Source::Tensor(from) => from,
                },
                b.start,
            ),
            b: (b, i.b_mn_major),
            brought,
            disabled: inputs.disabled,
            adds: inputs.accumulate,
            read: false,
            stamp,
            nth: self.issued.nth(w, site),
            at: self.warps[w].views.hb.get(self.warps[w].actor),
        };
        if self.options.judges() {
            self.accumulators_apart(&recent);
            self.check_accumulator(&recent, inputs.accumulate, inputs.disabled == [0; 2]);
            self.note_product(&recent);
        }
        self.issued.add(recent);
        let mma = PendingMma {
            w,
            site,
            descriptor: i,
            group: group.into(),
            a,
            b,
            lane: first_lane,
            column,
            accumulate,
            scale: inputs.scale,
            disabled: inputs.disabled,
            operands: None,
            event,
            origin,
            read_late: late,
            factors,
        };
        let n = self.mmas.put(mma);
        if !self.options.computes() {
            // Nobody reads, nobody computes.
        } else if early && !late {
            self.mma_read(n);
        } else if !late {
            self.push_event(start, Pending::MmaRead(n));
        }
        self.push_event(latest, Pending::MmaDone(n));
        Ok(())
    }

    /// Why the result of an MMA would be undefined, if it is.
    #[allow(clippy::too_many_arguments)]
    fn mma_origin(
        &mut self,
        site: u32,
        w: usize,
        c: usize,
        i: &InstructionDescriptor,
        (lane, column): (u32, u32),
        accumulate: bool,
        unwritten: Option<(usize, u32)>,
    ) -> u32 {
        if accumulate
            && !self.issued.wrote(w, i.layout(1, lane).halves(), column, i.n)
            && !(0..i.n.min(COLUMNS - column)).all(|n| self.ctas[c].tensor.get(lane, column + n).1)
        {
            let name = self.tensor_name(column);
            self.findings.reads_unwritten(&self.place(site));
            return self.origin(site, format!("this MMA adds to {name}, which holds nothing yet"));
        }
        match unwritten {
            Some((c, at)) => {
                if let Some(known) = self.kept_origin(c, at, at + 16) {
                    return known;
                }
                self.reads_unwritten(site, c, at)
            }
            None => 0,
        }
    }
}
