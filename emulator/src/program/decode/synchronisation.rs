//! Barriers, mbarriers and fences.

use super::{Decoded, Family, Lowering, Operands, base as base_of, wrong};
use crate::program::Bad;
use crate::program::arithmetic::alu::alu;
use crate::program::arithmetic::lanes::lanes;
use crate::program::atomic::{ArrivalKind, Scope, Sync};
use crate::program::op::{Address, AddressSpace, BarrierVote, FenceWays, Op, Reg, Space};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("bar" | "barrier", ["warp", "sync"]) if base == "bar" => {
            o.expect(1..=1)?;
            let mask = l.source32(o.get(0)?, false)?;
            Ok(Some(Decoded::new(Op::WarpSync { mask }, vec![Reg::B32(mask)], vec![])))
        }
        ("barrier", ["cluster", ..])
        | ("mapa" | "getctarank" | "isspacep" | "setmaxnreg" | "griddepcontrol" | "prefetch" | "prefetchu", _)
        | ("applypriority" | "discard", _) => cluster(l, base, mods, o),
        ("bar" | "barrier", _) => cta_barrier(l, base, mods, o),
        ("mbarrier", [what, rest @ ..]) => mbarrier(l, what, rest, o),
        ("fence" | "membar", ["proxy", "async"] | ["proxy", "async", "shared::cta" | "shared::cluster" | "global"]) => {
            o.expect(0..=0)?;
            // Without a state space it covers all (PTX ISA, membar, fence).
            let space = mods.get(2).copied();
            let (shared, global) = (space != Some("global"), matches!(space, None | Some("global")));
            Ok(Some(Decoded::new(Op::ProxyFence { shared, global }, vec![], vec![])))
        }
        // Only what the releasing side does is more than a promise: ptxas makes no instruction of the acquiring one, and of the other the
        // one of fence.proxy.async.shared::cta.
        ("fence", ["proxy", "async::generic", "release", "sync_restrict::shared::cta", "cluster"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::ProxyFence { shared: true, global: false }, vec![], vec![])))
        }
        ("fence", ["proxy", "async::generic", "acquire", "sync_restrict::shared::cluster", "cluster"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::Hint, vec![], vec![])))
        }
        // That they cover shared memory only is passed over.
        (
            "fence",
            [way @ ("acquire" | "release"), "sync_restrict::shared::cluster" | "sync_restrict::shared::cta", "cluster"],
        ) if (*way == "release") == (mods[1] == "sync_restrict::shared::cta") => {
            o.expect(0..=0)?;
            let ways = if *way == "release" { FenceWays::Release } else { FenceWays::Acquire };
            Ok(Some(Decoded::new(Op::Fence { scope: Scope::Cluster, ways }, vec![], vec![])))
        }
        // Two addresses of the same bytes: here, memory has one each.
        ("fence" | "membar", ["proxy", "alias"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::Hint, vec![], vec![])))
        }
        ("fence", ["mbarrier_init", "release", "cluster"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::InitFence, vec![], vec![])))
        }
        // Without a word on its directions it has both (PTX ISA, membar, fence).
        ("fence", [_, "cta" | "cluster" | "gpu" | "sys"] | ["cta" | "cluster" | "gpu" | "sys"])
        | ("membar", ["cta" | "gl" | "sys"]) => {
            o.expect(0..=0)?;
            let ways = match mods {
                ["acquire", _] => FenceWays::Acquire,
                ["release", _] => FenceWays::Release,
                [_] | ["acq_rel" | "sc", _] => FenceWays::Both,
                _ => return Ok(None),
            };
            let scope = mods.last().and_then(|scope| Sync::scope(scope)).unwrap_or(Scope::Gpu);
            Ok(Some(Decoded::new(Op::Fence { scope, ways }, vec![], vec![])))
        }
        _ => Ok(None),
    }
}

