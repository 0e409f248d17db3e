//! What clusters leave, and the report of a run.

use super::spare::Spare;
use super::{Chip, Running};
use crate::diagnostic::{Label, Meaning};
use crate::machine::cluster::Cluster;
use crate::machine::explain::findings::Findings;
use crate::machine::explain::protocol::TAKES_OVER;
use crate::machine::explain::statements::Statements;
use crate::machine::schedule::Progress;
use crate::program::SharedVariable;
use crate::report::{Deadlock, Event, Report, Variable};
use crate::{Mode, Values};
use std::sync::Arc;

impl<'a> Chip<'a> {
    /// Takes over what a cluster leaves.
    pub fn conclude(&mut self, running: Running<'a>, ended: bool) {
        let mut cluster = running.cluster;
        cluster.global = self.global.clone();
        cluster.tell_overtaken(ended);
        cluster.tell_unshifted();
        match ended {
            true => {
                let sums = cluster.supplies.sums_for_a();
                sums.into_iter().for_each(|finding| cluster.findings.add(finding));
                cluster.finish();
            }
            false => cluster.tell_depths(&[]),
        }
        cluster.explain_races();
        if ended {
            cluster.unawaited_writes();
            cluster.uses_behind_the_end();
            if self.s.options.judges() {
                self.deadlock.join(cluster.judge_protocol(&mut self.judged, &self.ahead));
            }
        }
        for label in cluster.timing_labels() {
            if !self.timing.contains(&label) {
                self.timing.push(label);
            }
        }
        self.remember_parties(&cluster);
        let missing = cluster
            .what_is_missing()
            .into_iter()
            .chain(cluster.what_factor_misses())
            .chain(cluster.not_modelled.clone());
        self.missing.extend(missing.map(|what| (running.index, what)));
        self.cycles = self.cycles.max(cluster.end);
        self.instructions += cluster.instructions;
        self.guessed |= cluster.guessed;
        if self.s.options.keep_ctas {
            self.ctas.push((running.index, cluster.snapshots()));
        }
        self.trace.push((running.index, std::mem::take(&mut cluster.trace)));
        self.printed.push((running.index, std::mem::take(&mut cluster.printed)));
        self.printed_beyond += cluster.printed_beyond;
        self.findings.push((running.index, std::mem::take(&mut cluster.findings)));
        self.inputs.join(std::mem::take(&mut cluster.inputs));
        std::mem::take(&mut cluster.if_clean).into_iter().for_each(|note| self.if_clean.add(note));
        self.drained.join(std::mem::take(&mut cluster.drained));
        self.supplies.join(std::mem::take(&mut cluster.supplies));
        self.sums.join(std::mem::take(&mut cluster.sums));
        self.placed.join(std::mem::take(&mut cluster.placed));
        cluster.global = Arc::default();
        self.ended.push(*cluster);
    }

