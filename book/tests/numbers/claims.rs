//! What the pages say, with the numbers computed.

use crate::runs::{self, Runs, Span};
use emulator::{Actor, CopyKind, Event, EventKind, MmaStep, Numerics};
use std::panic::resume_unwind;
use std::thread;

#[path = "answers.rs"]
mod answers;
#[path = "prose.rs"]
mod prose;

/// A passage of a page: `{}` stands for each of the values, in their order.
pub struct Claim {
    pub page: &'static str,
    pub text: &'static str,
    pub values: Vec<String>,
}

const STEP_1: [u32; 3] = [128, 128, 64];
const STEP_2: [u32; 3] = [128, 128, 512];
const SMALL: [u32; 3] = [256, 256, 512];
const WIDE: [u32; 3] = [2048, 2304, 512];
const PAIRS: [u32; 3] = [4096, 4608, 512];
const K1: [u32; 3] = [1024, 1024, 1024];
const K2: [u32; 3] = [2048, 2048, 2048];
const K4: [u32; 3] = [4096, 4096, 4096];

fn commas(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

struct Claims<'a> {
    runs: &'a Runs,
    all: Vec<Claim>,
}

impl Claims<'_> {
    fn say(&mut self, page: &'static str, text: &'static str, values: &[String]) {
        self.all.push(Claim { page, text, values: values.to_vec() });
    }

    fn numbers(&mut self, page: &'static str, text: &'static str, values: &[u64]) {
        self.say(page, text, &values.iter().map(u64::to_string).collect::<Vec<_>>());
    }

    /// Whole runs, in cycles.
    fn cycles(&mut self, page: &'static str, text: &'static str, of: &[(&str, [u32; 3])]) {
        let values: Vec<u64> = of.iter().map(|(name, size)| self.runs.cycles(name, *size)).collect();
        self.numbers(page, text, &values);
    }
}

/// Those that belong together, one behind the other.
type Part = fn(&mut Claims);

/// Each on a thread of its own: the runs of one wait for nobody, or for another part that wants the same run.
const PARTS: [Part; 9] =
    [one_tile, first_steps, one_way_back, tma, roles, exercises_of_ideas, pairs, prose::all, answers::all];

/// All claims, with the numbers of this moment.
pub fn all() -> Vec<Claim> {
    let runs = Runs::default();
    let of = |part: Part| {
        let mut claims = Claims { runs: &runs, all: Vec::new() };
        part(&mut claims);
        claims.all
    };
    thread::scope(|scope| {
        let parts = PARTS.map(|part| scope.spawn(move || of(part)));
        parts.into_iter().flat_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
    })
}

fn deep(size: u32) -> [u32; 3] {
    [4096, 4096, size]
}

/// From the first begin to the last end.
fn whole(spans: &[Span]) -> Span {
    (spans[0].0, spans.iter().map(|span| span.1).max().unwrap_or_default())
}

fn of_warp(events: &[Event], warp: u32) -> Vec<Event> {
    events.iter().filter(|event| event.actor == Actor::Warp(warp)).cloned().collect()
}

/// The exercises of the pages that stand beside steps 5 to 7.
fn exercises_of_ideas(claims: &mut Claims) {
    let page = "pipeline.md";
    claims.cycles(
        page,
        "At 128 × 128 × 64 step 4 takes {} cycles and step 5 {} cycles:",
        &[("4", STEP_1), ("5", STEP_1)],
    );
    claims.cycles(page, "At 128 × 128 × 512 it is {} and {}:", &[("4", STEP_2), ("5", STEP_2)]);
    let bytes = ["depth_3_5", "5"].map(|name| runs::shared_bytes(name, STEP_2));
    claims.numbers(page, "{} bytes, where two stages have {}:", &bytes);
    let page = "warp-specialisation.md";
    claims.cycles(
        page,
        "At 128 × 128 × 64 step 6 takes {} cycles and step 7 {} cycles:",
        &[("6", STEP_1), ("7", STEP_1)],
    );
    claims.cycles(page, "it is {} and {}.", &[("6", deep(512)), ("7", deep(512))]);
    let sizes = [("6", [2048, 2048, 512]), ("6", WIDE)];
    claims.cycles("persistent.md", "Step 6 takes {} cycles and {} cycles.", &sizes);
}

