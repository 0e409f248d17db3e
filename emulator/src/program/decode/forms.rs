//! The list of what is modelled, and which of it is nearest to something that is not.

/// The forms that are modelled, as `emulate --list-instructions` prints them: `{a|b}` is a choice, `?` makes a modifier
/// or a choice optional, `xN` is a power of two. Modifiers stand in the order of the PTX
/// ISA; where real code writes another one, that is read, too.
pub const FORMS: &[&str] = &[
    // tensor memory and tensor core
    "tcgen05.alloc.cta_group::{1|2}.sync.aligned{.shared::cta}?.b32",
    "tcgen05.dealloc.cta_group::{1|2}.sync.aligned.b32",
    "tcgen05.relinquish_alloc_permit.cta_group::{1|2}.sync.aligned",
    "tcgen05.ld.sync.aligned.{32x32b|16x64b|16x128b|16x256b|16x32bx2}.xN{.pack::16b}?.b32",
    "tcgen05.st.sync.aligned.{32x32b|16x64b|16x128b|16x256b|16x32bx2}.xN{.unpack::16b}?.b32",
    "tcgen05.wait::{ld|st}.sync.aligned",
    "tcgen05.mma.cta_group::{1|2}.kind::f16{.collector::a::{discard|lastuse|fill|use}}?",
    "tcgen05.commit.cta_group::{1|2}.mbarrier::arrive::one{.shared::cluster}?{.multicast::cluster}?.b64",
    "tcgen05.fence::{before|after}_thread_sync",
    // barriers and fences
    "mbarrier.init{.shared{::cta}?}?.b64",
    "mbarrier.inval{.shared{::cta}?}?.b64",
    "mbarrier.arrive{.expect_tx}?{{.release|.relaxed}{.cta|.cluster}}?{.shared{::cta|::cluster}?}?.b64",
    "mbarrier.expect_tx{.relaxed{.cta|.cluster}}?{.shared{::cta|::cluster}?}?.b64",
    "mbarrier.{try_wait|test_wait}{.parity}?{{.acquire|.relaxed}{.cta|.cluster}}?{.shared{::cta}?}?.b64",
    "bar{.cta}?.{sync|arrive}",
    "barrier{.cta}?.{sync|arrive}{.aligned}?",
    "barrier.cluster.arrive{.release|.relaxed}?{.aligned}?",
    "barrier.cluster.wait{.acquire}?{.aligned}?",
    "bar.warp.sync",
    "fence.proxy.async{.shared::cta|.global|.shared::cluster}?",
    "fence.mbarrier_init.release.cluster",
    "fence.{acq_rel|sc}.{cta|cluster|gpu|sys}",
    "membar.{cta|gl|sys}",
    "mapa.u64",
    "mapa.shared::cluster.{u32|u64}",
    "getctarank.u64",
    "getctarank.shared::cluster.{u32|u64}",
    "setmaxnreg.{inc|dec}.sync.aligned.u32",
    "griddepcontrol.{wait|launch_dependents}",
    // copies by the TMA engine
    "cp.async.bulk.tensor.{1d|2d|3d|4d|5d}.{shared::cta|shared::cluster}.global{.tile}?.mbarrier::complete_tx::bytes{.multicast::cluster}?{.cta_group::{1|2}}?{.L2::cache_hint}?",
    "cp.async.bulk.tensor.{1d|2d|3d|4d|5d}.global.shared::cta{.tile}?.bulk_group{.L2::cache_hint}?",
    "cp.reduce.async.bulk.tensor.{1d|2d|3d|4d|5d}.global.shared::cta.{add|min|max|inc|dec|and|or|xor}{.tile}?.bulk_group{.L2::cache_hint}?",
    "cp.async.bulk.prefetch.tensor.{1d|2d|3d|4d|5d}.L2.global{.tile}?{.L2::cache_hint}?",
    "cp.async.bulk.{shared::cta|shared::cluster}.global.mbarrier::complete_tx::bytes{.multicast::cluster}?{.L2::cache_hint}?",
    "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",
    "cp.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}?",
    "cp.async.bulk.prefetch.L2.global{.L2::cache_hint}?",
    "cp.async.bulk.commit_group",
    "cp.async.bulk.wait_group{.read}?",
    "prefetch{.const|.param}?.tensormap",
    "prefetch{.global|.local}?.{L1|L2}",
    // memory; cache hints and eviction priorities may stand where the ISA has them
    "ld{.weak|.volatile|{.relaxed|.acquire}{.cta|.cluster|.gpu|.sys}}?{.global|.const|.shared{::cta|::cluster}?|.local|.param}?{.nc}?{.v2|.v4|.v8}?.{b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64|b128}",
    "st{.weak|.volatile|{.relaxed|.release}{.cta|.cluster|.gpu|.sys}}?{.global|.shared{::cta|::cluster}?|.local}?{.v2|.v4|.v8}?.{b8|u8|s8|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64|b128}",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.add.{u32|s32|u64|f32|f64}",
    "red{.relaxed|.release}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.add.{u32|s32|u64|f32|f64}",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.add.noftz.{f16|f16x2|bf16|bf16x2}",
    "red{.relaxed|.release}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.add.noftz.{f16|f16x2|bf16|bf16x2}",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{min|max}.{u32|s32|u64|s64}",
    "red{.relaxed|.release}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{min|max}.{u32|s32|u64|s64}",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{and|or|xor}.{b32|b64}",
    "red{.relaxed|.release}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{and|or|xor}.{b32|b64}",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{inc|dec}.u32",
    "red{.relaxed|.release}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.{inc|dec}.u32",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.exch.{b32|b64}",
    "atom{.relaxed|.acquire|.release|.acq_rel}?{.cta|.cluster|.gpu|.sys}?{.global|.shared{::cta|::cluster}?}?.cas.{b16|b32|b64}",
    "createpolicy.fractional.L2::{evict_first|evict_last|evict_normal|evict_unchanged}{.L2::evict_first|.L2::evict_unchanged}?.b64",
    "cp.async.{ca|cg}.shared{::cta}?.global{.L2::cache_hint}?{.L2::64B|.L2::128B|.L2::256B}?",
    "cp.async.{commit_group|wait_group|wait_all}",
    "{ldmatrix|stmatrix}.sync.aligned.m8n8.{x1|x2|x4}{.trans}?.shared{::cta}?.b16",
    "clusterlaunchcontrol.try_cancel.async{.shared::cta}?.mbarrier::complete_tx::bytes{.multicast::cluster::all}?.b128",
    "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128",
    "clusterlaunchcontrol.query_cancel.get_first_ctaid{::{x|y|z}|.v4}.b32.b128",
    "cvta{.to}?.{global|const|local|shared|shared::cta|shared::cluster|param}.u64",
    // lanes
    "elect.sync",
    "activemask.b32",
    "shfl.sync.{up|down|bfly|idx}.b32",
    "vote.sync.{all|any|uni}.pred",
    "vote.sync.ballot.b32",
    // control
    "bra{.uni}?",
    "brx.idx{.uni}?",
    "call{.uni}?",
    "ret{.uni}?",
    "exit",
    "trap",
    "nanosleep.u32",
    // integers
    "{add|sub}.{s16|u16|s32|u32|s64|u64}",
    "{add|sub}.sat.s32",
    "add.{u16x2|s16x2}",
    "{mul|mad}.{lo|hi}.{s16|u16|s32|u32|s64|u64}",
    "{mul|mad}.wide.{s16|u16|s32|u32}",
    "mad.hi.sat.s32",
    "{div|rem}.{s16|u16|s32|u32|s64|u64}",
    "{neg|abs}.{s16|s32|s64}",
    "{min|max}.{s16|u16|s32|u32|s64|u64|s16x2|u16x2}",
    "{min|max}.relu.{s32|s16x2}",
    "{and|or|xor|not}.{pred|b16|b32|b64}",
    "shl.{b16|b32|b64}",
    "shr.{b16|b32|b64|u16|u32|u64|s16|s32|s64}",
    "shf.{l|r}.{wrap|clamp}.b32",
    "bfe.{u32|s32|u64|s64}",
    "prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}?",
    "lop3.b32",
    "{popc|clz|brev}.{b32|b64}",
    // floating point
    "{add|sub|mul}{.rn|.rz|.rm|.rp}?{.ftz}?{.sat}?.f32",
    "{add|sub|mul}{.rn|.rz|.rm|.rp}?{.ftz}?.f32x2",
    "{add|sub|mul}{.rn|.rz|.rm|.rp}?.f64",
    "{add|sub|mul}{.rn}?{.ftz|.sat}?.{f16|f16x2}",
    "{add|sub|mul}{.rn}?.{bf16|bf16x2}",
    "{fma|mad}.{rn|rz|rm|rp}{.ftz}?{.sat}?.f32",
    "fma.{rn|rz|rm|rp}{.ftz}?.f32x2",
    "{fma|mad}.rn.f64",
    "fma.rn{.ftz|.sat}?{.relu}?.{f16|f16x2}",
    "fma.rn{.relu}?.{bf16|bf16x2}",
    "div.{full|approx}{.ftz}?.f32",
    "div.{rn|rz|rm|rp}{.ftz}?.f32",
    "div.{rn|rz|rm|rp}.f64",
    "{ex2|lg2|rcp|sqrt|rsqrt}.approx{.ftz}?.f32",
    "{rcp|sqrt}.{rn|rz|rm|rp}{.ftz}?.f32",
    "{rcp|sqrt}.{rn|rz|rm|rp}.f64",
    "ex2.approx.{f16|f16x2}",
    "ex2.approx.ftz.{bf16|bf16x2}",
    "tanh.approx.{f32|f16|f16x2|bf16|bf16x2}",
    "{neg|abs}{.ftz}?.{f32|f16|f16x2}",
    "{neg|abs}.{f64|bf16|bf16x2}",
    "{min|max}{.ftz}?{.NaN}?{.abs}?.f32",
    "{min|max}{.ftz}?.{f16|f16x2}",
    "{min|max}{.NaN}?.{f16|f16x2|bf16|bf16x2}",
    "{min|max}.f64",
    // comparison, moves, conversion
    "setp.{eq|ne|lt|le|gt|ge}{.and|.or|.xor}?.{s16|u16|s32|u32|s64|u64}",
    "setp.{lo|ls|hi|hs}{.and|.or|.xor}?.{u16|u32|u64}",
    "setp.{eq|ne}{.and|.or|.xor}?.{b16|b32|b64}",
    "setp.{eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan}{.and|.or|.xor}?{.ftz}?.{f16|f32}",
    "setp.{eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan}{.and|.or|.xor}?.{bf16|f64}",
    "selp.{b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64}",
    "mov.{pred|b16|u16|s16|b32|u32|s32|f32|b64|u64|s64|f64|b128}",
    "cvt{.sat}?.{u8|s8|u16|s16|u32|s32|u64|s64}.{u8|s8|u16|s16|u32|s32|u64|s64}",
    "cvt.{rn|rz|rm|rp}{.sat}?.{f16|f32|f64}.{u8|s8|u16|s16|u32|s32|u64|s64}",
    "cvt.{rn|rz|rm|rp}.bf16.{u16|s16|u32|s32|u64|s64}",
    "cvt.{rni|rzi|rmi|rpi}{.ftz}?{.sat}?.{u8|s8|u16|s16|u32|s32|u64|s64}.{f16|f32|f64}",
    "cvt.{rni|rzi|rmi|rpi}.{u16|s16|u32|s32|u64|s64}.bf16",
    "cvt.{rni|rzi|rmi|rpi}{.ftz}?{.sat}?.f32.f32",
    "cvt.{rni|rzi|rmi|rpi}{.sat}?.{f16.f16|f64.f64}",
    "cvt{.ftz}?{.sat}?.f32.f16",
    "cvt.f32.bf16",
    "cvt.f64.{f16|bf16|f32}",
    "cvt.{rn|rz|rm|rp}{.ftz}?{.sat}?.{f16|bf16|f32}.f64",
    "cvt.{rn|rz|rm|rp}{.ftz}?{.sat}?.f16.f32",
    "cvt.{rn|rz}{.relu}?{.satfinite}?.{f16|bf16|f16x2|bf16x2}.f32",
];

