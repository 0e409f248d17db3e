//! What is refused while building: the message, the way out, and the line of the call.

mod barriers;
mod hopper;
mod language;
mod memory;
mod tma;

use expect_test::Expect;
use ptx::prelude::*;

/// The errors, one a block, with places as lines after the call of this function.
#[track_caller]
fn check(body: impl FnOnce(&mut Cta, &Gemm), expected: Expect) {
    let caller = std::panic::Location::caller();
    let begin = caller.line();
    let gemm = Gemm::new(128, 128, 64, Dtype::F16, 148);
    let errors = match ptx::build("kernel", &gemm, body) {
        Err(errors) => errors,
        Ok(kernel) => panic!("built without an error:\n{}", kernel.text),
    };
    let mut text = String::new();
    for error in errors {
        assert_eq!(error.place.file, caller.file(), "{error}");
        let (line, message) = (error.place.line - begin, relative(&error.message, caller.file(), begin));
        text += &format!("+{line}: {message}\n    {}\n", error.help);
    }
    expected.assert_eq(&text);
}

/// The message with a place in this file written as lines after `begin`.
fn relative(message: &str, file: &str, begin: u32) -> String {
    let Some((before, place)) = message.split_once(file) else { return message.to_string() };
    let number = |text: &str| text.chars().take_while(char::is_ascii_digit).collect::<String>();
    let line = number(&place[1..]);
    let column = number(&place[2 + line.len()..]);
    let after = &place[2 + line.len() + column.len()..];
    format!("{before}+{}{after}", line.parse::<u32>().expect("a line number") - begin)
}
