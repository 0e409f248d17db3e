//! What a newcomer gets wrong in a kernel that was right: each is told once, at the statement that is to be changed, with advice that mends it.

use super::case::{Base, edited, first, run, says, told};
use super::common;
use Base::{OneTile, Pair, Ring, Small};
use emulator::Diagnostic;

/// Adversarial schedules on which each mistake is told as well.
const SEEDS: u64 = 3;

/// What is found on the default schedule is one thing: its code, the statement that it points at, and what it says.
pub fn one(base: Base, edits: &[(&str, &str)], code: &str, at: &str, says: &[&str]) {
    let report = run(base, edits, |_| {}, 400_000);
    let text = told(&report.findings);
    assert_eq!(report.findings.iter().map(|d| d.code).collect::<Vec<_>>(), [code], "{text}");
    let place = report.findings[0].labels.first().map_or("", |label| &label.place.text);
    assert!(place.contains(at), "told at `{place}`:\n{text}");
    says.iter().for_each(|part| assert!(text.contains(part), "`{part}` is not in\n{text}"));
    // Whoever comes first, it is told, and what it leads to never stands alone.
    let (program, launch) = (common::load(&edited(&base.text(), edits)), base.launch());
    for seed in 0..SEEDS {
        let report = common::run(&program, &launch, Some(seed), 400_000);
        let text = super::case::told(&report.findings);
        let here = |d: &Diagnostic| d.labels.iter().any(|label| label.place.text.contains(at));
        assert!(report.findings.iter().any(|d| d.code == code && here(d)), "seed {seed}:\n{text}");
    }
    // What a finding says is not noted once more.
    let again = report.notes.iter().find(|note| note.code == "wait-result-unread");
    assert!(again.is_none(), "{text}\nand the note {again:?}");
}

#[test]
fn the_branch_back_of_a_wait_is_missing() {
    let unread = |mark, wait| {
        let goes_on = "may not have passed: nothing reads what it says";
        one(
            Ring,
            &[(mark, "")],
            "wait-result-unread",
            wait,
            &[goes_on, "branch back to it while the predicate is false"],
        );
    };
    unread("@loop_empty", "[%r15+16], %r12");
    unread("@loop_full", "[%r15], %r12");
    unread("@loop_acc_empty", "[%r22+48], %r21");
    unread("@loop_acc_full", "[%r22+32], %r21");
}

/// Who hears by a barrier of a warp that has not waited reads too early as well: the wait is the cause of both.
#[test]
fn one_warp_asks_for_all_and_nothing_reads_the_answer() {
    let edits = [("WAIT:\n", "    @%p0 bra ASKED;\nWAIT:\n"), ("    @!%p5 bra WAIT;\n", "ASKED:\n    bar.sync 0;\n")];
    one(OneTile, &edits, "wait-result-unread", "[mma_done], 0", &["Repeat the wait for `mma_done`"]);
}

#[test]
fn a_wait_for_what_its_own_thread_tells() {
    let wait = "    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r15+16], %r12;";
    let parts = ["for which no statement waits", "let it name that mbarrier"];
    one(Ring, &[("@wait_full", wait)], "hang", "[%r15+16], %r12", &parts);
}

#[test]
fn the_branch_back_of_a_wait_is_always_taken() {
    let goes_round = "goes round for ever: nothing reads what its wait for";
    let help = "Let the branch back depend on the predicate of the wait";
    one(Ring, &[("@loop_empty", "    bra LOAD_WAIT;")], "hang", "[%r15+16], %r12", &[goes_round, help]);
    one(OneTile, &[("    @!%p5 bra WAIT;", "    bra WAIT;")], "hang", "[mma_done]", &[goes_round, "`mma_done`", help]);
}

/// The root is the mbarrier at which nothing arrives, not the one that gets the arrival.
#[test]
fn a_commit_to_the_mbarrier_of_another_role() {
    let commit =
        |to: &str| format!("    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{to}];");
    let never = "nothing ever arrives at it";
    one(Ring, &[("@commit_acc", &commit("%r22+48"))], "hang", "[%r22+32], %r21", &[never, "this commit tells"]);
    let parts = [
        "passes its wait for",
        "too early and arrives a second time",
        "Let this commit arrive at",
        "no statement arrives at it",
    ];
    one(Ring, &[("@commit_acc", &commit("%r15+16"))], "mbarrier-overflow", "[%r15+16]", &parts);
}

#[test]
fn readers_arrive_at_the_mbarrier_that_they_wait_for() {
    let arrive = "    mbarrier.arrive.shared::cta.b64 _, [%r22+32];";
    let parts = ["nothing ever arrives at it", "this arrives at", "Let the arrival be at it"];
    one(Ring, &[("@arrive_acc_empty", arrive)], "hang", "[%r22+48], %r21", &parts);
}

