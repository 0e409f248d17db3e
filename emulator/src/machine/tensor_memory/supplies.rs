//! What is brought to tensor memory for MMAs, and what of it none of them reads in a whole launch: scale factors, by `tcgen05.cp`, and A.

use super::COLUMNS;
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::counted;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// All bytes of a cell.
pub const WHOLE: u8 = 0b1111;

/// What a statement brings: which bytes of each column were read, in any CTA, at any time.
#[derive(Clone, Debug, PartialEq)]
struct Supply {
    site: u32,
    /// By a `tcgen05.cp`; else by a `tcgen05.st`.
    copied: bool,
    read: Vec<u8>,
    /// The MMAs that read parts of it as an operand: which column begins the part, and which bytes.
    parts: Vec<(u32, u16, u8)>,
    /// The last MMA that reads some of it as an operand.
    by: Option<u32>,
    /// How messages call the place of the first.
    name: String,
}

/// What lies in the cells of a quarter of a CTA's lanes, column by column: the index of a supply, from 1 on, and the column in it.
type Cells = [(u32, u16); COLUMNS as usize];

/// What becomes of what is brought.
#[derive(Debug, Default)]
pub struct Supplies {
    ctas: Vec<Option<Box<[Cells; 4]>>>,
    all: Vec<Supply>,
    /// Where threads store to tensor memory: the CTA, and the column by eights.
    stored: BTreeSet<(usize, u32)>,
    /// MMAs that take sums of others for A: the CTA, the first column, and what is to be said of it.
    sums_for_a: Vec<(usize, u32, Diagnostic)>,
    /// Those of columns that threads store to at other times: a store may have been left out.
    sums_between: Vec<Diagnostic>,
    /// Columns of scale factors of A and of B of which it is told that they overlap.
    overlaps: Vec<[u32; 2]>,
}

/// Behind the word "byte": which of a column.
fn listed_bytes(bytes: u8) -> String {
    let numbers: Vec<String> = (0..4).filter(|n| bytes >> n & 1 == 1).map(|n: u32| n.to_string()).collect();
    let s = if numbers.len() == 1 { "" } else { "s" };
    format!("{s} {}", numbers.join(", "))
}

fn clamped(column: u32, columns: u32) -> Range<usize> {
    column.min(COLUMNS) as usize..(column + columns).min(COLUMNS) as usize
}

impl Supplies {
    /// Columns of these quarters of the lanes hold something else.
    pub fn overwrite(&mut self, cta: usize, quarters: Range<usize>, (column, columns): (u32, u32)) {
        if let Some(Some(cells)) = self.ctas.get_mut(cta) {
            cells[quarters].iter_mut().for_each(|cells| cells[clamped(column, columns)].fill((0, 0)));
        }
    }

    /// Those of a statement that brings so many columns.
    fn known(&self, site: u32, columns: u32) -> Option<usize> {
        self.all.iter().position(|known| (known.site, known.read.len()) == (site, columns as usize))
    }

    /// A supply lies in columns.
    fn bring(&mut self, cta: usize, quarters: Range<usize>, (column, columns): (u32, u32), of: usize) {
        if self.ctas.len() <= cta {
            self.ctas.resize_with(cta + 1, || None);
        }
        let cells = self.ctas[cta].get_or_insert_with(|| Box::new([[(0, 0); COLUMNS as usize]; 4]));
        for cells in &mut cells[quarters] {
            let cells = &mut cells[clamped(column, columns)];
            (0..).zip(cells).for_each(|(n, cell)| *cell = (of as u32 + 1, n));
        }
    }

    /// The column from which on a `tcgen05.cp` has brought what lies in a column of a CTA.
    pub fn copied_from(&self, cta: usize, column: u32) -> Option<u32> {
        let cells = self.ctas.get(cta)?.as_ref()?;
        let &(of, n) = cells[0].get(column as usize)?;
        self.all.get((of as usize).checked_sub(1)?).filter(|supply| supply.copied)?;
        column.checked_sub(n.into())
    }

