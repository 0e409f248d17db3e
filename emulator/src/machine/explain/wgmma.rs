//! What is said of `wgmma`s: registers that were touched too early, fences and waits that are missing, warps that do not agree.

use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::mma::wgmma::{Inputs, WARPS};
use crate::machine::mma::wgmma_work::Coming;
use crate::program::op::Op;

pub const WARPGROUP_RULE: &str = "All threads of the four warps of a warpgroup execute the same wgmma.mma_async, with the same matrix \
                                  descriptors; the number of its first warp is a multiple of 4 (PTX ISA, Warpgroup, wgmma.mma_async).";
const WAIT_RULE: &str = "Until a wgmma.wait_group has waited for its group, the registers of a wgmma.mma_async's accumulator and of its A \
                         may be touched by nothing but another one of the same shape on the same accumulator (PTX ISA, \
                         wgmma.wait_group).";
const FENCE_RULE: &str = "A wgmma.fence stands before the first wgmma.mma_async, and between any other access of a register and a \
                          wgmma.mma_async that has its accumulator or its A there (PTX ISA, wgmma.fence).";
pub const OPERAND_RULE: &str = "That a wgmma.mma_async has read its operands is known only when a wgmma.wait_group has waited for its \
                                group (PTX ISA, wgmma.wait_group).";
pub const OPERAND_HELP: &str = "Before the warpgroup says that the tile is free, let it execute a wgmma.wait_group that covers this MMA: \
                                with N, the latest N groups may still be reading.";

/// In what two executions of an MMA differ: `the descriptor of B as 0x… and 0x…`.
pub fn difference(one: &Inputs, other: &Inputs) -> String {
    match (one.a, other.a) {
        (Some(a), Some(b)) if a != b => format!("the descriptor of A as {a:#018x} and {b:#018x}"),
        _ if one.b != other.b => format!("the descriptor of B as {:#018x} and {:#018x}", one.b, other.b),
        _ => format!("scale-d as {} and {}", one.accumulate, other.accumulate),
    }
}

