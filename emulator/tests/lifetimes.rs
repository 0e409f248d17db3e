//! What ends, or is written, while something may still use it: copies on their way, lanes that are not there, caches that no write
//! reaches. And the same with what makes it right.

mod common;

use common::{load, schedules, zeroes};
use emulator::Report;

/// `%rd0` points to 4 KiB of zeroes; `%r0` is the thread's number, `%p0` says that it is 0.
fn run(body: &str, threads: u32, seed: Option<u64>) -> Report {
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 out)\n{{\n\
         .shared .align 128 .b8 tile[4096];\n.shared .align 8 .b64 bar;\n\
         .reg .pred %p<8>;\n.reg .b32 %r<16>;\n.reg .b64 %rd<8>;\n\
         mov.u32 %r0, %tid.x;\nsetp.eq.u32 %p0, %r0, 0;\nld.param.u64 %rd0, [out];\n{body}\nret;\n}}\n"
    );
    common::run(&load(&text), &common::launch("k", threads, vec![zeroes("out", 4096)]), seed, 100_000)
}

/// On every schedule, this code is found, or nothing at all.
#[track_caller]
fn gives(body: &str, threads: u32, code: Option<&str>) {
    for seed in schedules(6) {
        let report = run(body, threads, seed);
        let codes = common::codes(&report);
        assert_eq!(codes, Vec::from_iter(code), "seed {seed:?}: {body}\n{:#?}", report.findings);
    }
}

const COPY: &str = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n\
                    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd0], 16, [bar];";
const REQUEST: &str = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar], 16;\n\
                       clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [tile], [bar];";
const INIT: &str = "mbarrier.init.shared::cta.b64 [bar], 1;\nfence.mbarrier_init.release.cluster;\nfence.proxy.async;";
const WAIT: &str = "W:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra W;";
/// A wait that learns of the phase only at a fence.
const RELAXED: &str = "W:\nmbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p1, [bar], 0;\n@!%p1 bra W;";

/// `mbarrier.inval` while a copy will still complete on the barrier, whoever waits.
#[test]
fn an_mbarrier_outlives_what_completes_on_it() {
    let early = Some("mbarrier-invalidated-early");
    let inval = "mbarrier.inval.shared::cta.b64 [bar];";
    for asked in [COPY, REQUEST] {
        for (wait, code) in [("", early), (WAIT, None), (RELAXED, None)] {
            gives(&format!("@!%p0 ret;\n{INIT}\n{asked}\n{wait}\n{inval}"), 32, code);
        }
    }
    // Warp 1 waits, warp 0 invalidates: only a barrier between says that it may.
    let apart = |barrier: &str| {
        format!(
            "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n@%p0 fence.proxy.async;\nbar.sync 0;\nsetp.ge.u32 %p2, %r0, 32;\n\
             @%p2 bra WAIT;\n@!%p0 bra MEET;\n{COPY}\nbra MEET;\nWAIT:\n{WAIT}\nMEET:\n{barrier}\n@%p0 {inval}"
        )
    };
    gives(&apart("bar.sync 0;"), 64, None);
    // The wait may come too late as well.
    for seed in schedules(6) {
        assert!(common::codes(&run(&apart(""), 64, seed)).contains(&"mbarrier-invalidated-early"), "seed {seed:?}");
    }
}

