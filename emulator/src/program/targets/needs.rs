//! What instructions need: which GPUs have them, and from which version of PTX on.

use crate::syntax::ast::{Instruction, Operand};

/// A version of PTX.
pub type Version = (u32, u32);

/// What the name of a target says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capability {
    pub number: u32,
    /// With the suffix `a` or `f`: for this GPU, or its family, and no later one.
    pub suffixed: bool,
    /// With the suffix `a`.
    pub own: bool,
}

/// `None`: the name is none of a GPU.
pub fn capability(target: &str) -> Option<Capability> {
    let name = target.strip_prefix("sm_")?;
    let digits = name.trim_end_matches(['a', 'f']);
    Some(Capability { number: digits.parse().ok()?, suffixed: digits != name, own: name.ends_with('a') })
}

/// The GPUs that have an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gpus {
    /// This one and later ones.
    From(u32),
    /// The same, on targets with the suffix `a` or `f`.
    Suffixed(u32),
    /// Those with tensor memory, on targets with the suffix `a` or `f`.
    TensorMemory,
    /// This one and later ones, on targets with the suffix `a`.
    Own(u32),
    /// Those with tensor memory, with the suffix `a`.
    OwnTensorMemory,
    /// The family of `sm_100` and `sm_103` alone, with the suffix `a` or `f`.
    FirstTensorMemory,
    /// These two with the suffix `a`.
    OwnFirstTensorMemory,
    /// Those whose tensor core multiplies integers.
    TensorIntegers,
    /// Hopper alone, on `sm_90a`.
    Hopper,
}

impl Gpus {
    pub fn have(self, Capability { number, suffixed, own }: Capability) -> bool {
        match self {
            Gpus::From(first) => number >= first,
            Gpus::Suffixed(first) => number >= first && suffixed,
            Gpus::Own(first) => number >= first && own,
            Gpus::TensorMemory => (100..120).contains(&number) && suffixed,
            Gpus::FirstTensorMemory => [100, 103].contains(&number) && suffixed,
            Gpus::OwnFirstTensorMemory => [100, 103].contains(&number) && own,
            Gpus::OwnTensorMemory => (100..120).contains(&number) && own,
            Gpus::TensorIntegers => [100, 101, 110].contains(&number) && own,
            Gpus::Hopper => number == 90 && suffixed,
        }
    }

    pub fn text(self) -> String {
        match self {
            Gpus::From(first) => format!("`sm_{first}` or later"),
            Gpus::Suffixed(90) => "a target with a suffix from `sm_90a` on, such as `sm_90a` or `sm_100a`".into(),
            Gpus::Suffixed(first) => format!("a target with a suffix from `sm_{first}` on, such as `sm_{first}a`"),
            Gpus::Own(first) => format!("a target with the suffix `a` from `sm_{first}a` on"),
            Gpus::TensorMemory => "a target with tensor memory, such as `sm_100a`, `sm_100f` or `sm_103a`".into(),
            Gpus::OwnTensorMemory => {
                "a target with tensor memory and the suffix `a`, such as `sm_100a` or `sm_103a`".into()
            }
            Gpus::OwnFirstTensorMemory => "`sm_100a` or `sm_103a`".into(),
            Gpus::FirstTensorMemory => "`sm_100a`, `sm_100f`, `sm_103a` or `sm_103f`".into(),
            Gpus::TensorIntegers => "`sm_100a`, `sm_101a` or `sm_110a`".into(),
            Gpus::Hopper => "`sm_90a` and no other target".into(),
        }
    }

    /// A target that is enough.
    pub fn example(self) -> String {
        match self {
            Gpus::From(first @ 0..90) => format!("sm_{first}"),
            Gpus::From(90) | Gpus::Hopper => "sm_90a".into(),
            Gpus::Suffixed(first) | Gpus::Own(first) => format!("sm_{first}a"),
            Gpus::From(_)
            | Gpus::TensorMemory
            | Gpus::OwnTensorMemory
            | Gpus::OwnFirstTensorMemory
            | Gpus::FirstTensorMemory
            | Gpus::TensorIntegers => "sm_100a".into(),
        }
    }
}

/// The first parts of an opcode (several with `|` between), a text in it behind them, if it depends on one, and what it needs.
pub type Need = (&'static str, &'static str, Gpus, Version);

