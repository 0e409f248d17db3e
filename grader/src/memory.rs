//! How much memory a grader takes while it judges: the emulator runs what a stranger wrote, and what a run keeps grows with it.
//!
//! Where a launch takes more than the emulator's own limits foresee, the process of this one hand-in ends, and not the machine: a kernel of
//! Linux that is short of memory would end whichever process is largest, or somebody else's.

/// Bytes, of this process alone. The largest of the reference solutions takes a thirtieth of it.
pub const MOST: u64 = 8 << 30;

/// Takes no more than that from now on. Programs that it starts inherit it; those of a hand-in have limits of their own, which are lower.
#[cfg(target_os = "linux")]
pub fn bound() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let before = getrlimit(Resource::Data);
    let most = before.current.map_or(MOST, |current| current.min(MOST));
    // Who may not lower a limit has none to begin with; there is nobody to tell.
    let _ = setrlimit(Resource::Data, Rlimit { current: Some(most), maximum: before.maximum });
}

/// Other systems have no such limit.
#[cfg(not(target_os = "linux"))]
pub fn bound() {}

/// Whether a process that ended says that it found no memory: what Rust's library says last.
pub fn ran_out(said: &str) -> bool {
    said.lines().any(|line| line.starts_with("memory allocation of ") && line.contains(" failed"))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use rustix::process::{Resource, getrlimit};

    #[test]
    fn a_limit_is_set_and_one_that_is_lower_stays() {
        bound();
        let set = getrlimit(Resource::Data).current.expect("a limit");
        assert!(set <= MOST);
        bound();
        assert_eq!(getrlimit(Resource::Data).current, Some(set));
    }

    #[test]
    fn what_a_process_says_that_finds_no_memory_is_known() {
        assert!(ran_out("note: there is no manifest\nmemory allocation of 4294967296 bytes failed\n"));
        assert!(!ran_out("error: step01: memory allocation of buffers\n") && !ran_out(""));
    }
}
