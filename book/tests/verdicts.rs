//! What the pages say of mistakes in the steps, and the answers of exercises that quote the verdict: each kernel is judged again, and what is
//! quoted must be in what the verdict says.
#![cfg(feature = "solutions")]

#[allow(dead_code)]
#[path = "../../harness/tests/judged/mod.rs"]
mod judged;
#[path = "verdicts/quotes.rs"]
mod quotes;
#[path = "verdicts/reports.rs"]
mod reports;
#[path = "verdicts/students.rs"]
mod students;
#[path = "verdicts/texts.rs"]
mod texts;

use emulator::CODES;
use harness::verdict::{MilestoneState, Outcome, Part, Verdict};
use harness::{JudgeOptions, diagnostics::Sources, judge, report, step};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

/// Page, how the first cell of a row begins or the number of an exercise, and the kernel in `solutions/edited`.
const SAID: &[(&str, &str, &str)] = &[
    ("step01.md", "A is stored without the swizzle", "without_swizzle_1"),
    ("step01.md", "columns counted in chunks", "columns_in_chunks_1"),
    ("step01.md", "no proxy fence", "no_proxy_fence_1"),
    ("step01.md", "a fence and no CTA barrier", "no_meeting_1"),
    ("step01.md", "the first MMA adds", "first_adds_1"),
    ("step01.md", "no MMA adds", "none_adds_1"),
    ("step01.md", "B always takes slice 0", "slice_0_of_b_1"),
    ("step01.md", "slices counted in bytes", "slices_in_bytes_1"),
    ("step01.md", "no commit", "no_commit_1"),
    ("step01.md", "the wait is for parity 1", "parity_1_1"),
    ("step01.md", "one thread waits", "one_waits_1"),
    ("step01.md", "each thread gives its own lane", "own_lane_1"),
    ("step01.md", "the row is the lane of the warp", "row_of_the_warp_1"),
    ("step01.md", "freed without a CTA barrier", "freed_early_1"),
    ("step01.md", "never freed", "never_freed_1"),
    ("step01.md", "1.", "no_proxy_fence_1"),
    ("step01.md", "2.", "count_of_2_1"),
    ("step01.md", "4.", "lane_0_1"),
    ("step01.md", "5.", "no_wait_ld_1"),
    ("step02.md", "the wait is for parity 0", "parity_0_2"),
    ("step02.md", "the first MMA of each round overwrites", "each_round_anew_2"),
    ("step02.md", "one thread waits", "one_waits_2"),
    ("step02.md", "the wait stands behind the loop", "waits_behind_2"),
    ("step02.md", "all of round 0 overwrites", "round_0_overwrites_2"),
    ("step02.md", "every round copies the same columns", "same_columns_2"),
    ("step03.md", "tile row and tile column exchanged", "exchanged_3"),
    ("step03.md", "rows of B begin", "rows_of_b_3"),
    ("step03.md", "rows of a tile in shared memory", "rows_of_the_tile_3"),
    ("step03.md", "D is stored without", "d_in_one_place_3"),
    ("step04.md", "only the bytes of A", "bytes_of_a_4"),
    ("step04.md", "twice the bytes", "twice_the_bytes_4"),
    ("step04.md", "at the edge only", "bytes_inside_4"),
    ("step04.md", "no wait for the tiles", "no_wait_4"),
    ("step04.md", "(row, column)", "row_first_4"),
    ("step04.md", "no proxy fence", "no_fence_4"),
    ("step04.md", "a fence and no CTA barrier", "no_meeting_4"),
    ("step04.md", "no `bulk_wait_read`", "no_wait_read_4"),
    ("step04.md", "`at_linear` in D's tile", "d_row_after_row_4"),
    ("step04.md", "2.", "one_tile_of_d_4"),
    ("step05.md", "one barrier for both stages", "one_barrier_5"),
    ("step05.md", "the parity `round & 1`", "parity_of_the_round_5"),
    ("step05.md", "the stage is filled again before", "waits_too_late_5"),
    ("step05.md", "two stages filled before the loop", "always_two_5"),
    ("step05.md", "loads for rounds that do not exist", "rounds_beyond_k_5"),
    ("step05.md", "4.", "waits_too_late_5"),
    ("step06.md", "the barriers are initialised again", "made_again_6"),
    ("step06.md", "stages 0 and 1 are filled", "fills_stage_i_6"),
    ("step06.md", "no `bulk_wait_read`", "no_wait_read_6"),
    ("step06.md", "no `tcgen05_fence_before`", "no_fence_before_6"),
    ("step07.md", "the load thread begins with parity 0", "load_begins_with_0_7"),
    ("step07.md", "one thread of the warpgroup arrives", "one_arrives_7"),
    ("step07.md", "the commit to `mma2tma` behind", "commit_behind_advance_7"),
    ("step07.md", "the commit to `mma2ld` stands", "product_each_round_7"),
    ("step07.md", "no commit to `mma2tma`", "no_commit_to_stages_7"),
    ("step07.md", "the MMA warp begins its ring", "ring_begins_with_1_7"),
    ("step07.md", "`ld2mma` made for 1 arrival", "made_for_1_7"),
    ("step07.md", "the MMA warp does not wait", "accumulator_not_awaited_7"),
    ("step07.md", "the arrival at `ld2mma` before", "told_before_the_wait_7"),
    ("step07.md", "the arrival after the *first*", "told_after_the_first_7"),
    ("step07.md", "no `bulk_wait_read` at the very end", "no_wait_read_at_the_end_7"),
    ("step08.md", "the depth is still 2", "depth_of_2_8"),
    ("step08.md", "the MMA warp's state", "ring_of_two_8"),
    ("step09.md", "the leader announces its own bytes only", "bytes_of_one_9"),
    ("step09.md", "both CTAs announce, each on its own", "each_announces_9"),
    ("step09.md", "both announce on the leader's", "both_announce_there_9"),
    ("step09.md", "each CTA's loads tell its own", "own_barrier_9"),
    ("step09.md", "`tile_row * BLK_M`", "rows_of_a_cta_9"),
    ("step09.md", "no waits behind all tiles", "no_last_waits_9"),
    ("step09.md", "1.", "counts_2_for_both_9"),
    ("step09.md", "`commit` instead of", "stages_of_one_9"),
    ("step09.md", "the same for `mma2ld`", "product_of_one_9"),
    ("step09.md", "the arrival is at this CTA's", "arrives_at_its_own_9"),
    ("step09.md", "`ld2mma` made for 128", "count_of_one_9"),
    ("step09.md", "both CTAs load the same rows", "same_rows_9"),
    ("step09.md", "rank 1 runs the MMA warp's loop", "both_multiply_9"),
    ("step09.md", "a CTA barrier instead of that of the cluster at the beginning", "cta_barrier_first_9"),
    ("step09.md", "a CTA barrier instead of that of the cluster at the end", "cta_barrier_last_9"),
    ("step09.md", "no `bulk_wait_read` at the very end", "no_wait_read_at_the_end_9"),
    ("step10.md", "`mma2tma` made for 1 arrival", "one_frees_10"),
    ("step10.md", "the bytes of one tile of A", "bytes_of_one_a_10"),
    ("step10.md", "both consumers use the same columns", "same_columns_10"),
    ("step10.md", "A1 begins 128 rows below", "a1_too_near_10"),
    ("step10.md", "both warpgroups meet at named", "one_named_barrier_10"),
    ("k-loop.md", "a wait for parity 0", "parity_0_2"),
    ("k-loop.md", "each round begins anew", "each_round_anew_2"),
    ("k-loop.md", "all of round 0 overwrites", "round_0_overwrites_2"),
    ("k-loop.md", "one wait behind the loop", "waits_behind_2"),
    ("grid.md", "row and column of the tile exchanged", "exchanged_3"),
    ("grid.md", "rows of B counted", "rows_of_b_3"),
    ("grid.md", "the CTA's first row added twice", "rows_of_the_tile_3"),
    ("grid.md", "every CTA stores", "d_in_one_place_3"),
    ("way-back.md", "no proxy fence", "no_fence_4"),
    ("way-back.md", "a fence, and nobody meets", "no_meeting_4"),
    ("way-back.md", "no wait behind the store", "no_wait_read_4"),
    ("way-back.md", "D's tile without the swizzle", "d_row_after_row_4"),
    ("mbarriers.md", "a count of 2", "count_of_2_1"),
    ("mbarriers.md", "no commit", "no_commit_1"),
    ("mbarriers.md", "a wait for parity 1", "parity_1_1"),
    ("tma.md", "half of the bytes announced", "bytes_of_a_4"),
    ("tma.md", "twice the bytes", "twice_the_bytes_4"),
    ("tensor-memory.md", "every warp reads lane 0", "lane_0_1"),
    ("tensor-memory.md", "the first MMA adds", "first_adds_1"),
    ("tensor-memory.md", "no barrier before it", "freed_early_1"),
    ("tensor-memory.md", "no `tmem_wait_load`", "no_wait_ld_1"),
    ("tensor-memory.md", "one thread waits for the MMAs", "one_waits_1"),
    ("mbarriers.md", "a second wait", "waits_again_1"),
    ("shared-memory.md", "a swizzle by hand", "swizzle_by_hand_1"),
    ("shared-memory.md", "columns counted in chunks", "columns_in_chunks_1"),
    ("tma.md", "a box that begins at column 4", "box_at_column_4_4"),
    ("shared-memory.md", "stores by `at_linear`", "without_swizzle_1"),
    ("shared-memory.md", "columns counted in bytes", "columns_in_bytes_1"),
    ("cta-pairs.md", "the bytes of one CTA announced", "bytes_of_one_9"),
    ("cta-pairs.md", "each CTA's copies tell its own", "own_barrier_9"),
    ("cta-pairs.md", "`commit` in place of", "product_of_one_9"),
];

