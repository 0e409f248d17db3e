//! Sizes and alignments of variables.

use super::Bad;
use super::lower::wrong;
use crate::syntax::ast::Variable;

/// Bytes of a scalar type, `None` if unknown.
pub(super) fn type_bytes(ty: &str) -> Option<u32> {
    Some(match ty {
        "b8" | "u8" | "s8" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" | "tf32" => 4,
        "b64" | "u64" | "s64" | "f64" | "f32x2" => 8,
        "b128" => 16,
        _ => return None,
    })
}

pub(super) fn next_multiple(value: u32, align: u32) -> u32 {
    value.checked_next_multiple_of(align.max(1)).unwrap_or(value)
}

/// Size and alignment of a variable.
pub(super) fn layout(variable: &Variable) -> Result<(u32, u32), Bad> {
    let element = type_bytes(&variable.ty).ok_or_else(|| {
        wrong(
            format!("`{}` has the unknown type `.{}`", variable.name, variable.ty),
            "Use one of .b8 … .b128, .u8 … .u64, .s8 … .s64, .f16, .f32, .f64.",
        )
    })?;
    let lanes = match variable.vector.as_deref() {
        Some("v2") => 2,
        Some("v4") => 4,
        Some("v8") => 8,
        _ => 1,
    };
    let mut bytes = u64::from(element * lanes);
    let align = variable.align.unwrap_or(element * lanes).max(1);
    // An array without a size has as many elements as its initialiser, in whole rows.
    let rest = variable.dimensions.iter().skip(1).map(|d| d.unwrap_or(0)).fold(u64::from(lanes), u64::saturating_mul);
    let listed = (variable.initial.len() as u64).checked_div(rest).unwrap_or(0);
    let listed = listed + u64::from(listed * rest < variable.initial.len() as u64);
    for dimension in &variable.dimensions {
        bytes = bytes.saturating_mul(dimension.unwrap_or(listed));
    }
    if bytes > 1 << 28 || !align.is_power_of_two() || align > 1 << 16 {
        return Err(wrong(
            format!("`{}` takes {bytes} bytes aligned to {align}", variable.name),
            "Sizes go up to 256 MiB, alignments are powers of two up to 65536.",
        ));
    }
    Ok((bytes as u32, align))
}
