//! `tcgen05.mma.ws`: where D lies, which A each part of it is computed with, and which buffers hold B.

use super::{clean, finds};

/// Row r of A begins with r + 1, column n of B with n + 1, and all else is 0; in tensor memory, row r is lane r. Without a swizzle: eight rows
/// of 16 bytes in a row, the next ones 128 bytes on, and the other half of each row 4,096. `%rd2` and `%rd3` are their descriptors.
const SET_UP: &str = "
    shr.u32 %r1, %r0, 5;
    setp.ne.u32 %p0, %r1, 0;
    shl.b32 %r3, %r0, 4;
    mov.u32 %r4, tile;
    add.u32 %r3, %r3, %r4;
    add.u32 %r5, %r0, 1;
    cvt.rn.f16.u32 %h0, %r5;
    mov.b32 %r5, {%h0, 0};
    st.shared.v4.b32 [%r3], {%r5, 0, 0, 0};
    st.shared.v4.b32 [%r3+4096], {0, 0, 0, 0};
    fence.proxy.async.shared::cta;
    @%p0 bra SETUP;
    elect.sync _|%p1, 0xffffffff;
    @%p1 mbarrier.init.shared::cta.b64 [bar_a], 1;
    tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 128;
SETUP:
    bar.sync 0;
    ld.shared.b32 %r2, [slot];
    shr.u32 %r4, %r4, 4;
    cvt.u64.u32 %rd2, %r4;
    or.b64 %rd2, %rd2, 0x0000400801000000;
    mov.b64 %rd3, %rd2;
    shl.b32 %r6, %r1, 21;
    add.u32 %r6, %r6, %r2;
    add.u32 %r9, %r2, 64;
    add.u32 %r10, %r6, 64;
    mov.u32 %r11, 0;
    tcgen05.st.sync.aligned.32x32b.x8.b32 [%r10], {%r5, %r11, %r11, %r11, %r11, %r11, %r11, %r11};
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%p0 bra WAIT;
    elect.sync _|%p1, 0xffffffff;
    @!%p1 bra WAIT;";

/// Waits for it and stores column 3 of each thread's lane, as an integer.
const TEAR_DOWN: &str = "
    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_a], 0;
    @!%p2 bra WAIT;
    tcgen05.fence::after_thread_sync;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r7}, [%r6+3];
    tcgen05.wait::ld.sync.aligned;
    mov.b32 %f0, %r7;
    cvt.rzi.u32.f32 %r7, %f0;
    st.global.b32 [%rd0], %r7;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    @%p0 bra FREED;
    tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 128;
FREED:";

/// Of M rows and 64 columns, in FP16 with sums in FP32.
fn product(collector: &str, a: &str, m: usize) -> String {
    let idesc = (m / 16) << 24 | 8 << 17 | 1 << 4;
    format!("tcgen05.mma.ws.cta_group::1.kind::f16{collector} [%r2], {a}, %rd3, {idesc}, 0;")
}

/// Layouts G, E and D: the fewer rows, the more parts of the columns lie side by side.
#[test]
fn few_rows_lie_in_all_lanes_with_parts_of_the_columns() {
    for (m, parts) in [(32, 4), (64, 2), (128, 1)] {
        let body = format!("{SET_UP}\n{}\n{TEAR_DOWN}", product("", "%rd2", m));
        clean(&body, 128, |lane| {
            let (row, column) = (lane % m, lane / m * (64 / parts) + 3);
            ((row + 1) * (column + 1)) as u32
        });
    }
}

/// A in tensor memory lies in the lanes of what is computed with it: once for each part, and each part may have another one.
#[test]
fn a_in_tensor_memory_is_that_of_the_lanes() {
    for (m, parts) in [(32, 4), (64, 2), (128, 1)] {
        let body = format!("{SET_UP}\n{}\n{TEAR_DOWN}", product("", "[%r9]", m));
        clean(&body, 128, |lane| ((lane + 1) * (lane / m * (64 / parts) + 4)) as u32);
        // The upper lanes hold nothing.
        let below =
            body.replace("    tcgen05.st", "    setp.lt.u32 %p3, %r0, 64;\n    @!%p3 bra STORED;\n    tcgen05.st");
        let below = below.replace("    tcgen05.wait::st", "STORED:\n    tcgen05.wait::st");
        finds(&below, 128, "undefined-value-stored");
    }
}

/// Each of the four buffers of B is asked for what it was filled with.
#[test]
fn a_buffer_holds_the_b_that_it_was_filled_with() {
    let two = |second: &str| {
        let first = product(".collector::b1::fill", "%rd2", 64);
        let second = product(second, "[%r9]", 64).replace(", 0;", ", 1;");
        format!("{SET_UP}\n{first}\n{second}\n{TEAR_DOWN}")
    };
    clean(&two(".collector::b1::lastuse"), 128, |lane| ((lane % 64 + 1 + lane + 1) * (lane / 64 * 32 + 4)) as u32);
    finds(&two(".collector::b2::use"), 128, "collector-not-filled");
    let another = two(".collector::b1::use").replace("[%r9], %rd3", "[%r9], %rd4");
    let another = another.replace("mov.b64 %rd3, %rd2;", "mov.b64 %rd3, %rd2;\n    add.s64 %rd4, %rd3, 8;");
    finds(&another, 128, "collector-not-filled");
}
