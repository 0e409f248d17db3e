//! Which part of a register holds a value where another does not. Compilers put registers and bytes together of which some never got a value
//! where they are not wanted, and take only the others out again: what is taken out is defined if all that it is made of is.

use super::warp::{Registers, lanes};
use crate::program::op::{Alu, Inst, L32, L64, Op, Reg};

/// The low bits.
fn low(bits: u8) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// The lanes in which any bit is set.
fn any(bits: &L64) -> u32 {
    bits.iter().enumerate().fold(0, |mask, (lane, &bits)| mask | u32::from(bits != 0) << lane)
}

impl Registers {
    /// Of the lanes in which a source lacks a value, those whose result does: what is not selected does not matter.
    pub fn not_selected(&self, inst: &Inst, lacking: u32) -> u32 {
        let lacks = |reg| !self.defined(reg);
        let select = |p: u16, negated: bool, a, b| {
            let p_set = self.pred[usize::from(p)] ^ if negated { u32::MAX } else { 0 };
            lacks(Reg::Pred(p)) | p_set & lacks(a) | !p_set & lacks(b)
        };
        match inst.op {
            Op::Select32 { a, b, p, negated, .. } => select(p, negated, Reg::B32(a), Reg::B32(b)),
            Op::Select64 { a, b, p, negated, .. } => select(p, negated, Reg::B64(a), Reg::B64(b)),
            Op::Alu { f: Alu::Permute(_), .. } => self
                .parts_of_results(&inst.op)
                .map_or(lacking, |parts| parts.iter().fold(0, |all, (_, bits)| all | any(bits))),
            _ => lacking,
        }
    }

    /// Bits of a register that lack a value.
    fn lacks(&self, reg: Reg) -> L64 {
        let (defined, parts) = (self.defined(reg), self.parts.get(&reg));
        std::array::from_fn(|lane| match parts {
            _ if defined >> lane & 1 == 1 => 0,
            Some(parts) => parts[lane],
            None => u64::MAX,
        })
    }

    /// Whether a lane's lowest bytes hold a value: all that a narrow store takes of a register.
    pub fn is_low_part_defined(&self, reg: Reg, lane: usize, bytes: usize) -> bool {
        let wanted = low((8 * bytes).min(64) as u8);
        self.defined(reg) >> lane & 1 == 1 || self.parts.get(&reg).is_some_and(|parts| parts[lane] & wanted == 0)
    }

    /// Bits that each result of an instruction lacks, if it only moves bits. `None`: another instruction.
    pub fn parts_of_results(&self, op: &Op) -> Option<Vec<(Reg, L64)>> {
        match op {
            Op::Repack { d, s, d_bits, s_bits } => {
                let sources: Vec<L64> = s.iter().map(|&reg| self.lacks(reg)).collect();
                let whole = |lane: usize| {
                    let place = |(n, lacks): (usize, &L64)| {
                        u128::from(lacks[lane] & low(*s_bits)) << (n * usize::from(*s_bits))
                    };
                    sources.iter().enumerate().map(place).fold(0, |all, part| all | part)
                };
                let of = |n: usize| -> L64 {
                    std::array::from_fn(|lane| (whole(lane) >> (n * usize::from(*d_bits))) as u64 & low(*d_bits))
                };
                Some(d.iter().enumerate().map(|(n, &reg)| (reg, of(n))).collect())
            }
            // It moves the bits of the bytes that it chooses. Of a byte without value a copied sign has none.
            &Op::Alu { f: Alu::Permute(f), d, s: [a, b, c] } => {
                let [a, b, choice] = [a, b, c].map(|reg| -> L32 { self.lacks(Reg::B32(reg)).map(|bits| bits as u32) });
                let mut parts = [0; 32];
                f(&mut parts, &a, &b, &self.b32[usize::from(c)]);
                parts
                    .iter_mut()
                    .zip(choice)
                    .filter(|(_, choice)| *choice != 0)
                    .for_each(|(parts, _)| *parts = u32::MAX);
                Some(vec![(Reg::B32(d), parts.map(u64::from))])
            }
            _ => None,
        }
    }

    /// A register was written in these lanes, and lacks these bits.
    pub fn set_parts(&mut self, reg: Reg, mask: u32, lacks: &L64) {
        let whole = mask & !any(lacks);
        self.set_defined(reg, mask, whole);
        if mask & !whole == 0 || !matches!(reg, Reg::B32(_) | Reg::B64(_)) {
            return;
        }
        let parts = self.parts.entry(reg).or_insert_with(|| Box::new([u64::MAX; 32]));
        lanes(mask).for_each(|lane| parts[lane] = lacks[lane]);
    }

    /// A register was written in these lanes: as far as it lacks a value, all of it does.
    pub fn forget_parts(&mut self, reg: Reg, mask: u32) {
        if mask == u32::MAX {
            self.parts.remove(&reg);
        } else if let Some(parts) = self.parts.get_mut(&reg) {
            lanes(mask).for_each(|lane| parts[lane] = u64::MAX);
        }
    }
}
