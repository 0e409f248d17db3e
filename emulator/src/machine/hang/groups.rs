//! Mbarriers in groups: a ring is addressed by its beginning and an index. Where each statement's group begins tells which statements may
//! arrive at an mbarrier, also those that have not been executed. A hint: a register is taken to hold what was last written to it.

use crate::machine::cluster::Cluster;
use crate::program::flow::writers::Writers;
use crate::program::op::{Address, Alu, Inst, L32, Op, Reg};
use rustc_hash::FxHashMap;

/// Of each statement that waits for an mbarrier or arrives at one: its place in the code, and where its group begins, if that is known.
#[derive(Debug, Default)]
pub struct Groups(Vec<(usize, Option<i64>)>);

/// So many instructions on the way to an address are looked at.
const DEEP: u32 = 6;

fn waits(op: &Op) -> bool {
    matches!(op, Op::BarrierWait { .. })
}

fn arrives(op: &Op) -> bool {
    matches!(op, Op::Commit { .. } | Op::BarrierArrive { .. } | Op::AsyncArrive { .. })
}

/// The mbarrier that a statement names.
fn address_of(op: &Op) -> Option<&Address> {
    match op {
        Op::BarrierWait { address, .. }
        | Op::Commit { address, .. }
        | Op::BarrierArrive { address, .. }
        | Op::AsyncArrive { address, .. }
        | Op::BarrierExpect { address, .. } => Some(address),
        _ => None,
    }
}

impl Groups {
    /// Where the group of an mbarrier begins: at the last beginning that is not behind it.
    fn of(&self, offset: u32) -> Option<i64> {
        self.0.iter().filter_map(|(_, begins)| *begins).filter(|&begins| begins <= offset.into()).max()
    }
}

/// What registers hold where all that is not known is zero. Each statement is looked at once for each depth: a kernel that is written out has
/// thousands of mbarrier statements, whose addresses begin at its top.
struct Guess<'a> {
    code: &'a [Inst],
    constants: FxHashMap<Reg, u32>,
    writers: &'a Writers,
    /// What was found, by the statement and the depth that was left.
    found: FxHashMap<(usize, u32), (u32, bool)>,
}

impl<'a> Guess<'a> {
    fn new(code: &'a [Inst], constants: &[(u16, u32)], writers: &'a Writers) -> Guess<'a> {
        let constants = constants.iter().map(|&(reg, value)| (Reg::B32(reg), value)).collect();
        Guess { code, constants, writers, found: FxHashMap::default() }
    }

    /// Where the group of a statement's mbarriers begins: its address, if all that is not known of it is zero.
    fn begins_at(&mut self, at: usize, address: &Address) -> Option<i64> {
        if address.base == Reg::Sink {
            return Some(address.offset);
        }
        let (value, shared) = self.value(at, address.base, DEEP);
        shared.then_some(address.offset + i64::from(value))
    }

    /// The value of a register, and whether it is an address in shared memory.
    fn value(&mut self, at: usize, reg: Reg, deep: u32) -> (u32, bool) {
        if let Some(&value) = self.constants.get(&reg) {
            return (value, false);
        }
        let from = if deep > 0 { self.writers.last(at, reg) } else { None };
        let Some(from) = from else { return (0, false) };
        if let Some(&known) = self.found.get(&(from, deep)) {
            return known;
        }
        let value = self.written_by(from, deep - 1);
        self.found.insert((from, deep), value);
        value
    }

    fn written_by(&mut self, from: usize, deep: u32) -> (u32, bool) {
        let code = self.code;
        let mut of = |reg: Reg| self.value(from, reg, deep);
        match &code[from].op {
            Op::SharedAddress { offset, .. } => (*offset, true),
            Op::MapAddress { s, .. } | Op::Cvta { s, .. } | Op::Convert { s, .. } => of(*s),
            // An address that all lanes have alike, as a compiler shows it.
            Op::Shuffle { a, .. } => of(Reg::B32(*a)),
            Op::Alu { f: Alu::Widen(_), s: [a, ..], .. } => of(Reg::B32(*a)),
            Op::Alu { f: Alu::Narrow(_), s: [a, ..], .. } => of(Reg::B64(*a)),
            Op::Alu { f, s, .. } => {
                let [a, b, c] = s.map(Reg::B32);
                let mut d: L32 = [0; 32];
                let line = |value: u32| -> L32 { [value; 32] };
                let shared = match f {
                    Alu::U32(f) => {
                        let a = of(a);
                        f(&mut d, &line(a.0));
                        a.1
                    }
                    Alu::B32(f) => {
                        let (a, b) = (of(a), of(b));
                        f(&mut d, &line(a.0), &line(b.0));
                        a.1 || b.1
                    }
                    Alu::T32(f) => {
                        let (a, b, c) = (of(a), of(b), of(c));
                        f(&mut d, &line(a.0), &line(b.0), &line(c.0));
                        a.1 || b.1 || c.1
                    }
                    _ => false,
                };
                (d[0], shared)
            }
            _ => (0, false),
        }
    }
}

