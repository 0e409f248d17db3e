//! Which part of a register holds a value where another does not. Compilers put registers and bytes together of which some never got a value
//! where they are not wanted, and take only the others out again: what is taken out is defined if all that it is made of is.

use super::registers::{Registers, lanes};
use crate::program::arithmetic::alu::{bfi, lop3};
use crate::program::arithmetic::bits::Bits;
use crate::program::op::{Alu, Inst, L32, L64, Logic, Op, Reg};

/// The lower half of each lane.
fn narrow(bits: &L64) -> L32 {
    bits.map(|bits| bits as u32)
}

/// What an instruction makes of these values of its sources, where it changes each bit by itself or moves bits.
fn applied(op: &Op, v: &[L64]) -> Option<L64> {
    let [a, b, c, d] = [0, 1, 2, 3].map(|n| v.get(n).copied().unwrap_or([0; 32]));
    let (a32, b32, c32) = (narrow(&a), narrow(&b), narrow(&c));
    let (mut x, mut y): (L32, L64) = ([0; 32], [0; 32]);
    match *op {
        Op::Alu { f, .. } => match f {
            Alu::U32(f) => f(&mut x, &a32),
            Alu::B32(f) => f(&mut x, &a32, &b32),
            Alu::T32(f) => f(&mut x, &a32, &b32, &c32),
            Alu::Narrow(f) => f(&mut x, &a),
            Alu::U64(f) => f(&mut y, &a),
            Alu::B64(f) => f(&mut y, &a, &b),
            Alu::T64(f) => f(&mut y, &a, &b, &c),
            Alu::Widen(f) => f(&mut y, &a32),
            Alu::Shift64(f) => f(&mut y, &a, &b32),
            Alu::Field64(f) => f(&mut y, &a, &b32, &c32),
            _ => return None,
        },
        Op::Lop3 { table, .. } => x = std::array::from_fn(|i| lop3(a32[i], b32[i], c32[i], table)),
        Op::Insert { d: to, .. } => {
            let bits = if matches!(to, Reg::B64(_)) { 64 } else { 32 };
            y = std::array::from_fn(|i| bfi(a[i], b[i], c32[i], d[i] as u32, bits));
        }
        Op::Convert { how, .. } => y = a.map(|a| how.apply(a)),
        _ => return None,
    }
    Some(std::array::from_fn(|lane| y[lane] | u64::from(x[lane])))
}

/// The sources of such an instruction in their order, and how many of them, from the first on, the bits come from.
fn sources(inst: &Inst) -> Option<(Vec<Reg>, usize)> {
    let class = |f: &Alu, s: &[u16; 3]| {
        let [a, b, c] = *s;
        Some(match f {
            Alu::U32(_) | Alu::Widen(_) => vec![Reg::B32(a)],
            Alu::B32(_) => vec![Reg::B32(a), Reg::B32(b)],
            Alu::T32(_) => vec![Reg::B32(a), Reg::B32(b), Reg::B32(c)],
            Alu::U64(_) | Alu::Narrow(_) => vec![Reg::B64(a)],
            Alu::B64(_) => vec![Reg::B64(a), Reg::B64(b)],
            Alu::T64(_) => vec![Reg::B64(a), Reg::B64(b), Reg::B64(c)],
            Alu::Shift64(_) => vec![Reg::B64(a), Reg::B32(b)],
            Alu::Field64(_) => vec![Reg::B64(a), Reg::B32(b), Reg::B32(c)],
            _ => return None,
        })
    };
    let all = match &inst.op {
        Op::Alu { f, s, .. } => class(f, s)?,
        Op::Lop3 { s, .. } => s.map(Reg::B32).to_vec(),
        &Op::Insert { a, b, position, count, .. } => vec![a, b, Reg::B32(position), Reg::B32(count)],
        Op::Convert { s, .. } => vec![*s],
        _ => return None,
    };
    let free = match (inst.facts.bits, &inst.op) {
        (Bits::Mixed, _) => return None,
        (Bits::Each | Bits::Parts(_), _) => all.len(),
        (Bits::Moved, Op::Insert { .. }) => 2,
        (Bits::Moved, _) => 1,
    };
    Some((all, free))
}

