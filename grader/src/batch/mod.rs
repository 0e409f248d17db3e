//! Grades a folder of hand-ins, each in a process of its own, and can be killed at any moment.
//!
//! **Does:** copy each hand-in to where it is kept ([`hand_ins`]), have this program grade the copy ([`child`]), store what came of
//! it ([`store`]), and write tables and pages of all ([`summary`]). **Never does:** judge anything itself, or follow a path that a hand-in
//! names. A result is there whole or not at all, and is known by what it is a result of ([`store::Identity`]): what is there is kept,
//! what is not is graded.

pub mod child;
pub mod hand_ins;
pub mod regrade;
pub mod seed;
pub mod store;
pub mod summary;

use crate::rubric::{Moment, Rubric};
use crate::versions::Versions;
use child::Grader;
use hand_ins::HandIn;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use store::{Asked, Identity, Outcome, Record, Store};

/// What a batch is asked for.
#[derive(Clone, Debug)]
pub struct Batch {
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
    /// The seed of the inputs.
    pub seed: Option<u64>,
    /// A random seed that is secret until grades are out.
    pub seed_commit: bool,
    /// What is asked of each hand-in.
    pub asked: Asked,
    /// When hand-ins came, by their names.
    pub handed_in: BTreeMap<String, Moment>,
    /// Grade again what could not be graded.
    pub retry: bool,
    /// What grades.
    pub versions: Versions,
}

/// What a batch did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Hand-ins that were graded now.
    pub graded: usize,
    /// Results that were there.
    pub kept: usize,
    /// Hand-ins that could not be graded, now or before.
    pub not_graded: usize,
}

impl Batch {
    /// Grades what is not graded yet. `say` takes what a person is to read at once.
    ///
    /// # Errors
    /// When the batch cannot go on: folders that cannot be read or written, or that another batch writes to.
    pub fn run(&self, say: impl Fn(&str)) -> Result<Done, String> {
        let store = Store::open(&self.out)?;
        let (seed, commitment) = if self.seed_commit {
            let secret = seed::commit(&store)?;
            say(&format!("seed commitment: {}", secret.commitment()));
            (secret.seed, Some(secret.commitment()))
        } else {
            (self.seed.unwrap_or_default(), None)
        };
        let (hand_ins, ignored) = hand_ins::list(&self.hand_ins, Some(&self.out))?;
        for note in &ignored {
            say(&format!("note: {note}"));
        }
        if let Some(unknown) = self.handed_in.keys().find(|name| hand_ins.iter().all(|one| one.name != **name)) {
            say(&format!("note: no hand-in is called {unknown:?}, for which a moment is given"));
        }
        let rubric = store.keep_rubric(&self.rubric)?;
        let program = match &self.grader {
            Some(program) => program.clone(),
            None => std::env::current_exe().map_err(|error| format!("cannot find this program itself: {error}"))?,
        };
        let grader = Grader { program, rubric, seed, secret: commitment.is_some(), limit: self.limit };
        let one = One { batch: self, store: &store, grader: &grader, commitment: commitment.as_deref() };
        let done = one.all(&hand_ins)?;
        summary::write(&store, &hand_ins, &self.rubric, &self.asked.steps)?;
        Ok(done)
    }
}

/// What all hand-ins have in common while a batch runs.
struct One<'a> {
    batch: &'a Batch,
    store: &'a Store,
    grader: &'a Grader,
    commitment: Option<&'a str>,
}

impl One<'_> {
    fn all(&self, hand_ins: &[HandIn]) -> Result<Done, String> {
        let bar = ProgressBar::with_draw_target(Some(hand_ins.len() as u64), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{bar:30} {pos} of {len} hand-ins, {eta} left")
            .map_err(|error| error.to_string())?;
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_secs(1));
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let ended: Mutex<Result<Done, String>> = Mutex::new(Ok(Done::default()));
        std::thread::scope(|scope| {
            for _ in 0..self.batch.jobs.get().min(hand_ins.len()) {
                scope.spawn(|| {
                    while let Some(hand_in) = hand_ins.get(next.fetch_add(1, Ordering::Relaxed)) {
                        if stop.load(Ordering::Relaxed) {
                            break;
                        }
                        let result = self.grade(hand_in);
                        let mut ended = ended.lock().unwrap_or_else(PoisonError::into_inner);
                        match (result, ended.as_mut()) {
                            (Ok((kept, graded)), Ok(done)) => {
                                done.kept += usize::from(kept);
                                done.graded += usize::from(!kept && graded);
                                done.not_graded += usize::from(!graded);
                            }
                            // Only a folder of grades that cannot be written ends in this.
                            (Err(error), Ok(_)) => {
                                *ended = Err(error);
                                stop.store(true, Ordering::Relaxed);
                            }
                            (_, Err(_)) => {}
                        }
                        bar.inc(1);
                    }
                });
            }
        });
        bar.finish_and_clear();
        ended.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grades one hand-in, unless its result is there. Gives whether it was, and whether it could be graded.
    fn grade(&self, hand_in: &HandIn) -> Result<(bool, bool), String> {
        let batch = self.batch;
        let taken = hand_ins::take(hand_in, self.store)?;
        let handed_in = batch.handed_in.get(&hand_in.name).map(|moment| moment.text.clone());
        let asked = Asked { handed_in, ..batch.asked.clone() };
        let versions = &batch.versions;
        let identity = Identity {
            hand_in: &taken.hash,
            rubric: &batch.rubric.hash(),
            tools: [Some(&versions.grader), versions.rustc.as_deref(), versions.ptxas.as_deref()],
            seed: self.commitment.unwrap_or(&self.grader.seed.to_string()),
            asked: &asked,
        }
        .hash();
        if let Some(record) = self.store.result(&hand_in.id)?
            && record.identity == identity
        {
            let graded = matches!(record.outcome, Outcome::Graded(_));
            if graded || !batch.retry {
                return Ok((true, graded));
            }
        }
        let begin = Instant::now();
        let outcome = match &taken.kept {
            Ok(path) => self.grader.grade(path, &hand_in.name, &asked),
            Err(reason) => Outcome::NotGraded { reason: reason.clone() },
        };
        let graded = matches!(outcome, Outcome::Graded(_));
        self.store.keep_result(
            &hand_in.id,
            &Record {
                schema: store::SCHEMA,
                name: hand_in.name.clone(),
                hand_in: taken.hash,
                identity,
                rubric: batch.rubric.hash(),
                seed: self.commitment.is_none().then_some(self.grader.seed),
                seed_commitment: self.commitment.map(str::to_string),
                versions: batch.versions.clone(),
                asked,
                seconds: crate::json::rounded(begin.elapsed().as_secs_f64()),
                outcome,
            },
        )?;
        Ok((false, graded))
    }
}
