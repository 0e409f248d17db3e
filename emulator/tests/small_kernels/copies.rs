//! Warps that hold copies of one value, as compilers lay out tiles that are smaller than their warps reach: each stores its copy, and whoever
//! comes last, the value stays.

use super::{clean, finds, run};

/// Around a body that stores from `%r4` to the columns at `%r10` (that of the warp's own quarter): the first four warps load them again.
fn columns(body: &str) -> String {
    format!(
        "
    shr.u32 %r1, %r0, 5;
    setp.lt.u32 %p0, %r0, 32;
    setp.lt.u32 %p1, %r0, 128;
    and.b32 %r2, %r0, 31;
    @%p0 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
    bar.sync 0;
    ld.shared.b32 %r3, [slot];
    and.b32 %r11, %r1, 3;
    shl.b32 %r10, %r11, 21;
    add.u32 %r10, %r10, %r3;
    and.b32 %r4, %r0, 127;
{body}
    tcgen05.wait::st.sync.aligned;
    tcgen05.fence::before_thread_sync;
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @!%p1 bra LOADED;
    tcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r5}}, [%r10];
    tcgen05.wait::ld.sync.aligned;
    st.global.b32 [%rd0], %r5;
    tcgen05.fence::before_thread_sync;
LOADED:
    bar.sync 0;
    tcgen05.fence::after_thread_sync;
    @%p0 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;"
    )
}

fn notes(body: &str, threads: u32) -> Vec<&'static str> {
    let mut codes: Vec<_> = run(body, threads, None).notes.iter().map(|note| note.code).collect();
    codes.sort_unstable();
    codes
}

/// Eight warps, each with 16 of the 32 lanes that it reaches: no two of them store to the same cells.
#[test]
fn two_warps_of_a_quarter_store_to_their_halves_of_its_lanes() {
    let halves = |first_of_the_second: u32| {
        columns(&format!(
            "
    and.b32 %r6, %r2, 15;
    shl.b32 %r7, %r11, 5;
    add.u32 %r4, %r6, %r7;
    @!%p1 add.u32 %r4, %r4, 16;
    mov.b32 %r8, %r10;
    @!%p1 add.u32 %r8, %r8, {};
    tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r8], 1, {{%r4}};",
            first_of_the_second << 16
        ))
    };
    clean(&halves(16), 256, |n| if n < 128 { n as u32 } else { 0 });
    finds(&halves(0), 256, "race-tensor");
}

#[test]
fn two_warps_store_the_same_to_columns() {
    let store = "    tcgen05.st.sync.aligned.32x32b.x1.b32 [%r10], {%r4};";
    clean(&columns(store), 256, |n| if n < 128 { n as u32 } else { 0 });
    assert_eq!(notes(&columns(store), 256), ["same-value-written-twice"]);
    // Copies that differ in a bit of one lane.
    let other = format!("    setp.eq.u32 %p2, %r0, 200;\n    @%p2 xor.b32 %r4, %r4, 1;\n{store}");
    finds(&columns(&other), 256, "race-tensor");
    // The first four have stored something else before: who comes behind the second four only may find that.
    let before = format!("    @!%p1 bra STORE;\n    mov.b32 %r6, 7;\n{}\nSTORE:\n{store}", store.replace("%r4", "%r6"));
    finds(&columns(&before), 256, "race-tensor");
}

/// As Triton turns the layout of a few values: eight addresses of two rows, so that a warp stores each row four times. That is no value before the
/// last one; what is stored by a statement of its own is.
#[test]
fn two_warps_store_the_same_rows_four_times() {
    let rows = |before: &str| {
        format!(
            "
    mov.u32 %r1, tile;
    and.b32 %r2, %r0, 1;
    shl.b32 %r3, %r2, 4;
    add.u32 %r3, %r3, %r1;
    and.b32 %r2, %r0, 7;
    add.u32 %r4, %r2, 100;
    {before}
    stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {{%r4}};
    bar.sync 0;
    shl.b32 %r3, %r2, 2;
    add.u32 %r3, %r3, %r1;
    ld.shared.b32 %r8, [%r3];
    st.global.b32 [%rd0], %r8;"
        )
    };
    clean(&rows(""), 64, |n| 100 + n as u32 % 8);
    assert_eq!(notes(&rows(""), 64), ["same-value-written-twice"]);
    let before = "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra STORE;\nmov.b32 %r6, 7;\n\
                  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r3], {%r6};\nSTORE:";
    finds(&rows(before), 64, "race-shared");
}

