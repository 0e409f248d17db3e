//! Who executes a scope, as types: the sealed traits that say which instructions a scope may hold.

pub(crate) mod sealed {
    /// The levels as values, for what a scope does differently at each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        CtaThreads,
        WarpgroupThreads,
        WarpThreads,
        ElectedThread,
        SomeThreads,
    }

    pub trait Level {
        const KIND: Kind;
    }
}

/// Who executes a [`crate::Scope`].
pub trait Level: sealed::Level {
    /// Who executes what is left of it under a condition that not all threads need share.
    type Divergent: Level;
}

/// All threads of the CTA.
#[derive(Debug)]
pub struct CtaThreads;
/// The four warps of a warpgroup.
#[derive(Debug)]
pub struct WarpgroupThreads;
/// The 32 threads of a warp.
#[derive(Debug)]
pub struct WarpThreads;
/// One thread of a warp.
#[derive(Debug)]
pub struct ElectedThread;
/// Those threads for which a condition holds.
#[derive(Debug)]
pub struct SomeThreads;

macro_rules! levels {
    ($($level:ident, $divergent:ident;)+) => {
        $(
            impl sealed::Level for $level {
                const KIND: sealed::Kind = sealed::Kind::$level;
            }
            impl Level for $level {
                type Divergent = $divergent;
            }
        )+
    };
}

levels! {
    CtaThreads, SomeThreads;
    WarpgroupThreads, SomeThreads;
    WarpThreads, SomeThreads;
    ElectedThread, ElectedThread;
    SomeThreads, SomeThreads;
}

/// Every thread of the CTA.
#[diagnostic::on_unimplemented(
    message = "a CTA barrier needs every thread of the CTA, not only {Self}",
    label = "this waits for threads that never come",
    note = "a part of the CTA would wait for the others for ever: call it on the outer scope, after this one is closed"
)]
pub trait WholeCta: Level {}
impl WholeCta for CtaThreads {}

/// More than one warp.
#[diagnostic::on_unimplemented(
    message = "a warp is picked out of a CTA or a warpgroup, not of {Self}",
    label = "needs the scope of the CTA or of a warpgroup"
)]
pub trait ManyWarps: Level {}
impl ManyWarps for CtaThreads {}
impl ManyWarps for WarpgroupThreads {}

/// Exactly one warp, whole.
#[diagnostic::on_unimplemented(
    message = "this needs one whole warp, not {Self}",
    label = "all 32 lanes of one warp execute this together",
    note = "open the scope of a warp with `k.warp(0, |w| ...)`, and call it on `w`, outside of `elect_one`"
)]
pub trait OneWarp: Level {}
impl OneWarp for WarpThreads {}

/// Whole warps, one or more.
#[diagnostic::on_unimplemented(
    message = "this needs whole warps, not {Self}",
    label = "all 32 lanes of a warp execute this together",
    note = "call it on the scope of the CTA, of a warpgroup or of a warp"
)]
pub trait WholeWarps: Level {}
impl WholeWarps for CtaThreads {}
impl WholeWarps for WarpgroupThreads {}
impl WholeWarps for WarpThreads {}

/// A single thread.
#[diagnostic::on_unimplemented(
    message = "this is for one thread, not for {Self}: each of them would do it again",
    label = "needs the scope of an elected thread",
    note = "pick a thread with `k.warp(0, |w| w.elect_one(|t| ...))`, and call it on `t`"
)]
pub trait OneThread: Level {}
impl OneThread for ElectedThread {}
