//! Instructions that compute registers from registers, for all lanes at once.

use super::registers::{Registers, lanes};
use super::step::{LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW};
use crate::machine::cluster::Cluster;
use crate::program::arithmetic::alu::{bfi, lop3};
use crate::program::op::{Alu, Inst, L32, Logic, Op, Reg, Space, Special};
use crate::protocol::Timing;

/// Writes what a function makes of registers: for one lane alone; for all of them straight to where it belongs, if that is none of the
/// function's sources; otherwise for all, of which those of the mask are kept.
macro_rules! set {
    ($r:ident, $mask:ident, $write:ident, $class:ident[$d:ident], $f:ident, $($of:ident[$source:ident]),+) => {{
        if $mask.is_power_of_two() {
            let lane = $mask.trailing_zeros() as usize;
            let mut value = [0];
            $f(&mut value, $(&$r.$of[$source][lane..=lane]),+);
            $r.$class[usize::from($d)][lane] = value[0];
        } else {
            let mut value = [0; 32];
            $f(&mut value, $(&$r.$of[$source]),+);
            $r.$write($d, $mask, &value);
        }
    }};
    // Of one class.
    ($r:ident, $mask:ident, $write:ident, $class:ident[$d:ident] = $f:ident, $($source:ident),+) => {
        if $mask == u32::MAX
            && let Ok([d, $($source),+]) = $r.$class.get_disjoint_mut([usize::from($d), $($source),+])
        {
            $f(d, $($source),+);
        } else {
            set!($r, $mask, $write, $class[$d], $f, $($class[$source]),+);
        }
    };
}

