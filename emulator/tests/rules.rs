//! Each rule of the table `RULES`, proved by kernels: one that needs the rule and is clean, and its twin, the same without the rule,
//! that is not; the other way round where the rule says that there is no order. `docs/rules.md` prints the table.

#[path = "rules/case.rs"]
mod case;
mod common;
#[path = "rules/copies.rs"]
mod copies;
#[path = "rules/memory.rs"]
mod memory;
#[path = "rules/tensor.rs"]
mod tensor;

use case::{CLUSTER, Case, GRID_OF_TWO, PAIR, Shows, blames, passes};
use emulator::RULES;
use expect_test::expect_file;
use std::collections::BTreeSet;
use std::fmt::Write;

fn prove(cases: &[Case]) {
    cases.iter().for_each(Case::prove);
}

#[test]
fn plain_and_strong_accesses() {
    prove(&memory::generic());
}

#[test]
fn execution_barriers() {
    prove(&memory::barriers());
}

#[test]
fn mbarriers() {
    prove(&memory::mbarriers());
    prove(&memory::scopes());
}

/// The finding names the arrival or the wait.
#[test]
fn scopes_that_are_too_narrow() {
    for (body, line, help) in memory::too_narrow() {
        blames(CLUSTER, &body, line, help);
    }
}

/// Kernels in which scopes are looked at, and are wide enough.
#[test]
fn scopes_that_suffice() {
    for (why, shape, body) in memory::wide_enough() {
        passes(shape, &body, why);
    }
}

#[test]
fn proxies() {
    prove(&copies::proxies());
}

#[test]
fn tensor_maps() {
    prove(&copies::maps());
}

#[test]
fn copies() {
    prove(&copies::copies());
}

#[test]
fn tensor_memory() {
    prove(&tensor::tensor());
}

#[test]
fn warpgroups() {
    prove(&tensor::hopper());
}

/// "Where the emulator is milder than the ISA" in `docs/rules.md` (races within a warp: the rule `one-warp`).
#[test]
fn milder_than_the_isa() {
    passes(CLUSTER, &memory::handed_back_at_cta_scope(), "an mbarrier at .cta scope hands a buffer back");
    passes(CLUSTER, &memory::fence_beside_cta_scope(), "fences at .cluster scope beside an mbarrier at .cta scope");
    passes(GRID_OF_TWO, &memory::fenced_by_others(), "fences of the other warp in front of and behind a CTA barrier");
    passes(PAIR, &tensor::chained(), "an accumulator as the A of the next MMA");
    passes(PAIR, &tensor::own_commit(), "no fence::after behind the own commit");
}

fn cases() -> Vec<Case> {
    let lists = [
        memory::generic(),
        memory::barriers(),
        memory::mbarriers(),
        memory::scopes(),
        copies::proxies(),
        copies::maps(),
        copies::copies(),
        tensor::tensor(),
        tensor::hopper(),
    ];
    lists.into_iter().flatten().collect()
}

/// Every rule has a kernel, and every kernel a rule, of the same sort.
#[test]
fn every_rule_is_proved() {
    let cases = cases();
    let rules: BTreeSet<(&str, bool)> = RULES.iter().map(|rule| (rule.name, rule.denies())).collect();
    let proved: BTreeSet<(&str, bool)> = cases.iter().map(|case| (case.rule, case.shows == Shows::None)).collect();
    assert_eq!(rules, proved);
    for code in cases.iter().flat_map(|case| case.codes) {
        assert!(emulator::CODES.iter().any(|(known, _)| known == code), "`{code}` is not in CODES");
    }
}

/// The table of `docs/rules.md` is that of the code (`UPDATE_EXPECT=1` writes it).
#[test]
fn the_documentation_holds_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/rules.md");
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let begin = "## The table\n";
    let (head, _) = text.split_once(begin).unwrap_or((&text, ""));
    let mut page = format!("{head}{begin}\n| rule | first | then | orders | source |\n|---|---|---|---|---|\n");
    for rule in RULES {
        let _ =
            writeln!(page, "| `{}` | {} | {} | {} | {} |", rule.name, rule.first, rule.then, rule.orders, rule.source);
    }
    expect_file![path].assert_eq(&page);
}
