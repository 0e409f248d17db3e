//! The lines of a kernel: which of them are instructions and labels, and what stands in them.
//!
//! It reads what the builder writes, one statement a line. A line with anything else in it is left alone.

use std::collections::HashMap;

/// A predicate before an instruction: `@%p1`, `@!%p1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guard {
    /// The predicate's register.
    pub register: String,
    /// `@!`.
    pub negated: bool,
}

/// A label or an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// `$wait:`.
    Label(String),
    /// `@!%p1 bra $wait;`.
    Instruction {
        /// Its predicate.
        guard: Option<Guard>,
        /// `bra`.
        opcode: String,
        /// `$wait`.
        operands: Vec<String>,
    },
}

/// A line that holds a label or an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Statement {
    /// Index of its line in [`Text::lines`].
    pub line: usize,
    /// What stands there.
    pub body: Body,
}

impl Statement {
    /// The opcode with its modifiers; empty for a label.
    pub fn opcode(&self) -> &str {
        match &self.body {
            Body::Label(_) => "",
            Body::Instruction { opcode, .. } => opcode,
        }
    }

    /// The operands; none for a label.
    pub fn operands(&self) -> &[String] {
        match &self.body {
            Body::Label(_) => &[],
            Body::Instruction { operands, .. } => operands,
        }
    }

    /// The predicate before it.
    pub fn guard(&self) -> Option<&Guard> {
        match &self.body {
            Body::Label(_) => None,
            Body::Instruction { guard, .. } => guard.as_ref(),
        }
    }

    /// The label that it is.
    pub fn label(&self) -> Option<&str> {
        match &self.body {
            Body::Label(name) => Some(name),
            Body::Instruction { .. } => None,
        }
    }

    /// The label that it branches to.
    pub fn target(&self) -> Option<&str> {
        let is_branch = self.opcode() == "bra" || self.opcode().starts_with("bra.");
        is_branch.then(|| self.operands().first().map(String::as_str)).flatten()
    }

    /// Whether the opcode is this one, or this one with modifiers.
    pub fn is(&self, opcode: &str) -> bool {
        self.opcode().strip_prefix(opcode).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', ':']))
    }

    /// The statement as text, without indentation.
    pub fn code(&self) -> String {
        match &self.body {
            Body::Label(name) => format!("{name}:"),
            Body::Instruction { guard, opcode, operands } => {
                let guard = guard.as_ref().map(|g| format!("@{}{} ", if g.negated { "!" } else { "" }, g.register));
                let space = if operands.is_empty() { "" } else { " " };
                format!("{}{opcode}{space}{};", guard.unwrap_or_default(), operands.join(", "))
            }
        }
    }

    /// The same instruction with another operand.
    pub fn with_operand(&self, index: usize, to: impl Into<String>) -> Statement {
        let mut changed = self.clone();
        if let Body::Instruction { operands, .. } = &mut changed.body
            && let Some(operand) = operands.get_mut(index)
        {
            *operand = to.into();
        }
        changed
    }

    /// The same instruction with another opcode.
    pub fn with_opcode(&self, to: impl Into<String>) -> Statement {
        let mut changed = self.clone();
        if let Body::Instruction { opcode, .. } = &mut changed.body {
            *opcode = to.into();
        }
        changed
    }
}

/// The text of a kernel.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its lines.
    pub lines: Vec<String>,
    /// Labels and instructions, in order.
    pub statements: Vec<Statement>,
    /// The statement that each label is.
    labels: HashMap<String, usize>,
    /// The branches, in order, and where they lead.
    branches: Vec<(usize, usize)>,
    /// The statements in which a register stands, and those in whose first operand it does; in order.
    touching: HashMap<String, Vec<usize>>,
    beginning: HashMap<String, Vec<usize>>,
    /// The first statement by which a thread ends.
    end: Option<usize>,
}

