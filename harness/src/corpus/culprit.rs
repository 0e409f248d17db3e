//! Whether a hang is told of what was changed, and whether a product that goes astray is: by the lines that are named.
//!
//! A statement that stands there changed has to be named itself, or one that uses what it computes. One that is gone cannot be: what it
//! did is not done, or elsewhere, and the wait that it leaves without is to be named. That holds for what a branch leads around, too.

use super::flow;
use super::kernels::Kernel;
use super::text::{Statement, Text, registers};
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
    /// Those of the statements that wait.
    waits: BTreeMap<u32, Names>,
}

/// Of a hang: lines of which one has to be named, and those that are. Lines count from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Culprit {
    /// Any of these tells what was changed.
    pub right: BTreeSet<u32>,
    /// What the report gives as the cause, not who else waits.
    pub named: Vec<u32>,
}

impl Culprit {
    /// It is told of what was changed.
    pub fn is_told(&self) -> bool {
        self.would_be_told(&self.named)
    }

    /// The first line of the report is already one that tells of it.
    pub fn is_told_first(&self) -> bool {
        self.would_be_told(&self.named[..self.named.len().min(1)])
    }

    /// A report that names these lines would tell of it.
    pub fn would_be_told(&self, named: &[u32]) -> bool {
        named.iter().any(|line| self.right.contains(line))
    }
}

/// Statements without an mbarrier that wait for others.
const OTHERS: [(&str, &str); 4] = [
    ("bar.", "CTA barrier"),
    ("barrier.cta", "CTA barrier"),
    ("barrier.cluster", "cluster barrier"),
    ("tcgen05.alloc", "tensor memory"),
];

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
        let mut all = Barriers { by_line: BTreeMap::new(), waits: BTreeMap::new() };
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
            let waits = matches!(event.kind, EventKind::BarrierWait { .. });
            all.add(event.place.line, barriers.iter().map(name), waits);
        }
        for statement in &kernel.text.statements {
            // Who asks for registers waits for those who give some.
            if statement.is("setmaxnreg") {
                let takes = statement.is("setmaxnreg.inc");
                all.add(statement.line as u32 + 1, std::iter::once("registers".to_string()), takes);
            }
            let other = OTHERS.iter().find(|(opcode, _)| statement.opcode().starts_with(opcode));
            if let Some((_, name)) = other {
                all.add(statement.line as u32 + 1, std::iter::once((*name).to_string()), true);
            }
        }
        Ok(all)
    }

    fn add(&mut self, line: u32, names: impl Iterator<Item = String> + Clone, waits: bool) {
        self.by_line.entry(line).or_default().extend(names.clone());
        if waits {
            self.waits.entry(line).or_default().extend(names);
        }
    }

    /// The statements that wait for what one does.
    fn waits_for(&self, text: &Text, statement: usize) -> impl Iterator<Item = u32> {
        let line = text.statements.get(statement).map_or(0, line_of);
        let names = self.by_line.get(&line);
        let waits = self.waits.iter().filter(move |(_, of)| names.is_some_and(|names| !names.is_disjoint(of)));
        waits.map(|(line, _)| *line)
    }

    /// Lines of which one has to be named, that a hang be told of what was changed.
    pub fn right(&self, kernel: &Kernel, mutant: &Mutant) -> BTreeSet<u32> {
        let text = &kernel.text;
        match &mutant.change {
            Change::Lines(lines) => {
                let of_lines = text.find(|s| lines.iter().any(|(line, _)| *line == s.line));
                // What the statements were for, and what that is for that stands there now.
                let computed: Vec<&str> = lines.iter().flat_map(|(_, now)| computed(now)).collect();
                let users = computed.iter().flat_map(|register| text.touching(register)).copied();
                let mut right = self.led_to(text, of_lines.chain(users).collect());
                right.extend(mutant.lines());
                // One that is gone from here, or works on another barrier.
                let what = |code: &str| (opcode(code).map(str::to_string), address(code).map(str::to_string));
                let gone = lines.iter().filter(|(line, now)| what(now) != what(&text.lines[*line]));
                for (line, _) in gone {
                    right.extend(text.find(|s| s.line == *line).flat_map(|at| self.waits_for(text, at)));
                }
                right
            }
            Change::Map(param, _) => {
                let name = parameter(text, *param);
                let at = text.find(|s| name.is_some_and(|name| s.operands().iter().any(|operand| operand == name)));
                self.led_to(text, at.collect())
            }
        }
    }

    /// Lines of these statements, of those that use what they compute, and of what they lead around or elsewhere.
    fn led_to(&self, text: &Text, mut open: Vec<usize>) -> BTreeSet<u32> {
        let (mut right, mut seen) = (BTreeSet::new(), BTreeSet::new());
        while let Some(at) = open.pop() {
            if !seen.insert(at) {
                continue;
            }
            let statement = &text.statements[at];
            right.insert(line_of(statement));
            // Executed too often, too rarely, or not at all.
            let led = text.target(at).map(|target| at.min(target)..=at.max(target));
            for between in led.into_iter().flatten() {
                let line = text.statements.get(between).map_or(0, line_of);
                if self.by_line.contains_key(&line) {
                    right.insert(line);
                    right.extend(self.waits_for(text, between));
                }
            }
            let written = if flow::computes(statement) { flow::written(statement) } else { Vec::new() };
            for &user in written.iter().flat_map(|register| text.touching(register)) {
                // Another address, or other CTAs: what it did is elsewhere.
                let of_user = &text.lines[text.statements[user].line];
                let decides = |register: &&str| {
                    of_user.split('[').skip(1).any(|part| registers(part).any(|known| known == *register))
                };
                if written.iter().any(decides) {
                    right.extend(self.waits_for(text, user));
                }
                open.push(user);
            }
        }
        right
    }
}

/// Its line, from 1.
fn line_of(statement: &Statement) -> u32 {
    statement.line as u32 + 1
}

/// The opcode of a line, behind its label and guard.
fn opcode(line: &str) -> Option<&str> {
    let code = line.rsplit_once(": ").map_or(line, |(_, code)| code);
    code.split_whitespace().find(|word| !word.starts_with('@'))
}

/// The first registers behind the opcodes of a line: those that its statements compute, where they do.
fn computed(line: &str) -> impl Iterator<Item = &str> {
    line.split(';').filter_map(|statement| {
        let operand =
            statement.split_whitespace().skip_while(|word| word.ends_with(':') || word.starts_with('@')).nth(1)?;
        operand.starts_with('%').then(|| operand.trim_end_matches(','))
    })
}

/// What stands between the first brackets of a line.
fn address(line: &str) -> Option<&str> {
    Some(line.split_once('[')?.1.split(']').next().unwrap_or_default())
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
        lines.insert(line_of(&text.statements[at]));
        let written = flow::written(&text.statements[at]);
        open.extend(written.iter().flat_map(|register| text.touching(register)));
    }
    lines
}

/// The name of a kernel's parameter, counted from 0.
fn parameter(text: &Text, number: usize) -> Option<&str> {
    let line = text.lines.iter().filter(|line| line.trim_start().starts_with(".param")).nth(number)?;
    line.split_whitespace().last()?.split(['[', ',']).next()
}
