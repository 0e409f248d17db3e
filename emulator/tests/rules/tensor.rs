//! Tensor memory, the tensor core's work, and Hopper's.

use super::case::{Case, HOPPER, PAIR, THREE, none, order};

/// Allocates 32 columns (`%tensor`), initialises `bar_a` and `bar_b`; `%tile` is a descriptor of the tile, whose first word is 1.
const SET_UP: &str = "@%first st.shared.u32 [tile], 1;\nfence.proxy.async.shared::cta;\n@%first mbarrier.init.shared::cta.b64 [bar_a], 1;\n@%first mbarrier.init.shared::cta.b64 [bar_b], 1;\n\
    @%warp0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;\n\
    @%first fence.mbarrier_init.release.cluster;\nbar.sync 0;\nld.shared.b32 %tensor, [slot];\n\
    setp.eq.u32 %p2, %t, 32;\n\
    mov.u32 %r0, tile;\nshr.u32 %r0, %r0, 4;\ncvt.u64.u32 %tile, %r0;\nor.b64 %tile, %tile, 0x4000404000000000;\n\
    shl.b32 %r5, %w, 21;\nadd.u32 %r5, %r5, %tensor;";
/// Everybody meets, and the columns are freed.
const FREE: &str = "tcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
    @%warp0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %tensor, 32;";
const MMA: &str = "tcgen05.mma.cta_group::1.kind::f16 [%tensor], %tile, %tile, 0x08080010, 0;";
/// With scale factors of A from column 16 on, of B in column 20.
const SCALED: &str = "tcgen05.mma.cta_group::1.kind::mxf8f6f4.block_scale [%tensor], %tile, %tile, 0x08820000, [%tensor+16], [%tensor+20], 0;";
/// Brings the scale factors of A.
const COPY: &str = "tcgen05.cp.cta_group::1.32x128b.warpx4 [%tensor+16], %tile;";
const COMMIT: &str = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64";
const READ: &str = "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r2}, [%r5];";
const WRITE: &str = "mov.b32 %r2, 0;\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r5], {%r2};";

fn wait(label: &str, barrier: &str) -> String {
    format!(
        "{label}:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [{barrier}], 0;\n@!%p1 bra {label};\n\
         tcgen05.fence::after_thread_sync;"
    )
}

fn kernel(body: &str) -> String {
    format!("{SET_UP}\n{body}\n{FREE}")
}

/// The result of an MMA is there.
fn epilogue() -> String {
    format!("{READ}\ntcgen05.wait::ld.sync.aligned;")
}

/// Warp 0 reads columns that hold something; behind this, a thread of warp 1 lets an MMA overwrite them.
fn overwritten(between: &str) -> String {
    kernel(&format!(
        "{WRITE}\ntcgen05.wait::st.sync.aligned;\n@%warp0 {READ}\n{between}\n@%p2 {MMA}\n@%p2 {COMMIT} [bar_a];\n{}",
        wait("WAIT", "bar_a")
    ))
}

