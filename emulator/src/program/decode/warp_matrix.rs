//! `mma.sync` and `movmatrix`: the tensor core of one warp.

use super::{Decoded, Family, Lowering, Operands, wrong};
use crate::program::kind::{Accumulator, Kind, Types};
use crate::program::op::{Op, Reg};
use crate::program::warp_mma::WarpMmaOp;
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("mma", ["sync", "aligned", shape, "row", "col", types @ ..]) => {
            let Some((bytes, types)) = form(shape, types) else { return Ok(None) };
            let d_f32 = types.d == Accumulator::F32;
            o.expect(4..=4)?;
            let accumulators = if types.wide_d() { 4 } else { 2 };
            let lists = [accumulators, bytes / 8, bytes / 16, accumulators];
            let mut regs: [Vec<Reg>; 4] = Default::default();
            for (n, (regs, count)) in regs.iter_mut().zip(lists).enumerate() {
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
                for part in list {
                    regs.push(match n {
                        0 if *part == Operand::Sink => Reg::Sink,
                        0 => Reg::B32(l.destination32(part)?),
                        _ => Reg::B32(l.source32(part, n == 3 && d_f32)?),
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
