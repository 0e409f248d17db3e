//! Which mbarrier a statement arrives at, as far as its text says so: for who looks for those that should arrive.

use super::root::by_site;
use super::{Blocked, barrier_of};
use crate::machine::barrier::mbarrier::Mbarrier;
use crate::machine::cluster::Cluster;
use crate::program::op::{Address, Op, Reg};

impl Cluster<'_> {
    /// Statements that name this barrier as the target of an arrival.
    pub fn arrival_sites(&self, offset: u32) -> Vec<u32> {
        self.arrivals(|_, address| address.base == Reg::Sink && address.offset == i64::from(offset))
    }

    /// The same, and those that name it as one of any CTA of the cluster, by `mapa`.
    pub fn arrival_sites_anywhere(&self, offset: u32) -> Vec<u32> {
        self.arrivals(|at, address| self.named(at, address) == Some(i64::from(offset)))
    }

    /// Threads arrive at this barrier, and no bytes come with them.
    pub fn is_told_by_threads(&self, offset: u32) -> bool {
        let sites = self.arrival_sites(offset);
        let thread = |op: &Op| matches!(op, Op::BarrierArrive { expect: None, .. });
        self.kernel.code.iter().any(|inst| thread(&inst.op) && sites.contains(&inst.site))
    }

    /// What would tell who waits here and then loads, or reads tensor memory, in a kernel that multiplies: a commit.
    pub fn awaits_mmas(&self, site: u32) -> Option<&'static str> {
        let multiplies = self.kernel.code.iter().any(|inst| matches!(inst.op, Op::Mma(_)));
        match self.role(site) {
            _ if !multiplies => None,
            0 => Some(
                "Behind the MMAs that read the stage, let their thread execute tcgen05.commit to this mbarrier. If the wait is for a stage that is free at \
                 the beginning, let it begin with parity 1.",
            ),
            2 => Some("Behind the last MMA, let its thread execute tcgen05.commit to this mbarrier."),
            _ => None,
        }
    }

    /// Arrivals at another mbarrier of the same CTA that may be meant for this one, at which none comes: at one of the same ring, or a commit at one
    /// that nobody has waited for. The statement, and that mbarrier.
    pub fn arrives_astray(&self, blocked: &[Blocked], barrier: u32) -> Option<(u32, u32)> {
        let here = &self.barriers[barrier as usize];
        let mine = self.ring_of(here.offset);
        let others = || self.others_beside(barrier);
        let astray = others().find_map(|(other, n)| {
            let arrival = other.came.iter().find(|came| !came.bytes)?;
            let alike = mine.is_some() && self.ring_of(other.offset) == mine;
            let lost = || self.is_commit(arrival.site) && self.nobody_awaits(blocked, n);
            (other.valid && (alike || lost())).then_some((arrival.site, n))
        });
        let second = || others().find_map(|(other, n)| Some((self.second_commit(other)?, n)));
        let among_bytes = || others().find_map(|(other, n)| Some((self.commit_among_bytes(here, other)?, n)));
        // What is made for the threads of whole warps waits for no commit.
        let for_commits = !here.expected.is_multiple_of(32);
        let astray = astray.or_else(|| self.arrives_oddly(barrier));
        let astray =
            astray.or_else(|| second().filter(|_| for_commits)).or_else(|| among_bytes().filter(|_| for_commits));
        astray.or_else(|| others().find_map(|(other, n)| Some((self.plain_among_bytes(here, other)?, n))))
    }

    /// The other mbarriers of the same CTA.
    fn others_beside(&self, barrier: u32) -> impl Iterator<Item = (&Mbarrier, u32)> {
        let cta = self.barriers[barrier as usize].cta;
        self.barriers.iter().zip(0..).filter(move |(b, n)| *n != barrier && b.cta == cta)
    }

    /// Nobody has waited for an mbarrier, and no statement would.
    fn nobody_awaits(&self, blocked: &[Blocked], n: u32) -> bool {
        let passed = || self.warps.iter().any(|warp| warp.passed.iter().any(|passed| passed.barrier == n));
        let awaited = blocked.iter().any(|b| barrier_of(b) == Some(n)) || passed();
        !awaited && !self.may_be_awaited(self.barriers[n as usize].offset)
    }

    /// Another mbarrier of the CTA of this one, whose phases complete and which nobody waits for: its last arrival, and that mbarrier.
    pub fn completes_unheard(&self, blocked: &[Blocked], barrier: u32) -> Option<(u32, u32)> {
        self.others_beside(barrier).filter(|(b, _)| b.valid).find_map(|(other, n)| {
            let (site, _) = other.previous.last()?;
            self.nobody_awaits(blocked, n).then_some((*site, n))
        })
    }

    /// What arrives in the CTA of this mbarrier at another one, where it does not belong: a commit, or the threads of whole warps where this one is made
    /// for those. The statement, and that mbarrier.
    pub fn arrives_oddly(&self, barrier: u32) -> Option<(u32, u32)> {
        let here = &self.barriers[barrier as usize];
        let odd = |other: &Mbarrier| match here.expected.is_multiple_of(32) {
            true => self.odd_warps(other),
            false => self.odd_commit(other),
        };
        self.others_beside(barrier).find_map(|(other, n)| Some((odd(other)?, n)))
    }

    /// Threads that arrive at what is made for one commit.
    fn odd_warps(&self, b: &Mbarrier) -> Option<u32> {
        let by_commit = |site: u32| self.is_commit(site);
        let for_a_commit = b.valid && b.expected == 1 && self.may_arrive(b.offset).into_iter().any(by_commit);
        self.comes_by_threads(b).next().filter(|_| for_a_commit).map(|came| came.site)
    }

    /// A commit comes to where bytes are announced, and the mbarrier that is waited for is told of none.
    fn commit_among_bytes(&self, here: &Mbarrier, other: &Mbarrier) -> Option<u32> {
        let of_bytes = || self.may_be_announced(other.offset) && !self.may_be_announced(here.offset);
        let is_one = other.valid && other.expected == 1 && of_bytes();
        other.came.iter().find(|came| is_one && self.is_commit(came.site)).map(|came| came.site)
    }

    /// The same of threads: they arrive, and announce nothing, at what is made for the one who announces its bytes.
    fn plain_among_bytes(&self, here: &Mbarrier, other: &Mbarrier) -> Option<u32> {
        let of_bytes = || self.may_be_announced(other.offset) && !self.may_be_announced(here.offset);
        if !other.valid || other.expected != 1 || !of_bytes() {
            return None;
        }
        let plain = |site: &u32| {
            let is_one = |op: &Op| matches!(op, Op::BarrierArrive { expect: None, .. });
            self.kernel.code.iter().any(|inst| inst.site == *site && is_one(&inst.op))
        };
        let now = other.came.iter().map(|came| came.site);
        now.chain(other.previous.iter().map(|(site, _)| *site)).find(plain)
    }

    /// A commit that arrives where it does not belong: where bytes or threads do, or at what is made for whole warps that arrive.
    fn odd_commit(&self, b: &Mbarrier) -> Option<u32> {
        let by_threads = |site: u32| !self.is_commit(site);
        let commit = b.came.iter().find(|came| !by_threads(came.site)).filter(|_| b.valid)?;
        let odd = match b.expected {
            1 => b.came.iter().any(|came| by_threads(came.site)),
            count => count.is_multiple_of(32) && self.may_arrive(b.offset).into_iter().any(by_threads),
        };
        odd.then_some(commit.site)
    }

    /// Of the commits of two statements that arrive where one is counted, that of the statement that has come to fewer mbarriers by itself: the other
    /// is at home here. What is written out for each stage of a ring, or for its first round, has several as well.
    pub fn second_commit(&self, b: &Mbarrier) -> Option<u32> {
        let mut commits = b.came.iter().filter(|came| self.is_commit(came.site));
        let first = commits.next().filter(|_| b.valid && b.expected == 1)?.site;
        let Some(second) = commits.find(|came| came.site != first).map(|came| came.site) else {
            // The other would come later.
            let mut more = self.may_arrive(b.offset).into_iter().filter(|&site| site != first);
            return more.any(|site| self.is_commit(site)).then_some(first);
        };
        let alone = |site: u32| {
            let only = |other: &&Mbarrier| {
                other.cta == b.cta && !other.came.is_empty() && other.came.iter().all(|came| came.site == site)
            };
            self.barriers.iter().filter(only).count()
        };
        Some(if alone(second) < alone(first) { second } else { first })
    }

    /// The name of the ring of buffers in which a byte lies.
    fn ring_of(&self, offset: u32) -> Option<String> {
        let name = self.shared_name(offset);
        name.strip_prefix('`')?.split_once('[').map(|(ring, _)| ring.to_string())
    }

    /// Whether a phase that lacks arrivals has all that belong to it, as it seems, and is made for too many: the others of its ring are made for
    /// fewer; or whole warps arrive, and no whole warp lacks; or the one statement that names it has come once, and commits for one or for whole warps.
    pub fn is_made_for_too_many(&self, b: &Mbarrier) -> bool {
        let ring = self.ring_of(b.offset);
        let of_ring = |other: &&Mbarrier| ring.is_some() && other.valid && self.ring_of(other.offset) == ring;
        let others = || self.barriers.iter().filter(of_ring).filter(|other| other.offset != b.offset);
        let arrivals = by_site(&b.arrivals);
        let in_warps = |&(site, count): &(u32, u32)| !self.is_commit(site) && count.is_multiple_of(32);
        let whole = arrivals.iter().all(in_warps) && !b.expected.is_multiple_of(32);
        let named = self.arrival_sites_anywhere(b.offset);
        let alone = named.len() == 1 && arrivals == [(named[0], 1)];
        let for_warps = b.expected.is_multiple_of(32);
        others().any(|other| other.expected < b.expected) || whole || alone && (!for_warps || self.is_commit(named[0]))
    }

    fn arrivals(&self, is_target: impl Fn(usize, &Address) -> bool) -> Vec<u32> {
        let arrives = |at: usize, op: &Op| match op {
            Op::Commit { address, .. } | Op::BarrierArrive { address, .. } => is_target(at, address),
            _ => false,
        };
        let code = self.kernel.code.iter().enumerate();
        code.filter(|(at, inst)| arrives(*at, &inst.op)).map(|(_, inst)| inst.site).collect()
    }

    /// The place in shared memory that the address of an instruction names: by itself, by a register, or as that of the same place in another
    /// CTA. A register is taken to hold what was last written to it: this is a hint.
    pub fn named(&self, at: usize, address: &Address) -> Option<i64> {
        let code = &self.kernel.code;
        if address.base == Reg::Sink {
            return Some(address.offset);
        }
        let mut from = self.kernel.writers().last(at, address.base)?;
        if let Op::MapAddress { s, .. } = code[from].op {
            from = self.kernel.writers().last(from, s)?;
        }
        match code[from].op {
            Op::SharedAddress { offset, .. } => Some(address.offset + i64::from(offset)),
            _ => None,
        }
    }
}
