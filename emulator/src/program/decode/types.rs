//! Which registers and constants an operand takes: those of its type (PTX ISA 9.4, 9.4.1). What ptxas refuses is refused here.

use super::special::special;
use super::type_table::{Kind, TYPES, is_of_registers, named};
pub use super::type_table::{Type, of_registers};
use super::warp_matrix::fragment;
use super::{Lowering, describe, wrong};
use crate::program::Bad;
use crate::program::lower::Binding;
use crate::syntax::ast::{Instruction, Operand};

/// What an operand takes.
#[derive(Clone, Copy)]
enum Want {
    /// Of this type's width.
    Of(&'static Type),
    /// As wide, or wider: `ld`, `st` and `cvt`.
    Wide(&'static Type),
    /// Of one of these types.
    Only(&'static [&'static str]),
    /// Of one of these types, and no constant.
    Held(&'static [&'static str]),
    /// An integer that counts or names something.
    Count,
    Anything,
}

impl Want {
    fn of(name: &str) -> Want {
        named(name).map_or(Want::Anything, Want::Of)
    }

    fn wide(name: &str) -> Want {
        named(name).map_or(Want::Anything, Want::Wide)
    }

    /// Whether a register of this type will do.
    fn takes(self, register: &Type) -> bool {
        let (ty, wider) = match self {
            Want::Anything => return true,
            Want::Only(names) | Want::Held(names) => return names.contains(&register.name),
            Want::Count => return register.bytes == 4 && matches!(register.kind, Kind::Bits | Kind::Integer),
            Want::Of(ty) => (ty, false),
            Want::Wide(ty) => (ty, true),
        };
        if register.kind == Kind::Predicate {
            return ty.kind == Kind::Predicate;
        }
        let wider = wider && ty.kind != Kind::PackedInBits;
        let width = register.bytes == ty.bytes || wider && register.bytes > ty.bytes;
        width
            && match ty.kind {
                Kind::Bits => true,
                Kind::Integer => matches!(register.kind, Kind::Bits | Kind::Integer | Kind::Packed),
                Kind::Float => register.kind == Kind::Bits || register == ty,
                Kind::Packed => matches!(register.kind, Kind::Bits | Kind::Packed),
                Kind::PackedInBits => register.kind == Kind::Bits,
                Kind::Predicate => false,
            }
    }

    /// Whether a constant will do.
    fn takes_constant(self, operand: &Operand) -> bool {
        let (Want::Of(ty) | Want::Wide(ty)) = self else {
            return match self {
                Want::Held(_) => false,
                Want::Count | Want::Only(_) => matches!(operand, Operand::Integer(_)),
                _ => true,
            };
        };
        match operand {
            Operand::Integer(_) => matches!(ty.kind, Kind::Bits | Kind::Integer | Kind::Predicate),
            Operand::Float32(_) => matches!(ty.name, "f32" | "f64" | "b32"),
            Operand::Float64(_) => matches!(ty.name, "f32" | "f64" | "b64"),
            _ => true,
        }
    }

    /// The types of registers that will do.
    fn text(self) -> String {
        let names: Vec<String> =
            TYPES.iter().filter(|ty| is_of_registers(ty) && self.takes(ty)).map(|ty| format!(".{}", ty.name)).collect();
        names.join(", ")
    }
}

/// Functions of which all operands are of the type that the opcode ends with.
const ALIKE: &[&str] = &[
    "add", "sub", "mul", "mad", "fma", "div", "rem", "neg", "abs", "min", "max", "rcp", "sqrt", "rsqrt", "ex2", "lg2",
    "sin", "cos", "tanh", "and", "or", "xor", "not", "brev", "mov", "lop3", "sad", "cnot", "copysign", "mul24",
    "mad24", "dp4a", "dp2a", "addc", "subc", "madc",
];

