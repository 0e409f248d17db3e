//! A batch that is given again, over grades that are there: whether it asks for what they were asked for. If not, it would replace them.
//!
//! What the machine has (compilers, the grader's own program) may change, and so may the moments of hand-ins: they decide on grades, and
//! nobody chooses them by leaving an option out. That a moment is no longer given is what somebody left out, and gives late points back.

use super::hand_ins::HandIn;
use super::store::{Outcome, Record, Store};
use super::{Batch, seed};
use crate::rubric::Rubric;

/// What was asked for then and now, and the option by which it was.
struct Difference {
    what: &'static str,
    then: String,
    now: String,
    option: String,
}

/// Whether each result that is there can be read, and no grade was asked for otherwise, unless those are to be replaced.
///
/// # Errors
/// Which cannot be read; or what differs, of the first grade that would be replaced, and the ways out. Nothing is written.
pub(super) fn as_before(batch: &Batch, store: &Store, hand_ins: &[HandIn]) -> Result<(), String> {
    // Only a seed that was drawn before can be the same.
    let commitment = if batch.seed_commit { seed::kept(store).ok().map(|secret| secret.commitment()) } else { None };
    let drawn = seed::drawn(store)?;
    let known = Known { commitment: commitment.as_deref(), drawn };
    let (mut unread, mut first, mut replaced) = (Vec::new(), None, 0);
    for hand_in in hand_ins {
        let record = match store.result(&hand_in.id) {
            Ok(Some(record)) if !batch.replace && matches!(record.outcome, Outcome::Graded(_)) => record,
            Ok(_) => continue,
            Err(error) => {
                unread.push(error);
                continue;
            }
        };
        let found = differences(batch, store, &record, known, &hand_in.name);
        if !found.is_empty() {
            replaced += 1;
            first.get_or_insert((record.name, found));
        }
    }
    if !unread.is_empty() {
        return Err(super::unread(&unread));
    }
    let Some((name, found)) = first else { return Ok(()) };
    let lines: Vec<String> =
        found.iter().map(|one| format!("\n    {}: then {}, now {}", one.what, one.then, one.now)).collect();
    let options: Vec<&str> = found.iter().map(|one| one.option.as_str()).collect();
    let grades = if replaced == 1 { "1 grade".to_string() } else { format!("{replaced} grades") };
    Err(format!(
        "this batch asks for something else than the one before, and would replace {grades} in {}\n  \
         the grade of {name}:{}\n  \
         try: Ask as before: {}. To grade all of them anew, give --replace, or another folder with --out.",
        batch.out.display(),
        lines.concat(),
        options.join(", ")
    ))
}

/// What a folder of grades knows of its seeds.
#[derive(Clone, Copy)]
struct Known<'a> {
    /// The commitment to its secret one.
    commitment: Option<&'a str>,
    /// The one that was drawn for it.
    drawn: Option<u64>,
}

fn differences(batch: &Batch, store: &Store, record: &Record, known: Known<'_>, name: &str) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut differ = |what, then: String, now: String, option: String| {
        found.push(Difference { what, then, now, option });
    };
    let hash = batch.rubric.hash();
    if record.rubric != hash {
        let own = Rubric::default().hash();
        let called = |hash: &str| match hash == own {
            true => "what `grader rubric` prints".to_string(),
            false => format!("{}…", hash.get(..12).unwrap_or(hash)),
        };
        let option = match record.rubric == own {
            true => "no --rubric".to_string(),
            false => format!("--rubric {}", store.kept_rubric(&record.rubric).display()),
        };
        differ("rubric", called(&record.rubric), called(&hash), option);
    }
    // Of a secret seed, told by now or not, the commitment says which it is.
    let seed_then = match record.seed_commitment.as_deref() {
        Some(commitment) => (None, Some(commitment)),
        None => (record.seed, None),
    };
    let seed_now = match batch.seed_commit {
        true => (None, known.commitment),
        false => (batch.seed.or(known.drawn), None),
    };
    if seed_then != seed_now || (batch.seed_commit && known.commitment.is_none()) {
        let called = |seed: (Option<u64>, Option<&str>)| match seed {
            (Some(seed), _) if known.drawn == Some(seed) => format!("{seed}, which was drawn for this folder"),
            (Some(seed), _) => seed.to_string(),
            (None, Some(commitment)) => format!("a secret one, committed to by {commitment:.12}…"),
            (None, None) => "one that is not drawn yet".to_string(),
        };
        let option = match seed_then {
            (Some(seed), _) if known.drawn == Some(seed) => "neither --seed nor --seed-commit".to_string(),
            (Some(seed), _) => format!("--seed {seed}"),
            (None, _) => "--seed-commit".to_string(),
        };
        differ("seed", called(seed_then), called(seed_now), option);
    }
    let (then, now) = (&record.asked, &batch.asked);
    if then.steps != now.steps {
        let all = |steps: &[u8], of: &str, none: &str| match steps {
            [] => none.to_string(),
            steps => steps.iter().map(|step| format!("{of}{step}")).collect::<Vec<_>>().join(" "),
        };
        let called = |steps| all(steps, "", "all");
        differ("steps", called(&then.steps), called(&now.steps), all(&then.steps, "--step ", "no --step"));
    }
    if then.allow_unchecked != now.allow_unchecked {
        let called = |allowed| if allowed { "allowed" } else { "not allowed" }.to_string();
        let option = if then.allow_unchecked { "--allow-unchecked" } else { "no --allow-unchecked" };
        let (then, now) = (called(then.allow_unchecked), called(now.allow_unchecked));
        differ("parts that are not checked", then, now, option.to_string());
    }
    if let (Some(came), None) = (&then.handed_in, batch.moment(name)) {
        let option = "--handed-in FILE, where FILE says when each came".to_string();
        differ("when it was handed in", came.clone(), "not given".to_string(), option);
    }
    if then.device != now.device {
        let called = |device: &str| if device.is_empty() { "the default" } else { device }.to_string();
        let option = match then.device.as_str() {
            "" => "no WORKBOOK_DEVICE in the environment".to_string(),
            device => format!("WORKBOOK_DEVICE={device} in the environment"),
        };
        differ("device", called(&then.device), called(&now.device), option);
    }
    if then.options != now.options {
        let called = |options: &[String]| if options.is_empty() { "none".to_string() } else { options.join(" ") };
        let option = match then.options.as_slice() {
            [] => "nothing after `--`, and no --trust".to_string(),
            options => format!("-- {}", options.join(" ")),
        };
        differ("further options", called(&then.options), called(&now.options), option);
    }
    found
}
