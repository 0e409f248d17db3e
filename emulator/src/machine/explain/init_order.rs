//! Uses of mbarriers that nothing orders behind their initialisation: one finding for all that one barrier would order.

use crate::diagnostic::{Diagnostic, Label, Place, Severity};
use crate::machine::cluster::Cluster;

const CODE: &str = "mbarrier-init-unordered";

/// What is missing between an initialisation and a use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    /// A barrier of the CTA.
    Cta,
    /// A barrier of the cluster: it orders the uses within a CTA, too.
    Cluster,
    /// The cluster's barrier is relaxed, and no fence stands before it.
    Fence,
    /// The same, and the use comes in time by way of a wait for something else.
    InTime,
}

impl Missing {
    fn help(self) -> &'static str {
        match self {
            Missing::Cta => "Put a CTA barrier between the initialisation and the first use.",
            Missing::Cluster => {
                "Put a fence.mbarrier_init and a barrier of the cluster (barrier.cluster.arrive, then wait) between the initialisation and \
                 the first use."
            }
            Missing::Fence => {
                "Put a fence.mbarrier_init.release.cluster behind the initialisation, or give the cluster barrier's arrive .release (leave \
                 its .relaxed out)."
            }
            Missing::InTime => {
                "Put the fence.mbarrier_init behind this initialisation, too, or let the barrier's arrival release (without .relaxed)."
            }
        }
    }
}

/// A finding that stands for all uses of what was initialised in one go.
#[derive(Debug)]
pub struct UnorderedInits {
    /// Who initialised them, and the stretch of its work in which it did: nothing that it has told others lies in it.
    by: (u32, u32),
    /// The statements that did: in another CTA they do the same.
    inits: Vec<u32>,
    missing: Missing,
    /// Where it is told, and the uses that it names.
    place: Place,
    uses: usize,
}

/// Uses that a finding names.
const MOST_USES: usize = 4;

impl Cluster<'_> {
    /// A warp uses an mbarrier: its initialisation must come before.
    pub fn check_init_order(&mut self, w: usize, barrier: u32, site: u32) {
        let b = &self.barriers[barrier as usize];
        let (init, cta) = (b.init, b.cta);
        let warp = &self.warps[w];
        let known = warp.views.hb.get(init.actor).max(warp.views.inits.get(init.actor));
        if init.epoch <= known || !self.options.judges() {
            return;
        }
        // Behind a relaxed barrier and a wait for something else it is there in time: kernels of CUTLASS 4 leave one at that. Right
        // behind the barrier it is not (NVIDIA/Fuser#1552).
        let in_time =
            warp.views.came_before(init.actor) >= init.epoch && warp.passed.iter().any(|passed| passed.phase.is_some());
        let relaxed = self.relaxed_arrival_behind(init, &warp.views);
        let missing = match relaxed {
            Some(_) if in_time => Missing::InTime,
            Some(_) => Missing::Fence,
            None if in_time => Missing::InTime,
            None if cta == warp.cta => Missing::Cta,
            None => Missing::Cluster,
        };
        let what = if in_time { "only relaxed synchronisation" } else { "nothing" };
        let (who, name) = (self.warp_name(w), self.barrier_name(barrier));
        let title = format!("{who} uses {name}, but {what} orders this after its initialisation");
        let rule = "An mbarrier.init must happen before every other operation on the object (PTX ISA 9.7.13.15.3).";
        let mut diagnostic = self.problem(CODE, site, title, rule, missing.help().into());
        diagnostic.severity = if in_time { Severity::Note } else { Severity::Finding };
        diagnostic.labels.push(self.label(init.site, "initialised here"));
        diagnostic.labels.extend(relaxed.map(|site| {
            self.label(site, "this arrival at the cluster barrier is relaxed: it tells nothing of the initialisation")
        }));
        self.add_unordered_init((init.actor, init.epoch), init.site, missing, diagnostic);
    }

    fn add_unordered_init(&mut self, by: (u32, u32), init: u32, missing: Missing, diagnostic: Diagnostic) {
        let Some(place) = diagnostic.labels.first().map(|label| label.place.clone()) else { return };
        let one_barrier = |known: Missing| {
            known == missing
                || matches!((known, missing), (Missing::Cta, Missing::Cluster) | (Missing::Cluster, Missing::Cta))
        };
        let same =
            |known: &&mut UnorderedInits| (known.by == by || known.inits.contains(&init)) && one_barrier(known.missing);
        let Some(known) = self.unordered_inits.iter_mut().find(same) else {
            self.unordered_inits.push(UnorderedInits { by, inits: vec![init], missing, place, uses: 1 });
            self.findings.add(diagnostic);
            return;
        };
        let wider = (known.missing, missing) == (Missing::Cta, Missing::Cluster);
        let named = known.uses < MOST_USES && known.place.shown() != place.shown();
        if wider {
            known.missing = missing;
        }
        known.uses += usize::from(named);
        if !known.inits.contains(&init) {
            known.inits.push(init);
        }
        let at = known.place.clone();
        self.findings.amend(CODE, &at, |told| {
            told.count += 1;
            if wider {
                told.help = missing.help().into();
            }
            let use_ = Label::new(place.clone(), diagnostic.title.as_str());
            if named && told.labels.iter().all(|label| label.place.shown() != place.shown()) {
                told.labels.push(use_);
            }
        });
    }
}
