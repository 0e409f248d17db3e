//! Of the forms that are modelled, the one nearest to an opcode that is not; written out, without choices.

use super::exists;
use super::forms::FORMS;
use super::spelling::is_name;
use crate::program::near;
use std::sync::OnceLock;

/// A form's text: plain, or a choice.
#[derive(Debug)]
pub(super) enum Node {
    Text(String),
    /// `{a|b}`, or `{a|b}?`, which may be left out.
    Choice(Vec<Vec<Node>>, bool),
}

/// What to write instead of an opcode that is not modelled.
pub fn advice(opcode: &str) -> String {
    let parts: Vec<&str> = opcode.split('.').collect();
    if parts[0] == "multimem" {
        return "Its address stands for memory of several GPUs at once (a multicast object, cuMulticastCreate); a launch has the buffers of \
                one GPU, and nothing that says which of them such an address means. On one GPU, `ld`, `st` and `red` on its own buffer \
                do the same."
            .into();
    }
    let forms = forms();
    let known = || forms.iter().flat_map(|(words, _)| words.iter().map(String::as_str));
    let meant = match known().any(|word| word == parts[0]) {
        true => Some(parts[0]),
        false => near::nearest(parts[0], known()),
    };
    let Some(meant) = meant else {
        return "No form of this opcode is modelled; `emulate --list-instructions` lists all that are.".into();
    };
    // An operation that the ISA has, and none of the forms.
    let of_it = || forms.iter().filter(|(words, _)| words.iter().any(|word| word == meant)).map(|(_, form)| form);
    if let Some(operation) = parts.get(1).filter(|part| is_name(meant, part) && !of_it().any(|form| has(form, part))) {
        let name = format!("{meant}.{operation}");
        return format!("No form of `{name}` is modelled; `emulate --list-instructions` lists what is.");
    }
    let mut wanted = vec![meant];
    wanted.extend(&parts[1..]);
    let written = forms.iter().filter(|(words, _)| words.iter().any(|word| word == meant));
    let best = written
        .flat_map(|(_, form)| {
            let mut text = String::new();
            write_out(form, &wanted, &mut text);
            exists::near(&text)
        })
        .min_by_key(|text| cost(text, &wanted));
    match best {
        // Each part that differs looks like a slip.
        Some(form) if is_slip(&form, &parts) => format!("Did you mean `{form}`?"),
        Some(form) => format!("The nearest form that is modelled: `{form}`. `emulate --list-instructions` lists all."),
        None => "No form of this opcode is modelled; `emulate --list-instructions` lists all that are.".into(),
    }
}

/// All forms, each with the opcodes, without modifiers, that it is of.
pub(super) fn forms() -> &'static [(Vec<String>, Vec<Node>)] {
    static FORMS_READ: OnceLock<Vec<(Vec<String>, Vec<Node>)>> = OnceLock::new();
    FORMS_READ.get_or_init(|| {
        let read = |form: &&str| parse(&mut form.chars().peekable(), false);
        FORMS.iter().map(read).map(|form| (first_words(&form), form)).collect()
    })
}

/// Whether some way to write a form has this modifier.
fn has(form: &[Node], part: &str) -> bool {
    form.iter().any(|node| match node {
        Node::Text(text) => text.split('.').any(|other| other == part),
        Node::Choice(alternatives, _) => alternatives.iter().any(|alternative| has(alternative, part)),
    })
}

/// Reads a form, or an alternative of a choice up to `|` or `}`.
fn parse(text: &mut std::iter::Peekable<std::str::Chars>, inner: bool) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut plain = String::new();
    while let Some(&c) = text.peek() {
        if inner && (c == '|' || c == '}') {
            break;
        }
        text.next();
        if c != '{' {
            plain.push(c);
            continue;
        }
        if !plain.is_empty() {
            nodes.push(Node::Text(std::mem::take(&mut plain)));
        }
        let mut alternatives = vec![parse(text, true)];
        while text.next_if_eq(&'|').is_some() {
            alternatives.push(parse(text, true));
        }
        text.next();
        nodes.push(Node::Choice(alternatives, text.next_if_eq(&'?').is_some()));
    }
    if !plain.is_empty() {
        nodes.push(Node::Text(plain));
    }
    nodes
}

/// The opcodes, without modifiers, that a form is of.
fn first_words(form: &[Node]) -> Vec<String> {
    let first = |text: &str| text.split('.').next().unwrap_or("").to_string();
    match form.first() {
        Some(Node::Text(text)) => vec![first(text)],
        Some(Node::Choice(alternatives, _)) => alternatives.iter().flat_map(|a| first_words(a)).collect(),
        None => vec![],
    }
}

/// Writes a form out, in each choice what fits best with these parts.
fn write_out(form: &[Node], wanted: &[&str], text: &mut String) {
    for node in form {
        match node {
            // `xN` is a power of two.
            Node::Text(plain) if plain.contains(".xN") => {
                let number = |part: &&str| part.strip_prefix('x')?.parse::<u32>().ok();
                let times = wanted.iter().find_map(number).unwrap_or(1).clamp(1, 128);
                *text += &plain.replace(".xN", &format!(".x{}", 1 << times.ilog2()));
            }
            Node::Text(plain) => *text += plain,
            Node::Choice(alternatives, optional) => {
                let mut best = optional.then(|| (cost(text, wanted), text.clone()));
                for alternative in alternatives {
                    let mut longer = text.clone();
                    write_out(alternative, wanted, &mut longer);
                    let cost = cost(&longer, wanted);
                    if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                        best = Some((cost, longer));
                    }
                }
                *text = best.map_or_else(String::new, |(_, text)| text);
            }
        }
    }
}

