//! Scale factors of block-scaled MMAs, read out of tensor memory (PTX ISA 9.7.16.10.7).
//!
//! The factors of row (or column) r lie in lane r % 32 of each quarter, column r / 32 from the first on, in the bytes that the
//! instruction descriptor selects. All four quarters hold the same, unless they compute different columns of D: see [`Part`].

use super::supplies::WHOLE;
use super::{Halves, InstructionDescriptor, Layout, TensorMemory};
use crate::diagnostic::Severity;
use crate::machine::arithmetic::operand::Operand;
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::spans;
use crate::machine::mma::Operands;
use crate::machine::mma::instruction_descriptor::Scaling;
use crate::machine::mma::operands::factor_columns;
use crate::machine::state::Lacks;
use crate::order::Stamp;

/// Those of one CTA: of each row of its A, and of each column of B.
#[derive(Debug, Default)]
pub struct ScaleFactors {
    pub a: Vec<[u8; 4]>,
    pub b: Vec<[u8; 4]>,
}

impl ScaleFactors {
    pub fn clear(&mut self) {
        self.a.clear();
        self.b.clear();
    }
}

/// The factors of A, or of B: where they lie.
#[derive(Clone, Copy)]
struct Part {
    column: u32,
    rows: u32,
    /// Of B, where the lower two quarters of the lanes compute the left half of D and the upper two the right one (M = 128 of a pair): each
    /// two need the factors of their own columns, counted from 0 (assumption `scale-factors-by-halves`).
    split: bool,
}

impl Part {
    fn of(i: &InstructionDescriptor, ctas: usize, [a, b]: [u32; 2]) -> [Part; 2] {
        let split = i.layout(ctas, 0) == Layout::Halves;
        [Part { column: a, rows: i.m / ctas as u32, split: false }, Part { column: b, rows: i.n, split }]
    }

    /// Columns of tensor memory that they take.
    fn columns(self) -> u32 {
        factor_columns(if self.split { self.rows / 2 } else { self.rows })
    }

    /// Whether factors of A and of B are the same bytes, in some of their columns. Where both begin at the same column, it is meant.
    fn meets(self, b: Part, scaling: &Scaling) -> bool {
        let [of_a, of_b] = scaling.first;
        let bytes = of_a.abs_diff(of_b) < scaling.factors;
        let (end, end_of_b) = (self.column + self.columns(), b.column + b.columns());
        bytes && self.column != b.column && self.column < end_of_b && b.column < end
    }

    /// The quarters that need the factors of a row.
    fn quarters(self, row: u32) -> std::ops::Range<u32> {
        match (self.split, row < self.rows / 2) {
            (false, _) => 0..4,
            (true, true) => 0..2,
            (true, false) => 2..4,
        }
    }

    /// Lane of a quarter and column of tensor memory.
    fn place(self, row: u32, quarter: u32) -> (u32, u32) {
        let row = if self.split && row >= self.rows / 2 { row - self.rows / 2 } else { row };
        (32 * quarter + row % 32, self.column + row / 32)
    }
}

/// The factors of a row: its bytes in a quarter of the lanes, and whether they hold a defined value.
fn factors(tensor: &TensorMemory, place: (u32, u32), scaling: &Scaling, first: u32) -> ([u8; 4], bool) {
    let (cell, defined) = tensor.get(place.0, place.1);
    let mut bytes = [0; 4];
    let wanted = cell.to_le_bytes().into_iter().skip(first as usize).take(scaling.factors as usize);
    bytes.iter_mut().zip(wanted).for_each(|(to, from)| *to = from);
    (bytes, defined)
}

/// Appends the factors of all rows; the first row of which the quarters do not hold the same, and whether each is defined.
fn read(
    tensor: &TensorMemory,
    part: Part,
    scaling: &Scaling,
    first: u32,
    to: &mut Vec<[u8; 4]>,
) -> (Option<u32>, Vec<bool>) {
    let (mut apart, mut defined) = (None, Vec::with_capacity(part.rows as usize));
    for row in 0..part.rows {
        let mut copies = part.quarters(row).map(|quarter| factors(tensor, part.place(row, quarter), scaling, first));
        let Some((bytes, mut whole)) = copies.next() else { continue };
        let mut same = true;
        for copy in copies {
            whole &= copy.1;
            same &= copy.0 == bytes;
        }
        if apart.is_none() && whole && !same {
            apart = Some(row);
        }
        to.push(bytes);
        defined.push(whole);
    }
    (apart, defined)
}

