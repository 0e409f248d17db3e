//! What the command prints, writes and exits with.

#[path = "../common/mod.rs"]
mod common;
mod launch_file;

use common::{emulate, here, without_cycles};
use expect_test::expect;
use std::path::Path;

/// A copy of files of the tree, so that nothing is written into it.
fn copy(files: &[&str]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a scratch folder");
    for file in files {
        let from = here(file);
        std::fs::copy(&from, folder.path().join(from.file_name().expect("a name"))).expect(file);
    }
    folder
}

#[test]
fn help() {
    let said = emulate(Path::new("."), &["--help"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    expect![[r#"
        Runs a PTX kernel on the CPU and says what is wrong with it.

        The exit status is 0 if nothing is wrong, 1 if there are findings or the run did not end, and 2 if it could not begin.

        Usage: emulate KERNEL.ptx --launch LAUNCH.json [OPTIONS]

        Arguments:
          [KERNEL.ptx]
                  The PTX text

        Options:
              --launch <LAUNCH.json>
                  What is launched, on what: docs/emulate.md describes the file

              --seed <N>
                  Run an adversarial schedule, which this number repeats

              --seeds <A..B>
                  Run the schedules of the seeds from A to B, without B

              --notes <NOTES>
                  Whether notes (rules broken that no machine code would show) are printed; they are counted in any case

                  [default: show]
                  [possible values: show, hide]

              --format <FORMAT>
                  What is printed

                  Possible values:
                  - text: Findings as a compiler shows errors, then a summary
                  - json: One JSON object

                  [default: text]

              --max-instructions <N>
                  End the run after so many warp instructions

                  [default: 268435456]

              --gpu <GPU>
                  Simulate the times of this GPU. Default: the one that the kernel's `.target` names

                  [possible values: b200, h200]

              --trace <FILE.json>
                  Write what happened when, for ui.perfetto.dev or chrome://tracing: one microsecond there is one simulated cycle

              --timing-only
                  Only simulate times: matrices are neither moved nor multiplied, and nothing is checked

              --results-only
                  Only compute results and times: no access is checked against the others, which is faster

              --numerics <NUMERICS>
                  How the tensor core's sums are computed

                  Possible values:
                  - fast:  In FP32, each term rounded to nearest: the last bits are not those of a tensor core
                  - exact: Bit for bit as a model of the tensor core has it that was compared with a B200; half as fast

                  [default: fast]

              --threads <N>
                  Use so many host threads. No result depends on it. Default: as many as the host runs at once

              --list-instructions
                  Print the instructions and special registers that are modelled

              --assumptions
                  Print what the emulator assumes without being sure

              --rules
                  Print what orders accesses of memory, and what does not

          -h, --help
                  Print help (see a summary with '-h')

          -V, --version
                  Print version
    "#]].assert_eq(&trimmed(&said.out));
}

fn trimmed(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// The example of docs/emulate.md, with the command that stands there.
#[test]
fn the_example_runs_and_writes_its_result() {
    let page = std::fs::read_to_string(here("../../docs/emulate.md")).expect("docs/emulate.md");
    let line = page.lines().find(|line| line.contains("saxpy.ptx --launch")).expect("the command");
    let arguments: Vec<&str> = line.split_once(" -- ").expect("arguments").1.split_whitespace().collect();
    let root = tempfile::tempdir().expect("a scratch folder");
    let folder = root.path().join("emulator/examples/saxpy");
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in ["saxpy.ptx", "launch.json"] {
        std::fs::copy(here("../examples/saxpy").join(file), folder.join(file)).expect(file);
    }
    let said = emulate(root.path(), &arguments);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    expect![[r#"
        `saxpy`, default schedule: no findings, cannot hang; N cycles, 576 warp instructions
        wrote `y`, 4000 bytes, to emulator/examples/saxpy/y.bin
    "#]]
    .assert_eq(&without_cycles(&said.out));
    // The page shows what comes, cycles and all: it is one text, and the only one of this kind there.
    let shown: Vec<&str> = page.split("```text\n").skip(1).filter_map(|text| text.split("```").next()).collect();
    assert_eq!(shown, [said.out.as_str()], "docs/emulate.md shows another output");
    let y = std::fs::read(folder.join("y.bin")).expect("the output");
    let y: Vec<f32> = y.chunks(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
    assert_eq!(y.len(), 1000);
    assert!(y.iter().all(|v| v % 2.5 == 0.0 && v.abs() <= 20.0), "{y:?}");
    assert!(y.contains(&20.0) && y.contains(&-20.0), "{y:?}");
}

/// What a user gave is still there afterwards, byte for byte.
#[test]
fn an_output_over_an_input_is_refused_before_anything_runs() {
    for (input, what) in [("saxpy.ptx", "the kernel"), ("launch.json", "the launch file")] {
        let folder = copy(&["../examples/saxpy/saxpy.ptx", "../examples/saxpy/launch.json"]);
        let launch = std::fs::read_to_string(folder.path().join("launch.json")).expect("the launch file");
        std::fs::write(folder.path().join("launch.json"), launch.replace("y.bin", input)).expect("written");
        let before = std::fs::read(folder.path().join(input)).expect(input);
        let said = emulate(folder.path(), &["saxpy.ptx", "--launch", "launch.json"]);
        assert_eq!(said.status, 2, "{}", said.err);
        assert!(said.err.contains(&format!("output 0 would overwrite {what}, {input}")), "{}", said.err);
        assert!(said.err.contains("launch.json:"), "{}", said.err);
        assert_eq!(std::fs::read(folder.path().join(input)).expect(input), before);
    }
}

/// The timeline is JSON that viewers take, with a track for each warp; it takes the place of no input.
#[test]
fn a_timeline_is_written() {
    let folder = copy(&["../examples/saxpy/saxpy.ptx", "../examples/saxpy/launch.json"]);
    let run = |file: &str| emulate(folder.path(), &["saxpy.ptx", "--launch", "launch.json", "--trace", file]);
    assert_eq!(run("trace.json").status, 0);
    let text = std::fs::read_to_string(folder.path().join("trace.json")).expect("the timeline");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let names: Vec<_> = json["traceEvents"].as_array().expect("events").iter().map(|e| &e["args"]["name"]).collect();
    assert!(names.contains(&&"warp 3".into()) && names.contains(&&"CTA (3, 0, 0)".into()), "{names:?}");
    for (file, why) in [
        ("saxpy.ptx", "--trace would overwrite saxpy.ptx, which is no timeline"),
        ("launch.json", "--trace would overwrite launch.json, which is no timeline"),
        ("y.bin", "--trace would overwrite y.bin, which is no timeline"),
        ("nowhere/trace.json", "nowhere/trace.json cannot be written"),
    ] {
        let said = run(file);
        assert_eq!(said.status, 2, "{file}: {}", said.out);
        assert!(said.err.contains(why), "{file}: {}", said.err);
    }
}

#[test]
fn a_gpu_that_cannot_run_the_kernel_is_refused() {
    let said = emulate(&here("../examples/saxpy"), &["saxpy.ptx", "--launch", "launch.json", "--gpu", "h200"]);
    assert_eq!(said.status, 2, "{}", said.out);
    expect![[r#"
        error: --gpu: the kernel is for `.target sm_100a`, this GPU is sm_90a
         |
         = try: Leave --gpu out: the kernel's `.target` decides.
    "#]]
    .assert_eq(&said.err);
}

#[test]
fn times_alone_are_not_called_free_of_findings() {
    let said = emulate(&here("tests/files"), &["exchange.ptx", "--launch", "exchange.json", "--timing-only"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert!(said.out.contains("default schedule: times only; "), "{}", said.out);
    assert!(!said.out.contains("no findings"), "{}", said.out);
}

/// The race of this kernel is not looked for, its result is.
#[test]
fn results_alone_are_not_called_free_of_findings() {
    let said = emulate(&here("tests/files"), &["exchange.ptx", "--launch", "exchange.json", "--results-only"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert!(said.out.contains("default schedule: results only; "), "{}", said.out);
    assert!(said.out.contains("not checked: only results and times were wanted"), "{}", said.out);
    assert!(!said.out.contains("no findings") && !said.out.contains("race"), "{}", said.out);
}

#[test]
fn a_finding_is_shown_at_the_ptx_and_at_its_source() {
    let said = emulate(&here("tests/files"), &["exchange.ptx", "--launch", "exchange.json"]);
    assert_eq!((said.status, said.err.as_str()), (1, ""));
    expect![[r#"
        finding[race-shared]: warp 0 writes `cells`, warp 1 reads it, and nothing orders the two
          --> exchange.ptx:24:5
           |
        18 |     st.shared.u32 [%at], %t;
           |     ------------------------ warp 0 writes it here
        ...
        24 |     ld.shared.u32 %v, [%at];
           |     ^^^^^^^^^^^^^^^^^^^^^^^^ warp 1 reads it here
           |
          ::: exchange.rs:3:7
           |
         3 |     k.store(mine, lane);
           |       ----- warp 0 writes it here
         4 |     // Here a barrier is missing.
         5 |     k.load(yours);
           |       ---- warp 1 reads it here
           |
           = confirmed: with --seed 0, `out` at byte 128 is undefined instead of 0x00000000, and 31 more elements differ
           = note: seen 2 times
           = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5).
           = try: Put a CTA barrier (bar.sync) between the two.

        `exchange`, default schedule: 1 finding; N cycles, 30 warp instructions
    "#]]
    .assert_eq(&without_cycles(&said.out));
}

/// Both warps store the same value: unordered, and no machine code would show it.
#[test]
fn notes_stand_apart_and_change_no_exit_status() {
    let folder = copy(&["tests/files/exchange.json"]);
    let kernel = ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry exchange(.param .u64 out) {\n\
                  .reg .b32 %v;\n.shared .align 4 .b8 cell[4];\nmov.u32 %v, 7;\nst.shared.u32 [cell], %v;\nret;\n}\n";
    std::fs::write(folder.path().join("exchange.ptx"), kernel).expect("written");
    let said = emulate(folder.path(), &["exchange.ptx", "--launch", "exchange.json"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    expect![[r#"
        Notes: rules broken that no machine code would show, and what a right kernel seldom does. They change no exit status; `--notes hide` hides them.

        note[same-value-written-twice]: warp 1 and warp 0 store the same value to `cell`, and nothing orders the two
         --> exchange.ptx:8:1
          |
        8 | st.shared.u32 [cell], %v;
          | ^^^^^^^^^^^^^^^^^^^^^^^^^
          | |
          | stored here
          | stored here before
          |
          = rule: Plain accesses of different threads to the same bytes, one of them a write, are a data race unless synchronisation orders them (PTX ISA 8.7.1, 8.9.5), also when the value does not depend on it.
          = try: Let one warp store it.

        note[output-not-written]: nothing is written to `out`, and nothing reads it
         --> exchange.ptx:7:1
          |
        7 | mov.u32 %v, 7;
          | ^^^^^^^^^^^^^^ the kernel begins here
          |
          = rule: A buffer without a content holds nothing before the launch. What a kernel leaves in registers, shared memory and tensor memory is gone when it ends.
          = try: Store the result, by threads (st.global) or by copies (cp.async.bulk.tensor, and its group waited for): look whether the statements that should do so are executed, and by whom.

        `exchange`, default schedule: no findings, 2 notes, cannot hang; N cycles, 6 warp instructions
    "#]]
    .assert_eq(&without_cycles(&said.out));
}

#[test]
fn json_has_every_run_of_a_range_of_seeds() {
    let arguments = ["exchange.ptx", "--launch", "exchange.json", "--seeds", "3..6", "--format", "json"];
    let said = emulate(&here("tests/files"), &arguments);
    assert_eq!((said.status, said.err.as_str()), (1, ""));
    let json: serde_json::Value = serde_json::from_str(&said.out).expect("one JSON object");
    let runs = json["runs"].as_array().expect("runs");
    assert_eq!(runs.iter().map(|run| run["seed"].as_u64()).collect::<Vec<_>>(), [Some(3), Some(4), Some(5)]);
    for run in runs {
        assert_eq!(run["clean"], false, "{run}");
        assert_eq!(run["findings"][0]["code"], "race-shared", "{run}");
        assert_eq!(run["findings"][0]["labels"][0]["place"]["source"]["file"], "exchange.rs", "{run}");
    }
    // The seed repeats the run.
    let one = emulate(
        &here("tests/files"),
        &["exchange.ptx", "--launch", "exchange.json", "--seed", "4", "--format", "json"],
    );
    let one: serde_json::Value = serde_json::from_str(&one.out).expect("one JSON object");
    assert_eq!(one["runs"][0], runs[1]);
}

/// A kernel of another compiler, its parameters as the raw bytes of a recorded launch with tensor maps placed in them.
#[test]
fn a_recorded_launch_is_replayed() {
    let folder = copy(&["../tests/gluon/tile_single.ptx", "tests/files/recorded.json"]);
    let said = emulate(folder.path(), &["tile_single.ptx", "--launch", "recorded.json", "--seed", "1"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", said.out);
    let read = |name: &str| {
        let bytes = std::fs::read(folder.path().join(name)).expect(name);
        bytes.chunks(2).map(|b| half::f16::from_le_bytes([b[0], b[1]]).to_f32()).collect::<Vec<f32>>()
    };
    let (a, b, d) = (read("a.bin"), read("b.bin"), read("d.bin"));
    assert_eq!(d.len(), 256 * 256);
    for (at, &found) in d.iter().enumerate() {
        let (row, column) = (at / 256, at % 256);
        let exact: f32 = a[row * 192..][..192].iter().zip(&b[column * 192..][..192]).map(|(x, y)| x * y).sum();
        assert_eq!(found, exact, "row {row}, column {column}");
    }
}

#[test]
fn text_that_does_not_load_is_bad_input() {
    let folder = copy(&["tests/files/exchange.ptx", "tests/files/exchange.json"]);
    let path = folder.path().join("exchange.ptx");
    let text = std::fs::read_to_string(&path).expect("the kernel").replace("xor.b32", "xnor.b32");
    std::fs::write(&path, text).expect("written");
    let said = emulate(folder.path(), &["exchange.ptx", "--launch", "exchange.json"]);
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains("exchange.ptx:19:5") && said.err.contains("xnor.b32"), "{}", said.err);
}

#[test]
fn lists_need_no_kernel() {
    let said = emulate(Path::new("."), &["--list-instructions", "--assumptions", "--rules"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    for form in emulator::FORMS {
        assert!(said.out.lines().any(|line| line == *form), "{form}");
    }
    for name in emulator::special_registers() {
        assert!(said.out.lines().any(|line| line == name), "{name}");
    }
    for assumption in emulator::ASSUMPTIONS {
        assert!(said.out.lines().any(|line| line == assumption.name), "{}", assumption.name);
    }
    for settled in emulator::SETTLED {
        assert!(said.out.lines().any(|line| line == settled.name), "{}", settled.name);
    }
    for rule in emulator::RULES {
        assert!(said.out.lines().any(|line| line == rule.name), "{}", rule.name);
        assert!(said.out.contains(rule.orders), "{}", rule.orders);
    }
    let rules = emulate(Path::new("."), &["--rules"]);
    assert!(rules.status == 0 && said.out.ends_with(&rules.out) && rules.out.starts_with(emulator::RULES[0].name));
    assert_eq!(emulate(Path::new("."), &[]).status, 2);
}

#[test]
fn the_version_and_no_threads() {
    let said = emulate(Path::new("."), &["--version"]);
    assert_eq!((said.status, said.out), (0, format!("emulate {}\n", env!("CARGO_PKG_VERSION"))));
    let said = emulate(Path::new("."), &["k.ptx", "--launch", "k.json", "--threads", "0"]);
    expect![[r#"
        error: invalid value '0' for '--threads <N>': no thread would run anything: give 1 or more, or leave it out for as many as the host runs at once

        For more information, try '--help'.
    "#]].assert_eq(&said.err);
    assert_eq!(said.status, 2);
}

/// The JSON of docs/emulate.md is what the command prints.
#[test]
fn the_documented_json_is_what_is_printed() {
    let page = std::fs::read_to_string(here("../../docs/emulate.md")).expect("docs/emulate.md");
    let section = page.split_once("## The output as JSON").expect("the section").1;
    let documented: Vec<serde_json::Value> = section
        .split("```json\n")
        .skip(1)
        .map(|block| serde_json::from_str(block.split("```").next().unwrap_or("")).expect("JSON"))
        .collect();
    let arguments = ["exchange.ptx", "--launch", "exchange.json", "--format", "json"];
    let folder = copy(&["tests/files/exchange.ptx", "tests/files/exchange.json"]);
    let path = folder.path().join("exchange.json");
    let text = std::fs::read_to_string(&path).expect("the launch file").replace("\"grid\"", "\"gird\"");
    std::fs::write(&path, text).expect("written");
    let refusal = emulate(folder.path(), &arguments);
    let run = emulate(&here("tests/files"), &arguments);
    assert_eq!((refusal.status, run.status), (2, 1));
    for (said, mut documented) in [refusal, run].into_iter().zip(documented) {
        let mut said: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
        for value in [&mut said, &mut documented] {
            if let Some(cycles) = value.pointer_mut("/runs/0/cycles") {
                *cycles = 0.into();
            }
        }
        assert_eq!(said, documented, "docs/emulate.md shows something else than:\n{said:#}");
    }
}

/// An option that takes a number says which.
#[test]
fn a_number_that_is_none_is_told_what_is_allowed() {
    for option in ["--seed", "--max-instructions"] {
        for value in ["x", "1.5", "18446744073709551616"] {
            let said = emulate(Path::new("/"), &["k.ptx", "--launch", "k.json", option, value]);
            let says = format!(
                "invalid value '{value}' for '{option} <N>': give a whole number from 0 to 18446744073709551615"
            );
            assert!(said.status == 2 && said.err.contains(&says), "{}", said.err);
        }
    }
}