/// What instructions need. The first row that fits counts.
const NEEDS: &[Need] = &[
    ("tcgen05", ".kind::i8", Gpus::TensorIntegers, (8, 6)),
    ("tcgen05", ".kind::mxf4nvf4.block_scale.scale_vec::", Gpus::OwnTensorMemory, (8, 7)),
    ("tcgen05", ".scale_vec::", Gpus::OwnTensorMemory, (8, 6)),
    ("tcgen05", ".block16", Gpus::TensorMemory, (8, 8)),
    ("tcgen05", ".block32", Gpus::TensorMemory, (8, 8)),
    ("tcgen05", "", Gpus::TensorMemory, (8, 6)),
    ("wgmma", ".s8.u8", Gpus::Hopper, (8, 4)),
    ("wgmma", ".u8.s8", Gpus::Hopper, (8, 4)),
    ("wgmma", "", Gpus::Hopper, (8, 0)),
    ("cp.async.bulk", ".cp_mask", Gpus::From(100), (8, 6)),
    ("cp.async.bulk", ".ignore_oob", Gpus::From(90), (9, 2)),
    ("cp.async.bulk", ".cta_group", Gpus::TensorMemory, (8, 6)),
    ("cp.async.bulk", ".shared::cluster.global.tile::gather4", Gpus::TensorMemory, (8, 6)),
    ("cp.async.bulk", ".tile::gather4.shared::cluster", Gpus::TensorMemory, (8, 6)),
    ("cp.async.bulk", "::gather4", Gpus::From(100), (8, 6)),
    ("cp.async.bulk", "::scatter4", Gpus::From(100), (8, 6)),
    ("cp.async.bulk", ".shared::cta.global", Gpus::From(90), (8, 6)),
    ("cp.async.bulk|cp.reduce.async.bulk", "", Gpus::From(90), (8, 0)),
    ("cp.async", "", Gpus::From(80), (7, 0)),
    ("mbarrier.arrive|mbarrier.try_wait|mbarrier.test_wait", ".relaxed", Gpus::From(90), (8, 6)),
    ("mbarrier.try_wait", ".acquire", Gpus::From(90), (8, 0)),
    ("mbarrier.try_wait", "", Gpus::From(90), (7, 8)),
    ("mbarrier", "expect_tx", Gpus::From(90), (8, 0)),
    ("mbarrier", "complete_tx", Gpus::From(90), (8, 0)),
    ("mbarrier", ".cluster", Gpus::From(90), (8, 0)),
    ("mbarrier", "::cluster", Gpus::From(90), (8, 0)),
    ("mbarrier", ".release", Gpus::From(80), (8, 0)),
    ("mbarrier", ".acquire", Gpus::From(80), (8, 0)),
    ("mbarrier", "::cta", Gpus::From(80), (7, 8)),
    ("mbarrier", "", Gpus::From(80), (7, 0)),
    ("elect", "", Gpus::From(90), (8, 0)),
    ("isspacep", "::cluster", Gpus::From(90), (7, 8)),
    ("isspacep", "param", Gpus::From(70), (7, 7)),
    ("ldmatrix|stmatrix", ".b8", Gpus::Suffixed(100), (8, 6)),
    ("mapa|getctarank|griddepcontrol|barrier.cluster|stmatrix", "", Gpus::From(90), (7, 8)),
    ("setmaxnreg", "", Gpus::Suffixed(90), (8, 0)),
    ("fence", ".sync_restrict", Gpus::From(90), (8, 6)),
    ("fence.proxy.async|fence.mbarrier_init", "", Gpus::From(90), (8, 0)),
    ("redux", ".f32", Gpus::FirstTensorMemory, (8, 6)),
    ("fence.acquire|fence.release", "", Gpus::From(90), (8, 6)),
    ("membar.proxy.async", "", Gpus::From(90), (8, 0)),
    ("fence", ".cluster", Gpus::From(90), (7, 8)),
    ("clusterlaunchcontrol", ".multicast", Gpus::Suffixed(100), (8, 6)),
    ("clusterlaunchcontrol", "", Gpus::From(100), (8, 6)),
    ("createpolicy", "", Gpus::From(80), (7, 4)),
    ("discard|applypriority", "", Gpus::From(80), (7, 4)),
    ("ldmatrix", "", Gpus::From(75), (6, 5)),
    ("prefetch", ".tensormap", Gpus::From(90), (8, 0)),
    ("tensormap", "", Gpus::Suffixed(90), (8, 3)),
    ("fence.proxy", "tensormap", Gpus::From(90), (8, 3)),
    ("mma", ".m8n8k4.row.col.f64", Gpus::From(80), (7, 0)),
    ("mma", ".f64", Gpus::From(90), (7, 8)),
    ("mma", ".m16n8k16.row.col.f32.e", Gpus::From(89), (8, 7)),
    ("mma", ".f16.e", Gpus::From(89), (8, 7)),
    ("mma", ".f32.e", Gpus::From(89), (8, 4)),
    ("mma", ".tf32", Gpus::From(80), (7, 0)),
    ("mma", ".m16n8k32", Gpus::From(80), (7, 0)),
    ("mma", ".bf16", Gpus::From(80), (7, 0)),
    ("mma", ".m16n8k16", Gpus::From(80), (7, 0)),
    ("mma", "", Gpus::From(75), (6, 5)),
    ("movmatrix", "", Gpus::From(75), (7, 8)),
    ("st.async", ".b128", Gpus::From(90), (9, 2)),
    ("st.async|red.async", "", Gpus::From(90), (8, 1)),
    ("st.bulk", "", Gpus::From(100), (8, 6)),
    ("atom", ".b128", Gpus::From(90), (8, 3)),
    ("ld|st|atom|red", "::cluster", Gpus::From(90), (7, 8)),
    ("ld|st|atom|red", ".cluster", Gpus::From(90), (7, 8)),
    ("ld|st|cvta|isspacep", "param::", Gpus::From(0), (8, 3)),
    // Vectors of 256 bits.
    ("ld|st", ".v8", Gpus::From(100), (8, 8)),
    ("ld|st", ".v4.b64", Gpus::From(100), (8, 8)),
    ("ld|st", ".v4.u64", Gpus::From(100), (8, 8)),
    ("ld|st", ".v4.s64", Gpus::From(100), (8, 8)),
    ("ld|st", ".v4.f64", Gpus::From(100), (8, 8)),
    ("ld|st|mov", ".b128", Gpus::From(70), (8, 3)),
    ("atom|red", ".v2", Gpus::From(90), (8, 1)),
    ("atom|red", ".v4", Gpus::From(90), (8, 1)),
    ("atom|red", ".v8", Gpus::From(90), (8, 1)),
    ("atom|red", "bf16", Gpus::From(90), (7, 8)),
    ("add|sub|mul|fma", ".f32x2", Gpus::From(100), (8, 6)),
    ("add|sub|fma", ".f32.f16", Gpus::From(100), (8, 6)),
    ("add|sub|fma", ".f32.bf16", Gpus::From(100), (8, 6)),
    ("add|min|max", "16x2", Gpus::From(90), (8, 0)),
    ("cvt", ".rs.", Gpus::OwnFirstTensorMemory, (8, 7)),
    ("cvt", ".bf16x2.s2f6x2", Gpus::Own(100), (9, 1)),
    ("cvt", ".s2f6x2", Gpus::Own(100), (9, 1)),
    ("cvt", ".bf16x2.e", Gpus::Suffixed(100), (9, 2)),
    ("cvt", ".ue8m0x2", Gpus::Suffixed(100), (8, 6)),
    ("cvt", "x2.bf16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e2m3x2.f16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e3m2x2.f16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e2m1x2.f16x2", Gpus::Suffixed(100), (9, 1)),
    ("cvt", ".e2m", Gpus::Suffixed(100), (8, 6)),
    ("cvt", ".e3m2", Gpus::Suffixed(100), (8, 6)),
    ("cvt", ".e4m3", Gpus::From(89), (8, 1)),
    ("cvt", ".e5m2", Gpus::From(89), (8, 1)),
    ("cvt", ".rna.satfinite", Gpus::From(80), (8, 1)),
    ("cvt", ".rna", Gpus::From(80), (7, 0)),
    ("cvt", ".satfinite.tf32", Gpus::From(100), (8, 6)),
    ("cvt", ".satfinite.relu.tf32", Gpus::From(100), (8, 6)),
    ("cvt", ".tf32", Gpus::From(90), (7, 8)),
    ("min|max", ".relu.s32", Gpus::From(90), (8, 0)),
    // The directives of clusters (11.4).
    (".blocksareclusters", "", Gpus::From(90), (9, 0)),
    (".explicitcluster|.reqnctapercluster|.maxclusterrank", "", Gpus::From(90), (7, 8)),
    ("%cluster|%nclusterid", "", Gpus::From(90), (7, 8)),
];

