//! Kernels whose waits tell what they wait for: for a GPU, where a hang says nothing.
//!
//! [`telling`] rewrites PTX text: a wait at an mbarrier that has been tried very often writes, once, which wait it is,
//! at which mbarrier, for which parity, to a record of its own thread in memory that the host can read while the kernel
//! runs. Then it goes on waiting. [`told`] reads the records. What the mbarrier lacks stays unknown: its bits are opaque
//! (PTX ISA 9.7.13.15), and the emulator knows.

use crate::source::{Built, Place};
use ptx::{Region, RegionKind};
use std::collections::BTreeMap;
use std::fmt;

/// Bytes of a thread's record.
pub const RECORD: usize = 16;
/// Tries before a wait tells. Each suspends the thread for a while, so that these take well below a second.
const TRIES: u32 = 1 << 16;
/// The parameter that is added: the address of the records.
const PARAM: &str = "workbook_waits";

/// A kernel that tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// The PTX. The kernel has one more parameter, the last: the address of the records, 64 bits.
    pub ptx: String,
    /// The lines of the original PTX at which its waits stand, from 1.
    waits: Vec<u32>,
    /// Lines with waits of another form, which do not tell.
    pub silent: Vec<u32>,
}

/// Rewrites a kernel. Waits are loops of a `mbarrier.try_wait.parity` and a `bra` back while it says no, as the builder
/// writes them.
///
/// # Errors
/// When the text has no entry of this name with a parameter list and a body.
pub fn telling(ptx: &str, entry: &str) -> Result<Telling, String> {
    let missing = |what: &str| format!("the PTX has no {what} of `.entry {entry}`");
    let lines: Vec<&str> = ptx.lines().collect();
    let head = lines
        .iter()
        .position(|line| line.trim_start().starts_with(".visible .entry") && line.contains(&format!(" {entry}(")))
        .ok_or_else(|| missing("head"))?;
    let close = (head..lines.len()).find(|&at| lines[at].trim() == ")").ok_or_else(|| missing("parameter list"))?;
    let open = (close..lines.len()).find(|&at| lines[at].trim() == "{").ok_or_else(|| missing("body"))?;
    let waits: Vec<Wait<'_>> = (open..lines.len()).filter_map(|at| Wait::at(&lines, at)).collect();
    let polls = |line: &str| line.contains("mbarrier.try_wait") || line.contains("mbarrier.test_wait");
    let other = |at: &usize| polls(lines[*at]) && !waits.iter().any(|wait| wait.line == *at);
    let mut text = String::with_capacity(ptx.len() * 2);
    for (at, line) in lines.iter().enumerate() {
        if waits.iter().any(|wait| wait.label == at) {
            text += "    mov.u32 %tell0, 0;\n";
        }
        if waits.iter().any(|wait| wait.line + 1 == at) {
            // The `bra` back: there is another one in its place.
            continue;
        }
        text += line;
        if at + 1 == close {
            // The last parameter, or the head if there is none.
            let comma = if at == head || line.trim().is_empty() { "" } else { "," };
            text += &format!("{comma}\n    .param .u64 {PARAM}");
        }
        text.push('\n');
        if at == open {
            text += "    .reg .b32 %tell<7>;\n    .reg .b64 %telld<2>;\n    .reg .pred %tellp<2>;\n";
        }
        if let Some(number) = waits.iter().position(|wait| wait.line == at) {
            text += &waits[number].telling(number + 1);
        }
    }
    let number = |at: usize| at as u32 + 1;
    Ok(Telling {
        ptx: text,
        silent: (0..lines.len()).filter(other).map(number).collect(),
        waits: waits.iter().map(|wait| number(wait.line)).collect(),
    })
}

/// A wait of the form that can be rewritten.
struct Wait<'a> {
    /// The line of its label.
    label: usize,
    /// That of its `try_wait`.
    line: usize,
    name: &'a str,
    done: &'a str,
    address: &'a str,
    parity: &'a str,
}

