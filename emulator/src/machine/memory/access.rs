//! Plain loads and stores: costs, and the check against who touched the bytes before.

use super::resolve::{Access, Target};
use super::{Global, Runs, number};
use crate::diagnostic::{Diagnostic, Meaning, Severity};
use crate::machine::chip::outbox::{Item, Outbox, Write};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::layout::copied::CHUNK;
use crate::machine::layout::too_wide;
use crate::machine::state::{ActorKind, At, Beside, Cta, Lacks, Origin, Race, RaceMemory, Slot};
use crate::machine::warp::registers::lanes;
use crate::order::Stamp;
use crate::program::atomic::{LoadOp, StoreOp};
use crate::program::op::{Op, Reg, Space};
use crate::protocol::Timing;
use crate::report::Memory;
use smallvec::SmallVec;

/// A loaded element of so many bytes: a signed one fills its register with its sign.
fn extended(value: u128, signed: bool, bytes: usize) -> u128 {
    if !signed || bytes >= 8 {
        return value;
    }
    let shift = 64 - 8 * bytes as u32;
    ((((value as u64) << shift) as i64) >> shift) as u64 as u128
}

/// Lanes of which each accesses so many bytes, right behind those of the one before.
fn side_by_side(targets: &[(usize, Target)], total: usize) -> impl Iterator<Item = &[(usize, Target)]> {
    targets.chunk_by(move |a, b| a.1.after(total) == b.1)
}

/// Where a cluster sees these bytes of shared or global memory: read at once for lanes side by side, since of what is `on_its_way` to global memory, that
/// takes a search.
fn seen<'m>(
    ctas: &'m [Cta],
    (outbox, global): (&Outbox, &'m Global),
    first: Target,
    bytes: usize,
    on_its_way: &'m mut Memory,
) -> Option<(&'m Memory, usize)> {
    match first {
        Target::Shared(cta, at) => Some((&ctas[cta].shared, at as usize)),
        Target::Global { buffer, offset } if !outbox.has_written(buffer) => {
            Some((&global.buffers[buffer].memory, offset as usize))
        }
        Target::Global { buffer, offset } => {
            on_its_way.forget(bytes);
            outbox.copy(global, buffer, offset, bytes, on_its_way, 0);
            Some((on_its_way, 0))
        }
        Target::Local(_) | Target::Param(_) => None,
    }
}

const UNKNOWN_RULE: &str = "Tensor memory, registers and shared memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).";

const WRITE_FIRST: &str = "Write the value before it is used, on every path that leads here.";
const OVERWRITE_FIRST: &str = "Write the value before it is used; for an accumulator, let the first MMA of a tile overwrite (enable-input-d = false).";

impl<'a> Cluster<'a> {
    /// Whether nobody stores there meanwhile but who has a race: shared memory that no strong store writes, or that an engine filled, as with a
    /// response of launch control, and the warp has waited for it.
    fn are_settled(&self, w: usize, targets: &[(usize, Target)]) -> bool {
        targets.iter().all(|&(_, target)| {
            let Target::Shared(cta, at) = target else { return false };
            if !self.kernel.shared_flags {
                return true;
            }
            let brought = self.ctas[cta].shared_shadow.writer(at.into());
            let brought = brought.filter(|stamp| matches!(self.kind(*stamp), Some(ActorKind::Mbarrier)));
            brought.is_some_and(|stamp| self.warps[w].has_heard_of(stamp.actor, stamp.epoch))
        })
    }

