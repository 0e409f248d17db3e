//! Bytes with a record of which were ever written, and global memory as the buffers of a launch.

pub mod access;
pub mod async_store;
pub mod atomics;
pub mod charge;
pub mod fill;
pub mod halves;
pub mod lanes_apart;
pub mod matrices;
pub mod ordering;
pub mod origins;
pub mod parties;
pub mod places;
pub mod remote;
pub mod resolve;
pub mod rewrites;
pub mod spaces;
pub mod store_lanes;

use crate::launch::param::Extent;
use crate::launch::{Buffer, Content};
use crate::machine::chip::threads::Crew;
use crate::machine::explain::names::counted;
use crate::program::Variable;
use crate::report::{Bytes, Memory};
use std::ops::Range;

/// What unwritten memory holds: as FP16, BF16 or FP32, NaN.
pub const POISON: u8 = 0xff;

impl Memory {
    /// So many bytes, none of them written.
    pub(crate) fn undefined(bytes: usize) -> Memory {
        Memory { bytes: vec![POISON; bytes].into(), defined: vec![0; bytes.div_ceil(64)], blank: vec![] }
    }

    /// So many bytes, none of them written any more.
    pub(crate) fn forget(&mut self, bytes: usize) {
        let own = self.bytes.own();
        own.clear();
        own.resize(bytes, POISON);
        self.defined.clear();
        self.defined.resize(bytes.div_ceil(64), 0);
        self.blank.clear();
    }

    /// So many zeros.
    pub(crate) fn zeros(bytes: usize) -> Memory {
        Memory::from_bytes(vec![0; bytes])
    }

    pub(crate) fn from_bytes(bytes: impl Into<Bytes>) -> Memory {
        let bytes = bytes.into();
        let defined = vec![u64::MAX; bytes.len().div_ceil(64)];
        Memory { bytes, defined, blank: vec![] }
    }

    /// Makes room for so many bytes. What they are, and whether they are defined, is as it happens; none is blank.
    pub(crate) fn resize(&mut self, bytes: usize) {
        self.bytes.own().resize(bytes, POISON);
        self.defined.resize(bytes.div_ceil(64), 0);
        self.blank.clear();
    }

    /// Up to 16 bytes, lowest first, and whether all are defined. The caller has checked the bounds.
    pub(crate) fn load(&self, at: usize, len: usize) -> (u128, bool) {
        (number(&self.bytes[at..at + len]), self.all_defined(at, len))
    }

    /// Stores the low bytes. The caller has checked the bounds.
    pub(crate) fn store(&mut self, at: usize, len: usize, value: u128, defined: bool) {
        if self.has_blanks() {
            self.fill_in(at, len);
        }
        self.put(at, len, value);
        self.mark(at, len, defined);
    }

    /// Stores the low bytes of a value that lacks these bits. The caller has checked the bounds.
    pub(crate) fn store_part(&mut self, at: usize, len: usize, value: u128, lacks: u128) {
        self.store(at, len, value, lacks == 0);
        if lacks != 0 {
            let whole = |&n: &usize| lacks >> (8 * n) & 0xff == 0;
            (0..len).filter(whole).for_each(|n| self.mark(at + n, 1, true));
        }
    }

    /// Writes the low bytes, and says nothing of them. The caller has checked the bounds.
    #[inline(always)]
    pub(crate) fn put(&mut self, at: usize, len: usize, value: u128) {
        let bytes = &mut self.bytes[at..at + len];
        if let Some(whole) = bytes.first_chunk_mut() {
            *whole = value.to_le_bytes();
        } else if let (4, Some(word)) = (len, bytes.first_chunk_mut()) {
            *word = (value as u32).to_le_bytes();
        } else {
            bytes.copy_from_slice(&value.to_le_bytes()[..len]);
        }
    }

    /// Writes bytes with defined values, where none is blank. The caller has checked the bounds.
    pub(crate) fn write(&mut self, at: usize, bytes: &[u8]) {
        self.bytes[at..at + bytes.len()].copy_from_slice(bytes);
        self.mark(at, bytes.len(), true);
    }

