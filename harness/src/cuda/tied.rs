//! A process that ends with the one that started it.

use std::io::{self, Read};
use std::thread;

/// The exit status of a process whose parent is gone. Nobody reads it.
const ALONE: u8 = 3;

/// For a process whose parent holds the other end of its standard input and never writes to it: leaves at once when that end is
/// closed, however the parent ended. What runs on the GPU ends with the process.
pub fn leave_with_the_parent() {
    thread::spawn(|| at_end(io::stdin(), || device::leave(ALONE)));
}

/// Does something when nothing more can be read. What comes until then is dropped.
fn at_end(mut input: impl Read, then: impl FnOnce()) {
    // A pipe that breaks is at its end, too.
    let _ = io::copy(&mut input, &mut io::sink());
    then();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn the_end_of_a_pipe_is_seen_and_not_before() {
        let (reader, writer) = io::pipe().unwrap();
        let (tell, told) = mpsc::channel();
        let waits = thread::spawn(move || at_end(reader, || tell.send(()).unwrap()));
        assert_eq!(told.recv_timeout(Duration::from_millis(100)), Err(mpsc::RecvTimeoutError::Timeout));
        drop(writer);
        assert_eq!(told.recv_timeout(Duration::from_secs(60)), Ok(()));
        waits.join().unwrap();
    }
}
