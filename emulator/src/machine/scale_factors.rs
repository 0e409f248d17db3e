//! Scale factors of block-scaled MMAs, read out of tensor memory (PTX ISA 9.7.16.10.7).
//!
//! The factors of row (or column) r lie in lane r % 32 of each quarter, column r / 32 from the first on, in the bytes that the
//! instruction descriptor selects. All four quarters hold the same.

use super::cluster::Cluster;
use super::instruction_descriptor::Scaling;
use super::mma::Operands;
use super::mma_operands::factor_columns;
use super::operand::Operand;
use super::tensor::{Halves, InstructionDescriptor, TensorMemory};
use crate::diagnostic::Severity;
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

/// The factors of a row: its bytes in a quarter of the lanes, and whether they hold a defined value.
fn factors(
    tensor: &TensorMemory,
    column: u32,
    row: u32,
    quarter: u32,
    scaling: &Scaling,
    first: u32,
) -> ([u8; 4], bool) {
    let (cell, defined) = tensor.get(32 * quarter + row % 32, column + row / 32);
    let mut bytes = [0; 4];
    let wanted = cell.to_le_bytes().into_iter().skip(first as usize).take(scaling.factors as usize);
    bytes.iter_mut().zip(wanted).for_each(|(to, from)| *to = from);
    (bytes, defined)
}

