//! Columns of a product that change places in a register on their way to memory, or of which one takes the place of another: the first source of a conversion of two
//! is the upper half, and who packs by shifts may shift the wrong one, or lose one.
//!
//! It is known from the kernel alone, of stores of what one `tcgen05.ld` brings: each lane has a row there, and the registers are its columns.

use super::made_of::{From, MadeOf, is_lost};
use crate::diagnostic::{Diagnostic, Label, Meaning, Severity};
use crate::machine::warp::registers::Registers;
use crate::program::Kernel;
use crate::program::op::{Op, Reg};
use rustc_hash::FxHashSet;

/// What is wrong with a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wrong {
    /// Columns are permuted as a layout may permute them.
    Permuted,
    /// Most lie as they should, and a few change places: no layout does that.
    Exchanged,
    /// In a place of one column is another one, or a constant, and that column reaches no memory.
    Replaced,
}

/// A store with its elements, of so many bytes each, and how sure it is that it is not meant.
struct Judged {
    store: usize,
    load: usize,
    wrong: Wrong,
    severity: Severity,
    elements: Vec<From>,
    /// The first place that another column belongs to, and that column.
    place: usize,
    belongs: u16,
}

/// The elements of a store, if each is made of one column at most.
fn elements(bytes: &[From], each: usize) -> Option<Vec<From>> {
    let groups = bytes.chunks_exact(each);
    let whole = groups.clone().all(|group| group.iter().all(|from| *from == group[0] && *from != From::Several));
    (whole && groups.remainder().is_empty()).then(|| groups.map(|group| group[0]).collect())
}

/// The column in which a row would begin for most elements to lie where they belong, and how many do.
fn beginning(elements: &[From]) -> Option<(i32, usize)> {
    let begin = |(n, from): (usize, &From)| match from {
        From::Register(column) => Some(i32::from(*column) - n as i32),
        _ => None,
    };
    let all = || elements.iter().enumerate().filter_map(begin);
    let count = |first: i32| all().filter(|other| *other == first).count();
    // Of several that are as good, the first.
    all().map(|first| (first, count(first))).reduce(|best, next| if next.1 > best.1 { next } else { best })
}

/// Whether elements that are not the columns from a first one on may be meant: half of them, constants at one end of a row, or the same of each group of columns, as
/// where rows are padded: at one end not where D has all columns.
fn is_regular(elements: &[From], first: i32, fits: bool) -> bool {
    let off = |n: usize| elements[n] != From::Register((first + n as i32) as u16);
    let (all, count) = (elements.len(), (0..elements.len()).filter(|&n| off(n)).count());
    if 2 * count >= all {
        return true;
    }
    let constants = (0..all).filter(|&n| off(n)).all(|n| elements[n] == From::Nothing);
    let at_one_end = (0..count).all(off) || (all - count..all).all(off);
    let periodic = (1..all)
        .filter(|period| all.is_multiple_of(*period))
        .any(|period| (period..all).all(|n| off(n) == off(n - period)));
    constants && (periodic || !fits && at_one_end)
}

/// What is wrong with elements, of a load of so many columns; `lost`: a column reaches no memory.
fn wrong(elements: &[From], columns: usize, lost: impl Fn(u16) -> bool) -> Option<(Wrong, usize, u16)> {
    let (first, straight) = beginning(elements)?;
    let belongs = |n: usize| u16::try_from(first + n as i32).ok().filter(|&column| usize::from(column) < columns);
    let off: Vec<usize> =
        (0..elements.len()).filter(|&n| belongs(n).map(From::Register) != Some(elements[n])).collect();
    let &place = off.first()?;
    if 2 * straight >= elements.len() && off.iter().all(|&n| belongs(n).is_some_and(&lost)) {
        return Some((Wrong::Replaced, place, belongs(place)?));
    }
    let mut sorted: Vec<u16> = elements
        .iter()
        .map_while(|from| if let From::Register(column) = from { Some(*column) } else { None })
        .collect();
    let rises = sorted.is_sorted();
    sorted.sort_unstable();
    let together = sorted.windows(2).all(|two| two[1] == two[0] + 1);
    if sorted.len() < elements.len() || rises || !together {
        return None;
    }
    if 2 * straight > elements.len() {
        return Some((Wrong::Exchanged, place, belongs(place)?));
    }
    let place = elements.iter().zip(&sorted).position(|(from, column)| *from != From::Register(*column))?;
    Some((Wrong::Permuted, place, sorted[place]))
}

impl Judged {
    /// `fits`: D has a column for each row of B's tensor.
    fn of(kernel: &Kernel, store: usize, fits: bool, registers: &mut Registers) -> Option<Judged> {
        let made = MadeOf::of(kernel, store, registers)?;
        let Op::TensorLoad { d, .. } = &kernel.code[made.load].op else { return None };
        let lost = |column: u16| is_lost(kernel, made.load, Reg::B32(d[usize::from(column)]));
        // Two halves of one column look like one element of twice the size.
        let all = [4, 2, 1].into_iter().filter_map(|each| elements(&made.bytes, each));
        all.into_iter().enumerate().find_map(|(n, elements)| {
            let (wrong, place, belongs) = wrong(&elements, d.len(), lost)?;
            if n > 0 && wrong != Wrong::Replaced {
                return None;
            }
            let severity = match wrong {
                Wrong::Permuted => Severity::Note,
                Wrong::Exchanged => Severity::Finding,
                Wrong::Replaced if is_regular(&elements, i32::from(belongs) - place as i32, fits) => Severity::Note,
                Wrong::Replaced => Severity::Finding,
            };
            Some(Judged { store, load: made.load, wrong, severity, elements, place, belongs })
        })
    }

