//! Which modifiers of `ld` and `st` go together (PTX ISA 9.7.9.8, 9.7.9.11, and what ptxas 13.5 says of each pair): caches that are named
//! twice, and hints where they mean nothing, are refused as ptxas does.

use super::wrong;
use crate::program::Bad;

/// What a modifier says; an access says each of it once at most.
#[derive(Clone, Copy, PartialEq, Eq)]
enum About {
    Order,
    Scope,
    Space,
    /// `.nc`
    Writers,
    /// `.ca` and the like
    Cache,
    L1,
    L2,
    Policy,
    Prefetch,
    Lanes,
    Type,
}

impl About {
    fn of(part: &str, load: bool) -> Option<About> {
        Some(match part {
            "weak" | "volatile" | "relaxed" => About::Order,
            "acquire" if load => About::Order,
            "release" if !load => About::Order,
            "cta" | "cluster" | "gpu" | "sys" => About::Scope,
            "global" | "shared" | "shared::cta" | "shared::cluster" | "local" | "param" | "param::func" => About::Space,
            // Parameters of a kernel are never written.
            "param::entry" if load => About::Space,
            // Constants lie in global memory that nobody writes.
            "const" if load => About::Space,
            "nc" if load => About::Writers,
            "ca" | "lu" | "cv" if load => About::Cache,
            "wb" | "wt" if !load => About::Cache,
            "cg" | "cs" => About::Cache,
            "L1::no_allocate" | "L1::evict_unchanged" | "L1::evict_last" | "L1::evict_first" | "L1::evict_normal" => {
                About::L1
            }
            "L2::evict_first" | "L2::evict_last" | "L2::evict_normal" => About::L2,
            "L2::cache_hint" => About::Policy,
            "L2::64B" | "L2::128B" | "L2::256B" if load => About::Prefetch,
            "v2" | "v4" | "v8" => About::Lanes,
            "b8" | "u8" | "s8" | "b16" | "u16" | "s16" | "b32" | "u32" | "s32" | "f32" | "b64" | "u64" | "s64"
            | "f64" | "b128" => About::Type,
            _ => return None,
        })
    }

    fn text(self) -> &'static str {
        match self {
            About::Order => "memory orders",
            About::Scope => "scopes",
            About::Space => "state spaces",
            About::Writers => "`.nc`",
            About::Cache => "cache operators",
            About::L1 => "eviction priorities of L1",
            About::L2 => "eviction priorities of L2",
            About::Policy => "`.L2::cache_hint`",
            About::Prefetch => "sizes to prefetch",
            About::Lanes => "vector sizes",
            About::Type => "types",
        }
    }
}

/// Whether a `ld` or `st` of these modifiers exists: `None`, one of them is of no form.
pub(super) fn check(load: bool, mods: &[&str], opcode: &str) -> Result<Option<()>, Bad> {
    let mut said: Vec<(About, &str)> = Vec::with_capacity(mods.len());
    for part in mods {
        let Some(about) = About::of(part, load) else { return Ok(None) };
        if said.iter().any(|(other, _)| *other == about) {
            let help = "Keep one of them.";
            return Err(wrong(format!("`{opcode}` has two {}", about.text()), help));
        }
        said.push((about, part));
    }
    let find = |about| said.iter().find(|(other, _)| *other == about).map(|(_, part)| *part);
    let order = find(About::Order).filter(|order| *order != "weak");
    let space = find(About::Space);
    // Without a space the address is generic: it may lie in global memory.
    let global = matches!(space, None | Some("global"));
    let cached = [About::Cache, About::L1, About::Policy];
    let pair = |a: &str, b: &str| {
        Err(wrong(
            format!("`{opcode}` has `.{a}` and `.{b}`, which do not go together"),
            format!("Leave out one of them: ptxas takes no `{}` with both.", if load { "ld" } else { "st" }),
        ))
    };
    let nowhere = |part: &str, space: &str| {
        Err(wrong(
            format!("`{opcode}`: `.{part}` says nothing of `.{space}`"),
            format!("Leave out `.{part}`: it is for global memory."),
        ))
    };
    if let (Some(l1), Some(cache)) = (find(About::L1), find(About::Cache)) {
        return pair(l1, cache);
    }
    if let Some(order) = order {
        let volatile = order == "volatile";
        let clash = [About::Cache, About::Writers, About::L1, About::Policy, About::Scope]
            .into_iter()
            .filter(|about| volatile || matches!(about, About::Cache | About::Writers))
            .find_map(find);
        if let Some(other) = clash {
            return pair(order, other);
        }
        let unordered = |space: &&str| match *space {
            "local" => !volatile,
            space => space == "const" || space.starts_with("param"),
        };
        if let Some(space) = space.filter(unordered) {
            return nowhere(order, space);
        }
    }
    if let Some(nc) = find(About::Writers) {
        if let Some(weak) = find(About::Order) {
            return pair(weak, nc);
        }
        if space != Some("global") {
            return Err(wrong(
                format!("`{opcode}` does not name its space"),
                "Write `ld.global.nc`: only global memory has it.",
            ));
        }
    }
    for about in cached.into_iter().filter(|about| *about != About::Cache).chain([About::Prefetch, About::L2]) {
        if let (Some(part), Some(space)) = (find(about), space.filter(|_| !global)) {
            return nowhere(part, space);
        }
    }
    let (lanes, ty) = (find(About::Lanes).unwrap_or("v1"), find(About::Type).unwrap_or_default());
    let wide = matches!((lanes, ty), ("v8", "b32" | "u32" | "s32" | "f32") | ("v4", "b64" | "u64" | "s64" | "f64"));
    if let Some(l2) = find(About::L2)
        && !wide
    {
        return Err(wrong(
            format!("`{opcode}`: `.{l2}` goes with accesses of 32 bytes"),
            "Leave it out, or access `.v8.b32` or `.v4.b64` (PTX ISA 9.7.9.8).",
        ));
    }
    Ok(Some(()))
}
