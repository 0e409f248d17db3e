//! Which registers of PTX share a place. PTX names as many as it likes, a compiler mostly one for each value; what is never alive
//! at the same time can lie in the same place, so that a warp takes a tenth of the memory and stays in the host's caches.
//!
//! The largest number of values alive at once is also a good guess of how many registers the assembler will give a thread
//! (assumption `registers-by-liveness`).

use super::op::{FALSE, Inst, Op, Reg, TRUE};
use crate::program::flow::successors;
use std::collections::BTreeSet;

/// The most registers that a thread can have.
pub const MOST_REGISTERS: u32 = 255;

/// Places of 32-bit and 64-bit registers, by the number that they were declared under.
#[derive(Debug)]
pub struct Plan {
    pub b32: Vec<u16>,
    pub b64: Vec<u16>,
    /// How many places there are.
    pub places: (u16, u16),
    /// The first of them belong to one register each, and may be read before they are written. All others are written before.
    pub own: (u16, u16),
    /// 32-bit registers that are alive at once, at most; at least 16, in steps of 8, no more than a thread can have.
    pub per_thread: u32,
}

/// A set of registers: 32-bit ones first, then 64-bit ones.
type Set = Vec<u64>;

fn has(set: &Set, n: usize) -> bool {
    set[n / 64] >> (n % 64) & 1 == 1
}

fn insert(set: &mut Set, n: usize) {
    set[n / 64] |= 1 << (n % 64);
}

