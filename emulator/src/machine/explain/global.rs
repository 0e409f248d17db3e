//! Races of global memory: between warps and engines of one CTA, of a cluster, of a launch.

use super::copy::{Cure, FLAG_RULE};
use super::drafts::Draft;
use super::names::Name;
use super::{GLOBAL_RULE, PROXY_RULE};
use crate::diagnostic::Severity;
use crate::machine::cluster::Cluster;
use crate::machine::state::{ActorKind, Race};
use crate::order::{Reason, Stamp};
use crate::program::op::{Op, Space};

impl Cluster<'_> {
    pub fn explain_global(&self, race: &Race, buffer: usize) -> Draft {
        let (first, second) = (race.conflict.first, race.second);
        let b = &self.global.buffers[buffer];
        let load = [first.site, second.site].into_iter().find(|&site| self.is_non_coherent(site));
        if let Some(load) = load {
            let write = if first.site == load { second } else { first };
            return Draft::of(race, None)(
                "non-coherent-load",
                format!("{} is loaded with .nc, and the kernel writes it", b.describe(race.conflict.byte)),
                vec![self.label(load, "loaded here"), self.label(write.site, "written here")],
                "ld.global.nc takes data from a cache that no write of the kernel reaches: it is for data that nobody writes while the \
                     kernel runs, whatever orders the two (PTX ISA 9.7.9.9).",
                "Load it without .nc.".into(),
            );
        }
        if race.conflict.reason == Reason::NotFenced && !race.conflict.second_writes {
            let (reader, place) = (self.who_of_grid(second), b.describe(race.conflict.byte));
            return Draft::of(race, None)(
                    "missing-proxy-fence",
                    format!(
                        "{reader} reads {place} through the asynchronous proxy, but no proxy fence follows the stores that wrote it"
                    ),
                    vec![
                        self.label(second.site, format!("{reader} reads it here")),
                        self.label(first.site, format!("{} stores to it here, through the generic proxy", self.who_of_grid(first))),
                    ],
                    PROXY_RULE,
                    "Let every thread that stores execute fence.proxy.async.global after its stores, before the barrier or the release."
                        .into(),
            );
        }
        if let Some(draft) = self.map_in_use(race, &b.describe(race.conflict.byte)) {
            return draft;
        }
        if race.same_value {
            return self.explain_same_value(race, Name::Given(b.describe(race.conflict.byte)));
        }
        if self.reads_for_nobody(race) {
            return self.explain_read_for_nobody(race, &b.describe_element(race.conflict.byte));
        }
        // What overwrites does not see what others have read there.
        let reads = !race.conflict.first_writes;
        if race.conflict.reason == Reason::NotFenced {
            let does = if self.combines(second.site) { "adds to" } else { "overwrites" };
            let (writer, place) = (self.who_of_grid(second), b.describe(race.conflict.byte));
            let draft = Draft::of(race, None);
            let by = format!(
                "{} it here, through the generic proxy",
                self.who_of_grid(first) + if reads { " reads" } else { " stores to" }
            );
            let labels = vec![self.label(second.site, "written by this copy"), self.label(first.site, by)];
            let help = "Let every thread that accesses it execute fence.proxy.async.global before the barrier or the release that the copy's \
                        thread waits for.";
            return match reads {
                true => Draft {
                    severity: Severity::Note,
                    ..draft(
                        "missing-proxy-fence-before-overwrite",
                        format!(
                            "{writer} {does} {place} through the asynchronous proxy, but no proxy fence follows the earlier accesses"
                        ),
                        labels,
                        PROXY_RULE,
                        help.into(),
                    )
                },
                false => draft(
                    "missing-proxy-fence",
                    format!(
                        "{writer} {does} {place} through the asynchronous proxy, but no proxy fence follows the stores that wrote it"
                    ),
                    labels,
                    PROXY_RULE,
                    help.into(),
                ),
            };
        }
        let verb = |writes| if writes { "writes" } else { "reads" };
        // Who reads too early wants what the other one writes behind that.
        let (writer, reader) = if race.conflict.first_writes { (first, second) } else { (second, first) };
        let flags = self.relaxed_flags(writer, reader, false);
        let both_write = race.conflict.first_writes && race.conflict.second_writes;
        let ctas = self.ctas_of(first, second).filter(|_| both_write);
        // Nothing but a lock can order what several CTAs store to one place so that all of it is there.
        let by_several = both_write
            && first.site == second.site
            && (ctas.is_some() || first.cluster != second.cluster)
            && !self.has_a_lock();
        let ordered = || {
            if !flags.is_empty() && self.apart(first, second) {
                return Some(Cure {
                    rule: FLAG_RULE,
                    help: "Set the flag with st.release.gpu (or red.release.gpu) after the data, and read it with ld.acquire.gpu before the \
                           data; or put a fence.acq_rel.gpu before the one and after the other."
                        .into(),
                    labels: flags.clone(),
                });
            }
            self.cure_of_narrow_flags(first, second, false).or_else(|| self.cure_of_a_lonely_flag(writer, reader))
        };
        // What adds to data is strong, and yet no flag, nor is what is read behind one.
        let of_a_flag = !flags.is_empty()
            && self.combines(writer.site)
            && self.apart(first, second)
            && self.looks_at_a_flag_before(reader);
        let cure = self.cure_of_scope(race).or_else(|| if of_a_flag { ordered() } else { None });
        let cure = cure.or_else(|| self.cure_of_strength(race)).or_else(|| self.cure_of_a_plain_flag(race));
        // Of a store that is waited for, the flag behind it says more than the copy.
        let cure = cure.or_else(|| if self.is_waited_for(writer.site) && !flags.is_empty() { ordered() } else { None });
        let cure = cure.or_else(|| self.cure_of_copy(race, true).filter(|_| !by_several));
        let cure = cure.or_else(|| if by_several { None } else { ordered() }).unwrap_or_else(|| {
            let help = match ctas {
                Some(_) if by_several => "Let each element be written by one CTA: check how the address depends on the CTA's rank in its cluster.",
                None if by_several => "Let each element be written by one CTA: check how the address depends on the CTA.",
                _ if first.site == second.site => "Let each element be written by one thread: check how the address depends on thread and CTA.",
                _ => "Let each element be written by one thread, and read by others only after synchronisation.",
            };
            Cure::new(GLOBAL_RULE, help)
        });
        let place = b.describe_element(race.conflict.byte);
        Draft {
            code: "race-global",
            severity: Severity::Finding,
            title: format!(
                "{} {} {place}, {} {} it, and nothing orders the two",
                self.who_of_grid(first),
                verb(race.conflict.first_writes),
                self.who_of_grid(second),
                verb(race.conflict.second_writes)
            ),
            names: vec![],
            early: false,
            labels: cure.labels_behind([
                self.label(
                    second.site,
                    format!("{} {} it here", self.who_of_grid(second), verb(race.conflict.second_writes)),
                ),
                self.label(
                    first.site,
                    format!("{} {} it here", self.who_of_grid(first), verb(race.conflict.first_writes)),
                ),
            ]),
            rule: cure.rule,
            help: cure.help.replace("{}", &place),
            count: race.count,
        }
    }

    /// The kernel compares and swaps in global memory.
    fn has_a_lock(&self) -> bool {
        let swaps = |op: &Op| match op {
            Op::Atomic(atomic) => matches!(atomic.space, Space::Global | Space::Generic) && atomic.t.is_some(),
            _ => false,
        };
        self.kernel.code.iter().any(|inst| swaps(&inst.op))
    }

    /// The CTAs of two accesses, where they are two CTAs of this cluster.
    pub fn ctas_of(&self, first: Stamp, second: Stamp) -> Option<[usize; 2]> {
        let (first, second) = (self.cta_of(first)?, self.cta_of(second)?);
        (first != second).then_some([first, second])
    }

    /// The CTA of the warp that makes an access, or gives it to an engine.
    pub fn cta_of(&self, stamp: Stamp) -> Option<usize> {
        use ActorKind::*;
        let warp = match self.kind(stamp)? {
            Warp(w) | TensorLoads(w) | TensorStores(w) | AsyncCopies(w) => w,
            BulkReads { warp } | BulkWrites { warp } | MapReads { warp, .. } | Wgmmas { warp } | Mmas { warp, .. } => {
                warp
            }
            NonCoherent | Prerequisite | Mbarrier | ClusterBarrier | Commits => return None,
        };
        self.warps.get(warp as usize).map(|warp| warp.cta)
    }
}
