//! `book findings`: what the emulator says, for each of its codes, as the pages of the findings show it.
//!
//! **Does:** run the mistakes, the mutants of the corpus, some edited solutions and the small kernels of `src/findings`; choose one for each code;
//! write what is said of it to `src/findings/CODE.txt`, with its origin in the first line; with `--check` run those origins again and compare. **Never does:** hold
//! a word of an output.

use crate::site;
use emulator::{Buffer, CODES, Content, Diagnostic, Launch, Options, Param};
use harness::diagnostics::{self, Sources};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::{fmt, fs};

#[cfg(feature = "solutions")]
#[path = "origins.rs"]
mod origins;

/// Far more than any kernel here takes at its size.
const BUDGET: u64 = 4_000_000;
/// Characters of a change that is shown in the first line.
const LONGEST: usize = 160;

/// A kernel of which the code is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// One of `solutions/mistakes`, by its name.
    Mistake(String),
    /// One of the corpus, by its number.
    Mutant(String),
    /// One of `solutions/edited`, by its name.
    Edit(String),
    /// `src/findings/NAME.ptx`.
    Example(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Mistake(name) => write!(f, "mistake {name}"),
            Origin::Mutant(id) => write!(f, "mutant {id}"),
            Origin::Edit(name) => write!(f, "edit {name}"),
            Origin::Example(name) => write!(f, "kernel {name}"),
        }
    }
}

impl Origin {
    /// The origin that the first line of an output names.
    fn read(line: &str) -> Option<Origin> {
        let (kind, rest) = line.split_once(' ')?;
        let name = rest.split([' ', ',', ':']).next()?.to_string();
        match kind {
            "mistake" => Some(Origin::Mistake(name)),
            "mutant" => Some(Origin::Mutant(name)),
            "edit" => Some(Origin::Edit(name)),
            "kernel" => Some(Origin::Example(name)),
            _ => None,
        }
    }
}

/// What is said of a kernel under the default schedule.
pub struct Said {
    /// What the kernel is, for a person.
    pub about: String,
    /// Findings, then notes; or why it does not load.
    pub diagnostics: Vec<Diagnostic>,
    /// Where its lines are found.
    pub sources: Sources,
    /// A folder that the lines need while they are shown.
    pub _folder: Option<tempfile::TempDir>,
}

/// Runs a text: what is said, in the order of a verdict.
pub fn run(ptx: &str, launch: &Launch, budget: u64) -> Vec<Diagnostic> {
    let options = Options { threads: Some(NonZeroUsize::MIN), max_instructions: budget, ..Options::default() };
    match emulator::load(ptx) {
        Err(errors) => errors,
        Ok(program) => {
            let mut report = emulator::run(&program, launch, &options);
            report.findings.sort_by_key(harness::rank);
            report.findings.into_iter().chain(report.notes).collect()
        }
    }
}

/// The folder of the outputs.
fn folder() -> PathBuf {
    site::folder().join("src/findings")
}

