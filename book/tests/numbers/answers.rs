//! Answers that say what a run shows: who waits, who arrives, who has work.

use super::{Claims, K4, PAIRS, SMALL, STEP_2};
use crate::runs;
use emulator::{CopyKind, Event, EventKind};
use std::collections::BTreeMap;

/// Clusters of two CTAs on a B200.
const CLUSTERS: u64 = 74;

/// The numbers of these answers.
pub fn all(claims: &mut Claims) {
    claims.cycles(
        "step02.md",
        "takes {} cycles instead of {} at K = 512.",
        &[("meets_behind_2", STEP_2), ("2", STEP_2)],
    );
    a_grid_larger_than_the_gpu(claims);
    the_smallest_problem(claims);
    let both = [("ring_of_products_5", SMALL), ("5", SMALL)];
    claims.cycles("step05.md", "is right as well, and takes {} cycles: the single barrier {}.", &both);
    the_other_cta_of_a_pair(claims);
    two_consumers(claims);
}

/// Step 3, exercise 3: not all CTAs run at the same time.
fn a_grid_larger_than_the_gpu(claims: &mut Claims) {
    let mut begins = BTreeMap::new();
    for event in &claims.runs.report("3", [4096, 4096, 64]).trace {
        let begin = begins.entry(event.cta).or_insert(event.start);
        *begin = event.start.min(*begin);
    }
    let first = begins.values().min().copied().unwrap_or_default();
    let at_once = begins.values().filter(|begin| **begin == first).count();
    let last = begins.values().max().copied().unwrap_or_default();
    claims.numbers(
        "step03.md",
        "there are {} CTAs. In the emulator's run {} of them begin at once, and the last begins in cycle {}:",
        &[begins.len() as u64, at_once as u64, last],
    );
}

/// Step 4, exercise 3: what is announced where nearly nothing lies inside.
fn the_smallest_problem(claims: &mut Claims) {
    let size = [1, 8, 8];
    let announced = |event: &Event| match event.kind {
        EventKind::BarrierArrive { announced, .. } if announced > 0 => Some(u64::from(announced)),
        _ => None,
    };
    let all: Vec<u64> = claims.runs.events("4", size).iter().filter_map(announced).collect();
    let [m, n, k] = size.map(u64::from);
    let inside = (m + n) * k * 2;
    claims.numbers(
        "step04.md",
        "{}, in {} round: a run says so. {} of these bytes lie inside of A and B,",
        &[all[0], all.len() as u64, inside],
    );
}

/// Step 9, exercises 2 and 3: what rank 1 uses of its barriers, and what each CTA loads of B.
fn the_other_cta_of_a_pair(claims: &mut Claims) {
    let trace = claims.runs.report("9", PAIRS).trace.clone();
    let (mut made, mut used) = (BTreeMap::new(), BTreeMap::new());
    for event in &trace {
        match &event.kind {
            EventKind::BarrierInit { barrier, .. } if barrier.cta == 1 => *made.entry(barrier.offset).or_insert(0) += 1,
            EventKind::BarrierArrive { barrier, .. } | EventKind::BarrierWait { barrier, .. } if barrier.cta == 1 => {
                *used.entry(barrier.offset).or_insert(0) += 1;
            }
            EventKind::Commit { barriers, .. } => {
                for barrier in barriers.iter().filter(|barrier| barrier.cta == 1) {
                    *used.entry(barrier.offset).or_insert(0) += 1;
                }
            }
            EventKind::Copy(copy) => {
                for barrier in copy.barriers.iter().filter(|barrier| barrier.cta == 1) {
                    *used.entry(barrier.offset).or_insert(0) += 1;
                }
            }
            _ => {}
        }
    }
    let idle: Vec<i32> = made.keys().filter(|offset| !used.contains_key(offset)).copied().collect();
    let mut named = runs::barriers("9", PAIRS, "tma2mma");
    let stages = named.len() as u64;
    named.extend(runs::barriers("9", PAIRS, "ld2mma"));
    assert_eq!(idle, named, "step09.md: the idle barriers of rank 1 are others than `tma2mma` and `ld2mma`");
    claims.numbers(
        "step09.md",
        "Of its {} barriers {} are made and never used: the {} of `tma2mma`, and `ld2mma`.",
        &[made.len() as u64, idle.len() as u64, stages],
    );

    let loads = |cta: u32| {
        let of_b = trace.iter().filter(move |event| event.cta == cta).find_map(|event| match &event.kind {
            EventKind::Copy(copy) if copy.kind == CopyKind::Load && copy.buffer == Some(1) => Some(copy),
            _ => None,
        });
        let copy = of_b.unwrap_or_else(|| panic!("CTA {cta} loads nothing of B"));
        (copy.coordinates[1] as u64, u64::from(copy.extents[1]))
    };
    let width = trace.iter().find_map(|event| match &event.kind {
        EventKind::Mma(mma) => Some(u64::from(mma.shape[1])),
        _ => None,
    });
    let [(first, rows), (second, other)] = [loads(0), loads(1)];
    assert_eq!(rows, other, "step09.md: the CTAs load as many rows of B");
    claims.numbers(
        "step09.md",
        "In a run the first box of B has {} rows in each CTA, from row {} on in the leader and from row {} on in the other, and the MMA is {} columns wide.",
        &[rows, first, second, width.unwrap_or_default()],
    );
}

