//! Which columns of its accumulators somebody reads, in a whole launch.

use super::loads::{Beside, Loads};
use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::counted;
use crate::machine::mma::issued::Recent;
use crate::machine::tensor_memory::{COLUMNS, Halves};
use smallvec::SmallVec;

/// Columns of tensor memory, a bit each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Columns([u64; COLUMNS as usize / 64]);

impl Columns {
    fn range(first: u32, end: u32) -> Columns {
        let mut all = Columns::default();
        for (n, word) in (0u32..).zip(&mut all.0) {
            let (from, to) = (first.saturating_sub(n * 64).min(64), end.saturating_sub(n * 64).min(64));
            *word = (from..to).fold(0, |word, bit| word | 1 << bit);
        }
        all
    }

    fn add(&mut self, other: Columns) {
        self.0.iter_mut().zip(other.0).for_each(|(word, more)| *word |= more);
    }

    fn has(&self, column: u32) -> bool {
        self.0[(column / 64) as usize] >> (column % 64) & 1 == 1
    }
}

/// The products that one MMA begins, in the CTAs of pairs that have this parity: which of their columns were read, of any of them.
#[derive(Clone, Debug, Default)]
struct Drain {
    site: u32,
    odd: bool,
    columns: u32,
    /// In the lower and in the upper half of each quarter of the lanes; `true`: there is something of the product.
    halves: [bool; 2],
    read: [Columns; 2],
    /// A statement that reads some of them.
    by: Option<u32>,
    /// So many products there were; and of so many the same columns were read again and again, as many in all as there are.
    ended: u32,
    repeated: u32,
    /// Which those were, and how often each was read.
    again: Option<Again>,
    /// So many were read; and of so many one load was beside where it belongs, always in the same way.
    loaded: u32,
    astray: u32,
    beside: Option<Beside>,
    /// How messages call the place of the first.
    name: String,
}

/// Columns of a product that are read again in place of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Again {
    first: u32,
    end: u32,
    times: u32,
}

/// A maximum, a sum and what is made of both may take three passes over the same columns.
const MORE_THAN_PASSES: u32 = 4;

impl Drain {
    fn are(&self, other: &Drain) -> bool {
        (self.site, self.odd, self.columns) == (other.site, other.odd, other.columns)
    }
}

/// A product that MMAs sum up, or have summed up.
#[derive(Clone, Debug)]
struct Begun {
    cta: usize,
    halves: Halves,
    column: u32,
    columns: u32,
    /// Index into the products.
    of: usize,
    /// The columns that were read, if all who read took the same ones, and by how many loads of a warp.
    same: Option<(u32, u32)>,
    loads: u32,
    each: Loads,
}

impl Begun {
    fn lies_in(&self, cta: usize, halves: Halves, column: u32, columns: u32) -> bool {
        let shares = [false, true].into_iter().any(|upper| self.halves.has(upper) && halves.has(upper));
        self.cta == cta && shares && self.column < column + columns && column < self.column + self.columns
    }

    /// Whether it has the column in the middle of these, and so most of them.
    fn has_most_of(&self, column: u32, columns: u32) -> bool {
        (self.column..self.column + self.columns).contains(&(column + columns / 2))
    }

    /// Whether the same columns were read so often that all could have been: by each of the warps that reach a quarter of the lanes.
    fn again(&self) -> Option<Again> {
        const QUARTERS: u32 = 4;
        let (first, end) = self.same?;
        let times = self.columns / (end - first).max(1);
        let all = times * (end - first) == self.columns && self.loads == times * QUARTERS;
        (all && times > 1).then_some(Again { first, end, times })
    }
}

/// What becomes of products.
#[derive(Debug, Default)]
pub struct Drained {
    /// Those that tensor memory holds.
    sums: Vec<Begun>,
    products: Vec<Drain>,
}

impl Drained {
    /// Columns of a CTA are read.
    pub fn read(&mut self, cta: usize, halves: Halves, (column, columns): (u32, u32), site: u32) {
        for sum in self.sums.iter_mut().filter(|sum| sum.lies_in(cta, halves, column, columns)) {
            let first = column.saturating_sub(sum.column);
            let end = (column + columns - sum.column).min(sum.columns);
            sum.same = if sum.loads == 0 { Some((first, end)) } else { sum.same.filter(|same| *same == (first, end)) };
            sum.loads += 1;
            if sum.has_most_of(column, columns) {
                let from = column as i32 - sum.column as i32;
                sum.each.add(halves, (from, from + columns as i32), site);
            }
            let products = &mut self.products[sum.of];
            for upper in [false, true].into_iter().filter(|&upper| halves.has(upper)) {
                products.read[usize::from(upper)].add(Columns::range(first, end));
            }
            products.by = Some(site);
        }
    }

