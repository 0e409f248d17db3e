//! A rubric as TOML: reading it, with errors at their lines, and writing it.

use super::shape::{File, FileLate, FileShares, LATE_HAS, MAX_POINTS, Table, Whole, in_plain_words};
use super::{Late, Moment, Rubric};
use harness::points::Shares;
use harness::workbook::name;
use harness::{Part, Problem};
use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::ops::Range;
use std::path::Path;
use std::{fmt, fs, io};
use toml::Spanned;

/// The largest extent of a size. A cube of it takes 1.5 GiB of A, B and D; one of twice as much is above the 4 GiB that the emulator gives
/// a launch. Where all of D is checked it takes the judge the most memory at 16384 x 16384 x 8: 4.4 GiB of [`crate::memory::MOST`].
const MAX_EXTENT: u32 = 16_384;
/// The most sizes of a step: each is a run of the emulator.
const MAX_SIZES: usize = 32;

/// The text and its name, for errors.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
}

impl Source<'_> {
    fn error(&self, at: Option<Range<usize>>, what: impl Display, way_out: impl Display) -> String {
        let line = at.map_or(1, |at| self.line(&at));
        format!("{}:{line}: {what}\n  try: {way_out}", self.name)
    }

    fn line(&self, at: &Range<usize>) -> usize {
        self.text.get(..at.start).unwrap_or_default().matches('\n').count() + 1
    }

    /// What TOML says of a text that is no rubric.
    fn refused(&self, error: &toml::de::Error) -> String {
        // The first line says what is wrong, and what is allowed there.
        let what = error.message().lines().collect::<Vec<_>>().join("; ");
        let at = error.span();
        let what = in_plain_words(&what);
        if let Some(key) = what.strip_prefix("duplicate key") {
            // The parser shows the second; which of them counts only a person knows.
            let second = at.as_ref().and_then(|at| self.text.get(at.clone())).unwrap_or_default();
            let first = at.as_ref().and_then(|at| self.first_named(second, at.start));
            let twice = match first {
                Some(first) => format!("{second} stands there a second time; it stands in line {first} already"),
                None => format!("duplicate key{key}"),
            };
            return self.error(at, twice, "Leave the one that counts.");
        }
        if what.starts_with("missing field `due`")
            || what.starts_with("missing field `points-per-day`")
            || what.starts_with("missing field `latest-day`")
        {
            return self.error(at, what, LATE_HAS);
        }
        // Of a value that is none the line says which it is, and the parser what is allowed.
        let of_value = what.starts_with("invalid type: ") || what.starts_with("invalid value: ");
        let allowed = what.split_once("expected ").filter(|_| of_value).map(|(_, allowed)| allowed);
        let line = at.as_ref().and_then(|at| self.text.lines().nth(self.line(at) - 1)).map(str::trim);
        let what = match (line, allowed) {
            (Some(line), Some(allowed)) => format!("{line}: allowed is {allowed}"),
            // Of what is no TOML at all; a field that is unknown or missing is named.
            (Some(line), None) if !what.contains(" field `") => format!("{line}: {what}"),
            _ => what,
        };
        self.error(at, what, "`grader rubric` prints a rubric with all that can be said, and its values.")
    }

    /// The line of a key, or of a part of a table's name, before this place.
    fn first_named(&self, key: &str, before: usize) -> Option<usize> {
        let bare = |text: &str| text.trim().trim_matches(['\'', '"']).to_string();
        let key = bare(key);
        let lines = self.text.get(..before)?.lines();
        let names = |line: &str| {
            let line = line.trim();
            let named = match line.strip_prefix('[') {
                Some(table) => table.split(']').next(),
                None => line.split('=').next(),
            };
            named.is_some_and(|named| named.split('.').any(|part| bare(part) == key))
        };
        // The line of the second itself comes last, as far as its beginning.
        lines.enumerate().find(|(_, line)| !key.is_empty() && names(line)).map(|(index, _)| index + 1)
    }
}

