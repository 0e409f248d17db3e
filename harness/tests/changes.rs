//! `cargo workbook diff` on the project's own solutions.

use expect_test::expect;
use harness::workbook::{self, Workspace};
use std::path::Path;

fn diff(from: u8, to: u8) -> Result<String, String> {
    colored::control::set_override(false);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workspace = Workspace { root: root.canonicalize().expect("the checkout") };
    workbook::changes(&workspace, [from, to], None, false, |_| Err("no binary is asked for".to_string()))
}

#[test]
fn a_screen_of_summary_first() {
    let text = diff(6, 7).expect("a comparison");
    let (summary, source) = text.split_once("\n---").expect("a source");
    expect![[r#"
        from step06 to step07: the solutions, for 1024x1024x1024 f16 on 148 SMs
        * marks what differs; of instructions, only those are shown

        launch                        step06                              step07
          grid, CTAs                  148 x 1 x 1                         148 x 1 x 1
          cluster, CTAs               1 x 1 x 1                           1 x 1 x 1
        * block, threads              128 x 1 x 1                         256 x 1 x 1
        * shared memory, bytes        98332                               81972

        barriers: stages x arrivals   step06                              step07
          tma2mma                     2 x 1, expect_tx + TMA              2 x 1, expect_tx + TMA
        * mma_done                    1 x 1, commit                       -
        * mma2tma                     -                                   2 x 1, commit
        * mma2ld                      -                                   1 x 1, commit
        * ld2mma                      -                                   1 x 128, threads

        shared memory                 step06                              step07
          A                           2 x 16384 bytes at 0                2 x 16384 bytes at 0
          B                           2 x 16384 bytes at 32768            2 x 16384 bytes at 32768
        * D                           2 x 16384 bytes at 65536            16384 bytes at 65536
        * accumulator.address         4 bytes at 98328                    4 bytes at 81968

        tensor memory                 step06                              step07
          accumulator                 128 columns at 0                    128 columns at 0

        instructions of the PTX text             step06                        step07
        * tcgen05.commit.cta_group::1                1                             2  +1
        * tcgen05.fence::after_thread_sync           2                             3  +1
        * tcgen05.fence::before_thread_sync          3                             1  -2
        * cp.async.bulk.commit_group                 1                             2  +1
        * cp.async.bulk.tensor.2d.shared.global      4                             2  -2
        * cp.async.bulk.wait_group.read              1                             3  +2
        * mbarrier.arrive                            0                             1  +1
        * mbarrier.arrive.expect_tx                  2                             1  -1
        * mbarrier.init                              3                             6  +3
        * mbarrier.try_wait                          2                             4  +2
        * fence.proxy.async                          1                             2  +1
        * bar                                        4                             6  +2
        * elect                                      3                             8  +5
        * bra                                       14                            31  +17
        * arithmetic, moves                        306                           341  +35
        * all                                      378                           444  +66
    "#]]
    .assert_eq(summary);
    assert!(summary.lines().count() <= 50, "{}", summary.lines().count());
    assert!(!source.contains("ANCHOR"), "{source}");
    assert!(source.contains("+ const WARPGROUP: u32 = 128;\n"), "{source}");
}

#[test]
fn pairs_of_ctas() {
    let text = diff(9, 10).expect("a comparison");
    let from = text.find("barriers").expect("barriers");
    let to = text.find("tensor memory").expect("tensor memory");
    expect![[r#"
        barriers: stages x arrivals   step09                              step10
          tma2mma                     4 x 1, expect_tx + TMA              4 x 1, expect_tx + TMA
        * mma2tma                     4 x 1, commit to both CTAs          4 x 2, commit to both CTAs
        * mma2ld                      1 x 1, commit to both CTAs          2 x 1, commit to both CTAs
        * ld2mma                      1 x 256, threads of both CTAs       2 x 256, threads of both CTAs

        shared memory                 step09                              step10
        * A                           4 x 16384 bytes at 0                -
        * B                           4 x 16384 bytes at 65536            4 x 16384 bytes at 131072
        * D                           16384 bytes at 131072               2 x 16384 bytes at 196608
        * accumulator.address         4 bytes at 147536                   -
        * A0                          -                                   4 x 16384 bytes at 0
        * A1                          -                                   4 x 16384 bytes at 65536
        * accumulators.address        -                                   4 bytes at 229472

    "#]]
    .assert_eq(&text[from..to]);
}

/// All pairs: something is said, in a hundred columns.
#[test]
fn every_pair() {
    for (from, _) in solutions::ALL {
        for (to, _) in solutions::ALL {
            let text = diff(*from, *to).unwrap_or_else(|error| panic!("{from} and {to}: {error}"));
            for line in text.lines() {
                assert!(line.chars().count() <= 100, "{from} and {to}: {line}");
            }
            let same = !text.lines().skip(2).any(|line| line.starts_with('*')) && text.ends_with("no line differs\n");
            assert_eq!(same, from == to, "{text}");
        }
    }
}

#[test]
fn a_size_that_a_step_does_not_take() {
    colored::control::set_override(false);
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let workspace = Workspace { root: root.canonicalize().expect("the checkout") };
    let size = "256x128x64".parse().ok();
    let error = workbook::changes(&workspace, [1, 2], size, false, |_| Err(String::new())).expect_err("refused");
    assert!(error.starts_with("step01 gives no kernel for 256x128x64 f16\n\nerror"), "{error}");
}