impl<'a> Wait<'a> {
    /// The wait whose `try_wait` stands on this line, followed by the `bra`, with nothing but a `.loc` above it up to
    /// the label.
    fn at(lines: &[&'a str], at: usize) -> Option<Wait<'a>> {
        let operands = lines[at].trim().strip_prefix("mbarrier.try_wait.parity.shared::cta.b64 ")?.strip_suffix(';')?;
        let (done, rest) = operands.split_once(", ")?;
        let (address, parity) = rest.split_once(", ")?;
        let name = lines.get(at + 1)?.trim().strip_prefix(&format!("@!{done} bra "))?.strip_suffix(';')?;
        let mut label = at.checked_sub(1)?;
        while lines[label].trim().starts_with(".loc ") {
            label = label.checked_sub(1)?;
        }
        (lines[label].trim() == format!("{name}:")).then_some(Wait { label, line: at, name, done, address, parity })
    }

    /// What follows the `try_wait` in place of the `bra`; records are numbered from 1.
    fn telling(&self, record: usize) -> String {
        let Wait { name, done, address, parity, .. } = self;
        format!(
            "\
    @{done} bra $told_{record};
    add.u32 %tell0, %tell0, 1;
    setp.ne.u32 %tellp1, %tell0, {TRIES};
    @%tellp1 bra {name};
    mov.u32 %tell1, %ctaid.y;
    mov.u32 %tell2, %nctaid.x;
    mov.u32 %tell3, %ctaid.x;
    mad.lo.u32 %tell1, %tell1, %tell2, %tell3;
    mov.u32 %tell2, %ntid.x;
    mov.u32 %tell3, %tid.x;
    mad.lo.u32 %tell1, %tell1, %tell2, %tell3;
    ld.param.u64 %telld1, [{PARAM}];
    mad.wide.u32 %telld1, %tell1, {RECORD}, %telld1;
    mov.u32 %tell4, {where_is};
    mov.u32 %tell5, dynamic_shared;
    sub.u32 %tell4, %tell4, %tell5;
    mov.u32 %tell6, {parity};
    st.volatile.global.u32 [%telld1+8], %tell6;
    st.volatile.global.u32 [%telld1+4], %tell4;
    fence.acq_rel.sys;
    st.volatile.global.u32 [%telld1], {record};
    bra {name};
$told_{record}:
",
            where_is = address.trim_matches(['[', ']']),
        )
    }
}

/// A thread that waits, and for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told {
    /// The CTA, counted through x first.
    pub cta: u32,
    /// The thread in it.
    pub thread: u32,
    /// The line of PTX of the wait, from 1.
    pub line: u32,
    /// Where the mbarrier lies in dynamic shared memory.
    pub offset: u32,
    /// The parity that is waited for.
    pub parity: u32,
}

/// Reads the records of a launch with so many threads in a CTA.
pub fn told(telling: &Telling, records: &[u8], threads: u32) -> Vec<Told> {
    let (records, _) = records.as_chunks::<RECORD>();
    let mut all = Vec::new();
    for (index, record) in (0..).zip(records) {
        let word = |at: usize| u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]]);
        let line = (word(0) as usize).checked_sub(1).and_then(|wait| telling.waits.get(wait));
        if let Some(&line) = line {
            let (cta, thread) = (index / threads.max(1), index % threads.max(1));
            all.push(Told { cta, thread, line, offset: word(4), parity: word(8) });
        }
    }
    all
}

/// What the threads said, a line for each wait of each CTA, the first CTAs only.
pub fn summary(told: &[Told], built: &Built) -> String {
    const CTAS: usize = 2;
    let mut ctas: Vec<u32> = told.iter().map(|one| one.cta).collect();
    ctas.dedup();
    let mut text = String::new();
    for cta in ctas.iter().take(CTAS) {
        let mut waits: BTreeMap<(u32, u32, u32), Vec<&Told>> = BTreeMap::new();
        for one in told.iter().filter(|one| one.cta == *cta) {
            waits.entry((one.line, one.offset, one.parity)).or_default().push(one);
        }
        for ((line, offset, parity), threads) in waits {
            let mut warps: Vec<String> = threads.iter().map(|one| (one.thread / 32).to_string()).collect();
            warps.dedup();
            let whose = if warps.len() == 1 { "warp" } else { "warps" };
            text += &format!(
                "  CTA {cta}, {whose} {}: {} waits for phase parity {parity} of {}\n",
                warps.join(", "),
                place(built, line).map_or(format!("PTX:{line}"), |place| place.to_string()),
                barrier(built, offset)
            );
        }
    }
    if ctas.len() > CTAS {
        text += &format!("  {} more CTAs wait\n", ctas.len() - CTAS);
    }
    text
}

