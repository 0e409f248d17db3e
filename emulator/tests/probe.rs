//! The factor of `tcgen05.ld`: results that come from tensor memory double exactly, and where it cannot be applied, that is said.

mod common;

use common::load;
use common::pair::{TEXT, d, launch};
use emulator::{Options, Report};

fn run(text: &str, tensor_load_factor: f32) -> Report {
    emulator::run(&load(text), &launch(512, 192), &Options { tensor_load_factor, ..Default::default() })
}

#[test]
fn results_from_tensor_memory_double() {
    let (plain, double) = (run(TEXT, 1.0), run(TEXT, 2.0));
    assert!(plain.is_clean() && double.is_clean(), "{:?}", double.incomplete);
    assert_eq!(plain.cycles, double.cycles);
    let (plain, double) = (d(&plain), d(&double));
    assert!(plain.iter().any(|&x| x != 0.0));
    assert!(plain.iter().zip(&double).all(|(&x, &y)| y == 2.0 * x), "some element did not double");
}

/// A kernel that stores something else beside: it does not double.
#[test]
fn other_results_do_not_double() {
    let text = TEXT.replacen("cvt.rn.f16x2.f32 %r41, %f5, %f4;", "mov.u32 %r41, 0x3c003c00;", 1);
    let (plain, double) = (d(&run(&text, 1.0)), d(&run(&text, 2.0)));
    let same = (0..plain.len()).filter(|&n| double[n] != 2.0 * plain[n]).count();
    assert_eq!(same, plain.len() / 4, "two of eight columns are constant");
}

/// Threads put a sum of their own to tensor memory, over that of the MMAs: it does not double either.
#[test]
fn what_threads_store_to_tensor_memory_does_not_double() {
    let (load, rest) = TEXT.split_once("tcgen05.ld.").expect("it loads");
    let (_, address) = rest.split_once("[").expect("it loads from somewhere");
    let (address, _) = address.split_once("]").expect("it loads from somewhere");
    let store = format!(
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [{address}], {{%r41}};\n\ttcgen05.wait::st.sync.aligned;\n\ttcgen05.ld.{rest}"
    );
    let text = format!("{load}mov.u32 %r41, 0x40a00000;\n\t{store}");
    let (plain, double) = (run(&text, 1.0), run(&text, 2.0));
    assert!(double.incomplete.is_empty(), "{:?}", double.incomplete);
    let (plain, double) = (d(&plain), d(&double));
    assert!(plain.contains(&5.0), "the store is there");
    let same = (0..plain.len()).filter(|&n| double[n] != 2.0 * plain[n]).count();
    assert_eq!(same, plain.len() / 8, "one of eight columns is the threads' own");
}

#[test]
fn where_it_cannot_be_applied_is_said() {
    let packed = TEXT.replacen("32x32b.x8.b32", "32x32b.x8.pack::16b.b32", 1);
    let half = TEXT.replacen("0x10400010", "0x10400000", 1);
    for (text, factor, why) in [(&packed, 2.0, "packs"), (&half, 2.0, "FP16"), (&TEXT.into(), f32::NAN, "NaN")] {
        let report = run(text, factor);
        assert!(report.incomplete.iter().any(|what| what.contains(why)), "{why}: {:?}", report.incomplete);
        assert!(run(text, 1.0).incomplete.is_empty(), "{why}");
    }
}
