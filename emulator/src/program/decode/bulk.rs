//! Copies by the TMA engine: `cp.async.bulk.*` and `cp.reduce.async.bulk.*`.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, wrong};
use crate::program::Bad;
use crate::program::op::{Address, Op, Reduction, Reg, TmaKind, TmaOp};
use crate::syntax::ast::Operand;
use crate::tensor_map::Element;

/// The modifiers, in any order: real code writes them in several.
#[derive(Default)]
struct Modifiers {
    tensor: Option<usize>,
    shared_first: Option<&'static str>,
    to_global: bool,
    prefetch: bool,
    forward: bool,
    mbarrier: bool,
    multicast: bool,
    /// `tile::gather4` or `tile::scatter4`.
    four_rows: Option<&'static str>,
    pair: bool,
    bulk_group: bool,
    hint: bool,
    cp_mask: bool,
    ignore_oob: bool,
    reduction: Option<Reduction>,
    /// `.u32` and the like, of a reduction without a tensor map.
    element: Option<Element>,
    noftz: bool,
}

fn modifiers(mods: &[&str], reduce: bool) -> Option<Modifiers> {
    let mut m = Modifiers::default();
    let mut spaces = Vec::new();
    let mut rest = mods.iter().copied().peekable();
    while let Some(part) = rest.next() {
        match part {
            "tensor" => {
                let rank = rest.next()?.strip_suffix('d')?.parse().ok()?;
                m.tensor = Some(rank);
            }
            "shared::cta" | "shared::cluster" | "global" => spaces.push(part),
            "L2" => m.prefetch = true,
            "prefetch" => m.prefetch = true,
            "tile" | "cta_group::1" => {}
            "tile::gather4" if !reduce => m.four_rows = Some("tile::gather4"),
            "tile::scatter4" if !reduce => m.four_rows = Some("tile::scatter4"),
            "cta_group::2" => m.pair = true,
            "mbarrier::complete_tx::bytes" => m.mbarrier = true,
            "multicast::cluster" => m.multicast = true,
            "bulk_group" => m.bulk_group = true,
            "L2::cache_hint" => m.hint = true,
            "cp_mask" if !reduce => m.cp_mask = true,
            "ignore_oob" if !reduce => m.ignore_oob = true,
            "add" if reduce => m.reduction = Some(Reduction::Add),
            "min" if reduce => m.reduction = Some(Reduction::Min),
            "max" if reduce => m.reduction = Some(Reduction::Max),
            "and" if reduce => m.reduction = Some(Reduction::And),
            "or" if reduce => m.reduction = Some(Reduction::Or),
            "xor" if reduce => m.reduction = Some(Reduction::Xor),
            "inc" if reduce => m.reduction = Some(Reduction::Inc),
            "dec" if reduce => m.reduction = Some(Reduction::Dec),
            "noftz" if reduce => m.noftz = true,
            ty if reduce && m.reduction.is_some() && m.tensor.is_none() && m.element.is_none() => {
                m.element = Some(element(m.reduction?, ty)?);
            }
            _ => return None,
        }
    }
    // Sums of FP16 and BF16 keep subnormals, and say so (PTX ISA, cp.reduce.async.bulk).
    let sum16 = m.reduction == Some(Reduction::Add) && matches!(m.element, Some(Element::F16 | Element::Bf16));
    if m.noftz != sum16 || (reduce && m.tensor.is_none() && m.element.is_none()) {
        return None;
    }
    // Rows are gathered on the way from global memory, and scattered on the way there (PTX ISA 5.5.3.4).
    let gathers = m.prefetch || spaces.first() != Some(&"global");
    if m.four_rows.is_some_and(|mode| m.tensor != Some(2) || gathers != (mode == "tile::gather4")) {
        return None;
    }
    // Bytes are left out of plain copies only (PTX ISA, cp.async.bulk).
    let plain = m.tensor.is_none() && !m.prefetch;
    if m.cp_mask && !(plain && spaces == ["global", "shared::cta"])
        || m.ignore_oob && !(plain && spaces == ["shared::cta", "global"])
    {
        return None;
    }
    match (spaces.as_slice(), m.prefetch) {
        (["global"], true) => {}
        (["shared::cta", "global"], false) => m.shared_first = Some("shared::cta"),
        (["shared::cluster", "global"], false) => m.shared_first = Some("shared::cluster"),
        (["global", "shared::cta"], false) => m.to_global = true,
        (["shared::cluster", "shared::cta"], false) => m.forward = true,
        _ => return None,
    }
    Some(m)
}

