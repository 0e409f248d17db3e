//! A wait stands between the two accesses of a race, and lacks something: the finding shows it, and says what.

use super::case::{Base, first, run, told};
use Base::{Grid, Small};
use emulator::Diagnostic;

/// The finding has this code, labels with these texts at lines with those, and this in its advice.
#[track_caller]
fn says(found: &Diagnostic, code: &str, labels: &[(&str, &str)], advice: &str) {
    let all = told(std::slice::from_ref(found));
    assert_eq!(found.code, code, "{all}");
    for (line, text) in labels {
        let known = |label: &emulator::Label| label.place.text.contains(line) && label.text.contains(text);
        assert!(found.labels.iter().any(known), "`{text}` is not said of `{line}`:\n{all}");
    }
    assert!(found.help.contains(advice), "`{advice}` is not advised:\n{all}");
}

/// Edits, or lines and what is said of them.
type Pairs<'a> = &'a [(&'a str, &'a str)];

/// Nothing is found.
#[track_caller]
fn right(base: Base, edits: &[(&str, &str)]) {
    let report = run(base, edits, |_| {}, 400_000);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
}

/// Thread 32 stores, late; thread 0 asks once whether it has, and waits only if not.
const PEEK: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
bar.sync 0;
setp.eq.u32 %p1, %r0, 32;
@%p0 bra READ;
@!%p1 bra END;
nanosleep.u32 1000;
st.shared.u32 [tile], %r0; // @store
mbarrier.arrive.shared::cta.b64 _, [bar_a];
bra.uni END;
READ:
mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @peek
@%p2 bra SEEN; // @seen
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 0; // @wait
@!%p3 bra WAIT; // @again
SEEN:
ld.shared.u32 %r5, [tile]; // @ld
st.global.u32 [%rd0], %r5;
END:";

const GOES_ON: &str = "the phase of `bar_a` is not complete, and it goes on";

/// Its answer no is taken for yes; the reader comes first.
#[test]
fn a_peek_taken_the_wrong_way_round() {
    right(Small(1, 64, PEEK), &[]);
    let found = first(Small(1, 64, PEEK), &[("@seen", "@!%p2 bra SEEN;")], |_| {});
    says(&found, "race-shared", &[("test_wait", GOES_ON)], "Repeat the wait for `bar_a`");
}

/// The second wait is not repeated, though its answer is read.
#[test]
fn a_wait_behind_a_peek_that_asks_once() {
    let edits =
        [("@wait", "mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar_a], 0;"), ("@again", "@!%p3 bra SEEN;")];
    let found = first(Small(1, 64, PEEK), &edits, |_| {});
    says(&found, "race-shared", &[("%p3, [bar_a]", GOES_ON)], "Repeat the wait for `bar_a`");
}

/// It asks ahead, for the phase behind the one that it has waited for: that it was told no has nothing to do with the race.
#[test]
fn a_peek_at_the_next_phase() {
    let edits = [
        (
            "mbarrier.arrive.shared::cta.b64 _, [bar_a];",
            "{}\nmov.u32 %r8, 0;\nLATE:\nadd.u32 %r8, %r8, 1;\nsetp.lt.u32 %p4, %r8, 9000;\n@%p4 bra LATE;\nst.shared.u32 [tile], %r1;\n{}",
        ),
        ("@peek", ""),
        ("@seen", ""),
        (
            "@ld",
            "mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar_a], 1;\n{}\n@%p2 bra NEXT;\n\
             REST:\nmbarrier.try_wait.parity.shared::cta.b64 %p3, [bar_a], 1;\n@!%p3 bra REST;\nNEXT:",
        ),
    ];
    let found = first(Small(1, 64, PEEK), &edits, |_| {});
    let all = told(std::slice::from_ref(&found));
    assert_eq!(found.code, "race-shared", "{all}");
    assert!(found.labels.iter().all(|label| !label.text.contains("goes on")), "{all}");
}

