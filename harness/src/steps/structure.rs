//! Whether a kernel of steps 2 to 10 is what its step claims: read off its trace, never off its text.

use super::{BLK_K, Copies, Shape, products};
use crate::launch;
use crate::observe::Observation;
use crate::source::{Matrix, Param};
use emulator::{Copy, CopyKind, Event, EventKind, Mma};
use ptx::Swizzle;
use std::collections::{BTreeMap, BTreeSet};

/// What the kernel is, or all that it is not.
pub(super) fn check(run: &Observation, shape: &Shape) -> Result<String, Vec<String>> {
    let mut wrong = Vec::new();
    wrong.extend(shape.launched_otherwise(&run.built, &run.inputs.problem, run.sms));
    match shape.copies {
        Copies::Threads => no_tma(run, &mut wrong),
        Copies::Tma => only_tma(run, &mut wrong),
    }
    let products = products::of(run);
    multiplications(run, shape, &products, &mut wrong);
    swizzled(run, &mut wrong);
    issuers(run, shape, &mut wrong);
    if shape.copies == Copies::Tma {
        stages(run, shape, &mut wrong);
    }
    if shape.specialised {
        overlap(run, shape, &products, &mut wrong);
    }
    if wrong.is_empty() { Ok(described(shape)) } else { Err(wrong) }
}

fn described(shape: &Shape) -> String {
    let mut parts = Vec::new();
    parts.push(match (shape.persistent, shape.ctas) {
        (false, _) => "a CTA for each tile".to_string(),
        (true, 1) => "a CTA for each SM".to_string(),
        (true, _) => "a cluster of two CTAs for each two SMs".to_string(),
    });
    parts.push(match shape.copies {
        Copies::Threads => "no TMA".to_string(),
        Copies::Tma if shape.depth == 1 => "TMA moves A, B and D, one stage".to_string(),
        Copies::Tma => format!("TMA moves A, B and D, {} stages", shape.depth),
    });
    if shape.specialised {
        parts.push("loads, MMAs and write-back in warps of their own".to_string());
    }
    if shape.ctas > 1 {
        let warps = if shape.consumers > 1 { format!("{} warps", shape.consumers) } else { "one warp".to_string() };
        parts.push(format!("{warps} of the leader multiply"));
    }
    parts.join(", ")
}

/// The line of an event.
pub(super) fn at(event: &Event) -> String {
    match &event.place.source {
        Some(source) => format!("{}:{}", source.file, source.line),
        None => format!("line {} of the PTX", event.place.line),
    }
}

fn no_tma(run: &Observation, wrong: &mut Vec<String>) {
    if let Some((event, _)) = run.copies().next() {
        wrong.push(format!("this step copies with its threads; this kernel uses the TMA engine ({})", at(event)));
    }
    let stored = run.bytes_stored_to_d();
    let size = run.inputs.problem.bytes_of_d();
    if stored != size {
        wrong.push(format!("the threads store D once, {size} bytes; this kernel stores {stored} bytes to D"));
    }
}

pub(super) fn only_tma(run: &Observation, wrong: &mut Vec<String>) {
    for event in &run.report.trace {
        let (what, buffer) = match event.kind {
            EventKind::GlobalLoad { buffer, .. } => ("loads from", buffer),
            EventKind::GlobalStore { buffer, .. } => ("stores to", buffer),
            _ => continue,
        };
        let name = launch::BUFFERS.get(buffer).map_or("global memory".to_string(), |matrix| matrix.to_string());
        wrong.push(format!("A, B and D move by TMA only; in this kernel a thread {what} {name} ({})", at(event)));
        break;
    }
    if let Some((event, _)) =
        run.copies().find(|(_, copy)| !copy.tensor || matches!(copy.kind, CopyKind::Reduce | CopyKind::Forward))
    {
        wrong.push(format!(
            "tiles move by tensor maps, as loads and stores; this kernel copies otherwise ({})",
            at(event)
        ));
    }
    let d = launch::buffer(Matrix::D);
    let stored: u64 = (run.copies())
        .filter(|(_, copy)| copy.kind == CopyKind::Store && copy.buffer == Some(d))
        .map(|(_, copy)| u64::from(copy.bytes))
        .sum();
    // The problem that is looked at has whole tiles.
    let size = run.inputs.problem.bytes_of_d();
    if stored != size {
        wrong.push(format!("TMA stores D once, {size} bytes; in this kernel it stores {stored} bytes to D"));
    }
}

