//! Tensor maps that the kernel itself makes or changes (PTX ISA, tensormap.replace, tensormap.cp_fenceproxy; 9.7.13.4).
//!
//! Copies read their map through a proxy of its own. What a thread has written into one is there for a copy when a release fence for
//! tensor maps covers it, synchronisation leads from there to an acquire fence of the map's address, and that lies before the copy,
//! in the CTA that issues it. [`Views::maps`] is what such releases have covered; [`Acquired`] is what the acquires have brought.

use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::chip::outbox::{Item, Write};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::memory::Runs;
use crate::machine::memory::resolve::{Access, Target};
use crate::machine::state::{ActorKind, At};
use crate::order::{Far, Stamp, Views};
use crate::program::atomic::Scope;
use crate::program::op::{Address, Op, Reg, Space};
use crate::report::Memory;
use crate::tensor_map::Field;
use rustc_hash::FxHashMap;

/// Bytes of a tensor map, and what its address is a multiple of.
pub const MAP_BYTES: usize = 128;
/// Buffer and offset of one in global memory.
pub type MapPlace = (usize, u64);
/// Those that a copy looks at: an H100 loads the same box whatever the others hold (docs/sources.md), and CuTe DSL copies no more of a map.
pub const USED_BYTES: usize = 64;
const ALIGN: u64 = 64;

const RULE: &str = "A copy reads its tensor map through the tensormap proxy. What a kernel writes into a map is there for a copy behind a \
                    release fence of the writer (tensormap.cp_fenceproxy, or fence.proxy.tensormap::generic.release), synchronisation, \
                    and fence.proxy.tensormap::generic.acquire of the map's address in the CTA that issues the copy (PTX ISA 9.7.13.4, \
                    tensormap.cp_fenceproxy).";

/// Acquire fences by CTA, buffer and offset: each of a warp's last, and what was released to it.
#[derive(Debug, Default)]
pub struct Acquired(FxHashMap<(usize, usize, u64), Vec<(Stamp, Views)>>);

