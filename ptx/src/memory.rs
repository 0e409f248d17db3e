//! Loads and stores of global and shared memory, and the conversions that stand between them.

use crate::address::{GlobalAddress, SharedAddress};
use crate::gemm::Dtype;
use crate::level::Level;
use crate::register::{B16, B32, F32, Register, U32, dummy};
use crate::scope::Scope;
use crate::state::{State, with};

/// 16 bytes in four registers: the widest load and store of shared memory that a thread has.
pub type Chunk = [B32; 4];

fn refuse_misaligned(s: &mut State, address: SharedAddress, bytes: u32) {
    if address.register.is_none() && !address.offset.is_multiple_of(bytes) {
        s.error(
            format!("a {bytes}-byte access at byte {} of shared memory is not aligned", address.offset),
            format!("use an address that is a multiple of {bytes}: a multiple of {} columns", bytes / 2),
        );
    }
}

fn load<R: Register>(s: &mut State, opcode: &str, address: &str) -> R {
    let result: R = s.fresh();
    let to = s.name(result);
    s.instruction(format!("{opcode} {to}, {address}"));
    result
}

fn load_chunk(s: &mut State, opcode: &str, address: &str) -> Chunk {
    let chunk: Chunk = std::array::from_fn(|_| s.fresh());
    let to = chunk.map(|part| s.name(part)).join(", ");
    s.instruction(format!("{opcode} {{{to}}}, {address}"));
    chunk
}

fn store_chunk(s: &mut State, opcode: &str, address: &str, chunk: Chunk) {
    let from = chunk.map(|part| s.name(part)).join(", ");
    s.instruction(format!("{opcode} {address}, {{{from}}}"));
}

impl<L: Level> Scope<L> {
    /// Loads 16 bytes: 8 elements of a row. Neighbouring threads should load neighbouring 16 bytes, so that a warp
    /// moves whole lines.
    ///
    /// Executed by every thread of the scope. PTX: `ld.global.v4.b32`. Who reads the registers waits.
    #[track_caller]
    pub fn load_global_16(&mut self, from: GlobalAddress) -> Chunk {
        with(|s| {
            let from = from.text(s);
            load_chunk(s, "ld.global.v4.b32", &from)
        })
        .unwrap_or([dummy(); 4])
    }

    /// Stores 16 bytes: 8 elements of a row.
    ///
    /// Executed by every thread of the scope. PTX: `st.global.v4.b32`. The end of the kernel waits.
    #[track_caller]
    pub fn store_global_16(&mut self, to: GlobalAddress, chunk: Chunk) {
        with(|s| {
            let to = to.text(s);
            store_chunk(s, "st.global.v4.b32", &to, chunk);
        });
    }

    /// Loads one element. Eight of these move what one [`Scope::load_global_16`] does.
    ///
    /// Executed by every thread of the scope. PTX: `ld.global.b16`.
    #[track_caller]
    pub fn load_global_b16(&mut self, from: GlobalAddress) -> B16 {
        with(|s| {
            let from = from.text(s);
            load(s, "ld.global.b16", &from)
        })
        .unwrap_or(dummy())
    }

    /// Stores one element.
    ///
    /// Executed by every thread of the scope. PTX: `st.global.b16`.
    #[track_caller]
    pub fn store_global_b16(&mut self, to: GlobalAddress, value: B16) {
        with(|s| {
            let (to, value) = (to.text(s), s.name(value));
            s.instruction(format!("st.global.b16 {to}, {value}"));
        });
    }

    /// Loads 16 bytes of shared memory.
    ///
    /// Executed by every thread of the scope. PTX: `ld.shared.v4.b32`. What other threads stored is there after a
    /// barrier.
    #[track_caller]
    pub fn load_shared_16(&mut self, from: SharedAddress) -> Chunk {
        with(|s| {
            refuse_misaligned(s, from, 16);
            let from = from.text(s);
            load_chunk(s, "ld.shared.v4.b32", &from)
        })
        .unwrap_or([dummy(); 4])
    }

    /// Stores 16 bytes to shared memory.
    ///
    /// Executed by every thread of the scope. PTX: `st.shared.v4.b32`. Other threads read it after a barrier; engines
    /// after [`Scope::fence_proxy_async`] and a barrier.
    #[track_caller]
    pub fn store_shared_16(&mut self, to: SharedAddress, chunk: Chunk) {
        with(|s| {
            refuse_misaligned(s, to, 16);
            let to = to.text(s);
            store_chunk(s, "st.shared.v4.b32", &to, chunk);
        });
    }

