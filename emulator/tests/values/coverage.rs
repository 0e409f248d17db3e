//! Each form that the emulator says it models has a row, with each choice that the form leaves.

use crate::row::Row;
use emulator::FORMS;
use std::collections::BTreeSet;

/// A piece of a form.
#[derive(Debug)]
enum Piece {
    Text(String),
    /// `xN`
    Times,
    /// `{a|b}`, with its number in the form; `{…}?` may be left out.
    Choice(usize, Vec<Vec<Piece>>, bool),
}

/// Reads a form up to a `|` or `}` that ends it; the number of choices so far.
fn read(rest: &mut &str, choices: &mut usize) -> Vec<Piece> {
    let mut pieces = Vec::new();
    while let Some(c) = rest.chars().next() {
        if c == '{' {
            *rest = &rest[1..];
            let number = *choices;
            *choices += 1;
            let mut list = Vec::new();
            loop {
                list.push(read(rest, choices));
                let more = rest.starts_with('|');
                *rest = rest.get(1..).unwrap_or("");
                if !more {
                    break;
                }
            }
            let optional = rest.starts_with('?');
            *rest = rest.strip_prefix('?').unwrap_or(rest);
            pieces.push(Piece::Choice(number, list, optional));
        } else if c == '|' || c == '}' {
            break;
        } else if let Some(behind) = rest.strip_prefix("xN") {
            *rest = behind;
            pieces.push(Piece::Times);
        } else {
            let end = rest[1..].find(['{', '|', '}']).map_or(rest.len(), |n| n + 1);
            let end = rest.find("xN").filter(|&n| n > 0 && n < end).unwrap_or(end);
            pieces.push(Piece::Text(rest[..end].into()));
            *rest = &rest[end..];
        }
    }
    pieces
}

/// All ways to read the beginning of an opcode: what is left, and the choices taken (alternative 0: left out).
fn ways<'a>(pieces: &[Piece], opcode: &'a str) -> Vec<(&'a str, Vec<(usize, usize)>)> {
    let Some((first, others)) = pieces.split_first() else { return vec![(opcode, vec![])] };
    let heads: Vec<(&str, Vec<(usize, usize)>)> = match first {
        Piece::Text(text) => opcode.strip_prefix(text.as_str()).map(|rest| (rest, vec![])).into_iter().collect(),
        Piece::Times => {
            let digits =
                opcode.strip_prefix('x').map_or(0, |n| n.find(|c: char| !c.is_ascii_digit()).unwrap_or(n.len()));
            if digits > 0 { vec![(&opcode[1 + digits..], vec![])] } else { vec![] }
        }
        Piece::Choice(number, list, optional) => {
            let mut heads = Vec::new();
            for (n, inner) in list.iter().enumerate() {
                for (rest, mut taken) in ways(inner, opcode) {
                    taken.push((*number, n + 1));
                    heads.push((rest, taken));
                }
            }
            if *optional {
                heads.push((opcode, vec![(*number, 0)]));
            }
            heads
        }
    };
    let mut all = Vec::new();
    for (rest, taken) in heads {
        for (end, more) in ways(others, rest) {
            all.push((end, taken.iter().copied().chain(more).collect()));
        }
    }
    all
}

/// Every choice of a form, in words.
fn choices(pieces: &[Piece], list: &mut Vec<((usize, usize), String)>) {
    for piece in pieces {
        let Piece::Choice(number, alternatives, optional) = piece else { continue };
        for (n, inner) in alternatives.iter().enumerate() {
            list.push(((*number, n + 1), words(inner)));
            choices(inner, list);
        }
        if *optional {
            list.push(((*number, 0), format!("no `{}`", words(&alternatives[0]))));
        }
    }
}

fn words(pieces: &[Piece]) -> String {
    let word = |piece: &Piece| match piece {
        Piece::Text(text) => text.clone(),
        Piece::Times => "xN".into(),
        Piece::Choice(_, list, _) => format!("{{{}…}}", list.first().map_or(String::new(), |inner| words(inner))),
    };
    pieces.iter().map(word).collect()
}

/// Hints that loads, stores and atomics may have anywhere; no form lists them.
fn plain(opcode: &str) -> String {
    let hints = ["ld", "st", "atom", "red"].contains(&opcode.split('.').next().unwrap_or(""));
    let is_hint = |m: &str| hints && (m.starts_with("L1::") || m.starts_with("L2::"));
    opcode.split('.').filter(|m| !is_hint(m)).collect::<Vec<_>>().join(".")
}

/// Fails with each form, and each choice of a form, that no row executes; and each opcode of a row that no form has.
pub fn check(rows: &[Row]) {
    let opcodes: BTreeSet<String> = rows.iter().flat_map(Row::opcodes).map(|opcode| plain(&opcode)).collect();
    let mut used = BTreeSet::new();
    let mut missing = Vec::new();
    for form in FORMS {
        let mut rest = *form;
        let pieces = read(&mut rest, &mut 0);
        assert!(rest.is_empty(), "`{form}` has a brace too many");
        let mut taken = BTreeSet::new();
        let mut found = false;
        for opcode in &opcodes {
            for (_, way) in ways(&pieces, opcode).into_iter().filter(|(end, _)| end.is_empty()) {
                found = true;
                used.insert(opcode.clone());
                taken.extend(way);
            }
        }
        let mut all = Vec::new();
        choices(&pieces, &mut all);
        let without: Vec<String> =
            all.into_iter().filter(|(choice, _)| !taken.contains(choice)).map(|(_, word)| word).collect();
        if !found {
            missing.push(format!("{form}: no row"));
        } else if !without.is_empty() {
            missing.push(format!("{form}: no row with {}", without.join(", ")));
        }
    }
    let unknown: Vec<&String> = opcodes.difference(&used).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "in no form: {unknown:?}\nwithout a row:\n{}",
        missing.join("\n")
    );
}
