//! `cargo workbook pack`: what is handed in, as one file. The kernels of finished steps and a list of them, nothing else; the same files
//! always give the same bytes.

use super::Binary;
use super::tokens;
use super::whole::write_whole;
use super::workspace::{Workspace, name};
use crate::points::MILESTONE_SHARE;
use crate::report::number;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The name of the list in the archive.
pub const MANIFEST: &str = "manifest.json";
/// The schema of the list.
pub const SCHEMA: u32 = 1;
/// The largest kernel file that is handed in. The longest solution has some thousand bytes.
pub const MAX_KERNEL: u64 = 1 << 20;

/// What an archive holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: u32,
    /// The version of the workbook that packed it.
    pub workbook: String,
    /// The kernels, in the order of their steps.
    pub files: Vec<Packed>,
}

/// A file of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Packed {
    /// Its name: a path from the top folder, with `/`.
    pub name: String,
    /// Its size in bytes.
    pub bytes: u64,
    /// Its SHA-256, as 64 lower-case hexadecimal digits.
    pub sha256: String,
}

impl Packed {
    /// The entry of a file.
    pub fn of(name: impl Into<String>, content: &[u8]) -> Packed {
        Packed { name: name.into(), bytes: content.len() as u64, sha256: sha256(content) }
    }
}

