//! The shadow against a model that keeps every byte by itself.

use super::super::{Footprint, Strength, Sum, Views};
use super::tests::{Remembered, by, remembered};
use super::*;
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

const CLUSTERS: u32 = 4;
const ACTORS: u32 = 5;
const EPOCHS: u32 = 4;
/// The ranks of the actors' CTAs; the last is an engine.
const HOMES: [u8; ACTORS as usize] = [0, 0, 1, 1, crate::order::NOWHERE];

/// Last writes, of each class that later ones do not cover, and the reads that are not ordered before a later one, oldest first.
#[derive(Clone, Default)]
struct Byte {
    writes: Vec<Stamp>,
    reads: Vec<Stamp>,
}

struct Model {
    /// Where the first lies.
    origin: u64,
    bytes: Vec<Byte>,
}

impl Model {
    fn granules(&mut self, all: impl Iterator<Item = u64>, access: &Access, writes: bool) -> Option<Conflict> {
        self.touch(all.flat_map(|n| n * GRANULE..(n + 1) * GRANULE), access, writes)
    }

    fn touch(&mut self, bytes: impl Iterator<Item = u64>, access: &Access, writes: bool) -> Option<Conflict> {
        let mut all = Vec::new();
        for at in bytes {
            let byte = &mut self.bytes[(at - self.origin) as usize];
            let mut check = |first: &Stamp, first_writes| {
                // Only what reads asks for scopes.
                let narrow = access.too_narrow(first).filter(|_| first_writes && !writes);
                all.extend(access.races(first).into_iter().chain(narrow).map(|reason| Conflict {
                    first: *first,
                    first_writes,
                    second_writes: writes,
                    reason,
                    byte: at,
                }));
            };
            byte.writes.iter().for_each(|first| check(first, true));
            if writes {
                byte.reads.iter().for_each(|first| check(first, false));
                // A sum leaves the last one, if that is another's that it does not come after, instead of what was beside that.
                let left: Vec<Stamp> = byte
                    .writes
                    .iter()
                    .filter(|first| first.sum == Sum::Last && access.stands_beside(first))
                    .copied()
                    .collect();
                byte.writes
                    .retain(|first| !(left.iter().any(|left| first.class() == left.class() && first.sum != Sum::No)));
                byte.writes.extend(left.iter().map(|left| Stamp { sum: Sum::Beside, ..*left }));
                byte.writes.retain(|first| !access.displaces(first));
                byte.reads.retain(|first| !access.displaces(first));
                byte.writes.push(access.stamp);
                continue;
            }
            byte.writes.retain(|first| !access.observes() || first.sum != Sum::Beside || access.races(first).is_some());
            byte.reads.retain(|first| access.unordered(first).is_some() || !access.stamp.covers(first));
            let mut others: Vec<u32> = byte.reads.iter().map(|read| read.cluster).collect();
            others.retain(|&cluster| cluster != access.stamp.cluster);
            others.sort_unstable();
            others.dedup();
            if others.len() < 2 {
                byte.reads.push(access.stamp);
            }
        }
        // What weighs most; of equal ones the lowest byte, then a write, then the oldest: the sort is stable.
        all.sort_by_key(|c| (c.reason, c.byte, !c.first_writes, c.first.class(), c.first.sum));
        all.first().copied()
    }
}

#[derive(Clone, Debug)]
enum Where {
    Range(u64, u64),
    Mask(u64, u64),
    Rows(Rows),
    /// The same granules of blocks, each the begin and the end of a run.
    Blocks(Vec<(u64, u64)>, u64),
}

#[derive(Clone, Debug)]
struct Step {
    place: Where,
    writes: bool,
    proxyless: bool,
    across: bool,
    stamp: Stamp,
    /// Whether scopes are looked at.
    scopes: bool,
    /// For each actor of each cluster, up to which epoch it is known to hb, fenced, before, after and scoped.
    known: Vec<[u32; 5]>,
}

