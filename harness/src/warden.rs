//! That no program outlives who started it: neither the program, nor what it started, nor its scratch folder.

use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A process that ends a group of processes when this one is gone, by whatever way, and removes their scratch folder. A group of its own
/// gets no Ctrl-C.
#[cfg(unix)]
pub struct Warden(Child);

#[cfg(unix)]
impl Warden {
    /// Started before the group that it is to watch: to start it takes a while, in which this process may be killed. `None` where there is
    /// no `sh`: then the group ends by itself.
    pub fn ready(folder: Option<&Path>) -> Option<Warden> {
        let mut command = Command::new("sh");
        // The other end of its input is held here. It is closed when this process ends.
        const SCRIPT: &str = "read -r group && cat > /dev/null; \
                              [ -n \"$group\" ] && kill -s KILL -- \"-$group\"; \
                              [ -n \"$1\" ] && rm -rf -- \"$1\"";
        command.args(["-c", SCRIPT, "warden"]).arg(folder.unwrap_or(Path::new("")));
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        command.spawn().ok().map(Warden)
    }

    /// Tells it the group: that of this process.
    pub fn watch(&mut self, leader: &Child) {
        use std::io::Write;
        if let Some(stdin) = &mut self.0.stdin {
            // One that is gone watches nothing, as one that could not be started.
            let _ = writeln!(stdin, "{}", leader.id()).and_then(|()| stdin.flush());
        }
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

/// Ends a process that leads a group of its own, with that group.
pub fn end(leader: &mut Child) {
    #[cfg(unix)]
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{}", leader.id())]).status();
    // It may have ended just now; either way it is gone afterwards.
    let _ = leader.kill();
    let _ = leader.wait();
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::process::{CommandExt, ExitStatusExt};
    use std::thread;
    use std::time::{Duration, Instant};

    fn sleeper() -> Child {
        // A process of the group that is not its leader ends, too.
        Command::new("sh").args(["-c", "sleep 60; true"]).process_group(0).spawn().unwrap()
    }

    #[test]
    fn a_group_ends_with_who_started_it_and_not_before() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("of the group");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("text"), "text").unwrap();
        let mut group = sleeper();
        let watched = |group: &Child| {
            let mut warden = Warden::ready(Some(&folder)).unwrap();
            warden.watch(group);
            warden
        };
        drop(watched(&group));
        assert_eq!(group.try_wait().unwrap(), None, "a warden that is dismissed does nothing");
        let mut warden = watched(&group);
        thread::sleep(Duration::from_millis(200));
        assert!(group.try_wait().unwrap().is_none() && folder.is_dir());
        // As when this process ends.
        drop(warden.0.stdin.take());
        assert_eq!(group.wait().unwrap().signal(), Some(9));
        let begin = Instant::now();
        while folder.exists() {
            assert!(begin.elapsed() < Duration::from_secs(10), "its folder is there yet");
            thread::sleep(Duration::from_millis(10));
        }
        // One that was told nothing ends by itself, and nothing else.
        let mut idle = Warden::ready(None).unwrap();
        drop(idle.0.stdin.take());
        assert_eq!(idle.0.wait().unwrap().code(), Some(1));
        assert!(scratch.path().is_dir());
    }
}
