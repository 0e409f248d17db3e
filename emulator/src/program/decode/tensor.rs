//! Tensor memory and the tensor core: `tcgen05.*`.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, tensor_forms, wrong};
use crate::program::Bad;
use crate::program::kind::Kind;
use crate::program::lower::not_modelled;
use crate::program::op::{
    Address, MmaA, MmaFactors, MmaOp, Op, Packed, Reg, TensorCopyOp, TensorCopyShape, TensorShape,
};
use crate::program::tensor_core::Collector;
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    if base != "tcgen05" {
        return Ok(None);
    }
    // `cta_group::2` works for the two CTAs of a pair; an instruction that has it is decoded as that of one CTA.
    let pair = mods.contains(&"cta_group::2");
    let single: Vec<&str> = mods.iter().map(|m| if *m == "cta_group::2" { "cta_group::1" } else { *m }).collect();
    if mods.iter().any(|m| m.starts_with("cta_group::")) {
        l.cta_group(if pair { 2 } else { 1 }, o.opcode)?;
    }
    match single.as_slice() {
        ["alloc", "cta_group::1", "sync", "aligned", "b32"]
        | ["alloc", "cta_group::1", "sync", "aligned", "shared::cta", "b32"] => {
            o.expect(2..=2)?;
            let address = l.address(o.get(0)?)?;
            let columns = l.source32(o.get(1)?, false)?;
            let mut uses = base_of(&address);
            uses.push(Reg::B32(columns));
            Ok(Some(Decoded::new(Op::TensorAlloc { address, columns, pair }, uses, vec![])))
        }
        ["dealloc", "cta_group::1", "sync", "aligned", "b32"] => {
            o.expect(2..=2)?;
            let (tensor, columns) = (l.source32(o.get(0)?, false)?, l.source32(o.get(1)?, false)?);
            let uses = vec![Reg::B32(tensor), Reg::B32(columns)];
            Ok(Some(Decoded::new(Op::TensorFree { tensor, columns }, uses, vec![])))
        }
        ["relinquish_alloc_permit", "cta_group::1", "sync", "aligned"] => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::TensorRelinquish, vec![], vec![])))
        }
        [op @ ("ld" | "st"), "sync", "aligned", "16x32bx2", times, packed @ .., "b32"]
            if matches!((*op, packed), (_, []) | ("ld", ["pack::16b"]) | ("st", ["unpack::16b"])) =>
        {
            let Some(registers) = tensor_forms::repetitions(times, 1) else { return none(mods) };
            let load = *op == "ld";
            let offset = tensor_forms::distance(op, o.list, if load { 2 } else { 1 })?;
            let shape = TensorShape::S16x32bx2 { offset };
            let tensor = tensor_address(l, o.get(if load { 1 } else { 0 })?)?;
            let regs = list(l, o.get(if load { 0 } else { 2 })?, registers as usize, load)?;
            let all = regs.iter().map(|&r| Reg::B32(r)).collect::<Vec<_>>();
            let mut uses = base_of(&tensor);
            if load {
                return Ok(Some(Decoded::new(
                    Op::TensorLoad { shape, tensor, d: regs.into(), pack: !packed.is_empty() },
                    uses,
                    all,
                )));
            }
            uses.extend(all);
            let unpack = !packed.is_empty();
            Ok(Some(Decoded::new(Op::TensorStore { shape, tensor, s: regs.into(), unpack }, uses, vec![])))
        }
        ["ld", "sync", "aligned", shape, times, pack @ .., "b32"] if matches!(pack, [] | ["pack::16b"]) => {
            let Some((shape, registers)) = tensor_forms::shaped(shape, times) else { return none(mods) };
            o.expect(2..=2)?;
            let d = list(l, o.get(0)?, registers, true)?;
            let tensor = tensor_address(l, o.get(1)?)?;
            let defs = d.iter().map(|&r| Reg::B32(r)).collect();
            Ok(Some(Decoded::new(
                Op::TensorLoad { shape, tensor, d: d.into(), pack: !pack.is_empty() },
                base_of(&tensor),
                defs,
            )))
        }
        ["st", "sync", "aligned", shape, times, unpack @ .., "b32"] if matches!(unpack, [] | ["unpack::16b"]) => {
            let Some((shape, registers)) = tensor_forms::shaped(shape, times) else { return none(mods) };
            o.expect(2..=2)?;
            let tensor = tensor_address(l, o.get(0)?)?;
            let s = list(l, o.get(1)?, registers, false)?;
            let mut uses = base_of(&tensor);
            uses.extend(s.iter().map(|&r| Reg::B32(r)));
            Ok(Some(Decoded::new(
                Op::TensorStore { shape, tensor, s: s.into(), unpack: !unpack.is_empty() },
                uses,
                vec![],
            )))
        }
        [wait @ ("wait::ld" | "wait::st"), "sync", "aligned"] => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::TensorWait { loads: *wait == "wait::ld" }, vec![], vec![])))
        }
        [fence @ ("fence::before_thread_sync" | "fence::after_thread_sync")] => {
            o.expect(0..=0)?;
            let before = *fence == "fence::before_thread_sync";
            Ok(Some(Decoded::new(Op::TensorFence { before }, vec![], vec![])))
        }
        ["mma", "ws", "cta_group::1", kind, rest @ ..] => {
            let Some(kind) = Kind::named(kind).filter(|kind| !kind.is_scaled() && !pair) else { return none(mods) };
            let collector = match rest {
                [] => Collector::unsaid(true),
                [last] => match Collector::named(last, true) {
                    Some(collector) => collector,
                    None => return none(mods),
                },
                _ => return none(mods),
            };
            mma_stationary(l, o, kind, collector).map(Some)
        }
        ["mma", "cta_group::1", kind, rest @ ..] => {
            let Some(kind) = Kind::named(kind) else { return none(mods) };
            let (collector, rest) =
                match rest.split_last().and_then(|(last, rest)| Some((Collector::named(last, false)?, rest))) {
                    Some(named) => named,
                    None => (Collector::unsaid(false), rest),
                };
            match (kind.is_scaled(), rest) {
                (false, []) => mma(l, o, pair, (kind, collector), None).map(Some),
                (true, ["block_scale", vector @ ..]) if vector.iter().all(|m| SCALE_VECTORS.contains(m)) => {
                    mma(l, o, pair, (kind, collector), Some(factors(kind, vector)?)).map(Some)
                }
                _ => none(mods),
            }
        }
        ["cp", "cta_group::1", rest @ ..] => {
            // ptxas takes the multicast before the shape, too, as compilers on top of LLVM write it.
            let (multicast, rest): (Vec<&str>, Vec<&str>) = rest.iter().partition(|part| part.starts_with("warpx"));
            let (rest, unpack) = match rest.as_slice() {
                [rest @ .., "b8x16", "b4x16_p64"] => (rest, Some(Packed::B4)),
                [rest @ .., "b8x16", "b6x16_p32"] => (rest, Some(Packed::B6)),
                rest => (rest, None),
            };
            let shape = match (rest, multicast.as_slice()) {
                (["128x256b"], []) => TensorCopyShape::S128x256b,
                (["4x256b"], []) => TensorCopyShape::S4x256b,
                (["128x128b"], []) => TensorCopyShape::S128x128b,
                (["64x128b"], ["warpx2::02_13"]) => TensorCopyShape::S64x128bFar,
                (["64x128b"], ["warpx2::01_23"]) => TensorCopyShape::S64x128bNear,
                (["32x128b"], ["warpx4"]) => TensorCopyShape::S32x128b,
                _ => return none(mods),
            };
            o.expect(2..=2)?;
            let d = tensor_address(l, o.get(0)?)?;
            let s = l.source64(o.get(1)?)?;
            let mut uses = base_of(&d);
            uses.push(Reg::B64(s));
            let op = TensorCopyOp { pair, d, s, shape, unpack };
            Ok(Some(Decoded::new(Op::TensorCopy(op), uses, vec![])))
        }
        ["commit", "cta_group::1", "mbarrier::arrive::one", rest @ .., "b64"] => {
            let multicast = match rest {
                [] | ["shared::cluster"] => false,
                ["multicast::cluster"] | ["shared::cluster", "multicast::cluster"] => true,
                _ => return Ok(None),
            };
            o.expect(if multicast { 2..=2 } else { 1..=1 })?;
            let address = l.address(o.get(0)?)?;
            let mut uses = base_of(&address);
            let targets = if multicast { Some(l.source32(o.get(1)?, false)?) } else { None };
            uses.extend(targets.map(Reg::B32));
            Ok(Some(Decoded::new(Op::Commit { address, pair, targets }, uses, vec![])))
        }
        _ => none(mods),
    }
}