/// The type of a reduction without a tensor map, if its operation has it (PTX ISA, cp.reduce.async.bulk).
fn element(how: Reduction, ty: &str) -> Option<Element> {
    use Reduction::{Add, And, Dec, Inc, Max, Min, Or, Xor};
    Some(match (how, ty) {
        (Add | Min | Max | Inc | Dec, "u32") | (And | Or | Xor, "b32") => Element::U32,
        (Add | Min | Max, "s32") => Element::S32,
        (Add | Min | Max, "u64") | (And | Or | Xor, "b64") => Element::U64,
        (Min | Max, "s64") => Element::S64,
        (Add | Min | Max, "f16") => Element::F16,
        (Add | Min | Max, "bf16") => Element::Bf16,
        // The machine code has no `.FTZ` here, which atomic sums of FP32 have: subnormals stay, as in a tensor of FP32.
        (Add, "f32") => Element::F32,
        (Add, "f64") => Element::F64,
        _ => return None,
    })
}

/// Whether a reduction has a type in shared memory: 32-bit integers, and sums of 64-bit ones without sign (PTX ISA, cp.reduce.async.bulk).
fn in_shared(how: Reduction, element: Option<Element>) -> bool {
    match element {
        Some(Element::U32 | Element::S32) => true,
        Some(Element::U64) => how == Reduction::Add,
        _ => false,
    }
}

/// Says of a reduction without a tensor map what its type lacks, or has too much of.
fn check_noftz(mods: &[&str]) -> Result<(), Bad> {
    let has = |part: &str| mods.contains(&part);
    let half = has("add") && (has("f16") || has("bf16"));
    match (half, has("noftz")) {
        (true, false) => Err(wrong(
            "a sum of `.f16` or `.bf16` without `.noftz`",
            "Write `.add.noftz`: these sums keep subnormals, and say so (PTX ISA, cp.reduce.async.bulk).",
        )),
        (false, true) => Err(wrong(
            "`.noftz` on something else than a sum of `.f16` or `.bf16`",
            "Leave it out (PTX ISA, cp.reduce.async.bulk).",
        )),
        _ => Ok(()),
    }
}

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let reduce = match (base, mods) {
        ("cp", ["async", "bulk", "commit_group"]) => {
            o.expect(0..=0)?;
            return Ok(Some(Decoded::new(Op::BulkCommit, vec![], vec![])));
        }
        ("cp", ["async", "bulk", "wait_group", rest @ ..]) if matches!(rest, [] | ["read"]) => {
            o.expect(1..=1)?;
            let Operand::Integer(pending @ 0..=0xffff_ffff) = o.get(0)? else {
                return Err(wrong(format!("the number of groups is {}", describe(o.get(0)?)), "It is a constant."));
            };
            let op = Op::BulkWait { pending: *pending as u32, read: !rest.is_empty() };
            return Ok(Some(Decoded::new(op, vec![], vec![])));
        }
        ("cp", ["async", "bulk", ..]) => false,
        ("cp", ["reduce", "async", "bulk", ..]) => true,
        _ => return Ok(None),
    };
    if reduce && !mods.contains(&"tensor") {
        check_noftz(mods)?;
    }
    let Some(m) = modifiers(&mods[if reduce { 3 } else { 2 }..], reduce) else { return Ok(None) };
    let kind = match (m.prefetch, m.to_global, m.forward, m.reduction) {
        (true, ..) => TmaKind::Prefetch,
        (_, _, true, Some(r)) if reduce && in_shared(r, m.element) && !(m.hint || m.multicast || m.pair) => {
            TmaKind::Forward
        }
        (_, true, _, Some(r)) if reduce => TmaKind::Reduce(r),
        (_, true, _, None) if !reduce => TmaKind::Store,
        (_, _, true, _) if !reduce => TmaKind::Forward,
        _ if reduce => return Ok(None),
        _ => TmaKind::Load,
    };
    let load = matches!(kind, TmaKind::Load | TmaKind::Forward);
    if load != m.mbarrier || (matches!(kind, TmaKind::Store | TmaKind::Reduce(_)) != m.bulk_group) {
        return Ok(None);
    }
    let mut c = Cursor { o, next: 0, uses: Vec::new() };
    let none = Address { base: Reg::Sink, offset: 0 };
    let mut op = TmaOp {
        kind,
        shared: none,
        remote: m.shared_first == Some("shared::cluster") || m.forward,
        map: none,
        combines: m.reduction.filter(|_| m.forward),
        coordinates: Vec::new(),
        four_rows: m.four_rows.is_some(),
        bytes: None,
        mask: None,
        ignored: None,
        element: m.element,
        barrier: None,
        targets: None,
        pair: m.pair,
    };
    // Loads name the destination first, stores the tensor.
    if load {
        op.shared = c.address(l)?;
    }
    if let Some(rank) = m.tensor {
        (op.map, op.coordinates) = c.tensor(l, rank, op.four_rows)?;
    } else {
        op.map = c.address(l)?;
    }
    if matches!(kind, TmaKind::Store | TmaKind::Reduce(_)) {
        op.shared = c.address(l)?;
    }
    if m.tensor.is_none() {
        op.bytes = Some(c.word(l)?);
    }
    if m.ignore_oob {
        op.ignored = Some([c.ignored(l)?, c.ignored(l)?]);
    }
    if load {
        op.barrier = Some(c.address(l)?);
    }
    if m.multicast {
        op.targets = Some(c.word(l)?);
    }
    if m.hint {
        let policy = l.source64(c.o.get(c.next)?)?;
        c.uses.push(Reg::B64(policy));
        c.next += 1;
    }
    if m.cp_mask {
        op.mask = Some(c.word(l)?);
    }
    o.expect(c.next..=c.next)?;
    Ok(Some(Decoded::new(Op::Tma(Box::new(op)), c.uses, vec![])))
}

