//! `tcgen05.cp`: shared memory to tensor memory, by the tensor core, in line with the MMAs of its thread.

use super::supplies::WHOLE;
use super::{Halves, place};
use crate::diagnostic::Severity;
use crate::machine::arithmetic::formats::unpack;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::layout::boxes::{Laid, Which};
use crate::machine::mma::issuer::Group;
use crate::machine::mma::matrix_descriptor::{Elements, SharedDescriptor};
use crate::machine::state::{At, Pending, Span};
use crate::machine::warp::Queue;
use crate::machine::warp::registers::lanes;
use crate::order::{ActorId, Footprint, Stamp};
use crate::program::op::{Op, Packed, TensorCopyOp};
use crate::program::tensor_core::TensorCopyShape;
use crate::report::{Actor, EventKind};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// A copy on its way.
#[derive(Debug)]
pub struct PendingTensorCopy {
    site: u32,
    op: TensorCopyOp,
    group: Group,
    source: SharedDescriptor,
    column: u32,
    /// The rows that each CTA of the group has read: bytes, and whether they are defined, by 32-bit words.
    rows: Option<SmallVec<[Vec<Row>; 2]>>,
    read_late: bool,
}

/// Up to eight cells.
type Row = ([u32; 8], [bool; 8]);

/// Copies whose issue is remembered at most.
const MOST: usize = 4096;

/// Copies that were issued: by queue and number there, who issued them and when.
#[derive(Debug, Default)]
pub struct IssuedCopies {
    any: bool,
    by: FxHashMap<(ActorId, u32), (ActorId, u32)>,
}

impl IssuedCopies {
    pub fn is_empty(&self) -> bool {
        !self.any
    }
}

const SOURCE_RULE: &str = "The shared-memory descriptor follows PTX ISA 9.7.16.4.1; a tcgen05.cp reads it as K-major.";
const RANGE_RULE: &str = "What a tcgen05.cp writes lies in columns that tcgen05.alloc gave (PTX ISA 9.7.16.7.1).";

