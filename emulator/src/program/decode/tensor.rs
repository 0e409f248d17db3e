//! Tensor memory and the tensor core: `tcgen05.*`.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, wrong};
use crate::program::Bad;
use crate::program::op::{Address, Op, Reg, TensorShape};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    if base != "tcgen05" {
        return Ok(None);
    }
    match mods {
        ["alloc", "cta_group::1", "sync", "aligned", "b32"]
        | ["alloc", "cta_group::1", "sync", "aligned", "shared::cta", "b32"] => {
            o.expect(2..=2)?;
            let address = l.address(o.get(0)?)?;
            let columns = l.source32(o.get(1)?, false)?;
            let mut uses = base_of(&address);
            uses.push(Reg::B32(columns));
            Ok(Some(Decoded::new(Op::TensorAlloc { address, columns }, uses, vec![])))
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
        ["ld", "sync", "aligned", shape, times, "b32"] => {
            let Some((shape, registers)) = shaped(shape, times) else { return Ok(None) };
            o.expect(2..=2)?;
            let d = list(l, o.get(0)?, registers, true)?;
            let tensor = tensor_address(l, o.get(1)?)?;
            let defs = d.iter().map(|&r| Reg::B32(r)).collect();
            Ok(Some(Decoded::new(Op::TensorLoad { shape, tensor, d: d.into() }, base_of(&tensor), defs)))
        }
        ["st", "sync", "aligned", shape, times, "b32"] => {
            let Some((shape, registers)) = shaped(shape, times) else { return Ok(None) };
            o.expect(2..=2)?;
            let tensor = tensor_address(l, o.get(0)?)?;
            let s = list(l, o.get(1)?, registers, false)?;
            let mut uses = base_of(&tensor);
            uses.extend(s.iter().map(|&r| Reg::B32(r)));
            Ok(Some(Decoded::new(Op::TensorStore { shape, tensor, s: s.into() }, uses, vec![])))
        }
        ["wait::ld", "sync", "aligned"] => Ok(Some(Decoded::new(Op::TensorWait { loads: true }, vec![], vec![]))),
        ["wait::st", "sync", "aligned"] => Ok(Some(Decoded::new(Op::TensorWait { loads: false }, vec![], vec![]))),
        [fence @ ("fence::before_thread_sync" | "fence::after_thread_sync")] => {
            o.expect(0..=0)?;
            let before = *fence == "fence::before_thread_sync";
            Ok(Some(Decoded::new(Op::TensorFence { before }, vec![], vec![])))
        }
        // Neither keeps A in the collector buffer for a later MMA (PTX ISA 9.7.16.10.9.1).
        ["mma", "cta_group::1", "kind::f16"]
        | ["mma", "cta_group::1", "kind::f16", "collector::a::discard" | "collector::a::lastuse"] => {
            mma(l, o).map(Some)
        }
        ["commit", "cta_group::1", "mbarrier::arrive::one", "b64"]
        | ["commit", "cta_group::1", "mbarrier::arrive::one", "shared::cluster", "b64"] => {
            o.expect(1..=1)?;
            let address = l.address(o.get(0)?)?;
            Ok(Some(Decoded::new(Op::Commit { address }, base_of(&address), vec![])))
        }
        _ => Ok(None),
    }
}

/// Shape and number of registers a thread, if the ISA has this shape with this repetition.
fn shaped(shape: &str, times: &str) -> Option<(TensorShape, usize)> {
    let shape = match shape {
        "32x32b" => TensorShape::S32x32b,
        "16x64b" => TensorShape::S16x64b,
        "16x128b" => TensorShape::S16x128b,
        "16x256b" => TensorShape::S16x256b,
        _ => return None,
    };
    let times: usize = times.strip_prefix('x')?.parse().ok()?;
    let registers = times * shape.size().2 as usize;
    (times.is_power_of_two() && registers <= 128).then_some((shape, registers))
}

fn list(l: &mut Lowering, operand: &Operand, count: usize, write: bool) -> Result<Vec<u16>, Bad> {
    let parts = match operand {
        Operand::Vector(parts) => parts.as_slice(),
        single => std::slice::from_ref(single),
    };
    if parts.len() != count {
        return Err(wrong(
            format!("this shape takes {count} registers, its vector names {}", parts.len()),
            "Name as many 32-bit registers as the shape and its .x count give.",
        ));
    }
    parts.iter().map(|part| if write { l.destination32(part) } else { l.source32(part, true) }).collect()
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

/// `[d], adesc, bdesc, idesc, enable-input-d`
fn mma(l: &mut Lowering, o: &Operands) -> Result<Decoded, Bad> {
    o.expect(5..=5)?;
    let d = tensor_address(l, o.get(0)?)?;
    if matches!(o.get(1)?, Operand::Memory(..)) {
        return Err(super::not_modelled("A from tensor memory", "Give A as a shared-memory descriptor."));
    }
    let (a, b) = (l.source64(o.get(1)?)?, l.source64(o.get(2)?)?);
    let idesc = l.source32(o.get(3)?, false)?;
    let (operand, accumulate_negated) = match o.get(4)? {
        Operand::Not(name) => (Operand::Name(name.clone()), true),
        other => (other.clone(), false),
    };
    let accumulate = l.predicate(&operand)?;
    let mut uses = base_of(&d);
    uses.extend([Reg::B64(a), Reg::B64(b), Reg::B32(idesc), Reg::Pred(accumulate)]);
    Ok(Decoded::new(Op::Mma { d, a, b, idesc, accumulate, accumulate_negated }, uses, vec![]))
}