#[test]
fn a_commit_of_a_stage_to_the_mbarrier_of_the_product() {
    let commit = "    tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3+32];";
    one(
        Ring,
        &[("@commit_empty", commit)],
        "hang",
        "[%r15+16], %r12",
        &["nothing ever arrives at it", "Let the commit arrive at it"],
    );
}

#[test]
fn the_branch_back_of_a_wait_is_taken_when_it_passes() {
    let parts = ["passes, and it goes back all the same", "while the predicate of the wait is false"];
    one(Ring, &[("@loop_empty", "    @%p4 bra LOAD_WAIT;")], "hang", "[%r15+16], %r12", &parts);
}

/// A loop around `test_wait` waits as one around `try_wait` does: what says no is the mbarrier, and the branch is right.
#[test]
fn a_loop_around_a_test_waits_for_what_never_arrives() {
    let test = "    mbarrier.test_wait.parity.shared::cta.b64 %p4, [%r22+48], %r21;";
    let edits = [("@wait_acc_empty", test), ("@arrive_acc_empty", "")];
    one(
        Ring,
        &edits,
        "hang",
        "[%r22+48], %r21",
        &["nothing ever arrives at it", "No statement arrives at this mbarrier"],
    );
}

#[test]
fn bytes_are_announced_and_nobody_arrives() {
    let announce = "    mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%r15], 24576;";
    one(
        Ring,
        &[("@expect", announce)],
        "hang",
        "[%r15], %r12",
        &["this announces bytes, and does not arrive", "mbarrier.arrive.expect_tx"],
    );
}

/// Mbarriers without names, of which the first two are told by a thread and the third by a commit.
const THREE_WAITS: &str = "
    .shared .align 8 .b8 bars[32];
    mov.u32 %r3, bars;
    @!%p0 bra READY;
    mbarrier.init.shared::cta.b64 [%r3], 1;
    mbarrier.init.shared::cta.b64 [%r3+8], 1;
    mbarrier.init.shared::cta.b64 [%r3+16], 1;
READY:
    bar.sync 0;
    setp.ne.u32 %p3, %r1, 0;
    @%p3 bra WAITS;
    @!%p0 ret;
    mbarrier.arrive.shared::cta.b64 _, [%r3];
    mbarrier.arrive.shared::cta.b64 _, [%r3+8];
    ret;
WAITS:
    mov.u32 %r4, 0;
NEXT:
    shl.b32 %r5, %r4, 3;
    add.u32 %r5, %r5, %r3;
WAIT:
    mbarrier.try_wait.parity.shared::cta.b64 %p4, [%r5], 0; // @wait
    @!%p4 bra WAIT;
    add.u32 %r4, %r4, 1; // @next
    setp.lt.u32 %p5, %r4, 2;
    @%p5 bra NEXT; // @more
    @%p5 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3+16];
";

#[test]
fn a_stage_runs_past_the_end_of_its_ring() {
    let parts = ["by the same statement it waited for", "Let the stage begin at 0 again"];
    one(Small(1, 64, THREE_WAITS), &[("%r4, 2;", "%r4, 3;")], "hang", "[%r5], 0", &parts);
}

/// The mbarrier goes on with the stage, and the address that is loaded to does not.
#[test]
fn b_is_loaded_to_one_stage_always() {
    let parts = ["in turn, and writes the same bytes for both", "Let the address that it writes go on with the stage"];
    one(Ring, &[("@tile_b", "    add.u32 %r17, %r2, 16384;")], "race-shared", "[%r17], [%rd1", &parts);
}

/// The copies bring the same depths in every round: the product of them is added as often.
#[test]
fn the_coordinate_along_k_does_not_go_on() {
    let report = run(Ring, &[("@column", "    mov.u32 %r18, 0;")], |_| {}, 400_000);
    let note = report.notes.iter().find(|note| note.code == "product-added-twice");
    let note = note.unwrap_or_else(|| panic!("{}", told(&report.notes)));
    says(note, &["loaded once more: A from column 0", "this copy brings the same part of B again", "go on along K"]);
}

/// M of a pair: with 64 rows in each CTA, half of the columns lie in the other lanes.
#[test]
fn m_of_a_pair_is_that_of_one_cta() {
    let found = first(Pair, &[("0x10400010", "0x08400010")], |_| {});
    assert_eq!(found.code, "instruction-descriptor");
    says(&found, &["M = 128", "of its 256 columns it writes half", "its M is 128"]);
}

