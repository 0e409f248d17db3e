//! Numbers of tables and answers that the emulator computes: each is computed again, and compared with what the page says.
//!
//! `UPDATE_EXPECT=1 cargo test -p book --test numbers` writes them into the pages.
#![cfg(feature = "solutions")]

#[path = "numbers/claims.rs"]
mod claims;
#[path = "numbers/runs.rs"]
mod runs;
#[path = "numbers/sentences.rs"]
mod sentences;
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

/// No time of a kernel, share or size stands in a sentence without a word on where it is from.
#[test]
fn numbers_in_sentences_are_computed_or_have_a_source() {
    let (mut wrong, sizes) = (Vec::new(), sentences::sizes());
    for page in pages() {
        let text = read(&page);
        let (bytes, places) = dense(&text);
        let own = CLAIMS.iter().filter(|claim| claim.page == page);
        let found = own.filter_map(|claim| find(&page, &bytes, claim).ok());
        let covered: Vec<(usize, usize)> = found.map(|(_, (from, end))| (places[from], places[end - 1] + 1)).collect();
        let all = sentences::unaccounted(&page, &text, &covered, &sizes).into_iter();
        wrong.extend(all.map(|(line, number)| format!("book/src/{page}:{line}: {number}")));
    }
    for (page, asked) in sentences::ASKED {
        let (text, _) = dense(&read(page));
        if !String::from_utf8_lossy(&text).contains(asked) {
            wrong.push(format!("book/src/{page} does not ask any more: {asked}"));
        }
    }
    let machine = read("machine.md");
    let unknown = sentences::OF_THE_MACHINE.iter().filter(|kib| !machine.contains(&format!("{kib} KiB")));
    wrong.extend(unknown.map(|kib| format!("book/src/machine.md has no {kib} KiB")));
    let way_out = "try: Compute it (book/tests/numbers/prose.rs), write down what it follows from (`1 / 4 = 25 %`), or name the source in its paragraph.";
    assert!(wrong.is_empty(), "{}\n  {way_out}", wrong.join("\n"));
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