    pub fn report(mut self, completed: bool) -> Report {
        // Of clusters that were cut off, only the first that could not go on has something to say.
        let mut rest = std::mem::take(&mut self.running);
        rest.sort_by_key(|r| r.index);
        let stopped = rest.iter().position(|r| r.progress == Progress::Stopped).map(|n| rest.remove(n));
        for cut in rest {
            self.instructions += cut.cluster.instructions;
            self.cycles = self.cycles.max(cut.cluster.end);
        }
        if let Some(first) = stopped {
            self.conclude(first, false);
        }
        let computes = self.s.options.computes();
        let mut ended = std::mem::take(&mut self.ended);
        // As they began, so that most memory goes back to the thread that had asked for it.
        ended.sort_by_key(|cluster| cluster.index);
        self.crew.all(ended, move |cluster| {
            let Cluster { ctas, warps, .. } = cluster;
            if computes {
                Spare::keep(Cluster::spare(ctas, warps));
            }
        });
        let usage = self.usage();
        self.findings.sort_by_key(|f| f.0);
        self.ctas.sort_by_key(|c| c.0);
        self.trace.sort_by_key(|t| t.0);
        self.printed.sort_by_key(|t| t.0);
        let mut findings = Findings::default();
        for (_, more) in self.findings {
            findings.join(more);
        }
        let place = |site: u32| self.s.kernel.sites.get(site as usize).cloned().unwrap_or_default();
        let label = |site: u32, text: String| Label::new(place(site), text);
        if completed {
            self.drained.loads_beside(label).into_iter().for_each(|finding| findings.add(finding));
        }
        if completed && findings.is_empty() {
            self.supplies.sums_between().into_iter().for_each(|finding| findings.add(finding));
        }
        if completed && findings.is_empty() {
            let missing = self.sums.judge(|mma| self.s.kernel.may_be_told_to_leave_out(mma), label);
            let told =
                [missing, self.sums.mixed.map(|mixed| mixed.judge(label)), self.placed.judge(&self.global, label)];
            told.into_iter().flatten().for_each(|finding| findings.add(finding));
        }
        if completed && findings.is_empty() {
            let told = [
                self.placed.judge_columns(self.s.kernel, label),
                self.placed.judge_lanes(label),
                self.placed.judge_chunks(label),
                self.placed.judge_boxes(label),
            ];
            told.into_iter().flatten().for_each(|told| findings.add(told));
        }
        if completed && findings.is_empty() {
            let told = [self.sums.judge_depths(label), self.sums.judge_parts(label), self.placed.judge_rows(label)];
            told.into_iter().flatten().for_each(|note| findings.add(note));
        }
        if completed && findings.is_empty() {
            findings.join(self.if_clean);
            // What threads copy is known of clusters that compute values.
            let copies = self.s.kernel.multiplies && self.s.options.values == Values::All;
            let of_all = [
                self.inputs.judge(&self.global, copies, label),
                self.drained.judge(label),
                self.supplies.judge(label),
                self.outputs.judge(&self.global.buffers, label),
            ];
            of_all.into_iter().flatten().for_each(|note| findings.add(note));
        }
        let (findings, notes) = findings.finish(&Statements::of(&self.s.kernel.code, &self.s.kernel.sites));
        let mut trace: Vec<Event> = self.trace.into_iter().flat_map(|t| t.1).collect();
        trace.sort_by_key(|event| event.start);
        let hangs = findings.iter().any(|f| f.code == "hang");
        let deadlock = match self.deadlock {
            _ if hangs => Deadlock::Possible,
            judged if completed => judged,
            _ => Deadlock::NotJudged,
        };
        let global = Arc::try_unwrap(self.global).unwrap_or_else(|shared| (*shared).clone());
        let buffers = global.buffers.into_iter().take(self.s.launch.buffers.len());
        let mut incomplete: Vec<String> = Vec::new();
        match self.s.options.mode {
            Mode::Judge => {}
            Mode::Compute => incomplete.push("only results and times were wanted: no access was checked".into()),
            Mode::Time => {
                incomplete.push("only times were simulated: nothing was computed, and no access was checked".into());
            }
        }
        if let Values::OfClusters(wanted) = &self.s.options.values
            && let Some(never) = wanted.iter().find(|index| !self.computed.contains(index))
        {
            incomplete.push(format!("values of cluster {never} were to be computed, but it never ran"));
        }
        let factor = self.s.options.tensor_load_factor;
        if !factor.is_finite() {
            incomplete.push(format!("what `tcgen05.ld` brings was multiplied by {factor}, which tells nothing"));
        }
        self.missing.sort();
        for (_, what) in self.missing {
            if !incomplete.contains(&what) {
                incomplete.push(what);
            }
        }
        // What is done with a cluster that was taken over, this run has not seen.
        if let [1..=u32::MAX, 0] = self.requests_refused_and_granted
            && let Some(label) = self.timing.iter_mut().find(|label| label.text == TAKES_OVER)
        {
            label.meaning = Meaning::NeverGranted;
            label.text += "; here each request is refused, since all clusters run at once. With `resident_clusters` 1 in the launch's `attributes`, one runs at \
                           a time, and takes the others over";
        }
        let kernel = &self.s.kernel;
        let variable = |v: &SharedVariable| Variable {
            name: v.name.clone(),
            offset: v.offset.wrapping_sub(kernel.dynamic_start) as i32,
            bytes: v.bytes,
        };
        let variables = kernel.shared.iter().map(variable).collect();
        Report {
            incomplete,
            completed,
            deadlock,
            timing: self.timing,
            findings,
            notes,
            cycles: self.cycles,
            instructions: self.instructions,
            clusters: self.begun,
            computed_clusters: self.computed.len() as u32,
            usage,
            buffers: buffers.map(|b| b.memory).collect(),
            ctas: self.ctas.into_iter().flat_map(|c| c.1).collect(),
            trace,
            variables,
            printed: self.printed.into_iter().flat_map(|t| t.1).collect(),
            printed_beyond: self.printed_beyond,
        }
    }
}