/// The low bits.
fn low(bits: u8) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// All bits of the parts in which any is set.
fn whole_parts(set: u64, bits: u8) -> u64 {
    let parts = (0..64).step_by(bits.into()).map(|from| low(bits) << from);
    parts.filter(|part| set & part != 0).fold(0, |all, part| all | part)
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
        // Lanes in which a predicate alone says what comes of it: true of `or`, false of `and`.
        let settles = |logic: Logic, p: u16, negated: bool| {
            let set = self.pred[usize::from(p)] ^ if negated { u32::MAX } else { 0 };
            let settling = match logic {
                Logic::Or => set,
                Logic::And => !set,
                Logic::Xor => 0,
            };
            settling & !lacks(Reg::Pred(p))
        };
        match inst.op {
            Op::Pred { logic, a, a_negated, b, .. } => {
                lacking & !(settles(logic, a, a_negated) | settles(logic, b, false))
            }
            Op::Setp { logic: Some((logic, c, negated)), .. } => lacking & !settles(logic, c, negated),
            Op::Select32 { a, b, p, negated, .. } => select(p, negated, Reg::B32(a), Reg::B32(b)),
            Op::Select64 { a, b, p, negated, .. } => select(p, negated, Reg::B64(a), Reg::B64(b)),
            Op::Repack { .. } => lacking,
            _ => self
                .parts_of_results(inst)
                .map_or(lacking, |parts| parts.iter().fold(0, |all, (_, bits)| all | any(bits))),
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

    /// Bits that lack a value in a lane's lowest bytes: all that a narrow store takes of a register.
    pub fn low_part_lacks(&self, reg: Reg, lane: usize, bytes: usize) -> u128 {
        let wanted = u128::MAX >> (128 - 8 * bytes);
        if self.defined(reg) >> lane & 1 == 1 {
            return 0;
        }
        self.parts.get(&reg).map_or(wanted, |parts| u128::from(parts[lane]) & wanted)
    }

    /// Bits that each result of an instruction lacks, if it only moves bits. `None`: another instruction.
    pub fn parts_of_results(&self, inst: &Inst) -> Option<Vec<(Reg, L64)>> {
        match &inst.op {
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
            &Op::Select32 { d, a, b, p, negated } => {
                Some(vec![(Reg::B32(d), self.selected_lacks(p, negated, Reg::B32(a), Reg::B32(b)))])
            }
            &Op::Select64 { d, a, b, p, negated } => {
                Some(vec![(Reg::B64(d), self.selected_lacks(p, negated, Reg::B64(a), Reg::B64(b)))])
            }
            _ => self.bits_that_vary(inst).map(|bits| inst.defs.iter().map(|&d| (d, bits)).collect()),
        }
    }

    /// Bits that the chosen source lacks: all, where nothing says which it is.
    fn selected_lacks(&self, p: u16, negated: bool, a: Reg, b: Reg) -> L64 {
        let set = self.pred[usize::from(p)] ^ if negated { u32::MAX } else { 0 };
        let (known, a, b) = (self.defined(Reg::Pred(p)), self.lacks(a), self.lacks(b));
        std::array::from_fn(|lane| match known >> lane & 1 {
            0 => u64::MAX,
            _ if set >> lane & 1 == 1 => a[lane],
            _ => b[lane],
        })
    }

    /// The bits of the result that would be others if those of the sources that lack a value were.
    fn bits_that_vary(&self, inst: &Inst) -> Option<L64> {
        let (sources, free) = sources(inst)?;
        let lacks: Vec<L64> = sources.iter().map(|&reg| self.lacks(reg)).collect();
        if let Bits::Parts(bits) = inst.facts.bits {
            let all: L64 = std::array::from_fn(|lane| lacks.iter().fold(0, |all, lacks| all | lacks[lane]));
            return Some(all.map(|lacks| whole_parts(lacks, bits)));
        }
        let values: Vec<L64> =
            sources.iter().map(|&reg| std::array::from_fn(|lane| self.lane(reg, lane) as u64)).collect();
        let varied: Vec<usize> = (0..free).filter(|&n| any(&lacks[n]) != 0).collect();
        let mut vary = [0; 32];
        let mut first = None;
        // Each bit depends on one of each source: all of a source's together is as good as one by one.
        for ones in 0..1u32 << varied.len() {
            let mut values = values.clone();
            for (k, &n) in varied.iter().enumerate() {
                for (value, lacks) in values[n].iter_mut().zip(&lacks[n]) {
                    *value = if ones >> k & 1 == 1 { *value | lacks } else { *value & !lacks };
                }
            }
            let result = applied(&inst.op, &values)?;
            let first = *first.get_or_insert(result);
            vary.iter_mut().zip(result.iter().zip(first)).for_each(|(vary, (is, was))| *vary |= is ^ was);
        }
        // Which bits are taken is not known.
        for others in &lacks[free..] {
            vary.iter_mut().zip(others).filter(|(_, lacks)| **lacks != 0).for_each(|(vary, _)| *vary = u64::MAX);
        }
        Some(vary)
    }

    /// A register was written in these lanes, and lacks these bits.
    pub fn set_parts(&mut self, reg: Reg, mask: u32, lacks: &L64) {
        let whole = mask & !any(lacks);
        self.set_defined(reg, mask, whole);
        let all = match reg {
            Reg::B32(_) => low(32),
            Reg::B64(_) => low(64),
            _ => return,
        };
        // What lacks all bits is no news.
        if lanes(mask & !whole).all(|lane| lacks[lane] & all == all) {
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
