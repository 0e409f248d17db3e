//! What a reader of the emulator's rules found: findings that hid each other, and false alarms.

use super::case::{Base, run, told};
use emulator::{Deadlock, Report};

fn codes(report: &Report) -> Vec<&str> {
    report.findings.iter().map(|found| found.code).collect()
}

/// Two MMAs overwrite each other's products of operands that nobody wrote.
const OF_NOTHING_TWICE: &str = "\
shr.u32 %r1, %r0, 5;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra ALLOCATED;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 32;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
@!%p0 bra ALLOCATED;
mbarrier.init.shared::cta.b64 [bar_a], 1;
fence.mbarrier_init.release.cluster;
ALLOCATED:
tcgen05.fence::before_thread_sync;
bar.sync 0;
tcgen05.fence::after_thread_sync;
ld.shared.u32 %r3, [slot];
@!%p0 bra MULTIPLIED;
mov.u32 %r4, 0x08080010;
mov.u32 %r10, tile;
shr.u32 %r10, %r10, 4;
cvt.u64.u32 %rd5, %r10;
or.b64 %rd5, %rd5, 0x0000400800080000;
mov.u32 %r11, 0;
setp.ne.u32 %p4, %r0, 0;
M:
add.s64 %rd6, %rd5, 512;
tcgen05.mma.cta_group::1.kind::f16 [%r3], %rd5, %rd6, %r4, %p4;
add.s64 %rd5, %rd5, 256;
add.u32 %r11, %r11, 1;
setp.lt.u32 %p5, %r11, 2;
@%p5 bra M;
tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [bar_a];
MULTIPLIED:
WAIT:
mbarrier.try_wait.parity.shared::cta.b64 %p6, [bar_a], 0;
@!%p6 bra WAIT;
tcgen05.fence::after_thread_sync;
shl.b32 %r12, %r1, 21;
add.u32 %r12, %r12, %r3;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r13}, [%r12];
tcgen05.wait::ld.sync.aligned;
mul.wide.u32 %rd7, %r0, 4;
add.s64 %rd8, %rd0, %rd7;
st.global.u32 [%rd8], %r13;
tcgen05.fence::before_thread_sync;
bar.sync 0;
@%p1 bra END;
tcgen05.fence::after_thread_sync;
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;
END:";

/// Each of two findings follows from the other: one is told.
#[test]
fn two_findings_of_one_load_do_not_hide_each_other() {
    let report = run(Base::Small(1, 128, OF_NOTHING_TWICE), &[], |_| {}, 4_000_000);
    assert!(!report.findings.is_empty(), "{}", told(&report.notes));
}

/// Warp 0 changes values before and behind the one that both warps store.
const CHANGED_AROUND: &str = "\
shr.u32 %r1, %r0, 5;
mov.u32 %r2, 7;
setp.ne.u32 %p1, %r1, 0;
@%p1 bra SAME;
// warp 0: private scratch at both ends, written twice
mov.u32 %r3, 1;
mov.u32 %r4, 2;
st.shared.u32 [tile], %r3;
st.shared.u32 [tile], %r4;
st.shared.u32 [tile+8192], %r3;
st.shared.u32 [tile+8192], %r4;
SAME:
mov.u32 %r9, 0;
@!%p1 bra GO;
W:
add.u32 %r9, %r9, 1;
setp.lt.u32 %p3, %r9, 100;
@%p3 bra W;
GO:
// all warps store the same value, once
st.shared.u32 [tile+4096], %r2;
bar.sync 0;";

/// Where a warp stored two values matters for those bytes, and not for what lies between them.
#[test]
fn what_lies_between_changed_values_was_not_changed() {
    let report = run(Base::Small(1, 64, CHANGED_AROUND), &[], |_| {}, 4_000_000);
    assert_eq!(codes(&report), [""; 0], "{}", told(&report.findings));
    let report =
        run(Base::Small(1, 64, CHANGED_AROUND), &[("[tile+8192], %r4;", "[tile+4096], %r4;")], |_| {}, 4_000_000);
    assert_eq!(codes(&report), ["race-shared"], "{}", told(&report.findings));
}

