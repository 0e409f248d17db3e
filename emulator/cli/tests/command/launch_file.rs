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

/// A list is no object, though it holds what the object's fields would: each is refused where it begins.
#[test]
fn a_list_in_place_of_an_object_is_refused_at_its_line() {
    for (from, to, field, column) in [
        (
            "{ \"name\": \"out\", \"content\": { \"undefined\": { \"bytes\": 256 } }, \"element_bytes\": 4 }",
            "[\"out\", { \"undefined\": { \"bytes\": 256 } }, null, 4]",
            "buffers[0]",
            "5:15",
        ),
        ("{ \"bytes\": 256 }", "[256]", "buffers[0].content.undefined", "5:58"),
        ("{ \"buffer\": 0, \"offset\": 0 }", "[0, 0]", "params[0].pointer", "6:27"),
        ("\"params\"", "\"attributes\": [2],\n  \"params\"", "attributes", "6:17"),
        ("\"params\"", "\"outputs\": [[0, \"a\"]],\n  \"params\"", "outputs[0]", "6:15"),
        ("\"params\"", "\"param_block\": [4, []],\n  \"params\"", "param_block", "6:18"),
    ] {
        let said = changed(from, to);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{to}");
        assert!(said.err.starts_with(&format!("error: `{field}` cannot be a list\n")), "{to}: {}", said.err);
        let at = format!("--> exchange.json:{column}\n");
        assert!(said.err.contains(&at) && said.err.contains("Allowed here: an object"), "{at}: {}", said.err);
    }
}

/// A kind without its value is told where it stands, and not at what comes behind it.
#[test]
fn a_kind_without_a_value_is_refused_at_its_line() {
    let random = "\"random\": { \"seed\": 1, \"count\": 64, \"type\": \"u32\",\n\"distribution\": \"normal\"\n}";
    for (from, to, title, place) in [
        (
            "{ \"pointer\": { \"buffer\": 0, \"offset\": 0 } }",
            "\n\"u32\",\n{ \"u32\": 1 }",
            "`params[0]` cannot be `u32` without a value",
            "7:1",
        ),
        (
            "\"undefined\": { \"bytes\": 256 }",
            random,
            "`buffers[0].content.random.distribution` cannot be `normal` without a value",
            "6:17",
        ),
    ] {
        let said = changed(from, to);
        assert_eq!(said.status, 2, "{to}");
        assert!(said.err.starts_with(&format!("error: {title}\n")), "{}", said.err);
        assert!(said.err.contains(&format!("--> exchange.json:{place}\n")), "{}", said.err);
    }
}

/// What is no value that there is room for, or stands twice, or lacks: the field, and what is allowed.
#[test]
fn values_out_of_range_and_fields_that_lack_are_told() {
    for (from, to, title, says) in [
        (
            "\"bytes\": 256",
            "\"bytes\": 18446744073709551616",
            "cannot be `18446744073709551616`",
            "from 0 to 18446744073709551615",
        ),
        ("\"bytes\": 256", "\"bytes\": 2.0", "cannot be `2.0`", "a whole number from 0"),
        (
            "\"offset\": 0",
            "\"offset\": 0, \"offset\": 8",
            "`params[0].pointer` has its field `offset` twice",
            "Give each field once.",
        ),
        (
            "{ \"buffer\": 0, \"offset\": 0 }",
            "{}",
            "`params[0].pointer` lacks its field `buffer`",
            "Give `buffer`, a whole number",
        ),
        (
            "\"grid\": [1, 1, 1],",
            "",
            "the launch file lacks its field `grid`",
            "Give `grid`, a list of 3 whole numbers",
        ),
        (
            "\"buffer\": 0",
            "\"buffer\": \"out\"",
            "`params[0].pointer.buffer` cannot be \"out\"",
            "It is: Number of a buffer, from 0.",
        ),
        (
            "{ \"pointer\": { \"buffer\": 0, \"offset\": 0 } }",
            "{ \"f32\": 1e39 }",
            "`params[0].f32` cannot be `1e39`",
            "3.4028234663852886e38",
        ),
        (
            "{ \"pointer\": { \"buffer\": 0, \"offset\": 0 } }",
            "{ \"bytes\": \"0g\" }",
            "`params[0].bytes` cannot be \"0g\"",
            "pairs of hexadecimal digits",
        ),
    ] {
        let said = changed(from, to);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{to}");
        assert!(said.err.contains(title) && said.err.contains(says), "{to}: {}", said.err);
    }
    // Each that is wrong, the first three with their lines.
    let said = changed("[64, 1, 1]", "[-1, true, \"1\", 4]");
    assert!(said.err.starts_with("error: `block` is a list of length 4\n"), "{}", said.err);
    let said = changed("[64, 1, 1]", "[-1, true, \"1\"]");
    assert_eq!(said.err.matches("error: `block[").count(), 3, "{}", said.err);
}

/// What is no UTF-8 is told with its line, of kernel and launch file; what is wrong with both is told of both.
#[test]
fn bytes_that_are_no_text_are_told_and_both_files_are_read() {
    let folder = copy(&["tests/files/exchange.ptx", "tests/files/exchange.json"]);
    let run = || emulate(folder.path(), &["exchange.ptx", "--launch", "exchange.json"]);
    let path = folder.path().join("exchange.json");
    let mut bytes = std::fs::read(&path).expect("the launch file");
    let at = bytes.windows(4).position(|four| four == b"grid").expect("the grid");
    bytes[at] = 0xff;
    std::fs::write(&path, &bytes).expect("written");
    let said = run();
    assert_eq!(said.status, 2);
    let title = format!("error: byte {at} of the file, 0xff, is no UTF-8\n");
    assert!(said.err.starts_with(&title) && said.err.contains("--> exchange.json:3:4\n"), "{}", said.err);

    std::fs::write(folder.path().join("exchange.ptx"), ".version 8.8\n.target sm_100a\nnonsense\n").expect("written");
    let said = run();
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains(" exchange.ptx:3:") && said.err.contains(" exchange.json:3:4\n"), "{}", said.err);
    let said = emulate(folder.path(), &["exchange.ptx", "--launch", "exchange.json", "--format", "json"]);
    let refusal: serde_json::Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(refusal["errors"].as_array().map(Vec::len), Some(2), "{}", said.out);

    std::fs::write(folder.path().join("exchange.ptx"), b"// \xe4\n").expect("written");
    assert!(run().err.starts_with("error: byte 3 of the file, 0xe4, is no UTF-8\n"));
}