/// Rows of the steps named above that no kernel here shows, and why.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("step06.md", "the states are made inside", "`06-parity-begins-anew` of solutions/mistakes"),
    ("step06.md", "a CTA for each tile", "harness/tests/cross.rs: step 5 handed in as step 6"),
    ("step07.md", "the load thread leaves out", "`07-rounds-differ` of solutions/mistakes"),
    ("step07.md", "the arrival behind the stores", "`late_7`, whose times book/tests/numbers.rs compares"),
    ("step07.md", "states made inside", "as `06-parity-begins-anew`"),
    ("step07.md", "no meeting between", "`06-tile-of-d-reused` is the same in step 6"),
];

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The rows of the table of mistakes: first cell, second cell.
fn rows(page: &str) -> Vec<(String, String)> {
    let table =
        page.split("\n## What goes wrong").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap_or_default();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |")?.split_once(" | "));
    rows.filter(|(first, _)| *first != "mistake")
        .map(|(first, second)| (first.to_string(), second.to_string()))
        .collect()
}

/// The answer of an exercise, `4.` for the fourth.
fn answer(page: &str, number: &str) -> String {
    let exercises = page.split("\n## Exercises\n").nth(1).unwrap_or_default();
    let one = exercises.split(&format!("\n{number} ")).nth(1).unwrap_or_default();
    let answer = one.split("<summary>Answer</summary>").nth(1).unwrap_or_default();
    answer.split("</details>").next().unwrap_or_default().to_string()
}