    /// Stores zeros. The caller has checked the bounds.
    pub(crate) fn zero(&mut self, at: usize, len: usize) {
        if self.has_blanks() {
            self.fill_in(at, len);
        }
        self.bytes[at..at + len].fill(0);
        self.mark(at, len, true);
    }

    /// Says of bytes whether they hold defined values.
    #[inline]
    pub(crate) fn mark(&mut self, at: usize, len: usize, defined: bool) {
        set(&mut self.defined, at, len, defined);
    }

    pub(crate) fn all_defined(&self, at: usize, len: usize) -> bool {
        let (first, end) = (at / 64, (at + len) / 64);
        if first + 2 > end {
            return words(at, len).all(|(word, mask)| self.defined[word] & mask == mask);
        }
        // Whole words between the first and the last.
        let (low, high) = (u64::MAX << (at % 64), (1u64 << ((at + len) % 64)) - 1);
        self.defined[first] & low == low
            && (high == 0 || self.defined[end] & high == high)
            && self.defined[first + 1..end].iter().fold(u64::MAX, |all, word| all & word) == u64::MAX
    }

    /// The first of these bytes that is defined, and how many are.
    pub(crate) fn defined_among(&self, at: usize, len: usize) -> (Option<usize>, usize) {
        let (mut first, mut count) = (None, 0);
        for (word, mask) in words(at, len) {
            let defined = self.defined[word] & mask;
            if defined != 0 {
                first = first.or(Some(word * 64 + defined.trailing_zeros() as usize));
                count += defined.count_ones() as usize;
            }
        }
        (first, count)
    }

    /// The runs of bytes that are not defined.
    pub(crate) fn gaps(&self) -> impl Iterator<Item = Range<usize>> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let first = self.next(at, false);
            at = self.next(first, true);
            (first < at).then_some(first..at)
        })
    }

    /// The first byte from this one on that is defined, or that is not; the end if there is none.
    fn next(&self, from: usize, defined: bool) -> usize {
        let wanted = |word: &u64| if defined { *word } else { !*word };
        let first = self.defined.get(from / 64).map_or(0, |word| wanted(word) & u64::MAX << (from % 64));
        let behind = self.defined.iter().map(wanted).enumerate().skip(from / 64 + 1);
        let found = std::iter::once((from / 64, first)).chain(behind).find(|(_, bits)| *bits != 0);
        found.map_or(usize::MAX, |(word, bits)| word * 64 + bits.trailing_zeros() as usize).min(self.bytes.len())
    }

    /// Whether there may be blank bytes.
    pub(crate) fn has_blanks(&self) -> bool {
        !self.blank.is_empty()
    }

    /// Whether some of these bytes are blank.
    pub(crate) fn any_blank(&self, at: usize, len: usize) -> bool {
        self.has_blanks() && words(at, len).any(|(word, mask)| self.blank[word] & mask != 0)
    }

    /// Whether all of these bytes are blank.
    pub(crate) fn all_blank(&self, at: usize, len: usize) -> bool {
        self.has_blanks() && words(at, len).all(|(word, mask)| self.blank[word] & mask == mask)
    }

    /// Bytes are written with defined values that are not computed.
    pub(crate) fn write_blank(&mut self, at: usize, len: usize) {
        self.mark(at, len, true);
        self.mark_blank(at, len);
    }

    /// What bytes hold, defined or not, was not computed.
    pub(crate) fn mark_blank(&mut self, at: usize, len: usize) {
        if !self.has_blanks() {
            self.blank = vec![0; self.defined.len()];
        }
        set(&mut self.blank, at, len, true);
    }

    /// Bytes are not blank any more.
    pub(crate) fn fill_in(&mut self, at: usize, len: usize) {
        set(&mut self.blank, at, len, false);
    }

    /// Copies bytes from another memory, with what is known of each. The caller has checked the bounds.
    pub(crate) fn copy_from(&mut self, at: usize, other: &Memory, from: usize, len: usize) {
        self.bytes[at..at + len].copy_from_slice(&other.bytes[from..from + len]);
        if self.has_blanks() {
            self.fill_in(at, len);
        }
        if other.all_blank(from, len) && len > 0 {
            self.mark_blank(at, len);
        } else if other.any_blank(from, len) {
            (0..len).filter(|n| other.is_blank(from + n)).for_each(|n| self.mark_blank(at + n, 1));
        }
        if other.all_defined(from, len) {
            self.mark(at, len, true);
        } else {
            for n in 0..len {
                self.mark(at + n, 1, other.is_defined(from + n));
            }
        }
    }
}

