//! The forms that `emulate --list-instructions` prints, written out.

/// The parts of an opcode, sorted: real code writes modifiers in several orders. Hints of loads and stores are in no form, nor are cache
/// operators, which decide about speed only.
pub fn sorted(opcode: &str) -> Vec<&str> {
    let base = opcode.split('.').next().unwrap_or_default();
    let hints = ["ld", "st", "atom", "red"].contains(&base);
    let is_hint = |part: &str| {
        part.starts_with("L1::")
            || part.starts_with("L2::")
            || ["ca", "cg", "cs", "lu", "cv", "wb", "wt"].contains(&part)
    };
    let mut parts: Vec<&str> = opcode.split('.').filter(|part| !(hints && is_hint(part))).collect();
    parts.sort_unstable();
    parts
}

/// All opcodes of a form, up to the `}` or `|` that ends this part of it.
pub fn written_out(rest: &mut &str) -> Vec<String> {
    let mut all = vec![String::new()];
    while let Some(c) = rest.chars().next() {
        let mut choices = Vec::new();
        if c == '{' {
            while !rest.starts_with('}') {
                *rest = &rest[1..];
                choices.extend(written_out(rest));
            }
            *rest = &rest[1..];
            if let Some(behind) = rest.strip_prefix('?') {
                *rest = behind;
                choices.push(String::new());
            }
        } else if c == '|' || c == '}' {
            break;
        } else if let Some(behind) = rest.strip_prefix("xN") {
            *rest = behind;
            choices.extend((0..8).map(|n| format!("x{}", 1 << n)));
        } else {
            *rest = &rest[1..];
            choices.push(c.to_string());
        }
        all = all.iter().flat_map(|begun| choices.iter().map(move |choice| format!("{begun}{choice}"))).collect();
    }
    all
}
