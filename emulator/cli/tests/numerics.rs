//! `--numerics`: what differs between the two ways to compute sums.

mod common;

use common::{emulate, here};

/// Each element of D is 1 + 2^-11 + 1.5 · 2^-24, of which FP32 keeps 24 significant bits: rounded to nearest the last one is 2^-23, so that the
/// kernel's conversion to FP16 rounds up; the tensor core cuts the sum off, and what is left lies in the middle of 1 and 1 + 2^-10: to even.
#[test]
fn exact_numerics_cut_sums_off_as_the_tensor_core_does() {
    let folder = tempfile::tempdir().expect("a scratch folder");
    std::fs::copy(here("../tests/gluon/tile_single.ptx"), folder.path().join("tile_single.ptx")).expect("the kernel");
    let launch = folder.path().join("recorded.json");
    let mut text: serde_json::Value =
        serde_json::from_slice(&std::fs::read(here("tests/files/recorded.json")).expect("the launch"))
            .expect("the launch is JSON");
    for (buffer, row) in
        [[1.0, 2f32.powi(-11), 1.5 * 2f32.powi(-12)], [1.0, 1.0, 2f32.powi(-12)]].into_iter().enumerate()
    {
        let elements = (0..49152).map(|at| row.get(at % 192).copied().unwrap_or(0.0));
        let bytes: Vec<u8> = elements.flat_map(|x| half::f16::from_f32(x).to_le_bytes()).collect();
        let name = format!("content{buffer}.bin");
        std::fs::write(folder.path().join(&name), bytes).expect("written");
        text["buffers"][buffer]["content"] = serde_json::json!({ "file": name });
    }
    std::fs::write(&launch, text.to_string()).expect("written");
    for (numerics, bits) in [("fast", 0x3c01), ("exact", 0x3c00)] {
        let said = emulate(folder.path(), &["tile_single.ptx", "--launch", "recorded.json", "--numerics", numerics]);
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{}", said.out);
        let d = std::fs::read(folder.path().join("d.bin")).expect("the output");
        let wrong = d.as_chunks().0.iter().filter(|&&two| u16::from_le_bytes(two) != bits).count();
        assert_eq!((d.len(), wrong), (2 * 256 * 256, 0), "{numerics}: {:x?}", &d[..2]);
    }
}