fn failed(path: &std::path::Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

/// The number behind a word in the first line of a kernel's text, as in `// threads 64, budget 1000`.
fn asked(text: &str, what: &str) -> Option<u32> {
    let mut words = text.lines().next()?.split([' ', ',']).skip_while(|word| *word != what);
    words.nth(1)?.parse().ok()
}

/// A kernel of `src/findings`: its first line says with how many threads, and CTAs of a cluster, it is launched. Its parameter, if it has one,
/// points to 4 KiB of zeroes.
fn example(name: &str) -> Result<Said, String> {
    let path = folder().join(format!("{name}.ptx"));
    let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
    let threads =
        asked(&text, "threads").ok_or_else(|| format!("{}: the first line names no threads", path.display()))?;
    let ctas = asked(&text, "CTAs").unwrap_or(1);
    let zeroes = Buffer { name: "out".into(), content: Content::Fill { bytes: 4096, value: 0 }, ..Buffer::default() };
    let has_parameter = text.contains(".param .u64");
    let launch = Launch {
        entry: "k".into(),
        grid: [ctas, 1, 1],
        cluster: [ctas, 1, 1],
        block: [threads, 1, 1],
        params: if has_parameter { vec![Param::Pointer { buffer: 0, offset: 0 }] } else { Vec::new() },
        buffers: if has_parameter { vec![zeroes] } else { Vec::new() },
        ..Launch::default()
    };
    let budget = asked(&text, "budget").map_or(BUDGET, u64::from);
    Ok(Said {
        about: format!(": book/src/findings/{name}.ptx"),
        diagnostics: run(&text, &launch, budget),
        sources: Sources::none(),
        _folder: None,
    })
}

/// The kernels of `src/findings`, by name.
fn examples() -> Result<Vec<String>, String> {
    let folder = folder();
    let entries = fs::read_dir(&folder).map_err(|error| failed(&folder, &error))?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let mut names: Vec<String> = names.filter_map(|name| Some(name.strip_suffix(".ptx")?.to_string())).collect();
    names.sort_unstable();
    Ok(names)
}

/// Runs a kernel again; nothing where this program has it not.
fn said(origin: &Origin) -> Result<Option<Said>, String> {
    match origin {
        Origin::Example(name) => example(name).map(Some),
        #[cfg(feature = "solutions")]
        Origin::Mistake(name) => origins::mistake(name).map(Some),
        #[cfg(feature = "solutions")]
        Origin::Mutant(id) => origins::mutant(id).map(Some),
        #[cfg(feature = "solutions")]
        Origin::Edit(name) => origins::edit(name).map(Some),
        #[cfg(not(feature = "solutions"))]
        _ => Ok(None),
    }
}

/// What a page shows of a code: where it comes from, and what is said.
fn output(code: &str, origin: &Origin, said: &Said) -> Option<String> {
    let found = said.diagnostics.iter().find(|diagnostic| diagnostic.code == code)?;
    let mut about: String = said.about.chars().take(LONGEST).collect();
    if about.len() < said.about.len() {
        about.push('…');
    }
    Some(format!("{origin}{about}\n\n{}", diagnostics::render(found, &said.sources).text))
}

/// The codes in the order of their names.
fn codes() -> Vec<(&'static str, &'static str)> {
    let mut codes = CODES.to_vec();
    codes.sort_unstable();
    codes
}

/// The page of a code: the first of the `findings-*.md` that has a heading for it.
///
/// # Errors
/// When a page cannot be read.
pub fn pages() -> Result<BTreeMap<String, String>, String> {
    let src = site::folder().join("src");
    let mut files: Vec<String> = fs::read_dir(&src)
        .map_err(|error| failed(&src, &error))?
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .filter(|name| name.starts_with("findings-") && name.ends_with(".md"))
        .collect();
    files.sort_unstable();
    let mut pages = BTreeMap::new();
    for file in files {
        let path = src.join(&file);
        let text = fs::read_to_string(&path).map_err(|error| failed(&path, &error))?;
        let headings = text.lines().filter_map(|line| line.strip_prefix("## "));
        for heading in headings.filter(|heading| CODES.iter().any(|(code, _)| code == heading)) {
            pages.entry(heading.to_string()).or_insert_with(|| file.clone());
        }
    }
    Ok(pages)
}

/// The table of all codes, each with its link.
fn table() -> Result<String, String> {
    let pages = pages()?;
    let mut table = "| code | what it says |\n|---|---|\n".to_string();
    for (code, meaning) in codes() {
        let page = pages.get(code).map_or("findings.md", String::as_str);
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| <span id=\"{code}\"></span>[`{code}`]({page}#{code}) | {meaning} |");
    }
    Ok(table)
}

/// Writes an output for each code, and the table.
///
/// # Errors
/// When a kernel cannot be built, or a file not be written.
pub fn write() -> Result<(), String> {
    let folder = folder();
    let put = |name: String, text: String| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, &error))
    };
    put("table.txt".to_string(), table()?)?;
    let chosen = choose()?;
    for (code, _) in codes() {
        let Some(origin) = chosen.get(code) else {
            println!("{code}: no kernel gets it");
            let _ = fs::remove_file(folder.join(format!("{code}.txt")));
            continue;
        };
        let text = said(origin)?.and_then(|said| output(code, origin, &said));
        put(format!("{code}.txt"), text.ok_or_else(|| format!("{origin} does not get {code} again"))?)?;
    }
    Ok(())
}

