//! Executes PTX text on the CPU, faithfully enough to be believed, and explains what is wrong with it.
//!
//! **Does:** parse PTX text; run a launch of it, warps and asynchronous engines on a simulated clock; check every access
//! against the memory model; say what is wrong as [`Diagnostic`]s that name the source line. **Never does:** know who
//! wrote the PTX (our builder has no back door), what it computes, or what it should compute.
//!
//! ```
//! let text = r#"
//! .version 8.6
//! .target sm_100a
//! .address_size 64
//! .visible .entry fill(.param .u64 out) {
//!     .reg .b32 %lane;
//!     .reg .b64 %at, %offset;
//!     ld.param.u64 %at, [out];
//!     mov.u32 %lane, %laneid;
//!     mul.wide.u32 %offset, %lane, 4;
//!     add.s64 %at, %at, %offset;
//!     st.global.u32 [%at], %lane;
//!     ret;
//! }"#;
//! let program = emulator::load(text).expect("this is PTX");
//! let launch = emulator::Launch {
//!     entry: "fill".into(),
//!     grid: [1, 1, 1],
//!     cluster: [1, 1, 1],
//!     block: [32, 1, 1],
//!     buffers: vec![emulator::Buffer {
//!         name: "out".into(),
//!         content: emulator::Content::Undefined { bytes: 128 },
//!         ..Default::default()
//!     }],
//!     params: vec![emulator::Param::Pointer { buffer: 0, offset: 0 }],
//!     ..Default::default()
//! };
//! let report = emulator::run(&program, &launch, &emulator::Options::default());
//! assert!(report.is_clean());
//! assert_eq!(report.buffers[0].bytes[4 * 31], 31);
//! ```
//!
//! | module | what it holds |
//! |---|---|
//! | `launch`, `report`, `diagnostic` | what goes in and what comes out |
//! | [`syntax`] | PTX text to syntax tree |
//! | `numerics` | what an MMA computes: what is documented, what is assumed |
//! | `program` | names, instructions, control flow: what can be executed |
//! | `machine` | warps, memories, barriers, tensor core, and what is said when something is wrong |
//! | `confirm` | schedules that show what a finding leads to |
//! | `order` | happens-before: which access comes after which; the table of its rules |
//! | `protocol` | whether any interleaving of the barrier operations can get stuck |
//! | `time` | what things cost |
//! | `timeline` | a trace, for viewers |
//! | `assumptions`, `settled` | what no public source settles, and what is assumed instead; what a GPU settled |

mod assumptions;
mod codes;
mod confirm;
mod diagnostic;
mod launch;
mod machine;
mod numerics;
#[doc(hidden)]
pub mod order;
mod program;
mod protocol;
mod report;
mod settled;
pub mod syntax;
mod tensor_map;
mod time;
mod timeline;

pub use assumptions::{ASSUMPTIONS, Assumption};
pub use codes::CODES;
pub use confirm::confirm;
pub use diagnostic::{Diagnostic, Label, Meaning, Place, Severity, Source, Witness};
pub use launch::{
    Attributes, Block, Buffer, Content, Distribution, Field, Launch, NumberType, Output, Param, ParamValue, Random,
    Region, RegionKind, RegionSpace,
};
pub use machine::{check, run};
pub use numerics::{MmaStep, Numerics};
pub use order::{RULES, Rule};
pub use program::{FORMS, Program, load, special_registers};
pub use report::{
    Actor, Barrier, Bytes, Copy, CopyKind, CtaState, Deadlock, Event, EventKind, Issuer, Memory, Mma, OperandRead,
    Printed, Report, Usage, Variable, Wgmma,
};
pub use settled::{SETTLED, Settled};
pub use tensor_map::{Element, Swizzle, TensorMap};
pub use time::Gpu;
pub use timeline::{Timeline, is_timeline, timeline};

