//! The mbarriers of a kernel, as its PTX initialises and uses them.

use crate::Built;
use emulator::syntax::ast::{Instruction, Operand};
use ptx::RegionKind;
use std::collections::{BTreeMap, BTreeSet};

/// The name that the builder gives to dynamic shared memory.
const SHARED: &str = "dynamic_shared";

/// A barrier's name, and `stages x arrivals, who arrives`.
pub(super) fn rows(built: &Built, instructions: &[Instruction]) -> Vec<(String, String)> {
    let addresses = addresses(instructions);
    let barriers: Vec<&ptx::Region> =
        built.regions.iter().filter(|region| region.kind == RegionKind::Barrier).collect();
    let named = |operand: &Operand| {
        let at = offset(operand, &addresses)?;
        let within = |region: &&&ptx::Region| (region.offset..region.offset + region.bytes).contains(&at);
        barriers.iter().find(within).map(|region| region.name.as_str())
    };
    let mut counts: BTreeMap<&str, BTreeSet<i64>> = BTreeMap::new();
    let mut who: BTreeMap<&str, BTreeSet<Who>> = BTreeMap::new();
    for instruction in instructions {
        if instruction.opcode.starts_with("mbarrier.init") {
            if let [at, Operand::Integer(count)] = instruction.operands.as_slice()
                && let Some(name) = named(at)
            {
                counts.entry(name).or_default().insert(*count);
            }
        } else if let Some((arrives, at)) = arrival(instruction)
            && let Some(name) = named(at)
        {
            who.entry(name).or_default().insert(arrives);
        }
    }
    let mut rows: Vec<(String, String)> = Vec::new();
    for barrier in &barriers {
        let name = barrier.name.as_str();
        if rows.iter().any(|(other, _)| other == name) {
            continue;
        }
        let stages = barriers.iter().filter(|other| other.name == name).count();
        let count = match counts.get(name) {
            Some(counts) => counts.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or "),
            None => "never initialised".to_string(),
        };
        let who: Vec<&str> = who.get(name).into_iter().flatten().map(|who| who.words()).collect();
        let who = if who.is_empty() { "nobody".to_string() } else { who.join(" + ") };
        rows.push((name.to_string(), format!("{stages} x {count}, {who}")));
    }
    rows
}

/// Who arrives at a barrier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Who {
    Expect,
    Tma,
    Commit,
    MulticastCommit,
    Threads,
    ThreadsOfCluster,
}

impl Who {
    fn words(self) -> &'static str {
        match self {
            Who::Expect => "expect_tx",
            Who::Tma => "TMA",
            Who::Commit => "commit",
            Who::MulticastCommit => "commit to both CTAs",
            Who::Threads => "threads",
            Who::ThreadsOfCluster => "threads of both CTAs",
        }
    }
}

/// Who arrives by an instruction, and the barrier's address.
fn arrival(instruction: &Instruction) -> Option<(Who, &Operand)> {
    let opcode = instruction.opcode.as_str();
    let memory = || instruction.operands.iter().filter(|operand| matches!(operand, Operand::Memory(..)));
    let has = |part: &str| opcode.split('.').any(|found| found == part);
    let who = if opcode.starts_with("mbarrier.arrive") {
        match (has("expect_tx"), has("shared::cluster")) {
            (true, _) => Who::Expect,
            (false, true) => Who::ThreadsOfCluster,
            (false, false) => Who::Threads,
        }
    } else if opcode.starts_with("tcgen05.commit") {
        if has("multicast::cluster") { Who::MulticastCommit } else { Who::Commit }
    } else if opcode.starts_with("cp.async.bulk") && has("mbarrier::complete_tx::bytes") {
        // The barrier comes last.
        return memory().next_back().map(|at| (Who::Tma, at));
    } else {
        return None;
    };
    memory().next().map(|at| (who, at))
}

/// Registers that hold an address in shared memory, with the offset from which it is reckoned: of a ring, that of its
/// first stage. The builder writes a register once, or gives it values of one kind.
fn addresses(instructions: &[Instruction]) -> BTreeMap<&str, u32> {
    let mut addresses = BTreeMap::new();
    for instruction in instructions {
        let computes =
            ["mov", "mad", "add", "mapa"].contains(&instruction.opcode.split('.').next().unwrap_or_default());
        if let (true, [Operand::Name(target), sources @ ..]) = (computes, instruction.operands.as_slice())
            && let Some(at) = sources.iter().find_map(|source| offset(source, &addresses))
        {
            addresses.insert(target.as_str(), at);
        }
    }
    addresses
}

/// The offset in shared memory that an operand names.
fn offset(operand: &Operand, addresses: &BTreeMap<&str, u32>) -> Option<u32> {
    match operand {
        Operand::Name(name) if name == SHARED => Some(0),
        Operand::Name(name) => addresses.get(name.as_str()).copied(),
        Operand::Offset(name, by) if name == SHARED => u32::try_from(*by).ok(),
        Operand::Memory(base, by, _) => {
            let base = offset(base, addresses)?;
            u32::try_from(i64::from(base) + by).ok()
        }
        _ => None,
    }
}
