//! How threads and engines wait for each other: barriers of a CTA and of a cluster, mbarriers with their phases, and the scopes of both.

pub mod cluster;
pub mod cta;
pub mod mbarrier;
pub mod mbarrier_ops;
pub mod mbarrier_places;
pub mod mbarrier_state;
pub mod mbarrier_wait;
pub mod scopes;
pub mod sync;
