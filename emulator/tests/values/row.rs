//! A row: a few statements, what they must leave in memory, and what must be found when one of them is left out.

use crate::common::{codes, holding, load, notes, run, schedules, word64, zeroes};
use emulator::{Launch, Param, Program, Report, TensorMap};

/// Words of 64 bits in the buffer `out`.
const WORDS: usize = 1 << 15;

/// One row of the tables.
#[derive(Clone, Default)]
pub struct Row {
    /// What is executed, between what every kernel here has around it ([`kernel`]).
    pub body: String,
    /// Statements around the body that the row does not stand for: set-up and tear-down.
    around: (String, String),
    threads: u32,
    ctas: u32,
    cluster: u32,
    resident: Option<u32>,
    input: Vec<u8>,
    map: Option<(usize, TensorMap)>,
    expected: Vec<(usize, u64)>,
    without: Vec<(String, String, &'static str)>,
    hopper: bool,
}

/// Statements of one thread that leave their result in `%d0`, or in `%r0`, which is widened.
pub fn one(body: &str, expected: u64) -> Row {
    let wide = body.contains("%d0");
    let end = if wide { "" } else { "cvt.u64.u32 %d0, %r0;\n" };
    let end = format!("{end}st.global.b64 [%d9], %d0;");
    Row { expected: vec![(0, expected)], ..bare(1, body) }.around("", &end)
}

/// Statements of so many threads; each leaves its result in `%r0`, for the thread's own word.
pub fn each(threads: u32, body: &str, expected: impl Fn(u64) -> u64) -> Row {
    let expected = (0..threads as usize).map(|n| (n, expected(n as u64))).collect();
    Row { expected, ..bare(threads, body) }.around("", "cvt.u64.u32 %d0, %r0;\nst.global.b64 [%d9], %d0;")
}

/// Statements that store what they leave themselves.
pub fn bare(threads: u32, body: &str) -> Row {
    Row { body: body.into(), threads, ctas: 1, cluster: 1, ..Row::default() }
}

impl Row {
    pub fn ctas(self, ctas: u32, cluster: u32) -> Row {
        Row { ctas, cluster, ..self }
    }

    /// Clusters that run at once.
    pub fn resident(self, clusters: u32) -> Row {
        Row { resident: Some(clusters), ..self }
    }

    /// For `sm_90a`.
    pub fn hopper(self) -> Row {
        Row { hopper: true, ..self }
    }

    pub fn input(self, input: Vec<u8>) -> Row {
        Row { input, ..self }
    }

    /// A tensor map of the buffer `in`, or of `out`.
    pub fn map(self, map: TensorMap, of_out: bool) -> Row {
        Row { map: Some((usize::from(!of_out), map)), ..self }
    }

    /// Statements before and behind those that the row stands for.
    pub fn around(self, before: &str, behind: &str) -> Row {
        let (a, b) = self.around;
        Row { around: (format!("{before}\n{a}"), format!("{b}\n{behind}")), ..self }
    }

    /// One more statement of the set-up, behind this one.
    pub fn around_set_up(mut self, behind: &str, statement: &str) -> Row {
        assert!(self.around.0.contains(behind), "`{behind}` is not in\n{}", self.around.0);
        self.around.0 = self.around.0.replace(behind, &format!("{behind}\n{statement}"));
        self
    }

    /// These words of `out`, from word `at` on.
    pub fn gives(mut self, at: usize, words: &[u64]) -> Row {
        self.expected.extend(words.iter().enumerate().map(|(n, &w)| (at + n, w)));
        self
    }

    /// With this passage left out, there is a finding, or a note, on every schedule.
    pub fn without(self, passage: &str, code: &'static str) -> Row {
        self.with(passage, "", code)
    }

    /// With something else in place of this passage, there is a finding, or a note, on every schedule.
    pub fn with(mut self, passage: &str, instead: &str, code: &'static str) -> Row {
        self.without.push((passage.into(), instead.into(), code));
        self
    }

