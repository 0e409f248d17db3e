//! Numbers of tables and answers that the emulator computes: each is computed again, and compared with what the page says.
//!
//! `UPDATE_EXPECT=1 cargo test -p book --test numbers` writes them into the pages.
#![cfg(feature = "solutions")]

#[path = "numbers/claims.rs"]
mod claims;
#[path = "numbers/runs.rs"]
mod runs;
#[path = "numbers/tables.rs"]
mod tables;

use claims::Claim;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

/// What the pages say; the runs behind it take a minute.
static CLAIMS: LazyLock<Vec<Claim>> = LazyLock::new(claims::all);

/// Begin and end of each number of a claim.
type Spans = Vec<(usize, usize)>;

fn path(page: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "src", page].iter().collect()
}

fn read(page: &str) -> String {
    fs::read_to_string(path(page)).unwrap_or_else(|error| panic!("book/src/{page}: {error}"))
}

/// A text with one blank for each run of white space, and where each of its bytes stands in the page.
fn dense(text: &str) -> (Vec<u8>, Vec<usize>) {
    let (mut bytes, mut places) = (Vec::new(), Vec::new());
    for (at, byte) in text.bytes().enumerate() {
        let byte = if byte.is_ascii_whitespace() { b' ' } else { byte };
        if byte == b' ' && bytes.last() == Some(&b' ') {
            continue;
        }
        bytes.push(byte);
        places.push(at);
    }
    (bytes, places)
}

/// Where a number ends that begins here: digits, with commas and points between.
fn number(text: &[u8], from: usize) -> usize {
    let digit = |at: usize| text.get(at).is_some_and(u8::is_ascii_digit);
    let mut at = from;
    while digit(at) || (matches!(text.get(at), Some(b',' | b'.')) && at > from && digit(at + 1)) {
        at += 1;
    }
    at
}

/// Where the numbers of a template stand (first byte, end), and where the whole ends; `{}` stands for a number.
fn matched(text: &[u8], from: usize, pieces: &[&str]) -> Option<(Spans, usize)> {
    let (mut at, mut numbers) = (from, Vec::new());
    for (index, piece) in pieces.iter().enumerate() {
        if index > 0 {
            let end = number(text, at);
            if end == at {
                return None;
            }
            numbers.push((at, end));
            at = end;
        }
        if !text.get(at..)?.starts_with(piece.as_bytes()) {
            return None;
        }
        at += piece.len();
    }
    Some((numbers, at))
}

/// Where a claim stands: its only place in the page.
fn find(page: &str, text: &[u8], claim: &Claim) -> Result<(Spans, (usize, usize)), String> {
    let pieces: Vec<&str> = claim.text.split("{}").collect();
    assert_eq!(pieces.len(), claim.values.len() + 1, "`{}`: a value for each number", claim.text);
    // A number begins where no other digit stands in front of it.
    let begins = |from: &usize| {
        let inside = |byte: &u8| byte.is_ascii_digit() || matches!(byte, b',' | b'.');
        !pieces[0].is_empty() || *from == 0 || !inside(&text[from - 1])
    };
    let places = (0..text.len()).filter(begins).filter_map(|from| Some((from, matched(text, from, &pieces)?)));
    let places: Vec<(usize, (Spans, usize))> = places.collect();
    match places.as_slice() {
        [(from, (numbers, end))] => Ok((numbers.clone(), (*from, *end))),
        found => {
            Err(format!("book/src/{page}: this stands {} times, and must stand once: {}", found.len(), claim.text))
        }
    }
}

fn line(text: &str, at: usize) -> usize {
    text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1
}

fn pages() -> Vec<String> {
    let entries = fs::read_dir(path("")).expect("book/src").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| name.ends_with(".md"));
    names.sort();
    names
}

