//! Whether a hang is told of what was changed: the statement itself, or the barrier that it works on. And whether a product that goes astray
//! is: the statement, the one that uses what the changed one computes, or a copy by the changed tensor map.
//!
//! A change may lie far from where it tells: a register that is computed wrongly is followed to the barrier operations that use it, a
//! branch to those that it leads around.

use super::flow;
use super::kernels::Kernel;
use super::text::Text;
use super::{Change, Mutant};
use crate::astray::Astray;
use crate::observe::Observation;
use emulator::{EventKind, Options};
use std::collections::{BTreeMap, BTreeSet};

/// Barriers by name; the stages of a ring are one.
type Names = BTreeSet<String>;

/// Which barriers the statements of a kernel work on.
#[derive(Clone, Debug)]
pub struct Barriers {
    /// By line, from 1.
    by_line: BTreeMap<u32, Names>,
}

impl Barriers {
    /// Runs the kernel to see it.
    ///
    /// # Errors
    /// When it does not load.
    pub fn of(kernel: &Kernel) -> Result<Barriers, String> {
        let program = emulator::load(&kernel.built.ptx).map_err(|all| format!("{} errors in the text", all.len()))?;
        let report = emulator::run(&program, &kernel.launch, &Options { trace: true, ..Options::default() });
        let name = |barrier: &emulator::Barrier| {
            let region = kernel.launch.regions.iter().find(|r| i64::from(r.offset) == i64::from(barrier.offset));
            let name = region.map_or_else(|| barrier.offset.to_string(), |region| region.name.clone());
            name.split('[').next().unwrap_or_default().to_string()
        };
        let mut by_line: BTreeMap<u32, Names> = BTreeMap::new();
        for event in &report.trace {
            let barriers = match &event.kind {
                EventKind::BarrierInit { barrier, .. }
                | EventKind::BarrierArrive { barrier, .. }
                | EventKind::BarrierExpect { barrier, .. }
                | EventKind::BarrierWait { barrier, .. } => vec![*barrier],
                EventKind::Commit { barriers, .. } => barriers.clone(),
                EventKind::Copy(copy) => copy.barriers.clone(),
                _ => continue,
            };
            by_line.entry(event.place.line).or_default().extend(barriers.iter().map(name));
        }
        for statement in &kernel.text.statements {
            let name =
                ["bar.", "barrier.cta", "barrier.cluster"].iter().find(|name| statement.opcode().starts_with(**name));
            if let Some(name) = name {
                by_line.entry(statement.line as u32 + 1).or_default().insert((*name).to_string());
            }
        }
        Ok(Barriers { by_line })
    }

    fn at(&self, text: &Text, statement: usize) -> Option<&Names> {
        self.by_line.get(&(text.statements.get(statement)?.line as u32 + 1))
    }

    /// The barriers that a change is about.
    fn of_change(&self, kernel: &Kernel, mutant: &Mutant) -> Names {
        let text = &kernel.text;
        let mut open: Vec<usize> = match &mutant.change {
            Change::Lines(lines) => text.find(|s| lines.iter().any(|(line, _)| *line == s.line)).collect(),
            Change::Map(param, _) => {
                let name = parameter(text, *param);
                text.find(|s| name.is_some_and(|name| s.operands().iter().any(|operand| operand == name))).collect()
            }
        };
        let (mut names, mut seen) = (Names::new(), BTreeSet::new());
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            if let Some(worked_on) = self.at(text, at) {
                names.extend(worked_on.iter().cloned());
                continue;
            }
            if let Some(target) = text.target(at) {
                let around = at.min(target)..=at.max(target);
                names.extend(around.filter_map(|between| self.at(text, between)).flatten().cloned());
                continue;
            }
            let written = flow::written(&text.statements[at]);
            open.extend(text.find(|s| flow::touched(s).iter().any(|register| written.contains(register))));
        }
        names
    }

    /// Whether a hang that names these lines, the first one first, is told of what was changed.
    pub fn are_told_of(&self, kernel: &Kernel, mutant: &Mutant, lines: &[u32]) -> bool {
        let changed = mutant.lines();
        let about = self.of_change(kernel, mutant);
        let first = lines.first().and_then(|line| self.by_line.get(line));
        lines.iter().any(|line| changed.contains(line)) || first.is_some_and(|names| !names.is_disjoint(&about))
    }
}

/// Whether a place that is named, of a product that went astray, is that of the change.
pub fn stage_is_told(run: &Observation, kernel: &Kernel, mutant: &Mutant, found: &Astray) -> bool {
    let named: Vec<u32> = found.explanation.labels.iter().map(|label| label.place.line).collect();
    match &mutant.change {
        Change::Lines(lines) => {
            let changed = kernel.text.find(|s| lines.iter().any(|(line, _)| *line == s.line));
            used_in(&kernel.text, changed.collect()).iter().any(|line| named.contains(line))
        }
        Change::Map(param, _) => {
            let Some(emulator::Param::TensorMap { buffer, .. }) = kernel.launch.params.get(*param) else {
                return false;
            };
            run.copies()
                .any(|(event, copy)| copy.buffer.is_none_or(|of| of == *buffer) && named.contains(&event.place.line))
        }
    }
}

/// Lines (from 1) of these statements, and of those that use what they compute, up to those that compute no register.
fn used_in(text: &Text, mut open: Vec<usize>) -> BTreeSet<u32> {
    let (mut lines, mut seen) = (BTreeSet::new(), BTreeSet::new());
    while let Some(at) = open.pop() {
        if !seen.insert(at) {
            continue;
        }
        lines.insert(text.statements[at].line as u32 + 1);
        let written = flow::written(&text.statements[at]);
        open.extend(text.find(|s| flow::touched(s).iter().any(|register| written.contains(register))));
    }
    lines
}

/// The name of a kernel's parameter, counted from 0.
fn parameter(text: &Text, number: usize) -> Option<&str> {
    let line = text.lines.iter().filter(|line| line.trim_start().starts_with(".param")).nth(number)?;
    line.split_whitespace().last()?.split(['[', ',']).next()
}
