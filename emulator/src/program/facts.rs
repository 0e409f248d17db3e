//! What the interpreter asks of an instruction each time it executes it: decided once, when the kernel is loaded.

use super::atomic::Scope;
use super::op::{Inst, Op, Reg, Space, TRUE};
use crate::program::arithmetic::bits::Bits;
use rustc_hash::FxHashSet;
use std::collections::VecDeque;

/// The answers.
#[derive(Debug, Default)]
pub struct Facts {
    /// Other warps and engines can tell when it is executed.
    pub visible: bool,
    /// Stores before it are complete when it is executed.
    pub orders_memory: bool,
    /// Computes registers from registers.
    pub plain: bool,
    /// … needs to know nothing else, and touches no `fragments`.
    pub alone: bool,
    /// It reads or writes a register that a `wgmma.mma_async` has A or D in.
    pub fragments: bool,
    /// A wait that comes back to itself where it does not pass, with nothing in between that others see: it asks until it passes.
    pub spins: bool,
    /// A wait whose result nothing reads: whether it passed or its time ran out, the lanes go on. Or an atomic operation: what it found
    /// there steers nothing.
    pub unread: bool,
    /// It has a guard that is not always true.
    pub guarded: bool,
    /// How its result is made of the bits of its sources.
    pub bits: Bits,
    /// It reads and writes no more registers than these: their [`number`]s, or again that of [`TRUE`].
    pub few: bool,
    pub reads: [u16; 4],
    pub writes: [u16; 2],
    /// A bit for each register read or written, see [`bit`]: several registers share one.
    pub touched: u64,
}

/// The registers of a kernel counted through: 32-bit ones first, then 64-bit ones (128-bit ones as their low half), predicates,
/// and `_`.
pub fn number(reg: Reg, (n32, n64, preds): (u16, u16, u16)) -> u32 {
    let (first64, first_pred) = (u32::from(n32), u32::from(n32) + u32::from(n64));
    match reg {
        Reg::B32(r) => r.into(),
        Reg::B64(r) | Reg::B128(r) => first64 + u32::from(r),
        Reg::Pred(r) => first_pred + u32::from(r),
        Reg::Sink => first_pred + u32::from(preds),
    }
}

/// A register's bit in a set that tells few registers apart.
pub fn bit(number: u32) -> u64 {
    1 << (number % 64)
}

/// The numbers of registers and of their halves, then this one, if there is room.
fn places<const N: usize>(regs: &[Reg], registers: (u16, u16, u16), rest: u32) -> Option<[u16; N]> {
    let mut places = [rest.try_into().ok()?; N];
    let halves = |&reg: &Reg| {
        let first = number(reg, registers);
        let count = match reg {
            Reg::Sink => 0,
            Reg::B128(_) => 2,
            _ => 1,
        };
        first..first + count
    };
    for (n, number) in regs.iter().flat_map(halves).enumerate() {
        *places.get_mut(n)? = number.try_into().ok()?;
    }
    Some(places)
}

impl Inst {
    /// Decides all of it, for a kernel with this many registers of 32 bits, of 64 bits and predicates; `text`: how it is written.
    pub fn decide(&mut self, registers: (u16, u16, u16), text: &str) {
        let touched = self.uses.iter().chain(&self.defs).fold(0, |set, &reg| set | bit(number(reg, registers)));
        let always = number(Reg::Pred(TRUE), registers);
        let reads = places(&self.uses, registers, always);
        let writes = places(&self.defs, registers, always);
        self.facts = Facts {
            visible: self.op.is_visible(),
            orders_memory: self.op.orders_memory(),
            plain: self.op.is_plain(),
            alone: self.op.is_plain() && !matches!(self.op, Op::Special { .. }),
            fragments: false,
            spins: false,
            unread: false,
            guarded: self.guard != TRUE || self.guard_negated,
            bits: Bits::of(text),
            few: reads.is_some() && writes.is_some(),
            reads: reads.unwrap_or_default(),
            writes: writes.unwrap_or_default(),
            touched,
        };
    }
}

/// Finds the instructions that touch what a `wgmma.mma_async` works on. Registers that nothing writes hold constants.
pub fn mark_fragments(code: &mut [Inst], constants: &[(u16, u32)]) {
    let mmas = code.iter().filter_map(|inst| if let Op::Wgmma(op) = &inst.op { Some(op) } else { None });
    let mut fragments: FxHashSet<u16> = mmas.flat_map(|op| op.fragments()).collect();
    constants.iter().for_each(|(constant, _)| _ = fragments.remove(constant));
    if fragments.is_empty() {
        return;
    }
    for inst in code.iter_mut().filter(|inst| !matches!(inst.op, Op::Wgmma(_))) {
        let mut registers = inst.uses.iter().chain(&inst.defs);
        inst.facts.fragments = registers.any(|reg| matches!(reg, Reg::B32(r) if fragments.contains(r)));
        inst.facts.alone &= !inst.facts.fragments;
    }
}

