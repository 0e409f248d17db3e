//! Flags in global memory by which one thread speaks for its CTA: of what the other warps do it tells, and they hear of it, only by a CTA barrier.

use super::copy::Cure;
use crate::diagnostic::{Label, Meaning};
use crate::machine::cluster::Cluster;
use crate::order::Stamp;
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{FenceWays, Op, Space};
use crate::program::opcode;

const RULE: &str = "A release tells of what its own thread has done, and of what that has learnt by synchronisation; an acquire tells its own thread. For the other \
                    threads of the CTAs it takes a CTA barrier: in front of the release, and behind the acquire (PTX ISA 8.8, 8.9.5, 9.7.13.1).";

fn in_global(space: Space) -> bool {
    matches!(space, Space::Global | Space::Generic)
}

/// How an access of a flag tells what came before it, or of what it hears: by itself, or with a fence beside it; `None`: not at all.
fn tells(op: &Op) -> Option<bool> {
    match op {
        Op::Store(store) if in_global(store.space) => store.sync.map(|sync| sync.release),
        Op::Atomic(atomic) if in_global(atomic.space) => Some(atomic.sync.release),
        _ => None,
    }
}

fn hears(op: &Op) -> Option<bool> {
    match op {
        Op::Load(load) if in_global(load.space) => load.sync.map(|sync| sync.acquire),
        Op::Atomic(atomic) if in_global(atomic.space) && atomic.d.is_some() => Some(atomic.sync.acquire),
        _ => None,
    }
}