    fn said(&self, kernel: &Kernel, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let name = |from: &From| match from {
            From::Register(column) => column.to_string(),
            _ => "–".into(),
        };
        let names: Vec<String> = self.elements.iter().map(name).collect();
        let (names, belongs) = (names.join(", "), self.belongs);
        let (code, title, rule) = match self.wrong {
            Wrong::Replaced => {
                let what = match self.elements[self.place] {
                    From::Register(column) => format!("column {column}"),
                    _ => "a constant".into(),
                };
                (
                    "product-never-read",
                    format!(
                        "a store has {what} in the place of column {belongs} of those that a tcgen05.ld brings, which reaches no memory: {names}"
                    ),
                    "tcgen05.ld brings the columns of a row in the order of its registers (PTX ISA 9.7.16.8). Here the others are stored one behind the other, and this one \
                     is computed in vain.",
                )
            }
            _ => (
                "box-mismatch",
                format!("a store leaves the columns that a tcgen05.ld brings in this order: {names}"),
                match self.severity {
                    Severity::Note => {
                        "tcgen05.ld brings the columns of a row in the order of its registers (PTX ISA 9.7.16.8). Where the columns of D are to lie in another order, this is \
                         as it should be."
                    }
                    _ => {
                        "tcgen05.ld brings the columns of a row in the order of its registers (PTX ISA 9.7.16.8). Layouts permute columns by bits of their numbers; that most \
                         stay where they are, and a few change places, is none."
                    }
                },
            ),
        };
        let sites = [self.store, self.load].map(|at| kernel.code[at].site);
        Diagnostic {
            code,
            severity: self.severity,
            title,
            labels: vec![
                label(sites[0], format!("column {belongs} belongs in place {} here", self.place)).that_means(Meaning::BelongsElsewhere),
                label(sites[1], "brought here".into()),
            ],
            rule: rule.into(),
            help: "Follow both registers from the load to the store. Of a conversion of two, as cvt.rn.f16x2.f32 d, a, b, a is the upper half and b the lower one; who packs by \
                   shifts shifts the later column, and puts the two together."
                .into(),
            count: 1,
            confirmed: None,
        }
    }
}

/// What stores of a kernel that were executed leave otherwise than in the order of their columns: of the first that is worst, and how many there are.
pub fn judge(
    kernel: &Kernel,
    executed: &FxHashSet<u32>,
    fits: bool,
    label: impl Fn(u32, String) -> Label,
) -> Option<Diagnostic> {
    let stores = kernel
        .code
        .iter()
        .enumerate()
        .filter(|(_, inst)| matches!(inst.op, Op::Store(_)) && executed.contains(&inst.site));
    let mut registers = (!executed.is_empty()).then(|| Registers::new(kernel, 0, None))?;
    let all: Vec<Judged> = stores.filter_map(|(store, _)| Judged::of(kernel, store, fits, &mut registers)).collect();
    let rank = |judged: &Judged| (judged.severity, judged.wrong);
    let worst = all.iter().reduce(|worst, next| if rank(next) > rank(worst) { next } else { worst })?;
    let count = all.iter().filter(|judged| rank(judged) == rank(worst)).count() as u64;
    Some(Diagnostic { count, ..worst.said(kernel, label) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(columns: &[i32]) -> Vec<From> {
        columns.iter().map(|&column| u16::try_from(column).map_or(From::Nothing, From::Register)).collect()
    }

    fn what(columns: &[i32], lost: &[u16]) -> Option<(Wrong, usize, u16)> {
        wrong(&row(columns), 32, |column| lost.contains(&column))
    }

    #[test]
    fn a_row_that_goes_on_is_right() {
        assert_eq!(what(&[0, 1, 2, 3, 4, 5, 6, 7], &[]), None);
        assert_eq!(what(&[3, 4, 5, 6], &[]), None);
        // Others are stored elsewhere, or nobody wants them.
        assert_eq!(what(&[0, 2, 4, 6], &[1, 3, 5, 7]), None);
        assert_eq!(what(&[0, 1, 2, 4, 5, 6, 8, 9], &[]), None);
        // The same for several columns, of which nothing is lost.
        assert_eq!(what(&[0, 0, 0, 0], &[]), None);
    }

    #[test]
    fn columns_that_change_places() {
        assert_eq!(what(&[0, 1, 3, 2, 4, 5, 6, 7], &[]), Some((Wrong::Exchanged, 2, 2)));
        assert_eq!(what(&[8, 13, 10, 11, 12, 9, 14, 15], &[]), Some((Wrong::Exchanged, 1, 9)));
        assert_eq!(what(&[1, 0, 3, 2, 5, 4, 7, 6], &[]), Some((Wrong::Permuted, 0, 0)));
        assert_eq!(what(&[0, 2, 1, 3], &[]), Some((Wrong::Permuted, 1, 1)), "bits change places");
        assert_eq!(what(&[7, 6, 5, 4, 3, 2, 1, 0], &[]), Some((Wrong::Permuted, 0, 0)));
    }

    #[test]
    fn columns_that_another_one_takes_the_place_of() {
        assert_eq!(what(&[0, 1, 2, 2, 4, 5, 6, 7], &[3]), Some((Wrong::Replaced, 3, 3)));
        assert_eq!(what(&[0, 1, 2, 2, 4, 5, 6, 7], &[]), None, "another store has it");
        assert_eq!(what(&[0, 1, -1, 3, 4, 5, 6, 7], &[2]), Some((Wrong::Replaced, 2, 2)));
        assert_eq!(what(&[0, -1, 2, -1], &[1, 3]), Some((Wrong::Replaced, 1, 1)));
    }
}
