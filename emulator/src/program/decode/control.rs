//! Branches, ends, and what lanes of a warp tell each other.

use super::{Decoded, Family, Lowering, Operands, wrong};
use crate::program::arithmetic::alu::alu;
use crate::program::arithmetic::lanes::fold;
use crate::program::lower::Binding;
use crate::program::op::{Abort, Op, Reg, ShuffleMode, VoteMode};
use crate::syntax::ast::Operand;

pub(super) fn decode(l: &mut Lowering, base: &str, mods: &[&str], o: &Operands) -> Family {
    let op = match (base, mods) {
        ("bra", [] | ["uni"]) => {
            o.expect(1..=1)?;
            let Operand::Name(name) = o.get(0)? else {
                return Err(wrong(
                    "the target of `bra` is not a label",
                    "Name a label of this scope or one around it.",
                ));
            };
            match l.lookup(name) {
                Some(Binding::Label(id)) => Op::Branch { target: *id as u32, reconverge: u32::MAX },
                Some(_) => return Err(wrong(format!("`{name}` is not a label"), "Branch to a label.")),
                None => return Err(l.no_label(name)),
            }
        }
        ("brx", ["idx"] | ["idx", "uni"]) => {
            o.expect(2..=2)?;
            let index = l.source32(o.get(0)?, false)?;
            let Operand::Name(name) = o.get(1)? else {
                return Err(wrong(
                    "the second operand of `brx.idx` is not a branch table",
                    "Name a `.branchtargets` list.",
                ));
            };
            let Some(Binding::Table(labels)) = l.lookup(name) else {
                return Err(wrong(format!("`{name}` is not a branch table"), "Declare it with `.branchtargets`."));
            };
            let targets = labels.iter().map(|&label| label as u32).collect();
            let op = Op::BranchTable { index, targets, reconverge: u32::MAX };
            return Ok(Some(Decoded::new(op, vec![Reg::B32(index)], vec![])));
        }
        ("ret", [] | ["uni"]) | ("exit", []) => {
            o.expect(0..=0)?;
            match l.return_to {
                Some(target) if base == "ret" => Op::Branch { target, reconverge: u32::MAX },
                _ => Op::Exit,
            }
        }
        ("trap" | "brkpt", []) => {
            o.expect(0..=0)?;
            Op::Trap(if base == "trap" { Abort::Trap } else { Abort::Breakpoint })
        }
        ("clusterlaunchcontrol", ["try_cancel", "async", rest @ ..]) => {
            let all = rest.contains(&"multicast::cluster::all");
            let known = |m: &&str| {
                matches!(*m, "shared::cta" | "mbarrier::complete_tx::bytes" | "multicast::cluster::all" | "b128")
            };
            if !rest.iter().all(known) {
                return Ok(None);
            }
            o.expect(2..=2)?;
            let (to, barrier) = (l.address(o.get(0)?)?, l.address(o.get(1)?)?);
            let mut uses = super::base(&to);
            uses.extend(super::base(&barrier));
            return Ok(Some(Decoded::new(Op::TryCancel { to, barrier, all }, uses, vec![])));
        }
        ("clusterlaunchcontrol", ["query_cancel", "is_canceled", "pred", "b128"]) => {
            o.expect(2..=2)?;
            let p = l.destination_predicate(o.get(0)?)?;
            let response = l.destination(o.get(1)?)?;
            return Ok(Some(Decoded::new(Op::IsCanceled { p, response }, vec![response], vec![Reg::Pred(p)])));
        }
        (
            "clusterlaunchcontrol",
            ["query_cancel", form, "b32", "b128"] | ["query_cancel", form, "v4", "b32", "b128"],
        ) => {
            o.expect(2..=2)?;
            let first = match *form {
                "get_first_ctaid" | "get_first_ctaid::x" => 0,
                "get_first_ctaid::y" => 1,
                "get_first_ctaid::z" => 2,
                _ => return Ok(None),
            };
            let (list, count) = match o.get(0)? {
                Operand::Vector(list) => (list.as_slice(), 4),
                single => (std::slice::from_ref(single), 1),
            };
            if list.len() != count || (count == 4) != mods.contains(&"v4") {
                return Err(wrong(
                    format!("`{}` gives {} registers", o.opcode, list.len()),
                    "Name one register for `::x`, `::y` or `::z`, a vector of four for all.",
                ));
            }
            let mut d = Vec::new();
            for part in list {
                d.push(if *part == Operand::Sink { Reg::Sink } else { Reg::B32(l.destination32(part)?) });
            }
            d.truncate(3);
            let response = l.destination(o.get(1)?)?;
            let op = Op::FirstCta { d: d.clone().into(), response, first };
            return Ok(Some(Decoded::new(op, vec![response], d)));
        }
        ("nanosleep", ["u32"]) => {
            o.expect(1..=1)?;
            let time = Reg::B32(l.source32(o.get(0)?, false)?);
            return Ok(Some(Decoded::new(Op::Sleep, vec![time], vec![])));
        }
        ("elect", ["sync"]) => {
            o.expect(2..=2)?;
            let Operand::Pair(d, p) = o.get(0)? else {
                return Err(wrong(
                    "`elect.sync` gives a register and a predicate",
                    "Write `elect.sync %r|%p, mask` (or `_|%p`).",
                ));
            };
            let p = l.destination_predicate(p)?;
            let d = if **d == Operand::Sink { None } else { Some(l.destination32(d)?) };
            let mask = l.source32(o.get(1)?, false)?;
            let mut defs = vec![Reg::Pred(p)];
            defs.extend(d.map(Reg::B32));
            return Ok(Some(Decoded::new(Op::Elect { d, p, mask }, vec![Reg::B32(mask)], defs)));
        }
        ("activemask", ["b32"]) => {
            o.expect(1..=1)?;
            let d = l.destination32(o.get(0)?)?;
            return Ok(Some(Decoded::new(Op::ActiveMask { d }, vec![], vec![Reg::B32(d)])));
        }
        ("shfl", ["sync", mode, "b32"]) => {
            o.expect(5..=5)?;
            let mode = match *mode {
                "up" => ShuffleMode::Up,
                "down" => ShuffleMode::Down,
                "bfly" => ShuffleMode::Butterfly,
                "idx" => ShuffleMode::Index,
                _ => return Ok(None),
            };
            let (d, p) = match o.get(0)? {
                // Its predicate may be discarded, its value may not.
                Operand::Pair(d, p) if **p == Operand::Sink => (l.destination32(d)?, None),
                Operand::Pair(d, p) => (l.destination32(d)?, Some(l.destination_predicate(p)?)),
                single => (l.destination32(single)?, None),
            };
            let [a, b, c, mask] = [1, 2, 3, 4].map(|n| o.get(n).and_then(|x| l.source32(x, false)));
            let (a, b, c, mask) = (a?, b?, c?, mask?);
            let mut defs = vec![Reg::B32(d)];
            defs.extend(p.map(Reg::Pred));
            let uses = [a, b, c, mask].map(Reg::B32).to_vec();
            return Ok(Some(Decoded::new(Op::Shuffle { mode, d, p, a, b, c, mask }, uses, defs)));
        }
        ("redux", ["sync", what, flags @ .., ty]) => {
            let (abs, nan) = (flags.contains(&"abs"), flags.contains(&"NaN"));
            let what = if nan { fold(&format!("{what}.NaN"), ty) } else { fold(what, ty) };
            let Some(what) = what else { return Ok(None) };
            o.expect(3..=3)?;
            let d = l.destination32(o.get(0)?)?;
            let (mut a, mask) = (l.source32(o.get(1)?, *ty == "f32")?, l.source32(o.get(2)?, false)?);
            // A magnitude, or the number itself: of a NaN the canonical one.
            let own = if abs { alu("abs", &[], ty) } else { alu("max", &[], ty) };
            if *ty == "f32"
                && let (Some(f), Reg::B32(number)) = (own, l.register("b32")?)
            {
                let op = Op::Alu { f, d: number, s: [a, a, 0] };
                l.emit(op, crate::program::op::TRUE, false, vec![Reg::B32(a)], vec![Reg::B32(number)]);
                a = number;
            }
            let uses = [a, mask].map(Reg::B32).to_vec();
            return Ok(Some(Decoded::new(Op::Reduce { what, d, a, mask }, uses, vec![Reg::B32(d)])));
        }
        ("match", [what @ ("any" | "all"), "sync", ty @ ("b32" | "b64")]) => {
            o.expect(3..=3)?;
            let all = *what == "all";
            // Only `.all` has a predicate, and it may be left out, or discarded, as its mask may.
            let (d, p) = match o.get(0)? {
                Operand::Pair(d, p) if all && **p == Operand::Sink => (d.as_ref(), None),
                Operand::Pair(d, p) if all => (d.as_ref(), Some(l.destination_predicate(p)?)),
                single => (single, None),
            };
            let d = l.destination32_or_none(d)?;
            let a = l.source(o.get(1)?, if *ty == "b64" { 8 } else { 4 }, false)?;
            let mask = l.source32(o.get(2)?, false)?;
            let mut defs = vec![Reg::B32(d)];
            defs.extend(p.map(Reg::Pred));
            return Ok(Some(Decoded::new(Op::Match { all, d, p, a, mask }, vec![a, Reg::B32(mask)], defs)));
        }
        ("vote", ["sync", mode, ty]) => {
            o.expect(3..=3)?;
            let mode = match (*mode, *ty) {
                ("all", "pred") => VoteMode::All,
                ("any", "pred") => VoteMode::Any,
                ("uni", "pred") => VoteMode::Uniform,
                ("ballot", "b32") => VoteMode::Ballot,
                _ => return Ok(None),
            };
            let d = l.destination(o.get(0)?)?;
            let (operand, negated) = match o.get(1)? {
                Operand::Not(name) => (Operand::Name(name.clone()), true),
                other => (other.clone(), false),
            };
            let a = l.predicate(&operand)?;
            let mask = l.source32(o.get(2)?, false)?;
            let uses = vec![Reg::Pred(a), Reg::B32(mask)];
            return Ok(Some(Decoded::new(Op::Vote { mode, d, a, negated, mask }, uses, vec![d])));
        }
        _ => return Ok(None),
    };
    Ok(Some(Decoded::new(op, vec![], vec![])))
}
