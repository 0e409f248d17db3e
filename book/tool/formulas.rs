//! `book formulas`: what the emulator does with swizzles and descriptors, for `tests/browser/formulas.mjs` to hold the figures' own formulas
//! (`figures/formulas.js`) against.
//!
//! **Does:** run small kernels: a copy of a numbered box for each swizzle, an MMA for each descriptor. **Never does:** compute a swizzle, or say
//! itself what a descriptor may hold.

use crate::findings;
use emulator::{Buffer, Content, Element, Launch, Options, Param, Swizzle, TensorMap};
use serde_json::{Value, json};

/// Far more than a kernel here takes.
const BUDGET: u64 = 1_000_000;
/// The swizzles, by their names in `figures/formulas.js`, with the bytes of a row.
const SWIZZLES: [(&str, Swizzle, u32); 7] = [
    ("none", Swizzle::None, 128),
    ("b32", Swizzle::B32, 32),
    ("b64", Swizzle::B64, 64),
    ("b128", Swizzle::B128, 128),
    ("b128_atom32", Swizzle::B128Atom32, 128),
    ("b128_atom32_flip8", Swizzle::B128Atom32Flip8, 128),
    ("b128_atom64", Swizzle::B128Atom64, 128),
];
/// Bytes that a box has, and after which every pattern begins again.
const PERIOD: u32 = 1024;
/// Bytes that are followed together: no swizzle takes 8 apart.
const PIECE: usize = 8;

const MATRIX: u64 = 0x4000_4040_0000_0000;
const INSTRUCTION: u32 = 0x0820_0010;
const INSTRUCTION_OF_A_PAIR: u32 = 0x1040_0010;

/// All of it.
///
/// # Errors
/// When a kernel does not run.
pub fn all() -> Result<Value, String> {
    let mut swizzles = serde_json::Map::new();
    for (name, swizzle, row) in SWIZZLES {
        swizzles.insert(name.to_string(), json!(places(swizzle, row)?));
    }
    let matrices = matrices()
        .into_iter()
        .map(|bits| json!([format!("{bits:#x}"), refuses(bits, INSTRUCTION, 1, "matrix-descriptor")]));
    let matrices: Vec<Value> = matrices.collect();
    let mut instructions = Vec::new();
    for (ctas, base) in [(1, INSTRUCTION), (2, INSTRUCTION_OF_A_PAIR)] {
        for bits in self::instructions(base) {
            let refused = refuses(MATRIX, bits, ctas, "instruction-descriptor");
            instructions.push(json!([format!("{bits:#x}"), ctas, refused]));
        }
    }
    Ok(json!({ "swizzles": swizzles, "matrices": matrices, "instructions": instructions }))
}

/// Where each 8 bytes of a box lie in shared memory, once TMA has brought them.
fn places(swizzle: Swizzle, row: u32) -> Result<Vec<usize>, String> {
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .align 64 .b8 map[128], .param .u64 out)\n{{\n\
         .shared .align 1024 .b8 box[{PERIOD}];\n.shared .align 8 .b64 come;\n.reg .pred %p;\n.reg .b32 %at, %n;\n.reg .b64 %map, %to, %v;\n\
         mov.b64 %map, map;\ncvta.param.u64 %map, %map;\nld.param.u64 %to, [out];\nmbarrier.init.shared::cta.b64 [come], 1;\n\
         mbarrier.arrive.expect_tx.shared::cta.b64 _, [come], {PERIOD};\n\
         cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [box], [%map, {{0, 0}}], [come];\n\
         WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 %p, [come], 0;\n@!%p bra WAIT;\nmov.u32 %at, box;\nmov.u32 %n, 0;\n\
         COPY:\nld.shared.b64 %v, [%at];\nst.global.b64 [%to], %v;\nadd.u32 %at, %at, 8;\nadd.s64 %to, %to, 8;\nadd.u32 %n, %n, 8;\n\
         setp.lt.u32 %p, %n, {PERIOD};\n@%p bra COPY;\nret;\n}}\n"
    );
    let numbers: Vec<u8> = (0..PERIOD as u16 / 2).flat_map(u16::to_le_bytes).collect();
    let map = TensorMap {
        address: 0,
        element: Element::U16,
        dims: vec![u64::from(row / 2), u64::from(PERIOD / row)],
        strides: vec![u64::from(row)],
        box_dims: vec![row / 2, PERIOD / row],
        element_strides: vec![],
        swizzle,
        fill_nan: false,
    };
    let launch = Launch {
        entry: "k".into(),
        grid: [1, 1, 1],
        cluster: [1, 1, 1],
        block: [1, 1, 1],
        buffers: vec![
            Buffer { name: "in".into(), content: Content::Bytes(numbers.into()), ..Buffer::default() },
            Buffer { name: "out".into(), content: Content::Undefined { bytes: PERIOD.into() }, ..Buffer::default() },
        ],
        params: vec![Param::TensorMap { buffer: 0, map }, Param::Pointer { buffer: 1, offset: 0 }],
        ..Launch::default()
    };
    let program = emulator::load(&text).map_err(|errors| format!("the copy does not load: {errors:?}"))?;
    let report = emulator::run(&program, &launch, &Options { max_instructions: BUDGET, ..Options::default() });
    if !report.is_clean() {
        return Err(format!("the copy with {swizzle:?} does not run: {:?}", report.findings));
    }
    let mut places = vec![0; PERIOD as usize / PIECE];
    for (place, piece) in report.buffers[1].bytes.chunks(PIECE).enumerate() {
        let first = usize::from(u16::from_le_bytes([piece[0], piece[1]]));
        places[first * 2 / PIECE] = place * PIECE;
    }
    Ok(places)
}

