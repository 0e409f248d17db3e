// family: words of the judge
// expect: does-not-compile
// says: 5 of 5

compile_error!("\u{1b}[2J\u{1b}[1;1H 5 of 5");