impl Cluster<'_> {
    /// Between an access and the flag that some of the threads set behind it, or between such a flag's reader and the access that relies on it, a way leads
    /// that passes no CTA barrier.
    pub fn cure_of_a_lonely_flag(&self, first: Stamp, second: Stamp) -> Option<Cure> {
        let one_warp = self.launch.block.iter().product::<u32>() <= 32;
        if one_warp {
            return None;
        }
        let code = &self.kernel.code;
        let skipped = |at: usize| {
            let over = |op: &Op| matches!(op, Op::Branch { target, .. } if *target as usize > at);
            code[at].facts.guarded || code[..at].iter().any(|inst| inst.facts.guarded && over(&inst.op))
        };
        let fences: Vec<usize> = (0..code.len()).filter(|&at| matches!(code[at].op, Op::Fence { .. })).collect();
        let by_some = |does: fn(&Op) -> Option<bool>, fenced: &dyn Fn(usize) -> bool| {
            let counts = |at: usize| does(&code[at].op).is_some_and(|alone| alone || fenced(at));
            let others = (0..code.len()).filter(|&at| ![first.site, second.site].contains(&code[at].site));
            others.filter(|&at| skipped(at) && counts(at)).collect::<Vec<usize>>()
        };
        let straight = |from: usize, to: usize| self.leads_straight(code[from].site, code[to].site);
        let told = by_some(tells, &|at| fences.iter().any(|&fence| straight(fence, at)));
        let heard = by_some(hears, &|at| fences.iter().any(|&fence| straight(at, fence)));
        if told.is_empty() || heard.is_empty() {
            return None;
        }
        let way = |from: usize, to: &dyn Fn(usize) -> bool| {
            ways_lead(code, from, |at, inst| match inst.op {
                _ if to(at) => Way::Found,
                Op::CtaBarrier { .. } | Op::BarrierReduce { .. } => Way::Ends,
                _ => Way::On,
            })
        };
        let accesses = |site: u32| (0..code.len()).filter(move |&at| code[at].site == site);
        if let Some(&at) = told.iter().find(|&&flag| accesses(first.site).any(|from| way(from, &|at| at == flag))) {
            let text =
                "this tells other CTAs of what its own thread knows: no CTA barrier stands between the write and this";
            return Some(Cure {
                labels: vec![self.label(code[at].site, text)],
                ..Cure::new(
                    RULE,
                    "Put a CTA barrier (bar.sync) in front of what tells other CTAs, behind the accesses of all warps of which it tells.",
                )
            });
        }
        let &at = heard.iter().rev().find(|&&flag| way(flag, &|at| code[at].site == second.site))?;
        let text = "this hears of other CTAs for its own thread: no CTA barrier stands between this and the access that relies on it";
        Some(Cure {
            labels: vec![self.label(code[at].site, text)],
            ..Cure::new(
                RULE,
                "Put a CTA barrier (bar.sync) behind what hears of other CTAs, in front of the accesses of all warps that rely on it.",
            )
        })
    }

    /// Threads of different CTAs that speak through a flag: the accesses of the kernel that look like it, and order nothing.
    pub fn relaxed_flags(&self, first: Stamp, second: Stamp, shared: bool) -> Vec<Label> {
        let there = |space| match space {
            Space::Generic => true,
            Space::Shared | Space::SharedCluster => shared,
            _ => !shared,
        };
        let relaxed = |op: &Op| match op {
            Op::Load(load) if there(load.space) => load.sync.is_some_and(|s| !s.acquire).then_some("acquire"),
            Op::Store(store) if there(store.space) => store.sync.is_some_and(|s| !s.release).then_some("release"),
            Op::Atomic(atomic) if there(atomic.space) => match (atomic.sync.release, atomic.sync.acquire) {
                (false, false) => Some("acq_rel"),
                (false, true) => Some("release"),
                // One without a result learns nothing.
                (true, false) if atomic.d.is_some() => Some("acquire"),
                _ => None,
            },
            _ => None,
        };
        // What accesses the data is no flag, nor is another access of the same form.
        let opcode = |site| opcode(&self.place(site).text).to_string();
        let data = [first, second].map(|access| opcode(access.site));
        let sites = |wanted: &'static str| {
            let code = self.kernel.code.iter();
            let fits =
                code.filter(move |i| relaxed(&i.op).is_some_and(|w| w == wanted || w == "acq_rel")).map(|i| i.site);
            fits.filter(|&site| !data.contains(&opcode(site))).collect::<Vec<u32>>()
        };
        // With a fence beside it, a relaxed access orders others.
        let fence = |way: FenceWays, between: std::ops::Range<u32>| {
            let fences = |op: &Op| matches!(op, Op::Fence { ways, .. } if [way, FenceWays::Both].contains(ways));
            self.kernel.code.iter().any(|inst| between.contains(&inst.site) && fences(&inst.op))
        };
        let behind = |site: u32| site > first.site && self.comes_behind(site, first.site);
        let in_front = |site: u32| site < second.site && self.comes_behind(second.site, site);
        let set = sites("release").into_iter().find(|&site| behind(site));
        let set = set.filter(|&site| !fence(FenceWays::Release, first.site..site));
        let seen = sites("acquire").into_iter().rfind(|&site| in_front(site));
        let seen = seen.filter(|&site| !fence(FenceWays::Acquire, site..second.site));
        // Where one end of a flag is as it should be, what lacks at the other one is told, and of other atomic operations nothing.
        let proper = |does: fn(&Op) -> Option<bool>, lies: &dyn Fn(u32) -> bool| {
            self.kernel.code.iter().any(|inst| does(&inst.op) == Some(true) && lies(inst.site))
        };
        let (set, seen) = match (set, seen) {
            (Some(one), Some(other)) if one != other && !shared => {
                match (proper(tells, &behind), proper(hears, &in_front)) {
                    (true, false) => (None, seen),
                    (false, true) => (set, None),
                    _ => (set, seen),
                }
            }
            both => both,
        };
        let label = |site, order| {
            let text = format!("without {order}, this orders none of the accesses around it");
            self.label(site, text).that_means(Meaning::OrdersNothing)
        };
        if set.is_some() && set == seen {
            return set.into_iter().map(|site| label(site, ".release and .acquire (.acq_rel)")).collect();
        }
        set.map(|site| label(site, ".release")).into_iter().chain(seen.map(|site| label(site, ".acquire"))).collect()
    }

    /// A flag in shared memory of which one end is as it should be: a release behind the first access, or an acquire in front of the second one.
    pub fn has_half_a_flag(&self, first: Stamp, second: Stamp) -> bool {
        let here = |space| matches!(space, Space::Shared | Space::SharedCluster | Space::Generic);
        let proper = |op: &Op, release: bool| match op {
            Op::Store(store) if here(store.space) => release && store.sync.is_some_and(|sync| sync.release),
            Op::Load(load) if here(load.space) => !release && load.sync.is_some_and(|sync| sync.acquire),
            Op::Atomic(atomic) if here(atomic.space) => {
                if release {
                    atomic.sync.release
                } else {
                    atomic.sync.acquire
                }
            }
            _ => false,
        };
        let is_there = |release, lies: &dyn Fn(u32) -> bool| {
            self.kernel.code.iter().any(|inst| proper(&inst.op, release) && lies(inst.site))
        };
        is_there(true, &|site| site > first.site && self.comes_behind(site, first.site))
            || is_there(false, &|site| site < second.site && self.comes_behind(second.site, site))
    }

    /// What a warp accesses here is data, and no flag: it has looked at a flag before.
    pub fn looks_at_a_flag_before(&self, access: Stamp) -> bool {
        let flags = self.kernel.code.iter().filter(|inst| hears(&inst.op).is_some() && inst.site < access.site);
        flags.into_iter().any(|inst| self.comes_behind(access.site, inst.site))
    }
}
