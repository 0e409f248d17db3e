//! A benchmark on a GPU: each size is checked first, then timed.

use super::{Benchmark, Machine, PROTOCOL, Series};
use crate::cuda::work::{Bench, Check, Reply, Work};
use crate::cuda::{Card, Runner, waiting};
use crate::date;
use crate::inputs::InputKind;
use crate::launch;
use crate::problem::Problem;
use crate::source::Built;
use emulator::{Gpu, Mode, Options};

/// Seconds that a process times at once: the rounds that are left are another's, so that none is ended for its many rounds.
pub const BATCH: u64 = 20;

/// Rounds that count, if nobody says otherwise: a short kernel's time varies more, and costs less.
pub fn rounds(problem: &Problem) -> u32 {
    const SHORT: u64 = 1 << 35;
    if problem.products() < SHORT { 200 } else { 40 }
}

/// Sizes, if nobody says otherwise.
pub const SIZES: [u32; 5] = [1024, 2048, 4096, 8192, 16384];

impl Machine {
    /// What is known of a GPU.
    pub fn of(card: &Card) -> Machine {
        let about = card.about();
        Machine {
            gpu: about.name.clone(),
            uuid: about.uuid.clone(),
            driver: about.driver.clone().unwrap_or_else(|| format!("for CUDA {}", about.cuda)),
            sms: about.sms,
        }
    }

    /// The emulator's model of it, if it has one.
    fn model(&self) -> Option<Gpu> {
        let models = [("NVIDIA B200", Gpu::B200), ("NVIDIA H200", Gpu::H200)];
        models.into_iter().find(|(name, _)| self.gpu == *name).map(|(_, model)| model)
    }

    /// Whether the emulator has a model of it.
    pub fn is_modelled(&self) -> bool {
        self.model().is_some()
    }
}

/// A benchmark without sizes, of now.
pub fn begin(kernel: &str, machine: Machine) -> Benchmark {
    Benchmark {
        kernel: kernel.to_string(),
        machine,
        date: date::now(),
        protocol: PROTOCOL.map(String::from).to_vec(),
        series: Vec::new(),
    }
}

/// Checks a kernel at a size, and times it.
///
/// # Errors
/// When D is wrong, or there are no times: one sentence.
pub fn series(card: &dyn Runner, built: &Built, problem: Problem, rounds: u32) -> Result<Series, String> {
    checked(card, built, problem)?;
    times(card, built, problem, rounds)
}

/// Times a kernel at a size where D is known to be right.
///
/// # Errors
/// When there are no times: one sentence.
pub fn times(card: &dyn Runner, built: &Built, problem: Problem, rounds: u32) -> Result<Series, String> {
    let mut series = Series { problem, rounds: Vec::new(), predicted_us: None };
    while series.rounds.len() < rounds as usize {
        let bench = Bench { built: built.clone(), problem, rounds: rounds - series.rounds.len() as u32 };
        match card.run(&[Work::Bench(bench)])?.pop() {
            Some(Reply::Benched(batch)) if !batch.is_empty() => series.rounds.extend(batch),
            Some(Reply::Failed { why } | Reply::Hung { why } | Reply::Unable { why }) => {
                return Err(format!("{problem}: {why}"));
            }
            _ => return Err(format!("{problem}: the process that works on the GPU gave no times")),
        }
    }
    Ok(series)
}

/// Whether D is right at a size; what it was held against.
///
/// # Errors
/// When it is not: one sentence.
pub fn checked(card: &dyn Runner, built: &Built, problem: Problem) -> Result<String, String> {
    let check = |kind| Work::Check(Check { built: built.clone(), problem, kind, seed: 1 });
    let mut against = String::new();
    let work = [check(InputKind::Integers), check(InputKind::Normal)];
    for (reply, work) in card.run(&work)?.into_iter().zip(&work) {
        match reply {
            Reply::Checked(found) if found.is_right() => against = found.against,
            Reply::Checked(found) => {
                let first = found.first.map_or(String::new(), |first| format!(": {first}"));
                let (wrong, all) = found.wrong;
                let beside = if found.touched.is_empty() && found.overwritten.is_empty() {
                    String::new()
                } else {
                    format!("; it wrote where it must not: {} {:?}", found.touched.join(", "), found.overwritten)
                };
                return Err(format!("{problem}: {wrong} of {all} elements of D are wrong{first}{beside}"));
            }
            Reply::Hung { why } => {
                let Work::Check(check) = work else { return Err(format!("{problem}: {why}")) };
                return Err(format!("{problem}: {why}\n{}", waiting(card, check)).trim_end().to_string());
            }
            Reply::Failed { why } | Reply::Unable { why } => return Err(format!("{problem}: {why}")),
            other => return Err(format!("{problem}: the GPU gave no result, but {other:?}")),
        }
    }
    Ok(against)
}

