//! Tensor maps, encoded by the driver (CUDA driver API, tensor map object management).
#![allow(unsafe_code)] // Calls into the driver.

use crate::driver::{cuda, driver, result};
use crate::error::Error;
use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType as DataType, CUtensorMapFloatOOBfill as Fill, CUtensorMapInterleave as Interleave,
    CUtensorMapL2promotion as Promotion, CUtensorMapSwizzle,
};
use std::ffi::c_void;
use std::fmt;

/// What `cuTensorMapEncodeTiled` takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorMap {
    /// Type of the elements.
    pub element: Element,
    /// Address of element 0.
    pub address: u64,
    /// Size of each dimension in elements, innermost first; as many as the rank.
    pub dims: Vec<u64>,
    /// Bytes from one index to the next, of each dimension but the innermost.
    pub strides: Vec<u64>,
    /// Elements of the box in each dimension.
    pub box_dims: Vec<u32>,
    /// Distance of the elements taken, in each dimension. Empty: all.
    pub element_strides: Vec<u32>,
    /// Swizzle of the box in shared memory.
    pub swizzle: Swizzle,
    /// What elements outside of the tensor read as: NaN instead of zero.
    pub fill_nan: bool,
}

/// Type of a tensor's elements, with the driver's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Element {
    U8 = 0,
    U16 = 1,
    U32 = 2,
    S32 = 3,
    U64 = 4,
    S64 = 5,
    F16 = 6,
    F32 = 7,
    F64 = 8,
    Bf16 = 9,
    F32Ftz = 10,
    Tf32 = 11,
    Tf32Ftz = 12,
}

impl Element {
    /// Bytes of an element.
    pub fn bytes(self) -> u32 {
        match self {
            Element::U8 => 1,
            Element::U16 | Element::F16 | Element::Bf16 => 2,
            Element::U32 | Element::S32 | Element::F32 | Element::F32Ftz | Element::Tf32 | Element::Tf32Ftz => 4,
            Element::U64 | Element::S64 | Element::F64 => 8,
        }
    }

    fn bound(self) -> DataType {
        match self {
            Element::U8 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            Element::U16 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
            Element::U32 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT32,
            Element::S32 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT32,
            Element::U64 => DataType::CU_TENSOR_MAP_DATA_TYPE_UINT64,
            Element::S64 => DataType::CU_TENSOR_MAP_DATA_TYPE_INT64,
            Element::F16 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
            Element::F32 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
            Element::F64 => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT64,
            Element::Bf16 => DataType::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
            Element::F32Ftz => DataType::CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ,
            Element::Tf32 => DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32,
            Element::Tf32Ftz => DataType::CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ,
        }
    }

    fn is_float(self) -> bool {
        use Element::{Bf16, F16, F32, F32Ftz, F64, Tf32, Tf32Ftz};
        matches!(self, F16 | Bf16 | F32 | F32Ftz | F64 | Tf32 | Tf32Ftz)
    }
}

/// How a box lies in shared memory, with the driver's numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Swizzle {
    /// Row after row.
    #[default]
    None = 0,
    /// 16-byte chunks within 32 bytes.
    B32 = 1,
    /// 16-byte chunks within 64 bytes.
    B64 = 2,
    /// 16-byte chunks within 128 bytes.
    B128 = 3,
    /// 32-byte chunks within 128 bytes.
    B128Atom32 = 4,
    /// 32-byte chunks within 128 bytes, the 8-byte halves of odd rows swapped.
    B128Atom32Flip8 = 5,
    /// 64-byte chunks within 128 bytes.
    B128Atom64 = 6,
}

impl Swizzle {
    fn bound(self) -> CUtensorMapSwizzle {
        match self {
            Swizzle::None => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            Swizzle::B32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_32B,
            Swizzle::B64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
            Swizzle::B128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
            Swizzle::B128Atom32 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B,
            Swizzle::B128Atom32Flip8 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_32B_FLIP_8B,
            Swizzle::B128Atom64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B,
        }
    }

