//! How fast a whole GEMM runs: `cargo bench -p gemm-bench`.
//!
//! D = A·Bᵀ in FP16, 2048³, on pairs of CTAs, by four kernels: `tests/gluon/two_cta_ring.ptx` (tiles of 256 × 256, a ring of three stages, all
//! warps walk through it), `ws_two_cta.ptx` (256 × 128, persistent and warp-specialised), and the solutions of steps 9 (256 × 256) and 10 (512 × 256),
//! built for a B200. Beside them, in the same process and in turns, the same product in FP32 by the `gemm` crate. Everything around the
//! kernel counts: the buffers, the clusters, the report. Rows are judged, all checks on, but for those of `results only`. The figures
//! are medians of the rounds.
//! `-- 1024 3 ring` is 1024³, three rounds, and of the emulator's rows only those whose name contains `ring`.

// The `gemm` crate takes pointers.
#![allow(unsafe_code)]

#[path = "../../tests/gluon/case.rs"]
mod case;

use emulator::{Launch, Mode, Numerics, Options, Program};
use gemm::Parallelism;
use harness::{InProcess, InputKind, Inputs, KernelSource, Problem};
use std::time::Instant;

/// Values in [-2, 2), as FP16 holds them.
fn matrix(elements: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        half::f16::from_f32((state >> 8) as f32 / (1 << 22) as f32 - 2.0).to_f32()
    };
    std::iter::repeat_with(next).take(elements).collect()
}

/// D = A·Bᵀ; all row after row.
fn reference([m, n, k]: [usize; 3], a: &[f32], b: &[f32], d: &mut [f32], parallelism: Parallelism) {
    assert!(a.len() == m * k && b.len() == n * k && d.len() == m * n);
    let (columns, depth) = (n as isize, k as isize);
    // SAFETY: the slices have the sizes that dimensions and strides say.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            d.as_mut_ptr(),
            1,
            columns,
            false,
            a.as_ptr(),
            1,
            depth,
            b.as_ptr(),
            depth,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

/// Memory that the process holds at most, in MiB.
fn peak() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.split_whitespace().next()?.parse::<u64>().ok()? / 1024)
}

/// Processor time of the process, of all its threads: what does not change while others use the machine as well.
fn processor_time() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11);
    // In hundredths of a second, as Linux has it everywhere.
    let mut ticks = || fields.next().and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks() + ticks()) / 100.0
}

/// A kernel that is measured.
struct Kernel {
    name: &'static str,
    program: Program,
    launch: Launch,
}

/// A solution, as the harness launches it on a B200.
fn solution(name: &'static str, kernel: ptx::KernelFn, inputs: &Inputs) -> Kernel {
    let built = InProcess(kernel).build(&inputs.problem, 148).expect("the solution builds");
    let launch = harness::launch::launch(&built, inputs).expect("the matrices can be moved");
    Kernel { name, program: emulator::load(&built.ptx).expect("the kernel loads"), launch }
}

