//! Cycles that kernels measured with `%clock64`: what GPUs took, and what the emulator takes.
//!
//! A case's comments `// row: LABEL` name what it measured. Its buffer `cycles` holds, for each, 16 measurements of 64 bits. A label
//! that ends with `, each of N` is of N operations behind each other: its cycles are divided by N.

use crate::case::{self, Case};
use crate::recording::{Outcome, Recording};
use crate::table::recordings;
use harness::bench::median;
use std::fs;
use std::path::Path;

/// Measurements of a row.
const ROUNDS: usize = 16;
/// The buffer that holds them.
const BUFFER: &str = "cycles";

/// The cycles of a row.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cycles {
    median: f64,
    least: f64,
    most: f64,
}

/// The table: a line for each row and each GPU that has recorded it; one without a GPU, if none has.
///
/// # Errors
/// When a file cannot be read, the emulator finds a case wrong, or measurements are missing.
pub fn table(folder: &Path) -> Result<String, String> {
    let cases = case::cases(folder, None)?;
    let files = recordings(folder, &cases)?;
    let mut text = String::from("| case | cycles of | GPU | median | least to most | emulator | difference |\n");
    text += "|---|---|---|---|---|---|---|\n";
    let mut count = 0;
    for case in &cases {
        let ptx =
            fs::read_to_string(&case.ptx).map_err(|error| format!("cannot read {}: {error}", case.ptx.display()))?;
        let rows = case::says(&ptx, "row");
        if rows.is_empty() {
            continue;
        }
        count += rows.len();
        let here = cycles(&rows, &emulated(case, &ptx)?);
        let here = here.map_err(|error| format!("{}: on the emulator {error}", case.ptx.display()))?;
        let mut there = Vec::new();
        for (_, file) in files.iter().filter(|(name, _)| *name == case.name) {
            let recording = case::read(file)?;
            let read = measured(&recording, &rows).map_err(|error| format!("{}: {error}", file.display()))?;
            there.push((recording.gpu, read));
        }
        for (n, row) in rows.iter().enumerate() {
            let start = format!("| {} | {} |", case.name, row.replace('|', "\\|"));
            let emulator = round(here[n].median);
            for (gpu, read) in &there {
                text += &match read {
                    Ok(read) => {
                        let Cycles { median, least, most } = read[n];
                        let difference = (here[n].median / median - 1.0) * 100.0;
                        let (median, least, most) = (round(median), round(least), round(most));
                        format!("{start} {gpu} | {median} | {least} to {most} | {emulator} | {difference:+.1} % |\n")
                    }
                    Err(ended) => format!("{start} {gpu} | {ended} | | {emulator} | |\n"),
                };
            }
            if there.is_empty() {
                text += &format!("{start} | | | {emulator} | |\n");
            }
        }
    }
    if count == 0 {
        return Err(format!(
            "no case of {} measures cycles\n  try: Name a folder whose kernels have comments `// row: LABEL`, such as emulator/tests/silicon/timing.",
            folder.display()
        ));
    }
    Ok(text)
}

/// What the emulator leaves in the buffer of measurements. It takes the GPU that the kernel's `.target` names.
fn emulated(case: &Case, ptx: &str) -> Result<Vec<u8>, String> {
    let (path, launch) = (case.ptx.display(), case.launch.display());
    let failed = |what: &str, found: &[emulator::Diagnostic]| {
        let first = found.first().map_or_else(String::new, |first| format!(": {}", first.title));
        format!("{path}: {what}{first}\n  try: `emulate {path} --launch {launch}` says more.")
    };
    let described = emulate::read_launch(&case.launch)?;
    let buffer = described.buffers.iter().position(|buffer| buffer.name == BUFFER);
    let buffer = buffer
        .ok_or_else(|| format!("{launch} has no buffer `{BUFFER}`\n  try: Give it one, with 128 bytes a row."))?;
    let program = emulator::load(ptx).map_err(|errors| failed("the emulator does not load it", &errors))?;
    let mut report = emulator::run(&program, &described, &emulator::Options::default());
    if !report.is_clean() {
        return Err(failed("the emulator does not find it clean", &report.findings));
    }
    Ok(report.buffers.swap_remove(buffer).bytes.into())
}

/// What a GPU measured; how it ended, if it did not get that far.
fn measured(recording: &Recording, rows: &[String]) -> Result<Result<Vec<Cycles>, &'static str>, String> {
    match recording.outcome {
        Outcome::Hang => Ok(Err("hang")),
        Outcome::Error => Ok(Err("error")),
        Outcome::Done => {
            let bytes = recording.buffers.get(BUFFER).ok_or_else(|| format!("it has no buffer `{BUFFER}`"))?;
            let bytes = bytes.unpack().map_err(|error| format!("`{BUFFER}`: {error}"))?;
            cycles(rows, &bytes).map(Ok)
        }
    }
}