/// What an operand of an instruction takes.
fn wants(base: &str, mods: &[&str], operand: usize) -> Want {
    let Some(&ty) = mods.last() else { return Want::Anything };
    let doubled = match ty {
        "u16" => "u32",
        "s16" => "s32",
        "u32" => "u64",
        "s32" => "s64",
        other => other,
    };
    let before = mods.len().checked_sub(2).map_or("", |n| mods[n]);
    match (base, operand) {
        // Two types: FP32 with narrower operands, and `set` and `slct`, which give another type than they look at.
        ("add" | "sub" | "fma", 0) | ("add" | "sub", 2) | ("fma", 3) if before == "f32" => Want::of(before),
        ("set", 0) | ("slct", 0..=2) => Want::of(before),
        ("set", 1 | 2) | ("slct", 3) | ("testp", 1) | ("szext" | "fns", 0 | 1) => Want::of(ty),
        ("szext" | "fns", _) => Want::Count,
        ("mul" | "mad", 0 | 3) if mods.contains(&"wide") => Want::of(doubled),
        // The predicate of a comparison may be a constant, but with BF16.
        ("setp" | "set", 3) if ty.starts_with("bf16") => Want::Held(&["pred"]),
        ("setp", 1 | 2)
        | ("selp", 0..=2)
        | ("shl" | "shr", 0 | 1)
        | ("bfe", 0 | 1)
        | ("bfi", 0..=2)
        | ("popc" | "clz" | "bfind", 1) => Want::of(ty),
        ("shl" | "shr" | "bfe" | "bfi", _) | ("popc" | "clz" | "bfind", 0) => Want::Count,
        ("shf", 0..=2) => Want::of(ty),
        ("shf", _) | ("shfl", 4) | ("redux" | "match", 2) | ("match", 0) => Want::Count,
        ("redux", _) if ty == "b32" => Want::of("u32"),
        ("redux" | "match", _) => Want::of(ty),
        ("vabsdiff2" | "vabsdiff4", _) => Want::Held(&["b32", "u32", "s32"]),
        ("bmsk", _) => Want::of("u32"),
        ("prmt" | "shfl", _) => Want::of("b32"),
        ("lop3", 4) => Want::Anything,
        (base, _) if ALIKE.contains(&base) => Want::of(ty),
        ("st", 1) if mods.contains(&"bulk") => Want::Only(&["b64", "u64", "s64", "b32", "u32", "s32"]),
        ("ld", 0) | ("st", 1) => Want::wide(ty),
        // The cache policy.
        ("red", 2) | ("atom", 4) => Want::of("u64"),
        ("atom", 3) if mods.contains(&"L2::cache_hint") && !mods.contains(&"cas") => Want::of("u64"),
        ("atom", 0) | ("atom" | "red", 1..) => {
            Want::of(mods.iter().rev().find(|m| named(m).is_some()).copied().unwrap_or_default())
        }
        ("cvt", 3) if mods.first() == Some(&"pack") => Want::of("b32"),
        ("cvt", _) if mods.first() == Some(&"pack") => Want::of("s32"),
        // Where BF16 is, no wider registers are.
        ("cvt", 0) if mods.contains(&"bf16") => Want::of(before),
        ("cvt", _) if mods.contains(&"bf16") => Want::of(ty),
        // Scale factors stand last.
        ("cvt", 2) if mods.contains(&"scaled::n2::ue8m0") && ty != "f32" => Want::Held(&["b16"]),
        ("cvt", 3) if mods.contains(&"scaled::n2::ue8m0") => Want::Held(&["b16"]),
        ("cvt", 3) => Want::Held(&["b32"]),
        ("cvt", 2) if before.ends_with("x4") => Want::Held(&["b32"]),
        ("cvt", 0) => narrow(before),
        ("cvt", _) if mods.contains(&"rna") => Want::Held(&["b32", "f32"]),
        ("cvt", _) => narrow(ty),
        _ => counts(base, mods, operand),
    }
}

/// Numbers of fewer than 16 bits are held as bits, of no other width; what else `cvt` takes may be wider.
fn narrow(ty: &str) -> Want {
    match ty {
        "e4m3x2" | "e5m2x2" | "e2m3x2" | "e3m2x2" | "ue8m0x2" | "s2f6x2" => Want::Held(&["b16"]),
        "e2m1x2" => Want::Held(&["b8"]),
        "e2m1x4" => Want::Held(&["b16"]),
        "e4m3x4" | "e5m2x4" | "e2m3x4" | "e3m2x4" => Want::Held(&["b32"]),
        "tf32" => Want::Only(&["b32"]),
        _ => Want::wide(ty),
    }
}

