//! What lies in tiles of shared memory, how MMAs read it, and what is said where both disagree: swizzles, strides, depths, rows, types.

pub mod added;
pub mod apart;
pub mod boxes;
pub mod copied;
pub mod depths;
pub mod drawn_up;
pub mod loaded;
pub mod narrow;
pub mod offsets;
pub mod operand_types;
pub mod slices;
pub mod stage;
pub mod staged;
pub mod stored;
pub mod stored_again;
pub mod suspected;
pub mod taken;
pub mod too_wide;
pub mod turned;
pub mod unread;
pub mod unshifted;
