//! The verdict with a GPU, without one: what a GPU would answer comes from the emulator, or is made up.

use harness::cuda::Runner;
use harness::cuda::work::{Checked, Reply, Timed, Work, WrongElement};
use harness::{
    Device, InProcess, InputKind, Inputs, JudgeOptions, Outcome, Part, Problem, Verdict, judge, launch,
    reference_kernels, step,
};
use std::fmt;
use std::sync::{Arc, Mutex};

/// What a GPU answers to a piece of work, which has this place in its batch.
type Answer = dyn Fn(usize, &Work) -> Reply + Send + Sync;

/// A GPU that answers what a function says; it keeps what it was asked.
struct Fake {
    answer: Box<Answer>,
    asked: Mutex<Vec<Work>>,
}

impl fmt::Debug for Fake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fake")
    }
}

impl Runner for Fake {
    fn name(&self) -> String {
        "NVIDIA B200 (10.0)".to_string()
    }

    fn run(&self, work: &[Work]) -> Result<Vec<Reply>, String> {
        self.asked.lock().unwrap().extend(work.iter().cloned());
        let mut replies = Vec::new();
        for (index, work) in work.iter().enumerate() {
            replies.push((self.answer)(index, work));
            if replies[index].ends_a_batch() {
                break;
            }
        }
        Ok(replies)
    }
}

/// The verdict on a kernel, and what the GPU was asked.
fn judged(
    kernel: ptx::KernelFn,
    answer: impl Fn(usize, &Work) -> Reply + Send + Sync + 'static,
) -> (Verdict, Vec<Work>) {
    let fake = Arc::new(Fake { answer: Box::new(answer), asked: Mutex::default() });
    let options = JudgeOptions { device: Device::Cuda(fake.clone()), ..JudgeOptions::default() };
    let verdict = judge(step(1).unwrap(), &InProcess(kernel), &options);
    let asked = std::mem::take(&mut *fake.asked.lock().unwrap());
    (verdict, asked)
}

fn solution() -> ptx::KernelFn {
    reference_kernels::solution(1).unwrap()
}

fn right(work: &Work) -> Reply {
    match work {
        Work::Check(check) => {
            let all = u64::from(check.problem.m) * u64::from(check.problem.n);
            Reply::Checked(Checked { against: "FP64".into(), wrong: (0, all), ..Checked::default() })
        }
        Work::Time(_) => Reply::Timed(times(10.0)),
        Work::Bench(_) => Reply::Benched(Vec::new()),
        Work::Tell(_) => Reply::Told(String::new()),
    }
}

fn times(own: f64) -> Timed {
    let ratios = vec![own / 10.0; 15];
    Timed { own, reference: 10.0, cublas: Ok(8.5), rounds: 30, ratios, slowed_by: Vec::new(), wrong: None }
}

fn failed(verdict: &Verdict, part: Part) -> (&str, &str) {
    match verdict.part(part) {
        Outcome::Failed { title, text, .. } => (title, text),
        other => panic!("{part}: {other:?}"),
    }
}

fn not_checked(verdict: &Verdict, part: Part) -> &str {
    match verdict.part(part) {
        Outcome::NotChecked { reason, .. } => reason,
        other => panic!("{part}: {other:?}"),
    }
}

fn passed(verdict: &Verdict, part: Part) -> &str {
    match verdict.part(part) {
        Outcome::Passed { detail } => detail,
        other => panic!("{part}: {other:?}"),
    }
}

/// Who reads a clock can tell a GPU from the emulator, and go another way in each.
#[test]
fn of_a_kernel_that_reads_a_clock_the_emulator_says_nothing_of_the_gpu() {
    fn timed(k: &mut ptx::Cta, gemm: &ptx::Gemm) {
        let clock: ptx::U32 = k.register();
        k.raw("mov.u32", &[&clock, &"%clock"]);
        solution()(k, gemm);
    }
    let (verdict, _) = judged(timed, |_, work| right(work));
    passed(&verdict, Part::Correct);
    for part in [Part::RaceFree, Part::Structure] {
        let reason = not_checked(&verdict, part);
        assert!(reason.contains("reads a clock (`mov.u32 %r1, %clock;`)") && reason.contains("\ntry: "), "{reason}");
    }
    // On the emulator a clock is the same in each run.
    let verdict = judge(step(1).unwrap(), &InProcess(timed), &JudgeOptions::default());
    assert!(verdict.passed() || verdict.only_unchecked(), "{verdict:?}");
    passed(&verdict, Part::RaceFree);
}

