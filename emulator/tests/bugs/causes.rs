//! Kernels of libraries and of Gluon with one mistake that leads to much: it is told once, as what it is.

use super::case::{Base, first, says, told};
use super::lines::broken;
use emulator::{Diagnostic, Report};

/// The cause is told first, and behind it what may have another one: no wait for that mbarrier that is named lets it come too early.
#[track_caller]
fn leads_to(mut report: Report, behind: &[&str], code: &str, line: u32, parts: &[&str]) {
    let rest: Vec<Diagnostic> = report.findings.drain(report.findings.len().min(1)..).collect();
    assert_eq!(rest.iter().map(|d| d.code).collect::<Vec<_>>(), behind, "{}", told(&rest));
    only(&report, code, line, parts);
}

/// All that is found is this: the code, a line that it names, and parts of what it says.
#[track_caller]
fn only(report: &Report, code: &str, line: u32, parts: &[&str]) {
    let text = told(&report.findings);
    assert_eq!(report.findings.iter().map(|d| d.code).collect::<Vec<_>>(), [code], "{text}");
    let named = report.findings[0].labels.iter().any(|label| label.place.line == line);
    assert!(named, "line {line} is not named:\n{text}");
    says(&report.findings[0], parts);
}

/// Nothing is found, and of the notes of this code there are so many, which name these lines.
#[track_caller]
fn noted(report: &Report, code: &str, lines: &[&[u32]], parts: &[&str]) {
    let notes: Vec<Diagnostic> = report.notes.iter().filter(|note| note.code == code).cloned().collect();
    let text = told(&notes);
    assert!(report.findings.is_empty(), "{}", told(&report.findings));
    assert_eq!(notes.len(), lines.len(), "{text}");
    for (note, lines) in notes.iter().zip(lines) {
        let named: Vec<u32> = note.labels.iter().map(|label| label.place.line).collect();
        assert!(lines.iter().all(|line| named.contains(line)), "{lines:?}:\n{text}");
        says(note, parts);
    }
}

/// Of a flag that orders nothing all sums are told together, also where they are added by `red`.
#[test]
fn a_relaxed_flag_is_one_cause() {
    let report = broken(false, "stream_k", &[(342, "release", "relaxed")]);
    only(&report, "race-global", 342, &["orders none of the accesses around it", "Set the flag with st.release.gpu"]);
    assert_eq!(report.findings[0].count, 128, "of all statements that read sums");
    let report = broken(false, "last_block", &[(572, "acq_rel", "relaxed")]);
    only(&report, "race-global", 572, &["without .release and .acquire (.acq_rel)"]);
}

#[test]
fn an_arrival_at_the_own_mbarrier_in_place_of_the_leaders() {
    let report = broken(false, "ws_two_cta", &[(228, "-16777224", "-1")]);
    let title = "of CTA 1 is arrived at here, but only that of CTA 0 is initialised";
    let help = "Use the mbarrier of CTA 0: CTA 1 names its own";
    only(&report, "mbarrier-not-initialised", 133, &[title, help]);
}

#[test]
fn sizes_of_a_map_are_exchanged() {
    let report = broken(false, "device_maps", &[(85, "%r17", "%r24"), (88, "%r24", "%r17")]);
    let help = "If a row has 160 elements, as the stride of dimension 1, 320 bytes, says, exchange the sizes of dimensions 0 and 1; if it has 200";
    noted(&report, "tensor-map-overlap", &[&[310]], &[help]);
}

#[test]
fn both_ctas_of_a_pair_load_one_half() {
    let report = broken(false, "two_cta", &[(91, "%r2, %r21", "%r2, 0")]);
    let title = "half of D's rows come out twice, and those of the other half of A are missing";
    only(&report, "operand-overlap", 181, &[title, "256 of the 512 rows of the tensor at `A` are never loaded"]);
}

#[test]
fn another_type_of_the_same_width_is_told_once() {
    let told_at = |report: &Report, lines: &[u32], part: &str| {
        only(report, "type-mismatch", lines[0], &[part]);
        let named = |line: &u32| report.findings[0].labels.iter().any(|label| label.place.line == *line);
        assert!(lines.iter().all(named), "{lines:?}: {}", told(&report.findings));
    };
    let report = broken(false, "ring3_bf16", &[(253, "135267472", "135266320")]);
    told_at(&report, &[255, 263, 123, 131], "Give both the type BF16.");
    // Loaded by maps of three dimensions, of which a box has one matrix.
    let edits = [1636, 1664, 1693, 1722].map(|line| (line, "272696464", "272695312"));
    let report = broken(true, "cutlass_mn_bf16", &edits);
    told_at(&report, &[1642, 1671], "takes A and B for FP16, which are BF16");
}

/// The CTA that the mask names in place of another one gets more than it announces: that follows.
#[test]
fn a_mask_that_leaves_a_cta_out() {
    let help = "Let the CTA mask of this multicast name CTA 2, too: its bit 2 is not set.";
    only(&broken(false, "two_pairs", &[(638, "%rs3", "3")]), "hang", 638, &[help]);
    let report = broken(true, "cutlass_static_p", &[(809, "%rs13", "3"), (930, "%rs13", "3")]);
    only(&report, "hang", 809, &[help]);
}

