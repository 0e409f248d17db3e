//! Plain loads and stores.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, wrong};
use crate::program::lower::type_bytes;
use crate::program::op::{Op, Reg, Space};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let load = match base {
        "ld" => true,
        "st" => false,
        _ => return Ok(None),
    };
    let Some((ty, rest)) = mods.split_last() else { return Ok(None) };
    let Some(bytes) = type_bytes(ty) else { return Ok(None) };
    let (mut space, mut lanes) = (Space::Generic, 1);
    for m in rest {
        match *m {
            "global" => space = Space::Global,
            "shared" | "shared::cta" => space = Space::Shared,
            "param" if load => space = Space::Param,
            "nc" if load => {}
            "v2" => lanes = 2,
            "v4" => lanes = 4,
            "v8" => lanes = 8,
            // Cache hints and eviction priorities have no effect on results (PTX ISA 9.7.9.1, 9.7.9.2).
            "weak" | "ca" | "cg" | "cs" | "L1::no_allocate" | "L1::evict_last" | "L1::evict_first"
            | "L1::evict_normal" => {}
            _ => return Ok(None),
        }
    }
    let total = bytes * lanes;
    if total > 32 || (total == 32 && space != Space::Global) {
        return Err(wrong(
            format!("`{}` moves {total} bytes", o.opcode),
            "One access moves up to 16 bytes, 32 in global memory.",
        ));
    }
    o.expect(2..=2)?;
    let (memory, value) = if load { (o.get(1)?, o.get(0)?) } else { (o.get(0)?, o.get(1)?) };
    let address = l.address(memory)?;
    // A shared variable's name is an offset in the CTA's window; without `.shared` it is no generic address.
    if space == Space::Generic && l.names_shared(memory) {
        return Err(wrong(
            format!("{} is a shared variable, but `{}` takes a generic address", describe(memory), o.opcode),
            "Add `.shared`, or convert the address with `cvta.shared`.",
        ));
    }
    let list = match value {
        Operand::Vector(list) => list.as_slice(),
        single => std::slice::from_ref(single),
    };
    if list.len() != lanes as usize {
        return Err(wrong(
            format!("`{}` moves {lanes} elements, its vector names {}", o.opcode, list.len()),
            "Name one register for each element.",
        ));
    }
    let float = ty.starts_with('f');
    let mut regs = Vec::new();
    for part in list {
        let reg = if load || bytes == 16 {
            l.destination(part)?
        } else if bytes == 8 {
            l.source(part, 8, float)?
        } else if let Operand::Name(name) = part {
            // `st.b8`/`.b16`/`.b32` accept wider registers and store their low bits (PTX ISA 9.4.1).
            l.named(name, 4)?
        } else {
            l.source(part, 4, float)?
        };
        let fits = match reg {
            Reg::B32(_) => bytes <= 4,
            Reg::B64(_) => bytes <= 8,
            Reg::B128(_) => bytes == 16,
            Reg::Pred(_) => false,
            Reg::Sink => load,
        };
        if !fits {
            return Err(wrong(
                format!("{} cannot hold an element of `.{ty}`", describe(part)),
                "Use a register at least as wide as the element.",
            ));
        }
        regs.push(reg);
    }
    let mut uses = base_of(&address);
    let signed = ty.starts_with('s');
    Ok(Some(if load {
        let d: Box<[Reg]> = regs.clone().into();
        Decoded::new(Op::Load { space, address, bytes: bytes as u8, signed, d }, uses, regs)
    } else {
        uses.extend(&regs);
        Decoded::new(Op::Store { space, address, bytes: bytes as u8, s: regs.into() }, uses, vec![])
    }))
}
