//! `atom` and `red`; and what strong accesses tell those that observe them.
//!
//! What a release publishes stays with the location until another store replaces it; a read-modify-write adds to it (PTX
//! ISA 8.8, release and acquire patterns). Observations are those of this run. Knowledge is kept by warps: what one lane
//! acquires, its warp knows. Inside a cluster, `.cta` counts as `.cluster`.
//!
//! Strong accesses of global memory take effect where a window of simulated time ends, in the order of their times: other clusters
//! may work on the same location.

use super::resolve::{Access, Target};
use super::{Global, Runs};
use crate::diagnostic::Severity;
use crate::machine::chip::outbox::{self, Item, LoadJob};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::At;
use crate::machine::warp::State;
use crate::order::{Far, Stamp, Strength, Sum, Views};
use crate::program::atomic::{AtomicOp, LoadOp, Scope, Sync, Update};
use crate::program::op::Reg;
use crate::protocol::Timing;
use crate::report::Memory;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Strong accesses of a warp of which is known what they brought last.
const MOST_SEEN: usize = 1024;

/// What was published at each location: for each cluster, what its own warps learn and what those of others do.
#[derive(Clone, Debug, Default)]
pub struct Published(BTreeMap<(usize, u64), BTreeMap<u32, (Views, Views)>>);

impl Published {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A plain store replaces what was published.
    pub fn forget(&mut self, place: (usize, u64)) {
        if !self.0.is_empty() {
            self.0.remove(&place);
        }
    }

    /// Plain stores to all of these bytes. Mostly nothing was published: who stores row by row asks for each.
    #[inline]
    pub fn forget_range(&mut self, memory: usize, start: u64, len: u64) {
        if self.0.is_empty() {
            return;
        }
        while let Some((&place, _)) = self.0.range((memory, start)..(memory, start + len)).next() {
            self.0.remove(&place);
        }
    }

    /// A strong store or a read-modify-write by a warp of this cluster.
    pub fn add(&mut self, place: (usize, u64), cluster: u32, near: &Views, far: &Views) {
        let record = self.0.entry(place).or_default().entry(cluster).or_default();
        record.0.join(near);
        record.1.join(far);
    }

    /// What a strong access by a warp of this cluster can learn: from its own cluster, and from others.
    fn learn(&self, place: (usize, u64), cluster: u32, sync: Sync, near: &mut Views, far: &mut Views) {
        for (&from, (inside, outside)) in self.0.get(&place).into_iter().flatten() {
            if from == cluster {
                near.join(inside);
            } else if sync.scope == Scope::Gpu {
                far.learn(from, outside);
            }
        }
    }
}

/// An atomic operation of a warp, its operands read.
#[derive(Debug)]
pub struct AtomicJob {
    pub warp: usize,
    /// The warp waits under this number; `None` for `red`.
    pub request: Option<u32>,
    pub lanes: Vec<AtomicLane>,
    pub bytes: usize,
    update: Update,
    update_global: Update,
    replaces: bool,
    d: Option<Reg>,
    /// All lanes of the warp take part.
    whole: bool,
    /// An operand may be a value that was not computed.
    blank: bool,
    sync: Sync,
    pub stamp: Stamp,
    /// What the warp tells its own cluster, and others.
    near: Views,
    far: Views,
    /// What it knew of other clusters.
    pub known: Far,
    /// When the old value can be there.
    pub done_at: u64,
}

/// A lane of it.
#[derive(Clone, Copy, Debug)]
pub struct AtomicLane {
    lane: usize,
    target: Target,
    b: u128,
    /// `cas`: the new value.
    c: Option<u128>,
    /// An operand that holds no defined value.
    undefined: Option<Reg>,
}

impl AtomicJob {
    /// Buffer and offset of each lane's value in global memory.
    pub fn places(&self) -> impl Iterator<Item = (usize, u64)> {
        self.lanes.iter().filter_map(|l| match l.target {
            Target::Global { buffer, offset } => Some((buffer, offset)),
            _ => None,
        })
    }

