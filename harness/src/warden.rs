//! That no program outlives who started it: neither the program, nor what it started, nor its scratch folder.

#[cfg(unix)]
use rustix::process::{Pid, Signal, kill_process_group};
use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program that runs in a group of its own, and that ends when this process is gone, by whatever way that ends. A group of its own gets no
/// Ctrl-C.
///
/// Its group is there before it is, and so is who ends that group: there is no moment at which the program runs and nobody knows it. Both hold
/// a pipe whose other end is held here. A program that is being started has that end, too, until it is the program, and by then it is in its
/// group: so the pipe is not closed before. Nor is there one after an error, or while a panic goes up: whoever drops this ends the program, and
/// what is left of its group.
#[derive(Debug)]
pub struct Watched {
    /// The program.
    pub child: Child,
    /// Lead its group, and end it; none where there is no `sh`: then the program is ended alone, and by this process alone.
    #[cfg(unix)]
    wardens: Option<Wardens>,
}

/// Starts a program so. `folder`: its scratch folder, which is removed when this process is gone: else whoever made it does that.
///
/// # Errors
/// When it cannot be started, or who is to end it cannot.
pub fn start(command: &mut Command, folder: Option<&Path>) -> io::Result<Watched> {
    #[cfg(unix)]
    {
        let wardens = match Wardens::ready(folder) {
            Ok(wardens) => Some(wardens),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            // No room for one more process: nobody would know of the program if this process were ended.
            Err(error) => return Err(error),
        };
        // 0: a group that the program itself leads.
        let group = wardens.as_ref().and_then(|wardens| i32::try_from(wardens.leader.id()).ok()).unwrap_or(0);
        std::os::unix::process::CommandExt::process_group(command, group);
        Ok(Watched { child: command.spawn()?, wardens })
    }
    #[cfg(not(unix))]
    {
        let _ = folder;
        Ok(Watched { child: command.spawn()? })
    }
}

impl Watched {
    /// Ends the program with its group.
    ///
    /// # Errors
    /// When either goes on.
    pub fn end(&mut self) -> io::Result<()> {
        let group = self.end_rest();
        // It may have ended just now, or have left its group.
        self.child.kill()?;
        self.child.wait()?;
        group
    }

    /// Ends what the program left, which has ended itself: else it would hold its pipes open, and their end would be waited for in vain.
    ///
    /// # Errors
    /// When it goes on.
    pub fn end_rest(&mut self) -> io::Result<()> {
        #[cfg(unix)]
        match &self.wardens {
            Some(wardens) => return kill(wardens.leader.id()),
            // The number of a group that the program leads is no other's as long as it is not waited for.
            None if matches!(self.child.try_wait(), Ok(None)) => return kill(self.child.id()),
            None => {}
        }
        Ok(())
    }
}

impl Drop for Watched {
    /// Nobody waits for the program any more: it ends, unless it has, and so does what it left.
    fn drop(&mut self) {
        // Nobody is there who could be told of an error.
        let _ = match self.child.try_wait() {
            Ok(Some(_)) => self.end_rest(),
            _ => self.end(),
        };
    }
}

