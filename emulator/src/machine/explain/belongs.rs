//! When one finding belongs to another one, so that it may follow from it: they share a place, or one's places lead to the other's. `one` is what may follow,
//! `other` what it may follow from. [`super::follows`] says which codes that is asked of.

use super::statements::{Does, Statements};
use crate::diagnostic::{Diagnostic, Label, Meaning, Place, Severity};

pub fn anywhere(_: &Diagnostic, _: &Diagnostic, _: &Statements) -> bool {
    true
}

/// The run went on behind it.
pub fn is_no_error(one: &Diagnostic, _: &Diagnostic, _: &Statements) -> bool {
    one.severity < Severity::Error
}

pub fn has_line(d: &Diagnostic, label: &Label) -> bool {
    is_at(d, &label.place)
}

pub fn is_at(d: &Diagnostic, place: &Place) -> bool {
    d.labels.iter().any(|known| known.place.shown() == place.shown())
}

/// The one names an arrival of threads further down than the load that the other names.
pub fn arrives_behind(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let behind = |arrival: &Place| {
        let mut loads = other.labels.iter().filter(|label| statements.are(&label.place, Does::Reads));
        loads.any(|load| statements.behind(arrival, &load.place))
    };
    one.labels.iter().any(|label| statements.are(&label.place, Does::Arrives) && behind(&label.place))
}

/// The one is of a store further down than the first place of the other.
pub fn stores_behind(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let Some(load) = other.labels.first() else { return false };
    let stores = |place: &Place| statements.are(place, Does::Stores) || statements.are(place, Does::Sends);
    let behind = |place: &Place| stores(place) && statements.behind(place, &load.place);
    one.labels.iter().any(|label| behind(&label.place))
}

pub fn shares_a_line(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    one.labels.iter().any(|label| has_line(other, label))
}

/// The other is more than a note, and both name one MMA.
pub fn is_of_the_same_mma(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let does = |label: &&Label| [Does::Multiplies, Does::Wgmma].iter().any(|what| statements.are(&label.place, *what));
    let less = one.severity < Severity::Error && other.severity > Severity::Note;
    less && one.labels.iter().filter(does).any(|label| has_line(other, label))
}

/// The one is of the same MMA, and one thing mends both.
pub fn asks_for_the_same(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    one.help == other.help && is_of_the_same_mma(one, other, statements)
}

/// The one is of the same MMA, and says of no wait that it has passed on a wrong phase.
pub fn is_read_elsewhere(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    is_of_the_same_mma(one, other, statements)
        && !says_too_narrow(other)
        && !one.labels.iter().any(Label::passed_wrongly)
}

/// One of its labels means this.
fn says(d: &Diagnostic, what: Meaning) -> bool {
    d.labels.iter().any(|label| label.meaning == what)
}

fn says_too_narrow(d: &Diagnostic) -> bool {
    says(d, Meaning::TooNarrow)
}

/// The other says of an MMA that it leaves out what is read; the one is of tensor memory that nothing has written, and knows no more of it.
pub fn reads_what_a_narrow_mma_leaves_out(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let reads = one.labels.first().is_some_and(|label| statements.are(&label.place, Does::Reads));
    let multiplies = |label: &Label| statements.are(&label.place, Does::Multiplies);
    says_too_narrow(other) && reads && !one.labels.iter().any(|label| multiplies(label) && !has_line(other, label))
}

pub fn is_a_note_of_the_same_mma(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    one.severity == Severity::Note && is_of_the_same_mma(one, other, statements)
}

/// The first place of the one is a place of the other.
pub fn has_its_place(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    one.labels.first().is_some_and(|origin| has_line(other, origin))
}

/// The one is a note, and its first place is a place of the other, which is none, or tells of two boxes at once.
pub fn is_a_note_of_its_place(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let more = other.severity > Severity::Note || one.labels.len() == 1 && other.labels.len() > 2;
    one.severity == Severity::Note && more && has_its_place(one, other, statements)
}

