//! Whether there is an opcode that a form leads to: forms list the modifiers of each place, and not all of them go together.

use super::spelling::of_a_form;
use super::{hints, tensor_forms};
use crate::program::arithmetic::convert::Conversion;
use crate::program::arithmetic::{alu, convert, narrow, stochastic};
use crate::program::layout::type_bytes;

/// Whether an opcode of a form is one that is decoded, with the operands that it takes.
pub(super) fn exists(parts: &[&str]) -> bool {
    match parts {
        ["ld" | "st", "async" | "bulk", ..] => true,
        [base @ ("ld" | "st"), mods @ ..] => {
            matches!(hints::check(*base == "ld", mods, ""), Ok(Some(()))) && moves_at_once(*base == "ld", mods)
        }
        ["cvt", flags @ .., to, from] => {
            let pair = to.strip_suffix("x2").filter(|half| matches!(*half, "f16" | "bf16") && *from == "f32");
            Conversion::of(flags, pair.unwrap_or(to), from).is_some()
                || convert::convert(flags, to, from).is_some()
                || narrow::convert(flags, to, from).is_some()
                || *from == "f32" && stochastic::convert(flags, to).is_some()
        }
        ["fma", flags @ .., ty] if !flags.contains(&"f32") => alu::alu("fma", flags, ty).is_some(),
        ["tcgen05", "ld" | "st", ..] => tensor_forms::check(&parts[1..]).is_ok(),
        _ => true,
    }
}

/// Whether one access moves so much: 16 bytes, in global memory also 32.
fn moves_at_once(load: bool, mods: &[&str]) -> bool {
    let bytes = mods.iter().find_map(|part| type_bytes(part)).unwrap_or(0);
    let lanes = mods.iter().find_map(|part| part.strip_prefix('v')?.parse::<u32>().ok()).unwrap_or(1);
    let elsewhere =
        ["const", "shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func"];
    match (lanes, bytes) {
        (8, 1 | 2) => !load,
        (8, 4) | (4, 8) => !mods.iter().any(|part| elsewhere.contains(part)),
        _ => lanes * bytes <= 16,
    }
}

/// Other words for a part: fewer elements or repetitions, and the type of most instructions.
fn instead(part: &str) -> &'static [&'static str] {
    match part {
        "v8" => &["v4", "v2"],
        "v4" => &["v2"],
        "x128" => &["x64", "x32", "x16"],
        "x64" => &["x32", "x16"],
        "x32" => &["x16"],
        _ if type_bytes(part).is_some() => &["b32", "b64"],
        _ => &[],
    }
}

/// Of the opcodes that this one becomes when modifiers are left out, and one is exchanged, those that there are.
pub(super) fn near(opcode: &str) -> Vec<String> {
    let parts: Vec<&str> = opcode.split('.').collect();
    if exists(&parts) {
        return vec![opcode.into()];
    }
    let count = parts.len().saturating_sub(1).min(10);
    let mut all = Vec::new();
    // Which modifiers stay.
    for stays in 0u32..1 << count {
        let kept: Vec<&str> = parts
            .iter()
            .enumerate()
            .filter(|(n, _)| *n == 0 || *n > count || stays >> (n - 1) & 1 == 1)
            .map(|(_, part)| *part)
            .collect();
        let others = (1..kept.len()).flat_map(|n| instead(kept[n]).iter().map(move |word| (n, *word)));
        for exchange in std::iter::once(None).chain(others.map(Some)) {
            let mut parts = kept.clone();
            if let Some((n, word)) = exchange {
                parts[n] = word;
            }
            if exists(&parts) && of_a_form(&parts).is_some_and(|ordered| ordered == parts) {
                all.push(parts.join("."));
            }
        }
    }
    all
}
