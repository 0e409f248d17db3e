//! Sums of more than one register: `add.cc`, `addc`, `sub.cc`, `subc`, `mad.cc` and `madc` (PTX ISA, Extended-Precision Integer Arithmetic).
//!
//! The condition code is one carry of each thread: here a register of the kernel. It is not kept across calls. A difference is the sum with the complement, and
//! one that borrows is one without a carry (assumption `borrow-as-carry`).

use super::{Decoded, Family, Lowering, Operands};
use crate::program::Bad;
use crate::program::arithmetic::alu;
use crate::program::arithmetic::convert;
use crate::program::arithmetic::lanes::lanes;
use crate::program::op::{Alu, Op, Reg, TRUE};

/// The sum or difference, and what goes to the next one.
fn functions(minus: bool, wide: bool) -> (Alu, Alu) {
    match (minus, wide) {
        (false, false) => (
            lanes!(T32 |a: u32, b: u32, c: u32| a.wrapping_add(b).wrapping_add(c)),
            lanes!(T32 |a: u32, b: u32, c: u32| ((u64::from(a) + u64::from(b) + u64::from(c)) >> 32) as u32),
        ),
        (true, false) => (
            lanes!(T32 |a: u32, b: u32, c: u32| a.wrapping_add(!b).wrapping_add(c)),
            lanes!(T32 |a: u32, b: u32, c: u32| ((u64::from(a) + u64::from(!b) + u64::from(c)) >> 32) as u32),
        ),
        (false, true) => (
            lanes!(T64 |a: u64, b: u64, c: u64| a.wrapping_add(b).wrapping_add(c)),
            lanes!(T64 |a: u64, b: u64, c: u64| ((u128::from(a) + u128::from(b) + u128::from(c)) >> 64) as u64),
        ),
        (true, true) => (
            lanes!(T64 |a: u64, b: u64, c: u64| a.wrapping_add(!b).wrapping_add(c)),
            lanes!(T64 |a: u64, b: u64, c: u64| ((u128::from(a) + u128::from(!b) + u128::from(c)) >> 64) as u64),
        ),
    }
}

/// The number of a register of 32 or 64 bits.
fn number(reg: Reg) -> u16 {
    match reg {
        Reg::B32(r) | Reg::B64(r) => r,
        _ => 0,
    }
}

impl Lowering {
    /// Adds a lane-wise function of these sources.
    fn apply(&mut self, f: Alu, d: Reg, s: &[Reg]) {
        let (op, uses, defs) = applied(f, d, s);
        self.emit(op, TRUE, false, uses, defs);
    }

    /// Where the condition code lies.
    fn condition_code(&mut self) -> Result<Reg, Bad> {
        match self.condition_code {
            Some(reg) => Ok(reg),
            None => {
                let reg = self.register("b32")?;
                self.condition_code = Some(reg);
                Ok(reg)
            }
        }
    }
}

fn applied(f: Alu, d: Reg, s: &[Reg]) -> (Op, Vec<Reg>, Vec<Reg>) {
    let mut numbers = [0; 3];
    numbers.iter_mut().zip(s).for_each(|(number_of, &reg)| *number_of = number(reg));
    (Op::Alu { f, d: number(d), s: numbers }, s.to_vec(), vec![d])
}

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let Some((ty @ ("u32" | "s32" | "u64" | "s64"), flags)) = mods.split_last().map(|(ty, flags)| (*ty, flags)) else {
        return Ok(None);
    };
    let gives = flags.last() == Some(&"cc");
    let half = &flags[..flags.len() - usize::from(gives)];
    let (minus, product, takes) = match (base, half) {
        ("add" | "addc", []) => (false, false, base == "addc"),
        ("sub" | "subc", []) => (true, false, base == "subc"),
        ("mad" | "madc", ["lo" | "hi"]) => (false, true, base == "madc"),
        _ => return Ok(None),
    };
    if !gives && !takes {
        return Ok(None);
    }
    let wide = ty.ends_with("64");
    let (bytes, class) = if wide { (8, "b64") } else { (4, "b32") };
    let sources = if product { 3 } else { 2 };
    o.expect(1 + sources..=1 + sources)?;
    let mut s = Vec::new();
    for n in 1..=sources {
        s.push(l.source(o.get(n)?, bytes, false)?);
    }
    let d = if wide { Reg::B64(l.destination64(o.get(0)?)?) } else { Reg::B32(l.destination32(o.get(0)?)?) };
    if product {
        let Some(f) = alu::alu("mul", half, ty) else { return Ok(None) };
        let part = l.register(class)?;
        l.apply(f, part, &s[..2]);
        s = vec![part, s[2]];
    }
    let code = l.condition_code()?;
    let carry = match (takes, wide) {
        (true, false) => code,
        (true, true) => {
            let Some(f) = convert::convert(&[], "u64", "u32") else { return Ok(None) };
            let carry = l.register("b64")?;
            l.apply(f, carry, &[code]);
            carry
        }
        (false, false) => Reg::B32(l.constant32(minus.into())?),
        (false, true) => Reg::B64(l.constant64(minus.into())?),
    };
    s.push(carry);
    let (sum, next) = functions(minus, wide);
    if !gives {
        let (op, uses, defs) = applied(sum, d, &s);
        return Ok(Some(Decoded::new(op, uses, defs)));
    }
    // Sources may be the destination: what goes on is computed first, and takes its place last.
    let onward = l.register(class)?;
    l.apply(next, onward, &s);
    l.apply(sum, d, &s);
    let moved = if wide { convert::convert(&[], "u32", "u64") } else { alu::alu("mov", &[], "b32") };
    let Some(moved) = moved else { return Ok(None) };
    let (op, uses, defs) = applied(moved, code, &[onward]);
    Ok(Some(Decoded::new(op, uses, defs)))
}
