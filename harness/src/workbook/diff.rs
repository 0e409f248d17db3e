//! The lines in which two texts differ.

use std::fmt::Write;

/// Lines shown around a difference.
const CONTEXT: usize = 2;

/// Largest table of the comparison.
const LARGEST: usize = 10_000_000;

/// The lines of two texts that differ, with two lines around them: `-` for the first text, `+` for the second, each with
/// the number that it has in its text. Empty if they are the same.
pub fn lines(first: &str, second: &str) -> String {
    let (a, b): (Vec<&str>, Vec<&str>) = (first.lines().collect(), second.lines().collect());
    if a.len().saturating_mul(b.len()) > LARGEST {
        return format!("  (not compared: {} lines with {} lines)\n", a.len(), b.len());
    }
    // Length of the longest common subsequence of a[i..] and b[j..]. The files are short.
    let width = b.len() + 1;
    let mut common = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = if a[i] == b[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut all: Vec<(char, usize, &str)> = Vec::new();
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            all.push((' ', j + 1, b[j]));
            (i, j) = (i + 1, j + 1);
        } else if j == b.len() || (i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1]) {
            all.push(('-', i + 1, a[i]));
            i += 1;
        } else {
            all.push(('+', j + 1, b[j]));
            j += 1;
        }
    }
    show(&all, first != second)
}

fn show(all: &[(char, usize, &str)], differ: bool) -> String {
    let mut text = String::new();
    let mut last = None;
    for (at, (sign, number, line)) in all.iter().enumerate() {
        let window = &all[at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(all.len())];
        if window.iter().all(|(sign, ..)| *sign == ' ') {
            continue;
        }
        if last.is_some_and(|last| last + 1 < at) {
            text.push_str("  ...\n");
        }
        last = Some(at);
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}", format!("{sign} {number:>4} {line}").trim_end());
    }
    if text.is_empty() && differ {
        text.push_str("  (only the ends of lines differ)\n");
    }
    text
}
