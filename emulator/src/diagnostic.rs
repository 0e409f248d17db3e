//! What the emulator says when something is wrong: a value, with a stable code, places and a way out.

use serde::Serialize;

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// A rule was broken that no machine code would show (e.g. a missing `tcgen05.fence`). Printed apart.
    Note,
    /// A rule was broken; the run went on.
    Finding,
    /// The run could not go on (or could not begin).
    Error,
}

/// A place in the PTX text and, if a `.loc` says so, in the program it was made from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct Place {
    /// Line in the PTX text, from 1; 0 when there is none (e.g. an error of the launch description).
    pub line: u32,
    /// Column in the PTX text, from 1.
    pub column: u32,
    /// The PTX text there.
    pub text: String,
    /// The source line, from `.loc`.
    pub source: Option<Source>,
}

impl Place {
    /// File and number of the line that is shown: that of the source, where it is known.
    pub(crate) fn shown(&self) -> (Option<&str>, u32) {
        self.source.as_ref().map_or((None, self.line), |source| (Some(&source.file), source.line))
    }
}

/// Adds places to those of a diagnostic: no line twice, and no more than can be read.
pub(crate) fn join_labels(known: &mut Vec<Label>, more: Vec<Label>) {
    for label in more {
        if let Some(seen) = known.iter_mut().find(|k| k.place.shown() == label.place.shown()) {
            label.about.into_iter().for_each(|subject| seen.concerns(subject));
        } else if known.len() < 5 {
            known.push(label);
        }
    }
}

/// A line of the program that the PTX was made from.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct Source {
    /// File, as `.file` names it.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
    /// Column, from 1; 0 when unknown.
    pub column: u32,
}

/// A place and what happened there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    /// Where.
    pub place: Place,
    /// What happened there, in a few words.
    pub text: String,
    /// Of a hang: somebody who waits, too, and is not why.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aside: bool,
    /// What follows from it, beside its words.
    #[serde(skip)]
    pub meaning: Meaning,
    /// The barriers that it is about: other findings may be about the same.
    #[serde(skip)]
    pub(crate) about: Vec<Subject>,
}

/// A barrier, by its place in its cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Where it lies in the shared memory of a CTA.
    Mbarrier {
        cta: usize,
        offset: u32,
    },
    CtaBarrier {
        cta: usize,
        id: u32,
    },
}

/// What a label says that other findings, or a judge, go by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Meaning {
    /// Nothing but its words.
    #[default]
    Plain,
    /// A wait that passed on a phase which had let its warp pass before.
    PassedAgain,
    /// A wait that passed on an earlier phase than that of what it should wait for.
    PassedEarlier,
    /// An mbarrier that is initialised for fewer arrivals than come in a phase.
    CountsTooFew,
    /// A request of launch control that was refused as often as it was made.
    NeverGranted,
    /// An access of a flag without the order that the accesses around it need.
    OrdersNothing,
    /// A CTA barrier at which warps of different groups let each other go on.
    Mixes,
    /// A multicast whose mask leaves out a CTA that its bytes are announced in.
    LeavesOut,
    /// A copy of which nobody reads anything.
    NothingRead,
    /// An MMA to which both CTAs of a pair bring the same half of an operand.
    SameHalves,
    /// An MMA whose instruction descriptor says less than its tiles have.
    TooNarrow,
    /// A tile that is stored elsewhere than it belongs, or added to others than it belongs to. Who knows the product knows whether it is the store, or what was
    /// loaded or multiplied.
    BelongsElsewhere,
    /// An MMA that no commit follows.
    NotCommitted,
    /// A copy that writes the same bytes for two mbarriers.
    OneForTwoStages,
    /// A copy to bytes to which another CTA copies, too.
    SameBytes,
    /// A store that comes behind the copy of its own round: nothing lets that wait for it.
    ComesLate,
    /// A wait for groups that leaves one which it should not.
    LeavesGroups,
    /// A wait for groups in front of the commit of copies before it.
    Uncommitted,
    /// An access of a flag that does not reach the other side.
    Flag,
    /// An arrival that does not belong to its mbarrier, but to one that somebody waits for in vain.
    Astray,
    /// An arrival that may be meant for an mbarrier that somebody waits for in vain.
    PerhapsAstray,
}

impl Label {
    /// What happened at a place.
    pub fn new(place: Place, text: impl Into<String>) -> Label {
        Label { place, text: text.into(), aside: false, meaning: Meaning::Plain, about: vec![] }
    }

    /// The same label, with what others go by.
    #[must_use]
    pub fn that_means(self, meaning: Meaning) -> Label {
        Label { meaning, ..self }
    }

    /// It is of a wait that passed on another phase than that which it was meant for.
    pub(crate) fn passed_wrongly(&self) -> bool {
        matches!(self.meaning, Meaning::PassedAgain | Meaning::PassedEarlier)
    }

    /// It is about this barrier, too.
    pub(crate) fn concerns(&mut self, subject: Subject) {
        if !self.about.contains(&subject) {
            self.about.push(subject);
        }
    }

    /// The same label, about a barrier.
    #[must_use]
    pub(crate) fn that_is_about(mut self, subject: Subject) -> Label {
        self.concerns(subject);
        self
    }
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Diagnostic {
    /// Stable code, e.g. `missing-proxy-fence`. Every code is in [`crate::CODES`].
    pub code: &'static str,
    /// Its weight.
    pub severity: Severity,
    /// One sentence: what happened, with the names of buffers and barriers.
    pub title: String,
    /// Where, and what happened there. The first is the primary place. Empty only for errors of a launch description.
    pub labels: Vec<Label>,
    /// The rule that was broken, in one sentence, with its source (a section of the PTX ISA, or a measurement).
    pub rule: String,
    /// One thing to try.
    pub help: String,
    /// How often this root cause was seen.
    pub count: u64,
    /// What another schedule made of it: see [`crate::confirm`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirmed: Option<Witness>,
}

/// A schedule that gives another outcome than the run of a finding did.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Witness {
    /// The seed that repeats it.
    pub seed: u64,
    /// What came of it: a wrong value, or a hang.
    pub outcome: String,
}

impl Diagnostic {
    /// The barriers that its labels are about.
    pub(crate) fn subjects(&self) -> impl Iterator<Item = Subject> {
        self.labels.iter().flat_map(|label| label.about.iter().copied())
    }

    /// The source line of the primary place, if a `.loc` covers it.
    pub fn source(&self) -> Option<&Source> {
        self.labels.first()?.place.source.as_ref()
    }
}