    /// Loads one element of shared memory.
    ///
    /// Executed by every thread of the scope. PTX: `ld.shared.b16`.
    #[track_caller]
    pub fn load_shared_b16(&mut self, from: SharedAddress) -> B16 {
        with(|s| {
            refuse_misaligned(s, from, 2);
            let from = from.text(s);
            load(s, "ld.shared.b16", &from)
        })
        .unwrap_or(dummy())
    }

    /// Stores one element to shared memory.
    ///
    /// Executed by every thread of the scope. PTX: `st.shared.b16`. Others see it as with [`Scope::store_shared_16`].
    #[track_caller]
    pub fn store_shared_b16(&mut self, to: SharedAddress, value: B16) {
        with(|s| {
            refuse_misaligned(s, to, 2);
            let (to, value) = (to.text(s), s.name(value));
            s.instruction(format!("st.shared.b16 {to}, {value}"));
        });
    }

    /// Loads a number from shared memory.
    ///
    /// Executed by every thread of the scope. PTX: `ld.shared.u32`.
    #[track_caller]
    pub fn load_shared_u32(&mut self, from: SharedAddress) -> U32 {
        with(|s| {
            refuse_misaligned(s, from, 4);
            let from = from.text(s);
            load(s, "ld.shared.u32", &from)
        })
        .unwrap_or(dummy())
    }

    /// Stores a number to shared memory.
    ///
    /// Executed by every thread of the scope. PTX: `st.shared.u32`. Others see it as with [`Scope::store_shared_16`].
    #[track_caller]
    pub fn store_shared_u32(&mut self, to: SharedAddress, value: U32) {
        with(|s| {
            refuse_misaligned(s, to, 4);
            let (to, value) = (to.text(s), s.name(value));
            s.instruction(format!("st.shared.u32 {to}, {value}"));
        });
    }

    /// Rounds a sum to the type of D, to nearest even.
    ///
    /// Executed by every thread of the scope. PTX: `cvt.rn.f16.f32` or `cvt.rn.bf16.f32`.
    #[track_caller]
    pub fn round(&mut self, dtype: Dtype, value: F32) -> B16 {
        with(|s| {
            let value = s.name(value);
            load(s, &format!("cvt.rn.{dtype}.f32"), &value)
        })
        .unwrap_or(dummy())
    }

    /// Rounds two neighbouring sums to the type of D, to nearest even, and packs them: `low` comes first in memory.
    ///
    /// Executed by every thread of the scope. PTX: `cvt.rn.f16x2.f32` or `cvt.rn.bf16x2.f32`; it names the high half
    /// first.
    #[track_caller]
    pub fn pack(&mut self, dtype: Dtype, low: F32, high: F32) -> B32 {
        with(|s| pack(s, dtype, low, high)).unwrap_or(dummy())
    }

    /// Rounds neighbouring sums of a row to the type of D and packs them into chunks of 16 bytes, 8 elements each, in
    /// order.
    ///
    /// Executed by every thread of the scope. PTX: one `cvt.rn.f16x2.f32` or `cvt.rn.bf16x2.f32` for two sums.
    #[track_caller]
    pub fn pack_chunks(&mut self, dtype: Dtype, sums: &[F32]) -> Vec<Chunk> {
        with(|s| {
            let (eights, rest) = sums.as_chunks::<8>();
            if !rest.is_empty() {
                s.error(
                    format!("{} sums are not a whole number of 16-byte chunks", sums.len()),
                    "give it a multiple of 8 sums",
                );
            }
            eights.iter().map(|eight| std::array::from_fn(|i| pack(s, dtype, eight[2 * i], eight[2 * i + 1]))).collect()
        })
        .unwrap_or_default()
    }
}

fn pack(s: &mut State, dtype: Dtype, low: F32, high: F32) -> B32 {
    let result = s.fresh();
    let (to, low, high) = (s.name(result), s.name(low), s.name(high));
    s.instruction(format!("cvt.rn.{dtype}x2.f32 {to}, {high}, {low}"));
    result
}