/// The rows of a buffer of measurements.
fn cycles(rows: &[String], bytes: &[u8]) -> Result<Vec<Cycles>, String> {
    let (found, needed) = (bytes.len(), rows.len() * ROUNDS * 8);
    if found != needed {
        let rows = rows.len();
        return Err(format!(
            "`{BUFFER}` has {found} bytes, not {needed}: {rows} rows of {ROUNDS} measurements of 8 bytes"
        ));
    }
    let row = |(label, bytes): (&String, &[u8])| {
        let each = each(label)?;
        let (words, _) = bytes.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
        // Bytes that were never written hold 0xff; the launch files fill with 0.
        if let Some(n) = words.iter().position(|word| matches!(*word, 0 | u64::MAX)) {
            return Err(format!("measurement {n} of the row `{label}` was not taken"));
        }
        let values: Vec<f64> = words.iter().map(|&word| word as f64 / f64::from(each)).collect();
        Ok(Cycles {
            median: median(&values),
            least: values.iter().copied().fold(f64::INFINITY, f64::min),
            most: values.iter().copied().fold(0.0, f64::max),
        })
    };
    rows.iter().zip(bytes.chunks(ROUNDS * 8)).map(row).collect()
}

/// How many operations a measurement of this row is of.
fn each(label: &str) -> Result<u32, String> {
    let Some((_, count)) = label.rsplit_once(", each of ") else { return Ok(1) };
    let count: Option<u32> = count.parse().ok().filter(|count| *count > 0);
    count.ok_or_else(|| format!("the row `{label}` ends with `, each of`, and with no number above 0 behind it"))
}

/// Whole cycles where they are whole; tenths otherwise.
fn round(cycles: f64) -> String {
    let tenths = (cycles * 10.0).round() / 10.0;
    if tenths.fract() == 0.0 { format!("{tenths:.0}") } else { format!("{tenths:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recording::Bytes;
    use crate::recording::tests::recording;

    const KERNEL: &str = "// row: two reads of the clock
// row: the same, each of 4
.version 8.0
.target sm_90a
.address_size 64
.visible .entry clock(.param .u64 cycles)
{
    .reg .pred %more;
    .reg .b32 %i;
    .reg .b64 %begin, %end, %cycles;
    ld.param.u64 %cycles, [cycles];
    mov.u32 %i, 0;
ROUND:
    mov.u64 %begin, %clock64;
    mov.u64 %end, %clock64;
    sub.u64 %end, %end, %begin;
    st.global.u64 [%cycles], %end;
    st.global.u64 [%cycles+128], %end;
    add.s64 %cycles, %cycles, 8;
    add.u32 %i, %i, 1;
    setp.lt.u32 %more, %i, 16;
    @%more bra ROUND;
    ret;
}
";
    const LAUNCH: &str = r#"{ "entry": "clock", "grid": [1, 1, 1], "block": [1, 1, 1],
        "buffers": [{ "name": "cycles", "content": { "fill": { "bytes": 256, "value": 0 } } }],
        "params": [{ "pointer": { "buffer": 0 } }], "outputs": [{ "buffer": 0, "file": "cycles.bin" }] }"#;

    #[test]
    fn a_row_has_both_medians_and_a_recording_that_lacks_some_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        fs::write(path("clock.ptx"), KERNEL).unwrap();
        fs::write(path("clock.json"), LAUNCH).unwrap();
        let lines = || table(folder.path()).map(|text| text.lines().skip(2).map(str::to_string).collect::<Vec<_>>());
        // A read of the clock costs an issue slot: two cycles.
        let nobody =
            ["| clock | two reads of the clock | | | | 2 | |", "| clock | the same, each of 4 | | | | 0.5 | |"];
        assert_eq!(lines().unwrap(), nobody);

        let words = (0..32u64).flat_map(|n| (n % 16 + 1).to_le_bytes()).collect::<Vec<_>>();
        let mut recording = recording(&[(BUFFER, &words)]);
        case::write(&path("clock.h200.json"), &recording).unwrap();
        assert_eq!(
            lines().unwrap(),
            [
                "| clock | two reads of the clock | NVIDIA H200 | 8.5 | 1 to 16 | 2 | -76.5 % |",
                "| clock | the same, each of 4 | NVIDIA H200 | 2.1 | 0.3 to 4 | 0.5 | -76.5 % |",
            ]
        );

        recording.buffers.insert(BUFFER.to_string(), Bytes::pack(&words[..200]).unwrap());
        case::write(&path("clock.h200.json"), &recording).unwrap();
        let error = lines().unwrap_err();
        assert!(error.contains("clock.h200.json: `cycles` has 200 bytes, not 256"), "{error}");
        recording.outcome = Outcome::Hang;
        case::write(&path("clock.h200.json"), &recording).unwrap();
        assert_eq!(lines().unwrap()[0], "| clock | two reads of the clock | NVIDIA H200 | hang | | 2 | |");
    }

    #[test]
    fn what_was_not_measured_and_what_is_no_number_are_told() {
        let row = |label: &str, word: u64| cycles(&[label.to_string()], &word.to_le_bytes().repeat(ROUNDS));
        assert_eq!(row("x", 0), Err("measurement 0 of the row `x` was not taken".into()));
        assert_eq!(row("x, each of 2", 6), Ok(vec![Cycles { median: 3.0, least: 3.0, most: 3.0 }]));
        assert!(row("x, each of 0", 6).unwrap_err().contains("no number above 0"));
    }
}