fn multiplications(run: &Observation, shape: &Shape, products: &[products::Factors], wrong: &mut Vec<String>) {
    let mmas = run.mmas();
    let ctas = shape.ctas;
    // A consumer's share of the tile.
    let wanted = [shape.tile[0] / shape.consumers, shape.tile[1], 16];
    if let Some((event, mma)) = mmas.iter().find(|(_, mma)| mma.shape != wanted || mma.cta_group != ctas) {
        let [m, n, k] = wanted;
        wrong.push(format!(
            "this step multiplies with MMAs of {m}x{n}x{k} and cta_group {ctas}; this kernel issues one of {:?} with cta_group {} \
             ({})",
            mma.shape,
            mma.cta_group,
            at(event)
        ));
    }
    wrong.extend(shape.multiplied_otherwise(run).or_else(|| products::otherwise(products)));
}

/// Every tile in shared memory has the 128-byte swizzle: of A and B as the MMAs read them, of D as TMA reads it.
fn swizzled(run: &Observation, wrong: &mut Vec<String>) {
    const WIDE: u32 = 128;
    let bytes = |width: u32| if width == 0 { "no swizzle".to_string() } else { format!("the {width}-byte swizzle") };
    let of_mma = run.mmas().into_iter().find_map(|(event, mma)| {
        let other = [("A", &mma.a), ("B", &mma.b)].into_iter().find(|(_, operand)| operand.swizzle != WIDE);
        other.map(|(name, operand)| {
            format!("an MMA reads its tile of {name} with {} ({})", bytes(operand.swizzle), at(event))
        })
    });
    let of_map = || {
        run.built.params.iter().find_map(|param| match param {
            Param::TensorMap { matrix, swizzle, .. } if *swizzle != Swizzle::B128 => {
                Some(format!("a tensor map of {matrix} has {}", bytes(swizzle.width())))
            }
            _ => None,
        })
    };
    if let Some(other) = of_mma.or_else(of_map) {
        wrong.push(format!("tiles in shared memory have the 128-byte swizzle; in this kernel {other}"));
    }
}

/// Which warps issue what.
fn issuers(run: &Observation, shape: &Shape, wrong: &mut Vec<String>) {
    let of = |events: &mut dyn Iterator<Item = &Event>| -> BTreeSet<(u32, u32)> {
        events.map(|event| (event.issuer.cta, event.issuer.warp)).collect()
    };
    let mmas = of(&mut run.mmas().into_iter().map(|(event, _)| event));
    let loads = of(&mut run.copies().filter(|(_, copy)| copy.kind == CopyKind::Load).map(|(event, _)| event));
    let stores = of(&mut run.copies().filter(|(_, copy)| copy.kind == CopyKind::Store).map(|(event, _)| event));
    let warps = |all: &BTreeSet<(u32, u32)>, cta: u32| all.iter().filter(|(at, _)| *at == cta).count() as u32;
    let ctas: BTreeSet<u32> = mmas.iter().map(|(cta, _)| *cta).collect();
    for cta in &ctas {
        if shape.ctas == 2 && cta % 2 == 1 {
            wrong.push(format!("only the leader of a pair issues MMAs; in this kernel CTA {cta}, of rank 1, does too"));
        }
        let found = warps(&mmas, *cta);
        if found != shape.consumers {
            let (wanted, found) = (counted(shape.consumers), counted(found));
            wrong.push(format!("in this step {wanted} of a CTA issue MMAs; in this kernel {found} of CTA {cta} do"));
            break;
        }
    }
    if shape.specialised {
        for (one, what) in [(&loads, "loads and MMAs"), (&stores, "stores and MMAs")] {
            if let Some((cta, warp)) = one.intersection(&mmas).next() {
                wrong.push(format!(
                    "in this step different warps issue {what}; in this kernel warp {warp} of CTA {cta} does both"
                ));
            }
        }
    }
}

fn counted(warps: u32) -> String {
    if warps == 1 { "1 warp".to_string() } else { format!("{warps} warps") }
}

/// The MMAs whose sums a CTA holds.
fn mmas_in(run: &Observation, cta: u32) -> Vec<(&Event, &Mma)> {
    run.mmas().into_iter().filter(|(_, mma)| mma.ctas.contains(&cta)).collect()
}

/// A box of B, from when its load is issued until the last MMA has read it.
struct Held<'a> {
    load: &'a Event,
    copy: &'a Copy,
    until: u64,
}

