//! Writes a class: a folder of hand-ins as a course gets them, for trying `grader batch` on as many as there are students.
//!
//! `cargo run -p grader --example class -- FOLDER --count 300 --seed 1`. The same numbers give the same files. Beside the folder lie
//! `FOLDER.csv`, what each hand-in is, and `FOLDER.toml`, a rubric whose sizes go to 1024³. [`mix`] says how many there are of which kind.

mod kernels;
mod mix;
mod random;

use clap::Parser;
use flate2::Compression;
use flate2::write::GzEncoder;
use harness::workbook::Workspace;
use harness::workbook::pack::{Compiled, pack};
use kernels::Sources;
use mix::{Broken, Kind};
use random::Random;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes a class of hand-ins.
#[derive(Debug, Parser)]
struct Arguments {
    /// Where the hand-ins go; a new folder
    folder: PathBuf,
    /// So many hand-ins
    #[arg(long, default_value_t = 300)]
    count: usize,
    /// Other numbers give other classes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match write(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn write(arguments: &Arguments) -> Result<(), String> {
    let workspace = Workspace::find(Path::new(env!("CARGO_MANIFEST_DIR")))?;
    let sources = Sources::read(&workspace.root)?;
    let folder = &arguments.folder;
    fs::create_dir(folder).map_err(|error| {
        format!("cannot make {}: {error}\n  try: Name a folder that is not there yet.", folder.display())
    })?;
    let mut table = "name,kind,detail\n".to_string();
    for (index, kind) in mix::of(arguments.count, arguments.seed, &sources).into_iter().enumerate() {
        // Of its own, so that a hand-in does not depend on those before it.
        let mut random = Random::new(arguments.seed ^ (index as u64 + 1) << 32);
        let name = hand_in(folder, &format!("student-{:03}", index + 1), &kind, &sources, &mut random)
            .map_err(|error| format!("hand-in {}: {error}", index + 1))?;
        table += &format!("{name},{},{}\n", kind.name(), kind.detail());
    }
    let beside =
        |end: &str| folder.with_file_name(format!("{}.{end}", folder.file_name().unwrap_or_default().display()));
    for (end, text) in [("csv", table), ("toml", mix::rubric())] {
        fs::write(beside(end), text).map_err(|error| format!("cannot write {}: {error}", beside(end).display()))?;
    }
    Ok(())
}

/// Writes one. Gives the name of its folder or archive.
fn hand_in(class: &Path, name: &str, kind: &Kind, sources: &Sources, random: &mut Random) -> Result<String, String> {
    let folder = class.join(name);
    let written = |result: std::io::Result<()>| result.map_err(|error| format!("cannot write {name}: {error}"));
    let kernels = match kind {
        Kind::Broken(Broken::Empty) => Vec::new(),
        Kind::Broken(Broken::TornArchive) => {
            written(fs::write(class.join(format!("{name}.tar.gz")), b"\x1f\x8b\x08\x00cut off"))?;
            return Ok(format!("{name}.tar.gz"));
        }
        _ => kind.kernels(sources, random),
    };
    let student = Workspace { root: folder.clone() };
    written(fs::create_dir_all(&folder))?;
    for (step, text) in &kernels {
        let path = student.root.join(Workspace::kernel(*step));
        written(fs::create_dir_all(path.parent().unwrap_or(&folder)))?;
        written(fs::write(&path, text))?;
    }
    if let Kind::Broken(Broken::Twice) = kind {
        let (first, second) = (student.root.join(Workspace::kernel(1)), folder.join("step01.rs"));
        written(fs::copy(first, second).map(drop))?;
    }
    if !kind.can_be_packed() {
        return Ok(name.to_string());
    }
    // As many hand in an archive as a folder: half of them as the workbook packs it, half packed once more.
    match random.below(4) {
        0 => {
            let archive = format!("{name}.tar");
            packed(&student, kind, &class.join(&archive))?;
            written(fs::remove_dir_all(&folder))?;
            Ok(archive)
        }
        1 => {
            let (plain, archive) = (folder.join("handin.tar"), format!("{name}.tar.gz"));
            packed(&student, kind, &plain)?;
            let compressed = fs::read(&plain).and_then(|bytes| {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
                encoder.write_all(&bytes)?;
                encoder.finish()
            });
            written(compressed.and_then(|bytes| fs::write(class.join(&archive), bytes)))?;
            written(fs::remove_dir_all(&folder))?;
            Ok(archive)
        }
        _ => Ok(name.to_string()),
    }
}

/// Of an archive only the steps are there that somebody has worked on.
fn packed(student: &Workspace, kind: &Kind, out: &Path) -> Result<(), String> {
    pack(student, &kind.worked_on(), out, Compiled::NotAsked).map(drop)
}

/// What the checkout has now, its mistakes and attacks among it, becomes hand-ins of every kind.
#[test]
fn a_class_is_made_of_this_checkout() {
    let folder = tempfile::tempdir().expect("a folder");
    let (class, count) = (folder.path().join("class"), 60);
    let made = write(&Arguments { folder: class.clone(), count, seed: 1 });
    assert_eq!(made, Ok(()));
    assert_eq!(fs::read_dir(&class).expect("the class").count(), count);
    let table = fs::read_to_string(folder.path().join("class.csv")).expect("the table");
    let kinds: std::collections::BTreeSet<&str> =
        table.lines().skip(1).filter_map(|row| row.split(',').nth(1)).collect();
    assert!(kinds.len() >= 5, "{kinds:?}");
}
