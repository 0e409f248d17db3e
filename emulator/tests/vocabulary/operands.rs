//! The operands of every form that is listed: one too many, one too few, and others in their places; ptxas is asked about each.

use super::ask::{load, refused};
use super::expand::statements;
use super::listed::{sorted, written_out};
use super::{BLACKWELL, HOPPER, ptxas};
use std::collections::{BTreeMap, BTreeSet};

const TARGETS: [(&str, &str); 2] = [("sm_100a", BLACKWELL), ("sm_90a", HOPPER)];

/// Which form is of an opcode: as it is written, since types may be exchanged, or else by its sorted parts.
struct Forms {
    written: BTreeMap<&'static str, usize>,
    sorted: BTreeMap<Vec<&'static str>, usize>,
}

impl Forms {
    fn all() -> Forms {
        let mut all = Forms { written: BTreeMap::new(), sorted: BTreeMap::new() };
        for (n, form) in emulator::FORMS.iter().enumerate() {
            for opcode in written_out(&mut &**form) {
                let opcode: &'static str = opcode.leak();
                all.written.entry(opcode).or_insert(n);
                all.sorted.entry(sorted(opcode)).or_insert(n);
            }
        }
        all
    }

    fn of(&self, opcode: &str) -> Option<usize> {
        self.written.get(opcode).or_else(|| self.sorted.get(&sorted(opcode))).copied()
    }
}

/// An operand's kind: its register class, or what it is made of.
fn kind(operand: &str) -> String {
    let plain: String = operand.chars().filter(|c| !c.is_ascii_digit() && *c != ' ').collect();
    if operand.starts_with(|c: char| c.is_ascii_digit() || c == '-') { "constant".into() } else { plain }
}

/// The operands of a statement.
fn split(operands: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut all) = (0, 0, Vec::new());
    for (n, c) in operands.char_indices() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                all.push(operands[begin..n].trim());
                begin = n + 1;
            }
            _ => {}
        }
    }
    all.push(operands[begin..].trim());
    all.retain(|operand| !operand.is_empty());
    all
}

/// Of each form, and each way to write its operands, a statement that loads.
fn rows(target: &str, patterns: &str) -> Vec<(usize, String)> {
    let forms = Forms::all();
    let mut rows: BTreeMap<(usize, Vec<String>), String> = BTreeMap::new();
    for statement in statements(patterns) {
        let (opcode, operands) = statement.split_once(' ').unwrap_or((&statement, ""));
        let Some(form) = forms.of(opcode) else { continue };
        let key = (form, split(operands).into_iter().map(kind).collect());
        if !rows.contains_key(&key) && load(target, &statement).is_ok() {
            rows.insert(key, statement);
        }
    }
    rows.into_iter().map(|((form, _), statement)| (form, statement)).collect()
}

/// Other statements of an opcode: another number of operands, and each of them something else.
fn others(statement: &str) -> Vec<String> {
    let (opcode, operands) = statement.split_once(' ').unwrap_or((statement, ""));
    let operands = split(operands);
    let write = |list: &[&str]| format!("{opcode} {}", list.join(", ")).trim_end().to_string();
    let mut all = Vec::new();
    for more in ["%r1", "1", "%p1", "%d1", "[%d1]"] {
        all.push(write(&[&operands[..], &[more]].concat()));
    }
    for n in 0..operands.len() {
        let mut fewer = operands.clone();
        fewer.remove(n);
        all.push(write(&fewer));
        let own = operands[n];
        let mut instead: Vec<String> = [
            "_", "0", "1", "48", "-1", "70000", "2000000", "%h1", "%r1", "%d1", "%p1", "!%p1", "%f1", "0.5", "[%d1]",
            "[%r1]", "{%r1}", "DONE",
        ]
        .map(String::from)
        .into();
        if let Some((a, b)) = own.split_once('|') {
            instead.extend([
                a.into(),
                format!("{a}|_"),
                format!("_|{b}"),
                "_|_".into(),
                format!("0|{b}"),
                format!("{a}|%r1"),
            ]);
        } else {
            instead.extend([format!("{own}|%p3"), format!("{own}|_")]);
        }
        if let Some(list) = own.strip_prefix('{').and_then(|own| own.strip_suffix('}')) {
            let parts = split(list);
            let vector = |parts: Vec<&str>| format!("{{{}}}", parts.join(", "));
            for other in ["_", "0", "1", "%d1", "%h1", "%p1"] {
                instead.push(vector([&parts[..parts.len() - 1], &[other]].concat()));
                instead.push(vector(vec![other; parts.len()]));
            }
            instead.push(vector(parts[1..].to_vec()));
            instead.push(vector([&parts[..], &["%r1"]].concat()));
        }
        if let Some(base) = own.strip_prefix('[').and_then(|own| own.strip_suffix(']'))
            && !base.contains(',')
        {
            instead.extend([
                format!("[{base}+4]"),
                format!("[{base}+%r1]"),
                "[%h1]".into(),
                "[16]".into(),
                format!("[{base}, {{%r1}}]"),
            ]);
            instead.push(base.into());
        }
        for other in instead {
            let mut changed = operands.clone();
            changed[n] = &other;
            all.push(write(&changed));
        }
    }
    all.sort_unstable();
    all.dedup();
    all.retain(|other| other != statement);
    all
}

