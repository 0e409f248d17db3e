//! What the rest of the project relies on in the book.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `(title, file)` of each page in the table of contents.
fn pages() -> Vec<(String, String)> {
    let summary = fs::read_to_string(root().join("book/src/SUMMARY.md")).expect("SUMMARY.md");
    let page = |line: &str| {
        let (title, file) = line.trim_start_matches("- ").strip_prefix('[')?.strip_suffix(')')?.split_once("](")?;
        Some((title.to_string(), file.to_string()))
    };
    summary.lines().filter_map(|line| page(line.trim())).collect()
}

/// Pages that the TODO comments of a solution name: the text after `book: `, up to a bracket, quote, full stop or comma.
fn named_pages(solution: &str) -> Vec<(usize, String)> {
    let mut named = Vec::new();
    for (index, line) in solution.lines().enumerate() {
        for part in line.split("book:").skip(1) {
            let end = part.find([')', '"', '.', ',', ';', '`']).unwrap_or(part.len());
            named.push((index + 1, part[..end].trim().to_string()));
        }
    }
    named
}

#[test]
fn every_page_that_a_todo_names_exists() {
    let pages = pages();
    assert!(pages.len() >= 5, "SUMMARY.md is not understood: {pages:?}");
    let mut missing = Vec::new();
    let mut seen = 0;
    // The student edition has no solutions; their comments are in the untouched files as well.
    let folders = ["solutions/src", "harness/untouched"].map(|folder| root().join(folder));
    let folder = folders.iter().find(|folder| folder.is_dir()).expect("solutions/src or harness/untouched");
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("entry").path();
        let text = fs::read_to_string(&path).expect("a solution");
        for (line, title) in named_pages(&text) {
            seen += 1;
            if !pages.iter().any(|(page, _)| page.to_lowercase() == title.to_lowercase()) {
                missing.push(format!("{}:{line}: no page of the book has the title \"{title}\"", path.display()));
            }
        }
    }
    assert!(seen > 0, "no TODO comment names a page: write `book: <title>` in it");
    assert!(missing.is_empty(), "{}\npages: {pages:#?}", missing.join("\n"));
}

#[test]
fn every_page_begins_with_its_title() {
    for (title, file) in pages() {
        let text = fs::read_to_string(root().join("book/src").join(&file)).expect("a page");
        assert_eq!(text.lines().next(), Some(format!("# {title}").as_str()), "book/src/{file}");
    }
}

/// Each TODO has its three hints, on the page of its step.
#[test]
fn every_todo_has_its_hints() {
    let mut seen = 0;
    for step in 1..=10 {
        let files =
            ["solutions/src", "harness/untouched"].map(|folder| root().join(folder).join(format!("step{step:02}.rs")));
        let Some(kernel) = files.iter().find_map(|file| fs::read_to_string(file).ok()) else { continue };
        let page = fs::read_to_string(root().join(format!("book/src/step{step:02}.md"))).expect("the step's page");
        let todos = kernel
            .lines()
            .filter_map(|line| line.trim().strip_prefix("// TODO ")?.split_once(':'))
            .map(|(number, _)| number);
        for todo in todos {
            seen += 1;
            let hints = page.split_once(&format!("<summary>TODO {todo}: a nudge</summary>")).map(|(_, rest)| rest);
            let hints = hints.unwrap_or_else(|| panic!("book/src/step{step:02}.md has no hints for TODO {todo}"));
            let end = hints.find("<summary>TODO").unwrap_or(hints.len());
            for stage in ["where to look", "a part of the code"] {
                assert!(hints[..end].contains(&format!("<summary>{stage}</summary>")), "TODO {todo}: no `{stage}`");
            }
        }
    }
    assert!(seen >= 70, "{seen} TODOs");
}

/// Links from page to page lead somewhere.
#[test]
fn every_link_leads_to_a_page() {
    let pages = pages();
    let mut wrong = Vec::new();
    for (_, file) in &pages {
        let text = fs::read_to_string(root().join("book/src").join(file)).expect("a page");
        for (index, line) in text.lines().enumerate() {
            for target in line.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
                let page = target.split('#').next().unwrap_or_default();
                let elsewhere = target.starts_with("https://") || page.is_empty();
                if !elsewhere
                    && !pages.iter().any(|(_, known)| known == page)
                    && !root().join("book/src").join(page).exists()
                {
                    wrong.push(format!("book/src/{file}:{}: {target}", index + 1));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No page is left out of the table of contents.
#[test]
fn every_page_is_in_the_table_of_contents() {
    let pages = pages();
    for entry in fs::read_dir(root().join("book/src")).expect("a folder").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let known = name == "SUMMARY.md" || !name.ends_with(".md") || pages.iter().any(|(_, file)| *file == name);
        assert!(known, "book/src/{name} is not in SUMMARY.md");
    }
}

/// The number behind `before` and up to `after`, in the part of a text that begins with `from`.
fn number(text: &str, from: &str, before: &str, after: &str) -> Option<u64> {
    let part = &text[text.find(from)?..];
    let rest = &part[part.find(before)? + before.len()..];
    rest[..rest.find(after)?].parse().ok()
}

/// The figure of waves counts with the SMs and the rate of L2 that the emulator has.
#[test]
fn the_figure_of_waves_has_the_emulators_numbers() {
    let read = |file: &str| fs::read_to_string(root().join(file)).expect("a file");
    let (figure, prices) = (read("book/figures/waves.js"), read("emulator/src/time.rs"));
    let b200 = "pub const B200";
    let rate = number(&prices, b200, "l2_bytes_per_cycle: ", ",");
    assert!(rate.is_some(), "emulator/src/time.rs is not understood");
    assert_eq!(number(&figure, "const", "const L2_BYTES = ", ";"), rate);
    let gpcs = &prices[prices.find(b200).expect("the prices of a B200")..];
    let gpcs = gpcs.split_once("gpcs: &[").and_then(|(_, rest)| rest.split_once(']')).expect("its GPCs").0;
    let sms = gpcs.split(", ").map(|sms| sms.parse::<u64>().expect("a number of SMs")).sum();
    assert_eq!(number(&figure, "const", "const SMS = ", ";"), Some(sms));
}
