//! Small protocols, written as records: a producer (warp 0), a consumer (warp 1), and an engine that fills stages.

use super::*;

const SHAPE: Shape = Shape { ctas: 1, threads: 64, room: 1, sharing: 1 };
const FULL: u32 = 0;
const EMPTY: u32 = 1;
const PRODUCER: usize = 0;
const CONSUMER: usize = 1;

/// What a faulty protocol leaves out or does otherwise.
#[derive(Clone, Copy, PartialEq)]
enum Fault {
    None,
    /// The producer does not wait for the stage to be empty.
    NoWait,
    /// Both ask whether they may go on, and were told so each time.
    Asks,
    /// The bytes are announced by the consumer, beside the producer's arrival.
    AnnouncedByAnother,
}

/// One lane works, all meet.
fn adds(record: &mut Record, warp: usize, what: What) -> u32 {
    let all = matches!(what, What::Named { .. } | What::NamedPassed { .. } | What::Exit);
    record.add(warp, if all { u32::MAX } else { 1 }, warp as u32 * 100, what)
}

/// Both warps meet at the CTA's barrier.
fn both_meet(add: &mut impl FnMut(usize, What) -> u32) {
    for warp in [PRODUCER, CONSUMER] {
        add(warp, What::Named { cta: 0, id: 0, expected: None });
    }
    add(PRODUCER, What::NamedDone { cta: 0, id: 0 });
    for warp in [PRODUCER, CONSUMER] {
        add(warp, What::NamedPassed { cta: 0, id: 0 });
    }
}

/// A ring of one stage, filled `laps` times, as a run of it goes in which everybody is as fast as the others.
fn ring(laps: u32, fault: Fault) -> Record {
    let mut record = Record::new(false);
    let mut add = |warp: usize, what| adds(&mut record, warp, what);
    add(PRODUCER, What::Init { barrier: FULL, count: 1 });
    add(PRODUCER, What::Init { barrier: EMPTY, count: 1 });
    both_meet(&mut add);
    for lap in 0..laps {
        let parity = (lap & 1) as u8;
        let waits = |barrier, parity| match fault {
            Fault::Asks => What::Asked { barrier, parity },
            _ => What::Wait { barrier, parity },
        };
        if fault != Fault::NoWait {
            add(PRODUCER, waits(EMPTY, parity ^ 1));
        }
        if fault == Fault::AnnouncedByAnother {
            add(CONSUMER, What::Arrive { barrier: FULL, count: 0, bytes: 64 });
            add(PRODUCER, What::Arrive { barrier: FULL, count: 1, bytes: 0 });
        } else {
            add(PRODUCER, What::Arrive { barrier: FULL, count: 1, bytes: 64 });
        }
        let issue = add(PRODUCER, What::Issue { tells: 1, commit: None });
        add(PRODUCER, What::Done { issue, barrier: FULL, count: 0, bytes: 64 });
        add(CONSUMER, waits(FULL, parity));
        add(CONSUMER, What::Arrive { barrier: EMPTY, count: 1, bytes: 0 });
    }
    for warp in [PRODUCER, CONSUMER] {
        add(warp, What::Exit);
    }
    record
}

#[test]
fn a_ring_whose_sides_wait_for_each_other_is_proved() {
    for laps in [1, 2, 3, 7] {
        assert!(matches!(judge(&ring(laps, Fault::None), &SHAPE), Verdict::Proved), "{laps} laps");
    }
}

/// Of who asks, and was told that a phase is complete, nothing is known where it is told otherwise: nothing is proved. But an
/// interleaving in which it is told so although the phase is not complete does not exist.
#[test]
fn who_asks_goes_on_only_where_it_is_told_so() {
    for laps in [2, 3, 7] {
        let verdict = judge(&ring(laps, Fault::Asks), &SHAPE);
        assert!(matches!(verdict, Verdict::Doubtful(_)), "{laps} laps: {verdict:#?}");
    }
}

