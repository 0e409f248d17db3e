//! Where a role stands in a ring: the stage, and the phase of that stage's barrier.

use crate::level::Level;
use crate::register::{U32, Value};
use crate::scope::Scope;
use crate::state::with;

/// The place of one role in a ring of stages. All roles walk through the stages in the same order; each keeps a state
/// of its own, in two registers that [`PipelineState::advance`] changes: a copy of the state is the same state.
///
/// A stage's barriers complete one phase each time round, so the parity to wait for flips when the stage index wraps.
/// Consumers begin with parity 0: their first wait is for data that somebody brings. Producers begin with parity 1: a
/// wait for that on a fresh barrier passes at once, and at the beginning every stage is free.
#[derive(Clone, Copy, Debug)]
#[must_use = "the state says which stage and which phase come next"]
pub struct PipelineState {
    stage: U32,
    phase: U32,
    stages: u32,
}

impl PipelineState {
    /// The state of who fills stages, before the first.
    ///
    /// Executed by every thread of the scope. PTX: two `mov.u32`.
    #[track_caller]
    pub fn producer<L: Level>(scope: &mut Scope<L>, stages: u32) -> PipelineState {
        PipelineState::begin(scope, stages, 1)
    }

    /// The state of who waits for full stages, before the first.
    ///
    /// Executed by every thread of the scope. PTX: two `mov.u32`.
    #[track_caller]
    pub fn consumer<L: Level>(scope: &mut Scope<L>, stages: u32) -> PipelineState {
        PipelineState::begin(scope, stages, 0)
    }

    #[track_caller]
    fn begin<L: Level>(scope: &mut Scope<L>, stages: u32, phase: u32) -> PipelineState {
        if stages == 0 {
            with(|s| s.error("a ring of 0 stages", "use 1 stage or more"));
        }
        PipelineState { stage: scope.variable(0), phase: scope.variable(phase), stages }
    }

    /// The stage that is next. No instruction.
    pub fn stage(self) -> U32 {
        self.stage
    }

    /// The parity to wait for at that stage's barrier. No instruction.
    pub fn phase(self) -> U32 {
        self.phase
    }

    /// Goes on to the next stage; from the last one to the first, and then the phase flips.
    ///
    /// Executed by every thread of the scope. PTX: `add.u32`, `setp.eq.u32`, and under that predicate `mov.u32` and
    /// `xor.b32`; for a ring of one stage `xor.b32` alone.
    #[track_caller]
    pub fn advance<L: Level>(self, _scope: &mut Scope<L>) {
        with(|s| {
            let (stage, phase) = (s.name(self.stage), s.name(self.phase));
            if self.stages == 1 {
                s.instruction(format!("xor.b32 {phase}, {phase}, 1"));
                return;
            }
            s.instruction(format!("add.u32 {stage}, {stage}, 1"));
            let wraps: crate::Pred =
                s.binary("setp.eq.u32", Value::of(self.stage), Value::Unsigned(u64::from(self.stages)));
            let wraps = s.name(wraps);
            s.instruction(format!("@{wraps} mov.u32 {stage}, 0"));
            s.instruction(format!("@{wraps} xor.b32 {phase}, {phase}, 1"));
        });
    }
}
