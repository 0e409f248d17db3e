//! Steps 2 to 10: contracts, cases, TODOs.

use super::milestones as seen;
use super::structure;
use super::{Case, Copies, Milestone, Shape, Step};
use crate::problem::Problem;
use ptx::Dtype;

const K_LOOP: &str = "book: a loop over K (book/src/k-loop.md)";
const GRID: &str = "book: a grid of CTAs (book/src/grid.md)";
const TMA: &str = "book: TMA and tensor maps (book/src/tma.md)";
const WAY_BACK: &str = "book: the way back (book/src/way-back.md)";
const PIPELINE: &str = "book: a software pipeline (book/src/pipeline.md)";
const PERSISTENT: &str = "book: persistent kernels (book/src/persistent.md)";
const ROLES: &str = "book: warp specialisation (book/src/warp-specialisation.md)";
const PAIRS: &str = "book: pairs of CTAs (book/src/cta-pairs.md)";
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
const STAYING: Shape = Shape { persistent: true, ..PIPELINED };
const SPECIALISED: Shape = Shape { threads: 256, specialised: true, ..STAYING };
const DEEP: Shape = Shape { depth: 4, ..SPECIALISED };
const PAIR: Shape = Shape { tile: [256, 256], ctas: 2, ..DEEP };
const TWO: Shape = Shape { tile: [512, 256], threads: 384, consumers: 2, ..PAIR };

const fn cube(n: u32) -> Problem {
    Problem::f16(n, n, n)
}

const fn f16(m: u32, n: u32, k: u32) -> Case {
    Case { problem: Problem::f16(m, n, k), sms: None }
}

const fn bf16(m: u32, n: u32, k: u32) -> Case {
    Case { problem: Problem { m, n, k, dtype: Dtype::Bf16 }, sms: None }
}

