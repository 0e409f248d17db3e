//! Kernels that no person would write, run to whatever end they come to: an error, a finding or a result, never a panic.

mod common;
#[path = "common/random.rs"]
mod random;

use emulator::{Buffer, Content, Element, Launch, Options, Param, Swizzle, TensorMap};
use random::Random;
use std::panic::catch_unwind;

const TILE: &str = include_str!("kernels/one_tile.ptx");
const PAIR: &str = include_str!("kernels/pair.ptx");
const ROUNDS: usize = 2_000;

const NUMBERS: &[&str] = &[
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "15",
    "16",
    "31",
    "32",
    "63",
    "64",
    "127",
    "128",
    "255",
    "256",
    "4095",
    "65535",
    "65536",
    "0x7fffffff",
    "0xffffffff",
    "-1",
    "-8",
    "0x100000000",
    "0x7fffffffffffffff",
];

/// The text with a few lines deleted, doubled, swapped or moved, numbers replaced, and registers exchanged.
fn mutate(text: &str, random: &mut Random) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for _ in 0..1 + random.below(3) {
        let n = 8 + random.below(lines.len() - 8);
        match random.below(6) {
            0 => drop(lines.remove(n)),
            1 => lines.insert(n, lines[n].clone()),
            2 => {
                let m = 8 + random.below(lines.len() - 8);
                lines.swap(n, m);
            }
            3 => {
                let line = lines.remove(n);
                let m = 8 + random.below(lines.len() - 8);
                lines.insert(m, line);
            }
            kind => {
                let line = &lines[n];
                let is_piece = |c: char| c.is_ascii_alphanumeric() || "%_".contains(c);
                let starts: Vec<usize> = line
                    .char_indices()
                    .filter(|&(i, c)| if kind == 4 { c.is_ascii_digit() } else { c == '%' } && (i == 0 || !is_piece(line.as_bytes()[i - 1] as char)))
                    .map(|(i, _)| i)
                    .collect();
                let Some(&start) = starts.get(random.below(starts.len())) else { continue };
                let end = line[start..].find(|c: char| !is_piece(c)).map_or(line.len(), |e| start + e);
                let new = match kind {
                    4 => NUMBERS[random.below(NUMBERS.len())].to_string(),
                    _ => format!("%{}{}", ["r", "rd", "p", "f"][random.below(4)], random.below(32)),
                };
                lines[n].replace_range(start..end, &new);
            }
        }
    }
    lines.join("\n")
}

fn launch(pair: bool) -> Launch {
    let buffer = |name: &str| Buffer {
        name: name.into(),
        content: Content::Fill { bytes: 256 * 512, value: 0x3c },
        ..Default::default()
    };
    let map = |buffer| Param::TensorMap {
        buffer,
        map: TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![256, 256],
            strides: vec![512],
            box_dims: vec![64, 128],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        },
    };
    Launch {
        entry: if pair { "pair" } else { "one_tile" }.into(),
        grid: [if pair { 2 } else { 1 }, 1, 1],
        cluster: [if pair { 2 } else { 1 }, 1, 1],
        block: [128, 1, 1],
        dynamic_shared: if pair { 81920 + 48 } else { 0 },
        buffers: ["A", "B", "D"].map(buffer).to_vec(),
        params: if pair {
            (0..3).map(map).chain([Param::U32(2)]).collect()
        } else {
            (0..3).map(|buffer| Param::Pointer { buffer, offset: 0 }).collect()
        },
        ..Default::default()
    }
}

/// The same of a kernel for Hopper: registers of MMAs, groups and warpgroups in every disorder.
#[test]
fn mutated_hopper_kernels_never_panic() {
    let mut random = Random(0x5eed_0000_0000_0002);
    let launch = common::hopper::launch(256, 128, 128);
    let (mut loaded, mut found) = (0, 0);
    for round in 0..ROUNDS / 10 {
        let text = mutate(common::hopper::TEXT, &mut random);
        let seed = (round % 3 == 0).then_some(round as u64);
        let outcome = catch_unwind(|| {
            let program = emulator::load(&text).ok()?;
            let options = Options { seed, max_instructions: 40_000, trace: round % 5 == 0, ..Default::default() };
            Some(emulator::run(&program, &launch, &options).findings.len())
        });
        match outcome {
            Ok(None) => {}
            Ok(Some(findings)) => {
                loaded += 1;
                found += u32::from(findings > 0);
            }
            Err(_) => panic!("round {round}, seed {seed:?}:\n{text}"),
        }
    }
    assert!(loaded > 80 && found > 30, "{loaded} loaded, {found} found");
}

#[test]
fn mutated_kernels_never_panic() {
    let mut random = Random(0x5eed_0000_0000_0001);
    let (mut loaded, mut clean, mut found) = (0, 0, 0);
    for round in 0..ROUNDS {
        let pair = round % 4 == 0;
        let text = mutate(if pair { PAIR } else { TILE }, &mut random);
        let seed = (round % 3 == 0).then_some(round as u64);
        let outcome = catch_unwind(|| {
            let program = emulator::load(&text).ok()?;
            let options = Options { seed, max_instructions: 20_000, trace: round % 5 == 0, ..Default::default() };
            Some(emulator::run(&program, &launch(pair), &options).findings.len())
        });
        match outcome {
            Ok(None) => {}
            Ok(Some(findings)) => {
                loaded += 1;
                *if findings == 0 { &mut clean } else { &mut found } += 1;
            }
            Err(_) => panic!("round {round}, seed {seed:?}:\n{text}"),
        }
    }
    // The mutator must reach the machine, and what it breaks must be seen.
    assert!(
        loaded > ROUNDS / 2 && found > ROUNDS / 4 && clean > ROUNDS / 20,
        "{loaded} loaded, {clean} clean, {found} found"
    );
}
