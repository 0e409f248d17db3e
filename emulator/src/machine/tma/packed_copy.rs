//! Tensor copies of elements of 4 and 6 bits: what they cannot do.

use crate::machine::cluster::{Cluster, Stop};
use crate::machine::state::At;
use crate::program::op::{TmaKind, TmaOp};
use crate::tensor_map::{Element, TensorMap};

impl Cluster<'_> {
    /// What the ISA says of copies of elements of fewer than 8 bits (restrictions on tensor copy instructions).
    pub fn packed_copy(&self, at: At, op: &TmaOp, map: &TensorMap, first: i32) -> Option<Stop> {
        let element = map.element;
        let (code, what, help) = match op.kind {
            _ if !element.is_packed() => return None,
            TmaKind::Reduce(_) => {
                ("tensor-map", "a reduction of packed elements".to_string(), "Reduce elements of 16 bits or more.")
            }
            TmaKind::Store if element == Element::U4Align16 => (
                "tensor-map",
                "a store of padded elements of 4 bits".into(),
                "Store them with a map whose elements are bytes.",
            ),
            TmaKind::Store if element == Element::U6Align16 => (
                "tensor-map",
                "a store of elements of 6 bits, which is not modelled".into(),
                "Loads of such elements are modelled; store with a map whose elements are bytes.",
            ),
            _ if element.padded().is_some() && first % 128 != 0 => (
                "tensor-coordinate",
                format!("the box of padded elements begins at coordinate {first} of the innermost dimension"),
                "Let the innermost coordinate be a multiple of 128.",
            ),
            _ if element.padded().is_none() && first % 32 != 0 => (
                "tensor-coordinate",
                format!("the box of elements of 4 bits begins at coordinate {first} of the innermost dimension"),
                "Let the innermost coordinate be a multiple of 32, which are 16 bytes.",
            ),
            _ => return None,
        };
        const RULE: &str = "Padded elements are loaded, from multiples of 128 of the innermost coordinate on; no packed element is reduced (PTX ISA, \
                            restrictions on tensor copy instructions). A box begins on a multiple of 16 bytes.";
        Some(Some(Box::new(self.problem(code, at.site, what, RULE, help.into()))))
    }
}