/// Nobody keeps the producer from filling the stage twice before the consumer looks: of two laps it then sees none.
#[test]
fn a_producer_that_does_not_wait_hangs_the_consumer() {
    let Verdict::Refuted(stuck, doubts) = judge(&ring(2, Fault::NoWait), &SHAPE) else { panic!("not refuted") };
    assert!(doubts.iter().any(|d| matches!(d.why, Why::Overtaken { barrier: FULL, phase: 0, .. })), "{doubts:#?}");
    let waits = |w: &&Waiting| matches!(w.what, What::Wait { barrier: FULL, .. });
    assert_eq!(stuck.waiting.iter().find(waits).map(|w| (w.warp, w.phase)), Some((CONSUMER as u16, 2)));
}

/// One lap cannot be overtaken, wait or not.
#[test]
fn one_lap_needs_no_wait() {
    assert!(matches!(judge(&ring(1, Fault::NoWait), &SHAPE), Verdict::Proved));
}

#[test]
fn bytes_that_are_announced_beside_the_arrival() {
    let verdict = judge(&ring(1, Fault::AnnouncedByAnother), &SHAPE);
    let (Verdict::Refuted(_, doubts) | Verdict::Doubtful(doubts)) = verdict else { panic!("{verdict:?}") };
    assert!(doubts.iter().any(|d| matches!(d.why, Why::AnnouncedLate { barrier: FULL, phase: 0, .. })), "{doubts:#?}");
}

/// A thread arrives and asks for the bytes of a copy; another one announces them, and comes first in the recorded run: the arrival alone may complete the
/// phase. Not so where the announcement comes before what asks for bytes that are announced with the arrival, since these are
/// pending then.
#[test]
fn bytes_that_are_announced_whenever_the_copy_is_over() {
    let record = |order: [&str; 3], with_the_arrival: i32, ordered: bool| {
        let mut record = Record::new(false);
        let named = What::Named { cta: 0, id: 0, expected: None };
        let meet = |record: &mut Record| {
            for warp in [PRODUCER, CONSUMER] {
                record.add(warp, u32::MAX, 0, named);
            }
            record.add(0, 0, 0, What::NamedDone { cta: 0, id: 0 });
            for warp in [PRODUCER, CONSUMER] {
                record.add(warp, u32::MAX, 0, What::NamedPassed { cta: 0, id: 0 });
            }
        };
        record.add(PRODUCER, 1, 0, What::Init { barrier: FULL, count: 1 });
        meet(&mut record);
        let mut issue = NONE;
        for step in order {
            match step {
                "arrive" => {
                    record.add(PRODUCER, 1, 1, What::Arrive { barrier: FULL, count: 1, bytes: with_the_arrival });
                    if !ordered {
                        issue = record.add(PRODUCER, 1, 2, What::Issue { tells: 1, commit: None });
                    }
                }
                "announce" => {
                    record.add(CONSUMER, 1, 3, What::Arrive { barrier: FULL, count: 0, bytes: 64 });
                    if ordered {
                        issue = record.add(CONSUMER, 1, 4, What::Issue { tells: 1, commit: None });
                    }
                }
                _ => record.done(issue, FULL, 0, 64 + with_the_arrival as u32),
            }
        }
        record.add(CONSUMER, 1, 5, What::Wait { barrier: FULL, parity: 0 });
        record
    };
    let late = |record: &Record| match judge(record, &SHAPE) {
        Verdict::Refuted(_, doubts) | Verdict::Doubtful(doubts) => {
            doubts.iter().any(|d| matches!(d.why, Why::AnnouncedLate { sure: true, .. }))
        }
        Verdict::Proved => false,
        other => panic!("{other:?}"),
    };
    assert!(late(&record(["announce", "arrive", "done"], 0, false)));
    // The announcer asks for all of the bytes: before that, those of the arrival are pending.
    for order in [["arrive", "announce", "done"], ["announce", "arrive", "done"]] {
        assert!(!late(&record(order, 64, true)), "{order:?}");
    }
}

