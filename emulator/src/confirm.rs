//! Schedules that show what a finding leads to.
//!
//! A finding says what the rules do not order; whether a run shows it is a matter of luck. Adversarial schedules are less lucky: they
//! delay engines, deliver data as early or as late as the rules allow, and let waits fail. Where one of them gives another result
//! than the run with the finding, or none, that is what the finding leads to.

use crate::diagnostic::{Severity, Witness};
use crate::launch::Launch;
use crate::machine::place_name;
use crate::program::Program;
use crate::program::op::Op;
use crate::report::{Memory, Report};
use crate::{Mode, Options, run};
use std::ops::Range;

/// Findings whose consequence is a hang, rather than a value.
const HANGS: &[&str] =
    &["can-hang", "phase-overtaken", "mbarrier-init-unordered", "wrong-phase", "phase-completed-early"];

/// Runs a launch that has findings on the schedules of these seeds, until one gives another result, and one hangs. The first finding of
/// each kind is [confirmed](crate::Diagnostic::confirmed) by it: root causes come first. A launch that did not come to its end, or
/// that has no findings, is left as it is.
pub fn confirm(program: &Program, launch: &Launch, options: &Options, report: &mut Report, seeds: Range<u64>) {
    let open = |report: &Report, hangs: bool| {
        let is_open = |d: &crate::Diagnostic| d.severity == Severity::Finding && HANGS.contains(&d.code) == hangs;
        report.findings.iter().position(is_open)
    };
    let (hang, value) = (open(report, true), open(report, false).or(open(report, true)));
    if !report.completed || value.is_none() {
        return;
    }
    let several = report.findings.iter().filter(|d| d.severity == Severity::Finding).count() > 1;
    // Sums of atomic operations may differ without a rule broken, and so may what is computed of a clock.
    let mut code = program.kernels.iter().filter(|kernel| kernel.name == launch.entry).flat_map(|kernel| &kernel.code);
    let by_schedule = code.any(|inst| match inst.op {
        Op::Atomic(_) => true,
        Op::Special { which, .. } => which.is_time(),
        _ => false,
    });
    // A schedule on which the kernel never ends needs no long run to show it.
    let budget = options.max_instructions.min(report.instructions.saturating_mul(8).saturating_add(100_000));
    for seed in seeds {
        let open = |n: Option<usize>| n.filter(|&n| report.findings[n].confirmed.is_none());
        let (hang, value) = (open(hang), open(value).filter(|_| !by_schedule));
        if hang.is_none() && value.is_none() {
            return;
        }
        // What it computes is asked, or that it hangs.
        let options = Options {
            seed: Some(seed),
            mode: Mode::Compute,
            max_instructions: budget,
            trace: false,
            keep_ctas: false,
            ..options.clone()
        };
        let other = run(program, launch, &options);
        let among = if several { " (of the findings, one or several lead to this)" } else { "" };
        if !other.completed {
            if let (Some(n), Some(why)) = (hang.or(value), other.findings.iter().find(|d| d.code == "hang")) {
                let outcome = format!("the kernel hangs: {}{among}", why.title);
                report.findings[n].confirmed = Some(Witness { seed, outcome });
            }
        } else if let Some(n) = value
            && let Some(outcome) = difference(launch, &report.buffers, &other.buffers)
        {
            report.findings[n].confirmed = Some(Witness { seed, outcome: outcome + among });
        }
    }
}

/// Where two runs left other bytes: the first element, and how many. `ours`: of the run with the finding.
fn difference(launch: &Launch, ours: &[Memory], theirs: &[Memory]) -> Option<String> {
    for ((buffer, a), b) in launch.buffers.iter().zip(ours).zip(theirs) {
        let size = buffer.element_bytes.unwrap_or(1).clamp(1, 8) as usize;
        let element = |memory: &Memory, at: usize| {
            let defined = (at..at + size).all(|byte| memory.is_defined(byte));
            defined.then(|| memory.bytes.get(at..at + size)).flatten().map(<[u8]>::to_vec)
        };
        let other = |at: &usize| element(a, *at) != element(b, *at);
        let mut places = (0..a.bytes.len()).step_by(size).filter(other);
        let Some(first) = places.next() else { continue };
        let more = places.count();
        let place = place_name(&buffer.name, buffer.row_bytes, size as u32, first as u64);
        let text = |value: Option<Vec<u8>>| match value {
            Some(bytes) => bytes.iter().rev().fold(String::from("0x"), |text, byte| text + &format!("{byte:02x}")),
            None => "undefined".into(),
        };
        let also = match more {
            0 => String::new(),
            1 => ", and one more element differs".into(),
            n => format!(", and {n} more elements differ"),
        };
        let (now, then) = (element(b, first), element(a, first));
        return Some(match (now, then) {
            // An undefined value is never the right one.
            (Some(now), None) => format!("{place} is {}, in this run it is undefined{also}", text(Some(now))),
            (now, then) => format!("{place} is {} instead of {}{also}", text(now), text(then)),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::launch::{Buffer, Content};

    /// The run with the finding leaves nothing, another a value: that is not said to be wrong.
    #[test]
    fn an_undefined_value_is_not_what_should_be_there() {
        let content = Content::Undefined { bytes: 2 };
        let buffer = Buffer { name: "D".into(), content, element_bytes: Some(2), ..Buffer::default() };
        let launch = Launch { buffers: vec![buffer], ..Launch::default() };
        let (nothing, mut value) = (Memory::undefined(2), Memory::undefined(2));
        value.store(0, 2, 0x4900, true);
        let told = |ours: &Memory, theirs: &Memory| {
            difference(&launch, std::slice::from_ref(ours), std::slice::from_ref(theirs)).unwrap_or_default()
        };
        assert_eq!(told(&nothing, &value), "`D` at byte 0 is 0x4900, in this run it is undefined");
        assert_eq!(told(&value, &nothing), "`D` at byte 0 is undefined instead of 0x4900");
    }
}
