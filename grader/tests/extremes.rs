//! Answers that no builder gives: numbers at the ends of their types wherever PTX or the recipe of a launch has one. The judge says what is
//! wrong with each, or that nothing is; it does not break off, which would leave the hand-in without a grade.

use grader::bounds::bounded;
use harness::{
    Answer, BuildFailure, Built, Device, JudgeOptions, KernelSource, Outcome, Problem, Verdict, answers, judge,
};
use serde_json::{Value, json};
use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// A program's answer, whatever is asked.
struct Answers(String);

impl KernelSource for Answers {
    fn build(&self, _: &Problem, _: u32) -> Result<Built, BuildFailure> {
        match answers::parse(&self.0) {
            Ok(Answer::Built(built)) => Ok(built),
            Ok(Answer::Failed(failure)) => Err(failure),
            Err(message) => Err(BuildFailure::no_answer(message)),
        }
    }
}

/// Ends of types; one that most places take (the threads of the CTA, a number of registers) is among them.
const NUMBERS: [&str; 15] = [
    "0",
    "1",
    "3",
    "-1",
    "128",
    "255",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775808",
    "18446744073709551615",
    "99999999999999999999999",
    "1.5",
    "0f7FC00000",
];

/// Directives of the module, directives of the entry, and statements, with `#` where a number stands. A kernel of each runs with one of the numbers
/// at least.
const PLACES: &[[&str; 3]] = &[
    ["", " .maxnreg #", "setmaxnreg.inc.sync.aligned.u32 64;"],
    ["", " .reqntid #", ""],
    ["", " .reqntid 128, #, #", ""],
    ["", " .maxntid #, #, #", ""],
    ["", " .reqntid 128 .minnctapersm #", "setmaxnreg.inc.sync.aligned.u32 64;"],
    ["", " .reqnctapercluster #, #, #", ""],
    ["", " .maxclusterrank #", ""],
    ["", " .pragma \"#\";", ""],
    [".global .align # .b8 g[16];", "", ""],
    [".global .b8 g[#];", "", ""],
    [".global .b32 g[#][#];", "", ""],
    [".global .b32 g[2] = {#, #};", "", ""],
    [".global .b64 g = g+#;", "", ""],
    [".const .b8 c[#];", "", ""],
    [".extern .shared .align # .b8 d[];", "", ""],
    [".file # \"kernel.rs\", #, #", "", ".loc # # #\nst.global.u32 [%l], 1;"],
    [".file 1 \"kernel.rs\"", "", ".loc 1 # #, function_name $f, inlined_at 1 # #\nst.global.u32 [%l], 1;"],
    [".section .debug_info {\n.b32 #\n.b64 .debug_str+#\n}", "", ""],
    ["", "", ".shared .align # .b8 s[16];\nst.shared.u32 [s], 1;"],
    ["", "", ".shared .b8 s[#];\nst.shared.u8 [s+#], 1;"],
    ["", "", ".local .b8 l[#];\nst.local.u8 [l+#], 1;"],
    ["", "", ".reg .b32 %r<#>;"],
    [
        "",
        "",
        ".reg .b32 %r; mov.u32 %r, #; add.u32 %r, %r, #; shl.b32 %r, %r, #; bfe.u32 %r, %r, #, #; div.u32 %r, %r, #;",
    ],
    ["", "", ".reg .b64 %d; mov.u64 %d, #; mul.lo.u64 %d, %d, #; shr.s64 %d, %d, #; rem.s64 %d, %d, #;"],
    ["", "", ".reg .b64 %d; mov.u64 %d, #; ld.global.u64 %d, [%d+#];"],
    ["", "", "bar.sync #, #;"],
    ["", "", "bar.arrive 1, #;"],
    ["", "", "nanosleep.u32 #;"],
    ["", "", "setmaxnreg.inc.sync.aligned.u32 #;"],
    ["", "", "fence.proxy.tensormap::generic.acquire.gpu [%l], 128;"],
    ["", "", ".shared .align 16 .b8 s[16];\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], #;"],
    ["", "", "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %a, #;"],
    ["", "", ".reg .b32 %r<4>;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%a];\ntcgen05.wait::ld.sync.aligned;"],
    [
        "",
        "",
        ".reg .pred %p; setp.eq.u32 %p, 0, 0;\n\
         @%one tcgen05.mma.cta_group::1.kind::f16 [%a], %l, %l, %a, %p;\n@%one tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%a];",
    ],
    [
        "",
        "",
        ".shared .align 8 .b64 m;\n@%one mbarrier.init.shared::cta.b64 [m], #;\n\
         @%one mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [m], #;\n@%one mbarrier.arrive.shared::cta.b64 _, [m], #;",
    ],
    [
        "",
        "",
        ".shared .align 128 .b8 s[1024];\n.shared .align 8 .b64 m;\n@%one mbarrier.init.shared::cta.b64 [m], 1;\n\
         @%one cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%l], #, [m];",
    ],
    [
        "",
        "",
        ".reg .b64 %map;\nmov.b64 %map, map;\ncvta.param.u64 %map, %map;\n.shared .align 1024 .b8 s[1024];\n.shared .align 8 .b64 m;\n@%one mbarrier.init.shared::cta.b64 [m], 1;\n\
         @%one cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%map, {#, #}], [m];\n\
         @%one cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%map, {#, #}], [s];\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group #;",
    ],
    [
        "",
        "",
        ".shared .align 8 .b64 m;\n.reg .pred %p;\n@%one mbarrier.init.shared::cta.b64 [m], 1;\n\
         mbarrier.try_wait.parity.shared::cta.b64 %p, [m], #, #;\nmbarrier.test_wait.parity.shared::cta.b64 %p, [m], #;",
    ],
    [
        "",
        "",
        ".shared .align 16 .b8 s[16];\n.reg .b32 %r<4>;\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;\n\
         tcgen05.st.sync.aligned.32x32b.x1.b32 [%a], {%r1};",
    ],
    [
        "",
        "",
        ".shared .align 16 .b8 s[16];\ntcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [s], 32;\n\
         @%one tcgen05.cp.cta_group::1.128x256b [%a], %l;",
    ],
    ["", "", ".reg .b32 %r<9>; ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r0, %r1, %r2, %r3}, [%a];"],
    ["", "", ".reg .b32 %r; prmt.b32 %r, #, #, #; lop3.b32 %r, #, #, #, #; vote.sync.ballot.b32 %r, %one, #;"],
    [
        "",
        "",
        "elect.sync _|%one, #;\nbarrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;\nprefetch.global.L2 [%l];",
    ],
    ["", "", ".reg .b32 %r; mapa.shared::cluster.u32 %r, %a, #; st.shared::cluster.u32 [%r], 1;"],
    ["", "", ".reg .b32 %r<2>; shfl.sync.idx.b32 %r0, %r1, #, #, #;"],
    ["", "", ".reg .b32 %r; red.shared.add.u32 [%a], #; atom.global.add.u32 %r, [%l], #;"],
];

