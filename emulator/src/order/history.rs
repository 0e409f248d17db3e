//! Who touched each of some places last.

use super::places::{Places, Rectangle};
use super::stamp::{Access, Reason, Stamp, Strength, Sum};

/// An access, and the places for which it is remembered.
#[derive(Clone, Copy, Debug)]
struct Entry<P> {
    places: P,
    stamp: Stamp,
    writes: bool,
}

/// The last write of each place and the reads since then. Before a strong write, also what races with others than it does: the
/// accesses of other [classes](Stamp::class). Reads of the same place lie in the order of their accesses; a place has one write
/// of a class at most, and of sums one [beside](Sum::Beside) it.
#[derive(Clone, Debug)]
pub(super) struct History<P>(Vec<Entry<P>>);

impl<P> Default for History<P> {
    fn default() -> Self {
        History(Vec::new())
    }
}

/// Which earlier accesses are asked about.
pub(super) type Sort<'a> = &'a dyn Fn(&Stamp) -> bool;

/// So many entries are looked at for one of the same access, to join: the parts of an access follow each other closely.
const NEAR: usize = 4;

/// Entries that have no places left.
#[derive(Default)]
struct Empty {
    count: usize,
    first: Option<usize>,
}

impl Empty {
    fn see(&mut self, n: usize) {
        self.count += 1;
        self.first = self.first.or(Some(n));
    }

    fn remove_from<P: Places>(&self, entries: &mut Vec<Entry<P>>) {
        if self.count > 0 {
            entries.retain(|entry| !entry.places.is_empty());
        }
    }
}

/// Clusters other than that of the access that have read.
#[derive(Default)]
struct Others {
    one: Option<u32>,
    more: bool,
}

impl Others {
    fn see(&mut self, cluster: u32) {
        self.more |= *self.one.get_or_insert(cluster) != cluster;
    }
}

/// An earlier access of a place that is not ordered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hit {
    pub first: Stamp,
    pub first_writes: bool,
    pub reason: Reason,
    pub place: u32,
}

impl Hit {
    /// What makes one weigh more than another; of equal ones, the earlier access is named.
    fn weight(&self) -> (Reason, u32, bool, (Strength, bool), Sum) {
        (self.reason, self.place, !self.first_writes, self.first.class(), self.first.sum)
    }

    pub fn heavier(known: Option<Hit>, new: Hit) -> Option<Hit> {
        match known {
            Some(known) if known.weight() <= new.weight() => Some(known),
            _ => Some(new),
        }
    }
}

impl<P: Places> History<P> {
    /// Checks and remembers an access to these places. Gives the conflict that weighs most.
    #[inline]
    pub fn touch(&mut self, places: P, access: &Access, writes: bool) -> Option<Hit> {
        if writes { self.write(places, access) } else { self.read(places, access) }
    }

    fn write(&mut self, places: P, access: &Access) -> Option<Hit> {
        let new = Entry { places, stamp: access.stamp, writes: true };
        // Mostly one access covered all that this one covers, or less.
        if let [only] = &mut self.0[..]
            && only.places.within(places)
            && access.displaces(&only.stamp)
        {
            let races = access.races(&only.stamp).filter(|_| !only.is_read_before_fence(access));
            let found = races.map(|reason| only.hit(reason, only.places));
            access.replaces(&only.stamp, only.writes);
            *only = new;
            return found;
        }
        let found = self.conflict(places, access, |_| true);
        if access.stamp.sum != Sum::No {
            self.put_beside(places, access);
        }
        let mut empty = Empty::default();
        let mut n = 0;
        while let Some(entry) = self.0.get(n) {
            if !entry.places.shared(places).is_empty() && access.displaces(&entry.stamp) {
                access.replaces(&entry.stamp, entry.writes);
                n = self.take_from(n, places, &mut empty);
            }
            n += 1;
        }
        // Where among the others a write lies does not matter.
        if !self.join(new) {
            match empty.first {
                Some(n) => {
                    self.0[n] = new;
                    empty.count -= 1;
                }
                None => self.push(new),
            }
        }
        empty.remove_from(&mut self.0);
        found
    }