/// The SHA-256 of some bytes, as 64 lower-case hexadecimal digits.
pub fn sha256(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// What becomes of a step that is compiled, by its number.
pub type Compile<'a> = &'a dyn Fn(u8) -> Result<Binary, String>;

/// Whether kernels are compiled before they are packed: what does not compile gets no points, and its author should hear of it before the grader does.
#[derive(Clone, Copy)]
pub enum Compiled<'a> {
    /// They are packed as they are, unseen.
    NotAsked,
    /// One that does not compile is not packed, nor are the others.
    Must(Compile<'a>),
    /// One that does not compile is packed, and that is said.
    Anyway(Compile<'a>),
}

/// The archive's name, where nobody gives one.
const OUT: &str = "handin.tar";

/// A step that is not in an archive, though something was written in it.
struct Left {
    step: u8,
    /// The TODOs that are open.
    open: Vec<String>,
    /// All of the step's.
    todos: usize,
}

impl Left {
    /// Whether something was written in it: it may give points.
    fn begun(&self) -> bool {
        self.open.len() < self.todos
    }

    fn line(&self) -> String {
        let Left { step, open, todos } = self;
        let name = name(*step);
        let many = if open.len() == 1 { "TODO" } else { "TODOs" };
        match (open.len(), self.begun()) {
            (0, _) => format!("{name}: done, and not among those that `--step` names"),
            (count, false) => format!("{name}: {count} {many} open ({})", open.join(", ")),
            (count, true) => {
                let worth = crate::step(*step).map(|step| {
                    let hundredths = step.points * MILESTONE_SHARE * (todos - count) as u32 / *todos as u32;
                    format!(": worth up to {} of {} points", number(f64::from(hundredths) / 100.0), step.points)
                });
                format!("{name}: {count} of {todos} TODOs open ({}){}", open.join(", "), worth.unwrap_or_default())
            }
        }
    }
}

/// Writes the archive of these steps; without any, of all that are done. Gives what to tell the user.
///
/// # Errors
/// When there is nothing to pack, a kernel must compile and does not, or a file cannot be read or written.
pub fn pack(workspace: &Workspace, steps: &[u8], out: &Path, compiled: Compiled<'_>) -> Result<String, String> {
    let mut kernels = Vec::new();
    let mut left = Vec::new();
    // Also of steps that are not named: who packs one more must hear that another is left out.
    let unnamed = workspace.steps().into_iter().filter(|step| !steps.contains(step));
    for step in steps.iter().copied().chain(unnamed) {
        let named = steps.contains(&step);
        let file = Workspace::kernel(step);
        let content = match fs::read(workspace.root.join(&file)) {
            Ok(content) => content,
            Err(error) if error.kind() == ErrorKind::NotFound && !named => continue,
            // Nothing is asked of it.
            Err(_) if !steps.is_empty() && !named => continue,
            Err(error) => return Err(format!("cannot read {file}: {error}")),
        };
        if !steps.is_empty() && !named {
            let open = open_todos(&String::from_utf8_lossy(&content));
            left.push(Left { step, todos: todos(step, &open), open });
            continue;
        }
        if content.len() as u64 > MAX_KERNEL {
            return Err(format!(
                "{file} has {} bytes; the grader takes up to {MAX_KERNEL}\n  try: Generate tables in code.",
                content.len()
            ));
        }
        let text = std::str::from_utf8(&content)
            .map_err(|_| format!("{file} is not UTF-8 text\n  try: Save it as UTF-8, as Rust asks."))?;
        let open = open_todos(text);
        if open.is_empty() || named {
            kernels.push((step, file, content));
        } else {
            left.push(Left { step, todos: todos(step, &open), open });
        }
    }
    if kernels.is_empty() {
        let lines: String = left.iter().map(|left| format!("\n  {}", left.line())).collect();
        let way_out = match command(&[], &left, out) {
            Some(command) => format!("What is done of them may give points: `{command}` packs it as it is."),
            None => "Finish a step, or name one with `--step`: it is packed as it is.".to_string(),
        };
        return Err(format!("no step is done, so there is nothing to pack{lines}\n  try: {way_out}"));
    }
    let bytes = archive(&kernels)?;
    replaceable(out)?;
    let broken = broken(&kernels, compiled)?;
    write_whole(out, &bytes).map_err(|error| {
        let way_out = "try: Name a file in a folder that is there and can be written, with `--out`.";
        // Without the name that it has while it is written.
        let error = error.to_string();
        let error = error.split(" at path ").next().unwrap_or_default();
        format!("cannot write {}: {error}\n  {way_out}", out.display())
    })?;
    Ok(told(out, &kernels, &left) + &broken)
}

/// What is said of kernels that do not compile, and are packed all the same.
fn broken(kernels: &[(u8, String, Vec<u8>)], compiled: Compiled<'_>) -> Result<String, String> {
    let (compile, anyway) = match compiled {
        Compiled::NotAsked => return Ok(String::new()),
        Compiled::Must(compile) => (compile, false),
        Compiled::Anyway(compile) => (compile, true),
    };
    let (mut whole, mut short, mut names) = (String::new(), String::new(), Vec::new());
    for (step, ..) in kernels {
        let name = name(*step);
        let (first, said) = match compile(*step) {
            Ok(Binary::Ready(_)) => continue,
            Ok(Binary::DoesNotCompile { first, rendered }) => (format!("{name} does not compile: {first}"), rendered),
            Err(why) => (format!("it cannot be told whether {name} compiles"), why),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(short, "note: {first}");
        let _ = writeln!(whole, "{first}\n{}", said.trim_end());
        names.push(name);
    }
    match names.first() {
        None => Ok(String::new()),
        Some(_) if anyway => {
            Ok(format!("{short}The grader compiles them, too, and what does not compile gets no points.\n"))
        }
        Some(name) => Err(format!(
            "{whole}nothing is packed: the grader gives no points for what does not compile\n  \
             try: Mend it first; `cargo workbook run {name}` says the same. To hand it in as it is, give `--anyway`."
        )),
    }
}

/// Whether an archive may be written there: over nothing, or over one that was packed before. Else `--out` with the wrong name would
/// take a file that somebody has written.
fn replaceable(out: &Path) -> Result<(), String> {
    let shown = out.display();
    match fs::metadata(out) {
        // What else is wrong with it is said when it is written.
        Err(_) => Ok(()),
        Ok(about) if about.is_dir() => {
            let within = out.join("handin.tar");
            Err(format!("{shown} is a folder\n  try: Name a file in it: `--out {}`.", within.display()))
        }
        // A pipe is not opened: it would wait.
        Ok(about) if about.is_file() && was_packed(out) => Ok(()),
        Ok(_) => Err(format!(
            "{shown} exists, and is no archive that `cargo workbook pack` wrote\n  \
             try: Name another file with `--out`, or remove this one."
        )),
    }
}

/// Whether its first file is the list that archives begin with.
fn was_packed(path: &Path) -> bool {
    let Ok(file) = fs::File::open(path) else { return false };
    let mut archive = tar::Archive::new(file);
    let Ok(mut entries) = archive.entries() else { return false };
    entries.next().is_some_and(|first| first.is_ok_and(|first| first.path_bytes().as_ref() == MANIFEST.as_bytes()))
}

/// How many TODOs a step has: as many as are open at least, where the step is not known.
fn todos(step: u8, open: &[String]) -> usize {
    crate::step(step).map_or(0, |step| step.milestones.len()).max(open.len())
}

/// The command that packs these steps and all in which something was written; `None`: there are no others.
fn command(packed: &[u8], left: &[Left], out: &Path) -> Option<String> {
    let mut steps: Vec<u8> = left.iter().filter(|left| left.begun()).map(|left| left.step).collect();
    if steps.is_empty() {
        return None;
    }
    steps.extend(packed);
    steps.sort_unstable();
    let steps: String = steps.iter().map(|step| format!(" --step {step}")).collect();
    let plain = |c: char| c.is_alphanumeric() || "/._-+,".contains(c);
    let word = out.display().to_string();
    let word = if word.chars().all(plain) { word } else { format!("'{}'", word.replace('\'', r"'\''")) };
    let out = if out == Path::new(OUT) { String::new() } else { format!(" --out {word}") };
    Some(format!("cargo workbook pack{steps}{out}"))
}

/// What is told of an archive.
fn told(out: &Path, kernels: &[(u8, String, Vec<u8>)], left: &[Left]) -> String {
    let many = if kernels.len() == 1 { "kernel" } else { "kernels" };
    let mut text = format!("{}: {} {many}\n", out.display(), kernels.len());
    for (_, file, content) in kernels {
        text.push_str(&format!("  {file}, {} bytes\n", content.len()));
    }
    if !left.is_empty() {
        text.push_str("not packed:\n");
        text.extend(left.iter().map(|left| format!("  {}\n", left.line())));
        let packed: Vec<u8> = kernels.iter().map(|(step, ..)| *step).collect();
        if let Some(command) = command(&packed, left, out) {
            text.push_str(&format!(
                "  try: `{command}` packs what was written of them, too, as it is. Only the last archive counts that is handed in.\n"
            ));
        }
    }
    text.push_str("The grader takes these files and nothing else, and gives the verdict that you see with\n");
    for (step, ..) in kernels {
        text.push_str(&format!("  cargo workbook run {}\n", name(*step)));
    }
    text
}

/// The archive's bytes: no times, no owners, the list first.
fn archive(kernels: &[(u8, String, Vec<u8>)]) -> Result<Vec<u8>, String> {
    let files = kernels.iter().map(|(_, file, content)| Packed::of(file, content)).collect();
    let manifest = Manifest { schema: SCHEMA, workbook: env!("CARGO_PKG_VERSION").to_string(), files };
    let mut list = serde_json::to_vec_pretty(&manifest).map_err(|error| error.to_string())?;
    list.push(b'\n');
    let mut builder = tar::Builder::new(Vec::new());
    let others = kernels.iter().map(|(_, file, content)| (file.as_str(), content.as_slice()));
    for (file, content) in std::iter::once((MANIFEST, list.as_slice())).chain(others) {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(tar::EntryType::Regular);
        builder.append_data(&mut header, file, content).map_err(|error| format!("cannot pack {file}: {error}"))?;
    }
    builder.into_inner().map_err(|error| format!("cannot pack: {error}"))
}

/// The TODOs whose `todo` call is still in a kernel's text, by number.
fn open_todos(text: &str) -> Vec<String> {
    let pieces = tokens::code(text);
    let call = |window: &[tokens::Token<'_>]| match window {
        [todo, open, id] if todo.is("todo") && open.is("(") && id.kind == tokens::Kind::Text => {
            Some(id.text.trim_matches('"').to_string())
        }
        _ => None,
    };
    pieces.windows(3).filter_map(call).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn checkout(kernels: &[(u8, &str)]) -> (tempfile::TempDir, Workspace) {
        let folder = tempfile::tempdir().unwrap();
        for (step, text) in kernels {
            let file = folder.path().join(Workspace::kernel(*step));
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(folder.path().join("steps").join(name(*step)).join("Cargo.toml"), "").unwrap();
            fs::write(file, text).unwrap();
        }
        let workspace = Workspace { root: folder.path().to_path_buf() };
        (folder, workspace)
    }

    /// Step 2 has six TODOs.
    const OPEN: &str = "fn kernel() {\n    k.todo(\"2.1\");\n    // k.todo(\"2.2\");\n    w.todo(\"2.3\");\n}\n";

    #[test]
    fn done_steps_are_packed_and_the_same_files_give_the_same_bytes() {
        let (folder, workspace) = checkout(&[(1, "fn kernel() {}\n"), (2, OPEN)]);
        let out = folder.path().join("handin.tar");
        let told = pack(&workspace, &[], &out, Compiled::NotAsked).unwrap();
        expect![[r#"
            FOLDER/handin.tar: 1 kernel
              steps/step01/src/kernel.rs, 15 bytes
            not packed:
              step02: 2 of 6 TODOs open (2.1, 2.3): worth up to 1 of 5 points
              try: `cargo workbook pack --step 1 --step 2 --out FOLDER/handin.tar` packs what was written of them, too, as it is. Only the last archive counts that is handed in.
            The grader takes these files and nothing else, and gives the verdict that you see with
              cargo workbook run step01
        "#]]
        .assert_eq(&told.replace(folder.path().to_str().unwrap(), "FOLDER"));
        let first = fs::read(&out).unwrap();
        // The same file at another time.
        fs::write(workspace.root.join(Workspace::kernel(1)), "fn kernel() {}\n").unwrap();
        pack(&workspace, &[], &out, Compiled::NotAsked).unwrap();
        assert_eq!(fs::read(&out).unwrap(), first);
        // What it was when this was written: also the same on another machine.
        expect!["82710fa4a7e45e30c5b7f2bb8f4d25598f6e31aff69f6fe3a59c742df3215f55"].assert_eq(&sha256(&first));
        let mut archive = tar::Archive::new(first.as_slice());
        let names: Vec<String> =
            archive.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().display().to_string()).collect();
        assert_eq!(names, [MANIFEST, "steps/step01/src/kernel.rs"]);
    }

    #[test]
    fn a_step_that_is_named_is_packed_as_it_is() {
        let (folder, workspace) = checkout(&[(1, "fn kernel() {}\n"), (2, OPEN)]);
        let out = folder.path().join("mine.tar");
        let told = pack(&workspace, &[2], &out, Compiled::NotAsked).unwrap();
        // That step 1 is not in it must be said, with all that it takes to have both.
        expect![[r#"
            FOLDER/mine.tar: 1 kernel
              steps/step02/src/kernel.rs, 76 bytes
            not packed:
              step01: done, and not among those that `--step` names
              try: `cargo workbook pack --step 1 --step 2 --out FOLDER/mine.tar` packs what was written of them, too, as it is. Only the last archive counts that is handed in.
            The grader takes these files and nothing else, and gives the verdict that you see with
              cargo workbook run step02
        "#]].assert_eq(&told.replace(folder.path().to_str().unwrap(), "FOLDER"));
        let told = pack(&workspace, &[1, 2], &out, Compiled::NotAsked).unwrap();
        assert!(!told.contains("not packed"), "{told}");
        let left = || [Left { step: 1, open: Vec::new(), todos: 7 }];
        assert_eq!(command(&[2], &left(), Path::new(OUT)).unwrap(), "cargo workbook pack --step 1 --step 2");
        let odd = command(&[2], &left(), Path::new("my hand-in.tar")).unwrap();
        assert_eq!(odd, "cargo workbook pack --step 1 --step 2 --out 'my hand-in.tar'");
    }

    #[test]
    fn what_was_not_touched_gives_no_points_and_is_in_no_command() {
        let all: String =
            (1..=crate::step(2).unwrap().milestones.len()).map(|n| format!("k.todo(\"2.{n}\");\n")).collect();
        let (folder, workspace) = checkout(&[(1, "fn kernel() {}\n"), (2, &all)]);
        let told = pack(&workspace, &[], &folder.path().join("handin.tar"), Compiled::NotAsked).unwrap();
        assert!(told.contains("step02: ") && !told.contains("try:") && !told.contains("points"), "{told}");
        let (folder, workspace) = checkout(&[(2, &all)]);
        let why = pack(&workspace, &[], &folder.path().join("handin.tar"), Compiled::NotAsked).unwrap_err();
        assert!(why.ends_with("try: Finish a step, or name one with `--step`: it is packed as it is."), "{why}");
    }

    #[test]
    fn a_kernel_that_does_not_compile_is_packed_only_if_that_is_meant() {
        let (folder, workspace) = checkout(&[(1, "fn kernel() {}\n"), (2, "fn kernel( {\n")]);
        let out = folder.path().join("handin.tar");
        let compile = |step: u8| match step {
            1 => Ok(Binary::Ready("step01".into())),
            _ => Ok(Binary::DoesNotCompile {
                first: "steps/step02/src/kernel.rs:1: unclosed".to_string(),
                rendered: "error: unclosed\n --> steps/step02/src/kernel.rs:1:10\n\n".to_string(),
            }),
        };
        let refused = pack(&workspace, &[], &out, Compiled::Must(&compile)).unwrap_err();
        assert!(!out.exists());
        expect![[r#"
            step02 does not compile: steps/step02/src/kernel.rs:1: unclosed
            error: unclosed
             --> steps/step02/src/kernel.rs:1:10
            nothing is packed: the grader gives no points for what does not compile
              try: Mend it first; `cargo workbook run step02` says the same. To hand it in as it is, give `--anyway`."#]].assert_eq(&refused);
        let packed = pack(&workspace, &[], &out, Compiled::Anyway(&compile)).unwrap();
        assert!(out.exists());
        let said = packed.split_once("cargo workbook run step02\n").unwrap().1;
        expect![[r#"
            note: step02 does not compile: steps/step02/src/kernel.rs:1: unclosed
            The grader compiles them, too, and what does not compile gets no points.
        "#]]
        .assert_eq(said);
        // What compiles has no word on it, and cargo that fails is no kernel that compiles.
        let packed = pack(&workspace, &[1], &out, Compiled::Must(&compile)).unwrap();
        assert!(!packed.contains("compile"), "{packed}");
        let fails = |_: u8| Err("cannot start cargo".to_string());
        let refused = pack(&workspace, &[1], &out, Compiled::Must(&fails)).unwrap_err();
        expect![[r#"
            it cannot be told whether step01 compiles
            cannot start cargo
            nothing is packed: the grader gives no points for what does not compile
              try: Mend it first; `cargo workbook run step01` says the same. To hand it in as it is, give `--anyway`."#]].assert_eq(&refused);
    }

    #[test]
    fn what_cannot_be_packed() {
        let (folder, workspace) = checkout(&[(2, OPEN)]);
        let out = folder.path().join("handin.tar");
        let refused = |workspace: &Workspace, steps: &[u8]| {
            pack(workspace, steps, &out, Compiled::NotAsked)
                .unwrap_err()
                .replace(folder.path().to_str().unwrap(), "FOLDER")
        };
        expect![[r#"
            no step is done, so there is nothing to pack
              step02: 2 of 6 TODOs open (2.1, 2.3): worth up to 1 of 5 points
              try: What is done of them may give points: `cargo workbook pack --step 2 --out FOLDER/handin.tar` packs it as it is."#]]
        .assert_eq(&refused(&workspace, &[]));
        let large = "//".to_string() + &" ".repeat(1 << 20);
        fs::write(workspace.root.join(Workspace::kernel(2)), large).unwrap();
        expect![[r#"
            steps/step02/src/kernel.rs has 1048578 bytes; the grader takes up to 1048576
              try: Generate tables in code."#]]
        .assert_eq(&refused(&workspace, &[2]));
        assert!(!out.exists());
        // What is there is somebody's work; only an archive that was packed before gives way.
        fs::write(workspace.root.join(Workspace::kernel(2)), OPEN).unwrap();
        let refused = |out: &Path| {
            let error = pack(&workspace, &[2], out, Compiled::NotAsked).unwrap_err();
            error.replace(folder.path().to_str().unwrap(), "FOLDER")
        };
        let kernel = workspace.root.join(Workspace::kernel(2));
        expect![[r#"
            FOLDER/steps/step02/src/kernel.rs exists, and is no archive that `cargo workbook pack` wrote
              try: Name another file with `--out`, or remove this one."#]]
        .assert_eq(&refused(&kernel));
        assert_eq!(fs::read_to_string(&kernel).unwrap(), OPEN);
        fs::write(&out, "").unwrap();
        expect![[r#"
            FOLDER/handin.tar exists, and is no archive that `cargo workbook pack` wrote
              try: Name another file with `--out`, or remove this one."#]]
        .assert_eq(&refused(&out));
        expect![[r#"
            FOLDER is a folder
              try: Name a file in it: `--out FOLDER/handin.tar`."#]]
        .assert_eq(&refused(folder.path()));
        expect![[r#"
            cannot write FOLDER/none/handin.tar: No such file or directory (os error 2)
              try: Name a file in a folder that is there and can be written, with `--out`."#]]
        .assert_eq(&refused(&folder.path().join("none/handin.tar")));
    }
}
