//! Steps 2 to 6: contracts, cases, TODOs; and what all have.

use super::milestones as seen;
use super::structure;
use super::{Case, Copies, Milestone, Shape, Step};
use crate::problem::Problem;
use ptx::Dtype;

const K_LOOP: &str = "book: a loop over K (book/src/k-loop.md)";
const GRID: &str = "book: a grid of CTAs (book/src/grid.md)";
const TMA: &str = "book: TMA and tensor maps (book/src/tma.md)";
pub(super) const WAY_BACK: &str = "book: the way back (book/src/way-back.md)";
pub(super) const PIPELINE: &str = "book: a software pipeline (book/src/pipeline.md)";
const PERSISTENT: &str = "book: persistent kernels (book/src/persistent.md)";
const MBARRIERS: &str = "book: mbarriers and phases (book/src/mbarriers.md)";
const TENSOR_MEMORY: &str = "book: tensor memory (book/src/tensor-memory.md)";

/// The tile of one CTA.
const TILE: [u32; 2] = [128, 128];
/// One CTA, one warpgroup, threads copy.
const SIMPLE: Shape = Shape {
    tile: TILE,
    threads: 128,
    ctas: 1,
    copies: Copies::Threads,
    persistent: false,
    depth: 1,
    consumers: 1,
    specialised: false,
};
const BY_TMA: Shape = Shape { copies: Copies::Tma, ..SIMPLE };
const PIPELINED: Shape = Shape { depth: 2, ..BY_TMA };
pub(super) const STAYING: Shape = Shape { persistent: true, ..PIPELINED };

pub(super) const fn cube(n: u32) -> Problem {
    Problem::f16(n, n, n)
}

pub(super) const fn f16(m: u32, n: u32, k: u32) -> Case {
    Case { problem: Problem::f16(m, n, k), sms: None }
}

pub(super) const fn bf16(m: u32, n: u32, k: u32) -> Case {
    Case { problem: Problem { m, n, k, dtype: Dtype::Bf16 }, sms: None }
}

impl Case {
    /// For a GPU of so many SMs.
    pub(super) const fn on(self, sms: u32) -> Case {
        Case { sms: Some(sms), ..self }
    }
}

/// The first TODO of steps 3 to 5.
const LAUNCHED: Milestone = Milestone {
    id: "",
    title: "a CTA is launched for each tile of D",
    task: "As many CTAs in x as D has tile rows, in y as it has tile columns; each begins at its own row and column.",
    read: GRID,
    check: |run| seen::grid(run, &SIMPLE),
};
/// The last TODO of steps 2 to 6.
const FREED: Milestone = Milestone {
    id: "",
    title: "tensor memory is freed",
    task: "When no thread reads tensor memory any more, free it in the warp that took it. Each thread's loads stay before the meeting that tells so.",
    read: TENSOR_MEMORY,
    check: seen::freed,
};
/// Behind the MMAs of steps 4 to 6.
const MET: Milestone = Milestone {
    id: "",
    title: "all threads know that the product is complete",
    task: "Let all threads meet behind the wait for the MMAs, with a fence of tcgen05 on either side of the meeting.",
    read: TENSOR_MEMORY,
    check: seen::all_meet,
};

