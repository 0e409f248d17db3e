//! Kernel parameters.

use super::buffer::byte_list;
use crate::tensor_map::TensorMap;
use half::{bf16, f16};
use serde::{Deserialize, Serialize};

/// A kernel parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Param {
    /// An 8-bit value.
    U8(u8),
    /// A signed 8-bit value.
    #[serde(alias = "s8")]
    I8(i8),
    /// A 16-bit value.
    U16(u16),
    /// A signed 16-bit value.
    #[serde(alias = "s16")]
    I16(i16),
    /// A 32-bit value.
    U32(u32),
    /// A signed 32-bit value.
    #[serde(alias = "s32")]
    I32(i32),
    /// A 64-bit value.
    U64(u64),
    /// A signed 64-bit value.
    #[serde(alias = "s64")]
    I64(i64),
    /// A 16-bit floating-point value, rounded to nearest.
    F16(f32),
    /// A bfloat16 value, rounded to nearest.
    Bf16(f32),
    /// A 32-bit floating-point value.
    F32(f32),
    /// A 64-bit floating-point value.
    F64(f64),
    /// The address of a byte of a buffer.
    Pointer {
        /// Index into [`super::Launch::buffers`].
        buffer: usize,
        /// Byte in it.
        #[serde(default)]
        offset: u64,
    },
    /// These bytes, as they are. In a launch file: a list of numbers, or pairs of hexadecimal digits in a text.
    #[serde(with = "byte_list")]
    Bytes(Vec<u8>),
    /// A tensor map over a buffer, as the 128-byte object. Its address counts from the start of the buffer.
    TensorMap {
        /// Index into [`super::Launch::buffers`].
        buffer: usize,
        /// What `cuTensorMapEncodeTiled` takes.
        map: TensorMap,
    },
    /// Values at byte offsets.
    Struct(Block),
}

/// What a parameter is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum ParamValue<'a> {
    /// These bytes, wherever buffers lie.
    Bytes(Vec<u8>),
    /// The address of a byte of a buffer.
    Pointer {
        /// Index into [`super::Launch::buffers`].
        buffer: usize,
        /// Byte in it.
        offset: u64,
    },
    /// A tensor map over a buffer.
    TensorMap {
        /// Index into [`super::Launch::buffers`].
        buffer: usize,
        /// The map.
        map: &'a TensorMap,
    },
    /// Values at byte offsets.
    Struct(&'a Block),
}

/// A block of bytes with values at byte offsets: what a recorded launch is made of. Zero where nothing is placed; a later
/// field goes over an earlier one, so that pointers and tensor maps can be placed over the recorded bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Block {
    /// Size in bytes.
    pub size: u32,
    /// What lies in it.
    #[serde(default)]
    pub fields: Vec<Field>,
}

/// A value in a [`Block`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Its first byte.
    pub at: u32,
    /// What is placed there.
    pub value: Param,
}

/// Bytes of all parameters, at most (CUDA Programming Guide, since CUDA 12.1).
pub(crate) const MAX_PARAMS: u32 = 32_764;

/// What is wrong with a value, and where in the launch description it stands.
pub(crate) type Wrong = (String, String);

/// Where a buffer lies, and its bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    pub base: u64,
    pub bytes: u64,
}

impl Param {
    /// The bytes of the value, for buffers at these addresses.
    pub(crate) fn bytes(&self, path: &str, buffers: &[Extent]) -> Result<Vec<u8>, Wrong> {
        let address = |buffer: usize, offset: u64, kind: &str, field: &str| {
            let Some(extent) = buffers.get(buffer) else {
                let there_are = match buffers.len() {
                    0 => "there are no buffers".to_string(),
                    1 => "there is one, number 0".to_string(),
                    n => format!("there are {n}, 0 to {}", n - 1),
                };
                return Err((format!("{path}.{kind}.buffer"), format!("names buffer {buffer}: {there_are}")));
            };
            // A map may begin in front of its buffer: coordinates that are large by as much lead back.
            let in_front = kind == "tensor_map" && offset > i64::MAX as u64;
            if offset > extent.bytes && !in_front {
                let why = format!("points to byte {offset} of buffer {buffer}, which has {} bytes", extent.bytes);
                return Err((format!("{path}.{kind}.{field}"), why));
            }
            Ok(extent.base.wrapping_add(offset))
        };
        Ok(match self.value() {
            ParamValue::Bytes(bytes) => bytes,
            ParamValue::Pointer { buffer, offset } => {
                address(buffer, offset, "pointer", "offset")?.to_le_bytes().to_vec()
            }
            ParamValue::TensorMap { buffer, map } => {
                let at = |field: String| format!("{path}.tensor_map.map.{field}");
                map.check().map_err(|(field, why)| (at(field), format!("is no tensor map: {why}")))?;
                let address = address(buffer, map.address, "tensor_map", "map.address")?;
                let object = TensorMap { address, ..map.clone() }.encode();
                object.map_err(|why| (at("address".into()), format!("is no tensor map: {why}")))?.to_vec()
            }
            ParamValue::Struct(block) => block.bytes(&format!("{path}.struct"), buffers)?,
        })
    }