    pub fn load(&mut self, at: At, op: &'a LoadOp) -> Result<(), Stop> {
        let At { w, mask, site, .. } = at;
        if self.load_parameter(w, mask, op) {
            return Ok(());
        }
        let total = usize::from(op.bytes) * op.d.len();
        let targets = self.targets(at, op.space, &op.address, total as u64, Access::Load)?;
        self.note_trail(at, &targets, total as u64, Access::Load);
        let time = self.charge(at, &targets, total, true);
        self.reach_all(w, &targets, site);
        let stamp = Stamp { strength: self.strength(w, op.sync), ..self.stamp(w, mask, site) };
        if op.sync.is_some() && !self.are_settled(w, &targets) {
            self.record.depends_on_timing(site, Timing::Memory);
        }
        let far = targets.iter().any(|(_, target)| matches!(target, Target::Global { .. }));
        if far {
            self.warps[w].rounds.look_far(op.sync.is_some());
        }
        if op.sync.is_some() && far {
            self.order(at, &targets, total as u64, false, false, stamp);
            self.defer_load(at, op, targets, time);
            return Ok(());
        }
        let undefined = self.receive(w, site, op, &targets);
        if self.options.judges() && self.blank.is_none() {
            match (total, targets.first()) {
                (CHUNK, _) => {
                    self.chunks_loaded(w, op.d[0], &targets);
                    self.check_added(w, site, &targets);
                }
                (_, Some(&(_, Target::Global { buffer, .. }))) => self.inputs.read_otherwise(buffer),
                _ => {}
            }
        }
        for &reg in op.d.iter() {
            let warp = &mut self.warps[w];
            warp.on_the_way.push(&warp.registers, reg, time);
        }
        if op.non_coherent {
            self.order_non_coherent(at, &targets, total as u32);
        } else {
            self.order(at, &targets, total as u64, false, undefined, stamp);
        }
        match op.sync {
            _ if !self.options.judges() => {}
            None => self.check_lanes_apart(at, targets.iter().copied(), total as u32, (false, false)),
            Some(_) => self.warps[w].untold.told(mask),
        }
        if let Some(sync) = op.sync {
            self.observe(w, targets.iter().map(|t| t.1), sync);
        }
        self.let_go(targets);
        Ok(())
    }

    /// A load from a parameter that it names, which is the same for all lanes; tells whether it was one, within bounds.
    fn load_parameter(&mut self, w: usize, mask: u32, op: &LoadOp) -> bool {
        let (each, total) = (usize::from(op.bytes), usize::from(op.bytes) * op.d.len());
        let Ok(at) = usize::try_from(op.address.offset) else { return false };
        let named = op.space == Space::Param && op.address.base == Reg::Sink && op.sync.is_none();
        let plain =
            total > 0 && at.is_multiple_of(total) && op.d.iter().all(|d| matches!(d, Reg::B32(_) | Reg::B64(_)));
        let Some(bytes) = self.params.get(at..at + total).filter(|_| named && plain) else { return false };
        let registers = &mut self.warps[w].registers;
        for (&reg, part) in op.d.iter().zip(bytes.chunks_exact(each)) {
            let value = extended(number(part), op.signed, each);
            match reg {
                Reg::B64(d) => registers.write64(d, mask, &[value as u64; 32]),
                Reg::B32(d) => registers.write32(d, mask, &[value as u32; 32]),
                _ => {}
            }
            registers.set_defined(reg, mask, u32::MAX);
        }
        true
    }

    /// Loads into registers; whether something was undefined.
    pub fn receive(&mut self, w: usize, site: u32, op: &LoadOp, targets: &[(usize, Target)]) -> bool {
        let total = usize::from(op.bytes) * op.d.len();
        let mut undefined = false;
        for lanes in side_by_side(targets, total) {
            undefined |= !self.receive_together(w, op, lanes) && self.receive_each(w, site, op, lanes);
        }
        undefined
    }

