//! The registers of a warp, in 32 lanes.

use crate::program::Kernel;
use crate::program::facts::number;
use crate::program::op::{FALSE, Inst, L32, L64, Reg, TRUE};
use rustc_hash::FxHashMap;

/// The registers of a warp, and which lanes of each hold a defined value.
#[derive(Debug, Default)]
pub struct Registers {
    pub b32: Vec<L32>,
    pub b64: Vec<L64>,
    pub pred: Vec<u32>,
    /// Of each class, how many there are.
    counts: (u16, u16, u16),
    /// Lanes defined, by the registers' [`number`].
    defined: Vec<u32>,
    /// Those that a `tcgen05.ld` is still to bring, by their number.
    loading: Vec<bool>,
    /// The rank of the warp's CTA, as addresses of its shared memory carry it: in bits 24 and up.
    pub rank: u32,
    /// Which bits of registers lack a value, where not all do.
    pub parts: FxHashMap<Reg, Box<L64>>,
}

/// What registers hold before they are written: as a float, NaN.
pub const POISON: u32 = 0xffff_ffff;

impl Registers {
    /// Those of a warp that begins, in the CTA of this rank. They take the memory of a warp that has ended, and what that has left in registers that are always
    /// written before they are read.
    pub fn new(kernel: &Kernel, rank: usize, before: Option<Registers>) -> Registers {
        fn poisoned<T: Copy>(mut values: Vec<T>, value: T, len: usize, unwritten: u16) -> Vec<T> {
            values.resize(len, value);
            values[..usize::from(unwritten)].fill(value);
            values
        }
        fn all<T: Clone>(mut values: Vec<T>, value: T, len: usize) -> Vec<T> {
            values.clear();
            values.resize(len, value);
            values
        }
        let counts = kernel.registers;
        let [n32, n64, np] = [counts.0, counts.1, counts.2].map(usize::from);
        let before = before.unwrap_or_default();
        let mut r = Registers {
            b32: poisoned(before.b32, [POISON; 32], n32, kernel.unwritten.0),
            b64: poisoned(before.b64, [u64::MAX; 32], n64, kernel.unwritten.1),
            pred: all(before.pred, 0, np),
            counts,
            defined: all(before.defined, 0, n32 + n64 + np),
            loading: all(before.loading, false, n32 + n64 + np),
            rank: (rank as u32) << 24,
            parts: FxHashMap::default(),
        };
        r.pred[usize::from(TRUE)] = u32::MAX;
        for p in [TRUE, FALSE] {
            r.set_defined(Reg::Pred(p), u32::MAX, u32::MAX);
        }
        for &(reg, value) in &kernel.constants32 {
            r.b32[usize::from(reg)] = [value; 32];
            r.set_defined(Reg::B32(reg), u32::MAX, u32::MAX);
        }
        for &(reg, value) in &kernel.constants64 {
            r.b64[usize::from(reg)] = [value; 32];
            r.set_defined(Reg::B64(reg), u32::MAX, u32::MAX);
        }
        r
    }

    /// Their memory.
    pub fn bytes(&self) -> usize {
        self.b32.capacity() * size_of::<L32>() + self.b64.capacity() * size_of::<L64>()
    }

    /// A register's number among those of all classes.
    pub fn number(&self, reg: Reg) -> u32 {
        number(reg, self.counts)
    }

    /// Lanes in which a register holds a defined value.
    #[inline]
    pub fn defined(&self, reg: Reg) -> u32 {
        let n = self.number(reg) as usize;
        match reg {
            Reg::B128(_) => self.defined[n] & self.defined[n + 1],
            Reg::Sink => u32::MAX,
            _ => self.defined[n],
        }
    }

    /// Of the lanes that come to an instruction, those that its guard lets execute it; `None`: the guard has no defined value in one.
    #[inline]
    pub fn guarded(&self, inst: &Inst, active: u32) -> Option<u32> {
        if !inst.facts.guarded {
            return Some(active);
        }
        if active & !self.defined(Reg::Pred(inst.guard)) != 0 {
            return None;
        }
        let value = self.pred[usize::from(inst.guard)];
        Some(active & if inst.guard_negated { !value } else { value })
    }

    /// Of the lanes of `mask`, those in which an instruction's result is not defined, because a source is not.
    #[inline(always)]
    pub fn undefined(&self, inst: &Inst, mask: u32) -> u32 {
        let facts = &inst.facts;
        let lacking = if facts.few {
            let [a, b, c, d] = facts.reads.map(|n| self.defined[usize::from(n)]);
            !(a & b & c & d)
        } else {
            inst.uses.iter().fold(0, |mask, &reg| mask | !self.defined(reg))
        };
        match mask & lacking {
            0 => 0,
            lacking => mask & self.not_selected(inst, lacking),
        }
    }

    /// Whether a `tcgen05.ld` is still to bring a register that an instruction reads or writes.
    #[inline]
    pub fn waits_for_load(&self, inst: &Inst) -> bool {
        if inst.facts.few {
            let mut numbers = inst.facts.reads.iter().chain(&inst.facts.writes);
            return numbers.any(|&n| self.loading[usize::from(n)]);
        }
        let loading = |&reg: &Reg| matches!(reg, Reg::B32(_)) && self.loading[self.number(reg) as usize];
        inst.uses.iter().chain(&inst.defs).any(loading)
    }