impl Cluster<'_> {
    /// The instructions about tensor maps that access memory.
    pub fn tensor_maps(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        match *op {
            Op::MapReplace { space, ref address, field, value } => self.map_replace(at, space, address, field, value),
            Op::MapPublish { ref to, ref from, scope } => self.map_publish(at, to, from, scope),
            Op::MapAcquire { ref address, scope } => self.map_acquire(at, address, scope),
            Op::Discard { space, ref address } => self.discard(at, space, address),
            _ => Ok(()),
        }
    }

    /// Where the maps of the lanes lie.
    fn map_targets(
        &mut self,
        at: At,
        space: Space,
        address: &Address,
        access: Access,
    ) -> Result<Vec<(usize, Target)>, Stop> {
        let targets = self.targets(at, space, address, ALIGN, access)?;
        // The second half, for its bounds.
        self.targets(at, space, &Address { offset: address.offset + ALIGN as i64, ..*address }, ALIGN, access)?;
        let wrong = |target: &Target| matches!(target, Target::Local(_) | Target::Param(_));
        if targets.iter().any(|(_, target)| wrong(target) && access != Access::Load) {
            return Err(Some(Box::new(self.problem(
                "tensor-map",
                at.site,
                "a tensor map in local memory or in a parameter is changed".into(),
                "A kernel changes tensor maps in global memory and in the shared memory of its CTA (PTX ISA, tensormap.replace).",
                "Copy the map to shared memory, change it there, and publish it with tensormap.cp_fenceproxy.".into(),
            ))));
        }
        Ok(targets)
    }

    /// `tensormap.replace`: a weak access of all 128 bytes.
    fn map_replace(&mut self, at: At, space: Space, address: &Address, field: Field, value: Reg) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let targets = self.map_targets(at, space, address, Access::Update)?;
        self.reach_all(w, &targets, site);
        let stamp = self.stamp(w, mask, site);
        for (lane, target) in targets {
            let value = self.warps[w].registers.lane(value, lane) as u64;
            let bits = field.bits(value).map_err(|why| -> Stop {
                Some(Box::new(self.problem(
                    "tensor-map",
                    site,
                    format!("a tensor map's {why}"),
                    "tensormap.replace takes the values that cuTensorMapEncodeTiled takes; of the rank one less (PTX ISA, tensormap.replace).",
                    "Check the value that is computed for this field.".into(),
                )))
            })?;
            let mut map = Memory::undefined(MAP_BYTES);
            self.order(at, &[(lane, target)], MAP_BYTES as u64, true, false, stamp);
            match target {
                Target::Shared(cta, offset) => map.copy_from(0, &self.ctas[cta].shared, offset as usize, MAP_BYTES),
                Target::Global { buffer, offset } => {
                    self.outbox.copy(&self.global, buffer, offset, MAP_BYTES, &mut map, 0);
                }
                Target::Local(_) | Target::Param(_) => continue,
            }
            if self.options.judges() {
                self.made_maps.set(target, field);
            }
            for (first, count, bits) in bits {
                set_bits(&mut map, first, count, bits);
            }
            match target {
                Target::Shared(cta, offset) => self.ctas[cta].shared.copy_from(offset as usize, &map, 0, MAP_BYTES),
                Target::Global { buffer, offset } => self.write_map(at, map, buffer, offset, stamp),
                Target::Local(_) | Target::Param(_) => {}
            }
        }
        self.warps[w].fragments[f].ready_at += self.costs.shared_load;
        self.acted();
        Ok(())
    }

    fn write_map(&mut self, at: At, data: Memory, buffer: usize, offset: u64, stamp: Stamp) {
        let At { w, f, .. } = at;
        let (time, known) = (self.warps[w].fragments[f].ready_at, self.warps[w].views.of_others());
        let runs = vec![Runs::one(buffer, offset, MAP_BYTES as u32)];
        self.outbox.push(time, Item::Write(Box::new(Write { runs, data, blank: false, how: None, stamp, known })));
    }

    /// `tensormap.cp_fenceproxy`: the warp copies one map, and releases what came before.
    fn map_publish(&mut self, at: At, to: &Address, from: &Address, scope: Scope) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        let sources = self.map_targets(at, Space::Shared, from, Access::Load)?;
        let targets = self.map_targets(at, Space::Global, to, Access::Store)?;
        let different = |list: &[(usize, Target)]| list.windows(2).any(|two| two[0].1 != two[1].1);
        if different(&sources) || different(&targets) {
            return Err(Some(Box::new(self.problem(
                "tensor-map",
                site,
                "the lanes of the warp name different tensor maps".into(),
                "All lanes of a warp execute tensormap.cp_fenceproxy together, with the same operands: it copies one map (PTX ISA, \
                 tensormap.cp_fenceproxy).",
                "Compute both addresses from values that all lanes have, not from the lane's number.".into(),
            ))));
        }
        let (Some(&source), Some(&target)) = (sources.first(), targets.first()) else { return Ok(()) };
        let stamp = self.stamp(w, mask, site);
        self.order(at, &[source], MAP_BYTES as u64, false, false, stamp);
        self.order(at, &[target], MAP_BYTES as u64, true, false, stamp);
        if let (Target::Shared(cta, offset), Target::Global { buffer, offset: to }) = (source.1, target.1) {
            let mut map = Memory::undefined(MAP_BYTES);
            map.copy_from(0, &self.ctas[cta].shared, offset as usize, MAP_BYTES);
            self.write_map(at, map, buffer, to, stamp);
            self.made_maps.published(source.1, target.1);
        }
        self.warps[w].fragments[f].ready_at += self.costs.fence;
        self.warps[w].map_release(mask, scope, self.index);
        self.acted();
        Ok(())
    }

    /// `discard`: a line of global memory has no value any more (PTX ISA, discard).
    fn discard(&mut self, at: At, space: Space, address: &Address) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        let targets = self.targets(at, space, address, MAP_BYTES as u64, Access::Store)?;
        let stamp = self.stamp(w, mask, site);
        for (lane, target) in targets {
            let Target::Global { buffer, offset } = target else {
                return Err(Some(Box::new(self.problem(
                    "ptx-semantics",
                    site,
                    "`discard` of memory that is not global".into(),
                    "discard takes 128 bytes of global memory, aligned to 128 (PTX ISA, discard).",
                    "Give it an address in global memory, or remove it.".into(),
                ))));
            };
            self.order(at, &[(lane, target)], MAP_BYTES as u64, true, false, stamp);
            self.write_map(at, Memory::undefined(MAP_BYTES), buffer, offset, stamp);
        }
        self.acted();
        Ok(())
    }

    /// `fence.proxy.tensormap::generic.release`.
    pub fn map_release(&mut self, at: At, scope: Scope) {
        self.warps[at.w].fragments[at.f].ready_at += self.costs.fence;
        self.warps[at.w].map_release(at.mask, scope, self.index);
    }

    /// `fence.proxy.tensormap::generic.acquire`.
    fn map_acquire(&mut self, at: At, address: &Address, scope: Scope) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let targets = self.map_targets(at, Space::Generic, address, Access::Load)?;
        if targets.iter().any(|(_, target)| !matches!(target, Target::Global { .. })) {
            return Err(Some(Box::new(self.problem(
                "tensor-map",
                site,
                "the tensor map of this fence does not lie in global memory".into(),
                "fence.proxy.tensormap::generic.acquire takes the address of a tensor map in global memory; maps in parameters need no fence \
                 (PTX ISA 9.7.13.4).",
                "Give it the address that the copy uses, or remove it.".into(),
            ))));
        }
        self.warps[w].fragments[f].ready_at += self.costs.fence;
        self.warps[w].fence(scope);
        let stamp = self.stamp(w, mask, site);
        let warp = &mut self.warps[w];
        let mut known = match scope {
            Scope::Gpu => Views::far_only(warp.views.of_others()),
            // No narrower scope includes threads of other clusters.
            Scope::Cta | Scope::Cluster => Views::default(),
        };
        known.maps_near.clone_from(&warp.views.maps_near);
        if scope == Scope::Cta {
            known.maps_near.join(&warp.views.maps);
        } else {
            known.hb.clone_from(&warp.views.maps);
        }
        warp.advance();
        for (_, target) in targets {
            let Target::Global { buffer, offset } = target else { continue };
            let list = self.acquired.0.entry((self.warps[w].cta, buffer, offset)).or_default();
            match list.iter_mut().find(|(by, _)| by.actor == stamp.actor) {
                Some(last) => *last = (stamp, known.clone()),
                None => list.push((stamp, known.clone())),
            }
        }
        Ok(())
    }

    /// A copy uses a map in global memory: whether what was written there was released and acquired as a map.
    pub fn use_map(&mut self, at: At, lane: usize, buffer: usize, offset: u64) -> Far {
        let At { w, site, .. } = at;
        let stamp = self.stamp(w, 1 << lane, site);
        let mut acquired = Views::default();
        let warp = &self.warps[w];
        for (by, known) in self.acquired.0.get(&(warp.cta, buffer, offset)).into_iter().flatten() {
            if by.actor == stamp.actor || warp.views.hb.get(by.actor) >= by.epoch {
                acquired.join(known);
            }
        }
        let writers = (0..MAP_BYTES as u64).step_by(4).filter_map(|at| self.tracker.writer(buffer, offset + at));
        // At `.cta` scope, a fence counts between threads of one CTA (PTX ISA 8.5, membar, fence).
        let near = |by: &Stamp| match self.actors.get(by.actor as usize) {
            Some(ActorKind::Warp(other)) => self.warps[*other as usize].cta == warp.cta,
            _ => false,
        };
        let covered = |by: &Stamp, wide: u32, narrow: u32| by.epoch <= if near(by) { wide.max(narrow) } else { wide };
        let unacquired = |by: &Stamp| !covered(by, acquired.hb.get(by.actor), acquired.maps_near.get(by.actor));
        let missing = writers.filter(unacquired).max_by_key(|by| by.epoch);
        // What is not even ordered is a race, and found as one.
        if let Some(by) = missing.filter(|by| by.epoch <= warp.views.hb.get(by.actor) || by.actor == stamp.actor) {
            let released = covered(&by, warp.views.maps.get(by.actor), warp.views.maps_near.get(by.actor));
            let scope = if near(&by) { "" } else { " at .cluster scope or a wider one" };
            self.map_not_acquired(site, by.site, released, scope);
        }
        acquired.of_others()
    }

    /// A copy uses a tensor map without the fences that belong between. `scope`: which of them count, where not all do.
    pub fn map_not_acquired(&mut self, site: u32, written: u32, released: bool, scope: &str) {
        let (missing, help) = if released {
            (
                "acquire",
                "Execute fence.proxy.tensormap::generic.acquire.gpu [map], 128 in the CTA of the copy, behind the synchronisation with the \
                 writer and before the copy.",
            )
        } else {
            (
                "release",
                "Publish the map with tensormap.cp_fenceproxy, or let the writer execute fence.proxy.tensormap::generic.release.gpu before \
                 it tells others of the map; the copy's CTA then acquires it.",
            )
        };
        let labels = vec![
            self.label(site, "this copy uses the tensor map"),
            self.label(written, format!("the map was written here; no {missing} fence for tensor maps{scope} follows")),
        ];
        self.findings.add(Diagnostic {
            code: "tensor-map-not-acquired",
            severity: Severity::Finding,
            title: "a copy uses a tensor map that the kernel has changed, without the tensormap proxy's fences".into(),
            labels,
            rule: RULE.into(),
            help: help.into(),
            count: 1,
            confirmed: None,
        });
    }

    /// The first byte that a copy looks at of a map in memory, if one holds no defined value.
    pub fn map_lacks(&self, at: At, map: &Memory, address: u64) -> Option<Stop> {
        let byte = (0..USED_BYTES).find(|&n| !map.is_defined(n))?;
        let place = match self.global.find(address, MAP_BYTES as u64) {
            Some((buffer, offset)) => self.global.buffers[buffer].describe(offset),
            None => format!("{address:#x}"),
        };
        Some(Some(Box::new(self.problem(
            "tensor-map",
            at.site,
            format!("byte {byte} of the tensor map at {place} has no defined value"),
            "tensormap.replace changes one field; the other bits of the 128 bytes stay what they were (PTX ISA, tensormap.replace).",
            "Begin with a whole map, or with 128 bytes of zero, and set every field.".into(),
        ))))
    }
}

/// Sets bits of a map. A byte of which only some bits are set is defined if it was.
fn set_bits(map: &mut Memory, first: usize, count: usize, bits: u64) {
    for byte in first / 8..=(first + count - 1) / 8 {
        let (mut covered, mut value) = (0u8, 0u8);
        for bit in 0..8 {
            let at = 8 * byte + bit;
            if (first..first + count).contains(&at) {
                covered |= 1 << bit;
                value |= ((bits >> (at - first) & 1) as u8) << bit;
            }
        }
        let whole = covered == 0xff || map.is_defined(byte);
        map.bytes[byte] = map.bytes[byte] & !covered | value;
        map.mark(byte, 1, whole);
    }
}