    /// What several lanes load side by side, if all of it is defined and computed; whether it was so.
    fn receive_together(&mut self, w: usize, op: &LoadOp, targets: &[(usize, Target)]) -> bool {
        let each = usize::from(op.bytes);
        let total = each * op.d.len();
        let [(_, first), _, ..] = *targets else { return false };
        let bytes = total * targets.len();
        let mut on_its_way = Memory::undefined(0);
        let Some((memory, at)) = seen(&self.ctas, (&self.outbox, &self.global), first, bytes, &mut on_its_way) else {
            return false;
        };
        if !memory.all_defined(at, bytes) || memory.any_blank(at, bytes) {
            return false;
        }
        let registers = &mut self.warps[w].registers;
        let mut mask = 0;
        for (&(lane, _), bytes) in targets.iter().zip(memory.bytes[at..at + bytes].chunks_exact(total)) {
            for (&reg, bytes) in op.d.iter().zip(bytes.chunks_exact(each)) {
                registers.set_lane(reg, lane, extended(number(bytes), op.signed, each));
            }
            mask |= 1 << lane;
        }
        op.d.iter().for_each(|&reg| registers.set_defined(reg, mask, u32::MAX));
        true
    }

    /// What lanes load, one after the other; whether something was undefined.
    fn receive_each(&mut self, w: usize, site: u32, op: &LoadOp, targets: &[(usize, Target)]) -> bool {
        let LoadOp { bytes, signed, ref d, .. } = *op;
        let each = usize::from(bytes);
        let mut undefined = false;
        // Of each register.
        let mut origins = [0; 8];
        // Lanes side by side may read the same: what is on its way to global memory takes a search.
        let (mut found, mut of) = (SmallVec::<[(u128, bool, bool); 8]>::new(), None);
        for (lane, target) in targets {
            if of.replace(*target) != Some(*target) {
                found.clear();
                found.extend((0..d.len()).map(|n| self.find(w, target.after(n * each), each)));
            }
            for (n, &reg) in d.iter().enumerate() {
                let (value, defined, blank) = found[n];
                if blank {
                    self.loaded_blank(site);
                }
                let value = if blank { 0 } else { value };
                let value = extended(value, signed, each);
                let registers = &mut self.warps[w].registers;
                registers.set_lane(reg, *lane, value);
                registers.set_defined(reg, 1 << lane, if defined { u32::MAX } else { 0 });
                if !defined {
                    undefined = true;
                    // Of what is read together, only a part may have been written, and no more be wanted.
                    let mut lacks = [0; 32];
                    lacks[*lane] = self.bits_lacking(w, target.after(n * each), each, signed);
                    self.warps[w].registers.set_parts(reg, 1 << lane, &lacks);
                    if origins[n % 8] == 0 {
                        origins[n % 8] = self.origin_of_memory(w, target.after(n * each), each, site);
                    }
                    self.warps[w].origins.insert(reg, origins[n % 8]);
                }
            }
        }
        undefined
    }

    /// Up to 16 bytes, lowest first, whether all are defined, and whether some hold no value that was computed.
    fn find(&self, w: usize, target: Target, bytes: usize) -> (u128, bool, bool) {
        let (value, defined) = match target {
            Target::Shared(c, at) => self.ctas[c].shared.load(at as usize, bytes),
            Target::Global { buffer, offset } => self.outbox.load(&self.global, buffer, offset, bytes),
            Target::Param(at) => (number(&self.params[at as usize..at as usize + bytes]), true),
            Target::Local(at) => self.warps[w].local.load(at as usize, bytes),
        };
        (value, defined, self.is_blank_at(w, target, bytes))
    }

    /// The bits of a register that get no value from a load of these bytes.
    fn bits_lacking(&self, w: usize, target: Target, bytes: usize, signed: bool) -> u64 {
        let defined = |n: usize| match target.after(n) {
            Target::Shared(c, at) => self.ctas[c].shared.is_defined(at as usize),
            Target::Global { buffer, offset } => self.outbox.load(&self.global, buffer, offset, 1).1,
            Target::Local(at) => self.warps[w].local.is_defined(at as usize),
            Target::Param(_) => true,
        };
        let lacking = |n: usize| u64::from(self.lacking(w, target.after(n))) << (8 * n);
        let lacks = (0..bytes.min(8)).filter(|&n| !defined(n)).fold(0u64, |lacks, n| lacks | lacking(n));
        // The sign is copied.
        let sign = signed && bytes < 8 && lacks >> (8 * bytes - 1) & 1 == 1;
        if sign { lacks | u64::MAX << (8 * bytes) } else { lacks }
    }

