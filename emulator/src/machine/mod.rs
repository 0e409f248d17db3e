//! Runs a launch: clusters one after the other, each a handful of warps and engines on a simulated clock.
//!
//! | files | what they hold |
//! |---|---|
//! | `cluster`, `state`, `diverge`, `finish` | the scheduler; what a cluster is made of; lanes that part and meet; what is left at the end |
//! | `warp`, `memory`, `mbarrier`, `tensor` | the things themselves |
//! | `product`, `exact`, `simd` | the tensor core's arithmetic: FP32, bit for bit, and the vectors of the CPU |
//! | `step` | what each instruction does; `access` plain memory, `sync` and `mbarrier_ops` barriers, `tensor_ops`, `mma` and `mma_operands` `tcgen05`, `tma`, `copy` and `bulk` the TMA engine |
//! | `explain`, `explain_tensor`, `hang`, `names`, `findings` | what is said when something is wrong |

mod access;
mod async_copy;
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
pub(crate) mod product;
pub(crate) mod simd;
mod state;
mod step;
mod sync;
pub(crate) mod tensor;
mod tensor_ops;
mod tma;
mod warp;

use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::launch::{Launch, Param};
use crate::program::{Kernel, Program};
use crate::report::Report;
use crate::tensor_map::TensorMap;
use crate::time::Costs;
use crate::{MAX_SHARED, Options};
use cluster::{Cluster, Place, Shared, cluster_extent};
use findings::Findings;
use memory::Global;

/// Streaming multiprocessors of a B200.
const SMS: u64 = 148;

/// Runs a launch. What goes wrong is in the report: this never panics and never fails.
pub fn run(program: &Program, launch: &Launch, options: &Options) -> Report {
    let mut report = Report::default();
    let kernel = match check(program, launch) {
        Ok(kernel) => kernel,
        Err(errors) => {
            report.findings = errors;
            return report;
        }
    };
    let mut global = Global::new(&launch.buffers);
    let params = match parameters(kernel, launch, &global) {
        Ok(params) => params,
        Err(error) => {
            report.findings = vec![*error];
            return report;
        }
    };
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
    let resident = options.resident_clusters.map_or(free_at.len() as u64, u64::from).clamp(1, free_at.len() as u64);
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
    report.buffers = global.buffers.into_iter().map(|b| b.memory).collect();
    report.trace.sort_by_key(|e| e.start);
    report
}

/// CTAs of a launch, at most: more would take hours.
const MAX_CTAS: u64 = 1 << 20;
/// Bytes of all buffers, at most: 4 GiB.
const MAX_GLOBAL: u64 = 1 << 32;

