//! The PTX module around a kernel's instructions.

use crate::address::DYNAMIC_SHARED;
use crate::kernel::{Param, Region, RegionKind, Space};
use crate::register::Class;
use crate::state::State;
use std::fmt::Write;

/// The lowest version that knows `sm_100a` and `tcgen05`: an older driver then still takes the text.
const BLACKWELL: [&str; 2] = ["8.6", "sm_100a"];
/// The lowest version that knows multicast, `elect.sync` and `setmaxnreg`.
const HOPPER: [&str; 2] = ["8.0", "sm_90a"];

pub(crate) fn module(state: &State) -> String {
    let mut text = String::with_capacity(state.body.len() + 2048);
    // Writing to a String cannot fail.
    let _ = header(&mut text, state);
    text.push_str(&state.body);
    text.push_str("    ret;\n}\n");
    text
}

fn header(text: &mut String, state: &State) -> std::fmt::Result {
    writeln!(text, "// {} for {}", state.name, state.problem)?;
    let [version, target] = if state.hopper { HOPPER } else { BLACKWELL };
    writeln!(text, ".version {version}\n.target {target}\n.address_size 64\n")?;
    for (index, file) in state.files.iter().enumerate() {
        // Forward slashes everywhere, so that the same kernel gives the same text on every system.
        writeln!(text, ".file {} \"{}\"", index + 1, file.replace('\\', "/").replace('"', "'"))?;
    }
    if state.shared > 0 {
        writeln!(text, "\n// Bytes of dynamic shared memory: {}.", state.shared)?;
        for region in state.regions.iter().filter(|region| region.space == Space::DynamicShared) {
            let what = match region.kind {
                RegionKind::Tile { rows, columns, swizzle: 0, .. } => format!("tile, {rows} x {columns}, no swizzle"),
                RegionKind::Tile { rows, columns, swizzle, .. } => {
                    format!("tile, {rows} x {columns}, {swizzle}-byte swizzle")
                }
                RegionKind::Barrier => "mbarrier".to_string(),
                RegionKind::Scalar => "scalar".to_string(),
            };
            writeln!(text, "// {:>6} + {:<6} {}: {what}", region.offset, region.bytes, titled(region))?;
        }
        writeln!(text, ".extern .shared .align 1024 .b8 {DYNAMIC_SHARED}[];")?;
    }
    writeln!(text, "\n.visible .entry {}(", state.name)?;
    let params: Vec<String> = crate::tma::params(state)
        .iter()
        .map(|param| match param {
            // 16 bytes: what the widest loads and stores need.
            Param::Pointer(name) => format!("    .param .u64 .ptr .global .align 16 {name}"),
            Param::TensorMap(map) => format!("    .param .align 128 .b8 {}[128]", map.name),
        })
        .collect();
    writeln!(text, "{}\n)", params.join(",\n"))?;
    writeln!(text, ".reqntid {}, 1, 1", state.threads.unwrap_or_default())?;
    // Else ptxas, which does not know of the dynamic shared memory, keeps registers for CTAs that an SM has no room
    // for, and rather spills some of this one's.
    writeln!(text, ".minnctapersm 1")?;
    if state.cluster > 1 {
        writeln!(text, ".reqnctapercluster {}, 1, 1", state.cluster)?;
    }
    writeln!(text, "{{")?;
    for class in Class::ALL {
        let count = state.count(class);
        if count > 0 {
            // Numbers begin at 1.
            writeln!(text, "    .reg {} {}<{}>;", class.declared(), class.prefix(), count + 1)?;
        }
    }
    writeln!(text)
}

/// The name of a region, with its stage.
fn titled(region: &Region) -> String {
    match region.stage {
        Some(stage) => format!("{}[{stage}]", region.name),
        None => region.name.clone(),
    }
}
