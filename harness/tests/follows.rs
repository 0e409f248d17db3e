//! Which TODO is shown as the one that is not right, where a mistake in one of them shows at others, too; and what is said of it.

mod judged;

use harness::progress::Progress;
use harness::{
    InProcess, JudgeOptions, MilestoneState, Outcome, Part, Verdict, judge, reference_kernels, report, step,
};
use judged::state;
use std::sync::Mutex;

fn judged(name: &'static str) -> Verdict {
    judged::judged(name, 0)
}

/// The explanation of a part that fails.
#[track_caller]
fn failure(verdict: &Verdict, part: Part) -> &str {
    match verdict.part(part) {
        Outcome::Failed { text, .. } => text,
        other => panic!("{part} should fail, and is {other:?}:\n{}", report::render(verdict)),
    }
}

/// The TODO whose lines are wrong is the one that fails. Right ones behind it, at which that shows, wait for it: none of them is told what to do.
#[test]
fn only_the_todo_that_is_wrong_fails() {
    for (name, wrong, waits) in [
        ("never_advanced_6", "6.3", &["6.5", "6.6"][..]),
        ("loads_into_the_next_7", "7.3", &["7.4"]),
        ("made_for_4_7", "7.2", &["7.6"]),
        // The run breaks off at 7.3, and it is 7.4 that lets it fill a stage too early.
        ("ring_begins_with_1_7", "7.4", &["7.5"]),
        ("box_of_a_turned_4", "4.2", &["4.4", "4.6"]),
        ("half_the_bytes_4", "4.2", &["4.4"]),
        ("b_without_rank_9", "9.2", &["9.3", "9.5"]),
        ("d_without_rank_10", "10.6", &[]),
    ] {
        let verdict = judged(name);
        let whole = report::render(&verdict);
        let all = verdict.milestones.iter().filter(|known| matches!(known.state, MilestoneState::Wrong { .. }));
        assert_eq!(all.map(|known| known.id.as_str()).collect::<Vec<_>>(), [wrong], "`{name}`:\n{whole}");
        for id in waits {
            assert!(whole.contains(&format!(": waits for {wrong}\n")), "`{name}`:\n{whole}");
            let waits = MilestoneState::WaitsFor { id: wrong.to_string() };
            assert_eq!(*state(&verdict, id), waits, "`{name}`, {id}:\n{whole}");
        }
        // What `correct` says first leads there, too.
        let first = failure(&verdict, Part::Correct).lines().find_map(|line| line.strip_prefix("  TODO "));
        assert!(first.is_some_and(|line| line.starts_with(&format!("{wrong};"))), "`{name}`:\n{whole}");
    }
}

/// A phase is overtaken since a state does not go on, or since the next bytes are announced too soon: another way out for each.
#[test]
fn what_to_try_is_about_the_cause() {
    let never = judged("never_advanced_6");
    let text = failure(&never, Part::Correct);
    assert!(text.contains("this wait is for phase 0 twice running: both times it asks for parity 0"), "{text}");
    assert!(text.contains("= try: Let the parity of this wait for `mma_done` go on with each phase"), "{text}");
    // The first wait passes on a fresh barrier, and so does the second.
    let free = judged("free_never_advanced_8");
    let text = failure(&free, Part::Correct);
    assert!(
        text.contains("where warp 0 arrives when it has read, passed at once, on a fresh mbarrier, a second time"),
        "{text}"
    );
    assert!(text.contains("= try: Let the parity of this wait for `ld2mma` go on with each phase"), "{text}");
    let next = judged("loads_into_the_next_7");
    let text = failure(&next, Part::Correct);
    assert!(text.starts_with("finding[phase-overtaken]") && !text.contains("twice running"), "{text}");
    assert!(text.contains("= try: Let who announces the bytes wait before it"), "{text}");
    let parity = judged("parity_0_2");
    let text = failure(&parity, Part::Correct);
    assert!(text.contains("phase n has parity n mod 2, and here it is phase 7"), "{text}");
}