/// More threads execute a barrier than it counts: the last ones are too few for another phase.
#[test]
fn a_barrier_counts_fewer_than_come() {
    let edits = [(
        "    fence.proxy.async.shared::cta;\n    bar.sync 0;",
        "    fence.proxy.async.shared::cta;\n    bar.sync 5, 96;",
    )];
    let found = first(OneTile, &edits, |_| {});
    assert_eq!((found.code, found.labels[0].place.text.as_str()), ("hang", "bar.sync 5, 96"));
    says(&found, &["128 threads execute it: let it count them all"]);
}

#[test]
fn no_lane_is_elected_to_load() {
    let parts = ["32 lanes of warp 4 arrive together", "Let one elected lane execute it"];
    let all = "    bra.uni EVERY;\nEVERY:\n    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 24576;";
    let edits = [("@one_producer", ""), ("@expect", all)];
    one(Ring, &edits, "mbarrier-overflow", "expect_tx", &parts);
}

/// However many mbarriers are used too early: one barrier is missing.
#[test]
fn no_barrier_follows_the_initialisations() {
    let edits = [(
        "    barrier.cluster.arrive.aligned;\n    barrier.cluster.wait.aligned;\n    @!%p0 bra ALLOCATED;",
        "    @!%p0 bra ALLOCATED;",
    )];
    let report = run(Pair, &edits, |_| {}, 400_000);
    let unordered = report.findings.iter().filter(|d| d.code == "mbarrier-init-unordered");
    let said = unordered.map(|d| d.help.as_str()).collect::<Vec<_>>();
    assert!(matches!(said[..], [help] if help.contains("a barrier of the cluster")), "{}", told(&report.findings));
}

#[test]
fn fewer_bytes_are_announced_than_come() {
    let half = "    mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r15], 12288;";
    one(Ring, &[("@expect", half)], "hang", "12288", &["Announce 24576 bytes"]);
    let none = "    mbarrier.arrive.shared::cta.b64 _, [%r15];";
    one(Ring, &[("@expect", none)], "phase-completed-early", "mbarrier.arrive", &["from phase 0 on", "24576"]);
}

/// A reduction reads its destination, which nobody has set.
#[test]
fn tiles_are_added_to_what_was_never_written() {
    let edits = [(
        "@store",
        "    cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%rd4, {%r46, %r45}], [%r44];",
    )];
    let parts = [
        "a reduction updates `D` at row 0, column 0, which nothing has written",
        "Set the destination to its first values",
    ];
    one(Ring, &edits, "undefined-value-stored", "cp.reduce", &parts);
}

/// The other CTA of a pair ends at once.
#[test]
fn a_cta_of_a_cluster_has_ended() {
    let ends = "    mov.u32 %r2, %cluster_ctarank;\n    setp.ne.u32 %p15, %r2, 0;\n    @%p15 ret;";
    let found = first(Pair, &[("    mov.u32 %r2, %cluster_ctarank;", ends)], |_| {});
    assert_eq!(found.code, "hang");
    says(&found, &["CTA 1 of the cluster has ended: look first whether it should still"]);
}

/// A flag that nobody sets: what is found there is said.
#[test]
fn a_flag_is_never_set() {
    const BODY: &str = "\
WAIT:
ld.acquire.gpu.global.u32 %r3, [%rd0+4];
setp.ne.u32 %p1, %r3, 3;
@%p1 bra WAIT;";
    let found = first(Base::Grid(2, 32, BODY), &[], |_| {});
    assert_eq!(found.code, "hang");
    says(&found, &["it finds 0 at `out` at byte 4"]);
}

/// Who reads a stage arrives where its bytes are announced, and nobody says that the stage is free.
#[test]
fn readers_arrive_where_bytes_are_announced() {
    const BODY: &str = "\
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], 1;
mbarrier.init.shared::cta.b64 [bar_b], 1;
fence.mbarrier_init.release.cluster;
MADE:
bar.sync 0;
mov.u32 %r5, bar_a;
mov.u32 %r6, bar_b;
mov.u32 %r4, 0;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra READ;
@!%p0 bra END;
LOAD:
xor.b32 %r7, %r4, 1;
FREE:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r6], %r7; // @free
@!%p2 bra FREE;
mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r5], 256;
cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], 256, [%r5];
xor.b32 %r4, %r4, 1;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p3, %r8, 4;
@%p3 bra LOAD;
bra END;
READ:
mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r5], %r4;
@!%p2 bra READ;
ld.shared.u32 %r9, [tile];
fence.proxy.async.shared::cta;
bar.warp.sync -1;
and.b32 %r10, %r0, 31;
setp.eq.u32 %p4, %r10, 0;
@%p4 mbarrier.arrive.shared::cta.b64 _, [%r6]; // @read
xor.b32 %r4, %r4, 1;
add.u32 %r8, %r8, 1;
setp.lt.u32 %p3, %r8, 4;
@%p3 bra READ;
END:";
    const FIRST: (&str, &str) = ("mov.u32 %r4, 0;", "mov.u32 %r4, 0;\nmov.u32 %r8, 0;");
    let base = Base::Small(1, 64, BODY);
    let right = super::case::run(base, &[FIRST], |_| {}, 400_000);
    assert!(right.findings.is_empty(), "{}", super::case::told(&right.findings));
    let found = first(base, &[FIRST, ("@read", "@%p4 mbarrier.arrive.shared::cta.b64 _, [%r5];")], |_| {});
    assert_eq!(found.code, "hang", "{}", super::case::told(std::slice::from_ref(&found)));
    says(&found, &["nothing ever arrives at it", "this arrives at `bar_a`", "Let the arrival be at it"]);
}

