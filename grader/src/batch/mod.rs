//! Grades a folder of hand-ins, each in a process of its own, and can be killed at any moment.
//!
//! **Does:** copy each hand-in to where it is kept ([`hand_ins`]), have this program grade the copy ([`child`]), store what came of
//! it ([`store`]), and write tables and pages of all ([`summary`]). **Never does:** judge anything itself, or follow a path that a hand-in
//! names. A result is there whole or not at all, and is known by what it is a result of ([`store::Identity`]): what is there is kept,
//! what is not is graded.

mod again;
pub mod child;
pub mod hand_ins;
mod odd;
pub mod options;
mod progress;
pub mod regrade;
pub mod seed;
pub mod slurm;
pub mod store;
pub mod summary;
pub mod work;

use crate::handin::KINDS;
use crate::rubric::{Moment, Rubric};
use crate::sandbox::{self, hidden};
use crate::toolchain::Toolchain;
use crate::versions::{Versions, file_hash};
use hand_ins::HandIn;
use progress::Progress;
use slurm::Slurm;
use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;
use store::{Asked, Identity, Outcome, Store};
use work::{Common, Work};

/// What a batch is asked for.
#[derive(Clone, Debug)]
pub struct Batch {
    /// Where hand-ins run, in words; `None`: not here.
    pub cage: Option<String>,
    /// The folder with the hand-ins.
    pub hand_ins: PathBuf,
    /// Where grades go.
    pub out: PathBuf,
    /// So many at a time.
    pub jobs: NonZeroUsize,
    /// The longest that one may take.
    pub limit: Duration,
    /// The program that grades one; `None`: this one.
    pub grader: Option<PathBuf>,
    /// What gives points.
    pub rubric: Rubric,
    /// The seed of the inputs; `None`: one that is drawn for this folder of grades.
    pub seed: Option<u64>,
    /// A random seed that is secret until grades are out.
    pub seed_commit: bool,
    /// What is asked of each hand-in.
    pub asked: Asked,
    /// When hand-ins came, by their names; `None`: nothing was given that says so.
    pub handed_in: Option<BTreeMap<String, Moment>>,
    /// Grade again what could not be graded.
    pub retry: bool,
    /// Replace grades that were asked for otherwise: by another rubric, another seed, other steps.
    pub replace: bool,
    /// What grades.
    pub versions: Versions,
    /// The checkout.
    pub root: PathBuf,
    /// On the nodes of a cluster; `None`: here.
    pub slurm: Option<Slurm>,
}

/// What a batch did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Hand-ins that were graded now.
    pub graded: usize,
    /// Grades that were there.
    pub kept: usize,
    /// Hand-ins that could not be graded, now or before.
    pub not_graded: usize,
    /// Parts that could not be checked, and gave no points: a sentence on each.
    pub unchecked: Vec<String>,
}

impl Done {
    /// Counts a hand-in, once: whether its result was there, and whether it has a grade.
    fn add(&mut self, kept: bool, graded: bool) {
        let count = match (graded, kept) {
            (true, true) => &mut self.kept,
            (true, false) => &mut self.graded,
            (false, _) => &mut self.not_graded,
        };
        *count += 1;
    }
}

