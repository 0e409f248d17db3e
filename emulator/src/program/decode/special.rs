//! The special registers: those that are modelled, and the names of the others.

use crate::program::op::Special;

/// The register of an axis.
type Axis = fn(u8) -> Special;

/// A register for each of x, y and z (and w, always 0 or 1, which PTX has as well).
const OF_AXES: &[(&str, Axis)] = &[
    ("%tid", Special::Tid),
    ("%ntid", Special::Ntid),
    ("%ctaid", Special::Ctaid),
    ("%nctaid", Special::Nctaid),
    ("%clusterid", Special::ClusterId),
    ("%nclusterid", Special::NclusterId),
    ("%cluster_ctaid", Special::ClusterCtaid),
    ("%cluster_nctaid", Special::ClusterNctaid),
];

const PLAIN: &[(&str, Special)] = &[
    ("%laneid", Special::Lane),
    ("%warpid", Special::Warp),
    ("%nwarpid", Special::Nwarp),
    ("%cluster_ctarank", Special::ClusterRank),
    ("%cluster_nctarank", Special::ClusterNrank),
    ("%smid", Special::Sm),
    ("%nsmid", Special::Nsm),
    ("%clock", Special::Clock),
    ("%clock64", Special::Clock),
    ("%globaltimer", Special::Timer(0)),
    ("%globaltimer_lo", Special::Timer(0)),
    ("%globaltimer_hi", Special::Timer(32)),
    ("%dynamic_smem_size", Special::DynamicShared),
    ("%lanemask_eq", Special::LaneMask(0)),
    ("%lanemask_le", Special::LaneMask(1)),
    ("%lanemask_lt", Special::LaneMask(2)),
    ("%lanemask_ge", Special::LaneMask(3)),
    ("%lanemask_gt", Special::LaneMask(4)),
];

/// Special registers of the PTX ISA (chapter 10) that are not modelled.
const OTHERS: &[&str] =
    &["%gridid", "%is_explicit_cluster", "%clock_hi", "%total_smem_size", "%aggr_smem_size", "%current_graph_exec"];

/// The special register of this name.
pub fn special(name: &str) -> Option<Special> {
    if let Some((base, axis)) = name.rsplit_once('.') {
        let axis = ["x", "y", "z", "w"].iter().position(|a| *a == axis)? as u8;
        return OF_AXES.iter().find(|(known, _)| *known == base).map(|(_, of)| of(axis));
    }
    PLAIN.iter().find(|(known, _)| *known == name).map(|(_, which)| *which)
}

/// Whether PTX has a special register of this name that is not modelled.
pub fn exists(name: &str) -> bool {
    let numbered = ["%pm", "%envreg", "%reserved_smem_offset_"];
    OTHERS.contains(&name) || numbered.iter().any(|first| name.starts_with(first))
}

/// The names of those that are modelled, as they are written.
pub fn special_registers() -> Vec<String> {
    let axes = OF_AXES.iter().flat_map(|(name, _)| ["x", "y", "z"].map(|axis| format!("{name}.{axis}")));
    axes.chain(PLAIN.iter().map(|(name, _)| name.to_string())).collect()
}
