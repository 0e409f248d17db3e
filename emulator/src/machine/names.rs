//! How messages call places, buffers, barriers and lanes.

use super::cluster::Cluster;
use super::parties::{thread, triple};
use super::registers::lanes;
use crate::diagnostic::{Diagnostic, Label, Place, Severity};
use crate::launch::{Region, RegionKind, RegionSpace};
use crate::program::op::Reg;
use crate::report::Barrier;

/// `1 arrival`, `2 arrivals`.
pub fn counted(n: impl Into<u64>, what: &str) -> String {
    match n.into() {
        1 => format!("1 {what}"),
        n => format!("{n} {what}s"),
    }
}

/// `1 arrival is`, `2 arrivals are`.
pub fn counted_are(n: impl Into<u64>, what: &str) -> String {
    let n = n.into();
    counted(n, what) + if n == 1 { " is" } else { " are" }
}

impl Cluster<'_> {
    /// The statement that a fragment executes.
    pub fn site(&self, w: usize, f: usize) -> u32 {
        let pc = self.warps[w].fragments.get(f).map_or(0, |fragment| fragment.pc as usize);
        self.kernel.code.get(pc).map_or(0, |inst| inst.site)
    }

    pub fn place(&self, site: u32) -> Place {
        self.kernel.sites.get(site as usize).cloned().unwrap_or_default()
    }

    /// What a statement calls a register; `None`: it does not name it.
    pub fn register_name(&self, site: u32, reg: Reg) -> Option<&str> {
        let text = self.place(site).text;
        let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || "_$%".contains(c)));
        let named = |word: &str| self.kernel.names.iter().find(|(of, name)| *of == reg && name == word);
        words.find_map(|word| named(word).map(|(_, name)| name.as_str()))
    }

    pub fn label(&self, site: u32, text: impl Into<String>) -> Label {
        Label::new(self.place(site), text)
    }

    /// An error with one place.
    pub fn problem(&self, code: &'static str, site: u32, title: String, rule: &str, help: String) -> Diagnostic {
        Diagnostic {
            code,
            severity: Severity::Error,
            title,
            labels: vec![self.label(site, "here")],
            rule: rule.into(),
            help,
            count: 1,
            confirmed: None,
        }
    }

    /// Bytes from the start of dynamic shared memory, as events and regions count them.
    pub fn dynamic_offset(&self, offset: u32) -> i32 {
        offset.wrapping_sub(self.kernel.dynamic_start) as i32
    }

    pub fn barrier_name(&self, barrier: u32) -> String {
        let b = &self.barriers[barrier as usize];
        let name = self.name_of_barrier_at(b.offset);
        if self.ctas.len() > 1 { format!("{name} of CTA {}", b.cta) } else { name }
    }

    /// The name of its variable or region, and where in it the mbarrier lies if there are several.
    pub fn name_of_barrier_at(&self, offset: u32) -> String {
        let name = self.shared_name(offset);
        let variable = self.kernel.shared.iter().find(|v| offset.checked_sub(v.offset).is_some_and(|d| d < v.bytes));
        let Some(v) = variable.filter(|_| offset < self.kernel.dynamic_start) else { return name };
        let inside = |at: u32| at != offset && at.checked_sub(v.offset).is_some_and(|d| d < v.bytes);
        match self.barriers.iter().any(|b| inside(b.offset)) {
            true => format!("{name} at byte {}", offset - v.offset),
            false => name,
        }
    }

    pub fn barrier_id(&self, barrier: u32) -> Barrier {
        let b = &self.barriers[barrier as usize];
        Barrier { cta: self.cta_index(b.cta), offset: self.dynamic_offset(b.offset) }
    }

    /// How messages name a byte of shared memory: by its region or variable.
    pub fn shared_name(&self, offset: u32) -> String {
        if let Some(dynamic) = offset.checked_sub(self.kernel.dynamic_start) {
            if let Some(region) = self.region_of(dynamic) {
                let stage = region.stage.map_or(String::new(), |s| format!("[{s}]"));
                return format!("`{}{stage}`", region.name);
            }
            return format!("dynamic shared memory at byte {dynamic}");
        }
        let variable = self.kernel.shared.iter().find(|v| offset.checked_sub(v.offset).is_some_and(|d| d < v.bytes));
        match variable {
            Some(v) => format!("`{}`", v.name),
            None => format!("shared memory at offset {offset:#x}"),
        }
    }

    /// The region of a byte of dynamic shared memory.
    fn region_of(&self, dynamic: u32) -> Option<&Region> {
        let holds = |r: &&Region| {
            r.space == RegionSpace::DynamicShared && dynamic.checked_sub(r.offset).is_some_and(|d| d < r.bytes)
        };
        self.launch.regions.iter().find(holds)
    }

    /// Where the buffer begins that holds a byte of shared memory, and how many bytes it has.
    pub fn buffer_of(&self, offset: u32) -> Option<(u32, u32)> {
        let region = self.region_of(offset.checked_sub(self.kernel.dynamic_start)?)?;
        Some((self.kernel.dynamic_start + region.offset, region.bytes))
    }

    /// Like [`Cluster::shared_name`], with row and column if it is a tile.
    pub fn shared_name_exact(&self, offset: u32) -> String {
        let name = self.shared_name(offset);
        let Some(dynamic) = offset.checked_sub(self.kernel.dynamic_start) else { return name };
        for r in &self.launch.regions {
            let Some(at) = dynamic.checked_sub(r.offset).filter(|&d| d < r.bytes) else { continue };
            if let (RegionSpace::DynamicShared, RegionKind::Tile { columns, element_bytes, .. }) = (r.space, r.kind)
                && let Some(row) = at.checked_div(columns.saturating_mul(element_bytes))
            {
                return format!("{name} (row {row})");
            }
        }
        name
    }

    /// How messages name a column of tensor memory.
    pub fn tensor_name(&self, column: u32) -> String {
        let region = self
            .launch
            .regions
            .iter()
            .find(|r| r.space == RegionSpace::Tensor && column.checked_sub(r.offset).is_some_and(|d| d < r.bytes));
        match region {
            Some(region) => format!("`{}`", region.name),
            None => format!("tensor memory column {column}"),
        }
    }

    /// The lanes of a mask, for messages.
    pub fn lanes_text(mask: u32) -> String {
        match mask.count_ones() {
            0 => "no lane".into(),
            1 => format!("only lane {}", lanes(mask).next().unwrap_or(0)),
            n => counted(n, "lane"),
        }
    }

    /// How messages name the thread of a lane: as its special registers do.
    pub fn thread_name(&self, w: usize, lane: usize) -> String {
        let warp = &self.warps[w];
        let thread = thread(self.launch.block, warp.index * 32 + lane as u32);
        format!("thread {} of CTA {}", triple(thread), triple(self.ctas[warp.cta].id))
    }

    /// How messages name a warp: by its number in its CTA.
    pub fn warp_name(&self, w: usize) -> String {
        let warp = &self.warps[w];
        if self.ctas.len() > 1 {
            format!("warp {} of CTA {}", warp.index, warp.cta)
        } else {
            format!("warp {}", warp.index)
        }
    }
}