impl Cluster<'_> {
    pub fn tensor_copy(&mut self, at: At, op: &TensorCopyOp) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        let r = &self.warps[w].registers;
        let of = |lane: usize| {
            let d = (r.lane(op.d.base, lane) as u32).wrapping_add(op.d.offset as u32);
            (lane, d, r.b64[usize::from(op.s)][lane])
        };
        let all: SmallVec<[_; 1]> = lanes(mask).map(of).collect();
        if all.len() > 1 && all.iter().all(|one| (one.1, one.2) == (all[0].1, all[0].2)) {
            self.many_lanes(w, mask, site, "tcgen05.cp", "the same is copied that many times");
        }
        let group = self.group(at, op.pair, "tcgen05.cp")?;
        for (lane, d, s) in all {
            self.issue_tensor_copy(at, lane, &group, op, (d, s))?;
        }
        Ok(())
    }

    /// The columns that a copy writes, from its first on.
    fn copy_columns(op: &TensorCopyOp) -> u32 {
        op.shape.size().1 / 4
    }

    fn check_destination(&self, site: u32, group: &[usize], op: &TensorCopyOp, address: u32) -> Result<u32, Stop> {
        let (lane, column, columns) = (address >> 16, address & 0xffff, Self::copy_columns(op));
        let missing = group.iter().filter_map(|&c| self.ctas[c].tensor.unallocated(column, columns)).min();
        let freed = missing.and_then(|n| group.iter().find_map(|&c| self.ctas[c].tensor.freed(n)));
        if let Some(freed) = freed.filter(|_| lane == 0) {
            return Err(Some(Box::new(self.used_after_free("the tcgen05.cp", group.len() > 1, column, site, freed))));
        }
        let why = match missing {
            None if lane == 0 => return Ok(column),
            Some(c) if lane == 0 => {
                format!("it takes {columns} columns from {column} on, of which column {c} is not allocated")
            }
            _ => format!("it begins at lane {lane}; lane 0 is modelled"),
        };
        Err(Some(Box::new(self.problem(
            "tensor-address",
            site,
            format!("the destination of a tcgen05.cp is at {}: {why}", place(address)),
            RANGE_RULE,
            "Pass the address that tcgen05.alloc wrote, plus a column offset within the allocation.".into(),
        ))))
    }

    fn issue_tensor_copy(
        &mut self,
        at: At,
        lane: usize,
        group: &Group,
        op: &TensorCopyOp,
        (address, descriptor): (u32, u64),
    ) -> Result<(), Stop> {
        let At { w, f, site, .. } = at;
        let source = SharedDescriptor::decode(descriptor, Elements::B8).map_err(|(found, allowed)| {
            let help = format!("Allowed: {allowed}.");
            Some(Box::new(self.problem("matrix-descriptor", site, found, SOURCE_RULE, help)))
        })?;
        self.note_descriptor(site, "the source", descriptor);
        let column = self.check_destination(site, group, op, address)?;
        let columns = Self::copy_columns(op);

        let Queue { actor, epoch, busy_until, .. } = self.queued(w, lane, site);
        let warp = self.warps[w].actor;
        let stamp = Stamp::asynchronous(actor, epoch, site, self.index);
        let known = (warp, self.warps[w].views.hb.get(warp));
        let issued = &mut self.issued;
        (issued.copies.any, issued.last) = (true, Some(site));
        issued.sites.insert(w, site);
        if issued.copies.by.len() == MOST {
            issued.copies.by.clear();
        }
        issued.copies.by.insert((actor, epoch), known);
        self.mma_reaches(w, group, (actor, epoch), site);

        // What it reads, and what it overwrites.
        let (rows, bytes) = op.shape.size();
        let base = source.start / crate::order::BLOCK as u32 * crate::order::BLOCK as u32;
        let inside = SharedDescriptor { start: source.start - base, ..source };
        let chunks = (0..rows).flat_map(|row| (0..bytes / 16).map(move |chunk| (row, chunk)));
        let footprint = Footprint::new(chunks.map(|(row, chunk)| inside.chunk(row, 16 * chunk, false).into()));
        let block = u64::from(base) / crate::order::BLOCK;
        let laid = Laid { which: Which::Copied, d: source, rows, mn_major: false, site };
        self.read_range(site, group[0], &laid, &footprint, block)?;
        if self.options.judges() {
            self.note_stage_of_copy(w, group[0], site, [source.start, rows * bytes]);
        }
        for &c in group {
            if !self.options.judges() {
                continue;
            }
            let views = std::mem::take(&mut self.warps[w].views);
            self.touch_operand(&views, c, &footprint, block, stamp);
            self.warps[w].views = views;
            self.check_swizzle(c, footprint.runs(block), source.mode(), None, site);
            let loaded = &mut self.ctas[c].loaded;
            loaded.read_granules(footprint.runs(block));
            loaded.factors.taken(source.start, site);
            loaded.rounds.taken(source.start, site);
            self.touch_tensor(w, c, (column, columns), Halves::Both, stamp, true);
            match op.shape {
                // Four rows: of the other lanes' cells nothing is known any more.
                TensorCopyShape::S4x256b => self.supplies.read(c, (column, columns), WHOLE, None),
                _ => self.note_supply(c, 0..4, (column, columns), site, true),
            }
        }
        self.note_repeated_rows(site, &source, op);
        self.overwrites_accumulator(w, column, columns, stamp);

        let now = self.warps[w].fragments[f].ready_at;
        let delay = self.jitter(300);
        let free = group.iter().map(|&c| self.ctas[c].tensor_core_free).max().unwrap_or(now);
        let start = now.max(free) + delay;
        let end = start + u64::from(rows * bytes).div_ceil(self.costs.tensor_copy_bytes_per_cycle);
        for &c in group {
            self.ctas[c].tensor_core_free = end;
        }
        // Its work begins when what stands before it in the line is complete.
        let latest = (end + self.costs.tensor_copy).max(busy_until);
        if let Some(queue) = self.mma_queues.get_mut(&(w, lane)) {
            queue.busy_until = latest;
        }
        let span = Span { w, issued: now, start, end: latest };
        self.trace(group[0], Actor::TensorCore, span, site, || EventKind::TensorCopy {
            column,
            columns,
            bytes: rows * bytes,
        });
        if !self.options.computes() {
            return Ok(());
        }
        let (early, late) = (self.perturbed(3), self.perturbed(3));
        let copy =
            PendingTensorCopy { site, op: *op, group: group.clone(), source, column, rows: None, read_late: late };
        let n = self.tensor_copies.put(copy);
        if early && !late {
            self.tensor_copy_read(n);
        } else if !late {
            self.push_event(start, Pending::TensorCopyRead(n));
        }
        self.push_event(latest, Pending::TensorCopyDone(n));
        Ok(())
    }

    /// A note on a copy whose rows lie in the same bytes. That all rows are the first eight may be meant.
    fn note_repeated_rows(&mut self, site: u32, source: &SharedDescriptor, op: &TensorCopyOp) {
        let (rows, bytes) = op.shape.size();
        if !self.options.judges() || source.stride == 0 {
            return;
        }
        let mut known = FxHashMap::default();
        let chunks = (0..rows).flat_map(|row| (0..bytes / 16).map(move |chunk| (row, chunk)));
        let twice = chunks.into_iter().find_map(|at| {
            let first = known.insert(source.chunk(at.0, 16 * at.1, false), at)?;
            Some((first, at))
        });
        let Some((first, second)) = twice else { return };
        let part = |(row, chunk): (u32, u32)| match bytes {
            16 => format!("row {row}"),
            _ => format!("row {row}, byte {}", 16 * chunk),
        };
        let title = format!(
            "different rows that the tcgen05.cp reads lie in the same bytes of {}",
            self.shared_name(source.start)
        );
        let help = "Set the stride offset (bits 32 to 45, in units of 16 bytes) to the bytes from eight rows to the next, 128 where they lie one \
                    behind the other; and the leading offset (bits 16 to 29), where rows have more than 16 bytes, to those from 16 bytes of them to the next.";
        let rule = format!(
            "{SOURCE_RULE} A B200's product was wrong with scale factors whose rows overlap so (jIab-b/nvfp4_gemm)."
        );
        let mut diagnostic = self.problem("operand-overlap", site, title, &rule, help.into());
        // Copying bytes twice breaks no rule.
        diagnostic.severity = Severity::Note;
        diagnostic.labels[0].text = format!("{} and {} are the same bytes", part(first), part(second));
        self.findings.add(diagnostic);
    }

    /// A copy overwrites an accumulator whose MMA is not known to be complete: the two are no pipeline.
    fn overwrites_accumulator(&mut self, w: usize, column: u32, columns: u32, stamp: Stamp) {
        let Some(mma) = self.issued.accumulator(column, columns) else { return };
        if !self.options.judges() || mma.actor != stamp.actor || mma.epoch <= self.warps[w].views.heard(mma.actor) {
            return;
        }
        let name = self.tensor_name(column);
        let mut diagnostic = self.problem(
            "race-tensor",
            stamp.site,
            format!("a tcgen05.cp overwrites the accumulator of an MMA in {name}, and nothing orders the two"),
            "A tcgen05.mma comes after a tcgen05.cp of its thread, but a tcgen05.cp does not come after what an earlier tcgen05.mma writes \
             (PTX ISA 9.7.16.6.2).",
            "Wait for a commit behind the MMA before its accumulator is overwritten, or copy to other columns.".into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.push(self.label(mma.site, "this MMA writes it"));
        self.findings.add(diagnostic);
    }

    /// Whether a statement is a copy to tensor memory.
    pub fn is_tensor_copy(&self, site: u32) -> bool {
        self.kernel.code.iter().any(|inst| inst.site == site && matches!(inst.op, Op::TensorCopy(_)))
    }

    /// Whether this is an MMA behind a copy of another thread, whose issue is known here: the two run as a pipeline, and nobody need
    /// wait for the copy (PTX ISA 9.7.16.6.4.3).
    pub fn pipelined_copy(&self, w: usize, first: Stamp, second: Stamp) -> bool {
        let Some(&(warp, epoch)) = self.issued.copies.by.get(&(first.actor, first.epoch)) else {
            return false;
        };
        first.cluster == self.index && self.warps[w].views.hb.get(warp) >= epoch && !self.is_tensor_copy(second.site)
    }

    /// The tensor core reads what a copy brings.
    pub fn tensor_copy_read(&mut self, n: usize) {
        let copy = &self.tensor_copies[n];
        let (rows, bytes) = copy.op.shape.size();
        let elements = match copy.op.unpack {
            None => Elements::B8,
            Some(Packed::B4) => Elements::B4_PADDED,
            Some(Packed::B6) => Elements::B6_PADDED,
        };
        let of = |c: usize| {
            let shared = &self.ctas[c].shared;
            let row = |row| {
                let (mut cells, mut defined): Row = ([0; 8], [false; 8]);
                for chunk in 0..bytes / 16 {
                    let at = copy.source.chunk(row, 16 * chunk, false) as usize;
                    let Some(from) = shared.bytes.get(at..).and_then(|bytes| bytes.first_chunk::<16>()) else {
                        continue;
                    };
                    let whole = shared.all_defined(at, elements.data as usize);
                    let words = unpack(*from, elements);
                    for (n, word) in words.as_chunks::<4>().0.iter().enumerate() {
                        let cell = chunk as usize * 4 + n;
                        cells[cell] = u32::from_le_bytes(*word);
                        defined[cell] =
                            if copy.op.unpack.is_some() { whole } else { shared.all_defined(at + 4 * n, 4) };
                    }
                }
                (cells, defined)
            };
            (0..rows).map(row).collect()
        };
        let all = copy.group.iter().map(|&c| of(c)).collect();
        self.tensor_copies[n].rows = Some(all);
    }

    /// What a copy brings is in tensor memory.
    pub fn tensor_copy_done(&mut self, n: usize, time: u64) {
        if self.tensor_copies[n].read_late {
            self.tensor_copy_read(n);
        }
        self.settle();
        let copy = &mut self.tensor_copies[n];
        let (op, site, column, columns) = (copy.op, copy.site, copy.column, Self::copy_columns(&copy.op));
        let (group, rows) = (copy.group.clone(), copy.rows.take().unwrap_or_default());
        let undefined = rows.iter().flatten().any(|(_, defined)| defined[..columns as usize].contains(&false));
        let origin = if undefined {
            let name = self.shared_name(self.tensor_copies[n].source.start);
            self.origin(site, format!("this tcgen05.cp reads {name}, parts of which nothing has written"))
        } else {
            0
        };
        for (&c, rows) in group.iter().zip(&rows) {
            let tensor = &mut self.ctas[c].tensor;
            for (row, (cells, defined)) in (0..).zip(rows) {
                for lane in op.shape.lanes(row) {
                    for (at, (&cell, &defined)) in (column..column + columns).zip(cells.iter().zip(defined)) {
                        tensor.set(lane, at, cell, defined);
                        if !defined {
                            tensor.set_origin(at, origin);
                        }
                    }
                }
            }
        }
        self.tensor_copies.free(n);
        self.end = self.end.max(time);
    }
}
