//! What hand-ins are made from: the checkout's solutions, with some TODOs open, with a mistake, under other names; and attacks.

use crate::random::Random;
use harness::skeleton;
use harness::steps::hopper::HOPPER;
use harness::workbook::tokens::{Kind, tokens};
use harness::workbook::{Workspace, name};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Steps of the workbook.
pub(crate) const STEPS: u8 = 10;

/// A kernel that is more than a solution.
pub(crate) struct Kernel {
    pub(crate) name: String,
    pub(crate) step: u8,
    pub(crate) text: String,
}

/// All that there is.
pub(crate) struct Sources {
    solutions: Vec<String>,
    skeletons: Vec<String>,
    pub(crate) mistakes: Vec<Kernel>,
    pub(crate) attacks: Vec<Kernel>,
}

impl Sources {
    /// Reads a checkout.
    pub(crate) fn read(root: &Path) -> Result<Sources, String> {
        let (mut solutions, mut skeletons) = (Vec::new(), Vec::new());
        for step in 1..=STEPS {
            let file = Workspace::solution(step);
            let text = read(&root.join(&file))?;
            let skeleton = skeleton::generate(step, &file, &text);
            skeletons.push(skeleton.map_err(|errors| format!("{file}: {}", errors[0]))?);
            solutions.push(text);
        }
        let mut sources = Sources { solutions, skeletons, mistakes: Vec::new(), attacks: Vec::new() };
        // Those of the kernel for Hopper are of no step: nobody hands them in.
        let of_steps = |file: &PathBuf| !stem(file).starts_with(&format!("{HOPPER:02}-"));
        for file in files(&root.join("solutions/mistakes/diffs"))?.iter().filter(|file| of_steps(file)) {
            let mistake = sources.mistake(file)?;
            sources.mistakes.push(mistake);
        }
        for file in files(&root.join("grader/attacks"))? {
            let attack = sources.attack(&file)?;
            sources.attacks.push(attack);
        }
        Ok(sources)
    }

    pub(crate) fn solution(&self, step: u8) -> &str {
        &self.solutions[usize::from(step) - 1]
    }

    /// The code of each TODO of a step.
    fn regions(&self, step: u8) -> Vec<&str> {
        let mut rest = self.solution(step);
        let mut regions = Vec::new();
        while let Some((_, after)) = rest.split_once(&format!("// ANCHOR: todo_{step}_{}\n", regions.len() + 1)) {
            let (code, after) = after.split_once("// ANCHOR_END").unwrap_or((after, ""));
            regions.push(code.trim_end());
            rest = after;
        }
        regions
    }

    /// How many TODOs a step has.
    pub(crate) fn todos(&self, step: u8) -> usize {
        self.regions(step).len()
    }

    /// The skeleton with the first TODOs filled.
    pub(crate) fn begun(&self, step: u8, filled: usize) -> String {
        let regions = self.regions(step);
        let mut text = String::new();
        for line in self.skeletons[usize::from(step) - 1].lines() {
            let mut filled = (1..).zip(&regions[..filled]);
            let region = filled.find(|(number, _)| line.trim().ends_with(&format!(".todo(\"{step}.{number}\");")));
            text += region.map_or(line, |(_, code)| code);
            text.push('\n');
        }
        text
    }

    /// A solution in which some variables have other names. What is named both so and as a field or method keeps its name.
    pub(crate) fn renamed(&self, text: &str, random: &mut Random) -> String {
        let tokens = tokens(text);
        let is = |index: usize, sign: &str| tokens.get(index).is_some_and(|token| token.is(sign));
        let word = |index: usize| tokens.get(index).filter(|token| token.kind == Kind::Word).map(|token| token.text);
        let bound: BTreeSet<&str> = (0..tokens.len())
            .filter(|index| is(*index, "let") && is(*index + 2, "="))
            .filter_map(|index| word(index + 1))
            .collect();
        // `.name`, `name:`, `name(`, `name!`: not the variable, or not only.
        let elsewhere = |index: usize| {
            (index > 0 && is(index - 1, ".") && !(index > 1 && is(index - 2, ".")))
                || [":", "(", "!"].iter().any(|sign| is(index + 1, sign))
        };
        let also: BTreeSet<&str> = (0..tokens.len()).filter(|index| elsewhere(*index)).filter_map(word).collect();
        let end = ["_of_mine", "_here", "2", "_x", "_now"][random.below(5)];
        let chosen: BTreeSet<&str> = bound.difference(&also).copied().filter(|_| random.below(3) > 0).collect();
        let (mut renamed, mut at) = (String::new(), 0);
        for token in tokens.iter().filter(|token| token.kind == Kind::Word && chosen.contains(token.text)) {
            let after = token.at + token.text.len();
            renamed += &text[at..after];
            renamed += end;
            at = after;
        }
        renamed + &text[at..]
    }

    fn mistake(&self, file: &Path) -> Result<Kernel, String> {
        let (name, text) = (stem(file), read(file)?);
        let failed = |what: String| format!("{}: {what}", file.display());
        let step = name.get(..2).and_then(|digits| digits.parse().ok()).filter(|step| (1..=STEPS).contains(step));
        let step = step.ok_or_else(|| failed("its name does not begin with a step".to_string()))?;
        let (_, diff) = text.split_once("\n\n").ok_or_else(|| failed("no empty line ends its header".to_string()))?;
        let patch = diffy::Patch::from_str(diff).map_err(|error| failed(error.to_string()))?;
        let text = diffy::apply(self.solution(step), &patch).map_err(|error| failed(error.to_string()))?;
        Ok(Kernel { name, step, text })
    }

    /// As `grader/tests/attacks.rs` reads it.
    fn attack(&self, file: &Path) -> Result<Kernel, String> {
        let text = read(file)?;
        let header: Vec<&str> = text.lines().map_while(|line| line.strip_prefix("// ")).collect();
        let value = |key: &str| header.iter().find_map(|line| line.strip_prefix(key));
        let step = value("step: ").map_or(Ok(1), str::parse).map_err(|error| format!("{}: {error}", file.display()))?;
        let base = (1..=STEPS).find(|step| value("base: ") == Some(&name(*step)));
        let mut changed = base.map_or(text.clone(), |base| self.solution(base).to_string());
        for (old, new) in
            header.iter().filter_map(|line| line.strip_prefix("replace: ")).filter_map(|line| line.split_once(" => "))
        {
            changed = changed.replace(old, new);
        }
        Ok(Kernel { name: stem(file), step, text: changed })
    }
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

/// The files of a folder, by name.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    Ok(files)
}