    /// A `tcgen05.ld` is to bring these 32-bit registers, or has.
    pub fn set_loading(&mut self, registers: &[u16], loading: bool) {
        registers.iter().for_each(|&reg| self.loading[usize::from(reg)] = loading);
    }

    /// Says of the registers that an instruction has written that they are defined in these lanes.
    #[inline(always)]
    pub fn all_defined(&mut self, inst: &Inst, mask: u32) {
        if inst.facts.few && self.parts.is_empty() {
            inst.facts.writes.iter().for_each(|&n| self.defined[usize::from(n)] |= mask);
        } else {
            inst.defs.iter().for_each(|&d| self.set_defined(d, mask, u32::MAX));
        }
    }

    /// Says, for the lanes of `mask`, in which the value just written is defined.
    #[inline]
    pub fn set_defined(&mut self, reg: Reg, mask: u32, defined: u32) {
        if !self.parts.is_empty() {
            self.forget_parts(reg, mask);
        }
        let n = self.number(reg) as usize;
        let count = match reg {
            Reg::Sink => 0,
            Reg::B128(_) => 2,
            _ => 1,
        };
        for d in &mut self.defined[n..n + count] {
            *d = *d & !mask | mask & defined;
        }
    }

    /// Whether a 32-bit register holds the same in all these lanes.
    pub fn is_uniform(&self, reg: u16, mask: u32) -> bool {
        let values = &self.b32[usize::from(reg)];
        let first = values[mask.trailing_zeros() as usize % 32];
        let same = values.iter().enumerate().fold(0, |same, (lane, &value)| same | u32::from(value == first) << lane);
        mask & !same == 0
    }

    pub fn write32(&mut self, d: u16, mask: u32, value: &L32) {
        let d = &mut self.b32[usize::from(d)];
        if mask == u32::MAX {
            *d = *value;
        } else {
            for lane in lanes(mask) {
                d[lane] = value[lane];
            }
        }
    }

    pub fn write64(&mut self, d: u16, mask: u32, value: &L64) {
        let d = &mut self.b64[usize::from(d)];
        if mask == u32::MAX {
            *d = *value;
        } else {
            for lane in lanes(mask) {
                d[lane] = value[lane];
            }
        }
    }

    pub fn write_pred(&mut self, d: u16, mask: u32, value: u32) {
        let d = &mut self.pred[usize::from(d)];
        *d = *d & !mask | value & mask;
    }

    /// What the first of these lanes holds in a register, and those of them that hold the same.
    pub fn first_value(&self, r: u16, among: u32) -> (u32, u32) {
        let values = &self.b32[usize::from(r)];
        let value = values[among.trailing_zeros() as usize % 32];
        let same = values.iter().enumerate().fold(0, |same, (lane, &other)| same | u32::from(other == value) << lane);
        (value, same & among)
    }

    /// The values of these lanes in a register, each once, with the lanes that hold it.
    pub fn by_value(&self, r: u16, among: u32) -> impl Iterator<Item = (u32, u32)> {
        let mut rest = among;
        std::iter::from_fn(move || {
            let group = (rest != 0).then(|| self.first_value(r, rest))?;
            rest &= !group.1;
            Some(group)
        })
    }

    /// Writes one value to these lanes.
    pub fn broadcast(&mut self, d: Reg, mask: u32, value: u64) {
        match d {
            Reg::B32(r) => self.write32(r, mask, &[value as u32; 32]),
            Reg::B64(r) => self.write64(r, mask, &[value; 32]),
            Reg::Pred(r) => self.write_pred(r, mask, if value & 1 == 1 { mask } else { 0 }),
            Reg::B128(_) | Reg::Sink => lanes(mask).for_each(|lane| self.set_lane(d, lane, value.into())),
        }
    }

    /// Writes the low bits of one lane, whatever the class.
    #[inline]
    pub fn set_lane(&mut self, d: Reg, lane: usize, value: u128) {
        match d {
            Reg::B32(r) => self.b32[usize::from(r)][lane] = value as u32,
            Reg::B64(r) => self.b64[usize::from(r)][lane] = value as u64,
            Reg::B128(r) => {
                self.b64[usize::from(r)][lane] = value as u64;
                self.b64[usize::from(r) + 1][lane] = (value >> 64) as u64;
            }
            Reg::Pred(r) => {
                let p = &mut self.pred[usize::from(r)];
                *p = *p & !(1 << lane) | ((value & 1) as u32) << lane;
            }
            Reg::Sink => {}
        }
    }

    /// Reads one lane, whatever the class.
    #[inline]
    pub fn lane(&self, s: Reg, lane: usize) -> u128 {
        match s {
            Reg::B32(r) => self.b32[usize::from(r)][lane].into(),
            Reg::B64(r) => self.b64[usize::from(r)][lane].into(),
            Reg::B128(r) => {
                u128::from(self.b64[usize::from(r)][lane]) | u128::from(self.b64[usize::from(r) + 1][lane]) << 64
            }
            Reg::Pred(r) => u128::from(self.pred[usize::from(r)] >> lane & 1),
            Reg::Sink => 0,
        }
    }
}

/// The set bits of a mask.
pub fn lanes(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}
