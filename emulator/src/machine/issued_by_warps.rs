//! MMAs that several warps issue, each the same: `elect.sync` elects a lane in every warp that comes to it.

use super::cluster::Cluster;
use super::issued::Recent;
use super::names::distinct;
use super::state::{ActorKind, Race};
use crate::diagnostic::Severity;
use crate::program::op::Op;

impl Recent {
    /// Whether another warp multiplies the same by the same statement, for the same accumulator.
    fn is_that_of_another_warp(&self, other: &Recent) -> bool {
        let same = |m: &Recent| (m.stamp.site, m.ctas, m.d, m.operands, m.brought);
        self.warp != other.warp && same(self) == same(other)
    }
}

impl Cluster<'_> {
    /// MMAs of two warps are not ordered, and both warps issue the same ones: that is told once, of the first. Gives the statements of all of them.
    pub fn tell_mmas_of_several_warps(&mut self, races: &[Race]) -> Vec<u32> {
        let warp = |stamp| match self.kind(stamp) {
            Some(ActorKind::Mmas { warp, .. }) => Some(warp as usize),
            _ => None,
        };
        let pairs = races.iter().filter_map(|race| Some([warp(race.conflict.first)?, warp(race.second)?]));
        let pairs = distinct(pairs.filter(|[one, other]| one != other));
        let issued = &self.issued;
        let has_twin = |one: &Recent, warp: usize| issued.of_warp(warp).any(|other| one.is_that_of_another_warp(other));
        let both_ways = pairs.iter().flat_map(|&[one, other]| [(one, other), (other, one)]);
        let all: Vec<&Recent> =
            both_ways.flat_map(|(w, other)| issued.of_warp(w).filter(move |mma| has_twin(mma, other))).collect();
        let Some(&first) = all.iter().min_by_key(|mma| mma.stamp.site) else { return vec![] };
        let site = first.stamp.site;
        let others = issued.of_cta(first.ctas.0).filter(|mma| first.is_that_of_another_warp(mma));
        let warps = distinct(others.chain([first]).map(|mma| mma.warp));
        let sites = distinct(all.iter().map(|mma| mma.stamp.site));
        let names: Vec<String> = warps.iter().map(|&w| self.warp_name(w)).collect();
        let elects = self.kernel.code.iter().any(|inst| matches!(inst.op, Op::Elect { .. }));
        let mut diagnostic = self.problem(
            "issued-by-many-lanes",
            site,
            format!("{} warps each issue this tcgen05.mma: the product is computed, or added, that many times", warps.len()),
            "One thread issues tcgen05.mma, tcgen05.cp or tcgen05.commit for all; each further thread starts the operation once more (PTX ISA \
             9.7.16.5). elect.sync elects one lane in every warp that comes to it.",
            match warps.iter().all(|&w| self.warps[w].cta == self.warps[warps[0]].cta) {
                false => "Of a pair, let a thread of the CTA of even rank issue the MMAs and their commits (%cluster_ctarank): they are for both CTAs.".into(),
                true if elects => "Choose one warp before elect.sync: branch around the MMAs, and around their commits, in all others.".into(),
                true => "Choose one thread of one warp: branch around the MMAs, and around their commits, in all others.".into(),
            },
        );
        diagnostic.severity = Severity::Finding;
        diagnostic.labels[0].text = format!("issued by {}", names.join(", "));
        self.findings.add(diagnostic);
        sites
    }
}
