//! `cargo workbook bundle`, and what a bundle does where it is started.

use super::bench::{Options, card, timed};
use super::kernel::{Kernel, are_known, list, sms_for};
use super::workspace::Workspace;
use super::{Patience, print};
use crate::bench::{self, Machine};
use crate::bundle::{self, Carried, Contents};
use crate::problem::Problem;
use crate::source::Built;
use clap::Parser;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

/// Writes a bundle of these kernels: `1,3,5`, `hopper`.
pub fn write(
    workspace: &Workspace,
    kernels: &[String],
    solution: bool,
    out: &Path,
    edges: &[u32],
    sms: Option<u32>,
) -> Result<String, String> {
    may_be_written(out)?;
    are_known(workspace, kernels)?;
    let mut carried = Vec::new();
    for kernel in kernels {
        let found = Kernel::named(workspace, kernel, solution)?;
        // It is typed, and part of a file's name.
        let name = found.name.replace(", the ", "-");
        // `7,step07`: once.
        if carried.iter().any(|before: &Carried| before.name == name) {
            continue;
        }
        let sms = sms.unwrap_or_else(|| sms_for(kernel));
        // What bites, and sizes that are timed.
        let checked: Vec<Problem> = match found.step {
            Some(step) => step.cases.iter().filter(|case| case.sms.is_none()).map(|case| case.problem).collect(),
            None => vec![Problem::f16(520, 264, 200)],
        };
        let _patience = Patience::new(format!("building {name} …"));
        let all = |problems: Vec<Problem>| -> Result<Vec<(Problem, Built)>, String> {
            problems.into_iter().map(|problem| Ok((problem, found.build(&problem, sms)?))).collect()
        };
        carried.push(Carried { sms, timed: all(found.carried(edges))?, checked: all(checked)?, name });
    }
    let program = program(workspace)?;
    let version = env!("CARGO_PKG_VERSION").to_string();
    bundle::write(&program, &Contents { version, kernels: carried }, out)?;
    let mib = std::fs::metadata(out).map_or(0.0, |about| about.len() as f64 / f64::from(1 << 20));
    let file = out.display();
    Ok(format!(
        "{file}: {} in {mib:.1} MiB\n  try: Copy it to a Linux machine with a GPU (scp {file} gpu:), and start it there: ./{}\n",
        kernels.join(", "),
        out.file_name().unwrap_or_default().to_string_lossy()
    ))
}

/// A bundle takes the place of a bundle, and of no other file.
fn may_be_written(out: &Path) -> Result<(), String> {
    let file = out.display();
    if out.is_dir() {
        return Err(format!("{file} is a folder\n  try: Name a file: -o {}", out.join("bundle").display()));
    }
    let folder = out.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        return Err(format!("there is no folder {}\n  try: Make it first, or name another file.", folder.display()));
    }
    // A damaged one may go.
    if out.exists() && matches!(bundle::read(out), Ok(None)) {
        return Err(format!("{file} is there, and is no bundle\n  try: Name another file: -o FILE."));
    }
    Ok(())
}

/// This program, optimised: D is checked on the CPU there.
fn program(workspace: &Workspace) -> Result<PathBuf, String> {
    let _patience =
        Patience::new("building the program that the bundle is, optimised; the first time that takes minutes …");
    let output = Command::new(super::cargo::cargo())
        .args(["build", "--release", "--quiet", "-p", "harness", "--bin", "workbook", "--message-format=json"])
        .current_dir(&workspace.root)
        .output()
        .map_err(|error| format!("cannot start cargo: {error}\n  try: Install Rust from https://rustup.rs."))?;
    let messages = String::from_utf8_lossy(&output.stdout);
    let executable =
        messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok()).find_map(|message| {
            let is_ours = message["target"]["name"] == "workbook";
            message["executable"].as_str().filter(|_| is_ours).map(PathBuf::from)
        });
    executable.ok_or_else(|| {
        let said = String::from_utf8_lossy(&output.stderr);
        format!("cargo gave no program ({}); it said:\n{}", output.status, said.trim_end())
    })
}

/// Kernels of a workbook, to be checked and timed on this machine's GPU.
///
/// Of several kernels, each has files of its own: `--json out.json` writes out.step07.json and out.step08.json.
#[derive(Debug, Parser)]
#[command(name = "bundle", mut_arg("samples", |samples| samples.hide(true)))]
struct Bundle {
    /// These kernels only: step03, hopper
    kernels: Vec<String>,
    /// Check the results, and take no times
    #[arg(long)]
    check_only: bool,
    #[command(flatten)]
    options: Options,
}

