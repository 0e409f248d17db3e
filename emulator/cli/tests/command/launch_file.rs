//! What is said of launch files that cannot be taken, and where their files are looked for.

use super::common::{Said, emulate, here};
use super::copy;
use expect_test::{Expect, expect};
use std::path::Path;

/// A launch file made from `exchange.json` by replacing a text.
fn changed(from: &str, to: &str) -> Said {
    let folder = copy(&["tests/files/exchange.ptx", "tests/files/exchange.json"]);
    let path = folder.path().join("exchange.json");
    let text = std::fs::read_to_string(&path).expect("the launch file");
    assert!(text.contains(from), "{from}");
    std::fs::write(&path, text.replace(from, to)).expect("written");
    emulate(folder.path(), &["exchange.ptx", "--launch", "exchange.json"])
}

fn refused(from: &str, to: &str, expected: Expect) {
    let said = changed(from, to);
    expected.assert_eq(&said.err);
    assert_eq!((said.status, said.out.as_str()), (2, ""));
}

#[test]
fn an_unknown_field_is_refused_at_its_line() {
    refused(
        "\"grid\"",
        "\"gird\"",
        expect![[r#"
        error: unknown field `gird`
         --> exchange.json:3:3
          |
        3 |   "gird": [1, 1, 1],
          |   ^^^^^^ found here
          |
          = try: Allowed here: `entry`, `grid`, `cluster`, `block`, `dynamic_shared`, `buffers`, `params`, `param_block`, `regions`, `attributes`, `outputs`.
    "#]],
    );
}

/// What lies beside the kernels of compilers is a recording: the message says so, and how a launch file is made of it.
#[test]
fn a_compilers_recording_is_no_launch_file() {
    for name in ["tf32", "two_cta", "attention"] {
        let [ptx, json] = ["ptx", "json"].map(|ending| here("../tests/gluon").join(format!("{name}.{ending}")));
        let folder = tempfile::tempdir().expect("a scratch folder");
        let said = emulate(folder.path(), &[&ptx.display().to_string(), "--launch", &json.display().to_string()]);
        assert_eq!((said.status, said.out.as_str()), (2, ""));
        assert!(said.err.starts_with("error: this is a compiler's recording, and no launch file\n"), "{}", said.err);
        let way_out = format!(
            "= try: Make the launch file of it: `cargo run -p emulator --example gluon -- {name} > {name}.launch.json`, and give that."
        );
        assert!(said.err.contains(&way_out), "{}", said.err);
    }
}

#[test]
fn a_value_that_a_field_cannot_hold_is_refused_at_its_line() {
    refused(
        "[64, 1, 1]",
        "[64, -1, 1]",
        expect![[r#"
            error: `block[1]` cannot be `-1`
             --> exchange.json:4:17
              |
            4 |   "block": [64, -1, 1],
              |                 ^^ found here
              |
              = try: Allowed here: a whole number from 0 to 4294967295.
        "#]],
    );
}

#[test]
fn a_buffer_that_is_not_there_is_refused_at_its_line() {
    refused(
        "\"buffer\": 0",
        "\"buffer\": 4",
        expect![[r#"
            error[launch]: parameter `out` names buffer 4: there is one, number 0
             --> exchange.json:6:39
              |
            6 |   "params": [{ "pointer": { "buffer": 4, "offset": 0 } }]
              |                                       ^ given here
              |
             ::: exchange.ptx:7:17
              |
            7 | .visible .entry exchange(.param .u64 out)
              |                 ------------------------- this kernel
              |
              = rule: A launch gives each parameter of the entry one value of its type and size.
              = try: Number buffers from 0, in their order.
        "#]],
    );
}

#[test]
fn a_file_that_is_not_there_is_refused_at_its_line() {
    let said = changed("\"undefined\": { \"bytes\": 256 }", "\"file\": \"numbers.bin\"");
    assert_eq!(said.status, 2, "{}", said.err);
    for text in ["buffer 0 (`out`)", "exchange.json:5:", "looked for numbers.bin"] {
        assert!(said.err.contains(text), "{text} is not in:\n{}", said.err);
    }
}

/// A buffer's bytes come from a file beside the launch file, also when the command runs elsewhere.
#[test]
fn files_are_looked_for_beside_the_launch_file() {
    let folder = copy(&["tests/files/exchange.ptx", "tests/files/exchange.json"]);
    let path = folder.path().join("exchange.json");
    let text = std::fs::read_to_string(&path).expect("the launch file");
    let text = text
        .replace("\"undefined\": { \"bytes\": 256 }", "\"file\": \"before.bin\"")
        .replace("\"params\"", "\"outputs\": [{ \"buffer\": 0, \"file\": \"after.bin\" }],\n  \"params\"");
    std::fs::write(&path, text).expect("written");
    std::fs::write(folder.path().join("before.bin"), [7; 260]).expect("written");
    let kernel = folder.path().join("exchange.ptx");
    let said = emulate(Path::new("/"), &[kernel.to_str().expect("a path"), "--launch", path.to_str().expect("a path")]);
    assert_eq!((said.status, said.err.as_str()), (1, ""), "{}", said.out);
    let after = std::fs::read(folder.path().join("after.bin")).expect("the output");
    assert_eq!((after.len(), &after[256..]), (260, [7; 4].as_slice()));
}
