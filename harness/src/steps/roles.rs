//! Steps 7 to 10, whose warps have roles: contracts, cases, TODOs.

use super::ladder::{PIPELINE, STAYING, STAYING_CASES, STAYS, WAY_BACK, bf16, cube, f16};
use super::milestones as seen;
use super::structure;
use super::{Milestone, Shape, Step};

const ROLES: &str = "book: warp specialisation (book/src/warp-specialisation.md)";
const PAIRS: &str = "book: pairs of CTAs (book/src/cta-pairs.md)";

const SPECIALISED: Shape = Shape { threads: 256, specialised: true, ..STAYING };
const DEEP: Shape = Shape { depth: 4, ..SPECIALISED };
const PAIR: Shape = Shape { tile: [256, 256], ctas: 2, ..DEEP };
const TWO: Shape = Shape { tile: [512, 256], threads: 384, consumers: 2, ..PAIR };

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
