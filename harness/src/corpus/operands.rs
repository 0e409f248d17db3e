//! Counts, bytes, parities, masks, barriers, scopes and semantics of synchronising instructions, changed by one step.

use super::kernels::Kernel;
use super::text::{Statement, Text, further, number};
use super::{Change, Kind, Mutant, What, mutant};
use emulator::RegionKind;

/// Bytes of an mbarrier: the next one of a ring lies behind them.
const MBARRIER: i64 = 8;
/// The least that a copy moves.
const BYTES: i64 = 16;
/// Threads of a warp.
const WARP: i64 = 32;
/// A register that no kernel of the builder has.
pub(crate) const REGISTER: &str = "%mutant";

/// All of a kernel.
pub fn mutants(kernel: &Kernel) -> Vec<Mutant> {
    let text = &kernel.text;
    let mut all = Vec::new();
    for (at, statement) in text.statements.iter().enumerate() {
        all.extend(numbers(text, at, statement));
        all.extend(
            opcodes(statement)
                .into_iter()
                .map(|(mistake, opcode)| changed(text, at, mistake, &statement.with_opcode(opcode).code())),
        );
        all.extend(barriers(statement).into_iter().map(|code| changed(text, at, "next barrier", &code)));
        all.extend(parity(text, at, statement));
    }
    all.extend(swapped(kernel));
    all
}

fn changed(text: &Text, at: usize, mistake: &'static str, code: &str) -> Mutant {
    let line = text.statements[at].line;
    let lines = vec![(line, text.in_line(line, code))];
    mutant(mistake, Kind::Systematic, What::Changed(at, code.to_string()), Change::Lines(lines))
}

/// A number among the operands, and the steps by which it is changed.
fn numbers(text: &Text, at: usize, statement: &Statement) -> Vec<Mutant> {
    // A count that is not written is 1.
    if statement.is("mbarrier.arrive") && !statement.is("mbarrier.arrive.expect_tx") && statement.operands().len() == 2
    {
        return vec![changed(text, at, "arrivals", &format!("{}, 2;", statement.code().trim_end_matches(';')))];
    }
    let (mistake, operand, steps): (_, _, &[i64]) = match statement {
        s if s.is("mbarrier.init") => ("count", 1, &[1, -1]),
        s if s.is("mbarrier.arrive.expect_tx") || s.is("mbarrier.expect_tx") => ("bytes", 2, &[BYTES, -BYTES]),
        s if s.is("bar.sync") || s.is("barrier.sync") || s.is("barrier.cta.sync") => ("barrier number", 0, &[1, -1]),
        s if s.is("cp.async.bulk.wait_group") || s.is("wgmma.wait_group") => ("groups", 0, &[1, -1]),
        s if s.is("tcgen05.alloc") || s.is("tcgen05.dealloc") => return columns(text, at, statement),
        s if s.is("setmaxnreg") => ("registers", 0, &[8, -8]),
        s if s.is("elect.sync") => ("member mask", 1, &[-1]),
        s if s.is("mov.b16") => ("mask", 1, &[1, -1]),
        _ => return Vec::new(),
    };
    let value = |index: usize| statement.operands().get(index).and_then(|operand| number(operand));
    let step = |(index, step): (usize, i64)| {
        let now = value(index)? + step;
        (now >= 0).then(|| statement.with_operand(index, now.to_string()).code())
    };
    let mut all: Vec<Mutant> =
        steps.iter().filter_map(|by| step((operand, *by))).map(|code| changed(text, at, mistake, &code)).collect();
    if mistake == "barrier number" && value(1).is_some() {
        let counts = [WARP, -WARP].into_iter().filter_map(|by| step((1, by)));
        all.extend(counts.map(|code| changed(text, at, "threads", &code)));
    }
    all
}

/// Columns of tensor memory are powers of two.
fn columns(text: &Text, at: usize, statement: &Statement) -> Vec<Mutant> {
    let Some(columns) = statement.operands().get(1).and_then(|operand| number(operand)) else { return Vec::new() };
    let all = [columns * 2, columns / 2];
    all.map(|now| changed(text, at, "columns", &statement.with_operand(1, now.to_string()).code())).to_vec()
}

