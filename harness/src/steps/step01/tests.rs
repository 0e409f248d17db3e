//! Milestones and structure on made-up runs: the right one, and one for each way to miss a milestone.

use super::{STEP, structure};
use crate::compare::Comparison;
use crate::inputs::{InputKind, Inputs, encode, to_bytes};
use crate::launch;
use crate::observe::Observation;
use crate::reference::Reference;
use crate::source::{Built, Matrix};
use crate::steps::Seen;
use emulator::{
    Actor, Barrier, CtaState, Diagnostic, Event, EventKind, Issuer, Memory, Mma, OperandRead, Place, Report, Severity,
};
use ptx::{Region, RegionKind, Space};

const TILE_BYTES: usize = 128 * 64 * 2;
const BARRIER: Barrier = Barrier { cta: 0, offset: 2 * TILE_BYTES as i32 };

fn swizzled(row: usize, column: usize) -> usize {
    row * 64 + (column ^ (row % 8 * 8))
}

fn linear(row: usize, column: usize) -> usize {
    row * 64 + column
}

fn transposed(row: usize, column: usize) -> usize {
    column * 128 + row
}

fn defined(bytes: Vec<u8>) -> Memory {
    Memory { defined: vec![u64::MAX; bytes.len().div_ceil(64)], bytes: bytes.into(), blank: vec![] }
}

/// A matrix in a tile of shared memory.
fn stored(matrix: &[u16], place: fn(usize, usize) -> usize) -> Vec<u8> {
    let mut tile = vec![0; matrix.len()];
    for (index, element) in matrix.iter().enumerate() {
        tile[place(index / 64, index % 64)] = *element;
    }
    to_bytes(&tile)
}

/// The line of the PTX says which event it was.
fn event(line: u32, actor: Actor, start: u64, kind: EventKind) -> Event {
    let place = Place { line, column: 1, text: "…".to_string(), source: None };
    let warp = if let Actor::Warp(warp) = actor { warp } else { 0 };
    let issuer = Issuer { cta: 0, warp };
    Event { cta: 0, actor, issuer, issued: start, start, end: start + 1, place, kind }
}

/// The run of a right kernel.
fn right() -> Observation {
    let inputs = Inputs::new(STEP.sizes[0], InputKind::Normal, 1);
    let reference = Reference::new(&inputs);
    let tile = |name: &str, offset: usize| Region {
        name: name.to_string(),
        space: Space::DynamicShared,
        offset: offset as u32,
        bytes: TILE_BYTES as u32,
        kind: RegionKind::Tile { rows: 128, columns: 64, element_bytes: 2, swizzle: 128 },
        stage: None,
    };
    let mut tensor =
        Memory { bytes: vec![0xFF; 128 * 512 * 4].into(), defined: vec![0; 128 * 512 * 4 / 64], blank: vec![] };
    for (index, value) in reference.values.iter().enumerate() {
        let byte = 4 * (index / 128 * 512 + index % 128);
        tensor.bytes[byte..byte + 4].copy_from_slice(&(*value as f32).to_le_bytes());
        tensor.defined[byte / 64] |= 0b1111 << (byte % 64);
    }
    let shared = [stored(&inputs.a, swizzled), stored(&inputs.b, swizzled)].concat();
    let cta = CtaState { dynamic_shared: defined(shared), tensor, tensor_columns: 128, ..CtaState::default() };
    let d: Vec<u16> = reference.values.iter().map(|value| encode(inputs.problem.dtype, *value as f32)).collect();
    let buffers = vec![Memory::default(), Memory::default(), defined(to_bytes(&d))];
    let report =
        Report { completed: true, cycles: 1, buffers, ctas: vec![cta], trace: trace(&inputs), ..Report::default() };
    let comparison = Comparison::new(&reference, &report.buffers[2]);
    let built = Built {
        name: "kernel".to_string(),
        ptx: String::new(),
        grid: [1; 3],
        cluster: [1; 3],
        block: [128, 1, 1],
        dynamic_shared: 2 * TILE_BYTES as u32 + 8,
        params: Vec::new(),
        regions: vec![tile("A", 0), tile("B", TILE_BYTES)],
        todos: Vec::new(),
        leaks: Vec::new(),
    };
    Observation { built, inputs, reference: reference.into(), comparison, report, sms: 148 }
}

