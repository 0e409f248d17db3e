//! The form that an error names as the nearest one is a form that loads.

use super::ask::load;
use super::expand::{opcodes, operands, statements, with_registers};
use super::{BLACKWELL, HOPPER};
use std::collections::{BTreeMap, BTreeSet};

/// The form that an error offers.
fn offered(help: &str) -> Option<&str> {
    let behind =
        ["The nearest form that is modelled: `", "Did you mean `"].iter().find_map(|text| help.split_once(text));
    behind?.1.split('`').next()
}

/// One opcode out of so many is changed.
const STEP: usize = 601;

/// Opcodes one word away from these: another modifier in a place, of those that the patterns have anywhere behind the same name; one that
/// is left out.
fn near_misses(opcodes: &BTreeSet<String>) -> BTreeSet<String> {
    let base = |opcode: &str| opcode.split('.').next().unwrap_or_default().to_string();
    let mut words: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for opcode in opcodes {
        words.entry(base(opcode)).or_default().extend(opcode.split('.').skip(1));
    }
    let mut all = BTreeSet::new();
    for opcode in opcodes.iter().step_by(STEP) {
        let parts: Vec<&str> = opcode.split('.').collect();
        for n in 1..parts.len() {
            let mut fewer = parts.clone();
            fewer.remove(n);
            all.insert(fewer.join("."));
            for other in &words[&base(opcode)] {
                let mut changed = parts.clone();
                changed[n] = other;
                all.insert(changed.join("."));
            }
        }
    }
    all
}

#[test]
fn the_nearest_form_that_an_error_names_loads() {
    let mut asked = 0;
    let mut wrong = BTreeSet::new();
    for (target, patterns) in [("sm_100a", BLACKWELL), ("sm_90a", HOPPER)] {
        let mut own: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for statement in statements(patterns) {
            let opcode = statement.split(' ').next().unwrap_or_default().to_string();
            own.entry(opcode).or_default().push(statement);
        }
        let operands = operands(patterns);
        let loads = |form: &str| {
            let base = form.split('.').next().unwrap_or_default();
            let other = operands.get(base).into_iter().flatten().map(|pattern| with_registers(form, pattern));
            own.get(form).into_iter().flatten().cloned().chain(other).any(|statement| load(target, &statement).is_ok())
        };
        let mut known: BTreeMap<String, bool> = BTreeMap::new();
        let misses = near_misses(&opcodes(patterns));
        for opcode in &misses {
            let Err(error) = load(target, &format!("{opcode} %r0, %r1")) else { continue };
            // Parameters of a call are stored to: there is none here.
            let Some(form) = offered(&error.help).filter(|form| !form.starts_with("st") || !form.contains(".param"))
            else {
                continue;
            };
            asked += 1;
            if !*known.entry(form.to_string()).or_insert_with(|| loads(form)) {
                wrong.insert(format!("{form} (asked for {opcode})"));
            }
        }
    }
    println!("{asked} refusals name a form");
    assert!(asked > 1000, "{asked} refusals name a form: the patterns are not read");
    let list: Vec<&str> = wrong.iter().map(String::as_str).collect();
    assert!(wrong.is_empty(), "{} forms are offered that do not load:\n{}", wrong.len(), list.join("\n"));
}
