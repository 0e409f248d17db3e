//! Seeds that are secret until grades are out, and a commitment by which everyone can see that they were chosen before.
//!
//! The commitment is SHA-256 of the text `SEED‖NONCE`: the seed as a decimal number and 64 hexadecimal digits, with nothing between. It is
//! published before hand-ins are graded. While it is secret, both lie in `secret/seed.json`, which its owner alone can read; [`reveal`] tells them:
//! in `seed.json`, and the seed in each result, which then holds all that it takes to come to the same grade again.
//!
//! Without a commitment, and where nobody names a seed, one is drawn, too: who knows the inputs knows D, and needs no kernel. It stands in each
//! result from the start, where no hand-in sees it, and in `secret/drawn.json`, by which hand-ins that come later get the same inputs.

use super::store::{Outcome, Record, Store, write_closed, write_whole};
use crate::json::Report;
use harness::workbook::pack::hex;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Each size is judged on a few inputs: the seeds are this one and those that follow it.
const FOLLOWING: u64 = 64;
/// What is said where hand-ins are trusted, and nobody should know the seed.
pub(super) const TRUSTED: &str = "with --trust a hand-in has all rights of this account, and can read the seed in the folder of grades and in \
                                  the memory of the grader";
/// What stands where a secret seed stood.
const UNTOLD: &str = "(secret until grades are out)";

/// A seed that is not told yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The seed.
    pub seed: u64,
    /// Without it, one could try seeds until the commitment fits.
    pub nonce: String,
}

impl Secret {
    /// What is published.
    pub fn commitment(&self) -> String {
        hex(&Sha256::digest(format!("{}{}", self.seed, self.nonce)))
    }
}

/// A seed that nobody knows before grades are there. So many bits are a number in every program that reads JSON.
///
/// # Errors
/// When the system gives no random numbers.
pub fn draw() -> Result<u64, String> {
    const BITS: u32 = 53;
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    // Those that follow it are as short.
    Ok(u64::from_le_bytes(random) >> (u64::BITS - BITS) & !(2 * FOLLOWING - 1))
}

/// A seed that was drawn for a folder of grades, and is no secret once there is a grade.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Drawn {
    seed: u64,
}

fn drawn_path(store: &Store) -> PathBuf {
    store.folder.join("secret").join("drawn.json")
}

/// The seed that was drawn for a folder of grades, if one was.
///
/// # Errors
/// When it cannot be read.
pub fn drawn(store: &Store) -> Result<Option<u64>, String> {
    read::<Drawn>(&drawn_path(store)).map(|drawn| drawn.map(|drawn| drawn.seed))
}

/// The same; the first time, one is drawn and stored.
///
/// # Errors
/// When it cannot be read or stored, or the system gives no random numbers.
pub fn drawn_once(store: &Store) -> Result<u64, String> {
    if let Some(seed) = drawn(store)? {
        return Ok(seed);
    }
    let seed = draw()?;
    keep(&drawn_path(store), &Drawn { seed })?;
    Ok(seed)
}

/// Keeps a seed for its owner alone.
fn keep(path: &Path, seed: &impl Serialize) -> Result<(), String> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(|error| format!("cannot make {}: {error}", folder.display()))?;
        close(folder, 0o700)?;
    }
    let text = serde_json::to_vec_pretty(seed).map_err(|error| error.to_string())?;
    write_closed(path, &text)
}

/// Where it is kept while it is secret, for its owner alone; and where it is told.
fn paths(store: &Store) -> [PathBuf; 2] {
    [store.folder.join("secret").join("seed.json"), store.folder.join("seed.json")]
}

fn read<T: DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    let text = match fs::read(path) {
        Ok(text) => text,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("cannot read {}: {error}", path.display())),
    };
    serde_json::from_slice(&text).map(Some).map_err(|error| format!("{} holds no seed: {error}", path.display()))
}

/// Whether the seed was told: then whoever hands in may know it.
pub fn is_told(store: &Store) -> bool {
    paths(store)[1].is_file()
}

