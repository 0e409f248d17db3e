//! The emulator's clock beside published times: each step's solution at the sizes for which somebody has published a time on a B200.

use super::patience::Patience;
use super::workspace::{Workspace, name};
use crate::launch;
use crate::{InProcess, JudgeOptions, KernelSource, Problem};
use emulator::{Gpu, Mode, Options, Usage};
use ptx::Dtype;
use serde::Serialize;
use std::collections::HashMap;
use std::fmt::Write;

/// The published times, from the top folder.
pub const DATA: &str = "data/published_ladders.csv";

/// The source whose kernels are those of our steps.
const LADDER: &str = "assignment-tirx-gemm";
/// The GPU that the emulator's clock is of.
const GPU: &str = "B200";
/// Below, a published time is that of the launch: the host's part takes longer than the kernel.
const SMALLEST: u32 = 2048;
/// The first step whose published kernel moves tiles by TMA, as ours; those before copy element by element.
pub(crate) const FIRST: u8 = 4;

/// What the numbers rest on.
pub const ASSUMPTIONS: [&str; 3] = [
    "published: a launch of 30 back to back, timed by events, random normal numbers, L2 not flushed; rounded to 1 us",
    "emulator: simulated cycles at the clock under load, and the time from kernel to kernel (emulator/src/time.rs)",
    "L2 holds the matrices from the launch before, where all three fit into half of it; otherwise nothing",
];

/// In what the published kernels differ from ours, as far as it costs time: seen in the copy of the assignment's solution
/// that stood in tlopex/assignment-tirx-gemm.
const DIFFERENCES: [(&[u8], &str); 3] = [
    (
        &[4, 5, 6],
        "the published kernel takes all 512 columns of tensor memory, ours 128; it reads 8 to 128 of them at once",
    ),
    (
        &[7, 8],
        "the published kernel stores 128 columns of D at once, ours 64, and waits until they are written, ours until they are read",
    ),
    (
        &[9, 10],
        "the published kernel frees the accumulator when D is written, ours when it is in registers: the next product begins earlier",
    ),
];

/// A published time.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Who published it.
    pub source: String,
    /// What its source calls the kernel.
    pub kernel: String,
    /// The step that it is, or is closest to.
    pub step: u8,
    /// The problem.
    pub problem: Problem,
    /// TFLOP/s.
    pub tflops: f64,
}

impl Point {
    /// Its kernel moves tiles element by element, as the first of the assignment's do: no kernel of ours stands beside it.
    pub fn by_elements(&self) -> bool {
        self.source == LADDER && self.step < FIRST
    }
}

/// Reads the points of a B200 that one of our steps can stand beside.
///
/// # Errors
/// When a line is not as `data/README.md` says.
pub fn points(text: &str) -> Result<Vec<Point>, String> {
    let mut lines = text.lines();
    let header: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    let column = |name: &str| {
        let found = header.iter().position(|column| *column == name);
        found.ok_or_else(|| format!("{DATA}:1: there is no column `{name}`"))
    };
    let [source, gpu, kernel, step, m, n, k, dtype, tflops] =
        ["source", "gpu", "step", "nearest_step", "m", "n", "k", "dtype", "tflops"].map(column);
    let (source, gpu, kernel, step, m, n, k, dtype, tflops) =
        (source?, gpu?, kernel?, step?, m?, n?, k?, dtype?, tflops?);
    let mut points = Vec::new();
    for (number, line) in lines.enumerate().map(|(n, line)| (n + 2, line)) {
        let fields: Vec<&str> = line.split(',').collect();
        if fields.len() != header.len() {
            return Err(format!("{DATA}:{number}: {} fields, not {}", fields.len(), header.len()));
        }
        let wrong = |column: usize| format!("{DATA}:{number}: `{}` is no {}", fields[column], header[column]);
        let extent = |column: usize| fields[column].parse::<u32>().map_err(|_| wrong(column));
        if fields[gpu] != GPU || fields[step].is_empty() || fields[tflops].is_empty() {
            continue;
        }
        points.push(Point {
            source: fields[source].to_string(),
            kernel: fields[kernel].to_string(),
            step: fields[step].parse().map_err(|_| wrong(step))?,
            problem: Problem {
                m: extent(m)?,
                n: extent(n)?,
                k: extent(k)?,
                dtype: match fields[dtype] {
                    "fp16" => Dtype::F16,
                    "bf16" => Dtype::Bf16,
                    _ => return Err(wrong(dtype)),
                },
            },
            tflops: fields[tflops].parse().ok().filter(|value| *value > 0.0).ok_or_else(|| wrong(tflops))?,
        });
    }
    Ok(points)
}

