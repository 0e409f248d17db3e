//! Who executes a scope, as types: the sealed traits that say which instructions a scope may hold.
//!
//! The types have the names of their scopes (`ptx::Warp` is `Scope<level::Warp>`), so that the compiler's messages say
//! what a kernel's author calls them.

pub(crate) mod sealed {
    /// The levels as values, for what a scope does differently at each.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Kind {
        Cta,
        Warpgroup,
        Warp,
        Thread,
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
pub struct Cta;
/// The four warps of a warpgroup.
#[derive(Debug)]
pub struct Warpgroup;
/// The 32 threads of a warp.
#[derive(Debug)]
pub struct Warp;
/// One thread of a warp.
#[derive(Debug)]
pub struct Thread;
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
    Cta, SomeThreads;
    Warpgroup, SomeThreads;
    Warp, SomeThreads;
    Thread, Thread;
    SomeThreads, SomeThreads;
}

/// Every thread of the CTA.
#[diagnostic::on_unimplemented(
    message = "a CTA barrier needs every thread of the CTA, and the scope here is `{Self}`",
    label = "this waits for threads that never come",
    note = "a part of the CTA would wait for the others for ever: call it on `k`, after the inner scope is closed",
    note = "the threads of one warpgroup meet by `wg.sync_warpgroup(number)`, each warpgroup at a number of its own"
)]
pub trait WholeCta: Level {}
impl WholeCta for Cta {}

/// Exactly one warpgroup, whole.
#[diagnostic::on_unimplemented(
    message = "this needs one whole warpgroup, and the scope here is `{Self}`",
    label = "all 128 threads of one warpgroup execute this together",
    note = "open the scope of a warpgroup with `k.warpgroup(0, |wg| ...)`, and call it on `wg`, outside of `wg.warp`"
)]
pub trait OneWarpgroup: Level {}
impl OneWarpgroup for Warpgroup {}

/// More than one warp.
#[diagnostic::on_unimplemented(
    message = "a warp is picked out of a CTA or a warpgroup, and the scope here is `{Self}`",
    label = "needs the scope of the CTA (`k`) or of a warpgroup (`wg`)"
)]
pub trait ManyWarps: Level {}
impl ManyWarps for Cta {}
impl ManyWarps for Warpgroup {}

/// Exactly one warp, whole.
#[diagnostic::on_unimplemented(
    message = "this needs one whole warp, and the scope here is `{Self}`",
    label = "all 32 lanes of one warp execute this together",
    note = "open the scope of a warp with `k.warp(0, |w| ...)`, and call it on `w`, outside of `elect_one`"
)]
pub trait OneWarp: Level {}
impl OneWarp for Warp {}

/// Whole warps, one or more.
#[diagnostic::on_unimplemented(
    message = "this needs whole warps, and the scope here is `{Self}`",
    label = "all 32 lanes of a warp execute this together",
    note = "call it on the scope of the CTA (`k`), of a warpgroup (`wg`) or of a warp (`w`)"
)]
pub trait WholeWarps: Level {}
impl WholeWarps for Cta {}
impl WholeWarps for Warpgroup {}
impl WholeWarps for Warp {}

/// A single thread.
#[diagnostic::on_unimplemented(
    message = "this is for one thread, and the scope here is `{Self}`: each of its threads would do it again",
    label = "needs the scope of one elected thread (`t`)",
    note = "pick a thread with `k.warp(0, |w| w.elect_one(|t| ...))`, and call it on `t`"
)]
pub trait OneThread: Level {}
impl OneThread for Thread {}