/// A thread that says itself that bytes have come does so where it stands: what it does behind that comes behind it.
#[test]
fn bytes_that_a_thread_says_have_come() {
    let record = |completes_first: bool| {
        let mut record = Record::new(false);
        record.add(PRODUCER, 1, 0, What::Init { barrier: FULL, count: 1 });
        let mut steps = vec![
            What::Arrive { barrier: FULL, count: 0, bytes: 64 },
            What::Arrive { barrier: FULL, count: 0, bytes: -64 },
            What::Arrive { barrier: FULL, count: 1, bytes: 0 },
        ];
        if !completes_first {
            steps.swap(1, 2);
        }
        for what in steps {
            record.add(PRODUCER, 1, 1, what);
        }
        record.add(PRODUCER, 1, 2, What::Wait { barrier: FULL, parity: 0 });
        record
    };
    for completes_first in [true, false] {
        let verdict = judge(&record(completes_first), &SHAPE);
        assert!(matches!(verdict, Verdict::Proved), "{completes_first}: {verdict:?}");
    }
}

/// What arrives before the initialisation is lost.
#[test]
fn an_arrival_that_nothing_orders_behind_the_initialisation() {
    let mut record = Record::new(false);
    record.add(PRODUCER, 1, 0, What::Init { barrier: FULL, count: 1 });
    record.add(CONSUMER, 1, 1, What::Arrive { barrier: FULL, count: 1, bytes: 0 });
    record.add(PRODUCER, 1, 2, What::Wait { barrier: FULL, parity: 0 });
    let Verdict::Refuted(stuck, doubts) = judge(&record, &SHAPE) else { panic!("not refuted") };
    assert_eq!(doubts.iter().map(|d| (d.site, d.why)).collect::<Vec<_>>(), [(1, Why::BeforeInit { barrier: FULL })]);
    assert_eq!(stuck.waiting.iter().map(|w| w.site).collect::<Vec<_>>(), [2]);
}

/// Warps 0 and 1 meet at a barrier, warps 2 and 3 at one of the same number: a warp of each may meet.
#[test]
fn two_groups_that_share_a_number() {
    let record = |numbers: [u8; 2]| {
        let mut record = Record::new(false);
        for (pair, id) in [0, 2].into_iter().zip(numbers) {
            let cta = 0;
            for warp in [pair, pair + 1] {
                record.add(warp, u32::MAX, 0, What::Named { cta, id, expected: Some(64) });
            }
            record.add(0, 0, 0, What::NamedDone { cta, id });
            for warp in [pair, pair + 1] {
                record.add(warp, u32::MAX, 0, What::NamedPassed { cta, id });
            }
        }
        record
    };
    let shape = Shape { threads: 128, ..SHAPE };
    assert!(matches!(judge(&record([1, 2]), &shape), Verdict::Proved));
    // All come to it once, so that nobody is left over: it goes on, but nothing says who meets whom.
    assert!(matches!(judge(&record([1, 1]), &shape), Verdict::Doubtful(_)));
}

/// Who was faster makes no difference, what was done does.
#[test]
fn fingerprints_tell_what_was_done() {
    let (a, b) = (ring(3, Fault::None), ring(3, Fault::None));
    assert_eq!(a.fingerprint(), b.fingerprint());
    assert_ne!(a.fingerprint(), ring(3, Fault::NoWait).fingerprint());
    assert_ne!(a.fingerprint(), ring(4, Fault::None).fingerprint());
    let swapped = |first: usize| {
        let mut record = Record::new(false);
        for warp in [first, 1 - first] {
            record.add(warp, 1, 0, What::Arrive { barrier: FULL, count: 1 + warp as u32, bytes: 0 });
        }
        record.fingerprint()
    };
    assert_eq!(swapped(0), swapped(1));
}

