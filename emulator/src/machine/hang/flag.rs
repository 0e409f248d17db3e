//! Who could change a flag in global memory that somebody polls: the statements that write to its buffer, as far as their addresses are known.

use crate::diagnostic::Diagnostic;
use crate::machine::cluster::Cluster;
use crate::program::op::{Op, Reg, Space};

/// Statements that are named, and how far an address is followed back.
const MOST: usize = 2;
const DEPTH: usize = 16;

impl Cluster<'_> {
    /// Names them, or says that there are none.
    pub fn tell_who_could_change_it(&self, look: u32, (buffer, offset): (usize, u64), d: &mut Diagnostic) {
        let code = &self.kernel.code;
        let (mut found, mut beside, mut unknown) = (vec![], vec![], false);
        for (at, inst) in code.iter().enumerate().filter(|(_, inst)| inst.site != look) {
            let (space, address, strong) = match &inst.op {
                Op::Store(op) => (op.space, &op.address, op.sync.is_some()),
                Op::Atomic(op) => (op.space, &op.address, true),
                // Engines, and what shows other addresses: nothing is known of where they write.
                Op::Tma(_) | Op::MapPublish { .. } => {
                    unknown = true;
                    continue;
                }
                _ => continue,
            };
            if !matches!(space, Space::Global | Space::Generic) {
                continue;
            }
            match self.leads_to_buffer(at, address.base, DEPTH) {
                None => unknown = true,
                Some((b, _)) if b != buffer => {}
                Some((_, Some(from))) => match from.wrapping_add(address.offset as u64) {
                    at if at == offset => found.push((inst.site, true)),
                    at if strong => beside.push((inst.site, at)),
                    _ => {}
                },
                Some((_, None)) => found.push((inst.site, false)),
            }
        }
        found.dedup();
        // A flag that is set somewhere else in the buffer says more than what may write anywhere in it.
        let astray = beside.first().filter(|_| !unknown && found.iter().all(|&(_, there)| !there));
        if let Some(&(site, at)) = astray {
            let place = self.global.buffers[buffer].describe(at);
            d.labels.push(self.label(site, format!("this accesses {place}, and not what is read there")));
        }
        d.labels.extend(found.iter().take(MOST).map(|&(site, _)| self.label(site, "this could change it")));
        if found.is_empty() && !unknown {
            d.help += &format!(
                " No statement of the kernel writes there, to {}.",
                self.global.buffers[buffer].describe(offset)
            );
        }
    }

    /// The buffer that a parameter points to from which an address is made, and where there, if nothing is added to it.
    fn leads_to_buffer(&self, at: usize, reg: Reg, depth: usize) -> Option<(usize, Option<u64>)> {
        let at = self.kernel.writers().last(at, reg)?;
        let inst = self.kernel.code.get(at).filter(|_| depth > 0)?;
        if let Op::Load(load) = &inst.op {
            let named = load.space == Space::Param && load.address.base == Reg::Sink;
            let from = usize::try_from(load.address.offset).ok().filter(|_| named)?;
            let bytes = self.params.get(from..from + 8)?.try_into().ok()?;
            return self.global.find(u64::from_le_bytes(bytes), 1).map(|(buffer, offset)| (buffer, Some(offset)));
        }
        let wide = inst.uses.iter().copied().filter(|reg| inst.facts.plain && matches!(reg, Reg::B64(_)));
        let (buffer, offset) = wide.into_iter().find_map(|reg| self.leads_to_buffer(at, reg, depth - 1))?;
        let as_it_is = matches!(inst.op, Op::Cvta { .. }) || inst.uses.len() == 1;
        Some((buffer, offset.filter(|_| as_it_is)))
    }
}
