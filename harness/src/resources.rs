//! Whether a kernel assembles and stays within the limits of an SM.

use crate::diagnostics::{self, Sources};
use crate::observe::Observation;
use crate::problem::Problem;
use crate::ptxas::{self, Failure};
use crate::source::Built;
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
    leaks: &str,
    sources: &Sources,
) -> Result<Outcome, String> {
    let mut wrong = Vec::new();
    let columns = seen.report.ctas.iter().map(|cta| cta.tensor_columns).max().unwrap_or(0);
    if columns > MAX_COLUMNS {
        wrong.push(format!("it holds {columns} columns of tensor memory; an SM has {MAX_COLUMNS}\n"));
    }
    if !leaks.is_empty() {
        wrong.push(leaks.to_string());
    }
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
            wrong.extend(taken.wrong.iter().map(|wrong| format!("{wrong}Built for {problem}.\n")));
            // A text of which nothing is known is not one that passed.
            registers = registers.and_then(|known| taken.registers.map(|_| known));
        }
    }
    Ok(match (wrong.first(), &registers) {
        (Some(first), _) => {
            let title = first.lines().next().unwrap_or_default();
            let title =
                title.split_once(": ").filter(|(head, _)| head.starts_with("error") || head.starts_with("finding"));
            let title = title.map_or_else(|| first.lines().next().unwrap_or_default(), |(_, rest)| rest).to_string();
            Outcome::Failed { title, text: wrong.join("\n") }
        }
        (None, Err(why)) => Outcome::NotChecked { reason: why.clone() },
        (None, Ok(registers)) => Outcome::Passed {
            detail: format!(
                "assembles for {}: {registers} registers, {} bytes of shared memory, {columns} columns of tensor memory",
                ptxas::target(&seen.built.ptx),
                first.shared
            ),
        },
    })
}

/// What a kernel takes.
struct Taken {
    /// Of a thread; why nothing is known, where there is no assembler.
    registers: Result<u32, String>,
    /// Bytes of shared memory.
    shared: u32,
    /// What the assembler refuses, or what is beyond a limit.
    wrong: Vec<String>,
}

/// Asks the assembler. An error is this machine's.
fn assembled(built: &Built, sources: &Sources) -> Result<Taken, String> {
    let mut wrong = Vec::new();
    let (registers, static_shared) = match ptxas::assemble(&built.ptx) {
        Ok(usage) => {
            let threads = built.block.iter().fold(1, |threads: u32, extent| threads.saturating_mul(*extent));
            if usage.registers > MAX_REGISTERS || usage.registers.saturating_mul(threads) > SM_REGISTERS {
                wrong.push(format!(
                    "it takes {} registers a thread, with {threads} threads; a thread may have {MAX_REGISTERS}, an SM has \
                     {SM_REGISTERS}\n",
                    usage.registers
                ));
            }
            if usage.spills > 0 {
                wrong.push(format!(
                    "{} bytes of registers are spilled to memory\ntry: Keep fewer values at a time, for example fewer \
                     columns of tensor memory.\n",
                    usage.spills
                ));
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
                    Some(place) => diagnostics::at(&title, place, "written by this call", "", sources),
                    None => format!("{title}\n"),
                });
            }
            (Ok(0), 0)
        }
        Err(Failure::Unavailable(why) | Failure::TookTooLong(why)) => (Err(why), 0),
        Err(Failure::Here(why)) => return Err(why),
    };
    let shared = built.dynamic_shared.saturating_add(static_shared);
    if shared > MAX_SHARED {
        wrong.push(format!("it takes {shared} bytes of shared memory; a CTA may have {MAX_SHARED}\n"));
    }
    Ok(Taken { registers, shared, wrong })
}
