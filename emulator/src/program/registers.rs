//! How many registers a thread needs. PTX names as many as it likes; the assembler decides. The largest number that is live at
//! once is a good guess (assumption `registers-by-liveness`).

use super::flow::successors;
use super::op::{FALSE, Inst, Reg, TRUE};

/// 32-bit registers that are live at once, at most; at least 16, in steps of 8, no more than a thread can have.
pub fn per_thread(code: &[Inst], registers: (u16, u16, u16)) -> u32 {
    let (n32, n64) = (usize::from(registers.0), usize::from(registers.1));
    let bit = |reg: &Reg| match *reg {
        Reg::B32(r) => vec![usize::from(r)],
        Reg::B64(r) => vec![n32 + usize::from(r)],
        Reg::B128(r) => vec![n32 + usize::from(r), n32 + usize::from(r) + 1],
        Reg::Pred(_) | Reg::Sink => vec![],
    };
    // Immediates are registers here, but nobody writes them: they never become live below.
    let words = (n32 + n64).div_ceil(64);
    let mut written = vec![0u64; words];
    code.iter().flat_map(|i| i.defs.iter()).flat_map(bit).for_each(|r| written[r / 64] |= 1 << (r % 64));
    let next = successors(code, true);
    let mut live = vec![vec![0u64; words]; code.len() + 1];
    let mut changed = true;
    while changed {
        changed = false;
        for pc in (0..code.len()).rev() {
            let inst = &code[pc];
            let mut now = vec![0u64; words];
            for &to in &next[pc] {
                now.iter_mut().zip(&live[to]).for_each(|(a, b)| *a |= b);
            }
            if inst.guard == TRUE || inst.guard == FALSE {
                inst.defs.iter().flat_map(bit).for_each(|r| now[r / 64] &= !(1 << (r % 64)));
            }
            inst.uses.iter().flat_map(bit).for_each(|r| now[r / 64] |= 1 << (r % 64) & written[r / 64]);
            if now != live[pc] {
                live[pc] = now;
                changed = true;
            }
        }
    }
    let count = |set: &Vec<u64>| -> u32 {
        let ones = |range: std::ops::Range<usize>| range.filter(|r| set[r / 64] >> (r % 64) & 1 == 1).count() as u32;
        ones(0..n32) + 2 * ones(n32..n32 + n64)
    };
    live.iter().map(count).max().unwrap_or(0).next_multiple_of(8).clamp(16, 255)
}
