//! Loops that nothing ends any more: polls that find the same each time (`livelock`, `trail`), counts and clocks that end one too late
//! (`forecast`, `runaway`), ways out that nothing decides anew (`endless`).

pub mod endless;
pub mod forecast;
pub mod livelock;
pub mod runaway;
pub mod trail;
