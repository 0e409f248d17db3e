//! The shadow against a model that keeps every byte by itself.

use super::super::{Strength, Views};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const CLUSTERS: u32 = 4;
const ACTORS: u32 = 5;
const EPOCHS: u32 = 4;
const BYTES: u64 = 3 * BLOCK;

/// Last write, and the reads since that are not ordered before a later one, oldest first.
#[derive(Clone, Default)]
struct Byte {
    write: Option<Stamp>,
    reads: Vec<Stamp>,
}

struct Model(Vec<Byte>);

impl Model {
    fn touch(&mut self, bytes: impl Iterator<Item = u64>, access: &Access, writes: bool) -> Option<Conflict> {
        let mut all = Vec::new();
        for at in bytes {
            let byte = &mut self.0[at as usize];
            let mut check = |first: &Stamp, first_writes| {
                let reason = access.races(first);
                all.extend(reason.map(|reason| Conflict {
                    first: *first,
                    first_writes,
                    second_writes: writes,
                    reason,
                    byte: at,
                }));
            };
            byte.write.iter().for_each(|first| check(first, true));
            if writes {
                byte.reads.iter().for_each(|first| check(first, false));
                *byte = Byte { write: Some(access.stamp), reads: vec![] };
                continue;
            }
            byte.reads.retain(|first| access.unordered(first).is_some());
            let mut others: Vec<u32> = byte.reads.iter().map(|read| read.cluster).collect();
            others.retain(|&cluster| cluster != access.stamp.cluster);
            others.sort_unstable();
            others.dedup();
            if others.len() < 2 {
                byte.reads.push(access.stamp);
            }
        }
        // What weighs most; of equal ones the lowest byte, then the write, then the oldest read: the sort is stable.
        all.sort_by_key(|c| (c.reason, c.byte, !c.first_writes));
        all.first().copied()
    }
}

#[derive(Clone, Debug)]
enum Where {
    Range(u64, u64),
    Mask(u64, u64),
}

#[derive(Clone, Debug)]
struct Step {
    place: Where,
    writes: bool,
    proxyless: bool,
    stamp: Stamp,
    /// For each actor of each cluster, up to which epoch it is known to hb, fenced, before and after.
    known: Vec<[u32; 4]>,
}

impl Step {
    fn views(&self) -> Views {
        let mut views = Views::default();
        for cluster in 0..CLUSTERS {
            let mut theirs = Views::default();
            let into = if cluster == self.stamp.cluster { &mut views } else { &mut theirs };
            for actor in 0..ACTORS {
                let [hb, fenced, before, after] = self.known[(cluster * ACTORS + actor) as usize];
                into.hb.raise(actor, hb);
                into.fenced.raise(actor, fenced.min(hb));
                into.before.raise(actor, before.min(hb));
                into.after.raise(actor, after.min(hb));
            }
            if cluster != self.stamp.cluster {
                views.learn(cluster, &theirs);
            }
        }
        views
    }
}

fn place() -> impl Strategy<Value = Where> {
    let few = prop_oneof![Just(4u64), Just(8), Just(16), Just(128), Just(512), 1u64..64, 1u64..BYTES];
    let aligned = prop_oneof![Just(1u64), Just(4), Just(16), Just(128)];
    let range = (0..BYTES, few, aligned).prop_map(|(start, len, align)| {
        let start = start / align * align;
        Where::Range(start, len.min(BYTES - start))
    });
    let mask = prop_oneof![any::<u64>(), Just(u64::MAX), Just(0x0303_0c0c_3030_c0c0), Just(1), 1u64..256];
    let mask = (0..BYTES / BLOCK, mask).prop_map(|(block, mask)| Where::Mask(block, mask.max(1)));
    prop_oneof![2 => range, 1 => mask]
}

fn step() -> impl Strategy<Value = Step> {
    let strength = prop_oneof![
        3 => Just(Strength::Weak),
        1 => (0u8..2).prop_map(Strength::Cta),
        1 => Just(Strength::Cluster),
        1 => Just(Strength::Gpu)
    ];
    let cluster = prop_oneof![3 => Just(0), 1 => 0..CLUSTERS];
    let stamp = (0..ACTORS, 0..=EPOCHS, 0u32..3, cluster, any::<bool>(), strength).prop_map(
        |(actor, epoch, site, cluster, asynchronous, strength)| Stamp {
            actor,
            epoch,
            site,
            cluster,
            asynchronous,
            strength,
        },
    );
    // The same few again and again: their entries are joined.
    let again = (0..3u32, 0..2u32).prop_map(|(actor, site)| Stamp::new(actor, 1, site, 0));
    let stamp = prop_oneof![2 => stamp, 3 => again];
    // Most is known, or nothing would ever be forgotten; of some actors nothing is.
    let epoch = || prop_oneof![2 => Just(EPOCHS), 1 => 0..=EPOCHS];
    let of_one = prop_oneof![2 => [epoch(), epoch(), epoch(), epoch()], 1 => Just([0; 4])];
    let known = vec(of_one, (CLUSTERS * ACTORS) as usize);
    (place(), prop::bool::weighted(0.3), prop::bool::weighted(0.2), stamp, known)
        .prop_map(|(place, writes, proxyless, stamp, known)| Step { place, writes, proxyless, stamp, known })
}