fn dense(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a passage claims: what stands between quotation marks, and the codes of findings that it names.
fn claims(passage: &str) -> (Vec<String>, Vec<&'static str>) {
    let passage = dense(passage);
    let quoted = passage.split('"').skip(1).step_by(2).map(|quote| quote.trim().to_string());
    let named: BTreeSet<&str> = passage.split('`').skip(1).step_by(2).collect();
    let codes = CODES.iter().map(|(code, _)| *code).filter(|code| named.contains(code)).collect();
    (quoted.filter(|quote| quote.len() > 3).collect(), codes)
}

/// All that a verdict says, also of parts and milestones that a person is not shown at once.
fn said(verdict: &Verdict) -> String {
    let mut text = report::render(verdict);
    for milestone in &verdict.milestones {
        if let MilestoneState::Wrong { text: wrong, .. } = &milestone.state {
            let _ = writeln!(text, "{wrong}");
        }
    }
    for (_, outcome) in &verdict.parts {
        if let Outcome::Failed { text: failed, .. } = outcome {
            let _ = writeln!(text, "{failed}");
        }
    }
    dense(&text)
}

/// Whether a passage says that its kernel passes.
fn says_it_passes(passage: &str) -> bool {
    dense(passage).contains("*passes*") || dense(passage).contains("It passes.")
}

/// What of a passage is not said; `…` stands for anything.
fn missing(passage: &str, said: &str, correct: bool) -> Vec<String> {
    let (quotes, codes) = claims(passage);
    let mut missing = Vec::new();
    for quote in quotes {
        let mut rest = said;
        let stands = quote.split('…').all(|piece| match rest.find(piece.trim()) {
            Some(at) => {
                rest = &rest[at + piece.trim().len()..];
                true
            }
            None => false,
        });
        missing.extend((!stands).then(|| format!("nothing says \"{quote}\"")));
    }
    missing.extend(codes.iter().filter(|code| !said.contains(&format!("[{code}]"))).map(|code| format!("no `{code}`")));
    if passage.contains("*correct* passes") && !correct {
        missing.push("*correct* does not pass".to_string());
    }
    missing
}

/// A verdict, once its kernel is judged.
type Awaited = Arc<OnceLock<Arc<Verdict>>>;

/// Verdicts by the name of their kernel: several pages show the same ones, and each is judged once.
struct Verdicts(Mutex<BTreeMap<&'static str, Awaited>>);

impl Verdicts {
    const fn new() -> Verdicts {
        Verdicts(Mutex::new(BTreeMap::new()))
    }

    fn of(&self, kernel: &'static str, judge: impl FnOnce() -> Verdict) -> Arc<Verdict> {
        let known = self.0.lock().expect("no panic").entry(kernel).or_default().clone();
        known.get_or_init(|| Arc::new(judge())).clone()
    }
}

/// The verdict at the size that is looked at closely.
fn closely(kernel: &'static str) -> Arc<Verdict> {
    static KNOWN: Verdicts = Verdicts::new();
    KNOWN.of(kernel, || judged::judged(kernel, 8))
}

fn at_all_sizes(kernel: &'static str) -> Arc<Verdict> {
    static KNOWN: Verdicts = Verdicts::new();
    let options = JudgeOptions { sources: Sources::at(edited::FOLDER), ..JudgeOptions::default() };
    KNOWN.of(kernel, || judge(edited_step(kernel), &judged::Edited(kernel), &options))
}

/// The verdict at the size that is looked at closely, and, if something is missing in it, on all sizes.
fn judged_until(passage: &str, name: &'static str) -> Vec<String> {
    let of = |verdict: &Verdict| {
        let mut all = missing(passage, &said(verdict), verdict.part(Part::Correct).passed());
        for (part, outcome) in verdict.parts.iter().filter(|_| says_it_passes(passage)) {
            if let Outcome::Failed { text, .. } = outcome {
                all.push(format!("it does not pass {part}: {}", dense(text)));
            }
        }
        all
    };
    let first = of(&closely(name));
    if first.is_empty() { first } else { of(&at_all_sizes(name)) }
}

/// The step of an edited solution.
fn step_of(name: &str) -> u8 {
    name.rsplit('_').next().and_then(|number| number.parse().ok()).expect("the name ends with the step")
}

fn edited_step(name: &str) -> &'static harness::Step {
    step(step_of(name)).expect("the step exists")
}

#[test]
fn what_is_quoted_is_what_the_verdict_says() {
    let left = Mutex::new(SAID.iter());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(&(name, key, kernel)) = { left.lock().expect("no panic").next() } {
                    let text = page(name);
                    let passage = if key.ends_with('.') {
                        answer(&text, key)
                    } else {
                        rows(&text)
                            .into_iter()
                            .find(|(first, _)| first.starts_with(key))
                            .map_or(String::new(), |row| row.1)
                    };
                    let (quotes, codes) = claims(&passage);
                    let found = match quotes.len() + codes.len() {
                        0 if !passage.contains("the same") && !says_it_passes(&passage) => {
                            vec!["the page quotes nothing there".to_string()]
                        }
                        _ => judged_until(&passage, kernel),
                    };
                    wrong
                        .lock()
                        .expect("no panic")
                        .extend(found.into_iter().map(|what| format!("book/src/{name}, \"{key}\" ({kernel}): {what}")));
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("no panic");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// No row of these pages is left out.
#[test]
fn every_mistake_of_these_pages_is_judged() {
    let known = || SAID.iter().chain(ELSEWHERE);
    // The pages of Part I show some of the same kernels.
    let pages: BTreeSet<&str> = known().map(|(page, ..)| *page).filter(|page| page.starts_with("step")).collect();
    let (mut seen, mut wrong) = (0, Vec::new());
    for name in pages {
        for (first, _) in rows(&page(name)) {
            seen += 1;
            let is_known = known().any(|(page, key, _)| *page == name && !key.ends_with('.') && first.starts_with(key));
            wrong.extend((!is_known).then(|| format!("book/src/{name}: no kernel shows \"{first}\"")));
        }
    }
    assert!(seen > 75, "{seen} rows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Another word, another code, and a part that fails are seen.
#[test]
fn what_is_not_said_is_seen() {
    let said = "error[hang]: `a` never ends: it gets 1 of 2";
    assert!(missing("`hang`: \"`a` never ends\", \"it gets … of 2\"", said, true).is_empty());
    assert_eq!(missing("\"`b` never ends\"", said, true).len(), 1);
    assert_eq!(missing("\"of 2 … it gets\"", said, true).len(), 1);
    assert_eq!(missing("`race-shared`", said, true).len(), 1);
    assert_eq!(missing("*correct* passes. `hang`", said, false).len(), 1);
}