fn trace(inputs: &Inputs) -> Vec<Event> {
    let warps = || (0..4).map(Actor::Warp);
    let mut trace = vec![event(1, Actor::Warp(0), 0, EventKind::TensorAlloc { column: 0, columns: 128 })];
    for warp in warps() {
        let store = |offset| EventKind::SharedStore { offset, bytes: 512 };
        trace.push(event(2, warp, 1, store(0)));
        trace.push(event(3, warp, 2, store(TILE_BYTES as i32)));
        trace.push(event(4, warp, 3, EventKind::ProxyFence));
        trace.push(event(5, warp, 4, EventKind::CtaBarrier { id: 0, threads: 128 }));
    }
    for slice in 0..4 {
        let operand = |matrix: &[u16], offset: i32| OperandRead {
            offset,
            end: offset + TILE_BYTES as i32,
            swizzle: 128,
            elements: matrix.chunks(64).flat_map(|row| row[slice * 16..][..16].to_vec()).collect(),
            ..OperandRead::default()
        };
        let mma = Mma {
            shape: [128, 128, 16],
            cta_group: 1,
            accumulate: slice > 0,
            column: 0,
            ctas: vec![0],
            a: operand(&inputs.a, 0),
            b: operand(&inputs.b, TILE_BYTES as i32),
        };
        trace.push(event(6, Actor::TensorCore, 5, EventKind::Mma(Box::new(mma))));
    }
    trace.push(event(7, Actor::TensorCore, 6, EventKind::Commit { barriers: vec![BARRIER], covers: 4 }));
    trace.push(event(
        7,
        Actor::TensorCore,
        9,
        EventKind::BarrierArrive { barrier: BARRIER, phase: 0, count: 1, announced: 0 },
    ));
    for (index, warp) in warps().enumerate() {
        let wait = EventKind::BarrierWait { barrier: BARRIER, parity: 0, passed_phase: Some(0) };
        let lane = 32 * index as u32;
        trace.push(event(8, warp, 9, wait));
        trace.push(event(9, warp, 10, EventKind::TensorLoad { column: 0, columns: 128, lane, lanes: 32 }));
        trace.push(event(10, warp, 11, EventKind::TensorWaitLoad));
        let buffer = launch::buffer(Matrix::D);
        trace.push(event(11, warp, 12, EventKind::GlobalStore { buffer, bytes: 32 * 128 * 2 }));
    }
    for warp in warps() {
        trace.push(event(13, warp, 13, EventKind::CtaBarrier { id: 0, threads: 128 }));
    }
    trace.push(event(12, Actor::Warp(0), 14, EventKind::TensorFree { column: 0, columns: 128 }));
    trace
}

/// What the milestones say of the right run after a change, one word or title each.
fn milestones_of(change: impl FnOnce(&mut Observation)) -> Vec<(&'static str, String)> {
    let mut seen = right();
    change(&mut seen);
    let word = |seen| match seen {
        Seen::Done => "done".to_string(),
        Seen::Wrong(explanation) => {
            let lines: Vec<String> = explanation.labels.iter().map(|label| label.place.line.to_string()).collect();
            format!("{} [{}]", explanation.title, lines.join(", "))
        }
        Seen::Found(found) => format!("found: {}", found.code),
        Seen::NotReached(reason) => format!("not reached: {reason}"),
        Seen::Cut => "cut".to_string(),
    };
    let all = STEP.milestones.iter().map(|milestone| (milestone.id, word((milestone.check)(&seen))));
    all.filter(|(_, word)| word != "done").collect()
}

fn remove(seen: &mut Observation, which: impl Fn(&Event) -> bool) {
    seen.report.trace.retain(|event| !which(event));
}

/// Overwrites B's tile; the MMAs read what is there.
fn place_b(seen: &mut Observation, matrix: Matrix, place: fn(usize, usize) -> usize) {
    let bits = if matrix == Matrix::A { &seen.inputs.a } else { &seen.inputs.b };
    let tile = stored(bits, place);
    let shared = &mut seen.report.ctas[0].dynamic_shared.bytes[TILE_BYTES..];
    shared.copy_from_slice(&tile);
    let element = |row: usize, column: usize| {
        let byte = 2 * swizzled(row, column);
        u16::from_le_bytes([tile[byte], tile[byte + 1]])
    };
    let mut slice = 0;
    for event in &mut seen.report.trace {
        if let EventKind::Mma(mma) = &mut event.kind {
            mma.b.elements = (0..128 * 16).map(|index| element(index / 16, slice * 16 + index % 16)).collect();
            slice += 1;
        }
    }
}

