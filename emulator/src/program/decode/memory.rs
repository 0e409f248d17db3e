//! Plain loads and stores.

use super::{Decoded, Family, Lowering, Operands, base as base_of, describe, hints, wrong};
use crate::program::Bad;
use crate::program::atomic::{AtomicOp, LoadOp, Scope, StoreOp, Sync, update, update_global};
use crate::program::layout::type_bytes;
use crate::program::lower::Binding;
use crate::program::matrix::MatrixShape;
use crate::program::op::{Address, Op, Packed, Reg, Space, TRUE};
use crate::syntax::ast::Operand;

/// `cp.async` (not bulk), `ldmatrix` and `stmatrix`.
fn matrix_or_async(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("cp", ["async", "ca" | "cg", "shared" | "shared::cta", "global", hints @ ..])
            if hints.iter().all(|h| h.starts_with("L2::")) =>
        {
            o.expect(3..=5)?;
            let (to, from) = (l.address(o.get(0)?)?, l.address(o.get(1)?)?);
            let Operand::Integer(bytes @ (4 | 8 | 16)) = o.get(2)? else {
                return Err(wrong(format!("`cp.async` of {}", describe(o.get(2)?)), "It copies 4, 8 or 16 bytes."));
            };
            if mods.contains(&"cg") && *bytes != 16 {
                return Err(wrong(
                    format!("`{}` of {bytes} bytes", o.opcode),
                    "With `.cg` it copies 16 bytes; with `.ca` 4, 8 or 16 (PTX ISA 9.7.9.25.3.1).",
                ));
            }
            let mut uses = base_of(&to);
            uses.extend(base_of(&from));
            let hinted = hints.contains(&"L2::cache_hint");
            if hinted {
                let policy = o.len() - 1;
                o.expect(4..=5)?;
                uses.push(Reg::B64(l.source64(o.get(policy)?)?));
            } else {
                o.expect(3..=4)?;
            }
            let read = match o.list.get(3) {
                // A predicate says that nothing is read, a number how many bytes.
                Some(which @ (Operand::Name(name) | Operand::Not(name)))
                    if matches!(l.lookup(name), Some(Binding::Register(Reg::Pred(_), _))) =>
                {
                    let p = l.predicate(which)?;
                    let (all, none) = (l.constant32(*bytes as u32)?, l.constant32(0)?);
                    let Reg::B32(r) = l.register("b32")? else { return Ok(None) };
                    let op = Op::Select32 { d: r, a: none, b: all, p, negated: false };
                    l.emit(op, TRUE, false, vec![Reg::Pred(p)], vec![Reg::B32(r)]);
                    uses.push(Reg::B32(r));
                    Some(r)
                }
                Some(size) if !hinted || o.len() == 5 => {
                    let r = l.source32(size, false)?;
                    uses.push(Reg::B32(r));
                    Some(r)
                }
                _ => None,
            };
            Ok(Some(Decoded::new(Op::AsyncCopy { to, from, bytes: *bytes as u8, read }, uses, vec![])))
        }
        ("cp", ["async", "commit_group"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::AsyncCommit, vec![], vec![])))
        }
        ("cp", ["async", "mbarrier", "arrive", rest @ .., "b64"]) => {
            let (counted, space) = match rest {
                ["noinc", space @ ..] => (true, space),
                space => (false, space),
            };
            if !matches!(space, [] | ["shared" | "shared::cta"]) {
                return Ok(None);
            }
            o.expect(1..=1)?;
            let address = l.address(o.get(0)?)?;
            Ok(Some(Decoded::new(Op::AsyncArrive { address, counted }, base_of(&address), vec![])))
        }
        ("cp", ["async", "wait_all"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::AsyncWait { pending: None }, vec![], vec![])))
        }
        ("cp", ["async", "wait_group"]) => {
            o.expect(1..=1)?;
            let Operand::Integer(pending @ 0..=0xffff) = o.get(0)? else {
                return Err(wrong(format!("the number of groups is {}", describe(o.get(0)?)), "It is a constant."));
            };
            Ok(Some(Decoded::new(Op::AsyncWait { pending: Some(*pending as u32) }, vec![], vec![])))
        }
        ("ldmatrix" | "stmatrix", ["sync", "aligned", rest @ ..]) => {
            let load = base == "ldmatrix";
            let (mut count, mut named, mut ty, mut transposed, mut packed) = (1, "", "", false, None);
            for m in rest {
                match *m {
                    "x1" => count = 1,
                    "x2" => count = 2,
                    "x4" => count = 4,
                    "trans" => transposed = true,
                    "m8n8" | "m16n8" | "m8n16" | "m16n16" => named = m,
                    "b16" | "b8" | "b8x16" => ty = m,
                    "b4x16_p64" => packed = Some(Packed::B4),
                    "b6x16_p32" => packed = Some(Packed::B6),
                    "shared" | "shared::cta" => {}
                    _ => return Ok(None),
                }
            }
            let shape = match (named, ty, packed, load) {
                ("m8n8", "b16", None, _) => MatrixShape::Halves { transposed },
                ("m16n8", "b8", None, false) if transposed => MatrixShape::TallBytes,
                ("m16n16", "b8", None, true) | ("m16n16", "b8x16", Some(_), true) if transposed && count < 4 => {
                    MatrixShape::SquareBytes { packed }
                }
                ("m8n16", "b8x16", Some(packed), true) if !transposed => MatrixShape::WideBytes { packed },
                _ => return Ok(None),
            };
            o.expect(2..=2)?;
            let (value, memory) = if load { (o.get(0)?, o.get(1)?) } else { (o.get(1)?, o.get(0)?) };
            let address = l.address(memory)?;
            let Operand::Vector(list) = value else {
                return Err(wrong(
                    format!("`{}` takes a vector, found {}", o.opcode, describe(value)),
                    "Write its registers in braces, also one: `{%r0}`.",
                ));
            };
            if list.len() != count * shape.registers() {
                let each = if shape.registers() == 2 { "two 32-bit registers" } else { "one 32-bit register" };
                return Err(wrong(
                    format!("{count} matrices, but {} registers", list.len()),
                    format!("Name {each} for each matrix."),
                ));
            }
            let mut regs = Vec::new();
            for part in list {
                regs.push(if load { l.destination32_or_none(part)? } else { l.source32(part, false)? });
            }
            let all: Vec<Reg> = regs.iter().map(|&r| Reg::B32(r)).collect();
            let mut uses = base_of(&address);
            if load {
                return Ok(Some(Decoded::new(Op::MatrixLoad { address, shape, d: regs.into() }, uses, all)));
            }
            uses.extend(all);
            Ok(Some(Decoded::new(Op::MatrixStore { address, shape, s: regs.into() }, uses, vec![])))
        }
        _ => Ok(None),
    }
}

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let load = match base {
        "ld" => true,
        "st" => false,
        "atom" | "red" => return atomic(l, base == "atom", mods, o),
        _ => return matrix_or_async(l, base, mods, o),
    };
    let Some((ty, rest)) = mods.split_last() else { return Ok(None) };
    let Some(bytes) = type_bytes(ty) else { return Ok(None) };
    if hints::check(load, mods, o.opcode)?.is_none() {
        return Ok(None);
    }
    let (mut space, mut lanes, mut hint, mut non_coherent) = (Space::Generic, 1, false, false);
    for m in rest {
        match *m {
            // Constants lie in global memory that nobody writes.
            "global" | "const" => space = Space::Global,
            "shared" | "shared::cta" => space = Space::Shared,
            "shared::cluster" => space = Space::SharedCluster,
            "local" => space = Space::Local,
            "param" | "param::entry" | "param::func" => space = Space::Param,
            "nc" => non_coherent = true,
            "v2" => lanes = 2,
            "v4" => lanes = 4,
            "v8" => lanes = 8,
            "L2::cache_hint" => hint = true,
            // Orders and scopes below; cache hints and eviction priorities have no effect on results (PTX ISA 9.7.9.1, 9.7.9.2).
            _ => {}
        }
    }
    let sync = order(rest, o)?;
    let total = bytes * lanes;
    let wide = matches!((lanes, bytes), (4, 8) | (8, 4)) && !rest.contains(&"const");
    // The ISA has neither. Stores of them are code that ptxas 13.5 makes; at such loads it ends without a word, now and then or always.
    if load && lanes == 8 && bytes < 4 {
        return Err(wrong(
            format!("`{}` loads eight elements of {} bits", o.opcode, 8 * bytes),
            format!(
                "Load `.v{}.b32` and take the elements apart: of `.v8` the PTX ISA has elements of 32 bits (9.7.9.8), and ptxas 13.5 falls \
                 over narrower ones.",
                2 * bytes
            ),
        ));
    }
    if total > 16 && !(wide && matches!(space, Space::Global | Space::Generic)) {
        return Err(wrong(
            format!("`{}` moves {total} bytes", o.opcode),
            "One access moves up to 16 bytes; in global memory also 32, as `.v8.b32` or `.v4.b64`.",
        ));
    }
    let operands = if hint { 3 } else { 2 };
    o.expect(operands..=operands)?;
    let (memory, value) = if load { (o.get(1)?, o.get(0)?) } else { (o.get(0)?, o.get(1)?) };
    let address = l.address(memory)?;
    // Parameters of a call lie in the frame; those of the kernel are not written.
    let named = l.named_space(memory);
    if space == Space::Param && named == Some(Space::Local) {
        space = Space::Local;
    } else if space == Space::Param && !load {
        return Err(wrong("the parameters of a kernel are not written", "Store to a variable of your own."));
    } else if named == Some(Space::Param) && rest.contains(&"param::func") {
        return Err(wrong(
            format!("`{}` reads a parameter of a kernel", o.opcode),
            "Write `.param::entry` or `.param`: `.param::func` has the parameters of calls (PTX ISA 5.1.6).",
        ));
    }
    l.check_space(memory, space, o.opcode)?;
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
        // Elements that are not written: of the vectors of 32 bytes, which name a register at least (PTX ISA, st).
        if !load && wide && *part == Operand::Sink && list.iter().any(|part| *part != Operand::Sink) {
            regs.push(Reg::Sink);
            continue;
        }
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
    if hint {
        uses.push(Reg::B64(l.source64(o.get(2)?)?));
    }
    let signed = ty.starts_with('s');
    Ok(Some(if load {
        let d: Box<[Reg]> = regs.clone().into();
        Decoded::new(
            Op::Load(Box::new(LoadOp { space, address, bytes: bytes as u8, signed, d, sync, non_coherent })),
            uses,
            regs,
        )
    } else {
        let whole = StoreOp { space, address, bytes: bytes as u8, s: regs.into(), of: None, sync };
        if whole.s.contains(&Reg::Sink) {
            return Ok(store_around_sinks(l, &whole, &uses));
        }
        uses.extend(&whole.s);
        Decoded::new(Op::Store(Box::new(whole)), uses, vec![])
    }))
}