/// Other scopes, semantics, memories and sides of the same instruction.
fn opcodes(statement: &Statement) -> Vec<(&'static str, String)> {
    let opcode = statement.opcode();
    let swap = |from: &str, to: &str| opcode.contains(from).then(|| opcode.replacen(from, to, 1));
    let mut all: Vec<(&'static str, Option<String>)> = Vec::new();
    if statement.is("mbarrier.arrive") && !statement.is("mbarrier.arrive.expect_tx") {
        all.push(("semantics", swap(".shared", ".relaxed.cluster.shared")));
        all.push(("scope", swap(".shared", ".release.cluster.shared")));
    }
    if statement.is("mbarrier.try_wait") {
        all.push(("semantics", swap(".shared", ".relaxed.cluster.shared")));
        all.push(("scope", swap(".shared", ".acquire.cluster.shared")));
    }
    if statement.is("barrier.cluster") {
        all.push(("semantics", swap(".release", ".relaxed")));
        all.push(("semantics", swap(".acquire", "")));
        all.push(("aligned", swap(".aligned", "")));
    }
    if statement.is("fence.proxy.async") {
        all.push(("memory", swap(".shared::cta", ".global")));
        all.push(("memory", swap(".shared::cta", "")));
        all.push(("fence", Some("fence.acq_rel.cta".to_string())));
    }
    if statement.is("cp.async.bulk.wait_group") {
        all.push(("read", swap("wait_group.read", "wait_group")));
        all.push(("read", (!opcode.ends_with(".read")).then(|| format!("{opcode}.read"))));
    }
    if statement.is("fence.mbarrier_init") {
        all.push(("fence", Some("fence.proxy.async.shared::cta".to_string())));
    }
    for (from, to) in [("::before_", "::after_"), ("::after_", "::before_")] {
        all.push(("side", swap(from, to).filter(|_| statement.is("tcgen05.fence"))));
    }
    all.push(("wait", swap("wait::ld", "wait::st")));
    all.into_iter().filter_map(|(mistake, opcode)| Some((mistake, opcode?))).collect()
}

/// The same instruction with the next and the previous mbarrier.
fn barriers(statement: &Statement) -> Vec<String> {
    let load = statement.is("cp.async.bulk.tensor") && statement.opcode().contains("complete_tx");
    if !(statement.is("mbarrier") || statement.is("tcgen05.commit") || load) {
        return Vec::new();
    }
    let is_address = |operand: &String| operand.starts_with('[') && !operand.contains('{');
    // A load names its destination first.
    let Some(index) = statement.operands().iter().rposition(is_address) else { return Vec::new() };
    let other = |by| further(&statement.operands()[index], by);
    let others = [MBARRIER, -MBARRIER].into_iter().filter_map(other);
    others.map(|address| statement.with_operand(index, address).code()).collect()
}

/// A wait for the other parity.
fn parity(text: &Text, at: usize, statement: &Statement) -> Option<Mutant> {
    if !statement.is("mbarrier.try_wait.parity") {
        return None;
    }
    let parity = statement.operands().get(2)?;
    if let Some(value) = number(parity) {
        return Some(changed(text, at, "parity", &statement.with_operand(2, (1 - value).to_string()).code()));
    }
    let code = format!("xor.b32 {REGISTER}, {parity}, 1; {}", statement.with_operand(2, REGISTER).code());
    let lines = vec![declared(text)?, (statement.line, text.in_line(statement.line, &code))];
    Some(mutant("parity", Kind::Systematic, What::Other, Change::Lines(lines)).at(statement.line + 1))
}

/// The line that declares predicates, with [`REGISTER`] behind them.
pub(crate) fn declared(text: &Text) -> Option<(usize, String)> {
    let line = text.lines.iter().position(|line| line.trim().starts_with(".reg .pred"))?;
    Some((line, format!("{} .reg .b32 {REGISTER};", text.lines[line])))
}

impl Mutant {
    /// The same, of which this is the line that matters.
    pub(crate) fn at(self, line: usize) -> Mutant {
        Mutant { line, ..self }
    }
}

/// Places that name mbarriers of two rings, one after the other, each with the other's address.
fn swapped(kernel: &Kernel) -> Vec<Mutant> {
    let text = &kernel.text;
    let barriers = kernel.launch.regions.iter().filter(|region| region.kind == RegionKind::Barrier);
    let names: Vec<(String, &str)> = barriers
        .map(|region| (format!("dynamic_shared+{}", region.offset), region.name.split('[').next().unwrap_or_default()))
        .collect();
    let named = |statement: &Statement| {
        let code = statement.code();
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
        names.iter().position(|(address, _)| code.split_once(address.as_str()).is_some_and(|(_, rest)| ends(rest)))
    };
    let places: Vec<(usize, usize)> =
        text.statements.iter().enumerate().filter_map(|(at, statement)| Some((at, named(statement)?))).collect();
    let mut all = Vec::new();
    for pair in places.windows(2) {
        let [(first, one), (second, two)] = [pair[0], pair[1]];
        let (a, b) = (&text.statements[first], &text.statements[second]);
        // Initialised in the other order, with the same counts, they are as before.
        let same = a.is("mbarrier.init") && b.is("mbarrier.init") && a.operands().get(1) == b.operands().get(1);
        if names[one].1 == names[two].1 || same {
            continue;
        }
        let swap = |statement: &Statement, from: usize, to: usize| {
            (statement.line, text.in_line(statement.line, &statement.code().replacen(&names[from].0, &names[to].0, 1)))
        };
        let lines = vec![swap(a, one, two), swap(b, two, one)];
        all.push(mutant("swap barriers", Kind::Systematic, What::Other, Change::Lines(lines)));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What becomes of one instruction, with each mistake.
    fn made(code: &str) -> Vec<String> {
        let text = Text::new(&format!(".reg .pred %p<3>;\n{{\n{code}\n}}"));
        let statement = &text.statements[0];
        let all =
            numbers(&text, 0, statement).into_iter().chain(parity(&text, 0, statement)).map(|mutant| mutant.change);
        let codes = |change: Change| match change {
            Change::Lines(lines) => lines.into_iter().map(|(_, code)| code).collect::<Vec<_>>().join(" "),
            Change::Map(..) => String::new(),
        };
        let opcodes = opcodes(statement).into_iter().map(|(_, opcode)| statement.with_opcode(opcode).code());
        all.map(codes).chain(opcodes).chain(barriers(statement)).collect()
    }

    #[test]
    fn one_step() {
        assert_eq!(
            made("bar.sync 1, 128;"),
            ["bar.sync 2, 128;", "bar.sync 0, 128;", "bar.sync 1, 160;", "bar.sync 1, 96;"]
        );
        assert_eq!(made("bar.sync 0;"), ["bar.sync 1;"]);
        assert_eq!(made("mov.b16 %rs1, 3;"), ["mov.b16 %rs1, 4;", "mov.b16 %rs1, 2;"]);
        assert_eq!(made("elect.sync _|%p1, 0xffffffff;"), ["elect.sync _|%p1, 4294967294;"]);
        assert_eq!(
            made("tcgen05.alloc.x.b32 [s], 64;"),
            ["tcgen05.alloc.x.b32 [s], 128;", "tcgen05.alloc.x.b32 [s], 32;"]
        );
        assert_eq!(
            made("mbarrier.init.b64 [s+8], 1;"),
            [
                "mbarrier.init.b64 [s+8], 2;",
                "mbarrier.init.b64 [s+8], 0;",
                "mbarrier.init.b64 [s+16], 1;",
                "mbarrier.init.b64 [s+0], 1;"
            ]
        );
        assert_eq!(
            made("mbarrier.arrive.expect_tx.b64 _, [s], 64;")[..2],
            ["mbarrier.arrive.expect_tx.b64 _, [s], 80;", "mbarrier.arrive.expect_tx.b64 _, [s], 48;"]
        );
    }

    #[test]
    fn parities_semantics_and_sides() {
        let waits = made("mbarrier.try_wait.parity.shared::cta.b64 %p1, [s], %r1;");
        assert_eq!(
            waits[0],
            ".reg .pred %p<3>; .reg .b32 %mutant; xor.b32 %mutant, %r1, 1; mbarrier.try_wait.parity.shared::cta.b64 %p1, [s], %mutant;"
        );
        assert_eq!(waits[1], "mbarrier.try_wait.parity.relaxed.cluster.shared::cta.b64 %p1, [s], %r1;");
        assert_eq!(made("tcgen05.fence::before_thread_sync;"), ["tcgen05.fence::after_thread_sync;"]);
        assert_eq!(
            made("cp.async.bulk.wait_group.read 0;"),
            ["cp.async.bulk.wait_group.read 1;", "cp.async.bulk.wait_group 0;"]
        );
        assert_eq!(
            made("barrier.cluster.arrive.release.aligned;"),
            ["barrier.cluster.arrive.relaxed.aligned;", "barrier.cluster.arrive.release;"]
        );
    }

    #[test]
    fn barriers_of_two_rings_are_swapped() {
        let kernel = Kernel::new(8).unwrap();
        let all = swapped(&kernel);
        assert!(all.len() > 5);
        for mutant in all {
            let Change::Lines(lines) = &mutant.change else { panic!() };
            assert_eq!(lines.len(), 2, "{}", mutant.diff(&kernel.text));
            assert!(lines.iter().all(|(line, now)| kernel.text.lines[*line] != *now), "{}", mutant.diff(&kernel.text));
        }
    }
}