fn same(steps: &[Step]) -> Result<usize, TestCaseError> {
    let mut shadow = Shadow::default();
    let mut model = Model(vec![Byte::default(); BYTES as usize]);
    let mut conflicts = 0;
    for (n, step) in steps.iter().enumerate() {
        let views = step.views();
        let access = Access { proxyless: step.proxyless, ..Access::new(step.stamp, &views) };
        let (found, expected) = match step.place {
            Where::Range(start, len) => {
                let found =
                    if step.writes { shadow.write(start, len, &access) } else { shadow.read(start, len, &access) };
                (found, model.touch(start..start + len, &access, step.writes))
            }
            Where::Mask(block, mask) => {
                let found = if step.writes {
                    let clean = shadow.lets_write(block, mask, &access);
                    let found = shadow.write_mask(block, mask, &access);
                    prop_assert!(!clean || found.is_none(), "step {}: {:?}", n, step);
                    found
                } else {
                    shadow.read_mask(block, mask, &access)
                };
                let granules = (0..64).filter(|granule| mask >> granule & 1 == 1);
                let bytes = granules.flat_map(|granule| {
                    let start = block * BLOCK + granule * GRANULE;
                    start..start + GRANULE
                });
                (found, model.touch(bytes, &access, step.writes))
            }
        };
        conflicts += usize::from(expected.is_some());
        prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"), "step {}: {:?}", n, step);
    }
    Ok(conflicts)
}

#[test]
fn conflicts_are_those_of_a_model_that_keeps_every_byte() {
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let conflicts = std::cell::Cell::new(0);
    let run = runner.run(&vec(step(), 1..80), |steps| {
        conflicts.set(conflicts.get() + same(&steps)?);
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    assert!(conflicts.get() > 1000, "the accesses are such that many conflict: {}", conflicts.get());
}

/// Many read the same granules, each in its own order, so that their entries cannot be joined.
#[test]
fn a_crowd_of_readers_is_remembered_granule_by_granule() {
    let known = vec![[0; 4]; (CLUSTERS * ACTORS) as usize];
    let step = |place, writes, actor, site| {
        let stamp = Stamp::new(actor, 1, site, 0);
        Step { place, writes, proxyless: false, stamp, known: known.clone() }
    };
    let granule = |n: u32| Where::Mask(0, 1 << (n % 64));
    let mut steps: Vec<Step> = vec![step(Where::Range(0, 1024), true, 0, 9), step(Where::Range(40, 4), true, 0, 8)];
    steps.extend(
        (0..64)
            .flat_map(|n| (0..4).map(move |actor| (n, actor)))
            .map(|(n, actor)| step(granule(n * (2 * actor + 1) + 7 * actor), false, actor, n % 5)),
    );
    steps.push(step(Where::Range(20, 500), false, 1, 6));
    steps.extend((0..8).map(|n| step(granule(9 * n), true, 4, n)));
    steps.push(step(Where::Range(0, 1024), true, 3, 7));
    steps.push(step(Where::Mask(0, u64::MAX), true, 2, 7));
    assert!(same(&steps).unwrap_or_else(|failure| panic!("{failure}")) > 100);
    let views = Views::default();
    let mut shadow = Shadow::default();
    for Step { place, stamp, .. } in steps.iter().filter(|step| !step.writes) {
        if let Where::Mask(block, mask) = *place {
            shadow.read_mask(block, mask, &Access::new(*stamp, &views));
        }
    }
    assert!(shadow.parts.len() > 32, "{}", shadow.parts.len());
    shadow.write_mask(0, u64::MAX, &by(4, 1, 0, &views));
    assert_eq!((shadow.parts.len(), remembered(&shadow)), (0, 1));
}

fn by(actor: u32, epoch: u32, cluster: u32, views: &Views) -> Access<'_> {
    Access::new(Stamp::new(actor, epoch, 0, cluster), views)
}

fn remembered(shadow: &Shadow) -> usize {
    let blocks = shadow.pages.iter().flatten().flat_map(|page| page.iter());
    let whole: usize = blocks.map(|block| block.history.entries()).sum();
    whole + shadow.parts.values().map(History::entries).sum::<usize>()
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
    let remembered = remembered(&read());
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

#[test]
fn a_tile_costs_an_entry_a_block() {
    let views = Views::default();
    let bytes = |shadow: &Shadow| -> usize {
        let pages = shadow.pages.iter().flatten();
        pages.map(|page| std::mem::size_of_val(&**page) + page.iter().map(|b| b.history.bytes()).sum::<usize>()).sum()
    };
    let mut shadow = Shadow::default();
    for row in 0..128 {
        shadow.write(row * 512, 512, &by(0, 1, 0, &views));
    }
    assert_eq!((remembered(&shadow), bytes(&shadow)), (64, 64 * 64));
    for row in 0..128 {
        shadow.write(row * 512, 512, &by(0, 2 + row as u32, 0, &views));
    }
    assert_eq!((remembered(&shadow), bytes(&shadow)), (128, 128 * 48));
}

#[test]
fn granules_written_in_parts_are_one_again_when_all_bytes_are_the_same() {
    let views = Views::default();
    let mut shadow = Shadow::default();
    for part in 0..4 {
        shadow.write(4 * part, 4, &by(0, 1, 0, &views));
        assert_eq!(shadow.parts.len(), usize::from(part < 3), "{part}");
    }
    shadow.read(20, 8, &by(0, 1, 0, &views));
    assert_eq!(shadow.parts.len(), 1);
    shadow.write_mask(0, 0b11, &by(0, 2, 0, &views));
    assert_eq!((shadow.parts.len(), remembered(&shadow)), (0, 1));
}