/// The one begins with an arrival that the other says does not belong to its mbarrier.
pub fn begins_astray(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    begins_with(one, other, &[Meaning::Astray])
}

/// Or that may not.
pub fn begins_perhaps_astray(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    begins_with(one, other, &[Meaning::Astray, Meaning::PerhapsAstray])
}

/// The one begins at a statement of which the other says one of these.
fn begins_with(one: &Diagnostic, other: &Diagnostic, said: &[Meaning]) -> bool {
    let mut labels = other.labels.iter().filter(|label| said.contains(&label.meaning));
    one.labels.first().is_some_and(|origin| labels.any(|label| label.place.shown() == origin.place.shown()))
}

/// The one begins with a copy and a store of threads, and the other says that such stores, of one stretch of code, race with the copy.
pub fn is_of_stores_that_race(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let ([copy, store, ..], [second, first, ..]) = (&one.labels[..], &other.labels[..]) else { return false };
    let beside = |a: &Place, b: &Place| {
        a.shown() == b.shown() || statements.lead_straight(a, b) || statements.lead_straight(b, a)
    };
    let stores = |label: &Label| statements.are(&label.place, Does::Stores);
    let race = |copies: &Label, raced: &Label| {
        stores(raced) && copy.place.shown() == copies.place.shown() && beside(&store.place, &raced.place)
    };
    // They may have come in both orders.
    stores(store) && (race(second, first) || race(first, second))
}

/// The other begins with a store of threads, and the one is of it and of another one, or of it in two threads.
pub fn is_of_a_misplaced_store(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let stores =
        |label: &Label| [Does::Stores, Does::CopiesChunks].iter().any(|what| statements.are(&label.place, *what));
    let [second, first, ..] = &one.labels[..] else { return false };
    let misplaced = other.labels.first().filter(|label| stores(label) && other.severity > Severity::Note);
    let both = stores(second) && stores(first);
    both && misplaced.is_some_and(|store| is_at(one, &store.place))
}

/// The one is of a store that comes behind the copy of its own round, or of a load behind its wait for a copy; the other of the same two, where the copy comes
/// second. A store that comes when nobody has waited for the copy of the round before is a mistake of its own.
pub fn comes_before_its_copy_too(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let ([access, copy, rest @ ..], [second, first, ..]) = (&one.labels[..], &other.labels[..]) else { return false };
    let same = |a: &Label, b: &Label| a.place.shown() == b.place.shown();
    let beside = |a: &Place, b: &Place| statements.lead_straight(a, b) || statements.lead_straight(b, a);
    // Who has waited as it should reads another round than it waited for, since the copies go on without it.
    let waited = rest.iter().any(|label| statements.are(&label.place, Does::Waits) && !label.passed_wrongly());
    let late = access.meaning == Meaning::ComesLate;
    (late || waited)
        && statements.are(&copy.place, Does::Copies)
        && !statements.are(&access.place, Does::Copies)
        && (same(access, first)
            || late && statements.are(&first.place, Does::Stores) && beside(&access.place, &first.place))
        && same(copy, second)
        && one.severity == other.severity
}

/// Both are of what one stretch of code has written to one buffer, the other of who reads it, and the one of who writes there behind that.
pub fn overwrites_what_it_reads(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let ([write, first, ..], [read, written, ..]) = (&one.labels[..], &other.labels[..]) else { return false };
    let name = |d: &Diagnostic| d.title.split('`').nth(1).map(str::to_string);
    let stores = |label: &Label| statements.are(&label.place, Does::Stores);
    let beside = |a: &Place, b: &Place| a.shown() == b.shown() || statements.lead(a, b) || statements.lead(b, a);
    stores(first)
        && stores(write)
        && !stores(read)
        && (one.severity, name(one)) == (other.severity, name(other))
        && beside(&first.place, &written.place)
        && statements.lead(&read.place, &write.place)
}

