//! Step 1: one tile. Load A and B, four MMAs, read tensor memory, store D.

mod milestones;
mod structure;
#[cfg(test)]
mod tests;

use super::{Milestone, Step};
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
    sizes: &[Problem::f16(128, 128, 64), Problem { m: 128, n: 128, k: 64, dtype: Dtype::Bf16 }],
    inputs_per_size: 20,
    // The reference takes a few thousand; a copy of one element at a time takes twenty times as many.
    max_instructions: 1 << 20,
    milestones: &[
        Milestone {
            id: "1.1",
            title: "A and B arrive swizzled in shared memory",
            task: "copy A and B to their tiles: all 128 threads, 16 bytes at a time, each element where the swizzle puts it",
            read: "book: shared memory and swizzles (book/src/shared-memory.md)",
            check: milestones::tiles_arrive,
        },
        Milestone {
            id: "1.2",
            title: "the tensor core may see what the threads stored",
            task: "after the stores, a proxy fence in every thread, then a CTA barrier",
            read: "book: proxies and fences (book/src/proxies.md)",
            check: milestones::stores_are_fenced,
        },
        Milestone {
            id: "1.3",
            title: "four MMAs put A·Bᵀ into tensor memory",
            task: "issue one MMA for each 16 columns of K, all into one accumulator; the first does not add to it",
            read: "book: the tensor core (book/src/tensor-core.md)",
            check: milestones::product_in_tensor_memory,
        },
        Milestone {
            id: "1.4",
            title: "the MMAs are committed to the mbarrier",
            task: "let the thread that issued the MMAs commit them to mma_done",
            read: "book: mbarriers and phases (book/src/mbarriers.md)",
            check: milestones::committed,
        },
        Milestone {
            id: "1.5",
            title: "every warp waits for the MMAs",
            task: "let all threads wait for mma_done's first phase, then fence, so that loads stay behind the wait",
            read: "book: mbarriers and phases (book/src/mbarriers.md)",
            check: milestones::awaited,
        },
        Milestone {
            id: "1.6",
            title: "D holds the sums from tensor memory",
            task: "load each thread's row of sums, wait for the load, round to the type of D, store 16 bytes at a time",
            read: "book: tensor memory (book/src/tensor-memory.md)",
            check: milestones::d_written,
        },
        Milestone {
            id: "1.7",
            title: "tensor memory is freed",
            task: "when no thread reads tensor memory any more, free it in the warp that took it",
            read: "book: tensor memory (book/src/tensor-memory.md)",
            check: milestones::freed,
        },
    ],
    structure: structure::check,
};
