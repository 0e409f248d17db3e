//! What to write instead of a field that makes no tensor map: where the other fields tell what was meant.

use super::TensorMap;

impl TensorMap {
    /// What to write in this field, of which [`TensorMap::check`] says what is wrong.
    pub(crate) fn cure(&self, field: &str) -> Option<String> {
        let rank = self.dims.len();
        let bytes = u64::from(self.element.bytes());
        match field {
            "strides" if !self.element.is_packed() && self.strides.len() != rank.saturating_sub(1) => {
                // Also the innermost dimension was given one.
                if self.strides.len() == rank && self.strides.first() == Some(&bytes) {
                    return Some(format!(
                        "The innermost dimension has no stride, its elements lie one behind the other: `\"strides\": {:?}`.",
                        &self.strides[1..]
                    ));
                }
                let mut rows = vec![bytes.saturating_mul(*self.dims.first()?)];
                for size in self.dims.iter().take(rank - 1).skip(1) {
                    rows.push(rows.last()?.saturating_mul(*size));
                }
                rows.truncate(rank - 1);
                Some(format!(
                    "Give the bytes from one index to the next of each dimension but the innermost: `\"strides\": {rows:?}` where nothing \
                     lies between rows."
                ))
            }
            _ if field.starts_with("strides[") => {
                Some("Strides count bytes, not elements: pad the rows of the tensor to a multiple of 16 bytes.".into())
            }
            "box_dims[0]" => self.cure_of_rows(),
            _ if field.starts_with("box_dims[") => {
                Some("Load a tile that is larger than 256 along a dimension as several boxes.".into())
            }
            _ => None,
        }
    }

    /// Of rows of the box that are too long, or are no multiples of 16 bytes.
    fn cure_of_rows(&self) -> Option<String> {
        if self.element.is_packed() || self.element.padded().is_some() {
            return None;
        }
        let (bytes, inner) = (self.element.bytes(), *self.box_dims.first()?);
        let span = self.swizzle.span();
        let fits = |elements: u32| {
            let row = elements.saturating_mul(bytes);
            row > 0 && row.is_multiple_of(16) && span.is_none_or(|span| row <= span)
        };
        // The rows of the tensor are shorter than their elements: these are of another type.
        let (size, stride) = (*self.dims.first()?, self.strides.first().copied().unwrap_or(0));
        if size > 0 && stride.is_multiple_of(size) && stride / size < bytes.into() {
            let name = match stride / size {
                1 => Some("u8"),
                2 => Some("f16"),
                4 => Some("f32"),
                _ => None,
            };
            if let Some(name) = name {
                return Some(format!(
                    "`strides[0]` is {stride} bytes, which for {size} elements is {} each: name an `element` of that size, such as `{name}`, \
                     or correct the stride.",
                    stride / size
                ));
            }
        }
        let too_long = span.is_some_and(|span| inner.saturating_mul(bytes) > span);
        if too_long && let Some((n, _)) = self.box_dims.iter().enumerate().skip(1).find(|(_, other)| fits(**other)) {
            let mut exchanged = self.box_dims.clone();
            exchanged.swap(0, n);
            return Some(format!(
                "`box_dims` begins with the innermost dimension, that of `dims[0]`, whose elements lie one behind the other: with 0 and {n} \
                 exchanged, `\"box_dims\": {exchanged:?}`, the rows fit."
            ));
        }
        match span {
            Some(span) if too_long && span < 128 => Some(format!(
                "Load the tile as several boxes of up to {} elements a row, or take a swizzle of longer rows.",
                span / bytes
            )),
            Some(span) if too_long => Some(format!(
                "Load the tile as several boxes of up to {} elements a row; only without a swizzle rows are longer.",
                span / bytes
            )),
            _ if inner > 256 => Some("Load the tile as several boxes of up to 256 elements in each dimension.".into()),
            _ => Some(format!("Make the rows of the box a multiple of {} elements.", 16 / bytes.min(16))),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Element, Swizzle, TensorMap};

    #[test]
    fn the_cure_follows_from_the_other_fields() {
        let right = TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![256, 512],
            strides: vec![512],
            box_dims: vec![64, 128],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        };
        assert_eq!(right.check(), Ok(()));
        for (map, says) in [
            (TensorMap { box_dims: vec![128, 64], ..right.clone() }, "`\"box_dims\": [64, 128]`, the rows fit"),
            (TensorMap { element: Element::F32, ..right.clone() }, "such as `f16`"),
            (TensorMap { strides: vec![2, 512], ..right.clone() }, "`\"strides\": [512]`"),
            (TensorMap { strides: vec![], ..right.clone() }, "`\"strides\": [512]` where nothing lies"),
            (TensorMap { strides: vec![520], ..right.clone() }, "count bytes"),
            (TensorMap { box_dims: vec![128, 128], ..right.clone() }, "up to 64 elements a row"),
            (TensorMap { box_dims: vec![4, 4], ..right.clone() }, "a multiple of 8 elements"),
            (
                TensorMap { box_dims: vec![512, 8], swizzle: Swizzle::None, ..right.clone() },
                "up to 256 elements in each dimension",
            ),
        ] {
            let (field, _) = map.check().expect_err(says);
            let cure = map.cure(&field).expect(says);
            assert!(cure.contains(says), "{cure}");
        }
    }
}
