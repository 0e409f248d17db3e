//! Clusters that share SMs, and each hold tensor memory that another one waits for.
//!
//! What a cluster did is taken for what all of them do. Half of those that fit get tensor memory on one CTA's SM (or on a pair's) as far as
//! they can, and nowhere else, the others on all other SMs; then all of them go on.

use super::doubt::{Doubt, Why};
use super::machine::{End, Graph, Machine, Others, Shape};
use super::record::What;
use super::search::Waiting;

/// Clusters that are looked at together, at most.
const MOST: u32 = 8;

/// Steps that may be looked at in all.
const STEPS: usize = 10_000_000;

/// Why clusters may wait for each other.
pub fn doubt(doubts: &[Doubt]) -> Option<Doubt> {
    let of = |why: Why| doubts.iter().find(move |doubt| doubt.why == why).copied();
    of(Why::Permit).or_else(|| of(Why::Columns))
}

/// What waits for ever in one of the clusters, if they can get stuck so.
pub fn stuck(graph: &Graph, shape: &Shape) -> Option<Vec<Waiting>> {
    // Its own, so that what it needs is not missing where one cluster is looked at by itself.
    let mut left = STEPS;
    let allocates = graph.steps.iter().find_map(|step| match step.what {
        What::Alloc { pair, .. } => Some(pair),
        _ => None,
    });
    let together = if allocates? { 2 } else { 1 };
    if shape.sharing < 2 || shape.ctas <= together {
        return None;
    }
    (0..shape.ctas).step_by(together).find_map(|first| {
        let here = |cta: usize| (first..first + together).contains(&cta);
        let mut clusters: Vec<Machine> = (0..shape.sharing.min(MOST)).map(|_| Machine::new(graph, *shape)).collect();
        for (n, cluster) in clusters.iter_mut().enumerate() {
            cluster.only = Some((0..shape.ctas).map(|cta| here(cta) == (n % 2 == 0)).collect());
        }
        go_on(&mut clusters, &mut left)?;
        clusters.iter_mut().for_each(|cluster| cluster.only = None);
        let ended = go_on(&mut clusters, &mut left)?;
        if clusters.iter().zip(&ended).any(|(cluster, &end)| end == End::Stuck && cluster.asks()) {
            return None;
        }
        // Each waits for others alone: what one waits for by itself is another matter.
        let n = ended.iter().position(|&end| end == End::Stuck)?;
        let steps = clusters[n].ready.iter().map(|&n| graph.steps[n as usize]);
        let waits = steps.filter(|step| matches!(step.what, What::Alloc { .. }));
        let waiting = waits.map(|step| Waiting { warp: step.warp, site: step.site, what: step.what, phase: 0 });
        Some(waiting.collect::<Vec<_>>()).filter(|waiting| !waiting.is_empty())
    })
}

/// All go on until none can any more. `None`: it takes too long, or one gets stuck otherwise.
fn go_on(clusters: &mut [Machine], left: &mut usize) -> Option<Vec<End>> {
    loop {
        let before: usize = clusters.iter().map(Machine::done).sum();
        let mut ends = Vec::new();
        for n in 0..clusters.len() {
            let mut others = vec![Others::default(); clusters[n].others.len()];
            for other in clusters.iter().enumerate().filter(|(other, _)| *other != n).map(|(_, other)| other) {
                for (all, held) in others.iter_mut().zip(other.holds()) {
                    all.columns += held.columns;
                    all.permit |= held.permit;
                }
            }
            clusters[n].others = others;
            match clusters[n].run(left, |n, _| n.into()) {
                End::Unknown | End::Overflow(_) => return None,
                end => ends.push(end),
            }
        }
        if clusters.iter().map(Machine::done).sum::<usize>() == before {
            return Some(ends);
        }
    }
}
