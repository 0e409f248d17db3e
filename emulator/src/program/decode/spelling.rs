//! Which form an opcode is of, and its modifiers in the order of that form. ptxas reads most modifiers in any order, and compilers write
//! them in several: `ld.global.acquire.gpu.b32`. What belongs to the name, and types, keep theirs. An opcode of no form is refused,
//! whatever the families would make of it.

use super::nearest::{Node, forms};

/// Parts of names: each stands where the form has it (what ptxas 13.5 takes).
const NAMES: &[(&str, &[&str])] = &[
    ("bar", &["cta", "warp", "sync", "arrive", "red"]),
    ("barrier", &["cta", "cluster", "sync", "arrive", "wait", "red"]),
    ("brx", &["idx"]),
    ("clusterlaunchcontrol", &["try_cancel", "query_cancel", "async", "is_canceled"]),
    (
        "cp",
        &[
            "async",
            "bulk",
            "tensor",
            "reduce",
            "prefetch",
            "1d",
            "2d",
            "3d",
            "4d",
            "5d",
            "mbarrier",
            "arrive",
            "commit_group",
            "wait_group",
            "wait_all",
        ],
    ),
    ("createpolicy", &["fractional", "range", "cvt"]),
    ("cvt", &["pack"]),
    ("cvta", &["to"]),
    ("div", &["full"]),
    ("fence", &["proxy", "async", "alias", "mbarrier_init"]),
    ("mad", &["lo", "hi", "wide"]),
    ("mad24", &["lo", "hi"]),
    ("madc", &["lo", "hi"]),
    (
        "mbarrier",
        &[
            "init",
            "inval",
            "arrive",
            "arrive_drop",
            "expect_tx",
            "complete_tx",
            "pending_count",
            "try_wait",
            "test_wait",
            "parity",
        ],
    ),
    ("membar", &["proxy", "alias"]),
    ("mul", &["lo", "hi", "wide"]),
    ("mul24", &["lo", "hi"]),
    ("red", &["async"]),
    ("setmaxnreg", &["inc", "dec"]),
    ("shf", &["l", "r"]),
    ("st", &["async", "bulk"]),
    (
        "tcgen05",
        &[
            "alloc",
            "dealloc",
            "relinquish_alloc_permit",
            "ld",
            "st",
            "red",
            "mma",
            "cp",
            "commit",
            "wait::ld",
            "wait::st",
            "shift",
        ],
    ),
    ("tensormap", &["replace", "cp_fenceproxy"]),
    ("wgmma", &["mma_async", "fence", "commit_group", "wait_group"]),
];

/// Whether a part keeps its place among its like: types, layouts, and what an instruction names twice.
fn keeps_its_turn(base: &str, part: &str) -> bool {
    let numbers =
        |letters: &str| part.strip_prefix(letters).is_some_and(|n| n.starts_with(|c: char| c.is_ascii_digit()));
    match base {
        "cp" | "tensormap" if part == "global" || part.starts_with("shared") => true,
        "createpolicy" if part.starts_with("L2::") => true,
        _ => {
            matches!(part, "row" | "col" | "pred")
                || ["b", "u", "s", "f", "bf", "e", "tf", "ue"].iter().any(|letters| numbers(letters))
        }
    }
}

/// Hints, which no form lists; which of them go together is decided where they are read.
fn is_hint(base: &str, part: &str) -> bool {
    let plain = matches!(base, "ld" | "st");
    let cached = plain && matches!(part, "ca" | "cg" | "cs" | "lu" | "cv" | "wb" | "wt");
    cached
        || (plain && (part.starts_with("L1::") || part.starts_with("L2::")))
        || (matches!(base, "atom" | "red") && part == "L2::cache_hint")
}

/// Something on its way through a form.
pub(super) trait Follow {
    /// Where it was at a choice.
    type Mark;
    /// The word that the form is writing.
    fn word(&mut self) -> &mut String;
    /// The form has written a word: whether the way goes on.
    fn part(&mut self) -> bool;
    /// The form has ended: whether that is the end of the search.
    fn ends(&mut self) -> bool;
    fn mark(&self) -> Self::Mark;
    fn back_to(&mut self, mark: &Self::Mark);
    /// Whether it may take another step.
    fn may_step(&mut self) -> bool {
        true
    }
}

/// What is left of a form: nodes, and what stands behind the choice that they are of.
pub(super) struct Rest<'a> {
    pub nodes: &'a [Node],
    pub behind: Option<&'a Rest<'a>>,
}

/// Goes all ways through a form, up to the one that ends the search. Whether one does.
pub(super) fn follow<W: Follow>(way: &mut W, rest: &Rest) -> bool {
    if !way.may_step() {
        return false;
    }
    let Some((first, others)) = rest.nodes.split_first() else {
        return match rest.behind {
            Some(behind) => follow(way, behind),
            None => way.part() && way.ends(),
        };
    };
    let tail = Rest { nodes: others, behind: rest.behind };
    match first {
        Node::Text(text) => {
            let mut words = text.split('.');
            *way.word() += words.next().unwrap_or_default();
            for next in words {
                if !way.part() {
                    return false;
                }
                *way.word() += next;
            }
            follow(way, &tail)
        }
        Node::Choice(alternatives, optional) => {
            let mark = way.mark();
            let empty: &[Node] = &[];
            alternatives.iter().map(Vec::as_slice).chain(optional.then_some(empty)).any(|nodes| {
                way.back_to(&mark);
                follow(way, &Rest { nodes, behind: Some(&tail) })
            })
        }
    }
}

