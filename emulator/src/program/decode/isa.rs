//! The words of PTX: opcodes, types and modifiers that the PTX ISA 9.3 has, modelled or not. What has a word that stands here nowhere is no
//! PTX, and said to be none; of the rest, only that it is not modelled. Which words go together this does not know.

/// Opcodes without modifiers (PTX ISA, chapter 9).
const OPCODES: &[&str] = &[
    // integers and bits
    "add addc sub subc mul mad madc mul24 mad24 sad div rem abs neg min max popc clz bfind fns brev bfe bfi bmsk szext dp4a dp2a",
    "and or xor not cnot lop3 shf shl shr prmt",
    // floating point
    "fma rcp sqrt rsqrt sin cos lg2 ex2 tanh testp copysign",
    // comparison and selection, moves, conversion, memory
    "set setp selp slct mov shfl ld ldu st multimem prefetch prefetchu applypriority discard createpolicy isspacep cvta cvt mapa getctarank cp",
    "tensormap",
    // textures and surfaces
    "tex tld4 txq istypep suld sust sured suq",
    // control
    "bra brx call ret exit",
    // synchronisation and communication
    "bar barrier membar fence atom red vote match activemask redux griddepcontrol elect mbarrier clusterlaunchcontrol",
    // matrices
    "wmma mma ldmatrix stmatrix movmatrix wgmma tcgen05",
    // the stack, video, others
    "stacksave stackrestore alloca",
    "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset vadd2 vsub2 vavrg2 vabsdiff2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vabsdiff4 vmin4 vmax4 vset4",
    "brkpt nanosleep pmevent trap setmaxnreg",
];

/// Types of instructions.
const TYPES: &[&str] = &[
    "pred b1 b8 b16 b32 b64 b128 b1024 u2 u4 u8 u16 u32 u64 s2 s4 s8 s16 s32 s64 f16 f32 f64 bf16 tf32",
    "u8x4 s8x4 u16x2 s16x2 b16x2 f16x2 bf16x2 f32x2 e4m3 e5m2 e3m2 e2m3 e2m1 ue8m0 ue4m3",
    "e4m3x2 e5m2x2 e2m3x2 e3m2x2 e2m1x2 ue8m0x2 s2f6x2 e4m3x4 e5m2x4 e2m3x4 e3m2x4 e2m1x4 e2m1p4x4 ue8m0x4",
];

/// All other modifiers, whatever they stand behind.
const MODIFIERS: &[&str] = &[
    // how numbers are rounded, and what becomes of odd ones
    "rn rz rm rp rna rni rzi rmi rpi rs ftz sat satfinite relu oob approx full NaN abs xorsign noftz scaled::n2::ue8m0",
    "cc hi lo wide shiftamt wrap clamp l r f4e b4e rc8 rc16 ecl ecr pack",
    "finite infinite number notanumber normal subnormal",
    "eq ne lt le gt ge lo ls hi hs equ neu ltu leu gtu geu num nan",
    // operations
    "and or xor add inc dec min max exch cas popc negate po shr7 shr15",
    "to up down bfly idx all any uni ballot sync warp cta arrive red aligned",
    // state spaces, scopes, and what memory does
    "global const local param param::entry param::func shared shared::cta shared::cluster generic reg tensormap",
    "weak volatile relaxed acquire release acq_rel sc mmio cluster gpu sys gl nc unified v2 v4 v8",
    "ca cg cs lu cv wb wt L1 L2 L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "L2::evict_normal L2::evict_first L2::evict_last L2::evict_unchanged L2::cache_hint L2::64B L2::128B L2::256B",
    "fractional range cvt",
    "proxy alias async async.global async::generic tensormap::generic mbarrier_init sync_restrict::shared::cta sync_restrict::shared::cluster",
    // copies
    "bulk tensor reduce prefetch 1d 2d 3d 4d 5d tile tile::gather4 tile::scatter4 im2col im2col::w im2col::w::128 im2col_no_offs",
    "commit_group wait_group wait_all read bulk_group multicast::cluster multicast::cluster::all cp_mask ignore_oob mbarrier noinc",
    "mbarrier::complete_tx::bytes mbarrier::arrive::one",
    "replace cp_fenceproxy global_address rank box_dim global_dim global_stride element_stride elemtype interleave_layout swizzle_mode",
    "swizzle_atomicity fill_mode ld_reduce acc::f16 acc::f32",
    // mbarriers, launches
    "init inval expect_tx complete_tx arrive_drop noComplete test_wait try_wait pending_count parity wait",
    "try_cancel query_cancel is_canceled get_first_ctaid get_first_ctaid::x get_first_ctaid::y get_first_ctaid::z launch_dependents",
    // matrices
    "row col trans x1 x2 x4 x8 x16 x32 x64 x128 load store mma a b c d sp sp::ordered_metadata block_scale scale_vec::1X scale_vec::2X scale_vec::4X",
    "b8x16 b4x16_p64 b6x16_p32 mma_async fence",
    "alloc dealloc relinquish_alloc_permit ld st cp shift commit wait::ld wait::st fence::before_thread_sync fence::after_thread_sync",
    "cta_group::1 cta_group::2 32x32b 16x64b 16x128b 16x256b 16x32bx2 pack::16b unpack::16b",
    "128x256b 4x256b 128x128b 64x128b 32x128b warpx2::02_13 warpx2::01_23 warpx4 ws ashift block16 block32",
    // textures and surfaces
    "a1d a2d cube acube 2dms a2dms base level grad g trap zero p width height depth channel_data_type channel_order normalized_coords array_size",
    "num_mipmap_levels num_samples filter_mode addr_mode_0 addr_mode_1 addr_mode_2 force_unnormalized_coords memory_layout",
    "texref samplerref surfref mask",
];

