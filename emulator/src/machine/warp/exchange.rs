//! What the lanes of a warp tell each other: `elect`, `shfl`, `vote`, `redux`, `match`.

use super::registers::{POISON, lanes};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::At;
use crate::program::op::{Op, Reg, ShuffleMode, VoteMode};

/// A lane of a shuffle, its operand, and the bounds that come of the third one (PTX ISA 9.7.9.6).
struct Place {
    lane: u32,
    b: u32,
    segment: u32,
    low: u32,
    high: u32,
}

/// The lane that each lane reads, and those of which it lies in their segment; the others read themselves.
fn sources(mode: ShuffleMode, b: &[u32; 32], c: &[u32; 32]) -> ([u32; 32], u32) {
    match mode {
        ShuffleMode::Up => each(b, c, |p| (p.lane.wrapping_sub(p.b), p.lane as i32 - p.b as i32 >= p.high as i32)),
        ShuffleMode::Down => each(b, c, |p| (p.lane + p.b, p.lane + p.b <= p.high)),
        ShuffleMode::Butterfly => each(b, c, |p| (p.lane ^ p.b, p.lane ^ p.b <= p.high)),
        ShuffleMode::Index => each(b, c, |p| {
            let source = p.low | (p.b & !p.segment);
            (source, source <= p.high)
        }),
    }
}

/// The same of one mode, without branches: many kernels' warps begin with shuffles.
#[inline(always)]
fn each(b: &[u32; 32], c: &[u32; 32], source: impl Fn(Place) -> (u32, bool)) -> ([u32; 32], u32) {
    let (mut from, mut inside) = ([0; 32], [0; 32]);
    for i in 0..32 {
        let (lane, segment, clamp) = (i as u32, c[i] >> 8 & 0x1f, c[i] & 0x1f);
        let (low, high) = (lane & segment, (lane & segment) | (clamp & !segment));
        let (source, ok) = source(Place { lane, b: b[i] & 0x1f, segment, low, high });
        from[i] = if ok { source } else { lane };
        inside[i] = u32::from(ok) << i;
    }
    (from, inside.iter().fold(0, |all, lane| all | lane))
}

impl Cluster<'_> {
    /// `elect`, `shfl`, `vote`, `redux`, `match`: what lanes tell each other. All lanes of the member mask must be here.
    pub fn exchange(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let member = match *op {
            Op::Elect { mask: m, .. }
            | Op::Shuffle { mask: m, .. }
            | Op::Vote { mask: m, .. }
            | Op::Reduce { mask: m, .. }
            | Op::Match { mask: m, .. } => m,
            _ => return self.exchange_among(at, op),
        };
        let mut rest = at.mask;
        while rest != 0 {
            let (member, mask) = self.warps[at.w].registers.first_value(member, rest);
            rest &= !mask;
            let missing = member & self.warps[at.w].live & !mask;
            if missing != 0 || mask & !member != 0 {
                return Err(Some(Box::new(self.problem(
                    "lanes-missing",
                    at.site,
                    format!(
                        "{} of a warp reached this instruction, its member mask is {member:#010x}",
                        Self::lanes_text(mask)
                    ),
                    "A `.sync` instruction waits for all lanes that its member mask names, and no other lane may execute \
                     it (PTX ISA 9.7.9.6, 9.7.13.9, 9.7.13.14); lanes that come to it apart are not modelled.",
                    if missing == 0 {
                        format!(
                            "Name the lanes of {:#010x} in the mask too, or keep them away from here.",
                            mask & !member
                        )
                    } else {
                        format!("Let the lanes of {missing:#010x} come here too, or leave them out of the mask.")
                    },
                ))));
            }
            self.exchange_among(At { mask, ..at }, op)?;
        }
        Ok(())
    }

    /// The same among lanes of one member mask. Tiles of less than a warp execute one instruction with a mask each.
    fn exchange_among(&mut self, at: At, op: &Op) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        let first = mask.trailing_zeros() as usize;
        self.record.meet(w, mask, site);
        match *op {
            Op::Elect { d, p, .. } => {
                // The lowest lane on every schedule: see `settled`.
                let warp = &mut self.warps[w];
                warp.registers.write_pred(p, mask, 1 << first);
                if let Some(d) = d {
                    warp.registers.write32(d, mask, &[first as u32; 32]);
                }
            }
            Op::Shuffle { mode, d, p, a, b, c, .. } => {
                let r = &mut self.warps[w].registers;
                let (moved, known) = (Reg::B32(a), r.defined(Reg::B32(a)));
                let (a, b, c) = (r.b32[usize::from(a)], r.b32[usize::from(b)], r.b32[usize::from(c)]);
                let (from, inside) = sources(mode, &b, &c);
                let mut value = from.map(|lane| a[lane as usize % 32]);
                if known != u32::MAX {
                    let unknown = value.iter_mut().zip(&from).filter(|(_, lane)| known >> (*lane % 32) & 1 == 0);
                    unknown.for_each(|(value, _)| *value = POISON);
                }
                let without = |lanes: u32| {
                    if lanes == u32::MAX {
                        0
                    } else {
                        (0..32).fold(0, |all, i| all | (!lanes >> from[i] & 1) << i) & mask
                    }
                };
                // Lanes that read a register of one that does not take part, and those that read an undefined one.
                let (lost, unknown) = (without(mask), without(known));
                r.write32(d, mask, &value);
                if let Some(p) = p {
                    r.write_pred(p, mask, inside);
                    r.set_defined(Reg::Pred(p), mask, u32::MAX);
                }
                r.set_defined(Reg::B32(d), mask, !(lost | unknown));
                if lost != 0 {
                    let lane = lost.trailing_zeros();
                    let text =
                        format!("lane {lane} gets the value of a lane that does not execute this (PTX ISA 9.7.9.6)");
                    let origin = self.origin(site, text);
                    self.warps[w].origins.insert(Reg::B32(d), origin);
                } else if unknown != 0 {
                    self.inherit_origin(w, &[moved], Reg::B32(d), mask, site);
                } else if mask == u32::MAX {
                    self.warps[w].origins.remove(&Reg::B32(d));
                }
                return Ok(());
            }
            Op::Vote { mode, d, a, negated, .. } => {
                let r = &mut self.warps[w].registers;
                let votes = (r.pred[usize::from(a)] ^ if negated { u32::MAX } else { 0 }) & mask;
                let value = match mode {
                    VoteMode::All => u64::from(votes == mask),
                    VoteMode::Any => u64::from(votes != 0),
                    VoteMode::Uniform => u64::from(votes == mask || votes == 0),
                    VoteMode::Ballot => votes.into(),
                };
                r.broadcast(d, mask, value);
            }
            Op::Reduce { what, d, a, .. } => {
                let r = &mut self.warps[w].registers;
                let values = r.b32[usize::from(a)];
                if let Some(value) = lanes(mask).map(|lane| values[lane]).reduce(what) {
                    r.write32(d, mask, &[value; 32]);
                }
            }
            Op::Match { all, d, p, a, .. } => {
                let r = &mut self.warps[w].registers;
                let values: [u128; 32] = std::array::from_fn(|lane| r.lane(a, lane));
                let same = |lane: usize| {
                    lanes(mask).filter(|&n| values[n] == values[lane]).fold(0u32, |same, n| same | 1 << n)
                };
                let everywhere = same(first) == mask;
                let each = |lane| if all { if everywhere { mask } else { 0 } } else { same(lane) };
                r.write32(d, mask, &std::array::from_fn(each));
                if let Some(p) = p {
                    r.write_pred(p, mask, if everywhere { u32::MAX } else { 0 });
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
}
