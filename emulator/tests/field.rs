//! What kernels in the field use, against what the emulator says it models: `field/mnemonics.txt` is the list, `forms/list.txt` has a
//! statement that loads for each, `forms/refused.txt` what is not modelled yet.

#[path = "vocabulary/listed.rs"]
mod listed;

use listed::{sorted, written_out};
use std::collections::{BTreeMap, BTreeSet};

const FIELD: &str = include_str!("field/mnemonics.txt");
const LIST: &str = include_str!("forms/list.txt");
const REFUSED: &str = include_str!("forms/refused.txt");

fn first_words(list: &str) -> BTreeSet<&str> {
    let lines = list.lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(|line| line.split_whitespace().next()).map(|word| word.trim_end_matches(';')).collect()
}

#[test]
fn what_the_field_uses_is_modelled_or_on_the_list_of_what_is_not_yet() {
    let (modelled, refused) = (first_words(LIST), first_words(REFUSED));
    let field = first_words(FIELD);
    assert!(field.len() > 350, "the list of the field has {} mnemonics: it is not read", field.len());
    let counts: BTreeMap<&str, u32> = FIELD
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
        .map(|line| line.rsplit_once(' ').expect(line))
        .map(|(mnemonic, count)| (mnemonic, count.parse().expect(mnemonic)))
        .collect();
    assert!(counts.values().all(|count| (1..=124).contains(count)), "a count is not one of 124 kernels");
    println!("{} mnemonics, {} modelled", field.len(), field.intersection(&modelled).count());
    for mnemonic in field.difference(&modelled) {
        println!("missing, in {} kernels: {mnemonic}", counts[mnemonic]);
    }
    let unknown: Vec<&&str> = field.iter().filter(|m| !modelled.contains(*m) && !refused.contains(*m)).collect();
    assert!(unknown.is_empty(), "neither in forms/list.txt nor in forms/refused.txt: {unknown:#?}");
    let done: Vec<&&str> = refused.intersection(&modelled).collect();
    assert!(done.is_empty(), "modelled, and still in forms/refused.txt: {done:#?}");
    let unused: Vec<&&str> = refused.difference(&field).collect();
    assert!(unused.is_empty(), "in forms/refused.txt, but no kernel uses it: {unused:#?}");
}

/// The mnemonics of a text, as far as its lines begin with them.
fn mnemonics(text: &str) -> BTreeSet<String> {
    let lines = text.split(".section").next().unwrap_or(text).lines();
    let code = lines.map(|line| line.split("//").next().unwrap_or(line));
    let statements =
        code.flat_map(|line| line.split(';')).map(|statement| statement.trim_start_matches(['{', '}', ' ', '\t']));
    let words = statements.filter_map(|statement| {
        let mut words = statement.split_whitespace().skip_while(|word| word.starts_with('@') || word.ends_with(':'));
        words.next().filter(|word| word.starts_with(|c: char| c.is_ascii_lowercase()))
    });
    words.map(String::from).collect()
}

/// What stands in the list from the kernels that lie beside it; the mnemonics of the 124 others stand before that.
const OF_KERNELS_HERE: &str = "# the kernels in ../gluon\n";

/// How many mnemonics the 124 kernels use: the list is the whole of it.
#[test]
fn the_list_of_the_field_is_whole() {
    let (others, _) = FIELD.split_once(OF_KERNELS_HERE).expect(OF_KERNELS_HERE);
    let lines = others.lines().filter(|line| !line.starts_with('#') && !line.is_empty()).count();
    assert_eq!((lines, first_words(others).len()), (386, 386), "lines, and different ones");
}

/// The list is complete of the kernels that lie beside it, and what it has from them alone is used by so many as it says.
#[test]
fn the_list_of_the_field_has_what_kernels_of_a_compiler_use() {
    let field = first_words(FIELD);
    let mut counts: BTreeMap<String, u32> = BTreeMap::new();
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/gluon");
    let mut texts = 0;
    for file in std::fs::read_dir(folder).expect(folder).flatten() {
        if file.path().extension().is_none_or(|ending| ending != "ptx") {
            continue;
        }
        texts += 1;
        let used = mnemonics(&std::fs::read_to_string(file.path()).expect(folder));
        assert!(used.len() > 30, "{:?}: {} mnemonics: it is not read", file.path(), used.len());
        let missing: Vec<&String> = used.iter().filter(|m| !field.contains(m.as_str())).collect();
        assert!(missing.is_empty(), "{:?} uses what field/mnemonics.txt lacks: {missing:#?}", file.path());
        used.into_iter().for_each(|mnemonic| *counts.entry(mnemonic).or_default() += 1);
    }
    let (others, here) = FIELD.split_once(OF_KERNELS_HERE).expect(OF_KERNELS_HERE);
    let others = first_words(others);
    let listed: BTreeSet<String> = here.lines().filter(|line| !line.is_empty()).map(String::from).collect();
    let alone = counts.iter().filter(|(mnemonic, _)| !others.contains(mnemonic.as_str()));
    let used: BTreeSet<String> = alone.map(|(mnemonic, count)| format!("{mnemonic} {count}")).collect();
    assert_eq!(listed, used, "the mnemonics that only the kernels in {folder} have, and how many of them");
    assert!(texts > 30, "{folder} has {texts} kernels");
}

/// `emulate --list-instructions` prints the forms: what kernels use and what is modelled is the same list.
#[test]
fn the_list_of_instructions_has_every_modelled_mnemonic_of_the_field() {
    let opcodes: Vec<String> = emulator::FORMS.iter().flat_map(|form| written_out(&mut &**form)).collect();
    let forms: BTreeSet<Vec<&str>> = opcodes.iter().map(|opcode| sorted(opcode)).collect();
    let refused = first_words(REFUSED);
    let modelled = first_words(FIELD).into_iter().filter(|m| !refused.contains(m));
    let missing: Vec<&str> = modelled.filter(|m| !forms.contains(&sorted(m))).collect();
    assert!(missing.is_empty(), "in no form of `emulate --list-instructions`: {missing:#?}");
    let listed: Vec<&&str> = refused.iter().filter(|m| forms.contains(&sorted(m))).collect();
    assert!(listed.is_empty(), "`emulate --list-instructions` has what is refused: {listed:#?}");
}