    /// With something else in place of a passage of the body.
    pub fn replaced(self, passage: &str, instead: &str) -> Row {
        assert!(self.body.contains(passage), "`{passage}` is not in\n{}", self.body);
        Row { body: self.body.replace(passage, instead), ..self }
    }

    /// The opcodes that the row stands for.
    pub fn opcodes(&self) -> Vec<String> {
        let body: String = self.body.lines().map(|l| l.split("//").next().unwrap_or(l)).collect::<Vec<_>>().join("\n");
        let mut list = Vec::new();
        for piece in body.replace(['{', '}'], " ; ").split([';', '\n']) {
            let mut words = piece.split_whitespace().skip_while(|w| w.starts_with('@') || w.ends_with(':'));
            if let Some(word) = words.next().filter(|w| w.starts_with(|c: char| c.is_ascii_lowercase())) {
                list.push(word.to_string());
            }
        }
        list
    }

    /// The whole kernel.
    pub fn text(&self) -> String {
        let text = kernel(&format!("{}\n{}\n{}", self.around.0, self.body, self.around.1));
        if self.hopper { text.replace(".target sm_100a", ".target sm_90a") } else { text }
    }

    pub fn launch(&self) -> Launch {
        let map = match &self.map {
            Some((buffer, map)) => Param::TensorMap { buffer: *buffer, map: map.clone() },
            None => Param::Bytes(vec![0; 128]),
        };
        let pointer = |buffer| Param::Pointer { buffer, offset: 0 };
        let mut input = self.input.clone();
        input.resize(input.len().max(16), 0);
        let mut launch = Launch {
            entry: "k".into(),
            grid: [self.ctas, 1, 1],
            cluster: [self.cluster, 1, 1],
            block: [self.threads, 1, 1],
            buffers: vec![zeroes("out", 8 * WORDS as u64), holding("in", input)],
            params: vec![pointer(0), pointer(1), map],
            ..Default::default()
        };
        launch.attributes.resident_clusters = self.resident;
        launch
    }

    /// A run of a program that takes what the row's takes.
    pub fn run(&self, program: &Program, seed: Option<u64>) -> Report {
        run(program, &self.launch(), seed, 2_000_000)
    }

    /// What is wrong with the row, if anything.
    fn check(&self) -> Result<(), String> {
        let text = self.text();
        let program = emulator::load(&text).map_err(|e| format!("does not load: {e:#?}"))?;
        let adversarial = if self.threads == 1 && self.ctas == 1 { 0 } else { 3 };
        for seed in schedules(adversarial) {
            let report = self.run(&program, seed);
            if !report.is_clean() {
                return Err(format!("seed {seed:?}: {:#?}", report.findings));
            }
            for &(n, word) in &self.expected {
                let found = word64(&report, n);
                if found != word {
                    return Err(format!("seed {seed:?}: word {n} is {found:#x}, expected {word:#x}"));
                }
            }
        }
        for (passage, instead, code) in &self.without {
            if !text.contains(passage) {
                return Err(format!("`{passage}` is not in the kernel"));
            }
            let broken = load(&text.replace(passage, instead));
            for seed in schedules(2) {
                let report = self.run(&broken, seed);
                let codes = [codes(&report), notes(&report)].concat();
                if !codes.contains(code) {
                    return Err(format!("`{instead}` for `{passage}`, seed {seed:?}: {codes:?}, expected {code}"));
                }
            }
        }
        Ok(())
    }
}

/// Checks a table, and says all that is wrong with it.
#[track_caller]
pub fn check(rows: &[Row]) {
    let wrong: Vec<String> =
        rows.iter().filter_map(|row| row.check().err().map(|why| format!("{}\n    {why}", row.body))).collect();
    assert!(wrong.is_empty(), "{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"));
}