/// No form has these modifiers.
fn none(mods: &[&str]) -> Family {
    tensor_forms::check(mods).map(|()| None)
}

/// The registers of a vector of so many.
fn list(l: &mut Lowering, operand: &Operand, count: usize, write: bool) -> Result<Vec<u16>, Bad> {
    let Operand::Vector(parts) = operand else {
        return Err(wrong(
            format!("expected a vector of {count} registers, found {}", super::describe(operand)),
            "Write them in braces, also one: `{%r0}`.",
        ));
    };
    if parts.len() != count {
        return Err(wrong(
            format!("this shape takes {count} registers, its vector names {}", parts.len()),
            "Name as many 32-bit registers as the shape and its .x count give.",
        ));
    }
    if write { parts.iter().map(|part| l.destination32(part)).collect() } else { sources(l, parts) }
}

/// The registers of a vector that is read. One of constants alone ptxas does not take.
fn sources(l: &mut Lowering, parts: &[Operand]) -> Result<Vec<u16>, Bad> {
    if !parts.iter().any(|part| matches!(part, Operand::Name(_))) {
        return Err(wrong(
            "a vector of constants alone",
            "It is made of 32-bit registers (PTX ISA, tcgen05.st and tcgen05.mma): move a constant to one first, `mov.b32 %r0, 0;`.",
        ));
    }
    parts.iter().map(|part| l.source32(part, false)).collect()
}