/// The secret seed of a folder of grades; the first time, one is drawn and stored.
///
/// # Errors
/// When it cannot be read or stored, or the system gives no random numbers.
pub fn commit(store: &Store) -> Result<Secret, String> {
    let [path, told] = paths(store);
    let known: Option<Secret> = read(&path)?;
    if known.is_some() {
        // An earlier grader left it open.
        close(&path, 0o600)?;
    }
    if let Some(secret) = known.map_or_else(|| read(&told), |secret| Ok(Some(secret)))? {
        return Ok(secret);
    }
    let mut random = [0u8; 40];
    getrandom::fill(&mut random).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    let (seed, nonce) = random.split_at(8);
    let seed = seed.iter().fold(0u64, |seed, byte| seed << 8 | u64::from(*byte));
    // Its first digits are found in a text without mistaking another number for it, and those that follow have the same ones.
    let seed = (seed | 1 << 63) & !(2 * FOLLOWING - 1);
    let secret = Secret { seed, nonce: hex(nonce) };
    keep(&path, &secret)?;
    Ok(secret)
}

/// Leaves a file or folder to its owner alone.
fn close(path: &Path, mode: u32) -> Result<(), String> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let closed = fs::set_permissions(path, fs::Permissions::from_mode(mode));
        closed.map_err(|error| format!("cannot close {}: {error}", path.display()))?;
    }
    #[cfg(not(unix))]
    let _ = (path, mode);
    Ok(())
}

/// The seed that a folder of grades keeps, told or not: for who grades.
///
/// # Errors
/// When the folder of grades has none.
pub fn kept(store: &Store) -> Result<Secret, String> {
    for path in paths(store) {
        if let Some(secret) = read(&path)? {
            return Ok(secret);
        }
    }
    Err(format!(
        "{} has no secret seed\n  try: `grader batch … --seed-commit` draws one; without it, results name their seed.",
        store.folder.display()
    ))
}

/// What was told.
pub struct Revealed {
    /// The seed.
    pub secret: Secret,
    /// So many results name it.
    pub results: usize,
    /// So many of them have no grade.
    pub without: usize,
    /// Why it is too early: what is not graded yet. It was told all the same.
    pub early: Option<String>,
}

/// Tells the secret seed: from now on it stands in `seed.json`, and in each result that was graded with it. Killed and given again it goes on.
///
/// # Errors
/// When the folder of grades has none, or cannot be written; and when hand-ins wait for their grades, unless it is to be told `anyway`.
pub fn reveal(store: &Store, anyway: bool) -> Result<Revealed, String> {
    let secret = kept(store)?;
    let commitment = secret.commitment();
    let mut all = Vec::new();
    for id in store.ids()? {
        let Some(record) = store.result(&id)? else { continue };
        if record.seed_commitment.as_deref() == Some(&commitment) {
            all.push((id, record));
        }
    }
    let early = if is_told(store) { None } else { early(store, &all)? };
    if let (Some(early), false) = (&early, anyway) {
        return Err(format!(
            "{early}: whoever learns the seed now knows what is tried\n  \
             try: Give the batch again until it is through. If nothing more is to be graded with this seed, give --anyway."
        ));
    }
    // First: what comes in later is then not graded as if nobody knew.
    let text = serde_json::to_vec_pretty(&secret).map_err(|error| error.to_string())?;
    write_whole(&paths(store)[1], &text)?;
    let results = all.len();
    let without = all.iter().filter(|(_, record)| !matches!(record.outcome, Outcome::Graded(_))).count();
    for (id, mut record) in all.into_iter().filter(|(_, record)| record.seed.is_none()) {
        tell(&mut record, secret.seed);
        store.keep_result(&id, &record)?;
    }
    Ok(Revealed { secret, results, without, early })
}

/// Lets a result name the seed that it came about with. Words of explanations that were taken out stay out.
pub(super) fn tell(record: &mut Record, seed: u64) {
    record.seed = Some(seed);
    if let Outcome::Graded(report) = &mut record.outcome {
        report.seed = Some(seed);
    }
}

/// Why a seed is told too early, if it is: who waits for a grade by it.
fn early(store: &Store, with_it: &[(String, Record)]) -> Result<Option<String>, String> {
    let folder = store.folder.display();
    let failed = |(_, record): &&(String, Record)| record.outcome.failed_here();
    let failed = with_it.iter().filter(failed).map(|(id, record)| (id.clone(), record.name.clone()));
    let mut waiting: BTreeMap<String, String> = failed.collect();
    let begun = store.under_way()?;
    for (id, name) in begun.iter().flatten() {
        if !with_it.iter().any(|(graded, _)| graded == id) {
            waiting.insert(id.clone(), name.clone());
        }
    }
    if let Some(names) = super::some(waiting.values().map(String::as_str)) {
        let of = with_it.len().max(begun.map_or(0, |begun| begun.len()));
        return Ok(Some(format!("{} of {of} hand-ins in {folder} wait for their grades: {names}", waiting.len())));
    }
    if begun.is_some() {
        return Ok(Some(format!("the batch that writes to {folder} was ended before its tables were written")));
    }
    Ok(with_it.is_empty().then(|| format!("nothing in {folder} was graded with the secret seed yet")))
}

