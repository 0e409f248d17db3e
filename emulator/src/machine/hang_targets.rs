//! Which mbarrier a statement arrives at, as far as its text says so: for who looks for those that should arrive.

use super::cluster::Cluster;
use super::hang::{Blocked, barrier_of};
use super::hang_root::by_site;
use super::mbarrier::Mbarrier;
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
        let awaited = |n: u32| {
            blocked.iter().any(|b| barrier_of(b) == Some(n))
                || self.warps.iter().any(|warp| warp.passed.iter().any(|passed| passed.barrier == n))
        };
        let others = || (0..self.barriers.len() as u32).filter(|&n| n != barrier);
        let astray = others().find_map(|n| {
            let other = &self.barriers[n as usize];
            let arrival = other.came.iter().find(|came| !came.bytes)?;
            let alike = mine.is_some() && self.ring_of(other.offset) == mine;
            let lost = || self.is_commit(arrival.site) && !awaited(n) && !self.may_be_awaited(other.offset);
            (other.valid && other.cta == here.cta && (alike || lost())).then_some((arrival.site, n))
        });
        astray.or_else(|| others().find_map(|n| Some((self.odd_commit(here, &self.barriers[n as usize])?, n))))
    }

    /// A commit that arrives, in the CTA of this mbarrier, at another one, where something else does: bytes, a thread, or the commit of another
    /// statement. One that is told by whom it should be has its arrivals from one side, and those of a ring from one statement for each stage.
    fn odd_commit(&self, here: &Mbarrier, other: &Mbarrier) -> Option<u32> {
        if !other.valid || other.cta != here.cta || other.expected != 1 {
            return None;
        }
        let is_commit = |site: u32| self.is_commit(site);
        let mut commits = other.came.iter().filter(|came| is_commit(came.site));
        let commit = commits.next()?;
        let another = other.came.iter().filter(|came| came.site != commit.site);
        let kinds = another.fold((false, None), |(mixed, second), came| match is_commit(came.site) {
            true => (mixed, Some(came.site)),
            false => (true, second),
        });
        match kinds {
            (true, _) => Some(commit.site),
            // Of two, the one that has come to fewer mbarriers by itself: the other is at home here.
            (false, Some(second)) => {
                let alone = |site: u32| {
                    let only = |b: &&Mbarrier| {
                        b.cta == here.cta && !b.came.is_empty() && b.came.iter().all(|came| came.site == site)
                    };
                    self.barriers.iter().filter(only).count()
                };
                Some(if alone(second) < alone(commit.site) { second } else { commit.site })
            }
            // Or it comes to where bytes are announced, and the one that is waited for is told of none.
            (false, None) => {
                let of_bytes = self.may_be_announced(other.offset) && !self.may_be_announced(here.offset);
                of_bytes.then_some(commit.site)
            }
        }
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
        let mut from = self.writers().last(at, address.base)?;
        if let Op::MapAddress { s, .. } = code[from].op {
            from = self.writers().last(from, s)?;
        }
        match code[from].op {
            Op::SharedAddress { offset, .. } => Some(address.offset + i64::from(offset)),
            _ => None,
        }
    }
}