#[test]
fn a_right_run_has_them_all() {
    assert_eq!(milestones_of(|_| {}), []);
    assert_eq!(structure::check(&right()), Ok("1 CTA of 128 threads, 4 MMAs of 128x128x16, no TMA".to_string()));
}

#[test]
fn a_tile_in_another_layout_is_recognised() {
    let wrong = |matrix, place| milestones_of(|seen| place_b(seen, matrix, place));
    let later = ("1.3", "not reached: A and B have to arrive in shared memory first".to_string());
    // With the line of the store and the line of the MMA.
    let title =
        "B in shared memory is laid out row after row without the 128-byte swizzle that its descriptor promises [3, 6]";
    assert_eq!(wrong(Matrix::B, linear), [("1.1", title.to_string()), later.clone()]);
    let title = "B in shared memory is transposed: its columns lie one after the other [3, 6]";
    assert_eq!(wrong(Matrix::B, transposed), [("1.1", title.to_string()), later.clone()]);
    let title = "the tile of B in shared memory (`B`) holds A [3]";
    assert_eq!(wrong(Matrix::A, swizzled), [("1.1", title.to_string()), later.clone()]);
    // Flipped by another part of the row's number: no layout that has a name.
    let other = wrong(Matrix::B, |row, column| row * 64 + (column ^ (row / 8 % 8 * 8)));
    assert!(other[0].1.starts_with("B's tile in shared memory (`B`) holds other elements than B: "), "{other:?}");
}

fn is_mma(event: &Event) -> bool {
    matches!(event.kind, EventKind::Mma(_))
}

fn found(code: &'static str) -> Diagnostic {
    Diagnostic {
        code,
        severity: Severity::Finding,
        title: String::new(),
        labels: Vec::new(),
        rule: String::new(),
        help: String::new(),
        count: 1,
        confirmed: None,
    }
}

/// What 1.2 says of a run without MMAs after a change.
fn fenced(change: impl FnOnce(&mut Observation)) -> String {
    let words = milestones_of(|seen| {
        remove(seen, is_mma);
        change(seen);
    });
    words.into_iter().find(|(id, _)| *id == "1.2").map_or("done".to_string(), |(_, word)| word)
}

#[test]
fn without_mmas_a_missing_fence_or_barrier_is_seen_in_its_warp() {
    let of_warp_2 =
        |line: u32| fenced(|seen| remove(seen, |event| event.actor == Actor::Warp(2) && event.place.line == line));
    assert_eq!(of_warp_2(99), "done");
    assert_eq!(of_warp_2(4), "no proxy fence follows the stores of warp 2 to the tiles [3]");
    // The barrier before tensor memory is freed is none.
    let all = fenced(|seen| remove(seen, |event| event.place.line == 5));
    assert_eq!(all, "no CTA barrier follows the stores of warps 0 to 3 to the tiles [3, 4]");
    let early = fenced(|seen| {
        let (fences, others): (Vec<Event>, Vec<Event>) =
            seen.report.trace.drain(..).partition(|event| event.kind == EventKind::ProxyFence);
        seen.report.trace = [fences, others].concat();
    });
    assert_eq!(early, "the proxy fence of warps 0 to 3 stands before the last store, not after it [3, 4]");
}

#[test]
fn a_fence_behind_the_barrier_is_as_good() {
    // All fence behind it, or the one thread that issues the MMAs.
    for warps in [0..4, 0..1] {
        let word = fenced(|seen| {
            remove(seen, |event| event.place.line == 4);
            let at = seen.report.trace.iter().rposition(|event| event.place.line == 5).unwrap_or(0) + 1;
            for warp in warps.clone() {
                seen.report.trace.insert(at, event(4, Actor::Warp(warp), 5, EventKind::ProxyFence));
            }
        });
        assert_eq!(word, "done", "{warps:?}");
    }
}

#[test]
fn with_mmas_the_memory_model_decides() {
    // No fence in sight, and the emulator is content; all in sight, and it is not.
    assert_eq!(milestones_of(|seen| remove(seen, |event| event.place.line == 4)), []);
    for (id, code) in [
        ("1.2", "missing-proxy-fence"),
        ("1.2", "operand-not-ready"),
        ("1.4", "early-arrival"),
        ("1.5", "mma-not-awaited"),
        ("1.5", "wrong-phase"),
    ] {
        assert_eq!(milestones_of(|seen| seen.report.findings.push(found(code))), [(id, format!("found: {code}"))]);
    }
}