/// What the tensor core multiplies (`kind::` of `tcgen05.mma`, and of `mma` the scaled ones).
const KINDS: &str = "f16 tf32 f8f6f4 i8 mxf8f6f4 mxf4 mxf4nvf4";

/// Opcodes of which every form that the ISA has is modelled (of `shfl`, with `.sync`): what is no form of theirs is no PTX.
const WHOLE: &str = "and or xor not cnot shl shr shf bfe bfi bfind popc clz brev fns bmsk szext prmt dp4a dp2a mul24 mad24 sad selp slct \
                     elect activemask nanosleep copysign shfl";

/// Types as other languages call them.
const ELSEWHERE: &[(&str, &str)] = &[
    ("float", "f32"),
    ("double", "f64"),
    ("half", "f16"),
    ("bfloat16", "bf16"),
    ("int", "s32"),
    ("unsigned", "u32"),
    ("uint", "u32"),
    ("i8", "s8"),
    ("i16", "s16"),
    ("i32", "s32"),
    ("i64", "s64"),
    ("fp16", "f16"),
    ("fp32", "f32"),
    ("fp64", "f64"),
    ("int32", "s32"),
    ("int64", "s64"),
    ("uint32", "u32"),
    ("uint64", "u64"),
];

/// What stands right behind opcodes that are families.
const OPERATIONS: &[(&str, &str)] = &[
    (
        "tcgen05",
        "alloc dealloc relinquish_alloc_permit ld st wait::ld wait::st mma cp shift commit fence::before_thread_sync fence::after_thread_sync",
    ),
    ("mbarrier", "init inval expect_tx complete_tx arrive arrive_drop test_wait try_wait pending_count"),
    ("wgmma", "mma_async fence commit_group wait_group"),
    ("griddepcontrol", "launch_dependents wait"),
    ("clusterlaunchcontrol", "try_cancel query_cancel"),
    ("tensormap", "replace cp_fenceproxy"),
];

/// A word that PTX does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoPtx<'a> {
    Opcode(&'a str),
    /// An operation of a family, and those that there are.
    Operation(&'a str, &'static str),
    Kind(&'a str),
    Type(&'a str),
    Modifier(&'a str),
    /// All words are of PTX, and do not go together.
    Form(&'a str),
}

fn words(lists: &'static [&'static str]) -> impl Iterator<Item = &'static str> {
    lists.iter().flat_map(|list| list.split(' '))
}

/// The type that another language calls so.
pub fn called_elsewhere(name: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(other, _)| *other == name).map(|(_, ty)| *ty)
}

/// The words that a part of an opcode can be, for the nearest of them.
pub fn modifiers() -> impl Iterator<Item = &'static str> {
    words(MODIFIERS).chain(words(TYPES))
}

pub fn opcodes() -> impl Iterator<Item = &'static str> {
    words(OPCODES)
}

/// The kinds, as a sentence lists them.
pub fn kinds() -> impl Iterator<Item = &'static str> {
    KINDS.split(' ')
}

/// Of an opcode that no form is modelled of: the first word of it that PTX does not have.
pub fn no_ptx(opcode: &str) -> Option<NoPtx<'_>> {
    let mut parts = opcode.split('.');
    let base = parts.next().unwrap_or_default();
    if !opcodes().any(|known| known == base) {
        return Some(NoPtx::Opcode(base));
    }
    let operations = OPERATIONS.iter().find(|(family, _)| *family == base).map(|(_, list)| *list);
    for (n, part) in parts.enumerate() {
        if let Some(list) = operations.filter(|list| n == 0 && !list.split(' ').any(|known| known == part)) {
            return Some(NoPtx::Operation(part, list));
        }
        if let Some(kind) = part.strip_prefix("kind::") {
            if !kinds().any(|known| known == kind) {
                return Some(NoPtx::Kind(kind));
            }
        } else if !modifiers().any(|known| known == part) && !is_built(base, part) {
            return Some(if looks_like_a_type(part) { NoPtx::Type(part) } else { NoPtx::Modifier(part) });
        }
    }
    let old = base == "shfl" && !opcode.starts_with("shfl.sync");
    (WHOLE.split_whitespace().any(|whole| whole == base) && !old).then_some(NoPtx::Form(base))
}