/// What an operand of an instruction that synchronises, copies or multiplies takes: mostly numbers of 32 bits.
fn counts(base: &str, mods: &[&str], operand: usize) -> Want {
    let has = |what: &str| mods.contains(&what);
    let first = mods.first().copied().unwrap_or_default();
    let mask = usize::from(has("multicast::cluster"));
    match (base, first, operand) {
        ("bar" | "barrier", _, 0) if has("red") => Want::of(mods.last().copied().unwrap_or_default()),
        ("bar" | "barrier", _, 1) if has("red") => Want::Count,
        // A predicate, or a thread count and a predicate.
        ("bar" | "barrier", _, 2) if has("red") => Want::Only(&["pred", "b32", "u32", "s32"]),
        ("bar" | "barrier", _, _) if has("red") => Want::Anything,
        ("bar" | "barrier", "sync" | "arrive" | "cta" | "warp", _) => Want::Count,
        ("mbarrier", "init" | "expect_tx" | "complete_tx", 1) => Want::Count,
        ("mbarrier", "pending_count", 0) => Want::Count,
        ("mbarrier", "pending_count", 1) => Want::of("u64"),
        ("mbarrier", "arrive" | "arrive_drop", 0) => Want::of("u64"),
        ("mbarrier", "arrive" | "arrive_drop", 2) => Want::Count,
        ("mbarrier", "try_wait" | "test_wait", 2) if has("parity") => Want::Count,
        ("mbarrier", "try_wait" | "test_wait", 2) => Want::of("u64"),
        ("mbarrier", "try_wait", 3) => Want::Count,
        ("tcgen05", "alloc", 1) | ("tcgen05", "dealloc", _) => Want::Count,
        ("tcgen05", "mma", 1 | 2) | ("tcgen05", "cp", 1) => Want::of("u64"),
        ("tcgen05", "mma", 3) => Want::Count,
        ("clusterlaunchcontrol", "query_cancel", 0) if has("pred") => Want::of("pred"),
        ("clusterlaunchcontrol", "query_cancel", 0) => Want::of("b32"),
        ("clusterlaunchcontrol", "query_cancel", 1) => Want::of("b128"),
        ("createpolicy", "fractional", 1) => Want::of("f32"),
        ("createpolicy", "range", 2 | 3) => Want::Count,
        ("createpolicy", "cvt", 1) => Want::of("u64"),
        ("tensormap", "replace", at) if at > 0 && has("b64") => Want::of("u64"),
        ("tensormap", "replace", 1..) => Want::Count,
        ("movmatrix", _, _) => Want::of("b32"),
        // FP32 fragments take constants, those of pairs do not.
        ("mma", _, _) if has("f64") => Want::of("f64"),
        ("mma", _, 0 | 3) if has("f32") => Want::of("f32"),
        ("mma", _, 0 | 3) if has("s32") => Want::of("s32"),
        ("mma", _, 1 | 2) if has("bf16") => Want::of("bf16x2"),
        ("mma", _, 1 | 2) if has("tf32") => Want::of("b32"),
        ("mma", _, 1 | 2) if !has("f16") || has("e4m3") || has("e5m2") => Want::of("b32"),
        ("mma", _, _) => Want::of("f16x2"),
        ("wgmma", "mma_async", at) => match at {
            0 if has("f32") => Want::Only(&["b32", "f32"]),
            0 if has("s32") => Want::Only(&["b32", "s32", "u32"]),
            // A register of two elements: bits, or two FP16 numbers; no integers, as ptxas says.
            0 => Want::Only(&["b32", "f16x2"]),
            1 | 2 => Want::of("u64"),
            _ => Want::Anything,
        },
        ("tcgen05", "commit", 1) if mask == 1 => Want::of("u16"),
        ("cp", "async", 3) if has("tensor") && mask == 1 => Want::of("u16"),
        ("cp", "async", 4) if !has("tensor") && mask == 1 => Want::of("u16"),
        ("cp", "reduce", 2) if !has("tensor") => Want::Count,
        ("cp", "async", 2) if has("bulk") && !has("tensor") && !has("prefetch") => Want::Count,
        ("cp", "async", 2) if !has("bulk") && !has("L2::cache_hint") => Want::Count,
        ("cp", "async", at) if has("L2::cache_hint") && has("tensor") && has("shared::cluster") && at == 3 + mask => {
            Want::of("u64")
        }
        ("mapa", _, 0 | 1) => Want::of(mods.last().copied().unwrap_or_default()),
        ("isspacep", _, 0) => Want::of("pred"),
        ("isspacep", _, _) => Want::of("u64"),
        ("mapa", _, _) | ("getctarank", _, 0) => Want::Count,
        ("getctarank", _, _) => Want::of(mods.last().copied().unwrap_or_default()),
        ("vote", _, 0) => Want::of(mods.last().copied().unwrap_or_default()),
        ("cp", "async", 1) if has("prefetch") && !has("tensor") => Want::Count,
        ("cp", "async", 3 | 4) if has("ignore_oob") => Want::Count,
        // So many bytes, or whether any.
        ("cp", "async", 3) if !has("bulk") && !has("L2::cache_hint") => Want::Only(&["pred", "b32", "u32", "s32"]),
        ("cvta", _, _) => Want::of("u64"),
        ("elect", _, 1) | ("vote", _, 2) | ("brx", _, 0) | ("nanosleep", _, 0) => Want::Count,
        ("activemask", _, 0) => Want::of("b32"),
        _ => Want::Anything,
    }
}

