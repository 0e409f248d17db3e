//! What is checked before anything runs, and the parameter block.

use crate::MAX_SHARED;
use crate::diagnostic::{Diagnostic, Label, Place, Severity};
use crate::launch::param::Extent;
use crate::launch::{Content, Launch, Param, RegionSpace};
use crate::machine::cluster::cluster_extent;
use crate::machine::explain::names::counted;
use crate::machine::memory::extents;
use crate::machine::tensor_memory::COLUMNS;
use crate::program::op::Op;
use crate::program::{Kernel, Program};
use rustc_hash::FxHashMap;

/// CTAs of a launch, at most: more would take hours.
const MAX_CTAS: u64 = 1 << 20;
/// 32-bit registers of an SM (CUDA C++ Programming Guide, technical specifications, 9.0 and 10.0).
const REGISTERS: u64 = 1 << 16;
/// Bytes of all buffers, at most: 4 GiB.
const MAX_GLOBAL: u64 = 1 << 32;

/// Says what is wrong with a launch, without running it. [`crate::run`] checks the same first.
///
/// # Errors
/// All that does not fit the kernel, the GPU or the emulator. A label whose place has line 0 names the field of the launch
/// description in its text, e.g. `params[2].pointer.buffer`.
pub fn check(program: &Program, launch: &Launch) -> Result<(), Vec<Diagnostic>> {
    prepare(program, launch).map(|_| ())
}

