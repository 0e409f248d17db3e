//! Rings: one tile, or one barrier, for each stage of a pipeline.

use crate::address::{DYNAMIC_SHARED, SharedAddress};
use crate::kernel::{Region, Space};
use crate::register::{Operand, U32, Value};
use crate::state::{State, with};

/// One of something in shared memory for each stage of a pipeline, all alike and one behind the other.
#[derive(Clone, Copy, Debug)]
pub struct Ring<T> {
    first: T,
    stages: u32,
    /// Bytes from one stage to the next.
    stride: u32,
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
    /// So many, the first of which is given. One that was refused has a single stage, at which nothing is refused
    /// again.
    pub(crate) fn new(first: T, stages: u32, stride: u32) -> Ring<T> {
        let stages = if first.address().refused() { 1 } else { stages };
        Ring { first, stages, stride }
    }

    pub(crate) fn first(&self) -> T {
        self.first
    }

    /// All of them, in order.
    pub(crate) fn each(&self) -> impl Iterator<Item = T> {
        (0..self.stages).map(|stage| self.stage(stage))
    }

    /// That of a stage which exists. All lie in the pool: the offset has 32 bits.
    fn stage(&self, stage: u32) -> T {
        let first = self.first.address();
        self.first.moved_to(SharedAddress { offset: first.offset + stage * self.stride, ..first })
    }

    /// Stages of the ring.
    pub fn stages(&self) -> u32 {
        self.stages
    }

    /// The one of this stage: a constant, or a register such as [`crate::PipelineState::stage`].
    ///
    /// PTX: of a constant none; of a register `mov.u32` of the first one's address and `mad.lo.u32`.
    #[track_caller]
    pub fn at(&self, stage: impl Operand<U32>) -> T {
        let (stage, first) = (stage.value(), self.first.address());
        if first.refused() {
            return self.first;
        }
        let found = with(|s| match stage {
            Value::Unsigned(index) if index >= u64::from(self.stages) => {
                // A ring lies in the pool: what begins there is its first.
                let begins = |region: &&Region| region.space == Space::DynamicShared && region.offset == first.offset;
                let name = s.regions.iter().find(begins).map_or("the ring", |region| &region.name);
                s.error(
                    format!("stage {index} of \"{name}\" does not exist: it has {} stages", self.stages),
                    format!("use a stage from 0 to {}", self.stages - 1),
                );
                None
            }
            // It is below the number of stages.
            Value::Unsigned(index) => Some(self.stage(index as u32)),
            register => {
                let base = symbol(s, first);
                let moved: U32 = s.fresh();
                let (to, index, base) = (s.name(moved), s.text(register), s.name(base));
                s.instruction(format!("mad.lo.u32 {to}, {index}, {}, {base}", self.stride));
                Some(self.first.moved_to(SharedAddress { register: Some(moved), offset: 0, ..first }))
            }
        });
        found.flatten().unwrap_or_else(|| self.first.moved_to(SharedAddress::dummy()))
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
