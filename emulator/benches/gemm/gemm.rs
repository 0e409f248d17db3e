//! How fast a whole GEMM runs: `cargo bench -p gemm-bench`.
//!
//! D = A·Bᵀ in FP16, 2048³, on pairs of CTAs: by `tests/gluon/two_cta_ring.ptx`, tiles of 256 × 256 and a ring of three stages, and by
//! `ws_two_cta.ptx`, tiles of 256 × 128, persistent and warp-specialised. Beside them, in the same process and in turns, the same product in FP32 by the `gemm` crate. Everything
//! around the kernel counts: copies of the buffers, the clusters, the report. The figures are medians of the rounds.
//! `-- 1024 3 Fast` is 1024³, three rounds, and of the emulator's rows only those whose name contains `Fast`.

// The `gemm` crate takes pointers.
#![allow(unsafe_code)]

#[path = "../../tests/gluon/case.rs"]
mod case;

use emulator::{Numerics, Options};
use gemm::Parallelism;
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

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|a| a.parse::<usize>().ok());
    let size = numbers.next().unwrap_or(2048);
    let rounds = numbers.next().unwrap_or(5);
    let mut case = case::case("two_cta_ring", Some([size; 3]));
    let mut persistent = case::case("ws_two_cta", Some([size; 3]));
    let size @ [m, n, k] = case.size;
    case.launch.grid = [(m / 256 * 2) as u32, (n / 256) as u32, 1];
    // Two tiles for each pair of CTAs.
    persistent.launch.grid = [((m / 256) * (n / 128)).max(2) as u32, 1, 1];
    let (a, b) = (matrix(m * k, 1), matrix(n * k, 2));
    for (buffer, elements) in [&a, &b].into_iter().enumerate() {
        let bits: Vec<u16> = elements.iter().map(|&x| case.bits(x)).collect();
        case.fill(buffer, bits.iter().copied());
        persistent.fill(buffer, bits.into_iter());
    }
    let programs = [&case, &persistent].map(|case| emulator::load(&case.text).expect("the kernel loads"));
    let mut d = vec![0f32; m * n];

    let only = std::env::args().skip(1).find(|a| !a.starts_with("--") && a.parse::<usize>().is_err());
    let names = ["gemm, 1 thread", "gemm, 2 threads", "Fast", "Exact", "Fast, persistent", "Exact, persistent"];
    let mut times = [const { Vec::new() }; 6];
    for round in 0..rounds {
        for (n, times) in times.iter_mut().enumerate() {
            if n > 1 && only.as_ref().is_some_and(|only| !names[n].contains(only)) {
                continue;
            }
            let start = Instant::now();
            let numerics = match n {
                0 => {
                    reference(size, &a, &b, &mut d, Parallelism::None);
                    None
                }
                1 => {
                    reference(size, &a, &b, &mut d, Parallelism::Rayon(2));
                    None
                }
                2 | 4 => Some(Numerics::Fast),
                _ => Some(Numerics::Exact),
            };
            if let Some(numerics) = numerics {
                let which = usize::from(n > 3);
                let launch = [&case.launch, &persistent.launch][which];
                let report = emulator::run(&programs[which], launch, &Options { numerics, ..Options::default() });
                times.push(start.elapsed().as_secs_f64());
                assert!(report.is_clean(), "{:?} {:?}", report.findings, report.incomplete);
                // FP16 results: half a unit in the last place, and what 2048 sums lose.
                let wrong = (report.buffers[2].bytes.as_chunks().0.iter().zip(&d))
                    .filter(|&(&bits, &d)| (case.value(u16::from_le_bytes(bits)) - d).abs() > d.abs() / 2048.0 + 0.02)
                    .count();
                assert_eq!(wrong, 0, "elements of D that are wrong, {numerics:?}");
                if round == 0 {
                    println!("{}: {} cycles, {} warp instructions", names[n], report.cycles, report.instructions);
                }
            } else {
                times.push(start.elapsed().as_secs_f64());
            }
        }
    }
    let flops = (2 * m * n * k) as f64;
    let rates = times.map(|mut times| {
        times.sort_by(f64::total_cmp);
        times.get(times.len() / 2).map(|time| flops / time / 1e9)
    });
    println!("{m} × {n} × {k}, {rounds} rounds, GFLOP/s (and the ratio to the gemm crate on 1 and on 2 threads)");
    let ratio = |rate: f64, to: Option<f64>| 100.0 * rate / to.unwrap_or(f64::NAN);
    for (name, rate) in names.iter().zip(rates) {
        if let Some(rate) = rate {
            println!("{name:16} {rate:7.1}   {:5.1} %   {:5.1} %", ratio(rate, rates[0]), ratio(rate, rates[1]));
        }
    }
    if let Some(peak) = peak() {
        println!("the process held at most {peak} MiB");
    }
}