    /// Whether this product is there to be added to.
    fn holds(&self, new: &Begun) -> bool {
        let place = |sum: &Begun| (sum.cta, sum.halves, sum.column, sum.columns);
        self.sums.iter().any(|sum| place(sum) == place(new))
    }

    /// An MMA begins a product.
    fn begin(&mut self, new: Begun, products: Drain) {
        let over = |sum: &mut Begun| sum.lies_in(new.cta, new.halves, new.column, new.columns);
        let ended: SmallVec<[Begun; 2]> = self.sums.extract_if(.., over).collect();
        ended.into_iter().for_each(|sum| self.end(sum));
        let of = self.add(products);
        self.sums.push(Begun { of, ..new });
    }

    /// A product is no more.
    fn end(&mut self, sum: Begun) {
        let again = sum.again();
        let products = &mut self.products[sum.of];
        products.ended += 1;
        products.repeated += u32::from(again.is_some() && products.again.is_none_or(|known| again == Some(known)));
        products.again = products.again.or(again);
        products.loaded += u32::from(!sum.each.is_empty());
        let beside = sum.each.beside(sum.columns);
        products.astray += u32::from(beside.is_some() && products.beside.is_none_or(|known| beside == Some(known)));
        products.beside = products.beside.or(beside);
    }

    fn add(&mut self, more: Drain) -> usize {
        if let Some(at) = self.products.iter().position(|known| known.are(&more)) {
            let known = &mut self.products[at];
            known.read.iter_mut().zip(more.read).for_each(|(read, more)| read.add(more));
            known.by = known.by.or(more.by);
            known.ended += more.ended;
            let alike = known.again.is_none() || more.again.is_none() || known.again == more.again;
            known.repeated += if alike { more.repeated } else { 0 };
            known.again = known.again.or(more.again);
            known.loaded += more.loaded;
            let alike = known.beside.is_none() || more.beside.is_none() || known.beside == more.beside;
            known.astray += if alike { more.astray } else { 0 };
            known.beside = known.beside.or(more.beside);
            return at;
        }
        self.products.push(more);
        self.products.len() - 1
    }

    /// Takes over what a cluster has seen.
    pub fn join(&mut self, mut other: Drained) {
        std::mem::take(&mut other.sums).into_iter().for_each(|sum| other.end(sum));
        other.products.into_iter().for_each(|more| {
            self.add(more);
        });
    }

    /// The launch is complete: loads of products that are beside where they belong.
    pub fn loads_beside(&self, label: impl Fn(u32, String) -> Label) -> Vec<Diagnostic> {
        self.products.iter().filter_map(|products| products.beside(&label)).collect()
    }

    /// The launch is complete, and nothing else is wrong: columns of products that nobody has read.
    pub fn judge(&self, label: impl Fn(u32, String) -> Label) -> Vec<Diagnostic> {
        self.products.iter().filter_map(|products| products.said(&label)).collect()
    }
}

const RULE: &str = "An MMA writes N columns of FP32 for its D (PTX ISA 9.7.16.10.5, data path layouts), and tcgen05.ld brings the columns from its address on. What it \
                    does not bring reaches no result.";

impl Drain {
    /// A load that brings others than those which all other loads leave for it.
    fn beside(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let Beside { site, at, room, upper } = self.beside.filter(|_| self.astray == self.loaded)?;
        let columns = |(first, end): (i32, i32)| match end - first {
            1 => format!("column {first}"),
            _ => format!("columns {first} to {}", end - 1),
        };
        let lanes = match upper {
            None => "",
            Some(false) => " in lanes 0 to 15 of each 32",
            Some(true) => " in lanes 16 to 31 of each 32",
        };
        let (off, which) = (at.0 - room.0, if at.0 > room.0 { "further on" } else { "before that" });
        let (is, belongs) = (columns(at), columns(room));
        Some(Diagnostic {
            code: "product-never-read",
            severity: Severity::Finding,
            title: format!(
                "a tcgen05.ld reads {is} of the product that an MMA leaves at {}{lanes}, where the other loads leave {belongs} to it",
                self.name
            ),
            labels: vec![
                label(site, format!("this load begins {} {which}", counted(u64::from(off.unsigned_abs()), "column"))),
                label(self.site, format!("begun here, of {}", counted(self.columns, "column"))),
            ],
            rule: RULE.into(),
            help: format!("Let this load begin at column {} of the product: all other columns are read once.", room.0),
            count: 1,
            confirmed: None,
        })
    }

