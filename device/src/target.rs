//! What a PTX text is made for, and which GPUs run it.

use std::fmt;

/// The `.target` of a module: `sm_90`, `sm_100a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// Compute capability, times ten: 100 for 10.0.
    pub capability: u32,
    /// Which other GPUs run it.
    pub reach: Reach,
}

/// Which GPUs run code of a target (PTX ISA, `.target`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// All of this compute capability or a later one.
    Later,
    /// Those of the same major number: `f`.
    Family,
    /// Those of this compute capability alone: `a`.
    Architecture,
}

impl Target {
    /// The target of this name.
    pub fn named(name: &str) -> Option<Target> {
        let digits = name.strip_prefix("sm_")?;
        let (digits, reach) = match digits.strip_suffix('a') {
            Some(digits) => (digits, Reach::Architecture),
            None => match digits.strip_suffix('f') {
                Some(digits) => (digits, Reach::Family),
                None => (digits, Reach::Later),
            },
        };
        Some(Target { capability: digits.parse().ok()?, reach })
    }

    /// The target that a PTX text names, outside of comments.
    pub fn of(ptx: &str) -> Option<Target> {
        ptx.lines().find_map(|line| {
            let line = line.split("//").next().unwrap_or_default().trim();
            let rest = line.strip_prefix(".target")?;
            Target::named(rest.split([',', ' ', '\t']).find(|word| !word.is_empty())?)
        })
    }

    /// Whether a GPU of this compute capability (times ten) runs it.
    pub fn runs_on(self, capability: u32) -> bool {
        match self.reach {
            Reach::Later => capability >= self.capability,
            Reach::Family => capability / 10 == self.capability / 10 && capability >= self.capability,
            Reach::Architecture => capability == self.capability,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letter = match self.reach {
            Reach::Later => "",
            Reach::Family => "f",
            Reach::Architecture => "a",
        };
        write!(f, "sm_{}{letter}", self.capability)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_run_what_was_made_for_them() {
        let runs = |target: &str, capability| Target::named(target).unwrap().runs_on(capability);
        assert!(runs("sm_80", 90) && runs("sm_90", 100) && !runs("sm_100", 90));
        assert!(runs("sm_90a", 90) && !runs("sm_90a", 100) && !runs("sm_100a", 103));
        assert!(runs("sm_100f", 103) && !runs("sm_103f", 100) && !runs("sm_100f", 120));
    }

    #[test]
    fn the_text_names_it() {
        let of = |text| Target::of(text).map(|target| target.to_string());
        assert_eq!(of("// .target sm_90\n.version 8.6\n.target sm_100a, debug\n").as_deref(), Some("sm_100a"));
        assert_eq!(
            (of(".target\tsm_75"), of(".version 8.6"), of(".target compute_90")),
            (Some("sm_75".into()), None, None)
        );
    }
}