    /// The same as runs of bytes.
    pub fn runs(&self) -> Vec<Runs> {
        Runs::collect(self.places().map(|(buffer, at)| Runs::one(buffer, at, self.bytes as u32)))
    }

    /// The new value of a location, and whether it is defined.
    fn compute(&self, lane: &AtomicLane, old: u128, old_defined: bool) -> (u128, bool) {
        let new = match (self.bytes, lane.c) {
            (16, None) => lane.b,
            (16, Some(new)) => {
                if old == lane.b {
                    new
                } else {
                    old
                }
            }
            (bytes, c) => {
                let global = matches!(lane.target, Target::Global { .. });
                let update = if global { self.update_global } else { self.update };
                let new = update(old as u64, lane.b as u64, c.unwrap_or(0) as u64);
                u128::from(new & u64::MAX >> (64 - 8 * bytes))
            }
        };
        (new, lane.undefined.is_none() && (old_defined || self.replaces))
    }

    /// Whether the new value of a location is one that was not computed.
    fn leaves_blank(&self, memory: &Memory, at: usize) -> bool {
        self.blank || !self.replaces && memory.any_blank(at, self.bytes)
    }

    /// Whether some of its lanes update something there.
    pub fn touches(&self, buffer: usize, place: Range<u64>) -> bool {
        self.lanes.iter().any(|lane| match lane.target {
            Target::Global { buffer: b, offset } => b == buffer && place.contains(&offset),
            _ => false,
        })
    }

    /// Updates the part that lies in a piece of a buffer, which begins at `from`.
    pub fn apply(&self, buffer: usize, from: u64, piece: &mut Memory) {
        for lane in &self.lanes {
            let Target::Global { buffer: b, offset } = lane.target else { continue };
            let Some(at) = offset.checked_sub(from).map(|at| at as usize) else { continue };
            if b == buffer && at + self.bytes <= piece.bytes.len() {
                let (old, defined) = piece.load(at, self.bytes);
                let blank = self.leaves_blank(piece, at);
                let (new, defined) = self.compute(lane, old, defined);
                piece.store(at, self.bytes, new, defined);
                if blank {
                    piece.mark_blank(at, self.bytes);
                }
            }
        }
    }
}

impl<'a> Cluster<'a> {
    /// How the access of a warp counts in the check for races.
    pub fn strength(&self, w: usize, sync: Option<Sync>) -> Strength {
        match sync.map(|s| s.scope) {
            None => Strength::Weak,
            Some(Scope::Cta) => Strength::Cta(self.warps[w].cta as u8),
            Some(Scope::Cluster) => Strength::Cluster,
            Some(Scope::Gpu) => Strength::Gpu,
        }
    }

    /// A strong read: what was published there is known now (acquire), or after the next fence (relaxed).
    pub fn observe(&mut self, w: usize, targets: impl Iterator<Item = Target>, sync: Sync) {
        let (mut near, mut far) = (Views::default(), Views::default());
        let mut last = None;
        for target in targets {
            if last.replace(target) == Some(target) {
                continue;
            }
            let (published, place) = match target {
                Target::Global { buffer, offset } => (&self.global.published, (buffer, offset)),
                Target::Shared(cta, offset) => (&self.published, (cta, offset.into())),
                Target::Local(_) | Target::Param(_) => continue,
            };
            published.learn(place, self.index, sync, &mut near, &mut far);
        }
        let warp = &mut self.warps[w];
        if sync.acquire {
            warp.views.join(&near);
            warp.views.join(&far);
        } else {
            warp.halves.unacquired.join(&near);
            warp.halves.unacquired_far.join(&far);
        }
    }

