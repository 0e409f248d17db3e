//! What is said of a kernel that could not be built.

use super::Judge;
use crate::diagnostics;
use crate::problem::Problem;
use crate::source::{BuildFailure, Unbuilt};
use crate::told::{Says, Told};
use crate::verdict::Outcome;

impl Judge<'_> {
    /// What became of `correct`: why there is no kernel for this problem, on a GPU of so many SMs.
    pub(super) fn not_built(&self, failure: &BuildFailure, problem: &Problem, sms: u32) -> Outcome {
        let sources = &self.options.sources;
        let text = match failure {
            BuildFailure::Rejected(errors) => {
                diagnostics::first_few(errors.iter().map(|error| diagnostics::refused(error, sources)).collect())
            }
            BuildFailure::Panicked { message, place: Some(place) } if place.is_of_the_kernel() => {
                let title = format!("the kernel function panicked: {message}");
                diagnostics::at(&title, place, "here", emit::source::look_at_the_panic(message), sources)
            }
            BuildFailure::Varies { message, place: Some(place), help } => {
                diagnostics::at(message, place, "refused here", help, sources)
            }
            other => {
                let Unbuilt { text, place, help, .. } = other.unbuilt();
                Told { text: format!("error: {text}\n"), says: Says { place, ..Says::help(help.unwrap_or_default()) } }
            }
        };
        let title = match failure {
            BuildFailure::Rejected(errors) => match errors.as_slice() {
                [first, ..] => first.message.clone(),
                [] => "the builder refused the kernel".to_string(),
            },
            BuildFailure::Panicked { .. } => "the kernel function panicked".to_string(),
            BuildFailure::Varies { message, place: Some(_), .. } => message.clone(),
            BuildFailure::NoAnswer { message, .. }
            | BuildFailure::Here { message }
            | BuildFailure::Varies { message, .. } => not_built(message),
        };
        let (step, plural) = (self.step.number, if sms == 1 { "" } else { "s" });
        let what_for = format!("Built for {problem} on {sms} SM{plural}, which step {step} has to solve.\n");
        Outcome::failed(title, text + what_for.as_str())
    }
}

/// Why there is no kernel, in one line: a class page counts by it, and an endless loop is no syntax error.
fn not_built(message: &str) -> String {
    // What a program said may be of any length.
    const SHOWN: usize = 160;
    let why: String = message.lines().next().unwrap_or_default().trim_end_matches(':').chars().take(SHOWN).collect();
    match why.is_empty() {
        true => "the kernel could not be built".to_string(),
        false => format!("the kernel could not be built: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_a_kernel_is_not_built_is_one_line() {
        let of_rustc = "it does not compile:\nerror: expected one of `!` or `::`\n";
        assert_eq!(not_built(of_rustc), "the kernel could not be built: it does not compile");
        let endless = "building the kernel for 128x128x64 f16 took longer than 60 s and was ended\n  try: …";
        let title = not_built(endless);
        assert!(title.ends_with("for 128x128x64 f16 took longer than 60 s and was ended"), "{title}");
        assert_eq!(not_built(""), "the kernel could not be built");
        assert!(not_built(&"é".repeat(10_000)).chars().count() < 200);
    }
}
