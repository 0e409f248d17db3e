//! Time: simulated cycles against those of the reference solution, and where they go.

use crate::diagnostics::{self, Sources};
use crate::launch;
use crate::observe;
use crate::problem::Problem;
use crate::source::{Built, Matrix};
use crate::told::Told;
use crate::verdict::Outcome;
use emulator::{Actor, EventKind, Program, Report};
use std::fmt::Write;

/// The largest share of the reference solution's time that is fast, where a course says nothing else.
pub const FAST: f64 = 1.30;

/// What is asked of a kernel's time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demanded {
    /// The problem that is timed.
    pub problem: Problem,
    /// The largest share of the reference solution's time.
    pub limit: f64,
    /// Multiplications that the MMAs of the run must do.
    pub products: u64,
    /// Cycles of a run of the same kernel whose D was checked; 0: there is none.
    pub checked: u64,
    /// A and B hold zeros in the run: it is for its time alone.
    pub zeros: bool,
}

/// Compares a run with one of the reference solution, which `run` makes in the same way. Both are traced: that says where
/// the time goes, and takes none.
///
/// Where nothing is in the matrices of that run, its D says nothing. So it has to do the whole product, and its time is not below that of
/// the run whose D was checked: a kernel could see that there is nothing, and leave.
pub(crate) fn check(
    reference: Result<Built, String>,
    demanded: &Demanded,
    own: &Report,
    run: impl Fn(&Built, &Program) -> Report,
) -> Outcome {
    let reference = reference.and_then(|built| {
        let program = emulator::load(&built.ptx).map_err(|all| {
            format!("the reference kernel does not load: {}", diagnostics::render_all(&all, &Sources::none()).text)
        })?;
        Ok(run(&built, &program))
    });
    let reference = match reference {
        Ok(report) if report.completed && report.cycles > 0 => Work::of(&report),
        Ok(_) => return Outcome::not_checked("the reference kernel does not run"),
        Err(reason) => return Outcome::not_checked(reason),
    };
    let Demanded { problem, limit, products, checked, zeros } = *demanded;
    if !own.completed {
        let title = "the run that is timed breaks off".to_string();
        let found = diagnostics::render_all(&own.findings, &Sources::none());
        let inputs = if zeros { ", where A and B hold zeros" } else { "" };
        let told = Told::from(format!("{title}, at {problem}{inputs}.\n")) + found;
        return Outcome::failed(title, told);
    }
    let done = observe::products_of_mmas(own);
    if done < products {
        let title = "the run that is timed does not compute the product".to_string();
        let (inputs, way_out) = if zeros {
            (" A and B hold zeros in that run.", "Let the kernel take the same way whatever its matrices hold.")
        } else {
            ("", "Let the tensor core do all multiplications of the product.")
        };
        let text = format!(
            "{title}: {problem} takes {products} multiplications, and its MMAs do {done}.{inputs}\ntry: {way_out}\n"
        );
        return Outcome::failed(title, Told::with_help(text, way_out));
    }
    let timed = own.cycles;
    let own = Work { cycles: timed.max(checked), ..Work::of(own) };
    let ratio = own.cycles as f64 / reference.cycles as f64;
    let detail = format!("{} cycles, {ratio:.2} times the reference solution's {}", own.cycles, reference.cycles);
    if ratio <= limit {
        return Outcome::Passed { detail };
    }
    let advice = own.advice(&reference);
    let text = format!(
        "{detail}; the limit is {limit:.2} times (simulated cycles, at {problem}).\n{}{}try: {}\n",
        match (timed < checked, zeros) {
            (true, true) => format!("With zeros in A and B it takes {timed}; the table is of that run.\n"),
            (true, false) => format!("With other matrices it takes {timed}; the table is of that run.\n"),
            (false, _) => String::new(),
        },
        own.beside(&reference),
        advice
    );
    let title = format!("it takes {ratio:.2} times as long as the reference solution");
    Outcome::failed(title, Told::with_help(text, advice))
}

