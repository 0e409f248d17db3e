//! Which mbarriers an instruction names: the addresses of its lanes, and the objects that were initialised there.

use super::mbarrier::Mbarrier;
use crate::diagnostic::Diagnostic;
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::explain::elsewhere::{Elsewhere, SPACE_RULE};
use crate::machine::explain::names::counted;
use crate::machine::state::{At, Slot};
use crate::machine::warp::registers::lanes;
use crate::program::RESERVED_SHARED;
use crate::program::op::{Address, Op, Reg};

/// Mostly one.
#[derive(Debug, Default)]
pub struct Slots {
    first: Option<(Slot, u32)>,
    more: Vec<(Slot, u32)>,
}

impl Slots {
    fn add(&mut self, slot: Slot, lanes: u32) {
        let (first, _) = self.first.get_or_insert((slot, 0));
        if *first != slot && self.more.iter().all(|(known, _)| *known != slot) {
            self.more.push((slot, 0));
        }
        for (known, who) in self.first.iter_mut().chain(&mut self.more) {
            *who |= if *known == slot { lanes } else { 0 };
        }
    }

    pub fn iter(&self) -> impl Iterator<Item = &(Slot, u32)> {
        self.first.iter().chain(&self.more)
    }

    pub fn first(&self) -> Option<&(Slot, u32)> {
        self.first.as_ref()
    }

    /// The one place that all lanes give.
    pub fn only(&self) -> Option<Slot> {
        self.first.filter(|_| self.more.is_empty()).map(|(slot, _)| slot)
    }
}

impl IntoIterator for Slots {
    type Item = (Slot, u32);
    type IntoIter = std::iter::Chain<std::option::IntoIter<(Slot, u32)>, std::vec::IntoIter<(Slot, u32)>>;

    fn into_iter(self) -> Self::IntoIter {
        self.first.into_iter().chain(self.more)
    }
}

