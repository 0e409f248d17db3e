//! What is larger than an instruction: modules, functions, variables, scopes, debug information.

use super::super::ast::{SourceLine, Statement, Variable};
use super::super::parse;
use super::{DIALECT, PIPELINE, body, function, module, show_all};

fn variable(text: &str) -> Variable {
    module(text).variables.pop().expect(text)
}

/// Statements, one word each.
fn outline(statements: &[Statement]) -> String {
    let words = statements.iter().map(|statement| match statement {
        Statement::Variable(variable) => variable.name.clone(),
        Statement::Label(name, _) => format!("{name}:"),
        Statement::Instruction(instruction) => instruction.opcode.clone(),
        Statement::Block(inner) => format!("{{ {} }}", outline(inner)),
        Statement::Prototype(function) => format!("prototype {}", function.name),
        Statement::Targets(name, targets, _) => format!("{name}->{}", targets.join("|")),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn the_header() {
    let parsed =
        parse("// made by hand\n.version 9.12\n.target sm_103a, texmode_unified,debug\n").expect("no kernel, no error");
    assert_eq!(parsed.version, (9, 12));
    assert_eq!(parsed.targets, ["sm_103a", "texmode_unified", "debug"]);
    assert!(parse(".version 8.6 .target sm_100f .address_size 64").is_ok());
}

#[test]
fn nul_bytes_at_the_end() {
    assert_eq!(module(".entry k { ret; }\n\0\0").functions.len(), 1);
}

#[test]
fn carriage_returns_count_as_blanks() {
    let parsed = module(".entry k {\r\n  ret;\r\n}\r\n");
    let Some(Statement::Instruction(ret)) = parsed.functions[0].body.as_ref().and_then(|body| body.first()) else {
        panic!()
    };
    assert_eq!((ret.span.line, ret.span.column), (3, 3));
}

#[test]
fn entries_and_functions() {
    let parsed = module(
        ".entry bare { ret; } .visible .entry empty() { ret; }
         .visible .entry full(.param .align 64 .b8 map[128], .param .u64 .ptr .global .align 16 a, .param .u64 .ptr b)
         .reqntid 128, 1, 1 .maxnreg 64 .explicitcluster .reqnctapercluster 2 .maxclusterrank 8 .blocksareclusters
         .pragma \"nounroll\"; .minnctapersm 1 .maxntid 64,2 { ret; }
         .extern .func (.param .b32 r) vprintf (.param .b64 f, .param .align 8 .b8 rest[]);
         .func leave .noreturn;
         .weak .func (.reg .b32 r) twice (.reg .b32 x) { add.s32 r, x, x; ret; }
         .alias other, twice;",
    );
    let names: Vec<_> = parsed.functions.iter().map(|f| (f.name.as_str(), f.is_entry, f.body.is_some())).collect();
    let expected = [
        ("bare", true, true),
        ("empty", true, true),
        ("full", true, true),
        ("vprintf", false, false),
        ("leave", false, false),
        ("twice", false, true),
    ];
    assert_eq!(names, expected);
    assert_eq!(parsed.aliases, [("other".to_owned(), "twice".to_owned())]);

    let full = function(&parsed, "full");
    assert_eq!(full.linkage, ["visible"].map(|name| format!(".{name}")));
    let directives: Vec<_> =
        full.directives.iter().map(|(name, values, _)| (name.as_str(), values.as_slice())).collect();
    let expected: [(&str, &[u64]); 8] = [
        ("reqntid", &[128, 1, 1]),
        ("maxnreg", &[64]),
        ("explicitcluster", &[]),
        ("reqnctapercluster", &[2]),
        ("maxclusterrank", &[8]),
        ("blocksareclusters", &[]),
        ("minnctapersm", &[1]),
        ("maxntid", &[64, 2]),
    ];
    assert_eq!(directives, expected);
    let [map, a, b] = full.params.as_slice() else { panic!("{:?}", full.params) };
    assert_eq!((map.align, map.ty.as_str(), map.dimensions.as_slice()), (Some(64), "b8", [Some(128)].as_slice()));
    assert_eq!((a.ty.as_str(), a.align, a.pointer.clone()), ("u64", None, Some((Some("global".into()), Some(16)))));
    assert_eq!(b.pointer, Some((None, None)));

    let vprintf = function(&parsed, "vprintf");
    assert_eq!((vprintf.returns.len(), vprintf.params.len()), (1, 2));
    assert_eq!(vprintf.params[1].dimensions, [None]);
    assert_eq!(function(&parsed, "leave").directives[0].0, "noreturn");
    assert_eq!(function(&parsed, "twice").returns[0].space, "reg");
}

#[test]
fn variables() {
    let dynamic = variable(".extern .shared .align 1024 .b8 pool[];");
    assert_eq!(
        (dynamic.linkage, dynamic.space, dynamic.align, dynamic.dimensions),
        (vec![".extern".to_owned()], "shared".into(), Some(1024), vec![None])
    );
    assert_eq!(variable(".common .global .attribute(.managed) .b32 g;").linkage, [".common"]);
    assert_eq!(variable(".shared::cta .b64 bar;").space, "shared");
    let several = module(".weak .const .v4 .f32 a, b[2][3];").variables;
    assert_eq!(several.len(), 2);
    assert_eq!(
        (several[1].vector.as_deref(), several[1].dimensions.as_slice()),
        (Some("v4"), [Some(2), Some(3)].as_slice())
    );

    let statements = body(".reg .pred p, %q<4>; .reg.b128 %x<1000000>; .local .align 16 .b8 depot[64];");
    assert_eq!(outline(&statements), "p %q %x depot");
    let counts: Vec<_> =
        statements.iter().map(|s| if let Statement::Variable(v) = s { v.count } else { None }).collect();
    assert_eq!(counts, [None, Some(4), Some(1_000_000), None]);
}

#[test]
fn initialisers() {
    let initial = |text: &str| show_all(&variable(text).initial);
    assert_eq!(initial(".global .b32 g;"), "");
    assert_eq!(initial(".global .b32 g = 4;"), "4");
    assert_eq!(initial(".global .b8 g[] = {1, 0x2, 1+2, -4};"), "1, 2, 3, -4");
    assert_eq!(initial(".global .f32 g[2] = {1.5, 0f3F800000};"), "f64:1.5, f32:3f800000");
    assert_eq!(
        initial(".global .u64 g[4] = {h, h+4, generic(h), generic(h)+8};"),
        "h, h + 4, generic h + 0, generic h + 8"
    );
    assert_eq!(initial(".global .u8 g[8] = {0xff(h), 0xff00(h)};"), "0xff of h + 0, 0xff00 of h + 0");
    // Only the inner braces are filled up: what an outer one leaves out is zero anyway.
    assert_eq!(initial(".global .b32 g[3][2] = {{1}, {2, 3}};"), "1, 0, 2, 3");
    assert_eq!(initial(".global .b32 g[2][2][2] = {{{1}, {2}}, {{3}}};"), "1, 0, 2, 0, 3, 0, 0, 0");
    assert_eq!(initial(".global .v2 .b32 g[2] = {{1}, {2, 3}};"), "1, 0, 2, 3");
}

#[test]
fn scopes_labels_and_lines() {
    let text = "L: { .reg .pred P1; WAIT: @P1 bra DONE; bra WAIT; DONE: } a: b: ret; { } { { trap; } } end:";
    assert_eq!(outline(&body(text)), "L: { P1 WAIT: bra bra DONE: } a: b: ret {  } { { trap } } end:");
    let text = "T: .branchtargets A, B; C: .calltargets f; P : .callprototype (.param .b32 _) _ (.param .b64 _, .param .b8 _[4]) .noreturn; Q: .callprototype _;";
    let statements = body(text);
    assert_eq!(outline(&statements), "T->A|B C->f prototype P prototype Q");
    let Statement::Prototype(prototype) = &statements[2] else { panic!() };
    assert_eq!((prototype.returns.len(), prototype.params.len(), prototype.directives.len()), (1, 2, 1));
}

#[test]
fn an_instruction_has_the_loc_in_force() {
    let parsed = module(
        ".file 1 \"C:\\a.rs\", 17, 4096 .file 2 \"b.rs\"
         .entry one { ret; .loc 1 10 5 ret; { ret; .loc 2 7 0, function_name $name+4, inlined_at 1 3 9 ret; } ret; }
         .entry two { ret; }",
    );
    assert_eq!(parsed.files, [(1, "C:\\a.rs".to_owned()), (2, "b.rs".to_owned())]);
    fn sources(statements: &[Statement], into: &mut Vec<Option<SourceLine>>) {
        for statement in statements {
            match statement {
                Statement::Instruction(instruction) => into.push(instruction.source),
                Statement::Block(inner) => sources(inner, into),
                _ => {}
            }
        }
    }
    let mut found = Vec::new();
    for function in &parsed.functions {
        sources(function.body.as_deref().unwrap_or_default(), &mut found);
    }
    let first = Some(SourceLine { file: 1, line: 10, column: 5 });
    let second = Some(SourceLine { file: 2, line: 7, column: 0 });
    // The second function begins without one.
    assert_eq!(found, [None, first, first, second, second, None]);
}

#[test]
fn debug_sections_and_pragmas_are_passed_over() {
    let text = ".pragma \"a\", \"b\"; .section .debug_abbrev { .b8 1,2 $L: .b64 $L-4 .b32 .debug_line { .4byte 7 } }
                .section .debug_str {} .entry k { .pragma \"used_bytes_mask 0xf\"; ret; }";
    assert_eq!(outline(module(text).functions[0].body.as_deref().expect("a body")), "ret");
}

#[test]
fn whole_files() {
    let parsed = parse(PIPELINE).expect("ptxas takes it");
    assert_eq!(parsed.functions[0].params.len(), 4);
    assert_eq!(parsed.functions[0].body.as_ref().map(Vec::len), Some(68));
    let parsed = parse(DIALECT).expect("ptxas takes it");
    assert_eq!(
        parsed.functions.iter().map(|f| f.name.as_str()).collect::<Vec<_>>(),
        ["vprintf", "twice", "empty", "zoo"]
    );
    assert_eq!(show_all(&parsed.variables[1].initial), "1, 2, 3, -4, 0, 0");
}