/// `bar.*` is `barrier.*.aligned` (PTX ISA 9.7.13.1).
fn cta_barrier(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let mods = mods.strip_prefix(&["cta"]).unwrap_or(mods);
    if let ["red", rest @ ..] = mods {
        return barrier_reduce(l, base, rest, o);
    }
    let (wait, aligned) = match mods {
        ["sync"] => (true, base == "bar"),
        ["arrive"] => (false, base == "bar"),
        ["sync", "aligned"] if base == "barrier" => (true, true),
        ["arrive", "aligned"] if base == "barrier" => (false, true),
        _ => return Ok(None),
    };
    o.expect(if wait { 1..=2 } else { 2..=2 })?;
    let id = l.source32(o.get(0)?, false)?;
    let threads = if o.len() == 2 { Some(l.source32(o.get(1)?, false)?) } else { None };
    let mut uses = vec![Reg::B32(id)];
    uses.extend(threads.map(Reg::B32));
    Ok(Some(Decoded::new(Op::CtaBarrier { id, threads, wait, aligned }, uses, vec![])))
}

/// `bar.red` and `barrier.red`: destination, barrier, perhaps a thread count, predicate.
fn barrier_reduce(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let (what, rest, ty) = match mods {
        ["and", rest @ .., ty] => (BarrierVote::And, rest, *ty),
        ["or", rest @ .., ty] => (BarrierVote::Or, rest, *ty),
        ["popc", rest @ .., ty] => (BarrierVote::Count, rest, *ty),
        _ => return Ok(None),
    };
    let aligned = match rest {
        [] => base == "bar",
        ["aligned"] if base == "barrier" => true,
        _ => return Ok(None),
    };
    if ty != if what == BarrierVote::Count { "u32" } else { "pred" } {
        return Ok(None);
    }
    o.expect(3..=4)?;
    let d = match what {
        BarrierVote::Count => Reg::B32(l.destination32(o.get(0)?)?),
        _ => Reg::Pred(l.destination_predicate(o.get(0)?)?),
    };
    let id = l.source32(o.get(1)?, false)?;
    let threads = if o.len() == 4 { Some(l.source32(o.get(2)?, false)?) } else { None };
    let (operand, negated) = match o.get(o.len() - 1)? {
        Operand::Not(name) => (Operand::Name(name.clone()), true),
        other => (other.clone(), false),
    };
    let a = l.predicate(&operand)?;
    let mut uses = vec![Reg::B32(id), Reg::Pred(a)];
    uses.extend(threads.map(Reg::B32));
    let op = Op::BarrierReduce { id, threads, aligned, what, d, a, negated };
    Ok(Some(Decoded::new(op, uses, vec![d])))
}

/// The modifiers of an mbarrier operation, in any order: real code writes them in several. Without a scope it is at that of the CTA
/// (PTX ISA 9.7.13.15.13, 9.7.13.15.16).
#[derive(Default)]
struct Modifiers {
    expect_tx: bool,
    parity: bool,
    remote: bool,
    /// A state space is written; without one, the address is generic, and may be that of another CTA.
    space: bool,
    relaxed: bool,
    cluster: bool,
    no_complete: bool,
}

fn modifiers(rest: &[&str]) -> Option<Modifiers> {
    let mut m = Modifiers::default();
    for part in rest {
        match *part {
            "expect_tx" => m.expect_tx = true,
            "parity" => m.parity = true,
            "shared::cluster" => (m.remote, m.space) = (true, true),
            "shared" | "shared::cta" => m.space = true,
            "release" | "acquire" | "cta" => {}
            "relaxed" => m.relaxed = true,
            "cluster" => m.cluster = true,
            "noComplete" => m.no_complete = true,
            _ => return None,
        }
    }
    Some(m)
}