/// What a variable's name stands for is its address, which these take as an operand.
const TAKE_ADDRESSES: &[&str] = &["mov", "cvta", "mapa", "getctarank", "call", "isspacep"];

/// Refuses registers and constants of another type than the operand takes.
pub fn check(l: &Lowering, inst: &Instruction, base: &str, mods: &[&str]) -> Result<(), Bad> {
    let count = inst.operands.len();
    for (n, operand) in inst.operands.iter().enumerate() {
        let Operand::Vector(elements) = operand else {
            one(l, hinted(base, mods, (n, count)).unwrap_or_else(|| wants(base, mods, n)), operand, inst)?;
            continue;
        };
        let want = match (base, mods) {
            // It is put together of parts, or taken apart.
            ("mov", [ty]) => named(ty).map_or(Want::Anything, |ty| part(ty, elements.len() as u32)),
            ("wgmma", _) if n == 1 && mods.contains(&"s32") => Want::of("b32"),
            ("wgmma", _) if n == 1 => Want::Only(&["b32", "f16x2"]),
            ("tcgen05", ["ld" | "st", ..]) | ("ldmatrix" | "stmatrix", _) => Want::of("b32"),
            ("tcgen05", ["mma", ..]) => Want::Count,
            _ => wants(base, mods, n),
        };
        let bits = base == "mma" && fragment(l, inst, mods, n)?;
        let typed = |element: &&Operand| !(bits && matches!(element, Operand::Integer(_)));
        elements.iter().filter(typed).try_for_each(|element| one(l, want, element, inst))?;
        // Bits go with all others.
        let mut typed = elements.iter().filter_map(|element| register(l, element)).filter(|r| r.1.kind != Kind::Bits);
        let mut widths = elements.iter().filter_map(|element| register(l, element)).map(|(name, ty)| (name, ty.bytes));
        if let Some((name, bytes)) = widths.next()
            && let Some((other, more)) = widths.find(|(_, other)| *other != bytes)
        {
            return Err(wrong(
                format!("a vector of registers of {bytes} bytes (`{name}`) and of {more} bytes (`{other}`)"),
                "The elements of a vector are of one width.",
            ));
        }
        if let Some(first) = typed.next()
            && let Some(other) = typed.find(|other| other.1.kind != first.1.kind)
        {
            return Err(wrong(
                format!(
                    "a vector of `.{}` (`{}`) and `.{}` (`{}`) registers",
                    first.1.name, first.0, other.1.name, other.0
                ),
                "The elements of a vector are of one kind, or bits: declare one of them as `.b32` or the like.",
            ));
        }
    }
    if let ("mov", [ty]) = (base, mods)
        && inst.operands.iter().any(|operand| matches!(operand, Operand::Vector(_)))
        && !ty.starts_with('b')
    {
        let bits = named(ty).map_or(64, |ty| 8 * ty.bytes);
        return Err(wrong(
            format!("`{}` of a vector", inst.opcode),
            format!("Vectors are moved as bits: `mov.b{bits}` (PTX ISA 9.7.9.4)."),
        ));
    }
    Ok(())
}

