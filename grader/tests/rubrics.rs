//! What a rubric's file may say, and what is said of one that says something else.

use expect_test::{Expect, expect};
use grader::rubric::Rubric;
use harness::{BuildFailure, Built, Demands, InProcess, JudgeOptions, KernelSource, Outcome, Part, Problem, judge};
use std::collections::BTreeMap;

fn refused(text: &str, expected: Expect) {
    let error = Rubric::parse("rubric.toml", text).expect_err("must be refused");
    expected.assert_eq(&error);
}

#[test]
fn errors_name_the_line_the_value_and_what_is_allowed() {
    let shares = |correct: u32, milestones: u32| {
        format!(
            "\n[shares]\ncorrect = {correct}\nrace-free = 15\nstructure = 15\nresources = 5\nfast = 15\nmilestones = {milestones}\n"
        )
    };
    refused(
        &shares(55, 30),
        expect![[r#"
            rubric.toml:2: the shares of the parts add up to 105 %: correct 55, race-free 15, structure 15, resources 5, fast 15
              try: Let correct, race-free, structure, resources and fast add up to 100 %."#]],
    );
    refused(
        &shares(50, 60),
        expect![[r#"
        rubric.toml:8: milestones = 60
          try: Give a whole number from 0 to 50."#]],
    );
    // What is no table where one stands, also a list of the values that it would have.
    for text in ["steps.step01 = 5", "shares = [50, 15, 15, 5, 15, 30]", "late = 1", "steps = 4", "[[steps.step01]]"] {
        let error = Rubric::parse("rubric.toml", &format!("\n{text}\n")).expect_err(text);
        let what =
            format!("rubric.toml:2: {text}: allowed is a table, its name in single brackets on a line of its own,");
        assert!(error.starts_with(&what) && error.contains("\n  try: "), "{error}");
    }
    refused(
        "[steps.step01]\nsizes = \"128x128x64 f16\"\n",
        expect![[r#"
        rubric.toml:2: sizes = "128x128x64 f16": allowed is a list, such as ["256x256x64 f16"]
          try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
    refused(
        "# one\nfats = 1.5\n",
        expect![[r#"
        rubric.toml:2: unknown field `fats`, expected one of `shares`, `fast`, `late`, `steps`
          try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
    refused(
        "\n\nfast = \"1.5\"\n",
        expect![[r#"
            rubric.toml:3: fast = "1.5": allowed is a number
              try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
    refused(
        "fast = 0.5\n",
        expect![[r#"
        rubric.toml:1: fast = 0.5
          try: Give a number from 1.0 (as fast as the reference solution) to 1000.0."#]],
    );
    refused(
        "[steps.step11]\npoints = 5\n",
        expect![[r#"
        rubric.toml:1: there is no step "step11"
          try: Name one of [steps.step01], [steps.step02], [steps.step03], [steps.step04], [steps.step05], [steps.step06], [steps.step07], [steps.step08], [steps.step09], [steps.step10]."#]],
    );
    refused(
        "[steps.step01]\npoints = -1\n",
        expect![[r#"
            rubric.toml:2: points = -1: allowed is a whole number from 0 to 10000
              try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
    refused(
        "[steps.step03]\nsizes = [\"256x256x64 f16\",\n  \"100x256x64 f16\"]\n",
        expect![[r#"
            rubric.toml:3: step 3 does not solve the size "100x256x64 f16"
              try: Step 3 solves M and N that are multiples of 128, K of 64; extents go up to 16384."#]],
    );
    refused(
        "[steps.step03]\nsizes = [\"256\"]\n",
        expect![[r#"
            rubric.toml:2: "256" is no size
              try: Write M, N, K, each from 1 to 16384, and the type, f16 or bf16: "256x256x64 f16"."#]],
    );
    refused(
        "[steps.step03]\nsizes = []\n",
        expect![[r#"
            rubric.toml:2: 0 sizes
              try: Give 1 to 32 of them, each "MxNxK f16" or "MxNxK bf16"."#]],
    );
    refused(
        "[late]\ndue = 2026-11-30\npoints-per-day = 5.0\nlatest-day = 3\n",
        expect![[r#"
        rubric.toml:2: due = 2026-11-30
          try: Give date, time and offset from UTC, without quotes: 2026-11-30T23:59:59+01:00."#]],
    );
    refused(
        "[late]\ndue = 2026-11-30T12:00:00Z\npoints-per-day = nan\nlatest-day = 3\n",
        expect![[r#"
        rubric.toml:3: points-per-day = NaN
          try: Give a number from 0.0 on."#]],
    );
    refused(
        "[steps.step01]\npoints = 20000\n",
        expect![[r#"
        rubric.toml:2: points = 20000
          try: Give a whole number from 0 to 10000."#]],
    );
    refused(
        "[steps.step01]\npoints = 2.5\n",
        expect![[r#"
            rubric.toml:2: points = 2.5: allowed is a whole number from 0 to 10000
              try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
    refused(
        "[late]\ndue = \"2026-11-30T12:00:00Z\"\npoints-per-day = 1\nlatest-day = 3\n",
        expect![[r#"
            rubric.toml:2: due = "2026-11-30T12:00:00Z": allowed is a date and time without quotes
              try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
    refused(
        "# one\n[late]\ndue = 2026-11-30T12:00:00Z\nlatest-day = 3\n",
        expect![[r#"
        rubric.toml:2: missing field `points-per-day`
          try: A table [late] has all three: due, points-per-day, latest-day."#]],
    );
    refused(
        "[late]\ndue = 2026-11-30T12:00:00Z\npoints-per-day = 1\nlatest-day = -1\n",
        expect![[r#"
            rubric.toml:4: latest-day = -1: allowed is a whole number from 0 to 4294967295
              try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
    refused(
        "[late\n",
        expect![[r#"
            rubric.toml:1: [late: unclosed table, expected `]`
              try: `grader rubric` prints a rubric with all that can be said, and its values."#]],
    );
}

/// The largest extent that is said is the largest that is taken, whatever is wrong with a size.
#[test]
fn the_largest_extent_is_the_same_in_the_rule_and_in_what_is_said_of_it() {
    let size = |size: &str| Rubric::parse("r", &format!("[steps.step04]\nsizes = [\"{size} f16\"]\n"));
    let said = |text: &str| {
        let error = size(text).expect_err(text);
        let numbers = error.lines().last().unwrap_or_default().split(|c: char| !c.is_ascii_digit()).map(str::to_string);
        numbers.filter_map(|number| number.parse::<u32>().ok()).max().unwrap_or_default()
    };
    let largest = said("0x8x8");
    assert_eq!([said("8x8x65537"), said("8x4294967296x8"), said("16392x8x8")], [largest; 3]);
    for place in 0..3 {
        let of = |extent: u32| {
            (0..3).map(|at| if at == place { extent } else { 8 }.to_string()).collect::<Vec<_>>().join("x")
        };
        assert!(size(&of(largest)).is_ok(), "{}", of(largest));
        assert_eq!(said(&of(largest + 8)), largest);
    }
}

#[test]
fn a_rubric_that_is_no_utf_8_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("rubric.toml");
    let written: Vec<u8> = "fast = 1.5\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, [&[0xff, 0xfe], written.as_slice()].concat()).expect("written");
    let error = Rubric::read(&path).expect_err("must be refused");
    assert!(error.contains("UTF-8") && error.ends_with("\n  try: Save it as UTF-8."), "{error}");
    let error = Rubric::read(&folder.path().join("missing.toml")).expect_err("must be refused");
    assert!(error.contains("\n  try: `grader rubric > rubric.toml` writes one"), "{error}");
}

#[test]
fn a_step_that_is_named_twice_is_named_with_both_lines() {
    refused(
        "[steps.step01]\npoints = 5\n\n[steps.step1]\npoints = 7\n",
        expect![[r#"
        rubric.toml:4: [steps.step1] is step 1 a second time; [steps.step01] in line 1 is the same step
          try: Leave one table for each step."#]],
    );
    // Whatever order the names have.
    refused(
        "[steps.step2]\npoints = 5\n\n[steps.step02]\npoints = 7\n",
        expect![[r#"
        rubric.toml:4: [steps.step02] is step 2 a second time; [steps.step2] in line 1 is the same step
          try: Leave one table for each step."#]],
    );
    refused(
        "# points\n[steps.step01]\npoints = 5\n\n[steps.step01]\nfast = 2.0\n",
        expect![[r#"
        rubric.toml:5: step01 stands there a second time; it stands in line 2 already
          try: Leave the one that counts."#]],
    );
    refused(
        "steps.step01.points = 5\n[steps.step01]\nfast = 2.0\n",
        expect![[r#"
        rubric.toml:2: step01 stands there a second time; it stands in line 1 already
          try: Leave the one that counts."#]],
    );
    refused(
        "[steps.step01]\npoints = 5\npoints = 6\n",
        expect![[r#"
        rubric.toml:3: points stands there a second time; it stands in line 2 already
          try: Leave the one that counts."#]],
    );
}

#[test]
fn shares_that_are_left_out_are_as_without_a_rubric() {
    let own = Rubric::default().shares;
    let shares = |text: &str| Rubric::parse("r", text).map(|rubric| rubric.shares);
    assert_eq!(shares("[shares]\n"), Ok(own));
    let milestones = shares("[shares]\nmilestones = 20\n").expect("the others are as they were");
    assert_eq!((milestones.parts, milestones.milestones), (own.parts, 20));
    let moved = shares("[shares]\ncorrect = 60\nfast = 5\n").expect("100 % together");
    assert_eq!((moved.parts, moved.milestones), ([60, 15, 15, 5, 5], own.milestones));
    refused(
        "[shares]\ncorrect = 60\n",
        expect![[r#"
            rubric.toml:1: the shares of the parts add up to 110 %: correct 60, and, left out here and so as `grader rubric` prints them, race-free 15, structure 15, resources 5, fast 15
              try: Let correct, race-free, structure, resources and fast add up to 100 %."#]],
    );
    refused(
        "[shares]\ncorrect = 20\nfast = 45\n",
        expect![[r#"
        rubric.toml:1: correct = 20 is less than milestones, 30 where they are left out
          try: Say `milestones`, up to 20, in this table."#]],
    );
}

#[test]
fn the_rubric_of_the_documentation_is_one() {
    let docs = include_str!("../../docs/grader.md");
    let (_, block) = docs.split_once("```toml\n").expect("a block of TOML");
    let (text, _) = block.split_once("```").expect("it ends");
    let rubric = Rubric::parse("docs/grader.md", text).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((rubric.max_points(&[]), rubric.steps[&3].fast, rubric.steps[&4].fast), (110, 2.0, 1.5));
}

#[test]
fn the_rubric_that_is_printed() {
    expect![[r##"
        # A rubric of the grader: `grader grade FOLDER --rubric THIS-FILE`. What is left out is as here.
        #
        # Shares of the five parts, in percent of a step's points. They add up to 100. `correct` is a gate: without it, no other part counts.
        [shares]
        correct = 50
        race-free = 15
        structure = 15
        resources = 5
        fast = 15
        # While D is not right, milestones give points instead: all of them together this much.
        milestones = 30

        # What lateness costs: points of the total for each day that has begun, until nothing is taken after the latest day.
        # [late]
        # due = 2026-11-30T23:59:59+01:00
        # points-per-day = 10.0
        # latest-day = 3

        # Points of each step; the largest share of the reference solution's time that is `fast` (a line `fast = 1.5` above the first
        # table is for all steps); the sizes MxNxK that a kernel must solve, with their type, beside the cases that bite (docs/steps.md); the size
        # at which it is timed, which it must solve, too.

        [steps.step01]
        points = 5
        fast = 1.3
        sizes = ["128x128x64 f16", "128x128x64 bf16"]
        timed = "128x128x64 f16"

        [steps.step02]
        points = 5
        fast = 1.3
        sizes = ["128x128x64 f16", "128x128x512 f16", "128x128x1024 f16", "128x128x4096 f16"]
        timed = "128x128x1024 f16"

        [steps.step03]
        points = 10
        fast = 1.3
        sizes = ["256x256x256 f16", "512x512x512 f16", "1024x1024x1024 f16", "2048x2048x2048 f16"]
        timed = "512x512x512 f16"

        [steps.step04]
        points = 10
        fast = 1.3
        sizes = ["256x256x256 f16", "512x512x512 f16", "1024x1024x1024 f16", "2048x2048x2048 f16"]
        timed = "1024x1024x1024 f16"

        [steps.step05]
        points = 10
        fast = 1.3
        sizes = ["512x512x512 f16", "1024x1024x1024 f16", "2048x2048x2048 f16", "4096x4096x4096 f16"]
        timed = "1024x1024x1024 f16"

        [steps.step06]
        points = 10
        fast = 1.3
        sizes = ["1024x1024x1024 f16", "2048x2048x2048 f16", "4096x4096x4096 f16", "8192x8192x8192 f16"]
        timed = "2048x2048x2048 f16"

        [steps.step07]
        points = 15
        fast = 1.3
        sizes = ["1024x1024x1024 f16", "2048x2048x2048 f16", "4096x4096x4096 f16", "8192x8192x8192 f16"]
        timed = "2048x2048x2048 f16"

        [steps.step08]
        points = 5
        fast = 1.3
        sizes = ["1024x1024x1024 f16", "2048x2048x2048 f16", "4096x4096x4096 f16", "8192x8192x8192 f16"]
        timed = "2048x2048x2048 f16"

        [steps.step09]
        points = 15
        fast = 1.3
        sizes = ["1024x1024x1024 f16", "2048x2048x2048 f16", "4096x4096x4096 f16", "8192x8192x8192 f16"]
        timed = "2048x2048x2048 f16"

        [steps.step10]
        points = 15
        fast = 1.3
        sizes = ["1024x1024x1024 f16", "2048x2048x2048 f16", "4096x4096x4096 f16", "8192x8192x8192 f16"]
        timed = "2048x2048x2048 f16"
    "##]].assert_eq(&Rubric::default().to_toml());
}

/// The solution of a step, which refuses one size.
struct Refuses(InProcess, Problem);

impl KernelSource for Refuses {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        if *problem == self.1 {
            return Err(BuildFailure::no_answer("this size is refused"));
        }
        self.0.build(problem, sms)
    }
}

#[test]
fn the_judge_asks_for_the_sizes_and_the_time_of_a_rubric() {
    let solution = |step: u8| solutions::ALL.iter().find(|(number, _)| *number == step).expect("there").1;
    let judged = |step: u8, source: &dyn KernelSource, text: &str| {
        let demands = Rubric::parse("r", text).expect("a rubric").demands();
        judge(
            harness::step(step).expect("a step"),
            source,
            &JudgeOptions { demands, seeds: 0, ..JudgeOptions::default() },
        )
    };
    // A size that no other step or case has.
    let asked = Problem::f16(128, 128, 8256);
    let source = Refuses(InProcess(solution(2)), asked);
    let verdict = judged(2, &source, "[steps.step02]\nsizes = [\"128x128x8256 f16\"]\n");
    let Outcome::Failed { text, .. } = verdict.part(Part::Correct) else { panic!("{verdict:?}") };
    assert!(text.contains("this size is refused") && text.contains("Built for 128x128x8256 f16"), "{text}");
    let source = Refuses(InProcess(solution(2)), asked);
    let verdict = judged(2, &source, "[steps.step02]\ntimed = \"128x128x8256 f16\"\n");
    assert!(!verdict.part(Part::Correct).passed(), "the size that is timed must be solved: {verdict:?}");
    // Step 1 by hand takes as long as the reference, which is it: twice as fast is asked of it here, past what a file may ask.
    let demands = Demands { fast: BTreeMap::from([(1, 0.5)]), ..Demands::default() };
    let options = JudgeOptions { demands, seeds: 0, ..JudgeOptions::default() };
    let verdict = judge(harness::step(1).expect("a step"), &InProcess(solution(1)), &options);
    let Outcome::Failed { text, .. } = verdict.part(Part::Fast) else { panic!("{verdict:?}") };
    assert!(text.contains("the limit is 0.50 times"), "{text}");
    let verdict = judged(2, &InProcess(solution(2)), "[steps.step02]\ntimed = \"128x128x8256 f16\"\n");
    assert!(verdict.part(Part::Fast).passed(), "held against the reference at this size: {verdict:?}");
    assert!(judged(1, &InProcess(solution(1)), "fast = 1.0\n").part(Part::Fast).passed());
}
