//! Solutions with a constant or a line replaced, for the figures of the book.
//!
//! **Does:** make them from the solutions by the table in `table.rs`; a passage that no longer stands there is a build error.
//! **Never does:** run them; the harness records them, and what it says of each is tested there.

include!(concat!(env!("OUT_DIR"), "/variants.rs"));