/// The one names a commit behind an MMA that the other says to come before what is stored for it, at an arrival that nobody waits for.
pub fn commits_behind_its_mma(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let [mma, _, arrival, ..] = &other.labels[..] else { return false };
    let mut commits = one.labels.iter().filter(|label| statements.are(&label.place, Does::Commits));
    statements.are(&mma.place, Does::Multiplies)
        && statements.are(&arrival.place, Does::Arrives)
        && commits.any(|commit| statements.behind(&commit.place, &mma.place))
}

pub fn is_placed(one: &Diagnostic, _: &Diagnostic, _: &Statements) -> bool {
    !one.labels.is_empty()
}

/// The one is of what an MMA multiplies.
pub fn is_multiplied(one: &Diagnostic, _: &Diagnostic, statements: &Statements) -> bool {
    let does = |label: &Label, what| statements.are(&label.place, what);
    one.labels.first().is_some_and(|label| does(label, Does::Multiplies) || does(label, Does::Wgmma))
}

/// The one is of what a copy brings whose bytes the other lacks.
pub fn names_its_copy(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let brings = |label: &Label| [Does::Copies, Does::Sends].iter().any(|what| statements.are(&label.place, *what));
    one.labels.iter().any(|label| brings(label) && has_line(other, label))
}

/// The same, and who brings it has waited for an mbarrier.
pub fn names_its_copy_and_a_wait(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    names_its_copy(one, other, statements) && !names_no_wait(one, other, statements)
}

/// The one is of a wait whose thread goes on to a copy of which the other lacks the bytes: others hear of the wait by these.
pub fn is_before_its_copy(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let copies = || other.labels.iter().filter(|label| statements.are(&label.place, Does::Copies));
    let waits = one.labels.iter().filter(|label| statements.are(&label.place, Does::Waits));
    waits.into_iter().any(|wait| copies().any(|copy| statements.lead(&wait.place, &copy.place)))
}

/// The other says of who reads that it has not waited for the product; who reads says so behind the load, and is waited for.
pub fn is_handed_back_behind(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let all = |d: &'_ Diagnostic, what| -> Vec<Place> {
        let labels = d.labels.iter().filter(|label| statements.are(&label.place, what));
        labels.map(|label| label.place.clone()).collect()
    };
    let (waits, arrivals) = (all(other, Does::Waits), all(one, Does::Arrives));
    let loads = all(one, Does::Reads);
    !loads.is_empty()
        && loads.iter().all(|load| {
            waits.iter().any(|wait| statements.lead(wait, load))
                && arrivals.iter().any(|arrival| statements.lead(load, arrival))
        })
}

/// The same of one load, in front of which the other names the last wait.
pub fn is_of_its_load(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let mut loads = one.labels.iter().filter(|label| statements.are(&label.place, Does::Reads));
    is_handed_back_behind(one, other, statements) && loads.all(|load| has_line(other, load))
}

/// The one begins with an arrival to which who has heard of a product too early goes on, as the other says.
pub fn arrives_behind_its_wait(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let arrival = one.labels.first().filter(|label| statements.are(&label.place, Does::Arrives));
    let mut waits = other.labels.iter().filter(|label| statements.are(&label.place, Does::Waits));
    arrival.is_some_and(|arrival| waits.any(|wait| statements.lead(&wait.place, &arrival.place)))
}

/// The one is of a wait in front of a load, and of a commit behind the MMA that overwrites what that load reads: who hands the accumulator back behind
/// the load, and waits for that before the MMA, orders both.
pub fn is_around_its_load(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let pairs = |from: &'_ Diagnostic, from_does, to: &'_ Diagnostic, to_does| {
        let of = |d: &'_ Diagnostic, what| -> Vec<Place> {
            d.labels
                .iter()
                .filter(|label| statements.are(&label.place, what))
                .map(|label| label.place.clone())
                .collect()
        };
        let ends = of(to, to_does);
        of(from, from_does).iter().any(|from| ends.iter().any(|to| statements.lead(from, to)))
    };
    pairs(one, Does::Waits, other, Does::Reads) && pairs(other, Does::Multiplies, one, Does::Commits)
}