    /// Its bytes, if it depends on no buffer: numbers with their lowest byte first.
    pub fn value(&self) -> ParamValue<'_> {
        ParamValue::Bytes(match self {
            Param::U8(v) => vec![*v],
            Param::I8(v) => v.to_le_bytes().to_vec(),
            Param::U16(v) => v.to_le_bytes().to_vec(),
            Param::I16(v) => v.to_le_bytes().to_vec(),
            Param::U32(v) => v.to_le_bytes().to_vec(),
            Param::I32(v) => v.to_le_bytes().to_vec(),
            Param::U64(v) => v.to_le_bytes().to_vec(),
            Param::I64(v) => v.to_le_bytes().to_vec(),
            Param::F16(v) => f16::from_f32(*v).to_le_bytes().to_vec(),
            Param::Bf16(v) => bf16::from_f32(*v).to_le_bytes().to_vec(),
            Param::F32(v) => v.to_le_bytes().to_vec(),
            Param::F64(v) => v.to_le_bytes().to_vec(),
            Param::Bytes(bytes) => bytes.clone(),
            Param::Pointer { buffer, offset } => return ParamValue::Pointer { buffer: *buffer, offset: *offset },
            Param::TensorMap { buffer, map } => return ParamValue::TensorMap { buffer: *buffer, map },
            Param::Struct(block) => return ParamValue::Struct(block),
        })
    }
}

impl Param {
    /// What it is in a launch file, and whether a parameter of this PTX type takes it: numbers of one kind, in any sign.
    pub(crate) fn fits(&self, ty: &str) -> (&'static str, bool) {
        let float = matches!(ty, "f32" | "f64");
        let integer = matches!(ty, "u32" | "s32" | "u64" | "s64" | "u8" | "s8");
        match self {
            Param::U8(_) | Param::I8(_) => ("an 8-bit integer", true),
            Param::U16(_) | Param::I16(_) => ("a 16-bit integer", ty != "f16"),
            Param::U32(_) | Param::I32(_) => ("a 32-bit integer", !float),
            Param::U64(_) | Param::I64(_) => ("a 64-bit integer", !float),
            Param::F16(_) | Param::Bf16(_) => ("a 16-bit floating-point number", true),
            Param::F32(_) => ("a 32-bit floating-point number", !integer),
            Param::F64(_) => ("a 64-bit floating-point number", !integer),
            Param::Pointer { .. } => ("an address", !float),
            Param::Bytes(_) | Param::TensorMap { .. } | Param::Struct(_) => ("bytes", true),
        }
    }
}

impl Block {
    /// The bytes, for buffers at these addresses.
    pub(crate) fn bytes(&self, path: &str, buffers: &[Extent]) -> Result<Vec<u8>, Wrong> {
        if self.size > MAX_PARAMS {
            return Err((format!("{path}.size"), format!("has {} bytes (up to {MAX_PARAMS})", self.size)));
        }
        let mut bytes = vec![0; self.size as usize];
        for (n, field) in self.fields.iter().enumerate() {
            let value = field.value.bytes(&format!("{path}.fields[{n}].value"), buffers)?;
            let from = field.at as usize;
            let Some(place) = bytes.get_mut(from..).and_then(|rest| rest.get_mut(..value.len())) else {
                return Err((
                    format!("{path}.fields[{n}].at"),
                    format!("has {} bytes at byte {from}, beyond its {} bytes", value.len(), self.size),
                ));
            };
            place.copy_from_slice(&value);
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_places_pointers_over_recorded_bytes() {
        let field = |at, value| Field { at, value };
        let mut block = Block {
            size: 24,
            fields: vec![
                field(0, Param::Bytes(vec![0xaa; 24])),
                field(8, Param::Pointer { buffer: 1, offset: 0x10 }),
                field(16, Param::I16(-2)),
            ],
        };
        let buffers = [0x1000, 0x2000].map(|base| Extent { base, bytes: 64 });
        let bytes = block.bytes("param_block", &buffers).unwrap();
        assert_eq!(bytes[..8], [0xaa; 8]);
        assert_eq!(bytes[8..16], 0x2010u64.to_le_bytes());
        assert_eq!(bytes[16..], [0xfe, 0xff, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa]);
        block.fields.push(field(20, Param::U64(0)));
        let (path, why) = block.bytes("param_block", &buffers).unwrap_err();
        assert_eq!(path, "param_block.fields[3].at");
        assert_eq!(why, "has 8 bytes at byte 20, beyond its 24 bytes");
    }
}