/// Walks the operands.
struct Cursor<'a> {
    o: &'a Operands<'a>,
    next: usize,
    uses: Vec<Reg>,
}

impl Cursor<'_> {
    fn address(&mut self, l: &mut Lowering) -> Result<Address, Bad> {
        let address = l.address(self.o.get(self.next)?)?;
        self.uses.extend(base_of(&address));
        self.next += 1;
        Ok(address)
    }

    fn word(&mut self, l: &mut Lowering) -> Result<u16, Bad> {
        let operand = self.o.get(self.next)?;
        // The multicast mask and the one of bytes have 16 bits.
        let reg = l.source32(operand, false)?;
        self.uses.push(Reg::B32(reg));
        self.next += 1;
        Ok(reg)
    }

    /// Bytes that may lie outside: a register, or a number that ptxas takes.
    fn ignored(&mut self, l: &mut Lowering) -> Result<u16, Bad> {
        match self.o.get(self.next)? {
            Operand::Integer(bytes) if !(0..16).contains(bytes) => {
                Err(wrong(format!("{bytes} ignored bytes"), "0 to 15 bytes can be ignored at each end."))
            }
            _ => self.word(l),
        }
    }

    /// `[map, {c0, c1}]`
    fn tensor(&mut self, l: &mut Lowering, rank: usize, four_rows: bool) -> Result<(Address, Vec<u16>), Bad> {
        let operand = self.o.get(self.next)?;
        let Operand::Memory(base, offset, rest) = operand else {
            return Err(wrong(
                format!("expected `[map, {{…}}]`, found {}", describe(operand)),
                "Give the tensor map and its coordinates.",
            ));
        };
        let [Operand::Vector(list)] = rest.as_slice() else {
            return Err(wrong(
                "this tensor copy has no coordinates",
                "Write `[map, {c0, c1}]`, innermost coordinate first.",
            ));
        };
        if four_rows && list.len() != 5 {
            return Err(wrong(
                format!("{} coordinates for a copy of four rows", list.len()),
                "Give five 32-bit coordinates: the first column, and four rows.",
            ));
        }
        if !four_rows && list.len() != rank || !(1..=5).contains(&rank) {
            return Err(wrong(
                format!("{} coordinates for a copy of {rank} dimensions", list.len()),
                "Give one 32-bit coordinate for each dimension, 1 to 5.",
            ));
        }
        // PTX has no place for an offset here.
        if *offset != 0 {
            return Err(wrong(
                format!("the tensor map of `{}` is named by an address and an offset, {offset:+}", self.o.opcode),
                format!("Add it first, `add.s64 %rd, %rd, {offset};`, and name the sum."),
            ));
        }
        let narrow = list.iter().find(|part| match part {
            Operand::Name(name) => l.is_narrow(name),
            _ => false,
        });
        if let Some(narrow) = narrow {
            return Err(wrong(
                format!("{} is a register of fewer than 32 bits, a coordinate has 32", describe(narrow)),
                "Widen it first: `cvt.s32.s16 %r, %h;`.",
            ));
        }
        let map = l.address(&Operand::Memory(base.clone(), 0, vec![]))?;
        self.uses.extend(base_of(&map));
        let mut coordinates = Vec::new();
        for part in list {
            coordinates.push(l.source32(part, false)?);
        }
        self.uses.extend(coordinates.iter().map(|&r| Reg::B32(r)));
        self.next += 1;
        Ok((map, coordinates))
    }
}
