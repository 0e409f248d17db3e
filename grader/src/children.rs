//! Programs that the grader starts: what they write, how long they take, and that none outlives it.

use std::io::Read;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// What is read of a program's output.
const MAX_OUTPUT: u64 = 16 << 20;

/// A program that has ended.
pub(crate) struct Ended {
    /// It took too long, and was ended.
    pub timed_out: bool,
    /// Its exit status, if it ended by itself.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program and what it starts to their end, or to ours.
pub(crate) fn run(command: &mut Command, limit: Duration) -> Result<Ended, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own: when time is up, what the program started must end too.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(command, 0);
    let mut child = command.spawn().map_err(|error| format!("cannot start {name}: {error}"))?;
    #[cfg(unix)]
    let _warden = Warden::of(&child);
    let stdout = read(child.stdout.take());
    let stderr = read(child.stderr.take());
    let status = wait(&mut child, limit).map_err(|error| format!("cannot wait for {name}: {error}"))?;
    Ok(Ended {
        timed_out: status.is_none(),
        code: status.and_then(|status| status.code()),
        stdout: stdout.join().unwrap_or_default(),
        stderr: stderr.join().unwrap_or_default(),
    })
}

/// A process that ends a group of processes when this one is gone, by whatever way. A group of its own gets no Ctrl-C.
#[cfg(unix)]
pub(crate) struct Warden(Child);

#[cfg(unix)]
impl Warden {
    /// `None` where there is no `sh`: then the group ends by itself.
    pub(crate) fn of(leader: &Child) -> Option<Warden> {
        let mut command = Command::new("sh");
        // The other end of its input is held here. It is closed when this process ends.
        command.args(["-c", "cat > /dev/null; kill -s KILL -- \"-$1\"", "warden", &leader.id().to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().ok().map(Warden)
    }
}

#[cfg(unix)]
impl Drop for Warden {
    /// The group has ended: its number may be another's soon.
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Reads a pipe to its end, and keeps its beginning.
fn read(pipe: Option<impl Read + Send + 'static>) -> JoinHandle<String> {
    thread::spawn(move || {
        let mut text = Vec::new();
        if let Some(mut pipe) = pipe {
            // A pipe that breaks ends the text; the program's exit says the rest. What is too much is read and dropped, since
            // it would stop at a full pipe.
            let _ = pipe.by_ref().take(MAX_OUTPUT).read_to_end(&mut text);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        String::from_utf8_lossy(&text).into_owned()
    })
}

/// The exit status of a process that ended by itself in time.
fn wait(child: &mut Child, limit: Duration) -> std::io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(Some(status)),
            Ok(None) if begin.elapsed() < limit => thread::sleep(Duration::from_millis(20)),
            Ok(None) => {
                #[cfg(unix)]
                let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", child.id())]).status();
                // It may have ended just now; either way it is gone afterwards.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};

    fn sleeper() -> Child {
        // A process of the group that is not its leader ends, too.
        Command::new("sh").args(["-c", "sleep 60; true"]).process_group(0).spawn().unwrap()
    }

    #[test]
    fn a_group_ends_with_who_started_it_and_not_before() {
        let mut group = sleeper();
        drop(Warden::of(&group).unwrap());
        assert_eq!(group.try_wait().unwrap(), None, "a warden that is dismissed does nothing");
        let mut warden = Warden::of(&group).unwrap();
        thread::sleep(Duration::from_millis(200));
        assert_eq!(group.try_wait().unwrap(), None);
        // As when this process ends.
        drop(warden.0.stdin.take());
        assert_eq!(group.wait().unwrap().signal(), Some(9));
    }
}