/// The Rust line that wrote a line of PTX: that of the `.loc` in force.
fn place(built: &Built, line: u32) -> Option<Place> {
    crate::ptxas::source(&built.ptx, line)
}

/// The name of the mbarrier there.
fn barrier(built: &Built, offset: u32) -> impl fmt::Display {
    let here = |region: &&Region| region.kind == RegionKind::Barrier && region.offset == offset;
    match built.regions.iter().find(here) {
        Some(Region { name, stage: Some(stage), .. }) => format!("`{name}[{stage}]`"),
        Some(Region { name, .. }) => format!("`{name}`"),
        None => format!("the mbarrier at byte {offset} of dynamic shared memory"),
    }
}

#[cfg(all(test, feature = "solutions"))]
mod tests {
    use super::*;
    use crate::ptxas::{self, Failure};
    use crate::{InProcess, KernelSource, Problem};
    use expect_test::expect;

    fn built(kernel: ptx::KernelFn) -> Built {
        InProcess(kernel).build(&Problem::f16(512, 512, 192), 4).expect("it builds")
    }

    /// Every wait of every solution is rewritten, and ptxas takes the text.
    #[test]
    fn all_solutions_tell_and_assemble() {
        let kernels = solutions::ALL.iter().filter(|(step, _)| *step > 2).map(|(_, kernel)| *kernel);
        for kernel in kernels.chain([solutions::hopper::kernel as ptx::KernelFn]) {
            let built = built(kernel);
            let telling = telling(&built.ptx, &built.name).expect("a kernel of the builder");
            let waits = built.ptx.matches("mbarrier.try_wait").count();
            assert_eq!((telling.waits.len(), &telling.silent), (waits, &vec![]), "{}", built.name);
            for line in &telling.waits {
                assert!(place(&built, *line).is_some(), "{line}");
            }
            match ptxas::assemble(&telling.ptx) {
                Ok(_) | Err(Failure::Unavailable(_)) => {}
                Err(failure) => panic!("{}: {failure:?}\n{}", built.name, telling.ptx),
            }
        }
    }

    #[test]
    fn waits_of_another_form_are_named() {
        let ptx = ".visible .entry k(\n)\n{\n$a:\n    mbarrier.try_wait.shared.b64 %p1, [%r1], %rd1;\n    @!%p1 bra $a;\n    ret;\n}\n";
        let telling = telling(ptx, "k").expect("an entry");
        assert_eq!((telling.waits, telling.silent), (vec![], vec![5]));
        assert!(telling.ptx.contains(&format!("k(\n    .param .u64 {PARAM}\n)")), "{}", telling.ptx);
        assert_eq!(super::telling(ptx, "other").unwrap_err(), "the PTX has no head of `.entry other`");
    }

    #[test]
    fn records_are_told() {
        let built = built(solutions::hopper::kernel);
        let telling = telling(&built.ptx, &built.name).expect("a kernel of the builder");
        let full = built.regions.iter().find(|region| region.name == "full").expect("a barrier").offset;
        let threads = built.block[0];
        let mut records = vec![0; 4 * threads as usize * RECORD];
        for (slot, wait) in [(0, 2u32), (32, 2), (threads + 256, 1), (2 * threads, 2), (3 * threads, 2)] {
            let at = slot as usize * RECORD;
            for (field, value) in [(0, wait), (4, full + 8), (8, 1)] {
                records[at + field..at + field + 4].copy_from_slice(&value.to_le_bytes());
            }
        }
        let told = told(&telling, &records, threads);
        assert_eq!(told.len(), 5);
        expect![[r#"
            told:
              CTA 0, warps 0, 1: solutions/src/hopper.rs:108 waits for phase parity 1 of `full[1]`
              CTA 1, warp 8: solutions/src/hopper.rs:80 waits for phase parity 1 of `full[1]`
              2 more CTAs wait
        "#]]
        .assert_eq(&format!("told:\n{}", summary(&told, &built)));
    }
}
