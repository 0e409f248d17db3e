//! How often each kind of instruction stands in the PTX text.

use super::table::Row;
use emulator::syntax::ast::Instruction;
use std::collections::{BTreeMap, BTreeSet};

/// Families of instructions of which modifiers matter, in the order in which they are shown.
const FAMILIES: [&str; 15] = [
    "tcgen05", "cp", "mbarrier", "fence", "membar", "bar", "barrier", "elect", "ld", "st", "red", "atom", "mapa",
    "prefetch", "bra",
];

/// All others together: a kernel has many, and they say little.
const OTHERS: &str = "arithmetic, moves";

/// Modifiers that say how, not what.
const DETAILS: [&str; 8] = [
    "sync",
    "aligned",
    "tile",
    "mbarrier::complete_tx::bytes",
    "bulk_group",
    "mbarrier::arrive::one",
    "parity",
    "param",
];

/// An opcode without what does not matter for what it does: types and details.
fn kind(opcode: &str) -> String {
    let mut parts = opcode.split('.');
    let first = parts.next().unwrap_or_default();
    let family = first.split("::").next().unwrap_or_default();
    if !FAMILIES.contains(&family) {
        return OTHERS.to_string();
    }
    let mut kept = vec![first];
    for part in parts {
        let state_space = part.strip_suffix("::cta").or_else(|| part.strip_suffix("::cluster"));
        match (family, part) {
            (_, part) if is_type(part) || (DETAILS.contains(&part) && first != "ld") => {}
            // A copy's direction; elsewhere it says only where the barrier lies.
            (_, "shared::cta" | "shared::cluster") if ["ld", "st", "cp"].contains(&family) => {
                kept.extend(state_space);
            }
            (_, "shared::cta" | "shared::cluster") => {}
            _ => kept.push(part),
        }
    }
    kept.join(".")
}

/// `b32`, `u64`, `f16`, `bf16x2`, `pred`.
fn is_type(part: &str) -> bool {
    let digits = part.trim_start_matches("bf").trim_start_matches(['b', 'u', 's', 'f']);
    let sized = digits.len() < part.len() && digits.starts_with(|c: char| c.is_ascii_digit());
    part == "pred" || (sized && digits.chars().all(|c| c.is_ascii_digit() || c == 'x'))
}

/// How often each kind stands there.
pub(super) fn counts(instructions: &[Instruction]) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for instruction in instructions {
        *counts.entry(kind(&instruction.opcode)).or_default() += 1;
    }
    counts
}

/// The kinds whose number differs, tensor core and copies first, and the sum of all.
pub(super) fn rows(counts: &[BTreeMap<String, usize>; 2]) -> Vec<Row> {
    let kinds: BTreeSet<&String> = counts.iter().flat_map(BTreeMap::keys).collect();
    let mut rows: Vec<(usize, Row)> = Vec::new();
    for kind in kinds {
        let [old, new] = counts.each_ref().map(|counts| counts.get(kind).copied().unwrap_or(0));
        if old != new {
            let family = kind.split(['.', ':']).next().unwrap_or_default();
            let order = FAMILIES.iter().position(|known| *known == family).unwrap_or(FAMILIES.len());
            rows.push((order, row(kind, old, new)));
        }
    }
    rows.sort_by_key(|(order, _)| *order);
    let [old, new] = counts.each_ref().map(|counts| counts.values().sum());
    rows.push((usize::MAX, row("all", old, new)));
    rows.into_iter().map(|(_, row)| row).collect()
}

fn row(label: &str, old: usize, new: usize) -> Row {
    let (old_cell, mut new_cell) = (format!("{old:>5}"), format!("{new:>5}"));
    if new > old {
        new_cell.push_str(&format!("  +{}", new - old));
    } else if old > new {
        new_cell.push_str(&format!("  -{}", old - new));
    }
    Row { label: label.to_string(), cells: [Some(old_cell), Some(new_cell)] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_of_an_opcode() {
        for (opcode, expected) in [
            ("mad.lo.u32", OTHERS),
            ("bar.sync", "bar"),
            ("tcgen05.mma.cta_group::2.kind::f16", "tcgen05.mma.cta_group::2.kind::f16"),
            ("tcgen05.ld.sync.aligned.32x32b.x64.b32", "tcgen05.ld.32x32b.x64"),
            ("tcgen05.wait::ld.sync.aligned", "tcgen05.wait::ld"),
            ("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64", "tcgen05.commit.cta_group::1"),
            (
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes",
                "cp.async.bulk.tensor.2d.shared.global",
            ),
            ("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group", "cp.async.bulk.tensor.2d.global.shared"),
            ("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64", "mbarrier.try_wait.acquire.cluster"),
            ("fence.mbarrier_init.release.cluster", "fence.mbarrier_init.release.cluster"),
            ("st.global.v4.b32", "st.global.v4"),
            ("ld.param.u64", "ld.param"),
            ("ld.shared.b32", "ld.shared"),
        ] {
            assert_eq!(kind(opcode), expected);
        }
    }
}
