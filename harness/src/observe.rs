//! One run, looked at closely: what milestones and structure are read from.

use crate::compare::Comparison;
use crate::inputs::{Inputs, to_bytes};
use crate::launch;
use crate::mismatch::Mismatch;
use crate::placement::Refused;
use crate::reference::Reference;
use crate::source::{Built, Matrix};
use emulator::{Actor, Copy, CopyKind, Event, EventKind, Launch, Mma, Options, Program, Report};
use ptx::Region;
use std::sync::Arc;

/// A kernel, what it was run on, and what came of it.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The kernel.
    pub built: Built,
    /// A and B.
    pub inputs: Inputs,
    /// What D must be. Runs on the same inputs share it.
    pub reference: Arc<Reference>,
    /// What D is.
    pub comparison: Comparison,
    /// The run.
    pub report: Report,
    /// SMs of the GPU that the kernel was built for; 148 if nobody said ([`Observation::on`]).
    pub sms: u32,
}

/// Multiplications (each with its addition) of all MMAs of a run that was traced.
pub(crate) fn products_of_mmas(report: &Report) -> u64 {
    let products = |event: &Event| match &event.kind {
        EventKind::Mma(mma) => mma.shape.iter().map(|extent| u64::from(*extent)).product::<u64>(),
        _ => 0,
    };
    report.trace.iter().map(products).sum()
}

impl Observation {
    /// Runs a kernel once. A launch that is refused is a run that could not begin.
    pub fn new(built: &Built, program: &Program, inputs: Inputs, options: &Options) -> Observation {
        let reference = Arc::new(Reference::new(&inputs));
        Observation::against(reference, built, program, inputs, options)
    }

    /// The same, where it is known what D must be.
    pub fn against(
        reference: Arc<Reference>,
        built: &Built,
        program: &Program,
        inputs: Inputs,
        options: &Options,
    ) -> Observation {
        let launch = launch::launch(built, &inputs);
        Observation::launched(reference, built, inputs, run(program, launch, options))
    }

    /// The same, of a launch that need not be the kernel's own.
    pub fn of(
        reference: Arc<Reference>,
        built: &Built,
        program: &Program,
        inputs: Inputs,
        launch: &Launch,
        options: &Options,
    ) -> Observation {
        Observation::launched(reference, built, inputs, emulator::run(program, launch, options))
    }

    fn launched(reference: Arc<Reference>, built: &Built, inputs: Inputs, report: Report) -> Observation {
        let nothing = emulator::Memory::default();
        let d = report.buffers.get(launch::buffer(Matrix::D)).unwrap_or(&nothing);
        let comparison = Comparison::new(&reference, d);
        Observation { built: built.clone(), inputs, reference, comparison, report, sms: 148 }
    }

    /// The same, of a kernel that was built for a GPU of so many SMs.
    pub fn on(self, sms: u32) -> Observation {
        Observation { sms, ..self }
    }

    /// Copies by the TMA engine.
    pub fn copies(&self) -> impl Iterator<Item = (&Event, &Copy)> {
        self.report.trace.iter().filter_map(|event| match &event.kind {
            EventKind::Copy(copy) => Some((event, copy.as_ref())),
            _ => None,
        })
    }

    /// Events in order of time, with their place in that order.
    pub fn events(&self) -> impl Iterator<Item = (usize, &Event)> {
        self.report.trace.iter().enumerate()
    }

    /// Events of a warp of the first CTA.
    pub fn of_warp(&self, warp: u32) -> impl Iterator<Item = (usize, &Event)> {
        self.events().filter(move |(_, event)| event.cta == 0 && event.actor == Actor::Warp(warp))
    }

    /// Warps of a CTA: at most 32, whatever a recipe asks for.
    pub fn warps(&self) -> u32 {
        const LANES: u32 = 32;
        const MOST: u32 = 32;
        self.built
            .block
            .iter()
            .fold(1, |threads: u32, extent| threads.saturating_mul(*extent))
            .div_ceil(LANES)
            .min(MOST)
    }

