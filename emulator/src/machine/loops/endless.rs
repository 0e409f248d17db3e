//! Loops that are never left, whatever others do: their warps may pass barriers, copy and multiply in them for ever.

use crate::diagnostic::Diagnostic;
use crate::machine::cluster::{Cluster, Stop};
use crate::program::flow::endless::{Settled, WayOut};
use crate::program::op::Reg;

/// Warp instructions of a cluster from one look to the next.
pub const SELDOM: u64 = 1 << 13;

impl Cluster<'_> {
    /// Whether a lane is in a loop that it will never leave.
    #[cold]
    pub fn look_for_endless_loops(&mut self) -> Result<(), Stop> {
        let kernel = self.kernel;
        for settled in kernel.settled_loops() {
            for w in 0..self.warps.len() {
                // A register may get its value only when it is read.
                if self.warps[w].open_loads.iter().any(|load| !load.landed) {
                    continue;
                }
                for f in 0..self.warps[w].fragments.len() {
                    let fragment = &self.warps[w].fragments[f];
                    let mask = fragment.mask;
                    if mask != 0 && settled.members.binary_search(&fragment.pc).is_ok() {
                        let stay = settled.exits.iter().fold(mask, |stay, way| stay & self.stays(w, stay, way));
                        if stay != 0 {
                            return Err(Some(Box::new(self.tell_settled(w, stay, settled))));
                        }
                    }
                }
            }
        }
        Ok(())
    }

    /// Lanes, of these, that a way out of their loop keeps in it in each round.
    fn stays(&mut self, w: usize, mask: u32, way: &WayOut) -> u32 {
        let code = &self.kernel.code;
        let registers = &mut self.warps[w].registers;
        let known = way.from.iter().fold(mask, |known, &reg| known & registers.defined(reg));
        let results = || way.computed_by.iter().flat_map(|&at| code[at as usize].defs.iter().copied());
        let before: Vec<(Reg, Vec<u128>)> =
            results().map(|reg| (reg, (0..32).map(|lane| registers.lane(reg, lane)).collect())).collect();
        way.computed_by.iter().for_each(|&at| registers.compute(mask, &code[at as usize].op));
        let inst = &code[way.at as usize];
        let executing =
            (0..32).filter(|&lane| (registers.lane(Reg::Pred(inst.guard), lane) != 0) != inst.guard_negated);
        let executing = executing.fold(0u32, |all, lane| all | 1 << lane);
        for (reg, values) in before {
            values.into_iter().enumerate().for_each(|(lane, value)| registers.set_lane(reg, lane, value));
        }
        known & if way.by_executing { !executing } else { executing }
    }

    fn tell_settled(&self, w: usize, stay: u32, settled: &Settled) -> Diagnostic {
        let code = &self.kernel.code;
        let site = |at: u32| code[at as usize].site;
        let lane = stay.trailing_zeros() as usize;
        let first = settled.members.first().map_or(0, |&at| site(at));
        let mut d = self.problem(
            "hang",
            site(settled.back),
            format!("{} goes round for ever: nothing in its loop changes what decides whether it is left", self.warp_name(w)),
            "A loop ends when a branch leads out of it; one whose ways out are decided by the same values in each round has taken them at once, or never does.",
            String::new(),
        );
        d.labels[0] = self.label(
            site(settled.back),
            format!("this branch leads back to `{}`, time and again", self.place(first).text),
        );
        let Some(way) = settled.exits.first() else {
            d.title = format!("{} goes round for ever: nothing leads out of its loop", self.warp_name(w));
            d.help = "Give a branch of the loop a condition that leads out of it.".into();
            return d;
        };
        let leads = match settled.exits.len() {
            1 => "only from here a way leads out of the loop",
            _ => "from here a way leads out of the loop",
        };
        d.labels.push(self.label(site(way.at), leads));
        if let Some(&at) = way.computed_by.last() {
            let registers = &self.warps[w].registers;
            let variable = |reg: &&Reg| match reg {
                Reg::B32(n) => !self.kernel.constants32.iter().any(|(constant, _)| constant == n),
                Reg::B64(n) => !self.kernel.constants64.iter().any(|(constant, _)| constant == n),
                _ => false,
            };
            let values: Vec<String> = (way.from.iter().filter(variable))
                .filter_map(|&reg| {
                    let name = way.computed_by.iter().find_map(|&at| self.register_name(site(at), reg))?;
                    Some(format!("{name} is {} in each round", registers.lane(reg, lane)))
                })
                .collect();
            let text = match values.is_empty() {
                true => "this decides, the same in each round".into(),
                false => format!("this decides: in lane {lane} {}", values.join(", and ")),
            };
            d.labels.push(self.label(site(at), text));
        }
        d.help = "Change what is compared there in each round: the loop over the tiles of a persistent kernel adds the number of its CTAs, or clusters, to its tile.".into();
        d
    }
}