impl Batch {
    /// Grades what is not graded yet. `say` takes what a person is to read at once.
    ///
    /// # Errors
    /// When the batch cannot go on: folders that cannot be read or written, or that another batch writes to.
    pub fn run(&self, say: impl Fn(&str)) -> Result<Done, String> {
        // Before anything is written: what is wrong with what was asked leaves nothing behind.
        let (hand_ins, ignored) = hand_ins::list(&self.hand_ins, Some(&self.out))?;
        options::allowed(&self.asked.options, self.grader.is_some())?;
        if !self.asked.options.iter().any(|option| option == "--trust") {
            hidden("the hand-ins", &self.hand_ins)?;
            hidden("the grades", &self.out)?;
        }
        self.slurm.as_ref().map_or(Ok(()), Slurm::answers)?;
        let (program, grade_with) = who_grades(self.grader.as_deref())?;
        // A container or another machine has its own.
        let unknown = if grade_with.is_none() { self.versions.unknowns() } else { Vec::new() };
        if !unknown.is_empty() {
            return Err(format!(
                "it cannot be told what grades here, so that grades by others would pass for these: {}\n  \
                 try: Mend that first; `cargo build -p grader`, in the checkout, needs the same.",
                unknown.join("; ")
            ));
        }
        // A commitment is worth most before there is a hand-in.
        if !(self.seed_commit && hand_ins.is_empty()) && hand_ins.iter().all(|one| one.odd.is_some()) {
            let folder = self.hand_ins.display();
            let odd: Vec<&str> = hand_ins.iter().filter_map(|one| one.odd.as_deref()?.lines().next()).take(5).collect();
            let odd: String = odd.iter().map(|line| format!("\n  {line}")).collect();
            return Err(format!(
                "{folder} holds no hand-in{odd}\n  try: Name the folder in which each hand-in is {KINDS}."
            ));
        }
        self.dated(&hand_ins)?;
        let store = Store::open(&self.out)?;
        again::as_before(self, &store, &hand_ins)?;
        slurm::end_earlier(&store, &say)?;
        store.begin(&hand_ins.iter().map(|one| (one.id.clone(), one.name.clone())).collect())?;
        if let Some(cage) = &self.cage {
            say(cage);
        }
        if self.seed.is_none() && self.asked.options.iter().any(|option| option == "--trust") {
            say(&format!("note: {}", seed::TRUSTED));
        }
        let (seed, commitment) = if self.seed_commit {
            let secret = seed::commit(&store)?;
            say(&format!("seed commitment: {}", secret.commitment()));
            if seed::is_told(&store) {
                say("note: this seed was told: who handed in after that may have known it");
            }
            (secret.seed, Some(secret.commitment()))
        } else if let Some(seed) = self.seed {
            (seed, None)
        } else {
            if seed::drawn(&store)?.is_some() && !store.ids()?.is_empty() {
                say(
                    "note: the seed that was drawn for this folder is used again: who saw one of its grades may know it",
                );
            }
            (seed::drawn_once(&store)?, None)
        };
        for note in &ignored {
            say(&format!("note: {note}"));
        }
        let names: BTreeSet<&str> = hand_ins.iter().map(|one| one.name.as_str()).collect();
        let strange = self.moments().map(|(name, _)| name.as_str()).filter(|name| !names.contains(name));
        if let Some(strange) = some(strange) {
            say(&format!("note: no hand-in is called {strange}, for which a moment is given"));
        }
        if self.rubric.late.is_none() && self.moments().next().is_some() {
            say(&format!("note: {}", crate::rubric::NOT_DUE));
        }
        let unknown = hand_ins.iter().filter(|one| self.moment(&one.name).is_none()).map(|one| one.name.as_str());
        if let (Some(_), Some(unknown)) = (&self.rubric.late, some(unknown)) {
            say(&format!("note: --handed-in does not say when these came, and they lose no points: {unknown}"));
        }
        // Another program in place of this one judges by itself, perhaps where this folder is not seen.
        let verdicts = match &grade_with {
            None => Some(store.verdicts(commitment.is_some())?),
            Some(_) => None,
        };
        let common = Common {
            program,
            rubric: store.keep_rubric(&self.rubric)?,
            rubric_hash: self.rubric.hash(),
            seed: (commitment.is_none() || seed::is_told(&store)).then_some(seed),
            seed_commitment: commitment,
            limit: self.limit,
            versions: Versions { grade_with, ..self.versions.clone() },
            verdicts,
        };
        let running = Running { batch: self, store: &store, common: &common, seed, prepared: OnceLock::new() };
        let mut done = match &self.slurm {
            None => running.all(&hand_ins)?,
            Some(slurm) => running.on_nodes(slurm, &hand_ins, &say)?,
        };
        if self.seed.is_none() && !self.seed_commit {
            say(&format!(
                "note: the inputs were of the seed {seed}, which was drawn for this folder; --seed {seed} gives the same elsewhere"
            ));
        }
        done.unchecked = summary::write(&store, &hand_ins, &self.rubric, &self.asked.steps)?;
        store.end()?;
        Ok(done)
    }

    /// When hand-ins came, as far as that is known.
    fn moments(&self) -> impl Iterator<Item = (&String, &Moment)> {
        self.handed_in.iter().flatten()
    }