/// Matrix descriptors without an address: each field with all its values.
fn matrices() -> Vec<u64> {
    let field = |low: u32, bits: u32| {
        let mask = ((1_u64 << bits) - 1) << low;
        (0..1_u64 << bits).map(move |value| (MATRIX & !mask) | (value << low))
    };
    let with = [(46, 3), (49, 3), (52, 1), (61, 3)].into_iter().flat_map(|(low, bits)| field(low, bits));
    // A base offset where nothing is swizzled.
    with.chain(field(49, 3).map(|bits| bits & !(7 << 61))).collect()
}

/// Instruction descriptors: M and N with all their values, the types with theirs, and each bit turned.
fn instructions(base: u32) -> Vec<u32> {
    let field = |low: u32, bits: u32| {
        let mask = ((1_u32 << bits) - 1) << low;
        (0..1_u32 << bits).map(move |value| (base & !mask) | (value << low))
    };
    let mut all: Vec<u32> = [(17, 6), (24, 5), (4, 2)].into_iter().flat_map(|(low, bits)| field(low, bits)).collect();
    all.extend((0..8).flat_map(|a| (0..8).map(move |b| (base & !0x1f80) | (a << 7) | (b << 10))));
    // Sums in FP16.
    all.extend((0..2).flat_map(|a| (0..2).map(move |b| (base & !0x1fb0) | (a << 7) | (b << 10))));
    all.extend((0..32).map(|bit| base ^ (1 << bit)));
    all
}

/// Whether an MMA with these descriptors is refused for this reason.
fn refuses(matrix: u64, instruction: u32, ctas: u32, code: &str) -> bool {
    let cluster = if ctas == 2 { ".explicitcluster .reqnctapercluster 2, 1, 1" } else { "" };
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry k() {cluster}\n{{\n\
         .shared .align 1024 .b8 tile[65536];\n.shared .align 4 .b32 slot;\n.reg .pred %not, %first, %add;\n.reg .b32 %t, %columns, %what, %rank;\n\
         .reg .b64 %operand, %rest;\nmov.u32 %t, %tid.x;\nmov.u32 %rank, %cluster_ctarank;\n\
         tcgen05.alloc.cta_group::{ctas}.sync.aligned.shared::cta.b32 [slot], 512;\nbar.sync 0;\nld.shared.b32 %columns, [slot];\n\
         mov.u32 %what, tile;\nshr.u32 %what, %what, 4;\ncvt.u64.u32 %operand, %what;\nmov.b64 %rest, {matrix:#x};\nor.b64 %operand, %operand, %rest;\n\
         mov.b32 %what, {instruction:#x};\nor.b32 %rank, %rank, %t;\nsetp.ne.u32 %add, 0, 0;\nsetp.eq.u32 %first, %rank, 0;\n\
         @%first tcgen05.mma.cta_group::{ctas}.kind::f16 [%columns], %operand, %operand, %what, %add;\nret;\n}}\n"
    );
    let launch =
        Launch { entry: "k".into(), grid: [ctas, 1, 1], cluster: [ctas, 1, 1], block: [32, 1, 1], ..Launch::default() };
    findings::run(&text, &launch, BUDGET).iter().any(|said| said.code == code)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is recorded can be wrong: it holds both answers, and swizzles that differ.
    #[test]
    fn the_emulator_takes_some_and_refuses_others() {
        let places: Vec<Vec<usize>> =
            SWIZZLES.iter().map(|(_, swizzle, row)| places(*swizzle, *row).unwrap()).collect();
        assert_eq!(places[0], (0..128).map(|n| n * 8).collect::<Vec<_>>(), "without a swizzle nothing moves");
        for (n, one) in places.iter().enumerate() {
            let mut sorted = one.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, places[0], "each place once");
            assert!(places.iter().skip(n + 1).all(|other| other != one), "{:?}", SWIZZLES[n]);
        }
        assert!(!refuses(MATRIX, INSTRUCTION, 1, "matrix-descriptor"));
        assert!(refuses(MATRIX & !(7 << 46), INSTRUCTION, 1, "matrix-descriptor"));
        for (ctas, good, bad) in [(1, INSTRUCTION, INSTRUCTION_OF_A_PAIR), (2, INSTRUCTION_OF_A_PAIR, 0x0600_0010)] {
            assert!(!refuses(MATRIX, good, ctas, "instruction-descriptor"), "{ctas}");
            assert!(refuses(MATRIX, bad, ctas, "instruction-descriptor"), "{ctas}");
        }
    }
}
