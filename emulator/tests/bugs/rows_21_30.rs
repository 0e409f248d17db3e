//! Scopes, proxies, tensor memory, ends.

use super::case::{Base, Case, Expect, Result, case};
use Base::{OneTile, Pair, Ring, Small};
use Expect::{Among, Finds, Notes};

/// CTA 1 stores to CTA 0, which waits for it.
pub const HANDED_OVER: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@!%p0 bra END;
mov.u32 %r5, bar_a;
mapa.shared::cluster.u32 %r5, %r5, 0;
mov.u32 %r6, tile;
mapa.shared::cluster.u32 %r6, %r6, 0;
setp.eq.u32 %p1, %r2, 0;
@%p1 bra READ; // @branch
st.shared::cluster.u32 [%r6], 7; // @st_remote
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5]; // @arrive_remote
bra END;
READ:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra READ;
ld.shared.u32 %r7, [tile]; // @ld
st.global.u32 [%rd0], %r7;
END:
barrier.cluster.arrive.relaxed.aligned; // @last_arrive
barrier.cluster.wait.aligned; // @last_wait";

/// CTA 0 tells CTA 1 to go on.
pub const HANDED_BACK: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@!%p0 bra END;
mov.u32 %r5, bar_a;
mapa.shared::cluster.u32 %r5, %r5, 1;
setp.eq.u32 %p1, %r2, 1;
@%p1 bra READ;
mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5]; // @arrive_remote
bra END;
READ:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra READ;
END:
barrier.cluster.arrive.relaxed.aligned;
barrier.cluster.wait.aligned;";

/// A tile is loaded twice; all threads read it in between.
const REFILLED: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
shl.b32 %r14, %r0, 2;
mov.u32 %r15, tile;
add.u32 %r15, %r15, %r14;
mov.u32 %r10, 0;
mov.u32 %r12, 0;
mov.u32 %r13, 0;
mov.u32 %r17, 0;
AGAIN:
@!%p0 bra WAIT;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%rd2, {%r12, %r13}], [bar_a]; // @load
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], %r10;
@!%p2 bra WAIT;
ld.shared.u32 %r16, [%r15]; // @ld
add.u32 %r17, %r17, %r16;
fence.proxy.async.shared::cta; // @fence
bar.sync 0; // @read
add.u32 %r10, %r10, 1;
add.u32 %r13, %r13, 8;
setp.lt.u32 %p3, %r10, 2;
@%p3 bra AGAIN;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r17;";

/// A pair allocates and frees.
const ALLOCATED: &str = "\
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra OVER;
tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [slot], 64; // @alloc
OVER:
bar.sync 0;
ld.shared.b32 %r3, [slot];
barrier.cluster.arrive.aligned; // @meet
barrier.cluster.wait.aligned; // @met
@%p1 bra END;
tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 64; // @dealloc
END:";

/// CTA 0 loads a tile for both.
const MULTICAST: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
MADE:
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
@!%p0 bra END;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 1024;
setp.ne.u32 %p1, %r2, 0;
@%p1 bra WAIT; // @branch
mov.u32 %r10, tile;
mov.u32 %r11, bar_a;
mov.u32 %r12, 0;
mov.b16 %h0, 3;
cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%r10], [%rd2, {%r12, %r12}], [%r11], %h0; // @load
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @wait
@!%p2 bra WAIT;
ld.shared.u32 %r7, [tile]; // @ld
mul.wide.u32 %rd3, %r2, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3], %r7;
END:";