/// The way of step 1's tile, as two pages tell it.
fn one_tile(claims: &mut Claims) {
    let (events, cycles) = (claims.runs.events("1", STEP_1), claims.runs.cycles("1", STEP_1));
    let mmas = runs::mmas(&events);
    let (first, busy) = (mmas[0].0, runs::busy(&mmas));
    let interval = mmas[1].0 - first;
    assert_eq!((mmas.len(), interval), (4, 64), "machine.md and step01.md: four MMAs, one every 64 cycles");
    let of = |events: &[Event], kind: fn(&EventKind) -> bool| runs::spans(events, kind);
    let meets = |kind: &EventKind| matches!(kind, EventKind::CtaBarrier { .. });
    let waits = |kind: &EventKind| matches!(kind, EventKind::BarrierWait { .. });
    let loads = |kind: &EventKind| matches!(kind, EventKind::GlobalLoad { .. });
    let stores = |kind: &EventKind| matches!(kind, EventKind::GlobalStore { .. });
    let fences = |kind: &EventKind| matches!(kind, EventKind::ProxyFence);
    let (met, fenced) = (of(&events, meets), of(&events, fences)[0].0);
    let (copied, stored) = (of(&events, loads)[0].0, whole(&of(&events, stores)));
    let (last, woken) = (first + busy, whole(&of(&events, waits)).1);
    let read = whole(&runs::tensor_loads(&events));

    let page = "machine.md";
    claims.numbers(page, "| 0 – {} | a barrier is made", &[met[0].1]);
    claims.numbers(page, "| {} – {} | each thread loads 16 chunks", &[copied, fenced]);
    claims.numbers(page, "| {} – {} | each thread fences", &[fenced, met[4].1]);
    claims.numbers(page, "| {} – {} | four MMAs", &[first, last]);
    claims.numbers(page, "| {} – {} | the [commit](glossary.md#commit) arrives", &[last, woken]);
    claims.numbers(page, "| {} – {} | each warp loads 128 columns", &[read.0, read.1]);
    claims.numbers(page, "| {} – {} | each thread converts", &[stored.0, stored.1]);
    claims.numbers(page, "| {} – {} | all meet, tensor memory", &[stored.1, cycles]);
    let share = format!("{:.0}", busy as f64 / cycles as f64 * 100.0);
    claims.say(page, "works in {} of {} cycles, {} %", &[commas(busy), commas(cycles), share]);
    claims.numbers(page, "({} of them are four times {}.", &[4 * interval, interval]);
    claims.numbers(page, "four of them count as {}.)", &[4 * interval]);
    claims.numbers(page, "128 × 128 × 64 tile take {} cycles ({} where", &[busy, 4 * interval]);

    let page = "step01.md";
    let own = of_warp(&events, 0);
    let made = of(&own, |kind| matches!(kind, EventKind::BarrierInit { .. }))[0].0;
    let taken = of(&own, |kind| matches!(kind, EventKind::TensorAlloc { .. }))[0];
    let behind = [loads, stores].map(|kind| whole(&of(&events, kind)).1 - whole(&of(&own, kind)).1);
    claims.numbers(page, "they are up to {} cycles behind;", &[behind[0].max(behind[1])]);
    let (copied, stored, met) = (whole(&of(&own, loads)), whole(&of(&own, stores)), of(&own, meets));
    let (fenced, read) = (of(&own, fences)[0].0, runs::tensor_loads(&own)[0]);
    let commit = events.iter().find(|event| matches!(event.kind, EventKind::Commit { .. }));
    let issued = commit.map(|event| event.issued + 1).unwrap_or_default();
    claims.numbers(
        page,
        "| {} to {} | makes the barrier, allocates ({} cycles of it)",
        &[made, taken.1, taken.1 - taken.0],
    );
    claims.numbers(page, "| {} to {} | copies:", &[copied.0, copied.1]);
    claims.numbers(page, "| {} to {} | fence, meets |", &[fenced, met[1].1]);
    claims.numbers(page, "| {} to {} | issues four MMAs and the commit |", &[first, issued]);
    claims.numbers(
        page,
        "| {} to {} | waits for `mma_done` | the same | multiplies until {},",
        &[issued, whole(&of(&own, waits)).1, first + busy],
    );
    claims.numbers(page, "| {} to {} | `tcgen05.ld` |", &[read.0, read.1]);
    claims.numbers(page, "| {} to {} | rounds and stores to D |", &[stored.0, stored.1]);
    claims.numbers(page, "| {} to {} | meets, frees, ends |", &[met[2].0, cycles]);
    claims.numbers(
        page,
        "is through after {} cycles; the tensor core works for {} (four times {}, and what an MMA needs besides). Of {} cycles the tensor core is busy for those {}:",
        &[issued - first, busy, interval, cycles, busy],
    );
}

