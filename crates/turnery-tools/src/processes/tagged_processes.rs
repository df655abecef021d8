//! Finds and kills processes without a supervisor, by the tag that they inherited.

use super::stop_report::StopReport;
#[cfg(target_os = "linux")]
pub(super) use linux::command_line;

/// Kills every process with this tag. Takes a bounded time.
#[cfg(target_os = "linux")]
pub(super) async fn sweep(tag: String) -> StopReport {
    // The kernel needs real time between two scans, so the pauses do not use the runtime's clock, which a
    // test may have paused.
    let sweep = tokio::task::spawn_blocking(move || linux::sweep(&tag));
    // An error means that the runtime is shutting down.
    sweep.await.unwrap_or(StopReport::GroupAndTagged)
}

/// Finds nothing on this system.
#[cfg(not(target_os = "linux"))]
pub(super) async fn sweep(_tag: String) -> StopReport {
    StopReport::GroupAndTagged
}

/// Finds nothing on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn command_line(_pid: i32) -> Option<String> {
    None
}

/// Kills every process with this tag, without a runtime and without blocking the caller.
#[cfg(target_os = "linux")]
pub(super) fn sweep_in_background(tag: String) {
    // An error means that the system has no threads left, so nothing can be done.
    let _ = std::thread::Builder::new().spawn(move || linux::sweep(&tag));
}

/// Finds nothing on this system.
#[cfg(not(target_os = "linux"))]
pub(super) fn sweep_in_background(_tag: String) {}

#[cfg(target_os = "linux")]
mod linux {
    use crate::processes::{
        stop_report::{RunningProcess, StopReport},
        supervision::TAG_VARIABLE,
    };
    use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
    use std::{
        fs::{self, File},
        io::{self, Read as _},
        thread::sleep,
        time::Duration,
    };

    /// Number of scans that find processes before the remaining ones are reported.
    const MAX_SCANS: u32 = 50;
    const PAUSE: Duration = Duration::from_millis(10);
    /// Maximum length of a reported command line. Unit: bytes.
    const MAX_COMMAND_BYTES: usize = 120;
    /// Initial size of the buffer for a process's environment, so that one read usually suffices. Unit:
    /// bytes.
    const ENVIRONMENT_BYTES: usize = 256 << 10;
    /// Flag of a kernel thread in `/proc/PID/stat`.
    const PF_KTHREAD: u64 = 0x0020_0000;