pub fn cases() -> Vec<Case> {
    let scopes = ("cutlass#3324, #3643", "RACE");
    let fences = ("sglang#39124, FlashKDA#24, Fuser#4813, #4814", "RACE; up to 100 of 100 runs on a B300");
    let before_overwrite = ("DeepEP#642, TransformerEngine#2695", "RACE, rare");
    let wait_ld = ("FastVideo#1819, cutlass#3652", "RACE");
    let isa = ("PTX ISA", "RACE");
    let lanes = ("DeepGEMM#341", "WRONG rows; a debug build faults");
    let pairs = ("cutlass#3316, #3435", "HANG, or ULF in 96 of 96 runs");
    let ended =
        ("sglang#32907, facebookexperimental/triton#1105, triton#11730", "cluster target block not present, ULF");
    let leak = ("PTX ISA", "HANG of the next CTA");
    vec![
        case(
            "21a",
            "an arrival of CTA scope for what was stored to another CTA",
            scopes,
            Small(2, 32, HANDED_OVER),
            &[("@arrive_remote", "mbarrier.arrive.release.cta.shared::cluster.b64 _, [%r5];")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st_remote")]),
        ),
        case(
            "21b",
            "a wait of CTA scope for what another CTA stored",
            scopes,
            Small(2, 32, HANDED_OVER),
            &[("@wait", "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;")],
            Finds(&[("race-shared", "@ld"), ("race-shared", "@st_remote")]),
        ),
        case(
            "22a",
            "no proxy fence between plain stores and the TMA store that reads them",
            fences,
            Ring,
            &[("@fence_tile", "")],
            Finds(&[("missing-proxy-fence", "@store")]),
        ),
        case(
            "22b",
            "no proxy fence between plain stores and the MMA that reads them",
            fences,
            OneTile,
            &[("    fence.proxy.async.shared::cta;\n", "")],
            Finds(&[("missing-proxy-fence", "tcgen05.mma")]),
        ),
        case(
            "22c",
            "the proxy fence of the wrong state space",
            fences,
            OneTile,
            &[("    fence.proxy.async.shared::cta;\n", "    fence.proxy.async.global;\n")],
            Finds(&[("missing-proxy-fence", "tcgen05.mma")]),
        ),
        case(
            "23a",
            "no proxy fence between plain loads and the TMA load that overwrites",
            before_overwrite,
            Small(1, 64, REFILLED),
            &[("@fence", "")],
            Notes("missing-proxy-fence-before-overwrite", "@load", Result::Right),
        ),
        case(
            "23b",
            "no barrier between plain loads and the TMA load that overwrites",
            before_overwrite,
            Small(1, 64, REFILLED),
            &[("@read", "")],
            Finds(&[("race-shared", "@load"), ("race-shared", "@ld"), ("hang", "[bar_a], %r10;")]),
        ),
        case(
            "24a",
            "tensor memory is handed back before the load from it is awaited",
            wait_ld,
            Ring,
            &[
                (
                    "@fence_before_arrive",
                    "    tcgen05.ld.sync.aligned.32x32b.x8.b32 {%r60, %r61, %r62, %r63, %r64, %r65, %r66, %r67}, [%r23]; // <- here\n{}",
                ),
                ("@arrive_acc_empty", "{}\n    tcgen05.wait::ld.sync.aligned;"),
            ],
            Finds(&[("missing-wait-ld", "// <- here"), ("accumulator-overwritten", "@mma")]),
        ),
        // The registers are used before anyone is told, and that waits for the load.
        case(
            "24b",
            "no tcgen05.wait::ld",
            wait_ld,
            Ring,
            &[("@wait_ld", "")],
            Notes("missing-wait-ld", "@ld", Result::Right),
        ),
        case(
            "24c",
            "tensor memory is freed before all warps have read it",
            wait_ld,
            OneTile,
            &[("    tcgen05.fence::before_thread_sync;\n    bar.sync 0;\n", "")],
            Finds(&[("tensor-freed-in-use", "tcgen05.dealloc")]),
        ),
        case(
            "24d",
            "no barrier between the accumulator's use and the next MMA: nobody waits for the empty accumulator",
            wait_ld,
            Ring,
            &[("@wait_acc_empty", ""), ("@loop_acc_empty", "")],
            Finds(&[("accumulator-overwritten", "@mma")]),
        ),
        case(
            "25a",
            "D is read without a wait",
            isa,
            Ring,
            &[("@wait_acc_full", ""), ("@loop_acc_full", "")],
            // The accumulator is also handed back before the MMAs have asked for it.
            Among(&[("mma-not-awaited", "@ld")]),
        ),
        case(
            "25b",
            "D is read behind a wait, without tcgen05.fence::after_thread_sync",
            isa,
            Ring,
            &[("@fence_after_acc", "")],
            Notes("missing-tensor-fence", "@ld", Result::Right),
        ),
        case(
            "25c",
            "no commit",
            ("PTX ISA", "HANG"),
            Ring,
            &[("@commit_acc", "")],
            Finds(&[("hang", "@wait_acc_full")]),
        ),
        case(
            "25d",
            "D is read without commit or wait",
            isa,
            Ring,
            &[("@commit_acc", ""), ("@wait_acc_full", ""), ("@loop_acc_full", "")],
            // The accumulator is also handed back before the MMAs have asked for it.
            Among(&[("mma-not-committed", "@ld"), ("mma-not-awaited", "@ld")]),
        ),
        case(
            "26a",
            "rows and lanes by the number of the warp in its role, not by its number mod 4",
            lanes,
            Ring,
            &[
                ("@lanes", "    xor.b32 %r50, %r1, 1;\n    shl.b32 %r24, %r50, 21;"),
                ("@row", "    xor.b32 %r51, %r0, 32;\n    shl.b32 %r25, %r51, 7;"),
            ],
            Finds(&[("tensor-lane-quarter", "@ld")]),
        ),
        case(
            "26b",
            "all warps address the lanes of the first: the hardware takes each warp's own",
            lanes,
            Ring,
            &[("@lanes", "    mov.u32 %r24, 0;")],
            Notes("tensor-lane-quarter", "@ld", Result::Right),
        ),
        case(
            "27",
            "the address of tensor memory is read without a barrier behind the allocation",
            ("cutlass#2835", "RACE, or a fault when it is freed"),
            Ring,
            &[("@read_slot", ""), ("@set_up", "    ld.shared.b32 %r6, [%r3+64]; // <- here\n{}")],
            // What was read has no value.
            Among(&[("race-shared", "// <- here"), ("race-shared", "@alloc")]),
        ),
        case(
            "28a",
            "a pair allocates before both CTAs are known to run",
            pairs,
            Pair,
            &[
                (
                    "INIT_DONE:\n    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n",
                    "INIT_DONE:\n",
                ),
                (
                    "ALLOCATED:\n    bar.sync 0;",
                    "ALLOCATED:\n    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;",
                ),
            ],
            Notes("cta-not-started", "tcgen05.alloc.cta_group::2", Result::Right),
        ),
        case(
            "28b",
            "a pair frees before the peer has got its columns",
            pairs,
            Small(2, 64, ALLOCATED),
            &[("@meet", ""), ("@met", "")],
            Finds(&[("pair-freed-early", "@dealloc")]),
        ),
        case(
            "29a",
            "a CTA ends, and its peer stores to it",
            ended,
            Small(2, 32, HANDED_OVER),
            &[("@branch", "@%p1 bra END;"), ("@last_arrive", ""), ("@last_wait", "")],
            Finds(&[("remote-use-outlives-cta", "@st_remote"), ("remote-use-outlives-cta", "@arrive_remote")]),
        ),
        case(
            "29b",
            "a CTA ends, and a multicast load writes to it",
            ended,
            Small(2, 32, MULTICAST),
            &[("@branch", "@%p1 bra END;")],
            Finds(&[("load-outlives-cta", "@load"), ("remote-use-outlives-cta", "@load")]),
        ),
        case(
            "30a",
            "tensor memory is not freed",
            leak,
            Ring,
            &[("@dealloc", "")],
            Finds(&[("tensor-memory-leak", "@alloc")]),
        ),
        case(
            "30b",
            "fewer columns are freed than were allocated",
            leak,
            Ring,
            &[("@dealloc", "    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 64;")],
            Finds(&[("tensor-free-mismatch", "@dealloc")]),
        ),
    ]
}
