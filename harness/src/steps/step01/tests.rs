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
    Actor, Barrier, CtaState, Event, EventKind, Memory, Mma, OperandRead, Place, Region, RegionKind, RegionSpace,
    Report,
};

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
    Memory { defined: vec![u64::MAX; bytes.len().div_ceil(64)], bytes }
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
    Event { cta: 0, actor, start, end: start + 1, place, kind }
}

/// The run of a right kernel.
fn right() -> Observation {
    let inputs = Inputs::new(STEP.sizes[0], InputKind::Normal, 1);
    let reference = Reference::new(&inputs);
    let tile = |name: &str, offset: usize| Region {
        name: name.to_string(),
        space: RegionSpace::DynamicShared,
        offset: offset as u32,
        bytes: TILE_BYTES as u32,
        kind: RegionKind::Tile { rows: 128, columns: 64, element_bytes: 2, swizzle: 128 },
        stage: None,
    };
    let mut tensor = Memory { bytes: vec![0xFF; 128 * 512 * 4], defined: vec![0; 128 * 512 * 4 / 64] };
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
    };
    Observation { built, inputs, reference, comparison, report }
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
        };
        let mma = Mma {
            shape: [128, 128, 16],
            cta_group: 1,
            accumulate: slice > 0,
            column: 0,
            a: operand(&inputs.a, 0),
            b: operand(&inputs.b, TILE_BYTES as i32),
        };
        trace.push(event(6, Actor::TensorCore, 5, EventKind::Mma(Box::new(mma))));
    }
    trace.push(event(7, Actor::TensorCore, 6, EventKind::Commit { barrier: BARRIER, covers: 4 }));
    trace.push(event(7, Actor::TensorCore, 9, EventKind::BarrierArrive { barrier: BARRIER, phase: 0, count: 1 }));
    for (index, warp) in warps().enumerate() {
        let wait = EventKind::BarrierWait { barrier: BARRIER, parity: 0, passed_phase: Some(0) };
        let lane = 32 * index as u32;
        trace.push(event(8, warp, 9, wait));
        trace.push(event(9, warp, 10, EventKind::TensorLoad { column: 0, columns: 128, lane, lanes: 32 }));
        trace.push(event(10, warp, 11, EventKind::TensorWaitLoad));
        let buffer = launch::buffer(Matrix::D);
        trace.push(event(11, warp, 12, EventKind::GlobalStore { buffer, bytes: 32 * 128 * 2 }));
    }
    trace.push(event(12, Actor::Warp(0), 13, EventKind::TensorFree { column: 0, columns: 128 }));
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

#[test]
fn a_missing_fence_or_barrier_is_seen_in_its_warp() {
    let of_warp_2 = |kind: fn(&EventKind) -> bool| {
        milestones_of(|seen| remove(seen, |event| event.actor == Actor::Warp(2) && kind(&event.kind)))
    };
    assert_eq!(
        of_warp_2(|kind| *kind == EventKind::ProxyFence),
        [("1.2", "warp 2 does not fence its stores to shared memory [3]".to_string())]
    );
    assert_eq!(
        of_warp_2(|kind| matches!(kind, EventKind::CtaBarrier { .. })),
        [("1.2", "warp 2 passes no CTA barrier between its stores and the MMAs [3]".to_string())]
    );
    // A barrier after the MMAs is too late.
    let late = milestones_of(|seen| {
        for event in seen.report.trace.iter_mut().filter(|event| matches!(event.kind, EventKind::CtaBarrier { .. })) {
            (event.start, event.end) = (20, 21);
        }
    });
    assert_eq!(late[0].1, "warp 0 passes no CTA barrier between its stores and the MMAs [3]");
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
        wrong("MMA 2 does not accumulate: what the MMAs before it summed is lost [6]")
    );
    assert_eq!(
        change(|_, mma| mma.b.swizzle = 0),
        wrong("the descriptor of B says a swizzle of 0 bytes; the tile `B` has one of 128 [6]")
    );
    assert_eq!(
        change(|index, mma| mma.a.elements.rotate_left(if index == 2 { 1 } else { 0 })),
        wrong("MMA 3 reads something else than a K slice of A's tile [6]")
    );
    let is_mma = |event: &Event| matches!(event.kind, EventKind::Mma(_));
    let none = milestones_of(|seen| remove(seen, is_mma));
    assert_eq!(none[0], ("1.3", "no MMA was issued []".to_string()));
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
            ("1.4", "the MMAs were not committed to an mbarrier []".to_string()),
            ("1.5", "not reached: no commit arrives at the mbarrier yet".to_string())
        ]
    );
    let early = milestones_of(|seen| {
        for event in &mut seen.report.trace {
            if let EventKind::BarrierWait { parity, passed_phase, .. } = &mut event.kind {
                (*parity, *passed_phase) = (1, None);
            }
        }
    });
    assert_eq!(early, [("1.5", "warp 0's wait passes before the MMAs are complete [8, 7]".to_string())]);
    let last = milestones_of(|seen| remove(seen, |event| event.actor == Actor::Warp(3) && event.place.line == 8));
    assert_eq!(last, [("1.5", "warp 3 does not wait for the MMAs [7]".to_string())]);
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
