//! Tensor maps of elements that padding follows in shared memory.

use super::{Swizzle, TensorMap};

impl TensorMap {
    /// The rules of elements that padding follows in shared memory, of which 16 bytes there hold so many (CUDA driver API; PTX ISA,
    /// restrictions on tensor copy instructions). `Err`: the field, and what it is.
    pub(super) fn check_padded(&self, packed: u32) -> Result<(), (String, String)> {
        let fail = |field: &str, is: String| Err((field.to_string(), is));
        if !self.address.is_multiple_of(32) {
            return fail("address", format!("is {:#x} (allowed with padded elements: multiples of 32)", self.address));
        }
        if !self.dims[0].is_multiple_of(128) {
            return fail("dims[0]", format!("is {} (allowed with padded elements: multiples of 128)", self.dims[0]));
        }
        if self.box_dims[0] != 128 {
            return fail("box_dims[0]", format!("is {} (allowed with padded elements: 128)", self.box_dims[0]));
        }
        if let Some(stride) = self.strides.iter().find(|stride| !stride.is_multiple_of(32)) {
            return fail("strides", format!("has {stride} bytes (allowed with padded elements: multiples of 32)"));
        }
        let swizzles = [Swizzle::None, Swizzle::B128, Swizzle::B128Atom32];
        if !swizzles.contains(&self.swizzle) {
            let all = format!(
                "none, that of 128 bytes, and that of 128 bytes in atoms of 32; {packed} of 16 bytes hold data"
            );
            return fail("swizzle", format!("is one that padded elements cannot have (allowed: {all})"));
        }
        if self.fill_nan {
            return fail("fill_nan", "is true, but the elements are packed (allowed: false)".into());
        }
        Ok(())
    }
}