impl Cluster<'_> {
    /// Why a warp cannot join an MMA that others of its warpgroup have come to; `None`: it can.
    pub fn differs(&self, w: usize, first: usize, place: usize, new: &Coming) -> Option<Stop> {
        let known = self.warpgroups.get(&first)?.coming.get(place)?;
        let other = first + known.there.trailing_zeros() as usize;
        let names = (self.warp_name(other), self.warp_name(w));
        let (title, help) = if known.pc != new.pc {
            (
                format!(
                    "{} and {} execute different wgmmas as their MMA number {}",
                    names.0, names.1, self.warps[w].wgmma.count
                ),
                "Let all warps of a warpgroup take the same path to each wgmma.",
            )
        } else if known.inputs != new.inputs {
            (
                format!("{} and {} give a wgmma {}", names.0, names.1, difference(&known.inputs, &new.inputs)),
                "Compute descriptors and scale-d from values that all threads of the warpgroup share.",
            )
        } else {
            return None;
        };
        let mut problem = self.problem("wgmma-warpgroup", new.site, title, WARPGROUP_RULE, help.into());
        problem.labels = vec![
            self.label(new.site, format!("{} executes this", names.1)),
            self.label(known.site, format!("{} came here", names.0)),
        ];
        Some(Some(Box::new(problem)))
    }

    fn finding(&mut self, code: &'static str, title: String, labels: &[(u32, String)], rule: &str, help: &str) {
        self.say(Severity::Finding, code, title, labels, rule, help);
    }

    fn say(
        &mut self,
        severity: Severity,
        code: &'static str,
        title: String,
        labels: &[(u32, String)],
        rule: &str,
        help: &str,
    ) {
        let labels = labels.iter().map(|(site, text)| self.label(*site, text.as_str())).collect();
        self.findings.add(Diagnostic {
            code,
            severity,
            title,
            labels,
            rule: rule.into(),
            help: help.into(),
            count: 1,
            confirmed: None,
        });
    }

    /// A register is touched while an MMA works on it.
    pub fn touched_early(&mut self, w: usize, number: u32, pc: u32, reg: u16, written: bool, site: u32) {
        let Some(op) = self.wgmma_at(pc) else { return };
        let mma = self.kernel.code[pc as usize].site;
        let what = if op.d.contains(&reg) { "the accumulator" } else { "A" };
        let did = if written { "written" } else { "read" };
        let verb = if op.d.contains(&reg) { "adds to" } else { "reads" };
        let mut labels = vec![
            (site, format!("{} touches a register of {what} here", self.warp_name(w))),
            (mma, format!("this MMA {verb} it")),
        ];
        let committed = self.warps[w].wgmma.is_committed(number);
        let wait = self.kernel.code.iter().find(|inst| matches!(inst.op, Op::WgmmaWait { pending } if pending > 0));
        let help = if !committed {
            "Let the warpgroup execute wgmma.commit_group after the MMA, and then wgmma.wait_group 0, before the register is touched."
        } else if let Some(wait) = wait {
            labels.push((wait.site, "this wait leaves groups under way".into()));
            "Let a wgmma.wait_group cover the MMA's group before the register is touched: wgmma.wait_group 0 covers all."
        } else {
            "Execute wgmma.wait_group 0 before the register is touched."
        };
        let title = format!("a register of {what} of a wgmma is {did} before the MMA is known to be complete");
        self.finding("wgmma-not-awaited", title, &labels, WAIT_RULE, help);
    }

    /// No `wgmma.fence` lies before an MMA; with what touched one of its registers since the last one.
    pub fn missing_wgmma_fence(&mut self, w: usize, site: u32, touched: Option<(u32, bool)>) {
        let (severity, title, labels) = match touched {
            None => (
                Severity::Finding,
                format!("{} executes its first wgmma without a wgmma.fence before it", self.warp_name(w)),
                vec![(site, "this MMA may read registers before they are written".to_string())],
            ),
            Some((other, is_d)) => {
                let what = if is_d { "the accumulator" } else { "A" };
                // Compilers move accumulators there, and ptxas puts a fence of its own in front of the MMA.
                let severity = if is_d { Severity::Note } else { Severity::Finding };
                (
                    severity,
                    format!("no wgmma.fence lies between an access of a register and the MMA that has {what} there"),
                    vec![(site, format!("this MMA uses the register for {what}")), (other, "touched here".into())],
                )
            }
        };
        // Said once: from here on it is as if there were one.
        self.warps[w].wgmma.fence();
        let help = "Let all warps of the warpgroup execute wgmma.fence after the access, before the MMA.";
        self.say(severity, "missing-wgmma-fence", title, &labels, FENCE_RULE, help);
    }

    /// A thread ends without having waited for its MMAs.
    pub fn wgmma_outlives(&mut self, w: usize, pc: u32) {
        let site = self.kernel.code[pc as usize].site;
        let title = "a thread ends although it has not waited for this MMA".to_string();
        let label = vec![(site, format!("{} has not waited for it when its threads end", self.warp_name(w)))];
        let help = "Execute wgmma.commit_group after the last MMA, and wgmma.wait_group 0 before the thread ends.";
        self.finding("wgmma-outlives-thread", title, &label, WAIT_RULE, help);
    }

    /// The warps that others of a warpgroup wait for: those that have not come to an MMA.
    pub fn wgmma_lacks(&self, w: usize, number: u32) -> Vec<u32> {
        let first = self.warpgroup_of(w);
        let Some(group) = self.warpgroups.get(&first) else { return vec![] };
        let place = number.checked_sub(group.queue.epoch + 1);
        let there = place.and_then(|n| group.coming.get(n as usize)).map_or(u8::MAX, |coming| coming.there);
        (0..WARPS as u32).filter(|n| there >> n & 1 == 0).map(|n| self.warps[first].index + n).collect()
    }
}