/// What a bundle does: every kernel checked at all its sizes, then timed.
pub fn start(contents: Contents) -> Result<ExitCode, String> {
    let asked = Bundle::parse();
    let chosen = chosen(&contents, &asked)?;
    let Bundle { check_only, options, .. } = asked;
    let several = chosen.len() > 1;
    let mut status = ExitCode::SUCCESS;
    for kernel in chosen {
        let missing = options.missing(kernel.timed.iter().map(|(problem, _)| problem));
        if !missing.is_empty() {
            print(&format!("note: {} has no size {} here\n", kernel.name, list(missing)));
        }
        let builds: Vec<(Problem, Built)> =
            kernel.timed.iter().filter(|(problem, _)| options.asks_for(problem)).cloned().collect();
        let Some((_, first)) = builds.first() else { continue };
        let card = card(&first.ptx, "")?;
        if card.about().sms != kernel.sms {
            let (there, here) = (kernel.sms, card.about().sms);
            print(&format!(
                "note: {} was built for {there} SMs, and this GPU has {here}: give `--sms {here}` to `cargo workbook bundle`\n",
                kernel.name
            ));
        }
        for (problem, built) in kernel.checked.iter().chain(&builds) {
            let against = bench::checked(&card, built, *problem)?;
            print(&format!("{} at {problem}: right ({against})\n", kernel.name));
        }
        if !check_only {
            let options = if several { options.of(&kernel.name) } else { options.clone() };
            let benchmark = bench::begin(&kernel.name, Machine::of(&card));
            if timed(&card, benchmark, builds.into_iter().map(Ok), &options, bench::times)? != ExitCode::SUCCESS {
                status = ExitCode::FAILURE;
            }
        }
    }
    Ok(status)
}

/// The kernels that are asked for. What a bundle cannot do is refused before anything runs.
fn chosen<'a>(contents: &'a Contents, asked: &Bundle) -> Result<Vec<&'a Carried>, String> {
    let Bundle { kernels: wanted, check_only, options } = asked;
    let names: Vec<&str> = contents.kernels.iter().map(|kernel| kernel.name.as_str()).collect();
    if let Some(missing) = wanted.iter().find(|name| !names.contains(&name.as_str())) {
        return Err(format!("this bundle has no `{missing}`\n  try: Name one of {}.", names.join(", ")));
    }
    if let Some(path) = &options.samples {
        return Err(format!(
            "a bundle takes new times and shows no old ones: `--samples {0}`\n  try: In the checkout, \
             cargo workbook bench KERNEL --samples {0}.",
            path.display()
        ));
    }
    if let Some((option, _)) = options.of_times().iter().find(|(_, given)| *check_only && *given) {
        return Err(format!(
            "`--check-only` takes no times, and `{option}` is about times\n  try: Leave one of them out."
        ));
    }
    let chosen: Vec<&Carried> =
        contents.kernels.iter().filter(|kernel| wanted.is_empty() || wanted.contains(&kernel.name)).collect();
    let sizes = chosen.iter().flat_map(|kernel| kernel.timed.iter().map(|(problem, _)| problem));
    let missing = options.missing(sizes.clone());
    if !missing.is_empty() {
        let there: BTreeSet<u32> = sizes.map(|problem| problem.m).collect();
        return Err(format!(
            "no kernel here has the size {}\n  try: Give `--sizes` some of {}, or `cargo workbook bundle` others.",
            list(missing),
            list(there)
        ));
    }
    Ok(chosen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn carried(name: &str, edges: &[u32]) -> Carried {
        let timed = edges.iter().map(|&n| (Problem::f16(n, n, n), Built::default())).collect();
        Carried { name: name.into(), sms: 132, timed, checked: Vec::new() }
    }

    /// What a bundle is asked for and cannot do is refused, with a way out.
    #[test]
    fn a_bundle_refuses_what_it_does_not_honour() {
        let kernels = vec![carried("step01", &[1024]), carried("step07", &[1024, 4096])];
        let contents = Contents { version: "1".into(), kernels };
        let asked = |line: &str| {
            let bundle = Bundle::try_parse_from(line.split(' ')).expect(line);
            chosen(&contents, &bundle).map(|chosen| list(chosen.iter().map(|kernel| &kernel.name)))
        };
        assert_eq!(asked("bundle --sizes 4096 --json out.json").as_deref(), Ok("step01, step07"));
        assert_eq!(asked("bundle step07 --check-only --sizes 1024").as_deref(), Ok("step07"));
        let refused: String = [
            "bundle step02",
            "bundle --samples out.json",
            "bundle --check-only --json out.json",
            "bundle --sizes 1024,3000",
            "bundle step01 --sizes 4096",
        ]
        .iter()
        .map(|line| asked(line).expect_err(line) + "\n")
        .collect();
        expect![[r#"
            this bundle has no `step02`
              try: Name one of step01, step07.
            a bundle takes new times and shows no old ones: `--samples out.json`
              try: In the checkout, cargo workbook bench KERNEL --samples out.json.
            `--check-only` takes no times, and `--json` is about times
              try: Leave one of them out.
            no kernel here has the size 3000
              try: Give `--sizes` some of 1024, 4096, or `cargo workbook bundle` others.
            no kernel here has the size 4096
              try: Give `--sizes` some of 1024, or `cargo workbook bundle` others.
        "#]]
        .assert_eq(&refused);
    }

    #[test]
    fn each_of_several_kernels_has_its_files() {
        let bundle = Bundle::try_parse_from(["bundle", "--json", "a/out.json", "--svg", "out"]).expect("options");
        let options = bundle.options.of("step07");
        assert_eq!(options.json.as_deref(), Some(Path::new("a/out.step07.json")));
        assert_eq!(options.svg.as_deref(), Some(Path::new("out.step07")));
    }
}