/// A store that leaves elements of its vector out is one of each piece between them; where the vector lies as its size asks for, so does each piece.
fn store_around_sinks(l: &mut Lowering, vector: &StoreOp, base: &[Reg]) -> Option<Decoded> {
    let bytes = usize::from(vector.bytes);
    let (mut last, mut at) = (None, 0);
    while at < vector.s.len() {
        let named = vector.s[at..].iter().take_while(|&&s| s != Reg::Sink).count();
        let fits = |n: &usize| *n <= named && n * bytes <= 16 && at.is_multiple_of(*n);
        let Some(count) = [4, 2, 1].into_iter().find(fits) else {
            at += 1;
            continue;
        };
        let s: Box<[Reg]> = vector.s[at..at + count].into();
        let uses = base.iter().chain(&s).copied().collect();
        let before = at * bytes;
        let address = Address { offset: vector.address.offset.wrapping_add(before as i64), ..vector.address };
        let of = Some(((vector.s.len() * bytes) as u8, before as u8));
        let piece = Decoded::new(Op::Store(Box::new(StoreOp { address, s, of, ..*vector })), uses, vec![]);
        if let Some(Decoded { op, uses, defs }) = last.replace(piece) {
            l.emit(op, TRUE, false, uses, defs);
        }
        at += count;
    }
    last
}

