//! Numbers in sentences: times, shares and sizes that nothing accounts for.
//!
//! A number is accounted for if a claim covers it, its paragraph names a source or a page that has one, it is the result of what stands in front
//! of it (`3 · 256 = 768 cycles`), it is quoted, or, for a size, a kernel of the steps or the hardware has a thing of that size.

use crate::runs;
use std::collections::BTreeSet;

/// Fewer cycles than this are a constant of the machine and not a time of a kernel.
const A_TIME: f64 = 100.0;
/// Fewer bytes than this are those of a chunk, a row or a word, which the sentence around them explains.
const A_SIZE: f64 = 1000.0;
const KIB: f64 = 1024.0;
/// What says of a sentence where its numbers are from: a source, or a page that has one.
const SAYS_WHERE: [&str; 10] = [
    "PTX ISA",
    "https://",
    "docs/",
    "data/",
    "cargo workbook ",
    "SemiAnalysis",
    "QuickRunCUDA",
    "Triton",
    ".md)",
    "emulator/src/time.rs",
];
/// Numbers of which an exercise asks, from a table of the same page or for the sake of it: page, and how its paragraph says it.
pub const ASKED: [(&str, &str); 7] = [
    ("measuring.md", "a difference of 1 %, if single times scatter by 2 %"),
    ("measuring.md", "The mean of *n* ratios scatters by about 2 % · √2 / √*n*"),
    ("roofline.md", "Your step 8 reaches 99 % of L2"),
    ("clock.md", "At 4096³ the emulator is 9 % too *slow* for step 8."),
    ("roofline.md", "cheaper than 10 % of its MMAs"),
    ("roofline.md", "So the stores alone are below 10 %"),
    ("clock.md", "94 % busy tensor cores. Compute"),
];
/// Sizes of an SM, in KiB, as the page of the machine has them from NVIDIA's guides: a CTA's shared memory at most, an SM's, registers and tensor
/// memory.
pub const OF_THE_MACHINE: [u64; 3] = [227, 228, 256];

/// Bytes of tiles, stages, allocations and alignments of the steps' kernels, and those of the machine.
pub fn sizes() -> BTreeSet<u64> {
    let mut sizes: BTreeSet<u64> = OF_THE_MACHINE.map(|kib| kib * 1024).into();
    for step in 1..=10 {
        let (name, size) = (step.to_string(), if step < 3 { [128, 128, 64] } else { [1024; 3] });
        let text = runs::text(&name, size);
        sizes.insert(runs::shared_bytes(&name, size));
        let regions = text.lines().filter_map(|line| line.strip_prefix("// ")?.split_once(" + ")?.1.split(' ').next());
        sizes.extend(regions.filter_map(|bytes| bytes.parse::<u64>().ok()));
        let announced =
            text.lines().filter(|line| line.contains(".expect_tx")).filter_map(|line| line.rsplit(' ').next());
        for bytes in announced.filter_map(|word| word.trim_end_matches(';').parse::<u64>().ok()) {
            // Of a pair each CTA brings half.
            sizes.extend([bytes, if step < 9 { bytes } else { bytes / 2 }]);
        }
        let aligned = text.split(".shared .align ").nth(1).and_then(|rest| rest.split(' ').next());
        sizes.extend(aligned.and_then(|bytes| bytes.parse::<u64>().ok()));
    }
    sizes
}

/// The factor by which the number in front of a unit is one that needs an account, and from where on it does.
fn unit(word: &str) -> Option<(f64, f64)> {
    match word {
        "cycles" => Some((1.0, A_TIME)),
        "%" => Some((1.0, 0.0)),
        "bytes" => Some((1.0, A_SIZE)),
        "KiB" => Some((KIB, A_SIZE)),
        "MiB" => Some((KIB * KIB, A_SIZE)),
        _ => None,
    }
}

fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

/// The words of a text, and where each begins.
fn words(text: &str) -> Vec<(usize, &str)> {
    let begin = |word: &str| word.as_ptr() as usize - text.as_ptr() as usize;
    text.split_whitespace().map(|word| (begin(word), word)).collect()
}

/// Lines and numbers that nothing accounts for.
pub fn unaccounted(page: &str, text: &str, covered: &[(usize, usize)], sizes: &BTreeSet<u64>) -> Vec<(usize, String)> {
    let (mut wrong, mut at, mut in_code) = (Vec::new(), 0, false);
    for paragraph in text.split_inclusive("\n\n") {
        let (begin, was_code) = (at, in_code);
        at += paragraph.len();
        let fences = paragraph.lines().filter(|line| line.trim_start().starts_with("```")).count();
        in_code ^= fences % 2 == 1;
        let is_prose = !was_code && fences == 0 && !paragraph.trim_start().starts_with(['|', '<']);
        let dense = paragraph.split_whitespace().collect::<Vec<_>>().join(" ");
        let is_asked = ASKED.iter().any(|(known, asked)| *known == page && dense.contains(asked));
        if !is_prose || is_asked || SAYS_WHERE.iter().any(|where_from| paragraph.contains(where_from)) {
            continue;
        }
        let words = words(paragraph);
        for (index, (_, word)) in words.iter().enumerate().skip(1) {
            let Some((factor, least)) = unit(word.trim_end_matches(|c: char| !c.is_alphanumeric() && c != '%')) else {
                continue;
            };
            let (place, number) = words[index - 1];
            let bare = number.trim_start_matches('(').replace(',', "");
            let Ok(value) = bare.parse::<f64>() else { continue };
            let value = value * factor;
            let quoted = paragraph[..place].matches('"').count() % 2 == 1;
            let derived = index > 1 && words[index - 2].1.ends_with('=');
            let claimed = covered.iter().any(|(from, to)| (*from..*to).contains(&(begin + place)));
            let is_size = least == A_SIZE && sizes.contains(&(value as u64));
            if value >= least && !quoted && !derived && !claimed && !is_size {
                wrong.push((line(text, begin + place), format!("{number} {word}")));
            }
        }
    }
    wrong
}

/// Each kind of number is seen, and what accounts for it.
#[test]
fn a_number_without_an_account_is_seen() {
    let sizes = [32768].into();
    let seen = |text: &str, covered: &[(usize, usize)]| -> Vec<String> {
        let found = unaccounted("p.md", text, covered, &sizes).into_iter();
        found.map(|(line, number)| format!("{line}: {number}")).collect()
    };
    let text = "It takes 720 cycles.\n\nIt takes 3 · 240 = 720 cycles, or 64 cycles.\n\n```text\n\n720 cycles\n```\n\nOf 1,720\ncycles.\n";
    assert_eq!(seen(text, &[]), ["1: 720 cycles.", "10: 1,720 cycles."]);
    assert_eq!(seen("It takes 720 cycles.", &[(0, 20)]), Vec::<String>::new());
    let text = "That is 9 % (7.5 % before).\n\nOr 1 / 4 = 25 %. \"8 %\".\n\n5 % (PTX ISA 1.2).\n";
    assert_eq!(seen(text, &[]), ["1: 9 %", "1: (7.5 %"]);
    let text = "A row has 128 bytes, a stage 32768 bytes or 32 KiB.\n\nIt has 5,000 bytes, 48 KiB and 2 MiB.\n";
    assert_eq!(seen(text, &[]), ["3: 5,000 bytes,", "3: 48 KiB", "3: 2 MiB."]);
    assert_eq!(unaccounted("measuring.md", "a difference of 1 %, if single\ntimes scatter by 2 %", &[], &sizes), []);
}
