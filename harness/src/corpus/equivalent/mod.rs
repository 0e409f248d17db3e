//! Which mutants cannot behave otherwise than the solution, and why: rules that are proofs.
//!
//! A rule holds of a kernel without findings, of which it is proved that no interleaving hangs: [`super::run`] looks for both before
//! anything is changed. Where a rule says "more", the mutant allows a part of what the solution allows. What a rule says is held
//! against the emulator, too: a mutant that is proved and caught is an error, of one of the two.

mod barriers;
mod data;
mod fences;
mod guards;
mod heard;
mod moved;
#[cfg(test)]
mod near;
mod repeated;

pub(super) use barriers::tells_of_initialisations;

use super::kernels::Kernel;
use super::text::{Statement, Text};
use super::{Mutant, What};

/// A rule.
#[derive(Debug)]
pub struct Rule {
    /// Its name.
    pub name: &'static str,
    /// Why nothing that anyone can observe changes.
    pub because: &'static str,
    applies: fn(&Kernel, &Mutant) -> bool,
}

/// All of them.
pub const RULES: &[Rule] = &[
    Rule {
        name: "doubled-without-effect",
        because: "behind itself it has nothing left to do: a fence, a wait for groups or for tensor memory, an election",
        applies: |kernel, mutant| repeated::doubled_without_effect(&kernel.text, mutant),
    },
    Rule {
        name: "a-group-of-nothing",
        because: "more groups, all empty, so that a wait that leaves so many open waits for more of the others",
        applies: |kernel, mutant| repeated::a_group_of_nothing(&kernel.text, mutant),
    },
    Rule {
        name: "asks-for-more",
        because: "it waits for more groups, or for their writes too, which end by themselves; or orders more memory",
        applies: |kernel, mutant| repeated::asks_for_more(&kernel.text, mutant),
    },
    Rule {
        name: "said-explicitly",
        because: "it is the default, written out or left out; or a wider scope; or a promise less",
        applies: |kernel, mutant| repeated::said_explicitly(&kernel.text, mutant),
    },
    Rule {
        name: "across-what-it-does-not-order",
        because: "a fence or a wait of tensor memory and a plain access, or another fence, of other memory",
        applies: |kernel, mutant| moved::across_what_it_does_not_order(&kernel.text, mutant),
    },
    Rule {
        name: "fenced-again-behind",
        because: "another such fence comes before any access of tensor memory, and orders as much",
        applies: |kernel, mutant| fences::fenced_again_behind(&kernel.text, mutant),
    },
    Rule {
        name: "hears-of-loads-alone",
        because: "behind a wait for loads there is nothing to order but MMAs of the same thread, which are in order by themselves",
        applies: heard::hears_of_loads_alone,
    },
    Rule {
        name: "waited-again-behind",
        because: "the warp waits for its loads again before it tells anybody that the columns are free",
        applies: |kernel, mutant| fences::waited_again_behind(&kernel.text, mutant),
    },
    Rule {
        name: "used-before-told",
        because: "the warp stores all that it has loaded, which waits for the loads, before it tells anybody anything, and no column is written behind it",
        applies: |kernel, mutant| fences::used_before_told(&kernel.text, mutant),
    },
    Rule {
        name: "fence-behind-the-barrier",
        because: "all who meet execute the fence when they have met, before anything else",
        applies: |kernel, mutant| barriers::fence_behind_the_barrier(&kernel.text, mutant),
    },
    Rule {
        name: "meets-twice",
        because: "the same threads come to it each time, all together: whoever passes the first comes to the second",
        applies: |kernel, mutant| barriers::meets_twice(&kernel.text, mutant),
    },
    Rule {
        name: "another-free-barrier",
        because: "the same threads come to it each time, all together, and nobody else uses that number at that time",
        applies: |kernel, mutant| barriers::another_free_barrier(&kernel.text, mutant),
    },
    Rule {
        name: "fenced-all-the-same",
        because: "behind all initialisations and in front of their barrier the same thread fences them, or orders them for the asynchronous proxy",
        applies: barriers::fenced_all_the_same,
    },
    Rule {
        name: "told-by-the-barrier-behind",
        because: "the barrier behind it releases and acquires for all threads of the cluster, which is more than the fence does",
        applies: |kernel, mutant| barriers::told_by_the_barrier_behind(kernel, mutant),
    },
    Rule {
        name: "told-by-the-fence",
        because: "there is nothing to tell before it but initialisations, and the fence tells of them",
        applies: |kernel, mutant| barriers::told_by_the_fence(&kernel.text, mutant),
    },
    Rule {
        name: "nothing-behind-it",
        because: "the kernel ends behind it: there is no access to be ordered",
        applies: |kernel, mutant| barriers::nothing_behind_it(&kernel.text, mutant),
    },
    Rule {
        name: "nothing-left-to-order",
        because: "who frees tensor memory behind the last barrier has heard of its uses at an earlier one",
        applies: barriers::nothing_left_to_order,
    },
    Rule {
        name: "in-the-loop-as-well",
        because: "it stands before the branch back and not behind it: who leaves the loop has waited or fenced, others do it more often",
        applies: |kernel, mutant| moved::in_the_loop_as_well(&kernel.text, mutant),
    },
    Rule {
        name: "registers-of-no-wait",
        because: "wgmma.fence orders registers, and a wait for an mbarrier touches none of them",
        applies: |kernel, mutant| moved::registers_of_no_wait(&kernel.text, mutant),
    },
    Rule {
        name: "expected-behind-the-copy",
        because: "the phase does not end before this arrival, which counts the bytes as it arrives",
        applies: |kernel, mutant| moved::expected_behind_the_copy(&kernel.text, mutant),
    },
    Rule {
        name: "only-waits-for-groups",
        because: "threads more wait for groups of their own: without groups they pass, with groups they wait for more",
        applies: |kernel, mutant| guards::only_waits_for_groups(&kernel.text, mutant),
    },
    Rule {
        name: "waits-before-its-end",
        because: "nothing behind it writes to what the groups read, and the thread still waits before its end",
        applies: |kernel, mutant| guards::waits_before_its_end(&kernel.text, mutant),
    },
    Rule {
        name: "guarded-again-inside",
        because: "all that has an effect in the part is guarded again, for warps of the same group",
        applies: |kernel, mutant| guards::guarded_again_inside(&kernel.text, mutant),
    },
    Rule {
        name: "a-register-for-nobody",
        because: "the register serves only to compute itself",
        applies: |kernel, mutant| data::a_register_for_nobody(&kernel.text, mutant),
    },
    Rule {
        name: "leading-offset-unused",
        because: "a swizzled K-major tile has no leading offset: it is not used (PTX ISA, tcgen05: strides)",
        applies: |kernel, mutant| data::leading_offset_unused(&kernel.text, mutant),
    },
    Rule {
        name: "bits-are-copied",
        because: "types of the same size are copied alike: nothing is added, nothing is filled with NaN",
        applies: data::bits_are_copied,
    },
    SAME_MACHINE_CODE,
];