impl Cluster<'_> {
    /// The places that lanes give as mbarrier address, with the lanes that give each. `remote`: in any CTA of the cluster.
    pub fn barrier_addresses(&mut self, at: At, address: &Address, remote: bool) -> Result<Slots, Stop> {
        let At { w, f, mask, site } = at;
        let own = self.warps[w].cta;
        let mut list = Slots::default();
        let registers = &self.warps[w].registers;
        let whole = |lane| (registers.lane(address.base, lane) as u64).wrapping_add(address.offset as u64);
        let raw = |lane| whole(lane) as u32;
        let first = raw(mask.trailing_zeros() as usize);
        let alike = match address.base {
            Reg::B32(reg) => registers.is_uniform(reg, mask),
            _ => lanes(mask).all(|lane| raw(lane) == first),
        };
        // Mostly all give the same address, or there is one only.
        let each = if alike { mask & mask.wrapping_neg() } else { mask };
        for lane in lanes(each) {
            let (whole, raw) = (whole(lane), raw(lane));
            if let Some(Elsewhere { whose, .. }) = self.not_shared(w, whole, remote) {
                return Err(Some(Box::new(self.problem(
                    "mbarrier-address",
                    site,
                    format!("the mbarrier address {whole:#x} of lane {lane} is no shared address: it is {}", whose),
                    SPACE_RULE,
                    "Pass the shared address of the mbarrier: `mov.u32 %r, bar;`, or convert a generic one with `cvta.to.shared.u64`.".into(),
                ))));
            }
            let (rank, offset) = ((raw >> 24) as usize, raw & 0x00ff_ffff);
            // A variable's name is an offset in the CTA's own window.
            let cta = if remote && address.base != Reg::Sink { rank } else { own };
            let end = self.ctas.get(cta).map_or(0, |c| c.shared.bytes.len() as u64);
            let pc = self.warps[w].fragments[f].pc as usize;
            let low = rank == 0 && offset < RESERVED_SHARED;
            let foreign = !remote && address.base != Reg::Sink && rank != own && !low;
            if foreign || !offset.is_multiple_of(8) || offset < RESERVED_SHARED || u64::from(offset) + 8 > end {
                let (what, help) = if foreign {
                    (
                        format!(
                            "the mbarrier address {raw:#x} of lane {lane} lies in CTA {rank}, this form reaches the own CTA only"
                        ),
                        match self.kernel.code.get(pc).map(|inst| &inst.op) {
                            Some(Op::BarrierWait { .. }) => format!(
                                "Let a thread of CTA {rank} wait for it: a wait has no form that reaches other CTAs."
                            ),
                            _ => "Use the `.shared::cluster` form (with `_` for the state).".into(),
                        },
                    )
                } else if cta >= self.ctas.len() {
                    (
                        format!(
                            "the mbarrier address {raw:#x} of lane {lane} lies in CTA {cta} of the cluster, which has {}",
                            counted(self.ctas.len() as u64, "CTA")
                        ),
                        "Give mapa a rank below the number of CTAs of the cluster.".into(),
                    )
                } else if u64::from(offset) + 8 > end {
                    (
                        format!(
                            "the mbarrier address {raw:#x} of lane {lane} lies behind the CTA's shared memory, which ends at {end:#x}"
                        ),
                        self.short_of_shared(u64::from(offset) + 8).unwrap_or_else(|| {
                            "Pass the mbarrier's address, not its content, and check its offset.".into()
                        }),
                    )
                } else {
                    (
                        format!(
                            "the mbarrier address {raw:#x} of lane {lane} is not 8 aligned bytes of a CTA's shared memory"
                        ),
                        "Pass the barrier's address, not its content; align it to 8.".to_string(),
                    )
                };
                return Err(Some(Box::new(self.problem(
                    "mbarrier-address",
                    site,
                    what,
                    "An mbarrier object is 8 bytes in shared memory, aligned to 8 (PTX ISA, mbarrier).",
                    help,
                ))));
            }
            list.add(Slot { cta, offset }, if alike { mask } else { 1 << lane });
        }
        Ok(list)
    }

    /// The same statement of the warp has gone through initialised mbarriers in a row, and this place lies right behind the last of them.
    fn behind_its_ring(&self, w: usize, slot: Slot, site: u32) -> Option<String> {
        let own = |b: &&Mbarrier| {
            b.valid && b.cta == slot.cta && b.uses.iter().any(|used| (used.warp, used.site) == (w, site))
        };
        let mut ring: Vec<u32> = self.barriers.iter().filter(own).map(|b| b.offset).collect();
        ring.sort_unstable();
        let (&first, &last) = (ring.first()?, ring.last()?);
        let stride = (last - first).checked_div(ring.len() as u32 - 1)?;
        let in_a_row = ring.windows(2).all(|two| two[1] - two[0] == stride);
        (in_a_row && last + stride == slot.offset).then(|| {
            format!(
                "This statement has gone through the {} mbarriers from {} to {}, and comes to the place behind them: let the stage begin at 0 again there, or \
                 initialise an mbarrier for each stage.",
                ring.len(),
                self.name_of_barrier_at(first),
                self.name_of_barrier_at(last)
            )
        })
    }

    /// Nothing has initialised an mbarrier that is used: which others are, and whether the same one of another CTA is.
    fn not_initialised(&self, w: usize, slot: Slot, site: u32, what: String) -> Diagnostic {
        const RULE: &str = "Every operation on an mbarrier needs a preceding mbarrier.init (PTX ISA 9.7.13.15.3).";
        let of_others = self.barriers.iter().filter(|b| b.valid && b.offset == slot.offset && b.cta != slot.cta);
        let others: Vec<&Mbarrier> = of_others.collect();
        if let [first, ..] = others[..] {
            let ctas: Vec<String> = others.iter().map(|b| format!("CTA {}", b.cta)).collect();
            let (ctas, name) = (ctas.join(", "), self.name_of_barrier_at(slot.offset));
            let title = format!("{what}, but only that of {ctas} is initialised");
            let mine = self.warps[w].cta;
            let help = match mine == slot.cta {
                true => format!(
                    "Use the mbarrier of {ctas}: CTA {mine} names its own {name} here. With .shared::cluster, mapa gives the address in another CTA; of a pair's \
                     leader it is the own one with bit 24 cleared."
                ),
                false => format!(
                    "Use the mbarrier of {ctas}, where {name} is initialised: check the rank that mapa gets; or let CTA {} initialise its own.",
                    slot.cta
                ),
            };
            let mut diagnostic = self.problem("mbarrier-not-initialised", site, title, RULE, help);
            diagnostic.labels[0].text = format!("CTA {mine} names {name} of CTA {} here", slot.cta);
            diagnostic.labels.push(self.label(first.init.site, format!("CTA {} initialises its own here", first.cta)));
            return diagnostic;
        }
        let alone = self.ctas.len() == 1;
        let called = |b: &Mbarrier| match alone {
            true => self.name_of_barrier_at(b.offset),
            false => format!("{} of CTA {}", self.name_of_barrier_at(b.offset), b.cta),
        };
        let known: Vec<String> = self.barriers.iter().filter(|b| b.valid).map(called).collect();
        let known = if known.is_empty() {
            "no mbarrier is initialised".into()
        } else {
            format!("initialised are: {}", known.join(", "))
        };
        let behind = self.behind_its_ring(w, slot, site);
        // Or one that everybody has passed by.
        let mut inits = self.kernel.code.iter().filter(|inst| matches!(inst.op, Op::BarrierInit { .. }));
        let barred = match behind {
            Some(_) => None,
            None => inits.find_map(|inst| Some((inst.site, self.barred_from_all(inst.site, slot.cta)?))),
        };
        let mut diagnostic = self.problem(
            "mbarrier-not-initialised",
            site,
            format!("{what}, but no mbarrier.init of it has been executed ({known})"),
            RULE,
            behind.unwrap_or_else(|| {
                "Let one thread initialise it, then a fence.mbarrier_init and a CTA barrier, before anyone uses it."
                    .into()
            }),
        );
        if let Some((init, barred)) = barred {
            self.add_barred(&mut diagnostic, init, "this would initialise one, but was never executed", &barred);
        }
        diagnostic
    }

    /// The mbarrier at an offset, if it is initialised; and its initialisation must come before this use.
    pub fn barrier(&mut self, w: usize, slot: Slot, site: u32, used: &str) -> Result<u32, Stop> {
        let name = |this: &Self| match this.ctas.len() {
            1 => this.name_of_barrier_at(slot.offset),
            _ => format!("{} of CTA {}", this.name_of_barrier_at(slot.offset), slot.cta),
        };
        let Some(&barrier) = self.barrier_at.get(&(slot.cta, slot.offset)) else {
            let here = self.barriers.iter().filter(|b| (b.cta, b.offset) == (slot.cta, slot.offset));
            if let Some(ended) = here.filter_map(|b| b.invalidated).next_back() {
                let mut diagnostic = self.problem(
                    "mbarrier-not-initialised",
                    site,
                    format!("{} is {used} here, but it was invalidated before", name(self)),
                    "After mbarrier.inval, no operation but mbarrier.init may use the object (PTX ISA, mbarrier.inval).",
                    "Invalidate it behind its last use, or initialise it again before this one.".into(),
                );
                diagnostic.labels.push(self.label(ended, "invalidated here"));
                return Err(Some(Box::new(diagnostic)));
            }
            return Err(Some(Box::new(self.not_initialised(w, slot, site, format!("{} is {used} here", name(self))))));
        };
        self.check_init_order(w, barrier, site);
        Ok(barrier)
    }
}
