//! Which part of a register holds a value where another does not. Compilers put bytes together in steps (`prmt`), with registers that never
//! got a value where a byte is not wanted: the result is defined if all that it is made of is.

use super::warp::{Registers, lanes};
use crate::program::op::{Alu, Inst, L32, Op, Reg};

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
            Op::Alu { f: Alu::Permute(_), .. } => self.parts_of_result(&inst.op).map_or(lacking, |parts| {
                parts.iter().enumerate().fold(0, |mask, (lane, &bits)| mask | u32::from(bits != 0) << lane)
            }),
            _ => lacking,
        }
    }

    /// Bits of a register that lack a value.
    fn lacks(&self, reg: u16) -> L32 {
        let (defined, parts) = (self.defined(Reg::B32(reg)), self.parts.get(&reg));
        std::array::from_fn(|lane| match parts {
            _ if defined >> lane & 1 == 1 => 0,
            Some(parts) => parts[lane],
            None => u32::MAX,
        })
    }

    /// Bits of the result of `prmt` that lack a value: those of the bytes that it chooses, which it moves as it moves the bytes. Of a byte
    /// without value a copied sign has none. `None`: another instruction.
    pub fn parts_of_result(&self, op: &Op) -> Option<L32> {
        let Op::Alu { f: Alu::Permute(f), s: [a, b, c], .. } = *op else { return None };
        let mut parts = [0; 32];
        f(&mut parts, &self.lacks(a), &self.lacks(b), &self.b32[usize::from(c)]);
        let choice = self.lacks(c);
        parts.iter_mut().zip(choice).filter(|(_, choice)| *choice != 0).for_each(|(parts, _)| *parts = u32::MAX);
        Some(parts)
    }

    /// These bits of a register lack a value, in these lanes.
    pub fn set_parts(&mut self, reg: Reg, mask: u32, lacks: &L32) {
        let Reg::B32(reg) = reg else { return };
        let parts = self.parts.entry(reg).or_insert_with(|| Box::new([u32::MAX; 32]));
        lanes(mask).for_each(|lane| parts[lane] = lacks[lane]);
    }

    /// A register was written in these lanes, and as far as it lacks a value, all of it does.
    pub fn forget_parts(&mut self, reg: Reg, mask: u32) {
        if let Reg::B32(reg) = reg
            && let Some(parts) = self.parts.get_mut(&reg)
        {
            lanes(mask).for_each(|lane| parts[lane] = u32::MAX);
        }
    }
}