/// Decides for a kernel whose registers all have places of their own.
pub fn plan(code: &[Inst], (n32, n64, _): (u16, u16, u16)) -> Plan {
    let (n32, n64) = (usize::from(n32), usize::from(n64));
    let numbers = |reg: &Reg| {
        let (first, count) = match *reg {
            Reg::B32(r) => (usize::from(r), 1),
            Reg::B64(r) => (n32 + usize::from(r), 1),
            Reg::B128(r) => (n32 + usize::from(r), 2),
            Reg::Pred(_) | Reg::Sink => (0, 0),
        };
        first..first + count
    };
    let alive = alive(code, n32 + n64, &numbers);

    // From the first instruction to the last at which each is alive, read or written.
    let mut span = vec![None::<(usize, usize)>; n32 + n64];
    let mut own = vec![true; n32 + n64];
    for (pc, inst) in code.iter().enumerate() {
        let mut see = |n: usize| {
            let (first, last) = span[n].get_or_insert((pc, pc));
            (*first, *last) = ((*first).min(pc), (*last).max(pc));
        };
        for (word, bits) in alive[pc].iter().enumerate() {
            let mut bits = *bits;
            while bits != 0 {
                see(word * 64 + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
        inst.uses.iter().chain(&inst.defs).flat_map(&numbers).for_each(see);
        inst.defs.iter().flat_map(&numbers).for_each(|n| own[n] = false);
    }
    // Immediates, which nothing writes, keep a place of their own; and what may be read before it is written, so that this is
    // noticed; and the halves of 128-bit registers, which lie side by side.
    for (n, own) in own.iter_mut().enumerate() {
        *own |= alive.first().is_some_and(|begin| has(begin, n));
    }
    let wide = |reg: &&Reg| matches!(reg, Reg::B128(_));
    for reg in code.iter().flat_map(|i| i.uses.iter().chain(&i.defs)).filter(wide) {
        numbers(reg).for_each(|n| own[n] = true);
    }
    let (b32, places32) = places(&span[..n32], &own[..n32]);
    let (b64, places64) = places(&span[n32..], &own[n32..]);
    let owners = |own: &[bool]| own.iter().filter(|&&own| own).count() as u16;
    let own = (owners(&own[..n32]), owners(&own[n32..]));
    // A word of the set may hold the last registers of 32 bits and the first of 64.
    let mut narrow = vec![0; (n32 + n64).div_ceil(64)];
    (0..n32).for_each(|n| insert(&mut narrow, n));
    let count = |set: &Set| -> u32 {
        let of = |(&word, &narrow): (&u64, &u64)| (word & narrow).count_ones() + 2 * (word & !narrow).count_ones();
        set.iter().zip(&narrow).map(of).sum()
    };
    let most = alive.iter().map(count).max().unwrap_or(0);
    Plan { b32, b64, places: (places32, places64), own, per_thread: most.next_multiple_of(8).clamp(16, 255) }
}

/// The registers that are alive before each instruction: it or a later one reads the value they hold. The destinations of a
/// `tcgen05.ld`, and the accumulator and A of a `wgmma.mma_async`, are alive until they are waited for.
fn alive(code: &[Inst], count: usize, numbers: &impl Fn(&Reg) -> std::ops::Range<usize>) -> Vec<Set> {
    let words = count.div_ceil(64);
    let next = successors(code, true);
    let mut written = vec![0; words];
    code.iter().flat_map(|i| i.defs.iter()).flat_map(numbers).for_each(|n| insert(&mut written, n));
    let mut alive = vec![vec![0u64; words]; code.len() + 1];
    let mut changed = true;
    let mut now = vec![0; words];
    while changed {
        changed = false;
        for (pc, inst) in code.iter().enumerate().rev() {
            now.fill(0);
            for &to in &next[pc] {
                now.iter_mut().zip(&alive[to]).for_each(|(a, b)| *a |= b);
            }
            if inst.guard == TRUE && !inst.guard_negated || inst.guard == FALSE && inst.guard_negated {
                inst.defs.iter().flat_map(numbers).for_each(|n| now[n / 64] &= !(1 << (n % 64)));
            }
            inst.uses.iter().flat_map(numbers).for_each(|n| now[n / 64] |= written[n / 64] & 1 << (n % 64));
            if now != alive[pc] {
                alive[pc].copy_from_slice(&now);
                changed = true;
            }
        }
    }
    // What an asynchronous operation works on, up to the wait that surely covers it.
    let always = |inst: &Inst| inst.guard == TRUE && !inst.guard_negated;
    let loads = |inst: &Inst| match inst.op {
        Op::TensorWait { loads: true } if always(inst) => Some(vec![]),
        Op::TensorLoad { .. } => Some(inst.defs.to_vec()),
        _ => None,
    };
    let mmas = |inst: &Inst| match &inst.op {
        Op::WgmmaWait { pending: 0 } if always(inst) => Some(vec![]),
        Op::Wgmma(op) => Some(op.fragments().map(Reg::B32).collect()),
        _ => None,
    };
    for works_on in [&loads as &dyn Fn(&Inst) -> Option<Vec<Reg>>, &mmas] {
        let mut busy = vec![vec![0u64; words]; code.len() + 1];
        let mut changed = code.iter().any(|inst| works_on(inst).is_some());
        while changed {
            changed = false;
            for (pc, inst) in code.iter().enumerate() {
                now.copy_from_slice(&busy[pc]);
                match works_on(inst).as_deref() {
                    Some([]) => now.fill(0),
                    Some(regs) => {
                        regs.iter().flat_map(numbers).for_each(|n| now[n / 64] |= written[n / 64] & 1 << (n % 64))
                    }
                    None => {}
                }
                for &to in &next[pc] {
                    for (known, &more) in busy[to].iter_mut().zip(&now) {
                        changed |= more & !*known != 0;
                        *known |= more;
                    }
                }
            }
        }
        for (alive, busy) in alive.iter_mut().zip(&busy) {
            alive.iter_mut().zip(busy).for_each(|(a, b)| *a |= b);
        }
    }
    alive
}

/// A place for each register, and how many there are: registers share one if the spans in which they are needed do not touch.
fn places(spans: &[Option<(usize, usize)>], own: &[bool]) -> (Vec<u16>, u16) {
    let mut list = vec![0; spans.len()];
    let mut count = 0u16;
    let mut fresh = || {
        count += 1;
        count - 1
    };
    for (place, _) in list.iter_mut().zip(own).filter(|(_, own)| **own) {
        *place = fresh();
    }
    let mut order: Vec<(usize, usize, usize)> =
        (0..spans.len()).filter(|&n| !own[n]).filter_map(|n| spans[n].map(|(first, last)| (first, last, n))).collect();
    order.sort_unstable();
    // Of the free places the one that was needed last, which is still in a cache.
    let mut busy: BTreeSet<(usize, u16)> = BTreeSet::new();
    for (first, last, n) in order {
        let place = match busy.range(..(first, 0)).next_back().copied() {
            Some(free) => {
                busy.remove(&free);
                free.1
            }
            None => fresh(),
        };
        list[n] = place;
        busy.insert((last, place));
    }
    (list, count)
}

#[cfg(test)]
mod tests {
    use super::places;

    #[test]
    fn spans_that_touch_do_not_share_a_place() {
        let spans = [Some((0, 4)), Some((4, 6)), Some((5, 9)), Some((7, 7)), None, Some((0, 9))];
        let (list, count) = places(&spans, &[false, false, false, false, false, true]);
        assert_eq!(count, 3, "{list:?}");
        assert_ne!(list[0], list[1]);
        assert_eq!(list[0], list[2], "5 to 9 begins after 4");
        assert_eq!(list[1], list[3]);
        assert!(!list[..4].contains(&list[5]), "it has a place of its own");
    }
}