/// A thread stores from two buffers in turn.
const STAGED: &str = "\
@!%p0 bra END;
mov.u32 %r3, 0;
LOOP:
and.b32 %r4, %r3, 1;
shl.b32 %r4, %r4, 4;
mov.u32 %r5, tile;
add.u32 %r5, %r5, %r4;
cp.async.bulk.wait_group.read 1; // @wait
st.shared.v4.u32 [%r5], {%r3, %r3, %r3, %r3}; // @st
fence.proxy.async.shared::cta;
mul.wide.u32 %rd3, %r3, 16;
add.s64 %rd3, %rd3, %rd0;
cp.async.bulk.global.shared::cta.bulk_group [%rd3], [%r5], 16; // @store
cp.async.bulk.commit_group; // @commit
add.u32 %r3, %r3, 1;
setp.lt.u32 %p1, %r3, 6;
@%p1 bra LOOP;
cp.async.bulk.wait_group 0;
END:";

#[test]
fn a_wait_that_leaves_the_group() {
    right(Small(1, 32, STAGED), &[]);
    let found = first(Small(1, 32, STAGED), &[("@wait", "cp.async.bulk.wait_group.read 2;")], |_| {});
    let left = "leaves the 2 newest groups of warp 0 unfinished, and the copy is in number 2 of them";
    says(&found, "race-shared", &[("wait_group.read 2", left)], "cp.async.bulk.wait_group.read 1");
}

#[test]
fn a_commit_behind_the_wait() {
    let behind = [("@wait", ""), ("@commit", "cp.async.bulk.wait_group.read 1;\n{}")];
    let found = first(Small(1, 32, STAGED), &behind, |_| {});
    let left = "the copy is in no group yet where this waits";
    says(&found, "race-shared", &[("wait_group.read", left)], "commit_group in front of this wait");
    let never = [("@commit", "")];
    let found = first(Small(1, 32, STAGED), &never, |_| {});
    says(
        &found,
        "race-shared",
        &[("wait_group.read", "in no group yet")],
        "cp.async.bulk.commit_group behind the copy",
    );
    right(Small(1, 32, STAGED), &[("@wait", ""), ("@commit", "{}\ncp.async.bulk.wait_group.read 1;")]);
}

/// What the copy writes is read by its thread.
#[test]
fn a_wait_for_the_reading_only() {
    let read = "cp.async.bulk.wait_group.read 0;\nld.global.u32 %r6, [%rd3];\nadd.u32 %r7, %r7, %r6;";
    let found = first(Small(1, 32, STAGED), &[("cp.async.bulk.wait_group 0;", read)], |_| {});
    says(&found, "race-global", &[("wait_group.read 0", "only until the copy has read its source")], "without .read");
}

/// Threads copy, and read what others have copied.
const COPIED: &str = "\
shl.b32 %r3, %r0, 2;
mov.u32 %r4, tile;
add.u32 %r4, %r4, %r3;
cvt.u64.u32 %rd3, %r3;
add.s64 %rd4, %rd3, %rd1;
cp.async.ca.shared.global [%r4], [%rd4], 4; // @copy
cp.async.commit_group; // @commit
cp.async.wait_group 0; // @wait
bar.sync 0;
ld.shared.u32 %r5, [%r4];
add.s64 %rd5, %rd3, %rd0;
st.global.u32 [%rd5], %r5;
END:";

#[test]
fn copies_of_threads_committed_behind_the_wait() {
    right(Small(1, 32, COPIED), &[]);
    let edits = [("@commit", ""), ("@wait", "{}\ncp.async.commit_group;")];
    let found = first(Small(1, 32, COPIED), &edits, |_| {});
    says(&found, "race-shared", &[("wait_group 0", "in no group yet")], "cp.async.commit_group behind the copy");
}