pub fn tensor() -> Vec<Case> {
    let (a, b) = (wait("WAIT_A", "bar_a"), wait("WAIT_B", "bar_b"));
    // Two MMAs of a thread, the twin's second one another.
    let second_mma = |other: String| {
        order(
            "mma-after-mma",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "@%first {MMA}\n@%first {MMA} // rule: @%first {other}\n@%first {COMMIT} [bar_a];\n{a}\n{}",
                epilogue()
            )),
        )
    };
    vec![
        // Who has not waited reads too early.
        order(
            "commit",
            PAIR,
            &["mma-not-awaited"],
            kernel(&format!(
                "@%first {MMA}\n@%first {COMMIT} [bar_a];\n@%warp1 bra READ;\n{a}\nbra MEET;\n\
                 READ:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // rule\n@!%p1 bra READ; // rule\n\
                 tcgen05.fence::after_thread_sync;\n{}\nMEET:",
                epilogue()
            )),
        ),
        // A commit covers what came before it.
        order(
            "commit",
            PAIR,
            &["mma-not-committed"],
            kernel(&format!(
                "// rule: @%first {COMMIT} [bar_a];\n@%first {MMA}\n@%first {COMMIT} [bar_a]; // rule\n\
                 {a}\n{}",
                epilogue()
            )),
        ),
        // The operands have been read as well.
        order(
            "commit",
            PAIR,
            &["operand-overwritten"],
            kernel(&format!(
                "@%first {MMA}\n@%first {COMMIT} [bar_a];\nbar.sync 0;\n@%warp1 bra WRITE;\n{a}\nbra MEET;\n\
                 WRITE:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // rule\n@!%p1 bra WRITE; // rule\n\
                 st.shared.u32 [tile], 7;\nMEET:"
            )),
        ),
        none(
            "commit-tells-of-mmas-only",
            PAIR,
            &["race-shared"],
            kernel(&format!(
                "// rule: @%first st.shared.u32 [flag], 7;\n// rule: bar.sync 0;\n@%first st.shared.u32 [flag], 7; // rule\n\
                 @%first {MMA}\n@%first {COMMIT} [bar_a];\n{a}\n@%warp1 ld.shared.u32 %r2, [flag];"
            )),
        ),
        order(
            "mma-after-mma",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "setp.eq.u32 %p3, %t, 0; // rule: setp.eq.u32 %p3, %t, 32;\n@%first {MMA}\n@%p3 {MMA}\n\
                 @%first {COMMIT} [bar_a];\n@%p3 {COMMIT} [bar_b];\n{a}\n{b}\n{}",
                epilogue()
            )),
        ),
        // Of another thread, which has told of its issue; nobody waits for it.
        order(
            "mma-after-mma",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "@%p2 {MMA}\n@%p2 {COMMIT} [bar_b];\ntcgen05.fence::before_thread_sync;\nbar.sync 0; // rule\n\
                 tcgen05.fence::after_thread_sync;\n@%first {MMA}\n@%first {COMMIT} [bar_a];\n{a}\n{b}\n{}",
                epilogue()
            )),
        ),
        second_mma(MMA.replace("0x08080010", "0x04040010")),
        // Of two kinds, with accumulator and shape in common.
        second_mma(MMA.replace("kind::f16", "kind::tf32").replace("0x08080010", "0x08080910")),
        // The copies of another thread are no part of the pipeline.
        order(
            "mma-after-copy",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "setp.eq.u32 %p3, %t, 0; // rule: setp.eq.u32 %p3, %t, 32;\n@%p3 {COPY}\n@%first {SCALED}\n\
                 @%first {COMMIT} [bar_a];\n@%p3 {COMMIT} [bar_b];\n{a}\n{b}"
            )),
        ),
        // Unless the thread has told of their issue; nobody waits for them.
        order(
            "mma-after-copy",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "@%p2 {COPY}\n@%p2 {COMMIT} [bar_b];\ntcgen05.fence::before_thread_sync;\nbar.sync 0; // rule\n\
                 tcgen05.fence::after_thread_sync;\n@%first {SCALED}\n@%first {COMMIT} [bar_a];\n{a}\n{b}"
            )),
        ),
        // The next stage's scale factors.
        order(
            "copy-after-mma",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "setp.eq.u32 %p3, %t, 0; // rule: setp.eq.u32 %p3, %t, 32;\n@%first {COPY}\n@%first {SCALED}\n@%p3 {COPY}\n\
                 @%first {SCALED} // rule\n@%first {COMMIT} [bar_a];\n@%p3 {COMMIT} [bar_b];\n{a}\n{b}"
            )),
        ),
        // Others overwrite scale factors when the MMA is known to have read them.
        order(
            "commit",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "@%first {SCALED}\n@%first {COMMIT} [bar_a];\nbar.sync 0;\n@%warp1 bra WRITE;\n{a}\nbra MEET;\n\
                 WRITE:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // rule\n@!%p1 bra WRITE; // rule\n\
                 tcgen05.fence::after_thread_sync;\nmov.b32 %r2, 0;\nadd.u32 %r6, %r5, 17;\n\
                 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r6], {{%r2}};\ntcgen05.wait::st.sync.aligned;\nMEET:"
            )),
        ),
        // And the tile that a copy reads.
        order(
            "commit",
            PAIR,
            &["operand-overwritten"],
            kernel(&format!(
                "@%first {COPY}\n@%first {COMMIT} [bar_a];\nbar.sync 0;\n@%warp1 bra WRITE;\n{a}\nbra MEET;\n\
                 WRITE:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0; // rule\n@!%p1 bra WRITE; // rule\n\
                 st.shared.u32 [tile], 7;\nMEET:"
            )),
        ),
        none(
            "copy-over-an-accumulator",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "@%first {MMA}\n// rule: @%first {COMMIT} [bar_a];\n// rule: W:\n\
                 // rule: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n// rule: @!%p1 bra W;\n\
                 @%first {}\n@%first {COMMIT} [bar_b];\n{b}",
                COPY.replace("+16", "")
            )),
        ),
        none(
            "load-after-copy",
            PAIR,
            &["mma-not-committed"],
            kernel(&format!(
                "@%first {}\n// rule: @%first {COMMIT} [bar_a];\n\
                 @%warp0 bra READ;\nbra MEET;\nREAD:\n// rule: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n\
                 // rule: @!%p1 bra READ;\ntcgen05.fence::after_thread_sync;\n{}\nMEET:",
                COPY.replace("+16", ""),
                epilogue()
            )),
        ),
        none(
            "load-after-mma",
            PAIR,
            &["mma-not-committed"],
            kernel(&format!(
                "@%first {MMA}\n// rule: @%first {COMMIT} [bar_a];\n\
                 @%warp0 bra READ;\nbra MEET;\nREAD:\n// rule: mbarrier.try_wait.parity.shared::cta.b64 %p1, [bar_a], 0;\n\
                 // rule: @!%p1 bra READ;\ntcgen05.fence::after_thread_sync;\n{}\nMEET:",
                epilogue()
            )),
        ),
        order(
            "wait-ld",
            PAIR,
            &["missing-wait-ld"],
            overwritten(
                "@%warp0 tcgen05.wait::ld.sync.aligned; // rule\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
                 tcgen05.fence::after_thread_sync;",
            ),
        ),
        order(
            "wait-st",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "{WRITE}\ntcgen05.wait::st.sync.aligned; // rule\n{}\ntcgen05.wait::st.sync.aligned;",
                epilogue()
            )),
        ),
        // A wait for loads, as of another accumulator, is no wait for stores.
        order(
            "wait-st",
            PAIR,
            &["race-tensor"],
            kernel(&format!(
                "{WRITE}\ntcgen05.wait::st.sync.aligned; // rule: tcgen05.wait::ld.sync.aligned;\n{}\ntcgen05.wait::st.sync.aligned;",
                epilogue()
            )),
        ),
        order(
            "tensor-fences",
            PAIR,
            &["missing-tensor-fence"],
            overwritten(
                "@%warp0 tcgen05.wait::ld.sync.aligned;\ntcgen05.fence::before_thread_sync; // rule\nbar.sync 0;\n\
                 tcgen05.fence::after_thread_sync;",
            ),
        ),
        order(
            "tensor-fences",
            PAIR,
            &["missing-tensor-fence"],
            overwritten(
                "@%warp0 tcgen05.wait::ld.sync.aligned;\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\n\
                 tcgen05.fence::after_thread_sync; // rule",
            ),
        ),
        order(
            "through-a-reader",
            PAIR,
            &["race-shared"],
            kernel(&format!(
                "@%first mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 16;\n\
                 @%first cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%out], 16, [bar_a];\n\
                 @%warp1 bra WRITE;\n{a}\n@%first {MMA} // rule\n@%first {COMMIT} [bar_b];\nbra MEET;\n\
                 WRITE:\n{b}\nst.shared.u32 [tile], 7;\nMEET:"
            )),
        ),
        // Warp 1 stores an A, warp 0 multiplies it, and warp 2, which has heard of the MMA alone, lets another one overwrite it.
        order(
            "through-a-reader",
            THREE,
            &["race-tensor"],
            kernel(&format!(
                "setp.eq.u32 %p3, %t, 64;\n@%warp0 bra MULTIPLY;\n@!%warp1 bra OVERWRITE;\n{WRITE}\n\
                 tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n\
                 @%p2 mbarrier.arrive.shared::cta.b64 _, [bar_a];\nbra MEET;\n\
                 MULTIPLY:\n{a}\n@%first {of_a} // rule\n@%first {COMMIT} [bar_b];\nbra MEET;\n\
                 OVERWRITE:\n{b}\n@%p3 {MMA}\n@%p3 {COMMIT} [bar_b];\n{again}\nMEET:",
                of_a = MMA.replace("[%tensor], %tile", "[%tensor+16], [%tensor]").replace("0x0808", "0x0804"),
                again = wait("WAIT", "bar_b").replace("[bar_b], 0", "[bar_b], 1"),
            )),
        ),
    ]
}