/// From behind an instruction on to the next that is found, by a thread of which is known which guards hold: so many instructions at least.
pub fn leads(code: &[Inst], from: usize, decided: &[Option<bool>], found: impl Fn(&Inst) -> bool) -> Option<usize> {
    let guard = |at: usize, inst: &Inst| if inst.facts.guarded { *decided.get(at)? } else { Some(true) };
    distance(code, from, guard, |_, inst| if found(inst) { Way::Found } else { Way::On })
}

/// What an instruction means to a search along the ways of the code.
pub enum Way {
    Found,
    Ends,
    On,
}

/// Whether a way from behind an instruction leads to one that is found.
pub fn ways_lead(code: &[Inst], from: usize, test: impl Fn(usize, &Inst) -> Way) -> bool {
    let guard = |_: usize, inst: &Inst| (!inst.facts.guarded).then_some(true);
    distance(code, from, guard, test).is_some()
}

/// The length of the shortest such way, where guards hold, or do not, as far as that is known.
fn distance(
    code: &[Inst],
    from: usize,
    guard: impl Fn(usize, &Inst) -> Option<bool>,
    test: impl Fn(usize, &Inst) -> Way,
) -> Option<usize> {
    let mut seen = FxHashSet::default();
    let mut next = VecDeque::from([(from + 1, 1)]);
    while let Some((at, length)) = next.pop_front() {
        let Some(inst) = code.get(at).filter(|_| seen.insert(at)) else { continue };
        let executed = guard(at, inst);
        match test(at, inst) {
            _ if executed == Some(false) => {}
            Way::Found => return Some(length),
            Way::Ends => continue,
            Way::On => {}
        }
        let mut go = |to: usize| next.push_back((to, length + 1));
        match &inst.op {
            _ if executed == Some(false) => go(at + 1),
            Op::Branch { target, .. } => {
                go(*target as usize);
                if executed.is_none() {
                    go(at + 1);
                }
            }
            Op::BranchTable { targets, .. } => {
                targets.iter().for_each(|&target| go(target as usize));
                if executed.is_none() {
                    go(at + 1);
                }
            }
            Op::Exit | Op::Trap(_) if executed == Some(true) => {}
            _ => go(at + 1),
        }
    }
    None
}

/// Whether a `tcgen05.st` stores to half of the lanes that its warp reaches.
pub fn stores_to_halves(code: &[Inst]) -> bool {
    code.iter().any(|inst| matches!(&inst.op, Op::TensorStore { shape, .. } if shape.size().0 < 32))
}

/// Whether what a strong load finds in shared memory may depend on time: where nothing but plain stores and engines write there, any that it is not
/// ordered with is a race.
pub fn has_shared_flags(code: &[Inst]) -> bool {
    let shared = |space| matches!(space, Space::Shared | Space::SharedCluster | Space::Generic);
    code.iter().any(|inst| match &inst.op {
        Op::Store(op) => op.sync.is_some() && shared(op.space),
        Op::Atomic(op) => shared(op.space),
        Op::AsyncStore(op) => op.update.is_some(),
        _ => false,
    })
}

/// Whether a thread may read what another CTA of the cluster has stored, behind an mbarrier that CTAs arrive at from outside, where some
/// scope is that of the CTA: most kernels have no such reads, and to look at scopes costs time.
pub fn needs_scopes(code: &[Inst]) -> bool {
    let any = |test: fn(&Op) -> bool| code.iter().any(|inst| test(&inst.op));
    let arrives = any(|op| matches!(op, Op::BarrierArrive { remote: true, .. }));
    let narrow = any(|op| {
        matches!(
            op,
            Op::BarrierArrive { remote: true, wide: false, .. }
                | Op::BarrierWait { wide: false, .. }
                | Op::Fence { scope: Scope::Cta, .. }
        )
    });
    let stores = |test: fn(Space) -> bool| {
        code.iter().any(|inst| match &inst.op {
            Op::Store(op) => test(op.space),
            Op::Atomic(op) => test(op.space),
            _ => false,
        })
    };
    let loads = |test: fn(Space) -> bool| {
        code.iter().any(|inst| matches!(&inst.op, Op::Load(op) if test(op.space) && !op.non_coherent))
    };
    let remote = |space| matches!(space, Space::SharedCluster | Space::Generic);
    let global = |space| matches!(space, Space::Global | Space::Generic);
    let shared = loads(|space| space == Space::Shared) || any(|op| matches!(op, Op::MatrixLoad { .. }));
    let through_shared = loads(remote) || stores(remote) && shared;
    let through_global = stores(global) && (loads(global) || any(|op| matches!(op, Op::AsyncCopy { .. })));
    arrives && narrow && (through_shared || through_global)
}

