//! Executes one instruction of a fragment.

use super::cluster::{Cluster, Stop};
use super::state::At;
use super::warp::{State, lanes};
use crate::diagnostic::{Diagnostic, Severity};
use crate::program::alu::lop3;
use crate::program::op::{Alu, Logic, Op, Reg, ShuffleMode, Space, Special, TRUE, VoteMode};

/// The high half of a generic address of local memory.
pub const LOCAL_WINDOW: u64 = 0x0000_7c00_0000_0000;
/// The high half of a generic address of a parameter.
pub const PARAM_WINDOW: u64 = 0x0000_7d00_0000_0000;
/// The high half of a generic address of shared memory.
pub const SHARED_WINDOW: u64 = 0x0000_7e00_0000_0000;

impl<'a> Cluster<'a> {
    /// Executes the next instruction of fragment `f` of warp `w`.
    pub fn step(&mut self, w: usize, f: usize) -> Result<(), Stop> {
        let kernel = self.kernel;
        let fragment = &self.warps[w].fragments[f];
        let (pc, active) = (fragment.pc, fragment.mask);
        let inst = &kernel.code[pc as usize];
        let site = inst.site;

        // Values still on their way from memory are waited for where they are used.
        let warp = &mut self.warps[w];
        if !warp.on_the_way.is_empty() {
            let now = warp.fragments[f].ready_at;
            let needed = warp.on_the_way.iter().filter(|(reg, _)| inst.uses.contains(reg) || inst.defs.contains(reg));
            let ready = needed.map(|&(_, at)| at).max().unwrap_or(now).max(now);
            let ready = if matches!(inst.op, Op::Store(_)) {
                // The compiler moves loads ahead of a store that waits for its value: the warp goes on, up to the next
                // instruction that orders memory, or to the end of a loop's round.
                warp.stores_ready_at = warp.stores_ready_at.max(ready);
                now
            } else {
                ready
            };
            warp.fragments[f].ready_at = ready;
            warp.on_the_way.retain(|&(_, at)| at > ready);
        }
        let cta = &mut self.ctas[warp.cta];
        cta.busy.issue += 1;
        let slots = &mut cta.issue[warp.index as usize % 4];
        warp.fragments[f].ready_at = slots.take(warp.fragments[f].ready_at, cta.slowed.issue);
        if !warp.open_loads.is_empty() {
            self.check_open_loads(w, f, &inst.uses, &inst.defs, site);
        }

        let mut mask = active;
        if inst.guard != TRUE || inst.guard_negated {
            let registers = &self.warps[w].registers;
            let guard = Reg::Pred(inst.guard);
            if active & !registers.defined(guard) != 0 {
                return Err(self.undefined_operand(w, site, guard, "the guard predicate"));
            }
            let value = registers.pred[usize::from(inst.guard)];
            mask &= if inst.guard_negated { !value } else { value };
        }

        if inst.op.orders_memory() {
            let warp = &mut self.warps[w];
            let ready = warp.fragments[f].ready_at.max(warp.stores_ready_at);
            warp.fragments[f].ready_at = ready;
        }

        let undefined = mask & self.warps[w].registers.undefined(&inst.op, &inst.uses);

        if let Op::BranchTable { index, targets, reconverge } = &inst.op {
            self.warps[w].fragments[f].ready_at += self.costs.issue;
            return self.branch_table(At { w, f, mask, site }, *index, targets, *reconverge);
        }
        if let Op::Branch { target, reconverge } = inst.op {
            self.warps[w].fragments[f].ready_at += self.costs.issue;
            if mask == 0 {
                self.warps[w].fragments[f].pc = pc + 1;
            } else if mask == active {
                let warp = &mut self.warps[w];
                if target <= pc {
                    warp.fragments[f].ready_at = warp.fragments[f].ready_at.max(warp.stores_ready_at);
                }
                warp.fragments[f].pc = target;
            } else {
                self.part(w, f, mask, target, reconverge);
            }
            return Ok(());
        }
        self.warps[w].fragments[f].ready_at += self.costs.issue;
        if mask == 0 {
            self.warps[w].fragments[f].pc = pc + 1;
            return Ok(());
        }
        if let Op::Exit = inst.op {
            self.exit(w, f, mask);
            return Ok(());
        }

        let at = At { w, f, mask, site };
        // Memory and synchronisation decide themselves what an undefined operand means.
        match &inst.op {
            Op::Load(op) => self.load(at, op)?,
            Op::Store(op) => self.store(at, op)?,
            Op::Atomic(op) => self.atomic(at, op)?,
            Op::TensorStore { shape, tensor, s, unpack } => self.tensor_store(at, *shape, tensor, s, *unpack)?,
            op if op.is_visible()
                || matches!(op, Op::Elect { .. } | Op::Shuffle { .. } | Op::Vote { .. } | Op::WarpSync { .. }) =>
            {
                if undefined != 0 {
                    let reg = inst.uses.iter().copied().find(|&r| mask & !self.warps[w].registers.defined(r) != 0);
                    return Err(self.undefined_operand(w, site, reg.unwrap_or(Reg::Sink), "an operand"));
                }
                self.synchronise(at, op)?;
            }
            Op::ProxyFence { shared, global } => {
                self.warps[w].fragments[f].ready_at += self.costs.fence;
                self.proxy_fence(w, mask, (*shared, *global), site);
                let (actor, time) = self.when(w, f);
                self.trace(self.warps[w].cta, actor, time, time, site, || crate::report::EventKind::ProxyFence);
            }
            Op::IsCanceled { p, response } => {
                self.query(w, mask, *response, Some(*p), &[], 0);
                self.warps[w].registers.set_defined(Reg::Pred(*p), mask, !undefined);
            }
            Op::FirstCta { d, response, first } => {
                self.query(w, mask, *response, None, d, *first);
                for &reg in d {
                    self.warps[w].registers.set_defined(reg, mask, !undefined);
                }
            }
            Op::InitFence => {
                self.warps[w].fragments[f].ready_at += self.costs.fence;
                self.warps[w].init_fence();
            }
            Op::Fence { gpu } => {
                self.warps[w].fragments[f].ready_at += self.costs.fence;
                self.warps[w].fence(*gpu);
            }
            Op::Hint => {}
            Op::TensorFence { .. } | Op::TensorRelinquish | Op::TensorWait { .. } => self.tensor_wait(at, &inst.op)?,
            Op::Sleep => self.warps[w].fragments[f].ready_at += 100,
            Op::Trap => {
                return Err(Some(Box::new(self.problem(
                    "trap",
                    site,
                    "the kernel executed `trap`".into(),
                    "`trap` ends the launch with an error (PTX ISA 9.7.19.4).",
                    "The kernel checks for something here, and the check failed.".into(),
                ))));
            }
            op => {
                self.compute(w, mask, op);
                for &d in &inst.defs {
                    self.warps[w].registers.set_defined(d, mask, !undefined);
                    if undefined != 0 {
                        self.inherit_origin(w, &inst.uses, d, mask, site);
                    } else if !self.warps[w].origins.is_empty() && mask == u32::MAX {
                        self.warps[w].origins.remove(&d);
                    }
                }
            }
        }
        // Whoever blocked or was merged has moved on already.
        if let Some(fragment) = self.warps[w].fragments.get_mut(f)
            && fragment.pc == pc
            && fragment.state == State::Ready
        {
            fragment.pc = pc + 1;
        }
        Ok(())
    }