    /// When a hand-in came.
    fn moment(&self, name: &str) -> Option<&Moment> {
        self.handed_in.as_ref()?.get(name)
    }

    /// Whether something says when hand-ins came, where being late costs points: else nobody would be late.
    fn dated(&self, hand_ins: &[HandIn]) -> Result<(), String> {
        let (Some(late), None, false) = (&self.rubric.late, &self.handed_in, hand_ins.is_empty()) else {
            return Ok(());
        };
        Err(format!(
            "the rubric says that hand-ins were due at {}, and nothing says when they came: no late one would lose points\n  \
             try: Give --handed-in FILE, a CSV file whose first line is `name,handed_in`, or Gradescope's submission_metadata.yml; \
             a hand-in that FILE does not name counts as in time. Or leave [late] out of the rubric.",
            late.due.text
        ))
    }
}

/// The first of these names, and how many more there are; `None` if there is none.
fn some<'a>(names: impl Iterator<Item = &'a str>) -> Option<String> {
    const SHOWN: usize = 5;
    let names: Vec<String> = names.map(|name| format!("{name:?}")).collect();
    let more = names.len().saturating_sub(SHOWN);
    let more = if more == 0 { String::new() } else { format!(" and {more} more") };
    (!names.is_empty()).then(|| format!("{}{more}", names[..names.len().min(SHOWN)].join(", ")))
}

/// What is said of results that cannot be read: the first of them, and how many more there are.
fn unread(results: &[String]) -> String {
    const SHOWN: usize = 3;
    let mut said = results.iter().take(SHOWN).cloned().collect::<Vec<_>>().join("\n");
    if let more @ 1.. = results.len().saturating_sub(SHOWN) {
        said += &format!("\nand {more} more results cannot be read");
    }
    said
}

/// The program that grades one hand-in, wherever it is started from: this one, or another in its place, and then that one's hash.
///
/// # Errors
/// When there is none, or it cannot be read.
pub fn who_grades(other: Option<&Path>) -> Result<(PathBuf, Option<String>), String> {
    let Some(other) = other else {
        let here = std::env::current_exe().map_err(|error| format!("cannot find this program itself: {error}"))?;
        return Ok((here, None));
    };
    // A name alone is looked for as a shell would.
    let search = if other.components().count() == 1 { std::env::var_os("PATH") } else { None };
    let search: Vec<PathBuf> = search.iter().flat_map(std::env::split_paths).map(|folder| folder.join(other)).collect();
    let found = search.into_iter().chain([other.to_path_buf()]).find(|path| path.is_file());
    let found = found.and_then(|path| path.canonicalize().ok());
    let hashed = found.and_then(|path| file_hash(&path).ok().map(|hash| (path, Some(hash))));
    let way_out = "try: Give the path of a program to --grade-with.";
    hashed.ok_or_else(|| format!("cannot read {}, which is to grade\n  {way_out}", other.display()))
}

/// A batch while it runs.
struct Running<'a> {
    batch: &'a Batch,
    store: &'a Store,
    common: &'a Common,
    seed: u64,
    /// What all hand-ins are compiled with is ready, or why not.
    prepared: OnceLock<Result<Toolchain, String>>,
}

/// What is known of a hand-in.
enum State {
    /// It has a result, and whether that is a grade.
    Kept(bool),
    /// It waits.
    Waits(Box<Work>),
}

