//! Which further options of `grader grade` a batch passes on, `-- OPTIONS`: such that name no file.
//!
//! A grade belongs to what decides on it ([`Identity`](super::store::Identity)), and is made again from what the folder of grades keeps. A file
//! that an option names is in neither: it may be another tomorrow, and not be there on another machine. What decides on grades has options of the
//! batch itself.

/// Those of the grader that a batch passes on.
const OWN: [&str; 2] = ["--trust", "--allow-unchecked"];
/// Those that it has for itself, whatever is started in place of the grader.
const OF_BATCH: [&str; 7] = ["--rubric", "--metadata", "--verdicts", "--handed-in", "--seed", "--step", "--format"];

/// Whether these may be passed on. `other`: to a program in place of the grader, which has options of its own.
///
/// # Errors
/// The first that may not, and why.
pub fn allowed(options: &[String], other: bool) -> Result<(), String> {
    options.iter().enumerate().try_for_each(|(place, option)| {
        let own = OWN.contains(&option.as_str());
        let twice = own && options[..place].contains(option);
        let why = match own {
            _ if twice => Some("it stands there twice\n  try: Give it once.".to_string()),
            true => None,
            false => refusal(option, other),
        };
        why.map_or(Ok(()), |why| Err(format!("{option:?} cannot be an option of `grader grade` in a batch: {why}")))
    })
}

fn refusal(option: &str, other: bool) -> Option<String> {
    let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
    if OF_BATCH.contains(&name) {
        return Some(format!(
            "it decides on grades, or names a file that no grade says anything of\n  \
             try: Give it to the batch, before `--`, if it has it: {}.",
            ["--rubric", "--handed-in", "--seed", "--step"].join(", ")
        ));
    }
    if !other {
        return Some(format!("allowed are {}\n  try: Leave it out.", OWN.join(" and ")));
    }
    let plain = |text: &str| text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.:,@+".contains(&byte));
    let is_flag = name.len() > 2 && name.starts_with("--") && plain(name);
    // Neither a path nor the name of a file beside the batch.
    let names_nothing = |value: &str| plain(value) && !value.contains("..") && !std::path::Path::new(value).exists();
    if is_flag && value.is_none_or(names_nothing) {
        return None;
    }
    Some(
        "with --grade-with, allowed are --NAME and --NAME=VALUE, where VALUE is no file and no path\n  \
         try: Write into the program of --grade-with what files it needs: its hash is in the identity of each grade."
            .to_string(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_option_that_is_passed_on_names_a_file() {
        let one = |option: &str, other| allowed(&[option.to_string()], other);
        for option in OWN {
            assert!(one(option, false).is_ok() && one(option, true).is_ok(), "{option}");
        }
        for option in ["--container=registry:5000@sha256", "--gpus=2", "--quiet"] {
            assert!(one(option, true).is_ok(), "{option}");
            assert!(one(option, false).unwrap_err().contains("allowed are --trust"), "{option}");
        }
        let never = [
            "--rubric=other.toml",
            "--rubric",
            "--metadata=/etc/passwd",
            "--verdicts",
            "--seed=1",
            "--image=/images/grader.sif",
            "--image=..",
            "--image=a/../b",
            "--image=Cargo.toml",
            "-i",
            "--",
            "--=x",
            "/etc/passwd",
            "other-hand-in",
            "",
            "--a b",
        ];
        for option in never {
            for other in [false, true] {
                let why = one(option, other).expect_err(option);
                assert!(why.contains("\n  try: "), "{why}");
            }
        }
    }
}
