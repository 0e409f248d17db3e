//! Matrix descriptors that hold an address as it is, and not its sixteenth part: the operand is then read from an address sixteen times as high.

use super::boxes::{Laid, Which};
use super::copied::CHUNK;
use crate::diagnostic::{Place, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::tensor_memory::SharedDescriptor;

/// Operands of statements, as many as are remembered.
const MOST: usize = 64;
/// The start address field has so many bits.
const FIELD: u32 = 1 << 14;

pub const RULE: &str = "Bits 0 to 13 of a matrix descriptor hold the start address divided by 16, bits 4 to 17 of the address (PTX ISA 9.7.16.4.1, matrix \
                    descriptor).";
pub const HELP: &str = "Shift the address right by 4 before it goes into the descriptor: (address >> 4) & 0x3fff.";

/// Where the operand of an MMA has begun, all in all.
#[derive(Debug)]
pub struct Starts {
    /// The MMA, and which operand.
    site: u32,
    which: Which,
    /// Each time, the field as an address was in the first row of a tile that holds the operand.
    fits: bool,
    /// Once the operand did not lie in what it begins in: the field, and what begins at that address. Better where something begins there exactly.
    astray: Option<(u32, Vec<String>)>,
    /// Something does.
    exact: bool,
}

impl Laid {
    /// The start address field, taken for an address, is that of a row of a tile.
    fn begins_a_row(&self) -> bool {
        self.d.swizzle != 0 && (self.d.start / 16).is_multiple_of(self.d.swizzle)
    }
}

impl Cluster<'_> {
    /// A K-major operand, moved to another address: whether all of its rows lie in the box, or in what threads copied, in which it
    /// begins, and whether it begins in the first of them; `None`: nothing is known of what lies there.
    pub fn lies(&self, cta: usize, laid: &Laid, start: u32) -> Option<(bool, bool)> {
        let Laid { d, rows, .. } = *laid;
        let d = SharedDescriptor { start, ..d };
        let line = start - start % d.swizzle;
        if let Some(tile) = self.ctas[cta].loaded.tile(line) {
            if tile.swizzle != d.mode() || tile.rows == 0 || tile.pitch != d.swizzle {
                return None;
            }
            let row = line.saturating_sub(tile.start) / d.swizzle;
            return Some((row == 0 || row + rows <= tile.rows, row == 0 && rows <= tile.rows));
        }
        let source = |row: u32| self.source(cta, d.chunk(row, 0, false));
        let (first, last) = (source(0)?, source(rows - 1)?);
        let (width, _) = self.row_width(cta, &d, first.0)?;
        let follows = |row: u32, at: (usize, u64)| at == (first.0, first.1 + u64::from(row) * width);
        let whole = follows(rows - 1, last);
        if !whole {
            // Behind the end of a tile lies something else. Rows that go on elsewhere in the same buffer were gathered: then nothing is known.
            let end = (1..rows).find_map(|row| source(row).filter(|at| !follows(row, *at)));
            if end.is_some_and(|(buffer, _)| buffer == first.0) {
                return None;
            }
        }
        let before = start.checked_sub(d.swizzle).map(|start| SharedDescriptor { start, ..d }.chunk(0, 0, false));
        let before = before.and_then(|at| self.source(cta, at));
        Some((whole, whole && before.is_none_or(|(buffer, at)| (buffer, at + width) != first)))
    }

    /// Where something begins that the operand may be, if the start address field of its descriptor is taken for an address. Of that, it has the
    /// lowest bits only.
    fn begins_at_field(&self, cta: usize, laid: Laid) -> impl Iterator<Item = u32> {
        let swizzled = !laid.mn_major && laid.d.swizzle != 0;
        // It may have gone on along K since, by sixteenths of bytes.
        let field = laid.d.start / 16 % FIELD;
        let (field, end) = (field - field % CHUNK as u32, self.ctas[cta].shared.bytes.len() as u32);
        let places = (field..end).step_by(FIELD as usize).filter(move |_| swizzled);
        places.filter(move |&at| self.lies(cta, &laid, at).is_some_and(|(_, begins)| begins))
    }

    /// An MMA reads an operand: does it lie where it seems to be meant to?
    pub fn note_start(&mut self, cta: usize, laid: &Laid) {
        let Laid { which, d, mn_major, site, .. } = *laid;
        if mn_major || d.swizzle == 0 {
            return;
        }
        let known = self.starts.iter().position(|starts| starts.site == site && starts.which == which);
        if known.is_some_and(|n| !self.starts[n].fits) || known.is_none() && self.starts.len() == MOST {
            return;
        }
        let fits = self.begins_at_field(cta, *laid).next().is_some();
        let exact = laid.begins_a_row();
        let better = known.is_none_or(|n| self.starts[n].astray.is_none() || exact && !self.starts[n].exact);
        let astray = fits && better && self.lies(cta, laid, d.start).is_some_and(|(whole, _)| !whole);
        let names = astray.then(|| {
            let places = self.begins_at_field(cta, *laid);
            let mut names: Vec<String> = places.map(|at| self.shared_name(at - at % d.swizzle)).collect();
            names.dedup();
            names.truncate(2);
            names
        });
        let n = known.unwrap_or_else(|| {
            self.starts.push(Starts { site, which, fits: true, astray: None, exact: false });
            self.starts.len() - 1
        });
        let starts = &mut self.starts[n];
        starts.fits = fits;
        if let Some(names) = names {
            (starts.astray, starts.exact) = (Some((d.start / 16, names)), exact);
        }
    }

    /// Whether an operand of an MMA was never where it should be so far, and would have been if its descriptor held a sixteenth. Of the first one,
    /// which runs out of shared memory, no more is known than that.
    pub fn is_unshifted(&self, cta: usize, laid: &Laid) -> bool {
        let is_it = |starts: &&Starts| starts.site == laid.site && starts.which == laid.which;
        match self.starts.iter().find(is_it) {
            Some(starts) => starts.fits && starts.exact,
            None => laid.begins_a_row() && self.begins_at_field(cta, *laid).next().is_some(),
        }
    }

    /// The run has ended: operands that were never where they should be, and would be if their descriptors held a sixteenth.
    pub fn tell_unshifted(&mut self) {
        let all = std::mem::take(&mut self.starts);
        let told: Vec<_> = all
            .iter()
            .filter(|starts| starts.fits)
            .filter_map(|starts| Some((starts, starts.astray.as_ref()?)))
            .collect();
        let Some(&(first, (field, _))) = told.iter().find(|(starts, _)| starts.exact) else { return };
        let holds = match told.iter().any(|(starts, _)| starts.which != first.which) {
            true => "descriptors of A and B hold".to_string(),
            false => format!("descriptor of {} holds", first.which),
        };
        let title = format!("the matrix {holds} an address as it is, {field:#x}, and not its sixteenth part");
        let mut diagnostic = self.problem("matrix-descriptor", first.site, title, RULE, HELP.into());
        diagnostic.severity = Severity::Finding;
        diagnostic.labels.clear();
        let mut said: Vec<(Which, Place)> = vec![];
        for (starts, (field, names)) in told {
            let text = format!(
                "{} is read from {field:#x} × 16 = {:#x} on, in {}; the lowest 14 bits of the address of {} are {field:#x}",
                starts.which,
                field * 16,
                self.shared_name(field * 16),
                names.join(" or "),
            );
            let label = self.label(starts.site, text);
            // Four slices, of one line or of one each, are said once.
            if !said.iter().any(|(which, place)| *which == starts.which && place.shown() == label.place.shown()) {
                said.push((starts.which, label.place.clone()));
                diagnostic.labels.push(label);
            }
        }
        self.findings.add(diagnostic);
    }
}
