//! Fences and waits of tensor memory that another one makes needless.

use super::super::flow;
use super::super::text::{Statement, Text};
use super::super::{Mutant, What};
use std::collections::HashMap;

const AFTER: &str = "tcgen05.fence::after_thread_sync";
const BEFORE: &str = "tcgen05.fence::before_thread_sync";

/// A `tcgen05.fence::after_thread_sync` is missing, or stands somewhere else, or is the other fence. On every way from its place the
/// thread comes to another one, before it accesses tensor memory or tells anybody anything. That one orders what comes behind it after
/// all that the thread has synchronised with until then, also before the first (PTX ISA 9.7.16.11.1). A fence too many does no harm.
pub fn fenced_again_behind(text: &Text, mutant: &Mutant) -> bool {
    let is_after = |at: usize| text.statements[at].is(AFTER) && text.statements[at].guard().is_none();
    let at = match &mutant.what {
        What::Deleted(at) => *at,
        What::Changed(at, now) if now.starts_with(BEFORE) => *at,
        What::Moved(at, across) => *[at, across].into_iter().find(|one| is_after(**one)).unwrap_or(at),
        _ => return false,
    };
    let again = |s: &Statement| s.is(AFTER);
    is_after(at) && on_every_way(text, at, again, is_quiet)
}

/// A `tcgen05.wait::ld` is missing, waits for stores instead, or stands before its load. On every way from its place the warp comes to
/// another one, before it tells anybody anything: until then nobody may overwrite the columns, and registers wait for their values by
/// themselves (PTX ISA 9.7.16.8.5, 9.7.16.6.4.5).
pub fn waited_again_behind(text: &Text, mutant: &Mutant) -> bool {
    let at = match &mutant.what {
        What::Deleted(at) => *at,
        What::Changed(at, now) if now.starts_with("tcgen05.wait::st") => *at,
        What::Moved(at, across) if across < at && text.statements[*across].is("tcgen05.ld") => *at,
        _ => return false,
    };
    let again = |s: &Statement| s.is("tcgen05.wait::ld");
    let own = |s: &Statement| {
        let plain = ["tcgen05.ld", "st.shared", "st.global", "ld.shared", "ld.global", "elect.sync"];
        s.label().is_some() || s.target().is_some() || flow::is_pure(s) || plain.iter().any(|opcode| s.is(opcode))
    };
    again(&text.statements[at]) && on_every_way(text, at, again, own)
}

/// A `tcgen05.wait::ld` is missing, waits for stores instead, or stands before its load. All registers that loads have written since the
/// wait before it go into values that are stored to shared memory behind it before anybody is told anything: the warp has waited for the loads
/// by then, since registers wait for their values by themselves (PTX ISA 9.7.16.8.5, 9.7.16.6.4.5), and no store moves behind what tells. And nothing is written to tensor memory any more: it
/// stands in no loop, and all MMAs before it, which the loads follow.
pub fn used_before_told(text: &Text, mutant: &Mutant) -> bool {
    let at = match &mutant.what {
        What::Deleted(at) => *at,
        What::Changed(at, now) if now.starts_with("tcgen05.wait::st") => *at,
        What::Moved(at, across) if across < at && text.statements[*across].is("tcgen05.ld") => *at,
        _ => return false,
    };
    let writes = |s: &Statement| ["tcgen05.mma", "tcgen05.st", "tcgen05.cp"].iter().any(|opcode| s.is(opcode));
    let last = !flow::repeats(text, at) && !text.statements[at..].iter().any(writes);
    if !text.statements[at].is("tcgen05.wait::ld") || !last {
        return false;
    }
    let plain = |s: &&Statement| flow::is_pure(s) || s.is("st.shared");
    let mut open: Vec<&str> = Vec::new();
    for before in text.statements[..at].iter().rev() {
        match before {
            s if s.is("tcgen05.ld") => open.extend(flow::written(s)),
            s if s.is("tcgen05.wait::ld") => break,
            s if plain(&s) => {}
            _ => return false,
        }
    }
    let loaded = open.clone();
    // What each register is made of, of what was loaded; a value that is stored cannot be computed later.
    let mut made: HashMap<&str, Vec<&str>> = loaded.iter().map(|&register| (register, vec![register])).collect();
    for behind in text.statements[at + 1..].iter().take_while(plain) {
        let read = if flow::is_pure(behind) { flow::read(behind) } else { flow::touched(behind) };
        let of: Vec<&str> = read.iter().filter_map(|register| made.get(register)).flatten().copied().collect();
        if !flow::is_pure(behind) {
            open.retain(|register| behind.guard().is_some() || !of.contains(register));
            continue;
        }
        for register in flow::written(behind) {
            let kept = if behind.guard().is_some() { made.remove(register).unwrap_or_default() } else { vec![] };
            made.insert(register, of.iter().copied().chain(kept).collect());
        }
    }
    !loaded.is_empty() && open.is_empty()
}

/// Tells nobody anything, and accesses no tensor memory.
fn is_quiet(s: &Statement) -> bool {
    let quiet = ["mbarrier.try_wait", "elect.sync", "fence", BEFORE];
    s.label().is_some() || s.target().is_some() || flow::is_pure(s) || quiet.iter().any(|opcode| s.is(opcode))
}

