//! `trace`: what a kernel's warps and engines do when, as one page that holds all it needs.

use super::workspace::{Workspace, name};
use super::{source_lines, timeline};
use crate::recording::{self, Recording};
use crate::{Built, Problem};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What was asked for.
pub struct Options {
    /// The page; `None`: below [`FOLDER`].
    pub out: Option<PathBuf>,
    /// The timeline for Perfetto.
    pub perfetto: Option<PathBuf>,
    /// CTAs on the page.
    pub ctas: u32,
    /// Open it.
    pub open: bool,
    /// It is the reference solution.
    pub solution: bool,
}

/// Where a page goes that nobody said a place for: to what is built, and no commit takes up.
pub const FOLDER: &str = "target/trace";
/// The first bytes of a page: a file that begins so may be replaced by a newer one.
const BEGIN: &str = "<!doctype html>\n<!-- cargo workbook trace -->\n";
/// More events make a page that browsers are slow with.
const MOST: usize = 60_000;

/// What the figures of the book are made with.
const STYLE: &str = include_str!("../../../book/figures/figures.css");
const SCRIPTS: [&str; 3] = [
    include_str!("../../../book/figures/lib.js"),
    include_str!("../../../book/figures/recording.js"),
    include_str!("../../../book/figures/timeline.js"),
];

/// Runs the kernel for its times and writes the page; says what was written.
pub fn trace(
    workspace: &Workspace,
    step: u8,
    problem: Problem,
    built: &Built,
    options: &Options,
) -> Result<String, String> {
    let out = &match &options.out {
        Some(path) => path.clone(),
        None => own_place(workspace, step, options.solution)?,
    };
    if fs::read(out).is_ok_and(|bytes| !bytes.starts_with(BEGIN.as_bytes())) {
        return Err(format!(
            "{} exists and is no page of `trace`; nothing was changed\n  try: Name another file with `--out`.",
            from_here(out).display()
        ));
    }
    let (report, launch) = timeline::run(built, problem, step)?;
    let whose = if options.solution { "the solution of " } else { "" };
    let title = format!("{whose}{} for {problem}", name(step));
    let recording = recording::record(&title, &report, &launch, options.ctas, MOST);
    let recording = recording.with_sources(&mut source_lines(workspace));
    let page = page(&recording)?;
    fs::write(out, page).map_err(|error| {
        format!("{} cannot be written: {error}\n  try: Name another file with `--out`.", from_here(out).display())
    })?;
    let [shown, all] = recording.ctas;
    let mut text = format!(
        "{} events of {shown} of {all} CTAs in {} simulated cycles, to {}\nopen it in a browser; it needs nothing else\n",
        recording.events.len(),
        report.cycles,
        from_here(out).display()
    );
    text += timeline::ended(&report);
    if let Some(path) = &options.perfetto {
        text += &timeline::write_perfetto(path, &report, &launch)?;
    }
    if options.open {
        open(out)?;
    }
    Ok(text)
}

/// The page of a step, which nobody said a place for; the folder is made.
fn own_place(workspace: &Workspace, step: u8, solution: bool) -> Result<PathBuf, String> {
    let folder = workspace.root.join(FOLDER);
    fs::create_dir_all(&folder).map_err(|error| {
        format!("{} cannot be made: {error}\n  try: Name a file for the page with `--out`.", folder.display())
    })?;
    let whose = if solution { "-solution" } else { "" };
    Ok(folder.join(format!("{}{whose}.html", name(step))))
}

/// A path as one types it here: from the current folder, where it is below it.
fn from_here(path: &Path) -> &Path {
    std::env::current_dir().ok().and_then(|here| path.strip_prefix(here).ok()).unwrap_or(path)
}

/// The page of a recording: it asks for nothing outside of itself.
fn page(recording: &Recording) -> Result<String, String> {
    let title = escaped(&recording.title);
    let note = if recording.completed {
        String::new()
    } else {
        "<p><strong>The run did not come to its end.</strong> <code>cargo workbook run</code> says why.</p>\n"
            .to_string()
    };
    let data = recording::for_script(recording)?;
    let scripts: String = SCRIPTS.iter().map(|script| format!("<script>\n{script}</script>\n")).collect();
    Ok(format!(
        "{BEGIN}<html lang=\"en\" class=\"alone\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title}</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n<h1>{title}</h1>\n\
         <p>What warps and engines do when, on the emulator's simulated clock. It is no measurement of a GPU.</p>\n{note}\
         <div class=\"figure\" data-figure=\"timeline\" data-recording=\"trace\">The timeline needs JavaScript.</div>\n</main>\n\
         {scripts}<script>\nbookFigures.recorded(\"trace\", {data});\nbookFigures.begin();\n</script>\n</body>\n</html>\n"
    ))
}

/// Text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Asks the desktop to open a file.
fn open(path: &Path) -> Result<(), String> {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let started =
        Command::new(program).arg(path).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    started.map(drop).map_err(|error| {
        format!("cannot start {program}: {error}\n  try: Open {} in a browser yourself.", path.display())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    #[test]
    fn the_page_holds_the_data_and_asks_for_nothing() {
        let kernel = figures::kernels().expect("kernels").into_iter().find(|kernel| kernel.name == "step01");
        let recording = figures::record(&kernel.expect("step 1")).expect("it runs");
        let page = page(&recording).expect("a page");
        assert!(
            page.starts_with(BEGIN)
                && page.contains("bookFigures.recorded(\"trace\", {\"title\":\"step01 for 128x128x64 f16")
        );
        assert!(page.contains("tcgen05.alloc"), "no event");
        for remote in ["src=\"", "href=\"http", "@import", "url(", "fetch("] {
            assert!(!page.contains(remote), "the page asks for something: {remote}");
        }
        let scripts = page.matches("<script").count();
        assert_eq!((scripts, page.matches("</script>").count()), (SCRIPTS.len() + 1, SCRIPTS.len() + 1));
    }
}
