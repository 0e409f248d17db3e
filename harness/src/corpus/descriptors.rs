//! Wrong descriptors and addresses in the text of a kernel.

use super::operands::{REGISTER, declared};
use super::text::{Statement, Text, further, number, registers};
use super::{Change, Kind, Mutant, What, mutant};

/// A field: its name, its lowest bit, its bits, and what to do with its value.
type Field = (&'static str, u32, u32, &'static [Step]);

/// Another value of a field.
#[derive(Clone, Copy)]
enum Step {
    /// So much more, around the end of the field.
    Add(i64),
    /// So many times.
    Times(u64),
    /// This value.
    Is(u64),
}

const ONE: &[Step] = &[Step::Add(1)];
const BOTH: &[Step] = &[Step::Add(1), Step::Add(-1)];

/// The instruction descriptor of kind `f16` (PTX ISA 9.7.16.4.2).
const INSTRUCTION: &[Field] = &[
    ("sparsity selector", 0, 2, ONE),
    ("sparsity", 2, 1, ONE),
    ("saturation", 3, 1, ONE),
    ("type of D", 4, 2, BOTH),
    ("type of A", 7, 3, ONE),
    ("type of B", 10, 3, ONE),
    ("sign of A", 13, 1, ONE),
    ("sign of B", 14, 1, ONE),
    ("transposed A", 15, 1, ONE),
    ("transposed B", 16, 1, ONE),
    ("N", 17, 6, BOTH),
    ("M", 24, 5, BOTH),
    ("shift of B", 30, 2, ONE),
];

/// The shared-memory descriptor of `tcgen05` (PTX ISA 9.7.16.4.1).
const MATRIX: &[Field] = &[
    ("leading offset", 16, 14, ONE),
    ("stride offset", 32, 14, &[Step::Add(1), Step::Add(-1), Step::Times(2)]),
    ("constant", 46, 3, ONE),
    ("base offset", 49, 3, ONE),
    ("leading mode", 52, 1, ONE),
    ("swizzle", 61, 3, &[Step::Is(0), Step::Is(1), Step::Is(4), Step::Is(6)]),
];

/// That of `wgmma`.
const HOPPER_MATRIX: &[Field] = &[
    ("leading offset", 16, 14, ONE),
    ("stride offset", 32, 14, &[Step::Add(1), Step::Add(-1), Step::Times(2)]),
    ("base offset", 49, 3, ONE),
    ("swizzle", 62, 2, &[Step::Is(0), Step::Is(2), Step::Is(3)]),
];

/// Bytes by which a tile begins too late.
const OFF: i64 = 128;
/// The next lane of an address in tensor memory; columns are below.
const LANE: i64 = 1 << 16;

/// All of a kernel's text.
pub fn mutants(text: &Text) -> Vec<Mutant> {
    let is_hopper = text.find(|statement| statement.is("wgmma")).next().is_some();
    let mut all = Vec::new();
    for (at, statement) in text.statements.iter().enumerate() {
        match statement.opcode() {
            "or.b64" => all.extend(matrix(text, at, if is_hopper { HOPPER_MATRIX } else { MATRIX })),
            "mov.b32" => all.extend(fields(text, at, 1, INSTRUCTION)),
            "bfe.u32" => all.extend(slice(text, at)),
            "and.b32" => all.extend(staged(text, at)),
            "mad.lo.u32" => all.extend(stage(text, at)),
            _ => {}
        }
        all.extend(group(text, at));
        if statement.is("tcgen05.mma") || statement.is("wgmma.mma_async") {
            all.extend(accumulate(text, at));
        }
        if statement.is("tcgen05.mma") {
            all.extend(tensor_address(text, at, 0));
        } else if statement.is("tcgen05.ld") {
            all.extend(tensor_address(text, at, 1));
        } else if statement.is("cp.async.bulk.tensor") {
            all.extend(copy(text, at));
        }
    }
    all
}

fn changed(text: &Text, at: usize, mistake: &'static str, what: What, to: &Statement) -> Mutant {
    let line = text.statements[at].line;
    mutant(mistake, Kind::Descriptors, what, Change::Lines(vec![(line, text.in_line(line, &to.code()))]))
}