/// A flag that is set beside the place that is read; who writes anywhere in the buffer is named behind that.
#[test]
fn a_flag_is_set_beside_its_place() {
    const BODY: &str = "\
mov.u32 %r4, %ctaid.x;
setp.eq.u32 %p2, %r4, 0;
@%p2 bra WAIT;
@%p0 st.release.gpu.global.u32 [%rd0+8], 3;
bra END;
WAIT:
ld.acquire.gpu.global.u32 %r3, [%rd0+4];
setp.ne.u32 %p1, %r3, 3;
@%p1 bra WAIT;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
st.global.u32 [%rd3+64], %r3;
END:";
    let found = first(Base::Grid(2, 32, BODY), &[], |_| {});
    assert_eq!(found.code, "hang");
    says(&found, &["it finds 0 at `out` at byte 4", "this accesses `out` at byte 8, and not what is read there"]);
}

/// A warp that ends before it has stored its part of a tile.
#[test]
fn a_warp_ends_before_it_stores() {
    let edits =
        [("    mov.u32 %r10, 0;\nCOPY:", "    setp.eq.u32 %p7, %r1, 3;\n    @%p7 exit;\n    mov.u32 %r10, 0;\nCOPY:")];
    let found = first(OneTile, &edits, |_| {});
    assert_eq!(found.code, "undefined-value-stored");
    says(
        &found,
        &["12288 of its 16384 bytes are written so far", "look which threads store it, whether one has ended before"],
    );
}

/// The parity of a wait for free stages changes with each of them.
#[test]
fn a_parity_changes_before_the_stage_begins_again() {
    let found = first(Ring, &[("@flip_producer", "    xor.b32 %r12, %r12, 1;")], |_| {});
    assert_eq!(found.code, "hang");
    says(&found, &["Its parity has changed too early", "where the stage begins at 0 again"]);
}

/// A matrix that is stored from registers without a value is looked at by who reads it.
#[test]
fn stmatrix_moves_what_has_no_value() {
    const BODY: &str = "\
mov.u32 %r4, tile;
shl.b32 %r5, %r0, 4;
add.u32 %r4, %r4, %r5;
stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r4], {%r20, %r21, %r22, %r23};";
    let report = run(Small(1, 32, BODY), &[], |_| {}, 10_000);
    assert!(report.completed && report.findings.is_empty(), "{}", told(&report.findings));
    let found = first(
        Small(1, 32, BODY),
        &[(
            "{%r20, %r21, %r22, %r23};",
            "{%r20, %r21, %r22, %r23};\nld.shared.u32 %r6, [tile];\nst.global.u32 [%rd0], %r6;",
        )],
        |_| {},
    );
    assert_eq!(found.code, "undefined-value-stored");
}

/// A thread arrives where its commit should: its MMAs are issued then, and not complete.
#[test]
fn the_issuer_arrives_in_place_of_its_commit() {
    let edits = [("@commit_empty", "    mbarrier.arrive.shared::cta.b64 _, [%r15+16];")];
    let found = first(Ring, &edits, |_| {});
    assert_eq!(found.code, "operand-overwritten");
    says(&found, &["its MMAs are issued then, not complete", "execute tcgen05.commit to", "in place of this arrival"]);
}

/// A rank that the cluster has not.
#[test]
fn a_store_to_a_cta_that_is_not_there() {
    const BODY: &str = "\
mov.u32 %r3, tile;
mapa.shared::cluster.u32 %r4, %r3, 2;
st.shared::cluster.u32 [%r4], %r0;";
    let found = first(Small(2, 32, BODY), &[], |_| {});
    assert_eq!(found.code, "out-of-bounds");
    says(&found, &["it leads to CTA 2 of a cluster of 2", "below %cluster_nctarank"]);
}