/// The same of what the emulator does not know: it says so of the text, and no kernel of it runs.
const NOT_MODELLED: &[[&str; 3]] = &[["", "", "@%one tcgen05.shift.cta_group::1.down [%a];"]];

/// How far a kernel came, by what `correct` says first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Came {
    /// Its text, its launch, or the recipe of that is refused.
    Refused,
    /// So is its text, for something that is not modelled.
    NotModelled,
    /// It ran, well or not.
    Ran,
}

fn came(verdict: &Verdict) -> Came {
    let (_, Outcome::Failed { text, .. }) = &verdict.parts[0] else { return Came::Refused };
    let code = text.strip_prefix("error[").and_then(|rest| rest.split(']').next());
    match code {
        _ if verdict.build_failure.is_some() => Came::Refused,
        Some("ptx-syntax" | "ptx-semantics" | "launch") => Came::Refused,
        Some("not-modelled") => Came::NotModelled,
        _ => Came::Ran,
    }
}

fn ptx([module, entry, body]: [&str; 3], number: &str) -> String {
    let with = |text: &str| text.replace('#', number);
    // What a place may need: one thread, and the number in registers.
    let mut before = String::new();
    for (name, text) in [
        ("%one", ".reg .b32 %x; .reg .pred %one; mov.u32 %x, %tid.x; setp.eq.u32 %one, %x, 0;\n"),
        ("%a", ".reg .b32 %a; mov.u32 %a, #;\n"),
        ("%l", ".reg .b64 %l; mov.u64 %l, #;\n"),
    ] {
        before += if body.contains(name) { text } else { "" };
    }
    let body = &(before + body);
    let params = if body.contains("[%map") { ".param .align 64 .b8 map[128]" } else { "" };
    format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n{}\n.visible .entry kernel({params}){} {{\n{}\nret;\n}}\n",
        with(module),
        with(entry),
        with(body)
    )
}

fn answer(ptx: &str) -> Value {
    let map = json!({"tensor_map": {"matrix": "A", "box_rows": 8, "box_columns": 64, "swizzle": "none"}});
    let params = if ptx.contains("[%map") { vec![map] } else { Vec::new() };
    json!({"built": {
        "name": "kernel", "ptx": ptx, "grid": [1, 1, 1], "cluster": [1, 1, 1], "block": [128, 1, 1], "dynamic_shared": 0,
        "params": params, "regions": [], "todos": [], "leaks": [],
    }})
}