/// The kernel of a launch, and its parameter block.
pub fn prepare<'p>(program: &'p Program, launch: &Launch) -> Result<(&'p Kernel, Vec<u8>), Vec<Diagnostic>> {
    let kernel = fits(program, launch)?;
    let mut sizes = Vec::new();
    let mut errors = Vec::new();
    let mut total = 0u64;
    for (n, buffer) in launch.buffers.iter().enumerate() {
        let named = format!("buffer {n} (`{}`)", buffer.name);
        match buffer.content.size() {
            Ok(bytes) => {
                sizes.push(bytes);
                total = total.saturating_add(bytes);
                if total > MAX_GLOBAL {
                    errors.push(wrong(
                        &format!("buffers[{n}].content"),
                        format!("with {named}, {bytes} bytes, the buffers take {total} bytes"),
                        format!("All buffers together take at most {MAX_GLOBAL} bytes: launch a smaller problem."),
                        None,
                    ));
                    break;
                }
            }
            Err(why) => errors.push(wrong(
                &format!("buffers[{n}].content"),
                format!("{named} holds {why}"),
                "Give content that can be made.".into(),
                None,
            )),
        }
    }
    for (first, n, name) in repeated(launch.buffers.iter().map(|buffer| buffer.name.as_str())) {
        errors.push(wrong(
            &format!("buffers[{n}].name"),
            format!("buffers {first} and {n} have one name, `{name}`"),
            "Give each buffer a name of its own: messages call it by that.".into(),
            None,
        ));
    }
    if launch.attributes.resident_clusters == Some(0) {
        errors.push(wrong(
            "attributes.resident_clusters",
            "no cluster may run: `resident_clusters` is 0".into(),
            "Allowed: 1 or more. Left out, as many run as the GPU has room for.".into(),
            None,
        ));
    }
    for (n, &buffer) in launch.attributes.prerequisite_writes.iter().enumerate() {
        if buffer >= launch.buffers.len() {
            errors.push(wrong(
                &format!("attributes.prerequisite_writes[{n}]"),
                format!(
                    "there is no buffer {buffer}: the launch has {}",
                    counted(launch.buffers.len() as u64, "buffer")
                ),
                "Number buffers from 0.".into(),
                None,
            ));
        }
    }
    for (first, n, file) in repeated(launch.outputs.iter().map(|output| output.file.as_str())) {
        errors.push(wrong(
            &format!("outputs[{n}].file"),
            format!("outputs {first} and {n} go to one file, `{file}`"),
            "Give each output a file of its own.".into(),
            None,
        ));
    }
    for (n, output) in launch.outputs.iter().enumerate() {
        if output.buffer >= launch.buffers.len() {
            errors.push(wrong(
                &format!("outputs[{n}].buffer"),
                format!(
                    "output {n} names buffer {}, the launch has {}",
                    output.buffer,
                    counted(launch.buffers.len() as u64, "buffer")
                ),
                "Number buffers from 0.".into(),
                None,
            ));
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let extents = extents(&sizes);
    for (n, buffer) in launch.buffers.iter().enumerate() {
        if let Content::Struct(block) = &buffer.content {
            let path = format!("buffers[{n}].content.struct");
            block.bytes(&path, &extents).map_err(|(field, why)| {
                vec![wrong(&field, format!("buffer {n} {why}"), way_out(&field, None), None)]
            })?;
        }
    }
    let params = parameters(kernel, launch, &extents).map_err(|error| vec![*error])?;
    Ok((kernel, params))
}

/// Names that stand in a list before: the number of the first that has the name, its own, and the name.
fn repeated<'n>(names: impl Iterator<Item = &'n str>) -> impl Iterator<Item = (usize, usize, &'n str)> {
    let mut seen = FxHashMap::default();
    names.enumerate().filter_map(move |(n, name)| {
        let first = *seen.entry(name).or_insert(n);
        (first < n).then_some((first, n, name))
    })
}

/// A diagnostic about a field of the launch description.
fn wrong(field: &str, title: String, help: String, kernel: Option<&Kernel>) -> Diagnostic {
    let mut labels: Vec<Label> = kernel.map(|k| Label::new(k.place.clone(), "this kernel")).into_iter().collect();
    if !field.is_empty() {
        let place = Place { text: field.into(), ..Default::default() };
        labels.push(Label::new(place, format!("`{field}` of the launch description")));
    }
    Diagnostic {
        code: "launch",
        severity: Severity::Error,
        title,
        labels,
        rule: "A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming \
               Guide, compute capabilities 9.0 and 10.0)."
            .into(),
        help,
        count: 1,
        confirmed: None,
    }
}

/// The kernel, if the launch fits it.
fn fits<'p>(program: &'p Program, launch: &Launch) -> Result<&'p Kernel, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    let mut error = |code, field: &str, title: String, help: String, kernel: Option<&Kernel>| {
        errors.push(Diagnostic { code, ..wrong(field, title, help, kernel) });
    };
    let Some(kernel) = program.kernels.iter().find(|k| k.name == launch.entry) else {
        if let Some((_, errors)) = program.refused.iter().find(|(name, _)| *name == launch.entry) {
            return Err(errors.clone());
        }
        let help = match program.entries().as_slice() {
            [] => format!(
                "The module has no entry: begin one with `.visible .entry {}( … )`; a `.func` cannot be launched.",
                launch.entry
            ),
            names => format!("The module has: {}.", names.join(", ")),
        };
        error("launch", "entry", format!("there is no entry `{}`", launch.entry), help, None);
        return Err(errors);
    };
    let k = Some(kernel);
    let [x, y, z] = launch.block;
    let threads = u64::from(x).saturating_mul(u64::from(y)).saturating_mul(u64::from(z));
    if threads == 0 || threads > 1024 || z > 64 {
        error(
            "launch",
            "block",
            format!("a CTA of {x} × {y} × {z} threads"),
            "1 to 1024 threads, z up to 64.".into(),
            k,
        );
    } else if let Some(required) = kernel.required_threads.filter(|r| *r != launch.block) {
        error(
            "launch",
            "block",
            format!(
                "launched with CTAs of {} threads, the kernel requires {} (`.reqntid`)",
                sizes(launch.block),
                sizes(required)
            ),
            "Launch with the required block, or change `.reqntid`.".into(),
            k,
        );
    } else if let Some(most) = kernel.max_threads.filter(|&m| threads > u64::from(m)) {
        error(
            "launch",
            "block",
            format!("launched with {threads} threads a CTA, the kernel allows {most} (`.maxntid`)"),
            "Launch fewer threads, or raise `.maxntid`.".into(),
            k,
        );
    }
    // With setmaxnreg the assembler gives each thread all that `.maxnreg` allows, up to what an .inc asks for, whatever it needs (ptxas 13.5: of
    // `.maxnreg 168` "Used 168 registers", and 152 where that is what the .inc asks for).
    let pools = kernel.code.iter().any(|inst| matches!(inst.op, Op::SetRegisters { .. }));
    if let Some(each) = kernel.max_registers.filter(|_| pools).map(|n| u64::from(n.next_multiple_of(8))) {
        let all = each.saturating_mul(threads.next_multiple_of(32));
        if threads <= 1024 && all > REGISTERS {
            error(
                "launch",
                "block",
                format!(
                    "{threads} threads with {each} registers each (`.maxnreg`, which setmaxnreg makes the number they begin with) need {all}"
                ),
                format!(
                    "An SM has {REGISTERS} registers: lower `.maxnreg` to {}, or launch fewer threads.",
                    REGISTERS / threads.next_multiple_of(32) / 8 * 8
                ),
                k,
            );
        }
    }
    let grid = launch.grid.map(u64::from);
    if grid.contains(&0) || grid[0] > i32::MAX as u64 || grid[1] > 65535 || grid[2] > 65535 {
        error(
            "launch",
            "grid",
            format!("a grid of {} CTAs", sizes(launch.grid)),
            "x up to 2³¹−1, y and z up to 65535, none 0.".into(),
            k,
        );
    } else if grid.iter().product::<u64>() > MAX_CTAS {
        error(
            "not-modelled",
            "grid",
            format!("a grid of {} CTAs is more than this emulator runs", sizes(launch.grid)),
            format!("Launch up to {MAX_CTAS} CTAs: a smaller problem shows the same mistakes."),
            k,
        );
    }
    let extent = cluster_extent(kernel, launch);
    // What a module requires may be any numbers.
    let ctas = extent.iter().fold(1, |all: u64, &d| all.saturating_mul(u64::from(d)));
    if let Some(required) = kernel.required_cluster.filter(|r| *r != extent) {
        error(
            "launch",
            "cluster",
            format!(
                "launched with clusters of {} CTAs, the kernel requires {} (`.reqnctapercluster`)",
                sizes(extent),
                sizes(required)
            ),
            "Launch with the required cluster, or change the directive.".into(),
            k,
        );
    } else if kernel.explicit_cluster && kernel.required_cluster.is_none() && launch.cluster == [1, 1, 1] {
        error(
            "launch",
            "cluster",
            "launched without clusters, the kernel requires them (`.explicitcluster`)".into(),
            "Launch with the cluster that the kernel is written for, or let the kernel say it: `.reqnctapercluster`."
                .into(),
            k,
        );
    } else if let Some(most) = kernel.max_cluster.filter(|&most| ctas > u64::from(most)) {
        error(
            "launch",
            "cluster",
            format!("launched with clusters of {ctas} CTAs, the kernel allows {most} (`.maxclusterrank`)"),
            "Launch with smaller clusters, or raise `.maxclusterrank`.".into(),
            k,
        );
    } else if ctas == 0 || ctas > 16 {
        error(
            "launch",
            "cluster",
            format!("clusters of {} CTAs", sizes(extent)),
            "1 to 16 CTAs (more than 8 are opt-in).".into(),
            k,
        );
    } else if (0..3).any(|n| !launch.grid[n].is_multiple_of(extent[n])) {
        error(
            "launch",
            "grid",
            format!("a grid of {} CTAs in clusters of {}", sizes(launch.grid), sizes(extent)),
            match (0..3).find(|&n| !launch.grid[n].is_multiple_of(extent[n])) {
                Some(n) => {
                    let (axis, below) = (["x", "y", "z"][n], launch.grid[n] / extent[n] * extent[n]);
                    let below = if below == 0 { String::new() } else { format!("{below} or ") };
                    format!(
                        "Each size of the grid must be a multiple of the cluster's: in {axis}, {} is none of {}; {below}{} is.",
                        launch.grid[n],
                        extent[n],
                        launch.grid[n].next_multiple_of(extent[n])
                    )
                }
                None => String::new(),
            },
            k,
        );
    }
    let shared =
        u64::from(kernel.dynamic_start) - u64::from(crate::program::RESERVED_SHARED) + u64::from(launch.dynamic_shared);
    if shared > u64::from(MAX_SHARED) {
        error(
            "launch",
            "dynamic_shared",
            format!(
                "{shared} bytes of shared memory a CTA ({} static, {} dynamic)",
                kernel.dynamic_start - crate::program::RESERVED_SHARED,
                launch.dynamic_shared
            ),
            format!("A CTA has at most {MAX_SHARED} bytes (227 KB): use fewer stages or smaller tiles."),
            k,
        );
    }
    for (n, region) in launch.regions.iter().enumerate() {
        let (most, of) = match region.space {
            RegionSpace::DynamicShared => (launch.dynamic_shared, "bytes of dynamic shared memory that the launch has"),
            RegionSpace::Tensor => (COLUMNS, "columns of tensor memory"),
        };
        let end = u64::from(region.offset) + u64::from(region.bytes);
        if end > u64::from(most) {
            error(
                "launch",
                &format!("regions[{n}]"),
                format!("region `{}` ends at {end}, beyond the {most} {of}", region.name),
                "Let `offset` and `bytes` together come to no more than that: messages and traces go by regions."
                    .into(),
                k,
            );
        }
    }
    if errors.is_empty() { Ok(kernel) } else { Err(errors) }
}

