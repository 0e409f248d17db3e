//! `wgmma.mma_async`, decoded, and which elements of D and A the registers of each thread hold.

use super::kind::Types;
use super::op::Reg;

/// Rows of D: those of all four warps.
pub const ROWS: u32 = 64;
/// Rows of D that a warp holds.
pub const WARP_ROWS: u32 = 16;

/// Operands of `wgmma.mma_async`.
#[derive(Debug)]
pub struct WgmmaOp {
    /// Columns of D.
    pub n: u32,
    pub types: Types,
    /// The registers of D: an FP32 number or an integer each, or two FP16 numbers.
    pub d: Box<[u16]>,
    /// A.
    pub a: WgmmaA,
    /// Descriptor of B.
    pub b: u16,
    /// scale-d: D is added to.
    pub accumulate: u16,
    /// Written as `!p`.
    pub accumulate_negated: bool,
    /// imm-scale-a and imm-scale-b are −1.
    pub negate_a: bool,
    pub negate_b: bool,
    /// imm-trans-a and imm-trans-b: MN-major instead of K-major.
    pub a_mn_major: bool,
    pub b_mn_major: bool,
}

/// A of `wgmma.mma_async`.
#[derive(Clone, Copy, Debug)]
pub enum WgmmaA {
    /// A descriptor.
    Shared(u16),
    /// Four registers of one, two or four elements.
    Registers([u16; 4]),
}

impl WgmmaOp {
    /// Both write the same registers in the same shape: they may follow each other without a wait (PTX ISA, wgmma.fence).
    pub fn same_accumulator(&self, other: &WgmmaOp) -> bool {
        let shape = |op: &WgmmaOp| (op.n, op.types.kind.depth(), op.types.d);
        self.d == other.d && shape(self) == shape(other)
    }

    /// The registers that A lies in; none: it lies in shared memory.
    pub fn a_registers(&self) -> &[u16] {
        match &self.a {
            WgmmaA::Shared(_) => &[],
            WgmmaA::Registers(list) => list,
        }
    }

    /// Registers of the accumulator and of A: those that must not be touched while it runs.
    pub fn fragments(&self) -> impl Iterator<Item = u16> {
        self.d.iter().chain(self.a_registers()).copied()
    }

    /// What decides what it does: descriptors and scale-d.
    pub fn deciding(&self) -> Vec<Reg> {
        let a = if let WgmmaA::Shared(a) = self.a { Some(Reg::B64(a)) } else { None };
        a.into_iter().chain([Reg::B64(self.b), Reg::Pred(self.accumulate)]).collect()
    }
}

/// Row within the warp's sixteen, and column, of the first element that register `r` of D holds in thread `t` of a warp (PTX ISA,
/// register fragments of wgmma.mma_async; they are the same for all types of A and B). An FP16 register holds the next column as well.
pub fn d_element(wide: bool, t: usize, r: usize) -> (usize, usize) {
    let (pair, odd) = if wide { (r / 2, r % 2) } else { (r, 0) };
    (t / 4 + 8 * (pair % 2), pair / 2 * 8 + t % 4 * 2 + odd)
}

/// Row within the warp's sixteen, and depth in units of two bytes, of what register `r` of A holds in thread `t`: four bytes of the row.
/// Elements of any size are the bytes that they would be in shared memory.
pub fn a_element(t: usize, r: usize) -> (usize, usize) {
    (t / 4 + 8 * (r % 2), r / 2 * 8 + t % 4 * 2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every element of a warp's part lies in one register of one thread; the corners as the ISA's figures show them.
    #[test]
    fn fragments_hold_every_element_once() {
        for n in [8, 24, 256] {
            for wide in [true, false] {
                let (registers, each) = if wide { (n / 2, 1) } else { (n / 4, 2) };
                let mut seen = BTreeSet::new();
                for (t, r) in (0..32).flat_map(|t| (0..registers).map(move |r| (t, r))) {
                    let (row, column) = d_element(wide, t, r);
                    (0..each).for_each(|more| assert!(seen.insert((row, column + more)), "{t} {r}"));
                }
                assert_eq!(seen.len(), 16 * n);
                assert_eq!(seen.last(), Some(&(15, n - 1)));
            }
        }
        let a: BTreeSet<_> = (0..32).flat_map(|t| (0..4).map(move |r| a_element(t, r))).collect();
        assert_eq!(a.len(), 128);
        assert_eq!(
            (d_element(true, 5, 2), d_element(true, 5, 5), d_element(false, 31, 3)),
            ((9, 2), (1, 11), (15, 14))
        );
        assert_eq!((a_element(6, 1), a_element(6, 2)), ((9, 4), (1, 12)));
    }
}
