//! A trace as Chrome's trace viewer and Perfetto read it: a process for each CTA, a track for each warp and engine.
//!
//! The format is that of trace events as JSON: <https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU>. One
//! microsecond in it is one simulated cycle.

use crate::launch::{Launch, RegionSpace};
use crate::report::{Actor, Barrier, CopyKind, Event, EventKind, OperandRead, Variable};
use serde::Serialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Trace events, to be written as JSON.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Timeline<'a> {
    trace_events: Vec<Entry<'a>>,
    display_time_unit: &'static str,
}

#[derive(Debug, Serialize)]
struct Entry<'a> {
    name: Cow<'a, str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    cat: &'static str,
    ph: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    ts: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    dur: Option<u64>,
    pid: u32,
    tid: u32,
    /// Of an arrow: which one, and that it ends at what encloses its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bp: Option<&'static str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    args: BTreeMap<&'static str, Cow<'a, str>>,
}

/// Tracks of engines come behind those of warps. The tensor core and the TMA engine work on several things at once: what overlaps is
/// put on tracks of its own.
const TENSOR_CORE: u32 = 1000;
const TMA: u32 = 2000;

/// Whether a file with these bytes holds a timeline, which a newer one may replace.
pub fn is_timeline(bytes: &[u8]) -> bool {
    bytes.starts_with(b"{\"traceEvents\":")
}

impl Timeline<'_> {
    /// As a file of a trace viewer holds it. Of millions of events, so this is written here, where the code is optimised.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("texts and numbers, under keys that are texts")
    }
}

/// The timeline of a [trace](crate::Report::trace), by a launch of a kernel with [these variables](crate::Report::variables).
pub fn timeline<'a>(events: &'a [Event], launch: &Launch, variables: &[Variable]) -> Timeline<'a> {
    let names = Names { launch, variables };
    let mut trace_events = Vec::new();
    let mut tracks = BTreeSet::new();
    let mut busy: BTreeMap<(u32, u32), Vec<u64>> = BTreeMap::new();
    for (n, event) in events.iter().enumerate() {
        let tid = match event.actor {
            Actor::Warp(warp) => warp,
            engine => {
                let base = if engine == Actor::Tma { TMA } else { TENSOR_CORE };
                let rows = busy.entry((event.cta, base)).or_default();
                let row = rows.iter().position(|&until| until <= event.start).unwrap_or(rows.len());
                if row == rows.len() {
                    rows.push(0);
                }
                rows[row] = event.end;
                base + row as u32
            }
        };
        tracks.insert((event.cta, tid));
        let (name, cat, mut args) = describe(event, &names);
        let place = &event.place;
        args.insert("ptx", format!("{}: {}", place.line, place.text).into());
        if let Some(source) = &place.source {
            args.insert("source", format!("{}:{}", source.file, source.line).into());
        }
        let (pid, start) = (event.cta, event.start);
        let dur = Some((event.end - start).max(1));
        if !matches!(event.actor, Actor::Warp(_)) {
            // An arrow from the instruction to what it asked for.
            let issuer = (event.issuer.cta, event.issuer.warp);
            tracks.insert(issuer);
            let entry = |ph, name: String, ts, (pid, tid)| Entry {
                name: name.into(),
                cat: "issue",
                ph,
                ts: Some(ts),
                dur: (ph == "X").then_some(1),
                pid,
                tid,
                id: (ph != "X").then_some(n),
                bp: (ph == "f").then_some("e"),
                args: BTreeMap::new(),
            };
            trace_events.push(entry("X", format!("issue {name}"), event.issued, issuer));
            trace_events.push(entry("s", "issue".into(), event.issued, issuer));
            trace_events.push(entry("f", "issue".into(), start, (pid, tid)));
        }
        trace_events.push(Entry { name, cat, ph: "X", ts: Some(start), dur, pid, tid, id: None, bp: None, args });
    }
    let [nx, ny] = [launch.grid[0].max(1), launch.grid[1].max(1)];
    let named = |name, pid, tid, text: String| {
        let args = BTreeMap::from([("name", text.into())]);
        let (ts, dur, id, bp) = (None, None, None, None);
        Entry { name: Cow::Borrowed(name), cat: "", ph: "M", ts, dur, pid, tid, id, bp, args }
    };
    let ctas: BTreeSet<u32> = tracks.iter().map(|track| track.0).collect();
    for cta in ctas {
        let place = [cta % nx, cta / nx % ny, cta / (nx * ny)];
        trace_events.push(named("process_name", cta, 0, format!("CTA ({}, {}, {})", place[0], place[1], place[2])));
    }
    for (cta, tid) in tracks {
        let text = match tid {
            TMA.. => "TMA".to_string(),
            TENSOR_CORE.. => "tensor core".to_string(),
            warp => format!("warp {warp}"),
        };
        trace_events.push(named("thread_name", cta, tid, text));
    }
    Timeline { trace_events, display_time_unit: "ns" }
}

