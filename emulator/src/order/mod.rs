//! Happens-before: which access is ordered after which, whatever this schedule happened to give.
//!
//! *Who*: an [`ActorId`] is a warp, or a queue of asynchronous operations that complete in order (the MMAs of one thread,
//! the `tcgen05.ld`s of one warp). Its accesses carry an epoch. *What is known*: each warp has [`Views`], clocks that
//! say up to which epoch of each actor its accesses come later: `hb` for what the generic proxy sees, `scoped` for what it sees
//! through scopes that are wide enough, `fenced` for what has
//! also crossed a `fence.proxy.async`, so that the asynchronous proxy sees it, and others for tensor memory, for
//! initialisations of mbarriers and for mere order in time. *Where*: a [`Shadow`] beside each memory
//! keeps the last write and the reads since, byte for byte.
//!
//! An access conflicts with an earlier one when one of them writes and the earlier one is not in the right clock. The clocks
//! do not depend on the schedule, so one run finds the races of every schedule in which the warps take the same paths.
//!
//! [`RULES`] says in words from where to where the clocks travel.

mod blocks;
mod clock;
mod footprint;
mod history;
mod page;
mod places;
mod rows;
mod rules;
mod shadow;
mod stamp;

pub use clock::{ActorId, Clock, Far, NOBODY, Views};
pub use footprint::{Footprint, Run};
pub use rows::{Area, Rows};
pub use rules::{RULES, Rule};
pub use shadow::{BLOCK, Conflict, GRANULE, Shadow};
pub use stamp::{Access, NOWHERE, Reason, Stamp, Strength, Sum};
