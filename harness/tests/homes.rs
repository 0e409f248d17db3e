//! Which TODO a verdict names when the line that is shown belongs to another one, or cuts short what stands in front of it.

mod judged;

use harness::{MilestoneState, Outcome, Part, Verdict, report};
use judged::state;

fn judged(name: &'static str) -> Verdict {
    judged::judged(name, 1)
}

/// A wait for the number of the round breaks the run off in round 2. It is TODO 2.4 that is not right, and not 2.1, of which the run has not
/// shown every round.
#[test]
fn what_breaks_a_run_off_is_shown_at_its_own_todo() {
    for name in ["round_as_parity_2", "round_as_parity_begun_2"] {
        let verdict = judged(name);
        let whole = report::render(&verdict);
        let MilestoneState::Wrong { text, .. } = state(&verdict, "2.4") else { panic!("`{name}`:\n{whole}") };
        assert!(text.contains("mbarrier-parity") && text.contains("k.wait(mma_done, round);"), "`{name}`:\n{text}");
        for id in ["2.1", "2.2", "2.3"] {
            assert!(!matches!(state(&verdict, id), MilestoneState::Wrong { .. }), "`{name}`, {id}:\n{whole}");
        }
    }
    let verdict = judged("round_as_parity_begun_2");
    let first = verdict.first_undone().map(|milestone| milestone.id.as_str());
    assert_eq!(first, Some("2.4"), "{}", report::render(&verdict));
}

/// The note stands at the load; the fence is asked for by the TODO of the wait in step 1, by that of the loads in step 2, and by that in
/// which all threads meet in steps 4 to 6.
#[test]
fn a_missing_fence_is_that_of_the_todo_that_asks_for_it() {
    for (name, id) in [
        ("no_fence_behind_the_wait_1", "1.5"),
        ("no_fence_before_the_loads_2", "2.5"),
        ("no_fence_behind_the_meeting_4", "4.5"),
        ("no_fence_behind_the_meeting_5", "5.6"),
        ("no_fence_behind_the_meeting_6", "6.5"),
    ] {
        let verdict = judged(name);
        let whole = report::render(&verdict);
        let Outcome::Failed { text, .. } = verdict.part(Part::RaceFree) else { panic!("`{name}`:\n{whole}") };
        assert!(text.starts_with("note[missing-tensor-fence]"), "`{name}`:\n{text}");
        assert!(text.contains(&format!("\n  TODO {id}; read: ")), "`{name}`:\n{text}");
        assert_eq!(*state(&verdict, id), MilestoneState::Flagged { part: Part::RaceFree }, "`{name}`:\n{whole}");
    }
}