/// No number stands in a table without a word on where it is from.
#[test]
fn each_table_says_where_its_numbers_are_from() {
    let (mut wrong, mut seen) = (Vec::new(), 0);
    for page in pages() {
        let text = read(&page);
        seen += tables::of(&text).len();
        wrong
            .extend(tables::unexplained(&text).into_iter().map(|(line, why)| format!("book/src/{page}:{line}: {why}")));
    }
    assert!(seen >= 80, "{seen} tables with numbers were found");
    assert!(wrong.is_empty(), "{}\n  {}", wrong.join("\n"), tables::WAY_OUT);
}

/// What stands in the pages is what the emulator says now; and each row of a table that is marked as computed is compared.
#[test]
fn numbers_are_fresh() {
    let update = std::env::var_os("UPDATE_EXPECT").is_some();
    let mut by_page: BTreeMap<&str, Vec<&Claim>> = BTreeMap::new();
    for claim in CLAIMS.iter() {
        by_page.entry(claim.page).or_default().push(claim);
    }
    let (mut wrong, mut compared) = (Vec::new(), 0);
    for (page, claims) in &by_page {
        let text = read(page);
        let (bytes, places) = dense(&text);
        let mut now: Vec<(usize, usize, &str)> = Vec::new();
        let mut covered = BTreeSet::new();
        for claim in claims {
            let (numbers, (from, end)) = match find(page, &bytes, claim) {
                Ok(found) => found,
                Err(error) => {
                    wrong.push(error);
                    continue;
                }
            };
            covered.extend(line(&text, places[from])..=line(&text, places[end - 1]));
            for ((first, end), value) in numbers.into_iter().zip(&claim.values) {
                compared += 1;
                let (first, end) = (places[first], places[end - 1] + 1);
                if &text[first..end] != value {
                    let line = line(&text, first);
                    wrong.push(format!(
                        "book/src/{page}:{line}: {} stands there, computed is {value}: {}",
                        &text[first..end],
                        claim.text
                    ));
                    now.push((first, end, value));
                }
            }
        }
        for table in tables::of(&text).iter().filter(|table| table.mark.as_deref() == Some(tables::COMPUTED)) {
            for (line, row) in table.rows.iter().filter(|(line, _)| !covered.contains(line)) {
                wrong.push(format!("book/src/{page}:{line}: no claim of book/tests/numbers covers this row: {row}"));
            }
        }
        if update && !now.is_empty() {
            let mut text = text.clone();
            now.sort_unstable();
            for (first, end, value) in now.into_iter().rev() {
                text.replace_range(first..end, value);
            }
            fs::write(path(page), text).unwrap_or_else(|error| panic!("book/src/{page}: {error}"));
        }
    }
    for page in pages().iter().filter(|page| !by_page.contains_key(page.as_str())) {
        if tables::of(&read(page)).iter().any(|table| table.mark.as_deref() == Some(tables::COMPUTED)) {
            wrong.push(format!("book/src/{page}: a table is marked as computed, and no claim is about this page"));
        }
    }
    assert!(compared >= 150, "{compared} numbers were compared");
    let hint = "try: Run `UPDATE_EXPECT=1 cargo test -p book --test numbers`, and read the diff: the sentences around may be wrong now, too.";
    assert!(wrong.is_empty(), "{}\n  {hint}", wrong.join("\n"));
}

/// Fewer cycles than this are a constant of the machine and not a time of a kernel.
const A_TIME: u64 = 100;
/// What says of a sentence where its numbers are from: a source, or a page that has one.
const SAYS_WHERE: [&str; 8] =
    ["PTX ISA", "https://", "docs/", "data/", "cargo workbook ", "SemiAnalysis", "Triton", ".md)"];

