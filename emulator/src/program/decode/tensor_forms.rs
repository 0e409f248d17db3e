//! What a `tcgen05` opcode that is of no form lacks or has too much, said with what the PTX ISA takes there.

use super::wrong;
use crate::program::Bad;
use crate::program::kind::Kind;
use crate::program::op::TensorShape;
use crate::syntax::ast::Operand;

/// The most repetitions that any shape of `tcgen05.ld` and `tcgen05.st` has, and the registers of a thread.
const MOST: u32 = 128;

/// The shapes of `tcgen05.ld` and `tcgen05.st`, with the registers that a thread has of each, and so their repetitions.
const SHAPES: &[(&str, Option<TensorShape>, u32)] = &[
    ("32x32b", Some(TensorShape::S32x32b), 1),
    ("16x64b", Some(TensorShape::S16x64b), 1),
    ("16x128b", Some(TensorShape::S16x128b), 2),
    ("16x256b", Some(TensorShape::S16x256b), 4),
    ("16x32bx2", None, 1),
];

/// The shapes of `tcgen05.cp`, and the multicasts that each asks for.
const COPIES: &[(&str, &[&str])] = &[
    ("128x256b", &[]),
    ("4x256b", &[]),
    ("128x128b", &[]),
    ("64x128b", &["warpx2::02_13", "warpx2::01_23"]),
    ("32x128b", &["warpx4"]),
];

/// Shape and number of registers a thread, if the ISA has this shape with this repetition. A shape of two halves is not among them.
pub(super) fn shaped(shape: &str, times: &str) -> Option<(TensorShape, usize)> {
    let &(_, shape, each) = SHAPES.iter().find(|(name, ..)| *name == shape)?;
    Some((shape?, (repetitions(times, each)? * each) as usize))
}

/// How often a shape of which a thread has so many registers is repeated.
pub(super) fn repetitions(times: &str, each: u32) -> Option<u32> {
    let times: u32 = times.strip_prefix('x')?.parse().ok()?;
    (times.is_power_of_two() && times * each <= MOST).then_some(times)
}

/// What is wrong with an opcode that no form fits, if it can be said; its modifiers may stand in any order.
pub(super) fn check(mods: &[&str]) -> Result<(), Bad> {
    if let Some(group) = mods.iter().find(|m| m.starts_with("cta_group::") && !["1", "2"].contains(&&m[11..])) {
        return Err(wrong(
            format!("there is no `.{group}`"),
            "Write `.cta_group::1`, or `.cta_group::2` for the CTAs of a pair.",
        ));
    }
    match mods.first() {
        Some(op @ (&"ld" | &"st")) => moved(op, mods),
        Some(&"cp") => copied(mods),
        Some(&"mma") => multiplied(mods),
        _ => Ok(()),
    }
}

fn listed(names: impl Iterator<Item = String>) -> String {
    names.map(|name| format!("`.{name}`")).collect::<Vec<_>>().join(", ")
}

/// `tcgen05.ld` and `tcgen05.st`: how often the shape is repeated, and what is packed.
fn moved(op: &str, mods: &[&str]) -> Result<(), Bad> {
    let Some((shape, _, each)) = SHAPES.iter().find(|(name, ..)| mods.contains(name)) else { return Ok(()) };
    let (own, other) = if op == "ld" { ("pack::16b", "unpack::16b") } else { ("unpack::16b", "pack::16b") };
    if mods.contains(&other) {
        return Err(wrong(
            format!("`tcgen05.{op}` with `.{other}`"),
            format!("Loads pack and stores unpack: write `.{own}`, or leave it out (PTX ISA 9.7.16.8.2)."),
        ));
    }
    let numbered = |m: &&&str| m.strip_prefix('x').is_some_and(|n| n.parse::<u64>().is_ok());
    let allowed = || {
        let all = (0..8).map(|n| 1 << n).filter(|times| times * each <= MOST);
        format!(
            "`.{shape}` has {} (PTX ISA, tcgen05.{op}, table of .num and .shape).",
            listed(all.map(|n| format!("x{n}")))
        )
    };
    match mods.iter().find(numbered) {
        None => Err(wrong(format!("`tcgen05.{op}` of `.{shape}` does not say how often it is repeated"), allowed())),
        Some(times) if repetitions(times, *each).is_none() => {
            Err(wrong(format!("`tcgen05.{op}` of `.{shape}` cannot have `.{times}`"), allowed()))
        }
        Some(_) => Ok(()),
    }
}

/// `tcgen05.cp`: which warps get a copy.
fn copied(mods: &[&str]) -> Result<(), Bad> {
    let Some((shape, wanted)) = COPIES.iter().find(|(name, _)| mods.contains(name)) else { return Ok(()) };
    let found: Vec<&str> = mods.iter().copied().filter(|m| m.starts_with("warpx")).collect();
    if found.is_empty() && wanted.is_empty() || matches!(found.as_slice(), [one] if wanted.contains(one)) {
        return Ok(());
    }
    let found = if found.is_empty() { "no multicast".into() } else { listed(found.iter().map(|m| m.to_string())) };
    let allowed = match wanted {
        [] => "It reaches all lanes by itself: write it without.".into(),
        [one] => format!("It asks for `.{one}`."),
        some => format!("It asks for one of {}.", listed(some.iter().map(|m| m.to_string()))),
    };
    Err(wrong(
        format!("`tcgen05.cp` of `.{shape}` with {found}"),
        format!("{allowed} Which warps get a copy depends on the shape (PTX ISA 9.7.16.9.2)."),
    ))
}

/// `tcgen05.mma`: some kinds have scale factors, the others have none.
fn multiplied(mods: &[&str]) -> Result<(), Bad> {
    let Some(kind) = mods.iter().find_map(|m| Kind::named(m)) else { return Ok(()) };
    match (kind.is_scaled(), mods.contains(&"block_scale")) {
        (true, false) => Err(wrong(
            format!("`{}` without `.block_scale`", kind.name()),
            "Write `.block_scale` behind the kind, and the addresses of both scale factors before enable-input-d (PTX ISA, tcgen05.mma).",
        )),
        (false, true) => Err(wrong(
            format!("`{}` with `.block_scale`", kind.name()),
            "Leave it out: `kind::mxf8f6f4`, `kind::mxf4` and `kind::mxf4nvf4` have scale factors (PTX ISA, tcgen05.mma).",
        )),
        _ => Ok(()),
    }
}

/// The distance of the halves of `.16x32bx2`, which is operand `n` of so many.
pub(super) fn distance(op: &str, operands: &[Operand], n: usize) -> Result<u32, Bad> {
    let (place, example) = match op {
        "ld" => ("Behind the address", "{…}, [taddr], 16"),
        _ => ("Between address and vector", "[taddr], 16, {…}"),
    };
    let help = || format!("{place} stands a constant number of columns, 0 … 511: `{example}` (PTX ISA, tcgen05.{op}).");
    match operands.get(n) {
        Some(Operand::Integer(columns @ 0..=511)) if operands.len() == 3 => Ok(*columns as u32),
        Some(other) if operands.len() == 3 => {
            Err(wrong(format!("the distance of the halves of `.16x32bx2` is {}", super::describe(other)), help()))
        }
        _ => Err(wrong(format!("`tcgen05.{op}` of `.16x32bx2` takes 3 operands, found {}", operands.len()), help())),
    }
}
