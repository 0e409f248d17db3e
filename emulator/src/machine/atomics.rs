//! `atom` and `red`; and what strong accesses tell those that observe them.
//!
//! What a release publishes stays with the location until another store replaces it; a read-modify-write adds to it (PTX
//! ISA 8.7.3, release and acquire patterns). Observations are those of this run: clusters run one after the other, so a
//! cluster sees what all clusters before it published. Knowledge is kept by warps: what one lane acquires, its warp knows.
//! Inside a cluster, `.cta` counts as `.cluster`.

use super::access::Target;
use super::cluster::{Cluster, Stop};
use super::state::At;
use crate::diagnostic::Severity;
use crate::order::{Strength, Views};
use crate::program::atomic::{AtomicOp, Scope, Sync};
use std::collections::{BTreeMap, HashMap};

/// What was published at each location: for each cluster, what its own warps learn and what those of others do.
#[derive(Debug, Default)]
pub struct Published(HashMap<(usize, u64), BTreeMap<u32, (Views, Views)>>);

impl Published {
    /// A plain store replaces what was published.
    pub fn forget(&mut self, place: (usize, u64)) {
        if !self.0.is_empty() {
            self.0.remove(&place);
        }
    }
}

impl Cluster<'_> {
    /// How the access of a warp counts in the check for races.
    pub fn strength(&self, w: usize, sync: Option<Sync>) -> Strength {
        match sync.map(|s| s.scope) {
            None => Strength::Weak,
            Some(Scope::Cta) => Strength::Cta(self.warps[w].cta as u8),
            Some(Scope::Cluster) => Strength::Cluster,
            Some(Scope::Gpu) => Strength::Gpu,
        }
    }

    /// What was published at a place; places in shared memory are those of this cluster.
    fn published(&mut self, target: &Target) -> Option<(&mut Published, (usize, u64))> {
        match *target {
            Target::Global { buffer, offset } => Some((&mut self.global.published, (buffer, offset))),
            Target::Shared(cta, offset) => Some((&mut self.published, (cta, offset.into()))),
            Target::Local(_) | Target::Param(_) => None,
        }
    }

    /// A strong read: what was published there is known now (acquire), or after the next fence (relaxed).
    pub fn observe(&mut self, w: usize, targets: &[(usize, Target)], sync: Sync) {
        let own = self.index;
        let mut last = None;
        for (_, target) in targets {
            if last.replace(*target) == Some(*target) {
                continue;
            }
            let Some((published, place)) = self.published(target) else { continue };
            let Some(record) = published.0.get(&place) else { continue };
            let (mut near, mut far) = (Views::default(), Views::default());
            for (&cluster, (inside, outside)) in record {
                if cluster == own {
                    near.join(inside);
                } else if sync.scope == Scope::Gpu {
                    far.learn(cluster, outside);
                }
            }
            let warp = &mut self.warps[w];
            if sync.acquire {
                warp.views.join(&near);
                warp.views.join(&far);
            } else {
                warp.unacquired.join(&near);
                warp.unacquired_far.join(&far);
            }
        }
    }

    /// A strong write publishes what the warp knows (release), or knew at its last fence (relaxed).
    pub fn publish(&mut self, w: usize, targets: &[(usize, Target)], sync: Sync, update: bool) {
        let warp = &mut self.warps[w];
        let near = if sync.release { warp.release() } else { warp.fenced_release() };
        let far = match (sync.scope, sync.release) {
            (Scope::Gpu, true) => near.clone(),
            (Scope::Gpu, false) => warp.at_gpu_fence.clone(),
            _ => Views::default(),
        };
        let own = self.index;
        let mut last = None;
        for (_, target) in targets {
            if last.replace(*target) == Some(*target) {
                continue;
            }
            let Some((published, place)) = self.published(target) else { continue };
            if !update {
                published.forget(place);
            }
            let record = published.0.entry(place).or_default().entry(own).or_default();
            record.0.join(&near);
            record.1.join(&far);
        }
    }

    /// Lane after lane: in which order is not defined, and hardware takes another one.
    pub fn atomic(&mut self, at: At, op: &AtomicOp) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        let each = usize::from(op.bytes);
        let targets = self.targets(at, op.space, &op.address, each as u64, "update")?;
        if let Some((_, Target::Local(_) | Target::Param(_))) =
            targets.iter().find(|(_, t)| matches!(t, Target::Local(_) | Target::Param(_)))
        {
            return Err(Some(Box::new(self.problem(
                "ptx-semantics",
                site,
                "an atomic operation on local memory or a parameter".into(),
                "Atomic operations work on global and shared memory (PTX ISA, atom).",
                "Only one thread sees its local memory: load, compute and store there.".into(),
            ))));
        }
        let strength = self.strength(w, Some(op.sync));
        self.order(at, &targets, each as u64, true, false, strength);
        let low = u64::MAX >> (64 - 8 * each);
        let mut origin = 0;
        for &(lane, target) in &targets {
            let r = &self.warps[w].registers;
            let lane_defined = |reg| r.defined(reg) >> lane & 1 == 1;
            let operand = |reg| r.lane(reg, lane) as u64 & low;
            let (b, c) = (operand(op.s), op.t.map_or(0, operand));
            let operands_defined = lane_defined(op.s) && op.t.is_none_or(lane_defined);
            let (memory, place) = match target {
                Target::Shared(c, at) => (&mut self.ctas[c].shared, at as usize),
                Target::Global { buffer, offset } => (&mut self.global.buffers[buffer].memory, offset as usize),
                Target::Local(_) | Target::Param(_) => continue,
            };
            let (old, old_defined) = memory.load(place, each);
            let new = (op.update)(old as u64, b, c) & low;
            let defined = operands_defined && (old_defined || op.replaces);
            memory.store(place, each, new.into(), defined);
            if !operands_defined && let Target::Global { buffer, offset } = target {
                let reg = if self.warps[w].registers.defined(op.s) >> lane & 1 == 1 { op.t } else { Some(op.s) };
                self.undefined_store(w, reg.unwrap_or(op.s), buffer, offset, site);
            }
            if let Some(d) = op.d {
                let registers = &mut self.warps[w].registers;
                registers.set_lane(d, lane, old);
                registers.set_defined(d, 1 << lane, if old_defined { u32::MAX } else { 0 });
            }
            if !old_defined && !op.replaces && origin == 0 {
                let what = self.describe_target(&target);
                origin = self.origin(site, format!("{what} is read here, but nothing has written it"));
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
        if let Some(d) = op.d {
            if origin != 0 {
                self.warps[w].origins.insert(d, origin);
            } else if mask == u32::MAX {
                self.warps[w].origins.remove(&d);
            }
            let time = self.charge(at, &targets, each, true);
            self.warps[w].on_the_way.push((d, time));
        } else {
            self.charge(at, &targets, each, false);
        }
        self.observe(w, &targets, op.sync);
        self.publish(w, &targets, op.sync, true);
        self.polls = 0;
        Ok(())
    }
}