pub(super) const STEP_2: Step = Step {
    number: 2,
    title: "a loop over K",
    points: 5,
    shape: SIMPLE,
    observed: f16(128, 128, 512),
    sizes: &[
        Problem::f16(128, 128, 64),
        Problem::f16(128, 128, 512),
        Problem::f16(128, 128, 1024),
        Problem::f16(128, 128, 4096),
    ],
    cases: &[f16(128, 128, 192), f16(128, 128, 320), f16(128, 128, 448), bf16(128, 128, 320)],
    inputs_per_size: 3,
    timed: Problem::f16(128, 128, 1024),
    milestones: &[
        Milestone {
            id: "2.1",
            title: "the tiles of every round arrive swizzled in shared memory, fenced",
            task: "In every round copy the next 64 columns of A and B; then let the tensor core see them, and all threads meet.",
            read: K_LOOP,
            check: |run| seen::tiles_copied(run, &SIMPLE),
        },
        Milestone {
            id: "2.2",
            title: "every round's MMAs add to the same accumulator",
            task: "Four MMAs a round; of all of them only the very first does not accumulate. Which one it is, the GPU computes.",
            read: K_LOOP,
            check: |run| seen::mmas(run, &SIMPLE, seen::Rounds::First),
        },
        Milestone {
            id: "2.3",
            title: "every round's MMAs are committed",
            task: "In every round let the thread that issued the MMAs ask that mma_done hears of their end.",
            read: MBARRIERS,
            check: |run| seen::committed(run, &SIMPLE, "mma_done"),
        },
        Milestone {
            id: "2.4",
            title: "every warp waits for every round's MMAs",
            task: "Let all threads wait for this round's phase: its parity is 0, 1, 0, 1, … from round to round.",
            read: MBARRIERS,
            check: |run| seen::every_round_awaited(run, &SIMPLE, "mma_done"),
        },
        Milestone {
            id: "2.5",
            title: "D holds the sums from tensor memory",
            task: "Load each thread's row of sums, wait for the load, round to the type of D, store 16 bytes at a time.",
            read: TENSOR_MEMORY,
            check: seen::d_right,
        },
        Milestone { id: "2.6", ..FREED },
    ],
    structure: |run| structure::check(run, &SIMPLE),
};

pub(super) const STEP_3: Step = Step {
    number: 3,
    title: "a grid of CTAs",
    points: 10,
    shape: SIMPLE,
    observed: f16(256, 384, 512),
    sizes: &[cube(256), cube(512), cube(1024), cube(2048)],
    cases: &[f16(256, 128, 64), f16(128, 384, 192), f16(384, 256, 320), bf16(256, 384, 448)],
    inputs_per_size: 3,
    timed: cube(512),
    milestones: &[
        Milestone { id: "3.1", ..LAUNCHED },
        Milestone {
            id: "3.2",
            title: "every CTA's own tiles arrive in shared memory, fenced",
            task: "Copy rows of A from `m_start` on and rows of B from `n_start` on; then let the tensor core see them, and all threads meet.",
            read: GRID,
            check: |run| seen::tiles_copied(run, &SIMPLE),
        },
        Milestone {
            id: "3.3",
            title: "every round's MMAs add to the accumulator, and are committed",
            task: "Four MMAs a round, only the very first does not accumulate; then let mma_done hear of their end.",
            read: K_LOOP,
            check: |run| {
                seen::all([seen::mmas(run, &SIMPLE, seen::Rounds::First), seen::committed(run, &SIMPLE, "mma_done")])
            },
        },
        Milestone {
            id: "3.4",
            title: "every warp waits for every round's MMAs",
            task: "Let all threads wait for this round's phase: its parity is 0, 1, 0, 1, … from round to round.",
            read: MBARRIERS,
            check: |run| seen::every_round_awaited(run, &SIMPLE, "mma_done"),
        },
        Milestone {
            id: "3.5",
            title: "D holds the sums from tensor memory",
            task: "Store each thread's row to the CTA's own tile: from row `m_start` and column `n_start` on.",
            read: GRID,
            check: seen::d_right,
        },
        Milestone { id: "3.6", ..FREED },
    ],
    structure: |run| structure::check(run, &SIMPLE),
};

/// What bites from step 4 on: odd numbers of K tiles, rectangles, partial tiles in every direction.
const RAGGED: &[Case] = &[
    f16(256, 256, 64),
    f16(256, 384, 192),
    f16(384, 256, 320),
    bf16(128, 640, 448),
    f16(200, 264, 136),
    bf16(1, 8, 8),
    f16(300, 520, 72),
];

