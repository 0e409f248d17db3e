//! The mistakes of steps 7 and 9 that the book's tables list, and what a student reads of them: the milestone that says so, the
//! TODO that a finding is about, and the wait that comes first when all wait.

mod judged;

use harness::{MilestoneState, Outcome, Part, Verdict, report};
use judged::state;

fn judged(name: &'static str) -> Verdict {
    judged::judged(name, 2)
}

/// Title and text of a part that fails.
#[track_caller]
fn failure(verdict: &Verdict, part: Part) -> (&str, &str) {
    match verdict.part(part) {
        Outcome::Failed { title, text, .. } => (title, text),
        _ => panic!("{part} should fail:\n{}", report::render(verdict)),
    }
}

/// What is wrong with a milestone.
#[track_caller]
fn wrong<'a>(verdict: &'a Verdict, id: &str) -> &'a str {
    match state(verdict, id) {
        MilestoneState::Wrong { text, .. } => text,
        other => panic!("{id} should be wrong, and is {other:?}:\n{}", report::render(verdict)),
    }
}

/// The line that a text points at first.
#[track_caller]
fn marked(text: &str) -> &str {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| line.contains("^^^")).unwrap_or_else(|| panic!("nothing is marked:\n{text}"));
    lines[at - 1]
}

#[test]
fn arrivals_at_the_own_cta_are_named_before_all_who_wait() {
    let verdict = judged("own_ld2mma_9");
    let (title, text) = failure(&verdict, Part::Correct);
    assert_eq!(
        title,
        "`ld2mma` of CTA 0 never completes phase 0: it waits for 256 arrivals and gets 128; `ld2mma` of CTA 1 gets 128, where nobody waits",
        "{text}"
    );
    assert!(marked(text).contains("wg.arrive(ld2mma);"), "{text}");
    assert!(text.contains("warp 4 of CTA 0 waits for `ld2mma` of CTA 0"), "{text}");
    assert!(!text.contains("use parity"), "the parity is right:\n{text}");
    assert!(text.contains("\n  TODO 9.5; read: book: pairs of CTAs (book/src/cta-pairs.md)\n"), "{text}");
}

#[test]
fn a_commit_to_one_cta_shows_the_wait_in_the_other() {
    for (name, barrier, warp) in [("commit_to_one_9", "mma2tma[0]", 7), ("product_to_one_9", "mma2ld", 0)] {
        let verdict = judged(name);
        let (title, text) = failure(&verdict, Part::Correct);
        let with =
            format!("the wait for `{barrier}` of CTA 1 never ends: nothing ever arrives at it, only at that of CTA 0");
        assert_eq!(title, with, "{text}");
        assert!(text.contains(&format!("warp {warp} of CTA 1 waits for `{barrier}` of CTA 1, parity 0")), "{text}");
        assert!(text.contains(&format!("this arrives at `{barrier}` of CTA 0 alone")), "{text}");
        assert!(text.contains("Let the commit arrive in both CTAs"), "{text}");
    }
}

#[test]
fn bytes_at_the_own_cta_are_named() {
    let verdict = judged("own_loads_9");
    let (title, text) = failure(&verdict, Part::Correct);
    assert!(
        title.ends_with("its copies bring 32768 bytes; `tma2mma[0]` of CTA 1 gets 32768 bytes, where nobody waits"),
        "{text}"
    );
}

/// One CTA: from the write-back on to the MMAs, to the loads, to the stage that nobody frees.
#[test]
fn a_stage_that_is_never_free_is_the_root() {
    let verdict = judged("stages_never_free_7");
    let (title, text) = failure(&verdict, Part::Correct);
    assert_eq!(title, "the wait for `mma2tma[0]` never ends: nothing ever arrives at it", "{text}");
    let waits = ["warp 7 waits for `mma2tma[0]`", "warp 4 waits for `tma2mma[0]`", "warp 0 waits for `mma2ld`"];
    assert!(waits.iter().all(|wait| text.contains(wait)), "{text}");
    // It waits in TODO 7.3; what is missing is in 7.4.
    assert!(text.contains("\n  TODO 7.4; read: "), "{text}");
    assert_eq!(*state(&verdict, "7.3"), MilestoneState::Done);
}

