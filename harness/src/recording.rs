//! What a run of a kernel did, as small JSON that a page can hold: the figures of the book, and `cargo workbook trace`.
//!
//! It is made from the [timeline](emulator::Timeline) that Perfetto reads as well: nothing in it is measured or named twice. Texts stand once in
//! a list, and events name them by their place there. `book/figures/recording.js` reads it.

use emulator::{Launch, Report};
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashMap};

/// A track of the timeline: a warp, or an engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Lane {
    /// Index of its CTA in launch order.
    pub cta: u64,
    /// Below 1000 a warp; from 1000 on the tensor core, from 2000 on the TMA engine.
    pub track: u64,
    /// What people call it.
    pub name: String,
}

/// What happened: lane, begin, cycles, when it was asked for and by which lane, name, category, and details as pairs of name and value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Event(usize, u64, u64, Option<u64>, Option<usize>, usize, usize, Vec<usize>);

/// A run, for a page.
#[derive(Clone, Debug, Serialize)]
pub struct Recording {
    /// What ran.
    pub title: String,
    /// Simulated cycles of the launch.
    pub cycles: u64,
    /// It came to its end.
    pub completed: bool,
    /// CTAs of the launch in x, y, z; of a cluster; threads of a CTA.
    pub launch: [[u32; 3]; 3],
    /// CTAs whose events are here, of all.
    pub ctas: [u32; 2],
    /// Names of shared and tensor memory, with offset and bytes (of tensor memory: columns).
    pub regions: Value,
    /// Tracks, in the order in which they are shown.
    pub lanes: Vec<Lane>,
    /// All texts.
    pub texts: Vec<String>,
    /// In the order of their begin.
    pub events: Vec<Event>,
    /// What the emulator found.
    pub findings: Value,
    /// Lines of the source that events name, by `file:line`.
    pub sources: BTreeMap<String, String>,
}

/// Texts, each once.
#[derive(Default)]
struct Texts {
    list: Vec<String>,
    at: HashMap<String, usize>,
}

impl Texts {
    fn index(&mut self, text: &str) -> usize {
        if let Some(index) = self.at.get(text) {
            return *index;
        }
        self.list.push(text.to_string());
        self.at.insert(text.to_string(), self.list.len() - 1);
        self.list.len() - 1
    }
}

/// The recording of a run with [`emulator::Options::trace`]: events of the first CTAs, whole clusters, at most so many events (but always a
/// cluster).
pub fn record(title: &str, report: &Report, launch: &Launch, ctas: u32, most: usize) -> Recording {
    let of_cluster = launch.cluster.iter().map(|n| (*n).max(1)).product::<u32>();
    let shown = shown(&report.trace, ctas, of_cluster, most);
    // What other CTAs did is not turned into JSON: of a large launch it is nearly all.
    let kept: Vec<emulator::Event> = report.trace.iter().filter(|event| event.cta < shown).cloned().collect();
    let timeline = serde_json::to_value(emulator::timeline(&kept, launch, &report.variables)).unwrap_or_default();
    let entries = timeline["traceEvents"].as_array().map(Vec::as_slice).unwrap_or_default();
    let number = |entry: &Value, key: &str| entry[key].as_u64();
    let track = |entry: &Value| Some((number(entry, "pid")?, number(entry, "tid")?));

    let mut names: BTreeMap<(u64, u64), String> = BTreeMap::new();
    for entry in entries.iter().filter(|entry| entry["ph"] == "M" && entry["name"] == "thread_name") {
        if let (Some(at), Some(name)) = (track(entry), entry["args"]["name"].as_str()) {
            names.insert(at, name.to_string());
        }
    }
    names.retain(|(cta, _), _| *cta < u64::from(shown));
    let lane_of: HashMap<(u64, u64), usize> = names.keys().enumerate().map(|(index, at)| (*at, index)).collect();
    let lanes = names.into_iter().map(|((cta, track), name)| Lane { cta, track, name }).collect();

    let mut texts = Texts::default();
    let mut events = Vec::new();
    // An arrow begins in front of the event that it leads to.
    let mut asked: Option<(u64, Option<usize>)> = None;
    for entry in entries {
        if entry["ph"] == "s" {
            asked = number(entry, "ts").map(|at| (at, track(entry).and_then(|track| lane_of.get(&track).copied())));
        }
        if entry["ph"] != "X" || entry["cat"] == "issue" {
            continue;
        }
        let asked = asked.take();
        let lane = track(entry).and_then(|track| lane_of.get(&track).copied());
        let (Some(lane), Some(start), Some(cycles)) = (lane, number(entry, "ts"), number(entry, "dur")) else {
            continue;
        };
        let name = texts.index(entry["name"].as_str().unwrap_or_default());
        let category = texts.index(entry["cat"].as_str().unwrap_or_default());
        let mut details = Vec::new();
        for (key, value) in entry["args"].as_object().into_iter().flatten() {
            details.push(texts.index(key));
            details.push(texts.index(value.as_str().unwrap_or_default()));
        }
        let (at, by) = (asked.map(|(at, _)| at), asked.and_then(|(_, by)| by));
        events.push(Event(lane, start, cycles, at, by, name, category, details));
    }
    let regions = launch.regions.iter().map(|region| {
        let name = region.stage.map_or(region.name.clone(), |stage| format!("{}[{stage}]", region.name));
        json!({"name": name, "space": region.space, "offset": region.offset, "bytes": region.bytes, "kind": region.kind})
    });
    let all = launch.grid.iter().product();
    Recording {
        title: title.to_string(),
        cycles: report.cycles,
        completed: report.completed,
        launch: [launch.grid, launch.cluster, launch.block],
        ctas: [shown.min(all), all],
        regions: regions.collect(),
        lanes,
        texts: texts.list,
        events,
        findings: serde_json::to_value(&report.findings).unwrap_or_default(),
        sources: BTreeMap::new(),
    }
}