/// How far a text is from the parts of an opcode: what it lacks, and what it has too much.
fn cost(text: &str, wanted: &[&str]) -> usize {
    let mut left: Vec<&str> = wanted.to_vec();
    let mut others: Vec<&str> = text.split('.').filter(|part| !part.is_empty()).collect();
    // First what is the same.
    others.retain(|part| match left.iter().position(|other| other == part) {
        Some(n) => {
            left.remove(n);
            false
        }
        None => true,
    });
    let mut cost = 0;
    for part in others {
        let near = left.iter().enumerate().map(|(n, other)| (distance(part, other), n)).min();
        match near {
            Some((distance, n)) if distance < 6 => {
                cost += distance;
                left.remove(n);
            }
            _ => cost += 6,
        }
    }
    cost + 6 * left.len()
}

/// From 0, the same, to 6, something else.
fn distance(a: &str, b: &str) -> usize {
    if a == b {
        return 0;
    }
    // A type is another one of the same width rather than something else.
    let widths = |text| str::trim_start_matches(text, |c: char| c.is_ascii_alphabetic());
    let types = [a, b].iter().all(|t| t.len() <= 4 && t.starts_with(['b', 'u', 's', 'f']) && !widths(t).is_empty());
    // So is another number behind the same letters.
    let stem = |text| str::trim_end_matches(text, |c: char| c.is_ascii_digit());
    let numbers = stem(a) == stem(b) && stem(a) != a && stem(b) != b;
    // And of a shape, such as m64n8k16, when only its last number differs.
    if numbers && stem(a).contains(|c: char| c.is_ascii_digit()) {
        return 2;
    }
    if numbers || types && widths(a) == widths(b) {
        return 4;
    }
    if types {
        return 5;
    }
    // And a scope another scope.
    let scope = |part: &str| matches!(part, "cta" | "cluster" | "gpu" | "sys" | "gl");
    if scope(a) && scope(b) {
        return 4;
    }
    let (shorter, letters) = {
        let (a, b) = (a.chars().count(), b.chars().count());
        (a.min(b), a.max(b))
    };
    let slip = |changed| changed * 3 <= letters || changed == 1 && letters > 2;
    // As many are changed as one has more, at least.
    if slip(letters - shorter) {
        let changed = near::distance(a, b);
        if slip(changed) {
            return 1 + changed.min(2);
        }
    }
    match () {
        () if a.starts_with(b) || b.starts_with(a) => 4,
        () if a.split("::").next() == b.split("::").next() => 5,
        () => 6,
    }
}

/// Whether a form is the opcode but for slips of the finger. Another number is no slip, nor is another word of three letters.
fn is_slip(form: &str, parts: &[&str]) -> bool {
    let others: Vec<&str> = form.split('.').collect();
    let digits = |text: &str| text.chars().filter(char::is_ascii_digit).collect::<String>();
    let slip = |(a, b): (&&str, &&str)| {
        let letters = a.chars().count().max(b.chars().count());
        a == b || letters > 3 && digits(a) == digits(b) && near::distance(a, b) <= (letters / 4).max(1)
    };
    others.len() == parts.len() && others.iter().zip(parts).all(slip)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_is_an_opcode_that_can_be_written() {
        for (opcode, says) in [
            ("mbarier.init.shared.b64", "Did you mean `mbarrier.init.shared.b64`?"),
            ("mbarrier.try_wiat.parity.shared.b64", "Did you mean `mbarrier.try_wait.parity.shared.b64`?"),
            (
                "tcgen05.comit.cta_group::1.mbarrier::arrive::one.b64",
                "`tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64`",
            ),
            ("tcgen05.ld.sync.aligned.32x32b.x4.b16", "`tcgen05.ld.sync.aligned.32x32b.x4.b32`"),
            ("ld.global.v3.f32", "`ld.global.v2.f32`"),
            ("add.f32.rn", "`add.rn.f32`"),
            ("tcgen05.mma.sp.cta_group::1.kind::tf32", "`tcgen05.mma.cta_group::1.kind::tf32`"),
            ("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx.bytes", "complete_tx::bytes`"),
            ("cvt.rs.ftz.bf16x2.f32", "`cvt.rs.bf16x2.f32`"),
            ("cvt.rs.e4m3x4.f32", "`cvt.rs.satfinite.e4m3x4.f32`"),
            ("xnor.b32", "Did you mean `xor.b32`?"),
            ("suld.b.1d.b32.trap", "No form of this opcode"),
            ("tcgen05.shift.cta_group::1.down", "No form of `tcgen05.shift` is modelled"),
            ("tcgen05.shift.down.cta_group::2", "No form of `tcgen05.shift` is modelled"),
            (
                "wgmma.mma_async.sync.aligned.m64n128k16.f32.tf32.tf32",
                "`wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32`",
            ),
            ("wgmma.wait_grp.sync.aligned", "Did you mean `wgmma.wait_group.sync.aligned`?"),
            ("fence.mbarrier_init.release.cta", "`fence.mbarrier_init.release.cluster`"),
            ("frobnicate.b32", "No form of this opcode"),
        ] {
            let found = advice(opcode);
            assert!(found.contains(says), "{opcode}: {found}");
        }
    }
}