/// A CTA that ends while a copy writes to its shared memory; any warp of it may wait.
#[test]
fn a_cta_outlives_the_copies_into_it() {
    let outlives = Some("load-outlives-cta");
    for (wait, code) in [("", outlives), (WAIT, None)] {
        gives(&format!("@!%p0 ret;\n{INIT}\n{REQUEST}\n{wait}"), 32, code);
    }
    // Its own copy: an H200 keeps the shared memory, so that it is a note.
    for (wait, code) in [("", outlives), (WAIT, None)] {
        let body = format!("@!%p0 ret;\n{INIT}\n{COPY}\n{wait}");
        gives(&body, 32, None);
        let noted: Vec<&str> = run(&body, 32, None).notes.iter().map(|note| note.code).collect();
        assert_eq!(noted, Vec::from_iter(code), "{body}");
    }
    let other = format!(
        "@%p0 mbarrier.init.shared::cta.b64 [bar], 1;\n@%p0 fence.proxy.async;\nbar.sync 0;\nsetp.ge.u32 %p2, %r0, 32;\n\
         @%p2 bra WAIT;\n@!%p0 ret;\n{COPY}\nret;\nWAIT:\n{WAIT}"
    );
    gives(&other, 64, None);
}

/// `shfl.sync` gives nothing defined where its source lane does not execute it (PTX ISA 9.7.9.6).
#[test]
fn a_shuffle_reads_only_lanes_that_take_part() {
    let store = "mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd0, %rd0, %rd1;\nst.global.u32 [%rd0], %r1;";
    let undefined = Some("undefined-value-stored");
    let half = |shuffle: &str| format!("setp.ge.u32 %p2, %r0, 16;\n@%p2 ret;\n{shuffle}\n{store}");
    gives(&half("shfl.sync.bfly.b32 %r1, %r0, 8, 31, 0xffff;"), 32, None);
    gives(&half("shfl.sync.bfly.b32 %r1, %r0, 16, 31, 0xffff;"), 32, undefined);
    gives(&half("shfl.sync.idx.b32 %r1, %r0, 20, 31, 0xffffffff;"), 32, undefined);
    // Beyond the segment a lane reads itself.
    gives(&half("shfl.sync.down.b32 %r1, %r0, 8, 0x100f, 0xffff;"), 32, None);
    // What the upper lanes of a reduction get does not matter.
    let sum = "shfl.sync.down.b32 %r1, %r0, 8, 31, 0xffff;\n@%p0 st.global.u32 [%rd0], %r1;";
    gives(&format!("setp.ge.u32 %p2, %r0, 16;\n@%p2 ret;\n{sum}"), 32, None);
}

/// … and nothing defined where its source lane has not written the register, although another register, which every lane has written, has
/// used the same place before: registers that are never live at once share places.
#[test]
fn a_shuffle_reads_only_what_its_source_has_written() {
    let place =
        "mul.wide.u32 %rd1, %r0, 4;\nadd.s64 %rd1, %rd0, %rd1;\nadd.u32 %r5, %r0, 7;\nst.global.u32 [%rd1], %r5;";
    let by_guard = "setp.ge.u32 %p2, %r0, 16;\n@!%p2 mov.u32 %r1, 3;";
    let by_branch = "setp.ge.u32 %p2, %r0, 16;\n@%p2 bra OVER;\nmov.u32 %r1, 3;\nOVER:\nbar.warp.sync 0xffffffff;";
    for half in [by_guard, by_branch] {
        for (lane, code) in [(4, None), (20, Some("undefined-value-stored"))] {
            let shuffle =
                format!("shfl.sync.idx.b32 %r2, %r1, {lane}, 31, 0xffffffff;\nst.global.u32 [%rd1+1024], %r2;");
            gives(&format!("{place}\n{half}\n{shuffle}"), 32, code);
        }
    }
}

/// `ld.global.nc` is for what nobody writes while the kernel runs, whatever orders the two (PTX ISA 9.7.9.9).
#[test]
fn non_coherent_loads_of_what_the_kernel_writes() {
    let found = Some("non-coherent-load");
    let after = |load: &str| format!("@%p0 st.global.u32 [%rd0], 3;\nbar.sync 0;\n{load} %r1, [%rd0];");
    let before = |load: &str| format!("{load} %r1, [%rd0];\nbar.sync 0;\n@%p0 st.global.u32 [%rd0], 3;");
    for (load, code) in [("ld.global.nc.u32", found), ("ld.global.u32", None)] {
        gives(&after(load), 64, code);
        gives(&before(load), 64, code);
    }
    gives("ld.global.nc.u32 %r1, [%rd0];\n@%p0 st.global.u32 [%rd0+4], 3;", 64, None);
}

