//! Which findings follow from which others: a cause is told, and what it leads to stands behind it or is left out.

use super::belongs::*;
use super::statements::Statements;
use crate::diagnostic::Diagnostic;

/// What becomes of a diagnostic that follows from another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Then {
    /// It is not told.
    Dropped,
    /// It is told with the other one, as a place of that.
    Joined,
    /// It stands behind all that follow from nothing.
    Behind,
}

/// A diagnostic of one of the first codes follows from a finding of one of the others (none: of any other), if the two belong together.
pub struct Follows(pub &'static [&'static str], pub &'static [&'static str], pub Belongs, pub Then);

/// Whether the one belongs to the other.
pub type Belongs = fn(&Diagnostic, &Diagnostic, &Statements) -> bool;

/// Waits that do not wait, phases that are mixed up, runs that do not come to their end: they keep a product from being read in time.
const LEAVES_UNREAD: &[&str] = &[
    "accumulator-overwritten",
    "aligned-lanes-missing",
    "can-hang",
    "early-arrival",
    "hang",
    "instruction-budget",
    "issued-by-many-lanes",
    "mbarrier-init-unordered",
    "mbarrier-overflow",
    "mbarrier-split",
    "missing-wait-ld",
    "mma-not-awaited",
    "mma-not-committed",
    "phase-completed-early",
    "phase-overtaken",
    "race-tensor",
    "wait-result-unread",
    "wrong-phase",
];

/// Operands that are read otherwise than they were loaded, or when they are not there.
const READ_OTHERWISE: &[&str] =
    &["box-mismatch", "depth-mismatch", "operand-not-ready", "operand-overwritten", "race-shared", "swizzle-mismatch"];

/// What is told of an MMA whose operand lies elsewhere than it should.
const READ_ELSEWHERE: &[&str] = &[
    "box-mismatch",
    "depth-mismatch",
    "loaded-never-read",
    "operand-not-ready",
    "operand-overlap",
    "operand-overwritten",
    "product-added-twice",
    "race-shared",
    "swizzle-mismatch",
    "undefined-operand",
    "undefined-value-stored",
];

/// Accesses of memory that nothing orders.
const RACES: &[&str] = &["race-global", "race-shared", "race-tensor"];

/// Somebody reads tensor memory too early.
const READS_EARLY: &[&str] = &["mma-not-awaited", "mma-not-committed", "wrong-phase", "early-arrival"];

/// What a load of tensor memory leads to that reads other columns than it should.
const READS_BESIDE: &[&str] = &["mma-not-awaited", "race-tensor", "undefined-value-stored"];

/// What a wait leads to that passes twice on one phase: who goes on so reads, tells and frees too early.
const BY_PARITY: &[&str] = &["operand-not-ready", "operand-overwritten", "phase-overtaken", "product-added-twice"];

/// What a wait leads to that passes before all have arrived.
const BY_COUNT: &[&str] = &[
    "accumulator-overwritten",
    "can-hang",
    "early-arrival",
    "mma-not-awaited",
    "operand-not-ready",
    "operand-overwritten",
    "race-shared",
    "race-tensor",
    "tensor-freed-in-use",
];

/// What keeps a wait from telling that its mbarrier is no longer used.
const BEFORE_THE_END: &[&str] = &[
    "wait-result-unread",
    "early-arrival",
    "wrong-phase",
    "operand-overwritten",
    "operand-not-ready",
    "mma-not-awaited",
    "accumulator-overwritten",
];

pub const UNDEFINED: &[&str] = &["undefined-value-stored", "undefined-operand"];

pub const TOO_EARLY: &str = "phase-completed-early";

