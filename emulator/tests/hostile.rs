//! Launch descriptions and texts that ask for too much are refused, and never end the process.

use emulator::{Block, Buffer, Content, Field, Launch, Options, Param, Region, RegionKind, RegionSpace};

const EMPTY: &str = ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{\nret;\n}\n";

fn launch() -> Launch {
    Launch { entry: "k".into(), grid: [1; 3], cluster: [1; 3], block: [32, 1, 1], ..Default::default() }
}

fn refused(text: &str, launch: &Launch) -> &'static str {
    let program = emulator::load(text).unwrap_or_else(|errors| panic!("does not load: {errors:#?}"));
    let report = emulator::run(&program, launch, &Options::default());
    assert!(!report.completed);
    report.findings.first().map_or("", |d| d.code)
}

#[test]
fn launches_that_no_gpu_takes() {
    for block in [[u32::MAX; 3], [1 << 31, 1 << 31, 4], [1, 1, 65], [0, 1, 1], [1025, 1, 1]] {
        assert_eq!(refused(EMPTY, &Launch { block, ..launch() }), "launch", "{block:?}");
    }
    for grid in [[0, 1, 1], [u32::MAX, 1, 1], [1, 65536, 1]] {
        assert_eq!(refused(EMPTY, &Launch { grid, ..launch() }), "launch", "{grid:?}");
    }
    assert_eq!(refused(EMPTY, &Launch { dynamic_shared: u32::MAX, ..launch() }), "launch");
}

/// With `setmaxnreg`, each thread begins with all registers that `.maxnreg` allows.
#[test]
fn registers_that_no_sm_has() {
    let text = EMPTY.replace("()\n{", "()\n.maxnreg 168\n{\nsetmaxnreg.dec.sync.aligned.u32 152;");
    let program = emulator::load(&text).expect("it loads");
    let run = |threads| {
        let launch = Launch { block: [threads, 1, 1], ..launch() };
        let report = emulator::run(&program, &launch, &Options::default());
        report.findings.first().map_or(String::new(), |d| format!("{}: {}", d.code, d.help))
    };
    assert_eq!(run(384), "");
    assert_eq!(run(512), "launch: An SM has 65536 registers: lower `.maxnreg` to 128, or launch fewer threads.");
}

/// The assembler ignores a `.maxnreg` that is more than a thread can have (ptxas 13.5 says so), and then `setmaxnreg`, as where none is given.
#[test]
fn registers_that_no_thread_has() {
    let first = |directive: &str| {
        let text = EMPTY.replace("()\n{", &format!("()\n{directive}\n{{\nsetmaxnreg.inc.sync.aligned.u32 240;"));
        let program = emulator::load(&text).expect("it loads");
        let launch = Launch { block: [128, 1, 1], ..launch() };
        let report = emulator::run(&program, &launch, &Options::default());
        let ignored = report.notes.iter().any(|d| d.code == "setmaxnreg-without-effect");
        (report.findings.first().map(|d| d.code), ignored)
    };
    assert_eq!(first(".maxnreg 24"), (Some("hang"), false));
    // It begins with the 240 that it asks for.
    assert_eq!(first(".maxnreg 255"), (None, false));
    for most in ["", ".maxnreg 256", ".maxnreg 2147483648", ".maxnreg 4294967295", ".maxnreg 18446744073709551615"] {
        assert_eq!(first(most), (None, true), "{most}");
    }
}

/// What a GPU takes but would need days or all memory here.
#[test]
fn launches_that_are_too_large() {
    let grid = [i32::MAX as u32, 65535, 65535];
    assert_eq!(refused(EMPTY, &Launch { grid, ..launch() }), "not-modelled");
    let buffer = |bytes| Buffer { name: "b".into(), content: Content::Undefined { bytes }, ..Default::default() };
    for buffers in [vec![buffer(u64::MAX)], vec![buffer(u64::MAX), buffer(u64::MAX)], vec![buffer(1 << 36)]] {
        assert_eq!(refused(EMPTY, &Launch { buffers, ..launch() }), "launch");
    }
}

/// Addresses that lie in a buffer: of a buffer that there is not, beyond its end, beyond the list; and a list that is too long.
#[test]
fn lists_of_addresses_beyond_all_bounds() {
    let list = |size, at, buffer, offset| {
        let value = Param::Pointer { buffer, offset };
        let content = Content::Struct(Block { size, fields: vec![Field { at, value }] });
        vec![Buffer { name: "list".into(), content, ..Default::default() }]
    };
    let program = emulator::load(EMPTY).unwrap_or_else(|errors| panic!("{errors:#?}"));
    let right = Launch { buffers: list(16, 8, 0, 16), ..launch() };
    assert!(emulator::run(&program, &right, &Options::default()).is_clean());
    for buffers in
        [list(16, 8, 1, 0), list(16, 8, 0, 17), list(16, 9, 0, 0), list(16, u32::MAX, 0, 0), list(u32::MAX, 0, 0, 0)]
    {
        assert_eq!(refused(EMPTY, &Launch { buffers, ..launch() }), "launch");
    }
}

#[test]
fn directives_and_parameters_beyond_all_bounds() {
    let text = EMPTY.replace("k()", "k()\n.maxntid 4294967295, 4294967295, 4294967295");
    let program = emulator::load(&text).unwrap_or_else(|errors| panic!("{errors:#?}"));
    assert!(emulator::run(&program, &launch(), &Options::default()).is_clean());
    // Products that 64 bits do not hold.
    for size in [u32::MAX, 1 << 31, 1 << 22] {
        let text = EMPTY.replace("k()", &format!("k()\n.reqnctapercluster {size}, {size}, {size}"));
        assert_eq!(refused(&text, &launch()), "launch", "{size}");
    }
    let params: Vec<_> = (0..20).map(|n| format!(".param .b8 p{n}[268435456]")).collect();
    let errors = emulator::load(&EMPTY.replace("k()", &format!("k({})", params.join(", ")))).expect_err("5 GiB");
    assert!(errors.iter().any(|e| e.title.contains("parameters")), "{errors:#?}");
}

#[test]
fn regions_beyond_all_bounds() {
    let text = EMPTY.replace(
        "ret;",
        ".reg .b32 %r<2>;\n.reg .b64 %rd;\nmov.u32 %r0, d;\nld.shared.u32 %r1, [%r0];\nst.global.u32 [%rd], %r1;\nret;",
    );
    let text = text.replace(".visible", ".extern .shared .align 16 .b8 d[];\n.visible");
    let kind = RegionKind::Tile { rows: u32::MAX, columns: u32::MAX, element_bytes: u32::MAX, swizzle: 128 };
    let region =
        |bytes| Region { name: "t".into(), space: RegionSpace::DynamicShared, offset: 0, bytes, kind, stage: None };
    for (bytes, code) in [(1024, "undefined-operand"), (1025, "launch"), (u32::MAX, "launch")] {
        let launch = Launch { dynamic_shared: 1024, regions: vec![region(bytes)], ..launch() };
        assert_eq!(refused(&text, &launch), code, "{bytes}");
    }
}