/// CTA 0 allocates what its SM has and waits for CTA 1; that one tells it whatever it hears of CTA 0.
const ASKS_ONCE: &str = "\
setp.ne.u32 %p1, %r2, 0;
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
@%p0 mbarrier.init.shared::cta.b64 [bar_b], 1;
fence.mbarrier_init.release.cluster;
bar.warp.sync -1;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;
mov.u32 %r2, bar_a;
mov.u32 %r3, bar_b;
mapa.shared::cluster.u32 %r4, %r2, 1;
mapa.shared::cluster.u32 %r5, %r3, 0;
tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [slot], 512;
tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;
bar.warp.sync -1;
ld.shared.u32 %r6, [slot];
@%p1 bra SECOND;
@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r4];
WAIT:
mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p2, [bar_b], 0;
@!%p2 bra WAIT;
bra END;
SECOND:
mov.u32 %r9, 0;
PAUSE:
add.u32 %r9, %r9, 1;
setp.lt.u32 %p3, %r9, 2000;
@%p3 bra PAUSE;
ASK:
mbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 %p4, [bar_a], 0; // @ask
bar.warp.sync -1; // @again
@%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r5];
END:
tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r6, 512;
barrier.cluster.arrive.aligned;
barrier.cluster.wait.aligned;";

/// Who asks once goes on whatever it is told; who asks until it is told yes does not, and clusters that share SMs may wait for each other.
#[test]
fn who_asks_once_waits_for_nobody() {
    let many = |launch: &mut emulator::Launch| launch.grid = [400, 1, 1];
    let once = run(Base::Small(2, 32, ASKS_ONCE), &[], many, 4_000_000);
    assert_eq!((codes(&once), once.deadlock == Deadlock::Possible), (vec![], false), "{}", told(&once.findings));
    let edits = [("@again", "@!%p4 bra ASK;\nbar.warp.sync -1;")];
    let waits = run(Base::Small(2, 32, ASKS_ONCE), &edits, many, 4_000_000);
    assert!(codes(&waits).iter().any(|code| ["can-hang", "hang"].contains(code)), "{}", told(&waits.findings));
}

/// A warp arrives with 32 threads at an mbarrier that counts 16, for which nobody waits.
const COUNTS_TOO_FEW: &str = "\
mov.u32 %r9, 16;
@!%p0 bra MADE;
mbarrier.init.shared::cta.b64 [bar_a], %r9;
NEXT
MADE:
bar.sync 0;
setp.eq.u32 %p1, %r1, 0;
@%p1 mbarrier.arrive.shared::cta.b64 _, [bar_a];
BEHIND";

/// What has nothing to do with an mbarrier that counts too few is told beside it.
#[test]
fn an_mbarrier_that_counts_too_few_hides_nothing_else() {
    let found = |next: &str, behind: &str| -> Vec<&str> {
        let edits = [("NEXT", next), ("BEHIND", behind)];
        let report = run(Base::Small(1, 64, COUNTS_TOO_FEW), &edits, |_| {}, 400_000);
        report.findings.iter().map(|found| found.code).collect()
    };
    assert_eq!(found("", "st.shared.u32 [tile], %r0;"), ["mbarrier-split", "race-shared"]);
    let waits = "WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p2, [bar_b], 0;\n@!%p2 bra WAIT;";
    let mut told = found("mbarrier.init.shared::cta.b64 [bar_b], 1;", waits);
    told.sort_unstable();
    assert_eq!(told, ["hang", "mbarrier-split"]);
    // The register of the count holds another number for another mbarrier.
    let also = "mov.u32 %r9, 8;\nmbarrier.init.shared::cta.b64 [bar_b], %r9;";
    let arrives = "@!%p1 mbarrier.arrive.shared::cta.b64 _, [bar_b];";
    assert_eq!(found(also, arrives), ["mbarrier-split", "mbarrier-split"]);
}
