//! A GEMM by pairs of CTAs, written by hand in PTX: TMA loads and stores, remote barriers, `cta_group::2`, multicast commits.

mod common;

use common::pair::{TEXT, d, launch, product};
use common::{load, schedules};

#[test]
fn right_and_clean() {
    for (m, k) in [(256, 64), (512, 320), (200, 200)] {
        let (launch, right) = (launch(m, k), product(m, k));
        for seed in schedules(6) {
            let report = common::run(&load(TEXT), &launch, seed, 10_000_000);
            assert!(report.is_clean(), "{m} x {k}, seed {seed:?}: {:#?}", report.findings);
            assert!(report.notes.is_empty(), "{:#?}", report.notes);
            assert!(d(&report) == right, "{m} x {k}, seed {seed:?}: D is wrong");
        }
    }
}
