//! Numbers that an instruction does not take: told of a constant when the text is loaded, and of what a register holds when it is executed. Names are
//! put into words for those alone that are told.

use crate::machine::counted;

/// Why a number is not taken.
#[derive(Debug)]
pub struct Beyond {
    pub code: &'static str,
    pub title: String,
    pub rule: &'static str,
    pub help: String,
}

/// Arrivals that an mbarrier counts at most, and bytes that it is in want of.
pub const MBARRIER: u32 = (1 << 20) - 1;

/// Bytes of a plain bulk copy at most: its mbarrier counts no more of them.
const BULK: i64 = MBARRIER as i64 & !15;

/// What a plain bulk copy moves.
pub const BULK_RULE: &str = "A plain bulk copy moves a multiple of 16 bytes between addresses that are multiples of 16 (PTX ISA, cp.async.bulk).";

/// What a wait by parity takes.
pub const PARITY: &str = "The parity operand is 0 or 1 (PTX ISA 9.7.13.15.16).";

const NAMED: &str = "A CTA has barriers 0 to 15, and a thread count is a multiple of 32 (PTX ISA 9.7.13.1).";

/// What a CTA barrier is called.
pub fn barrier_number(id: i64) -> Option<Beyond> {
    (!(0..=15).contains(&id)).then(|| Beyond {
        code: "named-barrier",
        title: format!("there is no barrier {id}"),
        rule: NAMED,
        help: format!("Use a barrier number from 0 to 15 in the place of {id}."),
    })
}

/// For how many threads a CTA barrier waits. `barrier`: what it is called.
pub fn barrier_threads(barrier: impl FnOnce() -> String, count: i64) -> Option<Beyond> {
    let taken = (32..=1024).contains(&count) && count % 32 == 0;
    (!taken).then(|| {
        let near = (count.clamp(32, 1024) as u32).next_multiple_of(32);
        Beyond {
            code: "named-barrier",
            title: format!("{} cannot wait for that many threads, {}", barrier(), signed(count, "thread")),
            rule: NAMED,
            help: format!(
                "The count is one of threads, in whole warps: 32, 64 and so on up to 1024, such as {near} in the place of {count}."
            ),
        }
    })
}

/// Columns that `tcgen05.alloc` and `.dealloc` take.
pub fn columns(frees: bool, columns: i64) -> Option<Beyond> {
    let taken = (32..=512).contains(&columns) && columns.count_ones() == 1;
    (!taken).then(|| Beyond {
        code: "tensor-columns",
        title: match frees {
            true => format!("tcgen05.dealloc frees {} of tensor memory", signed(columns, "column")),
            false => format!("tcgen05.alloc asks for {} of tensor memory", signed(columns, "column")),
        },
        rule: "The number of columns is a power of two from 32 to 512 (PTX ISA 9.7.16.7.1).",
        help: match frees {
            true => "Free as many columns as were allocated together.".into(),
            false => "Round up to the next power of two, 32 at least.".into(),
        },
    })
}

/// For how many arrivals an mbarrier of this name is initialised.
pub fn initial_count(name: impl FnOnce() -> String, count: i64) -> Option<Beyond> {
    (!(1..=i64::from(MBARRIER)).contains(&count)).then(|| Beyond {
        code: "mbarrier-count",
        title: format!("{} is initialised for {}", name(), signed(count, "arrival")),
        rule: "The count of an mbarrier is 1 to 1,048,575 (PTX ISA 9.7.13.15.2).",
        help: "Give the number of arrivals that complete a phase.".into(),
    })
}

/// How many arrivals are one at an mbarrier of this name.
pub fn arrivals(name: impl FnOnce() -> String, count: i64) -> Option<Beyond> {
    (!(1..=i64::from(MBARRIER)).contains(&count)).then(|| Beyond {
        code: "mbarrier-count",
        title: format!("{} at {}", signed(count, "arrival"), name()),
        rule: "The count of an arrival lies in the range of an mbarrier's counts, up to 1,048,575 (PTX ISA 9.7.13.15.13); none is no arrival.",
        help: "Give the number of arrivals, or leave it out for one.".into(),
    })
}

/// For which parity is waited.
pub fn parity(parity: i64) -> Option<Beyond> {
    (!(0..=1).contains(&parity)).then(|| Beyond {
        code: "mbarrier-parity",
        title: format!("the parity waited for is {parity}"),
        rule: PARITY,
        help: "The parity of phase n is n mod 2.".into(),
    })
}

/// Bytes of a plain bulk copy.
pub fn bulk_bytes(bytes: i64) -> Option<Beyond> {
    (bytes <= 0 || bytes % 16 != 0).then(|| bulk(bytes, "Copy a positive multiple of 16 bytes."))
}

/// The same of a constant: none may be meant, and there is a most that an mbarrier can count.
pub fn constant_bulk_bytes(bytes: i64) -> Option<Beyond> {
    let too_many = || (bytes > BULK).then(|| bulk(bytes, "Copy it in pieces of 1,048,560 bytes at most."));
    bulk_bytes(bytes).filter(|_| bytes != 0).or_else(too_many)
}

fn bulk(bytes: i64, help: &str) -> Beyond {
    Beyond {
        code: "bulk-size",
        title: format!("a bulk copy of {}", signed(bytes, "byte")),
        rule: BULK_RULE,
        help: help.into(),
    }
}

/// Bytes that a `cp.async` takes of those that it copies.
pub fn source_bytes(who: impl FnOnce() -> String, copies: u32, takes: i64) -> Option<Beyond> {
    (!(0..=i64::from(copies)).contains(&takes)).then(|| Beyond {
        code: "bulk-size",
        title: format!("{} would take {} of the {copies} that its cp.async copies", who(), signed(takes, "byte")),
        rule: "What src-size says must not be more than cp-size; the bytes between become zeros (PTX ISA, cp.async).",
        help: format!(
            "Give a src-size of 0 to {copies} bytes: it counts bytes, not elements, and a row that has more left takes {copies}."
        ),
    })
}

/// A constant may be below zero.
fn signed(n: i64, what: &str) -> String {
    match u64::try_from(n) {
        Ok(n) => counted(n, what),
        Err(_) => format!("{n} {what}s"),
    }
}
