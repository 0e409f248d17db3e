//! Lanes of a warp that tell each other something through shared memory without `bar.warp.sync`.
//!
//! Each lane is a thread, and plain accesses of two threads race unless something orders them (PTX ISA 8.7.2, 9.7.13.2). Lanes that move together execute one
//! instruction before the next, so that what one stores is there when another one loads it behind: a note. Lanes that have parted at a branch execute the two
//! sides in whatever order the GPU chooses: a finding.
//!
//! What a lane accessed is forgotten as soon as it tells anything: at a barrier of any kind, an arrival, a fence, a strong access. So a lane that synchronises with
//! one lane and is read by another one is not found.

use super::resolve::Target;
use crate::diagnostic::{Diagnostic, Severity};
use crate::machine::cluster::Cluster;
use crate::machine::state::At;

/// So many accesses of a warp are remembered.
const MOST: usize = 16;

/// What lanes of a warp access by one instruction in the shared memory of one CTA, and have not told anybody of.
#[derive(Debug)]
struct Accessed {
    site: u32,
    writes: bool,
    /// Rows of a matrix: each lane names one, and has parts of others.
    matrix: bool,
    cta: usize,
    /// The lanes that have told nothing since.
    lanes: u32,
    /// The lanes that have moved together with them, then or since.
    together: u32,
    bytes: u32,
    /// Where, by lane, and the ends of all.
    at: [u32; 32],
    low: u32,
    high: u32,
}

/// The accesses of shared memory that lanes of a warp have not told each other of, the last ones.
#[derive(Debug, Default)]
pub struct Untold {
    last: Vec<Accessed>,
}

/// Two lanes that have not synchronised: that of an earlier access, and that of this one.
struct Met<'a> {
    first: &'a Accessed,
    lanes: [usize; 2],
    parted: bool,
}

impl Untold {
    /// These lanes tell others what they have done.
    pub fn told(&mut self, lanes: u32) {
        self.last.retain_mut(|accessed| {
            accessed.lanes &= !lanes;
            accessed.lanes != 0
        });
    }

    /// These lanes move together from now on.
    pub fn met(&mut self, lanes: u32) {
        for accessed in self.last.iter_mut().filter(|accessed| accessed.together & lanes != 0) {
            accessed.together |= lanes;
        }
    }

    fn remember(&mut self, new: Accessed) {
        if self.last.len() == MOST {
            self.last.remove(0);
        }
        self.last.push(new);
    }

    /// The first of these accesses that meets one of another lane, behind which its own lane has stored nothing there itself.
    fn meets(&self, new: &Accessed) -> Option<Met<'_>> {
        for lane in (0..32).filter(|lane| new.lanes >> lane & 1 == 1) {
            let bytes = (new.at[lane], new.at[lane] + new.bytes);
            for first in self.last.iter().rev().filter(|first| first.cta == new.cta) {
                let own = first.writes && !first.matrix && !new.matrix && first.meets(lane, bytes);
                if own {
                    break;
                }
                let parted = first.together >> lane & 1 == 0;
                let races = if new.writes { parted } else { first.writes };
                if races && let Some(by) = first.by(bytes) {
                    return Some(Met { first, lanes: [by, lane], parted });
                }
            }
        }
        None
    }
}

impl Accessed {
    fn put(&mut self, lane: usize, at: u32) {
        self.at[lane] = at;
        self.lanes |= 1 << lane;
        (self.low, self.high) = (self.low.min(at), self.high.max(at + self.bytes));
    }

    fn meets(&self, lane: usize, (low, high): (u32, u32)) -> bool {
        self.lanes >> lane & 1 == 1 && self.at[lane] < high && low < self.at[lane] + self.bytes
    }

    /// The first lane that accessed some of these bytes.
    fn by(&self, bytes: (u32, u32)) -> Option<usize> {
        let near = self.low < bytes.1 && bytes.0 < self.high;
        near.then(|| (0..32).find(|&lane| self.meets(lane, bytes)))?
    }

    fn verb(&self) -> &'static str {
        if self.writes { "stores" } else { "loads" }
    }

    /// Who accesses what a lane names.
    fn who(&self, lane: usize) -> String {
        if self.matrix { "each lane".into() } else { format!("lane {lane}") }
    }
}

impl Cluster<'_> {
    /// Lanes load or store so many bytes each of shared memory, plainly; with `matrix`, the rows of one that all have parts of.
    pub fn check_lanes_apart(
        &mut self,
        at: At,
        targets: impl Iterator<Item = (usize, Target)>,
        bytes: u32,
        (writes, matrix): (bool, bool),
    ) {
        let At { w, f, site, .. } = at;
        let warp = &self.warps[w];
        let alone = warp.fragments.len() == 1;
        if alone && !writes && warp.untold.last.is_empty() {
            return;
        }
        let in_shared =
            |(lane, target)| if let Target::Shared(cta, at) = target { Some((lane, cta, at)) } else { None };
        let mut places = targets.filter_map(in_shared).peekable();
        let Some(&(_, cta, _)) = places.peek() else { return };
        let together = warp.fragments[f].mask;
        let (at, low, high) = ([0; 32], u32::MAX, 0);
        let mut new = Accessed { site, writes, matrix, cta, lanes: 0, together, bytes, at, low, high };
        places.filter(|place| place.1 == cta).for_each(|(lane, _, at)| new.put(lane, at));
        // A warp whose lanes move together stores in line with all that they did before.
        if !(alone && writes)
            && let Some(met) = warp.untold.meets(&new)
        {
            let diagnostic = self.lanes_without_sync(w, &met, &new);
            self.findings.add(diagnostic);
        }
        if writes || !alone {
            self.warps[w].untold.remember(new);
        }
    }

    fn lanes_without_sync(&self, w: usize, met: &Met, second: &Accessed) -> Diagnostic {
        let Met { first, lanes: [one, two], parted } = *met;
        let (earlier, later) = (first.who(one), second.who(two));
        let name = self.shared_name(second.at[two]);
        let (code, rule) = match parted {
            true => (
                "race-shared",
                "Plain accesses of two threads to the same bytes, one of them a write, race unless something orders them (PTX ISA 8.7.2). Lanes that have parted at a \
                 branch execute its sides in whatever order the GPU chooses.",
            ),
            false => (
                "missing-warp-sync",
                "Each lane is a thread: what one stores, another one loads behind bar.warp.sync, which orders the accesses of the lanes of its mask (PTX ISA 9.7.13.2). \
                 Lanes that move together find the value without it.",
            ),
        };
        let title = format!(
            "{later} of {} {} {name}, which {earlier} of it {}, and no bar.warp.sync lies between",
            self.warp_name(w),
            second.verb(),
            first.verb()
        );
        let help = match parted {
            true => "Let the lanes meet in a bar.warp.sync with all of them in its mask, between the two accesses.",
            false => "Put bar.warp.sync 0xffffffff between the two, for all lanes of the warp.",
        };
        let mut diagnostic = self.problem(code, second.site, title, rule, help.into());
        diagnostic.severity = if parted { Severity::Finding } else { Severity::Note };
        diagnostic.labels[0].text = format!("{later} {} here", second.verb());
        if first.site != second.site {
            diagnostic.labels.push(self.label(first.site, format!("{earlier} {} here", first.verb())));
        }
        diagnostic
    }
}
