//! Writes, for each step and each number of TODOs, the skeleton in which the first so many are filled as in the solution.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

// One generator for what students get and for this.
#[allow(dead_code)]
#[path = "../../harness/src/skeleton.rs"]
mod skeleton;

fn main() {
    let solutions = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says it")).join("../src");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says it"));
    println!("cargo::rerun-if-changed=../src");
    println!("cargo::rerun-if-changed=../../harness/src/skeleton.rs");
    let (mut modules, mut table) = (String::new(), String::new());
    for step in 1u8.. {
        let file = solutions.join(format!("step{step:02}.rs"));
        let Ok(solution) = fs::read_to_string(&file) else { break };
        let skeleton = match skeleton::generate(step, &file.display().to_string(), &solution) {
            Ok(skeleton) => skeleton,
            Err(errors) => panic!("{errors:#?}"),
        };
        let regions = regions(step, &solution);
        for filled in 0..=regions.len() {
            let name = format!("step{step:02}_{filled}");
            let path = out.join(format!("{name}.rs"));
            fs::write(&path, fill(step, &skeleton, &regions[..filled])).expect("OUT_DIR can be written");
            writeln!(modules, "#[allow(unused, missing_docs)]\n#[path = {path:?}]\nmod {name};").expect("a string");
            writeln!(
                table,
                "    Prefix {{ step: {step}, filled: {filled}, of: {}, kernel: {name}::kernel }},",
                regions.len()
            )
            .expect("a string");
        }
    }
    let text = format!("{modules}\n/// All of them.\npub const ALL: &[Prefix] = &[\n{table}];\n");
    fs::write(out.join("prefixes.rs"), text).expect("OUT_DIR can be written");
}

/// The code of each region, in order.
fn regions(step: u8, solution: &str) -> Vec<String> {
    let mut regions = Vec::new();
    while let Some((_, after)) = solution.split_once(&format!("// ANCHOR: todo_{step}_{}\n", regions.len() + 1)) {
        let (code, _) = after.split_once("// ANCHOR_END").expect("the generator has checked it");
        regions.push(code.trim_end().to_string());
    }
    regions
}

/// The skeleton with the first TODOs filled.
fn fill(step: u8, skeleton: &str, regions: &[String]) -> String {
    let mut text = String::new();
    for line in skeleton.lines() {
        let region =
            (1..).zip(regions).find(|(number, _)| line.trim().ends_with(&format!(".todo(\"{step}.{number}\");")));
        text.push_str(region.map_or(line, |(_, code)| code));
        text.push('\n');
    }
    text
}