/// Words that are made of parts: shapes of matrices, collector buffers, masks of video instructions.
fn is_built(base: &str, part: &str) -> bool {
    let collector = |part: &str| {
        let (buffer, how) = part.strip_prefix("collector::")?.split_once("::")?;
        let buffer = matches!(buffer, "a" | "b0" | "b1" | "b2" | "b3");
        Some(buffer && matches!(how, "fill" | "use" | "lastuse" | "discard"))
    };
    let halves_or_bytes = || match part.strip_prefix(['h', 'b']) {
        // Each byte once, the highest first.
        Some(digits) if base.starts_with('v') && base != "vote" => {
            let numbers: Vec<char> = digits.chars().collect();
            !numbers.is_empty()
                && numbers.iter().all(|n| ('0'..='3').contains(n))
                && numbers.windows(2).all(|pair| pair[0] > pair[1])
        }
        _ => false,
    };
    collector(part).unwrap_or(false) || is_shape(part) || halves_or_bytes()
}

/// `m16n8`, `m64n128k16`.
fn is_shape(part: &str) -> bool {
    let Some(rest) = part.strip_prefix('m') else { return false };
    let Some((m, rest)) = rest.split_once('n') else { return false };
    let (n, k) = rest.split_once('k').unwrap_or((rest, "8"));
    let number = |text: &str| !text.is_empty() && text.len() <= 3 && text.bytes().all(|c| c.is_ascii_digit());
    number(m) && number(n) && number(k)
}

/// `f23`, `bf23`, `u12`, `e4m4`: letters of types, and numbers.
fn looks_like_a_type(part: &str) -> bool {
    if called_elsewhere(part).is_some() {
        return true;
    }
    let stem = part.trim_start_matches(|c: char| c.is_ascii_lowercase());
    let letters = &part[..part.len() - stem.len()];
    matches!(letters, "b" | "u" | "s" | "i" | "f" | "bf" | "tf" | "e" | "ue" | "fp")
        && stem.bytes().all(|c| c.is_ascii_digit() || matches!(c, b'm' | b'x' | b'f'))
        && !stem.is_empty()
}

#[cfg(test)]
mod tests {
    use super::super::forms::FORMS;
    use super::*;

    #[test]
    fn what_ptx_does_not_have_is_told_from_what_it_has() {
        for (opcode, found) in [
            ("frobnicate.b32", Some(NoPtx::Opcode("frobnicate"))),
            ("fma.rn.f23", Some(NoPtx::Type("f23"))),
            ("add.int32", Some(NoPtx::Type("int32"))),
            ("mbarrier.arrive.expect_tz.shared.b64", Some(NoPtx::Modifier("expect_tz"))),
            ("ld.global.v3.f32", Some(NoPtx::Modifier("v3"))),
            ("tcgen05.mma.cta_group::1.kind::f4", Some(NoPtx::Kind("f4"))),
            ("tcgen05.mma.cta_group::3.kind::f16", Some(NoPtx::Modifier("cta_group::3"))),
            ("cvt.rn.f16.float", Some(NoPtx::Type("float"))),
            ("shfl.sync.xor.b32", Some(NoPtx::Form("shfl"))),
            // Real, and not modelled.
            ("shfl.up.b32", None),
            ("tcgen05.mma.ws.cta_group::1.kind::tf32.collector::b3::lastuse", None),
            ("tex.2d.v4.f32.f32", None),
            ("vadd4.u32.u32.u32.b210", None),
            ("vadd4.u32.u32.u32.b012", Some(NoPtx::Type("b012"))),
            ("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32", None),
            ("wmma.load.a.sync.aligned.row.m16n16k16.shared.f16", None),
            ("suld.b.1d.b32.trap", None),
        ] {
            assert_eq!(no_ptx(opcode), found, "{opcode}");
        }
        assert!(matches!(no_ptx("tcgen05.comit.cta_group::1"), Some(NoPtx::Operation("comit", _))));
    }

    /// What is modelled is PTX.
    #[test]
    fn all_words_of_the_forms_stand_here() {
        let sign = |c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':' | '.'));
        for form in FORMS {
            // Choices within a word, `{::x|::y}`, are made of words that stand in the list of their own.
            let plain = !form.contains("::{") && !form.contains("{::") && !form.contains(".xN");
            for word in form.split(sign).flat_map(|text| text.split('.')).filter(|word| plain && !word.is_empty()) {
                let known = opcodes().chain(modifiers()).any(|other| other == word);
                let known = known || is_built("", word) || word.strip_prefix("kind::").is_some();
                assert!(known, "`{word}` of `{form}`");
            }
        }
    }
}