/// The other begins with an arrival that the one names.
pub fn tells_by_its_arrival(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let arrival = other.labels.first().filter(|label| statements.are(&label.place, Does::Arrives));
    arrival.is_some_and(|arrival| has_line(one, arrival))
}

/// The other begins with an mbarrier that counts too few arrivals, and both name what arrives there, or it.
pub fn is_of_a_count(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let counts = other.labels.first().filter(|label| label.meaning == Meaning::CountsTooFew);
    let both = |label: &Label| statements.are(&label.place, Does::Commits) && has_line(other, label);
    counts.is_some_and(|init| has_line(one, init) || one.labels.iter().any(both))
}

/// The other names a wait that passed on a phase which had let it pass before, and the one is of it, or of what its thread goes on to behind it.
pub fn is_behind_a_second_pass(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let mut again = other.labels.iter().filter(|label| label.meaning == Meaning::PassedAgain);
    let behind = |wait: &Label| one.labels.iter().any(|label| statements.lead(&wait.place, &label.place));
    again.any(|wait| has_line(one, wait) || behind(wait)) && one.severity < Severity::Error
}

/// Both say of one wait that it passed on a phase which had let it pass before.
pub fn names_the_same_second_pass(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    let again = |d: &Diagnostic, at: &Place| {
        d.labels.iter().any(|label| label.meaning == Meaning::PassedAgain && label.place.shown() == at.shown())
    };
    one.labels.iter().any(|label| again(one, &label.place) && again(other, &label.place))
}

/// The one is of a copy that writes the same bytes for two mbarriers, as the other says.
pub fn names_its_two_stages(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    let mut copies = other.labels.iter().filter(|label| label.meaning == Meaning::OneForTwoStages);
    copies.any(|copy| has_line(one, copy))
}

pub fn is_of_two_stages(_: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    says(other, Meaning::OneForTwoStages)
}

/// The one begins with a copy, which the other names behind what announces its bytes.
pub fn names_copies_alone(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let begins = |d: &Diagnostic| d.labels.first().is_some_and(|label| statements.are(&label.place, Does::Copies));
    begins(one) && !begins(other) && has_its_place(one, other, statements)
}

pub fn of_wgmma(_: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    other.labels.iter().any(|label| statements.are(&label.place, Does::Wgmma))
}

/// The one does not name the wait that has let it come too early.
pub fn names_no_wait(one: &Diagnostic, _: &Diagnostic, statements: &Statements) -> bool {
    !one.labels.iter().any(|label| statements.are(&label.place, Does::Waits))
}

/// The other says of a CTA barrier who meets there.
pub fn names_a_barrier(_: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    other.labels.iter().any(|label| statements.are(&label.place, Does::Meets))
}

/// The other, and not the one, is of a wait that passed on a phase which had let it pass before.
pub fn waits_again(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    says(other, Meaning::PassedAgain) && !says(one, Meaning::PassedAgain)
}

/// A label of the other is a wait that passed on a phase which had let it pass before.
pub fn names_such_a_wait(_: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    says(other, Meaning::PassedAgain)
}

/// The other begins with an mbarrier that counts too few arrivals, and the one does not say so itself.
pub fn counts_too_few(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    let counts = |label: &Label| label.meaning == Meaning::CountsTooFew;
    other.labels.first().is_some_and(counts) && !one.labels.iter().any(counts)
}

/// The same, and a wait for that mbarrier is a place of the one, or leads to one past no other wait.
pub fn begins_with_a_count(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let mut waits = other.labels.iter().filter(|label| statements.are(&label.place, Does::Waits));
    let behind = |wait: &Label| one.labels.iter().any(|label| statements.lead(&wait.place, &label.place));
    counts_too_few(one, other, statements) && waits.any(|wait| has_line(one, wait) || behind(wait))
}

/// The one begins with an mbarrier that counts too few arrivals, as the other says of it, too.
pub fn is_of_a_count_that_is_told(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    let counts = |label: &&Label| label.meaning == Meaning::CountsTooFew;
    let init = one.labels.first().filter(counts);
    init.is_some_and(|init| other.labels.iter().filter(counts).any(|label| label.place.shown() == init.place.shown()))
}

