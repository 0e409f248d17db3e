//! What the emulator says of a mutant.

use super::culprit::{self, Barriers, Culprit};
use super::equivalent::{self, Rule};
use super::kernels::Kernel;
use super::machine_code::MachineCode;
use super::{Change, Mutant, What, maps};
use crate::astray::{self, Astray};
use crate::compare::Comparison;
use crate::inputs::to_bytes;
use crate::launch;
use crate::mismatch;
use crate::observe::Observation;
use crate::ptxas;
use crate::source::{Built, Matrix};
use emulator::{Deadlock, Diagnostic, Launch, Options, Report};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::sync::{Mutex, OnceLock};
use std::time::Instant;

/// Adversarial schedules beside the default one.
pub const SEEDS: [u64; 2] = [1, 2];
/// A mutant may execute so many times the instructions of the solution.
const LONGER: u64 = 20;

/// Codes of runs that did not come to their end, and say no more than that.
const HANGS: [&str; 3] = ["hang", "instruction-budget", "trap"];

/// What came of a mutant, the strongest word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The emulator says which rule is broken.
    Finding,
    /// D is wrong, no rule is broken, and the place is named at which the product went astray: that of the change.
    Astray,
    /// It hangs, or does not end; the emulator says where it waits.
    Hang,
    /// The launch is refused.
    Launch,
    /// D is wrong, and no rule broken.
    WrongResult,
    /// A note, or what the run could not check.
    Note,
    /// Nothing.
    Nothing,
    /// The text does not load.
    Refused,
}

/// What the emulator said, and where.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    /// The code of a finding or note.
    pub code: String,
    /// Lines of the text that it names, the first one first; of a hang, not those of who else waits.
    pub lines: Vec<u32>,
}

/// A mutant, judged.
#[derive(Clone, Debug)]
pub struct Judged {
    /// The mutant.
    pub mutant: Mutant,
    /// What came of it.
    pub verdict: Verdict,
    /// What was said.
    pub codes: Vec<Code>,
    /// The rule that proves it no bug; the last one only where nothing is found.
    pub rule: Option<&'static Rule>,
    /// Whether the assembler makes the same of it as of the solution. `None` where it was not asked: there is none, or the text does not
    /// load, or is the solution's.
    pub same_code: Option<bool>,
    /// Of a hang: whether it is told of what was changed.
    pub culprit: Option<Culprit>,
    /// The verdict is that of a launch in which some CTA has no tile: the other one shows less.
    pub idle: bool,
    /// Milliseconds that its runs took, on all launches, and what was said of them; without the assembler.
    pub milliseconds: u64,
}

impl Judged {
    /// It is proved to be no bug, and caught: a rule or the emulator is wrong. Of the same machine code D cannot be another one, and nothing
    /// can hang; a rule of PTX may be broken.
    pub fn is_contradicted(&self) -> bool {
        let caught = self.verdict < Verdict::Note;
        caught && (self.rule.is_some() || self.same_code == Some(true) && self.verdict != Verdict::Finding)
    }

    /// It breaks a rule of PTX, as a finding says, and the assembler makes the solution of it all the same.
    pub fn is_harmless_here(&self) -> bool {
        self.verdict == Verdict::Finding && self.rule.is_none() && self.same_code == Some(true)
    }

    /// Whether something that was said names a line that was changed.
    pub fn names_the_line(&self) -> bool {
        let changed = self.mutant.lines();
        self.codes.iter().any(|code| code.lines.iter().any(|line| changed.contains(line)))
    }
}

/// A kernel with what the unchanged one takes.
#[derive(Clone, Debug)]
pub struct Bench<'a> {
    /// The solution.
    pub kernel: &'a Kernel,
    barriers: Barriers,
    budget: u64,
    /// Of the solution, where there is an assembler.
    machine_code: OnceLock<Option<MachineCode>>,
}

/// A run, and whether D is right after it.
type Run = (Report, bool);

