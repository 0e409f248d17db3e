//! Races of what a thread copies in groups: the wait for groups that came between, and why it did not wait for this copy's.

use super::copy::Cure;
use super::names::counted;
use crate::diagnostic::Meaning;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::machine::tma::bulk::BulkGroups;
use crate::machine::warp::Warp;
use crate::order::Stamp;
use crate::program::facts::leads;
use crate::program::op::{Inst, Op, Reg};
use rustc_hash::FxHashSet;

const BULK_RULE: &str = "cp.async.bulk.wait_group N waits until at most the N newest bulk groups of its thread are pending, and a copy is in a group only \
                         behind the cp.async.bulk.commit_group that follows it (PTX ISA, cp.async.bulk.wait_group, cp.async.bulk.commit_group).";
const RULE: &str = "cp.async.wait_group N waits for groups, and a copy is in a group only behind the cp.async.commit_group that follows it (PTX ISA, \
                    cp.async.wait_group, cp.async.commit_group).";
const READ_RULE: &str = "With .read, cp.async.bulk.wait_group waits until the copies of its groups have read their sources, and not until their writes are made \
                         (PTX ISA, cp.async.bulk.wait_group).";

const HEARD_RULE: &str = "cp.async.bulk.wait_group waits for the groups of the thread that executes it; what is complete then, other threads know only by synchronisation with \
                          that one (PTX ISA, cp.async.bulk.wait_group; 8.9.5).";

/// So many groups behind a copy's are told apart, and so many states of the code are looked at.
const MOST_GROUPS: u32 = 8;
const MOST_STATES: usize = 1 << 16;

/// The latest wait of a thread for its groups.
#[derive(Clone, Copy, Debug)]
pub struct GroupWait {
    pub site: u32,
    /// So many of the newest groups may be pending behind it.
    pub pending: u32,
    /// The number of the group that was committed next.
    pub next: u32,
    /// Copies had been issued that were in no group yet.
    pub open: bool,
    /// It waits for the reading of sources only.
    pub read: bool,
}

