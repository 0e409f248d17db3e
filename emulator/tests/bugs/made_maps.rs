//! Tensor maps that say something else than was meant: fields that a kernel never sets of a map that it makes, and maps that lead beyond their buffer.

use super::case::{Base, first, says, told};
use super::compiled::case::case;
use super::{common, compiled};
use emulator::Param;

/// The maps of A and of B, each made in zeroes: without one field.
#[test]
fn fields_that_are_never_set_are_named() {
    let (size_0, size_1) = ("the tensor has one index in dimension 0", "the tensor has one index in dimension 1");
    for (line, field, title) in [
        (85, "global_dim 0", size_0),
        (88, "global_dim 1", size_1),
        (91, "global_stride 0", "all 200 indices of dimension 1 lie in the same bytes"),
        (144, "global_dim 1", size_1),
        (147, "global_stride 0", "all 96 indices of dimension 1 lie in the same bytes"),
    ] {
        let report =
            compiled::without("device_maps", line, &format!("tensormap.replace.tile.{}", &field[..field.len() - 2]));
        let notes: Vec<_> = report.notes.iter().filter(|note| note.code == "tensor-map").cloned().collect();
        let all = told(&notes);
        assert!(report.is_clean() && notes.len() == 1, "line {line}: {}{all}", told(&report.findings));
        assert!(all.contains(&format!("no tensormap.replace sets {field} of the tensor map at `scratch`")), "{all}");
        assert!(all.contains(title), "{all}");
    }
    let right = case("device_maps", None);
    let report = common::run(&common::load(&right.text), &right.launch, None, 10_000_000);
    assert!(!report.notes.iter().any(|note| note.code == "tensor-map"), "{}", told(&report.notes));
}

/// The map has more rows than there are: nobody is told before a copy has some of them.
#[test]
fn a_map_that_is_larger_than_its_buffer_is_told_where_it_matters() {
    let found = first(Base::Ring, &[], |launch| {
        launch.params[4] = Param::U32(4);
        if let Param::TensorMap { map, .. } = &mut launch.params[0] {
            map.dims[1] = 512;
        }
    });
    assert_eq!(found.code, "out-of-bounds");
    let sizes = "its map has sizes of [192, 512] elements of 16 bits and strides of [384] bytes: 196608 bytes from its address on, and there are 147456 from `A` on";
    says(&found, &[sizes, "globalDim in elements"]);
    let report = super::case::run(
        Base::Ring,
        &[],
        |launch| {
            if let Param::TensorMap { map, .. } = &mut launch.params[0] {
                map.dims[1] = 512;
            }
        },
        400_000,
    );
    assert!(report.is_clean(), "{}", told(&report.findings));
}
