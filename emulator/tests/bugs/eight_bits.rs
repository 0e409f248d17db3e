//! The ring with FP8 operands, whose type the launch tells where it gives random numbers: an instruction descriptor that takes them for another one.

use super::case::{Base::Ring, edited, says, told};
use super::common;
use NumberType::{E4m3, E5m2};
use emulator::{Content, Distribution, Element, Launch, NumberType, Param, Random, Report};

/// A row of a tile has as many bytes as before, and twice as many elements.
const EIGHT_BITS: &[(&str, &str)] = &[("kind::f16", "kind::f8f6f4"), ("@column", "    shl.b32 %r18, %r14, 7;")];
/// By the types of A and of B.
const DESCRIPTORS: [[&str; 2]; 2] = [["0x08100010", "0x08100410"], ["0x08100090", "0x08100490"]];

fn launch(types: [Option<NumberType>; 2]) -> Launch {
    let mut launch = Ring.launch();
    for (n, number) in types.into_iter().enumerate() {
        let Param::TensorMap { map, .. } = &mut launch.params[n] else { panic!("a map") };
        (map.element, map.dims[0], map.box_dims[0]) = (Element::U8, 2 * map.dims[0], 128);
        let buffer = &mut launch.buffers[n];
        buffer.element_bytes = Some(1);
        if let Some(number) = number {
            let count = buffer.content.size().expect("it has bytes");
            let distribution = Distribution::Integers { low: -2, high: 2 };
            buffer.content = Content::Random(Random { seed: n as u64, count, number, distribution });
        }
    }
    launch
}

fn run(descriptor: &str, types: [Option<NumberType>; 2]) -> Report {
    let text = edited(&edited(&Ring.text(), EIGHT_BITS), &[("0x08100010", descriptor)]);
    common::run(&common::load(&text), &launch(types), None, 400_000)
}

#[test]
fn types_of_fp8_numbers_are_those_that_the_launch_gives() {
    let all = [E4m3, E5m2];
    for ((i, a), (j, b)) in (0..4).map(|n| ((n / 2, all[n / 2]), (n % 2, all[n % 2]))) {
        let types = [Some(a), Some(b)];
        let report = run(DESCRIPTORS[i][j], types);
        assert!(report.is_clean() && report.notes.is_empty(), "{}", told(&report.findings));
        for (n, other) in [(0, DESCRIPTORS[1 - i][j]), (1, DESCRIPTORS[i][1 - j])] {
            let report = run(other, types);
            let [found] = &report.findings[..] else { panic!("{}", told(&report.findings)) };
            assert_eq!(found.code, "type-mismatch");
            let name = |format| if format == E4m3 { "E4M3" } else { "E5M2" };
            let (operand, right, taken) = (["A", "B"][n], types[n].map(name).expect("known"), all[1 - [i, j][n]]);
            let what = format!("an MMA takes {operand} for {}, which is {right} in `{operand}`", name(taken));
            says(found, &[&what, "tcgen05.mma.cta_group::1.kind::f8f6f4", "is loaded here"]);
        }
    }
    let report = run(DESCRIPTORS[1][0], [Some(E4m3), Some(E5m2)]);
    let [found] = &report.findings[..] else { panic!("{}", told(&report.findings)) };
    says(
        found,
        &["an MMA takes A for E5M2 and B for E4M3, which are E4M3 in `A` and E5M2 in `B`", "Exchange the two fields."],
    );
}

/// Of bytes nobody knows which numbers they are.
#[test]
fn bytes_may_be_of_any_type() {
    for descriptor in DESCRIPTORS.as_flattened() {
        let report = run(descriptor, [None, None]);
        assert!(report.is_clean() && report.notes.is_empty(), "{}", told(&report.findings));
    }
}
