//! Barriers, mbarriers and fences.

use super::{Decoded, Family, Lowering, Operands, base as base_of};
use crate::program::op::{Op, Reg};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    match (base, mods) {
        ("bar" | "barrier", ["warp", "sync"]) if base == "bar" => {
            o.expect(1..=1)?;
            let mask = l.source32(o.get(0)?, false)?;
            Ok(Some(Decoded::new(Op::WarpSync { mask }, vec![Reg::B32(mask)], vec![])))
        }
        ("bar" | "barrier", _) => cta_barrier(l, base, mods, o),
        ("mbarrier", [what, rest @ ..]) => mbarrier(l, what, rest, o),
        ("fence", ["proxy", "async"] | ["proxy", "async", "shared::cta" | "shared::cluster" | "global"]) => {
            o.expect(0..=0)?;
            let shared = mods.last() != Some(&"global");
            Ok(Some(Decoded::new(Op::ProxyFence { shared }, vec![], vec![])))
        }
        ("fence", ["mbarrier_init", "release", "cluster"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::InitFence, vec![], vec![])))
        }
        ("fence", ["acq_rel" | "sc", "cta" | "cluster" | "gpu" | "sys"]) | ("membar", ["cta" | "gl" | "sys"]) => {
            o.expect(0..=0)?;
            Ok(Some(Decoded::new(Op::Fence, vec![], vec![])))
        }
        _ => Ok(None),
    }
}

/// `bar.*` is `barrier.*.aligned` (PTX ISA 9.7.13.1).
fn cta_barrier(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let mods = mods.strip_prefix(&["cta"]).unwrap_or(mods);
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

fn mbarrier(l: &mut Lowering, what: &str, rest: &[&str], o: &Operands) -> Family {
    let Some((&"b64", rest)) = rest.split_last() else { return Ok(None) };
    let Some((&("shared" | "shared::cta"), rest)) = rest.split_last() else { return Ok(None) };
    match (what, rest) {
        ("init", []) => {
            o.expect(2..=2)?;
            let address = l.address(o.get(0)?)?;
            let count = l.source32(o.get(1)?, false)?;
            let mut uses = base_of(&address);
            uses.push(Reg::B32(count));
            Ok(Some(Decoded::new(Op::BarrierInit { address, count }, uses, vec![])))
        }
        ("inval", []) => {
            o.expect(1..=1)?;
            let address = l.address(o.get(0)?)?;
            Ok(Some(Decoded::new(Op::BarrierInval { address }, base_of(&address), vec![])))
        }
        ("arrive", ["expect_tx"] | ["expect_tx", "release", "cta"] | [] | ["release", "cta"]) => {
            let expects = rest.first() == Some(&"expect_tx");
            o.expect(if expects { 3..=3 } else { 2..=3 })?;
            let (state, defs) = match o.get(0)? {
                Operand::Sink => (None, vec![]),
                other => {
                    let d = l.destination64(other)?;
                    (Some(d), vec![Reg::B64(d)])
                }
            };
            let address = l.address(o.get(1)?)?;
            let mut uses = base_of(&address);
            let third = if o.len() == 3 { Some(l.source32(o.get(2)?, false)?) } else { None };
            uses.extend(third.map(Reg::B32));
            let (count, expect) = if expects { (None, third) } else { (third, None) };
            Ok(Some(Decoded::new(Op::BarrierArrive { address, count, expect, state }, uses, defs)))
        }
        ("expect_tx", [] | ["relaxed", "cta"]) => {
            o.expect(2..=2)?;
            let address = l.address(o.get(0)?)?;
            let bytes = l.source32(o.get(1)?, false)?;
            let mut uses = base_of(&address);
            uses.push(Reg::B32(bytes));
            Ok(Some(Decoded::new(Op::BarrierExpect { address, bytes }, uses, vec![])))
        }
        ("try_wait" | "test_wait", ["parity"] | ["parity", "acquire", "cta"]) => {
            let block = what == "try_wait";
            o.expect(if block { 3..=4 } else { 3..=3 })?;
            let p = l.destination_predicate(o.get(0)?)?;
            let address = l.address(o.get(1)?)?;
            let parity = l.source32(o.get(2)?, false)?;
            let mut uses = base_of(&address);
            uses.push(Reg::B32(parity));
            // The fourth operand is a time limit in ns: a hint (PTX ISA 9.7.13.15.16).
            if o.len() == 4 {
                uses.push(Reg::B32(l.source32(o.get(3)?, false)?));
            }
            Ok(Some(Decoded::new(Op::BarrierWait { address, p, parity, block }, uses, vec![Reg::Pred(p)])))
        }
        _ => Ok(None),
    }
}