#[test]
fn a_fence_of_another_kind_is_shown() {
    let ptx = ["", "", "st.shared.b32 [%r1], %r2;", "fence.mbarrier_init.release.cluster;", "bar.sync 0;"].join("\n");
    let word = fenced(|seen| {
        remove(seen, |event| event.place.line == 4);
        seen.built.ptx = ptx;
    });
    assert_eq!(word, "no proxy fence follows the stores of warps 0 to 3 to the tiles [3, 4]");
}

#[test]
fn wrong_mmas_are_told_apart() {
    let change = |change: fn(usize, &mut Mma)| {
        milestones_of(|seen| {
            let mmas = seen.report.trace.iter_mut().filter_map(|event| match &mut event.kind {
                EventKind::Mma(mma) => Some(mma),
                _ => None,
            });
            mmas.enumerate().for_each(|(index, mma)| change(index, mma));
        })
    };
    let wrong = |title: &str| vec![("1.3", title.to_string())];
    assert_eq!(
        change(|_, mma| mma.accumulate = true),
        wrong("the first MMA adds to what tensor memory held before: that was never written [6]")
    );
    assert_eq!(
        change(|_, mma| mma.accumulate = false),
        wrong("MMA 1 does not accumulate: what the MMAs before it summed is lost [6]")
    );
    assert_eq!(
        change(|_, mma| mma.b.swizzle = 0),
        wrong("the descriptor of B says a swizzle of 0 bytes; the tile `B` has one of 128 [6]")
    );
    assert_eq!(
        change(|index, mma| mma.a.elements.rotate_left(if index == 2 { 1 } else { 0 })),
        wrong("MMA 2 reads something else than a K slice of A's tile [6]")
    );
    let none = milestones_of(|seen| remove(seen, is_mma));
    assert_eq!(none[0], ("1.3", "no MMA was issued [1]".to_string()));
    let twice = milestones_of(|seen| {
        let all: Vec<Event> = seen.report.trace.iter().filter(|event| is_mma(event)).cloned().collect();
        seen.report.trace.extend(all);
    });
    assert_eq!(twice[0], ("1.3", "8 MMAs were issued; K = 64 takes 4 of depth 16 [6]".to_string()));
}

#[test]
fn commit_and_wait_belong_together() {
    let is_commit = |event: &Event| event.place.line == 7;
    assert_eq!(
        milestones_of(|seen| remove(seen, is_commit)),
        [
            ("1.4", "the MMAs were not committed to an mbarrier [6]".to_string()),
            ("1.5", "not reached: no commit arrives at the mbarrier yet".to_string())
        ]
    );
    // As long as nothing reads tensor memory, what each warp does tells.
    let is_load = |event: &Event| event.place.line == 9;
    let awaited = |change: &dyn Fn(&mut Observation)| {
        let words = milestones_of(|seen| {
            remove(seen, is_load);
            change(seen);
        });
        words.into_iter().find(|(id, _)| *id == "1.5").map_or("done".to_string(), |(_, word)| word)
    };
    let early = awaited(&|seen| {
        for event in &mut seen.report.trace {
            if let EventKind::BarrierWait { parity, passed_phase, .. } = &mut event.kind {
                (*parity, *passed_phase) = (1, None);
            }
        }
    });
    assert_eq!(early, "warp 0's wait passes before the MMAs are complete [8, 7]");
    let others = |event: &Event| event.actor != Actor::Warp(0) && event.place.line == 8;
    assert_eq!(awaited(&|seen| remove(seen, others)), "warp 1 does not wait for the MMAs [7]");
    // One warp waits, and all meet: that orders the others, too.
    let met = awaited(&|seen| {
        remove(seen, others);
        let at = seen.report.trace.iter().position(|event| event.place.line == 8).unwrap_or(0) + 1;
        for warp in 0..4 {
            let barrier = event(14, Actor::Warp(warp), 10, EventKind::CtaBarrier { id: 0, threads: 128 });
            seen.report.trace.insert(at, barrier);
        }
    });
    assert_eq!(met, "done");
}

