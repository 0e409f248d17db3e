//! What is said of names that stand for nothing: what was probably meant, or how to declare it.

use super::lower::{Binding, Lowering, not_modelled, wrong};
use super::{Bad, decode, near};

/// Two names that are a letter or so and a number each: registers of different ranges.
fn numbered(one: &str, other: &str) -> bool {
    let stem = |name: &str| name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    stem(one) < one.len() && stem(other) < other.len() && one[..stem(one)] != other[..stem(other)] && stem(one) <= 3
}

/// What CUDA calls so.
fn cuda_name(name: &str) -> Option<String> {
    const NAMES: &[(&str, &str)] = &[
        ("threadidx", "%tid"),
        ("blockidx", "%ctaid"),
        ("blockdim", "%ntid"),
        ("griddim", "%nctaid"),
        ("clusteridx", "%clusterid"),
        ("clusterdim", "%cluster_nctaid"),
        ("laneid", "%laneid"),
        ("warpid", "%warpid"),
        ("warpsize", "WARP_SZ"),
    ];
    let plain = name.trim_start_matches('%').to_ascii_lowercase().replace('_', "");
    let (base, axis) = plain.split_once('.').unwrap_or((&plain, ""));
    let (_, register) = NAMES.iter().find(|(cuda, _)| *cuda == base)?;
    let has_axes = decode::special_registers().iter().any(|known| *known == format!("{register}.x"));
    Some(match (has_axes, axis) {
        (false, _) => (*register).into(),
        (true, "x" | "y" | "z") => format!("{register}.{axis}"),
        (true, _) => format!("{register}.x"),
    })
}

impl Lowering {
    /// A name without meaning.
    pub fn undeclared(&self, name: &str) -> Bad {
        // Of a range that is said to be too small, no more is looked for.
        let range = name.trim_end_matches(|c: char| c.is_ascii_digit());
        if range.len() < name.len() && self.told.contains_key(range) {
            let bad = wrong(format!("`{name}` is not declared"), "Declare it, or correct the name.");
            return Bad { cause: Some(range.into()), ..bad };
        }
        self.undeclared.set(self.undeclared.get() + 1);
        if self.undeclared.get() > 16 {
            return wrong(format!("`{name}` is not declared"), "Declare it, or correct the name.");
        }
        // Where it is read it has a meaning.
        if decode::special::special(name).is_some() {
            return wrong(
                format!("`{name}` is a special register, which is only read"),
                "Name a register of your own.",
            );
        }
        if decode::special::exists(name) {
            let what = format!("the special register `{name}`");
            return not_modelled(&what, "`emulate --list-instructions` lists the special registers that are.");
        }
        if let Some(register) = cuda_name(name) {
            let help = format!("PTX calls it `{register}`: read it with `mov.u32 %r, {register};`.");
            return wrong(format!("`{name}` is not declared"), help);
        }
        let special = decode::special_registers();
        let mut names: Vec<&str> = self.scopes.iter().flat_map(|scope| scope.keys().map(String::as_str)).collect();
        names.extend(special.iter().map(String::as_str));
        names.sort_unstable();
        // Of registers that a range declares, another number is no slip.
        let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
        let number = |other: &&str| other.strip_prefix(stem).filter(|n| !n.is_empty())?.parse::<u32>().ok();
        if stem.len() < name.len()
            && let Some(most) = names.iter().filter_map(number).max()
        {
            let help = format!(
                "The highest of `{stem}<…>` that is declared is `{stem}{most}`: declare more, or correct the number."
            );
            // One declaration that is missing, whatever the number.
            let bad = wrong(format!("`{name}` is not declared"), help);
            return Bad { cause: Some(stem.into()), ..bad };
        }
        // `%tid` for `%tid.x`.
        if let Some(axis) = special.iter().find(|s| s.strip_prefix(name).is_some_and(|axis| axis.starts_with('.'))) {
            return wrong(format!("`{name}` is not declared"), format!("Name the axis, too: `{axis}`."));
        }
        let register = name.starts_with('%');
        // A register's number is no part of its word: `%x1` is no slip of `%f1`.
        let slip = near::nearest(name, names.into_iter()).filter(|near| !register || !numbered(name, near));
        let help = match slip {
            Some(near) => format!("Did you mean `{near}`? A name must be declared in this scope or in one around it."),
            None if register => format!(
                "Declare it with the type of what it holds, at the top of the kernel: `.reg .b32 {name};`; `.reg .b32 %r<8>;` declares \
                 `%r0` to `%r7`."
            ),
            None => "Declare it in this scope or in one around it, or correct the name.".into(),
        };
        wrong(format!("`{name}` is not declared"), help)
    }

    /// A label that there is not.
    pub fn no_label(&self, name: &str) -> Bad {
        let labels = self.scopes.iter().flatten().filter(|(_, binding)| matches!(binding, Binding::Label(_)));
        let mut labels: Vec<&str> = labels.map(|(name, _)| name.as_str()).collect();
        labels.sort_unstable();
        let help = match (near::nearest(name, labels.iter().copied()), labels.as_slice()) {
            (Some(near), _) => format!("Did you mean `{near}`?"),
            (None, []) => format!("Put `{name}:` in front of the statement that the branch goes to."),
            (None, some) => format!(
                "Put `{name}:` in front of the statement that the branch goes to, or name one of those that are in reach: `{}`.",
                some.iter().take(8).copied().collect::<Vec<_>>().join("`, `")
            ),
        };
        wrong(format!("there is no label `{name}`"), help)
    }
}