impl Cluster<'_> {
    /// The latest wait for groups by the thread that issued a copy.
    pub fn group_wait(&self, copy: Stamp) -> Option<GroupWait> {
        match self.kind(copy)? {
            ActorKind::AsyncCopies(warp) => self.warps.get(warp as usize)?.copies_waited,
            _ => self.bulk_groups_of(copy)?.waited,
        }
    }

    fn bulk_groups_of(&self, copy: Stamp) -> Option<&BulkGroups> {
        let (ActorKind::BulkReads { warp } | ActorKind::BulkWrites { warp }) = self.kind(copy)? else { return None };
        let mut threads = self.warps.get(warp as usize)?.bulk.values();
        threads.find(|groups| [groups.reads.actor, groups.writes.actor].contains(&copy.actor))
    }

    /// Whether a warp does not even know that a copy out of shared memory was issued.
    pub fn was_issued_unheard(&self, copy: Stamp, by: &Warp) -> bool {
        let Some(ActorKind::BulkReads { warp }) = self.kind(copy) else { return false };
        let issued = self.bulk_groups_of(copy).and_then(|groups| groups.issued(copy.epoch));
        let issuer = self.warps.get(warp as usize).map(|warp| warp.actor);
        matches!((issued, issuer), (Some(epoch), Some(actor)) if actor != by.actor && !by.has_heard_of(actor, epoch))
    }

    /// How many groups the thread that issued a copy has committed behind the copy's by now.
    pub fn groups_behind(&self, copy: Stamp) -> u32 {
        let newer = match self.kind(copy) {
            Some(ActorKind::AsyncCopies(warp)) => self.warps.get(warp as usize).map(|warp| {
                let open = warp.copies_open.iter().filter(|&&epoch| epoch > copy.epoch).count() as u32;
                warp.copies.epoch.saturating_sub(copy.epoch + open)
            }),
            _ => self.bulk_groups_of(copy).map(|groups| groups.next.saturating_sub(copy.epoch + 1)),
        };
        newer.unwrap_or(0)
    }

    /// The wait that a thread lacks for the group of a copy, by its name without a number, and what it has to do for it: it may leave the groups that are
    /// committed behind that one.
    pub fn wait_for_group(race: &Race, commit: &str, wait: &str) -> (String, String) {
        match race.newer_groups {
            [_, 0] => (format!("{commit} and {wait} 0"), String::new()),
            [few, most] => {
                let groups = if most == 1 { "the group".into() } else { format!("the {most} groups") };
                let less = match few < most {
                    true => format!("; where only {few} are, as at the end of a loop, it is {wait} {few}"),
                    false => String::new(),
                };
                (format!("{wait} {most}"), format!(" It may leave {groups} committed behind the copy's{less}."))
            }
        }
    }

    /// The thread of a copy has waited for groups, and not for that of this copy.
    pub fn cure_of_a_group_wait(&self, race: &Race) -> Option<Cure> {
        let (copy, wait) = (race.conflict.first, race.group_wait?);
        let who = self.warp_name(self.issuer(copy)?);
        let bulk = !matches!(self.kind(copy), Some(ActorKind::AsyncCopies(_)));
        let writes = matches!(self.kind(copy), Some(ActorKind::BulkWrites { .. }));
        let (rule, commit) = match bulk {
            true => (BULK_RULE, "cp.async.bulk.commit_group"),
            false => (RULE, "cp.async.commit_group"),
        };
        let told = |rule, text: String, help: String| {
            Some(Cure { labels: vec![self.label(wait.site, text)], ..Cure::new(rule, help) })
        };
        // How many groups from the newest one on have to be counted to come to the copy's.
        let from_newest = wait.next.saturating_sub(copy.epoch);
        match from_newest {
            0 if copy.epoch == wait.next && self.leads_past_no_commit(copy.site, wait.site) => told(
                rule,
                "the copy is in no group yet where this waits: it is committed only behind this".into(),
                format!("Execute {commit} behind the copy and in front of this wait: a wait is for groups only."),
            ),
            // Of cp.async, the code says which groups are left.
            _ if !bulk || from_newest == 0 => None,
            n if n > wait.pending => (writes && wait.read).then(|| Cure {
                labels: vec![
                    self.label(wait.site, format!("{who} waits here only until the copy has read its source")),
                ],
                ..Cure::new(READ_RULE, "Execute cp.async.bulk.wait_group without .read before the result is used.")
            }),
            n => {
                let newest =
                    if wait.pending == 1 { "newest group".into() } else { format!("{} newest groups", wait.pending) };
                let which = match n {
                    1 if wait.pending == 1 => "it".to_string(),
                    1 => "the newest of them".to_string(),
                    n => format!("number {n} of them, counted from the newest"),
                };
                let in_front = || {
                    format!(
                        "Execute {commit} in front of this wait, behind the copies before it: a wait is for groups only."
                    )
                };
                if let Some(early) = self.wait_before_the_commit(copy) {
                    let text =
                        "the copy is in no group yet where this waits: it is committed with later ones, behind this";
                    let labels = vec![self.label(early, text).that_means(Meaning::Uncommitted)];
                    return Some(Cure { labels, ..Cure::new(rule, in_front()) });
                }
                let open = if wait.open { "; what it has copied since is in no group yet" } else { "" };
                let text = format!("this leaves the {newest} of {who} unfinished, and the copy is in {which}{open}");
                let wait_group = match wait.read {
                    true => "cp.async.bulk.wait_group.read",
                    false => "cp.async.bulk.wait_group",
                };
                let help = match wait.open && n == wait.pending {
                    true => in_front(),
                    false => format!(
                        "Let this wait leave {} at most: {wait_group} {}. It may leave as many as were committed behind the one that is waited for.",
                        counted(n - 1, "group"),
                        n - 1
                    ),
                };
                Some(Cure {
                    labels: vec![self.label(wait.site, text).that_means(Meaning::LeavesGroups)],
                    ..Cure::new(rule, help)
                })
            }
        }
    }

    /// The nearest wait for groups to which a way leads from a bulk copy past no commit.
    fn wait_before_the_commit(&self, copy: Stamp) -> Option<u32> {
        let code = &self.kernel.code;
        let begin = code.iter().position(|inst| inst.site == copy.site)?;
        let waits = code.iter().filter(|inst| matches!(inst.op, Op::BulkWait { .. })).map(|inst| inst.site);
        let early = waits.filter(|&wait| self.leads_past_no_commit(copy.site, wait));
        early
            .filter_map(|wait| Some((leads(code, begin, &[], |inst| inst.site == wait)?, wait)))
            .min()
            .map(|near| near.1)
    }

    /// The thread of a copy waits for it as it should, before it comes to where another warp accesses what the copy reads or writes: that warp does not
    /// hear of it.
    pub fn cure_of_a_wait_that_nobody_hears_of(&self, race: &Race) -> Option<Cure> {
        let (copy, other) = (race.conflict.first, race.second);
        let (ActorKind::BulkReads { warp } | ActorKind::BulkWrites { warp }) = self.kind(copy)? else { return None };
        let Some(ActorKind::Warp(w)) = self.kind(other).filter(|&kind| kind != ActorKind::Warp(warp)) else {
            return None;
        };
        if self.cta_of(copy) != self.cta_of(other) {
            return None;
        }
        let writes = matches!(self.kind(copy), Some(ActorKind::BulkWrites { .. }));
        let wait = self.wait_on_all_ways(copy.site, other.site, writes)?;
        let (who, them) = (self.warp_name(warp as usize), self.warp_name(w as usize));
        let text = format!(
            "{who} waits here until the copy has {}; {them} does not hear of it",
            if writes { "written" } else { "read" }
        );
        Some(Cure {
            labels: vec![self.label(wait, text)],
            ..Cure::new(
                HEARD_RULE,
                "Put a CTA barrier (bar.sync) behind this wait and in front of what the others access: what its thread has waited for, they know by \
                 that alone.",
            )
        })
    }

    /// The wait for groups that a thread passes on each way from a copy to another statement, and that waits for the copy's group; from it on, a way leads to
    /// the statement on which nobody meets. `writes`: the copy's writes have to be waited for.
    fn wait_on_all_ways(&self, copy: u32, to: u32, writes: bool) -> Option<u32> {
        let code = &self.kernel.code;
        let begin = code.iter().position(|inst| inst.site == copy)?;
        let guard = self.guard_in_front(begin);
        let (mut seen, mut open, mut found) = (FxHashSet::default(), vec![(begin + 1, 0)], Vec::new());
        while let Some((at, commits)) = open.pop() {
            let Some(inst) = code.get(at).filter(|_| seen.insert((at, commits))) else { continue };
            if inst.site == to || seen.len() > MOST_STATES {
                return None;
            }
            let surely = !inst.facts.guarded;
            let after = match inst.op {
                Op::BulkCommit if surely => MOST_GROUPS.min(commits + 1),
                Op::BulkWait { pending, read } if surely && commits > pending && !(writes && read) => {
                    found.push(inst.site);
                    continue;
                }
                _ => commits,
            };
            // Of a branch on what the thread has passed in front of the copy, it goes the same way again.
            let known = guard.filter(|&(guard, _)| guard == inst.guard).map(|(_, holds)| holds != inst.guard_negated);
            let branches = matches!(inst.op, Op::Branch { .. }) && known != Some(false);
            match &inst.op {
                Op::Branch { target, .. } if branches => open.push((*target as usize, after)),
                Op::BranchTable { targets, .. } => open.extend(targets.iter().map(|&target| (target as usize, after))),
                _ => {}
            }
            let leaves = matches!(inst.op, Op::Branch { .. } | Op::BranchTable { .. } | Op::Exit | Op::Trap(_));
            if !(leaves && (surely || branches && known == Some(true))) {
                open.push((at + 1, after));
            }
        }
        found.into_iter().find(|&wait| self.leads_past_no_meeting(wait, to))
    }

    /// The guard of the nearest branch in front of an instruction, past which code leads to it, and whether it holds then. Of predicates that are written
    /// once, as the number of a thread decides them.
    fn guard_in_front(&self, at: usize) -> Option<(u16, bool)> {
        let code = &self.kernel.code;
        let place = code[..at].iter().rposition(|inst| matches!(inst.op, Op::Branch { .. }))?;
        let branch = &code[place];
        // Nobody comes in between from elsewhere.
        let entered = |inst: &Inst| match &inst.op {
            Op::Branch { target, .. } => (place + 1..=at).contains(&(*target as usize)),
            Op::BranchTable { targets, .. } => targets.iter().any(|&to| (place + 1..=at).contains(&(to as usize))),
            _ => false,
        };
        if code.iter().any(entered) {
            return None;
        }
        let written = code.iter().filter(|inst| inst.defs.contains(&Reg::Pred(branch.guard))).count();
        (branch.facts.guarded && written == 1).then_some((branch.guard, branch.guard_negated))
    }

    /// Whether a way leads from one statement to another past no commit of a group.
    fn leads_past_no_commit(&self, from: u32, to: u32) -> bool {
        self.leads_past_none(from, to, |op| matches!(op, Op::BulkCommit | Op::AsyncCommit))
    }
}