/// What the emulator predicts for a kernel on a machine that it has a model of, in microseconds.
///
/// # Errors
/// When the kernel does not run there.
pub fn predicted(machine: &Machine, built: &Built, problem: Problem) -> Result<Option<f64>, String> {
    let Some(gpu) = machine.model() else { return Ok(None) };
    let wrong = |why: String| format!("the emulator cannot predict {problem}: {why}");
    let program = emulator::load(&built.ptx).map_err(|all| wrong(all[0].title.clone()))?;
    let described = launch::times_only(built, problem).map_err(|refused| wrong(refused.to_string()))?;
    // L2 holds nothing, as in the rounds.
    // The largest sizes take more instructions than a run for findings may.
    let options = Options { gpu: Some(gpu), mode: Mode::Time, max_instructions: 1 << 36, ..Options::default() };
    let report = emulator::run(&program, &described, &options);
    match report.findings.first() {
        None if report.completed => Ok(Some(gpu.launch_time(report.cycles) / 1e3)),
        first => Err(wrong(first.map_or("it does not end".to_string(), |finding| finding.title.clone()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::Round;
    use crate::cuda::work::Checked;
    use std::sync::Mutex;

    /// Answers with what it is given, and keeps what it is asked.
    #[derive(Debug)]
    struct Fake(Mutex<Vec<Reply>>, Mutex<Vec<Work>>);

    impl Runner for Fake {
        fn name(&self) -> String {
            "fake".to_string()
        }

        fn run(&self, work: &[Work]) -> Result<Vec<Reply>, String> {
            self.1.lock().unwrap().extend_from_slice(work);
            let mut replies = self.0.lock().unwrap();
            let count = work.len().min(replies.len());
            Ok(replies.drain(..count).collect())
        }
    }

    fn built() -> Built {
        Built { name: "kernel".into(), ..Built::default() }
    }

    fn right() -> Reply {
        Reply::Checked(Checked { against: "FP64".into(), wrong: (0, 64), ..Checked::default() })
    }

    fn asked(replies: Vec<Reply>) -> (Result<Series, String>, Vec<Work>) {
        let fake = Fake(Mutex::new(replies), Mutex::default());
        let series = series(&fake, &built(), Problem::f16(8, 8, 8), 12);
        (series, fake.1.into_inner().unwrap())
    }

    /// Names that hold a known one are other products.
    #[test]
    fn gpus_are_known_by_their_whole_names() {
        let known = |gpu: &str| {
            let machine = Machine { gpu: gpu.into(), uuid: String::new(), driver: String::new(), sms: 132 };
            (machine.peak(), machine.is_modelled())
        };
        assert_eq!(known("NVIDIA H200"), (Some(989.4), true));
        assert_eq!(known("NVIDIA B200"), (Some(2250.0), true));
        assert_eq!(known("NVIDIA H100 80GB HBM3"), (Some(989.4), false));
        for other in ["NVIDIA GB200", "NVIDIA H200 NVL", "NVIDIA GH200 480GB", "NVIDIA H100 PCIe", ""] {
            assert_eq!(known(other), (None, false), "{other}");
        }
    }

    /// Nothing is timed that is wrong.
    #[test]
    fn a_kernel_is_checked_before_it_is_timed() {
        let rounds: Vec<Round> = (0..12).map(|n| Round { kernel_us: 1.0 + f64::from(n), ..Round::default() }).collect();
        let (series, work) = asked(vec![right(), right(), Reply::Benched(rounds.clone())]);
        assert_eq!(series.map(|series| series.rounds), Ok(rounds.clone()));
        assert!(matches!(&work[..], [Work::Check(_), Work::Check(_), Work::Bench(bench)] if bench.rounds == 12));

        // What a process has no time for, the next one does.
        let batches = [&rounds[..8], &rounds[8..]].map(|batch| Reply::Benched(batch.to_vec()));
        let (series, work) = asked([vec![right(), right()], batches.to_vec()].concat());
        assert_eq!(series.map(|series| series.rounds), Ok(rounds));
        assert!(
            matches!(&work[2..], [Work::Bench(first), Work::Bench(second)] if [first.rounds, second.rounds] == [12, 4])
        );
        let (series, _) = asked(vec![right(), right(), Reply::Benched(Vec::new())]);
        assert_eq!(series, Err("8x8x8 f16: the process that works on the GPU gave no times".to_string()));

        let wrong = Checked { wrong: (3, 64), touched: vec!["4 bytes behind D".into()], ..Checked::default() };
        let (series, work) = asked(vec![right(), Reply::Checked(wrong)]);
        let told = "8x8x8 f16: 3 of 64 elements of D are wrong; it wrote where it must not: 4 bytes behind D []";
        assert_eq!((series, work.len()), (Err(told.to_string()), 2));
        let (series, _) = asked(vec![Reply::Hung { why: "it did not end".into() }]);
        assert_eq!(series, Err("8x8x8 f16: it did not end".to_string()));
    }
}