impl Rubric {
    /// Reads a rubric's file.
    ///
    /// # Errors
    /// File and line, the value found, the values allowed.
    pub fn read(path: &Path) -> Result<Rubric, String> {
        let name = path.display().to_string();
        let text = fs::read_to_string(path).map_err(|error| {
            let way_out = match error.kind() {
                // A shell of Windows writes UTF-16 where it is told to write to a file.
                io::ErrorKind::InvalidData => "Save it as UTF-8.",
                _ => "`grader rubric > rubric.toml` writes one to begin with.",
            };
            format!("cannot read the rubric {name}: {error}\n  try: {way_out}")
        })?;
        Rubric::parse(&name, &text)
    }

    /// Reads a rubric. `name` is its file's, for errors.
    ///
    /// # Errors
    /// As [`Rubric::read`].
    pub fn parse(name: &str, text: &str) -> Result<Rubric, String> {
        let source = Source { name, text };
        let file: File = toml::from_str(text).map_err(|error| source.refused(&error))?;
        let mut rubric = Rubric::default();
        if let Some(shares) = file.shares {
            rubric.shares = read_shares(&source, &shares)?;
        }
        if let Some(fast) = &file.fast {
            let fast = read_fast(&source, fast)?;
            rubric.steps.values_mut().for_each(|step| step.fast = fast);
        }
        rubric.late = file.late.map(|Table(late)| read_late(&source, &late)).transpose()?;
        let mut named: BTreeMap<u8, &Spanned<String>> = BTreeMap::new();
        for (key, Table(said)) in file.steps.iter().flat_map(|Table(steps)| steps) {
            let number = key.get_ref().strip_prefix("step").and_then(harness::workbook::number);
            let Some((number, step)) = number.and_then(|number| Some((number, rubric.steps.get_mut(&number)?))) else {
                let names: Vec<String> = rubric.steps.keys().map(|number| name_of(*number)).collect();
                let what = format!("there is no step {:?}", key.get_ref());
                return Err(source.error(Some(key.span()), what, format!("Name one of {}.", names.join(", "))));
            };
            if let Some(other) = named.insert(number, key) {
                let mut lines = [(source.line(&other.span()), other), (source.line(&key.span()), key)];
                lines.sort_by_key(|(line, _)| *line);
                let [(first, earlier), (_, later)] = lines;
                let what = format!(
                    "[steps.{}] is step {number} a second time; [steps.{}] in line {first} is the same step",
                    later.get_ref(),
                    earlier.get_ref()
                );
                return Err(source.error(Some(later.span()), what, "Leave one table for each step."));
            }
            if let Some(points) = &said.points {
                step.points = within(&source, "points", points, 0, MAX_POINTS)?;
            }
            if let Some(fast) = &said.fast {
                step.fast = read_fast(&source, fast)?;
            }
            if let Some(sizes) = &said.sizes {
                step.sizes = read_sizes(&source, number, sizes)?;
            }
            if let Some(timed) = &said.timed {
                step.timed = read_size(&source, number, timed)?;
            }
        }
        if rubric.max_points(&[]) == 0 {
            return Err(source.error(None, "no step gives points", "Give at least one step points above 0."));
        }
        Ok(rubric)
    }

    /// The rubric as a file that [`Rubric::parse`] reads, with a comment on each value.
    pub fn to_toml(&self) -> String {
        let mut text = String::from(HEAD);
        // Writing to a string does not fail.
        let _ = writeln!(text, "[shares]");
        for (part, share) in Part::ALL.into_iter().zip(self.shares.parts) {
            let _ = writeln!(text, "{part} = {share}");
        }
        let _ = writeln!(
            text,
            "# While D is not right, milestones give points instead: all of them together this much.\nmilestones = {}\n",
            self.shares.milestones
        );
        text.push_str(LATE);
        match &self.late {
            None => text.push_str(SAMPLE),
            Some(late) => {
                let (due, per_day, latest) = (&late.due.text, Decimal(late.points_per_day), late.latest_day);
                let _ = writeln!(text, "[late]\ndue = {due}\npoints-per-day = {per_day}\nlatest-day = {latest}");
            }
        }
        text.push_str(STEPS);
        for (number, step) in &self.steps {
            let size = |size: &Problem| format!("\"{size}\"");
            let sizes: Vec<String> = step.sizes.iter().map(size).collect();
            let _ = writeln!(
                text,
                "\n[steps.{}]\npoints = {}\nfast = {}\nsizes = [{}]\ntimed = {}",
                name(*number),
                step.points,
                Decimal(step.fast),
                sizes.join(", "),
                size(&step.timed)
            );
        }
        text
    }
}

