//! The listings of `listings/calls.rs`, and what the pages show of them.

use expect_test::expect_file;
use harness::ptxas;
use ptx::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../listings/calls.rs"]
mod calls;

const KERNELS: [(&str, ptx::KernelFn); 5] = [
    ("of_one_cta", calls::of_one_cta),
    ("of_a_pair", calls::of_a_pair),
    ("of_hopper", calls::of_hopper),
    ("of_other_instructions", calls::of_other_instructions),
    ("of_values", calls::of_values),
];

fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn source() -> String {
    fs::read_to_string(folder().join("listings/calls.rs")).expect("the listings")
}

/// First and last line of what lies between the anchors of each name.
fn regions() -> BTreeMap<String, (u32, u32)> {
    let mut regions = BTreeMap::new();
    for (line, text) in (1..).zip(source().lines()) {
        if let Some((_, name)) = text.split_once("// ANCHOR: ") {
            assert!(regions.insert(name.to_string(), (line + 1, 0)).is_none(), "two anchors `{name}`");
        } else if let Some((_, name)) = text.split_once("// ANCHOR_END: ") {
            regions.get_mut(name).unwrap_or_else(|| panic!("no anchor `{name}`")).1 = line - 1;
        }
    }
    regions
}

fn text(name: &str, kernel: ptx::KernelFn) -> String {
    let built = ptx::build(name, &Gemm::new(256, 256, 256, Dtype::F16, 148), kernel);
    built.unwrap_or_else(|errors| panic!("{name}: {errors:#?}")).text
}

/// The instructions that the lines of each region write, in order, with the labels to which they jump.
fn written() -> BTreeMap<String, String> {
    let regions = regions();
    let mut written: BTreeMap<String, String> = regions.keys().map(|name| (name.clone(), String::new())).collect();
    for (name, kernel) in KERNELS {
        let text = text(name, kernel);
        let mut line: u32 = 0;
        let mut statements = Vec::new();
        for text in text.lines().skip_while(|line| *line != "{").map(str::trim) {
            if let Some(loc) = text.strip_prefix(".loc 1 ") {
                line = loc.split(' ').next().and_then(|line| line.parse().ok()).expect("a line");
            } else if text.ends_with([';', ':']) && text != "ret;" {
                statements.push((line, text));
            }
        }
        for (region, (first, last)) in &regions {
            let of_region =
                |statement: &&(u32, &str)| statement.1.ends_with(';') && (*first..=*last).contains(&statement.0);
            let own: Vec<&str> = statements.iter().filter(of_region).map(|(_, text)| *text).collect();
            let targets: BTreeSet<&str> =
                own.iter().filter_map(|text| text.split_once("bra ")?.1.strip_suffix(';')).collect();
            for statement in &statements {
                let is_target = statement.1.strip_suffix(':').is_some_and(|label| targets.contains(label));
                if is_target || of_region(&statement) {
                    written.get_mut(region).expect("a region").push_str(&format!("{}\n", statement.1));
                }
            }
        }
    }
    written
}

/// Each anchor that a page shows has its instructions beside it, as the builder writes them now.
#[test]
fn instructions_are_what_the_builder_writes() {
    for (name, text) in written().into_iter().filter(|(_, text)| !text.is_empty()) {
        let path: PathBuf = folder().join(format!("src/instructions/{name}.txt"));
        expect_file![path].assert_eq(&text);
    }
}

/// The emulator knows every instruction, and the assembler takes the kernels.
#[test]
fn the_kernels_assemble() {
    for (name, kernel) in KERNELS {
        let text = text(name, kernel);
        if let Err(errors) = emulator::load(&text) {
            panic!("{name}: {errors:#?}");
        }
        match ptxas::assemble(&text) {
            Ok(_) => {}
            Err(ptxas::Failure::Unavailable(why) | ptxas::Failure::TookTooLong(why) | ptxas::Failure::Here(why)) => {
                eprintln!("{name}: not assembled: {why}")
            }
            Err(ptxas::Failure::Refused(errors)) => panic!("{name}: {errors:#?}"),
        }
    }
}

/// The pages that show listings.
fn pages() -> Vec<(String, String)> {
    let named = [
        "builder.md",
        "instructions.md",
        "instructions-barriers.md",
        "instructions-copies.md",
        "instructions-tensor.md",
        "registers.md",
        "way-back.md",
    ];
    let read = |name: &&str| (name.to_string(), fs::read_to_string(folder().join("src").join(name)).expect("a page"));
    named.iter().map(read).collect()
}

/// Every anchor is on a page, and pages show no other; instructions that are shown are there.
#[test]
fn every_listing_is_shown() {
    let regions = regions();
    let (mut shown, mut wrong) = (BTreeSet::new(), Vec::new());
    for (page, text) in pages() {
        for anchor in text.split("{{#include ../listings/calls.rs:").skip(1).filter_map(|rest| rest.split('}').next()) {
            shown.insert(anchor.to_string());
            if !regions.contains_key(anchor) {
                wrong.push(format!("{page}: no anchor `{anchor}`"));
            }
        }
        for file in text.split("{{#include instructions/").skip(1).filter_map(|rest| rest.split('}').next()) {
            if !folder().join("src/instructions").join(file).is_file() {
                wrong.push(format!("{page}: no book/src/instructions/{file}"));
            }
        }
    }
    wrong.extend(regions.keys().filter(|name| !shown.contains(*name)).map(|name| format!("`{name}` is on no page")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The texts of all files of a folder, and of those in it.
fn all_texts(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("a folder of sources").flatten().map(|entry| entry.path());
    entries
        .map(|path| if path.is_dir() { all_texts(&path) } else { fs::read_to_string(path).expect("a source") })
        .collect()
}

/// Calls that pages name as rustdoc does (`Scope::mma`) exist.
#[test]
fn every_call_exists() {
    let builder = all_texts(&folder().join("../ptx/src"));
    let (mut seen, mut wrong) = (0, Vec::new());
    for (page, text) in pages() {
        for name in text.split('`').skip(1).step_by(2) {
            let Some((owner, method)) =
                name.split_once("::").filter(|(owner, _)| owner.starts_with(char::is_uppercase))
            else {
                continue;
            };
            seen += 1;
            let exists =
                [format!("fn {method}("), format!("fn {method}<")].iter().any(|text| builder.contains(text.as_str()));
            let is_value = owner == "Swizzle" && builder.contains(&format!("{method},"));
            let known = builder.contains(&format!("struct {owner}")) || builder.contains(&format!("{owner},"));
            if !(exists || is_value) || !known {
                wrong.push(format!("{page}: `{name}`"));
            }
        }
    }
    assert!(seen > 40, "{seen} names");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
