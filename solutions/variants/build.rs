//! Writes each variant as a module.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

include!("table.rs");

fn main() {
    let solutions = Path::new(&env::var("CARGO_MANIFEST_DIR").expect("cargo says it")).join("../src");
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says it"));
    println!("cargo::rerun-if-changed=table.rs");
    println!("cargo::rerun-if-changed=../src");
    let (mut modules, mut table, mut answers) = (String::new(), String::new(), String::new());
    let mut add = |table: &mut String, name: &str, step: u8, changes: &[(&str, &str)]| {
        let mut text =
            fs::read_to_string(solutions.join(format!("step{step:02}.rs"))).expect("the step has a solution");
        for (from, to) in changes {
            let found = text.matches(from).count();
            assert_eq!(found, 1, "variant `{name}`: this must stand once in the solution of step {step}:\n{from}");
            text = text.replacen(from, to, 1);
        }
        let path = out.join(format!("{name}.rs"));
        fs::write(&path, text).expect("OUT_DIR can be written");
        writeln!(modules, "#[allow(unused, missing_docs)]\n#[path = {path:?}]\nmod {name};").expect("a string");
        writeln!(table, "    ({name:?}, {step}, {name}::kernel),").expect("a string");
    };
    for (name, step, changes) in CHANGED {
        add(&mut table, name, *step, changes);
    }
    for (name, step, changes) in ANSWERS {
        add(&mut answers, name, *step, changes);
    }
    for (step, line, begin, depths) in DEPTHS {
        for depth in *depths {
            let now = format!("{begin} = {depth};");
            add(&mut answers, &format!("depth_{depth}_{step}"), *step, &[(line, &now)]);
        }
    }
    for step in DEEP {
        for depth in 1..=DEEPEST {
            let depth_now = format!("const PIPE_DEPTH: u32 = {depth};");
            add(&mut table, &format!("step{step:02}_depth_{depth}"), step, &[NARROW, (DEPTH, &depth_now)]);
        }
    }
    let text = format!(
        "{modules}\n/// Those of the figures: name, step, kernel.\npub const ALL: &[(&str, u8, ptx::KernelFn)] = &[\n{table}];\n\n\
         /// Those of the exercises' answers.\npub const ANSWERS: &[(&str, u8, ptx::KernelFn)] = &[\n{answers}];\n"
    );
    fs::write(out.join("variants.rs"), text).expect("OUT_DIR can be written");
}
