//! A kernel that shows a rule, and its twin.

use super::common::{self, load, rendered, schedules, zeroes};
use emulator::{Report, Severity};
use std::collections::BTreeSet;

/// What a kernel and its twin show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The kernel needs the rule and is clean; its twin, which breaks it, gets these codes.
    Order,
    /// The kernel believes in an order that there is not, and gets these codes; its twin has what is needed, and is clean.
    None,
}

/// Who runs a kernel.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub clusters: u32,
    /// CTAs of each.
    pub ctas: u32,
    /// Threads of each CTA.
    pub threads: u32,
    pub target: &'static str,
}

/// Two warps.
pub const PAIR: Shape = Shape { clusters: 1, ctas: 1, threads: 64, target: "sm_100a" };
/// Three warps.
pub const THREE: Shape = Shape { threads: 96, ..PAIR };
/// Two CTAs of a cluster, a warp each.
pub const CLUSTER: Shape = Shape { ctas: 2, threads: 32, ..PAIR };
/// Two clusters, a warp each.
pub const GRID: Shape = Shape { clusters: 2, threads: 32, ..PAIR };
/// Two clusters, two warps each.
pub const GRID_OF_TWO: Shape = Shape { clusters: 2, ..PAIR };
/// A warpgroup of Hopper.
pub const HOPPER: Shape = Shape { threads: 128, target: "sm_90a", ..PAIR };

/// A kernel of a rule. In its text, lines that end in `// rule` are what the rule is about: the twin lacks them, and has what stands
/// behind `// rule:` instead.
#[derive(Debug)]
pub struct Case {
    pub rule: &'static str,
    pub shape: Shape,
    pub shows: Shows,
    /// All that the wrong one of the two gets, findings and notes.
    pub codes: &'static [&'static str],
    pub body: String,
}

pub fn order(rule: &'static str, shape: Shape, codes: &'static [&'static str], body: impl Into<String>) -> Case {
    Case { rule, shape, shows: Shows::Order, codes, body: body.into() }
}

pub fn none(rule: &'static str, shape: Shape, codes: &'static [&'static str], body: impl Into<String>) -> Case {
    Case { rule, shape, shows: Shows::None, codes, body: body.into() }
}

const MARK: &str = "// rule";

/// The text without the rule.
fn twin(body: &str) -> String {
    let line = |line: &str| match line.split_once(MARK) {
        Some((_, instead)) => instead.trim_start_matches(':').to_string(),
        None => line.to_string(),
    };
    body.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A kernel around a body. `%t` is the thread's number, `%rank` that of its CTA in the cluster, `%cluster` that of the cluster. The
/// predicates say: the CTA's first thread, warp 0, warp 1, CTA 0 of the cluster, cluster 0. `%out` points to 4 KiB of zeroes.
pub fn kernel(target: &str, body: &str) -> String {
    format!(
        ".version 8.6\n.target {target}\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 1024 .b8 tile[24576];\n.shared .align 8 .b64 bar_a;\n.shared .align 8 .b64 bar_b;\n\
         .shared .align 4 .b32 slot;\n.shared .align 4 .b32 flag;\n\
         .reg .pred %first, %warp0, %warp1, %cta0, %cluster0, %p<8>;\n.reg .b32 %t, %w, %rank, %cluster, %tensor, %r<16>;\n\
         .reg .b64 %out, %tile, %rd<8>;\n.reg .f32 %f<8>;\n\
         mov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\nmov.u32 %rank, %cluster_ctarank;\nmov.u32 %cluster, %clusterid.x;\n\
         setp.eq.u32 %first, %t, 0;\nsetp.eq.u32 %warp0, %w, 0;\nsetp.eq.u32 %warp1, %w, 1;\nsetp.eq.u32 %cta0, %rank, 0;\n\
         setp.eq.u32 %cluster0, %cluster, 0;\nld.param.u64 %out, [out];\n{body}\nret;\n}}\n"
    )
}

/// These kernels are about order: what is multiplied need not be read, nor all of a tensor loaded.
const OF_USE: [&str; 2] = ["input-not-loaded", "product-never-read"];

fn run(shape: Shape, body: &str, mut check: impl FnMut(&Report, Option<u64>)) {
    let program = load(&kernel(shape.target, body));
    let mut launch = common::launch("k", shape.threads, vec![zeroes("out", 4096)]);
    launch.grid[0] = shape.clusters * shape.ctas;
    launch.cluster[0] = shape.ctas;
    for seed in schedules(8) {
        check(&common::run(&program, &launch, seed, 1_000_000), seed);
    }
}

/// Runs a kernel on the default schedule and adversarial ones: nothing is found.
#[track_caller]
pub fn passes(shape: Shape, body: &str, why: &str) {
    run(shape, body, |report, seed| {
        let nothing = report.is_clean() && report.notes.iter().all(|note| OF_USE.contains(&note.code));
        assert!(nothing, "{why}, seed {seed:?}: should be clean\n{body}\n{}", rendered(report));
    });
}

/// Runs a kernel: its one finding has a label at this line, and says this to try.
#[track_caller]
pub fn blames(shape: Shape, body: &str, line: &str, help: &str) {
    run(shape, body, |report, seed| {
        let shown = rendered(report);
        let [finding] = &report.findings[..] else { panic!("one finding\n{body}\n{shown}") };
        let blamed = finding.labels.iter().skip(2).any(|label| label.place.text == line.trim_end_matches(';'));
        assert!(blamed && finding.help.contains(help), "`{line}`, `{help}`, seed {seed:?}\n{body}\n{shown}");
    });
}

impl Case {
    /// Runs both: the right one is clean, the wrong one gets its codes, on every schedule.
    #[track_caller]
    pub fn prove(&self) {
        let twin = twin(&self.body);
        assert!(self.body != twin, "{}: no line of the kernel is marked `{MARK}`\n{}", self.rule, self.body);
        let (right, wrong) = match self.shows {
            Shows::Order => (&self.body, &twin),
            Shows::None => (&twin, &self.body),
        };
        passes(self.shape, right, self.rule);
        run(self.shape, wrong, |report, seed| {
            let all = || report.findings.iter().chain(&report.notes);
            let found: BTreeSet<&str> = all().map(|d| d.code).filter(|code| !OF_USE.contains(code)).collect();
            let expected = BTreeSet::from_iter(self.codes.iter().copied());
            let shown = rendered(report);
            assert!(found == expected, "{}, seed {seed:?}: expected {expected:?}\n{wrong}\n{shown}", self.rule);
            let ended = all().all(|d| d.severity != Severity::Error);
            assert!(ended, "{}, seed {seed:?}: the run did not come to its end\n{wrong}\n{shown}", self.rule);
        });
    }
}
