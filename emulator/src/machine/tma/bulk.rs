//! Bulk groups: how a thread waits for the stores that it gave to the TMA engine.

use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::groups::GroupWait;
use crate::machine::state::{ActorKind, At};
use crate::machine::warp::registers::lanes;
use crate::machine::warp::{Queue, State};
use std::collections::VecDeque;

/// So many groups are remembered, with when they began.
const REMEMBERED: usize = 64;

/// The bulk groups of a thread.
#[derive(Debug, Default)]
pub struct BulkGroups {
    /// Copies that no group holds yet.
    pub open: Vec<usize>,
    /// Groups that were not waited for, oldest first: number, copies.
    groups: VecDeque<(u32, Vec<usize>)>,
    pub next: u32,
    /// The warp's epoch behind the first copy of each of the newest groups, by the group's number.
    issued: VecDeque<(u32, u32)>,
    /// What the groups read, and what they write: epochs are the numbers of the groups.
    pub reads: Queue,
    pub writes: Queue,
    /// The last group whose reads have been waited for.
    read_waited: u32,
    pub waited: Option<GroupWait>,
}

impl BulkGroups {
    /// A copy begins; the warp's epoch behind that.
    pub fn begins(&mut self, copy: usize, epoch: u32) {
        self.open.push(copy);
        if self.issued.back().is_none_or(|&(group, _)| group != self.next) {
            if self.issued.len() == REMEMBERED {
                self.issued.pop_front();
            }
            self.issued.push_back((self.next, epoch));
        }
    }

    /// The warp's epoch behind the first copy of a group, if that is remembered.
    pub fn issued(&self, group: u32) -> Option<u32> {
        self.issued.iter().rev().find(|issued| issued.0 == group).map(|issued| issued.1)
    }

    /// Copies that the thread has not waited for.
    pub fn pending(&self) -> impl Iterator<Item = usize> {
        self.open.iter().chain(self.groups.iter().flat_map(|(_, copies)| copies)).copied()
    }
}