/// The last rule. [`super::run`] asks the assembler about all mutants; this proves those of which nothing is found. Where a finding names the rule
/// of PTX that is broken, another version of the assembler may make something else of it: these are counted beside the table.
pub const SAME_MACHINE_CODE: Rule = Rule {
    name: "same-machine-code",
    because: "ptxas writes the same instructions for it as for the solution, but for what does nothing",
    applies: |_, _| false,
};

/// The first rule that proves a mutant to be no bug.
pub fn rule(kernel: &Kernel, mutant: &Mutant) -> Option<&'static Rule> {
    RULES.iter().find(|rule| (rule.applies)(kernel, mutant))
}

/// The changed instruction, read again: its place, and what stands there now.
fn now(mutant: &Mutant) -> Option<(usize, Statement)> {
    let What::Changed(at, code) = &mutant.what else { return None };
    let text = Text::new(&format!("{{\n{code}\n}}"));
    text.statements.into_iter().next().map(|statement| (*at, statement))
}

/// Two neighbours that changed places, in the order of the solution.
fn neighbours<'a>(text: &'a Text, mutant: &Mutant) -> Option<(usize, &'a Statement, usize, &'a Statement)> {
    let What::Moved(at, across) = mutant.what else { return None };
    let (first, second) = (at.min(across), at.max(across));
    Some((first, &text.statements[first], second, &text.statements[second]))
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::{Change, Kind, mutant};
    use super::*;

    /// A text of these lines.
    pub fn text(lines: &str) -> Text {
        Text::new(&format!("{{\n{lines}\n}}"))
    }

    /// The first statement that begins so.
    pub fn at(text: &Text, code: &str) -> usize {
        text.find(|statement| statement.code().starts_with(code)).next().unwrap_or_else(|| panic!("no {code}"))
    }

    /// A mutant of which only this is known.
    pub fn made(what: What) -> Mutant {
        mutant("", Kind::Systematic, what, Change::Lines(Vec::new()))
    }

    #[test]
    fn rules_have_names_of_their_own_and_reasons() {
        for (n, rule) in RULES.iter().enumerate() {
            assert!(RULES[..n].iter().all(|other| other.name != rule.name), "{}", rule.name);
            assert!(!rule.because.ends_with('.') && rule.because.len() > 10, "{}", rule.name);
        }
    }
}