/// Two waits in the other order, and a lane that is before the others or behind them, are something else.
#[test]
fn fingerprints_tell_orders() {
    let waits = |barriers: [u32; 2]| {
        let mut record = Record::new(false);
        for barrier in barriers {
            record.add(0, 1, 0, What::Wait { barrier, parity: (barrier & 1) as u8 });
        }
        record.fingerprint()
    };
    for other in 1..200 {
        assert_ne!(waits([0, other]), waits([other, 0]), "{other}");
    }
    let lanes = |sets: [u32; 2]| {
        let mut record = Record::new(false);
        for lanes in sets {
            record.add(0, lanes, 0, What::Arrive { barrier: FULL, count: 1, bytes: 0 });
        }
        record.fingerprint()
    };
    assert_ne!(lanes([2, u32::MAX]), lanes([u32::MAX, 2]));
}

/// Warp 0 gives registers; warp 1 takes them and gives them back; warp 2 takes as many: if it comes first, warp 1 waits for ever. Not
/// so if all could have the most they take at once.
#[test]
fn registers_that_are_taken_in_turn() {
    let record = |gives: u16, back: bool| {
        let mut record = Record::new(false);
        record.add(0, u32::MAX, 0, What::GiveRegisters { count: gives });
        record.add(1, u32::MAX, 1, What::TakeRegisters { count: 40 });
        if back {
            record.add(1, u32::MAX, 2, What::GiveRegisters { count: 40 });
        }
        record.add(2, u32::MAX, 3, What::TakeRegisters { count: 40 });
        record
    };
    let shape = Shape { threads: 96, ..SHAPE };
    let verdict = judge(&record(40, true), &shape);
    let (Verdict::Refuted(_, doubts) | Verdict::Doubtful(doubts)) = verdict else { panic!("{verdict:?}") };
    assert_eq!(doubts.iter().map(|d| (d.site, d.why)).collect::<Vec<_>>(), [(2, Why::Registers)]);
    assert!(matches!(judge(&record(80, false), &shape), Verdict::Proved));
}

/// Registers that are given before anybody takes some are there in every interleaving: nobody waits for what is given and taken behind
/// that, if all can have the most that they then have, at once.
#[test]
fn registers_that_are_given_first() {
    let record = |taken_late: u16| {
        let mut record = Record::new(false);
        record.add(1, u32::MAX, 0, What::GiveRegisters { count: 40 });
        record.add(0, u32::MAX, 1, What::TakeRegisters { count: 40 });
        for warp in 0..2 {
            record.add(warp, u32::MAX, 2, What::Named { cta: 0, id: 0, expected: None });
        }
        record.add(0, 0, 0, What::NamedDone { cta: 0, id: 0 });
        for warp in 0..2 {
            record.add(warp, u32::MAX, 2, What::NamedPassed { cta: 0, id: 0 });
        }
        // Behind the barrier, and so behind who takes: given, and taken again.
        record.add(1, u32::MAX, 3, What::GiveRegisters { count: 20 });
        let warp = if taken_late == 20 { 1 } else { 0 };
        record.add(warp, u32::MAX, 4, What::TakeRegisters { count: taken_late });
        record.add(1, u32::MAX, 5, What::GiveRegisters { count: 0 });
        record
    };
    assert!(matches!(judge(&record(20), &SHAPE), Verdict::Proved));
    // The other warp takes some of what was given late: it has more than was given first.
    let verdict = judge(&record(10), &SHAPE);
    let (Verdict::Refuted(_, doubts) | Verdict::Doubtful(doubts)) = verdict else { panic!("{verdict:?}") };
    assert_eq!(doubts.iter().map(|d| (d.site, d.why)).collect::<Vec<_>>(), [(3, Why::Registers)]);
}

