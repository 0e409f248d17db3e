//! `mma.sync` and `movmatrix`: the tensor core of one warp.

use super::type_table::Kind as TypeKind;
use super::types::register;
use super::{Decoded, Family, Lowering, Operands, wrong};
use crate::program::Bad;
use crate::program::kind::{Accumulator, Kind, Types};
use crate::program::op::{Op, Reg};
use crate::program::rounding64::Round;
use crate::program::warp_mma::{WarpMmaOp, WideMmaOp};
use crate::syntax::ast::{Instruction, Operand};

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("mma", ["sync", "aligned", shape, "row", "col", types @ ..]) if types.contains(&"f64") => {
            wide(l, shape, types, o)
        }
        ("mma", ["sync", "aligned", shape, "row", "col", types @ ..]) => {
            let Some((bytes, types)) = form(shape, types) else { return Ok(None) };
            let d_f32 = types.d == Accumulator::F32;
            o.expect(4..=4)?;
            let accumulators = if types.wide_d() { 4 } else { 2 };
            let lists = [accumulators, bytes / 8, bytes / 16, accumulators];
            let mut regs: [Vec<Reg>; 4] = Default::default();
            for (n, (regs, count)) in regs.iter_mut().zip(lists).enumerate() {
                for part in registers(o, n, count)? {
                    regs.push(match n {
                        0 if *part == Operand::Sink => Reg::Sink,
                        0 => Reg::B32(l.destination32(part)?),
                        // An integer beside registers is bits.
                        _ => Reg::B32(l.source32(part, n == 3 && d_f32 && !matches!(part, Operand::Integer(_)))?),
                    });
                }
            }
            let [d, a, b, c] = regs;
            let uses = [&a[..], &b, &c].concat();
            let numbers = |list: Vec<Reg>| {
                list.into_iter().filter_map(|reg| if let Reg::B32(r) = reg { Some(r) } else { None }).collect()
            };
            let op = WarpMmaOp { types, bytes, d: d.clone(), a: numbers(a), b: numbers(b), c: numbers(c) };
            Ok(Some(Decoded::new(Op::WarpMma(Box::new(op)), uses, d)))
        }
        ("movmatrix", ["sync", "aligned", "m8n8", "trans", "b16"]) => {
            o.expect(2..=2)?;
            let (d, a) = (l.destination32(o.get(0)?)?, l.source32(o.get(1)?, false)?);
            Ok(Some(Decoded::new(Op::MoveMatrix { d, a }, vec![Reg::B32(a)], vec![Reg::B32(d)])))
        }
        _ => Ok(None),
    }
}

/// The elements of an operand, of which there must be so many.
fn registers<'a>(o: &'a Operands, n: usize, count: usize) -> Result<&'a [Operand], Bad> {
    let Operand::Vector(list) = o.get(n)? else {
        return Err(wrong(
            format!("operand {} of `{}` is no vector", n + 1, o.opcode),
            format!("Name {count} registers in braces."),
        ));
    };
    if list.len() != count {
        return Err(wrong(
            format!("operand {} of `{}` has {} registers", n + 1, o.opcode, list.len()),
            format!("This shape takes {count} (PTX ISA, mma)."),
        ));
    }
    Ok(list)
}

/// FP64. It rounds to nearest where no other rounding is said.
fn wide(l: &mut Lowering, shape: &str, types: &[&str], o: &Operands) -> Family {
    let (rows, depth) = match shape {
        "m8n8k4" => (8, 4),
        "m16n8k4" => (16, 4),
        "m16n8k8" => (16, 8),
        "m16n8k16" => (16, 16),
        _ => return Ok(None),
    };
    let rest: Vec<&str> = types.iter().copied().filter(|part| Round::of(part).is_none()).collect();
    if rest != ["f64"; 4] || types.len() > 5 {
        return Ok(None);
    }
    let round = types.iter().find_map(|part| Round::of(part)).unwrap_or(Round::Nearest);
    o.expect(4..=4)?;
    let counts = [rows / 4, rows * depth / 32, depth / 4, rows / 4];
    let mut d = Vec::new();
    for part in registers(o, 0, counts[0])? {
        d.push(if *part == Operand::Sink { Reg::Sink } else { Reg::B64(l.destination64(part)?) });
    }
    let mut sources: [Vec<u16>; 3] = Default::default();
    for (n, (list, count)) in sources.iter_mut().zip(&counts[1..]).enumerate() {
        for part in registers(o, n + 1, *count)? {
            list.push(l.source64(part)?);
        }
    }
    let [a, b, c] = sources;
    let uses = [&a[..], &b, &c].concat().into_iter().map(Reg::B64).collect();
    let op = WideMmaOp { rows, depth, round, d: d.clone(), a, b, c };
    Ok(Some(Decoded::new(Op::WideMma(Box::new(op)), uses, d)))
}

/// Bytes of a row of A, and the types, that shape and types name: D, A, B and C. `.satfinite` may stand anywhere among the types of
/// integers, as ptxas has it.
fn form(shape: &str, types: &[&str]) -> Option<(usize, Types)> {
    let rest: Vec<&str> = types.iter().copied().filter(|part| *part != "satfinite").collect();
    let [d, a, b, c] = rest[..] else { return None };
    let (named, times) = (Types::named(d, a, b)?, types.len() - rest.len());
    if c != d || times > usize::from(named.kind == Kind::I8) {
        return None;
    }
    let bytes = match (shape, named.kind) {
        ("m16n8k4", Kind::Tf32) | ("m16n8k8", Kind::F16) | ("m16n8k16", Kind::F8f6f4 | Kind::I8) => 16,
        ("m16n8k8", Kind::Tf32) | ("m16n8k16", Kind::F16) | ("m16n8k32", Kind::F8f6f4 | Kind::I8) => 32,
        _ => return None,
    };
    Some((bytes, Types { saturate: times == 1, ..named }))
}

/// Whether integers may stand in a fragment of `mma`, as the bits of its elements: beside registers of bits (what ptxas 13.5 takes).
pub(super) fn fragment(l: &Lowering, inst: &Instruction, mods: &[&str], n: usize) -> Result<bool, Bad> {
    let has = |what: &str| mods.contains(&what);
    // It makes instructions of FP16 and an addition of these: with all of D, and with registers of C.
    let narrow = has("e4m3") || has("e5m2");
    let (adds_to, adds) = (narrow && (has("m16n8k16") || has("f16")), narrow);
    let elements = |n: usize| match inst.operands.get(n) {
        Some(Operand::Vector(elements)) => elements.as_slice(),
        _ => &[],
    };
    let floats = |n: usize| elements(n).iter().filter_map(|e| register(l, e)).any(|(_, ty)| ty.kind == TypeKind::Float);
    let integers = elements(n).iter().any(|element| matches!(element, Operand::Integer(_)));
    let refuse = |what: &str, help: &str| Err(wrong(format!("{what} in a fragment of `{}`", inst.opcode), help));
    let one_type = has("tf32") && (1..4).any(floats);
    if n == 0 && (adds_to || one_type) && elements(0).contains(&Operand::Sink) {
        return refuse("`_`", "Name a register for each element.");
    }
    if n > 0 && integers && (n == 3 && adds || floats(n) || one_type) {
        return refuse("an integer", "Move it to a register first, `mov.b32 %r0, 0;`: these fragments take registers.");
    }
    Ok(n > 0 && elements(n).iter().any(|element| register(l, element).is_some()))
}
