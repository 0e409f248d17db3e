//! A batch on the nodes of a cluster: a job array of Slurm, a task for each hand-in.
//!
//! All nodes see the folder of grades, the checkout and the program under the same paths. A task leaves its result in the folder of its
//! submission, where nobody else writes: whole or not at all, and the first one stays. The batch alone moves results to `results/`, so that a task
//! of an earlier submission that comes late, from a node that was taken for dead, changes nothing there. What has no result when the array has
//! ended was on a node that failed, and is submitted again. A batch that is killed leaves an array that goes on: the next one ends it
//! ([`end_earlier`]), takes what it has graded, and submits the rest.

mod queue;
mod submission;

use super::hand_ins::NoCopy;
use super::progress::Progress;
use super::seed;
use super::store::{Outcome, Record, Store};
use super::work::Work;
use queue::Queue;
use std::num::NonZeroUsize;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use submission::Submission;

/// How often a hand-in is submitted whose node fails.
const TRIES: usize = 3;
/// Tasks of an array: Slurm's own limit, unless a cluster has another.
const TASKS: usize = 1000;
/// What a task takes beside grading: a node that starts, a checkout that is read over the network.
const MARGIN: Duration = Duration::from_secs(600);
/// How long the queue may be out of sight, as while Slurm's controller is started again.
const OUT_OF_SIGHT: Duration = Duration::from_secs(600);
/// How long tasks that were cancelled may take to end.
const ENDING: Duration = Duration::from_secs(120);

/// How jobs are submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Slurm {
    /// The partition, of CPUs or of GPUs; the cluster's default without it.
    pub partition: Option<String>,
    /// Further options of `sbatch`.
    pub options: Vec<String>,
    /// So many tasks at a time.
    pub jobs: Option<NonZeroUsize>,
}

impl Slurm {
    /// Whether there is a cluster to submit to.
    ///
    /// # Errors
    /// What is missing, and the way out. Nothing is written.
    pub fn answers(&self) -> Result<(), String> {
        queue::answers()
    }

    /// Grades all of these, and waits for them. `root` is the checkout.
    ///
    /// # Errors
    /// When there is no `sbatch`, it refuses, or the folder of grades cannot be written.
    pub(super) fn run(
        &self,
        store: &Store,
        root: &Path,
        mut work: Vec<Work>,
        bar: &Progress,
        say: impl Fn(&str),
    ) -> Result<(), String> {
        for attempt in 1..=TRIES {
            let mut missing = Vec::new();
            for some in work.chunks(TASKS) {
                missing.extend(self.submit(store, root, some, bar)?);
            }
            if missing.is_empty() {
                return Ok(());
            }
            say(&format!("note: {} of the array's tasks left no result, attempt {attempt} of {TRIES}", missing.len()));
            work = missing;
        }
        for one in work {
            let reason = format!(
                "no node graded it in {TRIES} tries\n  try: Look at {}/slurm/*/*.log, and give the batch again.",
                store.folder.display()
            );
            let untried = Work { kept: Err(NoCopy { reason, here: true, no_kernel: false }), ..one };
            let id = untried.id.clone();
            store.keep_result(&id, &untried.run(0))?;
        }
        Ok(())
    }

    /// Submits an array, and waits for its end. Gives what has no result then.
    fn submit(&self, store: &Store, root: &Path, work: &[Work], bar: &Progress) -> Result<Vec<Work>, String> {
        let Some(first) = work.first() else { return Ok(Vec::new()) };
        let (queue, submission) = (Queue::of(store), Submission::new(store, work)?);
        let at_once = self.jobs.map(|jobs| format!("%{jobs}")).unwrap_or_default();
        let minutes = (first.common.longest() + MARGIN).as_secs().div_ceil(60);
        // A node that fails is counted here: a hand-in that takes nodes down with it must come to an end.
        let options = ["--nodes=1", "--no-requeue", &format!("--time={minutes}")].map(str::to_string).into_iter();
        let options = options.chain([format!("--chdir={}", root.display())]);
        let options = options.chain(self.partition.iter().map(|name| format!("--partition={name}")));
        let options = options.chain(self.options.iter().cloned());
        let array = format!("0-{}{at_once}", work.len() - 1);
        let job = queue.submit(&submission.script(), &submission.folder, &array, options)?;
        let mut missing: Vec<(usize, Work)> = work.iter().cloned().enumerate().collect();
        let (begin, mut seen) = (Instant::now(), Instant::now());
        loop {
            // Asked before results are looked for: what is missing afterwards stays missing.
            let ended = match queue.jobs() {
                Ok(jobs) => {
                    seen = Instant::now();
                    !jobs.contains(&job)
                }
                Err(_) if seen.elapsed() < OUT_OF_SIGHT => false,
                Err(error) => {
                    let way_out = "try: Give this command again once it answers; what is graded is kept.";
                    return Err(format!("{error}, while job {job} is waited for\n  {way_out}"));
                }
            };
            let before = missing.len();
            missing = gather(store, &submission, missing)?;
            bar.graded(before - missing.len());
            if ended {
                break;
            }
            // The longer it takes, the less it matters.
            thread::sleep((Duration::from_secs(1) + begin.elapsed() / 20).min(Duration::from_secs(15)));
        }
        submission.end()?;
        submission.gathered()?;
        Ok(missing.into_iter().map(|(_, work)| work).collect())
    }
}