impl<'a> Bench<'a> {
    /// Runs the solution, to know what it takes.
    ///
    /// # Errors
    /// When it does not load.
    pub fn new(kernel: &'a Kernel) -> Result<Bench<'a>, String> {
        let bench = Bench { kernel, barriers: Barriers::of(kernel)?, budget: 1 << 26, machine_code: OnceLock::new() };
        let program = emulator::load(&kernel.built.ptx)
            .map_err(|all| format!("step {} does not load: {} errors", kernel.step, all.len()))?;
        let (report, _) = bench.once(&program, &kernel.launch, None);
        Ok(Bench { budget: report.instructions * LONGER, ..bench })
    }

    fn once(&self, program: &emulator::Program, launch: &Launch, seed: Option<u64>) -> Run {
        let options =
            Options { seed, threads: Some(NonZeroUsize::MIN), max_instructions: self.budget, ..Options::default() };
        let report = emulator::run(program, launch, &options);
        let right = report.completed && self.is_right(&report);
        (report, right)
    }

    /// D is right, and A and B are as they were.
    fn is_right(&self, report: &Report) -> bool {
        let at = |matrix| report.buffers.get(launch::buffer(matrix));
        let kept = |matrix, before: &[u16]| at(matrix).is_some_and(|after| after.bytes == to_bytes(before));
        let right = at(Matrix::D).is_some_and(|d| Comparison::new(&self.kernel.reference, d).is_right());
        right && kept(Matrix::A, &self.kernel.inputs.a) && kept(Matrix::B, &self.kernel.inputs.b)
    }

    /// The runs of a text, up to the first with a finding, or a launch that is refused; the errors of one that does not load. Behind a hang
    /// or a wrong D others follow, as in the workbook's own verdict: another schedule may say why.
    pub fn runs(&self, ptx: &str, launch: &Launch, seeds: &[u64]) -> Result<Vec<Run>, Vec<Diagnostic>> {
        let program = emulator::load(ptx)?;
        let mut runs = Vec::new();
        for seed in std::iter::once(None).chain(seeds.iter().copied().map(Some)) {
            let run = self.once(&program, launch, seed);
            let is_told = matches!(verdict(std::slice::from_ref(&run)), Verdict::Finding | Verdict::Launch);
            runs.push(run);
            if is_told {
                break;
            }
        }
        Ok(runs)
    }

    /// The text and the launch of a mutant.
    pub fn mutated(&self, mutant: &Mutant) -> (String, Launch) {
        match &mutant.change {
            Change::Lines(lines) => (self.kernel.text.with(lines), self.kernel.launch.clone()),
            Change::Map(param, change) => {
                (self.kernel.built.ptx.clone(), maps::with(&self.kernel.launch, *param, *change))
            }
        }
    }

    /// The same change of the launch in which some CTA has no tile. `None` where there is none, or where other numbers stand in a line
    /// that is changed.
    pub fn mutated_idle(&self, mutant: &Mutant) -> Option<(String, Launch)> {
        let idle = self.kernel.idle.as_ref()?;
        match &mutant.change {
            Change::Lines(lines) => {
                let same = |line: usize| idle.text.lines.get(line) == self.kernel.text.lines.get(line);
                lines.iter().all(|(line, _)| same(*line)).then(|| (idle.text.with(lines), idle.launch.clone()))
            }
            Change::Map(param, change) => Some((idle.text.with(&[]), maps::with(&idle.launch, *param, *change))),
        }
    }

    /// The runs of the unchanged kernel, on all its launches.
    ///
    /// # Errors
    /// When it does not load.
    pub fn unchanged(&self) -> Result<Vec<Run>, Vec<Diagnostic>> {
        let mut runs = self.runs(&self.kernel.built.ptx, &self.kernel.launch, &SEEDS)?;
        if let Some(idle) = &self.kernel.idle {
            runs.extend(self.runs(&idle.text.with(&[]), &idle.launch, &SEEDS)?);
        }
        Ok(runs)
    }

    /// Judges a mutant.
    pub fn judge(&self, mutant: Mutant) -> Judged {
        self.asked_of_the_assembler(self.emulated(mutant))
    }

    /// What the emulator says of a mutant, and the rules.
    fn emulated(&self, mutant: Mutant) -> Judged {
        let begun = Instant::now();
        let (ptx, launch) = self.mutated(&mutant);
        let (mut said, mut codes) = match self.runs(&ptx, &launch, &SEEDS) {
            Err(errors) => (Verdict::Refused, errors.iter().map(code).collect()),
            Ok(runs) => match verdict(&runs) {
                told @ (Verdict::Finding | Verdict::Launch) => (told, codes(&runs)),
                // Of a wrong D under the default schedule, or a hang.
                other if matches!(verdict(&runs[..1]), Verdict::WrongResult | Verdict::Hang) => {
                    self.astray(&mutant, &ptx, &launch, other, codes(&runs))
                }
                other => (other, codes(&runs)),
            },
        };
        // Where nothing comes of it, some CTA without a tile may show it.
        let again = Some(&mutant).filter(|_| matches!(said, Verdict::Note | Verdict::Nothing));
        let again = again.and_then(|mutant| self.mutated_idle(mutant));
        let runs = again.and_then(|(ptx, launch)| self.runs(&ptx, &launch, &SEEDS).ok());
        let more = runs.filter(|runs| verdict(runs) < said);
        let idle = more.is_some();
        if let Some(runs) = more {
            (said, codes) = (verdict(&runs), self::codes(&runs));
        }
        let verdict = said;
        let rule = equivalent::rule(self.kernel, &mutant);
        let milliseconds = begun.elapsed().as_millis() as u64;
        let hang = codes.iter().find(|code| HANGS.contains(&code.code.as_str()));
        let culprit = hang
            .filter(|_| verdict == Verdict::Hang)
            .map(|hang| Culprit { right: self.barriers.right(self.kernel, &mutant), named: hang.lines.clone() });
        Judged { mutant, verdict, codes, rule, same_code: None, culprit, idle, milliseconds }
    }

    /// The same, with what the assembler makes of it.
    fn asked_of_the_assembler(&self, judged: Judged) -> Judged {
        let same_code = if judged.verdict == Verdict::Refused { None } else { self.same_code(&judged.mutant) };
        let open = matches!(judged.verdict, Verdict::Note | Verdict::Nothing) && same_code == Some(true);
        let rule = judged.rule.or_else(|| open.then_some(&equivalent::SAME_MACHINE_CODE));
        Judged { rule, same_code, ..judged }
    }

    /// Whether the assembler makes the same of a mutant as of the solution. `None` where only the launch differs, or without an assembler.
    pub fn same_code(&self, mutant: &Mutant) -> Option<bool> {
        match &mutant.change {
            Change::Map(..) => None,
            Change::Lines(lines) => {
                let less = self.without_a_wait_more(mutant);
                self.is_the_same_code(&less.unwrap_or_else(|| self.kernel.text.with(lines)))
            }
        }
    }

    /// Of a mutant that waits for stores to tensor memory in place of something else, the text without the wait: it only waits.
    fn without_a_wait_more(&self, mutant: &Mutant) -> Option<String> {
        let What::Changed(at, now) = &mutant.what else { return None };
        let line = self.kernel.text.statements[*at].line;
        now.starts_with("tcgen05.wait::st").then(|| self.kernel.text.with(&[(line, String::new())]))
    }

    /// Whether the assembler makes the same of a text as of the solution; a text that it refuses, or whose code is not read, is another one.
    /// `None` without an assembler.
    fn is_the_same_code(&self, ptx: &str) -> Option<bool> {
        let code = |ptx: &str| ptxas::object(ptx).ok().and_then(|object| MachineCode::read(&object.elf));
        let of_solution = self.machine_code.get_or_init(|| code(&self.kernel.built.ptx));
        of_solution.as_ref().map(|is| code(ptx).as_ref() == Some(is))
    }

    /// Runs a text once more, under the default schedule, to see where its product goes astray.
    pub fn followed(&self, ptx: &str, launch: &Launch) -> Option<(Observation, Option<Astray>)> {
        let program = emulator::load(ptx).ok()?;
        let options = Options { trace: true, keep_operands: true, max_instructions: self.budget, ..Options::default() };
        let built = Built { ptx: ptx.to_string(), ..self.kernel.built.clone() };
        let (reference, inputs) = (self.kernel.reference.clone(), self.kernel.inputs.clone());
        let run = Observation::of(reference, &built, &program, inputs, launch, &options);
        let mismatch = mismatch::classify(&run.reference, &run.comparison);
        let found = astray::find(&run, mismatch.as_ref());
        Some((run, found))
    }

    /// Of a wrong D, or a hang: whether it is told where the product went astray, at what was changed. If it is not, the verdict is the other one.
    fn astray(
        &self,
        mutant: &Mutant,
        ptx: &str,
        launch: &Launch,
        other: Verdict,
        mut codes: Vec<Code>,
    ) -> (Verdict, Vec<Code>) {
        let Some((run, Some(found))) = self.followed(ptx, launch) else { return (other, codes) };
        let lines = found.explanation.labels.iter().map(|label| label.place.line).collect();
        codes.push(Code { code: found.stage.code().to_string(), lines });
        let told = culprit::stage_is_told(&run, self.kernel, mutant, &found);
        (if told { Verdict::Astray } else { other }, codes)
    }
}

/// What some runs come to.
pub fn verdict(runs: &[Run]) -> Verdict {
    let of = |(report, right): &Run| {
        let codes = || report.findings.iter().map(|finding| finding.code);
        if codes().any(|code| code != "launch" && !HANGS.contains(&code)) {
            Verdict::Finding
        } else if codes().any(|code| code == "launch") {
            Verdict::Launch
        } else if !report.completed && (codes().next().is_some() || report.incomplete.is_empty()) {
            Verdict::Hang
        } else if !report.completed {
            // It came to something that is not modelled.
            Verdict::Note
        } else if !right {
            Verdict::WrongResult
        } else if !report.notes.is_empty() || !report.incomplete.is_empty() || report.deadlock != Deadlock::Impossible {
            Verdict::Note
        } else {
            Verdict::Nothing
        }
    };
    runs.iter().map(of).min().unwrap_or(Verdict::Nothing)
}

fn code(diagnostic: &Diagnostic) -> Code {
    let labels = diagnostic.labels.iter().filter(|label| !label.aside);
    let lines = labels.map(|label| label.place.line).filter(|line| *line > 0);
    Code { code: diagnostic.code.to_string(), lines: lines.collect() }
}

/// What was said in these runs: findings, notes, and what was left open.
fn codes(runs: &[Run]) -> Vec<Code> {
    let mut all: Vec<Code> = Vec::new();
    for (report, _) in runs {
        let said = report.findings.iter().chain(&report.notes).map(code);
        let open = (!report.incomplete.is_empty()).then_some("incomplete");
        let hangs = matches!(report.deadlock, Deadlock::NotProved(_)).then_some("not-proved");
        let open = open.into_iter().chain(hangs).map(|code| Code { code: code.to_string(), lines: Vec::new() });
        for one in said.chain(open) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

/// Judges mutants on several threads, and tells of each as the emulator is done with it. They come back in their order. The assembler is asked
/// behind all of them, so that no verdict's time has it beside it.
pub fn judge_all(bench: &Bench, mutants: Vec<Mutant>, threads: usize, each: impl Fn(&Judged) + Sync) -> Vec<Judged> {
    let emulated = in_parallel(mutants, threads, |mutant| {
        let judged = bench.emulated(mutant);
        each(&judged);
        judged
    });
    in_parallel(emulated, threads, |judged| bench.asked_of_the_assembler(judged))
}

/// Does something with each of several things, on several threads; the results come in their order.
fn in_parallel<T: Send, R: Send>(all: Vec<T>, threads: usize, each: impl Fn(T) -> R + Sync) -> Vec<R> {
    let done: Mutex<Vec<(usize, R)>> = Mutex::new(Vec::with_capacity(all.len()));
    let waiting = Mutex::new(all.into_iter().enumerate());
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.next());
    std::thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                while let Some((number, one)) = next() {
                    let result = each(one);
                    if let Ok(mut done) = done.lock() {
                        done.push((number, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_default();
    done.sort_by_key(|(number, _)| *number);
    done.into_iter().map(|(_, result)| result).collect()
}
