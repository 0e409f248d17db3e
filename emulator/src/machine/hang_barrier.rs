//! A CTA barrier to which too few come, and why.

use super::cluster::Cluster;
use super::hang::Blocked;
use super::names::counted;
use crate::diagnostic::Diagnostic;
use crate::protocol::What;

impl Cluster<'_> {
    pub fn stuck_cta_barrier(&self, root: &Blocked, id: u32) -> Diagnostic {
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
        }
        d
    }

    /// The first warp that has come to one phase of a CTA barrier twice, and the statement by which it did.
    fn came_twice(&self, c: usize, id: u32) -> Option<(usize, u32)> {
        let mut there: Vec<(u16, u32)> = Vec::new();
        for step in &self.record.steps {
            match step.what {
                What::Named { cta, id: of, .. } if (usize::from(cta), u32::from(of)) == (c, id) => {
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