impl Text {
    /// Reads a text.
    pub fn new(text: &str) -> Text {
        let lines: Vec<String> = text.lines().map(str::to_string).collect();
        let body = lines.iter().position(|line| line.trim() == "{").map_or(lines.len(), |at| at + 1);
        let statements: Vec<Statement> = lines
            .iter()
            .enumerate()
            .skip(body)
            .filter_map(|(line, text)| Some(Statement { line, body: read(text)? }))
            .collect();
        let label = |(at, statement): (usize, &Statement)| Some((statement.label()?.to_string(), at));
        let labels: HashMap<String, usize> = statements.iter().enumerate().filter_map(label).collect();
        let branch = |(at, statement): (usize, &Statement)| Some((at, *labels.get(statement.target()?)?));
        let branches = statements.iter().enumerate().filter_map(branch).collect();
        let (mut touching, mut beginning) = (HashMap::new(), HashMap::new());
        for (at, statement) in statements.iter().enumerate() {
            let guard = statement.guard().map(|guard| guard.register.as_str());
            let operands = statement.operands().iter().flat_map(|operand| registers(operand));
            operands.chain(guard).for_each(|register| note(&mut touching, register, at));
            let first = statement.operands().first().into_iter().flat_map(|operand| registers(operand));
            first.for_each(|register| note(&mut beginning, register, at));
        }
        let end = statements.iter().position(|statement| statement.is("ret") || statement.is("exit"));
        Text { lines, statements, labels, branches, touching, beginning, end }
    }

    /// The branches, in order: which statement, and to which one it leads.
    pub fn branches(&self) -> &[(usize, usize)] {
        &self.branches
    }

    /// The statements in which a register stands, in order.
    pub fn touching(&self, register: &str) -> &[usize] {
        self.touching.get(register).map_or(&[], Vec::as_slice)
    }

    /// The statements in whose first operand a register stands, in order: those that write it, where they write anything.
    pub fn beginning(&self, register: &str) -> &[usize] {
        self.beginning.get(register).map_or(&[], Vec::as_slice)
    }

    /// The first statement by which a thread ends.
    pub fn end(&self) -> Option<usize> {
        self.end
    }

    /// The statement that a label is.
    pub fn label(&self, name: &str) -> Option<usize> {
        self.labels.get(name).copied()
    }

    /// Where a statement branches to.
    pub fn target(&self, at: usize) -> Option<usize> {
        self.label(self.statements.get(at)?.target()?)
    }

    /// Indices of the statements that a question is true of.
    pub fn find<'a>(&'a self, is: impl Fn(&Statement) -> bool + 'a) -> impl Iterator<Item = usize> + 'a {
        (0..self.statements.len()).filter(move |&at| is(&self.statements[at]))
    }

    /// The statement before this one that writes a register as its first operand, the last of them.
    pub fn definition(&self, register: &str, before: usize) -> Option<usize> {
        let writes = |at: &usize| self.statements[*at].operands().first().is_some_and(|to| to == register);
        self.beginning(register).iter().rev().copied().filter(|at| *at < before).find(writes)
    }

    /// The statements of a wait around its `mbarrier.try_wait`: the label, the question, the branch back.
    pub fn wait_loop(&self, at: usize) -> Option<std::ops::Range<usize>> {
        let label = at.checked_sub(1)?;
        let asks = self.statements.get(at).is_some_and(|s| s.is("mbarrier.try_wait") || s.is("mbarrier.test_wait"));
        (asks && self.target(at + 1) == Some(label)).then_some(label..at + 2)
    }

    /// This line, indented as it is, with another statement in it.
    pub fn in_line(&self, line: usize, code: &str) -> String {
        let indent: String = self.lines[line].chars().take_while(|c| *c == ' ').collect();
        indent + code
    }

    /// The text with other lines.
    pub fn with(&self, changes: &[(usize, String)]) -> String {
        let mut lines: Vec<&str> = self.lines.iter().map(String::as_str).collect();
        for (line, to) in changes {
            if let Some(line) = lines.get_mut(*line) {
                *line = to;
            }
        }
        lines.join("\n") + "\n"
    }
}

/// A register stands in a statement.
fn note(all: &mut HashMap<String, Vec<usize>>, register: &str, at: usize) {
    match all.get_mut(register) {
        Some(known) if known.last() == Some(&at) => {}
        Some(known) => known.push(at),
        None => _ = all.insert(register.to_string(), vec![at]),
    }
}

/// What a line holds, if that is one label or one instruction.
fn read(line: &str) -> Option<Body> {
    let line = line.split("//").next().unwrap_or_default().trim();
    if let Some(name) = line.strip_suffix(':') {
        return Some(Body::Label(name.to_string()));
    }
    let code = line.strip_suffix(';')?.trim();
    if code.contains(';') || code.starts_with('.') || code.is_empty() {
        return None;
    }
    let (guard, code) = match code.strip_prefix('@') {
        Some(rest) => {
            let (register, rest) = rest.split_once(' ')?;
            let negated = register.starts_with('!');
            (Some(Guard { register: register.trim_start_matches('!').to_string(), negated }), rest.trim())
        }
        None => (None, code),
    };
    let (opcode, operands) = code.split_once(' ').unwrap_or((code, ""));
    Some(Body::Instruction { guard, opcode: opcode.to_string(), operands: split(operands) })
}