/// How a seed, or one that follows it, could stand in a text: so many of the first digits tell enough of it, also where the text is cut off.
/// Another number begins with these once in thousands of millions.
struct Signs(BTreeSet<String>);

impl Signs {
    fn of(seed: u64) -> Signs {
        let begin = |text: String, digits: usize| text.chars().take(digits).collect::<String>();
        // Those between begin as one of the two does.
        let ends = [seed, seed.wrapping_add(FOLLOWING - 1)];
        let written = |seed: u64| {
            let signed = seed.cast_signed().unsigned_abs();
            [begin(seed.to_string(), 10), begin(signed.to_string(), 10), begin(format!("{seed:x}"), 9)]
        };
        Signs(ends.into_iter().flat_map(written).collect())
    }

    fn stand_in(&self, text: &str) -> bool {
        self.0.iter().any(|sign| text.contains(sign.as_str()))
    }
}

/// A text without its words that tell the seed or one that follows it; `None` if it tells it all the same.
fn redacted(text: &str, signs: &Signs) -> Option<String> {
    let word = |sign: char| sign.is_alphanumeric() || sign == '_';
    let plain = |text: &str| text.chars().filter(|sign| sign.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    let mut out = String::new();
    let mut rest = text;
    while let Some(sign) = rest.chars().next() {
        let length = rest.find(|next| word(next) != word(sign)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(length);
        let told = word(sign) && signs.stand_in(&plain(run) as &String);
        out += if told { UNTOLD } else { run };
        rest = after;
    }
    // With anything between its digits: blanks, points, a turn of the line. Such words are not taken apart.
    let whole: String = plain(&out);
    (!signs.stand_in(&whole)).then_some(out)
}

/// The same of all texts of a value. Gives the place where the seed is told all the same: a text that cannot be mended, a name, or a number.
fn redact(value: &mut Value, signs: &Signs) -> Result<(), String> {
    match value {
        Value::Null | Value::Bool(_) => Ok(()),
        Value::Number(number) => {
            let digits: String = number.to_string().chars().filter(char::is_ascii_digit).collect();
            if signs.stand_in(&digits) { Err(String::new()) } else { Ok(()) }
        }
        Value::String(text) => {
            *text = redacted(text, signs).ok_or_else(String::new)?;
            Ok(())
        }
        Value::Array(values) => {
            let mut all = values.iter_mut().enumerate();
            all.try_for_each(|(index, value)| redact(value, signs).map_err(|place| format!("[{index}]{place}")))
        }
        Value::Object(fields) => fields.iter_mut().try_for_each(|(name, value)| {
            if redacted(name, signs).as_ref() != Some(name) {
                return Err(" (a field's name)".to_string());
            }
            redact(value, signs).map_err(|place| format!(".{name}{place}"))
        }),
    }
}

/// What may be told while the seed is secret: neither it nor one that follows it. What cannot be made so is not told at all.
pub(super) fn untold(outcome: Outcome, seed: u64) -> Outcome {
    let refused = |found: &str| {
        Outcome::not_graded_here(format!(
            "it is not written, since it could tell the secret seed: {found}\n  \
             try: Grade it with a seed that is not secret (without --seed-commit), into another folder, to see what stands there."
        ))
    };
    let signs = Signs::of(seed);
    match outcome {
        Outcome::NotGraded { reason, here, limit, no_kernel } => match redacted(&reason, &signs) {
            Some(reason) => Outcome::NotGraded { reason, here, limit, no_kernel },
            None => refused("the reason why there is no grade"),
        },
        Outcome::Graded(mut report) => {
            report.seed = None;
            let value = serde_json::to_value(&*report).map_err(|error| error.to_string());
            let told = value.and_then(|mut value| {
                redact(&mut value, &signs)
                    .map_err(|place| format!("the grade's `{}`", place.trim_start_matches('.')))?;
                // What was read and written anew must be a grade still.
                serde_json::from_value::<Report>(value)
                    .map_err(|error| format!("the grade cannot be read again: {error}"))
            });
            told.map_or_else(|why| refused(&why), |report| Outcome::Graded(Box::new(report)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const SEED: u64 = 0x9f3a_5c71_e2b4_0680;

    fn report() -> Report {
        let step = json!({
            "step": 1, "title": "one tile", "file": "anna/step01.rs", "device": "emulator", "passed": false, "points": 1.25,
            "max_points": 5, "build_failure": null, "next": null, "parts": [], "milestones": [], "seconds": 0.5,
        });
        let report = json!({
            "schema": 1, "passed": false, "allow_unchecked": false, "seed": SEED, "points": 1.25, "max_points": 5, "score": 1.25,
            "rubric": "97b3", "steps": [step],
        });
        serde_json::from_value(report).unwrap()
    }

    fn tells(text: &str) -> bool {
        let digits: String = text.chars().filter(char::is_ascii_alphanumeric).collect::<String>().to_lowercase();
        let known = [SEED.to_string(), format!("{SEED:x}"), SEED.cast_signed().unsigned_abs().to_string()];
        known.iter().any(|known| digits.contains(&known[..9]))
    }

    /// However the seed is written, nothing that is kept tells it: words are taken out, and what cannot be is not kept.
    #[test]
    fn no_text_of_a_grade_or_of_a_reason_tells_the_seed() {
        let last = SEED + FOLLOWING - 1;
        let grouped = |text: String, by: &str| {
            let digits: Vec<char> = text.chars().collect();
            digits.rchunks(3).rev().map(String::from_iter).collect::<Vec<_>>().join(by)
        };
        let mended = [
            format!("wrong for the seed {SEED}, and {last} too"),
            format!("seed={SEED:#x}; {last:016X}"),
            format!("Seed({SEED})"),
            format!("{}u64", grouped(SEED.to_string(), "_")),
            format!("i64: {}", SEED.cast_signed()),
            format!("cut off: {}", &SEED.to_string()[..13]),
        ];
        for text in &mended {
            let Outcome::NotGraded { reason, here: false, .. } = untold(Outcome::not_graded(text.clone()), SEED) else {
                panic!("{text:?} is no reason any more")
            };
            assert!(reason.contains(UNTOLD) && !tells(&reason), "{text:?} became {reason:?}");
            let mut graded = report();
            graded.steps[0].build_failure = Some(text.clone());
            let Outcome::Graded(graded) = untold(Outcome::Graded(Box::new(graded)), SEED) else {
                panic!("{text:?} is no grade any more")
            };
            assert!(graded.seed.is_none() && !tells(&serde_json::to_string(&graded).unwrap()), "{text:?}: {graded:?}");
        }
        let odd = [grouped(SEED.to_string(), ","), grouped(SEED.to_string(), " "), grouped(last.to_string(), "\n")];
        for text in &odd {
            let mut graded = report();
            graded.steps[0].title.clone_from(text);
            for outcome in [Outcome::not_graded(text.clone()), Outcome::Graded(Box::new(graded))] {
                let Outcome::NotGraded { reason, here: true, .. } = untold(outcome.clone(), SEED) else {
                    panic!("{text:?} is told: {outcome:?}")
                };
                assert!(reason.contains("it could tell the secret seed") && !tells(&reason), "{reason}");
            }
        }
        // A number is nothing that a word can be put in place of.
        let mut graded = report();
        graded.points = SEED as f64;
        let Outcome::NotGraded { reason, here: true, .. } = untold(Outcome::Graded(Box::new(graded)), SEED) else {
            panic!("the number is told")
        };
        assert!(reason.contains("the grade's `points`"), "{reason}");
    }

    #[test]
    fn seeds_are_drawn_from_all_that_every_reader_of_json_can_read() {
        let drawn: BTreeSet<u64> = (0..256).map(|_| draw().unwrap()).collect();
        assert_eq!(drawn.len(), 256, "of millions of millions, none comes twice");
        assert!(drawn.iter().all(|seed| seed + FOLLOWING < 1 << 53));
        let low = drawn.iter().filter(|seed| **seed < 1 << 52).count();
        assert!((64..192).contains(&low), "{low} of 256 in the lower half");
    }

    #[test]
    fn what_does_not_tell_it_stays_as_it_is() {
        let reason = "anna holds no kernel for step01; 18446744073709551615 bytes, sha 505f97b3 0x9f3a_5c71";
        assert_eq!(untold(Outcome::not_graded(reason.to_string()), SEED), Outcome::not_graded(reason.to_string()));
        let graded = Outcome::Graded(Box::new(Report { seed: None, ..report() }));
        assert_eq!(untold(Outcome::Graded(Box::new(report())), SEED), graded);
    }
}
