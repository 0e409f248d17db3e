//! What is said of a hand-in without a kernel: what lies there instead, where a kernel was looked for, and what to do.

use crate::folder::Folder;
use crate::handin::{end_of, is_archive, is_other_archive, places};
use harness::answers::plain;
use harness::workbook::name;

/// So many names are shown.
const NAMES: usize = 6;
/// In so many of its folders a kernel is looked for that lies too deep.
const FOLDERS: usize = 20;

/// What lies in a hand-in.
#[derive(Debug, Default)]
pub(crate) struct There {
    /// Names, as they are.
    names: Vec<String>,
    /// How many more.
    more: usize,
    /// A kernel that lies one folder too deep.
    too_deep: Option<String>,
    /// Several folders hold such kernels: it may be a class.
    many: bool,
    /// Archives of a folder: more than one, of which nobody knows which counts.
    archives: Vec<String>,
    /// An archive of a kind that is not read.
    other_archive: Option<String>,
    /// A file of Rust whose name says no step.
    unnamed: Option<String>,
}

impl There {
    /// What a folder holds.
    pub(crate) fn of_folder(folder: &Folder) -> There {
        let names = folder.names();
        let folders = names.iter().filter(|name| name.ends_with('/')).take(FOLDERS);
        let steps = || harness::STEPS.iter().flat_map(|step| places(step.number));
        let too_deep = folders.flat_map(|above| steps().map(move |place| format!("{above}{place}")));
        let mut too_deep = too_deep.into_iter().filter(|place| !is_place(place) && folder.holds(place));
        let first = too_deep.next();
        let above = |place: &str| place.split('/').next().map(str::to_string);
        let many = first.as_deref().is_some_and(|first| too_deep.any(|place| above(&place) != above(first)));
        let archives = names.iter().filter(|name| is_archive(name)).cloned().collect();
        let other_archive = names.iter().find(|name| is_other_archive(name)).cloned();
        There { many, archives, other_archive, ..There::shown(&names, first) }
    }

    /// What an archive holds: the names of its files.
    pub(crate) fn of_archive(names: &[String]) -> There {
        let too_deep =
            |name: &&String| !is_place(name) && name.split_once('/').is_some_and(|(_, below)| is_place(below));
        There::shown(names, names.iter().find(too_deep).cloned())
    }

    /// The first of these names.
    fn shown(names: &[String], too_deep: Option<String>) -> There {
        let says_none = |name: &&String| {
            let of_a_step = (1..=99).any(|step| places(step).contains(name));
            !name.contains('/') && end_of(name) == "rs" && !of_a_step
        };
        let unnamed = names.iter().find(says_none).cloned();
        let (names, more) = (names.iter().take(NAMES).cloned().collect(), names.len().saturating_sub(NAMES));
        There { names, more, too_deep, unnamed, ..There::default() }
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
            Some(place) => {
                let above = place.split('/').next().unwrap_or_default();
                let (place, above) = (shown(place), shown(&above.to_string()));
                let class = if self.many { " If it is a class, `grader batch` grades it." } else { "" };
                format!(
                    "Hand in what lies in {above}, not the folder around it: {place} is one folder too deep.{class}"
                )
            }
            None if self.archives.len() > 1 => {
                let archives: Vec<String> = self.archives.iter().take(NAMES).map(shown).collect();
                format!("Leave the archive that counts, alone: {}.", archives.join(", "))
            }
            None if self.other_archive.is_some() => {
                let archive = self.other_archive.iter().map(shown).collect::<String>();
                format!("Unpack {archive} in its place, or hand in what `cargo workbook pack` writes.")
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
    }

    #[test]
    fn a_kernel_whose_name_says_no_step_is_told_what_to_call_it() {
        let said = |name: &str| There::of_archive(&[name.to_string()]).without("anna", &[3], &[]);
        assert!(said("kernel.rs").contains("The name of `kernel.rs` does not say its step: call it `step03.rs`"));
        assert!(!said("src/kernel.rs").contains("call it"));
    }
}