fn mbarrier(l: &mut Lowering, what: &str, rest: &[&str], o: &Operands) -> Family {
    let Some((&"b64", rest)) = rest.split_last() else { return Ok(None) };
    if what == "pending_count" && rest.is_empty() {
        return pending_count(l, o);
    }
    let Some(m) = modifiers(rest) else { return Ok(None) };
    if m.no_complete && (!matches!(what, "arrive" | "arrive_drop") || m.expect_tx || m.relaxed || m.cluster) {
        return Ok(None);
    }
    if m.remote && (m.no_complete || !matches!(what, "arrive" | "arrive_drop" | "expect_tx" | "complete_tx")) {
        return Err(wrong(
            format!("`mbarrier.{what}` takes only mbarriers of the own CTA"),
            "Use `.shared::cta`, and let a thread of the barrier's CTA do it.",
        ));
    }
    match what {
        "init" if rest.len() <= 1 => {
            o.expect(2..=2)?;
            let address = l.address(o.get(0)?)?;
            let count = l.source32(o.get(1)?, false)?;
            let mut uses = base_of(&address);
            uses.push(Reg::B32(count));
            Ok(Some(Decoded::new(Op::BarrierInit { address, count }, uses, vec![])))
        }
        "inval" if rest.len() <= 1 => {
            o.expect(1..=1)?;
            let address = l.address(o.get(0)?)?;
            Ok(Some(Decoded::new(Op::BarrierInval { address }, base_of(&address), vec![])))
        }
        "arrive" | "arrive_drop" if !m.parity => {
            if matches!(o.get(0)?, Operand::Memory(..)) {
                return Err(wrong(
                    format!("`{}` has no place for the state", o.opcode),
                    "Begin with a 64-bit register, or with `_` where nobody needs it.",
                ));
            }
            let first = 1;
            let all = m.expect_tx || m.no_complete;
            o.expect(if all { first + 2..=first + 2 } else { first + 1..=first + 2 })?;
            let (state, defs) = match o.get(0)? {
                Operand::Name(_) if m.remote => {
                    return Err(wrong(
                        "an arrival at a remote mbarrier gives no state",
                        "Write `_` in place of the state.",
                    ));
                }
                state @ Operand::Name(_) => {
                    let d = l.destination64(state)?;
                    (Some(d), vec![Reg::B64(d)])
                }
                Operand::Sink => (None, vec![]),
                other => {
                    return Err(wrong(
                        format!("the state of `{}` is {}", o.opcode, super::describe(other)),
                        "Name a 64-bit register, or write `_` where nobody needs it.",
                    ));
                }
            };
            let address = l.address(o.get(first)?)?;
            let mut uses = base_of(&address);
            let third = if o.len() == first + 2 { Some(l.source32(o.get(first + 1)?, false)?) } else { None };
            uses.extend(third.map(Reg::B32));
            let (count, expect) = if m.expect_tx { (None, third) } else { (third, None) };
            let Modifiers { relaxed, cluster: wide, .. } = m;
            // PTX ISA 9.7.13.15.16, example 4.
            let remote = m.remote || !m.space && state.is_none();
            let kind = ArrivalKind { drops: what == "arrive_drop", no_complete: m.no_complete };
            let op = Op::BarrierArrive { address, count, expect, state, remote, relaxed, wide, kind };
            Ok(Some(Decoded::new(op, uses, defs)))
        }
        "expect_tx" | "complete_tx" if !m.parity && !m.expect_tx => {
            o.expect(2..=2)?;
            let address = l.address(o.get(0)?)?;
            let bytes = l.source32(o.get(1)?, false)?;
            let mut uses = base_of(&address);
            uses.push(Reg::B32(bytes));
            let (remote, complete) = (m.remote || !m.space, what == "complete_tx");
            Ok(Some(Decoded::new(Op::BarrierExpect { address, bytes, remote, complete }, uses, vec![])))
        }
        "try_wait" | "test_wait" => {
            let block = what == "try_wait";
            o.expect(if block { 3..=4 } else { 3..=3 })?;
            let p = l.destination_predicate(o.get(0)?)?;
            let address = l.address(o.get(1)?)?;
            let mut uses = base_of(&address);
            let (parity, state) = if m.parity {
                (l.source32(o.get(2)?, false)?, None)
            } else {
                let state = l.source64(o.get(2)?)?;
                uses.push(Reg::B64(state));
                (state_parity(l, state)?, Some(state))
            };
            uses.push(Reg::B32(parity));
            // The fourth operand is a time limit in ns: a hint (PTX ISA, mbarrier.try_wait).
            if o.len() == 4 {
                uses.push(Reg::B32(l.source32(o.get(3)?, false)?));
            }
            let op = Op::BarrierWait { address, p, parity, state, block, relaxed: m.relaxed, wide: m.cluster };
            Ok(Some(Decoded::new(op, uses, vec![Reg::Pred(p)])))
        }
        _ => Ok(None),
    }
}