    /// These bytes of columns of a CTA are read; by an MMA as its operand, or else.
    pub fn read(&mut self, cta: usize, (column, columns): (u32, u32), bytes: u8, mma: Option<u32>) {
        let Some(Some(cells)) = self.ctas.get(cta) else { return };
        if let (Some(site), Some(&(of, n))) = (mma, cells[0].get(column as usize))
            && let Some(supply) = (of as usize).checked_sub(1).and_then(|of| self.all.get_mut(of))
        {
            supply.takes((site, n, bytes));
        }
        for &(of, n) in cells.iter().flat_map(|cells| &cells[clamped(column, columns)]) {
            let Some(supply) = (of as usize).checked_sub(1).and_then(|of| self.all.get_mut(of)) else { continue };
            supply.by = mma.or(supply.by);
            if let Some(read) = supply.read.get_mut(usize::from(n)) {
                *read |= bytes;
            }
        }
    }

    fn add(&mut self, more: Supply) -> usize {
        if let Some(at) = self.known(more.site, more.read.len() as u32) {
            self.all[at].read.iter_mut().zip(&more.read).for_each(|(read, more)| *read |= more);
            self.all[at].by = self.all[at].by.or(more.by);
            more.parts.iter().for_each(|&part| self.all[at].takes(part));
            return at;
        }
        self.all.push(more);
        self.all.len() - 1
    }

    /// Takes over what a cluster has seen.
    pub fn join(&mut self, other: Supplies) {
        other.all.into_iter().for_each(|more| {
            self.add(more);
        });
        self.sums_between.extend(other.sums_between);
    }

    /// Threads store to columns.
    pub fn stores(&mut self, cta: usize, (column, columns): (u32, u32)) {
        self.stored.extend((column / 8..(column + columns).div_ceil(8)).map(|eight| (cta, eight)));
    }

    /// An MMA takes sums of another one for A, from this column on.
    pub fn takes_sums(&mut self, cta: usize, from: u32, diagnostic: Diagnostic) {
        let same = |known: &&mut (usize, u32, Diagnostic)| known.2.labels == diagnostic.labels;
        match self.sums_for_a.iter_mut().find(same) {
            Some(known) => known.2.count += 1,
            None => self.sums_for_a.push((cta, from, diagnostic)),
        }
    }

    /// What of that holds, whatever else is wrong: where threads never store, it does not come too early.
    pub fn sums_for_a(&mut self) -> Vec<Diagnostic> {
        let stored = std::mem::take(&mut self.stored);
        let never =
            |cta: usize, from: u32| (from / 8..(from + 8).div_ceil(8)).all(|eight| !stored.contains(&(cta, eight)));
        let (told, between): (Vec<_>, Vec<_>) =
            std::mem::take(&mut self.sums_for_a).into_iter().partition(|&(cta, from, _)| never(cta, from));
        self.sums_between.extend(between.into_iter().map(|(.., diagnostic)| diagnostic));
        told.into_iter().map(|(.., diagnostic)| diagnostic).collect()
    }

    /// The rest of that, which nothing else that is wrong explains: the launch is complete.
    pub fn sums_between(&mut self) -> Vec<Diagnostic> {
        std::mem::take(&mut self.sums_between)
    }

    /// Whether the overlap of these columns is to be told: it was not yet.
    pub fn overlap_is_new(&mut self, columns: [u32; 2]) -> bool {
        let new = !self.overlaps.contains(&columns);
        if new {
            self.overlaps.push(columns);
        }
        new
    }

    /// The launch is complete, and nothing else is wrong: what nobody has read, where MMAs have operands in tensor memory at all.
    pub fn judge(&self, label: impl Fn(u32, String) -> Label) -> Vec<Diagnostic> {
        let any = self.all.iter().any(|supply| supply.by.is_some());
        self.all.iter().filter(|_| any).filter_map(|supply| supply.said(&label)).collect()
    }
}

/// Parts of a supply, of as many MMAs, as are remembered.
const MOST_PARTS: usize = 64;

impl Supply {
    fn takes(&mut self, part: (u32, u16, u8)) {
        if !self.parts.contains(&part) && self.parts.len() < MOST_PARTS {
            self.parts.push(part);
        }
    }

