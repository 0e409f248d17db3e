//! A kernel, the edits that break it, and what must be said of it then.

#![allow(dead_code)]

use super::common;
use common::{holding, schedules, zeroes};
use emulator::{Buffer, Content, Diagnostic, Element, Launch, Param, Report, Swizzle, TensorMap};
use half::f16;

/// A kernel that is right, and breaks by edits.
#[derive(Clone, Copy, PartialEq)]
pub enum Base {
    /// `ring.ptx`: persistent and warp-specialised, by one CTA.
    Ring,
    /// `../kernels/pair.ptx`: a ring by a pair of CTAs.
    Pair,
    /// The same in clusters of two pairs.
    Quad,
    /// `../kernels/one_tile.ptx`: one tile, without TMA.
    OneTile,
    /// `../kernels/launch_control.ptx`: a warp a cluster, that takes work over.
    LaunchControl,
    /// So many CTAs in a cluster, of so many threads, that run this body; see [`small`].
    Small(u32, u32, &'static str),
    /// The same with so many CTAs in a grid, each a cluster of its own.
    Grid(u32, u32, &'static str),
    /// So many CTAs in clusters of so many, of one warp each, of which one cluster runs at a time.
    Clusters(u32, u32, &'static str),
    /// By a warp, with boxes of one row.
    OneRow(&'static str),
}

/// What must be said. A place is a part of a line that no other line has, or `@name` for a marked line; `*` is any code, or any line.
pub enum Expect {
    /// On every schedule, the first finding is one of these. What is refused before it runs counts as found.
    Finds(&'static [(&'static str, &'static str)]),
    /// On every schedule, one of these is found, be it behind a consequence of it.
    Among(&'static [(&'static str, &'static str)]),
    /// On at least one of twenty adversarial schedules, the first finding is one of these.
    Sometimes(&'static [(&'static str, &'static str)]),
    /// The default schedule finds nothing, and says that time decides at this line what a warp does; of twenty adversarial schedules, one
    /// finds one of these first.
    Depends(&'static str, &'static [(&'static str, &'static str)]),
    /// This is noted, and nothing is found; whether the result is right.
    Notes(&'static str, &'static str, Result),
    /// No rule of the ISA is broken: the result is wrong, and nothing is found.
    Wrong,
    /// It does not load, or is not launched: this code, and this in the message.
    Refused(&'static str, &'static str),
}

#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Result {
    Right,
    Wrong,
}

pub struct Case {
    /// Row of the table, with a letter.
    pub row: &'static str,
    /// The bug.
    pub what: &'static str,
    /// Where it was reported.
    pub source: &'static str,
    /// What GPUs were seen to do: HANG, RACE (a wrong result now and then), WRONG (always), ILL (illegal instruction), ULF (unspecified
    /// launch failure), ENC (the driver refuses the tensor map).
    pub gpu: &'static str,
    pub base: Base,
    /// What makes another right kernel of the base.
    pub first: Vec<(&'static str, &'static str)>,
    /// The bug. A passage that occurs once, or `@name` for the whole of a marked line, and what to put there. `{}` stands for what was
    /// there.
    pub edits: Vec<(&'static str, &'static str)>,
    pub launch: fn(&mut Launch),
    pub expect: Expect,
}

/// A case with the launch of its base.
pub fn case(
    row: &'static str,
    what: &'static str,
    (source, gpu): (&'static str, &'static str),
    base: Base,
    edits: &[(&'static str, &'static str)],
    expect: Expect,
) -> Case {
    Case { row, what, source, gpu, base, first: vec![], edits: edits.to_vec(), launch: |_| {}, expect }
}

impl Case {
    /// The kernel without the bug.
    pub fn right(&self) -> String {
        edited(&self.base.text(), &self.first)
    }

    pub fn launched(self, launch: fn(&mut Launch)) -> Case {
        Case { launch, ..self }
    }
}

const RING: &str = include_str!("ring.ptx");
const ONE_TILE: &str = include_str!("../kernels/one_tile.ptx");
const LAUNCH_CONTROL: &str = include_str!("../kernels/launch_control.ptx");

/// `pair.ptx` in clusters of four: a CTA's number in its pair, its pair's leader, and the mask of its pair.
const QUAD: &[(&str, &str)] = &[
    (".reqnctapercluster 2, 1, 1", ".reqnctapercluster 4, 1, 1"),
    ("    mov.u32 %r2, %cluster_ctarank;", "    mov.u32 %r51, %cluster_ctarank;\n    and.b32 %r2, %r51, 1;"),
    ("    shl.b32 %r7, %r50, 1;\n    add.u32 %r7, %r7, %r2;", "    shl.b32 %r7, %r50, 2;\n    add.u32 %r7, %r7, %r51;"),
    (
        "    shl.b32 %r27, %r50, 1;\n    add.u32 %r27, %r27, %r2;",
        "    shl.b32 %r27, %r50, 2;\n    add.u32 %r27, %r27, %r51;",
    ),
    ("    mov.b16 %h0, 3;", "    mov.u32 %r52, 3;\n    shl.b32 %r52, %r52, %r51;\n    cvt.u16.u32 %h0, %r52;"),
];

/// Around the body of a small kernel: `%r0` thread, `%p0` thread 0, `%r1` warp, `%r2` rank in the cluster; `%rd0` and `%rd1` point to
/// the buffers `out` and `src`, `%rd2` to a tensor map of `src`: boxes of 1024 bytes.
fn small(cluster: u32, body: &str) -> String {
    let clusters = if cluster > 1 { format!(".reqnctapercluster {cluster}, 1, 1\n") } else { String::new() };
    format!(
        ".version 8.7\n.target sm_100a\n.address_size 64\n\
         .visible .entry k(.param .u64 out, .param .u64 src, .param .align 64 .b8 map[128])\n.maxnreg 168\n{clusters}{{\n\
         .shared .align 1024 .b8 tile[8192];\n.shared .align 8 .b64 bar_a;\n.shared .align 8 .b64 bar_b;\n\
         .shared .align 4 .b32 slot;\n.shared .align 16 .b8 response[16];\n\
         .reg .pred %p<16>;\n.reg .b16 %h<8>;\n.reg .b32 %r<64>;\n.reg .b64 %rd<16>;\n.reg .f32 %f<8>;\n.reg .b128 %q0;\n\
         mov.u32 %r0, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\nshr.u32 %r1, %r0, 5;\nmov.u32 %r2, %cluster_ctarank;\n\
         ld.param.u64 %rd0, [out];\nld.param.u64 %rd1, [src];\nmov.b64 %rd2, map;\ncvta.param.u64 %rd2, %rd2;\n\
         {body}\nret;\n}}\n"
    )
}

fn small_launch(cluster: u32, threads: u32) -> Launch {
    let words = (0..2048u32).flat_map(u32::to_le_bytes).collect();
    let mut launch = common::launch("k", threads, vec![zeroes("out", 8192), holding("src", words)]);
    (launch.grid, launch.cluster) = ([cluster, 1, 1], [cluster, 1, 1]);
    let map = TensorMap {
        address: 0,
        element: Element::U32,
        dims: vec![32, 64],
        strides: vec![128],
        box_dims: vec![32, 8],
        element_strides: vec![],
        swizzle: Swizzle::None,
        fill_nan: false,
    };
    launch.params.push(Param::TensorMap { buffer: 1, map });
    launch
}

pub fn ring_launch(m: usize, k: usize) -> Launch {
    let (tiles, k_tiles) = (m.div_ceil(128), k.div_ceil(64));
    let bytes =
        |m: &[i32]| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect::<Vec<u8>>();
    let buffer =
        |name: &str, content, row| Buffer { name: name.into(), content, row_bytes: Some(row), element_bytes: Some(2) };
    let content = |rows, seed| Content::Bytes(bytes(&common::matrix(rows, k, seed, 2)).into());
    let map = common::pair::map;
    Launch {
        entry: "ring".into(),
        grid: [1, 1, 1],
        cluster: [1, 1, 1],
        block: [192, 1, 1],
        dynamic_shared: 65536 + 72,
        buffers: vec![
            buffer("A", content(m, 1), 2 * k as u32),
            buffer("B", content(64, 2), 2 * k as u32),
            buffer("D", Content::Undefined { bytes: (m * 64 * 2) as u64 }, 128),
        ],
        params: vec![
            map(0, m as u64, k as u64, 128),
            map(1, 64, k as u64, 64),
            map(2, m as u64, 64, 128),
            Param::U32(k_tiles as u32),
            Param::U32(tiles as u32),
        ],
        ..Default::default()
    }
}

fn one_tile_launch() -> Launch {
    let bytes =
        |m: Vec<i32>| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect::<Vec<u8>>();
    let matrix = |seed| bytes(common::matrix(128, 64, seed, 2));
    let d = Buffer { name: "D".into(), content: Content::Undefined { bytes: 128 * 256 }, ..Default::default() };
    let mut launch = common::launch("one_tile", 128, vec![holding("A", matrix(1)), holding("B", matrix(2)), d]);
    for (buffer, row) in launch.buffers.iter_mut().zip([128, 128, 256]) {
        buffer.row_bytes = Some(row);
    }
    launch
}

impl Base {
    pub fn text(self) -> String {
        match self {
            Base::Ring => RING.into(),
            Base::Pair => common::pair::TEXT.into(),
            Base::Quad => edited(common::pair::TEXT, QUAD),
            Base::OneTile => ONE_TILE.into(),
            Base::LaunchControl => LAUNCH_CONTROL.into(),
            Base::Small(cluster, _, body) | Base::Clusters(_, cluster, body) => small(cluster, body),
            Base::Grid(_, _, body) | Base::OneRow(body) => small(1, body),
        }
    }

    pub fn launch(self) -> Launch {
        match self {
            Base::Ring => ring_launch(384, 192),
            Base::Pair => common::pair::launch(256, 192),
            Base::Quad => {
                let mut launch = common::pair::launch(512, 192);
                (launch.grid, launch.cluster) = ([4, 1, 1], [4, 1, 1]);
                launch
            }
            Base::OneTile => one_tile_launch(),
            Base::LaunchControl => {
                let mut launch = common::launch("k", 32, vec![zeroes("out", 160)]);
                launch.grid = [40, 1, 1];
                launch.attributes.resident_clusters = Some(8);
                launch
            }
            Base::Small(cluster, threads, _) => small_launch(cluster, threads),
            Base::Grid(ctas, threads, _) => Launch { grid: [ctas, 1, 1], ..small_launch(1, threads) },
            Base::Clusters(ctas, cluster, _) => {
                let mut launch = Launch { grid: [ctas, 1, 1], ..small_launch(cluster, 32) };
                launch.attributes.resident_clusters = Some(1);
                launch
            }
            Base::OneRow(_) => {
                let mut launch = small_launch(1, 32);
                if let Some(Param::TensorMap { map, .. }) = launch.params.last_mut() {
                    map.box_dims = vec![32, 1];
                }
                launch
            }
        }
    }

    /// Whether D is the product of A and B. (Other kernels compute none.)
    pub fn result(self, launch: &Launch, report: &Report) -> Result {
        if !matches!(self, Base::Ring | Base::Pair | Base::Quad | Base::OneTile) {
            return Result::Right;
        }
        let columns = |n: usize| launch.buffers[n].row_bytes.unwrap_or(2) as usize / 2;
        let rows = |n: usize| report.buffers.get(n).map_or(0, |b| b.bytes.len() / 2 / columns(n));
        let (m, n, k) = (rows(2), columns(2), columns(0));
        let (a, b) = (common::matrix(m, k, 1, 2), common::matrix(n, k, 2, 2));
        let sum = |at: usize| -> i32 { (0..k).map(|i| a[at / n * k + i] * b[at % n * k + i]).sum() };
        let d = common::pair::d(report);
        let right = !d.is_empty() && (0..m * n).all(|at| d[at] == f16::from_f32(sum(at) as f32).to_f32());
        if right { Result::Right } else { Result::Wrong }
    }
}

/// The number of the only line that has this in it, from 1. A name behind `@` ends the line.
fn line_of(text: &str, place: &str) -> usize {
    let is = |line: &str| {
        if place.starts_with('@') { line.trim_end().ends_with(&format!("// {place}")) } else { line.contains(place) }
    };
    let lines: Vec<usize> = text.lines().enumerate().filter(|(_, line)| is(line)).map(|(n, _)| n + 1).collect();
    let [line] = lines[..] else { panic!("`{place}` is in lines {lines:?} of\n{text}") };
    line
}

/// The text after these edits.
pub fn edited(text: &str, edits: &[(&str, &str)]) -> String {
    edits.iter().fold(text.to_string(), |text, (from, to)| {
        if from.starts_with('@') {
            let number = line_of(&text, from);
            let old = text.lines().nth(number - 1).unwrap_or_default();
            let new =
                if to.contains("{}") || to.is_empty() { to.replace("{}", old) } else { format!("{to} // {from}") };
            let lines = text.lines().enumerate().map(|(n, line)| if n + 1 == number { new.as_str() } else { line });
            return lines.collect::<Vec<_>>().join("\n") + "\n";
        }
        assert_eq!(text.matches(from).count(), 1, "`{from}` must occur once in\n{text}");
        text.replace(from, &to.replace("{}", from))
    })
}

/// What a person reads.
pub fn told(found: &[Diagnostic]) -> String {
    let mut text = String::new();
    for d in found {
        text += &format!("  [{}] {}\n", d.code, d.title);
        for label in &d.labels {
            text += &format!("    line {}: {}\n      {}\n", label.place.line, label.text, label.place.text);
        }
        text += &format!("    rule: {}\n    try: {}\n", d.rule, d.help);
    }
    text
}

fn is_one_of(text: &str, d: &Diagnostic, allowed: &[(&str, &str)]) -> bool {
    let line = d.labels.first().map_or(0, |label| label.place.line as usize);
    let known = emulator::CODES.iter().any(|(code, _)| *code == d.code);
    known
        && allowed.iter().any(|&(code, at)| (code == "*" || code == d.code) && (at == "*" || line_of(text, at) == line))
}

impl Case {
    /// `Err`: what the emulator says instead.
    pub fn judge(&self) -> std::result::Result<(), String> {
        let text = edited(&self.right(), &self.edits);
        let mut launch = self.base.launch();
        (self.launch)(&mut launch);
        let program = match emulator::load(&text) {
            Ok(program) => program,
            Err(errors) => return self.refused(&text, &errors),
        };
        if let Err(errors) = emulator::check(&program, &launch) {
            return self.refused(&text, &errors);
        }
        let run = |seed| common::run(&program, &launch, seed, 400_000);
        if let Expect::Sometimes(allowed) = self.expect {
            let mut found = schedules(20).filter_map(|seed| run(seed).findings.first().cloned());
            let all: Vec<Diagnostic> = found.by_ref().collect();
            let some = all.iter().any(|d| is_one_of(&text, d, allowed));
            return if some { Ok(()) } else { Err(format!("on 21 schedules, {allowed:?} never; but\n{}", told(&all))) };
        }
        if let Expect::Depends(at, allowed) = self.expect {
            let first = run(None);
            let says = first.timing.iter().any(|label| label.place.line as usize == line_of(&text, at));
            let found = (0..20).filter_map(|seed| run(Some(seed)).findings.first().cloned());
            let all: Vec<Diagnostic> = found.collect();
            let good = first.is_clean() && says && all.iter().any(|d| is_one_of(&text, d, allowed));
            let (here, there) = (told(&first.findings), told(&all));
            return if good {
                Ok(())
            } else {
                Err(format!(
                    "by default, what depends on time: {:?}, findings:\n{here}on others:\n{there}",
                    first.timing
                ))
            };
        }
        for seed in schedules(3) {
            let report = run(seed);
            let result = self.base.result(&launch, &report);
            let good = match self.expect {
                Expect::Finds(allowed) => report.findings.first().is_some_and(|d| is_one_of(&text, d, allowed)),
                Expect::Among(allowed) => report.findings.iter().any(|d| is_one_of(&text, d, allowed)),
                Expect::Notes(code, at, expected) => {
                    report.is_clean()
                        && report.notes.iter().any(|d| is_one_of(&text, d, &[(code, at)]))
                        && result == expected
                }
                Expect::Wrong => report.is_clean() && result == Result::Wrong,
                Expect::Refused(..) | Expect::Sometimes(_) | Expect::Depends(..) => false,
            };
            if !good {
                let (findings, notes) = (told(&report.findings), told(&report.notes));
                let end = if report.completed { "completed" } else { "not completed" };
                return Err(format!(
                    "seed {seed:?}: {end}, {result:?}, incomplete {:?}, findings:\n{findings}notes:\n{notes}",
                    report.incomplete
                ));
            }
        }
        Ok(())
    }

    fn refused(&self, text: &str, errors: &[Diagnostic]) -> std::result::Result<(), String> {
        let good = match self.expect {
            Expect::Refused(code, says) => {
                errors.first().is_some_and(|d| d.code == code && told(errors).contains(says))
            }
            Expect::Finds(allowed) => errors.first().is_some_and(|d| is_one_of(text, d, allowed)),
            _ => false,
        };
        if good { Ok(()) } else { Err(format!("refused otherwise:\n{}", told(errors))) }
    }

    fn wanted(&self) -> String {
        match self.expect {
            Expect::Finds(allowed) => format!("{allowed:?}"),
            Expect::Among(allowed) => format!("among others {allowed:?}"),
            Expect::Sometimes(allowed) => format!("sometimes {allowed:?}"),
            Expect::Depends(at, allowed) => format!("depends on time at {at}, and sometimes {allowed:?}"),
            Expect::Notes(code, at, result) => format!("note {code} at {at}, {result:?}"),
            Expect::Wrong => "nothing, and a wrong result".into(),
            Expect::Refused(code, says) => format!("refused as {code}: {says}"),
        }
    }
}

/// All cases: each is judged as expected, or is a known miss.
pub fn judge_all(cases: &[Case], misses: &[(&str, &str)]) {
    let mut wrong = vec![];
    for case in cases {
        let name = format!("{}: {} ({}, {})", case.row, case.what, case.source, case.gpu);
        let missed = misses.iter().any(|(row, _)| *row == case.row);
        match case.judge() {
            Ok(()) if missed => wrong.push(format!("{name}\n  is found now: take it from the list of misses\n")),
            Err(_) if missed => {}
            Ok(()) => {}
            Err(instead) => wrong.push(format!("{name}\n  expected {}\n  {instead}", case.wanted())),
        }
    }
    for (row, _) in misses {
        assert!(cases.iter().any(|case| case.row == *row), "there is no case `{row}`");
    }
    assert!(wrong.is_empty(), "{} of {} cases:\n\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}

/// What the default schedule says of a base with these edits, in a launch that is changed so.
pub fn run(base: Base, edits: &[(&str, &str)], change: fn(&mut Launch), budget: u64) -> Report {
    let (text, mut launch) = (edited(&base.text(), edits), base.launch());
    change(&mut launch);
    common::run(&common::load(&text), &launch, None, budget)
}

/// What it finds first.
pub fn first(base: Base, edits: &[(&str, &str)], change: fn(&mut Launch)) -> Diagnostic {
    let found = run(base, edits, change, 400_000).findings.first().cloned();
    found.unwrap_or_else(|| panic!("nothing is found in\n{}", edited(&base.text(), edits)))
}

/// That a finding says all of this.
pub fn says(found: &Diagnostic, parts: &[&str]) {
    let all = told(std::slice::from_ref(found));
    parts.iter().for_each(|part| assert!(all.contains(part), "`{part}` is not in\n{all}"));
}

/// That the first finding of each case, by its row, says all of this. No case and no row is left out.
pub fn all_say(cases: &[Case], said: &[(&str, &[&str])]) {
    assert_eq!(
        cases.iter().map(|case| case.row).collect::<Vec<_>>(),
        said.iter().map(|said| said.0).collect::<Vec<_>>()
    );
    for (case, (_, parts)) in cases.iter().zip(said) {
        says(&first(case.base, &case.edits, case.launch), parts);
    }
}
