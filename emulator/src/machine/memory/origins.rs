//! Why bytes in memory hold no defined value: a message about them names what began it, not the load that met it.

use super::resolve::Target;
use crate::machine::cluster::Cluster;
use crate::machine::mma;
use crate::machine::state::{Lacks, Slot};
use crate::machine::tensor_memory::{COLUMNS, Halves, LANES};
use crate::program::op::{Op, Reg, Space};
use rustc_hash::FxHashMap;

/// Bytes that have one origin.
const GRANULE: usize = 4;

/// What is known of places that an undefined value was written to (in local memory, those of a warp). What has been overwritten since
/// stays: who asks has seen that the bytes are undefined.
#[derive(Debug, Default)]
pub struct Kept {
    /// Of granules: index into the run's origins.
    origins: FxHashMap<(usize, Target), u32>,
    /// Of bytes that hold values in some bits: the others.
    lacking: FxHashMap<(usize, Target), u8>,
}

/// Whose such a place is.
fn owner(w: usize, target: Target) -> usize {
    if matches!(target, Target::Local(_)) { w } else { 0 }
}

fn granules(w: usize, target: Target, bytes: usize) -> impl Iterator<Item = (usize, Target)> {
    let owner = owner(w, target);
    let offset = target.offset();
    (offset - offset % GRANULE as u64..offset + bytes as u64).step_by(GRANULE).map(move |at| (owner, target.at(at)))
}

/// Where a copy takes its bytes from.
#[derive(Clone, Copy, Debug)]
pub enum Source {
    Shared(Slot),
    /// Index of the buffer.
    Buffer(usize),
}