    fn span(self) -> Option<u32> {
        match self {
            Swizzle::None => None,
            Swizzle::B32 => Some(32),
            Swizzle::B64 => Some(64),
            _ => Some(128),
        }
    }
}

/// A field that the driver would refuse.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The field: `box_dims[0]`.
    pub field: String,
    /// What it is, and what is allowed.
    pub why: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` {}", self.field, self.why)
    }
}

/// L2 fetches 128 bytes at once; no result depends on it.
const PROMOTION: Promotion = Promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B;

impl TensorMap {
    /// The rules that the driver's documentation gives. The driver itself names no field when one is broken.
    ///
    /// # Errors
    /// The first field that breaks one.
    pub fn check(&self) -> Result<(), FieldError> {
        let rank = self.dims.len();
        let fail = |field: String, why: String| Err(FieldError { field, why });
        if !(1..=5).contains(&rank) {
            return fail("dims".into(), format!("has {rank} numbers (allowed: 1 to 5)"));
        }
        let steps = if self.element_strides.is_empty() { 0 } else { rank };
        for (field, has, needs) in [
            ("strides", self.strides.len(), rank - 1),
            ("box_dims", self.box_dims.len(), rank),
            ("element_strides", self.element_strides.len(), steps),
        ] {
            if has != needs {
                return fail(field.into(), format!("has {has} numbers (allowed: {needs}, for a rank of {rank})"));
            }
        }
        if !self.address.is_multiple_of(16) {
            return fail("address".into(), format!("is {:#x} (allowed: multiples of 16)", self.address));
        }
        let range = |name: &str, n: usize, value: u64, most: u64, most_text: &str| {
            let why = || format!("is {value} (allowed: 1 to {most_text})");
            if (1..=most).contains(&value) { Ok(()) } else { fail(format!("{name}[{n}]"), why()) }
        };
        for n in 0..rank {
            range("dims", n, self.dims[n], 1 << 32, "2^32")?;
            range("box_dims", n, self.box_dims[n].into(), 256, "256")?;
        }
        for (n, &step) in self.element_strides.iter().enumerate() {
            range("element_strides", n, step.into(), 8, "8")?;
        }
        for (n, &stride) in self.strides.iter().enumerate() {
            if !stride.is_multiple_of(16) || stride >= 1 << 40 {
                return fail(format!("strides[{n}]"), format!("is {stride} (allowed: multiples of 16 below 2^40)"));
            }
        }
        let inner = self.box_dims[0] * self.element.bytes();
        let rows = format!("is {}, which makes rows of {inner} bytes", self.box_dims[0]);
        if !inner.is_multiple_of(16) {
            return fail("box_dims[0]".into(), format!("{rows} (allowed: multiples of 16 bytes)"));
        }
        if let Some(span) = self.swizzle.span().filter(|span| inner > *span) {
            return fail("box_dims[0]".into(), format!("{rows} (allowed with this swizzle: up to {span} bytes)"));
        }
        if self.fill_nan && !self.element.is_float() {
            return fail("fill_nan".into(), "is true, but the elements are integers (allowed: false)".into());
        }
        Ok(())
    }

    /// The 128-byte object, as the driver of this machine writes it.
    ///
    /// # Errors
    /// The field that is wrong, that there is no driver, or what it says.
    pub fn encode(&self) -> Result<[u8; 128], Error> {
        const WHAT: &str = "encoding a tensor map";
        self.check().map_err(|error| Error::refused(WHAT, error.to_string()))?;
        let driver = driver().map_err(|why| Error::refused(WHAT, why.to_string()))?;
        let rank = self.dims.len();
        let steps = if self.element_strides.is_empty() { vec![1; rank] } else { self.element_strides.clone() };
        // The driver takes a pointer even where there is no stride.
        let strides = if self.strides.is_empty() { vec![0] } else { self.strides.clone() };
        let mut object = CUtensorMap { opaque: [0; 16] };
        let fill = match self.fill_nan {
            true => Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA,
            false => Fill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        };
        // SAFETY: `rank` numbers in each list, one less in the strides (checked above); the object has the size and the alignment
        // that the driver asks for.
        let code = unsafe {
            cuda!(
                driver,
                cuTensorMapEncodeTiled(
                    &mut object,
                    self.element.bound(),
                    rank as u32,
                    self.address as *mut c_void,
                    self.dims.as_ptr(),
                    strides.as_ptr(),
                    self.box_dims.as_ptr(),
                    steps.as_ptr(),
                    Interleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
                    self.swizzle.bound(),
                    PROMOTION,
                    fill,
                )
            )
        };
        if code != result::SUCCESS {
            let what = format!(
                "{WHAT}: {:?}, dims {:?}, strides {:?}, box_dims {:?}, element_strides {steps:?}, swizzle {:?}",
                self.element, self.dims, self.strides, self.box_dims, self.swizzle
            );
            return Err(Error::of(&what, code, driver.name(code), driver.meaning(code)));
        }
        let mut bytes = [0; 128];
        for (place, word) in bytes.chunks_exact_mut(8).zip(object.opaque) {
            place.copy_from_slice(&word.to_ne_bytes());
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map() -> TensorMap {
        TensorMap {
            element: Element::F16,
            address: 0x1000,
            dims: vec![64, 128],
            strides: vec![128],
            box_dims: vec![64, 128],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        }
    }

    /// The numbers that this crate promises for its names are the driver's.
    #[test]
    fn names_have_the_drivers_numbers() {
        use Element::*;
        for element in [U8, U16, U32, S32, U64, S64, F16, F32, F64, Bf16, F32Ftz, Tf32, Tf32Ftz] {
            assert_eq!(element.bound() as u32, element as u32, "{element:?}");
        }
        use Swizzle::*;
        for swizzle in [None, B32, B64, B128, B128Atom32, B128Atom32Flip8, B128Atom64] {
            assert_eq!(swizzle.bound() as u32, swizzle as u32, "{swizzle:?}");
        }
    }

    #[test]
    fn what_is_wrong_names_its_field() {
        assert_eq!(map().check(), Ok(()));
        for (map, says) in [
            (TensorMap { dims: vec![], ..map() }, "`dims` has 0 numbers (allowed: 1 to 5)"),
            (TensorMap { strides: vec![], ..map() }, "`strides` has 0 numbers (allowed: 1, for a rank of 2)"),
            (TensorMap { address: 8, ..map() }, "`address` is 0x8 (allowed: multiples of 16)"),
            (TensorMap { dims: vec![64, 0], ..map() }, "`dims[1]` is 0 (allowed: 1 to 2^32)"),
            (TensorMap { box_dims: vec![64, 257], ..map() }, "`box_dims[1]` is 257 (allowed: 1 to 256)"),
            (TensorMap { element_strides: vec![1, 9], ..map() }, "`element_strides[1]` is 9 (allowed: 1 to 8)"),
            (TensorMap { strides: vec![24], ..map() }, "`strides[0]` is 24 (allowed: multiples of 16 below 2^40)"),
            (
                TensorMap { box_dims: vec![4, 8], ..map() },
                "`box_dims[0]` is 4, which makes rows of 8 bytes (allowed: multiples of 16 bytes)",
            ),
            (
                TensorMap { swizzle: Swizzle::B64, ..map() },
                "`box_dims[0]` is 64, which makes rows of 128 bytes (allowed with this swizzle: up to 64 bytes)",
            ),
            (
                TensorMap { element: Element::U16, fill_nan: true, ..map() },
                "`fill_nan` is true, but the elements are integers (allowed: false)",
            ),
        ] {
            assert_eq!(map.check().unwrap_err().to_string(), says);
        }
    }
}