/// Plain accesses of global memory.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Accesses {
    /// Instructions of warps.
    count: u64,
    /// Bytes in all.
    bytes: u64,
    /// Cycles from the first to the end of the last.
    span: u64,
}

impl Accesses {
    /// Bytes of a thread and instruction.
    fn width(&self) -> u64 {
        const LANES: u64 = 32;
        self.bytes.div_ceil((self.count * LANES).max(1))
    }
}

/// What a run did, and where its warps waited.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Work {
    cycles: u64,
    instructions: u64,
    loads: Accesses,
    stores: Accesses,
    /// Cycles that a warp waits for mbarriers: the mean of all warps.
    mbarriers: u64,
    /// The same at CTA barriers.
    cta_barriers: u64,
}

impl Work {
    fn of(run: &Report) -> Work {
        let d = launch::buffer(Matrix::D);
        let mut work = Work { cycles: run.cycles, instructions: run.instructions, ..Work::default() };
        let accesses = |is: &dyn Fn(&EventKind) -> Option<u32>| {
            let mut all = Accesses::default();
            let (mut first, mut last) = (u64::MAX, 0);
            for event in &run.trace {
                if let Some(bytes) = is(&event.kind) {
                    (all.count, all.bytes) = (all.count + 1, all.bytes + u64::from(bytes));
                    (first, last) = (first.min(event.start), last.max(event.end));
                }
            }
            Accesses { span: last.saturating_sub(first), ..all }
        };
        work.loads = accesses(&|kind| match kind {
            EventKind::GlobalLoad { bytes, .. } => Some(*bytes),
            _ => None,
        });
        work.stores = accesses(&|kind| match kind {
            EventKind::GlobalStore { buffer, bytes } if *buffer == d => Some(*bytes),
            _ => None,
        });
        let mut warps = 0u64;
        for event in run.trace.iter().filter(|event| matches!(event.actor, Actor::Warp(_))) {
            let cycles = event.end.saturating_sub(event.start);
            match event.kind {
                EventKind::BarrierWait { .. } => work.mbarriers += cycles,
                EventKind::CtaBarrier { .. } => work.cta_barriers += cycles,
                EventKind::Exit => warps += 1,
                _ => {}
            }
        }
        work.mbarriers /= warps.max(1);
        work.cta_barriers /= warps.max(1);
        work
    }

