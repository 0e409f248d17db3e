//! Which part of a register holds a value where another does not. Compilers put registers together of which one never got a value where it is
//! not wanted, and take only the other out again: what is taken out is defined if all that it is made of is.

use super::warp::{Registers, lanes};
use crate::program::op::{L64, Op, Reg};

/// The low bits.
fn low(bits: u8) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

impl Registers {
    /// Bits of a register that lack a value.
    fn lacks(&self, reg: Reg) -> L64 {
        let (defined, parts) = (self.defined(reg), self.parts.get(&reg));
        std::array::from_fn(|lane| match parts {
            _ if defined >> lane & 1 == 1 => 0,
            Some(parts) => parts[lane],
            None => u64::MAX,
        })
    }

    /// Bits that each result of an instruction lacks where a source does, if it only moves bits. `None`: another instruction.
    pub fn parts_of_results(&self, op: &Op) -> Option<Vec<(Reg, L64)>> {
        let Op::Repack { d, s, d_bits, s_bits } = op else { return None };
        let sources: Vec<L64> = s.iter().map(|&reg| self.lacks(reg)).collect();
        let whole = |lane: usize| {
            let place =
                |(n, lacks): (usize, &L64)| u128::from(lacks[lane] & low(*s_bits)) << (n * usize::from(*s_bits));
            sources.iter().enumerate().map(place).fold(0, |all, part| all | part)
        };
        let of = |n: usize| -> L64 {
            std::array::from_fn(|lane| (whole(lane) >> (n * usize::from(*d_bits))) as u64 & low(*d_bits))
        };
        Some(d.iter().enumerate().map(|(n, &reg)| (reg, of(n))).collect())
    }

    /// A register was written in these lanes, and lacks these bits.
    pub fn set_parts(&mut self, reg: Reg, mask: u32, lacks: &L64) {
        let whole = lanes(mask).filter(|&lane| lacks[lane] == 0).fold(0u32, |whole, lane| whole | 1 << lane);
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
