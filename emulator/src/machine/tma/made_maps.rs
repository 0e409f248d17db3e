//! Tensor maps that a kernel makes field by field: fields that it never sets, of which one of 0 is another one than was meant.

use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::memory::resolve::Target;
use crate::tensor_map::{Field, FieldKind, TensorMap};
use rustc_hash::FxHashMap;

/// A set of fields, a bit each.
#[derive(Clone, Copy, Debug, Default)]
struct Fields(u64);

impl Fields {
    fn bit(kind: FieldKind, dimension: usize) -> u64 {
        const DIMENSIONS: usize = 5;
        1 << (kind as usize * DIMENSIONS + dimension.min(DIMENSIONS - 1))
    }

    fn has(self, kind: FieldKind, dimension: usize) -> bool {
        self.0 & Fields::bit(kind, dimension) != 0
    }

    /// A map whose form is said field by field does not begin with another one.
    fn are_of_a_new_map(self) -> bool {
        self.has(FieldKind::Rank, 0) && self.has(FieldKind::BoxDim, 0)
    }

    /// A field of a map that is not set, and tells there something else than others do: its name, and what it makes of the tensor.
    fn lacking(self, map: &TensorMap) -> Option<(String, String)> {
        let size = |n: usize| {
            let (size, wide) = (*map.dims.get(n)?, *map.box_dims.get(n)?);
            let lacks = !self.has(FieldKind::GlobalDim, n) && size == 1 && wide > 1;
            lacks.then(|| {
                let says = format!(
                    "the tensor has one index in dimension {n}, and of the {wide} of a box all others lie outside of it"
                );
                (format!("global_dim {n}"), says)
            })
        };
        let stride = |n: usize| {
            let (stride, size) = (*map.strides.get(n)?, *map.dims.get(n + 1)?);
            let lacks = !self.has(FieldKind::GlobalStride, n) && stride == 0 && size > 1;
            lacks.then(|| {
                let says = format!("all {size} indices of dimension {} lie in the same bytes", n + 1);
                (format!("global_stride {n}"), says)
            })
        };
        let rank = map.dims.len();
        (0..rank).find_map(size).or_else(|| (0..rank).find_map(stride))
    }
}

/// The fields that threads set of the maps that they make, by where those lie.
#[derive(Debug, Default)]
pub struct MadeMaps(FxHashMap<(bool, usize, u64), Fields>);

/// What tells the place of a map from others: in shared memory or not, the CTA or buffer, and the offset.
fn place(target: Target) -> Option<(bool, usize, u64)> {
    match target {
        Target::Shared(cta, offset) => Some((true, cta, offset.into())),
        Target::Global { buffer, offset } => Some((false, buffer, offset)),
        Target::Local(_) | Target::Param(_) => None,
    }
}

impl MadeMaps {
    /// A thread sets a field of a map.
    pub fn set(&mut self, target: Target, field: Field) {
        if let Some(at) = place(target) {
            self.0.entry(at).or_default().0 |= Fields::bit(field.kind, field.dimension);
        }
    }

    /// A map is copied to where copies use it. The next one in its place may begin anew.
    pub fn published(&mut self, from: Target, to: Target) {
        let (Some(from), Some(to)) = (place(from), place(to)) else { return };
        let fields = self.0.remove(&from).unwrap_or_default();
        self.0.insert(to, fields);
    }
}

impl Cluster<'_> {
    /// A copy uses a map in global memory: were all fields set that it needs?
    pub fn check_made_map(&mut self, site: u32, map: &TensorMap, (buffer, offset): (usize, u64)) {
        let fields = self.made_maps.0.get(&(false, buffer, offset)).copied().unwrap_or_default();
        let Some((field, says)) = fields.lacking(map).filter(|_| fields.are_of_a_new_map()) else { return };
        let at = self.global.buffers[buffer].describe(offset);
        let mut diagnostic = self.problem(
            "tensor-map",
            site,
            format!("no tensormap.replace sets {field} of the tensor map at {at}: {says}"),
            "tensormap.replace changes one field; the other bits of the map stay what they were (PTX ISA, tensormap.replace). Bits of zero \
             are a global_dim of 1, and a global_stride of 0 (as an H200 writes these fields).",
            format!("Set {field} by tensormap.replace as well, or begin with a map that has it."),
        );
        diagnostic.severity = Severity::Note;
        diagnostic.labels[0].text = "this copy uses the map".into();
        self.findings.add(diagnostic);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor_map::{Element, Swizzle};

    #[test]
    fn fields_of_zero_bits_that_nobody_set_are_named() {
        let map = |dims: [u64; 2], stride| TensorMap {
            address: 0,
            element: Element::F16,
            dims: dims.into(),
            strides: vec![stride],
            box_dims: vec![64, 8],
            element_strides: vec![],
            swizzle: Swizzle::None,
            fill_nan: false,
        };
        let of = |set: &[(FieldKind, usize)]| {
            let bits = |all, &(kind, n): &(FieldKind, usize)| all | Fields::bit(kind, n);
            Fields(set.iter().fold(0, bits))
        };
        let lacks = |set: &[(FieldKind, usize)], map| of(set).lacking(&map).map(|(field, _)| field);
        let sizes = [(FieldKind::GlobalDim, 0), (FieldKind::GlobalDim, 1)];
        assert_eq!(lacks(&sizes, map([64, 1], 128)), None, "a tensor of one row");
        assert_eq!(lacks(&sizes[..1], map([64, 1], 128)).as_deref(), Some("global_dim 1"));
        assert_eq!(lacks(&sizes, map([64, 32], 0)).as_deref(), Some("global_stride 0"));
        assert_eq!(lacks(&[sizes[0], sizes[1], (FieldKind::GlobalStride, 0)], map([64, 32], 0)), None, "it is meant");
        assert_eq!(lacks(&sizes, map([64, 1], 0)), None, "one row has no next one");
        assert!(!of(&sizes).are_of_a_new_map(), "fields of a map that was there");
    }
}