/// What the way back of step 4's tile costs.
fn one_way_back(claims: &mut Claims) {
    let events = claims.runs.events("4", SMALL);
    let read = whole(&runs::tensor_loads(&events));
    let fenced = whole(&runs::spans(&events, |kind| matches!(kind, EventKind::ProxyFence))).1;
    let stores =
        events.iter().filter(|event| matches!(&event.kind, EventKind::Copy(copy) if copy.kind == CopyKind::Store));
    let asked = stores.map(|event| event.issued + 1).max().unwrap_or_default();
    // Behind its wait the thread that stored meets the others.
    let meets = runs::spans(&of_warp(&events, 0), |kind| matches!(kind, EventKind::CtaBarrier { .. }));
    let engine = meets.last().map_or(0, |meet| meet.0);
    let page = "way-back.md";
    claims.numbers(page, "| the last sum of the second half in registers | {} |", &[read.1 - read.0]);
    claims.numbers(page, "| both tiles of D stored and fenced | {} |", &[fenced - read.1]);
    claims.numbers(page, "| TMA asked for both stores | {} |", &[asked - fenced]);
    claims.numbers(page, "| the engine has read both tiles | {} |", &[engine - asked]);
    claims.cycles(page, "{} cycles instead of {} at 256 × 256 × 512", &[("each_part_4", SMALL), ("4", SMALL)]);
}