    /// What a strong write tells: what the warp knows (release), or knew at its last fence (relaxed); inside its cluster, and
    /// outside.
    fn told(&mut self, w: usize, sync: Sync) -> (Views, Views) {
        let warp = &mut self.warps[w];
        let near = if sync.release { warp.release() } else { warp.fenced_release() };
        let far = match (sync.scope, sync.release) {
            (Scope::Gpu, true) => near.clone(),
            (Scope::Gpu, false) => warp.halves.at_gpu_fence.clone(),
            _ => Views::default(),
        };
        (near, far)
    }

    /// A strong store tells what the warp knows.
    pub fn publish(&mut self, w: usize, time: u64, targets: &[(usize, Target)], sync: Sync) {
        let (near, far) = self.told(w, sync);
        let mut places = Vec::new();
        for &(_, target) in targets {
            match target {
                Target::Global { buffer, offset } => places.push((buffer, offset)),
                Target::Shared(cta, offset) => {
                    self.published.forget((cta, offset.into()));
                    self.published.add((cta, offset.into()), self.index, &near, &far);
                }
                Target::Local(_) | Target::Param(_) => {}
            }
        }
        places.dedup();
        if !places.is_empty() {
            let published = outbox::Published { places, near, far };
            self.outbox.push(time, Item::Publish(Box::new(published)));
        }
    }