/// Ends a group. No program does that: there may be none, or no room for one.
#[cfg(unix)]
fn kill(group: u32) -> io::Result<()> {
    let group = i32::try_from(group).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
    match kill_process_group(group, Signal::KILL) {
        // It has ended.
        Ok(()) | Err(rustix::io::Errno::SRCH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Two processes that wait for the end of this one.
#[cfg(unix)]
#[derive(Debug)]
struct Wardens {
    /// Leads the group, and does nothing else: its number is no other's as long as it is not waited for.
    leader: Child,
    /// Ends the group, from outside of it.
    warden: Child,
}

#[cfg(unix)]
impl Wardens {
    fn ready(folder: Option<&Path>) -> io::Result<Wardens> {
        // Of programs only a shell: a slim image has no more. It waits, and ends groups, by itself.
        const WAIT: &str = "while read -r _; do :; done";
        const END: &str = "kill -s KILL -- \"-$1\"; [ -z \"$2\" ] || rm -rf -- \"$2\"";
        let start = |script: &str, arguments: [&std::ffi::OsStr; 2]| {
            let mut command = Command::new("sh");
            command.args(["-c", script, "warden"]).args(arguments);
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
            command.spawn()
        };
        let mut leader = start(WAIT, ["".as_ref(), "".as_ref()])?;
        let group = leader.id().to_string();
        let folder = folder.unwrap_or(Path::new("")).as_os_str();
        match start(&format!("{WAIT}; {END}"), [group.as_ref(), folder]) {
            Ok(warden) => Ok(Wardens { leader, warden }),
            Err(error) => {
                dismiss(&mut leader);
                Err(error)
            }
        }
    }
}

#[cfg(unix)]
impl Drop for Wardens {
    /// First who would end the group: the program has ended, and the group's number may be another's soon.
    fn drop(&mut self) {
        dismiss(&mut self.warden);
        dismiss(&mut self.leader);
    }
}

#[cfg(unix)]
fn dismiss(process: &mut Child) {
    let _ = process.kill();
    let _ = process.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::process::ExitStatusExt;
    use std::thread;
    use std::time::{Duration, Instant};

    /// Waits until that is so.
    fn soon(what: &str, is: impl Fn() -> bool) {
        let begin = Instant::now();
        while !is() {
            assert!(begin.elapsed() < Duration::from_secs(20), "{what}");
            thread::sleep(Duration::from_millis(10));
        }
    }

    fn sleeper(folder: Option<&Path>) -> Watched {
        // A process of the group that is not the program itself ends, too.
        start(Command::new("sh").args(["-c", "sleep 60; true"]), folder).unwrap()
    }

    #[test]
    fn a_group_ends_with_who_started_it_and_not_before() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("of the group");
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("text"), "text").unwrap();
        let mut group = sleeper(Some(&folder));
        drop(group.wardens.take());
        assert!(group.child.try_wait().unwrap().is_none(), "wardens that are dismissed do nothing to it");
        drop(group);
        let mut group = sleeper(Some(&folder));
        thread::sleep(Duration::from_millis(200));
        assert!(group.child.try_wait().unwrap().is_none() && folder.is_dir());
        // As when this process ends.
        let wardens = group.wardens.as_mut().unwrap();
        drop((wardens.leader.stdin.take(), wardens.warden.stdin.take()));
        assert_eq!(group.child.wait().unwrap().signal(), Some(9));
        soon("its folder is there yet", || !folder.exists());
        // Who has no folder to remove removes none.
        let mut group = sleeper(None);
        drop(group.wardens.as_mut().unwrap().warden.stdin.take());
        assert_eq!(group.child.wait().unwrap().signal(), Some(9));
        assert!(scratch.path().is_dir());
    }

    #[test]
    fn what_takes_too_long_is_ended_with_what_it_started() {
        let scratch = tempfile::tempdir().unwrap();
        let (mut group, pipe) = holder(&scratch.path().join("held"));
        group.end().unwrap();
        soon("what it started goes on", || io::Write::write_all(&mut &pipe, b"-").is_err());
    }

    /// As when it cannot be waited for, and as when something breaks off while it runs.
    #[test]
    fn who_drops_a_program_ends_it_with_what_it_started() {
        let scratch = tempfile::tempdir().unwrap();
        let (group, pipe) = holder(&scratch.path().join("dropped"));
        let number = i32::try_from(group.child.id()).ok().and_then(Pid::from_raw).unwrap();
        drop(group);
        rustix::process::test_kill_process(number).expect_err("it goes on");
        soon("what it started goes on", || io::Write::write_all(&mut &pipe, b"-").is_err());
        let (group, pipe) = holder(&scratch.path().join("broken off"));
        std::panic::catch_unwind(move || {
            let _group = group;
            panic!("as any other");
        })
        .unwrap_err();
        soon("what it started goes on", || io::Write::write_all(&mut &pipe, b"-").is_err());
        // What the program left, which has ended itself.
        let (mut group, pipe) = holder(&scratch.path().join("left"));
        group.child.kill().unwrap();
        group.child.wait().unwrap();
        io::Write::write_all(&mut &pipe, b"-").expect("what it started goes on");
        drop(group);
        soon("what it started goes on", || io::Write::write_all(&mut &pipe, b"-").is_err());
    }

    /// A slim image: of all programs there is a shell.
    #[test]
    fn nothing_but_a_shell_is_needed() {
        const HELD: &str = "WARDEN_TEST_HELD";
        if let Some(held) = std::env::var_os(HELD) {
            let mut group = start(&mut held_by(Path::new(&held)), None).unwrap();
            assert!(group.wardens.is_some());
            soon("it does not begin", || Path::new(&held).exists());
            let pipe = fs::OpenOptions::new().write(true).open(&held).unwrap();
            group.child.kill().unwrap();
            group.child.wait().unwrap();
            group.end_rest().unwrap();
            soon("what it started goes on", || io::Write::write_all(&mut &pipe, b"-").is_err());
            return;
        }
        let scratch = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/bin/sh", scratch.path().join("sh")).unwrap();
        let this = thread::current().name().unwrap().to_string();
        let mut slim = Command::new(std::env::current_exe().unwrap());
        slim.args(["--exact", &this]).env(HELD, scratch.path().join("held")).env("PATH", scratch.path());
        let output = slim.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }

    /// A program, and one that it started, which holds this pipe until it ends.
    fn holder(held: &Path) -> (Watched, fs::File) {
        let group = start(&mut held_by(held), None).unwrap();
        soon("it does not begin", || held.exists());
        // Opened when the process that was started opens it.
        let pipe = fs::OpenOptions::new().write(true).open(held).unwrap();
        (group, pipe)
    }

    fn held_by(held: &Path) -> Command {
        // The programs that it needs are none of the warden's.
        let script = "PATH=/usr/bin:/bin; mkfifo \"$0\"; (trap '' TERM; cat; sleep 60) < \"$0\" & exec sleep 60";
        let mut command = Command::new("sh");
        command.args(["-c", script]).arg(held).stdout(Stdio::null()).stderr(Stdio::null());
        command
    }

    /// The worst moment: the program runs, and who started it could not do anything more. It looks at nothing, so nothing else ends it.
    #[test]
    fn a_program_ends_if_who_started_it_is_killed_at_once() {
        const FOLDER: &str = "WARDEN_TEST_FOLDER";
        let number = |folder: &Path| folder.with_file_name("number");
        if let Some(folder) = std::env::var_os(FOLDER) {
            let folder = Path::new(&folder);
            let script = "trap '' HUP INT TERM; echo $$ > \"$0.tmp\"; mv \"$0.tmp\" \"$0\"; while :; do sleep 60; done";
            let started = start(Command::new("sh").args(["-c", script]).arg(number(folder)), Some(folder));
            if folder.ends_with("later") {
                soon("it does not begin", || number(folder).exists());
            }
            let killed = Command::new("sh").args(["-c", "kill -KILL $PPID"]).status();
            panic!("it was not killed: {killed:?}, {started:?}");
        }
        let this = thread::current().name().unwrap().to_string();
        for moment in ["at once", "later"] {
            let scratch = tempfile::tempdir().unwrap();
            let folder = scratch.path().join(moment);
            fs::create_dir(&folder).unwrap();
            let mut killed = Command::new(std::env::current_exe().unwrap());
            killed.args(["--exact", &this]).env(FOLDER, &folder).stdout(Stdio::null()).stderr(Stdio::null());
            assert_eq!(killed.status().unwrap().signal(), Some(9));
            soon("its folder is there yet", || !folder.exists());
            // If it was ended before its first line there is nothing to look for.
            thread::sleep(Duration::from_millis(500));
            assert!(moment == "at once" || number(&folder).exists());
            if let Ok(number) = fs::read_to_string(number(&folder)) {
                let alive = || Command::new("kill").args(["-0", number.trim()]).stderr(Stdio::null()).status();
                soon("it goes on", || !alive().unwrap().success());
            }
        }
    }
}