/// Right results, and an end that comes too early: the milestone of the end does not say that all is well.
#[test]
fn an_end_that_comes_too_early_is_the_last_todos() {
    for (name, id, read) in [
        ("end_before_read_7", "7.8", "warp specialisation (book/src/warp-specialisation.md)"),
        ("end_before_read_9", "9.7", "pairs of CTAs (book/src/cta-pairs.md)"),
        ("end_without_pair_9", "9.7", "pairs of CTAs (book/src/cta-pairs.md)"),
    ] {
        let verdict = judged(name);
        assert_eq!(*state(&verdict, id), MilestoneState::Flagged { part: Part::RaceFree }, "`{name}`");
        let (_, text) = failure(&verdict, Part::RaceFree);
        assert!(text.contains(&format!("\n  TODO {id}; read: book: {read}\n")), "{text}");
        let whole = report::render(&verdict);
        assert!(whole.contains(": works here; see race-free\n"), "{whole}");
    }
}

/// While TODO 9.3 is open, the trace shows what is wrong with the loads.
#[test]
fn loads_that_tell_the_wrong_barrier_are_wrong_before_anybody_waits() {
    let tells = "a load of CTA 1 tells `tma2mma[0]` of CTA 1; the MMAs' thread waits at that of CTA 0";
    let announces =
        "bytes are announced to `tma2mma[0]` of CTA 1, where nobody waits; the leader's counts those of both";
    for (name, title) in
        [("own_loads_open_9", tells), ("own_pipeline_open_9", tells), ("both_announce_open_9", announces)]
    {
        let verdict = judged(name);
        let text = wrong(&verdict, "9.2");
        assert!(text.contains(title), "`{name}`: {text}");
        assert_eq!(verdict.first_undone().map(|milestone| milestone.id.as_str()), Some("9.2"), "`{name}`");
    }
}

/// Right in the first tile: only the rounds that stages alone do not show tell.
#[test]
fn tiles_half_as_far_apart_are_wrong_where_they_are_loaded() {
    let verdict = judged("half_tiles_9");
    let (title, _) = failure(&verdict, Part::Correct);
    let with = "round 32 of CTA 0 loads the box of A at column 0, row 128; it needs A at column 0, row 256 and B at column 0, row 0";
    assert_eq!(title, with);
    assert!(wrong(&verdict, "9.2").contains(with));
    let whole = report::render(&verdict);
    let first = verdict.milestones.iter().find(|milestone| !milestone.state.seen());
    assert_eq!(first.map(|milestone| milestone.id.as_str()), Some("9.2"), "{whole}");
    let explained = whole.lines().find(|line| line.starts_with("error"));
    assert!(explained.is_some_and(|line| line.contains(with)), "{whole}");
}

/// Filled as in the solution, behind one that is open: nothing is wrong with it.
#[test]
fn what_needs_an_open_todo_is_not_called_wrong() {
    let verdict = judged("load_open_7");
    let reason = "cannot be seen yet: it needs what comes before".to_string();
    assert_eq!(*state(&verdict, "7.4"), MilestoneState::NotReached { reason });
    assert!(!verdict.milestones.iter().any(|milestone| matches!(milestone.state, MilestoneState::Wrong { .. })));
}

#[test]
fn a_commit_to_one_cta_breaks_the_rule_of_multicast() {
    let verdict = judged("product_to_one_9");
    let text = wrong(&verdict, "9.3");
    assert!(text.contains("the commit reaches `mma2ld` of 1 CTA; both of the pair wait for it"), "{text}");
    assert!(text.contains("rule: A commit arrives at one mbarrier; with .multicast::cluster"), "{text}");
}

/// The emulator's assumption `commits-arrive-in-order`, as the book says.
#[test]
fn the_last_waits_for_stages_are_not_asked_for() {
    let verdict = judged("stages_not_awaited_9");
    assert!(
        verdict.part(Part::Correct).passed() && verdict.part(Part::RaceFree).passed(),
        "{}",
        report::render(&verdict)
    );
}

#[test]
fn waits_are_counted_from_the_first() {
    let verdict = judged("parity_2");
    let text = wrong(&verdict, "2.4");
    assert!(text.contains("warp 0's second wait for `mma_done` does not wait for phase 1"), "{text}");
}

/// What a TODO's comment says to read is what the verdict says to read.
#[test]
fn comments_and_verdicts_name_the_same_page() {
    for step in harness::STEPS {
        let file = format!("{}/../steps/step{:02}/src/kernel.rs", env!("CARGO_MANIFEST_DIR"), step.number);
        let words = std::fs::read_to_string(&file).expect("the step has a skeleton").replace("//", " ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        for milestone in step.milestones {
            let (_, comment) = words.split_once(&format!("TODO {}:", milestone.id)).expect("it has a comment");
            let (comment, _) = comment.split_once(".todo(").expect("the call follows");
            let title = milestone.read.split(" (").next().unwrap_or_default();
            assert!(comment.contains(title), "TODO {}: the verdict says \"{title}\":{comment}", milestone.id);
        }
    }
}
