//! Runs a launch: clusters side by side on a chip, each a handful of warps and engines on a simulated clock.
//!
//! | | |
//! |---|---|
//! | `chip` | what clusters have to do with each other: SMs and who fits on them, L2, DRAM, writes and atomics at the end of a window, launch control |
//! | `cluster`, `state`, `construct`, `finish` | what a cluster is made of, how it begins, what it leaves behind |
//! | `prepare` | what is checked before anything runs, and the parameter block |
//! | `schedule` | which warp goes on: issue slots, lanes that part and meet |
//! | `warp` | a warp, its registers, and what each instruction does (`step`); those that only touch registers |
//! | `memory` | plain and strong accesses, `ldmatrix`, stores to other CTAs: costs, values, and the check against earlier accesses |
//! | `barrier` | barriers of CTAs and clusters, mbarriers |
//! | `tma` | the TMA engine: boxes, bulk copies, tensor maps; `cp.async` |
//! | `mma` | `tcgen05.mma` and `commit`, `wgmma`, `mma.sync`: issue, descriptors, completion |
//! | `tensor_memory` | `tcgen05.alloc`, `ld`, `st`, `cp`, scale factors |
//! | `arithmetic` | the numbers that MMAs compute, in FP32 or bit for bit |
//! | `layout` | what lies in tiles of shared memory, and how MMAs read it |
//! | `coverage` | what a launch loads, adds up, reads and writes as a whole, and what not |
//! | `values` | clusters that compute no values |
//! | `loops` | loops that nothing ends any more |
//! | `hang` | why nothing can go on |
//! | `explain` | what is said of races and of what else is wrong; how findings become one for each cause |

pub(crate) mod arithmetic;
mod barrier;
mod chip;
mod cluster;
mod construct;
mod coverage;
mod explain;
mod finish;
mod hang;
mod layout;
mod loops;
mod memory;
mod mma;
mod prepare;
mod schedule;
mod state;
pub(crate) mod tensor_memory;
mod tma;
mod values;
mod warp;

pub(crate) use explain::names::counted;
pub(crate) use memory::place_name;
pub use prepare::check;

use crate::launch::Launch;
use crate::program::Program;
use crate::report::Report;
use crate::time::{Costs, Gpu};
use crate::{Mode, Options};
use chip::Chip;
use chip::threads::{self, Crew};
use cluster::Shared;
use memory::Global;

/// Runs a launch. What goes wrong is in the report: this never panics and never fails.
pub fn run(program: &Program, launch: &Launch, options: &Options) -> Report {
    let (kernel, params) = match prepare::prepare(program, launch) {
        Ok(prepared) => prepared,
        Err(findings) => return Report { findings, ..Report::default() },
    };
    let costs = Costs::of(options.gpu.unwrap_or_else(|| Gpu::of(&program.targets)));
    let threads = threads::threads(options);
    let (dependences, leavings) = (values::Dependences::default(), loops::livelock::Leavings::default());
    // One CTA alone needs no other thread, unless there is much to copy.
    let ctas: u64 = launch.grid.iter().map(|&n| u64::from(n)).product();
    let pieces = if memory::is_much(&launch.buffers) { usize::MAX } else { ctas as usize };
    let run = |clocks| {
        Crew::of(threads.min(pieces).max(1), |crew| {
            let variables = &program.variables;
            let mut global = Global::new(&launch.buffers, variables, costs.l2_bytes, !options.computes(), &crew);
            if options.warm_l2 {
                global.cache.warm();
            }
            let buffers = global.buffers.len();
            let (params, dependences, leavings) = (&params[..], &dependences, &leavings);
            let shared = Shared { kernel, launch, options, params, costs, buffers, dependences, leavings, clocks };
            Chip::new(shared, global, crew).run()
        })
    };
    // Which phase a wait has passed on is part of a trace.
    let clocks = options.judges() || options.trace;
    let (report, guessed) = run(clocks);
    // What is wrong, and why nothing goes on, is explained by who knows of what. Notes of such runs ask for no clocks, and many a right kernel has some.
    let lacks = match options.mode {
        Mode::Judge => false,
        Mode::Compute => guessed || !report.completed || !report.findings.is_empty(),
        Mode::Time => report.findings.iter().any(|found| found.code == "hang"),
    };
    if clocks || !lacks {
        return report;
    }
    // Two of them may be large.
    drop(report);
    run(true).0
}