/// The arrivals that a phase waited for before the one that gave the state: 20 bits above the state's lower half.
fn pending_count(l: &mut Lowering, o: &Operands) -> Family {
    o.expect(2..=2)?;
    let (d, s) = (l.destination32(o.get(0)?)?, l.source64(o.get(1)?)?);
    let f = lanes!(Narrow |state: u64| (state >> 32) as u32 & 0xf_ffff);
    Ok(Some(Decoded::new(Op::Alu { f, d, s: [s, 0, 0] }, vec![Reg::B64(s)], vec![Reg::B32(d)])))
}

/// The lower half of a state that an arrival gave is the number of its phase; the wait is for the end of that one.
fn state_parity(l: &mut Lowering, s: u16) -> Result<u16, crate::program::Bad> {
    let Reg::B32(d) = l.register("b32")? else { return l.constant32(0) };
    if let (Some(low), Some(and)) = (convert("u32", "u64"), alu("and", &[], "b32")) {
        let one = l.constant32(1)?;
        let always = crate::program::op::TRUE;
        l.emit(Op::Alu { f: low, d, s: [s, 0, 0] }, always, false, vec![Reg::B64(s)], vec![Reg::B32(d)]);
        l.emit(Op::Alu { f: and, d, s: [d, one, 0] }, always, false, vec![Reg::B32(d)], vec![Reg::B32(d)]);
    }
    Ok(d)
}

fn convert(to: &str, from: &str) -> Option<crate::program::op::Alu> {
    crate::program::arithmetic::convert::convert(&[], to, from)
}

/// The operands of what is done to a line of L2: its address and 128.
fn line(l: &mut Lowering, o: &Operands) -> Result<Address, Bad> {
    o.expect(2..=2)?;
    match o.get(1)? {
        Operand::Integer(128) => l.address(o.get(0)?),
        other => Err(wrong(
            format!("`{}` of {} bytes", o.opcode, super::describe(other)),
            "It takes 128 bytes: write `128`.",
        )),
    }
}