impl Cluster<'_> {
    /// What writes each register: once it is asked for.
    fn groups(&self) -> &Groups {
        self.groups.get_or_init(|| {
            let mut guess = Guess::new(&self.kernel.code, &self.kernel.constants32, self.kernel.writers());
            let code = self.kernel.code.iter().enumerate();
            let all = code.filter_map(|(at, inst)| Some((at, guess.begins_at(at, address_of(&inst.op)?))));
            Groups(all.collect())
        })
    }

    /// The statements that may arrive at an mbarrier, whatever their index is: those of its group, and those of which nothing is known.
    pub fn may_arrive(&self, offset: u32) -> Vec<u32> {
        self.of_group(offset, arrives)
    }

    /// The statements that arrive at mbarriers by an index which may lead to this one, from one in front of it: none lies between at which another
    /// statement's index begins.
    pub fn may_come_to(&self, offset: u32) -> Vec<u32> {
        let code: &[Inst] = &self.kernel.code;
        let by_index = |at: usize| address_of(&code[at].op).is_some_and(|address| self.named(at, address).is_none());
        let indexed = || self.groups().0.iter().filter(|&&(at, _)| by_index(at));
        let last = indexed().filter_map(|(_, begins)| *begins).filter(|&begins| begins <= i64::from(offset)).max();
        let all = indexed().filter(|&&(at, begins)| arrives(&code[at].op) && (begins.is_none() || begins == last));
        all.map(|&(at, _)| code[at].site).collect()
    }

    /// Whether a statement announces bytes of this mbarrier, or may.
    pub fn may_be_announced(&self, offset: u32) -> bool {
        !self.of_group(offset, Op::announces).is_empty()
    }

    /// Whether a statement waits for mbarriers of the group of this one, or may.
    pub fn may_be_awaited(&self, offset: u32) -> bool {
        !self.of_group(offset, waits).is_empty()
    }

    /// Of those, the ones that are known to be of its group.
    pub fn sure_to_arrive(&self, offset: u32) -> Vec<u32> {
        let groups = self.groups();
        let Some(group) = groups.of(offset) else { return Vec::new() };
        let code: &[Inst] = &self.kernel.code;
        let arrives = |at: usize| matches!(code[at].op, Op::Commit { .. } | Op::BarrierArrive { .. });
        let all = groups.0.iter().filter(|&&(at, begins)| begins == Some(group) && arrives(at));
        all.map(|&(at, _)| code[at].site).collect()
    }

    fn of_group(&self, offset: u32, does: impl Fn(&Op) -> bool) -> Vec<u32> {
        let groups = self.groups();
        let group = groups.of(offset);
        let code: &[Inst] = &self.kernel.code;
        let same = |begins: Option<i64>| begins.is_none_or(|begins| group.is_none_or(|group| group == begins));
        let all = groups.0.iter().filter(|(at, begins)| does(&code[*at].op) && same(*begins));
        all.map(|(at, _)| code[*at].site).collect()
    }
}
