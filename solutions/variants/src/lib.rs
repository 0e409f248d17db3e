//! Solutions with a constant or a line replaced, for the figures of the book and the answers of its exercises.
//!
//! **Does:** make them from the solutions by the table in `table.rs`; a passage that no longer stands there is a build error.
//! **Never does:** run them; the harness records those of the figures, and the book's tests run those of the answers.

include!(concat!(env!("OUT_DIR"), "/variants.rs"));