impl Case {
    /// For a GPU of so many SMs.
    const fn on(self, sms: u32) -> Case {
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
const STAYING_CASES: &[Case] =
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
const STAYS: Milestone = Milestone {
    id: "",
    title: "a CTA is launched for each SM",
    task: "As many CTAs as the GPU has SMs, whatever the size.",
    read: PERSISTENT,
    check: |run| seen::grid(run, &STAYING),
};

/// The TODOs of a kernel whose warps have roles, the same from step 7 on: behind those given first, with these numbers.
macro_rules! roles {
    ($shape:expr, $warps:expr, $book:expr, [$($first:expr),*], $tasks:expr,
     $barriers:literal $fill:literal $multiply:literal $wait:literal $stage:literal $store:literal $end:literal) => {
        &[
            $($first,)*
            Milestone {
                id: $barriers,
                title: "the barriers are made, each with the arrivals of a phase",
                task: "Make each barrier, with the arrivals that the table at the top of the file says.",
                read: $book,
                check: |run| seen::barriers(run, &$shape),
            },
            Milestone {
                id: $fill,
                title: "the TMA warp fills the stages",
                task: $tasks.fill,
                read: $book,
                check: |run| seen::loads(run, &$shape, seen::Rounds::Stages),
            },
            Milestone {
                id: $multiply,
                title: "the MMA warp waits for a free accumulator, multiplies every stage, hands it back, and tells of the complete product",
                task: $tasks.multiply,
                read: $book,
                check: |run| {
                    seen::all([
                        seen::awaited(run, "ld2mma", seen::Who::Warps($warps)),
                        seen::awaited(run, "tma2mma", seen::Who::Warps($warps)),
                        seen::mmas(run, &$shape, seen::Rounds::All),
                        seen::committed(run, &$shape, "mma2tma"),
                        seen::loads_go_on(run, &$shape),
                        seen::committed(run, &$shape, "mma2ld"),
                    ])
                },
            },
            Milestone {
                id: $wait,
                title: "the write-back waits for the product",
                task: "Wait for mma2ld at the phase of `full`, keep loads from tensor memory behind the wait, and let `full` go on.",
                read: $book,
                check: |run| seen::awaited(run, "mma2ld", seen::Who::WriteBack(&$shape)),
            },
            Milestone {
                id: $stage,
                title: "the sums are in the tile of D in shared memory, and the accumulator is handed back",
                task: $tasks.stage,
                read: $book,
                check: |run| {
                    seen::all([seen::d_staged(run, &$shape), seen::accumulator_handed_back(run, &$shape)])
                },
            },
            Milestone {
                id: $store,
                title: "TMA stores every chunk of D",
                task: "Let TMA see what the threads stored, let the warpgroup meet, and let one thread ask TMA to store the tile, as a group of its own.",
                read: WAY_BACK,
                check: seen::d_right,
            },
            Milestone {
                id: $end,
                title: "what the kernel used lasts until it is no longer used",
                task: $tasks.end,
                read: $book,
                check: seen::freed,
            },
        ]
    };
}

/// What to do in roles: where a pair of CTAs does it otherwise than one.
struct Tasks {
    fill: &'static str,
    multiply: &'static str,
    stage: &'static str,
    end: &'static str,
}

const ALONE: Tasks = Tasks {
    fill: "Wait until the stage is free, announce its bytes, ask TMA for its tiles, go on to the next stage.",
    multiply: "Wait for ld2mma at the phase of `free`, fence, let `free` go on. In each round wait for tma2mma of the stage, \
               fence, issue four MMAs, commit to mma2tma of the stage, go on to the next stage; behind the last round \
               commit to mma2ld.",
    stage: "Load the chunk's columns, wait; behind the last chunk's load arrive at ld2mma; store the row when TMA no longer \
            reads the tile.",
    end: "The thread that stores waits until TMA has read the last tile, all threads meet, one warp \
          frees tensor memory.",
};
const OF_PAIR: Tasks = Tasks {
    fill: "In each round wait until the stage is free, announce the bytes of both CTAs (the leader alone), ask TMA for this \
           CTA's tiles on the leader's barrier (`of_cta`), go on to the next stage. Behind all tiles wait for each stage once \
           more.",
    multiply: "Wait for ld2mma, the leader's, at the phase of `free`, fence, let `free` go on. In each round wait for tma2mma \
               of the stage, fence, issue four MMAs, commit to mma2tma of the stage of both CTAs, go on \
               to the next stage; behind the last round commit to mma2ld of both CTAs.",
    stage: "Load the chunk's columns, wait; behind the last chunk's load arrive at the leader's ld2mma (`of_cta`); store the \
            row when TMA no longer reads the tile.",
    end: "The threads that store, one in each warpgroup that writes back, wait until TMA has read the last tiles, both CTAs \
          meet, one warp of each frees tensor memory.",
};

pub(super) const STEP_7: Step = Step {
    number: 7,
    title: "warp specialisation",
    points: 15,
    shape: SPECIALISED,
    observed: f16(384, 256, 1024).on(2),
    sizes: &[cube(1024), cube(2048), cube(4096), cube(8192)],
    cases: STAYING_CASES,
    inputs_per_size: 3,
    timed: cube(2048),
    milestones: roles!(SPECIALISED, &[4], ROLES, [Milestone { id: "7.1", ..STAYS }], ALONE, "7.2" "7.3" "7.4" "7.5" "7.6" "7.7" "7.8"),
    structure: |run| structure::check(run, &SPECIALISED),
};

const STAGES: Milestone = Milestone {
    id: "8.1",
    title: "a CTA is launched for each SM, with four stages",
    task: "As many CTAs as the GPU has SMs. Make the pipeline so deep that three stages are loaded while one is multiplied, before the rings are made.",
    read: PIPELINE,
    check: |run| seen::all([seen::grid(run, &DEEP), seen::ring(run, &DEEP)]),
};

pub(super) const STEP_8: Step = Step {
    number: 8,
    title: "a deeper pipeline",
    points: 5,
    shape: DEEP,
    observed: f16(384, 256, 2048).on(2),
    sizes: &[cube(1024), cube(2048), cube(4096), cube(8192)],
    cases: STAYING_CASES,
    inputs_per_size: 3,
    timed: cube(2048),
    milestones: roles!(DEEP, &[4], ROLES, [STAGES], ALONE, "8.2" "8.3" "8.4" "8.5" "8.6" "8.7" "8.8"),
    structure: |run| structure::check(run, &DEEP),
};

pub(super) const STEP_9: Step = Step {
    number: 9,
    title: "pairs of CTAs",
    points: 15,
    shape: PAIR,
    observed: f16(512, 512, 2048).on(2),
    sizes: &[cube(1024), cube(2048), cube(4096), cube(8192)],
    cases: &[
        f16(256, 768, 192).on(2),
        bf16(768, 256, 320).on(2),
        f16(2312, 264, 136).on(4),
        bf16(1, 8, 8),
        f16(300, 520, 72),
    ],
    inputs_per_size: 3,
    timed: cube(2048),
    milestones: roles!(PAIR, &[4], PAIRS, [], OF_PAIR, "9.1" "9.2" "9.3" "9.4" "9.5" "9.6" "9.7"),
    structure: |run| structure::check(run, &PAIR),
};

pub(super) const STEP_10: Step = Step {
    number: 10,
    title: "two consumers",
    points: 15,
    shape: TWO,
    observed: f16(1024, 512, 2048).on(2),
    sizes: &[cube(1024), cube(2048), cube(4096), cube(8192)],
    cases: &[
        f16(1536, 256, 192).on(2),
        bf16(512, 768, 320).on(2),
        f16(4616, 264, 136).on(4),
        bf16(1, 8, 8),
        f16(300, 520, 72),
    ],
    inputs_per_size: 3,
    timed: cube(2048),
    milestones: roles!(TWO, &[8, 9], PAIRS, [], OF_PAIR, "10.1" "10.2" "10.3" "10.4" "10.5" "10.6" "10.7"),
    structure: |run| structure::check(run, &TWO),
};
