//! What each step asks for: sizes, milestones, structure. One file a step.

pub mod hopper;
mod ladder;
mod milestones;
mod products;
mod roles;
mod step01;
mod structure;
pub mod tile;

use crate::diagnostics::Explanation;
use crate::observe::Observation;
use crate::problem::Problem;
use crate::source::Built;
use emulator::Diagnostic;

/// The GPU that the steps' kernels are made for, as PTX names it.
pub const TARGET: &str = "sm_100a";

/// A step of the workbook.
#[derive(Debug)]
pub struct Step {
    /// 1 to 10; [`hopper::HOPPER`] is none of them.
    pub number: u8,
    /// Its new idea, in a few words.
    pub title: &'static str,
    /// Points of 100.
    pub points: u32,
    /// The geometry of its kernels.
    pub shape: Shape,
    /// The case whose run is looked at closely: milestones, structure, adversarial schedules.
    pub observed: Case,
    /// The sizes of the table in docs/steps.md.
    pub sizes: &'static [Problem],
    /// Cases that bite: what these sizes let pass.
    pub cases: &'static [Case],
    /// Different inputs at each size and case, of each kind of [`crate::InputKind`] in turn. Large sizes have one.
    pub inputs_per_size: u32,
    /// The size at which its time is held against the reference solution's.
    pub timed: Problem,
    /// Its TODOs, in order, and how one sees on a run that they are done.
    pub milestones: &'static [Milestone],
    /// Whether the kernel is what the step claims, as its run shows: one sentence, or what is otherwise.
    pub structure: fn(&Observation) -> Result<String, Vec<String>>,
}

/// The geometry of a step's kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Rows and columns of the tile of D that a CTA, or a cluster, computes.
    pub tile: [u32; 2],
    /// Threads of a CTA.
    pub threads: u32,
    /// CTAs of a cluster, which share their MMAs.
    pub ctas: u32,
    /// Who copies the tiles of A, B and D.
    pub copies: Copies,
    /// As many CTAs as the GPU has SMs, each with several tiles; else a CTA for each tile.
    pub persistent: bool,
    /// Stages of the ring of tiles.
    pub depth: u32,
    /// Warps that issue MMAs, in a CTA that does.
    pub consumers: u32,
    /// Loads, MMAs and write-back are done by different warps.
    pub specialised: bool,
}

/// Who copies the tiles of A, B and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// Threads.
    Threads,
    /// The TMA engine.
    Tma,
}

impl Shape {
    /// Rows and columns of tiles that cover D.
    pub fn tiles(&self, problem: &Problem) -> [u32; 2] {
        [problem.m.div_ceil(self.tile[0]), problem.n.div_ceil(self.tile[1])]
    }

    /// CTAs that are launched, in x and y.
    pub fn grid(&self, problem: &Problem, sms: u32) -> [u32; 2] {
        match self.persistent {
            true => [sms / self.ctas * self.ctas, 1],
            false => self.tiles(problem),
        }
    }

    /// How a launch differs from that of the step's kernels, if it does: grid, cluster, or block.
    pub fn launched_otherwise(&self, built: &Built, problem: &Problem, sms: u32) -> Option<String> {
        let plural = |count: u32| if count == 1 { "" } else { "s" };
        let [x, y] = self.grid(problem, sms);
        if built.grid != [x, y, 1] {
            let why = match self.persistent {
                true => format!("one CTA for each of {sms} SMs"),
                false => "one CTA for each tile of D".to_string(),
            };
            let found = built.grid;
            return Some(format!(
                "this step launches {x} x {y} CTAs at {problem}, {why}; this kernel's grid is {found:?}"
            ));
        }
        let (ctas, threads) = (self.ctas, self.threads);
        if built.cluster != [ctas, 1, 1] {
            let (s, found) = (plural(ctas), built.cluster);
            return Some(format!("this step has {ctas} CTA{s} in a cluster; this kernel's clusters are {found:?}"));
        }
        (built.block != [threads, 1, 1]).then(|| {
            let (warpgroups, s, found) = (threads / 128, plural(threads / 128), built.block);
            format!("this step has {warpgroups} warpgroup{s}, {threads} threads; this kernel's block is {found:?}")
        })
    }

    /// How much more or less the tensor core multiplied than the padded problem takes, if it did.
    pub fn multiplied_otherwise(&self, run: &Observation) -> Option<String> {
        let (done, all) = (run.products_of_mmas(), self.products(&run.inputs.problem));
        let (other, how) = if done > all { (done - all, "more") } else { (all - done, "fewer") };
        (other > 0).then(|| {
            format!(
                "the product takes {all} multiplications on the tensor core, whole tiles counted; this kernel's {} MMAs do {other} \
                 {how}",
                run.mmas().len()
            )
        })
    }

