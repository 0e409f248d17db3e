//! Of which registers of a `tcgen05.ld` each byte of a store is made: found by computing it from samples, each time with one register changed. So it holds for any
//! instructions between the two, conversions, shifts and permutations of bytes among them.

use crate::machine::warp::registers::Registers;
use crate::program::Kernel;
use crate::program::op::{FALSE, Op, Reg, TRUE, TensorShape};
use std::collections::BTreeSet;

/// So many statements are looked at for a store.
const MOST: usize = 256;

/// What a byte is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The register of the load of this number, and constants.
    Register(u16),
    /// Constants alone.
    Nothing,
    Several,
}

/// What a store leaves.
#[derive(Debug)]
pub struct MadeOf {
    /// The load, in the kernel's code.
    pub load: usize,
    /// Byte by byte.
    pub bytes: Vec<From>,
}

/// The statements between a load and a store.
#[derive(Default)]
struct Slice {
    statements: BTreeSet<usize>,
    load: Option<usize>,
    /// Registers of the load, by number.
    used: BTreeSet<u16>,
}

impl Slice {
    fn of(kernel: &Kernel, store: usize, stored: &[Reg]) -> Option<Slice> {
        let constant = |reg: Reg| match reg {
            Reg::B32(n) => kernel.constants32.iter().any(|constant| constant.0 == n),
            Reg::B64(n) => kernel.constants64.iter().any(|constant| constant.0 == n),
            Reg::Pred(n) => n == TRUE || n == FALSE,
            _ => false,
        };
        let mut slice = Slice::default();
        let mut open: Vec<(usize, Reg)> = stored.iter().map(|&reg| (store, reg)).collect();
        while let Some((at, reg)) = open.pop() {
            if slice.statements.len() >= MOST {
                return None;
            }
            if constant(reg) {
                continue;
            }
            // In the order of the code each is computed before it is used.
            let writer = kernel.writers().only(at, reg).filter(|&writer| writer < at)?;
            let inst = &kernel.code[writer];
            match &inst.op {
                _ if inst.facts.guarded => return None,
                Op::TensorLoad { shape: TensorShape::S32x32b, d, pack: false, .. } => {
                    if *slice.load.get_or_insert(writer) != writer {
                        return None;
                    }
                    slice.used.extend(d.iter().position(|&d| reg == Reg::B32(d)).map(|n| n as u16));
                }
                // Which it is may differ from lane to lane.
                Op::Select32 { .. } | Op::Select64 { .. } | Op::Special { .. } => return None,
                _ if inst.facts.plain => {
                    if slice.statements.insert(writer) {
                        open.extend(inst.uses.iter().map(|&used| (writer, used)));
                    }
                }
                _ => return None,
            }
        }
        Some(slice)
    }

    /// What is stored, of all samples: one after the other.
    fn compute(
        &self,
        kernel: &Kernel,
        registers: &mut Registers,
        values: &dyn Fn(u16) -> [u32; 32],
        stored: &[Reg],
    ) -> Vec<u128> {
        let Some(Op::TensorLoad { d, .. }) = self.load.map(|load| &kernel.code[load].op) else { return vec![] };
        let mut bring = self.load;
        for &at in &self.statements {
            if bring.take_if(|load| *load < at).is_some() {
                self.used.iter().for_each(|&n| registers.b32[usize::from(d[usize::from(n)])] = values(n));
            }
            registers.compute(u32::MAX, &kernel.code[at].op);
        }
        if bring.is_some() {
            self.used.iter().for_each(|&n| registers.b32[usize::from(d[usize::from(n)])] = values(n));
        }
        stored
            .iter()
            .flat_map(|&reg| (0..32).map(move |lane| (reg, lane)))
            .map(|(reg, lane)| registers.lane(reg, lane))
            .collect()
    }
}

/// A number that looks like chance.
fn mixed(seed: u64) -> u64 {
    let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let seed = (seed ^ seed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    seed ^ seed >> 31
}

/// Samples of what a register may hold, one a lane, and what it is changed to, of which all bits differ: FP32 of moderate size, and whole numbers of 7 and of 11 bits;
/// both of one sign, so that who cuts off the others has something left, or of two.
fn samples(register: u16, changed: bool) -> [u32; 32] {
    const KINDS: [(u32, bool, bool); 8] = [
        (23, false, false),
        (23, true, true),
        (23, false, true),
        (7, false, false),
        (7, true, true),
        (7, false, true),
        (11, false, false),
        (11, false, true),
    ];
    std::array::from_fn(|lane| {
        let (width, before, after) = KINDS[lane % KINDS.len()];
        let (bits, negative) = (mixed(u64::from(register) << 32 | lane as u64), if changed { after } else { before });
        let value = (bits as u32 ^ if changed { u32::MAX } else { 0 }) & ((1 << width) - 1);
        match (width, negative) {
            (23, _) => {
                value | (121 + (bits >> 32) as u32 % 5 + if changed { 7 } else { 0 }) << 23 | u32::from(negative) << 31
            }
            (_, true) => value.wrapping_neg(),
            (_, false) => value,
        }
    })
}

impl MadeOf {
    /// `None`: it stores what is not known, or of more than one load. `registers`: of the kernel, to compute in.
    pub fn of(kernel: &Kernel, store: usize, registers: &mut Registers) -> Option<MadeOf> {
        let Op::Store(op) = &kernel.code[store].op else { return None };
        let slice = Slice::of(kernel, store, &op.s)?;
        let load = slice.load?;
        let first = slice.compute(kernel, registers, &|n| samples(n, false), &op.s);
        let each = usize::from(op.bytes);
        let mut bytes = vec![From::Nothing; each * op.s.len()];
        for &register in &slice.used {
            let other = slice.compute(kernel, registers, &|n| samples(n, n == register), &op.s);
            let both = first.chunks(32).zip(other.chunks(32));
            let differs = both.map(|(one, two)| one.iter().zip(two).fold(0, |all, (one, two)| all | one ^ two));
            for (differs, bytes) in differs.zip(bytes.chunks_mut(each)) {
                let touched = |(n, _): &(usize, &mut From)| differs >> (n * 8) & 0xff != 0;
                for (_, from) in bytes.iter_mut().enumerate().filter(touched) {
                    *from = if *from == From::Nothing { From::Register(register) } else { From::Several };
                }
            }
        }
        Some(MadeOf { load, bytes })
    }
}

/// Whether what a load brings to a register reaches nothing but registers.
pub fn is_lost(kernel: &Kernel, load: usize, register: Reg) -> bool {
    let mut open = vec![(load, register)];
    let mut seen = BTreeSet::new();
    while let Some((writer, reg)) = open.pop() {
        for (at, inst) in kernel.code.iter().enumerate().filter(|(_, inst)| inst.uses.contains(&reg)) {
            if !kernel.writers().all(at, reg).contains(&writer) || !seen.insert((at, writer)) {
                continue;
            }
            if !inst.facts.plain || inst.facts.guarded || seen.len() > MOST {
                return false;
            }
            open.extend(inst.defs.iter().map(|&d| (at, d)));
        }
    }
    true
}