    /// Arithmetic: everything that only touches registers.
    fn compute(&mut self, w: usize, mask: u32, op: &Op) {
        let lane_of = |special: Special, lane: u32, this: &Self| this.special(w, special, lane);
        match *op {
            Op::Alu { f, d, s } => {
                let r = &mut self.warps[w].registers;
                let [a, b, c] = s.map(usize::from);
                let (mut x, mut y) = ([0; 32], [0; 32]);
                let wide = match f {
                    Alu::U32(f) => (f(&mut x, &r.b32[a]), false).1,
                    Alu::B32(f) => (f(&mut x, &r.b32[a], &r.b32[b]), false).1,
                    Alu::T32(f) => (f(&mut x, &r.b32[a], &r.b32[b], &r.b32[c]), false).1,
                    Alu::Narrow(f) => (f(&mut x, &r.b64[a]), false).1,
                    Alu::U64(f) => (f(&mut y, &r.b64[a]), true).1,
                    Alu::B64(f) => (f(&mut y, &r.b64[a], &r.b64[b]), true).1,
                    Alu::T64(f) => (f(&mut y, &r.b64[a], &r.b64[b], &r.b64[c]), true).1,
                    Alu::Widen(f) => (f(&mut y, &r.b32[a]), true).1,
                    Alu::Wide2(f) => (f(&mut y, &r.b32[a], &r.b32[b]), true).1,
                    Alu::Wide3(f) => (f(&mut y, &r.b32[a], &r.b32[b], &r.b64[c]), true).1,
                    Alu::Shift64(f) => (f(&mut y, &r.b64[a], &r.b32[b]), true).1,
                    Alu::Field64(f) => (f(&mut y, &r.b64[a], &r.b32[b], &r.b32[c]), true).1,
                    Alu::Compare32(_) | Alu::Compare64(_) => return,
                };
                if wide { r.write64(d, mask, &y) } else { r.write32(d, mask, &x) }
            }
            Op::Lop3 { d, s, table } => {
                let r = &mut self.warps[w].registers;
                let [a, b, c] = s.map(|n| &r.b32[usize::from(n)]);
                let value = std::array::from_fn(|i| lop3(a[i], b[i], c[i], table));
                r.write32(d, mask, &value);
            }
            Op::Convert { how, d, s } => {
                let r = &mut self.warps[w].registers;
                for lane in lanes(mask) {
                    let value = how.apply(r.lane(s, lane) as u64);
                    r.set_lane(d, lane, value.into());
                }
            }
            Op::Setp { f, d, q, a, b, logic } => {
                let r = &mut self.warps[w].registers;
                let (a, b) = (usize::from(a), usize::from(b));
                let holds = match f {
                    Alu::Compare32(f) => f(&r.b32[a], &r.b32[b]),
                    Alu::Compare64(f) => f(&r.b64[a], &r.b64[b]),
                    _ => return,
                };
                let combine = |value: u32| match logic {
                    None => value,
                    Some((logic, c, negated)) => {
                        let c = r.pred[usize::from(c)] ^ if negated { u32::MAX } else { 0 };
                        apply(logic, value, c)
                    }
                };
                let (yes, no) = (combine(holds), combine(!holds));
                for (d, value) in [(d, yes), (q, no)] {
                    if let Some(d) = d {
                        r.write_pred(d, mask, value);
                    }
                }
            }
            Op::Pred { logic, d, a, a_negated, b, negate } => {
                let r = &mut self.warps[w].registers;
                let a = r.pred[usize::from(a)] ^ if a_negated { u32::MAX } else { 0 };
                let value = apply(logic, a, r.pred[usize::from(b)] ^ if a_negated && negate { u32::MAX } else { 0 });
                r.write_pred(d, mask, if negate { !value } else { value });
            }
            Op::Select32 { d, a, b, p, negated } => {
                let r = &mut self.warps[w].registers;
                let p = r.pred[usize::from(p)] ^ if negated { u32::MAX } else { 0 };
                let (a, b) = (&r.b32[usize::from(a)], &r.b32[usize::from(b)]);
                let value = std::array::from_fn(|i| if p >> i & 1 == 1 { a[i] } else { b[i] });
                r.write32(d, mask, &value);
            }
            Op::Select64 { d, a, b, p, negated } => {
                let r = &mut self.warps[w].registers;
                let p = r.pred[usize::from(p)] ^ if negated { u32::MAX } else { 0 };
                let (a, b) = (&r.b64[usize::from(a)], &r.b64[usize::from(b)]);
                let value = std::array::from_fn(|i| if p >> i & 1 == 1 { a[i] } else { b[i] });
                r.write64(d, mask, &value);
            }
            Op::Repack { ref d, ref s, d_bits, s_bits } => {
                let r = &mut self.warps[w].registers;
                // Two halves of 64 bits, put together and taken apart.
                match (&d[..], &s[..]) {
                    (&[Reg::B64(d)], &[Reg::B32(low), Reg::B32(high)]) if (d_bits, s_bits) == (64, 32) => {
                        let (low, high) = (&r.b32[usize::from(low)], &r.b32[usize::from(high)]);
                        let value = std::array::from_fn(|i| u64::from(high[i]) << 32 | u64::from(low[i]));
                        return r.write64(d, mask, &value);
                    }
                    (&[low, high], &[Reg::B64(s)]) if (d_bits, s_bits) == (32, 64) => {
                        let value = r.b64[usize::from(s)];
                        for (d, shift) in [(low, 0), (high, 32)] {
                            if let Reg::B32(d) = d {
                                r.write32(d, mask, &value.map(|v| (v >> shift) as u32));
                            }
                        }
                        if [low, high].iter().all(|d| matches!(d, Reg::B32(_) | Reg::Sink)) {
                            return;
                        }
                    }
                    _ => {}
                }
                for lane in lanes(mask) {
                    let mut whole = 0u128;
                    for (n, &part) in s.iter().enumerate() {
                        whole |= (r.lane(part, lane) & low(s_bits)) << (n as u32 * u32::from(s_bits));
                    }
                    for (n, &part) in d.iter().enumerate() {
                        r.set_lane(part, lane, whole >> (n as u32 * u32::from(d_bits)) & low(d_bits));
                    }
                }
            }
            Op::Special { d, which } => {
                for lane in lanes(mask) {
                    let value = lane_of(which, lane as u32, self);
                    self.warps[w].registers.set_lane(d, lane, value.into());
                }
            }
            Op::SharedAddress { d, offset } => {
                // A shared address carries the rank of its CTA in bits 24 and up.
                let value = (self.warps[w].cta as u32) << 24 | offset;
                for lane in lanes(mask) {
                    self.warps[w].registers.set_lane(d, lane, value.into());
                }
            }
            Op::MapAddress { d, s, rank } => {
                for lane in lanes(mask) {
                    let r = &mut self.warps[w].registers;
                    let rank = u64::from(r.b32[usize::from(rank)][lane]);
                    let value = r.lane(s, lane) as u64 & !0xff00_0000 | rank << 24;
                    r.set_lane(d, lane, value.into());
                }
            }
            Op::AddressRank { d, s } => {
                for lane in lanes(mask) {
                    let r = &mut self.warps[w].registers;
                    let rank = r.lane(s, lane) as u64 >> 24 & 0xff;
                    r.set_lane(Reg::B32(d), lane, rank.into());
                }
            }
            Op::Cvta { d, s, space, to } => {
                let window = match space {
                    Space::Shared | Space::SharedCluster => Some(SHARED_WINDOW),
                    Space::Param => Some(PARAM_WINDOW),
                    Space::Local => Some(LOCAL_WINDOW),
                    _ => None,
                };
                for lane in lanes(mask) {
                    let value = self.warps[w].registers.lane(s, lane) as u64;
                    let value = match (window, to) {
                        (None, _) => value,
                        (Some(window), false) => window | value & 0xffff_ffff,
                        (Some(_), true) => value & 0xffff_ffff,
                    };
                    self.warps[w].registers.set_lane(d, lane, value.into());
                }
            }
            Op::ActiveMask { d } => self.warps[w].registers.write32(d, mask, &[mask; 32]),
            _ => {}
        }
    }