/// What follows from what.
pub const FOLLOWS: &[Follows] = &[
    // What keeps a phase from being seen says more than that it is overtaken: that stages are released before the MMAs of a warpgroup have
    // read them, or that something arrives at the same mbarrier too early.
    Follows(
        &["phase-overtaken"],
        &["hang", "issued-by-many-lanes", "wrong-phase", "mbarrier-overflow", "mbarrier-split"],
        anywhere,
        Then::Dropped,
    ),
    Follows(&["phase-overtaken"], &["operand-overwritten"], of_wgmma, Then::Dropped),
    Follows(&["phase-overtaken"], &["wait-result-unread"], anywhere, Then::Dropped),
    Follows(&["mbarrier-overflow"], &["wait-result-unread"], has_its_place, Then::Dropped),
    Follows(&["mbarrier-overflow"], &["wait-result-unread"], anywhere, Then::Behind),
    // An mbarrier goes at the end: what is not waited for before is told where it begins.
    Follows(&["mbarrier-invalidated-early"], BEFORE_THE_END, anywhere, Then::Behind),
    // Others hear by a barrier of who has not waited.
    Follows(&["mma-not-awaited"], &["wait-result-unread"], shares_a_line, Then::Dropped),
    // A note of the wait that a hang or an arrival too many is told by.
    Follows(&["wait-result-unread"], &["hang", "mbarrier-overflow"], has_its_place, Then::Dropped),
    Follows(&["phase-overtaken"], &["early-arrival"], shares_a_line, Then::Dropped),
    Follows(&["phase-overtaken"], &["early-arrival"], arrives_behind_its_wait, Then::Dropped),
    // What an arrival leads to at an mbarrier that it is not meant for. Where that is a guess, who reads too early is told all the same.
    Follows(&["early-arrival"], &["hang"], begins_astray, Then::Dropped),
    Follows(&["mbarrier-split"], &["hang"], begins_perhaps_astray, Then::Dropped),
    Follows(&["early-arrival"], &["hang"], begins_perhaps_astray, Then::Behind),
    // What reads the bytes of a box, but otherwise than they lie there, or at the wrong time, leaves out others.
    Follows(&["loaded-never-read"], READ_OTHERWISE, shares_a_line, Then::Dropped),
    Follows(&["loaded-never-read"], &["operand-overlap"], anywhere, Then::Dropped),
    // Rows that an MMA is too narrow for, and what it has not written then.
    Follows(&["loaded-never-read"], UNDEFINED, is_of_the_same_mma, Then::Dropped),
    Follows(&["loaded-never-read"], &["instruction-descriptor"], is_of_the_same_mma, Then::Dropped),
    Follows(UNDEFINED, &["instruction-descriptor"], reads_what_a_narrow_mma_leaves_out, Then::Dropped),
    // Where the run has stopped at the address, that says what is wrong with it.
    Follows(&["matrix-descriptor"], &["out-of-bounds"], is_of_the_same_mma, Then::Dropped),
    Follows(READ_ELSEWHERE, &["out-of-bounds"], is_read_elsewhere, Then::Dropped),
    // Of what is read with another swizzle than it was stored with, nobody asks which bytes elements share.
    Follows(&["operand-overlap"], &["swizzle-mismatch"], is_a_note_of_the_same_mma, Then::Dropped),
    // An offset that leads beyond its own box leads into the next one.
    Follows(&["operand-overlap"], &["box-mismatch"], asks_for_the_same, Then::Dropped),
    // An operand that is read at a wrong address is anything but what was loaded.
    Follows(READ_ELSEWHERE, &["matrix-descriptor", "instruction-descriptor"], is_read_elsewhere, Then::Dropped),
    // Who reads too early, or another phase, has not read what he should have.
    Follows(&["product-overwritten"], LEAVES_UNREAD, anywhere, Then::Dropped),
    Follows(&["product-overwritten"], &[], shares_a_line, Then::Dropped),
    // The other finding says where the value comes from, or may explain it.
    Follows(&["undefined-value-stored"], &[], has_its_place, Then::Dropped),
    Follows(UNDEFINED, &[], has_its_place, Then::Behind),
    Follows(UNDEFINED, READS_EARLY, is_placed, Then::Behind),
    // Who is told too early that a stage is there, or free, arrives too often in turn; so does who fills it too early.
    Follows(&["mbarrier-overflow"], &["operand-not-ready"], anywhere, Then::Behind),
    Follows(&["mbarrier-overflow"], &["operand-overwritten"], names_no_wait, Then::Behind),
    // What is multiplied before its bytes are there: a phase has not waited for all of them.
    Follows(UNDEFINED, &[TOO_EARLY], is_multiplied, Then::Dropped),
    Follows(&["operand-not-ready", "race-shared"], &[TOO_EARLY], names_its_copy, Then::Dropped),
    // Who frees a stage by MMAs that have not waited for its bytes frees it too early: who has waited for that brings the next ones.
    Follows(&["operand-overwritten"], &[TOO_EARLY], names_its_copy_and_a_wait, Then::Dropped),
    Follows(&["phase-overtaken"], &[TOO_EARLY], is_before_its_copy, Then::Dropped),
    // Nor does anybody know when such a copy is complete, or to which phase its bytes come.
    Follows(&["mbarrier-invalidated-early", "can-hang"], &[TOO_EARLY], names_its_copy, Then::Dropped),
    // Bytes that are written for two stages are those of neither.
    Follows(&["operand-not-ready", "operand-overwritten"], &["race-shared"], names_its_two_stages, Then::Dropped),
    Follows(&["mbarrier-overflow", "hang"], &["race-shared"], is_of_two_stages, Then::Behind),
    // Who reads a product that it has not waited for hands its columns back too early: phases go by that nobody has seen.
    Follows(&["hang"], &["mma-not-awaited"], arrives_behind, Then::Behind),
    // So does who multiplies what it has not waited for: its commits come too early.
    Follows(&["hang"], &["race-tensor"], commits_behind_its_mma, Then::Behind),
    // So do phases that are complete before all have arrived.
    Follows(&["hang", "accumulator-overwritten"], &["race-tensor"], says_that_one_counts_too_few, Then::Behind),
    // What a warp stores behind a load of a product that it has not waited for.
    Follows(
        &["race-shared", "operand-not-ready", "operand-overwritten"],
        &["mma-not-awaited"],
        stores_behind,
        Then::Behind,
    ),
    // A phase that is too early leaves bytes to the next ones: those are told by their copies, where what was announced is no longer known.
    Follows(&[TOO_EARLY], &[TOO_EARLY], names_copies_alone, Then::Dropped),
    // A piece of a tile was not written anew where its store races with the copy.
    Follows(&["swizzle-mismatch"], &["race-shared"], is_of_stores_that_race, Then::Joined),
    // A copy that does not wait for the accesses of threads also comes before those of its next round.
    Follows(&["race-shared"], &["race-shared"], comes_before_its_copy_too, Then::Joined),
    // Who reads too early what another one has written writes over it too early in turn.
    Follows(&["race-global"], &["race-global"], overwrites_what_it_reads, Then::Joined),
    // What is stored to another chunk than its own meets the one that belongs there.
    Follows(&["race-shared"], &["swizzle-mismatch"], is_of_a_misplaced_store, Then::Dropped),
    // Who does not wait at the cluster's barrier does not know what was done before it.
    Follows(&["mbarrier-init-unordered"], &["cluster-barrier"], anywhere, Then::Behind),
    Follows(&["phase-completed-early", "can-hang", "hang"], &["issued-by-many-lanes"], shares_a_line, Then::Dropped),
    // Nor does a phase that the bytes of the others complete wait for all that is multiplied.
    Follows(UNDEFINED, &["issued-by-many-lanes"], anywhere, Then::Behind),
    Follows(&["operand-not-ready", "race-shared"], &["issued-by-many-lanes"], names_its_copy, Then::Dropped),
    Follows(&["loaded-never-read"], &["issued-by-many-lanes"], shares_a_line, Then::Dropped),
    // What several lanes or warps issue is done again by each of them.
    Follows(&["product-added-twice"], &["issued-by-many-lanes"], is_of_the_same_mma, Then::Dropped),
    // Of an operand that does not lie as its box, the depths and the bytes beyond are others.
    Follows(&["depth-mismatch"], &["box-mismatch"], is_of_the_same_mma, Then::Dropped),
    Follows(&["operand-not-ready"], &["box-mismatch"], is_of_the_same_mma, Then::Behind),
    // Who reads a product in another phase hands its columns back too early; so does who is told of it too early, and who arrives too often.
    Follows(&["accumulator-overwritten"], &["wrong-phase", "early-arrival"], is_handed_back_behind, Then::Dropped),
    Follows(&["accumulator-overwritten"], &["mbarrier-split"], tells_by_its_arrival, Then::Dropped),
    // So does who reads another product than it has waited for: it hands that one back.
    Follows(&["accumulator-overwritten"], &["mma-not-awaited"], is_of_its_load, Then::Dropped),
    // An mbarrier that counts too few arrivals is told once.
    Follows(
        &["early-arrival", "mbarrier-invalidated-early", "phase-overtaken"],
        &["operand-overwritten"],
        is_of_a_count,
        Then::Dropped,
    ),
    Follows(&["mbarrier-invalidated-early", "phase-overtaken"], &["early-arrival"], is_of_a_count, Then::Dropped),
    // Who begins an accumulator that nobody has handed back goes through phases that nobody has seen.
    Follows(&["phase-overtaken"], &["accumulator-overwritten"], names_such_a_wait, Then::Dropped),
    Follows(&["phase-overtaken"], &["accumulator-overwritten"], is_around_its_load, Then::Dropped),
    // Who takes one phase for the next goes on too early, and says so to others too early, or too often.
    Follows(BY_PARITY, &["mbarrier-overflow"], is_behind_a_second_pass, Then::Dropped),
    Follows(&["phase-overtaken"], &["operand-not-ready"], is_behind_a_second_pass, Then::Dropped),
    Follows(&["race-shared"], &["mbarrier-overflow"], names_the_same_second_pass, Then::Dropped),
    Follows(&["mbarrier-overflow", "hang", "race-shared"], &["race-shared"], waits_again, Then::Behind),
    // An mbarrier that counts too few arrivals lets all go on too early that wait for it.
    Follows(&["phase-overtaken"], &["race-shared"], is_of_a_count_that_is_told, Then::Dropped),
    Follows(BY_COUNT, &["phase-overtaken", "hang"], begins_with_a_count, Then::Dropped),
    Follows(BY_COUNT, &["phase-overtaken", "hang"], counts_too_few, Then::Behind),
    // Who waits for such an mbarrier it does not say.
    Follows(BY_COUNT, &["mbarrier-split"], anywhere, Then::Behind),
    // Two CTAs bring their parts to one: the other one's bytes never come.
    Follows(UNDEFINED, &["race-shared"], is_multiplied_and_lacks_bytes, Then::Dropped),
    Follows(&["hang"], &["race-shared"], lacks_bytes, Then::Behind),
    // Where an mbarrier goes too early, who still waits for it may wait for ever.
    Follows(&["can-hang"], &["mbarrier-invalidated-early"], names_its_first_place, Then::Dropped),
    // A wait that passed on no phase, or an old one, sees none of those that it should.
    Follows(&["phase-overtaken"], RACES, shares_its_wrong_wait, Then::Dropped),
    // Who has read a stage says so, and is waited for, before it is loaded again: then the phase before has been seen, too.
    Follows(&["phase-overtaken"], &["race-shared"], is_loaded_before_it_is_read, Then::Dropped),
    // Warps that have heard of no product by a wait of their own lack one thing, whatever each has waited for before.
    Follows(&["early-arrival"], &["mma-not-awaited"], reads_beside_it, Then::Dropped),
    // A copy that is committed late makes all waits behind it count other groups than they should.
    Follows(&["race-shared"], &["race-shared"], counts_groups_behind, Then::Dropped),
    // Behind a wait that passes too early, a product is not there yet.
    Follows(UNDEFINED, &["wrong-phase"], reads_behind_its_wait, Then::Dropped),
    // What a flag tells of races where the flag does.
    Follows(RACES, RACES, is_behind_its_flag, Then::Dropped),
    // Each warp that executes tcgen05.alloc gets columns of its own.
    Follows(&["tensor-memory-leak"], &["race-shared"], is_allocated_twice, Then::Dropped),
    // What an MMA takes for A in place of what was stored is not waited for.
    Follows(&["race-tensor"], &["type-mismatch"], is_of_the_same_mma, Then::Dropped),
    // A mask that leaves a CTA out has others get more than they announce.
    Follows(&[TOO_EARLY, "operand-overlap"], &["hang"], names_a_mask, Then::Dropped),
    // What stands behind a barrier that lets warps go on which do not belong together.
    Follows(&["race-shared"], &["race-shared", "hang"], is_behind_a_mixed_barrier, Then::Dropped),
    // What is read behind a box may be no number.
    Follows(&["undefined-value-stored"], &["box-mismatch"], anywhere, Then::Behind),
    // Rows that are stored again as they are, for the copy takes them from the place of others.
    Follows(&["swizzle-mismatch"], &["box-mismatch"], is_a_note_of_its_place, Then::Dropped),
    // Of boxes that nobody reads, what they lack in says more.
    Follows(&["loaded-never-read"], &["loaded-never-read"], is_a_note_of_its_place, Then::Dropped),
    // Two groups at one barrier: what comes of it, or what made them meet there, says more.
    Follows(&["named-barrier"], &[], is_no_error, Then::Dropped),
    // A load that is beside its columns reads some that nobody has written, or another product, for which nobody has waited.
    Follows(READS_BESIDE, &["product-never-read"], has_its_place, Then::Dropped),
    // Warps let each other go on where they do not belong together: some come too late for what they wait for.
    Follows(&["hang"], &["race-shared"], names_a_barrier, Then::Behind),
];
