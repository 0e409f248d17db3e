//! Scopes: who executes the instructions that a closure writes.

use crate::kernel::Place;
use crate::level::sealed::Kind;
use crate::level::{self, Level, ManyWarps, OneWarp, WholeWarps};
use crate::register::{Pred, U32, Value, dummy};
use crate::state::{State, with, with_at};
use std::marker::PhantomData;

/// The instructions of some threads of a kernel, in order. `L` says which threads, and so which instructions may stand
/// here: a call that does not fit does not compile.
///
/// Scopes nest as closures. While an inner one is open the outer one cannot be used: the threads that are not in the
/// inner one have gone around it. The compiler says so; of [`Scope::sync`] and [`Scope::cluster_sync`], and of what opens a scope for some
/// threads, the build: these two are what one would call there, and an error of the build can say why not.
pub struct Scope<L: Level> {
    /// The first warp of the scope in its CTA.
    first_warp: u32,
    /// How many scopes of some threads it lies in, itself counted.
    depth: usize,
    // Not Send: the kernel being built belongs to this thread.
    level: PhantomData<*const L>,
}

/// All threads of the CTA: the scope that a kernel begins with, `k` by habit.
pub type Cta = Scope<level::Cta>;
/// The 128 threads of a warpgroup, `wg` by habit.
pub type Warpgroup = Scope<level::Warpgroup>;
/// The 32 threads of a warp, `w` by habit.
pub type Warp = Scope<level::Warp>;
/// One thread of a warp, `t` by habit.
pub type Thread = Scope<level::Thread>;
/// The threads for which a condition holds, from [`Scope::when`].
pub type SomeThreads = Scope<level::SomeThreads>;

impl Cta {
    pub(crate) fn outermost() -> Cta {
        Scope { first_warp: 0, depth: 0, level: PhantomData }
    }

    /// Says how many threads a CTA has: a multiple of 32, up to 1024. Once, before any scope. PTX: `.reqntid`.
    #[track_caller]
    pub fn threads(&mut self, count: u32) {
        with(|s| {
            if s.threads.is_some() {
                s.error("the number of threads is set twice", "call `threads` once, at the start of the kernel");
            } else if count == 0 || count > 1024 || !count.is_multiple_of(32) {
                s.error(
                    format!("a CTA cannot have {count} threads"),
                    "use whole warps: a multiple of 32, from 32 to 1024",
                );
                // So that neither the missing number nor a warp that would be missing is a second error.
                s.threads = Some(1024);
            } else {
                s.threads = Some(count);
            }
        });
    }

    /// Says how many CTAs are launched, in x and y; one if never called. Part of the launch, not of the PTX.
    #[track_caller]
    pub fn grid(&mut self, x: u32, y: u32) {
        with(|s| {
            if s.grid.is_some() {
                s.error("the grid is set twice", "call `grid` once, at the start of the kernel");
            } else if x == 0 || y == 0 || x > i32::MAX as u32 || y > u32::from(u16::MAX) {
                s.error(
                    format!("a grid cannot have {x} x {y} CTAs"),
                    "use 1 or more in both directions, and at most 65535 in y",
                );
                // Neither that there is no grid nor that it is not made of pairs is a second error.
                s.grid = Some([2, 1]);
            } else {
                (s.grid, s.grid_at) = (Some([x, y]), Some(s.place));
            }
        });
    }

    /// What one of four warps of the CTA, a warpgroup, executes. The other warps go on behind the closure.
    ///
    /// PTX: `mov` from `%tid.x`, `shr.u32`, `setp.ne.u32`, and a `bra` for the others.
    #[track_caller]
    pub fn warpgroup<R>(&self, index: u32, body: impl FnOnce(&mut Warpgroup) -> R) -> R {
        let place = Place::caller();
        let count = with_at(place, |s| threads(s) / 128).unwrap_or(0);
        let first_warp = index.saturating_mul(4);
        let body = || body(&mut self.narrower(first_warp));
        pick(place, self.depth, ("warpgroup", index, count), (7, index), body)
    }
}

impl<L: Level> Scope<L> {
    /// The same threads, for a closure inside of control flow that all of them follow.
    pub(crate) fn same(&self) -> Scope<L> {
        Scope { first_warp: self.first_warp, depth: self.depth, level: PhantomData }
    }

    pub(crate) fn divergent(&self) -> Scope<L::Divergent> {
        Scope { first_warp: self.first_warp, depth: self.depth, level: PhantomData }
    }

    /// A scope of some of its threads.
    fn narrower<M: Level>(&self, first_warp: u32) -> Scope<M> {
        Scope { first_warp, depth: self.depth + 1, level: PhantomData }
    }

    /// What one warp executes: the one with this index in the CTA, or in the warpgroup. The other warps of the scope go
    /// on behind the closure.
    ///
    /// PTX: `mov` from `%tid.x`, `shr.u32`, `setp.ne.u32`, and a `bra` for the others.
    #[track_caller]
    pub fn warp<R>(&self, index: u32, body: impl FnOnce(&mut Warp) -> R) -> R
    where
        L: ManyWarps,
    {
        let place = Place::caller();
        let count = with_at(place, |s| if L::KIND == Kind::Warpgroup { 4 } else { threads(s) / 32 }).unwrap_or(0);
        let warp = self.first_warp.saturating_add(index);
        pick(place, self.depth, ("warp", index, count), (5, warp), || body(&mut self.narrower(warp)))
    }