type Args<'a> = BTreeMap<&'static str, Cow<'a, str>>;

/// Name, category and details of an event.
fn describe<'a>(event: &Event, names: &Names) -> (Cow<'a, str>, &'static str, Args<'a>) {
    let barrier = |b: &Barrier| names.shared(b.offset);
    let barriers = |list: &[Barrier]| {
        let names: Vec<String> = list.iter().map(|b| format!("{} of CTA {}", barrier(b), b.cta)).collect();
        names.join(", ")
    };
    let shared = |offset| names.shared(offset);
    let buffer = |n: usize| names.launch.buffers.get(n).map_or(String::new(), |b| b.name.clone());
    let mut args = Args::new();
    let mut arg = |name, value: String| drop(args.insert(name, value.into()));
    let (name, cat) = match &event.kind {
        EventKind::BarrierInit { barrier: b, count } => {
            arg("arrivals", count.to_string());
            (format!("init {}", barrier(b)), "mbarrier")
        }
        EventKind::BarrierArrive { barrier: b, phase, count, announced } => {
            arg("phase", phase.to_string());
            arg("arrivals", count.to_string());
            arg("bytes announced", announced.to_string());
            (format!("arrive {}", barrier(b)), "mbarrier")
        }
        EventKind::BarrierExpect { barrier: b, announced } => {
            arg("bytes announced", announced.to_string());
            (format!("expect {}", barrier(b)), "mbarrier")
        }
        EventKind::BarrierWait { barrier: b, parity, passed_phase } => {
            arg("parity", parity.to_string());
            arg("phase", passed_phase.map_or("none: passes on a fresh mbarrier".into(), |phase| phase.to_string()));
            (format!("wait {}", barrier(b)), "wait")
        }
        EventKind::CtaBarrier { id, threads } => {
            arg("threads", threads.to_string());
            (format!("barrier {id}"), "wait")
        }
        EventKind::ProxyFence => ("fence.proxy.async".into(), "fence"),
        EventKind::SharedStore { offset, bytes } => {
            arg("bytes", bytes.to_string());
            (format!("store {}", shared(*offset)), "memory")
        }
        EventKind::GlobalLoad { buffer: n, bytes } => {
            arg("bytes", bytes.to_string());
            (format!("load {}", buffer(*n)), "memory")
        }
        EventKind::GlobalStore { buffer: n, bytes } => {
            arg("bytes", bytes.to_string());
            (format!("store {}", buffer(*n)), "memory")
        }
        EventKind::Copy(copy) => {
            arg("bytes", copy.bytes.to_string());
            arg("shared", shared(copy.shared));
            arg("coordinates", format!("{:?}", copy.coordinates));
            arg("CTAs", format!("{:?}", copy.ctas));
            if !copy.barriers.is_empty() {
                arg("mbarriers", barriers(&copy.barriers));
            }
            let what = match copy.kind {
                CopyKind::Load => "load",
                CopyKind::Store => "store",
                CopyKind::Reduce => "reduce",
                CopyKind::Forward => "forward",
            };
            (format!("{what} {}", copy.buffer.map(buffer).unwrap_or_default()), "copy")
        }
        EventKind::TensorAlloc { column, columns } => {
            arg("columns", format!("{columns} from {column}"));
            ("tcgen05.alloc".into(), "tensor memory")
        }
        EventKind::TensorFree { column, columns } => {
            arg("columns", format!("{columns} from {column}"));
            ("tcgen05.dealloc".into(), "tensor memory")
        }
        EventKind::TensorCopy { column, columns, bytes } => {
            (format!("tcgen05.cp: {bytes} bytes to columns {column} to {}", column + columns - 1), "copy")
        }
        EventKind::Mma(mma) => {
            arg("accumulator", names.column(mma.column));
            arg("columns", format!("{} from {}", mma.accumulator_columns(), mma.column));
            arg("CTAs", format!("{:?}", mma.ctas));
            arg("accumulates", mma.accumulate.to_string());
            arg("A", names.operand(Some(&mma.a)));
            arg("B", names.operand(Some(&mma.b)));
            (shape("MMA", mma.shape), "mma")
        }
        EventKind::Wgmma(mma) => {
            arg("accumulates", mma.accumulate.to_string());
            arg("A", names.operand(mma.a.as_ref()));
            arg("B", names.operand(mma.b.as_ref()));
            (shape("wgmma", mma.shape), "mma")
        }
        EventKind::WgmmaCommit { covers } => {
            arg("MMAs", covers.to_string());
            ("wgmma.commit_group".into(), "mma")
        }
        EventKind::WgmmaWait { covers } => {
            arg("MMAs", covers.to_string());
            ("wgmma.wait_group".into(), "wait")
        }
        EventKind::Commit { barriers: list, covers } => {
            arg("MMAs", covers.to_string());
            arg("mbarriers", barriers(list));
            let first = list.first().map(barrier).unwrap_or_default();
            (format!("commit to {first}"), "mma")
        }
        EventKind::TensorLoad { column, columns, lane, lanes } => {
            arg("columns", format!("{columns} from {column}"));
            arg("lanes", format!("{lanes} from {lane}"));
            ("tcgen05.ld".into(), "tensor memory")
        }
        EventKind::TensorWaitLoad => ("tcgen05.wait::ld".into(), "wait"),
        EventKind::Exit => ("exit".into(), "exit"),
    };
    (name.into(), cat, args)
}

