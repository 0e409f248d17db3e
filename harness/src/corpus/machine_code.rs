//! Whether the assembler makes the same program of two texts.
//!
//! Of some instructions ptxas makes none of its own: `tcgen05.fence` holds the compiler back, and what it writes is a `NOP`. Where a mutant
//! comes to the machine code of the solution, nothing that runs can tell the two apart. Compared are the words of the kernel, without
//! what is none of the program:
//!
//! - a `NOP` itself. What it waits for, the instruction behind it waits for.
//! - how many cycles the scheduler lets pass behind an instruction, and what it keeps in the operand cache;
//! - where in the file a branch leads: what counts is the instruction.
//!
//! The layout of words is not documented. It is known from what ptxas 13 writes (opcodes in bits 0 to 11; of relative branches, the
//! distance in bits 16 to 23 and 34 to 81; what is scheduled, in bits 105 to 125). A word that is read wrongly differs, and nothing is proved.

/// Bytes of a word of machine code.
const WORD: usize = 16;
/// An instruction that does nothing.
const NOP: u128 = 0x918;
/// Relative branches, calls and returns.
const BRANCHES: [u128; 4] = [0x547, 0x944, 0x947, 0x950];
/// Where threads that part meet again: a place as of a branch, which the word holds elsewhere.
const MEETING: u128 = 0x945;
/// A call, and the constant before it that names the word behind it: the place to return to.
const CALL: u128 = 0x944;
const CONSTANT: u128 = 0x802;
/// Counters that an instruction waits for.
const WAITS: u128 = 0x3f << 116;
/// Counters that it raises: these bits all set are none.
const RAISES: u128 = 0x3f << 110;
/// Cycles until the next instruction, and whether another warp may come first; operands that are kept.
const SCHEDULED: u128 = 0x1f << 105 | 0xf << 122;

/// An instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Instruction {
    /// Its word, without what does not count.
    word: u128,
    /// The instruction that it names.
    place: Option<usize>,
}

/// The machine code of a kernel, comparable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MachineCode {
    instructions: Vec<Instruction>,
    /// What its section says beside the words: registers and barriers that the kernel takes.
    takes: (u64, u32),
}

impl MachineCode {
    /// Reads the file that ptxas writes of a text with one kernel. `None` if it is anything else.
    pub fn read(elf: &[u8]) -> Option<MachineCode> {
        let (code, takes) = code(elf)?;
        let (words, rest) = code.as_chunks::<WORD>();
        let words: Vec<u128> = words.iter().map(|word| u128::from_le_bytes(*word)).collect();
        let is_whole = rest.is_empty() && !words.is_empty();
        Some(MachineCode { instructions: instructions(&words), takes }).filter(|_| is_whole)
    }
}

fn opcode(word: u128) -> u128 {
    word & 0xfff
}

/// Which words are nothing but, perhaps, a wait for the instruction behind them. A branch may lead around such a wait: then it is an
/// instruction of its own.
fn nothings(words: &[u128]) -> Vec<bool> {
    let is_nop = |word: u128| opcode(word) == NOP && word & RAISES == RAISES;
    let mut all: Vec<bool> = words.iter().map(|word| is_nop(*word)).collect();
    for (at, word) in words.iter().enumerate() {
        let around = apart(words, *word, at).1.and_then(|to| to.checked_sub(1));
        if let Some(before) = around.filter(|before| words[*before] & WAITS != 0) {
            all[before] = false;
        }
    }
    all
}

/// The instructions but for `NOP`s.
fn instructions(words: &[u128]) -> Vec<Instruction> {
    let nothing = nothings(words);
    // Of each word, and of the end, the number of the first instruction that counts there.
    let mut numbers = vec![0];
    numbers.extend(nothing.iter().scan(0, |count, nothing| {
        *count += usize::from(!nothing);
        Some(*count)
    }));
    let (mut all, mut waited) = (Vec::new(), 0);
    for (at, word) in words.iter().enumerate() {
        if nothing[at] {
            waited |= word & WAITS;
            continue;
        }
        let word = (word | std::mem::take(&mut waited)) & !SCHEDULED;
        let (word, to) = apart(words, word, at);
        all.push(Instruction { word, place: to.and_then(|to| numbers.get(to)).copied() });
    }
    all
}