/// Operands, apart: commas within braces and brackets belong to them.
fn split(operands: &str) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut depth = 0;
    for c in operands.chars() {
        match c {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            _ => {}
        }
        match all.last_mut() {
            Some(last) if c != ',' || depth > 0 => last.push(c),
            _ => all.push(String::new()),
        }
    }
    all.into_iter().map(|one| one.trim().to_string()).filter(|one| !one.is_empty()).collect()
}

/// The registers that stand in an operand.
pub fn registers(operand: &str) -> impl Iterator<Item = &str> {
    fn is_part(byte: u8) -> bool {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'%' | b'$' | b'.')
    }
    let (bytes, mut from) = (operand.as_bytes(), 0);
    std::iter::from_fn(move || {
        loop {
            let begins = from + operand[from..].find('%')?;
            let length = bytes[begins..].iter().position(|&byte| !is_part(byte)).unwrap_or(bytes.len() - begins);
            from = begins + length;
            // Within a name it begins no register.
            if begins == 0 || !is_part(bytes[begins - 1]) {
                return Some(&operand[begins..from]);
            }
        }
    })
}

/// A number as PTX writes it.
pub fn number(operand: &str) -> Option<i64> {
    match operand.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok().map(|n| n as i64),
        None => operand.parse().ok(),
    }
}

/// An address in brackets, so many bytes further.
pub fn further(address: &str, bytes: i64) -> Option<String> {
    let inner = address.strip_prefix('[')?.strip_suffix(']')?;
    let (base, offset) = match inner.split_once('+') {
        Some((base, offset)) => (base, number(offset)?),
        None => (inner, 0),
    };
    Some(format!("[{base}+{}]", offset + bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = ".entry k()\n{\n    .reg .b32 %r<3>;\n    // a wait\n  $wait:\n    .loc 1 2 3\n    mbarrier.try_wait.parity.shared::cta.b64 %p7, [%r16], %r10;\n    @!%p7 bra $wait;\n    tcgen05.ld.x2.b32 {%f1, %f2}, [%r3+64];\n    ret;\n}\n";

    #[test]
    fn statements_are_read_and_written() {
        let text = Text::new(TEXT);
        let codes: Vec<String> = text.statements.iter().map(Statement::code).collect();
        let lines: Vec<usize> = text.statements.iter().map(|s| s.line).collect();
        assert_eq!(lines, [4, 6, 7, 8, 9]);
        for (code, line) in codes.iter().zip(lines) {
            assert_eq!(code, text.lines[line].trim());
        }
        assert_eq!(text.statements[3].operands(), ["{%f1, %f2}", "[%r3+64]"]);
        assert_eq!((text.target(2), text.wait_loop(1)), (Some(0), Some(0..3)));
        assert_eq!((text.branches(), text.end()), (&[(2, 0)][..], Some(4)));
        assert_eq!(
            (text.touching("%p7"), text.touching("%r10"), text.touching("%r1")),
            (&[1, 2][..], &[1][..], &[][..])
        );
        assert_eq!((text.beginning("%p7"), text.beginning("%r10")), (&[1][..], &[][..]));
        assert_eq!(text.with(&[]), TEXT);
    }

    #[test]
    fn operands_are_taken_apart() {
        assert_eq!(registers("{%f1, %f2}").collect::<Vec<_>>(), ["%f1", "%f2"]);
        assert_eq!(registers("[%r3+64]").collect::<Vec<_>>(), ["%r3"]);
        assert_eq!(registers("_|%p2").collect::<Vec<_>>(), ["%p2"]);
        assert_eq!(registers("a%b, {%tid.x; é%c}, 1").collect::<Vec<_>>(), ["%tid.x", "%c"]);
        assert_eq!((number("0x10"), number("16"), number("%r1")), (Some(16), Some(16), None));
        assert_eq!(further("[%r3]", 8).as_deref(), Some("[%r3+8]"));
        assert_eq!(further("[dynamic_shared+8]", -8).as_deref(), Some("[dynamic_shared+0]"));
        assert!(Text::new(TEXT).statements[1].is("mbarrier.try_wait"));
    }
}
