//! Kernel parameters as bytes: addresses of the GPU's buffers, tensor maps as its driver writes them.

use super::{CudaFailure, refused};
use emulator::{Block, Param, ParamValue};

/// What turns a tensor map into its object.
type Encode<'a> = &'a dyn Fn(&device::TensorMap) -> Result<[u8; 128], String>;

/// What parameters refer to.
pub(super) struct Packing<'a> {
    /// Address and size of each buffer.
    pub(super) buffers: &'a [(u64, u64)],
    /// The driver.
    pub(super) encode: Encode<'a>,
}

/// Bytes of all parameters, at most (CUDA Programming Guide, since CUDA 12.1).
const MOST: u32 = 32_764;

impl Packing<'_> {
    /// The bytes of each parameter.
    pub(super) fn list(&self, params: &[Param]) -> Result<Vec<Vec<u8>>, CudaFailure> {
        params.iter().enumerate().map(|(n, param)| self.bytes(&format!("params[{n}]"), param)).collect()
    }

    /// The bytes of a block: zero where nothing is placed, a later field over an earlier one.
    pub(super) fn block(&self, path: &str, block: &Block) -> Result<Vec<u8>, CudaFailure> {
        let Block { size, fields } = block;
        if *size > MOST {
            return Err(refused(format!("{path}.size"), format!("is {size} (allowed: up to {MOST})")));
        }
        let mut bytes = vec![0; *size as usize];
        for (n, field) in fields.iter().enumerate() {
            let value = self.bytes(&format!("{path}.fields[{n}].value"), &field.value)?;
            let place = bytes.get_mut(field.at as usize..).and_then(|rest| rest.get_mut(..value.len()));
            let Some(place) = place else {
                let why = format!("puts {} bytes at byte {} of {size}", value.len(), field.at);
                return Err(refused(format!("{path}.fields[{n}].at"), why));
            };
            place.copy_from_slice(&value);
        }
        Ok(bytes)
    }

    fn bytes(&self, path: &str, param: &Param) -> Result<Vec<u8>, CudaFailure> {
        Ok(match param.value() {
            ParamValue::Bytes(bytes) => bytes,
            ParamValue::Pointer { buffer, offset } => {
                self.address(&format!("{path}.pointer"), buffer, offset)?.to_le_bytes().to_vec()
            }
            ParamValue::TensorMap { buffer, map } => {
                let path = format!("{path}.tensor_map");
                let address = self.address(&path, buffer, map.address)?;
                let map = of_the_driver(map, address).ok_or_else(|| {
                    let why = "elements of 4 and 6 bits are for the emulator; a GPU gets maps of 8 bits and more";
                    refused(format!("{path}.map.element"), why)
                })?;
                let object = (self.encode)(&map);
                object.map_err(|why| refused(format!("{path}.map"), format!("is no tensor map: {why}")))?.to_vec()
            }
            ParamValue::Struct(block) => self.block(&format!("{path}.struct"), block)?,
        })
    }

    fn address(&self, path: &str, buffer: usize, offset: u64) -> Result<u64, CudaFailure> {
        let Some(&(base, bytes)) = self.buffers.get(buffer) else {
            let why = format!("is {buffer}; there are {} buffers, numbered from 0", self.buffers.len());
            return Err(refused(format!("{path}.buffer"), why));
        };
        if offset > bytes {
            let why = format!("points to byte {offset} of buffer {buffer}, which has {bytes} bytes");
            return Err(refused(path, why));
        }
        Ok(base + offset)
    }
}