/// CTA 1 stores, and counts; CTA 0 waits until it has, and reads.
const COUNTED: &str = "\
mov.u32 %r2, %ctaid.x;
setp.eq.u32 %p1, %r2, 0;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
@%p1 bra LOOK;
st.global.u32 [%rd3], 7; // @st
bar.sync 0;
@%p0 red.release.gpu.global.add.u32 [%rd0+4096], 1; // @count
bra END;
LOOK:
@!%p0 bra SEEN;
AGAIN:
ld.acquire.gpu.global.u32 %r3, [%rd0+4096]; // @poll
setp.ne.u32 %p2, %r3, 1;
@%p2 bra AGAIN;
SEEN:
bar.sync 0;
ld.global.u32 %r5, [%rd3]; // @ld
st.global.u32 [%rd3+2048], %r5;
END:";

const RELAXED: &str = "@%p0 red.relaxed.gpu.global.add.u32 [%rd0+4096], 1;";

#[test]
fn counters_that_order_nothing() {
    right(Grid(2, 64, COUNTED), &[]);
    let added = "atom.relaxed.gpu.global.add.u32 %r3, [%rd0+4096], 0;";
    let lacks: [(Pairs, Pairs); 3] = [
        (&[("@count", RELAXED)], &[("red.relaxed", "without .release,")]),
        (&[("@poll", added)], &[("atom.relaxed", "without .acquire,")]),
        (
            &[("@count", RELAXED), ("@poll", added)],
            &[("red.relaxed", "without .release,"), ("atom.relaxed", "without .acquire,")],
        ),
    ];
    for (edits, labels) in lacks {
        let found = first(Grid(2, 64, COUNTED), edits, |_| {});
        says(&found, "race-global", labels, "red.release.gpu");
        assert_eq!(found.labels.len(), 2 + labels.len(), "{}", told(&[found]));
    }
}

/// Another counter behind the flag, of which nothing is to be learnt, is not named.
#[test]
fn a_counter_beside_the_flag() {
    let edits = [
        ("@count", "{}\n@%p0 atom.relaxed.gpu.global.inc.u32 %r9, [%rd0+4160], 7;"),
        ("@poll", "ld.relaxed.gpu.global.u32 %r3, [%rd0+4096];"),
    ];
    let found = first(Grid(2, 64, COUNTED), &edits, |_| {});
    says(&found, "race-global", &[("ld.relaxed", "without .acquire,")], "ld.acquire.gpu");
    assert_eq!(found.labels.len(), 3, "{}", told(&[found]));
}

/// The last CTA to count adds up: its atomic operation tells, and hears.
#[test]
fn a_counter_that_tells_and_hears() {
    let last = "\
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd3, %r0, 4;
add.s64 %rd3, %rd3, %rd0;
mul.wide.u32 %rd4, %r2, 128;
add.s64 %rd4, %rd4, %rd3;
st.global.u32 [%rd4], 7;
bar.warp.sync -1;
@%p0 atom.relaxed.gpu.global.add.u32 %r4, [%rd0+4096], 1; // @count
shfl.sync.idx.b32 %r4, %r4, 0, 31, -1;
setp.ne.u32 %p1, %r4, 1;
@%p1 bra END;
ld.global.u32 %r5, [%rd3];
ld.global.u32 %r6, [%rd3+128];
add.u32 %r5, %r5, %r6;
st.global.u32 [%rd3+2048], %r5;
END:";
    let found = first(Grid(2, 32, last), &[], |_| {});
    says(&found, "race-global", &[("atom.relaxed", "without .release and .acquire")], "red.release.gpu");
}

/// The TMA engine's stores are waited for; it is the counter that tells nothing of them.
#[test]
fn a_counter_behind_a_bulk_store() {
    let store = "\
st.shared.u32 [tile], 7;
fence.proxy.async.shared::cta;
mov.u32 %r4, tile;
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r4], 16;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;";
    let edits = [("@st", store), ("@count", RELAXED), ("@ld", "ld.global.u32 %r5, [%rd0];")];
    let found = first(Grid(2, 64, COUNTED), &edits, |_| {});
    says(&found, "race-global", &[("red.relaxed", "without .release,")], "red.release.gpu");
}
