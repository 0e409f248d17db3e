//! The commands for a whole class: `batch`, `regrade`, `reveal`, `similar`.

use crate::{Asked, Trust, moments, print, workspace};
use clap::Subcommand;
use grader::batch::slurm::{self, Slurm};
use grader::batch::store::{self, Store};
use grader::batch::{Batch, regrade, seed};
use grader::rubric::Rubric;
use grader::sandbox;
use grader::similar::{self, Class};
use grader::versions::Versions;
use harness::workbook::name;
use std::io::{BufRead, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Action {
    /// A folder of hand-ins: each sub-folder, .tar, .tar.gz and .tgz is one
    Batch {
        /// The folder of hand-ins
        hand_ins: PathBuf,
        /// Where grades go; what is there already is kept
        #[arg(long, value_name = "GRADES")]
        out: PathBuf,
        /// So many at a time (without it: half the cores)
        #[arg(long, value_name = "N", value_parser = jobs, allow_negative_numbers = true)]
        jobs: Option<NonZeroUsize>,
        /// The longest that one may take, in seconds
        #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds, allow_negative_numbers = true)]
        limit: u64,
        /// When hand-ins came: a CSV file with the columns `name` and `handed_in`, or Gradescope's submission_metadata.yml
        #[arg(long, value_name = "FILE")]
        handed_in: Option<PathBuf>,
        /// Draw a secret seed, and print a commitment to it; `grader reveal` tells it
        #[arg(long, conflicts_with = "seed")]
        seed_commit: bool,
        /// Grade again what could not be graded
        #[arg(long)]
        retry: bool,
        /// Replace grades that were asked for otherwise: by another rubric, another seed, other steps
        #[arg(long)]
        replace: bool,
        #[command(flatten)]
        trust: Trust,
        /// The program that grades one, in place of this one: it is given the same arguments
        #[arg(long, value_name = "PROGRAM")]
        grade_with: Option<PathBuf>,
        /// Grade on the nodes of a cluster: as a job array of Slurm
        #[arg(long)]
        slurm: bool,
        /// The partition of the cluster, of CPUs or (with WORKBOOK_DEVICE=cuda) of GPUs
        #[arg(long, value_name = "NAME", requires = "slurm")]
        partition: Option<String>,
        /// A further option of `sbatch`, such as --sbatch=--gpus=1; may be given again
        #[arg(long = "sbatch", value_name = "OPTION", requires = "slurm", allow_hyphen_values = true)]
        sbatch: Vec<String>,
        /// Further options of `grader grade`, for each hand-in
        #[arg(last = true, value_name = "OPTIONS")]
        options: Vec<String>,
    },
    /// A hand-in of a batch once more, as it was graded then; says whether the grade is the same
    Regrade {
        /// What `grader batch --out` wrote
        grades: PathBuf,
        /// The hand-in: `hand_in` in its result, or how that begins
        #[arg(long, value_name = "HASH")]
        hash: String,
        /// The longest that it may take, in seconds
        #[arg(long, value_name = "SECONDS", default_value = "3600", value_parser = seconds, allow_negative_numbers = true)]
        limit: u64,
        /// The program that grades it, in place of this one
        #[arg(long, value_name = "PROGRAM")]
        grade_with: Option<PathBuf>,
    },
    /// Hand-ins that are more alike than those of this class are: somebody should look at them
    Similar {
        /// The folder of hand-ins, as for a batch
        hand_ins: PathBuf,
    },
    /// A task of a job array
    #[command(hide = true)]
    Work {
        /// The folder of tasks
        folder: PathBuf,
        /// Which of them
        index: usize,
    },
    /// Tells the secret seed of a batch, once grades are out: it stands in each result then
    Reveal {
        /// What `grader batch --out` wrote
        grades: PathBuf,
        /// Also while hand-ins wait for their grades
        #[arg(long)]
        anyway: bool,
    },
}

impl Action {
    /// Does it. Gives whether all is well.
    pub(crate) fn act(&self, asked: &Asked, rubric: Rubric) -> Result<bool, String> {
        match self {
            Action::Batch {
                hand_ins,
                out,
                jobs,
                limit,
                handed_in,
                seed_commit,
                retry,
                replace,
                trust,
                grade_with,
                slurm,
                partition,
                sbatch,
                options,
            } => {
                let workspace = workspace()?;
                // Before anything is written: what is asked wrongly must replace no grade.
                grader::handin::there_are(&workspace.steps(), &asked.steps)?;
                let root = workspace.root;
                let mut options = options.clone();
                if let (false, Some(rubric)) = (trust.trust, &asked.rubric) {
                    sandbox::hidden("the rubric", rubric)?;
                }
                if trust.trust && !options.iter().any(|option| option == "--trust") {
                    options.push("--trust".to_string());
                }
                // A container or another machine says for itself where hand-ins run.
                let here = grade_with.is_none() && !slurm;
                let trust = Trust { trust: options.iter().any(|option| option == "--trust") };
                // Where there is none, each hand-in's result says so: another time there may be one.
                let cage = if here { trust.cage().ok().map(|cage| cage.to_string()) } else { None };
                let batch = Batch {
                    cage,
                    hand_ins: hand_ins.clone(),
                    out: out.clone(),
                    jobs: jobs.unwrap_or_else(half_of_the_cores),
                    limit: Duration::from_secs(*limit),
                    grader: grade_with.clone(),
                    rubric,
                    seed: asked.seed.map(Seed::number).transpose()?,
                    seed_commit: *seed_commit,
                    asked: store::Asked {
                        steps: asked.steps.clone(),
                        allow_unchecked: asked.allow_unchecked,
                        handed_in: None,
                        device: std::env::var("WORKBOOK_DEVICE").unwrap_or_default(),
                        options,
                    },
                    handed_in: handed_in.as_deref().map(moments::read).transpose()?,
                    retry: *retry,
                    replace: *replace,
                    versions: Versions::here(&root),
                    root,
                    slurm: slurm.then(|| Slurm { partition: partition.clone(), options: sbatch.clone(), jobs: *jobs }),
                };
                let done = batch.run(|line| eprintln!("{line}"))?;
                let out = out.display();
                print(&format!(
                    "{} graded now, {} kept from before, {} not graded\n{out}/grades.csv\n{out}/index.html\n",
                    done.graded, done.kept, done.not_graded
                ))?;
                for sentence in &done.unchecked {
                    eprintln!("note: {sentence}");
                }
                if done.not_graded > 0 {
                    eprintln!(
                        "note: {out}/index.html says why hand-ins could not be graded; --retry grades them again"
                    );
                }
                Ok(done.not_graded == 0)
            }
            Action::Regrade { grades, hash, limit, grade_with } => {
                let (program, grade_with) = grader::batch::who_grades(grade_with.as_deref())?;
                let here = Versions { grade_with, ..Versions::here(&workspace()?.root) };
                let (text, same) = regrade::regrade(grades, hash, &program, Duration::from_secs(*limit), &here)?;
                print(&text)?;
                Ok(same)
            }
            Action::Work { folder, index } => slurm::work(folder, *index).map(|()| true),
            Action::Similar { hand_ins } => similar(hand_ins, &asked.steps),
            Action::Reveal { grades, anyway } => {
                let seed::Revealed { secret, results, without, early } =
                    seed::reveal(&Store::to_change(grades)?, *anyway)?;
                if let Some(early) = early {
                    eprintln!("note: {early}");
                }
                let (number, nonce, commitment) = (secret.seed, &secret.nonce, secret.commitment());
                let grades = grades.display();
                let results = match results {
                    1 => "the 1 result that was".to_string(),
                    _ => format!("each of the {results} results that were"),
                };
                let without = match without {
                    0 => String::new(),
                    _ => format!(", {without} of them without a grade"),
                };
                print(&format!(
                    "seed:       {number}\nnonce:      {nonce}\ncommitment: {commitment}\n\
                     check it with: printf %s {number}{nonce} | sha256sum\n\
                     it stands in {grades}/seed.json now, and in {results} made with it{without}\n"
                ))?;
                Ok(true)
            }
        }
    }
}

/// How many at a time.
fn jobs(text: &str) -> Result<NonZeroUsize, String> {
    text.parse().map_err(|_| "so many hand-ins at a time are a number from 1 on\n  try: --jobs 4".to_string())
}

/// A limit. Of one that is far longer than anybody waits there is no sum with what is added to it.
fn seconds(text: &str) -> Result<u64, String> {
    const A_YEAR: u64 = 365 * 24 * 60 * 60;
    let seconds = text.parse().ok().filter(|seconds| (1..=A_YEAR).contains(seconds));
    seconds.ok_or_else(|| format!("a limit is a number of seconds from 1 to {A_YEAR}, a year\n  try: --limit 3600"))
}

/// A kernel is judged on all cores: more hand-ins at a time only use those better that wait for the compiler.
fn half_of_the_cores() -> NonZeroUsize {
    let cores = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    NonZeroUsize::new(cores / 2).unwrap_or(NonZeroUsize::MIN)
}

/// Prints the groups of each step that stand out. Gives whether there are none.
fn similar(folder: &Path, wanted: &[u8]) -> Result<bool, String> {
    let workspace = workspace()?;
    let class = Class::read(folder, &workspace.steps(), wanted)?;
    for note in &class.notes {
        eprintln!("note: {note}");
    }
    let (mut found, mut compared, mut steps) = (0, 0, Vec::new());
    for (step, kernels) in &class.kernels {
        if kernels.len() < 2 {
            eprintln!(
                "note: only {} has a kernel for {}: there is nothing to compare it with",
                kernels[0].name,
                name(*step)
            );
            continue;
        }
        let (groups, text) = similar::step(*step, kernels, &similar::known(&workspace, *step)?);
        print(&text)?;
        (found, compared) = (found + groups, compared + kernels.len());
        steps.push(name(*step));
    }
    let unread: Vec<String> =
        class.unread.iter().map(|reason| format!("\n  {}", reason.replace('\n', "\n  "))).collect();
    let unread = match unread.len() {
        0 => None,
        1 => Some(format!("1 hand-in or kernel is not compared with the others:{}", unread.concat())),
        count => Some(format!("{count} hand-ins or kernels are not compared with the others:{}", unread.concat())),
    };
    if compared == 0 {
        let way_out = "try: Give the folder of a class: two hand-ins or more with a kernel for the same step.";
        let unread = unread.map(|unread| format!("; {unread}")).unwrap_or_default();
        return Err(format!("nothing was compared in {}{unread}\n  {way_out}", folder.display()));
    }
    print(&format!("{compared} kernels compared, of {}; groups that stand out: {found}\n", steps.join(", ")))?;
    // Who reads only the status must not take silence for an answer.
    unread.map_or(Ok(found == 0), Err)
}

/// A seed, or where it comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Seed {
    /// This one.
    Given(u64),
    /// The first line of the standard input, as a batch gives it: a command line can be read by every process of the machine.
    Input,
}

/// A seed as an argument.
pub(crate) fn seed(text: &str) -> Result<Seed, String> {
    match text {
        "-" => Ok(Seed::Input),
        _ => text.parse().map(Seed::Given).map_err(|_| {
            format!(
                "a seed is a number from 0 to {}, or `-`: then it is the first line of the standard input\n  \
                 try: --seed 1, or leave it out.",
                u64::MAX
            )
        }),
    }
}

impl Seed {
    /// The number. If it comes from the standard input, this process ends when that is closed: who wanted the grade is gone.
    pub(crate) fn number(self) -> Result<u64, String> {
        if let Seed::Given(number) = self {
            return Ok(number);
        }
        let mut line = String::new();
        let read = std::io::stdin().lock().read_line(&mut line);
        read.map_err(|error| format!("cannot read the seed from the standard input: {error}"))?;
        let number = line.trim().parse().map_err(|_| {
            format!("the standard input begins with {:?}: allowed is a number from 0 to {}", line.trim(), u64::MAX)
        })?;
        std::thread::spawn(|| {
            // To its end; what else stands in it is of no use.
            let _ = std::io::copy(&mut std::io::stdin().lock().by_ref(), &mut std::io::sink());
            std::process::exit(2);
        });
        Ok(number)
    }
}