    /// `elect`, `shfl`, `vote`: what lanes tell each other. All lanes of the member mask must be here.
    pub fn exchange(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let first = mask.trailing_zeros() as usize;
        let member = match *op {
            Op::Elect { mask: m, .. } | Op::Shuffle { mask: m, .. } | Op::Vote { mask: m, .. } => {
                self.warps[w].registers.b32[usize::from(m)][first]
            }
            _ => mask,
        };
        let live = self.warps[w].live;
        if member & live & !mask != 0 || mask & !member != 0 {
            let missing = member & live & !mask;
            return Err(Some(Box::new(self.problem(
                "lanes-missing",
                site,
                format!(
                    "{} of a warp reached this instruction, its member mask is {member:#010x}",
                    Self::lanes_text(mask)
                ),
                "A `.sync` instruction waits for all lanes that its member mask names, and no other lane may execute \
                 it (PTX ISA 9.7.9.6, 9.7.13.9, 9.7.13.14); lanes that come to it apart are not modelled.",
                format!("Let the lanes of {missing:#010x} come here too, or leave them out of the mask."),
            ))));
        }
        match *op {
            Op::Elect { d, p, .. } => {
                // Any lane of the mask may be elected, always the same for the same mask.
                let leader = if self.elects_last(mask) { 31 - mask.leading_zeros() as usize } else { first };
                let warp = &mut self.warps[w];
                warp.registers.write_pred(p, mask, 1 << leader);
                if let Some(d) = d {
                    warp.registers.write32(d, mask, &[leader as u32; 32]);
                }
            }
            Op::Shuffle { mode, d, p, a, b, c, .. } => {
                let r = &mut self.warps[w].registers;
                let (a, b, c) = (r.b32[usize::from(a)], r.b32[usize::from(b)], r.b32[usize::from(c)]);
                let mut value = [0; 32];
                let mut inside = 0u32;
                for i in lanes(mask) {
                    // PTX ISA 9.7.9.6: the segment's bounds come from c.
                    let segment = c[i] >> 8 & 0x1f;
                    let clamp = c[i] & 0x1f;
                    let lane = i as u32;
                    let high = (lane & segment) | (clamp & !segment);
                    let low = lane & segment;
                    let (source, ok) = match mode {
                        ShuffleMode::Up => {
                            (lane.wrapping_sub(b[i] & 0x1f), lane as i64 - i64::from(b[i] & 0x1f) >= i64::from(high))
                        }
                        ShuffleMode::Down => (lane + (b[i] & 0x1f), lane + (b[i] & 0x1f) <= high),
                        ShuffleMode::Butterfly => (lane ^ (b[i] & 0x1f), lane ^ (b[i] & 0x1f) <= high),
                        ShuffleMode::Index => {
                            let source = low | (b[i] & 0x1f & !segment);
                            (source, source <= high)
                        }
                    };
                    let source = if ok { source } else { lane };
                    value[i] = a[source as usize & 31];
                    inside |= u32::from(ok) << i;
                }
                r.write32(d, mask, &value);
                if let Some(p) = p {
                    r.write_pred(p, mask, inside);
                }
            }
            Op::Vote { mode, d, a, negated, .. } => {
                let r = &mut self.warps[w].registers;
                let votes = (r.pred[usize::from(a)] ^ if negated { u32::MAX } else { 0 }) & mask;
                let value = match mode {
                    VoteMode::All => u128::from(votes == mask),
                    VoteMode::Any => u128::from(votes != 0),
                    VoteMode::Uniform => u128::from(votes == mask || votes == 0),
                    VoteMode::Ballot => votes.into(),
                };
                for lane in lanes(mask) {
                    r.set_lane(d, lane, value);
                }
            }
            _ => {}
        }
        let inst = &self.kernel.code[self.warps[w].fragments[f].pc as usize];
        for &d in &inst.defs {
            self.warps[w].registers.set_defined(d, mask, u32::MAX);
        }
        Ok(())
    }