    /// Of the last sums of these places, those that a new one leaves beside it take the places of those that lay beside them: of many, two
    /// are enough, since threads that run the same kernel mostly make the same mistake.
    #[cold]
    fn put_beside(&mut self, places: P, access: &Access) {
        let left = |entry: &Entry<P>| {
            let Entry { places: all, stamp, .. } = *entry;
            let shared = all.shared(places);
            let stays = stamp.sum == Sum::Last && !shared.is_empty() && access.stands_beside(&stamp);
            stays.then_some(Entry { places: shared, stamp: Stamp { sum: Sum::Beside, ..stamp }, writes: true })
        };
        while let Some(beside) = self.0.iter().find_map(left) {
            self.take(beside.places, |stamp| stamp.sum != Sum::No && stamp.class() == beside.stamp.class());
            if !self.join(beside) {
                self.push(beside);
            }
        }
    }

    /// Forgets accesses of some sort of these places.
    fn take(&mut self, places: P, sort: impl Fn(&Stamp) -> bool) {
        let mut empty = Empty::default();
        let mut n = 0;
        while let Some(entry) = self.0.get(n) {
            if sort(&entry.stamp) && !entry.places.shared(places).is_empty() {
                n = self.take_from(n, places, &mut empty);
            }
            n += 1;
        }
        empty.remove_from(&mut self.0);
    }

    /// The conflict of an access with those of some sort that weighs most.
    #[inline]
    fn conflict(&self, places: P, access: &Access, sort: impl Fn(&Entry<P>) -> bool) -> Option<Hit> {
        let mut found = None;
        for entry in self.0.iter().filter(|entry| sort(entry)) {
            let shared = entry.places.shared(places);
            if !shared.is_empty()
                && let Some(reason) = access.races(&entry.stamp)
                && !self.passed_on(entry, shared, access, reason)
                && !entry.is_read_before_fence(access)
            {
                found = Hit::heavier(found, entry.hit(reason, shared));
            }
        }
        found
    }

    /// The conflict with earlier accesses of some sort that an access would have: the one that weighs most.
    pub fn conflict_with(&self, places: P, access: &Access, writes: bool, sort: Sort) -> Option<Hit> {
        self.conflict(places, access, |entry| (writes || entry.writes) && sort(&entry.stamp))
    }

    /// The write that a read comes after through too narrow a scope, and that weighs most.
    #[cold]
    fn too_narrow(&self, places: P, access: &Access) -> Option<Hit> {
        let mut found = None;
        for entry in self.0.iter().filter(|entry| entry.writes) {
            let shared = entry.places.shared(places);
            if !shared.is_empty()
                && let Some(reason) = access.too_narrow(&entry.stamp)
            {
                found = Hit::heavier(found, entry.hit(reason, shared));
            }
        }
        found
    }

    /// Whether an access comes after a write because it comes after what read it: causality order is transitive (PTX ISA 8.9.5), also
    /// through an asynchronous operation, which tells nothing else of what its issuer knew. What read it is somebody else: an access
    /// does not come after a write because it, or one of its own actor before it, has read that write's bytes.
    #[cold]
    fn passed_on(&self, write: &Entry<P>, places: P, access: &Access, reason: Reason) -> bool {
        let weak = |stamp: &Stamp| stamp.strength == Strength::Weak;
        if !access.transitive || !write.writes || reason != Reason::Unordered || !weak(&write.stamp) {
            return false;
        }
        let mut left = vec![places];
        let others = |read: &&Entry<P>| !read.writes && weak(&read.stamp) && read.stamp.actor != access.stamp.actor;
        let comes_after = |read: &Entry<P>| {
            use Reason::{NoFenceAfter, NoFenceBefore, NotAcquired};
            matches!(access.unordered(&read.stamp), None | Some(NotAcquired | NoFenceBefore | NoFenceAfter))
        };
        for read in self.0.iter().filter(others) {
            if comes_after(read) {
                let rest = left.into_iter().flat_map(|places| {
                    let (one, two) = places.without(read.places);
                    [Some(one), two]
                });
                left = rest.flatten().filter(|places| !places.is_empty()).collect();
            }
        }
        left.is_empty()
    }

