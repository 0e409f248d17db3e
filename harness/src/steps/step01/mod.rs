//! Step 1: one tile. Load A and B, four MMAs, read tensor memory, store D.

pub(super) use operands::stores_are_fenced;
pub(super) use write_back::freed;

mod completion;
mod milestones;
mod operands;
mod product;
mod structure;
#[cfg(test)]
mod tests;
mod write_back;

use super::{Case, Copies, Milestone, Shape, Step};
use crate::problem::Problem;
use ptx::Dtype;

const BLK_M: u32 = 128;
const BLK_N: u32 = 128;
/// Depth of one FP16 MMA.
const MMA_K: u32 = 16;
const THREADS: u32 = 128;

pub(super) const STEP: Step = Step {
    number: 1,
    title: "one tile",
    points: 5,
    shape: Shape {
        tile: [BLK_M, BLK_N],
        threads: THREADS,
        ctas: 1,
        copies: Copies::Threads,
        persistent: false,
        depth: 1,
        consumers: 1,
        specialised: false,
    },
    observed: Case { problem: Problem::f16(128, 128, 64), sms: None },
    sizes: &[Problem::f16(128, 128, 64), Problem { m: 128, n: 128, k: 64, dtype: Dtype::Bf16 }],
    cases: &[],
    inputs_per_size: 20,
    timed: Problem::f16(128, 128, 64),
    milestones: &[
        Milestone {
            id: "1.1",
            title: "A and B arrive swizzled in shared memory",
            task: "Copy A and B to their tiles with all 128 threads, 16 bytes at a time, each element to where the swizzle puts it.",
            read: "book: shared memory and swizzles (book/src/shared-memory.md)",
            check: operands::tiles_arrive,
        },
        Milestone {
            id: "1.2",
            title: "the tensor core may see what the threads stored",
            task: "After the stores let the tensor core's path to memory see what each thread stored, then let all threads meet.",
            read: "book: proxies and fences (book/src/proxies.md)",
            check: operands::stores_are_fenced,
        },
        Milestone {
            id: "1.3",
            title: "four MMAs put A·Bᵀ into tensor memory",
            task: "Issue one MMA for each 16 columns of K, all into one accumulator; the first does not add to it.",
            read: "book: the tensor core (book/src/tensor-core.md)",
            check: product::product_in_tensor_memory,
        },
        Milestone {
            id: "1.4",
            title: "the MMAs are committed to the mbarrier",
            task: "Let the thread that issued the MMAs ask that mma_done hears of their end.",
            read: "book: mbarriers and phases (book/src/mbarriers.md)",
            check: completion::committed,
        },
        Milestone {
            id: "1.5",
            title: "every warp waits for the MMAs",
            task: "Let all threads wait for mma_done's first phase, then keep loads from tensor memory behind the wait.",
            read: "book: mbarriers and phases (book/src/mbarriers.md)",
            check: completion::awaited,
        },
        Milestone {
            id: "1.6",
            title: "D holds the sums from tensor memory",
            task: "Load each thread's row of sums, wait for the load, round to the type of D, store 16 bytes at a time.",
            read: "book: tensor memory (book/src/tensor-memory.md)",
            check: write_back::d_written,
        },
        Milestone {
            id: "1.7",
            title: "tensor memory is freed",
            task: "When no thread reads tensor memory any more, free it in the warp that took it. Each thread's loads stay before the meeting that tells so.",
            read: "book: tensor memory (book/src/tensor-memory.md)",
            check: write_back::freed,
        },
    ],
    structure: structure::check,
};
