//! Kernels with the traffic of their step whose D comes from somewhere else: the tensor core multiplies, and threads compute what
//! is stored. D is right, and the kernel is none of its step. (`tests/honesty.rs` has step 1 in full.)

use harness::steps::Case;
use harness::{BuildFailure, Built, InProcess, JudgeOptions, KernelSource, Outcome, Problem, Step, step, structure};

/// Why the structure of an edited solution fails: all that is otherwise.
#[track_caller]
fn why(step: &Step, name: &str, source: &dyn KernelSource) -> String {
    colored::control::set_override(false);
    match structure(step, source, &JudgeOptions::default()) {
        Outcome::Failed { text, .. } => text,
        other => panic!("`{name}` as step {}: {other:?}", step.number),
    }
}

#[track_caller]
fn fails(number: u8, name: &str, with: &str) {
    let text = why(step(number).expect("the step exists"), name, &InProcess(edited::kernel(name)));
    assert!(text.contains(with), "`{name}` fails, but not because of `{with}`:\n{text}");
}

/// What the probe says.
const NOT_DOUBLED: &str =
    "when the emulator doubles each of these values, element (0, 0) of this kernel's D is not doubled";

#[test]
fn one_column_by_threads_in_steps_1_to_3() {
    for number in 1..=3 {
        fails(number, &format!("decoy_{number}"), NOT_DOUBLED);
    }
}

/// Honest at the size that is looked at closely: two others, which the seed chooses, show what it is.
#[test]
fn a_decoy_at_all_sizes_but_one() {
    fails(2, "decoy_elsewhere_2", NOT_DOUBLED);
}

macro_rules! loaded_by_a_thread {
    ($($name:ident $number:literal),+ $(,)?) => {
        $(#[test]
        fn $name() {
            let with = "A, B and D move by TMA only; in this kernel a thread loads from A (solutions/edited/src/lib.rs:";
            fails($number, concat!("decoy_", $number), with);
        })+
    };
}
loaded_by_a_thread!(
    one_column_by_threads_in_step_4 4,
    one_column_by_threads_in_step_5 5,
    one_column_by_threads_in_step_6 6,
    one_column_by_threads_in_step_7 7,
    one_column_by_threads_in_step_8 8,
    one_column_by_threads_in_step_9 9,
    one_column_by_threads_in_step_10 10,
);

#[test]
fn one_element_from_the_tiles_that_tma_brought() {
    fails(4, "decoy_shared_4", NOT_DOUBLED);
}

/// Right and fast enough, but each consumer waits until its tile is stored.
#[test]
fn accumulators_that_are_handed_back_behind_the_stores() {
    for (number, name) in [(7, "late_7"), (10, "late_10")] {
        fails(number, name, "in this kernel no MMA of a tile begins before the tile before it is stored");
    }
}

#[test]
fn a_tile_without_swizzle() {
    let with = "tiles in shared memory have the 128-byte swizzle; in this kernel a tensor map of D has no swizzle";
    fails(4, "unswizzled_4", with);
}

/// A kernel whose `[ADDRESS]` is that of its load from tensor memory.
struct Addressed(ptx::KernelFn);

impl KernelSource for Addressed {
    fn build(&self, problem: &Problem, sms: u32) -> Result<Built, BuildFailure> {
        let mut built = InProcess(self.0).build(problem, sms)?;
        let load = built.ptx.lines().find(|line| line.contains("tcgen05.ld.")).expect("it loads from tensor memory");
        let address = &load[load.find('[').expect("from an address")..=load.find(']').expect("from an address")];
        assert_eq!(built.ptx.matches("[ADDRESS]").count(), 1, "{}", built.ptx);
        built.ptx = built.ptx.replace("[ADDRESS]", address);
        Ok(built)
    }
}

#[test]
fn one_column_that_threads_put_to_tensor_memory() {
    let name = "decoy_tensor_store_2";
    let text = why(step(2).expect("the step exists"), name, &Addressed(edited::kernel(name)));
    assert!(text.contains(NOT_DOUBLED), "{text}");
}

/// A step that looks at one tile and one round: threads that compute all of D take their time.
fn small(number: u8) -> Step {
    let observed = Case { problem: Problem::f16(128, 128, 64), sms: None };
    Step { observed, sizes: &[], cases: &[], timed: observed.problem, ..*step(number).expect("the step exists") }
}

#[test]
fn mmas_of_zeros() {
    for (number, name) in [(2, "decoy_zero_2"), (4, "decoy_zero_4")] {
        let text = why(&small(number), name, &InProcess(edited::kernel(name)));
        let with = "each MMA multiplies 16 columns of rows of A with the same columns of rows of B, no two of them the same; in \
                    this kernel one multiplies something else";
        assert!(text.contains(with), "`{name}`: {text}");
    }
}

/// The same with two rounds.
fn two_rounds(number: u8) -> Step {
    let observed = Case { problem: Problem::f16(128, 128, 128), sms: None };
    Step { observed, timed: observed.problem, ..small(number) }
}

#[test]
fn as_many_mmas_as_it_takes_but_some_of_them_twice() {
    let text = why(&two_rounds(2), "again_2", &InProcess(edited::kernel("again_2")));
    let with = "in this kernel one multiplies rows 0 of A and 0 of B at column 0 once more";
    assert!(text.contains(with), "{text}");
}

/// As many multiplications more as the problem takes, or one K tile of two fewer: D is right all the same.
#[test]
fn more_mmas_and_fewer_are_counted() {
    for (number, name) in [(2, "more_2"), (4, "more_4"), (6, "more_6"), (7, "more_7"), (9, "more_9")] {
        let step = step(number).expect("the step exists");
        let all = step.shape.products(&step.observed.problem);
        let text = why(step, name, &InProcess(edited::kernel(name)));
        let with =
            format!("the product takes {all} multiplications on the tensor core, whole tiles counted; this kernel's ");
        assert!(text.contains(&with) && text.contains(&format!("MMAs do {all} more")), "`{name}`: {text}");
    }
    for (number, name) in [(2, "fewer_2"), (4, "fewer_4")] {
        let text = why(&two_rounds(number), name, &InProcess(edited::kernel(name)));
        let with = "the product takes 2097152 multiplications on the tensor core, whole tiles counted; this kernel's 4 MMAs do \
                    1048576 fewer";
        assert!(text.contains(with), "`{name}`: {text}");
    }
}