    /// Whether a write of these places races with nothing.
    #[inline]
    pub fn lets(&self, places: P, access: &Access) -> bool {
        self.conflict(places, access, |_| true).is_none()
    }

    fn read(&mut self, places: P, access: &Access) -> Option<Hit> {
        let mut found = self.conflict(places, access, |entry| entry.writes);
        if access.homes.is_some()
            && let Some(hit) = self.too_narrow(places, access)
        {
            found = Hit::heavier(found, hit);
        }
        if access.observes() {
            self.take(places, |stamp| stamp.sum == Sum::Beside && access.races(stamp).is_none());
        }
        let mut others = Others::default();
        let mut empty = Empty::default();
        let mut n = 0;
        while let Some(entry) = self.0.get(n) {
            if entry.writes || entry.places.shared(places).is_empty() {
                // Nothing more to do with this access.
            } else if access.unordered(&entry.stamp).is_none() && access.stamp.covers(&entry.stamp) {
                // One reader is enough to remember when the new one comes after it, and races with all that it races with.
                n = self.take_from(n, places, &mut empty);
            } else if entry.stamp.cluster != access.stamp.cluster {
                others.see(entry.stamp.cluster);
            }
            n += 1;
        }
        empty.remove_from(&mut self.0);
        if !others.more {
            self.add_read(places, access.stamp);
        } else {
            // A write is hardly ordered after the readers of two clusters and not after this one.
            let mut rest = Vec::new();
            self.find_uncrowded(places, access.stamp.cluster, 0, &mut rest);
            rest.into_iter().for_each(|places| self.add_read(places, access.stamp));
        }
        found
    }

    /// Takes places out of an entry. Gives the index of the last one that is left of it.
    #[inline]
    fn take_from(&mut self, n: usize, places: P, empty: &mut Empty) -> usize {
        let entry = &mut self.0[n];
        let (rest, second) = entry.places.without(places);
        entry.places = rest;
        if rest.is_empty() {
            empty.see(n);
        }
        let Some(places) = second else { return n };
        let second = Entry { places, ..*entry };
        self.0.insert(n + 1, second);
        n + 1
    }

    /// The places of which no readers of two clusters are remembered, beside this cluster's; from this entry on.
    fn find_uncrowded(&self, places: P, cluster: u32, from: usize, into: &mut Vec<P>) {
        let other = |entry: &&Entry<P>| {
            !entry.writes && entry.stamp.cluster != cluster && !entry.places.shared(places).is_empty()
        };
        for (n, one) in self.0.iter().enumerate().skip(from).filter(|(_, one)| other(one)) {
            for two in self.0[..n].iter().filter(other).filter(|two| two.stamp.cluster != one.stamp.cluster) {
                let both = one.places.shared(two.places);
                if both.shared(places).is_empty() {
                    continue;
                }
                let (rest, second) = places.without(both);
                for rest in second.into_iter().chain([rest]).filter(|rest| !rest.is_empty()) {
                    self.find_uncrowded(rest, cluster, n, into);
                }
                return;
            }
        }
        into.push(places);
    }

    /// Adds to the latest entry of the same read, unless others have read one of the places since.
    fn add_read(&mut self, places: P, stamp: Stamp) {
        let new = Entry { places, stamp, writes: false };
        if !self.join(new) {
            self.push(new);
        }
    }

    /// Puts the parts of an access together in one entry, as far as one can hold them: first these with those that are there,
    /// then those with earlier ones.
    #[inline]
    fn join(&mut self, new: Entry<P>) -> bool {
        let Some((mut n, places)) = self.partner(self.0.len(), &new) else { return false };
        self.0[n].places = places;
        while !P::JOIN_ALWAYS
            && let Some((earlier, places)) = self.partner(n, &self.0[n])
        {
            self.0[earlier].places = places;
            self.0.remove(n);
            n = earlier;
        }
        true
    }

