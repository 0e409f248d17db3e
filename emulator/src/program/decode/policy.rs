//! `createpolicy`: the value is opaque, and what takes it changes speed only.

use super::{Decoded, Family, Lowering, Operands, base as base_of, wrong};
use crate::program::op::{Op, Reg};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let ("createpolicy", [kind, rest @ .., "b64"]) = (base, mods) else { return Ok(None) };
    let Some(f) = crate::program::arithmetic::alu::alu("mov", &[], "b64") else { return Ok(None) };
    if *kind == "cvt" {
        o.expect(2..=2)?;
        let (d, s) = (l.destination64(o.get(0)?)?, l.source64(o.get(1)?)?);
        return Ok(Some(Decoded::new(Op::Alu { f, d, s: [s, 0, 0] }, vec![Reg::B64(s)], vec![Reg::B64(d)])));
    }
    let rest = rest.strip_prefix(&["global"]).unwrap_or(rest);
    let value = match rest.first() {
        Some(&"L2::evict_first") => 0x12f0_0000_0000_0000,
        Some(&"L2::evict_last") => 0x14f0_0000_0000_0000,
        Some(&"L2::evict_normal") => 0x1000_0000_0000_0000,
        Some(&"L2::evict_unchanged") => 0x16f0_0000_0000_0000,
        _ => return Ok(None),
    };
    if !matches!(rest, [_] | [_, "L2::evict_unchanged" | "L2::evict_first"]) {
        return Ok(None);
    }
    let mut uses = Vec::new();
    match *kind {
        "fractional" => fraction(l, o)?,
        "range" => uses.extend(range(l, o)?),
        _ => return Ok(None),
    }
    let (d, s) = (l.destination64(o.get(0)?)?, l.constant64(value)?);
    uses.push(Reg::B64(s));
    Ok(Some(Decoded::new(Op::Alu { f, d, s: [s, 0, 0] }, uses, vec![Reg::B64(d)])))
}

fn fraction(l: &mut Lowering, o: &Operands) -> Result<(), crate::program::Bad> {
    o.expect(1..=2)?;
    if o.len() == 1 {
        return Ok(());
    }
    let fraction = match o.get(1)? {
        Operand::Float32(bits) => f64::from(f32::from_bits(*bits)),
        Operand::Float64(bits) => f64::from_bits(*bits),
        _ => 1.0,
    };
    if !(fraction > 0.0 && fraction <= 1.0) {
        let help = "It is more than 0 and at most 1 (PTX ISA, createpolicy).";
        return Err(wrong(format!("the fraction of `createpolicy` is {fraction}"), help));
    }
    l.source32(o.get(1)?, true).map(|_| ())
}

/// The address, and the two sizes.
fn range(l: &mut Lowering, o: &Operands) -> Result<Vec<Reg>, crate::program::Bad> {
    o.expect(4..=4)?;
    let mut uses = base_of(&l.address(o.get(1)?)?);
    uses.push(Reg::B32(l.source32(o.get(2)?, false)?));
    uses.push(Reg::B32(l.source32(o.get(3)?, false)?));
    Ok(uses)
}
