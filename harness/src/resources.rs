//! Whether a kernel assembles and stays within the limits of an SM.

use crate::diagnostics::{self, Sources};
use crate::observe::Observation;
use crate::problem::Problem;
use crate::ptxas::{self, Failure};
use crate::source::Built;
use crate::told::Told;
use crate::verdict::Outcome;

/// Registers that a thread may have.
const MAX_REGISTERS: u32 = 255;
/// Registers of an SM.
const SM_REGISTERS: u32 = 65_536;
/// Bytes of shared memory that a CTA may have, static and dynamic (227 KiB).
const MAX_SHARED: u32 = 232_448;
/// Columns of tensor memory.
const MAX_COLUMNS: u32 = 512;

/// Checks the kernel of a run, and others that were built for other problems. `leaks` is what builder or emulator say of tensor
/// memory that was not freed.
///
/// # Errors
/// When the assembler does not work on this machine.
pub(crate) fn check(
    seen: &Observation,
    others: &[(&Built, Problem)],
    leaks: Option<Wrong>,
    sources: &Sources,
) -> Result<Outcome, String> {
    let mut wrong: Vec<Wrong> = Vec::new();
    let columns = seen.report.ctas.iter().map(|cta| cta.tensor_columns).max().unwrap_or(0);
    if columns > MAX_COLUMNS {
        wrong.push(Wrong::new(format!("it holds {columns} columns of tensor memory; an SM has {MAX_COLUMNS}")));
    }
    wrong.extend(leaks);
    let first = assembled(&seen.built, sources)?;
    wrong.extend(first.wrong.iter().cloned());
    // A kernel may be another one for each problem.
    let mut texts = vec![&seen.built.ptx];
    let mut registers = first.registers;
    for (built, problem) in others {
        // Where the assembler is missing, or took all of its time, it is not asked again.
        if wrong.is_empty() && registers.is_ok() && !texts.contains(&&built.ptx) {
            texts.push(&built.ptx);
            let taken = assembled(built, sources)?;
            let of = |wrong: Wrong| Wrong { told: wrong.told + format!("Built for {problem}.\n").as_str(), ..wrong };
            wrong.extend(taken.wrong.into_iter().map(of));
            // A text of which nothing is known is not one that passed.
            registers = registers.and_then(|known| taken.registers.map(|_| known));
        }
    }
    Ok(match (wrong.first(), &registers) {
        (Some(first), _) => {
            Outcome::failed(first.title.clone(), Told::joined(wrong.into_iter().map(|wrong| wrong.told)))
        }
        (None, Err(Unknown { why, late })) => Outcome::NotChecked { reason: why.clone(), late: *late },
        (None, Ok(registers)) => Outcome::Passed {
            detail: format!(
                "assembles for {}: {registers} registers, {} bytes of shared memory, {columns} columns of tensor memory",
                ptxas::target(&seen.built.ptx),
                first.shared
            ),
        },
    })
}

/// One thing that is wrong.
#[derive(Clone)]
pub(crate) struct Wrong {
    /// In one sentence.
    pub title: String,
    pub told: Told,
}

impl Wrong {
    /// What one sentence says.
    fn new(title: String) -> Wrong {
        Wrong { told: format!("{title}\n").into(), title }
    }
}

/// Why nothing is known of what a kernel takes.
#[derive(Clone)]
struct Unknown {
    why: String,
    /// The assembler did not come to its end in time.
    late: bool,
}

/// What a kernel takes.
struct Taken {
    /// Of a thread; why nothing is known, where there is no assembler.
    registers: Result<u32, Unknown>,
    /// Bytes of shared memory.
    shared: u32,
    /// What the assembler refuses, or what is beyond a limit.
    wrong: Vec<Wrong>,
}

/// Asks the assembler. An error is this machine's.
fn assembled(built: &Built, sources: &Sources) -> Result<Taken, String> {
    let mut wrong = Vec::new();
    let (registers, static_shared) = match ptxas::assemble(&built.ptx) {
        Ok(usage) => {
            let threads = built.block.iter().fold(1, |threads: u32, extent| threads.saturating_mul(*extent));
            if usage.registers > MAX_REGISTERS || usage.registers.saturating_mul(threads) > SM_REGISTERS {
                wrong.push(Wrong::new(format!(
                    "it takes {} registers a thread, with {threads} threads; a thread may have {MAX_REGISTERS}, an SM has \
                     {SM_REGISTERS}",
                    usage.registers
                )));
            }
            if usage.spills > 0 {
                let help = "Keep fewer values at a time, for example fewer columns of tensor memory.";
                let title = format!("{} bytes of registers are spilled to memory", usage.spills);
                wrong.push(Wrong { told: Told::with_help(format!("{title}\ntry: {help}\n"), help), title });
            }
            (Ok(usage.registers), usage.static_shared)
        }
        Err(Failure::Refused(errors)) => {
            for error in errors {
                let title = match error.line {
                    0 => format!("ptxas refuses the PTX: {}", error.message),
                    line => format!("ptxas refuses line {line} of the PTX: {}", error.message),
                };
                wrong.push(match &error.source {
                    Some(place) => {
                        Wrong { told: diagnostics::at(&title, place, "written by this call", "", sources), title }
                    }
                    None => Wrong::new(title),
                });
            }
            (Ok(0), 0)
        }
        Err(Failure::Unavailable(why)) => (Err(Unknown { why, late: false }), 0),
        Err(Failure::TookTooLong(why)) => (Err(Unknown { why, late: true }), 0),
        Err(Failure::Here(why)) => return Err(why),
    };
    let shared = built.dynamic_shared.saturating_add(static_shared);
    if shared > MAX_SHARED {
        wrong.push(Wrong::new(format!("it takes {shared} bytes of shared memory; a CTA may have {MAX_SHARED}")));
    }
    Ok(Taken { registers, shared, wrong })
}