impl Cluster<'_> {
    /// An undefined value is written to these bytes.
    pub fn keep_origin(&mut self, w: usize, target: Target, bytes: usize, origin: u32) {
        let Kept { origins, lacking } = &mut self.kept_origins;
        origins.extend(granules(w, target, bytes).map(|key| (key, origin)));
        if !lacking.is_empty() {
            (0..bytes).for_each(|n| _ = lacking.remove(&(owner(w, target), target.after(n))));
        }
    }

    /// The same, of a value that lacks these bits: compilers fill a word field by field, and read only what they have filled.
    pub fn keep_lacking(&mut self, w: usize, target: Target, bytes: usize, origin: u32, lacks: u128) {
        self.keep_origin(w, target, bytes, origin);
        let parts = lacks.to_le_bytes().into_iter().take(bytes).enumerate();
        let some = parts.filter(|&(_, lacks)| lacks != 0 && lacks != u8::MAX);
        self.kept_origins.lacking.extend(some.map(|(n, lacks)| ((owner(w, target), target.after(n)), lacks)));
    }

    /// The bits that an undefined byte lacks.
    pub fn lacking(&self, w: usize, target: Target) -> u8 {
        self.kept_origins.lacking.get(&(owner(w, target), target)).copied().unwrap_or(u8::MAX)
    }

    /// Why the value of a register that is stored is undefined.
    pub fn origin_of_register(&mut self, w: usize, reg: Reg, site: u32) -> u32 {
        match self.warps[w].origins.get(&reg) {
            Some(&known) => known,
            None => self.origin(site, "a register is stored here that nothing has written".into()),
        }
    }

    /// Why these bytes are undefined; they are loaded here.
    pub fn origin_of_memory(&mut self, w: usize, target: Target, bytes: usize, site: u32) -> u32 {
        match granules(w, target, bytes).find_map(|key| self.kept_origins.origins.get(&key)) {
            Some(&known) => known,
            None => {
                let what = self.describe_target(&target);
                self.origin(site, format!("{what} is read here, but nothing has written a defined value to it"))
            }
        }
    }

    /// An MMA multiplies bytes of shared memory that nothing has written so far.
    pub fn reads_unwritten(&mut self, site: u32, cta: usize, at: u32) -> u32 {
        let known = self.unwritten.iter().rev().take(64).any(|known| *known == (site, cta, at));
        if !known {
            self.unwritten.push((site, cta, at));
        }
        let name = self.shared_name_exact(at);
        let part = self.part_written(cta, at);
        let origin = self.origin(site, format!("this MMA reads {name}{part}"));
        self.origins[origin as usize].lacks = Lacks::Operand;
        origin
    }

    /// That nothing has written a buffer, of which the 16 bytes from here on hold such a byte; where, if it is written in part.
    fn part_written(&self, cta: usize, at: u32) -> String {
        const NOTHING: &str = ", which nothing has written";
        let shared = &self.ctas[cta].shared;
        let Some((start, bytes)) = self.buffer_of(at).or_else(|| self.variable_of(at)) else { return NOTHING.into() };
        match shared.defined_among(start as usize, bytes as usize) {
            (_, 0) => NOTHING.into(),
            (_, written) => {
                let first = (at..at + 16).find(|&byte| !shared.is_defined(byte as usize)).unwrap_or(at);
                format!(
                    " at byte {}{NOTHING}: {written} of its {bytes} bytes are written so far",
                    first.saturating_sub(start)
                )
            }
        }
    }

    /// The run has come to its end: which MMAs have multiplied what nothing has written since, either.
    pub fn never_written(&mut self) {
        for (site, cta, at) in std::mem::take(&mut self.unwritten) {
            if self.ctas[cta].shared_shadow.writer(at.into()).is_none() {
                self.findings.reads_unwritten(&self.place(site));
            }
        }
    }

    /// Why A in tensor memory is undefined, if columns of it are, and nothing is on its way there.
    pub fn origin_of_a(
        &mut self,
        site: u32,
        w: usize,
        group: &[usize],
        (a, halves): (mma::Source, Halves),
        rows: u32,
    ) -> u32 {
        let mma::Source::Tensor(from) = a else { return 0 };
        let lacks = |c: usize, column: u32| {
            let tensor = &self.ctas[c].tensor;
            if rows == LANES { tensor.defined_lanes(column) != u128::MAX } else { !tensor.get(0, column).1 }
        };
        let end = (from + 8).min(COLUMNS);
        let first = group.iter().find_map(|&c| Some((c, (from..end).find(|&column| lacks(c, column))?)));
        match first.filter(|_| !self.issued.wrote(w, halves, from, 8)) {
            Some((c, column)) => match self.ctas[c].tensor.origin(column) {
                0 => {
                    let name = self.tensor_name(column);
                    self.origin(
                        site,
                        format!("this MMA reads A from {name}, to which nothing has written a defined value"),
                    )
                }
                known => known,
            },
            None => 0,
        }
    }

    /// A statement that stores to the place in shared memory that this one loads from, as far as their texts say so.
    pub fn stores_there(&self, load: u32) -> Option<u32> {
        let code = || self.kernel.code.iter().enumerate();
        let shared = |space: Space| matches!(space, Space::Shared | Space::SharedCluster | Space::Generic);
        let place = code().filter(|(_, inst)| inst.site == load).find_map(|(at, inst)| match &inst.op {
            Op::Load(op) if shared(op.space) => self.named(at, &op.address),
            _ => None,
        })?;
        code().find_map(|(at, inst)| {
            let address = match &inst.op {
                Op::Store(op) if shared(op.space) => &op.address,
                Op::TensorAlloc { address, .. } | Op::Fill { address, .. } => address,
                _ => return None,
            };
            (self.named(at, address) == Some(place)).then_some(inst.site)
        })
    }

    /// What an undefined value was written to, of the bytes of shared memory from here to there: why.
    pub fn kept_origin(&self, cta: usize, from: u32, end: u32) -> Option<u32> {
        let shared = &self.ctas[cta].shared;
        (from.next_multiple_of(GRANULE as u32)..end)
            .step_by(GRANULE)
            .filter(|&at| !shared.all_defined(at as usize, GRANULE))
            .find_map(|at| self.kept_origins.origins.get(&(0, Target::Shared(cta, at))).copied())
    }

    /// A copy has brought bytes to shared memory, some of them undefined perhaps.
    pub fn keep_origins(&mut self, site: u32, to: Slot, bytes: u32, from: Source) {
        let memory = &self.ctas[to.cta].shared;
        if memory.all_defined(to.offset as usize, bytes as usize) {
            return;
        }
        let undefined: Vec<u32> = (to.offset..to.offset + bytes)
            .step_by(GRANULE)
            .filter(|&at| !memory.all_defined(at as usize, GRANULE.min((to.offset + bytes - at) as usize)))
            .collect();
        let known = match from {
            Source::Shared(from) => self.kept_origin(from.cta, from.offset, from.offset + bytes),
            Source::Buffer(_) => None,
        };
        let origin = known.unwrap_or_else(|| {
            let what = match from {
                Source::Shared(from) => self.shared_name_exact(from.offset),
                Source::Buffer(n) => format!("`{}`", self.global.buffers[n].name),
            };
            self.origin(site, format!("this copies bytes of {what} that nothing has written"))
        });
        for at in undefined {
            self.keep_origin(0, Target::Shared(to.cta, at), GRANULE, origin);
        }
    }
}