/// The lanes of a warp that arrive together, some of them for the next phase: with 48 of 64 arrivals nobody waits for half of a warp.
/// One lane that arrives for many, warps that arrive as a whole, and lanes that complete a phase each are no such thing.
#[test]
fn lanes_that_arrive_together_count_for_one_phase() {
    let arrive = |count: u32, arrival: &str| {
        format!(
            "@%p0 mbarrier.init.shared::cta.b64 [bar], {count};\nbar.sync 0;\n{arrival} mbarrier.arrive.shared::cta.b64 _, [bar];\n{WAIT}"
        )
    };
    gives(&arrive(48, ""), 64, Some("mbarrier-split"));
    gives(&arrive(64, ""), 64, None);
    gives(&arrive(1, "@%p0"), 64, None);
    // Each warp completes a phase: nothing is split, though a wait may miss one.
    assert!(!common::codes(&run(&arrive(32, ""), 64, None)).contains(&"mbarrier-split"));
}

/// A `try_wait` may come back before the phase is complete: if nothing reads its answer, it orders nothing, on no schedule.
#[test]
fn a_wait_whose_answer_nobody_reads_orders_nothing() {
    let read = "ld.shared.u32 %r1, [tile];\nst.global.u32 [%rd0+64], %r1;";
    let copied = |wait: &str| {
        let body = format!("@!%p0 ret;\n{INIT}\n{COPY}\n{wait}\n{read}\nW2:\n{WAIT}");
        Vec::from_iter(schedules(6).map(|seed| run(&body, 32, seed)))
    };
    let once = "mbarrier.try_wait.parity.shared::cta.b64 %p2, [bar], 0;";
    let notes = |report: &Report| Vec::from_iter(report.notes.iter().map(|note| note.code));
    for report in copied(once) {
        assert_eq!((common::codes(&report), notes(&report)), (vec!["wait-result-unread"], vec![]));
    }
    // Before a wait that asks until it passes it is of no use, but does no harm.
    for report in copied(&format!("{once}\n{}", WAIT.replace('W', "V"))) {
        assert_eq!((common::codes(&report), notes(&report)), (vec![], vec!["wait-result-unread"]));
    }
    // What is read, if only by a trap, is heard.
    for report in copied(&format!("{once}\n@!%p2 trap;")).into_iter().take(1) {
        assert_eq!((common::codes(&report), notes(&report)), (vec![], vec![]));
    }
}

/// `mbarrier.inval` where no mbarrier has ever been is a note: the GPU does nothing then. Once more behind the first one it is an error.
#[test]
fn nothing_that_is_invalidated_is_a_note() {
    const INVAL: &str = "mbarrier.inval.shared::cta.b64 [bar];";
    for seed in schedules(2) {
        let report = run(&format!("@!%p0 ret;\n{INVAL}\n{INIT}"), 32, seed);
        assert_eq!((common::codes(&report), common::notes(&report)), (vec![], vec!["mbarrier-not-initialised"]));
        let report = run(&format!("@!%p0 ret;\n{INIT}\n{INVAL}\n{INVAL}"), 32, seed);
        assert_eq!(common::codes(&report), ["mbarrier-not-initialised"], "{:#?}", report.findings);
    }
}