/// A barrier's time ends behind a thread's arrival, which nobody waits for; behind a commit, where a later one of its thread is waited
/// for; not behind bytes that nobody waits for, nor behind another thread's commit.
#[test]
fn an_end_that_nobody_waits_for() {
    let record = |what: &str| {
        let mut record = Record::new(false);
        record.add(PRODUCER, 1, 0, What::Init { barrier: FULL, count: 1 });
        record.add(PRODUCER, 1, 1, What::Init { barrier: EMPTY, count: 1 });
        let asks = |record: &mut Record, lanes, barrier, (count, bytes)| {
            let issue = record.add(PRODUCER, lanes, 2, What::Issue { tells: 1, commit: (count > 0).then_some(1) });
            record.done(issue, barrier, count, bytes);
        };
        match what {
            "arrival" => drop(record.add(PRODUCER, 1, 3, What::Arrive { barrier: FULL, count: 1, bytes: 0 })),
            "commit" => asks(&mut record, 1, FULL, (1, 0)),
            "commit of another" => {
                record.meet(PRODUCER, 3, 4);
                asks(&mut record, 2, FULL, (1, 0));
            }
            _ => {
                record.add(PRODUCER, 1, 3, What::Arrive { barrier: FULL, count: 1, bytes: 64 });
                asks(&mut record, 1, FULL, (0, 64));
            }
        }
        asks(&mut record, 1, EMPTY, (1, 0));
        record.add(PRODUCER, 1, 5, What::Wait { barrier: EMPTY, parity: 0 });
        record.add(PRODUCER, 1, 6, What::Inval { barrier: FULL });
        record
    };
    for (what, proved) in [("arrival", true), ("commit", true), ("commit of another", false), ("bytes", false)] {
        let verdict = judge(&record(what), &SHAPE);
        assert_eq!(matches!(verdict, Verdict::Proved), proved, "{what}: {verdict:?}");
    }
}

/// Lanes that come to a CTA barrier apart count when the last of them does; a warp that arrives and ends counts once.
#[test]
fn parts_of_warps_at_barriers() {
    let mut record = Record::new(false);
    let named = What::Named { cta: 0, id: 0, expected: Some(64) };
    record.add(0, 0xffff_0000, 0, named);
    record.add(1, u32::MAX, 1, named);
    record.add(0, 0xffff, 2, named);
    record.add(0, 0, 0, What::NamedDone { cta: 0, id: 0 });
    for (warp, lanes) in [(0, 0xffff_0000), (0, 0xffff), (1, u32::MAX)] {
        record.add(warp, lanes, 3, What::NamedPassed { cta: 0, id: 0 });
    }
    record.add(0, u32::MAX, 4, What::ClusterArrive);
    record.add(0, u32::MAX, 5, What::Exit);
    record.add(1, u32::MAX, 6, What::ClusterArrive);
    record.add(0, 0, 0, What::ClusterDone);
    record.add(1, u32::MAX, 7, What::ClusterPassed);
    assert!(matches!(judge(&record, &SHAPE), Verdict::Proved));
}

/// A wait that passes on what the record does not hold proves nothing.
#[test]
fn a_phase_that_nothing_recorded_completes() {
    let mut record = Record::new(false);
    record.add(0, 1, 0, What::Init { barrier: FULL, count: 1 });
    record.add(0, 1, 1, What::Wait { barrier: FULL, parity: 0 });
    assert!(matches!(judge(&record, &SHAPE), Verdict::NotModelled));
}

/// Warpgroups begin anew with each CTA, which may have warps beside them.
#[test]
fn warpgroups_of_the_second_cta() {
    let shape = Shape { ctas: 2, threads: 160, room: 1, sharing: 1 };
    assert_eq!([4, 5, 8, 9].map(|warp| shape.warpgroup(warp)), [4, 5, 5, 9]);
    let mut record = Record::new(false);
    for warp in 5..9 {
        record.add(warp, u32::MAX, 0, What::Wgmma { number: 1 });
    }
    for warp in 5..9 {
        record.add(warp, u32::MAX, 1, What::WgmmaWait { number: 1 });
    }
    assert!(matches!(judge(&record, &shape), Verdict::Proved));
}

