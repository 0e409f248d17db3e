//! Who touched each of up to 64 places last.

use super::stamp::{Access, Reason, Stamp};

/// An access, and the places for which it is remembered.
#[derive(Clone, Copy, Debug)]
struct Entry {
    places: u64,
    stamp: Stamp,
    writes: bool,
}

/// The last write of each place and the reads since then. Entries of the same place lie in the order of their accesses; a
/// place has one write at most.
#[derive(Clone, Debug, Default)]
pub(super) struct History(Vec<Entry>);

/// So many entries are looked at for one of the same access, to join: the parts of an access follow each other closely.
const NEAR: usize = 4;

/// Entries that have no places left.
#[derive(Default)]
struct Empty {
    count: usize,
    first: Option<usize>,
}

impl Empty {
    fn see(&mut self, n: usize, entry: &Entry) {
        if entry.places == 0 {
            self.count += 1;
            self.first = self.first.or(Some(n));
        }
    }

    fn remove_from(&self, entries: &mut Vec<Entry>) {
        if self.count > 0 {
            entries.retain(|entry| entry.places != 0);
        }
    }
}

/// Places that other clusters than that of the access have read. More than two clusters are rare: no place has more.
#[derive(Default)]
struct Others {
    one: (u32, u64),
    two: (u32, u64),
    more: bool,
}

impl Others {
    fn see(&mut self, cluster: u32, places: u64) {
        if self.one.1 == 0 || self.one.0 == cluster {
            self.one = (cluster, self.one.1 | places);
        } else if self.two.1 == 0 || self.two.0 == cluster {
            self.two = (cluster, self.two.1 | places);
        } else {
            self.more = true;
        }
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
    fn weight(&self) -> (Reason, u32, bool) {
        (self.reason, self.place, !self.first_writes)
    }

    fn heavier(known: Option<Hit>, new: Hit) -> Option<Hit> {
        match known {
            Some(known) if known.weight() <= new.weight() => Some(known),
            _ => Some(new),
        }
    }
}

impl History {
    /// Checks and remembers an access to these places. Gives the conflict that weighs most.
    #[inline]
    pub fn touch(&mut self, places: u64, access: &Access, writes: bool) -> Option<Hit> {
        if writes { self.write(places, access) } else { self.read(places, access) }
    }

    fn write(&mut self, places: u64, access: &Access) -> Option<Hit> {
        let new = Entry { places, stamp: access.stamp, writes: true };
        // Mostly one access covered all that this one covers, or less.
        if let [only] = &mut self.0[..]
            && only.places & !places == 0
        {
            let found = access.races(&only.stamp).map(|reason| only.hit(reason, only.places));
            *only = new;
            return found;
        }
        let mut found = None;
        let mut empty = Empty::default();
        for (n, entry) in self.0.iter_mut().enumerate() {
            let shared = entry.places & places;
            if shared == 0 {
                continue;
            }
            if let Some(reason) = access.races(&entry.stamp) {
                found = Hit::heavier(found, entry.hit(reason, shared));
            }
            entry.places &= !shared;
            empty.see(n, entry);
        }
        let last = self.0.len().saturating_sub(NEAR);
        match (self.0[last..].iter_mut().rev().find(|e| e.writes && e.stamp == new.stamp), empty.first) {
            (Some(same), _) => same.places |= places,
            (None, Some(n)) => {
                // Where among the others a write lies does not matter.
                self.0[n] = new;
                empty.count -= 1;
            }
            (None, None) => self.push(new),
        }
        empty.remove_from(&mut self.0);
        found
    }

    /// Whether a write of these places races with nothing.
    pub fn lets_write(&self, places: u64, access: &Access) -> bool {
        self.0.iter().all(|entry| entry.places & places == 0 || access.races(&entry.stamp).is_none())
    }

    fn read(&mut self, places: u64, access: &Access) -> Option<Hit> {
        let mut found = None;
        let mut others = Others::default();
        let mut empty = Empty::default();
        for (n, entry) in self.0.iter_mut().enumerate() {
            let shared = entry.places & places;
            if shared == 0 {
                continue;
            }
            if entry.writes {
                if let Some(reason) = access.races(&entry.stamp) {
                    found = Hit::heavier(found, entry.hit(reason, shared));
                }
            } else if access.unordered(&entry.stamp).is_none() {
                // One reader is enough to remember when the new one comes after it.
                entry.places &= !shared;
                empty.see(n, entry);
            } else if entry.stamp.cluster != access.stamp.cluster {
                others.see(entry.stamp.cluster, shared);
            }
        }
        empty.remove_from(&mut self.0);
        // A write is hardly ordered after the readers of two clusters and not after this one.
        let Others { one, two, more } = others;
        let crowded = if more { self.read_by_two_others(access.stamp.cluster) } else { one.1 & two.1 };
        self.add_read(places & !crowded, access.stamp);
        found
    }

    /// Places of which readers of two clusters are remembered, beside this one.
    #[cold]
    fn read_by_two_others(&self, cluster: u32) -> u64 {
        let others = || self.0.iter().filter(|entry| !entry.writes && entry.stamp.cluster != cluster);
        others().enumerate().fold(0, |all, (n, one)| {
            let apart = others().take(n).filter(|other| other.stamp.cluster != one.stamp.cluster);
            apart.fold(all, |all, other| all | one.places & other.places)
        })
    }

    /// Adds to the latest entry of the same read, unless others have read one of the places since.
    fn add_read(&mut self, places: u64, stamp: Stamp) {
        if places == 0 {
            return;
        }
        for entry in self.0.iter_mut().rev().take(NEAR) {
            if !entry.writes && entry.stamp == stamp {
                entry.places |= places;
                return;
            }
            if !entry.writes && entry.places & places != 0 {
                break;
            }
        }
        self.push(Entry { places, stamp, writes: false });
    }

    /// Most histories stay at one or two entries, and there are many: room for more is made late.
    fn push(&mut self, entry: Entry) {
        let n = self.0.len();
        if n == self.0.capacity() {
            self.0.reserve_exact(if n < 2 { 1 } else { n.max(6) });
        }
        self.0.push(entry);
    }

    /// Forgets a place; gives its history, as that of all these places.
    pub fn split_off(&mut self, place: u32, places: u64) -> History {
        let bit = 1 << place;
        let has = |entry: &&Entry| entry.places & bit != 0;
        let part = self.0.iter().filter(has).map(|entry| Entry { places, ..*entry }).collect();
        self.forget(bit);
        History(part)
    }

    /// Whether all these places have the same history.
    pub fn is_uniform(&self, places: u64) -> bool {
        self.0.iter().all(|entry| entry.places == places)
    }

    /// Takes the history of all of another's places as that of one place, which has none here.
    pub fn merge(&mut self, place: u32, other: History) {
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

    fn forget(&mut self, places: u64) {
        self.0.retain_mut(|entry| {
            entry.places &= !places;
            entry.places != 0
        });
    }

    pub fn entries(&self) -> usize {
        self.0.len()
    }

    /// All that were accessed.
    pub fn places(&self) -> u64 {
        self.0.iter().fold(0, |all, entry| all | entry.places)
    }

    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.0.capacity() * size_of::<Entry>()
    }
}

impl Entry {
    #[inline]
    fn hit(&self, reason: Reason, shared: u64) -> Hit {
        Hit { first: self.stamp, first_writes: self.writes, reason, place: shared.trailing_zeros() }
    }
}