    /// Lane after lane: in which order is not defined, and hardware takes another one.
    pub fn atomic(&mut self, at: At, op: &AtomicOp) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let each = usize::from(op.bytes);
        if usize::from(op.whole) > each {
            self.targets(at, op.space, &op.address, op.whole.into(), Access::Update)?;
        }
        let targets = self.targets(at, op.space, &op.address, each as u64, Access::Update)?;
        self.note_trail(at, &targets, each as u64, Access::Update);
        if targets.iter().any(|(_, t)| matches!(t, Target::Local(_) | Target::Param(_))) {
            return Err(Some(Box::new(self.problem(
                "ptx-semantics",
                site,
                "an atomic operation on local memory or a parameter".into(),
                "Atomic operations work on global and shared memory (PTX ISA, atom).",
                "Only one thread sees its local memory: load, compute and store there.".into(),
            ))));
        }
        self.reach_all(w, &targets, site);
        self.warps[w].untold.told(mask);
        let pc = self.warps[w].fragments[f].pc as usize;
        let heard = op.d.is_some() && !self.kernel.code.get(pc).is_some_and(|inst| inst.facts.unread);
        if heard {
            self.record.depends_on_timing(site, Timing::Memory);
        }
        let strength = self.strength(w, Some(op.sync));
        let sum = if heard || op.replaces { Sum::No } else { Sum::Last };
        let stamp = Stamp { strength, sum, ..self.stamp(w, mask, site) };
        self.order(at, &targets, each as u64, true, false, stamp);
        let low = u128::MAX >> (128 - 8 * each);
        let r = &self.warps[w].registers;
        let lanes = targets.iter().map(|&(lane, target)| {
            let value = |reg| r.lane(reg, lane) & low;
            let lacks = |reg: &Reg| r.defined(*reg) >> lane & 1 == 0;
            let undefined = Some(op.s).filter(lacks).or(op.t.filter(lacks));
            AtomicLane { lane, target, b: value(op.s), c: op.t.map(value), undefined }
        });
        let lanes: Vec<AtomicLane> = lanes.collect();
        let known = self.warps[w].views.of_others();
        let time = self.warps[w].fragments[f].ready_at;
        let done_at = self.charge(at, &targets, each, op.d.is_some());
        let (near, far) = self.told(w, op.sync);
        let mut job = AtomicJob {
            warp: w,
            request: None,
            lanes,
            bytes: each,
            update: op.update,
            update_global: op.update_global,
            replaces: op.replaces,
            d: op.d,
            whole: mask == u32::MAX,
            blank: self.stores_blank(site),
            sync: op.sync,
            stamp,
            near,
            far,
            known,
            done_at,
        };
        if !targets.iter().any(|(_, t)| matches!(t, Target::Global { .. })) {
            self.perform(&job);
            if let Some(d) = op.d {
                let warp = &mut self.warps[w];
                warp.on_the_way.push(&warp.registers, d, done_at);
            }
            return Ok(());
        }
        self.warps[w].rounds.look_far(op.d.is_some());
        if op.d.is_some() {
            job.request = Some(self.wait_for_chip(w, f));
        } else if job.lanes.iter().any(|lane| matches!(lane.target, Target::Shared(..))) {
            // Nobody waits: what follows must find shared memory changed.
            let global = job.lanes.extract_if(.., |lane| matches!(lane.target, Target::Global { .. })).collect();
            self.perform(&job);
            job.lanes = global;
        }
        self.outbox.push(time, Item::Atomic(Box::new(job)));
        Ok(())
    }

    /// The warp waits for an answer that comes where the window ends; gives its number.
    pub fn wait_for_chip(&mut self, w: usize, f: usize) -> u32 {
        self.requests += 1;
        self.warps[w].fragments[f].state = State::Chip(self.requests);
        self.requests
    }

    /// An answer is there: the fragment that waits for it goes on.
    fn answer(&mut self, w: usize, request: u32, time: u64) {
        for fragment in self.warps[w].fragments.iter_mut().filter(|f| f.state == State::Chip(request)) {
            fragment.state = State::Ready;
            fragment.ready_at = fragment.ready_at.max(time);
            fragment.pc += 1;
        }
    }

    /// An atomic operation takes effect: whether it changes memory. Global memory must not be shared with anybody at this time.
    fn perform(&mut self, job: &AtomicJob) -> bool {
        let (w, each, site) = (job.warp, job.bytes, job.stamp.site);
        let mut origin = 0;
        let mut changed = false;
        for lane in &job.lanes {
            let (old, old_defined) = match lane.target {
                Target::Shared(c, at) => self.ctas[c].shared.load(at as usize, each),
                Target::Global { buffer, offset } => self.global.buffers[buffer].memory.load(offset as usize, each),
                Target::Local(_) | Target::Param(_) => continue,
            };
            let (new, defined) = job.compute(lane, old, old_defined);
            changed |= old != new;
            if job.d.is_some() && self.is_blank_at(w, lane.target, each) {
                self.loaded_blank(site);
            }
            match lane.target {
                Target::Shared(c, at) => {
                    let (memory, at) = (&mut self.ctas[c].shared, at as usize);
                    let blank = job.leaves_blank(memory, at);
                    memory.store(at, each, new, defined);
                    if blank {
                        memory.mark_blank(at, each);
                    }
                }
                Target::Global { buffer, offset } => {
                    let memory = &mut Arc::make_mut(&mut self.global).buffers[buffer].memory;
                    let blank = job.leaves_blank(memory, offset as usize);
                    memory.store(offset as usize, each, new, defined);
                    if blank {
                        memory.mark_blank(offset as usize, each);
                    }
                    if let Some(reg) = lane.undefined {
                        self.undefined_store(w, reg, buffer, offset, site);
                    }
                }
                Target::Local(_) | Target::Param(_) => {}
            }
            if let Some(d) = job.d {
                let registers = &mut self.warps[w].registers;
                registers.set_lane(d, lane.lane, old);
                registers.set_defined(d, 1 << lane.lane, if old_defined { u32::MAX } else { 0 });
            }
            if !old_defined && origin == 0 {
                let what = self.describe_target(&lane.target);
                origin =
                    self.origin(site, format!("{what} is read here, but nothing has written a defined value to it"));
                if job.replaces {
                    continue;
                }
                let mut diagnostic = self.problem(
                    "undefined-value-stored",
                    site,
                    format!("an atomic operation updates {what}, which nothing has written"),
                    "Memory holds unknown values until it is written (PTX ISA 8.2.6).",
                    "Set the location to its first value before the first atomic operation on it.".into(),
                );
                diagnostic.severity = Severity::Finding;
                self.findings.add(diagnostic);
            }
        }
        if let Some(d) = job.d {
            if origin != 0 {
                self.warps[w].origins.insert(d, origin);
            } else if job.whole {
                self.warps[w].origins.remove(&d);
            }
        }
        self.observe(w, job.lanes.iter().map(|l| l.target), job.sync);
        for (n, lane) in job.lanes.iter().enumerate() {
            if n > 0 && job.lanes[n - 1].target == lane.target {
                continue;
            }
            match lane.target {
                Target::Global { buffer, offset } => {
                    Arc::make_mut(&mut self.global).published.add((buffer, offset), self.index, &job.near, &job.far)
                }
                Target::Shared(cta, offset) => {
                    self.published.add((cta, offset.into()), self.index, &job.near, &job.far);
                }
                Target::Local(_) | Target::Param(_) => {}
            }
        }
        if changed {
            self.note_update(w, job.lanes.iter().map(|lane| lane.target), each as u64);
            self.wrote();
        }
        changed
    }

    /// The window has ended: an atomic operation on global memory takes effect.
    pub fn finish_atomic(&mut self, job: &AtomicJob, global: &mut Arc<Global>, time: u64) {
        std::mem::swap(&mut self.global, global);
        let changed = self.perform(job);
        std::mem::swap(&mut self.global, global);
        if let (Some(d), false) = (job.d, changed) {
            let targets: Vec<(usize, Target)> = job.lanes.iter().map(|lane| (lane.lane, lane.target)).collect();
            self.asked(job.warp, job.stamp.site, &targets, &[d], time);
        } else if job.d.is_some() {
            self.warps[job.warp].asks = None;
        }
        if let Some(request) = job.request {
            self.answer(job.warp, request, time.max(job.done_at));
        }
    }

    /// A strong load of global memory: it waits for the end of the window.
    pub fn defer_load(&mut self, at: At, op: &'a LoadOp, targets: Vec<(usize, Target)>, done_at: u64) {
        let time = self.warps[at.w].fragments[at.f].ready_at;
        let request = self.wait_for_chip(at.w, at.f);
        let job = LoadJob { warp: at.w, request, op, targets, site: at.site, done_at };
        self.outbox.push(time, Item::Load(Box::new(job)));
    }

    /// The window has ended: a strong load gets its value.
    pub fn finish_load(&mut self, job: &LoadJob, global: &mut Arc<Global>, time: u64) {
        std::mem::swap(&mut self.global, global);
        self.receive(job.warp, job.site, job.op, &job.targets);
        self.asked(job.warp, job.site, &job.targets, &job.op.d, time);
        if let Some(sync) = job.op.sync {
            self.observe(job.warp, job.targets.iter().map(|t| t.1), sync);
        }
        std::mem::swap(&mut self.global, global);
        self.answer(job.warp, job.request, time.max(job.done_at));
    }

    /// A strong access has brought what these registers hold: something new, or the same once more.
    fn asked(&mut self, w: usize, site: u32, targets: &[(usize, Target)], d: &[Reg], time: u64) {
        let warp = &mut self.warps[w];
        let Some(&(first, target)) = targets.first() else { return };
        let lane = |lane: usize| d.iter().map(move |&d| (d, lane));
        let values = targets.iter().flat_map(|t| lane(t.0)).map(|(d, lane)| warp.registers.lane(d, lane)).collect();
        if warp.seen.len() >= MOST_SEEN {
            warp.seen.clear();
        }
        let same = warp.seen.get(&(site, first, target)) == Some(&values);
        warp.asks = same.then_some((site, time));
        if !same {
            warp.seen.insert((site, first, target), values);
            self.found_new();
        }
    }
}