/// Which clusters compute the values of matrices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Values {
    /// All of them.
    #[default]
    All,
    /// Those with these numbers, in launch order. The others are blank: all rules are checked in them, and everything takes its
    /// time, but the TMA engine moves no data and the tensor core multiplies nothing. What follows from the values that they lack
    /// is marked as [`Memory::blank`] where they write it. Where anything else depends on such a value (a branch, an address, a
    /// cluster that computes), [`Report::incomplete`] says so.
    OfClusters(Vec<u32>),
}

/// What is wanted of a run. Results and times are the same in each mode that has them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mode {
    /// Results, times, and a verdict: every access is held against the rules.
    #[default]
    Judge,
    /// Results and times, which are the same. What would have to be remembered of each access is not, so that no race, no error of layout or
    /// of lifetimes, no phase that may be overtaken and no hang of another interleaving is found. What shows by itself still is: a place out of bounds, a hang, an undefined
    /// value that is stored. [`Report::incomplete`] says so.
    Compute,
    /// Times alone: matrices are neither moved nor multiplied either. All memory that the launch does not give as bytes begins with
    /// defined zeros; a kernel whose paths depend on computed data takes others. [`Report::incomplete`] says so.
    Time,
}

/// How to run a launch.
#[derive(Clone, Debug)]
pub struct Options {
    /// The GPU whose times are simulated. `None`: the one that the module's `.target` names.
    pub gpu: Option<Gpu>,
    /// Host threads that clusters run on; no result depends on it. `None`: as many as the host runs at once.
    pub threads: Option<std::num::NonZeroUsize>,
    /// `None`: the default schedule of the simulated clock. `Some(seed)`: an adversarial one that the seed repeats.
    pub seed: Option<u64>,
    /// What is wanted of the run.
    pub mode: Mode,
    /// Which clusters compute values: all, or a sample that makes a large launch fast.
    pub values: Values,
    /// A probe: every 32-bit value that a `tcgen05.ld` gives to registers is multiplied, as FP32, by this, and every one that a
    /// `tcgen05.st` takes from them is divided. With 2, a kernel whose results come from what MMAs left in FP32 accumulators, and
    /// from nowhere else, gives exactly twice of each. Where it cannot be applied (`.pack::16b` and `.unpack::16b`, FP16
    /// accumulators, A in tensor memory, the accumulator of a `wgmma`, a factor that is not finite), [`Report::incomplete`] says so.
    pub tensor_load_factor: f32,
    /// The launch comes right behind one of its own kind: L2 holds its buffers from the begin, where it has room for all of them.
    /// Otherwise it holds nothing.
    pub warm_l2: bool,
    /// How MMAs are computed.
    pub numerics: Numerics,
    /// The run ends with an error after so many warp instructions; also where one cluster executes a sixteenth of them, and 2^24 at least.
    pub max_instructions: u64,
    /// Clusters that run at once; the rest of a launch waits. `None`: what [`Attributes`] say.
    pub resident_clusters: Option<u32>,
    /// Fill [`Report::trace`].
    pub trace: bool,
    /// Fill [`Report::ctas`].
    pub keep_ctas: bool,
    /// Fill [`OperandRead::elements`] in the trace.
    pub keep_operands: bool,
}

impl Options {
    fn judges(&self) -> bool {
        self.mode == Mode::Judge
    }

    fn computes(&self) -> bool {
        self.mode != Mode::Time
    }

    /// The warp instructions of one cluster.
    fn max_instructions_of_one(&self) -> u64 {
        (self.max_instructions / 16).max(1 << 24).min(self.max_instructions)
    }
}

impl Default for Options {
    fn default() -> Options {
        Options {
            gpu: None,
            threads: None,
            mode: Mode::Judge,
            values: Values::All,
            tensor_load_factor: 1.0,
            warm_l2: false,
            resident_clusters: None,
            seed: None,
            numerics: Numerics::Fast,
            max_instructions: 1 << 28,
            trace: false,
            keep_ctas: false,
            keep_operands: false,
        }
    }
}

/// Shared memory that a CTA can have: 227 KB (CUDA Programming Guide, compute capabilities 9.0 and 10.0).
pub const MAX_SHARED: u32 = 232_448;
