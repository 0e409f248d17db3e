//! What is said of a hand-in without a kernel: what lies there instead, where a kernel was looked for, and what to do.

use crate::folder::Folder;
use crate::handin::{end_of, is_archive, is_other_archive, places};
use harness::answers::plain;
use harness::workbook::name;

/// So many names are shown.
const NAMES: usize = 6;
/// In so many of its folders a kernel is looked for that lies too deep.
const FOLDERS: usize = 20;
/// So many folders lie above such a kernel at most.
const DEPTH: usize = 4;

/// What lies in a hand-in.
#[derive(Debug, Default)]
pub(crate) struct There {
    /// Names, as they are.
    names: Vec<String>,
    /// How many more.
    more: usize,
    /// A kernel that lies too deep.
    too_deep: Option<TooDeep>,
    /// Several folders hold such kernels: it may be a class.
    many: bool,
    /// Archives of a folder: more than one, of which nobody knows which counts.
    archives: Vec<String>,
    /// An archive of a kind that is not read.
    other_archive: Option<String>,
    /// A file of Rust whose name says no step.
    unnamed: Option<String>,
    /// A name that is nearly a step's, and that one.
    misnamed: Option<(String, String)>,
}

/// A kernel that lies too deep.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TooDeep {
    /// The folders above it that are too many: `project/`.
    above: String,
    /// Where it lies in them.
    place: String,
}

impl TooDeep {
    fn of(path: &str) -> Option<TooDeep> {
        let cuts = path.match_indices('/').map(|(at, _)| path.split_at(at + 1));
        let mut found = cuts.filter(|(_, place)| is_place(place));
        let (above, place) = found.next().filter(|_| !is_place(path))?;
        Some(TooDeep { above: above.to_string(), place: place.to_string() })
    }
}

impl There {
    /// What a folder holds.
    pub(crate) fn of_folder(folder: &Folder) -> There {
        let names = folder.names();
        let (first, many) = too_deep(folder, &names);
        let archives = names.iter().filter(|name| is_archive(name)).cloned().collect();
        let other_archive = names.iter().find(|name| is_other_archive(name)).cloned();
        There { many, archives, other_archive, ..There::shown(&names, first) }
    }

    /// What an archive holds: the names of its files.
    pub(crate) fn of_archive(names: &[String]) -> There {
        There::shown(names, names.iter().find_map(|name| TooDeep::of(name)))
    }

    /// The first of these names.
    fn shown(names: &[String], too_deep: Option<TooDeep>) -> There {
        let says_none = |name: &&String| {
            let of_a_step = (1..=99).any(|step| places(step).contains(name));
            !name.contains('/') && end_of(name) == "rs" && !of_a_step
        };
        let unnamed = names.iter().find(says_none).cloned();
        let misnamed = names.iter().flat_map(|name| name.split('/')).find_map(misnamed);
        let (names, more) = (names.iter().take(NAMES).cloned().collect(), names.len().saturating_sub(NAMES));
        There { names, more, too_deep, unnamed, misnamed, ..There::default() }
    }

    /// That the hand-in `called` so holds no kernel of these steps. `notes`: what else is to be said, a sentence each.
    pub(crate) fn without(&self, called: &str, missing: &[u8], notes: &[String]) -> String {
        let of = match missing {
            [first, .., last] if missing.len() > 2 && missing.is_sorted() => {
                let all = usize::from(last - first) + 1 == missing.len();
                if all { format!("{} to {}", name(*first), name(*last)) } else { listed(missing) }
            }
            _ => listed(missing),
        };
        let first = missing.first().copied().unwrap_or(1);
        let others = if missing.len() > 1 { ", and the same for the other steps" } else { "" };
        let shown = |name: &String| format!("`{}`", plain(name).replace(['\n', '\t'], "\u{fffd}"));
        let there: Vec<String> = self.names.iter().map(shown).collect();
        let there = match (there.is_empty(), self.more) {
            (true, _) => "nothing".to_string(),
            (false, 0) => there.join(", "),
            (false, more) => format!("{} and {more} more", there.join(", ")),
        };
        let notes: String = notes.iter().map(|note| format!("\n  {note}")).collect();
        let way_out = match &self.too_deep {
            Some(TooDeep { above, place }) => {
                let folders = match above.matches('/').count() {
                    1 => "one folder".to_string(),
                    count => format!("{count} folders"),
                };
                let (place, above) =
                    (shown(&format!("{above}{place}")), shown(&above.trim_end_matches('/').to_string()));
                let class = if self.many { " If it is a class, `grader batch` grades it." } else { "" };
                format!("Hand in what lies in {above}, not the folder around it: {place} is {folders} too deep.{class}")
            }
            None if self.archives.len() > 1 => {
                let archives: Vec<String> = self.archives.iter().take(NAMES).map(shown).collect();
                format!("Leave the archive that counts, alone: {}.", archives.join(", "))
            }
            None if self.other_archive.is_some() => {
                let archive = self.other_archive.iter().map(shown).collect::<String>();
                format!("Unpack {archive} in its place, or hand in what `cargo workbook pack` writes.")
            }
            None if self.misnamed.is_some() => {
                let (is, should) = self.misnamed.clone().unwrap_or_default();
                format!("Call {} `{should}`: that is how the step is looked for.", shown(&is))
            }
            None if self.unnamed.is_some() => {
                let kernel = self.unnamed.iter().map(shown).collect::<String>();
                let step = name(first);
                format!(
                    "The name of {kernel} does not say its step: call it `{step}.rs`, with the number of its step, or hand in what \
                     `cargo workbook pack` writes."
                )
            }
            None => "Put each kernel at one of these places, or hand in what `cargo workbook pack` writes.".to_string(),
        };
        format!(
            "{called} holds no kernel for {of}\n  there is: {there}\n  looked for: {}{others}{notes}\n  try: {way_out}",
            places(first).join(", ")
        )
    }
}

