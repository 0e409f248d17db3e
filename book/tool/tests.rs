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
