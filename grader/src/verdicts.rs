//! Verdicts on kernels that a batch has judged already: of a class, many hand in the same file, above all those that were never touched.
//!
//! **Does:** keep a verdict under the hash of all that decides on it: the kernel's text, its step, seed and options of the judge, what of the
//! rubric the judge is asked for, the grader and its tools, what the sandbox enforces. **Never does:** hold anything of a student: names of
//! files, points and lateness are not in it. The grader alone writes here, after the hand-in has ended, and a hand-in sees no such folder; where
//! it is not locked in (`--trust`), or runs on a GPU, nothing is kept and nothing is found.
//!
//! A kernel is known by its text, which says all without a compiler; and one that passes also by what is built of it (see
//! [`Ahead`](crate::ahead::Ahead)).
//!
//! What could come out otherwise the next time is not kept: that there is no kernel (a compiler may run out of time or memory, because of what
//! runs beside it), and that something could not be checked.

use crate::json::Sandbox;
use crate::versions::Versions;
use harness::workbook::pack::sha256;
use harness::workbook::whole::write_whole;
use harness::{Device, JudgeOptions, MilestoneState, Outcome, Verdict};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};

/// The version of [`Entry`].
const SCHEMA: u32 = 3;

/// A folder of verdicts, for one grader with its tools.
#[derive(Clone, Debug)]
pub struct Verdicts {
    folder: PathBuf,
    sandbox: Sandbox,
    /// What judges.
    pub tools: Versions,
}

/// All that decides on a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Key {
    step: u8,
    kernel: Same,
    input_seed: u64,
    /// The schedules.
    seeds: u32,
    seed: Option<u64>,
    sms: u32,
    full: bool,
    sizes: String,
    timed: String,
    /// In bits: the same number, not one that prints alike.
    fast: u64,
    tools: Vec<(String, Option<String>)>,
    sandbox: Sandbox,
}

/// In what two kernels of a step are the same, so that they get the same verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Same {
    /// SHA-256 of their text.
    Text(String),
    /// A hash of what is built of them. Only a verdict without a word on them is the same then: their lines may be others.
    Built(String),
}

impl Same {
    /// By its text.
    pub fn text(text: &str) -> Same {
        Same::Text(sha256(text.as_bytes()))
    }

    /// Whether a verdict is that of all that are the same in this.
    fn shares(&self, verdict: &Verdict) -> bool {
        match self {
            Same::Text(_) => true,
            Same::Built(_) => {
                verdict.passed() && verdict.milestones.iter().all(|one| one.state == MilestoneState::Done)
            }
        }
    }
}

/// A file of the folder.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    schema: u32,
    key: Key,
    verdict: Verdict,
}

impl Verdicts {
    /// The verdicts in a folder; `None` where none may be kept. `tools` says what judges: where one of these is unknown, none may.
    pub fn of(
        folder: &Path,
        sandbox: &Sandbox,
        options: &JudgeOptions,
        tools: impl FnOnce() -> Versions,
    ) -> Option<Verdicts> {
        let keeps = matches!(sandbox, Sandbox::Enforced(_)) && matches!(options.device, Device::Emulator);
        let tools = keeps.then(tools).filter(|tools| tools.unknowns().is_empty())?;
        Some(Verdicts { folder: folder.to_path_buf(), sandbox: sandbox.clone(), tools })
    }

    /// The verdict on a kernel, if an equal one was judged. A file that is damaged, or of another kernel, is none.
    pub fn find(&self, step: u8, kernel: &Same, options: &JudgeOptions) -> Option<Verdict> {
        let key = self.key(step, kernel, options)?;
        let entry: Entry = serde_json::from_slice(&fs::read(self.path(&key)?).ok()?).ok()?;
        (entry.schema == SCHEMA && entry.key == key && entry.verdict.step == step).then_some(entry.verdict)
    }

