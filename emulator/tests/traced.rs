//! The trace of a GEMM by pairs of CTAs: who asked for what, when, which engine worked on it, and whom it concerns.

mod common;

use common::load;
use common::pair::{TEXT, launch};
use emulator::{Actor, CopyKind, Event, EventKind, Issuer, Options};

const CLUSTERS: u32 = 2;
const TILES: u32 = 3;

fn trace(seed: Option<u64>) -> Vec<Event> {
    let options = Options { trace: true, seed, ..Default::default() };
    let report = emulator::run(&load(TEXT), &launch(256 * CLUSTERS as usize, 64 * TILES as usize), &options);
    assert!(report.is_clean(), "{:#?}", report.findings);
    report.trace
}

/// Events of one kind of a CTA's engines or warps.
fn of<'a, T>(trace: &'a [Event], pick: impl Fn(&'a Event) -> Option<T>) -> Vec<(&'a Event, T)> {
    trace.iter().filter_map(|event| Some((event, pick(event)?))).collect()
}

#[test]
fn events_are_in_order_of_time_then_of_clusters() {
    for seed in [None, Some(3)] {
        let trace = trace(seed);
        for two in trace.windows(2) {
            let key = |event: &Event| (event.start, event.issuer.cta / 2);
            assert!(key(&two[0]) <= key(&two[1]), "{two:#?}");
        }
        assert!(trace.iter().all(|event| event.issued <= event.start && event.start <= event.end));
        let own = |event: &Event| match event.actor {
            Actor::Warp(warp) => event.issuer.warp == warp && event.issued == event.start,
            _ => true,
        };
        assert!(trace.iter().all(own));
    }
}

#[test]
fn mmas_say_who_issued_them_and_where_they_add() {
    let trace = trace(None);
    let mmas = of(&trace, |event| if let EventKind::Mma(mma) = &event.kind { Some(mma) } else { None });
    assert_eq!(mmas.len() as u32, CLUSTERS * TILES * 4);
    for (event, mma) in &mmas {
        let leader = event.cta;
        assert_eq!(leader % 2, 0);
        assert_eq!(event.issuer, Issuer { cta: leader, warp: 1 });
        assert_eq!((event.actor, &mma.ctas[..], mma.column), (Actor::TensorCore, &[leader, leader + 1][..], 0));
        assert!(event.start < event.end);
    }
    // One tensor core works on one after the other, and they wait for it.
    let leader: Vec<_> = mmas.iter().filter(|(event, _)| event.cta == 0).collect();
    assert!(leader.windows(2).all(|two| two[0].0.start < two[1].0.start && two[0].0.issued < two[1].0.issued));
    assert!(leader.iter().any(|(event, _)| event.start > event.issued));
}

#[test]
fn copies_say_who_issued_them_where_they_go_and_whom_they_tell() {
    let trace = trace(None);
    let copies = of(&trace, |event| if let EventKind::Copy(copy) = &event.kind { Some(copy) } else { None });
    let (loads, stores): (Vec<_>, Vec<_>) = copies.into_iter().partition(|(_, copy)| copy.kind == CopyKind::Load);
    assert_eq!((loads.len() as u32, stores.len() as u32), (2 * CLUSTERS * TILES * 2, 2 * CLUSTERS * 4));
    for (event, copy) in loads.iter().chain(&stores) {
        assert_eq!((event.actor, event.issuer), (Actor::Tma, Issuer { cta: event.cta, warp: 0 }));
        assert_eq!((&copy.ctas[..], copy.tensor, copy.bytes), (&[event.cta][..], true, 16384));
    }
    for (event, copy) in &loads {
        assert!([0, 16384, 32768, 49152].contains(&copy.shared) && copy.buffer.is_some_and(|buffer| buffer < 2));
        // Both CTAs of a pair count on the leader's barrier of the stage.
        let stage = copy.shared / 32768;
        let barriers: Vec<_> = copy.barriers.iter().map(|barrier| (barrier.cta, barrier.offset)).collect();
        assert_eq!(barriers, [(event.cta & !1, 81920 + 8 * stage)]);
    }
    assert!(stores.iter().all(|(_, copy)| (copy.shared, copy.buffer) == (65536, Some(2)) && copy.barriers.is_empty()));
}

#[test]
fn commits_say_all_their_barriers_and_arrivals_what_they_announce() {
    let trace = trace(None);
    for cluster in 0..CLUSTERS {
        let leader = 2 * cluster;
        let commits = of(&trace, |event| match &event.kind {
            EventKind::Commit { barriers, covers } if event.cta == leader => Some((barriers, *covers)),
            _ => None,
        });
        let covers: Vec<u32> = commits.iter().map(|(_, (_, covers))| *covers).collect();
        assert_eq!(covers, [4, 4, 4, 0]);
        for (n, (event, (barriers, _))) in commits.iter().enumerate() {
            assert_eq!(event.issuer, Issuer { cta: leader, warp: 1 });
            let offset = if n == 3 { 81952 } else { 81936 + 8 * (n as i32 % 2) };
            let named: Vec<_> = barriers.iter().map(|barrier| (barrier.cta, barrier.offset)).collect();
            assert_eq!(named, [(leader, offset), (leader + 1, offset)]);
            // It begins when the last MMA that it covers is complete.
            let last = trace
                .iter()
                .filter(|mma| matches!(mma.kind, EventKind::Mma(_)) && mma.cta == leader && mma.issued < event.issued);
            assert_eq!(Some(event.start), last.map(|mma| mma.end).max());
        }
        let arrivals = of(&trace, |event| match event.kind {
            EventKind::BarrierArrive { barrier, announced, .. } if barrier.cta == leader => Some(announced),
            _ => None,
        });
        let announced = arrivals.iter().filter(|(event, _)| event.actor == Actor::Warp(0));
        let announced: Vec<_> = announced.map(|(event, bytes)| (event.issuer, *bytes)).collect();
        assert_eq!(announced, vec![(Issuer { cta: leader, warp: 0 }, 65536); TILES as usize]);
        let engine = arrivals.iter().filter(|(event, _)| event.actor == Actor::TensorCore);
        assert!(engine.clone().count() as u32 == TILES + 1 && engine.clone().all(|(_, bytes)| *bytes == 0));
        assert!(engine.clone().all(|(event, _)| event.issuer.warp == 1 && event.issued < event.start));
    }
}