impl Cluster<'_> {
    pub fn bulk_groups(&mut self, w: usize, lane: usize) -> &mut BulkGroups {
        let fresh = (!self.warps[w].bulk.contains_key(&lane)).then(|| {
            let reads = Queue::of(self.actor(ActorKind::BulkReads { warp: w as u32 }));
            let writes = Queue::of(self.actor(ActorKind::BulkWrites { warp: w as u32 }));
            BulkGroups { reads, writes, next: 1, ..BulkGroups::default() }
        });
        self.warps[w].bulk.entry(lane).or_insert_with(|| fresh.unwrap_or_default())
    }

    pub fn bulk_commit(&mut self, at: At) -> Result<(), Stop> {
        for lane in lanes(at.mask) {
            self.commit_map_reads(at.w, lane);
            // A thread that never gave a copy has nothing to wait for, whatever it commits.
            let Some(groups) = self.warps[at.w].bulk.get_mut(&lane) else { continue };
            let copies = std::mem::take(&mut groups.open);
            groups.groups.push_back((groups.next, copies));
            groups.next += 1;
        }
        Ok(())
    }

    pub fn bulk_wait(&mut self, at: At, pending: u32, read: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        if lanes(mask).all(|lane| !self.warps[w].bulk.contains_key(&lane)) {
            self.findings.bulk_waits_for_none.insert((w, site));
        }
        for lane in lanes(mask) {
            let Some(groups) = self.warps[w].bulk.get_mut(&lane) else { continue };
            let (next, open) = (groups.next, !groups.open.is_empty());
            groups.waited = Some(GroupWait { site, pending, next, open, read });
        }
        if self.bulk_satisfied(w, mask, pending, read) {
            self.bulk_pass(w, mask, pending, read);
            return Ok(());
        }
        self.warps[w].fragments[f].state = State::BulkGroups { pending, read, mask };
        Ok(())
    }

    /// At most `pending` of the newest groups are incomplete.
    fn bulk_satisfied(&self, w: usize, mask: u32, pending: u32, read: bool) -> bool {
        lanes(mask).filter_map(|lane| self.warps[w].bulk.get(&lane)).all(|groups| {
            let old = groups.groups.len().saturating_sub(pending as usize);
            groups.groups.iter().take(old).flat_map(|(_, copies)| copies).all(|&n| {
                let copy = &self.copies[n];
                if read { copy.read } else { copy.done }
            })
        })
    }

    fn bulk_pass(&mut self, w: usize, mask: u32, pending: u32, read: bool) {
        for lane in lanes(mask) {
            let warp = &mut self.warps[w];
            let Some(groups) = warp.bulk.get_mut(&lane) else { continue };
            let old = groups.groups.len().saturating_sub(pending as usize);
            let Some(&(last, _)) = groups.groups.iter().take(old).next_back() else { continue };
            groups.read_waited = groups.read_waited.max(last);
            warp.views.hb.raise(groups.reads.actor, last);
            if !read {
                warp.views.hb.raise(groups.writes.actor, last);
                self.free_copies.extend(groups.groups.drain(..old).flat_map(|(_, copies)| copies));
            }
            self.pass_map_reads(w, lane, last);
        }
    }

    /// Lets a thread go that waits for its bulk groups.
    pub fn release_bulk(&mut self, w: usize) {
        for f in 0..self.warps[w].fragments.len() {
            let fragment = &self.warps[w].fragments[f];
            let State::BulkGroups { pending, read, mask } = fragment.state else { continue };
            if self.bulk_satisfied(w, mask, pending, read) {
                self.bulk_pass(w, mask, pending, read);
                let now = self.now;
                let fragment = &mut self.warps[w].fragments[f];
                fragment.state = State::Ready;
                fragment.pc += 1;
                fragment.ready_at = fragment.ready_at.max(now);
                self.lower_horizon(now);
            }
        }
    }

    /// A thread ends: its bulk stores should have read their sources. A GPU keeps the shared memory of a CTA that has ended until they
    /// have (measured on an H100: 20,480 CTAs, each on memory that the one before had stored from), and kernels of CUTLASS 4 rely on it.
    pub fn check_bulk_at_exit(&mut self, w: usize, mask: u32) {
        for lane in lanes(mask) {
            let Some(groups) = self.warps[w].bulk.get(&lane) else { continue };
            let unread = groups.groups.iter().find(|(n, copies)| *n > groups.read_waited && !copies.is_empty());
            let copies = if groups.open.is_empty() { unread.map(|(_, c)| c) } else { Some(&groups.open) };
            let Some(&n) = copies.and_then(|c| c.first()) else { continue };
            // The last wait came behind the commit of its group, and let it be.
            let behind = |wait: &GroupWait| groups.open.is_empty() && unread.is_some_and(|(n, _)| *n < wait.next);
            let left_by = groups.waited.filter(behind);
            let mut diagnostic = self.problem(
                "bulk-store-outlives-thread",
                self.copies[n].site,
                "the thread ends although this copy may still be reading shared memory".into(),
                "Only the wait of the thread that issued a bulk store says that its source has been read (PTX ISA, cp.async.bulk.wait_group). \
                 GPUs keep a CTA's shared memory until then, but nothing promises it.",
                "Commit the store (cp.async.bulk.commit_group) and execute cp.async.bulk.wait_group.read 0 before the thread ends.".into(),
            );
            diagnostic.severity = crate::diagnostic::Severity::Note;
            diagnostic.labels[0].text =
                format!("{} has issued this copy, and ends without a wait for it", self.warp_name(w));
            if let Some(GroupWait { site, pending, .. }) = left_by {
                let groups = if pending == 1 { "newest group".into() } else { format!("{pending} newest groups") };
                let text = format!("its last wait: it leaves the {groups} open, and the copy is in one that is left");
                diagnostic.labels.push(self.label(site, text));
                diagnostic.help =
                    "Let the last wait of the thread leave no group open: cp.async.bulk.wait_group.read 0 before it ends."
                        .into();
            }
            self.findings.add(diagnostic);
        }
    }
}