    /// Keeps a verdict, if it is one that comes out the same each time.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn keep(&self, kernel: &Same, options: &JudgeOptions, verdict: &Verdict) -> Result<(), String> {
        let unchecked = verdict.parts.iter().any(|(_, outcome)| matches!(outcome, Outcome::NotChecked { .. }));
        let keeps = verdict.build_failure.is_none() && !unchecked && kernel.shares(verdict);
        let Some(key) = self.key(verdict.step, kernel, options).filter(|_| keeps) else {
            return Ok(());
        };
        let Some(path) = self.path(&key) else { return Ok(()) };
        let entry = Entry { schema: SCHEMA, key, verdict: verdict.clone() };
        let text = serde_json::to_vec(&entry).map_err(|error| format!("cannot write JSON: {error}"))?;
        write_whole(&path, &text).map_err(|error| format!("cannot write {}: {error}", path.display()))
    }

    fn key(&self, step: u8, kernel: &Same, options: &JudgeOptions) -> Option<Key> {
        // Each by its name: whoever adds an option decides here whether a verdict depends on it.
        let JudgeOptions {
            device: _,
            seeds,
            seed,
            input_seed,
            sms,
            threads: _,
            full,
            sources: _,
            demands,
            progress: _,
        } = options;
        let step = harness::step(step)?;
        let tools = self.tools.deciding();
        Some(Key {
            step: step.number,
            kernel: kernel.clone(),
            input_seed: *input_seed,
            seeds: *seeds,
            seed: *seed,
            sms: *sms,
            full: *full,
            sizes: format!("{:?}", demands.sizes(step)),
            timed: format!("{:?}", demands.timed(step)),
            fast: demands.fast(step).to_bits(),
            tools: tools.map(|one| (one.name.to_string(), one.version.map(str::to_string))).to_vec(),
            sandbox: self.sandbox.clone(),
        })
    }

    fn path(&self, key: &Key) -> Option<PathBuf> {
        let text = serde_json::to_vec(key).ok()?;
        Some(self.folder.join(format!("{}.json", sha256(&text))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::versions::tests::known as tools;
    use harness::{Cause, Part, Unbuilt};
    use serde_json::json;

    fn sandbox(landlock: &str) -> Sandbox {
        serde_json::from_value(json!({ "landlock": landlock })).unwrap()
    }

    /// A verdict whose parts are all passed, but for one.
    fn verdict(outcome: Outcome) -> Verdict {
        let passed = || Outcome::Passed { detail: "all of it".to_string() };
        let mut parts = Part::ALL.map(|part| (part, passed()));
        parts[3].1 = outcome;
        Verdict {
            step: 1,
            title: "one tile".to_string(),
            device: "emulator".to_string(),
            parts,
            milestones: Vec::new(),
            build_failure: None,
            ending: None,
            here: None,
            points: 5.0,
            max_points: 5,
            seconds: 1.0,
        }
    }

    #[test]
    fn a_verdict_is_found_for_the_same_and_for_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let options = JudgeOptions::default();
        let of = |sandbox: &Sandbox, tools: Versions| Verdicts::of(folder.path(), sandbox, &options, || tools).unwrap();
        let full = sandbox("full");
        let known = of(&full, tools());
        let failed = Outcome::failed("too much", "shared memory".to_string());
        known.keep(&Same::text("a"), &options, &verdict(failed.clone())).unwrap();
        let found =
            |known: &Verdicts, text: &str, options: &JudgeOptions| known.find(1, &Same::text(text), options).is_some();
        assert_eq!(known.find(1, &Same::text("a"), &options).unwrap().part(Part::Resources), &failed);
        assert!(!found(&known, "b", &options) && known.find(2, &Same::text("a"), &options).is_none());
        let Same::Text(hash) = Same::text("a") else { unreachable!("it is one") };
        assert!(known.find(1, &Same::Built(hash), &options).is_none(), "it is of a text");
        let mut demands = options.demands.clone();
        demands.fast.insert(1, 1.1);
        let mut timed = options.demands.clone();
        timed.timed.insert(1, harness::step(2).unwrap().timed);
        let mut sizes = options.demands.clone();
        sizes.sizes.insert(1, Vec::new());
        let with = |change: fn(&mut JudgeOptions)| {
            let mut changed = options.clone();
            change(&mut changed);
            changed
        };
        let changed = [
            with(|options| options.input_seed = 1),
            with(|options| options.seeds = 9),
            with(|options| options.seed = Some(1)),
            with(|options| options.sms = 147),
            with(|options| options.full = true),
            JudgeOptions { demands, ..options.clone() },
            JudgeOptions { demands: timed, ..options.clone() },
            JudgeOptions { demands: sizes, ..options.clone() },
        ];
        for (index, changed) in changed.iter().enumerate() {
            assert!(!found(&known, "a", changed), "option {index}");
        }
        // What a rubric says of another step is nothing to this one.
        let mut elsewhere = options.demands.clone();
        elsewhere.fast.insert(2, 1.1);
        assert!(found(&known, "a", &JudgeOptions { demands: elsewhere, ..options.clone() }));
        let others = [
            Versions { grader: "h".to_string(), ..tools() },
            Versions { sources: Some("t".to_string()), ..tools() },
            Versions { rustc: Some("q".to_string()), ..tools() },
            Versions { ptxas: Some("p".to_string()), ..tools() },
        ];
        for other in others {
            assert!(!found(&of(&full, other.clone()), "a", &options), "{other:?}");
        }
        let unknown = Versions { rustc: Some("unknown: it does not start".to_string()), ..tools() };
        assert!(Verdicts::of(folder.path(), &full, &options, || unknown).is_none(), "it may be another");
        assert!(!found(&of(&sandbox("none"), tools()), "a", &options));
        let trusted = Sandbox::of(&crate::sandbox::Cage::Open).unwrap();
        assert!(Verdicts::of(folder.path(), &trusted, &options, tools).is_none(), "it could write here");
    }

    #[test]
    fn what_may_come_out_otherwise_is_not_kept() {
        let folder = tempfile::tempdir().unwrap();
        let options = JudgeOptions::default();
        let known = Verdicts::of(folder.path(), &sandbox("full"), &options, tools).unwrap();
        let passed = verdict(Outcome::Passed { detail: String::new() });
        let late = Verdict {
            build_failure: Some(Unbuilt::new(Cause::NoAnswer, "compiling it took longer than 120 s")),
            ..passed.clone()
        };
        let unchecked = verdict(Outcome::NotChecked { reason: "ptxas took longer than 60 s".to_string(), late: true });
        for verdict in [late, unchecked] {
            known.keep(&Same::text("a"), &options, &verdict).unwrap();
            assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{verdict:?}");
        }
        known.keep(&Same::text("a"), &options, &passed).unwrap();
        let file = fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
        assert!(known.find(1, &Same::text("a"), &options).is_some());
        // A verdict of another kernel under this name, and half of one.
        known.keep(&Same::text("b"), &options, &passed).unwrap();
        let other = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).find(|path| *path != file);
        fs::copy(other.unwrap(), &file).unwrap();
        assert!(known.find(1, &Same::text("a"), &options).is_none(), "it is b's");
        fs::write(&file, &fs::read(&file).unwrap()[..40]).unwrap();
        assert!(known.find(1, &Same::text("a"), &options).is_none(), "it is cut off");
    }
    #[test]
    fn of_what_is_built_alike_only_a_verdict_without_a_word_on_it_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let options = JudgeOptions::default();
        let known = Verdicts::of(folder.path(), &sandbox("full"), &options, tools).unwrap();
        let built = Same::Built("0123".to_string());
        let passed = verdict(Outcome::Passed { detail: String::new() });
        let milestone = |state| harness::MilestoneResult { id: "1.1".to_string(), title: String::new(), state };
        let failed = verdict(Outcome::failed("at kernel.rs:61", String::new()));
        let flagged = MilestoneState::Flagged { part: Part::RaceFree };
        let flagged = Verdict { milestones: vec![milestone(flagged)], ..passed.clone() };
        for verdict in [failed, flagged] {
            known.keep(&built, &options, &verdict).unwrap();
            assert!(known.find(1, &built, &options).is_none(), "{verdict:?}");
        }
        let done = Verdict { milestones: vec![milestone(MilestoneState::Done)], ..passed };
        known.keep(&built, &options, &done).unwrap();
        assert_eq!(known.find(1, &built, &options).unwrap().milestones, done.milestones);
    }
}
