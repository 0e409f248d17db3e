//! Runs a launch: clusters side by side on a chip, each a handful of warps and engines on a simulated clock.
//!
//! | files | what they hold |
//! |---|---|
//! | `chip`, `threads`, `cache`, `outbox`, `tracker` | what clusters have to do with each other: SMs, L2, writes and atomics, races between them |
//! | `schedule`, `issue`, `cluster`, `state`, `diverge`, `finish` | the scheduler; what a cluster is made of; lanes that part and meet; what is left at the end |
//! | `prepare` | what is checked before anything runs, and the parameter block |
//! | `warp`, `on_the_way`, `memory`, `mbarrier`, `tensor`, `places` | the things themselves, and where those are that come and go |
//! | `operand`, `batch`, `product`, `tiles`, `exact`, `simd` | the tensor core's arithmetic: what MMAs read, which are computed together, FP32 in vectors and in tiles, bit for bit, and what the CPU has for it |
//! | `step` | what each instruction does; `compute` those that only touch registers, `access`, `fill`, `ordering`, `rewrites` and `charge` plain memory, `atomics` and `halves` strong accesses, `sync`, `barrier_cta`, `barrier_cluster`, `mbarrier_places` and `mbarrier_ops` barriers, `register_pool` `setmaxnreg`, `tensor_alloc`, `tensor_ops`, `tensor_store`, `mma`, `mma_operands` and `commit` `tcgen05`, `wgmma`, `wgmma_descriptor` and `wgmma_work` Hopper's tensor core, `tma`, `tma_places`, `tensor_maps`, `map_reads`, `made_maps`, `copy`, `direct`, `prefetches` and `bulk` the TMA engine |
//! | `loaded`, `slices`, `boxes`, `depths`, `operand_types`, `offsets`, `copied`, `stored`, `drawn_up`, `unread`, `unshifted`, `turned`, `apart`, `narrow`, `stage`, `staged`, `bounding_box` | what lies in tiles of shared memory, how MMAs read it, and what is said where both disagree |
//! | `inputs`, `drained`, `supplies`, `sums`, `placed`, `outputs` | what a launch loads, adds up, reads and writes, and what not |
//! | `livelock`, `trail`, `forecast` | loops that nothing ends any more |
//! | `values` | clusters that compute no values |
//! | `explain`, `drafts`, `explain_shared`, `explain_copy`, `explain_global`, `explain_stores`, `explain_freed`, `explain_groups`, `other_accumulator`, `issued_by_warps`, `explain_bytes`, `explain_tensor`, `explain_phase`, `explain_overlap`, `explain_count`, `explain_wgmma`, `trap`, `print`, `overtaken`, `promises`, `remote`, `started`, `hang`, `hang_barrier`, `hang_columns`, `hang_commit`, `hang_flag`, `hang_groups`, `hang_mbarrier`, `hang_never`, `hang_role`, `hang_root`, `hang_rounds`, `hang_targets`, `hang_twins`, `hang_ways`, `short_launch`, `names`, `findings`, `follows`, `forks`, `statements` | what is said when something is wrong |