/// The other names an mbarrier that counts too few arrivals.
pub fn says_that_one_counts_too_few(_: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    says(other, Meaning::CountsTooFew)
}

/// The other names a multicast whose mask leaves out a CTA, and the one the same copy.
pub fn names_a_mask(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    let mut copies = other.labels.iter().filter(|label| label.meaning == Meaning::LeavesOut);
    copies.any(|copy| has_line(one, copy))
}

/// The other names a barrier at which groups of warps are mixed up; the one does not, and is of what comes behind that.
pub fn is_behind_a_mixed_barrier(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let mixes = |label: &&Label| label.meaning == Meaning::Mixes;
    let behind = |barrier: &Label| one.labels.iter().any(|label| statements.lead(&barrier.place, &label.place));
    !one.labels.iter().any(|label| mixes(&label)) && other.labels.iter().filter(mixes).any(behind)
}

/// The other is of two CTAs that copy to the same bytes.
pub fn lacks_bytes(_: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    says(other, Meaning::SameBytes)
}

pub fn is_multiplied_and_lacks_bytes(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    lacks_bytes(one, other, statements) && is_multiplied(one, other, statements)
}

pub fn names_its_first_place(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    other.labels.first().is_some_and(|label| has_line(one, label))
}

/// The other names a wait that passed on another phase than it should, and so does the one.
pub fn shares_its_wrong_wait(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    other.labels.iter().any(|wait| wait.passed_wrongly() && has_line(one, wait))
}

/// The other is of what somebody reads behind a wait that the one names, and of a write over it whose phase the one is of.
pub fn is_loaded_before_it_is_read(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let [write, read, ..] = &other.labels[..] else { return false };
    let mut waits = one.labels.iter().filter(|label| statements.are(&label.place, Does::Waits));
    has_line(one, write) && waits.any(|wait| statements.lead(&wait.place, &read.place))
}

/// Both are of loads of one stretch of code, without a wait between them.
pub fn reads_beside_it(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let reads = |label: &&Label| statements.are(&label.place, Does::Reads);
    let beside = |a: &Place, b: &Place| a == b || statements.lead(a, b) || statements.lead(b, a);
    let is_there = |a: &Label| other.labels.iter().filter(reads).any(|b| beside(&a.place, &b.place));
    one.labels.iter().filter(reads).any(is_there)
}

/// The other is of a flag, and the one of accesses in front of the write of it and behind its reading.
pub fn is_behind_its_flag(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let ([second, first, ..], [a, b, ..]) = (&one.labels[..], &other.labels[..]) else { return false };
    let around = |set: &Label, seen: &Label| {
        statements.lead(&first.place, &set.place) && statements.lead(&seen.place, &second.place)
    };
    says(other, Meaning::Flag) && !says(one, Meaning::Flag) && (around(a, b) || around(b, a))
}

/// Both are of one tcgen05.alloc, which several warps execute.
pub fn is_allocated_twice(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    one.labels
        .first()
        .is_some_and(|at| other.labels.len() > 1 && other.labels.iter().all(|label| label.place == at.place))
}

/// The other names a wait that stands in front of its copies' commit, and the one a wait that leaves too many groups.
pub fn counts_groups_behind(one: &Diagnostic, other: &Diagnostic, _: &Statements) -> bool {
    says(other, Meaning::Uncommitted) && says(one, Meaning::LeavesGroups) && !says(one, Meaning::Uncommitted)
}

/// The one is of a load of tensor memory, behind a wait that the other names.
pub fn reads_behind_its_wait(one: &Diagnostic, other: &Diagnostic, statements: &Statements) -> bool {
    let load = one.labels.first().filter(|label| statements.are(&label.place, Does::Reads));
    let mut waits = other.labels.iter().filter(|label| statements.are(&label.place, Does::Waits));
    load.is_some_and(|load| waits.any(|wait| statements.lead(&wait.place, &load.place)))
}