/// What `scale-input-d`, an operand, needs (PTX ISA, tcgen05.mma, target notes).
pub const SCALE_INPUT_D: Need = ("tcgen05", "", Gpus::FirstTensorMemory, (8, 6));

/// Whether an instruction is a `tcgen05.mma` that scales D: behind enable-input-d stands one operand more.
pub fn scales_input(inst: &Instruction) -> bool {
    if !inst.opcode.starts_with("tcgen05.mma.") || inst.opcode.contains(".block_scale") {
        return false;
    }
    let mask = usize::from(matches!(inst.operands.get(4), Some(Operand::Vector(_))));
    inst.operands.len() == 6 + mask
}

/// The row for an instruction, a directive or a special register.
pub fn need(name: &str) -> Option<&'static Need> {
    let begins = |first: &str| {
        let rest = name.strip_prefix(first)?;
        (rest.is_empty() || rest.starts_with(['.', ':']) || first.starts_with('%')).then_some(rest)
    };
    NEEDS.iter().find(|(firsts, part, ..)| {
        // Packed halves of floating point are older, and so are the packed forms of bfloat.
        let float = *part == "16x2" && (name.contains("f16x2"));
        firsts.split('|').filter_map(begins).any(|rest| !float && rest.contains(part))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_the_first_parts_of_an_opcode() {
        let needs = |name| need(name).map(|(.., gpus, version)| (*gpus, *version));
        for (name, expected) in [
            ("tcgen05.ld.sync.aligned.32x32b.x1.b32", Some((Gpus::TensorMemory, (8, 6)))),
            ("tcgen05.mma.cta_group::1.kind::i8", Some((Gpus::TensorIntegers, (8, 6)))),
            (
                "tcgen05.mma.cta_group::2.kind::mxf4nvf4.block_scale.scale_vec::4X",
                Some((Gpus::OwnTensorMemory, (8, 7))),
            ),
            (
                "tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.scale_vec::1X",
                Some((Gpus::OwnTensorMemory, (8, 6))),
            ),
            ("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale.block32", Some((Gpus::TensorMemory, (8, 8)))),
            ("tcgen05.mma.cta_group::2.kind::mxf8f6f4.block_scale", Some((Gpus::TensorMemory, (8, 6)))),
            ("cp.async.ca.shared.global", Some((Gpus::From(80), (7, 0)))),
            ("cp.async.bulk.commit_group", Some((Gpus::From(90), (8, 0)))),
            ("mbarrier.arrive.expect_tx.shared::cta.b64", Some((Gpus::From(90), (8, 0)))),
            ("mbarrier.init.shared.b64", Some((Gpus::From(80), (7, 0)))),
            ("barrier.cluster.wait", Some((Gpus::From(90), (7, 8)))),
            ("barrier.sync", None),
            ("add.f16x2", None),
            ("add.bf16x2", None),
            ("add.s16x2", Some((Gpus::From(90), (8, 0)))),
            ("ld.global.v8.b32", Some((Gpus::From(100), (8, 8)))),
            ("st.global.v4.b64", Some((Gpus::From(100), (8, 8)))),
            ("ld.global.L1::no_allocate.v4.f64", Some((Gpus::From(100), (8, 8)))),
            ("st.global.v4.b32", None),
            ("%cluster_ctarank", Some((Gpus::From(90), (7, 8)))),
            ("%tid.x", None),
        ] {
            assert_eq!(needs(name), expected, "{name}");
        }
        let have = |target| capability(target).is_some_and(|own| Gpus::TensorMemory.have(own));
        assert!(have("sm_103f") && !have("sm_120a") && !have("sm_100") && !have("debug"));
    }
}
