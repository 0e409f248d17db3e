//! Scale factors that a copy without a tensor map brings, block by block: a `tcgen05.cp` that takes another one's block, or is missing. After a ring whose
//! factors lay in blocks of 512 bytes: its products were wrong, and nothing was said.

use super::common::{self, holding, zeroes};
use emulator::{Options, Report};

/// Two blocks of factors come to columns 0 to 7; threads load those, and store the sum of two of them.
const KERNEL: &str = "
.version 9.0
.target sm_100a
.address_size 64
.visible .entry k(.param .u64 factors, .param .u64 out) .reqntid 128
{
    .shared .align 1024 .b8 blocks[1024];
    .shared .align 8 .b64 full;
    .shared .align 8 .b64 moved;
    .shared .align 4 .b32 columns;
    .reg .b32 %r<10>;
    .reg .b64 %rd<8>;
    .reg .pred %p<4>;
    mov.u32 %r0, %tid.x;
    setp.eq.u32 %p0, %r0, 0;
    setp.lt.u32 %p1, %r0, 32;
    ld.param.u64 %rd0, [factors];
    @%p0 mbarrier.init.shared::cta.b64 [full], 1;
    @%p0 mbarrier.init.shared::cta.b64 [moved], 1;
    @%p0 fence.mbarrier_init.release.cluster;
    @%p1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [columns], 32;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    ld.shared.u32 %r1, [columns];
    add.u32 %r2, %r1, 4;
    @!%p0 bra WAIT;
    mbarrier.arrive.expect_tx.shared::cta.b64 _, [full], 1024;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [blocks], [%rd0], 1024, [full];
FULL:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [full], 0;
    @!%p2 bra FULL;
    mov.u32 %r3, blocks;
    shr.u32 %r3, %r3, 4;
    cvt.u64.u32 %rd1, %r3;
    or.b64 %rd1, %rd1, 0x0000400800000000;
    add.s64 %rd2, %rd1, 32;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], %rd1;
    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r2], %rd2;
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [moved];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [moved], 0;
    @!%p2 bra WAIT;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%r1];
    tcgen05.wait::ld.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @%p1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 32;
    ld.param.u64 %rd3, [out];
    mul.wide.u32 %rd4, %r0, 4;
    add.s64 %rd3, %rd3, %rd4;
    add.u32 %r2, %r2, %r5;
    st.global.u32 [%rd3], %r2;
    ret;
}
";

fn run(changes: &[(&str, &str)]) -> Report {
    let mut text = KERNEL.to_string();
    for (right, wrong) in changes {
        assert_eq!(text.matches(right).count(), 1, "{right}");
        text = text.replace(right, wrong);
    }
    let program = emulator::load(&text).unwrap_or_else(|e| panic!("{e:#?}"));
    let bytes = (0..1024u32).map(|n| (n * 7 + n / 256) as u8).collect();
    let launch = common::launch("k", 128, vec![holding("factors", bytes), zeroes("out", 512)]);
    emulator::run(&program, &launch, &Options::default())
}

/// What is said of factors that nobody reads; else nothing is found.
fn left(changes: &[(&str, &str)]) -> Vec<String> {
    let report = run(changes);
    assert!(report.findings.is_empty() && report.completed, "{:#?}", report.findings);
    let notes = report.notes.iter().filter(|note| note.code == "loaded-never-read");
    notes.map(|note| format!("{}; {}", note.title, note.labels[0].text)).collect()
}

const SECOND: &str = "    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r2], %rd2;\n";

#[test]
fn each_block_is_taken() {
    assert_eq!(left(&[]), [""; 0]);
}

#[test]
fn one_block_is_taken_twice() {
    let says = [
        "512 of the 1024 bytes that are copied to `blocks` are never read; copied here; the first that nobody reads is byte 512",
    ];
    assert_eq!(left(&[("add.s64 %rd2, %rd1, 32;", "add.s64 %rd2, %rd1, 0;")]), says);
}

#[test]
fn a_block_is_taken_by_nobody() {
    // Only what the first brings is loaded.
    let first = [(SECOND, ""), (".x8.b32", ".x4.b32"), (", %r6, %r7, %r8, %r9}", "}")];
    assert_eq!(left(&first).len(), 1);
    // A thread reads some of it: what is left is no whole block.
    let read = ("    tcgen05.wait::ld", "    @%p0 ld.shared.u32 %r6, [blocks+512];\n    tcgen05.wait::ld");
    assert_eq!(left(&[first[0], first[1], first[2], read]), [""; 0]);
}

#[test]
fn factors_of_which_no_copy_takes_any() {
    // As data for threads, of which they may leave out what they like.
    let first = ("    tcgen05.cp.cta_group::1.32x128b.warpx4 [%r1], %rd1;\n", "");
    let load = "    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r2, %r3, %r4, %r5, %r6, %r7, %r8, %r9}, [%r1];\n";
    let none = [(SECOND, ""), first, (load, "    mov.u32 %r5, %r2;\n")];
    assert_eq!(left(&none), [""; 0]);
}