/// The number that up to 16 bytes are, lowest first.
#[inline(always)]
pub fn number(bytes: &[u8]) -> u128 {
    // Of a length that is known when this is compiled, a copy is a move.
    match (bytes.first_chunk(), bytes.first_chunk()) {
        (Some(&whole), _) => u128::from_le_bytes(whole),
        (None, Some(&word)) if bytes.len() == 4 => u32::from_le_bytes(word).into(),
        _ => {
            let mut value = [0; 16];
            value[..bytes.len()].copy_from_slice(bytes);
            u128::from_le_bytes(value)
        }
    }
}

/// Sets or clears so many bits of a bit set from this one on.
#[inline]
fn set(bits: &mut [u64], at: usize, len: usize, on: bool) {
    let mut put = |word: usize, mask: u64| {
        if on {
            bits[word] |= mask;
        } else {
            bits[word] &= !mask;
        }
    };
    if len > 0 && at % 64 + len <= 64 {
        put(at / 64, u64::MAX >> (64 - len) << (at % 64));
    } else if at.is_multiple_of(64) && len.is_multiple_of(64) {
        bits[at / 64..(at + len) / 64].fill(if on { u64::MAX } else { 0 });
    } else {
        words(at, len).for_each(|(word, mask)| put(word, mask));
    }
}

/// The words of a bit set that hold so many bits from this one on, with the bits of each.
fn words(at: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
    let end = at + len;
    let mut next = at;
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let stop = (next / 64 * 64 + 64).min(end);
        let mask = (u64::MAX >> (64 - (stop - next))) << (next % 64);
        let word = next / 64;
        next = stop;
        Some((word, mask))
    })
}

/// A buffer in global memory.
#[derive(Clone, Debug)]
pub struct GlobalBuffer {
    pub name: String,
    pub base: u64,
    pub memory: Memory,
    /// All bytes hold defined values. Some may be although this does not say so.
    pub whole: bool,
    pub row_bytes: Option<u32>,
    pub element_bytes: u32,
    /// A `.const` variable: the kernel cannot write it.
    pub constant: bool,
}

#[cfg(test)]
impl Global {
    /// One buffer, `a`, which holds this.
    pub fn of(memory: Memory) -> Global {
        let whole = memory.all_defined(0, memory.bytes.len());
        let (row_bytes, element_bytes) = (None, 1);
        let buffer =
            GlobalBuffer { name: "a".into(), base: 0, memory, whole, row_bytes, element_bytes, constant: false };
        Global { buffers: vec![buffer], ..Global::default() }
    }
}

impl GlobalBuffer {
    /// How messages name a byte of it: row and column if it holds a matrix.
    pub fn describe(&self, byte: u64) -> String {
        place_name(&self.name, self.row_bytes, self.element_bytes, byte)
    }

    /// The same, also with the element where the launch says how large they are.
    pub fn describe_element(&self, byte: u64) -> String {
        let place = self.describe(byte);
        match self.row_bytes.is_none_or(|row| row == 0) && self.element_bytes > 1 {
            true => format!("{place} (element {})", byte / u64::from(self.element_bytes)),
            false => place,
        }
    }
}

/// How messages name a byte of a buffer: row and column if it holds a matrix.
pub fn place_name(name: &str, row_bytes: Option<u32>, element_bytes: u32, byte: u64) -> String {
    match row_bytes.filter(|&row| row > 0) {
        Some(row) => {
            let (r, c) = (byte / u64::from(row), byte % u64::from(row) / u64::from(element_bytes));
            format!("`{name}` at row {r}, column {c}")
        }
        None => format!("`{name}` at byte {byte}"),
    }
}