/// Waits that pass too early by it lead to races, to columns freed in use and to interleavings that hang.
#[test]
fn an_mbarrier_counts_fewer_threads_than_arrive() {
    let help = "160 arrive in a round, and it counts 128";
    let report = broken(true, "flashinfer_split_k", &[(67, "160", "128")]);
    assert_eq!(report.findings[0].labels[0].place.line, 68);
    let parts = ["128 arrivals a phase, and 160 arrive in a round", help];
    leads_to(report, &["tensor-freed-in-use", "can-hang"], "phase-overtaken", 68, &parts);
    let report = broken(true, "cute_dsl_fmha", &[(193, "160", "128")]);
    leads_to(report, &["race-tensor"], "hang", 194, &[help]);
}

/// One arrival is counted where warps arrive: by whichever statements.
#[test]
fn an_mbarrier_counts_one_arrival_in_place_of_many() {
    let report = broken(true, "flashinfer_split_k", &[(67, "160", "1")]);
    assert_eq!(report.findings[0].count, 120);
    let help = "Initialise the mbarrier for as many threads as arrive in a round";
    leads_to(report, &["race-shared"], "mbarrier-split", 68, &[help]);
    // Here the run does not end.
    let report = broken(true, "flash_attention_causal", &[(177, "128", "1")]);
    only(&report, "mbarrier-split", 178, &["who has not seen one of these phases waits for ever"]);
}

#[test]
fn one_barrier_for_two_groups_of_warps() {
    let report = broken(true, "thunderkittens_pairs", &[(1449, "%r7, 1", "0, 3")]);
    let parts =
        ["Give each group of warps a barrier number of its own", "in the end some wait at a CTA barrier for ever"];
    only(&report, "race-shared", 1546, &parts);
}

#[test]
fn a_barrier_counts_fewer_threads_than_come() {
    let report = broken(true, "cute_dsl_persistent", &[(462, "160", "128"), (967, "160", "128")]);
    only(&report, "hang", 967, &["160 threads come to it, by several statements: let it count them all."]);
}

/// Of the factors that are taken twice, and those that nobody takes, be they the last.
#[test]
fn scale_factors_of_another_slice() {
    for (line, from, to, byte, lines) in
        [(273, "681574416", "144703488", 1, [267, 276]), (290, "1755316272", "1218445344", 3, [284, 292])]
    {
        let report = broken(false, "mxf8", &[(line, from, to)]);
        let title = format!("no MMA reads byte {byte} of each column");
        let parts = [&*title, "is meant for those that none takes"];
        noted(&report, "loaded-never-read", &[&lines, &lines], &parts);
    }
}

#[test]
fn a_slice_of_a_in_tensor_memory_is_taken_twice() {
    for (line, from, to, columns, lines) in [
        (187, "%r76 + 0", "%r76 + 8", "columns 0 to 7", [187, 190]),
        (196, "+ 24", "+ 16", "columns 24 to 31", [193, 196]),
    ] {
        let report = broken(false, "a_in_tmem", &[(line, from, to)]);
        noted(&report, "loaded-never-read", &[&lines], &[columns, "as another MMA does"]);
    }
}

/// Behind the last columns of A lies an accumulator.
#[test]
fn a_product_is_taken_for_a() {
    let report = broken(true, "flash_attention_causal", &[(1140, "0x38", "0x40")]);
    only(&report, "type-mismatch", 1140, &["holds sums of another MMA", "this MMA takes columns 128 to 135"]);
}

#[test]
fn an_async_store_over_an_mbarrier_is_called_so() {
    let edit = (539, "%r178, 65664", "%r1, 73760");
    let report = broken(true, "flashinfer_split_k", &[edit]);
    says(&report.findings[0], &["an st.async overwrites the mbarrier"]);
}

/// Where all clusters run at once, nothing is taken over: that is said, and how to see more.
#[test]
fn no_request_is_granted() {
    let (text, mut launch) = super::lines::kernel(false, "clc");
    let program = super::common::load(&text);
    let mut said = |resident| {
        launch.attributes.resident_clusters = resident;
        let report = emulator::run(&program, &launch, &emulator::Options::default());
        report.timing.iter().filter(|label| label.text.contains("`resident_clusters` 1")).count()
    };
    assert_eq!([said(None), said(Some(1))], [1, 0]);
}

/// Threads of two CTAs have no CTA barrier in common.
#[test]
fn two_ctas_are_not_sent_to_a_barrier_of_one() {
    const STORED_AFAR: &str = "\
barrier.cluster.arrive;
barrier.cluster.wait;
mov.u32 %r3, tile;
mapa.shared::cluster.u32 %r4, %r3, 0;
setp.eq.u32 %p1, %r2, 1;
@!%p1 bra HERE;
@%p0 st.shared::cluster.u32 [%r4], %r0;
bra.uni END;
HERE:
@%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [tile], 16;
@%p0 cp.async.bulk.commit_group;
@%p0 cp.async.bulk.wait_group 0;
END:
barrier.cluster.arrive;
barrier.cluster.wait;";
    let found = first(Base::Small(2, 32, STORED_AFAR), &[], |_| {});
    assert_eq!(found.code, "race-shared");
    says(&found, &["a cluster barrier (barrier.cluster.arrive, then barrier.cluster.wait)"]);
    assert!(!found.help.contains("bar.sync"), "{}", found.help);
}
