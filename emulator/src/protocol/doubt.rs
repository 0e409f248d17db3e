//! What stands against a proof.

/// What the recorded run does not order, so that another interleaving may do otherwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Doubt {
    /// The step it is about, and its statement.
    pub step: u32,
    pub site: u32,
    pub why: Why,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Why {
    /// This wait is for `phase` of the mbarrier; the phase behind may complete before the wait looks. `by` is what completes it.
    Overtaken { barrier: u32, phase: u32, by: u32 },
    /// This arrival, or these bytes, may come before the phase before theirs is complete. `sure`: an interleaving was found in which they count for
    /// an earlier phase. `wait`: a statement that waits for the phase before.
    CountsEarly { barrier: u32, phase: u32, sure: bool, wait: Option<u32> },
    /// This announcement may come behind all arrivals of its phase, which is then complete without it. `sure`: it is known that other bytes do
    /// not keep the phase open in each such interleaving.
    AnnouncedLate { barrier: u32, phase: u32, sure: bool },
    /// This use of an mbarrier may come before its initialisation.
    BeforeInit { barrier: u32 },
    /// The mbarrier is initialised again or invalidated here, which may come before a use.
    EndsInUse { barrier: u32 },
    /// This arrival at a CTA barrier may come before the phase before its own is complete.
    NamedEarly { cta: u8, id: u8 },
    /// This allocation may wait for columns that the CTA itself holds, or one of another cluster that waits for this one's.
    Columns,
    /// The same of the right to allocate.
    Permit,
    /// The record does not explain why this wait passed.
    NotModelled,
    /// Registers are given back here only behind a warp that takes some: that one may wait for these.
    Registers,
}
