//! What is said of several statements of a kernel that is written out, without the lines of its source: one thing is wrong, and it is told once. So is what is
//! said of all mbarriers that are made together.
//!
//! Two diagnostics are alike if their statements are of one opcode, and all that is said of both is the same but for rows, columns, depths and bytes.
//! What they are about must be the same: a place in memory without a name stands for a buffer, or for a barrier, and is one of its own; but not where
//! several statements read what is named by the same others.

use crate::diagnostic::{Diagnostic, Label};
use crate::program;

/// What tells places apart that have no name.
const NAMELESS: [&str; 2] = ["shared memory at byte", "tensor memory column"];

/// Statements that read: in a kernel that is written out, one after the other what lies in one buffer.
const READERS: [&str; 4] = ["tcgen05.mma", "wgmma", "tcgen05.ld", "ld."];

/// Numbers behind these words say where in a buffer something is, or which part of it.
const PLACES: &[&str] =
    &["byte", "bytes", "chunk", "column", "columns", "depth", "depths", "element", "elements", "row", "rows"];

/// One mistake in a loop over mbarriers is told of each, whatever they are called.
const OF_ALL_MBARRIERS: &[&str] = &["mbarrier-reinitialised"];

/// A text whose numbers say no more which place in a buffer it is about. `exact`: which place in nameless memory still counts, of each of the two.
fn masked(text: &str, exact: [bool; 2]) -> String {
    let mut words: Vec<String> = Vec::new();
    // The number before was masked, and `to` is behind it: a range.
    let mut range = false;
    for word in text.split(' ') {
        let digits = word.trim_end_matches([',', ';', ':', '.', ')']);
        let number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let before = words.last().map_or("", |word| word.trim_start_matches('('));
        let counts =
            || NAMELESS.iter().zip(exact).any(|(nameless, exact)| exact && words.join(" ").ends_with(nameless));
        let place = PLACES.contains(&before) && !counts();
        if number && (place || range && before == "to") {
            words.push(word.replace(digits, "#"));
            range = true;
        } else {
            range &= word == "to";
            words.push(word.into());
        }
    }
    words.join(" ")
}

/// A text without names and numbers.
fn nameless(text: &str) -> String {
    text.split('`').step_by(2).flat_map(str::chars).filter(|c| !c.is_ascii_digit()).collect()
}

fn opcode(label: &Label) -> &str {
    program::opcode(&label.place.text)
}

fn same_line(one: &Label, other: &Label) -> bool {
    one.place.shown() == other.place.shown()
}

/// Whether what is wrong is the same in two statements.
pub fn alike(known: &Diagnostic, new: &Diagnostic) -> bool {
    let (Some(one), Some(other)) = (known.labels.first(), new.labels.first()) else { return false };
    let of_all = OF_ALL_MBARRIERS.contains(&known.code);
    let without_lines = one.place.source.is_none() && other.place.source.is_none();
    let at_once = (known.code, known.severity, &known.rule) == (new.code, new.severity, &new.rule)
        && known.severity < crate::Severity::Error
        && (of_all || without_lines)
        && one.meaning == other.meaning
        && opcode(one) == opcode(other);
    if !at_once {
        return false;
    }
    if of_all {
        return nameless(&known.title) == nameless(&new.title);
    }
    if one.about != other.about {
        return false;
    }
    let rest = &new.labels[1..];
    let named = |label: &Label| known.labels[1..].iter().any(|l| same_line(l, label));
    let reads = READERS.iter().any(|reader| opcode(one).starts_with(reader));
    let exact = [!reads || rest.is_empty() || !rest.iter().all(named), !reads];
    let same = |a: &str, b: &str| a == b || masked(a, exact) == masked(b, exact);
    let is_said = |label: &Label| {
        let said = |l: &Label| {
            l.meaning == label.meaning
                && l.about == label.about
                && (same_line(l, label) || opcode(l) == opcode(label) && same(&l.text, &label.text))
        };
        known.labels[1..].iter().any(said)
    };
    // Where less is known of the new one, its advice is the general one.
    let advice = rest.len() + 1 < known.labels.len() || same(&known.help, &new.help);
    same(&known.title, &new.title) && same(&one.text, &other.text) && rest.iter().all(is_said) && advice
}

