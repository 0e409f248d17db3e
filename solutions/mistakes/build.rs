//! Writes each solution with its mistake as a module.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let here = PathBuf::from(env::var("CARGO_MANIFEST_DIR").expect("cargo says it"));
    let out = PathBuf::from(env::var("OUT_DIR").expect("cargo says it"));
    println!("cargo::rerun-if-changed=diffs");
    println!("cargo::rerun-if-changed=rules");
    println!("cargo::rerun-if-changed=../src");
    let (mut modules, mut table) = (String::new(), String::new());
    let mut files = [of_folder(&here, "diffs", "Harm"), of_folder(&here, "rules", "Rule")].concat();
    files.sort_by(|one, other| one.0.file_name().cmp(&other.0.file_name()));
    for (file, list) in files {
        let name = file.file_stem().and_then(|stem| stem.to_str()).expect("file names are ASCII").to_string();
        let text = fs::read_to_string(&file).expect("a diff can be read");
        let (_, diff) = text.split_once("\n\n").unwrap_or_else(|| panic!("{name}: an empty line ends the header"));
        let step: u8 = name[..2].parse().unwrap_or_else(|_| panic!("{name}: the name begins with the step"));
        let path = out.join(format!("{name}.rs"));
        fs::write(&path, changed(&here, step, diff, &name)).expect("OUT_DIR can be written");
        let module = format!("step{}", name.replace('-', "_"));
        writeln!(modules, "#[allow(unused, missing_docs)]\n#[path = {path:?}]\nmod {module};").expect("a string");
        writeln!(
            table,
            "    Mistake {{ name: {name:?}, step: {step}, list: List::{list}, kernel: {module}::kernel, text: include_str!({file:?}), \
             source: include_str!({path:?}) }},"
        )
        .expect("a string");
    }
    let text = format!("{modules}\n/// All of them, by name.\npub const ALL: &[Mistake] = &[\n{table}];\n");
    fs::write(out.join("mistakes.rs"), text).expect("OUT_DIR can be written");
}

/// The diffs of a folder, and the list that they are on.
fn of_folder(here: &Path, folder: &str, list: &'static str) -> Vec<(PathBuf, &'static str)> {
    let entries = fs::read_dir(here.join(folder)).expect("a folder of diffs can be read");
    let paths = entries.map(|entry| entry.expect("a folder of diffs can be read").path());
    let diffs = paths.filter(|path| path.extension().is_some_and(|extension| extension == "diff"));
    diffs.map(|path| (path, list)).collect()
}

/// The solution of a step with a diff applied. Step 0 is the kernel for Hopper.
fn changed(here: &Path, step: u8, diff: &str, name: &str) -> String {
    let file = if step == 0 { "hopper".to_string() } else { format!("step{step:02}") };
    let solution = fs::read_to_string(here.join(format!("../src/{file}.rs")))
        .unwrap_or_else(|error| panic!("{name}: step {step}: {error}"));
    let patch = diffy::Patch::from_str(diff).unwrap_or_else(|error| panic!("{name}: no unified diff: {error}"));
    diffy::apply(&solution, &patch).unwrap_or_else(|error| {
        panic!("{name}: the diff does not apply to the solution of step {step} any more: {error}")
    })
}