    /// Result of looking for the tag in a process.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum TagMatch {
        Yes,
        No,
        /// The process is in `exec` and has no environment at the moment.
        Unknown,
    }

    /// Processes found by one scan of the system.
    struct ProcessScan {
        tagged_pids: Vec<i32>,
        has_unknown: bool,
    }

    pub(super) fn sweep(tag: &str) -> StopReport {
        let variable = format!("{TAG_VARIABLE}={tag}");
        for _ in 0..MAX_SCANS {
            let found = scan(&variable);
            if found.tagged_pids.is_empty() && !found.has_unknown {
                return StopReport::GroupAndTagged;
            }
            found
                .tagged_pids
                .iter()
                .for_each(|pid| kill_tagged(*pid, &variable));
            sleep(PAUSE);
        }
        let left = scan(&variable).tagged_pids.into_iter().filter_map(|pid| {
            Some(RunningProcess {
                pid,
                command: command_line(pid)?,
            })
        });
        let left: Vec<RunningProcess> = left.collect();
        match left.is_empty() {
            true => StopReport::GroupAndTagged,
            false => StopReport::Remaining(left),
        }
    }

    fn scan(variable: &str) -> ProcessScan {
        let mut found = ProcessScan {
            tagged_pids: Vec::new(),
            has_unknown: false,
        };
        let Ok(processes) = fs::read_dir("/proc") else {
            return found;
        };
        let pid = |entry: io::Result<fs::DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        for pid in processes.filter_map(pid) {
            match match_tag(pid, variable) {
                TagMatch::Yes => found.tagged_pids.push(pid),
                TagMatch::No => {}
                TagMatch::Unknown => found.has_unknown = true,
            }
        }
        found
    }

    /// Checks the environment of a process for this variable. A process that has ended does not match.
    pub(super) fn match_tag(pid: i32, variable: &str) -> TagMatch {
        let Ok(environment) = read_environment(pid) else {
            return TagMatch::No;
        };
        let mut entries = environment.split(|byte| *byte == 0);
        if entries.any(|entry| entry == variable.as_bytes()) {
            TagMatch::Yes
        } else if environment.is_empty() && may_be_in_exec(pid) {
            TagMatch::Unknown
        } else {
            TagMatch::No
        }
    }

    fn read_environment(pid: i32) -> io::Result<Vec<u8>> {
        let mut file = File::open(format!("/proc/{pid}/environ"))?;
        // Usually read at once: by a second read `exec` may have replaced what the first one saw.
        let mut bytes = vec![0; ENVIRONMENT_BYTES];
        let mut length = 0;
        loop {
            if length == bytes.len() {
                bytes.resize(2 * length, 0);
            }
            match file.read(&mut bytes[length..])? {
                0 => break,
                count => length += count,
            }
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// Returns true if a process whose environment is empty may be in the middle of `exec`.
    ///
    /// `exec` replaces the memory first; it sets the bounds of the environment once that is copied, and those
    /// of the code at its end. Until then they are 0.
    fn may_be_in_exec(pid: i32) -> bool {
        let Ok(stat) = fs::read_to_string(format!("/proc/{pid}/stat")) else {
            return false;
        };
        // The fields follow the name, which may contain anything; the first of these is field 3 of proc(5).
        let Some((_, rest)) = stat.rsplit_once(") ") else {
            return false;
        };
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let number = |field: usize| -> u64 {
            let text = fields.get(field - 3);
            text.and_then(|text| text.parse().ok()).unwrap_or(0)
        };
        let (flags, end_code, env_start, env_end) = (number(9), number(27), number(50), number(51));
        let has_ended = fields
            .first()
            .is_some_and(|state| ["Z", "X"].contains(state));
        let has_no_environment = end_code != 0 && env_end != 0 && env_start == env_end;
        !has_ended && flags & PF_KTHREAD == 0 && !has_no_environment
    }

    /// Kills the process if it still has the variable once its id can no longer be reused.
    fn kill_tagged(pid: i32, variable: &str) {
        let Some(number) = Pid::from_raw(pid) else {
            return;
        };
        if let Ok(process) = pidfd_open(number, PidfdFlags::empty())
            && match_tag(pid, variable) == TagMatch::Yes
        {
            // A process that may not be killed is reported in the end.
            let _ = pidfd_send_signal(process, Signal::KILL);
        }
    }

    /// Returns the command line of a process, shortened and on one line; `None` once the process has ended.
    pub(crate) fn command_line(pid: i32) -> Option<String> {
        let bytes = fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let mut words = String::from_utf8_lossy(&bytes).replace(|c: char| c.is_control(), " ");
        if words.trim().is_empty() {
            let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
            words = name.replace(|c: char| c.is_control(), " ");
        }
        words.truncate(words.floor_char_boundary(MAX_COMMAND_BYTES));
        Some(words.trim().to_owned())
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::linux::{TagMatch, match_tag, sweep};
    use crate::processes::supervision::{TAG_VARIABLE, new_tag};
    use std::{
        fs,
        process::{Child, Command},
        thread,
        time::{Duration, Instant},
    };

    /// Exceeded only if a process is missed or something hangs.
    const BOUND: Duration = Duration::from_secs(60);

    fn holds_eventually(mut holds: impl FnMut() -> bool) -> bool {
        let since = Instant::now();
        while !holds() {
            if since.elapsed() > BOUND {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
        true
    }

    fn kill_and_wait(mut child: Child) {
        child.kill().unwrap();
        child.wait().unwrap();
    }

    #[test]
    fn repeatedly_execing_process_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("again");
        fs::write(&script, "exec sh \"$0\"").unwrap();
        for _ in 0..50 {
            let tag = new_tag();
            let mut command = Command::new("sh");
            let mut child = command
                .arg(&script)
                .env(TAG_VARIABLE, &tag)
                .spawn()
                .unwrap();
            sweep(&tag);
            let is_gone = holds_eventually(|| child.try_wait().unwrap().is_some());
            if !is_gone {
                kill_and_wait(child);
            }
            assert!(is_gone, "it was missed");
        }
    }

    #[test]
    fn cleared_environment_is_not_mistaken_for_exec() {
        let mut command = Command::new("sleep");
        let child = command.arg("600").env_clear().spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let is_known = holds_eventually(|| match_tag(pid, "A=b") == TagMatch::No);
        kill_and_wait(child);
        assert!(is_known);
    }
}