    fn special(&self, w: usize, which: Special, lane: u32) -> u64 {
        let warp = &self.warps[w];
        let [bx, by, _] = self.launch.block;
        let linear = warp.index * 32 + lane;
        let axis = |v: [u32; 3], n: u8| v.get(usize::from(n)).copied().unwrap_or(0);
        let cta = &self.ctas[warp.cta];
        let extent = self.extent();
        let value = match which {
            Special::Tid(n) => axis([linear % bx, linear / bx % by, linear / (bx * by)], n),
            Special::Ntid(n) => axis(self.launch.block, n),
            Special::Ctaid(n) => axis(cta.id, n),
            Special::Nctaid(n) => axis(self.launch.grid, n),
            Special::Lane => lane,
            Special::Warp => warp.index,
            Special::Nwarp => self.launch.block.iter().product::<u32>().div_ceil(32),
            // Without clusters, each CTA is a cluster of one (PTX ISA 2.2.2).
            Special::ClusterId(n) => axis(std::array::from_fn(|n| cta.id[n] / extent[n]), n),
            Special::NclusterId(n) => axis(std::array::from_fn(|n| self.launch.grid[n] / extent[n]), n),
            Special::ClusterCtaid(n) => axis(cta.inner, n),
            Special::ClusterNctaid(n) => axis(extent, n),
            Special::ClusterRank => warp.cta as u32,
            Special::ClusterNrank => extent.iter().product(),
            Special::Sm => self.sm,
            Special::Nsm => 148,
            Special::Clock => return warp.fragments.iter().find(|f| f.mask >> lane & 1 == 1).map_or(0, |f| f.ready_at),
            Special::DynamicShared => self.launch.dynamic_shared,
            Special::LaneMask(kind) => match kind {
                0 => 1 << lane,
                1 => u32::MAX >> (31 - lane),
                2 => (1 << lane) - 1,
                3 => u32::MAX << lane,
                _ => !(u32::MAX >> (31 - lane)),
            },
        };
        value.into()
    }