fn first_steps(claims: &mut Claims) {
    let page = "step01.md";
    claims.cycles(page, "fast {} cycles, 1.00 times the reference solution's {}", &[("1", STEP_1), ("1", STEP_1)]);
    claims.cycles(page, "{} cycles instead of {}: four waits", &[("pieces_1", STEP_1), ("1", STEP_1)]);
    if let (Some(before), Some(after)) = (runs::registers("1", STEP_1), runs::registers("pieces_1", STEP_1)) {
        claims.numbers(page, "{} registers instead of {}, since", &[after.into(), before.into()]);
        claims.numbers(page, "assembles for sm_100a: {} registers,", &[before.into()]);
    }

    let page = "machine.md";
    let of = |claims: &mut Claims, k: u32| claims.runs.cycles("2", [128, 128, k]);
    let [short, middle, long] = [64, 512, 4096].map(|k| of(claims, k));
    let values = [short, middle, long].map(commas);
    claims.say(page, "The reference solution: {}, {} and {} cycles", &values);
    let round = runs::busy(&runs::mmas(&claims.runs.events("2", STEP_2))[..4]);
    let values = [middle - short, (middle - short) / 7, round, (middle - short) / 7].map(commas);
    claims.say(
        page,
        "Seven more rounds cost {} cycles, {} each; of 56 more it is the same. The tensor core works in {} of each {}:",
        &values,
    );
    assert_eq!((long - middle) / 56, (middle - short) / 7, "machine.md: of 56 more rounds it is not the same");

    let page = "step02.md";
    let events = claims.runs.events("2", STEP_2);
    let rounds = runs::products(&events, 4);
    let round = runs::busy(&runs::mmas(&events)[..4]);
    claims.cycles(page, "| the whole kernel | {} |", &[("2", STEP_2)]);
    claims.numbers(page, "| from one round to the next | {} |", &[runs::from_round_to_round(&events, 4)]);
    claims.numbers(
        page,
        "| of a round: from the end of the MMAs to the next round's first MMA | {} |",
        &[rounds[1].0 - rounds[0].1],
    );
    claims.numbers(page, "| of a round: the tensor core is busy | {} |", &[round]);
    claims.numbers(
        page,
        "| the tensor core is busy, of the whole | {}: one sixth |",
        &[runs::busy(&runs::mmas(&events))],
    );
    claims.numbers(page, "The table says {} cycles for a round.", &[runs::from_round_to_round(&events, 4)]);
    claims.numbers(page, "{} cycles to the end of four MMAs, where the commit arrives", &[round]);
    let timed = [128, 128, 1024];
    claims.cycles(
        page,
        "*fast* says {} cycles, 1.02 times the reference's {}:",
        &[("one_waits_2", timed), ("2", timed)],
    );

    let page = "k-loop.md";
    let both = [("2", STEP_2), ("ahead_2", STEP_2)];
    claims.cycles(page, "| the whole kernel, K = 512 | {} | {} |", &both);
    let rounds = both.map(|(name, size)| runs::from_round_to_round(&claims.runs.events(name, size), 4));
    claims.numbers(page, "| from one round to the next | {} | {} |", &rounds);

    let page = "grid.md";
    // An SM has 228 KiB, and 1 KiB of it is the system's for each CTA (machine.md).
    for (step, threads, text, with_registers) in [
        ("3", 128, "| `step03` | {} | {} |", "| `step03` | {} | {} | {} | {} | 128 | 4 |"),
        ("4", 128, "| `step04` | {} | {} |", "| `step04` | {} | {} | {} | {} | 128 | 4 |"),
        ("5", 128, "| `step05` | {} | {} |", "| `step05` | {} | {} | {} | {} | 128 | 4 |"),
        ("8", 256, "| `step08` | {} | {} |", "| `step08` | {} | {} | {} | {} | 128 | 4 |"),
    ] {
        let bytes = runs::shared_bytes(step, K1);
        let mut values = vec![commas(bytes), (228 * 1024 / (bytes + 1024)).to_string()];
        let registers = runs::registers(step, K1);
        if let Some(registers) = registers {
            values.extend([registers.to_string(), (65536 / (registers.next_multiple_of(8) * threads)).to_string()]);
        }
        claims.say(page, if registers.is_some() { with_registers } else { text }, &values);
    }

    let page = "step03.md";
    claims.cycles(page, "| the whole kernel, K = 512 | {} | {} |", &[("2", STEP_2), ("3", SMALL)]);
    let tiles = [("2", STEP_2), ("3", SMALL)].map(|(name, size)| claims.runs.ctas(name, size));
    claims.numbers(page, "| products | {} tile | {} tiles |", &tiles);
    claims.cycles(page, "{} without, {} with:", &[("3", K2), ("permit_3", K2)]);
    let both = [("4", K2), ("permit_4", K2), ("5", K2), ("permit_5", K2)];
    claims.cycles(page, "(Step 4: {} and {}. Step 5: {} and {}.)", &both);
    claims.cycles(page, "else passes. {} cycles instead of {}:", &[("columns_first_3", K2), ("3", K2)]);
}

