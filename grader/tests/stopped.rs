//! What the teacher is told of hand-ins that reach beyond a kernel, for each of `grader/attacks`, and of those that do not.

use grader::stopped::{What, named};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").to_path_buf()
}

fn rust_files(folder: &str) -> BTreeMap<String, String> {
    let entries = fs::read_dir(root().join(folder)).expect(folder).flatten().map(|entry| entry.path());
    let rust = entries.filter(|path| path.extension().is_some_and(|end| end == "rs"));
    rust.map(|path| {
        let name = path.file_stem().expect("a name").to_string_lossy().into_owned();
        (name, fs::read_to_string(&path).expect("a text"))
    })
    .collect()
}

fn family(text: &str) -> &str {
    text.lines().find_map(|line| line.strip_prefix("// family: ")).unwrap_or_default()
}

/// What they name, from the code alone: their first lines are comments.
#[test]
fn attacks_on_what_lies_outside_leave_a_trace_in_the_text() {
    let attacks = rust_files("grader/attacks");
    let outside = ["network", "files of others", "results of others"];
    let those: Vec<_> = attacks.iter().filter(|(_, text)| outside.contains(&family(text))).collect();
    assert!(those.len() >= 20, "{} attacks", those.len());
    // It asks the builder, and not the system, for lines of files; and it has a line of its own for the rest.
    let silent: Vec<&str> =
        those.iter().filter(|(_, text)| named(text).is_empty()).map(|(name, _)| name.as_str()).collect();
    assert_eq!(silent, Vec::<&str>::new(), "they leave no trace");
    for (name, what) in [
        ("tcp", What::Network),
        ("udp", What::Network),
        ("listen", What::Network),
        ("disk", What::Files),
        ("processes", What::Processes),
        ("threads", What::Threads),
        ("read_environment", What::Environment),
        ("unsafe_code", What::Unsafe),
        ("include_bytes", What::Build),
        ("include_reference", What::Build),
        ("own_hook", What::Output),
    ] {
        let found = named(&attacks[name]);
        assert!(found.iter().any(|one| one.what == what && one.line.is_some_and(|line| line > 3)), "{name}: {found:?}");
    }
}

/// A column that is full for everybody says nothing.
#[test]
fn solutions_and_steps_name_nothing_of_the_kind() {
    let mut texts = rust_files("solutions/src");
    texts.retain(|name, _| name.starts_with("step"));
    for step in 1..=10 {
        let path = root().join(format!("steps/step{step:02}/src/kernel.rs"));
        texts.insert(path.display().to_string(), fs::read_to_string(&path).expect("a kernel"));
    }
    assert!(texts.len() >= 20, "{} kernels", texts.len());
    for (name, text) in texts {
        assert_eq!(named(&text), vec![], "{name}");
    }
}

#[test]
fn a_name_is_told_once_with_its_first_line_and_what_holds_there() {
    let text = "use ptx::prelude::*;\nuse std::net::TcpStream;\npub fn kernel(_: &mut Cta, _: &Gemm) {\n    std::net::TcpListener::bind(0);\n}\n";
    let told: Vec<String> = named(text).iter().map(|one| one.of_step(3)).collect();
    assert_eq!(told, ["step03: the kernel names `std::net` (line 2); there is no network where a hand-in runs"]);
}