/// A word without the place that it names, and that place: the number of a word. A word whose place is none of these is left as it is.
fn apart(words: &[u128], word: u128, at: usize) -> (u128, Option<usize>) {
    /// Units of a distance that make a word.
    const UNITS: i64 = 4;
    const LOW: u128 = 0xff << 16;
    const HIGH: u128 = ((1 << 48) - 1) << 34;
    let high = (word & HIGH) >> 34;
    // Of a distance the highest bit is its sign.
    let behind = |distance: i64| {
        let at = i64::try_from(at + 1).ok().filter(|_| distance % UNITS == 0)?;
        usize::try_from(at + distance / UNITS).ok()
    };
    let (field, to) = match opcode(word) {
        code if BRANCHES.contains(&code) => (LOW | HIGH, behind((high << 16 | (word & LOW) >> 8) as u64 as i64 >> 8)),
        MEETING => (HIGH, behind((high << 16) as u64 as i64 >> 16)),
        CONSTANT => {
            let bytes = (word >> 32) as u32 as usize;
            let returns = |to: &usize| to.checked_sub(1).and_then(|call| words.get(call)).copied().map(opcode);
            let to = Some(bytes / WORD).filter(|to| bytes.is_multiple_of(WORD) && returns(to) == Some(CALL));
            (0xffff_ffff << 32, to)
        }
        _ => return (word, None),
    };
    match to.filter(|to| *to <= words.len()) {
        Some(to) => (word & !field, Some(to)),
        None => (word, None),
    }
}