/// Which part of an opcode a word of a form is, of those that the form has not had (`used`): the first that fits, if it may stand behind `had` others.
pub(super) fn part_for(parts: &[&str], used: u64, had: usize, word: &str) -> Option<usize> {
    let fits = |part: &str| match part.strip_prefix('x') {
        Some(n) if word == "xN" => n.parse::<u32>().is_ok_and(u32::is_power_of_two),
        _ => part == word,
    };
    let left = |n: usize| used >> n & 1 == 0;
    let n = (0..parts.len()).find(|&n| left(n) && fits(parts[n]))?;
    let base = parts[0];
    let turn = |n: usize| keeps_its_turn(base, parts[n]);
    let named = n != had && (is_name(base, parts[n]) || n == 0);
    (!(named || turn(n) && (0..n).any(|n| left(n) && turn(n)))).then_some(n)
}

/// An opcode on its way through a form.
struct Way<'a> {
    parts: &'a [&'a str],
    /// Which parts the form has had.
    used: u64,
    /// Their order in the form.
    order: Vec<u8>,
    /// The part that the form is writing.
    word: String,
}

/// Whether a modifier is a part of the name of an instruction.
pub(super) fn is_name(base: &str, part: &str) -> bool {
    NAMES.iter().any(|(name, parts)| *name == base && parts.contains(&part))
}

impl Follow for Way<'_> {
    type Mark = (u64, usize, String);

    fn word(&mut self) -> &mut String {
        &mut self.word
    }

    /// Whether the opcode has it, where it may.
    fn part(&mut self) -> bool {
        let Some(n) = part_for(self.parts, self.used, self.order.len(), &self.word) else { return false };
        self.used |= 1 << n;
        self.order.push(n as u8);
        self.word.clear();
        true
    }

    fn ends(&mut self) -> bool {
        self.order.len() == self.parts.len()
    }

    fn mark(&self) -> Self::Mark {
        (self.used, self.order.len(), self.word.clone())
    }

    fn back_to(&mut self, (used, length, word): &Self::Mark) {
        self.used = *used;
        self.order.truncate(*length);
        self.word.clone_from(word);
    }
}

/// The parts of an opcode in the order of the form that it is of, hints before the last; `None`: it is of no form.
pub(super) fn of_a_form<'a>(parts: &[&'a str]) -> Option<Vec<&'a str>> {
    let base = *parts.first()?;
    let (hints, plain): (Vec<&str>, Vec<&str>) = parts.iter().copied().partition(|part| is_hint(base, part));
    // More than any instruction has.
    if plain.len() > 32 {
        return None;
    }
    forms().iter().filter(|(words, _)| words.iter().any(|word| word == base)).find_map(|(_, form)| {
        let mut way = Way { parts: &plain, used: 0, order: Vec::new(), word: String::new() };
        follow(&mut way, &Rest { nodes: form, behind: None }).then(|| {
            let mut parts: Vec<&str> = way.order.iter().map(|&n| plain[usize::from(n)]).collect();
            let end = parts.len().saturating_sub(1);
            parts.splice(end..end, hints.iter().copied());
            parts
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modifiers_stand_in_any_order_names_and_types_do_not() {
        for (written, form) in [
            ("ld.global.acquire.gpu.b32", Some("ld.acquire.gpu.global.b32")),
            ("ld.b32.global", Some("ld.global.b32")),
            ("ld.global.L1::no_allocate.v4.b32", Some("ld.global.v4.L1::no_allocate.b32")),
            ("add.f32.rn", Some("add.rn.f32")),
            ("cvt.f32.rn.u32", Some("cvt.rn.f32.u32")),
            ("cvt.f32.f16", Some("cvt.f32.f16")),
            ("cvt.f16.f32", None),
            ("stmatrix.sync.aligned.x4.m8n8.shared.b16.trans", Some("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16")),
            ("mul.s32.lo", None),
            ("tcgen05.cta_group::1.alloc.sync.aligned.b32", None),
            ("tcgen05.ld.sync.aligned.32x32b.b32.x4", Some("tcgen05.ld.sync.aligned.32x32b.x4.b32")),
            ("tcgen05.ld.sync.aligned.32x32b.x3.b32", None),
            ("cp.async.bulk.tensor.2d.shared::cta.global.bulk_group", None),
            ("ld.global.global.b32", None),
            ("bar.sync.sync", None),
            (
                "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32",
                Some("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32"),
            ),
            ("ret", Some("ret")),
            ("", None),
        ] {
            let parts: Vec<&str> = written.split('.').collect();
            assert_eq!(of_a_form(&parts).map(|parts| parts.join(".")).as_deref(), form, "{written}");
        }
    }
}
