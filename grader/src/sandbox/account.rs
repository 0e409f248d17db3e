//! The account that a program gets where there are accounts to give: one that nobody else has.
//!
//! A process number would not do for it. Graders in containers of one machine have the same numbers, and the kernel counts the processes of an
//! account over all of them: one hand-in would then use up what another may have.

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{Uid, set_thread_res_uid};
use std::io;
use std::ops::Range;
use std::thread::Builder;

/// Accounts that no system gives to anyone.
const ACCOUNTS: Range<u32> = 2_000_000_000..4_000_000_000;
/// How many are tried until one is nobody's.
const DRAWS: usize = 8;

/// Draws an account.
pub(super) fn draw() -> Result<u32, String> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| format!("the system gives no random numbers: {error}"))?;
    // Of 64 bits, the remainder is as good as even.
    let drawn = u64::from_le_bytes(random) % u64::from(ACCOUNTS.end - ACCOUNTS.start);
    Ok(ACCOUNTS.start + drawn as u32)
}

/// This account if it has no process, or else one that is drawn and has none. It needs the rights of root.
pub(super) fn unused(first: u32) -> Result<u32, String> {
    let mut account = first;
    for _ in 0..DRAWS {
        if has_no_process(account)? {
            return Ok(account);
        }
        account = draw()?;
    }
    Err(format!("each of {DRAWS} accounts that were drawn for a hand-in has processes already"))
}

/// Whether an account has no process, wherever the kernel counts them. With a limit of two, a thread that takes the account can begin a
/// thread, unless there is another process.
fn has_no_process(account: u32) -> Result<bool, String> {
    let failed =
        |error: &dyn std::fmt::Display| format!("cannot look whether account {account} has processes: {error}");
    let before = getrlimit(Resource::Nproc);
    let two = Rlimit { current: Some(2), maximum: before.maximum };
    setrlimit(Resource::Nproc, two).map_err(|error| failed(&error))?;
    let looks = move || {
        let account = Uid::from_raw(account);
        // Of this thread alone: the process keeps the account that it has.
        set_thread_res_uid(account, account, account)?;
        match Builder::new().spawn(|| ()) {
            Ok(thread) => thread.join().map(|()| true).map_err(|_| Errno::INTR.into()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    };
    let looked = Builder::new().spawn(looks).map(std::thread::JoinHandle::join);
    setrlimit(Resource::Nproc, before).map_err(|error| failed(&error))?;
    match looked {
        Ok(Ok(found)) => found.map_err(|error: io::Error| failed(&error)),
        Ok(Err(_)) => Err(failed(&"a thread failed")),
        Err(error) => Err(failed(&error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn accounts_are_drawn_from_all_that_there_are() {
        let drawn: BTreeSet<u32> = (0..256).map(|_| draw().unwrap()).collect();
        assert_eq!(drawn.len(), 256, "of two thousand million, none comes twice");
        assert!(drawn.iter().all(|account| ACCOUNTS.contains(account)));
        let middle = ACCOUNTS.start + (ACCOUNTS.end - ACCOUNTS.start) / 2;
        let low = drawn.iter().filter(|account| **account < middle).count();
        assert!((64..192).contains(&low), "{low} of 256 in the lower half");
    }
}