/// The recipe of a launch, with each number at its ends.
fn recipes() -> Vec<(String, Value)> {
    const ENDS: [u64; 9] = [0, 1, 3, 16, 1024, 1 << 16, 1 << 24, u32::MAX as u64, u64::MAX];
    // All threads write to one place of it, so that somebody asks what lies there.
    const RACES: [&str; 3] = [
        ".extern .shared .align 16 .b8 d[];",
        "",
        ".reg .b32 %r; mov.u32 %r, %tid.x; st.shared.u32 [d], %r; ld.shared.u32 %r, [d+4]; st.global.u32 [0], %r;",
    ];
    let plain = || {
        let mut answer = answer(&ptx(RACES, ""));
        answer["built"]["dynamic_shared"] = json!(4096);
        answer
    };
    let mut all = Vec::new();
    for end in ENDS {
        for field in ["grid", "cluster", "block"] {
            for place in 0..3 {
                let mut answer = plain();
                answer["built"][field][place] = json!(end);
                all.push((format!("{field}[{place}] = {end}"), answer));
            }
            let mut answer = plain();
            answer["built"][field] = json!([end, end, end]);
            all.push((format!("{field} = {end}, {end}, {end}"), answer));
        }
        for field in ["box_rows", "box_columns"] {
            let mut answer = answer(&ptx(
                ["", "", ".reg .b64 %map;\nmov.b64 %map, map;\ncvta.param.u64 %map, %map;\nprefetch.tensormap [%map];"],
                "",
            ));
            answer["built"]["params"][0]["tensor_map"][field] = json!(end);
            all.push((format!("a map's {field} = {end}"), answer));
        }
        let mut answer = plain();
        answer["built"]["dynamic_shared"] = json!(end);
        all.push((format!("dynamic_shared = {end}"), answer));
        for field in ["offset", "bytes", "stage", "rows", "columns", "element_bytes", "swizzle"] {
            for space in ["dynamic_shared", "tensor"] {
                let mut answer = plain();
                let tile = json!({"tile": {"rows": 1, "columns": 8, "element_bytes": 2, "swizzle": 0}});
                let mut region =
                    json!({"name": "a", "space": space, "offset": 0, "bytes": 16, "kind": tile, "stage": null});
                match field {
                    "offset" | "bytes" | "stage" => region[field] = json!(end),
                    _ => region["kind"]["tile"][field] = json!(end),
                }
                answer["built"]["regions"] = json!([region]);
                all.push((format!("a region's {field} = {end}"), answer));
            }
        }
        for field in ["line", "column"] {
            let mut answer = plain();
            let mut todo =
                json!({"id": "1.1", "place": {"file": "steps/step01/src/kernel.rs", "line": 1, "column": 1}});
            todo["place"][field] = json!(end);
            answer["built"]["todos"] = json!([todo]);
            all.push((format!("a TODO's {field} = {end}"), answer));
        }
    }
    all
}

#[test]
fn no_number_of_an_answer_breaks_the_judge_off() {
    let places: Vec<([&str; 3], Came)> = PLACES
        .iter()
        .map(|place| (*place, Came::Ran))
        .chain(NOT_MODELLED.iter().map(|place| (*place, Came::NotModelled)))
        .collect();
    let texts = places
        .iter()
        .flat_map(|(place, _)| NUMBERS.iter().map(move |number| (ptx(*place, number), answer(&ptx(*place, number)))));
    let all: Vec<(String, Value)> = texts.chain(recipes()).collect();
    let (next, broken) = (AtomicUsize::new(0), Mutex::new(String::new()));
    let came_so_far = Mutex::new(vec![None; all.len()]);
    let step = harness::step(1).expect("step 1 exists");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((what, answer)) = all.get(at) else { break };
                    let options = JudgeOptions { device: Device::Emulator, ..JudgeOptions::default() };
                    let source = Answers(answer.to_string());
                    let begin = Instant::now();
                    let verdict = catch_unwind(AssertUnwindSafe(|| bounded(judge(step, &source, &options))));
                    if let Ok(verdict) = &verdict {
                        came_so_far.lock().expect("not poisoned")[at] = Some(came(verdict));
                    }
                    let wrong = match &verdict {
                        Err(_) => Some("it breaks off".to_string()),
                        Ok(verdict) if verdict.here.is_some() => {
                            Some(format!("the machine's fault: {:?}", verdict.here))
                        }
                        Ok(verdict) if verdict.points > 0.0 => Some(format!("{} points", verdict.points)),
                        Ok(_) if begin.elapsed() > Duration::from_secs(20) => Some(format!("{:?}", begin.elapsed())),
                        Ok(_) => None,
                    };
                    if let Some(wrong) = wrong {
                        let mut broken = broken.lock().expect("not poisoned");
                        let _ = writeln!(broken, "{wrong}:\n{what}");
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().expect("not poisoned");
    assert!(broken.is_empty(), "of {} answers:\n{broken}", all.len());
    // A place whose texts are all refused tries nothing of what it names.
    let came_so_far = came_so_far.into_inner().expect("not poisoned");
    for ((place, must), came) in places.iter().zip(came_so_far.chunks(NUMBERS.len())) {
        assert!(came.contains(&Some(*must)), "{place:?}: {must:?} with none of {NUMBERS:?}: {came:?}");
        assert!(*must == Came::Ran || !came.contains(&Some(Came::Ran)), "{place:?} is modelled: it belongs to PLACES");
    }
}
