//! Runs a launch: clusters one after the other, each a handful of warps and engines on a simulated clock.
//!
//! | files | what they hold |
//! |---|---|
//! | `cluster`, `state`, `diverge`, `finish` | the scheduler; what a cluster is made of; lanes that part and meet; what is left at the end |
//! | `prepare` | what is checked before anything runs, and the parameter block |
//! | `warp`, `memory`, `mbarrier`, `tensor` | the things themselves |
//! | `operand`, `batch`, `product`, `exact`, `simd` | the tensor core's arithmetic: what MMAs read, which are computed together, FP32, bit for bit, and the vectors of the CPU |
//! | `step` | what each instruction does; `access` plain memory, `atomics` strong accesses, `sync` and `mbarrier_ops` barriers, `tensor_ops`, `mma` and `mma_operands` `tcgen05`, `tma`, `copy` and `bulk` the TMA engine |
//! | `explain`, `explain_tensor`, `hang`, `names`, `findings` | what is said when something is wrong |

mod access;
mod async_copy;
mod atomics;
mod batch;
mod bulk;
mod cluster;
mod copy;
mod diverge;
mod exact;
mod explain;
mod explain_tensor;
mod findings;
mod finish;
mod hang;
mod launch_control;
mod mbarrier;
mod mbarrier_ops;
mod memory;
mod mma;
mod mma_operands;
mod names;
mod operand;
mod prepare;
pub(crate) mod product;
pub(crate) mod simd;
mod state;
mod step;
mod sync;
pub(crate) mod tensor;
mod tensor_ops;
mod tma;
mod warp;

pub use prepare::check;

use crate::Options;
use crate::launch::Launch;
use crate::program::Program;
use crate::report::Report;
use crate::time::Costs;
use cluster::{Cluster, Place, Shared, cluster_extent};
use findings::Findings;
use memory::Global;

/// Streaming multiprocessors of a B200.
const SMS: u64 = 148;

/// Runs a launch. What goes wrong is in the report: this never panics and never fails.
pub fn run(program: &Program, launch: &Launch, options: &Options) -> Report {
    let mut report = Report::default();
    let (kernel, params) = match prepare::prepare(program, launch) {
        Ok(prepared) => prepared,
        Err(errors) => {
            report.findings = errors;
            return report;
        }
    };
    let mut global = Global::new(&launch.buffers, &program.variables);
    let costs = Costs::B200;
    let mut findings = Findings::default();
    let extent = cluster_extent(kernel, launch).map(u64::from);
    let [nx, ny, nz] = std::array::from_fn(|n| u64::from(launch.grid[n]) / extent[n]);
    let resources = Shared { kernel, launch, options, params: &params, costs: &costs };
    // Clusters run in waves: each takes the SMs that are free first.
    let mut free_at = vec![0u64; (SMS / extent.iter().product::<u64>()).max(1) as usize];
    report.completed = true;
    let mut queue = launch_control::Queue { next: 0, total: nx * ny * nz, clusters: [nx, ny, nz] };
    // What fits begins at once; the rest waits, and may be taken over by a cluster that asks for more work.
    let resident = options.resident_clusters.or(launch.attributes.resident_clusters);
    let resident = resident.map_or(free_at.len() as u64, u64::from).clamp(1, free_at.len() as u64);
    free_at.truncate(resident as usize);
    let mut begun: Vec<u64> = (0..resident).filter_map(|_| queue.take()).rev().collect();
    while let Some(index) = begun.pop().or_else(|| queue.take()) {
        let first = queue.first_cta(index, extent.map(|d| d as u32));
        let sm = (0..free_at.len()).min_by_key(|&n| free_at[n]).unwrap_or(0);
        let start = free_at[sm];
        let mut cluster = Cluster::new(
            &resources,
            &mut global,
            &mut findings,
            &mut queue,
            Place { index: index as u32, first, sm: sm as u32, start },
        );
        let completed = cluster.run(&mut report.instructions);
        free_at[sm] = cluster.end;
        report.cycles = report.cycles.max(cluster.end);
        report.trace.append(&mut cluster.trace);
        if options.keep_ctas {
            report.ctas.append(&mut cluster.snapshots());
        }
        if !completed {
            report.completed = false;
            break;
        }
    }
    (report.findings, report.notes) = findings.finish();
    report.buffers = global.buffers.into_iter().take(launch.buffers.len()).map(|b| b.memory).collect();
    report.trace.sort_by_key(|e| e.start);
    report
}
