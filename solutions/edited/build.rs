//! Writes each edited solution as a module.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

include!("edits.rs");
include!("decoys.rs");
include!("shown.rs");
include!("shown_elsewhere.rs");
include!("follows.rs");

fn main() {
    let solutions = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says it")).join("../src");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says it"));
    for list in ["edits", "decoys", "shown", "shown_elsewhere", "follows"] {
        println!("cargo::rerun-if-changed={list}.rs");
    }
    println!("cargo::rerun-if-changed=../src");
    let (mut modules, mut table) = (String::new(), String::new());
    for (name, step, changes) in [EDITS, DECOYS, SHOWN, SHOWN_ELSEWHERE, FOLLOWS].into_iter().flatten() {
        let mut text =
            fs::read_to_string(solutions.join(format!("step{step:02}.rs"))).expect("the step has a solution");
        for (from, to) in *changes {
            let found = text.matches(from).count();
            assert_eq!(found, 1, "edit `{name}`: this must stand once in the solution of step {step}:\n{from}");
            text = text.replacen(from, to, 1);
        }
        let path = out.join(format!("{name}.rs"));
        fs::write(&path, text).expect("OUT_DIR can be written");
        writeln!(modules, "#[allow(unused, missing_docs)]\n#[path = {path:?}]\nmod {name};").expect("a string");
        writeln!(table, "    ({name:?}, {name}::kernel),").expect("a string");
    }
    let text =
        format!("{modules}\n/// All of them, by name.\npub const ALL: &[(&str, ptx::KernelFn)] = &[\n{table}];\n");
    fs::write(out.join("edited.rs"), text).expect("OUT_DIR can be written");
}