    /// Whether some of these bytes hold no value that was computed.
    pub fn is_blank_at(&self, w: usize, target: Target, bytes: usize) -> bool {
        match target {
            Target::Shared(c, at) => self.ctas[c].shared.any_blank(at as usize, bytes),
            Target::Global { buffer, offset } => self.outbox.any_blank(&self.global, buffer, offset, bytes),
            Target::Local(at) => self.warps[w].local.any_blank(at as usize, bytes),
            Target::Param(_) => false,
        }
    }

    /// Whether memory holds what a store writes already.
    fn stores_the_same(&self, w: usize, op: &StoreOp, targets: &[(usize, Target)]) -> bool {
        let (each, total) = (usize::from(op.bytes), usize::from(op.bytes) * op.s.len());
        let lane_stores = |lane: usize, memory: &Memory, at: usize| {
            op.s.iter().enumerate().all(|(n, &reg)| {
                let (old, defined) = memory.load(at + n * each, each);
                let new = self.warps[w].registers.lane(reg, lane) & (u128::MAX >> (128 - 8 * each));
                defined && old == new && !memory.any_blank(at + n * each, each)
            })
        };
        let mut on_its_way = Memory::undefined(0);
        side_by_side(targets, total).all(|lanes| {
            let bytes = total * lanes.len();
            seen(&self.ctas, (&self.outbox, &self.global), lanes[0].1, bytes, &mut on_its_way).is_some_and(
                |(memory, at)| {
                    lanes.iter().enumerate().all(|(n, &(lane, _))| lane_stores(lane, memory, at + n * total))
                },
            )
        })
    }

    /// A store changes what the same thread has stored since it told anything last.
    #[cold]
    fn rewritten(&mut self, targets: &[(usize, Target)], total: u64, stamp: Stamp) {
        for (_, target) in targets {
            let memory = match *target {
                Target::Shared(cta, _) => RaceMemory::Shared(cta),
                Target::Global { buffer, .. } => RaceMemory::Global(buffer),
                Target::Local(_) | Target::Param(_) => continue,
            };
            self.rewrites.add(stamp, memory, target.offset(), target.offset() + total);
        }
    }

    /// Races of a statement that stores what is there already, or (`same` is false) something else; those below `known` were seen before. Two
    /// warps that store the same value race to the letter, and production kernels do it.
    pub fn settle_stores(&mut self, raced: Vec<usize>, known: usize, same: bool, unwritten: bool) {
        for n in raced {
            let Race { conflict, memory, .. } = &self.races[n];
            let before = self.rewrites.has(conflict.first, *memory, conflict.byte);
            let same = same && !before && self.overwrites(conflict);
            let race = &mut self.races[n];
            let again = n < known;
            race.unwritten = if again { race.unwritten } else { unwritten };
            race.same_value = same && (race.same_value || !again);
        }
    }

