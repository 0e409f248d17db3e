//! `correct` and `fast` on a GPU. The emulator says why D is wrong, where it sees it too; all else of the verdict is its own.

use super::{Case, Judge, MEDIUM, tried};
use crate::compare::Comparison;
use crate::cuda::verify::memory;
use crate::cuda::work::{Check, Checked, Reply, Time, Work};
use crate::cuda::{Runner, waiting};
use crate::diagnostics;
use crate::findings::Findings;
use crate::inputs::{InputKind, Inputs};
use crate::mismatch;
use crate::observe::Observation;
use crate::reference::Reference;
use crate::told::Told;
use crate::verdict::Outcome;

/// Problems with more multiplications are not run again on the emulator to explain them.
const EXPLAINED: u64 = 1 << 31;

/// Why what the emulator saw need not be what ran on the GPU: a kernel that reads a clock can tell the two apart, and go another way in
/// each. On the emulator alone a clock counts simulated cycles, the same in each run.
pub(super) fn tells_apart(cases: &[Case]) -> Option<String> {
    let reads = |line: &&str| {
        let code = line.split("//").next().unwrap_or_default();
        CLOCKS.iter().any(|clock| code.contains(clock))
    };
    let line = cases.iter().find_map(|case| case.built.ptx.lines().find(reads))?;
    Some(format!(
        "the kernel reads a clock (`{}`), so that it can take another way on a GPU than the one that the emulator looked at\n\
         try: Leave the clock out of the kernel that is judged; `cargo workbook bench` measures it from outside.",
        line.trim().chars().take(80).collect::<String>()
    ))
}

/// What begins the names of the registers that hold a time.
const CLOCKS: [&str; 2] = ["%clock", "%globaltimer"];