fn operand(text: &Text, at: usize, mistake: &'static str, index: usize, to: impl Into<String>) -> Mutant {
    let to = text.statements[at].with_operand(index, to);
    changed(text, at, mistake, What::Changed(at, to.code()), &to)
}

/// The fields of a constant.
fn fields(text: &Text, at: usize, index: usize, fields: &[Field]) -> Vec<Mutant> {
    let statement = &text.statements[at];
    let constant = statement.operands().get(index).filter(|operand| operand.starts_with("0x"));
    let Some(value) = constant.and_then(|constant| number(constant)) else { return Vec::new() };
    let mut all = Vec::new();
    for (name, low, bits, steps) in fields {
        let mask = (1u64 << bits) - 1;
        let was = value as u64 >> low & mask;
        for step in *steps {
            let now = match step {
                Step::Add(by) => was.wrapping_add_signed(*by) & mask,
                Step::Times(by) => (was * by) & mask,
                Step::Is(value) => *value,
            };
            let constant = (value as u64 & !(mask << low)) | (now << low);
            let to = statement.with_operand(index, format!("0x{constant:x}"));
            all.extend((now != was).then(|| changed(text, at, name, What::Field(name, at), &to)));
        }
    }
    all
}

/// A shared-memory descriptor: its fields, and the two offsets changed for each other.
fn matrix(text: &Text, at: usize, of: &[Field]) -> Vec<Mutant> {
    let mut all = fields(text, at, 2, of);
    let statement = &text.statements[at];
    let constant = statement.operands().get(2).filter(|operand| operand.starts_with("0x"));
    if let Some(value) = constant.and_then(|constant| number(constant)) {
        let (value, mask) = (value as u64, (1u64 << 14) - 1);
        let (leading, stride) = (value >> 16 & mask, value >> 32 & mask);
        let swapped = value & !(mask << 16 | mask << 32) | stride << 16 | leading << 32;
        let to = statement.with_operand(2, format!("0x{swapped:x}"));
        all.push(changed(text, at, "offsets swapped", What::Field("offsets swapped", at), &to));
    }
    all
}

/// The address of a stage in a ring of tiles, `stage * bytes + base`: that of the next stage, and of the one before. Rings of mbarriers
/// have "next barrier".
fn stage(text: &Text, at: usize) -> Vec<Mutant> {
    /// The least that a tile takes.
    const TILE: i64 = 1024;
    let statement = &text.statements[at];
    let [_, index, bytes, base] = statement.operands() else { return Vec::new() };
    let Some(bytes) = number(bytes).filter(|bytes| *bytes >= TILE && index.starts_with('%')) else { return Vec::new() };
    let Some(line) = declared(text) else { return Vec::new() };
    let of = |operation: &str| {
        let other = format!("{operation}.u32 {REGISTER}, {base}, {bytes};");
        let to = statement.with_operand(3, REGISTER);
        let code = text.in_line(statement.line, &format!("{other} {}", to.code()));
        let lines = Change::Lines(vec![line.clone(), (statement.line, code)]);
        mutant("stage", Kind::Descriptors, What::Other, lines).at(statement.line + 1)
    };
    ["add", "sub"].map(of).to_vec()
}

/// The address that a descriptor is made of: half and twice the way along K, and 128 bytes off.
fn slice(text: &Text, at: usize) -> Vec<Mutant> {
    let Some(from) = text.statements[at].operands().get(1) else { return Vec::new() };
    let Some(sum) = text.definition(from, at).filter(|&sum| text.statements[sum].is("add")) else { return Vec::new() };
    let Some(bytes) = text.statements[sum].operands().get(2).and_then(|bytes| number(bytes)) else { return Vec::new() };
    let mut all = vec![operand(text, sum, "tile base", 2, (bytes + OFF).to_string())];
    if bytes > 0 {
        all.push(operand(text, sum, "K advance", 2, (bytes / 2).to_string()));
        all.push(operand(text, sum, "K advance", 2, (bytes * 2).to_string()));
    }
    all
}