/// The one section of code, and what it says of the kernel.
fn code(elf: &[u8]) -> Option<(&[u8], (u64, u32))> {
    let number = |at: usize, bytes: usize| -> Option<u64> {
        let mut all = [0; 8];
        all[..bytes].copy_from_slice(elf.get(at..at.checked_add(bytes)?)?);
        Some(u64::from_le_bytes(all))
    };
    let index = |at: usize, bytes: usize| number(at, bytes).and_then(|n| usize::try_from(n).ok());
    const MAGIC: &[u8] = b"\x7fELF\x02\x01";
    elf.starts_with(MAGIC).then_some(())?;
    let (headers, size, count, names) = (index(0x28, 8)?, index(0x3a, 2)?, index(0x3c, 2)?, index(0x3e, 2)?);
    let header = |n: usize| headers.checked_add(n.checked_mul(size)?);
    let names = index(header(names)?.checked_add(24)?, 8)?;
    let mut found = None;
    for n in 0..count {
        let at = header(n)?;
        let name = elf.get(names.checked_add(index(at, 4)?)?..)?;
        if !name.starts_with(b".text.") {
            continue;
        }
        let from = index(at + 24, 8)?;
        let bytes = elf.get(from..from.checked_add(index(at + 32, 8)?)?)?;
        let takes = (number(at + 8, 8)?, number(at + 44, 4)? as u32);
        if found.replace((bytes, takes)).is_some() {
            return None;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::kernels::Kernel;
    use crate::ptxas::{self, Failure};
    use crate::steps::hopper::HOPPER;

    /// Nothing is raised and waited for; what is scheduled.
    const PLAIN: u128 = RAISES | 7 << 105;
    /// Waits for a counter.
    const WAITING: u128 = PLAIN | 1 << 116;

    fn branch(words: i64) -> u128 {
        let distance = (words * 4) as u128 & ((1 << 56) - 1);
        0x947 | PLAIN | (distance & 0xff) << 16 | (distance >> 8) << 34
    }

    #[test]
    fn words_that_do_nothing() {
        let (nop, one, two) = (NOP | PLAIN, 0x123 | PLAIN, 0x456 | PLAIN);
        let base = instructions(&[branch(2), one, nop, two, branch(-4)]);
        assert_eq!(base, instructions(&[branch(1), one, two | 3 << 105, branch(-3), nop]));
        assert_ne!(base, instructions(&[branch(2), two, nop, one, branch(-4)]), "another order");
        assert_ne!(base, instructions(&[branch(1), one, nop, two, branch(-3)]), "another loop");
        assert_ne!(base, instructions(&[branch(2), one, NOP, two, branch(-4)]), "it raises a counter");
    }

    #[test]
    fn what_a_word_that_does_nothing_waits_for() {
        let (waits, one) = (NOP | WAITING, 0x123);
        let base = instructions(&[waits, one | PLAIN]);
        assert_eq!(base, instructions(&[one | WAITING]));
        assert_ne!(base, instructions(&[one | PLAIN]));
        let around = instructions(&[branch(1), waits, one | PLAIN]);
        assert_ne!(around, instructions(&[branch(0), one | WAITING]), "who branches does not wait");
    }

    #[test]
    fn constants_are_numbers_unless_a_call_returns_there() {
        let constant = |value: u128| CONSTANT | PLAIN | value << 32;
        let call = CALL | PLAIN;
        assert_ne!(instructions(&[constant(32), NOP | PLAIN]), instructions(&[constant(16), NOP | PLAIN]));
        let apart = [NOP | PLAIN, constant(48), call, call];
        assert_eq!(instructions(&apart), instructions(&[constant(32), call, call]));
    }

    #[test]
    fn other_files_are_not_read() {
        assert_eq!(MachineCode::read(b""), None);
        assert_eq!(MachineCode::read(b"\x7fELF\x02\x01"), None);
        assert_eq!(MachineCode::read(&[0xff; 200]), None);
    }

    /// The machine code of a kernel without the first line of this beginning; of the kernel itself, of none. `None` without an assembler.
    fn without(kernel: &Kernel, line: Option<&str>) -> Option<MachineCode> {
        let lines = kernel.text.find(|s| line.is_some_and(|line| s.code().starts_with(line)));
        let change: Vec<(usize, String)> =
            lines.take(1).map(|at| (kernel.text.statements[at].line, String::new())).collect();
        assert_eq!(change.len(), usize::from(line.is_some()));
        match ptxas::object(&kernel.text.with(&change)) {
            Ok(object) => Some(MachineCode::read(&object.elf).expect("a kernel that ptxas wrote")),
            Err(Failure::Unavailable(_) | Failure::TookTooLong(_) | Failure::Here(_)) => None,
            Err(Failure::Refused(errors)) => panic!("{errors:?}"),
        }
    }

    #[test]
    fn fences_of_tensor_memory_leave_nothing_and_others_do() {
        let kernel = Kernel::new(6).unwrap();
        let Some(base) = without(&kernel, None) else { return };
        assert_eq!(without(&kernel, Some("tcgen05.fence::before")).unwrap(), base);
        for line in ["fence.proxy.async", "bar.sync", "mbarrier.arrive", "tcgen05.commit", "cp.async.bulk.wait_group"] {
            assert_ne!(without(&kernel, Some(line)).unwrap(), base, "{line}");
        }
    }

    /// The rule `told-by-the-barrier-behind` proves kernels without this fence. Their code may differ: by registers, by the order of
    /// instructions that compute, and by whether a warp elects once for two parts that stand side by side. Else it has as many of each opcode.
    #[test]
    fn a_fence_of_initialisations_is_no_instruction() {
        /// What `elect.sync` becomes.
        const ELECT: u128 = 0x82f;
        for step in [HOPPER, 1, 6, 9, 10] {
            let kernel = Kernel::new(step).unwrap();
            let opcodes = |code: MachineCode| {
                let all = code.instructions.iter().map(|instruction| opcode(instruction.word));
                let mut all: Vec<u128> = all.filter(|opcode| ![NOP, ELECT].contains(opcode)).collect();
                all.sort_unstable();
                all
            };
            let Some(base) = without(&kernel, None) else { return };
            let base = opcodes(base);
            assert_eq!(opcodes(without(&kernel, Some("fence.mbarrier_init")).unwrap()), base, "step {step}");
            assert_ne!(opcodes(without(&kernel, Some("mbarrier.init")).unwrap()), base, "step {step}");
        }
    }
}
