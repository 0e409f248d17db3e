//! Who touched each byte of a memory last.

use super::clock::{ActorId, Views};
use std::collections::HashMap;

/// Bytes that share a cell while they are accessed together.
const GRANULE: usize = 16;
const PAGE: usize = 256;

/// An access, as a memory remembers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Who.
    pub actor: ActorId,
    /// Its epoch at the time; 0: nobody.
    pub epoch: u32,
    /// The statement.
    pub site: u32,
    /// Index of its cluster: actors of different clusters are ordered through atomic operations only.
    pub cluster: u32,
    /// Through the asynchronous proxy.
    pub asynchronous: bool,
    /// Two strong accesses whose scopes include each other do not race.
    pub strength: Strength,
}

impl Stamp {
    /// A weak access through the generic proxy.
    pub fn new(actor: ActorId, epoch: u32, site: u32, cluster: u32) -> Stamp {
        Stamp { actor, epoch, site, cluster, asynchronous: false, strength: Strength::Weak }
    }

    /// A weak access through the asynchronous proxy.
    pub fn asynchronous(actor: ActorId, epoch: u32, site: u32, cluster: u32) -> Stamp {
        Stamp { asynchronous: true, ..Stamp::new(actor, epoch, site, cluster) }
    }
}

/// Whether an access is strong, and for whom (PTX ISA 8.5, scopes).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strength {
    /// Plain.
    Weak,
    /// At the scope of the CTA of this rank.
    Cta(u8),
    /// At the scope of its cluster.
    Cluster,
    /// At the scope of the GPU or the system.
    Gpu,
}

const NOBODY: Stamp = Stamp { actor: 0, epoch: 0, site: 0, cluster: 0, asynchronous: false, strength: Strength::Weak };

/// An access that is about to happen.
#[derive(Clone, Copy, Debug)]
pub struct Access<'a> {
    /// How it will be remembered.
    pub stamp: Stamp,
    /// What its actor (or the warp that issued it) knows.
    pub views: &'a Views,
    /// The memory is not reached through proxies (tensor memory).
    pub proxyless: bool,
    /// Accesses of the same cluster are not held against each other: somebody else does that.
    pub across: bool,
}

impl<'a> Access<'a> {
    /// Of memory that is reached through proxies.
    pub fn new(stamp: Stamp, views: &'a Views) -> Access<'a> {
        Access { stamp, views, proxyless: false, across: false }
    }
}

/// Two accesses that are not ordered although one of them writes.
#[derive(Clone, Copy, Debug)]
pub struct Conflict {
    /// The one that came first in this run.
    pub first: Stamp,
    /// Whether the first wrote.
    pub first_writes: bool,
    /// Whether the second writes.
    pub second_writes: bool,
    /// Why they are not ordered.
    pub reason: Reason,
    /// A byte they share.
    pub byte: u64,
}

/// Why two accesses are not ordered; what weighs most comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// No chain of synchronisation leads from the first to the second.
    Unordered,
    /// There is a chain, but no `fence.proxy.async` lies on it.
    NotFenced,
    /// There is a chain, but no `tcgen05.fence::before_thread_sync` at its begin.
    NoFenceBefore,
    /// There is a chain, but no `tcgen05.fence::after_thread_sync` at its end.
    NoFenceAfter,
}

#[derive(Clone, Debug)]
struct Cell {
    write: Stamp,
    read: Stamp,
    /// Further reads since the last write lie in `Shadow::readers`.
    more: bool,
    /// The bytes of this granule have cells of their own in `Shadow::bytes`.
    split: bool,
}

const EMPTY: Cell = Cell { write: NOBODY, read: NOBODY, more: false, split: false };

/// The last write and the reads since then, for every byte of a memory.
#[derive(Debug, Default)]
pub struct Shadow {
    pages: Vec<Option<Box<[Cell]>>>,
    bytes: HashMap<u64, Box<[Cell; GRANULE]>>,
    /// By byte address (`split`) or granule number with the top bit set.
    readers: HashMap<u64, Vec<Stamp>>,
}

/// Both are strong, and each scope includes the other's thread.
fn strong_together(first: Stamp, second: Stamp) -> bool {
    match (first.strength, second.strength) {
        (Strength::Weak, _) | (_, Strength::Weak) => false,
        (Strength::Gpu, Strength::Gpu) => true,
        // A CTA's rank is known of accesses at its scope only; a wider partner counts as one of its threads.
        (Strength::Cta(a), Strength::Cta(b)) => first.cluster == second.cluster && a == b,
        _ => first.cluster == second.cluster,
    }
}

fn ordered(first: Stamp, access: &Access) -> Option<Reason> {
    if first.epoch == 0 {
        return None;
    }
    if first.cluster != access.stamp.cluster {
        let (hb, fenced) = access.views.far(first.cluster, first.actor);
        let crosses = !first.asynchronous && access.stamp.asynchronous;
        return match (first.epoch > hb, crosses && first.epoch > fenced) {
            (true, _) => Some(Reason::Unordered),
            (false, true) => Some(Reason::NotFenced),
            (false, false) => None,
        };
    }
    if first.actor == access.stamp.actor {
        return None;
    }
    if first.epoch > access.views.hb.get(first.actor) {
        return Some(Reason::Unordered);
    }
    if access.proxyless {
        let reason = if first.epoch > access.views.before.get(first.actor) {
            Reason::NoFenceBefore
        } else {
            Reason::NoFenceAfter
        };
        return (first.epoch > access.views.after.get(first.actor)).then_some(reason);
    }
    let crosses = !first.asynchronous && access.stamp.asynchronous;
    (crosses && first.epoch > access.views.fenced.get(first.actor)).then_some(Reason::NotFenced)
}