/// Tells what is alike once: at the first statement, with how many there are.
pub fn join(list: &mut Vec<Diagnostic>) {
    let mut groups: Vec<(Diagnostic, Vec<u32>)> = Vec::with_capacity(list.len());
    for new in list.drain(..) {
        let line = new.labels.first().map_or(0, |label| label.place.shown().1);
        match groups.iter_mut().find(|(known, _)| alike(known, &new)) {
            Some((known, lines)) => {
                known.count += new.count;
                lines.push(line);
            }
            None => groups.push((new, vec![line])),
        }
    }
    list.extend(groups.into_iter().map(|(mut known, lines)| {
        if let ([_, others @ ..], Some(label)) = (lines.as_slice(), known.labels.first_mut())
            && let (Some(first), Some(last)) = (others.iter().min(), others.iter().max())
        {
            label.text += &match others.len() {
                1 => format!("; the same at another statement, in line {first}"),
                n => format!("; the same at {n} other statements, in lines {first} to {last}"),
            };
        }
        known
    }));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnostic::{Place, Severity, Source};

    fn told(title: &str, labels: &[(u32, &str, &str)]) -> Diagnostic {
        let label = |&(line, statement, text): &(u32, &str, &str)| {
            Label::new(Place { line, text: statement.into(), ..Place::default() }, text)
        };
        Diagnostic {
            code: "operand-not-ready",
            severity: Severity::Finding,
            title: title.into(),
            labels: labels.iter().map(label).collect(),
            rule: String::new(),
            help: String::new(),
            count: 1,
            confirmed: None,
        }
    }

    const MMA: &str = "@%p1 tcgen05.mma.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, p";
    const COPY: &str = "cp.async.bulk.tensor.2d [%r1], [%rd1, {%r1, %r2}], [%r3]";

    fn reads(byte: u32, line: u32, copy: u32) -> Diagnostic {
        told(
            &format!("the MMA reads dynamic shared memory at byte {byte} too early"),
            &[(line, MMA, "read here"), (copy, COPY, "written here")],
        )
    }

    #[test]
    fn one_cause_is_told_once() {
        let mut list = vec![reads(0, 10, 5), reads(32, 20, 5), reads(64, 30, 5), reads(16384, 40, 6)];
        join(&mut list);
        assert_eq!(list.iter().map(|d| d.count).collect::<Vec<_>>(), [3, 1], "of another copy it is another buffer");
        assert_eq!(list[0].labels[0].text, "read here; the same at 2 other statements, in lines 20 to 30");
    }

    #[test]
    fn what_is_about_something_else_stays_apart() {
        let of = |title: &str| told(title, &[(title.len() as u32, MMA, "read here")]);
        for (one, other, same) in [
            ("`A` is read at row 3, columns 0 to 15", "`A` is read at row 12, columns 16 to 31", true),
            ("`A` is read", "`B` is read", false),
            ("warp 1 reads `A`", "warp 2 reads `A`", false),
            ("shared memory at byte 64 is read", "shared memory at byte 72 is read", false),
            ("64 of 128 bytes", "32 of 128 bytes", false),
            ("column 3 of `acc`", "column 64 of `acc`", true),
            ("tensor memory column 0", "tensor memory column 8", true),
        ] {
            assert_eq!(alike(&of(one), &of(other)), same, "{one}, {other}");
        }
        let load = |line, statement| told("it is read", &[(line, statement, "read here")]);
        assert!(!alike(&load(1, "ld.shared.b32 %r1, [%r2]"), &load(2, "st.shared.b32 [%r2], %r1")));
        let copied =
            |column, line| told(&format!("tensor memory column {column}"), &[(line, "tcgen05.cp [%r1], %rd1", "here")]);
        assert!(!alike(&copied(0, 1), &copied(8, 2)), "who writes, writes to another buffer");
        let mut here = load(2, MMA);
        assert!(alike(&load(1, "tcgen05.mma.cta_group::1.kind::f16 [%r9], %rd1, %rd2, %r2, p"), &here));
        here.labels[0].place.source = Some(Source { file: "k.cu".into(), line: 7, column: 0 });
        assert!(!alike(&load(1, MMA), &here), "lines of a source are causes of their own");
    }

    #[test]
    fn mbarriers_that_are_made_twice_are_one_mistake() {
        let of = |title: &str, line| Diagnostic {
            code: "mbarrier-reinitialised",
            ..told(title, &[(line, "mbarrier.init.shared.b64 [%r1], 1", "here")])
        };
        let mut list = vec![
            of("`full[0]` is initialised by 32 lanes", 1),
            of("`empty[12]` is initialised by 128 lanes", 2),
            of("`full[0]` is initialised again while it is in use", 3),
        ];
        join(&mut list);
        assert_eq!(list.iter().map(|d| d.count).collect::<Vec<_>>(), [2, 1]);
        // Lines of a source are named in place of those of the text.
        for (diagnostic, line) in list.iter_mut().zip([60, 62]) {
            diagnostic.title = "`full[0]` is initialised by 32 lanes".into();
            diagnostic.labels[0].place.source = Some(Source { file: "k.rs".into(), line, column: 0 });
            diagnostic.labels[0].text = "here".into();
        }
        join(&mut list);
        assert_eq!(list.iter().map(|d| d.count).collect::<Vec<_>>(), [3]);
        assert_eq!(list[0].labels[0].text, "here; the same at another statement, in line 62");
    }
}