/// What is wrong with a launch before anything runs.
fn check<'p>(program: &'p Program, launch: &Launch) -> Result<&'p Kernel, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut error = |code, title: String, help: String, kernel: Option<&Kernel>| {
        errors.push(Diagnostic {
            code,
            severity: Severity::Error,
            title,
            labels: kernel.map(|k| Label { place: k.place.clone(), text: "this kernel".into() }).into_iter().collect(),
            rule: "A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming \
                   Guide, compute capability 10.0)."
                .into(),
            help,
            count: 1,
        });
    };
    let Some(kernel) = program.kernels.iter().find(|k| k.name == launch.entry) else {
        let names = program.entries().join(", ");
        error("launch", format!("there is no entry `{}`", launch.entry), format!("The module has: {names}."), None);
        return Err(errors);
    };
    let k = Some(kernel);
    let [x, y, z] = launch.block;
    let threads = u64::from(x).saturating_mul(u64::from(y)).saturating_mul(u64::from(z));
    if threads == 0 || threads > 1024 || z > 64 {
        error("launch", format!("a CTA of {x} × {y} × {z} threads"), "1 to 1024 threads, z up to 64.".into(), k);
    } else if let Some(required) = kernel.required_threads.filter(|r| *r != launch.block) {
        error(
            "launch",
            format!("launched with CTAs of {:?} threads, the kernel requires {required:?} (`.reqntid`)", launch.block),
            "Launch with the required block, or change `.reqntid`.".into(),
            k,
        );
    } else if let Some(most) = kernel.max_threads.filter(|&m| threads > u64::from(m)) {
        error(
            "launch",
            format!("launched with {threads} threads a CTA, the kernel allows {most} (`.maxntid`)"),
            "Launch fewer threads, or raise `.maxntid`.".into(),
            k,
        );
    }
    let grid = launch.grid.map(u64::from);
    if grid.contains(&0) || grid[0] > i32::MAX as u64 || grid[1] > 65535 || grid[2] > 65535 {
        error(
            "launch",
            format!("a grid of {:?} CTAs", launch.grid),
            "x up to 2³¹−1, y and z up to 65535, none 0.".into(),
            k,
        );
    } else if grid.iter().product::<u64>() > MAX_CTAS {
        error(
            "not-modelled",
            format!("a grid of {:?} CTAs is more than this emulator runs", launch.grid),
            format!("Launch up to {MAX_CTAS} CTAs: a smaller problem shows the same mistakes."),
            k,
        );
    }
    let extent = cluster_extent(kernel, launch);
    let ctas = extent.iter().map(|&d| u64::from(d)).product::<u64>();
    if let Some(required) = kernel.required_cluster.filter(|r| *r != extent) {
        error(
            "launch",
            format!(
                "launched with clusters of {extent:?} CTAs, the kernel requires {required:?} (`.reqnctapercluster`)"
            ),
            "Launch with the required cluster, or change the directive.".into(),
            k,
        );
    } else if ctas == 0 || ctas > 16 {
        error("launch", format!("clusters of {extent:?} CTAs"), "1 to 16 CTAs (more than 8 are opt-in).".into(), k);
    } else if (0..3).any(|n| !launch.grid[n].is_multiple_of(extent[n])) {
        error(
            "launch",
            format!("a grid of {:?} CTAs in clusters of {extent:?}", launch.grid),
            "Each size of the grid must be a multiple of the cluster's.".into(),
            k,
        );
    }
    let shared =
        u64::from(kernel.dynamic_start) - u64::from(crate::program::RESERVED_SHARED) + u64::from(launch.dynamic_shared);
    if shared > u64::from(MAX_SHARED) {
        error(
            "launch",
            format!(
                "{shared} bytes of shared memory a CTA ({} static, {} dynamic)",
                kernel.dynamic_start - crate::program::RESERVED_SHARED,
                launch.dynamic_shared
            ),
            format!("A CTA has at most {MAX_SHARED} bytes (227 KB): use fewer stages or smaller tiles."),
            k,
        );
    }
    let mut total = 0u64;
    for (n, buffer) in launch.buffers.iter().enumerate() {
        use crate::launch::Content;
        let bytes = match &buffer.content {
            Content::Bytes(b) => b.len() as u64,
            Content::Fill { bytes, .. } | Content::Undefined { bytes } => *bytes,
        };
        total = total.saturating_add(bytes);
        if total > MAX_GLOBAL {
            error(
                "launch",
                format!("with buffer {n} (`{}`, {bytes} bytes), the buffers take {total} bytes", buffer.name),
                format!("All buffers together take at most {MAX_GLOBAL} bytes: launch a smaller problem."),
                None,
            );
            break;
        }
    }
    if errors.is_empty() { Ok(kernel) } else { Err(errors) }
}

/// The kernel's parameter block.
fn parameters(kernel: &Kernel, launch: &Launch, global: &Global) -> Result<Vec<u8>, Box<Diagnostic>> {
    let error = |title: String, help: &str| {
        Box::new(Diagnostic {
            code: "launch",
            severity: Severity::Error,
            title,
            labels: vec![Label { place: kernel.place.clone(), text: "this kernel".into() }],
            rule: "A launch gives each parameter of the entry one value of its size.".into(),
            help: help.into(),
            count: 1,
        })
    };
    if kernel.params.len() != launch.params.len() {
        return Err(error(
            format!("the kernel has {} parameters, the launch gives {}", kernel.params.len(), launch.params.len()),
            "Give one value for each parameter, in order.",
        ));
    }
    let end = kernel.params.last().map_or(0, |p| p.offset + p.bytes) as usize;
    let mut block = vec![0; end];
    for (slot, param) in kernel.params.iter().zip(&launch.params) {
        let bytes = match param {
            Param::U32(v) => v.to_le_bytes().to_vec(),
            Param::U64(v) => v.to_le_bytes().to_vec(),
            Param::Bytes(b) => b.clone(),
            Param::TensorMap { buffer, map } => {
                let Some(b) = global.buffers.get(*buffer) else {
                    return Err(error(
                        format!("parameter `{}` maps buffer {buffer}, there are {}", slot.name, global.buffers.len()),
                        "Number buffers from 0.",
                    ));
                };
                let placed = TensorMap { address: b.base.wrapping_add(map.address), ..map.clone() };
                match placed.encode() {
                    Ok(object) => object.to_vec(),
                    Err(why) => {
                        let title = format!("the tensor map of parameter `{}` has {why}", slot.name);
                        return Err(error(title, "Keep to what cuTensorMapEncodeTiled takes."));
                    }
                }
            }
            Param::Pointer { buffer, offset } => match global.buffers.get(*buffer) {
                Some(b) => b.base.wrapping_add(*offset).to_le_bytes().to_vec(),
                None => {
                    return Err(error(
                        format!(
                            "parameter `{}` points to buffer {buffer}, there are {}",
                            slot.name,
                            global.buffers.len()
                        ),
                        "Number buffers from 0.",
                    ));
                }
            },
        };
        if bytes.len() != slot.bytes as usize {
            return Err(error(
                format!("parameter `{}` takes {} bytes, the launch gives {}", slot.name, slot.bytes, bytes.len()),
                "Give a value of the parameter's size.",
            ));
        }
        block[slot.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(block)
}