/// Every form has a row here, but for calls, which need a function.
fn all_rows() -> Vec<(&'static str, String)> {
    let (mut seen, mut all) = (BTreeSet::new(), Vec::new());
    for (target, patterns) in TARGETS {
        for (form, row) in rows(target, patterns) {
            seen.insert(form);
            all.push((target, row));
        }
    }
    let missing: Vec<&str> =
        (0..emulator::FORMS.len()).filter(|n| !seen.contains(n)).map(|n| emulator::FORMS[n]).collect();
    assert_eq!(missing, ["call{.uni}?"], "forms without a statement in vocabulary/forms.txt");
    all
}

/// The beginnings of statements that have operands which may be left out.
const OPTIONAL: &[&str] = &[
    // scale-input-d
    "tcgen05.mma.cta_group::1.kind::f16",
    "tcgen05.mma.cta_group::2.kind::f16",
    // How many arrivals.
    "mbarrier.arrive.b64",
    "mbarrier.arrive_drop.b64",
    "mbarrier.arrive_drop.shared.b64",
    // For how long.
    "mbarrier.try_wait.",
    // How many threads.
    "bar.cta.sync",
    "bar.sync",
    "barrier.cta.sync",
    "barrier.sync",
    "bar.cta.red.",
    "barrier.cta.red.",
    // How much of it.
    "createpolicy.fractional.",
    // So many bytes, or whether any.
    "cp.async.ca.shared.global",
    // A third number.
    "max.NaN.f32",
];

/// Of each form: with an operand more, and without its last one, it is refused. No ptxas is needed for this.
#[test]
fn an_operand_too_many_or_too_few_is_refused() {
    let mut wrong = Vec::new();
    for (target, row) in all_rows() {
        let (opcode, operands) = row.split_once(' ').unwrap_or((&row, ""));
        let mut list = split(operands);
        let mut others: Vec<String> = ["%r1", "1", "%p1", "%d1", "[%d1]"]
            .iter()
            .map(|more| format!("{opcode} {}", [&list[..], &[*more]].concat().join(", ")))
            .collect();
        if list.pop().is_some() {
            others.push(format!("{opcode} {}", list.join(", ")));
        }
        for other in others {
            if load(target, &other).is_ok() && !OPTIONAL.iter().any(|begin| other.starts_with(begin)) {
                wrong.push(format!("{other} (of {row})"));
            }
        }
    }
    assert!(wrong.is_empty(), "{} statements load:\n{}", wrong.len(), wrong.join("\n"));
}

/// Other operands in each place of each form: what loads, ptxas takes.
#[test]
fn operands_that_ptxas_refuses_are_refused() {
    let Some(ptxas) = ptxas::there() else { return };
    let all = all_rows();
    let mut wrong = Vec::new();
    for (target, _) in TARGETS {
        let of_target = all.iter().filter(|row| row.0 == target);
        let others: BTreeSet<String> = of_target.flat_map(|row| others(&row.1)).collect();
        let asked = others.len();
        let loaded: Vec<String> = others.into_iter().filter(|other| load(target, other).is_ok()).collect();
        println!("{target}: {asked} statements with other operands, {} load", loaded.len());
        assert!(loaded.len() > 300, "{target}: {} load: the patterns are not read", loaded.len());
        let refused = refused(&ptxas, (target, "operands"), &loaded);
        wrong.extend(refused.iter().map(|(n, why)| format!("{}: {why}", loaded[*n])));
    }
    assert!(
        wrong.is_empty(),
        "the emulator loads {} statements that ptxas refuses:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