    fn said(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let lacks = |column: u32| [0, 1].map(|half| self.halves[half] && !self.read[half].has(column));
        let never = (0..self.columns).filter(|&column| lacks(column) != [false; 2]);
        let (first, count) = (never.clone().next()?, never.clone().count() as u32);
        // Of which lanes, if both have columns and one of them lacks none.
        let halves = never.clone().map(lacks).fold([false; 2], |all, of| [all[0] | of[0], all[1] | of[1]]);
        let lanes = match (self.halves, halves) {
            ([true, true], [true, false]) => " in lanes 0 to 15 of each 32",
            ([true, true], [false, true]) => " in lanes 16 to 31 of each 32",
            _ => "",
        };
        let last = (first..self.columns).rfind(|&column| lacks(column) != [false; 2]).unwrap_or(first);
        let product = format!("the product that an MMA leaves at {}", self.name);
        let title = match count {
            1 if self.columns > 1 => format!("column {first} of {product} is never read{lanes}"),
            _ if count == self.columns => format!("{product} is never read{lanes}"),
            _ if last - first + 1 == count => format!("columns {first} to {last} of {product} are never read{lanes}"),
            _ => format!("{count} columns of {product} are never read{lanes}: the first is column {first}"),
        };
        let mut labels = vec![label(self.site, format!("begun here, of {}", counted(self.columns, "column")))];
        let again = self.again.filter(|_| self.repeated == self.ended);
        let by = match again {
            Some(Again { first, end, times }) => {
                format!(
                    "read here: columns {first} to {}, {times} times by each warp, here and perhaps by other statements",
                    end - 1
                )
            }
            None => "other parts of it are read here".into(),
        };
        labels.extend(self.by.map(|by_site| label(by_site, by)));
        let (title, help) = match again {
            Some(Again { first, end, times }) => (
                format!("{title}, and columns {first} to {} are read {times} times", end - 1),
                format!(
                    "Let each tcgen05.ld begin behind the columns of the one before: its address goes on by {} columns each time.",
                    end - first
                ),
            ),
            None => (
                title,
                "Let the loads of the epilogue go over all columns: the address of each, and how many there are, against N of the instruction descriptor."
                    .into(),
            ),
        };
        let meant = again.is_none_or(|again| again.times < MORE_THAN_PASSES);
        if !meant {
            // The load is the place to mend.
            labels.reverse();
        }
        Some(Diagnostic {
            code: "product-never-read",
            severity: if meant { Severity::Note } else { Severity::Finding },
            title,
            labels,
            rule: RULE.into(),
            help,
            count: 1,
            confirmed: None,
        })
    }
}

impl Cluster<'_> {
    /// A statement reads these columns of a CTA.
    pub fn accumulators_read(&mut self, cta: usize, halves: Halves, (column, columns): (u32, u32), site: u32) {
        self.issued.accumulators_read(cta, halves, column, columns);
        self.drained.read(cta, halves, (column, columns), site);
    }

    /// An MMA is issued that adds to a product, or begins one.
    pub fn note_product(&mut self, mma: &Recent) {
        let (first, count) = mma.ctas;
        for cta in first..first + count {
            let new = Begun {
                cta,
                halves: mma.layout.halves(),
                column: mma.d.0,
                columns: mma.columns,
                of: 0,
                same: None,
                loads: 0,
                each: Loads::default(),
            };
            let site = mma.stamp.site;
            if !self.drained.holds(&new) || !mma.adds {
                let (odd, columns) = (cta % 2 == 1, mma.columns);
                let name = self.tensor_name(new.column);
                let halves = [false, true].map(|upper| new.halves.has(upper));
                let products = Drain { site, odd, columns, halves, name, ..Drain::default() };
                self.drained.begin(new, products);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_that_any_of_the_products_was_read_of_count() {
        let new = |column| Begun {
            cta: 0,
            halves: Halves::Both,
            column,
            columns: 128,
            of: 0,
            same: None,
            loads: 0,
            each: Loads::default(),
        };
        let products =
            || Drain { site: 7, odd: false, columns: 128, halves: [true; 2], name: "acc".into(), ..Drain::default() };
        let mut drained = Drained::default();
        let left = |drained: &Drained| {
            let titles = drained.judge(|_, text| Label::new(Default::default(), text)).into_iter().map(|d| d.title);
            titles.collect::<Vec<_>>()
        };
        drained.begin(new(0), products());
        assert_eq!(left(&drained), ["the product that an MMA leaves at acc is never read"]);
        drained.read(0, Halves::Lower, (0, 128), 8);
        assert_eq!(
            left(&drained),
            ["the product that an MMA leaves at acc is never read in lanes 16 to 31 of each 32"]
        );
        drained.read(0, Halves::Upper, (0, 64), 8);
        drained.begin(new(256), products());
        drained.read(0, Halves::Both, (256 + 96, 64), 8);
        drained.read(1, Halves::Both, (256 + 64, 32), 8);
        assert_eq!(
            left(&drained),
            ["columns 64 to 95 of the product that an MMA leaves at acc are never read in lanes 16 to 31 of each 32"]
        );
        let mut all = Drained::default();
        all.join(drained);
        let mut other = Drained::default();
        other.begin(new(0), products());
        other.read(0, Halves::Both, (64, 32), 8);
        all.join(other);
        assert_eq!(left(&all), [""; 0]);
    }
}
