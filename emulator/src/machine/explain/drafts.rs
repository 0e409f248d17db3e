//! Findings about races while they are gathered: one for each code and line, with the names of all buffers that it concerns.

use super::findings::{Key, key};
use super::names::Name;
use crate::diagnostic::{Label, Severity, join_labels};
use crate::machine::state::Race;
use rustc_hash::FxHashMap;

/// A finding whose title names all the buffers that the same mistake concerns.
pub struct Draft {
    pub code: &'static str,
    pub severity: Severity,
    /// `{}` stands for the names.
    pub title: String,
    pub names: Vec<Name>,
    /// Tensor memory is used before an MMA or a load is complete: freeing it is then too early as well.
    pub early: bool,
    pub labels: Vec<Label>,
    pub rule: &'static str,
    pub help: String,
    pub count: u64,
}

impl Draft {
    /// Makes findings about this race of code, title, labels, rule and help.
    pub fn of(
        race: &Race,
        name: Option<&Name>,
    ) -> impl Fn(&'static str, String, Vec<Label>, &'static str, String) -> Draft + use<> {
        let (count, names) = (race.count, Vec::from_iter(name.cloned()));
        move |code, title, labels, rule, help| Draft {
            code,
            severity: Severity::Finding,
            title,
            names: names.clone(),
            early: false,
            labels,
            rule,
            help,
            count,
        }
    }
}

/// Findings, one for each code and line.
#[derive(Default)]
pub struct Drafts {
    pub list: Vec<Draft>,
    known: FxHashMap<Key, usize>,
}

impl Drafts {
    pub fn add(&mut self, new: Draft) {
        let n = *self.known.entry(key(new.code, new.severity, &new.labels)).or_insert(self.list.len());
        let Some(known) = self.list.get_mut(n) else {
            self.list.push(new);
            return;
        };
        let labels = known.take_over(new);
        join_labels(&mut known.labels, labels);
    }
}

/// Each draft that belongs to one before it is merged into the first such: `merge` gets the place of that, it, and the other.
fn join(
    drafts: &mut Vec<Draft>,
    belongs: impl Fn(&Draft, &Draft) -> bool,
    mut merge: impl FnMut(usize, &mut Draft, Draft),
) {
    let mut n = 0;
    while n < drafts.len() {
        let Some(at) = drafts[..n].iter().position(|known| belongs(known, &drafts[n])) else {
            n += 1;
            continue;
        };
        let other = drafts.remove(n);
        merge(at, &mut drafts[at], other);
    }
}

/// Where an MMA reads bytes that nothing orders, neither after what stores them nor before what overwrites them, one thing is told if it was
/// too early first: the second is a label of that. Who overwrites too early first is the cause, and makes the MMA read too early in turn.
pub fn join_directions(drafts: &mut Vec<Draft>) {
    let place = |d: &Draft, n: usize| d.labels.get(n).map(|label| label.place.clone());
    let belongs = |known: &Draft, new: &Draft| {
        let (store, mma) = (place(new, 0), place(new, 1));
        let stores = || known.labels.iter().skip(1).any(|label| Some(&label.place) == store.as_ref());
        (new.code, new.severity) == ("operand-overwritten", Severity::Finding)
            && (known.code, known.severity) == ("operand-not-ready", Severity::Finding)
            && place(known, 0) == mma
            && stores()
    };
    join(drafts, belongs, |_, known, other| {
        let store = place(&other, 0);
        known.count += other.count;
        let label = known.labels.iter_mut().skip(1).find(|label| Some(&label.place) == store.as_ref());
        label.into_iter().for_each(|label| label.text += "; nor does the MMA come before the next time");
        let hint = " If its stage is waited for and released as it should be, the MMA's address is that of another.";
        if !known.help.ends_with(hint) {
            known.help += hint;
        }
    });
}

impl Draft {
    /// Counts another one with this one. Gives what is left of it.
    fn take_over(&mut self, other: Draft) -> Vec<Label> {
        self.count += other.count;
        for name in other.names {
            if !self.names.contains(&name) {
                self.names.push(name);
            }
        }
        other.labels
    }
}

/// Several statements do the same against the rules with the same others, and the same would put all of them in order: one thing is told, which names
/// all of them.
pub fn join_alike(drafts: &mut Vec<Draft>) {
    fn others(d: &Draft) -> Vec<(Option<&str>, u32)> {
        let mut lines: Vec<_> = d.labels.iter().skip(1).map(|label| label.place.shown()).collect();
        lines.sort_unstable();
        lines.dedup();
        lines
    }
    let alike = |a: &Draft, b: &Draft| {
        (a.code, a.severity, a.rule, &a.help) == (b.code, b.severity, b.rule, &b.help)
            && a.labels.len() > 1
            && b.labels.len() > 1
            && others(a) == others(b)
    };
    // What joins one is compared with nothing else.
    let mut more: Vec<(usize, Label)> = vec![];
    join(drafts, alike, |at, known, other| {
        known.early |= other.early;
        more.extend(known.take_over(other).into_iter().take(1).map(|label| (at, label)));
    });
    for (at, label) in more {
        join_labels(&mut drafts[at].labels, vec![label]);
    }
}

/// One fence behind what stores cures all that read it: it is told once, where the first reader stands, and the others are labels of that.
pub fn join_readers(drafts: &mut Vec<Draft>) {
    let stores = |d: &Draft| Vec::from_iter(d.labels.iter().skip(1).map(|label| label.place.clone()));
    let belongs = |known: &Draft, new: &Draft| {
        new.code == "missing-proxy-fence"
            && (known.code, known.severity, &known.help) == (new.code, new.severity, &new.help)
            && stores(known).iter().any(|store| stores(new).contains(store))
    };
    join(drafts, belongs, |_, known, other| {
        let labels = known.take_over(other);
        join_labels(&mut known.labels, labels);
    });
}
