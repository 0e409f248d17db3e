//! Sets of places that a history remembers accesses of.

/// Places that were accessed together. Not each set of places is one of these.
pub(super) trait Places: Copy + PartialEq {
    /// Whether one can hold all of any two.
    const JOIN_ALWAYS: bool;

    fn is_empty(self) -> bool;

    /// Those that are in both.
    fn shared(self, other: Self) -> Self;

    /// Those that are not in the other: the second only if there are more than one can hold.
    fn without(self, other: Self) -> (Self, Option<Self>);

    /// All of both, if one can hold them. They have nothing in common.
    fn joined(self, other: Self) -> Option<Self>;

    /// The number of the first.
    fn first(self) -> u32;

    /// Whether all are in the other.
    #[inline]
    fn within(self, other: Self) -> bool {
        self.shared(other) == self
    }
}

/// A mask: up to 64 places, in any combination.
impl Places for u64 {
    const JOIN_ALWAYS: bool = true;

    #[inline]
    fn is_empty(self) -> bool {
        self == 0
    }

    #[inline]
    fn shared(self, other: u64) -> u64 {
        self & other
    }

    #[inline]
    fn without(self, other: u64) -> (u64, Option<u64>) {
        (self & !other, None)
    }

    #[inline]
    fn joined(self, other: u64) -> Option<u64> {
        Some(self | other)
    }

    #[inline]
    fn first(self) -> u32 {
        self.trailing_zeros()
    }
}

/// The same granules of each of some blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rectangle {
    pub blocks: u32,
    pub granules: u64,
}

impl Places for Rectangle {
    const JOIN_ALWAYS: bool = false;

    #[inline]
    fn is_empty(self) -> bool {
        self.blocks == 0 || self.granules == 0
    }

    #[inline]
    fn shared(self, other: Rectangle) -> Rectangle {
        Rectangle { blocks: self.blocks & other.blocks, granules: self.granules & other.granules }
    }

    /// Other blocks, and other granules of the same blocks.
    #[inline]
    fn without(self, other: Rectangle) -> (Rectangle, Option<Rectangle>) {
        let apart = Rectangle { blocks: self.blocks & !other.blocks, ..self };
        let beside = Rectangle { blocks: self.blocks & other.blocks, granules: self.granules & !other.granules };
        match (apart.is_empty(), beside.is_empty()) {
            (true, _) => (beside, None),
            (false, true) => (apart, None),
            (false, false) => (apart, Some(beside)),
        }
    }

    #[inline]
    fn joined(self, other: Rectangle) -> Option<Rectangle> {
        let all = Rectangle { blocks: self.blocks | other.blocks, granules: self.granules | other.granules };
        (self.blocks == other.blocks || self.granules == other.granules).then_some(all)
    }

    #[inline]
    fn first(self) -> u32 {
        self.blocks.trailing_zeros() * u64::BITS + self.granules.trailing_zeros()
    }

    /// An empty one is in any other, however it came to be empty.
    #[inline]
    fn within(self, other: Rectangle) -> bool {
        self.blocks & !other.blocks == 0 && self.granules & !other.granules == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places(r: Rectangle) -> Vec<u32> {
        let granules = |block: u32| (0..64u32).filter(move |g| r.granules >> g & 1 == 1).map(move |g| block * 64 + g);
        (0..32).filter(|block| r.blocks >> block & 1 == 1).flat_map(granules).collect()
    }

    fn rectangle() -> impl Strategy<Value = Rectangle> {
        let blocks = prop_oneof![Just(u32::MAX), Just(0b1111), Just(0b1100), any::<u32>(), Just(0)];
        let granules = prop_oneof![Just(u64::MAX), Just(0x00ff), Just(0xff00), any::<u64>()];
        (blocks, granules).prop_map(|(blocks, granules)| Rectangle { blocks, granules })
    }

    proptest! {
        #[test]
        fn rectangles_are_sets_of_places(a in rectangle(), b in rectangle()) {
            let (of_a, of_b) = (places(a), places(b));
            let both: Vec<u32> = of_a.iter().copied().filter(|n| of_b.contains(n)).collect();
            prop_assert_eq!(&places(a.shared(b)), &both);
            if !a.is_empty() {
                prop_assert_eq!(a.first(), of_a[0]);
                prop_assert_eq!(a.within(b), both.len() == of_a.len());
            }
            let (one, two) = a.without(b);
            let mut rest = places(one);
            rest.extend(two.into_iter().flat_map(places));
            rest.sort_unstable();
            prop_assert_eq!(&rest, &of_a.iter().copied().filter(|n| !of_b.contains(n)).collect::<Vec<_>>());
            prop_assert!(two.is_none_or(|two| !two.is_empty() && !one.is_empty()));
            if both.is_empty() && let Some(all) = a.joined(b) && !a.is_empty() && !b.is_empty() {
                let mut either: Vec<u32> = of_a.into_iter().chain(of_b).collect();
                either.sort_unstable();
                prop_assert_eq!(places(all), either);
            }
        }
    }
}
