//! Tensor maps that a kernel makes: `tensormap.replace`, `tensormap.cp_fenceproxy` and the fences that belong to them.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, wrong};
use crate::program::Bad;
use crate::program::atomic::{Scope, Sync};
use crate::program::op::{Op, Space};
use crate::syntax::ast::Operand;
use crate::tensor_map::{Field, FieldKind};

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let scope_of = |scope: &str| Sync::scope(scope).filter(|_| scope != "gl");
    match (base, mods) {
        ("tensormap", ["replace", "tile", field, rest @ ..]) => replace(l, field, rest, o),
        (
            "tensormap",
            ["cp_fenceproxy", "global", "shared::cta", "tensormap::generic", "release", scope, "sync", "aligned"],
        ) => {
            let Some(scope) = scope_of(scope) else { return Ok(None) };
            o.expect(3..=3)?;
            let (to, from) = (l.address(o.get(0)?)?, l.address(o.get(1)?)?);
            l.check_space(o.get(0)?, Space::Global, o.opcode)?;
            l.check_space(o.get(1)?, Space::Shared, o.opcode)?;
            whole_map(o, 2)?;
            let mut uses = base_of(&to);
            uses.extend(base_of(&from));
            Ok(Some(Decoded::new(Op::MapPublish { to, from, scope }, uses, vec![])))
        }
        ("fence", ["proxy", "tensormap::generic", "release", scope]) => {
            let Some(scope) = scope_of(scope) else { return Ok(None) };
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::MapRelease { scope }, vec![], vec![])))
        }
        ("fence", ["proxy", "tensormap::generic", "acquire", scope]) => {
            let Some(scope): Option<Scope> = scope_of(scope) else { return Ok(None) };
            o.expect(2..=2)?;
            let address = l.address(o.get(0)?)?;
            l.check_space(o.get(0)?, Space::Generic, o.opcode)?;
            whole_map(o, 1)?;
            Ok(Some(Decoded::new(Op::MapAcquire { address, scope }, base_of(&address), vec![])))
        }
        _ => Ok(None),
    }
}

/// The size of a map is an operand, and always 128.
fn whole_map(o: &Operands, n: usize) -> Result<(), Bad> {
    match o.get(n)? {
        Operand::Integer(128) => Ok(()),
        other => Err(wrong(
            format!("`{}` of {} bytes", o.opcode, describe(other)),
            "A tensor map has 128 bytes: write `128`.",
        )),
    }
}

fn replace(l: &mut Lowering, field: &str, mods: &[&str], o: &Operands) -> Family {
    let Some(kind) = FieldKind::of(field) else { return Ok(None) };
    let (space, ty) = match mods {
        ["shared::cta", "b1024", ty] => (Space::Shared, *ty),
        ["global", "b1024", ty] => (Space::Global, *ty),
        ["b1024", ty] => (Space::Generic, *ty),
        _ => return Ok(None),
    };
    let bytes = if kind.is_wide() { 8 } else { 4 };
    if ty != if bytes == 8 { "b64" } else { "b32" } {
        return Err(wrong(
            format!("`{}` with a value of `.{ty}`", o.opcode),
            format!("The value of `.{field}` is a `.b{}` (PTX ISA, tensormap.replace).", 8 * bytes),
        ));
    }
    let last = if kind.is_of_dimensions() { 2 } else { 1 };
    o.expect(last + 1..=last + 1)?;
    let address = l.address(o.get(0)?)?;
    l.check_space(o.get(0)?, space, o.opcode)?;
    let dimension = if last == 2 { o.get(1)?.clone() } else { Operand::Integer(0) };
    let Operand::Integer(dimension @ 0..=4) = dimension else {
        return Err(wrong(
            format!("`{}` of dimension {}", o.opcode, describe(&dimension)),
            "The dimension is a constant 0 to 4, innermost first.",
        ));
    };
    if kind == FieldKind::GlobalStride && dimension == 4 {
        return Err(wrong(
            format!("`{}` has no stride 4", o.opcode),
            "Strides are counted from that of dimension 1: 0 to 3.",
        ));
    }
    if let Some(most) = kind.most_code()
        && !matches!(o.get(last)?, Operand::Integer(code) if (0..=i64::from(most)).contains(code))
    {
        return Err(wrong(
            format!("`{}` with {} as its value", o.opcode, describe(o.get(last)?)),
            format!("The value of `.{field}` is a constant 0 to {most} (PTX ISA, tensormap.replace)."),
        ));
    }
    let value = l.source(o.get(last)?, bytes, false)?;
    let mut uses = base_of(&address);
    uses.push(value);
    let field = Field { kind, dimension: dimension as usize };
    Ok(Some(Decoded::new(Op::MapReplace { space, address, field, value }, uses, vec![])))
}