    pub fn store(&mut self, at: At, op: &StoreOp) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let StoreOp { space, ref address, bytes, ref s, of, sync } = *op;
        let each = usize::from(bytes);
        let total = each * s.len();
        if let Some(vector) = of {
            self.check_vector(at, op, vector)?;
        }
        if !self.options.judges() && self.trail.is_none() && self.store_own(at, op, total) {
            return Ok(());
        }
        let targets = self.targets(at, space, address, total as u64, Access::Store)?;
        self.note_trail(at, &targets, total as u64, Access::Store);
        self.reach_all(w, &targets, site);
        let stamp = Stamp { strength: self.strength(w, sync), ..self.stamp(w, mask, site) };
        let known = self.races.len();
        self.raced = Some(Vec::new());
        self.rewrites.again.set(false);
        self.order(at, &targets, total as u64, true, false, stamp);
        let raced = self.raced.take().unwrap_or_default();
        if self.rewrites.again.take() && !self.stores_the_same(w, op, &targets) {
            self.rewritten(&targets, total as u64, stamp);
        }
        if !raced.is_empty() {
            let unwritten = targets.iter().any(|(_, t)| match *t {
                Target::Shared(c, at) => !self.ctas[c].shared.is_defined(at as usize),
                _ => false,
            });
            let same = !self.stores_blank(site) && self.stores_the_same(w, op, &targets);
            self.settle_stores(raced, known, same, unwritten);
        }
        if total == CHUNK {
            self.chunks_stored(w, site, s[0], &targets);
            if self.options.judges() {
                let cta = self.warps[w].cta;
                self.ctas[cta].drawn_up.stored(site, cta, &targets);
            }
        }
        if self.options.judges() {
            self.note_store_of_sums(w, site, total, &targets);
            match sync {
                Some(_) => self.warps[w].untold.told(mask),
                None if self.blank.is_some() => {}
                None => {
                    self.check_lanes_of_store(w, site, op, &targets);
                    self.check_lanes_apart(at, targets.iter().copied(), total as u32, (true, false));
                }
            }
        }
        let time = self.warps[w].fragments[f].ready_at;
        let (mut pieces, mut data) = (Vec::new(), Memory::default());
        let blank = self.stores_blank(site);
        let registers = &self.warps[w].registers;
        let defined = s.iter().fold(u32::MAX, |all, &reg| all & registers.defined(reg));
        if each == 4 && defined == u32::MAX && !blank && sync.is_none() && self.store_own_words(w, s, &targets) {
            self.charge(at, &targets, total, false);
            self.wrote();
            self.let_go(targets);
            return Ok(());
        }
        for (lane, target) in &targets {
            if let Target::Global { buffer, offset } = *target {
                pieces.push(Runs::one(buffer, offset, total as u32));
                if data.bytes.is_empty() {
                    data = Memory::undefined(total * targets.len());
                }
            }
            if let Target::Shared(c, at) = *target
                && each == 4
                && defined >> lane & 1 == 1
            {
                // All of a lane's elements at once.
                let r = &self.warps[w].registers;
                let element =
                    |reg| if let Reg::B32(n) = reg { r.b32[usize::from(n)][*lane] } else { r.lane(reg, *lane) as u32 };
                let whole = s.iter().rev().fold(0, |whole, &reg| whole << 32 | u128::from(element(reg)));
                self.ctas[c].shared.store(at as usize, total, whole, true);
                if blank {
                    self.ctas[c].shared.mark_blank(at as usize, total);
                }
                if sync.is_none() {
                    self.published.forget((c, at.into()));
                }
                continue;
            }
            for (n, &reg) in s.iter().enumerate() {
                let warp = &self.warps[w];
                let value = warp.registers.lane(reg, *lane);
                let lacks = warp.registers.low_part_lacks(reg, *lane, each);
                if lacks != 0 {
                    let origin = self.origin_of_register(w, reg, site);
                    self.keep_lacking(w, target.after(n * each), each, origin, lacks);
                }
                match *target {
                    Target::Shared(c, at) => self.ctas[c].shared.store_part(at as usize + n * each, each, value, lacks),
                    Target::Global { buffer, offset } => {
                        data.store_part((pieces.len() - 1) * total + n * each, each, value, lacks);
                        if lacks != 0 {
                            self.undefined_store(w, reg, buffer, offset + (n * each) as u64, site);
                        }
                    }
                    Target::Local(at) => self.warps[w].local.store_part(at as usize + n * each, each, value, lacks),
                    Target::Param(_) => {}
                }
            }
            if blank {
                match *target {
                    Target::Shared(c, at) => self.ctas[c].shared.mark_blank(at as usize, total),
                    Target::Global { .. } => data.mark_blank((pieces.len() - 1) * total, total),
                    Target::Local(at) => self.warps[w].local.mark_blank(at as usize, total),
                    Target::Param(_) => {}
                }
            }
            if let (Target::Shared(cta, offset), None) = (*target, sync) {
                self.published.forget((cta, offset.into()));
            }
        }
        if !pieces.is_empty() {
            let known = self.warps[w].views.of_others();
            let runs = Runs::collect(pieces.into_iter());
            let write = Write { runs, data, blank: false, how: None, stamp, known };
            self.outbox.push(time, Item::Write(Box::new(write)));
        }
        if let Some(sync) = sync {
            self.publish(w, time, &targets, sync);
        }
        self.charge(at, &targets, total, false);
        self.wrote();
        self.let_go(targets);
        Ok(())
    }

    /// Stores 32-bit registers, all of which are defined, to the shared memory of the warp's own CTA; tells whether that is where all
    /// targets lie, in memory of which nothing else needs to be known.
    fn store_own_words(&mut self, w: usize, s: &[Reg], targets: &[(usize, Target)]) -> bool {
        let cta = self.warps[w].cta;
        let own = |&(_, target): &(usize, Target)| matches!(target, Target::Shared(c, _) if c == cta);
        targets.iter().all(own)
            && self.put_words(w, s, targets.iter().map(|(lane, target)| (*lane, target.offset() as usize)))
    }

    /// A store without the judge: where its lanes write defined words to their own CTA's shared memory, nothing else needs to be known.
    /// Whether it was one.
    fn store_own(&mut self, at: At, op: &StoreOp, total: usize) -> bool {
        let At { w, mask, .. } = at;
        let StoreOp { space, ref address, bytes, ref s, sync, .. } = *op;
        let registers = &self.warps[w].registers;
        let defined = s.iter().fold(registers.defined(address.base), |all, &reg| all & registers.defined(reg));
        if bytes != 4 || sync.is_some() || mask & !defined != 0 || self.blank.is_some() {
            return false;
        }
        let Some(offsets) = self.own_offsets(at, space, address, total as u64) else { return false };
        let (mut places, mut count) = ([0; 32], 0);
        for lane in lanes(mask) {
            places[count] = offsets[lane];
            count += 1;
        }
        let places = &places[..count];
        let (low, high) = places.iter().fold((u32::MAX, 0), |(low, high), &at| (low.min(at), high.max(at)));
        if self.near_barrier(low, high + total as u32)
            || !self.put_words(w, s, lanes(mask).zip(places).map(|(lane, &place)| (lane, place as usize)))
        {
            return false;
        }
        self.charge_shared(at, places, total, false);
        self.wrote();
        true
    }

    /// Writes 32-bit registers of lanes to these places of the own CTA's shared memory, if nothing else needs to be known of it.
    fn put_words(&mut self, w: usize, s: &[Reg], places: impl Iterator<Item = (usize, usize)>) -> bool {
        let warp = &self.warps[w];
        let mut sources = [&warp.registers.b32[0]; 4];
        let words = s.len().min(sources.len());
        for (source, &reg) in sources.iter_mut().zip(s) {
            let Reg::B32(n) = reg else { return false };
            *source = &warp.registers.b32[usize::from(n)];
        }
        let shared = &mut self.ctas[warp.cta].shared;
        if s.len() > words || shared.has_blanks() || !self.published.is_empty() {
            return false;
        }
        for (lane, at) in places {
            // Of fewer than four words the lowest count.
            let value = sources.iter().rev().fold(0, |value, source| value << 32 | u128::from(source[lane]));
            shared.put(at, 4 * words, value);
            shared.mark(at, 4 * words, true);
        }
        true
    }

    /// What to do about a value that is not defined, by where it comes from and what that lacks.
    fn advice(&self, &Origin { site, lacks, .. }: &Origin) -> &'static str {
        if lacks == Lacks::Factors {
            return "Bring the scale factors to tensor memory before the MMA that reads them: tcgen05.cp, in all four quarters of 32 lanes.";
        }
        if lacks == Lacks::Operand {
            return "Write all of the operand before the MMA reads it: look which threads store it, whether one has ended before or goes around, and where \
                    the descriptor begins.";
        }
        let of_tensor_memory = |op: &Op| matches!(op, Op::Mma(_) | Op::TensorLoad { .. });
        match self.kernel.code.iter().any(|inst| inst.site == site && of_tensor_memory(&inst.op)) {
            true => OVERWRITE_FIRST,
            false => WRITE_FIRST,
        }
    }

    /// A copy stores undefined bytes, from this place on, to global memory.
    pub fn undefined_copy(&mut self, site: u32, from: Slot, buffer: usize, at: u64) {
        let what = self.global.buffers[buffer].describe(at);
        let mut diagnostic = self.problem(
            "undefined-value-stored",
            site,
            format!("{what} receives a value that was never computed"),
            "Shared memory holds no defined value before one is written to it (PTX ISA 8.2.6).",
            "Write the whole tile before the copy stores it.".into(),
        );
        let source = self.shared_name_exact(from.offset);
        let here = match self.kept_origin(from.cta, from.offset & !3, from.offset + 1) {
            Some(n) => {
                let origin = self.origins[n as usize].clone();
                diagnostic.help = self.advice(&origin).into();
                diagnostic.rule = UNKNOWN_RULE.into();
                diagnostic.labels.insert(0, self.label(origin.site, origin.text));
                if let Some(beside) = origin.beside {
                    self.is_beside(&mut diagnostic, beside);
                }
                format!("this copy stores {source}, an undefined value, to {what} here")
            }
            None => format!("this copy stores {source} to {what}, but nothing has written a defined value to it"),
        };
        if let Some(label) = diagnostic.labels.last_mut() {
            label.text = here;
        }
        diagnostic.severity = Severity::Finding;
        self.findings.add(diagnostic);
    }

    /// An undefined value reaches global memory: found, with the place where it came from.
    pub fn undefined_store(&mut self, w: usize, reg: Reg, buffer: usize, at: u64, site: u32) {
        let what = self.global.buffers[buffer].describe(at);
        let origin = self.warps[w].origins.get(&reg).copied().unwrap_or(0);
        let mut diagnostic = Diagnostic {
            code: "undefined-value-stored",
            severity: Severity::Finding,
            title: format!("{what} receives a value that was never computed"),
            labels: vec![self.label(site, format!("an undefined value is stored to {what} here"))],
            rule: UNKNOWN_RULE.into(),
            help: WRITE_FIRST.into(),
            count: 1,
            confirmed: None,
        };
        if origin != 0 {
            let origin = self.origins[origin as usize].clone();
            diagnostic.help = self.advice(&origin).into();
            diagnostic.labels.insert(0, self.label(origin.site, origin.text));
            if let Some(beside) = origin.beside {
                self.is_beside(&mut diagnostic, beside);
            }
        }
        self.findings.add(diagnostic);
    }

    /// What is undefined lies beside an accumulator: that of an MMA which is too narrow for its tiles, or perhaps is.
    fn is_beside(&self, diagnostic: &mut Diagnostic, beside: Beside) {
        let Beside { mma, text, help, title } = beside;
        diagnostic.help = help;
        match title {
            Some(title) => {
                (diagnostic.code, diagnostic.title, diagnostic.rule) =
                    ("instruction-descriptor", title, too_wide::RULE.into());
                diagnostic.labels.insert(0, self.label(mma, text).that_means(Meaning::TooNarrow));
            }
            None => diagnostic.labels.insert(1, self.label(mma, text)),
        }
    }
}
