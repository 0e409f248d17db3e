//! Flags in global memory by which one thread speaks for its CTA: of what the other warps do it tells, and they hear of it, only by a CTA barrier.

use super::cluster::Cluster;
use super::explain_copy::Cure;
use crate::order::Stamp;
use crate::program::facts::{Way, ways_lead};
use crate::program::op::{Op, Space};

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
}