/// What the cache policy takes, which stands last but for a mask of bytes, and what a `cp.async` with one takes before it.
fn hinted(base: &str, mods: &[&str], (n, count): (usize, usize)) -> Option<Want> {
    let copies = matches!(base, "cp" | "ld" | "st" | "red" | "atom") && mods.contains(&"L2::cache_hint");
    let masked = base == "cp" && mods.contains(&"cp_mask");
    match count - n {
        1 if masked => Some(Want::of("u16")),
        2 if masked && copies => Some(Want::of("u64")),
        1 if copies => Some(Want::of("u64")),
        2 if copies && base == "cp" && n == 3 && !mods.contains(&"bulk") => {
            Some(Want::Only(&["pred", "b32", "u32", "s32"]))
        }
        _ => None,
    }
}

/// One of so many parts of a type of bits.
fn part(ty: &Type, parts: u32) -> Want {
    let bytes = ty.bytes.checked_div(parts);
    let part = TYPES.iter().find(|part| part.kind == Kind::Bits && Some(part.bytes) == bytes);
    part.map_or(Want::Anything, Want::Of)
}

/// The register that an operand names.
pub(super) fn register<'a>(l: &Lowering, operand: &'a Operand) -> Option<(&'a str, &'static Type)> {
    let Operand::Name(name) = operand else { return None };
    match l.lookup(name)? {
        Binding::Register(_, ty) => Some((name, ty)),
        _ => None,
    }
}

fn one(l: &Lowering, want: Want, operand: &Operand, inst: &Instruction) -> Result<(), Bad> {
    let refuse = |what: String, help: String| {
        Err(Bad {
            rule: "A register holds values of its type: bits fit any type of their width, signed and unsigned integers each other, \
                   floats only themselves; ld, st and cvt also take wider registers (PTX ISA 9.4, 9.4.1)."
                .into(),
            ..wrong(what, help)
        })
    };
    match operand {
        Operand::Name(name) => {
            let Some((name, ty)) = register(l, operand) else {
                let integers = |ty: &str| ty.starts_with(['u', 's']);
                let taken = inst.opcode.starts_with("mov.")
                    || inst.opcode.starts_with("cvt.") && inst.opcode.split('.').skip(1).all(integers);
                let variable = matches!(
                    l.lookup(name),
                    Some(Binding::Shared(_) | Binding::Param(_) | Binding::Local(_) | Binding::Global(_))
                );
                let base = inst.opcode.split('.').next().unwrap_or_default();
                if variable && !TAKE_ADDRESSES.contains(&base) {
                    return Err(wrong(
                        format!("`{}` does not take the address of `{name}`", inst.opcode),
                        "Move it to a register first: `mov.u32` or `mov.u64`.",
                    ));
                }
                if special(name).is_none() || taken || l.lookup(name).is_some() {
                    return Ok(());
                }
                return Err(wrong(
                    format!("`{}` does not take the special register `{name}`", inst.opcode),
                    "Move it to a register first: `mov.u32`.",
                ));
            };
            if want.takes(ty) {
                return Ok(());
            }
            let moved = match want {
                Want::Of(of) | Want::Wide(of) if of.bytes == ty.bytes && ty.kind != Kind::Predicate => {
                    format!(", or move the bits first: `mov.b{}`", 8 * ty.bytes)
                }
                _ => String::new(),
            };
            refuse(
                format!("`{name}` is a `.{}` register, which `{}` does not take here", ty.name, inst.opcode),
                format!("Use a register of one of these types: {}{moved}.", want.text()),
            )
        }
        Operand::Integer(_) | Operand::Float32(_) | Operand::Float64(_) if !want.takes_constant(operand) => {
            if let Want::Held(_) = want {
                return refuse(
                    format!("`{}` takes a register here, found {}", inst.opcode, describe(operand)),
                    format!("Move it to a register of one of these types first: {}.", want.text()),
                );
            }
            let (Want::Of(ty) | Want::Wide(ty)) = want else {
                return refuse(
                    format!("`{}` takes an integer here, found {}", inst.opcode, describe(operand)),
                    "Write an integer.".into(),
                );
            };
            let help = match ty.name {
                "f32" => "Write it with a point or as bits: `1.0`, `0f3F800000`.",
                "f64" => "Write it with a point or as bits: `1.0`, `0d3FF0000000000000`.",
                "b32" => "Write its bits: `0f3F800000`, or an integer.",
                "b64" => "Write its bits: `0d3FF0000000000000`, or an integer.",
                _ if matches!(ty.kind, Kind::Integer | Kind::Bits) => "Write an integer.",
                _ => {
                    "There are no constants of this type: move its bits to a register first, with `mov.b16` or `mov.b32`."
                }
            };
            refuse(format!("`{}` does not take {} here", inst.opcode, describe(operand)), help.into())
        }
        Operand::Memory(address, ..) => match register(l, address) {
            Some((name, ty)) if !matches!(ty.kind, Kind::Bits | Kind::Integer) => refuse(
                format!("`{name}` is a `.{}` register, which holds no address", ty.name),
                "Hold addresses in `.b64` or `.u64` registers, those of shared memory also in `.b32` or `.u32`.".into(),
            ),
            Some((name, ty)) if ty.bytes < 8 && is_wide(&inst.opcode) => refuse(
                format!("`{name}` is a `.{}` register; `{}` takes addresses of 64 bits", ty.name, inst.opcode),
                match inst.opcode.split('.').any(|part| part == "global") {
                    true => format!(
                        "Hold addresses of global memory in `.b64` or `.u64` registers (PTX ISA 6.4.1). If it is one of shared memory, write \
                         `{}`.",
                        inst.opcode.replacen(".global", ".shared", 1)
                    ),
                    false => "Hold generic addresses in `.b64` or `.u64` registers (PTX ISA 6.4.1). If it is one of shared memory, write \
                              `.shared` behind the operation."
                        .into(),
                },
            ),
            Some((name, ty)) if ty.bytes < 4 => refuse(
                format!("`{name}` is a `.{}` register, which holds no address", ty.name),
                "Hold addresses in `.b64` or `.u64` registers, those of shared memory also in `.b32` or `.u32`.".into(),
            ),
            _ => Ok(()),
        },
        _ => Ok(()),
    }
}

