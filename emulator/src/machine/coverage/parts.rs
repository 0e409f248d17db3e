//! Sums of which each has some of the depths, as where CTAs share K: the same rows of A and columns of B, and depths that two of them have.

use super::sums::{Range, Sum, Sums, end_from};
use crate::diagnostic::{Diagnostic, Label, Severity};

/// So many sums are compared.
const MOST: usize = 512;

impl Sums {
    /// What is told of depths that two parts of a product have, at the end of a launch in which nothing else was found: of parts that have all depths together.
    pub fn judge_parts(&self, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
        let parts: Vec<(&Sum, Range)> =
            self.all()?.iter().filter_map(|sum| Some((sum, part(sum)?))).take(MOST).collect();
        let (sum, (from, to), other) = parts.iter().enumerate().find_map(|(n, &(sum, own))| {
            let (_, both, other) = parts[n + 1..].iter().find_map(|&(other, range)| {
                let both = (own.0.max(range.0), own.1.min(range.1));
                (other.of == sum.of && both.0 < both.1).then_some((range, both, other))
            })?;
            let ranges = parts.iter().filter(|(other, _)| other.of == sum.of).map(|&(_, range)| range);
            are_all(ranges.collect(), sum.size?).then_some((sum, both, other))
        })?;
        let (rows, columns) = (sum.of[0].first()?, sum.of[1].first()?);
        let mut labels = vec![label(sum.mma, "multiplied here, as one part".into())];
        if other.mma != sum.mma {
            labels.push(label(other.mma, "and here, as another part".into()));
        }
        labels.push(label(rows.load, "A is loaded here".into()));
        labels.push(label(columns.load, "B is loaded here".into()));
        Some(Diagnostic {
            code: "product-added-twice",
            severity: Severity::Note,
            title: format!(
                "two parts of the product of rows {} to {} of A and columns {} to {} of B have depths {from} to {}",
                rows.first,
                rows.end() - 1,
                columns.first,
                columns.end() - 1,
                to - 1
            ),
            labels,
            rule: "Each depth of A and B counts once in a product of matrices (PTX ISA, tcgen05.mma). Where these parts are not added, this is as it should be.".into(),
            help: "Let each part end where the next one begins: compare the bounds of the loops over K with how K is shared.".into(),
            count: 1,
            confirmed: None,
        })
    }
}

/// The depths of a sum that has some of them, one behind the other, of both tensors.
fn part(sum: &Sum) -> Option<Range> {
    let &[range] = sum.depths.as_slice() else { return None };
    let size = sum.size.filter(|_| sum.distance == 0 && !sum.with_others)?;
    let whole = range.0 == 0 && range.1 >= size;
    (!whole).then_some(range)
}

/// Whether these have all depths together.
fn are_all(mut ranges: Vec<Range>, size: i64) -> bool {
    end_from(0, &mut ranges).is_some_and(|end| end >= size)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::coverage::sums::Line;
    use smallvec::SmallVec;

    fn told(parts: &[Range]) -> bool {
        let line = |tensor| Line {
            tensor: (tensor, 0),
            first: 0,
            rows: 128,
            size: 256,
            mn_major: false,
            whole: true,
            load: 0,
        };
        let of = [1, 2].map(|tensor| SmallVec::from_slice(&[line(tensor)]));
        let sum = |(n, range): (usize, &Range)| Sum {
            cta: n,
            accumulator: 0,
            of: of.clone(),
            distance: 0,
            size: Some(448),
            depths: SmallVec::from_slice(&[*range]),
            with_others: false,
            mma: 0,
        };
        let sums = Sums::holding(parts.iter().enumerate().map(sum).collect());
        sums.judge_parts(|line, text| Label::new(crate::diagnostic::Place { line, ..Default::default() }, text))
            .is_some()
    }

    #[test]
    fn parts_of_a_product_have_no_depths_in_common() {
        assert!(!told(&[(0, 256), (256, 448)]));
        assert!(told(&[(0, 320), (256, 448)]));
        assert!(!told(&[(0, 448), (0, 448)]), "who multiplies all again adds nothing");
        assert!(!told(&[(0, 448), (0, 64)]));
        assert!(!told(&[(0, 128), (64, 192)]), "a window that goes over the depths");
    }
}
