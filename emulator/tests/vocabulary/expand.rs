//! Statements out of patterns: `{a|b}` is a choice, `?` behind it or `{a}?` makes it optional, as in the list of forms; other
//! braces among operands are vectors. `t0` is a register of the opcode's last type, `s0` of its first, `w0` of one twice as wide as the
//! last, and `Vt0` as many as `.v2` and the like say.

use std::collections::{BTreeMap, BTreeSet};

/// The patterns, as opcodes and operands.
fn lines(patterns: &str) -> impl Iterator<Item = (&str, &str)> {
    let lines = patterns.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.split_once(' ').unwrap_or((line, "")))
}

/// All opcodes of the patterns.
pub fn opcodes(patterns: &str) -> BTreeSet<String> {
    lines(patterns).flat_map(|(opcode, _)| alternatives(opcode, true)).collect()
}

/// What stands behind the opcodes, by their first word.
pub fn operands(patterns: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (opcode, operands) in lines(patterns) {
        let operands = alternatives(operands, false);
        for opcode in alternatives(opcode, true) {
            let word = opcode.split('.').next().unwrap_or_default();
            all.entry(word.into()).or_default().extend(operands.iter().cloned());
        }
    }
    all
}

/// All statements of the patterns, each once.
pub fn statements(patterns: &str) -> Vec<String> {
    let mut all: Vec<String> = lines(patterns)
        .flat_map(|(opcode, operands)| {
            let operands = alternatives(operands, false);
            alternatives(opcode, true)
                .into_iter()
                .flat_map(move |opcode| operands.iter().map(|o| with_registers(&opcode, o)).collect::<Vec<_>>())
                .collect::<Vec<_>>()
        })
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The end of the group that a text begins with, and whether it is a choice.
fn group(text: &str) -> (usize, bool) {
    let (mut depth, mut choice) = (0, false);
    for (n, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            '|' if depth == 1 => choice = true,
            _ => {}
        }
        if depth == 0 {
            return (n, choice);
        }
    }
    panic!("`{text}` has a brace too many");
}

/// The parts of a choice.
fn parts(text: &str) -> Vec<&str> {
    let (mut depth, mut begin, mut all) = (0, 0, Vec::new());
    for (n, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth -= 1,
            '|' if depth == 0 => {
                all.push(&text[begin..n]);
                begin = n + 1;
            }
            _ => {}
        }
    }
    all.push(&text[begin..]);
    all
}

/// Every way to read a pattern.
fn alternatives(text: &str, opcode: bool) -> Vec<String> {
    let Some(open) = text.find('{') else { return vec![text.into()] };
    let (length, choice) = group(&text[open..]);
    let (inner, behind) = (&text[open + 1..open + length], &text[open + length + 1..]);
    let optional = behind.starts_with('?');
    let mut middles: Vec<String> = match choice || optional || opcode {
        true => parts(inner).into_iter().flat_map(|part| alternatives(part, opcode)).collect(),
        false => alternatives(inner, false).into_iter().map(|inner| format!("{{{inner}}}")).collect(),
    };
    middles.extend(optional.then(String::new));
    let ends = alternatives(behind.strip_prefix('?').unwrap_or(behind), opcode);
    let begin = &text[..open];
    middles.iter().flat_map(|middle| ends.iter().map(move |end| format!("{begin}{middle}{end}"))).collect()
}

/// The letter of the registers that hold a type.
fn class(ty: &str) -> Option<char> {
    Some(match ty {
        "pred" => 'p',
        "b8" | "u8" | "s8" | "u4" | "s4" | "e2m1x2" => 'b',
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" | "e2m3x2" | "e3m2x2" | "ue8m0x2" | "s2f6x2"
        | "e2m1x4" => 'h',
        "b32" | "u32" | "s32" | "f32" | "tf32" | "f16x2" | "bf16x2" | "u16x2" | "s16x2" | "u8x4" | "s8x4"
        | "e4m3x4" | "e5m2x4" | "e2m3x4" | "e3m2x4" => 'r',
        "b64" | "u64" | "s64" | "f64" | "f32x2" => 'd',
        "b128" => 'q',
        _ => return None,
    })
}

/// The statement with registers in place of `t0` and the like.
pub fn with_registers(opcode: &str, operands: &str) -> String {
    let classes: Vec<char> = opcode.split('.').skip(1).filter_map(class).collect();
    let (first, last) = (*classes.first().unwrap_or(&'r'), *classes.last().unwrap_or(&'r'));
    let wide = ['h', 'r', 'd', 'q'].iter().skip_while(|c| **c != last).nth(1).copied().unwrap_or('q');
    let lanes = opcode.split('.').find_map(|part| part.strip_prefix('v')?.parse::<u32>().ok()).unwrap_or(1);
    let mut text = format!("{opcode} ");
    let mut rest = operands;
    while !rest.is_empty() {
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '%').unwrap_or(rest.len()).max(1);
        let (word, behind) = rest.split_at(end);
        let (vector, name) = word.strip_prefix('V').map_or((false, word), |name| (true, name));
        let number = |letter| name.strip_prefix(letter).and_then(|n| n.parse::<u32>().ok());
        let register = [('t', last), ('s', first), ('w', wide)].iter().find_map(|(l, c)| Some((*c, number(*l)?)));
        text += &match register {
            Some((c, n)) if vector && lanes > 1 => {
                let list: Vec<String> = (n..n + lanes).map(|n| format!("%{c}{n}")).collect();
                format!("{{{}}}", list.join(", "))
            }
            Some((c, n)) => format!("%{c}{n}"),
            None => word.into(),
        };
        rest = behind;
    }
    text.trim_end().into()
}
