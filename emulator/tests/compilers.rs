//! GEMMs and attention as PTX text from an independent compiler (Triton, mostly 3.9, most in its language Gluon), which knows nothing of this
//! emulator. They must load, run on every schedule without a finding, and give the right values. Text, launch and source lie in `gluon/`.
//! Here: GEMMs of 16-bit elements; `gluon/gemms.rs` has those of other formats and those that share work, `gluon/attention.rs` and
//! `gluon/backward.rs` attention.

#[path = "gluon/attention.rs"]
mod attention;
#[path = "gluon/backward.rs"]
mod backward;
#[path = "gluon/case.rs"]
mod case;
#[path = "gluon/gemms.rs"]
mod gemms;
#[path = "common/results_only.rs"]
mod results_only;
#[path = "gluon/supplies.rs"]
mod supplies;

use case::{Case, case};
use emulator::{Deadlock, Numerics, Options, Report};

/// Small integers, so that every sum is exact.
fn matrix(rows: usize, columns: usize, seed: u64) -> Vec<i32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as i32 % 5 - 2
    };
    (0..rows * columns).map(|_| next()).collect()
}

/// Elements of D that differ from the exact product, rounded once.
fn wrong(case: &Case, report: &Report) -> usize {
    let [m, n, k] = case.size;
    let (a, b) = (matrix(m, k, 1), matrix(n, k, 2));
    let Some(d) = report.buffers.get(2) else { return m * n };
    (0..m * n)
        .filter(|&at| {
            let (row, column) = (at / n, at % n);
            let sum: i32 = a[row * k..][..k].iter().zip(&b[column * k..][..k]).map(|(x, y)| x * y).sum();
            let bits = u16::from_le_bytes([d.bytes[2 * at], d.bytes[2 * at + 1]]);
            case.value(bits) != case.value(case.bits(sum as f32))
        })
        .count()
}

/// Adversarial schedules of each kernel: a few, or as many as `COMPILERS_SEEDS` says (`.ci/run` asks for 10), or else `EMULATOR_SEEDS`.
fn seeds() -> u64 {
    let asked = ["COMPILERS_SEEDS", "EMULATOR_SEEDS"].iter().find_map(|name| std::env::var(name).ok());
    asked.map_or(2, |n| n.parse().expect("COMPILERS_SEEDS and EMULATOR_SEEDS are numbers"))
}

fn runs(name: &str) {
    let mut case = case(name, None);
    let [m, n, k] = case.size;
    for (buffer, elements) in [matrix(m, k, 1), matrix(n, k, 2)].into_iter().enumerate() {
        let bits: Vec<u16> = elements.into_iter().map(|x| case.bits(x as f32)).collect();
        case.fill(buffer, bits.into_iter());
    }
    on_every_schedule(name, &case, |report| match wrong(&case, report) {
        0 => Ok(()),
        wrong => Err(format!("{wrong} elements of D are wrong")),
    });
}

/// Runs a kernel on the default schedule, with both ways to round sums, and on adversarial ones: nothing is found, no schedule hangs, and
/// what it computed is judged by `judge`.
fn on_every_schedule(name: &str, case: &Case, judge: impl Fn(&Report) -> Result<(), String>) {
    let program = emulator::load(&case.text).unwrap_or_else(|e| panic!("{name} does not load: {e:#?}"));
    let adversarial = (0..seeds()).map(|seed| (Some(seed), Numerics::Fast));
    // Buffers that were judged, which takes longer than the kernel: the same bytes again are as right.
    let mut held = None;
    for (seed, numerics) in [(None, Numerics::Fast), (None, Numerics::Exact)].into_iter().chain(adversarial) {
        let options = Options { seed, numerics, max_instructions: 100_000_000, ..Default::default() };
        let report = emulator::run(&program, &case.launch, &options);
        assert!(report.is_clean(), "{name}, seed {seed:?}: {:#?}{:#?}", report.findings, report.incomplete);
        if matches!(seed, None | Some(0)) {
            results_only::compare(name, &program, &case.launch, &options, &report);
        }
        // Roles of attention change their registers twice, and their warpgroup does not meet in between. Of others `.maxnreg` says more than a
        // thread can have. Triton left out a constant of descriptors up to 3.5.
        let known = |code: &str| match code {
            "same-value-written-twice" | "setmaxnreg-unordered" | "setmaxnreg-without-effect" => true,
            "matrix-descriptor" => OLDER.contains(&name),
            _ => code.starts_with("missing-"),
        };
        let other = report.notes.iter().find(|note| !known(note.code));
        assert!(other.is_none(), "{name}, seed {seed:?}: {other:#?}");
        if IN_MEMORY.contains(&name) {
            assert!(matches!(report.deadlock, Deadlock::NotProved(_)), "{name}, seed {seed:?}: {:?}", report.deadlock);
        } else {
            assert_eq!(report.deadlock, Deadlock::Impossible, "{name}, seed {seed:?}");
        }
        if held.as_ref() != Some(&report.buffers) {
            judge(&report).unwrap_or_else(|why| panic!("{name}, {numerics:?}, seed {seed:?}: {why}"));
            held = Some(report.buffers);
        }
    }
}

/// Kernels of other releases of Triton.
const OLDER: &[&str] = &["descriptors_34", "roles_35"];

/// Kernels whose programs tell each other something in global memory: of those nothing is proved.
const IN_MEMORY: &[&str] = &["last_block", "stream_k"];

/// What `--example gluon` writes is a launch file, and a launch; and no kernel of the folder is left out of these tests.
#[test]
fn launch_files_of_all() {
    let names = case::names();
    let run = FP16.iter().copied().chain(gemms::names()).chain(attention::NAMES.iter().copied());
    let run: Vec<&str> = run.chain([backward::NAME]).collect();
    let left_out: Vec<&String> = names.iter().filter(|name| !run.contains(&name.as_str())).collect();
    assert!(left_out.is_empty() && names.len() == run.len(), "not run: {left_out:?}");
    for name in names {
        let json = serde_json::to_string(&case::launch_file(&name)).expect("JSON");
        let launch: emulator::Launch = serde_json::from_str(&json).expect("a launch file");
        let program = emulator::load(&case(&name, None).text).expect("PTX");
        emulator::check(&program, &launch).unwrap_or_else(|errors| panic!("{name}: {errors:#?}"));
        let expected = match name.as_str() {
            backward::NAME => "dv",
            name if attention::NAMES.contains(&name) => "o",
            _ => "d",
        };
        let file = format!("{name}.{expected}.bin");
        assert!(launch.outputs.iter().any(|output| output.file == file), "{:?}", launch.outputs);
    }
}

macro_rules! kernels {
    ($($name:ident),*) => {
        const FP16: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { runs(stringify!($name)); })*
    };
}

kernels!(
    a_in_tmem,
    clc,
    clc_two_cta,
    cp_async,
    ld_st,
    multicast,
    ring3,
    ring3_bf16,
    tile_m64,
    tile_single,
    two_cta,
    two_cta_ring,
    ws_persistent,
    ws_two_cta
);