/// Lanes that wait apart do not hold back what the others do.
#[test]
fn lanes_of_a_warp_are_sequences_of_their_own() {
    let record = |arrives: u32| {
        let mut record = Record::new(false);
        record.add(0, u32::MAX, 0, What::Init { barrier: FULL, count: 1 });
        record.add(0, arrives, 1, What::Arrive { barrier: FULL, count: 1, bytes: 0 });
        record.add(0, 1, 2, What::Wait { barrier: FULL, parity: 0 });
        record.add(0, u32::MAX, 3, What::Exit);
        record
    };
    assert!(matches!(judge(&record(2), &SHAPE), Verdict::Proved));
    assert!(matches!(judge(&record(1), &SHAPE), Verdict::Proved));
}

/// Two CTAs, each with a barrier that a thread of either tells of its work. Who has seen its own barrier complete knows that the other one is, too,
/// if what told both arrives at all its CTAs at once, as a commit does.
#[test]
fn a_commit_arrives_at_all_its_ctas_at_once() {
    let shape = Shape { ctas: 2, threads: 32, room: 1, sharing: 1 };
    let record = |commit: Option<u16>| {
        let mut record = Record::new(false);
        for warp in 0..2 {
            record.add(warp, u32::MAX, 0, What::Init { barrier: warp as u32, count: 2 });
        }
        for warp in 0..2 {
            record.add(warp, u32::MAX, 1, What::ClusterArrive);
        }
        record.add(0, 0, 0, What::ClusterDone);
        for warp in 0..2 {
            record.add(warp, u32::MAX, 2, What::ClusterPassed);
        }
        for lap in 0..2 {
            for warp in 0..2 {
                let issue = record.add(warp, u32::MAX, 3, What::Issue { tells: 2, commit });
                (0..2).for_each(|barrier| record.done(issue, barrier, 1, 0));
            }
            for warp in 0..2 {
                record.add(warp, u32::MAX, 4, What::Wait { barrier: warp as u32, parity: lap });
            }
        }
        for warp in 0..2 {
            record.add(warp, u32::MAX, 5, What::Exit);
        }
        record
    };
    assert!(matches!(judge(&record(Some(3)), &shape), Verdict::Proved));
    let verdict = judge(&record(None), &shape);
    let (Verdict::Refuted(_, doubts) | Verdict::Doubtful(doubts)) = verdict else { panic!("{verdict:?}") };
    assert!(doubts.iter().all(|d| matches!(d.why, Why::CountsEarly { phase: 1, .. })), "{doubts:#?}");
}

/// The stage is made free by an arrival before the roles begin; the producer then waits for parity 0 first. Who met the arriving thread behind
/// that knows that phase 0 is complete.
#[test]
fn a_ring_that_begins_with_an_arrival_is_proved() {
    let mut record = Record::new(false);
    let mut add = |warp: usize, what| adds(&mut record, warp, what);
    add(CONSUMER, What::Init { barrier: FULL, count: 1 });
    add(CONSUMER, What::Init { barrier: EMPTY, count: 1 });
    add(CONSUMER, What::Arrive { barrier: EMPTY, count: 1, bytes: 0 });
    both_meet(&mut add);
    for lap in 0..4 {
        // The first lap's stage is free: the wait for it comes behind the lap, as in a loop whose last statement it is.
        add(PRODUCER, What::Arrive { barrier: FULL, count: 1, bytes: 0 });
        add(CONSUMER, What::Wait { barrier: FULL, parity: lap & 1 });
        add(CONSUMER, What::Arrive { barrier: EMPTY, count: 1, bytes: 0 });
        add(PRODUCER, What::Wait { barrier: EMPTY, parity: lap & 1 ^ 1 });
    }
    for warp in [PRODUCER, CONSUMER] {
        add(warp, What::Exit);
    }
    let verdict = judge(&record, &SHAPE);
    assert!(matches!(verdict, Verdict::Proved), "{verdict:#?}");
}

