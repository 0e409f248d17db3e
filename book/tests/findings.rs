//! The pages of the findings: each code has its section, and what they show is what the emulator says.

use emulator::CODES;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Codes that none of our kernels gets, and why.
const UNREACHED: &[(&str, &str)] = &[];

fn src() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))
}

/// Page and section of each code.
fn sections() -> BTreeMap<String, (String, String)> {
    let mut sections = BTreeMap::new();
    for entry in fs::read_dir(src()).expect("book/src").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if !name.starts_with("findings-") || !name.ends_with(".md") {
            continue;
        }
        let text = fs::read_to_string(entry.path()).expect("a page");
        for section in text.split("\n## ").skip(1) {
            let (code, rest) = section.split_once('\n').unwrap_or((section, ""));
            let again = sections.insert(code.to_string(), (name.clone(), rest.to_string()));
            assert!(again.is_none(), "{code} has two sections");
        }
    }
    sections
}

/// Each code has a section with its output, its rule and a way out, or is listed with the reason why it has no output; and nothing else has one.
#[test]
fn every_code_has_its_section_and_its_output() {
    let sections = sections();
    let mut wrong = Vec::new();
    for (code, _) in CODES {
        let reason = UNREACHED.iter().find(|(unreached, _)| unreached == code);
        let has_output = src().join(format!("findings/{code}.txt")).is_file();
        if has_output == reason.is_some() {
            wrong.push(format!("{code}: an output, or a reason in the list of those that no kernel gets; not both"));
        }
        let Some((page, section)) = sections.get(*code) else {
            wrong.push(format!("{code} has no section: `## {code}` in one of book/src/findings-*.md"));
            continue;
        };
        for part in ["**Rule.** ", "**Mend.** "] {
            if !section.contains(part) {
                wrong.push(format!("{page}, {code}: no `{part}`"));
            }
        }
        if has_output && !section.contains(&format!("{{{{#include findings/{code}.txt}}}}")) {
            wrong.push(format!("{page}, {code}: the output is not included"));
        }
    }
    let known = |code: &str| CODES.iter().any(|(known, _)| *known == code);
    wrong.extend(sections.keys().filter(|code| !known(code)).map(|code| format!("{code} is no code")));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Who looks for a code in the list finds it where the alphabet has it.
#[test]
fn codes_are_in_alphabetical_order() {
    let wrong: Vec<_> = CODES.windows(2).filter(|pair| pair[0].0 >= pair[1].0).map(|pair| pair[1].0).collect();
    assert!(wrong.is_empty(), "emulator/src/codes.rs: out of order {wrong:?}");
}

/// A text that is broken off in the source keeps no indentation of it.
#[test]
fn what_codes_mean_is_written_with_single_blanks() {
    let wrong: Vec<_> = CODES.iter().filter(|(_, means)| means.contains("  ")).map(|(code, _)| code).collect();
    assert!(wrong.is_empty(), "emulator/src/codes.rs: blanks in a row in {wrong:?}");
}

/// How a section says that its output is not of a kernel of the steps, and why.
const NO_MUTANT: &str = "No mutant of a step gets it: ";

/// What is wrong with a section whose output begins with this line: a small kernel is shown and explained, and nothing else is.
fn of_a_small_kernel(code: &str, first_line: &str, section: &str) -> Option<String> {
    let is_small = first_line.starts_with("kernel ");
    let shown = section.contains(&format!("{{{{#include findings/{code}.ptx}}}}"));
    let says_why =
        section.split_once(NO_MUTANT).is_some_and(|(_, why)| why.split('.').next().unwrap_or_default().len() > 10);
    (is_small != shown || is_small != says_why).then(|| {
        format!("{code}, of `{first_line}`: the kernel is shown: {shown}; `{NO_MUTANT}…`: {says_why}; both only where it is a small one")
    })
}

/// Outputs are of kernels of the steps; where one is of a small kernel the reader sees it, and why.
#[test]
fn small_kernels_are_shown_and_explained() {
    let (mut wrong, mut of_steps) = (Vec::new(), 0);
    for (code, (page, section)) in sections() {
        let Ok(output) = fs::read_to_string(src().join(format!("findings/{code}.txt"))) else { continue };
        let first_line = output.lines().next().unwrap_or_default();
        of_steps += usize::from(!first_line.starts_with("kernel "));
        wrong.extend(of_a_small_kernel(&code, first_line, &section).map(|why| format!("{page}, {why}")));
    }
    assert!(of_steps >= 71, "{of_steps} outputs are of kernels of the steps");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let shown = "No mutant of a step gets it: the builder writes none.\n{{#include findings/x.ptx}}";
    assert!(of_a_small_kernel("x", "kernel x: a", shown).is_none());
    assert!(of_a_small_kernel("x", "mutant 01/a/1", shown).is_some());
    assert!(of_a_small_kernel("x", "kernel x: a", "{{#include findings/x.ptx}}").is_some());
    assert!(of_a_small_kernel("x", "mutant 01/a/1", "text").is_none());
}

/// The sections of the PTX ISA that a text names.
fn named(text: &str) -> Vec<String> {
    let is_number =
        |word: &&str| word.matches('.').count() >= 1 && word.chars().all(|c| c.is_ascii_digit() || c == '.');
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.')).map(|word| word.trim_matches('.'));
    words.filter(is_number).map(str::to_string).collect()
}

/// A section names the sections of the PTX ISA that the emulator's rule names.
#[test]
fn rules_name_the_same_sources_as_the_emulator() {
    let mut wrong = Vec::new();
    let mut seen = 0;
    for (code, (page, section)) in sections() {
        let Ok(output) = fs::read_to_string(src().join(format!("findings/{code}.txt"))) else { continue };
        let rule = output.lines().find_map(|line| line.trim_start().strip_prefix("= rule: ")).unwrap_or_default();
        let own = named(section.split("**Rule.** ").nth(1).unwrap_or_default());
        for source in named(rule.split_once("PTX ISA").map_or("", |(_, rest)| rest)) {
            seen += 1;
            if !own.contains(&source) {
                wrong.push(format!("{page}, {code}: the rule says {source}"));
            }
        }
    }
    assert!(seen > 80, "{seen} sources");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The outputs are what the emulator says now: the program runs the kernel of each again.
#[test]
fn outputs_are_fresh() {
    let output = Command::new(env!("CARGO_BIN_EXE_book")).args(["findings", "--check"]).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let compared: usize = said.split(' ').next().and_then(|count| count.parse().ok()).expect("it begins with a number");
    // The student edition has neither mistakes nor mutants.
    let least = if cfg!(feature = "solutions") { CODES.len() - UNREACHED.len() } else { 15 };
    assert!(compared >= least, "{said}");
}
