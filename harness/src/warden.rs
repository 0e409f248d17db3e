//! That no program outlives who started it: neither the program, nor what it started, nor its scratch folder.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A program that runs in a group of its own, and that ends when this process is gone, by whatever way that ends. A group of its own gets no
/// Ctrl-C.
///
/// Its group is there before it is, and so is who ends that group: there is no moment at which the program runs and nobody knows it. Both hold
/// a pipe whose other end is held here. A program that is being started has that end, too, until it is the program, and by then it is in its
/// group: so the pipe is not closed before.
#[derive(Debug)]
pub struct Watched {
    /// The program.
    pub child: Child,
    /// Lead its group, and end it; gone where there is no `sh`: then the program ends by itself.
    #[cfg(unix)]
    wardens: Option<Wardens>,
}

/// Starts a program so. `folder`: its scratch folder, which is removed when this process is gone: else whoever made it does that.
///
/// # Errors
/// When it cannot be started.
pub fn start(command: &mut Command, folder: Option<&Path>) -> io::Result<Watched> {
    #[cfg(unix)]
    {
        let wardens = Wardens::ready(folder);
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
    pub fn end(&mut self) {
        #[cfg(unix)]
        kill(self.wardens.as_ref().map_or(self.child.id(), |wardens| wardens.leader.id()));
        // It may have ended just now; either way it is gone afterwards.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends what the program left, which has ended itself: else it would hold its pipes open, and their end would be waited for in vain.
    pub fn end_rest(&self) {
        // The number of a group that the program led may be another's by now.
        #[cfg(unix)]
        self.wardens.iter().for_each(|wardens| kill(wardens.leader.id()));
    }
}

/// Ends a group.
#[cfg(unix)]
fn kill(group: u32) {
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).stderr(Stdio::null()).status();
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
    fn ready(folder: Option<&Path>) -> Option<Wardens> {
        let start = |command: &mut Command| {
            command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            std::os::unix::process::CommandExt::process_group(command, 0);
            command.spawn().ok()
        };
        let mut leader = start(&mut Command::new("cat"))?;
        const SCRIPT: &str = "cat > /dev/null; kill -s KILL -- \"-$1\"; [ -z \"$2\" ] || rm -rf -- \"$2\"";
        let mut command = Command::new("sh");
        command.args(["-c", SCRIPT, "warden", &leader.id().to_string()]).arg(folder.unwrap_or(Path::new("")));
        match start(&mut command) {
            Some(warden) => Some(Wardens { leader, warden }),
            None => {
                dismiss(&mut leader);
                None
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
        let Watched { mut child, wardens } = sleeper(Some(&folder));
        drop(wardens);
        assert!(child.try_wait().unwrap().is_none(), "wardens that are dismissed do nothing to it");
        child.kill().unwrap();
        child.wait().unwrap();
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
        let held = scratch.path().join("held");
        let script = "mkfifo \"$0\"; (trap '' TERM; cat \"$0\"; sleep 60) & exec sleep 60";
        let mut group = start(Command::new("sh").args(["-c", script]).arg(&held), None).unwrap();
        // Opened when the process that was started opens it, and at its end when that ends.
        soon("it does not begin", || held.exists());
        let mut pipe = fs::OpenOptions::new().write(true).open(&held).unwrap();
        group.end();
        soon("what it started goes on", || io::Write::write_all(&mut &pipe, b"-").is_err());
        let _ = io::Write::flush(&mut pipe);
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
