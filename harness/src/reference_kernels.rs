//! The reference kernels, which the part `fast` measures beside a student's.
//!
//! Where this program holds the solutions (feature `solutions`), they are built when they are asked for. In the student
//! edition there are none: kernels come from recipes, PTX text with its launch, written by `cargo workbook
//! student-edition` for exactly the problems that are judged. Either way they run beside the student's kernel; no time is
//! read from a table.

use crate::problem::Problem;
use crate::source::Built;
use crate::steps::Step;
use crate::steps::hopper::HOPPER;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The solution of a step, or the kernel for Hopper, if this program holds it.
#[cfg(feature = "solutions")]
pub fn solution(step: u8) -> Option<ptx::KernelFn> {
    if step == HOPPER {
        return Some(solutions::hopper::kernel);
    }
    solutions::ALL.iter().find(|(number, _)| *number == step).map(|(_, kernel)| *kernel)
}

/// The solution of a step: the student edition holds none.
#[cfg(not(feature = "solutions"))]
pub fn solution(_step: u8) -> Option<ptx::KernelFn> {
    None
}

/// The kernel for Hopper, if this program holds it.
pub fn hopper() -> Option<ptx::KernelFn> {
    solution(HOPPER)
}

/// The problems at which `fast` judges a step: there is a recipe for each, and for no other.
pub fn problems(step: &Step) -> &[Problem] {
    std::slice::from_ref(&step.timed)
}

/// The reference kernel of a step, for one of its [`problems`] and a device of `sms` streaming multiprocessors.
///
/// # Errors
/// Why there is none, in one sentence and a way out.
pub fn reference_kernel(step: &Step, problem: &Problem, sms: u32) -> Result<Built, String> {
    let known = problems(step);
    // The same in both editions, so that a problem without a recipe is noticed where the solutions are.
    if !known.contains(problem) {
        let known: Vec<String> = known.iter().map(ToString::to_string).collect();
        return Err(format!(
            "the reference kernel of step {} is not measured at {problem}, but at {}",
            step.number,
            known.join(", ")
        ));
    }
    #[cfg(feature = "solutions")]
    return reference_kernel_anywhere(step, problem, sms);
    #[cfg(not(feature = "solutions"))]
    find(&folder(), step.number, problem, sms)
}

/// The reference kernel of a step for any problem that it solves: a course may ask for times at another than the step's own.
///
/// # Errors
/// Why there is none, in one sentence. The student edition has none: it holds recipes for [`problems`] alone.
pub fn reference_kernel_anywhere(step: &Step, problem: &Problem, sms: u32) -> Result<Built, String> {
    use crate::source::{InProcess, KernelSource};
    let kernel =
        solution(step.number).ok_or_else(|| format!("there is no reference solution of step {} here", step.number))?;
    let built = InProcess(kernel).build(problem, sms);
    built.map_err(|failure| format!("the reference solution does not build: {failure}"))
}

/// Where the recipes lie: below the harness's own folder.
pub const FOLDER: &str = "harness/reference";

/// The folder of the recipes in the checkout that this program was built from.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("reference")
}

/// A kernel for one problem and one device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The problem.
    pub problem: Problem,
    /// Streaming multiprocessors of the device.
    pub sms: u32,
    /// The kernel, [`bare`].
    pub kernel: Built,
}

/// A kernel without what explains it: comments, lines of Rust, indentation. It runs as before.
pub fn bare(mut built: Built) -> Built {
    let mut text = String::with_capacity(built.ptx.len());
    for line in built.ptx.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let explains = [".file", ".loc"].iter().any(|directive| line.split_whitespace().next() == Some(directive));
        if !line.is_empty() && !explains {
            text.push_str(line);
            text.push('\n');
        }
    }
    built.ptx = text;
    built
}

/// The file with the recipes of a step, in the folder of the recipes.
pub(crate) fn file(folder: &Path, step: u8) -> PathBuf {
    folder.join(format!("step{step:02}.json.gz"))
}

/// Writes the recipes of a step to a folder that exists.
///
/// # Errors
/// When the file cannot be written.
pub fn write(folder: &Path, step: u8, recipes: &[Recipe]) -> Result<(), String> {
    write_packed(&file(folder, step), recipes)
}

