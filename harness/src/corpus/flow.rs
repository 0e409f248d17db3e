//! What an instruction reads and writes, and which threads come to it: as much as the rules of [`super::equivalent`] need.

use super::text::{Statement, Text, registers};
use std::ops::Range;

/// Instructions that compute registers from registers, constants and parameters, and do nothing else.
const PURE: [&str; 24] = [
    "add", "and", "bfe", "bfi", "cvt", "cvta", "div", "ld.param", "mad", "mapa", "max", "min", "mov", "mul", "neg",
    "not", "or", "rem", "selp", "setp", "shl", "shr", "sub", "xor",
];
/// Special registers that threads of a CTA read alike.
const ALIKE: [&str; 8] = [
    "%ctaid",
    "%nctaid",
    "%ntid",
    "%clusterid",
    "%nclusterid",
    "%cluster_ctarank",
    "%cluster_ctaid",
    "%cluster_nctarank",
];
/// Special registers that never change for a thread.
const CONSTANT: [&str; 2] = ["%tid", "%laneid"];

/// Whether a statement only computes registers. One that reads a clock does not: it says when it ran.
pub fn is_pure(statement: &Statement) -> bool {
    let special = |register: &&str| register.chars().last().is_some_and(|c| !c.is_ascii_digit());
    let known = |register: &str| ALIKE.iter().chain(&CONSTANT).any(|name| register.split('.').next() == Some(name));
    let mut read = statement.operands().iter().flat_map(|operand| registers(operand)).filter(special);
    PURE.iter().any(|opcode| statement.is(opcode)) && read.all(known)
}

/// Whether a branch leads out of some statements.
pub fn is_left(text: &Text, part: Range<usize>) -> bool {
    text.branches().iter().any(|(at, to)| part.contains(at) && !part.contains(to))
}

/// The branches from elsewhere that lead into some statements.
pub fn entries(text: &Text, part: Range<usize>) -> impl Iterator<Item = usize> + '_ {
    let enters = move |(at, to): &&(usize, usize)| !part.contains(at) && part.contains(to);
    text.branches().iter().filter(enters).map(|(at, _)| *at)
}

/// The registers that a pure instruction, or `elect.sync`, writes.
pub fn written(statement: &Statement) -> Vec<&str> {
    statement.operands().first().map(|operand| registers(operand).collect()).unwrap_or_default()
}

/// Whether an instruction writes its first operand: one that computes, elects, or asks an mbarrier.
pub fn computes(statement: &Statement) -> bool {
    is_pure(statement) || statement.is("elect.sync") || statement.is("mbarrier.try_wait")
}

/// The registers that an instruction reads, where it writes its first operand; of any other, all that stand in it.
pub fn read(statement: &Statement) -> Vec<&str> {
    let guard = statement.guard().map(|guard| guard.register.as_str());
    let operands = statement.operands().iter().skip(usize::from(computes(statement)));
    operands.flat_map(|operand| registers(operand)).chain(guard).collect()
}

/// All registers that stand in a statement.
pub fn touched(statement: &Statement) -> Vec<&str> {
    let guard = statement.guard().map(|guard| guard.register.as_str());
    statement.operands().iter().flat_map(|operand| registers(operand)).chain(guard).collect()
}

/// Branches forward over a statement: threads that take one do not come to it.
pub fn guards(text: &Text, at: usize) -> impl Iterator<Item = usize> + '_ {
    text.branches().iter().filter(move |(branch, to)| *branch < at && *to > at).map(|(branch, _)| *branch)
}

/// Whether a loop lies around a statement.
pub fn repeats(text: &Text, at: usize) -> bool {
    loops(text, at).next().is_some()
}

/// Branches back over a statement: loops around it.
fn loops(text: &Text, at: usize) -> impl Iterator<Item = usize> + '_ {
    text.branches().iter().filter(move |(branch, to)| *branch >= at && *to <= at).map(|(branch, _)| *branch)
}

/// A part of the CTA: threads whose number, shifted right by this, is this.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Group {
    /// 5 for warps, 7 for warpgroups.
    pub shift: u32,
    /// Which one.
    pub index: u32,
}

impl Group {
    /// Whether all of its threads are threads of another group.
    pub fn is_part_of(self, other: Group) -> bool {
        self.shift <= other.shift && self.index.checked_shr(other.shift - self.shift) == Some(other.index)
    }
}

/// Whether all lanes of a warp take a branch, or none: it asks for a group of warps, or for what all threads of the CTA know.
pub fn is_of_whole_warps(text: &Text, branch: usize) -> bool {
    const WARP: u32 = 5;
    let warps = group(text, branch).is_some_and(|group| group.shift >= WARP);
    warps || uniform(text, branch, branch)
}

/// The group of a guard of the form `mov %r1, %tid.x; shr %r2, %r1, 7; setp.ne %p1, %r2, 1; @%p1 bra`: those that go on.
pub fn group(text: &Text, branch: usize) -> Option<Group> {
    let guard = text.statements[branch].guard().filter(|guard| !guard.negated)?;
    let set = &text.statements[only_definition(text, &guard.register)?];
    let [_, warp, index] = set.operands() else { return None };
    let shift = &text.statements[only_definition(text, warp)?];
    let [_, thread, by] = shift.operands() else { return None };
    let number = &text.statements[only_definition(text, thread)?];
    let is = set.is("setp.ne") && shift.is("shr") && number.is("mov") && number.operands().get(1)? == "%tid.x";
    is.then_some(Group { shift: by.parse().ok()?, index: index.parse().ok()? })
}