/// A point beside what the emulator says.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The step whose solution ran.
    pub step: u8,
    /// M, N and K.
    pub size: [u32; 3],
    /// Who published it, and what the kernel is called there.
    pub source: String,
    /// What its source calls the kernel.
    pub kernel: String,
    /// It is of the ladder that our steps are those of: it counts.
    pub counts: bool,
    /// Published, in microseconds.
    pub published_us: f64,
    /// The same in TFLOP/s.
    pub published_tflops: f64,
    /// The emulator's, in microseconds.
    pub emulator_us: f64,
    /// The same in TFLOP/s.
    pub emulator_tflops: f64,
    /// Simulated cycles.
    pub cycles: u64,
    /// The emulator's time against the published one: 0.1 is a tenth longer.
    pub error: f64,
    /// What bounds it on the emulator.
    pub bound: String,
}

/// What a step's solution takes: simulated cycles, and what it used.
fn simulate(step: u8, problem: Problem) -> Result<(u64, Usage), String> {
    let found = solutions::ALL.iter().find(|(number, _)| *number == step);
    let (_, kernel) = found.ok_or_else(|| format!("{} has no solution in this program", name(step)))?;
    let (label, sms) = (name(step), JudgeOptions::default().sms);
    let built = InProcess(*kernel)
        .build(&problem, sms)
        .map_err(|error| format!("the solution of {label} does not build for {problem}: {error}"))?;
    let program = emulator::load(&built.ptx)
        .map_err(|all| format!("the solution of {label} does not load for {problem}: {} errors", all.len()))?;
    let options = Options { gpu: Some(Gpu::B200), mode: Mode::Time, warm_l2: true, ..Options::default() };
    let launch = launch::times_only(&built, problem).map_err(|refused| refused.to_string())?;
    let report = emulator::run(&program, &launch, &options);
    match report.findings.first() {
        None if report.completed => Ok((report.cycles, report.usage)),
        first => {
            let why = first.map_or("it does not end", |finding| finding.title.as_str());
            Err(format!("the solution of {label} does not run for {problem}: {why}"))
        }
    }
}

/// Simulated cycles of a step's solution, and TFLOP/s at the emulator's clock.
///
/// # Errors
/// When it does not run.
pub fn tflops(step: u8, problem: Problem) -> Result<(u64, f64), String> {
    let (cycles, _) = simulate(step, problem)?;
    Ok((cycles, 2.0 * problem.products() as f64 / Gpu::B200.launch_time(cycles) / 1e3))
}

/// What a run is bound by: what it used most, if that was busy nearly always; else its warps waited for each other.
fn bound(usage: &Usage) -> String {
    const NEARLY: f64 = 0.8;
    let parts = [("tensor cores", usage.tensor_cores), ("L2 to SMs", usage.l2), ("DRAM", usage.dram)];
    let most = parts.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|most| most.1 >= NEARLY);
    let busy: Vec<String> = parts.iter().map(|(part, share)| format!("{part} {:.0} %", share * 100.0)).collect();
    format!("{} ({})", most.map_or("waits", |most| most.0), busy.join(", "))
}

