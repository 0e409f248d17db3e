//! `kernels/pair.ptx` and its launch: D = A·Bᵀ, 256 rows a cluster, 256 columns.

use emulator::{Buffer, Content, Element, Launch, Param, Report, Swizzle, TensorMap};
use half::f16;

pub const TEXT: &str = include_str!("../kernels/pair.ptx");

fn matrix(rows: usize, columns: usize, seed: u64) -> Vec<i32> {
    super::matrix(rows, columns, seed, 2)
}

/// A map of a matrix of FP16, in boxes of 64 columns.
pub fn map(buffer: usize, rows: u64, columns: u64, box_rows: u32) -> Param {
    Param::TensorMap {
        buffer,
        map: TensorMap {
            address: 0,
            element: Element::F16,
            dims: vec![columns, rows],
            strides: vec![columns * 2],
            box_dims: vec![64, box_rows],
            element_strides: vec![],
            swizzle: Swizzle::B128,
            fill_nan: false,
        },
    }
}

/// M rows, depth K.
pub fn launch(m: usize, k: usize) -> Launch {
    let (a, b) = (matrix(m, k, 1), matrix(256, k, 2));
    let bytes =
        |m: &[i32]| m.iter().flat_map(|&x| f16::from_f32(x as f32).to_bits().to_le_bytes()).collect::<Vec<u8>>();
    let buffer =
        |name: &str, content, row| Buffer { name: name.into(), content, row_bytes: Some(row), element_bytes: Some(2) };
    Launch {
        entry: "pair".into(),
        grid: [m.div_ceil(256) as u32 * 2, 1, 1],
        cluster: [2, 1, 1],
        block: [128, 1, 1],
        dynamic_shared: 81920 + 48,
        buffers: vec![
            buffer("A", Content::Bytes(bytes(&a).into()), 2 * k as u32),
            buffer("B", Content::Bytes(bytes(&b).into()), 2 * k as u32),
            buffer("D", Content::Undefined { bytes: (m * 256 * 2) as u64 }, 512),
        ],
        params: vec![
            map(0, m as u64, k as u64, 128),
            map(1, 256, k as u64, 128),
            map(2, m as u64, 256, 128),
            Param::U32(k.div_ceil(64) as u32),
        ],
        ..Default::default()
    }
}

/// Elements of D, in FP32.
pub fn d(report: &Report) -> Vec<f32> {
    let bytes = report.buffers.get(2).map_or(&[][..], |d| &d.bytes);
    bytes.as_chunks().0.iter().map(|&bits| f16::from_bits(u16::from_le_bytes(bits)).to_f32()).collect()
}

/// What the elements of D must be.
pub fn product(m: usize, k: usize) -> Vec<f32> {
    let (a, b) = (matrix(m, k, 1), matrix(256, k, 2));
    let sum = |n: usize| -> i32 { (0..k).map(|i| a[n / 256 * k + i] * b[n % 256 * k + i]).sum() };
    (0..m * 256).map(|n| f16::from_f32(sum(n) as f32).to_f32()).collect()
}

/// An mbarrier more than the kernel has, behind the others.
pub fn with_another_barrier(text: &str) -> String {
    let init = "mbarrier.init.shared::cta.b64 [%r4+32], 1;";
    assert_eq!(text.matches(init).count(), 1);
    text.replace(init, &format!("{init}\nmbarrier.init.shared::cta.b64 [%r4+48], 1;"))
}

/// The odd CTA loads 16 KB to this offset of its shared memory, and counts them on that mbarrier of the even one.
pub fn late_copy(to: u32) -> String {
    format!(
        "setp.ne.u32 %p12, %r0, 0;\nadd.u32 %r45, %r4, 48;\n@%p12 bra OVER;\n@!%p1 bra LAST;\n\
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r45], 16384;\nbra OVER;\nLAST:\n\
         mov.b64 %rd0, map_a;\ncvta.param.u64 %rd0, %rd0;\nmov.u32 %r46, 0;\nadd.u32 %r48, %r3, {to};\nand.b32 %r47, %r45, 0xfeffffff;\n\
         cp.async.bulk.tensor.2d.cta_group::2.shared::cluster.global.mbarrier::complete_tx::bytes [%r48], \
         [%rd0, {{%r46, %r46}}], [%r47];\nOVER:\n"
    )
}

/// The even CTA waits for it.
pub const WAIT_FOR_LATE_COPY: &str = "@!%p1 bra WAITED;\nWAIT_OWN:\n\
    mbarrier.try_wait.parity.shared::cta.b64 %p13, [%r45], 0;\n@!%p13 bra WAIT_OWN;\nWAITED:\n";