/// The one statement that writes a register, if there is one alone.
pub fn only_definition(text: &Text, register: &str) -> Option<usize> {
    let [only] = text.beginning(register) else { return None };
    Some(*only)
}

/// An operand with what its registers are computed from in its place, as far as that is written once, by instructions that compute
/// registers alone: of the same text comes the same value, at neighbouring statements.
pub fn value(text: &Text, operand: &str, before: usize) -> String {
    let mut all = registers(operand);
    let (Some(register), None) = (all.next(), all.next()) else { return operand.to_string() };
    let once = only_definition(text, register).filter(|at| *at < before).map(|at| &text.statements[at]);
    let Some(statement) = once.filter(|s| is_pure(s) && s.guard().is_none()) else { return operand.to_string() };
    let from: Vec<String> = statement.operands()[1..].iter().map(|one| value(text, one, before)).collect();
    operand.replace(register, &format!("({} {})", statement.opcode(), from.join(", ")))
}

/// Who comes to a statement, all of them together each time: `None` where a branch lets threads of one group part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// All threads of the CTA.
    Cta,
    /// Those of a group.
    Group(Group),
}

/// Which threads execute a statement, equally often and in the same order of its loops.
pub fn together(text: &Text, at: usize) -> Option<Together> {
    text.statements[at].guard().is_none().then(|| reached_together(text, at)).flatten()
}

/// The same of a statement with a predicate of its own: which threads come to it.
pub fn reached_together(text: &Text, at: usize) -> Option<Together> {
    if leaves_before(text, at) {
        return None;
    }
    let mut whole = Together::Cta;
    for branch in guards(text, at).chain(loops(text, at)) {
        match group(text, branch) {
            Some(group) if whole == Together::Cta || whole == Together::Group(group) => whole = Together::Group(group),
            Some(_) => return None,
            None if uniform(text, branch, at) => {}
            None => return None,
        }
    }
    Some(whole)
}

/// Whether some thread may end before a statement.
fn leaves_before(text: &Text, at: usize) -> bool {
    text.end().is_some_and(|end| end < at)
}

/// Whether threads that come to `at` together take a branch together: its predicate is computed from nothing but constants and what
/// all threads of a CTA read alike, by instructions under no other guards than such, and those of the group.
fn uniform(text: &Text, branch: usize, at: usize) -> bool {
    let Some(guard) = text.statements[branch].guard() else { return true };
    let mut open = vec![guard.register.as_str()];
    let mut known: Vec<&str> = Vec::new();
    let group_guards: Vec<usize> = guards(text, at).filter(|branch| group(text, *branch).is_some()).collect();
    while let Some(register) = open.pop() {
        if known.contains(&register) {
            continue;
        }
        known.push(register);
        let defined = text.beginning(register);
        if defined.is_empty() && !ALIKE.iter().any(|name| register.split('.').next() == Some(name)) {
            return false;
        }
        for &definition in defined {
            if !is_pure(&text.statements[definition]) {
                return false;
            }
            open.extend(read(&text.statements[definition]));
            // What decides whether it is executed decides its value, too.
            for around in guards(text, definition).chain(loops(text, definition)) {
                if !group_guards.contains(&around) {
                    open.extend(text.statements[around].guard().map(|guard| guard.register.as_str()));
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "{
mov.u32 %r1, %tid.x;
shr.u32 %r2, %r1, 7;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra $end;
mov.u32 %r3, %ctaid.x;
$tile:
bar.sync 1, 128;
elect.sync _|%p2, 0xffffffff;
@!%p2 bra $elected_end;
fence.proxy.async;
$elected_end:
add.u32 %r3, %r3, 2;
setp.lt.u32 %p3, %r3, 5;
@%p3 bra $tile;
$end:
bar.sync 0;
ret;
}";

    #[test]
    fn who_comes_together() {
        let text = Text::new(TEXT);
        let at = |opcode: &str| text.find(move |s| s.code().starts_with(opcode)).next().unwrap();
        assert_eq!(together(&text, at("bar.sync 1")), Some(Together::Group(Group { shift: 7, index: 0 })));
        assert_eq!(together(&text, at("bar.sync 0")), Some(Together::Cta));
        assert_eq!(together(&text, at("fence")), None, "one elected thread");
        let lanes = Text::new(&TEXT.replace("%ctaid.x", "%laneid"));
        assert_eq!(together(&lanes, at("bar.sync 1")), None, "a loop whose end each lane decides");
    }

    #[test]
    fn what_is_read_and_written() {
        let text = Text::new(
            "{\n@%p1 mad.lo.u32 %r1, %r2, 8, %r3;\nmov.u32 %r1, %clock;\nmov.u32 %r1, %tid.x;\nbar.sync 0;\n}",
        );
        let [mad, clock, tid, bar] = text.statements.as_slice() else { panic!() };
        assert_eq!((written(mad), read(mad)), (vec!["%r1"], vec!["%r2", "%r3", "%p1"]));
        assert!(is_pure(mad) && is_pure(tid) && !is_pure(clock) && !is_pure(bar));
    }
}
