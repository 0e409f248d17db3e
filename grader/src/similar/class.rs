//! The kernels of a class, read as `grade` reads them: folders and archives.
//!
//! Nothing is passed over in silence: what cannot be read, or is no hand-in that one could compare, is in [`Class::unread`], by name.

use super::Kernel;
use crate::batch::hand_ins;
use crate::folder::Named;
use crate::handin::{HandIn, KINDS, there_are};
use harness::answers::plain;
use harness::workbook::name;
use std::collections::BTreeMap;
use std::path::Path;

/// What the hand-ins of a folder hold.
#[derive(Clone, Debug, Default)]
pub struct Class {
    /// Kernels by their step, in the order of the hand-ins' names.
    pub kernels: BTreeMap<u8, Vec<Kernel>>,
    /// How many hand-ins there are.
    pub hand_ins: usize,
    /// A sentence on what is nobody's hand-in, and one on all hand-ins that have other steps' kernels alone, or nothing.
    pub notes: Vec<String>,
    /// What somebody may have handed in and cannot be compared, and why.
    pub unread: Vec<String>,
}

impl Class {
    /// Reads the hand-ins of a folder. `wanted`: only these steps; if empty, all that exist.
    ///
    /// # Errors
    /// When the folder cannot be read or holds no hand-in, or there is no such step.
    pub fn read(folder: &Path, existing: &[u8], wanted: &[u8]) -> Result<Class, String> {
        there_are(existing, wanted)?;
        let steps = if wanted.is_empty() { existing } else { wanted };
        let Listed { hand_ins, notes, unread } = list(folder)?;
        let mut class = Class { hand_ins: hand_ins.len(), notes, unread, ..Class::default() };
        let mut without = Vec::new();
        for hand_in in &hand_ins {
            match HandIn::open(&hand_in.path, Named::ByEntry) {
                Ok(opened) if class.take(&hand_in.name, &hand_in.path, &opened, steps) => {}
                Ok(opened) => match opened.without_kernel(existing) {
                    Ok(None) => without.push(hand_in.name.as_str()),
                    Ok(Some(reason)) => class.unread.push(plain(&reason)),
                    Err(unread) => class.unread.push(plain(&unread.reason)),
                },
                Err(unread) => class.unread.push(plain(&unread.reason)),
            }
        }
        if !without.is_empty() {
            let of = match steps {
                [step] => name(*step),
                _ => "any step".to_string(),
            };
            class.notes.push(format!("no kernel for {of} in {}", without.join(", ")));
        }
        Ok(class)
    }

    /// Takes the kernels of a hand-in. Gives whether there is any, read or not.
    fn take(&mut self, name: &str, path: &Path, opened: &HandIn, steps: &[u8]) -> bool {
        let (mut found, mut wrong) = (0, 0);
        for step in steps {
            match opened.kernel(*step) {
                Ok(None) => {}
                Ok(Some(kernel)) => {
                    found += 1;
                    let file = kernel.path.strip_prefix(path).unwrap_or(&kernel.path).display().to_string();
                    let kernel = Kernel { name: name.to_string(), file, text: kernel.text };
                    self.kernels.entry(*step).or_default().push(kernel);
                }
                // One bad kernel hides no other.
                Err(unread) => {
                    wrong += 1;
                    self.unread.push(plain(&unread.reason));
                }
            }
        }
        found + wrong > 0
    }
}

/// What lies in a folder.
struct Listed {
    hand_ins: Vec<hand_ins::HandIn>,
    /// A sentence on what is nobody's.
    notes: Vec<String>,
    /// Why the others are none.
    unread: Vec<String>,
}

fn list(folder: &Path) -> Result<Listed, String> {
    let way_out = format!("try: Name the folder in which each hand-in is {KINDS}.");
    let shown = folder.display();
    if !folder.exists() {
        return Err(format!("{shown} does not exist\n  {way_out}"));
    }
    if !folder.is_dir() {
        return Err(format!("{shown} is one file; hand-ins are compared with each other\n  {way_out}"));
    }
    let (all, ignored) = hand_ins::list(folder, None)?;
    let (mut hand_ins, mut unread) = (Vec::new(), Vec::new());
    for mut one in all {
        match one.odd.take() {
            Some(odd) => unread.push(odd),
            None => hand_ins.push(one),
        }
    }
    if hand_ins.is_empty() {
        let first = unread.iter().map(|odd| odd.lines().next().unwrap_or_default());
        let there = first.chain(ignored.iter().map(String::as_str)).map(|line| format!("\n  {line}"));
        return Err(format!("{shown} holds no hand-in{}\n  {way_out}", there.collect::<String>()));
    }
    Ok(Listed { hand_ins, notes: ignored, unread })
}