    /// An operand that decides what happens is undefined: the run cannot go on.
    pub fn undefined_operand(&mut self, w: usize, site: u32, reg: Reg, what: &str) -> Stop {
        let mut labels = vec![self.label(site, format!("{what} is undefined here"))];
        if let Some(&n) = self.warps[w].origins.get(&reg) {
            let origin = self.origins[n as usize].clone();
            labels.insert(0, self.label(origin.site, origin.text));
        }
        Some(Box::new(Diagnostic {
            code: "undefined-operand",
            severity: Severity::Error,
            title: format!(
                "{what} of `{}` has no defined value",
                self.place(site).text.split_whitespace().next().unwrap_or("this instruction")
            ),
            labels,
            rule: "Registers and memory hold unknown values until they are written (for memory, PTX ISA 8.2.6).".into(),
            help: "Write the value on every path that leads here.".into(),
            count: 1,
        }))
    }

    /// A result is undefined because one of its sources is: it is so for the same reason.
    pub fn inherit_origin(&mut self, w: usize, uses: &[Reg], d: Reg, mask: u32, site: u32) {
        let warp = &self.warps[w];
        let source = uses.iter().copied().find(|&u| mask & !warp.registers.defined(u) != 0);
        let known = source.and_then(|s| warp.origins.get(&s).copied());
        let origin = match known {
            Some(origin) => origin,
            None => self.origin(site, "a register is read here that nothing has written".into()),
        };
        self.warps[w].origins.insert(d, origin);
    }

    /// Actor and time, for the trace.
    pub fn when(&self, w: usize, f: usize) -> (crate::report::Actor, u64) {
        let warp = &self.warps[w];
        (crate::report::Actor::Warp(warp.index), warp.fragments.get(f).map_or(0, |f| f.ready_at))
    }
}

fn apply(logic: Logic, a: u32, b: u32) -> u32 {
    match logic {
        Logic::And => a & b,
        Logic::Or => a | b,
        Logic::Xor => a ^ b,
    }
}

fn low(bits: u8) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}