    /// A part that more MMAs read than another one: its first column, its bytes, and these MMAs in their order.
    fn taken_twice(&self) -> Option<((u16, u8), Vec<u32>)> {
        let mut by: BTreeMap<(u16, u8), Vec<u32>> = BTreeMap::new();
        for &(site, n, bytes) in &self.parts {
            by.entry((n, bytes)).or_default().push(site);
        }
        let fewest = by.values().map(Vec::len).min()?;
        let (part, mut sites) =
            by.into_iter().max_by_key(|(_, sites)| sites.len()).filter(|most| most.1.len() > fewest)?;
        sites.sort_unstable();
        Some((part, sites))
    }

    /// The same of columns of A, eight of which an MMA takes: behind the last that is read, as many as MMAs read others again.
    fn columns_left_for_another(&self) -> usize {
        let Some((_, sites)) = self.taken_twice().filter(|_| !self.copied) else { return 0 };
        let parts: BTreeSet<u16> = self.parts.iter().map(|part| part.1).collect();
        let read = self.read.iter().filter(|&&read| read != 0).count();
        let left = self.read.len() - read;
        let alone = self.parts.len() == parts.len() + sites.len() - 1;
        if alone && read == 8 * parts.len() && left == 8 * (sites.len() - 1) { left } else { 0 }
    }

    /// Bytes behind those that are read may fill up a word: not where MMAs read others as often again as these lack a reader.
    fn left_for_another(&self) -> u8 {
        let Some(((column, bytes), sites)) = self.taken_twice() else { return 0 };
        let read = self.read.iter().fold(0, |all, read| all | read);
        let of_column = self.parts.iter().filter(|part| part.1 == column);
        let others = of_column.clone().filter(|part| part.2 != bytes).count();
        let left = WHOLE & !read;
        // Each of the others has one reader.
        let each = of_column.filter(|part| part.2 != bytes).map(|part| part.2).fold(0u8, |all, of| all | of);
        let alone = each.count_ones() == others as u32 * bytes.count_ones();
        if alone && sites.len() as u32 == 1 + left.count_ones() / bytes.count_ones().max(1) { left } else { 0 }
    }

    /// What of it is never read, in so many words. What lies behind the last that is read fills up a tile: 128 rows, or 4 factors of each.
    fn never_read(&self) -> Option<String> {
        let Some(last) = self.read.iter().rposition(|&read| read != 0) else {
            return self.copied.then(|| format!("what is copied to {}", self.name));
        };
        // A store may put there what MMAs add to, and what other threads load.
        self.by?;
        let holes: Vec<usize> = (0..last).filter(|&n| self.read[n] == 0).collect();
        let what = if self.copied { "copied" } else { "stored" };
        if let [first, .., end] | [first @ end] = holes[..] {
            return Some(match holes.len() {
                1 => format!("column {first} of what is {what} to {}", self.name),
                many if end - first + 1 == many => {
                    format!("columns {first} to {end} of what is {what} to {}", self.name)
                }
                many => format!("{many} columns of what is {what} to {}, from column {first} on,", self.name),
            });
        }
        let before = |read: u8| (u8::MAX >> read.leading_zeros()) & !read;
        let bytes = self.read.iter().map(|&read| if read == 0 { 0 } else { before(read) }).fold(0, |all, of| all | of);
        let columns = self.columns_left_for_another();
        if columns > 0 {
            let (first, end) = (last + 1, last + columns);
            return Some(format!("columns {first} to {end} of what is {what} to {}", self.name));
        }
        let bytes = bytes | self.left_for_another();
        if !self.copied || bytes == 0 {
            return None;
        }
        Some(format!("byte{} of each column of what is copied to {}", listed_bytes(bytes), self.name))
    }

