//! The calls that are named beside an advice: each writes the instruction that it is said to write.

use harness::Problem;
use harness::builder_calls::CALLS;
use harness::reference_kernels::reference_kernel;
use harness::source::{Built, InProcess, KernelSource};
use harness::workbook::inspect;
use ptx::{Cta, Gemm};
use std::collections::BTreeSet;
use std::path::Path;

/// What no solution calls.
fn rest(k: &mut Cta, _: &Gemm) {
    k.threads(128);
    k.warp(0, |w| {
        w.elect_one(|t| {
            t.bulk_wait(0);
        });
        let tmem = w.tmem_alloc("accumulator", 32);
        w.tmem_relinquish();
        w.tmem_dealloc(tmem);
    });
}

fn solution(step: u8) -> Built {
    let step = harness::step(step).expect("a step");
    let problem = harness::reference_kernels::problems(step).last().expect("a problem");
    reference_kernel(step, problem, 148).expect("the solution builds")
}

/// The lines of Rust of a kernel, each with an instruction that it wrote: ("k.fence_proxy_async();", "fence.proxy.async…").
fn written(built: &Built) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut line = |file: &str, number: u32| {
        let text = std::fs::read_to_string(root.join(file)).ok()?;
        Some(text.lines().nth(number as usize - 1)?.trim().to_string())
    };
    let mut rust = String::new();
    let mut all = Vec::new();
    for shown in inspect::listing(built, &mut line).lines() {
        let Some((number, text)) = shown.split_once('|') else { continue };
        if number.trim().is_empty() {
            all.push((rust.clone(), text.trim().to_string()));
        } else {
            rust = text.trim().to_string();
        }
    }
    all
}

#[test]
fn each_call_writes_what_it_is_said_to_write() {
    colored::control::set_override(false);
    let rest = InProcess(rest).build(&Problem::f16(128, 128, 64), 148).expect("it builds");
    let all: Vec<_> = (1..=10).map(solution).chain([rest]).flat_map(|built| written(&built)).collect();
    let missing: BTreeSet<&str> = CALLS
        .iter()
        .filter(|(ptx, call)| {
            let call = format!(".{call}(");
            // `tcgen05.commit with .multicast::cluster`: what follows somewhere in its name.
            let (ptx, with) = ptx.split_once(" with ").unwrap_or((ptx, ""));
            !all.iter().any(|(rust, text)| rust.contains(&call) && text.starts_with(ptx) && text.contains(with))
        })
        .map(|(ptx, _)| *ptx)
        .collect();
    assert!(missing.is_empty(), "no line writes them by that call: {missing:?}");
}

#[test]
fn of_two_that_begin_alike_the_longer_comes_first() {
    for (index, (ptx, _)) in CALLS.iter().enumerate() {
        let shadowed = CALLS[..index].iter().find(|(before, _)| ptx.starts_with(before));
        assert!(shadowed.is_none(), "{ptx} is never found: {shadowed:?} stands before it");
    }
}