    /// Row and column of the tile of D that a CTA or cluster computes, the `index`th: in the order of
    /// [`ptx::TileScheduler`] if it is persistent. `None`: it computes fewer.
    pub fn tile_of(&self, problem: &Problem, sms: u32, worker: u32, index: usize) -> Option<[u32; 2]> {
        let [rows, columns] = self.tiles(problem);
        if !self.persistent {
            let tile = [worker % rows, worker / rows];
            return (index == 0 && tile[1] < columns).then_some(tile);
        }
        let workers = u64::from((sms / self.ctas).max(1));
        let number = u64::from(worker) + workers * index as u64;
        (number < u64::from(rows) * u64::from(columns)).then(|| {
            let (row, column) = ptx::TileScheduler::new(rows, columns, workers as u32).tile(number as u32);
            [row, column]
        })
    }

    /// The last tile of a CTA or cluster.
    pub fn last_tile(&self, problem: &Problem, sms: u32, worker: u32) -> Option<[u32; 2]> {
        (0..).map_while(|index| self.tile_of(problem, sms, worker, index)).last()
    }

    /// Multiplications of the padded problem: whole tiles, whole tiles of K.
    pub fn products(&self, problem: &Problem) -> u64 {
        let [rows, columns] = self.tiles(problem);
        let tile = u64::from(self.tile[0]) * u64::from(self.tile[1]) * u64::from(BLK_K);
        u64::from(rows) * u64::from(columns) * u64::from(problem.k.div_ceil(BLK_K)) * tile
    }
}

/// Columns of the tiles of A and B, in every step.
pub const BLK_K: u32 = 64;

/// A problem, and the GPU that the kernel is built for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// What is computed.
    pub problem: Problem,
    /// SMs of the GPU; `None`: as many as the judge was asked for.
    pub sms: Option<u32>,
}

impl Step {
    /// The GPU that its kernels are made for, as PTX names it.
    pub fn target(&self) -> &'static str {
        if self.number == hopper::HOPPER { "sm_90a" } else { TARGET }
    }

    /// Rounds over K around the depth of the ring, for CTAs (or clusters) that have none to three tiles each: where a phase is off by
    /// one, some of these show it. Only kernels that stay on their SM go through their ring for more than one tile; step 1 has one round.
    pub fn trips(&self) -> Vec<Case> {
        let Shape { depth, tile: [rows, columns], ctas, persistent, .. } = self.shape;
        let mut all = Vec::new();
        if self.number == 1 {
            return all;
        }
        for rounds in [1, depth.saturating_sub(1), depth, depth + 1, 2 * depth + 1] {
            for tiles in if persistent { 0..=3 } else { 1..=1 } {
                // Two workers and one tile leave one of them without.
                let sms = persistent.then_some(if tiles == 0 { 2 * ctas } else { ctas });
                let problem = Problem::f16(rows * tiles.max(1), columns, rounds * BLK_K);
                let case = Case { problem, sms };
                if rounds > 0 && !all.contains(&case) {
                    all.push(case);
                }
            }
        }
        all
    }

    /// What one types to judge it again.
    pub fn command(&self) -> String {
        match self.number {
            hopper::HOPPER => "cargo workbook run hopper".to_string(),
            number => format!("cargo test -p step{number:02}"),
        }
    }

    /// A run ends with an error after so many warp instructions: far more than a kernel of this step takes, so few that
    /// an endless loop ends within seconds.
    pub fn max_instructions(&self, problem: &Problem) -> u64 {
        // A round of 128 x 128 x 64 that is copied by threads, one element at a time, takes about 20,000.
        const ROUND: u64 = 1 << 15;
        let rounds = self.shape.products(problem) / (128 * 128 * u64::from(BLK_K));
        (1 << 20) + rounds * ROUND
    }
}

/// A TODO of a skeleton and its observable effect.
#[derive(Debug)]
pub struct Milestone {
    /// Its number, `step.n`.
    pub id: &'static str,
    /// What is so when it is done, in a few words.
    pub title: &'static str,
    /// What to do, in a sentence.
    pub task: &'static str,
    /// What to read.
    pub read: &'static str,
    /// Looks for the effect in a run.
    pub check: fn(&Observation) -> Seen,
}

/// What a run shows of a milestone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// The effect is there.
    Done,
    /// Something else is there.
    Wrong(Explanation),
    /// The emulator says what is wrong with it.
    Found(Box<Diagnostic>),
    /// Something else has to be done first: what.
    NotReached(String),
    /// The run broke off before it could show.
    Cut,
}

/// The steps that exist, in order.
pub const STEPS: &[Step] = &[
    step01::STEP,
    ladder::STEP_2,
    ladder::STEP_3,
    ladder::STEP_4,
    ladder::STEP_5,
    ladder::STEP_6,
    roles::STEP_7,
    roles::STEP_8,
    roles::STEP_9,
    roles::STEP_10,
];

/// The step of this number, or the kernel for Hopper.
pub fn step(number: u8) -> Option<&'static Step> {
    STEPS.iter().chain([&hopper::STEP]).find(|step| step.number == number)
}
