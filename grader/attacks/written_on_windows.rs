// family: tricks of the build
// expect: passed
// base: step01
// windows

// A byte order mark, and lines that end with CR LF: no attack, and none is seen in it.