/// The map as the driver takes it; `None`: with elements that `device` has no name for.
fn of_the_driver(map: &emulator::TensorMap, address: u64) -> Option<device::TensorMap> {
    let emulator::TensorMap { address: _, element, dims, strides, box_dims, element_strides, swizzle, fill_nan } = map;
    Some(device::TensorMap {
        element: match element {
            emulator::Element::U8 => device::Element::U8,
            emulator::Element::U16 => device::Element::U16,
            emulator::Element::U32 => device::Element::U32,
            emulator::Element::S32 => device::Element::S32,
            emulator::Element::U64 => device::Element::U64,
            emulator::Element::S64 => device::Element::S64,
            emulator::Element::F16 => device::Element::F16,
            emulator::Element::F32 => device::Element::F32,
            emulator::Element::F32Ftz => device::Element::F32Ftz,
            emulator::Element::Tf32 => device::Element::Tf32,
            emulator::Element::Tf32Ftz => device::Element::Tf32Ftz,
            emulator::Element::F64 => device::Element::F64,
            emulator::Element::Bf16 => device::Element::Bf16,
            emulator::Element::U4Align8 | emulator::Element::U4Align16 | emulator::Element::U6Align16 => return None,
        },
        address,
        dims: dims.clone(),
        strides: strides.clone(),
        box_dims: box_dims.clone(),
        element_strides: element_strides.clone(),
        swizzle: match swizzle {
            emulator::Swizzle::None => device::Swizzle::None,
            emulator::Swizzle::B32 => device::Swizzle::B32,
            emulator::Swizzle::B64 => device::Swizzle::B64,
            emulator::Swizzle::B128 => device::Swizzle::B128,
            emulator::Swizzle::B128Atom32 => device::Swizzle::B128Atom32,
            emulator::Swizzle::B128Atom32Flip8 => device::Swizzle::B128Atom32Flip8,
            emulator::Swizzle::B128Atom64 => device::Swizzle::B128Atom64,
        },
        fill_nan: *fill_nan,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use emulator::Field;

    const BUFFERS: [(u64, u64); 2] = [(0x1000, 256), (0x2_0000, 64)];

    fn encode(map: &device::TensorMap) -> Result<[u8; 128], String> {
        map.check().map_err(|error| error.to_string())?;
        let mut object = [0xee; 128];
        object[..8].copy_from_slice(&map.address.to_le_bytes());
        Ok(object)
    }

    fn map() -> emulator::TensorMap {
        emulator::TensorMap {
            address: 16,
            element: emulator::Element::Bf16,
            dims: vec![64, 2],
            strides: vec![128],
            box_dims: vec![64, 2],
            element_strides: vec![],
            swizzle: emulator::Swizzle::B128,
            fill_nan: false,
        }
    }

    fn list(params: &[Param]) -> Result<Vec<Vec<u8>>, String> {
        Packing { buffers: &BUFFERS, encode: &encode }.list(params).map_err(|error| error.to_string())
    }

    #[test]
    fn values_addresses_and_tensor_maps_become_bytes() {
        let all = list(&[
            Param::I8(-1),
            Param::F16(1.0),
            Param::Bf16(1.0),
            Param::F32(1.0),
            Param::Pointer { buffer: 1, offset: 8 },
            Param::TensorMap { buffer: 0, map: map() },
            Param::Struct(Block {
                size: 12,
                fields: vec![
                    Field { at: 0, value: Param::Bytes(vec![0xaa; 12]) },
                    Field { at: 4, value: Param::Pointer { buffer: 0, offset: 256 } },
                ],
            }),
        ])
        .unwrap();
        assert_eq!(all[..4], [vec![0xff], vec![0, 0x3c], vec![0x80, 0x3f], vec![0, 0, 0x80, 0x3f]]);
        assert_eq!(all[4], 0x2_0008u64.to_le_bytes());
        assert_eq!((&all[5][..8], all[5][127]), (&0x1010u64.to_le_bytes()[..], 0xee));
        assert_eq!((&all[6][..4], &all[6][4..]), (&[0xaa; 4][..], &0x1100u64.to_le_bytes()[..]));
    }

    #[test]
    fn what_cannot_be_packed_names_its_field() {
        let says = |param| list(&[param]).unwrap_err();
        assert_eq!(
            says(Param::Pointer { buffer: 2, offset: 0 }),
            "`params[0].pointer.buffer` is 2; there are 2 buffers, numbered from 0"
        );
        assert_eq!(
            says(Param::Pointer { buffer: 1, offset: 65 }),
            "`params[0].pointer` points to byte 65 of buffer 1, which has 64 bytes"
        );
        let narrow = emulator::TensorMap { box_dims: vec![4, 2], ..map() };
        assert_eq!(
            says(Param::TensorMap { buffer: 0, map: narrow }),
            "`params[0].tensor_map.map` is no tensor map: `box_dims[0]` is 4, which makes rows of 8 bytes (allowed: \
             multiples of 16 bytes)"
        );
        let late = Block { size: 8, fields: vec![Field { at: 4, value: Param::U64(0) }] };
        assert_eq!(says(Param::Struct(late)), "`params[0].struct.fields[0].at` puts 8 bytes at byte 4 of 8");
    }
}