/// `[taddr]`, `[taddr + n]`: a 32-bit register.
fn tensor_address(l: &mut Lowering, operand: &Operand) -> Result<Address, Bad> {
    let address = l.address(operand)?;
    match address.base {
        Reg::B32(_) => Ok(address),
        _ => Err(wrong(
            format!("{} is not an address in tensor memory", describe(operand)),
            "Tensor memory is addressed by a 32-bit register: lane in the high half, column in the low.",
        )),
    }
}

/// What may say how many scale factors there are.
const SCALE_VECTORS: &[&str] = &["scale_vec::1X", "scale_vec::2X", "scale_vec::4X", "block16", "block32"];

/// The scale factors of a row of A that the modifiers behind `.block_scale` say.
fn factors(kind: Kind, vector: &[&str]) -> Result<u32, Bad> {
    kind.factors(vector).ok_or_else(|| {
        let found = match vector {
            [] => "no size of its scale vectors".into(),
            some => format!("`.{}`", some.join(".")),
        };
        let allowed = match kind {
            Kind::Mxf8f6f4 => "`.scale_vec::1X` or `.block32`, or neither",
            Kind::Mxf4 => "`.scale_vec::2X` or `.block32`, or neither",
            _ => "`.scale_vec::2X` or `.block32`, `.scale_vec::4X` or `.block16`",
        };
        wrong(
            format!("`{}` with {found}", kind.name()),
            format!("Write one that the kind takes: {allowed} (PTX ISA, tcgen05.mma, valid combinations of .scale_vectorsize)."),
        )
    })
}