/// The buffers of a launch, at addresses with room between them. Clusters share it while a window of simulated time lasts; it
/// changes where a window ends.
#[derive(Clone, Debug, Default)]
pub struct Global {
    pub buffers: Vec<GlobalBuffer>,
    /// What strong stores published.
    pub published: atomics::Published,
    /// What the L2 cache holds.
    pub cache: crate::machine::chip::cache::Cache,
}

/// Bytes of a buffer in global memory: runs of equal length at equal distances, as the rows of a box are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Runs {
    pub buffer: usize,
    /// Where the first begins.
    pub first: u64,
    /// Bytes of each.
    pub bytes: u32,
    pub count: u32,
    /// From one to the next.
    pub pitch: u64,
}

impl Runs {
    pub fn one(buffer: usize, first: u64, bytes: u32) -> Runs {
        Runs { buffer, first, bytes, count: 1, pitch: 0 }
    }

    /// Where each begins.
    pub fn starts(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.count)).map(move |n| self.first + n * self.pitch)
    }

    /// The same places, each once: lanes may all have the same one.
    pub fn distinct(self) -> Runs {
        Runs { count: if self.pitch == 0 { 1 } else { self.count }, ..self }
    }

    /// Takes one more run in, if it continues these.
    fn extend(&mut self, next: Runs) -> bool {
        let last = self.first + (u64::from(self.count) - 1) * self.pitch;
        if next.buffer != self.buffer || next.count != 1 {
            return false;
        }
        if self.count == 1 && next.first == self.first + u64::from(self.bytes) {
            self.bytes += next.bytes;
            return true;
        }
        let pitch = next.first.wrapping_sub(last);
        if next.bytes != self.bytes || next.first < last || (self.count > 1 && pitch != self.pitch) {
            return false;
        }
        self.pitch = pitch;
        self.count += 1;
        true
    }

    /// Puts pieces together, in their order.
    pub fn collect(pieces: impl Iterator<Item = Runs>) -> Vec<Runs> {
        let mut list: Vec<Runs> = Vec::new();
        for next in pieces {
            if !list.last_mut().is_some_and(|last| last.extend(next)) {
                list.push(next);
            }
        }
        list
    }
}

const FIRST: u64 = 0x7f00_0000_0000;
/// Buffers begin on 2 MiB, with at least as much unmapped room behind them.
const STEP: u64 = 1 << 21;

/// Where buffers of these sizes lie.
pub fn extents(sizes: &[u64]) -> Vec<Extent> {
    let place = |base: &mut u64, &bytes: &u64| {
        let at = *base;
        *base = (at + bytes + STEP).next_multiple_of(STEP);
        Some(Extent { base: at, bytes })
    };
    sizes.iter().scan(FIRST, place).collect()
}

/// Bytes of all buffers from which on they are worth a thread: to begin one takes as long as to copy a few hundred KB.
const MUCH: u64 = 4 << 20;

/// Whether there is so much in buffers that several threads are to make them.
pub fn is_much(buffers: &[Buffer]) -> bool {
    buffers.iter().map(|buffer| buffer.content.size().unwrap_or(0)).sum::<u64>() >= MUCH
}

