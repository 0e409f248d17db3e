//! Still more of what judges tried: kernels of an unusual but right style, and the same with one mistake.

use super::case::{Base, Case, Expect, Result, case, first, says};
use super::tried_more_kernels::*;
use Base::{Grid, Small};
use Expect::{Finds, Notes};

type Edits = &'static [(&'static str, &'static str)];
type Places = &'static [(&'static str, &'static str)];

pub fn cases() -> Vec<Case> {
    let own = ("of our own", "not run on a GPU");
    let finds = |row, what, base, edits: Edits, at: Places| case(row, what, own, base, edits, Finds(at));
    let fill = Small(1, 64, FILL);
    let tensor = Small(1, 128, A_IN_TENSOR_MEMORY);
    let two = Small(1, 160, TWO_ACCUMULATORS);
    let copy = Small(2, 64, TO_ANOTHER_CTA);
    let turn = Grid(4, 64, TURNSTILE);
    let pushed = Small(2, 32, PUSHED);
    vec![
        finds(
            "m1",
            "nobody waits for st.bulk",
            fill,
            &[("@b", "")],
            &[("race-shared", "@ld"), ("race-shared", "@fill")],
        ),
        finds(
            "m2",
            "st.bulk of a size that is no multiple of 8",
            fill,
            &[("mov.u64 %rd3, 256;", "mov.u64 %rd3, 252;")],
            &[("bulk-size", "@fill")],
        ),
        finds(
            "m3",
            "st.bulk beyond the end of shared memory",
            fill,
            &[("mov.u64 %rd3, 256;", "mov.u64 %rd3, 65536;")],
            &[("out-of-bounds", "@fill")],
        ),
        finds(
            "m4",
            "a bulk store reads what st.bulk wrote, and no proxy fence lies between",
            fill,
            &[(
                "@b",
                "bar.sync 0;\n@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0+1024], [tile], 256; // @copy\n@%p0 cp.async.bulk.commit_group;\n@%p0 cp.async.bulk.wait_group 0;",
            )],
            &[("missing-proxy-fence", "@copy")],
        ),
        finds(
            "m5",
            "st.bulk over a live mbarrier",
            fill,
            &[(
                "@fill",
                "@%p0 mbarrier.init.shared::cta.b64 [%r3+8], 1;\n@%p0 st.bulk.weak.shared::cta [%r3], %rd3, 0;",
            )],
            &[("mbarrier-overwritten", "@fill")],
        ),
        case(
            "m6",
            "the CTA whose shared memory a copy to another CTA reads ends without a word from there",
            own,
            copy,
            &[("@xarr", ""), ("@xwait", "")],
            Notes("remote-use-outlives-cta", "@cp", Result::Right),
        ),
        finds(
            "m7",
            "the source of a copy to another CTA is not fenced",
            copy,
            &[("@pf", "")],
            &[("missing-proxy-fence", "@cp")],
        ),
        finds(
            "m8",
            "the warps that read the products meet all warps of the CTA, where the MMA warp waits for them",
            two,
            &[("@release", "{}\nbar.sync 0; // @sync")],
            &[("hang", "@sync")],
        ),
        finds(
            "m9",
            "the same at a barrier of another number",
            two,
            &[("@release", "{}\nbar.sync 1; // @sync")],
            &[("hang", "@sync")],
        ),
        finds(
            "m10",
            "A lies in columns that nothing has written",
            tensor,
            &[("@acol", "add.u32 %r22, %r6, 16;")],
            &[("undefined-value-stored", "@mma")],
        ),
        finds(
            "m11",
            "half of A is never written to shared memory",
            two,
            &[("@second_half", "")],
            &[("undefined-value-stored", "@mma"), ("undefined-value-stored", "@load")],
        ),
        finds(
            "m12",
            "no wait for tcgen05.st",
            tensor,
            &[("@wst", "")],
            &[("race-tensor", "@mma"), ("missing-wait-st", "@st"), ("race-tensor", "@st")],
        ),
        finds(
            "m13",
            "the lock is passed on at the scope of the cluster",
            turn,
            &[("@next", "red.release.cluster.global.add.u32 [%rd0+4096], 1;")],
            &[("race-global", "@ld"), ("race-global", "@st"), ("race-global", "@poll"), ("race-global", "@next")],
        ),
        finds(
            "m14",
            "threads go on before thread 0 has its turn",
            turn,
            &[("@b1", "")],
            &[("race-global", "@ld"), ("race-global", "@st")],
        ),
        finds(
            "m15",
            "twice the bytes that come are announced",
            pushed,
            &[("@expect", "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar_a], 256;")],
            &[("hang", "@expect")],
        ),
        finds(
            "m16",
            "an arrival that must not complete the phase does",
            Small(1, 64, NOT_COMPLETED),
            &[("@no", "mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %rd3, [bar_a], 3;")],
            &[("*", "@no"), ("*", "@last")],
        ),
        finds(
            "m17",
            "the second wait takes the state of the first arrival",
            Small(1, 64, TOKENS),
            &[("@wait2", "mbarrier.try_wait.shared::cta.b64 %p2, [bar_a], %rd3;")],
            &[("mbarrier-parity", "@wait2"), ("hang", "@wait2"), ("wrong-phase", "@wait2")],
        ),
    ]
}

/// Who waits at a CTA barrier for one who waits for his arrival behind it is named, not the commit that has nothing to do with it.
#[test]
fn a_barrier_of_the_whole_cta_in_one_role_is_named() {
    let found = first(Small(1, 160, TWO_ACCUMULATORS), &[("@release", "{}\nbar.sync 0; // @sync")], |_| {});
    says(&found, &["CTA barrier 0 waits for 160 threads and gets 128", "waits for `response`"]);
}

/// A sum that a register adds to is undefined for the reason of what is added.
#[test]
fn an_undefined_sum_is_traced_to_the_mma() {
    let edit = ("@second_half", "");
    says(
        &first(Small(1, 160, TWO_ACCUMULATORS), &[edit], |_| {}),
        &["this MMA reads `tile` at byte ", ", which nothing has written: ", " bytes are written so far"],
    );
    let edit = ("@acol", "add.u32 %r22, %r6, 16;");
    says(
        &first(Small(1, 128, A_IN_TENSOR_MEMORY), &[edit], |_| {}),
        &["this MMA reads A from tensor memory column 16"],
    );
}

/// What `st.bulk` fills is watched whatever its size is, that of one block of the shadow (1024 bytes) among others.
#[test]
fn a_fill_of_each_size_is_watched() {
    for bytes in [16, 512, 1008, 1016, 1024, 1032, 2048, 4096] {
        let last = bytes - 8;
        let body = format!(
            "@%p0 st.bulk.weak.shared::cta [tile], {bytes}, 0; // @fill\nbar.sync 0; // @met\nld.shared.b64 %rd3, [tile+{last}]; // @ld\n\
             @%p0 st.global.b64 [%rd0], %rd3;"
        );
        let base = Base::Small(1, 64, Box::leak(body.into_boxed_str()));
        let report = super::case::run(base, &[], |_| {}, 400_000);
        assert!(report.findings.is_empty(), "{bytes}: {}", super::case::told(&report.findings));
        let found = super::case::first(base, &[("@met", "")], |_| {});
        assert_eq!(found.code, "race-shared", "{bytes}: {}", super::case::told(std::slice::from_ref(&found)));
        super::case::says(&found, &["st.bulk.weak", "warp 0 writes it here", "warp 1 reads it here"]);
    }
}