/// `[d], adesc or [a], bdesc, idesc, {disable-output-lane,} enable-input-d {, scale-input-d}`; with scale factors
/// `[d], adesc or [a], bdesc, idesc, [scale-A], [scale-B], enable-input-d`
fn mma(
    l: &mut Lowering,
    o: &Operands,
    pair: bool,
    (kind, collector): (Kind, Collector),
    each: Option<u32>,
) -> Result<Decoded, Bad> {
    o.expect(if each.is_some() { 7..=7 } else { 5..=7 })?;
    let (mut op, mut uses) = begin_mma(l, o, kind, collector)?;
    op.pair = pair;
    let mut next = 4;
    if let Some(each) = each {
        let at = [tensor_address(l, o.get(next)?)?, tensor_address(l, o.get(next + 1)?)?];
        uses.extend(at.iter().flat_map(base_of));
        op.factors = Some(MmaFactors { each, at });
        next += 2;
    }
    if let Operand::Vector(list) = o.get(next)?
        && each.is_none()
    {
        let lanes = if pair { 8 } else { 4 };
        if list.len() != lanes {
            return Err(wrong(
                format!("the mask of output lanes has {} registers, this form takes {lanes}", list.len()),
                "Name a 32-bit register for each 32 lanes.",
            ));
        }
        op.disabled = sources(l, list)?;
        uses.extend(op.disabled.iter().map(|&r| Reg::B32(r)));
        next += 1;
    }
    accumulates(l, o.get(next)?, &mut op, &mut uses)?;
    op.scale = match o.list.get(next + 1) {
        None => 0,
        Some(_) if !kind.scales_input() => {
            return Err(wrong(
                format!("`{}` with scale-input-d", kind.name()),
                "Leave it out: `kind::f16` and `kind::tf32` have it (PTX ISA, tcgen05.mma).",
            ));
        }
        Some(Operand::Integer(scale @ 0..=15)) => *scale as u32,
        Some(other) => {
            return Err(wrong(format!("scale-input-d is {}", describe(other)), "It is a constant 0 … 15."));
        }
    };
    o.expect(next + 1..=next + 2)?;
    Ok(Decoded::new(Op::Mma(Box::new(op)), uses, vec![]))
}

/// `[d], adesc or [a], bdesc, idesc, enable-input-d {, zero-column-mask}`
fn mma_stationary(l: &mut Lowering, o: &Operands, kind: Kind, collector: Collector) -> Result<Decoded, Bad> {
    o.expect(5..=6)?;
    let (mut op, mut uses) = begin_mma(l, o, kind, collector)?;
    op.stationary = true;
    accumulates(l, o.get(4)?, &mut op, &mut uses)?;
    if !matches!(o.list.get(5), None | Some(Operand::Integer(0))) {
        return Err(not_modelled(
            &format!("the zero-column mask of `{}`", o.opcode),
            "Leave the last operand out, or write the constant 0.",
        ));
    }
    Ok(Decoded::new(Op::Mma(Box::new(op)), uses, vec![]))
}

/// The first four operands, which every form has: `[d], adesc or [a], bdesc, idesc`.
fn begin_mma(l: &mut Lowering, o: &Operands, kind: Kind, collector: Collector) -> Result<(MmaOp, Vec<Reg>), Bad> {
    let d = tensor_address(l, o.get(0)?)?;
    let mut uses = base_of(&d);
    let a = match o.get(1)? {
        memory @ Operand::Memory(..) => {
            let a = tensor_address(l, memory)?;
            uses.extend(base_of(&a));
            MmaA::Tensor(a)
        }
        descriptor => {
            let a = l.source64(descriptor)?;
            uses.push(Reg::B64(a));
            MmaA::Shared(a)
        }
    };
    let b = l.source64(o.get(2)?)?;
    let idesc = l.source32(o.get(3)?, false)?;
    uses.extend([Reg::B64(b), Reg::B32(idesc)]);
    let op = MmaOp {
        pair: false,
        kind,
        d,
        a,
        b,
        idesc,
        disabled: Vec::new(),
        accumulate: 0,
        accumulate_negated: false,
        scale: 0,
        factors: None,
        stationary: false,
        collector,
    };
    Ok((op, uses))
}

/// enable-input-d, which may be negated.
fn accumulates(l: &mut Lowering, operand: &Operand, op: &mut MmaOp, uses: &mut Vec<Reg>) -> Result<(), Bad> {
    let (operand, negated) = match operand {
        Operand::Not(name) => (Operand::Name(name.clone()), true),
        other => (other.clone(), false),
    };
    (op.accumulate, op.accumulate_negated) = (l.predicate(&operand)?, negated);
    uses.push(Reg::Pred(op.accumulate));
    Ok(())
}