impl Running<'_> {
    fn all(&self, hand_ins: &[HandIn]) -> Result<Done, String> {
        let bar = Progress::of(hand_ins.len())?;
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let ended: Mutex<Result<Done, String>> = Mutex::new(Ok(Done::default()));
        std::thread::scope(|scope| {
            for _ in 0..self.batch.jobs.get().min(hand_ins.len()) {
                scope.spawn(|| {
                    while let Some(hand_in) = hand_ins.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let result = self.grade(hand_in, &bar);
                        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                        match (result, ended.as_mut()) {
                            (Ok((kept, graded)), Ok(done)) => {
                                done.add(kept, graded);
                                if kept { bar.kept() } else { bar.graded(1) }
                            }
                            // Only a folder of grades that cannot be written ends in this.
                            (Err(error), Ok(_)) => {
                                *ended = Err(error);
                                stop.store(true, Ordering::Relaxed);
                            }
                            (_, Err(_)) => {}
                        }
                    }
                });
            }
        });
        drop(bar);
        ended.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grades one hand-in, unless its result is there. Gives whether it was, and whether it could be graded.
    fn grade(&self, hand_in: &HandIn, bar: &Progress) -> Result<(bool, bool), String> {
        match self.state(hand_in)? {
            State::Kept(graded) => Ok((true, graded)),
            State::Waits(work) => {
                self.prepare()?;
                bar.began();
                let record = work.run(self.seed);
                self.store.keep_result(&hand_in.id, &record)?;
                Ok((false, matches!(record.outcome, Outcome::Graded(_))))
            }
        }
    }

    /// Compiles what all hand-ins use, before the first of them: its grader would have to, within the time of that hand-in, and all that run
    /// beside it would wait. It is held to the end of the batch.
    fn prepare(&self) -> Result<(), String> {
        // A container or another machine has its own.
        if self.batch.grader.is_some() {
            return Ok(());
        }
        // A node has its own limits.
        let locked_here =
            self.batch.slurm.is_none() && !self.batch.asked.options.iter().any(|option| option == "--trust");
        let prepared = self.prepared.get_or_init(|| {
            if locked_here {
                sandbox::enough()?;
            }
            Toolchain::prepare(&self.batch.root)
        });
        prepared.as_ref().map(|_| ()).map_err(String::clone)
    }

    /// Grades all that wait on the nodes of a cluster.
    fn on_nodes(&self, slurm: &Slurm, hand_ins: &[HandIn], say: impl Fn(&str)) -> Result<Done, String> {
        let (mut done, mut waiting) = (Done::default(), Vec::new());
        for hand_in in hand_ins {
            match self.state(hand_in)? {
                State::Kept(graded) => done.add(true, graded),
                State::Waits(work) => waiting.push(*work),
            }
        }
        let ids: Vec<String> = waiting.iter().map(|work| work.id.clone()).collect();
        if !waiting.is_empty() {
            self.prepare()?;
        }
        let bar = Progress::of(waiting.len())?;
        let ran = slurm.run(self.store, &self.batch.root, waiting, &bar, say);
        drop(bar);
        ran?;
        for id in ids {
            let graded = self.store.result(&id)?.is_some_and(|record| matches!(record.outcome, Outcome::Graded(_)));
            done.add(false, graded);
        }
        Ok(done)
    }

    /// Copies a hand-in, and looks for its result.
    fn state(&self, hand_in: &HandIn) -> Result<State, String> {
        let (batch, versions) = (self.batch, &self.common.versions);
        let taken = hand_ins::take(hand_in, self.store)?;
        let handed_in = batch.moment(&hand_in.name).map(|moment| moment.text.clone());
        let asked = Asked { handed_in, ..batch.asked.clone() };
        let seed = self.common.seed_commitment.clone().unwrap_or_else(|| self.seed.to_string());
        let identity = |hand_in: &str| {
            let rubric = &self.common.rubric_hash;
            let tools = versions.deciding().map(|one| (one.name, one.version));
            Identity { hand_in, rubric, tools, seed: &seed, asked: &asked }.hash()
        };
        let known = self.store.result(&hand_in.id)?;
        // A grade is not lost because the hand-in cannot be read now.
        if let (Err(none), Some(record)) = (&taken.kept, &known)
            && none.here
            && matches!(record.outcome, Outcome::Graded(_))
            && record.identity == identity(&record.hand_in)
        {
            eprintln!("note: {} keeps its grade: {}", hand_in.name, none.reason);
            return Ok(State::Kept(true));
        }
        let identity = identity(&taken.hash);
        if let Some(record) = known
            && record.identity == identity
        {
            let graded = matches!(record.outcome, Outcome::Graded(_));
            // A machine that failed may be mended: that it did is no result of the hand-in. Nor is a limit that is another now.
            let again =
                batch.retry || record.outcome.failed_here() || record.outcome.had_less_than(batch.limit.as_secs());
            if graded || !again {
                return Ok(State::Kept(graded));
            }
        }
        Ok(State::Waits(Box::new(Work {
            id: hand_in.id.clone(),
            name: hand_in.name.clone(),
            hand_in: taken.hash,
            kept: taken.kept,
            identity,
            asked,
            common: self.common.clone(),
        })))
    }
}
