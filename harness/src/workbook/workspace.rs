//! Where things lie in a checkout, and what a step may be called.

use super::carry::relation::{self, Relation};
use crate::skeleton;
use crate::steps::hopper::HOPPER;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// A checkout of the workbook.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Workspace {
    /// Its top folder.
    pub root: PathBuf,
}

impl Workspace {
    /// The checkout that a folder is in.
    ///
    /// # Errors
    /// When neither it nor a folder above it is one.
    pub fn find(from: &Path) -> Result<Workspace, String> {
        let is_root = |folder: &&Path| {
            folder.join("steps").is_dir()
                && fs::read_to_string(folder.join("Cargo.toml")).is_ok_and(|text| text.contains("[workspace]"))
        };
        match from.ancestors().find(is_root) {
            Some(root) => Ok(Workspace { root: root.to_path_buf() }),
            None => Err(format!(
                "{} is not in a checkout of the workbook: neither it nor a folder above it holds `steps/` and a \
                 `Cargo.toml` with [workspace]\n  try: Change into your clone, and give the command again.",
                from.display()
            )),
        }
    }

    /// Numbers of the steps that have a folder, in order.
    pub fn steps(&self) -> Vec<u8> {
        let Ok(entries) = fs::read_dir(self.root.join("steps")) else { return Vec::new() };
        let mut steps: Vec<u8> = entries
            .flatten()
            .filter(|entry| entry.path().join("Cargo.toml").is_file())
            .filter_map(|entry| number(entry.file_name().to_str()?.strip_prefix("step")?))
            .collect();
        steps.sort_unstable();
        steps
    }

    /// Numbers of the steps that have a solution, in order.
    pub fn solved(&self) -> Vec<u8> {
        let Ok(entries) = fs::read_dir(self.root.join("solutions/src")) else { return Vec::new() };
        let mut steps: Vec<u8> = entries
            .flatten()
            .filter_map(|entry| number(entry.file_name().to_str()?.strip_prefix("step")?.strip_suffix(".rs")?))
            .collect();
        steps.sort_unstable();
        steps
    }

    /// The step that a user means by `step01`, `01` or `1`.
    ///
    /// # Errors
    /// When there is none of this name: the text lists those that exist.
    pub fn named(&self, text: &str) -> Result<u8, String> {
        let steps = self.steps();
        let wanted = number(text.strip_prefix("step").unwrap_or(text));
        wanted.filter(|step| steps.contains(step)).ok_or_else(|| {
            let names: Vec<String> = steps.iter().map(|step| name(*step)).collect();
            let list = if names.is_empty() { "none".to_string() } else { names.join(", ") };
            format!("there is no step `{text}`\n  try: Name one of the steps here: {list} (`1` and `01` also mean `step01`).")
        })
    }

    /// The student's file, from the top folder.
    pub fn kernel(step: u8) -> String {
        format!("steps/{0}/src/kernel.rs", name(step))
    }

    /// The solution, from the top folder.
    pub fn solution(step: u8) -> String {
        format!("solutions/src/{}.rs", name(step))
    }

    /// The untouched file of a step in a checkout without solutions, from the top folder.
    pub fn untouched(step: u8) -> String {
        format!("harness/untouched/{}.rs", name(step))
    }

    /// The untouched file of a step: made from its solution, or as the student edition holds it.
    ///
    /// # Errors
    /// When there is neither, or the solution's regions are not well formed.
    pub fn skeleton(&self, step: u8) -> Result<String, String> {
        let (file, untouched) = (Workspace::solution(step), Workspace::untouched(step));
        let text = match fs::read_to_string(self.root.join(&file)) {
            Ok(text) => text,
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(format!("cannot read {file}: {error}")),
            Err(_) => {
                return fs::read_to_string(self.root.join(&untouched)).map_err(|error| {
                    format!(
                        "there is no untouched file of {}: no {file} to make it from, and {untouched} cannot be read: \
                         {error}\n  try: Get the file back from git, or from the course's material.",
                        name(step)
                    )
                });
            }
        };
        skeleton::generate(step, &file, &text).map_err(|errors| {
            let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
            lines.join("\n")
        })
    }

    /// The table of what `carry` can carry.
    ///
    /// # Errors
    /// When it cannot be read.
    pub(crate) fn relations(&self) -> Result<Vec<Relation>, String> {
        let text = fs::read_to_string(self.root.join(relation::TABLE)).map_err(|error| {
            format!(
                "cannot read {}: {error}\n  try: Get the file back from git, or from the course's material; where the \
                 solutions are, `cargo workbook skeletons` writes it.",
                relation::TABLE
            )
        })?;
        relation::parse(&text)
    }
}

/// `step01`; `hopper` for the kernel beside the ladder.
pub fn name(step: u8) -> String {
    if step == HOPPER { "hopper".to_string() } else { format!("step{step:02}") }
}

/// A step's number as written in names: one or two digits, not zero.
pub fn number(digits: &str) -> Option<u8> {
    let plain = (1..=2).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|step| plain && *step > 0)
}