impl Step {
    fn views(&self) -> Views {
        let mut views = Views::default();
        for cluster in 0..CLUSTERS {
            let mut theirs = Views::default();
            let into = if cluster == self.stamp.cluster { &mut views } else { &mut theirs };
            for actor in 0..ACTORS {
                let [hb, fenced, before, after, scoped] = self.known[(cluster * ACTORS + actor) as usize];
                into.hb.raise(actor, hb);
                into.fenced.raise(actor, fenced.min(hb));
                into.before.raise(actor, before.min(hb));
                into.after.raise(actor, after.min(hb));
                into.scoped.raise(actor, scoped.min(hb));
            }
            if cluster != self.stamp.cluster {
                views.learn(cluster, &theirs);
            }
        }
        views
    }
}

/// A memory of so many blocks that begins at a block of a page.
#[derive(Clone, Copy)]
struct Extent {
    first: u64,
    blocks: u64,
}

fn mask() -> impl Strategy<Value = u64> {
    let mask = prop_oneof![any::<u64>(), Just(u64::MAX), Just(0x0303_0c0c_3030_c0c0), Just(1), 1u64..256];
    mask.prop_map(|mask| mask.max(1))
}

fn place(Extent { first, blocks }: Extent) -> BoxedStrategy<Where> {
    let (origin, bytes) = (first * BLOCK, blocks * BLOCK);
    let few = prop_oneof![Just(4u64), Just(8), Just(16), Just(128), Just(512), Just(2048), 1u64..64, 1u64..bytes];
    let aligned = prop_oneof![Just(1u64), Just(4), Just(16), Just(128), Just(1024)];
    let range = (0..bytes, few, aligned).prop_map(move |(start, len, align)| {
        let start = start / align * align;
        Where::Range(origin + start, len.min(bytes - start))
    });
    let of_block = (0..blocks, mask()).prop_map(move |(block, mask)| Where::Mask(first + block, mask));
    let pitch = prop_oneof![3 => Just(BLOCK), 1 => Just(2 * BLOCK), 1 => Just(512), 1 => Just(48), 1 => Just(100)];
    let row = prop_oneof![Just(16u64), Just(128), Just(128), Just(1024), Just(1040), Just(4)];
    let rows = (0..bytes / 16, row, 1..32u64, pitch).prop_map(move |(start, row, count, pitch)| {
        let (start, row) = (16 * start, row.min(bytes - 16 * start));
        let count = count.min((bytes - start - row) / pitch + 1);
        Where::Rows(Rows { first: origin + start, bytes: row, count, pitch })
    });
    let run = (0..blocks, 1..blocks).prop_map(move |(start, len)| (first + start, first + (start + len).min(blocks)));
    let of_blocks = (vec(run, 1..3), mask()).prop_map(|(runs, mask)| Where::Blocks(runs, mask));
    prop_oneof![2 => range, 1 => of_block, 1 => rows, 1 => of_blocks].boxed()
}

/// Single granules, and now and then all of some blocks.
fn crowd(Extent { first, blocks }: Extent) -> BoxedStrategy<Where> {
    let one = (0..blocks, 0..64u32).prop_map(move |(block, granule)| Where::Mask(first + block, 1 << granule));
    let all = (0..blocks).prop_map(move |from| Where::Range((first + from) * BLOCK, (blocks - from) * BLOCK));
    prop_oneof![40 => one, 1 => all].boxed()
}

fn step(place: BoxedStrategy<Where>) -> impl Strategy<Value = Step> {
    let strength = prop_oneof![
        3 => Just(Strength::Weak),
        1 => (0u8..2).prop_map(Strength::Cta),
        1 => Just(Strength::Cluster),
        1 => Just(Strength::Gpu)
    ];
    let cluster = prop_oneof![3 => Just(0), 1 => 0..CLUSTERS];
    let stamp = (0..ACTORS, 0..=EPOCHS, 0u32..3, cluster, any::<bool>(), strength, any::<bool>()).prop_map(
        |(actor, epoch, site, cluster, asynchronous, strength, adds)| Stamp {
            actor,
            epoch,
            site,
            cluster,
            asynchronous,
            strength,
            sum: if adds && strength != Strength::Weak { Sum::Last } else { Sum::No },
        },
    );
    // The same few again and again: their entries are joined.
    let again = (0..3u32, 0..2u32).prop_map(|(actor, site)| Stamp::new(actor, 1, site, 0));
    let sums = (0..3u32, 0..2u32).prop_map(|(actor, cluster)| Stamp::new(actor, 1, 0, cluster).adds());
    let stamp = prop_oneof![4 => stamp, 6 => again, 3 => sums];
    // Most is known, or nothing would ever be forgotten; of some actors nothing is.
    let epoch = || prop_oneof![2 => Just(EPOCHS), 1 => 0..=EPOCHS];
    let of_one = prop_oneof![2 => [epoch(), epoch(), epoch(), epoch(), epoch()], 1 => Just([0; 5])];
    let known = vec(of_one, (CLUSTERS * ACTORS) as usize);
    let rare = || prop::bool::weighted(0.2);
    (place, prop::bool::weighted(0.3), rare(), rare(), any::<bool>(), stamp, known).prop_map(
        |(place, writes, proxyless, across, scopes, stamp, known)| Step {
            place,
            writes,
            proxyless,
            across,
            stamp,
            scopes,
            known,
        },
    )
}

