//! How messages call places, buffers, barriers and lanes.

use crate::diagnostic::{Diagnostic, Label, Place, Severity, Subject};
use crate::launch::{Region, RegionKind, RegionSpace};
use crate::machine::cluster::{Cluster, Stop};
use crate::machine::memory::parties::{thread, triple};
use crate::machine::warp::registers::lanes;
use crate::program::limits::Beyond;
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

/// Each once, in their order: warps, CTAs, statements.
pub fn distinct<T: Ord>(all: impl Iterator<Item = T>) -> Vec<T> {
    all.collect::<std::collections::BTreeSet<T>>().into_iter().collect()
}

/// Ascending numbers as spans: `0 to 31, 40`.
pub fn spans(numbers: impl Iterator<Item = u32>) -> String {
    let mut all: Vec<(u32, u32)> = Vec::new();
    for n in numbers {
        match all.last_mut() {
            Some((_, last)) if *last + 1 == n => *last = n,
            _ => all.push((n, n)),
        }
    }
    let one =
        |&(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first} to {last}") };
    all.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// How messages name a place in memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Name {
    /// By a name that the programmer gave.
    Given(String),
    /// By a byte, or a column of tensor memory.
    Nameless(Unnamed, u32),
}

/// A memory of whose places some have no name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unnamed {
    Shared,
    DynamicShared,
    Tensor,
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Name::Given(name) => f.write_str(name),
            Name::Nameless(Unnamed::Shared, at) => write!(f, "shared memory at offset {at:#x}"),
            Name::Nameless(Unnamed::DynamicShared, at) => write!(f, "dynamic shared memory at byte {at}"),
            Name::Nameless(Unnamed::Tensor, at) => write!(f, "tensor memory column {at}"),
        }
    }
}

/// Several places in one phrase: those without a name by the first and the last of them.
pub fn listed(names: &[Name]) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut told: Vec<Unnamed> = Vec::new();
    for name in names {
        let &Name::Nameless(memory, at) = name else {
            texts.push(name.to_string());
            continue;
        };
        if told.contains(&memory) {
            continue;
        }
        told.push(memory);
        let all = names.iter().filter_map(|other| match other {
            Name::Nameless(of, at) if *of == memory => Some(*at),
            _ => None,
        });
        let (count, first, last) = all.fold((0, at, at), |(n, first, last), at| (n + 1, at.min(first), at.max(last)));
        texts.push(match memory {
            _ if count == 1 => name.to_string(),
            Unnamed::Shared => format!("shared memory at {count} places from offset {first:#x} to {last:#x}"),
            Unnamed::DynamicShared => {
                format!("dynamic shared memory at {count} places from byte {first} to byte {last}")
            }
            Unnamed::Tensor => format!("tensor memory at {count} columns from column {first} to column {last}"),
        });
    }
    match texts.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [a, b, c, rest @ ..] if rest.len() > 1 => format!("{a}, {b}, {c} and {} more", rest.len()),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
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

    /// An operand holds a number that the instruction does not take.
    pub fn beyond(&self, site: u32, beyond: Beyond) -> Stop {
        Some(Box::new(self.problem(beyond.code, site, beyond.title, beyond.rule, beyond.help)))
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

    /// What tells an mbarrier from others.
    pub fn subject(&self, barrier: u32) -> Subject {
        let b = &self.barriers[barrier as usize];
        Subject::Mbarrier { cta: b.cta, offset: b.offset }
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
        self.shared_place(offset).to_string()
    }

    /// The same, of which several can be told together.
    pub fn shared_place(&self, offset: u32) -> Name {
        if let Some(dynamic) = offset.checked_sub(self.kernel.dynamic_start) {
            let Some(region) = self.region_of(dynamic) else { return Name::Nameless(Unnamed::DynamicShared, dynamic) };
            let stage = region.stage.map_or(String::new(), |s| format!("[{s}]"));
            return Name::Given(format!("`{}{stage}`", region.name));
        }
        match self.variable_at(offset) {
            Some(v) => Name::Given(format!("`{}`", v.name)),
            None => Name::Nameless(Unnamed::Shared, offset),
        }
    }

    /// The region of a byte of dynamic shared memory.
    fn region_of(&self, dynamic: u32) -> Option<&Region> {
        let holds = |r: &&Region| {
            r.space == RegionSpace::DynamicShared && dynamic.checked_sub(r.offset).is_some_and(|d| d < r.bytes)
        };
        self.launch.regions.iter().find(holds)
    }

    /// The variable that holds a byte of static shared memory.
    fn variable_at(&self, offset: u32) -> Option<&crate::program::SharedVariable> {
        self.kernel.shared.iter().find(|v| offset.checked_sub(v.offset).is_some_and(|d| d < v.bytes))
    }

    /// Where that variable begins, and how many bytes it has.
    pub fn variable_of(&self, offset: u32) -> Option<(u32, u32)> {
        self.variable_at(offset).map(|v| (v.offset, v.bytes))
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
        self.tensor_place(column).to_string()
    }

    /// The same, of which several can be told together.
    pub fn tensor_place(&self, column: u32) -> Name {
        let region = self
            .launch
            .regions
            .iter()
            .find(|r| r.space == RegionSpace::Tensor && column.checked_sub(r.offset).is_some_and(|d| d < r.bytes));
        match region {
            Some(region) => Name::Given(format!("`{}`", region.name)),
            None => Name::Nameless(Unnamed::Tensor, column),
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What has no name is told by its first and last place, however many there are, and takes the place of one name.
    #[test]
    fn places_without_a_name_are_told_together() {
        let given = |name: &str| Name::Given(name.into());
        let bytes = |at| Name::Nameless(Unnamed::DynamicShared, at);
        for (names, says) in [
            (vec![], ""),
            (vec![bytes(64)], "dynamic shared memory at byte 64"),
            (vec![bytes(64), bytes(16), bytes(48)], "dynamic shared memory at 3 places from byte 16 to byte 64"),
            (
                vec![given("a"), bytes(64), given("b"), bytes(16)],
                "a, dynamic shared memory at 2 places from byte 16 to byte 64 and b",
            ),
            (["a", "b", "c", "d", "e"].map(given).to_vec(), "a, b, c and 2 more"),
            (
                [4, 5].map(|at| Name::Nameless(Unnamed::Tensor, at)).to_vec(),
                "tensor memory at 2 columns from column 4 to column 5",
            ),
        ] {
            assert_eq!(listed(&names), says);
        }
    }
}
