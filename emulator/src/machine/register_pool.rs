//! `setmaxnreg`: registers that warps of a CTA give back, and others take.

use super::cluster::{Cluster, Stop};
use super::names::counted;
use super::state::At;
use super::warp::State;
use crate::diagnostic::Diagnostic;
use crate::protocol::What;

impl Cluster<'_> {
    /// Without `.maxnreg`, the assembler does not know how many registers a thread begins with, and passes it over.
    pub fn set_registers(&mut self, at: At, count: u32, more: bool) -> Result<(), Stop> {
        let At { w, f, mask, site } = at;
        self.whole_warp(w, mask, site)?;
        if self.kernel.max_registers.is_none() {
            return Ok(());
        }
        let (c, has) = (self.warps[w].cta, self.warps[w].most_registers);
        let spare = &mut self.ctas[c].spare_registers;
        if more {
            let lacks = count.saturating_sub(has);
            if lacks > *spare {
                self.warps[w].fragments[f].state = State::Registers(lacks);
                return Ok(());
            }
            *spare -= lacks;
            self.warps[w].most_registers = has.max(count);
            self.record.add(w, mask, site, What::TakeRegisters { count: lacks as u16 });
            return Ok(());
        }
        *spare += has.saturating_sub(count);
        self.warps[w].most_registers = has.min(count);
        let given = has.saturating_sub(count) as u16;
        self.record.add(w, mask, site, What::GiveRegisters { count: given });
        let time = self.warps[w].fragments[f].ready_at;
        for warp in self.warps.iter_mut().filter(|warp| warp.cta == c) {
            for fragment in warp.fragments.iter_mut().filter(|f| matches!(f.state, State::Registers(_))) {
                fragment.state = State::Ready;
                fragment.ready_at = fragment.ready_at.max(time);
            }
        }
        self.acted();
        self.lower_horizon(time);
        Ok(())
    }

    /// A hang: nobody gives back what this warp asks for.
    pub fn stuck_registers(&self, w: usize, site: u32, lacks: u32) -> Diagnostic {
        let warp = &self.warps[w];
        let spare = self.ctas[warp.cta].spare_registers;
        let title = format!(
            "setmaxnreg.inc of {} waits for {} a thread more, and the other warps of its CTA have left {spare}",
            self.warp_name(w),
            counted(lacks, "register")
        );
        let begin = self.kernel.max_registers.unwrap_or(0);
        let mut d = self.hang(
            site,
            title,
            format!("Let setmaxnreg.dec give as many back as setmaxnreg.inc takes: every warp begins with {begin} a thread (.maxnreg)."),
        );
        d.rule = "setmaxnreg.inc waits until the CTA's pool has enough registers, and only setmaxnreg.dec of its other warps fills it \
                  (PTX ISA, setmaxnreg)."
            .into();
        d
    }
}