fn tma(claims: &mut Claims) {
    let page = "step04.md";
    let events = claims.runs.events("4", SMALL);
    let (mmas, loads) = (runs::mmas(&events), runs::loads(&events));
    let (reads, stores) = (runs::tensor_loads(&events), runs::stores(&events));
    let last_store = stores.iter().map(|store| store.1).max().unwrap_or_default();
    claims.cycles(page, "| the whole kernel | {} |", &[("4", SMALL)]);
    claims.numbers(page, "| from one round to the next | {} on the mean |", &[runs::from_round_to_round(&events, 4)]);
    claims.numbers(page, "| of a round: TMA brings both tiles | {} |", &[runs::busy(&loads[..2])]);
    claims.numbers(page, "| of a round: the tensor core is busy | {} |", &[runs::busy(&mmas[..4])]);
    claims.numbers(page, "| TMA and the tensor core busy at the same time | {} |", &[runs::both(&mmas, &loads)]);
    claims.numbers(page, "| the way back: `tcgen05.ld` to the end of TMA's store | {} |", &[last_store - reads[0].0]);
    claims.cycles(page, "in {} cycles instead of {} at 1024 × 1024 × 1024", &[("loads_first_4", K1), ("4", K1)]);
    claims.cycles(page, "and slower: {} cycles.", &[("written_4", K1)]);
    claims.cycles(page, "{} cycles instead of {}. While one CTA of an SM loads", &[("permit_4", K2), ("4", K2)]);
    claims.cycles(page, "both together {}.", &[("permit_5", K2)]);

    let page = "step05.md";
    let later = claims.runs.events("5", SMALL);
    let both = |claims: &mut Claims, text, values: [u64; 2]| claims.numbers(page, text, &values);
    claims.cycles(page, "| the whole kernel, simulated cycles | {} | {} |", &[("4", SMALL), ("5", SMALL)]);
    both(
        claims,
        "| from one round to the next, on the mean | {} | {} |",
        [&events, &later].map(|e| runs::from_round_to_round(e, 4)),
    );
    both(claims, "| the tensor core is busy | {} | {} |", [&events, &later].map(|e| runs::busy(&runs::mmas(e))));
    both(
        claims,
        "| of that, while TMA loads | {} | {} |",
        [&events, &later].map(|e| runs::both(&runs::mmas(e), &runs::loads(e))),
    );
    let depths = ["depth_1_5", "5", "depth_3_5", "depth_4_5", "depth_5_5", "depth_6_5"].map(|name| (name, K1));
    claims.cycles(page, "| cycles at 1024 × 1024 × 1024 | {} | {} | {} | {} | {} | {} |", &depths);
    claims.cycles(page, "faster ({} cycles instead of {}), and", &[("depth_3_5", K1), ("5", K1)]);
    let three = [("permit_4", K2), ("5", K2), ("permit_5", K2)];
    claims.cycles(page, "given back: {} cycles. Step 5 as it is: {}. Both: {}.", &three);

    let page = "step06.md";
    let products = claims.products("6", WIDE, 32);
    claims.numbers(page, "| first MMA to last MMA of the first tile | {} to {} |", &[products[0].0, products[0].1]);
    claims.numbers(page, "| first MMA to last MMA of the second tile | {} to {} |", &[products[1].0, products[1].1]);
    claims.numbers(page, "| the tensor core stands still between the tiles | {} |", &[products[1].0 - products[0].1]);
    let (reads, stores) = claims.way_back("6", WIDE, 2);
    claims.numbers(
        page,
        "| its way back: first `tcgen05.ld` to the end of TMA's store | {} to {} |",
        &[reads.0, stores.1],
    );
    let sizes = [K1, K2, K4].map(|size| [("5", size), ("6", size)]).concat();
    claims.cycles(page, "`--size` says {} and {} at 1024³", &sizes[..2]);
    claims.cycles(page, "{} and {} at 2048³, {} and {} at 4096³.", &sizes[2..]);
}

impl Claims<'_> {
    fn products(&mut self, name: &str, size: [u32; 3], mmas_each: usize) -> Vec<Span> {
        runs::products(&self.runs.events(name, size), mmas_each)
    }

    /// First and last moment of the loads from tensor memory, and of the stores by TMA, of the first tile of so many stores.
    fn way_back(&mut self, name: &str, size: [u32; 3], chunks: usize) -> (Span, Span) {
        let events = self.runs.events(name, size);
        let (reads, stores) = (runs::tensor_loads(&events), runs::stores(&events));
        let stores = &stores[..chunks];
        let last = stores.iter().map(|store| store.1).max().unwrap_or_default();
        (reads[0], (stores[0].0, last))
    }
}