/// Each size is run in full, on each kind of inputs; times are the GPU's; the rest says that it is the emulator's.
#[test]
fn a_right_kernel_passes_and_says_what_was_seen_where() {
    let (verdict, asked) = judged(solution(), |_, work| right(work));
    let checks: Vec<_> =
        asked.iter().filter_map(|work| if let Work::Check(check) = work { Some(check) } else { None }).collect();
    assert!(InputKind::ALL.iter().all(|kind| checks.iter().any(|check| check.kind == *kind)), "{checks:?}");
    let on = "in full on NVIDIA B200 (10.0); held against FP64";
    assert!(passed(&verdict, Part::Correct).ends_with(on), "{}", passed(&verdict, Part::Correct));
    let fast = "10.0 µs, 1.00 times the reference solution's 10.0 µs (NVIDIA B200 (10.0), 128x128x64 f16, median of 30 rounds); \
                cuBLAS takes 8.5 µs";
    assert_eq!(passed(&verdict, Part::Fast), fast);
    assert!(passed(&verdict, Part::RaceFree).starts_with("no finding under the default schedule"));
    assert_eq!(verdict.device, "correct and fast on NVIDIA B200 (10.0), the rest on the emulator");
    let time = asked.iter().find_map(|work| if let Work::Time(time) = work { Some(time) } else { None }).unwrap();
    assert_eq!((&time.own.ptx, time.problem), (&time.reference.ptx, Problem::f16(128, 128, 64)));
}

/// A kernel that only hangs on the GPU: the verdict says so, and that the emulator sees nothing.
#[test]
fn a_hang_on_the_gpu_fails_with_its_sentence() {
    let (verdict, _) = judged(solution(), |index, work| match index {
        1 => Reply::Hung {
            why: "launch of `kernel` on 1x1x1 CTAs of 128 threads: the kernel did not end within 10 s".into(),
        },
        _ => right(work),
    });
    let (title, text) = failed(&verdict, Part::Correct);
    assert_eq!(title, "the kernel does not end at 128x128x64 f16");
    assert!(
        text.starts_with("On NVIDIA B200 (10.0), small integers, seed 1, at 128x128x64 f16:\nlaunch of `kernel`"),
        "{text}"
    );
    assert!(text.contains("did not end within 10 s.") && text.contains("The emulator runs the same kernel"), "{text}");
    assert!(matches!(verdict.part(Part::Fast), Outcome::NotReached { .. }));
}

/// A GPU that others have filled, one with an error in its memory, a process that did not answer: no kernel is to blame.
#[test]
fn a_trouble_of_the_machine_is_no_fault_of_the_kernel() {
    let why = "making the buffer `D` of 32768 bytes: the GPU's memory does not suffice (CUDA_ERROR_OUT_OF_MEMORY)";
    let (verdict, asked) = judged(solution(), move |index, work| match index {
        1 => Reply::Unable { why: why.into() },
        _ => right(work),
    });
    let reason = not_checked(&verdict, Part::Correct);
    assert_eq!(reason, format!("NVIDIA B200 (10.0), at 128x128x64 f16: {why}"));
    assert!(!asked.iter().any(|work| matches!(work, Work::Tell(_))), "it is not run again: {asked:?}");
    assert!(!verdict.passed());
}

/// A yardstick that failed stands in what D was held against, and the verdict is that of the samples.
#[test]
fn a_cublas_that_fails_is_told() {
    let against = "4100 samples in FP64 (cuBLAS, 4096x4096x4096: no memory (cuBLAS status 3))";
    let (verdict, _) = judged(solution(), move |_, work| match right(work) {
        Reply::Checked(checked) => Reply::Checked(Checked { against: against.into(), ..checked }),
        other => other,
    });
    assert!(passed(&verdict, Part::Correct).ends_with(against), "{}", passed(&verdict, Part::Correct));
}

/// A D that is wrong on the GPU is classified as on the emulator: here one row of it was never written.
#[test]
fn a_wrong_d_of_the_gpu_is_explained() {
    let (verdict, _) = judged(solution(), |index, work| match work {
        Work::Check(check) if index == 0 => {
            let inputs = Inputs::new(check.problem, check.kind, check.seed);
            let program = emulator::load(&check.built.ptx).unwrap();
            let described = launch::launch(&check.built, &inputs).unwrap();
            let report = emulator::run(&program, &described, &emulator::Options::default());
            let mut d = report.buffers[2].bytes.to_vec();
            d[2 * 128 * 5..2 * 128 * 6].fill(0xff);
            let first = WrongElement { row: 5, column: 0, found: "never written".into(), expected: 0.0 };
            let wrong = (128, 128 * 128);
            Reply::Checked(Checked {
                against: "FP64".into(),
                wrong,
                first: Some(first),
                d: Some(d),
                ..Checked::default()
            })
        }
        work => right(work),
    });
    let (title, text) = failed(&verdict, Part::Correct);
    assert!(title.contains("row 5") || text.contains("row 5"), "{title}\n{text}");
    assert!(text.contains("never written") && text.contains("computes the right D"), "{text}");
}