pub(super) const STEP_4: Step = Step {
    number: 4,
    title: "TMA loads and stores",
    points: 10,
    shape: BY_TMA,
    observed: f16(256, 384, 512),
    sizes: &[cube(256), cube(512), cube(1024), cube(2048)],
    cases: RAGGED,
    inputs_per_size: 3,
    timed: cube(1024),
    milestones: &[
        Milestone { id: "4.1", ..LAUNCHED },
        Milestone {
            id: "4.2",
            title: "TMA is asked for the tiles of A and B, and their bytes are announced",
            task: "Announce the bytes of both tiles to tma2mma, then ask TMA for each of them.",
            read: TMA,
            check: |run| seen::loads(run, &BY_TMA, seen::Rounds::First),
        },
        Milestone {
            id: "4.3",
            title: "the tiles are awaited",
            task: "Wait for the round's phase of tma2mma, and keep the MMAs behind the wait.",
            read: TMA,
            check: |run| seen::awaited(run, "tma2mma", seen::Who::Issuer),
        },
        Milestone {
            id: "4.4",
            title: "every round's MMAs are issued, committed and awaited",
            task: "Four MMAs a round, a commit to mma_done, and a wait for the round's phase of it.",
            read: K_LOOP,
            check: |run| {
                seen::all([
                    seen::mmas(run, &BY_TMA, seen::Rounds::All),
                    seen::committed(run, &BY_TMA, "mma_done"),
                    seen::awaited(run, "mma_done", seen::Who::Issuer),
                ])
            },
        },
        Milestone { id: "4.5", ..MET },
        Milestone {
            id: "4.6",
            title: "the sums are in the tiles of D in shared memory, swizzled",
            task: "Load EPI_N columns of the thread's row at a time, wait, round, and store 16 bytes at once to where the swizzle of D's tile puts them.",
            read: WAY_BACK,
            check: |run| seen::d_staged(run, &BY_TMA),
        },
        Milestone {
            id: "4.7",
            title: "TMA stores the tiles of D",
            task: "Let TMA see what the threads stored, and all threads meet; then one thread asks for the stores of both tiles, as one group, and waits until TMA has read them.",
            read: WAY_BACK,
            check: seen::d_right,
        },
        Milestone { id: "4.8", ..FREED },
    ],
    structure: |run| structure::check(run, &BY_TMA),
};

pub(super) const STEP_5: Step = Step {
    number: 5,
    title: "a software pipeline",
    points: 10,
    shape: PIPELINED,
    observed: f16(256, 384, 1024),
    sizes: &[cube(512), cube(1024), cube(2048), cube(4096)],
    cases: RAGGED,
    inputs_per_size: 3,
    timed: cube(1024),
    milestones: &[
        Milestone { id: "5.1", ..LAUNCHED },
        Milestone {
            id: "5.2",
            title: "all stages are filled before the loop",
            task: "For the first two rounds announce the bytes of the stage to its own barrier, and ask TMA for its tiles.",
            read: PIPELINE,
            check: |run| seen::loads(run, &PIPELINED, seen::Rounds::Stages),
        },
        Milestone {
            id: "5.3",
            title: "the tiles of a stage are awaited",
            task: "Wait for the stage's own barrier in the phase that `at` knows, and keep the MMAs behind the wait.",
            read: PIPELINE,
            check: |run| seen::awaited(run, "tma2mma", seen::Who::Issuer),
        },
        Milestone {
            id: "5.4",
            title: "the MMAs of a stage are issued, committed and awaited",
            task: "Four MMAs on the stage's tiles, a commit to mma_done, and a wait for the round's phase of it.",
            read: PIPELINE,
            check: |run| {
                seen::all([
                    seen::mmas(run, &PIPELINED, seen::Rounds::First),
                    seen::committed(run, &PIPELINED, "mma_done"),
                    seen::awaited(run, "mma_done", seen::Who::Issuer),
                ])
            },
        },
        Milestone {
            id: "5.5",
            title: "a free stage is filled again",
            task: "Load the tiles of the round two later to the stage that was just multiplied, if there is such a round; then let `at` go on.",
            read: PIPELINE,
            check: |run| {
                seen::all([
                    seen::loads(run, &PIPELINED, seen::Rounds::All),
                    seen::mmas(run, &PIPELINED, seen::Rounds::All),
                ])
            },
        },
        Milestone { id: "5.6", ..MET },
        Milestone {
            id: "5.7",
            title: "D holds the sums, stored by TMA",
            task: "Bring the sums to the tiles of D in shared memory; let TMA see them, let all threads meet, and let one of them ask for the stores.",
            read: WAY_BACK,
            check: seen::d_right,
        },
        Milestone { id: "5.8", ..FREED },
    ],
    structure: |run| structure::check(run, &PIPELINED),
};