impl Op {
    /// Whether it announces bytes of copies to an mbarrier.
    pub fn announces(&self) -> bool {
        match self {
            Op::BarrierArrive { expect, .. } => expect.is_some(),
            Op::BarrierExpect { complete, .. } => !complete,
            _ => false,
        }
    }

    /// Stores before it are complete, or known to be, when it is executed.
    fn orders_memory(&self) -> bool {
        matches!(
            self,
            Op::CtaBarrier { .. }
                | Op::BarrierReduce { .. }
                | Op::WarpSync { .. }
                | Op::ProxyFence { .. }
                | Op::Fence { .. }
                | Op::Atomic(_)
                | Op::BarrierArrive { .. }
                | Op::ClusterArrive { .. }
                | Op::Tma(_)
                | Op::AsyncStore(_)
                | Op::MapReplace { .. }
                | Op::MapPublish { .. }
                | Op::MapRelease { .. }
                | Op::Mma(_)
                | Op::TensorCopy(_)
                | Op::Wgmma(_)
                | Op::Exit
        )
    }

    /// Lanes of a warp tell each other something.
    pub fn exchanges(&self) -> bool {
        matches!(self, Op::Elect { .. } | Op::Shuffle { .. } | Op::Vote { .. } | Op::Reduce { .. } | Op::Match { .. })
    }

    /// A barrier at which lanes tell others what they have done, or an arrival at one.
    pub fn tells(&self) -> bool {
        matches!(
            self,
            Op::WarpSync { .. }
                | Op::CtaBarrier { .. }
                | Op::BarrierReduce { .. }
                | Op::BarrierArrive { .. }
                | Op::ClusterArrive { .. }
        )
    }

    /// All lanes of a warp execute it together, or those that a mask names.
    pub fn is_for_warps(&self) -> bool {
        match self {
            Op::CtaBarrier { aligned, .. }
            | Op::BarrierReduce { aligned, .. }
            | Op::ClusterArrive { aligned, .. }
            | Op::ClusterWait { aligned } => *aligned,
            Op::WarpSync { .. }
            | Op::SetRegisters { .. }
            | Op::TensorAlloc { .. }
            | Op::TensorFree { .. }
            | Op::TensorRelinquish
            | Op::TensorLoad { .. }
            | Op::TensorStore { .. }
            | Op::TensorWait { .. }
            | Op::MatrixLoad { .. }
            | Op::MatrixStore { .. }
            | Op::WarpMma(_)
            | Op::MoveMatrix { .. }
            | Op::MapPublish { .. }
            | Op::Wgmma(_)
            | Op::WgmmaFence
            | Op::WgmmaCommit
            | Op::WgmmaWait { .. } => true,
            _ => self.exchanges(),
        }
    }

    /// It computes registers from registers, and does nothing else.
    fn is_plain(&self) -> bool {
        matches!(
            self,
            Op::Alu { .. }
                | Op::Lop3 { .. }
                | Op::Insert { .. }
                | Op::Convert { .. }
                | Op::Setp { .. }
                | Op::Pred { .. }
                | Op::Select32 { .. }
                | Op::Select64 { .. }
                | Op::Repack { .. }
                | Op::Special { .. }
                | Op::SharedAddress { .. }
                | Op::Cvta { .. }
                | Op::MapAddress { .. }
                | Op::AddressRank { .. }
                | Op::ActiveMask { .. }
        )
    }

    /// Other warps and engines can tell when this is executed: the scheduler runs it in the order of the simulated clock.
    fn is_visible(&self) -> bool {
        matches!(
            self,
            Op::CtaBarrier { .. }
                | Op::BarrierReduce { .. }
                | Op::BarrierInit { .. }
                | Op::BarrierInval { .. }
                | Op::BarrierArrive { .. }
                | Op::BarrierExpect { .. }
                | Op::BarrierWait { .. }
                | Op::TensorAlloc { .. }
                | Op::TensorFree { .. }
                | Op::TensorLoad { .. }
                | Op::TensorStore { .. }
                | Op::Mma(_)
                | Op::TensorCopy(_)
                | Op::Wgmma(_)
                | Op::WgmmaWait { .. }
                | Op::SetRegisters { .. }
                | Op::ClusterArrive { .. }
                | Op::ClusterWait { .. }
                | Op::AsyncCopy { .. }
                | Op::AsyncCommit
                | Op::AsyncArrive { .. }
                | Op::AsyncWait { .. }
                | Op::MatrixLoad { .. }
                | Op::MatrixStore { .. }
                | Op::MapReplace { .. }
                | Op::MapPublish { .. }
                | Op::MapAcquire { .. }
                | Op::Discard { .. }
                | Op::AsyncStore(_)
                | Op::Fill { .. }
                | Op::TryCancel { .. }
                | Op::Tma(_)
                | Op::BulkCommit
                | Op::BulkWait { .. }
                | Op::Commit { .. }
                | Op::Load(_)
                | Op::Store(_)
                | Op::Atomic(_)
        )
    }
}
