//! A CTA barrier to which too few come, and why.

use super::Blocked;
use super::role::Barred;
use crate::diagnostic::{Diagnostic, Meaning};
use crate::machine::cluster::Cluster;
use crate::machine::explain::names::{counted, distinct};
use crate::protocol::What;
use std::collections::BTreeMap;

/// Whether a step is one of those that come to this barrier of a CTA.
fn comes(what: &What, c: usize, id: u32) -> bool {
    matches!(what, What::Named { cta, id: of, .. } if (usize::from(*cta), u32::from(*of)) == (c, id))
}

/// Lanes of warps.
type Lanes = BTreeMap<u16, u32>;

/// How many threads these are.
fn threads(lanes: &Lanes) -> u32 {
    lanes.values().map(|lanes| lanes.count_ones()).sum()
}

impl Cluster<'_> {
    pub fn stuck_cta_barrier(&self, blocked: &[Blocked], root: &Blocked, id: u32) -> Diagnostic {
        let c = self.warps[root.warp].cta;
        let named = &self.ctas[c].named[id as usize];
        let expected = named.expected.unwrap_or_else(|| self.live_threads(c));
        let mut d = self.hang(
            root.site,
            format!("CTA barrier {id} waits for {} and gets {}", counted(expected, "thread"), named.arrived),
            format!(
                "Let all warps that the barrier counts execute it, equally often, or let it count {}.",
                counted(named.arrived, "thread")
            ),
        );
        d.labels = vec![self.label(root.site, format!("{} waits here", self.warp_name(root.warp)))];
        let come = self.threads_at(c, id, root.site);
        let others: Vec<u32> = self.sites_of_this_phase(c, id).into_iter().filter(|&site| site != root.site).collect();
        if come > expected {
            // Some went through it together, and the rest is too few for another phase.
            d.help = format!("{} execute it: let it count them all.", counted(come, "thread"));
        } else if let Some(all) = self.all_come_mixed(c, id, root.site, expected).filter(|_| others.is_empty()) {
            d.labels[0].meaning = Meaning::Mixes;
            d.help = format!("{} come to it, by several statements: let it count them all.", counted(all, "thread"));
        } else if let Some(&site) = others.first() {
            let there = counted(self.threads_at(c, id, site), "thread");
            d.labels.push(self.label(site, format!("{there} come to it here")));
            d.help = format!(
                "If those who come to it by different statements are to meet apart, give each group a barrier number of its own, with its count of \
                 threads (here {}); else let all that it counts come.",
                counted(come, "thread")
            );
        }
        if let Some((warp, site)) = self.came_twice(c, id) {
            let who = self.warp_name(warp);
            d.title = format!("{}: {who} has come twice to one phase", d.title);
            d.labels.push(self.label(
                site,
                format!("{who} comes here a second time before the others have come: bar.arrive does not wait"),
            ));
            d.help = "Let who arrives by bar.arrive wait for the others before it arrives again: by bar.sync, or at another barrier at which they \
                      arrive in turn."
                .into();
        } else if come < expected
            && let Some((site, barred)) = self.come_barred(blocked, c, id)
        {
            self.add_barred(&mut d, site, "others would come to it here, but this was never executed", &barred);
        } else if let Some((site, here, barred)) = self.some_come(blocked, c, id, expected) {
            self.add_barred(
                &mut d,
                site,
                &format!("{here} of the {expected} threads that meet at it come here"),
                &barred,
            );
            d.help = "Let all that meet at the barrier come to it: put it in front of the guard that leads the others past it.".into();
        } else {
            self.add_held(blocked, root, &mut d);
        }
        d
    }

    /// A statement by which threads of a CTA would come to a barrier, and that is never executed, and what keeps all from it.
    fn come_barred(&self, blocked: &[Blocked], c: usize, id: u32) -> Option<(u32, Barred)> {
        let mut sites = self.kernel.code.iter().filter(|inst| self.is_of_cta_barrier(inst, id) == Some(true));
        sites.find_map(|inst| Some((inst.site, self.barred(blocked, inst.site, |cta| cta == c)?)))
    }

    /// A statement by which only some come to a barrier at which all that it counts meet elsewhere: it, how many threads that are, and the guard that has
    /// led the others past it. (Those who meet by statements of their own each are told apart by that.)
    fn some_come(&self, blocked: &[Blocked], c: usize, id: u32, expected: u32) -> Option<(u32, u32, Barred)> {
        let all = self.lanes_at(c, id, |_| true);
        let sites: Vec<_> =
            self.sites_of(c, id).into_iter().map(|at| (at, self.lanes_at(c, id, |of| of == at))).collect();
        if threads(&all) != expected || !sites.iter().any(|(_, lanes)| *lanes == all) {
            return None;
        }
        let meet = |here: &Lanes| sites.iter().all(|(_, there)| there.keys().any(|warp| here.contains_key(warp)));
        sites.iter().filter(|(_, here)| meet(here)).find_map(|(site, here)| {
            let others = all.keys().filter(|warp| !here.contains_key(warp)).map(|&warp| usize::from(warp)).collect();
            Some((*site, threads(here), self.kept_from(blocked, *site, others)?))
        })
    }

    /// So many threads of a CTA have come to a barrier by this statement, in whichever phases.
    fn threads_at(&self, c: usize, id: u32, site: u32) -> u32 {
        threads(&self.lanes_at(c, id, |other| other == site))
    }

    /// The lanes of each warp that have come to a barrier by these statements, in whichever phases.
    fn lanes_at(&self, c: usize, id: u32, sites: impl Fn(u32) -> bool) -> Lanes {
        let mut lanes = Lanes::new();
        for step in self.record.steps.iter().filter(|step| sites(step.site) && comes(&step.what, c, id)) {
            *lanes.entry(step.warp).or_default() |= step.lanes;
        }
        lanes
    }

    /// The statements by which threads have come to a barrier.
    fn sites_of(&self, c: usize, id: u32) -> Vec<u32> {
        distinct(self.record.steps.iter().filter(|step| comes(&step.what, c, id)).map(|step| step.site))
    }

    /// So many threads have come to a barrier, if some come by statements of their own that are too few to meet apart: phases before had these.
    fn all_come_mixed(&self, c: usize, id: u32, site: u32, expected: u32) -> Option<u32> {
        let mut others = self.sites_of(c, id).into_iter().filter(|&other| other != site);
        let all = threads(&self.lanes_at(c, id, |_| true));
        (all > expected && others.any(|other| self.threads_at(c, id, other) < expected)).then_some(all)
    }

    /// The statements by which threads have come to the current phase of a barrier.
    fn sites_of_this_phase(&self, c: usize, id: u32) -> Vec<u32> {
        let done = |what: &What| matches!(what, What::NamedDone { cta, id: of } if (usize::from(*cta), u32::from(*of)) == (c, id));
        let open = self.record.steps.iter().rev().take_while(|step| !done(&step.what));
        distinct(open.filter(|step| comes(&step.what, c, id)).map(|step| step.site))
    }

    /// The first warp that has come to one phase of a CTA barrier twice, and the statement by which it did.
    fn came_twice(&self, c: usize, id: u32) -> Option<(usize, u32)> {
        let mut there: Vec<(u16, u32)> = Vec::new();
        for step in &self.record.steps {
            match step.what {
                what if comes(&what, c, id) => {
                    if there.iter().any(|&(warp, lanes)| warp == step.warp && lanes & step.lanes != 0) {
                        return Some((step.warp.into(), step.site));
                    }
                    there.push((step.warp, step.lanes));
                }
                What::NamedDone { cta, id: of } if (usize::from(cta), u32::from(of)) == (c, id) => there.clear(),
                _ => {}
            }
        }
        None
    }
}
