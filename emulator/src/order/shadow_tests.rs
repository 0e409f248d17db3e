//! What the shadow remembers, and how much.

use super::super::{Footprint, Views};
use super::*;

pub fn by(actor: u32, epoch: u32, cluster: u32, views: &Views) -> Access<'_> {
    Access::new(Stamp::new(actor, epoch, 0, cluster), views)
}

/// Entries of all histories, granules that are split, and blocks that stand apart.
#[derive(Debug, Default, PartialEq)]
pub struct Remembered {
    pub entries: usize,
    pub split: usize,
    pub apart: u32,
}

pub fn remembered(shadow: &Shadow) -> Remembered {
    shadow.pages.iter().flatten().fold(Remembered::default(), |all, page| {
        let (entries, split, apart) = page.remembered();
        Remembered { entries: all.entries + entries, split: all.split + split, apart: all.apart + apart }
    })
}

/// What all CTAs read (an operand of a GEMM) costs no more with each.
#[test]
fn readers_of_many_clusters_are_not_all_remembered() {
    let views = Views::default();
    let read = || {
        let mut shadow = Shadow::default();
        for cluster in 0..100 {
            for actor in 0..4 {
                assert!(shadow.read(0, 16, &by(actor, 1, cluster, &views)).is_none());
            }
        }
        shadow
    };
    let remembered = remembered(&read()).entries;
    assert!(remembered <= 8, "{remembered}");
    for cluster in [0, 1, 50] {
        let conflict = read().write(0, 16, &by(0, 1, cluster, &views));
        assert!(conflict.is_some(), "a write by cluster {cluster}");
    }
}

/// That two clusters have read a granule is known of each granule, whichever two.
#[test]
fn readers_of_different_clusters_are_counted_for_each_granule() {
    let views = Views::default();
    let mut shadow = Shadow::default();
    for (granule, cluster) in [(0, 1), (0, 2), (1, 1), (1, 3), (2, 3), (2, 2), (3, 3)] {
        shadow.read(16 * granule, 16, &by(0, 1, cluster, &views));
    }
    shadow.read(0, 64, &by(0, 1, 0, &views));
    // Ordered after all readers but that of cluster 0.
    let mut knows = Views::default();
    for cluster in 1..4 {
        let mut theirs = Views::default();
        theirs.hb.raise(0, 1);
        knows.learn(cluster, &theirs);
    }
    for granule in 0..4 {
        let conflict = shadow.write(16 * granule, 16, &by(0, 1, 5, &knows));
        assert_eq!(conflict.map(|c| c.first.cluster), (granule == 3).then_some(0), "granule {granule}");
    }
}

/// Of several readers of a byte, the one that came first is named, also where another has a part in its entry.
#[test]
fn the_oldest_of_several_readers_is_named() {
    let views = Views::default();
    let mut shadow = Shadow::default();
    for (start, actor) in [(0, 0), (16, 1), (16, 0)] {
        assert!(shadow.read(start, 16, &by(actor, 1, 0, &views)).is_none());
    }
    let conflict = shadow.write(16, 16, &by(2, 1, 0, &views)).expect("nothing is ordered");
    assert_eq!((conflict.first.actor, conflict.first_writes, conflict.byte), (1, false, 16));
}

/// A read that conflicts is remembered before somebody asks which of its bytes conflict. That it has read them is then no reason for it
/// to come after their writer; that somebody else has, whom it comes after, is one.
#[test]
fn a_reader_does_not_excuse_itself() {
    let views = Views::default();
    let write = Stamp::asynchronous(0, 1, 5, 0);
    let read = Access { transitive: true, ..by(1, 1, 0, &views) };
    let mut shadow = Shadow::default();
    assert!(shadow.write(0, 512, &Access::new(write, &views)).is_none());
    assert!(!shadow.touch_all([Area::of_block(0, 0xffff)], &read, false));
    for granule in 0..32 {
        let conflict = shadow.read(16 * granule, 16, &read);
        assert_eq!(conflict.map(|c| (c.first.site, c.byte)), Some((5, 16 * granule)));
    }
    let knows = |actor, epoch| {
        let mut views = Views::default();
        views.hb.raise(actor, epoch);
        views
    };
    // Actor 2 comes after the write, and actor 3 after actor 2 alone.
    let (second, third) = (knows(0, 1), knows(2, 1));
    assert!(shadow.read(512 - 16, 16, &Access { transitive: true, ..by(2, 1, 0, &second) }).is_none());
    assert!(shadow.read(512 - 16, 16, &Access { transitive: true, ..by(3, 1, 0, &third) }).is_none());
    assert!(shadow.read(0, 16, &Access { transitive: true, ..by(3, 1, 0, &third) }).is_some());
}

#[test]
fn a_tile_costs_an_entry_a_page() {
    let views = Views::default();
    let mut shadow = Shadow::default();
    for row in 0..128 {
        shadow.write(row * 512, 512, &by(0, 1, 0, &views));
    }
    assert_eq!(remembered(&shadow).entries, 2);
    // The slices of an operand, each twice.
    for (slice, again) in (0..4).flat_map(|slice| [(slice, 0), (slice, 1)]) {
        let granules =
            (0..128).flat_map(|row| (0..2).map(move |half| row * 128 + ((2 * slice + half) ^ (row % 8)) * 16));
        shadow.touch_all(Footprint::new(granules).areas(24), &by(0, 2 + slice as u32 + 4 * again, 0, &views), false);
    }
    assert_eq!(remembered(&shadow).entries, 2 + 2 * 4);
    for row in 0..128 {
        shadow.write(row * 512, 512, &by(0, 2 + row as u32, 0, &views));
    }
    assert!(remembered(&shadow).entries <= 128, "{:?}", remembered(&shadow));
}

/// Whatever is accessed, a page holds so many bytes.
#[test]
fn what_is_remembered_is_bounded() {
    let views = Views::default();
    let mut shadow = Shadow::default();
    for (epoch, granule) in (1..).zip((0..64 << 10).map(|n| n * 37 % 2048)) {
        shadow.write(granule * 16, 16, &by(0, epoch, 0, &views));
    }
    let bytes: usize = shadow.pages.iter().flatten().map(|page| page.bytes()).sum();
    assert_eq!((remembered(&shadow).entries, remembered(&shadow).apart), (2048, 32));
    assert!(bytes < 4 * PAGE as usize, "{bytes}");
}

#[test]
fn granules_written_in_parts_are_one_again_when_all_bytes_are_the_same() {
    let views = Views::default();
    let mut shadow = Shadow::default();
    for part in 0..4 {
        shadow.write(4 * part, 4, &by(0, 1, 0, &views));
        assert_eq!(remembered(&shadow).split, usize::from(part < 3), "{part}");
    }
    shadow.read(20, 8, &by(0, 1, 0, &views));
    assert_eq!(remembered(&shadow).split, 1);
    shadow.write_mask(0, 0b11, &by(0, 2, 0, &views));
    assert_eq!((remembered(&shadow).split, remembered(&shadow).entries), (0, 1));
}
