//! MMAs that several warps issue, each the same: `elect.sync` elects a lane in every warp that comes to it. And those that they issue in turns.

use super::drafts::Draft;
use super::names::{Name, distinct};
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::mma::issued::{Extents, Recent};
use crate::machine::state::{ActorKind, Race};
use crate::order::Stamp;
use crate::program::kind::Kind;
use crate::program::op::Op;

impl Recent {
    /// Whether another warp multiplies the same by the same statement, for the same accumulator, and in the same round: warps that take turns come to
    /// the same stage in other rounds.
    fn is_that_of_another_warp(&self, other: &Recent) -> bool {
        let same = |m: &Recent| (m.stamp.site, m.nth, m.ctas, m.d, m.operands, m.brought);
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

    /// A warp issues an MMA: which one it follows in the pipeline. Of another warp's, it is enough to know that it was issued (PTX ISA 9.7.16.6.4.3).
    pub fn note_pipeline(&mut self, w: usize, new: Stamp, ctas: (usize, usize), d: Extents, kind: Kind) {
        let knows = |m: &&Recent| m.warp != w && self.warps[w].views.hb.get(self.warps[m.warp].actor) >= m.at;
        if let Some(before) = self.issued.same_sum(ctas, d, kind).filter(knows) {
            self.issued.pipelined = Some([before.stamp, new]);
        }
    }

    /// Two warps issue different MMAs for one accumulator, and nothing orders them.
    pub fn explain_turns(&self, race: &Race, name: &Name) -> Option<Draft> {
        let (first, second) = (race.conflict.first, race.second);
        let mma = |stamp| match self.kind(stamp)? {
            ActorKind::Mmas { warp, .. } if !self.is_tensor_copy(stamp.site) => Some(warp as usize),
            _ => None,
        };
        let warps = [mma(first)?, mma(second)?];
        if warps[0] == warps[1] {
            return None;
        }
        let [before, now] = warps.map(|w| self.warp_name(w));
        // Who begins one has a product of its own.
        let begins = |w: usize| self.issued.of_warp(w).any(|mma| !mma.adds);
        let own = warps.into_iter().all(begins);
        let in_turns = if first.site == second.site && !own { " in turns" } else { "" };
        Some(Draft::of(race, Some(name))(
            "race-tensor",
            format!(
                "{before} and {now} issue MMAs for {{}}{in_turns}, and nothing orders those of the one behind those of the other"
            ),
            vec![
                self.label(second.site, format!("issued by {now}, which has not waited for {before}")),
                self.label(first.site, format!("issued by {before} before")),
            ],
            "MMAs of one accumulator, shape and kind run in the order in which one thread issues them (PTX ISA 9.7.16.6.2); those of two threads \
             do where the second has heard of the first's (9.7.16.6.4.3).",
            match own {
                true => "Give each warp an accumulator of its own, in columns of its own: both begin a product there. If they are to add to one, let one thread issue \
                         all MMAs of it."
                    .into(),
                false => "Let one thread issue all MMAs of an accumulator; or let each warp commit its MMAs, or arrive behind them (tcgen05.fence::before_thread_sync, \
                          mbarrier.arrive), and the other wait for that before it issues its own."
                    .into(),
            },
        ))
    }
}