/// Goes through the points, one row after the other.
///
/// # Errors
/// When the table cannot be read, has no such point, or a solution does not run.
pub fn rows(
    workspace: &Workspace,
    step: Option<u8>,
    all: bool,
    mut each: impl FnMut(&Row),
) -> Result<Vec<Row>, String> {
    let text = std::fs::read_to_string(workspace.root.join(DATA))
        .map_err(|error| format!("cannot read {DATA}: {error}\n  try: Get the file back from git."))?;
    let mut points = points(&text)?;
    points.retain(|point| {
        let large = point.problem.m.min(point.problem.n).min(point.problem.k) >= SMALLEST && point.step >= FIRST;
        large && (all || point.source == LADDER) && step.is_none_or(|step| step == point.step)
    });
    if points.is_empty() {
        return Err(format!(
            "{DATA} has no point to compare with\n  try: Ask for one of the steps {FIRST} to 10: those before copy element by \
             element where they were timed."
        ));
    }
    // The ladder first; then what stands beside it.
    points.sort_by_key(|point| (point.source != LADDER, point.step, point.problem.k));
    let mut known: HashMap<(u8, Problem), (u64, Usage)> = HashMap::new();
    let mut rows = Vec::new();
    for Point { source, kernel, step, problem, tflops } in points {
        let (cycles, usage) = match known.get(&(step, problem)) {
            Some(known) => *known,
            None => {
                let _patience = Patience::new(format!("simulating {} at {problem} …", name(step)));
                *known.entry((step, problem)).or_insert(simulate(step, problem)?)
            }
        };
        let teraflop = 2.0 * problem.products() as f64 / 1e12;
        let (published_us, emulator_us) = (teraflop / tflops * 1e6, Gpu::B200.launch_time(cycles) / 1e3);
        let row = Row {
            step,
            size: [problem.m, problem.n, problem.k],
            counts: source == LADDER,
            source,
            kernel,
            published_us,
            published_tflops: tflops,
            emulator_us,
            emulator_tflops: teraflop / emulator_us * 1e6,
            cycles,
            error: emulator_us / published_us - 1.0,
            bound: bound(&usage),
        };
        each(&row);
        rows.push(row);
    }
    Ok(rows)
}

/// The line above the rows.
pub fn header() -> String {
    format!("{:<4} {:>16}  {:^20}  {:^20}  {:>7}  {}\n", "step", "size", "published", "emulator", "error", "bound by")
}

/// A row as text.
pub fn line(row: &Row) -> String {
    let [m, n, k] = row.size;
    let size = Problem::f16(m, n, k).extents();
    let time = |us: f64, tflops: f64| format!("{us:>8.1} us {tflops:>5.0} TF");
    let (published, emulator) =
        (time(row.published_us, row.published_tflops), time(row.emulator_us, row.emulator_tflops));
    let mark = if row.counts { String::new() } else { format!("~ {}: {}; ", row.source, row.kernel) };
    let error = format!("{:+.1} %", row.error * 100.0);
    format!("{:<4} {size:>16}  {published:>20}  {emulator:>20}  {error:>7}  {mark}{}\n", row.step, row.bound)
}

/// The mean size of the errors that count, over all steps but one.
fn mean<'a>(rows: impl Iterator<Item = &'a Row>) -> f64 {
    let errors: Vec<f64> = rows.filter(|row| row.counts).map(|row| row.error.abs()).collect();
    errors.iter().sum::<f64>() / errors.len().max(1) as f64
}

/// Mean errors: of all points; of each step, and of all others.
#[derive(Clone, Debug, Serialize)]
pub struct Errors {
    /// Points that count.
    pub points: usize,
    /// Of all.
    pub mean: f64,
    /// Of each step: its number, its own mean, the mean of all others.
    pub steps: Vec<(u8, f64, f64)>,
}

impl Errors {
    /// Of these rows.
    pub fn new(rows: &[Row]) -> Errors {
        let mut steps: Vec<u8> = rows.iter().filter(|row| row.counts).map(|row| row.step).collect();
        let points = steps.len();
        steps.dedup();
        let each = |step: u8| {
            let is = move |row: &&Row| row.step == step;
            (step, mean(rows.iter().filter(is)), mean(rows.iter().filter(move |row| !is(row))))
        };
        Errors { points, mean: mean(rows.iter()), steps: steps.into_iter().map(each).collect() }
    }
}

/// What stands below the rows.
pub fn summary(rows: &[Row]) -> String {
    let errors = Errors::new(rows);
    let percent = |share: f64| format!("{:.1} %", share * 100.0);
    let mut text = format!("\nmean error {} of {} points\n", percent(errors.mean), errors.points);
    if errors.steps.len() > 1 {
        for (step, own, others) in &errors.steps {
            // Writing to a String cannot fail.
            let _ = writeln!(text, "  step {step:>2} alone {:>7}, without it {:>7}", percent(*own), percent(*others));
        }
    }
    text.push('\n');
    for (steps, what) in DIFFERENCES {
        let shown: Vec<String> =
            steps.iter().filter(|step| rows.iter().any(|row| row.step == **step)).map(u8::to_string).collect();
        if !shown.is_empty() {
            let _ = writeln!(text, "step {}: {what}", shown.join(", "));
        }
    }
    for assumption in ASSUMPTIONS {
        let _ = writeln!(text, "{assumption}");
    }
    if rows.iter().any(|row| !row.counts) {
        text.push_str("~ another kernel than ours, the nearest step by its description; it does not count\n");
    }
    text
}