/// Numbers of cycles in sentences that nothing accounts for: no claim covers them, no source stands in the paragraph, and they are not the
/// result of what stands in front (`3 · 256 = 768 cycles`).
fn unaccounted(text: &str, covered: &[(usize, usize)]) -> Vec<(usize, String)> {
    let (mut wrong, mut at, mut in_code) = (Vec::new(), 0, false);
    for paragraph in text.split_inclusive("\n\n") {
        let (begin, was_code) = (at, in_code);
        at += paragraph.len();
        let fences = paragraph.lines().filter(|line| line.trim_start().starts_with("```")).count();
        in_code ^= fences % 2 == 1;
        let is_prose = !was_code && fences == 0 && !paragraph.trim_start().starts_with('|');
        if !is_prose || SAYS_WHERE.iter().any(|where_from| paragraph.contains(where_from)) {
            continue;
        }
        for (place, _) in paragraph.match_indices("cycles") {
            let before = paragraph[..place].trim_end();
            let word = before.rsplit(char::is_whitespace).next().unwrap_or_default();
            let digits: String = word.chars().filter(char::is_ascii_digit).collect();
            let is_time =
                word.starts_with(|c: char| c.is_ascii_digit()) && digits.parse().is_ok_and(|n: u64| n >= A_TIME);
            let quoted = paragraph[..place].matches('"').count() % 2 == 1;
            let derived = before[..before.len() - word.len()].trim_end().ends_with('=');
            let number = begin + before.len() - word.len();
            let claimed = covered.iter().any(|(from, to)| (*from..*to).contains(&number));
            if is_time && !quoted && !derived && !claimed {
                wrong.push((line(text, number), format!("{word} cycles")));
            }
        }
    }
    wrong
}

/// No time of a kernel stands in a sentence without a word on where it is from.
#[test]
fn cycles_in_sentences_are_computed_or_have_a_source() {
    let mut wrong = Vec::new();
    for page in pages() {
        let text = read(&page);
        let (bytes, places) = dense(&text);
        let own = CLAIMS.iter().filter(|claim| claim.page == page);
        let found = own.filter_map(|claim| find(&page, &bytes, claim).ok());
        let covered: Vec<(usize, usize)> = found.map(|(_, (from, end))| (places[from], places[end - 1] + 1)).collect();
        let all = unaccounted(&text, &covered).into_iter();
        wrong.extend(all.map(|(line, number)| format!("book/src/{page}:{line}: {number}")));
    }
    let way_out = "try: Compute it (book/tests/numbers/prose.rs), or name the source in its paragraph.";
    assert!(wrong.is_empty(), "{}\n  {way_out}", wrong.join("\n"));
    let text = "It takes 720 cycles.\n\nIt takes 3 · 240 = 720 cycles, or 64 cycles.\n\n```text\n\n720 cycles\n```\n\nOf 1,720\ncycles.\n";
    let seen: Vec<String> =
        unaccounted(text, &[]).into_iter().map(|(line, number)| format!("{line}: {number}")).collect();
    assert_eq!(seen, ["1: 720 cycles", "10: 1,720 cycles"]);
    assert!(unaccounted("It takes 720 cycles.", &[(0, 20)]).is_empty());
}

/// The comparison sees another number, another sentence, and two of them.
#[test]
fn a_stale_number_is_seen() {
    let claim = |text: &'static str| Claim { page: "p.md", text, values: vec!["3,719".into(), "7".into()] };
    let (text, _) = dense("It takes 3,720\n  cycles, and 7. It takes 1 cycles.");
    let (numbers, _) = find("p.md", &text, &claim("takes {} cycles, and {}.")).expect("it stands there");
    let told: Vec<&str> = numbers.iter().map(|(a, b)| std::str::from_utf8(&text[*a..*b]).expect("digits")).collect();
    assert_eq!(told, ["3,720", "7"]);
    assert!(find("p.md", &text, &claim("takes {} hours, and {}.")).is_err());
    let (twice, _) = dense("takes 1 cycles, and 2. takes 1 cycles, and 2.");
    assert!(find("p.md", &twice, &claim("takes {} cycles, and {}.")).is_err());
}