/// Whether on every way from a statement comes another one of a kind, with nothing but quiet ones in between.
fn on_every_way(text: &Text, from: usize, again: impl Fn(&Statement) -> bool, quiet: fn(&Statement) -> bool) -> bool {
    let (mut open, mut seen) = (vec![from + 1], vec![false; text.statements.len()]);
    while let Some(at) = open.pop() {
        let Some(s) = text.statements.get(at) else { return false };
        if std::mem::replace(&mut seen[at], true) || again(s) && s.guard().is_none() && at != from {
            continue;
        }
        if at == from || !quiet(s) {
            return false;
        }
        match text.target(at) {
            Some(target) if s.guard().is_some() => open.extend([target, at + 1]),
            Some(target) => open.push(target),
            None if s.target().is_some() => return false,
            None => open.push(at + 1),
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::tests::{at, made, text};
    use super::*;

    const KERNEL: &str = "$tile:
tcgen05.fence::after_thread_sync;
mov.u32 %r1, 0;
$wait:
mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r2], 0;
@!%p1 bra $wait;
tcgen05.fence::after_thread_sync;
tcgen05.mma.x [%r3], %rd1, %rd2, %r4, %p2;
setp.lt.u32 %p3, %r1, 5;
@%p3 bra $tile;
ret;";

    #[test]
    fn the_first_of_two_fences() {
        let of = |text: &Text, n: usize| {
            let fence = text.find(|s| s.is(AFTER)).nth(n).unwrap();
            let changed = What::Changed(fence, "tcgen05.fence::before_thread_sync;".to_string());
            let all = [What::Deleted(fence), changed, What::Moved(fence, fence + 1), What::Moved(fence - 1, fence)];
            let [first, rest @ ..] = all.map(|what| fenced_again_behind(text, &made(what)));
            assert!(rest.iter().all(|other| *other == first));
            first
        };
        let kernel = text(KERNEL);
        assert!(of(&kernel, 0));
        assert!(!of(&kernel, 1), "the MMA comes behind it");
        let tells = text(&KERNEL.replace("mov.u32 %r1, 0;", "mbarrier.arrive.b64 _, [%r9];"));
        assert!(!of(&tells, 0), "somebody is told in between");
        let around = text(
            &KERNEL.replace("mov.u32 %r1, 0;", "@%p4 bra $end;").replace("ret;", "$end:\ntcgen05.ld.x {%f1}, [%r3];"),
        );
        assert!(!of(&around, 0), "there is a way around the second");
        assert!(!fenced_again_behind(&kernel, &made(What::Deleted(at(&kernel, "tcgen05.mma")))));
    }
    #[test]
    fn the_first_of_two_waits() {
        let lines = "tcgen05.ld.x {%f1}, [%r3];\ntcgen05.wait::ld.sync.aligned;\nst.shared.b32 [%r4], %f1;\ntcgen05.ld.x {%f2}, [%r3+1];\ntcgen05.wait::ld.sync.aligned;\nmbarrier.arrive.b64 _, [%r5];";
        let of = |text: &Text, n: usize| {
            let wait = text.find(|s| s.is("tcgen05.wait::ld")).nth(n).unwrap();
            let stores = What::Changed(wait, "tcgen05.wait::st.sync.aligned;".to_string());
            [What::Deleted(wait), stores, What::Moved(wait, wait - 1)]
                .map(|what| waited_again_behind(text, &made(what)))
        };
        assert_eq!(of(&text(lines), 0), [true; 3]);
        assert_eq!(of(&text(lines), 1), [false; 3], "somebody is told that the columns are free");
        assert_eq!(of(&text(&lines.replace("st.shared.b32 [%r4], %f1;", "bar.sync 1, 128;")), 0), [false; 3]);
    }

    #[test]
    fn what_is_used_is_there() {
        let lines = "tcgen05.wait::ld.sync.aligned;\ntcgen05.ld.x {%f1, %f2}, [%r3];\ntcgen05.wait::ld.sync.aligned;\ncvt.rn.f16x2.f32 %r1, %f1, %f2;\nst.shared.b32 [%r4], %r1;\nbar.sync 0;";
        let proves = |lines: &str| {
            let text = text(lines);
            let wait = text.find(|s| s.is("tcgen05.wait::ld")).nth(1).unwrap();
            used_before_told(&text, &made(What::Deleted(wait)))
        };
        assert!(proves(lines));
        assert!(!proves(&format!("$tile:\n{lines}\n@%p1 bra $tile;")), "the columns are written again");
        assert!(!proves(&format!("{lines}\ntcgen05.mma.x [%r3], %rd1, %rd2, %r5, %p1;")), "here, too");
        assert!(!proves(&lines.replace("%f1, %f2;", "%f1, %f1;")), "one register is not used");
        assert!(!proves(&lines.replace("cvt.rn", "bar.sync 0;\ncvt.rn")), "somebody is told before");
        assert!(
            !proves(&lines.replace("st.shared", "bar.sync 0;\nst.shared")),
            "a compiler may compute it behind that"
        );
        assert!(!proves(&lines.replace("cvt.rn", "@%p1 bra $end;\ncvt.rn")), "some do not come there");
        assert!(!proves(&lines.replace("cvt.rn", "mov.f32 %f1, 0f00000000;\ncvt.rn")), "its value is never asked for");
    }
}