/// What another warp does with an mbarrier may come behind its `mbarrier.inval`, unless something orders the two.
#[test]
fn an_mbarrier_outlives_what_others_do_with_it() {
    let begin = format!("@!%p0 bra MADE;\n{INIT}\nMADE:\nbar.sync 0;\nsetp.eq.u32 %p2, %r0, 32;");
    let uses = [
        "mbarrier.arrive.shared::cta.b64 _, [bar];",
        "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 0;",
        "mbarrier.test_wait.parity.shared::cta.b64 %p1, [bar], 1;",
    ];
    for used in uses {
        let body = |meet: &str| format!("{begin}\n@%p2 {used}\n{meet}\n@%p0 mbarrier.inval.shared::cta.b64 [bar];");
        gives(&body("bar.sync 0;"), 64, None);
        for seed in schedules(6) {
            // The use may come too late as well.
            let report = run(&body(""), 64, seed);
            let codes = common::codes(&report);
            let too_late = codes == ["mbarrier-not-initialised"];
            assert!(too_late || codes == ["mbarrier-invalidated-early"], "seed {seed:?}: {used} {codes:?}");
            let told = report.findings[0].labels.iter().map(|label| label.place.line).collect::<Vec<_>>();
            assert_eq!(told.len(), 2, "the use and the mbarrier.inval: {:?}", report.findings[0]);
        }
    }
}

/// Two stores of one value leave it, whoever is last. A reduction that happens to have left the same value does not.
#[test]
fn a_reduction_is_no_store_of_the_same_value() {
    let body = |first: &str, space: &str, place: &str| {
        format!(
            "setp.eq.u32 %p2, %r0, 32;\nmov.u32 %r1, 1;\nmov.u32 %r2, 0;\n@%p0 st.{space}.u32 {place}, %r2;\nbar.sync 0;\n\
             @%p0 {first}\n@%p2 st.{space}.u32 {place}, %r1;\nbar.sync 0;\nld.{space}.u32 %r3, {place};\nst.global.u32 [%rd0+64], %r3;"
        )
    };
    for (space, place, race) in [("shared", "[tile]", "race-shared"), ("global", "[%rd0]", "race-global")] {
        gives(&body(&format!("st.{space}.u32 {place}, %r1;"), space, place), 64, None);
        gives(&body(&format!("red.{space}.add.u32 {place}, %r1;"), space, place), 64, Some(race));
    }
}

/// Two copies that one phase counts come in no order: they may not write the same bytes, unless they write the same there.
#[test]
fn copies_of_one_phase_have_destinations_of_their_own() {
    let copies = |second: &str, wait: &str| {
        let copy = |to: &str, from: &str| {
            format!("cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [{to}], [{from}], 32, [bar];")
        };
        let (first, second) = (copy("tile", "%rd0"), copy(second, "%rd0+32"));
        let expect = "mbarrier.arrive.expect_tx.shared::cta.b64 _, [bar],";
        let all = if wait.is_empty() {
            format!("{expect} 64;\n{first}\n{second}")
        } else {
            format!("{expect} 32;\n{first}\n{wait}\n{expect} 32;\n{second}")
        };
        format!(
            "@!%p0 ret;\n{INIT}\n{all}\nLAST:\nmbarrier.try_wait.parity.shared::cta.b64 %p1, [bar], {};\n@!%p1 bra LAST;",
            u8::from(!wait.is_empty())
        )
    };
    gives(&copies("tile+32", ""), 32, None);
    gives(&copies("tile", ""), 32, Some("race-shared"));
    gives(&copies("tile+16", ""), 32, Some("race-shared"));
    gives(&copies("tile", WAIT), 32, None);
    // The same bytes to the same place.
    gives(&copies("tile", "").replace("%rd0+32", "%rd0"), 32, None);
}

/// Of a word that is read as a whole, the half that was written can be used, the other one cannot.
#[test]
fn half_of_a_word_is_written() {
    let body = |half: &str| {
        format!(
            ".reg .b16 %h<4>;\n@%p0 st.shared.u16 [tile], 7;\nbar.sync 0;\nld.shared.u32 %r1, [tile];\nmov.b32 {{%h0, %h1}}, %r1;\n\
             @%p0 st.global.u16 [%rd0], {half};"
        )
    };
    gives(&body("%h0"), 32, None);
    gives(&body("%h1"), 32, Some("undefined-value-stored"));
}