/// Rows whose factors have no defined value have none themselves.
fn undefine(operand: &mut Operand, rows: &[bool]) {
    if rows.iter().all(|&defined| defined) {
        return;
    }
    operand.defined.resize(rows.len(), true);
    operand.defined.iter_mut().zip(rows).for_each(|(row, &defined)| *row &= defined);
}

impl Cluster<'_> {
    /// Checks an MMA's reading of its scale factors against what others do.
    pub fn touch_factors(
        &mut self,
        w: usize,
        group: &[usize],
        i: &InstructionDescriptor,
        columns: Option<[u32; 2]>,
        stamp: Stamp,
    ) {
        let Some(columns) = columns else { return };
        for &c in group {
            for (n, part) in Part::of(i, group.len(), columns).into_iter().enumerate() {
                self.touch_tensor(w, c, (part.column, part.columns()), Halves::Both, stamp, false);
                let bytes = i.scaling.map_or(WHOLE, |of| ((1 << of.factors) - 1) << of.first[n] & WHOLE);
                self.supplies.read(c, (part.column, part.columns()), bytes, Some(stamp.site));
                if let Some(column) = self.supplies.copied_from(c, part.column) {
                    self.uses.take(c, column, stamp.site);
                }
            }
        }
    }

    /// The tensor core reads the scale factors of an MMA.
    pub fn read_factors(&mut self, n: usize, operands: &mut Operands) {
        let m = &self.mmas[n];
        let (Some(columns), Some(scaling)) = (m.factors, m.descriptor.scaling) else { return };
        let (i, group, blank) = (m.descriptor, m.group.clone(), self.blank.is_some());
        let [a, b] = Part::of(&i, group.len(), columns);
        let mut apart = None;
        let mut columns = vec![true; i.n as usize];
        for (place, &c) in group.iter().enumerate() {
            let tensor = &self.ctas[c].tensor;
            let to = &mut operands.factors[place];
            to.clear();
            let (first, defined) = read(tensor, a, &scaling, scaling.first[0], &mut to.a);
            undefine(&mut operands.a[place], &defined);
            apart = apart.or_else(|| first.map(|row| (c, "A", "row", a, row)));
            let (first, defined) = read(tensor, b, &scaling, scaling.first[1], &mut to.b);
            columns.iter_mut().zip(&defined).for_each(|(all, &defined)| *all &= defined);
            apart = apart.or_else(|| first.map(|row| (c, "B", "column", b, row)));
        }
        undefine(&mut operands.b, &columns);
        let one = |f: &ScaleFactors| f.a.iter().chain(&f.b).all(|factors| f.a.first() == Some(factors));
        if self.options.judges() && a.meets(b, &scaling) && (blank || !operands.factors[..group.len()].iter().all(one))
        {
            // Each MMA of a loop over K does it: the first is to be told of.
            if self.supplies.overlap_is_new([a.column, b.column]) {
                self.factors_overlap(n, [a, b]);
            }
        }
        let undefined = |operand: &Operand| operand.defined.iter().any(|&defined| !defined);
        if self.mmas[n].origin == 0 && (undefined(&operands.b) || operands.a.iter().any(undefined)) {
            let text = self.missing_factors(&group, [a, b]);
            let origin = self.origin(self.mmas[n].site, text);
            self.origins[origin as usize].lacks = Lacks::Factors;
            self.mmas[n].origin = origin;
        }
        if let Some(apart) = apart.filter(|_| !blank && self.options.judges()) {
            self.factors_apart(n, apart);
        }
    }

    /// Why a block-scaled MMA has an operand that is not defined: what its scale factors, in so many columns for so many rows, lack.
    fn missing_factors(&self, group: &[usize], parts: [Part; 2]) -> String {
        for (which, part) in ["A", "B"].into_iter().zip(parts) {
            for &c in group {
                let tensor = &self.ctas[c].tensor;
                // What lacks its value: the row, and its place.
                let lacking: Vec<(u32, (u32, u32))> = (0..part.rows)
                    .flat_map(|row| part.quarters(row).map(move |quarter| (row, part.place(row, quarter))))
                    .filter(|&(_, (lane, column))| !tensor.get(lane, column).1)
                    .collect();
                let held = [0, 1, 2, 3].map(|quarter| !lacking.iter().any(|(_, (lane, _))| lane / 32 == quarter));
                if held == [true; 4] {
                    continue;
                }
                let name = self.tensor_name(part.column);
                let begin = format!("this MMA reads scale factors of {which} in {name}");
                if held.contains(&true) {
                    let quarters = |wanted: bool| {
                        let lanes =
                            (0..4).filter(|&n| held[n] == wanted).map(|n| format!("{} to {}", 32 * n, 32 * n + 31));
                        lanes.collect::<Vec<_>>().join(", ")
                    };
                    let copy =
                        if part.split { "tcgen05.cp.64x128b.warpx2::01_23" } else { "tcgen05.cp.32x128b.warpx4" };
                    return format!(
                        "{begin}: lanes {} hold them, lanes {} do not; each quarter of 32 lanes needs its copy, as {copy} writes",
                        quarters(true),
                        quarters(false)
                    );
                }
                let (first, count) = (part.column, part.columns());
                if lacking.len() as u32 == (0..part.rows).map(|row| part.quarters(row).len() as u32).sum::<u32>() {
                    let columns = match count {
                        1 => format!("column {first}"),
                        n => format!("columns {first} to {}", first + n - 1),
                    };
                    return format!("{begin}, which nothing has written ({columns} of all quarters)");
                }
                // Column by column, the lanes that lack theirs.
                let missing = (first..first + count).filter_map(|column| {
                    let mut lanes: Vec<u32> =
                        lacking.iter().filter(|(_, at)| at.1 == column).map(|(_, at)| at.0).collect();
                    lanes.sort_unstable();
                    (!lanes.is_empty()).then(|| format!("column {column} in lanes {}", spans(lanes.into_iter())))
                });
                return format!("{begin}, where nothing has written {}", missing.collect::<Vec<_>>().join(", "));
            }
        }
        "this MMA reads an operand that is not defined".into()
    }

    /// Some rows of A have the factors of columns of B, and the factors are not all the same.
    fn factors_overlap(&mut self, n: usize, [a, b]: [Part; 2]) {
        let (site, name) = (self.mmas[n].site, self.tensor_name(a.column.max(b.column)));
        let columns = |part: Part| match part.columns() {
            1 => format!("column {}", part.column),
            n => format!("columns {} to {}", part.column, part.column + n - 1),
        };
        let mut diagnostic = self.problem(
            "operand-overlap",
            site,
            format!("scale factors of A and of B lie in the same bytes of {name}"),
            "Row r of A and column r of B have their scale factors in column r / 32 from the first on, of A and of B (PTX ISA 9.7.16.10.7): 128 rows \
             take 4 columns of tensor memory.",
            "Let the factors of one begin behind the last column of the other's, in the MMA and in what writes them.".into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!(
            "this MMA reads {} for the {} rows of A, and {} for the {} columns of B",
            columns(a),
            a.rows,
            columns(b),
            b.rows
        );
        self.findings.add(diagnostic);
    }

    /// The quarters of the lanes do not hold the same scale factors.
    fn factors_apart(&mut self, n: usize, (c, which, what, part, row): (usize, &str, &str, Part, u32)) {
        let site = self.mmas[n].site;
        let name = self.tensor_name(part.column);
        let cell = |quarter: u32| {
            let (lane, column) = part.place(row, quarter);
            match self.ctas[c].tensor.get(lane, column) {
                (value, true) => format!("{value:#010x}"),
                _ => "nothing defined".into(),
            }
        };
        let cells = part.quarters(row).map(cell).collect::<Vec<_>>().join(", ");
        let (lane, column) = part.place(row, part.quarters(row).start);
        let (whose, rule, help, of_each) = if part.split {
            (
                "both quarters of the lanes that compute its columns",
                "With M = 128 for two CTAs, lanes 0 to 63 compute the left half of the columns and lanes 64 to 127 the right half (PTX ISA \
                 9.7.16.10.5): each quarter of 32 lanes needs the scale factors of its own half of B, column r of the half in lane r mod 32.",
                "Copy the factors of both halves with tcgen05.cp.64x128b.warpx2::01_23: the first 32 rows go to the lower two quarters, the \
                 next to the upper two.",
                if row < part.rows / 2 { "of the lower two quarters" } else { "of the upper two quarters" },
            )
        } else {
            (
                "all four quarters of the lanes",
                "Scale factors are needed in each quarter of 32 lanes (PTX ISA 9.7.16.10.7): row r of A, or column r of B, in lane r mod 32 \
                 of all four.",
                "Copy them with tcgen05.cp.32x128b.warpx4, which writes all four quarters, or let each warp store the same to its own.",
                "of each quarter",
            )
        };
        let mut diagnostic = self.problem(
            "scale-factors-apart",
            site,
            format!("the scale factors of {which} in {name} are not the same in {whose}"),
            rule,
            help.into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text =
            format!("{what} {row} has its factors in lane {} {of_each}, column {column}: {cells}", lane % 32);
        self.findings.add(diagnostic);
    }
}