/// Sizes along x, y and z.
fn sizes([x, y, z]: [u32; 3]) -> String {
    format!("{x} × {y} × {z}")
}

/// What to do about a value that cannot be placed.
fn way_out(field: &str, value: Option<&Param>) -> String {
    if let (Some((_, of_map)), Some(Param::TensorMap { map, .. })) = (field.rsplit_once(".tensor_map.map."), value)
        && let Some(cure) = map.cure(of_map)
    {
        return cure;
    }
    let plain = match field.rsplit('.').next() {
        Some("buffer") => "Number buffers from 0, in their order.",
        Some("offset") => "Give a byte within the buffer, or make the buffer larger.",
        _ if field.contains(".tensor_map.map") => "Keep to what cuTensorMapEncodeTiled takes.",
        _ => "Keep the block within its bounds, and its values within the block.",
    };
    plain.into()
}

/// Of the object that `cuTensorMapEncodeTiled` makes.
const TENSOR_MAP_BYTES: u32 = 128;

/// The kernel's parameter block, for buffers at these addresses.
fn parameters(kernel: &Kernel, launch: &Launch, buffers: &[Extent]) -> Result<Vec<u8>, Box<Diagnostic>> {
    let error = |field: &str, title: String, help: &str| {
        Box::new(Diagnostic {
            rule: "A launch gives each parameter of the entry one value of its type and size.".into(),
            ..wrong(field, title, help.into(), Some(kernel))
        })
    };
    let end = kernel.params.last().map_or(0, |p| p.offset + p.bytes) as usize;
    if let Some(given) = &launch.param_block {
        if !launch.params.is_empty() {
            return Err(error(
                "params",
                format!(
                    "the launch gives {} and a whole parameter block",
                    counted(launch.params.len() as u64, "parameter")
                ),
                "Give `params` or `param_block`, not both.",
            ));
        }
        let mut block = given
            .bytes("param_block", buffers)
            .map_err(|(field, why)| error(&field, format!("the parameter block {why}"), &way_out(&field, None)))?;
        if block.len() < end {
            return Err(error(
                "param_block.size",
                format!("the kernel's parameters take {}, the block has {}", counted(end as u64, "byte"), block.len()),
                "Give the whole block, also what lies between parameters.",
            ));
        }
        block.truncate(end);
        return Ok(block);
    }
    if kernel.params.len() != launch.params.len() {
        return Err(error(
            "params",
            format!(
                "the kernel has {}, the launch gives {}",
                counted(kernel.params.len() as u64, "parameter"),
                launch.params.len()
            ),
            &match kernel.params.as_slice() {
                [] => "It has none: leave `params` out, or empty.".to_string(),
                slots => {
                    let all: Vec<String> = slots.iter().map(|slot| format!("`{}` (.{})", slot.name, slot.ty)).collect();
                    format!("Give one value for each parameter, in order: {}.", all.join(", "))
                }
            },
        ));
    }
    let mut block = vec![0; end];
    for (n, (slot, value)) in kernel.params.iter().zip(&launch.params).enumerate() {
        let field = format!("params[{n}]");
        let bytes = value.bytes(&field, buffers).map_err(|(field, why)| {
            error(&field, format!("parameter `{}` {why}", slot.name), &way_out(&field, Some(value)))
        })?;
        let (kind, fits) = value.fits(&slot.ty);
        if !fits {
            let ty = &slot.ty;
            return Err(error(
                &field,
                format!("parameter `{}` is of type `.{ty}`, the launch gives {kind}", slot.name),
                &format!("Give a value of its type: `{{ \"{ty}\": … }}`, or its bits as `bytes`."),
            ));
        }
        if bytes.len() != slot.bytes as usize {
            return Err(error(
                &field,
                format!(
                    "parameter `{}` takes {}, the launch gives {}{}",
                    slot.name,
                    counted(slot.bytes, "byte"),
                    match value {
                        Param::TensorMap { .. } => "a tensor map, which has ",
                        Param::Pointer { .. } => "an address, which has ",
                        _ => "",
                    },
                    bytes.len()
                ),
                &match slot.ty.as_str() {
                    "u64" | "b64" | "s64" if matches!(value, Param::TensorMap { .. }) => format!(
                        "It is of type `.{}`: give a buffer's address, `{{ \"pointer\": {{ \"buffer\": 0 }} }}`; or make the kernel's parameter one of {} bytes, `.param .align 64 .b8 {}[{}]`.",
                        slot.ty,
                        bytes.len(),
                        slot.name,
                        bytes.len(),
                    ),
                    "u64" | "b64" | "s64" => format!(
                        "It is of type `.{}`: give a buffer's address, `{{ \"pointer\": {{ \"buffer\": 0 }} }}`, or a number, `{{ \"u64\": … }}`.",
                        slot.ty
                    ),
                    ty if ty.starts_with('b') && slot.bytes == TENSOR_MAP_BYTES => {
                        "A parameter of 128 bytes mostly is a tensor map: give `{ \"tensor_map\": { \"buffer\": 0, \"map\": … } }`; or its bytes as `bytes`, or as a `struct`.".into()
                    }
                    ty if ty.starts_with('b') => {
                        format!("Give its {} as `bytes`, or as a `struct`.", counted(slot.bytes, "byte"))
                    }
                    ty => format!("It is of type `.{ty}`: give `{{ \"{ty}\": … }}`."),
                },
            ));
        }
        block[slot.offset as usize..][..bytes.len()].copy_from_slice(&bytes);
    }
    Ok(block)
}