fn shape(what: &str, [m, n, k]: [u32; 3]) -> String {
    format!("{what} {m}x{n}x{k}")
}

/// What a timeline calls places: by the launch's regions, and the kernel's variables.
struct Names<'l> {
    launch: &'l Launch,
    variables: &'l [Variable],
}

impl Names<'_> {
    fn operand(&self, read: Option<&OperandRead>) -> String {
        match read {
            Some(read) if read.end > read.offset => self.shared(read.offset),
            Some(_) => "in tensor memory".into(),
            None => "in registers".into(),
        }
    }

    /// A byte of shared memory, from the start of what is dynamic.
    fn shared(&self, offset: i32) -> String {
        let of_launch = u32::try_from(offset).ok().and_then(|byte| self.region(RegionSpace::DynamicShared, byte));
        let inside = |v: &Variable| offset.checked_sub(v.offset).filter(|&at| at >= 0 && (at as u32) < v.bytes);
        let own = || self.variables.iter().find_map(|v| Some((v, inside(v)?)));
        of_launch.unwrap_or_else(|| match own() {
            Some((v, 0)) => v.name.clone(),
            Some((v, at)) => format!("{} at byte {at}", v.name),
            None => format!("shared {offset}"),
        })
    }

    fn column(&self, column: u32) -> String {
        self.region(RegionSpace::Tensor, column).unwrap_or_else(|| format!("column {column}"))
    }

    /// The name of the region at this byte or column, with its stage.
    fn region(&self, space: RegionSpace, place: u32) -> Option<String> {
        let at =
            |r: &&crate::launch::Region| r.space == space && place.checked_sub(r.offset).is_some_and(|d| d < r.bytes);
        let region = self.launch.regions.iter().find(at)?;
        Some(region.stage.map_or(region.name.clone(), |stage| format!("{}[{stage}]", region.name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Issuer, Mma};
    use crate::{Place, Region, RegionKind};

    /// What an engine does at the same time lies on tracks of its own; arrows lead there from the warp.
    #[test]
    fn engines_have_as_many_tracks_as_they_need() {
        let read = OperandRead { offset: 0, end: 16, swizzle: 128, ..OperandRead::default() };
        let mma = |issued, start, end| Event {
            cta: 0,
            actor: Actor::TensorCore,
            issuer: Issuer { cta: 0, warp: 3 },
            issued,
            start,
            end,
            place: Place { line: 7, text: "tcgen05.mma …".into(), ..Place::default() },
            kind: EventKind::Mma(Box::new(Mma {
                shape: [128, 128, 16],
                cta_group: 1,
                accumulate: true,
                column: 32,
                ctas: vec![0],
                a: read.clone(),
                b: read.clone(),
            })),
        };
        let launch = Launch {
            grid: [1, 1, 1],
            regions: vec![Region {
                name: "a".into(),
                space: RegionSpace::DynamicShared,
                offset: 0,
                bytes: 64,
                kind: RegionKind::Barrier,
                stage: Some(1),
            }],
            ..Launch::default()
        };
        let events = [mma(1, 10, 50), mma(2, 30, 70), mma(3, 50, 60)];
        let json = serde_json::to_value(timeline(&events, &launch, &[])).expect("JSON");
        let entries = json["traceEvents"].as_array().expect("a list");
        let slices: Vec<_> = entries.iter().filter(|e| e["cat"] == "mma").collect();
        let tracks: Vec<_> = slices.iter().map(|e| e["tid"].as_u64().expect("a number") - 1000).collect();
        assert_eq!(tracks, [0, 1, 0]);
        assert_eq!(
            (&slices[0]["ts"], &slices[0]["dur"], &slices[0]["args"]["A"]),
            (&10.into(), &40.into(), &"a[1]".into())
        );
        for ph in ["s", "f"] {
            let ids: Vec<_> = entries.iter().filter(|e| e["ph"] == ph).map(|e| e["id"].as_u64()).collect();
            assert_eq!(ids, [Some(0), Some(1), Some(2)], "{ph}");
        }
        let names: Vec<_> = entries.iter().filter(|e| e["ph"] == "M").map(|e| e["args"]["name"].clone()).collect();
        assert_eq!(names, ["CTA (0, 0, 0)", "warp 3", "tensor core", "tensor core"]);
    }

    /// Shared memory goes by the launch's regions, the kernel's variables lie before it, and what is neither has its byte.
    #[test]
    fn variables_have_their_names() {
        let region = Region {
            name: "ring".into(),
            space: RegionSpace::DynamicShared,
            offset: 16,
            bytes: 8,
            kind: RegionKind::Barrier,
            stage: Some(2),
        };
        let launch = Launch { regions: vec![region], ..Launch::default() };
        let variables = [Variable { name: "full".into(), offset: -48, bytes: 16 }];
        let names = Names { launch: &launch, variables: &variables };
        let told = [-49, -48, -40, -32, 0, 16, 23].map(|offset| names.shared(offset));
        assert_eq!(told, ["shared -49", "full", "full at byte 8", "shared -32", "shared 0", "ring[2]", "ring[2]"]);
    }
}
