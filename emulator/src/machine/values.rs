//! Clusters that compute no values ([`Values::OfClusters`]): blank ones.
//!
//! A blank cluster checks and counts everything that a full run does. It also knows which bytes and registers hold defined values,
//! but what the TMA engine brings to shared memory and what the tensor core computes are marks only. Where such a value is
//! stored, the bytes are marked as blank; where one decides something, the report says that the run is incomplete. Two stores that
//! race are never taken to store the same value if one of the values is not there.

use crate::Values;
use crate::machine::cluster::Cluster;
use crate::machine::memory::Runs;
use crate::program::Kernel;
use crate::program::flow::dependence::Dependence;
use std::sync::{Arc, Mutex, PoisonError};

/// What depends on values that are not there, for each set of loads that bring such: clusters mostly agree.
#[derive(Debug, Default)]
pub struct Dependences(Mutex<Vec<(Vec<u32>, Arc<Dependence>)>>);

impl Dependences {
    fn of(&self, kernel: &Kernel, sources: &[u32]) -> Arc<Dependence> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, dependence)) = known.iter().find(|(of, _)| of == sources) {
            return dependence.clone();
        }
        let dependence = Arc::new(Dependence::of(kernel, sources));
        known.push((sources.to_vec(), dependence.clone()));
        dependence
    }
}

/// What a blank cluster knows of the values that it does not have.
#[derive(Debug)]
pub struct Blank<'a> {
    dependences: &'a Dependences,
    /// Statements that have loaded blank bytes, in order.
    sources: Vec<u32>,
    dependence: Arc<Dependence>,
}

impl<'a> Blank<'a> {
    pub fn new(kernel: &Kernel, dependences: &'a Dependences) -> Blank<'a> {
        Blank { dependences, sources: vec![], dependence: dependences.of(kernel, &[]) }
    }
}

impl Values {
    /// Whether a cluster computes values.
    pub fn include(&self, cluster: u32) -> bool {
        match self {
            Values::All => true,
            Values::OfClusters(list) => list.contains(&cluster),
        }
    }
}

impl Cluster<'_> {
    /// Whether it computes no values.
    pub fn is_blank(&self) -> bool {
        self.blank.is_some()
    }

    /// Whether a statement may store a value that was not computed.
    pub fn stores_blank(&self, site: u32) -> bool {
        self.blank.as_ref().is_some_and(|blank| blank.dependence.stores(site))
    }

    /// A statement has loaded blank bytes into registers.
    pub fn loaded_blank(&mut self, site: u32) {
        let kernel = self.kernel;
        let Some(blank) = &mut self.blank else {
            self.read_blank.get_or_insert(site);
            return;
        };
        if let Err(at) = blank.sources.binary_search(&site) {
            blank.sources.insert(at, site);
            blank.dependence = blank.dependences.of(kernel, &blank.sources);
        }
    }

    /// A cluster that computes values reads bytes of global memory, which may be blank.
    pub fn reads_values(&mut self, runs: Runs, site: u32) {
        let memory = &self.global.buffers[runs.buffer].memory;
        let blank = !self.is_blank() && memory.has_blanks();
        if blank && runs.starts().any(|at| memory.any_blank(at as usize, runs.bytes as usize)) {
            self.read_blank.get_or_insert(site);
        }
    }

    /// Why [`crate::Options::tensor_load_factor`] was not applied everywhere.
    pub fn what_factor_misses(&self) -> Option<String> {
        self.factor_fails.map(|(site, why)| {
            let place = self.place(site);
            format!("the factor of `tcgen05.ld` cannot be applied to `{}` (line {}): {why}", place.text, place.line)
        })
    }

    /// Why its values, or in a blank cluster what it does, are not those of a full run.
    pub fn what_is_missing(&self) -> Option<String> {
        let place = |site| {
            let place = self.place(site);
            format!("`{}` (line {})", place.text, place.line)
        };
        match &self.blank {
            None => self.read_blank.map(|site| {
                format!(
                    "values were computed of some clusters only, and one of them reads at {} what another one wrote without \
                     computing it",
                    place(site)
                )
            }),
            Some(blank) => blank.dependence.control.map(|site| {
                format!(
                    "values were computed of some clusters only, but {} depends on them: what the others did there is unknown",
                    place(site)
                )
            }),
        }
    }
}