/// The first kernel that lies too deep in a folder, nearest first, and whether another folder beside it has one, too.
fn too_deep(folder: &Folder, names: &[String]) -> (Option<TooDeep>, bool) {
    let steps = || harness::STEPS.iter().flat_map(|step| places(step.number));
    let mut found: Option<TooDeep> = None;
    let mut folders: Vec<String> = names.iter().filter(|name| name.ends_with('/')).take(FOLDERS).cloned().collect();
    for _ in 0..DEPTH {
        for above in &folders {
            let there =
                steps().find(|place| !is_place(&format!("{above}{place}")) && folder.holds(&format!("{above}{place}")));
            match (there, &found) {
                (Some(_), Some(_)) => return (found, true),
                (Some(place), None) => found = Some(TooDeep { above: above.clone(), place }),
                (None, _) => {}
            }
        }
        if found.is_some() {
            break;
        }
        let below = |above: &String| {
            let names = folder.folder(above.trim_end_matches('/')).map(|below| below.names()).unwrap_or_default();
            names
                .into_iter()
                .filter(|name| name.ends_with('/'))
                .map(|name| format!("{above}{name}"))
                .collect::<Vec<_>>()
        };
        folders = folders.iter().flat_map(below).take(FOLDERS).collect();
    }
    (found, false)
}

/// A name that is nearly that of a step, and what it should be: `step1.rs`, `Step_01`.
fn misnamed(name: &str) -> Option<(String, String)> {
    let (stem, end) = if end_of(name) == "rs" { (name.get(..name.len() - 3)?, ".rs") } else { (name, "") };
    let stem = stem.to_ascii_lowercase();
    let digits = stem.strip_prefix("step")?.trim_start_matches(['_', '-', ' ', '0']);
    let number = digits.parse().ok().filter(|number| harness::step(*number).is_some())?;
    let should = harness::workbook::name(number) + end;
    (name != should).then(|| (name.to_string(), should))
}

/// Whether a kernel of some step is looked for there.
fn is_place(name: &str) -> bool {
    harness::STEPS.iter().any(|step| places(step.number).iter().any(|place| place == name))
}

fn listed(steps: &[u8]) -> String {
    steps.iter().map(|step| name(*step)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_of_another_step_at_its_place_is_not_too_deep() {
        let said = |name: &str| There::of_archive(&[name.to_string()]).without("anna", &[1], &[]);
        let other = said("steps/step03/src/kernel.rs");
        assert!(other.contains("there is: `steps/step03/src/kernel.rs`") && !other.contains("too deep"), "{other}");
        assert!(said("homework/step03/src/kernel.rs").contains("one folder too deep"));
        let deep = said("proj/a/steps/step01/src/kernel.rs");
        assert!(deep.contains("Hand in what lies in `proj/a`") && deep.contains("is 2 folders too deep"), "{deep}");
    }

    #[test]
    fn a_kernel_that_lies_deep_in_a_folder_is_found() {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("proj/a/steps/step01/src");
        std::fs::create_dir_all(&place).unwrap();
        std::fs::write(place.join("kernel.rs"), "").unwrap();
        let folder = Folder::open(root.path(), crate::folder::Named::ByPerson).unwrap();
        let said = There::of_folder(&folder).without("anna", &[1], &[]);
        assert!(said.contains("`proj/a/steps/step01/src/kernel.rs` is 2 folders too deep"), "{said}");
    }

    #[test]
    fn a_name_that_is_nearly_a_steps_is_told_what_to_be() {
        let said = |name: &str| There::of_archive(&[name.to_string()]).without("anna", &[1], &[]);
        assert!(said("step1.rs").contains("Call `step1.rs` `step01.rs`"), "{}", said("step1.rs"));
        for (name, should) in
            [("Step_03.rs", "step03.rs"), ("steps/step1/src/kernel.rs", "step01"), ("STEP10.RS", "step10.rs")]
        {
            assert!(said(name).contains(&format!(" `{should}`: ")), "{}", said(name));
        }
        for name in ["step.rs", "step00.rs", "step99.rs", "stepping.rs"] {
            assert!(!said(name).contains("try: Call"), "{}", said(name));
        }
    }

    #[test]
    fn a_kernel_whose_name_says_no_step_is_told_what_to_call_it() {
        let said = |name: &str| There::of_archive(&[name.to_string()]).without("anna", &[3], &[]);
        assert!(said("kernel.rs").contains("The name of `kernel.rs` does not say its step: call it `step03.rs`"));
        assert!(!said("src/kernel.rs").contains("call it"));
    }
}