/// Step 10, exercises 2 to 4.
fn two_consumers(claims: &mut Claims) {
    let page = "step10.md";
    claims.cycles(
        page,
        "takes {} cycles at 4096 × 4096 × 4096, where two take {}:",
        &[("one_issues_10", K4), ("10", K4)],
    );

    // How many tiles each cluster multiplies: the leader's MMAs, of which a tile has so many at K = 64.
    let (consumers, slices) = (2, 4);
    let tiles = |claims: &mut Claims, edge: u32| {
        let mut of_cluster: BTreeMap<u32, u64> = BTreeMap::new();
        for event in &claims.runs.report("10", [edge, edge, 64]).trace {
            if matches!(event.kind, EventKind::Mma(_)) {
                *of_cluster.entry(event.cta / 2).or_default() += 1;
            }
        }
        let tiles: Vec<u64> = of_cluster.values().map(|mmas| mmas / (consumers * slices)).collect();
        let most = tiles.iter().max().copied().unwrap_or_default();
        let with_most = tiles.iter().filter(|count| **count == most).count() as u64;
        (tiles.iter().sum::<u64>(), tiles.len() as u64, most, with_most)
    };
    let (all, busy, most, _) = tiles(claims, 2048);
    assert_eq!((busy, most), (all, 1));
    claims.numbers(page, "2048 × 2048 has {} tiles, so {} clusters have none.", &[all, CLUSTERS - busy]);
    let (all, busy, most, with_most) = tiles(claims, 4096);
    assert_eq!((busy, most), (CLUSTERS, 2), "step10.md: at 4096 no cluster has more than two, and none has none");
    claims.numbers(
        page,
        "4096 × 4096 has {}: {} clusters have two and {} have one.",
        &[all, with_most, busy - with_most],
    );
    let (all, busy, most, with_most) = tiles(claims, 8192);
    claims.numbers(
        page,
        "8192 × 8192 has {}: {} clusters have {} and {} have one less.",
        &[all, with_most, most, busy - with_most],
    );

    let stages = runs::barriers("10", PAIRS, "mma2tma");
    let mut commits: BTreeMap<i32, Vec<(u64, u32)>> = BTreeMap::new();
    for event in claims.runs.events("10", PAIRS) {
        if let EventKind::Commit { barriers, .. } = &event.kind
            && stages.contains(&barriers[0].offset)
        {
            commits.entry(barriers[0].offset).or_default().push((event.end, event.issuer.warp));
        }
    }
    let first_of_two = commits.values_mut().flat_map(|commits| {
        commits.sort_unstable();
        commits.chunks(2).map(|two| two[0].1).collect::<Vec<_>>()
    });
    let first: Vec<u32> = first_of_two.collect();
    let by_warp_8 = first.iter().filter(|warp| **warp == 8).count() as u64;
    claims.numbers(
        page,
        "consumer 0's commit comes first in {} of {} phases, and that of consumer 1 in {}.",
        &[by_warp_8, first.len() as u64, first.len() as u64 - by_warp_8],
    );
}