impl Global {
    /// The caller has checked sizes and contents.
    pub fn new<'a>(
        buffers: &'a [Buffer],
        variables: &[Variable],
        l2_bytes: u64,
        data_free: bool,
        crew: &Crew<'a>,
    ) -> Global {
        let sizes: Vec<u64> = buffers.iter().map(|buffer| buffer.content.size().unwrap_or(0)).collect();
        let extents = extents(&sizes);
        let places = extents.clone();
        let memory = move |buffer: &Buffer| match &buffer.content {
            content @ (Content::Random(_) | Content::Undefined { .. }) if data_free => {
                Memory::zeros(content.size().unwrap_or(0) as usize)
            }
            Content::Bytes(bytes) => Memory::from_bytes(bytes.clone()),
            Content::Fill { bytes, value } => Memory::from_bytes(vec![*value; *bytes as usize]),
            Content::Undefined { bytes } => Memory::undefined(*bytes as usize),
            Content::Random(random) => Memory::from_bytes(random.bytes()),
            Content::Struct(block) => Memory::from_bytes(block.bytes("", &places).unwrap_or_default()),
            // Refused before the run.
            Content::File(_) => Memory::undefined(0),
        };
        let memories: Vec<Memory> = match is_much(buffers) {
            true => crew.all(buffers.iter().collect(), memory),
            false => buffers.iter().map(memory).collect(),
        };
        let mut buffers: Vec<GlobalBuffer> = (buffers.iter().zip(memories).zip(&extents))
            .map(|((b, memory), extent)| GlobalBuffer {
                name: b.name.clone(),
                base: extent.base,
                whole: !matches!(b.content, Content::Undefined { .. } | Content::File(_)) || data_free,
                memory,
                row_bytes: b.row_bytes,
                element_bytes: b.element_bytes.unwrap_or(1).max(1),
                constant: false,
            })
            .collect();
        // The addresses of the module's own variables are known since it was loaded; they lie behind all buffers.
        buffers.extend(variables.iter().map(|v| GlobalBuffer {
            name: v.name.clone(),
            base: v.base,
            memory: Memory::from_bytes(v.content.clone()),
            whole: true,
            row_bytes: None,
            element_bytes: 1,
            constant: v.constant,
        }));
        let cache =
            crate::machine::chip::cache::Cache::new(buffers.iter().map(|b| b.memory.bytes.len() as u64), l2_bytes);
        Global { buffers, published: Default::default(), cache }
    }

    /// The buffer that holds all these bytes, and where in it they begin.
    pub fn find(&self, address: u64, len: u64) -> Option<(usize, u64)> {
        let n = self.buffers.partition_point(|b| b.base <= address).checked_sub(1)?;
        let offset = address - self.buffers[n].base;
        let end = offset.checked_add(len)?;
        (end <= self.buffers[n].memory.bytes.len() as u64).then_some((n, offset))
    }

    /// Where an address that is in no buffer lies, for messages.
    pub fn nearest(&self, address: u64) -> String {
        let below = self.buffers.iter().rev().find(|b| b.base <= address);
        match below {
            Some(b) if address - b.base < STEP + b.memory.bytes.len() as u64 => {
                let past = (address - b.base) as i128 - b.memory.bytes.len() as i128;
                let (name, size) = (&b.name, counted(b.memory.bytes.len() as u64, "byte"));
                match past {
                    ..0 => format!("it begins in `{name}` ({size}) and runs past its end"),
                    0 => format!("right behind the end of `{name}` ({size})"),
                    _ => format!("{} past the end of `{name}` ({size})", counted(past as u64, "byte")),
                }
            }
            _ => match self.buffers.iter().find(|b| b.base > address && b.base - address <= STEP) {
                Some(b) => format!("{} before the start of `{}`", counted(b.base - address, "byte"), b.name),
                None => "no buffer is near it".into(),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against the bytes one by one, of memories whose ends lie anywhere in a word.
    #[test]
    fn gaps_are_the_bytes_that_nothing_defines() {
        for (bytes, defined) in [
            (0, vec![]),
            (1, vec![]),
            (64, vec![(0, 64)]),
            (130, vec![]),
            (130, vec![(0, 130)]),
            (130, vec![(3, 5), (60, 70), (129, 1)]),
            (300, vec![(0, 64), (128, 64), (299, 1)]),
            (320, vec![(63, 2), (191, 129)]),
        ] {
            let mut memory = Memory::undefined(bytes);
            defined.iter().for_each(|&(at, len)| memory.mark(at, len.min(bytes - at), true));
            let lacking: Vec<usize> = (0..bytes).filter(|&at| !memory.is_defined(at)).collect();
            assert_eq!(memory.gaps().flatten().collect::<Vec<_>>(), lacking, "{bytes} bytes, {defined:?} defined");
            assert!(memory.gaps().zip(memory.gaps().skip(1)).all(|(one, next)| one.end < next.start), "runs are whole");
        }
    }
}