mod access;
mod accumulators;
mod alike;
mod apart;
mod async_copy;
mod async_store;
mod atomics;
mod barrier_cluster;
mod barrier_cta;
pub(crate) mod batch;
mod bounding_box;
mod box_origin;
mod boxes;
mod bulk;
mod cache;
mod cells;
mod charge;
mod chip;
mod cluster;
mod collector;
mod commit;
mod compute;
mod conclude;
mod construct;
mod copied;
mod copy;
mod copy_lanes;
mod depths;
mod direct;
mod diverge;
mod drafts;
mod drained;
mod drawn_up;
mod elsewhere;
mod endless;
mod exact;
mod exact_kinds;
mod exchange;
mod explain;
mod explain_arrival;
mod explain_behind;
mod explain_bytes;
mod explain_copy;
mod explain_count;
mod explain_flag;
mod explain_free;
mod explain_freed;
mod explain_global;
mod explain_groups;
mod explain_overlap;
mod explain_phase;
mod explain_protocol;
mod explain_shared;
mod explain_stores;
mod explain_strong;
mod explain_tensor;
mod explain_wgmma;
mod factors_left;
mod fill;
mod findings;
mod finish;
mod follows;
mod footprints;
mod forecast;
mod forks;
mod formats;
mod four_rows;
mod fragments;
mod grant;
mod halves;
mod hang;
mod hang_barrier;
mod hang_columns;
mod hang_commit;
mod hang_flag;
mod hang_groups;
mod hang_mbarrier;
mod hang_never;
mod hang_ring;
mod hang_role;
mod hang_root;
mod hang_rounds;
mod hang_targets;
mod hang_twins;
mod hang_ways;
mod init_order;
mod inputs;
mod instruction_descriptor;
mod issue;
mod issued;
mod issued_by_warps;
mod issuer;
mod kinds;
mod launch_control;
mod livelock;
mod loaded;
mod made_maps;
mod map_reads;
mod matrices;
mod matrix_descriptor;
mod mbarrier;
mod mbarrier_ops;
mod mbarrier_places;
mod mbarrier_state;
mod mbarrier_wait;
mod memory;
mod misplaced_fence;
mod mixed;
mod mma;
mod mma_operands;
mod mma_touches;
mod mma_work;
mod names;
mod narrow;
mod offsets;
mod on_the_way;
mod operand;
mod operand_types;
mod ordering;
mod origins;
mod other_accumulator;
mod outbox;
mod outputs;
mod overtaken;
mod packed_copy;
mod part_defined;
mod part_waits;
mod parties;
mod placed;
mod places;
mod prefetches;
mod prepare;
mod prerequisite;
mod print;
pub(crate) mod product;
mod promises;
mod reduction;
mod register_pool;
mod registers;
mod remote;
mod resolve;
mod rewrites;
mod runaway;
mod scale_factors;
mod schedule;
mod scopes;
mod share;
mod short_launch;
pub(crate) mod simd;
mod slices;
mod spaces;
mod spare;
mod stage;
mod staged;
mod started;
mod state;
mod statements;
mod step;
mod store_lanes;
mod stored;
pub(crate) mod strip;
mod sums;
mod supplies;
mod suspected;
mod sync;
pub(crate) mod tensor;
mod tensor_alloc;
mod tensor_copy;
mod tensor_maps;
mod tensor_ops;
mod tensor_store;
mod threads;
pub(crate) mod tiles;
mod tma;
mod tma_places;
mod too_wide;
mod tracker;
mod trail;
mod trap;
mod turned;
mod unheeded;
mod unread;
mod unshifted;
mod values;
mod warp;
mod warp_mma;
mod wgmma;
mod wgmma_descriptor;
mod wgmma_work;
mod wide_mma;

pub(crate) use memory::place_name;
pub(crate) use names::counted;
pub use prepare::check;

use crate::Options;
use crate::launch::Launch;
use crate::program::Program;
use crate::report::Report;
use crate::time::{Costs, Gpu};
use chip::Chip;
use cluster::Shared;
use memory::Global;
use threads::Crew;

/// Runs a launch. What goes wrong is in the report: this never panics and never fails.
pub fn run(program: &Program, launch: &Launch, options: &Options) -> Report {
    let (kernel, params) = match prepare::prepare(program, launch) {
        Ok(prepared) => prepared,
        Err(findings) => return Report { findings, ..Report::default() },
    };
    let costs = Costs::of(options.gpu.unwrap_or_else(|| Gpu::of(&program.targets)));
    let threads = threads::threads(options);
    let (dependences, leavings) = (values::Dependences::default(), livelock::Leavings::default());
    // One CTA alone needs no other thread, unless there is much to copy.
    let ctas: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
    let pieces = if memory::is_much(&launch.buffers) { usize::MAX } else { ctas as usize };
    Crew::of(threads.min(pieces).max(1), |crew| {
        let variables = &program.variables;
        let mut global = Global::new(&launch.buffers, variables, costs.l2_bytes, !options.computes(), &crew);
        if options.warm_l2 {
            global.cache.warm();
        }
        let buffers = global.buffers.len();
        let (dependences, leavings) = (&dependences, &leavings);
        let shared = Shared { kernel, launch, options, params: &params, costs, buffers, dependences, leavings };
        Chip::new(shared, global, crew).run()
    })
}