/// Order and scope of an access.
fn order(mods: &[&str], o: &Operands) -> Result<Option<Sync>, Bad> {
    Sync::of(mods).map_err(|why| wrong(format!("`{}`: {why}", o.opcode), "See PTX ISA 8.3 to 8.5."))
}

/// `atom`, and `red`, which gives nothing back.
fn atomic(l: &mut Lowering, gives: bool, mods: &[&str], o: &Operands) -> Family {
    // The type of a vector may stand before the operation.
    let is_type = |m: &&str| type_bytes(m).is_some();
    let Some(&ty) = mods.iter().rev().find(|m| is_type(m)) else { return Ok(None) };
    let rest: Vec<&str> = mods.iter().copied().filter(|m| !is_type(m)).collect();
    let rest = rest.as_slice();
    let (mut space, mut what, mut hint, mut lanes) = (Space::Generic, None, false, 1);
    if mods.len() != rest.len() + 1 {
        return Ok(None);
    }
    for m in rest {
        match *m {
            "global" => space = Space::Global,
            "shared" | "shared::cta" => space = Space::Shared,
            "shared::cluster" => space = Space::SharedCluster,
            "relaxed" | "release" | "cta" | "cluster" | "gpu" | "sys" => {}
            // What gives nothing back acquires nothing.
            "acquire" | "acq_rel" if gives => {}
            "add" | "min" | "max" | "and" | "or" | "xor" | "inc" | "dec" if what.is_none() => what = Some(*m),
            "exch" | "cas" if what.is_none() && gives => what = Some(*m),
            "v2" => lanes = 2,
            "v4" => lanes = 4,
            "v8" => lanes = 8,
            // Sums of FP16 and BF16 keep subnormals.
            "noftz" if ty.contains("f16") => {}
            "L2::cache_hint" => hint = true,
            _ => return Ok(None),
        }
    }
    if hint && matches!(space, Space::Shared | Space::SharedCluster) {
        return Err(wrong(
            format!("`{}`: `.L2::cache_hint` says nothing of shared memory", o.opcode),
            "Leave it out: it is for global memory.",
        ));
    }
    let Some((what, (update, bytes))) = what.and_then(|what| Some((what, update(what, ty)?))) else { return Ok(None) };
    let Some((update_global, _)) = update_global(what, ty) else { return Ok(None) };
    // Which vectors there are, and that only they have extremes of halves (PTX ISA, red, atom).
    let halves = ty.contains("f16");
    let vector = match (what, ty) {
        ("add", "f32") => lanes <= 4,
        ("add" | "min" | "max", "f16" | "bf16") => rest.contains(&"noftz"),
        ("add" | "min" | "max", "f16x2" | "bf16x2") => rest.contains(&"noftz") && lanes <= 4,
        _ => false,
    };
    if lanes > 1 && (!vector || matches!(space, Space::Shared | Space::SharedCluster))
        || lanes == 1 && (halves && what != "add" || mods.last() != Some(&ty))
    {
        return Ok(None);
    }
    // Without them: relaxed, at the scope of the GPU (PTX ISA, atom).
    let sync = match rest.iter().find_map(|m| Sync::scope(m)) {
        Some(scope) if order(rest, o).is_err() => Sync { scope, acquire: false, release: false },
        None if order(rest, o).is_err() => {
            let both = rest.contains(&"acq_rel");
            let (acquire, release) = (both || rest.contains(&"acquire"), both || rest.contains(&"release"));
            Sync { scope: Scope::Gpu, acquire, release }
        }
        _ => order(rest, o)?.unwrap_or(Sync { scope: Scope::Gpu, acquire: false, release: false }),
    };
    let first = usize::from(gives);
    let count = first + 2 + usize::from(what == "cas") + usize::from(hint);
    o.expect(count..=count)?;
    let memory = o.get(first)?;
    let address = l.address(memory)?;
    l.check_space(memory, space, o.opcode)?;
    let float = matches!(ty, "f32" | "f64");
    if lanes > 1 {
        let policy = if hint { Some(l.source64(o.get(count - 1)?)?) } else { None };
        let op = AtomicOp {
            space,
            address,
            bytes,
            whole: bytes * lanes as u8,
            update,
            update_global,
            replaces: false,
            d: None,
            s: Reg::Sink,
            t: None,
            sync,
        };
        return vector_atomic(l, o, (gives, lanes, float), op, policy);
    }
    let mut uses = base_of(&address);
    let mut source = |n: usize| match bytes {
        16 => l.register128(o.get(n)?),
        _ => l.source(o.get(n)?, bytes.into(), float),
    };
    let s = source(first + 1)?;
    uses.push(s);
    let t = if what == "cas" { Some(source(first + 2)?) } else { None };
    uses.extend(t);
    if hint {
        uses.push(Reg::B64(l.source64(o.get(count - 1)?)?));
    }
    let d = match gives.then(|| o.get(0)).transpose()? {
        None | Some(Operand::Sink) => None,
        Some(d) if bytes == 16 => Some(l.register128(d)?),
        Some(d) if bytes == 8 => Some(Reg::B64(l.destination64(d)?)),
        Some(d) => Some(Reg::B32(l.destination32(d)?)),
    };
    let replaces = what == "exch";
    let op = AtomicOp { space, address, bytes, whole: bytes, update, update_global, replaces, d, s, t, sync };
    Ok(Some(Decoded::new(Op::Atomic(Box::new(op)), uses, d.into_iter().collect())))
}