/// Writes a value as packed JSON.
///
/// # Errors
/// When the file cannot be written.
pub fn write_packed(path: &Path, value: &(impl Serialize + ?Sized)) -> Result<(), String> {
    let failed = |error: &dyn std::fmt::Display| format!("cannot write {}: {error}", path.display());
    let text = serde_json::to_vec(value).map_err(|error| failed(&error))?;
    let mut packed = GzEncoder::new(Vec::new(), Compression::best());
    packed.write_all(&text).map_err(|error| failed(&error))?;
    let bytes = packed.finish().map_err(|error| failed(&error))?;
    fs::write(path, bytes).map_err(|error| failed(&error))
}

/// The largest text that a file of recipes is unpacked to.
const LARGEST: u64 = 64 << 20;

const WAY_OUT: &str = "try: Get the file back from the course's material.";

/// Reads what [`write_packed`] wrote.
///
/// # Errors
/// When the file is not there, or holds something else.
pub fn read_packed<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, String> {
    let packed = fs::read(path).map_err(|error| format!("cannot read {}: {error}\n{WAY_OUT}", path.display()))?;
    let broken = |error: &dyn std::fmt::Display| {
        format!("{} holds no reference kernels of this version: {error}\n{WAY_OUT}", path.display())
    };
    let mut text = String::new();
    GzDecoder::new(packed.as_slice()).take(LARGEST).read_to_string(&mut text).map_err(|error| broken(&error))?;
    serde_json::from_str(&text).map_err(|error| broken(&error))
}

/// The recipe of a step for a problem and a device.
///
/// # Errors
/// When there is none: the text names the file, what was found in it, and a way out.
pub fn find(folder: &Path, step: u8, problem: &Problem, sms: u32) -> Result<Built, String> {
    let path = file(folder, step);
    let missing = |error| {
        if path.exists() { error } else { format!("the reference kernel of step {step} is not there: {error}") }
    };
    let recipes: Vec<Recipe> = read_packed(&path).map_err(missing)?;
    let held = recipes.iter().map(|recipe| format!("{} on {} SMs", recipe.problem, recipe.sms));
    let held: Vec<String> = held.collect();
    let found = recipes.into_iter().find(|recipe| recipe.problem == *problem && recipe.sms == sms);
    found.map(|recipe| recipe.kernel).ok_or_else(|| {
        let file = path.display();
        format!("{file} holds no kernel for {problem} on {sms} SMs, but for {}", held.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Param;

    fn built(ptx: &str) -> Built {
        Built {
            name: "kernel".to_string(),
            ptx: ptx.to_string(),
            grid: [1; 3],
            cluster: [1; 3],
            block: [128, 1, 1],
            dynamic_shared: 16,
            params: vec![Param::Pointer(crate::source::Matrix::A)],
            regions: Vec::new(),
            todos: Vec::new(),
            leaks: Vec::new(),
        }
    }

    #[test]
    fn nothing_explains_a_bare_kernel() {
        let ptx = "// step01\n.version 8.6\n.file 1 \"solutions/src/step01.rs\"\n\n{\n    .reg .b32 %r<2>; // names\n\
                   \x20       .loc 1 2 3\n    mov.u32 %r1, 1;\n  $wait:\n}\n";
        assert_eq!(bare(built(ptx)).ptx, ".version 8.6\n{\n.reg .b32 %r<2>;\nmov.u32 %r1, 1;\n$wait:\n}\n");
    }

    #[test]
    fn recipes_are_found_as_they_were_written() {
        let folder = tempfile::tempdir().unwrap();
        let problem = Problem::f16(128, 128, 64);
        let recipe = Recipe { problem, sms: 148, kernel: built("ret;\n") };
        write(folder.path(), 3, std::slice::from_ref(&recipe)).unwrap();
        assert_eq!(find(folder.path(), 3, &problem, 148), Ok(recipe.kernel));
        let error = |step, problem, sms| {
            find(folder.path(), step, &problem, sms).unwrap_err().replace(&*folder.path().to_string_lossy(), "FOLDER")
        };
        let file = "FOLDER/step03.json.gz";
        let other = format!("{file} holds no kernel for 128x128x64 f16 on 4 SMs, but for 128x128x64 f16 on 148 SMs");
        assert_eq!(error(3, problem, 4), other);
        assert!(error(3, Problem::f16(8, 8, 8), 148).contains("no kernel for 8x8x8 f16 on 148 SMs"));
        let missing = error(4, problem, 148);
        assert!(missing.contains("cannot read FOLDER/step04.json.gz") && missing.contains("try: "), "{missing}");
        fs::write(folder.path().join("step03.json.gz"), "no gzip").unwrap();
        let broken = error(3, problem, 148);
        assert!(broken.starts_with(&format!("{file} holds no reference kernels of this version: ")), "{broken}");
    }
}