/// What lies beside D is no part of it.
#[test]
fn a_write_next_to_d_fails() {
    let (verdict, _) = judged(solution(), |_, work| match right(work) {
        Reply::Checked(checked) => {
            let touched = vec!["something wrote behind `D`: byte 32768 of its 32768".to_string()];
            Reply::Checked(Checked { touched, ..checked })
        }
        other => other,
    });
    assert_eq!(failed(&verdict, Part::Correct).0, "something wrote behind `D`: byte 32768 of its 32768");
}

/// A kernel that is wrong on the emulator is told there, with its line, before a GPU is asked.
#[test]
fn what_the_emulator_sees_comes_first() {
    fn broken(k: &mut ptx::Cta, gemm: &ptx::Gemm) {
        let _ = gemm;
        k.threads(128);
    }
    let (verdict, asked) = judged(broken, |_, work| right(work));
    let (_, text) = failed(&verdict, Part::Correct);
    assert!(text.contains("never written"), "{text}");
    assert!(asked.is_empty(), "{asked:?}");
}

fn timed(times: Timed) -> Verdict {
    let answer = move |_: usize, work: &Work| match work {
        Work::Time(_) => Reply::Timed(times.clone()),
        work => right(work),
    };
    judged(solution(), answer).0
}

/// Rounds on both sides of the limit say nothing; on one side they do, however far some of them lie.
#[test]
fn rounds_on_both_sides_of_the_limit_are_inconclusive() {
    let rounds = |ratios: &[f64]| timed(Timed { ratios: ratios.to_vec(), ..times(13.0) });
    let verdict = rounds(&[1.1, 1.2, 1.25, 1.35, 1.4]);
    let reason = not_checked(&verdict, Part::Fast);
    assert!(
        reason.starts_with(
            "inconclusive, run again: half of the rounds lie from 1.20 to 1.35 times, on both sides of the limit, 1.30 times; \
             13.0 µs, 1.25 times the reference solution's 10.0 µs"
        ),
        "{reason}"
    );
    assert!(passed(&rounds(&[1.1, 1.1, 1.2, 1.2, 9.0]), Part::Fast).starts_with("13.0 µs, 1.20 times"));
    let slow = rounds(&[1.1, 1.4, 1.4, 1.4, 1.4]);
    assert_eq!(failed(&slow, Part::Fast).0, "it takes 1.40 times as long as the reference solution");
}

/// What heat or a fault did to the clock is no time of a kernel's, slow or fast.
#[test]
fn a_gpu_that_is_held_back_is_inconclusive() {
    for own in [10.0, 14.0] {
        let slowed_by = vec!["the power cap".into(), "its temperature (software)".into()];
        let verdict = timed(Timed { slowed_by, ..times(own) });
        let reason = not_checked(&verdict, Part::Fast);
        assert!(
            reason.starts_with("inconclusive, run again: its temperature (software) held the clock back; "),
            "{reason}"
        );
        assert!(reason.contains("the reference solution's 10.0 µs"), "{reason}");
    }
}

/// A slow kernel fails by the GPU's times, which the simulated ones need not show.
#[test]
fn a_kernel_that_is_slow_on_the_gpu_is_slow() {
    let (verdict, _) = judged(solution(), |_, work| match work {
        Work::Time(_) => Reply::Timed(Timed { slowed_by: vec!["the power cap".into()], ..times(14.0) }),
        work => right(work),
    });
    let (title, text) = failed(&verdict, Part::Fast);
    assert_eq!(title, "it takes 1.40 times as long as the reference solution");
    assert!(text.contains("the GPU was slowed down by the power cap; the limit is 1.30 times."), "{text}");
    assert!(text.contains("The simulated times do not show it"), "{text}");
}

/// A kernel that is right when it is checked and not when it is timed gets no points for its time.
#[test]
fn a_kernel_that_is_wrong_when_it_is_timed_is_not_fast() {
    let verdict = timed(Timed { wrong: Some("row 3 of D is wrong".into()), ..times(1.0) });
    let (title, text) = failed(&verdict, Part::Fast);
    assert_eq!(title, "D is not right when the kernel is timed");
    assert!(
        text.starts_with("row 3 of D is wrong (NVIDIA B200 (10.0), 128x128x64 f16; A and B of 1, -1 and 0"),
        "{text}"
    );
}