    /// An entry before this index that can take the places of another of the same access, and what it then holds.
    #[inline]
    fn partner(&self, end: usize, new: &Entry<P>) -> Option<(usize, P)> {
        for (n, entry) in self.0[..end].iter().enumerate().rev().take(NEAR) {
            if entry.writes != new.writes || entry.places.is_empty() {
                continue;
            }
            if entry.stamp == new.stamp
                && let Some(places) = entry.places.joined(new.places)
            {
                return Some((n, places));
            }
            if !entry.writes && !entry.places.shared(new.places).is_empty() {
                return None;
            }
        }
        None
    }

    /// Most histories stay at one or two entries, and there are many: room for more is made late.
    fn push(&mut self, entry: Entry<P>) {
        let n = self.0.len();
        if n == self.0.capacity() {
            self.0.reserve_exact(if n < 2 { 1 } else { n.max(6) });
        }
        self.0.push(entry);
    }

    /// Who wrote some of these places last.
    pub fn writer(&self, places: P) -> Option<Stamp> {
        let wrote = |entry: &&Entry<P>| {
            entry.writes && entry.stamp.sum != Sum::Beside && !entry.places.shared(places).is_empty()
        };
        self.0.iter().rev().find(wrote).map(|entry| entry.stamp)
    }

    pub fn entries(&self) -> usize {
        self.0.len()
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Entry<P>>()
    }
}

impl History<u64> {
    /// Forgets a place; gives its history, as that of all these places.
    pub fn split_off(&mut self, place: u32, places: u64) -> History<u64> {
        let bit = 1 << place;
        let has = |entry: &&Entry<u64>| entry.places & bit != 0;
        let part = self.0.iter().filter(has).map(|entry| Entry { places, ..*entry }).collect();
        self.0.retain_mut(|entry| {
            entry.places &= !bit;
            entry.places != 0
        });
        History(part)
    }

    /// Whether all these places have the same history.
    pub fn is_uniform(&self, places: u64) -> bool {
        self.0.iter().all(|entry| entry.places == places)
    }

    /// Takes the history of all of another's places as that of one place, which has none here.
    pub fn merge(&mut self, place: u32, other: History<u64>) {
        for entry in other.0 {
            if entry.writes {
                match self.0.iter_mut().find(|known| known.writes && known.stamp == entry.stamp) {
                    Some(same) => same.places |= 1 << place,
                    None => self.push(Entry { places: 1 << place, ..entry }),
                }
            } else {
                self.add_read(1 << place, entry.stamp);
            }
        }
    }

    /// All that were accessed.
    pub fn places(&self) -> u64 {
        self.0.iter().fold(0, |all, entry| all | entry.places)
    }
}

impl History<Rectangle> {
    /// What is known of a block.
    pub fn of_block(&self, block: u32) -> History<u64> {
        let has = |entry: &&Entry<Rectangle>| entry.places.blocks >> block & 1 == 1;
        let granules = |entry: &Entry<Rectangle>| Entry {
            places: entry.places.granules,
            stamp: entry.stamp,
            writes: entry.writes,
        };
        History(self.0.iter().filter(has).map(granules).collect())
    }

    pub fn forget(&mut self, blocks: u32) {
        self.0.retain_mut(|entry| {
            entry.places.blocks &= !blocks;
            entry.places.blocks != 0
        });
    }

    /// All that were accessed.
    pub fn blocks(&self) -> u32 {
        self.0.iter().fold(0, |all, entry| all | entry.places.blocks)
    }
}

impl<P: Places> Entry<P> {
    /// It is a load whose bytes the asynchronous proxy may overwrite, whatever else is known: a proxy fence lies between.
    fn is_read_before_fence(&self, access: &Access) -> bool {
        !self.writes && access.has_fenced(&self.stamp)
    }

    #[inline]
    fn hit(&self, reason: Reason, shared: P) -> Hit {
        Hit { first: self.stamp, first_writes: self.writes, reason, place: shared.first() }
    }
}