/// A kernel around a body. `%d8` points to `out`, `%d9` to the thread's own word of it (8 bytes), `%d7` to `in`, `%d6` to the
/// tensor map; `%r99` is the thread's number, over all CTAs, `%r98` its number in the CTA, `%r97` the CTA's rank.
pub fn kernel(body: &str) -> String {
    format!(
        ".version 9.2\n.target sm_100a, debug\n.address_size 64\n\
         .global .align 16 .b32 table[4] = {{10, -1, 0x30, 0}};\n.const .align 8 .f32 half[4] = {{0f3F000000, 2.5, -1.0, 8.0}};\n\
         .global .align 8 .u64 at_table = generic(table)+8;\n.global .align 8 .b64 counter;\n\
         .visible .entry k(.param .u64 out, .param .u64 in, .param .align 64 .b8 map[128])\n{{\n\
         .local .align 16 .b8 frame[32];\n.shared .align 1024 .b8 smem[32768];\n.shared .align 16 .b8 response[16];\n\
         .shared .align 8 .b64 bar[4];\n.shared .align 4 .b32 slot;\n\
         .reg .pred %p<10>;\n.reg .b8 %b<4>;\n.reg .b16 %h<8>;\n.reg .b32 %r<100>;\n.reg .b64 %d<16>;\n.reg .f32 %f<8>;\n\
         .reg .f64 %e<4>;\n.reg .b128 %q<4>;\n.reg .b32 %x<128>;\n\
         mov.u32 %r98, %tid.x;\nmov.u32 %r97, %cluster_ctarank;\nmov.u32 %r96, %ctaid.x;\nmov.u32 %r95, %ntid.x;\n\
         mad.lo.u32 %r99, %r96, %r95, %r98;\nld.param.u64 %d8, [out];\nld.param.u64 %d7, [in];\n\
         mov.b64 %d6, map;\ncvta.param.u64 %d6, %d6;\n\
         mul.wide.u32 %d9, %r99, 8;\nadd.s64 %d9, %d9, %d8;\n\
         {body}\nret;\n}}\n\0\0"
    )
}

/// One instruction of one thread. A register is named by its class and what it holds: `b` 8 bits, `h` 16, `r` 32, `d` 64, `f` FP32, `e`
/// FP64, `p` a predicate. The result is compared as bits.
pub fn op(opcode: &str, to: char, sources: &[(char, u64)], expected: u64) -> Row {
    let mut body = String::new();
    let mut names = vec![format!("%{to}0")];
    for (n, (class, value)) in sources.iter().enumerate() {
        let n = n + 1;
        names.push(format!("%{class}{n}"));
        body += &match class {
            'h' => format!("mov.b16 %h{n}, {value:#x};\n"),
            'f' => format!("mov.b32 %f{n}, 0f{value:08X};\n"),
            'e' => format!("mov.b64 %e{n}, 0d{value:016X};\n"),
            'd' => format!("mov.b64 %d{n}, {value:#x};\n"),
            'b' => format!("cvt.u8.u32 %b{n}, {value:#x};\n"),
            'p' => format!("setp.eq.u32 %p{n}, {value}, 1;\n"),
            _ => format!("mov.b32 %{class}{n}, {value:#x};\n"),
        };
    }
    let end = match to {
        'b' => "cvt.u32.u8 %r0, %b0;",
        'h' => "cvt.u32.u16 %r0, %h0;",
        'f' => "mov.b32 %r0, %f0;",
        'e' => "mov.b64 %d0, %e0;",
        'p' => "selp.b32 %r0, 1, 0, %p0;",
        _ => "",
    };
    one(&format!("{body}{opcode} {};\n{end}", names.join(", ")), expected)
}

/// The same register class for the result and all sources.
pub fn same(opcode: &str, class: char, sources: &[u64], expected: u64) -> Row {
    op(opcode, class, &sources.iter().map(|&s| (class, s)).collect::<Vec<_>>(), expected)
}
