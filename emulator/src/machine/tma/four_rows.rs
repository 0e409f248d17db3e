//! Copies of four rows that need not be neighbours: `.tile::gather4` and `.tile::scatter4`.

use super::bounding_box::Rows;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::names::counted;
use crate::machine::state::At;
use crate::tensor_map::TensorMap;
use smallvec::SmallVec;

/// Rows of such a copy.
pub const ROWS: u32 = 4;

impl Cluster<'_> {
    /// Whether the map is one for such copies: of two dimensions, in boxes of one row.
    pub fn is_map_of_rows(&self, at: At, map: &TensorMap) -> Result<(), Stop> {
        let (dims, rows) = (map.dims.len(), map.box_dims.get(1).copied().unwrap_or(1));
        if (dims, rows) == (2, 1) {
            return Ok(());
        }
        let what = format!(
            "this copy takes four rows of a matrix, its tensor map has {} and boxes of {}",
            counted(dims as u64, "dimension"),
            counted(u64::from(rows), "row")
        );
        Err(Some(Box::new(self.problem(
            "tensor-map",
            at.site,
            what,
            "With .tile::gather4 and .tile::scatter4 the tensor has two dimensions, and the box one row (PTX ISA 5.5.3.4, 5.5.3.4.1).",
            "Encode a map with a box of one row for it.".into(),
        ))))
    }

    /// The rows of four boxes of one row each, one behind the other. `coordinates`: of the first column, and of the rows.
    pub fn four_rows(&self, site: u32, map: &TensorMap, coordinates: &[i32]) -> Result<SmallVec<[Rows; 1]>, Stop> {
        let mut all = SmallVec::new();
        let Some((&column, rows)) = coordinates.split_first() else { return Ok(all) };
        for (n, &row) in (0..).zip(rows) {
            for part in self.box_rows(site, map, &[column, row])? {
                all.push(Rows { linear: part.linear + n * map.row_pitch(), ..part });
            }
        }
        Ok(all)
    }
}
