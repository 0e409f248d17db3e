//! Addresses of another state space, and races between CTAs: the messages say whose address it is, and who the two are.

use super::common::{emulate_texts, without_cycles};
use super::{kernel, launch};

fn said(body: &str, launch: &str) -> String {
    let said = emulate_texts(&kernel(body), launch, &[]);
    without_cycles(&(said.out + &said.err))
}

/// Bodies, what the title has to say, and what to try.
#[test]
fn an_address_of_another_space_is_named_with_its_owner() {
    let cases = [
        // Its lower half, 256, lies in no shared memory; that of the next, 2048, does.
        (
            "st.shared.u32 [%rd0+256], 7;",
            "it is the address of `out` at byte 256, in global memory",
            "`.global` in the place of `.shared`",
        ),
        (
            "st.shared.u32 [%rd0+2048], 7;",
            "no shared address that it reaches: it is the address of `out` at byte 2048",
            "`.global`",
        ),
        ("ld.shared::cluster.u32 %r1, [%rd2];", "it is the address of `in` at byte 0, in global memory", "`.global`"),
        (
            "cvt.u32.u64 %r1, %rd2;\nld.shared.u32 %r2, [%r1];",
            "it is perhaps the lower half of the address of `in` at byte 0",
            "64-bit registers",
        ),
        (
            "mov.u64 %rd4, tile;\ncvta.shared.u64 %rd5, %rd4;\nld.global.u32 %r1, [%rd5];",
            "it is the generic address of `tile`, in shared memory",
            "Leave `.global` out",
        ),
        (
            "mov.u64 %rd4, tile;\nld.global.u32 %r1, [%rd4];",
            "it is as a shared address that of `tile`",
            "write `.shared` in the place of `.global`",
        ),
        (
            "mov.u64 %rd4, tile;\nst.u32 [%rd4], 1;",
            "no generic address of memory that the launch has: it is as a shared address that of `tile`",
            "cvta.shared.u64",
        ),
        ("atom.shared.add.u32 %r1, [%rd0], 1;", "would update 4 bytes at", "`.global`"),
        (
            "mbarrier.init.shared.b64 [%rd0], 1;",
            "is no shared address: it is the address of `out` at byte 0",
            "`mov.u32 %r, bar;`",
        ),
        (
            "cp.async.ca.shared.global [%rd0], [%rd2], 16;",
            "of this copy is none: it is the address of `out` at byte 0",
            "look whether source and destination have changed places",
        ),
    ];
    for (body, says, advice) in cases {
        let said = said(body, &launch(1));
        assert!(said.contains(says) && said.contains(advice), "{body}\n{said}");
    }
}

/// A buffer's address that was never added, and a parameter's name in the place of its value.
#[test]
fn a_small_number_is_said_to_lack_the_buffers_address() {
    let index = said("mul.wide.u32 %rd4, %r0, 4;\nst.global.u32 [%rd4+8], %r0;", &launch(1));
    assert!(index.contains("try: So small a number is an index or an offset: add the buffer's address"), "{index}");
    let name = said("mov.u64 %rd4, out;\nld.global.u32 %r1, [%rd4];", &launch(1));
    assert!(name.contains("A parameter's own name is where that value lies."), "{name}");
}