/// Rows, errors and assumptions as JSON.
pub fn json(rows: &[Row]) -> String {
    let value = serde_json::json!({
        "points": rows, "errors": Errors::new(rows), "assumptions": ASSUMPTIONS, "differences": DIFFERENCES
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "source,gpu,step,nearest_step,m,n,k,dtype,tflops,pct_of_its_cublas,conditions\n";

    #[test]
    fn points_are_those_of_a_b200_with_a_step_and_a_time() {
        let text = format!(
            "{TABLE}s,B200,4,4,2048,2048,2048,fp16,330.38,,c\ns,B200,x,,2048,2048,2048,fp16,1,,c\n\
             s,H200,4,4,2048,2048,2048,fp16,1,,c\ns,B200,y,9,4096,8192,4096,bf16,,59.4,c\n"
        );
        let point = Point {
            source: "s".into(),
            kernel: "4".into(),
            step: 4,
            problem: Problem::f16(2048, 2048, 2048),
            tflops: 330.38,
        };
        assert_eq!(points(&text), Ok(vec![point]));
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        let told = |line: &str| points(&format!("{TABLE}{line}\n")).unwrap_err();
        assert_eq!(told("s,B200,4,4,2048"), "data/published_ladders.csv:2: 5 fields, not 11");
        assert_eq!(told("s,B200,4,4,big,1,1,fp16,1,,c"), "data/published_ladders.csv:2: `big` is no m");
        assert_eq!(told("s,B200,4,4,1,1,1,fp32,1,,c"), "data/published_ladders.csv:2: `fp32` is no dtype");
        assert_eq!(points("a,b\n").unwrap_err(), "data/published_ladders.csv:1: there is no column `source`");
    }

    fn row(step: u8, error: f64, counts: bool) -> Row {
        Row {
            step,
            size: [2048; 3],
            source: "s".into(),
            kernel: "k".into(),
            counts,
            published_us: 50.0,
            published_tflops: 343.6,
            emulator_us: 50.0 * (1.0 + error),
            emulator_tflops: 343.6 / (1.0 + error),
            cycles: 1000,
            error,
            bound: "waits".into(),
        }
    }

    #[test]
    fn errors_are_means_of_what_counts() {
        let errors = Errors::new(&[row(4, 0.1, true), row(4, -0.3, true), row(5, 0.5, true), row(5, 9.0, false)]);
        assert!(errors.points == 3 && (errors.mean - 0.3).abs() < 1e-9, "{errors:?}");
        let [(4, four, without_four), (5, five, without_five)] = errors.steps[..] else { panic!("{errors:?}") };
        for (is, expected) in [(four, 0.2), (without_four, 0.5), (five, 0.5), (without_five, 0.2)] {
            assert!((is - expected).abs() < 1e-9, "{errors:?}");
        }
    }

    #[test]
    fn a_row_says_what_does_not_count() {
        let text = line(&row(5, -0.125, false));
        assert!(text.contains("2048³") && text.contains("-12.5 %") && text.contains("~ s: k; waits"), "{text}");
        assert!(!line(&row(5, 0.0, true)).contains('~'));
    }

    /// Those that the source's conditions name, of the ladder that our steps are those of.
    #[test]
    fn kernels_that_copy_element_by_element_stand_apart() {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(DATA);
        let points = points(&std::fs::read_to_string(path).expect("the table")).expect("it can be read");
        let apart: std::collections::BTreeSet<(&str, u8)> = points
            .iter()
            .filter(|point| point.by_elements())
            .map(|point| (point.source.as_str(), point.step))
            .collect();
        assert_eq!(apart, [1, 2, 3].map(|step| (LADDER, step)).into());
        assert!(points.iter().any(|point| point.source == LADDER && point.step == FIRST));
    }

    /// The table in the tree can be read, and one of its points simulated.
    #[test]
    fn the_clock_stands_beside_published_times() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let mut seen = 0;
        let rows = rows(&Workspace { root }, Some(4), false, |_| seen += 1).expect("step 4 runs");
        assert_eq!((rows.len(), seen), (1, 1));
        assert!(rows[0].error.abs() < 0.15 && rows[0].bound.starts_with("waits"), "{:?}", rows[0]);
        assert!(json(&rows).contains("\"cycles\""));
    }
}
