//! `mma.sync` and `movmatrix`: the tensor core of one warp.

use super::type_table::Kind as TypeKind;
use super::types::register;
use super::{Decoded, Family, Lowering, Operands, wrong};
use crate::program::Bad;
use crate::program::arithmetic::rounding64::Round;
use crate::program::kind::{Accumulator, Kind, Types};
use crate::program::op::{Op, Reg};
use crate::program::warp_mma::{Form, WarpMmaOp};
use crate::syntax::ast::{Instruction, Operand};

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("mma", ["sync", "aligned", shape, "row", "col", types @ ..]) => {
            let form = if types.contains(&"f64") { wide(shape, types) } else { narrow(shape, types) };
            form.map(|form| fragments(l, form, o)).transpose()
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

/// The fragments of D, A, B and C.
fn fragments(l: &mut Lowering, form: Form, o: &Operands) -> Result<Decoded, Bad> {
    o.expect(4..=4)?;
    let [in_d, in_a, in_b, in_c] = form.registers();
    let mut d = Vec::with_capacity(in_d);
    for part in registers(o, 0, in_d)? {
        d.push(match form {
            _ if *part == Operand::Sink => Reg::Sink,
            Form::Narrow { .. } => Reg::B32(l.destination32(part)?),
            Form::Wide { .. } => Reg::B64(l.destination64(part)?),
        });
    }
    let mut sources = |n: usize, count: usize| -> Result<Vec<u16>, Bad> {
        let source = |part: &Operand| match form {
            // An integer beside registers is bits.
            Form::Narrow { types, .. } => {
                let float = n == 3 && types.d == Accumulator::F32 && !matches!(part, Operand::Integer(_));
                l.source32(part, float)
            }
            Form::Wide { .. } => l.source64(part),
        };
        registers(o, n, count)?.iter().map(source).collect()
    };
    let op = WarpMmaOp { form, a: sources(1, in_a)?, b: sources(2, in_b)?, c: sources(3, in_c)?, d: d.clone() };
    let uses = op.uses();
    Ok(Decoded::new(Op::WarpMma(Box::new(op)), uses, d))
}

/// FP64. It rounds to nearest where no other rounding is said.
fn wide(shape: &str, types: &[&str]) -> Option<Form> {
    let (rows, depth) = match shape {
        "m8n8k4" => (8, 4),
        "m16n8k4" => (16, 4),
        "m16n8k8" => (16, 8),
        "m16n8k16" => (16, 16),
        _ => return None,
    };
    let rest: Vec<&str> = types.iter().copied().filter(|part| Round::of(part).is_none()).collect();
    let round = types.iter().find_map(|part| Round::of(part)).unwrap_or(Round::Nearest);
    (rest == ["f64"; 4] && types.len() <= 5).then_some(Form::Wide { rows, depth, round })
}

/// All other types: those of D, A, B and C. `.satfinite` may stand anywhere among the types of integers, as ptxas has it.
fn narrow(shape: &str, types: &[&str]) -> Option<Form> {
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
    Some(Form::Narrow { types: Types { saturate: times == 1, ..named }, bytes })
}

/// Whether integers may stand in a fragment of `mma`, as the bits of its elements: beside registers of bits (what ptxas 13.5 takes).
pub(super) fn fragment(l: &Lowering, inst: &Instruction, mods: &[&str], n: usize) -> Result<bool, Bad> {
    let has = |what: &str| mods.contains(&what);
    // It makes instructions of FP16 and an addition of these: with all of D, and with registers of C.
    let narrow = has("e4m3") || has("e5m2");
    let elements = |n: usize| match inst.operands.get(n) {
        Some(Operand::Vector(elements)) => elements.as_slice(),
        _ => &[],
    };
    let floats = |n: usize| elements(n).iter().filter_map(|e| register(l, e)).any(|(_, ty)| ty.kind == TypeKind::Float);
    let integers = elements(n).iter().any(|element| matches!(element, Operand::Integer(_)));
    let refuse = |what: &str, help: &str| Err(wrong(format!("{what} in a fragment of `{}`", inst.opcode), help));
    let one_type = has("tf32") && (1..4).any(floats);
    if n == 0 && (narrow || one_type) && elements(0).contains(&Operand::Sink) {
        return refuse("`_`", "Name a register for each element.");
    }
    if n > 0 && integers && (n == 3 && narrow || floats(n) || one_type) {
        return refuse("an integer", "Move it to a register first, `mov.b32 %r0, 0;`: these fragments take registers.");
    }
    Ok(n > 0 && elements(n).iter().any(|element| register(l, element).is_some()))
}