    /// MMAs, in the order of issue.
    pub fn mmas(&self) -> Vec<(&Event, &Mma)> {
        let mut mmas = Vec::new();
        for event in &self.report.trace {
            if let EventKind::Mma(mma) = &event.kind {
                mmas.push((event, mma.as_ref()));
            }
        }
        mmas
    }

    /// Bytes that threads stored to D.
    pub fn bytes_stored_to_d(&self) -> u64 {
        let d = launch::buffer(Matrix::D);
        let stored = |event: &Event| match event.kind {
            EventKind::GlobalStore { buffer, bytes } if buffer == d => u64::from(bytes),
            _ => 0,
        };
        self.report.trace.iter().map(stored).sum()
    }

    /// Multiplications (each with its addition) of all MMAs.
    pub fn products_of_mmas(&self) -> u64 {
        products_of_mmas(&self.report)
    }

    /// A mismatch of this run, or of another run of the same kernel that was not traced: every run stores the same.
    pub fn told(&self, mismatch: Mismatch) -> Mismatch {
        mismatch.stored(self.bytes_stored_to_d(), self.report.findings.iter().map(|found| found.code))
    }

    /// Of A and B, those that hold something else than before the run.
    pub fn overwritten(&self) -> Vec<Matrix> {
        let kept = |matrix: &Matrix| {
            let before = if *matrix == Matrix::A { &self.inputs.a } else { &self.inputs.b };
            let after = self.report.buffers.get(launch::buffer(*matrix));
            after.is_some_and(|after| after.bytes == to_bytes(before))
        };
        // A launch that was refused has no buffers, and changed nothing.
        let ran = !self.report.buffers.is_empty();
        [Matrix::A, Matrix::B].into_iter().filter(|matrix| ran && !kept(matrix)).collect()
    }

    /// The first store to a matrix in global memory.
    pub fn first_store_to_matrix(&self, matrix: Matrix) -> Option<&Event> {
        let at = launch::buffer(matrix);
        self.report.trace.iter().find(|event| match &event.kind {
            EventKind::GlobalStore { buffer, .. } => *buffer == at,
            EventKind::Copy(copy) => copy.kind != CopyKind::Load && copy.buffer == Some(at),
            _ => false,
        })
    }

    /// The first load of a matrix from global memory.
    pub fn first_load_of_matrix(&self, matrix: Matrix) -> Option<&Event> {
        let at = launch::buffer(matrix);
        self.report.trace.iter().find(|event| match &event.kind {
            EventKind::GlobalLoad { buffer, .. } => *buffer == at,
            EventKind::Copy(copy) => copy.kind == CopyKind::Load && copy.buffer == Some(at),
            _ => false,
        })
    }

    /// The first store of a warp to this part of shared memory.
    pub fn first_store_to(&self, region: &Region) -> Option<&Event> {
        self.report.trace.iter().find(|event| is_store_to(event, region))
    }
}

/// The report of a launch, also of one that is refused.
pub(crate) fn run(program: &Program, launch: Result<Launch, Refused>, options: &Options) -> Report {
    match launch {
        Ok(launch) => emulator::run(program, &launch, options),
        Err(refused) => Report { findings: vec![refused.diagnostic()], ..Report::default() },
    }
}

/// What is said of a kernel after whose run A or B is not what it was.
pub(crate) fn overwrites(matrix: Matrix) -> String {
    format!("the kernel writes to {matrix}, which holds something else after it")
}

/// Whether an event stores to this part of shared memory.
pub fn is_store_to(event: &Event, region: &Region) -> bool {
    match event.kind {
        EventKind::SharedStore { offset, bytes } => {
            let (start, end) = (i64::from(offset), i64::from(offset) + i64::from(bytes));
            let (first, last) = (i64::from(region.offset), i64::from(region.offset) + i64::from(region.bytes));
            start < last && first < end
        }
        _ => false,
    }
}
