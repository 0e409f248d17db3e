//! Two waits are asked, and one of them is heeded: the finding names the one that has to do with the race.

use super::case::{Base, first, told};
use Base::Small;

/// The copies tell `bar_a`, whose wait is repeated; nothing ever tells `bar_b`, which is asked once.
const COPIES: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 64;
@%p0 mbarrier.init.shared::cta.b64 [bar_b], 1;
bar.sync 0;
shl.b32 %r3, %r0, 4;
mov.u32 %r4, tile;
add.u32 %r5, %r4, %r3;
cvt.u64.u32 %rd3, %r3;
add.s64 %rd4, %rd3, %rd1;
cp.async.cg.shared.global [%r5], [%rd4], 16;
cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar_a];
WAIT:
mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @a
@!%p2 bra WAIT; // @again
mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar_b], 0; // @b
@!%p3 add.u32 %r4, %r4, 0;
xor.b32 %r6, %r3, 1008;
add.u32 %r6, %r6, %r4;
ld.shared.v4.u32 {%r7, %r8, %r9, %r10}, [%r6]; // @ld
END:";

/// Warp 1 arrives at `bar_b` before it stores, and at `bar_a` behind that.
const STORED: &str = "\
@%p0 mbarrier.init.shared::cta.b64 [bar_a], 1;
@%p0 mbarrier.init.shared::cta.b64 [bar_b], 2;
bar.sync 0;
setp.eq.u32 %p1, %r0, 32;
@%p0 bra READ;
@!%p1 bra END;
mbarrier.arrive.shared::cta.b64 _, [bar_b];
st.shared.u32 [tile], %r0; // @store
nanosleep.u32 100;
nanosleep.u32 100;
nanosleep.u32 100;
nanosleep.u32 100;
mbarrier.arrive.shared::cta.b64 _, [bar_a];
bra.uni END;
READ:
nanosleep.u32 100;
AGAIN:
mbarrier.test_wait.parity.shared::cta.b64 %p2, [bar_a], 0; // @a
@!%p2 bra AGAIN; // @again
mbarrier.test_wait.parity.shared::cta.b64 %p3, [bar_b], 0; // @b
@!%p3 add.u32 %r4, %r4, 0;
ld.shared.u32 %r5, [tile]; // @ld
LATER:
mbarrier.test_wait.parity.shared::cta.b64 %p4, [bar_a], 0;
@!%p4 bra LATER;
END:";

/// The race is told by the wait for `bar_a`, and by no other.
#[track_caller]
fn by_the_first(body: &'static str, instead: &'static str) {
    let found = first(Small(1, 64, body), &[("@again", instead)], |_| {});
    let all = told(std::slice::from_ref(&found));
    assert_eq!(found.code, "race-shared", "{all}");
    let asked = found.labels.iter().filter(|label| label.place.text.contains("test_wait")).collect::<Vec<_>>();
    let [asked] = asked[..] else { panic!("one wait is named, but\n{all}") };
    assert!(asked.place.text.contains("[bar_a]"), "{all}");
    assert!(found.help.contains("Repeat the wait for `bar_a`"), "{all}");
}

#[test]
fn copies_that_another_mbarrier_tells_of() {
    by_the_first(COPIES, "@!%p2 add.u32 %r4, %r4, 0;");
}

/// What the other one tells came before the store; and what is heeded later is too late for the race.
#[test]
fn an_arrival_before_the_store() {
    by_the_first(STORED, "@!%p2 add.u32 %r4, %r4, 0;");
}

/// Where the wait that tells of it is heeded, nothing races, whatever the other one says.
#[test]
fn the_one_that_counts_is_heeded() {
    for body in [COPIES, STORED] {
        let report = super::case::run(Small(1, 64, body), &[], |_| {}, 400_000);
        assert!(report.findings.is_empty(), "{}", told(&report.findings));
    }
}