    fn said(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let what = self.never_read()?;
        let how = if self.copied { "copied" } else { "stored" };
        let columns = counted(self.read.len() as u32, "column");
        let mut labels = vec![label(self.site, format!("{how} here, {columns}"))];
        let help = match self.taken_twice() {
            Some(((column, bytes), sites)) if sites.len() > 1 => {
                let part = match self.copied {
                    true => format!("byte{} of each column", listed_bytes(bytes)),
                    false => format!("columns {column} to {}", column + 7),
                };
                let text = format!("this takes {part} of it, as another MMA does");
                labels.extend(sites.iter().take(3).map(|&site| label(site, text.clone())));
                match self.copied {
                    true => "One of the MMAs that take the same factors is meant for those that none takes: check the scale-factor ids of its instruction descriptor \
                             (bits 4 and 5 for B, 29 and 30 for A), and the columns that it names."
                        .into(),
                    false => "One of the MMAs that take the same columns of A is meant for those that none takes: check the columns that it names."
                        .to_string(),
                }
            }
            _ => {
                labels.extend(self.by.map(|by| label(by, "other parts of it are read here".into())));
                "Hold the columns that the MMAs name, and the scale-factor ids of their instruction descriptors, against what is brought: one MMA may \
                 name the columns, or the id, of another, and two statements may bring something to the same columns."
                    .into()
            }
        };
        Some(Diagnostic {
            code: "loaded-never-read",
            severity: Severity::Note,
            title: format!("no MMA reads {what}"),
            labels,
            rule: "An MMA takes scale factors from the columns that it names, of the bytes that its instruction descriptor selects (PTX ISA \
                   9.7.16.10.7), and A from 8 columns from its address on, for 32 bytes of each row. What was brought to other columns, or was \
                   overwritten before, takes part in no product."
                .into(),
            help,
            count: 1,
            confirmed: None,
        })
    }
}

impl Cluster<'_> {
    /// A `tcgen05.cp`, or a `tcgen05.st` to all lanes of these quarters, brings columns.
    pub fn note_supply(&mut self, cta: usize, quarters: Range<usize>, columns: (u32, u32), site: u32, copied: bool) {
        if !self.options.judges() {
            return;
        }
        let of = self.supplies.known(site, columns.1).unwrap_or_else(|| {
            let (read, name) = (vec![0; columns.1 as usize], self.tensor_name(columns.0));
            self.supplies.add(Supply { site, copied, read, parts: vec![], by: None, name })
        });
        self.supplies.bring(cta, quarters, columns, of);
        if copied {
            self.uses.bring(cta, columns.0, site);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supply(site: u32, copied: bool, columns: usize) -> Supply {
        Supply { site, copied, read: vec![0; columns], parts: vec![], by: None, name: "there".into() }
    }

    fn bring(supplies: &mut Supplies, cta: usize, quarters: Range<usize>, columns: (u32, u32), new: Supply) {
        let of = supplies.add(new);
        supplies.bring(cta, quarters, columns, of);
    }

    fn left(supplies: &Supplies) -> Vec<String> {
        supplies.judge(|_, text| Label::new(Default::default(), text)).into_iter().map(|d| d.title).collect()
    }

    #[test]
    fn what_is_never_read_before_what_is() {
        let mut supplies = Supplies::default();
        bring(&mut supplies, 0, 0..4, (128, 4), supply(7, true, 4));
        assert_eq!(left(&supplies), [""; 0], "no MMA has operands here");
        // Rows that fill a tile up.
        supplies.read(0, (128, 2), 0b0011, Some(9));
        assert_eq!(left(&supplies), [""; 0]);
        supplies.read(0, (128, 2), 0b1000, Some(9));
        assert_eq!(left(&supplies), ["no MMA reads byte 2 of each column of what is copied to there"]);
        // Another time, in another CTA.
        bring(&mut supplies, 1, 0..4, (256, 4), supply(7, true, 4));
        supplies.read(1, (256, 4), WHOLE, Some(9));
        assert_eq!(left(&supplies), [""; 0]);
        // Overwritten by another copy.
        bring(&mut supplies, 0, 0..4, (132, 4), supply(8, true, 4));
        bring(&mut supplies, 0, 0..4, (132, 4), supply(7, true, 4));
        supplies.read(0, (132, 4), WHOLE, Some(9));
        assert_eq!(left(&supplies), ["no MMA reads what is copied to there"]);
    }

    #[test]
    fn of_stores_that_mmas_read() {
        let mut supplies = Supplies::default();
        for warp in 0..4 {
            bring(&mut supplies, 0, warp..warp + 1, (128, 32), supply(7, false, 32));
        }
        supplies.read(0, (128 + 16, 16), WHOLE, None);
        assert_eq!(left(&supplies), [""; 0]);
        supplies.read(0, (128, 8), WHOLE, Some(9));
        assert_eq!(left(&supplies), ["no MMA reads columns 8 to 15 of what is stored to there"]);
    }
}
