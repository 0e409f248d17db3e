//! Launch files that are refused, at their field.

use crate::common::emulate_texts;
use expect_test::expect;

const KERNEL: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])\n{\nret;\n}\n";

/// Launch files that say what cannot be meant: the field, what was found, what is allowed.
#[test]
fn launch_files_are_refused_at_their_field() {
    let file = |from: &str, to: &str| {
        let text = r#"{"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1],
 "buffers": [{"name": "a", "content": {"fill": {"bytes": 4096, "value": 1}}},
             {"name": "b", "content": {"undefined": {"bytes": 64}}}],
 "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u32": 5},
            {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32, 64], "strides": [64], "box_dims": [32, 8]}}}],
 "attributes": {"resident_clusters": 4},
 "outputs": [{"buffer": 0, "file": "a.bin"}, {"buffer": 1, "file": "b.bin"}]}"#;
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    for (from, to, expected) in [
        (
            "\"u32\": 5",
            "\"u32\": 1.5",
            expect![[r#"
            error: `params[1].u32` cannot be `1.5`
             --> k.json:4:63
              |
            4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u32": 1.5},
              |                                                               ^^^ found here
              |
              = try: Allowed here: a whole number from 0 to 4294967295.
        "#]],
        ),
        (
            "\"u32\": 5",
            "\"f32\": 1.5",
            expect![[r#"
                error[launch]: parameter `n` is of type `.u32`, the launch gives a 32-bit floating-point number
                 --> k.json:4:55
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"f32": 1.5},
                  |                                                       ^^^^^^^^^^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Give a value of its type: `{ "u32": … }`, or its bits as `bytes`.
            "#]],
        ),
        (
            "\"u32\": 5",
            "\"u33\": 5",
            expect![[r#"
                error: `params[1]` cannot be `u33`
                 --> k.json:4:56
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u33": 5},
                  |                                                        ^^^^^ found here
                  |
                  = try: Allowed here: an object with one field, which names the kind: `u8`, `u16`, `u32`, `u64`, `i8`, `s8`, `i16`, `s16`, `i32`, `s32`, `i64`, `s64`, `f16`, `bf16`, `f32`, `f64`, `pointer`, `bytes`, `tensor_map`, `struct`. As in `{ "pointer": { "buffer": 0 } }` or `{ "u32": 1000 }`.
            "#]],
        ),
        (
            "{\"u32\": 5}",
            "5",
            expect![[r#"
                error: `params[1]` cannot be `5`
                 --> k.json:4:55
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, 5,
                  |                                                       ^ found here
                  |
                  = try: Allowed here: an object with one field, which names the kind: `u8`, `u16`, `u32`, `u64`, `i8`, `s8`, `i16`, `s16`, `i32`, `s32`, `i64`, `s64`, `f16`, `bf16`, `f32`, `f64`, `pointer`, `bytes`, `tensor_map`, `struct`. As in `{ "pointer": { "buffer": 0 } }` or `{ "u32": 1000 }`.
            "#]],
        ),
        (
            "\"u32\": 5",
            "\"u32\": 5, \"f32\": 1",
            expect![[r#"
                error: `params[1]` has more than one field
                 --> k.json:4:66
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 16}}, {"u32": 5, "f32": 1},
                  |                                                                  ^^^^^ found here
                  |
                  = try: Allowed here: an object with one field, which names the kind: `u8`, `u16`, `u32`, `u64`, `i8`, `s8`, `i16`, `s16`, `i32`, `s32`, `i64`, `s64`, `f16`, `bf16`, `f32`, `f64`, `pointer`, `bytes`, `tensor_map`, `struct`. As in `{ "pointer": { "buffer": 0 } }` or `{ "u32": 1000 }`.
            "#]],
        ),
        (
            "\"buffer\": 0, \"offset\": 16",
            "\"offset\": 16",
            expect![[r#"
                error: `params[0].pointer` lacks its field `buffer`
                 --> k.json:4:25
                  |
                4 |  "params": [{"pointer": {"offset": 16}}, {"u32": 5},
                  |                         ^^^^^^^^^^^^^^ found here
                  |
                  = try: Give `buffer`, a whole number from 0 to 18446744073709551615. It has fields of `buffer`, `offset`.
            "#]],
        ),
        (
            "\"offset\": 16",
            "\"offset\": 4097",
            expect![[r#"
                error[launch]: parameter `a` points to byte 4097 of buffer 0, which has 4096 bytes
                 --> k.json:4:49
                  |
                4 |  "params": [{"pointer": {"buffer": 0, "offset": 4097}}, {"u32": 5},
                  |                                                 ^^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Give a byte within the buffer, or make the buffer larger.
            "#]],
        ),
        (
            "[1, 1, 1]",
            "[1, 1]",
            expect![[r#"
                error: `grid` is a list of length 2
                 --> k.json:1:24
                  |
                1 | {"entry": "k", "grid": [1, 1], "block": [32, 1, 1],
                  |                        ^^^^^^ found here
                  |
                  = try: Allowed here: a list of 3 whole numbers from 0 to 4294967295. It is: CTAs in x, y, z.
            "#]],
        ),
        (
            "[1, 1, 1]",
            "null",
            expect![[r#"
                error: `grid` cannot be `null`
                 --> k.json:1:24
                  |
                1 | {"entry": "k", "grid": null, "block": [32, 1, 1],
                  |                        ^^^^ found here
                  |
                  = try: Allowed here: a list of 3 whole numbers from 0 to 4294967295. It is: CTAs in x, y, z.
            "#]],
        ),
        (
            "\"entry\": \"k\"",
            "\"entry\": 7",
            expect![[r#"
                error: `entry` cannot be `7`
                 --> k.json:1:11
                  |
                1 | {"entry": 7, "grid": [1, 1, 1], "block": [32, 1, 1],
                  |           ^ found here
                  |
                  = try: Allowed here: a text in quotes. It is: Name of the .entry.
            "#]],
        ),
        (
            "\"name\": \"b\"",
            "\"name\": \"a\"",
            expect![[r#"
                error[launch]: buffers 0 and 1 have one name, `a`
                 --> k.json:3:23
                  |
                3 |              {"name": "a", "content": {"undefined": {"bytes": 64}}}],
                  |                       ^^^ given here
                  |
                  = rule: A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capabilities 9.0 and 10.0).
                  = try: Give each buffer a name of its own: messages call it by that.
            "#]],
        ),
        (
            "\"resident_clusters\": 4",
            "\"resident_clusters\": 0",
            expect![[r#"
                error[launch]: no cluster may run: `resident_clusters` is 0
                 --> k.json:6:38
                  |
                6 |  "attributes": {"resident_clusters": 0},
                  |                                      ^ given here
                  |
                  = rule: A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capabilities 9.0 and 10.0).
                  = try: Allowed: 1 or more. Left out, as many run as the GPU has room for.
            "#]],
        ),
        (
            "b.bin",
            "a.bin",
            expect![[r#"
                error[launch]: outputs 0 and 1 go to one file, `a.bin`
                 --> k.json:7:68
                  |
                7 |  "outputs": [{"buffer": 0, "file": "a.bin"}, {"buffer": 1, "file": "a.bin"}]}
                  |                                                                    ^^^^^^^ given here
                  |
                  = rule: A launch must stay within what the kernel declares and the GPU has (PTX ISA 11.4; CUDA Programming Guide, compute capabilities 9.0 and 10.0).
                  = try: Give each output a file of its own.
            "#]],
        ),
        (
            "[32, 8]",
            "[32, 257]",
            expect![[r#"
                error[launch]: parameter `map` is no tensor map: `box_dims[1]` is 257 (allowed: 1 to 256)
                 --> k.json:5:120
                  |
                5 |             {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32, 64], "strides": [64], "box_dims": [32, 257]}}}],
                  |                                                                                                                        ^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Load a tile that is larger than 256 along a dimension as several boxes.
            "#]],
        ),
        (
            "[32, 8]",
            "[4, 8]",
            expect![[r#"
                error[launch]: parameter `map` is no tensor map: `box_dims[0]` is 4, which makes rows of 8 bytes with elements of 2 bytes (allowed: multiples of 16 bytes)
                 --> k.json:5:116
                  |
                5 |             {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32, 64], "strides": [64], "box_dims": [4, 8]}}}],
                  |                                                                                                                    ^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Make the rows of the box a multiple of 8 elements.
            "#]],
        ),
        (
            "\"dims\": [32, 64]",
            "\"dims\": [32]",
            expect![[r#"
                error[launch]: parameter `map` is no tensor map: `box_dims` has 2 numbers; for 1 dimension it has 1
                 --> k.json:5:111
                  |
                5 |             {"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32], "strides": [64], "box_dims": [32, 8]}}}],
                  |                                                                                                               ^^^^^^^ given here
                  |
                 ::: k.ptx:4:17
                  |
                4 | .visible .entry k(.param .u64 a, .param .u32 n, .param .align 64 .b8 map[128])
                  |                 -------------------------------------------------------------- this kernel
                  |
                  = rule: A launch gives each parameter of the entry one value of its type and size.
                  = try: Keep to what cuTensorMapEncodeTiled takes.
            "#]],
        ),
        (
            "\"buffer\": 1, \"file\"",
            "\"buffer\": 1 \"file\"",
            expect![[r#"
                error: this is no JSON: expected `,` or `}`
                 --> k.json:7:59
                  |
                7 |  "outputs": [{"buffer": 0, "file": "a.bin"}, {"buffer": 1 "file": "b.bin"}]}
                  |                                                           ^ found here
                  |
                  = try: Write JSON (RFC 8259): names and texts in double quotes, a comma between values and none behind the last, no comments.
            "#]],
        ),
    ] {
        let said = emulate_texts(KERNEL, &file(from, to), &[]);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{to}");
        expected.assert_eq(&said.err);
    }
    assert_eq!(emulate_texts(KERNEL, &file("", ""), &[]).status, 0);
}

/// What is not closed is no end of it: the reader stops at the 128th level.
#[test]
fn what_lies_too_deep_is_told_in_words_of_ours() {
    let deep = "[".repeat(200);
    for text in [deep.clone(), format!("{{\"entry\": \"k\",\n \"buffers\": {deep}")] {
        let said = emulate_texts(KERNEL, &text, &[]);
        assert_eq!((said.status, said.out.as_str()), (2, ""));
        assert!(
            said.err.starts_with("error: this is no launch file: here more than 128 values lie within each other\n"),
            "{}",
            said.err
        );
        assert!(said.err.contains("= try: Close the brackets"), "{}", said.err);
    }
    let closed = format!("{{\"entry\": \"[k\", \"buffers\": {deep}{}}}", "]".repeat(200));
    for text in [closed.clone(), closed.replace("buffers", "grid"), closed.replace("buffers", "unknown")] {
        let said = emulate_texts(KERNEL, &text, &[]);
        assert!(said.status == 2 && said.err.contains("more than 128 values lie within each other"), "{}", said.err);
    }
}

/// What a launch of a newcomer lacks: the message says what the kernel has, and what to write.
#[test]
fn a_launch_that_does_not_fit_is_told_what_would() {
    const KERNEL: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .f32 s)\n{\nret;\n}\n";
    const FUNCTION: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .func k()\n{\nret;\n}\n";
    let text = r#"{"entry": "k", "grid": [3, 1, 1], "block": [32, 1, 1],
 "buffers": [{"name": "a", "content": {"fill": {"bytes": 4096, "value": 1}}}],
 "params": [{"pointer": {"buffer": 0}}, {"f32": 1}]}"#;
    for (kernel, from, to, says) in [
        (
            FUNCTION,
            "",
            "",
            "The module has no entry: begin one with `.visible .entry k( … )`; a `.func` cannot be launched.",
        ),
        (
            KERNEL,
            "\"block\"",
            "\"cluster\": [2, 1, 1], \"block\"",
            "multiple of the cluster's: in x, 3 is none of 2; 2 or 4 is.",
        ),
        (KERNEL, ", {\"f32\": 1}", "", "Give one value for each parameter, in order: `a` (.u64), `s` (.f32)."),
        (KERNEL, "{\"pointer\": {\"buffer\": 0}}", "{\"u32\": 1}", "{ \"pointer\": { \"buffer\": 0 } }"),
        (KERNEL, "{\"f32\": 1}", "\"x\"", "As in `{ \"pointer\": { \"buffer\": 0 } }` or `{ \"u32\": 1000 }`."),
    ] {
        let said = emulate_texts(kernel, &text.replacen(from, to, 1), &[]);
        assert!(said.status == 2 && (said.out.clone() + &said.err).contains(says), "{to}: {}{}", said.out, said.err);
    }
}

/// Messages and traces go by regions: one that goes beyond what the launch has is a slip.
#[test]
fn a_region_lies_within_its_memory() {
    const KERNEL: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";
    let said = |space: &str, offset: u32| {
        let launch = format!(
            r#"{{"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "dynamic_shared": 1024, "regions": [
 {{"name": "stage", "space": "{space}", "offset": {offset}, "bytes": 128, "kind": "scalar"}}]}}"#
        );
        emulate_texts(KERNEL, &launch, &[])
    };
    for (space, offset, title) in [
        (
            "dynamic_shared",
            897,
            "region `stage` ends at 1025, beyond the 1024 bytes of dynamic shared memory that the launch has",
        ),
        ("tensor", 385, "region `stage` ends at 513, beyond the 512 columns of tensor memory"),
    ] {
        let refused = said(space, offset);
        assert!(
            refused.status == 2 && refused.err.contains(title) && refused.err.contains("k.json:2"),
            "{}",
            refused.err
        );
        let right = said(space, offset - 1);
        assert_eq!(right.status, 0, "{}{}", right.out, right.err);
    }
}

/// Where a kernel takes a tensor map, and where it takes an address: what was given, and the way out.
#[test]
fn an_address_is_no_tensor_map() {
    const KERNEL: &str = ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .align 64 .b8 map[128])\n{\nret;\n}\n";
    let map = r#"{"tensor_map": {"buffer": 0, "map": {"element": "f16", "dims": [32, 64], "strides": [64], "box_dims": [32, 8]}}}"#;
    let launch = |params: [&str; 2]| {
        format!(
            r#"{{"entry": "k", "grid": [1, 1, 1], "block": [32, 1, 1], "buffers": [{{"name": "a", "content": {{"undefined": {{"bytes": 4096}}}}}}], "params": [{}]}}"#,
            params.join(", ")
        )
    };
    let pointer = r#"{"pointer": {"buffer": 0}}"#;
    for (params, title, says) in [
        (
            [pointer, pointer],
            "parameter `map` takes 128 bytes, the launch gives an address, which has 8",
            "give `{ \"tensor_map\": { \"buffer\": 0, \"map\": … } }`",
        ),
        (
            [map, map],
            "parameter `a` takes 8 bytes, the launch gives a tensor map, which has 128",
            "give a buffer's address, `{ \"pointer\": { \"buffer\": 0 } }`",
        ),
    ] {
        let said = emulate_texts(KERNEL, &launch(params), &[]);
        assert_eq!(said.status, 2);
        assert!(said.err.contains(title) && said.err.contains(says), "{}", said.err);
    }
    assert_eq!(emulate_texts(KERNEL, &launch([pointer, map]), &[]).status, 0);
}
