//! How the loads of an epilogue go over the columns of a product: side by side, or one of them beside where the others leave room for it.

use crate::machine::tensor_memory::Halves;
use smallvec::SmallVec;

/// Columns, counted from the first of a product, without their end.
pub type Range = (i32, i32);

/// A statement loads these columns, so often.
#[derive(Clone, Copy, Debug)]
struct Load {
    halves: Halves,
    at: Range,
    site: u32,
    times: u32,
}

/// Those of one product.
#[derive(Clone, Debug, Default)]
pub struct Loads {
    all: SmallVec<[Load; 8]>,
    /// There are more than are remembered.
    overflown: bool,
}

/// A load that is not where the others leave room for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beside {
    pub site: u32,
    pub at: Range,
    pub room: Range,
    /// The loads are of some lanes only: of the upper half of each quarter, or of the lower one.
    pub upper: Option<bool>,
}

/// So many are remembered of a product.
const MOST: usize = 64;
/// Of fewer loads one may be meant to bring the columns of another one again.
const ENOUGH: usize = 4;

impl Loads {
    pub fn add(&mut self, halves: Halves, at: Range, site: u32) {
        let room = self.all.len() < MOST;
        match self.all.iter_mut().find(|load| (load.halves, load.at, load.site) == (halves, at, site)) {
            Some(load) => load.times += 1,
            None if !room => self.overflown = true,
            None => self.all.push(Load { halves, at, site, times: 1 }),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The one load, of those that bring as many columns as the product has, without which the others bring each column once, but for as many as it has.
    pub fn beside(&self, columns: u32) -> Option<Beside> {
        [false, true].into_iter().filter(|_| !self.overflown).find_map(|upper| self.beside_in(upper, columns as i32))
    }

    fn beside_in(&self, upper: bool, columns: i32) -> Option<Beside> {
        let of_half = || self.all.iter().filter(|load| load.halves.has(upper));
        // Each warp that reaches the lanes loads by itself.
        let warps = of_half().map(|load| load.times).min()?;
        if of_half().any(|load| load.times % warps != 0 || load.times / warps > 2) {
            return None;
        }
        let mut loads: SmallVec<[Load; 8]> = SmallVec::new();
        of_half().for_each(|load| loads.extend(std::iter::repeat_n(*load, (load.times / warps) as usize)));
        let wide = |(first, end): Range| end - first;
        if loads.iter().map(|load| wide(load.at)).sum::<i32>() != columns {
            return None;
        }
        let room_without = |n: usize| {
            let mut others: SmallVec<[Range; 8]> =
                loads.iter().enumerate().filter(|(other, _)| *other != n).map(|(_, load)| load.at).collect();
            others.sort_unstable();
            let (mut room, mut next) = (None, 0);
            for at in others.into_iter().chain([(columns, columns)]) {
                if at.0 > next && room.replace((next, at.0)).is_some() || at.0 < next {
                    return None;
                }
                next = at.1;
            }
            room.filter(|room| *room != loads[n].at && wide(*room) == wide(loads[n].at))
        };
        // Of two loads of the same columns, the one whose turn the room would be.
        let in_turn = |n: usize, room: Range| {
            let before = loads[..n].iter().all(|load| load.at < room);
            before && loads[n + 1..].iter().all(|load| load.at > room)
        };
        let mut which = (0..loads.len()).filter_map(|n| Some((n, room_without(n)?)));
        let first = which.next()?;
        let (n, room) = std::iter::once(first).chain(which).find(|&(n, room)| in_turn(n, room)).unwrap_or(first);
        let Load { at, site, halves, .. } = loads[n];
        let again = loads.iter().enumerate().any(|(other, load)| other != n && load.at == at);
        // The last load may be drawn back from columns that are nobody's.
        let drawn_back = room.1 == columns && at.0 < room.0;
        let upper = (halves != Halves::Both).then_some(upper);
        (!drawn_back && (!again || loads.len() >= ENOUGH)).then_some(Beside { site, at, room, upper })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn beside(loads: &[Range]) -> Option<(Range, Range)> {
        let mut all = Loads::default();
        for _ in 0..4 {
            (0..).zip(loads).for_each(|(site, &at)| all.add(Halves::Both, at, site));
        }
        all.beside(128).map(|beside| (beside.at, beside.room))
    }

    #[test]
    fn a_load_is_beside_where_the_others_leave_room_for_it() {
        assert_eq!(beside(&[(0, 32), (32, 64), (64, 96), (96, 128)]), None);
        assert_eq!(beside(&[(1, 33), (32, 64), (64, 96), (96, 128)]), Some(((1, 33), (0, 32))));
        assert_eq!(beside(&[(0, 32), (34, 66), (64, 96), (96, 128)]), Some(((34, 66), (32, 64))));
        assert_eq!(beside(&[(0, 32), (32, 64), (64, 96), (97, 129)]), Some(((97, 129), (96, 128))));
        assert_eq!(beside(&[(0, 64), (32, 64), (96, 128)]), Some(((32, 64), (64, 96))));
        assert_eq!(beside(&[(1, 129)]), Some(((1, 129), (0, 128))));
    }

    #[test]
    fn one_load_twice_is_told_by_its_turn() {
        assert_eq!(beside(&[(32, 64), (32, 64), (64, 96), (96, 128)]), Some(((32, 64), (0, 32))));
        assert_eq!(beside(&[(0, 32), (32, 64), (32, 64), (96, 128)]), Some(((32, 64), (64, 96))));
        // Two halves, of which one is read twice: it may be all that is wanted.
        assert_eq!(beside(&[(64, 128), (64, 128)]), None);
    }

    /// The last one begins earlier, so that all that it brings is of D.
    #[test]
    fn the_last_load_may_be_drawn_back() {
        assert_eq!(beside(&[(0, 32), (32, 64), (64, 96), (88, 120)]), None);
        assert_eq!(beside(&[(0, 32), (32, 64), (64, 96), (64, 96)]), None);
    }

    #[test]
    fn loads_that_bring_less_or_more_are_not_looked_at() {
        assert_eq!(beside(&[(0, 32), (32, 64), (65, 97)]), None);
        assert_eq!(beside(&[(0, 32), (32, 64), (64, 96), (96, 128), (0, 32)]), None);
    }
}
