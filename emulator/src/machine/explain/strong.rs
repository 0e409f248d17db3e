//! Races in which an access is strong (`.relaxed`, `.acquire`, `.release`, `.volatile`, an atomic operation): the other one is plain, or a scope does
//! not include the other thread.

use super::copy::Cure;
use crate::diagnostic::{Label, Meaning};
use crate::machine::cluster::Cluster;
use crate::machine::state::Race;
use crate::order::{Stamp, Strength};
use crate::program::atomic::{Scope, Sync};
use crate::program::op::{FenceWays, Op, Space};

const SCOPE_RULE: &str = "Strong accesses of two threads do not race where the scope of each includes the other thread; a release and an acquire order \
                          other accesses under the same condition: .cta takes in the threads of one CTA, .cluster those of one cluster \
                          (PTX ISA 8.5, 8.6, 8.8).";

pub const PLAIN_RULE: &str = "Two accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them or \
                          both are strong: .relaxed, .acquire, .release, .volatile or an atomic operation (PTX ISA 8.4, 8.6, 8.7.1).";

impl Cluster<'_> {
    /// Of two accesses by threads, one is plain and the other is not: which, and what it should be if its location is a flag.
    pub fn plain_beside_a_strong_one(&self, race: &Race) -> Option<(Label, String)> {
        let (first, second) = (race.conflict.first, race.second);
        let (plain, writes) = match (first.strength, second.strength) {
            _ if first.asynchronous || second.asynchronous => return None,
            (Strength::Weak, Strength::Weak) => return None,
            (Strength::Weak, _) => (first, race.conflict.first_writes),
            (_, Strength::Weak) => (second, race.conflict.second_writes),
            _ => return None,
        };
        let instead = if writes { "st.release" } else { "ld.acquire" };
        let help = format!(
            "If this location tells threads of something while they run (a flag, a lock, a counter), access it with {instead}{} here.",
            name(self.scope_of_both(first, second))
        );
        Some((self.label(plain.site, "this access is plain, the other one is not"), help))
    }

    /// What is missing between two accesses by threads; `None`: it has nothing to do with their strength.
    pub fn cure_of_strength(&self, race: &Race) -> Option<Cure> {
        let (label, help) = self.plain_beside_a_strong_one(race)?;
        Some(Cure {
            rule: PLAIN_RULE,
            help: help + " If it is data, put synchronisation between the two.",
            labels: vec![label],
        })
    }

    /// Two plain accesses by threads, of which one reads again and again until what it finds changes.
    pub fn cure_of_a_plain_flag(&self, race: &Race) -> Option<Cure> {
        let (first, second) = (race.conflict.first, race.second);
        let plain = |stamp: Stamp| !stamp.asynchronous && stamp.strength == Strength::Weak;
        let of_one = race.conflict.first_writes != race.conflict.second_writes;
        let (set, seen) = if race.conflict.first_writes { (first, second) } else { (second, first) };
        if !plain(first) || !plain(second) || !of_one || !self.is_asked_again(seen.site) {
            return None;
        }
        let scope = name(self.scope_of_both(first, second));
        Some(Cure {
            rule: PLAIN_RULE,
            help: format!(
                "Set the flag with st.release{scope}, behind what it tells of, and read it with ld.acquire{scope}; plain accesses tell nothing, and the \
                 compiler may take a plain load out of the loop."
            ),
            labels: vec![
                self.label(set.site, "this sets a flag by a plain store").that_means(Meaning::Flag),
                self.label(seen.site, "this plain load is repeated until it finds another value"),
            ],
        })
    }

    /// A load in a loop in which nothing happens but that it is made again, from the same place.
    fn is_asked_again(&self, site: u32) -> bool {
        let code = &self.kernel.code;
        let loads = |at: &usize| code[*at].site == site && matches!(code[*at].op, Op::Load(_));
        let ends = |at: usize| {
            (at..code.len())
                .filter(move |&end| matches!(code[end].op, Op::Branch { target, .. } if target as usize <= at))
        };
        let is_idle = |at: usize, end: usize| {
            let Op::Branch { target, .. } = code[end].op else { return false };
            let mut around = code[target as usize..=end].iter();
            code[end].facts.guarded
                && around.all(|inst| {
                    (!inst.facts.visible || inst.site == site)
                        && inst.defs.iter().all(|reg| !code[at].uses.contains(reg))
                })
        };
        (0..code.len()).filter(loads).any(|at| ends(at).next().is_some_and(|end| is_idle(at, end)))
    }

    /// Two strong accesses by threads, of which one is for too few.
    pub fn cure_of_scope(&self, race: &Race) -> Option<Cure> {
        let (first, second) = (race.conflict.first, race.second);
        let wide = self.scope_of_both(first, second);
        if first.asynchronous || second.asynchronous || [first, second].iter().any(|a| a.strength == Strength::Weak) {
            return None;
        }
        let narrow = [first, second].into_iter().filter_map(|access| Some((access.site, scope(access.strength)?)));
        let mut labels: Vec<Label> = narrow
            .filter(|&(_, scope)| scope < wide)
            .map(|(site, scope)| self.narrow_label(site, scope, wide).that_means(Meaning::Flag))
            .collect();
        labels.dedup_by(|a, b| a.place == b.place);
        (!labels.is_empty()).then(|| Cure {
            rule: SCOPE_RULE,
            help: format!("Give both accesses the scope {}, or a wider one.", name(wide)),
            labels,
        })
    }

    /// Releases and acquires of the kernel, and fences, whose scope does not take in the other one of these two threads: between them they tell
    /// nothing. First what is behind the first access, then what is in front of the second one.
    pub fn cure_of_narrow_flags(&self, first: Stamp, second: Stamp, shared: bool) -> Option<Cure> {
        let wide = self.scope_of_both(first, second);
        let there = |space| match space {
            Space::Generic => true,
            Space::Shared | Space::SharedCluster => shared,
            _ => !shared,
        };
        let narrow = |sync: Sync, release: bool| {
            (sync.scope < wide && if release { sync.release } else { sync.acquire }).then_some(sync.scope)
        };
        let found = |op: &Op, release: bool| match op {
            Op::Load(load) if there(load.space) => narrow(load.sync?, release),
            Op::Store(store) if there(store.space) => narrow(store.sync?, release),
            Op::Atomic(atomic) if there(atomic.space) => narrow(atomic.sync, release),
            Op::Fence { scope, ways } => {
                let (acquire, releases) = (*ways != FenceWays::Release, *ways != FenceWays::Acquire);
                narrow(Sync { scope: *scope, acquire, release: releases }, release)
            }
            _ => None,
        };
        let sites = |release: bool| {
            let code = self.kernel.code.iter();
            code.filter_map(move |inst| Some((inst.site, found(&inst.op, release)?)))
        };
        let told = sites(true).find(|&(site, _)| site > first.site);
        let heard = sites(false).rfind(|heard| heard.0 < second.site && told != Some(*heard));
        let labels: Vec<Label> =
            told.into_iter().chain(heard).map(|(site, scope)| self.narrow_label(site, scope, wide)).collect();
        (!labels.is_empty()).then(|| Cure {
            rule: SCOPE_RULE,
            help: format!(
                "Give what tells of the first access, and what hears of it, the scope {}, or a wider one.",
                name(wide)
            ),
            labels,
        })
    }

    fn narrow_label(&self, site: u32, scope: Scope, wide: Scope) -> Label {
        let whom = if wide == Scope::Gpu && self.ctas.len() > 1 { "another cluster" } else { "another CTA" };
        self.label(site, format!("at {} scope, this includes no thread of {whom}", name(scope)))
    }

    /// The scope that takes in both threads.
    fn scope_of_both(&self, first: Stamp, second: Stamp) -> Scope {
        match () {
            _ if first.cluster != second.cluster => Scope::Gpu,
            _ if self.apart(first, second) => Scope::Cluster,
            _ => Scope::Cta,
        }
    }
}

/// Of a strong access.
fn scope(strength: Strength) -> Option<Scope> {
    match strength {
        Strength::Weak => None,
        Strength::Cta(_) => Some(Scope::Cta),
        Strength::Cluster => Some(Scope::Cluster),
        Strength::Gpu => Some(Scope::Gpu),
    }
}

fn name(scope: Scope) -> &'static str {
    match scope {
        Scope::Cta => ".cta",
        Scope::Cluster => ".cluster",
        Scope::Gpu => ".gpu",
    }
}