/// How many CTAs are shown: those asked for, made up to whole clusters, as long as their events are not too many.
fn shown(trace: &[emulator::Event], ctas: u32, of_cluster: u32, most: usize) -> u32 {
    let mut counts: BTreeMap<u32, usize> = BTreeMap::new();
    for event in trace {
        *counts.entry(event.cta / of_cluster).or_default() += 1;
    }
    let (mut events, mut clusters) = (0, 0);
    while clusters * of_cluster < ctas {
        events += counts.get(&clusters).copied().unwrap_or_default();
        if clusters > 0 && events > most {
            break;
        }
        clusters += 1;
    }
    clusters * of_cluster
}

impl Recording {
    /// Adds the lines of the source that events name. `line` gives one of a file, if it can be read.
    pub fn with_sources(mut self, line: &mut dyn FnMut(&str, u32) -> Option<String>) -> Recording {
        for text in &self.texts {
            let Some((file, number)) = text.rsplit_once(':') else { continue };
            let Ok(number) = number.parse() else { continue };
            if let Some(source) = file.ends_with(".rs").then(|| line(file, number)).flatten() {
                self.sources.insert(text.clone(), source.trim().to_string());
            }
        }
        self
    }
}

/// JSON that can stand in a `<script>`: nothing in it ends one.
///
/// # Errors
/// When the value cannot be written as JSON.
pub fn for_script(value: &impl Serialize) -> Result<String, String> {
    let text = serde_json::to_string(value).map_err(|error| error.to_string())?;
    Ok(text.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures;

    #[test]
    fn an_event_of_an_engine_knows_who_asked_for_it_and_when() {
        let kernel = figures::kernels().expect("kernels").into_iter().find(|kernel| kernel.name == "step04");
        let recording = figures::record(&kernel.expect("step 4")).expect("it runs");
        let text = |index: usize| recording.texts[index].as_str();
        let copies: Vec<&Event> =
            recording.events.iter().filter(|event| text(event.6) == "copy" && text(event.5) == "load A").collect();
        assert!(!copies.is_empty(), "no copy of A in {:?}", recording.texts);
        for Event(lane, start, _, asked, by, _, _, details) in copies {
            let by = &recording.lanes[by.expect("a warp asked for it")];
            assert!(asked.expect("a time") <= *start, "asked for after it began");
            assert_eq!((recording.lanes[*lane].name.as_str(), by.name.as_str()), ("TMA", "warp 0"));
            let keys: Vec<&str> = details.iter().step_by(2).map(|key| text(*key)).collect();
            assert!(keys.contains(&"bytes") && keys.contains(&"ptx"), "{keys:?}");
        }
    }

    /// Also of a kernel in which two threads multiply, and where only times were asked for.
    #[test]
    fn each_mma_is_covered_by_one_commit() {
        for kernel in figures::kernels().expect("kernels").iter().filter(|kernel| kernel.name.starts_with("step")) {
            let recording = figures::record(kernel).expect("it runs");
            let text = |index: usize| recording.texts[index].as_str();
            let mmas = recording.events.iter().filter(|event| text(event.5).starts_with("MMA")).count();
            let covered: usize = (recording.events.iter().filter(|event| text(event.5).starts_with("commit")))
                .flat_map(|event| event.7.chunks(2).filter(|pair| text(pair[0]) == "MMAs"))
                .map(|pair| text(pair[1]).parse::<usize>().expect("a number"))
                .sum();
            assert!(mmas > 0 && covered == mmas, "{}: {mmas} MMAs, commits cover {covered}", kernel.name);
        }
    }

    #[test]
    fn a_text_cannot_end_the_script_that_it_stands_in() {
        assert_eq!(for_script(&"</script>").unwrap(), "\"\\u003c/script>\"");
    }
}