impl Shadow {
    /// Checks and remembers a read. Gives the first conflict.
    pub fn read(&mut self, start: u64, len: u64, access: &Access) -> Option<Conflict> {
        self.touch(start, len, access, false)
    }

    /// Checks and remembers a write. Gives the first conflict.
    pub fn write(&mut self, start: u64, len: u64, access: &Access) -> Option<Conflict> {
        self.touch(start, len, access, true)
    }

    fn touch(&mut self, start: u64, len: u64, access: &Access, writes: bool) -> Option<Conflict> {
        let mut found = None;
        let end = start + len;
        let mut at = start;
        while at < end {
            let granule = at / GRANULE as u64;
            let next = ((granule + 1) * GRANULE as u64).min(end);
            let conflict = self.granule(granule, at, next, access, writes);
            found = worse(found, conflict);
            at = next;
        }
        found
    }

    fn granule(&mut self, granule: u64, at: u64, next: u64, access: &Access, writes: bool) -> Option<Conflict> {
        let (page, slot) = (granule as usize / PAGE, granule as usize % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let cells = self.pages[page].get_or_insert_with(|| vec![EMPTY; PAGE].into());
        let whole = next - at == GRANULE as u64;
        let cell = &mut cells[slot];
        if !cell.split && whole {
            return check(cell, &mut self.readers, granule | 1 << 63, at, access, writes);
        }
        if !cell.split {
            // First access to a part: every byte inherits what was known of the whole.
            let inherited = Cell { more: false, split: false, ..*cell };
            let more = if cell.more { self.readers.remove(&(granule | 1 << 63)) } else { None };
            *cell = Cell { split: true, ..EMPTY };
            let mut bytes = Box::new([EMPTY; GRANULE]);
            for (n, byte) in bytes.iter_mut().enumerate() {
                *byte = inherited.clone();
                if let Some(more) = &more {
                    byte.more = true;
                    self.readers.insert(granule * GRANULE as u64 + n as u64, more.clone());
                }
            }
            self.bytes.insert(granule, bytes);
        }
        let mut found = None;
        if let Some(bytes) = self.bytes.get_mut(&granule) {
            for byte in at..next {
                let n = byte as usize % GRANULE;
                let conflict = check(&mut bytes[n], &mut self.readers, byte, byte, access, writes);
                found = worse(found, conflict);
            }
            if writes && whole {
                // All bytes have the same history again.
                cell.clone_from(&bytes[0]);
                self.bytes.remove(&granule);
            }
        }
        found
    }
}

/// Of two conflicts, the one that weighs more.
fn worse(a: Option<Conflict>, b: Option<Conflict>) -> Option<Conflict> {
    match (&a, &b) {
        (Some(x), Some(y)) if y.reason < x.reason => b,
        (None, _) => b,
        _ => a,
    }
}

fn check(
    cell: &mut Cell,
    readers: &mut HashMap<u64, Vec<Stamp>>,
    key: u64,
    byte: u64,
    access: &Access,
    writes: bool,
) -> Option<Conflict> {
    let conflict = |first, first_writes, reason| Conflict { first, first_writes, second_writes: writes, reason, byte };
    let races = |first: Stamp| {
        let matters =
            !strong_together(first, access.stamp) && !(access.across && first.cluster == access.stamp.cluster);
        ordered(first, access).filter(|_| matters)
    };
    let mut found = races(cell.write).map(|reason| conflict(cell.write, true, reason));
    if writes {
        found = worse(found, races(cell.read).map(|reason| conflict(cell.read, false, reason)));
        if cell.more {
            for reader in readers.remove(&key).unwrap_or_default() {
                found = worse(found, races(reader).map(|reason| conflict(reader, false, reason)));
            }
        }
        *cell = Cell { write: access.stamp, ..EMPTY };
        return found;
    }
    // One reader is enough to remember when the new one comes after it.
    if cell.read.epoch == 0 || (!cell.more && ordered(cell.read, access).is_none()) {
        cell.read = access.stamp;
    } else {
        let more = readers.entry(key).or_default();
        let elsewhere = |reader: &Stamp| reader.cluster != cell.read.cluster;
        if elsewhere(&access.stamp) && more.iter().any(elsewhere) {
            // Readers of two clusters are remembered: a write is hardly ordered after both and not after this one.
            return found;
        }
        more.retain(|reader| ordered(*reader, access).is_some());
        more.push(access.stamp);
        cell.more = true;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What all CTAs read (an operand of a GEMM) costs no more with each.
    #[test]
    fn readers_of_many_clusters_are_not_all_remembered() {
        let mut shadow = Shadow::default();
        let views = Views::default();
        let access = |cluster: u32, actor| Access::new(Stamp::new(actor, 1, 0, cluster), &views);
        for cluster in 0..100 {
            for actor in 0..4 {
                assert!(shadow.read(0, 16, &access(cluster, actor)).is_none());
            }
        }
        let remembered: usize = shadow.readers.values().map(Vec::len).sum();
        assert!(remembered <= 4, "{remembered}");
        for cluster in [0, 1, 50] {
            let mut copy = Shadow { pages: shadow.pages.clone(), readers: shadow.readers.clone(), ..Shadow::default() };
            assert!(copy.write(0, 16, &access(cluster, 0)).is_some(), "a write by cluster {cluster}");
        }
    }
}