/// Threads swizzle what they store by the row's lowest three bits: `and.b32 %r2, %r1, 7`, then to 16 bytes.
fn staged(text: &Text, at: usize) -> Option<Mutant> {
    let statement = &text.statements[at];
    let [to, _, mask] = statement.operands() else { return None };
    let next = text.statements.get(at + 1)?;
    let swizzles = mask == "7" && next.is("shl") && next.operands().get(1) == Some(to);
    swizzles.then(|| operand(text, at, "swizzle of stores", 2, "3"))
}

/// The other number of CTAs.
fn group(text: &Text, at: usize) -> Option<Mutant> {
    let opcode = text.statements[at].opcode();
    let other = match opcode {
        _ if opcode.contains(".cta_group::1") => opcode.replace(".cta_group::1", ".cta_group::2"),
        _ if opcode.contains(".cta_group::2") => opcode.replace(".cta_group::2", ".cta_group::1"),
        _ => return None,
    };
    let to = text.statements[at].with_opcode(other);
    Some(changed(text, at, "CTA group", What::Changed(at, to.code()), &to))
}

/// Whether an MMA adds to what is there: always, and never. A later slice of a round adds in any case, `round + slice > 0`: there it adds
/// from the second round on.
fn accumulate(text: &Text, at: usize) -> Vec<Mutant> {
    let mode = text.statements[at].operands().iter().skip(1).find(|operand| operand.starts_with("%p"));
    let Some(set) = mode.and_then(|mode| text.definition(mode, at)) else { return Vec::new() };
    let statement = &text.statements[set];
    let Some(rest) = statement.opcode().strip_prefix("setp.gt.") else { return Vec::new() };
    let to = |comparison: &str| statement.with_opcode(format!("setp.{comparison}.{rest}"));
    // Unsigned: nothing is below 0, all is at least that.
    let more = match round(text, set) {
        Some(round) => ("adds from the second round on", statement.with_operand(1, round)),
        None => ("adds always", to("ge")),
    };
    let changed = |(mistake, to): (_, Statement)| changed(text, set, mistake, What::Changed(set, to.code()), &to);
    [more, ("never adds", to("lt"))].map(changed).to_vec()
}

/// The counter of rounds of a comparison `round + slice > 0`, of a slice that is not the first.
fn round(text: &Text, set: usize) -> Option<String> {
    let sum = text.statements[set].operands().get(1).and_then(|sum| text.definition(sum, set))?;
    let [_, round, slice] = text.statements[sum].operands() else { return None };
    let later = text.statements[sum].is("add.u32") && number(slice).is_some_and(|slice| slice > 0);
    later.then(|| round.clone())
}

/// An address in tensor memory: other columns, other lanes.
fn tensor_address(text: &Text, at: usize, index: usize) -> Vec<Mutant> {
    let Some(address) = text.statements[at].operands().get(index) else { return Vec::new() };
    let steps = [("column", 1), ("column", 32), ("lane", LANE), ("lane", 32 * LANE)];
    let other = |(mistake, by)| Some(operand(text, at, mistake, index, further(address, by)?));
    steps.into_iter().filter_map(other).collect()
}

