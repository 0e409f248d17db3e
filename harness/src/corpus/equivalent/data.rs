//! Numbers that nothing depends on.

use super::super::flow;
use super::super::kernels::Kernel;
use super::super::maps::MapChange;
use super::super::text::{Statement, Text, number};
use super::super::{Change, Mutant, What};
use emulator::Param;

/// A register that stands only in instructions which compute it, from itself and others.
pub fn a_register_for_nobody(text: &Text, mutant: &Mutant) -> bool {
    let What::Register(register) = &mutant.what else { return false };
    let serves = |s: &Statement| !(flow::is_pure(s) && flow::written(s) == [register.as_str()]);
    !text.touching(register).iter().any(|&at| serves(&text.statements[at]))
}

/// The leading offset of a swizzled K-major tile. A step of an MMA takes 32 bytes of a row, which lie within the pattern.
pub fn leading_offset_unused(text: &Text, mutant: &Mutant) -> bool {
    let What::Field("leading offset", at) = mutant.what else { return false };
    let constant = |s: &Statement, index: usize| {
        s.operands().get(index).filter(|operand| operand.starts_with("0x")).and_then(|one| number(one))
    };
    let swizzled = constant(&text.statements[at], 2).is_some_and(|value| value as u64 >> 61 != 0);
    // Bits 15 and 16 of the instruction descriptor; of a `wgmma` the last two operands.
    let transposed = |s: &Statement| s.is("mov.b32") && constant(s, 1).is_some_and(|value| value >> 15 & 3 != 0);
    let last = |s: &Statement| s.operands().iter().rev().take(2).all(|operand| operand == "0");
    let hopper = |s: &Statement| s.is("wgmma.mma_async") && !last(s);
    swizzled && !text.statements.iter().any(|s| transposed(s) || hopper(s))
}

/// FP16 for BF16 in a tensor map, or the other way round.
pub fn bits_are_copied(kernel: &Kernel, mutant: &Mutant) -> bool {
    let Change::Map(param, MapChange::Element(element)) = mutant.change else { return false };
    let Some(Param::TensorMap { map, .. }) = kernel.launch.params.get(param) else { return false };
    let reduces = kernel.text.find(|s| s.is("cp.reduce")).next().is_some();
    let rounds = map.element.is_rounded() || element.is_rounded();
    map.element.bytes() == element.bytes() && !map.fill_nan && !reduces && !rounds
}

#[cfg(test)]
mod tests {
    use super::super::super::{Kind, mutant};
    use super::super::tests::{made, text};
    use super::*;
    use emulator::Element;

    #[test]
    fn registers_for_nobody() {
        let text = text("mov.u32 %r1, 0;\n@%p1 xor.b32 %r1, %r1, 1;\nmov.u32 %r2, 0;\nadd.u32 %r3, %r2, 1;");
        let of = |register: &str| a_register_for_nobody(&text, &made(What::Register(register.to_string())));
        assert!(of("%r1") && !of("%r2"));
    }

    #[test]
    fn offsets() {
        let lines = "or.b64 %rd2, %rd1, 0x4000404000000000;\nmov.b32 %r1, 0x08200010;";
        let may = |text: &Text| leading_offset_unused(text, &made(What::Field("leading offset", 0)));
        assert!(may(&text(lines)));
        assert!(!may(&text(&lines.replace("0x4000", "0x0000"))), "without swizzle");
        assert!(!may(&text(&lines.replace("0x08200010", "0x08210010"))), "B is transposed");
        assert!(!leading_offset_unused(&text(lines), &made(What::Field("stride offset", 0))));
    }

    #[test]
    fn elements() {
        let kernel = Kernel::new(4).unwrap();
        let to = |element| mutant("", Kind::Descriptors, What::Map, Change::Map(0, MapChange::Element(element)));
        assert!(bits_are_copied(&kernel, &to(Element::Bf16)) && !bits_are_copied(&kernel, &to(Element::F32)));
        let mut filled = kernel.clone();
        if let Some(Param::TensorMap { map, .. }) = filled.launch.params.first_mut() {
            map.fill_nan = true;
        }
        assert!(!bits_are_copied(&filled, &to(Element::Bf16)), "a NaN is other bits");
    }
}