#[test]
fn two_warps_store_the_same_matrices() {
    let matrices = |copy: &str| {
        format!(
            "
    mov.u32 %r1, tile;
    and.b32 %r2, %r0, 31;
    shl.b32 %r3, %r2, 4;
    add.u32 %r3, %r3, %r1;
    add.u32 %r4, %r2, 100;
    {copy}
    stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], {{%r4, %r4, %r4, %r4}};
    bar.sync 0;
    ldmatrix.sync.aligned.m8n8.x4.shared.b16 {{%r5, %r6, %r7, %r8}}, [%r3];
    st.global.b32 [%rd0], %r8;"
        )
    };
    clean(&matrices(""), 64, |n| 100 + n as u32 % 32);
    assert_eq!(notes(&matrices(""), 64), ["same-value-written-twice"]);
    finds(&matrices("setp.eq.u32 %p2, %r0, 40;\n@%p2 add.u32 %r4, %r4, 1;"), 64, "race-shared");
    let before = "setp.ge.u32 %p1, %r0, 32;\n@%p1 bra STORE;\nmov.b32 %r6, 7;\n\
                  stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r3], {%r6, %r6, %r6, %r6};\nSTORE:";
    finds(&matrices(before), 64, "race-shared");
}

/// As Triton updates a tile in place that is smaller than its warps reach: all of them load, half of them store. What the others load may be the new
/// value, and ends in stores that they do not execute.
#[test]
fn warps_load_what_they_do_not_store() {
    let update = |guard: &str, more: &str| {
        format!(
            "
    and.b32 %r1, %r0, 63;
    mul.wide.u32 %rd2, %r1, 4;
    sub.s64 %rd3, %rd0, %rd1;
    add.s64 %rd2, %rd2, %rd3;
    ld.global.b32 %r5, [%rd2];
    {more}
    add.u32 %r6, %r5, 5;
    {guard}
    @%p2 st.global.b32 [%rd2], %r6;"
        )
    };
    let half = "and.b32 %r8, %r0, 64;\nsetp.eq.u32 %p2, %r8, 0;";
    clean(&update(half, ""), 128, |n| if n < 64 { 5 } else { 0 });
    assert_eq!(notes(&update(half, ""), 128), ["race-global"]);
    // With a mask that is not known here, which can only leave out more.
    let masked = format!(
        "ld.global.b32 %r9, [%rd0+1024];\nsetp.eq.u32 %p1, %r9, 0;\n{}\nand.pred %p2, %p1, %p4;",
        half.replace("%p2", "%p4")
    );
    clean(&update(&masked, ""), 128, |n| if n < 64 { 5 } else { 0 });
    // A warp more that stores.
    finds(&update("setp.lt.u32 %p2, %r0, 96;", ""), 128, "race-global");
    // Only some lanes of one more do.
    finds(&update("setp.lt.u32 %p2, %r0, 65;", ""), 128, "race-global");
    // What is loaded goes elsewhere too, or steers what is done.
    finds(&update(half, "st.global.b32 [%rd0+1024], %r5;"), 128, "race-global");
    finds(&update(half, "setp.eq.u32 %p3, %r5, 5;\n@%p3 st.global.b32 [%rd0+1024], %r0;"), 128, "race-global");
    finds(&update(half, "shfl.sync.idx.b32 %r7, %r5, 0, 31, -1;"), 128, "race-global");
    // Nothing takes what is loaded.
    finds(
        &update(half, "").replace("%p2 st.global.b32 [%rd2], %r6", "%p2 st.global.b32 [%rd2], %r0"),
        128,
        "race-global",
    );
    // Another statement writes there: what is loaded may not be what was meant, though nobody stores it.
    let written = "setp.eq.u32 %p3, %r0, 0;\n@%p3 st.global.b32 [%rd3], %r0;";
    finds(
        &update(half, written).replace("@%p2 st.global.b32 [%rd2]", "@%p2 st.global.b32 [%rd2+1024]"),
        128,
        "race-global",
    );
    // The guard changes on the way.
    let twice = format!("setp.ge.u32 %p2, %r0, 64;\n@%p2 st.global.b32 [%rd0+1024], %r6;\n{half}");
    finds(&update(&twice, ""), 128, "race-global");
}
