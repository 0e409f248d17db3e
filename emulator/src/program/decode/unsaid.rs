//! Opcodes that leave out what the ISA wants said: which half of a product, how a result is rounded.

use super::{Lowering, Operands, wrong};
use crate::program::Bad;
use crate::program::arithmetic::{convert, narrow};
use crate::program::lower::Binding;
use crate::program::op::Reg;
use crate::syntax::ast::Operand;

/// `mul.u32` does not exist: a product of integers has twice the bits.
pub(super) fn said_which_half(base: &str, flags: &[&str], ty: &str, o: &Operands) -> Result<(), Bad> {
    let integer = ty.strip_prefix(['u', 's']).is_some_and(|bits| matches!(bits, "16" | "32" | "64"));
    let halves = matches!(base, "mul" | "mad" | "mul24" | "mad24");
    if !halves || !integer || flags.iter().any(|flag| matches!(*flag, "lo" | "hi" | "wide")) {
        return Ok(());
    }
    let wide = if base.ends_with("24") || ty.ends_with("64") {
        String::new()
    } else {
        format!(", `{base}.wide.{ty}` all of it, in a register of twice the width")
    };
    Err(wrong(
        format!("`{}` does not say which half of the product it takes", o.opcode),
        format!("`{base}.lo.{ty}` takes the lower half, as `*` in C does, `{base}.hi.{ty}` the upper one{wide}."),
    ))
}

/// `mul.lo.u32 %d, %r, …`: the lower half does not fill a register of 64 bits, the whole product does.
pub(super) fn fills_what_it_writes(l: &Lowering, base: &str, mods: &[&str], o: &Operands) -> Result<(), Bad> {
    let ("mul" | "mad", ["lo", ty @ ("u32" | "s32" | "u16" | "s16")]) = (base, mods) else { return Ok(()) };
    let mut registers = o.list.iter().map(|operand| {
        let Operand::Name(name) = operand else { return None };
        let Some(Binding::Register(reg, _)) = l.lookup(name) else { return None };
        Some((name, *reg))
    });
    let Some(Some((name, Reg::B64(_)))) = registers.next() else { return Ok(()) };
    let bits = ty.trim_start_matches(['u', 's']);
    let sign = &ty[..1];
    let help = if registers.take(2).any(|r| matches!(r, Some((_, Reg::B64(_))))) {
        format!("Write `{base}.lo.{sign}64`, with all registers of 64 bits.")
    } else if bits == "32" {
        format!("Write `{base}.wide.{ty}`, which gives all 64 bits of the product of two numbers of 32.")
    } else {
        "Match the register's width to the instruction's type.".into()
    };
    Err(wrong(format!("`{name}` is not a {bits}-bit register"), help))
}

/// `fma.f32` does not exist: these say how they round, or that they approximate.
pub(super) fn said_how_to_round(base: &str, flags: &[&str], ty: &str, o: &Operands) -> Result<(), Bad> {
    let said = flags.iter().any(|flag| matches!(*flag, "rn" | "rz" | "rm" | "rp" | "approx" | "full"));
    let known = match base {
        "fma" => ty.contains('f'),
        "mad" | "div" | "rcp" | "sqrt" => matches!(ty, "f32" | "f64"),
        _ => false,
    };
    if said || !known {
        return Ok(());
    }
    let rest: String = flags.iter().map(|flag| format!(".{flag}")).collect();
    let other = match (base, ty) {
        ("div", "f32") => ", or `.full` or `.approx` in its place, which is faster",
        ("rcp" | "sqrt", "f32") => ", or `.approx` in its place, which is faster",
        _ => "",
    };
    Err(wrong(
        format!("`{}` does not say how it rounds", o.opcode),
        format!("Write `{base}.rn{rest}.{ty}` (to nearest){other}."),
    ))
}

/// `cvt.f32.u32` does not exist: a conversion that can lose something says how it rounds.
pub(super) fn rounds_somehow(flags: &[&str], to: &str, from: &str, o: &Operands) -> Result<(), Bad> {
    let exists = |rounding: &str| {
        let flags: Vec<&str> = std::iter::once(rounding).chain(flags.iter().copied()).collect();
        let there = convert::Conversion::of(&flags, to, from).is_some()
            || convert::convert(&flags, to, from).or_else(|| narrow::convert(&flags, to, from)).is_some();
        there.then(|| format!("cvt.{}.{to}.{from}", flags.join(".")))
    };
    let help = match (exists("rn"), exists("rzi")) {
        (Some(form), _) => format!("Write `{form}` (to nearest)."),
        (None, Some(form)) => {
            format!("Write `{form}` (towards zero, as a cast in C does), or `.rni` in its place, to nearest.")
        }
        (None, None) => return Ok(()),
    };
    Err(wrong(format!("`{}` does not say how it rounds", o.opcode), help))
}