/// The codes of a kernel, in the order in which they are said.
pub type Codes = Vec<&'static str>;

/// What is said of the mistakes and the mutants, and then of the edited solutions.
#[cfg(feature = "solutions")]
fn of_solutions() -> Result<[Vec<(Origin, Codes)>; 2], String> {
    Ok([origins::all()?, origins::edits()?])
}

/// There are none here.
#[cfg(not(feature = "solutions"))]
fn of_solutions() -> Result<[Vec<(Origin, Codes)>; 2], String> {
    Err("the outputs are made in the full tree, which has the mistakes and the mutants".to_string())
}

/// One kernel for each code: of the mistakes, by name, then of the corpus, steps 1 to 10 and the kernel for Hopper, the first of which the code
/// is the first that is said, or else the first of which it is said at all. Where there is none, an edited solution, and only where there is none
/// of these either, a kernel of `src/findings`.
fn choose() -> Result<BTreeMap<&'static str, Origin>, String> {
    let mut small = Vec::new();
    for name in examples()? {
        let codes = example(&name)?.diagnostics.iter().map(|diagnostic| diagnostic.code).collect();
        small.push((Origin::Example(name), codes));
    }
    let [solutions, edits] = of_solutions()?;
    Ok(first_of_each(&[solutions, edits, small]))
}

/// Of some groups of kernels, the earlier before the later: the first of which a code is the first that is said, or is said at all.
fn first_of_each(groups: &[Vec<(Origin, Codes)>]) -> BTreeMap<&'static str, Origin> {
    let mut chosen = BTreeMap::new();
    for group in groups {
        for most in [1, usize::MAX] {
            for (origin, codes) in group {
                for code in codes.iter().take(most) {
                    chosen.entry(*code).or_insert_with(|| origin.clone());
                }
            }
        }
    }
    chosen
}

/// A mutant comes before a small kernel, also where another finding is said of it first.
#[test]
fn small_kernels_come_last() {
    let of = |name: &str, codes: &[&'static str]| (Origin::Mutant(name.to_string()), codes.to_vec());
    let small = vec![(Origin::Example("z".into()), vec!["b"]), (Origin::Example("y".into()), vec!["c"])];
    let chosen = first_of_each(&[vec![of("1", &["a", "b"]), of("2", &["b", "a"]), of("3", &["d", "b"])], small]);
    let named: Vec<String> = chosen.iter().map(|(code, origin)| format!("{code}: {origin}")).collect();
    assert_eq!(named, ["a: mutant 1", "b: mutant 2", "c: kernel y", "d: mutant 3"]);
}

/// Runs the kernel of each output again.
///
/// # Errors
/// With what differs.
pub fn check() -> Result<String, String> {
    let folder = folder();
    let (mut wrong, mut compared, mut skipped) = (Vec::new(), 0, 0);
    for (code, _) in codes() {
        let path = folder.join(format!("{code}.txt"));
        let Ok(kept) = fs::read_to_string(&path) else { continue };
        let origin = kept.lines().next().and_then(Origin::read);
        let origin = origin.ok_or_else(|| format!("{}: the first line names no kernel", path.display()))?;
        match said(&origin) {
            Ok(None) => skipped += 1,
            Ok(Some(said)) => match output(code, &origin, &said) {
                Some(now) if now == kept => compared += 1,
                Some(now) => wrong.push(format!("{code}: kept is\n{kept}\nand now it is\n{now}")),
                None => wrong.push(format!("{code}: {origin} does not get it any more")),
            },
            Err(error) => wrong.push(format!("{code}: {error}")),
        }
    }
    let path = folder.join("table.txt");
    if fs::read_to_string(&path).map_err(|error| failed(&path, &error))? != table()? {
        wrong.push(format!("{} is not the table of all codes", path.display()));
    }
    if wrong.is_empty() {
        Ok(format!("{compared} outputs are what is said now, {skipped} not checked"))
    } else {
        Err(format!("{}\n  try: Run `cargo run -p book -- findings`, and read the diff.", wrong.join("\n")))
    }
}