/// A kernel of `tests/gluon`, with this grid, on A and B.
fn gluon(name: &'static str, file: &str, grid: u32, inputs: &Inputs) -> Kernel {
    let Problem { m, n, k, .. } = inputs.problem;
    let mut case = case::case(file, Some([m, n, k].map(|extent| extent as usize)));
    case.launch.grid = if file == "two_cta_ring" { [m / 256 * 2, n / 256, 1] } else { [grid, 1, 1] };
    for (buffer, bits) in [&inputs.a, &inputs.b].into_iter().enumerate() {
        case.fill(buffer, bits.iter().copied());
    }
    Kernel { name, program: emulator::load(&case.text).expect("the kernel loads"), launch: case.launch }
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse::<usize>().ok());
    let size = numbers.next().unwrap_or(2048);
    let rounds = numbers.next().unwrap_or(5);
    let only = std::env::args().skip(1).find(|a| !a.starts_with("--") && a.parse::<usize>().is_err());
    let extent = u32::try_from(size).expect("a size");
    let inputs = {
        let (a, b) = (matrix(size * size, 1), matrix(size * size, 2));
        let bits = |values: &[f32]| values.iter().map(|&x| half::f16::from_f32(x).to_bits()).collect();
        let (a, b) = (bits(&a), bits(&b));
        Inputs { problem: Problem::f16(extent, extent, extent), kind: InputKind::Normal, seed: 1, a, b }
    };
    let kernels = [
        gluon("ring", "two_cta_ring", 0, &inputs),
        // Two tiles for each pair of CTAs.
        gluon("persistent", "ws_two_cta", ((extent / 256) * (extent / 128)).max(2), &inputs),
        solution("step 9", solutions::step09::kernel, &inputs),
        solution("step 10", solutions::step10::kernel, &inputs),
    ];
    let ways = [
        ("Fast", Numerics::Fast, Mode::Judge),
        ("Fast, results only", Numerics::Fast, Mode::Compute),
        ("Exact", Numerics::Exact, Mode::Judge),
    ];
    let runs: Vec<(String, &Kernel, Numerics, Mode)> = (kernels.iter())
        .flat_map(|kernel| ways.map(|way| (kernel, way)))
        .map(|(kernel, (how, numerics, mode))| (format!("{}, {how}", kernel.name), kernel, numerics, mode))
        .filter(|(name, ..)| only.as_ref().is_none_or(|only| name.contains(only)))
        .collect();

    let (a, b) = (inputs.a_values(), inputs.b_values());
    let mut d = vec![0f32; size * size];
    let mut natives = [vec![], vec![]];
    let mut times = vec![vec![]; runs.len()];
    let mut processor = vec![0.0; runs.len() + 1];
    for round in 0..rounds {
        for (times, parallelism) in natives.iter_mut().zip([Parallelism::None, Parallelism::Rayon(2)]) {
            let (start, used) = (Instant::now(), processor_time());
            reference([size; 3], &a, &b, &mut d, parallelism);
            times.push(start.elapsed().as_secs_f64());
            if !matches!(parallelism, Parallelism::None) {
                processor[0] += processor_time() - used;
            }
        }
        for (n, ((name, kernel, numerics, mode), times)) in (1..).zip(runs.iter().zip(&mut times)) {
            let (start, used) = (Instant::now(), processor_time());
            let threads = std::num::NonZeroUsize::new(2);
            let options = Options { numerics: *numerics, mode: *mode, threads, ..Options::default() };
            let report = emulator::run(&kernel.program, &kernel.launch, &options);
            times.push(start.elapsed().as_secs_f64());
            processor[n] += processor_time() - used;
            let fine = report.is_clean() || *mode == Mode::Compute && report.completed && report.findings.is_empty();
            assert!(fine, "{:?} {:?}", report.findings, report.incomplete);
            // FP16 results: half a unit in the last place, and what 2048 sums lose.
            let value = |bits: [u8; 2]| half::f16::from_le_bytes(bits).to_f32();
            let wrong = (report.buffers[2].bytes.as_chunks().0.iter().zip(&d))
                .filter(|&(&bits, &d)| (value(bits) - d).abs() > d.abs() / 2048.0 + 0.02)
                .count();
            assert_eq!(wrong, 0, "elements of D that are wrong: {name}");
            if round == 0 {
                println!("{name}: {} cycles, {} warp instructions", report.cycles, report.instructions);
            }
        }
    }
    let rate = |mut times: Vec<f64>| {
        times.sort_by(f64::total_cmp);
        2.0 * (size * size * size) as f64 / times[times.len() / 2] / 1e9
    };
    println!(
        "{size}³, {rounds} rounds: GFLOP/s, ratio to the gemm crate on 1 and on 2 threads, and to its processor time on 2"
    );
    let [one, two] = natives.map(rate);
    println!("{:26} {one:7.1}   {:5.1} %   {:5.1} %", "gemm, 1 thread", 100.0, 100.0 * one / two);
    println!("{:26} {two:7.1}   {:5.1} %   {:5.1} %   {:5.1} %", "gemm, 2 threads", 100.0 * two / one, 100.0, 100.0);
    for ((name, ..), (times, used)) in runs.iter().zip(times.into_iter().zip(&processor[1..])) {
        let rate = rate(times);
        let [alone, together, processor] = [rate / one, rate / two, processor[0] / used].map(|ratio| 100.0 * ratio);
        println!("{name:26} {rate:7.1}   {alone:5.1} %   {together:5.1} %   {processor:5.1} %");
    }
    if let Some(peak) = peak() {
        println!("the process held at most {peak} MiB");
    }
}