fn roles(claims: &mut Claims) {
    let page = "step07.md";
    let (before, after) = (claims.products("6", WIDE, 32), claims.products("7", WIDE, 32));
    let gap = |products: &[Span]| products[1].0 - products[0].1;
    claims.cycles(page, "| the whole kernel, simulated cycles | {} | {} |", &[("6", WIDE), ("7", WIDE)]);
    let spans = [before[0].0, before[0].1, after[0].0, after[0].1];
    claims.numbers(page, "| first to last MMA of the first tile | {} to {} | {} to {} |", &spans);
    claims.numbers(page, "| the tensor core stands still between the tiles | {} | {} |", &[gap(&before), gap(&after)]);
    let (six, seven) = (claims.way_back("6", WIDE, 2).1, claims.way_back("7", WIDE, 2).1);
    claims.numbers(page, "| TMA stores the first tile | {} to {} | {} to {} |", &[six.0, six.1, seven.0, seven.1]);
    claims.numbers(page, "| first MMA of the second tile | {} | {} |", &[before[1].0, after[1].0]);
    claims.cycles(page, "in {} cycles (the solution: {}):", &[("warps_arrive_7", K2), ("7", K2)]);
    let of = |name: &'static str| [512, 1024, 4096].map(|k| (name, deep(k)));
    claims.cycles(page, "| early | {} | {} | {} |", &of("7"));
    claims.cycles(page, "| late | {} | {} | {} |", &of("late_7"));
    let costs = claims.percent(("7", "late_7"), &[512, 1024, 4096]);
    claims.say(page, "| late costs | {} % | {} % | {} % |", &costs);

    claims.cycles(page, "wins little here: {} cycles instead of {} at", &[("two_accumulators_7", WIDE), ("7", WIDE)]);

    let page = "step08.md";
    let products = [after, claims.products("8", WIDE, 32)];
    claims.cycles(page, "| the whole kernel, simulated cycles | {} | {} |", &[("7", WIDE), ("8", WIDE)]);
    let tile = |n: usize| products.each_ref().map(|of| [of[n].0, of[n].1]).concat();
    claims.numbers(page, "| first to last MMA of the first tile | {} to {} | {} to {} |", &tile(0));
    claims.numbers(
        page,
        "| the tensor core stands still between the tiles | {} | {} |",
        &products.each_ref().map(|of| gap(of)),
    );
    claims.numbers(page, "| first to last MMA of the second tile | {} to {} | {} to {} |", &tile(1));
    let lengths = products.each_ref().map(|of| of[1].1 - of[1].0);
    claims.numbers(page, "begin with work in hand: {} cycles instead of {}.", &[lengths[1], lengths[0]]);
    let depths = |size| ["depth_2_8", "depth_3_8", "8", "depth_5_8", "depth_6_8"].map(|name| (name, size));
    claims.cycles(page, "| 2048 × 2048 × 2048 | {} | {} | {} | {} | {} | does not fit |", &depths(K2));
    claims.cycles(page, "| 4096 × 4096 × 4096 | {} | {} | {} | {} | {} | does not fit |", &depths(K4));
    let [costs, seven] = [("8", "late_8"), ("7", "late_7")].map(|of| claims.percent(of, &[512])[0].clone());
    let values = [claims.runs.cycles("late_8", deep(512)), claims.runs.cycles("8", deep(512))].map(|n| n.to_string());
    let values = [values.to_vec(), vec![costs, seven]].concat();
    claims.say(page, "At 4096 × 4096 × 512 it is {} cycles instead of {}: {} %, where it was {} % in step 7.", &values);
    claims.cycles(page, "(At K = 4096: {} instead of {}.)", &[("late_8", K4), ("8", K4)]);
}

impl Claims<'_> {
    /// How much longer the second of two kernels takes, for each K.
    fn percent(&mut self, (first, second): (&str, &str), ks: &[u32]) -> Vec<String> {
        let of = |k: u32| {
            let [first, second] = [first, second].map(|name| self.runs.cycles(name, deep(k)) as f64);
            format!("{:.0}", (second / first - 1.0) * 100.0)
        };
        ks.iter().map(|k| of(*k)).collect()
    }
}