/// What a run of the steps came across.
#[derive(Clone, Copy, Default)]
struct Seen {
    conflicts: usize,
    /// Those that a scope is to blame for.
    narrow: usize,
    /// Those with a sum that lies beside the last one.
    beside: usize,
    /// Steps after which more blocks stood apart in their pages, or fewer.
    more: usize,
    fewer: usize,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Seen) {
        self.conflicts += other.conflicts;
        self.narrow += other.narrow;
        self.beside += other.beside;
        self.more += other.more;
        self.fewer += other.fewer;
    }
}

fn same(Extent { first, blocks }: Extent, steps: &[Step]) -> Result<Seen, TestCaseError> {
    let mut shadow = Shadow::default();
    let mut model = Model { origin: first * BLOCK, bytes: vec![Byte::default(); (blocks * BLOCK) as usize] };
    let (mut seen, mut apart) = (Seen::default(), 0);
    for (n, step) in steps.iter().enumerate() {
        let views = step.views();
        let (writes, across) = (step.writes, step.across);
        let stamp = if writes { step.stamp } else { Stamp { sum: Sum::No, ..step.stamp } };
        let homes = step.scopes.then_some(&HOMES[..]);
        let access = Access { proxyless: step.proxyless, across, homes, ..Access::new(stamp, &views) };
        let by_range = |shadow: &mut Shadow, start, len| {
            if writes { shadow.write(start, len, &access) } else { shadow.read(start, len, &access) }
        };
        let by_mask = |shadow: &mut Shadow, block, mask| {
            if writes { shadow.write_mask(block, mask, &access) } else { shadow.read_mask(block, mask, &access) }
        };
        let (found, expected): (Vec<_>, Vec<_>) = match &step.place {
            &Where::Range(start, len) => {
                (vec![by_range(&mut shadow, start, len)], vec![model.touch(start..start + len, &access, writes)])
            }
            &Where::Mask(block, mask) => {
                (vec![by_mask(&mut shadow, block, mask)], vec![model.granules(of_block(block, mask), &access, writes)])
            }
            // Row by row, if there is a conflict.
            &Where::Rows(rows) => {
                let starts = (0..rows.count).map(|n| rows.first + n * rows.pitch);
                let clean = shadow.touch_rows(rows, &access, writes);
                let found = starts.clone().map(|at| (!clean).then(|| by_range(&mut shadow, at, rows.bytes)).flatten());
                (found.collect(), starts.map(|at| model.touch(at..at + rows.bytes, &access, writes)).collect())
            }
            // Granule by granule, if there is a conflict.
            Where::Blocks(runs, mask) => {
                let granules = runs.iter().flat_map(|&(from, to)| from..to).flat_map(|block| of_block(block, *mask));
                let origin = runs.iter().map(|run| run.0).min().unwrap_or(0);
                let footprint = Footprint::new(granules.map(|n| (n - origin * 64) * GRANULE));
                let clean = shadow.touch_all(footprint.areas(origin), &access, writes);
                let single: Vec<u64> = footprint.from(origin).flat_map(|(block, mask)| of_block(block, mask)).collect();
                let found =
                    single.iter().map(|&n| (!clean).then(|| by_mask(&mut shadow, n / 64, 1 << (n % 64))).flatten());
                (found.collect(), single.iter().map(|&n| model.granules([n].into_iter(), &access, writes)).collect())
            }
        };
        seen.conflicts += expected.iter().flatten().count();
        seen.beside += expected.iter().flatten().filter(|conflict| conflict.first.sum == Sum::Beside).count();
        seen.narrow += expected.iter().flatten().filter(|conflict| conflict.reason == Reason::TooNarrow).count();
        prop_assert_eq!(format!("{found:?}"), format!("{expected:?}"), "step {}: {:?}", n, step);
        let before = std::mem::replace(&mut apart, remembered(&shadow).apart);
        seen.more += usize::from(apart > before);
        seen.fewer += usize::from(apart < before);
    }
    Ok(seen)
}

