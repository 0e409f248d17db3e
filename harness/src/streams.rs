//! What a program writes, read beside its run: a full pipe would stop it for ever.

use std::io::{self, ErrorKind, Read};
use std::process::Child;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Once a program and its group have ended, its streams are read so long, both together: who left the group may hold them for ever, and a machine
/// that does much else takes a while for what is in them.
pub const REST: Duration = Duration::from_secs(60);

/// The streams of a program while it runs.
#[derive(Debug)]
pub struct Streams([Stream; 2]);

/// What a program wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Written {
    /// To its standard output.
    pub stdout: Vec<u8>,
    /// To its standard error.
    pub stderr: Vec<u8>,
}

/// It may have written more than was read. Half of an answer is none, and that it is half is not the program's fault for sure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Why, as a sentence on the program.
    pub why: String,
    /// What was read.
    pub read: Written,
}

impl Streams {
    /// Begins to read both streams of a program that was started with pipes, and keeps so many bytes of the beginning of each.
    ///
    /// # Errors
    /// When this machine has no room for a thread.
    pub fn of(child: &mut Child, most: [u64; 2]) -> io::Result<Streams> {
        let [stdout, stderr] = most;
        Ok(Streams([Stream::of(child.stdout.take(), stdout)?, Stream::of(child.stderr.take(), stderr)?]))
    }

    /// What was written, once the program and its group have ended.
    ///
    /// # Errors
    /// When a stream does not come to its end in [`REST`], or cannot be read.
    pub fn rest(self) -> Result<Written, Cut> {
        self.rest_within(REST)
    }

    /// The same within another time.
    ///
    /// # Errors
    /// As [`Streams::rest`].
    pub fn rest_within(self, rest: Duration) -> Result<Written, Cut> {
        let deadline = Instant::now() + rest;
        let Streams([stdout, stderr]) = self;
        let (stdout, stderr) = (stdout.by(deadline), stderr.by(deadline));
        let ends = [stdout.1, stderr.1];
        let read = Written { stdout: stdout.0, stderr: stderr.0 };
        let why = ends.into_iter().find_map(|end| match end {
            End::Reached => None,
            End::Late => Some(format!(
                "what it wrote could not be read to its end within {} s after it had ended: a process that it started and that left its group \
                 holds its output open, or this machine does too much else",
                rest.as_secs()
            )),
            End::Broken(error) => Some(format!("what it wrote cannot be read: {error}")),
        });
        match why {
            None => Ok(read),
            Some(why) => Err(Cut { why, read }),
        }
    }
}

/// How far a stream was read.
enum End {
    Reached,
    Late,
    Broken(io::Error),
}

#[derive(Debug)]
struct Stream {
    kept: Arc<Mutex<Vec<u8>>>,
    ended: mpsc::Receiver<io::Result<()>>,
}

impl Stream {
    fn of(pipe: Option<impl Read + Send + 'static>, most: u64) -> io::Result<Stream> {
        let (send, ended) = mpsc::channel();
        let kept = Arc::new(Mutex::new(Vec::new()));
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let shared = Arc::clone(&kept);
        thread::Builder::new().spawn(move || {
            let end = pipe.map_or(Ok(()), |pipe| read(pipe, &shared, most));
            // Nobody listens any more when the rest takes too long.
            let _ = send.send(end);
        })?;
        Ok(Stream { kept, ended })
    }

    /// What was read by then.
    fn by(&self, deadline: Instant) -> (Vec<u8>, End) {
        let end = match self.ended.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(())) => End::Reached,
            Ok(Err(error)) => End::Broken(error),
            Err(RecvTimeoutError::Timeout) => End::Late,
            Err(RecvTimeoutError::Disconnected) => End::Broken(io::Error::other("who reads it has broken off")),
        };
        (std::mem::take(&mut *self.kept.lock().unwrap_or_else(PoisonError::into_inner)), end)
    }
}

/// Reads to the end, and keeps the beginning. What is too much is dropped, so that the program can go on.
fn read(mut pipe: impl Read, kept: &Mutex<Vec<u8>>, most: usize) -> io::Result<()> {
    let mut piece = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = most.saturating_sub(kept.len());
                kept.extend_from_slice(&piece[..count.min(room)]);
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    fn started(script: &str) -> (Child, Streams) {
        let mut command = Command::new("sh");
        command.args(["-c", script]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let streams = Streams::of(&mut child, [4, 1 << 20]).unwrap();
        (child, streams)
    }

    #[test]
    fn both_streams_are_read_to_their_ends_and_their_beginnings_kept() {
        let (mut child, streams) = started("echo 12345; head -c 1000000 /dev/zero >&2");
        child.wait().unwrap();
        let written = streams.rest().unwrap();
        assert_eq!((written.stdout.as_slice(), written.stderr.len()), (b"1234".as_slice(), 1_000_000));
    }

    /// As one that left the group: both streams are held, and one deadline counts for both.
    #[test]
    fn what_is_held_open_is_told_with_what_was_read() {
        let (mut child, streams) = started("sleep 6 & echo out; echo err >&2");
        child.wait().unwrap();
        let begin = Instant::now();
        let cut = streams.rest_within(Duration::from_secs(2)).unwrap_err();
        let took = begin.elapsed();
        assert!(took >= Duration::from_secs(2) && took < Duration::from_millis(3900), "{took:?}");
        assert!(cut.why.contains("within 2 s after it had ended") && cut.why.contains("left its group"), "{}", cut.why);
        assert_eq!(cut.read, Written { stdout: b"out\n".to_vec(), stderr: b"err\n".to_vec() });
    }

    #[test]
    fn a_stream_that_cannot_be_read_is_told() {
        struct Broken;
        impl Read for Broken {
            fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
                Err(io::Error::other("no more of it"))
            }
        }
        let stream = || Stream::of(Some(Broken), 1).unwrap();
        let cut = Streams([stream(), stream()]).rest().unwrap_err();
        assert_eq!(cut.why, "what it wrote cannot be read: no more of it");
    }
}
