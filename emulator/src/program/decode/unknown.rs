//! What is said of an opcode that is no PTX: which word of it, what PTX has in its place, and what was probably meant.

use super::Bad;
use super::isa::{self, NoPtx};
use super::nearest;
use super::spelling::of_a_form;
use crate::program::near;

/// The code of a text that is no PTX: no version of the emulator will take it.
const CODE: &str = "ptx-syntax";

const RULE: &str = "Instructions, types and modifiers are those of the PTX ISA (edition 9.3, chapter 9).";

pub fn no_ptx(opcode: &str, word: NoPtx) -> Bad {
    let family = opcode.split('.').next().unwrap_or_default();
    let what = match word {
        NoPtx::Opcode(name) => format!("there is no instruction `{name}` in PTX"),
        NoPtx::Operation(name, _) => format!("there is no instruction `{family}.{name}` in PTX"),
        NoPtx::Kind(name) => format!("there is no `kind::{name}` in PTX"),
        NoPtx::Type(name) => format!("there is no type `.{name}` in PTX"),
        NoPtx::Modifier(name) => format!("there is no modifier `.{name}` in PTX"),
        NoPtx::Form(name) => format!("PTX has no such form of `{name}`"),
    };
    let whole = if opcode.contains('.') { format!(": `{opcode}`") } else { String::new() };
    Bad { code: CODE, message: what + &whole, rule: RULE.into(), help: advice(opcode, word), cause: None }
}

/// An opcode that is PTX with a word more.
pub fn lacks(opcode: &str, what: &str, help: String) -> Bad {
    const RULE: &str = "An opcode has all the modifiers that the syntax of its instruction does not put in braces (PTX ISA, chapter 9).";
    Bad { code: CODE, message: format!("`{opcode}` lacks {what}"), rule: RULE.into(), help, cause: None }
}

/// The form that was probably meant; else all that could be in the word's place, or the word that was meant, which may be of something
/// that is not modelled.
fn advice(opcode: &str, word: NoPtx) -> String {
    if let Some(lower) = in_lower_case(opcode) {
        return format!("Opcodes of PTX are in lower case: `{lower}`.");
    }
    let kinds = format!("The kinds are {}.", listed(isa::kinds(), "kind::"));
    let meant = match word {
        NoPtx::Opcode(name) => near::nearest(name, isa::opcodes()),
        NoPtx::Operation(name, all) => near::nearest(name, all.split(' ')),
        NoPtx::Kind(name) => near::nearest(name, isa::kinds()),
        NoPtx::Type(name) | NoPtx::Modifier(name) => {
            isa::called_elsewhere(name).or_else(|| near::nearest(name, isa::modifiers()))
        }
        NoPtx::Form(_) => None,
    };
    if let (Some(meant), NoPtx::Type(name) | NoPtx::Modifier(name)) = (meant, word) {
        let parts: Vec<&str> = opcode.split('.').map(|part| if part == name { meant } else { part }).collect();
        if of_a_form(&parts).is_some() {
            return format!("Did you mean `{}`?", parts.join("."));
        }
    }
    let form = nearest::advice(opcode);
    let is_slip = form.starts_with("Did you mean");
    match word {
        NoPtx::Kind(_) if is_slip => format!("{kinds} {form}"),
        _ if is_slip => form,
        NoPtx::Kind(_) => kinds,
        NoPtx::Operation(_, all) if meant.is_none() => {
            let family = opcode.split('.').next().unwrap_or_default();
            format!("There are {}.", listed(all.split(' '), &format!("{family}.")))
        }
        _ if form.starts_with("The nearest") => form,
        _ => match meant {
            Some(meant) => format!("Did you mean `{meant}`?"),
            None => "`emulate --list-instructions` lists the instructions that are modelled.".into(),
        },
    }
}

/// An opcode of which a part is PTX in lower case.
fn in_lower_case(opcode: &str) -> Option<String> {
    let mut changed = false;
    let parts: Vec<String> = opcode
        .split('.')
        .enumerate()
        .map(|(n, part)| {
            let lower = part.to_ascii_lowercase();
            let mut known = isa::modifiers().chain(isa::opcodes().filter(|_| n == 0));
            let other = lower != part && !isa::modifiers().any(|word| word == part) && known.any(|word| word == lower);
            changed |= other;
            if other { lower } else { part.into() }
        })
        .collect();
    // The opcode itself is one.
    let is_one = isa::opcodes().any(|word| word == parts[0]);
    (changed && is_one).then(|| parts.join("."))
}

fn listed<'a>(names: impl Iterator<Item = &'a str>, before: &str) -> String {
    let all: Vec<String> = names.map(|name| format!("`{before}{name}`")).collect();
    match all.as_slice() {
        [most @ .., last] if !most.is_empty() => format!("{} and {last}", most.join(", ")),
        all => all.join(""),
    }
}
