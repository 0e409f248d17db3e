//! Of each rule of equivalence, something that it proves, and the same a step beside its premise, which it must not prove.

use super::super::maps::MapChange;
use super::super::{Change, Kind, mutant};
use super::tests::text;
use super::*;
use emulator::Element;

/// What is done to the first statement that begins so, or with ` #2` behind it to the second.
#[derive(Clone, Copy, Debug)]
enum Do {
    Delete(&'static str),
    Double(&'static str),
    Move(&'static str, &'static str),
    Change(&'static str, &'static str),
    Unguard(&'static str),
    Register(&'static str),
    Field(&'static str, &'static str),
    Element(Element),
}
use Do::*;

/// A rule with what it proves, and with what it does not.
#[derive(Clone)]
struct Near {
    rule: &'static str,
    step: u8,
    lines: String,
    done: Do,
    others: Vec<(String, Do, &'static str)>,
}

impl Near {
    /// In a kernel of these lines.
    fn of(rule: &'static str, lines: &str, done: Do) -> Near {
        Near { rule, step: 1, lines: text(lines).with(&[]), done, others: Vec::new() }
    }

    /// In a solution.
    fn step(rule: &'static str, step: u8, done: Do) -> Near {
        Near { rule, step, lines: Kernel::new(step).unwrap().built.ptx, done, others: Vec::new() }
    }

    /// With another text, the last of its like.
    fn but(self, from: &str, to: &str, why: &'static str) -> Near {
        let done = self.done;
        self.both(from, to, done, why)
    }

    /// With something else done.
    fn doing(mut self, done: Do, why: &'static str) -> Near {
        self.others.push((self.lines.clone(), done, why));
        self
    }

    fn both(mut self, from: &str, to: &str, done: Do, why: &'static str) -> Near {
        let at = self.lines.rfind(from).unwrap_or_else(|| panic!("{}: no {from}", self.rule));
        let mut lines = self.lines.clone();
        lines.replace_range(at..at + from.len(), to);
        self.others.push((lines, done, why));
        self
    }

    fn proves(&self, lines: &str, done: Do) -> bool {
        let kernel = Kernel { text: Text::new(lines), ..Kernel::new(self.step).unwrap() };
        let at = |code: &str| {
            let (code, number) = code.rsplit_once(" #").map_or((code, 1), |(code, n)| (code, n.parse().unwrap()));
            let mut all = kernel.text.find(|s| s.code().starts_with(code));
            all.nth(number - 1).unwrap_or_else(|| panic!("{}: no {code} in {lines}", self.rule))
        };
        let what = match done {
            Delete(code) => What::Deleted(at(code)),
            Double(code) => What::Doubled(at(code)),
            Move(code, across) => What::Moved(at(code), at(across)),
            Do::Change(code, to) => What::Changed(at(code), to.to_string()),
            Unguard(code) => What::Unguarded(at(code)),
            Register(name) => What::Register(name.to_string()),
            Field(name, code) => What::Field(name, at(code)),
            Do::Element(_) => What::Map,
        };
        let change = match done {
            Do::Element(element) => Change::Map(0, MapChange::Element(element)),
            _ => Change::Lines(Vec::new()),
        };
        let rule = RULES.iter().find(|rule| rule.name == self.rule).unwrap_or_else(|| panic!("no rule {}", self.rule));
        (rule.applies)(&kernel, &mutant("", Kind::Systematic, what, change))
    }
}

/// Of barriers, fences and waits.
fn of_barriers() -> Vec<Near> {
    let meets = "bar.sync 0;\nbar.sync 1;\nret;";
    let cluster = "mbarrier.init.b64 [s], 1;\nfence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.release.aligned;\n\
                   barrier.cluster.wait.acquire.aligned;\nret;";
    let relaxed = Do::Change("barrier.cluster.arrive", "barrier.cluster.arrive.relaxed.aligned;");
    vec![
        Near::of("fence-behind-the-barrier", "fence.proxy.async;\nbar.sync 0;", Move("fence", "bar"))
            .but("bar.sync 0", "bar.sync 0, 64", "others come to it, too, or not all of these")
            .both("bar.sync 0", "mbarrier.arrive.b64 _, [%r1]", Move("fence", "mbarrier"), "no barrier")
            .both("fence", "@%p1 fence", Move("@%p1 fence", "bar"), "some of them fence"),
        Near::of("meets-twice", meets, Double("bar.sync 0"))
            .but("bar.sync 0;", "bar.sync 0;\nbar.arrive 0, 64;", "half of a meeting of others")
            .both("bar.sync 0;", "@%p1 bra $x;\nbar.sync 0;\n$x:", Double("bar.sync 0"), "not all come"),
        Near::of("another-free-barrier", meets, Do::Change("bar.sync 0", "bar.sync 2;"))
            .but("ret;", "bar.arrive 2, 64;\nret;", "it is used")
            .doing(Do::Change("bar.sync 0", "bar.sync 16;"), "there is none of this number")
            .doing(Do::Change("bar.sync 0", "bar.sync 2, 64;"), "another count"),
        Near::of("told-by-the-fence", cluster, relaxed)
            .but("fence.mbarrier_init.release.cluster;\n", "", "nothing tells of the initialisation")
            .but("mbarrier.init.b64 [s], 1;", "st.shared.b32 [s], %r1;", "the fence covers no store"),
        Near::of("nothing-behind-it", cluster, relaxed).but("ret;", "ld.shared.b32 %r1, [s];\nret;", "a load"),
        Near::step("fenced-all-the-same", 9, Do::Change("fence.mbarrier_init", "fence.proxy.async.shared::cta;"))
            .doing(Delete("fence.mbarrier_init"), "no fence is left")
            .doing(Do::Change("fence.mbarrier_init", "fence.acq_rel.cluster;"), "one of the generic proxy alone")
            .doing(Do::Change("fence.mbarrier_init", "fence.proxy.async.global;"), "one of other memory")
            .but(
                "fence.mbarrier_init.release.cluster;",
                "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;",
                "a relaxed barrier tells what the fence covers, and nothing else",
            ),
        Near::of("fenced-all-the-same", &cluster.replacen("\nbarrier", "\nmov.u32 %r1, 0;\nbarrier", 1), Move("fence", "mov"))
            .doing(Move("fence", "mbarrier.init"), "an initialisation stands behind it")
            .doing(Move("mov", "barrier.cluster.arrive"), "no fence")
            .but("mov.u32 %r1, 0;", "mov.u32 %r1, 0;\nmbarrier.arrive.b64 _, [s];", "it is used before"),
        Near::step("told-by-the-barrier-behind", 1, Delete("fence.mbarrier_init"))
            .doing(Delete("mbarrier.init"), "the initialisation itself")
            .doing(Do::Change("fence.mbarrier_init", "mbarrier.inval.shared::cta.b64 [%r1];"), "no fence"),
        Near::step("told-by-the-barrier-behind", 9, Delete("fence.mbarrier_init"))
            .but("fence.mbarrier_init.release.cluster;", "fence.mbarrier_init.release.cluster;\nbar.sync 0;", "the other CTA is not told")
            .but(
                "fence.mbarrier_init.release.cluster;",
                "fence.mbarrier_init.release.cluster;\nmbarrier.arrive.shared::cta.b64 _, [dynamic_shared];",
                "it is used before",
            )
            .but(
                "fence.mbarrier_init.release.cluster;",
                "fence.mbarrier_init.release.cluster;\nbarrier.cluster.arrive.relaxed.aligned;\nbarrier.cluster.wait.acquire.aligned;",
                "a relaxed barrier tells what the fence covers, and nothing else",
            ),
        Near::step("nothing-left-to-order", 4, Delete("bar.sync 0; #4"))
            .but("tcgen05.wait::ld.sync.aligned;", "", "loads may be on their way at the earlier barrier")
            .but("tcgen05.wait::ld.sync.aligned;", "@%p1 tcgen05.wait::ld.sync.aligned;", "some wait")
            .but("tcgen05.wait::ld.sync.aligned;", "tcgen05.wait::st.sync.aligned;", "a wait for stores")
            .but(
                "tcgen05.wait::ld.sync.aligned;",
                "tcgen05.wait::ld.sync.aligned;\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r1], {%r2};",
                "a store may be on its way",
            )
            .doing(Delete("bar.sync 0; #3"), "behind it D is stored"),
    ]
}

fn of_tensor_memory() -> Vec<Near> {
    let fences = "tcgen05.fence::after_thread_sync;\nmov.u32 %r1, 0;\ntcgen05.fence::after_thread_sync;\n\
                  tcgen05.mma.x [%r3], %rd1, %rd2, %r4, %p2;\n$end:\nret;";
    let waits = "tcgen05.ld.x {%f1}, [%r3];\ntcgen05.wait::ld.sync.aligned;\nst.shared.b32 [%r4], %f1;\ntcgen05.ld.x {%f2}, [%r3+1];\n\
                 tcgen05.wait::ld.sync.aligned;\nmbarrier.arrive.b64 _, [%r5];";
    let used = "tcgen05.ld.x {%f1}, [%r3];\ntcgen05.wait::ld.sync.aligned;\nst.shared.b32 [%r4], %f1;\nbar.sync 0;";
    let across = "tcgen05.fence::before_thread_sync;\nst.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5};";
    let store = "st.shared.v4.b32 [%r1], {%r2, %r3, %r4, %r5}";
    vec![
        Near::of("fenced-again-behind", fences, Delete("tcgen05.fence"))
            .but("mov.u32 %r1, 0;", "mbarrier.arrive.b64 _, [%r9];", "somebody is told in between")
            .but("mov.u32 %r1, 0;", "tcgen05.ld.x {%f1}, [%r3];", "an access in between")
            .but("mov.u32 %r1, 0;", "@%p1 bra $end;", "a way around the second")
            .doing(Delete("tcgen05.fence #2"), "the MMA comes behind it"),
        Near::of("waited-again-behind", waits, Delete("tcgen05.wait"))
            .but("st.shared.b32 [%r4], %f1;", "mbarrier.arrive.b64 _, [%r5];", "somebody is told in between")
            .doing(Delete("tcgen05.wait #2"), "somebody is told behind it")
            .doing(Move("tcgen05.wait", "st.shared"), "it stands elsewhere, behind its load"),
        Near::of("used-before-told", used, Delete("tcgen05.wait"))
            .but(
                "bar.sync 0;",
                "bar.sync 0;\ntcgen05.mma.x [%r3], %rd1, %rd2, %r5, %p1;",
                "the columns are written again",
            )
            .but("{%f1}", "{%f1, %f2}", "one register is not stored")
            .but("st.shared", "bar.sync 0;\nst.shared", "somebody is told before")
            .but("st.shared", "@%p1 st.shared", "some do not store"),
        Near::step("hears-of-loads-alone", 7, Delete("tcgen05.fence::after_thread_sync #2"))
            .doing(Delete("tcgen05.fence::after_thread_sync"), "behind a wait for who has read the accumulator")
            .doing(Delete("tcgen05.fence::after_thread_sync #3"), "behind a wait for the product"),
        Near::of("across-what-it-does-not-order", across, Move("tcgen05.fence", "st.shared"))
            .both(store, "mbarrier.arrive.b64 _, [%r1]", Move("tcgen05.fence", "mbarrier"), "it tells somebody")
            .both(store, "st.release.cta.shared.b32 [%r1], %r2", Move("tcgen05.fence", "st."), "so does a release")
            .both(
                store,
                "tcgen05.ld.x {%f1}, [%r3]",
                Move("tcgen05.fence", "tcgen05.ld"),
                "an access of tensor memory",
            ),
    ]
}

fn of_groups_and_guards() -> Vec<Near> {
    let commits = "@%p1 bra $end;\ncp.async.bulk.commit_group;\n$end:\nret;";
    let waits = "elect.sync _|%p1, 0xffffffff;\n@!%p1 bra $end;\ncp.async.bulk.wait_group.read 0;\n$end:\nret;";
    let ends = "cp.async.bulk.wait_group.read 0;\nbar.sync 0;\nret;";
    let parts = "mov.u32 %r1, %tid.x;\nshr.u32 %r2, %r1, 7;\nsetp.ne.u32 %p1, %r2, 1;\n@%p1 bra $out;\nmov.u32 %r3, %tid.x;\n\
                 shr.u32 %r4, %r3, 5;\nsetp.ne.u32 %p2, %r4, 4;\n@%p2 bra $in;\nbar.sync 1, 32;\n$in:\n$out:\nret;";
    let repeats =
        "$repeat:\nwgmma.commit_group.sync.aligned;\n@%p1 bra $repeat;\nwgmma.wait_group.sync.aligned 0;\nret;";
    let registers = "$wait:\nmbarrier.try_wait.parity.b64 %p1, [%r1], %r2;\n@!%p1 bra $wait;\nwgmma.fence.sync.aligned;\n\
                     wgmma.mma_async.x {%f1}, %rd1, %rd2, %p2;";
    let copies = "mbarrier.arrive.expect_tx.b64 _, [%r1], 64;\n\
                  cp.async.bulk.tensor.2d.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r3, %r4}], [%r1];";
    let phase = "mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;";
    vec![
        Near::of(
            "doubled-without-effect",
            "fence.proxy.async;\nmbarrier.arrive.b64 _, [%r1];\nbar.sync 0;",
            Double("fence"),
        )
        .doing(Double("mbarrier.arrive"), "it counts")
        .doing(Double("bar.sync"), "others must come as often"),
        Near::of("a-group-of-nothing", commits, Move("cp.async.bulk.commit", "$end"))
            .doing(Move("cp.async.bulk.commit", "@%p1"), "upwards: before what it commits")
            .both(
                "cp.async.bulk.commit_group;",
                "cp.async.bulk.wait_group 0;",
                Move("cp.async.bulk.wait", "$end"),
                "no commit",
            )
            .both("ret;", "mbarrier.arrive.b64 _, [%r1];\nret;", Double("mbarrier.arrive"), "an arrival is no group"),
        Near::of(
            "asks-for-more",
            "cp.async.bulk.wait_group.read 1;",
            Do::Change("cp", "cp.async.bulk.wait_group.read 0;"),
        )
        .doing(Do::Change("cp", "cp.async.bulk.wait_group.read 2;"), "it leaves more open")
        .doing(Do::Change("cp", "cp.async.bulk.commit_group;"), "no wait"),
        Near::of(
            "said-explicitly",
            phase,
            Do::Change("mbarrier", "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], 0;"),
        )
        .doing(Do::Change("mbarrier", "mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p1, [%r1], 0;"), "less")
        .doing(
            Do::Change("mbarrier", "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], 1;"),
            "another phase",
        ),
        Near::of("only-waits-for-groups", waits, Unguard("@!%p1"))
            .both("wait_group.read 0", "commit_group", Unguard("@!%p1"), "it makes groups")
            .but("cp.async", "mbarrier.arrive.b64 _, [%r1];\ncp.async", "all arrive"),
        Near::of("waits-before-its-end", ends, Move("cp.async", "bar.sync"))
            .but("ret;", "st.shared.b32 [%r1], %r2;\nret;", "the buffer is written again")
            .doing(Move("cp.async", "ret"), "behind the end"),
        Near::of("guarded-again-inside", parts, Unguard("@%p1"))
            .but("%r4, 4", "%r4, 3", "a warp of another warpgroup")
            .but("$in:", "$in:\nbar.sync 1, 128;", "outside of the part inside")
            .but(
                "mov.u32 %r3, %tid.x;",
                "mov.u32 %r3, %tid.x;\nsetmaxnreg.dec.sync.aligned.u32 40;",
                "all give registers back",
            ),
        Near::of("in-the-loop-as-well", repeats, Move("wgmma.wait", "@%p1"))
            .but(
                "@%p1 bra $repeat;",
                "@%p1 bra $repeat;\n$end:\n@%p2 bra $end;",
                "who comes by another way does not wait",
            )
            .but(
                "@%p1 bra $repeat;",
                "@%p1 bra $repeat;\nwgmma.commit_group.sync.aligned;",
                "there is more to wait for",
            ),
        Near::of("registers-of-no-wait", registers, Move("wgmma.fence", "$wait")).but(
            "wgmma.fence",
            "mov.f32 %f1, 0f00000000;\nwgmma.fence",
            "the accumulator is written between",
        ),
        Near::of("expected-behind-the-copy", copies, Move("mbarrier", "cp.async"))
            .but("[%r1];", "[%r5];", "the copy counts on another barrier")
            .both(
                "mbarrier.arrive",
                "@%p1 mbarrier.arrive",
                Move("@%p1 mbarrier", "cp.async"),
                "not every thread that copies",
            ),
    ]
}

fn of_numbers() -> Vec<Near> {
    let register = "mov.u32 %r1, 0;\n@%p1 xor.b32 %r1, %r1, 1;\nret;";
    let offset = "or.b64 %rd2, %rd1, 0x4000404000000000;\nmov.b32 %r1, 0x08200010;";
    vec![
        Near::of("a-register-for-nobody", register, Register("%r1")).but(
            "ret;",
            "add.u32 %r3, %r1, 1;\nret;",
            "it is read",
        ),
        Near::of("leading-offset-unused", offset, Field("leading offset", "or.b64"))
            .but("0x4000", "0x0000", "without swizzle it is used")
            .but("0x08200010", "0x08210010", "a transposed operand uses it")
            .doing(Field("stride offset", "or.b64"), "another field"),
        Near::step("bits-are-copied", 4, Do::Element(Element::Bf16)).doing(Do::Element(Element::F32), "another size"),
    ]
}

#[test]
fn every_rule_proves_something_and_not_what_is_beside_it() {
    let all = [of_barriers(), of_tensor_memory(), of_groups_and_guards(), of_numbers()].concat();
    for near in &all {
        assert!(!near.others.is_empty(), "{}", near.rule);
        assert!(near.proves(&near.lines, near.done), "{} does not prove {:?} of\n{}", near.rule, near.done, near.lines);
        for (lines, done, why) in &near.others {
            assert!(!near.proves(lines, *done), "{} proves {done:?}, though: {why}\n{lines}", near.rule);
        }
    }
    // What the last one proves the assembler says: `machine_code.rs` has its tests.
    let untried = RULES.iter().filter(|rule| rule.name != SAME_MACHINE_CODE.name);
    let untried: Vec<&str> =
        untried.map(|rule| rule.name).filter(|name| all.iter().all(|near| near.rule != *name)).collect();
    assert!(untried.is_empty(), "no near miss of {untried:?}");
}