/// An MMA of a thread takes as its A what the one before leaves: elements of 32 bits, as an accumulator has them.
pub fn chained() -> String {
    let mma = MMA.replace("kind::f16", "kind::tf32").replace("0x08080010", "0x08040910");
    let second = mma.replace("[%tensor], %tile", "[%r6], [%tensor]");
    kernel(&format!(
        "add.u32 %r6, %tensor, 16;\n@%first {mma}\n@%first {second}\n@%first {COMMIT} [bar_a];\n{}",
        wait("WAIT", "bar_a")
    ))
}

/// A warp waits for its own commit, and reads without a `tcgen05.fence::after_thread_sync`.
pub fn own_commit() -> String {
    let wait = wait("WAIT", "bar_a").replace("tcgen05.fence::after_thread_sync;", "");
    kernel(&format!("@!%warp0 bra MEET;\n@%first {MMA}\n@%first {COMMIT} [bar_a];\n{wait}\n{}\nMEET:", epilogue()))
}

pub fn hopper() -> Vec<Case> {
    let kernel = |body: &str| {
        format!(
            "@%first st.shared.u32 [tile], 1;\nfence.proxy.async.shared::cta;\nbar.sync 0;\n\
             mov.u32 %r0, tile;\nshr.u32 %r0, %r0, 4;\ncvt.u64.u32 %rd0, %r0;\nor.b64 %rd0, %rd0, 0x4000004000010000;\n\
             add.s64 %rd1, %rd0, 512;\nmov.f32 %f0, 0f00000000; mov.f32 %f1, %f0; mov.f32 %f2, %f0; mov.f32 %f3, %f0;\n{body}"
        )
    };
    let mma = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd0, %rd1, 0, 1, 1, 0, 0;";
    let done = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;";
    vec![
        order(
            "wgmma-group",
            HOPPER,
            &["operand-overwritten"],
            kernel(&format!(
                "wgmma.fence.sync.aligned;\n{mma}\nwgmma.commit_group.sync.aligned;\n\
                 wgmma.wait_group.sync.aligned 0; // rule\nbar.sync 0;\n@%warp0 st.shared.u32 [tile], 7;\n\
                 wgmma.wait_group.sync.aligned 0;"
            )),
        ),
        order(
            "wgmma-group",
            HOPPER,
            &["wgmma-not-awaited"],
            kernel(&format!(
                "wgmma.fence.sync.aligned;\n{mma}\nwgmma.commit_group.sync.aligned;\n\
                 wgmma.wait_group.sync.aligned 0; // rule\nadd.f32 %f4, %f0, %f1;\nwgmma.wait_group.sync.aligned 0;"
            )),
        ),
        order(
            "wgmma-fence",
            HOPPER,
            &["missing-wgmma-fence"],
            kernel(&format!("wgmma.fence.sync.aligned; // rule\n{mma}\n{done}")),
        ),
    ]
}
