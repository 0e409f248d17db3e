//! What ptxas takes and what the emulator loads, statement by statement, over the forms of the ISA and many opcodes that are none.
//!
//! What ptxas refuses, the emulator refuses: a kernel that it accepts must be one that can run. What ptxas takes and the emulator
//! refuses is in `vocabulary/not_modelled.txt`, with the reason. ptxas looks at statements before it makes code of them; what it finds only
//! then is not asked here. Of what ptxas refuses, an eighth is tried; with `VOCABULARY=all` all of it, which takes minutes.

#[path = "vocabulary/ask.rs"]
mod ask;
#[path = "vocabulary/expand.rs"]
mod expand;
#[path = "vocabulary/listed.rs"]
mod listed;
#[path = "vocabulary/nearest.rs"]
mod nearest;
#[path = "vocabulary/operands.rs"]
mod operands;
#[path = "../../ptx/tests/ptxas/mod.rs"]
#[allow(dead_code)]
mod ptxas;

use ask::{entry, head, refused};
use std::collections::BTreeSet;

const BLACKWELL: &str = include_str!("vocabulary/forms.txt");
const HOPPER: &str = include_str!("vocabulary/hopper.txt");
const NOT_MODELLED: &str = include_str!("vocabulary/not_modelled.txt");

/// The beginnings of statements that are not modelled, each with the reason.
fn not_modelled() -> Vec<(&'static str, &'static str)> {
    let lines = NOT_MODELLED.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| line.split_once(" | ").expect("`beginning of a statement | reason`")).collect()
}

/// Compares the two; which lines of the list were of use.
fn compare(target: &str, patterns: &str) -> Option<BTreeSet<&'static str>> {
    let ptxas = ptxas::there()?;
    let statements = expand::statements(patterns);
    let refused = refused(&ptxas, (target, "vocabulary"), &statements);
    let known = not_modelled();
    let (mut used, mut wrong, mut missing, mut both) = (BTreeSet::new(), Vec::new(), Vec::new(), 0);
    let all = std::env::var_os("VOCABULARY").is_some_and(|which| which == "all");
    for (n, statement) in statements.iter().enumerate() {
        if !all && refused.contains_key(&n) && n % 8 != 0 {
            continue;
        }
        match (emulator::load(&format!("{}{}", head(target), entry(n, statement))), refused.get(&n)) {
            (Ok(_), None) => both += 1,
            (Ok(_), Some(why)) => wrong.push(format!("{statement}: {why}")),
            // Every word of it is in the list of the ISA's.
            (Err(errors), None) if errors[0].code == "ptx-syntax" => {
                missing.push(format!("{statement}: said to be no PTX: {}", errors[0].title))
            }
            (Err(errors), None) => match known.iter().find(|(begin, _)| statement.starts_with(begin)) {
                Some((begin, _)) => _ = used.insert(*begin),
                None => missing.push(format!("{statement}: {}", errors[0].title)),
            },
            (Err(_), Some(_)) => {}
        }
    }
    println!("{target}: {} statements, both take {both}, ptxas refuses {}", statements.len(), refused.len());
    let some = |list: &[String]| list.iter().take(400).cloned().collect::<Vec<_>>().join("\n");
    assert!(
        wrong.is_empty(),
        "{target}: the emulator loads {} statements that ptxas refuses:\n{}",
        wrong.len(),
        some(&wrong)
    );
    assert!(
        missing.is_empty(),
        "{target}: ptxas takes {} statements that are neither modelled nor in not_modelled.txt:\n{}",
        missing.len(),
        some(&missing)
    );
    assert!(both > 100, "{target}: both take {both} statements: the patterns are not read");
    Some(used)
}

#[test]
fn what_ptxas_refuses_is_refused_and_what_it_takes_is_modelled_or_on_the_list() {
    let (Some(mut used), Some(hopper)) = (compare("sm_100a", BLACKWELL), compare("sm_90a", HOPPER)) else { return };
    used.extend(hopper);
    let unused: Vec<&str> = not_modelled().into_iter().map(|(begin, _)| begin).filter(|b| !used.contains(b)).collect();
    assert!(unused.is_empty(), "in not_modelled.txt, and modelled, or of no statement: {unused:#?}");
}

/// What is refused is not offered as the form to write instead.
#[test]
fn no_refusal_names_what_was_written_as_the_nearest_form() {
    let mut repeated = BTreeSet::new();
    let mut asked = 0;
    for (target, patterns) in [("sm_100a", BLACKWELL), ("sm_90a", HOPPER)] {
        let mut known = BTreeSet::new();
        for (n, statement) in expand::statements(patterns).iter().enumerate() {
            // What is said of an opcode is said of it with any operands.
            let opcode = statement.split_whitespace().find(|word| !word.starts_with('@')).unwrap_or_default();
            if known.contains(opcode) {
                continue;
            }
            let Err(errors) = emulator::load(&format!("{}{}", head(target), entry(n, statement))) else { continue };
            let Some((_, form)) = errors[0].help.split_once("The nearest form that is modelled: `") else { continue };
            known.insert(opcode.to_string());
            asked += 1;
            if form.split('`').next() == Some(opcode) {
                repeated.insert(opcode.to_string());
            }
        }
    }
    assert!(asked > 1000, "{asked} refusals name a form: the patterns are not read");
    assert!(repeated.is_empty(), "{} refusals name what was written: {repeated:#?}", repeated.len());
}