/// An operation on a vector is one on each element, in no order (PTX ISA, red, atom).
fn vector_atomic(
    l: &mut Lowering,
    o: &Operands,
    (gives, lanes, float): (bool, usize, bool),
    whole: AtomicOp,
    policy: Option<u16>,
) -> Family {
    let first = usize::from(gives);
    let list = |n: usize| match o.get(n)? {
        Operand::Vector(list) if list.len() == lanes => Ok(list.clone()),
        other => Err(wrong(
            format!("`{}` takes a vector of {lanes} registers, found {}", o.opcode, describe(other)),
            "Name one register for each element, in braces.",
        )),
    };
    let sources = list(first + 1)?;
    // What it gives may be discarded as a whole.
    let results = match gives.then(|| o.get(0)).transpose()? {
        None | Some(Operand::Sink) => vec![Operand::Sink; lanes],
        Some(_) => list(0)?,
    };
    let mut last = None;
    for (n, (source, result)) in sources.iter().zip(&results).enumerate() {
        let s = l.source(source, whole.bytes.into(), float)?;
        let d = match result {
            Operand::Sink => None,
            result => Some(Reg::B32(l.destination32(result)?)),
        };
        let offset = whole.address.offset.wrapping_add((n * usize::from(whole.bytes)) as i64);
        let address = Address { offset, ..whole.address };
        let width = if n == 0 { whole.whole } else { whole.bytes };
        let op = AtomicOp { address, whole: width, d, s, ..whole };
        let mut uses = base_of(&address);
        uses.push(s);
        uses.extend(policy.map(Reg::B64));
        let decoded = Decoded::new(Op::Atomic(Box::new(op)), uses, d.into_iter().collect());
        if let Some(Decoded { op, uses, defs }) = last.replace(decoded) {
            l.emit(op, TRUE, false, uses, defs);
        }
    }
    Ok(last)
}