/// A copy by TMA: its place in shared memory, the order of its coordinates, and each of them.
fn copy(text: &Text, at: usize) -> Vec<Mutant> {
    let statement = &text.statements[at];
    let mut all = Vec::new();
    for (index, operand_) in statement.operands().iter().enumerate() {
        let Some((map, coordinates)) = operand_.trim_end_matches("}]").split_once(", {") else {
            // A load names its mbarrier last; a store its source.
            let is_place = index == 0 || !statement.opcode().contains("complete_tx");
            let further = further(operand_, OFF).filter(|_| is_place);
            all.extend(further.map(|address| operand(text, at, "place of a copy", index, address)));
            continue;
        };
        let Some((column, row)) = coordinates.split_once(", ") else { continue };
        all.push(operand(text, at, "coordinates swapped", index, format!("{map}, {{{row}, {column}}}]")));
        for (which, other) in [(column, "column"), (row, "row")] {
            let Some(register) = registers(which).next() else { continue };
            let now = if other == "column" { format!("{REGISTER}, {row}") } else { format!("{column}, {REGISTER}") };
            let to = statement.with_operand(index, format!("{map}, {{{now}}}]"));
            let code = format!("add.u32 {REGISTER}, {register}, 8; {}", to.code());
            let lines = declared(text).map(|one| vec![one, (statement.line, text.in_line(statement.line, &code))]);
            let made = lines.map(|lines| mutant("coordinate", Kind::Descriptors, What::Other, Change::Lines(lines)));
            all.extend(made.map(|mutant| mutant.at(statement.line + 1)));
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".reg .pred %p<3>;
{
add.u32 %r2, %r1, 32;
bfe.u32 %r3, %r2, 4, 14;
or.b64 %rd2, %rd1, 0x4000404000000000;
mov.b32 %r4, 0x08200010;
add.u32 %r5, %r6, 1;
setp.gt.u32 %p1, %r5, 0;
tcgen05.mma.cta_group::1.kind::f16 [%r7], %rd2, %rd2, %r4, %p1;
tcgen05.ld.sync.aligned.32x32b.x1.b32 {%f1}, [%r7+64];
cp.async.bulk.tensor.2d.x.mbarrier::complete_tx::bytes [%r8], [%rd3, {%r9, %r10}], [%r11];
}";

    /// The lines that differ, of each mutant with this mistake.
    fn made(mistake: &str) -> Vec<String> {
        let of = |mutant: Mutant| match mutant.change {
            Change::Lines(lines) => lines.into_iter().map(|(_, code)| code).collect::<Vec<_>>().join(" "),
            Change::Map(..) => String::new(),
        };
        mutants(&Text::new(TEXT)).into_iter().filter(|mutant| mutant.mistake == mistake).map(of).collect()
    }

    #[test]
    fn fields_of_descriptors() {
        assert_eq!(made("N"), ["mov.b32 %r4, 0x8220010;", "mov.b32 %r4, 0x81e0010;"]);
        assert_eq!(made("type of D"), ["mov.b32 %r4, 0x8200020;", "mov.b32 %r4, 0x8200000;"]);
        assert_eq!(made("leading offset"), ["or.b64 %rd2, %rd1, 0x4000404000010000;"]);
        assert_eq!(made("stride offset").last().map(String::as_str), Some("or.b64 %rd2, %rd1, 0x4000408000000000;"));
        assert_eq!(made("offsets swapped"), ["or.b64 %rd2, %rd1, 0x4000400000400000;"]);
        assert_eq!(made("swizzle").len(), 4);
    }

    #[test]
    fn addresses() {
        assert_eq!(made("K advance"), ["add.u32 %r2, %r1, 16;", "add.u32 %r2, %r1, 64;"]);
        assert_eq!(made("tile base"), ["add.u32 %r2, %r1, 160;"]);
        assert_eq!(made("column")[2], "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%f1}, [%r7+65];");
        assert_eq!(made("lane")[0], "tcgen05.mma.cta_group::1.kind::f16 [%r7+65536], %rd2, %rd2, %r4, %p1;");
        assert_eq!(made("never adds"), ["setp.lt.u32 %p1, %r5, 0;"]);
        assert_eq!(made("CTA group"), ["tcgen05.mma.cta_group::2.kind::f16 [%r7], %rd2, %rd2, %r4, %p1;"]);
    }

    #[test]
    fn copies() {
        let copy = "cp.async.bulk.tensor.2d.x.mbarrier::complete_tx::bytes";
        assert_eq!(made("place of a copy"), [format!("{copy} [%r8+128], [%rd3, {{%r9, %r10}}], [%r11];")]);
        assert_eq!(made("coordinates swapped"), [format!("{copy} [%r8], [%rd3, {{%r10, %r9}}], [%r11];")]);
        let declared = ".reg .pred %p<3>; .reg .b32 %mutant;";
        assert_eq!(
            made("coordinate")[0],
            format!("{declared} add.u32 %mutant, %r9, 8; {copy} [%r8], [%rd3, {{%mutant, %r10}}], [%r11];")
        );
    }
}