    /// A table of both.
    fn beside(&self, reference: &Work) -> String {
        let mut text = format!("  {:<52}{:>12}{:>12}\n", "", "this kernel", "reference");
        type Row = (&'static str, fn(&Work) -> u64);
        let rows: [Row; 8] = [
            ("instructions of all warps", |work| work.instructions),
            ("loads from A and B: bytes of a thread at once", |work| work.loads.width()),
            ("loads from A and B: bytes in all", |work| work.loads.bytes),
            ("loads from A and B: cycles from first to last", |work| work.loads.span),
            ("stores to D: bytes of a thread at once", |work| work.stores.width()),
            ("stores to D: cycles from first to last", |work| work.stores.span),
            ("cycles that a warp waits for mbarriers (mean)", |work| work.mbarriers),
            ("cycles that a warp waits at CTA barriers (mean)", |work| work.cta_barriers),
        ];
        // What neither does says nothing: copies by TMA are no loads of threads.
        for (what, of) in rows.into_iter().filter(|(_, of)| of(self) + of(reference) > 0) {
            // Writing to a string does not fail.
            let _ = writeln!(text, "  {what:<52}{:>12}{:>12}", of(self), of(reference));
        }
        text
    }

    /// One thing to try: what differs most from the reference.
    fn advice(&self, reference: &Work) -> String {
        let excess = self.cycles.saturating_sub(reference.cycles);
        // A fourth of the excess is worth looking at first.
        let worth = |own: u64, reference: u64| own.saturating_sub(reference) > excess / 4;
        let (own, other) = (self.loads, reference.loads);
        if own.bytes > other.bytes + other.bytes / 10 {
            return format!("Load each element of A and B once: {} bytes, not {}.", other.bytes, own.bytes);
        }
        if own.width() < other.width() && worth(own.span, other.span) {
            return format!(
                "Load {} bytes of a row at once (`k.load_global_16`), not {}: the copy takes {} cycles more.",
                other.width(),
                own.width(),
                own.span.saturating_sub(other.span)
            );
        }
        if worth(own.span, other.span) {
            return "Let neighbouring threads load neighbouring 16-byte chunks of a row, and let all threads load."
                .to_string();
        }
        let (own, other) = (self.stores, reference.stores);
        if own.bytes > other.bytes {
            return format!("Store each element of D once: {} bytes, not {}.", other.bytes, own.bytes);
        }
        if worth(own.span, other.span) && own.width() < other.width() {
            return format!(
                "Store {} bytes of a row of D at once (`k.store_global_16`), not {}.",
                other.width(),
                own.width()
            );
        }
        if worth(self.mbarriers, reference.mbarriers) {
            return "Look at the waits for mbarriers: what they wait for begins or ends late.".to_string();
        }
        if worth(self.cta_barriers, reference.cta_barriers) {
            return "Look at the CTA barriers: some warps reach them much later than others.".to_string();
        }
        format!(
            "Look for instructions that the reference does not need: {} here, {} there.",
            self.instructions, reference.instructions
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(cycles: u64, loads: Accesses, mbarriers: u64) -> Work {
        Work { cycles, instructions: 100, loads, mbarriers, ..Work::default() }
    }

    #[test]
    fn the_advice_fits_what_differs() {
        let loads = Accesses { count: 8, bytes: 8 * 512, span: 100 };
        let reference = work(1000, loads, 50);
        let advice = |own: Work| own.advice(&reference);
        let twice = work(2000, Accesses { bytes: 2 * loads.bytes, count: 16, span: 900 }, 50);
        assert_eq!(advice(twice), "Load each element of A and B once: 4096 bytes, not 8192.");
        let narrow = work(2000, Accesses { count: 64, span: 1000, ..loads }, 50);
        let text = "Load 16 bytes of a row at once (`k.load_global_16`), not 2: the copy takes 900 cycles more.";
        assert_eq!(advice(narrow), text);
        assert!(advice(work(2000, loads, 900)).starts_with("Look at the waits for mbarriers"));
        assert!(advice(work(2000, loads, 50)).starts_with("Look for instructions"));
    }

    /// What is said of a run against the solution of step 1, which does the product of 128x128x64.
    #[cfg(feature = "solutions")]
    fn said(demanded: &Demanded, own: impl Fn(&mut Report)) -> String {
        use crate::inputs::{InputKind, Inputs};
        use crate::source::{InProcess, KernelSource};
        let built = InProcess(solutions::step01::kernel).build(&demanded.problem, 148).unwrap();
        let inputs = Inputs::new(demanded.problem, InputKind::Normal, 1);
        let options = emulator::Options { trace: true, ..emulator::Options::default() };
        let run = |built: &Built, program: &Program| observe::run(program, launch::launch(built, &inputs), &options);
        let mut report = run(&built, &emulator::load(&built.ptx).unwrap());
        own(&mut report);
        match check(Ok(built), demanded, &report, run) {
            Outcome::Failed { text, .. } => text,
            other => panic!("{other:?}"),
        }
    }

    #[cfg(feature = "solutions")]
    #[test]
    fn only_a_run_of_zeros_is_said_to_hold_zeros() {
        let problem = Problem::f16(128, 128, 64);
        let products = problem.products();
        for zeros in [true, false] {
            let demanded = Demanded { problem, limit: 1.3, products, checked: 0, zeros };
            let texts = [
                said(&demanded, |own| own.completed = false),
                said(&Demanded { products: products + 1, ..demanded }, |_| {}),
                said(&Demanded { checked: 1_000_000, ..demanded }, |_| {}),
            ];
            for text in texts {
                assert_eq!(text.contains(" zeros"), zeros, "{text}");
                assert!(text.contains("128x128x64") || text.contains("128 x 128 x 64"), "{text}");
            }
        }
    }
}