/// `barrier.cluster.{arrive,wait}` and what concerns addresses of other CTAs.
pub(super) fn cluster(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("barrier", ["cluster", "arrive", rest @ ..]) => {
            if rest.iter().any(|m| !matches!(*m, "release" | "relaxed" | "aligned")) {
                return Ok(None);
            }
            o.expect(0..=0)?;
            let op = Op::ClusterArrive { relaxed: rest.contains(&"relaxed"), aligned: rest.contains(&"aligned") };
            Ok(Some(Decoded::new(op, vec![], vec![])))
        }
        ("barrier", ["cluster", "wait", rest @ ..]) => {
            if rest.iter().any(|m| !matches!(*m, "acquire" | "aligned")) {
                return Ok(None);
            }
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::ClusterWait { aligned: rest.contains(&"aligned") }, vec![], vec![])))
        }
        ("mapa", ["shared::cluster", "u32"] | ["u64"] | ["shared::cluster", "u64"]) => {
            o.expect(3..=3)?;
            let bytes = if mods.last() == Some(&"u64") { 8 } else { 4 };
            let d = l.destination(o.get(0)?)?;
            let s = l.source(o.get(1)?, bytes, false)?;
            let rank = l.source32(o.get(2)?, false)?;
            Ok(Some(Decoded::new(Op::MapAddress { d, s, rank }, vec![s, Reg::B32(rank)], vec![d])))
        }
        ("isspacep", [space]) => {
            let space = match *space {
                "global" => AddressSpace::Global,
                "const" => AddressSpace::Const,
                "local" => AddressSpace::Local,
                "shared" | "shared::cta" => AddressSpace::SharedCta,
                "shared::cluster" => AddressSpace::SharedCluster,
                "param" | "param::entry" => AddressSpace::Param,
                _ => return Ok(None),
            };
            o.expect(2..=2)?;
            let p = l.destination_predicate(o.get(0)?)?;
            let Operand::Name(_) = o.get(1)? else {
                return Err(wrong(
                    format!("the address of `{}` is {}", o.opcode, super::describe(o.get(1)?)),
                    "It is a 64-bit register with a generic address (PTX ISA, isspacep).",
                ));
            };
            let s = Reg::B64(l.source64(o.get(1)?)?);
            Ok(Some(Decoded::new(Op::IsSpace { p, s, space }, vec![s], vec![Reg::Pred(p)])))
        }
        ("getctarank", ["shared::cluster", "u32"] | ["u64"] | ["shared::cluster", "u64"]) => {
            o.expect(2..=2)?;
            let bytes = if mods.last() == Some(&"u64") { 8 } else { 4 };
            let d = l.destination32(o.get(0)?)?;
            let s = l.source(o.get(1)?, bytes, false)?;
            Ok(Some(Decoded::new(Op::AddressRank { d, s }, vec![s], vec![Reg::B32(d)])))
        }
        ("setmaxnreg", [way @ ("inc" | "dec"), "sync", "aligned", "u32"]) => {
            o.expect(1..=1)?;
            match o.get(0)? {
                &Operand::Integer(count @ 24..=256) if count % 8 == 0 => {
                    let op = Op::SetRegisters { count: count as u32, more: *way == "inc" };
                    Ok(Some(Decoded::new(op, vec![], vec![])))
                }
                other => Err(wrong(
                    format!("`setmaxnreg` is given {}", super::describe(other)),
                    "It takes a constant: a multiple of 8 from 24 to 256 (PTX ISA, setmaxnreg).",
                )),
            }
        }
        ("applypriority", ["L2::evict_normal"] | ["global", "L2::evict_normal"]) => {
            let address = line(l, o)?;
            Ok(Some(Decoded::new(Op::Hint, base_of(&address), vec![])))
        }
        ("discard", ["L2"] | ["global", "L2"]) => {
            let address = line(l, o)?;
            let space = if mods.len() == 2 { Space::Global } else { Space::Generic };
            l.check_space(o.get(0)?, space, o.opcode)?;
            Ok(Some(Decoded::new(Op::Discard { space, address }, base_of(&address), vec![])))
        }
        // No other grid runs beside this one (assumption `dependent-launch-alone`); that caches are warmed changes no result.
        ("griddepcontrol", [what @ ("wait" | "launch_dependents")]) => {
            o.expect(0..=0)?;
            let op = if *what == "wait" { Op::GridWait } else { Op::Hint };
            Ok(Some(Decoded::new(op, vec![], vec![])))
        }
        (
            "prefetch",
            ["tensormap"]
            | ["const" | "param", "tensormap"]
            | ["L1" | "L2"]
            | ["global" | "local", "L1" | "L2"]
            | ["global", "L2::evict_last" | "L2::evict_normal"]
            | ["L2::evict_last" | "L2::evict_normal"],
        )
        | ("prefetchu", ["L1"]) => {
            o.expect(1..=1)?;
            let address = l.address(o.get(0)?)?;
            Ok(Some(Decoded::new(Op::Hint, base_of(&address), vec![])))
        }
        _ => Ok(None),
    }
}