impl Judge<'_> {
    /// The part `correct`: every size in full, on every input. The case that is looked at closely must be right on the emulator,
    /// too: all that is said of it is said of that run.
    pub(super) fn correct_on(
        &self,
        card: &dyn Runner,
        cases: &[Case],
        seen: &Observation,
        findings: &mut Findings,
    ) -> Outcome {
        findings.add(None, seen);
        if !(seen.report.completed && seen.comparison.is_right() && seen.overwritten().is_empty()) {
            return self.incorrect(seen, seen, findings);
        }
        let checks: Vec<(&Case, Check)> = cases
            .iter()
            .flat_map(|case| self.inputs(case).into_iter().map(move |(kind, seed)| (case, kind, seed)))
            .map(|(case, kind, seed)| (case, Check { built: case.built.clone(), problem: case.problem, kind, seed }))
            .collect();
        let work: Vec<Work> = checks.iter().map(|(_, check)| Work::Check(check.clone())).collect();
        let replies = match card.run(&work) {
            Ok(replies) => replies,
            Err(why) => return Outcome::not_checked(format!("{}: {why}", card.name())),
        };
        let mut against: Vec<&str> = Vec::new();
        for (reply, (case, check)) in replies.iter().zip(&checks) {
            match reply {
                Reply::Checked(checked) if checked.is_right() => {
                    if !against.contains(&checked.against.as_str()) {
                        against.push(&checked.against);
                    }
                }
                Reply::Unable { why } => {
                    let reason = format!("{}, at {}: {why}", card.name(), case.problem);
                    return Outcome::not_checked(reason);
                }
                other => return self.wrong_on(card, other, case, check, seen, findings),
            }
        }
        if replies.len() < checks.len() {
            let reason = format!("{}: {} of {} runs were answered", card.name(), replies.len(), checks.len());
            return Outcome::not_checked(reason);
        }
        let (runs, sizes) = (checks.len(), cases.len());
        Outcome::Passed {
            detail: format!(
                "{runs} inputs, {sizes} sizes, in full on {}; held against {}",
                card.name(),
                against.join("; ")
            ),
        }
    }

    /// Kinds and seeds of a case's inputs. Large ones have exact sums: a GPU is not slow, but what D is held against would be.
    fn inputs(&self, case: &Case) -> Vec<(InputKind, u64)> {
        let products = case.problem.products();
        if products > EXPLAINED {
            return vec![(InputKind::Integers, self.options.input_seed)];
        }
        let inputs = if products > MEDIUM { 1 } else { self.step.inputs_per_size };
        let kind = |index: u32| InputKind::ALL[index as usize % InputKind::ALL.len()];
        (0..inputs).map(|index| (kind(index), self.options.input_seed.wrapping_add(index.into()))).collect()
    }

    /// What went wrong on the GPU; and what the emulator says of the same kernel on the same inputs.
    fn wrong_on(
        &self,
        card: &dyn Runner,
        reply: &Reply,
        case: &Case,
        check: &Check,
        seen: &Observation,
        findings: &mut Findings,
    ) -> Outcome {
        let problem = case.problem;
        let (title, text) = match reply {
            Reply::Hung { why } => {
                let waiting = waiting(card, check);
                (format!("the kernel does not end at {problem}"), format!("{why}.\n{waiting}").into())
            }
            Reply::Failed { why } => (format!("the kernel breaks off at {problem}"), format!("{why}.\n").into()),
            Reply::Checked(checked) => self.wrong_d(checked, check),
            Reply::Timed(_) | Reply::Benched(_) | Reply::Told(_) | Reply::Unable { .. } => {
                ("the GPU answered something else".to_string(), Told::default())
            }
        };
        let on = format!("On {}, {}, seed {}, at {problem}:\n", card.name(), check.kind, check.seed);
        let on = Told::from(on) + text;
        if problem.products() > EXPLAINED {
            let small = "The emulator was not asked: at this size it takes too long.\n";
            return Outcome::failed(title, on + "\n" + small);
        }
        let inputs = Inputs::new(problem, check.kind, check.seed);
        let run = Observation::new(&case.built, &case.program, inputs, &self.options(&problem, None)).on(case.sms);
        findings.add(None, &run);
        let right = run.report.completed && run.comparison.is_right() && run.overwritten().is_empty();
        if !right || !findings.found.is_empty() {
            // It knows the lines.
            if let Outcome::Failed { title, text, says } = self.incorrect(&run, seen, findings) {
                return Outcome::failed(title, Told { text, says } + "\n" + on);
            }
        }
        let notes = diagnostics::first_few(findings.notes.iter().map(|found| self.seen_under(found, seen)).collect());
        let other = "The emulator runs the same kernel on the same inputs, computes the right D, and finds no rule broken. \
                     What differs is then a matter of time, or a mistake of the emulator: `race-free` under more seeds may tell.\n";
        Outcome::failed(title, on + "\n" + notes + other)
    }

    /// What is wrong with D, as the GPU left it.
    fn wrong_d(&self, checked: &Checked, check: &Check) -> (String, Told) {
        let mut lines: Vec<String> = checked.touched.iter().map(|touched| format!("{touched}.\n")).collect();
        for matrix in &checked.overwritten {
            lines.push(format!("{}.\n", crate::observe::overwrites(*matrix)));
        }
        let mut title = lines.first().map(|line| line.trim_end().trim_end_matches('.').to_string());
        let mut wrong = Told::default();
        if let (Some(first), (count @ 1.., all)) = (&checked.first, checked.wrong) {
            let told = checked.d.as_ref().and_then(|d| {
                let reference = Reference::new(&Inputs::new(check.problem, check.kind, check.seed));
                let comparison = Comparison::new(&reference, &memory(d.clone()));
                mismatch::classify(&reference, &comparison)
            });
            let (what, text) = match told {
                Some(mismatch) => (mismatch.title(), tried(mismatch.text(), &mismatch)),
                None => {
                    let what = format!("D is wrong at {}", check.problem);
                    let text =
                        format!("{count} of {all} elements, held against {}; the first is {first}.\n", checked.against);
                    (what, text.into())
                }
            };
            title.get_or_insert(what);
            wrong = text;
        }
        (title.unwrap_or_else(|| "D is wrong".to_string()), Told::from(lines.concat()) + wrong)
    }

    /// The part `fast`: microseconds beside those of the reference solution, and cuBLAS's.
    pub(super) fn fast_on(&self, card: &dyn Runner, cases: &[Case], seen: &Observation) -> Outcome {
        let (demands, sms) = (&self.options.demands, self.options.sms);
        let (timed, limit) = (demands.timed(self.step), demands.fast(self.step));
        let Some(case) = cases.iter().find(|case| case.problem == timed && case.sms == sms) else {
            return Outcome::not_checked(format!("the kernel was not built for {timed}"));
        };
        let reference = match demands.reference(self.step, sms) {
            Ok(reference) => reference,
            Err(reason) => return Outcome::not_checked(reason),
        };
        let work =
            Work::Time(Time { own: case.built.clone(), reference, problem: timed, seed: self.options.input_seed });
        let times = match card.run(&[work]).map(|replies| replies.into_iter().next()) {
            Ok(Some(Reply::Timed(times))) => times,
            Ok(Some(Reply::Failed { why } | Reply::Unable { why } | Reply::Hung { why })) => {
                return Outcome::not_checked(format!("{}: {why}", card.name()));
            }
            Ok(_) => return Outcome::not_checked(format!("{} gave no times", card.name())),
            Err(why) => return Outcome::not_checked(format!("{}: {why}", card.name())),
        };
        if let Some(wrong) = times.wrong {
            let title = "D is not right when the kernel is timed".to_string();
            let help = "Look for what a launch takes from the one before, and for what holds by chance only.";
            let text = format!(
                "{wrong} ({}, {timed}; A and B of 1, -1 and 0, others in each round).\ntry: {help}\n",
                card.name()
            );
            return Outcome::failed(title, Told::with_help(text, help));
        }
        let [low, ratio, high] = times.quartiles();
        let mut detail = format!(
            "{:.1} µs, {ratio:.2} times the reference solution's {:.1} µs ({}, {timed}, median of {} rounds)",
            times.own,
            times.reference,
            card.name(),
            times.rounds
        );
        match &times.cublas {
            Ok(cublas) => detail += &format!("; cuBLAS takes {cublas:.1} µs"),
            Err(why) => detail += &format!("; cuBLAS was not timed: {why}"),
        }
        if !times.slowed_by.is_empty() {
            detail += &format!("; the GPU was slowed down by {}", times.slowed_by.join(" and "));
        }
        // A GPU that heat or a fault holds back runs one kernel at another clock than the next.
        let held_back = times.held_back();
        if !held_back.is_empty() {
            let reason = format!("inconclusive, run again: {} held the clock back; {detail}", held_back.join(" and "));
            return Outcome::not_checked(reason);
        }
        if low <= limit && limit < high {
            let reason = format!(
                "inconclusive, run again: half of the rounds lie from {low:.2} to {high:.2} times, on both sides of the limit, \
                 {limit:.2} times; {detail}"
            );
            return Outcome::not_checked(reason);
        }
        if ratio <= limit {
            return Outcome::Passed { detail };
        }
        let title = format!("it takes {ratio:.2} times as long as the reference solution");
        let simulated = match self.fast(cases, seen, 0) {
            Outcome::Failed { text, says, .. } => {
                Told::from("Simulated, it looks so:\n".to_string()) + Told { text, says }
            }
            Outcome::Passed { detail } => format!("The simulated times do not show it: {detail}.\n").into(),
            Outcome::NotChecked { .. } | Outcome::NotReached { .. } => Told::default(),
        };
        Outcome::failed(title, Told::from(format!("{detail}; the limit is {limit:.2} times.\n")) + simulated)
    }
}