/// The modelled form that says most of what this opcode says: the same base, then the most parts in common.
pub fn nearest(opcode: &str) -> Option<&'static str> {
    let mut parts = opcode.split('.');
    let base = parts.next()?;
    let parts: Vec<&str> = parts.collect();
    let score = |form: &str| {
        let words = words(form);
        let known = parts.iter().filter(|part| words.iter().any(|word| fits(word, part))).count();
        // Of two forms with the same parts, the one that says less besides.
        (known, std::cmp::Reverse(words.len()))
    };
    let bases = |form: &str| {
        let end = if form.starts_with('{') { form.find('}') } else { form.find(['.', '{']) };
        form[..end.unwrap_or(form.len())].trim_start_matches('{').split('|').any(|b| b == base)
    };
    FORMS.iter().copied().filter(|form| bases(form)).rev().max_by_key(|form| score(form))
}

/// The modifiers that a form speaks of, those within choices with what stands before the choice.
fn words(form: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    // What a word within braces begins with, for each brace that is open.
    let mut open: Vec<String> = Vec::new();
    for c in form.chars() {
        match c {
            '{' => open.push(std::mem::take(&mut word)),
            '.' | '|' | '}' | '?' => {
                if !word.is_empty() {
                    let before = open.last().filter(|_| c != '.' || !word.is_empty()).cloned().unwrap_or_default();
                    let whole =
                        if before.contains("::") || word.starts_with("::") { before + &word } else { word.clone() };
                    words.push(whole.trim_start_matches('.').to_string());
                }
                word.clear();
                if c == '}'
                    && let Some(before) = open.pop()
                    && !before.is_empty()
                {
                    words.push(before);
                }
            }
            c => word.push(c),
        }
    }
    words.push(word);
    words
}

/// Whether a word of a form stands for a part of an opcode.
fn fits(word: &str, part: &str) -> bool {
    let number = |s: Option<&str>| s.is_some_and(|n| n.parse::<u32>().is_ok());
    match word {
        "xN" => number(part.strip_prefix('x')),
        _ => word == part,
    }
}
