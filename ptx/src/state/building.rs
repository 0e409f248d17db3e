//! A build that goes on: begun, served call by call, and ended.

use super::State;
use super::written::MAX_INSTRUCTIONS;
use crate::gemm::Gemm;
use crate::kernel::{BuildError, Kernel, Place};
use crate::register::{Class, Id};
use std::cell::RefCell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static CURRENT: RefCell<Option<State>> = const { RefCell::new(None) };
}

/// After so many calls the kernel's function is left: its Rust loop may never end.
const MAX_CALLS: usize = 2 * MAX_INSTRUCTIONS;

/// What unwinds out of a kernel's function that would never come to its end.
struct Endless;

/// A build that is going on. Dropping it ends it, also after a panic in the kernel's function.
pub(crate) struct Building;

impl Building {
    /// Begins a build; refused inside of another one: scopes of both would be at hand, and what is called on one would
    /// be written to the other. Refused too for an empty problem, so that no kernel has to think of one.
    pub fn begin(name: &str, gemm: &Gemm, place: Place) -> Result<Building, BuildError> {
        if CURRENT.with(|current| !matches!(current.try_borrow().as_deref(), Ok(None))) {
            return Err(BuildError {
                place,
                message: "a kernel is built inside of another kernel's function".to_string(),
                help: "Build one after the other.".to_string(),
            });
        }
        if [gemm.m, gemm.n, gemm.k, gemm.sms].contains(&0) {
            return Err(BuildError {
                place,
                message: format!("there is nothing to compute in a problem of {gemm} on {} SMs", gemm.sms),
                help: "Use 1 or more for M, N, K and the SMs.".to_string(),
            });
        }
        let state = State::new(name, gemm, place);
        CURRENT.set(Some(state));
        Ok(Building)
    }

    /// Runs the kernel's function.
    pub fn run(&self, body: impl FnOnce()) {
        if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(body))
            && !payload.is::<Endless>()
        {
            panic::resume_unwind(payload);
        }
    }

    pub fn finish(self) -> Result<Kernel, Vec<BuildError>> {
        // What `drop` finds after this is empty.
        CURRENT.take().map_or(Err(Vec::new()), State::finish)
    }
}

impl Drop for Building {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

/// Serves a call of the kernel's function; `None` when no kernel is being built on this thread.
#[track_caller]
pub(crate) fn with<R>(serve: impl FnOnce(&mut State) -> R) -> Option<R> {
    with_at(Place::caller(), serve)
}

/// The same for a call whose end comes later than its beginning (a scope).
pub(crate) fn with_at<R>(place: Place, serve: impl FnOnce(&mut State) -> R) -> Option<R> {
    CURRENT.with(|current| {
        let mut current = current.try_borrow_mut().ok()?;
        let state = current.as_mut()?;
        state.place = place;
        state.first.get_or_insert(place);
        state.count_call();
        Some(serve(state))
    })
}

/// Notes when shared memory that is shown by `Display` belongs to another kernel, at the last call served.
pub(crate) fn check_owner(kernel: u32) {
    CURRENT.with(|current| {
        if let Ok(mut current) = current.try_borrow_mut()
            && let Some(state) = current.as_mut()
        {
            state.owns(kernel);
        }
    });
}

/// The name of a register, for `Display`: a mistake is noted at the last call served.
pub(crate) fn name_of(id: Id, class: Class) -> String {
    let name = CURRENT.with(|current| Some(current.try_borrow_mut().ok()?.as_mut()?.name_by_id(id, class)));
    name.unwrap_or_else(|| format!("{}0", class.prefix()))
}

impl State {
    /// Leaves the kernel's function when it goes on and on.
    fn count_call(&mut self) {
        self.calls += 1;
        if self.calls > MAX_CALLS {
            self.leave(
                format!("the kernel's function was still writing after {MAX_CALLS} calls, and was left here"),
                "look for a Rust loop that does not end; a Rust `for` is unrolled: use `repeat` for a loop that the \
                 GPU runs",
            );
        }
    }

    /// Leaves the kernel's function, for this reason.
    pub(super) fn leave(&mut self, message: String, help: &str) -> ! {
        if !self.left {
            self.left = true;
            self.error(message, help);
        }
        // Not a panic: no hook is called, and `build` takes it.
        panic::resume_unwind(Box::new(Endless));
    }
}