#[test]
fn more_arrivals_than_the_count_complete_more_phases() {
    let with = |commits: usize, count: u32| {
        milestones_of(|seen| {
            let at = seen.report.trace.iter().position(|event| event.place.line == 7).unwrap_or(0);
            for _ in 1..commits {
                let commit = event(7, Actor::TensorCore, 6, EventKind::Commit { barriers: vec![BARRIER], covers: 1 });
                seen.report.trace.insert(at, commit);
            }
            let init = event(20, Actor::Warp(0), 0, EventKind::BarrierInit { barrier: BARRIER, count });
            seen.report.trace.insert(0, init);
        })
    };
    assert_eq!(with(4, 4), []);
    let title = "4 commits arrive at the mbarrier: they complete 4 phases of it (count 1), and a wait for the first does not \
                 wait for all MMAs [7, 20]";
    assert_eq!(with(4, 1), [("1.4", title.to_string())]);
}

#[test]
fn operands_from_the_wrong_tile_are_named() {
    let change = |change: fn(&mut Mma)| {
        let words = milestones_of(|seen| {
            seen.report.trace.iter_mut().for_each(|event| {
                if let EventKind::Mma(mma) = &mut event.kind {
                    change(mma);
                }
            });
        });
        words.into_iter().find(|(id, _)| *id == "1.3").map_or("done".to_string(), |(_, word)| word)
    };
    assert_eq!(
        change(|mma| std::mem::swap(&mut mma.a, &mut mma.b)),
        "MMA 0 has its operands the other way round: first B's tile, then A's [6]"
    );
    assert_eq!(change(|mma| mma.b = mma.a.clone()), "the second operand of MMA 0 is A's tile, not B's [6]");
    assert_eq!(change(|mma| mma.a = mma.b.clone()), "the first operand of MMA 0 is B's tile, not A's [6]");
}

#[test]
fn what_is_missing_in_a_tile_is_named_by_row_and_chunk() {
    let words = milestones_of(|seen| {
        let byte = 2 * swizzled(3, 2 * 8);
        // The swizzle puts chunk 2 of row 3 where chunk 1 would be.
        assert_eq!(byte, 3 * 128 + 16);
        seen.report.ctas[0].dynamic_shared.defined[byte / 64] &= !(0xFFFF << (byte % 64));
    });
    let title = "8 of 8192 elements of A's tile in shared memory (`A`) were never written: the first is row 3, chunk 2 (columns \
                 16 to 23) [2]";
    assert_eq!(words[0], ("1.1", title.to_string()));
}

#[test]
fn d_and_the_end() {
    let unread = milestones_of(|seen| {
        seen.comparison.elements[0] = crate::compare::Element::Wrong;
        seen.comparison.found[0] = 1e4;
        remove(seen, |event| event.actor == Actor::Warp(1) && event.place.line == 9);
    });
    let title = "4096 of 16384 elements of the accumulator are not read: the first at lane 32, column 0 [9]";
    assert_eq!(unread, [("1.6", title.to_string())]);
    let leak = milestones_of(|seen| remove(seen, |event| event.place.line == 12));
    assert_eq!(leak, [("1.7", "128 columns of tensor memory are still held when the CTA ends [1]".to_string())]);
}

#[test]
fn a_run_that_broke_off_blames_no_milestone_that_it_did_not_come_to() {
    let words = milestones_of(|seen| {
        seen.report.completed = false;
        seen.report.trace.truncate(1);
        seen.report.ctas[0].dynamic_shared = Memory::default();
        seen.comparison.elements[0] = crate::compare::Element::Unwritten;
    });
    for (id, word) in words {
        assert!(word == "cut" || word.starts_with("not reached: "), "{id}: {word}");
    }
}

#[test]
fn another_structure_is_refused() {
    let refused = |change: fn(&mut Observation)| {
        let mut seen = right();
        change(&mut seen);
        structure::check(&seen).expect_err("it is another structure").join("; ")
    };
    let text = refused(|seen| seen.built.grid = [2, 1, 1]);
    assert!(text.starts_with("step 1 launches one CTA"), "{text}");
    let text = refused(|seen| seen.report.trace[0].actor = Actor::Tma);
    assert!(text.starts_with("step 1 copies with its threads"), "{text}");
    let text = refused(|seen| remove(seen, |event| event.actor == Actor::TensorCore));
    assert!(text.contains("0 MMAs do 0"), "{text}");
    let text = refused(|seen| remove(seen, |event| event.place.line == 11));
    assert!(text.contains("stores 0 bytes to D"), "{text}");
}
