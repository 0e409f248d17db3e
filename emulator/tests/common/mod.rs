//! What several tests of the emulator share: a launch, a matrix, words of a buffer, schedules.

#![allow(dead_code)]

pub mod hopper;
pub mod one_tile;
pub mod pair;
pub mod processor;
pub mod results_only;
pub mod timed;

use emulator::{Buffer, Content, Launch, Options, Param, Program, Report};
use std::fmt::Write;

/// The program of a text that must load.
#[track_caller]
pub fn load(text: &str) -> Program {
    emulator::load(text).unwrap_or_else(|errors| panic!("does not load: {errors:#?}\n{text}"))
}

/// A launch of one cluster of one CTA, with a pointer to each buffer as its parameters.
pub fn launch(entry: &str, threads: u32, buffers: Vec<Buffer>) -> Launch {
    Launch {
        entry: entry.into(),
        grid: [1, 1, 1],
        cluster: [1, 1, 1],
        block: [threads, 1, 1],
        params: (0..buffers.len()).map(|buffer| Param::Pointer { buffer, offset: 0 }).collect(),
        buffers,
        ..Default::default()
    }
}

/// A buffer of zeroes.
pub fn zeroes(name: &str, bytes: u64) -> Buffer {
    Buffer { name: name.into(), content: Content::Fill { bytes, value: 0 }, ..Default::default() }
}

/// A buffer of these bytes.
pub fn holding(name: &str, bytes: Vec<u8>) -> Buffer {
    Buffer { name: name.into(), content: Content::Bytes(bytes.into()), ..Default::default() }
}

/// A run with so many warp instructions at most; on the default schedule it is held against one for results alone.
#[track_caller]
pub fn run(program: &Program, launch: &Launch, seed: Option<u64>, max_instructions: u64) -> Report {
    let options = Options { seed, max_instructions, ..Default::default() };
    let report = emulator::run(program, launch, &options);
    if seed.is_none() {
        results_only::compare(&launch.entry, program, launch, &options, &report);
    }
    report
}

/// The default schedule, and so many adversarial ones.
pub fn schedules(adversarial: u64) -> impl Iterator<Item = Option<u64>> {
    std::iter::once(None).chain((0..adversarial).map(Some))
}

/// The codes of what a run found.
pub fn codes(report: &Report) -> Vec<&'static str> {
    report.findings.iter().map(|d| d.code).collect()
}

/// The codes of the rules that a run broke without consequence.
pub fn notes(report: &Report) -> Vec<&'static str> {
    report.notes.iter().map(|d| d.code).collect()
}

/// A 32-bit word of the first buffer.
pub fn word32(report: &Report, n: usize) -> u32 {
    let at = &report.buffers[0].bytes[4 * n..];
    u32::from_le_bytes([at[0], at[1], at[2], at[3]])
}

/// A 64-bit word of the first buffer.
pub fn word64(report: &Report, n: usize) -> u64 {
    u64::from(word32(report, 2 * n)) | u64::from(word32(report, 2 * n + 1)) << 32
}

/// Small integers from −span to span, row after row: every sum of products is exact.
pub fn matrix(rows: usize, columns: usize, seed: u64, span: i32) -> Vec<i32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as i32 % (2 * span + 1) - span
    };
    (0..rows * columns).map(|_| next()).collect()
}

/// What a run found, its notes and what it could not check, as a person reads it.
pub fn rendered(report: &Report) -> String {
    let mut text = String::new();
    for d in report.findings.iter().chain(&report.notes) {
        let _ = writeln!(text, "{:?} `{}`: {}", d.severity, d.code, d.title);
        for label in &d.labels {
            let _ = writeln!(text, "    line {}: `{}`: {}", label.place.line, label.place.text, label.text);
        }
        let _ = writeln!(text, "    rule: {}\n    try: {}", d.rule, d.help);
    }
    for what in &report.incomplete {
        let _ = writeln!(text, "not checked: {what}");
    }
    text
}
