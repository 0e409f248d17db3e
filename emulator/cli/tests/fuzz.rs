//! The fuzz targets, on mutations of their seeds: as many as a second or two takes, the same in every run. `FUZZ_SEED=N` takes others,
//! `FUZZ_TIMES=N` so many times as many. `emulator/fuzz` runs them with libFuzzer.

#[path = "../../tests/common/random.rs"]
mod random;
#[path = "../../fuzz/src/lib.rs"]
mod targets;

use random::Random;
use std::panic::catch_unwind;
use std::path::Path;

/// The files of a folder of the emulator, in order.
fn seeds(folder: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(folder);
    let mut files: Vec<_> =
        std::fs::read_dir(&folder).expect("the folder").map(|e| e.expect("a file").path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).expect("its bytes")).collect()
}

/// A text with pieces of itself and of others put in, taken out or exchanged.
fn mutated(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut text = seeds[random.below(seeds.len())].clone();
    for _ in 0..1 + random.below(4) {
        let at = random.below(text.len());
        let end = (at + 1 + random.below(12)).min(text.len());
        match random.below(5) {
            0 => drop(text.drain(at..end)),
            1 => {
                let piece = text[at..end].to_vec();
                let to = random.below(text.len());
                text.splice(to..to, piece);
            }
            2 => text[at] = b"0123456789-+.,;:{}[]()%@!\"_ x\n\xff"[random.below(31)],
            3 => {
                let other = &seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                let piece = other[from..(from + random.below(40)).min(other.len())].to_vec();
                text.splice(at..at, piece);
            }
            _ => {
                let number = ["0", "1", "31", "512", "65535", "4294967295", "-1", "9223372036854775807", "1e400"];
                let digits = text[at..].iter().position(u8::is_ascii_digit).map_or(at, |n| at + n);
                let end = text[digits..].iter().position(|b| !b.is_ascii_digit()).map_or(text.len(), |n| digits + n);
                text.splice(digits..end, number[random.below(number.len())].bytes());
            }
        }
        if text.is_empty() {
            text.push(b' ');
        }
    }
    text
}

fn drive(rounds: usize, seeds: &[Vec<u8>], target: fn(&[u8])) {
    assert!(!seeds.is_empty());
    let asked = |name: &str| std::env::var(name).ok().and_then(|value| value.parse::<u64>().ok());
    let mut random = Random(asked("FUZZ_SEED").unwrap_or(0x5eed_f055));
    let rounds = rounds * asked("FUZZ_TIMES").unwrap_or(1) as usize;
    for seed in seeds {
        target(seed);
    }
    for round in 0..rounds {
        let data = mutated(seeds, &mut random);
        if catch_unwind(|| target(&data)).is_err() {
            panic!("round {round}:\n{}", String::from_utf8_lossy(&data));
        }
    }
}

#[test]
fn parser() {
    drive(3_000, &[seeds("fuzz/seeds/executor"), seeds("tests/kernels")].concat(), targets::parser);
}

#[test]
fn launch() {
    drive(5_000, &seeds("fuzz/seeds/launch"), targets::launch);
}

#[test]
fn executor() {
    drive(1_500, &[seeds("fuzz/seeds/executor"), seeds("tests/kernels")].concat(), targets::executor);
}