fn pairs(claims: &mut Claims) {
    let page = "step09.md";
    let products = claims.products("9", PAIRS, 32);
    let gap = |n: usize| products[n + 1].0 - products[n].1;
    claims.cycles(page, "| the whole kernel | {} |", &[("9", PAIRS)]);
    let second = [products[1].0, products[1].1, products[1].1 - products[1].0];
    claims.numbers(
        page,
        "| first to last MMA of the second tile | {} to {}: {} for 32 MMAs of 256 × 256 × 16 |",
        &second,
    );
    claims.numbers(page, "| the tensor core stands still between two tiles | {}, {}, {} |", &[gap(0), gap(1), gap(2)]);
    let waits = runs::waits_of_each(&claims.runs.events("9", PAIRS), 4, products.len());
    claims.numbers(page, "`wait ld2mma`, which begins behind its last issue | {}, {}, {} |", &waits[1..4]);
    let depths = ["depth_2_9", "depth_3_9", "9", "depth_5_9", "depth_6_9"].map(|name| (name, K4));
    claims.cycles(page, "{}, {}, {}, {}, {} cycles: from four on", &depths);

    let two = |size| [("9", size), ("two_accumulators_9", size)];
    claims.cycles(page, "| 4096 × 4608 × 512 | {} | {} |", &two(PAIRS));
    claims.cycles(page, "| 4096 × 4096 × 4096 | {} | {} |", &two(K4));
    claims.cycles(page, "one for each cluster) | {} | {} |", &two(K2));
    let ways = [K4].map(|size| ["two_accumulators_9", "10"].map(|name| claims.runs.cycles(name, size)));
    assert!(ways.iter().all(|[two, ten]| two < ten), "step09.md: at 4096³ it is not faster than step 10: {ways:?}");

    let page = "step10.md";
    let products = claims.products("10", PAIRS, 64);
    claims.cycles(page, "| the whole kernel | {} (step 9: {}) |", &[("10", PAIRS), ("9", PAIRS)]);
    claims.numbers(
        page,
        "| first to last MMA of the first tile, both consumers | {} to {} |",
        &[products[0].0, products[0].1],
    );
    let commits = runs::commits_of_each(&claims.runs.events("10", PAIRS), products.len());
    claims.numbers(page, "reach `mma2ld[0]`, `mma2ld[1]` | {} and {} |", &commits);
    claims.numbers(page, "| the tensor core stands still between the tiles | {} |", &[products[1].0 - products[0].1]);
    let second = [products[1].0, products[1].1, products[1].1 - products[1].0];
    claims.numbers(page, "| first to last MMA of the second tile | {} to {}: {} for 64 MMAs |", &second);
    let depths = [("depth_3_10", K4), ("depth_2_10", K4), ("10", K4)];
    claims.cycles(page, "{} and {} cycles; with four it is {}.", &depths);
    let ladder = ["3", "4", "5", "6", "7", "8", "9", "10"].map(|name| (name, K4));
    claims.cycles(page, "| cycles | {} | {} | {} | {} | {} | {} | {} | {} |", &ladder);
    let cycles = ladder.map(|(name, size)| claims.runs.cycles(name, size) as f64);
    let faster: Vec<String> = cycles.windows(2).map(|two| format!("{:.2}", two[0] / two[1])).collect();
    claims.say(page, "| faster by | | {} | {} | {} | {} | {} | {} | {} |", &faster);

    // One MMA adds sixteen ones.
    let added = |d: f32| {
        let mut d = [d.to_bits()];
        let step = MmaStep { accumulate: true, d_f32: true, ..MmaStep::default() };
        step.run(Numerics::Exact, &[0x3c00; 16], &[0x3c00; 16], &mut d).expect("the sizes fit");
        f32::from_bits(d[0]) as u64
    };
    let sums = [24, 26].map(|exponent| added(2f32.powi(exponent)));
    claims.numbers("tensor-core.md", "2²⁴ becomes {}, and 2²⁶ becomes {}.", &sums);

    let page = "sizes.md";
    let three = |size| ["8", "9", "10"].map(|name| (name, size));
    claims.cycles(page, "| 1024 × 1024 × 1024 | {} | {} | {} |", &three(K1));
    claims.cycles(page, "| 2048 × 2048 × 2048 | {} | {} | {} |", &three(K2));
    claims.cycles(page, "| 4096 × 4096 × 4096 | {} | {} | {} |", &three(K4));
    // What the page says of them: another step is the fastest in each line.
    let fastest = |size| three(size).into_iter().min_by_key(|(name, size)| claims.runs.cycles(name, *size));
    let names = [K1, K2, K4].map(|size| fastest(size).map(|(name, _)| name));
    assert_eq!(names, [Some("8"), Some("9"), Some("10")], "sizes.md: the winner changes from line to line");
}