#[test]
fn coordinates_are_called_exchanged_where_they_are() {
    let (exchanged, rank) = ("Coordinates are (column, row)", "depend on the CTA's rank in the pair");
    let [turned, without] = ["box_of_a_turned_4", "b_without_rank_9"].map(judged);
    let [turned, without] = [&turned, &without].map(|verdict| failure(verdict, Part::Correct));
    assert!(turned.contains(exchanged) && !turned.contains(rank), "{turned}");
    assert!(without.contains(rank) && !without.contains(exchanged), "{without}");
}

#[test]
fn two_ctas_that_write_one_place_are_named() {
    let verdict = judged("d_without_rank_10");
    let text = failure(&verdict, Part::Correct);
    assert!(
        text.starts_with("finding[race-global]: the TMA engine for CTA (0, 0, 0) writes `D` at row 0, column 0"),
        "{text}"
    );
    assert!(text.contains("= try: Let each element be written by one CTA"), "{text}");
    assert!(!text.contains("wait_group"), "no wait puts two CTAs in order:\n{text}");
}

/// Both write-backs share the line of the store.
#[test]
fn who_ends_too_early_is_named() {
    let verdict = judged("one_waits_for_the_read_10");
    let text = failure(&verdict, Part::RaceFree);
    assert!(text.starts_with("note[bulk-store-outlives-thread]"), "{text}");
    assert!(text.contains("warp 4 of CTA 0 has issued this copy, and ends without a wait for it"), "{text}");
}

/// It shows with one round only, and that is not the size that is looked at closely.
#[test]
fn the_size_that_shows_a_note_is_named() {
    let verdict = judged("always_two_5");
    let text = failure(&verdict, Part::RaceFree);
    assert!(text.starts_with("note[load-outlives-cta]"), "{text}");
    assert!(text.contains("x64 f16 under the default schedule.\n") && text.contains("Seen at "), "{text}");
}

/// Only a `todo` that has its code beside it is to be deleted.
#[test]
fn a_todo_that_is_done_is_to_be_deleted() {
    let delete = "  do:   Its effect is there: delete this line, which marks it as open.\n";
    for (name, there) in [("todo_left_1", true), ("todo_alone_1", false)] {
        let verdict = judged(name);
        let whole = report::render(&verdict);
        assert!(whole.contains("\nTODO 1.2 comes next: "), "`{name}`:\n{whole}");
        assert_eq!(whole.contains(delete), there, "`{name}`:\n{whole}");
    }
}

/// Who waits is told what is judged, and at the end that it is over. Nobody else is told anything.
#[test]
fn who_waits_is_told_what_is_judged() {
    static TOLD: Mutex<Vec<String>> = Mutex::new(Vec::new());
    fn tell(text: &str) {
        TOLD.lock().expect("nobody panics with it").push(text.to_string());
    }
    let kernel = reference_kernels::solution(1).expect("it is there");
    let options = JudgeOptions { seeds: 2, ..JudgeOptions::default() };
    let verdict = judge(step(1).expect("step 1 exists"), &InProcess(kernel), &options);
    assert!(TOLD.lock().expect("nobody panics with it").is_empty());
    let told = JudgeOptions { progress: Progress::new(tell), ..options };
    let again = judge(step(1).expect("step 1 exists"), &InProcess(kernel), &told);
    let texts = TOLD.lock().expect("nobody panics with it").clone();
    for begins in
        ["128x128x64 f16, size 1 of ", "128x128x64 bf16, size 2 of ", "128x128x64 f16, schedule 2 of 2 …", "time at "]
    {
        assert!(texts.iter().any(|text| text.starts_with(begins)), "{begins}: {texts:?}");
    }
    assert_eq!(texts.iter().position(String::is_empty), Some(texts.len() - 1), "{texts:?}");
    assert_eq!((verdict.parts, verdict.milestones), (again.parts, again.milestones));
}

/// A phase that waits for the bytes of one operand alone is what is told; what is read and overwritten too early follows from it.
#[test]
fn bytes_of_one_operand_are_told_alone() {
    let verdict = judged("one_operand_7");
    let text = failure(&verdict, Part::Correct);
    assert!(text.starts_with("error[phase-completed-early]"), "{text}");
    assert!(text.contains("= try: Announce 32768 bytes"), "{text}");
    assert!(!text.contains("finding["), "a second finding follows from it:\n{text}");
}