/// What the loads of B hold in a CTA. B has one tile in each stage, in every step.
fn held(run: &Observation, cta: u32) -> Vec<Held<'_>> {
    let b = launch::buffer(Matrix::B);
    let mmas = mmas_in(run, cta);
    let mut loads: Vec<(&Event, &Copy)> = (run.copies())
        .filter(|(_, copy)| copy.kind == CopyKind::Load && copy.buffer == Some(b) && copy.ctas.contains(&cta))
        .collect();
    loads.sort_by_key(|(event, _)| event.issued);
    // A kernel may also compute D's transpose: then B is the first operand.
    let reads = |copy: &Copy, mma: &Mma| {
        [&mma.a, &mma.b].iter().any(|tile| tile.offset < copy.shared + copy.bytes as i32 && copy.shared < tile.end)
    };
    (loads.iter().enumerate())
        .map(|(index, (load, copy))| {
            // Until the same place is filled again.
            let next = loads[index + 1..].iter().find(|(_, later)| later.shared == copy.shared);
            let next = next.map_or(u64::MAX, |(event, _)| event.end);
            let until = (mmas.iter())
                .filter(|(event, mma)| reads(copy, mma) && event.start >= load.issued && event.end <= next)
                .map(|(event, _)| event.end)
                .max();
            Held { load, copy, until: until.unwrap_or(load.end) }
        })
        .collect()
}

/// As many stages at the same time between arm and release as the step has, no more and no fewer.
fn stages(run: &Observation, shape: &Shape, wrong: &mut Vec<String>) {
    let ctas = run.built.grid.iter().product::<u32>();
    // Whether its tile comes in one box or in several: a stage is so many bytes of B.
    let stage = shape.tile[1] / shape.ctas * BLK_K * 2;
    let mut most = 0;
    for cta in 0..ctas {
        let all = held(run, cta);
        for one in &all {
            let together: BTreeMap<i32, u32> = (all.iter())
                .filter(|other| other.load.issued <= one.load.issued && one.load.issued < other.until)
                .map(|other| (other.copy.shared, other.copy.bytes))
                .collect();
            most = most.max(together.values().sum::<u32>().div_ceil(stage));
        }
    }
    if most != shape.depth {
        wrong.push(format!(
            "this step has {} stage{} that are filled or multiplied at the same time; this kernel has at most {most}",
            shape.depth,
            if shape.depth == 1 { "" } else { "s" }
        ));
    }
    if shape.depth > 1 {
        let loads = || run.copies().filter(|(_, copy)| copy.kind == CopyKind::Load);
        let overlaps = run.mmas().iter().any(|(mma, what)| {
            loads().any(|(load, copy)| {
                load.start < mma.end
                    && mma.start < load.end
                    && copy.ctas.iter().any(|cta| what.ctas.contains(cta))
                    && !(what.b.offset <= copy.shared && copy.shared < what.b.end)
            })
        });
        if !overlaps {
            wrong.push(
                "while one stage is multiplied another is loaded; in this kernel no MMA overlaps a load".to_string(),
            );
        }
    }
}

/// The write-back of a tile goes on while the next one is multiplied: of each consumer, whose accumulator is its own.
fn overlap(run: &Observation, shape: &Shape, products: &[products::Factors], wrong: &mut Vec<String>) {
    let d = launch::buffer(Matrix::D);
    let rows = shape.tile[0] / shape.consumers;
    // A consumer's part of a tile, by row and column of D.
    let part = |row: u32, column: u32| [row / rows, column / shape.tile[1]];
    let begins = products::begins(products, part);
    let overlaps = |consumer: u32| {
        (0..run.built.grid.iter().product::<u32>()).any(|cta| {
            // When the last store of each part is issued, in the order of the tiles.
            let mut stored: Vec<([u32; 2], u64)> = Vec::new();
            let mut stores: Vec<(&Event, &Copy)> = (run.copies())
                .filter(|(event, copy)| {
                    copy.kind == CopyKind::Store && copy.buffer == Some(d) && event.issuer.cta == cta
                })
                .collect();
            stores.sort_by_key(|(event, _)| event.issued);
            for (event, copy) in stores {
                let &[column, row] = copy.coordinates.as_slice() else { continue };
                let part = part(row as u32, column as u32);
                if part[0] % shape.consumers != consumer {
                    continue;
                }
                match stored.iter_mut().find(|(known, _)| *known == part) {
                    Some((_, last)) => *last = event.issued,
                    None => stored.push((part, event.issued)),
                }
            }
            stored.windows(2).any(|pair| begins.get(&pair[1].0).is_some_and(|next| *next < pair[0].1))
        })
    };
    let overlaps = (0..shape.consumers).all(overlaps);
    if !overlaps {
        wrong.push(
            "the write-back of a tile overlaps the MMAs of the next; in this kernel no MMA of a tile begins before the tile before \
             it is stored"
                .to_string(),
        );
    }
}