const HEAD: &str = "\
# A rubric of the grader: `grader grade FOLDER --rubric THIS-FILE`. What is left out is as here.
#
# Shares of the five parts, in percent of a step's points. They add up to 100. `correct` is a gate: without it, no other part counts.
";
const LATE: &str = "\
# What lateness costs: points of the total for each day that has begun, until nothing is taken after the latest day.
";
/// Where nothing is late.
const SAMPLE: &str = "\
# [late]
# due = 2026-11-30T23:59:59+01:00
# points-per-day = 10.0
# latest-day = 3
";
const STEPS: &str = "
# Points of each step; the largest share of the reference solution's time that is `fast` (a line `fast = 1.5` above the first
# table is for all steps); the sizes MxNxK that a kernel must solve, with their type, beside the cases that bite (docs/steps.md); the size
# at which it is timed, which it must solve, too.
";

/// A number that is a float in TOML, whatever its value.
struct Decimal(f64);

impl Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

fn name_of(number: u8) -> String {
    format!("[steps.{}]", name(number))
}

fn within<const MOST: u32>(
    source: &Source,
    what: &str,
    value: &Spanned<Whole<MOST>>,
    low: u32,
    high: u32,
) -> Result<u32, String> {
    let Whole(found) = *value.get_ref();
    if (low..=high).contains(&found) {
        return Ok(found);
    }
    Err(source.error(
        Some(value.span()),
        format!("{what} = {found}"),
        format!("Give a whole number from {low} to {high}."),
    ))
}

fn read_shares(source: &Source, said: &Spanned<Table<FileShares>>) -> Result<Shares, String> {
    let (Table(shares), own): (&Table<FileShares>, _) = (said.get_ref(), Shares::default());
    let given = [shares.correct, shares.race_free, shares.structure, shares.resources, shares.fast];
    let mut parts = own.parts;
    for (share, given) in parts.iter_mut().zip(given) {
        *share = given.map_or(*share, |Whole(given)| given);
    }
    let sum: u64 = parts.iter().map(|share| u64::from(*share)).sum();
    if sum != 100 {
        let listed = |said: bool| {
            let of = Part::ALL.into_iter().zip(parts.into_iter().zip(given));
            let of = of.filter(|(_, (_, given))| given.is_some() == said);
            of.map(|(part, (share, _))| format!("{part} {share}")).collect::<Vec<_>>().join(", ")
        };
        let what = match (listed(true), listed(false)) {
            (said, none) if none.is_empty() => format!("the shares of the parts add up to {sum} %: {said}"),
            (said, own) => {
                let said = if said.is_empty() { String::new() } else { format!("{said}, ") };
                format!(
                    "the shares of the parts add up to {sum} %: {said}and, left out here and so as `grader rubric` prints them, {own}"
                )
            }
        };
        let way_out = "Let correct, race-free, structure, resources and fast add up to 100 %.";
        return Err(source.error(Some(said.span()), what, way_out));
    }
    // Else a kernel would lose points on its way to the right result.
    let [correct, ..] = parts;
    let milestones = match &shares.milestones {
        Some(given) => within(source, "milestones", given, 0, correct)?,
        None if own.milestones <= correct => own.milestones,
        None => {
            let what =
                format!("correct = {correct} is less than milestones, {} where they are left out", own.milestones);
            return Err(source.error(
                Some(said.span()),
                what,
                format!("Say `milestones`, up to {correct}, in this table."),
            ));
        }
    };
    Ok(Shares { parts, milestones })
}

fn read_fast(source: &Source, value: &Spanned<f64>) -> Result<f64, String> {
    let fast = *value.get_ref();
    if (1.0..=1000.0).contains(&fast) {
        return Ok(fast);
    }
    let way_out = "Give a number from 1.0 (as fast as the reference solution) to 1000.0.";
    Err(source.error(Some(value.span()), format!("fast = {fast:?}"), way_out))
}