/// A parameter that the launch gives as 0 is a null pointer.
#[test]
fn a_null_pointer_is_called_one() {
    let null = launch(1).replacen(r#"{"pointer": {"buffer": 0}}"#, r#"{"u64": 0}"#, 1);
    assert_ne!(null, launch(1));
    for body in
        ["st.global.u32 [%rd0], %r0;", "mov.u64 %rd4, tile;\nadd.u64 %rd4, %rd0, %rd4;\nst.global.u32 [%rd4], %r0;"]
    {
        let said = said(body, &null);
        assert!(said.contains("The launch gives 0 for the parameter `out`"), "{said}");
    }
}

/// Which of the two numbers of a barrier is none.
#[test]
fn the_wrong_number_of_a_barrier_is_named() {
    for (body, says) in [
        ("bar.sync 16, 32;", "Use a barrier number from 0 to 15 in the place of 16."),
        ("bar.sync 1, 100;", "such as 128 in the place of 100."),
        ("bar.sync 1, 1056;", "such as 1024 in the place of 1056."),
    ] {
        let said = said(body, &launch(1));
        assert!(said.contains("error[named-barrier]") && said.contains(says), "{said}");
    }
}

/// What takes generic addresses takes those of shared memory.
#[test]
fn a_generic_address_is_one_where_no_space_is_written() {
    let body = "mov.u64 %rd4, bar;\ncvta.shared.u64 %rd5, %rd4;\nmbarrier.init.b64 [%rd5], 1;\nmbarrier.arrive.b64 %rd6, [%rd5];\n\
                mov.u64 %rd4, tile;\ncvta.shared.u64 %rd5, %rd4;\nst.u32 [%rd5], 7;\nld.u32 %r1, [%rd5];\ncvta.to.shared.u64 %rd6, %rd5;\n\
                ld.shared.u32 %r2, [%rd6];";
    let said = said(body, &launch(1));
    assert!(said.contains("no findings"), "{said}");
}

#[test]
fn shared_memory_of_another_cta_is_named() {
    let two = launch(1).replace("\"grid\": [1, 1, 1]", "\"grid\": [2, 1, 1], \"cluster\": [2, 1, 1]");
    let said = said("mov.u32 %r1, tile;\nmapa.shared::cluster.u32 %r2, %r1, 1;\nld.shared::cta.u32 %r3, [%r2];", &two);
    assert!(said.contains("it is the address of `tile` in the shared memory of CTA 1 of the cluster"), "{said}");
    assert!(said.contains("try: Write `.shared::cluster`"), "{said}");
}

fn grid(ctas: u32, threads: u32, more: &str) -> String {
    launch(threads).replace("\"grid\": [1, 1, 1]", &format!("\"grid\": [{ctas}, 1, 1]{more}")).replace(
        "{\"undefined\": {\"bytes\": 4096}}",
        "{\"fill\": {\"bytes\": 4096, \"value\": 0}}, \"element_bytes\": 4",
    )
}

/// Both sides have CTA and warp, or thread, and the place its element: of CTAs that run, that have ended, and of one cluster.
#[test]
fn a_race_between_ctas_names_both_and_the_element() {
    let one_at_a_time = ", \"attributes\": {\"resident_clusters\": 1}";
    let cluster = ", \"cluster\": [2, 1, 1]";
    // What a thread stores depends on its CTA.
    let all = "mov.u32 %r1, %ctaid.x;\nst.global.u32 [%rd0+256], %r1;";
    let one = "setp.eq.u32 %p1, %r0, 37;\nmov.u32 %r1, %ctaid.x;\n@%p1 st.global.u32 [%rd0+256], %r1;";
    let half = "setp.lt.u32 %p1, %r0, 16;\nmov.u32 %r1, %ctaid.x;\nmul.wide.u32 %rd4, %r0, 4;\nadd.u64 %rd5, %rd0, %rd4;\n@%p1 st.global.u32 [%rd5+256], %r1;";
    let cases = [
        (
            all,
            1,
            "",
            "warp 0 of CTA (0, 0, 0) writes `out` at byte 256 (element 64), warp 0 of CTA (1, 0, 0) writes it",
        ),
        (
            all,
            1,
            one_at_a_time,
            "warp 0 of CTA (0, 0, 0) writes `out` at byte 256 (element 64), warp 0 of CTA (1, 0, 0) writes it",
        ),
        (
            all,
            1,
            cluster,
            "warp 0 of CTA (0, 0, 0) writes `out` at byte 256 (element 64), warp 0 of CTA (1, 0, 0) writes it",
        ),
        (
            one,
            64,
            "",
            "thread (37, 0, 0) of CTA (0, 0, 0) writes `out` at byte 256 (element 64), thread (37, 0, 0) of CTA (1, 0, 0)",
        ),
        (
            one,
            64,
            one_at_a_time,
            "thread (37, 0, 0) of CTA (0, 0, 0) writes `out` at byte 256 (element 64), thread (37, 0, 0) of CTA (1, 0, 0)",
        ),
        (
            half,
            32,
            one_at_a_time,
            "warp 0 (lanes 0 to 15) of CTA (0, 0, 0) writes `out` at byte 256 (element 64), warp 0 (lanes 0 to 15) of CTA (1, 0, 0)",
        ),
    ];
    for (body, threads, more, says) in cases {
        let said = said(body, &grid(2, threads, more));
        assert!(said.contains("finding[race-global]") && said.contains(says), "{body} {more}\n{said}");
    }
}

/// Who has ended long ago is still named: the third CTA reads what the first wrote, with another warp.
#[test]
fn a_race_with_a_cta_of_the_past_has_its_warp() {
    let body = "mov.u32 %r1, %ctaid.x;\nsetp.ge.u32 %p1, %r0, 32;\nsetp.eq.and.u32 %p2, %r1, 0, %p1;\nsetp.eq.and.u32 %p3, %r1, 2, %p0;\n\
                @%p2 st.global.u32 [%rd0], %r0;\n@%p3 ld.global.u32 %r4, [%rd0];";
    let said = said(body, &grid(3, 64, ", \"attributes\": {\"resident_clusters\": 1}"));
    assert!(
        said.contains(
            "warp 1 of CTA (0, 0, 0) writes `out` at byte 0 (element 0), thread (0, 0, 0) of CTA (2, 0, 0) reads it"
        ),
        "{said}"
    );
}
