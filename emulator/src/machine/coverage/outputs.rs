//! Buffers that hold nothing before a launch: whether it writes all of them, and no byte twice.

use crate::diagnostic::{Diagnostic, Label, Severity};
use crate::launch::{Buffer, Content, Launch};
use crate::machine::chip::outbox::{Item, Write};
use crate::machine::chip::tracker::Tracker;
use crate::machine::explain::names::counted;
use crate::machine::memory::{Global, GlobalBuffer};
use crate::order::Strength;

/// Bytes that were written although they had been before.
#[derive(Clone, Copy, Debug)]
struct Again {
    /// The first of them, who had written it, and who wrote it again.
    at: u64,
    before: Option<u32>,
    site: u32,
    /// So many in all.
    bytes: u64,
}

#[derive(Clone, Debug, Default)]
struct Output {
    /// It held nothing before.
    empty: bool,
    /// What it holds afterwards is asked for.
    wanted: bool,
    /// The launch reads it, or combines what it writes with what is there: it is for its own use.
    used: bool,
    /// The first statement that wrote to it.
    written: Option<u32>,
    again: Option<Again>,
    /// The same where the value is the one that is there.
    repeated: Option<Again>,
}

#[derive(Debug, Default)]
pub struct Outputs {
    /// By number of the buffer.
    list: Vec<Output>,
    /// The launch writes to some buffer.
    any: bool,
}

impl Outputs {
    pub fn new(launch: &Launch) -> Outputs {
        let empty = |content: &Content| matches!(content, Content::Undefined { .. });
        let wanted = |n: usize| launch.outputs.iter().any(|output| output.buffer == n);
        let of = |(n, b): (usize, &Buffer)| Output { empty: empty(&b.content), wanted: wanted(n), ..Output::default() };
        Outputs { list: launch.buffers.iter().enumerate().map(of).collect(), any: false }
    }

    /// What a cluster does, before it takes effect. Whether it is a write that changes nothing.
    pub fn see(&mut self, item: &Item, same: bool, global: &Global, tracker: &Tracker) {
        match item {
            Item::Read { runs, .. } => self.used(runs.buffer),
            Item::Map { buffer, .. } => self.used(*buffer),
            Item::Load(job) => job.buffers().for_each(|buffer| self.used(buffer)),
            Item::Atomic(job) => {
                self.any = true;
                job.places().for_each(|(buffer, _)| self.used(buffer));
            }
            Item::Write(write) => self.write(write, same, global, tracker),
            _ => {}
        }
    }

    fn used(&mut self, buffer: usize) {
        if let Some(output) = self.list.get_mut(buffer) {
            output.used = true;
        }
    }

    fn write(&mut self, write: &Write, same: bool, global: &Global, tracker: &Tracker) {
        let Write { stamp, how, blank, .. } = write;
        self.any |= !write.runs.is_empty();
        for runs in &write.runs {
            let Some(output) = self.list.get_mut(runs.buffer).filter(|output| output.empty) else { continue };
            output.used |= how.is_some() || stamp.strength != Strength::Weak;
            output.written.get_or_insert(stamp.site);
            // Of what is blank nobody knows the value.
            if output.used || *blank {
                continue;
            }
            let memory = &global.buffers[runs.buffer].memory;
            for start in runs.starts() {
                let (first, bytes) = memory.defined_among(start as usize, runs.bytes as usize);
                let Some(at) = first.map(|at| at as u64) else { continue };
                let new = || Again {
                    at,
                    before: tracker.writer(runs.buffer, at).map(|by| by.site),
                    site: stamp.site,
                    bytes: 0,
                };
                // Threads that share a value may all store it.
                let again = if same { &mut output.repeated } else { &mut output.again };
                again.get_or_insert_with(new).bytes += bytes as u64;
            }
        }
    }

    /// The launch is complete, and nothing else is wrong.
    pub fn judge(&self, buffers: &[GlobalBuffer], label: impl Fn(u32, String) -> Label) -> Vec<Diagnostic> {
        let mut list = Vec::new();
        let judged = |(output, buffer): &(&Output, &GlobalBuffer)| {
            output.empty && !output.used && !buffer.memory.bytes.is_empty()
        };
        for (output, buffer) in self.list.iter().zip(buffers).filter(judged) {
            if output.written.is_none() {
                if output.wanted || !self.any {
                    list.push(never_written(buffer, label(0, "the kernel begins here".into())));
                }
                continue;
            }
            list.extend(not_written(buffer, output, &label));
            list.extend(output.again.map(|again| again.said(buffer, &label)));
        }
        list
    }
}

fn note(code: &'static str, title: String, labels: Vec<Label>, rule: &str, help: &str) -> Diagnostic {
    let (rule, help) = (rule.into(), help.into());
    Diagnostic { code, severity: Severity::Note, title, labels, rule, help, count: 1, confirmed: None }
}