/// What bites when CTAs stay, beside numbers of rounds and tiles ([`Step::trips`]): several CTAs with several tiles each, and tiles
/// that are cut off.
pub(super) const STAYING_CASES: &[Case] =
    &[bf16(384, 256, 320).on(2), f16(384, 256, 448).on(2), f16(1160, 264, 136).on(3), bf16(1, 8, 8), f16(300, 520, 72)];

pub(super) const STEP_6: Step = Step {
    number: 6,
    title: "a persistent kernel",
    points: 10,
    shape: STAYING,
    observed: f16(384, 256, 1024).on(2),
    sizes: &[cube(1024), cube(2048), cube(4096), cube(8192)],
    cases: STAYING_CASES,
    inputs_per_size: 3,
    timed: cube(2048),
    milestones: &[
        Milestone { id: "6.1", ..STAYS },
        Milestone {
            id: "6.2",
            title: "all stages are filled before the loop over K",
            task: "As in step 5, at the stage that `fill` knows; `fill` goes on after each.",
            read: PERSISTENT,
            check: |run| seen::loads(run, &STAYING, seen::Rounds::Stages),
        },
        Milestone {
            id: "6.3",
            title: "the tiles of a stage are awaited and multiplied, the MMAs committed and awaited",
            task: "Wait at the stage and phase of `at`; four MMAs; commit; wait at the phase of `done`, and let it go on.",
            read: PERSISTENT,
            check: |run| {
                seen::all([
                    seen::awaited(run, "tma2mma", seen::Who::Issuer),
                    seen::mmas(run, &STAYING, seen::Rounds::First),
                    seen::committed(run, &STAYING, "mma_done"),
                    seen::awaited(run, "mma_done", seen::Who::Issuer),
                ])
            },
        },
        Milestone {
            id: "6.4",
            title: "a free stage is filled again",
            task: "Load the tiles of the round two later to the stage of `fill`, if there is such a round; then let `at` go on.",
            read: PIPELINE,
            check: |run| {
                seen::all([seen::loads(run, &STAYING, seen::Rounds::All), seen::mmas(run, &STAYING, seen::Rounds::All)])
            },
        },
        Milestone { id: "6.5", ..MET },
        Milestone {
            id: "6.6",
            title: "D holds the sums of every tile, stored by TMA",
            task: "As in step 5; before the next tile begins, all loads from tensor memory are fenced, and TMA has read the tiles of D.",
            read: PERSISTENT,
            check: seen::d_right,
        },
        Milestone { id: "6.7", ..FREED },
    ],
    structure: |run| structure::check(run, &STAYING),
};

/// The first TODO of steps 6 and 7.
pub(super) const STAYS: Milestone = Milestone {
    id: "",
    title: "a CTA is launched for each SM",
    task: "As many CTAs as the GPU has SMs, whatever the size.",
    read: PERSISTENT,
    check: |run| seen::grid(run, &STAYING),
};
