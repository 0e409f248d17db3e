//! Rings: one tile, or one barrier, for each stage of a pipeline.

use crate::address::{DYNAMIC_SHARED, SharedAddress};
use crate::register::{Operand, U32, Value};
use crate::state::{State, with};

/// One of something in shared memory for each stage of a pipeline, all alike and one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Ring<T> {
    pub(crate) first: T,
    pub(crate) stages: u32,
    /// Bytes from one stage to the next.
    pub(crate) stride: u32,
}

/// What a [`Ring`] can hold: [`crate::Tile`] and the kinds of barriers.
pub trait Staged: sealed::Staged {}
impl<T: sealed::Staged> Staged for T {}

pub(crate) mod sealed {
    use crate::address::SharedAddress;

    pub trait Staged: Copy {
        fn address(self) -> SharedAddress;
        fn moved_to(self, address: SharedAddress) -> Self;
    }
}

impl<T: Staged> Ring<T> {
    /// Stages of the ring.
    pub fn stages(&self) -> u32 {
        self.stages
    }

    /// The one of this stage: a constant, or a register such as [`crate::PipelineState::stage`].
    ///
    /// PTX: of a constant none; of a register `mov.u32` of the first one's address and `mad.lo.u32`.
    #[track_caller]
    pub fn at(&self, stage: impl Operand<U32>) -> T {
        let stage = stage.value();
        let first = self.first.address();
        let address = with(|s| match stage {
            Value::Unsigned(index) if index >= u64::from(self.stages) => {
                s.error(
                    format!("stage {index} does not exist: the ring has {} stages", self.stages),
                    format!("use a stage from 0 to {}", self.stages.saturating_sub(1)),
                );
                SharedAddress::dummy()
            }
            // Stages lie in the pool: the offset has 32 bits.
            Value::Unsigned(index) => {
                SharedAddress { offset: first.offset.wrapping_add(index as u32 * self.stride), ..first }
            }
            register => {
                let base = symbol(s, first);
                let moved: U32 = s.fresh();
                let (to, index, base) = (s.name(moved), s.text(register), s.name(base));
                s.instruction(format!("mad.lo.u32 {to}, {index}, {}, {base}", self.stride));
                SharedAddress { register: Some(moved), offset: 0, ..first }
            }
        });
        self.first.moved_to(address.unwrap_or(SharedAddress::dummy()))
    }
}

/// The address of something in dynamic shared memory, in a register.
fn symbol(s: &mut State, address: SharedAddress) -> U32 {
    s.owns(address.kernel);
    let result = s.fresh();
    let to = s.name(result);
    s.instruction(match address.offset {
        0 => format!("mov.u32 {to}, {DYNAMIC_SHARED}"),
        offset => format!("mov.u32 {to}, {DYNAMIC_SHARED}+{offset}"),
    });
    result
}