/// The numbers of these granules of a block.
fn of_block(block: u64, mask: u64) -> impl Iterator<Item = u64> + Clone {
    (0..64).filter(move |granule| mask >> granule & 1 == 1).map(move |granule| block * 64 + granule)
}

fn random(cases: u32, steps: std::ops::Range<usize>, extent: Extent, place: BoxedStrategy<Where>) -> Seen {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let seen = std::cell::Cell::new(Seen::default());
    let run = runner.run(&vec(step(place), steps), |steps| {
        let mut all = seen.get();
        all += same(extent, &steps)?;
        seen.set(all);
        Ok(())
    });
    run.unwrap_or_else(|failure| panic!("{failure}"));
    seen.get()
}

/// Most accesses meet others, in two pages.
#[test]
fn conflicts_are_those_of_a_model_that_keeps_every_byte() {
    let extent = Extent { first: 31, blocks: 3 };
    let seen = random(200, 1..80, extent, place(extent));
    assert!(seen.conflicts > 1000, "the accesses are such that many conflict: {}", seen.conflicts);
    assert!(seen.narrow > 10, "some because of a scope: {}", seen.narrow);
    assert!(seen.beside > 10, "some with a sum beside the last: {}", seen.beside);
    assert!(seen.more > 100 && seen.fewer > 100, "blocks come and go: {} {}", seen.more, seen.fewer);
}

/// Rectangles in all their combinations.
#[test]
fn conflicts_of_many_blocks_are_those_of_the_model() {
    let extent = Extent { first: 20, blocks: 24 };
    let seen = random(40, 1..60, extent, place(extent));
    assert!(seen.conflicts > 1000, "the accesses are such that many conflict: {}", seen.conflicts);
    assert!(seen.narrow > 10, "some because of a scope: {}", seen.narrow);
    assert!(seen.beside > 10, "some with a sum beside the last: {}", seen.beside);
    assert!(seen.more > 100 && seen.fewer > 10, "blocks come and go: {} {}", seen.more, seen.fewer);
}

/// Pages that have more rectangles than are looked through, again and again.
#[test]
fn conflicts_in_crowded_pages_are_those_of_the_model() {
    let extent = Extent { first: 29, blocks: 6 };
    let seen = random(24, 300..500, extent, crowd(extent));
    assert!(seen.conflicts > 1000, "the accesses are such that many conflict: {}", seen.conflicts);
    assert!(seen.narrow > 10, "some because of a scope: {}", seen.narrow);
    assert!(seen.beside > 5, "some with a sum beside the last: {}", seen.beside);
    assert!(seen.more > 10 && seen.fewer > 5, "pages fill up and are emptied: {} {}", seen.more, seen.fewer);
}

/// Many read the same granules, each in its own order, so that their entries cannot be joined.
#[test]
fn a_crowd_of_readers_is_remembered_granule_by_granule() {
    let known = vec![[0; 5]; (CLUSTERS * ACTORS) as usize];
    let step = |place, writes, actor, site| {
        let stamp = Stamp::new(actor, 1, site, 0);
        Step { place, writes, proxyless: false, across: false, stamp, scopes: false, known: known.clone() }
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
    let seen = same(Extent { first: 0, blocks: 1 }, &steps).unwrap_or_else(|failure| panic!("{failure}"));
    assert!(seen.conflicts > 100);
    let views = Views::default();
    let mut shadow = Shadow::default();
    for Step { place, stamp, .. } in steps.iter().filter(|step| !step.writes) {
        if let Where::Mask(block, mask) = *place {
            shadow.read_mask(block, mask, &Access::new(*stamp, &views));
        }
    }
    assert!(remembered(&shadow).split > 32, "{}", remembered(&shadow).split);
    shadow.write_mask(0, u64::MAX, &by(4, 1, 0, &views));
    assert_eq!(remembered(&shadow), Remembered { entries: 1, split: 0, apart: 0 });
}