/// Takes the results that tasks have left. Gives the tasks that have left none.
fn gather(store: &Store, submission: &Submission, work: Vec<(usize, Work)>) -> Result<Vec<(usize, Work)>, String> {
    let there = submission.results()?;
    let mut missing = Vec::new();
    for (index, one) in work {
        let found = if there.contains(&index) { submission.result(index)? } else { None };
        match found.filter(|record| is_of(record, &one)) {
            Some(record) => store.keep_result(&one.id, &record)?,
            None => missing.push((index, one)),
        }
    }
    Ok(missing)
}

/// Whether it is a result of this task, and not of another that was put in its place.
fn is_of(record: &Record, work: &Work) -> bool {
    record.identity == work.identity && record.hand_in == work.hand_in && record.name == work.name
}

/// Takes what an earlier batch's array has graded, and the batch did not live to take. A grade that is there already gives way to another grade
/// alone, and to none by the same tools. What cannot be read stays where it is, and is graded again.
fn gather_earlier(store: &Store, submission: &Submission, say: impl Fn(&str)) -> Result<(), String> {
    for index in submission.results()? {
        let (work, record) = match (submission.task(index), submission.result(index)) {
            (Ok(work), Ok(Some(record))) => (work, record),
            (Ok(_), Ok(None)) => continue,
            (Err(error), _) | (_, Err(error)) => {
                say(&format!("note: a result of an earlier batch is not taken: {error}"));
                continue;
            }
        };
        let graded = |record: &Record| matches!(record.outcome, Outcome::Graded(_));
        let better = match store.result(&work.id)? {
            Some(known) if graded(&known) => known.identity != record.identity && graded(&record),
            _ => true,
        };
        if is_of(&record, &work) && better {
            store.keep_result(&work.id, &record)?;
        }
    }
    submission.gathered()
}

/// Ends what an earlier batch on this folder has left in the queue. What it graded stays.
///
/// # Errors
/// When the folder cannot be read or written.
pub fn end_earlier(store: &Store, say: impl Fn(&str)) -> Result<(), String> {
    let mut submissions = Submission::all(store)?;
    if submissions.is_empty() {
        return Ok(());
    }
    // The newest last: what was submitted later counts.
    submissions.sort_by_key(Submission::number);
    let open = submissions.iter().filter(|submission| !submission.ended()).count();
    // From now on none of its tasks begins, and none leaves a result: also if nobody can cancel them here.
    submissions.iter().filter(|submission| !submission.ended()).try_for_each(Submission::end)?;
    let queue = Queue::of(store);
    let cancelled = queue.jobs().and_then(|jobs| {
        if !jobs.is_empty() {
            let names = jobs.iter().cloned().collect::<Vec<_>>().join(", ");
            say(&format!(
                "note: an earlier batch left job {names} in the queue: it is cancelled, and what it graded is kept"
            ));
            queue.cancel(&jobs)?;
        }
        let begin = Instant::now();
        while let left @ 1.. = queue.jobs()?.len() {
            if begin.elapsed() > ENDING {
                return Err(format!("{left} of its jobs did not end in {} s", ENDING.as_secs()));
            }
            thread::sleep(Duration::from_millis(300));
        }
        Ok(())
    });
    match cancelled {
        Err(error) if open > 0 => {
            say(&format!("note: tasks of an earlier batch may still run, and their results are not taken: {error}"));
        }
        _ => {}
    }
    submissions.iter().filter(|one| !one.is_gathered()).try_for_each(|one| gather_earlier(store, one, &say))
}

/// One task of an array: grades the hand-in of that number. `folder` is that of the submission.
///
/// # Errors
/// When there is no such task, the batch that submitted it is gone, or its result cannot be written.
pub fn work(folder: &Path, index: usize) -> Result<(), String> {
    let submission = Submission { folder: folder.to_path_buf() };
    let gone = || Err("the batch that submitted this task was given again: it is graded by another".to_string());
    if submission.ended() {
        return gone();
    }
    let work = submission.task(index)?;
    let store = Store::existing(submission.grades())?;
    // Slurm may start a task again that was done.
    if submission.result(index)?.is_some() {
        return Ok(());
    }
    let seed = match work.common.seed {
        Some(seed) => seed,
        None => seed::kept(&store)?.seed,
    };
    let record = work.run(seed);
    if submission.ended() {
        return gone();
    }
    submission.leave(index, &record)?;
    match record.outcome {
        Outcome::Graded(_) => Ok(()),
        Outcome::NotGraded { reason, .. } => Err(reason),
    }
}