impl Registers {
    /// Arithmetic: everything that only touches registers.
    #[inline]
    pub fn compute(&mut self, mask: u32, op: &Op) {
        let r = self;
        match *op {
            Op::Alu { f, d, s } => {
                let [a, b, c] = s.map(usize::from);
                match f {
                    Alu::U32(f) => set!(r, mask, write32, b32[d] = f, a),
                    Alu::B32(f) => set!(r, mask, write32, b32[d] = f, a, b),
                    Alu::T32(f) | Alu::Permute(f) => set!(r, mask, write32, b32[d] = f, a, b, c),
                    Alu::U64(f) => set!(r, mask, write64, b64[d] = f, a),
                    Alu::B64(f) => set!(r, mask, write64, b64[d] = f, a, b),
                    Alu::T64(f) => set!(r, mask, write64, b64[d] = f, a, b, c),
                    Alu::Narrow(f) => set!(r, mask, write32, b32[d], f, b64[a]),
                    Alu::Widen(f) => set!(r, mask, write64, b64[d], f, b32[a]),
                    Alu::Wide2(f) => set!(r, mask, write64, b64[d], f, b32[a], b32[b]),
                    Alu::Wide3(f) => set!(r, mask, write64, b64[d], f, b32[a], b32[b], b64[c]),
                    Alu::Shift64(f) => set!(r, mask, write64, b64[d], f, b64[a], b32[b]),
                    Alu::Field64(f) => set!(r, mask, write64, b64[d], f, b64[a], b32[b], b32[c]),
                    Alu::Compare32(_) | Alu::Compare64(_) => {}
                }
            }
            Op::Lop3 { d, s, table } => {
                let [a, b, c] = s.map(|n| &r.b32[usize::from(n)]);
                let value = std::array::from_fn(|i| lop3(a[i], b[i], c[i], table));
                r.write32(d, mask, &value);
            }
            Op::Insert { d, a, b, position, count } => {
                let bits = if matches!(d, Reg::B64(_)) { 64 } else { 32 };
                for lane in lanes(mask) {
                    let (a, b) = (r.lane(a, lane) as u64, r.lane(b, lane) as u64);
                    let [position, count] = [position, count].map(|reg| r.b32[usize::from(reg)][lane]);
                    r.set_lane(d, lane, bfi(a, b, position, count, bits).into());
                }
            }
            Op::Convert { how, d, s } => {
                for lane in lanes(mask) {
                    let value = how.apply(r.lane(s, lane) as u64);
                    r.set_lane(d, lane, value.into());
                }
            }
            Op::Setp { f, d, q, a, b, logic } => {
                let (a, b) = (usize::from(a), usize::from(b));
                let holds = match f {
                    Alu::Compare32(f) => compare(mask, f, &r.b32[a], &r.b32[b]),
                    Alu::Compare64(f) => compare(mask, f, &r.b64[a], &r.b64[b]),
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
                let a = r.pred[usize::from(a)] ^ if a_negated { u32::MAX } else { 0 };
                let value = apply(logic, a, r.pred[usize::from(b)] ^ if a_negated && negate { u32::MAX } else { 0 });
                r.write_pred(d, mask, if negate { !value } else { value });
            }
            Op::Select32 { d, a, b, p, negated } => {
                let p = r.pred[usize::from(p)] ^ if negated { u32::MAX } else { 0 };
                let (a, b) = (&r.b32[usize::from(a)], &r.b32[usize::from(b)]);
                let value = std::array::from_fn(|i| if p >> i & 1 == 1 { a[i] } else { b[i] });
                r.write32(d, mask, &value);
            }
            Op::Select64 { d, a, b, p, negated } => {
                let p = r.pred[usize::from(p)] ^ if negated { u32::MAX } else { 0 };
                let (a, b) = (&r.b64[usize::from(a)], &r.b64[usize::from(b)]);
                let value = std::array::from_fn(|i| if p >> i & 1 == 1 { a[i] } else { b[i] });
                r.write64(d, mask, &value);
            }
            Op::Repack { ref d, ref s, d_bits, s_bits } => {
                // Two halves of 64 bits, put together and taken apart.
                match (&d[..], &s[..]) {
                    (&[Reg::B64(d)], &[Reg::B32(low), Reg::B32(high)]) if (d_bits, s_bits) == (64, 32) => {
                        let (low, high) = (&r.b32[usize::from(low)], &r.b32[usize::from(high)]);
                        let value = std::array::from_fn(|i| u64::from(high[i]) << 32 | u64::from(low[i]));
                        return r.write64(d, mask, &value);
                    }
                    (&[low, high], &[Reg::B64(s)]) if (d_bits, s_bits) == (32, 64) => {
                        let value = &r.b64[usize::from(s)];
                        for (d, shift) in [(low, 0), (high, 32)] {
                            let Reg::B32(d) = d else { continue };
                            for (lane, (d, value)) in r.b32[usize::from(d)].iter_mut().zip(value).enumerate() {
                                *d = if mask >> lane & 1 == 1 { (value >> shift) as u32 } else { *d };
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
            Op::MapAddress { d, s, rank } => {
                for lane in lanes(mask) {
                    let rank = u64::from(r.b32[usize::from(rank)][lane]);
                    let value = r.lane(s, lane) as u64 & !0xff00_0000 | rank << 24;
                    r.set_lane(d, lane, value.into());
                }
            }
            Op::AddressRank { d, s } => {
                for lane in lanes(mask) {
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
                    let value = r.lane(s, lane) as u64;
                    let value = match (window, to) {
                        (None, _) => value,
                        (Some(window), false) => window | value & 0xffff_ffff,
                        (Some(_), true) => value & 0xffff_ffff,
                    };
                    r.set_lane(d, lane, value.into());
                }
            }
            Op::ActiveMask { d } => r.write32(d, mask, &[mask; 32]),
            Op::SharedAddress { d, offset } => r.broadcast(d, mask, (r.rank | offset).into()),
            _ => {}
        }
    }
}

impl Cluster<'_> {
    /// Executes one; in these lanes its result is not defined.
    #[inline]
    pub fn plain(&mut self, w: usize, mask: u32, inst: &Inst, undefined: u32) {
        let parts = if undefined == 0 { None } else { self.warps[w].registers.parts_of_results(inst) };
        match inst.op {
            Op::Special { d, which } => self.read_special(w, mask, d, which),
            ref op => self.warps[w].registers.compute(mask, op),
        }
        let warp = &mut self.warps[w];
        if undefined == 0 && warp.origins.is_empty() {
            warp.registers.all_defined(inst, mask);
            return;
        }
        for &d in &inst.defs {
            let registers = &mut self.warps[w].registers;
            match parts.iter().flatten().find(|(reg, _)| *reg == d) {
                Some((_, lacks)) => registers.set_parts(d, mask, lacks),
                None => registers.set_defined(d, mask, !undefined),
            }
            if mask & !registers.defined(d) != 0 {
                self.inherit_origin(w, &inst.uses, d, mask, inst.site);
            } else if mask == u32::MAX {
                self.warps[w].origins.remove(&d);
            }
        }
    }

    /// Reads a special register, which needs to know where the warp runs.
    fn read_special(&mut self, w: usize, mask: u32, d: Reg, which: Special) {
        if (which == Special::Sm || which.is_time())
            && let Some(site) = self.kernel.timed
        {
            self.record.depends_on_timing(site, Timing::Clock);
        }
        if !which.differs() {
            let value = self.special(w, which, 0);
            return self.warps[w].registers.broadcast(d, mask, value);
        }
        if let (Reg::B32(d), Some(values)) = (d, self.special_of_lanes(w, which)) {
            return self.warps[w].registers.write32(d, mask, &values);
        }
        for lane in lanes(mask) {
            let value = self.special(w, which, lane as u32);
            self.warps[w].registers.set_lane(d, lane, value.into());
        }
    }

    /// What kernels ask for most often of what lanes differ in, of all lanes at once.
    fn special_of_lanes(&self, w: usize, which: Special) -> Option<L32> {
        let (first, [bx, by, bz]) = (self.warps[w].index * 32, self.launch.block);
        match which {
            Special::Lane => Some(std::array::from_fn(|lane| lane as u32)),
            Special::Tid(n) if (by, bz) == (1, 1) && first + 31 < bx => {
                Some(if n == 0 { std::array::from_fn(|lane| first + lane as u32) } else { [0; 32] })
            }
            _ => None,
        }
    }

    pub fn special(&self, w: usize, which: Special, lane: u32) -> u64 {
        let warp = &self.warps[w];
        let [bx, by, _] = self.launch.block;
        let linear = warp.index * 32 + lane;
        let axis = |v: [u32; 3], n: u8| v.get(usize::from(n)).copied().unwrap_or(0);
        let cta = &self.ctas[warp.cta];
        let extent = self.extent();
        let now = || warp.fragments.iter().find(|f| f.mask >> lane & 1 == 1).map_or(0, |f| f.ready_at);
        let value = match which {
            Special::Tid(n) => axis([linear % bx, linear / bx % by, linear / (bx * by)], n),
            Special::Ntid(n) => axis(self.launch.block, n),
            Special::Ctaid(n) => axis(cta.id, n),
            Special::Nctaid(n) => axis(self.launch.grid, n),
            Special::Lane => lane,
            Special::Warp => warp.index,
            // As many as an SM holds, whatever the CTA has (PTX ISA 10.6); an H200 says 64.
            Special::Nwarp => self.costs.sm_threads / 32,
            // Without clusters, each CTA is a cluster of one (PTX ISA 2.2.2).
            Special::ClusterId(n) => axis(std::array::from_fn(|n| cta.id[n] / extent[n]), n),
            Special::NclusterId(n) => axis(std::array::from_fn(|n| self.launch.grid[n] / extent[n]), n),
            Special::ClusterCtaid(n) => axis(cta.inner, n),
            Special::ClusterNctaid(n) => axis(extent, n),
            Special::ClusterRank => warp.cta as u32,
            Special::ClusterNrank => extent.iter().product(),
            Special::Sm => self.sm + warp.cta as u32,
            Special::Nsm => self.costs.gpcs.iter().sum(),
            Special::Clock => return now(),
            // It counts nanoseconds.
            Special::Timer(from) => return (now() * 1000 / self.costs.clock_mhz.max(1)) >> from,
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
}

/// Where it holds, of the lanes of the mask.
#[inline]
fn compare<T>(mask: u32, f: fn(&[T], &[T]) -> u32, a: &[T; 32], b: &[T; 32]) -> u32 {
    if !mask.is_power_of_two() {
        return f(a, b);
    }
    let lane = mask.trailing_zeros();
    let one = lane as usize..=lane as usize;
    f(&a[one.clone()], &b[one]) << lane
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
