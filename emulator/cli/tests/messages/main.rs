//! What a user reads of mistakes that newcomers make: each whole message.

#[path = "../common/mod.rs"]
mod common;

mod accesses;
mod kernels;
mod launch_files;
mod races;
mod reports;
mod spaces;
mod undefined;

use common::{emulate_texts, without_cycles};
use expect_test::Expect;

/// A kernel `k` around a body, with registers and 4 KiB of shared memory. `%rd0` points to the buffer `out`, `%rd2` to `in`; `%r0` is
/// the thread's number.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out, .param .u64 in)\n{{\n\
         .shared .align 1024 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n.shared .align 8 .b64 free;\n\
         .reg .pred %p<8>;\n.reg .b16 %h<8>;\n.reg .b32 %r<32>;\n.reg .b64 %rd<16>;\n\
         ld.param.u64 %rd0, [out];\nld.param.u64 %rd2, [in];\nmov.u32 %r0, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\n{body}\nret;\n}}\n"
    )
}

/// A launch of one CTA: `out` was never written, `in` holds ones.
fn launch(threads: u32) -> String {
    format!(
        r#"{{"entry": "k", "grid": [1, 1, 1], "block": [{threads}, 1, 1],
 "buffers": [{{"name": "out", "content": {{"undefined": {{"bytes": 4096}}}}}},
             {{"name": "in", "content": {{"fill": {{"bytes": 4096, "value": 1}}}}}}],
 "params": [{{"pointer": {{"buffer": 0}}}}, {{"pointer": {{"buffer": 1}}}}]}}"#
    )
}

/// What the command says of a kernel.
fn says(body: &str, threads: u32, arguments: &[&str], expected: Expect) {
    let said = emulate_texts(&kernel(body), &launch(threads), arguments);
    expected.assert_eq(&without_cycles(&(said.out + &said.err)));
}