/// Whether the memory operand of a plain access is an address of 64 bits: a global or a generic one.
fn is_wide(opcode: &str) -> bool {
    let parts: Vec<&str> = opcode.split('.').collect();
    let plain = ["ld", "st", "atom", "red", "prefetch"].contains(&parts[0]);
    let narrow = ["shared", "shared::cta", "shared::cluster", "local", "param", "param::entry", "param::func", "const"];
    plain && !parts.iter().any(|part| narrow.contains(part))
}

/// Whether a `mov` of this type takes the address of a variable.
pub fn is_of_addresses(ty: &str) -> bool {
    named(ty).is_some_and(|ty| matches!(ty.kind, Kind::Bits | Kind::Integer) && (2..=8).contains(&ty.bytes))
}

/// Whether it takes a special register.
pub fn takes_special(ty: &str, name: &str) -> bool {
    let wide = matches!(name, "%clock64" | "%globaltimer");
    special(name).is_some() && is_of_addresses(ty) && named(ty).is_some_and(|ty| (ty.bytes == 8) == wide)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of what ptxas 13.5 takes, found by trying every type of register.
    #[test]
    fn registers_fit_as_ptxas_says() {
        for (want, takes) in [
            (Want::of("u32"), ".b32, .u32, .s32, .f16x2"),
            (Want::of("b32"), ".b32, .u32, .s32, .f32, .f16x2"),
            (Want::of("f32"), ".b32, .f32"),
            (Want::of("f16"), ".b16, .f16"),
            (Want::of("bf16x2"), ".b32"),
            (Want::of("f16x2"), ".b32, .f16x2"),
            (Want::of("s16x2"), ".b32, .f16x2"),
            (Want::of("f32x2"), ".b64"),
            (Want::of("pred"), ".pred"),
            (Want::wide("f32"), ".b32, .f32, .b64, .b128"),
            (Want::wide("u64"), ".b64, .u64, .s64, .b128"),
        ] {
            assert_eq!(want.text(), takes);
        }
    }
}
