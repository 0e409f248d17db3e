//! What is said about texts that are not PTX.

use expect_test::{Expect, expect};

use super::super::parse;

/// The errors of a text behind a header of one line.
fn errors(text: &str, expected: Expect) {
    whole(&format!(".version 8.8 .target sm_100a .address_size 64\n{text}"), expected);
}

fn whole(text: &str, expected: Expect) {
    let errors = parse(text).map(|_| ()).expect_err(text);
    let lines: String =
        errors.iter().map(|e| format!("{}:{}: {}\n    {}\n", e.span.line, e.span.column, e.message, e.help)).collect();
    expected.assert_eq(&lines);
}

#[test]
fn no_header() {
    whole(
        "",
        expect![[r#"
        1:1: found the end of the text, expected `.version`
            a module begins with `.version 8.8`, then `.target sm_100a`, then `.address_size 64`
    "#]],
    );
    whole(
        ".entry k { ret; }",
        expect![[r#"
        1:1: found `.entry`, expected `.version`
            a module begins with `.version 8.8`, then `.target sm_100a`, then `.address_size 64`
    "#]],
    );
    whole(
        ".version 8 .target sm_100a",
        expect![[r#"
        1:10: found `8`, expected a version
            a version is written `.version 8.8`
    "#]],
    );
}

#[test]
fn two_modules_in_one_text() {
    errors(
        ".entry k { ret; }\n.version 8.8\n.target sm_100a\n.entry l { ret; }",
        expect![[r#"
        3:1: found `.version`, expected a declaration
            a module has one header; of several modules in one text, parse each on its own
    "#]],
    );
}

#[test]
fn a_missing_semicolon_is_reported_where_it_is_missing() {
    errors(
        ".entry k {\n  mov.u32 %r1, 5\n  add.u32 %r1, %r1, 1;\n  ret\n}",
        expect![[r#"
        3:16: found `add.u32` on line 4, expected `,` or `;` behind this
            a statement ends with `;`, and has `,` between its operands
        5:3: found `}` on line 6, expected an operand or `;` behind this
            a statement ends with `;`, and has `,` between its operands
    "#]],
    );
}

#[test]
fn a_missing_brace_does_not_swallow_the_next_kernel() {
    errors(
        ".entry k {\n  { ret;\n.visible .entry l {\n  mov.u32 %r1 5;\n}",
        expect![[r#"
        4:1: found `.visible`, expected `}`
            the block that begins on line 3 needs its `}`
        5:15: found `5`, expected `,` or `;`
            a statement ends with `;`, and has `,` between its operands
    "#]],
    );
}

#[test]
fn a_truncated_text_gives_one_error() {
    errors(
        ".entry k {\n  {\n    mov.b32 {%r1, %r2",
        expect![[r#"
        4:22: found the end of the text, expected `,` or `}`
            the elements of a vector stand between braces
    "#]],
    );
    errors(
        ".entry k {\n  ret; /* and so",
        expect![[r#"
        3:8: found `/*` and then the end of the text, expected `*/`
            close the comment; comments do not nest
    "#]],
    );
    errors(
        ".entry k (.param .u64 a,",
        expect![[r#"
        2:25: found the end of the text, expected a state space
            state spaces are .reg, .param, .shared, .global, .const and .local: `.reg .b32 name`
    "#]],
    );
    errors(
        ".section .debug_info {\n  .b8 1,",
        expect![[r#"
        3:9: found the end of the text, expected `}`
            the section that begins on line 2 needs its `}`
    "#]],
    );
}

#[test]
fn operands() {
    errors(
        ".entry k {
  mov.u32 %r1, , 5;
  mov.u32 %r1, -%r2;
  ld.shared.b32 %r1, [%r2+%r3];
  ld.shared.b32 %r1, [%r2;
  mov.b64 {%r1 %r2}, %rd1;
  mov.u32 %r1, shared::cta;
  ret;
}",
        expect![[r#"
            3:16: found `,`, expected an operand
                operands are names, numbers, `{a, b}`, `[address]`, `p|q`, `!p` and `_`
            4:17: found `%r2`, expected a number
                only numbers may be combined here
            5:27: found `%r3`, expected a number
                an address is `[name + number]`, `[number]` or `[name, {coordinates}]`
            6:26: found `;`, expected `]`
                an address is `[name + number]`, `[number]` or `[name, {coordinates}]`
            7:16: found `%r2`, expected `,` or `}`
                the elements of a vector stand between braces
            8:16: found `shared::cta`, expected an operand
                operands are names, numbers, `{a, b}`, `[address]`, `p|q`, `!p` and `_`
        "#]],
    );
}

#[test]
fn numbers() {
    errors(
        ".entry k {
  mov.u32 %r1, 0x1G;
  mov.u32 %r1, 089;
  mov.u64 %r1, 18446744073709551616;
  mov.f32 %f1, 0f3F80;
  mov.f32 %f1, -0f3F800000;
  mov.f32 %f1, 1e999;
  mov.u32 %r1, 1/0;
}",
        expect![[r#"
            3:16: found `0x1G`, expected hex digits behind `0x`
                integers are written 42, 0x2A, 052, 0b101010 or 42U; floats 1.5, 0f3FC00000 or 0d3FF8000000000000
            4:16: found `089`, expected an octal number (it begins with 0)
                integers are written 42, 0x2A, 052, 0b101010 or 42U; floats 1.5, 0f3FC00000 or 0d3FF8000000000000
            5:16: found `18446744073709551616`, expected an integer of at most 64 bits
                integers are written 42, 0x2A, 052, 0b101010 or 42U; floats 1.5, 0f3FC00000 or 0d3FF8000000000000
            6:16: found `0f3F80`, expected 8 hex digits behind `0f`
                integers are written 42, 0x2A, 052, 0b101010 or 42U; floats 1.5, 0f3FC00000 or 0d3FF8000000000000
            7:17: found `-` before `0f3F800000`, expected the bits alone
                the sign is the highest of the bits: -1 is 0fBF800000
            8:16: found `1e999`, expected a decimal number in the range of 64-bit floats
                integers are written 42, 0x2A, 052, 0b101010 or 42U; floats 1.5, 0f3FC00000 or 0d3FF8000000000000
            9:17: found a division by 0, expected another divisor
                constant expressions are evaluated when the text is read
        "#]],
    );
}

#[test]
fn declarations() {
    errors(
        ".entry k {
  .reg .b33 %r<4>;
  .reg .b32 %r<4294967295>;
  .shared .align 12 .b8 a[4];
  .shared .b8 a[4;
  .reg .b32 5;
}
.global .b32 g[2][2] = {{1, 2, 3}};
.global .b32 h[4] = {1, 2,};
.global .b8 i[1000000000][1000000000] = {{1}};",
        expect![[r#"
            3:8: found `.b33`, expected a type
                types are .b8 to .b128, .u8 to .u64, .s8 to .s64, .f16 to .f64, .pred and the like
            4:16: found 4294967295 registers, expected at most 1000000
                `%r<8>` declares %r0 to %r7
            5:18: found the alignment 12, expected a power of two
                `.align` takes 1, 2, 4, 8, … bytes
            6:18: found `;`, expected `]`
                an array is declared as `name[4]`, or `name[]` where its size comes from elsewhere
            7:13: found `5`, expected a name
                a declaration is written `.reg .b32 name;`
            9:25: found 3 values between braces, expected at most 2
                the dimension says how many values it holds
            10:27: found `}`, expected a value
                initial values are numbers, names, `name+4`, `generic(name)` and `0xFF(name)`
            11:42: found 1 of 1000000000 values, expected more of them
                write the zeros out, or leave the initialiser away
        "#]],
    );
}

#[test]
fn statements() {
    errors(
        ".entry k {
  %r1 = 5;
  @5 bra L;
  @%p1 { ret; }
  .sharde .b8 a[4];
  .loc 1 5;
  ret;;
}",
        expect![[r#"
            3:3: found `%r1`, expected an instruction
                an instruction is written `opcode operand, operand;`
            4:4: found `5`, expected a predicate
                a guard is written `@p` or `@!p`
            5:8: found `{`, expected an instruction
                a guard is for one instruction; branch around a block
            6:3: found `.sharde`, expected a statement
                a statement is an instruction, a label, a declaration, `.loc` or `{ … }`
            7:11: found `;`, expected a column
                `.loc` is written `.loc file line column`
            8:7: found `;`, expected a statement
                a statement has one `;`, a block and a label have none
        "#]],
    );
}

#[test]
fn heads_of_functions() {
    errors(
        ".entry k(.u32 a) { ret; }",
        expect![[r#"
        2:10: found `.u32`, expected a state space
            state spaces are .reg, .param, .shared, .global, .const and .local: `.reg .b32 name`
    "#]],
    );
    errors(
        ".entry k .reqntid { ret; }",
        expect![[r#"
        2:19: found `{`, expected a number
            `.reqntid` takes up to 3 numbers
    "#]],
    );
    errors(
        ".entry k .maxregs 5 { ret; }",
        expect![[r#"
        2:10: found `.maxregs`, expected `{`, `;` or a performance directive
            behind the parameters stand .maxnreg, .maxntid, .reqntid, .minnctapersm, .explicitcluster, .reqnctapercluster, .maxclusterrank, .blocksareclusters, .noreturn or .pragma, then the body
    "#]],
    );
    errors(
        "mov.u32 %r1, 5;",
        expect![[r#"
        2:1: found `mov.u32`, expected a declaration
            outside of functions stand .entry, .func, .global, .const and .shared variables, .file and .section
    "#]],
    );
}

#[test]
fn characters() {
    errors(
        ".entry k {\n  mov.u32 %r1, 5£;\n  mov.u32 %r1, \0 5;\n  mov.u32 %r1, #5;\n  .pragma \"open;\n}",
        expect![[r#"
            3:17: found the character `£` (U+00A3), expected `,` or `;`
                PTX text is ASCII outside of comments and strings
            4:16: found a NUL byte with text behind it, expected an operand
                NUL bytes may only stand at the end of the text
            5:16: found `#`, expected an operand
                operands are names, numbers, `{a, b}`, `[address]`, `p|q`, `!p` and `_`
            6:11: found a string without its closing `"`, expected it on the same line
                close the string
        "#]],
    );
    whole(
        "\u{feff}.version 8.8",
        expect![[r#"
        1:1: found the character (U+FEFF), expected `.version`
            PTX text is ASCII outside of comments and strings
    "#]],
    );
}

#[test]
fn at_most_ten() {
    let text = format!(".version 8.8 .target sm_100a .entry k {{ {} }}", "ret 5 5; ".repeat(100));
    assert_eq!(parse(&text).expect_err("nonsense").len(), super::super::MAX_ERRORS);
}