/// Appends the factors of so many rows; the first row of which the quarters do not hold the same, and whether each is defined.
fn read(
    tensor: &TensorMemory,
    column: u32,
    rows: u32,
    scaling: &Scaling,
    first: u32,
    to: &mut Vec<[u8; 4]>,
) -> (Option<u32>, Vec<bool>) {
    let (mut apart, mut defined) = (None, Vec::with_capacity(rows as usize));
    for row in 0..rows {
        let copies: [_; 4] =
            std::array::from_fn(|quarter| factors(tensor, column, row, quarter as u32, scaling, first));
        let whole = copies.iter().all(|copy| copy.1);
        if apart.is_none() && whole && copies.iter().any(|copy| copy.0 != copies[0].0) {
            apart = Some(row);
        }
        to.push(copies[0].0);
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

/// Ascending numbers as spans: `0 to 31, 40`.
fn spans(numbers: impl Iterator<Item = u32>) -> String {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => all.push((n, n)),
        }
    }
    let one =
        |&(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first} to {last}") };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// How the reason begins why a product with scale factors has no value: advice on it looks for these words.
pub const READS_FACTORS: &str = "this MMA reads scale factors";

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
        let Some([a, b]) = columns else { return };
        for &c in group {
            self.touch_tensor(w, c, (a, factor_columns(i.m / group.len() as u32)), Halves::Both, stamp, false);
            self.touch_tensor(w, c, (b, factor_columns(i.n)), Halves::Both, stamp, false);
        }
    }

    /// The tensor core reads the scale factors of an MMA.
    pub fn read_factors(&mut self, n: usize, operands: &mut Operands) {
        let m = &self.mmas[n];
        let (Some([a, b]), Some(scaling)) = (m.factors, m.descriptor.scaling) else { return };
        let (i, group, blank) = (m.descriptor, m.group.clone(), self.blank.is_some());
        let rows = i.m / group.len() as u32;
        let mut apart = None;
        let mut columns = vec![true; i.n as usize];
        for (place, &c) in group.iter().enumerate() {
            let tensor = &self.ctas[c].tensor;
            let to = &mut operands.factors[place];
            to.clear();
            let (first, defined) = read(tensor, a, rows, &scaling, scaling.first[0], &mut to.a);
            undefine(&mut operands.a[place], &defined);
            apart = apart.or_else(|| first.map(|row| (c, "A", "row", a, row)));
            let (first, defined) = read(tensor, b, i.n, &scaling, scaling.first[1], &mut to.b);
            columns.iter_mut().zip(&defined).for_each(|(all, &defined)| *all &= defined);
            apart = apart.or_else(|| first.map(|row| (c, "B", "column", b, row)));
        }
        undefine(&mut operands.b, &columns);
        let undefined = |operand: &Operand| operand.defined.iter().any(|&defined| !defined);
        if self.mmas[n].origin == 0 && (undefined(&operands.b) || operands.a.iter().any(undefined)) {
            let text = self.missing_factors(&group, [(a, rows), (b, i.n)]);
            self.mmas[n].origin = self.origin(self.mmas[n].site, text);
        }
        if let Some(apart) = apart.filter(|_| !blank && !self.options.timing_only) {
            self.factors_apart(n, apart);
        }
    }

    /// Why a block-scaled MMA has an operand that is not defined: what its scale factors, in so many columns for so many rows, lack.
    fn missing_factors(&self, group: &[usize], parts: [(u32, u32); 2]) -> String {
        for (which, (column, rows)) in ["A", "B"].into_iter().zip(parts) {
            for &c in group {
                let tensor = &self.ctas[c].tensor;
                let lacks = |lane: u32, row: u32| !tensor.get(lane, column + row / 32).1;
                let reads = |lane: u32| (0..rows).filter(move |row| row % 32 == lane % 32);
                let held = [0, 1, 2, 3].map(|quarter| !(0..rows).any(|row| lacks(32 * quarter + row % 32, row)));
                if held == [true; 4] {
                    continue;
                }
                let name = self.tensor_name(column);
                let begin = format!("{READS_FACTORS} of {which} in {name}");
                if held.contains(&true) {
                    let quarters = |wanted: bool| {
                        let lanes =
                            (0..4).filter(|&n| held[n] == wanted).map(|n| format!("{} to {}", 32 * n, 32 * n + 31));
                        lanes.collect::<Vec<_>>().join(", ")
                    };
                    return format!(
                        "{begin}: lanes {} hold them, lanes {} do not; each quarter of 32 lanes needs its copy, as tcgen05.cp.32x128b.warpx4 \
                         writes",
                        quarters(true),
                        quarters(false)
                    );
                }
                if (0..128).all(|lane| reads(lane).all(|row| lacks(lane, row))) {
                    let columns = match rows.div_ceil(32) {
                        1 => format!("column {column}"),
                        n => format!("columns {column} to {}", column + n - 1),
                    };
                    return format!("{begin}, which nothing has written ({columns} of all quarters)");
                }
                // Column by column, the lanes that lack theirs.
                let lanes =
                    |n: u32| (0..128).filter(move |&lane| reads(lane).any(|row| row / 32 == n && lacks(lane, row)));
                let missing = (0..rows.div_ceil(32)).filter_map(|n| {
                    let lanes = spans(lanes(n));
                    (!lanes.is_empty()).then(|| format!("column {} in lanes {lanes}", column + n))
                });
                return format!("{begin}, where nothing has written {}", missing.collect::<Vec<_>>().join(", "));
            }
        }
        "this MMA reads an operand that is not defined".into()
    }

    /// The quarters of the lanes do not hold the same scale factors.
    fn factors_apart(&mut self, n: usize, (c, which, what, column, row): (usize, &str, &str, u32, u32)) {
        let site = self.mmas[n].site;
        let name = self.tensor_name(column);
        let cell = |quarter: u32| match self.ctas[c].tensor.get(32 * quarter + row % 32, column + row / 32) {
            (value, true) => format!("{value:#010x}"),
            _ => "nothing defined".into(),
        };
        let cells = [0, 1, 2, 3].map(cell).join(", ");
        let mut diagnostic = self.problem(
            "scale-factors-apart",
            site,
            format!("the scale factors of {which} in {name} are not the same in all four quarters of the lanes"),
            "Scale factors are needed in each quarter of 32 lanes (PTX ISA 9.7.16.10.7): row r of A, or column r of B, in lane r mod 32 \
             of all four.",
            "Copy them with tcgen05.cp.32x128b.warpx4, which writes all four quarters, or let each warp store the same to its own.".into(),
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!(
            "{what} {row} has its factors in lane {} of each quarter, column {}: {cells}",
            row % 32,
            column + row / 32
        );
        self.findings.add(diagnostic);
    }
}