/// One lane of the consumer waits for a stage and frees it, the others wait for the same phase on their side of a branch, before or behind it: they
/// count as one wait. Not so if the lanes have met between the two.
#[test]
fn waits_on_both_sides_of_a_branch_are_one() {
    let record = |others_first: bool, met: bool| {
        let mut record = Record::new(false);
        adds(&mut record, PRODUCER, What::Init { barrier: FULL, count: 1 });
        adds(&mut record, PRODUCER, What::Init { barrier: EMPTY, count: 1 });
        both_meet(&mut |warp, what| adds(&mut record, warp, what));
        for lap in 0..4 {
            let parity = (lap & 1) as u8;
            adds(&mut record, PRODUCER, What::Wait { barrier: EMPTY, parity: parity ^ 1 });
            adds(&mut record, PRODUCER, What::Arrive { barrier: FULL, count: 1, bytes: 64 });
            let issue = adds(&mut record, PRODUCER, What::Issue { tells: 1, commit: None });
            record.done(issue, FULL, 0, 64);
            if others_first {
                record.add(CONSUMER, !1, 1, What::Wait { barrier: FULL, parity });
                // It still has to do with something else.
                record.add(CONSUMER, 1, 2, What::Issue { tells: 0, commit: None });
            }
            record.add(CONSUMER, 1, 3, What::Wait { barrier: FULL, parity });
            if met {
                record.meet(CONSUMER, u32::MAX, 4);
            }
            record.add(CONSUMER, 1, 5, What::Arrive { barrier: EMPTY, count: 1, bytes: 0 });
            if !others_first {
                record.add(CONSUMER, !1, 6, What::Wait { barrier: FULL, parity });
            }
            record.meet(CONSUMER, u32::MAX, 7);
        }
        for warp in [PRODUCER, CONSUMER] {
            adds(&mut record, warp, What::Exit);
        }
        judge(&record, &SHAPE)
    };
    for others_first in [false, true] {
        let verdict = record(others_first, false);
        assert!(matches!(verdict, Verdict::Proved), "{others_first}: {verdict:?}");
    }
    let verdict = record(false, true);
    assert!(matches!(verdict, Verdict::Refuted(..)), "{verdict:?}");
}

/// A warp comes to a barrier without waiting there, and behind a wait for somebody else to the same one again: that a third one is still missing from the first
/// time is what the search must think of.
#[test]
fn who_comes_again_may_find_one_missing() {
    let shape = Shape { threads: 128, ..SHAPE };
    let judged = |ids: [u8; 2]| {
        let mut record = Record::new(false);
        let named = |id| What::Named { cta: 0, id, expected: Some(96) };
        let passed = |record: &mut Record, id, warps: &[usize]| {
            record.add(0, 0, 0, What::NamedDone { cta: 0, id });
            for &warp in warps {
                record.add(warp, u32::MAX, 1, What::NamedPassed { cta: 0, id });
            }
        };
        record.add(3, 1, 2, What::Init { barrier: FULL, count: 1 });
        for warp in 0..4 {
            record.add(warp, u32::MAX, 3, What::Named { cta: 0, id: 0, expected: None });
        }
        passed(&mut record, 0, &[0, 1, 2, 3]);
        for warp in 0..3 {
            record.add(warp, u32::MAX, 4, named(ids[0]));
        }
        passed(&mut record, ids[0], &[1, 2]);
        record.add(3, 1, 5, What::Arrive { barrier: FULL, count: 1, bytes: 0 });
        record.add(0, u32::MAX, 6, What::Wait { barrier: FULL, parity: 0 });
        for warp in [1, 2, 0] {
            record.add(warp, u32::MAX, 7, named(ids[1]));
        }
        passed(&mut record, ids[1], &[0]);
        for warp in 0..4 {
            record.add(warp, u32::MAX, 8, What::Exit);
        }
        judge(&record, &shape)
    };
    let Verdict::Refuted(stuck, _) = judged([1, 1]) else { panic!("not refuted") };
    assert!(stuck.by.is_some_and(|by| matches!(by.why, Why::NamedEarly { cta: 0, id: 1 })), "{stuck:#?}");
    assert!(matches!(judged([1, 2]), Verdict::Proved));
}