    /// What one thread of the warp executes; always the same one. The other lanes go on behind the closure.
    ///
    /// PTX: `elect.sync`, and a `bra` for the lanes that were not elected.
    #[track_caller]
    pub fn elect_one<R>(&self, body: impl FnOnce(&mut Thread) -> R) -> R
    where
        L: OneWarp,
    {
        let place = Place::caller();
        let end = with_at(place, |s| {
            s.open_for("one elected thread", self.depth);
            let (elected, end) = (s.fresh::<Pred>(), s.new_label("elected_end"));
            let name = s.name(elected);
            s.instruction(format!("elect.sync _|{name}, 0xffffffff"));
            s.instruction(format!("@!{name} bra {end}"));
            end
        });
        let result = body(&mut self.narrower(self.first_warp));
        close(place, end);
        result
    }

    /// The index of the thread in the scope: 0 to 127 in a warpgroup, 0 to 31 in a warp.
    ///
    /// PTX: `mov.u32` from `%tid.x`; in a warpgroup an `and.b32` after it; in a warp `mov.u32` from `%laneid`.
    #[track_caller]
    pub fn thread_index(&mut self) -> U32
    where
        L: WholeWarps,
    {
        with(|s| {
            if L::KIND == Kind::Warp {
                return special(s, "%laneid");
            }
            let thread = special(s, "%tid.x");
            if L::KIND == Kind::Warpgroup {
                return s.binary("and.b32", Value::of(thread), Value::Unsigned(127));
            }
            thread
        })
        .unwrap_or(dummy())
    }

    /// The index of the thread's warp in the scope. PTX: `mov.u32` from `%tid.x`, `shr.u32`; in a warpgroup `and.b32`.
    #[track_caller]
    pub fn warp_index(&mut self) -> U32
    where
        L: ManyWarps,
    {
        with(|s| {
            let thread = special(s, "%tid.x");
            let warp: U32 = s.binary("shr.u32", Value::of(thread), Value::Unsigned(5));
            if L::KIND == Kind::Warpgroup {
                return s.binary("and.b32", Value::of(warp), Value::Unsigned(3));
            }
            warp
        })
        .unwrap_or(dummy())
    }

    /// The index of the thread in its warp, 0 to 31. PTX: `mov.u32` from `%laneid`.
    #[track_caller]
    pub fn lane_index(&mut self) -> U32
    where
        L: WholeWarps,
    {
        with(|s| special(s, "%laneid")).unwrap_or(dummy())
    }

    /// The index of the CTA in the grid, in x. PTX: `mov.u32` from `%ctaid.x`.
    #[track_caller]
    pub fn cta_x(&mut self) -> U32 {
        with(|s| special(s, "%ctaid.x")).unwrap_or(dummy())
    }

    /// The index of the CTA in the grid, in y. PTX: `mov.u32` from `%ctaid.y`.
    #[track_caller]
    pub fn cta_y(&mut self) -> U32 {
        with(|s| special(s, "%ctaid.y")).unwrap_or(dummy())
    }
}

pub(crate) fn special(s: &mut State, name: &str) -> U32 {
    let register = s.fresh();
    let to = s.name(register);
    s.instruction(format!("mov.u32 {to}, {name}"));
    register
}

/// Threads of the CTA; an error if nobody said.
fn threads(s: &mut State) -> u32 {
    if let Some(threads) = s.threads {
        return threads;
    }
    // Once is enough.
    if !s.threads_missed {
        s.threads_missed = true;
        s.error("the number of threads is not known yet", "begin the kernel with `k.threads(128);`");
    }
    1024
}

/// The threads whose `%tid.x >> shift` is `wanted` execute the body; the others branch to its end. They are called so, and are of a scope that
/// lies in so many others: one of some that are counted.
fn pick<R>(
    place: Place,
    depth: usize,
    (what, index, count): (&str, u32, u32),
    (shift, wanted): (u32, u32),
    body: impl FnOnce() -> R,
) -> R {
    let end = with_at(place, |s| {
        if index >= count {
            s.error(
                format!("there is no {what} {index}: the number of {what}s here is {count}"),
                match count {
                    0 => format!("give the CTA more threads: a {what} takes {}", 1 << shift),
                    1 => format!("use {what} 0, or give the CTA more threads"),
                    _ => format!("use {what} 0 to {}, or give the CTA more threads", count - 1),
                },
            );
        }
        s.open_for(&format!("{what} {index}"), depth);
        let thread = special(s, "%tid.x");
        let mine: U32 = s.binary("shr.u32", Value::of(thread), Value::Unsigned(u64::from(shift)));
        let other: Pred = s.binary("setp.ne.u32", Value::of(mine), Value::Unsigned(u64::from(wanted)));
        let (other, end) = (s.name(other), s.new_label(&format!("{what}_{index}_end")));
        s.instruction(format!("@{other} bra {end}"));
        end
    });
    let result = body();
    close(place, end);
    result
}

fn close(place: Place, end: Option<String>) {
    with_at(place, |s| {
        if let Some(end) = end {
            s.label(&end);
        }
        s.close_for();
    });
}
