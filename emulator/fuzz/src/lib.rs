//! What each fuzz target does with its bytes: to an error, a finding or a result, never to a panic.
//!
//! `cargo test -p emulate --test fuzz` calls the same functions with seeded mutations of the seeds; the README of this folder says how
//! libFuzzer does.

use emulator::{Buffer, Content, Element, Launch, Options, Param, Swizzle, TensorMap};

/// Texts are parsed and decoded; a module that loads has its entries listed.
pub fn parser(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(program) = emulator::load(text) {
        let _ = program.entries();
    }
}

/// A kernel whose parameters are of every kind; most launches do not fit it, and must be told so.
const KERNEL: &str = ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 a, .param .u32 b, \
    .param .align 64 .b8 m[128], .param .align 8 .b8 s[24])\n{\nret;\n}\n";

/// Launch files go the way that the command goes, up to the run.
pub fn launch(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    if let Ok(launch) = emulate::check(KERNEL, text) {
        // What was accepted can be written again, and is accepted again.
        let _ = launch.buffers.len();
    }
}

/// Every entry of a text runs on launches of one and of two CTAs, with pointers and tensor maps as its parameters, for as many
/// instructions as a kernel of the seeds needs.
pub fn executor(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let Ok(program) = emulator::load(text) else { return };
    for entry in program.entries() {
        for (ctas, threads, maps, seed) in
            [(1, 128, 0, None), (2, 64, 3, Some(1)), (2, 128, 3, None), (1, 32, 1, Some(2))]
        {
            let launch = some_launch(entry, ctas, threads, maps);
            let options = Options { seed, max_instructions: 3_000, trace: seed.is_some(), ..Options::default() };
            let _ = emulator::run(&program, &launch, &options);
        }
    }
}

/// Three buffers; the first parameters are tensor maps of them or pointers to them, a number stands behind.
fn some_launch(entry: &str, ctas: u32, threads: u32, maps: usize) -> Launch {
    let buffer = |name: &str| Buffer {
        name: name.into(),
        content: Content::Fill { bytes: 64 * 256, value: 0x3c },
        ..Buffer::default()
    };
    let map = |buffer| Param::TensorMap {
        buffer,
        map: TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![64, 64],
            strides: vec![128],
            box_dims: vec![64, 64],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        },
    };
    let pointer = |buffer| Param::Pointer { buffer, offset: 0 };
    Launch {
        entry: entry.into(),
        grid: [ctas, 1, 1],
        cluster: [ctas, 1, 1],
        block: [threads, 1, 1],
        dynamic_shared: 81_968,
        buffers: ["A", "B", "D"].map(buffer).to_vec(),
        params: match maps {
            3 => vec![map(0), map(1), map(2), Param::U32(2)],
            1 => vec![pointer(0), pointer(1), map(2)],
            _ => (0..3).map(pointer).collect(),
        },
        ..Launch::default()
    }
}