/// A buffer that the launch might have written.
fn never_written(buffer: &GlobalBuffer, begins: Label) -> Diagnostic {
    note(
        "output-not-written",
        format!("nothing is written to `{}`, and nothing reads it", buffer.name),
        vec![begins],
        "A buffer without a content holds nothing before the launch. What a kernel leaves in registers, shared memory and tensor memory is gone \
         when it ends.",
        "Store the result, by threads (st.global) or by copies (cp.async.bulk.tensor, and its group waited for): look whether the statements that should \
         do so are executed, and by whom.",
    )
}

/// What is missing of a buffer whose rows are known: its rows, its columns, and whether nothing in between is written.
struct Part {
    rows: [usize; 2],
    columns: [usize; 2],
    whole: bool,
}

impl Part {
    fn of(buffer: &GlobalBuffer, missing: usize) -> Option<Part> {
        let element = buffer.element_bytes.max(1) as usize;
        let row = buffer.row_bytes.filter(|&row| row > 0)? as usize;
        let (mut rows, mut columns) = ([usize::MAX, 0], [row, 0]);
        for gap in buffer.memory.gaps() {
            let (first, last) = (gap.start / row, (gap.end - 1) / row);
            let [left, right] = if first == last { [gap.start % row, (gap.end - 1) % row] } else { [0, row - 1] };
            rows = [rows[0].min(first), last];
            columns = [columns[0].min(left), columns[1].max(right)];
        }
        let bytes = rows[1].checked_sub(rows[0]).map(|rows| (rows + 1) * (columns[1] - columns[0] + 1))?;
        Some(Part { rows, columns: columns.map(|at| at / element), whole: bytes == missing })
    }

    fn said(&self, buffer: &GlobalBuffer) -> String {
        let ([first, last], [left, right]) = (self.rows, self.columns);
        let between = if self.whole { "" } else { "what is missing lies in " };
        let width = buffer.row_bytes.unwrap_or_default() / buffer.element_bytes.max(1);
        match (left, right + 1) {
            (0, end) if end == width as usize => format!("{between}rows {first} to {last}"),
            _ => format!("{between}rows {first} to {last}, columns {left} to {right}"),
        }
    }
}

/// Bytes that the launch has not written, of a buffer to which it has written.
fn not_written(buffer: &GlobalBuffer, output: &Output, label: impl Fn(u32, String) -> Label) -> Option<Diagnostic> {
    let size = buffer.memory.bytes.len();
    let (low, written) = buffer.memory.defined_among(0, size);
    let (low, missing) = (low?, size - written);
    if missing == 0 {
        return None;
    }
    let high = (0..size).rev().find(|&at| buffer.memory.is_defined(at))?;
    let what = match Part::of(buffer, missing) {
        Some(part) if part.whole => format!("{} ({missing} of its {size} bytes) are not", part.said(buffer)),
        Some(part) => format!("{missing} of its {size} bytes are not: {}", part.said(buffer)),
        None => {
            let first = buffer.memory.gaps().next()?.start;
            format!("{missing} of its {size} bytes are not, the first is {}", buffer.describe(first as u64))
        }
    };
    let title = format!("`{}` is written in part only: {what}", buffer.name);
    let text = format!(
        "written from here, and elsewhere perhaps: {} between bytes {low} and {high}",
        counted(written as u64, "byte")
    );
    let mut labels: Vec<Label> = output.written.map(|site| label(site, text)).into_iter().collect();
    let mut help = "Compare grid and tiles with the size of the buffer. If it is larger than what is computed, give it the size of that.";
    if let Some(Again { at, site, bytes, .. }) = output.repeated.filter(|again| again.bytes >= missing as u64 / 2) {
        let text = format!(
            "{} is written once more here, with the value that is there; {} in all are",
            buffer.describe(at),
            counted(bytes, "byte")
        );
        labels.push(label(site, text));
        help = "Tiles are computed twice, while others are not: look which tile each CTA, or each round of a persistent one, takes: how its number, rows and columns \
                follow from the CTA's, and by how much the next one is further on.";
    }
    Some(note(
        "output-not-written",
        title,
        labels,
        "A buffer without a content holds nothing before the launch, and the launch does not read it: what it has not written there \
         afterwards holds nothing either.",
        help,
    ))
}

impl Again {
    fn said(&self, buffer: &GlobalBuffer, label: impl Fn(u32, String) -> Label) -> Diagnostic {
        let Again { at, before, site, bytes } = *self;
        let mut labels = vec![label(site, "written again here".into())];
        labels.extend(before.map(|before| label(before, "written before here".into())));
        note(
            "output-written-twice",
            format!(
                "{} is written twice, and never read in between ({} in all)",
                buffer.describe(at),
                counted(bytes, "byte")
            ),
            labels,
            "The launch does not read this buffer, so that what a plain store leaves is lost with the next to the same place (PTX ISA, \
             st).",
            "Check which tile and which rows each of the two stores is for.",
        )
    }
}
