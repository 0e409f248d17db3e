//! What a launch loads, adds up, reads and stores as a whole, and what not: parts of tensors that nobody loads, depths that are missing in a sum, tiles of D at
//! another place, accumulators that nobody reads.

pub mod accumulators;
pub mod chunks;
pub mod drained;
mod exchanged;
pub mod factors_left;
pub mod inputs;
pub mod lanes;
pub mod loads;
pub mod made_of;
pub mod mixed;
pub mod order;
pub mod outputs;
pub mod parts;
pub mod placed;
pub mod rounds;
pub mod stored;
pub mod sums;