fn read_late(source: &Source, late: &FileLate) -> Result<Late, String> {
    let due = Moment::parse(&late.due.get_ref().to_string()).map_err(|_| {
        let way_out = "Give date, time and offset from UTC, without quotes: 2026-11-30T23:59:59+01:00.";
        source.error(Some(late.due.span()), format!("due = {}", late.due.get_ref()), way_out)
    })?;
    let points_per_day = *late.points_per_day.get_ref();
    if !(points_per_day >= 0.0 && points_per_day.is_finite()) {
        let what = format!("points-per-day = {points_per_day:?}");
        return Err(source.error(Some(late.points_per_day.span()), what, "Give a number from 0.0 on."));
    }
    Ok(Late { due, points_per_day, latest_day: late.latest_day })
}

fn read_sizes(source: &Source, number: u8, sizes: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<Problem>, String> {
    let count = sizes.get_ref().len();
    if !(1..=MAX_SIZES).contains(&count) {
        let what = format!("{count} sizes");
        return Err(source.error(
            Some(sizes.span()),
            what,
            format!("Give 1 to {MAX_SIZES} of them, each \"MxNxK f16\" or \"MxNxK bf16\"."),
        ));
    }
    sizes.get_ref().iter().map(|size| read_size(source, number, size)).collect()
}

fn read_size(source: &Source, number: u8, size: &Spanned<String>) -> Result<Problem, String> {
    let found = size.get_ref();
    let problem: Problem = found.parse().map_err(|_| {
        let way_out =
            format!("Write M, N, K, each from 1 to {MAX_EXTENT}, and the type, f16 or bf16: \"256x256x64 f16\".");
        source.error(Some(size.span()), format!("{found:?} is no size"), way_out)
    })?;
    let (allowed, fits) = contract(number, &problem);
    if fits && problem.m.max(problem.n).max(problem.k) <= MAX_EXTENT {
        return Ok(problem);
    }
    let way_out = format!("Step {number} solves {allowed}; extents go up to {MAX_EXTENT}.");
    Err(source.error(Some(size.span()), format!("step {number} does not solve the size {found:?}"), way_out))
}

/// What a step must solve (docs/steps.md), and whether this is in it.
fn contract(number: u8, problem: &Problem) -> (&'static str, bool) {
    let Problem { m, n, k, .. } = *problem;
    let multiple = |value: u32, of: u32| value > 0 && value.is_multiple_of(of);
    match number {
        1 => ("128 x 128 x 64", [m, n, k] == [128, 128, 64]),
        2 => ("128 x 128 x K, with K a multiple of 64", [m, n] == [128, 128] && multiple(k, 64)),
        3 => {
            let fits = multiple(m, 128) && multiple(n, 128) && multiple(k, 64);
            ("M and N that are multiples of 128, K of 64", fits)
        }
        _ => ("any M, with N and K multiples of 8", m > 0 && multiple(n, 8) && multiple(k, 8)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use harness::STEPS as LADDER;

    #[test]
    fn what_is_printed_is_what_is_read_and_every_step_fits_its_own_contract() {
        let default = Rubric::default();
        assert_eq!(Rubric::parse("r", &default.to_toml()), Ok(default.clone()));
        assert_eq!(Rubric::parse("r", ""), Ok(default.clone()));
        for step in LADDER {
            let cases = step.cases.iter().map(|case| &case.problem);
            for problem in step.sizes.iter().chain(cases).chain([&step.timed]) {
                assert!(contract(step.number, problem).1, "step {}: {problem}", step.number);
            }
        }
        let text = "fast = 2.0\n[late]\ndue = 2026-11-30T23:59:59+01:00\npoints-per-day = 0.5\nlatest-day = 2\n\
                    [steps.step03]\npoints = 7\nfast = 1.5\nsizes = [\"256x128x64 bf16\"]\ntimed = \"128x128x64 f16\"\n";
        let other = Rubric::parse("r", text).expect("a rubric");
        assert_eq!(Rubric::parse("r", &other.to_toml()), Ok(other.clone()));
        assert_eq!((other.steps[&3].points, other.steps[&3].fast, other.steps[&4].fast), (7, 1.5, 2.0));
        assert_eq!(other.steps[&3].timed, Problem::f16(128, 128, 64));
        assert_eq!(other.max_points(&[]), 97);
        assert_eq!(other.max_points(&[3, 4]), 17);
        assert_ne!(other.hash(), default.hash());
    }
}
