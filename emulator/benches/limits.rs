//! How long the emulator takes before, beside and instead of arithmetic: `cargo bench -p emulator --bench limits`.
//!
//! - from PTX text to the first instruction: a function of 5,000 lines with 3,000 registers and 500 branches;
//! - a kernel of one 128 × 128 × 64 tile, everything included;
//! - times only of a persistent GEMM on pairs of CTAs, 8192³;
//! - the same and one that is not persistent with all checks, and the values of 4 pairs;
//! - polls that nothing ends, of 16 CTAs with 1,024 threads each, until they are told.
//!
//! Medians of the rounds. `-- text`, `-- tile`, `-- times`, `-- sample` and `-- polls` are the five by themselves.

#[path = "../tests/gluon/case.rs"]
mod case;

use emulator::{Buffer, Content, Launch, Mode, Options, Param, Values};
use std::time::Instant;

fn median(rounds: usize, mut work: impl FnMut()) -> f64 {
    let mut times: Vec<f64> = (0..rounds)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed().as_secs_f64()
        })
        .collect();
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// A function of many lines, whose loops carry values from one to the next.
fn long(lines: usize) -> String {
    let rounds = (lines - 12) / 10;
    let mut text = String::from(
        ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{\n\
         .reg .pred %p<2>;\n.reg .b64 %d<4>;\n.reg .b32 %r<3000>;\nld.param.u64 %d0, [out];\nmov.u32 %r0, %tid.x;\n",
    );
    for n in 0..rounds {
        let (a, b, c, d) = (6 * n % 2990, 6 * n % 2990 + 1, 6 * n % 2990 + 2, 6 * n % 2990 + 3);
        text += &format!(
            "mov.u32 %r{b}, {n};\nL{n}:\nmad.lo.u32 %r{c}, %r{a}, %r{b}, 7;\nshl.b32 %r{d}, %r{c}, 3;\n\
             xor.b32 %r{d}, %r{d}, %r{a};\nadd.u32 %r{b}, %r{b}, 1;\nsetp.lt.u32 %p0, %r{b}, {};\n@%p0 bra L{n};\n\
             add.u32 %r{e}, %r{d}, %r{c};\nst.global.u32 [%d0], %r{e};\n",
            n + 1,
            e = (6 * n + 6) % 2990,
        );
    }
    text + "ret;\n}\n"
}

fn main() {
    let only = std::env::args().skip(1).find(|a| !a.starts_with("--"));
    let wanted = |name: &str| only.as_ref().is_none_or(|only| name == only);
    if wanted("text") {
        text_to_first_instruction();
    }
    if wanted("tile") {
        one_tile();
    }
    if wanted("times") {
        times_only();
    }
    if wanted("sample") {
        sample();
    }
    if wanted("polls") {
        polls();
    }
}

fn text_to_first_instruction() {
    let text = long(5000);
    let lines = text.lines().count();
    let out = Buffer { name: "out".into(), content: Content::Undefined { bytes: 4096 }, ..Default::default() };
    let launch = Launch {
        entry: "k".into(),
        grid: [1; 3],
        cluster: [1; 3],
        block: [1, 1, 1],
        buffers: vec![out],
        params: vec![Param::Pointer { buffer: 0, offset: 0 }],
        ..Default::default()
    };
    let first = median(21, || {
        let program = emulator::load(&text).expect("the text loads");
        let report = emulator::run(&program, &launch, &Options { max_instructions: 0, ..Options::default() });
        assert_eq!(report.findings[0].code, "instruction-budget");
    });
    println!("PTX text to the first instruction, {lines} lines      {:8.2} ms (limit 20)", 1e3 * first);
}

fn one_tile() {
    let mut tile = case::case("tile_single", Some([128, 128, 64]));
    tile.launch.grid = [1; 3];
    let program = emulator::load(&tile.text).expect("the kernel loads");
    let run = median(1001, || {
        let report = emulator::run(&program, &tile.launch, &Options::default());
        assert!(report.is_clean(), "{:?}", report.findings);
    });
    println!("a kernel of one 128 × 128 × 64 tile               {:8.2} ms (limit 1)", 1e3 * run);
}

fn times_only() {
    let mut large = case::case("ws_two_cta", Some([8192; 3]));
    // A pair of CTAs for each pair of SMs.
    large.launch.grid = [148, 1, 1];
    let program = emulator::load(&large.text).expect("the kernel loads");
    let mut cycles = 0;
    let options = Options { mode: Mode::Time, ..Options::default() };
    let time = median(3, || {
        let report = emulator::run(&program, &large.launch, &options);
        assert!(report.completed && report.findings.is_empty(), "{:?}", report.findings);
        cycles = report.cycles;
    });
    let [m, n, k] = large.size;
    let rate = (2 * m * n * k) as f64 / (cycles as f64 / 1.85e9) / 1e12;
    println!("                                                  {rate:8.0} TFLOP/s at 1.85 GHz, as simulated");
    println!("times only, 8192 × 8192 × 8192                    {time:8.2} s (limit 5): {cycles} cycles");
}

fn sample() {
    // A pair of CTAs for each pair of SMs, and one for each tile.
    for (name, pairs, wanted) in [("ws_two_cta", 74, [0, 20, 41, 73]), ("two_cta_ring", 1024, [0, 300, 700, 1023])] {
        let mut large = case::case(name, Some([8192; 3]));
        large.launch.grid = if pairs == 74 { [148, 1, 1] } else { [64, 32, 1] };
        let program = emulator::load(&large.text).expect("the kernel loads");
        let (mut cycles, mut computed) = (0, 0);
        let options = Options { values: Values::OfClusters(wanted.to_vec()), ..Options::default() };
        let time = median(3, || {
            let report = emulator::run(&program, &large.launch, &options);
            assert!(report.is_clean(), "{:?} {:?}", report.findings, report.incomplete);
            assert_eq!((report.clusters, report.computed_clusters), (pairs, 4));
            let d = &report.buffers[2];
            assert!(d.defined.iter().all(|&word| word == u64::MAX), "D is not whole");
            (cycles, computed) = (report.cycles, d.blank.iter().map(|word| u64::from(word.count_zeros())).sum::<u64>());
        });
        let [m, n, _] = large.size;
        let part = 100.0 * computed as f64 / (2 * m * n) as f64;
        println!("all checks, values of 4 of {pairs:4} pairs, 8192³      {time:8.2} s (limit 12): {cycles} cycles");
        println!("                                                  {part:8.2} % of D computed, by {name}");
    }
}

/// What a round does besides looking: `%r1` is 1 at first, `%own` the thread's own word, `%d1` and `%d3` what the clocks were.
const ROUNDS: [(&str, &str); 15] = [
    ("looks", ""),
    ("counts its rounds", "add.u32 %r1, %r1, 1;"),
    ("pauses by an LCG", "mad.lo.u32 %r1, %r1, 1664525, 1013904223;\nand.b32 %r4, %r1, 255;\nnanosleep.u32 %r4;"),
    ("doubles its pause", "shl.b32 %r1, %r1, 1;\nmin.u32 %r1, %r1, 1024;\nnanosleep.u32 %r1;"),
    ("reads %clock64", "mov.u64 %d2, %clock64;\nsub.s64 %d2, %d2, %d1;"),
    ("gives up after 2,000,000,000", "add.u32 %r1, %r1, 1;\nsetp.gt.u32 %p1, %r1, 2000000000;\n@%p1 bra END;"),
    (
        "gives up by %clock64",
        "mov.u64 %d2, %clock64;\nsub.s64 %d2, %d2, %d1;\nsetp.gt.s64 %p1, %d2, 200000000000;\n@%p1 bra END;",
    ),
    (
        "gives up by %globaltimer",
        "mov.u64 %d2, %globaltimer;\nsub.s64 %d2, %d2, %d3;\nsetp.gt.s64 %p1, %d2, 200000000000;\n@%p1 bra END;",
    ),
    ("counts failures by red", "red.global.add.u32 [%a+64], 1;"),
    ("counts failures by atom", "atom.global.add.u32 %r5, [%a+64], 1;"),
    ("stores its progress", "add.u32 %r1, %r1, 1;\nst.global.u32 [%own], %r1;"),
    ("the same, strong", "add.u32 %r1, %r1, 1;\nst.relaxed.gpu.global.u32 [%own], %r1;"),
    ("tries a lock, counts", "atom.acquire.gpu.global.cas.b32 %r2, [%a], 5, 1;\nadd.u32 %r1, %r1, 1;"),
    (
        "one of eight flags",
        "add.u32 %r1, %r1, 1;\nand.b32 %r4, %r1, 7;\nmul.wide.u32 %d5, %r4, 4;\nadd.s64 %d5, %d5, %a;\nld.acquire.gpu.global.u32 %r2, [%d5];",
    ),
    (
        "in a loop that counts",
        "setp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 9;\n@%p1 bra L;\nmov.u32 %r2, 1;",
    ),
];

fn polls() {
    let buffer = |name: &str, bytes| Buffer {
        name: name.into(),
        content: Content::Fill { bytes, value: 0 },
        ..Default::default()
    };
    let launch = Launch {
        entry: "k".into(),
        grid: [16, 1, 1],
        cluster: [1; 3],
        block: [1024, 1, 1],
        buffers: vec![buffer("a", 4096), buffer("out", 65_536)],
        params: [0, 1].map(|buffer| Param::Pointer { buffer, offset: 0 }).into(),
        ..Default::default()
    };
    for (what, round) in ROUNDS {
        for (how, look) in [("strong", "ld.acquire.gpu.global.u32 %r2, [%a];"), ("plain", "ld.global.u32 %r2, [%a];")] {
            let text = format!(
                ".version 8.7\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u64 out)\n{{\n\
                 .reg .pred %p<6>;\n.reg .b32 %r<12>, %tid, %cta;\n.reg .b64 %d<10>, %a, %out, %own;\n\
                 ld.param.u64 %a, [a];\nld.param.u64 %out, [out];\nmov.u32 %tid, %tid.x;\nmov.u32 %cta, %ctaid.x;\n\
                 mad.lo.u32 %r8, %cta, 1024, %tid;\nmul.wide.u32 %own, %r8, 4;\nadd.s64 %own, %own, %out;\nmov.u32 %r1, 1;\n\
                 mov.u64 %d1, %clock64;\nmov.u64 %d3, %globaltimer;\n\
                 L:\n{look}\n{round}\nsetp.eq.u32 %p0, %r2, 0;\n@%p0 bra L;\nEND:\nret;\n}}\n"
            );
            let program = emulator::load(&text).expect("the kernel loads");
            let mut code = "";
            let time = median(3, || {
                let report = emulator::run(&program, &launch, &Options::default());
                code = report.findings.first().expect("a poll that nothing ends is told").code;
            });
            println!("a poll, {how:6}: {what:30} {time:8.2} s (limit 2): {code}");
        }
    }
}
